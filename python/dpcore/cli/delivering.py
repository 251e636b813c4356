"""Output of a report: to stdout as text or JSON, into a picture, onto a page."""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

from ..auditing.run import Audit
from ..published import is_native
from ..recorded.run import OutputsAudit
from ..report.style import use_own_style
from ..tables.run import TableAudit
from .options import AuditArguments, OutputsArguments, TableArguments
from .status import Usage, write_line

__all__ = ["check_folder", "check_plot", "deliver_outputs", "deliver_report"]


def check_plot(path: Path) -> None:
    """Raise an error before the audit if a picture cannot be saved."""
    from matplotlib.backend_bases import FigureCanvasBase

    kinds = sorted(FigureCanvasBase.get_supported_filetypes())
    if path.suffix.lower().lstrip(".") not in kinds:
        raise Usage(f"--plot must end in one of .{', .'.join(kinds)}, got {path}")
    check_folder("--plot", path)


def check_folder(option: str, path: Path) -> None:
    """Raise an error if a file could not be written there."""
    if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise Usage(f"{option} must name a file in a folder that can be written to, got {path}")


def deliver_report(asked: AuditArguments, report: Audit) -> None:
    """Print a report, and save the requested files."""
    if asked.as_json:
        # A callable is kept by name, so that what is printed is just what from_json reads.
        plain = report if is_native(report.mechanism) else replace(report, mechanism=report.name)
        sys.stdout.write(plain.to_json() + "\n")
    else:
        _print_report(report)
    _save_files(asked, report)


def deliver_outputs(
    asked: OutputsArguments | TableArguments, report: OutputsAudit | TableAudit
) -> None:
    """Deliver the report on recorded outputs, or on a table."""
    if asked.as_json:
        sys.stdout.write(report.to_json() + "\n")
    else:
        _print_report(report)
    _save_files(asked, report)


def _save_files(
    asked: AuditArguments | OutputsArguments | TableArguments,
    report: Audit | OutputsAudit | TableAudit,
) -> None:
    if asked.plot is not None:
        sys.stdout.flush()
        with use_own_style() as picture:
            report.plot(ax=picture)
            picture.savefig(asked.plot)
        write_line(f"wrote {asked.plot}")
    if asked.html is not None:
        report.to_html(asked.html)
        write_line(f"wrote {asked.html}")


def _print_report(report: Audit | OutputsAudit | TableAudit) -> None:
    from rich.console import Console

    console = Console(highlight=False, soft_wrap=True)
    for number, line in enumerate(str(report).splitlines()):
        style = "bold" if number == 0 else ""
        if line.startswith("  verdict "):
            # A claim that stands is no pass mark: neither green nor bold.
            style = {True: "bold red", False: "", None: "bold yellow"}[report.refuted]
        console.print(line, style=style, markup=False, emoji=False)
