"""Kills and signals at random moments: the same record afterwards, and no process is left.

DPCORE_KILLS=40 kills 40 drivers of each way to run; 20 workers and 20 signals are half of it.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from shared_extras import needs

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are in /proc"),
    pytest.mark.extras,
]

KILLS = int(os.environ.get("DPCORE_KILLS", "2"))

SCRIPT = '''
import contextlib, os, signal, sys, time
from concurrent.futures import ProcessPoolExecutor
import dpcore
from dpcore.auditing import run_files
from dpcore.runs import begin_run, count_part, merge_parts
from dpcore.sampling import driver

def slow_noise(x, size, rng):
    time.sleep(float(os.environ["SLEEP"]))
    return x + rng.laplace(size=(size, len(x)))

TOOL = """
import os, random, subprocess, sys, time
sleep = float(os.environ["SLEEP"])
if sleep:
    child = subprocess.Popen(["sleep", "600"], stdin=-3, stdout=-3, stderr=-3)
    time.sleep(sleep)
    child.kill()
    child.wait()
rng = random.Random(int(os.environ["DPCORE_SEED"]))
for _ in range(int(sys.argv[2])):
    print(sys.argv[1] if rng.random() < 0.7 else rng.random())
"""

def main(way, path, out):
    run_files._SECONDS_BETWEEN_WRITES = 0.02
    driver.Pace.shard_trials = lambda pace, left, workers, block, travels: block
    about = dict(attack=dpcore.attacks.Threshold(), claim=9.0, trials=12800, block=128, rng=3,
                 pilot=600, progress=False)
    mechanism, pair = slow_noise, dpcore.Pair([0.0], [1.0])
    executor = contextlib.nullcontext()
    if way == "pool":
        executor = ProcessPoolExecutor(2)
    elif way == "Dask":
        from distributed import Client
        executor = Client(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                          silence_logs=50)
    elif way == "early stop":
        about["stop"] = "refuted"
    elif way == "command":
        mechanism = dpcore.command([sys.executable, "-S", "-E", "-c", TOOL, "{x}", "{size}"])
        pair, about["trials"], about["attack"] = ("1.5", "2.5"), 1280, "auto"
    print("begun", flush=True)
    with executor as about["executor"]:
        if way == "part":
            run = os.path.join(os.path.dirname(path), "begun.json")
            os.path.exists(run) or begin_run(run, mechanism, pair, **about)
            count_part(run, mechanism, pair, part=(1, 2), out=path, **about)
            report = merge_parts([path], partial=True)
        else:
            report = dpcore.audit(mechanism, pair, checkpoint=path, **about)
    open(out, "w").write(report.to_json())

if __name__ == "__main__":
    main(*sys.argv[1:])
'''

WORDS = (
    "audit mech.py:slow_noise --x 0 --x-prime 1 --claim 2 --attack threshold --pilot 600 --json "
    "--trials 12800 --block 128 --seed 7 --checkpoint run.json --no-progress"
)
MECHANISM = """
import os, time
def slow_noise(x, size, rng):
    time.sleep(float(os.environ["SLEEP"]))
    return x + rng.laplace(size=(size, len(x)))
"""
# Whoever runs tests in the background ignores Ctrl-C, and hands that on.
COMMAND = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from dpcore.cli import main
print("begun", file=sys.stderr, flush=True)
sys.exit(main(sys.argv[1:]))
"""


