"""The benchmark's mechanisms without the sparse vector technique, as plain numpy functions.

Each is `(x, size, rng) -> outputs`: one output in a row, shape `(size,)` or `(size, entries)`.
Outputs of several entries are the transpose of an array that holds every entry in one piece, so
that a column is contiguous; nothing here keeps a generator or any other state.
"""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import invalid, vector

EPSILON = 0.1
"""The privacy parameter of the whole benchmark."""

BLOOM = {0: (0, 11, 18), 1: (3, 10, 13), 2: (7, 10, 11, 19)}
"""Bits set in RAPPOR's filter: murmur3 of the decimal text with seeds 0 to 3, modulo 20."""

BLOOM_BITS = 20
PERMANENT_NOISE, ONE_TIME_NOISE = 0.75, 0.95
FLIPPED = 0.45

Floats = npt.NDArray[np.float64]
Rng = np.random.Generator


def laplace_noise(scale: float, shape: int | tuple[int, int], rng: Rng) -> Floats:
    """Draw Laplace noise by numpy's exponential ziggurat, each value with a random sign.

    It is exact in the tail to 36 scales and beyond, and takes a third of the time of
    `Generator.laplace`.

    Args:
        scale: scale b of the noise, in the units of x; above 0.
        shape: shape of the array.
        rng: where the randomness comes from.

    Returns:
        Independent noise, shape `shape`.

    Source:
        Marsaglia and Tsang (2000), the ziggurat method; a Laplace variable is an exponential one
        with a random sign.

    Example:
        >>> noise = laplace_noise(2.0, 10**5, np.random.default_rng(1))
        >>> round(float(np.abs(noise).mean()), 1), round(float((noise > 0).mean()), 2)
        (2.0, 0.5)
    """
    noise = rng.standard_exponential(shape)
    noise *= scale
    bits = np.unpackbits(
        draw_uniform_words(-(-noise.size // 64), rng).view(np.uint8), count=noise.size
    )
    signs = bits.view(np.int8)
    signs += signs
    signs -= 1
    noise *= signs.reshape(noise.shape)
    return noise


def draw_uniform_words(size: int, rng: Rng) -> npt.NDArray[np.uint64]:
    """Draw uniform 64-bit words; read as smaller integers they are the cheapest random numbers."""
    return rng.integers(0, 2**64, size=size, dtype=np.uint64)


def read_entry(x: Any) -> float:
    """Return the single entry of an input.

    Raises:
        TypeError: if x does not hold a real number.
        ValueError: if it has another number of entries.
    """
    point = vector("x", x)
    if point.size != 1:
        raise invalid("x", "a vector of one number", x)
    return float(point[0])


def noisy_entries(x: Any, size: int, rng: Rng, scale: float) -> Floats:
    """Return noisy copies x + Lap(scale), entry by entry, shape `(entries, size)`."""
    point = vector("x", x)
    noisy = laplace_noise(scale, (point.size, size), rng)
    noisy += point[:, np.newaxis]
    return noisy


def laplace(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release one number, x + Lap(1/epsilon)."""
    noisy = laplace_noise(1.0 / epsilon, size, rng)
    noisy += read_entry(x)
    return noisy


def laplace_parallel(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release 20 independent copies of x + Lap(20/epsilon)."""
    return noisy_entries(np.full(20, read_entry(x)), size, rng, 20.0 / epsilon).T


def noisy_hist1(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release x_i + Lap(1/epsilon) for every entry: a sound histogram if one count differs."""
    return noisy_entries(x, size, rng, 1.0 / epsilon).T


def noisy_hist2(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release x_i + Lap(epsilon): the scale is inverted, the true loss is 1/epsilon."""
    return noisy_entries(x, size, rng, epsilon).T


def prefix_sum(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release running sums of x_i + Lap(1/epsilon)."""
    sums = noisy_entries(x, size, rng, 1.0 / epsilon)
    for before, after in itertools.pairwise(sums):
        after += before
    return sums.T


def _add_exponential_noise(x: Any, size: int, rng: Rng, scale: float) -> Floats:
    point = vector("x", x)
    noisy = rng.standard_exponential((point.size, size))
    noisy *= scale
    noisy += point[:, np.newaxis]
    return noisy


def _row_argmax(noisy: Floats) -> npt.NDArray[np.int8]:
    """Return the index of the largest entry: the last row that exceeds all rows before it.

    `argmax` over so few entries takes four times as long.
    """
    best, index = noisy[0].copy(), np.zeros(noisy.shape[1], np.int8)
    for i, row in enumerate(noisy[1:], start=1):
        np.maximum(index, (row > best) * np.int8(i), out=index)
        np.maximum(best, row, out=best)
    return index


def report_noisy_max1(
    x: Any, size: int, rng: Rng, epsilon: float = EPSILON
) -> npt.NDArray[np.int8]:
    """Release the index of the largest x_i + Lap(2/epsilon)."""
    return _row_argmax(noisy_entries(x, size, rng, 2.0 / epsilon))


def report_noisy_max2(
    x: Any, size: int, rng: Rng, epsilon: float = EPSILON
) -> npt.NDArray[np.int8]:
    """Release the index of the largest x_i + Exp(mean 2/epsilon)."""
    return _row_argmax(_add_exponential_noise(x, size, rng, 2.0 / epsilon))


def report_noisy_max3(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release the largest x_i + Lap(2/epsilon): faulty, it should be the index."""
    return np.asarray(noisy_entries(x, size, rng, 2.0 / epsilon).max(axis=0))


def report_noisy_max4(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Release the largest x_i + Exp(mean 2/epsilon): faulty, its support depends on x."""
    return np.asarray(_add_exponential_noise(x, size, rng, 2.0 / epsilon).max(axis=0))


@functools.cache
def geometric_table(center: int, epsilon: float, top: int = 5) -> npt.NDArray[np.int8]:
    """Tabulate the output for each of D equally likely integers of the truncated geometric.

    With k = ceil(ln(2/epsilon)) and D = (2^(k+1) + 1)(2^k + 1)^(n-1) the distribution function
    times D is ``F(z) = 2^(k(c-z)) (2^k + 1)^(n-c+z)`` below the center c,
    ``D - 2^(k(z-c+1)) (2^k + 1)^(n-1-z+c)`` from c on, and D at n: every cell is an integer, so
    the law is exact. Each output is the least z with F(z) at least a uniform integer in 1..D.

    Args:
        center: the true count, from 0 to `top`.
        epsilon: the privacy parameter; the loss is ln(1 + 2^-k) per step.
        top: largest output n.

    Returns:
        Outputs in order, read-only, shape `(D,)`.

    Source:
        Balcer and Vadhan (2018), algorithm GeoSample, with the natural logarithm that the
        benchmark's implementation uses.

    Example:
        >>> geometric_table(1, 0.1).size
        111537
    """
    k = math.ceil(math.log(2.0 / epsilon))
    base, power = 2**k + 1, 2**k
    total = (2 ** (k + 1) + 1) * base ** (top - 1)
    below = [power ** (center - z) * base ** (top - center + z) for z in range(center)]
    above = [
        total - power ** (z - center + 1) * base ** (top - 1 - z + center)
        for z in range(center, top)
    ]
    cells = np.diff([0, *below, *above, total])
    table = np.repeat(np.arange(top + 1, dtype=np.int8), cells)
    table.setflags(write=False)
    return table


def truncated_geometric(
    x: Any, size: int, rng: Rng, epsilon: float = EPSILON
) -> npt.NDArray[np.int8]:
    """Release a count from 0 to 5 with geometric noise, with integer arithmetic only."""
    value = read_entry(x)
    if value not in range(6):
        raise invalid("x", "a whole number from 0 to 5", x)
    table = geometric_table(int(value), epsilon)
    return table.take(rng.integers(table.size, size=size, dtype=np.int32))


def _bloom_filter(x: Any) -> npt.NDArray[np.bool_]:
    value = read_entry(x)
    if value not in BLOOM:
        raise invalid("x", "0, 1 or 2, whose filters are known", x)
    return np.isin(np.arange(BLOOM_BITS), BLOOM[int(value)])


def _draw_bits(size: int, limit: Any, kind: Any, rng: Rng) -> npt.NDArray[np.bool_]:
    """Draw bits of probability limit/2^w, w the width of `kind`, shape `(20, size)`."""
    wanted = BLOOM_BITS * size
    width = np.dtype(kind).itemsize
    uniform = draw_uniform_words(-(-wanted * width // 8), rng).view(kind)[:wanted]
    return np.asarray(uniform.reshape(BLOOM_BITS, size) < limit)


def rappor(x: Any, size: int, rng: Rng) -> npt.NDArray[np.uint8]:
    """Release the filter of RAPPOR: bits are permanently randomised (f = 3/4), then reported.

    A bit becomes 1 with probability f/2, 0 with f/2, and stays otherwise: with a uniform byte
    that is below 160 for a bit that is set and below 96 for one that is not, exactly. Then 1 is
    reported with probability .55 for a 1 and .45 for a 0: the bit, flipped with probability .45.

    Source:
        Erlingsson, Pihur and Korolova (2014), section 2.
    """
    flat = 128 * PERMANENT_NOISE
    limits = np.where(_bloom_filter(x), 256 - flat, flat).astype(np.uint8)
    bits = _draw_bits(size, limits[:, np.newaxis], np.uint8, rng)
    bits ^= _draw_bits(size, np.uint32(round(FLIPPED * 2**32)), np.uint32, rng)
    return bits.view(np.uint8).T


def one_time_rappor(x: Any, size: int, rng: Rng) -> npt.NDArray[np.uint8]:
    """Release the filter after RAPPOR's permanent step alone, with f = .95.

    Source:
        Erlingsson, Pihur and Korolova (2014), section 2.
    """
    flat = round(ONE_TIME_NOISE * 2**31)
    limits = np.where(_bloom_filter(x), 2**32 - flat, flat).astype(np.uint32)
    return _draw_bits(size, limits[:, np.newaxis], np.uint32, rng).view(np.uint8).T
