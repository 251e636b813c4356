"""Test whether noise in training makes a text classifier more accurate on noisy vectors.

The experiment repeats a study of DPNR, a noisy text encoder. DPNR averages the vectors of words and
word pairs, scales the mean to [0, 1] (min-max scaling), adds Laplace noise, and applies a linear
classifier. The study trains without noise, with the noise of the test ("robust"), or with noise
that varies during training ("adaptive"). The experiment adds a control: one model that is trained
at epsilon 5 and tested at every noise level.

Some tests also mask words. Masked words are replaced by word number 0, as in the code of the study,
or are left out of the mean. The tables show the claimed epsilon and the true epsilon.
"""

from __future__ import annotations

import math
import statistics
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

import numpy as np

from ... import calibration
from ...errors import choice, integer, real
from ...mechanisms import Laplace
from ...report.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, SKY, restyle_figure
from ...report.rows import align_rows
from ...report.shown import Shown
from ...sensitivity import MinMaxRows
from ...text import Corpus
from ..base import encode_fields, setting
from ..corpora import TextOptions, read_texts
from ..drawing import Axes, Figure, add_legend, add_upper_axis, empty_figure, style_axes, write_at
from ..running import Tabled, cell_seed, mean_and_sd, run_jobs, time_run
from . import models as study
from .models import DATA, EPSILONS, LINES, MASKS, MU_EPSILON, PLAIN, ROBUST, Job, Model, Test

__all__ = ["NAME", "Config", "Model", "Result", "run"]

NAME = "dpnr-robust-adaptive"

Values = tuple[float, ...]
"""Accuracies or training losses, one per seed."""

Points = list[tuple[float, Values]]
"""Positions on the horizontal axis, each with the accuracies of all seeds."""

