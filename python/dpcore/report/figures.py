"""Pictures of audits and plans: their canvas, their style and their curves; the text of a plan.

A user's `plot()` goes through pyplot and follows the current style: its size, fonts, background and
cycle of colours. Pages, experiments' files and the command line draw on figures that pyplot does
not know, in one style: `use_own_style`.
"""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..bounds.canaries import guesses_for
from ..bounds.power import AUTO_FACTOR
from ..claims.trade_off import Claim
from ..errors import invalid, mistyped
from ..records import write_file
from ..results.audits import Audit
from ..results.outputs_audits import OutputsAudit
from ..results.planned import Plan, middle_of
from ..visible import make_visible
from .text import format_claim, format_epsilon, format_outputs_counts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette: told apart with any colour vision.
INK, BLUE, GREEN, RED, GREY = "#222222", "#0072B2", "#009E73", "#D55E00", "#6A6A6A"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
# Ground, and a shade of it; unlike the white of a style, which may be its letters'.
WHITE, PALE = "#FEFEFE", "#E8E8E8"

_COLOUR_CYCLE: Final = (BLUE, RED, GREEN, PURPLE, ORANGE, SKY)
"""The order of the package's own cycle: what a style calls C0 stands for the first, and so on."""

_MAX_CAPTION_CHARACTERS: Final = 60
_CURVE_GRID_POINTS = 400

_POWER_GRID_POINTS = 41


@contextmanager
def use_own_style(letters: str = "path") -> Iterator[Figure]:
    """Set the package's own style and yield an empty figure that pyplot does not know.

    A user's own style, such as white on black, would not fit a page; and one result has one
    picture, whatever the machine's settings.

    Args:
        letters: "path" draws them in an SVG, "none" leaves them text.
    """
    import matplotlib
    from cycler import cycler
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {"axes.prop_cycle": cycler(color=_COLOUR_CYCLE), "text.color": INK}
        )
        # Random names of elements would make every SVG differ from the last.
        matplotlib.rcParams.update({"svg.fonttype": letters, "svg.hashsalt": "dpcore"})
        yield Figure(layout="constrained")


def save_picture(figure: Figure, path: Any, name: str = "path", **options: Any) -> None:
    """Save a figure as a whole or not at all; its format is the ending of the path."""
    content = io.BytesIO()
    ending = Path(path).suffix.removeprefix(".").lower()
    show_hidden_characters(figure).savefig(content, format=ending, **options)
    write_file(path, content.getvalue(), name)


def show_hidden_characters(figure: Figure) -> Figure:
    """Make all texts of a figure visible, whose lines are those of a picture's own layout."""
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if not (words := text.get_text()).isprintable():
            text.set_text(make_visible(words, "\n"))
    return figure


def relative_size(width: float, height: float) -> tuple[float, float]:
    """Compute a size in inches from shares of the current style's figure size."""
    from matplotlib import rcParams

    wide, high = rcParams["figure.figsize"]
    return width * wide, height * high


def get_canvas(ax: Any, size: tuple[float, float]) -> Figure:
    """Return the figure, or part of one, in which a picture of several panels is drawn.

    Args:
        ax: None for a new figure of pyplot; an empty figure; or axes that are subplots of
            their figure, in place of which the picture is drawn.
        size: of a new or empty figure in inches.

    Returns:
        A figure, or a part of one that behaves like it.

    Raises:
        TypeError: if `ax` is another object.
        ValueError: if the axes have no place among subplots.
    """
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, FigureBase

    if ax is None:
        import matplotlib.pyplot as pyplot

        figure = pyplot.figure(figsize=size, layout="constrained")
        _show_once(figure)
        return figure
    if isinstance(ax, (Axes, FigureBase)):
        _show_once(get_whole_figure(ax.figure or ax))
    if isinstance(ax, FigureBase):
        if isinstance(ax, Figure) and not ax.axes:
            ax.set_size_inches(size)
        return ax  # type: ignore[return-value]
    if not isinstance(ax, Axes):
        raise mistyped("ax", "axes or a figure of matplotlib", ax)
    place, around = ax.get_subplotspec(), ax.figure
    if place is None:
        raise invalid("ax", "axes that plt.subplots made, for a picture of several panels", ax)
    ax.remove()
    if get_whole_figure(around).get_layout_engine() is None:
        get_whole_figure(around).set_layout_engine("constrained")
    part: Any = around.add_subfigure(place)
    part.set_facecolor("none")
    return part  # type: ignore[no-any-return]


