"""Leakage of one training text by a next-word model, after DP-SGD and after redaction.

Figure 6 of Gusain and Leith shows DP-SGD and redaction on the same epsilon axis, although the two
epsilons have different meanings. The epsilon of DP-SGD is an upper bound for one text, computed by
an accountant. The epsilon of redaction is an estimate for two corpora. In this experiment, each of
the two epsilons has its own panel. A third epsilon compares all ways of training: the lower bound
for one text that an audit of one training certifies.
"""

from __future__ import annotations

import math
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ..divergence import renyi
from ..errors import AssumptionWarning, instance, invalid
from ..report.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..streams import threads_of
from ..text import TfidfSVD, Vocabulary, lm, redaction, words_of
from ..text.corpus import all_or_training_texts, fold_case_and_blanks
from ..text.words import Embedding, SanText
from ..training import audit_run
from .base import encode_fields, setting
from .corpora import TextOptions, read_corpus, read_texts
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, empty_figure, style_axes, write_at
from .running import Tabled, cell_seed, format_mean, gather_until_stopped, time_run

NAME = "dpsgd-vs-redaction"

Kind = Literal[
    "plain", "no noise", "DP-SGD", "random", "ranked", "SanText", "plain, public start",
    "DP-SGD, public start", "DP-SGD, searched",
]  # fmt: skip

POLICIES: Final[tuple[Kind, ...]] = ("random", "ranked")
"""Kinds of training in which the texts are redacted first."""

CANARY_WORDS: Final = 10
CORPORA_DELTA: Final = 0.05
"""Delta at which the epsilon between two corpora (texts with one label, and other texts) is
computed."""

_MAX_TRAINING_DELTA: Final = 8e-5
"""Delta in the paper of Gusain and Leith. A large corpus requires a smaller delta."""

_PrepareTexts = Callable[[Sequence[str]], list[str]]

_GENERATED_INTENTS: Final = {False: 4000, True: 500}
"""Number of generated texts, for `quick` False and True."""

_TRAINING_EPSILONS: Final = {False: (1.0, 8.0), True: (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)}
_REDACTION_LEVELS: Final = {False: (0.5, 0.8, 0.9), True: (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)}
_REWRITING_EPSILONS: Final = (10.0, 15.0, 20.0)
"""Values of epsilon for rewriting with SanText."""

_REFERENCE_EPSILON: Final = 8.0
"""Redaction is compared with the DP-SGD training whose epsilon is nearest to this value."""


class Material(NamedTuple):
    """Texts and fitted models for an experiment that compares DP-SGD with redaction of texts.

    Attributes:
        origin: source of the texts.
        train: private training texts. Each training adds canaries (random texts) to these texts.
        valid: validation texts. Trainings without DP-SGD use these texts to choose the best epoch.
        test: test texts, on which the perplexity is computed.
        vocabulary: vocabulary of all models: the words that occur at least twice in `train`.
        label: label of the texts in `sensitive`.
        sensitive: distinct texts of `train` with the label `label`, the first of two corpora that
            are compared.
        rest: equally many texts of `train` with other labels, the second of the two corpora.
        others: texts that are in neither `sensitive` nor `rest`. The text features are fitted on
            these texts.
        ranked: redaction policy that removes words in the order of a ranking. The ranking is fitted
            on validation texts that do not occur in `train`.
        delta: delta for the accountant and the audits.
        public: texts of a corpus other than the private one, for the search of learning rates and
            clip norms.
        vectors: word vectors for rewriting with SanText, or None if texts are not rewritten.
        start: folder of a saved model that was trained on public texts, or None.
    """

    origin: str
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    vocabulary: Vocabulary
    label: str
    sensitive: tuple[str, ...]
    rest: tuple[str, ...]
    others: tuple[str, ...]
    ranked: redaction.Ranked
    delta: float
    public: tuple[str, ...]
    vectors: Embedding | None = None
    start: Path | None = None

    @property
    def share_of_words_with_vector(self) -> float:
        """Share of the words of the training texts for which there is a word vector."""
        embedding = instance("vectors", self.vectors, Embedding)
        return float(np.mean([word in embedding for text in self.train for word in words_of(text)]))