_GENERATED_CORPUS_ROWS: Final = {False: 4000, True: 500}
_QUICK_PART_TEXTS: Final = 500
"""Number of training texts, and also of test texts, that a quick run uses of a real corpus."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of an experiment that trains and tests text classifiers on noisy vectors of texts.

    Args:
        trials: smallest number of noisy vectors for each test of a model. All test texts are
            encoded again, with new noise, until the test has this number of vectors.
        seed: int in [0, 2**63). The experiment derives a separate seed for every model and every
            test from this seed.
        seeds: number of times that each model is trained, with different seeds. The table shows the
            mean and the standard deviation over these trainings. Defaults to 3, or to 5 if `full`
            is True.
        data: folder that contains the folders `ag_news` and `yelp` with the two corpora. By
            default, the experiment generates two corpora.
        full: True for five seeds and for more tests. The tests with masked words then use every
            number in `dims`. The tests with noise of scale d/epsilon (d is the number of entries of
            a vector) then use every epsilon in `epsilons`.
        quick: True for a short run that only shows that the experiment works. The run uses a few
            hundred texts of one corpus, one dimension and four variants.
        device: device for training and tests, such as "cpu" or "cuda".
        dims: numbers of entries of the text vectors. Models are trained for each number. Defaults
            to 32 and 64.
        epsilons: claimed epsilons of the noise in the tests. Defaults to eight values from 0.05 to
            5.
        mus: shares of the words that are masked in some tests. Defaults to 0.1, 0.3, 0.5 and 0.8.
            Words are masked only for the variants "not robust" and "robust". The masked tests have
            no noise, or noise of claimed epsilon 4.
        lines: names of the variants of training, such as "not robust" (without noise) and "robust"
            (with the noise of the test). Defaults to all variants.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or a name is unknown.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).dims
        (3, 5, (16,))
    """

    trials: int = 20_000
    seeds: int = setting(3, full=5)
    device: str = "cpu"
    dims: tuple[int, ...] = setting((32, 64), integer, 2, quick=(16,), ascending=True)
    epsilons: tuple[float, ...] = setting(EPSILONS, quick=(1.0, 5.0), ascending=True)
    mus: tuple[float, ...] = setting(
        (0.1, 0.3, 0.5, 0.8), real, quick=(0.5,), ascending=True, low=0.0, high=1.0, open_low=True,
        open_high=True,
    )  # fmt: skip
    lines: tuple[str, ...] = setting(
        study.NAMES,
        choice,
        study.NAMES,
        quick=("not robust", "robust", "constant 5", "uniform 2 to 10"),
    )


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train text classifiers with different noise, and test each classifier on noisy text vectors.

    Args:
        config: options of the experiment.
        threads: has no effect: the small models are trained in one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result. After Ctrl-C, the result contains only the completed models.

    Raises:
        TypeError: if `config` belongs to another experiment.
        ModuleNotFoundError: if torch is missing. The message states how to install it.
        OSError: if a file of a corpus is missing.
        ValueError: if torch does not find the device.
        KeyboardInterrupt: if the user presses Ctrl-C before the first model is complete.

    Source:
        Zouhri and Abecidan (2021), section 5. DPNR: Lyu, He and Li (2020).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     found = run(Config(quick=True, seeds=1, lines=("not robust",), mus=(0.5,)))
        ...     assert found.values("ag_news", 16, "not robust", None)[0] > 0.5
    """
    corpora = {name: _read_or_generate(name, config) for name in study.corpora_of(config)}
    benches = {name: study.Bench(corpus, config) for name, corpus in corpora.items()}
    jobs = list(study.list_training_jobs(config))
    models, partial = run_jobs(
        "models", jobs, lambda job: benches[job.data].train_and_test(job), progress
    )
    sizes = tuple(Size.of(name, corpus) for name, corpus in corpora.items())
    return Result(config, models, sizes, partial=partial)


def _read_or_generate(name: Any, config: Config) -> Corpus:
    """Read or generate a corpus that has training texts and test texts."""
    rows = _GENERATED_CORPUS_ROWS[config.quick]
    whole = read_texts(config, name, study.MADE[name], rows, key=name)
    if config.data is None or not config.quick:
        return whole
    rng, split = np.random.default_rng(cell_seed(config.seed, name)), np.asarray(whole.split)
    chosen = [
        np.sort(rng.choice(rows, min(_QUICK_PART_TEXTS, rows.size), replace=False))
        for rows in (np.flatnonzero(split == part) for part in ("train", "test"))
    ]
    some: Corpus = whole[np.concatenate(chosen)]
    return some


@dataclass(frozen=True, slots=True, repr=False)
class Size(Shown):
    """Source, number of texts and number of labels of a corpus.

    Args:
        data: name of the corpus. If the texts are generated, this is the name of the real corpus
            that the generated texts replace.
        origin: source of the texts.
        train: number of training texts.
        test: number of test texts.
        labels: number of distinct labels.
        chance: share of the most frequent label among the test texts.
    """

    data: str
    origin: str
    train: int
    test: int
    labels: int
    chance: float

    @classmethod
    def of(cls, data: str, corpus: Corpus) -> Size:
        """Count the training texts, test texts and labels of the corpus named `data`."""
        labels, counts = np.unique(corpus.test.labels, return_counts=True)
        sizes = len(corpus.train), len(corpus.test), len(labels)
        return cls(data, corpus.origin, *sizes, float(counts.max()) / sizes[1])


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Test accuracies of all text classifiers that the experiment trained.

    Args:
        config: options of the run.
        models: training loss and test accuracies of each trained model.
        sizes: source and sizes of each corpus.
    """

    models: tuple[Model, ...]
    sizes: tuple[Size, ...]

    def of(self, data: str, dim: int, *how: Any) -> tuple[Model, ...]:
        """Return the trained models with the given settings, one for each seed.

        Args:
            data: "ag_news" or "yelp".
            dim: dimension of the text vectors.
            *how: further settings, in this order: `line` (name of the training variant), `trained`
                (training epsilon), `mu` (share of masked words) and `mask` (treatment of masked
                words). Settings that are left out have the defaults of the class `Job` (settings of
                one model).
        """
        return tuple(
            model for model in self.models if model.job == Job(data, dim, model.job.number, *how)
        )

    def values(self, data: str, dim: int, line: str, epsilon: float | None) -> Values:
        """Return the test accuracies of one training variant, in a test without masked words.

        The tuple has one accuracy for each seed. The tuple is empty if the variant was not tested
        with this noise.

        Args:
            data: "ag_news" or "yelp".
            dim: dimension of the text vectors.
            line: name of the training variant, such as "robust".
            epsilon: claimed epsilon of the noise in the test, or None for no noise.
        """
        case = LINES[line]
        kind = case.shared or (line, epsilon if case.each else None)
        return _list_accuracies(self.of(data, dim, *kind), Test(epsilon))

    def masked(self, data: str, dim: int, line: str, test: Test, trained: bool = False) -> Values:
        """Return the test accuracies of one training variant, in a test with masked words.

        The tuple has one accuracy for each seed. The tuple is empty if the experiment had no such
        test.

        Args:
            data: "ag_news" or "yelp".
            dim: dimension of the text vectors.
            line: name of the training variant, "not robust" or "robust".
            test: noise and masked words of the test.
            trained: True for the models that were also trained with masked words.
        """
        level = None if line == "not robust" else MU_EPSILON
        mask = test.mask if trained or test.mask == "zero_id" else ""
        mu = test.mu if trained else 0.0
        return _list_accuracies(self.of(data, dim, line, level, mu, mask), test)

    def table(self) -> str:
        """Return the results as plain text, together with published results for comparison."""
        config = self.config
        seeds = "1 seed" if config.seeds == 1 else f"{config.seeds} seeds"
        parts = [_NOISE_GLOSSARY]
        cells = list(product(self.sizes, config.dims))
        parts += [_format_accuracies_by_epsilon(self, size, dim) for size, dim in cells]
        masked = [row for size, dim in cells for row in _masked_word_accuracy_rows(self, size, dim)]
        if masked:
            columns = [f"mu {mu:g}" for mu in config.mus]
            parts += [_MASKS_GLOSSARY, align_rows([("", *columns), *masked])]
        learnt = [row for size, dim in cells for row in _train_loss_accuracy_rows(self, size, dim)]
        if learnt:
            levels = [f"{level:g}" for level in config.epsilons]
            parts += [_TRAINING_GLOSSARY, align_rows([("claimed", *levels), *learnt])]
        parts.append("\n".join(_compare_variants(self)))
        if config.data is not None:
            parts.append(f"The study: {study.SOURCE}; its Yelp are long reviews, ours sentences.")
        head = (
            f"DPNR with training noise: {seeds} from {config.seed}, at least {config.trials:,} "
            "noisy texts\nbehind every accuracy\n" + "\n".join(map(_format_corpus_size, self.sizes))
        )
        if config.data is None:
            head += (
                "\n\nWITHOUT DATA: generated texts stand for AG news and Yelp; the study's figures "
                "are of\nothers, and left out. With --data DIR the corpora are read."
            )
        return self.join_parts(head, *parts)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        cells = list(product((size.data for size in self.sizes), self.config.dims))
        return self.make_record(
            corpora=self.sizes,
            true=[
                {"dim": dim, "claimed": level, "true": true_epsilon(level, dim)}
                for dim, level in product(self.config.dims, self.config.epsilons)
            ],
            models=[_trained_model_to_dict(model) for model in self.models],
            crossings=[
                {"data": data, "dim": dim, "epsilon": least_epsilon_robust_wins(self, data, dim)}
                for data, dim in cells
            ],
            against_constant=[
                {"data": data, "dim": dim, **_gain_to_dict(gain)}
                for data, dim in cells
                for gain in accuracy_gains_vs_control(self, data, dim)
            ],
            study=_list_published_accuracies(self) if self.config.data is not None else [],
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the test accuracy against epsilon, and against the share of masked words.

        The lower axis shows the claimed epsilon, and the upper axis shows the true epsilon.

        Returns:
            A matplotlib figure.
        """
        cells = list(product(self.sizes, self.config.dims))
        masked = [cell for cell in cells if _curves_by_masked_share(self, *cell)]
        columns = max(1, min(2, max(len(cells), len(masked))))

        rows = -(-len(cells) // columns) + -(-len(masked) // columns)
        picture = empty_figure(0.9 + 2.5 * rows, ax)
        grid = picture.subplots(rows, columns, squeeze=False)
        first = [axes for line in grid[: -(-len(cells) // columns)] for axes in line]
        second = [axes for line in grid[-(-len(cells) // columns) :] for axes in line]
        for axes, cell in zip(first, cells, strict=False):
            _draw_accuracy_vs_epsilon(axes, self, *cell)
        for axes, cell in zip(second, masked, strict=False):
            _draw_accuracy_vs_masked_share(axes, self, *cell)
        for axes in [*first[len(cells) :], *second[len(masked) :]]:
            axes.remove()

        for panels, place, ncols in ((first, "upper", 4), (second[: len(masked)], "lower", 2)):
            # The panel with the most lines is used, because an interrupted run lacks some lines.
            shown = panels[: len(cells)]
            most = max(
                shown, key=lambda axes: len(axes.get_legend_handles_labels()[1]), default=None
            )
            if most is not None and most.get_legend_handles_labels()[1]:
                add_legend(picture, most, ncols, place)
        return restyle_figure(picture)


def _list_accuracies(models: tuple[Model, ...], test: Test) -> Values:
    return tuple(
        accuracy for model in models for made, accuracy in model.accuracies if made == test
    )


CONTROL = "constant 5"
RIVALS = ("stretched 10 to 2", "uniform 2 to 10", "log-uniform .5 to 10", "robust")
"""Variants that are compared with the control, a model trained at epsilon 5."""


@dataclass(frozen=True, slots=True)
class Gain:
    """Difference in test accuracy between a training variant and the control.

    The control is a model that is trained with noise of epsilon 5 and tested at every noise level.

    Args:
        line: name of the training variant.
        epsilon: claimed epsilon of the noise in the test.
        mean: mean accuracy of the variant over the seeds, minus the mean accuracy of the control.
        noise: spread of the difference over the seeds: the standard deviation of the accuracy of
            the variant, plus the standard deviation of the accuracy of the control.
    """

    line: str
    epsilon: float
    mean: float
    noise: float

    @property
    def beyond(self) -> bool:
        """True if the absolute difference in accuracy is larger than the field `noise`."""
        return abs(self.mean) > self.noise


def true_epsilon(epsilon: float, dim: int) -> float:
    """Return the true epsilon of the published noise of DPNR, for a claimed epsilon.

    DPNR adds Laplace noise of scale 1/`epsilon` to a vector of `dim` entries from 0 to 1. The true
    epsilon is valid for any two vectors after min-max scaling.

    Example:
        >>> true_epsilon(5.0, 32)
        160.0
    """
    law = Laplace(calibration.laplace(epsilon, 1.0))
    return calibration.real_epsilon(law, MinMaxRows(dim)).value


def least_epsilon_robust_wins(result: Result, data: str, dim: int) -> float | None:
    """Return the least tested epsilon from which on "robust" is more accurate than "not robust".

    The variant "robust" is trained with noise, and "not robust" without noise. The function
    compares mean test accuracies. The variant "robust" must be more accurate than "not robust" at
    the returned epsilon, and at every larger tested epsilon. The result is None if "robust" is not
    more accurate at the largest tested epsilon.
    """
    crossing = None
    for epsilon in reversed(result.config.epsilons):
        robust, plain = (result.values(data, dim, line, epsilon) for line in (ROBUST, PLAIN))
        if not robust or not plain or statistics.fmean(robust) <= statistics.fmean(plain):
            break
        crossing = epsilon
    return crossing


def accuracy_gains_vs_control(result: Result, data: str, dim: int) -> tuple[Gain, ...]:
    """Return the differences in accuracy between each training variant and the control.

    The control is a model trained with noise of epsilon 5. The result has one entry for each
    variant and each tested epsilon. A variant is left out if it has fewer than two seeds, or if its
    number of seeds differs from the number of seeds of the control.
    """
    gains = []
    for line, epsilon in product(RIVALS, result.config.epsilons):
        mine, control = (
            result.values(data, dim, line_or_control, epsilon)
            for line_or_control in (line, CONTROL)
        )
        if len(mine) < 2 or len(mine) != len(control):
            continue
        differences = [a - b for a, b in zip(mine, control, strict=True)]
        noise = mean_and_sd(mine)[1] + mean_and_sd(control)[1]
        gains.append(Gain(line, epsilon, statistics.fmean(differences), noise))
    return tuple(gains)


_STUDY_LABEL = "  the study"

_NOISE_GLOSSARY = """\
Test accuracy; in brackets the standard deviation over seeds in units of the last digit.
claimed: noise of scale 1/epsilon on rows of min-max, as published. true: the epsilon that this
noise gives any two texts, d times the claim (for b = d/epsilon it is the claim itself).
robust: a model for each epsilon, tested at it. All other lines: one model, used at every noise.
<unk>: unknown words and pairs are one row that nothing has trained, as in the study's code."""

_MASKS_GLOSSARY = f"""\
Words masked at claimed epsilon {MU_EPSILON:g}, and without noise. test: in the test alone; both: in
training too. left out: masked words and their pairs leave the mean. id 0: what the study's code
does, words and pairs one by one become number 0, an untrained row that is averaged in."""

_TRAINING_GLOSSARY = """\
Robust training, each model at its own epsilon: the loss of the last epoch in nats (that of
guessing is ln of the number of labels), and accuracy without noise in the test."""


def _format_corpus_size(size: Size) -> str:
    return (
        f"  {size.data}: {size.origin}; {size.train:,} training and {size.test:,} test texts, "
        f"{size.labels} labels, chance {size.chance:.3f}"
    )


def _table_title(size: Size, dim: int, result: Result) -> str:
    name = DATA[size.data] if result.config.data is not None else f"generated, for {size.data}"
    return f"{name}, d = {dim}"


def format_mean_sd(values: Values) -> str:
    """Return the mean of values as text, followed by the standard deviation in brackets.

    The number in brackets counts thousandths: "0.850(12)" is a mean of 0.850 with a standard
    deviation of 0.012. The brackets are left out if there is only one value. The text is "-" if
    `values` is empty.
    """
    if not values:
        return "-"
    mean, wide = mean_and_sd(values)
    return f"{mean:.3f}" + (f"({1000 * wide:.0f})" if len(values) > 1 else "")


def _format_published_accuracy(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _format_accuracies_by_epsilon(result: Result, size: Size, dim: int) -> str:
    """Format one row for each variant, each followed by the study's row for the same variant."""
    levels = (None, *result.config.epsilons)
    title = _table_title(size, dim, result)
    head = (title, "no noise", *(f"{level:g}" for level in levels if level is not None))
    true = [f"{true_epsilon(level, dim):g}" for level in levels if level is not None]
    rows = [head, ("true epsilon", "", *true)]
    for name in result.config.lines:
        values = [result.values(size.data, dim, name, level) for level in levels]
        if any(values):
            rows.append((name, *map(format_mean_sd, values)))
        of = LINES[name].study
        published = [study.published_accuracy(size.data, dim, of, level) for level in levels]
        if result.config.data is not None and any(published):
            rows.append((f"{_STUDY_LABEL}, {of}", *map(_format_published_accuracy, published)))
    return align_rows(rows)


def _masked_word_accuracy_rows(result: Result, size: Size, dim: int) -> Iterator[tuple[str, ...]]:
    mus = result.config.mus
    shown = []
    for line in ("not robust", "robust"):
        for trained, mask, level in product((False, True), MASKS, (MU_EPSILON, None)):
            tests = [Test(level, mu, mask) for mu in mus]
            values = [result.masked(size.data, dim, line, test, trained) for test in tests]
            if any(values):
                where = "both" if trained else "test"
                noise = "no noise" if level is None else f"epsilon {level:g}"
                title = f"{line}, {MASKS[mask]}, {where}, {noise}"
                shown.append((title, *map(format_mean_sd, values)))
        published = [study.published_accuracy(size.data, dim, line, MU_EPSILON, mu) for mu in mus]
        if shown and result.config.data is not None and any(published):
            shown.append((f"{_STUDY_LABEL}, {line}", *map(_format_published_accuracy, published)))
    if shown:
        yield (_table_title(size, dim, result), *("" for _ in mus))
        yield from shown


def _train_loss_accuracy_rows(result: Result, size: Size, dim: int) -> Iterator[tuple[str, ...]]:
    models = [result.of(size.data, dim, "robust", level) for level in result.config.epsilons]
    if any(models):
        title = _table_title(size, dim, result)
        losses = (format_mean_sd(tuple(model.loss for model in ones)) for ones in models)
        clean = (format_mean_sd(tuple(model.clean for model in ones)) for ones in models)
        yield (f"{title}: loss (guessing {math.log(size.labels):.3f})", *losses)
        yield (f"{title}: accuracy", *clean)


def _compare_variants(result: Result) -> Iterator[str]:
    """Describe in words how the variants of training compare."""
    real = result.config.data is not None
    for size, dim in product(result.sizes, result.config.dims):
        title = _table_title(size, dim, result)
        if not result.values(size.data, dim, "robust", result.config.epsilons[-1]):
            continue
        at = least_epsilon_robust_wins(result, size.data, dim)
        where = "at no epsilon" if at is None else f"from epsilon {at:g}"
        theirs = study.CROSSINGS.get((size.data, dim)) if real else None
        published = "" if theirs is None else f" (the study: {theirs:g})"
        yield f"{title}: robust is better than not robust {where}{published}."
        compared = accuracy_gains_vs_control(result, size.data, dim)
        if compared:
            yield _describe_clear_gains("better", [g for g in compared if g.beyond and g.mean > 0])
            yield _describe_clear_gains("worse", [g for g in compared if g.beyond and g.mean < 0])


def _describe_clear_gains(word: str, gains: list[Gain]) -> str:
    """Describe the variants that differ from the control by more than `Gain.noise`."""
    lines: dict[str, list[str]] = {}
    for gain in gains:
        lines.setdefault(gain.line, []).append(f"{gain.epsilon:g} ({gain.mean:+.3f})")
    listed = "; ".join(f"{line} at {', '.join(at)}" for line, at in lines.items()) or "none"
    sentence = f"{word} than one model trained at 5, beyond both spreads: {listed}"
    return textwrap.fill(sentence, 98, initial_indent="  ", subsequent_indent="    ")


def _trained_model_to_dict(model: Model) -> dict[str, Any]:
    tests = [{**encode_fields(test), "accuracy": value} for test, value in model.accuracies]
    entries = {"loss": model.loss, "clean": model.clean}
    return {**encode_fields(model.job), **entries, "accuracies": tests}


def _gain_to_dict(gain: Gain) -> dict[str, Any]:
    entries = {"line": gain.line, "epsilon": gain.epsilon, "mean": gain.mean}
    return entries | {"spreads": gain.noise, "beyond": gain.beyond}


def _list_published_accuracies(result: Result) -> list[dict[str, Any]]:
    """Return the published results of the study that the tables show."""
    tests = [(level, 0.0) for level in (None, *result.config.epsilons)]
    tests += [(MU_EPSILON, mu) for mu in result.config.mus]
    lines = (PLAIN, ROBUST, study.ADAPTIVE)
    return [
        {"data": size.data, "dim": dim, "line": line, "epsilon": level, "mu": mu, "accuracy": value}
        for size, dim, line, (level, mu) in product(result.sizes, result.config.dims, lines, tests)
        if (value := study.published_accuracy(size.data, dim, line, level, mu)) is not None
    ]


_LINE_STYLES: Final[dict[str, dict[str, Any]]] = {
    "not robust": {"color": INK, "marker": "s"},
    "robust": {"color": BLUE, "marker": "o"},
    "stretched 10 to 2": {"color": GREEN, "marker": "^"},
    "constant 5": {"color": RED, "marker": "D"},
    "uniform 2 to 10": {"color": PURPLE, "marker": "v"},
    "log-uniform .5 to 10": {"color": ORANGE, "marker": "P", "linestyle": "--"},
    "10/n as printed": {"color": GREY, "marker": "x", "linestyle": "--"},
    "1/n as printed": {"color": GREY, "marker": "+", "linestyle": ":"},
    "robust, b = d/epsilon": {"color": SKY, "marker": "*", "linestyle": ":"},
}
"""Colours of Okabe and Ito. Markers and dashes also distinguish the lines if the picture is printed
without colours."""


def _draw_accuracy_vs_epsilon(axes: Axes, result: Result, size: Size, dim: int) -> None:
    levels = result.config.epsilons
    for name in result.config.lines:
        accuracies = [(level, result.values(size.data, dim, name, level)) for level in levels]
        points = [(level, values) for level, values in accuracies if values]
        _draw_accuracy_curve(axes, name, points, _LINE_STYLES.get(name))
    write_at(axes, "chance", (levels[0], size.chance - 0.02), color=GREY, va="top")
    axes.set_xscale("log")
    at = least_epsilon_robust_wins(result, size.data, dim)
    if at is not None:
        axes.axvline(at, color=BLUE, linewidth=0.8, linestyle="--", zorder=0.5)
        shift, side = (-3, "right") if at**2 > levels[0] * levels[-1] else (3, "left")
        text, top = f"robust better\nthan not robust\nfrom {at:g}", axes.get_xaxis_transform()
        style: Any = {"xycoords": top, "color": BLUE, "va": "top", "ha": side}
        write_at(axes, text, (at, 1.0), (shift, -2), **style)
    axes.set_xticks(levels, _thin_labels(levels, [f"{level:g}" for level in levels], 1.25))
    axes.set_xticks([], minor=True)
    # An upper axis shows the true epsilons at the same positions.
    true = _thin_labels(levels, [f"{true_epsilon(level, dim):g}" for level in levels], 1.5)
    add_upper_axis(axes, levels, true, "true epsilon, any two texts")
    _set_accuracy_axis(axes, result, size, dim, "claimed epsilon")


def _thin_labels(levels: tuple[float, ...], labels: list[str], min_ratio: float) -> list[str]:
    """Return the labels, with "" for each label that is too close to the previous shown label.

    A label is too close if the level is less than `min_ratio` times the level of the previous label
    that is shown.
    """
    shown, last = [], 0.0
    for level, label in zip(levels, labels, strict=True):
        fits = level >= min_ratio * last
        shown.append(label if fits else "")
        last = level if fits else last
    return shown


def _draw_accuracy_curve(axes: Axes, name: str, points: Points, style: Any) -> None:
    """Draw the mean accuracies with error bars, if there are any points."""
    if not points or not LINES.get(name, LINES["robust"]).drawn:
        return
    means, wide = zip(*(mean_and_sd(values) for _, values in points), strict=True)
    axes.errorbar(
        [x for x, _ in points], means, yerr=wide if any(wide) else None, label=name,
        markersize=3.2, linewidth=1.0, elinewidth=0.8, capsize=1.5, **(style or {"color": INK}),
    )  # fmt: skip


def _curves_by_masked_share(result: Result, size: Size, dim: int) -> dict[str, tuple[Any, Points]]:
    """Return the curves of accuracy at claimed epsilon 4 against the share of masked words."""
    curves = {}
    kinds = (
        ("not robust", False, "-", "s"),
        ("robust", False, "--", "o"),
        ("robust", True, ":", "^"),
    )
    for mask, (line, trained, dash, mark) in product(MASKS, kinds):
        tests = [Test(MU_EPSILON, mu, mask) for mu in result.config.mus]
        values = [(t.mu, result.masked(size.data, dim, line, t, trained)) for t in tests]
        points = [(mu, accuracies) for mu, accuracies in values if accuracies]
        where = "training and test" if trained else "test"
        if points:
            colour = GREEN if mask == "leave_out" else RED
            style = {"color": colour, "linestyle": dash, "marker": mark}
            curves[f"{MASKS[mask]}; {line}, in {where}"] = (style, points)
    return curves


def _draw_accuracy_vs_masked_share(axes: Axes, result: Result, size: Size, dim: int) -> None:
    for name, (style, points) in _curves_by_masked_share(result, size, dim).items():
        _draw_accuracy_curve(axes, name, points, style)
    mus = result.config.mus
    axes.set_xlim(0.0, 1.0)
    axes.set_xticks(mus, [f"{mu:g}" for mu in mus])
    label = f"share of masked words, claimed epsilon {MU_EPSILON:g}"
    _set_accuracy_axis(axes, result, size, dim, label)


def _set_accuracy_axis(axes: Axes, result: Result, size: Size, dim: int, x: str) -> None:
    axes.axhline(size.chance, color=GREY, linewidth=0.8, linestyle=(0, (1, 2)))
    axes.set_ylim(max(0.0, size.chance - 0.15), 1.0)
    made = f"generated ({size.labels} labels)"
    name = made if result.config.data is None else DATA[size.data]
    style_axes(axes, x, y=f"accuracy, {name}, d = {dim}")
