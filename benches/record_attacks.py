"""Measure what attacks certify, and write the table that is kept in benches/record.

Usage: python benches/record_attacks.py [--quick] [--seeds 5] [--only NAME] [--full]
       python benches/record_attacks.py --twins N [--quick] [--only NAME]

Without options it writes benches/record/attacks.md. `--full` takes the trials of
`dpcore reproduce dp-sniper-table` for its mechanisms, not a fiftieth, `--quick` a tenth and one
seed, `--only` the rows whose names match a pattern; both print the table and write nothing, unless
`--out` names a file. `--twins N` audits the private twins N times instead, each on a tenth of the
trials, and counts how many are refuted.
"""

from __future__ import annotations

import argparse
import datetime
import fnmatch
import math
import pathlib
import platform
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from typing import Any

from faults import FAULTS
from leaks import LEAKS, Leak, expert_bound
from scipy import stats

import dpcore
from dpcore.attacks import Auto, Classifier
from dpcore.experiments.dp_sniper_table import TRIALS
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS

FIRST_SEED = 2_600_001
"""No test uses this seed or one of the next thousands."""

_SNIPER_DIVISOR = 50
_PILOT_SHARE = 0.4
_SLACK = 0.1
"""A median bound beyond the true loss by more is an error of the record."""
_LEAST_DROP = 0.03
"""A share of the bound: a smaller drop is no use of a member."""
_ALPHA = 1e-4
"""Significance of the binomial test of false alarms."""


@dataclass(frozen=True)
class Row:
    """A mechanism of the record.

    Args:
        section: heading under which it stands.
        leak: the mechanism, its pair or pairs, claim, trials and true loss.
        confidence: confidence of its bounds.
        pilot: pilot draws for each counted one; None is the default of `dpcore.audit`.
        published: best bound that DP-Sniper published, at the trials of its authors.
        twin_claim: claim that holds for the twin; inf where there is no twin.
    """

    section: str
    leak: Leak
    confidence: float = 0.95
    pilot: float | None = None
    published: float | None = None
    twin_claim: float = 1.0


@dataclass(frozen=True)
class Cell:
    """Bounds of one attack on one mechanism, one for each seed.

    Args:
        bounds: certified bounds; 0 where the audit raised an error.
        seconds: seconds of CPU time of each audit.
        error: class of the first error, or "".
        checks: audits whose rows were found to be dependent.
        refuted: audits that refuted the claim.
    """

    bounds: tuple[float, ...]
    seconds: tuple[float, ...]
    error: str
    checks: int
    refuted: int

    @property
    def median(self) -> float:
        """The median of the bounds."""
        return statistics.median(self.bounds)

    def __str__(self) -> str:
        """The median with the error, if there was one."""
        return f"{self.median:.3g}" + (f" ({self.error})" if self.error else "")


def make_rows(pattern: str, quick: bool, full: bool) -> list[Row]:
    """Return the rows of the record whose names match a pattern."""
    rows = [Row("Leaks through one part", leak) for leak in LEAKS]
    rows += [_make_sniper_row(name, 1 if full else _SNIPER_DIVISOR) for name in BENCHMARKS]
    rows += [Row("Ordinary faults", fault) for fault in FAULTS]
    found = [row for row in rows if fnmatch.fnmatch(row.leak.name.lower(), pattern.lower())]
    if not found:
        raise SystemExit(f"--only must match a row, got {pattern}")
    return [_divide_trials(row, 10) for row in found] if quick else found


def _make_sniper_row(name: str, divisor: int) -> Row:
    entry = BENCHMARKS[name]
    leak = Leak(
        name=name,
        output=(entry.mechanism.__doc__ or "").splitlines()[0].rstrip("."),
        mechanism=entry.mechanism,
        pair=list(entry.pairs),  # type: ignore[arg-type]
        claim=entry.claim,
        trials=TRIALS[name] // divisor,
        expert=len,  # type: ignore[arg-type]
        twin=entry.mechanism,
        loss=entry.supremum,
    )
    # At a claim of its exact loss a mechanism is its own private twin.
    return Row("DP-Sniper's mechanisms", leak, 0.9, _PILOT_SHARE, entry.dp_sniper_best, leak.loss)


