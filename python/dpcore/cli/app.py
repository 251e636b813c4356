"""Commands of the `dpcore` command line, with their help texts.

Only the program `dpcore` and `python -m dpcore` import this module, so `import dpcore` does not
import typer. In the help texts, `[bold]` and similar words are markup of the package rich.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import shlex
import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import typer

from .. import __version__, _core, experiments
from ..advice import dpcore_argument_name
from ..errors import argument_of
from ..progress import RECEIVED_SIGNALS, WORDING, interrupt_on_signal
from ..streams import threads_of
from ..suggestions import explain_argument_errors
from ..visible import make_visible
from . import options
from .audits import (
    SYSTEMS,
    connect_to_dask_cluster,
    run_audit,
    run_count,
    run_merge,
    run_outputs_audit,
    run_plan,
    run_probability_audit,
)
from .endings import (
    INTERRUPTED,
    NOT_REFUTED,
    USAGE,
    Unwritten,
    Usage,
    run_guarded,
    to_usage_errors,
    write_escaped_to_stderr,
)
from .options import ExperimentArguments, add_options, name_options
from .traces import run_trace

TOP_HELP = """How much privacy does a mechanism really lose?

dpcore attacks a mechanism that claims differential privacy and certifies a
lower bound on the epsilon that it really has."""

STATUS_HELP = """[bold]Exit status[/bold]
  0    not refuted (or no claim was tested)
  1    refuted: the certified bound exceeds the claim
  2    bad usage
  3    no verdict: rows are not independent (invalid), the claim was out of reach or
       all outputs were one value (undecided), or the mechanism or dpcore failed
  4    parts of a run are missing (dpcore merge)
  5    dpcore count could not write its file
  130  interrupted (Ctrl-C), whatever was counted; 143 by SIGTERM, 129 by SIGHUP"""

TOP_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit half-noise --epsilon 1 --dim 128 --patterns one
  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore audit-outputs with.npy without.npy --rows independent --claim 1
  dpcore audit-table P.npy --distances D.npy --claim 5
  dpcore trace noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore plan --claim 1 --factor 0.9
  dpcore reproduce published-systems --out results
  dpcore info

{STATUS_HELP}"""

AUDIT_HELP = """Attack a mechanism and certify a lower bound on its epsilon.

The event and the direction are chosen on pilot draws, then counted on fresh
ones. The claim is refuted when the bound exceeds it; no audit can show that a
mechanism is private. Only the report (or the JSON) goes to stdout."""

AUDIT_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit --list
  dpcore audit laplace --epsilon 1 --x 0,0 --x-prime 0.5,-1 --seed 7
  dpcore audit adept --epsilon 1 --clip 5 --dim 32 --plot adept.png
  dpcore audit half-noise --epsilon 1 --dim 128 --patterns one
  dpcore audit half-noise --epsilon 1 --dim 128 --attack coordinatewise
  dpcore audit half-noise --epsilon 1 --stop refuted --html report.html

  Half-noise loses 2, not 1. Of its own pair, which spreads a distance of 1 over
  128 entries, auto sees .4; all of it where one entry differs (--patterns one).

  A mechanism of your own, such as this one in noisy.py:

    def release(x, size, rng):  # size outputs, one row each
        return x + rng.laplace(scale=2.0, size=(size, len(x)))

  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore audit noisy.py:release --x 0,0 --x-prime 1,0 --claim 0.5 --neighbour l1=1
  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim gdp=1
  dpcore audit noisy.py:release --x 0 --x-prime 1 --no-claim --json
  dpcore audit noisy.py:one_answer --repeat --x 0 --x-prime 1 --claim 0.5

  A tool in any language, which writes {{size}} lines, one answer each:

  dpcore audit --command 'node tool.js {{x}} {{size}}' --x never --x-prime daily --claim 1

  The two inputs are ones that the claim calls neighbours: zeros against ones in
  eight entries differ by 8, which a claim about a change by 1 does not cover.
  Its attributes claim (a number) and default_pair (a function that returns a
  dpcore.Pair) stand in for --claim and --x where it has them.

{STATUS_HELP}"""

COUNT_HELP = """Count one part of a run that --fit-only began, for job arrays.

All parts count one event, and the whole has one bound. The mechanism stands on
the line as the run was begun with it, because a file runs nothing; if it
changed, the part is refused. The same line again goes on with a part that was
cut off."""

COUNT_EPILOG = """[bold]Examples[/bold]
  dpcore audit noisy.py:release --x 0 --x-prime 1 --claim 1 --trials 1e12 --seed 7 \\
      --checkpoint run.json --fit-only
  dpcore count run.json noisy.py:release --part $SLURM_ARRAY_TASK_ID/64 \\
      --out part-$SLURM_ARRAY_TASK_ID.json
  dpcore merge part-*.json

