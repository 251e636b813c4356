"""Audits of disjoint trials added together, and what each part may hold."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from shared_messages import check_messages

import dpcore
from dpcore import Audit, Counts, Laplace, Pair, audit
from dpcore.attacks import Coordinatewise, MajorityVote
from dpcore.bounds import clopper_pearson
from dpcore.results.evidence import Finding
from dpcore.results.need import trials_to_refute


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, 1))


STEP = {"pair": ([0.0], [1.0]), "trials": 1000, "block": 100, "rng": 1, "attack": MajorityVote()}
FIRST = audit(noisy, claim=1.0, **STEP)
SECOND = audit(noisy, claim=1.0, start=1000, **STEP)
OTHER_EVENT = dpcore.events.Vote.between(Pair([0.0], [3.0]))


def test_addition():
    both = FIRST + SECOND
    assert both.counts == FIRST.counts + SECOND.counts
    assert (both.seconds, both) == (FIRST.seconds + SECOND.seconds, SECOND + FIRST)
    assert sum([SECOND], FIRST) == both
    drawn = np.concatenate([a.outputs("x", a.ranges[0][0], 1000) for a in (FIRST, SECOND)])
    np.testing.assert_array_equal(both.outputs("x", 0, 2000), drawn)


@pytest.mark.parametrize("start", [0, 100, 900])
def test_addition_refuses_trials_counted_twice(start):
    overlapping = audit(noisy, claim=1.0, start=start, **STEP)
    text = f"trials of the second audit must be disjoint from ((0, 1000),), got (({start}, "
    with pytest.raises(ValueError, match=f"^{re.escape(text)}"):
        FIRST + replace(overlapping, event=FIRST.event, direction=FIRST.direction)


def test_a_short_last_block_stays_last():
    """A callable's short block is no prefix of the whole one, so nothing may follow it."""
    short = audit(noisy, claim=1.0, **STEP | {"trials": 1050})
    later = audit(noisy, claim=1.0, start=1100, **STEP)
    later = replace(later, event=short.event, direction=short.direction)
    with pytest.raises(ValueError, match=r"^end of a range of trials must be a multiple of block"):
        short + later
    native = audit(Laplace(1.0), claim=1.0, **STEP | {"trials": 1050})
    follow = audit(Laplace(1.0), claim=1.0, start=1050, **STEP)
    assert (native + replace(follow, event=native.event, direction=native.direction)).trials == 2050


# Addition of what an audit of the default attack holds beside its counts.


def parts(*sizes, attack=None):
    """Audits of consecutive trials of one event, as pilots of equal size would have chosen it."""
    found, start = [], 0
    for size in sizes:
        arguments = STEP | {"trials": size, "start": start, "attack": attack}
        found.append(audit(Laplace(1.0), claim=1.0, **arguments))
        start += size
    first = found[0]
    return [replace(one, event=first.event, direction=first.direction) for one in found]


def test_curves_add_up():
    first, second = parts(1000, 1000)
    both = first + second
    assert both == second + first
    np.testing.assert_array_equal(both.curve.k, first.curve.k + second.curve.k)
    assert both.curve.n == both.curve.n_prime == 2000


def test_of_curves_at_different_thresholds_the_earlier_is_kept():
    """Audits of very different sizes may choose one event, but not the same thresholds."""
    first, second = parts(1000, 4000)
    assert first.curve.thresholds.tolist() != second.curve.thresholds.tolist()
    for both in (first + second, second + first):
        assert (both.counts, both.curve) == (first.counts + second.counts, first.curve)


def test_findings_of_one_event_add_up_and_of_two_the_earlier_is_kept():
    first, second = parts(1000, 1000)
    found = Finding(first.event, "x", Counts(5, 100, 1, 100), 0.0, 0.95)
    other = replace(found, event=OTHER_EVENT)
    first, again = (replace(one, floating_point=found) for one in (first, second))
    both = first + again
    assert both == again + first
    assert both.floating_point == replace(found, counts=Counts(10, 200, 2, 200))
    unlike = replace(second, floating_point=other)
    assert (first + unlike).floating_point == (unlike + first).floating_point == found
    without = replace(second, floating_point=None)
    assert (first + without).floating_point == (without + first).floating_point == found


def test_a_merge_after_looking_has_the_anytime_bound():
    first, second, third = parts(1000, 1000, 1000, attack=MajorityVote())
    fixed, looked = first + second, first.merge(second, looked=True)
    assert (fixed.bound, fixed.stop) == ("clopper_pearson", "fixed")
    assert (looked.bound, looked.stop, looked.counts) == ("anytime", "looked", fixed.counts)
    assert looked.epsilon_lower == dpcore.bounds.anytime(looked.bound_counts, 0.0, 0.95)
    assert 0.0 < looked.epsilon_lower < fixed.epsilon_lower
    # Once looked, always looked: a third part does not bring the fixed bound back.
    for all_three in (looked + third, third + looked):
        assert (all_three.bound, all_three.stop) == ("anytime", "looked")
    assert Audit.from_json(looked.to_json()) == looked


