"""Source of a mechanism's randomness: the seed, its own, or a source that its copies share.

The mechanism itself is tested. It draws some rows of both sides twice, and the second time the
generators are first reset to their earlier states. If the two draws are independent, all 2r rows of
one side are exchangeable: given their values, every way to sort them into r pairs is equally
likely. The share of the ways in which all pairs agree is an exact p-value for every distribution,
with or without atoms. It is 1/(2r - 1)!! if no two of the r rows agree, and already 2^-40 for
r = 12.

The number of rows depends on the rows and on the number of trials, never on clocks. A function of
one output, which may be slow, is called at most 24 times for this test, or once for every eight
trials if that is more.
"""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from ..attacks.grains import grains_of, tolerances_at
from ..errors import invalid
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import one_by_one
from ..report.shown import name_of
from ..sampling.replay import encode_rows
from ..sampling.sources import CallableDraws, Course, Place
from ..sampling.workers import runs_in
from ..streams import PROBE, Generators, threads_of

_FIRST_REPEATED_ROWS: Final = 64
"""Number of rows on both sides together that are drawn twice at first."""
_MIN_REPEATED_ANSWERS: Final = 12
"""Least number of rows for a function of one output: p = 1/(11!!)^2 = 9e-9 if no two of 6 agree."""
_ROW_LIMITS: Final = ((2**17, 16), (2**9, 4))
"""Largest numbers of rows, each with a number of trials per row; the larger limit is used."""
_ANSWER_LIMIT: Final = (2**17, 16)
"""The same limit for functions of one output. Each is drawn twice: one call in eight trials."""
_MAX_LOG_P_VALUE: Final = math.log(5e-8)
"""Logarithm of the p-value below which equal rows are not due to chance. There are at most 14
looks, one for each doubling, so a chance result passes with probability at most 7e-7."""
_PLAIN_DIFFERENCE: Final = 2.0**-4
"""Relative difference that no float format rounds away, even if few rows show it."""
_MAX_RECENT_NUMBERS: Final = 2**22
"""Most values in one-row blocks that are compared together; at least two rows are compared."""
_MAX_KEPT_ELEMENTS: Final = 2**22
"""Most values per side that are kept to find rows that agree."""
_MAX_COMPARED_COLUMNS: Final = 64
"""Columns by which rows are compared. Further columns could only make the test stronger."""

_COMPARED_AT_ONCE: Final = 2**12
"""Number of columns that are compared between two checks if any rows can still agree."""

Draw = Callable[[int, int], npt.NDArray[Any]]
"""Function (number of a block, rows) -> outputs of the block."""


@dataclass(frozen=True)
class Heard(CallableDraws):
    """Draws that are made during the probe, with the time of each call.

    Args:
        course: record of the calls.
    """

    course: Course = field(default_factory=Course, compare=False)

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """Draw the requested rows of a block and record the time of the call."""
        begun = self.course.clock()
        outputs = super().draw(purpose, side, place)
        self.course.called(place.size, self.course.clock() - begun)
        return outputs


def classify_randomness(draws: CallableDraws, trials: int) -> str:
    """Determine the source of a mechanism's randomness (`Audit.randomness`).

    Args:
        draws: the mechanism's draws.
        trials: largest trial number of the audit; it limits the rows that are drawn here.

    Returns:
        "seed" if the same generator gives the same outputs bit for bit, "rounding" if they differ
        only by rounding, "own" if they differ by more, and "not known" if equality may be chance
        (for example, if all rows are equal).

    Example:
        >>> from dpcore import Pair
        >>> def noisy(x, size, rng):
        ...     return x + rng.laplace(size=(size, 1))
        >>> def global_one(x, size, rng):
        ...     return x + np.random.laplace(size=(size, 1))
        >>> pair = Pair([0.0], [1.0])
        >>> for fn in (noisy, global_one):
        ...     classify_randomness(CallableDraws(fn, pair, 1, 100, (1,)), 1000)
        'seed'
        'own'
    """
    sides = [_RepeatedSide(draw, draw) for draw in _make_draw_functions(draws)]
    _draw_twice(sides, draws, trials, until_own=True)
    return _combine_verdicts(sides)


