"""The exact audit of a table: against loops over its definition, and against closed forms."""

from __future__ import annotations

import math
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
import shared_tables as tables
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from shared_messages import check_messages

import dpcore
from dpcore import audit_table
from dpcore.pairs import L1, Linf, Replace


@given(
    inputs=st.integers(2, 9),
    outputs=st.integers(1, 12),
    seed=st.integers(0, 2**31),
    zeros=st.sampled_from([0.0, 0.3]),
    metric=st.booleans(),
    masked=st.booleans(),
    rounded=st.booleans(),
)
def test_any_table_is_what_a_loop_over_its_definition_finds(
    inputs, outputs, seed, zeros, metric, masked, rounded
):
    logs = tables.logs_of(tables.softmax_table(inputs, outputs, seed, zeros))
    if rounded:
        # Equal rows, hence ties.
        logs = logs[np.random.default_rng(seed).integers(0, inputs, inputs)]
    distances = tables.points_and_distances(inputs, seed) if metric else None
    mask = None
    if masked:
        mask = np.random.default_rng(seed).random((inputs, inputs)) < 0.6
        mask = mask | mask.T
        mask[0, 1] = mask[1, 0] = True
    found = audit_table(logs, distances, log=True, neighbour=mask, claim=0.7)
    ratio, *witness = tables.worst_of(logs, distances, mask)
    assert (found.epsilon, found.witness) == (max(0.0, ratio), tuple(witness))
    losses = tables.losses_of(logs)
    compared = ~np.eye(inputs, dtype=bool) if mask is None else mask & ~np.eye(inputs, dtype=bool)
    assert found.pairs == compared.sum()
    assert found.infinite_share == (np.isinf(losses) & compared).sum() / compared.sum()
    far = 1.0 if distances is None else distances
    assert found.excess == (losses - 0.7 * far)[compared].max()
    assert found.refuted == (found.excess > 1e-9)
    per_unit = losses / np.where(compared, far, 1.0)
    expected = np.where(compared, per_unit, 0.0).max(axis=1).clip(0.0)
    np.testing.assert_array_equal(found.per_input, expected)


@pytest.mark.parametrize(("inputs", "outputs"), [(300, 300), (600, 40), (130, 700)])
def test_tables_of_many_tiles_are_what_numpy_finds(inputs, outputs):
    logs = tables.logs_of(tables.softmax_table(inputs, outputs, 5, zeros=0.001))
    distances = tables.points_and_distances(inputs, 5)
    found = audit_table(logs, distances, log=True, claim=2.0, threads=1)
    assert audit_table(logs, distances, log=True, claim=2.0, threads=5) == found
    losses = tables.losses_of(logs)
    with np.errstate(invalid="ignore"):
        ratios = np.where(np.eye(inputs, dtype=bool), 0.0, losses / distances)
    np.testing.assert_array_equal(found.per_input, ratios.max(axis=1))
    assert found.witness[:2] == np.unravel_index(np.argmax(ratios), ratios.shape)
    assert found.infinite_pairs == np.isinf(losses).sum()


def test_randomised_response_loses_what_its_closed_form_says():
    for words, loss in ((2, 1.0), (50, 3.0)):
        other = 1.0 / (math.exp(loss) + words - 1)
        table = np.full((words, words), other)
        np.fill_diagonal(table, math.exp(loss) * other)
        found = audit_table(table, claim=loss)
        assert (found.epsilon, found.witness) == (pytest.approx(loss, abs=1e-12), (0, 1, 0))
        assert found.verdict == "holds for this table"
        # P(x|x) - e^epsilon P(x|x'), and the closed form of the Renyi divergence.
        delta = (math.exp(loss) - math.exp(loss / 2)) * other
        assert found.delta(loss / 2) == pytest.approx(delta, rel=1e-9)
        assert found.delta(loss) == pytest.approx(0.0, abs=1e-15)
        for alpha in (1.5, 2.0, 40.0):
            moment = other * (math.exp(alpha * loss) + math.exp((1 - alpha) * loss) + words - 2)
            renyi = math.log(moment) / (alpha - 1)
            assert found.renyi([alpha])[0] == pytest.approx(renyi, rel=1e-9)
        assert audit_table(table, claim=0.99 * loss).refuted


