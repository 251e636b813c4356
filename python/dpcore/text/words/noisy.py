"""Noise on the vector of a word, and the nearest words: metric Laplace and Vickrey."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np

from ... import _core
from ...bounds import limits
from ...calibration import L2Laplace, real_epsilon
from ...errors import invalid, real
from ...hints import hinted
from ...sensitivity import Ball
from ..leakage import Embedding
from .tables import MetricMechanism, TableMechanism, nearest_words
from .texts import CONFIDENCE, ORDERS, Floats, Numbers, PlaceLoss, count_support, renyi_divergences

__all__ = ["MetricLaplace", "NoisyMechanism", "Vickrey"]

_BLOCK_NUMBERS: Final = 2**20
"""Noisy numbers that are in memory at once, about."""

_LONGEST_NOISE: Final = 1e9
"""Mean length of the noise over the longest vector: beyond it words are equally near in float64."""

_LAST: Final = 38.0
"""Units of 1/epsilon after which a density is below 2^-54 of its value at the start."""

_INTEGRAL_ERROR: Final = 1e-12
"""Error of the delta of noise, which is left out of a delta that is asked for."""

_CELLS: Final = 600
_LEVELS: Final = 2_000
_TAIL_LOGIT: Final = 60.0
"""Cells of length and of cosine, levels of the loss, and logit of the outermost cells."""


class NoisyMechanism(MetricMechanism):
    """Noise on a word's vector, of density like ``exp(-epsilon norm2(z))``, and words near it.

    The noise alone keeps the claim, and what follows can only lower the loss. Above one dimension
    the probabilities of outputs are not known: there is no table, and the figures of texts are
    bounds by the noise, or counts. With vectors of one dimension an instance is of a subclass,
    which is a table.
    """

    def __new__(cls, vectors: Any = None, *others: Any, **named: Any) -> Self:
        """Make an instance of the subclass that is a table, for vectors of one dimension."""
        is_line = isinstance(vectors, Embedding) and vectors.dim == 1
        return super().__new__(_ON_LINE.get(cls, cls) if is_line else cls)

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        longest = float(np.abs(self.vectors.vectors).max())
        least = self.vectors.dim / (_LONGEST_NOISE * longest)
        if self.epsilon < least:
            requirement = f"at least {least:.3g}: longer noise exceeds the precision of float64"
            raise invalid("epsilon", requirement, self.epsilon)

    def _draw(self, inputs: Numbers, size: int, seed: int) -> Numbers:
        words = len(self.vectors)
        out = np.empty(size, np.int64)
        strange = inputs == words
        known = np.where(strange, 0, inputs)
        rows = max(1, 2**17 // self.vectors.dim)
        step = rows * max(1, _BLOCK_NUMBERS // (rows * self.vectors.dim))
        for start in range(0, size, step):
            found = out[start : start + step]
            noisy = np.empty((len(found), self.vectors.dim))
            coins = np.empty(len(found))
            scale, cores = 1.0 / self.epsilon, _core.cores()
            _core.add_noise(self.vectors.vectors, known, scale, seed, start, noisy, coins, cores)
            found[:] = self._choose_words(noisy, coins)
        if strange.any():
            uniform = np.random.default_rng(seed).integers(0, words, size)
            out = np.where(np.resize(strange, size), uniform, out)
        return out

    def _nearest_words(self, noisy: Floats, depth: int) -> tuple[Numbers, Floats]:
        """Return the words nearest to noisy vectors, and squared distances; ties to the lowest."""
        queries, points = np.arange(len(noisy)), len(noisy) + np.arange(len(self.vectors))
        return nearest_words(noisy, self.vectors.vectors, queries, points, depth)

    @abstractmethod
    def _choose_words(self, noisy: Floats, coins: Floats) -> Numbers:
        """Return the output for each noisy vector."""

    def _compare_words(self, words: Numbers, delta: float) -> PlaceLoss:
        if words.max() == len(self.vectors):
            # Two unknown words have one law. Against it nothing bounds the loss of a known one.
            loss = 0.0 if words.min() == words.max() else np.inf
            return np.full(2, loss), loss, np.full((2, len(ORDERS)), loss)
        # The noise is the same around both words: either direction has the same losses.
        loss, dim = float(self.epsilon * self._distances(*words[:, None])[0]), self.vectors.dim
        noise = real_epsilon(L2Laplace(1.0), Ball("l2", loss / 2.0, dim))
        at_delta = noise.epsilon(max(0.0, delta - _INTEGRAL_ERROR))
        return np.full(2, loss), min(loss, at_delta), np.tile(noise_divergences(loss, dim), (2, 1))

    def _measure_words(
        self, numbers: Numbers, draws: int, seed: int | None
    ) -> tuple[Floats, Floats, Numbers]:
        outputs = self._draw(np.repeat(numbers, draws), len(numbers) * draws, seed)
        rows = outputs.reshape(len(numbers), draws)
        times, tail = (rows == numbers[:, None]).sum(axis=1), (1.0 - CONFIDENCE) / 2.0
        ends = np.array([limits(number, draws, tail) for number in times.tolist()])
        counts = np.array([np.bincount(row, minlength=len(self.vectors)) for row in rows])
        return times / draws, ends, count_support(counts)

    def _worst_losses(self, numbers: Numbers, has_unknown: bool) -> Floats:
        if has_unknown:
            # Nothing bounds how improbable an output is on a word against the uniform law.
            return np.full(len(numbers), np.inf)
        rows = (self.distance_rows(number, number + 1) for number in numbers.tolist())
        return self.epsilon * np.array([row.max() for row in rows])


def noise_divergences(distance: float, dim: int) -> Floats:
    """Return upper bounds on the Renyi divergences of the noise at all orders.

    At scale 1, with noise of length r and of cosine c with the line to the other word, the loss is
    sqrt(r^2 - 2 r c D + D^2) - r, which falls in r and in c. Its law is rounded up to the lower
    corners of cells of length and cosine, of which the probabilities are known.
    """
    from scipy.special import betaincinv, gammaincinv

    shares = 1.0 / (1.0 + np.exp(-np.linspace(-_TAIL_LOGIT, _TAIL_LOGIT, _CELLS - 1)))
    masses = np.diff(shares, prepend=0.0, append=1.0)
    # A lower corner that is rounded down keeps the bound; at 1 the length would be infinite.
    corners = np.minimum(np.concatenate([[0.0], shares]), 1.0 - 2.0**-53)
    lengths = gammaincinv(dim, corners)[:, None]
    cosines = 2.0 * betaincinv((dim - 1) / 2.0, (dim - 1) / 2.0, corners) - 1.0
    squares = lengths**2 - 2.0 * lengths * cosines * distance + distance**2
    losses = np.minimum(np.sqrt(np.maximum(squares, 0.0)) - lengths, distance)
    # Rounded up once more, to few levels that all orders share.
    levels = np.linspace(-distance, distance, _LEVELS)
    places = np.minimum(np.searchsorted(levels, losses), _LEVELS - 1)
    sums = np.bincount(places.ravel(), np.outer(masses, masses).ravel(), _LEVELS)
    kept = sums > 0.0
    logs = np.log(sums[kept])
    return renyi_divergences(logs, logs - levels[kept])


@hinted
@dataclass(frozen=True, eq=False, repr=False)
class MetricLaplace(NoisyMechanism):
    """Noise on a word's vector, of density like ``exp(-epsilon norm2(z))``; the nearest word.

    The direction is uniform, the length Gamma(dim, 1/epsilon). Two words that are equally near
    give the one with the lower number.

    Args:
        vectors: the words and their vectors.
        epsilon: per unit of Euclidean distance, above 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is one word only, or two words have one
            vector.

    Source:
        Feyisetan, Balle, Drake and Diethe (2020).

    Example:
        >>> from dpcore.text.leakage import Embedding
        >>> vectors = Embedding(("bad", "fine", "good"), [[0.0], [1.0], [1.5]])
        >>> mech = MetricLaplace(vectors, epsilon=2.0)
        >>> np.exp(mech.log_rows(0, 1)).round(3), mech("good", 4, 1)
        (array([[0.816, 0.143, 0.041]]), array([2, 2, 2, 1]))
    """

    def _choose_words(self, noisy: Floats, coins: Floats) -> Numbers:
        return self._nearest_words(noisy, 1)[0][:, 0]


class MetricLaplaceOnLine(TableMechanism, MetricLaplace):
    """`MetricLaplace` on vectors of one dimension: outputs have intervals of the noise."""

    # Draws are those of every dimension, and no table has to be prepared for them.
    _draw = NoisyMechanism._draw

    def _rows_of(self, numbers: Numbers) -> Floats:
        order, places = _sort_on_line(self.vectors)
        middles = (places[1:] + places[:-1]) / 2.0
        ends = np.concatenate([[-np.inf], middles, [np.inf]])
        rows = np.empty((len(numbers), len(order)))
        from_word = self.epsilon * (ends - self.vectors.vectors[numbers])
        rows[:, order] = _log_laplace(from_word[:, :-1], from_word[:, 1:])
        return rows


def _log_laplace(low: Floats, high: Floats) -> Floats:
    """Return log probabilities that standard Laplace noise is between two numbers."""
    # By symmetry the interval lies above 0, or 0 is inside it.
    below = high <= 0.0
    low, high = np.where(below, -high, low), np.where(below, -low, high)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        beyond = -np.maximum(low, 0.0) + np.log(-np.expm1(np.maximum(low, 0.0) - high) / 2.0)
        around = np.log(-(np.expm1(np.minimum(low, 0.0)) + np.expm1(-high)) / 2.0)
    found: Floats = np.where(low >= 0.0, beyond, around)
    return found


@hinted
@dataclass(frozen=True, eq=False, repr=False)
class Vickrey(NoisyMechanism):
    """Noise as in `MetricLaplace`; the nearest word or the second nearest.

    The nearest, at distance d1 from the noisy vector, is the output with probability
    (1 - t) d2/(t d1 + (1 - t) d2), the second nearest, at distance d2, else.

    Args:
        vectors: the words and their vectors.
        epsilon: per unit of Euclidean distance, above 0.
        t: weight of the second word, in [0, 1]; 0 always gives the nearest word.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: as for `MetricLaplace`, or if t is out of range.

    Source:
        Xu, Aggarwal, Feyisetan and Teissier (2021).

    Example:
        >>> from dpcore.text.leakage import Embedding
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

    def _choose_words(self, noisy: Floats, coins: Floats) -> Numbers:
        words, squares = self._nearest_words(noisy, 2)
        second = self._share_of_second(*np.sqrt(squares).T)
        return np.where(coins < second, words[:, 1], words[:, 0])

    def _share_of_second(self, first: Floats, second: Floats) -> Floats:
        """Return probability of the second word, from the distances of both."""
        weight = self.t * first
        whole = weight + (1.0 - self.t) * second
        # t = 1 at the nearest word itself.
        return weight / np.where(whole > 0.0, whole, 1.0)


