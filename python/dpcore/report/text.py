"""How an audit is shown: text, HTML and a picture."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..attacks.support import infinite
from ..bounds import BOUNDS, clopper_pearson
from ..bounds.declaration import declared
from ..records import Counts
from ..results.audits import Audit
from ..results.certificate import level
from ..results.recorded import OutputsAudit
from . import distances
from .next_step import next_step, size_for_a_tenth
from .short import card

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision.
INK, BLUE, GREEN, RED, GREY = "#222222", "#0072B2", "#009E73", "#D55E00", "#6A6A6A"


def epsilon(value: float | None) -> str:
    """An epsilon in a report: four decimals, or the word infinite."""
    if value is None:
        return "none"
    return f"{value:.4f}" if math.isfinite(value) else "infinite"


def rows(audit: Audit) -> list[tuple[str, str]]:
    """The report as (label, text) rows, without time and speed."""
    unit = "" if audit.pair.distance == 1.0 or audit.delta else " per unit of distance"
    bound = f"epsilon >= {epsilon(audit.epsilon_lower)}{unit} ({how(audit)})"
    if audit.checks:
        bound = NOTHING
    table = [
        ("verdict", audit.verdict),
        ("claim", _claim(audit)),
        ("certified", bound),
        ("estimate", f"{epsilon(audit.epsilon_hat)} (empirical loss, certifies nothing)"),
    ]
    if audit.exact is not None:
        table.append(("closed form", f"{epsilon(audit.exact)} (the loss this attack can see)"))
    elif not isinstance(audit.mechanism, str):
        reason = infinite(audit.mechanism, audit.pair)
        if reason is not None:
            table.append(("closed form", f"infinite loss: {reason}"))
    if audit.declared_loss is not None:
        table.append(("exact loss", _declared(audit)))
    table += [
        ("witness", f"{audit.event}, {_side(audit.direction)} in the numerator"),
        ("counts", counted(audit.counts)),
        *_pooled(audit),
        ("pair", f"x = {_short(audit.pair.x)}, x' = {_short(audit.pair.x_prime)}"),
        *distances.rows(audit),
    ]
    if audit.nan or audit.nan_prime:
        table.append(("NaN entries", f"{audit.nan:,} on x, {audit.nan_prime:,} on x'"))
    if audit.floating_point is not None and not audit.checks:
        table.append(("rounding", _floats(audit)))
    table.append(("seed", _seed(audit)))
    if audit.runs_on:
        table.append(("device", audit.runs_on))
    needed = next_step(audit)
    if needed:
        table.append(("needed", needed))
    planned = size_for_a_tenth(audit)
    if planned:
        table.append(("plan", planned))
    notes = (explanation(audit), by_itself(audit), audit.power, *audit.notes, *audit.checks)
    return [*table, *(("note", note) for note in notes if note)]


def _declared(audit: Audit) -> str:
    """The loss of the pair under the noise that the mechanism declares."""
    at = f" at delta {audit.delta:g}" if audit.delta else ""
    loss = epsilon(audit.declared_loss)
    return f"{loss}{at} for this pair (computed from the declared noise, not certified)"


def by_itself(audit: Audit) -> str:
    """That the bound and the floating-point finding do not hold jointly, where there are two."""
    if audit.floating_point is None or audit.floats or audit.checks:
        return ""
    certainty = f"{100 * audit.confidence:g} %"
    return f"the rows certified and rounding hold at {certainty} each by itself, not both at once"


NOTHING = "nothing: no bound holds, for the rows are not independent draws"
"""What an audit certifies that a check of its rows made invalid."""

REPEATED = {
    "seed": "",
    "rounding": "the seed repeats the outputs up to rounding, not bit for bit",
    "own": "the mechanism draws its own randomness, which no seed repeats",
    "not known": "whether the seed repeats the outputs is not known",
}
"""What the seed repeats of a callable's draws, by `Audit.randomness`."""


def how(audit: Audit) -> str:
    """Confidence, bound and stopping rule in a few words."""
    stops = {
        "refuted": f", test martingale over {_many(len(audit.slices), 'slice')}",
        "interrupted": ", interrupted",
        "looked": ", merged after looking",
    }
    name = declared(clopper_pearson if audit.pooled else BOUNDS[audit.bound]).title
    split = ", half of it for rounding" if audit.floats else ""
    return f"{100 * audit.confidence:g} % confidence{split}, {name}{stops.get(audit.stop, '')}"


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _pooled(audit: Audit) -> list[tuple[str, str]]:
    """What pooled coordinates rest on: the assumption, and the counts of each group."""
    if not audit.pooled:
        return []
    told = [
        f"{counted(c)} (group of {many})"
        for c, many in zip(audit.pooled, audit.event.multiplicities, strict=True)
    ]
    return [("assuming", audit.event.assumption), *(("coordinates", line) for line in told)]


def _floats(audit: Audit) -> str:
    """The floating-point finding in one line."""
    found = audit.floating_point
    assert found is not None
    # Where it counts it has half of the error probability, as the certified bound says.
    lower = clopper_pearson(found.bound_counts, found.delta, level(audit))
    counts = "counted in the verdict" if audit.floats else "not part of the verdict"
    return (
        f"the code as it runs: epsilon >= {epsilon(lower)} ({counts}): "
        f"{found.event}; {counted(found.counts)}"
    )


