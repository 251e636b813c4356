"""Accuracy of several estimators of Renyi divergences, on pairs of laws with known divergences.

A case is a pair of laws P0 and P1. Every method estimates the divergences D(P0||P1) and D(P1||P0)
from samples. For some cases, a method is known to fail. For these cases dpcore also computes
certified lower bounds. The table calls a value misleading if the value is far below its certified
bound. Results that other authors published for such laws are shown only for comparison.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np

from ..divergence import Estimate, closed_forms
from ..divergence.reliability import DIRECTIONS
from ..errors import choice, integer
from ..records import Floats, Record, frozen_array
from ..report.figures import BLUE, GREEN, GREY, INK, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from . import drawing
from .base import SEED, Settings, setting
from .running import Tabled, cell_seed, estimate_renyi, group_answers, run_jobs, time_run

NAME = "divergence-accuracy"

NEIGHBOURS: Final = {"ball": 20, "score": 20, "poczos": 10, "paper": 5, "paper-literal": 5}
"""Names of the methods, and the number k of nearest neighbours that each method uses."""

SOURCE: Final = "the study that this package was planned on (few repetitions; k = 20, 10 and 5)"
AGAIN: Final = "the same study, repeated (1,000 repetitions at 1,000 rows, 500 at d = 5)"
FAILING: Final = "the same study, rows on which the ball fails"


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a published table: estimates of the Renyi divergence D(P0||P1) at orders 1, 2, 4.

    Args:
        case: name of the pair of distributions P0 and P1.
        method: name of the dpcore estimator with which the table compares the published row.
        figures: bias of the estimate, or mean estimate, at each order, in nats. None if missing.
        spread: standard deviation of the estimate at each order, or None if not published.
        rows: number of rows in the sample of each distribution.
        source: the publication.
        biased: True if `figures` are biases, False if `figures` are mean estimates.
    """

    case: str
    method: str
    figures: tuple[float | None, ...]
    spread: tuple[float | None, ...] | None = None
    rows: int = 1000
    source: str = SOURCE
    biased: bool = True


_published_again = partial(Published, source=AGAIN)
_published_mean = partial(Published, rows=2000, source=FAILING, biased=False)

_ALL_PUBLISHED: Final = (
    _published_again("n1-half", "ball", (-0.006, -0.020, -0.094)),
    Published("n1-half", "poczos", (-0.01, -0.02, -0.07), (0.03, 0.05, 0.14)),
    Published("n1-half", "paper", (0.01, 0.23, 0.68)),
    Published("n1-half", "paper-literal", (None, -2.3, -1.1)),
    _published_again("n1-one", "ball", (-0.038, -0.168, -0.769)),
    Published("n1-one", "poczos", (-0.04, -0.15, -0.73), (None, 0.10, 0.17)),
    Published("n1-one", "paper", (-0.02, 0.12, -0.02)),
    Published("n1-one", "paper-literal", (None, -2.7, -2.3)),
    _published_again("n2-wider", "ball", (0.027, 0.005, -0.013)),
    Published("n2-wider", "poczos", (0.02, 0.00, -0.01), (0.04, 0.06, 0.09)),
    Published("n2-wider", "paper", (0.00, 0.21, 0.62)),
    Published("n2-wider", "paper-literal", (None, -3.3, -1.3)),
    _published_again("n5-half", "ball", (-0.042, -0.105, -0.254)),
    Published("n5-half", "poczos", (-0.03, -0.08, -0.21), (None, 0.05, 0.11)),
    Published("n5-half", "paper", (-0.02, 0.15, 0.48)),
    Published("n5-half", "paper-literal", (None, -7.0, -2.7)),
    _published_again("n5-wider", "ball", (0.167, 0.009, -0.130)),
    _published_again("n5-wider", "poczos", (0.202, 0.097, 0.044)),
    Published("n5-wider", "paper", (0.16, 0.26, 0.61)),
    Published("n5-wider", "paper-literal", (None, -7.0, -2.6)),
    Published("n20-half", "ball", (-0.07, -0.18, -0.39), (0.05, 0.05, 0.05)),
    Published("n20-half", "poczos", (-0.05, -0.03, -0.03), (0.08, 0.08, 0.14)),
    Published("n20-half", "paper", (-0.04, 0.28, 0.88)),
    Published("n20-half", "paper-literal", (None, -35.0, -12.0)),
    Published("n20-wider", "ball", (0.53, 0.14, None), rows=5000),
    Published("n20-wider", "poczos", (0.99, 0.73, None), rows=5000),
    Published("n20-wider", "paper", (0.89, 0.97, None), rows=5000),
    Published("exponential", "ball", (0.01, 0.01, 0.02), (0.02, 0.02, 0.04)),
    Published("exponential", "poczos", (0.01, 0.02, 0.02), (None, 0.03, 0.06)),
    Published("exponential", "paper", (0.00, 0.23, 0.65)),
    Published("exponential", "paper-literal", (None, -1.4, -0.6)),
    _published_again("atom-n2", "ball", (-0.013, -0.023, -0.034)),
    Published("atom-n20", "ball", (-0.03, -0.03, 0.02), (0.02, 0.02, 0.02), 5000),
    Published("atoms-8", "ball", (0.00, 0.00, -0.02), (0.05, 0.08, 0.08)),
    Published("atoms-200", "ball", (-0.02, -0.12, -0.55), (0.05, 0.10, 0.19)),
    Published("atoms-1000", "ball", (-0.40, -0.92, -2.33), source=FAILING),
    Published("plane-64", "ball", (-0.02, -0.03, -0.08), (0.01, 0.01, 0.01), 5000),
    Published("plane-64", "poczos", (3.5, 62.0, 67.0), rows=5000),
    Published("plane-64", "paper", (3.4, 83.0, 88.0), rows=5000),
    Published("plane-64", "paper-literal", (None, 166.0, 57.0), rows=5000),
    Published("plane-384", "ball", (-0.03, -0.15, None), rows=5000),
    Published("null-384", "ball", (0.04, 0.04, None), rows=2000),
    Published("n384-one", "ball", (-0.39, -0.89, None), rows=2000),
    Published("n384-one", "score", (0.26, 0.47, None), rows=2000, biased=False),
    _published_mean("n384-two", "ball", (-0.01, 0.01, 0.04)),
    _published_mean("n5-narrower", "ball", (0.24, 0.60, 0.91)),
    _published_mean("n5-narrower", "score", (1.50, 2.18, 2.47), rows=1000),
    _published_mean("n20-narrower", "ball", (-0.85, -0.82, -0.77)),
    _published_mean("n20-narrower", "score", (0.70, 1.32, 1.86)),
    _published_mean("cauchy", "ball", (0.34, 1.02, 1.75)),
    _published_mean("scales", "ball", (0.0, 0.0, 0.0)),
    _published_mean("unequal", "ball", (0.01, -0.004, None), rows=100),
)
PUBLISHED: Final = group_answers((figure.case for figure in _ALL_PUBLISHED), _ALL_PUBLISHED)
"""Published estimates for each case. The authors' discrete laws differ from those of dpcore."""

