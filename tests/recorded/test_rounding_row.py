"""Recorded outputs have the row on rounding that audits of calls have."""

from __future__ import annotations

import numpy as np
import pytest

import dpcore
from dpcore.results.audits import Audit
from dpcore.results.outputs_audits import OutputsAudit

ROWS = 40_000
FORMS = {
    "raw": lambda values: values,
    "rows of two": lambda values: values.reshape(-1, 2),
}
WITHOUT = {
    "coarse grid": lambda values: np.round(values),
    "integers": lambda values: np.round(values).astype(int),
    "texts": lambda values: values.astype(str),
}


def draw_sides(form, dtype=np.float64):
    rng = np.random.default_rng(1)
    return [form(x + rng.laplace(size=ROWS).astype(dtype)) for x in map(dtype, (0.0, 1.0))]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_last_bits_of_recorded_floats_are_found(form, dtype):
    """The seed is fixed; the loss of the last bits is infinite."""
    sides = draw_sides(form, dtype)
    report = dpcore.audit_outputs(*sides, claim=2.0, rows="independent", rng=1)
    assert report.floating_point.epsilon_lower > report.epsilon_lower
    assert report.verdict != "refuted"
    text = str(report)
    assert f"epsilon >= {report.floating_point.epsilon_lower:.4f} (not part of" in text
    assert "95 % confidence each, at least 90 % together" in text
    assert OutputsAudit.from_json(report.to_json()).floating_point == report.floating_point


@pytest.mark.parametrize("form", WITHOUT.values(), ids=WITHOUT)
def test_outputs_without_last_bits_have_no_such_row(form):
    report = dpcore.audit_outputs(*draw_sides(form), claim=2.0, rows="independent", rng=1)
    assert report.floating_point is None
    assert "rounding" not in str(report)


def test_the_finding_is_that_of_an_audit_of_calls():
    live = dpcore.audit(dpcore.Laplace(1.0), trials=ROWS // 2, rng=1)
    report = dpcore.audit_outputs(*draw_sides(FORMS["raw"]), rows="independent", rng=1)
    assert isinstance(live, Audit)
    assert report.floating_point.epsilon_lower == pytest.approx(
        live.floating_point.epsilon_lower, rel=0.2
    )
