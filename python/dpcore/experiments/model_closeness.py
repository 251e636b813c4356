"""Test whether models of sensitive and of safe texts differ more than two models of safe texts.

Figure 5 of Gusain and Leith compares two next-word models: one is trained on sensitive texts, the
other on safe texts. The figure shows three distances between the decoder layers of the two models.
The distances fall as more words are masked.

This experiment adds a control: two models that are trained on disjoint halves of the safe texts.
All these models have the same initial weights and the same number of training texts. The two
control models therefore differ only by the random choice of their texts. The difference between
sensitive and safe texts can explain only the excess: the distance of the sensitive and the safe
model, minus the distance of the two control models.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, product
from typing import Any, Final

import numpy as np
from scipy.special import stdtrit

from ..errors import choice, invalid
from ..records import Floats, Record
from ..report.figures import BLUE, GREY, INK, RED, restyle_figure
from ..report.rows import align_rows
from ..report.shown import list_shown_fields
from ..streams import threads_of
from ..text import Vocabulary, lm, redaction
from .base import setting
from .corpora import TextOptions, TwoSets, read_sensitive_and_other_texts
from .drawing import SMALL, Axes, Figure, add_legend, empty_figure, style_axes
from .running import Tabled, cell_seed, format_mean, gather_until_stopped, time_run

NAME = "model-closeness"

_DISTANCE_NAMES: Final = ("CKA", "PWCCA", "Procrustes")
MEASURES: Final = (*_DISTANCE_NAMES, *(f"{name} of states" for name in _DISTANCE_NAMES), "KL")
"""Names of the distances between two models. Some compare decoder weights, and some compare hidden
states. "KL" is the KL divergence between the next-word distributions in nats, averaged over
contexts and over D(P||Q) and D(Q||P)."""

COMPARISONS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "sensitive/safe": (("sensitive", "first"), ("sensitive", "second")),
    "safe/safe": (("first", "second"),),
    "sensitive/safe, two starts": (("sensitive", "other start"),),
}
"""Pairs of models for each kind of comparison. The distance is averaged over these pairs. "first"
and "second" are the models of the two halves of the safe texts. "other start" is a model of the
first half with different initial weights."""

_REDACTION_SHARES: Final = {False: (0.0, 0.5, 0.9, 0.98), True: (0.0, 0.9)}
"""Shares of words to mask, without and with `quick`. At the share 0.98, about one of 40 words is
left. At the share 1, the training has no words to predict, and each model keeps its initial
weights."""

_WORDS_PER_TEXT: Final = 40
"""Number of words to which each text is cut."""

_MAX_MODEL_TEXTS: Final = {False: 450, True: 60}
"""Largest number of training texts of a model, without and with `quick`."""

_HELD_OUT_DIVISOR: Final = 8
"""Divisor of the number of sensitive texts. The quotient is the number of sensitive texts for
validation, and also the number of sensitive texts on which models are compared. In both cases,
equally many safe texts are added."""

_TRAINING_SETTINGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "usual": {"hidden": 64, "epochs": 20},
    "full": {"hidden": 200, "layers": 2, "dropout": 0.2, "epochs": 20},
    "quick": {"hidden": 16, "epochs": 2},
}
"""Sizes of the model and number of epochs. With `full`, the values are those of the paper."""

_MAX_VOCABULARY: Final = {False: 1000, True: 200}
"""Largest number of words of the vocabulary, without and with `quick`."""

_TEST_PERMUTATIONS: Final = 19
"""Number of permutations in the test, so the smallest possible p-value is 1/20."""

_DRAWN_MEASURES: Final = (*_DISTANCE_NAMES, "KL")
"""Measures that the picture shows."""

_COMPARISON_STYLES: Final = {
    "sensitive/safe": ("sensitive and safe, same start", RED, "o-"),
    "safe/safe": ("two halves of safe, same start", BLUE, "s-"),
    "sensitive/safe, two starts": ("sensitive and safe, two starts", GREY, "^--"),
}
"""Description, colour and line of each comparison."""

_TABLE_NOTES: Final = (
    "Distances of decoder weights, then of hidden states in the same contexts of held-out texts, "
    "all words read; KL: of the next-word distributions there, mean of both directions, in nats. "
    "In brackets the standard deviation over splits. PWCCA has the weights of the first model.",
    "safe/safe: two disjoint halves of the safe set, the control. excess: sensitive/safe less "
    "safe/safe, in the same split. Models of a comparison have the same start and as many texts, "
    "those of two starts as many texts.",
    "*: the 95 % t-interval of the mean excess over the splits lies above 0, for each figure by "
    "itself. Splits draw from the same corpus and share texts: the interval covers the choice of "
    "texts and start, not other corpora.",
)


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment that compares next-word models of sensitive and safe texts.

    Args:
        trials: largest number of texts in the sensitive set, at least 100.
        seed: int in [0, 2**63). The splits, the masked words and the initial weights get separate
            seeds derived from this seed.
        seeds: number of random splits of the texts. Each split has separate initial weights. The
            default is 5. If `quick` is True, the default is 1.
        data: folder with the texts. The folder must contain the file medical/abstracts.csv. By
            default, dpcore generates texts.
        full: True for models as large as in the paper, and for a permutation test. The run then
            takes hours.
        quick: True for a short run with one split, few texts and a short training.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (5, 5, 1)
    """

    seeds: int = setting(5, quick=1, full=5)


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Cell(Record):
    """Distances between next-word models, for one split and one share of masked words.

    Attributes:
        split: index of the random split of the texts, from 0.
        level: intended share of masked words in the training texts.
        values: distances between models, shape `(3, 7)`. Each row is for one comparison of two
            models, in the order of `COMPARISONS`. Each column is for one measure of distance, in
            the order of `MEASURES`.
        perplexity: perplexity on held-out texts without masks. The value is the mean over the three
            models with equal initial weights: one model of sensitive texts, and two models of safe
            texts.
        unigram: perplexity of the same held-out texts if each word is predicted with its frequency
            in the training texts of a model. The value is the mean over the same three models.
        p_values: one p-value for each measure of distance, or None if no test was run. The
            permutation test compares the model of the sensitive texts with a model of safe texts.
            The test exchanges training texts between the two models. The test is run only in the
            first split, and only if the option `full` is True.
    """

    split: int
    level: float
    values: Floats
    perplexity: float
    unigram: float
    p_values: Floats | None = None


