"""Labels beside outputs: taken as `label=`, refused where they stand for outputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from dpcore.recorded.run import audit_outputs

RNG = np.random.default_rng(21)
SIZE = 4000
LABELS = RNG.random(SIZE) < 0.5
SCORES = 2.0 * LABELS + RNG.laplace(size=SIZE)
SETTINGS = {"rows": "independent", "claim": 1.0, "rng": 1}


@pytest.mark.parametrize(
    "labels",
    [
        LABELS,
        LABELS * 1,
        LABELS * 1.0,
        (LABELS * 1).reshape(-1, 1),
        np.where(LABELS, "x", "x_prime"),
        np.where(LABELS, "in", "out").tolist(),
        np.where(LABELS, b"1", b"0"),
        pd.Series(LABELS),
        pd.Series(np.where(LABELS, "x", "x'")),
        pd.Series(LABELS).astype("boolean"),
        pd.Series(LABELS * 1).astype("category"),
        pd.DataFrame({"member": LABELS}),
    ],
    ids=lambda labels: f"{type(labels).__name__} {getattr(labels, 'dtype', '')}",
)
def test_labels_of_many_kinds(labels):
    split = audit_outputs(SCORES[LABELS], SCORES[~LABELS], **SETTINGS)
    audit = audit_outputs(SCORES, label=labels, **SETTINGS)
    assert audit.refuted
    assert (audit.counts, audit.direction) == (split.counts, split.direction)
    assert audit.names == ("outputs", "outputs")


def test_frames_and_matrices():
    frame = pd.DataFrame({"score": SCORES, "row": range(SIZE), "member": LABELS})
    want = audit_outputs(SCORES, label=LABELS, **SETTINGS).counts
    matrix = np.stack([SCORES, LABELS * 1.0], axis=1)
    table = np.rec.fromarrays([SCORES, LABELS], names="score,member")
    for audit in (
        audit_outputs(frame, label="member", column="score", **SETTINGS),
        audit_outputs(frame[["score", "member"]], label="member", **SETTINGS),
        audit_outputs(frame, label=LABELS, column="score", **SETTINGS),
        audit_outputs(frame["score"], label=frame["member"], **SETTINGS),
        audit_outputs(SCORES.tolist(), label=frame["member"], **SETTINGS),
        audit_outputs(matrix, label=1, **SETTINGS),
        audit_outputs(np.asarray(table), label="member", **SETTINGS),
    ):
        assert audit.counts == want
    first, second = frame[LABELS], frame[~LABELS]
    sides = audit_outputs(first, second, column="score", **SETTINGS)
    assert sides.counts == want
    both = audit_outputs(frame, label="member", column=["score", "row"], **SETTINGS)
    assert both.counts.n == want.n


def test_a_file_with_labels_beside_it(tmp_path):
    np.save(tmp_path / "scores.npy", SCORES)
    audit = audit_outputs(tmp_path / "scores.npy", label=LABELS, **SETTINGS)
    assert audit.counts == audit_outputs(SCORES, label=LABELS, **SETTINGS).counts
    assert audit.name == "scores.npy"


def test_one_run_with_labels():
    audit = audit_outputs(SCORES, label=LABELS, rows="one_run", guesses=400, rng=1)
    assert (
        audit.evidence
        == audit_outputs(
            SCORES[LABELS], SCORES[~LABELS], rows="one_run", guesses=400, rng=1
        ).evidence
    )


class Polars:
    """A column that can do what one of polars can: a null is no NaN there."""

    def __init__(self, values):
        self.values = values

    def null_count(self):
        return sum(value is None for value in self.values)

    def is_null(self):
        return Polars([value is None for value in self.values])

    def to_numpy(self):
        return np.array(self.values)

    def to_list(self):
        return list(self.values)


@dataclass
class PolarsFrame:
    columns: list

    def __getitem__(self, name):
        return Polars(NAMED[name])

    def to_numpy(self):
        raise AssertionError("the columns by their names are wanted")


NAMED = {"score": SCORES.tolist(), "member": LABELS.tolist(), "odd": [None, *LABELS[1:].tolist()]}


class Tensor:
    """What can be detached as a tensor of torch can."""

    dtype = "torch.float32"

    def __init__(self, values):
        self.values = values

    def detach(self):
        return self

    cpu = detach

    def numpy(self):
        return self.values


def test_columns_and_tensors_of_others():
    want = audit_outputs(SCORES, label=LABELS, **SETTINGS).counts
    frame = PolarsFrame(["score", "member"])
    assert audit_outputs(frame, label="member", **SETTINGS).counts == want
    assert audit_outputs(Tensor(SCORES), label=Tensor(LABELS), **SETTINGS).counts == want
    lost = PolarsFrame(["score", "odd"])
    with pytest.raises(ValueError, match=r"label in row 1 of outputs must be 1, true, .* got None"):
        audit_outputs(lost, label="odd", **SETTINGS)


# The order of arguments in scikit-learn.


@pytest.mark.parametrize("rows", ["independent", "one_run"])
@pytest.mark.parametrize(
    "labels",
    [LABELS, LABELS * 1, LABELS * 1.0, (LABELS * 1.0).astype(np.float32), LABELS.astype(np.uint8)],
    ids=lambda labels: labels.dtype.name,
)
@pytest.mark.parametrize(
    "scores",
    [SCORES, SCORES.astype(np.float32), np.round(SCORES, 1), np.rint(1e4 * SCORES).astype(int)],
    ids=["float64", "float32", "one decimal", "integers"],
)
def test_scores_beside_labels_are_an_error(scores, labels, rows):
    with pytest.raises(ValueError, match=r"outputs_prime must be outputs on x' \(label= is for"):
        audit_outputs(scores, labels, rows=rows)
    with pytest.raises(ValueError, match=r"outputs must be outputs on x \(label= is for labels\)"):
        audit_outputs(labels, scores, rows=rows)


BITS = RNG.random((2, 500)) < [[0.7], [0.3]]


@pytest.mark.parametrize(
    "sides",
    [
        BITS,
        BITS * 1,
        (BITS[0] * 1.0, BITS[1] * 1),
        (BITS[0] * 1, RNG.integers(3, size=500)),
        (BITS[0] * 1, RNG.integers(10, size=500)),
        (BITS[0] * 1, RNG.laplace(size=499)),
        (np.zeros(500), RNG.laplace(size=500)),
        (np.ones(500), RNG.laplace(size=500)),
        (np.clip(RNG.laplace(size=500), 0, 1), np.clip(RNG.laplace(size=500), 0, 1)),
    ],
)
def test_outputs_that_are_no_labels(sides):
    assert audit_outputs(*sides, rows="independent", rng=1).counts.n == 250
