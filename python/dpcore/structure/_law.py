"""Checks of the law of the noise around the clean vector: sides, atoms, grid, range."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ._ranks import Floats, at_least, hash_rows
from ._records import Check, check_from_p_value, check_from_rule
from ._seeing import Seen

_UNKNOWN_CENTRE = "the vector that the noise is added to is not known (clean=): not checked"
_DISCRETE_NOISE = "noise of few values, as a discrete law has: not checked"
_NO_NOISE_FOUND = "no noise within a call to look at"

_MAX_TAIL_DRAWS = 1000
"""Largest draws in which repeated values are looked for."""

_SMALL_GAP_STEPS = 16
"""A gap this many steps of the floats wide is small; of the small ones of a continuous law, at
most one in eight is not above one step, whatever was rounded."""

_MAX_WALL_DRAWS = 400
"""Largest draws that show a wall."""

_MIN_DISTINCT_SHARE = 0.95
"""Share of different rows below which a few values behind the noise no longer explain it."""

_MIN_OTHER_DRAWS = 20
"""Draws beside the most frequent value that tell whether the others come back too."""


def one_sided(seen: Seen, level: float) -> Check:
    """Check for noise that is never below, or never above, the clean vector, at any input."""
    name, noises = "one_sided", seen.noises()
    if not noises or seen.varying.size == 0:
        return check_from_rule(name, _NO_NOISE_FOUND if noises else _UNKNOWN_CENTRE)
    n, d = noises[0].shape
    # Above at every input, or below at every one: a bound on the outputs moves with neither.
    below = np.stack([(noise < 0).sum(axis=0) for noise in noises]).max(axis=0)
    above = np.stack([(noise > 0).sum(axis=0) for noise in noises]).max(axis=0)
    moved = np.stack([(noise != 0).sum(axis=0) for noise in noises]).min(axis=0)
    sided = ((below == 0) | (above == 0)) & (moved > 0)
    count = int(sided.sum())
    most = int(moved[sided].max()) if count else 0
    p = d * 2.0 ** (1 - min(most, 1000)) if count else 1.0
    side = "below" if count and not below[sided].any() else "above"
    if count and below[sided].any() and above[sided].any():
        side = "on one side of"
    where = "" if count == d else f" in {count} of {d} coordinates"
    bad = f"never {side} the clean vector{where} in {n:,} draws: such noise hides nothing"
    if side == "on one side of":
        bad = f"always {side} the clean vector{where} in {n:,} draws: such noise hides nothing"
    good = "noise on both sides of the clean vector"
    return check_from_p_value(name, p, level, bad, good, coordinates=count)


def off_centre(seen: Seen, level: float) -> Check:
    """Check for noise that is more often above the clean vector than below, or the reverse."""
    name, noises = "off_centre", seen.noises()
    if not noises or seen.varying.size == 0:
        return check_from_rule(name, _NO_NOISE_FOUND if noises else _UNKNOWN_CENTRE)
    d = noises[0].shape[1]
    # Off to the same side at every input, or else x is not what the noise is added to.
    sides = np.stack([_sign_p_values(noise) for noise in noises])
    p = float(min(sides.max(axis=0).min() * 2 * (d + 1), 1.0))
    share = float((noises[0] > 0).sum() / max(1, (noises[0] != 0).sum()))
    bad = f"the median of the noise is not 0: {share:.1%} of it is above the clean vector"
    good = f"{share:.1%} of the noise is above the clean vector: no more off half than by chance"
    return check_from_p_value(name, p, level, bad, good, above=share)


def _sign_p_values(noise: Floats) -> Floats:
    """Compute one-sided p-values of "above" and "below" by coordinate, and of row sums."""
    from scipy.special import betainc

    rows = np.concatenate([noise, noise.sum(axis=1, keepdims=True)], axis=1)
    above, below = (rows > 0).sum(axis=0), (rows < 0).sum(axis=0)
    p = [
        np.where(k > 0, betainc(np.maximum(k, 1), other + 1.0, 0.5), 1.0)
        for k, other in ((above, below), (below, above))
    ]
    return np.stack(p)


def check_atom(seen: Seen, level: float) -> Check:
    """Check for a repeated noise value, all others being new, that moves with the input."""
    name, noises = "atom", seen.noises()
    if not noises or seen.varying.size == 0:
        return check_from_rule(name, _NO_NOISE_FOUND if noises else _UNKNOWN_CENTRE)
    n, d = noises[0].shape
    best, at, share = 1.0, 0.0, 0.0
    modes, mixed = _find_modes(noises[0])
    # The other values come twice at most in the mean, rounded ones as often as rounding explains.
    chance = np.maximum(8.0 / n, _rounding_atom_probability(seen))
    # 0 is tried everywhere; the most frequent value, which the draws chose, at a price.
    for values, price in ((np.zeros(d), 1), (modes, n)):
        hits = (noises[0] == values).sum(axis=0)
        for column in np.flatnonzero(mixed & (hits > 2)):
            # Of the draws that chose the value, one is used up.
            used = int(price > 1)
            tail = at_least(int(hits[column]) - used, n - used, float(chance[column]))
            p = min(1.0, 2 * d * price * tail)
            if p < best and _moves_with_input(seen, noises[1:], int(column), float(values[column])):
                best, at, share = p, float(values[column]), float(hits[column] / n)
    what = "the outputs equal the clean vector" if at == 0 else f"the noise is {at:.4g}"
    bad = f"an atom: {what} in {share:.1%} of the draws, while other values hardly come twice"
    discrete = int((~mixed).sum())
    good = "no value of the noise comes back more often than rounding explains"
    if discrete:
        good = f"noise of few values in {discrete} of {d} coordinates, as a discrete law has"
    return check_from_p_value(name, best, level, bad, good, at=at, share=share, discrete=discrete)


def _rounding_atom_probability(seen: Seen) -> Floats:
    """Bound the chance that rounding makes one given float of continuous noise."""
    chance: Floats = np.minimum(1.0, 4.0 * seen.step / np.maximum(seen.spread, 1e-300))
    return chance


def _find_modes(noise: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return each coordinate's most frequent value, and if the others hardly occur twice."""
    n, d = noise.shape
    held = np.sort(noise, axis=0)
    changes = np.ones((n, d), bool)
    changes[1:] = held[1:] != held[:-1]
    place = np.arange(n)[:, None]
    run = place - np.maximum.accumulate(np.where(changes, place, 0), axis=0) + 1
    top = run.argmax(axis=0)
    columns = np.arange(d)
    rest = n - run[top, columns]
    mixed = (rest >= _MIN_OTHER_DRAWS) & (changes.sum(axis=0) - 1 > rest / 2)
    return held[top, columns], mixed


