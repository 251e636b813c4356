"""Audits of the 20 mechanisms of DP-Sniper's benchmark, compared with published bounds.

DP-Sniper and StatDP are other auditors, which published lower bounds on the epsilon of these
mechanisms. dpcore audits every mechanism with its default attack, on all pairs of inputs that
DP-Sniper used. The table compares the certified bounds of dpcore with the published bounds, and
with the exact privacy loss on these pairs. A correct bound exceeds the exact loss with probability
at most 1 - confidence.

The privacy loss of a pair (x, x') is the supremum over outputs y of ``ln P(y | x) - ln P(y | x')``.
For continuous outputs, P is the density. dpcore computes the loss from the law of the outputs, not
from draws. The laws of the sparse vector techniques are integrals over the noisy threshold. dpcore
computes these integrals by Gauss-Legendre quadrature between the kinks of the integrand. The error
is smaller than the last digit in the tables.
"""

from __future__ import annotations

import math
import statistics
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import numpy as np

from ...bounds.unconditional import berger_boos
from ...errors import choice, integer
from ...pairs.differences import pair_lists_to_float_arrays
from ...records import Counts, Floats, Pair
from ...report.figures import BLUE, GREY, INK, RED, WHITE, restyle_figure
from ...report.rows import format_epsilon
from ...report.shown import Shown
from ...results.audits import Audit
from ...streams import threads_of
from .. import drawing
from ..base import SEED, Column, Settings, align_columns, setting
from ..running import Tabled, audit_cell, cell_seed, group_answers, run_jobs, time_run
from .mechanisms import BENCHMARKS, EPSILON, Benchmark

__all__ = ["BESIDE", "NAME", "TRIALS", "Config", "Result", "Row", "run"]

NAME = "dp-sniper-table"

# Each audit should take less than a minute on two cores. Sampling takes 5 to 17 seconds, and the
# choice of the event and its evaluation are added.
_FAST = (
    "NoisyHist1", "ReportNoisyMax1", "ReportNoisyMax2", "ReportNoisyMax3", "ReportNoisyMax4",
    "SVT1", "SVT2",
)  # fmt: skip
TRIALS = {
    **dict.fromkeys(BENCHMARKS, 10**8),
    **dict.fromkeys(("Laplace", "TruncatedGeometric"), 4 * 10**8),
    **dict.fromkeys(_FAST, 2 * 10**8),
    **{"SVT3": 9 * 10**7, "SVT4": 17 * 10**7, "SVT34Parallel": 35 * 10**6},
    "NumericalSVT": 8 * 10**7,
}
"""Default number of draws on each input of a pair, for every mechanism."""

_PILOT_SHARE = 0.4
"""Number of pilot draws (on which the event is chosen) divided by the number of counted draws. With
fewer pilot draws, the audit misses rare events (ReportNoisyMax4) and small differences
(LaplaceParallel)."""

BESIDE = ("SVT1", "SVT2", "SVT4")
"""Mechanisms for which the table also shows a bound from an unconditional exact test. The true
losses of these mechanisms are close to the published bounds, so the type of bound matters."""

Loss = Callable[[Floats, Floats], float]
Pattern = tuple[int, ...]

_SEGMENT_POINTS, _MAX_SEGMENT_LENGTH, _COVERED_SCALES = 12, 5.0, 40.0
"""Three numbers: quadrature points in a segment, largest length of a segment, and half the length
of the whole interval. The last number is in units of the noise scale. The scale is at least 10, so
a segment is at most half a scale long."""


def _segment_borders(scale: float, *kinks: Floats) -> Floats:
    """Return the borders of the integration segments: a grid (finer near 0) and all `kinks`."""
    far = np.arange(4.0, _COVERED_SCALES * scale + _MAX_SEGMENT_LENGTH, _MAX_SEGMENT_LENGTH)
    return np.unique(np.concatenate([-far[::-1], np.arange(-3.5, 3.75, 0.25), far, *kinks]))


