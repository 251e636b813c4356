"""Audits of disjoint trials added together, and what each part may hold."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from shared_results import FIRST, OTHER_EVENT, SECOND, STEP, noisy

import dpcore
from dpcore import Audit, Counts, Laplace, audit
from dpcore.attacks import Coordinatewise, MajorityVote
from dpcore.results.evidence import Finding


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
    with pytest.raises(TypeError, match=r"^other must be an Audit, got 1$"):
        first.merge(1)
    with pytest.raises(TypeError, match=r"^looked must be a bool, got 1$"):
        first.merge(second, looked=1)


def test_a_finding_that_counts_has_the_anytime_bound_too_after_looking():
    found = Finding(OTHER_EVENT, "x_prime", Counts(1, 900, 70, 900), 0.0, 0.95)
    first, second = (
        replace(one, floats=True, floating_point=found)
        for one in parts(1000, 1000, attack=MajorityVote())
    )
    # Alpha is halved, for two bounds that are to hold at once.
    seen = Counts(140, 1800, 2, 1800)
    fixed, looked = first + second, first.merge(second, looked=True)
    assert fixed.epsilon_lower == dpcore.bounds.clopper_pearson(seen, 0.0, 0.975)
    assert looked.epsilon_lower == dpcore.bounds.anytime(seen, 0.0, 0.975) < fixed.epsilon_lower


def test_pooled_coordinates_add_up_unless_somebody_looked():
    arguments = {"trials": 1000, "rng": 1, "attack": Coordinatewise()}
    pair = dpcore.pairs.zeros_ones(3)
    first, second = (
        audit(Laplace(1.0), pair, claim=1.0, start=start, **arguments) for start in (0, 1000)
    )
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
