"""Test whether a mechanism draws its randomness from the given generator or from elsewhere.

The mechanism makes r outputs (rows) on each input, and then makes them again with generators that
are reset to their earlier states. If every row equals its repetition, the randomness comes from
these generators, unless the rows are equal by chance.

The p-value of this chance event is exact, for every distribution of the rows. Suppose that the rows
are independent of their repetitions. Then all 2r rows on one input are exchangeable. Given the
values of the rows, all ways to divide the 2r rows into r pairs are equally likely. The p-value is
the share of these ways in which the two rows of every pair agree. If no two of the r rows agree,
the p-value is 1/(2r - 1)!!, which is about 3e-12 for r = 12.

The number of rows depends only on the number of trials and on the rows, not on measured times. A
function that makes one output per call may be slow. It is called at most 24 times for this test, or
once for every eight trials if this number is larger.
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

from ..attacks.grains import column_tolerances, tolerances_at
from ..errors import invalid
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import is_unbatched
from ..report.shown import name_of
from ..sampling.replay import encode_rows
from ..sampling.sources import CallableDraws, Place, TimeLog
from ..sampling.workers import find_where_tasks_run
from ..streams import PROBE, Generators, threads_of

_FIRST_REPEATED_ROWS: Final = 64
"""Number of rows, on x and x' together, that are drawn twice at first."""
_MIN_REPEATED_ANSWERS: Final = 12
"""Least number of rows, on x and x' together, for a function that makes one output per call. If no
two of the 6 rows on an input agree, the p-value is 1/(11!!)^2 = 9e-9."""
_ROW_LIMITS: Final = ((2**17, 16), (2**9, 4))
"""Limits on the number of rows. Each pair gives one limit: the first number, or the number of
trials divided by the second number if this is smaller. The larger limit is used."""
_ANSWER_LIMIT: Final = (2**17, 16)
"""Limit for a function that makes one output per call, in the form of `_ROW_LIMITS`. Each row needs
two calls, so there is at most one call for every eight trials."""
_MAX_LOG_P_VALUE: Final = math.log(5e-8)
"""Logarithm of the p-value below which equal rows are not explained by chance. The p-value is
computed at most 14 times in a test. Therefore the error probability of the test is at most 7e-7."""
_PLAIN_DIFFERENCE: Final = 2.0**-4
"""Relative difference that is larger than the rounding of any float format."""
_MAX_RECENT_NUMBERS: Final = 2**22
"""Blocks of one row are compared together if they have at most this many values. At least two rows
are compared."""
_MAX_KEPT_ELEMENTS: Final = 2**22
"""Largest number of values per input that are kept to find rows that agree."""
_MAX_COMPARED_COLUMNS: Final = 64
"""Largest number of columns in which rows are compared. More columns could only reduce the
p-value."""

_COMPARED_AT_ONCE: Final = 2**12
"""Number of columns that are compared at once. The comparison ends if no further column can change
the result."""

Draw = Callable[[int, int], npt.NDArray[Any]]
"""Function `(index of a block, number of rows) -> outputs of the block`."""


@dataclass(frozen=True)
class TimedDraws(CallableDraws):
    """Object that draws outputs of a mechanism in test calls, and records the time of each call.

    Args:
        course: record of the audit. The number of calls and their times are added to this record.
    """

    course: TimeLog = field(default_factory=TimeLog, compare=False)

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """Draw outputs of the mechanism on one input by one call, and record the time of the call.

        Args:
            purpose: number that identifies the stage of the audit. It selects the random numbers.
            side: 0 for x, or 1 for x'.
            place: the block of trials, and the range of outputs of this block that are drawn.
        """
        begun = self.course.clock()
        outputs = super().draw(purpose, side, place)
        self.course.record_call_duration(place.size, self.course.clock() - begun)
        return outputs


