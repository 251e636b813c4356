"""The result of `dpcore.trace`: the privacy loss of each line of a function, for one pair."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ..attacks import Threshold
from ..errors import choice, invalid
from ..records import Record, Result
from ..report import figures
from ..report.rows import Row
from ..report.shown import on_one_line
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
    """Privacy loss of one line of code, for one pair of inputs x and x'.

    Attributes:
        place: file, line number and function name of the line.
        law: distribution and parameter of the noise that the line draws, as text. For a call of a
            function with the decorator `primitive`, the text is the name of this function.
        loss: privacy loss at delta 0, in nats. For Gaussian noise, this field is 0.
        mu: parameter mu of Gaussian differential privacy if the line draws Gaussian noise,
            otherwise 0.
        draws: number of random values that the line drew in one run.
        meets: text that shows the two values to which the noise is added, on x and on x', and the
            place of the addition in the code.
    """

    place: str
    law: str
    loss: float
    mu: float = 0.0
    draws: int = 1
    meets: str = ""

    def __str__(self) -> str:
        """Return the line that a report shows."""
        size = f"mu {self.mu:.6g}" if self.mu else f"{self.loss:.6g}"
        count = f", {self.draws:,} draws" if self.draws > 1 else ""
        return f"{size} at {self.place}: {self.law}{count}{f', {self.meets}' if self.meets else ''}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TraceFinding(Record, word="TraceFinding"):
    """A fault in a function, found by `dpcore.trace`, for which no privacy loss was computed.

    Attributes:
        kind: one of these:

            - "data in a noisy value": the data change the coefficient of the noise;
            - "data in a law": the data change a parameter of the noise, such as its scale;
            - "control flow": the data decide which noise is drawn, or whether an error is raised;
            - "no noise": an output contains no noise but differs between x and x';
            - "shared noise": the noise cancels in a combination of outputs;
            - "value": noise is added to a value that is finite on only one of x and x';
            - "primitive": the decorator `primitive` declares a largest distance for the inputs of a
              function, but the inputs on x and x' have a larger distance.
        text: place of the fault in the code, and what differs between x and x'.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        """Return the line that a report shows."""
        return f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Trace(Result, word="dpcore.trace/1"):
    """Result of `dpcore.trace`: the privacy loss of each line of a function on one pair x, x'.

    The loss is computed for this pair under the assumptions that the report prints. The loss is not
    certified. If the text `covers` does not begin with "every noise", the loss need not be an upper
    bound for this pair.

    Attributes:
        name: name of the function in reports.
        outcome: "above the claim on this pair", "within the claim on this pair", "no claim given",
            "a finding", "no loss", "a step may be hidden" or "not traceable".
        reason: reason for the outcome "no loss", "a step may be hidden" or "not traceable". Empty
            for every other outcome.
        loss: privacy loss in nats: the sum of the losses (at delta 0) of all lines without Gaussian
            noise, plus the epsilon at `delta` of all Gaussian noise together. None if no loss could
            be computed.
        mu: parameter mu of Gaussian differential privacy of all Gaussian noise together. 0 if there
            is no Gaussian noise.
        steps: the lines of code with a loss above 0, in the traced run with the largest loss.
        findings: faults for which no loss was computed.
        checked: number of traced runs whose loss was confirmed. To confirm a loss, dpcore runs the
            function on x' with the computed change of the noise. The output of this run must be the
            output on x.
        draws: number of traced runs on x, each with new noise.
        covers: text that describes the noise for which the loss holds.
        claim: claimed epsilon with which the loss is compared. None if no claim was given.
        delta: delta of the claim.
        seed: seed with which the trace can be repeated.
        terms: linear combination of outputs in which the noise cancels. Each term holds the name of
            an output, the index of an entry, and the coefficient of this entry. Empty if no such
            combination was found.
        runs: number of calls of the function. Ignored by `==`.
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
        """The outcome of this trace as text, followed by the reason (if any)."""
        return f"{self.outcome}: {self.reason}" if self.reason else self.outcome

    @property
    def attack(self) -> Threshold:
        """Attack for `dpcore.audit` that uses a combination of outputs in which the noise cancels.

        The trace found this combination (see `terms`). The audit can then certify the fault.

        Raises:
            AttributeError: if the trace found no such combination of outputs.
        """
        if not self.terms:
            raise AttributeError(
                "attack needs a finding of outputs without noise, this trace has none"
            )
        return Threshold(OutputCombination(self.terms))

    @property
    def exit_status(self) -> int:
        """Exit status of a command: 1 if the trace found a fault, 3 if undecided, otherwise 0.

        A loss above the claim also counts as a fault. The status is 3 if the outcome is "no loss",
        "a step may be hidden" or "not traceable".
        """
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

    def _derived_values(self) -> dict[str, Any]:
        return {"verdict": self.verdict}

    def _plot(self, ax: Any) -> Figure:
        return plot_losses_of_code_lines(self, ax)


def format_loss(trace: Trace) -> str:
    """Return the privacy loss of a trace as text for a report, with mu if the noise is Gaussian."""
    if trace.loss is None:
        return "none"
    parts = f" (mu {trace.mu:.6g}, delta {trace.delta:g})" if trace.mu else ""
    size = "infinite" if math.isinf(trace.loss) else f"{trace.loss:.6g}"
    return f"{size}{parts}, computed for this pair, not certified"


def list_trace_rows(trace: Trace) -> list[Row]:
    """Return the lines of the report on a trace as pairs (label, text)."""
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


def plot_losses_of_code_lines(trace: Trace, ax: Any = None) -> Figure:
    """Draw a bar chart of the privacy loss of each line of code, and the claimed epsilon."""
    axes = figures.axes_of(ax, figures.scale_figure_size(1.0, 0.7))
    steps = trace.steps[:_MAX_LINES][::-1]
    sizes = [step.mu or step.loss for step in steps]
    finite = [size for size in sizes if math.isfinite(size)]
    top = 1.2 * max([*finite, trace.claim or 0.0, 0.1])
    axes.barh(range(len(steps)), [min(size, top) for size in sizes], color=figures.cycle_colour(0))
    axes.set_yticks(range(len(steps)), [on_one_line(step.place, 40) for step in steps])
    if trace.claim is not None:
        axes.axvline(trace.claim, color=figures.text_colour(), linestyle="--")
    has_mu = any(step.mu for step in steps)
    axes.set(xlabel="loss (nats), or mu" if has_mu else "loss (nats)", xlim=(0.0, top))
    return figures.finish_axes(axes, figures.two_line_title(trace.name, trace.outcome))
