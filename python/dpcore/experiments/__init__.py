"""Experiments that reproduce figures and tables of published papers.

Each experiment has a name, and `NAMES` lists the names. An experiment is a module of this package,
or a subpackage if it has several files. dpcore imports the module at the first use. The module
contains three parts, in this order:

- `Config`, a frozen dataclass of options. Every field is declared together with its check (see
  `base`).
- `run(config)`, which does the work in a loop that Ctrl-C can end (see `running`).
- `Result`, a frozen dataclass with the methods `table()` and `to_dict()` (see `base`) and `plot()`
  (see `drawing`).
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Protocol

from ..errors import choice, flag, invalid, mistyped
from ..paths import name_path_errors, write_file_or_keep_old
from ..suggestions import explain_argument_errors

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
"""Names of the experiments. The module or subpackage of an experiment has the same name, with _
instead of -."""


RESUMABLE: tuple[str, ...] = (
    "published-systems",
    "habernal2022-figure1",
    "dp-sniper-table",
    "floating-point",
)
"""Names of the experiments that accept the options `executor` and `resume` of `reproduce`."""

QUICK: dict[str, int] = {"trials": 20_000, "seeds": 1, "quick": True}
"""Values of the options that `quick=True` sets. Options that an experiment lacks are skipped."""


class Result(Protocol):
    """Interface of the results that `reproduce` and the function `run` of an experiment return."""

    @property
    def partial(self) -> bool:
        """True if Ctrl-C ended the experiment early.

        The result then contains only the completed parts of the experiment.
        """

    def plot(self, ax: Any = None) -> Figure:
        """Draw the result as a matplotlib figure, and return the figure.

        If `ax` is None, the method makes a new pyplot figure. If `ax` is an empty figure, the
        method draws on this figure. If `ax` is a subplot (axes), the picture replaces the subplot.
        """

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""

    def table(self) -> str:
        """Return the results as plain text, with tables whose columns are aligned."""


def get(name: str) -> Any:
    """Import and return the module of an experiment.

    Args:
        name: one of `NAMES`.

    Returns:
        The module, with the attributes `Config`, `run` and `Result`.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if `name` is not one of `NAMES`.

    Example:
        >>> get("habernal2022-figure1").Config().trials
        10000000
    """
    return importlib.import_module("." + choice("name", name, NAMES).replace("-", "_"), __name__)


def config_of(name: str, *, quick: bool = False, **options: Any) -> Any:
    """Return the configuration of an experiment. Options that are left out keep their defaults.

    Args:
        name: one of `NAMES`.
        quick: True for a short run that only shows that the experiment works. The function then
            sets `trials` to 20,000, `seeds` to 1 and `quick` to True. The function skips a field if
            the experiment does not have this field, or if `options` contains the field.
        **options: fields of the class `Config` of the experiment. A field with the value None or
            False keeps its default.

    Returns:
        An instance of the class `Config` of the experiment.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range, or if `options` contains a field that the experiment
            does not have. In the second case, the message names the experiments that have this
            field.

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


@explain_argument_errors
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
    packages: Sequence[str] | None = None,
    slow: bool = False,
    executor: Any = None,
    resume: str | os.PathLike[str] | None = None,
) -> Result:
    """Run an experiment, and write its results and its picture to three files.

    The files are `NAME.json` (results), `NAME.png` and `NAME.svg` (picture). NAME is the name of
    the experiment.

    Args:
        name: one of `NAMES`.
        out: folder for the three files. The function creates a missing folder, and replaces
            existing files with these names.
        trials: number of random draws. If the experiment audits a mechanism, `trials` is the number
            of outputs on each of the two inputs. If it draws histograms, `trials` is the number of
            draws in each histogram. The default is the number in the paper, or a number set by the
            experiment if the paper states no number.
        seed: int in [0, 2**63). Defaults to 2022, the seed of the result files that are published
            with dpcore.
        threads: number of threads. Defaults to the number of cores. The number of threads never
            changes a result.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.
        data: folder with the text corpora of the experiment. By default, the experiment generates
            texts instead, and the table and the picture state that the texts are generated.
        full: True to run the experiment at the size in the paper. Some experiments have a smaller
            size by default.
        quick: True for a short run of less than 20 seconds. A short run uses few trials and one
            seed, unless `trials` or `seeds` is given.
        seeds: number of repetitions with different seeds. The table shows the mean and the standard
            deviation over the repetitions.
        device: torch device, such as "cpu" or "cuda".
        packages: names of the packages to audit, only for the experiment `released-libraries`.
            Defaults to all packages of this experiment.
        slow: True to include the slow cases, only for the experiment `released-libraries`.
        executor: executor that runs the audits, such as a Dask client (as in `dpcore.audit`). Only
            for the experiments in `RESUMABLE`.
        resume: folder in which the function saves the progress of each audit. After an experiment
            was stopped, call the function again with the same folder. The new call does not repeat
            completed audits. Only for the experiments in `RESUMABLE`.

    Returns:
        The `Result` of the experiment. After Ctrl-C, the result and the files contain only the
        completed parts of the experiment, and `partial` of the result is True. (The shell command
        `dpcore reproduce` treats SIGTERM like Ctrl-C.)

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `name` is unknown, a value is out of range, or an argument is given that the
            experiment does not use.
        ModuleNotFoundError: if a required package is not installed. The message names the package.
        OSError: if the folder or a file cannot be written.
        KeyboardInterrupt: if the user presses Ctrl-C before the first part is complete.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     result = reproduce("habernal2022-figure2", folder, trials=1000)
        ...     sorted(os.listdir(folder))
        ['habernal2022-figure2.json', 'habernal2022-figure2.png', 'habernal2022-figure2.svg']
    """
    from .running import set_audit_executor

    module = get(name)
    for option, value in (("executor", executor), ("resume", resume)):
        if value is not None and name not in RESUMABLE:
            raise invalid(option, f"left out for {name} (it is for {', '.join(RESUMABLE)})", value)
    options = {
        "data": data, "full": flag("full", full), "seeds": seeds, "device": device,
        "packages": packages, "slow": flag("slow", slow),
    }  # fmt: skip
    config = config_of(name, quick=quick, trials=trials, seed=seed, **options)
    # The folder is checked before the run, so that an error does not cost a minute of counting.
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
    with set_audit_executor(executor, runs):
        result: Result = module.run(config, threads=threads, progress=progress)
    record = json.dumps(result.to_dict(), allow_nan=False, indent=1)
    from .drawing import save_png_and_svg

    try:
        write_file_or_keep_old(folder / f"{name}.json", record + "\n", "out")
        save_png_and_svg(result, folder / name)
    except OSError as error:
        # The result is attached, so that hours of counting are not lost with a file.
        vars(error).update(result=result)
        raise
    return result
