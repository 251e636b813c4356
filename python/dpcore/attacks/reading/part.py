"""One part of an output, and what a report calls it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...errors import choice
from ...records import Record
from .objects import WORD

STEPS: Final = ("entry", "field", "place", "key")
MEASURES: Final = (
    "kind", "value", "real", "imaginary", "word", "length", "letter", "count", "number", "holds",
    "which",
)  # fmt: skip
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
            looked for, or the table of outcomes.

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
        return self.measure in ("kind", "holds")

    def __str__(self) -> str:
        """What a report calls it, such as "length of field 'name'"."""
        where = [_step_name(*step) for step in reversed(self.steps)]
        if self.is_flag:
            kind = self.measure == "kind"
            said = f"is {_NAMED[self.argument]}" if kind else f"holds {self.argument!r}"
            return f"{' of '.join(where) or 'the output'} {said}"
        own = self._measured()
        return " of ".join([own, *where] if own else where) or "value"

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
        if self.measure == "word":
            return f"bits {WORD * one} to {WORD * one + WORD - 1}"
        return named[self.measure]


def _step_name(kind: str, which: Any) -> str:
    if kind == "place":
        return f"place {which}" if which >= 0 else f"place {-which} from the end"
    return f"{kind} {which}" if kind == "entry" else f"{kind} {which!r}"