[bold]Exit status[/bold]
  0 counted, 2 bad usage, 3 the mechanism or dpcore failed, 5 the file of the part
  could not be written, 130 interrupted"""

MERGE_HELP = """Merge the parts of a run into its audit.

The same part twice counts once. Files of two runs, and different counts of the
same trials, are errors that name the files."""

MERGE_EPILOG = f"""[bold]Examples[/bold]
  dpcore merge part-*.json
  dpcore merge part-*.json --json
  dpcore merge run.json --partial

{STATUS_HELP}"""

OUTPUTS_HELP = """Audit outputs that were drawn elsewhere, from two files or one with labels.

Rows that are independent draws are shuffled and split: one part chooses the
event, the other is counted. Canaries of a single training run are not
independent: for them the bound of Steinke, Nasr and Jagielski (2023) holds."""

OUTPUTS_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit-outputs with.npy without.npy --rows independent --claim 1
  dpcore audit-outputs scores.csv --label member --rows one_run --claim 8 --delta 1e-5

{STATUS_HELP}"""

TABLE_HELP = """Compute the exact privacy loss of a mechanism with finitely many outputs.

The table has a row for each input and a column for each output: probabilities,
or natural logarithms with --log. All pairs of rows are compared: the loss is
computed, neither sampled nor estimated."""

TABLE_EPILOG = f"""[bold]Examples[/bold]
  dpcore audit-table P.npy --claim 1
  dpcore audit-table P.npy --distances D.npy --claim 5
  dpcore audit-table logs.npy --log --no-claim --json

{STATUS_HELP}"""

TRACE_HELP = """Compute which line of a function loses how much, from a few runs.

The runs on both inputs take the same noise. The loss is the cheapest move of
the noise with which both give the same output. It is computed for this pair,
not certified: dpcore audit certifies."""

TRACE_EPILOG = """[bold]Examples[/bold]
  dpcore trace noisy.py:release --x 0 --x-prime 1 --claim 0.5
  dpcore trace noisy.py:mean --x 3,1,4 --x-prime 3,1 --claim 1 --delta 1e-6
  dpcore trace noisy.py:answer --text never --text-prime daily --claim gdp=1
  dpcore trace noisy.py:release --x 0 --x-prime 1 --no-claim --json

[bold]Exit status[/bold]
  0    within the claim on this pair (or no claim was given)
  1    above the claim on this pair, or a finding
  2    bad usage
  3    undecided: no loss, a step may be hidden, or not traceable; or the
       function or dpcore failed
  130  interrupted"""

PLAN_HELP = """How many trials an audit needs to find that a claim is false.

The violation is a true loss or a noise too small by a factor; without either,
the one that the pilots of a mechanism show. The event is given by its mass or
chosen by those pilots. For one training run: how many canaries and guesses."""

PLAN_EPILOG = """[bold]Examples[/bold]
  dpcore plan --claim 1 --true-epsilon 1.111 --mass 0.1 --confidence 0.9999
  dpcore plan --claim 1 --factor 0.9 --plot power.png
  dpcore plan noisy.py:release --x 0 --x-prime 1 --claim 0.5 --factor 0.9
  dpcore plan half-noise --epsilon 1
  dpcore plan --claim 8 --true-epsilon 10 --guesses 1.0

[bold]Exit status[/bold]
  0 planned, 2 bad usage, 3 the mechanism or dpcore failed, 130 interrupted"""

REPRODUCE_HELP = """Remake a figure or table of the papers, by name.

Prints the table and writes NAME.json, NAME.png and NAME.svg. Without a name,
lists the experiments."""

REPRODUCE_EPILOG = """[bold]Examples[/bold]
  dpcore reproduce
  dpcore reproduce published-systems --out results
  dpcore reproduce habernal2022-figure1 --trials 1e5 --seed 1
  dpcore reproduce noise-layers --quick

[bold]Exit status[/bold]
  0    done, whatever was refuted
  2    bad usage
  3    dpcore failed
  130  interrupted (Ctrl-C; 143 by SIGTERM, 129 by SIGHUP); what was done is printed and kept"""

INFO_HELP = """Show versions, the CPU path in use, and the number of threads.

The environment variable DPCORE_CPU (baseline, avx2 or avx512) forces a path;
all paths give the same bits."""

