"""Verdicts: claims that no trials can refute, outputs that never differ, the finding that won."""

from __future__ import annotations

import json
import math
import os
import warnings

import numpy as np
import pytest
from shared_audits import EVERY_NATIVE, respond

import dpcore
from dpcore import audit, audit_outputs, bounds, claims, command, pairs, published, repeat
from dpcore.attacks import Coordinatewise, Timing
from dpcore.cli import main
from dpcore.results.audit_text import list_report_rows_without_time
from dpcore.sampling.columns import pilot_anomalies

P = ([0.0], [1.0])
CURVE = claims.TradeOff(epsilons=[9.0], deltas=[0.0])


def copy(x, size, rng):
    return np.broadcast_to(x, (size, len(x))).copy()


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def leave(*sides):
    """Recorded rows that were put into order afterwards."""
    return {"outputs": sides[0], "outputs_prime": sides[1], "rows": "independent", "rng": 1}


# Claims that are out of reach.

LIVE = {
    "clopper_pearson": ({"bound": "clopper_pearson"}, 6.0),
    "exact": ({"bound": "exact"}, 6.0),
    "conditional": ({"bound": "conditional"}, 6.0),
    "anytime": ({"bound": "anytime"}, 6.0),
    "delta": ({"delta": 0.01}, 6.0),
    "early stop": ({"stop": "refuted"}, 6.0),
    "rounding": ({"floats": True}, 6.0),
    "GDP": ({"claim": claims.GDP(7.0)}, None),
    "zCDP": ({"claim": claims.ZCDP(14.0)}, None),
    "curve": ({"claim": CURVE}, None),
    "GDP, anytime": ({"claim": claims.GDP(7.0), "bound": "anytime"}, None),
}


@pytest.mark.parametrize(("options", "claim"), LIVE.values(), ids=LIVE)
def test_a_claim_out_of_reach_is_undecided_and_more_trials_reach_it(options, claim):
    options = {"claim": claim, **options}
    report = audit(copy, P, trials=500, rng=1, **options)
    assert report.verdict.startswith("undecided: 500 trials ")
    assert report.refuted is None
    assert report.epsilon_lower <= report.ceiling
    assert dict(list_report_rows_without_time(report))["needed"].startswith("at least ")
    enough = report.trials_to_reach
    # A curve is tested by its tangent where the bound is anytime: another tangent suits more.
    if "anytime" not in options.values() or claim is not None:
        assert audit(copy, P, trials=2 * enough, rng=1, **options).refuted
    few = audit(copy, P, trials=int(0.8 * enough), rng=1, **options)
    assert few.undecided
    # The twin: within reach, and not refuted.
    within = audit(noisy, P, trials=2 * enough, rng=1, **options)
    assert (within.refuted, within.undecided) == (False, "")


def test_the_default_audit_of_a_copy_certifies_what_the_verdict_says():
    report = audit(copy, P, claim=12.0, trials=10**5, rng=1)
    assert report.verdict == "undecided: 100,000 trials certify at most 10.2"
    assert report.epsilon_lower == report.ceiling
    assert f"{report.ceiling:.4f}" in dict(list_report_rows_without_time(report))["reach"]


def test_a_ceiling_is_per_unit_of_distance_and_of_all_coordinates():
    far = audit(copy, dpcore.Pair([0.0], [4.0], 4.0), claim=3.0, trials=1000, rng=1)
    near = audit(copy, P, claim=3.0, trials=1000, rng=1)
    assert far.ceiling == near.ceiling / 4.0
    assert (far.undecided, near.refuted) == ("1,000 trials certify at most 1.4", True)
    eight = pairs.zeros_ones(8)
    pooled = audit(dpcore.Laplace(0.5), eight, claim=20.0, attack=Coordinatewise(), rng=1)
    single = audit(dpcore.Laplace(0.5), eight, claim=20.0, rng=1)
    assert pooled.ceiling > 90.0 > 13.0 > single.ceiling
    assert (pooled.undecided, bool(single.undecided)) == ("", True)
    assert 'attack="coordinatewise"' in dict(list_report_rows_without_time(single))["needed"]


def test_a_timed_audit_counts_calls():
    report = audit(noisy, P, claim=9.0, trials=300, attack=Timing(), rng=1)
    assert report.undecided.startswith("600 calls certify at most ")
    assert audit(noisy, P, claim=1.0, trials=300, attack=Timing(), rng=1).refuted is not None


