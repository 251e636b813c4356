"""Mechanisms with a larger certified bound on a searched pair of inputs than on usual pairs.

StatDP and DP-Sniper are two published tools that audit mechanisms on fixed patterns of input pairs.
For some mechanisms, the pair with the largest privacy loss is not among these patterns. An audit
that uses only the fixed patterns then cannot certify the full loss, even with very many outputs.
The experiment compares the usual patterns with a pair that dpcore searches.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from ..bounds import BoundName
from ..pairs import Box, Linf, distance, search
from ..report.figures import BLUE, GREY, INK, WHITE, restyle_figure
from ..report.rows import format_epsilon
from ..report.shown import Shown
from ..results.audits import Audit
from .base import Column, SeededSettings, align_columns
from .dp_sniper_table import exact_supremum
from .dp_sniper_table.mechanisms import BENCHMARKS
from .drawing import SMALL, Figure, empty_figure, style_axes
from .running import Tabled, audit_cell, run_jobs, time_run

NAME = "searched-pairs"
MECHANISMS: Final = ("ReportNoisyMax1", "SVT1")
_QUERY_BOUND: Final = 30.0
"""The search uses inputs with entries in [-30, 30]. Larger entries would not change the loss."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that compares usual input pairs with pairs that a search finds.

    Args:
        trials: number of outputs that each audit draws on each of the two inputs.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        confidence: probability with which each certified bound holds. The probability that all
            bounds are true at once may be smaller than `confidence`.
        bound: name of the method that computes the certified bound from the counted outputs, as in
            `dpcore.audit`.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e6").trials
        1000000
    """

    trials: int = 10**8
    confidence: float = 0.9
    bound: BoundName = "exact"


class _PairAudit(NamedTuple):
    """Audit of one mechanism on one pair of inputs, and the exact loss on this pair."""

    name: str
    kind: str
    audit: Audit
    exact: float


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Two audits of one mechanism: on a usual pair of inputs, and on a pair that a search found.

    Args:
        name: name of the mechanism.
        usual: audit on one of the input pairs that other audit tools use. The audit chose the pair
            with the largest expected bound.
        searched: audit on the input pair that a search of dpcore found.
    """

    name: str
    usual: Audit
    searched: Audit

    def pair_loss(self, report: Audit) -> float:
        """Compute the exact privacy loss between the two inputs of the audit `report`."""
        return exact_supremum(self.name, (report.pair,))

    @property
    def audits(self) -> list[_PairAudit]:
        """The two audits of this mechanism, each with the exact loss between its two inputs."""
        both = (("usual", self.usual), ("searched", self.searched))
        return [_PairAudit(self.name, kind, audit, self.pair_loss(audit)) for kind, audit in both]


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit every mechanism on usual pairs of inputs, and on a pair that a search finds.

    Args:
        config: options of the experiment, such as the number of draws.
        threads: number of threads. The default is 2.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Row` for each mechanism.

    Raises:
        KeyboardInterrupt: if the user presses Ctrl-C before the first mechanism is completed.

    Source:
        The usual pairs are from Ding et al. (2018), section 5.2, and Bichsel et al. (2021).

    Example:
        >>> result = run(Config(trials=20_000))
        >>> [row.name for row in result.rows]
        ['ReportNoisyMax1', 'SVT1']
    """
    work = partial(_audit_both_pairs, config, threads)
    rows, ended = run_jobs("searched pairs", MECHANISMS, work, progress)
    return Result(config, rows, partial=ended)


def _audit_both_pairs(config: Config, threads: int | None, name: str) -> Row:
    benchmark = BENCHMARKS[name]
    # The losses of pairs differ by a few per cent. To distinguish them, the search needs as many
    # draws as an audit needs to certify a loss.
    budget = max(2**14, 2 * config.trials)
    box = Box(-_QUERY_BOUND, _QUERY_BOUND, len(benchmark.pairs[0].x))
    plan = search(box, Linf(1.0), budget=budget)
    options = {"claim": benchmark.claim, "bound": config.bound}
    options["threads"] = 2 if threads is None else threads
    audits = [
        audit_cell(config, f"{benchmark.name}/{kind}", benchmark.mechanism, pair, **options)
        for kind, pair in (("usual", benchmark.pairs), ("searched", plan))
    ]
    return Row(benchmark.name, *audits)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the audits of all mechanisms, on usual pairs and on pairs that a search found.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each mechanism.
    """

    rows: tuple[Row, ...]

    def table(self) -> str:
        """Return the results of the audits of all mechanisms as a text table."""
        config = self.config
        return self.join_parts(
            f"Searched pairs: {config.trials:,} trials per side, seed {config.seed}, "
            f"{100 * config.confidence:g} % confidence ({config.bound})",
            align_columns(_COLUMNS, [line for row in self.rows for line in row.audits]),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        rows = [
            {"mechanism": row.name}
            | {
                kind: audit.to_dict() | {"exact_loss": exact}
                for _, kind, audit, exact in row.audits
            }
            for row in self.rows
        ]
        return self.make_record(rows=rows)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bound and the exact loss for each mechanism and pair of inputs."""
        picture = empty_figure(0.9 + 0.9 * len(self.rows), ax)
        axes = picture.subplots()
        ticks: dict[float, str] = {}
        for place, row in enumerate(reversed(self.rows)):
            for shift, (name, kind, report, exact) in zip((0.2, -0.2), row.audits, strict=True):
                at = place + shift
                ticks[at] = f"{name}, {kind} pair"
                axes.barh(at, report.epsilon_lower, height=0.34, color=BLUE)
                axes.plot([exact], [at], "D", color=INK, markersize=4.0)
                text = format_epsilon(report.epsilon_lower)
                axes.text(0.002, at, text, va="center", color=WHITE, fontsize=SMALL)
        claim = self.rows[0].usual.claimed_epsilon or 0.0
        axes.axvline(claim, color=GREY, linestyle="--", linewidth=1.0)
        axes.set_yticks(list(ticks), list(ticks.values()))
        axes.set_xlim(0.0, 1.1 * claim)
        style_axes(axes, "certified epsilon (bar), exact loss on that pair (diamond), claim (line)")
        return restyle_figure(picture)


def _format_input_and_difference(report: Audit) -> str:
    """Format the pair of an audit: the input x, and the difference x' - x."""
    x, apart = report.pair.x, distance(report.pair, "linf")
    edge: dict[str, Any] = {"precision": 2, "suppress_small": True, "separator": " "}
    steps = np.array2string(report.pair.x_prime - x, **edge).replace("\n", "")
    return f"{np.array2string(x, **edge)} change {steps} (Linf {apart:.3g})".replace("\n", "")


_COLUMNS: Final = (
    Column("mechanism", "name", left=True),
    Column("claim", "audit.claim", "g"),
    Column("pairs", "kind", left=True),
    Column("certified", "audit.epsilon_lower", format_epsilon),
    Column("exact loss", "exact", format_epsilon),
    Column("pair", "audit", _format_input_and_difference, left=True),
)