INFO_EPILOG = """[bold]Examples[/bold]
  dpcore info
  dpcore info --json
  DPCORE_CPU=baseline dpcore info

[bold]Exit status[/bold]
  0 shown, 2 bad usage, 3 dpcore failed"""


def print_systems(as_json: bool) -> int:
    """Print the published systems that can be audited, and return the exit status."""
    if as_json:
        print(json.dumps([_published_system_facts(name) for name in SYSTEMS]))
        return NOT_REFUTED
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("name, class", "claim\nnorm", "sound?", "fault, source", show_lines=True)
    for name in SYSTEMS:
        facts = _published_system_facts(name)
        options = "\n".join(facts["options"])
        table.add_row(
            Text.assemble((name, "bold"), "\n", facts["class"], "\n", (options, "dim")),
            (facts["norm"] or "any").replace("l", "L", 1),
            Text("yes", "green") if facts["sound"] else Text("no", "red"),
            Text.assemble(facts["fault"], "\n", (facts["source"], "dim")),
        )
    Console(highlight=False).print(table)
    print(
        "claim norm: inputs at most the sensitivity apart in it are neighbours\n"
        "(any: every two inputs are, since the system clips them)"
    )
    return NOT_REFUTED


def _published_system_facts(name: str) -> dict[str, Any]:
    cls = SYSTEMS[name]
    return {
        "name": name,
        "class": cls.__name__,
        "norm": cls.norm,
        "sound": cls.sound,
        "fault": cls.fault,
        "source": cls.source,
        "options": [f"--{field.name}" for field in fields(cls)],
    }


def print_experiments(as_json: bool) -> int:
    """Print a short text on each experiment, and return the exit status."""
    about = {name: (inspect.getdoc(experiments.get(name)) or "") for name in experiments.NAMES}
    about = {name: " ".join(text.partition("\n\n")[0].split()) for name, text in about.items()}
    if as_json:
        print(json.dumps([{"name": name, "about": text} for name, text in about.items()]))
        return NOT_REFUTED
    for name, text in about.items():
        print(textwrap.fill(f"{name:<22} {text}", 80, subsequent_indent=" " * 23))
    return NOT_REFUTED


def run_experiment(asked: ExperimentArguments) -> int:
    """Run `dpcore reproduce`: run an experiment, print its results; return the exit status."""
    name, out = asked.name or "", Path("results" if asked.out is None else asked.out)
    if name not in experiments.NAMES:
        raise Usage(f"no such experiment: {name} (there are {', '.join(experiments.NAMES)})")
    words = ("trials", "seed", "data", "full", "quick", "seeds", "device", "slow")
    options = {word: getattr(asked, word) for word in words}
    packages = [name for text in asked.packages for name in text.split(",") if name]
    options["packages"] = packages or None
    with to_usage_errors():
        # The options are checked here, so that an error of the run is not reported as bad usage.
        experiments.config_of(name, **options)
        threads_of(asked.threads)
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Usage(f"--out must be a folder that can be written to, got {out}: {error}") from error
    if (asked.dask or asked.resume) and name not in experiments.RESUMABLE:
        which = "--dask" if asked.dask else "--resume"
        raise Usage(f"{which} is for {', '.join(experiments.RESUMABLE)}, not for {name}")
    try:
        with connect_to_dask_cluster(asked.dask) as client:
            result = experiments.reproduce(
                name, out, threads=asked.threads, progress=asked.progress, executor=client,
                resume=asked.resume, **options,
            )  # fmt: skip
    except ModuleNotFoundError as error:
        # The experiment's message names the missing package and how to install it.
        raise Usage(str(error)) from error
    except (OSError, ValueError) as error:
        # Among the errors of a run, these concern the user's own files.
        if argument_of(error) == "out" and isinstance(error, OSError):
            text = f"{error.strerror}, got {error.filename}".replace("out", "--out", 1)
            if not hasattr(error, "result"):
                raise Usage(text) from error
            print(error.result.table())
            raise Unwritten(text) from error
        if argument_of(error) not in ("path", "data"):
            raise
        raise Usage(f"--data does not serve {name}: {error}") from error
    files = "\n".join(make_visible(str(path)) for path in sorted(out.glob(f"{name}.*")))
    if asked.as_json:
        print(json.dumps(result.to_dict(), allow_nan=False))
        print(f"wrote\n{files}", file=sys.stderr)
    else:
        print(f"{result.table()}\n\nwrote\n{files}")
    return INTERRUPTED if result.partial else NOT_REFUTED


