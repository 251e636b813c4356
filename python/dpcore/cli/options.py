"""Options of the commands, each declared once: name, type, default, help, and panel.

A command's options are the fields of a class. A field has the name of the argument of the function
that does the work; `OPTIONS` gives its spelling on the command line.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Annotated, Any, Final, TypeVar, get_type_hints

import typer

from ..attacks import NAMES
from ..bounds import BOUNDS
from ..claims.renyi import ZCDP
from ..claims.trade_off import GDP
from ..claims.trade_off import Claim as Curve


def _make_option(
    panel: str | None, text: str, *names: str, metavar: str | None = None, **more: Any
) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, **more)


def _list_names(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}."


_SYSTEM_PANEL, _INPUTS_PANEL, _CLAIM_PANEL = "A published system", "The two inputs", "The claim"
_ATTACK_PANEL, _RUN_PANEL, _OUTPUT_PANEL = "The attack", "The run", "Output"
_FILES_PANEL = "The files"

# Of several commands.

_CLAIM_CURVES: Final = {"gdp": GDP, "zcdp": ZCDP}


def _read_claim(text: str) -> float | Curve:
    """Read the claim that a text states: an epsilon, or a curve by kind and parameter."""
    kind, equals, number = text.partition("=")
    try:
        value = float(number if equals else kind)
    except ValueError:
        value = None
    if value is None or (equals and kind.lower() not in _CLAIM_CURVES):
        raise typer.BadParameter(f"it must be an epsilon, gdp=MU or zcdp=RHO, got {text!r}")
    if not equals:
        return value
    try:
        return _CLAIM_CURVES[kind.lower()](value)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


Claim = Annotated[
    Any,
    _make_option(
        _CLAIM_PANEL,
        "What to test: an epsilon, gdp=MU or zcdp=RHO. Default: the mechanism's own claim.",
        parser=_read_claim,
        metavar="EPSILON",
    ),
]
EpsilonClaim = Annotated[
    float | None,
    _make_option(_CLAIM_PANEL, "The epsilon to test. Default: the mechanism's own claim."),
]
NoClaim = Annotated[bool, _make_option(_CLAIM_PANEL, "Test no claim, only estimate.", "--no-claim")]
Delta = Annotated[float, _make_option(_CLAIM_PANEL, "The delta of the claim.")]
Confidence = Annotated[float, _make_option(_CLAIM_PANEL, "Probability that the bound holds.")]
Seed = Annotated[
    int | None,
    _make_option(
        _RUN_PANEL, "Repeats a run: rng= in Python. Default: a fresh one, which is reported."
    ),
]
LikeAudit = Annotated[
    str | None, _make_option(_ATTACK_PANEL, "As in dpcore audit. Default: auto.", metavar="NAME")
]
Threads = Annotated[
    int | None,
    _make_option(_RUN_PANEL, "Number of threads. Default: all cores, 1 for your own mechanism."),
]
Dask = Annotated[
    str | None,
    _make_option(
        _RUN_PANEL,
        "Count on a Dask cluster: the address of its scheduler, or local:8 for eight processes.",
        metavar="ADDRESS|local:N",
    ),
]
SameBits = Annotated[
    bool,
    _make_option(
        _RUN_PANEL,
        "Refuse workers and processes that give other bits for one seed.",
        "--same-bits/--no-same-bits",
    ),
]
Plot = Annotated[
    str | None,
    _make_option(_OUTPUT_PANEL, "Save a picture, such as audit.png or .svg.", metavar="FILE"),
]
Json = Annotated[
    bool, _make_option(_OUTPUT_PANEL, "Print one JSON document, nothing else.", "--json")
]
Html = Annotated[
    str | None, _make_option(_OUTPUT_PANEL, "Save the whole report as one page.", metavar="FILE")
]
Source = Annotated[
    bool,
    _make_option(
        _OUTPUT_PANEL, "Keep the mechanism's source text in page and JSON.", "--source/--no-source"
    ),
]
Progress = Annotated[
    bool | None,
    _make_option(
        _OUTPUT_PANEL,
        "Show a bar on stderr. Default: for long work on a terminal.",
        "--progress/--no-progress",
        show_default=False,
    ),
]
Traceback = Annotated[
    bool, _make_option(_OUTPUT_PANEL, "Show the whole traceback of an error.", "--traceback")
]
Systems = Annotated[bool, _make_option(None, "List the published systems.", "--list")]
Names = Annotated[bool, _make_option(None, "List the experiments.", "--list")]


@dataclass(frozen=True)
class MechanismArguments:
    """Mechanism and its two inputs; None if an option was not given."""

    target: Annotated[
        str | None,
        typer.Argument(
            metavar="SYSTEM|FILE.py:FUNCTION",
            help="A published system, or a mechanism of your own.",
            show_default=False,
        ),
    ] = None
    epsilon: Annotated[
        float | None,
        _make_option(_SYSTEM_PANEL, "The epsilon it is run with, its claim. Default: --claim."),
    ] = None
    sensitivity: Annotated[
        float | None,
        _make_option(
            _SYSTEM_PANEL,
            "L1 sensitivity that the noise is made for. Default: the distance of --x and "
            "--x-prime, 1 without them.",
        ),
    ] = None
    clip: Annotated[
        float | None,
        _make_option(_SYSTEM_PANEL, "Radius of the clip of the ADePT family. Default: 1."),
    ] = None
    nan: Annotated[
        str | None,
        _make_option(
            _SYSTEM_PANEL,
            "What dptext makes of an undefined draw: zero, resample or keep. Default: zero.",
            metavar="MODE",
        ),
    ] = None
    dim: Annotated[
        int | None,
        _make_option(
            _INPUTS_PANEL, "Entries of the mechanism's own default pair. Default: 2 for a system."
        ),
    ] = None
    x: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL,
            "First input: numbers with commas between, or @FILE.npy.",
            metavar="NUMBERS",
        ),
    ] = None
    x_prime: Annotated[
        str | None, _make_option(_INPUTS_PANEL, "Second input, likewise.", metavar="NUMBERS")
    ] = None
    text: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL, "First input of a mechanism that takes a text.", metavar="TEXT"
        ),
    ] = None
    text_prime: Annotated[
        str | None, _make_option(_INPUTS_PANEL, "Second text.", metavar="TEXT")
    ] = None
    patterns: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL,
            "Choose among the usual pairs in --dim entries: one (entry changes by 1) or all (may).",
            metavar="WHICH",
        ),
    ] = None


@dataclass(frozen=True)
class AuditArguments(MechanismArguments):
    """Options of `dpcore audit`; None if an option was not given."""

    command: Annotated[
        str | None,
        _make_option(
            _RUN_PANEL,
            "Audit a command in place of a function, such as 'node tool.js {x} {size}': it writes "
            "{size} lines, one answer each. --x and --x-prime are put in as they are.",
            metavar="COMMAND",
        ),
    ] = None
    timeout: Annotated[
        float | None,
        _make_option(
            _RUN_PANEL,
            "Seconds in which a command may write nothing. Default: 60, and .1 for each answer.",
        ),
    ] = None
    claim: Claim = None
    no_claim: NoClaim = False
    delta: Delta = 0.0
    confidence: Confidence = 0.95
    attack: Annotated[
        str,
        _make_option(
            _ATTACK_PANEL,
            f"auto (all that apply), {_list_names([one for one in NAMES if one != 'auto'])}",
            metavar="NAME",
        ),
    ] = "auto"
    bound: Annotated[
        str, _make_option(_ATTACK_PANEL, _list_names(list(BOUNDS)), metavar="NAME")
    ] = "clopper_pearson"
    stop: Annotated[
        str,
        _make_option(
            _ATTACK_PANEL,
            "fixed counts all trials, refuted stops as soon as the claim is refuted.",
            metavar="RULE",
        ),
    ] = "fixed"
    floats: Annotated[
        bool,
        _make_option(
            _ATTACK_PANEL, "Let what rounding gives away count towards the verdict.", "--floats"
        ),
    ] = False
    pilot: Annotated[
        int | None,
        _make_option(
            _ATTACK_PANEL, "Draws a side that choose the event. Default: an eighth of the trials."
        ),
    ] = None
    neighbour: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL,
            "Which inputs the claim speaks of: l1=1, l2=1, linf=1 (or another radius), replace or "
            "add-remove. A farther pair is refused. Default: the two inputs given.",
            metavar="RELATION",
        ),
    ] = None
    repeat: Annotated[
        bool,
        _make_option(
            _RUN_PANEL,
            "Your function returns one answer, (x) or (x, rng): call it once for every output.",
            "--repeat",
        ),
    ] = False
    null: Annotated[
        bool,
        _make_option(
            _INPUTS_PANEL,
            "Allow two equal inputs, where all that is found is a false alarm.",
            "--null",
        ),
    ] = False
    trials: Annotated[
        str | None,
        _make_option(
            _RUN_PANEL,
            "Draws to count on each side, such as 1e8. Default: 1e6 (4,000 of random encoders).",
            metavar="N",
        ),
    ] = None
    start: Annotated[
        str,
        _make_option(
            _RUN_PANEL,
            "First trial; runs of disjoint trials with one seed can be added.",
            metavar="N",
        ),
    ] = "0"
    seed: Seed = None
    route: Annotated[
        str,
        _make_option(
            _RUN_PANEL,
            "How a system's votes are counted: auto, integer or sampled; the counts are the same.",
            metavar="ROUTE",
        ),
    ] = "auto"
    block: Annotated[
        int | None, _make_option(_RUN_PANEL, "Trials in a block, part of what repeats a run.")
    ] = None
    threads: Threads = None
    checkpoint: Annotated[
        str | None,
        _make_option(
            _RUN_PANEL,
            "Write a run file every five seconds, from which a killed audit goes on.",
            metavar="FILE",
        ),
    ] = None
    resume: Annotated[
        str | None,
        _make_option(
            _RUN_PANEL, "Go on with a run file, with the options that began it.", metavar="FILE"
        ),
    ] = None
    fit_only: Annotated[
        bool,
        _make_option(
            _RUN_PANEL, "Choose the event, write --checkpoint, count nothing.", "--fit-only"
        ),
    ] = False
    dask: Dask = None
    same_bits: SameBits = True
    plot: Plot = None
    html: Html = None
    source: Source = True
    as_json: Json = False
    progress: Progress = None


@dataclass(frozen=True)
class CountArguments:
    """Options of `dpcore count`."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="The run file, written by --fit-only.", show_default=False
        ),
    ]
    part: Annotated[
        str,
        _make_option(None, "Which part to count, and of how many: 1/64 to 64/64.", metavar="I/N"),
    ]
    out: Annotated[
        str, _make_option(None, "File to write the part to; it goes on.", metavar="FILE")
    ]
    threads: Threads = None
    dask: Dask = None
    same_bits: SameBits = True
    progress: Progress = None


