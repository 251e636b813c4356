"""Attackers that know the noise distribution and the noiseless vectors of training texts."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...calibration import L2Laplace
from ...mechanisms import Gaussian, Laplace
from ...mechanisms.declarations import get_or_default
from ...mechanisms.texts import bound_object, relative_gaps, relative_tolerance
from ...packages import has_all
from ...records import get_attribute
from .attackers import Attacker, Vectors, check_vectors
from .targets import Target

_MAX_BLOCK_ENTRIES: Final = 2**21
_COMPARED_TEXTS: Final = 8
"""Number of texts whose clean vectors are computed twice, to check that they are not random."""
LIKELIHOOD: Final = "likelihood"
"""Name of the attacker in reports."""


def compute_log_density(law: Any, outputs: Vectors, clean: Vectors) -> Vectors:
    """Compute the log density of each noisy vector, given each possible vector without noise.

    The function leaves out additive terms that are the same for all vectors without noise.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        outputs: noisy vectors, shape (n, d).
        clean: vectors without noise, shape (m, d).

    Returns:
        Array of shape (n, m): one log density for each pair of a noisy vector and a vector without
        noise.

    Example:
        >>> compute_log_density(Laplace(0.5), np.ones((1, 2)), np.array([[0.0, 0.0], [1.0, 2.0]]))
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
    """Classifier that chooses the attribute value under which a noisy vector is most likely.

    The classifier knows the distribution of the noise and the noiseless vectors of the training
    texts. Let p be the density of the noise. Let v_1, ..., v_n be the noiseless vectors of the n
    training texts that have a certain value. The likelihood of this value for a noisy vector y is
    ``1/n sum_i p(y - v_i)``. The scores are:

    - for one attribute with two values: the log of the likelihood ratio, with the likelihood of the
      second value in the numerator;
    - for several attributes: for each attribute, the log of the posterior odds of the second value;
    - for one attribute with more than two values: the log of the posterior probability of each
      value, up to a constant.

    Posterior probabilities use the shares of the values among the training texts as the prior.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        clean: noiseless vectors of the training texts, shape (n, d).

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
        """Store `truth`, the attribute values of the training texts, and ignore `rows`."""
        self.truth = truth
        self.classes_ = np.unique(truth)
        return self

    def _log_density_blocks_by_training_text(self, rows: Vectors) -> Iterator[Vectors]:
        size = max(1, _MAX_BLOCK_ENTRIES // len(self.clean))
        for start in range(0, len(rows), size):
            yield compute_log_density(self.law, rows[start : start + size], self.clean)

    def _log_density_sums_per_training_group(self, rows: Vectors, groups: Sequence[Any]) -> Vectors:
        """Return the log density sum of each group of training texts, shape (n, groups)."""
        return np.concatenate(
            [
                np.stack([_add_logs(block[:, group]) for group in groups], axis=1)
                for block in self._log_density_blocks_by_training_text(rows)
            ]
        )

    def decision_function(self, rows: Vectors) -> Vectors:
        """Return the scores of noisy vectors: log likelihood ratios or log posterior probabilities.

        The shape is (n,) for one attribute with two values, (n, values) for one attribute with more
        values, and (n, attributes) for several attributes.
        """
        columns = self.truth.T if self.truth.ndim == 2 else self.truth[np.newaxis]
        values = self.classes_.tolist() if len(columns) == 1 else [0, 1]
        groups = [np.flatnonzero(column == value) for column in columns for value in values]
        scores = self._log_density_sums_per_training_group(rows, groups)
        if len(values) != 2:
            return scores
        scores = scores[:, 1::2] - scores[:, ::2]
        if len(columns) > 1:
            return scores
        return np.asarray(scores[:, 0] - np.log(len(groups[1]) / len(groups[0])))

    def predict(self, rows: Vectors) -> npt.NDArray[Any]:
        """Return for each noisy vector the attribute value with the highest score."""
        scores = self.decision_function(rows)
        places = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        return np.asarray(self.classes_[places])


class LikelihoodMean:
    """Regressor that predicts a number from a noisy vector, such as the age of an author.

    The prediction is the weighted mean of the numbers of the training texts. The weight of a
    training text is the density of the noisy vector, given the noiseless vector of the training
    text.

    Args:
        law: distribution of the noise: `Laplace`, `Gaussian` or `L2Laplace`.
        clean: noiseless vectors of the training texts, shape (n, d).
    """

    def __init__(self, law: Any, clean: Vectors) -> None:
        self._inner = Likelihood(law, clean)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return a copy that uses the same array of clean vectors."""
        return type(self)(self._inner.law, self._inner.clean)

    def fit(self, rows: Any, truth: npt.NDArray[Any]) -> Self:
        """Store `truth`, the numbers of the training texts, and ignore `rows`."""
        self._inner.fit(rows, truth)
        return self

    def predict(self, rows: Vectors) -> npt.NDArray[np.float64]:
        """Return the predicted number for each noisy vector, shape (n,)."""
        means = list[Vectors]()
        for block in self._inner._log_density_blocks_by_training_text(rows):
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
        private: encoder with noise inside the object, if the object is a model.
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
    """Return the noise distribution of an encoder, and a function that encodes without noise.

    The result is a pair for these encoders:

    - an object with a method `clean(texts)` and an attribute `noise`. The attribute is a noise
      layer of `dpcore.torch`, or a distribution: `Laplace`, `Gaussian` or `L2Laplace`;
    - a model of `dpcore.text` that contains an encoder of this kind;
    - a torch `Sequential` whose last module is a noise layer.

    The result is None for all other encoders. The result is also None for encoders that are random
    even without this noise.

    Args:
        encode: the encoder, or a method of the encoder.
    """

    def read(value: Any, name: str) -> Any:
        return get_attribute(_EncoderAttributes, value, name)

    owner = encode if bound_object(encode) is None else bound_object(encode)
    holder = read(owner, "private") or owner
    clean, noise = get_or_default(owner, "clean"), read(holder, "noise")
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
    """Return True if the classifier of an attacker computes likelihoods from the noise density."""
    return isinstance(attacker.estimator, (Likelihood, LikelihoodMean))