def list_processes(mark):
    """List the processes that have a mark in their environment, and watchers without a driver."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state = (folder / "stat").read_text().rpartition(")")[2].split()
            marked = mark.encode() in (folder / "environ").read_bytes()
            is_watch = b"dpcore-watch" in (folder / "cmdline").read_bytes()
            has_driver = b"python" in (folder.parent / state[1] / "cmdline").read_bytes()
        except OSError:
            continue
        if state[0] != "Z" and (marked or (is_watch and not has_driver)):
            found.append((int(folder.name), int(state[1])))
    return found


def check_nothing_left(folder):
    """Check that all processes end within five seconds, and that no half-written file is left."""
    end = time.monotonic() + 5.0
    while (left := list_processes(str(folder))) and time.monotonic() < end:
        time.sleep(0.05)
    names = {number: Path(f"/proc/{number}/cmdline").read_bytes()[:200] for number, _ in left}
    assert not left, names


class Runner:
    """Runs of one way in a folder, each in a process of its own."""

    def __init__(self, folder, way):
        self.folder, self.way = folder, way
        (folder / "run.py").write_text(SCRIPT)
        (folder / "mech.py").write_text(MECHANISM)

    def start(self, sleep, run="run.json", out="record"):
        environment = {**os.environ, "SLEEP": sleep, "DPCORE_FOLDER": str(self.folder)}
        if self.way == "signal":
            words = [sys.executable, "-c", COMMAND, *WORDS.replace("run.json", run).split()]
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        else:
            words = [sys.executable, "run.py", self.way, str(self.folder / run)]
            words.append(str(self.folder / out))
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(words, cwd=self.folder, env=environment, **pipes)
        stream = process.stderr if self.way == "signal" else process.stdout
        assert stream.readline() == b"begun\n"
        return process

    def finish(self, run="run.json", out="record"):
        process = self.start("0", run, out)
        printed, _ = process.communicate(timeout=100)
        assert process.returncode == 0
        if self.way == "signal":
            (self.folder / out).write_bytes(printed)
        record = json.loads((self.folder / out).read_text())
        record["derived"].pop("draws_per_second")
        without = ("seconds", "spent", "threads", "provenance")
        return {name: value for name, value in record.items() if name not in without}


@pytest.mark.parametrize(
    ("way", "killed", "number"),
    [
        *((way, "driver", signal.SIGKILL)
          for way in ("plain", "pool", "Dask", "part", "early stop", "command")),
        ("pool", "worker", signal.SIGKILL), ("Dask", "worker", signal.SIGKILL),
        ("signal", "driver", signal.SIGTERM), ("signal", "driver", signal.SIGINT),
        ("signal", "driver", signal.SIGHUP),
    ],
)  # fmt: skip
@pytest.mark.sweep
def test_kills_at_random_moments_change_no_record_and_leave_no_process(
    tmp_path, way, killed, number
):
    if way == "Dask":
        needs("distributed")
    runner, rng = Runner(tmp_path, way), random.Random(7)
    whole = runner.finish("whole.json", "whole")
    (tmp_path / "begun.json").unlink(missing_ok=True)
    kills = KILLS if killed == "driver" and number == signal.SIGKILL else max(2, KILLS // 2)
    statuses = []
    for _ in range(kills):
        process, begun = runner.start("0.3" if way == "command" else "0.02"), time.time()
        # A process of Python's pools that never had a task waits for one, whoever is killed.
        while way == "pool" and not has_counted(tmp_path / "run.json", begun):
            time.sleep(0.01)
        try:
            process.wait(rng.uniform(0.1, 3.5 if way == "Dask" else 1.5))
        except subprocess.TimeoutExpired:
            target = process.pid
            if killed == "worker":
                children = [n for n, parent in list_processes(str(tmp_path)) if parent == target]
                target = rng.choice([n for n in children if is_worker(n)] or [target])
            os.kill(target, number)
        process.communicate(timeout=60)
        statuses.append(process.returncode)
        check_nothing_left(tmp_path)
    if way == "signal":
        assert set(statuses) <= {128 + number, 0}, statuses
        assert 128 + number in statuses
    elif killed == "driver":
        assert -number in statuses
    assert runner.finish() == whole
    check_nothing_left(tmp_path)
    assert not [file.name for file in tmp_path.iterdir() if file.name.endswith(".tmp")]


def has_counted(path, begun):
    """Return True if a process that was begun at a time has written its run file again."""
    return path.exists() and path.stat().st_mtime > begun + 0.1


def is_worker(number):
    """Return True for a process that draws: one that no multiprocessing tracker is."""
    return b"tracker" not in Path(f"/proc/{number}/cmdline").read_bytes()