@time_run("torch")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train next-word models for each split and share of masked words, and compare the models.

    Args:
        config: options of the experiment, such as the number of splits.
        threads: number of processes. The default is one process per core. The number does not
            change the result, because each training uses one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The distances between the models. If the user presses Ctrl-C, the result contains only the
        completed pairs of a split and a share of masked words.

    Raises:
        ModuleNotFoundError: if torch is not installed, or if `threads` is above 1 and joblib is not
            installed. The message of the error states how to install the package.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        ValueError: if the folder `config.data` contains too few texts.
        KeyboardInterrupt: if the user presses Ctrl-C before any models are trained and compared.

    Source:
        Gusain and Leith (2025), supplement, figure 5.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.mean(0.9, "safe/safe", "CKA") < 1.0
    """
    sets = read_sensitive_and_other_texts(config)
    study = _Study(config, sets)
    jobs = list(product(range(config.seeds), study.levels))
    many = threads_of(threads)
    cells, partial = gather_until_stopped(NAME, study.compare_trained_models, jobs, many, progress)
    sizes = study.texts, 2 * study.held_out, study.words
    return Result(config, sets.origin, sets.dropped, *sizes, cells, partial=partial)


class _Study:
    """The sensitive and the safe texts, and the training and comparison of models on them."""

    def __init__(self, config: Config, sets: TwoSets) -> None:
        self.config, self.levels = config, _REDACTION_SHARES[config.quick]
        size = "quick" if config.quick else "full" if config.full else "usual"
        self.sets = [[_first_words(text) for text in part] for part in (sets.sensitive, sets.rest)]
        ill, rest = map(len, self.sets)
        self.held_out = ill // _HELD_OUT_DIVISOR
        spare = ill - 2 * self.held_out, rest // 2 - self.held_out
        self.texts = min(_MAX_MODEL_TEXTS[config.quick], *spare)
        # The vocabulary is built from both sets, so that all models share it.
        texts, most = list(chain(*self.sets)), _MAX_VOCABULARY[config.quick]
        vocabulary = Vocabulary.from_texts(texts, unknown="token", min_count=2, max_size=most)
        self.rules: dict[str, Any] = {"vocabulary": vocabulary, "length": _WORDS_PER_TEXT}
        self.rules |= _TRAINING_SETTINGS[size]
        self.words = len(vocabulary) - len(vocabulary.reserved)

    def compare_trained_models(self, number: int, level: float) -> Cell:
        """Mask the share `level` of the words, then train and compare the models of a split."""
        names = ("split", "masks", "start", "other start")
        seeds = {name: cell_seed(self.config.seed, f"{name} {number}") for name in names}
        *clean, test = self.draw_sensitive_two_safe_valid_test(seeds["split"])
        # All texts are redacted together, so the masks do not depend on the set. The seed is the
        # same at all levels, so a word that is masked at one level is masked at all higher levels.
        texts = list(chain(*clean))
        pool = redaction.redact(texts, redaction.Random(), level=level, rng=seeds["masks"])
        *parts, valid = (pool[at * self.texts :][: len(part)] for at, part in enumerate(clean))
        fitted = [self.fit_model(part, valid, seeds["start"]) for part in parts]
        perplexities = [model.perplexity(test, rng=0) for model in fitted]
        models = dict(zip(("sensitive", "first", "second"), fitted, strict=True))
        models["other start"] = self.fit_model(parts[1], valid, seeds["other start"])
        values = [
            np.mean([_distances_by_measure(models[a], models[b], test) for a, b in pairs], axis=0)
            for pairs in COMPARISONS.values()
        ]
        p_values = None
        if self.config.full and not number:
            observed = _distances_by_measure(models["sensitive"], models["first"], test)
            p_values = self.compute_permutation_p_values(
                observed, parts[0] + parts[1], valid, test, seeds["start"]
            )
        perplexity, unigram = np.mean(
            [(of_model.value, of_model.unigram or 0.0) for of_model in perplexities], axis=0
        )
        return Cell(number, level, np.array(values), float(perplexity), float(unigram), p_values)

    def draw_sensitive_two_safe_valid_test(self, seed: int) -> list[list[str]]:
        """Draw training texts (sensitive, first safe, second safe), validation and test texts.

        The validation and test texts are half sensitive and half safe.
        """
        rng = np.random.default_rng(seed)
        size, few = self.texts, self.held_out
        ill, safe = ([part[row] for row in rng.permutation(len(part))] for part in self.sets)
        held_out = [ill[size + at :][:few] + safe[2 * size + at :][:few] for at in (0, few)]
        return [ill[:size], safe[:size], safe[size : 2 * size], *held_out]

    def fit_model(self, texts: list[str], valid: list[str], seed: int) -> lm.NextWordModel:
        """Train a next-word model. Raise KeyboardInterrupt if Ctrl-C ended the training early."""
        model = lm.fit(texts, valid, rng=seed, progress=False, **self.rules)
        if model.partial:
            raise KeyboardInterrupt
        return model

    def compute_permutation_p_values(
        self, observed: Floats, pool: list[str], valid: list[str], test: list[str], seed: int
    ) -> Floats:
        """Compute one p-value for each distance by permuting the training texts of two models.

        The texts of the two models are divided at random into two halves, several times. The
        p-value is the share of divisions whose models have at least the observed distance. The
        observed division is also counted.
        """
        rng = np.random.default_rng(seed)
        as_far = np.ones(len(MEASURES))
        for _ in range(_TEST_PERMUTATIONS):
            order = [pool[row] for row in rng.permutation(len(pool))]
            halves = order[: self.texts], order[self.texts :]
            a, b = (self.fit_model(half, valid, seed) for half in halves)
            as_far += _distances_by_measure(a, b, test) >= observed
        return as_far / (1 + _TEST_PERMUTATIONS)


def _first_words(text: str) -> str:
    return " ".join(text.split()[:_WORDS_PER_TEXT])


def _distances_by_measure(a: lm.NextWordModel, b: lm.NextWordModel, texts: list[str]) -> Floats:
    """Compute all distances (`MEASURES`) between two models."""
    closeness = lm.closeness(a, b, texts)
    assert closeness.states is not None
    assert closeness.kl is not None
    both = closeness.decoder, closeness.states
    distances = [
        value
        for distances_of in both
        for value in (distances_of.cka, distances_of.pwcca, distances_of.procrustes)
    ]
    return np.array([*distances, sum(closeness.kl) / 2.0])


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Distances between next-word models that are trained on sensitive or on safe texts.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        dropped: number of distinct texts that are both in the sensitive and in the safe set. These
            texts were left out.
        texts: number of training texts of each model.
        held_out: number of held-out texts on which the models are compared. Half of these texts are
            sensitive. Equally many further texts are used to choose the epoch and the learning
            rate.
        words: number of words in the vocabulary. The number includes one word that replaces all
            unknown words.
        cells: one result (`Cell`) for each split of the texts and share of masked words.
    """

    corpus: str
    dropped: int
    texts: int
    held_out: int
    words: int
    cells: tuple[Cell, ...]

    @property
    def levels(self) -> tuple[float, ...]:
        """Shares of masked words for which models were trained, in ascending order."""
        return tuple(sorted({cell.level for cell in self.cells}))

    def values(self, level: float, comparison: str, measure: str) -> Floats:
        """Return the distances between two models, as an array with one entry for each split.

        Args:
            level: share of masked words, one of `levels`.
            comparison: name of the comparison of two models, a key of `COMPARISONS`, such as
                "safe/safe".
            measure: name of the measure of distance, one of `MEASURES`, such as "CKA".

        Raises:
            TypeError: if `comparison` or `measure` is not a string.
            ValueError: if the result does not contain the level, the comparison or the measure.
        """
        row = list(COMPARISONS).index(choice("comparison", comparison, list(COMPARISONS)))
        column = MEASURES.index(choice("measure", measure, MEASURES))
        values = [cell.values[row, column] for cell in self.cells if cell.level == level]
        if not values:
            raise invalid("level", f"one of {', '.join(map(str, self.levels))}", level)
        return np.array(values)

    def excess(self, level: float, measure: str) -> Floats:
        """Return how much more a sensitive and a safe model differ than two safe models.

        The result is the distance between a sensitive and a safe model, minus the distance between
        two safe models. There is one number for each split of the texts. `level` is the share of
        masked words. `measure` is the name of the distance.
        """
        far, near = (self.values(level, name, measure) for name in list(COMPARISONS)[:2])
        return far - near

    def mean(self, level: float, comparison: str, measure: str) -> float:
        """Return the distance between two models, averaged over the splits of the texts.

        `level` is the share of masked words. `comparison` is a key of `COMPARISONS`, such as
        "safe/safe". `measure` is one of `MEASURES`, such as "CKA".
        """
        return float(self.values(level, comparison, measure).mean())

    def is_excess_shown(self, level: float, measure: str) -> bool:
        """Return True if models of different sets differ significantly more than two safe models.

        The excess is the distance between a sensitive and a safe model, minus the distance between
        two safe models. The result is True if the 95 % t-interval of the mean excess over the
        splits lies above 0. With one split, the result is False. `level` is the share of masked
        words. `measure` is the name of the distance.
        """
        excess = self.excess(level, measure)
        if len(excess) < 2:
            return False
        reach = stdtrit(len(excess) - 1, 0.975) * excess.std(ddof=1) / len(excess) ** 0.5
        return bool(excess.mean() > reach)

    def findings(self) -> list[str]:
        """Return one sentence for each measure of distance in the figure, and a conclusion."""
        sentences = []
        for measure in _DRAWN_MEASURES:
            far, near, other = (
                ", ".join(f"{self.mean(level, name, measure):.3f}" for level in self.levels)
                for name in COMPARISONS
            )
            shown = [f"{x:g}" for x in self.levels if self.is_excess_shown(x, measure)]
            sentences.append(
                f"{measure} at levels {', '.join(f'{x:g}' for x in self.levels)}: sensitive/safe "
                f"{far}; the control safe/safe {near}; with two starts {other}. The excess over "
                f"the control is shown to be above 0 at {', '.join(shown) or 'no level'}."
            )
        return [*sentences, self._describe_level_of_min_distance("Procrustes")]

    def _describe_level_of_min_distance(self, measure: str) -> str:
        if self.config.seeds == 1:
            return "One split has no spread: whether an excess is chance is not judged."
        names = list(COMPARISONS)[:2]
        low, best = self.levels[0], min(self.levels, key=lambda x: self.mean(x, names[0], measure))
        if best == low:
            return f"At no level are decoders closer than at level {low:g} (by {measure})."
        far, near = (
            self.mean(low, place, measure) - self.mean(best, place, measure) for place in names
        )
        ends = " to ".join(f"{self.excess(level, measure).mean():.3f}" for level in (low, best))
        return (
            f"Decoders of sensitive and safe are closest at level {best:g} (by {measure}). Their "
            f"distance falls by {far:.3f} up to there, and that of two halves of the safe set, "
            f"which differ by chance alone, by {near:.3f}: only the excess, {ends}, is due to the "
            "sets."
        )

    def table(self) -> str:
        """Return the distances between the models as a text table."""
        head = (
            f"Closeness of next-word models: {self.corpus}{self.config.origin_note}\n"
            f"{self.texts:,} texts a model, {self.words:,} words; compared on {self.held_out:,} "
            f"held-out texts; splits: {self.config.seeds}; {self.dropped:,} texts of both sets "
            f"were left out; seed {self.config.seed}"
        )
        rows: list[tuple[str, ...]] = [("masked", "models", *MEASURES)]
        rates = []
        for level in self.levels:
            cells = [cell for cell in self.cells if cell.level == level]
            for name in COMPARISONS:
                values = [self.values(level, name, measure) for measure in MEASURES]
                rows.append((f"{level:g}", name, *map(format_mean, values)))
            marks = ("*" if self.is_excess_shown(level, measure) else "" for measure in MEASURES)
            excess = (format_mean(self.excess(level, measure)) for measure in MEASURES)
            rows.append((f"{level:g}", "excess", *map(str.__add__, excess, marks)))
            tested = [cell.p_values for cell in cells if cell.p_values is not None]
            rows += [
                (f"{level:g}", "permutation p", *map("{:.2f}".format, p_values))
                for p_values in tested
            ]
            model, law = np.mean([(cell.perplexity, cell.unigram) for cell in cells], axis=0)
            rates.append(f"{level:g}: {model:.1f} ({law:.1f})")
        law_note = f"Perplexity of these texts, in brackets unigram: {', '.join(rates)}."
        notes = (textwrap.fill(note, 110) for note in (*_TABLE_NOTES, law_note, *self.findings()))
        return self.join_parts(head, align_rows(rows, left=(0, 1)), "\n".join(notes))

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data (numbers, strings, lists and dicts)."""
        cells = [
            {name: np.asarray(value).tolist() for name, value in list_shown_fields(cell)}
            for cell in self.cells
        ]
        return self.make_record(
            corpus=self.corpus,
            dropped=self.dropped,
            texts=self.texts,
            held_out=self.held_out,
            words=self.words,
            comparisons=list(COMPARISONS),
            measures=list(MEASURES),
            cells=cells,
            findings=self.findings(),
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the distances between the models against the share of masked words.

        Returns:
            A matplotlib figure. The upper panels show the distances. The lower panels show the
            excess: the distance between a sensitive and a safe model, minus the distance between
            two safe models.
        """
        picture = empty_figure(4.6, ax)
        panels = picture.subplots(2, len(_DRAWN_MEASURES), sharex=True)
        for measure, (upper, lower) in zip(_DRAWN_MEASURES, panels.T, strict=True):
            for name, (label, hue, line) in _COMPARISON_STYLES.items():
                values = [self.values(level, name, measure) for level in self.levels]
                _draw_means_with_sd(upper, self.levels, values, color=hue, fmt=line, label=label)
            excess = [self.excess(level, measure) for level in self.levels]
            _draw_means_with_sd(lower, self.levels, excess, color=INK, fmt="D-", label="excess")
            lower.axhline(0.0, color=GREY, linewidth=0.8, linestyle=":")
            title = "KL of next words, nats" if measure == "KL" else f"{measure} of decoders"
            upper.set_title(title, fontsize=SMALL + 1)
            upper.set_ylim(bottom=0.0)
            lower.set_xlabel("share of words masked", fontsize=SMALL)
            lower.set_xticks([0.0, 0.5, 1.0], ["0", ".5", "1"])
            style_axes(upper)
            style_axes(lower)
        panels[0, 0].set_ylabel("distance (0: as one model)", fontsize=SMALL)
        label = "excess of sensitive and safe\nover two halves (0: chance)"
        panels[1, 0].set_ylabel(label, fontsize=SMALL)
        made = "generated texts" if self.config.data is None else "texts"
        splits = self.config.seeds
        spread = "one split" if splits == 1 else f"mean and standard deviation of {splits} splits"
        title = f"How close are two models of redacted {made}? {spread}"
        picture.suptitle(title, fontsize=SMALL + 1)
        add_legend(picture, panels[0, 0])
        return restyle_figure(picture)


def _draw_means_with_sd(axes: Axes, levels: Any, values: list[Floats], **style: Any) -> None:
    spreads = [replicates.std(ddof=1) if len(replicates) > 1 else 0.0 for replicates in values]
    style |= {"markersize": 3.5, "linewidth": 1.2, "elinewidth": 0.8, "capsize": 2}
    axes.errorbar(levels, [replicates.mean() for replicates in values], spreads, **style)
