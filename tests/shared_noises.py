"""An instance of any native mechanism, made from its fields."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields
from typing import Any

REST = 1.0, 2.0, 0.5
"""Values of the numbers after the first, which is 1."""


def make_example(cls: type) -> Any:
    """Make an instance with defaults, and numbers that the class accepts for the rest."""
    names = [field.name for field in fields(cls) if field.type in ("float", float)]
    for number in REST:
        with suppress(ValueError):
            return cls(**dict.fromkeys(names, number) | dict.fromkeys(names[:1], 1.0))
    raise ValueError(f"fields of {cls.__name__} must accept one of {REST}")
