"""Floors: what is answered without any encoding, by the majority, or by the main label alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from .targets import Codes, Target

__all__ = ["floor_answers", "floor_ranks", "floor_scores", "rank_values"]


def floor_answers(
    truth: Codes,
    cells: npt.NDArray[Any],
    asked: npt.NDArray[Any],
    target: Target,
    measure: str,
) -> Codes:
    """Return the best answers that use only the cell of a text; they are learnt on train.

    Accuracy: the most frequent value in each cell. F1 of attributes of two values: yes for the
    (cell, attribute) of the highest shares, as many as make the best F1 on train, which is how an
    F1 is made largest (Lipton, Elkan and Naryanaswamy, 2014). A cell that train lacks is answered
    as train in one cell.

    Args:
        truth: codes of the training texts, shape (n, attributes).
        cells: the cell of each training text: its main label, or one for all.
        asked: the cells of the texts to answer, shape (m,).
        target: what is inferred.
        measure: "accuracy" or "f1".

    Returns:
        Codes, shape (m, attributes).

    Example:
        >>> target = Target(("a",), ((0, 1),))
        >>> truth = np.array([[1], [1], [0], [0], [0]])
        >>> labels = np.array(["x", "x", "x", "y", "y"])
        >>> floor_answers(truth, labels, np.array(["x", "y", "z"]), target, "accuracy").ravel()
        array([1, 0, 0])
    """
    known, place = np.unique(cells, return_inverse=True)
    each = _answer_by_cell(truth, place, len(known), target, measure)
    whole = _answer_by_cell(truth, np.zeros_like(place), 1, target, measure)
    found = np.searchsorted(known, asked).clip(max=len(known) - 1)
    answers: Codes = np.where((known[found] == asked)[:, np.newaxis], each[found], whole)
    return answers


def floor_scores(
    truth: Any, cells: Any, asked: Any, statistic: Callable[[Any], Any] = np.mean
) -> npt.NDArray[np.float64]:
    """Return for each text the share of positive training texts in its cell.

    Args:
        truth: 0 or 1, or numbers, of the training texts, shape (n, 1).
        cells: the cell of each training text.
        asked: the cells of the texts to answer; a cell that train lacks has the share of all.
        statistic: of the truth of a cell, in place of the share, such as `np.median`.

    Example:
        >>> truth = np.array([[1], [1], [0], [0]])
        >>> floor_scores(truth, np.array(list("xxxy")), np.array(list("xyz"))).round(2)
        array([0.67, 0.  , 0.5 ])
    """
    known, place = np.unique(cells, return_inverse=True)
    shares = np.array([statistic(truth[place == cell, 0]) for cell in range(len(known))])
    found = np.searchsorted(known, asked).clip(max=len(known) - 1)
    whole = statistic(truth[:, 0])
    answers: npt.NDArray[np.float64] = np.where(known[found] == asked, shares[found], whole)
    return answers


def floor_ranks(truth: Codes, cells: Any, asked: Any, wanted: Codes, values: int) -> Codes:
    """Return for each text the rank of its value, by frequency in its cell of train.

    Args:
        truth: codes of the training texts, shape (n, 1).
        cells: the cell of each training text.
        asked: the cells of the texts to answer; a cell that train lacks is answered as all are.
        wanted: codes of the texts to answer, shape (m,).
        values: number of values; those that train lacks share the rank after all others.

    Example:
        >>> truth, cells = np.array([[0], [0], [2]]), np.array(list("xxy"))
        >>> floor_ranks(truth, cells, np.array(list("xyz")), np.array([0, 0, 1]), 3)
        array([1, 2, 3])
    """
    known, place = np.unique(cells, return_inverse=True)
    counts = np.zeros((len(known) + 1, values), np.int64)
    np.add.at(counts, (place, truth[:, 0]), 1)
    counts[-1] = counts[:-1].sum(axis=0)
    found = np.searchsorted(known, asked).clip(max=len(known) - 1)
    found = np.where(known[found] == asked, found, len(known))
    # Of equally frequent values in a cell the first comes first, as for the majority.
    ranks = rank_values(counts.astype(np.float64), counts[-1] > 0)
    answers: Codes = ranks[found, wanted]
    return answers


def rank_values(scores: npt.NDArray[np.float64], is_known: npt.NDArray[np.bool_]) -> Codes:
    """Return the rank of every value in each row, 1 for the highest score.

    Of equal scores the first value comes first.

    Args:
        scores: shape (n, values).
        is_known: which values can be named; all others share the rank after these.

    Example:
        >>> rank_values(np.array([[0.5, 0.0, 0.5, 0.9]]), np.array([True, True, True, False]))
        array([[1, 3, 2, 4]])
    """
    order = np.argsort(-np.where(is_known, scores, -np.inf), axis=1, kind="stable")
    ranks = np.empty(scores.shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[np.newaxis], axis=1)
    return np.minimum(ranks, int(is_known.sum()) + 1)


def _answer_by_cell(truth: Codes, place: Any, cells: int, target: Target, measure: str) -> Codes:
    """Choose the answer of each cell, shape (cells, attributes)."""
    values = max(map(len, target.values))
    counts = np.zeros((cells, truth.shape[1], values), np.int64)
    np.add.at(counts, (place[:, np.newaxis], np.arange(truth.shape[1]), truth), 1)
    if measure == "accuracy" or not target.binary:
        return np.asarray(counts.argmax(axis=2), np.int64)
    positive, size = counts[:, :, 1].ravel(), counts.sum(axis=2).ravel()
    order = np.argsort(-positive / size, kind="stable")
    f1 = 2.0 * np.cumsum(positive[order]) / (np.cumsum(size[order]) + positive.sum())
    chosen = np.zeros(positive.size, np.int64)
    chosen[order[: int(np.argmax(f1)) + 1]] = 1
    return chosen.reshape(cells, -1)