class Recipe(NamedTuple):
    """One way to train a next-word model: plain, by DP-SGD, or on redacted or rewritten texts.

    Attributes:
        kind: type of training, redaction or rewriting. "no noise" is DP-SGD without noise. "DP-SGD,
            searched" is DP-SGD whose learning rate and clip norm were found by a search on public
            texts.
        level: epsilon (for DP-SGD and for rewriting), or share of redacted words. 0 for other
            kinds.
    """

    kind: Kind
    level: float = 0.0

    @property
    def label(self) -> str:
        """Name of the way of training in tables: the kind and the level, such as "DP-SGD 8"."""
        return f"{self.kind} {self.level:g}" if self.level else self.kind

    @property
    def is_private(self) -> bool:
        """True if this way of training is DP-SGD with noise."""
        return self.kind.startswith("DP-SGD")


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Results of one training of a next-word model.

    Args:
        recipe: way of training, such as DP-SGD with an epsilon.
        number: index of this training among repetitions, from 0.
        measured: perplexities of the test texts under the trained model (`value`), under a model of
            word frequencies (`unigram`) and under a uniform distribution on the vocabulary
            (`uniform`).
        auc: area under the ROC curve. It is the probability that a canary (random text) in the
            training texts has a higher score than a canary that was left out.
        certified: certified lower bound on the epsilon of the training for one text, at
            `Material.delta` and 95 % confidence.
        ceiling: largest possible value of `certified`, reached if all guesses of the audit are
            right.
        guaranteed: upper bound on the epsilon of the training for one text, from the accountant.
            None if the training had no noise.
        guaranteed_rdp: the same upper bound, computed from Renyi divergences. None if the training
            had no noise.
        corpora_lower: certified lower bound on the epsilon between two corpora (texts with one
            label, and other texts) after redaction. The three `corpora` fields are None unless the
            kind of `recipe` is "plain", "random" or "ranked".
        corpora_hat: point estimate of the epsilon between the two corpora.
        corpora_rdp: estimate of the same epsilon, converted from Renyi divergences. The value is
            also None if no divergence can be estimated reliably.
        lr: learning rate of a training by DP-SGD with noise, or None.
        clip: clip norm of a training by DP-SGD with noise, or None.
        settings_tried: number of pairs (learning rate, clip norm) tried in the search. 0 if there
            was no search.
        public_read: number of public texts that were read for the search.
        partial: True if Ctrl-C ended the training early.
        seconds: wall-clock seconds of the training. A comparison with == ignores this field.
    """

    recipe: Recipe
    number: int
    measured: lm.Perplexity
    auc: float
    certified: float
    ceiling: float
    guaranteed: float | None = None
    guaranteed_rdp: float | None = None
    corpora_lower: float | None = None
    corpora_hat: float | None = None
    corpora_rdp: float | None = None
    lr: float | None = None
    clip: float | None = None
    settings_tried: int = 0
    public_read: int = 0
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity of the test texts under the trained model."""
        return self.measured.value


def read_texts_and_fit_redaction(config: Any, folder: Path | None = None) -> Material:
    """Read or generate the texts of the experiment, and fit the models that prepare the texts.

    The private texts are from ATIS, or from SNIPS if `config.full` is True. If `config.data` is
    None, the texts are generated.

    Args:
        config: options of the experiment.
        folder: folder in which the function saves a model that was trained on public texts. The
            function saves this model only if a training starts from it.

    Raises:
        FileNotFoundError: if a file of the data is missing.
        ValueError: if a set of texts is too small.
    """
    name = "snips" if config.full else "atis"
    corpus = read_texts(config, name, "intents", _GENERATED_INTENTS[config.quick])
    assert corpus.labels is not None
    train = tuple(corpus.train)[: config.trials]
    labels = dict(zip(map(fold_case_and_blanks, corpus.texts), corpus.labels.tolist(), strict=True))
    texts_by_print = {fold_case_and_blanks(text): text for text in train}
    public = {
        fold_case_and_blanks(text): text
        for text in corpus.valid
        if fold_case_and_blanks(text) not in texts_by_print
    }
    [(label, _)] = Counter(labels[key] for key in texts_by_print).most_common(1)

    def split_by_label(texts: dict[str, str]) -> list[list[str]]:
        return [[texts[key] for key in texts if (labels[key] == label) is x] for x in (True, False)]

    rng = np.random.default_rng(cell_seed(config.seed, "sets"))
    sets = [
        [texts_of_label[row] for row in rng.permutation(len(texts_of_label))]
        for texts_of_label in split_by_label(texts_by_print)
    ]
    size = min(map(len, sets))
    fitting = split_by_label(public)
    if size < 4 or not all(fitting):
        raise invalid("data", f"texts of {label!r} and others in train and in valid", size)
    vocabulary = Vocabulary.from_texts(list(train), unknown="token", min_count=2)
    kinds, vectors = {recipe.kind for recipe in config.recipes}, None
    if "SanText" in kinds:
        vectors = Embedding.load(Path(config.data, "words", "wordvecs1000.js"))
    other_name, rows = "atis" if config.full else "snips", _GENERATED_INTENTS[config.quick]
    other_corpus = read_texts(config, other_name, "topics", rows, "public")
    if folder is not None and "plain, public start" in kinds:
        _train_public_start(config, vocabulary, folder)
    return Material(
        corpus.origin, train, tuple(corpus.valid), tuple(corpus.test), vocabulary, str(label),
        tuple(sets[0][:size]), tuple(sets[1][:size]),
        (*sets[0][size:], *sets[1][size:], *public.values()), redaction.Ranked().fit(*fitting),
        min(_MAX_TRAINING_DELTA, 0.5 / (len(train) + config.canaries)),
        all_or_training_texts(other_corpus), vectors, folder,
    )  # fmt: skip