def classify_repeatability(draws: CallableDraws, trials: int) -> str:
    """Test whether a mechanism repeats its outputs if it gets a generator with the same seed.

    Args:
        draws: object that draws outputs of the mechanism.
        trials: number of trials of the audit. With few trials, the test draws fewer outputs.

    Returns:
        One of these texts, for `Audit.randomness`:

        - "seed": the repeated outputs are the same bit for bit;
        - "rounding": the repeated outputs differ, but not by more than rounding;
        - "own": the repeated outputs differ by more than rounding, so the mechanism uses other
          randomness than the given generator;
        - "not known": the repeated outputs are equal, but possibly by chance. For example, all
          outputs of the mechanism are equal.

    Example:
        >>> from dpcore import Pair
        >>> def noisy(x, size, rng):
        ...     return x + rng.laplace(size=(size, 1))
        >>> def global_one(x, size, rng):
        ...     return x + np.random.laplace(size=(size, 1))
        >>> pair = Pair([0.0], [1.0])
        >>> for fn in (noisy, global_one):
        ...     classify_repeatability(CallableDraws(fn, pair, 1, 100, (1,)), 1000)
        'seed'
        'own'
    """
    sides = [_RepeatedSide(draw, draw) for draw in _draw_function_per_input(draws)]
    _draw_twice(sides, draws, trials, until_own=True)
    return _combined_verdict_word(sides)


Shared = tuple[str, Any]
"""Name and value of the audit argument that causes several processes to draw. The name is
"executor" or "checkpoint"."""


def has_global_noise_or_raises(draws: CallableDraws, trials: int, shared: Shared) -> bool:
    """Check that several processes would not draw the same outputs of a mechanism.

    The check is for mechanisms that use other randomness than the given generator. If several
    processes draw outputs, each process has a copy of the mechanism and of its random generators.
    All copies of a generator give the same numbers, so the outputs would repeat. Random numbers
    from the operating system, however, differ between processes.

    Args:
        draws: object that draws outputs of the mechanism.
        trials: number of trials of the audit. With few trials, the check draws fewer outputs.
        shared: name and value of the audit argument that causes several processes to draw. The
            error message shows both.

    Returns:
        True if the randomness comes from the global generators of Python, numpy or torch. dpcore
        can set the seeds of these generators for each block of trials. False if the randomness does
        not come from generators in this process.

    Raises:
        ValueError: if the randomness comes from another generator in this process. The error is
            also raised if too few outputs differ from each other to exclude such a generator.
    """
    with Generators.collect_defaults() as generators:
        of_globals = _repeat_draws_and_classify(generators, draws, draws, trials)
    if "own" not in of_globals and of_globals != {"not known"}:
        return True
    with Generators.collect_from_memory() as every:
        # These copies are like those in two processes. Objects shared with the original are
        # restored.
        twins = [replace(draws, mechanism=twin) for twin in _copy_twice(draws.mechanism)]
        verdicts = _repeat_draws_and_classify(every, twins[0], twins[1], trials)
    if verdicts & {"seed", "rounding"}:
        _refuse_own_generator(draws, shared, "draws")
    if "own" not in verdicts and not has_global_generator_use_or_raises(draws, shared):
        # All rows were repeated, and a copied generator may be the reason.
        _refuse_own_generator(draws, shared, "may draw")
    return "own" not in verdicts


def has_global_generator_use_or_raises(draws: CallableDraws, shared: Shared) -> bool:
    """Check which random generators of this process a mechanism uses when it is called.

    The mechanism is called once on x and once on x'. A generator is used if its state changes. The
    check is for mechanisms whose outputs are nearly all equal.

    Args:
        draws: object that draws outputs of the mechanism.
        shared: name and value of the audit argument that causes several processes to draw. The
            error message shows both.

    Returns:
        True if the calls use a global generator of Python, numpy or torch. False if the calls use
        no generator in this process.

    Raises:
        ValueError: if a call uses another generator in this process.
    """
    with Generators.collect_from_memory() as every:
        rows = 1 if is_unbatched(draws.mechanism) else min(draws.block, _FIRST_REPEATED_ROWS)
        for draw in _draw_function_per_input(draws):
            draw(0, rows)
        of_globals, of_others = every.global_and_other_changed()
    if of_others:
        _refuse_own_generator(draws, shared, "draws")
    return of_globals


def _refuse_own_generator(draws: CallableDraws, shared: Shared, verb: str) -> NoReturn:
    requirement = (
        f"None for {name_of(draws.mechanism)}, which {verb} from a generator of its own that every "
        "process would copy and repeat (draw from the rng that it is called with)"
    )
    raise invalid(shared[0], requirement, shared[1])


