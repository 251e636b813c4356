"""Experiments that reproduce the figures and tables of the papers, each by its name.

An experiment is a module in this package, or a subpackage if it has several files. `NAMES` lists
the names. It consists of three parts, in this order: a frozen `Config`, whose fields are declared
with their checks (`base`); `run(config)`, which passes its work to a loop that Ctrl-C can end
(`running`); and a frozen `Result` with `table()` and `to_dict()` (`base`) and `plot()` (`drawing`).
An experiment is imported when it is first used.
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
"""Names of the experiments. Each is the name of a module or subpackage here, with _ for -."""


RESUMABLE: tuple[str, ...] = (
    "published-systems",
    "habernal2022-figure1",
    "dp-sniper-table",
    "floating-point",
)
"""Experiments whose audits an executor can count, and which can be continued from run files."""

QUICK: dict[str, int] = {"trials": 20_000, "seeds": 1, "quick": True}
"""Options that `quick` sets, if an experiment has them."""


class Result(Protocol):
    """Interface of the results of all experiments."""

    @property
    def partial(self) -> bool:
        """True if Ctrl-C ended the experiment early. It then contains the completed parts."""

    def plot(self, ax: Any = None) -> Figure:
        """Draw the result on a new pyplot figure, on a given figure, or in place of axes."""

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""

    def table(self) -> str:
        """Return the results as aligned plain text."""


def get(name: str) -> Any:
    """Import the module of an experiment, and return this module.

    Args:
        name: one of `NAMES`.

    Returns:
        A module with `Config`, `run` and `Result`.

    Raises:
        TypeError: if `name` is not a string.
        ValueError: if `name` is not one of `NAMES`.

    Example:
        >>> get("habernal2022-figure1").Config().trials
        10000000
    """
    return importlib.import_module("." + choice("name", name, NAMES).replace("-", "_"), __name__)


def config_of(name: str, *, quick: bool = False, **options: Any) -> Any:
    """Make the configuration of an experiment from some of its fields.

    Args:
        name: one of `NAMES`.
        quick: True for a short run that only shows that the experiment works. It sets the values of
            `QUICK`, unless other values are given.
        **options: fields of the experiment's `Config`. None and False keep the default.

    Returns:
        The experiment's `Config`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or the experiment has no such field. The message
            names the experiments that have it.

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
    packages: Sequence[str] | None = None,
    slow: bool = False,
    executor: Any = None,
    resume: str | os.PathLike[str] | None = None,
) -> Result:
    """Run an experiment and write `NAME.json`, `NAME.png` and `NAME.svg`.

    Args:
        name: one of `NAMES`.
        out: folder for the files. It is created if it is missing. Files of these names are
            replaced.
        trials: draws per side of every audit, or draws per histogram. Defaults to the experiment's
            own number, which is the paper's number if the paper states one.
        seed: int in [0, 2**63). Defaults to the experiment's own seed, so that a call without it
            repeats the published files.
        threads: number of threads. Defaults to all cores. It never changes a result.
        progress: True to show a progress bar. By default, it is shown for long work on a terminal
            or in a notebook.
        data: folder with the corpora of the experiment. By default, texts are generated, and table
            and picture state this.
        full: True for the size of the paper, if the default size of the experiment is smaller.
        quick: True for few trials and one seed, unless these are given. It takes less than 20
            seconds.
        seeds: number of runs. Their mean and spread are shown.
        device: torch device, such as "cpu" or "cuda".
        packages: names of released packages, for `released-libraries`. None means all of them.
        slow: True to run the slow cases of `released-libraries` as well.
        executor: executor that counts the audits, such as a Dask client; see `dpcore.audit`.
        resume: folder with a run file per audit. An experiment that was stopped continues, and
            completed audits are not counted again. Like `executor`, only for the experiments in
            `RESUMABLE`.

    Returns:
        The experiment's `Result`. After Ctrl-C, it contains the completed parts, with `partial`
        set, and so do the files. (`dpcore reproduce` treats SIGTERM like Ctrl-C.)

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a name or a value is out of range, or the experiment does not have an option.
        ModuleNotFoundError: if a required package is not installed. The message names it.
        OSError: if the folder or a file cannot be written.
        KeyboardInterrupt: on Ctrl-C before any part is completed.

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
    with place_audits(executor, runs):
        result: Result = module.run(config, threads=threads, progress=progress)
    record = json.dumps(result.to_dict(), allow_nan=False, indent=1)
    from .drawing import save_png_and_svg

    try:
        write_file(folder / f"{name}.json", record + "\n", "out")
        save_png_and_svg(result, folder / name)
    except OSError as error:
        # The result is attached, so that hours of counting are not lost with a file.
        vars(error).update(result=result)
        raise
    return result
