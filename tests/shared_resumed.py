"""Many small audits at the exact loss, cut off and resumed; and rules broken one at a time.

The bound is the conditional one, which for rare events is nearest to its level: Clopper-Pearson's
two limits leave one per cent of overclaims where ten are allowed, so that broken rules would pass.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import astuple
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from scipy import stats
from shared_shards import ONE

import dpcore
from dpcore import Counts, attacks
from dpcore.auditing import run_files
from dpcore.bounds import anytime, conditional
from dpcore.errors import AssumptionWarning
from dpcore.runs import begin_run, count_part, merge_parts
from dpcore.sampling import driver, sources
from dpcore.streams import COUNT

CONFIDENCE, ALPHA = 0.9, 1e-4
TRIALS, BLOCK = 400, 50

EXACT = math.log(2.0)
"""Loss of `answer_rarely`, which answers 1 with probability .05 or .1."""


def answer_rarely(x: Any, size: int, rng: np.random.Generator) -> Any:
    """Answer 1 with a small probability, twice as often on 1 as on 0."""
    return (rng.random((size, 1)) < 0.05 * (1.0 + x[0])).astype(float)


def allow(audits: int) -> int:
    """Return the overclaims that chance allows: P(more | 10 %) < ALPHA."""
    return int(stats.binom.isf(ALPHA, audits, 1.0 - CONFIDENCE))


def _options(seed: int) -> dict[str, Any]:
    return {
        "attack": attacks.MajorityVote(), "trials": TRIALS, "block": BLOCK, "claim": EXACT,
        "confidence": CONFIDENCE, "bound": "conditional", "pilot": 100, "rng": seed,
        "source": False, "progress": False,
    }  # fmt: skip


@contextmanager
def cut_after(shards: int, purpose: int = COUNT) -> Iterator[None]:
    """End an audit, as Ctrl-C does, after so many shards of a purpose, each of one block."""
    original, made = driver.run_shard, itertools.count()

    def draw_shard(draws: Any, work: Any, task: Any) -> Any:
        if task.purpose == purpose and next(made) == shards:
            raise KeyboardInterrupt
        return original(draws, work, task)

    with (
        mock.patch.object(driver, "run_shard", draw_shard),
        mock.patch.object(driver.Pace, "shard_trials", lambda *given: given[3]),
        # A kill of this process itself is not meant.
        mock.patch.object(run_files.os, "fsync"),
    ):
        yield


def audit_resumed(seed: int, folder: Path) -> tuple[dpcore.Audit, int]:
    """Audit at the exact loss, cut off at random points; return how often it was cut off too."""
    rng = np.random.default_rng([seed, 1])
    path, cuts = folder / f"run-{seed}.json", 0
    while True:
        shards = int(rng.integers(0, TRIALS // BLOCK))
        with cut_after(shards):
            try:
                report = dpcore.audit(answer_rarely, ONE, checkpoint=path, **_options(seed))
            except KeyboardInterrupt:
                cuts += 1
                continue
        path.unlink()
        return report, cuts


def count_overclaims(audits: int, folder: Path, seed: int) -> int:
    """Count the bounds above the exact loss, of audits that were cut off and resumed."""
    found = [audit_resumed(seed + number, folder) for number in range(audits)]
    assert sum(cuts for _, cuts in found) > audits // 2
    assert all(report.bound == "conditional" for report, _ in found)
    return sum(report.epsilon_lower > EXACT for report, _ in found)


@contextmanager
def replaying(period: int, seen: bool = False) -> Iterator[None]:
    """Let counted blocks repeat earlier ones; without `seen` the check of that is switched off."""
    original = sources.make_generator

    def make_generator(seed: int, purpose: int, side: int, number: int, *more: int) -> Any:
        return original(seed, purpose, side, number % period if purpose == COUNT else number, *more)

    with (
        warnings.catch_warnings(),
        mock.patch.object(sources, "make_generator", make_generator),
        nullcontext() if seen else mock.patch.object(driver.Source, "check"),
    ):
        # Rows that are repeated eight times are now and then like rows that depend on each other.
        warnings.simplefilter("ignore", AssumptionWarning)
        yield


def count_overclaims_of_replays(audits: int, folder: Path, seed: int) -> int:
    """Count the bounds above the exact loss, of a mechanism that repeats one block."""
    with replaying(1):
        return count_overclaims(audits, folder, seed)


def count_overclaims_of_repeated_parts(audits: int, folder: Path, seed: int) -> int:
    """Count the bounds above the exact loss, where one of eight parts stands for all."""
    found = 0
    for number in range(audits):
        path, out = folder / f"run-{seed + number}.json", folder / "part.json"
        about = _options(seed + number)
        with mock.patch.object(run_files.os, "fsync"):
            begin_run(path, answer_rarely, ONE, **about)
            count_part(path, answer_rarely, ONE, part=(1, 8), out=out, **about)
            part = merge_parts([out], partial=True)
        path.unlink()
        out.unlink()
        counts = Counts(*(8 * value for value in astuple(part.counts)))
        found += conditional(_order(counts, part), 0.0, CONFIDENCE) > EXACT
    return found


def _order(counts: Counts, report: dpcore.Audit) -> Counts:
    """Put the side first that the bound has in its numerator."""
    return counts if report.direction == "x" else counts.swapped()


def count_overclaims_of_looks(audits: int, seed: int) -> tuple[int, int]:
    """Count the audits of which one of forty looks shows a bound above the exact loss.

    Returns:
        With the bound for a fixed number of trials, and with the anytime bound.
    """
    found = [0, 0]
    for number in range(audits):
        report = dpcore.audit(answer_rarely, ONE, **_options(seed + number))
        hits = [report.event(report.outputs(side, 0, TRIALS)).cumsum() for side in ("x", "x_prime")]
        looks = [
            _order(Counts(int(hits[0][n - 1]), n, int(hits[1][n - 1]), n), report)
            for n in np.geomspace(20, report.trials, 40).astype(int).tolist()
        ]
        for place, bound in enumerate((conditional, anytime)):
            found[place] += any(bound(look, 0.0, CONFIDENCE) > EXACT for look in looks)
    return found[0], found[1]