def _repeat_draws_and_classify(
    generators: Generators, first: CallableDraws, second: CallableDraws, trials: int
) -> set[str]:
    """Draw rows twice on x and on x', with the same states of generators, and compare them.

    Args:
        generators: the generators whose states are reset before the second draw.
        first: the mechanism's draws.
        second: draws of the same mechanism or of a copy, for the second draw.
        trials: largest trial number of the audit, which limits the rows.

    Returns:
        The results for x and x', as in `classify_repeatability`.
    """
    both = zip(_draw_function_per_input(first), _draw_function_per_input(second), strict=True)
    sides = [
        _RepeatedSide(generators.save_before_draw(a), generators.restore_before(b)) for a, b in both
    ]
    _draw_twice(sides, first, trials, until_own=False)
    equal = [side for side in sides if side.found != "own"]
    verdicts = {"own"} if len(equal) < len(sides) else set()
    return verdicts | ({_combined_verdict_word(equal)} if equal else set())


def _copy_twice(mechanism: Any) -> tuple[Any, Any]:
    """Return two copies of a mechanism, as in two processes.

    If the mechanism cannot be copied, it is returned twice.
    """
    for duplicate in (_pickle_copy, copy.deepcopy):
        try:
            return duplicate(mechanism), duplicate(mechanism)
        except Exception:
            # Executors with their own picklers can pickle more objects than pickle.
            continue
    return mechanism, mechanism


def _pickle_copy(mechanism: Any) -> Any:
    return pickle.loads(pickle.dumps(mechanism))


def _draw_function_per_input(draws: CallableDraws) -> tuple[Draw, Draw]:
    """Return the functions that draw a block on x and on x'."""

    def drawn(side: int) -> Draw:
        # Block 0 was used to find the shape of outputs.
        return lambda number, rows: draws.draw(PROBE, side, Place(number + 1, rows, 0, rows))

    return drawn(0), drawn(1)