def _moves_with_input(seen: Seen, noises: list[Floats], column: int, value: float) -> bool:
    """Return True if the value also occurs at another input, relative to its clean vector."""
    if not noises:
        return True
    # The clean vector is added and taken off again: a few steps of rounding.
    steps = 4 * seen.precision
    for noise, other in zip(noises, (o for o in seen.others if o.clean is not None), strict=True):
        near = steps * float(np.abs(other.outputs[:, column]).max()) if value else 0.0
        near += 4 * float(seen.step[column]) if value else 0.0
        if int((np.abs(noise[:, column] - value) <= near).sum()) > 2:
            return True
    return False


def check_grid(seen: Seen, level: float) -> Check:
    """Check for repeated values in the tail: a coarse uniform number behind an inverse law."""
    name = "grid"
    if seen.varying.size == 0:
        return check_from_rule(name, _NO_NOISE_FOUND)
    if _is_discrete(seen):
        return check_from_rule(name, _DISCRETE_NOISE)
    size = _pool_sizes(seen)
    tail = min(_MAX_TAIL_DRAWS, size.size // 20)
    if tail < _MIN_OTHER_DRAWS // 2:
        return check_from_rule(name, f"{size.size} different draws are too few: not checked")
    largest = np.sort(np.partition(size, size.size - tail)[-tail:])
    step = float(seen.step[seen.varying].max())
    gaps, span = np.diff(largest), float(largest[-1] - largest[0])
    if tail * _SMALL_GAP_STEPS * step > span / 2:
        steps = float(np.median(seen.spread[seen.varying])) / step
        what = (
            f"rounding hides the grid of the noise: its spread is {steps:.3g} steps of the floats"
        )
        return check_from_rule(name, what, steps=steps)
    small = int((gaps <= _SMALL_GAP_STEPS * step).sum())
    equal = int((gaps <= step).sum())
    p = at_least(equal, small, 1 / 8)
    scale = float(size.mean())
    bad = (
        f"{equal} of the {tail} largest of {size.size:,} draws repeat another: the noise lies on a"
        f" grid of about 2^{_log_value_count(tail, equal, size.size):.0f} values, coarse in the"
        " tail (float32 Laplace noise of torch never exceeds 15.942385 scales; here the largest is"
        f" {float(largest[-1]) / scale:.4g} mean sizes)"
    )
    good = f"{equal} of the {tail} largest of {size.size:,} draws repeat another"
    bad, good = bad + _format_centre(seen), good + _format_centre(seen)
    return check_from_p_value(name, p, level, bad, good, equal=equal, small=small, draws=size.size)


def _format_centre(seen: Seen) -> str:
    return f" (measured from {seen.around})" if seen.around else ""


def _pool_sizes(seen: Seen) -> Floats:
    """Return noise sizes of both calls, without the parts that rows or coordinates share.

    A row that comes again, or a draw that is used for several coordinates, is a fault of another
    kind, and says nothing of the grid.
    """
    centre = np.median(seen.first, axis=0) if seen.clean is None else seen.clean
    both = np.concatenate([seen.first, seen.second])[:, seen.varying]
    new = np.unique(hash_rows(both, seen.rng), return_index=True)[1]
    if len(new) < _MIN_DISTINCT_SHARE * len(both):
        both = both[new]
    size = np.sort(np.abs(both - centre[seen.varying]), axis=1)
    fresh = np.ones(size.shape, bool)
    fresh[:, 1:] = np.diff(size, axis=1) > float(seen.step[seen.varying].max())
    pooled: Floats = size[fresh]
    return pooled


def _log_value_count(tail: int, equal: int, draws: int) -> float:
    """Compute the log number of values, both signs, if `tail` draws repeat that often."""
    # tail^2 / 2 pairs, on the share tail / draws of half of the values.
    return math.log2(max(1.0, tail * draws / max(1, equal)))


def _is_discrete(seen: Seen) -> bool:
    """Return True if half of the noisy coordinates have a discrete law."""
    mixed = _find_modes(seen.first[:, seen.varying])[1]
    return bool(mixed.mean() < 0.5)


def check_cut(seen: Seen, level: float) -> Check:
    """Check for noise that ends at a wall: the largest draws are as close as the others."""
    name = "range"
    if seen.varying.size == 0:
        return check_from_rule(name, _NO_NOISE_FOUND)
    if _is_discrete(seen):
        return check_from_rule(name, _DISCRETE_NOISE)
    noise = np.abs(seen.noise[:, seen.varying]) / seen.spread[seen.varying]
    size = noise.max(axis=1)
    n = len(size)
    k = min(_MAX_WALL_DRAWS, n // 10) // 2 * 2
    top = np.sort(size)[-(k + 1) :][::-1]
    # Renyi: spacings of an exponential tail, each times its place, are alike.
    spacings = np.arange(1, k + 1) * -np.diff(top)
    total = float(spacings.sum())
    if total == 0.0:
        return check_from_rule(name, "the largest draws are all equal: not checked")
    from scipy.special import betainc

    share = float(spacings[: k // 2].sum()) / total
    allowed = 0.5 / _gaussian_share(k, n)
    p = float(betainc(k // 2, k // 2, min(1.0, share * allowed)))
    figures = _describe_tails(noise)
    figures += _format_centre(seen)
    bad = f"the noise ends at a wall: {figures}; the {k} largest draws crowd there"
    return check_from_p_value(
        name, p, level, bad, f"no wall: {figures}", share=share, largest=float(top[0])
    )


def _gaussian_share(k: int, n: int) -> float:
    """Compute the share of the first half of k spacings for Gaussian noise.

    Its tail is lighter than an exponential one; each spacing is in proportion to the Mills ratio.
    """
    from scipy.special import log_ndtr, ndtri

    q = (np.arange(1, k + 1) - 0.5) / n / 2
    z = -ndtri(q)
    mills = np.exp(log_ndtr(-z) + z * z / 2)
    return float(mills[: k // 2].sum() / mills.sum())


def _describe_tails(noise: Floats) -> str:
    """Compare the largest draw with the values that fitted laws expect."""
    n, top = noise.size, float(noise.max())
    laplace = n * math.exp(-top / float(noise.mean()))
    gauss = n * math.erfc(top / math.sqrt(2 * float((noise**2).mean())))
    return (
        f"the largest of {n:,} draws is {top / float(noise.mean()):.4g} mean sizes; Laplace noise"
        f" would be beyond it {laplace:.2g} times, Gaussian noise {gauss:.2g} times"
    )
