"""Messages of wrong calls of `dpcore.tables`: the argument, and a word of the remedy."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import scipy.sparse
from shared_messages import check_messages
from shared_tables import ClosedRows, MetricRows, Rows, exponential_mechanism, points_and_distances

import dpcore
from dpcore import audit_table
from dpcore.pairs import L1

GOOD = [[0.75, 0.25], [0.25, 0.75]]
APART = [[0.0, 1.0], [1.0, 0.0]]
HALF_LOGS = np.log([[0.5, 0.5], [0.5, 0.25]])
POSITIVE_LOGS = np.array([[0.1, -1.0], [-1.0, -1.0]])
NAN_LOGS = np.array([[np.nan, 0.0], [0.0, 0.0]])
DISTANCES = points_and_distances(5, 1)
LOGS = exponential_mechanism(DISTANCES, 1.0)
FOUND = audit_table(GOOD)


class FewDistances(MetricRows):
    def distance_rows(self, start, stop):
        return DISTANCES[start:stop, :-1]


class FewRows(Rows):
    def log_rows(self, start, stop):
        return LOGS[start : stop - 1]


class HalfOutputs(ClosedRows):
    def loss_rows(self, start, stop):
        return super().loss_rows(start, stop)[0], np.full((stop - start, 5), 0.5)


class NoLosses(ClosedRows):
    def loss_rows(self, start, stop):
        losses, outputs = super().loss_rows(start, stop)
        return np.full_like(losses, np.nan), outputs


class WrongLosses(ClosedRows):
    def loss_rows(self, start, stop):
        losses, outputs = super().loss_rows(start, stop)
        return losses + 0.1, outputs


SUM = "rows that add up to 1 within 1e-09, got a sum of"
MATRIX = "a matrix of at least two rows (inputs) and one column (outputs), got"
NUMBERS = "a matrix of real numbers, got"
KINDS = "a relation of dpcore.pairs, a mask (booleans), or a list of pairs of row numbers, got"
NO_PAIR = "a relation that holds for a pair of rows, got"
ROWS = "pairs of two different rows from 0 to 1, got"
SHAPE = "of shape (2, 2), one row for each input, got"
FINITE = "a finite number at least 0"

WRONG_TABLES = [
    (ValueError, [[0.5, 0.4], [0.5, 0.5]], f"{SUM} 0.9 in row 0 (log=True takes logarithms)"),
    (ValueError, [[0.5, 0.5], [np.inf, 0.5]], f"{SUM} inf in row 1 (log=True takes logarithms)"),
    (ValueError, [[0.5, 0.5], [1.5, -0.5]], "at least 0 (log=False), got -0.5 in row 1, column 1"),
    (ValueError, [[0.5, 0.5], [np.nan, 0.5]], "at least 0 (log=False), got nan in row 1, column 0"),
    (ValueError, [[0.5, 0.5]], f"{MATRIX} (1, 2)"),
    (ValueError, np.ones((2, 2, 1)), f"{MATRIX} (2, 2, 1)"),
    (ValueError, np.ones((2, 0)), f"{MATRIX} (2, 0)"),
    (ValueError, [[0.5, 0.5], [1.0]], f"{NUMBERS} [[0.5, 0.5], [1.0]]"),
    (TypeError, [["a", "b"], ["c", "d"]], f"{NUMBERS} [['a', 'b'], ['c', 'd']]"),
    (TypeError, Rows, "with shape and log_rows, an instance and not the class (Rows(...) makes"),
    (ValueError, Rows(HALF_LOGS), "rows that add up to 1 within 1e-09"),
    (ValueError, Rows(POSITIVE_LOGS), "logarithms of at most 0"),
    (ValueError, Rows(NAN_LOGS), "logarithms of at most 0"),
]
WRONG_DISTANCES = [
    (ValueError, [[0.0, 1.0], [2.0, 0.0]],
     "the same from x to x' and from x' to x, got 1.0 and 2.0 of rows 0 and 1"),
    (ValueError, [[0.0, -1.0], [-1.0, 0.0]], "finite and at least 0, got -1.0 of rows 0 and 1"),
    (ValueError, [[0.0, np.nan], [1.0, 0.0]], "finite and at least 0, got nan of rows 0 and 1"),
    (ValueError, [[0.0, np.inf], [np.inf, 0.0]], "finite and at least 0, got inf of rows 0 and 1"),
    (ValueError, [[0.0]], f"{SHAPE} (1, 1)"),
    (ValueError, [0.0, 1.0], f"{SHAPE} (2,)"),
    (TypeError, "near", f"{NUMBERS} 'near'"),
]  # fmt: skip
WRONG_NEIGHBOURS = [
    (ValueError, np.ones((3, 3), dtype=bool), "a mask of shape (2, 2), got (3, 3)"),
    (ValueError, np.eye(2, k=1, dtype=bool),
     "a symmetric mask, got one way only for rows 0 and 1"),
    (ValueError, np.zeros((2, 2), dtype=bool), f"{NO_PAIR} 'a mask of 0 pairs of rows'"),
    (ValueError, L1(0.5), f"{NO_PAIR} 'L1(radius=0.5) on the numbers of rows'"),
    (ValueError, [(0, 2)], f"{ROWS} (0, 2)"),
    (ValueError, [(1, 1)], f"{ROWS} (1, 1)"),
    (ValueError, [(0, 1, 1)], f"{KINDS} [(0, 1, 1)]"),
    (TypeError, [], f"{KINDS} []"),
    (TypeError, [(0.0, 1.0)], f"{KINDS} [(0.0, 1.0)]"),
    (TypeError, "l1=1", f"{KINDS} 'l1=1'"),
]  # fmt: skip
WRONG_CALLS = [
    (ValueError, lambda: audit_table(HALF_LOGS, log=True), "table", "rows that add up"),
    (ValueError, lambda: audit_table(POSITIVE_LOGS, log=True), "table", "logarithms of at most 0"),
    (ValueError, lambda: audit_table(NAN_LOGS, log=True), "table", "logarithms of at most 0"),
    (ValueError, lambda: audit_table(GOOD, claim=-1.0), "claim", FINITE),
    (ValueError, lambda: audit_table(GOOD, tolerance=-1e-9), "tolerance", FINITE),
    (ValueError, lambda: audit_table(GOOD, threads=0), "threads", "an integer from 1 to 1024"),
    (ValueError, lambda: audit_table(scipy.sparse.csr_matrix(np.log(GOOD)), log=True), "log",
     "False for"),
    (TypeError, lambda: audit_table(GOOD, claim="1"), "claim", FINITE),
    (TypeError, lambda: audit_table(GOOD, log=1), "log", "True or False"),
    (TypeError, lambda: audit_table(GOOD, progress="yes"), "progress", "True, False or None"),
    (ValueError, lambda: audit_table(FewDistances(LOGS)), "distance_rows",
     "a function that returns shape (5, 5), got (5, 4)"),
    (ValueError, lambda: audit_table(FewRows(LOGS)), "log_rows",
     "a function that returns shape (5, 5), got (4, 5)"),
    (ValueError, lambda: audit_table(HalfOutputs(LOGS, DISTANCES, 1.0)), "outputs of loss_rows",
     "whole numbers of shape (5, 5)"),
    (ValueError, lambda: audit_table(NoLosses(LOGS, DISTANCES, 1.0)), "losses of loss_rows",
     "floats of shape (5, 5), none of them NaN"),
    (ValueError, lambda: audit_table(WrongLosses(LOGS, DISTANCES, 1.0)), "losses of loss_rows",
     "what log_rows attains"),
    (ValueError, lambda: FOUND.delta(-1.0), "epsilon", FINITE),
    (ValueError, lambda: FOUND.delta(np.nan), "epsilon", FINITE),
    (ValueError, lambda: FOUND.renyi([1.0]), "alphas", "orders above 1"),
    (ValueError, lambda: FOUND.renyi([2.0, np.inf]), "alphas", ""),
    (ValueError, lambda: FOUND.renyi([]), "alphas", ""),
    (TypeError, lambda: FOUND.plot(ax=1), "ax", "axes or a figure"),
    (ValueError, lambda: dpcore.TableAudit.from_json(FOUND.to_json()).delta(1.0), "comparison",
     "the table, which audit_table keeps"),
]  # fmt: skip


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_messages(kind):
    calls = [
        *((error, partial(audit_table, one), "table", need) for error, one, need in WRONG_TABLES),
        *(
            (error, partial(audit_table, GOOD, one), "distances", need)
            for error, one, need in WRONG_DISTANCES
        ),
        # An object's own distances are checked alike.
        *(
            (
                error,
                partial(audit_table, MetricRows(np.log(GOOD), np.array(one))),
                "distances",
                need,
            )
            for error, one, need in WRONG_DISTANCES[:4]
        ),
        *(
            (error, partial(audit_table, GOOD, neighbour=one), "neighbour", need)
            for error, one, need in WRONG_NEIGHBOURS
        ),
        *WRONG_CALLS,
    ]
    check_messages(kind, [rest for error, *rest in calls if error is kind])


def test_float32_may_round_a_row_further():
    table = np.array([[0.3, 0.7], [0.5, 0.5]])
    table[0, 0] += 3e-6
    with pytest.raises(ValueError, match="add up to 1 within 1e-09"):
        audit_table(table)
    assert audit_table(table.astype(np.float32), claim=1.0).tolerance == 1e-6
    table[0, 0] += 3e-5
    with pytest.raises(ValueError, match="add up to 1 within 1e-05"):
        audit_table(table.astype(np.float32))


def test_distances_may_differ_by_roundings():
    apart = np.array(APART)
    apart[0, 1] *= 1.0 + 1e-12
    assert audit_table(GOOD, apart).epsilon == pytest.approx(np.log(3.0))
