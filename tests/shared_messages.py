"""Tables of wrong calls: each names an argument, and a word of the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterable

WrongCall = tuple[Callable[[], object], str, str]
"""A call, the argument that its error names (empty for none), words of the remedy."""


def check_messages(kind: type[Exception], wrong_calls: Iterable[WrongCall]) -> None:
    """Check that every call raises an error of this kind that names its argument and remedy."""
    failures = []
    for place, (call, argument, remedy) in enumerate(wrong_calls):
        try:
            found: object = call()
        except kind as error:
            found, text = error, str(error)
            named = getattr(error, "argument", text.partition(" must ")[0])
            if argument in ("", named) and remedy in text:
                continue
        except Exception as error:
            found = error
        failures.append((place, argument, remedy, found))
    assert not failures, failures


def find_missing(text: str, *words: str) -> list[str]:
    """The words that a text does not say."""
    return [word for word in words if word not in text]
