"""Mechanisms that add noise to a word's vector and output a near word: metric Laplace, Vickrey."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Self

import numpy as np

from ... import _core
from ...errors import invalid, real
from ...records import Floats, Ints
from ...suggestions import explain_argument_errors
from .embedding import Embedding
from .mechanism import MetricMechanism, TableMechanism, nearest_squared

_MAX_BLOCK_NUMBERS: Final = 2**20
"""Approximate number of noisy vector entries in memory at once."""

_MAX_NOISE_RATIO: Final = 1e9
"""Largest ratio of the mean noise length to the longest vector. Above this ratio, all words are
equally near in float64."""

_MAX_NOISE_UNITS: Final = 38.0
"""Distance in units of 1/epsilon beyond which the noise density is below 2^-54 of its maximum."""

# Nodes and weights of double exponential quadrature on [0, 1].
_QUADRATURE_STEPS: Final = np.linspace(-3.6, 3.6, 241)
_QUADRATURE_NODES: Final = 1.0 / (1.0 + np.exp(-np.pi * np.sinh(_QUADRATURE_STEPS)))
_QUADRATURE_WEIGHTS: Final = (
    0.03 * np.pi * np.cosh(_QUADRATURE_STEPS) * _QUADRATURE_NODES * (1.0 - _QUADRATURE_NODES)
)


class NoisyMechanism(MetricMechanism):
    """Base class of mechanisms that add noise to a word vector and output a word near the result.

    The noise z has a density proportional to ``exp(-epsilon norm2(z))``, with the Euclidean norm
    norm2. The noisy vector satisfies the claimed epsilon per unit of distance. The choice of a word
    near the noisy vector cannot increase the privacy loss. If vectors have more than one dimension,
    the output probabilities are not known. Reports on texts then show upper bounds that are
    computed from the noise, or estimates from random outputs. For one-dimensional vectors, the
    constructor returns an instance of a subclass whose output probabilities are known.
    """

    def __new__(cls, vectors: Any = None, *others: Any, **named: Any) -> Self:
        """Create an instance of the class, or of its subclass for one-dimensional vectors."""
        is_line = isinstance(vectors, Embedding) and vectors.dim == 1
        kind: type[Self] = _LINE_MECHANISMS.get(cls, cls) if is_line else cls
        return super().__new__(kind)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        least = self.vectors.dim / (_MAX_NOISE_RATIO * float(np.abs(self.vectors.vectors).max()))
        if self.epsilon < least:
            requirement = f"at least {least:.3g}: longer noise exceeds the precision of float64"
            raise invalid("epsilon", requirement, self.epsilon)

    def _draw(self, inputs: Ints, size: int, seed: int) -> Ints:
        words = len(self.vectors)
        out = np.empty(size, np.int64)
        strange = inputs == words
        numbers = np.where(strange, 0, inputs)
        rows = max(1, 2**17 // self.vectors.dim)
        step = rows * max(1, _MAX_BLOCK_NUMBERS // (rows * self.vectors.dim))
        for start in range(0, size, step):
            noise = out[start : start + step]
            noisy = np.empty((len(noise), self.vectors.dim))
            coins = np.empty(len(noise))
            scale, cores = 1.0 / self.epsilon, _core.cores()
            _core.add_noise(self.vectors.vectors, numbers, scale, seed, start, noisy, coins, cores)
            noise[:] = self._choose_words(noisy, coins)
        if strange.any():
            uniform = np.random.default_rng(seed).integers(0, words, size)
            out = np.where(np.resize(strange, size), uniform, out)
        return out

    def _nearest_squared(self, noisy: Floats, depth: int) -> tuple[Ints, Floats]:
        """Return the `depth` words nearest to each noisy vector, and their squared distances.

        In a tie, the word with the lower number comes first.
        """
        queries, points = np.arange(len(noisy)), len(noisy) + np.arange(len(self.vectors))
        return nearest_squared(noisy, self.vectors.vectors, queries, points, depth)

    @abstractmethod
    def _choose_words(self, noisy: Floats, coins: Floats) -> Ints:
        """Return the number of the output word for each noisy vector."""


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class MetricLaplace(NoisyMechanism):
    """Mechanism that adds noise to the vector of a word and outputs the nearest word.

    The noise z has a density proportional to ``exp(-epsilon norm2(z))``, with the Euclidean norm
    norm2. The direction of z is uniform. For vectors of `dim` entries, the length of z has the
    distribution Gamma(dim, 1/epsilon). If two words are equally near, the output is the word that
    comes first in `vectors`.

    Args:
        vectors: the words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is only one word, or two words have the same
            vector.

    Source:
        Feyisetan, Balle, Drake and Diethe (2020).

    Example:
        >>> from dpcore.text.words import Embedding
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> mech = MetricLaplace(vectors, epsilon=2.0)
        >>> np.exp(mech.log_rows(0, 1)).round(3), mech("good", 4, 1)
        (array([[0.816, 0.143, 0.041]]), array([2, 2, 2, 1]))
    """

    def _choose_words(self, noisy: Floats, coins: Floats) -> Ints:
        return self._nearest_squared(noisy, 1)[0][:, 0]


class MetricLaplaceOnLine(TableMechanism, MetricLaplace):
    """`MetricLaplace` on one-dimensional vectors, for which all output probabilities are known.

    For each output word, the noise values that lead to this word form an interval.
    """

    # Draws are the same as in other dimensions, so no table has to be prepared for them.
    _draw = NoisyMechanism._draw

    def _log_probabilities(self, numbers: Ints) -> Floats:
        # The reshape fails for vectors of more than one dimension.
        line = self.vectors.vectors.reshape(len(self.vectors))
        order = np.argsort(line)
        ends = np.concatenate([[-np.inf], (line[order][1:] + line[order][:-1]) / 2.0, [np.inf]])
        rows = np.empty((len(numbers), len(order)))
        from_word = self.epsilon * (ends - line[numbers][:, None])
        rows[:, order] = _log_laplace(from_word[:, :-1], from_word[:, 1:])
        return rows


def _log_laplace(low: Floats, high: Floats) -> Floats:
    """Return the log probability that standard Laplace noise lies between `low` and `high`."""
    # By symmetry, either the interval lies above 0, or it contains 0.
    below = high <= 0.0
    low, high = np.where(below, -high, low), np.where(below, -low, high)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        beyond = -np.maximum(low, 0.0) + np.log(-np.expm1(np.maximum(low, 0.0) - high) / 2.0)
        around = np.log(-(np.expm1(np.minimum(low, 0.0)) + np.expm1(-high)) / 2.0)
    return np.where(low >= 0.0, beyond, around)


@explain_argument_errors
@dataclass(frozen=True, eq=False, repr=False)
class Vickrey(NoisyMechanism):
    """Mechanism that adds noise to the vector of a word and outputs one of the two nearest words.

    The noise z has a density proportional to ``exp(-epsilon norm2(z))``, with the Euclidean norm
    norm2. Let d1 be the distance of the noisy vector to the nearest word, and d2 the distance to
    the second nearest word. The output is the nearest word with probability
    ``(1 - t) d2/(t d1 + (1 - t) d2)``. Otherwise the output is the second nearest word.

    Args:
        vectors: the words and their vectors.
        epsilon: privacy parameter per unit of Euclidean distance, above 0.
        t: weight of the second nearest word, in [0, 1]. With t = 0 the output is always the nearest
            word.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if epsilon or t is out of range, there is only one word, or two words have the
            same vector.

    Source:
        Xu, Aggarwal, Feyisetan and Teissier (2021).

    Example:
        >>> from dpcore.text.words import Embedding
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> mech = Vickrey(vectors, epsilon=2.0, t=0.5)
        >>> np.exp(mech.log_rows(0, 1)).round(3), mech("good", 4, 1)
        (array([[0.677, 0.28 , 0.043]]), array([2, 2, 2, 2]))
    """

    t: float = 0.5

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "t", real("t", self.t, low=0.0, high=1.0))

    def _choose_words(self, noisy: Floats, coins: Floats) -> Ints:
        words, squares = self._nearest_squared(noisy, 2)
        second = self._share_of_second(*np.sqrt(squares).T)
        return np.where(coins < second, words[:, 1], words[:, 0])

    def _share_of_second(self, first: Floats, second: Floats) -> Floats:
        """Return the probability that the output is the second nearest word."""
        weight = self.t * first
        whole = weight + (1.0 - self.t) * second
        # The whole is 0 if t = 1 and the noisy vector equals the nearest word's vector.
        return weight / np.where(whole > 0.0, whole, 1.0)


class VickreyOnLine(TableMechanism, Vickrey):
    """`Vickrey` on one-dimensional vectors, for which all output probabilities are known.

    The probabilities are computed by numerical integration over intervals of the noise.
    """

    _draw = NoisyMechanism._draw

    def _log_probabilities(self, numbers: Ints) -> Floats:
        """Integrate the probabilities of the two nearest words over intervals of the noise."""
        low, high, nearest = self._intervals_and_two_nearest_words
        line = self.vectors.vectors.reshape(len(self.vectors))
        rows = np.full((len(numbers), len(line)), -np.inf)
        width = np.minimum(self.epsilon * (high - low), _MAX_NOISE_UNITS)[:, None]
        density = 0.5 * _QUADRATURE_WEIGHTS * width * np.exp(-width * _QUADRATURE_NODES)
        for row, place in zip(rows, line[numbers], strict=True):
            is_above = low >= place
            begin = np.where(is_above, low - place, place - high)
            steps = begin[:, None] + width * _QUADRATURE_NODES / self.epsilon
            points = place + np.where(is_above, 1.0, -1.0)[:, None] * steps
            share = self._share_of_second(*np.abs(points - line[nearest.T][:, :, None]))
            for words, part in zip(nearest.T, (1.0 - share, share), strict=True):
                with np.errstate(divide="ignore"):
                    logs = np.log((density * part).sum(axis=1)) - self.epsilon * begin
                np.logaddexp.at(row, words, logs)
        return rows

    @cached_property
    def _intervals_and_two_nearest_words(self) -> tuple[Floats, Floats, Ints]:
        """Lower and upper ends of n intervals, and the two nearest words in each interval."""
        line = np.sort(self.vectors.vectors[:, 0])
        # The two nearest words change at the midpoint of adjacent words and of words two places
        # away.
        middles = [(line[step:] + line[:-step]) / 2.0 for step in (1, 2)]
        cuts = np.unique(np.concatenate([line, *middles]))
        inside = np.concatenate([[cuts[0] - 1.0], (cuts[1:] + cuts[:-1]) / 2.0, [cuts[-1] + 1.0]])
        low, high = np.append(-np.inf, cuts), np.append(cuts, np.inf)
        return low, high, self._nearest_squared(inside[:, None], 2)[0]


_LINE_MECHANISMS: Final = {MetricLaplace: MetricLaplaceOnLine, Vickrey: VickreyOnLine}
