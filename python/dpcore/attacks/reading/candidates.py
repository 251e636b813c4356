"""Score attacks on outputs of any kind: on the outputs themselves, and on their parts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...errors import instance, mistyped
from ...events.above import Score, score_name, scores_of
from ...records import Pair, PartsRead, Record
from ..arrays import Array, Floats
from .exploring import derived_parts, first_rows, parts_of, rank_columns
from .parts import Parts, remember_parts

_NO_INPUTS: Final = Pair(None, None)
"""Inputs that an attack on parts is given: they are not numbers of the same kind as the parts."""
_MAX_FITTED_NUMBERS: Final = 2**23
"""Numbers a side of the parts that an attack is fitted on."""
_MAX_COMPARED_OBJECTS: Final = 2**18
"""Objects a side that are compared whole."""
_MAX_SINGLE_PARTS: Final = 2
"""Parts that an attack is also fitted on by themselves."""
_MAX_WHOLE_VALUES: Final = 8
"""Whole values that are tried beside their letters."""
_SHOWN_PARTS: Final = 3
"""Parts that a report names."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfParts(Record, word="OfParts"):
    """A score of what outputs are made of: ``score(parts(outputs))``.

    Args:
        parts: outputs -> columns of real numbers.
        score: parts -> one real number per output.

    Raises:
        TypeError: if `parts` is not a `Parts` or `score` not callable.

    Example:
        >>> from dpcore.attacks.reading.parts import Part
        >>> score = OfParts(Parts((Part((), "length"),)), lambda columns: columns[:, 0])
        >>> score(np.array(["a", "abc"])).tolist()
        [1.0, 3.0]
    """

    parts: Parts
    score: Any

    def __post_init__(self) -> None:
        """Check the fields."""
        instance("parts", self.parts, Parts)
        if not callable(self.score):
            raise mistyped("score", "a callable parts -> scores", self.score)

    @property
    def merged(self) -> bool:
        """True if the score has dealt with rounding itself."""
        return bool(getattr(self.score, "merged", False))

    @property
    def cost(self) -> int:
        """Nanoseconds per output on a usual machine, about."""
        return int(getattr(self.score, "cost", _DEFAULT_SCORE_COST)) + sum(
            part.cost for part in self.parts.parts
        )

    def __getattr__(self, name: str) -> Any:
        """Return the attribute of the inner score, or raise an AttributeError."""
        if name.startswith("_") or name in ("parts", "score"):
            raise AttributeError(name)
        return getattr(self.score, name)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs of any kind, shape `(size,)`."""
        return scores_of(self.score, self.parts(np.asarray(outputs)))

    def __str__(self) -> str:
        """Return one line for a report, which names the parts."""
        names, text = self.parts.names(), score_name(self.score)
        if text == "entry 0" and self.parts.parts[0].is_flag:
            return f"[{names[0]}][{self.parts.parts[0].say(False)}]"
        said = _ENTRY_PATTERN.sub(lambda found: _name_entries(found[1], names), text)
        if len(names) == 1:
            said = said.replace("the output's cell", f"the cell of {names[0]}")
            return said.replace("the output", names[0])
        if said != text:
            return said.replace(" entries", " parts")
        more = f" and {len(names) - _SHOWN_PARTS} more" if len(names) > _SHOWN_PARTS else ""
        listed = f"parts ({', '.join(names[:_SHOWN_PARTS])}{more})"
        said = text.replace("entries", listed, 1)
        return said if said != text else f"{text} of the {listed}"


_DEFAULT_SCORE_COST: Final = 20
_ENTRY_PATTERN: Final = re.compile(r"\bentr(?:y|ies) (\d+(?:(?:, \d+)* and \d+)?)\b")


def _name_entries(numbers: str, names: list[str]) -> str:
    """Return "3, 4 and 7" as the names of these parts."""
    return re.sub(r"\d+", lambda found: names[int(found[0])], numbers)


@remember_parts()
def read_candidates(
    attack: Any, outputs: Array, outputs_prime: Array, pair: Pair, name: str = "outputs"
) -> tuple[tuple[Score, ...], PartsRead | None]:
    """Return the scores that an attack makes of pilot outputs of any kind, and what was read.

    Args:
        attack: a score attack.
        outputs: pilot outputs on `x`, shape `(size, ...)`.
        outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
        pair: the pair they were drawn on.
        name: what complaints call the outputs.

    Returns:
        Its candidates for the outputs themselves and, where those are no real numbers, for their
        parts, none where the attack does not apply; and how much of the outputs was read, None of
        an attack without parts.

    Raises:
        TypeError: if the outputs hold objects that have no parts and do not repeat.
    """
    sides = np.asarray(outputs), np.asarray(outputs_prime)
    if not attack.parts or not all(side.size for side in sides):
        return tuple(attack.candidates(*sides, pair)), None
    regular = all(side.dtype.kind in "buif" for side in sides)
    if regular:
        width = sides[0][:1].size
        parts, read = derived_parts(*sides), PartsRead(width, width, min(map(len, sides)))
    else:
        parts, read = parts_of(*sides, name)
    found = attack.candidates(
        *[
            side if side.dtype.kind in "buifUSmM" else side[:_MAX_COMPARED_OBJECTS]
            for side in sides
        ],
        pair,
    )
    if not parts.parts:
        return tuple(found), read
    most = _MAX_COMPARED_OBJECTS if regular else max(1, _MAX_FITTED_NUMBERS // len(parts.parts))
    columns = parts(first_rows(sides[0], most)), parts(first_rows(sides[1], most))
    made = [_narrow_to_part(parts, one) for one in attack.candidates(*columns, _NO_INPUTS)]
    # A sum over many parts carries the noise of all, and one of them may say everything.
    for i in (
        rank_columns(*columns)[:_MAX_SINGLE_PARTS] if len(parts.parts) > 1 and not regular else ()
    ):
        single = columns[0][:, [i]], columns[1][:, [i]]
        alone = parts.only([i])
        made += [OfParts(alone, one) for one in attack.candidates(*single, _NO_INPUTS)]
    made += [] if regular else _score_whole_values(parts, made)
    # A user's own score is one of outputs, never of their parts.
    own = {id(one) for one in found}
    made = [one for one in made if id(one.score) not in own]
    return (*found, *dict.fromkeys(made)), read


def _score_whole_values(parts: Parts, made: list[OfParts]) -> list[OfParts]:
    """Return the scores of whole values at the places of which a score reads a letter or a length.

    They often say the same, and are what a reader understands.
    """
    single = [one for one in made if len(one.parts.parts) == 1 and hasattr(one.score, "alone")]
    steps = {one.parts.parts[0].steps for one in single}
    flags = [part for part in parts.parts if part.is_flag and part.steps in steps]
    return [OfParts(Parts((part,)), single[0].score) for part in flags[:_MAX_WHOLE_VALUES]]


def _narrow_to_part(parts: Parts, score: Score) -> OfParts:
    """Return the score of parts; if it reads only one of them, the score of that part."""
    alone = getattr(score, "alone", None)
    if alone is None:
        return OfParts(parts, score)
    entry, inner = alone()
    return OfParts(parts.only([entry]), inner)


__all__ = ["OfParts", "read_candidates"]