def axes_of(ax: Any, size: tuple[float, float]) -> Axes:
    """Return the axes of a picture of one panel: those given, or new ones (`get_canvas`)."""
    from matplotlib.axes import Axes

    if not isinstance(ax, Axes):
        return get_canvas(ax, size).subplots()
    _show_once(get_whole_figure(ax.figure))
    return ax


def _show_once(figure: Figure) -> None:
    """Prevent a second display of a figure that is the value of a notebook's cell."""
    figure._ipython_display_ = partial(_close_figure, figure)  # type: ignore[attr-defined]


def _close_figure(figure: Figure) -> None:
    """Close a figure before IPython shows it.

    The inline backend would show an open figure a second time.
    """
    import matplotlib

    if "inline" in matplotlib.get_backend():
        import matplotlib.pyplot as pyplot

        pyplot.close(figure)
    raise NotImplementedError("shown like any other figure")


def cycle_colour(place: int) -> Any:
    """Return a colour of the current style's cycle."""
    from matplotlib import rcParams

    cycle = rcParams["axes.prop_cycle"].by_key().get("color", _COLOUR_CYCLE)
    return cycle[place % len(cycle)]


def text_colour() -> Any:
    """Return the colour of text in the current style; it also draws lines that are not data."""
    from matplotlib import rcParams

    return rcParams["text.color"]


def background_box(axes: Axes) -> dict[str, Any]:
    """Return a box in the background colour, for words that a line may cross."""
    return {"facecolor": axes.get_facecolor(), "edgecolor": "none", "pad": 1.0, "alpha": 0.8}


def thin_axes(axes: Axes) -> None:
    """Keep the axes on two sides only."""
    axes.spines[["top", "right"]].set_visible(False)


def apply_style(picture: Figure) -> Figure:
    """Replace the package's own colours in the whole figure by those of the current style.

    Pictures of many parts are drawn in the package's colours; here blue becomes the first of the
    style's cycle, ink its letters, `WHITE` its ground.
    """
    from matplotlib import rcParams
    from matplotlib.colors import to_rgb, to_rgba

    plain = {name: to_rgba(cycle_colour(place)) for place, name in enumerate(_COLOUR_CYCLE)}
    plain |= {WHITE: to_rgba(rcParams["axes.facecolor"]), INK: to_rgba(text_colour())}
    letters, white = plain[INK], plain[WHITE]
    for name, part in ((GREY, 0.65), (PALE, 0.1)):
        mixed = [part * a + (1.0 - part) * b for a, b in zip(letters, white, strict=True)]
        plain[name] = to_rgba(mixed)  # type: ignore[arg-type]
    known = {to_rgb(name): rgba for name, rgba in plain.items()}

    def meant(given: Any) -> Any:
        rgba = to_rgba(given)
        new = known.get(rgba[:3])
        return given if new is None or rgba[3] == 0.0 else (*new[:3], rgba[3] * new[3])

    for artist in picture.findobj(include_self=False):
        _recolour_artist(artist, meant)
    return get_whole_figure(picture)


def get_whole_figure(picture: Any) -> Figure:
    """Return the figure that a part belongs to, or the figure itself."""
    root: Any = picture.figure
    return picture if root is None or root is picture else get_whole_figure(root)