def _quadrature_nodes(edges: Floats) -> tuple[Floats, Floats]:
    """Return the Gauss-Legendre points and weights, each of shape (segments, points)."""
    points, weights = np.polynomial.legendre.leggauss(_SEGMENT_POINTS)
    half, middle = np.diff(edges)[:, np.newaxis] / 2, (edges[1:] + edges[:-1])[:, np.newaxis] / 2
    return middle + half * points, half * weights


def _laplace_density(t: Floats, scale: float) -> Floats:
    return np.asarray(np.exp(-np.abs(t) / scale) / (2 * scale))


def _laplace_cdf(t: Floats, scale: float) -> Floats:
    """Compute P(Lap(scale) < t). A scale of 0 means no noise."""
    if scale == 0.0:
        return (t > 0).astype(np.float64)
    tail = np.exp(-np.abs(t) / scale) / 2
    return np.where(t < 0, tail, 1 - tail)


def _nodes_and_masses(edges: Floats, scale: float) -> tuple[Floats, Floats]:
    """Return the quadrature points, and the probability mass of Laplace noise at each of them."""
    points, weights = (part.ravel() for part in _quadrature_nodes(edges))
    return points, weights * _laplace_density(points, scale)


def _max_log_p_over_q(p: Iterable[float], q: Iterable[float]) -> float:
    """Return the largest ln(p/q) over the outputs with p > 0.

    The result is inf if q = 0 and p > 0 for some output.
    """
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0.0]
    return math.inf if any(b == 0.0 for _, b in pairs) else max(math.log(a / b) for a, b in pairs)


def laplace_privacy_loss(x: Floats, x_prime: Floats, scale: float, copies: int = 1) -> float:
    """Return the exact privacy loss between x and x' if every entry gets Laplace noise.

    A release of the cumulative sums of the noisy entries has the same loss. `scale` is the scale of
    the noise, and `copies` is the number of independent releases of all entries.
    """
    return copies * float(np.abs(x - x_prime).sum()) / scale


def geometric_pmf(center: int, ratio: float = 8 / 9, top: int = 5) -> Floats:
    """Return the probability of each output 0, ..., `top` of the truncated geometric mechanism.

    The mechanism adds two-sided geometric noise to the true count `center`. The noise value z has a
    probability proportional to ratio^|z|. A sum below 0 becomes 0, and a sum above `top` becomes
    `top`.
    """
    cells = (1 - ratio) / (1 + ratio) * ratio ** np.abs(np.arange(top + 1) - center)
    cells[[0, top]] = np.array([ratio**center, ratio ** (top - center)]) / (1 + ratio)
    return np.asarray(cells)


def geometric_loss(x: Floats, x_prime: Floats) -> float:
    """Return the exact privacy loss of the truncated geometric mechanism for counts x and x'."""
    return _max_log_p_over_q(geometric_pmf(int(x[0])), geometric_pmf(int(x_prime[0])))


def _pdf_cdf_per_x(exponential: bool, scale: float, x: Floats, t: Floats) -> tuple[Floats, Floats]:
    """Return the densities and distribution functions of x_i + noise at `t`, one row per entry."""
    apart = np.asarray(t - x[:, np.newaxis])
    if not exponential:
        return _laplace_density(apart, scale), _laplace_cdf(apart, scale)
    late = np.exp(-np.maximum(apart, 0.0) / scale)
    return np.where(apart < 0, 0.0, late / scale), np.where(apart < 0, 0.0, 1 - late)


def _cdf_of_others(cdf: Floats, i: int) -> Floats:
    return np.asarray(np.delete(cdf, i, axis=0).prod(axis=0))


def argmax_cells(x: Floats, exponential: bool, scale: float = 2 / EPSILON) -> Floats:
    """Return, for every i, the probability that entry i of x has the largest noisy value.

    The probability is the integral over t of f(t - x_i) times the product of F(t - x_j) over all j
    except i. Here f and F are the density and the distribution function of the noise. The noise is
    exponential if `exponential` is True, and otherwise Laplace.
    """
    points, weights = (part.ravel() for part in _quadrature_nodes(_segment_borders(scale, x)))
    density, cdf = _pdf_cdf_per_x(exponential, scale, x, points)
    return np.array([weights @ (density[i] * _cdf_of_others(cdf, i)) for i in range(x.size)])


