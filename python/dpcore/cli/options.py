"""Declaration of the options of all commands, and their names in messages.

One class per command has the options as fields. Most fields have the name of an argument of the
Python function that the command calls. `OPTIONS` maps the names of the arguments to the names of
the options on the command line.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from ..attacks import NAMES
from ..bounds import BOUNDS
from ..claims.renyi import ZCDP
from ..claims.trade_off import GDP
from ..claims.trade_off import Claim as Curve
from ..files.formats import FORMATS, list_endings


def option_field(
    text: str, *names: str, panel: str | None = None, default: Any = None, **more: Any
) -> Any:
    """Return a dataclass field that declares a command-line option.

    `text` is the help text, and `names` are the names of the option. `panel` is the heading under
    which the help page lists the option.
    """
    made: Any = typer.Option(*names, help=text, rich_help_panel=panel, **more)
    return _dataclass_field(made, default)


def _positional_argument_field(metavar: str, text: str, default: Any = MISSING) -> Any:
    """Return a dataclass field for a positional argument of a command."""
    return _dataclass_field(typer.Argument(metavar=metavar, help=text, show_default=False), default)


def _dataclass_field(parameter: Any, default: Any) -> Any:
    return field(default=default, metadata={"parameter": parameter})


def _join_by_or(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}."


_system_option = partial(option_field, panel="A published system")
_input_option = partial(option_field, panel="The two inputs")
_claim_option = partial(option_field, panel="The claim")
_attack_option = partial(option_field, panel="The attack")
_run_option = partial(option_field, panel="The run")
_output_option = partial(option_field, panel="Output")
_file_option = partial(option_field, panel="The files")

# Options of several commands.

_CLAIM_CURVES: Final = {"gdp": GDP, "zcdp": ZCDP}
_EPSILON_AND_DELTA: Final = re.compile(r"[(\[]?\s*([\d.e+-]+)\s*,\s*([\d.e+-]+)\s*[)\]]?")


def _read_claim(text: str) -> float | Curve:
    """Parse --claim: an epsilon, or a trade-off curve such as gdp=1.0 or zcdp=0.5."""
    kind, equals, number = text.partition("=")
    try:
        value = float(number if equals else kind)
    except ValueError:
        value = None
    if value is None or (equals and kind.lower() not in _CLAIM_CURVES):
        need = "an epsilon, gdp=MU or zcdp=RHO"
        if parts := _EPSILON_AND_DELTA.fullmatch(text):
            need += f" (--claim {parts[1]} --delta {parts[2]})"
        raise typer.BadParameter(f"it must be {need}, got {text!r}")
    if not equals:
        return value
    try:
        return _CLAIM_CURVES[kind.lower()](value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


_make_x = partial(
    _input_option, "First input: numbers with commas between, or @FILE.npy.", metavar="NUMBERS"
)
_make_x_prime = partial(_input_option, "Second input, likewise.", metavar="NUMBERS")
_make_text = partial(_input_option, "First input of a mechanism that takes a text.", metavar="TEXT")
_make_text_prime = partial(_input_option, "Second text.", metavar="TEXT")
_make_claim = partial(
    _claim_option,
    "What to test: an epsilon, gdp=MU or zcdp=RHO. Default: the mechanism's own claim.",
    parser=_read_claim,
    metavar="EPSILON",
)
_make_recorded_claim = partial(
    _claim_option,
    "What to test: an epsilon, gdp=MU or zcdp=RHO. Without it give --no-claim.",
    parser=_read_claim,
    metavar="EPSILON",
)
_make_epsilon_claim = partial(_claim_option, "The epsilon to test. Without it give --no-claim.")
_make_no_claim = partial(_claim_option, "Test no claim, only estimate.", "--no-claim")
_make_delta = partial(_claim_option, "The delta of the claim.")
_make_confidence = partial(_claim_option, "Probability that the bound holds.")
_make_seed = partial(
    _run_option, "Repeats a run: rng= in Python. Default: a fresh one, which is reported."
)
_make_like_audit = partial(_attack_option, "As in dpcore audit. Default: auto.", metavar="NAME")
_make_threads = partial(
    _run_option, "Number of threads. Default: all cores, 1 for your own mechanism."
)
_make_dask = partial(
    _run_option,
    "Count on a Dask cluster: the address of its scheduler, or local:8 for eight processes.",
    metavar="ADDRESS|local:N",
)
_make_same_bits = partial(
    _run_option,
    "Refuse workers and processes that give other bits for one seed.",
    "--same-bits/--no-same-bits",
)
_make_command = partial(
    _run_option,
    "Audit a command in place of a function, such as 'node tool.js {x} {size}': it writes "
    "{size} lines, one answer each. --x and --x-prime are put in as they are.",
    metavar="COMMAND",
)
_make_plot = partial(_output_option, "Save a picture, such as audit.png or .svg.", metavar="FILE")
_make_html = partial(_output_option, "Save the whole report as one page.", metavar="FILE")
_make_source = partial(
    _output_option, "Keep the mechanism's source text in page and JSON.", "--source/--no-source"
)
_make_progress = partial(
    _output_option,
    "Show a bar on stderr. Default: for long work on a terminal.",
    "--progress/--no-progress",
    show_default=False,
)
_JSON = typer.Option(
    "--json", help="Print one JSON document, nothing else.", rich_help_panel="Output"
)
_make_json = partial(_dataclass_field, _JSON, False)
Json = Annotated[bool, _JSON]
Traceback = Annotated[
    bool,
    typer.Option(
        "--traceback", help="Show the whole traceback of an error.", rich_help_panel="Output"
    ),
]
Systems = Annotated[bool, typer.Option("--list", help="List the published systems.")]
Names = Annotated[bool, typer.Option("--list", help="List the experiments.")]


@dataclass(frozen=True)
class MechanismArguments:
    """Command-line options that name a mechanism and its two inputs.

    If an option is not given, its attribute is None.
    """

    target: str | None = _positional_argument_field(
        "SYSTEM|FILE.py:FUNCTION", "A published system, or a mechanism of your own.", None
    )
    epsilon: float | None = _system_option(
        "The epsilon it is run with, its claim. Default: --claim."
    )
    sensitivity: float | None = _system_option(
        "L1 sensitivity that the noise is made for. Default: the distance of --x and "
        "--x-prime, 1 without them."
    )
    clip: float | None = _system_option("Radius of the clip of the ADePT family. Default: 1.")
    nan: str | None = _system_option(
        "What dptext makes of an undefined draw: zero, resample or keep. Default: zero.",
        metavar="MODE",
    )
    dim: int | None = _input_option(
        "Entries of the mechanism's own default pair. Default: 2 for a system."
    )
    x: str | None = _make_x()
    x_prime: str | None = _make_x_prime()
    text: str | None = _make_text()
    text_prime: str | None = _make_text_prime()
    patterns: str | None = _input_option(
        "Choose among the usual pairs in --dim entries: one (entry changes by 1) or all (may).",
        metavar="WHICH",
    )


@dataclass(frozen=True)
class AuditArguments(MechanismArguments):
    """Values of the command-line options of `dpcore audit`.

    If an option is not given, its attribute holds the default value of the option, or None.
    """

    command: str | None = _make_command()
    timeout: float | None = _run_option(
        "Seconds in which a command may write nothing. Default: 60, and .1 for each answer."
    )
    catch: str | None = _run_option(
        "Failures that are answers, with commas between: with --repeat exceptions of Python or of "
        "the file (ValueError), with --command exit statuses and signals (3,SIGSEGV). Default: a "
        "failure ends the audit.",
        metavar="NAMES",
    )
    claim: Any = _make_claim()
    no_claim: bool = _make_no_claim(default=False)
    delta: float = _make_delta(default=0.0)
    confidence: float = _make_confidence(default=0.95)
    attack: str = _attack_option(
        f"auto (all that apply), {_join_by_or([name for name in NAMES if name != 'auto'])}",
        metavar="NAME",
        default="auto",
    )
    bound: str = _attack_option(
        _join_by_or(list(BOUNDS)), metavar="NAME", default="clopper_pearson"
    )
    stop: str = _attack_option(
        "fixed counts all trials, refuted stops as soon as the claim is refuted.",
        metavar="RULE",
        default="fixed",
    )
    floats: bool = _attack_option(
        "Let what rounding gives away count towards the verdict.", "--floats", default=False
    )
    pilot: int | None = _attack_option(
        "Draws a side that choose the event. Default: an eighth of the trials."
    )
    neighbour: str | None = _input_option(
        "Which inputs the claim covers: l1=1, l2=1, linf=1 (or another radius), replace or "
        "add-remove. A farther pair is refused. Default: the two inputs given.",
        metavar="RELATION",
    )
    repeat: bool = _run_option(
        "Your function returns one answer, (x) or (x, rng): call it once for every output.",
        "--repeat",
        default=False,
    )
    null: bool = _input_option(
        "Allow two equal inputs, where all that is found is a false alarm.", "--null", default=False
    )
    trials: str | None = _run_option(
        "Draws to count on each side, such as 1e8. Default: 1e6 (4,000 of random encoders).",
        metavar="N",
    )
    seconds: float | None = _run_option(
        "Or the time that the audit may take: as many trials as fit, which are reported."
    )
    start: str = _run_option(
        "First trial; runs of disjoint trials with one seed can be added.", metavar="N", default="0"
    )
    seed: int | None = _make_seed()
    route: str = _run_option(
        "How a system's votes are counted: auto, integer or sampled; the counts are the same.",
        metavar="ROUTE",
        default="auto",
    )
    block: int | None = _run_option("Trials in a block, part of what repeats a run.")
    threads: int | None = _make_threads()
    checkpoint: str | None = _run_option(
        "Write a run file every five seconds, from which a killed audit goes on.", metavar="FILE"
    )
    resume: str | None = _run_option(
        "Go on with a run file, with the options that began it. What runs (FILE.py:FUNCTION or "
        "--command) must stand on the line again: a file runs nothing.",
        metavar="FILE",
    )
    fit_only: bool = _run_option(
        "Choose the event, write --checkpoint, count nothing.", "--fit-only", default=False
    )
    dask: str | None = _make_dask()
    same_bits: bool = _make_same_bits(default=True)
    plot: str | None = _make_plot()
    html: str | None = _make_html()
    source: bool = _make_source(default=True)
    as_json: bool = _make_json()
    progress: bool | None = _make_progress()


@dataclass(frozen=True)
class CountArguments:
    """Values of the command-line options of `dpcore count`."""

    file: str = _positional_argument_field("FILE", "The run file, written by --fit-only.")
    part: str = option_field(
        "Which part to count, and of how many: 1/64 to 64/64.", metavar="I/N", default=MISSING
    )
    out: str = option_field(
        "File to write the part to; it goes on.", metavar="FILE", default=MISSING
    )
    target: str | None = _positional_argument_field(
        "FILE.py:FUNCTION", "The mechanism of the run. A system needs no repetition.", None
    )
    command: str | None = _make_command()
    again: bool = option_field(
        "Void a count of this part that is registered next to the run file, where no seed repeats "
        "the outputs.",
        "--again",
        default=False,
    )
    threads: int | None = _make_threads()
    dask: str | None = _make_dask()
    same_bits: bool = _make_same_bits(default=True)
    progress: bool | None = _make_progress()


@dataclass(frozen=True)
class MergeArguments:
    """Values of the command-line options of `dpcore merge`."""

    files: list[str] = _positional_argument_field("FILE...", "The parts, in any order.")
    partial: bool = option_field(
        "Show what was counted so far. From then on the bound is the anytime one.",
        "--partial",
        default=False,
    )
    plot: str | None = _make_plot()
    html: str | None = _make_html()
    as_json: bool = _make_json()


@dataclass(frozen=True)
class OutputsArguments:
    """Values of the command-line options of `dpcore audit-outputs`.

    If an option is not given, its attribute holds the default value of the option, None, or an
    empty value.
    """

    files: list[str] = _positional_argument_field(
        "FILE [FILE]",
        f"Outputs on x, then outputs on x': {list_endings()}, also with .gz; - is standard input.",
    )
    rows: str | None = _claim_option(
        "independent (every row drawn anew) or one_run (canaries of one training run): you "
        "must say which.",
        metavar="KIND",
        show_default=False,
    )
    claim: Any = _make_recorded_claim()
    no_claim: bool = _make_no_claim(default=False)
    delta: float = _make_delta(default=0.0)
    confidence: float = _make_confidence(default=0.95)
    attack: str | None = _make_like_audit()
    bound: str | None = _attack_option(
        "Default: the one that fits the kind of rows.", metavar="NAME"
    )
    count_share: float | None = _attack_option(
        "Share of independent rows that is counted. Default: one half."
    )
    guesses: str | None = _attack_option(
        "Canaries guessed: a number, a share, or IN,OUT. Default: all.", metavar="N"
    )
    column: list[str] = _input_option(
        "Column to read: name, number, pattern 'o*', range 3-50, or '*'; may be repeated.",
        default=(),
    )
    exclude: list[str] = _input_option(
        "Column to leave out, in the same form; may be repeated.", metavar="COLUMN", default=()
    )
    dtype: list[str] = _file_option(
        "Kind of the cells of texts: number, whole, decimal or text, or COLUMN=KIND for one "
        "column; may be repeated. Default: that of all cells of both sides.",
        metavar="KIND",
        default=(),
    )
    label: str | None = _input_option(
        "Column of one file that tells the side: 0 or 1, x or x_prime."
    )
    label_x: str | None = _input_option("Which of two other labels stands for x.", metavar="VALUE")
    groups: str | None = _input_option(
        "Column with the run, document or person of each row: one row of each is counted.",
        metavar="COLUMN",
    )
    paired: bool = _claim_option(
        "Rows i of both sides come from one seed: they stay together.", "--paired", default=False
    )
    arranged: bool = _claim_option(
        "Rows were put in this order when the runs were over.", "--arranged", default=False
    )
    header: str = _file_option(
        "First row holds names: yes, no, or auto (found out).", metavar="WHICH", default="auto"
    )
    sep: str | None = _file_option(
        "Between the cells of a CSV file, or tab. Default: found out.", metavar="CHAR"
    )
    encoding: str | None = _file_option("Of text, such as latin-1. Default: UTF-8.", metavar="NAME")
    format: str | None = _file_option(
        f"Kind of the files: {', '.join(FORMATS)}. Default: by their names.", metavar="KIND"
    )
    seed: int | None = _make_seed()
    plot: str | None = _make_plot()
    html: str | None = _make_html()
    source: bool = _make_source(default=True)
    as_json: bool = _make_json()
    progress: bool | None = _make_progress()


@dataclass(frozen=True)
class TableArguments:
    """Values of the command-line options of `dpcore audit-table`.

    If an option is not given, its attribute holds the default value of the option, or None.
    """

    table: str = _positional_argument_field(
        "FILE", "A row for each input, a column for each output: .npy, or scipy's sparse .npz."
    )
    distances: str | None = _input_option("Distances between the inputs, .npy.", metavar="FILE")
    log: bool = _input_option("The table holds natural logarithms.", "--log", default=False)
    claim: float | None = _make_epsilon_claim()
    no_claim: bool = _make_no_claim(default=False)
    neighbour: str | None = _claim_option(
        "Rows that the claim calls neighbours: l1=RADIUS on their numbers, or a mask, .npy. "
        "Default: all.",
        metavar="RELATION|FILE",
    )
    tolerance: float | None = _claim_option(
        "Loss beyond the claim that roundings explain, in nats. Default: 1e-9."
    )
    threads: int | None = _run_option("Number of threads. Default: all cores.")
    plot: str | None = _make_plot()
    html: str | None = _make_html()
    as_json: bool = _make_json()
    progress: bool | None = _make_progress()


@dataclass(frozen=True)
class TraceArguments:
    """Values of the command-line options of `dpcore trace`.

    If an option is not given, its attribute holds the default value of the option, or None.
    """

    target: str = _positional_argument_field(
        "FILE.py:FUNCTION", "The function, called with (x), (x, rng) or (x, size, rng)."
    )
    dim: int | None = _input_option("Entries of the function's own default pair.")
    x: str | None = _make_x()
    x_prime: str | None = _make_x_prime()
    text: str | None = _make_text()
    text_prime: str | None = _make_text_prime()
    claim: Any = _claim_option(
        "What the loss is compared with: an epsilon, gdp=MU or zcdp=RHO. Default: the function's "
        "own claim.",
        parser=_read_claim,
        metavar="EPSILON",
    )
    no_claim: bool = _claim_option("Only compute the loss.", "--no-claim", default=False)
    delta: float = _make_delta(default=0.0)
    draws: int = _run_option("Draws of the noise, each for both inputs.", default=4)
    seed: int | None = _run_option(
        "Repeats a trace: rng= in Python. Default: a fresh one, which the JSON states."
    )
    plot: str | None = _make_plot()
    html: str | None = _make_html()
    as_json: bool = _make_json()


@dataclass(frozen=True)
class PlanArguments(MechanismArguments):
    """Values of the command-line options of `dpcore plan`.

    If an option is not given, its attribute holds the default value of the option, or None.
    """

    claim: Any = _make_claim()
    true_epsilon: float | None = _claim_option("The true loss that is to be found.")
    factor: float | None = _claim_option(
        "Or the scale of the noise over the right one, such as 0.9."
    )
    delta: float = _make_delta(default=0.0)
    confidence: float = _make_confidence(default=0.95)
    power: float = _claim_option("Probability of refuting the claim.", default=0.95)
    mass: float | None = _attack_option(
        "Probability of the event on its likelier side. Default: that of Laplace noise, 0.5; "
        "with a delta, of Gaussian noise."
    )
    attack: str | None = _make_like_audit()
    pilot: int | None = _attack_option(
        "Most draws per side that tell the event's rates. Default: 2^20."
    )
    canaries: int | None = _run_option("For one training run: its canaries.")
    guesses: str | None = _run_option(
        "And the guesses about them: a number, or a share such as 1.0.", metavar="N"
    )
    seed: int | None = _make_seed()
    threads: int | None = _make_threads()
    plot: str | None = _make_plot()
    as_json: bool = _make_json()
    progress: bool | None = _make_progress()


@dataclass(frozen=True)
class ExperimentArguments:
    """Values of the command-line options of `dpcore reproduce`.

    If an option is not given, its attribute holds the default value of the option, or None.
    """

    name: str | None = _positional_argument_field("NAME", "The experiment.", None)
    out: str | None = option_field("Folder for the files. Default: results.", metavar="DIR")
    trials: str | None = option_field(
        "Draws on each side of every audit. Default: its own.", metavar="N"
    )
    seed: int | None = option_field("Default: the one of the published files.")
    threads: int | None = option_field("Number of threads. Default: all cores.")
    quick: bool = option_field("Few trials, one seed: under 20 s.", "--quick", default=False)
    full: bool = option_field("The size of the paper.", "--full", default=False)
    seeds: int | None = option_field("Number of runs for the mean and the spread.", metavar="N")
    data: str | None = option_field("Folder with corpora. Default: texts made up.", metavar="DIR")
    device: str | None = option_field("Where torch runs, such as cpu or cuda.", metavar="D")
    packages: list[str] = option_field(
        "Released packages to audit, such as numpy,scipy. Default: all.", "--packages",
        metavar="NAME,...", default=(),
    )  # fmt: skip
    slow: bool = option_field("Run the slow cases, too.", "--slow", default=False)
    dask: str | None = _make_dask()
    resume: str | None = option_field(
        "Folder with a run file for each audit, from which it goes on.", metavar="DIR"
    )
    as_json: bool = _make_json()
    progress: bool | None = _make_progress()


def select_arguments(asked: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """Select the options of a command that have the same names as parameters of a function.

    Args:
        asked: the values of the command's options, such as an `AuditArguments`.
        function: the function that will be called.

    Returns:
        Dictionary with the names and values of the selected options, for use as keyword arguments.
    """
    taken = inspect.signature(function).parameters
    return {
        option.name: getattr(asked, option.name) for option in fields(asked) if option.name in taken
    }


def _map_to_options() -> dict[str, str]:
    """Map names of Python arguments to names of options, such as "--x" or "--on/--off"."""
    spellings = {}
    for kind in (
        AuditArguments,
        CountArguments,
        MergeArguments,
        OutputsArguments,
        TableArguments,
        TraceArguments,
        PlanArguments,
        ExperimentArguments,
    ):
        for declared in fields(kind):
            option = declared.metadata["parameter"]
            if isinstance(option, typer.models.OptionInfo):
                # typer keeps the first name of an option as its default.
                own = option.default if isinstance(option.default, str) else f"--{declared.name}"
                spellings[declared.name] = own.replace("_", "-")
    # Messages name the seed by its argument. For `floats`, they use the name in Python.
    del spellings["floats"]
    return spellings | {"rng": spellings["seed"]}


_SPELLINGS: Final = _map_to_options()
OPTIONS: Final = {name: spelling.partition("/")[0] for name, spelling in _SPELLINGS.items()}
"""For each Python argument, the name of the same option on the command line. Messages use it."""

_PROPOSALS: Final = re.compile(
    r"(?:dpcore\.)?pairs\.patterns\((?P<dim>\w+), [\"'](?P<which>\w+)[\"']\)"
    r"|(?<![\w.-])(?P<name>" + "|".join([*OPTIONS, "floats", "executor"]) + r")="
    r"(?P<value>[\w.]+\([^()]*\)|'[^']*'|\"[^\"]*\"|[\w.+-]*\w)?"
    # The arguments of a function call are not options.
    r"|[\w.]+\((?:[^()]|\([^()]*\))*\)"
)
"""Pattern for the Python arguments and calls in a message that correspond to options."""

_WITH_PARAMETER: Final = re.compile(r"(?:\w+\.)*(L1|L2|Linf|GDP|ZCDP)\((?:\w+=)?([\w.+-]+)\)")
_RELATIONS_OF_DATA_SETS: Final = re.compile(r"(?:\w+\.)*(Replace|Add)(Remove)?\([^()]*\)")


def name_options(text: str) -> str:
    """Replace Python arguments in a message by the command-line options that have the same meaning.

    Example:
        >>> name_options("(neighbour=L1(radius=1.0)): give paired=True, or bound='exact'")
        '(--neighbour l1=1.0): give --paired, or --bound exact'
    """
    return _PROPOSALS.sub(_spell_proposal, text)


def _spell_proposal(match: re.Match[str]) -> str:
    name, value = match["name"], match["value"] or ""
    if match["which"] is not None:
        return f"--patterns {match['which']} --dim {match['dim']}"
    if name is None:
        return "dpcore trace" if match[0].startswith("dpcore.trace(") else match[0]
    option = "--dask" if name == "executor" else OPTIONS.get(name, f"--{name}")
    # A switch has no value. Some switches have a separate name for their negative form.
    if value in ("True", "False"):
        off = _SPELLINGS.get(name, "").partition("/")[2] or f"no {option}"
        return option if value == "True" else off
    value = _WITH_PARAMETER.sub(lambda curve: f"{curve[1].lower()}={curve[2]}", value)
    value = _RELATIONS_OF_DATA_SETS.sub(
        lambda relation: "add-remove" if relation[2] else "replace", value
    )
    return f"{option} {value.strip(chr(34) + chr(39))}".rstrip()


_Options = TypeVar("_Options")


def add_options(kind: type[_Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that adds the options in a dataclass to a command-line command.

    The function of the command has a parameter `asked`. The decorated function has, in place of
    `asked`, one parameter for each option. The decorated function puts the values of the options
    into an instance of `kind`, and passes this instance to the original function as `asked`.

    Args:
        kind: dataclass whose fields are options, such as `AuditArguments`.

    Returns:
        The decorator.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        kinds = get_type_hints(kind)
        spread = [
            inspect.Parameter(
                option.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=inspect.Parameter.empty if option.default is MISSING else option.default,
                annotation=Annotated[kinds[option.name], option.metadata["parameter"]],
            )
            for option in fields(kind)  # type: ignore[arg-type]
        ]

        @functools.wraps(command)
        def run(**values: Any) -> None:
            command(
                asked=kind(**{option.name: values.pop(option.name) for option in spread}), **values
            )

        taken: list[inspect.Parameter] = []
        for option in inspect.signature(command, eval_str=True).parameters.values():
            own = option.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            taken += spread if option.name == "asked" else [own]
        vars(run)["__signature__"] = inspect.Signature(taken)
        return run

    return decorate