def test_noise_on_a_line_keeps_its_claim_exactly():
    """The nearest point to x plus Laplace noise loses epsilon per unit of distance, no more."""
    points = np.sort(np.random.default_rng(2).uniform(0.0, 1.0, 30))
    logs = tables.laplace_cells(points, 8.0)
    distances = np.abs(points[:, None] - points)
    found = audit_table(logs, distances, claim=8.0, log=True)
    assert (found.verdict, found.epsilon) == ("holds for this table", pytest.approx(8.0, rel=1e-9))
    assert audit_table(logs, distances, claim=7.99, log=True).refuted


def test_a_metric_score_loses_what_its_closed_form_says():
    """P(y|x) ~ exp(-epsilon d/2): epsilon d/2 + ln Z(x')/Z(x), attained at output x."""
    distances = tables.points_and_distances(200, 3)
    logs = tables.exponential_mechanism(distances, 4.0)
    full = audit_table(tables.MetricRows(logs, distances, 4.0))
    closed = audit_table(tables.ClosedRows(logs, distances, 4.0))
    np.testing.assert_allclose(closed.per_input, full.per_input, rtol=0, atol=1e-10)
    assert (closed.witness[:2], closed.witness[0]) == (full.witness[:2], closed.witness[2])
    assert full.own_claim == full.claim == 4.0
    assert full.verdict == closed.verdict == "holds for this table"
    assert closed.labels == tuple(f"word {number}" for number in closed.witness)


def test_names_of_rows_that_are_no_words():
    """A mechanism with a row for unknown words has more rows than words."""
    logs = tables.exponential_mechanism(tables.points_and_distances(4, 3), 1.0)

    class Unknown(tables.Rows):
        input_names = ("a", "b", "c", "(unknown)")

    rows = Unknown(logs)
    rows.words = ["a", "b", "c"]
    found = audit_table(rows)
    assert found.labels == tuple(rows.input_names[number] for number in found.witness)
    del Unknown.input_names
    assert audit_table(rows).labels == ()


def test_rows_are_asked_for_in_blocks_where_the_table_is_large():
    logs = tables.exponential_mechanism(tables.points_and_distances(1_500, 1), 2.0)
    rows = tables.Rows(logs)
    found = audit_table(rows, neighbour=[(0, 1_499), (700, 3)])
    assert max(stop - start for start, stop in rows.asked) <= 1_398
    both = np.kron(np.eye(2), np.ones((2, 2)))
    assert found.epsilon == tables.worst_of(logs[[0, 1_499, 700, 3]], None, both)[0]
    assert found.pairs == 4


def test_equal_rows_that_were_computed_twice_keep_any_claim():
    """Roundings are no loss, at distance 0 neither."""
    row = tables.softmax_table(1, 500, 1)[0]
    table = np.stack([row, np.exp(np.log(row)), row / row.sum()])
    distances = np.zeros((3, 3))
    found = audit_table(table, distances, claim=0.0)
    assert (found.verdict, found.epsilon, found.infinite_pairs) == ("holds for this table", 0.0, 0)
    strict = audit_table(table, distances, claim=0.0, tolerance=0.0)
    assert strict.refuted
    assert strict.epsilon == math.inf
    single = audit_table(table.astype(np.float32), distances, claim=0.0)
    assert single.tolerance == 1e-6
    assert not single.refuted


def test_a_loss_at_distance_zero_is_infinite():
    found = audit_table([[0.5, 0.5], [0.4, 0.6]], [[0.0, 0.0], [0.0, 0.0]], claim=100.0)
    assert (found.epsilon, found.infinite_share) == (math.inf, 1.0)
    assert found.refuted
    assert found.loss == pytest.approx(math.log(0.5 / 0.4))


