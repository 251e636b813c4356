"""The table of audits that the Rust tests read (tests/audit.rs) is what Python finds today."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "reference" / "make_audits.py"
SPEC = importlib.util.spec_from_file_location("make_audits", SCRIPT)
make_audits = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(make_audits)
HEAD, *ROWS = make_audits.FILE.read_text().splitlines()


def test_the_table_has_every_case():
    assert (make_audits.HEAD, len(make_audits.CASES)) == (HEAD, len(ROWS))


@pytest.mark.parametrize(("case", "row"), list(zip(make_audits.CASES, ROWS, strict=True)))
def test_counts_choices_and_bounds_are_those_of_the_table(case, row):
    assert make_audits.audited(case) == row
