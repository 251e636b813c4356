"""Metadata of result fields: how each is read and merged.

A field without metadata is read without a check. Files may omit it if it has a default. It must be
equal in audits that are added: a field without a rule raises an error, and no value is lost.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import MISSING, Field
from typing import Any, Final

from ..claims.claim import Claim
from ..errors import choice, instance, integer, invalid, real

Reading = Callable[[str, Any], Any]
"""From the name of a field and what a file holds to its value; raises where that is wrong."""

Merging = Callable[[Any, Any], Any]
"""From the values of the earlier and the later trials to that of both."""


def as_it_stands(name: str, value: Any) -> Any:
    """Accept any value; no figure depends on it."""
    return value


def require_equal(early: Any, late: Any) -> Any:
    """Return the value that both audits have in common; `merge` refuses other audits."""
    return early


def merge_together(early: Any, late: Any) -> Any:
    """Mark a field that follows from several fields of both audits; `merge` computes it."""
    raise NotImplementedError


total: Final[Merging] = operator.add
larger: Final[Merging] = max
either: Final[Merging] = operator.or_


def either_one(early: Any, late: Any) -> Any:
    """Return the value that is not None, the earlier one if both have a value."""
    return late if early is None else early


def make_field_metadata(
    read: Reading = as_it_stands,
    merge: Merging = require_equal,
    *,
    always: bool = False,
    objects: bool = False,
) -> dict[str, Any]:
    """Make the metadata of a field.

    Args:
        read: checks what a file holds and returns the field's value.
        merge: the value for the trials of two audits: `require_equal`, `total`, `larger`, `either`,
            `merge_together`, or a function of the earlier and the later one.
        always: True if every file of this format holds the field, so that one without is refused.
        objects: True if it may hold more than numbers, words and lists of them: what a file holds
            of objects is then made objects before it is read.

    Returns:
        What `dataclasses.field` takes as `metadata`.
    """
    return {"read": read, "merge": merge, "always": always, "objects": objects}


def read_field(field: Field[Any], held: Any, decode: Callable[[Any], Any]) -> Any:
    """Read the value of a field from the value in a file; `decode` makes its objects."""
    read: Reading = field.metadata.get("read", as_it_stands)
    value = decode(held) if field.metadata.get("objects", True) else held
    try:
        return read(field.name, value)
    except ValueError as error:
        if hasattr(error, "argument"):
            raise
        # Python's own complaint, which names no field.
        raise invalid(field.name, "what a result holds there", value) from None


def may_lack(field: Field[Any]) -> bool:
    """Return True if files may omit the field; its default is used."""
    optional = field.default is not MISSING or field.default_factory is not MISSING
    return optional and not field.metadata.get("always", False)


def merging_of(field: Field[Any]) -> Merging:
    """Return the function that merges two values of a field."""
    found: Merging = field.metadata.get("merge", require_equal)
    return found


def lists_to_tuples(value: Any) -> Any:
    """Convert lists to tuples, nested ones too: a record holds no list."""
    return tuple(lists_to_tuples(item) for item in value) if isinstance(value, list) else value


def read_checked(check: Callable[[Any], Any]) -> Reading:
    """Return a reader that accepts the values that `check` accepts."""

    def read(name: str, value: Any) -> Any:
        check(value)
        return value

    return read


def read_instance(kind: type) -> Reading:
    """Return a reader that accepts objects of one class."""
    return lambda name, value: instance(name, value, kind)


def read_optional(read: Reading) -> Reading:
    """Return a reader that accepts None or any value that `read` accepts."""
    return lambda name, value: None if value is None else read(name, value)


def one_of(*options: str) -> Reading:
    """Return a reader that accepts one of these words."""
    return lambda name, value: choice(name, value, options)


def read_several(kind: type) -> Reading:
    """Return a reader that accepts a tuple of objects of one class."""

    def read(name: str, value: Any) -> Any:
        for item in instance(name, lists_to_tuples(value), tuple):
            instance(name, item, kind)
        return lists_to_tuples(value)

    return read


def lists_of(kind: type, many: int | None = None) -> Reading:
    """Return a reader that makes a tuple of a list of objects of one class.

    `many` is the required length; None allows any.
    """

    def read(name: str, value: Any) -> Any:
        for item in instance(name, value, list):
            instance(name, item, kind)
        if many is not None and len(value) != many:
            raise invalid(name, "two values", tuple(value))
        return tuple(value)

    return read


def read_whole_number(low: int) -> Reading:
    """Return a reader that accepts integers from `low` on."""
    return lambda name, value: integer(name, value, low)


def read_epsilon(name: str, value: Any) -> Any:
    """Read an epsilon: a finite number, at least 0."""
    real(name, value, low=0.0)
    return value


def read_claim(name: str, value: Any) -> Any:
    """Read an epsilon, or a claim that is a curve."""
    return value if isinstance(value, Claim) else read_epsilon(name, value)


def read_float(name: str, value: Any) -> float:
    """Read a float."""
    return float(value)


def read_seed(name: str, value: Any) -> int:
    """Read a seed; files hold it as a string because some JSON readers lack such integers."""
    return integer(name, int(value), 0, 2**63 - 1)


def read_shape(name: str, value: Any) -> tuple[int, ...]:
    """Read the lengths of an array's axes."""
    return tuple(integer(name, length, 0) for length in value)


def read_ranges(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Read ranges of trials, which must be in order and disjoint, as they are written."""
    reach = 0
    for start, stop in value:
        integer("stop", stop, integer("start", start, reach) + 1)
        reach = stop
    return tuple((start, stop) for start, stop in value)
