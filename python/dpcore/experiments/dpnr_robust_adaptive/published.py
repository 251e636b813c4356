"""The study's own figures, from its figures 7 and 8: test accuracies, means of five runs."""

from __future__ import annotations

from typing import Final

__all__ = ["ADAPTIVE", "CROSSINGS", "EPSILONS", "PLAIN", "ROBUST", "SOURCE", "published_accuracy"]

SOURCE: Final = "Zouhri and Abecidan (2021), figures 7 and 8: means of five runs, no spread"

EPSILONS: Final = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
"""Claimed epsilons of its rows."""

PLAIN, ROBUST, ADAPTIVE = "not robust", "robust", "adaptive"

_NOISY_ACCURACIES: Final[dict[tuple[str, int], dict[str, tuple[float, ...]]]] = {
    ("ag_news", 32): {
        PLAIN: (0.26, 0.26, 0.31, 0.36, 0.48, 0.57, 0.63, 0.67),
        ROBUST: (0.25, 0.25, 0.25, 0.25, 0.30, 0.51, 0.66, 0.73),
    },
    ("ag_news", 64): {
        PLAIN: (0.26, 0.26, 0.30, 0.36, 0.46, 0.54, 0.59, 0.66),
        ROBUST: (0.25, 0.25, 0.25, 0.25, 0.31, 0.42, 0.50, 0.68),
        ADAPTIVE: (0.26, 0.26, 0.34, 0.42, 0.50, 0.57, 0.64, 0.63),
    },
    ("yelp", 32): {
        PLAIN: (0.50, 0.51, 0.54, 0.58, 0.64, 0.70, 0.73, 0.75),
        ROBUST: (0.50, 0.50, 0.54, 0.51, 0.60, 0.75, 0.84, 0.82),
    },
    ("yelp", 64): {
        PLAIN: (0.50, 0.51, 0.53, 0.56, 0.60, 0.65, 0.68, 0.72),
        ROBUST: (0.50, 0.50, 0.61, 0.64, 0.62, 0.75, 0.84, 0.81),
        ADAPTIVE: (0.51, 0.53, 0.62, 0.57, 0.75, 0.77, 0.80, 0.79),
    },
}
"""Test accuracy at each of `EPSILONS`, no words masked. Its Yelp is another, of long reviews."""

_CLEAN_ACCURACIES: Final = {
    ("ag_news", 32): 0.80,
    ("ag_news", 64): 0.77,
    ("yelp", 32): 0.88,
    ("yelp", 64): 0.89,
}
"""Test accuracy without noise in training and test."""

_MASKED_ACCURACIES: Final[dict[tuple[str, int], dict[str, dict[float, float]]]] = {
    ("ag_news", 32): {
        PLAIN: {0.1: 0.53, 0.3: 0.37, 0.5: 0.32, 0.8: 0.27},
        ROBUST: {0.1: 0.58, 0.3: 0.35, 0.5: 0.33, 0.8: 0.27},
    },
    ("ag_news", 64): {
        PLAIN: {0.1: 0.53, 0.3: 0.37, 0.5: 0.30, 0.8: 0.26},
        ROBUST: {0.1: 0.47, 0.3: 0.29, 0.5: 0.28, 0.8: 0.25},
        ADAPTIVE: {0.1: 0.40, 0.3: 0.37, 0.5: 0.28, 0.8: 0.26},
    },
    ("yelp", 32): {PLAIN: {0.1: 0.69}, ROBUST: {0.1: 0.68}},
    ("yelp", 64): {PLAIN: {0.1: 0.65}, ROBUST: {0.1: 0.76}, ADAPTIVE: {0.1: 0.57}},
}
"""Test accuracy at epsilon 4 with words masked; of Yelp the rows that we have of the tables."""

CROSSINGS: Final = {
    ("ag_news", 32): 4.0,
    ("ag_news", 64): 5.0,
    ("yelp", 32): 3.0,
    ("yelp", 64): 0.5,
}
"""From which epsilon robust is better than not robust in its tables."""


def published_accuracy(
    data: str, dim: int, line: str, epsilon: float | None, mu: float = 0.0
) -> float | None:
    """Return a test accuracy of the study.

    Args:
        data: "ag_news" or "yelp".
        dim: entries of a vector.
        line: `PLAIN`, `ROBUST` or `ADAPTIVE`.
        epsilon: the claim; None for no noise.
        mu: share of masked words.

    Returns:
        The accuracy; None where the study has none.

    Example:
        >>> [published_accuracy("ag_news", 32, line, 5.0) for line in ("robust", "adaptive")]
        [0.73, None]
    """
    if mu:
        found = _MASKED_ACCURACIES.get((data, dim), {}).get(line, {})
        return found.get(mu) if epsilon == 4.0 else None
    if epsilon is None:
        return _CLEAN_ACCURACIES.get((data, dim)) if line == PLAIN else None
    values = _NOISY_ACCURACIES.get((data, dim), {}).get(line)
    return None if values is None or epsilon not in EPSILONS else values[EPSILONS.index(epsilon)]