Truth = tuple[tuple[float, ...], tuple[float, ...]]
Rows = tuple[Floats, Floats]

ALPHAS: Final = (1.0, 2.0, 4.0)
"""The orders alpha in the table. Order 1 is the KL divergence."""

_INFINITE_DIVERGENCES: Final = (np.inf,) * len(ALPHAS)
_CAUCHY_GRID_END: Final = 40.0


@dataclass(frozen=True, slots=True)
class Case:
    """A pair of distributions P0 and P1 with known Renyi divergences.

    Args:
        title: title of the case in the table.
        draw: function `draw(rng, n0, n1)` that returns n0 rows of P0 and n1 rows of P1.
        truth: D(P0||P1) and D(P1||P0) in nats, each at the orders 1, 2 and 4; inf if infinite.
        rows: number of rows in a sample of P0.
        slow: divisor of the number of samples, above 1 if the estimates are slow.
        fails: True if an estimator is known to fail. Certified bounds are then computed too.
        ratio: number of rows in a sample of P1, divided by the number of rows in a sample of P0.
        published: published estimates of other authors for this pair of distributions.
    """

    title: str
    draw: Callable[[np.random.Generator, int, int], Rows]
    truth: Truth
    rows: int = 1000
    slow: int = 1
    fails: bool = False
    ratio: int = 1
    published: tuple[Published, ...] = ()

    @property
    def null(self) -> bool:
        """True if P0 and P1 are the same distribution."""
        return not any(map(any, self.truth))


def _both_divergences(form: Callable[..., Floats], first: Any, second: Any) -> Truth:
    """Evaluate the closed form of D(P0||P1) and D(P1||P0), for two laws P0 and P1."""
    forward, back = form(ALPHAS, *first, *second), form(ALPHAS, *second, *first)
    return tuple(map(float, forward)), tuple(map(float, back))


def _make_normal_case(
    title: str, dim: int, shift: float, wide0: float = 1.0, wide1: float = 1.0, **more: Any
) -> Case:
    """Make the case N(shift e, wide0^2 I) against N(0, wide1^2 I), with e the first unit vector."""
    mean = shift * np.eye(1, dim)[0]

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return mean + wide0 * rng.normal(size=(n0, dim)), wide1 * rng.normal(size=(n1, dim))

    truth = _both_divergences(closed_forms.gaussian_renyi, (mean, wide0), (np.zeros(dim), wide1))
    return Case(title, draw, truth, **more)