@dataclass(frozen=True)
class MergeArguments:
    """Options of `dpcore merge`."""

    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE...", help="The parts, in any order.", show_default=False),
    ]
    partial: Annotated[
        bool,
        _make_option(
            None,
            "Show what was counted so far. From then on the bound is the anytime one.",
            "--partial",
        ),
    ] = False
    plot: Plot = None
    html: Html = None
    as_json: Json = False


@dataclass(frozen=True)
class OutputsArguments:
    """Options of `dpcore audit-outputs`; None or empty if an option was not given."""

    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE [FILE]",
            help="Outputs on x, then outputs on x': .csv, .tsv, .txt (one a line), .json, .jsonl, "
            ".npy, .npz or .parquet, also with .gz; - is standard input.",
            show_default=False,
        ),
    ]
    rows: Annotated[
        str | None,
        _make_option(
            _CLAIM_PANEL,
            "independent (every row drawn anew) or one_run (canaries of one training run): you "
            "must say which.",
            metavar="KIND",
            show_default=False,
        ),
    ] = None
    claim: Claim = None
    no_claim: NoClaim = False
    delta: Delta = 0.0
    confidence: Confidence = 0.95
    attack: LikeAudit = None
    bound: Annotated[
        str | None,
        _make_option(_ATTACK_PANEL, "Default: the one that fits the kind of rows.", metavar="NAME"),
    ] = None
    count_share: Annotated[
        float | None,
        _make_option(
            _ATTACK_PANEL, "Share of independent rows that is counted. Default: one half."
        ),
    ] = None
    guesses: Annotated[
        str | None,
        _make_option(
            _ATTACK_PANEL,
            "Canaries guessed: a number, a share, or IN,OUT. Default: all.",
            metavar="N",
        ),
    ] = None
    column: Annotated[
        list[str],
        _make_option(_INPUTS_PANEL, "Column to read, by name or number, or '*'; may be repeated."),
    ] = field(default_factory=list)
    label: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL, "Column of one file that tells the side: 0 or 1, x or x_prime."
        ),
    ] = None
    label_x: Annotated[
        str | None,
        _make_option(_INPUTS_PANEL, "Which of two other labels stands for x.", metavar="VALUE"),
    ] = None
    groups: Annotated[
        str | None,
        _make_option(
            _INPUTS_PANEL,
            "Column with the run, document or person of each row: one row of each is counted.",
            metavar="COLUMN",
        ),
    ] = None
    paired: Annotated[
        bool,
        _make_option(
            _CLAIM_PANEL, "Rows i of both sides come from one seed: they stay together.", "--paired"
        ),
    ] = False
    arranged: Annotated[
        bool,
        _make_option(
            _CLAIM_PANEL, "Rows were put in this order when the runs were over.", "--arranged"
        ),
    ] = False
    header: Annotated[
        str,
        _make_option(
            _FILES_PANEL, "First row holds names: yes, no, or auto (found out).", metavar="WHICH"
        ),
    ] = "auto"
    sep: Annotated[
        str | None,
        _make_option(
            _FILES_PANEL,
            "Between the cells of a CSV file, or tab. Default: found out.",
            metavar="CHAR",
        ),
    ] = None
    encoding: Annotated[
        str | None,
        _make_option(_FILES_PANEL, "Of text, such as latin-1. Default: UTF-8.", metavar="NAME"),
    ] = None
    format: Annotated[
        str | None,
        _make_option(
            _FILES_PANEL,
            "Kind of the files: csv, tsv, lines (one output a line), json, jsonl, npy, npz or "
            "parquet. Default: by their names.",
            metavar="KIND",
        ),
    ] = None
    seed: Seed = None
    plot: Plot = None
    html: Html = None
    source: Source = True
    as_json: Json = False
    progress: Progress = None


