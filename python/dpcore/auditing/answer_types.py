"""Shapes of outputs, and differences in type of the two sides that values do not show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import about, show
from ..mechanisms.answers import call_facts, is_frame, outputs_of, refuse_nested
from ..mechanisms.callables import (
    call_mechanism,
    make_generator,
    makes_tensors,
    name_of,
    one_by_one,
)
from ..records import Pair
from ..sampling.course import Course
from ..streams import PROBE

_PROBE_ROWS: Final = 2
_PROBE_ROWS_OF_LISTS: Final = 64
"""Outputs of a call that tells their shape; of lists, whose lengths may differ, more."""
_TRIALS_PER_PROBE_CALL: Final = 64
"""Of a function of one answer, one call a side in so many trials at most: it may be slow, and where
two lengths do not show there, outputs become objects as soon as they do."""

Outputs = npt.NDArray[Any]

_MAX_FACT_CALLS: Final = 20
"""Short calls on each side that must say what the first ones said before it is called the input's:
where it is a matter of chance, all of them do in at most one audit of 2^40."""

_MAX_FACT_CHARACTERS: Final = 80
"""Characters of what a side says that a message shows."""

_NUMBER_KINDS = "biufc"
"""Kinds of numbers, each able to hold those before it."""


def form_of(
    mechanism: Any, pair: Pair, seed: int, course: Course, trials: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Determine the shape of one output and the names of its fields.

    The shape is () for Python objects, such as lists of changing length.

    Args:
        mechanism: what is called.
        pair: the two inputs.
        seed: of all generators.
        course: records every call.
        trials: of the audit; they limit the calls of a function of one answer.

    Raises:
        ValueError: if a fact stated once per call distinguishes the two inputs, see
            `call_facts`; if outputs hold themselves.
    """
    name = f"outputs of {name_of(mechanism)}"

    def ask(side: int, number: int = 0) -> Any:
        # Streams that nothing else uses: these calls only tell the form.
        begun = course.clock()
        x = pair.x_prime if side else pair.x
        answer = mechanism(x, _PROBE_ROWS, make_generator(seed, PROBE, side, number))
        course.called(_PROBE_ROWS, course.clock() - begun)
        return answer

    answer = ask(0)
    outputs = outputs_of(name, answer, _PROBE_ROWS)
    shape, fields = outputs.shape[1:], outputs.dtype.names or ()
    if outputs.dtype == object:
        refuse_nested(name, outputs.tolist())
    if not one_by_one(mechanism) and not makes_tensors(mechanism):
        _refuse_facts(name, call_facts(answer), ask)
    of_rows = isinstance(answer, (list, tuple)) or outputs.dtype == object or one_by_one(mechanism)
    if is_frame(answer) or (shape and of_rows and not makes_tensors(mechanism)):
        # Two lists may be equally long by chance.
        rows = _PROBE_ROWS_OF_LISTS
        if one_by_one(mechanism):
            rows = min(rows, max(_PROBE_ROWS, trials // _TRIALS_PER_PROBE_CALL))
        for side, x in enumerate((pair.x, pair.x_prime)):
            more = call_mechanism(mechanism, x, rows, make_generator(seed, PROBE, side, 1))
            course.drew(rows)
            shape = shape if more.shape[1:] == shape else ()
            fields = max(fields, more.dtype.names or (), key=len)
    return () if fields else shape, fields


def _refuse_facts(name: str, facts: dict[str, Any], ask: Callable[[int, int], Any]) -> None:
    """Refuse a mechanism if a fact stated once per call, for all its rows, shows the input."""
    facts_prime = call_facts(ask(1, 0))
    differing = [what for what in facts if what in facts_prime and facts[what] != facts_prime[what]]
    for number in range(_MAX_FACT_CALLS):
        if not differing:
            return
        # Each side is the first in half of the calls: what alternates is not the input's.
        order = (1, 0) if number % 2 else (0, 1)
        again = {side: call_facts(ask(side, number + 2)) for side in order}
        differing = [
            what
            for what in differing
            if again[0].get(what) == facts[what] and again[1].get(what) == facts_prime[what]
        ]
    for what in differing:
        one, other = (
            _format_differences(*pair) for pair in _list_both_orders(facts[what], facts_prime[what])
        )
        tell = "tell" if what.startswith(("columns", "field names", "categories")) else "tells"
        error = ValueError(
            f"{name} must have the same {what} in every call, for the {what} {tell} the input: "
            f"{one} on x, {other} on x'; a call says it once, so no count of rows may use it (to "
            "have it counted, return one output a call and pass dpcore.repeat(function), or rows "
            "as lists)"
        )
        raise about(error, name)


def _list_both_orders(first: Any, second: Any) -> tuple[tuple[Any, Any], tuple[Any, Any]]:
    return (first, second), (second, first)


def _format_differences(mine: Any, others: Any) -> str:
    """Format the part of one side that the other lacks, cut if it is long."""
    if not isinstance(mine, tuple):
        return str(mine)
    if all(isinstance(one, int) for one in mine):
        return show(mine)
    only = [one for one in mine if one not in others] or list(mine)
    text = ", ".join(f'"{one}"' if isinstance(one, str) else show(one) for one in only)
    return text if len(text) <= _MAX_FACT_CHARACTERS else text[: _MAX_FACT_CHARACTERS - 3] + "..."


def types_apart(outputs: Outputs, outputs_prime: Outputs) -> tuple[str, ...]:
    """Return a note if the outputs on x have another type than those on x'.

    1 and 1.0 are equal, and an audit counts them as one value; a reader of the type does not.
    Nothing is certified: a type is one observation for a call, of any number of rows.

    Nothing is said where the values themselves explain the types (whole numbers became floats
    with a NaN or a half, a list of strings is as wide as its longest), since scores see those.

    Args:
        outputs: outputs on `x`, shape `(size, ...)`.
        outputs_prime: outputs on `x_prime`, shape `(size', ...)`.

    Returns:
        One sentence, or none.

    Example:
        >>> for note in types_apart(np.zeros(2), np.zeros(2, dtype=np.int64)):
        ...     print(note.split(":")[0])
        outputs on x are of type float64, those on x' of type int64
    """
    if not _types_differ(outputs, outputs_prime):
        return ()
    named = outputs.dtype, outputs_prime.dtype
    return (
        f"outputs on x are of type {named[0]}, those on x' of type {named[1]}: equal values are "
        "counted as one, but whoever sees the type sees the input",
    )


def _types_differ(outputs: Outputs, outputs_prime: Outputs) -> bool:
    """Return True if two types differ for another reason than the values."""
    one, other = outputs.dtype, outputs_prime.dtype
    if one.kind not in _NUMBER_KINDS or other.kind not in _NUMBER_KINDS:
        return False
    if one.kind == other.kind:
        return one.itemsize != other.itemsize
    wide, kind = outputs, other.kind
    if _NUMBER_KINDS.index(one.kind) < _NUMBER_KINDS.index(kind):
        wide, kind = outputs_prime, one.kind
    return _fits_kind(wide, kind)


def _fits_kind(wide: Outputs, kind: str) -> bool:
    """Return True if all values fit a narrower kind, so that they do not explain their type."""
    if wide.dtype.kind == "c":
        return bool((wide.imag == 0.0).all()) and (kind == "f" or _fits_kind(wide.real, kind))
    if kind == "b":
        return bool(((wide == 0) | (wide == 1)).all())
    if wide.dtype.kind == "u":
        return bool((wide <= np.uint64(np.iinfo(np.int64).max)).all())
    return bool((wide == np.rint(wide)).all() and (np.abs(wide) < 2.0**63).all())
