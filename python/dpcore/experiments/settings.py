"""Settings of the experiments: fields of a `Config`, each with its value and its check."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import field, fields
from typing import Any, Final, get_args

from .. import errors
from ..bounds import BoundName
from ..records import Shown

SEED = 2022
"""The seed of the published files: the year of the paper."""


def check_list(name: str, values: Any, checked: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Check a list without repetition, entry by entry, and return it as a tuple."""
    if isinstance(values, str) or not isinstance(values, Sequence):
        raise errors.mistyped(name, "a list or tuple", values)
    found = tuple(map(checked, values))
    if not found or len(set(found)) < len(found):
        raise errors.invalid(name, "not empty and without repetition", values)
    return found


def _check_folder(name: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)):
        raise errors.mistyped(name, "a path of a folder or a file", value)
    return str(value)


def check_positive(name: str, value: Any) -> float:
    """Check a finite number above 0, such as an epsilon, and return it."""
    return errors.real(name, value, low=0.0, open_low=True)


def check_trials(name: str, value: Any, low: int) -> int:
    """Check a number of trials, or of what stands for them, that has a least value."""
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
    "bound": lambda name, value: errors.choice(name, value, get_args(BoundName)),
}
"""Checks of the fields that a `Config` has without `setting`."""


def setting(
    usual: Any,
    check: Callable[..., Any] | None = None,
    *values: Any,
    quick: Any = None,
    full: Any = None,
    listed: bool = False,
    ascending: bool = False,
    **options: Any,
) -> Any:
    """Declare a field of a `Config`: its value and its check.

    Args:
        usual: the value where nothing is given.
        check: called as `check(name, value, *values, **options)`, returns the value to keep; None
            for the check of the fields of this name.
        *values: further arguments of the check.
        quick: the value where nothing is given and `quick` is set.
        full: the value where nothing is given and `full` is set.
        listed: True for a list without repetition, of which each entry is checked.
        ascending: True for such a list that is sorted.
        **options: further keyword arguments of the check.

    Returns:
        A field of a dataclass. With `quick` or `full` its default is None.
    """

    def check_value(name: str, value: Any) -> Any:
        checked = check or _COMMON_CHECKS[name]
        if not (listed or ascending):
            return checked(name, value, *values, **options)
        found = check_list(name, value, lambda one: checked(name, one, *values, **options))
        return tuple(sorted(found)) if ascending else found

    by_size = {"quick": quick, "full": full, "usual": usual}
    default = usual if quick is None and full is None else None
    return field(default=default, metadata={"check": check_value, "by_size": by_size})


class Settings(Shown):
    """Base class of a `Config`: its fields are checked as `setting` or their name says."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Check the fields, and fill in the values of a quick, usual or full run."""
        sizes = [name for name in ("quick", "full") if getattr(self, name, False) is True]
        for one in fields(self):  # type: ignore[arg-type]
            value, by_size = getattr(self, one.name), one.metadata.get("by_size", {})
            if value is None and one.default is None:
                found = (by_size.get(size) for size in (*sizes, "usual"))
                value = next((known for known in found if known is not None), None)
            if value is not None or one.default is not None:
                check = one.metadata.get("check") or _COMMON_CHECKS[one.name]
                object.__setattr__(self, one.name, check(one.name, value))
