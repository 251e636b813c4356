"""Rows whose law changes while they are drawn, and checks of parts, of threads and of copies."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from shared_rows import UNIT, WIDE, fresh, in_turn, invalid

import dpcore
from dpcore.attacks import MajorityVote
from dpcore.sampling.driver import Pace

# Dispersion.


def drifting(rate):
    def mechanism(x, size, rng):
        """Within a call the noise grows wider in four steps."""
        wide = np.repeat([1.0, 1.0 + rate, 1.0 + 2 * rate, 1.0 + 3 * rate], -(-size // 4))[:size]
        return x[0] + wide * rng.laplace(size=size)

    return mechanism


def moved(x, size, rng):
    """Noise of its own for each row, on top of a shift for each call."""
    return x[0] + 0.3 * rng.laplace() + rng.laplace(size=size)


def moved_wide(x, size, rng):
    outputs = rng.normal(size=(size, 1000))
    outputs[:, 500] += x[500] + rng.normal()
    return outputs


def moved_far(x, size, rng):
    return x[0] + rng.laplace() + rng.laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "pair", "trials", "said"),
    [
        # Whole blocks, a last block of a single row, and one block alone.
        *((drifting(1.0), UNIT, n, "vary more from block to block") for n in (2**19, 2**19 + 1)),
        (drifting(1.0), UNIT, 100_000, "vary more from block to block"),
        *((moved, UNIT, trials, "") for trials in (2**19, 2**19 + 1)),
        # Blocks of 131 rows of a thousand columns: too few hits in each by itself.
        (moved_wide, WIDE, 4000, ""),
        # Three calls a side, each with a shift of its own: inside none of them does it show.
        (moved_far, UNIT, 50_000, "outputs vary more from call to call"),
    ],
)
def test_what_changes_within_a_call_or_between_calls_is_told(mechanism, pair, trials, said):
    assert any(said in one for one in invalid(mechanism, pair, trials=trials, rng=1).checks)


# Merging.


PART = {"trials": 4096, "block": 4096, "attack": MajorityVote(), "rng": 1}


def test_checks_of_a_part_stay_in_the_whole():
    parts = [invalid(in_turn, start=start, **PART) for start in (0, 4096)]
    both = parts[0] + parts[1]
    assert both.checks == tuple(dict.fromkeys(parts[0].checks + parts[1].checks))
    assert (both.refuted, both.epsilon_lower) == (None, 0.0)
    assert both.verdict.startswith("invalid: ")
    assert dpcore.Audit.from_json(both.to_json()).refuted is None


def test_parts_that_contradict_each_other_are_no_verdict():
    """One call each: only together they show that a shift is shared by all rows of a call."""
    parts = [dpcore.audit(moved, UNIT, claim=9.0, start=4096 * i, **PART) for i in range(8)]
    assert not any(part.checks for part in parts)
    both = sum(parts[1:], parts[0])
    assert both.refuted is None
    assert "vary more from audit to audit" in both.checks[0]
    clean = [dpcore.audit(fresh, UNIT, claim=9.0, start=4096 * i, **PART) for i in range(8)]
    assert sum(clean[1:], clean[0]).checks == ()


# Who counts, and when.


def test_threads_and_slices_change_nothing():
    options = {"trials": 20_000, "block": 1000, "rng": 1}
    alone = invalid(in_turn, **options)
    assert invalid(in_turn, threads=2, **options).checks == alone.checks
    with ThreadPoolExecutor(2) as pool:
        assert invalid(in_turn, executor=pool, **options).checks == alone.checks


def test_the_compiled_core_is_not_looked_at():
    assert dpcore.audit(dpcore.Laplace(1.0), UNIT, claim=1.0, trials=10**4, rng=1).checks == ()


def test_what_a_block_says_travels():
    from dpcore.sampling.rows import Evidence

    rows = np.random.default_rng(1).laplace(size=1000)
    seen = Evidence.of_answers(rows, 0, 0, rows > 0)
    again = pickle.loads(pickle.dumps(seen))
    assert (again.pieces.sums, again.pieces.single) == (seen.pieces.sums, seen.pieces.single)
    np.testing.assert_array_equal(again.near, seen.near)


def test_an_interrupted_audit_is_looked_at_too(monkeypatch):
    calls = []
    # A block a shard: the one that is interrupted is lost.
    monkeypatch.setattr(Pace, "shard_trials", lambda pace, left, workers, block, travels: block)

    def stopped(x, size, rng):
        calls.append(size)
        if calls.count(500) > 20:
            raise KeyboardInterrupt
        return in_turn(x, size, rng)

    options = {"trials": 10**6, "block": 500, "pilot": 600, "attack": MajorityVote(), "rng": 1}
    assert invalid(stopped, **options).partial