def _recolour_artist(artist: Any, meant: Any) -> None:
    """Replace the colours of one artist."""
    from matplotlib.collections import Collection
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.text import Annotation, Text

    names: tuple[str, ...] = ()
    if isinstance(artist, Line2D):
        names = "color", "markerfacecolor", "markeredgecolor"
    elif isinstance(artist, Text):
        names = ("color",)
        arrow = artist.arrow_patch if isinstance(artist, Annotation) else None
        for part in filter(None, (artist.get_bbox_patch(), arrow)):
            _recolour_artist(part, meant)
    elif isinstance(artist, Patch):
        names = "facecolor", "edgecolor"
    elif isinstance(artist, Collection):
        artist.set_facecolor([meant(one) for one in artist.get_facecolor()])
        artist.set_edgecolor([meant(one) for one in artist.get_edgecolor()])
    for name in names:
        old = getattr(artist, f"get_{name}")()
        if not isinstance(old, str) or old not in ("none", "auto"):
            new = meant(old)
            if new is not old:
                getattr(artist, f"set_{name}")(new)


def finish_axes(axes: Axes, title: str) -> Figure:
    """Write the title of a picture of one panel, and return the whole figure."""
    axes.set_title(title, loc="left", fontsize="medium")
    thin_axes(axes)
    return get_whole_figure(axes.figure)


def format_title(name: str, verdict: str) -> str:
    """Format the title of a picture of an audit: its name, shortened, above its verdict."""
    # A pair of dollars would be read as mathematics.
    name = make_visible(name).replace("$", r"\$")
    return f"{name if len(name) <= 60 else f'{name[:57]}...'}\n{verdict}"


def annotate_point(
    axes: Axes, words: str, point: tuple[float, float], offset: tuple[int, int], **style: Any
) -> None:
    """Write words near a point, at an offset in points of a printer."""
    axes.annotate(words, point, offset, textcoords="offset points", **style)


def draw_bounds(audit: Audit | OutputsAudit, ax: Any = None) -> Figure:
    """Draw the certified, estimated, exact and claimed epsilon on one axis."""
    axes = axes_of(ax, relative_size(1.0, 0.55))
    apart = audit.pair.distance if audit.delta else 1.0
    claim = None if audit.claimed_epsilon is None else audit.claimed_epsilon * apart
    figures = [audit.epsilon_lower, audit.epsilon_hat, audit.exact, claim]
    finite = [value for value in figures if value is not None and math.isfinite(value)]
    right = 1.25 * max([*finite, 0.1])
    if not audit.checks:
        bar = cycle_colour(1 if audit.refuted else 0)
        axes.barh([2], [audit.epsilon_lower], height=0.5, color=bar)
    _draw_point(axes, 1, audit.epsilon_hat, right, text_colour(), "o")
    labels = {2: "certified", 1: "estimate"}
    if audit.exact is not None:
        _draw_point(axes, 0, audit.exact, right, cycle_colour(2), "D")
        labels[0] = "closed form"
    low = min(labels) - 0.9
    if claim is not None:
        axes.axvline(claim, color=text_colour(), linestyle="--")
        annotate_point(axes, f"claim {claim:.6g}", (claim, low), (4, 3), va="bottom")
    certified = "no bound holds" if audit.checks else format_epsilon(audit.epsilon_lower)
    _write_label(axes, audit.epsilon_lower, 2, certified)
    label = "privacy loss epsilon"
    if isinstance(audit, OutputsAudit):
        # Such a picture goes to reviewers who do not see the report.
        label += f"\n\n{_format_caption(audit)}"
    axes.set(xlim=(0, right), ylim=(low, 2.6), xlabel=label)
    axes.set_yticks(list(labels), list(labels.values()))
    verdict = "invalid: no bound holds" if audit.checks else audit.verdict
    return finish_axes(axes, format_title(audit.name, verdict))


def _format_caption(audit: OutputsAudit) -> str:
    """Format claim, delta, confidence and counts in a few short lines."""
    delta = "" if audit.delta or isinstance(audit.claim, Claim) else ", delta = 0"
    claim = "no claim given" if audit.claim is None else f"claim: {format_claim(audit)}{delta}"
    words = f"{claim}; {100 * audit.confidence:g} % confidence; {format_outputs_counts(audit)}"
    return textwrap.fill(words, _MAX_CAPTION_CHARACTERS)


