"""The package's main job: are the claims of the published systems true?

Every class of `dpcore.published.SYSTEMS` is audited on its worst pair of inputs, first with 2
entries, where the majority vote refutes every false claim, then with 128, where it is nearly
blind to some of them: an audit that refutes nothing is not evidence of privacy.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ...auditing.run import Audit
from ...errors import integer, real
from ...mechanisms.native import law_of
from ...pairs import distance
from ...published import SYSTEMS
from ...records import Shown
from ...report.text import epsilon
from ..running import SEED, Job, Tabled, check, listed, own, run_audits

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "published-systems"
CLASSES = {cls.__name__: cls for cls in SYSTEMS}
"""The published systems by name."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """What to audit, and how long.

    Args:
        trials: draws on each side of every audit.
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

    def __post_init__(self) -> None:
        """Check the fields."""
        check(self)
        level = real("epsilon", self.epsilon, low=0.0, open_low=True)
        object.__setattr__(self, "epsilon", level)
        dims = listed("dims", self.dims, lambda dim: integer("dims", dim, 2))
        object.__setattr__(self, "dims", dims)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One system at one number of entries.

    Args:
        dim: entries of the inputs.
        audit: what was counted.
    """

    dim: int
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
    """Audit every published system.

    Args:
        config: what to audit, and how long.
        threads: number of threads, None for all cores.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each system and number of entries.

    Raises:
        KeyboardInterrupt: on Ctrl-C before anything was counted.

    Source:
        The attack: Habernal (2022), section 4.

    Example:
        >>> result = run(Config(trials=10**5, dims=(2,)))
        >>> result.agreement(2)
        (4, 4, 0, 5)
    """
    own(config, __name__)
    begun = time.perf_counter()
    cells = [(dim, cls(config.epsilon)) for dim in config.dims for cls in SYSTEMS]
    jobs = [
        Job(system, system.default_pair(dim), config.epsilon, f"{type(system).__name__}/{dim}")
        for dim, system in cells
    ]
    audits, partial = run_audits("published systems", jobs, config, threads, progress)
    rows = tuple(Row(dim, audit) for (dim, _), audit in zip(cells, audits, strict=False))
    return Result(config, rows, partial, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The audits, system by system.

    Args:
        config: what was asked for.
        rows: one for each system and number of entries.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def at(self, dim: int) -> tuple[Row, ...]:
        """The rows with that number of entries."""
        return tuple(row for row in self.rows if row.dim == dim)

    def agreement(self, dim: int) -> tuple[int, int, int, int]:
        """How the verdicts compare with the truth.

        Args:
            dim: number of entries.

        Returns:
            False claims refuted, false claims, true claims refuted (an error, unless a bound
            failed by the chance that its confidence leaves it), true claims.
        """
        rows = self.at(dim)
        broken = [row.audit.refuted is True for row in rows if not row.sound]
        sound = [row.audit.refuted is True for row in rows if row.sound]
        return sum(broken), len(broken), sum(sound), len(sound)

    def missed(self, dim: int) -> tuple[str, ...]:
        """For each false claim that was not refuted, one line: which, why, what is known."""
        return tuple(
            _miss(row) for row in self.at(dim) if not row.sound and row.audit.refuted is not True
        )

    def table(self) -> str:
        """The figures as text: a table for each number of entries, then what it means."""
        from .text import text

        return text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data; each audit can be read back by `Audit.from_dict`."""
        from .text import plain

        return plain(self)

    def plot(self) -> Figure:
        """The certified bounds as bars, beside the closed form and the claim.

        Returns:
            A matplotlib figure, one panel for each number of entries.
        """
        from .drawing import figure

        return figure(self)


def _miss(row: Row) -> str:
    seen, claim = row.audit.exact, row.audit.claim
    if seen is None or claim is None:
        return f"{row.system}: {CLASSES[row.system].fault}"
    sees = f"the vote sees {'only ' if seen <= claim else ''}{epsilon(seen)} of its true loss"
    reach = "no number of trials helps" if seen <= claim else "more trials refute it"
    return (
        f"{row.system}: {sees} {row.true_loss:.4g} at {row.dim} entries ({reach}); "
        f"known: {CLASSES[row.system].fault}"
    )
