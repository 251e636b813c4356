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
from .asking import asking
from .audits import run
from .outputs import run as run_outputs
from .planning import run as run_plan
from .show import environment, experiment, experiments_list, systems_list
from .status import NOT_REFUTED, USAGE, Usage, guard, say, usage
from .tables import run as run_table

app = typer.Typer(
    name="dpcore",
    help=texts.TOP,
    epilog=texts.TOP_END,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dpcore {__version__}")
        raise typer.Exit(NOT_REFUTED)


@app.callback()
def _top(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Options of dpcore itself."""


@app.command("audit", help=texts.AUDIT, epilog=texts.AUDIT_END)
@asking(options.Asked)
def _audit(
    context: typer.Context,
    systems: options.Systems = False,
    *,
    asked: options.Asked,
    traceback: options.Traceback = False,
) -> None:
    """Audit a system or a user's own mechanism, or list the systems."""

    def work() -> int:
        if systems:
            _alone("--list", context, "systems", "as_json", "traceback")
            return systems_list(asked.as_json)
        return run(asked, context.obj)

    raise typer.Exit(guard(work, traceback))


@app.command("audit-outputs", help=texts.OUTPUTS, epilog=texts.OUTPUTS_END)
@asking(options.AskedOutputs)
def _audit_outputs(
    context: typer.Context,
    *,
    asked: options.AskedOutputs,
    traceback: options.Traceback = False,
) -> None:
    """Audit outputs that were drawn elsewhere."""
    raise typer.Exit(guard(lambda: run_outputs(asked, context.obj), traceback))


@app.command("audit-table", help=texts.TABLE, epilog=texts.TABLE_END)
@asking(options.AskedTable)
def _audit_table(
    context: typer.Context,
    *,
    asked: options.AskedTable,
    traceback: options.Traceback = False,
) -> None:
    """Audit a mechanism with finitely many outputs exactly, from its table."""
    raise typer.Exit(guard(lambda: run_table(asked, context.obj), traceback))


@app.command("plan", help=texts.PLAN, epilog=texts.PLAN_END)
@asking(options.AskedPlan)
def _plan(asked: options.AskedPlan, traceback: options.Traceback = False) -> None:
    """How many trials, or canaries, find a violation."""
    raise typer.Exit(guard(lambda: run_plan(asked), traceback))


@app.command("reproduce", help=texts.REPRODUCE, epilog=texts.REPRODUCE_END)
@asking(options.AskedExperiment)
def _reproduce(
    context: typer.Context,
    names: options.Names = False,
    *,
    asked: options.AskedExperiment,
    traceback: options.Traceback = False,
) -> None:
    """Run an experiment, or list the experiments."""

    def work() -> int:
        if asked.name is None or names:
            what = "--list" if names else "without a name, dpcore reproduce"
            _alone(what, context, "names", "as_json", "traceback")
            return experiments_list(asked.as_json)
        return experiment(asked)

    raise typer.Exit(guard(work, traceback))


@app.command("info", help=texts.INFO, epilog=texts.INFO_END)
def _info(as_json: options.Json = False) -> None:
    """Show versions, CPU path and threads."""

    def work() -> int:
        with usage():  # a DPCORE_CPU that this CPU lacks
            return environment(as_json)

    raise typer.Exit(guard(work))


def _alone(what: str, context: typer.Context, *allowed: str) -> None:
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
    return guard(lambda: _parse(words))


def _parse(words: list[str]) -> int:
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
            say(f"error: {text}")
            say(f"hint: {context.command_path if context else 'dpcore'} --help")
        return USAGE
    return int(status or NOT_REFUTED)