def argmax_loss(x: Floats, x_prime: Floats, exponential: bool) -> float:
    """Return the exact privacy loss of report noisy max for two inputs.

    The mechanism adds noise to every entry, and releases the index of the largest noisy entry. The
    noise is exponential if `exponential` is True, and otherwise Laplace.
    """
    return _max_log_p_over_q(argmax_cells(x, exponential), argmax_cells(x_prime, exponential))


def noisy_max_value_loss(
    x: Floats, x_prime: Floats, exponential: bool, scale: float = 2 / EPSILON
) -> float:
    """Return the exact privacy loss of a mechanism that releases the largest noisy entry.

    The noise is exponential if `exponential` is True, and otherwise Laplace. The density of the
    output at t is the sum over i of f(t - x_i) times the product of F(t - x_j) over all j except i.
    Here f and F are the density and the distribution function of the noise.

    With exponential noise, the density of the output is 0 below the largest entry of the input.
    Directly above the largest entry, the density grows like a power of the distance from this
    entry. The exponent is larger if several entries are tied for the largest. The loss is infinite
    if the largest entry of x is smaller than the largest entry of x'. If the two largest entries
    are equal, and the exponent for x is smaller than the exponent for x', the loss is infinite too.
    """
    starts = [(point.max(), np.count_nonzero(point == point.max())) for point in (x, x_prime)]
    if exponential and starts[0] < starts[1]:
        return math.inf
    points = _quadrature_nodes(_segment_borders(scale, x, x_prime))[0].ravel()
    curves = []
    for point in (x, x_prime):
        density, cdf = _pdf_cdf_per_x(exponential, scale, point, points)
        curves.append(sum(density[i] * _cdf_of_others(cdf, i) for i in range(point.size)))
    return _max_log_p_over_q(*curves)


