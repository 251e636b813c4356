"""Checks of what the noise shares: between coordinates, between rows, between calls."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from ._ranks import Floats, at_least, collision_probability, hash_rows, pairs_of_columns, same_rows
from ._records import Check, check_from_p_value, check_from_rule
from ._seeing import Seen

_MAX_COMPARED_COLUMNS = 1024
"""Coordinates of which all pairs are compared; chosen by chance where there are more."""

_FIRST_RANK_ROWS = 65
"""Rows whose rank is found first: a decomposition of thousands takes seconds."""

_EMPTY_DIRECTION_STEPS = 16.0
"""Rounding errors, in steps of the floats, below which a direction counts as empty."""


def no_noise(seen: Seen, level: float) -> Check:
    """Find coordinates that are the same in all draws of both calls."""
    n, d = seen.first.shape
    still = (seen.first == seen.first[0]).all(axis=0) & (seen.second == seen.first[0]).all(axis=0)
    if seen.clean is not None:
        # A fixed offset, whatever it is, is not the clean vector: that is shared noise.
        still &= seen.first[0] == seen.clean
    count = int(still.sum())
    evidence: dict[str, Any] = {"without_noise": count, "dim": d}
    target = "are all the same" if seen.clean is None else "equal the clean vector"
    if count == d:
        return check_from_rule(
            "no_noise", f"no noise at all: {n:,} outputs {target}", True, **evidence
        )
    if count:
        what = f"no noise in {count} of {d} coordinates"
        return check_from_rule("no_noise", what, True, **evidence)
    return check_from_rule("no_noise", f"{_format_all_coordinates(d)} noise", **evidence)


def _format_all_coordinates(d: int) -> str:
    return "the one coordinate has" if d == 1 else f"all {d} coordinates have"


def shared_rows(seen: Seen, level: float) -> Check:
    """Find rows of one call that repeat others, or follow them."""
    name, n = "shared_rows", len(seen.first)
    if seen.varying.size == 0:
        if no_noise(seen, level).flagged:
            return check_from_rule(name, "no noise to compare")
        what = f"one draw of the noise is used for all {n:,} rows of a call"
        return check_from_rule(name, what, True, distinct=1)
    values = seen.first[:, seen.varying]
    ids = hash_rows(values, seen.rng)
    distinct = len(np.unique(ids))
    repeats, lag = _repetition_p_value(ids)
    half = n // 2
    following = [same_rows(*rows, seen.rng)[0] for rows in _pair_rows(values, half)]
    p = 3 * min(repeats, *following)
    bad = (
        f"rows of a call repeat every {lag} rows: {distinct:,} different ones among {n:,}"
        if repeats <= min(following)
        else "rows of a call depend on the rows before them"
    )
    good = f"{distinct:,} different rows among {n:,}, none tied to another"
    return check_from_p_value(name, p, level, bad, good, distinct=distinct, lag=lag)


def _pair_rows(values: Floats, half: int) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Pair neighbours, and rows half a call apart; no row is in two pairs."""
    return (
        (values[0 : 2 * half : 2], values[1 : 2 * half : 2]),
        (values[:half], values[half : 2 * half]),
    )


