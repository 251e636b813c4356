"""What an audit of given outputs refuses."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.attacks import MajorityVote, Threshold
from dpcore.recorded.run import audit_outputs
from dpcore.results.outputs_audits import OUTPUTS_BOUNDS

# What is refused.


FINE = [float(n) for n in range(8)]


class Unreachable:
    """A tensor on a device that numpy does not reach."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the host first")


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"outputs": FINE[:3]}, ValueError, r"at least 4 rows on each side, got \(3, 8\)"),
        ({"outputs_prime": FINE[:3]}, ValueError, r"at least 4 rows on each side, got \(8, 3\)"),
        ({"outputs": []}, ValueError, "outputs must be at least one row"),
        ({"outputs": 1.0}, TypeError, "outputs must be an array with one row an output"),
        ({"outputs": Unreachable()}, TypeError, "outputs must be an array with one row"),
        ({"outputs": np.ones(8) * 1j}, ValueError, "outputs_prime must be like outputs"),
        ({"outputs": np.ma.masked_less(FINE, 3)}, ValueError, "without masked entries"),
        (
            {"outputs_prime": np.ones((8, 2))},
            ValueError,
            r"like outputs, float64 of shape \(size\)",
        ),
        ({"outputs_prime": list("abcdefgh")}, ValueError, "outputs_prime must be like outputs"),
        ({"outputs_prime": None}, TypeError, "outputs_prime must be the outputs on x'"),
        ({"claim": -1.0}, ValueError, "claim must be a finite number at least 0"),
        ({"delta": 1.0}, ValueError, "delta must be"),
        ({"confidence": 1.0}, ValueError, "confidence must be"),
        ({"bound": "one_run"}, ValueError, "bound must be one of 'clopper_pearson', 'exact'"),
        ({"bound": 1}, TypeError, "bound must be one of"),
        ({"attack": 3}, TypeError, "attack must be a callable"),
        ({"attack": lambda *pilot: 3}, TypeError, "event must be a callable"),
        ({"attack": lambda *pilot: lambda rows: 3}, ValueError, "event must be a function that"),
        ({"attack": Threshold(5)}, ValueError, "attack must be one that applies to these outputs"),
        ({"attack": MajorityVote()}, TypeError, "must be"),
        ({"pair": 3}, TypeError, "pair must be a Pair"),
        ({"count_share": 1.0}, ValueError, "count_share must be a finite number above 0 and below"),
        ({"count_share": "half"}, TypeError, "count_share must be"),
        ({"guesses": 4}, ValueError, "guesses must be None where rows = 'independent', got 4"),
        ({"column": 0}, ValueError, "column must be None where outputs are arrays"),
        ({"label": "side"}, ValueError, "outputs_prime must be None where label is given"),
        ({"paired": 1}, TypeError, "paired must be True or False, got 1"),
        ({"paired": True, "bound": "exact"}, ValueError, "bound must be 'clopper_pearson' where"),
        (
            {"paired": True, "outputs": FINE[:7]},
            ValueError,
            r"outputs must be as many rows on x as on x' where paired = True, got \(7, 8\)",
        ),
        ({"rng": -1}, ValueError, "rng must be"),
    ],
)
def test_independent_rows_refuse(change, error, text):
    arguments = {"outputs": FINE, "outputs_prime": FINE, "rows": "independent", **change}
    sides = arguments.pop("outputs"), arguments.pop("outputs_prime")
    with pytest.raises(error, match=text):
        audit_outputs(*sides, **arguments)


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (
            {"outputs": [0.0, np.nan]},
            ValueError,
            r"scores that can be ranked .* got 'NaN in row 2'",
        ),
        ({"outputs": np.ones((4, 2)), "outputs_prime": np.ones((4, 2))}, ValueError, "one score"),
        ({"outputs": ["a"], "outputs_prime": ["b"]}, TypeError, "one real number for each canary"),
        ({"attack": Threshold()}, ValueError, "attack must be None where rows = 'one_run'"),
        ({"pair": ([0], [1])}, ValueError, "pair must be None where rows = 'one_run'"),
        ({"count_share": 0.5}, ValueError, "count_share must be None where rows = 'one_run'"),
        ({"bound": "exact"}, ValueError, "bound must be one of 'one_run', 'one_run_fdp'"),
        ({"bound": "one_run_fdp"}, ValueError, "delta must be above 0 for the bound one_run_fdp"),
        ({"paired": True}, ValueError, "paired must be False where rows = 'one_run'"),
        ({"guesses": 0}, ValueError, "guesses must be an integer from 1 to 16, got 0"),
        ({"guesses": 17}, ValueError, "guesses must be an integer from 1 to 16, got 17"),
        ({"guesses": 1.5}, ValueError, "guesses must be a finite number above 0 and at most 1"),
        ({"guesses": 0.0}, ValueError, "guesses must be a finite number above 0"),
        ({"guesses": True}, TypeError, "guesses must be an integer"),
        ({"guesses": "all"}, TypeError, "guesses must be an integer"),
        ({"guesses": (1, 2, 3)}, ValueError, r"guesses must be a number, a share, or a tuple"),
        ({"guesses": (0, 0)}, ValueError, "guesses out must be an integer from 1 to 16"),
        ({"guesses": (9, 8)}, ValueError, "guesses out must be an integer from 0 to 7"),
    ],
)
def test_one_run_refuses(change, error, text):
    arguments = {"outputs": FINE, "outputs_prime": FINE, "rows": "one_run", **change}
    sides = arguments.pop("outputs"), arguments.pop("outputs_prime")
    with pytest.raises(error, match=text):
        audit_outputs(*sides, **arguments)


def test_a_label_with_one_side_only(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("score,member\n1,1\n2,1\n")
    with pytest.raises(ValueError, match=r"label must be a column with rows for both sides"):
        audit_outputs(path, rows="one_run", label="member")
    with pytest.raises(ValueError, match="outputs_prime must be None where label is given"):
        audit_outputs(path, [1.0], rows="one_run", label="member")


def test_every_kind_of_rows_has_its_bounds():
    assert list(OUTPUTS_BOUNDS["independent"]) == ["clopper_pearson", "exact"]
    assert list(OUTPUTS_BOUNDS["one_run"]) == ["one_run", "one_run_fdp", "one_run_curve"]
