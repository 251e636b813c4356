"""One part of an output, and what a report calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...errors import choice
from ...records import Record
from .objects import WORD

STEPS: Final = ("entry", "field", "place", "key", "view")
MEASURES: Final = (
    "kind", "value", "real", "imaginary", "word", "length", "letter", "count", "number", "holds",
    "which", "there", "bit", "is", "times", "near", "modulo",
)  # fmt: skip
MODULI: Final = (1.0, 10.0, 60.0, 100.0, 1000.0, 3600.0, 86400.0, *(2.0**k for k in range(5, 21)))
"""Moduli of numbers and times that are tried where a column spreads far beyond them."""
_VIEWS: Final = {
    "json": "the JSON", "words": "the words", "numbers": "the numbers written", "keys": "the keys",
    "pairs": "the pairs",
}  # fmt: skip
_NAMED: Final = (
    "None", "a number", "a string", "a string of bytes", "a sequence", "a mapping", "a set",
    "another object",
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Part(Record, word="Part"):
    """One real number of an output; NaN where the output has no such part.

    Args:
        steps: how it is reached, pairs of one of `STEPS` and a number, a name or a key; places
            of a sequence count from its end where they are below 0.
        measure: one of `MEASURES`.
        argument: which kind (its number in `_objects`), which word of 32 bits, which place of a
            letter (from the end where it is below 0), which letter is counted, which member is
            looked for or counted, which bit, the value compared with, the interval of "near", the
            modulus, or the table of outcomes.

    Raises:
        TypeError: if `measure` is not a string.
        ValueError: if it or a step is none of those known.
    """

    steps: tuple[tuple[str, Any], ...]
    measure: str
    argument: Any = None

    def __post_init__(self) -> None:
        """Check the names."""
        choice("measure", self.measure, MEASURES)
        for kind, _ in self.steps:
            choice("step", kind, STEPS)

    @property
    def is_flag(self) -> bool:
        """True if it is 1 or 0 for what is so or not."""
        return self.measure in ("kind", "holds", "there", "bit", "is")

    def __str__(self) -> str:
        """What a report calls it, such as "length of field 'name'"."""
        where = [_step_name(*step) for step in reversed(self.steps)]
        if self.is_flag:
            return f"{' of '.join(where) or 'the output'} {self._flag()}"
        own = self._measured()
        return " of ".join([own, *where] if own else where) or "value"

    def _flag(self) -> str:
        one = self.argument
        if self.measure == "kind":
            return f"is {_NAMED[one]}"
        said = {"there": "is there", "bit": f"has bit {one} 1", "is": f"is {_quoted(one)}"}
        return said.get(self.measure, f"contains {_quoted(one)}")

    def _measured(self) -> str:
        one = self.argument
        if self.measure == "value":
            return ""
        if self.measure == "letter":
            end = f"letter {one + 1} from the start" if one >= 0 else f"letter {-one} from the end"
            return f"code of {end}"
        named = {
            "length": "length", "real": "real part", "imaginary": "imaginary part",
            "number": "number written", "which": "outcome",
        }  # fmt: skip
        if self.measure == "count":
            return f"number of {chr(one)!r}"
        if self.measure == "times":
            return f"number of {_quoted(one)}"
        if self.measure == "near":
            return f"number of members from {one[0]:.6g} to {one[1]:.6g}"
        if self.measure == "modulo":
            return f"remainder modulo {one:g}"
        if self.measure == "word":
            return f"bits {WORD * one} to {WORD * one + WORD - 1}"
        return named[self.measure]


def _quoted(value: Any) -> str:
    """Return a value as a report shows it, texts in double quotes."""
    text = f'"{value}"' if isinstance(value, str) and '"' not in value else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _step_name(kind: str, which: Any) -> str:
    if kind == "view":
        return _VIEWS.get(which, f"the fields between {which[-1]!r}")
    if kind == "place":
        return f"place {which}" if which >= 0 else f"place {-which} from the end"
    return f"{kind} {which}" if kind == "entry" else f"{kind} {which!r}"