Shared = tuple[str, Any]
"""The argument that lets several processes draw, "executor" or "checkpoint", and its value."""


def shared_globals(draws: CallableDraws, trials: int, shared: Shared) -> bool:
    """Check that processes do not repeat randomness from outside the seed's generators.

    Every process has a copy of the mechanism and of all generators that the mechanism reaches.
    Copied generators would repeat the draws of the other processes. The system's entropy is
    different, because no state of a process can repeat it.

    Args:
        draws: the mechanism's draws.
        trials: largest trial number, as in `classify_randomness`.
        shared: argument that lets several processes draw, for the error message.

    Returns:
        True if the randomness comes from the global generators of Python, numpy or torch, which can
        be seeded for every block. False if this process cannot repeat the randomness.

    Raises:
        ValueError: if the randomness comes from another generator in this process, or may come from
            one (so few rows differ that equal rows may be chance).
    """
    with Generators.defaults() as generators:
        of_globals = _compare_with_states(generators, draws, draws, trials)
    if "own" not in of_globals and of_globals != {"not known"}:
        return True
    with Generators.everywhere() as every:
        # These copies are like those in two processes. Objects shared with the original are
        # restored.
        twins = [replace(draws, mechanism=twin) for twin in _copy_twice(draws.mechanism)]
        verdicts = _compare_with_states(every, twins[0], twins[1], trials)
    if verdicts & {"seed", "rounding"}:
        _refuse_copies(draws, shared, "draws")
    if "own" not in verdicts and not draws_globals_alone(draws, shared):
        # All rows were repeated, and a copied generator may be the reason.
        _refuse_copies(draws, shared, "may draw")
    return "own" not in verdicts


def draws_globals_alone(draws: CallableDraws, shared: Shared) -> bool:
    """Return True if a call changes global generators, False if it changes no generator.

    This is for mechanisms with hardly different outputs, because such outputs do not show if
    processes would repeat them. One call per side is made.

    Args:
        draws: the mechanism's draws.
        shared: argument that lets several processes draw, for the error message.

    Raises:
        ValueError: if a call changes the state of another generator in this process.
    """
    with Generators.everywhere() as every:
        rows = 1 if one_by_one(draws.mechanism) else min(draws.block, _FIRST_REPEATED_ROWS)
        for draw in _make_draw_functions(draws):
            draw(0, rows)
        of_globals, of_others = every.find_moved()
    if of_others:
        _refuse_copies(draws, shared, "draws")
    return of_globals


def _refuse_copies(draws: CallableDraws, shared: Shared, verb: str) -> NoReturn:
    requirement = (
        f"None for {name_of(draws.mechanism)}, which {verb} from a generator of its own that every "
        "process would copy and repeat (draw from the rng that it is called with)"
    )
    raise invalid(shared[0], requirement, shared[1])


def _compare_with_states(
    generators: Generators, first: CallableDraws, second: CallableDraws, trials: int
) -> set[str]:
    """Compare two draws on each side; the second draw begins with the first's generator states."""
    both = zip(_make_draw_functions(first), _make_draw_functions(second), strict=True)
    sides = [_RepeatedSide(generators.kept(a), generators.put_back(b)) for a, b in both]
    _draw_twice(sides, first, trials, until_own=False)
    equal = [side for side in sides if side.found != "own"]
    verdicts = {"own"} if len(equal) < len(sides) else set()
    return verdicts | ({_combine_verdicts(equal)} if equal else set())


def _copy_twice(mechanism: Any) -> tuple[Any, Any]:
    """Make two copies as in two processes; return the object itself if it cannot be copied."""
    for duplicate in (_pickle_copy, copy.deepcopy):
        try:
            return duplicate(mechanism), duplicate(mechanism)
        except Exception:
            # Executors with their own picklers can pickle more objects than pickle.
            continue
    return mechanism, mechanism