def _write_label(axes: Axes, value: float, row: float, words: str) -> None:
    """Write words to the right of a point, on the background colour to cover the claim's line."""
    annotate_point(axes, words, (value, row), (7, 0), va="center", bbox=background_box(axes))


def _draw_point(axes: Axes, row: float, value: float, right: float, hue: Any, marker: str) -> None:
    """Draw one figure as a point; draw an infinite one as an arrow to the right edge."""
    if math.isfinite(value):
        axes.plot([value], [row], marker, color=hue)
        _write_label(axes, value, row, format_epsilon(value))
        return
    tip = {"arrowstyle": "->", "color": hue, "lw": 1.5}
    axes.annotate("", (right, row), (0.86 * right, row), arrowprops=tip)
    axes.text(0.85 * right, row, "infinite", va="center", ha="right")


def tradeoff_figure(audit: Audit, ax: Any = None) -> Figure:
    """Draw the upper confidence band on the trade-off function and the curve of the claim."""
    axes = axes_of(ax, relative_size(0.8, 1.0))
    band = audit.tradeoff
    errors = np.linspace(0.0, 1.0, _CURVE_GRID_POINTS)
    upper = band.at(errors)
    hue = cycle_colour(0)
    axes.fill_between(errors, upper, 1.0, step=None, color=hue, alpha=0.15, linewidth=0)
    axes.plot(errors, upper, color=hue)
    words = f"ruled out:\nabove the band, {100 * audit.confidence:g} %"
    axes.text(0.97, 0.97, words, ha="right", va="top")
    axes.plot([0, 1], [1, 0], color=text_colour(), alpha=0.5, linewidth=0.8)
    turned: dict[str, Any] = {"rotation": -45, "rotation_mode": "anchor", "fontsize": "small"}
    turned |= {"ha": "center", "va": "bottom", "alpha": 0.8}
    annotate_point(axes, "no information", (0.62, 0.38), (2, 2), **turned)
    if audit.claimed_epsilon is not None:
        claimed = _compute_claimed_trade_off(audit, errors)
        axes.plot(errors, claimed, color=text_colour(), linestyle="--")
        _write_claim_at_bend(axes, audit)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="type I error", ylabel="type II error")
    axes.set_aspect("equal")
    return finish_axes(axes, "Trade-off function: at or below the band")


def _write_claim_at_bend(axes: Axes, audit: Audit) -> None:
    """Write the claim's name where its curve bends.

    It stands below the bend, or elsewhere if the band or an axis is near.
    """
    bend = _find_bend(audit)
    claim = str(audit.claim) if isinstance(audit.claim, Claim) else f"claim {audit.claim:g}"
    if bend > 0.22 and float(np.asarray(audit.tradeoff.at(np.array([bend])))[0]) >= bend:
        annotate_point(axes, claim, (bend, bend), (-3, -3), ha="right", va="top")
        return
    # Nothing is drawn beyond the line of no information.
    leader = {"arrowstyle": "-", "color": text_colour(), "lw": 0.6, "alpha": 0.6}
    axes.annotate(claim, (bend, bend), (0.55, 0.7), arrowprops=leader)


def _find_bend(audit: Audit) -> float:
    """Return the error at which both errors that the claim allows are equal."""
    if isinstance(audit.claim, Claim):
        # The tangent of slope -1: 1 - 2 a = delta(0).
        return (1.0 - float(audit.claim.delta(0.0))) / 2.0
    return (1.0 - audit.delta) / (1.0 + _compute_likelihood_ratio(audit))


def _compute_likelihood_ratio(audit: Audit) -> float:
    """Compute e^epsilon of the claim at the distance of the pair, at most e^700."""
    return math.exp(min(700.0, (audit.claimed_epsilon or 0.0) * audit.pair.distance))


def _compute_claimed_trade_off(audit: Audit, errors: np.ndarray) -> np.ndarray:
    """Compute the smallest trade-off function that the claim (epsilon, delta) allows.

    Source:
        Dong, Roth and Su (2022), proposition 2.5.
    """
    if isinstance(audit.claim, Claim):
        return np.asarray(audit.claim.trade_off(errors))
    grow = _compute_likelihood_ratio(audit)
    first = 1.0 - audit.delta - grow * errors
    second = (1.0 - audit.delta - errors) / grow
    return np.maximum(0.0, np.maximum(first, second))


