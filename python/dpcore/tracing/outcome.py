"""The result of a trace: the loss of each line of code for one pair, with its views."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..attacks import Threshold
from ..errors import choice, invalid
from ..records import Record, Result
from ..report import figures
from ..report.rows import Row
from ..report.shown import one_line
from .combinations import OutputCombination

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OUTCOMES: Final = (
    "above the claim on this pair",
    "within the claim on this pair",
    "no claim given",
    "a finding",
    "no loss",
    "a step may be hidden",
    "not traceable",
)
"""The outcomes; the last three have a reason."""

_ASSUMPTIONS: Final = (
    "independent draws of the named laws, real arithmetic, no output but the returned value"
)
_MAX_LINES: Final = 12
"""Largest number of lines of code that the report lists; the losses of the others are summed."""

_FAILED: Final = "above the claim on this pair", "a finding"
_UNDECIDED: Final = "no loss", "a step may be hidden", "not traceable"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraceStep(Record, word="TraceStep"):
    """Loss of one line of code.

    Attributes:
        place: file, line and function.
        law: law of the noise, or the name of a primitive.
        loss: pure loss in nats.
        mu: mu of Gaussian noise.
        draws: number of values that the line drew.
        meets: the two values to which the noise is added, on x and on x', and their place in the
            code.
    """

    place: str
    law: str
    loss: float
    mu: float = 0.0
    draws: int = 1
    meets: str = ""

    def __str__(self) -> str:
        """Return the line of a report."""
        size = f"mu {self.mu:.6g}" if self.mu else f"{self.loss:.6g}"
        count = f", {self.draws:,} draws" if self.draws > 1 else ""
        return f"{size} at {self.place}: {self.law}{count}{f', {self.meets}' if self.meets else ''}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraceFinding(Record, word="TraceFinding"):
    """A fault that `dpcore.trace` found, although it computed no loss for it.

    Attributes:
        kind: "data in a noisy value", "data in a law", "control flow", "no noise",
            "shared noise", "value" or "primitive".
        text: place of the fault, and the difference between x and x'.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        """Return the line of a report."""
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace(Result, word="dpcore.trace/1"):
    """Record of the loss of a function on one pair, line by line; created by `dpcore.trace`.

    The loss is computed for this pair under the printed assumptions. It is not certified, and it is
    an upper bound only if `covers` begins with "every noise".

    Attributes:
        name: name of the function in reports.
        outcome: one of the outcomes of a trace, without its reason.
        reason: reason why there is no loss, or "".
        loss: loss in nats: the pure losses plus the epsilon of `mu` at `delta`. None if no loss
            could be computed.
        mu: mu of Gaussian noise, 0 without Gaussian noise.
        steps: lines with a loss, of the draw with the largest loss.
        findings: faults for which no loss was computed.
        checked: number of ordinary runs on x', with the moved noise, that gave the output of x.
        draws: number of draws of the noise.
        covers: description of the noise that the loss covers.
        claim: the epsilon with which the loss is compared, or None.
        delta: delta of the claim.
        seed: seed that repeats the trace.
        terms: combination of outputs in which the noise cancels, as path, entry and coefficient.
        runs: number of calls of the function (not compared).
    """

    name: str
    outcome: str
    reason: str
    loss: float | None
    mu: float
    steps: tuple[TraceStep, ...]
    findings: tuple[TraceFinding, ...]
    checked: int
    draws: int
    covers: str
    claim: float | None
    delta: float
    seed: int
    terms: tuple[tuple[str, int, float], ...] = ()
    runs: int = field(default=0, compare=False)

    _INSTEAD: ClassVar[str] = "outcome (a text)"

    @property
    def verdict(self) -> str:
        """The outcome with its reason."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome

    @property
    def attack(self) -> Threshold:
        """The attack on the combination of outputs in which the noise cancels, for `dpcore.audit`.

        Raises:
            AttributeError: if the trace found no such combination.
        """
        if not self.terms:
            raise AttributeError(
                "attack needs a finding of outputs without noise, this trace has none"
            )
        return Threshold(OutputCombination(self.terms))

    @property
    def exit_status(self) -> int:
        """The exit status: 0 within the claim, 1 above it or with a finding, 3 undecided."""
        return 1 if self.outcome in _FAILED else 3 if self.outcome in _UNDECIDED else 0

    def _require_consistency(self) -> None:
        choice("outcome", self.outcome, OUTCOMES)
        if bool(self.reason) != (self.outcome in _UNDECIDED):
            raise invalid("reason", "a text with the last three outcomes only", self.reason)
        if bool(self.findings) != (self.outcome == "a finding"):
            raise invalid("findings", "given with the outcome 'a finding' only", self.findings)
        is_compared = self.outcome in OUTCOMES[:2]
        if is_compared and (self.loss is None or self.claim is None):
            raise invalid("loss", "a number, and so the claim, with this outcome", self.loss)
        # Rounding in single precision may put a loss within the claim slightly above it.
        if self.outcome == OUTCOMES[0] and (self.loss or 0.0) <= (self.claim or 0.0):
            raise invalid("loss", "above the claim with this outcome", self.loss)

    def _lines(self) -> list[Row]:
        return list_trace_rows(self)

    def _to_figures(self) -> dict[str, Any]:
        return {"verdict": self.verdict}

    def _plot(self, ax: Any) -> Figure:
        return draw_steps(self, ax)


def format_loss(trace: Trace) -> str:
    """Format the loss and its mu."""
    if trace.loss is None:
        return "none"
    parts = f" (mu {trace.mu:.6g}, delta {trace.delta:g})" if trace.mu else ""
    size = "infinite" if math.isinf(trace.loss) else f"{trace.loss:.6g}"
    return f"{size}{parts}, computed for this pair, not certified"


def list_trace_rows(trace: Trace) -> list[Row]:
    """Return the report as (label, text) rows."""
    rows = [("outcome", trace.verdict)]
    rows += [("finding", str(finding)) for finding in trace.findings]
    if trace.loss is not None:
        rows.append(("loss", format_loss(trace)))
        rows += [("", str(step)) for step in trace.steps[:_MAX_LINES]]
        rest = trace.steps[_MAX_LINES:]
        if rest:
            total = sum(step.loss for step in rest)
            rows.append(("", f"{total:.6g} at {len(rest):,} more lines"))
        checked = f"{trace.checked:,} of {trace.draws:,} plain runs on x' with the noise so moved"
        rows.append(("checked", f"{checked} gave the output of x"))
        rows.append(("covers", trace.covers))
    return [*rows, ("assumes", _ASSUMPTIONS)]


def draw_steps(trace: Trace, ax: Any = None) -> Figure:
    """Draw the loss of each line, and the claim."""
    axes = figures.axes_of(ax, figures.relative_size(1.0, 0.7))
    steps = trace.steps[:_MAX_LINES][::-1]
    sizes = [step.mu or step.loss for step in steps]
    finite = [size for size in sizes if math.isfinite(size)]
    top = 1.2 * max([*finite, trace.claim or 0.0, 0.1])
    axes.barh(range(len(steps)), [min(size, top) for size in sizes], color=figures.cycle_colour(0))
    axes.set_yticks(range(len(steps)), [one_line(step.place, 40) for step in steps])
    if trace.claim is not None:
        axes.axvline(trace.claim, color=figures.text_colour(), linestyle="--")
    has_mu = any(step.mu for step in steps)
    axes.set(xlabel="loss (nats), or mu" if has_mu else "loss (nats)", xlim=(0.0, top))
    return figures.finish_axes(axes, figures.format_title(trace.name, trace.outcome))
