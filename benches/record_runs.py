"""Measure long audits: efficiency, kills, memory, soundness; write benches/record/runs.md.

Usage: python benches/record_runs.py [--audits 2000] [--kills 20] [--blocks 1e7] [--seconds 60]
       [--out FILE]

The simulated figures and the overclaims are the same everywhere. Times are of this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any
from unittest import mock

import numpy as np

import dpcore
from dpcore.experiments.scaling import Config, add_laplace_noise, simulate_cluster
from dpcore.sampling import driver

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import shared_resumed  # noqa: E402
import shared_shards  # noqa: E402

FIRST_SEED = 3_500_001
"""No test uses this seed or one of the next thousands."""

WANTED = ((10**9, 64, 0.9), (10**11, 1024, 0.7), (10**13, 1024, 0.95))
"""Trials, workers and the efficiency of counting that is wanted."""

_SLEEP_SECONDS = 0.05
_SECONDS_BETWEEN_KILLS = 5.0
_KILLED_WORKERS = 4
"""Workers of which one is killed; a new one takes seconds to start."""


def measure_efficiency() -> tuple[list[str], bool]:
    """Return a line for each simulated cluster, and True if all are as efficient as wanted."""
    lines = [
        "| trials a side | workers | wanted | efficiency | with faults | shards | us each |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    good = True
    for trials, workers, wanted in WANTED:
        [found], [faulty] = (simulate_cluster(Config(), trials, workers, f) for f in (False, True))
        good &= found.efficiency >= wanted
        lines.append(
            f"| {trials:.0e} | {workers:,} | {wanted} | {found.efficiency:.3f} | "
            f"{faulty.efficiency:.3f} | {found.shards:,} | {found.driver_seconds * 1e6:.0f} |"
        )
    return lines, good


def measure_memory(most: int) -> tuple[list[str], bool]:
    """Return a line for each number of made-up blocks, and True if memory stays constant."""
    lines = ["| blocks | CPU s of the driver | growth, MB |", "| ---: | ---: | ---: |"]
    good, blocks = True, 10**5
    while blocks <= most:
        command = [sys.executable, shared_shards.__file__, str(blocks)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        _, seconds, grown = map(float, printed.split())
        good &= grown < 20 * 2**20
        lines.append(f"| {blocks:,} | {seconds:.2f} | {grown / 2**20:.1f} |")
        blocks *= 10
    return lines, good


def measure_soundness(audits: int) -> tuple[list[str], bool]:
    """Return a line for each kind of audits, and True if the sound ones alone pass."""
    most = shared_resumed.allow(audits)
    lines = ["| audits at the exact loss | overclaims | at most |", "| --- | ---: | ---: |"]
    with tempfile.TemporaryDirectory() as name:
        about = (audits, pathlib.Path(name), FIRST_SEED)
        sound = shared_resumed.count_overclaims(*about)
        part = shared_resumed.count_overclaims_of_repeated_parts(*about)
        replays = shared_resumed.count_overclaims_of_replays(*about)
    fixed, anytime = shared_resumed.count_overclaims_of_looks(audits, FIRST_SEED)
    for title, found in {
        "cut off and resumed at random points": sound,
        "forty looks, anytime bound": anytime,
        "control: one of eight parts counted eight times": part,
        "control: a mechanism that replays one block": replays,
        "control: forty looks, bound for a fixed end": fixed,
    }.items():
        lines.append(f"| {title} | {found} of {audits} | {most} |")
    return lines, max(sound, anytime) <= most < min(part, replays, fixed)


def measure_kills(kills: int) -> tuple[list[str], bool]:
    """Kill drivers at random moments and one in the middle of a write; compare the records."""
    test = "tests/auditing/test_run_files.py"
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", test]
    done = subprocess.run(
        [*command, "-k", "kills_at_random_moments"],
        cwd=ROOT, env={**os.environ, "DPCORE_KILLS": str(kills)}, capture_output=True, check=False,
    )  # fmt: skip
    said = "equal to" if done.returncode == 0 else "OTHER THAN"
    line = f"- {kills} kills of the driver at random moments and one in the middle of a write: the"
    return [f"{line} record is {said} the uninterrupted one."], done.returncode == 0


def slow_noise(x: Any, size: int, rng: np.random.Generator) -> Any:
    """Return noise after a twentieth of a second."""
    time.sleep(_SLEEP_SECONDS)
    return x + rng.laplace(size=(size, len(x)))


def measure_lost_workers(seconds: float) -> tuple[list[str], bool]:
    """Kill a Dask worker every five seconds; compare the audit with the one in this process."""
    import dask
    from distributed import Client

    blocks = int(_KILLED_WORKERS * seconds / _SLEEP_SECONDS / 2)
    about: dict[str, Any] = {
        "attack": dpcore.attacks.Threshold(), "claim": 1.0, "trials": 128 * blocks, "block": 128,
        "pilot": 600, "rng": FIRST_SEED, "progress": False,
    }  # fmt: skip
    with mock.patch.object(time, "sleep"):
        whole = dpcore.audit(slow_noise, shared_shards.ONE, **about)
    killed, ended = [], threading.Event()

    def kill(client: Any) -> None:
        while not ended.wait(_SECONDS_BETWEEN_KILLS):
            with contextlib.suppress(Exception):
                pids = list(client.run(os.getpid).values())
                os.kill(pids[len(killed) % len(pids)], signal.SIGKILL)
                killed.append(pids)

    given: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        mock.patch.object(driver, "_LONG_SHARD_SECONDS", 1.0),
        # A worker that is killed while it starts would else be given up by the cluster.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"}),
        Client(n_workers=_KILLED_WORKERS, silence_logs=50, **given) as client,
    ):
        killer = threading.Thread(target=kill, args=(client,))
        killer.start()
        try:
            report = dpcore.audit(slow_noise, shared_shards.ONE, executor=client, **about)
        finally:
            ended.set()
            killer.join()
    good = not shared_shards.list_differences(report, whole)
    return [
        f"- {len(killed)} kills of a Dask worker, one every {_SECONDS_BETWEEN_KILLS:g} s, shards "
        f"of 1 s: the audit is {'equal to' if good else 'OTHER THAN'} the one in this process."
    ], good


@contextlib.contextmanager
def _cpu_seconds(found: list[float]) -> Iterator[None]:
    """Append the CPU seconds of this process, and of its children that ended."""

    def read() -> tuple[float, float]:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return time.process_time(), children.ru_utime + children.ru_stime

    before = read()
    yield
    found += [after - one for after, one in zip(read(), before, strict=True)]


def measure_cpu(trials: int) -> list[str]:
    """Return lines on the CPU time of an audit in this process, in a pool and with Dask."""
    about: dict[str, Any] = {
        "attack": dpcore.attacks.Threshold(), "claim": 1.0, "pilot": 10_000, "rng": 1,
        "progress": False,
    }  # fmt: skip

    def count(executor: Any, trials: int) -> None:
        audit = dpcore.audit
        audit(add_laplace_noise, shared_shards.ONE, trials=trials, executor=executor, **about)

    serial: list[float] = []
    count(None, 10**5)
    with _cpu_seconds(serial):
        count(None, trials)
    pools = []
    for size in (10**5, trials):
        used: list[float] = []
        with _cpu_seconds(used), ProcessPoolExecutor(1, get_context("spawn")) as pool:
            count(pool, size)
        pools.append(sum(used))
    lines = [
        f"- {trials:.0e} trials in this process: {serial[0]:.1f} CPU s; in a pool of one process "
        f"{pools[1] - pools[0]:.1f} (start and pilot subtracted)."
    ]
    with contextlib.suppress(ImportError):
        from distributed import Client

        given: dict[str, Any] = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with Client(n_workers=2, silence_logs=50, **given) as client:
            count(client, 10**5)
            idle: list[float] = []
            with _cpu_seconds(idle):
                time.sleep(10.0)
            busy: list[float] = []
            begun = time.perf_counter()
            with _cpu_seconds(busy):
                count(client, trials)
            wall = time.perf_counter() - begun
        share = (busy[0] - idle[0] / 10.0 * wall) / serial[0]
        lines.append(
            f"- Dask's driver and scheduler: {busy[0]:.2f} CPU s in {wall:.0f} s, where an idle "
            f"one takes {idle[0] / 10.0:.3f} a second: {100 * share:.1f} % of the work beyond that."
        )
    return lines


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return 1 if a figure is not as wanted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--audits", type=int, default=2000, help="audits of each kind")
    parser.add_argument("--kills", type=int, default=20, help="kills of the driver")
    parser.add_argument("--blocks", type=float, default=1e7, help="most made-up blocks")
    parser.add_argument("--seconds", type=float, default=60.0, help="time of killing Dask workers")
    parser.add_argument("--trials", type=float, default=1e8, help="of the audits that are timed")
    parser.add_argument("--out", type=pathlib.Path, help="file of the tables")
    settings = parser.parse_args(arguments)
    default = pathlib.Path(__file__).parent / "record" / "runs.md"
    efficiency, fast = measure_efficiency()
    memory, constant = measure_memory(int(settings.blocks))
    kills, resumed = measure_kills(settings.kills)
    losses, same = measure_lost_workers(settings.seconds)
    soundness, sound = measure_soundness(settings.audits)
    text = [
        "# Long audits: efficiency, kills, memory, soundness",
        "",
        f"{datetime.date.today()}, dpcore {dpcore.__version__}, path `{dpcore._core.cpu()}`, "
        f"{os.cpu_count()} cores, load",
        f"{os.getloadavg()[0]:.1f}. Remade by `python benches/record_runs.py`.",
        "",
        "## Efficiency of counting on simulated clusters",
        "",
        "Core seconds of the work / (workers x virtual time); 122 ns a trial, 1 ms of the driver a",
        "shard. Faults: 2 % of the workers at half the speed, 0.1 % of the shards lost. The last",
        "column is the time of this machine for a shard, in microseconds.",
        "",
        *efficiency,
        "",
        "## Memory and time of the driver, made-up results",
        "",
        *memory,
        "",
        "## Kills",
        "",
        *kills,
        *losses,
        "",
        "## CPU time",
        "",
        "CPU times vary by a quarter from run to run where others use the cores of a machine.",
        "",
        *measure_cpu(int(settings.trials)),
        "",
        "## Soundness of audits that were cut off",
        "",
        f'Confidence .9, conditional bound, seeds from {FIRST_SEED}; "at most" is what an exact',
        "binomial test of 10 % allows at 1e-4. The controls must exceed it.",
        "",
        *soundness,
        "",
    ]
    (settings.out or default).write_text("\n".join(text))
    return int(not (fast and constant and resumed and same and sound))


if __name__ == "__main__":
    sys.exit(main())
