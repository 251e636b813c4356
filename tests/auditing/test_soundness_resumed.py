"""Audits at the exact loss that were cut off and resumed overclaim as seldom as others.

2,000 of them: benches/record_runs.py. The controls break one rule each and must fail the same test.
"""

from __future__ import annotations

import pytest
from shared_resumed import (
    allow,
    audit_resumed,
    count_overclaims,
    count_overclaims_of_looks,
    count_overclaims_of_repeated_parts,
    count_overclaims_of_replays,
    replaying,
)
from shared_shards import ONE, add_noise

import dpcore

AUDITS = 200
SEED = 3_400_001


def test_a_resumed_audit_is_the_uninterrupted_one(tmp_path):
    report, cuts = audit_resumed(SEED, tmp_path)
    assert cuts > 0
    assert report.trials == 400


def test_resumed_audits_do_not_overclaim(tmp_path):
    assert count_overclaims(AUDITS, tmp_path, SEED) <= allow(AUDITS)


def test_a_part_that_counts_for_all_overclaims(tmp_path):
    assert count_overclaims_of_repeated_parts(AUDITS, tmp_path, SEED) > allow(AUDITS)


def test_a_mechanism_that_replays_overclaims_and_is_refused(tmp_path):
    assert count_overclaims_of_replays(AUDITS, tmp_path, SEED) > allow(AUDITS)
    # Of numbers, which no chance repeats; of few values, equal blocks are no replay.
    with replaying(1, seen=True), pytest.raises(ValueError, match="drawn anew in every call"):
        dpcore.audit(add_noise, ONE, trials=400, block=50, checkpoint=tmp_path / "run.json")


def test_looks_with_the_bound_for_a_fixed_end_overclaim_and_those_of_the_anytime_bound_do_not():
    fixed, anytime = count_overclaims_of_looks(AUDITS, SEED)
    assert fixed > allow(AUDITS)
    assert anytime <= allow(AUDITS)