def _divide_trials(row: Row, divisor: int) -> Row:
    return replace(row, leak=replace(row.leak, trials=row.leak.trials // divisor))


def run_audits(row: Row, attack: Any, seeds: Iterable[int]) -> Cell:
    """Audit a mechanism once for each seed."""
    leak, found, error = row.leak, [], ""
    for seed in seeds:
        begun = time.process_time()
        audit = None
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                audit = dpcore.audit(
                    leak.mechanism,
                    leak.pair,
                    attack=attack,
                    trials=leak.trials,
                    pilot=None if row.pilot is None else int(row.pilot * leak.trials),
                    claim=leak.claim,
                    delta=leak.delta,
                    confidence=row.confidence,
                    rng=seed,
                    progress=False,
                )
        except Exception as problem:
            error = error or type(problem).__name__
        found.append((audit, time.process_time() - begun))
    audits = [audit for audit, _ in found if audit is not None]
    return Cell(
        tuple(0.0 if audit is None else audit.epsilon_lower for audit, _ in found),
        tuple(seconds for _, seconds in found),
        error,
        sum(bool(audit.checks) for audit in audits),
        sum(audit.refuted is True for audit in audits),
    )


def require_sound(row: Row, bound: float, source: str) -> None:
    """Raise AssertionError if a median bound lies beyond the true loss."""
    limit = (1 + _SLACK) * row.leak.loss + _SLACK
    assert 0 <= bound <= limit, f"{row.leak.name}: {source} certified {bound}, loss {row.leak.loss}"


def measure_row(row: Row, seeds: Sequence[int]) -> tuple[Cell, Cell, float | None]:
    """Return what `auto`, boosted trees and the expert certify."""
    auto = run_audits(row, Auto(), seeds)
    boosted = run_audits(row, Auto(members=(Classifier("boosting"),)), seeds[:1])
    expert = None
    if row.published is None:
        expert = statistics.median(expert_bound(row.leak, seed) for seed in seeds)
        require_sound(row, expert, "the expert")
    require_sound(row, auto.median, "auto")
    require_sound(row, boosted.median, "boosted trees")
    return auto, boosted, expert


def _format_row(row: Row, auto: Cell, boosted: Cell, expert: float | None) -> str:
    leak = row.leak
    known = row.published if expert is None else expert
    share = auto.median / known if known else math.nan
    cells = (
        f"`{leak.name}`: {leak.output}",
        f"{leak.trials:,}",
        f"{leak.loss:.3g}",
        f"{known:.3g}",
        str(auto),
        f"{100 * share:.0f} %",
        str(boosted),
        f"{statistics.median(auto.seconds):.1f}",
        f"{statistics.median(boosted.seconds):.1f}",
    )
    return "| " + " | ".join(cells) + " |"


def format_tables(
    rows: Sequence[Row], seeds: Sequence[int], pool: Executor
) -> tuple[list[str], dict[str, Cell]]:
    """Return the lines of the tables, and what `auto` certified of each row."""
    lines: list[str] = []
    found: dict[str, Cell] = {}
    measured = {}
    for row, cells in zip(rows, pool.map(measure_row, rows, repeat(seeds)), strict=True):
        measured[row.leak.name] = cells
        print(_format_row(row, *cells), file=sys.stderr, flush=True)
    for section in dict.fromkeys(row.section for row in rows):
        known = "published" if section.startswith("DP-Sniper") else "expert"
        lines += ["", f"## {section}", ""]
        lines.append(
            f"| output | trials | true loss | {known} | certified | share | boosted trees "
            "| s | s, trees |"
        )
        lines.append("| --- " + "| ---: " * 8 + "|")
        for row in (row for row in rows if row.section == section):
            auto, boosted, expert = measured[row.leak.name]
            found[row.leak.name] = auto
            lines.append(_format_row(row, auto, boosted, expert))
    return lines, found


def format_members(
    rows: Sequence[Row], found: dict[str, Cell], seeds: Sequence[int], pool: Executor
) -> list[str]:
    """Return the lines that state what is lost without each member of `auto`."""
    lines = [
        "",
        "## Without one member",
        "",
        "The rows that lose most, as shares of what all members certify. The first seed alone "
        "decides where a drop is looked for; the drop is the median of all seeds.",
        "",
        "| member | largest drops |",
        "| --- | --- |",
    ]
    drops: dict[str, list[tuple[float, str]]] = {str(member): [] for member in Auto().members}
    full = [found[row.leak.name] for row in rows]
    for of_row in pool.map(measure_drops, rows, full, repeat(seeds)):
        for member, share, text in of_row:
            drops[member].append((share, text))
    for member, of_member in drops.items():
        worst = "; ".join(text for _, text in sorted(of_member, reverse=True)[:4])
        lines.append(f"| `{member}` | {worst or f'none above {100 * _LEAST_DROP:.0f} %'} |")
    idle = ", ".join(f"`{member}`" for member, of_member in drops.items() if not of_member)
    return [*lines, "", f"Members that change nothing: {idle or 'none'}."]


def measure_drops(row: Row, full: Cell, seeds: Sequence[int]) -> list[tuple[str, float, str]]:
    """Return the members without which the bound of a row drops, and by which share.

    Members are left out by halves: where the bound stays without a half, it needs none of them.
    """
    members, found = Auto().members, []
    groups = [range(len(members))] if full.bounds[0] > 0 else []
    while groups:
        group = groups.pop()
        rest = Auto(members=tuple(one for i, one in enumerate(members) if i not in group))
        if rest.members and (
            run_audits(row, rest, seeds[:1]).bounds[0] >= (1 - _LEAST_DROP / 2) * full.bounds[0]
        ):
            continue
        if len(group) > 1:
            groups += [group[: len(group) // 2], group[len(group) // 2 :]]
            continue
        after = run_audits(row, rest, seeds).median
        if full.median > 0 and after < (1 - _LEAST_DROP) * full.median:
            share = 1 - after / full.median
            text = f"`{row.leak.name}` {100 * share:.0f} % ({full.median:.3g} to {after:.3g})"
            found.append((str(members[group[0]]), share, text))
    return found


def format_twins(rows: Sequence[Row], audits: int, pool: Executor) -> tuple[list[str], int]:
    """Return the table of false alarms, and the number of rows with too many.

    Args:
        rows: rows of the record, with the trials of the leak.
        audits: audits of each twin.
        pool: processes that run the audits.
    """
    seeds = range(FIRST_SEED, FIRST_SEED + audits)
    rows = [row for row in rows if not math.isinf(row.twin_claim)]
    twins = [_make_twin(row) for row in rows]
    lines = [
        "",
        f"{audits} audits of each private twin on a tenth of the trials. The test is exact "
        f"binomial, one-sided, at a significance of {_ALPHA:g}; dependent: audits whose rows were "
        "found to depend on each other, of which each is a false alarm too.",
        "",
        "| twin | trials | claim | refuted | allowed | dependent | error |",
        "| --- " + "| ---: " * 6 + "|",
    ]
    failed = 0
    cells = pool.map(run_audits, twins, repeat(Auto()), repeat(seeds))
    for twin, cell in zip(twins, cells, strict=True):
        allowed = int(stats.binom.isf(_ALPHA, audits, 1 - twin.confidence))
        bad = cell.refuted > allowed or cell.checks > 0
        failed += bad
        lines.append(
            f"| `{twin.leak.name}`{' FAILS' if bad else ''} | {twin.leak.trials:,} "
            f"| {twin.twin_claim:.3g} | {cell.refuted} | {allowed} | {cell.checks} "
            f"| {cell.error or '-'} |"
        )
        print(lines[-1], file=sys.stderr, flush=True)
    return lines, failed


def _make_twin(row: Row) -> Row:
    leak = replace(row.leak, mechanism=row.leak.twin, claim=row.twin_claim)
    return _divide_trials(replace(row, leak=leak), 10)


def format_head(title: str, seeds: Sequence[int]) -> list[str]:
    """Return the lines that state machine, date, commit and seeds."""
    return [
        f"# {title}: {_find_cpu()}",
        "",
        f"{datetime.date.today()}, dpcore {dpcore.__version__}, commit {_find_commit()}, path "
        f"`{dpcore._core.cpu()}`, Python {platform.python_version()}, seeds {seeds[0]} to "
        f"{seeds[-1]}.",
    ]


def _find_cpu() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown CPU"
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]}, {len(names)} cores" if names else "unknown CPU"


def _find_commit() -> str:
    def git(*arguments: str) -> str:
        here = pathlib.Path(__file__).parent
        done = subprocess.run(["git", *arguments], cwd=here, capture_output=True, text=True)
        return done.stdout.strip()

    changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
    return (git("rev-parse", "--short", "HEAD") or "unknown") + changed


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the trials, one seed")
    parser.add_argument("--full", action="store_true", help="all trials for DP-Sniper's rows")
    parser.add_argument("--seeds", type=int, default=5, help="audits of which a median is taken")
    parser.add_argument("--only", default="*", metavar="NAME", help="name or pattern of rows")
    parser.add_argument("--twins", type=int, default=0, metavar="N", help="audits of each twin")
    parser.add_argument("--jobs", type=int, help="processes; default: one for each core")
    parser.add_argument("--out", type=pathlib.Path, help="file of the table")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write; return the exit code."""
    settings = parse_arguments(arguments)
    rows = make_rows(settings.only, settings.quick, settings.full)
    failed, out = 0, settings.out
    pool = ProcessPoolExecutor(settings.jobs, get_context("spawn"))
    if settings.twins:
        lines, failed = format_twins(rows, settings.twins, pool)
        head = format_head("False alarms", range(FIRST_SEED, FIRST_SEED + settings.twins))
    else:
        seeds = range(FIRST_SEED, FIRST_SEED + (1 if settings.quick else settings.seeds))
        lines, found = format_tables(rows, seeds, pool)
        lines += format_members(rows, found, seeds, pool)
        head = [*format_head("What attacks certify", seeds), "", *_EXPLAINED]
        if out is None and not settings.quick and settings.only == "*":
            out = pathlib.Path(__file__).parent / "record" / "attacks.md"
    pool.shutdown()
    text = "\n".join([*head, *lines, ""])
    if out is None:
        print(text)
    else:
        out.write_text(text)
    return int(failed > 0)


_EXPLAINED = (
    "Remade by `python benches/record_attacks.py`. Medians over the seeds; confidence .95, .9 for",
    'DP-Sniper\'s mechanisms. certified: `attack="auto"`. expert: Clopper-Pearson, on as many',
    "trials, for the event that somebody counts who knows the mechanism; it need not be the best",
    "event. published: DP-Sniper's better bound, on 2e8 trials. share: certified over expert or",
    'published. boosted trees: `Auto(members=(Classifier("boosting"),))` on the first seed. s:',
    "seconds of CPU time. An error in brackets ended an audit, which then counts as 0.",
)

if __name__ == "__main__":
    sys.exit(main())
