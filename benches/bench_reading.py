"""Files of numbers, of words and of JSON lines: ours against pandas, polars and pyarrow.

Each contender reads all columns in a process of its own on one thread, so that its peak is not
another one's. Ours computes the SHA-256 of the file too, decides the kind of each column, and reads
every number to the last bit; pandas rounds by default. The smoke run reads 10^5 numbers, else
DPCORE_BENCH_NUMBERS or 10^6. `python benches/bench_reading.py` prints the tables of
benches/record/reading.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest

CONTENDERS = {
    "dpcore": (
        "from dpcore.recorded.sides import read_outputs",
        "read_outputs(path, '*')",
        "read_outputs(path, '*')",
    ),
    "pandas": (
        "import pandas",
        "pandas.read_csv(path).to_numpy()",
        "pandas.read_json(path, lines=True).to_numpy()",
    ),
    "polars": (
        "import polars",
        "polars.read_csv(path).to_numpy()",
        "polars.read_ndjson(path).to_numpy()",
    ),
    "pyarrow": (
        "import pyarrow.csv, pyarrow.json; one = dict(use_threads=False)",
        "stack(pyarrow.csv.read_csv(path, pyarrow.csv.ReadOptions(**one)))",
        "stack(pyarrow.json.read_json(path, pyarrow.json.ReadOptions(**one)))",
    ),
}
"""For each contender its imports, and the expressions that read a CSV file and JSON lines."""

CODE = """
import hashlib, json, sys, time
import numpy as np
{imports}
path = sys.argv[1]
def peak():  # ru_maxrss begins with that of the parent process
    with open("/proc/self/status") as lines:
        return 1024 * int(next(line for line in lines if line[:6] == "VmHWM:").split()[1])
def stack(table):
    return np.column_stack([column.to_numpy() for column in table.columns])
read = lambda path: {read}
read(sys.argv[2])  # what is imported at the first call is no part of the time
before, start = peak(), time.process_time()
values = read(path)
seconds = time.process_time() - start
taken = peak() - before
values = values.reshape(len(values), -1)
if values.dtype.kind != "f":
    total, data = len(values), " ".join(values.ravel().tolist()).encode()
else:
    total, data = float(np.abs(values).sum()), np.ascontiguousarray(values).tobytes()
digest = hashlib.sha256(data).hexdigest()
print(json.dumps([list(values.shape), total, digest, seconds, taken]))
"""

WRITERS = {"shortest": "%r", "two decimals": "%.2f", "%.18e": "%.18e", "JSON lines": "%r"}
CASES = [("shortest", 1), ("shortest", 5), ("shortest", 50), ("two decimals", 1), ("%.18e", 1),
         ("%.18e", 50), ("words", 1), ("JSON lines", 1), ("JSON lines", 5)]  # fmt: skip
SLOW = "words", "JSON lines"
"""Kinds of which no file of 10^7 cells is read: pandas would need more than 10 GB."""


def write_file(path, kind, columns, size):
    """Write a file, and return the shape of its cells, their total and the digest of their bytes.

    Args:
        path: of the file.
        kind: a key of `WRITERS`, or "words".
        columns: number of columns.
        size: number of cells.
    """
    rng = np.random.default_rng(0)
    shape = [size // columns, columns]
    if kind == "words":
        texts = np.array([f"word{number}" for number in "abcdefghijklmnop"], dtype=object)
        texts = texts[rng.integers(0, 16, size)].tolist()
        total, data = float(shape[0]), " ".join(texts).encode()
    else:
        form = WRITERS[kind]
        texts = [form % value for value in (10 * rng.laplace(size=size)).tolist()]
        values = np.array([float(text) for text in texts])
        total, data = float(np.abs(values).sum()), values.tobytes()
    names = [f"c{number}" for number in range(columns)]
    form = ",".join(["%s"] * columns)
    if kind == "JSON lines":
        form = "{" + ", ".join(f'"{name}": %s' for name in names) + "}"
    with path.open("w") as file:
        if kind != "JSON lines":
            file.write(",".join(names) + "\n")
        rows = zip(*[iter(texts)] * columns, strict=True)
        file.writelines(form % row + "\n" for row in rows)
    return shape, total, hashlib.sha256(data).hexdigest()


def read_file(path, contender, expected):
    """Read a file in a new process; check the cells, and return CPU seconds and peak memory."""
    imports, *reads = CONTENDERS[contender]
    short = path.with_stem("short")
    if not short.exists():
        with path.open() as file:
            short.write_text("".join(itertools.islice(file, 100)))
    code = CODE.format(imports=imports, read=reads[path.suffix == ".jsonl"])
    environment = os.environ | {"POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(path), str(short)],
        capture_output=True,
        text=True,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    shape, total, digest, seconds, peak = json.loads(done.stdout)
    assert shape == expected[0]
    assert total == pytest.approx(expected[1], rel=1e-12)
    assert contender != "dpcore" or digest == expected[2]
    return seconds, peak


def make_path(folder, kind):
    return Path(folder) / ("a.jsonl" if kind == "JSON lines" else "a.csv")


@pytest.fixture(scope="module")
def written(request, tmp_path_factory, tiny):
    """A file, what it holds, and its number of cells."""
    kind, columns = request.param
    size = 100_000 if tiny else int(os.environ.get("DPCORE_BENCH_NUMBERS", 1_000_000))
    path = make_path(tmp_path_factory.mktemp("reading"), kind)
    yield path, write_file(path, kind, columns, size), size
    path.unlink()


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="peaks are read from /proc")
@pytest.mark.parametrize("contender", CONTENDERS)
@pytest.mark.parametrize(
    "written", CASES, indirect=True, ids=[f"{kind}-{columns}" for kind, columns in CASES]
)
def test_a_file(benchmark, request, written, contender):
    if importlib.util.find_spec(contender) is None:
        pytest.skip(f"needs {contender}")
    path, expected, size = written
    benchmark.group = f"{request.node.callspec.id}, {size:,} cells"
    seconds, peak = benchmark.pedantic(read_file, (path, contender, expected), rounds=1)
    benchmark.extra_info.update(seconds=seconds, peak_bytes=peak, operations=size)
    if contender == "dpcore" and size >= 10**6 and not request.node.callspec.id.startswith(SLOW):
        assert peak < 2 * 8 * size + 100e6


def main():
    """Print CPU seconds and peaks of all contenders, the median of three rounds in turn."""
    sizes = [int(float(text)) for text in sys.argv[1:]] or [10**5, 10**6, 10**7]
    heads = [f"{name} {unit}" for unit in ("s", "MB") for name in CONTENDERS]
    print("| cells | kind | columns |", " | ".join(heads), "| dpcore / pandas |")
    print("| ---: | --- |" + " ---: |" * (len(heads) + 2))
    for size in sizes:
        for kind, columns in CASES:
            if size > 10**6 and kind in SLOW:
                continue
            with tempfile.TemporaryDirectory() as folder:
                path = make_path(folder, kind)
                expected = write_file(path, kind, columns, size)
                rounds = [
                    [read_file(path, name, expected) for name in CONTENDERS] for _ in range(3)
                ]
            seconds, peaks = np.median(rounds, axis=0).T
            cells = [f"{value:.2f}" for value in seconds] + [f"{peak / 1e6:.0f}" for peak in peaks]
            exponent = round(np.log10(size))
            ratio = f"| {seconds[0] / seconds[1]:.2f} |"
            print(f"| 10^{exponent} | {kind} | {columns} |", " | ".join(cells), ratio, flush=True)


if __name__ == "__main__":
    main()
