"""Time default audits by columns and trials, as ratios to their draws: the table of record/fit.md.

Run as ``OPENBLAS_NUM_THREADS=1 python benches/record_fit.py``. Each figure is the least CPU time of
some repetitions, which count the same hits. Wide outputs are audited in processes of their own, for
their peak memory.
"""

from __future__ import annotations

import resource
import subprocess
import sys
from time import process_time

import numpy as np

import dpcore

SIZES = [
    (1, 1_000), (20, 1_000), (64, 1_000), (10, 10**6), (20, 10**6), (100, 200_000),
    (128, 10**6), (1_000, 20_000), (10_000, 1_000),
]  # fmt: skip
"""Columns and trials."""
WIDE = [(40_000, 1_000), (100_000, 300), (1_000_000, 100)]
"""The same of wide outputs, whose pilot is read in a stream."""
SMALL = 10**6
"""Numbers of an audit up to which it is repeated."""
BLOCK = 2**17


def add_noise(x, size, rng):
    """Add Laplace noise whose scale is the number of columns: the loss of all of them is 1."""
    return x + rng.laplace(scale=float(len(x)), size=(size, len(x)))


def time_draws(pair, trials):
    """Return the CPU seconds of the counted draws on both sides."""
    rng, columns = np.random.default_rng(1), len(pair.x)
    rows = max(1, BLOCK // columns)
    begin = process_time()
    for x in (pair.x, pair.x_prime):
        for first in range(0, trials, rows):
            add_noise(x, min(rows, trials - first), rng)
    return process_time() - begin


def time_audit(pair, trials, repetitions):
    """Return the least CPU seconds of an audit; each repetition has the same counts."""
    seconds, counts = [], set()
    for _ in range(repetitions):
        begin = process_time()
        report = dpcore.audit(add_noise, pair, trials=trials, claim=1.0, rng=3)
        seconds.append(process_time() - begin)
        counts.add(report.counts)
    assert len(counts) == 1
    assert not report.refuted
    return min(seconds)


def measure_wide(columns, trials):
    """Print the row of one number of columns and trials, with the memory beyond that of before."""
    pair = dpcore.Pair(np.zeros(columns), np.ones(columns))
    dpcore.audit(add_noise, ([0.0], [1.0]), trials=1_000, claim=1.0, rng=1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    audit = time_audit(pair, trials, 1)
    memory = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    draws = time_draws(pair, trials)
    row = f"| {columns:,} | {trials:,} | {draws:.2f} | {audit:.2f} | {audit / draws:.1f}"
    print(f"{row} | {memory:.0f} |", flush=True)


def record_wide(sizes):
    """Print the table of wide outputs, each row measured by a process of its own."""
    print("| columns | trials | draws, s | audit, s | times the draws | peak memory, MiB |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    for columns, trials in sizes:
        command = [sys.executable, __file__, "wide", f"{columns}x{trials}"]
        subprocess.run(command, check=True)


def main(sizes):
    """Print a row for each number of columns and trials."""
    dpcore.audit(add_noise, ([0.0], [1.0]), trials=1_000, claim=1.0, rng=1)
    print("| columns | trials | draws, s | audit, s | times the draws |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for columns, trials in sizes:
        pair = dpcore.Pair(np.zeros(columns), np.ones(columns))
        audit = time_audit(pair, trials, 7 if columns * trials <= SMALL else 2)
        draws = time_draws(pair, trials)
        row = f"| {columns:,} | {trials:,} | {draws:.3f} | {audit:.3f} | {audit / draws:.1f} |"
        print(row, flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["wide"]:
        for size in arguments[1:]:
            measure_wide(*map(int, size.split("x")))
    else:
        main([tuple(map(int, size.split("x"))) for size in arguments] or SIZES)
        if not arguments:
            record_wide(WIDE)
