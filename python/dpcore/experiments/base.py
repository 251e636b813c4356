"""Helpers of all experiments: checked options, aligned tables, and conversion to JSON values."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from operator import attrgetter
from typing import Any, Final

from .. import errors
from ..bounds import BOUNDS
from ..report.plain import encode_value
from ..report.rows import align_rows
from ..report.shown import Shown

SEED = 2022
"""Default seed of the experiments. The result files published with dpcore use this seed."""


def check_list(name: str, values: Any, checked: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check a list and each of its entries, and return the checked entries as a tuple.

    The list must not be empty, and no two entries may be equal.
    """
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise errors.mistyped(name, "a list or tuple", values)
    entries = tuple(map(checked, values))
    if not entries or len(set(entries)) < len(entries):
        raise errors.invalid(name, "not empty and without repetition", values)
    return entries


def _check_path(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise errors.mistyped(name, "a path of a folder or a file", value)
    return str(value)


def check_positive(name: str, value: Any) -> float:
    """Check that a value is a finite number above 0, and return the number as a float."""
    return errors.real(name, value, low=0.0, open_low=True)


def check_trials(name: str, value: Any, low: int) -> int:
    """Convert a whole number of at least `low`, such as 1000 or 1e3, to an int."""
    return errors.integer(name, errors.count(name, value), low)


_COMMON_CHECKS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "trials": errors.count,
    "seed": lambda name, value: errors.integer(name, value, 0, 2**63 - 1),
    "seeds": lambda name, value: errors.integer(name, value, 1),
    "data": _check_path,
    "full": errors.flag,
    "quick": errors.flag,
    "device": lambda name, value: errors.instance(name, value, str),
    "confidence": lambda name, value: errors.confidence_level(value, name),
    "bound": lambda name, value: errors.choice(name, value, tuple(BOUNDS)),
    **dict.fromkeys(("epsilon", "epsilons", "claims"), check_positive),
}
"""Default checks of the fields of a `Config`, by the name of the field."""


def setting(
    usual: Any, check: Callable[..., Any] | None = None, *values: Any, quick: Any = None,
    full: Any = None, ascending: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Return a dataclass field of an options class, with a default value and a check of the value.

    Args:
        usual: default value. If the default is a tuple, the value must be a list without repeated
            entries, and `check` checks each entry.
        check: function that checks a value. It is called as
            `check(name, value, *values, **options)`, and returns the checked value. By default, the
            name of the field determines the check (such as "epsilon": a number above 0).
        *values: further positional arguments of `check`.
        quick: default value if the field `quick` of the same object is True.
        full: default value if the field `full` of the same object is True.
        ascending: True to sort the entries of a list in ascending order.
        **options: further keyword arguments of `check`.

    Returns:
        A dataclass field. If `quick` or `full` is given, the default of the field is None. The base
        class `Settings` then replaces None by `quick`, `full` or `usual`.
    """

    def check_value(name: str, value: Any) -> Any:
        checked = check or _COMMON_CHECKS[name]
        if not isinstance(usual, tuple):
            return checked(name, value, *values, **options)
        entries = check_list(name, value, lambda entry: checked(name, entry, *values, **options))
        return tuple(sorted(entries)) if ascending else entries

    by_size = {"quick": quick, "full": full, "usual": usual}
    default = usual if quick is None and full is None else None
    return field(default=default, metadata={"check": check_value, "by_size": by_size})


class Settings(Shown):
    """Base class for the options of an experiment. The class checks the value of every field.

    The function `setting` declares a field with a check. For a field declared without `setting`,
    the name of the field determines the check.
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        """Replace None by the default for a quick, a usual or a full run, and check every field."""
        sizes = [name for name in ("quick", "full") if getattr(self, name, False) is True]
        for setting in fields(self):  # type: ignore[arg-type]
            value, by_size = getattr(self, setting.name), setting.metadata.get("by_size", {})
            if value is None and setting.default is None:
                defaults = (by_size.get(size) for size in (*sizes, "usual"))
                value = next((default for default in defaults if default is not None), None)
            if value is not None or setting.default is not None:
                check = setting.metadata.get("check") or _COMMON_CHECKS[setting.name]
                object.__setattr__(self, setting.name, check(setting.name, value))


@dataclass(frozen=True, slots=True, repr=False)
class SeededSettings(Settings):
    """Base class for the options of an experiment. The first fields are `trials` and `seed`."""

    trials: int = 10**6
    seed: int = SEED


def encode_entries(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Return a dict with all values converted to JSON values, also in nested dicts and lists.

    Example:
        >>> encode_entries({"rows": 3, "cells": [{"ends": (0.5, float("inf"))}]})
        {'rows': 3, 'cells': [{'ends': [0.5, 'inf']}]}
    """
    return {key: _encode_entry(value) for key, value in entries.items()}


def _encode_entry(value: Any) -> Any:
    if isinstance(value, dict):
        return encode_entries(value)
    return list(map(_encode_entry, value)) if isinstance(value, list) else encode_value(value)


def encode_fields(cell: Any) -> dict[str, Any]:
    """Return a dataclass instance (and nested instances) as a dict of JSON values."""
    return encode_entries(asdict(cell))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a text table. Each row of the table shows one object.

    Args:
        head: heading of the column.
        value: name of the attribute of the object that the column shows, such as "audit.seed", or a
            function that maps the object to the shown value.
        text: function that formats the value as text, or a format specification such as ".3f".
        left: True to align the column to the left instead of the right.
        missing: text that is shown if the value is None.
    """

    head: str
    value: str | Callable[[Any], Any]
    text: Callable[[Any], str] | str = str
    left: bool = False
    missing: str = "-"

    def format_value(self, row: Any) -> str:
        """Return the text that this column of a table shows for one object."""
        value = attrgetter(self.value)(row) if isinstance(self.value, str) else self.value(row)
        if value is None:
            return self.missing
        return format(value, self.text) if isinstance(self.text, str) else self.text(value)


def align_columns(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Return a table as text: a line with the heading of each column, and one line for each row."""
    lines = [[column.format_value(row) for column in columns] for row in rows]
    left = [place for place, column in enumerate(columns) if column.left]
    return align_rows([[column.head for column in columns], *lines], left)
