"""What is told of a field of a result where it is declared: how it is read and how it is merged.

A field without a word told is read as it stands, may be lacking in a file if it has a default, and
must be equal in audits that are added: forgetting a rule refuses, it never loses anything.
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
    """What needs no check: no figure rests on it."""
    return value


def require_equal(early: Any, late: Any) -> Any:
    """What both audits have in common; `merge` refuses others."""
    return early


def merge_together(early: Any, late: Any) -> Any:
    """What follows from several fields of both audits: `merge` works it out."""
    raise NotImplementedError


total: Final[Merging] = operator.add
larger: Final[Merging] = max
either: Final[Merging] = operator.or_


def either_one(early: Any, late: Any) -> Any:
    """What one of the two has, the earlier if both have."""
    return late if early is None else early


def make_field_metadata(
    read: Reading = as_it_stands,
    merge: Merging = require_equal,
    *,
    always: bool = False,
    objects: bool = False,
) -> dict[str, Any]:
    """The metadata of a field.

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
    """The value of a field from what a file holds, `decode` making its objects."""
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
    """Whether a file without the field is read: its default stands then."""
    optional = field.default is not MISSING or field.default_factory is not MISSING
    return optional and not field.metadata.get("always", False)


def merging_of(field: Field[Any]) -> Merging:
    """How two values of a field become one."""
    found: Merging = field.metadata.get("merge", require_equal)
    return found


def lists_to_tuples(value: Any) -> Any:
    """Lists as tuples, inside too: a record holds no list."""
    return tuple(lists_to_tuples(item) for item in value) if isinstance(value, list) else value


def read_checked(check: Callable[[Any], Any]) -> Reading:
    """A value that stands once `check` has seen it."""

    def read(name: str, value: Any) -> Any:
        check(value)
        return value

    return read


def read_instance(kind: type) -> Reading:
    """An object of a class."""
    return lambda name, value: instance(name, value, kind)


def read_optional(read: Reading) -> Reading:
    """None, or what `read` takes."""
    return lambda name, value: None if value is None else read(name, value)


def one_of(*options: str) -> Reading:
    """One of these words."""
    return lambda name, value: choice(name, value, options)


def read_several(kind: type) -> Reading:
    """A tuple of objects of a class."""

    def read(name: str, value: Any) -> Any:
        for item in instance(name, lists_to_tuples(value), tuple):
            instance(name, item, kind)
        return lists_to_tuples(value)

    return read


def lists_of(kind: type, many: int | None = None) -> Reading:
    """A tuple of so many objects of a class, which a file holds as a list."""

    def read(name: str, value: Any) -> Any:
        for item in instance(name, value, list):
            instance(name, item, kind)
        if many is not None and len(value) != many:
            raise invalid(name, "two values", tuple(value))
        return tuple(value)

    return read


def read_whole_number(low: int) -> Reading:
    """An integer from `low` on."""
    return lambda name, value: integer(name, value, low)


def read_epsilon(name: str, value: Any) -> Any:
    """An epsilon: a finite number, at least 0."""
    real(name, value, low=0.0)
    return value


def read_claim(name: str, value: Any) -> Any:
    """An epsilon, or a claim that is a curve."""
    return value if isinstance(value, Claim) else read_epsilon(name, value)


def read_float(name: str, value: Any) -> float:
    """A float."""
    return float(value)


def read_seed(name: str, value: Any) -> int:
    """A seed, which files hold as a string: not every reader of JSON knows such integers."""
    return integer(name, int(value), 0, 2**63 - 1)


def read_shape(name: str, value: Any) -> tuple[int, ...]:
    """Lengths of an array's axes."""
    return tuple(integer(name, length, 0) for length in value)


def read_ranges(name: str, value: Any) -> tuple[tuple[int, int], ...]:
    """Ranges of trials, in order and disjoint, as they are when they are written."""
    reach = 0
    for start, stop in value:
        integer("stop", stop, integer("start", start, reach) + 1)
        reach = stop
    return tuple((start, stop) for start, stop in value)
