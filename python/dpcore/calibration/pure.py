"""Noise for pure epsilon: Laplace in every entry, its spherical twin, randomised response.

Laplace noise in every entry is for L1, the spherical one for L2. Randomised response gives the
truth with a known probability, else a value drawn blindly.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..errors import instance, integer, invalid, numeric, vector
from ..mechanisms import positive
from ..pairs import dimension
from ..published import noise_scale
from ..records import Floats, Pair, Record
from ..sensitivity.closed_forms import Sensitivity, in_norm
from ..streams import Rng, check_size, seed_of
from ..suggestions import suggest_arguments

_NOISE_CELLS: Final = 600
_LOSS_LEVELS: Final = 2_000
_TAIL_LOGIT: Final = 60.0
"""Cells of length and of cosine, levels of the loss, and logit of the outermost cells."""

_LENGTH_NODES: Final = 256
"""Nodes of the integral over the length of the noise."""
_LENGTH_TAIL: Final = 1e-18
"""Probability of the lengths that it leaves out on either side."""

_UNIFORM_GRID: Final = 2.0**53
"""A Generator's uniform draws are multiples of 1 / _GRID."""
_ROUNDING_MARGIN: Final = 2.0**-50

Entries = npt.NDArray[np.int64]


@suggest_arguments
def laplace(epsilon: float, sensitivity: float | Sensitivity) -> float:
    """Compute the scale of Laplace noise, independent in every entry, for pure epsilon.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    ``b = sensitivity / epsilon``.

    Args:
        epsilon: the epsilon wanted, in (0, 1e300].
        sensitivity: largest L1 distance of two neighbours, in the units of the input, above 0; or
            what `dpcore.sensitivity.sensitivity` found in "l1".

    Returns:
        The scale b, in the units of the input.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if one, or the scale, is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> laplace(0.5, 2.0)
        4.0
    """
    epsilon = positive("epsilon", epsilon)
    apart = positive("sensitivity", in_norm("sensitivity", sensitivity, "l1"))
    return noise_scale("sensitivity / epsilon", apart, epsilon)


@suggest_arguments
def l2_laplace(epsilon: float, sensitivity: float | Sensitivity) -> L2Laplace:
    """Make the L2 Laplace mechanism for pure epsilon.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    ``b = sensitivity / epsilon``: the scale does not grow with the dimension, the length of the
    noise does, for its mean is b dim.

    Args:
        epsilon: the epsilon wanted, in (0, 1e300].
        sensitivity: largest L2 distance of two neighbours, in the units of the input, above 0; or
            what `dpcore.sensitivity.sensitivity` found in "l2".

    Returns:
        The mechanism.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if one, or the scale, is not in (0, 1e300].

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> l2_laplace(0.5, 2.0)
        L2Laplace(scale=4.0)
    """
    return L2Laplace(laplace(epsilon, in_norm("sensitivity", sensitivity, "l2")))


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class L2Laplace(Record, word="L2Laplace"):
    """Additive noise with density proportional to ``exp(-norm2(s) / b)``, in any dimension.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    A uniform direction times a length drawn from Gamma(dim, b). In one dimension it is Laplace
    noise. The privacy loss ``(norm2(y - x') - norm2(y - x)) / b`` is at most the L2 distance of
    the inputs over b, and equal to it for every y on the line through both, beyond x.

    Args:
        scale: b, in the units of the input; a noise vector's mean length is b dim.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e300].

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> L2Laplace(2.0)([0.0, 0.0, 0.0], 5, 1).shape
        (5, 3)
    """

    scale: float

    thread_safe: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> Floats:
        """Draw outputs on `x`.

        Args:
            x: the input, one dimension, shape `(dim,)`.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Outputs of shape `(size, dim)`.
        """
        point, size = vector("x", x), check_size(size, np.size(x))
        rng = make_generator(rng)
        noise = rng.standard_normal((size, point.size))
        lengths = row_norms(noise)
        while not lengths.all():
            # An all-zero row has no direction: one in 2^50 or so, for a single entry.
            noise[lengths == 0.0] = rng.standard_normal(point.size)
            lengths = row_norms(noise)
        noise *= (rng.standard_gamma(point.size, size) / lengths)[:, None]
        # As in the compiled core, a sum beyond float64 is infinite without more ado.
        with np.errstate(over="ignore"):
            noise *= self.scale
            noise += point
        return noise

    def log_ratio(self, outputs: npt.ArrayLike, pair: Pair) -> Floats:
        """Compute the privacy loss of outputs: ln of the density on x over the density on x'.

        Args:
            outputs: shape `(size, dim)`, finite, in the units of the input.
            pair: two inputs of shape `(dim,)`.

        Returns:
            One number for each output, within the L2 distance of the pair over `scale`.

        Raises:
            TypeError: if `pair` is not a Pair, or it or `outputs` do not hold real numbers.
            ValueError: if the shapes do not fit, or a number is not finite.

        Example:
            >>> L2Laplace(0.5).log_ratio([[3.0, 0.0], [-1.0, 0.0]], Pair([1, 0], [0, 0]))
            array([ 2., -2.])
        """
        pair = instance("pair", pair, Pair)
        x, x_prime = vector("x", pair.x), vector("x_prime", pair.x_prime)
        requirement = f"finite numbers of shape (size, {x.size})"
        ys = numeric("outputs", requirement, outputs).astype(np.float64, copy=False)
        if not np.isfinite(ys).all():
            raise invalid("outputs", requirement, outputs)
        if ys.ndim != 2 or x.shape != x_prime.shape or ys.shape[1:] != x.shape:
            raise invalid("outputs", f"of shape (size, {x.size})", ys.shape)
        near, far = ys - x, ys - x_prime
        # Squares of rows over their largest entry neither overflow nor vanish.
        largest = np.maximum(np.abs(near), np.abs(far)).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        near, far = near / largest, far / largest
        # A difference of squares over the sum: the difference of two long lengths loses digits.
        sums = row_norms(near) + row_norms(far)
        ratios: Floats = (near + far) @ ((x - x_prime) / self.scale) / np.where(sums > 0, sums, 1.0)
        return ratios


