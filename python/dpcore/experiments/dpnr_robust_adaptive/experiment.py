"""Does noise in training help a text classifier under noise, and does changing noise help?

The study of DPNR redone: mean over words and word pairs, min-max, Laplace noise, a linear
classifier, trained without noise, with that of the test ("robust"), or with noise that changes
("adaptive"); with the control that it lacks, one model trained at epsilon 5 and used at every
noise. Words are masked as it does, and left out of the mean. Every claimed epsilon is shown with
the true one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...errors import choice, flag, instance, integer, mistyped, real
from ...records import Shown
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .cases import LINES, MADE, MU_EPSILON, NAMES
from .jobs import Model, Test, corpora_of, jobs_of
from .published import EPSILONS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ...text import Corpus

NAME = "dpnr-robust-adaptive"

_MASKED_SHARES: Final = (0.1, 0.3, 0.5, 0.8)
_QUICK_SETTINGS: Final[dict[str, Any]] = {
    "dims": (16,),
    "epsilons": (1.0, 5.0),
    "mus": (0.5,),
    "lines": ("not robust", "robust", "constant 5", "uniform 2 to 10"),
}
_USUAL_SETTINGS: Final[dict[str, Any]] = {
    "dims": (32, 64),
    "epsilons": EPSILONS,
    "mus": _MASKED_SHARES,
    "lines": NAMES,
}
_GENERATED_CORPUS_ROWS: Final = {False: 4000, True: 500}
_QUICK_PART_TEXTS: Final = 500
"""Texts of a real corpus in a quick run, in training and in test."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the models to train, and the noise of the tests.

    Args:
        trials: noisy encodings of test texts behind every accuracy, at least: the whole test part
            as often as that takes.
        seed: int in [0, 2**63); every model and every test gets a seed derived from it.
        seeds: models of each kind, of which mean and spread are shown; None for 3, or 5 if `full`.
        data: folder with the folders ag_news and yelp; None makes up two corpora in their place.
        full: True for five seeds, masks in every dimension, and the sound scale at every epsilon.
        quick: True for a run that shows no more than that it works: a few hundred texts of one
            corpus, one dimension, four lines.
        device: where models are trained and tested, such as "cpu" or "cuda".
        dims: entries of a vector; () for 32 and 64.
        epsilons: claims of the noise in the test; () for the study's, .05 to 5.
        mus: shares of masked words, at claimed epsilon 4, for the lines "not robust" and "robust";
            () for .1, .3, .5 and .8.
        lines: names of the ways of training; () for all.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or a name unknown.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).dims
        (3, 5, (16,))
    """

    trials: int = 20_000
    seed: int = SEED
    seeds: int | None = None
    data: str | None = None
    full: bool = False
    quick: bool = False
    device: str = "cpu"
    dims: tuple[int, ...] = ()
    epsilons: tuple[float, ...] = ()
    mus: tuple[float, ...] = ()
    lines: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the fields, and fill in the usual values."""
        check_config(self)
        instance("device", self.device, str)
        if self.data is not None and not isinstance(self.data, (str, os.PathLike)):
            raise mistyped("data", "a path of a folder, or None", self.data)
        full, quick = flag("full", self.full), flag("quick", self.quick)
        seeds = (5 if full else 3) if self.seeds is None else self.seeds
        values: dict[str, Any] = {"seeds": integer("seeds", seeds, 1)}
        values["data"] = None if self.data is None else str(self.data)
        checks: dict[str, Callable[[Any], Any]] = {
            "dims": lambda value: integer("dims", value, 2),
            "epsilons": partial(real, "epsilons", low=0.0, open_low=True),
            "mus": partial(real, "mus", low=0.0, high=1.0, open_low=True, open_high=True),
            "lines": lambda value: choice("lines", value, NAMES),
        }
        usual = _QUICK_SETTINGS if quick else _USUAL_SETTINGS
        for name, checked in checks.items():
            given = getattr(self, name)
            found = check_list(name, usual[name] if given == () else given, checked)
            values[name] = found if name == "lines" else tuple(sorted(found))
        for name, value in values.items():
            object.__setattr__(self, name, value)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train and test every model.

    Args:
        config: what to train, and at which noise to test it.
        threads: has no effect: models this small are trained on one thread.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result; after Ctrl-C, the models that were done.

    Raises:
        TypeError: if `config` is another experiment's.
        ModuleNotFoundError: without torch; it says what to install.
        OSError: if a corpus is missing.
        ValueError: if there is no such device.
        KeyboardInterrupt: on Ctrl-C before the first model was done.

    Source:
        Zouhri and Abecidan (2021), section 5; the system: Lyu, He and Li (2020).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     found = run(Config(quick=True, seeds=1, lines=("not robust",), mus=(0.5,)))
        ...     assert found.values("ag_news", 16, "not robust", None)[0] > 0.5
    """
    require_own_config(config, __name__)
    from ...torch.mechanisms import device_of
    from .training import Bench

    device_of(config.device)
    begun = time.perf_counter()
    corpora = {name: _read_or_generate(name, config) for name in corpora_of(config)}
    benches = {name: Bench(corpus, config) for name, corpus in corpora.items()}
    models, partial = run_jobs(
        "models", list(jobs_of(config)), lambda job: benches[job.data].model(job), progress
    )
    sizes = tuple(Size.of(name, corpus) for name, corpus in corpora.items())
    return Result(config, models, sizes, partial, time.perf_counter() - begun)


def _read_or_generate(name: Any, config: Config) -> Corpus:
    """Read or generate a corpus with training and test texts."""
    from ...text import generated
    from ..corpora import read_corpus

    seed = cell_seed(config.seed, name)
    if config.data is None:
        return generated(MADE[name], _GENERATED_CORPUS_ROWS[config.quick], rng=seed)
    whole = read_corpus(config.data, name)
    if not config.quick:
        return whole
    rng, split = np.random.default_rng(seed), np.asarray(whole.split)
    chosen = [
        np.sort(rng.choice(rows, min(_QUICK_PART_TEXTS, rows.size), replace=False))
        for rows in (np.flatnonzero(split == part) for part in ("train", "test"))
    ]
    some: Corpus = whole[np.concatenate(chosen)]
    return some


@dataclass(frozen=True, slots=True, repr=False)
class Size(Shown):
    """A corpus in figures.

    Args:
        data: name of the corpus that it is, or stands for.
        origin: where it comes from.
        train: training texts.
        test: test texts.
        labels: how many labels there are.
        chance: share of the most frequent label in the test.
    """

    data: str
    origin: str
    train: int
    test: int
    labels: int
    chance: float

    @classmethod
    def of(cls, data: str, corpus: Corpus) -> Size:
        """Compute the figures of a corpus."""
        labels, counts = np.unique(corpus.test.labels, return_counts=True)
        test = len(corpus.test)
        return cls(
            data, corpus.origin, len(corpus.train), test, len(labels), float(counts.max()) / test
        )


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The models.

    Args:
        config: the options of the run.
        models: those that were trained.
        sizes: the corpora.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    models: tuple[Model, ...]
    sizes: tuple[Size, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def of(
        self,
        data: str,
        dim: int,
        line: str,
        trained: float | None = None,
        mu: float = 0.0,
        mask: str = "",
    ) -> tuple[Model, ...]:
        """Return the models of one kind, seed after seed.

        For a line that has a model for each epsilon, `trained` chooses the epsilon.
        """
        wanted = (data, dim, line, trained, mu, mask)
        return tuple(
            model
            for model in self.models
            if wanted
            == (
                model.job.data, model.job.dim, model.job.line, model.job.trained, model.job.mu,
                model.job.mask,
            )
        )  # fmt: skip

    def values(self, data: str, dim: int, line: str, epsilon: float | None) -> tuple[float, ...]:
        """Return test accuracies of a line, one for each seed; empty if there are none.

        Args:
            data: "ag_news" or "yelp".
            dim: entries of a vector.
            line: its name.
            epsilon: the claim of the noise in the test; None for none.
        """
        case = LINES[line]
        name, trained = (
            (line, epsilon if case.each else None) if case.shared is None else case.shared
        )
        found = [dict(model.accuracies) for model in self.of(data, dim, name, trained)]
        return tuple(one[Test(epsilon)] for one in found if Test(epsilon) in one)

    def masked(
        self, data: str, dim: int, line: str, test: Test, trained: bool = False
    ) -> tuple[float, ...]:
        """Return test accuracies with masked words, one for each seed; empty if there are none.

        Args:
            data: "ag_news" or "yelp".
            dim: entries of a vector.
            line: "not robust" or "robust".
            test: how texts are sent.
            trained: True for models whose words were masked in training too.
        """
        level = None if line == "not robust" else MU_EPSILON
        mask = test.mask if trained or test.mask == "zero_id" else ""
        models = self.of(data, dim, line, level, test.mu if trained else 0.0, mask)
        found = [dict(model.accuracies) for model in models]
        return tuple(one[test] for one in found if test in one)

    def table(self) -> str:
        """Return the figures as text, with those of the study."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data for strict JSON."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw accuracy against claimed and true epsilon, and against the share of masked words.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