def print_environment(as_json: bool) -> int:
    """Run `dpcore info`: print versions, the CPU instructions in use, and the number of threads."""
    with to_usage_errors():
        cpu = _core.cpu()
    facts = {
        "version": __version__,
        "cpu": cpu,
        "cpus": _core.cpus(),
        "DPCORE_CPU": os.environ.get("DPCORE_CPU"),
        "threads": _core.cores(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
    }
    if as_json:
        print(json.dumps(facts))
        return NOT_REFUTED
    labels = {"version": "dpcore", "cpu": "CPU path", "python": "Python"}
    del facts["cpus"]
    facts["cpu"] = f"{cpu} (this CPU has {', '.join(_core.cpus())})"
    facts["DPCORE_CPU"] = facts["DPCORE_CPU"] or "not set"
    for name, value in facts.items():
        print(f"{labels.get(name, name):<11} {value}")
    return NOT_REFUTED


app = typer.Typer(
    name="dpcore",
    help=TOP_HELP,
    epilog=TOP_EPILOG,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(is_requested: bool) -> None:
    if is_requested:
        print(f"dpcore {__version__}")
        raise typer.Exit(NOT_REFUTED)


@app.callback()
def _accept_global_options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Accept the options of `dpcore` before the name of a command, such as --version."""


@app.command("audit", help=AUDIT_HELP, epilog=AUDIT_EPILOG)
@add_options(options.AuditArguments)
def _run_audit(
    context: typer.Context,
    systems: options.Systems = False,
    *,
    asked: options.AuditArguments,
    traceback: options.Traceback = False,
) -> None:
    """Run `dpcore audit`, or list the published systems with --list."""

    def work() -> int:
        if systems:
            _refuse_ignored_options("--list", context, "systems", "as_json", "traceback")
            return print_systems(asked.as_json)
        return run_audit(asked, context.obj)

    raise typer.Exit(run_guarded(work, traceback))


def _add_command(
    name: str, kind: type[Any], work: Callable[[Any, str], int], text: str, epilog: str
) -> None:
    """Add a command to dpcore. The command calls `work(options, command line)`."""

    @app.command(name, help=text, epilog=epilog)
    @add_options(kind)
    def run_command(
        context: typer.Context, *, asked: Any, traceback: options.Traceback = False
    ) -> None:
        raise typer.Exit(run_guarded(lambda: work(asked, context.obj), traceback))


_add_command(
    "count", options.CountArguments, lambda asked, _: run_count(asked), COUNT_HELP, COUNT_EPILOG
)
_add_command(
    "merge", options.MergeArguments, lambda asked, _: run_merge(asked), MERGE_HELP, MERGE_EPILOG
)
_add_command(
    "audit-outputs", options.OutputsArguments, run_outputs_audit, OUTPUTS_HELP, OUTPUTS_EPILOG
)
_add_command("audit-table", options.TableArguments, run_probability_audit, TABLE_HELP, TABLE_EPILOG)
_add_command(
    "trace", options.TraceArguments, lambda asked, _: run_trace(asked), TRACE_HELP, TRACE_EPILOG
)
_add_command(
    "plan", options.PlanArguments, lambda asked, _: run_plan(asked), PLAN_HELP, PLAN_EPILOG
)


@app.command("reproduce", help=REPRODUCE_HELP, epilog=REPRODUCE_EPILOG)
@add_options(options.ExperimentArguments)
def _run_reproduce_command(
    context: typer.Context,
    names: options.Names = False,
    *,
    asked: options.ExperimentArguments,
    traceback: options.Traceback = False,
) -> None:
    """Run `dpcore reproduce`, or list the experiments with --list."""

    def work() -> int:
        if asked.name is None or names:
            what = "--list" if names else "without a name, dpcore reproduce"
            _refuse_ignored_options(what, context, "names", "as_json", "traceback")
            return print_experiments(asked.as_json)
        return run_experiment(asked)

    raise typer.Exit(run_guarded(work, traceback))


@app.command("info", help=INFO_HELP, epilog=INFO_EPILOG)
def _run_info_command(as_json: options.Json = False) -> None:
    """Run `dpcore info`, which shows versions, the CPU path and the number of threads."""
    raise typer.Exit(run_guarded(lambda: print_environment(as_json)))


def _refuse_ignored_options(what: str, context: typer.Context, *allowed: str) -> None:
    """Raise `Usage` if a command that only lists names has options that it would ignore."""
    for key in context.params:
        source = context.get_parameter_source(key)
        if key not in allowed and source is not None and source.name != "DEFAULT":
            raise Usage(f"{what} only lists names, and takes no other option than --json")


@explain_argument_errors
def main(args: Sequence[str] | None = None) -> int:
    """Run a `dpcore` command as from the command line, and return its exit status.

    Args:
        args: the words after `dpcore` on the command line. Defaults to the words with which this
            process was started.

    Returns:
        The exit status:

        - 0: the claim is not refuted. Commands that do not test a claim, such as `dpcore plan`,
          also return 0 on success.
        - 1: the claim is refuted.
        - 2: the command line is wrong.
        - 3: the command could not decide about the claim. This happens if the audit is undecided,
          if the recorded outputs depend on each other, if the mechanism or dpcore raised an error,
          or if a report could not be written.
        - 4: some parts of a divided audit are missing (`dpcore merge`).
        - 5: the file with the counts of one part could not be written (`dpcore count`).
        - 130: the command was interrupted with Ctrl-C. If the signal with number n ended the
          command, the status is 128 + n.

    Example:
        >>> main(["audit", "half-noise", "--epsilon", "1", "--dim", "0"])
        2
    """
    words = sys.argv[1:] if args is None else list(args)
    held = WORDING.set(name_options)
    try:
        with _interrupt_on_signals():
            status = run_guarded(lambda: _run_command_line(words))
        ended = RECEIVED_SIGNALS if status == INTERRUPTED else []
        return 128 + ended[0] if ended else status
    finally:
        WORDING.reset(held)


@contextmanager
def _interrupt_on_signals() -> Iterator[None]:
    """Treat the signals SIGTERM and SIGHUP like Ctrl-C while this context is active.

    The context does not change a signal that the process ignores (such as SIGHUP under nohup) or
    that has another handler.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name, None) for name in ("SIGTERM", "SIGHUP") if is_main]
    handled = [n for n in numbers if n is not None and signal.getsignal(n) is signal.SIG_DFL]
    RECEIVED_SIGNALS.clear()
    for number in handled:
        signal.signal(number, interrupt_on_signal)
    try:
        yield
    finally:
        for number in handled:
            signal.signal(number, signal.SIG_DFL)


