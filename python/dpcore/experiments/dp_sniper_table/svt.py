"""The benchmark's eight variants of the sparse vector technique, as plain numpy functions.

All compare noisy queries with a noisy threshold T + rho, query after query, until a number of
them (`cutoff`) were above. All queries of a trial are drawn, also those after its end, whose
answers are then overwritten: ten long columns take half the time of ever shorter ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import vector
from .noise import EPSILON, Floats, Rng, laplace_noise, noisy_entries

Bools = npt.NDArray[np.bool_]
Flags = npt.NDArray[np.int8]

STOPPED, VALUE_BELOW, VALUE_STOPPED, NUMERICAL_STOPPED = -1, -1000, -2000, -1000
"""Codes of "stopped" among flags, of "below" and "stopped" among values, and of "stopped" in
the numerical variant, whose word for "below" is 0."""


def _draw_threshold(threshold: float, scale: float, size: int, rng: Rng) -> Floats:
    """Draw the noisy threshold T + rho of every trial."""
    limit = laplace_noise(scale, size, rng)
    limit += threshold
    return limit


def _mark_stopped(above: Bools, cutoff: int) -> Flags:
    """Return 1 for every query after `cutoff` earlier ones that were above, otherwise 0."""
    seen = np.zeros(above.shape, np.int8)
    for before, now, flags in zip(seen, seen[1:], above.view(np.int8), strict=False):
        np.add(before, flags, out=now)
    return np.greater_equal(seen, cutoff).view(np.int8)


def _make_flags(above: Bools, cutoff: int) -> Flags:
    # -1 has every bit set: or-ing it in overwrites, at a tenth of the cost of a masked copy.
    return above.view(np.int8) | -_mark_stopped(above, cutoff)


def _withhold_values(noisy: Floats, above: Bools, cutoff: int, below: int, stopped: int) -> Floats:
    """Overwrite the values of `noisy` that are not released, and return it."""
    ended = _mark_stopped(above, cutoff)
    withheld = ~above | ended.view(np.bool_)
    # By arithmetic, which is exact here, for the same reason.
    noisy *= ~withheld
    noisy += withheld * np.int16(below) + ended * np.int16(stopped - below)
    return noisy


def _flag_svt(
    x: Any, size: int, rng: Rng, threshold: float, rho: float, nu: float, cutoff: int = 1
) -> Flags:
    limit = _draw_threshold(threshold, rho, size, rng)
    return _make_flags(noisy_entries(x, size, rng, nu) >= limit, cutoff)


def _value_svt(x: Any, size: int, rng: Rng, rho: float, nu: float, cutoff: int = 1) -> Floats:
    limit = _draw_threshold(1.0, rho, size, rng)
    noisy = noisy_entries(x, size, rng, nu)
    return _withhold_values(noisy, noisy >= limit, cutoff, VALUE_BELOW, VALUE_STOPPED)


def svt1(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Flags:
    """Run a sound variant: T = .5, rho ~ Lap(2/epsilon), nu ~ Lap(4/epsilon), one answer above.

    Source:
        Lyu, Su and Li (2017), algorithm 1, with c = 1.
    """
    return _flag_svt(x, size, rng, 0.5, 2.0 / epsilon, 4.0 / epsilon).T


def svt2(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Flags:
    """Run a sound variant: T = 1, rho ~ Lap(2/epsilon), nu ~ Lap(4/epsilon), one answer above.

    The algorithm draws rho again after each answer above; with c = 1 nothing follows it.

    Source:
        Lyu, Su and Li (2017), algorithm 2, with c = 1.
    """
    return _flag_svt(x, size, rng, 1.0, 2.0 / epsilon, 4.0 / epsilon).T


def svt3(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Run a faulty variant: T = 1, rho and nu ~ Lap(2/epsilon), releases the noisy query.

    -1000 stands for "below", -2000 for "stopped after the first above".

    Source:
        Lyu, Su and Li (2017), algorithm 3, with c = 1.
    """
    return _value_svt(x, size, rng, 2.0 / epsilon, 2.0 / epsilon).T


def svt4(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Flags:
    """Run a faulty variant: T = 1, rho ~ Lap(4/epsilon), nu ~ Lap(4/(3 epsilon)) for any cutoff.

    Source:
        Lyu, Su and Li (2017), algorithm 4, with c = 1.
    """
    return _flag_svt(x, size, rng, 1.0, 4.0 / epsilon, 4.0 / (3.0 * epsilon)).T


def svt5(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Flags:
    """Run a faulty variant: T = 1, rho ~ Lap(2/epsilon), no noise on the queries and no stop.

    Source:
        Lyu, Su and Li (2017), algorithm 5.
    """
    point = vector("x", x)
    limit = _draw_threshold(1.0, 2.0 / epsilon, size, rng)
    return np.greater_equal(point[:, np.newaxis], limit).view(np.int8).T


def svt6(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Flags:
    """Run a faulty variant: T = 1, rho and nu ~ Lap(2/epsilon), no stop.

    Source:
        Lyu, Su and Li (2017), algorithm 6.
    """
    limit = _draw_threshold(1.0, 2.0 / epsilon, size, rng)
    return np.greater_equal(noisy_entries(x, size, rng, 2.0 / epsilon), limit).view(np.int8).T


def svt34_parallel(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Run algorithms 3 and 4 on the same queries, both with T = 1 and c = 2.

    The first half of an output holds algorithm 3's values, the second algorithm 4's flags.
    """
    values = _value_svt(x, size, rng, 2.0 / epsilon, 4.0 / epsilon, 2)
    flags = _flag_svt(x, size, rng, 1.0, 4.0 / epsilon, 4.0 / (3.0 * epsilon), 2)
    return np.concatenate([values, flags]).T


def numerical_svt(x: Any, size: int, rng: Rng, epsilon: float = EPSILON) -> Floats:
    """Run a sound variant: T = 1, c = 2, rho ~ Lap(3/epsilon), nu ~ Lap(12/epsilon).

    A query above is answered with fresh noise, x_i + Lap(6/epsilon); one below with 0. -1000
    stands for "stopped".

    Source:
        Wang, Ding, Wang, Kifer and Zhang (2019), the numerical sparse vector.
    """
    limit = _draw_threshold(1.0, 3.0 / epsilon, size, rng)
    above = noisy_entries(x, size, rng, 12.0 / epsilon) >= limit
    fresh = noisy_entries(x, size, rng, 6.0 / epsilon)
    return _withhold_values(fresh, above, 2, 0, NUMERICAL_STOPPED).T
