"""Attributes and texts of an attack, and baseline answers that do not use the vectors.

A target is what an attacker infers: one attribute of two or more values, one number such as an age,
or several attributes of two values each. A baseline answers without the vectors. It uses the
attribute values of the training texts, and possibly the main labels.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, invalid, mistyped, show, tag_error
from ...packages import has_all
from ...records import Ints
from ..corpus import SPLITS, Corpus, fold_case_and_blanks

_UNNAMED_COLUMN: Final = "attribute"
"""Name of a column that was passed without a name."""

MANY_VALUES: Final = 50
"""If an attribute has at least this number of values, `usual` returns fast attackers, and reports
omit the accuracy for each value."""

Kind = Literal["values", "number"]
"""Treatment of an attribute: separate classes ("values") or numbers ("number")."""


@dataclass(frozen=True)
class Target:
    """Names and possible values of the attributes that an attacker infers.

    Args:
        names: names of the attributes.
        values: for each attribute, a sorted tuple of its values. If an attribute has two values,
            the second value is called positive. If the attribute is a number, such as an age, the
            tuple is empty.
    """

    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    @property
    def is_joint(self) -> bool:
        """True if an attacker infers several attributes together."""
        return len(self.names) > 1

    @property
    def is_binary(self) -> bool:
        """True if an attacker infers exactly one attribute, and this attribute has two values."""
        return self.all_binary and not self.is_joint

    @property
    def all_binary(self) -> bool:
        """True if every inferred attribute has two values."""
        return all(len(values) == 2 for values in self.values)

    @property
    def is_number(self) -> bool:
        """True if the inferred attribute is a number, such as an age."""
        return not self.values[0]

    @property
    def is_ranked(self) -> bool:
        """True if the inferred attribute has more than two values and is not a number.

        For such an attribute, attackers rank all values.
        """
        return not (self.all_binary or self.is_number)

    @property
    def count(self) -> int | None:
        """Largest number of values among the inferred attributes.

        The value is None if the attribute is numeric, such as an age.
        """
        return None if self.is_number else max(map(len, self.values))


@dataclass(frozen=True)
class Parts:
    """The training, validation and test texts that an attack uses.

    Args:
        texts: the texts, as three tuples for train, valid and test.
        rows: positions of the used texts in the corpus, as three arrays.
        truth: true values of the used texts, as three arrays of shape (n, attributes). An entry is
            the position of a value in `Target.values`. If the attribute is a number, an entry is
            the number.
        labels: main labels of the used texts, as three arrays. None if the corpus has no labels.
        left_out: dictionary: a key is a reason, and its value is the number of texts that are left
            out for this reason.
    """

    texts: tuple[tuple[str, ...], ...]
    rows: tuple[Ints, ...]
    truth: tuple[Any, ...]
    labels: tuple[npt.NDArray[Any], ...] | None
    left_out: dict[str, int]


def target_parts(corpus: Any, attribute: Any, kind: Kind | None) -> tuple[Target, Parts]:
    """Return the attributes to infer from texts, and the texts to use, without repeated texts.

    The function leaves out a validation text that also occurs in train, and a test text that also
    occurs in train or validation. If a text occurs several times in validation or in test, only the
    first copy is kept. Texts that differ only in letter case or white space count as equal.

    Args:
        corpus: a `Corpus` with the parts train, valid and test.
        attribute: name of an attribute of the corpus, a list of several names, or a list with the
            value of an attribute for each text.
        kind: "number" if the attribute is a number, such as an age, or "values" if each value is a
            separate class. With None, floats are numbers, and integers and strings are separate
            classes.

    Returns:
        A pair: the attributes with their values, and the selected texts.

    Raises:
        TypeError: if `corpus` or `attribute` has a wrong type.
        ValueError: if train, valid or test is missing, all texts of one of these parts have the
            same value, the corpus lacks the attribute, or `kind` is "number" and the values are
            strings.
    """
    if not isinstance(corpus, Corpus):
        # The message does not quote texts of a list, because they may be private.
        raise mistyped("corpus", "a dpcore.text.Corpus", f"a {type(corpus).__name__}")
    columns = _read_attributes(corpus, attribute)
    rows = [np.flatnonzero(np.asarray(corpus.split) == name) for name in SPLITS]
    for name, row in zip(SPLITS, rows, strict=True):
        if not row.size:
            # This raises the corpus's error about the missing part.
            getattr(corpus, name)
    kept, left_out = _select_texts([[corpus.texts[i] for i in row.tolist()] for row in rows])
    rows = [row[keep] for row, keep in zip(rows, kept, strict=True)]
    values = [_sorted_categories(name, column, kind) for name, column in columns.items()]
    target = Target(
        tuple(columns), tuple(tuple(column_values.tolist()) for column_values in values)
    )
    if target.is_joint and not target.all_binary:
        other = next(
            name
            for name, column_values in zip(columns, values, strict=True)
            if len(column_values) != 2
        )
        need = "of two values each where there are several (infer any other one alone)"
        raise invalid("attribute", need, other)
    codes: Any = np.stack(
        [column.astype(np.float64) if target.is_number else np.searchsorted(column_values, column)
         for column_values, column in zip(values, columns.values(), strict=True)], axis=1,
    )  # fmt: skip
    truth = tuple(codes[row] for row in rows)
    _require_two_values(target, truth, left_out)
    texts = tuple(tuple(corpus.texts[i] for i in row.tolist()) for row in rows)
    labels = None if corpus.labels is None else tuple(corpus.labels[row] for row in rows)
    return target, Parts(texts, tuple(rows), truth, labels, left_out)


def _read_attributes(corpus: Corpus, attribute: Any) -> dict[str, npt.NDArray[Any]]:
    """Return a dictionary from the name of each inferred attribute to its values, one per text."""
    if isinstance(attribute, str):
        return {attribute: corpus.attribute(attribute)}
    requirement = "the name of an attribute, several names, or a column with a value for each text"
    if isinstance(attribute, (bytes, dict)) or not has_all(attribute, "__len__"):
        raise mistyped("attribute", requirement, attribute)
    entries = list(attribute)
    words = bool(entries) and all(isinstance(entry, str) for entry in entries)
    are_names = words and set(entries) <= set(corpus.attributes or ())
    # A list of strings that cannot be a column is a list of names, some of them misspelt.
    if are_names or (
        words and isinstance(attribute, (list, tuple)) and len(entries) != len(corpus)
    ):
        if len(set(entries)) < len(entries):
            raise invalid("attribute", "names that differ", attribute)
        return {name: corpus.attribute(name) for name in entries}
    if len(entries) != len(corpus):
        problem = f"{len(entries):,} values for {len(corpus):,} texts"
        raise invalid("attribute", requirement, problem)
    made = Corpus(["-"] * len(corpus), attributes={_UNNAMED_COLUMN: entries})
    return {_UNNAMED_COLUMN: made.attribute(_UNNAMED_COLUMN)}


def _sorted_categories(name: str, column: npt.NDArray[Any], kind: Kind | None) -> npt.NDArray[Any]:
    """Return the sorted different values of an attribute; an empty array for a number."""
    is_number = column.dtype.kind == "f"
    if kind is not None:
        is_number = choice("kind", kind, get_args(Kind)) == "number"
    if is_number and column.dtype.kind not in "fi":
        raise invalid("kind", f"'values' or None for {name!r}, whose values are strings", kind)
    values = np.unique(column)
    if len(values) < 2:
        raise invalid(f"attribute {name!r}", "of two values at least", values.tolist())
    return values[:0] if is_number else values


def _select_texts(
    texts: Sequence[Sequence[str]],
) -> tuple[list[npt.NDArray[np.bool_]], dict[str, int]]:
    """Return masks of the texts to use, and the number of texts left out for each reason."""
    train, *others = ([fold_case_and_blanks(text) for text in part] for part in texts)
    kept, left_out, earlier_texts = [np.ones(len(train), bool)], dict[str, int](), set(train)
    for part, earlier, keys in zip(SPLITS[1:], ("train", "train or valid"), others, strict=True):
        is_known = np.array([key in earlier_texts for key in keys], bool)
        first = {key: row for row, key in reversed(list(enumerate(keys)))}
        is_first = np.array([first[key] == row for row, key in enumerate(keys)], bool)
        kept.append(~is_known & is_first)
        left_out[f"{part}, also in {earlier}"] = int(is_known.sum())
        left_out[f"{part}, repeated"] = int((~is_known & ~is_first).sum())
        earlier_texts |= set(keys)
    return kept, left_out


def _require_two_values(target: Target, truth: tuple[Any, ...], left_out: dict[str, int]) -> None:
    """Raise an error if a part has no texts, or only one value of an attribute."""
    for part, codes in zip(SPLITS, truth, strict=True):
        gone = ", ".join(
            f"{many:,} left out as {why.partition(', ')[2]}"
            for why, many in left_out.items()
            if why.startswith(f"{part},") and many
        )
        for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
            values_present = np.unique(codes[:, column]).tolist()
            values_present = (
                values_present if target.is_number else [values[code] for code in values_present]
            )
            if len(values_present) < 2:
                text = (
                    f"attribute {name!r} must be of two values at least in {part}, got "
                    f"{show(values_present)} in {len(codes):,} texts{f' ({gone})' if gone else ''}"
                )
                raise tag_error(ValueError(text), "attribute")


def floor_answers(
    truth: Ints, cells: npt.NDArray[Any], asked: npt.NDArray[Any], target: Target, measure: str
) -> Ints:
    """Predict attributes as well as possible from only the cell (a set of texts) of each text.

    A cell is a set of texts, for example all texts with the same main label. The predictions are
    learned on the training texts. All texts of a cell get the same prediction:

    - For accuracy, and for F1 of an attribute with more than two values, the prediction is the most
      frequent value in the cell.
    - For F1 of attributes with two values, the function computes the share of positive training
      texts for each pair of a cell and an attribute. The prediction is positive for the k pairs
      with the largest shares. The number k maximises F1 on the training texts (Lipton, Elkan and
      Naryanaswamy, 2014).

    If no training text is in a cell, the prediction is learned on all training texts.

    Args:
        truth: codes of the true values of the training texts, shape (n, attributes).
        cells: cell of each training text: its main label, or a constant if all texts are in one
            cell.
        asked: cells of the texts to predict, shape (m,).
        target: the attributes to predict.
        measure: "accuracy" or "f1".

    Returns:
        Codes of the predicted values, shape (m, attributes).

    Example:
        >>> target = Target(("a",), ((0, 1),))
        >>> truth = np.array([[1], [1], [0], [0], [0]])
        >>> labels = np.array(["x", "x", "x", "y", "y"])
        >>> floor_answers(truth, labels, np.array(["x", "y", "z"]), target, "accuracy").ravel()
        array([1, 0, 0])
    """
    count, place, is_present = _count_and_number_cells(cells, asked)
    each = _best_answer_by_cell(truth, place, count, target, measure)
    whole = _best_answer_by_cell(truth, np.zeros_like(place), 1, target, measure)
    return np.vstack([each, whole])[is_present]


def _count_and_number_cells(cells: Any, asked_cells: Any) -> tuple[int, Ints, Ints]:
    """Return cell numbers; a cell is a set of texts, such as those with the same main label.

    Returns:
        The number of different cells in train; the cell number of each training text; and the cell
        number of each text in `asked_cells`. All cells that do not occur in train get the next free
        number.
    """
    distinct, place = np.unique(cells, return_inverse=True)
    places = np.searchsorted(distinct, asked_cells).clip(max=len(distinct) - 1)
    return len(distinct), place, np.where(distinct[places] == asked_cells, places, len(distinct))


def positive_shares(
    truth: Any, cells: Any, asked_cells: Any, statistic: Callable[[Any], Any] = np.mean
) -> npt.NDArray[np.float64]:
    """Return, for each text, the share of positive texts among the training texts in the same cell.

    A cell is a set of texts, for example all texts with the same main label.

    Args:
        truth: true values of the training texts, 0 or 1, or numbers, shape (n, 1).
        cells: cell of each training text, such as its main label.
        asked_cells: cells of the texts for which the share is computed. If a cell has no training
            text, the result is the share over all training texts.
        statistic: function, such as `np.median`, that computes the result from the true values in a
            cell. The default is the mean, which equals the share for true values 0 and 1.

    Example:
        >>> truth = np.array([[1], [1], [0], [0]])
        >>> positive_shares(truth, np.array(list("xxxy")), np.array(list("xyz"))).round(2)
        array([0.67, 0.  , 0.5 ])
    """
    count, place, is_present = _count_and_number_cells(cells, asked_cells)
    groups = [truth[place == cell, 0] for cell in range(count)]
    answers: npt.NDArray[np.float64] = np.array([*map(statistic, groups), statistic(truth[:, 0])])
    return answers[is_present]


def prior_ranks(truth: Ints, cells: Any, asked_cells: Any, true_values: Ints, values: int) -> Ints:
    """Return, for each text, the rank of its true value by frequency in the cell of the text.

    A cell is a set of texts, for example all texts with the same main label. Rank 1 is the value
    that is most frequent among the training texts in the cell of the text.

    Args:
        truth: codes of the true values of the training texts, shape (n, 1).
        cells: cell of each training text, such as its main label.
        asked_cells: cells of the texts that get a rank, shape (m,). If a cell has no training text,
            the frequencies are from all training texts.
        true_values: codes of the true values of these m texts, shape (m,).
        values: number of values. Values that do not occur in the training texts have one common
            rank, after all other values.

    Example:
        >>> truth, cells = np.array([[0], [0], [2]]), np.array(list("xxy"))
        >>> prior_ranks(truth, cells, np.array(list("xyz")), np.array([0, 0, 1]), 3)
        array([1, 2, 3])
    """
    count, place, is_present = _count_and_number_cells(cells, asked_cells)
    counts = np.zeros((count + 1, values), np.int64)
    np.add.at(counts, (place, truth[:, 0]), 1)
    counts[-1] = counts[:-1].sum(axis=0)
    # If frequencies in a cell are equal, the first value comes first, as for the majority.
    return ranks_in_rows(counts.astype(np.float64), counts[-1] > 0)[is_present, true_values]


def ranks_in_rows(scores: npt.NDArray[np.float64], can_be_predicted: npt.NDArray[np.bool_]) -> Ints:
    """Return the rank of every value in each row of scores; rank 1 has the highest score.

    If two scores of a row are equal, the value in the column further left comes first.

    Args:
        scores: scores of all values for each text, shape (n, values).
        can_be_predicted: mask of the columns whose values can be predicted. All other values have
            one common rank, after the values that can be predicted.

    Example:
        >>> ranks_in_rows(np.array([[0.5, 0.0, 0.5, 0.9]]), np.array([True, True, True, False]))
        array([[1, 3, 2, 4]])
    """
    order = np.argsort(-np.where(can_be_predicted, scores, -np.inf), axis=1, kind="stable")
    ranks = np.empty(scores.shape, np.int64)
    np.put_along_axis(ranks, order, np.arange(1, scores.shape[1] + 1)[np.newaxis], axis=1)
    return np.minimum(ranks, int(can_be_predicted.sum()) + 1)


def _best_answer_by_cell(truth: Ints, place: Any, cells: int, target: Target, measure: str) -> Ints:
    """Return the best answer for each cell (a set of texts), shape (cells, attributes)."""
    counts = np.zeros((cells, truth.shape[1], max(map(len, target.values))), np.int64)
    np.add.at(counts, (place[:, np.newaxis], np.arange(truth.shape[1]), truth), 1)
    if measure == "accuracy" or not target.all_binary:
        return np.asarray(counts.argmax(axis=2), np.int64)
    positive, size = counts[:, :, 1].ravel(), counts.sum(axis=2).ravel()
    order = np.argsort(-positive / size, kind="stable")
    f1 = 2.0 * np.cumsum(positive[order]) / (np.cumsum(size[order]) + positive.sum())
    chosen = np.zeros(positive.size, np.int64)
    chosen[order[: int(np.argmax(f1)) + 1]] = 1
    return chosen.reshape(cells, -1)