_NUMBER_COMPLAINT: Final = re.compile("Input should be a valid (number|integer)")


def _explain_non_numeric_value(text: str, kind: str, words: list[str]) -> str:
    """Return the error message for an option whose value is not a number."""
    option = text.partition("'")[2].partition("'")[0]
    matches = [word.partition("=") for word in words if word.partition("=")[0] == option]
    value = matches[0][2] or words[words.index(option) + 1] if matches else ""
    share = value.removesuffix("%")
    meant = ""
    if share != value and share.replace(".", "", 1).isdigit():
        meant = f" (did you mean {float(share) / 100:g}?)"
    return f"{option} must be {'an' if kind == 'integer' else 'a'} {kind}, got {value!r}{meant}"


def _run_command_line(words: list[str]) -> int:
    command = typer.main.get_command(app)
    try:
        # Standalone mode is off, because it exits with 1 ("refuted") for its own errors.
        # Commands get the command line as their context object, and a report stores it.
        line = shlex.join(["dpcore", *words])
        status = command.main(words, prog_name="dpcore", standalone_mode=False, obj=line)
    except SystemExit as ended:
        # Shell completion exits with 0. A mechanism cannot exit here: `run_guarded` stops it.
        if ended.code:
            raise
        return NOT_REFUTED
    except Exception as error:
        # Errors of the parser have their own text and status.
        describe = getattr(error, "format_message", None)
        if describe is None:
            raise
        text = " ".join(describe().split())
        context = getattr(error, "ctx", None)
        option = str(getattr(error, "option_name", "")).removeprefix("--").replace("-", "_")
        here = (
            dpcore_argument_name(option, [parameter.name for parameter in context.command.params])
            if context
            else None
        )
        if option == "eps" and any(word in SYSTEMS for word in words):
            # For a published system, epsilon is a parameter of the system.
            here = "epsilon"
        if (kind := _NUMBER_COMPLAINT.search(text)) is not None:
            text = _explain_non_numeric_value(text, kind[1], words)
        if here is not None:
            less = " (1 - alpha)" if option == "alpha" else ""
            text = f"No such option: --{option.replace('_', '-')} (did you mean --{here}{less}?)"
        if text:  # there is none where a call without words has shown the help
            write_escaped_to_stderr(f"error: {text}")
            write_escaped_to_stderr(f"hint: {context.command_path if context else 'dpcore'} --help")
        return USAGE
    return int(status or NOT_REFUTED)
