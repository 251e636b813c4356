"""Columns that number the rows or tell the time: refused with their name; others never are."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pandas
import pytest

import dpcore
from dpcore.recorded.run import audit_outputs
from dpcore.sampling.columns import is_numbering, list_columns

SIZE = 500
NOISE = np.random.default_rng(1).laplace(size=(2, SIZE))
NUMBERS = np.arange(2 * SIZE).reshape(2, SIZE)


def audit(*sides, **more):
    return audit_outputs(*sides, rows="independent", claim=1.0, rng=1, **more)


def make_frames(**columns):
    """Return a frame for each side, with the noise and further columns of both sides."""
    return [
        pandas.DataFrame({"response": NOISE[side], **{k: v[side] for k, v in columns.items()}})
        for side in (0, 1)
    ]


def test_a_choice_is_needed_where_columns_have_names(tmp_path):
    frames = make_frames(id=NUMBERS)
    message = r"column must be given where outputs has 2 columns \('response', 'id'; '\*' is all\)"
    with pytest.raises(ValueError, match=message):
        audit(*frames)
    paths = [tmp_path / f"{name}.csv" for name in "ab"]
    for frame, path in zip(frames, paths, strict=True):
        frame.to_csv(path, index=False)
    with pytest.raises(ValueError, match=r"column must be given where a\.csv has 2 columns"):
        audit(*paths)
    assert audit(*paths, column="response").epsilon_lower == 0.0


@pytest.mark.parametrize("column", ["id", ["response", "id"], "*"])
def test_row_numbers_are_refused_by_name(tmp_path, column):
    shuffled = np.random.default_rng(2).permuted(NUMBERS, axis=1)
    for numbers in (NUMBERS, NUMBERS % SIZE, shuffled, NUMBERS + 0.0):
        with pytest.raises(ValueError, match="column 'id' of outputs numbers the rows: leave it"):
            audit(*make_frames(id=numbers), column=column)
    label = pandas.concat(make_frames(id=NUMBERS)).assign(side=np.repeat([1, 0], SIZE))
    with pytest.raises(ValueError, match="column 'id' of outputs numbers the rows"):
        audit(label, label="side", column=column)


def test_row_numbers_in_arrays_texts_and_objects_are_refused():
    stacked = [np.stack([NOISE[side], NUMBERS[side]], axis=1) for side in (0, 1)]
    with pytest.raises(ValueError, match="column 1 of outputs numbers the rows"):
        audit(*stacked)
    texts = [[f"run {i}: noise {x:.3f}" for x, i in rows.tolist()] for rows in stacked]
    texts = [[one.replace(".0:", ":") for one in side] for side in texts]
    with pytest.raises(ValueError, match="number 0 of outputs numbers the rows"):
        audit(*texts)
    for make, place in ((tuple, "place 1"), (lambda row: {"x": row[0], 1: row[1]}, "place 1")):
        objects = [[make((f"{x:.1f}", int(i))) for x, i in rows.tolist()] for rows in stacked]
        with pytest.raises(ValueError, match=f"{place} of outputs numbers the rows"):
            audit(*objects)


def test_clocks_are_refused_where_all_columns_are_taken():
    times = np.cumsum(np.random.default_rng(3).exponential(size=2 * SIZE)).reshape(2, SIZE)
    stamps = [pandas.Timestamp("2026-01-01") + pandas.to_timedelta(one, "s") for one in times]
    for clock in (times, np.floor(times / 9.0) + np.array([[0], [5]]), stamps):
        with pytest.raises(ValueError, match="column 'time' of outputs shows when a row was"):
            audit(*make_frames(time=clock), column="*")
    # Sorted outputs rise, too, and their ranges overlap.
    assert not audit(*make_frames(time=np.sort(NOISE, axis=1)), column="*").refuted


def test_outputs_of_private_mechanisms_are_no_numbering():
    """Of independent draws none is: here 12 laws of whole numbers, 300 samples each."""
    rng = np.random.default_rng(4)
    laws = [
        lambda: rng.integers(0, 110, 100), lambda: rng.integers(0, 10**6, 100),
        lambda: rng.poisson(1000, 100), lambda: rng.geometric(0.01, 100),
        lambda: rng.zipf(2.0, 100), lambda: np.rint(rng.normal(0, 50, 100)),
        lambda: rng.binomial(10**6, 0.5, 100), lambda: rng.choice(109, 100),
        lambda: np.sort(rng.integers(0, 110, 100)), lambda: rng.integers(0, 66, 60),
        lambda: np.rint(rng.laplace(0, 30, 100)), lambda: rng.integers(0, 2**62, 100),
    ]  # fmt: skip
    assert not any(is_numbering(law()) for law in laws for _ in range(300))
    # The control: a permutation always is.
    assert all(is_numbering(rng.permutation(100) + shift) for shift in range(20))
    assert is_numbering(rng.permutation(109)[:100])
    assert not is_numbering(np.arange(59))
    assert not is_numbering(2 * np.arange(100))


def test_columns_are_read_from_rows_of_every_kind():
    rows = np.array([("a", 1.5), ("b", 2.5)], object)
    assert [name for name, _ in list_columns(rows)] == ["column 0", "column 1"]
    assert [name for name, _ in list_columns(rows, ("column 'p'", "column 'q'"))][1] == "column 'q'"
    fields = np.array([(1, 2.0)], [("n", int), ("v", float)])
    assert [name for name, _ in list_columns(fields)] == ["field 'n'", "field 'v'"]


def test_a_live_audit_names_the_column_that_numbers_the_rows():
    """The control: a constant column beside the same noise leaves the verdict alone."""
    row_numbers = itertools.count()

    def numbered(x, size, rng):
        numbers = [next(row_numbers) for _ in range(size)]
        return np.column_stack([rng.laplace(size=size) + x[0], numbers])

    def constant(x, size, rng):
        return np.column_stack([rng.laplace(size=size) + x[0], np.ones(size)])

    asked = {"claim": 1.0, "trials": 3000, "rng": 1}
    for stop in ("fixed", "refuted"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dpcore.AssumptionWarning)
            report = dpcore.audit(numbered, ([0.0], [1.0]), stop=stop, **asked)
        assert report.verdict.startswith("invalid: column 1 of the outputs numbers the rows: leave")
        assert report.refuted is None
    assert dpcore.audit(constant, ([0.0], [1.0]), **asked).refuted is False
