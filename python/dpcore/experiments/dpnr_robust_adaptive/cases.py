"""The lines of the experiment: how each trains, and at which epsilon it is tested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from ...text import schedules
from .published import ADAPTIVE, PLAIN, ROBUST

__all__ = ["CONSTANT", "DATA", "LINES", "MASKS", "MU_EPSILON", "NAMES", "SOUND_AT", "Line"]

DATA: Final = {"ag_news": "AG news", "yelp": "Yelp"}
"""The corpora, and their titles."""

MADE: Final[dict[str, Literal["topics", "intents"]]] = {"ag_news": "topics", "yelp": "intents"}
"""Made-up corpora in their place: the kinds of `dpcore.text.generated`."""

MU_EPSILON: Final = 4.0
"""The claimed epsilon at which words are masked, the study's."""

CONSTANT: Final = 5.0
"""The epsilon of the model that is used at every test noise."""

SOUND_AT: Final = (1.0, 4.0, 5.0)
"""Epsilons at which the sound scale is tried: each takes a model, and all end at chance."""

MASKS: Final[dict[Literal["leave_out", "zero_id"], str]] = {
    "leave_out": "left out",
    "zero_id": "id 0, as the study's code",
}


@dataclass(frozen=True, slots=True)
class Line:
    """One way of training.

    Args:
        name: of the line.
        schedule: from an epsilon to the training schedule; None for no noise.
        each: True for a model for each epsilon, tested at it alone.
        scale: of the noise, "published" or "sound".
        unknown: what becomes of unknown words and pairs, in training and test.
        study: the column of the study's tables to compare with.
        shared: the line whose models it uses, with the epsilon that they were trained with.
        drawn: True if it is in the picture.
    """

    name: str
    schedule: Callable[[float], Any] | None = None
    each: bool = False
    scale: Literal["published", "sound"] = "published"
    unknown: Literal["drop", "token"] = "drop"
    study: str = ""
    shared: tuple[str, float] | None = None
    drawn: bool = True


def _constant_schedule(schedule: Any) -> Callable[[float], Any]:
    return lambda epsilon: schedule


LINES: Final = {
    line.name: line
    for line in (
        Line("not robust", study=PLAIN),
        Line("robust", schedules.Constant, each=True, study=ROBUST),
        Line(
            "stretched 10 to 2", _constant_schedule(schedules.Stretched(10.0, 2.0)), study=ADAPTIVE
        ),
        Line("constant 5", schedules.Constant, shared=("robust", CONSTANT)),
        Line("uniform 2 to 10", _constant_schedule(schedules.Uniform(2.0, 10.0))),
        Line("log-uniform .5 to 10", _constant_schedule(schedules.LogUniform(0.5, 10.0))),
        Line("10/n as printed", _constant_schedule(schedules.OverEpochs(10.0))),
        Line("1/n as printed", _constant_schedule(schedules.OverEpochs(1.0))),
        Line("robust, b = d/epsilon", schedules.Constant, each=True, scale="sound"),
        Line("not robust, <unk>", unknown="token", drawn=False),
    )
}
"""By name. The study's 10/n runs for five epochs, from 10 to 2: our stretched line."""

NAMES: Final = tuple(LINES)
