"""The command line: `dpcore audit`, `dpcore plan`, `dpcore reproduce` and `dpcore info`.

Imported by the entry points alone: `import dpcore` does not pay for typer.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from .. import __version__
from ..hints import called_here
from . import help as texts
from . import options
from .asking import add_options
from .audits import run_audit
from .outputs import run_outputs_audit as run_outputs
from .planning import run_plan as run_plan
from .show import print_environment, print_experiments, print_systems, run_experiment
from .status import NOT_REFUTED, USAGE, Usage, report_bad_usage, run_guarded, write_line
from .tables import run_table_audit as run_table

app = typer.Typer(
    name="dpcore",
    help=texts.TOP_HELP,
    epilog=texts.TOP_EPILOG,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"dpcore {__version__}")
        raise typer.Exit(NOT_REFUTED)


@app.callback()
def _accept_top_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Accept the options of dpcore itself."""


@app.command("audit", help=texts.AUDIT_HELP, epilog=texts.AUDIT_EPILOG)
@add_options(options.AuditArguments)
def _run_audit(
    context: typer.Context,
    systems: options.Systems = False,
    *,
    asked: options.AuditArguments,
    traceback: options.Traceback = False,
) -> None:
    """Audit a system or a user's own mechanism, or list the systems."""

    def work() -> int:
        if systems:
            _refuse_ignored_options("--list", context, "systems", "as_json", "traceback")
            return print_systems(asked.as_json)
        return run_audit(asked, context.obj)

    raise typer.Exit(run_guarded(work, traceback))


@app.command("audit-outputs", help=texts.OUTPUTS_HELP, epilog=texts.OUTPUTS_EPILOG)
@add_options(options.OutputsArguments)
def _audit_outputs(
    context: typer.Context,
    *,
    asked: options.OutputsArguments,
    traceback: options.Traceback = False,
) -> None:
    """Audit outputs that were drawn elsewhere."""
    raise typer.Exit(run_guarded(lambda: run_outputs(asked, context.obj), traceback))


@app.command("audit-table", help=texts.TABLE_HELP, epilog=texts.TABLE_EPILOG)
@add_options(options.TableArguments)
def _audit_table(
    context: typer.Context,
    *,
    asked: options.TableArguments,
    traceback: options.Traceback = False,
) -> None:
    """Audit a mechanism with finitely many outputs exactly, from its table."""
    raise typer.Exit(run_guarded(lambda: run_table(asked, context.obj), traceback))


@app.command("plan", help=texts.PLAN_HELP, epilog=texts.PLAN_EPILOG)
@add_options(options.PlanArguments)
def _run_plan(asked: options.PlanArguments, traceback: options.Traceback = False) -> None:
    """Plan the number of trials, or canaries, that finds a violation."""
    raise typer.Exit(run_guarded(lambda: run_plan(asked), traceback))


@app.command("reproduce", help=texts.REPRODUCE_HELP, epilog=texts.REPRODUCE_EPILOG)
@add_options(options.ExperimentArguments)
def _run_reproduce_command(
    context: typer.Context,
    names: options.Names = False,
    *,
    asked: options.ExperimentArguments,
    traceback: options.Traceback = False,
) -> None:
    """Run an experiment, or list the experiments."""

    def work() -> int:
        if asked.name is None or names:
            what = "--list" if names else "without a name, dpcore reproduce"
            _refuse_ignored_options(what, context, "names", "as_json", "traceback")
            return print_experiments(asked.as_json)
        return run_experiment(asked)

    raise typer.Exit(run_guarded(work, traceback))


@app.command("info", help=texts.INFO_HELP, epilog=texts.INFO_EPILOG)
def _run_info_command(as_json: options.Json = False) -> None:
    """Show versions, CPU path and threads."""

    def work() -> int:
        with report_bad_usage():  # a DPCORE_CPU that this CPU lacks
            return print_environment(as_json)

    raise typer.Exit(run_guarded(work))


def _refuse_ignored_options(what: str, context: typer.Context, *allowed: str) -> None:
    """Refuse the options that a listing would ignore."""
    for key in context.params:
        source = context.get_parameter_source(key)
        if key not in allowed and source is not None and source.name != "DEFAULT":
            raise Usage(f"{what} only lists names, and takes no other option than --json")


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        args: the words after `dpcore`; None takes those of the process.

    Returns:
        The exit status: 0 not refuted, 1 refuted, 2 bad usage, 3 no verdict (rows that are
        not independent, or the mechanism or dpcore failed), 130 interrupted.

    Example:
        >>> main(["audit", "half-noise", "--epsilon", "1", "--dim", "0"])
        2
    """
    words = sys.argv[1:] if args is None else list(args)
    return run_guarded(lambda: _parse_words(words))


def _parse_words(words: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        # Not standalone: that mode exits with 1, our "refuted", on errors of its own.
        # The object that commands are handed is the line itself, which a report keeps.
        line = shlex.join(["dpcore", *words])
        status = command.main(words, prog_name="dpcore", standalone_mode=False, obj=line)
    except Exception as error:
        # The parser's own errors know their text and their status.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        text = " ".join(describe().split())
        context = getattr(error, "ctx", None)
        given = str(getattr(error, "option_name", "")).removeprefix("--").replace("-", "_")
        here = called_here(given, [one.name for one in context.command.params]) if context else None
        if here is not None:
            less = " (1 - alpha)" if given == "alpha" else ""
            text = f"No such option: --{given.replace('_', '-')} (did you mean --{here}{less}?)"
        if text:  # there is none where a call without words has shown the help
            write_line(f"error: {text}")
            write_line(f"hint: {context.command_path if context else 'dpcore'} --help")
        return USAGE
    return int(status or NOT_REFUTED)
