"""The options of the commands: a type, the name where it is not the parameter's, and its help."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ..bounds import BOUNDS


def _in(panel: str, text: str, *names: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(*names, help=text, metavar=metavar, rich_help_panel=panel, **more)


def _listed(names: list[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}."


_SYSTEM, _INPUTS, _CLAIM = "A published system", "The two inputs", "The claim"
_ATTACK, _RUN, _OUTPUT = "The attack", "The run", "Output"

Target = Annotated[
    str | None,
    typer.Argument(
        metavar="SYSTEM|FILE.py:FUNCTION",
        help="A published system, or a mechanism of your own.",
        show_default=False,
    ),
]
Systems = Annotated[bool, typer.Option("--list", help="List the published systems.")]

Epsilon = Annotated[float | None, _in(_SYSTEM, "The epsilon it is run with, which is its claim.")]
Sensitivity = Annotated[
    float | None,
    _in(
        _SYSTEM,
        "L1 sensitivity that the noise is made for. Default: the distance of --x and --x-prime, "
        "1 without them.",
    ),
]
Clip = Annotated[float | None, _in(_SYSTEM, "Radius of the clip of the ADePT family. Default: 1.")]
Nan = Annotated[
    str | None,
    _in(
        _SYSTEM,
        "What dptext makes of an undefined draw: zero, resample or keep. Default: zero.",
        metavar="MODE",
    ),
]

Dim = Annotated[
    int | None,
    _in(_INPUTS, "Entries of the mechanism's own default pair. Default: 2 for a system."),
]
X = Annotated[
    str | None,
    _in(_INPUTS, "First input: numbers with commas between, or @FILE.npy.", metavar="NUMBERS"),
]
XPrime = Annotated[str | None, _in(_INPUTS, "Second input, likewise.", metavar="NUMBERS")]
Patterns = Annotated[
    str | None,
    _in(
        _INPUTS,
        "Choose among the usual pairs in --dim entries: one (entry changes by 1) or all (may).",
        metavar="WHICH",
    ),
]
Neighbour = Annotated[
    str | None,
    _in(
        _INPUTS,
        "Which inputs the claim speaks of: l1=1, l2=1, linf=1 (or another radius), replace or "
        "add-remove. A farther pair is refused. Default: the two inputs given.",
        metavar="RELATION",
    ),
]
Null = Annotated[
    bool,
    _in(_INPUTS, "Allow two equal inputs, where all that is found is a false alarm.", "--null"),
]

Claim = Annotated[
    float | None, _in(_CLAIM, "The epsilon to test. Default: the mechanism's own claim.")
]
NoClaim = Annotated[bool, _in(_CLAIM, "Test no claim, only estimate.", "--no-claim")]
Delta = Annotated[float, _in(_CLAIM, "The delta of the claim.")]
Confidence = Annotated[float, _in(_CLAIM, "Probability that the bound holds.")]

Attack = Annotated[
    str,
    _in(
        _ATTACK,
        "auto (all that apply), majority, threshold, histogram, additive, support, products, "
        "residues, lattice, coordinatewise, classifier or timing.",
        metavar="NAME",
    ),
]
Bound = Annotated[
    str,
    _in(_ATTACK, _listed(list(BOUNDS)), metavar="NAME"),
]
Stop = Annotated[
    str,
    _in(
        _ATTACK,
        "fixed counts all trials, refuted stops as soon as the claim is refuted.",
        metavar="RULE",
    ),
]
Floats = Annotated[
    bool, _in(_ATTACK, "Let what rounding gives away count towards the verdict.", "--floats")
]
Pilot = Annotated[
    int | None,
    _in(_ATTACK, "Draws a side that choose the event. Default: an eighth of the trials."),
]
Trials = Annotated[str, _in(_RUN, "Draws to count on each side, such as 1e8.", metavar="N")]
Start = Annotated[
    str,
    _in(_RUN, "First trial; runs of disjoint trials with one seed can be added.", metavar="N"),
]
Seed = Annotated[int | None, _in(_RUN, "Repeats a run. Default: a fresh one, which is reported.")]
Route = Annotated[
    str,
    _in(
        _RUN,
        "How a system's votes are counted: auto, integer or sampled; the counts are the same.",
        metavar="ROUTE",
    ),
]
Block = Annotated[int | None, _in(_RUN, "Trials in a block, part of what repeats a run.")]
Threads = Annotated[
    int | None, _in(_RUN, "Number of threads. Default: all cores, 1 for your own mechanism.")
]

Plot = Annotated[
    str | None, _in(_OUTPUT, "Save a picture, such as audit.png or .svg.", metavar="FILE")
]
Html = Annotated[str | None, _in(_OUTPUT, "Save the whole report as one page.", metavar="FILE")]
Json = Annotated[bool, _in(_OUTPUT, "Print one JSON document, nothing else.", "--json")]
Progress = Annotated[
    bool | None,
    _in(
        _OUTPUT,
        "Show a bar on stderr. Default: for long work on a terminal.",
        "--progress/--no-progress",
        show_default=False,
    ),
]
Traceback = Annotated[bool, _in(_OUTPUT, "Show the whole traceback of an error.", "--traceback")]

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE [FILE]",
        help="Outputs on x, then outputs on x': .npy, .npz, .csv or .parquet.",
        show_default=False,
    ),
]
Rows = Annotated[
    str | None,
    _in(
        _CLAIM,
        "independent (every row drawn anew) or one_run (canaries of one training run): you must "
        "say which.",
        metavar="KIND",
        show_default=False,
    ),
]
OutputsAttack = Annotated[
    str | None, _in(_ATTACK, "As in dpcore audit. Default: auto.", "--attack", metavar="NAME")
]
OutputsBound = Annotated[
    str | None,
    _in(_ATTACK, "Default: the one that fits the kind of rows.", "--bound", metavar="NAME"),
]
CountShare = Annotated[
    float | None, _in(_ATTACK, "Share of independent rows that is counted. Default: one half.")
]
Guesses = Annotated[
    str | None,
    _in(_ATTACK, "Canaries guessed: a number, a share, or IN,OUT. Default: all.", metavar="N"),
]
Column = Annotated[list[str], _in(_INPUTS, "Column to read, by name or number; may be repeated.")]
Label = Annotated[
    str | None, _in(_INPUTS, "Column of one file that tells the side: 0 or 1, x or x_prime.")
]
Paired = Annotated[
    bool, _in(_CLAIM, "Rows i of both sides come from one seed: they stay together.", "--paired")
]

Name = Annotated[
    str | None,
    typer.Argument(metavar="NAME", help="The experiment.", show_default=False),
]
Names = Annotated[bool, typer.Option("--list", help="List the experiments.")]
Out = Annotated[
    str | None, typer.Option(metavar="DIR", help="Folder for the files. Default: results.")
]
ExperimentTrials = Annotated[
    str | None,
    typer.Option(metavar="N", help="Draws on each side of every audit. Default: its own."),
]
ExperimentSeed = Annotated[
    int | None, typer.Option(help="Default: the one of the published files.")
]
ExperimentThreads = Annotated[
    int | None, typer.Option(help="Number of threads. Default: all cores.")
]