def explanation(audit: Audit) -> str:
    """Why a claim was not refuted, as far as the closed form tells; else an empty string."""
    notes = []
    if audit.partial:
        notes.append("interrupted: only the trials shown were counted")
    if audit.refuted is False and audit.exact is not None and audit.claim is not None:
        seen, claim = f"{audit.exact:.4g}", f"{audit.claim:g}"
        # A metric claim with delta is (epsilon D, delta): nothing has been divided by D.
        apart = audit.pair.distance if audit.delta else 1.0
        if audit.exact <= audit.claim * apart * (1.0 + 1e-12):
            notes.append(
                f"the vote sees a loss of {seen} on this pair: it cannot refute a claim of "
                f"{claim}, whatever the number of trials"
            )
        else:
            notes.append(f"the vote sees a loss of {seen} > {claim}: more trials may refute")
    return "; ".join(notes)


def claimed(audit: Audit | OutputsAudit) -> str:
    """The claim in words."""
    if audit.claim is None:
        return "none given"
    delta = f", delta = {audit.delta:g}" if audit.delta else ""
    return f"epsilon <= {audit.claim:g}{delta}"


def _claim(audit: Audit) -> str:
    text = claimed(audit)
    if audit.claim is None:
        return text
    if audit.delta and audit.pair.distance != 1.0:
        whole = audit.claim * audit.pair.distance
        text += f" (metric: epsilon <= {whole:g} at distance {audit.pair.distance:g})"
    own = audit.own_claim
    return text if own is None or own == audit.claim else f"{text} (the mechanism's own: {own:g})"


def _side(name: str) -> str:
    return "x'" if name == "x_prime" else "x"


def counted(c: Counts) -> str:
    """How often an event happened on each side, in words."""
    return f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        edge: dict[str, Any] = {"separator": ", ", "threshold": 6, "edgeitems": 2, "precision": 4}
        text = " ".join(np.array2string(value, **edge).split())
        return text if value.size <= 6 else f"{text} ({value.size} entries)"
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:57]}..."


def _seed(audit: Audit) -> str:
    trials = " and ".join(f"{start:,} to {stop:,}" for start, stop in audit.ranges)
    repeated = REPEATED[audit.randomness if audit.route == "callable" else "seed"]
    return (
        f"{audit.seed} (trials {trials}; blocks of {audit.block:,}, {audit.route} route, "
        f"{audit.pilot:,} pilot draws a side{'; ' if repeated else ''}{repeated})"
    )


def _time(audit: Audit) -> str:
    threads = _many(audit.threads, "thread")
    return f"{audit.seconds:.3g} s, {audit.draws_per_second:.3g} draws/s on {threads}"


def text(audit: Audit) -> str:
    """The report as lines of text, the last one with time and speed."""
    lines = [f"  {label:<12} {line}" for label, line in [*rows(audit), ("time", _time(audit))]]
    return "\n".join([audit.name, *lines])


def html(audit: Audit) -> str:
    """The report as HTML for a notebook."""
    return card(audit.name, [*rows(audit), ("time", _time(audit))], audit.refuted)


def figure(audit: Audit | OutputsAudit) -> Figure:
    """The audit as a picture: what is certified, estimated, exact and claimed, on one axis."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(7.0, 2.6), layout="constrained")
    axes = picture.subplots()
    apart = audit.pair.distance if audit.delta else 1.0
    claim = None if audit.claim is None else audit.claim * apart
    figures = [audit.epsilon_lower, audit.epsilon_hat, audit.exact, claim]
    finite = [value for value in figures if value is not None and math.isfinite(value)]
    right = 1.25 * max([*finite, 0.1])
    colour = RED if audit.refuted else BLUE
    if not audit.checks:
        axes.barh([2], [audit.epsilon_lower], height=0.5, color=colour)
    _mark(axes, 1, audit.epsilon_hat, right, INK, "o")
    labels = {2: "certified", 1: "estimate"}
    if audit.exact is not None:
        _mark(axes, 0, audit.exact, right, GREEN, "D")
        labels[0] = "closed form"
    if claim is not None:
        axes.axvline(claim, color=INK, linestyle="--", label=f"claim {claim:g}")
        axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False)
    certified = "no bound holds" if audit.checks else epsilon(audit.epsilon_lower)
    _label(axes, audit.epsilon_lower, 2, certified)
    axes.set(xlim=(0, right), ylim=(min(labels) - 0.6, 2.6), xlabel="privacy loss epsilon")
    axes.set_yticks(list(labels), list(labels.values()))
    verdict = "invalid: no bound holds" if audit.checks else audit.verdict
    axes.set_title(f"{_wrapped(audit.name)}\n{verdict}", loc="left", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    return picture


def _wrapped(name: str) -> str:
    # A pair of dollars would be read as mathematics.
    name = name.replace("$", r"\$")
    return name if len(name) <= 60 else f"{name[:57]}..."


def _label(axes: Axes, value: float, row: float, words: str) -> None:
    """Words to the right of a point, on a white ground in case the claim's line runs there."""
    ground = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    axes.annotate(
        words, (value, row), (7, 0), textcoords="offset points", va="center", color=INK, bbox=ground
    )


def _mark(axes: Axes, row: float, value: float, right: float, colour: str, marker: str) -> None:
    """One figure as a point; an infinite one as an arrow that leaves the picture."""
    if math.isfinite(value):
        axes.plot([value], [row], marker, color=colour, markersize=7)
        _label(axes, value, row, epsilon(value))
        return
    tip = {"arrowstyle": "->", "color": colour, "lw": 1.5}
    axes.annotate("", (right, row), (0.86 * right, row), arrowprops=tip)
    axes.text(0.85 * right, row, "infinite", va="center", ha="right", color=INK)
