"""Audits and attacks of DPText, with published or repaired noise and fixed or learnt epsilon.

DPText encodes a text as a noisy vector. The published formula of the noise can be read in two ways
("zero" and "resample"). The experiment uses both readings, and also Laplace noise ("repaired"). A
system has one type of noise and one epsilon. The epsilon is fixed, or is learnt during the
training. A learnt epsilon can have an upper limit. The experiment trains every system and inspects
its noise. The experiment then audits epsilon on two texts that are not training texts. Finally, it
attacks the vectors. The table marks a learnt epsilon, because a learnt epsilon is not a claim.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import astuple, dataclass
from itertools import product
from typing import Any, Final, Literal

import numpy as np

from ..bounds import limits
from ..errors import choice, integer, invalid
from ..records import Counts
from ..report.figures import BLUE, GREEN, GREY, INK, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..structure import inspect
from ..text import Corpus
from ..text.inference import Attacker, infer, usual
from . import drawing
from .base import check_positive, setting
from .corpora import TextOptions, read_texts
from .running import (
    VERDICT_WORDS,
    Tabled,
    audit_cell,
    cell_seed,
    group_answers,
    mean_and_sd,
    run_jobs,
    time_run,
)

NAME = "dptext-encoder"

Noise = Literal["zero", "resample", "repaired"]
NOISES: Final[tuple[Noise, ...]] = ("zero", "resample", "repaired")
"""Types of noise: two readings of the published formula ("zero" and "resample"), and Laplace noise.
"""

_ONE_SIDED_DRAWS = 1024
"""Number of outputs in each of the two main calls of `inspect`. Few outputs are enough to find
noise that has only one sign."""


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """Settings of one DPText system (a private text encoder): the type of noise, and epsilon.

    Args:
        noise: type of noise: "zero" or "resample" (two readings of the published formula), or
            "repaired" (Laplace).
        epsilon: claimed epsilon, or the initial value of a learnt epsilon.
        learn: True if epsilon is learnt during the training.
        cap: upper limit of a learnt epsilon, or None for no limit.
    """

    noise: Noise
    epsilon: float
    learn: bool = False
    cap: float | None = None

    @property
    def level(self) -> str:
        """Text that describes epsilon in tables, such as "1", or "from 1, no cap" (learnt)."""
        if not self.learn:
            return f"{self.epsilon:g}"
        return f"from {self.epsilon:g}, {'no cap' if self.cap is None else f'cap {self.cap:g}'}"

    @property
    def faulty(self) -> bool:
        """True if the noise of this system is faulty.

        The privacy loss of faulty noise is not bounded.
        """
        return self.noise != "repaired"


@dataclass(frozen=True, slots=True, repr=False)
class Found(Shown):
    """Results of one trained DPText system: its audit, its accuracy and an attack.

    Args:
        seed: seed of the training, the noise and the attackers.
        audit_seed: seed of the audit.
        epsilons: value of epsilon after each epoch of the training.
        counts: number of outputs in the event, for each of the two audited texts. The event is a
            set of outputs that the audit chose.
        event: description of the event in words.
        refuted: True if the audit refuted epsilon for the two texts. None if the audit could not
            test epsilon.
        certified: certified lower bound on epsilon for the two texts.
        exact: exact privacy loss between the two texts, with the noise of the system.
        right: exact privacy loss that the two texts would have with Laplace noise of the same
            scale.
        flags: names of the faults that `inspect` found in the noise.
        utility: accuracy of the predicted label on the test texts, and the two ends of the
            confidence interval of this accuracy.
        attacker: name of the attacker that was chosen on validation texts. This attacker infers the
            private attribute.
        auc: area under the ROC curve of this attacker on unseen test texts, and the two ends of the
            confidence interval of this area.
        floor: largest area under the ROC curve that attackers without access to the vectors reach
            on the same texts.
        beaten: True if the chosen attacker is significantly better than every attacker who does not
            see the vectors.
        partial: True if Ctrl-C ended the training or the audit early.
    """

    seed: int
    audit_seed: int
    epsilons: tuple[float, ...]
    counts: Counts
    event: str
    refuted: bool | None
    certified: float
    exact: float
    right: float
    flags: tuple[str, ...]
    utility: tuple[float, float, float]
    attacker: str
    auc: tuple[float, float, float]
    floor: float
    beaten: bool
    partial: bool

    @property
    def epsilon(self) -> float:
        """Epsilon of this system after the training (fixed or learnt)."""
        return self.epsilons[-1]


def measure_trained_system(
    case: Case, corpus: Corpus, pair: tuple[str, str], seeds: tuple[int, int], config: Any
) -> Found:
    """Train one DPText system, inspect its noise, audit epsilon, and attack the vectors.

    Args:
        case: settings of the system.
        corpus: corpus with a split, labels and the private attribute.
        pair: the two texts of the audit. They are not training texts.
        seeds: two seeds. The first is for the training, the noise and the attackers, and the second
            is for the audit.
        config: options of the experiment.
    """
    from ..text import DPTextModel
    from ..torch import LaplaceNoise

    seed, audit_seed = seeds
    model = DPTextModel(
        case.epsilon, attribute=config.attribute, noise=case.noise, learn=case.learn, cap=case.cap
    ).fit(corpus, epochs=config.epochs, pair=False, rng=seed, device=config.device, progress=False)
    assert model.trained is not None
    audited = audit_cell(config, case.level, model, pair, claim=model.learnt, rng=audit_seed)
    private, rows = model.require_private("is inspected"), model.clean(list(pair))
    test = corpus.test
    right = int((model.predict(test.texts, rng=seed) == test.labels).sum())
    asked: Any = {"confidence": config.confidence, "rng": seed, "progress": False}
    attackers: list[Any] = list_non_neural_attackers(corpus, config.quick)
    if case.noise == "repaired":
        # The faulty noise does not have a density everywhere.
        attackers.append("likelihood")
    inference = infer(model, corpus, config.attribute, attackers=attackers, **asked)
    assert inference.figures is not None
    reached = inference.figures.auc
    return Found(
        seed=seed,
        audit_seed=audit_seed,
        epsilons=model.trained.epsilons,
        counts=audited.counts,
        event=str(audited.event),
        refuted=audited.refuted,
        certified=audited.epsilon_lower,
        exact=private.noise.loss(*rows.double().cpu().numpy()),
        right=LaplaceNoise(private.noise.scale).loss(*rows.double().cpu().numpy()),
        flags=inspect(private.noise, rows[0], draws=_ONE_SIDED_DRAWS, rng=audit_seed).flagged,
        utility=(right / len(test), *limits(right, len(test), (1.0 - config.confidence) / 2.0)),
        attacker=inference.attacker,
        auc=(reached.value, reached.low, reached.high),
        floor=max(reached.value - floor.gain.value for floor in inference.floors),
        beaten=inference.above_floor,
        partial=model.trained.partial or audited.partial,
    )


def list_non_neural_attackers(corpus: Corpus, quick: bool) -> list[Attacker]:
    """Return the attackers that dpcore usually tries, except for neural networks.

    If `quick` is True, return only the first and the last of these attackers.
    """
    kept = [
        attacker
        for attacker in usual(len(corpus.train))
        if not attacker.classifier.startswith("network")
    ]
    return [kept[0], kept[-1]] if quick else kept


def choose_unseen_texts_of_two_labels(corpus: Corpus) -> tuple[str, str]:
    """Return two test texts that are not training texts, and that have different labels.

    If the corpus lacks such a pair, the function returns two test texts for which at least one of
    these conditions is false.
    """
    train_texts, test = set(corpus.train.texts), corpus.test
    unseen = [row for row, text in enumerate(test.texts) if text not in train_texts] or [0]
    others = [row for row in unseen if test.labels[row] != test.labels[unseen[0]]]
    return test.texts[unseen[0]], test.texts[others[0] if others else -1]


def compute_majority_share(corpus: Corpus) -> float:
    """Return the share of the test texts that have the most frequent label."""
    return float(np.unique(corpus.test.labels, return_counts=True)[1].max() / len(corpus.test))


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of an experiment that trains, audits and attacks DPText systems.

    Args:
        trials: number of outputs that an audit draws for each of the two audited texts.
        seed: int in [0, 2**63). The experiment derives a separate seed for every training and every
            audit from this seed.
        seeds: number of trainings of each system. The table shows the mean and the standard
            deviation over the trainings. Defaults to 1, or to 5 if `full` is True.
        data: path of the file `ag_data.txt`, of its folder `dpnr_ag`, or of the folder that
            contains `dpnr_ag`. With None, texts are generated.
        full: True to train every system with five seeds.
        quick: True for a short test with few generated texts and few systems.
        device: torch device, such as "cpu".
        noises: types of noise: "zero" and "resample" (two readings of the published formula), and
            "repaired" (Laplace noise).
        claims: epsilons of systems with a fixed epsilon. Defaults to 0.1, 1 and 10, or to 1 if
            `quick` is True.
        starts: initial epsilons of systems with a learnt epsilon. Defaults to 1 and 10, or to 10 if
            `quick` is True.
        cap: upper limit of a learnt epsilon. Unless `quick` is True, systems without a limit are
            added.
        epochs: number of epochs of each training.
        texts: number of texts to generate if `data` is None. Defaults to 4,000, or to 600 if
            `quick` is True.
        confidence: confidence level of each bound and of each interval separately.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or a value in `starts` is above `cap`.

    Example:
        >>> Config(full=True).seeds, len(Config().cases), len(Config(quick=True).cases)
        (5, 21, 6)
    """

    trials: int = 10**6
    seeds: int = setting(1, full=5)
    device: str = "cpu"
    noises: tuple[Noise, ...] = setting(NOISES, choice, NOISES)
    claims: tuple[float, ...] = setting((0.1, 1.0, 10.0), quick=(1.0,), ascending=True)
    starts: tuple[float, ...] = setting((1.0, 10.0), check_positive, quick=(10.0,), ascending=True)
    cap: float = setting(20.0, check_positive)
    epochs: int = setting(8, integer, 1)
    texts: int = setting(4000, integer, 300, quick=600)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields, and check that no initial value exceeds `cap`."""
        TextOptions.__post_init__(self)
        if self.starts[-1] > self.cap:
            raise invalid("starts", f"at most the cap, {self.cap:g}", self.starts)

    @property
    def attribute(self) -> str:
        """Name of the private attribute that the attackers infer."""
        return "parent" if self.data is None else "Bush"

    @property
    def cases(self) -> tuple[Case, ...]:
        """Settings of all DPText systems of this experiment, grouped by the type of noise."""
        caps = (self.cap,) if self.quick else (self.cap, None)
        kinds: list[tuple[Any, ...]] = [(level,) for level in self.claims]
        kinds += [(level, True, cap) for level, cap in product(self.starts, caps)]
        return tuple(Case(noise, *kind) for noise, kind in product(self.noises, kinds))


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of one DPText system (one type of noise and one epsilon).

    Args:
        case: settings of the system.
        runs: one result for each training of the system.
    """

    case: Case
    runs: tuple[Found, ...]

    @property
    def refuted(self) -> int:
        """Number of trained copies of this system for which the audit refuted epsilon."""
        return sum(run.refuted is True for run in self.runs)

    @property
    def flags(self) -> tuple[str, ...]:
        """Names of the faults that `inspect` found in the noise after at least one training."""
        return tuple(dict.fromkeys(flag for run in self.runs for flag in run.flags))

    def mean(self, name: str) -> float:
        """Return the mean of one result of this system over all trainings.

        `name` is the name of the result, a field of `Found` such as "certified". If the field also
        has a confidence interval, the interval is ignored.
        """
        return self.spread(name)[0]

    def spread(self, name: str) -> tuple[float, float]:
        """Return the mean and the standard deviation of one result over all trainings.

        `name` is the name of the result, a field of `Found` such as "certified". With one training,
        the standard deviation is 0.
        """
        figures = [getattr(run, name) for run in self.runs]
        values = [value[0] if isinstance(value, tuple) else float(value) for value in figures]
        return (math.inf, 0.0) if math.inf in values else mean_and_sd(values)

    def useless(self, majority: float) -> bool:
        """Return True if this system does not learn to predict the label.

        `majority` is the share of the most frequent label. The result is True if, in every
        training, the confidence interval of the accuracy starts at or below `majority`.
        """
        return not any(run.utility[1] > majority for run in self.runs)


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train DPText systems, inspect their noise, audit their epsilon, and attack their vectors.

    Args:
        config: options of the experiment.
        threads: not used, because the experiment runs on one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one row for each DPText system.

    Raises:
        ModuleNotFoundError: if torch or scikit-learn is missing. The message states how to install
            it.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if torch does not find the device, or the corpus lacks the private attribute.
        KeyboardInterrupt: if the user presses Ctrl-C before the first system is measured.

    Source:
        Beigi et al. (2019) for DPText, and Habernal (2022) for the fault of the noise.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch") and find_spec("sklearn"):
        ...     config = Config(trials=2000, quick=True, texts=300, epochs=1, noises=("zero",))
        ...     assert all("one_sided" in row.flags for row in run(config).rows)
    """
    from ..text.systems.training import one_thread

    corpus = read_texts(config, "dpnr_ag", "topics", config.texts)
    # A missing attribute is reported before the first training.
    corpus.attribute(config.attribute)
    pair = choose_unseen_texts_of_two_labels(corpus)
    jobs = list(product(config.cases, range(config.seeds)))

    def work(case: Case, number: int) -> Found:
        # Trainings differ only in the noise. Every audit has its own seed.
        seeds = f"train/{number}", f"{case.noise}/{case.level}/{number}"
        first, second = (cell_seed(config.seed, key) for key in seeds)
        return measure_trained_system(case, corpus, pair, (first, second), config)

    with one_thread():
        done, ended = run_jobs("DPText", jobs, work, progress)
    rows = tuple(Row(*group) for group in group_answers((case for case, _ in jobs), done).items())
    return Result(config, corpus.origin, compute_majority_share(corpus), pair, rows, partial=ended)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of all DPText systems of the experiment.

    Args:
        config: options of the run.
        corpus: source of the texts.
        majority: share of the most frequent label among the test texts.
        pair: the two texts on which epsilon is audited.
        rows: one row for each DPText system.
    """

    corpus: str
    majority: float
    pair: tuple[str, str]
    rows: tuple[Row, ...]

    def row(self, noise: str, level: str) -> Row:
        """Return the row of the DPText system with the given noise and epsilon.

        `noise` is the type of noise, such as "zero". `level` is the text for epsilon in the table,
        such as "1" for a fixed epsilon, or "from 1, no cap" for a learnt epsilon (see
        `Case.level`).

        Raises:
            ValueError: if the result has no row with this noise and level.
        """
        for row in self.rows:
            if (row.case.noise, row.case.level) == (noise, level):
                return row
        raise invalid("noise and level", "those of a row", (noise, level))

    def table(self) -> str:
        """Return the results as plain text, with explanations."""
        config = self.config
        runs = f"mean and spread of {config.seeds} seeds" if config.seeds != 1 else "1 seed"
        made = " (made-up texts: give --data for real ones)" if config.data is None else ""
        rows = [*_SYSTEM_HEAD, *(_format_system_row(row, self) for row in self.rows)]
        return self.join_parts(
            f"DPText: {self.corpus}{made}\nprivate attribute {config.attribute}; {config.epochs} "
            f"epochs, {config.trials:,} trials per side, {runs}, seed {config.seed};\nintervals "
            f"and bounds at {100 * config.confidence:g} % each; majority of the main task "
            f"{self.majority:.3f}",
            align_rows(rows, left=(0, 1, 3, 7, 9, 10, 12)),
            "\n".join(_list_table_notes(self)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        rows = [_row_to_dict(row, self) for row in self.rows]
        return self.make_record(
            corpus=self.corpus, majority=self.majority, pair=list(self.pair), rows=rows
        )

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the certified bound against epsilon, and each learnt epsilon against the epoch.

        Returns:
            A matplotlib figure.
        """
        picture = drawing.empty_figure(3.9, ax)
        left, right = picture.subplots(1, 2, width_ratios=(1.25, 1.0))
        _draw_certified_vs_epsilon(left, self)
        _plot_epsilons_learnt_in_training(right, self)
        where = "made-up texts" if self.config.data is None else self.corpus.partition(":")[0]
        runs = f", means of {self.config.seeds} seeds" if self.config.seeds > 1 else ""
        trials = f"audits of one pair of later texts, {self.config.trials:,} trials per side"
        picture.suptitle(f"DPText as trained on {where}{runs}; {trials}", fontsize=drawing.TEXT)
        drawing.add_legend(picture, _make_noise_legend(), 4)
        return restyle_figure(picture)


_SYSTEM_HEAD = (
    ("noise", "epsilon", "claim", "", "certified", "exact loss", "exact,", "flags", "utility", "",
     "AUC of the attacker", "floor", "attacker"),
    ("", "", "or learnt", "verdict", "", "as it is", "if right", "", "", "", "", "", ""),
)  # fmt: skip


def _format_system_row(row: Row, result: Result) -> tuple[str, ...]:
    first, case = row.runs[0], row.case
    low, high = first.utility[1:]
    auc, least, most = first.auc
    return (
        case.noise,
        f"LEARNT {case.level}" if case.learn else f"fixed {case.level}",
        _format_mean_spread(row, "epsilon"),
        _describe_verdict(row),
        _format_mean_spread(row, "certified", 3),
        _format_mean_spread(row, "exact", 3),
        _format_mean_spread(row, "right", 3),
        ", ".join(row.flags) or "-",
        f"{_format_mean_spread(row, 'utility', 3)} [{low:.3f}, {high:.3f}]",
        "*" if row.useless(result.majority) else "",
        f"{auc:.3f} [{least:.3f}, {most:.3f}] {first.attacker}",
        f"{first.floor:.3f}",
        _compare_attack_with_floor(first),
    )


def _is_at_baseline(attack: Found) -> bool:
    """Return True if attackers without the vectors may be as good as the chosen attacker."""
    return not attack.beaten and attack.auc[1] <= attack.floor


def _compare_attack_with_floor(attack: Found) -> str:
    return "above" if attack.beaten else "at floor" if _is_at_baseline(attack) else "not shown"


def _describe_verdict(row: Row) -> str:
    """Format the verdict on epsilon, and state whether this epsilon is learnt and not claimed."""
    several = f" in {row.refuted} of {len(row.runs)}" if len(row.runs) > 1 else ""
    rest = VERDICT_WORDS[False if any(run.refuted is False for run in row.runs) else None]
    outcome = f"refuted{several}" if row.refuted else rest
    return f"no claim; value {outcome}" if row.case.learn else outcome


def _format_mean_spread(row: Row, name: str, digits: int = 0) -> str:
    mean, wide = row.spread(name)
    if math.isinf(mean):
        return "infinite"
    style = f".{digits}f" if digits else ".4g"
    return f"{mean:{style}} +- {wide:{style}}" if wide else f"{mean:{style}}"


def _list_table_notes(result: Result) -> list[str]:
    x, x_prime = (text if len(text) <= 60 else f"{text[:57]}..." for text in result.pair)
    notes = [
        f"pair: {x!r} and {x_prime!r}, which training did not see",
        "exact, if right: the loss of the pair under Laplace noise of the same scale; as it is: "
        "zero and resample are never\nbelow the clean vector, so that no epsilon bounds their "
        "loss, whatever an audit has certified.",
    ]
    if any(row.case.learn for row in result.rows):
        notes.append(
            "LEARNT: fitted to the training texts: no claim fixed in advance, and it covers none "
            "of them. For a later text it holds\nat its learnt value, at most the cap, and with "
            "repaired noise only. A fixed epsilon, too, covers later texts only."
        )
    useless = [row for row in result.rows if row.useless(result.majority)]
    if useless:
        idle = sum(_is_at_baseline(row.runs[0]) for row in useless)
        notes.append(
            f"*: utility at the majority. An attacker at its floor there ({idle} of {len(useless)} "
            "rows) is no evidence of privacy:\nthe classifier of the main task is not shown to "
            "learn anything from these vectors either."
        )
    if any(len(row.runs) > 1 for row in result.rows):
        notes.append("intervals, attacker and floor are those of the first seed")
    return notes


def _row_to_dict(row: Row, result: Result) -> dict[str, Any]:
    case = row.case
    entries = {"noise": case.noise, "epsilon": case.epsilon, "learnt": case.learn, "cap": case.cap}
    runs = [_training_to_dict(run) for run in row.runs]
    return (
        entries
        | {"claim": None if case.learn else case.epsilon, "flags": list(row.flags)}
        | {"at_majority": row.useless(result.majority), "runs": runs}
    )


def _training_to_dict(run: Any) -> dict[str, Any]:
    return (
        {"seed": str(run.seed), "audit_seed": str(run.audit_seed), "epsilons": run.epsilons}
        | {"counts": list(astuple(run.counts)), "event": run.event, "refuted": run.refuted}
        | {"certified": run.certified, "exact": run.exact, "exact_if_right": run.right}
        | {"flags": run.flags, "utility": run.utility, "attacker": run.attacker, "auc": run.auc}
        | {"floor": run.floor, "above_floor": run.beaten}
    )


_NOISE_COLOURS: Final = dict(zip(NOISES, (RED, GREEN, BLUE), strict=True))
_NOISE_MARKS: Final = dict(zip(NOISES, ("o", "s", "D"), strict=True))
_MIN_DRAWN_BOUND: Final = 0.03
"""Certified bounds below this value are drawn at this value."""
_NOISE_SHIFTS: Final = dict(zip(NOISES, (0.93, 1.0, 1.07), strict=True))
"""Factors of the horizontal position, so that the three types of noise do not overlap."""


def _draw_certified_vs_epsilon(axes: drawing.Axes, result: Result) -> None:
    levels = [row.mean("epsilon") for row in result.rows]
    ends = min(levels) / 2.5, max(levels) * 2.5
    axes.plot(ends, ends, color=GREY, linewidth=1.0, linestyle="--")
    top = 4.0 * max(levels + [row.mean("certified") for row in result.rows])
    for row in result.rows:
        _draw_bound_and_exact_loss(axes, row, top)
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=(0.8 * _MIN_DRAWN_BOUND, 1.6 * top))
    ticks = [tick for tick in (0.1, 1.0, 10.0) if ends[0] < tick < ends[1]]
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    labels = (f"under {_MIN_DRAWN_BOUND:g}", "0.1", "1", "10", "infinite")
    axes.set_yticks([_MIN_DRAWN_BOUND, 0.1, 1.0, 10.0, top], labels)
    axes.axhline(top, color=GREY, linewidth=0.5)
    label = "epsilon claimed; hollow: learnt, nobody claims it"
    drawing.style_axes(axes, label, y="privacy loss of the pair")


def _draw_bound_and_exact_loss(axes: drawing.Axes, row: Row, arrow_start: float) -> None:
    # Learnt values of epsilon differ anyway.
    shift = 1.0 if row.case.learn else _NOISE_SHIFTS[row.case.noise]
    x, certified = shift * row.mean("epsilon"), max(_MIN_DRAWN_BOUND, row.mean("certified"))
    colour = _NOISE_COLOURS[row.case.noise]
    if row.case.faulty:
        refuted = bool(row.refuted)
        style = "-|>" if refuted else "->"
        tip: dict[str, Any] = {
            "arrowstyle": style, "color": colour, "lw": 0.9 if refuted else 0.5,
            "linestyle": "-" if refuted else ":", "shrinkA": 3, "shrinkB": 0, "mutation_scale": 7,
        }  # fmt: skip
        axes.annotate("", (x, arrow_start), (x, certified), arrowprops=tip)
    else:
        exact = row.mean("right")
        axes.plot([x, x], [certified, exact], color=colour, linewidth=0.7)
        axes.plot([x], [exact], "_", color=INK, markersize=7, zorder=3)
    face = WHITE if row.case.learn else colour
    look: Any = {"color": colour, "markerfacecolor": face, "markeredgewidth": 1.0, "zorder": 4}
    axes.plot([x], [certified], _NOISE_MARKS[row.case.noise], markersize=5, **look)


def _plot_epsilons_learnt_in_training(axes: drawing.Axes, result: Result) -> None:
    for row in [row for row in result.rows if row.case.learn]:
        paths = [(row.case.epsilon, *run.epsilons) for run in row.runs]
        means = [statistics.fmean(values) for values in zip(*paths, strict=False)]
        colour, marker = _NOISE_COLOURS[row.case.noise], _NOISE_MARKS[row.case.noise]
        line, face = ("-", colour) if row.case.cap is None else ("--", WHITE)
        style: Any = {"linewidth": 1.2, "markersize": 3, "markerfacecolor": face}
        axes.plot(range(len(means)), means, line, color=colour, marker=marker, **style)
    cap = result.config.cap
    axes.axhline(cap, color=GREY, linewidth=0.8)
    place: Any = {"transform": axes.get_yaxis_transform(), "va": "bottom"}
    axes.text(0.02, 1.04 * cap, f"cap {cap:g}", fontsize=drawing.SMALL, color=GREY, **place)
    axes.set(yscale="log")
    low, high = axes.get_ylim()
    axes.set_ylim(low, max(high, 1.35 * cap))
    axes.minorticks_off()
    every = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
    drawing.set_ticks(axes.yaxis, [tick for tick in every if low <= tick <= max(high, cap)])
    axes.set_xticks(range(0, result.config.epochs + 1, 1 + result.config.epochs // 10))
    drawing.style_axes(axes, "epoch", y="learnt epsilon; dashed: with the cap")


def _make_noise_legend() -> list[Any]:
    # Two points, because only the second one has a mark.
    arrow: dict[str, Any] = {"xdata": [0, 1], "ydata": [0, 0], "marker": "^", "markersize": 4}
    arrow |= {"markevery": [1]}
    return [
        *(
            drawing.make_mark(f"certified, {x}", _NOISE_COLOURS[x], _NOISE_MARKS[x], 5)
            for x in NOISES
        ),
        drawing.make_line("certified = claimed", GREY, linestyle="--", linewidth=1.0),
        drawing.make_line("refuted; true loss infinite", linewidth=0.9, **arrow),
        drawing.make_line(
            "not refuted or undecided; infinite", linewidth=0.7, linestyle=":", **arrow
        ),
        drawing.make_mark("exact loss, repaired", INK, "_", 7),
    ]
