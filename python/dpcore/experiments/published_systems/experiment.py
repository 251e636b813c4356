"""The package's main job: are the claims of the published systems true?

Every class of `dpcore.published.SYSTEMS` is audited on its worst pair of inputs by three attacks,
first with 2 entries, where each of them refutes every false claim, then with 128. There the
majority vote of the papers is nearly blind to some of them and leaves two false claims standing,
which the attacks beside it refute: an audit that refutes nothing is not evidence of privacy.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...attacks import Auto, Coordinatewise, MajorityVote
from ...auditing.run import Audit
from ...errors import integer, real
from ...mechanisms.native import law_of
from ...mechanisms.systems import System
from ...pairs import distance
from ...published import SYSTEMS
from ...records import Shown
from ...report.text import format_epsilon
from ..running import SEED, Job, Tabled, check_config, check_list, require_own_config, run_audits

if TYPE_CHECKING:
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
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data; `Audit.from_dict` reads each audit."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds of every attack with the true loss and the claim.

        Returns:
            A matplotlib figure, one panel for each number of entries.
        """
        from .drawing import draw_figure

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
