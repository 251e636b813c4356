"""Hostile calls of all public names: a result, or an error that names argument and requirement."""

from __future__ import annotations

import pytest
from shared_hostile import HostileCall, find_fault, make_hostile_calls

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize(
    ("number", "modules"),
    [
        (400, "bounds|claims|events|records|exact|differences|pure|scipy"),
        pytest.param(5000, "", marks=pytest.mark.sweep),
    ],
)
def test_hostile_calls_are_refused_by_name(number, modules, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    faults = [find_fault(call) for call in make_hostile_calls(number, 48, modules)]
    assert len(faults) == number
    assert [fault for fault in faults if fault is not None] == []


def test_an_error_that_names_nothing_is_a_fault():
    """The control: the judge finds inner errors, also where a report is written."""
    for function in (lambda x: x.shape, lambda x: [][x], lambda x: len(x)):
        assert find_fault(HostileCall("f", function, {"x": 1}, {"x": 1})) is not None