def test_zero_against_zero_says_nothing_and_against_more_is_infinite():
    table = [[0.5, 0.5, 0.0], [0.25, 0.75, 0.0], [0.25, 0.25, 0.5]]
    found = audit_table(table, claim=9.0)
    assert (found.epsilon, found.witness, found.infinite_pairs) == (math.inf, (2, 0, 2), 2)
    assert found.per_input.tolist() == pytest.approx([math.log(2.0), math.log(3.0), math.inf])
    assert (found.remarks, found.renyi([2.0])[0], found.delta(50.0)) == ((), math.inf, 0.5)
    pair = audit_table(table, neighbour=[(1, 0)])
    assert pair.epsilon == pytest.approx(math.log(2.0))
    assert pair.renyi([2.0])[0] == pytest.approx(math.log(0.25 / 0.75 + 1.0))


@pytest.mark.parametrize("single", [False, True])
def test_zeros_that_may_be_underflow_ask_for_logarithms(single):
    logs = np.array([[0.0, -800.0], [-800.0, 0.0], [-700.0, 0.0]])
    with np.errstate(under="ignore"):
        table = np.exp(logs).astype(np.float32 if single else np.float64)
    with pytest.warns(dpcore.AssumptionWarning, match=r"pass logarithms \(log=True\)"):
        found = audit_table(table)
    assert found.epsilon == math.inf
    assert "log=True" in str(found)
    exact = audit_table(logs, log=True)
    assert (exact.epsilon, exact.remarks) == (800.0, ())


def test_every_form_of_one_table_gives_one_answer():
    table = tables.softmax_table(40, 30, 8, zeros=0.5)
    logs = tables.logs_of(table)
    dense = audit_table(table)
    for form in (table.tolist(), scipy.sparse.csr_matrix(table), scipy.sparse.coo_array(table)):
        assert audit_table(form) == dense
    assert audit_table(np.asfortranarray(table)) == dense
    by_logs = audit_table(logs, log=True)
    assert audit_table(np.asfortranarray(logs), log=True) == by_logs
    assert audit_table(tables.Rows(logs)).per_input.tolist() == by_logs.per_input.tolist()
    np.testing.assert_allclose(by_logs.per_input, dense.per_input, rtol=1e-13)
    with pytest.warns(dpcore.AssumptionWarning):
        single = audit_table(table.astype(np.float32))
    finite = np.isfinite(dense.per_input)
    np.testing.assert_allclose(single.per_input[finite], dense.per_input[finite], atol=1e-5)


def test_neighbours_in_every_form():
    logs = tables.logs_of(tables.softmax_table(30, 10, 4))
    rows = np.arange(30)
    near = (np.abs(rows[:, None] - rows) <= 2) & (rows[:, None] != rows)
    by_mask = audit_table(logs, log=True, neighbour=near)
    pairs = np.argwhere(np.triu(near))
    assert by_mask.pairs == 2 * len(pairs)
    for form in (L1(2.0), Linf(2.0), pairs.tolist(), pairs[::-1, ::-1]):
        found = audit_table(logs, log=True, neighbour=form)
        assert found.per_input.tolist() == by_mask.per_input.tolist()
        assert (found.witness, found.pairs) == (by_mask.witness, by_mask.pairs)
    by_relation = audit_table(logs, log=True, neighbour=L1(2.0))
    assert "L1(radius=2.0) on the numbers of rows" in str(by_relation)

    class Even:
        """An own relation: rows whose numbers are both even."""

        def holds(self, pair, domain):
            return pair.x[0] % 2 == pair.x_prime[0] % 2 == 0

        starts = move = holds

    even = (rows[:, None] % 2 == 0) & (rows % 2 == 0)
    own = audit_table(logs, log=True, neighbour=Even())
    assert own.epsilon == tables.worst_of(logs, None, even)[0]
    with pytest.raises((TypeError, ValueError)):
        audit_table(logs, log=True, neighbour=Replace)


