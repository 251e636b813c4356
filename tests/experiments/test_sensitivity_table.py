"""The table of sensitivities: closed forms, their pairs, and what the search finds without them."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from dpcore.experiments import sensitivity_table as table

D = 6
ROOT = math.sqrt(D)
EXPECTED = {
    "box": (2 * D, 2 * ROOT, 2),
    "min_max": (D, ROOT, 1),
    "l1_ball": (20, 20, 20),
    "l2_ball": (20 * ROOT, 20, 20),
    "linf_ball": (20 * D, 20 * ROOT, 20),
    "simplex": (2, math.sqrt(2), 1),
    "one_hot": (2, math.sqrt(2), 1),
    "sphere": (2 * ROOT, 2, 2),
    "replace": (2, math.sqrt(2), 1),
    "add_remove": (1, 1, 1),
}
"""The issue's table, with a = -1, b = 1 and C = 10."""


@pytest.fixture(scope="module")
def result():
    return table.run(table.Config(trials=24_000, dim=D, seed=3))


def test_closed_forms_are_the_known_ones(result):
    found = {(row.name, row.norm): row.closed.value for row in result.rows}
    assert len(found) == 30
    for name, values in EXPECTED.items():
        for norm, value in zip(("l1", "l2", "linf"), values, strict=True):
            assert found[name, norm] == pytest.approx(value, rel=1e-12)


def test_every_closed_form_is_attained_by_its_pair(result):
    for row in result.rows:
        assert row.error < 1e-12
        gap = np.abs(row.closed.pair.x - row.closed.pair.x_prime)
        by_hand = {"l1": gap.sum(), "l2": math.sqrt((gap**2).sum()), "linf": gap.max()}[row.norm]
        assert row.attained == pytest.approx(by_hand, rel=1e-12)


def test_the_search_finds_them_from_below_and_never_more(result):
    assert result.above == 0
    for row in result.rows:
        assert 0.99 < row.reached <= 1.0 + 1e-9, (row.name, row.norm)
        domain = row.closed.domain
        for x in (row.found.pair.x, row.found.pair.x_prime):
            assert np.abs(domain.clip(x) - x).max() <= 1e-12 * np.abs(x).max()
        assert row.found.found_by != "the domain's witness"


def test_the_formulas_as_text_give_the_values(result):
    known = {"d": D, "C": 10.0, "a": -1.0, "b": 1.0, "sqrt": math.sqrt}
    for row in result.rows:
        formula = row.formula.replace(") (", ") * (").replace("2 C", "2 * C")
        formula = formula.replace("C sqrt", "C * sqrt").replace("C d", "C * d")
        formula = formula.replace("d (", "d * (").replace("2 sqrt", "2 * sqrt")
        value = eval(formula, {"__builtins__": {}}, known)
        assert value == pytest.approx(row.closed.value, rel=1e-12)


def test_a_closed_form_that_is_too_small_is_noticed(result):
    # Negative control: half of a value is exceeded by the search, and not attained by its pair.
    row = next(row for row in result.rows if (row.name, row.norm) == ("l2_ball", "l1"))
    found = replace(row.found, claimed=20.0)
    wrong = replace(result, rows=(*result.rows, replace(row, found=found)))
    assert wrong.above == 1
    assert "Above the closed form: 1 of 31" in wrong.table()


def test_text_record_and_picture(result):
    text = result.table()
    assert "Above the closed form: 0 of 30 searches" in text
    assert text.count("2 C sqrt(d)") == 2
    assert max(map(len, text.splitlines())) <= 100
    record = result.to_dict()

    assert len(record["rows"]) == 30
    figure = result.plot()
    words = {text.get_text() for text in figure.axes[1].texts}
    assert {"2 C sqrt(d)", "d (b - a)", "L1", "Linf"} <= words
    assert len(figure.axes[0].get_yticklabels()) == 10


def test_each_search_has_its_own_seed_and_budget(result):
    assert result.config.share == 800
    assert len({row.found.seed for row in result.rows}) == 30
    assert all(row.found.evaluations <= 800 for row in result.rows)
    assert table.Config(trials=1).share == 8
