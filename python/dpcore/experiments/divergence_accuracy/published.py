"""Figures of others on the same laws, with where they come from. They decide nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SOURCE: Final = "the study that this package was planned on (few repetitions; k = 20, 10 and 5)"
AGAIN: Final = "the same study, repeated (1,000 repetitions at 1,000 rows, 500 at d = 5)"
FAILING: Final = "the same study, rows on which the ball fails"


@dataclass(frozen=True, slots=True)
class Published:
    """One row of a published table, for D(P0||P1) at orders 1, 2 and 4.

    Args:
        method: the method of ours that it is of.
        rows: rows a side.
        source: the publication.
        figures: biases, or the values themselves where `biased` is False; None where not given.
        spread: standard deviations, None where not given.
        biased: True if `figures` are biases.
        direction: 0 for D(P0||P1).
    """

    method: str
    rows: int
    source: str
    figures: tuple[float | None, ...]
    spread: tuple[float | None, ...] | None = None
    biased: bool = True
    direction: int = 0


def _published_ball(figures: tuple[float | None, ...], rows: int = 1000) -> Published:
    return Published("ball", rows, AGAIN, figures)


def _published_fixed(figures: tuple[float | None, ...], rows: int = 1000) -> Published:
    return Published("paper", rows, SOURCE, figures)


def _published_literal(two: float, four: float, rows: int = 1000) -> Published:
    return Published("paper-literal", rows, SOURCE, (None, two, four))


def _published_method(
    method: str,
    figures: tuple[float | None, ...],
    spread: tuple[float | None, ...] | None = None,
    rows: int = 1000,
) -> Published:
    return Published(method, rows, SOURCE, figures, spread)


def _published_mean(method: str, figures: tuple[float | None, ...], rows: int = 2000) -> Published:
    return Published(method, rows, FAILING, figures, biased=False)


PUBLISHED: Final[dict[str, tuple[Published, ...]]] = {
    "n1-half": (
        _published_ball((-0.006, -0.020, -0.094)),
        _published_method("poczos", (-0.01, -0.02, -0.07), (0.03, 0.05, 0.14)),
        _published_fixed((0.01, 0.23, 0.68)),
        _published_literal(-2.3, -1.1),
    ),
    "n1-one": (
        _published_ball((-0.038, -0.168, -0.769)),
        _published_method("poczos", (-0.04, -0.15, -0.73), (None, 0.10, 0.17)),
        _published_fixed((-0.02, 0.12, -0.02)),
        _published_literal(-2.7, -2.3),
    ),
    "n2-wider": (
        _published_ball((0.027, 0.005, -0.013)),
        _published_method("poczos", (0.02, 0.00, -0.01), (0.04, 0.06, 0.09)),
        _published_fixed((0.00, 0.21, 0.62)),
        _published_literal(-3.3, -1.3),
    ),
    "n5-half": (
        _published_ball((-0.042, -0.105, -0.254)),
        _published_method("poczos", (-0.03, -0.08, -0.21), (None, 0.05, 0.11)),
        _published_fixed((-0.02, 0.15, 0.48)),
        _published_literal(-7.0, -2.7),
    ),
    "n5-wider": (
        _published_ball((0.167, 0.009, -0.130)),
        Published("poczos", 1000, AGAIN, (0.202, 0.097, 0.044)),
        _published_fixed((0.16, 0.26, 0.61)),
        _published_literal(-7.0, -2.6),
    ),
    "n20-half": (
        _published_method("ball", (-0.07, -0.18, -0.39), (0.05, 0.05, 0.05)),
        _published_method("poczos", (-0.05, -0.03, -0.03), (0.08, 0.08, 0.14)),
        _published_fixed((-0.04, 0.28, 0.88)),
        _published_literal(-35.0, -12.0),
    ),
    "n20-wider": (
        _published_method("ball", (0.53, 0.14, None), rows=5000),
        _published_method("poczos", (0.99, 0.73, None), rows=5000),
        _published_fixed((0.89, 0.97, None), 5000),
    ),
    "exponential": (
        _published_method("ball", (0.01, 0.01, 0.02), (0.02, 0.02, 0.04)),
        _published_method("poczos", (0.01, 0.02, 0.02), (None, 0.03, 0.06)),
        _published_fixed((0.00, 0.23, 0.65)),
        _published_literal(-1.4, -0.6),
    ),
    "atom-n2": (_published_ball((-0.013, -0.023, -0.034)),),
    "atom-n20": (_published_method("ball", (-0.03, -0.03, 0.02), (0.02, 0.02, 0.02), 5000),),
    "atoms-8": (_published_method("ball", (0.00, 0.00, -0.02), (0.05, 0.08, 0.08)),),
    "atoms-200": (_published_method("ball", (-0.02, -0.12, -0.55), (0.05, 0.10, 0.19)),),
    "atoms-1000": (Published("ball", 1000, FAILING, (-0.40, -0.92, -2.33)),),
    "plane-64": (
        _published_method("ball", (-0.02, -0.03, -0.08), (0.01, 0.01, 0.01), 5000),
        _published_method("poczos", (3.5, 62.0, 67.0), rows=5000),
        _published_fixed((3.4, 83.0, 88.0), 5000),
        _published_literal(166.0, 57.0, 5000),
    ),
    "plane-384": (_published_method("ball", (-0.03, -0.15, None), rows=5000),),
    "null-384": (_published_method("ball", (0.04, 0.04, None), rows=2000),),
    "n384-one": (
        _published_method("ball", (-0.39, -0.89, None), rows=2000),
        Published("score", 2000, SOURCE, (0.26, 0.47, None), biased=False),
    ),
    "n384-two": (_published_mean("ball", (-0.01, 0.01, 0.04)),),
    "n5-narrower": (
        _published_mean("ball", (0.24, 0.60, 0.91)),
        _published_mean("score", (1.50, 2.18, 2.47), 1000),
    ),
    "n20-narrower": (
        _published_mean("ball", (-0.85, -0.82, -0.77)),
        _published_mean("score", (0.70, 1.32, 1.86)),
    ),
    "cauchy": (_published_mean("ball", (0.34, 1.02, 1.75)),),
    "scales": (_published_mean("ball", (0.0, 0.0, 0.0)),),
    "unequal": (_published_mean("ball", (0.01, -0.004, None), 100),),
}
"""By the name of the case. Laws on many atoms are other draws from the same family."""
