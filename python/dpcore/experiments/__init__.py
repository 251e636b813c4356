"""The figures and tables of the papers, each remade by name.

An experiment is a module or, if it has several files, a package here, and its name in `NAMES`. From
top to bottom it has a frozen `Config`, whose fields are declared with their checks (`base`);
`run(config)`, which gives its work to a loop that Ctrl-C may end (`running`); and a frozen `Result`
with `table()` and `to_dict()` (`base`), and `plot()` (`drawing`). It is imported when it is first
used.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import choice, flag, invalid, mistyped
from ..paths import name_path_errors, write_file
from ..suggestions import suggest_arguments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NAMES", "Result", "get", "reproduce"]

NAMES: tuple[str, ...] = (
    "published-systems",
    "habernal2022-figure1",
    "habernal2022-figure2",
    "dp-sniper-table",
    "searched-pairs",
    "floating-point",
    "habernal2021-figure1",
    "sensitivity-table",
    "divergence-accuracy",
    "renyi-of-mechanisms",
    "noise-layers",
    "dpnr-robust-adaptive",
    "word2vec-leakage",
    "renyi-vs-alpha",
    "redaction-names",
    "redaction-sweep",
    "dpnr-table",
    "adept-rewrite",
    "adept-linkage",
    "dptext-encoder",
    "word-dp-attack",
    "dpsgd-audit",
    "model-closeness",
    "dpsgd-vs-redaction",
    "encoder-frontier",
    "scaling",
    "released-libraries",
)
"""The names of the experiments: each is that of a module or package here, with _ for -."""


RESUMABLE: tuple[str, ...] = (
    "published-systems",
    "habernal2022-figure1",
    "dp-sniper-table",
    "floating-point",
)
"""Experiments whose audits an executor can count, and which go on from run files."""

QUICK: dict[str, int] = {"trials": 20_000, "seeds": 1, "quick": True}
"""Options that `quick` sets, as far as an experiment has them."""


class Result(Protocol):
    """Interface of the results of all experiments."""

    @property
    def partial(self) -> bool:
        """True if Ctrl-C ended the experiment early: it then holds what was done."""

    def plot(self, ax: Any = None) -> Figure:
        """Draw the result on a new figure of pyplot, a given figure or in the place of axes."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""

    def table(self) -> str:
        """Return the figures as aligned plain text."""


def get(name: str) -> Any:
    """Import the module of an experiment and return it.

    Args:
        name: one of `NAMES`.

    Returns:
        A module with `Config`, `run` and `Result`.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if it is not one of `NAMES`.

    Example:
        >>> get("habernal2022-figure1").Config().trials
        10000000
    """
    return importlib.import_module("." + choice("name", name, NAMES).replace("-", "_"), __name__)


def config_of(name: str, *, quick: bool = False, **options: Any) -> Any:
    """Make the configuration of an experiment from the given fields.

    Args:
        name: one of `NAMES`.
        quick: a run that only shows that it works: `QUICK`, unless other values are given.
        **options: fields of its `Config`. None and False leave it at the experiment's own.

    Returns:
        Its `Config`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or the experiment takes no such field: the message
            says which ones do.

    Example:
        >>> config_of("published-systems", quick=True).trials
        20000
        >>> config_of("published-systems", seeds=3)
        Traceback (most recent call last):
        ValueError: seeds must be left out for published-systems (it is for noise-layers...), got 3
    """
    asked = {
        key: value for key, value in options.items() if value is not None and value is not False
    }
    taken = _config_fields(name)
    for key, value in asked.items():
        if key not in taken:
            takers = [other for other in NAMES if key in _config_fields(other)]
            who = f"it is for {' and '.join(takers)}" if takers else "no experiment takes it yet"
            raise invalid(key, f"left out for {name} ({who})", value)
    if flag("quick", quick):
        asked = {key: value for key, value in QUICK.items() if key in taken} | asked
    return get(name).Config(**asked)


def _config_fields(name: str) -> Any:
    return inspect.signature(get(name).Config).parameters


@suggest_arguments
def reproduce(
    name: str,
    out: str | os.PathLike[str],
    trials: int | float | str | None = None,
    seed: int | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    *,
    data: str | os.PathLike[str] | None = None,
    full: bool = False,
    quick: bool = False,
    seeds: int | None = None,
    device: str | None = None,
    executor: Any = None,
    resume: str | os.PathLike[str] | None = None,
) -> Result:
    """Run an experiment and write `NAME.json`, `NAME.png` and `NAME.svg`.

    Args:
        name: one of `NAMES`.
        out: folder for the files, created if it is missing; files of these names are replaced.
        trials: draws on each side of every audit, or draws in every histogram. None takes the
            experiment's own number, the paper's where it gives one.
        seed: int in [0, 2**63). None takes the experiment's own, so that a plain call repeats the
            published files.
        threads: number of threads, None for all cores; never changes a result.
        progress: show a bar. None shows it for long work on a terminal or in a notebook.
        data: folder with the corpora that it reads. None has it make up texts, which table and
            picture say.
        full: the size of the paper, for an experiment that is smaller otherwise.
        quick: few trials and one seed, unless they are given: under 20 seconds.
        seeds: number of runs; their mean and spread are shown.
        device: where torch runs, such as "cpu" or "cuda".
        executor: counts the audits, see `dpcore.audit`: a Dask client, say.
        resume: folder with a run file for each audit: an experiment that was killed goes on, and
            finished audits are not counted again. For those named in `RESUMABLE`, as `executor`.

    Returns:
        The experiment's `Result`. After Ctrl-C it holds what was done, with `partial`
        set, and the files hold the same. (`dpcore reproduce` treats SIGTERM as Ctrl-C.)

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a name or a value is out of range, or an option is given that this
            experiment does not take.
        ModuleNotFoundError: if it needs a package that is not installed: it says which.
        OSError: if the folder or a file cannot be written.
        KeyboardInterrupt: on Ctrl-C before anything is done.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = reproduce("habernal2022-figure2", folder, trials=1000)
        ...     sorted(os.listdir(folder))
        ['habernal2022-figure2.json', 'habernal2022-figure2.png', 'habernal2022-figure2.svg']
    """
    from .running import place_audits

    module = get(name)
    for option, value in (("executor", executor), ("resume", resume)):
        if value is not None and name not in RESUMABLE:
            raise invalid(option, f"left out for {name} (it is for {', '.join(RESUMABLE)})", value)
    options = {"data": data, "full": flag("full", full), "seeds": seeds, "device": device}
    config = config_of(name, quick=quick, trials=trials, seed=seed, **options)
    # Before the run: a folder that cannot be made should not cost a minute of counting.
    folder = Path(out)
    with name_path_errors(folder, "written to", "out", "folder"):
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder, buffering=0) as file:
            file.write(b"one byte")
    if not (resume is None or isinstance(resume, (str, os.PathLike))):
        raise mistyped("resume", "the path of a folder, or None", resume)
    runs = None if resume is None else Path(resume)
    if runs is not None:
        runs.mkdir(parents=True, exist_ok=True)
    with place_audits(executor, runs):
        result: Result = module.run(config, threads=threads, progress=progress)
    record = json.dumps(result.to_dict(), allow_nan=False, indent=1)
    from .drawing import save_png_and_svg

    try:
        write_file(folder / f"{name}.json", record + "\n", "out")
        save_png_and_svg(result, folder / name)
    except OSError as error:
        # Hours of counting must not be lost with a file.
        vars(error).update(result=result)
        raise
    return result
