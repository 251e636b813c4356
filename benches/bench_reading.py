"""A column of numbers out of a CSV file: ours against pandas and numpy, with their peak memory.

Each contender reads in a process of its own, so that its peak is not another one's. Ours computes
the SHA-256 of the file too, and reads every number to the last bit, as numpy does; pandas rounds
by default. The smoke run reads 10^5 rows, else DPCORE_BENCH_ROWS or 10^6; measured at 10^7.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

OURS = "from dpcore.recorded.sides import read_outputs; read = lambda: read_outputs(path, 'score')"
PANDAS = "import pandas; read = lambda: pandas.read_csv(path)['score'].to_numpy()"
NUMPY = (
    "import numpy; read = lambda: numpy.loadtxt(path, delimiter=',', skiprows=1, usecols=columns)"
)

CODE = """
import json, sys, time
path, columns = sys.argv[1], int(sys.argv[2])
{imports}
def peak():  # ru_maxrss begins with that of the parent process
    with open("/proc/self/status") as lines:
        return 1024 * int(next(line for line in lines if line[:6] == "VmHWM:").split()[1])
before, start = peak(), time.perf_counter()
found = read()
seconds = time.perf_counter() - start
print(json.dumps([len(found), float(found.sum()), seconds, peak() - before]))
"""


@pytest.fixture(scope="module")
def size(tiny):
    return 100_000 if tiny else int(os.environ.get("DPCORE_BENCH_ROWS", 1_000_000))


@pytest.fixture(scope="module")
def files(tmp_path_factory, size):
    """A file of one column and one of two, and the numbers that they hold."""
    folder = tmp_path_factory.mktemp("reading")
    values = np.random.default_rng(0).laplace(size=size)
    one, two = folder / "one.csv", folder / "two.csv"
    with one.open("w") as first, two.open("w") as second:
        first.write("score\n")
        second.write("id,score\n")
        for row, value in enumerate(values.tolist()):
            first.write(f"{value!r}\n")
            second.write(f"{row},{value!r}\n")
    return {1: one, 2: two}, values


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("contender", [OURS, PANDAS, NUMPY], ids=["dpcore", "pandas", "numpy"])
@pytest.mark.parametrize("columns", [1, 2])
def test_a_column_of_numbers(benchmark, files, size, contender, columns):
    paths, values = files
    code = CODE.format(imports=contender)
    command = [sys.executable, "-c", code, str(paths[columns]), str(columns - 1)]

    def read():
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return json.loads(done.stdout)

    benchmark.group = f"a column of a file with {columns}, {size:,} rows"
    rows, total, seconds, peak = benchmark.pedantic(read, rounds=1)
    benchmark.extra_info.update(seconds=seconds, peak_bytes=peak, operations=size)
    print(
        f"\n{seconds:.2f} s, {peak / 1e6:.0f} MB beyond the interpreter, array {8 * size / 1e6} MB"
    )
    assert rows == size
    assert total == pytest.approx(values.sum(), rel=1e-12)
    if contender is OURS and size >= 10**7:
        assert peak < 3 * values.nbytes
