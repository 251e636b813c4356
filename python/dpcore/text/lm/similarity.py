"""Distances between two models: their weights, hidden states and next-word distributions.

Two models with the same initial weights are close if training has changed the weights little.
Therefore compare a distance with a reference: the distance of two models that are trained on
disjoint halves of one data set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...errors import instance, invalid, numeric
from ...mechanisms.texts import as_texts
from ...records import Floats, Record
from ...report.plain import encode_value
from ...report.rows import align_rows
from ...report.shown import list_shown_fields
from ...suggestions import explain_argument_errors
from .model import NextWordModel

_MIN_SINGULAR_VALUE: Final = 1e-10
"""Smallest singular value of a direction in PWCCA, as a share of the largest singular value."""

_MIN_SPREAD: Final = 1e-12
"""Rows count as equal up to rounding if no entry differs from its column mean by more than this
share of the largest entry."""

_DISTANCE_HEADER: Final = ("", "CKA", "PWCCA", "Procrustes", "rows x columns", "directions read")
_BASELINE_NOTE: Final = (
    "note: PWCCA has the weights of a. A small distance can come from a common start: compare it "
    "with that of two models of disjoint halves of one set"
)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Distances(Record):
    """Three distances between two arrays of vectors (representations): CKA, PWCCA and Procrustes.

    Attributes:
        cka: 1 - linear CKA, from 0 to 1. This distance does not change if an array is multiplied by
            a number or by an orthogonal matrix. The distance also does not change if the same
            vector is added to all rows of an array.
        pwcca: 1 - projection-weighted mean of the canonical correlations, from 0 to 1. The weights
            come from the first array. Therefore the order of the arrays matters. This distance does
            not change if the second array is multiplied by an invertible matrix. The distance does
            not change if an array is multiplied by a number. The distance also does not change if
            the same vector is added to all rows of an array.
        procrustes: squared Frobenius distance between the normalised arrays, from 0 to 2, after one
            array is multiplied by the best orthogonal matrix. Like `cka`, this distance does not
            change if an array is multiplied by a number or by an orthogonal matrix, or if the same
            vector is added to all rows of an array.
        rows: number of rows of each array.
        columns: number of columns of the first array, and number of columns of the second array.
        directions: for each array, the number of singular directions that PWCCA uses. PWCCA uses a
            direction if its singular value is at least 1e-10 times the largest singular value.
    """

    cka: float
    pwcca: float
    procrustes: float
    rows: int
    columns: tuple[int, int]
    directions: tuple[int, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of these distances as a dictionary of plain data."""
        return {name: encode_value(value) for name, value in list_shown_fields(self)}

    def __str__(self) -> str:
        """Return a table with the three distances."""
        return align_rows([_DISTANCE_HEADER, _list_cells("arrays", self)], left=())


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Closeness(Record):
    """Distances between two next-word models: their weights, hidden states and predictions.

    Attributes:
        decoder: distances between the weights of the two output layers. The arrays have one row per
            word of the vocabulary.
        states: distances between the hidden states of the two models. The arrays have one row per
            context (beginning of a text). None if the models were compared without texts.
        kl: the mean of KL(a || b) over all contexts, and the mean of KL(b || a) over all contexts,
            in nats. Here a and b are the next-word distributions of the first and the second model.
            None if the models were compared without texts.
    """

    decoder: Distances
    states: Distances | None
    kl: tuple[float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return all distances between the two models as a dictionary of plain data."""
        states = None if self.states is None else self.states.to_dict()
        return {"decoder": self.decoder.to_dict(), "states": states, "kl": encode_value(self.kl)}

    def __str__(self) -> str:
        """Return a table of the distances, the divergences, and a note on the reference value."""
        rows = [_DISTANCE_HEADER, _list_cells("decoder", self.decoder)]
        rows += [] if self.states is None else [_list_cells("states", self.states)]
        lines = ["How close two next-word models are (0: as one model)", align_rows(rows, left=())]
        if self.kl is not None:
            forth, back = self.kl
            lines.append(f"mean KL of the next word: {forth:.4g} a to b, {back:.4g} b to a")
        return "\n".join([*lines, _BASELINE_NOTE])


@explain_argument_errors
def representation_distances(a: Any, b: Any) -> Distances:
    """Compute three distances between two arrays of vectors (representations) of the same words.

    First the columns of each array are centred, and the array is divided by its Frobenius norm. Let
    ``u_a`` and ``u_b`` be the left singular vectors of the arrays, and let ``|.|`` be the Frobenius
    norm. The distances are:

    - CKA: ``1 - |b' a|^2 / (|a' a| |b' b|)``;
    - Procrustes: ``2 - 2`` times the sum of the singular values of ``a' b``;
    - PWCCA: ``1 - sum(w r)``. Here ``r`` are the canonical correlations, which are the singular
      values of ``u_a' u_b``. Let ``h`` be the canonical directions of the first array. The weights
      ``w`` are proportional to the sum of ``|h' c|`` over the columns ``c`` of the first array. If
      the first array is multiplied by an orthogonal matrix, the weights change. A singular
      direction is left out if its singular value is below 1e-10 times the largest singular value.
      There are as many weights as canonical correlations.

    Args:
        a: first array, shape `(n, d)` with n > d. Rows are words or contexts, and columns are
            neurons.
        b: second array, shape `(n, e)` with n > e. The rows are the same words or contexts as in
            `a`.

    Returns:
        The three distances.

    Raises:
        TypeError: if an array does not contain real numbers.
        ValueError: for one of these reasons:

            - an array is not a matrix of finite numbers;
            - an array does not have more rows than columns;
            - the rows of an array are all equal;
            - the arrays have different numbers of rows.

    Source:
        Kornblith, Norouzi, Lee and Hinton (2019), for CKA. Morcos, Raghu and Bengio (2018), for
        PWCCA. Ding, Denain and Steinhardt (2021), for all three distances.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> a = rng.normal(size=(100, 3))
        >>> turned = a @ np.linalg.qr(rng.normal(size=(3, 3)))[0] + 5.0
        >>> found = representation_distances(a, turned)
        >>> max(found.cka, found.pwcca, found.procrustes) < 1e-10
        True
    """
    first, second = _centre_and_scale("a", a), _centre_and_scale("b", b)
    if len(first) != len(second):
        raise invalid("b", f"an array of as many rows as a, {len(first):,}", second.shape)
    cross = np.linalg.svd(first.T @ second, compute_uv=False)
    (u, s, v), (other, t, _) = _truncated_svd(first), _truncated_svd(second)
    # The Frobenius norm of a' a equals the norm of the squared singular values of a.
    cka = 1.0 - float(cross @ cross) / float(np.linalg.norm(s**2) * np.linalg.norm(t**2))
    directions, correlations, _ = np.linalg.svd(u.T @ other, full_matrices=False)
    weights = np.abs((directions.T * s) @ v).sum(axis=1)
    pwcca = 1.0 - float(weights @ correlations / weights.sum())
    procrustes = 2.0 - 2.0 * float(cross.sum())
    # The distances cannot be negative. Rounding makes equal arrays differ by about 1e-16.
    cka, pwcca, procrustes = (max(0.0, value) for value in (cka, pwcca, procrustes))
    columns = first.shape[1], second.shape[1]
    return Distances(cka, pwcca, procrustes, len(first), columns, (len(s), len(t)))


@explain_argument_errors
def closeness(a: NextWordModel, b: NextWordModel, texts: Any = None) -> Closeness:
    """Compute distances between two next-word models: weights, states and next-word distributions.

    Args:
        a: first model. PWCCA (projection-weighted canonical correlation analysis) is a weighted
            mean. The weights of this mean come from the first model.
        b: second model, with the same vocabulary as `a`.
        texts: texts that are not training texts. Hidden states and next-word distributions are
            compared on the beginnings of these texts. With None, only the weights of the output
            layers are compared.

    Returns:
        The distances. With texts, the result also has the mean KL divergences between the next-word
        distributions.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - the vocabularies have different words, or the same words in another order;
            - the models have different values of `length` or `masked`;
            - the LSTM state of a model has at least as many entries as the vocabulary has words;
            - the weights of an output layer have only equal rows, or are not finite;
            - the number of contexts (beginnings of texts) is not above the number of entries of the
              LSTM state.

    Source:
        Gusain and Leith (2025), supplement, figure 5, for the output layers of two models.

    Example:
        >>> from dpcore.text import generated, lm
        >>> corpus = generated("intents", 300, rng=1)
        >>> a = lm.fit(corpus, corpus.valid, hidden=16, epochs=2, rng=1)
        >>> b = lm.fit(corpus, corpus.valid, hidden=16, epochs=2, rng=2)
        >>> found = lm.closeness(a, b, corpus.test.texts)
        >>> found.decoder.procrustes > 0.5, lm.closeness(a, a).decoder.procrustes < 1e-10
        (True, True)
    """
    _require_same_words(instance("a", a, NextWordModel), instance("b", b, NextWordModel))
    decoder = representation_distances(a.decoder_weights, b.decoder_weights)
    if texts is None:
        return Closeness(decoder, None, None)
    given_texts = as_texts("texts", texts)
    if (a.length, a.masked) != (b.length, b.masked):
        needed = f"a model that reads {a.length:,} words of a text and masks {a.masked!r}, as a"
        raise invalid("b", needed, f"{b.length:,} and {b.masked!r}")
    states = a.hidden_states(given_texts), b.hidden_states(given_texts)
    if len(states[0]) <= max(a.hidden, b.hidden):
        needed = f"texts with more contexts than hidden entries, {max(a.hidden, b.hidden):,}"
        raise invalid("texts", needed, f"{len(states[0]):,} contexts")
    sums = np.zeros(2)
    for p, q in zip(
        a.log_probabilities(given_texts), b.log_probabilities(given_texts), strict=True
    ):
        sums += float((np.exp(p) * (p - q)).sum()), float((np.exp(q) * (q - p)).sum())
    # By Gibbs' inequality, a mean below 0 is a rounding error.
    kl = np.maximum(sums / len(states[0]), 0.0).tolist()
    return Closeness(decoder, representation_distances(*states), (kl[0], kl[1]))


def _require_same_words(a: NextWordModel, b: NextWordModel) -> None:
    """Raise an error if two models differ in words or word order, or have too few words."""
    if a.vocabulary != b.vocabulary:
        mine, theirs = a.vocabulary.words, b.vocabulary.words
        if sorted(mine) == sorted(theirs):
            raise invalid("b", "a model with the words of a in the same order", "another order")
        common = f"{len(theirs):,} words, {len({*mine} & {*theirs}):,} of them in common"
        raise invalid("b", f"a model with the vocabulary of a, {len(mine):,} words", common)
    for name, model in (("a", a), ("b", b)):
        if model.hidden >= model.rows.size:
            needed = f"a model with fewer hidden entries than words, {model.rows.size:,}"
            raise invalid(name, needed, model.hidden)


def _centre_and_scale(name: str, matrix: Any) -> Floats:
    """Return a copy of an array with centred columns and Frobenius norm 1."""
    requirement = "a matrix of finite numbers with more rows than columns"
    array = numeric(name, requirement, matrix)
    if array.ndim != 2 or not array.size or not len(array) > array.shape[1]:
        raise invalid(name, requirement, array.shape)
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        bad = np.count_nonzero(~np.isfinite(array))
        raise invalid(name, requirement, f"{bad:,} entries that are not finite")
    # The array is divided first, so neither the mean nor a square overflows.
    array /= np.abs(array).max() or 1.0
    array -= array.mean(axis=0)
    if np.abs(array).max() <= _MIN_SPREAD:
        raise invalid(name, "an array whose rows differ", "equal rows")
    array /= np.linalg.norm(array)
    return array


def _truncated_svd(array: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the singular value decomposition, without directions of tiny singular values."""
    u, s, v = np.linalg.svd(array, full_matrices=False)
    kept = s >= _MIN_SINGULAR_VALUE * s[0]
    return u[:, kept], s[kept], v[kept]


def _list_cells(name: str, distances: Distances) -> tuple[str, ...]:
    values = (f"{value:.4f}" for value in (distances.cka, distances.pwcca, distances.procrustes))
    sizes = distances.columns, distances.directions
    columns, directions = (", ".join(map(str, dict.fromkeys(both))) for both in sizes)
    return name, *values, f"{distances.rows:,} x {columns}", directions