def test_delta_is_the_worst_hockey_stick_divergence():
    table = tables.softmax_table(150, 60, 9, zeros=0.05)
    distances = tables.points_and_distances(150, 9)
    found = audit_table(table, distances)
    for epsilon in (0.0, 0.5, 3.0):
        factors = np.exp(epsilon * distances)
        differences = (table[x] - factors[x][:, None] * table for x in range(150))
        worst = max(np.maximum(one, 0.0).sum(axis=1).max() for one in differences)
        assert found.delta(epsilon) == pytest.approx(worst, rel=1e-12)
    by_logs = audit_table(tables.logs_of(table), distances, log=True)
    assert by_logs.delta(0.5) == pytest.approx(found.delta(0.5), rel=1e-12)


def test_delta_of_losses_beyond_the_range_of_floats():
    found = audit_table(np.array([[np.log1p(-np.exp(-1.0)), -1.0], [0.0, -1_000.0]]), log=True)
    assert found.epsilon == 999.0
    # P(1|0) - e^epsilon P(1|1), which no product of floats gives.
    assert found.delta(800.0) == pytest.approx(math.exp(-1.0), rel=1e-12)
    assert found.delta(998.0) == pytest.approx(math.exp(-1.0) * -math.expm1(-1.0), rel=1e-9)
    assert found.delta(1_500.0) == 0.0


def test_renyi_is_the_worst_of_all_pairs_at_any_order():
    for spread in (1.0, 60.0):
        logs = tables.exponential_mechanism(tables.points_and_distances(70, 4), spread)
        found = audit_table(logs, log=True)
        for alpha in (1.01, 2.0, 33.0):
            terms = alpha * logs[:, None] + (1 - alpha) * logs[None]
            top = terms.max(axis=2)
            sums = top + np.log(np.exp(terms - top[..., None]).sum(axis=2))
            assert found.renyi([alpha])[0] == pytest.approx(sums.max() / (alpha - 1), rel=1e-9)
    assert found.renyi([1e9])[0] == pytest.approx(found.epsilon, rel=1e-6)