def _make_atom_mixture_case(title: str, dim: int, **more: Any) -> Case:
    """Make a case of two mixtures of a normal law and an atom at the origin.

    The atom has probability 0.3 under P0 and 0.1 under P1. The normal law of P0 is shifted by 1/2.
    """
    mean = 0.5 * np.eye(1, dim)[0]

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = mean + rng.normal(size=(n0, dim)), rng.normal(size=(n1, dim))
        y0[rng.random(n0) < 0.3] = 0.0
        y1[rng.random(n1) < 0.1] = 0.0
        return y0, y1

    rest = _both_divergences(closed_forms.gaussian_renyi, (mean, 1.0), (np.zeros(dim), 1.0))
    weights = ((0.3, 0.1), (0.1, 0.3))
    there, back = (
        tuple(map(float, closed_forms.mixture_with_atom(ALPHAS, *pair, inside)))
        for pair, inside in zip(weights, rest, strict=True)
    )
    return Case(title, draw, (there, back), **more)


def _make_dirichlet_pmf_case(title: str, atoms: int, dim: int, spread: float, **more: Any) -> Case:
    """Make a case of two discrete laws on the same points, with Dirichlet probabilities."""
    fixed = np.random.default_rng((atoms, dim))
    points = fixed.normal(size=(atoms, dim))
    p, q = fixed.dirichlet(np.full(atoms, spread), 2)

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return points[rng.choice(atoms, n0, p=p)], points[rng.choice(atoms, n1, p=q)]

    return Case(title, draw, _both_divergences(closed_forms.discrete_renyi, (p,), (q,)), **more)


def _make_plane_normal_case(title: str, dim: int, shift: float, **more: Any) -> Case:
    """Make a case of two normal laws on a random plane in R^dim."""
    frame = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, 2)))[0].T
    flat = _make_normal_case(title, 2, shift, **more)

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = flat.draw(rng, n0, n1)
        return y0 @ frame, y1 @ frame

    return Case(title, draw, flat.truth, **more)


def _make_cauchy_normal_case() -> Case:
    """Make the case of a Cauchy law against N(0, 1).

    D(P0||P1) is infinite. D(P1||P0) is computed by numerical integration.
    """

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return rng.standard_cauchy(size=(n0, 1)), rng.normal(size=(n1, 1))

    x = np.linspace(-_CAUCHY_GRID_END, _CAUCHY_GRID_END, 200_001)
    normal = -0.5 * x**2 - 0.5 * np.log(2 * np.pi)
    ratio = normal + np.log(np.pi) + np.log1p(x**2)
    step = x[1] - x[0]
    # The trapezoidal rule: its error for these smooth integrands is below rounding.
    divergences = [float(np.sum(np.exp(normal) * ratio) * step)]
    for alpha in ALPHAS[1:]:
        mean = np.sum(np.exp(normal + (alpha - 1.0) * ratio)) * step
        divergences.append(float(np.log(mean) / (alpha - 1.0)))
    truth = _INFINITE_DIVERGENCES, tuple(divergences)
    return Case("Cauchy against N(0, 1)", draw, truth, 2000, 4, fails=True)


def _make_unequal_scales_case() -> Case:
    wide = np.array([1.0, 30.0, 30.0, 30.0, 30.0])

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = wide * rng.normal(size=(n0, 5)), wide * rng.normal(size=(n1, 5))
        y0[:, 0] += 1.0
        return y0, y1

    truth = _both_divergences(closed_forms.gaussian_renyi, (1.0, 1.0), (0.0, 1.0))
    return Case("N5, mu = 1, other sd 30", draw, truth, 2000, 8, fails=True)