def test_recorded_rows_groups_and_guesses_have_a_ceiling():
    rows = leave(np.zeros(1000), np.ones(600))
    assert audit_outputs(**rows, claim=9.0).verdict.startswith(
        "undecided: 500 and 300 counted rows certify at most "
    )
    scores = {"outputs": np.arange(40.0) + 40.0, "outputs_prime": np.arange(40.0), "rng": 1}
    guessed = audit_outputs(**scores, rows="one_run", claim=9.0, delta=1e-5)
    assert guessed.undecided.startswith("80 guesses certify at most ")
    assert audit_outputs(**scores, rows="one_run", claim=0.5).undecided == ""
    groups = np.repeat(np.arange(40), 25)
    report = audit_outputs(
        **leave(np.zeros(1000), np.ones(1000)), claim=5.0, groups=groups, groups_prime=groups + 40
    )
    assert report.undecided.startswith("20 and 20 counted groups certify at most ")
    assert report.ceiling == report.epsilon_lower


def test_default_trials_rise_with_the_claim_where_outputs_are_fast_to_make():
    native = audit(dpcore.Laplace(0.1), P, claim=13.0, rng=1)
    assert native.trials > 10**6
    assert math.isclose(native.ceiling, 13.5, abs_tol=1e-4)
    assert any("since the default of 1,000,000 cannot refute" in note for note in native.notes)
    # Too many for a function of blocks, for one of single answers, and for anything.
    for mechanism, claim in ((noisy, 13.0), (dpcore.Laplace(0.1), 40.0)):
        report = audit(mechanism, P, claim=claim, rng=1)
        assert (report.trials, bool(report.undecided)) == (10**6, True)
    assert audit(dpcore.Laplace(0.1), P, claim=13.0, trials=10**6, rng=1).undecided


