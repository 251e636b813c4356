"""The record of an inference: the attacker that was chosen, and what he infers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auditing.recorded.run import OutputsAudit
from ...records import Record
from .groups import Group
from .judging import Measured

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Floor", "Inference", "OfAttribute"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Floor(Record):
    """What is inferred without any encoding; learnt on train, evaluated on test.

    Attributes:
        name: "majority", or "majority given the main label".
        accuracy: of the most frequent values.
        f1: of the answers that make the best F1 on train.
        gain: the attacker's measure less the floor's, on the same texts.
    """

    name: str
    accuracy: float
    f1: float
    gain: Measured

    @property
    def beaten(self) -> bool:
        """True where the interval of `gain` lies above 0."""
        return self.gain.low > 0.0


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OfAttribute(Record):
    """One attribute of several.

    Attributes:
        name: of the attribute.
        positive: the value that F1 is about.
        accuracy: of the attacker, with exact limits.
        f1: of the attacker.
        majority: accuracy of the majority.
    """

    name: str
    positive: Any
    accuracy: Measured
    f1: Measured
    majority: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inference(Record):
    """What one attacker, chosen on validation, infers from encoded test texts.

    An interval holds at `confidence` by itself, for this attacker and such texts. None of the
    figures bounds what another attacker infers.

    Attributes:
        attributes: names of what is inferred.
        values: those that each of them takes; of two the second is the positive one.
        attacker: name of the classifier.
        transform: what it does to the rows first.
        threshold: of its score, chosen on validation; None for more values than two.
        measure: by which it was chosen: "accuracy" or "f1".
        accuracy: share of right answers; the mean over several attributes.
        f1: of the positive value; micro over several attributes, macro over more values than two.
        floors: what is inferred without any encoding.
        each: the attributes one by one where there are several.
        groups: test texts by the value of the attribute.
        certified: the audit whose `epsilon_lower` is certified, or why there is none.
        sizes: texts of train, valid and test that were used.
        left_out: how many texts were not used, by the reason.
        tried: all attackers with their measure on validation, which says nothing about test.
        confidence: of each interval by itself.
        seed: repeats the training, the bootstrap and, where it is `seeded`, the encoder's noise.
        seeded: True if the encoder has an argument `rng` and was given generators of this seed.
        seconds: time taken; not compared.
    """

    attributes: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]
    attacker: str
    transform: str
    threshold: float | None
    measure: str
    accuracy: Measured
    f1: Measured
    floors: tuple[Floor, ...]
    each: tuple[OfAttribute, ...]
    groups: tuple[Group, ...]
    certified: OutputsAudit | str
    sizes: tuple[int, int, int]
    left_out: dict[str, int]
    tried: tuple[tuple[str, float], ...]
    confidence: float
    seed: int
    seeded: bool
    seconds: float = field(compare=False, default=0.0)

    @property
    def above_floor(self) -> bool:
        """True where the attacker beats every floor, each on the same texts.

        Not the same as an interval above a floor's figure, which is a figure of these texts, too:
        of two independent coins the one would seem better in 8 % of cases at 95 %.
        """
        return all(floor.beaten for floor in self.floors)

    @property
    def empirical_privacy(self) -> float:
        """1 - X, with X the accuracy: what is reported in the literature; no guarantee."""
        return 1.0 - self.accuracy.value

    @property
    def empirical_privacy_f1(self) -> float:
        """1 - F, with F the F1; no guarantee."""
        return 1.0 - self.f1.value

    def __repr__(self) -> str:
        """One line: what was inferred, and how well."""
        found = f"accuracy {self.accuracy}, F1 {self.f1}"
        return f"<Inference of {', '.join(self.attributes)}: {found}, seed={self.seed}>"

    def __str__(self) -> str:
        """The report."""
        from .showing import text

        return text(self)

    def lines(self) -> list[tuple[str, str]]:
        """The report as (label, text) rows."""
        from .showing import rows

        return rows(self)

    def _repr_html_(self) -> str:
        from .showing import html

        return html(self)

    def plot(self, ax: Any = None) -> Figure:
        """Accuracy and F1 with their intervals against the floors, in the style in force.

        Args:
            ax: matplotlib axes to draw on; None makes a figure of pyplot, for `plt.show()`.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is no axes.
        """
        from .showing import figure

        return figure(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data: the seed as a string, non-finite numbers as words."""
        from .showing import plain

        return plain(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Strict JSON of `to_dict`."""
        from .showing import json_text

        return json_text(self, indent)
