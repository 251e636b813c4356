"""Attackers who know the noise distribution and the vectors without noise of training texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...calibration import L2Laplace
from ...mechanisms import Gaussian, Laplace
from ...mechanisms.declarations import mechanism_attribute
from ...mechanisms.texts import owner_of, relative_distances, relative_tolerance
from ...packages import has_all
from ...records import attribute_of
from .attackers import Attacker, Vectors, check_vectors
from .targets import Target

_MAX_BLOCK_ENTRIES: Final = 2**21
_COMPARED_TEXTS: Final = 8
"""Number of texts whose clean vectors are computed twice, to check that they are not random."""
LIKELIHOOD: Final = "likelihood"
"""Name of the attacker in reports."""


def measure_density(law: Any, outputs: Vectors, clean: Vectors) -> Vectors:
    """Compute the log density of each noisy vector, given each vector without noise.

    The function leaves out a term that does not depend on the vector without noise.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        outputs: noisy vectors, shape (n, d).
        clean: vectors without noise, shape (m, d).

    Returns:
        Log densities, shape (n, m).

    Example:
        >>> measure_density(Laplace(0.5), np.ones((1, 2)), np.array([[0.0, 0.0], [1.0, 2.0]]))
        array([[-4., -2.]])
    """
    from scipy.spatial.distance import cdist

    if isinstance(law, Gaussian):
        # The squared norm of the output is the same for all clean vectors.
        squares = (clean**2).sum(axis=1) / 2.0
        return np.asarray((outputs @ clean.T - squares) / law.sigma**2)
    metric = "cityblock" if isinstance(law, Laplace) else "euclidean"
    return np.asarray(cdist(outputs, clean, metric) / -law.scale)


class Likelihood:
    """Classifier by the likelihood of a noisy vector, given the clean vectors of training texts.

    Let p be the density of the noise, and let v_1, ..., v_n be the clean vectors of the n training
    texts with a value. The likelihood of this value is ``1/n sum_i p(output - v_i)``. The scores
    are:

    - for one attribute of two values: the log of the likelihood ratio, with the second value in the
      numerator;
    - for several attributes: the log of the posterior odds of each attribute;
    - for more than two values: the log of the posterior probability of each value, up to a
      constant.

    Posterior probabilities use the shares of the values among the training texts as the prior.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        clean: vectors of the training texts without noise, shape (n, d).

    Source:
        Neyman and Pearson (1933), for the likelihood ratio.

    Example:
        >>> known = Likelihood(Laplace(0.5), np.array([[0.0], [0.0], [2.0]]))
        >>> known.fit(None, np.array([0, 0, 1])).decision_function(np.array([[2.0], [-1.0]]))
        array([ 4., -4.])
    """

    learns_several = True
    """True, because the class learns several attributes at the same time."""

    def __init__(self, law: Any, clean: Vectors) -> None:
        self.law, self.clean = law, clean

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that uses the same array of clean vectors."""
        return copy.copy(self)

    def fit(self, rows: Any, truth: npt.NDArray[Any]) -> Self:
        """Store the attribute values of the training texts. The argument `rows` is ignored."""
        self.truth = truth
        self.classes_ = np.unique(truth)
        return self

    def _blocks(self, rows: Vectors) -> Iterator[Vectors]:
        size = max(1, _MAX_BLOCK_ENTRIES // len(self.clean))
        for start in range(0, len(rows), size):
            yield measure_density(self.law, rows[start : start + size], self.clean)

    def _score_groups(self, rows: Vectors, groups: Sequence[Any]) -> Vectors:
        """Return the log of the sum of densities over each group of training texts, (n, groups)."""
        return np.concatenate(
            [
                np.stack([_add_logs(block[:, group]) for group in groups], axis=1)
                for block in self._blocks(rows)
            ]
        )

    def decision_function(self, rows: Vectors) -> Vectors:
        """Return log likelihood ratios or log posterior probabilities of noisy vectors.

        The shape is (n,) for one attribute of two values, (n, values) for more values, and
        (n, attributes) for several attributes.
        """
        columns = self.truth.T if self.truth.ndim == 2 else self.truth[np.newaxis]
        values = self.classes_.tolist() if len(columns) == 1 else [0, 1]
        groups = [np.flatnonzero(column == value) for column in columns for value in values]
        scores = self._score_groups(rows, groups)
        if len(values) != 2:
            return scores
        scores = scores[:, 1::2] - scores[:, ::2]
        if len(columns) > 1:
            return scores
        return np.asarray(scores[:, 0] - np.log(len(groups[1]) / len(groups[0])))

    def predict(self, rows: Vectors) -> npt.NDArray[Any]:
        """Return the value with the highest score for each noisy vector."""
        scores = self.decision_function(rows)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        return np.asarray(self.classes_[places])


class LikelihoodMean:
    """Regressor that predicts a number by a weighted mean of the numbers of the training texts.

    The weight of a training text is the likelihood of the noisy vector, given the clean vector of
    this text.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        clean: vectors of the training texts without noise, shape (n, d).
    """

    def __init__(self, law: Any, clean: Vectors) -> None:
        self._inner = Likelihood(law, clean)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that uses the same array of clean vectors."""
        return type(self)(self._inner.law, self._inner.clean)

    def fit(self, rows: Any, truth: npt.NDArray[Any]) -> Self:
        """Store the numbers of the training texts. The argument `rows` is ignored."""
        self._inner.fit(rows, truth)
        return self

    def predict(self, rows: Vectors) -> Vectors:
        """Return the weighted mean for each noisy vector, shape (n,)."""
        means = list[Vectors]()
        for block in self._inner._blocks(rows):
            weights = np.exp(block - block.max(axis=1, keepdims=True))
            means.append(weights @ self._inner.truth / weights.sum(axis=1))
        return np.concatenate(means)


def _add_logs(logs: Vectors) -> Vectors:
    """Return the log of the sum of exponentials in each row; -1e300 for rows without entries."""
    if not logs.shape[1]:
        return np.full(len(logs), -1e300)
    largest = logs.max(axis=1)
    return np.asarray(largest + np.log(np.exp(logs - largest[:, np.newaxis]).sum(axis=1)))


class _EncoderAttributes:
    """Attributes that an encoder with noise may have, with their defaults.

    Attributes:
        private: if the object is a model, the encoder with noise that the model contains.
        noise: noise that is added to the clean vectors: a noise layer, or an object such as
            `Laplace`.
        description: for a noise layer, the distribution of its noise, such as `Laplace`.
        encoder: encoder of the clean vectors.
        random: True if the encoder is random without the noise.
        dropout: random removal of words, which makes the encoder random.
    """

    private = noise = description = encoder = dropout = None
    random = False


def find_noise(encode: Any) -> tuple[Any, Callable[[list[str]], Any]] | None:
    """Return the noise of an encoder and its function for vectors without noise, or None.

    The function supports three forms of encoders:

    - an object with a method `clean(texts)` and an attribute `noise`. The noise is a noise layer of
      `dpcore.torch`, or `Laplace`, `Gaussian` or `L2Laplace`;
    - a model of `dpcore.text` that contains such an object;
    - a torch `Sequential` whose last module is a noise layer.

    For other encoders, and for encoders that are random without the noise, the result is None.

    Args:
        encode: the encoder, or its method.
    """

    def read(value: Any, name: str) -> Any:
        return attribute_of(_EncoderAttributes, value, name)

    owner = encode if owner_of(encode) is None else owner_of(encode)
    holder = read(owner, "private") or owner
    clean, noise = mechanism_attribute(owner, "clean"), read(holder, "noise")
    if type(owner).__name__ == "Sequential" and has_all(owner, "_modules") and len(owner) > 1:
        clean, noise = owner[:-1], owner[-1]
    try:
        law = read(noise, "description") or noise
    except NotImplementedError:
        # A noise layer defined by the user.
        return None
    is_random = read(read(holder, "encoder"), "random") is True or read(owner, "dropout")
    if type(law) not in (Laplace, Gaussian, L2Laplace) or is_random or not callable(clean):
        return None
    return law, clean


def is_likelihood(attacker: Attacker) -> bool:
    """Return True if an attacker uses the likelihood of the noise."""
    return isinstance(attacker.estimator, (Likelihood, LikelihoodMean))


def split_attackers(attackers: Any) -> tuple[Any, bool]:
    """Separate the string "likelihood" from the other attackers in the argument of `infer`.

    Returns:
        The other attackers, and True if the argument contains "likelihood". If the argument is
        None, the first entry is None, too.

    Example:
        >>> split_attackers(["likelihood", 1]), split_attackers("likelihood"), split_attackers(1)
        (([1], True), ([], True), (1, False))
    """
    entries = [attackers] if isinstance(attackers, str) else attackers
    if isinstance(entries, (list, tuple)):
        texts = [entry if isinstance(entry, str) else "" for entry in entries]
        pairs = zip(entries, texts, strict=True)
        others = [entry for entry, text in pairs if text != LIKELIHOOD]
        if len(others) < len(entries):
            return others, True
    return attackers, False


def make_likelihood(
    encode: Any, texts: Sequence[str], places: Sequence[int], width: int, target: Target
) -> tuple[Attacker, ...]:
    """Return a tuple with the likelihood attacker, or () if the noise is not known.

    Args:
        encode: the encoder, or its method.
        texts: the training texts, which are encoded without noise.
        places: positions of the texts in the corpus, for error messages.
        width: number of columns of the noisy vectors.
        target: the inferred attributes.
    """
    noise = find_noise(encode)
    if noise is None:
        return ()
    law, clean = noise
    vectors = check_vectors(clean(list(texts)), places, "clean(texts)")
    compared = slice(0, _COMPARED_TEXTS)
    second = check_vectors(clean(list(texts[compared])), places[compared], "clean(texts)")
    if vectors.shape[1] != width or second.shape[1] != width:
        return ()
    if relative_distances(vectors[compared], second).max() > relative_tolerance(None, "float16"):
        # An encoder in training mode: its vectors are random even without the noise.
        return ()
    kind = LikelihoodMean if target.is_number else Likelihood
    return (Attacker(kind(law, vectors), name=LIKELIHOOD),)