def _train_public_start(config: Any, vocabulary: Vocabulary, folder: Path) -> None:
    """Train a next-word model on WikiText-2, and save the model in a folder."""
    public = read_corpus(config.data, "wikitext2")
    # Short texts are headings, which are left out.
    long = [[text for text in part if len(text) > 40] for part in (public.test, public.valid)]
    seed = cell_seed(config.seed, "public start")
    options: Any = {**config.size, "device": config.device, "rng": seed, "progress": False}
    lm.fit(*long, vocabulary=vocabulary, **options).save_pretrained(folder)


def train_and_audit_lm(recipe: Recipe, number: int, material: Material, config: Any) -> Cell:
    """Train one next-word model, and measure its perplexity and its leakage of training texts.

    A canary is a random text that is added to the training texts or left out, by a coin flip. From
    the losses of the trained model on the canaries, the function guesses which canaries were
    included. All trainings with the same `number` use the same canaries and coin flips. If `recipe`
    redacts or rewrites texts, the included canaries are also redacted or rewritten. The losses are
    computed for the unchanged canaries.
    """
    begun = time.perf_counter()
    models: list[lm.NextWordModel] = []
    seed = cell_seed(config.seed, f"{recipe.label} {number}")
    coins = cell_seed(config.seed, f"canaries {number}")
    prepare = _redact_or_rewrite_function(recipe, material, seed)
    options = _make_options(recipe, material, config)

    def fit(records: Sequence[str]) -> Callable[[Any], Any]:
        texts, valid = prepare(records), prepare(material.valid)
        models.append(lm.fit(texts, valid, rng=seed, progress=False, **options))
        return models[-1].losses

    canaries = lm.canaries(material.vocabulary, config.canaries, words=CANARY_WORDS, rng=coins)
    # Too few guesses to refute epsilon 8 would cause a warning. The table shows the ceiling
    # instead.
    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        report = audit_run(
            fit, list(material.train), canaries=canaries, guesses=config.canaries // 4,
            delta=material.delta, rng=coins,
        )  # fmt: skip
    # A hundred fair coins do not all show the same side.
    assert report.auc is not None
    assert report.ceiling is not None
    (model,) = models
    perplexity = model.perplexity(material.test, exclude=material.train, rng=coins)
    figures: dict[str, Any] = {"partial": model.partial}
    if recipe.kind in ("plain", *POLICIES):
        figures |= _epsilon_between_sets(prepare, material, seed)
    if recipe.is_private:
        figures |= {"guaranteed": model.epsilon, "guaranteed_rdp": model.epsilon_rdp}
        names = ("lr", "clip", "settings_tried", "public_read")
        figures |= {name: getattr(model, name) for name in names}
    leak = report.auc, report.epsilon_lower, report.ceiling
    return Cell(recipe, number, perplexity, *leak, seconds=time.perf_counter() - begun, **figures)


def _make_options(recipe: Recipe, material: Material, config: Any) -> dict[str, Any]:
    options = {**config.size, "vocabulary": material.vocabulary, "device": config.device}
    if recipe.kind.endswith("public start"):
        options["start"] = lm.NextWordModel.from_pretrained(instance("start", material.start, Path))
    if recipe.kind == "DP-SGD, searched":
        options |= {"rate": "searched", "public": material.public}
    if recipe.is_private or recipe.kind == "no noise":
        epsilon = recipe.level if recipe.is_private else math.inf
        options |= {"dropout": 0.0, "epsilon": epsilon, "delta": material.delta}
    return options


