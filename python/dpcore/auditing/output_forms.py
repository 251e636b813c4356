"""Form of the outputs of a mechanism: their shape, field names, column names, and type.

The audit counts single outputs (rows of the result of a call). Some properties, such as the column
names of a data frame, belong to the result of a whole call and not to one row. If such a property
depends on the input, dpcore raises a ValueError. If the type of the outputs (such as float64)
depends on the input, the report has a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..errors import show, tag_error
from ..mechanisms import answers
from ..mechanisms.callables import (
    is_unbatched,
    make_generator,
    makes_tensors,
    note_failing_input,
    rows_of_one_call,
)
from ..records import Array, Pair
from ..report.shown import name_of
from ..sampling.driver import Source
from ..sampling.sources import Place, TimeLog
from ..streams import PROBE

_PROBE_ROWS: Final = 2
_PROBE_ROWS_OF_LISTS: Final = 64
"""Number of outputs in a call that shows their shape. For lists the number is larger, because the
lengths of lists may differ."""
_TRIALS_PER_PROBE_CALL: Final = 64
"""Number of trials of the audit for each call that shows the shape. It limits the calls of a
function that makes one output per call, which may be slow. If other lengths occur later, outputs
become objects."""

_MAX_FACT_CALLS: Final = 20
"""Number of short calls per input that must repeat the properties of the first calls. Only then is
the input regarded as the cause of the properties. If a property is random, all calls repeat it in
at most one of 2^40 audits."""

_MAX_FACT_CHARACTERS: Final = 80
"""Number of characters of a property that a message shows."""

_NUMBER_KINDS = "biufc"
"""Kinds of numbers in numpy. Each kind can represent the kinds to its left."""
_TIMES: Final = (np.datetime64, np.timedelta64)
TYPE_CHECK_CALLS: Final = 20
"""Number of short calls per input whose outputs must have the same types as the pilot outputs (the
first draws). If a type is random, all these calls have the same type as the pilot outputs in at
most one of 2^40 audits."""


def find_shape_fields_columns(
    mechanism: Any, pair: Pair, seed: int, course: TimeLog, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    """Find the shape of one mechanism output, the names of its fields, and its column names.

    The function calls the mechanism a few times.

    Args:
        mechanism: the mechanism.
        pair: the two inputs x and x'.
        seed: seed of the random generators for these calls.
        course: record of the audit. The number of outputs and the time of each call are added to
            this record.
        trials: number of trials of the audit. With few trials, a mechanism that makes one output
            per call is called fewer times.

    Returns:
        The shape, the field names of a structured numpy array, and the column names of a data
        frame. A tuple of names is empty if the outputs have no such names. The shape is () for
        outputs that are Python objects, such as lists of varying length.

    Raises:
        ValueError: for one of these reasons:

            - a property that all outputs of a call share, such as the column names of a data frame,
              differs between x and x';
            - an output is a list or other container that contains itself.
    """

    def make_rng(side: int, number: int) -> np.random.Generator:
        return make_generator(seed, PROBE, side, number)

    with note_failing_input(mechanism, (pair.x, pair.x_prime), _PROBE_ROWS_OF_LISTS, make_rng):
        return _read_shape_field_column_names(mechanism, pair, seed, course, trials)


def _read_shape_field_column_names(
    mechanism: Any, pair: Pair, seed: int, course: TimeLog, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    name = f"outputs of {name_of(mechanism)}"

    def ask(side: int, number: int = 0) -> Any:
        # These calls use separate streams and only show the form.
        begun = course.clock()
        x = pair.x_prime if side else pair.x
        answer = mechanism(x, _PROBE_ROWS, make_generator(seed, PROBE, side, number))
        course.record_call_duration(_PROBE_ROWS, course.clock() - begun)
        return answer

    answer = ask(0)
    outputs = answers.to_outputs(name, answer, _PROBE_ROWS)
    shape, fields = outputs.shape[1:], outputs.dtype.names or ()
    if outputs.dtype == object:
        answers.refuse_deep_nesting(name, outputs.tolist())
    if not is_unbatched(mechanism) and not makes_tensors(mechanism):
        _refuse_revealing_facts(name, answers.find_answer_facts(answer), ask)
    of_rows = (
        isinstance(answer, (list, tuple)) or outputs.dtype == object or is_unbatched(mechanism)
    )
    if answers.is_frame(answer) or (shape and of_rows and not makes_tensors(mechanism)):
        # Two lists may have equal lengths by chance.
        rows = _PROBE_ROWS_OF_LISTS
        if is_unbatched(mechanism):
            rows = min(rows, max(_PROBE_ROWS, trials // _TRIALS_PER_PROBE_CALL))
        for side, x in enumerate((pair.x, pair.x_prime)):
            more = rows_of_one_call(mechanism, x, rows, make_generator(seed, PROBE, side, 1))
            course.add_outputs(rows)
            shape = shape if more.shape[1:] == shape else ()
            fields = max(fields, more.dtype.names or (), key=len)
    return () if fields else shape, fields, () if fields else answers.column_names(answer)


def _refuse_revealing_facts(
    name: str, facts: dict[str, Any], ask: Callable[[int, int], Any]
) -> None:
    """Raise a ValueError if a property of whole calls depends on the input.

    Args:
        name: name of the outputs in the error message.
        facts: properties of a first call on x, such as the column names, by name.
        ask: function of two numbers. The first number is 0 for a call of the mechanism on x, and 1
            for x'. The second number selects the random stream.
    """
    both = facts, answers.find_answer_facts(ask(1, 0))
    facts_prime = both[1]
    differing = [what for what in facts if what in facts_prime and facts[what] != facts_prime[what]]
    for number in range(_MAX_FACT_CALLS):
        if not differing:
            return
        # Each side is first in half of the calls, so that an alternating fact is not ascribed to x.
        order = (1, 0) if number % 2 else (0, 1)
        again = {side: answers.find_answer_facts(ask(side, number + 2)) for side in order}
        differing = [w for w in differing if all(again[i].get(w) == both[i][w] for i in (0, 1))]
    for what in differing:
        own = _format_items_only_in_mine(facts[what], facts_prime[what])
        other = _format_items_only_in_mine(facts_prime[what], facts[what])
        tell = "tell" if what.startswith(("columns", "field names", "categories")) else "tells"
        error = ValueError(
            f"{name} must have the same {what} in every call, for the {what} {tell} the input: "
            f"{own} on x, {other} on x'; a call says it once, so no count of rows may use it (to "
            "have it counted, return one output a call and pass dpcore.repeat(function), or rows "
            "as lists)"
        )
        raise tag_error(error, name)


def _format_items_only_in_mine(mine: Any, others: Any) -> str:
    """Format the items of `mine` that are not in `others`. A long text is shortened."""
    if not isinstance(mine, tuple):
        return str(mine)
    if all(isinstance(value, int) for value in mine):
        return show(mine)
    only = [value for value in mine if value not in others] or list(mine)
    text = ", ".join(f'"{value}"' if isinstance(value, str) else show(value) for value in only)
    return text if len(text) <= _MAX_FACT_CHARACTERS else text[: _MAX_FACT_CHARACTERS - 3] + "..."


def note_type_difference(outputs: Array, outputs_prime: Array) -> tuple[str, ...]:
    """Return a note if the outputs on x and on x' have different types, such as int64 and float64.

    An audit counts equal numbers of different types, such as 1 and 1.0, as one value. A person who
    sees an output may also see its type. The audit cannot count how often a type occurs, because
    all outputs of one call have the same type. Therefore the note does not change the certified
    bound.

    The function returns no note if different values are the reason for the different types. For
    example, an array of integers becomes an array of floats if it also contains NaN or 0.5. The
    type of an array of strings depends on its longest string.

    Args:
        outputs: outputs on x, shape `(size, ...)`.
        outputs_prime: outputs on x', shape `(size', ...)`.

    Returns:
        A tuple of one sentence, or an empty tuple.

    Example:
        >>> for note in note_type_difference(np.zeros(2), np.zeros(2, dtype=np.int64)):
        ...     print(note.split(":")[0])
        outputs on x are of type float64, those on x' of type int64
    """
    named: Any = _common_time_dtype_or_none(outputs), _common_time_dtype_or_none(outputs_prime)
    if None in named or named[0] == named[1]:
        named = outputs.dtype, outputs_prime.dtype
        if not _has_unexplained_type_difference(outputs, outputs_prime):
            return ()
    return (
        f"outputs on x are of type {named[0]}, those on x' of type {named[1]}: equal values are "
        "counted as one, but whoever sees the type sees the input",
    )


def _common_time_dtype_or_none(rows: Array) -> Any:
    """Return the numpy time type (such as datetime64[s]) that all objects in an array have.

    Return None if the array does not contain objects, or if the objects have no common time type.
    """
    if rows.dtype != object or rows.ndim != 1:
        return None
    types = {row.dtype if isinstance(row, _TIMES) else None for row in rows}
    return types.pop() if len(types) == 1 else None


def _has_unexplained_type_difference(outputs: Array, outputs_prime: Array) -> bool:
    """Return True if the types of two arrays differ and their values do not explain this."""
    own, other = outputs.dtype, outputs_prime.dtype
    if own.kind not in _NUMBER_KINDS or other.kind not in _NUMBER_KINDS:
        return False
    if own.kind == other.kind:
        return own.itemsize != other.itemsize
    wide, kind = outputs, other.kind
    if _NUMBER_KINDS.index(own.kind) < _NUMBER_KINDS.index(kind):
        wide, kind = outputs_prime, own.kind
    return _fits_dtype_kind(wide, kind)


def _fits_dtype_kind(wide: Array, kind: str) -> bool:
    """Return True if all values can be represented in a narrower kind of numbers.

    Args:
        wide: the array.
        kind: the narrower kind, a numpy kind code such as "i".
    """
    if wide.dtype.kind == "c":
        return bool((wide.imag == 0.0).all()) and (kind == "f" or _fits_dtype_kind(wide.real, kind))
    if kind == "b":
        return bool(((wide == 0) | (wide == 1)).all())
    if wide.dtype.kind == "u":
        return bool((wide <= np.uint64(np.iinfo(np.int64).max)).all())
    return bool((wide == np.rint(wide)).all() and (np.abs(wide) < 2.0**63).all())


def types_always_differ(source: Source, types: tuple[str, ...]) -> bool:
    """Check in 20 further calls per input whether outputs always have the types that a note names.

    If the result is True, the type of an output depends on the input, and not on chance.

    Args:
        source: object that draws outputs of the mechanism.
        types: the note, which `note_type_difference` returned for earlier outputs. It names one
            type for outputs on x, and a different type for outputs on x'.
    """
    rows = 1 if is_unbatched(source.draws.mechanism) else 2
    for number in range(1, TYPE_CHECK_CALLS + 1):
        place = Place(number, rows, 0, rows)
        source.course.add_outputs(2 * place.size)
        sides: dict[int, Any] = dict(source.draws.draw_block_by_side(PROBE, place))
        if note_type_difference(sides[0], sides[1]) != types:
            return False
    return True