def _pickle_copy(mechanism: Any) -> Any:
    return pickle.loads(pickle.dumps(mechanism))


def _make_draw_functions(draws: CallableDraws) -> tuple[Draw, Draw]:
    """Return the functions that draw a block on x and on x'."""

    def drawn(side: int) -> Draw:
        # Block 0 was used to find the shape of outputs.
        return lambda number, rows: draws.draw(PROBE, side, Place(number + 1, rows, 0, rows))

    return drawn(0), drawn(1)


@dataclass
class _RepeatedSide:
    """Rows that were drawn twice on one side, and the result of their comparison.

    Args:
        first: function that draws a block.
        again: function that draws the block again.
        rows: number of rows drawn.
        blocks: number of blocks drawn.
        found: "seed", "rounding" or "own", the result for all rows so far.
        alike: number of rows that agree with the first row.
        others: the first row, and rows that do not agree with it.
        recent: blocks of few rows with their repetitions, which will be compared together.
    """

    first: Draw
    again: Draw
    rows: int = 0
    blocks: int = 0
    found: str = "seed"
    alike: int = 0
    others: list[npt.NDArray[Any]] = field(default_factory=list)
    recent: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=list)

    def draw_rows(self, rows: int, block: int) -> None:
        """Draw more rows twice, in blocks; stop at a block that differs by more than rounding."""
        while rows > 0 and self.found != "own":
            some = min(rows, block)
            outputs = self.first(self.blocks, some)
            again = self.again(self.blocks, some)
            rows, self.rows, self.blocks = rows - some, self.rows + some, self.blocks + 1
            self.recent.append((outputs, again))
            most = min(_FIRST_REPEATED_ROWS, max(2, _MAX_RECENT_NUMBERS // max(1, outputs.size)))
            if some > 1 or rows == 0 or len(self.recent) >= most:
                # Several rows are needed to find the format of the numbers, and so their rounding.
                self._compare_recent()

    def draw_one_row(self) -> None:
        """Draw one row twice, because two calls can show a mechanism's own randomness."""
        outputs, again = self.first(self.blocks, 1), self.again(self.blocks, 1)
        self.rows, self.blocks = self.rows + 1, self.blocks + 1
        self.recent.append((outputs, again))
        if _plainly_differ(outputs, again):
            self.found = "own"

    def _compare_recent(self) -> None:
        parts = zip(*self.recent, strict=True)
        outputs, again = (part[0] if len(part) == 1 else join_outputs(part) for part in parts)
        self.recent = []
        # The parts are not needed any more.
        del parts
        alike = compare_outputs(outputs, again)
        self.found = self.found if alike == "seed" else alike
        if self.found == "own":
            return
        first = self.others[0] if self.others else outputs[:1]
        agrees = _agree_with_row(outputs, first)
        self.alike += int(np.count_nonzero(agrees))
        # Copies, because a view would keep the whole block in memory.
        self.others = self.others or [first.copy()]
        room = _MAX_KEPT_ELEMENTS // max(1, math.prod(outputs.shape[1:])) - sum(
            map(len, self.others)
        )
        other = outputs[~agrees]
        # Rows that are not kept count as equal. This makes the test weaker, but not wrong.
        self.alike += max(0, len(other) - max(0, room))
        if room > 0:
            self.others.append(other[:room].copy())

    @property
    def log_chance(self) -> float:
        """Logarithm of the probability that all rows agree with their repetitions by chance."""
        if not self.others:
            return 0.0
        numbers = _group_rows(join_outputs(self.others))
        sizes = np.bincount(numbers)
        # The first row is among the others, and was also counted as equal to itself.
        sizes[numbers[0]] += self.alike - 1
        return log_chance_of_pairs(sizes)


def log_chance_of_pairs(sizes: npt.NDArray[np.intp]) -> float:
    """Compute the logarithm of the probability that all pairs of a random pairing agree.

    Let r rows be drawn twice, and let the rows of one group agree. There are (2r - 1)!! ways to
    sort all 2r rows into pairs. In prod (2m - 1)!! of them, over groups of m rows, all pairs are
    within one group.

    Args:
        sizes: number of rows m of each group.

    Returns:
        The logarithm.

    Example:
        >>> round(float(np.exp(log_chance_of_pairs(np.array([1, 1])))), 4)
        0.3333
    """
    return float(_log_pairings(sizes).sum() - _log_pairings(sizes.sum()))


def _log_pairings(pairs: Any) -> Any:
    """Compute the logarithm of (2m - 1)!!, the number of ways to sort 2m objects into m pairs."""
    from scipy.special import gammaln

    return gammaln(2.0 * pairs + 1.0) - gammaln(pairs + 1.0) - pairs * math.log(2.0)


def _combine_verdicts(sides: list[_RepeatedSide]) -> str:
    verdicts = {side.found for side in sides}
    if "own" in verdicts:
        return "own"
    if sum(side.log_chance for side in sides) > _MAX_LOG_P_VALUE:
        return "not known"
    return "rounding" if "rounding" in verdicts else "seed"


def _draw_twice(
    sides: list[_RepeatedSide], draws: CallableDraws, trials: int, until_own: bool
) -> None:
    """Draw rows of two sides twice, until chance is excluded or the limit is reached.

    Args:
        sides: rows on x and on x'.
        draws: the mechanism's draws.
        trials: number of trials of the audit.
        until_own: True to stop as soon as one side differs.
    """
    answers = one_by_one(draws.mechanism)
    limits = (_ANSWER_LIMIT,) if answers else _ROW_LIMITS
    goal = _FIRST_REPEATED_ROWS
    if answers:
        goal = min(goal, max(_MIN_REPEATED_ANSWERS, trials // _ANSWER_LIMIT[1]))
    most = max(goal, *(min(rows, trials // share) for rows, share in limits))
    if answers:
        for side in sides:
            side.draw_one_row()
            if until_own and side.found == "own":
                return
    while True:
        for side in sides:
            side.draw_rows(goal // 2 - side.rows, draws.block)
            if until_own and side.found == "own":
                return
        left = [side for side in sides if side.found != "own"]
        if not left or goal >= most or sum(s.log_chance for s in left) <= _MAX_LOG_P_VALUE:
            return
        goal = min(most, 2 * goal)


def _plainly_differ(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> bool:
    """Return True if two blocks differ by more than the rounding of any float format."""
    numbers, others = _as_float_columns(outputs), _as_float_columns(again)
    if numbers is None or others is None or numbers.shape != others.shape:
        return compare_outputs(outputs, again) == "own"
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(numbers), np.abs(others))
        return bool((np.abs(numbers - others) > _PLAIN_DIFFERENCE * size).any())


def _agree_with_row(outputs: npt.NDArray[Any], row: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that agree with one row up to rounding."""
    if row.dtype == outputs.dtype and row.shape[1:] == outputs.shape[1:] and row.dtype != object:
        return _rows_agree(outputs, np.broadcast_to(row, outputs.shape))
    both = join_outputs([row, outputs])
    return _rows_agree(both[1:], both[np.zeros(len(outputs), np.intp)])


def _group_rows(outputs: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the number of a group for each row.

    Rows that agree are in one group. A group may also contain rows that do not agree.
    """
    numbers = _as_float_columns(outputs)
    if numbers is None:
        rows = encode_rows(outputs)
        if rows is None or not rows.shape[1]:
            return np.zeros(len(outputs), np.intp)
        return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].ravel(), np.intp)
    groups = np.zeros(len(outputs), np.intp)
    with np.errstate(all="ignore"):
        differs = (numbers != numbers[:1]).any(axis=0)
        numbers = numbers[:, np.flatnonzero(differs)[:_MAX_COMPARED_COLUMNS]]
        for grain, column in zip(grains_of(numbers, numbers), numbers.T, strict=True):
            values = column.astype(np.float64)
            order = np.argsort(values)
            gaps = np.diff(values[order]) > 2.0 * grain.at(values[order][1:])
            clusters = np.empty(len(values), np.intp)
            clusters[order] = np.concatenate([[0], np.cumsum(gaps)])
            distinct, groups = np.unique(groups * len(values) + clusters, return_inverse=True)
            if len(distinct) == len(values):
                # Further columns cannot divide groups of one row.
                break
    return groups


def compare_outputs(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> str:
    """Compare two arrays of outputs: return "seed", "rounding" or "own".

    Args:
        outputs: outputs of shape `(size, ...)`.
        again: outputs of the same shape.

    Returns:
        "seed" if they are equal bit for bit. "rounding" if every number is within 8 units in the
        last place of its column's format, at its own magnitude or at the column's median if that is
        larger. Otherwise "own".
    """
    rows, other = encode_rows(outputs), encode_rows(again)
    same = rows is not None and other is not None and np.array_equal(rows, other)
    if same and outputs.dtype == again.dtype:
        return "seed"
    return "rounding" if bool(_rows_agree(outputs, again).all()) else "own"


def _rows_agree(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of rows that agree up to rounding; rows without floats must be equal."""
    numbers, others = _as_float_columns(outputs), _as_float_columns(again)
    if numbers is None or others is None:
        rows, other = encode_rows(outputs), encode_rows(again)
        # Objects that cannot be compared are not regarded as independent.
        is_encoded = rows is not None and other is not None
        if rows is None or other is None or rows.shape != other.shape:
            return np.full(len(outputs), not is_encoded)
        return np.asarray((rows == other).all(axis=1), np.bool_)
    agrees = (numbers == others) | (np.isnan(numbers) & np.isnan(others))
    differs = ~agrees.all(axis=0)
    if not differs.any():
        return np.ones(len(numbers), np.bool_)
    places, equal = np.flatnonzero(differs), agrees.all(axis=1)
    are_near = np.ones(len(numbers), np.bool_)
    for first in range(0, places.size, _COMPARED_AT_ONCE):
        some = places[first : first + _COMPARED_AT_ONCE]
        are_near &= (_are_near(numbers[:, some], others[:, some]) | agrees[:, some]).all(axis=1)
        if not (are_near & ~equal).any():
            # Further columns do not change the mask.
            break
    return are_near


def _are_near(numbers: npt.NDArray[Any], others: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the numbers that may be rounded values of one real number."""
    grains = grains_of(numbers, others)
    with np.errstate(all="ignore"):
        numbers, others = numbers.astype(np.float64), others.astype(np.float64)
        size = np.maximum(np.abs(numbers), np.abs(others))
        return np.asarray(np.abs(numbers - others) <= tolerances_at(grains, size.T).T)


def _as_float_columns(outputs: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return outputs as columns of floats, or None if they are not floats."""
    kind = outputs.dtype.kind
    if kind == "O" and all(isinstance(entry, float) for entry in outputs.ravel().tolist()):
        outputs, kind = outputs.astype(np.float64), "f"
    if kind == "c":
        outputs, kind = np.stack([outputs.real, outputs.imag], axis=-1), "f"
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:]))) if kind == "f" else None


def refuse_threads(threads: int | None, executor: Executor | None, what: str) -> None:
    """Raise an error for more than one thread, of the package or of an executor."""
    workers = threads_of(threads, default=1)
    if executor is None and workers > 1:
        raise invalid("threads", f"1 for a mechanism {what}", workers)
    if executor is None or getattr(executor, "_max_workers", 2) == 1:
        return
    if runs_in(executor) == "threads":
        raise invalid("executor", f"None or one of processes for a mechanism {what}", executor)