@dataclass(frozen=True)
class TableArguments:
    """Arguments of `dpcore audit-table`; None if an option was not given."""

    table: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A row for each input, a column for each output: .npy, or scipy's sparse .npz.",
            show_default=False,
        ),
    ]
    distances: Annotated[
        str | None,
        _make_option(_INPUTS_PANEL, "Distances between the inputs, .npy.", metavar="FILE"),
    ] = None
    log: Annotated[
        bool, _make_option(_INPUTS_PANEL, "The table holds natural logarithms.", "--log")
    ] = False
    claim: EpsilonClaim = None
    no_claim: NoClaim = False
    neighbour: Annotated[
        str | None,
        _make_option(
            _CLAIM_PANEL,
            "Rows that the claim calls neighbours: l1=RADIUS on their numbers, or a mask, .npy. "
            "Default: all.",
            metavar="RELATION|FILE",
        ),
    ] = None
    tolerance: Annotated[
        float | None,
        _make_option(
            _CLAIM_PANEL, "Loss beyond the claim that roundings explain, in nats. Default: 1e-9."
        ),
    ] = None
    threads: Annotated[
        int | None, _make_option(_RUN_PANEL, "Number of threads. Default: all cores.")
    ] = None
    plot: Plot = None
    html: Html = None
    as_json: Json = False
    progress: Progress = None


