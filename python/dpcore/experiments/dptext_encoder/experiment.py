"""DPText trained on texts: what its noise certifies, repaired or not, and an epsilon that grows.

The published noise, in the two readings of its formula, and Laplace noise; epsilon fixed, or
learnt with a cap and without one. Every system is trained, inspected, audited on two texts that
training did not see, and attacked. An epsilon that is learnt is flagged: nobody claimed it.
"""

from __future__ import annotations

import math
import os
import statistics
import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ...errors import choice, flag, instance, integer, invalid, mistyped, real
from ...records import Shown
from ...streams import threads_of
from ...text import Corpus, generated
from ..corpora import read_corpus
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .cases import (
    NOISES,
    Case,
    Found,
    Noise,
    choose_unseen_pair,
    compute_majority_share,
    measure_trained_system,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "dptext-encoder"
_FIXED_CLAIMS: Final = {False: (0.1, 1.0, 10.0), True: (1.0,)}
_LEARNT_STARTS: Final = {False: (1.0, 10.0), True: (10.0,)}
_USUAL_TEXTS: Final = {False: 4000, True: 600}


def _read_positive_level(name: str, value: Any) -> float:
    return real(name, value, low=0.0, open_low=True)


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the texts, the epsilons, and the length of training.

    Args:
        trials: draws on each side of every audit.
        seed: int in [0, 2**63); every training and audit gets its own seed derived from it.
        seeds: trainings of each system, of which mean and spread are shown; None for 1, or 5 if
            `full`.
        data: the folder of the corpora, with dpnr_ag/ag_data.txt in it, or one of these two; None
            makes texts up.
        full: True for five seeds.
        quick: True for few made-up texts and few systems: it shows no more than that it works.
        device: where torch runs, such as "cpu".
        noises: "zero", "resample" and "repaired", or some of them.
        claims: fixed epsilons; None for .1, 1 and 10, or 1 if `quick`.
        starts: where a learnt epsilon starts; None for 1 and 10, or 10 if `quick`.
        cap: of a learnt epsilon; without a cap it is learnt as well, unless `quick`.
        epochs: of training.
        texts: texts that are made up where there are no data; None for 4,000, or 600 if `quick`.
        confidence: of each interval and bound by itself.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or a start above the cap.

    Example:
        >>> Config(full=True).seeds, len(Config().cases), len(Config(quick=True).cases)
        (5, 21, 6)
    """

    trials: int = 10**6
    seed: int = SEED
    seeds: int | None = None
    data: str | None = None
    full: bool = False
    quick: bool = False
    device: str = "cpu"
    noises: tuple[Noise, ...] = NOISES
    claims: tuple[float, ...] | None = None
    starts: tuple[float, ...] | None = None
    cap: float = 20.0
    epochs: int = 8
    texts: int | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        instance("device", self.device, str)
        if self.data is not None:
            if not isinstance(self.data, (str, os.PathLike)):
                raise mistyped("data", "a path of a folder or a file", self.data)
            object.__setattr__(self, "data", str(self.data))
        quick = flag("quick", self.quick)
        seeds = (5 if flag("full", self.full) else 1) if self.seeds is None else self.seeds
        texts = _USUAL_TEXTS[quick] if self.texts is None else self.texts
        object.__setattr__(self, "seeds", integer("seeds", seeds, 1))
        object.__setattr__(self, "texts", integer("texts", texts, 300))
        object.__setattr__(self, "epochs", integer("epochs", self.epochs, 1))
        noises = check_list("noises", self.noises, partial(choice, "noises", options=NOISES))
        object.__setattr__(self, "noises", noises)
        for name, usual in (("claims", _FIXED_CLAIMS), ("starts", _LEARNT_STARTS)):
            given = getattr(self, name)
            levels = check_list(
                name, usual[quick] if given is None else given, partial(_read_positive_level, name)
            )
            object.__setattr__(self, name, tuple(sorted(levels)))
        object.__setattr__(self, "cap", _read_positive_level("cap", self.cap))
        assert self.starts is not None
        if self.starts[-1] > self.cap:
            raise invalid("starts", f"at most the cap, {self.cap:g}", self.starts)

    @property
    def attribute(self) -> str:
        """The private attribute."""
        return "parent" if self.data is None else "Bush"

    @property
    def cases(self) -> tuple[Case, ...]:
        """The systems, noise by noise."""
        assert self.claims is not None
        assert self.starts is not None
        caps = (self.cap,) if self.quick else (self.cap, None)
        return tuple(
            case
            for noise in self.noises
            for case in (
                *(Case(noise, level) for level in self.claims),
                *(Case(noise, level, True, cap) for level in self.starts for cap in caps),
            )
        )


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """One system.

    Args:
        case: which one.
        runs: one for each seed.
    """

    case: Case
    runs: tuple[Found, ...]

    @property
    def refuted(self) -> int:
        """In how many runs its epsilon was refuted."""
        return sum(run.refuted for run in self.runs)

    @property
    def flags(self) -> tuple[str, ...]:
        """Checks of the structure that found a fault in any run."""
        return tuple(dict.fromkeys(flag for run in self.runs for flag in run.flags))

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the runs, without intervals of utility or accuracy."""
        return self.spread(name)[0]

    def spread(self, name: str) -> tuple[float, float]:
        """Compute mean and standard deviation of a figure over the runs; 0 for a single run."""
        given = [getattr(run, name) for run in self.runs]
        values = [value[0] if isinstance(value, tuple) else float(value) for value in given]
        if math.inf in values:
            return math.inf, 0.0
        wide = statistics.stdev(values) if len(values) > 1 else 0.0
        return statistics.fmean(values), wide

    def useless(self, majority: float) -> bool:
        """Return True if no run showed its utility to be above the majority."""
        return not any(run.utility[1] > majority for run in self.runs)


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train, inspect, audit and attack every system.

    Args:
        config: which texts, which epsilons, and how long.
        threads: checked and not used: torch trains such small layers on one.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each system.

    Raises:
        ModuleNotFoundError: without torch or scikit-learn; it says what to install.
        FileNotFoundError: if the folder has no such file.
        ValueError: if there is no such device, or the corpus lacks the attribute.
        KeyboardInterrupt: on Ctrl-C before anything was found.

    Source:
        Beigi et al. (2019); the fault of the noise: Habernal (2022).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch") and find_spec("sklearn"):
        ...     config = Config(trials=2000, quick=True, texts=300, epochs=1, noises=("zero",))
        ...     assert all("one_sided" in row.flags for row in run(config).rows)
    """
    require_own_config(config, __name__)
    threads_of(threads)
    from ...text.systems.training import one_thread
    from ...torch.mechanisms import device_of

    device_of(config.device)
    begun = time.perf_counter()
    corpus = _read_or_generate_corpus(config)
    pair = choose_unseen_pair(corpus)
    assert config.seeds is not None
    jobs = [(case, number) for case in config.cases for number in range(config.seeds)]

    def work(job: tuple[Case, int]) -> Found:
        case, number = job
        # The same training for all but the noise; an audit's seed is its own.
        seeds = f"train/{number}", f"{case.noise}/{case.level}/{number}"
        first, second = (cell_seed(config.seed, key) for key in seeds)
        return measure_trained_system(case, corpus, pair, (first, second), config)

    with one_thread():
        done, ended = run_jobs("DPText", jobs, work, progress, ended=lambda one: one.partial)
    found: dict[Case, list[Found]] = {}
    for (case, _), one in zip(jobs, done, strict=False):
        found.setdefault(case, []).append(one)
    rows = tuple(Row(case, tuple(runs)) for case, runs in found.items())
    seconds = time.perf_counter() - begun
    return Result(config, corpus.origin, compute_majority_share(corpus), pair, rows, ended, seconds)


def _read_or_generate_corpus(config: Config) -> Corpus:
    if config.data is None:
        assert config.texts is not None
        return generated("topics", config.texts, rng=cell_seed(config.seed, "corpus"))
    corpus = read_corpus(config.data, "dpnr_ag")
    # Missing ones are refused before the first training.
    corpus.attribute(config.attribute)
    return corpus


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """Results, system by system.

    Args:
        config: what was asked for.
        corpus: where the texts are from.
        majority: the share of the most frequent label among the test texts.
        pair: the two texts of the audits.
        rows: one for each system.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    corpus: str
    majority: float
    pair: tuple[str, str]
    rows: tuple[Row, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def row(self, noise: str, level: str) -> Row:
        """Return the row of a noise and a level of the table, such as "1" or "from 1, no cap".

        Raises:
            ValueError: if there is none.
        """
        for row in self.rows:
            if (row.case.noise, row.case.level) == (noise, level):
                return row
        raise invalid("noise and level", "those of a row", (noise, level))

    def table(self) -> str:
        """Format the figures as text, then what they mean."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw certified against claimed epsilon, and learnt epsilon by epoch.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