def test_an_invalid_audit_is_not_undecided():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit_outputs(**leave(np.arange(400.0) // 4, np.arange(400.0) // 4), claim=20.0)
    assert report.verdict.startswith("invalid: ")
    assert (report.undecided, report.refuted) == ("", None)


# The two sides of the pilot.


@pytest.mark.parametrize(
    ("mechanism", "common"),
    [
        (copy, False),
        (noisy, True),
        (repeat(lambda x, rng: "ab"[int(x[0])]), False),
        (lambda x, size, rng: 2 * rng.integers(0, 9, (size, 1)) + x.astype(int), False),
        (lambda x, size, rng: rng.random((size, 1)), True),
        (lambda x, size, rng: rng.random((size, 3)) * np.array([1, 1, 0.1]) + x, False),
    ],
)
def test_sides_without_a_common_output_are_named(mechanism, common):
    report = audit(mechanism, P, claim=1.0, trials=3000, rng=1)
    sentence = "in the pilot the two sides had no output in common"
    assert (sentence in report.notes) is not common


# Outputs that never differ.

SAME = {
    "a number": (repeat(lambda x: 3.0), "3.0"),
    "rows": (lambda x, size, rng: np.full((size, 2), 3), "[3, 3]"),
    "NaN": (lambda x, size, rng: x * np.nan + rng.laplace(size=(size, 1)), "NaN"),
    "a text": (repeat(lambda x: "ab"), "'ab'"),
    "objects": (repeat(lambda x: {"a": [1, None]}), "{'a': [1, None]}"),
    "None": (repeat(lambda x: None), "None"),
    "fixed seed": (
        repeat(lambda x: np.random.default_rng(1).integers(0, 9)),
        str(np.random.default_rng(1).integers(0, 9)),
    ),
}


@pytest.mark.parametrize("options", [{}, {"stop": "refuted"}])
@pytest.mark.parametrize(("mechanism", "value"), SAME.values(), ids=SAME)
def test_one_value_on_both_sides_decides_nothing(mechanism, value, options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = audit(mechanism, P, claim=1.0, trials=2000, rng=1, **options)
    assert f"pilot outputs per side were {value} (is the noise missing, a seed fixed" in (
        report.verdict
    )
    assert report.verdict.startswith("undecided: all ")
    assert report.refuted is None
    assert "own randomness" not in str(report)
    assert "on this one no output differed" in dict(list_report_rows_without_time(report))["needed"]
    null = audit(mechanism, (P[0], P[0]), claim=1.0, trials=2000, rng=1, null=True, **options)
    assert null.undecided == ""


def test_one_value_decides_nothing_for_a_vote():
    report = audit(SAME["a number"][0], P, claim=1.0, trials=2000, rng=1, attack="majority-vote")
    assert report.verdict.startswith("undecided: all 16 pilot outputs per side were 3.0 (")


def test_one_recorded_value_decides_nothing_and_a_rare_one_does():
    same = audit_outputs(**leave(np.full(4000, 3.0), np.full(4000, 3.0)), claim=1.0)
    assert same.verdict.startswith("undecided: all 2,000 pilot outputs per side were 3.0 (")
    rare = np.full(4000, 3.0)
    rare[:40] = 4.0
    mixed = audit_outputs(**leave(rare, np.full(4000, 3.0)), claim=1.0, arranged=True)
    assert (mixed.undecided, mixed.refuted) == ("", False)


def test_parts_without_noise_are_named():
    def release(x, size, rng):
        outputs = rng.laplace(size=(size, 4)) + x
        outputs[:, 1], outputs[:, 2], outputs[:, 3] = 0.0, x[2], 7.0
        return outputs

    report = audit(release, ([0.0, 0.0, 0.0, 1.0], [0.0, 1.0, 1.0, 1.0]), claim=1.0, trials=3000)
    named = [note for note in report.notes if "entry" in note]
    assert named == [
        "entry 1 was 0.0 in all pilot outputs",
        "entry 2 is always 0.0 on x and always 1.0 on x': no noise",
    ]
    keys = repeat(lambda x, rng: {"n": int(x[0]), "y": x[0] + rng.laplace()})
    notes = audit(keys, P, claim=1.0, trials=3000, rng=1).notes
    assert "key 'n' is always 0 on x and always 1 on x': no noise" in notes


def test_sound_noise_that_hardly_ever_shows_is_not_called_missing():
    # Of 2,048 pilot outputs per side none need be flipped at a claim of 9.
    def respond(x, size, rng):
        return (rng.random((size, 1)) < 1.0 / (1.0 + math.exp(9.0))) != (x > 0.5)

    for seed in range(5):
        report = audit(respond, P, claim=9.0, trials=20_000, rng=seed)
        assert not any("no noise" in note for note in report.notes)
        assert report.refuted is not True


def test_sides_of_different_types_are_not_one_value():
    sides = np.full(100, 3.0 + 1.0j), np.full(100, 3.0)
    assert pilot_anomalies(sides, dpcore.Pair(0.0, 1.0), 1.0, 0.0).constant == ""
    same = pilot_anomalies((sides[1], sides[1]), dpcore.Pair(0.0, 1.0), 1.0, 0.0)
    assert same.constant.startswith("all 100 pilot outputs per side were 3.0 (")


def test_files_that_cannot_be_written_or_read_are_named(tmp_path):
    report = audit(dpcore.Laplace(1.0), claim=1.0, trials=100, rng=1)
    missing = tmp_path / "none" / "a.json"
    for call, purpose in ((report.save, "written"), (report.to_html, "written"),
                          (type(report).load, "read")):  # fmt: skip
        with pytest.raises(
            FileNotFoundError, match=f"path must be a file that can be {purpose}"
        ) as info:
            call(missing)
        assert info.value.filename == str(missing)
        with pytest.raises(TypeError, match=r"path must be the path of a file, got 3\.5"):
            call(3.5)


# The command line and the fixture.


def test_an_undecided_audit_ends_with_status_3(tmp_path, capsys):
    file = tmp_path / "mech.py"
    file.write_text("def copy(x, size, rng):\n    return x.repeat(size)[:, None]\n")
    line = ["audit", f"{file}:copy", "--x", "0", "--x-prime", "1", "--trials", "1000"]
    assert main([*line, "--claim", "9", "--json"]) == 3
    record = json.loads(capsys.readouterr().out)
    assert record["derived"]["verdict"].startswith("undecided: 1,000 trials certify at most 5.6")
    assert main([*line, "--claim", "1"]) == 1
    run = str(tmp_path / "run.json")
    assert main([*line, "--claim", "9", "--checkpoint", run, "--fit-only"]) == 0
    assert (
        main(["count", run, f"{file}:copy", "--part", "1/1", "--out", str(tmp_path / "part.json")])
        == 0
    )
    assert main(["merge", str(tmp_path / "part.json")]) == 3
    for name, value in (("a", "0"), ("b", "1")):
        (tmp_path / f"{name}.csv").write_text("y\n" + f"{value}\n" * 100)
    files = [str(tmp_path / f"{name}.csv") for name in "ab"]
    assert main(["audit-outputs", *files, "--rows", "independent", "--claim", "9"]) == 3


def test_the_fixture_fails_where_nothing_was_tested(dp_audit):
    message = (
        r"was not tested: undecided: 100,000 trials certify at most 9\.22; it takes at least "
        r"220,000 trials on each side, or a smaller claim"
    )
    with pytest.raises(pytest.fail.Exception, match=message):
        dp_audit(copy, P, claim=10.0, trials=10**5)
    # By default there are as many trials as the claim needs.
    with pytest.raises(pytest.fail.Exception, match="is refuted"):
        dp_audit(copy, P, claim=10.0)
    with pytest.raises(pytest.fail.Exception, match="no machine draws"):
        dp_audit(copy, P, claim=50.0)
    with pytest.raises(pytest.fail.Exception, match="was not tested: undecided: all "):
        dp_audit(repeat(lambda x: 3.0), P, claim=1.0)
    with pytest.raises(pytest.fail.Exception, match="was not tested: undecided: "):
        dp_audit.outputs(**leave(np.zeros(100), np.ones(100)), claim=9.0)


# A certificate that can be checked: the bound follows from the counts that are reported.


@pytest.mark.parametrize("bound", bounds.BOUNDS)
@pytest.mark.parametrize("floats", [False, True])
def test_the_bound_follows_from_the_reported_counts(bound, floats):
    report = audit(dpcore.Laplace(1.0), claim=1.0, trials=20_000, rng=1, bound=bound, floats=floats)
    level = 0.975 if floats else 0.95
    assert report.epsilon_lower == bounds.BOUNDS[bound](report.bound_counts, 0.0, level)
    assert report.rounding_won is floats
    assert report.epsilon_lower > (5.0 if floats else 0.9)
    hits = [int(report.event(report.outputs(side, 0, 20_000)).sum()) for side in ("x", "x_prime")]
    assert hits == [report.counts.k, report.counts.k_prime]
    assert type(report).from_json(report.to_json()) == report


def test_audits_with_different_winners_are_merged():
    def run(start, trials):
        return audit(
            dpcore.Laplace(3000.0), ([0.0], [1000.0]), claim=0.2, trials=trials, start=start,
            pilot=2**15, rng=1, floats=True,
        )  # fmt: skip

    parts = run(0, 2**17), run(2**17, 2**17)
    both = parts[0] + parts[1]
    assert both.trials == 2**18
    assert both == parts[1] + parts[0]
    swapped = parts[0].exchange_findings() + parts[1]
    assert (swapped.counts, swapped.event) == (both.counts, both.event)


def test_recorded_bounds_follow_from_the_reported_counts():
    rng = np.random.default_rng(1)
    sides = leave(rng.laplace(size=2000), 2.0 + rng.laplace(size=2000))
    for bound in ("clopper_pearson", "exact"):
        report = audit_outputs(**sides, claim=1.0, bound=bound)
        ordered = report.counts if report.direction == "x" else report.counts.swapped()
        assert report.epsilon_lower == bounds.BOUNDS[bound](ordered, 0.0, 0.95)


@pytest.mark.skipif(os.name == "nt", reason="a shell command")
def test_a_tool_that_always_writes_the_same_is_named():
    tool = command(["sh", "-c", "for i in $(seq {size}); do echo 1; done", "{x}"])
    report = audit(tool, ("a", "b"), claim=1.0, trials=1000, rng=1)
    assert report.verdict.startswith("undecided: all 512 pilot outputs per side were ")
    assert "own randomness" not in str(report)


# Sound systems, whose claims are within reach: no line on missing noise, and no undecided audit.

SOUND = {
    **{f"{cls.__name__}, {dim}": (cls(1.0), cls(1.0).default_pair(dim), 1.0)
       for cls in published.SYSTEMS if cls.sound for dim in (1, 8)},
    **{repr(mechanism): (mechanism, P, 4.0) for mechanism in EVERY_NATIVE[:4]},
    "randomised response": (respond, P, 1.0),
    "rare response": (repeat(lambda x, rng: int((rng.random() < 0.02) != x[0])), P, 4.0),
    "text": (repeat(lambda x, rng: "ab"[int((rng.random() < 0.3) != x[0])]), P, 1.0),
    "geometric": (lambda x, size, rng: x.astype(int) + rng.geometric(0.6, (size, 1))
                  - rng.geometric(0.6, (size, 1)), P, 1.0),
    "wide": (noisy, ([0.0] * 40, [0.025] * 40), 1.0),
}  # fmt: skip


@pytest.mark.sweep
@pytest.mark.parametrize("name", SOUND)
def test_no_sound_system_is_undecided_or_called_noiseless(name):
    mechanism, pair, claim = SOUND[name]
    for seed in range(2000 // len(SOUND) + 1):
        report = audit(mechanism, pair, claim=claim, trials=2000, rng=seed)
        assert report.undecided == ""
        assert list_noiseless_lines(report) == []


def list_noiseless_lines(report):
    return [note for note in report.notes if " always " in note or "all pilot" in note]


def test_a_system_without_noise_is_called_noiseless():
    report = audit(dpcore.Identity(), P, claim=2.0, trials=2000, rng=1)
    assert list_noiseless_lines(report) == [
        "the output is always 0.0 on x and always 1.0 on x': no noise"
    ]
