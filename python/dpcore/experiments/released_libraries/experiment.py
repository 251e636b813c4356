"""Experiment that audits mechanisms of released packages of differential privacy."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from ...errors import choice, flag, invalid, tag_error
from ...report.figures import BLUE, GREY, INK, ORANGE, RED, restyle_figure
from ...report.rows import format_epsilon
from ..base import Column, SeededSettings, align_columns, setting
from ..drawing import SMALL, Figure, add_legend, empty_figure, make_line, make_mark, style_axes
from ..running import Tabled, run_jobs, time_run
from .cases import PACKAGES, list_mechanisms
from .processes import audit_package
from .rows import NOT_REFUTED, VIOLATION, Row, read_row

NAME = "released-libraries"
RECORD_FORMAT: Final = "dpcore.released/1"

FOLDER: Final = Path("benches/released_libraries")
"""Folder with earlier results and Python environments, in a checkout of dpcore."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that audits mechanisms of released packages.

    Args:
        trials: largest number of outputs that an audit draws on each of the two inputs. The audits
            of most mechanisms draw fewer outputs.
        seed: int in [0, 2**63). Every audit gets a separate seed derived from this seed.
        packages: names of the audited packages on PyPI. The default is all packages.
        data: folder that contains two folders: `records` with the results of earlier runs, and
            `environments` with Python environments in which the packages are installed. The default
            is benches/released_libraries in the current folder.
        slow: True to include mechanisms whose audit is slow (SQL, k-means, Bingham).
        quick: True to audit only numpy and scipy, if `packages` is not given.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(packages=("numpy", "scipy")).packages
        ('numpy', 'scipy')
    """

    trials: int = 10**9
    packages: tuple[str, ...] = setting(PACKAGES, choice, PACKAGES, quick=("numpy", "scipy"))
    data: str | None = None
    slow: bool = setting(False, flag)
    quick: bool = False

    @property
    def folder(self) -> Path:
        """Folder with the results of earlier runs, and with Python environments.

        The packages that the experiment audits are installed in these environments. The folder is
        the option `data`, or the default folder if `data` is None.
        """
        return FOLDER if self.data is None else Path(self.data)


def read_records(folder: Path) -> tuple[Row, ...]:
    """Read the results of earlier audits from JSON files, sorted by package.

    Args:
        folder: folder with one JSON file for each package and version. If the folder does not
            exist, the result is empty.

    Raises:
        ValueError: if the field "format" in a file is not the name of the expected format.
    """
    rows: list[Row] = []
    for path in sorted(folder.glob("*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        if record.get("format") != RECORD_FORMAT:
            raise invalid(f"format of {path.name}", repr(RECORD_FORMAT), record.get("format"))
        rows += map(read_row, record["rows"])
    return tuple(sorted(rows, key=lambda row: PACKAGES.index(row.package)))


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit the mechanisms of all packages, with a separate process for each package.

    Args:
        config: options of the experiment, such as the names of the packages.
        threads: not used. The packages are audited one after another, each in one process.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The audits of this run, and the results of earlier runs.

    Raises:
        FileNotFoundError: if `config.data` is given, but contains neither a folder `records` nor a
            folder `environments`.
        KeyboardInterrupt: if the user presses Ctrl-C before all mechanisms of the first package are
            audited.

    Example:
        >>> result = run(Config(trials=2000, packages=("numpy",)))
        >>> {row.package for row in result.rows}
        {'numpy'}
    """
    folders = [config.folder / name for name in ("records", "environments")]
    if config.data is not None and not any(folder.is_dir() for folder in folders):
        text = f"data must be a folder with records or environments, got {str(config.folder)!r}"
        raise tag_error(FileNotFoundError(text), "data")
    environments = config.folder / "environments"
    place = environments if environments.is_dir() else None
    work = partial(
        audit_package, seed=config.seed, trials=config.trials, slow=config.slow, environments=place
    )
    rows, ended = run_jobs(
        "released libraries", config.packages, work, progress,
        size=lambda package: max(1, len(list_mechanisms(package, slow=config.slow))),
    )  # fmt: skip
    recorded = read_records(config.folder / "records")
    chosen = tuple(row for row in recorded if row.package in config.packages)
    return Result(config, tuple(row for group in rows for row in group), chosen, partial=ended)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of audits of released packages, from this run and from earlier runs.

    Args:
        config: options with which the experiment was run.
        rows: one result (`Row`) for each audited mechanism of this run.
        recorded: results of earlier runs, read from files. The packages of these results need not
            be installed.
    """

    rows: tuple[Row, ...]
    recorded: tuple[Row, ...] = field(default=())

    @property
    def shown(self) -> tuple[Row, ...]:
        """Results of the audits that the table shows, sorted by package.

        If this run audited a mechanism without a failure, the table shows the new result.
        Otherwise, the table shows the result of an earlier run, if there is one.
        """
        counted = {_row_key(row) for row in self.rows if not row.failure}
        recorded = {_row_key(row) for row in self.recorded}
        fresh = [row for row in self.rows if not row.failure or _row_key(row) not in recorded]
        older = [row for row in self.recorded if _row_key(row) not in counted]
        places = {name: place for place, name in enumerate(PACKAGES)}
        return tuple(sorted(fresh + older, key=lambda row: (places[row.package], row.version)))

    @property
    def differences(self) -> tuple[str, ...]:
        """Descriptions of all mechanisms whose verdict differs between this and an earlier run."""
        old = {_row_key(row): row.verdict for row in self.recorded}
        return tuple(
            f"{row.package} {row.version} {row.name}: {row.verdict}, recorded: {old[_row_key(row)]}"
            for row in self.rows
            if _row_key(row) in old and old[_row_key(row)] != row.verdict and not row.failure
        )

    def table(self) -> str:
        """Return the results of the audits as text, with the causes of refuted claims.

        The text also lists the verdicts that differ from earlier runs.
        """
        shown = self.shown
        verdicts = Counter(row.verdict for row in shown)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common())
        head = (
            f"{len(shown)} mechanisms of {len({row.package for row in shown})} released packages: "
            f"{counts}.\nCertified: lower bounds on epsilon on one pair, each at 95 % confidence "
            "on its own.\nA violation is refuted by two seeds at 99.9 %. Not refuted is not true."
        )
        causes = [_verdict_line(row) for row in shown if row.verdict not in (NOT_REFUTED, "failed")]
        failures = [f"{row.package} {row.name}: {row.failure}" for row in shown if row.failure]
        return self.join_parts(
            head,
            align_columns(_COLUMNS, shown),
            "Refuted, with the reason:\n" + "\n".join(causes) if causes else "",
            "Failed:\n" + "\n".join(failures) if failures else "",
            "Different from the records:\n" + "\n".join(self.differences)
            if self.differences
            else "",
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data (numbers, strings, lists and dicts)."""
        rows = [row.to_dict() for row in self.rows]
        return self.make_record(
            rows=rows,
            recorded=[row.to_dict() for row in self.recorded],
            differences=list(self.differences),
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bound against the claimed epsilon of each mechanism.

        Returns:
            A matplotlib figure, with one panel for each package.
        """
        return draw_bounds_against_claims(self.shown, ax)


def draw_bounds_against_claims(rows: tuple[Row, ...], ax: Any = None) -> Figure:
    """Draw the certified bound against the claimed epsilon of each audited mechanism.

    There is one panel for each package.

    Args:
        rows: results of the audits to draw. At least one result must contain a certified bound.
        ax: matplotlib figure or axes in which to draw, or None for a new figure.
    """
    counted = [row for row in rows if row.certified is not None and row.claim > 0]
    packages = [name for name in PACKAGES if any(row.package == name for row in counted)]
    columns = min(5, max(1, len(packages)))
    lines = max(1, math.ceil(len(packages) / columns))
    picture = empty_figure(0.7 + 1.35 * lines, ax)
    panels = picture.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    ends = [_SMALLEST_EPSILON, 1.3 * max([1.0, *(max(_claim_and_bound(row)) for row in counted)])]
    for place, axes in enumerate(panels.flat):
        if place >= len(packages):
            axes.set_visible(False)
            continue
        axes.plot(ends, ends, color=GREY, linewidth=0.8, linestyle="--")
        for row in counted:
            if row.package == packages[place]:
                height = max(row.certified or 0.0, _SMALLEST_EPSILON)
                axes.plot(row.claim, height, **_make_mark_style(row))
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        style_axes(axes, title=packages[place])
    picture.supxlabel("claimed epsilon", fontsize=SMALL)
    picture.supylabel("certified epsilon", fontsize=SMALL)
    entries = [
        make_mark("not refuted", BLUE, "o", 4.0, markerfacecolor="none"),
        make_mark("violation", RED, "o", 4.0),
        make_mark("misuse, or relation or release unclear", ORANGE, "s", 4.0),
        make_line("claim", GREY, linestyle="--", linewidth=0.8),
    ]
    add_legend(picture, entries, 4, "upper")
    return restyle_figure(picture)


_SMALLEST_EPSILON: Final = 0.01
"""Lower end of both axes. The picture shows smaller bounds at this value."""


def _claim_and_bound(row: Row) -> tuple[float, float]:
    return row.claim, row.certified or 0.0


def _make_mark_style(row: Row) -> dict[str, Any]:
    if row.verdict == VIOLATION:
        return {"marker": "o", "color": RED, "markersize": 4.0}
    if row.verdict == NOT_REFUTED:
        return {"marker": "o", "color": BLUE, "markersize": 4.0, "markerfacecolor": "none"}
    return {"marker": "s", "color": ORANGE, "markersize": 4.0, "markeredgecolor": INK}


def _row_key(row: Row) -> tuple[str, str, str]:
    return row.package, row.version, row.name


def _verdict_line(row: Row) -> str:
    cause = f" {row.cause}" if row.cause else ""
    loss = "" if row.true_loss is None else f" (true loss {format_epsilon(row.true_loss)})"
    return (
        f"{row.package} {row.version} {row.name}: {row.verdict}, refuted on this pair: "
        f"{row.pair}{loss}; {row.event or 'no event'}; {_format_event_counts_of_pair(row)}.{cause}"
    )


def _format_event_counts_of_pair(row: Row) -> str:
    if not row.hits:
        return "not counted"
    return f"{row.hits[0]:,} and {row.hits[1]:,} of {row.trials:,}"


def _format_claim(row: Row) -> str:
    return f"({row.claim:g}, {row.delta:g})" if row.delta else f"{row.claim:g}"


def _format_traced_verdict_and_loss(row: Row) -> str:
    loss = "" if row.traced_loss is None else f", {format_epsilon(row.traced_loss)}"
    return f"{row.traced}{loss}"


def _format_share(share: float) -> str:
    return f"{100 * share:.0f} %"


_MICROSECONDS: Final = 1e6

_COLUMNS: Final = (
    Column("package", lambda row: f"{row.package} {row.version}", left=True),
    Column("mechanism", "name", left=True),
    Column("claim", _format_claim),
    Column("certified", "certified", format_epsilon),
    Column("share", "share", _format_share),
    Column("verdict", "verdict", left=True),
    Column("rounding", "rounding", format_epsilon),
    Column("draws", "trials", lambda trials: f"{trials:,}"),
    Column("us a draw", "draw_seconds", lambda seconds: f"{_MICROSECONDS * seconds:.3g}"),
    Column("trace", _format_traced_verdict_and_loss, left=True),
    Column("line", "traced_line", left=True),
    Column("event", "event", left=True),
)
