"""Utility of texts rewritten by ADePT, against the true epsilon instead of the claimed epsilon.

ADePT rewrites a text by an auto-encoder that adds noise to the vector between encoder and decoder.
With the published noise, the true epsilon is sqrt(n) times the claimed epsilon, where n is the
dimension of the vector. The variant "scaled" increases the noise until the claim is true. "l1" and
"gaussian" are other repairs. The auto-encoder is trained on public texts, and then rewrites other
texts. Utility is the accuracy with which a linear classifier predicts the intent (label) of texts.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product, takewhile
from typing import Any, Final, Literal

import numpy as np

from ..errors import choice, integer, invalid
from ..mechanisms import positive
from ..packages import require_module
from ..report.figures import BLUE, GREY, INK, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..streams import threads_of
from ..text import Corpus, generated, words_of
from ..text.inference.metrics import Measured, Truth
from ..text.inference.targets import Target
from ..text.rewriter_frontiers import compute_bleu
from .base import Column, SeededSettings, align_columns, encode_fields, setting
from .corpora import read_corpus
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, empty_figure, style_axes, write_at
from .running import Tabled, audit_cell, cell_seed, gather_until_stopped, group_answers, time_run

NAME = "adept-rewrite"
VARIANTS = ("published", "scaled", "l1", "gaussian")
_FULL_WIDTHS = (64, 128, 256)
_MIN_AUDIT_REWRITES = 1000
"""Smallest number of rewritten texts for each of the two inputs of an audit of texts."""

MADE_UP: Final = "generated"
"""Name of the generated corpus, which is used if `data` is None."""
DELTA: Final = 1e-5
"""Delta of the claim of the variant "gaussian"."""
_MAX_TRAINING_REWRITES: Final = 1000
"""Largest number of training texts that are rewritten."""
FOLDS: Final = 5
"""Number of folds of the cross-validation on the rewritten texts."""
EPOCHS: Final = {"atis": (40, 1), "snips": (7, 2), MADE_UP: (20, 1)}
"""For each corpus, number of epochs (fixed in advance), and smallest count of a known word."""
_GENERATED_TEXTS: Final = 2000
_QUICK_SIZES: Final = (480, 120, 10)
"""Numbers of training texts, of texts to rewrite and of epochs, if `quick` is True."""


@dataclass(frozen=True, slots=True, repr=False)
class StudyTexts(Shown):
    """A corpus, split into public texts for training an auto-encoder, and texts to rewrite.

    Args:
        name: "atis", "snips" or "generated".
        origin: source of the texts.
        train: public texts for the training.
        held: texts to rewrite. No text occurs in both `held` and `train`.
        labels: intent (label) of each text to rewrite.
        dropped: number of texts that were left out of `held` because they also occur in `train`.
        epochs: number of training epochs.
        min_count: smallest number of times that a word of the vocabulary occurs in `train`.
    """

    name: str
    origin: str
    train: tuple[str, ...]
    held: tuple[str, ...]
    labels: tuple[str, ...]
    dropped: int
    epochs: int
    min_count: int

    @property
    def spaced_once(self) -> list[str]:
        """Texts to rewrite, each as words separated by single blanks."""
        return list(map(normalise_blanks, self.held))


def normalise_blanks(text: str) -> str:
    """Return a text with single blanks between words, as a perfect auto-encoder would return it."""
    return " ".join(words_of(text))


def read_or_generate_corpora(config: Any) -> tuple[StudyTexts, ...]:
    """Read or generate the corpora of an experiment with rewritten texts.

    Args:
        config: options with `data` (None to generate texts), `full` and `quick`.

    Raises:
        FileNotFoundError: if a file is missing. The message names the file and its source.
        ValueError: if the corpus has fewer than five distinct texts to rewrite.
    """
    if config.data is None:
        rows = sum(_QUICK_SIZES[:2]) if config.quick else _GENERATED_TEXTS
        return (_split_train_and_held(MADE_UP, generated("intents", rows, rng=1), config.quick),)
    names: tuple[Literal["atis", "snips"], ...] = ("atis", "snips") if config.full else ("atis",)
    return tuple(
        _split_train_and_held(name, read_corpus(config.data, name), config.quick) for name in names
    )


def _split_train_and_held(name: str, corpus: Corpus, quick: bool) -> StudyTexts:
    train_texts = {normalise_blanks(text) for text in corpus.train}
    rows: list[tuple[str, str]] = []
    for part in (corpus.valid, corpus.test):
        assert part.labels is not None
        rows += zip(part.texts, map(str, part.labels.tolist()), strict=True)
    held = [row for row in rows if normalise_blanks(row[0]) not in train_texts]
    dropped = len(rows) - len(held)
    train, (epochs, few) = tuple(corpus.train), EPOCHS[name]
    if quick:
        train, held, epochs = train[: _QUICK_SIZES[0]], held[: _QUICK_SIZES[1]], _QUICK_SIZES[2]
    if len({normalise_blanks(text) for text, _ in held}) < FOLDS:
        requirement = f"a corpus with {FOLDS} texts at least that the train file does not hold"
        raise invalid("data", requirement, name)
    texts, labels = zip(*held, strict=True)
    return StudyTexts(name, corpus.origin, train, texts, labels, dropped, epochs, few)


@dataclass(frozen=True, slots=True, repr=False)
class Utility(Shown):
    """Accuracy and macro-F1 of a classifier that predicts the intent (label) of rewritten texts.

    Args:
        accuracy: share of the texts whose intent is predicted correctly.
        f1: mean of the F1 scores of all intents that have at least two different texts.
    """

    accuracy: Measured
    f1: Measured


def list_one_text_intents(texts: StudyTexts) -> tuple[str, ...]:
    """List the intents with only one distinct text. A classifier cannot learn these intents."""
    counts = Counter(label for _, label in {*zip(texts.spaced_once, texts.labels, strict=True)})
    return tuple(sorted(label for label, times in counts.items() if times < 2))


def top_label_share(texts: StudyTexts) -> float:
    """Return the share of the most frequent intent among the texts that will be rewritten."""
    return max(Counter(texts.labels).values()) / len(texts.labels)


def measure_intent_utility(
    rewritten: Sequence[str], texts: StudyTexts, confidence: float, seed: int
) -> Utility:
    """Measure how well a classifier predicts the intents of rewritten texts.

    The classifier is logistic regression on TF-IDF, tested by five-fold cross-validation.

    Args:
        rewritten: one rewritten text for each text in `texts.held`.
        texts: original texts with their intents (labels).
        confidence: confidence level of each interval separately.
        seed: seed of the bootstrap for the intervals.
    """
    alone = list_one_text_intents(texts)
    names = [name for name in sorted(set(texts.labels)) if name not in alone]
    # Codes above those of macro-F1 never form their own group.
    codes = {name: code for code, name in enumerate((*names, *alone))}
    labels = np.array([codes[label] for label in texts.labels])
    selection = require_module("sklearn.model_selection", NAME)
    answers = np.empty((len(labels), 1), int)
    for fit_rows, asked in selection.GroupKFold(FOLDS).split(labels, groups=texts.spaced_once):
        parts = ([rewritten[row] for row in rows] for rows in (fit_rows, asked))
        answers[asked, 0] = _fit_and_predict(labels[fit_rows], *parts)
    target = Target(("intent",), (tuple(range(len(names))),))
    judge = Truth(labels[:, np.newaxis], target, "f1", confidence, seed)
    return Utility(judge.accuracy(answers), judge.f1(answers))


def _fit_and_predict(labels: Any, fit_texts: list[str], asked: list[str]) -> Any:
    kinds, counts = np.unique(labels, return_counts=True)
    if len(kinds) == 1 or not any(text.split() for text in fit_texts):
        return np.full(len(asked), kinds[counts.argmax()])
    extraction = require_module("sklearn.feature_extraction.text", NAME)
    linear = require_module("sklearn.linear_model", NAME)
    from threadpoolctl import threadpool_limits

    # Words are separated by blanks. The default pattern would drop words of one letter.
    weights = extraction.TfidfVectorizer(analyzer=str.split)
    with threadpool_limits(1):
        model = linear.LogisticRegression(max_iter=1000).fit(
            weights.fit_transform(fit_texts), labels
        )
        return model.predict(weights.transform(asked))


@dataclass(frozen=True, slots=True, repr=False)
class Setup(Shown):
    """Settings of one auto-encoder, a network that encodes and decodes texts.

    Args:
        corpus: name of the corpus on which the auto-encoder is trained.
        clip: norm in which vectors are clipped, "l1" or "l2".
        hidden: number of entries of a hidden state. The vector of a text has 2 * `hidden` entries.
        number: index of this training among repeated trainings, from 0.
    """

    corpus: str
    clip: str
    hidden: int
    number: int


def clip_norm(variant: str) -> str:
    """Return the norm ("l1" or "l2") by which vectors are clipped for a variant of the noise."""
    return "l1" if variant == "l1" else "l2"


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """A trained auto-encoder, and its results without noise.

    Args:
        setup: settings of the auto-encoder.
        model: the auto-encoder. None in the final result of the experiment.
        pair: two of the texts to rewrite, with the largest distance between their vectors.
        trained: record of the training.
        bleu: BLEU (a similarity) of the texts to rewrite after decoding, against the originals.
        memorised: BLEU of the training texts after decoding, against the originals.
        plain: accuracy and macro-F1 of the intents that a classifier predicts from the decoded
            versions of the texts to rewrite.
        examples: decoded versions of the first texts to rewrite.
    """

    setup: Setup
    model: Any
    pair: tuple[str, str]
    trained: Any
    bleu: float
    memorised: float
    plain: Utility
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Results of one trained auto-encoder with one variant of the noise and one claimed epsilon.

    Args:
        seed: seed of the noise.
        true: true epsilon of the noise, valid for any two texts.
        exact: exact privacy loss of the audited pair of texts (the pair is `Fitted.pair`).
        on_vector: lower bound on epsilon, certified from noisy vectors of this pair.
        on_text: lower bound on epsilon, certified from rewritten texts of this pair.
        event: description of the set of rewritten texts that the audit counted.
        refuted: two values, for the audits of vectors and of texts. True means a refuted claim.
        bleu: BLEU (a similarity) of the rewritten texts, against their originals.
        unchanged: share of the rewritten texts that are equal to their originals.
        told: accuracy and macro-F1 of the intents predicted from the rewritten texts.
        memorised: BLEU of rewritten training texts (public texts), against their originals.
        examples: rewritten versions of the first texts to rewrite.
        partial: True if Ctrl-C ended an audit early.
    """

    seed: int
    true: float
    exact: float
    on_vector: float
    on_text: float
    event: str
    refuted: tuple[bool, bool]
    bleu: float
    unchanged: float
    told: Utility
    memorised: float
    examples: tuple[str, ...]
    partial: bool


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of trained auto-encoders for one variant of the noise and one claimed epsilon.

    Args:
        corpus: name of the corpus.
        hidden: number of entries of a hidden state.
        variant: variant of the noise.
        claimed: claimed epsilon.
        cells: one result for each trained auto-encoder (each has a different seed).
    """

    corpus: str
    hidden: int
    variant: str
    claimed: float
    cells: tuple[Cell, ...]

    @property
    def true(self) -> float:
        """True epsilon of the noise of this row, valid for any two texts."""
        return self.cells[0].true

    @property
    def accuracy(self) -> Measured:
        """Accuracy of the predicted intents (mean and spread if there are several seeds)."""
        return _mean_and_spread_of_seeds([cell.told.accuracy for cell in self.cells])

    @property
    def f1(self) -> Measured:
        """Macro-F1 of the predicted intents (mean and spread if there are several seeds)."""
        return _mean_and_spread_of_seeds([cell.told.f1 for cell in self.cells])

    def mean(self, name: str) -> float:
        """Return the mean over the seeds of one field of `Cell`, such as "bleu"."""
        return statistics.fmean(getattr(cell, name) for cell in self.cells)


def _mean_and_spread_of_seeds(values: Sequence[Measured]) -> Measured:
    if len(values) == 1:
        return values[0]
    each = [figure.value for figure in values]
    mean, wide = statistics.fmean(each), statistics.stdev(each)
    return Measured(mean, mean - wide, mean + wide, f"mean and spread of {len(each)} seeds")


def train_encoder(setup: Setup, texts: StudyTexts, config: Any) -> Fitted:
    """Train an auto-encoder, and measure its results without noise.

    Args:
        setup: settings of the auto-encoder.
        texts: corpus with the training texts and the texts to rewrite.
        config: options with the fields `seed`, `confidence`, `device` and `examples`.
    """
    from ..text import ADePTModel

    variant: Any = "l1" if setup.clip == "l1" else "scaled"
    size = {"hidden": setup.hidden, "embedding": max(1, setup.hidden // 2)}
    model = ADePTModel(1.0, variant=variant, min_count=texts.min_count, **size)
    key = f"train/{setup.corpus}/{setup.clip}/{setup.hidden}/{setup.number}"
    seed = cell_seed(config.seed, key)
    how: Any = {"epochs": texts.epochs, "device": config.device, "rng": seed, "progress": False}
    model.fit(list(texts.train), pair=False, **how)
    pair = model.worst_pair(texts.held, progress=False)
    decoded, public = model.decode(model.clean(texts.held)), _choose_evenly_spaced_public(texts)
    return Fitted(
        setup,
        model,
        (pair.x, pair.x_prime),
        model.trained,
        bleu=compute_bleu(decoded, texts.held),
        memorised=compute_bleu(model.decode(model.clean(public)), public),
        plain=measure_intent_utility(decoded, texts, config.confidence, seed),
        examples=tuple(decoded[: config.examples]),
    )


def _choose_evenly_spaced_public(texts: StudyTexts) -> list[str]:
    """Choose training texts at equal distances, because the training file may be sorted."""
    return list(texts.train[:: math.ceil(len(texts.train) / _MAX_TRAINING_REWRITES)])


def rewrite_and_audit(
    fitted: Fitted, texts: StudyTexts, variant: str, claimed: float, config: Any
) -> Cell:
    """Rewrite texts with noise, and audit the claimed epsilon on one pair of texts.

    Args:
        fitted: the trained auto-encoder. The audit uses the texts `fitted.pair`.
        texts: corpus with the training texts and the texts to rewrite.
        variant: variant of the noise.
        claimed: epsilon that the noise claims to have.
        config: options with `trials`, `text_trials`, `seed`, `confidence` and `examples`.
    """
    setup = fitted.setup
    delta = DELTA if variant == "gaussian" else 0.0
    model = fitted.model.renoised(claimed, variant=variant, delta=delta)
    place = f"{setup.corpus}/{setup.hidden}/{setup.number}/{variant}/{claimed!r}"
    seed = cell_seed(config.seed, place)
    rewritten, public = model.rewrite(texts.held, rng=seed), _choose_evenly_spaced_public(texts)
    claim = {"claim": claimed, "delta": delta, "rng": seed}
    on_vector, on_text = (
        audit_cell(config, place, mechanism, fitted.pair, trials=trials, **claim)
        for mechanism, trials in ((model, config.trials), (model.rewriter, config.text_trials))
    )
    assert on_vector.declared_loss is not None
    return Cell(
        seed=seed,
        true=model.true_epsilon,
        exact=float(on_vector.declared_loss),
        on_vector=on_vector.epsilon_lower,
        on_text=on_text.epsilon_lower,
        event=str(on_text.event),
        refuted=(on_vector.refuted is True, on_text.refuted is True),
        bleu=compute_bleu(rewritten, texts.held),
        unchanged=sum(map(str.__eq__, rewritten, texts.spaced_once)) / len(rewritten),
        told=measure_intent_utility(rewritten, texts, config.confidence, seed),
        memorised=compute_bleu(model.rewrite(public, rng=cell_seed(seed, "public")), public),
        examples=tuple(rewritten[: config.examples]),
        partial=on_vector.partial or on_text.partial,
    )


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of the experiment that rewrites texts by ADePT, and audits the claimed epsilon.

    Args:
        trials: number of noisy vectors for each of the two texts of an audit. Audits of rewritten
            texts use a tenth of this number of rewritten texts, but at least 1,000.
        seed: int in [0, 2**63), from which the seeds of training, noise and audits are derived.
        data: folder `atis` or `snips`, or the parent of both. With None, texts are generated.
        full: True to add SNIPS, hidden states of 64 and 256 entries, and two more seeds.
        quick: True for a short test with few texts, 10 epochs and two claimed epsilons.
        seeds: number of trainings of each auto-encoder. The table shows the mean and the spread
            over the trainings. The default is 1, or 3 if `full` is True.
        device: torch device of encoder and decoder, such as "cpu".
        confidence: confidence level of each bound and each interval separately.
        claimed: epsilons that the noise claims to have, in the order of the table.
        variants: variants of the noise: "published", "scaled", "l1", "gaussian".
        examples: number of texts that the table shows with all rewritten versions.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range, or `full` and `quick` are both True.

    Example:
        >>> Config(quick=True).claimed
        (10.0, 300.0)
    """

    trials: int = 10**5
    data: str | None = None
    full: bool = False
    quick: bool = False
    seeds: int = setting(1, full=3)
    device: str = "cpu"
    confidence: float = 0.95
    claimed: tuple[float, ...] = setting(
        (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0), positive, quick=(10.0, 300.0)
    )
    variants: tuple[str, ...] = setting(VARIANTS, choice, VARIANTS)
    examples: int = setting(5, integer, 0)

    def __post_init__(self) -> None:
        """Check the fields."""
        SeededSettings.__post_init__(self)
        if self.full and self.quick:
            raise invalid("quick", "left out where full is set", self.quick)

    @property
    def text_trials(self) -> int:
        """Number of rewritten texts for each of the two inputs of an audit of texts."""
        return max(_MIN_AUDIT_REWRITES, self.trials // 10)

    @property
    def widths(self) -> tuple[int, ...]:
        """Sizes of the auto-encoders to train: numbers of entries of a hidden state."""
        return _FULL_WIDTHS if self.full else (32,) if self.quick else (128,)


@time_run("sklearn", "sacrebleu")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train auto-encoders, rewrite texts with every variant of the noise, and audit every claim.

    Args:
        config: options of the experiment.
        threads: number of processes. Defaults to all cores on the CPU, and to 1 on another device.
            The number of processes never changes a result.
        progress: True to show a progress bar. By default, only long interactive work has a bar.

    Returns:
        The result, with one row for each corpus, size of auto-encoder, variant and claimed epsilon.

    Raises:
        ModuleNotFoundError: if torch, scikit-learn or sacrebleu is missing.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if torch does not find the device, or the corpus has too few texts to rewrite.
        KeyboardInterrupt: if the user presses Ctrl-C before the first text is rewritten.

    Source:
        Krishna, Gupta and Dupuy (2021). The error in their proof: Habernal (2021), theorem 1.

    Example:
        >>> from importlib.util import find_spec
        >>> if all(map(find_spec, ("torch", "sklearn", "sacrebleu"))):
        ...     config = Config(quick=True, trials=500, claimed=(10.0,), variants=("published",))
        ...     [row] = run(config, progress=False).rows
        ...     assert row.true == 80.0  # 8 times the claim: the clip is of the wrong norm
    """
    texts = {model.name: model for model in read_or_generate_corpora(config)}
    clips = tuple(dict.fromkeys(map(clip_norm, config.variants)))
    each = product(texts, config.widths, range(config.seeds), clips)
    setups = [Setup(name, clip, width, number) for name, width, number, clip in each]
    many = threads_of(threads) if config.device == "cpu" else 1
    trainings = [(model, texts[model.corpus], config) for model in setups]
    models, partial = gather_until_stopped("training", train_encoder, trainings, many, progress)
    if partial:
        raise KeyboardInterrupt
    jobs = [
        (model, texts[model.setup.corpus], variant, claimed, config)
        for variant, claimed, model in product(config.variants, config.claimed, models)
        if model.setup.clip == clip_norm(variant)
    ]
    cells, partial = gather_until_stopped("rewriting", rewrite_and_audit, jobs, many, progress)
    keys = [(model.setup.corpus, model.setup.hidden, how, e) for model, _, how, e, _ in jobs]
    rows = [Row(*key, ones) for key, ones in group_answers(keys, cells).items()]
    rows.sort(key=lambda row: ([*texts].index(row.corpus), row.hidden))
    clean = {
        name: measure_intent_utility(model.spaced_once, model, config.confidence, config.seed)
        for name, model in texts.items()
    }
    kept = tuple(replace(model, model=None) for model in models)
    return Result(config, tuple(texts.values()), kept, tuple(rows), clean, partial=partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the experiment that rewrites texts by ADePT, and audits the claimed epsilon.

    Args:
        config: options of the run.
        texts: the corpora.
        models: trained auto-encoders, without their weights.
        rows: one row for each corpus, size of auto-encoder, variant and claimed epsilon.
        clean: accuracy and macro-F1 of intents predicted from unchanged texts, by name of corpus.
    """

    texts: tuple[StudyTexts, ...]
    models: tuple[Fitted, ...]
    rows: tuple[Row, ...]
    clean: dict[str, Utility]

    def table(self) -> str:
        """Return the results as plain text, with conclusions and rewritten example texts."""
        config = self.config
        seeds = f"; mean and spread of {config.seeds} trainings" if config.seeds != 1 else ""
        pairs = product(self.texts, config.widths)
        parts = (part for texts, width in pairs for part in _corpus_sections(self, texts, width))
        return self.join_parts(
            f"ADePT: texts rewritten with noise in the middle; seed {config.seed}{seeds}.\n"
            f"Bounds and intervals at {100 * config.confidence:g} % confidence, each on its own; "
            f"audits of {config.trials:,} vectors and {config.text_trials:,} rewrites a side.\n"
            "An epsilon is for one rewrite of one text; no training text is covered by any. "
            f"'gaussian' has its epsilon at delta {DELTA:g}.",
            *parts,
        )

    def rows_and_models_of(self, texts: StudyTexts, width: int) -> tuple[list[Row], list[Fitted]]:
        """Return the rows and auto-encoders for one corpus and one size of a hidden state."""
        key = texts.name, width
        rows = [row for row in self.rows if (row.corpus, row.hidden) == key]
        return rows, [m for m in self.models if (m.setup.corpus, m.setup.hidden) == key]

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        return self.make_record(
            delta=DELTA,
            corpora=[_corpus_to_dict(texts, self) for texts in self.texts],
            models=[_auto_encoder_to_dict(model) for model in self.models],
            rows=[_rewriting_row_to_dict(row) for row in self.rows],
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the accuracy of predicted intents and BLEU against the true epsilon of the noise."""
        picture = empty_figure(4.6, ax)
        grid = picture.subplots(2, len(self.texts), sharex="col", squeeze=False)
        width = sorted(self.config.widths)[len(self.config.widths) // 2]
        label = f"true epsilon, for any two texts ('gaussian': at delta {DELTA:g})"
        for (above, below), texts in zip(grid.T, self.texts, strict=True):
            rows, models = self.rows_and_models_of(texts, width)
            above.set_title(f"{corpus_title(texts)}, n = {2 * width}", fontsize=TEXT)
            _draw_intent_accuracy(above, rows, texts, self)
            _draw_bleu(below, rows, models, self)
            style_axes(above)
            style_axes(below, label)
        grid[0, 0].set_ylabel("accuracy of intents", fontsize=TEXT)
        grid[1, 0].set_ylabel("BLEU", fontsize=TEXT)
        add_legend(picture, grid[0, 0], 6, "upper")
        return restyle_figure(picture)


def corpus_title(texts: StudyTexts) -> str:
    """Return the title of a corpus, or "utterances made up" if the texts are generated."""
    return "utterances made up" if texts.name == MADE_UP else texts.name.upper()


def min_epsilon_staying_above_floor(rows: list[Row], floor: float) -> float | None:
    """Return the smallest true epsilon from which on all accuracy intervals are above `floor`."""
    held = takewhile(lambda row: row.accuracy.low > floor, sorted(rows, key=lambda row: -row.true))
    return min((row.true for row in held), default=None)


def max_accuracy_row(rows: list[Row], max_epsilon: float, floor: float) -> Row | None:
    """Return the row with the highest accuracy among rows with true epsilon <= `max_epsilon`.

    The confidence interval of the accuracy must lie above `floor`. None if this holds for no row.
    """
    held = [row for row in rows if row.true <= max_epsilon * 1.0001 and row.accuracy.low > floor]
    return max(held, key=lambda row: row.accuracy.value, default=None)


def _corpus_sections(result: Result, texts: StudyTexts, width: int) -> list[str]:
    rows, models = result.rows_and_models_of(texts, width)
    return [
        _corpus_and_models(texts, width, models, result),
        align_columns(_COLUMNS, rows),
        _format_accuracy_conclusions(rows, top_label_share(texts), result.config.variants),
        *_format_examples(rows, texts, models),
    ]


def _corpus_and_models(texts: StudyTexts, width: int, models: list[Fitted], result: Result) -> str:
    clean, alone = result.clean[texts.name], list_one_text_intents(texts)
    left = f"; outside macro-F1, with one text each: {', '.join(alone)}" if alone else ""
    lines = [
        f"{corpus_title(texts)} ({texts.origin}), n = {2 * width}: {len(texts.train):,} "
        f"training texts ({models[0].trained.cut:,} cut after 20 words), which stand for public "
        f"ones, {texts.epochs} epochs; "
        f"{len(texts.held):,} others rewritten ({texts.dropped:,} left out that occur in training)",
        f"  not rewritten: accuracy {_format_interval(clean.accuracy)}, macro-F1 "
        f"{_format_interval(clean.f1)}; majority {top_label_share(texts):.3f}{left}",
    ]
    lines += [
        f"  decoded without noise, {model.setup.clip} clip: BLEU {model.bleu:.3f}, accuracy "
        f"{_format_interval(model.plain.accuracy)}; of training texts BLEU {model.memorised:.3f} "
        "(memorised: not private text)"
        for model in models
    ]
    return "\n".join(lines)


def _format_true_epsilon_and_mark_excess(row: Row) -> str:
    return f"{row.true:.5g}{'!' if row.true > row.claimed * (1.0 + 1e-9) else ''}"


def _format_mean_marked_if_refuted(row: Row, name: str, audit: int) -> str:
    refuted = any(cell.refuted[audit] for cell in row.cells)
    return f"{row.mean(name):.2f}{'!' if refuted else ''}"


def _format_interval(measured: Measured) -> str:
    return f"{measured.value:.3f} [{measured.low:.3f}, {measured.high:.3f}]"


_COLUMNS = (
    Column("variant", "variant", left=True),
    Column("claimed", "claimed", "g"),
    Column("true", _format_true_epsilon_and_mark_excess),
    Column("largest pair", lambda row: row.mean("exact"), ".4g"),
    Column("on z", lambda row: _format_mean_marked_if_refuted(row, "on_vector", 0)),
    Column("on text", lambda row: _format_mean_marked_if_refuted(row, "on_text", 1)),
    Column("BLEU", lambda row: row.mean("bleu"), ".3f"),
    Column("accuracy", "accuracy", _format_interval),
    Column("macro-F1", "f1", _format_interval),
    Column("same", lambda row: row.mean("unchanged"), ".3f"),
    Column("memorised: not private text", lambda row: row.mean("memorised"), ".3f"),
)


def _format_accuracy_conclusions(rows: list[Row], floor: float, variants: tuple[str, ...]) -> str:
    lines = [
        "True: for any two texts, ! where the claim is false. Largest pair: exact loss of the two "
        "texts that are farthest apart, computed, not certified.",
        "On z, on text: certified on that pair, ! where it refutes the claim. Same: rewritten to "
        "themselves. Memorised: BLEU of rewritten training texts.",
        "Smallest true epsilon from which on intents are told better than by the majority, beyond "
        "the interval:",
    ]
    for name in variants:
        level = min_epsilon_staying_above_floor([row for row in rows if row.variant == name], floor)
        lines.append(f"  {name}: {'none here' if level is None else f'{level:.5g}'}")
    lines.append("Most is told, of all rows whose true epsilon is at most")
    for level in sorted({float(f"{row.true:.5g}") for row in rows}):
        best = max_accuracy_row(rows, level, floor)
        sentence = "no more than the majority in any"
        if best:
            sentence = (
                f"{best.variant} (true {best.true:.5g}), accuracy {best.accuracy.value:.3f}, "
            )
            sentence += f"BLEU {best.mean('bleu'):.3f}"
        lines.append(f"  {level:.5g}: {sentence}")
    return "\n".join(lines)


def _format_examples(rows: list[Row], texts: StudyTexts, models: list[Fitted]) -> Iterator[str]:
    first = [model for model in models if model.setup.number == 0]
    for place in range(len(models[0].examples)):
        lines = [("text", "", texts.spaced_once[place])]
        lines += [
            (f"{model.setup.clip} clip", "no noise", model.examples[place]) for model in first
        ]
        lines += [
            (row.variant, f"true {row.true:.5g}", row.cells[0].examples[place] or "(empty)")
            for row in rows
        ]
        yield align_rows(lines, left=(0, 2))


def _utility_to_dict(utility: Any) -> dict[str, Any]:
    return {
        key: {"value": figure.value, "low": figure.low, "high": figure.high, "how": figure.how}
        for key, figure in (("accuracy", utility.accuracy), ("f1", utility.f1))
    }


def _corpus_to_dict(texts: StudyTexts, result: Result) -> dict[str, Any]:
    return {
        "name": texts.name, "made_up": texts.name == MADE_UP, "origin": texts.origin,
        "train": len(texts.train), "rewritten": len(texts.held), "left_out": texts.dropped,
        "epochs": texts.epochs, "majority": top_label_share(texts),
        "single": list(list_one_text_intents(texts)),
        **_utility_to_dict(result.clean[texts.name]),
        "examples": texts.spaced_once[: result.config.examples],
    }  # fmt: skip


def _auto_encoder_to_dict(fitted: Fitted) -> dict[str, Any]:
    trained = fitted.trained
    return (
        encode_fields(fitted.setup)
        | {"seed": str(trained.seed), "threads": trained.threads, "losses": trained.losses}
        | {
            "cut": trained.cut,
            "pair": fitted.pair,
            "bleu": fitted.bleu,
            "memorised": fitted.memorised,
        }
        | _utility_to_dict(fitted.plain)
        | {"examples": fitted.examples}
    )


def _rewriting_row_to_dict(row: Row) -> dict[str, Any]:
    entries = {"corpus": row.corpus, "hidden": row.hidden, "variant": row.variant}
    entries |= {"claimed": row.claimed, "true": row.true}
    return entries | _utility_to_dict(row) | {"runs": [_cell_to_dict(cell) for cell in row.cells]}


def _cell_to_dict(cell: Any) -> dict[str, Any]:
    refuted_vector, refuted_text = cell.refuted
    return (
        {"seed": str(cell.seed), "exact": cell.exact, "certified_vector": cell.on_vector}
        | {"certified_text": cell.on_text, "event_text": cell.event}
        | {"refuted_vector": refuted_vector, "refuted_text": refuted_text, "bleu": cell.bleu}
        | {"unchanged": cell.unchanged, "memorised": cell.memorised}
        | _utility_to_dict(cell.told)
        | {"examples": cell.examples, "partial": cell.partial}
    )


_VARIANT_STYLES: dict[str, dict[str, Any]] = {
    "published": {"color": RED, "marker": "s"},
    "scaled": {"color": BLUE, "marker": "o", "linestyle": "--", "markerfacecolor": WHITE},
    "l1": {"color": "#2e7d32", "marker": "^"},
    "gaussian": {"color": "#b26a00", "marker": "D"},
}


def _get_style(variant: str) -> dict[str, Any]:
    return {"markersize": 4.0, "linewidth": 1.1, **_VARIANT_STYLES[variant]}


def _draw_intent_accuracy(axes: Axes, rows: list[Row], texts: StudyTexts, result: Result) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        accuracies = [row.accuracy for row in mine]
        ends = np.maximum(0.0, [[x.value - x.low, x.high - x.value] for x in accuracies]).T
        label = f"{name} (claim false)" if name == "published" else name
        points, style = (
            ([row.true for row in mine], [x.value for x in accuracies]),
            _get_style(name),
        )
        axes.errorbar(*points, yerr=ends, label=label, elinewidth=0.7, **style)
        for row in mine if name == "published" else ():
            # The claims of all other systems are true.
            text, place = f"claimed {row.claimed:g}", (row.true, row.accuracy.low)
            below: Any = {"ha": "center", "va": "top", "fontsize": SMALL - 1}
            write_at(axes, text, place, (0, -2), color=RED, **below)
    clean = result.clean[texts.name].accuracy.value
    axes.axhline(clean, color=INK, linewidth=0.9, label="not rewritten")
    axes.axhline(top_label_share(texts), color=GREY, linestyle=":", linewidth=1.2, label="majority")
    axes.set_xscale("log")
    axes.margins(y=0.14)


def _draw_bleu(axes: Axes, rows: list[Row], models: list[Fitted], result: Result) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        points = [row.true for row in mine], [row.mean("bleu") for row in mine]
        axes.plot(*points, **_get_style(name))
    for model in [model for model in models if model.setup.number == 0]:
        axes.axhline(model.bleu, color=GREY, linewidth=0.6)
        text, place = f"{model.setup.clip} clip, no noise", (0.01, model.bleu)
        small: Any = {"xycoords": ("axes fraction", "data"), "fontsize": SMALL - 1}
        write_at(axes, text, place, (0, 1.5), color=GREY, **small)
    axes.set_xscale("log")
    axes.set_ylim(0.0, max(0.1, axes.get_ylim()[1]))