@dataclass(frozen=True)
class PlanArguments(MechanismArguments):
    """Options of `dpcore plan`; None if an option was not given."""

    claim: Claim = None
    true_epsilon: Annotated[
        float | None, _make_option(_CLAIM_PANEL, "The true loss that is to be found.")
    ] = None
    factor: Annotated[
        float | None,
        _make_option(_CLAIM_PANEL, "Or the scale of the noise over the right one, such as 0.9."),
    ] = None
    delta: Delta = 0.0
    confidence: Confidence = 0.95
    power: Annotated[float, _make_option(_CLAIM_PANEL, "Probability of refuting the claim.")] = 0.95
    mass: Annotated[
        float | None,
        _make_option(
            _ATTACK_PANEL,
            "Probability of the event on its likelier side. Default: that of Laplace noise, 0.5; "
            "with a delta, of Gaussian noise.",
        ),
    ] = None
    attack: LikeAudit = None
    pilot: Annotated[
        int | None,
        _make_option(
            _ATTACK_PANEL, "Most draws a side that tell the event's rates. Default: 2^20."
        ),
    ] = None
    canaries: Annotated[
        int | None, _make_option(_RUN_PANEL, "For one training run: its canaries.")
    ] = None
    guesses: Annotated[
        str | None,
        _make_option(
            _RUN_PANEL, "And the guesses about them: a number, or a share such as 1.0.", metavar="N"
        ),
    ] = None
    seed: Seed = None
    threads: Threads = None
    plot: Plot = None
    as_json: Json = False
    progress: Progress = None