def profile_figure(audit: Audit, ax: Any = None) -> Figure:
    """Draw the certified lower bound on delta at every epsilon."""
    axes = axes_of(ax, relative_size(1.0, 0.8))
    band = audit.tradeoff
    claimed = 0.0 if audit.claimed_epsilon is None else audit.claimed_epsilon * audit.pair.distance
    right = 1.3 * max(audit.epsilon_lower, claimed, 0.2)
    epsilons = np.linspace(0.0, right, _CURVE_GRID_POINTS)
    deltas = np.asarray(band.delta(epsilons))
    shown = deltas > 0.0
    hue = cycle_colour(0)
    axes.fill_between(epsilons[shown], 0.0, deltas[shown], color=hue, alpha=0.15, linewidth=0)
    axes.plot(epsilons[shown], deltas[shown], color=hue)
    # The curve falls: above it on the right nothing else is drawn.
    words = f"delta is at least the line\n({100 * audit.confidence:g} % confidence)"
    axes.text(0.98, 0.97, words, transform=axes.transAxes, ha="right", va="top")
    if audit.claimed_epsilon is not None:
        least = float(deltas[shown].min()) if shown.any() else 1e-6
        height = audit.delta if audit.delta > 0.0 else least
        marker = "o" if audit.delta > 0.0 else "v"
        axes.plot([claimed], [height], marker, color=cycle_colour(1), clip_on=False, zorder=3)
        claim = f"claim ({audit.claimed_epsilon:.4g}, {audit.delta:.4g})"
        annotate_point(axes, claim, (claimed, height), (7, 4), va="bottom")
    if shown.any():
        axes.set_yscale("log")
    axes.set(xlim=(0, right), xlabel="epsilon", ylabel="delta")
    return finish_axes(axes, "Privacy profile: no (epsilon, delta) below the line holds")


def list_plan_rows(plan: Plan) -> list[tuple[str, str]]:
    """List the rows (label, text) of the plan; with a mechanism, the last one is the time."""
    delta = f", delta = {plan.delta:g}" if plan.delta else ""
    percent = f"{100 * plan.reached:.4g} % probability at {100 * plan.confidence:g} % confidence"
    claim = f"epsilon <= {plan.claim:.4g}{delta}"
    claim = claim if plan.curve is None else f"{plan.curve}; its tangent {claim}"
    if plan.guesses is None:
        who = ", for an attacker who knows the event" if _is_event_known(plan) else ""
        size = [
            ("trials", f"{plan.trials:,} on each side refute the claim with {percent}{who}"),
            *_list_event_rows(plan),
        ]
        best = "the event as often as expected on one side, never on the other"
    else:
        size = [
            ("canaries", f"{plan.canaries:,}, each included by its own fair coin"),
            ("guesses", f"{plan.guesses:,} refute the claim with {percent}"),
            ("assuming", f"a guess is right with probability {plan.guess_rate:.6g}"),
        ]
        best = "all guesses right"
    return [
        ("claim", claim),
        ("true loss", _describe_true_loss(plan)),
        *size,
        ("at most", f"epsilon >= {plan.certifiable:.4f} could be certified: {best}"),
        *([("needed", _describe_need(plan))] if plan.reached < plan.power else []),
        ("next", _format_audit_call(plan)),
        *([] if plan.seconds is None else [("time", _describe_planned_time(plan.seconds))]),
    ]


def _describe_true_loss(plan: Plan) -> str:
    loss = f"{plan.true_epsilon:.4g}"
    if plan.factor is not None:
        kind = "Gaussian noise" if plan.delta else "noise"
        return f"{loss}, of {kind} {plan.factor:g} times as large as the claim needs"
    return f"{loss} at least, as pilots show" if plan.seen else loss


