"""Common parts of experiments: settings of a `Config`, columns of a table, and plain data."""

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
"""Seed of the published files, the year of the paper."""


def check_list(name: str, values: Any, checked: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check each entry of a list without repetitions, and return the list as a tuple."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise errors.mistyped(name, "a list or tuple", values)
    entries = tuple(map(checked, values))
    if not entries or len(set(entries)) < len(entries):
        raise errors.invalid(name, "not empty and without repetition", values)
    return entries


def _check_folder(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise errors.mistyped(name, "a path of a folder or a file", value)
    return str(value)


def check_positive(name: str, value: Any) -> float:
    """Check a finite number above 0, such as an epsilon, and return it."""
    return errors.real(name, value, low=0.0, open_low=True)


def check_trials(name: str, value: Any, low: int) -> int:
    """Check a number of trials, or of texts used as trials, against its minimum."""
    return errors.integer(name, errors.count(name, value), low)


_COMMON_CHECKS: Final[dict[str, Callable[[str, Any], Any]]] = {
    "trials": errors.count,
    "seed": lambda name, value: errors.integer(name, value, 0, 2**63 - 1),
    "seeds": lambda name, value: errors.integer(name, value, 1),
    "data": _check_folder,
    "full": errors.flag,
    "quick": errors.flag,
    "device": lambda name, value: errors.instance(name, value, str),
    "confidence": lambda name, value: errors.confidence_level(value, name),
    "bound": lambda name, value: errors.choice(name, value, tuple(BOUNDS)),
    **dict.fromkeys(("epsilon", "epsilons", "claims"), check_positive),
}
"""Checks of the fields of a `Config` that are not declared by `setting`."""


def setting(
    usual: Any, check: Callable[..., Any] | None = None, *values: Any, quick: Any = None,
    full: Any = None, ascending: bool = False, **options: Any,
) -> Any:  # fmt: skip
    """Declare a field of a `Config`, with its default and its check.

    Args:
        usual: default value. A tuple declares a list without repetitions, whose entries are checked
            one by one.
        check: function called as `check(name, value, *values, **options)` that returns the checked
            value. Defaults to the common check for fields of this name.
        *values: further arguments of the check.
        quick: default value if `quick` is set.
        full: default value if `full` is set.
        ascending: True to sort a list.
        **options: further keyword arguments of the check.

    Returns:
        A dataclass field. With `quick` or `full`, its default is None.
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
    """Base class of a `Config`, whose fields are checked as declared by `setting` or by name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the fields, and fill in the defaults of a quick, usual or full run."""
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
    """Base class of a `Config` whose first fields are the number of trials and the seed."""

    trials: int = 10**6
    seed: int = SEED


def encode_entries(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Convert entries to plain data, including entries of nested dicts and lists.

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
    """Convert the fields of a record to plain data, including nested records."""
    return encode_entries(asdict(cell))


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        head: heading of the column.
        value: name of the attribute that the column shows, with dots for nested attributes; or a
            function of the row.
        text: function that formats the value, or a format such as ".3f".
        left: True for left alignment.
        missing: text for the value None.
    """

    head: str
    value: str | Callable[[Any], Any]
    text: Callable[[Any], str] | str = str
    left: bool = False
    missing: str = "-"

    def format_value(self, row: Any) -> str:
        """Return the text for one row."""
        value = attrgetter(self.value)(row) if isinstance(self.value, str) else self.value(row)
        if value is None:
            return self.missing
        return format(value, self.text) if isinstance(self.text, str) else self.text(value)


def align_columns(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Return a table as text, with one line per row."""
    lines = [[column.format_value(row) for column in columns] for row in rows]
    left = [place for place, column in enumerate(columns) if column.left]
    return align_rows([[column.head for column in columns], *lines], left)