def _repetition_p_value(ids: npt.NDArray[np.uint64]) -> tuple[float, int]:
    """Test if equal rows are at one distance; return the p-value and that distance."""
    n = len(ids)
    order = np.argsort(ids, kind="stable")
    equal = ids[order[1:]] == ids[order[:-1]]
    lags = np.diff(order)[equal]
    if lags.size == 0:
        return 1.0, 0
    lag = int(np.bincount(lags).argmax())
    # Disjoint pairs are independent if rows are.
    starts = np.arange(n - lag)
    starts = starts[starts // lag % 2 == 0]
    hits = int((ids[starts] == ids[starts + lag]).sum())
    return min(1.0, n * at_least(hits, len(starts), collision_probability(ids))), lag


def shared_calls(seen: Seen, level: float) -> Check:
    """Find rows of a second call that were in the first one."""
    name, n = "shared_calls", len(seen.first)
    if seen.varying.size == 0:
        fixed = bool((seen.first[0] == seen.second[0]).all())
        noise = not no_noise(seen, level).flagged
        if fixed and noise:
            return check_from_rule(
                name, "two calls with fresh generators used the same noise", True
            )
        return check_from_rule(name, "two calls differ" if not fixed else "no noise to compare")
    # The same weights in both calls: equal rows have equal numbers.
    both = np.concatenate([seen.first, seen.second])[:, seen.varying]
    ids = hash_rows(both, seen.rng)
    chance = max(collision_probability(ids[:n]), collision_probability(ids[n:]))
    equal = int((ids[:n] == ids[n:]).sum())
    known = int(np.isin(ids[n:], ids[:n]).sum())
    following = same_rows(both[:n], both[n:], seen.rng)[0]
    p = 3 * min(at_least(equal, n, chance), at_least(known, n, min(1.0, n * chance)), following)
    bad = (
        f"two calls with fresh generators share noise: {equal:,} of {n:,} rows are equal"
        f" in place, {known:,} in any place"
    )
    good = f"two calls with fresh generators: {equal:,} of {n:,} rows equal, no more than chance"
    return check_from_p_value(name, p, level, bad, good, equal=equal, known=known)


def check_rank(seen: Seen, level: float) -> Check:
    """Check that differences of outputs span every direction, so that noise has full rank."""
    name, columns = "rank", _choose_columns(seen)
    d = len(columns)
    if d < 2:
        return check_from_rule(name, "fewer than two noisy coordinates: nothing to compare")
    found = _noise_rank(seen, columns)
    if found == d:
        return check_from_rule(name, f"noise in all {d} directions", rank=found, dim=d)
    if found != 1:
        what = f"noise in {found} of {d} directions: {d - found} combinations of outputs are exact"
        return check_from_rule(name, what, True, rank=found, dim=d)
    error, total = _largest_bare_error(seen), seen.varying.size
    what = f"one draw of noise for all {total} coordinates (rank 1)"
    if error is None:
        return check_from_rule(name, what, True, rank=1, dim=d)
    whole = seen.clean is not None and float(seen.clean.min()) == 0.0
    returned = "the clean vector" if whole else "the clean vector up to one constant"
    what += f": subtracting the row minimum returns {returned} (largest error {error:.2g})"
    return check_from_rule(name, what, True, rank=1, dim=d, error=error)


def _choose_columns(seen: Seen) -> npt.NDArray[np.intp]:
    """Choose the noisy coordinates, or as many of them as allow all pairs."""
    most = min(_MAX_COMPARED_COLUMNS, len(seen.first) // 2)
    if seen.varying.size <= most:
        return seen.varying
    return np.sort(seen.rng.choice(seen.varying, most, replace=False))


def _noise_rank(seen: Seen, columns: npt.NDArray[np.intp]) -> int:
    values = seen.first[:, columns]
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).mean(axis=0))
    values /= size
    d = len(columns)
    # Rounding is noise in every direction, but this small.
    rounding = float((_EMPTY_DIRECTION_STEPS * seen.step[columns] / size).max())
    empty = max(1e-10, rounding**2)
    gram = values.T @ values / len(values)
    try:
        # A pivot is what the earlier coordinates do not explain of the next one.
        if float(np.linalg.cholesky(gram).diagonal().min()) ** 2 > empty:
            return d
    except np.linalg.LinAlgError:
        pass
    few = values[:_FIRST_RANK_ROWS]
    lengths = np.linalg.svd(few - few.mean(axis=0), compute_uv=False)
    quick = int((lengths > math.sqrt(empty * max(few.shape))).sum())
    if quick < min(_FIRST_RANK_ROWS - 1, d):
        return max(1, quick)
    return int((np.linalg.eigvalsh(gram) > empty * d).sum())


def _largest_bare_error(seen: Seen) -> float | None:
    """Return the largest error of outputs minus their row minimum, if that removes the noise."""
    bare = seen.first - seen.first.min(axis=1, keepdims=True)
    clean = bare[0] if seen.clean is None else seen.clean - seen.clean.min()
    error = float(np.abs(bare - clean).max())
    return error if error <= _EMPTY_DIRECTION_STEPS * float(seen.step.max()) else None


def check_correlation(seen: Seen, level: float) -> Check:
    """Check for coordinates whose noise rises and falls together."""
    return _check_common_size(seen, level, "correlation", seen.first, "the noise", "")


def shared_size(seen: Seen, level: float) -> Check:
    """Check for coordinates whose noise is large together."""
    values = np.abs(seen.first - np.median(seen.first, axis=0))
    meant = " (meant where one radius is drawn for the whole vector, as by an L2-Laplace)"
    return _check_common_size(seen, level, "shared_size", values, "the size of the noise", meant)


def _check_common_size(
    seen: Seen, level: float, name: str, values: Floats, subject: str, meant: str
) -> Check:
    columns = _choose_columns(seen)
    d = len(columns)
    if d < 2:
        return check_from_rule(name, "fewer than two noisy coordinates: nothing to compare")
    p, strongest, rms, pairs = pairs_of_columns(values[:, columns], seen.rng)
    figures = f"{strongest:.3f} at most over {pairs:,} pairs, {rms:.3f} in the mean"
    bad = f"{subject} in one coordinate tells that in others: correlation {figures}{meant}"
    good = f"{subject}: correlation {figures}, no more than chance"
    return check_from_p_value(name, p, level, bad, good, largest=strongest, rms=rms, pairs=pairs)
