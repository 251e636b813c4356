"""Randomised response: the truth with a known probability, else a value drawn blindly."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..errors import instance, integer, invalid, numeric
from ..hints import hinted
from ..mechanisms import positive
from ..pairs import dimension
from ..records import Pair, Record
from ..streams import Rng, check_size
from .pure import generator

__all__ = ["Entries", "RandomisedResponse"]

_UNIFORM_GRID: Final = 2.0**53
"""A Generator's uniform draws are multiples of 1 / _GRID."""
_ROUNDING_MARGIN: Final = 2.0**-50

Entries = npt.NDArray[np.int64]


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomisedResponse(Record, word="RandomisedResponse"):
    """Every entry stays with probability ``e^epsilon / (e^epsilon + k - 1)``, else it moves.

    For audits and experiments, not for releasing data: its generator is not cryptographic.

    An entry that moves takes each of the k - 1 other values with equal probability; entries are
    independent of each other. The loss is epsilon for inputs that differ in one entry, m epsilon
    for m entries.

    It is drawn as a mixture: with probability `blind` one of all k values, drawn uniformly, else
    the truth. That probability is rounded *up* to the grid of the uniform draws, so that the code
    loses at most what the formula says (`entry_loss` is exact): never an infinite amount, and
    never more than 36.8 + ln(k), whatever epsilon.

    Args:
        epsilon: the epsilon of one entry, in (0, 1e300].
        values: number k of values, at least 2 and at most 2**31; entries lie in 0 to k - 1.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if it is out of range.

    Source:
        Warner (1965); for k values: Kairouz, Oh and Viswanath (2014), section 4.

    Example:
        >>> response = RandomisedResponse(1.0, values=4)
        >>> response([0, 3], 3, 1).shape, round(response.keep, 4), round(response.entry_loss, 12)
        ((3, 2), 0.4754, 1.0)
    """

    epsilon: float
    values: int = 2

    thread_safe: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "epsilon", positive("epsilon", self.epsilon))
        object.__setattr__(self, "values", integer("values", self.values, 2, 2**31))

    @property
    def blind(self) -> float:
        """The probability that an entry is drawn blindly, a multiple of 2**-53."""
        weight = math.exp(-self.epsilon)
        total = 1.0 + (self.values - 1) * weight
        # The four roundings of each formula amount to less than the margin.
        truth = -math.expm1(-self.epsilon) / total
        if truth < 0.5:
            return (
                1.0 - math.floor(truth * (1.0 - _ROUNDING_MARGIN) * _UNIFORM_GRID) / _UNIFORM_GRID
            )
        return (
            max(
                math.ceil(self.values * weight / total * (1.0 + _ROUNDING_MARGIN) * _UNIFORM_GRID),
                1,
            )
            / _UNIFORM_GRID
        )

    @property
    def keep(self) -> float:
        """The probability that an entry stays."""
        return 1.0 - self.blind * ((self.values - 1) / self.values)

    @property
    def entry_loss(self) -> float:
        """The exact loss of one entry: ln of `keep` over the probability of one other value."""
        return math.log1p(self.values * ((1.0 - self.blind) / self.blind))

    def loss(self, pair: Pair) -> float:
        """Compute the exact loss on a pair: `entry_loss` for every entry that differs.

        Args:
            pair: two inputs of the same shape.

        Returns:
            The largest privacy loss that any output shows.

        Raises:
            TypeError: if `pair` is not a Pair, or an input does not hold numbers.
            ValueError: if an entry is no value, or the shapes differ.

        Example:
            >>> round(RandomisedResponse(0.5).loss(Pair([0, 0, 1], [1, 0, 0])), 12)
            1.0
        """
        instance("pair", pair, Pair)
        x, x_prime = self._entries("x", pair.x), self._entries("x_prime", pair.x_prime)
        if x.shape != x_prime.shape:
            raise invalid("pair", "two inputs of equal shape", (x.shape, x_prime.shape))
        return int((x != x_prime).sum()) * self.entry_loss

    def default_pair(self, dim: int = 1) -> Pair:
        """Return two inputs that differ in their first entry, 0 against 1, shape `(dim,)`."""
        x = np.zeros(dimension(dim), dtype=np.int64)
        x_prime = x.copy()
        x_prime[0] = 1
        return Pair(x, x_prime)

    def __call__(self, x: Any, size: int, rng: Rng = None) -> Entries:
        """Draw outputs on `x`.

        Args:
            x: one value or a vector of values, whole numbers from 0 to k - 1.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Values of shape `(size,)` for one value, else `(size, dim)`.
        """
        point, size = self._entries("x", x), check_size(size, np.size(x))
        rng = generator(rng)
        shape = (size, *point.shape)
        blind = rng.random(shape) < self.blind
        found: Entries = np.where(blind, rng.integers(self.values, size=shape), point)
        return found

    def _entries(self, name: str, value: Any) -> Entries:
        requirement = f"one whole number or a vector of them, from 0 to {self.values - 1}"
        array = numeric(name, requirement, value)
        inside = (array >= 0) & (array < self.values)
        if array.ndim > 1 or array.size == 0 or not inside.all() or (array % 1 != 0).any():
            raise invalid(name, requirement, value)
        return array.astype(np.int64)