class VickreyOnLine(TableMechanism, Vickrey):
    """`Vickrey` on vectors of one dimension: its probabilities are integrals over intervals."""

    _draw = NoisyMechanism._draw

    def _rows_of(self, numbers: Numbers) -> Floats:
        """Integrate both shares over the intervals on which the two nearest words are fixed."""
        order, places = _sort_on_line(self.vectors)
        inputs = self.vectors.vectors[numbers, 0]
        rows = np.full((len(numbers), len(order)), -np.inf)
        for low, high, first, second in self._intervals:
            # On each side of the input, where the density falls all the way.
            for side, ends in ((1.0, (low, high)), (-1.0, (high, low))):
                begin, end = (np.maximum(side * (one - inputs), 0.0) for one in ends)
                there = end > begin
                if there.any():
                    at = inputs[there], side, begin[there], end[there]
                    logs = self._integrate_shares(at, places[first], places[second])
                    for word, log in zip((first, second), logs, strict=True):
                        rows[there, order[word]] = np.logaddexp(rows[there, order[word]], log)
        return rows

    @cached_property
    def _intervals(self) -> list[tuple[float, float, int, int]]:
        """Ends, nearest and second nearest word, by their places on the line."""
        places = _sort_on_line(self.vectors)[1]
        last = len(places) - 1
        middles = [-np.inf, *((places[1:] + places[:-1]) / 2.0), np.inf]
        found = []
        for i, place in enumerate(places):
            # Where the words on both sides are equally far, beyond which the second one changes.
            turn = -np.inf if i == 0 else np.inf
            if 0 < i < last:
                turn = (places[i - 1] + places[i + 1]) / 2.0
            cuts = [middles[i], *sorted((float(place), float(turn))), middles[i + 1]]
            for low, high in pairwise(cuts):
                if low < high:
                    found.append((low, high, i, i - 1 if high <= turn else i + 1))
        return found

    def _integrate_shares(
        self, at: tuple[Floats, float, Floats, Floats], first: float, second: float
    ) -> list[Floats]:
        """Integrate the probabilities of the nearest and the second word within an interval; logs.

        Args:
            at: inputs, the side of them, begin and end of the interval as distances from them.
            first: the vector of the nearest word.
            second: the vector of the second nearest.
        """
        inputs, side, begin, end = at
        width = np.minimum(self.epsilon * (end - begin), _LAST)[:, None]
        points = inputs[:, None] + side * (begin[:, None] + width * _NODES / self.epsilon)
        share = self._share_of_second(np.abs(points - first), np.abs(points - second))
        density = 0.5 * _WEIGHTS * width * np.exp(-width * _NODES)
        with np.errstate(divide="ignore"):
            sums = [np.log((density * part).sum(axis=1)) for part in (1.0 - share, share)]
        return [one - self.epsilon * begin for one in sums]


def _sort_on_line(vectors: Embedding) -> tuple[Numbers, Floats]:
    """Return the words in the order of their vectors of one number, and these numbers."""
    places = vectors.vectors.reshape(len(vectors))
    order = np.argsort(places)
    return order, places[order]


def _graded_nodes() -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1]: Gauss-Legendre panels, halved towards both ends."""
    half = np.concatenate([[0.0], 2.0 ** np.arange(-20.0, 0.0)])
    ends = np.concatenate([half, 1.0 - half[-2::-1]])
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(ends)[:, None]
    return (ends[:-1, None] + widths * (nodes + 1.0) / 2.0).ravel(), (
        widths * weights / 2.0
    ).ravel()


_NODES, _WEIGHTS = _graded_nodes()

_ON_LINE: Final[dict[type, Any]] = {MetricLaplace: MetricLaplaceOnLine, Vickrey: VickreyOnLine}
