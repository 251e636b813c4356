"""Texts as inputs: strings with more than white space in them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import invalid, mistyped

__all__ = ["text_of", "texts_of"]


def text_of(name: str, value: Any) -> str:
    """One text, checked.

    Args:
        name: what messages call it.
        value: the text.

    Raises:
        TypeError: if it is no string.
        ValueError: if it is empty, or all white space.
    """
    if not isinstance(value, str):
        raise mistyped(name, "a text (a string)", value)
    if not value.strip():
        raise invalid(name, "a text that is not empty", value)
    # A string of numpy is one of Python, too; kept as it is, it would show as another type.
    return str(value)


def texts_of(name: str, value: Any, *, fewest: int = 1) -> tuple[str, ...]:
    """Texts, checked.

    Args:
        name: what messages call them.
        value: strings: a list, a column of a table, a `text.Corpus`; not one string.
        fewest: how many there must be, 0 or 1.

    Returns:
        The texts, unchanged.

    Raises:
        TypeError: if the value is one string, or an entry is none.
        ValueError: if there are too few, or one is empty.

    Example:
        >>> texts_of("texts", ["one", "two"])
        ('one', 'two')
        >>> texts_of("texts", "he has the flu")
        Traceback (most recent call last):
        TypeError: texts must be a list of at least one text, not a single string, got 'he has the
        flu'
    """
    requirement = "a list of at least one text" if fewest else "a list of texts"
    if isinstance(value, (str, bytes)):
        raise mistyped(name, f"{requirement}, not a single string", value)
    if not isinstance(value, Iterable) or isinstance(value, Mapping):
        raise mistyped(name, requirement, value)
    texts = tuple(value)
    if len(texts) < fewest:
        raise invalid(name, requirement, value)
    return tuple(text_of(f"{name}[{row}]", text) for row, text in enumerate(texts))