def l2_laplace_delta(epsilon: float, distance: float, dim: int) -> float:
    """Compute the smallest delta at an epsilon of `L2Laplace` on two inputs.

    With noise of length r and of cosine c with the line through both, at scale 1 and distance D
    the loss exceeds t where ``c < (D^2 - t^2 - 2 r t) / (2 r D)`` on one input, and where
    ``c > (D^2 - t^2 + 2 r t) / (2 r D)``, r > t, on the other; (c + 1)/2 is
    Beta((dim - 1)/2, (dim - 1)/2) and r is Gamma(dim). What is left is one integral over r.

    Args:
        epsilon: t, at least 0.
        distance: L2 distance of the inputs over the scale.
        dim: entries of an input, at least 1.

    Returns:
        The delta, within 1e-12; 0 from epsilon = distance on.

    Source:
        The definition of the hockey-stick divergence, Balle and Wang (2018), theorem 5.

    Example:
        >>> round(l2_laplace_delta(3.5854, 13.4, 300), 8)
        1e-06
    """
    from scipy.special import betainc, gammainc, gammainccinv, gammaincinv, gammaln

    if epsilon >= distance:
        return 0.0
    if dim == 1:
        return -math.expm1((epsilon - distance) / 2.0)
    half, (points, weights) = (dim - 1) / 2.0, _legendre_nodes()
    low, high = float(gammaincinv(dim, _LENGTH_TAIL)), float(gammainccinv(dim, _LENGTH_TAIL))
    total = 0.0
    for sign, start in ((1.0, (distance - epsilon) / 2.0), (-1.0, (distance + epsilon) / 2.0)):
        first = min(max(low, start), high)
        # Squares of the nodes, for a density of cosines that ends in a root where r starts.
        steps = 0.5 * (points + 1.0)
        lengths = first + (high - first) * steps**2
        density = np.exp((dim - 1) * np.log(lengths) - lengths - gammaln(dim))
        most = distance * distance - epsilon * epsilon - sign * 2.0 * lengths * epsilon
        cosines = np.clip(most / (2.0 * lengths * distance), -1.0, 1.0)
        # On x the cosine lies below the limit, on x' above it.
        inside = betainc(half, half, 0.5 * (1.0 + sign * cosines))
        mass = float((weights * (high - first) * steps * density * inside).sum())
        total += float(gammainc(dim, first)) + mass if sign > 0.0 else -math.exp(epsilon) * mass
    return min(1.0, max(0.0, total))


