"""What `audit_table` refuses: the message names the argument, the requirement and the value."""

from __future__ import annotations

import re

import numpy as np
import pytest
from shared_tables import ClosedRows, MetricRows, Rows, exponential_mechanism, points_and_distances

from dpcore import audit_table
from dpcore.pairs import L1

GOOD = [[0.75, 0.25], [0.25, 0.75]]
APART = [[0.0, 1.0], [1.0, 0.0]]
MATRIX = "table must be a matrix of at least two rows (inputs) and one column (outputs)"
SUM = "table must be rows that add up to 1 within 1e-09,"
HINT = "(log=True takes logarithms)"
KINDS = "a relation of dpcore.pairs, a mask (booleans), or a list of pairs of row numbers"
RELATION = f"neighbour must be {KINDS}"
NO_PAIR = "neighbour must be a relation that holds for a pair of rows, got"
OBJECT = "a matrix, or an object with shape and log_rows, an instance and not the class"


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0.5, 0.4], [0.5, 0.5]], f"{SUM} got a sum of 0.9 in row 0 {HINT}"),
        (
            [[0.5, 0.5], [1.5, -0.5]],
            "table must be at least 0 (log=False), got -0.5 in row 1, column 1",
        ),
        (
            [[0.5, 0.5], [np.nan, 0.5]],
            "table must be at least 0 (log=False), got nan in row 1, column 0",
        ),
        ([[0.5, 0.5], [np.inf, 0.5]], f"{SUM} got a sum of inf in row 1 {HINT}"),
        ([[0.5, 0.5]], f"{MATRIX}, got (1, 2)"),
        (np.ones((2, 2, 1)), f"{MATRIX}, got (2, 2, 1)"),
        (np.ones((2, 0)), f"{MATRIX}, got (2, 0)"),
        ([[0.5, 0.5], [1.0]], "table must be a matrix of real numbers, got [[0.5, 0.5], [1.0]]"),
        (
            [["a", "b"], ["c", "d"]],
            "table must be a matrix of real numbers, got [['a', 'b'], ['c', 'd']]",
        ),
        (Rows, f"table must be {OBJECT} (Rows(...) makes one), got <class 'shared_tables.Rows'>"),
    ],
)
def test_a_table_that_is_none_is_named(table, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        audit_table(table)
    assert caught.value.argument == "table"


def test_float32_may_round_a_row_further():
    table = np.array([[0.3, 0.7], [0.5, 0.5]])
    table[0, 0] += 3e-6
    with pytest.raises(ValueError, match="add up to 1 within 1e-09"):
        audit_table(table)
    assert audit_table(table.astype(np.float32), claim=1.0).tolerance == 1e-6
    table[0, 0] += 3e-5
    with pytest.raises(ValueError, match="add up to 1 within 1e-05"):
        audit_table(table.astype(np.float32))


@pytest.mark.parametrize(
    ("distances", "message"),
    [
        (
            [[0.0, 1.0], [2.0, 0.0]],
            "the same from x to x' and from x' to x, got 1.0 and 2.0 of rows 0 and 1",
        ),
        ([[0.0, -1.0], [-1.0, 0.0]], "finite and at least 0, got -1.0 of rows 0 and 1"),
        ([[0.0, np.nan], [1.0, 0.0]], "finite and at least 0, got nan of rows 0 and 1"),
        ([[0.0, np.inf], [np.inf, 0.0]], "finite and at least 0, got inf of rows 0 and 1"),
        ([[0.0]], "of shape (2, 2), one row for each input, got (1, 1)"),
        ([0.0, 1.0], "of shape (2, 2), one row for each input, got (2,)"),
        ("near", "a matrix of real numbers, got 'near'"),
    ],
)
def test_distances_that_are_none_are_named(distances, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(f"distances must be {message}")):
        audit_table(GOOD, distances)
    if np.shape(distances) == (2, 2):
        with pytest.raises(ValueError, match=re.escape(f"distances must be {message}")):
            audit_table(MetricRows(np.log(GOOD), np.array(distances)))


def test_distances_may_differ_by_roundings():
    apart = np.array(APART)
    apart[0, 1] *= 1.0 + 1e-12
    assert audit_table(GOOD, apart).epsilon == pytest.approx(np.log(3.0))


@pytest.mark.parametrize(
    ("neighbour", "message"),
    [
        (np.ones((3, 3), dtype=bool), "neighbour must be a mask of shape (2, 2), got (3, 3)"),
        (
            np.array([[False, True], [False, False]]),
            "neighbour must be a symmetric mask, got one way only for rows 0 and 1",
        ),
        (np.zeros((2, 2), dtype=bool), f"{NO_PAIR} 'a mask of 0 pairs of rows'"),
        (L1(0.5), f"{NO_PAIR} 'L1(radius=0.5) on the numbers of rows'"),
        ([(0, 2)], "neighbour must be pairs of two different rows from 0 to 1, got (0, 2)"),
        ([(1, 1)], "neighbour must be pairs of two different rows from 0 to 1, got (1, 1)"),
        ([(0, 1, 1)], f"{RELATION}, got [(0, 1, 1)]"),
        ([], f"{RELATION}, got []"),
        ([(0.0, 1.0)], f"{RELATION}, got [(0.0, 1.0)]"),
        ("l1=1", f"{RELATION}, got 'l1=1'"),
    ],
)
def test_neighbours_that_are_none_are_named(neighbour, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)) as caught:
        audit_table(GOOD, neighbour=neighbour)
    assert caught.value.argument == "neighbour"


def test_blocks_of_the_wrong_kind_are_named():
    distances = points_and_distances(5, 1)
    logs = exponential_mechanism(distances, 1.0)

    class Short(MetricRows):
        def distance_rows(self, start, stop):
            return distances[start:stop, :-1]

    class Few(Rows):
        def log_rows(self, start, stop):
            return logs[start : stop - 1]

    class Words(ClosedRows):
        def loss_rows(self, start, stop):
            return super().loss_rows(start, stop)[0], np.full((stop - start, 5), 0.5)

    class Nothing(ClosedRows):
        def loss_rows(self, start, stop):
            losses, outputs = super().loss_rows(start, stop)
            return np.full_like(losses, np.nan), outputs

    for owner, message in (
        (Short(logs), "distance_rows must be a function that returns shape (5, 5), got (5, 4)"),
        (Few(logs), "log_rows must be a function that returns shape (5, 5), got (4, 5)"),
        (Words(logs, distances, 1.0), "outputs of loss_rows must be whole numbers of shape (5, 5)"),
        (
            Nothing(logs, distances, 1.0),
            "losses of loss_rows must be floats of shape (5, 5), none of them NaN",
        ),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            audit_table(owner)


def test_figures_of_the_table_refuse_what_is_out_of_range():
    found = audit_table(GOOD)
    for epsilon in (-1.0, np.nan):
        with pytest.raises(ValueError, match="epsilon must be a finite number at least 0"):
            found.delta(epsilon)
    for alphas in ([1.0], [2.0, np.inf], []):
        with pytest.raises(ValueError, match="alphas must be"):
            found.renyi(alphas)
    assert audit_table(GOOD, claim=1.0, threads=3, progress=False).refuted