def _make_cases() -> dict[str, Case]:
    hard: dict[str, Any] = {"rows": 2000, "fails": True}
    return {
        "n1-half": _make_normal_case("N1, mu = .5", 1, 0.5),
        "n1-one": _make_normal_case("N1, mu = 1", 1, 1.0),
        "n2-wider": _make_normal_case("N2, mu = .5, P1 has sd 1.5", 2, 0.5, 1.0, 1.5),
        "n5-half": _make_normal_case("N5, mu = .5", 5, 0.5),
        "n5-wider": _make_normal_case("N5, mu = .5, P1 has sd 1.4", 5, 0.5, 1.0, 1.4),
        "n20-half": _make_normal_case("N20, mu = .5", 20, 0.5),
        "n20-wider": _make_normal_case("N20, mu = .5, P1 has sd 1.2", 20, 0.5, 1.0, 1.2),
        "exponential": Case(
            "Exp(1.5) against Exp(1)",
            lambda rng, n0, n1: (rng.exponential(1 / 1.5, (n0, 1)), rng.exponential(1.0, (n1, 1))),
            _both_divergences(closed_forms.exponential_renyi, (1.5,), (1.0,)),
        ),
        "atom-n2": _make_atom_mixture_case("atom .3 against .1, N2, mu = .5", 2),
        "atom-n20": _make_atom_mixture_case("atom .3 against .1, N20, mu = .5", 20),
        "atoms-8": _make_dirichlet_pmf_case("8 atoms (d = 16)", 8, 16, 3.0),
        "atoms-200": _make_dirichlet_pmf_case("200 atoms (d = 16)", 200, 16, 3.0),
        "atoms-1000": _make_dirichlet_pmf_case("1,000 atoms (d = 16)", 1000, 16, 2.0, fails=True),
        "plane-64": _make_plane_normal_case("N2, mu = .5, in R^64", 64, 0.5),
        "plane-384": _make_plane_normal_case("N2, mu = 1, in R^384", 384, 1.0, rows=2000, slow=50),
        "same": Case(
            "one text in every row (d = 8)",
            lambda rng, n0, n1: (np.ones((n0, 8)), np.ones((n1, 8))),
            ((0.0,) * len(ALPHAS), (0.0,) * len(ALPHAS)),
            slow=50,
        ),
        "null-384": _make_normal_case("N384, mu = 0", 384, 0.0, slow=50, **hard),
        "n384-one": _make_normal_case("N384, mu = 1", 384, 1.0, slow=50, **hard),
        "n384-two": _make_normal_case("N384, mu = 2", 384, 2.0, slow=50, **hard),
        "n5-narrower": _make_normal_case("N5, P0 has sd 2", 5, 0.0, 2.0, slow=8, **hard),
        "n20-narrower": _make_normal_case("N20, P0 has sd 1.2", 20, 0.0, 1.2, slow=20, **hard),
        "cauchy": _make_cauchy_normal_case(),
        "disjoint": Case(
            "disjoint squares",
            lambda rng, n0, n1: (rng.random((n0, 2)), 10.0 + rng.random((n1, 2))),
            (_INFINITE_DIVERGENCES, _INFINITE_DIVERGENCES),
            fails=True,
        ),
        "scales": _make_unequal_scales_case(),
        "unequal": _make_normal_case(
            "N2, mu = 0, 100 times the rows", 2, 0.0, rows=100, ratio=100, slow=50, fails=True
        ),
    }


CASES: Final[dict[str, Case]] = {
    name: replace(case, published=PUBLISHED.get(name, ())) for name, case in _make_cases().items()
}
"""The cases of the table, by name."""

_MIN_SAMPLE_ROWS: Final = 100
_MAX_SIZE_RATIO: Final = 10
_MISLEADING_STANDARD_ERRORS: Final = 3.0
"""A value is misleading if it is more than this number of standard errors below its bound."""

