"""Pairs of laws with known divergences: samplers, the truth in both directions, and figures.

The figures of others on the same laws, with their sources, are for comparison alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...divergence import closed_forms

SOURCE: Final = "the study that this package was planned on (few repetitions; k = 20, 10 and 5)"
AGAIN: Final = "the same study, repeated (1,000 repetitions at 1,000 rows, 500 at d = 5)"
FAILING: Final = "the same study, rows on which the ball fails"


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a published table, for D(P0||P1) at orders 1, 2 and 4.

    Args:
        method: the method of ours that it is of.
        figures: biases, or the values themselves where `biased` is False; None where not given.
        spread: standard deviations, None where not given.
        rows: rows a side.
        source: the publication.
        biased: True if `figures` are biases.
    """

    method: str
    figures: tuple[float | None, ...]
    spread: tuple[float | None, ...] | None = None
    rows: int = 1000
    source: str = SOURCE
    biased: bool = True


_published_again = partial(Published, source=AGAIN)
_published_mean = partial(Published, rows=2000, source=FAILING, biased=False)

PUBLISHED: Final[dict[str, tuple[Published, ...]]] = {
    "n1-half": (
        _published_again("ball", (-0.006, -0.020, -0.094)),
        Published("poczos", (-0.01, -0.02, -0.07), (0.03, 0.05, 0.14)),
        Published("paper", (0.01, 0.23, 0.68)),
        Published("paper-literal", (None, -2.3, -1.1)),
    ),
    "n1-one": (
        _published_again("ball", (-0.038, -0.168, -0.769)),
        Published("poczos", (-0.04, -0.15, -0.73), (None, 0.10, 0.17)),
        Published("paper", (-0.02, 0.12, -0.02)),
        Published("paper-literal", (None, -2.7, -2.3)),
    ),
    "n2-wider": (
        _published_again("ball", (0.027, 0.005, -0.013)),
        Published("poczos", (0.02, 0.00, -0.01), (0.04, 0.06, 0.09)),
        Published("paper", (0.00, 0.21, 0.62)),
        Published("paper-literal", (None, -3.3, -1.3)),
    ),
    "n5-half": (
        _published_again("ball", (-0.042, -0.105, -0.254)),
        Published("poczos", (-0.03, -0.08, -0.21), (None, 0.05, 0.11)),
        Published("paper", (-0.02, 0.15, 0.48)),
        Published("paper-literal", (None, -7.0, -2.7)),
    ),
    "n5-wider": (
        _published_again("ball", (0.167, 0.009, -0.130)),
        _published_again("poczos", (0.202, 0.097, 0.044)),
        Published("paper", (0.16, 0.26, 0.61)),
        Published("paper-literal", (None, -7.0, -2.6)),
    ),
    "n20-half": (
        Published("ball", (-0.07, -0.18, -0.39), (0.05, 0.05, 0.05)),
        Published("poczos", (-0.05, -0.03, -0.03), (0.08, 0.08, 0.14)),
        Published("paper", (-0.04, 0.28, 0.88)),
        Published("paper-literal", (None, -35.0, -12.0)),
    ),
    "n20-wider": (
        Published("ball", (0.53, 0.14, None), rows=5000),
        Published("poczos", (0.99, 0.73, None), rows=5000),
        Published("paper", (0.89, 0.97, None), rows=5000),
    ),
    "exponential": (
        Published("ball", (0.01, 0.01, 0.02), (0.02, 0.02, 0.04)),
        Published("poczos", (0.01, 0.02, 0.02), (None, 0.03, 0.06)),
        Published("paper", (0.00, 0.23, 0.65)),
        Published("paper-literal", (None, -1.4, -0.6)),
    ),
    "atom-n2": (_published_again("ball", (-0.013, -0.023, -0.034)),),
    "atom-n20": (Published("ball", (-0.03, -0.03, 0.02), (0.02, 0.02, 0.02), 5000),),
    "atoms-8": (Published("ball", (0.00, 0.00, -0.02), (0.05, 0.08, 0.08)),),
    "atoms-200": (Published("ball", (-0.02, -0.12, -0.55), (0.05, 0.10, 0.19)),),
    "atoms-1000": (Published("ball", (-0.40, -0.92, -2.33), source=FAILING),),
    "plane-64": (
        Published("ball", (-0.02, -0.03, -0.08), (0.01, 0.01, 0.01), 5000),
        Published("poczos", (3.5, 62.0, 67.0), rows=5000),
        Published("paper", (3.4, 83.0, 88.0), rows=5000),
        Published("paper-literal", (None, 166.0, 57.0), rows=5000),
    ),
    "plane-384": (Published("ball", (-0.03, -0.15, None), rows=5000),),
    "null-384": (Published("ball", (0.04, 0.04, None), rows=2000),),
    "n384-one": (
        Published("ball", (-0.39, -0.89, None), rows=2000),
        Published("score", (0.26, 0.47, None), rows=2000, biased=False),
    ),
    "n384-two": (_published_mean("ball", (-0.01, 0.01, 0.04)),),
    "n5-narrower": (
        _published_mean("ball", (0.24, 0.60, 0.91)),
        _published_mean("score", (1.50, 2.18, 2.47), rows=1000),
    ),
    "n20-narrower": (
        _published_mean("ball", (-0.85, -0.82, -0.77)),
        _published_mean("score", (0.70, 1.32, 1.86)),
    ),
    "cauchy": (_published_mean("ball", (0.34, 1.02, 1.75)),),
    "scales": (_published_mean("ball", (0.0, 0.0, 0.0)),),
    "unequal": (_published_mean("ball", (0.01, -0.004, None), rows=100),),
}
"""By the name of the case. Laws on many atoms are other draws from the same family."""