def test_ctrl_c_ends_one_long_call_of_the_core_soon():
    code = """
import os, signal, threading, time
import numpy as np
from dpcore import _core
signal.signal(signal.SIGINT, signal.default_int_handler)
rows, others = np.zeros((64, 2**16)), np.zeros((2**13, 2**16))  # pages that nobody writes
ahead, back = np.empty((2, 2**13, 64))
def interrupt():
    time.sleep(0.15)
    global sent
    sent = time.process_time()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    _core.table_ratios(rows, others, ahead, back, 1)
    print("finished", 0)
except KeyboardInterrupt:
    print("stopped", time.process_time() - sent)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True
    )
    word, seconds = done.stdout.split()
    assert word == "stopped"
    # Time of the processor: another process may hold it for seconds.
    assert float(seconds) < 1.0


def test_ctrl_c_goes_through_an_audit(ctrl_c):
    logs = tables.exponential_mechanism(tables.points_and_distances(300, 1), 2.0)

    class Slow(tables.Rows):
        def log_rows(self, start, stop):
            ctrl_c(0.0)
            while True:
                pass

    with pytest.raises(KeyboardInterrupt):
        audit_table(Slow(logs))


TABLES = 200
TRIALS = 5_000
CONFIDENCE = 0.9
SIGNIFICANCE = 1e-6


class RandomTable:
    """A mechanism of known rows; `fault` draws from rows whose largest entries are larger."""

    def __init__(self, number, fault):
        rng = np.random.default_rng([27, number])
        inputs, outputs = int(rng.integers(3, 9)), int(rng.integers(4, 13))
        self.rows = rng.dirichlet(np.full(outputs, 2.0), inputs)
        self.shape = self.rows.shape
        self.drawn = self.rows**1.6 if fault else self.rows
        self.drawn = self.drawn / self.drawn.sum(axis=1, keepdims=True)

    def log_rows(self, start, stop):
        return np.log(self.rows[start:stop])

    def __call__(self, x, size, rng):
        return rng.choice(self.shape[1], size, p=self.drawn[x])


@pytest.mark.sweep
@pytest.mark.parametrize("fault", [False, True])
def test_certified_above_the_exact_loss_no_more_often_than_the_confidence_allows(fault):
    """Exact binomial test at 1e-6; tables of which another law is drawn fail it."""
    allowed = int(binom.ppf(1.0 - SIGNIFICANCE, TABLES, 1.0 - CONFIDENCE))
    exceeded = 0
    for number in range(TABLES):
        mech = RandomTable(number, fault)
        exact = dpcore.audit_table(mech, neighbour=[(0, 1)]).epsilon
        report = dpcore.audit(mech, (0, 1), rng=number, trials=TRIALS, confidence=CONFIDENCE)
        exceeded += report.epsilon_lower > exact
        if exceeded > allowed:
            break
    assert (exceeded > allowed) == fault


# Messages of wrong calls of `dpcore.tables`: the argument, and a word of the remedy.


GOOD = [[0.75, 0.25], [0.25, 0.75]]
APART = [[0.0, 1.0], [1.0, 0.0]]
HALF_LOGS = np.log([[0.5, 0.5], [0.5, 0.25]])
POSITIVE_LOGS = np.array([[0.1, -1.0], [-1.0, -1.0]])
NAN_LOGS = np.array([[np.nan, 0.0], [0.0, 0.0]])
DISTANCES = tables.points_and_distances(5, 1)
LOGS = tables.exponential_mechanism(DISTANCES, 1.0)
FOUND = audit_table(GOOD)


class FewDistances(tables.MetricRows):
    def distance_rows(self, start, stop):
        return DISTANCES[start:stop, :-1]


class FewRows(tables.Rows):
    def log_rows(self, start, stop):
        return LOGS[start : stop - 1]


class HalfOutputs(tables.ClosedRows):
    def loss_rows(self, start, stop):
        return super().loss_rows(start, stop)[0], np.full((stop - start, 5), 0.5)


class NoLosses(tables.ClosedRows):
    def loss_rows(self, start, stop):
        losses, outputs = super().loss_rows(start, stop)
        return np.full_like(losses, np.nan), outputs


class WrongLosses(tables.ClosedRows):
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
    (TypeError, tables.Rows, "with shape and log_rows, an instance and not the class (Rows(...)"),
    (ValueError, tables.Rows(HALF_LOGS), "rows that add up to 1 within 1e-09"),
    (ValueError, tables.Rows(POSITIVE_LOGS), "logarithms of at most 0"),
    (ValueError, tables.Rows(NAN_LOGS), "logarithms of at most 0"),
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
    (ValueError, np.eye(2, k=1, dtype=bool), "a symmetric mask, got one way only for rows 0 and 1"),
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
    (ValueError, lambda: FOUND.renyi([1.0]), "alphas", "orders above 1"),
    (ValueError, lambda: FOUND.renyi([2.0, np.inf]), "alphas", ""),
    (ValueError, lambda: FOUND.renyi([]), "alphas", ""),
    (TypeError, lambda: FOUND.plot(ax=1), "ax", "axes or a figure"),
    (ValueError, lambda: dpcore.TableAudit.from_json(FOUND.to_json()).delta(1.0), "comparison",
     "the table, which audit_table keeps"),
]  # fmt: skip


WRONG_VALUES = [
    (WRONG_TABLES, "table", audit_table),
    (WRONG_DISTANCES, "distances", lambda one: audit_table(GOOD, one)),
    # An object's own distances are checked alike.
    (WRONG_DISTANCES[:4], "distances",
     lambda one: audit_table(tables.MetricRows(np.log(GOOD), np.array(one)))),
    (WRONG_NEIGHBOURS, "neighbour", lambda one: audit_table(GOOD, neighbour=one)),
]  # fmt: skip


@pytest.mark.parametrize("kind", [TypeError, ValueError])
def test_messages(kind):
    calls = [
        (error, partial(call, one), argument, need)
        for values, argument, call in WRONG_VALUES
        for error, one, need in values
    ]
    check_messages(kind, [rest for error, *rest in calls + WRONG_CALLS if error is kind])


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


COIN = [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
TINY = Fraction(1, 10**400)


@pytest.mark.parametrize("kind", [Fraction, lambda entry: Decimal(str(float(entry)))])
def test_tables_of_fractions_and_decimals_are_compared_exactly(kind):
    report = audit_table([[kind(entry) for entry in row] for row in COIN], claim=1.0)
    assert (report.verdict, report.witness) == ("refuted", (0, 1, 0))
    assert report.epsilon == report.loss == math.log(3.0)
    assert report.tolerance == np.spacing(1.0)
    assert report.delta(0.0) == pytest.approx(0.5, abs=1e-15)
    assert report.renyi([2.0])[0] == pytest.approx(math.log(7.0 / 3.0), abs=1e-15)
    assert dpcore.TableAudit.from_json(report.to_json()) == report


def test_the_tolerance_of_an_exact_table_is_a_last_place_of_the_claim():
    below = np.nextafter(math.log(3.0), 0.0)
    claims = math.log(3.0), below, np.nextafter(below, 0.0)
    assert [audit_table(COIN, claim=float(claim)).refuted for claim in claims] == [
        False,
        False,
        True,
    ]
    assert audit_table(COIN, claim=float(below), tolerance=0.0).refuted
    # The distance 1/2 halves the claim; 0 allows nothing.
    halves = np.array([[0.0, 0.5], [0.5, 0.0]])
    assert audit_table(COIN, halves, claim=2.1).refuted
    assert not audit_table(COIN, halves, claim=2.2).refuted
    assert audit_table(COIN, 0.0 * halves, claim=9.0).infinite_pairs == 2


@pytest.mark.parametrize(
    ("table", "epsilon"),
    [
        ([[1 - TINY, TINY], [Fraction(1, 2)] * 2], 400 * math.log(10.0) - math.log(2.0)),
        ([[Fraction(1, 3) + TINY, Fraction(2, 3) - TINY], [Fraction(1, 3), Fraction(2, 3)]], 0.0),
        ([[1 - TINY, TINY], [1 - 3 * TINY, 3 * TINY]], math.log(3.0)),
        ([[1, 0], [1 - TINY, TINY]], math.inf),
        ([[Fraction(1, 3), Fraction(2, 3)]] * 2, 0.0),
    ],
)
def test_exact_losses_neither_vanish_nor_overflow(table, epsilon):
    report = audit_table(table, claim=0.0, tolerance=0.0)
    assert report.epsilon == pytest.approx(epsilon, rel=1e-15, abs=1e-300)
    # Only rows that are equal keep a claim of 0; floats hold both tables of loss below 1e-300.
    assert report.refuted == (table[0] != table[1])


@pytest.mark.parametrize("metric", [False, True])
def test_exact_tables_are_what_a_loop_over_fractions_finds(metric):
    rng = np.random.default_rng(8)
    weights = rng.integers(0, 9, (7, 5)) + np.eye(7, 5, dtype=int)
    table = [[Fraction(int(one), int(row.sum())) for one in row] for row in weights]
    distances = tables.points_and_distances(7, 3) if metric else None
    report = audit_table(table, distances, claim=0.5)
    ratios = [
        [max(math.inf if not q else p / q for p, q in zip(row, other, strict=True) if p or q)
         for other in table] for row in table
    ]  # fmt: skip
    losses = np.log(np.array(ratios, float))
    apart = np.ones((7, 7)) if distances is None else distances + np.eye(7)
    off = ~np.eye(7, dtype=bool)
    np.testing.assert_allclose(report.per_input, (losses / apart * off).max(axis=1), rtol=1e-14)
    assert report.infinite_pairs == np.isinf(losses).sum()
    assert report.excess == pytest.approx((losses - 0.5 * apart)[off].max(), rel=1e-14)


def test_wrong_exact_tables_are_refused_by_name():
    half = Fraction(1, 2)
    wrong_sum = [[Decimal("0.333")] * 3] * 2
    check_messages(
        ValueError,
        [
            (lambda: audit_table([[Decimal("nan"), 1], [1, 0]]), "table", "got NaN in row 0"),
            (
                lambda: audit_table([[1, 0], [1, Decimal("sNaN")]]),
                "table",
                "sNaN in row 1, column 1",
            ),
            (lambda: audit_table([[Decimal("inf"), 1], [1, 0]]), "table", "finite numbers"),
            (lambda: audit_table([[-half, 3 * half], [half, half]]), "table", "at least 0"),
            (lambda: audit_table(wrong_sum), "table", "exactly 1, got a sum of 1 -0.001 in row 0"),
            (lambda: audit_table([[half + TINY, half]] * 2), "table", "1 +1e-400 in row 0"),
            (lambda: audit_table(COIN, log=True), "log", "False for a table of exact numbers"),
        ],
    )
    check_messages(
        TypeError,
        [
            (lambda: audit_table([[half, 0.5]] * 2), "table", "fractions, decimals"),
            (lambda: audit_table([[half, "a"]] * 2), "table", "fractions, decimals"),
        ],
    )


class CountedRows:
    """A table of equal rows that counts the blocks of its rows that were read."""

    shape = 400, 2**14
    calls = 0

    def log_rows(self, start, stop):
        self.calls += 1
        return np.full((stop - start, self.shape[1]), -math.log(self.shape[1]))


class OwnLosses(CountedRows):
    """The same table, which states its losses."""

    shape = 4000, 2

    def loss_rows(self, start, stop):
        self.calls += 1
        losses = np.zeros((stop - start, self.shape[0]))
        return losses, losses.astype(int)


@pytest.mark.parametrize("table", [CountedRows, OwnLosses])
@pytest.mark.parametrize("neighbour", [None, L1(400)])
def test_the_time_of_a_long_comparison_is_forecast_once(table, neighbour, monkeypatch):
    from dpcore.progress import Progress
    from dpcore.tables import comparison

    # On this clock, each block that is read takes one second.
    table, forecasts = table(), []
    clock = SimpleNamespace(monotonic=lambda: float(table.calls))
    monkeypatch.setattr(comparison, "time", clock)
    monkeypatch.setattr(
        Progress,
        "forecast",
        lambda _, work, seconds: forecasts.append((work, seconds, clock.monotonic())),
    )
    audit_table(table, neighbour=neighbour)
    whole = clock.monotonic()
    [(work, seconds, waited)] = forecasts
    inputs, outputs = table.shape
    assert work == f"{inputs * (inputs - 1) // 2:,} pairs of rows of {outputs:,}"
    assert waited < 0.6 * whole
    assert whole / 3.0 < seconds < 3.0 * whole


def test_a_long_forecast_is_a_line_on_stderr(monkeypatch, capsys):
    monkeypatch.setattr("dpcore.progress.LONG_SECONDS", 1e-9)
    audit_table([[0.75, 0.25], [0.25, 0.75]])
    assert capsys.readouterr().err.startswith("dpcore: 1 pairs of rows of 2 take about ")
    audit_table([[0.75, 0.25], [0.25, 0.75]], progress=False)
    assert not capsys.readouterr().err