def test_a_finding_that_counts_has_the_anytime_bound_too_after_looking():
    found = Finding(OTHER_EVENT, "x_prime", Counts(1, 900, 70, 900), 0.0, 0.95)
    both = parts(1000, 1000, attack=MajorityVote())
    first, second = (replace(one, floats=True, floating_point=found) for one in both)
    # Alpha is halved, for two bounds that are to hold at once.
    seen = Counts(140, 1800, 2, 1800)
    fixed, looked = first + second, first.merge(second, looked=True)
    assert fixed.epsilon_lower == dpcore.bounds.clopper_pearson(seen, 0.0, 0.975)
    assert looked.epsilon_lower == dpcore.bounds.anytime(seen, 0.0, 0.975) < fixed.epsilon_lower


def test_pooled_coordinates_add_up_unless_somebody_looked():
    arguments = {"trials": 1000, "rng": 1, "attack": Coordinatewise(), "claim": 1.0}
    pair = dpcore.pairs.zeros_ones(3)
    first, second = (audit(Laplace(1.0), pair, start=start, **arguments) for start in (0, 1000))
    both = first + second
    assert (both.pooled, both.pooled[0].n) == ((first.pooled[0] + second.pooled[0],), 6000)
    looked = first.merge(second, looked=True)
    assert (looked.pooled, looked.counts) == ((), both.counts)
    assert looked.epsilon_lower == dpcore.bounds.anytime(looked.bound_counts, 0.0, 0.95)


def test_audits_with_early_stop_do_not_add_up():
    early = audit(noisy, ([0.0], [1.0]), claim=9.0, trials=1000, rng=1, stop="refuted", block=100)
    later = replace(early, ranges=((1000, 2000),))
    with pytest.raises(ValueError, match=r"^audits must be without early stop, to be added, got "):
        early + later


# Messages of wrong calls of `dpcore.results`: the argument, and a word of the remedy.


VALUE_ERRORS = [
    (lambda: FIRST + replace(SECOND, mechanism=Laplace(1.0)), "mechanism of the second audit",
     "<function noisy"),
    (lambda: FIRST + replace(SECOND, pair=Pair([0.0], [2.0])), "pair of the second audit",
     "Pair(x=[0.0]"),
    (lambda: FIRST + replace(SECOND, attack="mine"), "attack of the second audit",
     "'MajorityVote' as in the first"),
    (lambda: FIRST + replace(SECOND, event=OTHER_EVENT), "event of the second audit",
     "Vote(threshold=array([0.5])"),
    (lambda: FIRST + replace(SECOND, direction=None), "direction of the second audit", "'x_prime"),
    (lambda: FIRST + replace(SECOND, seed=2), "seed of the second audit", "1 as in the first"),
    (lambda: FIRST + replace(SECOND, block=50), "block of the second audit", "100 as in the first"),
    (lambda: FIRST + replace(SECOND, claim=2.0), "claim of the second audit", "1.0 as"),
    (lambda: FIRST + replace(SECOND, delta=0.1), "delta of the second audit", "0.0 as"),
    (lambda: FIRST + replace(SECOND, confidence=0.9), "confidence of the second audit", "0.95 as"),
    (lambda: FIRST + replace(SECOND, shape=()), "shape of the second audit", "1,) as"),
    (lambda: FIRST + replace(SECOND, floats=True), "floats of the second audit", "False as"),
    (lambda: FIRST + replace(SECOND, bound="exact"), "bound of the second audit", "'clopper_pears"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: FIRST + 1, "", "unsupported operand"),
    (lambda: FIRST + FIRST.counts, "", "unsupported operand"),
    (lambda: FIRST.merge(1), "other", "an Audit, got 1"),
    (lambda: FIRST.merge(SECOND, looked=1), "looked", "a bool, got 1"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


# What a claim that stands would need.

SEEN = replace(
    dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1, confidence=0.99),
    direction="x",
)


@pytest.mark.parametrize(("counts", "claim", "delta", "distance"), [
    (Counts(600, 1000, 300, 1000), 0.6, 0.0, 1.0),
    (Counts(600, 1000, 300, 1000), 0.6, 0.05, 1.0),
    (Counts(600, 1000, 300, 1000), 0.3, 0.0, 2.0),
    (Counts(600, 1000, 0, 1000), 6.0, 0.0, 1.0),
    (Counts(999, 1000, 4, 2000), 6.0, 0.0, 1.0),
])  # fmt: skip
def test_trials_needed(counts, claim, delta, distance):
    pair = Pair([0.0], [1.0], distance)
    found = replace(SEEN, counts=counts, claim=claim, delta=delta, pair=pair)
    needed = trials_to_refute(found)

    def refuted(trials):
        # k down and k' up: never more evidence than the frequencies hold.
        k, k_prime = counts.k * trials // counts.n, -(-counts.k_prime * trials // counts.n_prime)
        return clopper_pearson(Counts(k, trials, k_prime, trials), delta, 0.99) > claim * distance

    assert refuted(needed)
    assert not refuted(int(0.9 * needed))
    assert trials_to_refute(replace(found, counts=counts.swapped(), direction="x_prime")) == needed


@pytest.mark.parametrize(("counts", "claim", "delta"), [
    (Counts(600, 1000, 300, 1000), 0.7, 0.0),
    (Counts(300, 1000, 600, 1000), 0.0, 0.0),
    (Counts(600, 1000, 300, 1000), 0.6, 0.2),
    (Counts(0, 1000, 300, 1000), 0.0, 0.0),
    (Counts(600, 1000, 0, 1000), 40.0, 0.0),
])  # fmt: skip
def test_no_number_of_trials_is_enough(counts, claim, delta):
    assert trials_to_refute(replace(SEEN, counts=counts, claim=claim, delta=delta)) is None