@dataclass
class _RepeatedSide:
    """Rows that were drawn twice on one input, and the result of their comparison.

    Args:
        first: function that draws a block.
        again: function that draws the block again.
        rows: number of rows drawn so far, without repetitions.
        blocks: number of blocks drawn so far.
        found: result for all rows so far: "seed" (equal), "rounding" (equal up to rounding) or
            "own" (different).
        alike: number of rows that agree with the first row.
        others: the first row, and rows that do not agree with the first row.
        recent: blocks and their repetitions that are not compared yet.
    """

    first: Draw
    again: Draw
    rows: int = 0
    blocks: int = 0
    found: str = "seed"
    alike: int = 0
    others: list[npt.NDArray[Any]] = field(default_factory=list)
    recent: list[tuple[npt.NDArray[Any], npt.NDArray[Any]]] = field(default_factory=list)

    def draw_rows_twice(self, rows: int, block: int) -> None:
        """Draw `rows` more rows twice, in blocks. Stop if a block differs from its repetition."""
        while rows > 0 and self.found != "own":
            some = min(rows, block)
            outputs = self.first(self.blocks, some)
            again = self.again(self.blocks, some)
            rows, self.rows, self.blocks = rows - some, self.rows + some, self.blocks + 1
            self.recent.append((outputs, again))
            most = min(_FIRST_REPEATED_ROWS, max(2, _MAX_RECENT_NUMBERS // max(1, outputs.size)))
            if some > 1 or rows == 0 or len(self.recent) >= most:
                # Several rows are needed to find the format of the numbers, and so their rounding.
                self._update_verdict()

    def draw_row_twice(self) -> None:
        """Draw one row twice, and set `found` to "own" if the two rows clearly differ."""
        outputs, again = self.first(self.blocks, 1), self.again(self.blocks, 1)
        self.rows, self.blocks = self.rows + 1, self.blocks + 1
        self.recent.append((outputs, again))
        if _plainly_differ(outputs, again):
            self.found = "own"

    def _update_verdict(self) -> None:
        parts = zip(*self.recent, strict=True)
        outputs, again = (part[0] if len(part) == 1 else join_outputs(part) for part in parts)
        self.recent = []
        # The parts are not needed any more.
        del parts
        alike = classify_difference(outputs, again)
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
        """Logarithm of the p-value that all rows agree with their repetitions by chance."""
        if not self.others:
            return 0.0
        numbers = _group_number_per_row(join_outputs(self.others))
        sizes = np.bincount(numbers)
        # The first row is among the others, and was also counted as equal to itself.
        sizes[numbers[0]] += self.alike - 1
        return log_chance_pairs_equal(sizes)


def log_chance_pairs_equal(group_sizes: npt.NDArray[np.intp]) -> float:
    """Compute the log probability that random pairs of outputs all consist of equal outputs.

    Suppose that r outputs are drawn twice, and that equal outputs form groups. The 2r outputs are
    divided into r pairs at random. The number of such divisions is (2r - 1)!!. If a group has m
    outputs and their m repetitions, there are (2m - 1)!! ways to divide the group into pairs. All
    pairs consist of equal outputs if each pair lies within a group. The probability of this case is
    the product of the numbers (2m - 1)!! over all groups, divided by (2r - 1)!!.

    Args:
        group_sizes: number m of outputs in each group. Repetitions do not count.

    Returns:
        The natural logarithm of the probability.

    Example:
        >>> round(float(np.exp(log_chance_pairs_equal(np.array([1, 1])))), 4)
        0.3333
    """
    return float(_log_ways_to_pair(group_sizes).sum() - _log_ways_to_pair(group_sizes.sum()))


def _log_ways_to_pair(pairs: Any) -> Any:
    """Return the logarithm of (2m - 1)!!, the number of ways to divide 2m objects into m pairs."""
    from scipy.special import gammaln

    return gammaln(2.0 * pairs + 1.0) - gammaln(pairs + 1.0) - pairs * math.log(2.0)


def _combined_verdict_word(sides: list[_RepeatedSide]) -> str:
    verdicts = {side.found for side in sides}
    if "own" in verdicts:
        return "own"
    if sum(side.log_chance for side in sides) > _MAX_LOG_P_VALUE:
        return "not known"
    return "rounding" if "rounding" in verdicts else "seed"


def _draw_twice(
    sides: list[_RepeatedSide], draws: CallableDraws, trials: int, until_own: bool
) -> None:
    """Draw rows twice on x and on x', until equality by chance is excluded, or a limit is reached.

    Args:
        sides: the rows on x and on x' so far. The function adds the new rows to them.
        draws: the mechanism's draws.
        trials: largest trial number of the audit, which limits the rows.
        until_own: True to stop as soon as rows on one input differ from their repetitions.
    """
    answers = is_unbatched(draws.mechanism)
    limits = (_ANSWER_LIMIT,) if answers else _ROW_LIMITS
    goal = _FIRST_REPEATED_ROWS
    if answers:
        goal = min(goal, max(_MIN_REPEATED_ANSWERS, trials // _ANSWER_LIMIT[1]))
    most = max(goal, *(min(rows, trials // share) for rows, share in limits))
    if answers:
        for side in sides:
            side.draw_row_twice()
            if until_own and side.found == "own":
                return
    while True:
        for side in sides:
            side.draw_rows_twice(goal // 2 - side.rows, draws.block)
            if until_own and side.found == "own":
                return
        left = [side for side in sides if side.found != "own"]
        if not left or goal >= most or sum(s.log_chance for s in left) <= _MAX_LOG_P_VALUE:
            return
        goal = min(most, 2 * goal)


def _plainly_differ(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> bool:
    """Return True if two blocks differ by more than rounding, in any float format."""
    numbers, others = _as_columns_if_floats(outputs), _as_columns_if_floats(again)
    if numbers is None or others is None or numbers.shape != others.shape:
        return classify_difference(outputs, again) == "own"
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(numbers), np.abs(others))
        return bool((np.abs(numbers - others) > _PLAIN_DIFFERENCE * size).any())


def _agree_with_row(outputs: npt.NDArray[Any], row: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows in `outputs` that agree with `row` up to rounding."""
    if row.dtype == outputs.dtype and row.shape[1:] == outputs.shape[1:] and row.dtype != object:
        return _rows_agree(outputs, np.broadcast_to(row, outputs.shape))
    both = join_outputs([row, outputs])
    return _rows_agree(both[1:], both[np.zeros(len(outputs), np.intp)])


def _group_number_per_row(outputs: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Divide rows into groups so that rows that agree up to rounding are in one group.

    A group may also contain rows that do not agree. The result has the number of the group of each
    row, shape `(size,)`.
    """
    numbers = _as_columns_if_floats(outputs)
    if numbers is None:
        rows = encode_rows(outputs)
        if rows is None or not rows.shape[1]:
            return np.zeros(len(outputs), np.intp)
        return np.asarray(np.unique(rows, axis=0, return_inverse=True)[1].ravel(), np.intp)
    groups = np.zeros(len(outputs), np.intp)
    with np.errstate(all="ignore"):
        differs = (numbers != numbers[:1]).any(axis=0)
        numbers = numbers[:, np.flatnonzero(differs)[:_MAX_COMPARED_COLUMNS]]
        for grain, column in zip(column_tolerances(numbers, numbers), numbers.T, strict=True):
            values = column.astype(np.float64)
            order = np.argsort(values)
            gaps = np.diff(values[order]) > 2.0 * grain.tolerances(values[order][1:])
            clusters = np.empty(len(values), np.intp)
            clusters[order] = np.concatenate([[0], np.cumsum(gaps)])
            distinct, groups = np.unique(groups * len(values) + clusters, return_inverse=True)
            if len(distinct) == len(values):
                # Further columns cannot divide groups of one row.
                break
    return groups


def classify_difference(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> str:
    """Compare outputs of a mechanism with outputs that were drawn again with the same seed.

    Args:
        outputs: outputs of shape `(size, ...)`.
        again: the outputs that were drawn again, of the same shape.

    Returns:
        One of these texts:

        - "seed": the two arrays are equal bit for bit;
        - "rounding": the arrays differ, but each number differs by at most 8 units in the last
          place. This unit is computed for the number itself or for the median absolute value of its
          column, whichever is larger;
        - "own": the arrays differ by more.
    """
    rows, other = encode_rows(outputs), encode_rows(again)
    same = rows is not None and other is not None and np.array_equal(rows, other)
    if same and outputs.dtype == again.dtype:
        return "seed"
    return "rounding" if bool(_rows_agree(outputs, again).all()) else "own"


def _rows_agree(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return a mask of the rows that agree with their repetitions up to rounding.

    Rows without floats must be equal.
    """
    numbers, others = _as_columns_if_floats(outputs), _as_columns_if_floats(again)
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
    """Return a mask of the numbers that differ from their repetitions by rounding at most."""
    grains = column_tolerances(numbers, others)
    with np.errstate(all="ignore"):
        numbers, others = numbers.astype(np.float64), others.astype(np.float64)
        size = np.maximum(np.abs(numbers), np.abs(others))
        return np.asarray(np.abs(numbers - others) <= tolerances_at(grains, size.T).T)


def _as_columns_if_floats(outputs: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Return outputs as a table of floats, shape `(size, columns)`, or None for other outputs."""
    kind = outputs.dtype.kind
    if kind == "O" and all(isinstance(entry, float) for entry in outputs.ravel().tolist()):
        outputs, kind = outputs.astype(np.float64), "f"
    if kind == "c":
        outputs, kind = np.stack([outputs.real, outputs.imag], axis=-1), "f"
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:]))) if kind == "f" else None


def refuse_multithreaded_calls(threads: int | None, executor: Executor | None, reason: str) -> None:
    """Raise a ValueError if several threads would call a mechanism that does not allow threads.

    Args:
        threads: the argument `threads` of the audit.
        executor: the argument `executor` of the audit.
        reason: text for the error message that names the reason, such as "that is not thread-safe".
    """
    workers = threads_of(threads, default=1)
    if executor is None and workers > 1:
        raise invalid("threads", f"1 for a mechanism {reason}", workers)
    if executor is None or getattr(executor, "_max_workers", 2) == 1:
        return
    if find_where_tasks_run(executor) == "threads":
        raise invalid("executor", f"None or one of processes for a mechanism {reason}", executor)
