"""The comparison with other auditors, on few draws and for dpcore only."""

import math

import pytest
import rivals

import dpcore

SEEDS, DRAWS = 1, 4_000
CASES = rivals.make_cases()


@pytest.fixture(scope="module")
def rows():
    return list(rivals.iterate_rows("dpcore", CASES, SEEDS, DRAWS))


def test_dpcore_certifies_something_of_each_mechanism_and_never_too_much(rows):
    rivals.require_sound("dpcore", rows, CASES)
    assert {row["mechanism"] for row in rows if row["bound"] > 0} == {case.name for case in CASES}
    assert sum(row["way"] == "Gaussian curve" for row in rows) == 2


def test_a_bound_above_the_true_loss_is_an_error(rows):
    wrong = [row | {"bound": 1.2} for row in rows if row["mechanism"].startswith("Laplace")]
    with pytest.raises(AssertionError, match="above the true loss"):
        rivals.require_sound("dpcore", wrong, CASES)
    rivals.require_sound("jax-privacy", wrong, CASES)
    with pytest.raises(AssertionError, match="20 of 20 bounds"):
        rivals.require_sound("jax-privacy", 20 * wrong, CASES)


@pytest.mark.parametrize("case", [case for case in CASES if math.isfinite(case.loss)])
def test_the_true_loss_is_at_least_what_the_best_event_certifies(case):
    pilot, rest = case.split_sides(200_000, 7)
    event = dpcore.attacks.Threshold(score=case.project)(*pilot, case.pair)
    k, k_prime = (int(event(side).sum()) for side in rest)
    counts = dpcore.Counts(k, len(rest[0]), k_prime, len(rest[1]))
    assert dpcore.bounds.clopper_pearson(counts, case.delta, 0.9999) <= case.loss
    assert dpcore.bounds.clopper_pearson(counts.swapped(), case.delta, 0.9999) <= case.loss


def test_the_table_has_a_line_for_each_way(rows):
    document = {"tool": "dpcore", "rows": rows}
    lines = list(rivals.format_bounds([document], [case.name for case in CASES]))
    assert [line.split(" | ")[0] for line in lines] == [
        "| dpcore: audit",
        "| dpcore: Gaussian curve",
    ]
    assert lines[0].count("(1.00)") == len(CASES)
    assert lines[1].count(" - ") == len(CASES) - 2