def l2_laplace_divergences(orders: Floats, distance: float, dim: int) -> Floats:
    """Compute upper bounds on the Renyi divergences of `L2Laplace` on two inputs.

    At scale 1, with noise of length r and of cosine c with the line through both, the loss is
    sqrt(r^2 - 2 r c D + D^2) - r, which falls in r and in c. Its law is rounded up to the lower
    corners of cells of length and cosine with known probabilities.

    Args:
        orders: shape `(n,)`, above 1.
        distance: L2 distance D of the inputs over the scale.
        dim: entries of an input, at least 2.

    Returns:
        Bounds in nats, shape `(n,)`, the same in both directions; at most `distance`.

    Source:
        Mironov (2017), definition 3.

    Example:
        >>> l2_laplace_divergences(np.array([2.0, 10.0]), 13.4, 300).round(2)
        array([0.65, 6.81])
    """
    from scipy.special import logsumexp

    lengths, cosines, masses = _noise_cells(dim)
    squares = lengths**2 - 2.0 * lengths * cosines * distance + distance**2
    losses = np.minimum(np.sqrt(np.maximum(squares, 0.0)) - lengths, distance)
    # Rounded up once more, to few levels that all orders share.
    levels = np.linspace(-distance, distance, _LOSS_LEVELS)
    places = np.ceil((losses / distance + 1.0) * (0.5 * (_LOSS_LEVELS - 1)) + 1e-9).astype(np.int64)
    sums = np.bincount(np.minimum(places, _LOSS_LEVELS - 1).ravel(), masses.ravel(), _LOSS_LEVELS)
    steps = orders[:, None] - 1.0
    divergences: Floats = logsumexp(steps * levels, axis=1, b=sums) / steps[:, 0]
    # Rounding of the sum, over a small step, may fall below 0.
    return np.clip(divergences, 0.0, distance)


@functools.lru_cache(maxsize=4)
def _noise_cells(dim: int) -> tuple[Floats, Floats, Floats]:
    """Return lower corners of cells of length, shape `(n, 1)`, of cosine, and probabilities."""
    from scipy.special import betaincinv, gammaincinv

    shares = 1.0 / (1.0 + np.exp(-np.linspace(-_TAIL_LOGIT, _TAIL_LOGIT, _NOISE_CELLS - 1)))
    masses = np.diff(shares, prepend=0.0, append=1.0)
    # A lower corner that is rounded down keeps the bound; at 1 the length would be infinite.
    corners = np.minimum(np.concatenate([[0.0], shares]), 1.0 - 2.0**-53)
    cosines = 2.0 * betaincinv((dim - 1) / 2.0, (dim - 1) / 2.0, corners) - 1.0
    return gammaincinv(dim, corners)[:, None], cosines, np.outer(masses, masses)


@functools.cache
def _legendre_nodes() -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(_LENGTH_NODES)
    return points, weights


def make_generator(rng: Any) -> np.random.Generator:
    """Return the Generator itself, or a new one from a seed or from fresh entropy."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_of(rng))


def row_norms(rows: Floats) -> Floats:
    """Compute the L2 norm of every row."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


@suggest_arguments
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
        truth, grid = -math.expm1(-self.epsilon) / total, _UNIFORM_GRID
        if truth < 0.5:
            return 1.0 - math.floor(truth * (1.0 - _ROUNDING_MARGIN) * grid) / grid
        blind = self.values * weight / total
        return max(math.ceil(blind * (1.0 + _ROUNDING_MARGIN) * grid), 1) / grid

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
            ValueError: if an entry is not a value, or the shapes differ.

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
        rng = make_generator(rng)
        shape = (size, *point.shape)
        blind = rng.random(shape) < self.blind
        return np.where(blind, rng.integers(self.values, size=shape), point)

    def _entries(self, name: str, value: Any) -> Entries:
        requirement = f"one whole number or a vector of them, from 0 to {self.values - 1}"
        array = numeric(name, requirement, value)
        inside = (array >= 0) & (array < self.values)
        if array.ndim > 1 or array.size == 0 or not inside.all() or (array % 1 != 0).any():
            raise invalid(name, requirement, value)
        return array.astype(np.int64)