def _threshold_mass_by_answers(
    x: Floats, mass: Floats, answer: tuple[Floats, Floats], cutoff: int
) -> dict[Pattern, Floats]:
    """Return the joint probabilities of each sequence of answers and each noisy threshold.

    `mass` contains the probabilities of the noisy thresholds. `answer` contains the probabilities
    of the answers "below" and "above", with one row per query. A sequence ends after `cutoff`
    answers "above".
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


def svt_probabilities(
    x: Floats, threshold: float, rho: float, nu: float, cutoff: int
) -> dict[Pattern, float]:
    """Return the probability of every sequence of answers of a sparse vector mechanism.

    The mechanism compares noisy query answers with a noisy threshold. In a sequence, 1 means
    "above", and 0 means "below".

    Args:
        x: true answers of the queries, without noise.
        threshold: threshold without noise.
        rho: scale of the noise on the threshold.
        nu: scale of the noise on the queries; 0 for no noise.
        cutoff: number of answers "above" after which the mechanism stops. If `cutoff` exceeds the
            number of queries, the mechanism never stops early.
    """
    points, mass = _nodes_and_masses(_segment_borders(rho, x - threshold), rho)
    below = _laplace_cdf(threshold + points - x[:, np.newaxis], nu)
    cells = _threshold_mass_by_answers(x, mass, (below, 1 - below), cutoff)
    return {flags: float(mass.sum()) for flags, mass in cells.items()}


def flags_loss(
    x: Floats, x_prime: Floats, threshold: float, rho: float, nu: float, cutoff: int = 1
) -> float:
    """Return the exact privacy loss of a sparse vector mechanism that releases no noisy values.

    For each query, the mechanism releases only "above" or "below" (the threshold). `rho` is the
    scale of the noise on the threshold, and `nu` is the scale of the noise on the queries. The
    mechanism stops after `cutoff` answers "above".
    """
    cells, cells_prime = (svt_probabilities(p, threshold, rho, nu, cutoff) for p in (x, x_prime))
    return _max_log_p_over_q(cells.values(), cells_prime.values())


def numerical_svt_loss(x: Floats, x_prime: Floats, epsilon: float = EPSILON) -> float:
    """Return the exact privacy loss of the numerical sparse vector mechanism for two inputs.

    The mechanism compares noisy queries with a noisy threshold. For every query above the
    threshold, the mechanism releases the query with new noise Lap(6/epsilon). The density of an
    output is the probability of the sequence of answers, times the densities of the released
    values.
    """
    scales = (1.0, 3 / epsilon, 12 / epsilon, 2)
    cells, cells_prime = (svt_probabilities(point, *scales) for point in (x, x_prime))
    apart = np.abs(x - x_prime) * epsilon / 6
    return max(
        math.log(cells[run] / cells_prime[run]) + float(apart[: len(run)] @ np.array(run))
        for run in cells
    )


def svt_values_loss(x: Floats, x_prime: Floats, rho: float, nu: float, cutoff: int = 1) -> float:
    """Return the exact privacy loss of a sparse vector mechanism that releases noisy queries.

    The mechanism compares noisy queries with a noisy threshold. The threshold without noise is T =
    1. For every query above the threshold, the mechanism releases the noisy query v. `rho` is the
    scale of the noise on the threshold, and `nu` is the scale of the noise on the queries. The
    mechanism stops after `cutoff` released values.

    A released value v shows that the noise on the threshold is at most v - T. Let m be the smallest
    released value. The density of an output is the product of ``f(v_k - x_k)`` over the released
    values, times an integral. Here f is the density of the noise on the queries. The integral runs
    over the noise on the threshold, up to m - T, and the integrand is the probability of the
    answers "below". For a given m, all other released values are at least m. The contribution of
    each of these values to the loss is largest at m or at infinity.
    """
    edges = _segment_borders(rho, x - 1.0, x_prime - 1.0)
    points, mass = _nodes_and_masses(edges, rho)
    masses = []
    for point in (x, x_prime):
        below = _laplace_cdf(1.0 + points - point[:, np.newaxis], nu)
        masses.append(_threshold_mass_by_answers(point, mass, (below, np.ones_like(below)), cutoff))
    return max(
        _pattern_loss(run, [mass[run] for mass in masses], (x, x_prime), 1.0 + edges[1:], nu)
        for run in masses[0]
    )


def _pattern_loss(
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
    # The first segments contain too little probability mass to represent the rest of the tail.
    return float((np.log(up_to / up_to_prime) + released)[up_to.size // 8 :].max())


def joint_sparse_vector_loss(x: Floats, x_prime: Floats, epsilon: float = EPSILON) -> float:
    """Return the exact joint privacy loss of two sparse vector mechanisms for the same queries.

    The mechanisms are algorithms 3 and 4 of Lyu, Su and Li (2017). Each mechanism stops after two
    answers "above". The outputs of the two algorithms are independent. The joint loss is therefore
    the sum of the losses of the two algorithms.
    """
    first = svt_values_loss(x, x_prime, 2 / epsilon, 4 / epsilon, 2)
    return first + flags_loss(x, x_prime, 1.0, 4 / epsilon, 4 / (3 * epsilon), 2)


def rappor_loss(x: Floats, x_prime: Floats, keep: float) -> float:
    """Return the exact privacy loss of RAPPOR, which releases noisy bits of a Bloom filter.

    The noise on each bit is independent. If the bit of the filter is 1, the released bit is 1 with
    probability `keep`. If the bit of the filter is 0, the released bit is 1 with probability 1 -
    `keep`.
    """
    sets = {0: {0, 11, 18}, 1: {3, 10, 13}, 2: {7, 10, 11, 19}}
    return len(sets[int(x[0])] ^ sets[int(x_prime[0])]) * math.log(keep / (1 - keep))


LOSSES: dict[str, Loss] = {
    "Laplace": partial(laplace_privacy_loss, scale=1 / EPSILON),
    "TruncatedGeometric": geometric_loss,
    "NoisyHist1": partial(laplace_privacy_loss, scale=1 / EPSILON),
    "NoisyHist2": partial(laplace_privacy_loss, scale=EPSILON),
    "ReportNoisyMax1": partial(argmax_loss, exponential=False),
    "ReportNoisyMax2": partial(argmax_loss, exponential=True),
    "ReportNoisyMax3": partial(noisy_max_value_loss, exponential=False),
    "ReportNoisyMax4": partial(noisy_max_value_loss, exponential=True),
    "SVT1": partial(flags_loss, threshold=0.5, rho=2 / EPSILON, nu=4 / EPSILON),
    "SVT2": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=4 / EPSILON),
    "SVT3": partial(svt_values_loss, rho=2 / EPSILON, nu=2 / EPSILON),
    "SVT4": partial(flags_loss, threshold=1.0, rho=4 / EPSILON, nu=4 / (3 * EPSILON)),
    "SVT5": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=0.0, cutoff=99),
    "SVT6": partial(flags_loss, threshold=1.0, rho=2 / EPSILON, nu=2 / EPSILON, cutoff=99),
    "RAPPOR": partial(rappor_loss, keep=0.375 * 0.45 + 0.625 * 0.55),
    "OneTimeRAPPOR": partial(rappor_loss, keep=0.525),
    "LaplaceParallel": partial(laplace_privacy_loss, scale=20 / EPSILON, copies=20),
    "SVT34Parallel": joint_sparse_vector_loss,
    "PrefixSum": partial(laplace_privacy_loss, scale=1 / EPSILON),
    "NumericalSVT": numerical_svt_loss,
}


def exact_supremum(name: str, pairs: Iterable[Pair]) -> float:
    """Return the largest exact privacy loss of a benchmark mechanism over pairs of inputs.

    For each pair (x, x'), the function computes the loss of x against x' and the loss of x' against
    x.

    Args:
        name: name of a mechanism in the benchmark of DP-Sniper, such as "Laplace".
        pairs: the pairs of inputs.

    Returns:
        The largest loss in nats. The loss is inf if an output is possible for only one input of a
        pair.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if the benchmark has no mechanism of this name.

    Example:
        >>> round(exact_supremum("Laplace", [Pair([1.0], [0.0])]), 12)
        0.1
    """
    loss = LOSSES[choice("name", name, tuple(LOSSES))]
    sides = [(pair.x, pair.x_prime) for pair in map(pair_lists_to_float_arrays, pairs)]
    return max(max(loss(x, x_prime), loss(x_prime, x)) for x, x_prime in sides)


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment that audits the mechanisms of DP-Sniper's benchmark.

    Args:
        trials: number of outputs that an audit draws on each input of a pair. By default, each
            mechanism has a separate number, listed in `TRIALS`.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        repeats: number of audits of every mechanism, each with a separate seed.
        confidence: confidence level of each lower bound separately. The published bounds have
            confidence 0.9.
        mechanisms: names of the mechanisms.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or `mechanisms` is empty or contains a name twice.

    Example:
        >>> Config(trials="2e4", mechanisms=("SVT1",)).trials_of("SVT1")
        20000
        >>> Config().trials_of("SVT1")
        200000000
    """

    trials: int | None = None
    seed: int = SEED
    repeats: int = setting(3, integer, 1)
    confidence: float = 0.9
    mechanisms: tuple[str, ...] = setting(tuple(BENCHMARKS), choice, tuple(BENCHMARKS))

    def trials_of(self, name: str) -> int:
        """Return the number of outputs on each input in an audit of the mechanism `name`."""
        return TRIALS[name] if self.trials is None else self.trials


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of the audits of one mechanism.

    Args:
        name: name of the mechanism.
        audits: result of each audit.
        seconds: wall-clock seconds of each audit. A comparison of two rows with == ignores this
            field.
    """

    name: str
    audits: tuple[Audit, ...]
    seconds: tuple[float, ...] = field(default=(), compare=False)

    @property
    def benchmark(self) -> Benchmark:
        """Published bounds, exact privacy loss and other facts about the mechanism of this row."""
        return BENCHMARKS[self.name]

    @property
    def bounds(self) -> tuple[float, ...]:
        """Lower bound on epsilon from each audit of the mechanism, by Clopper-Pearson intervals."""
        return tuple(audit.epsilon_lower for audit in self.audits)

    @property
    def exact_bounds(self) -> tuple[float, ...]:
        """Lower bound on epsilon from each audit of the mechanism, by an unconditional exact test.

        The tuple is empty if the mechanism is not in `BESIDE` ("SVT1", "SVT2" and "SVT4"). These
        bounds and the bounds in the attribute `bounds` are computed from the same counts. Do not
        choose the larger of two bounds from the same counts: the larger bound does not have the
        stated confidence.
        """
        if self.name not in BESIDE:
            return ()
        return tuple(_cached_exact_bound(a.bound_counts, a.confidence) for a in self.audits)

    @property
    def certified(self) -> float:
        """Median of the lower bounds in `bounds`.

        If the number of bounds is even, the property is the smaller of the two middle bounds.
        """
        return statistics.median_low(self.bounds)

    @property
    def certified_exact(self) -> float | None:
        """Median of the lower bounds in `exact_bounds`, or None if `exact_bounds` is empty."""
        return statistics.median_low(self.exact_bounds) if self.exact_bounds else None

    @property
    def reached(self) -> bool:
        """True if the median bound of dpcore is at least the larger of DP-Sniper's two bounds."""
        return self.certified >= self.benchmark.dp_sniper_best

    @property
    def above(self) -> int:
        """Number of wrong lower bounds (above the true loss) in `bounds` and `exact_bounds`."""
        return sum(bound > self.benchmark.supremum for bound in (*self.bounds, *self.exact_bounds))


@cache
def _cached_exact_bound(counts: Counts, confidence: float) -> float:
    """Compute the slow bound of an unconditional exact test from counts, and cache the result."""
    return berger_boos(counts, 0.0, confidence)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every mechanism of DP-Sniper's benchmark.

    Args:
        config: options of the experiment.
        threads: number of threads. Defaults to all cores. The number never changes a bound.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one row for each mechanism.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first audit is complete.

    Source:
        The benchmark: Bichsel, Steffen, Bogunovic and Vechev (2021).
    """
    jobs = [(name, repeat) for name in config.mechanisms for repeat in range(config.repeats)]
    done, ended = run_jobs("the benchmark", jobs, partial(_time_audit, config, threads), progress)
    cells = group_answers((name for name, _ in jobs), done)
    rows = tuple(Row(name, *zip(*ones, strict=True)) for name, ones in cells.items())
    return Result(config, rows, partial=ended)


def _time_audit(config: Config, threads: int | None, name: str, repeat: int) -> tuple[Audit, float]:
    begun, benchmark, trials = time.perf_counter(), BENCHMARKS[name], config.trials_of(name)
    cell = audit_cell(
        config, f"{name}-{repeat}", benchmark.mechanism, list(benchmark.pairs), attack="auto",
        trials=trials, pilot=max(2, int(_PILOT_SHARE * trials)), claim=benchmark.claim,
        bound="clopper_pearson", rng=cell_seed(config.seed, f"{name}/{repeat}"),
        threads=threads_of(threads),
    )  # fmt: skip
    return cell, time.perf_counter() - begun


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits of the mechanisms in DP-Sniper's benchmark.

    Args:
        config: options of the run.
        rows: one row for each mechanism.
    """

    rows: tuple[Row, ...]

    @property
    def reached(self) -> int:
        """Number of mechanisms whose median bound reaches the larger bound of DP-Sniper."""
        return sum(row.reached for row in self.rows)

    @property
    def above(self) -> int:
        """Number of wrong lower bounds (above the true loss) over all mechanisms."""
        return sum(row.above for row in self.rows)

    def table(self, *, times: bool = True) -> str:
        """Return the results as plain text.

        Args:
            times: True to show the seconds of the audits too. The seconds differ between runs.
        """
        config = self.config
        trials = "as the table says" if config.trials is None else f"{config.trials:,} a side"
        columns = [column for column in _COLUMNS if times or column.head != "s"]
        shown = sum(len(row.bounds) + len(row.exact_bounds) for row in self.rows)
        glossary = [_BENCHMARK_GLOSSARY, *([_TIMES_GLOSSARY] if times else [])]
        notes = [
            textwrap.indent(textwrap.fill(f"{row.name}: {row.benchmark.note}", 96), "  ")
            for row in self.rows
            if row.benchmark.note
        ]
        return self.join_parts(
            f"The benchmark of DP-Sniper at {100 * config.confidence:g} % confidence: "
            f"{config.repeats} audits of every mechanism,\ntrials {trials}, seed {config.seed}",
            align_columns(columns, self.rows),
            f"At least DP-Sniper's better bound: {self.reached} of {len(self.rows)} mechanisms. "
            f"Above the true loss: {self.above} of {shown} bounds.",
            "\n".join([*glossary, *(["Notes:"] if notes else []), *notes]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values.

        The method `Audit.from_dict` converts each audit in the dict back to an `Audit`.
        """
        rows = [_row_to_dict(row) for row in self.rows]
        return self.make_record(rows=rows, reached=self.reached, above=self.above)

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the bounds of dpcore and the true losses, each divided by DP-Sniper's larger bound.

        Returns:
            A matplotlib figure.
        """
        rows = self.rows
        picture = drawing.empty_figure(1.3 + 0.2 * len(rows), ax)
        axes, beside = picture.subplots(1, 2, sharey=True, width_ratios=(2.8, 1.0))
        beside.set_axis_off()
        axes.set_xscale("log")
        axes.axvline(1.0, color=GREY, linestyle="--", linewidth=1.0, zorder=1)
        for place, row in enumerate(reversed(rows)):
            _draw_bound_and_true_loss(axes, place, row)
            _write_bounds_and_true_loss(beside, place, row)
        for head, spot in _BENCHMARK_COLUMNS:
            beside.text(spot, len(rows) - 0.3, head, va="bottom", color=INK, fontsize=drawing.SMALL)
        axes.set_yticks(range(len(rows)), [row.name for row in reversed(rows)])
        axes.set(xlim=(_RATIO_AXIS_START, _RATIO_AXIS_END), ylim=(-0.7, len(rows) - 0.3))
        drawing.set_ticks(axes.xaxis, [0.5, 0.7, 1, 1.5, 2, 3, 5, 10])
        label = "privacy loss, as a multiple of DP-Sniper's better bound (*: above the true loss)"
        drawing.style_axes(axes, label)
        axes.tick_params(axis="y", length=0)
        drawing.add_legend(picture, _make_benchmark_legend(), 4, "upper")
        return restyle_figure(picture)


_BENCHMARK_GLOSSARY = """\
true loss: exact, over the pairs of inputs of the benchmark.
oracle: what the best event of all certifies at 1e8 trials, by Clopper-Pearson at 90 %.
certified: median of the audits, by Clopper-Pearson; each bound holds on its own.
exact: the unconditional exact bound of the same counts, beside it; the larger is never taken.
DP-Sniper: published bounds at 90 % and 2e8 trials, logistic regression/neural network.
StatDP: published bounds at 90 % and 2e8 trials, two runs. *: above the true loss."""
_TIMES_GLOSSARY = """\
s: wall-clock seconds, ours the median with the choice of the event, theirs on their machine;
StatDP's without its verification of about 3 hours."""


def _compare_with_dp_sniper(row: Row) -> str:
    beyond = row.benchmark.dp_sniper_best > row.benchmark.supremum
    verdict = "at least" if row.reached else "below, theirs is untrue" if beyond else "below"
    return f"{verdict}; {row.above} ABOVE THE TRUTH" if row.above else verdict


def _paper_lower_bounds(benchmark: Benchmark, figures: tuple[float, float] | None) -> str:
    if figures is None:
        return "none"
    return "/".join(f"{value:.4f}{'*' if value > benchmark.supremum else ''}" for value in figures)


def _format_trials(trials: int) -> str:
    return f"{trials:.3g}".replace("e+0", "e").replace("e+", "e")


_COLUMNS = (
    Column("mechanism", "name", left=True),
    Column("claim is", lambda row: "true" if row.benchmark.private else "false", left=True),
    Column("true loss", "benchmark.supremum", format_epsilon),
    Column("oracle", "benchmark.oracle_at_1e8", format_epsilon),
    Column("trials", lambda row: row.audits[0].trials, _format_trials),
    Column("certified", "certified", format_epsilon),
    Column("exact", "certified_exact", format_epsilon, missing=""),
    Column("s", "seconds", lambda each: f"{statistics.median(each):.1f}" if each else ""),
    Column(
        "DP-Sniper",
        "benchmark",
        lambda benchmark: _paper_lower_bounds(benchmark, benchmark.dp_sniper),
    ),
    Column("s", "benchmark.dp_sniper_seconds", lambda each: "/".join(map(str, each))),
    Column(
        "StatDP", "benchmark", lambda benchmark: _paper_lower_bounds(benchmark, benchmark.statdp)
    ),
    Column(
        "s",
        "benchmark",
        lambda benchmark: f"{benchmark.statdp_seconds:,}" if benchmark.statdp else "none",
    ),
    Column("against DP-Sniper", _compare_with_dp_sniper, left=True),
)


def _row_to_dict(row: Row) -> dict[str, Any]:
    benchmark = row.benchmark
    return (
        {"mechanism": row.name, "private": benchmark.private, "claim": benchmark.claim}
        | {"supremum": benchmark.supremum, "oracle_at_1e8": benchmark.oracle_at_1e8}
        | {"certified": row.certified, "certified_exact": row.certified_exact}
        | {"bounds": row.bounds, "exact_bounds": row.exact_bounds, "seconds": row.seconds}
        | {"dp_sniper": benchmark.dp_sniper, "dp_sniper_seconds": benchmark.dp_sniper_seconds}
        | {"statdp": benchmark.statdp, "statdp_seconds": benchmark.statdp_seconds}
        | {"reached": row.reached, "above": row.above, "note": benchmark.note}
        | {"audits": [audit.to_dict() for audit in row.audits]}
    )


_RATIO_AXIS_START, _RATIO_AXIS_END = 0.5, 16.0
_BENCHMARK_COLUMNS = (("certified", 0.0), ("DP-Sniper", 0.34), ("true loss", 0.7))
"""Headings of the numbers next to the panel, and their horizontal positions."""


def _draw_bound_and_true_loss(axes: drawing.Axes, place: int, row: Row) -> None:
    benchmark, unit = row.benchmark, row.benchmark.dp_sniper_best
    ratio, truth = row.certified / unit, benchmark.supremum / unit
    colour = BLUE if row.reached else RED
    ends = (_RATIO_AXIS_START, _RATIO_AXIS_END)
    axes.plot([1.0, np.clip(ratio, *ends)], [place, place], color=colour, linewidth=1.2)
    axes.plot(ends, [place, place], color=GREY, linewidth=0.2, zorder=0.5)
    if math.isfinite(truth):
        style: dict[str, Any] = {"markerfacecolor": WHITE, "markeredgecolor": INK}
        axes.plot([truth], [place], "D", markersize=5.5, markeredgewidth=0.9, zorder=2, **style)
    else:
        drawing.draw_arrow(axes, 0.8 * _RATIO_AXIS_END, _RATIO_AXIS_END, place, 0.8)
    if ratio < _RATIO_AXIS_START:
        # The value is below the axis, which begins at 0.5. A left-pointing marker shows this.
        axes.plot([1.04 * _RATIO_AXIS_START], [place], "<", color=colour, markersize=5, zorder=3)
    else:
        axes.plot([ratio], [place], "o", color=colour, markersize=4, zorder=3)


def _write_bounds_and_true_loss(beside: drawing.Axes, place: int, row: Row) -> None:
    benchmark = row.benchmark
    figures = (row.certified, benchmark.dp_sniper_best, benchmark.supremum)
    colours = (BLUE if row.reached else RED, INK, INK)
    for (_, spot), value, colour in zip(_BENCHMARK_COLUMNS, figures, colours, strict=True):
        star = "*" if value > benchmark.supremum else ""
        words = f"{value:.4f}{star}" if math.isfinite(value) else "infinite"
        beside.text(spot, place, words, va="center", color=colour, fontsize=drawing.SMALL)


def _make_benchmark_legend() -> list[Any]:
    hollow: dict[str, Any] = {"markerfacecolor": WHITE, "markeredgecolor": INK}
    return [
        drawing.make_mark("certified, at least", BLUE, "o", 4),
        drawing.make_mark("certified, below", RED, "o", 4),
        drawing.make_mark("true loss", None, "D", 5.5, **hollow),
        drawing.make_mark("infinite", INK, r"$\rightarrow$", 11, markeredgewidth=0.4),
    ]
