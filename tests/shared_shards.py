"""Audits of every kind, and workers that draw their shards in many ways.

The mechanisms are functions of this module, which other processes import.
"""

from __future__ import annotations

import os
import sys
import time
from dataclasses import fields
from typing import Any

import numpy as np

import dpcore
from dpcore import Laplace, Pair, attacks
from dpcore.sampling.driver import Done, Shard, Source, run_shards
from dpcore.sampling.replay import MOST_FOLLOWED
from dpcore.sampling.rows import IndependenceSums, Pieces
from dpcore.sampling.sources import CallableDraws
from dpcore.sampling.tally import Tally
from dpcore.sampling.workers import Workers
from dpcore.streams import COUNT


def add_noise(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


OTHER_BITS = float(os.environ.get("DPCORE_OTHER_BITS", "0"))
"""Number that outputs of `round_otherwise` are moved by, in a process that was told so."""


def round_otherwise(x, size, rng):
    """Add noise; on another CPU, which a process stands for, the last bits differ."""
    return add_noise(x, size, rng) + OTHER_BITS


class LargeMechanism:
    """Adds noise, and holds a megabyte."""

    def __init__(self):
        self.weights = np.arange(2**17, dtype=float)

    def __call__(self, x, size, rng):
        return add_noise(x, size, rng) + 0.0 * self.weights[0]


def release_sums(x, size, rng):
    """Words and numbers of changing length."""
    lengths = rng.integers(1, 4, size) + (rng.random(size) < 0.3 + 0.2 * x[0])
    return [("a",) * int(length) for length in lengths]


def release_one(x, rng):
    return x[0] + rng.laplace()


def release_sparse(x, size, rng):
    """Some entries are NaN."""
    noisy = x + rng.laplace(scale=0.5, size=(size, len(x)))
    return np.where(rng.random((size, 1)) < 0.1, np.nan, noisy)


ONE = Pair(np.zeros(1), np.ones(1))
FOUR = Pair(np.zeros(4), np.ones(4))

# fmt: off
KINDS: dict[str, tuple[Any, Pair, dict[str, Any]]] = {
    "native vote": (Laplace(1.0), ONE, {"attack": attacks.MajorityVote()}),
    "native scores": (Laplace(1.0), ONE, {}),
    "callable": (add_noise, ONE, {"floats": True}),
    "sparse": (release_sparse, ONE, {"attack": attacks.Threshold()}),
    "coordinatewise": (add_noise, FOUR, {"attack": attacks.Coordinatewise()}),
    "one answer": (
        dpcore.repeat(release_one, thread_safe=True),
        ONE,
        {"attack": attacks.Threshold()},
    ),
    "objects": (release_sums, ONE, {}),
    "early stop": (add_noise, ONE, {"stop": "refuted", "attack": attacks.Threshold()}),
}
# fmt: on
"""A mechanism, a pair and options of each kind of audit."""

TRIALS, BLOCK = 3200, 128


def audit_kind(kind: str, **options: Any) -> Any:
    """Audit one of the kinds, in blocks of 128 trials, of which the last is shorter."""
    mechanism, pair, given = KINDS[kind]
    usual = {"trials": TRIALS - 50, "block": BLOCK, "rng": 3, "claim": 0.9, "pilot": 600}
    usual |= {"progress": False, **given, **options}
    return dpcore.audit(mechanism, pair, **usual)


_TIMES = ("threads", "seconds", "spent", "provenance")
"""Fields that say how long a run took, and on what machine."""


def list_differences(report: Any, whole: Any, without: tuple[str, ...] = ()) -> list[str]:
    """List the fields in which two audits differ, but for those that say how the run went."""
    plain, other = (one.to_dict() for one in (report, whole))
    names = [one.name for one in fields(whole) if one.name not in (*_TIMES, *without)]
    both = [(name, plain.get(name), other.get(name)) for name in names]
    found = [f"{name}: {a} and {b}" for name, a, b in both if a != b]
    counted = ("counts", "checks", "digests", "ranges", "curve", "pooled", "floating_point")
    direct = (name for name in counted if name not in without)
    return found + [n for n in direct if getattr(report, n) != getattr(whole, n)]


class ShuffledWorkers(Workers):
    """Workers in this process whose shards come back in random order, a few at a time."""

    def __init__(self, seed: int, depth: int = 7) -> None:
        self._rng, self._depth = np.random.default_rng(seed), depth

    @property
    def max_tasks(self) -> int:
        return self._depth

    def wait_for_any(self, handles):
        return [handles[number] for number in self._rng.permutation(len(handles))[:2]]


class MadeUpWorkers(Workers):
    """Workers that draw nothing: counts, evidence and digests are made up.

    `seconds` is the CPU time of making them up.
    """

    travels = True
    count = 8

    def __init__(self, block: int, seed: int = 1) -> None:
        self._block, self._rng = block, np.random.default_rng(seed)
        self._hits = self._rng.binomial(block, 0.25, 1000).tolist()
        self.seconds = 0.0

    @property
    def max_tasks(self) -> int:
        return 16

    def submit(self, function, draws, work, task):
        return task

    def wait_for_any(self, handles):
        return [handles[self._rng.integers(len(handles))]]

    def result(self, task):
        begun = time.process_time()
        numbers = range(task.first // self._block, task.end // self._block)
        sides = []
        for side in (0, 1):
            pieces, total = Pieces(), 0
            for number in numbers:
                hits = self._hits[(2 * number + side) % len(self._hits)]
                total += hits
                pieces += Pieces.of_block(number, (0, self._block), (hits,))
            trials = len(numbers) * self._block
            sides.append(Tally(trials, (total,), evidence=IndependenceSums(pieces)))
        shard = Shard(task.first, task.end, (sides[0], sides[1]), seconds=0.02 * len(numbers))
        limit = 1 << (64 - task.zeros)
        for number in numbers:
            digest = self._rng.bytes(16)
            if number >= MOST_FOLLOWED and int.from_bytes(digest[:8], "big") < limit:
                shard.digests.append((digest, 0, number))
        self.seconds += time.process_time() - begun
        return shard

    def cancel(self, handles):
        pass


def count_made_up(blocks: int, block: int = 1000) -> tuple[float, Done]:
    """Count made-up results: CPU seconds of the driver, and what is done."""
    draws = CallableDraws(add_noise, ONE, 1, block, (1,))
    source, workers = Source(draws, 1, blocks * block), MadeUpWorkers(block)
    begun, done = time.process_time(), Done()
    for shard in run_shards(source, workers, None, COUNT, [(0, blocks * block)]):
        done = done.add_shard(shard)
    return time.process_time() - begun - workers.seconds, done


def measure_driver(blocks: int) -> None:
    """Print the driver's CPU seconds and the growth of this process in bytes, after a tenth."""
    import resource

    few, _ = count_made_up(blocks // 10)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    many, _ = count_made_up(blocks)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(few, many, grown * (1 if sys.platform == "darwin" else 1024))


if __name__ == "__main__":
    measure_driver(int(sys.argv[1]))
