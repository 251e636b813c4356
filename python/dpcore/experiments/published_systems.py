"""Audits that test whether the privacy claims of published systems are true.

The systems are the classes in `dpcore.published.SYSTEMS`. Three attacks audit every system on the
pair of inputs with the largest loss. If the inputs have 2 entries, each attack refutes every false
claim. If the inputs have 128 entries, the majority vote, which the papers use, fails to refute two
false claims. The other two attacks refute these claims. A claim that an audit does not refute can
therefore still be false.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from itertools import product
from textwrap import fill
from typing import Any

from ..attacks import Auto, Coordinatewise, MajorityVote
from ..errors import integer
from ..mechanisms.native import facts_about_noise
from ..pairs import distance
from ..published import SYSTEMS, System
from ..report.figures import BLUE, GREY, INK, RED, WHITE, restyle_figure
from ..report.rows import format_epsilon
from ..report.shown import Shown
from ..results.audits import Audit
from . import drawing
from .base import Column, SeededSettings, align_columns, setting
from .running import VERDICT_WORDS, Tabled, audit_cell, group_answers, run_jobs, time_run

NAME = "published-systems"
VOTE = "vote"

ATTACKS = {VOTE: MajorityVote(), "auto": Auto(), "Coordinatewise": Coordinatewise()}
"""Attacks, with their names in table and picture. The first attack is the majority vote, which the
papers use."""

_LEARNING_TRIALS_DIVISOR = 10
"""Two attacks learn from outputs which event they count. They are slower than the majority vote,
and draw the number of outputs of the majority vote, divided by this number."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that audits published systems.

    Args:
        trials: number of outputs that the majority-vote attack draws on each of the two inputs. The
            two other attacks draw a tenth of this number.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        epsilon: epsilon that every system claims.
        dims: numbers of entries that the inputs can have, each at least 2. The number 1 is not
            allowed, because the claim of ADePT is true for inputs with one entry.
        confidence: probability with which each certified bound holds. The probability that all
            bounds are true at once may be lower.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6").trials
        1000000
    """

    trials: int = 10**7
    epsilon: float = 1.0
    dims: tuple[int, ...] = setting((2, 128), integer, 2)
    confidence: float = 0.95

    def counted(self, attack: str) -> int:
        """Return the number of outputs that an attack draws on each of the two inputs.

        `attack` is the name of the attack, a key of `ATTACKS` such as "vote".
        """
        return self.trials if attack == VOTE else -(-self.trials // _LEARNING_TRIALS_DIVISOR)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Audit of one published system by one attack. All inputs have the same number of entries.

    Args:
        dim: number of entries of the inputs.
        attack: name of the attack, a key of `ATTACKS` such as "vote".
        audit: result of the audit.
    """

    dim: int
    attack: str
    audit: Audit

    @property
    def system(self) -> str:
        """Name of the class of the audited system."""
        return type(self.audit.mechanism).__name__

    @property
    def known(self) -> type[System]:
        """Class of the audited system.

        The class has these attributes: `sound` (True if the claim is true), `fault` (description of
        the fault) and `source` (the paper).
        """
        return type(self.audit.mechanism)

    @property
    def sound(self) -> bool:
        """True if the claim of the audited system is known to be true."""
        return bool(self.known.sound)

    @property
    def true_loss(self) -> float:
        """Exact privacy loss between the two audited inputs.

        The loss is exact for an attacker who sees the whole output. For Laplace noise of scale b,
        the loss is the L1 distance between the two inputs, divided by b. The inputs are so small
        that the system does not clip them. For DPText, the loss is infinite.

        Source:
            Dwork and Roth (2014), theorem 3.6; Habernal (2022), theorem 3.2.
        """
        noise = self.audit.mechanism.steps(self.dim).noise
        law = facts_about_noise(noise)
        if law.cost is None:
            return math.nan
        pair = self.audit.pair
        entries = int((pair.x != pair.x_prime).sum())
        return law.cost(noise, distance(pair, law.norm), entries).epsilon


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every published system with each of three attacks.

    Args:
        config: options of the experiment, such as the number of draws.
        threads: number of threads. The default is one thread per core.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each number of entries, attack and system.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before dpcore has counted an output.

    Source:
        Habernal (2022), section 4, for the majority vote.

    Example:
        >>> result = run(Config(trials=10**5, dims=(2,)))
        >>> result.agreement(2), result.agreement(2, "vote")
        ((4, 4, 0, 5), (4, 4, 0, 5))
    """
    cells = list(product(config.dims, ATTACKS, SYSTEMS))
    work = partial(_audit_system, config, threads)
    rows, ended = run_jobs("published systems", cells, work, progress, size=_relative_run_time)
    return Result(config, rows, partial=ended)


def _audit_system(
    config: Config, threads: int | None, dim: int, attack: str, kind: type[System]
) -> Row:
    # The keys without an attack keep the seeds of the published audits.
    key = f"{kind.__name__}/{dim}" + (f"/{attack}" if attack != VOTE else "")
    options: Any = {"attack": ATTACKS[attack], "trials": config.counted(attack)}
    options |= {"claim": config.epsilon, "threads": threads}
    system = kind(config.epsilon)
    return Row(dim, attack, audit_cell(config, key, system, system.default_pair(dim), **options))


def _relative_run_time(cell: tuple[int, str, type[System]]) -> int:
    """Return the relative run time of an audit.

    The attacks that draw a tenth of the outputs take ten times as long as the majority vote.
    """
    dim, attack, _ = cell
    return dim if attack == VOTE else 10 * dim


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits of all published systems.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each number of entries of the inputs, attack and system.
    """

    rows: tuple[Row, ...]

    def at(self, dim: int) -> dict[str, dict[str, Row]]:
        """Return all audits on inputs with `dim` entries, as a dict of dicts.

        The keys of the outer dict are the names of the systems. The keys of the inner dicts are the
        names of the attacks.
        """
        rows = [row for row in self.rows if row.dim == dim]
        by_system = group_answers((row.system for row in rows), rows)
        return {
            name: {row.attack: row for row in rows_of_system}
            for name, rows_of_system in by_system.items()
        }

    def agreement(self, dim: int, attack: str | None = None) -> tuple[int, int, int, int]:
        """Count the systems whose claimed epsilon the audits refute.

        Args:
            dim: number of entries of the audited inputs.
            attack: name of an attack, a key of `ATTACKS` such as "vote". Only the audits of this
                attack are counted. By default, a claim is counted as refuted if at least one attack
                refutes the claim.

        Returns:
            Four counts: the refuted false claims, all false claims, the refuted true claims, and
            all true claims. Each audit can refute a true claim by chance, with a probability of at
            most `1 - confidence`. If true claims are refuted more often, the code probably contains
            an error.
        """
        hits: dict[bool, list[bool]] = {True: [], False: []}
        for rows in self.at(dim).values():
            asked = [row for row in rows.values() if attack in (None, row.attack)]
            if asked:
                hits[asked[0].sound].append(bool(refuting_attacks(asked)))
        return sum(hits[False]), len(hits[False]), sum(hits[True]), len(hits[True])

    def missed(self, dim: int) -> tuple[str, ...]:
        """Describe each false claim that at least one attack did not refute.

        The result has one sentence for each published system with such a claim. Each sentence also
        names the attacks that did refute the claim. `dim` is the number of entries of the inputs.
        """
        systems = [tuple(rows.values()) for rows in self.at(dim).values()]
        false = [rows for rows in systems if not rows[0].sound]
        return tuple(_describe_blind_attacks(r) for r in false if len(refuting_attacks(r)) < len(r))

    def table(self) -> str:
        """Return one text table for each number of entries of the inputs, with conclusions."""
        config = self.config
        lines = [
            f"Published systems, each claiming epsilon = {config.epsilon:g}, on their worst pairs: "
            "certified bounds,",
            f"each at {100 * config.confidence:g} % confidence on its own (Clopper-Pearson), seed "
            f"{config.seed}. A star: above the claim, which is refuted.",
        ]
        lines += [
            f"  {name:<14}  {config.counted(name):,} trials per side: {kind}"
            for name, kind in _ATTACK_DESCRIPTIONS.items()
        ]
        parts = [_format_dimension_part(self, dim) for dim in config.dims if self.at(dim)]
        return self.join_parts("\n".join(lines), *parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the results of all audits as a dict of plain data.

        The dict contains each audit in the format that `Audit.from_dict` reads.
        """
        rows = [
            {"system": row.system, "dim": row.dim, "attack": row.attack, "sound": row.sound}
            | {"fault": row.known.fault, "source": row.known.source, "true_loss": row.true_loss}
            | {"audit": row.audit.to_dict()}
            for row in self.rows
        ]
        agreement = {
            str(dim): _count_claims_by_truth(self, dim, None)
            | {"by_attack": {name: _count_claims_by_truth(self, dim, name) for name in ATTACKS}}
            for dim in self.config.dims
        }
        missed = {str(dim): list(self.missed(dim)) for dim in self.config.dims}
        return self.make_record(rows=rows, agreement=agreement, missed=missed)

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the bounds that each attack certifies, the exact loss and the claimed epsilon.

        Returns:
            A matplotlib figure, with one panel for each number of entries of the inputs.
        """
        picture = drawing.empty_figure(4.6, ax)
        panels = picture.subplots(1, len(self.config.dims), sharey=True, squeeze=False)[0]
        # Sound systems are on top, so the refuted ones should be exactly the lower group.
        order = sorted(SYSTEMS, key=lambda cls: not cls.sound)
        places = {cls.__name__: len(order) - 1 - i for i, cls in enumerate(order)}
        split = sum(not cls.sound for cls in order) - 0.5
        for axes, dim in zip(panels, self.config.dims, strict=True):
            for name, rows in self.at(dim).items():
                _draw_system_bounds(axes, places[name], rows, self.config.epsilon)
            _set_loss_axes(axes, len(places), self.config.epsilon)
            axes.axhline(split, color=INK, linewidth=0.6)
            axes.set_title(f"{dim} entries", fontsize=drawing.TEXT, loc="left")
        panels[0].set_yticks(list(places.values()), list(places))
        for text, middle in (("claim true", (split + len(order)) / 2), ("claim false", split / 2)):
            drawing.write_right_of(panels[-1], middle, text)
        label = "privacy loss epsilon (linear up to the claim, logarithmic beyond)"
        picture.supxlabel(label, fontsize=drawing.TEXT)
        drawing.add_legend(picture, _make_attack_legend(), 4, "upper")
        return restyle_figure(picture)


def refuting_attacks(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the names of the attacks that refute the claim of a system.

    `rows` contains the audits of this system, one for each attack.
    """
    return tuple(row.attack for row in rows if row.audit.refuted is True)


def _describe_blind_attacks(rows: tuple[Row, ...]) -> str:
    first, hit = rows[0], refuting_attacks(rows)
    blind = [_describe_measurable_loss(row) for row in rows if row.attack not in hit]
    refuters = f"refuted by {' and '.join(hit)}" if hit else "refuted by none of them"
    return (
        f"{first.system}: true loss {first.true_loss:.4g} at {first.dim} entries; "
        f"{'; '.join(blind)}; {refuters}; known: {first.known.fault}"
    )


def _describe_measurable_loss(row: Row) -> str:
    """Describe how much of the privacy loss an attack can measure.

    `row` contains an audit that did not refute a false claim.
    """
    visible, claim = row.audit.exact, row.audit.claimed_epsilon
    if visible is None or claim is None:
        return f"{row.attack} certifies {format_epsilon(row.audit.epsilon_lower)} of it"
    reach = "no number of trials helps" if visible <= claim else "more trials refute it"
    only = "only " if visible <= claim else ""
    return f"the {row.attack} sees {only}{format_epsilon(visible)} of it ({reach})"


_ATTACK_DESCRIPTIONS = {
    VOTE: "the papers' majority vote",
    "auto": "the default",
    "Coordinatewise": "declared: entries independent and alike (as they are here)",
}
_NOT_REFUTED_NOTE = (
    "Not refuted says what the attack sees, not that the claim holds. False claims that an attack "
    "left standing:"
)


def _format_dimension_part(result: Result, dim: int) -> str:
    columns = [
        Column("system", lambda rows: rows[VOTE].system, left=True),
        Column("claim is", lambda rows: "true" if rows[VOTE].sound else "false", left=True),
        Column("true loss", lambda rows: rows[VOTE].true_loss, format_epsilon),
        Column("vote can see", lambda rows: rows[VOTE].audit.exact, format_epsilon, missing="none"),
        *(Column(name, partial(_format_bound_starred_if_refuting, name)) for name in ATTACKS),
        Column("verdict", _format_refuting_attacks, left=True),
    ]
    agreed, broken, wrong, sound = result.agreement(dim)
    lines = [
        f"{dim} entries",
        align_columns(columns, result.at(dim).values()),
        f"Verdicts against the truth at {dim} entries: {agreed} of {broken} false claims "
        f"refuted, {wrong} of {sound} true claims refuted.",
    ]
    missed = result.missed(dim)
    if missed:
        lines.append(_NOT_REFUTED_NOTE)
        lines += [fill(line, 98, initial_indent="  ", subsequent_indent=4 * " ") for line in missed]
    return "\n".join(lines)


def _format_bound_starred_if_refuting(attack: str, rows: dict[str, Row]) -> str:
    """Format the certified bound of an attack, with a star if the attack refutes the claim."""
    if attack not in rows:
        return "- "
    audit = rows[attack].audit
    return f"{audit.epsilon_lower:.4f}{'*' if audit.refuted else ' '}"


def _format_refuting_attacks(rows: dict[str, Row]) -> str:
    hit = refuting_attacks(rows.values())
    if not hit:
        is_tested = any(row.audit.refuted is False for row in rows.values())
        return VERDICT_WORDS[False if is_tested else None]
    return "refuted by all" if len(hit) == len(ATTACKS) else f"refuted by {', '.join(hit)}"


def _count_claims_by_truth(result: Result, dim: int, attack: str | None) -> dict[str, int]:
    names = ("false_refuted", "false", "true_refuted", "true")
    return dict(zip(names, result.agreement(dim, attack), strict=True))


_ATTACK_OFFSETS = dict(zip(ATTACKS, (0.27, 0.0, -0.27), strict=True))
"""Vertical offset of each attack in the picture, relative to the position of the system."""

_ATTACK_MARKERS = dict(zip(ATTACKS, ("o", "s", "D"), strict=True))
_AXIS_END_IN_CLAIMS = 250.0
"""End of the horizontal axis, as a multiple of the claimed epsilon."""


def _draw_system_bounds(axes: drawing.Axes, place: int, rows: dict[str, Row], claim: float) -> None:
    right = _AXIS_END_IN_CLAIMS * claim
    for name, row in rows.items():
        height = place + _ATTACK_OFFSETS[name]
        # Markers are also filled or hollow, so that they can be distinguished without colour.
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
        drawing.draw_arrow(axes, 0.4 * right, right, place, 1.4)


def _set_loss_axes(axes: drawing.Axes, systems: int, claim: float) -> None:
    axes.set_xscale("symlog", linthresh=claim, linscale=1.2)
    for place in range(1, systems):
        axes.axhline(place - 0.5, color=GREY, linewidth=0.3, alpha=0.5)
    axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.2, zorder=1.5)
    axes.set(xlim=(0.0, _AXIS_END_IN_CLAIMS * claim), ylim=(-0.6, systems - 0.4))
    drawing.set_ticks(axes.xaxis, [claim * v for v in (0, 0.5, 1, 2, 5, 10, 30, 100)])
    drawing.style_axes(axes)
    axes.tick_params(axis="y", length=0)


def _make_attack_legend() -> list[Any]:
    names = {**{name: name for name in ATTACKS}, "vote": "the papers' vote"}
    return [
        *(
            drawing.make_line(text, marker=_ATTACK_MARKERS[name], markersize=4.0, linewidth=1.2)
            for name, text in names.items()
        ),
        drawing.make_line("claim", GREY, linestyle="--", linewidth=1.2),
        drawing.make_mark("certified, refutes the claim", RED, "o", 5.0),
        drawing.make_mark("certified, does not", BLUE, "o", 5.0, markerfacecolor=WHITE),
        drawing.make_mark("true loss", INK, "|", 9.0, markeredgewidth=1.8),
        drawing.make_mark("true loss infinite", INK, r"$\rightarrow$", 9.0, markeredgewidth=0.4),
    ]
