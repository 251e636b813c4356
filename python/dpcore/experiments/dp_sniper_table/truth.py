"""The exact privacy loss of every mechanism of the benchmark, from its law and not from draws.

A loss is one-sided: the supremum over outputs y of ``ln P(y | x) - ln P(y | x')``, densities
where outputs are continuous. Integrals over the noisy threshold are Gauss-Legendre sums between
the kinks of the integrand, good to more digits than the tables print.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import partial

import numpy as np
import numpy.typing as npt

from ...errors import choice
from ...records import Pair

Floats = npt.NDArray[np.float64]
Loss = Callable[[Floats, Floats], float]
Pattern = tuple[int, ...]

EPSILON = 0.1
_SEGMENT_POINTS, _MAX_SEGMENT_LENGTH, _COVERED_SCALES = 12, 5.0, 40.0
"""Points in a segment, its longest length, and how many scales of noise the segments cover. The
noise has a scale of 10 at least, so that a segment is half a scale at most."""


def _segment_borders(scale: float, *kinks: Floats) -> Floats:
    """Return borders of segments, dense where inputs lie, with the kinks of the integrand."""
    far = np.arange(4.0, _COVERED_SCALES * scale + _MAX_SEGMENT_LENGTH, _MAX_SEGMENT_LENGTH)
    borders = np.concatenate([-far[::-1], np.arange(-3.5, 3.75, 0.25), far, *kinks])
    return np.unique(borders)


def _quadrature_nodes(edges: Floats) -> tuple[Floats, Floats]:
    """Return Gauss-Legendre points and weights, each of shape (segments, points in a segment)."""
    points, weights = np.polynomial.legendre.leggauss(_SEGMENT_POINTS)
    half, middle = np.diff(edges)[:, np.newaxis] / 2, (edges[1:] + edges[:-1])[:, np.newaxis] / 2
    return middle + half * points, half * weights


def _laplace_density(t: Floats, scale: float) -> Floats:
    return np.asarray(np.exp(-np.abs(t) / scale) / (2 * scale))


def _laplace_cdf(t: Floats, scale: float) -> Floats:
    """Compute P(Lap(scale) < t); scale 0 means no noise."""
    if scale == 0.0:
        return (t > 0).astype(np.float64)
    tail = np.exp(-np.abs(t) / scale) / 2
    return np.where(t < 0, tail, 1 - tail)


def _weigh_nodes(edges: Floats, scale: float) -> tuple[Floats, Floats]:
    """Return the quadrature points, and the mass of Laplace noise at each of them."""
    points, weights = (part.ravel() for part in _quadrature_nodes(edges))
    return points, weights * _laplace_density(points, scale)


def _largest_ratio(p: Iterable[float], q: Iterable[float]) -> float:
    """Return the largest ln(p/q) over outputs that are possible under p."""
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0.0]
    return math.inf if any(b == 0.0 for _, b in pairs) else max(math.log(a / b) for a, b in pairs)


def additive_loss(x: Floats, x_prime: Floats, scale: float, copies: int = 1) -> float:
    """Compute the loss of Laplace noise of one scale on every entry.

    Prefix sums have the same loss, since their increments are such outputs.
    """
    return copies * float(np.abs(x - x_prime).sum()) / scale


def geometric_cells(center: int, ratio: float = 8 / 9, top: int = 5) -> Floats:
    """Return the two-sided geometric law around the center, clamped to 0..top."""
    z = np.arange(top + 1)
    cells = (1 - ratio) / (1 + ratio) * ratio ** np.abs(z - center)
    ends = [ratio**center, ratio ** (top - center)]
    cells[[0, top]] = np.array(ends) / (1 + ratio)
    return np.asarray(cells)


def geometric_loss(x: Floats, x_prime: Floats) -> float:
    """Compute the loss of the truncated geometric from its atoms."""
    return _largest_ratio(geometric_cells(int(x[0])), geometric_cells(int(x_prime[0])))


def _noise_density_and_cdf(
    exponential: bool, scale: float, x: Floats, t: Floats
) -> tuple[Floats, Floats]:
    """Return densities and distribution functions of x_i + noise at t, a row for each entry."""
    apart = np.asarray(t - x[:, np.newaxis])
    if not exponential:
        return _laplace_density(apart, scale), _laplace_cdf(apart, scale)
    late = np.exp(-np.maximum(apart, 0.0) / scale)
    return np.where(apart < 0, 0.0, late / scale), np.where(apart < 0, 0.0, 1 - late)


def _cdf_of_others(cdf: Floats, i: int) -> Floats:
    return np.asarray(np.delete(cdf, i, axis=0).prod(axis=0))


def argmax_cells(x: Floats, exponential: bool, scale: float = 2 / EPSILON) -> Floats:
    """Compute P(entry i is the noisy maximum) = integral of f(t - x_i) prod_j F(t - x_j)."""
    points, weights = (part.ravel() for part in _quadrature_nodes(_segment_borders(scale, x)))
    density, cdf = _noise_density_and_cdf(exponential, scale, x, points)
    return np.array([weights @ (density[i] * _cdf_of_others(cdf, i)) for i in range(x.size)])


def argmax_loss(x: Floats, x_prime: Floats, exponential: bool) -> float:
    """Compute the loss of report noisy max from its atoms."""
    return _largest_ratio(argmax_cells(x, exponential), argmax_cells(x_prime, exponential))


def maximum_loss(
    x: Floats, x_prime: Floats, exponential: bool, scale: float = 2 / EPSILON
) -> float:
    """Compute the loss of the noisy maximum, of density sum_i f(t - x_i) prod_j F(t - x_j).

    With exponential noise it starts at the largest entry, there as a power of the number of
    entries that are largest: a side that starts earlier, or more steeply, can give itself away.
    """
    starts = [(point.max(), np.count_nonzero(point == point.max())) for point in (x, x_prime)]
    if exponential and starts[0] < starts[1]:
        return math.inf
    points = _quadrature_nodes(_segment_borders(scale, x, x_prime))[0].ravel()
    curves = []
    for point in (x, x_prime):
        density, cdf = _noise_density_and_cdf(exponential, scale, point, points)
        curves.append(sum(density[i] * _cdf_of_others(cdf, i) for i in range(point.size)))
    return _largest_ratio(*curves)


def _split_by_answers(
    x: Floats, mass: Floats, answer: tuple[Floats, Floats], cutoff: int
) -> dict[Pattern, Floats]:
    """Return the part of `mass` that remains after every run of answers, point by point.

    `answer` holds factors for "below" and "above", queries along the first axis; a run ends
    where it has `cutoff` ones.
    """
    running: dict[Pattern, Floats] = {(): mass}
    ended: dict[Pattern, Floats] = {}
    for i in range(x.size):
        longer: dict[Pattern, Floats] = {}
        for flags, left in running.items():
            longer[(*flags, 0)] = left * answer[0][i]
            place = ended if sum(flags) + 1 == cutoff else longer
            place[(*flags, 1)] = left * answer[1][i]
        running = longer
    return {**ended, **running}


def flag_cells(
    x: Floats, threshold: float, rho: float, nu: float, cutoff: int
) -> dict[Pattern, float]:
    """Compute the probabilities of the answers of a sparse vector, up to the end of each run.

    Args:
        x: true answers of the queries.
        threshold: T.
        rho: scale of the threshold's noise.
        nu: scale of the queries' noise, 0 for none.
        cutoff: answers above after which a run ends; more than the queries for no end.
    """
    points, mass = _weigh_nodes(_segment_borders(rho, x - threshold), rho)
    below = _laplace_cdf(threshold + points - x[:, np.newaxis], nu)
    cells = _split_by_answers(x, mass, (below, 1 - below), cutoff)
    return {flags: float(mass.sum()) for flags, mass in cells.items()}


def flags_loss(
    x: Floats, x_prime: Floats, threshold: float, rho: float, nu: float, cutoff: int = 1
) -> float:
    """Compute the loss of the sparse vector with flags from its atoms."""
    cells, cells_prime = (flag_cells(p, threshold, rho, nu, cutoff) for p in (x, x_prime))
    return _largest_ratio(cells.values(), cells_prime.values())


def numerical_svt_loss(x: Floats, x_prime: Floats, epsilon: float = EPSILON) -> float:
    """Compute the loss of the numerical sparse vector.

    Its law is that of the flags times fresh noise Lap(6/epsilon) at every answer above.
    """
    scales = (1.0, 3 / epsilon, 12 / epsilon, 2)
    cells, cells_prime = (flag_cells(point, *scales) for point in (x, x_prime))
    apart = np.abs(x - x_prime) * epsilon / 6
    return max(
        math.log(cells[run] / cells_prime[run]) + float(apart[: len(run)] @ np.array(run))
        for run in cells
    )


def values_loss(x: Floats, x_prime: Floats, rho: float, nu: float, cutoff: int = 1) -> float:
    """Compute the loss of the sparse vector that releases the noisy queries, T = 1.

    A released value v bounds the threshold's noise by v - T: with m the least of them the density
    is ``prod f(v_k - x_k)`` times the integral up to m - T of the runs' mass. For m given, every
    other v at or above m contributes at most what it does at one end, m or infinity.
    """
    edges = _segment_borders(rho, x - 1.0, x_prime - 1.0)
    points, mass = _weigh_nodes(edges, rho)
    masses = []
    for point in (x, x_prime):
        below = _laplace_cdf(1.0 + points - point[:, np.newaxis], nu)
        masses.append(_split_by_answers(point, mass, (below, np.ones_like(below)), cutoff))
    return max(
        _run_loss(run, [mass[run] for mass in masses], (x, x_prime), 1.0 + edges[1:], nu)
        for run in masses[0]
    )


def _run_loss(
    run: Pattern, masses: list[Floats], inputs: tuple[Floats, ...], least: Floats, nu: float
) -> float:
    mass, mass_prime = masses
    if not any(run):
        return math.log(mass.sum() / mass_prime.sum())
    x, x_prime = (point[: len(run)][np.array(run) == 1, np.newaxis] for point in inputs)
    there = (np.abs(least - x_prime) - np.abs(least - x)) / nu
    beyond = np.maximum(there, (x - x_prime) / nu)
    released = beyond.sum(axis=0) + (there - beyond).max(axis=0)
    up_to, up_to_prime = (np.cumsum(m.reshape(-1, _SEGMENT_POINTS).sum(axis=1)) for m in masses)
    # The first segments hold too little of the tail to stand for all that is left of them.
    settled = slice(up_to.size // 8, None)
    return float((np.log(up_to / up_to_prime) + released)[settled].max())


def values_and_flags(x: Floats, x_prime: Floats, epsilon: float = EPSILON) -> float:
    """Compute the loss of algorithms 3 and 4 on the same queries with cutoff 2.

    They are independent, so that their losses add.
    """
    first = values_loss(x, x_prime, 2 / epsilon, 4 / epsilon, 2)
    return first + flags_loss(x, x_prime, 1.0, 4 / epsilon, 4 / (3 * epsilon), 2)


def rappor_loss(x: Floats, x_prime: Floats, keep: float) -> float:
    """Compute the loss of RAPPOR, which has independent bits.

    P(1) = keep where the filter has a 1, otherwise 1 - keep.
    """
    sets = {0: {0, 11, 18}, 1: {3, 10, 13}, 2: {7, 10, 11, 19}}
    apart = sets[int(x[0])] ^ sets[int(x_prime[0])]
    return len(apart) * math.log(keep / (1 - keep))


LOSSES: dict[str, Loss] = {
    "Laplace": partial(additive_loss, scale=1 / EPSILON),
    "TruncatedGeometric": geometric_loss,
    "NoisyHist1": partial(additive_loss, scale=1 / EPSILON),
    "NoisyHist2": partial(additive_loss, scale=EPSILON),
    "ReportNoisyMax1": partial(argmax_loss, exponential=False),
    "ReportNoisyMax2": partial(argmax_loss, exponential=True),
    "ReportNoisyMax3": partial(maximum_loss, exponential=False),
    "ReportNoisyMax4": partial(maximum_loss, exponential=True),
    "SVT1": partial(flags_loss, threshold=0.5, rho=2 / EPSILON, nu=4 / EPSILON),
    "SVT2": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=4 / EPSILON),
    "SVT3": partial(values_loss, rho=2 / EPSILON, nu=2 / EPSILON),
    "SVT4": partial(flags_loss, threshold=1.0, rho=4 / EPSILON, nu=4 / (3 * EPSILON)),
    "SVT5": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=0.0, cutoff=99),
    "SVT6": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=2 / EPSILON, cutoff=99),
    "RAPPOR": partial(rappor_loss, keep=0.375 * 0.45 + 0.625 * 0.55),
    "OneTimeRAPPOR": partial(rappor_loss, keep=0.525),
    "LaplaceParallel": partial(additive_loss, scale=20 / EPSILON, copies=20),
    "SVT34Parallel": values_and_flags,
    "PrefixSum": partial(additive_loss, scale=1 / EPSILON),
    "NumericalSVT": numerical_svt_loss,
}


def exact_supremum(name: str, pairs: Iterable[Pair]) -> float:
    """Return the largest loss over some pairs, each in both directions.

    Args:
        name: a mechanism of the benchmark.
        pairs: the inputs.

    Returns:
        The supremum, inf where an output is impossible on one side.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if it is not in the benchmark.

    Example:
        >>> round(exact_supremum("Laplace", [Pair([1.0], [0.0])]), 12)
        0.1
    """
    loss = LOSSES[choice("name", name, tuple(LOSSES))]
    sides = [(pair.x, pair.x_prime) for pair in pairs]
    return max(max(loss(x, x_prime), loss(x_prime, x)) for x, x_prime in sides)
