"""Time default audits by columns and trials, as ratios to their draws: the table of record/fit.md.

Run as ``OPENBLAS_NUM_THREADS=1 python benches/record_fit.py``. Each figure is the least CPU time of
some repetitions, which count the same hits. Wide outputs are audited in processes of their own, for
their peak memory. With ``--tails`` it prints what audits of Gaussian noise certify instead, whose
best thresholds few pilot draws reach.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
from time import process_time

import numpy as np

import dpcore
from dpcore.bounds.canaries import largest_gdp_mu

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
SEEDS, DELTA = 20, 1e-5
STEP = 1.0081
"""Length of a step, in standard deviations of the noise, of which the best threshold is expected to
certify 2.39 with 20,000 draws per side at `DELTA`: the maximum over t of the bound at the expected
counts of ``y >= t``."""


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


def list_tails():
    """Return mechanisms with Gaussian noise, their pairs, trials and the best threshold's bound."""
    rows = []
    for columns in (1, 1_000):
        direction = np.random.default_rng(7).normal(size=columns)
        step = STEP * direction / np.linalg.norm(direction)
        vectors = {"with": step, "without": np.zeros(columns)}

        def add_known(x, size, rng):
            return x + rng.normal(size=(size, len(x)))

        def add_secret(name, size, rng, vectors=vectors):
            return add_known(vectors[name], size, rng)

        rows.append(
            (f"{columns:,} columns, x' - x known", add_known, tuple(vectors.values()), 20_000, 2.39)
        )
        rows.append((f"{columns:,} columns, names", add_secret, tuple(vectors), 20_000, 2.39))
    noise = dpcore.Gaussian(20**0.5 / largest_gdp_mu(1.0, DELTA))
    rows.append(("20 columns, epsilon 1", noise, dpcore.pairs.zeros_ones(20), 10**6, 0.77))
    return rows


def print_tails(seeds):
    """Print a row for each mechanism with Gaussian noise."""
    print("| Gaussian noise | trials | best | median | least | CPU s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, mechanism, pair, trials, best in list_tails():
        bounds, seconds = [], []
        for seed in range(seeds):
            begin = process_time()
            report = dpcore.audit(
                mechanism, pair, trials=trials, claim=9.0, delta=DELTA, rng=seed, progress=False
            )
            seconds.append(process_time() - begin)
            bounds.append(report.epsilon_lower)
        cells = statistics.median(bounds), min(bounds), statistics.median(seconds)
        figures = f"{cells[0]:.2f} | {cells[1]:.2f} | {cells[2]:.2f}"
        print(f"| {name} | {trials:,} | {best} | {figures} |", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--tails"]:
        print_tails(SEEDS)
    elif arguments[:1] == ["wide"]:
        for size in arguments[1:]:
            measure_wide(*map(int, size.split("x")))
    else:
        main([tuple(map(int, size.split("x"))) for size in arguments] or SIZES)
        if not arguments:
            record_wide(WIDE)