def _redact_or_rewrite_function(recipe: Recipe, material: Material, seed: int) -> _PrepareTexts:
    """Return the function that a recipe applies to texts before training."""
    rng = np.random.default_rng([seed, 1])
    policy = material.ranked if recipe.kind == "ranked" else redaction.Random()

    def redact(texts: Sequence[str]) -> list[str]:
        levels = redaction.policy_mask_levels(policy, texts, rng)
        return redaction.mask_words(texts, levels, recipe.level)

    def rewrite(texts: Sequence[str]) -> list[str]:
        mechanism = SanText(instance("vectors", material.vectors, Embedding), recipe.level)
        # A word without a vector is replaced by any word, so that it reveals nothing.
        return mechanism.rewrite(list(texts), unknown="uniform", rng=rng)

    return redact if recipe.kind in POLICIES else rewrite if recipe.kind == "SanText" else list


def _epsilon_between_sets(prepare: _PrepareTexts, material: Material, seed: int) -> dict[str, Any]:
    """Estimate the epsilon between the two corpora after a preparation such as redaction.

    The text features are fitted on texts that are in neither corpus. The result contains the three
    `corpora` fields of `Cell`.
    """
    others, *sets = (prepare(part) for part in (material.others, material.sensitive, material.rest))
    rows = [np.zeros((len(texts), 1)) for texts in sets]
    # At high levels few rows differ, or no word is left in two texts.
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        with suppress(ValueError):
            encoder = TfidfSVD(50, min_count=2).fit(others, allow_fewer=True)
            rows = [encoder(texts) for texts in sets]
        estimate = renyi(
            *rows, k=min(20, len(rows[0]) // 4), method="score", certified=True,
            rows="independent", rng=seed, threads=1, progress=False,
        )  # fmt: skip
    epsilon = estimate.epsilon(CORPORA_DELTA)
    names = ("lower", "hat", "rdp")
    return {f"corpora_{name}": getattr(epsilon, f"epsilon_{name}") for name in names}


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of an experiment that trains next-word models by DP-SGD or on redacted texts.

    Args:
        trials: largest number of training texts, at least 100.
        seed: int in [0, 2**63). All random numbers, including the noise of DP-SGD, are derived from
            this seed. A person who knows the seed can remove the noise. The models therefore
            protect no text, and are not saved.
        seeds: number of trainings of each kind. Defaults to 2, or to 5 if `full` is True, or to 1
            if `quick` is True.
        data: folder of the corpora. The experiment reads ATIS and SNIPS. If `full` is True, it also
            reads WikiText-2 and word vectors. With None, texts are generated.
        full: True to use SNIPS as private texts, seven values of epsilon, and larger models. If
            `data` is given, some trainings also use rewritten texts, or start from a model trained
            on public texts.
        quick: True for a short test of the experiment.
        device: torch device for training, such as "cpu".

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (2, 5, 1)
        >>> [recipe.label for recipe in Config(quick=True).recipes]
        ['plain', 'no noise', 'DP-SGD 8', 'DP-SGD, searched 8', 'random 0.5', 'random 0.9', \
'ranked 0.5', 'ranked 0.9']
    """

    seeds: int = setting(2, quick=1, full=5)
    device: str = "cpu"

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """All ways of training.

        Texts are rewritten only if the options `full` and `data` are given. The same holds for a
        start from a public model.
        """
        epsilons = (_REFERENCE_EPSILON,) if self.quick else _TRAINING_EPSILONS[self.full]
        levels = (0.5, 0.9) if self.quick else _REDACTION_LEVELS[self.full]
        recipes = [
            Recipe("plain"),
            Recipe("no noise"),
            *(Recipe("DP-SGD", epsilon) for epsilon in epsilons),
        ]
        recipes += [Recipe("DP-SGD, searched", epsilon) for epsilon in epsilons]
        recipes += [Recipe(policy, level) for policy in POLICIES for level in levels]
        if self.full and self.data is not None:
            recipes += [Recipe("SanText", epsilon) for epsilon in _REWRITING_EPSILONS]
            recipes.append(Recipe("plain, public start"))
            recipes.append(Recipe("DP-SGD, public start", _REFERENCE_EPSILON))
        return tuple(recipes)

    @property
    def canaries(self) -> int:
        """Number of canaries of each training.

        A canary is a random text that is added to the training texts or left out, by a coin flip.
        """
        return 100 if self.quick else 1000

    @property
    def size(self) -> dict[str, Any]:
        """Keyword arguments that set the size of all next-word models.

        If `full` is True, the models have the size in Gusain and Leith (2023).
        """
        if self.quick:
            return {"hidden": 16, "epochs": 3}
        return {"hidden": 200, "layers": 2, "dropout": 0.2} if self.full else {"hidden": 64}


@time_run("torch", "opacus", "sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train next-word models in several ways, and measure their perplexity and leakage.

    Args:
        config: options of the experiment.
        threads: number of processes. Defaults to all cores. On the CPU, the number never changes a
            result.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one entry for each repetition of each way of training.

    Raises:
        ModuleNotFoundError: if torch, Opacus or scikit-learn is missing. The message states how to
            install it.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if a set of texts is too small, or torch does not find the device.
        KeyboardInterrupt: if the user presses Ctrl-C before the first training is complete.

    Source:
        Gusain and Leith (2023), supplement, figure 6. Steinke, Nasr and Jagielski (2023).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("opacus") and find_spec("sklearn"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.mean("plain", "perplexity") < result.cells[0].measured.unigram
    """
    processes = threads_of(threads)
    with TemporaryDirectory() as folder:
        material = read_texts_and_fit_redaction(config, Path(folder))
        pairs = product(range(config.seeds), config.recipes)
        jobs = [(recipe, number, material, config) for number, recipe in pairs]
        cells, partial = gather_until_stopped(NAME, train_and_audit_lm, jobs, processes, progress)
    # A training that Ctrl-C ended early does not represent its recipe.
    whole = tuple(cell for cell in cells if not cell.partial)
    if not whole:
        raise KeyboardInterrupt
    return Result(config, material, whole, partial=partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Perplexity and leakage of next-word models, trained by DP-SGD or on redacted texts.

    Args:
        config: options of the run.
        material: the texts. The field is not shown, and a comparison with == ignores this field.
        cells: one entry for each repetition of each way of training.
    """

    material: Material = field(repr=False, compare=False)
    cells: tuple[Cell, ...]

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """Ways of training with at least one complete run, in the order of `Config.recipes`."""
        trained = {cell.recipe.label for cell in self.cells}
        return tuple(recipe for recipe in self.config.recipes if recipe.label in trained)

    def of(self, label: str) -> tuple[Cell, ...]:
        """Return the results of one way of training, named `label`, such as "DP-SGD 8"."""
        return tuple(cell for cell in self.cells if cell.recipe.label == label)

    def mean(self, label: str, name: str) -> float:
        """Return the mean of one result over all trainings in one way, such as DP-SGD.

        `label` is the name of the way of training, such as "DP-SGD 8". `name` is the name of the
        result, a field of `Cell` such as "perplexity". The mean is NaN if the experiment completed
        no training in this way.
        """
        values = [getattr(cell, name) for cell in self.of(label)]
        return statistics.fmean(values) if values else math.nan

    def log_perplexity(self, label: str) -> float:
        """Return the log of the mean perplexity of the trainings in one way, such as "DP-SGD 8"."""
        return math.log(self.mean(label, "perplexity"))

    @property
    def dpsgd_reference(self) -> Recipe | None:
        """DP-SGD training with the epsilon nearest to 8, or None if no training used DP-SGD."""
        private = [recipe for recipe in self.recipes if recipe.kind == "DP-SGD"]
        ratios = (abs(math.log(other.level / _REFERENCE_EPSILON)) for other in private)
        return min(zip(ratios, private, strict=True), default=(None, None))[1]

    @property
    def auc_gap_error(self) -> float:
        """Standard error of the difference between the mean AUCs of two ways of training.

        The formula assumes the same score distribution for included and left-out canaries.
        """
        many, seeds = (
            self.config.canaries,
            min(len(self.of(recipe.label)) for recipe in self.recipes),
        )
        return math.sqrt(2.0 * (many + 1.0) / (3.0 * many**2) / seeds)

    def findings(self) -> list[str]:
        """Return the conclusions from this result, as a list of sentences."""
        sentences = [
            f"Plain training: {self._scores_text('plain')} of at most {self.cells[0].ceiling:.2f}; "
            f"unigram {self.cells[0].measured.unigram:.1f}."
        ]
        if (private := self.dpsgd_reference) is not None:
            sentences += [self._noise_effect_on_canary_auc(private)] if self.of("no noise") else []
            kinds = dict.fromkeys(recipe.kind for recipe in self.recipes)
            twin = Recipe("DP-SGD, searched", private.level)
            for k, reference in product(kinds, (private, twin)):
                if k in (*POLICIES, "SanText") and reference in self.recipes:
                    sentences.append(self._compare_with_dpsgd(k, reference))
            sentences += [self._describe_gain_from_tuning()] if "DP-SGD, searched" in kinds else []
            starts = (each.label for each in self.recipes if each.kind.endswith("public start"))
            sentences += [f"{label}: {self._scores_text(label)}." for label in starts]
            sentences.append(self._check_guarantees())
        return [*sentences, self._describe_loss_between_corpora()]

    def _scores_text(self, label: str) -> str:
        value, auc, certified = (self.mean(label, x) for x in ("perplexity", "auc", "certified"))
        return f"perplexity {value:.1f}, AUC {auc:.2f}, certified {certified:.2f}"

    def _noise_effect_on_canary_auc(self, private: Recipe) -> str:
        difference = self.mean("no noise", "auc") - self.mean(private.label, "auc")
        outcome = "the canaries see the noise"
        if difference <= 2.0 * self.auc_gap_error:
            outcome = (
                "the canaries do not see the noise, so a leak as small as this does not prove it"
            )
        return (
            f"{private.label}: {self._scores_text(private.label)}; the same recipe without noise: "
            f"{self._scores_text('no noise')}. The AUCs differ by {difference:+.3f}, two standard "
            f"errors are {2.0 * self.auc_gap_error:.3f}: {outcome}."
        )

    def _compare_with_dpsgd(self, kind: str, private: Recipe) -> str:
        """Describe in words at which levels a kind of training is better or worse than DP-SGD."""
        groups: dict[str, list[str]] = {}
        limit = self.mean(private.label, "auc") + 2.0 * self.auc_gap_error
        other = self.mean(private.label, "perplexity")
        unigram = self.cells[0].measured.unigram or math.inf
        for recipe in (candidate for candidate in self.recipes if candidate.kind == kind):
            value, auc = (self.mean(recipe.label, name) for name in ("perplexity", "auc"))
            predicts = "better" if value < other else "worse"
            if unigram < value < other:
                predicts = "no better than the unigram"
            shows = "more" if auc > limit else "no more"
            outcome = f"predicts {predicts} and its canaries show {shows}"
            groups.setdefault(outcome, []).append(f"{recipe.level:g} ({value:.1f}, {auc:.2f})")
        parts = "; ".join(
            f"at {', '.join(levels)} it {outcome}" for outcome, levels in groups.items()
        )
        return f"{kind} (perplexity, AUC) against {private.label}: {parts}."

    def _describe_gain_from_tuning(self) -> str:
        """Describe in words whether searched learning rates and clip norms lower the perplexity."""
        cells = [cell for cell in self.cells if cell.recipe.kind == "DP-SGD, searched"]
        levels, parts, n_lower = sorted({cell.recipe.level for cell in cells}), [], 0
        for level in levels:
            labels = f"DP-SGD {level:g}", f"DP-SGD, searched {level:g}"
            values = [self.mean(label, "perplexity") for label in labels]
            n_lower += values[1] < values[0]
            above = [" (above the uniform law)" * (x > cells[0].measured.uniform) for x in values]
            pairs = {f"rate {cell.lr:g} and clip {cell.clip:g}" for cell in self.of(labels[1])}
            parts.append(
                f"at {level:g} {values[1]:.4g}{above[1]} against {values[0]:.4g}{above[0]}, "
                f"with {' or '.join(sorted(pairs))}"
            )
        return (
            f"Rate and clip searched on at most {max(cell.public_read for cell in cells):,} public "
            f"texts and {max(cell.settings_tried for cell in cells)} settings: a lower perplexity "
            f"than with the source's at {n_lower} of {len(levels)} epsilons: {'; '.join(parts)}."
        )

    def _check_guarantees(self) -> str:
        private = [cell for cell in self.cells if cell.guaranteed is not None]
        above = sum(cell.certified > (cell.guaranteed or 0.0) for cell in private)
        return (
            f"{above} of {len(private)} private trainings certify more than their accountant "
            "guarantees. Redaction, rewriting and a training without noise guarantee nothing: "
            "what is certified of them is a lower bound alone."
        )

    def _describe_loss_between_corpora(self) -> str:
        cells = [cell for cell in self.cells if cell.corpora_hat is not None]
        hats = [cell.corpora_hat or 0.0 for cell in cells]
        missing, size = sum(cell.corpora_rdp is None for cell in cells), len(self.material.rest)
        return (
            f"Two corpora, {self.material.label} against the rest, {size:,} a side: estimates from "
            f"{min(hats):.2f} to {max(hats):.2f} at delta {CORPORA_DELTA:g} "
            f"(the sample sees delta from {10.0 / size:.2g} on, not {self.material.delta:.2g}); "
            f"epsilon_rdp is None in {missing} of {len(cells)}. They say nothing about one text."
        )

    def table(self) -> str:
        """Return the results as plain text: one row for each way of training, and conclusions."""
        config, material, first = self.config, self.material, self.cells[0]
        heads = ("recipe", "perplexity", "log", "AUC", "certified", "guaranteed")
        rows = [
            [*heads, "corpora:", "estimate"],
            *(_write_row(self, recipe) for recipe in self.recipes),
        ]
        ends = {"unigram": first.measured.unigram or math.nan, "uniform": first.measured.uniform}
        rows += [[name, f"{x:.1f}", f"{math.log(x):.2f}", *[""] * 5] for name, x in ends.items()]
        foot = (
            "means over trainings (standard deviation). certified: epsilon of one text from below; "
            "guaranteed: by the accountant\ncorpora: epsilon of two corpora at delta "
            f"{CORPORA_DELTA:g}, certified and estimated: not the epsilon of the other columns"
        )
        if material.vectors is not None:
            share = f"{100 * material.share_of_words_with_vector:.0f} %"
            foot += f"\nSanText: {share} of the training words have vectors, others become any word"
        return self.join_parts(
            f"DP-SGD against redaction: {material.origin}{config.origin_note}\n"
            f"{len(material.train):,} training texts, seed {config.seed}, trainings of each "
            f"recipe: {config.seeds}; {first.measured.uniform:,} words that can be predicted, "
            "taken from these texts: no epsilon covers that choice\n"
            f"test: {first.measured.texts:,} texts, {first.measured.left_out} more are training "
            f"texts and left out; {100 * first.measured.unknown:.1f} % of the words unknown\n"
            f"canaries: {config.canaries:,} texts of {CANARY_WORDS} random words, each in by a "
            f"coin; {config.canaries // 4} guesses certify at most {first.ceiling:.2f} at delta "
            f"{material.delta:.3g} and 95 %\n"
            "the seed repeats the noise too: these models protect nobody, and are not kept",
            align_rows(rows),
            foot,
            "\n".join(self.findings()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values, without the texts of the corpora."""
        cells = [
            encode_fields(cell) | {"recipe": cell.recipe.kind, "level": cell.recipe.level or None}
            for cell in self.cells
        ]
        return self.make_record(
            corpus=self.material.origin, training_texts=len(self.material.train),
            delta=self.material.delta, label=self.material.label, a_side=len(self.material.rest),
            canaries=self.config.canaries, findings=self.findings(), cells=cells,
        )  # fmt: skip

    def plot(self, ax: Any = None) -> Figure:
        """Draw the log-perplexity against three epsilons, and against the AUC of the audit.

        The epsilons are the guarantee of DP-SGD, the estimate between two corpora after redaction,
        and the certified lower bound for one text.
        """
        picture, ceiling = empty_figure(5.8, ax), self.cells[0].ceiling
        panels = picture.subplots(2, 2, sharey=True).ravel()
        for axes, panel in zip(panels, _PANEL_FIGURES, strict=True):
            _draw_perplexity_vs_metric(axes, self, *panel)
        levels = sorted({recipe.level for recipe in self.recipes if recipe.is_private}) or [1.0]
        panels[0].set(xscale="log", xlim=(levels[0] / 2.0, levels[-1] * 2.0))
        panels[0].set_xticks(levels, [f"{level:g}" for level in levels])
        panels[0].minorticks_off()
        panels[2].set_xlim(-0.1, 1.15 * ceiling)
        panels[2].axvline(ceiling, color=GREY, linewidth=0.8, linestyle=":")
        text = f"most that {self.config.canaries // 4} guesses certify\n"
        place: Any = {"transform": panels[2].get_xaxis_transform(), "ha": "right", "va": "top"}
        panels[2].text(ceiling, 0.97, text, color=GREY, rotation=90, fontsize=SMALL, **place)
        panels[3].axvline(0.5, color=GREY, linewidth=0.8, linestyle=":")
        for number, axes in enumerate(panels):
            _draw_perplexity_reference_lines(axes, self, named=number % 2 == 1)
            style_axes(axes)
        picture.supylabel("log-perplexity of the test texts (lower predicts better)", fontsize=TEXT)
        made = "generated texts" if self.config.data is None else self.material.origin
        many = self.config.seeds
        runs = f"; means of {many} trainings, small marks: each" if many > 1 else ""
        picture.suptitle(f"Next-word models of {made}{runs}", fontsize=TEXT)
        add_legend(picture, panels[3])
        return restyle_figure(picture)


_RECIPE_STYLES: Final[dict[Kind, tuple[str, str, str]]] = {
    "plain": (INK, "*", "plain"),
    "no noise": (PURPLE, "D", "DP-SGD without its noise"),
    "DP-SGD": (BLUE, "o", "DP-SGD, with its epsilon"),
    "random": (ORANGE, "s", "random words masked"),
    "ranked": (RED, "^", "ranked words masked"),
    "SanText": (GREEN, "v", "SanText, with its epsilon"),
    "plain, public start": (GREY, "*", "plain, public start"),
    "DP-SGD, public start": (GREY, "o", "DP-SGD, public start"),
    "DP-SGD, searched": (BLUE, "P", "DP-SGD, searched on public texts"),
}
"""Colour, marker and legend entry of each kind of recipe."""

_PANEL_FIGURES: Final = (
    ("guaranteed", "", "epsilon of one text, guaranteed by the accountant"),
    ("corpora_lower", "corpora_hat", "epsilon of two corpora, an estimate (delta "
     f"{CORPORA_DELTA:g})\nfilled: certified from below; hollow: point estimate"),
    ("certified", "guaranteed", "epsilon of one text, certified by an audit\n"
     "lines: up to what is guaranteed; others: nothing"),
    ("auc", "", "AUC of the canaries (.5: a coin)"),
)  # fmt: skip
"""For each panel: the field of `Cell` that is drawn, a second field to which a line is drawn (or
""), and the label of the axis."""


def _write_row(result: Result, recipe: Recipe) -> list[str]:
    cells = result.of(recipe.label)

    def show(name: str, digits: int = 2, missing: str = "") -> str:
        values = [value for cell in cells if (value := getattr(cell, name)) is not None]
        return format_mean(values, digits) if values else missing

    return [
        recipe.label, show("perplexity", 1), f"{result.log_perplexity(recipe.label):.2f}",
        show("auc"), show("certified"), show("guaranteed", missing="nothing"),
        show("corpora_lower"), show("corpora_hat"),
    ]  # fmt: skip


def _draw_perplexity_reference_lines(axes: Axes, result: Result, named: bool) -> None:
    first = result.cells[0].measured
    lines = {name: result.log_perplexity(name) for name in ("plain", "no noise")}
    lines |= {"unigram": math.log(first.unigram or math.nan), "uniform": math.log(first.uniform)}
    for name, value in lines.items():
        colour = {"plain": INK, "no noise": PURPLE}.get(name, GREY)
        axes.axhline(value, color=colour, linewidth=0.8, linestyle="--", zorder=1)
        if named and not math.isnan(value):
            style: Any = {"xycoords": axes.get_yaxis_transform(), "annotation_clip": False}
            write_at(axes, name, (1.0, value), (3, 0), va="center", color=colour, **style)


def _draw_perplexity_vs_metric(axes: Axes, result: Result, name: str, end: str, label: str) -> None:
    """Draw the log-perplexity against the field `name`, with lines to the mean of field `end`."""
    axes.set_xlabel(label, fontsize=TEXT)
    places: dict[Kind, list[tuple[float, float]]] = {}
    ends: list[tuple[float, float, float, Kind]] = []
    for recipe in result.recipes:
        cells = [cell for cell in result.of(recipe.label) if getattr(cell, name) is not None]
        if not cells:
            continue
        colour, mark, _ = _RECIPE_STYLES[recipe.kind]
        xs, y = [getattr(cell, name) for cell in cells], result.log_perplexity(recipe.label)
        if len(xs) > 1:
            heights = [math.log(cell.perplexity) for cell in cells]
            axes.plot(xs, heights, mark, color=colour, markersize=2.5, alpha=0.6)
        x = statistics.fmean(xs)
        places.setdefault(recipe.kind, []).append((x, y))
        second = [getattr(cell, end) for cell in cells if end and getattr(cell, end) is not None]
        ends += [(statistics.fmean(second), x, y, recipe.kind)] if second else []
        if recipe.level:
            text = f"{100 * recipe.level:g} %" if recipe.kind in POLICIES else f"{recipe.level:g}"
            # Labels alternate above and below, because neighbouring levels may be at the same
            # point.
            height = 3 if len(places[recipe.kind]) % 2 else -9
            write_at(axes, text, (x, y), (4, height), fontsize=SMALL - 1, color=colour)
    # Infinite values end at the frame.
    right = 1.1 * max((stop for stop, *_ in ends if stop < math.inf), default=1.0)
    for stop, x, y, kind in ends:
        colour, mark, _ = _RECIPE_STYLES[kind]
        axes.plot([x, min(stop, 2.0 * right)], [y, y], color=colour, linewidth=0.8)
        axes.plot([stop], [y], mark, color=colour, markersize=5, markerfacecolor=WHITE)
    if ends:
        axes.set_xlim(-0.03 * right, right)
    for kind, means in places.items():
        colour, mark, text = _RECIPE_STYLES[kind]
        axes.plot(*zip(*means, strict=True), mark, color=colour, markersize=5, label=text)