def split_likelihood(attackers: Any) -> tuple[Any, bool]:
    """Separate "likelihood" from the other entries of the argument `attackers` of `infer`.

    Returns:
        A pair. The first entry is the argument without "likelihood". The second entry is True if
        the argument contains "likelihood".

    Example:
        >>> split_likelihood(["likelihood", 1]), split_likelihood("likelihood"), split_likelihood(1)
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


def noise_law_attacker(
    encode: Any, texts: Sequence[str], positions: Sequence[int], width: int, target: Target
) -> tuple[Attacker, ...]:
    """Return a tuple with one attacker that uses the noise density; () if the noise is unknown.

    Args:
        encode: the encoder, or a method of the encoder.
        texts: the training texts, which are encoded without noise.
        positions: positions of the texts in the corpus, for error messages.
        width: number of columns of the noisy vectors. The result is () if the vectors without noise
            have another number of columns.
        target: the attributes to infer.
    """
    noise = find_noise(encode)
    if noise is None:
        return ()
    law, clean = noise
    vectors = check_vectors(clean(list(texts)), positions, "clean(texts)")
    compared = slice(0, _COMPARED_TEXTS)
    second = check_vectors(clean(list(texts[compared])), positions[compared], "clean(texts)")
    if vectors.shape[1] != width or second.shape[1] != width:
        return ()
    if relative_gaps(vectors[compared], second).max() > relative_tolerance(None, "float16"):
        # An encoder in training mode: its vectors are random even without the noise.
        return ()
    kind = LikelihoodMean if target.is_number else Likelihood
    return (Attacker(kind(law, vectors), name=LIKELIHOOD),)
