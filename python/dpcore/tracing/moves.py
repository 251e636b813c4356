"""Search for the cheapest move: a change of the noise on x' that gives the output of x.

Let z be the noise, and let s be the move that is added to z on x'. A number that the code reads,
compares or returns has the value q + c z on x, with a part q without noise and coefficients c. On
x', the number has the value q' + c (z + s). A number that is read or returned must be equal on x
and x', so c s = q - q'. For a comparison to have the same outcome, c s must be at least, or at
most, q - q'. The move s does not depend on z, as the proof by randomness alignment requires. With
Laplace noise of scale b, the move costs |s| / b. With Gaussian noise of standard deviation sigma,
the parameter of Gaussian differential privacy is mu = |s| / sigma.

Source:
    Zhang and Kifer (2017), randomness alignment; Ding, Wang, Zhang and Kifer (2019), alignments of
    noisy maximum and sparse vector; Dong, Roth and Su (2022), mu of Gaussian noise.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..records import Flags, Floats, Ints
from .replay import NoiseUse, TracedRun, differ_much

_IMPOSSIBLE_COST: Final = 1e6
"""Cost of a downward move of noise that can only move upwards, relative to its usual cost."""

_MAX_HARD_ROWS: Final = 6_000
"""Largest number of values and comparisons that share noise, in one linear program."""

_MAX_HARD_ENTRIES: Final = 20_000_000
"""Largest product of the number of values that share noise and the number of draws."""

_ZERO: Final = 1e-12
"""Relative size of a difference, or of a move, that rounding can explain."""
_WHOLE_TOLERANCE: Final = 1e-9
_SUPPORT: Final = 1e-9
"""A larger change, in units of the scale, is not a rounding error of the linear program."""
_TIGHT: Final = 1e-6
"""A condition counts as met with equality if both sides differ by less than this number."""


class Owner(NamedTuple):
    """A noisy number that the traced code reads, compares or returns.

    A linear condition on a change of the noise belongs to this number. The fields `use` and `other`
    are the records of this number in the runs on x and x'. If the number is an entry of an array,
    the field `entry` is the index of the entry.
    """

    use: NoiseUse
    other: NoiseUse
    entry: int


@dataclass(slots=True)
class Conditions:
    """Linear conditions on a change s of the noise on x', one for each noisy number.

    Let z be the noise. In the run on x, a noisy number is q + c z, with a part q without noise and
    coefficients c. In the run on x', the number is q' + c (z + s). If the code reads or returns the
    number, the condition is c s = q - q'. If the code compares the number, the condition has "at
    least" or "at most" instead of "=". For Gaussian noise, the condition keeps "=".

    Attributes:
        rows: for each coefficient, the index of the condition that contains it.
        columns: for each coefficient, the index of the random value that the coefficient
            multiplies.
        weights: the coefficients c.
        gaps: right-hand sides q - q' of the conditions.
        senses: kind of each condition: 0 for equal, 1 for at least, -1 for at most.
        spans: for each number that is read, compared or returned: the index of its first condition,
            and the records of this number on x and on x'.
        uneven: numbers that have no condition, because their coefficients c are different on x and
            x'.
        undefined: numbers whose part without noise is finite on only one of the two inputs x and
            x'.
    """

    rows: Ints
    columns: Ints
    weights: Floats
    gaps: Floats
    senses: Ints
    spans: list[tuple[int, NoiseUse, NoiseUse]]
    uneven: list[tuple[NoiseUse, NoiseUse]] = field(default_factory=list)
    undefined: list[tuple[NoiseUse, NoiseUse, int]] = field(default_factory=list)

    def noisy_number_of_condition(self, row: int) -> Owner:
        """Return the noisy number (or entry of a noisy array) to which a condition belongs."""
        first, use, other = max((s for s in self.spans if s[0] <= row), key=lambda s: s[0])
        return Owner(use, other, row - first)


@dataclass(slots=True)
class NoiseMove:
    """Change of the noise on x' (a move) with which the run on x' gives the output of x.

    Attributes:
        shift: for each random value of the noise, the number that the move adds to this value.
        impossible: for each random value, True if the changed value may have probability 0.
        failures: indices of the conditions that no move satisfies. Empty if this move satisfies all
            conditions.
        is_too_large: True if the linear program for the move was too large to solve.
    """

    shift: Floats
    impossible: Flags
    failures: list[int] = field(default_factory=list)
    is_too_large: bool = False


@dataclass(slots=True)
class NoiseTable:
    """Scale and kind of each random value of the noise of one run.

    Each field has one entry for each random value. The field `scales` holds the scales.
    `is_gaussian` is True for Gaussian noise. `is_upwards` is True for values that can only be made
    larger. `is_whole` is True for integers.
    """

    scales: Floats
    is_gaussian: Flags
    is_upwards: Flags
    is_whole: Flags

    @classmethod
    def of(cls, run: TracedRun) -> NoiseTable:
        """Make the table of all random values of the noise that was drawn in a recorded run."""
        size = run.size
        table = cls(np.ones(size), *(np.zeros(size, bool) for _ in range(3)))
        for draw in run.draws:
            span = slice(draw.start, draw.start + draw.noise.size)
            table.scales[span] = np.broadcast_to(draw.scale, draw.shape).ravel()
            table.is_gaussian[span] = draw.law.kind == "gaussian"
            table.is_upwards[span] = draw.law.kind == "upwards"
            table.is_whole[span] = draw.law.whole
        return table


def _list_terms(use: NoiseUse) -> tuple[Ints, Ints, Floats]:
    """Return entry, random value and coefficient of each term of noise in a number."""
    plain, ids, weights = use.form
    terms = ids.shape[0]
    flat = ids.reshape(terms, -1).ravel()
    values = np.asarray(weights, float).reshape(terms, -1).ravel()
    entries = np.tile(np.arange(plain.size), terms)
    live = values != 0
    if not live.all():
        flat, values, entries = flat[live], values[live], entries[live]
    if terms > 1:
        flat, values, entries = _merge_terms(entries, flat, values)
    return entries, flat, values


def _merge_terms(entries: Ints, ids: Ints, weights: Floats) -> tuple[Ints, Floats, Ints]:
    """Add the coefficients of the same random value in the same entry; drop sums that are 0."""
    width = int(ids.max(initial=0)) + 1
    keys, inverse = np.unique(entries * width + ids, return_inverse=True)
    sums = np.bincount(inverse, weights, len(keys)).astype(float)
    sizes = np.bincount(inverse, np.abs(weights), len(keys))
    live = np.abs(sums) > _ZERO * sizes
    keys = keys[live]
    return keys % width, sums[live], keys // width


def _have_equal_noise_coefficients(use: NoiseUse, other: NoiseUse) -> bool:
    first, second = use.form, other.form
    is_aligned = first[1].shape == second[1].shape and np.array_equal(first[1], second[1])
    if is_aligned and not differ_much(first[2], second[2]):
        return True
    terms, other_terms = _sort_terms(_list_terms(use)), _sort_terms(_list_terms(other))
    same = all(np.array_equal(a, b) for a, b in zip(terms[:2], other_terms[:2], strict=True))
    return same and not differ_much(terms[2], other_terms[2])


def _sort_terms(terms: tuple[Ints, Ints, Floats]) -> tuple[Ints, Ints, Floats]:
    order = np.lexsort((terms[1], terms[0]))
    return terms[0][order], terms[1][order], terms[2][order]


def move_conditions(replay: TracedRun, table: NoiseTable) -> Conditions:
    """Collect the linear conditions on a change of the noise on x'.

    After the change, the run on x' reads and returns the same numbers as the run on x. Comparisons
    have the same outcomes in both runs. A compared number with Gaussian noise is equal in both
    runs. `replay` is the record of the run on x'.
    """
    parts: list[tuple[Any, ...]] = []
    spans: list[tuple[int, NoiseUse, NoiseUse]] = []
    uneven: list[tuple[NoiseUse, NoiseUse]] = []
    undefined: list[tuple[NoiseUse, NoiseUse, int]] = []
    start = 0
    for other in replay.uses:
        use = other.twin
        if use is None:
            continue
        if not _have_equal_noise_coefficients(use, other):
            uneven.append((use, other))
            continue
        plain, plain_other = (np.asarray(u.form[0], float).ravel() for u in (use, other))
        with np.errstate(all="ignore"):
            gap = np.where(plain == plain_other, 0.0, plain - plain_other)
        gap[np.isnan(plain) & np.isnan(plain_other)] = 0.0
        if not np.all(np.isfinite(gap)):
            undefined.append((use, other, int(np.flatnonzero(~np.isfinite(gap))[0])))
            continue
        sizes = np.maximum(np.abs(plain), np.abs(plain_other))
        gap[np.abs(gap) <= _ZERO * np.where(np.isfinite(sizes), sizes, 0.0)] = 0.0
        entries, ids, weights = _list_terms(use)
        if use.op in ("argmax", "argmin"):
            entries, ids, weights, gap, senses = _list_argmax_conditions(
                use, entries, ids, weights, gap
            )
        else:
            senses = np.zeros(gap.size, np.int64)
            if use.sense is not None:
                senses = np.where(np.ravel(use.sense), 1, -1)
        if use.sense is not None and table.is_gaussian.any():
            # Compared Gaussian values are treated like returned values.
            gaussian = table.is_gaussian[ids]
            senses[entries[gaussian]] = 0
        parts.append((entries + start, ids, weights, gap, senses))
        spans.append((start, use, other))
        start += gap.size
    if not parts:
        none = np.zeros(0, np.int64)
        return Conditions(none, none, np.zeros(0), np.zeros(0), none, spans, uneven, undefined)
    numbers, ids, weights, gaps, senses = (
        np.concatenate(part) for part in zip(*parts, strict=True)
    )
    return Conditions(numbers, ids, weights, gaps, senses, spans, uneven, undefined)


def _list_argmax_conditions(
    use: NoiseUse, entries: Ints, ids: Ints, weights: Floats, gap: Floats
) -> tuple[Ints, Ints, Floats, Floats, Ints]:
    """Return conditions that keep the largest (or smallest) entry the largest (or smallest)."""
    best, sign, size = int(use.result), int(use.sense), gap.size
    own = entries == best
    others = ~own
    repeated = np.repeat(np.arange(size), int(own.sum()))
    rows = np.concatenate([entries[others], repeated])
    columns = np.concatenate([ids[others], np.tile(ids[own], size)])
    values = sign * np.concatenate([-weights[others], np.tile(weights[own], size)])
    live = rows != best
    columns, values, rows = _merge_terms(rows[live], columns[live], values[live])
    gaps = sign * (gap[best] - gap)
    gaps[best] = 0.0
    return rows, columns, values, gaps, np.ones(size, np.int64)


def cheapest_move(conditions: Conditions, table: NoiseTable, sign: int = 1) -> NoiseMove:
    """Find the cheapest change of the noise that satisfies all conditions.

    Args:
        conditions: linear conditions on the change.
        table: scale and kind of each random value of the noise.
        sign: 1 for a change of the noise on x', so that the run on x' returns the output of x. -1
            for a change of the noise on x, so that the run on x returns the output of x'.

    Returns:
        The change (a move). The attribute `failures` lists the conditions that no change satisfies.
    """
    size, count = table.scales.size, conditions.gaps.size
    gaps = sign * conditions.gaps
    move = NoiseMove(np.zeros(size), np.zeros(size, bool))
    per_row = np.bincount(conditions.rows, minlength=count)
    uses = np.bincount(conditions.columns, minlength=size)
    # Draws whose rows contain no other draw.
    single = per_row[conditions.rows] == 1
    alone = np.bincount(conditions.columns[single], minlength=size) == uses
    easy_terms = single & alone[conditions.columns]
    easy, columns = conditions.rows[easy_terms], conditions.columns[easy_terms]
    _solve_uncoupled(conditions, gaps, easy_terms, table, move)
    _fail_fractional_shifts(move, table, easy, columns)
    empty = np.flatnonzero(per_row == 0)
    broken = _is_broken(gaps[empty], conditions.senses[empty])
    move.failures += empty[broken].tolist()
    is_hard = per_row > 0
    is_hard[easy] = False
    hard = np.flatnonzero(is_hard)
    if hard.size > _MAX_HARD_ROWS or hard.size * (uses > 0).sum() > _MAX_HARD_ENTRIES:
        move.is_too_large = True
    elif hard.size:
        _solve_rows_sharing_noise(conditions, table, gaps, hard, move)
    down = table.is_upwards & (move.shift < 0)
    move.impossible |= down
    return move


def _solve_uncoupled(
    rows: Conditions, gaps: Floats, terms: Flags, table: NoiseTable, move: NoiseMove
) -> None:
    """Change each random value that shares no condition with others, as its conditions require."""
    numbers, columns, weights = rows.rows[terms], rows.columns[terms], rows.weights[terms]
    aims = gaps[numbers] / weights
    senses = np.where(weights > 0, 1, -1) * rows.senses[numbers]
    if not rows.senses[numbers].any() and np.unique(columns).size == columns.size:
        move.shift[columns] = aims
        return
    low, high = np.full(move.shift.size, -np.inf), np.full(move.shift.size, np.inf)
    np.maximum.at(low, columns[senses >= 0], aims[senses >= 0])
    np.minimum.at(high, columns[senses <= 0], aims[senses <= 0])
    low = np.where(table.is_whole, np.ceil(low - _WHOLE_TOLERANCE), low)
    high = np.where(table.is_whole, np.floor(high + _WHOLE_TOLERANCE), high)
    slack = _WHOLE_TOLERANCE * np.maximum(1.0, np.abs(aims))
    empty = low[columns] > high[columns] + slack
    move.failures += numbers[empty].tolist()
    move.shift[columns] = np.clip(0.0, low[columns], np.maximum(low, high)[columns])


def _is_broken(residual: Floats, senses: Ints, tolerance: float = 0.0) -> Flags:
    """Return a mask of the conditions that fail; `residual` is right side minus left side."""
    equal = (senses == 0) & (np.abs(residual) > tolerance)
    more, less = (senses == 1) & (residual > tolerance), (senses == -1) & (residual < -tolerance)
    return np.asarray(equal | more | less)


def _fail_fractional_shifts(move: NoiseMove, table: NoiseTable, rows: Ints, columns: Ints) -> None:
    """Mark conditions as failed if they require a fractional change of integer noise."""
    whole = table.is_whole[columns]
    if not whole.any():
        return
    shift = move.shift[columns[whole]]
    nearest = np.rint(shift)
    bad = np.abs(shift - nearest) > _WHOLE_TOLERANCE * np.maximum(1.0, np.abs(nearest))
    move.shift[columns[whole]] = np.where(bad, 0.0, nearest)
    move.failures += rows[whole][bad].tolist()


def _solve_rows_sharing_noise(
    rows: Conditions, table: NoiseTable, gaps: Floats, hard: Ints, move: NoiseMove
) -> None:
    """Find the change of noise for conditions that share random values."""
    from scipy.sparse import csr_array

    place = np.full(rows.gaps.size, -1)
    place[hard] = np.arange(hard.size)
    terms = place[rows.rows] >= 0
    columns, inverse = np.unique(rows.columns[terms], return_inverse=True)
    shape = hard.size, columns.size
    matrix = csr_array((rows.weights[terms], (place[rows.rows[terms]], inverse)), shape=shape)
    scales = table.scales[columns]
    # In units of the scale.
    matrix = csr_array(matrix.multiply(scales[None, :]))
    if not np.any(_is_broken(gaps[hard], rows.senses[hard])):
        return
    if hard.size == 1 and not table.is_gaussian[columns].any():
        units = _change_cheapest(matrix.toarray()[0], float(gaps[hard[0]]), table, columns)
        if units is not None:
            move.shift[columns] = units * table.scales[columns]
            _round_integer_noise_shifts(move, table, columns)
            return
    for some, held in _split_into_independent_parts(matrix, table.is_gaussian[columns]):
        block = matrix[some][:, held].toarray()
        part, senses, aims = columns[held], rows.senses[hard[some]], gaps[hard[some]]
        gaussian = table.is_gaussian[part]
        units = None
        if gaussian.any():
            units = _min_gaussian_move(block, aims, senses, gaussian)
        if units is None:
            units = _solve_program(block, aims, senses, table, part)
        if units is None:
            move.failures += hard[some].tolist()
        else:
            move.shift[part] = units * table.scales[part]
            _round_integer_noise_shifts(move, table, part)


def _round_integer_noise_shifts(move: NoiseMove, table: NoiseTable, part: Ints) -> None:
    whole = part[table.is_whole[part]]
    move.shift[whole] = np.rint(move.shift[whole])


def _change_cheapest(weights: Floats, gap: float, table: NoiseTable, part: Ints) -> Floats | None:
    """Change the cheapest random value of a condition, or return None.

    The result is None if this value is an integer but the change is not.
    """
    units = gap / weights
    costs = np.where(table.is_upwards[part] & (units < 0), _IMPOSSIBLE_COST, 1.0) * np.abs(units)
    best = int(np.argmin(costs))
    steps = units[best] * table.scales[part[best]]
    if table.is_whole[part[best]] and abs(steps - np.rint(steps)) > _WHOLE_TOLERANCE:
        return None
    only = np.zeros(weights.size)
    only[best] = units[best]
    return only


def _split_into_independent_parts(matrix: Any, gaussian: Flags) -> list[tuple[Ints, Ints]]:
    """Split conditions and random values into parts that share no noise.

    A small problem without Gaussian noise is not split.
    """
    count, width = matrix.shape
    if not gaussian.any() and count * width <= 10**6:
        return [(np.arange(count), np.arange(width))]
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    terms = matrix.tocoo()
    ends = terms.row, terms.col + count
    graph = csr_array((np.ones(terms.nnz), ends), shape=(count + width, count + width))
    number, labels = connected_components(graph, directed=False)
    order = np.argsort(labels, kind="stable")
    parts = np.split(order, np.cumsum(np.bincount(labels, minlength=number))[:-1])
    return [(part[part < count], part[part >= count] - count) for part in parts]


def _min_gaussian_move(block: Floats, aims: Floats, senses: Ints, gaussian: Flags) -> Floats | None:
    """Return the shortest change of only the Gaussian noise, in units of sigma, or None.

    None if a condition is not an equation, or if no change of Gaussian noise meets all conditions.
    """
    equal = senses == 0
    if not equal.all():
        return None
    units = np.zeros(block.shape[1])
    units[gaussian] = np.linalg.lstsq(block[:, gaussian], aims, rcond=1e-12)[0]
    size = max(1e-300, float(np.abs(aims).max(initial=0.0)))
    residual = np.abs(block @ units - aims)
    return units if residual.max(initial=0.0) <= _TIGHT**1.5 * size else None


def _solve_program(
    block: Floats, aims: Floats, senses: Ints, table: NoiseTable, part: Ints
) -> Floats | None:
    """Return the solution of the linear program for the move, in units of the scales, or None."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    if not np.any(_is_broken(aims, senses)):
        return np.zeros(block.shape[1])
    upwards, whole = table.is_upwards[part], table.is_whole[part]
    steps = np.where(whole, 1.0 / table.scales[part], 1.0)
    # The variables are steps upwards and steps downwards.
    costs = np.concatenate([steps, steps * np.where(upwards, _IMPOSSIBLE_COST, 1.0)])
    scaled = block * steps
    low = np.where(senses >= 0, aims, -np.inf)
    high = np.where(senses <= 0, aims, np.inf)
    program = milp(
        costs,
        constraints=LinearConstraint(csr_array(np.hstack([scaled, -scaled])), low, high),
        bounds=Bounds(0.0, np.inf),
        integrality=np.concatenate([whole, whole]).astype(int),
    )
    if program.x is None:
        return None
    count = block.shape[1]
    units = (program.x[:count] - program.x[count:]) * steps
    return units if whole.any() else _refine_by_least_squares(block, aims, senses, units)


def _refine_by_least_squares(block: Floats, aims: Floats, senses: Ints, units: Floats) -> Floats:
    """Solve again for the nonzero changes, because the linear program allows errors of 1e-7."""
    support = np.abs(units) > _SUPPORT
    residual = aims - block @ units
    tight = (senses == 0) | (np.abs(residual) < _TIGHT)
    refined = np.zeros_like(units)
    with np.errstate(all="ignore"):
        refined[support] = np.linalg.lstsq(block[np.ix_(tight, support)], aims[tight], rcond=None)[
            0
        ]
    error = np.abs(refined - units).max(initial=0.0)
    return refined if error < _TIGHT * max(1.0, float(np.abs(units).max(initial=0.0))) else units


def find_costs(move: NoiseMove, table: NoiseTable) -> npt.NDArray[np.float64]:
    """Return the privacy cost of the change of each random value.

    The cost is the absolute change divided by the scale of the noise, or inf if the changed value
    may have probability 0.
    """
    with np.errstate(all="ignore"):
        costs = np.where(move.shift == 0, 0.0, np.abs(move.shift) / table.scales)
    costs[move.impossible] = np.inf
    return costs
