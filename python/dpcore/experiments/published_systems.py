"""The package's main job: are the claims of the published systems true?

Every class of `dpcore.published.SYSTEMS` is audited on its worst pair of inputs by three attacks,
first with 2 entries, where each of them refutes every false claim, then with 128. There the
majority vote of the papers is nearly blind to some of them and leaves two false claims standing,
which the other attacks refute: an audit that refutes nothing is not evidence of privacy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any

from ..attacks import Auto, Coordinatewise, MajorityVote
from ..errors import integer, real
from ..mechanisms.native import law_of
from ..pairs import distance
from ..published import SYSTEMS, System
from ..records import Shown
from ..report.encoding import encode_float
from ..report.figures import BLUE, GREY, INK, RED, WHITE, apply_style
from ..report.text import align_rows, format_epsilon
from ..results.audits import Audit
from .presentation import SMALL, TEXT, make_canvas, make_record_head, tidy_axes
from .running import SEED, Job, Tabled, check_config, check_list, require_own_config, run_audits

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = "published-systems"
CLASSES = {cls.__name__: cls for cls in SYSTEMS}
"""The published systems by name."""

VOTE = "vote"

ATTACKS = {VOTE: MajorityVote(), "auto": Auto(), "Coordinatewise": Coordinatewise()}
"""The attacks by the names that table and picture give them, that of the papers first."""

_LEARNING_TRIALS_DIVISOR = 10
"""The two attacks that learn their event count a tenth of the trials: a draw costs them more."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the sizes of the inputs and of the audits.

    Args:
        trials: draws on each side that the vote counts; the other two attacks count a tenth.
        seed: int in [0, 2**63); every audit gets its own seed derived from it.
        epsilon: the claim.
        dims: entries of the inputs, each at least 2 (with a single entry ADePT's claim is true).
        confidence: probability that a bound holds, for each bound on its own.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6").trials
        1000000
    """

    trials: int = 10**7
    seed: int = SEED
    epsilon: float = 1.0
    dims: tuple[int, ...] = (2, 128)
    confidence: float = 0.95

    def counted(self, attack: str) -> int:
        """Return the number of trials a side of one of the `ATTACKS`."""
        return self.trials if attack == VOTE else -(-self.trials // _LEARNING_TRIALS_DIVISOR)

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        level = real("epsilon", self.epsilon, low=0.0, open_low=True)
        object.__setattr__(self, "epsilon", level)
        dims = check_list("dims", self.dims, lambda dim: integer("dims", dim, 2))
        object.__setattr__(self, "dims", dims)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One system at one number of entries, under one attack.

    Args:
        dim: entries of the inputs.
        attack: which of the `ATTACKS`.
        audit: what was counted.
    """

    dim: int
    attack: str
    audit: Audit

    @property
    def system(self) -> str:
        """Name of the class."""
        return type(self.audit.mechanism).__name__

    @property
    def sound(self) -> bool:
        """True if the claim is true."""
        return CLASSES[self.system].sound

    @property
    def true_loss(self) -> float:
        """The loss on this pair that an attacker who sees the whole output could find.

        For Laplace noise of scale b the L1 distance of the pair over b (a default pair lies
        within the clip, which leaves it alone); for DPText infinite.

        Source:
            Dwork and Roth (2014), theorem 3.6; Habernal (2022), theorem 3.2.
        """
        noise = self.audit.mechanism.steps(self.dim).noise
        law = law_of(noise)
        if law.cost is None:
            return math.nan
        return law.cost(noise, distance(self.audit.pair, law.norm)).epsilon


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every published system by every one of the `ATTACKS`.

    Args:
        config: what to audit, and how long.
        threads: number of threads, None for all cores.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each number of entries, attack and system.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        The vote: Habernal (2022), section 4.

    Example:
        >>> result = run(Config(trials=10**5, dims=(2,)))
        >>> result.agreement(2), result.agreement(2, "vote")
        ((4, 4, 0, 5), (4, 4, 0, 5))
    """
    require_own_config(config, __name__)
    begun = time.perf_counter()
    cells = [
        (dim, attack, cls(config.epsilon))
        for dim in config.dims
        for attack in ATTACKS
        for cls in SYSTEMS
    ]
    jobs = [_make_job(config, *cell) for cell in cells]
    audits, partial = run_audits("published systems", jobs, config, threads, progress)
    rows = tuple(Row(*cell[:2], audit) for cell, audit in zip(cells, audits, strict=False))
    return Result(config, rows, partial, time.perf_counter() - begun)


def _make_job(config: Config, dim: int, attack: str, system: System) -> Job:
    key = f"{type(system).__name__}/{dim}"
    vote = attack == VOTE
    return Job(
        system,
        system.default_pair(dim),
        config.epsilon,
        # The votes keep the seeds that they were published with.
        key if vote else f"{key}/{attack}",
        ATTACKS[attack],
        config.counted(attack),
        # Measured: a tenth of the trials takes ten times as long.
        1 if vote else 10,
    )


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The audits, attack by attack and system by system.

    Args:
        config: the options of the run.
        rows: one for each number of entries, attack and system.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def at(self, dim: int) -> dict[str, dict[str, Row]]:
        """Return the rows with that number of entries, by system and then by attack."""
        found: dict[str, dict[str, Row]] = {}
        for row in self.rows:
            if row.dim == dim:
                found.setdefault(row.system, {})[row.attack] = row
        return found

    def agreement(self, dim: int, attack: str | None = None) -> tuple[int, int, int, int]:
        """Count the false and the true claims, and those of each that were refuted.

        Args:
            dim: number of entries.
            attack: which of the `ATTACKS`; None takes a claim for refuted where any of them
                refutes it.

        Returns:
            False claims refuted, false claims, true claims refuted (an error, unless a bound
            failed by the chance that its confidence leaves it), true claims.
        """
        broken: list[bool] = []
        sound: list[bool] = []
        for name, rows in self.at(dim).items():
            asked = [row for row in rows.values() if attack in (None, row.attack)]
            if asked:
                hit = bool(refuting_attacks(asked))
                (sound if CLASSES[name].sound else broken).append(hit)
        return sum(broken), len(broken), sum(sound), len(sound)

    def missed(self, dim: int) -> tuple[str, ...]:
        """Describe each false claim that an attack did not refute, and what refutes it."""
        return tuple(
            _describe_miss(rows)
            for name, rows in self.at(dim).items()
            if not CLASSES[name].sound and len(refuting_attacks(rows.values())) < len(rows)
        )

    def table(self) -> str:
        """Return the figures as text, a table for each number of entries with conclusions."""
        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data; `Audit.from_dict` reads each audit."""
        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds of every attack with the true loss and the claim.

        Returns:
            A matplotlib figure, one panel for each number of entries.
        """
        return draw_figure(self, ax)


def refuting_attacks(rows: Iterable[Row]) -> tuple[str, ...]:
    """List the attacks that refute the claim, from the rows of one system."""
    return tuple(row.attack for row in rows if row.audit.refuted is True)


def _describe_miss(rows: dict[str, Row]) -> str:
    first = next(iter(rows.values()))
    hit = refuting_attacks(rows.values())
    blind = [_describe_visible_loss(row) for row in rows.values() if row.attack not in hit]
    found = f"refuted by {' and '.join(hit)}" if hit else "refuted by none of them"
    return (
        f"{first.system}: true loss {first.true_loss:.4g} at {first.dim} entries; "
        f"{'; '.join(blind)}; {found}; known: {CLASSES[first.system].fault}"
    )


def _describe_visible_loss(row: Row) -> str:
    """Describe how much of the loss an attack sees that did not refute a false claim."""
    seen, claim = row.audit.exact, row.audit.claimed_epsilon
    if seen is None or claim is None:
        return f"{row.attack} certifies {format_epsilon(row.audit.epsilon_lower)} of it"
    reach = "no number of trials helps" if seen <= claim else "more trials refute it"
    only = "only " if seen <= claim else ""
    return f"the {row.attack} sees {only}{format_epsilon(seen)} of it ({reach})"


_ATTACK_DESCRIPTIONS = {
    VOTE: "the papers' majority vote",
    "auto": "the default",
    "Coordinatewise": "declared: entries independent and alike (as they are here)",
}
_NOT_REFUTED_NOTE = (
    "Not refuted says what the attack sees, not that the claim holds. Left standing, though false:"
)


def write_table(result: Result) -> str:
    """Format a table for each number of entries with conclusions."""
    config = result.config
    lines = [
        f"Published systems, each claiming epsilon = {config.epsilon:g}, on their worst pairs: "
        "certified bounds,",
        f"each at {100 * config.confidence:g} % confidence on its own (Clopper-Pearson), seed "
        f"{config.seed}. A star: above the claim, which is refuted.",
    ]
    lines += [
        f"  {name:<14}  {config.counted(name):,} trials a side: {kind}"
        for name, kind in _ATTACK_DESCRIPTIONS.items()
    ]
    parts = ["\n".join(lines)]
    if result.partial:
        parts.append("INTERRUPTED: only what was counted is shown")
    parts += [_format_part(result, dim) for dim in config.dims if result.at(dim)]
    return "\n\n".join(parts)


def _format_part(result: Result, dim: int) -> str:
    head = ("system", "claim is", "true loss", "vote can see", *ATTACKS, "verdict")
    cells = [_format_system_bounds(name, rows) for name, rows in result.at(dim).items()]
    found, broken, wrong, sound = result.agreement(dim)
    lines = [
        f"{dim} entries",
        align_rows([head, *cells], left=(0, 1, len(head) - 1)),
        f"Verdicts against the truth at {dim} entries: {found} of {broken} false claims "
        f"refuted, {wrong} of {sound} true claims refuted.",
    ]
    missed = result.missed(dim)
    if missed:
        lines.append(_NOT_REFUTED_NOTE)
        lines += [fill(line, 98, initial_indent="  ", subsequent_indent=4 * " ") for line in missed]
    return "\n".join(lines)


def _format_system_bounds(name: str, rows: dict[str, Row]) -> tuple[str, ...]:
    first = next(iter(rows.values()))
    return (
        name,
        "true" if CLASSES[name].sound else "false",
        format_epsilon(first.true_loss),
        format_epsilon(rows[VOTE].audit.exact),
        *(_format_bound(rows.get(attack)) for attack in ATTACKS),
        _format_refuting(rows),
    )


def _format_bound(row: Row | None) -> str:
    """Format the bound of an attack, with a star if it refutes the claim, otherwise a blank."""
    if row is None:
        return "- "
    return f"{row.audit.epsilon_lower:.4f}{'*' if row.audit.refuted else ' '}"


def _format_refuting(rows: dict[str, Row]) -> str:
    hit = refuting_attacks(rows.values())
    if not hit:
        return "not refuted"
    return "refuted by all" if len(hit) == len(ATTACKS) else f"refuted by {', '.join(hit)}"


def write_plain_data(result: Result) -> dict[str, Any]:
    """Return the result as plain data for strict JSON."""
    rows = [
        {
            "system": row.system,
            "dim": row.dim,
            "attack": row.attack,
            "sound": row.sound,
            "fault": CLASSES[row.system].fault,
            "source": CLASSES[row.system].source,
            "true_loss": encode_float(row.true_loss),
            "audit": row.audit.to_dict(),
        }
        for row in result.rows
    ]
    agreement = {
        str(dim): {
            **_agreement_to_dict(result, dim, None),
            "by_attack": {name: _agreement_to_dict(result, dim, name) for name in ATTACKS},
        }
        for dim in result.config.dims
    }
    missed = {str(dim): list(result.missed(dim)) for dim in result.config.dims}
    return {
        **make_record_head(NAME, result),
        "rows": rows,
        "agreement": agreement,
        "missed": missed,
    }


def _agreement_to_dict(result: Result, dim: int, attack: str | None) -> dict[str, int]:
    names = ("false_refuted", "false", "true_refuted", "true")
    return dict(zip(names, result.agreement(dim, attack), strict=True))


_ATTACK_OFFSETS = dict(zip(ATTACKS, (0.27, 0.0, -0.27), strict=True))
"""Height at which an attack is drawn above its system's place."""

_ATTACK_MARKERS = dict(zip(ATTACKS, ("o", "s", "D"), strict=True))
_AXIS_END_IN_CLAIMS = 250.0
"""End of the axis, in units of the claim."""


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw certified bounds as points, true losses as bars or arrows, and the claim as a line."""
    picture = make_canvas(4.6, ax)
    panels = picture.subplots(1, len(result.config.dims), sharey=True, squeeze=False)[0]
    # Sound systems on top, so that what is refuted should be exactly the lower group.
    order = sorted(SYSTEMS, key=lambda cls: not cls.sound)
    places = {cls.__name__: len(order) - 1 - i for i, cls in enumerate(order)}
    split = sum(not cls.sound for cls in order) - 0.5
    for axes, dim in zip(panels, result.config.dims, strict=True):
        for name, rows in result.at(dim).items():
            _draw_system(axes, places[name], rows, result.config.epsilon)
        _set_scale(axes, len(places), result.config.epsilon)
        axes.axhline(split, color=INK, linewidth=0.6)
        axes.set_title(f"{dim} entries", fontsize=TEXT, loc="left")
    panels[0].set_yticks(list(places.values()), list(places))
    for text, middle in (("claim true", (split + len(order)) / 2), ("claim false", split / 2)):
        spot = (1.02, middle)
        transform = panels[-1].get_yaxis_transform()
        panels[-1].text(*spot, text, transform=transform, rotation=270, va="center", fontsize=SMALL)
    picture.supxlabel(
        "privacy loss epsilon (linear up to the claim, logarithmic beyond)", fontsize=TEXT
    )
    picture.legend(
        handles=_make_attack_legend(),
        loc="outside upper center",
        ncols=4,
        frameon=False,
        fontsize=SMALL,
    )
    return apply_style(picture)


def _draw_system(axes: Axes, place: int, rows: dict[str, Row], claim: float) -> None:
    right = _AXIS_END_IN_CLAIMS * claim
    for name, row in rows.items():
        height = place + _ATTACK_OFFSETS[name]
        # Filled or hollow beside the colour: told apart in grey too.
        colour, inside = (RED, RED) if row.audit.refuted else (BLUE, WHITE)
        bound = min(row.audit.epsilon_lower, right)
        marker = _ATTACK_MARKERS[name] if bound < right else ">"
        style: dict[str, Any] = {"markerfacecolor": inside, "markersize": 4.0, "clip_on": False}
        axes.plot([0.0, bound], [height, height], color=colour, linewidth=1.2)
        axes.plot([bound], [height], marker, color=colour, zorder=3, **style)
    loss = next(iter(rows.values())).true_loss
    if loss <= right:
        axes.plot([loss, loss], [place - 0.42, place + 0.42], color=INK, linewidth=1.8, zorder=2.8)
    elif not math.isnan(loss):
        tip = {"arrowstyle": "-|>", "color": INK, "lw": 1.4, "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (right, place), (0.4 * right, place), arrowprops=tip)


def _set_scale(axes: Axes, systems: int, claim: float) -> None:
    from matplotlib.ticker import FixedLocator, NullLocator, StrMethodFormatter

    axes.set_xscale("symlog", linthresh=claim, linscale=1.2)
    for place in range(1, systems):
        axes.axhline(place - 0.5, color=GREY, linewidth=0.3, alpha=0.5)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=1.5)
    axes.set(xlim=(0.0, _AXIS_END_IN_CLAIMS * claim), ylim=(-0.6, systems - 0.4))
    axes.xaxis.set_major_locator(FixedLocator([claim * v for v in (0, 0.5, 1, 2, 5, 10, 30, 100)]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    tidy_axes(axes)
    axes.tick_params(axis="y", length=0)


def _make_attack_legend() -> list[Any]:
    from matplotlib.lines import Line2D

    names = {**{name: name for name in ATTACKS}, "vote": "the papers' vote"}
    marks = [
        Line2D(
            [],
            [],
            marker=_ATTACK_MARKERS[name],
            color=INK,
            markersize=4.0,
            linewidth=1.2,
            label=text,
        )
        for name, text in names.items()
    ]
    full: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5.0}
    hollow = {**full, "markerfacecolor": WHITE}
    bar: dict[str, Any] = {"linestyle": "none", "color": INK, "markersize": 9.0}
    return [
        *marks,
        Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label="claim"),
        Line2D([], [], color=RED, label="certified, refutes the claim", **full),
        Line2D([], [], color=BLUE, label="certified, does not", **hollow),
        Line2D([], [], marker="|", markeredgewidth=1.8, label="true loss", **bar),
        Line2D(
            [], [], marker=r"$\rightarrow$", markeredgewidth=0.4, label="true loss infinite", **bar
        ),
    ]
