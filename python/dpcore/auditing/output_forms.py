"""Form of the outputs of a mechanism: shape, fields, names of columns, and type.

A fact that a call states once for all its rows, such as the names of columns, must not depend on
the input. A type that depends on the input causes a note.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..errors import about, show
from ..mechanisms import answers
from ..mechanisms.callables import (
    call_mechanism,
    explain_failures,
    make_generator,
    makes_tensors,
    one_by_one,
)
from ..records import Array, Pair
from ..report.shown import name_of
from ..sampling.driver import Source
from ..sampling.sources import Course, Place
from ..streams import PROBE

_PROBE_ROWS: Final = 2
_PROBE_ROWS_OF_LISTS: Final = 64
"""Outputs in a call that shows their shape; more for lists, because their lengths may differ."""
_TRIALS_PER_PROBE_CALL: Final = 64
"""Trials per call and side for a function of one output, which may be slow. If two lengths do not
show in these calls, outputs become objects later."""

_MAX_FACT_CALLS: Final = 20
"""Short calls per side that must repeat the facts of the first calls before these are ascribed to
the input. If a fact is random, all calls repeat it in at most one audit of 2^40."""

_MAX_FACT_CHARACTERS: Final = 80
"""Number of characters of a fact that a message shows."""

_NUMBER_KINDS = "biufc"
"""Kinds of numbers; each kind can hold the kinds before it."""
_TIMES: Final = (np.datetime64, np.timedelta64)
TYPE_CHECK_CALLS: Final = 20
"""Short calls per side that must show the types that the pilot showed. If a type is random, all
calls show it in at most one audit of 2^40."""


def form_of(
    mechanism: Any, pair: Pair, seed: int, course: Course, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    """Determine the shape of one output, the names of its fields, and the names of its columns.

    The shape is () for Python objects, such as lists of varying length.

    Args:
        mechanism: the mechanism.
        pair: the two inputs.
        seed: seed of all generators.
        course: record of every call.
        trials: number of trials of the audit; it limits the calls of a function of one output.

    Raises:
        ValueError: if a fact that is stated once per call distinguishes the two inputs, see
            `call_facts`; if outputs contain themselves.
    """

    def make_rng(side: int, number: int) -> np.random.Generator:
        return make_generator(seed, PROBE, side, number)

    with explain_failures(mechanism, (pair.x, pair.x_prime), _PROBE_ROWS_OF_LISTS, make_rng):
        return _read_form(mechanism, pair, seed, course, trials)


def _read_form(
    mechanism: Any, pair: Pair, seed: int, course: Course, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...], tuple[str, ...]]:
    name = f"outputs of {name_of(mechanism)}"

    def ask(side: int, number: int = 0) -> Any:
        # These calls use separate streams and only show the form.
        begun = course.clock()
        x = pair.x_prime if side else pair.x
        answer = mechanism(x, _PROBE_ROWS, make_generator(seed, PROBE, side, number))
        course.called(_PROBE_ROWS, course.clock() - begun)
        return answer

    answer = ask(0)
    outputs = answers.outputs_of(name, answer, _PROBE_ROWS)
    shape, fields = outputs.shape[1:], outputs.dtype.names or ()
    if outputs.dtype == object:
        answers.refuse_nested(name, outputs.tolist())
    if not one_by_one(mechanism) and not makes_tensors(mechanism):
        _refuse_facts(name, answers.call_facts(answer), ask)
    of_rows = isinstance(answer, (list, tuple)) or outputs.dtype == object or one_by_one(mechanism)
    if answers.is_frame(answer) or (shape and of_rows and not makes_tensors(mechanism)):
        # Two lists may have equal lengths by chance.
        rows = _PROBE_ROWS_OF_LISTS
        if one_by_one(mechanism):
            rows = min(rows, max(_PROBE_ROWS, trials // _TRIALS_PER_PROBE_CALL))
        for side, x in enumerate((pair.x, pair.x_prime)):
            more = call_mechanism(mechanism, x, rows, make_generator(seed, PROBE, side, 1))
            course.drew(rows)
            shape = shape if more.shape[1:] == shape else ()
            fields = max(fields, more.dtype.names or (), key=len)
    return () if fields else shape, fields, () if fields else answers.column_names(answer)


def _refuse_facts(name: str, facts: dict[str, Any], ask: Callable[[int, int], Any]) -> None:
    """Raise an error if a fact that a call states once, for all its rows, shows the input."""
    both = facts, answers.call_facts(ask(1, 0))
    facts_prime = both[1]
    differing = [what for what in facts if what in facts_prime and facts[what] != facts_prime[what]]
    for number in range(_MAX_FACT_CALLS):
        if not differing:
            return
        # Each side is first in half of the calls, so that an alternating fact is not ascribed to x.
        order = (1, 0) if number % 2 else (0, 1)
        again = {side: answers.call_facts(ask(side, number + 2)) for side in order}
        differing = [w for w in differing if all(again[i].get(w) == both[i][w] for i in (0, 1))]
    for what in differing:
        own = _format_differences(facts[what], facts_prime[what])
        other = _format_differences(facts_prime[what], facts[what])
        tell = "tell" if what.startswith(("columns", "field names", "categories")) else "tells"
        error = ValueError(
            f"{name} must have the same {what} in every call, for the {what} {tell} the input: "
            f"{own} on x, {other} on x'; a call says it once, so no count of rows may use it (to "
            "have it counted, return one output a call and pass dpcore.repeat(function), or rows "
            "as lists)"
        )
        raise about(error, name)


def _format_differences(mine: Any, others: Any) -> str:
    """Format the part of one side's fact that is missing in the other's, shortened if long."""
    if not isinstance(mine, tuple):
        return str(mine)
    if all(isinstance(value, int) for value in mine):
        return show(mine)
    only = [value for value in mine if value not in others] or list(mine)
    text = ", ".join(f'"{value}"' if isinstance(value, str) else show(value) for value in only)
    return text if len(text) <= _MAX_FACT_CHARACTERS else text[: _MAX_FACT_CHARACTERS - 3] + "..."


def types_apart(outputs: Array, outputs_prime: Array) -> tuple[str, ...]:
    """Return a note if the outputs on x have another type than the outputs on x'.

    1 and 1.0 are equal, and an audit counts them as one value, but a reader can see the type. The
    note certifies no bound, because a call shows only one type, whatever its number of rows.

    There is no note if the values explain the types, because scores use the values. (Integers
    become floats together with a NaN or a half. The type of a list of strings is as wide as its
    longest string.)

    Args:
        outputs: outputs on `x`, shape `(size, ...)`.
        outputs_prime: outputs on `x_prime`, shape `(size', ...)`.

    Returns:
        One sentence, or an empty tuple.

    Example:
        >>> for note in types_apart(np.zeros(2), np.zeros(2, dtype=np.int64)):
        ...     print(note.split(":")[0])
        outputs on x are of type float64, those on x' of type int64
    """
    named: Any = _find_time_type(outputs), _find_time_type(outputs_prime)
    if None in named or named[0] == named[1]:
        named = outputs.dtype, outputs_prime.dtype
        if not _types_differ(outputs, outputs_prime):
            return ()
    return (
        f"outputs on x are of type {named[0]}, those on x' of type {named[1]}: equal values are "
        "counted as one, but whoever sees the type sees the input",
    )


def _find_time_type(rows: Array) -> Any:
    """Return the numpy time type of rows that are objects, if all have it; else None."""
    if rows.dtype != object or rows.ndim != 1:
        return None
    types = {row.dtype if isinstance(row, _TIMES) else None for row in rows}
    return types.pop() if len(types) == 1 else None


def _types_differ(outputs: Array, outputs_prime: Array) -> bool:
    """Return True if the types of two arrays differ for another reason than their values."""
    own, other = outputs.dtype, outputs_prime.dtype
    if own.kind not in _NUMBER_KINDS or other.kind not in _NUMBER_KINDS:
        return False
    if own.kind == other.kind:
        return own.itemsize != other.itemsize
    wide, kind = outputs, other.kind
    if _NUMBER_KINDS.index(own.kind) < _NUMBER_KINDS.index(kind):
        wide, kind = outputs_prime, own.kind
    return _fits_kind(wide, kind)


def _fits_kind(wide: Array, kind: str) -> bool:
    """Return True if all values fit a narrower kind and thus do not explain their type."""
    if wide.dtype.kind == "c":
        return bool((wide.imag == 0.0).all()) and (kind == "f" or _fits_kind(wide.real, kind))
    if kind == "b":
        return bool(((wide == 0) | (wide == 1)).all())
    if wide.dtype.kind == "u":
        return bool((wide <= np.uint64(np.iinfo(np.int64).max)).all())
    return bool((wide == np.rint(wide)).all() and (np.abs(wide) < 2.0**63).all())


def types_always_differ(source: Source, types: tuple[str, ...]) -> bool:
    """Return True if the two types differ in every call, so that the input explains the types.

    A type may also change from call to call.
    """
    rows = 1 if one_by_one(source.draws.mechanism) else 2
    for number in range(1, TYPE_CHECK_CALLS + 1):
        place = Place(number, rows, 0, rows)
        source.course.drew(2 * place.size)
        sides: dict[int, Any] = dict(source.draws.draw_both(PROBE, place))
        if types_apart(sides[0], sides[1]) != types:
            return False
    return True