@dataclass(frozen=True)
class ExperimentArguments:
    """Options of `dpcore reproduce`; None if an option was not given."""

    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The experiment.", show_default=False)
    ] = None
    out: Annotated[
        str | None, _make_option(None, "Folder for the files. Default: results.", metavar="DIR")
    ] = None
    trials: Annotated[
        str | None,
        _make_option(None, "Draws on each side of every audit. Default: its own.", metavar="N"),
    ] = None
    seed: Annotated[int | None, _make_option(None, "Default: the one of the published files.")] = (
        None
    )
    threads: Annotated[int | None, _make_option(None, "Number of threads. Default: all cores.")] = (
        None
    )
    quick: Annotated[bool, _make_option(None, "Few trials, one seed: under 20 s.", "--quick")] = (
        False
    )
    full: Annotated[bool, _make_option(None, "The size of the paper.", "--full")] = False
    seeds: Annotated[
        int | None, _make_option(None, "Runs of which mean and spread are shown.", metavar="N")
    ] = None
    data: Annotated[
        str | None,
        _make_option(None, "Folder with corpora. Default: texts made up.", metavar="DIR"),
    ] = None
    device: Annotated[
        str | None, _make_option(None, "Where torch runs, such as cpu or cuda.", metavar="D")
    ] = None
    dask: Dask = None
    resume: Annotated[
        str | None,
        _make_option(
            None, "Folder with a run file for each audit, from which it goes on.", metavar="DIR"
        ),
    ] = None
    as_json: Json = False
    progress: Progress = None


def select_arguments(asked: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the options that a function has arguments for, by name.

    Args:
        asked: an instance of one of the classes above.
        function: the function.

    Returns:
        Its keyword arguments.
    """
    taken = inspect.signature(function).parameters
    return {one.name: getattr(asked, one.name) for one in fields(asked) if one.name in taken}


def _spell_options() -> dict[str, str]:
    """Map every argument to its spelling as an option."""
    found = {}
    for kind in (
        AuditArguments,
        CountArguments,
        MergeArguments,
        OutputsArguments,
        TableArguments,
        PlanArguments,
        ExperimentArguments,
    ):
        for name, hint in get_type_hints(kind, include_extras=True).items():
            option = hint.__metadata__[0]
            if isinstance(option, typer.models.OptionInfo):
                # Of an option in an annotation, its first name is kept as its default.
                own = option.default if isinstance(option.default, str) else f"--{name}"
                found[name] = own.partition("/")[0].replace("_", "-")
    # Complaints call the seed by the name of its argument. Of `floats` they speak as Python does.
    return {**{name: own for name, own in found.items() if name != "floats"}, "rng": found["seed"]}


OPTIONS: Final = _spell_options()
"""The options by the arguments that they stand for, as messages name them."""


_Options = TypeVar("_Options")


def add_options(kind: type[_Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a class as its options, in the place of its argument `asked`.

    Args:
        kind: one of the classes above.

    Returns:
        The decorator.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)
        spread = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_get_default(one),
                annotation=hints[one.name],
            )
            for one in fields(kind)  # type: ignore[arg-type]
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(asked=kind(**{one.name: given.pop(one.name) for one in spread}), **given)

        taken: list[inspect.Parameter] = []
        for one in inspect.signature(command, eval_str=True).parameters.values():
            own = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            taken += spread if one.name == "asked" else [own]
        vars(run)["__signature__"] = inspect.Signature(taken)
        return run

    return decorate


def _get_default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return inspect.Parameter.empty if one.default is MISSING else one.default
