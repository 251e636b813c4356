"""Twenty ordinary faults: mechanisms that claim epsilon 1 and lose more, each with its repair."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from leaks import Leak, Mechanism
from leaky_mechanisms import KEEP

from dpcore import Pair
from dpcore.published import (
    ADePT,
    ADePTScaled,
    DPText,
    DPTextRepaired,
    HalfNoise,
    LaplaceMechanism,
)

Array = npt.NDArray[Any]
Rng = np.random.Generator

_TABLE = np.random.default_rng(2).laplace(size=1_000)
_SIGMA = math.sqrt(2 * math.log(1.25 / 0.01))


def add_laplace(x: Any, size: int, rng: Rng, scale: float = 1.0) -> Array:
    """Return x with Laplace noise in every entry."""
    point = np.atleast_1d(np.asarray(x, float))
    return point + rng.laplace(scale=scale, size=(size, point.size))


def clip_and_add(x: Any, size: int, rng: Rng) -> Array:
    """Return x in [0, 1] with Laplace noise."""
    return add_laplace(np.clip(x, 0.0, 1.0), size, rng)


def _draw_geometric(size: int, rng: Rng) -> Array:
    """Draw two-sided geometric noise of loss 1 per unit."""
    return np.subtract(*rng.geometric(1 - math.exp(-1), (2, size)))


def add_truncated(x: int, size: int, rng: Rng) -> Array:
    """Return x with two-sided geometric noise cut at 3."""
    return x + np.clip(_draw_geometric(size, rng), -3, 3)


def add_and_clamp(x: int, size: int, rng: Rng) -> Array:
    """Return x with two-sided geometric noise, the sum clamped to [-3, 3]."""
    return np.clip(x + _draw_geometric(size, rng), -3, 3)


def randomise_answer(x: int, size: int, rng: Rng, keep: float = 0.78, answers: int = 2) -> Array:
    """Return x with probability `keep`, else one of the other answers."""
    other = (x + rng.integers(1, answers, size)) % answers
    return np.where(rng.random(size) < keep, x, other)


def choose_candidate(x: Any, size: int, rng: Rng, factor: float = 1.0) -> Array:
    """Return a candidate with probability proportional to exp(factor score)."""
    weights = np.exp(factor * np.asarray(x, float))
    return rng.choice(len(weights), size, p=weights / weights.sum())


def add_rounded(x: float, size: int, rng: Rng) -> Array:
    """Return x with noise that is rounded before it is added."""
    return x + np.rint(rng.laplace(size=size))


def round_sum(x: float, size: int, rng: Rng) -> Array:
    """Return the rounded sum of x and noise."""
    return np.rint(x + rng.laplace(size=size))


def add_shared(x: Any, size: int, rng: Rng) -> Array:
    """Return x with one noise for all entries."""
    return np.asarray(x, float) + rng.laplace(size=(size, 1))


def add_from_table(x: float, size: int, rng: Rng) -> Array:
    """Return x with one of a thousand noises."""
    return x + rng.choice(_TABLE, size)


def add_gaussian(x: float, size: int, rng: Rng, sigma: float = _SIGMA / 4) -> Array:
    """Return x with Gaussian noise."""
    return x + rng.normal(scale=sigma, size=size)


def repeat_answer(x: float, size: int, rng: Rng, scale: float = 1.0) -> Array:
    """Return ten noisy answers."""
    return x + rng.laplace(scale=scale, size=(size, 10))


def add_uniform(x: float, size: int, rng: Rng) -> Array:
    """Return x with uniform noise in [-2, 2]."""
    return x + rng.uniform(-2.0, 2.0, size)


def keep_zero(x: float, size: int, rng: Rng) -> Array:
    """Return x with Laplace noise, a zero without noise."""
    return x + rng.laplace(size=size) if x else np.zeros(size)


def suppress_small(x: float, size: int, rng: Rng, noisy: bool = False) -> Array:
    """Return a noisy count, NaN where the count (the noisy one on request) is below 10."""
    count = x + rng.laplace(size=size)
    return np.where((count if noisy else np.full(size, x)) < 10, np.nan, count)


def scramble_text(x: int, size: int, rng: Rng, noisy: bool = False) -> list[str]:
    """Return random letters, as many as x (a noisy number on request)."""
    lengths = np.clip(x + _draw_geometric(size, rng), 0, 20) if noisy else np.full(size, x)
    letters = rng.integers(ord("a"), ord("z") + 1, (size, 20), np.uint8)
    return [row.tobytes()[:n].decode() for row, n in zip(letters, lengths, strict=True)]


# Events of experts


def _above(cut: float, outputs: Any) -> Array:
    return np.asarray(outputs, float).reshape(len(outputs), -1)[:, 0] > cut


def _below(cut: float, outputs: Any) -> Array:
    return np.asarray(outputs, float).reshape(len(outputs), -1)[:, 0] < cut


def _is_equal_to(value: float, outputs: Any) -> Array:
    return np.asarray(outputs) == value


def _ratio_above(cut: float, pair: Pair, scale: float, outputs: Any) -> Array:
    """Compare the log-likelihood ratio of Laplace noise with a threshold."""
    rows, x, x_prime = (np.asarray(part, float) for part in (outputs, pair.x, pair.x_prime))
    return (np.abs(rows - x_prime) - np.abs(rows - x)).sum(axis=1) / scale > cut


def _has_tenths(tenths: int, outputs: Any) -> Array:
    return np.rint(10 * np.asarray(outputs)) % 10 == tenths


def _entries_differ(outputs: Any) -> Array:
    return outputs[:, 0] - outputs[:, 1] > 0.5


def _is_in_table(outputs: Any) -> Array:
    return np.isin(np.asarray(outputs), 1.0 + _TABLE)


def _is_number(outputs: Any) -> Array:
    return ~np.isnan(outputs)


def _has_six(outputs: Any) -> Array:
    return np.array([len(row) == 6 for row in outputs])


# The catalogue

_UNIT = Pair(1.0, 0.0)
_CELLS = Pair((1.0, 1.0, 0.0, 0.0), (0.0, 0.0, 0.0, 0.0))
_ADEPT = ADePT(1.0).default_pair(16)
_TEN = Pair(np.ones(10), np.zeros(10))
_SCORES = Pair((1, 0, 0, 0, 0), (0, 1, 1, 1, 1))


def _make_fault(
    name: str,
    output: str,
    mechanism: Mechanism,
    twin: Mechanism,
    pair: Pair,
    expert: Callable[[Any], Array],
    loss: float = math.inf,
    delta: float = 0.0,
) -> Leak:
    return Leak(name, output, mechanism, pair, 1.0, 100_000, expert, twin, delta, loss)


# fmt: off
FAULTS: tuple[Leak, ...] = (
    _make_fault("DPText", "DPText as published", DPText(1.0), DPTextRepaired(1.0),
           Pair([0.0], [1.0]), partial(_below, 1.0)),
    _make_fault("ADePT", "ADePT as published, 16 entries", ADePT(1.0), ADePTScaled(1.0),
           _ADEPT, partial(_ratio_above, 2.8, _ADEPT, 2.0), 4.0),
    _make_fault("half-noise", "half the noise", HalfNoise(1.0), LaplaceMechanism(1.0),
           Pair([1.0], [0.0]), partial(_above, 1.0), 2.0),
    _make_fault("deviation", "standard deviation taken for the scale",
           partial(add_laplace, scale=math.sqrt(0.5)), add_laplace,
           _UNIT, partial(_above, 1.0), math.sqrt(2)),
    _make_fault("off-by-one", "range 0 to 10 with noise for 9",
           partial(add_laplace, scale=9.0), partial(add_laplace, scale=10.0),
           Pair(10.0, 0.0), partial(_above, 10.0), 10 / 9),
    _make_fault("no-clip", "value 3 not clipped to 1", add_laplace, clip_and_add,
           Pair(3.0, 0.0), partial(_above, 3.0), 3.0),
    _make_fault("two-cells", "a user counts in two cells of four",
           add_laplace, partial(add_laplace, scale=2.0),
           _CELLS, partial(_ratio_above, 1.9, _CELLS, 1.0), 2.0),
    _make_fault("truncated", "geometric noise cut at 3", add_truncated, add_and_clamp,
           Pair(1, 0), partial(_above, 3.5)),
    _make_fault("response", "randomised response that keeps .78",
           randomise_answer, partial(randomise_answer, keep=KEEP),
           Pair(1, 0), partial(_is_equal_to, 1), math.log(0.78 / 0.22)),
    _make_fault("ten-answers", "ten answers, kept as often as of two",
           partial(randomise_answer, keep=KEEP, answers=10),
           partial(randomise_answer, keep=math.e / (math.e + 9), answers=10),
           Pair(1, 0), partial(_is_equal_to, 1), 1 + math.log(9)),
    _make_fault("exponential", "exponential mechanism without its factor 1/2",
           choose_candidate, partial(choose_candidate, factor=0.5),
           _SCORES, partial(_is_equal_to, 0), math.log((math.e + 4 * math.e**2) / (math.e + 4))),
    _make_fault("rounded", "noise rounded before it is added", add_rounded, round_sum,
           Pair(0.3, 0.7), partial(_has_tenths, 3)),
    _make_fault("one-noise", "one noise for two entries", add_shared, add_laplace,
           Pair((1.0, 0.0), (0.0, 0.0)), _entries_differ),
    _make_fault("table", "noise from a table of 1,000", add_from_table, add_laplace,
           _UNIT, _is_in_table),
    _make_fault("gaussian", "a quarter of the Gaussian noise, delta .01",
           add_gaussian, partial(add_gaussian, sigma=_SIGMA),
           _UNIT, partial(_above, 2.2), delta=0.01),
    _make_fault("ten-times", "ten answers that each cost epsilon",
           repeat_answer, partial(repeat_answer, scale=10.0),
           _UNIT, partial(_ratio_above, 6.0, _TEN, 1.0), 10.0),
    _make_fault("uniform", "uniform noise", add_uniform, add_laplace, _UNIT, partial(_above, 2.0)),
    _make_fault("exact-zero", "a zero without noise", keep_zero, add_laplace,
           Pair(0.0, 1.0), partial(_is_equal_to, 0.0)),
    _make_fault("suppressed", "counts below 10 left out before the noise",
           suppress_small, partial(suppress_small, noisy=True),
           Pair(10.0, 9.0), _is_number),
    _make_fault("length", "length of a text of random letters",
           scramble_text, partial(scramble_text, noisy=True), Pair(6, 5), _has_six),
)
# fmt: on
"""The faults, in the order of the record; all claim epsilon 1."""