_MISLEADING_NULL_DIVERGENCE: Final = 0.05
"""For equal laws, a value is misleading if it is more than this number of nats away from 0."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of an experiment that compares estimators on cases (pairs of distributions P0, P1).

    Args:
        trials: total number of rows of all samples of all cases. If given, `rows` is ignored. Every
            case has at least two samples of at least 100 rows.
        repetitions: number of samples of each case. Slow cases use fewer samples, but at least 2.
        rows: number of rows in every sample of P0. Defaults to the number set for the case
            (`Case.rows`). If P0 and P1 have samples of different sizes, the default is always used.
        cases: names of the cases, keys of `CASES`.
        methods: names of the estimators, keys of `NEIGHBOURS`.
        certified: number of samples with certified bounds, for each case on which an estimator is
            known to fail.
        seed: int in [0, 2**63). Every sample gets a separate seed derived from this seed.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or a name is unknown or repeated.

    Example:
        >>> Config(trials="2e4").size("n1-half"), Config().size("n1-half")
        ((2, 400), (200, 1000))
    """

    trials: int | None = None
    repetitions: int = setting(200, integer, 2)
    rows: int | None = setting(None, integer, _MIN_SAMPLE_ROWS)
    cases: tuple[str, ...] = setting(tuple(CASES), choice, tuple(CASES))
    methods: tuple[str, ...] = setting(tuple(NEIGHBOURS), choice, tuple(NEIGHBOURS))
    certified: int = setting(2, integer, 0)
    seed: int = SEED

    def size(self, name: str) -> tuple[int, int]:
        """Return the number of samples of a case, and the number of rows in each sample of P0."""
        case = CASES[name]
        repetitions = max(2, self.repetitions // case.slow)
        if self.trials is None:
            own = self.rows is None or case.ratio > 1
            return repetitions, case.rows if own else self.rows  # type: ignore[return-value]
        share = self.trials // len(self.cases)
        rows = max(_MIN_SAMPLE_ROWS, min(share // 2, case.rows))
        return max(2, min(repetitions, share // rows)), rows

    def other_rows(self, name: str) -> int:
        """Return the number of rows in each sample of P1, for one case (pair P0, P1).

        If `trials` is given, a sample of P1 has at most 10 times as many rows as a sample of P0.
        """
        ratio = CASES[name].ratio
        return self.size(name)[1] * (ratio if self.trials is None else min(ratio, _MAX_SIZE_RATIO))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell(Record):
    """Estimates by one method on all samples of one case (pair of distributions P0 and P1).

    Args:
        case: name of the case.
        method: name of the method.
        rows: number of rows in a sample of P0, and in a sample of P1.
        values: estimates in nats, shape (samples, 2, 3): D(P0||P1) and D(P1||P0) at orders 1, 2, 4.
        refused: error message if the method cannot be used for the case; `values` is then empty.
    """

    case: str
    method: str
    rows: tuple[int, int]
    values: Floats
    refused: str | None = None

    @property
    def truth(self) -> Floats:
        """True D(P0||P1) and D(P1||P0) in nats, each at orders 1, 2 and 4, shape (2, 3)."""
        return np.array(CASES[self.case].truth)

    @property
    def infinite(self) -> Floats:
        """Number of non-finite estimates of D(P0||P1) and D(P1||P0) at each order, shape (2, 3)."""
        return np.asarray((~np.isfinite(self.values)).sum(axis=0))

    @property
    def mean(self) -> Floats:
        """Mean of the finite estimates, shape (2, 3); NaN if no estimate is finite."""
        return self._finite_mean_and_sd()[0]

    @property
    def spread(self) -> Floats:
        """Standard deviation of finite estimates, shape (2, 3); NaN if at most one is finite."""
        return self._finite_mean_and_sd()[1]

    @property
    def bias(self) -> Floats:
        """Mean estimate minus true D(P0||P1) and D(P1||P0), at each order, shape (2, 3)."""
        return np.asarray(self.mean - self.truth)

    def _finite_mean_and_sd(self) -> tuple[Floats, Floats]:
        kept = np.isfinite(self.values)
        number = kept.sum(axis=0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(kept, self.values, 0.0).sum(axis=0) / number
            squares = np.where(kept, self.values - mean, 0.0) ** 2
            spread = np.sqrt(squares.sum(axis=0) / (number - 1.0))
        return mean, np.where(number > 1, spread, np.nan)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trusted(Record):
    """Estimate of Renyi divergences from one sample, with certified lower bounds.

    Args:
        case: name of the case.
        estimate: estimates of D(P0||P1) and D(P1||P0) at several orders, each with a bound.
    """

    case: str
    estimate: Estimate

    @property
    def misleading(self) -> int:
        """Number of estimates called reliable but far below the bound, or far from 0 if P0 = P1."""
        estimate = self.estimate
        assert estimate.certified is not None
        error = np.nan_to_num(estimate.std_error, nan=0.0)
        wrong = estimate.value + _MISLEADING_STANDARD_ERRORS * error < estimate.certified
        if CASES[self.case].null:
            wrong |= np.abs(estimate.value) > _MISLEADING_NULL_DIVERGENCE
        return int((wrong & estimate.resolved).sum())


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Draw samples of pairs of known distributions, and estimate their divergences by every method.

    Args:
        config: options of the experiment.
        threads: number of threads, by default one per core. The number never changes a result.
        progress: True to show a progress bar. By default, only long interactive work has a bar.

    Returns:
        The result. After Ctrl-C, the result contains only the completed pairs of distributions.

    Raises:
        TypeError: if `config` belongs to another experiment.
        KeyboardInterrupt: if the user presses Ctrl-C before the first case is complete.

    Source:
        The constant `PUBLISHED` names the sources of the published estimates.

    Example:
        >>> config = Config(repetitions=5, rows=200, cases=("n1-half",), methods=("ball",))
        >>> run(config).cells[0].values.shape
        (5, 2, 3)
    """

    def work(name: str) -> tuple[list[Cell], list[Trusted]]:
        return _estimate_case(name, config, threads), [*_certified_estimates(name, config, threads)]

    done, partial = run_jobs("divergences", config.cases, work, progress)
    cells = tuple(cell for answers, _ in done for cell in answers)
    return Result(
        config, cells, tuple(trusted for _, answers in done for trusted in answers), partial=partial
    )


def _sample_and_seed(name: str, config: Config, i: int) -> tuple[Rows, int]:
    """Draw the i-th sample of a case, and return the sample and its seed."""
    rows, other = config.size(name)[1], config.other_rows(name)
    seed = cell_seed(config.seed, f"{name}/{rows}/{other}/{i}")
    return CASES[name].draw(np.random.default_rng(seed), rows, other), seed


def _estimate_case(name: str, config: Config, threads: int | None) -> list[Cell]:
    """Estimate the divergences of a case by all methods, which use the same samples."""
    repetitions, rows = config.size(name)
    sizes = (rows, config.other_rows(name))
    values: dict[str, list[Floats]] = {method: [] for method in config.methods}
    refused: dict[str, str] = {}
    for i in range(repetitions):
        (y0, y1), seed = _sample_and_seed(name, config, i)
        for method in [candidate for candidate in config.methods if candidate not in refused]:
            try:
                values[method].append(estimate_divergences(y0, y1, method, seed, threads))
            except ValueError as error:
                refused[method], values[method] = str(error), []
    shape = (-1, 2, len(ALPHAS))
    return [
        Cell(name, method, sizes, frozen_array(np.reshape(estimates, shape)), refused.get(method))
        for method, estimates in values.items()
    ]


def estimate_divergences(
    y0: Any, y1: Any, method: Any, seed: int, threads: int | None = None
) -> Floats:
    """Estimate D(P0||P1) and D(P1||P0) from a sample of P0 and a sample of P1, by one method.

    Args:
        y0: sample of P0, an array with one row per draw.
        y1: sample of P1, an array with one row per draw.
        method: name of the estimator: "ball", "score", "poczos", "paper" or "paper-literal".
        seed: seed of the random numbers that the method uses.
        threads: number of threads. Defaults to all cores.

    Returns:
        Renyi divergences in nats, shape (2, 3): D(P0||P1) and D(P1||P0), at orders 1, 2 and 4.
    """
    # Cases with unequal scales and the formula as printed are included on purpose.
    estimate = estimate_renyi(
        y0, y1, alphas=ALPHAS[1:], k=NEIGHBOURS[method], method=method, error=None, checks=False,
        rng=seed, threads=threads,
    )  # fmt: skip
    return np.column_stack([estimate.kl, estimate.value])


def _certified_estimates(name: str, config: Config, threads: int | None) -> Iterator[Trusted]:
    """Yield certified estimates of a case on which a method fails, by "ball" and by default."""
    repetitions, _ = config.size(name)
    number = min(config.certified, repetitions if config.trials is None else 1)
    for i in range(number if CASES[name].fails else 0):
        (y0, y1), seed = _sample_and_seed(name, config, i)
        # With at most two entries, the default method is the ball method.
        for method in ("ball", "auto") if y0.shape[1] > 2 else ("ball",):
            options = {"certified": True, "rows": "independent", "rng": seed, "threads": threads}
            yield Trusted(name, estimate_renyi(y0, y1, method=method, **options))


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Estimates of divergences by every method on every case (pair of distributions).

    Args:
        config: the options of the run.
        cells: one entry for every case and method, with the estimates by this method.
        trusted: estimates with certified bounds, only for cases on which a method is known to fail.
    """

    cells: tuple[Cell, ...]
    trusted: tuple[Trusted, ...] = ()

    @property
    def misleading(self) -> int:
        """Number of estimates called reliable but far below the bound, or far from 0 if P0 = P1."""
        return sum(trusted.misleading for trusted in self.trusted)

    def cell(self, case: str, method: str) -> Cell:
        """Return the estimates by one method on one case (pair of distributions)."""
        return next(c for c in self.cells if (c.case, c.method) == (case, method))

    def table(self) -> str:
        """Return the results as plain text."""
        lines, heads = _lines_and_headings(self)
        head, *table = align_rows([_BIAS_HEAD, *lines], left=(0, 4)).splitlines()
        shown = [head]
        for i, line in enumerate(table):
            shown += ["", heads[i], line] if i in heads else [line]
        rows = [_table_row_at_order_two(trusted, way) for trusted in self.trusted for way in (0, 1)]
        certified = align_rows([_CERTIFIED_HEAD, *rows], left=(0, 1, 2))
        parts = [_CERTIFIED_GLOSSARY, certified, f"Misleading values: {self.misleading}."]
        refused = sorted({cell.refused for cell in self.cells if cell.refused})[:1]
        return self.join_parts(
            "Accuracy of estimated divergences in nats: KL (order 1), orders 2 and 4; "
            f"seed {self.config.seed}",
            _BIAS_GLOSSARY,
            "\n".join(shown),
            *(parts if rows else []),
            *(
                textwrap.fill(f"refused: {trusted}", 96, subsequent_indent="  ")
                for trusted in refused
            ),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        return self.make_record(
            alphas=list(ALPHAS),
            misleading=self.misleading,
            cases=[_case_facts_to_dict(name) for name in dict.fromkeys(c.case for c in self.cells)],
            cells=[_cell_to_dict(cell) for cell in self.cells],
            certified=[_estimate_to_dict(trusted) for trusted in self.trusted],
        )

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the bias and standard deviation of the estimates, for each case and method.

        Returns:
            A matplotlib figure.
        """
        # The failing cases come last, and there is a gap between cases.
        names = sorted(dict.fromkeys(c.case for c in self.cells), key=lambda n: CASES[n].fails)
        lines = [(name, direction) for name in names for direction in (0, 1)]
        places = {line: -(i + _DIRECTION_GAP * (i // 2)) for i, line in enumerate(lines)}
        bottom = min(places.values())
        picture = drawing.empty_figure(1.5 + 0.125 * (2.2 - bottom), ax)
        panels = np.atleast_1d(picture.subplots(1, len(ALPHAS), sharey=True))
        methods = self.config.methods
        for i, (panel, alpha) in enumerate(zip(panels, ALPHAS, strict=True)):
            for cell in self.cells:
                for direction in (0, 1):
                    shift = 0.7 * (methods.index(cell.method) / max(len(methods) - 1, 1) - 0.5)
                    _draw_bias(panel, cell, direction, i, places[cell.case, direction] - shift)
            _set_horizontal_bias_axis(panel, bottom, "KL" if alpha == 1.0 else f"order {alpha:g}")
            for name in names:
                if CASES[name].fails:
                    top, low = places[name, 0] + 0.5, places[name, 1] - 0.5
                    panel.axhspan(low, top, color=RED, alpha=0.06, linewidth=0)
            panel.set_xlabel("mean minus truth (nats)", fontsize=drawing.SMALL)
        titles = (CASES[name].title.replace("against", "vs") for name in names)
        ticks = [text for title in titles for text in (title, "reversed")]
        panels[0].set_yticks(list(places.values()), ticks)
        panels[0].tick_params(axis="y", length=0, labelsize=drawing.SMALL - 0.5)
        drawing.add_legend(picture, _make_method_legend(methods), 3, "upper")
        return restyle_figure(picture)


_BIAS_HEAD = ("", *(f"order {alpha:g}" for alpha in ALPHAS), "published", "rows")
_BIAS_GLOSSARY = """\
Bias: mean minus truth, and the standard deviation of one estimate in brackets.
*: the truth is infinite, the mean itself is shown. n inf: n estimates are not finite, left out.
published: biases of D(P0||P1), *: means. Laws on many atoms are our own draws, not the published.
Nd: normal law of d dimensions around 0; mu: length of the shift of P0; sd 1 where none is said."""
_CERTIFIED_GLOSSARY = """\
The failing cases with certificates: "estimate only" must not be said of a value more than three
standard errors below its certified bound, or more than .05 from 0 where both laws are the same."""


def _lines_and_headings(result: Result) -> tuple[list[tuple[str, ...]], dict[int, str]]:
    """Return the lines of the table, and a dict from a line number to the heading above it."""
    lines: list[tuple[str, ...]] = []
    heads: dict[int, str] = {}
    for name in dict.fromkeys(cell.case for cell in result.cells):
        case = CASES[name]
        repetitions, rows = result.config.size(name)
        for direction, words in enumerate(DIRECTIONS):
            truth = " / ".join(f"{value:.4g}" for value in case.truth[direction])
            sizes = f"{rows:,} and {result.config.other_rows(name):,} rows, {repetitions} times"
            heads[len(lines)] = f"{case.title}: {words} = {truth}; {sizes}"
            lines += [_make_bias_table_line(c, direction) for c in result.cells if c.case == name]
    return lines, heads


def _make_bias_table_line(cell: Cell, direction: int) -> tuple[str, ...]:
    head = f"  {cell.method}"
    published = [p for p in CASES[cell.case].published if p.method == cell.method and not direction]
    figure, rows = (
        (_join_published_numbers(published[0]), f"{published[0].rows:,}") if published else ("", "")
    )
    if cell.refused is not None:
        return (head, "refused", "", "", figure, rows)
    return (head, *(_format_bias(cell, direction, i) for i in range(len(ALPHAS))), figure, rows)


def _format_bias(cell: Cell, direction: int, i: int) -> str:
    mean, spread = cell.mean[direction, i], cell.spread[direction, i]
    infinite, bias = int(cell.infinite[direction, i]), cell.bias[direction, i]
    if np.isnan(mean):
        return f"{infinite} inf"
    words = f"{bias:+.3f}" if np.isfinite(cell.truth[direction, i]) else f"*{mean:.3f}"
    words += f" ({spread:.3f})" if np.isfinite(spread) else ""
    return f"{words} {infinite} inf" if infinite else words


def _join_published_numbers(published: Published) -> str:
    figures = [
        "none" if value is None else f"{value:+.3g}" if published.biased else f"{value:.3g}"
        for value in published.figures
    ]
    return ("" if published.biased else "*") + "/".join(figures)


_CERTIFIED_HEAD = (
    "case", "method", "direction", "order", "value", "certified", "orders resolved", "misleading",
)  # fmt: skip


def _table_row_at_order_two(trusted: Trusted, direction: int) -> tuple[str, ...]:
    """Return a line of the table: D(P0||P1) or D(P1||P0) at the order nearest to 2."""
    estimate = trusted.estimate
    at = int(np.argmin(np.abs(estimate.alphas - 2.0)))
    names = ("value", "certified", "resolved")
    value, certified, resolved = (getattr(estimate, name)[direction] for name in names)
    return (
        trusted.case, estimate.method, DIRECTIONS[direction], f"{estimate.alphas[at]:.3g}",
        f"{value[at]:.3f}", f"{certified[at]:.3f}", f"{resolved.sum()} of {len(resolved)}",
        "" if direction else str(trusted.misleading),
    )  # fmt: skip


def _encode_arrays(**arrays: Any) -> dict[str, Any]:
    return {name: array.tolist() for name, array in arrays.items()}


def _case_facts_to_dict(name: str) -> dict[str, Any]:
    case = CASES[name]
    published = [
        {"method": figure.method, "rows": figure.rows, "source": figure.source}
        | {"kind": "bias" if figure.biased else "mean"}
        | {"figures": figure.figures, "spread": figure.spread}
        for figure in case.published
    ]
    return {"case": name, "title": case.title, "truth": case.truth, "published": published}


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    return (
        {"case": cell.case, "method": cell.method, "rows": cell.rows}
        | {"repetitions": len(cell.values), "refused": cell.refused}
        | _encode_arrays(mean=cell.mean, bias=cell.bias, spread=cell.spread)
        | {"not_finite": cell.infinite.tolist()}
    )


def _estimate_to_dict(trusted: Trusted) -> dict[str, Any]:
    estimate = trusted.estimate
    return (
        {"case": trusted.case, "method": estimate.method}
        | _encode_arrays(alphas=estimate.alphas, value=estimate.value)
        | _encode_arrays(std_error=estimate.std_error, certified=estimate.certified)
        | _encode_arrays(belief=estimate.belief)
        | {"misleading": trusted.misleading, "seed": str(estimate.seed)}
    )


_METHOD_STYLES: Final[dict[str, tuple[str, str]]] = {
    "ball": (BLUE, "o"),
    "score": (GREEN, "s"),
    "poczos": ("#CC79A7", "D"),
    "paper": (RED, "^"),
    "paper-literal": (GREY, "v"),
}
_DIRECTION_GAP: Final = 0.8
_LINEAR_BIAS_RANGE: Final = 0.1
_BIAS_AXIS_END: Final = 300.0
_MAX_DRAWN_BIAS: Final = 110.0
"""A finite bias above this value is drawn at this value, and an infinite bias beyond it."""


def _draw_bias(panel: drawing.Axes, cell: Cell, direction: int, i: int, place: float) -> None:
    """Draw the bias with its standard deviation, or a mark at the edge if the bias is infinite."""
    colour, marker = _METHOD_STYLES[cell.method]
    if cell.refused is not None:
        return
    bias, spread = cell.bias[direction, i], np.nan_to_num(cell.spread[direction, i])
    if cell.infinite[direction, i] > len(cell.values) // 2:
        # If most values are infinite, the bias is infinite too, unless the truth is infinite.
        most = np.median(cell.values[:, direction, i])
        with np.errstate(invalid="ignore"):
            bias = 0.0 if most == cell.truth[direction, i] else most - cell.truth[direction, i]
        spread = 0.0
    style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 2.4}
    if abs(bias) >= _MAX_DRAWN_BIAS:
        edge = np.sign(bias) * (_BIAS_AXIS_END * 0.8 if np.isinf(bias) else _MAX_DRAWN_BIAS)
        face = WHITE if np.isinf(bias) else colour
        panel.plot([edge], [place], **style, markerfacecolor=face, clip_on=False, linestyle="none")
    elif np.isfinite(bias):
        panel.errorbar([bias], [place], xerr=[spread], elinewidth=0.6, linestyle="none", **style)


def _set_horizontal_bias_axis(panel: drawing.Axes, bottom: float, title: str) -> None:
    panel.set_xscale("symlog", linthresh=_LINEAR_BIAS_RANGE, linscale=1.0)
    panel.set(xlim=(-_BIAS_AXIS_END, _BIAS_AXIS_END), ylim=(bottom - 0.8, 0.8))
    places = [-10, -1, -0.1, 0, 0.1, 1, 10]
    panel.xaxis.set_ticks(places, [f"{place:g}".replace("0.", ".") for place in places])
    panel.xaxis.set_ticks([], minor=True)
    panel.axvline(0.0, color=INK, linewidth=0.6, zorder=1)
    for edge in (-_MAX_DRAWN_BIAS * 1.25, _MAX_DRAWN_BIAS * 1.25):
        panel.axvline(edge, color=GREY, linewidth=0.4, linestyle=":", zorder=1)
    drawing.style_axes(panel, title=title)


def _make_method_legend(methods: tuple[str, ...]) -> list[Any]:
    styles = [_METHOD_STYLES[method] for method in methods]
    hollow: dict[str, Any] = {"markerfacecolor": WHITE}
    return [
        *(drawing.make_mark(name, *style, 4) for name, style in zip(methods, styles, strict=True)),
        drawing.make_mark("hollow at the edge: infinitely far off", *styles[0], 4, **hollow),
        drawing.make_patch("rows on which the ball or others fail", RED, alpha=0.12),
    ]