Reals = npt.NDArray[np.float64]
Truth = tuple[tuple[float, ...], tuple[float, ...]]
Rows = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]

ALPHAS: Final = (1.0, 2.0, 4.0)
"""The orders of the table; the first is the KL divergence."""

_INFINITE_DIVERGENCES: Final = (np.inf,) * len(ALPHAS)
_CAUCHY_GRID_END: Final = 40.0


@dataclass(frozen=True, slots=True)
class Case:
    """One pair of laws.

    Args:
        title: what the table says.
        draw: (generator, rows of P0, rows of P1) -> the two samples.
        truth: D(P0||P1) and D(P1||P0) at `ALPHAS`, in nats; inf where it is.
        rows: rows a side of the published figures that are nearest, or our choice.
        slow: the number of repetitions is divided by this.
        fails: True where a method is known to mislead: certificates and belief are shown too.
        ratio: rows of P1 for each row of P0.
        published: figures of others.
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
        """True if both laws are the same."""
        return not any(map(any, self.truth))


def _evaluate_both(
    form: Callable[..., Reals], first: tuple[Any, ...], second: tuple[Any, ...]
) -> Truth:
    """Evaluate a closed form in both directions."""
    forward, back = form(ALPHAS, *first, *second), form(ALPHAS, *second, *first)
    return tuple(map(float, forward)), tuple(map(float, back))


def _make_normal_case(
    title: str, dim: int, shift: float, wide0: float = 1.0, wide1: float = 1.0, **more: Any
) -> Case:
    """Make the case N(shift e, wide0^2 I) against N(0, wide1^2 I), e a unit vector."""
    mean = np.zeros(dim)
    mean[0] = shift

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return mean + wide0 * rng.normal(size=(n0, dim)), wide1 * rng.normal(size=(n1, dim))

    truth = _evaluate_both(closed_forms.gaussian_renyi, (mean, wide0), (np.zeros(dim), wide1))
    return Case(title, draw, truth, **more)


def _add_atom(title: str, dim: int, **more: Any) -> Case:
    """Make a case of two normal laws with an atom at the origin.

    The atom has probability .3 against .1, and the normal law is shifted by 1/2.
    """
    mean = np.zeros(dim)
    mean[0] = 0.5

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = mean + rng.normal(size=(n0, dim)), rng.normal(size=(n1, dim))
        y0[rng.random(n0) < 0.3] = 0.0
        y1[rng.random(n1) < 0.1] = 0.0
        return y0, y1

    rest = _evaluate_both(closed_forms.gaussian_renyi, (mean, 1.0), (np.zeros(dim), 1.0))
    weights = ((0.3, 0.1), (0.1, 0.3))
    there, back = (
        tuple(map(float, closed_forms.mixture_with_atom(ALPHAS, *pair, inside)))
        for pair, inside in zip(weights, rest, strict=True)
    )
    return Case(title, draw, (there, back), **more)


def _make_discrete_case(title: str, atoms: int, dim: int, spread: float, **more: Any) -> Case:
    """Make a case of two laws on the same points, with probabilities from a Dirichlet law."""
    fixed = np.random.default_rng((atoms, dim))
    points = fixed.normal(size=(atoms, dim))
    p, q = fixed.dirichlet(np.full(atoms, spread), 2)

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return points[rng.choice(atoms, n0, p=p)], points[rng.choice(atoms, n1, p=q)]

    return Case(title, draw, _evaluate_both(closed_forms.discrete_renyi, (p,), (q,)), **more)


def _make_plane_case(title: str, dim: int, shift: float, **more: Any) -> Case:
    """Make a case of normal laws in a random plane of a space of many dimensions."""
    frame = np.linalg.qr(np.random.default_rng(dim).normal(size=(dim, 2)))[0].T
    flat = _make_normal_case(title, 2, shift, **more)

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = flat.draw(rng, n0, n1)
        return y0 @ frame, y1 @ frame

    return Case(title, draw, flat.truth, **more)


def _make_cauchy_case() -> Case:
    """Make the case of a Cauchy law against N(0, 1).

    The divergence is infinite in one direction. In the other one it is computed by quadrature.
    """

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        return rng.standard_cauchy(size=(n0, 1)), rng.normal(size=(n1, 1))

    x = np.linspace(-_CAUCHY_GRID_END, _CAUCHY_GRID_END, 200_001)
    normal = -0.5 * x**2 - 0.5 * np.log(2 * np.pi)
    ratio = normal + np.log(np.pi) + np.log1p(x**2)
    step = x[1] - x[0]
    # The trapezoidal rule: its error for these smooth integrands is below rounding.
    found = [float(np.sum(np.exp(normal) * ratio) * step)]
    for alpha in ALPHAS[1:]:
        mean = np.sum(np.exp(normal + (alpha - 1.0) * ratio)) * step
        found.append(float(np.log(mean) / (alpha - 1.0)))
    truth = _INFINITE_DIVERGENCES, tuple(found)
    return Case("Cauchy against N(0, 1)", draw, truth, 2000, 4, fails=True)


def _make_unequal_scales_case() -> Case:
    wide = np.array([1.0, 30.0, 30.0, 30.0, 30.0])

    def draw(rng: np.random.Generator, n0: int, n1: int) -> Rows:
        y0, y1 = wide * rng.normal(size=(n0, 5)), wide * rng.normal(size=(n1, 5))
        y0[:, 0] += 1.0
        return y0, y1

    truth = _evaluate_both(closed_forms.gaussian_renyi, (1.0, 1.0), (0.0, 1.0))
    title = "N5, mu = 1, other sd 30"
    return Case(title, draw, truth, 2000, 8, fails=True)


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
            _evaluate_both(closed_forms.exponential_renyi, (1.5,), (1.0,)),
        ),
        "atom-n2": _add_atom("atom .3 against .1, N2, mu = .5", 2),
        "atom-n20": _add_atom("atom .3 against .1, N20, mu = .5", 20),
        "atoms-8": _make_discrete_case("8 atoms (d = 16)", 8, 16, 3.0),
        "atoms-200": _make_discrete_case("200 atoms (d = 16)", 200, 16, 3.0),
        "atoms-1000": _make_discrete_case("1,000 atoms (d = 16)", 1000, 16, 2.0, fails=True),
        "plane-64": _make_plane_case("N2, mu = .5, in R^64", 64, 0.5),
        "plane-384": _make_plane_case("N2, mu = 1, in R^384", 384, 1.0, rows=2000, slow=50),
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
        "cauchy": _make_cauchy_case(),
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
"""Every pair of laws of the table by its name."""
