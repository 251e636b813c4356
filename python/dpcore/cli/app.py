"""The command line: `dpcore audit`, `dpcore reproduce` and `dpcore info`.

Imported by the entry points alone: `import dpcore` does not pay for typer.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Annotated

import typer

from .. import __version__
from . import help as texts
from . import options
from .audits import Asked, run
from .outputs import AskedOutputs
from .outputs import run as run_outputs
from .show import environment, experiment, experiments_list, systems_list
from .status import NOT_REFUTED, USAGE, Usage, guard, say, usage

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
def _audit(
    context: typer.Context,
    target: options.Target = None,
    systems: options.Systems = False,
    epsilon: options.Epsilon = None,
    sensitivity: options.Sensitivity = None,
    clip: options.Clip = None,
    nan: options.Nan = None,
    dim: options.Dim = None,
    x: options.X = None,
    x_prime: options.XPrime = None,
    claim: options.Claim = None,
    no_claim: options.NoClaim = False,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    attack: options.Attack = "auto",
    bound: options.Bound = "clopper_pearson",
    stop: options.Stop = "fixed",
    floats: options.Floats = False,
    pilot: options.Pilot = None,
    patterns: options.Patterns = None,
    neighbour: options.Neighbour = None,
    null: options.Null = False,
    trials: options.Trials = "1e6",
    start: options.Start = "0",
    seed: options.Seed = None,
    route: options.Route = "auto",
    block: options.Block = None,
    threads: options.Threads = None,
    plot: options.Plot = None,
    html: options.Html = None,
    as_json: options.Json = False,
    progress: options.Progress = None,
    traceback: options.Traceback = False,
) -> None:
    """Audit a system or a user's own mechanism, or list the systems."""

    def work() -> int:
        if systems:
            _alone("--list", context, "systems", "as_json", "traceback")
            return systems_list(as_json)
        return run(Asked(**{field.name: context.params[field.name] for field in fields(Asked)}))

    raise typer.Exit(guard(work, traceback))


@app.command("audit-outputs", help=texts.OUTPUTS, epilog=texts.OUTPUTS_END)
def _audit_outputs(
    context: typer.Context,
    files: options.Files,
    rows: options.Rows = None,
    claim: options.Claim = None,
    no_claim: options.NoClaim = False,
    delta: options.Delta = 0.0,
    confidence: options.Confidence = 0.95,
    attack: options.OutputsAttack = None,
    bound: options.OutputsBound = None,
    count_share: options.CountShare = None,
    guesses: options.Guesses = None,
    column: options.Column = [],  # noqa: B006 (typer wants a list, and never changes it)
    label: options.Label = None,
    paired: options.Paired = False,
    seed: options.Seed = None,
    plot: options.Plot = None,
    as_json: options.Json = False,
    traceback: options.Traceback = False,
) -> None:
    """Audit outputs that were drawn elsewhere."""

    def work() -> int:
        given = {field.name: context.params[field.name] for field in fields(AskedOutputs)}
        given.update(files=tuple(files), column=tuple(column))
        return run_outputs(AskedOutputs(**given))

    raise typer.Exit(guard(work, traceback))


@app.command("reproduce", help=texts.REPRODUCE, epilog=texts.REPRODUCE_END)
def _reproduce(
    context: typer.Context,
    name: options.Name = None,
    names: options.Names = False,
    out: options.Out = None,
    trials: options.ExperimentTrials = None,
    seed: options.ExperimentSeed = None,
    threads: options.ExperimentThreads = None,
    as_json: options.Json = False,
    progress: options.Progress = None,
    traceback: options.Traceback = False,
) -> None:
    """Run an experiment, or list the experiments."""

    def work() -> int:
        if name is None or names:
            what = "--list" if names else "without a name, dpcore reproduce"
            _alone(what, context, "names", "as_json", "traceback")
            return experiments_list(as_json)
        folder = Path("results" if out is None else out)
        return experiment(name, folder, trials, seed, threads, progress, as_json)

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
        status = command.main(words, prog_name="dpcore", standalone_mode=False)
    except Exception as error:
        # The parser's own errors know their text and their status.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        text = " ".join(describe().split())
        context = getattr(error, "ctx", None)
        if text:  # there is none where a call without words has shown the help
            say(f"error: {text}")
            say(f"hint: {context.command_path if context else 'dpcore'} --help")
        return USAGE
    return int(status or NOT_REFUTED)