def _is_event_known(plan: Plan) -> bool:
    """Return True if the plan takes an event as given, which `auto` would have to find."""
    return plan.event is None and plan.guesses is None


def _count_auto_trials(plan: Plan) -> int:
    """Return the trials that `auto` usually takes, since it must find its event itself."""
    return plan.size * (AUTO_FACTOR if _is_event_known(plan) else 1)


def _list_event_rows(plan: Plan) -> list[tuple[str, str]]:
    p, q = middle_of(plan.rates)
    rates = f"probability {p:.4g} on one side, {q:.4g} on the other"
    if plan.event is None:
        auto = f"up to {_count_auto_trials(plan):,}, usually: it chooses the event on pilot draws"
        return [("event", rates), ("auto", auto)]
    seed = f"{plan.pilots:,} pilot draws a side, seed {plan.seed}"
    return [("event", f"such as {plan.event}"), ("rates", f"{rates} (limits from {seed})")]


def _describe_need(plan: Plan) -> str:
    rate, settings = plan.guess_rate, (plan.delta, plan.confidence, plan.power)
    found = guesses_for(
        lambda guesses: max(guesses, plan.canaries or 1), plan.claim, rate, *settings
    )
    wanted = f"for {100 * plan.power:g} % probability"
    if found is None:
        return f"another attack or a smaller delta: a million guesses are too few {wanted}"
    return f"{found:,} guesses (and at least as many canaries) {wanted}"


def _format_audit_call(plan: Plan) -> str:
    stated = f"claim={plan.claim:g}" + (f", delta={plan.delta:g}" if plan.delta else "")
    if plan.curve is not None:
        name = plan.curve.parameter
        kind = f"dpcore.claims.{type(plan.curve).__name__}"
        stated = f"claim={kind}({getattr(plan.curve, name):g})" if name else "claim=claim"
    stated += "" if plan.confidence == 0.95 else f", confidence={plan.confidence:g}"
    if plan.guesses is None:
        return f"dpcore.audit(mechanism, pair, {stated}, trials={_count_auto_trials(plan)})"
    rows = f'rows="one_run", guesses={plan.guesses}'
    return f"dpcore.audit_outputs(scores_in, scores_out, {rows}, {stated})"


def _describe_planned_time(seconds: float) -> str:
    return f"about {_format_duration(seconds)}, at the speed of the pilots"


def _format_duration(seconds: float) -> str:
    """Format a time in words, to two digits."""
    for unit, length in (("days", 86400.0), ("hours", 3600.0), ("min", 60.0)):
        if seconds >= 2.0 * length:
            return f"{seconds / length:.2g} {unit}"
    return f"{seconds:.2g} s"


def draw_power(plan: Plan, ax: Any = None) -> Figure:
    """Draw power against size: the curve, the planned size, the requested power."""
    from matplotlib.ticker import LogLocator, NullLocator

    axes = axes_of(ax, relative_size(0.9, 0.7))
    what = "trials on each side" if plan.guesses is None else "guesses"
    spread = np.linspace(math.log(0.1), math.log(3.0), _POWER_GRID_POINTS)
    sizes = np.unique(np.maximum(1.0, np.rint(plan.size * np.exp(spread))).astype(np.int64))
    [line] = axes.plot(sizes, [plan.power_at(int(size)) for size in sizes])
    axes.plot([plan.size], [plan.reached], "o", color=line.get_color())
    label = f"{plan.size:,} {what}"
    annotate_point(axes, label, (plan.size, plan.reached), (6, -12), va="top")
    axes.axhline(plan.power, color=text_colour(), alpha=0.6, linewidth=0.8, linestyle="--")
    annotate_point(axes, f"{100 * plan.power:g} %", (sizes[0], plan.power), (0, 3), alpha=0.8)
    axes.set(xscale="log", ylim=(0.0, 1.05), xlabel=what, ylabel="probability of refuting")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda size, _: f"{size:,.0f}" if size < 1e7 else f"{size:.0e}")
    return finish_axes(axes, f"epsilon <= {plan.claim:g}, in truth {plan.true_epsilon:.4g}")
