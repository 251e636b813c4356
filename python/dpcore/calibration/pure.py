"""Noise for epsilon-DP (delta = 0): Laplace, L2 Laplace, and randomised response.

Laplace noise in every entry is for neighbours whose L1 distance is bounded. L2 Laplace noise is for
neighbours whose L2 distance is bounded. Randomised response returns the true value with a known
probability, and otherwise a random value.
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
from ..sensitivity.closed_forms import Sensitivity, sensitivity_to_number
from ..streams import Rng, check_size, to_seed
from ..suggestions import explain_argument_errors

_NOISE_CELLS: Final = 600
_LOSS_LEVELS: Final = 2_000
_TAIL_LOGIT: Final = 60.0
"""Numbers of cells (of length, of cosine), number of loss levels, and logit of the last cells."""

_LENGTH_NODES: Final = 256
"""Number of nodes of the integral over the length of the noise."""
_LENGTH_TAIL: Final = 1e-18
"""Probability of the noise lengths that the integral omits at each end."""

_UNIFORM_GRID: Final = 2.0**53
"""The uniform draws of a numpy Generator are multiples of 1 divided by this number."""
_ROUNDING_MARGIN: Final = 2.0**-50

Entries = npt.NDArray[np.int64]


@explain_argument_errors
def laplace(epsilon: float, sensitivity: float | Sensitivity) -> float:
    """Compute the scale of Laplace noise that makes a mechanism epsilon-DP.

    The noise is added to each entry of a vector independently. The scale is
    ``b = sensitivity / epsilon``. Use this noise for audits and experiments, not for releasing data
    (`dpcore.sample` gives the reasons).

    Args:
        epsilon: target epsilon, in (0, 1e300].
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the input,
            above 0. You can also give the result of `dpcore.sensitivity.sensitivity(domain, "l1")`.

    Returns:
        The scale b, in the units of the input.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument or the computed scale is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> laplace(0.5, 2.0)
        4.0
    """
    epsilon = positive("epsilon", epsilon)
    apart = positive("sensitivity", sensitivity_to_number("sensitivity", sensitivity, "l1"))
    return noise_scale("sensitivity / epsilon", apart, epsilon)


@explain_argument_errors
def l2_laplace(epsilon: float, sensitivity: float | Sensitivity) -> L2Laplace:
    """Return the L2 Laplace mechanism whose noise has the right scale for epsilon-DP.

    Use this noise for audits and experiments, not for releasing data (`dpcore.sample` gives the
    reasons).

    The scale is ``b = sensitivity / epsilon``. The scale does not depend on the number of entries
    of the input, dim. The mean length (L2 norm) of the noise vector is b dim.

    Args:
        epsilon: target epsilon, in (0, 1e300].
        sensitivity: largest L2 distance between two neighbouring inputs, in the units of the input,
            above 0. You can also give the result of `dpcore.sensitivity.sensitivity(domain, "l2")`.

    Returns:
        The mechanism.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument or the computed scale is not in (0, 1e300].

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> l2_laplace(0.5, 2.0)
        L2Laplace(scale=4.0)
    """
    return L2Laplace(laplace(epsilon, sensitivity_to_number("sensitivity", sensitivity, "l2")))


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class L2Laplace(Record, word="L2Laplace"):
    """Mechanism that adds L2 Laplace noise, with a density proportional to exp(-norm2(s) / b).

    Use this noise for audits and experiments, not for releasing data (`dpcore.sample` gives the
    reasons).

    Here s is the noise vector, norm2 is the L2 norm, and b is the scale. The direction of the noise
    is uniform. The length (L2 norm) of the noise has the distribution Gamma(dim, b), where dim is
    the number of entries. If dim is 1, the noise is Laplace noise. The privacy loss of an output y
    is ``(norm2(y - x') - norm2(y - x)) / b``. The loss is at most the L2 distance between x and x',
    divided by b. The loss equals this limit if y is on the line through x and x', and x lies
    between y and x'.

    Args:
        scale: the scale b, in the units of the input.

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
            # A row of zeros has no direction. Its probability is about 2^-50, for a single entry.
            noise[lengths == 0.0] = rng.standard_normal(point.size)
            lengths = row_norms(noise)
        noise *= (rng.standard_gamma(point.size, size) / lengths)[:, None]
        # As in the compiled core, a sum beyond float64 becomes infinite without a warning.
        with np.errstate(over="ignore"):
            noise *= self.scale
            noise += point
        return noise

    def log_ratio(self, outputs: npt.ArrayLike, pair: Pair) -> Floats:
        """Compute the privacy loss of each output: ln(density on x / density on x').

        Args:
            outputs: outputs, finite, in the units of the input, shape `(size, dim)`.
            pair: the two inputs x and x', each of shape `(dim,)`.

        Returns:
            The privacy loss of each output, shape `(size,)`. The absolute values are at most the L2
            distance between x and x', divided by `scale`.

        Raises:
            TypeError: if `pair` is not a Pair, or if the inputs or `outputs` are not real numbers.
            ValueError: if the shapes do not fit, or if a number is not finite.

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
        # Rows are divided by their largest entry, so squares neither overflow nor underflow.
        largest = np.maximum(np.abs(near), np.abs(far)).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        near, far = near / largest, far / largest
        # The difference of two large lengths loses digits, so the difference of squares is used.
        sums = row_norms(near) + row_norms(far)
        ratios: Floats = (near + far) @ ((x - x_prime) / self.scale) / np.where(sums > 0, sums, 1.0)
        return ratios


def l2_laplace_delta(epsilon: float, distance: float, dim: int) -> float:
    """Compute the smallest delta of the L2 Laplace mechanism at an epsilon, for two inputs.

    The mechanism adds noise with a density proportional to exp(-norm2(noise) / scale). Let the
    scale be 1, and let D be the L2 distance between the inputs x and x'. Let r be the length (L2
    norm) of the noise. Let c be the cosine of the angle between the noise and the vector from the
    input of the draw to the other input. If an output is drawn on x, the privacy loss exceeds
    epsilon if ``c < (D^2 - epsilon^2 - 2 r epsilon) / (2 r D)``. If an output is drawn on x', the
    privacy loss exceeds epsilon if r is above epsilon and
    ``c > (D^2 - epsilon^2 + 2 r epsilon) / (2 r D)``. The distribution of (c + 1)/2 is Beta((dim -
    1)/2, (dim - 1)/2), and the distribution of r is Gamma(dim). The probability for a given r has a
    closed form. The function computes the integral over r numerically.

    Args:
        epsilon: epsilon for which delta is computed, at least 0.
        distance: L2 distance D between the two inputs, divided by the scale of the noise.
        dim: number of entries of an input, at least 1.

    Returns:
        The smallest delta, with an error of at most 1e-12. The result is 0 if `epsilon` is at least
        `distance`.

    Source:
        Definition of the hockey-stick divergence: Balle and Wang (2018), theorem 5.

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
        # The nodes are squared, because the density of cosines has a root where r starts.
        steps = 0.5 * (points + 1.0)
        lengths = first + (high - first) * steps**2
        density = np.exp((dim - 1) * np.log(lengths) - lengths - gammaln(dim))
        most = distance * distance - epsilon * epsilon - sign * 2.0 * lengths * epsilon
        cosines = np.clip(most / (2.0 * lengths * distance), -1.0, 1.0)
        # On x the cosine lies below the limit, on x' above the limit.
        inside = betainc(half, half, 0.5 * (1.0 + sign * cosines))
        mass = float((weights * (high - first) * steps * density * inside).sum())
        total += float(gammainc(dim, first)) + mass if sign > 0.0 else -math.exp(epsilon) * mass
    return min(1.0, max(0.0, total))


def l2_laplace_renyi_upper_bounds(orders: Floats, distance: float, dim: int) -> Floats:
    """Compute upper limits on the Renyi divergences between the outputs on two inputs.

    The mechanism adds noise with a density proportional to exp(-norm2(noise) / scale). Let the
    scale be 1. Let r be the length (L2 norm) of the noise. Let c be the cosine of the angle between
    the noise and the vector from the input of the draw to the other input. The privacy loss is
    sqrt(r^2 - 2 r c D + D^2) - r. The loss decreases in r and in c. The ranges of r and c are
    divided into cells with known probabilities. In each cell, the function uses the loss at the
    smallest r and c, which is the largest loss in the cell.

    Args:
        orders: Renyi orders above 1, shape `(n,)`.
        distance: L2 distance D between the two inputs, divided by the scale of the noise.
        dim: number of entries of an input, at least 2.

    Returns:
        One upper limit in nats for each order, shape `(n,)`. Each limit is at most `distance`. Each
        limit is valid for both directions of the divergence: from the outputs on one input to the
        outputs on the other input, and the reverse.

    Source:
        Mironov (2017), definition 3.

    Example:
        >>> l2_laplace_renyi_upper_bounds(np.array([2.0, 10.0]), 13.4, 300).round(2)
        array([0.65, 6.81])
    """
    from scipy.special import logsumexp

    lengths, cosines, masses = _length_cosine_lower_ends_and_probs(dim)
    squares = lengths**2 - 2.0 * lengths * cosines * distance + distance**2
    losses = np.minimum(np.sqrt(np.maximum(squares, 0.0)) - lengths, distance)
    # The losses are rounded up again, to few levels that all orders share.
    levels = np.linspace(-distance, distance, _LOSS_LEVELS)
    places = np.ceil((losses / distance + 1.0) * (0.5 * (_LOSS_LEVELS - 1)) + 1e-9).astype(np.int64)
    sums = np.bincount(np.minimum(places, _LOSS_LEVELS - 1).ravel(), masses.ravel(), _LOSS_LEVELS)
    steps = orders[:, None] - 1.0
    divergences: Floats = logsumexp(steps * levels, axis=1, b=sums) / steps[:, 0]
    # Rounding errors of the sum, divided by a small step, may give a value below 0.
    return np.clip(divergences, 0.0, distance)


@functools.lru_cache(maxsize=4)
def _length_cosine_lower_ends_and_probs(dim: int) -> tuple[Floats, Floats, Floats]:
    """Divide noise length and cosine into cells; return lower ends and cell probabilities."""
    from scipy.special import betaincinv, gammaincinv

    shares = 1.0 / (1.0 + np.exp(-np.linspace(-_TAIL_LOGIT, _TAIL_LOGIT, _NOISE_CELLS - 1)))
    masses = np.diff(shares, prepend=0.0, append=1.0)
    # A corner that is rounded down keeps the bound valid. At 1, the length would be infinite.
    corners = np.minimum(np.concatenate([[0.0], shares]), 1.0 - 2.0**-53)
    cosines = 2.0 * betaincinv((dim - 1) / 2.0, (dim - 1) / 2.0, corners) - 1.0
    return gammaincinv(dim, corners)[:, None], cosines, np.outer(masses, masses)


@functools.cache
def _legendre_nodes() -> tuple[Floats, Floats]:
    points, weights = np.polynomial.legendre.leggauss(_LENGTH_NODES)
    return points, weights


def make_generator(rng: Any) -> np.random.Generator:
    """Make a numpy Generator from an int seed, or from None (a random seed).

    If `rng` is already a Generator, it is returned unchanged.
    """
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(to_seed(rng))


def row_norms(rows: Floats) -> Floats:
    """Compute the L2 norm of each row of a matrix."""
    norms: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return norms


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RandomisedResponse(Record, word="RandomisedResponse"):
    """Mechanism that randomises each entry of an input: randomised response with k possible values.

    Use this mechanism for audits and experiments, not for releasing data: its random generator is
    not cryptographic.

    An entry is kept with probability ``e^epsilon / (e^epsilon + k - 1)``. Otherwise, the mechanism
    returns one of the k - 1 other values, each with equal probability. The entries are randomised
    independently of each other. If two inputs differ in m entries, the privacy loss is m epsilon.

    The code uses an equivalent form. With probability `blind`, the output is a uniform draw from
    all k values. Otherwise, the output is the true value. The code rounds `blind` *up* to a
    multiple of 2**-53, the step of the uniform random numbers. Therefore the exact loss of an
    entry, `entry_loss`, is at most epsilon. Because `blind` is at least 2**-53, `entry_loss` is
    also at most 36.8 + ln(k).

    Args:
        epsilon: privacy loss epsilon of one entry, in (0, 1e300].
        values: number k of possible values, from 2 to 2**31. Entries are integers from 0 to k - 1.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a field is out of range.

    Source:
        Warner (1965). For k values: Kairouz, Oh and Viswanath (2014), section 4.

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
        """Probability that an entry is replaced by a uniform value among all k values.

        The probability is a multiple of 2**-53. The uniform value may equal the true value.
        """
        weight = math.exp(-self.epsilon)
        total = 1.0 + (self.values - 1) * weight
        # The four rounding errors of each formula together are smaller than the margin.
        truth, grid = -math.expm1(-self.epsilon) / total, _UNIFORM_GRID
        if truth < 0.5:
            return 1.0 - math.floor(truth * (1.0 - _ROUNDING_MARGIN) * grid) / grid
        blind = self.values * weight / total
        return max(math.ceil(blind * (1.0 + _ROUNDING_MARGIN) * grid), 1) / grid

    @property
    def keep(self) -> float:
        """Probability that an entry keeps its value: the output entry equals the input entry."""
        return 1.0 - self.blind * ((self.values - 1) / self.values)

    @property
    def entry_loss(self) -> float:
        """Exact privacy loss of one entry: ln(P(true value) / P(one other value)).

        Rounding in the code is included in these probabilities.
        """
        return math.log1p(self.values * ((1.0 - self.blind) / self.blind))

    def loss(self, pair: Pair) -> float:
        """Compute the exact privacy loss of this mechanism for two inputs.

        The loss is `entry_loss` times the number of entries in which the inputs differ.

        Args:
            pair: two inputs of the same shape.

        Returns:
            The privacy loss: the maximum over all outputs.

        Raises:
            TypeError: if `pair` is not a Pair, or an input does not contain numbers.
            ValueError: if an entry is not an integer from 0 to k - 1, or if the shapes differ.

        Example:
            >>> round(RandomisedResponse(0.5).loss(Pair([0, 0, 1], [1, 0, 0])), 12)
            1.0
        """
        instance("pair", pair, Pair)
        x, x_prime = self._read_entries("x", pair.x), self._read_entries("x_prime", pair.x_prime)
        if x.shape != x_prime.shape:
            raise invalid("pair", "two inputs of equal shape", (x.shape, x_prime.shape))
        return int((x != x_prime).sum()) * self.entry_loss

    def default_pair(self, dim: int = 1) -> Pair:
        """Return two inputs for an audit, with `dim` entries, that differ only in the first entry.

        The first entry is 0 in one input, and 1 in the other input. All other entries are 0.
        """
        x = np.zeros(dimension(dim), dtype=np.int64)
        x_prime = x.copy()
        x_prime[0] = 1
        return Pair(x, x_prime)

    def __call__(self, x: Any, size: int, rng: Rng = None) -> Entries:
        """Draw outputs on `x`.

        Args:
            x: one integer from 0 to k - 1, or a vector of such integers.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Integers from 0 to k - 1, of shape `(size,)` if `x` is one integer, or else
            `(size, dim)`.
        """
        point, size = self._read_entries("x", x), check_size(size, np.size(x))
        rng = make_generator(rng)
        shape = (size, *point.shape)
        blind = rng.random(shape) < self.blind
        return np.where(blind, rng.integers(self.values, size=shape), point)

    def _read_entries(self, name: str, value: Any) -> Entries:
        requirement = f"one whole number or a vector of them, from 0 to {self.values - 1}"
        array = numeric(name, requirement, value)
        inside = (array >= 0) & (array < self.values)
        if array.ndim > 1 or array.size == 0 or not inside.all() or (array % 1 != 0).any():
            raise invalid(name, requirement, value)
        return array.astype(np.int64)
