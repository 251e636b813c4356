"""The recipes that train a next-word model, each audited with the canaries among its texts."""

from __future__ import annotations

import math
import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np

from ...divergence import renyi
from ...errors import AssumptionWarning, instance, invalid
from ...records import Shown
from ...text import TfidfSVD, Vocabulary, lm, redaction, words_of
from ...text.splitting import likeness
from ...text.words import Embedding, SanText
from ...training import audit_run
from ..corpora import read_corpus
from ..running import cell_seed
from ..two_sets import read_texts

__all__ = [
    "CANARY_WORDS", "CORPORA_DELTA", "POLICIES", "Cell", "Kind", "Material", "Recipe",
    "measure_recipe", "read_material",
]  # fmt: skip

Kind = Literal[
    "plain", "no noise", "DP-SGD", "random", "ranked", "SanText", "plain, public start",
    "DP-SGD, public start",
]  # fmt: skip

POLICIES: Final[tuple[Kind, ...]] = ("random", "ranked")
"""Recipes that redact."""

CANARY_WORDS: Final = 10
CORPORA_DELTA: Final = 0.05
"""delta of the two corpora's epsilon."""

_MAX_TRAINING_DELTA: Final = 8e-5
"""delta of the source; a large corpus has a smaller one."""

_PrepareTexts = Callable[[Sequence[str]], list[str]]

_GENERATED_INTENTS: Final = {False: 4000, True: 500}
"""Texts that are generated without and with `quick`."""


class Material(NamedTuple):
    """The texts of the experiment.

    Attributes:
        origin: where it is from.
        train: private texts, to which the canaries are added.
        valid: texts that choose the epoch of plain trainings.
        test: texts that are predicted.
        vocabulary: of all models: words that occur twice in `train`.
        label: of the sensitive set of the corpora's epsilon.
        sensitive: texts of `train` with this label, none twice.
        rest: as many texts of `train` with other labels.
        others: texts in neither set, for the features.
        ranked: fitted on validation texts that do not occur in `train`.
        delta: of the accountant and of the audits.
        vectors: of the rewriting; None where it is not used.
        start: folder for a model that was trained on public texts, or None.
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
    vectors: Embedding | None = None
    start: Path | None = None

    @property
    def coverage(self) -> float:
        """Share of the training words that have vectors."""
        known = instance("vectors", self.vectors, Embedding)
        return float(np.mean([word in known for one in self.train for word in words_of(one)]))


class Recipe(NamedTuple):
    """One way to train.

    Attributes:
        kind: what is done: to train ("no noise" is DP-SGD without it), to redact, or to rewrite.
        level: epsilon of DP-SGD or of the rewriting, share of masked words; 0 for other kinds.
    """

    kind: Kind
    level: float = 0.0

    @property
    def label(self) -> str:
        """Kind and level."""
        return f"{self.kind} {self.level:g}" if self.level else self.kind

    @property
    def is_private(self) -> bool:
        """True for DP-SGD with noise."""
        return self.kind.startswith("DP-SGD")


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One training with its canaries.

    Args:
        recipe: how it was trained.
        number: which repetition.
        measured: perplexity of the test texts, that of the frequencies of the training texts
            ("unigram"), and the number of words ("uniform").
        auc: probability that an included canary scores higher than another.
        certified: lower bound on epsilon of one text, at delta and 95 %.
        ceiling: the most that the guesses can certify.
        guaranteed: epsilon that the accountant reports for the steps made; None without noise.
        guaranteed_rdp: the same by Renyi divergences.
        corpora_lower: certified epsilon of the two corpora, redacted alike; None for recipes that
            neither redact nor are plain. So also the following two.
        corpora_hat: the point estimate of the same epsilon.
        corpora_rdp: its conversion of a Renyi curve; None where no order is resolved.
        partial: True if Ctrl-C ended the training early.
        seconds: time taken (not compared).
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
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def perplexity(self) -> float:
        """Perplexity of the test texts."""
        return self.measured.value


def read_material(config: Any, folder: Path | None = None) -> Material:
    """Read the texts: ATIS, SNIPS with `full`, generated intents without `data`.

    Args:
        config: the options.
        folder: where a model of public texts is written, if a recipe starts from one.

    Raises:
        FileNotFoundError: if the folder has no such file.
        ValueError: if a set has too few texts.
    """
    corpus = read_texts(
        config, "snips" if config.full else "atis", "intents", _GENERATED_INTENTS[config.quick]
    )
    assert corpus.labels is not None
    train = tuple(corpus.train)[: config.trials]
    labels = dict(zip(map(likeness, corpus.texts), corpus.labels.tolist(), strict=True))
    known = {likeness(text): text for text in train}
    public = {likeness(text): text for text in corpus.valid if likeness(text) not in known}
    [(label, _)] = Counter(labels[key] for key in known).most_common(1)

    def split_by_label(texts: dict[str, str]) -> list[list[str]]:
        return [[texts[key] for key in texts if (labels[key] == label) is x] for x in (True, False)]

    rng = np.random.default_rng(cell_seed(config.seed, "sets"))
    sets = [[one[row] for row in rng.permutation(len(one))] for one in split_by_label(known)]
    size = min(map(len, sets))
    fitting = split_by_label(public)
    if size < 4 or not all(fitting):
        raise invalid("data", f"texts of {label!r} and others in train and in valid", size)
    vocabulary = Vocabulary.from_texts(list(train), unknown="token", min_count=2)
    kinds, vectors = {recipe.kind for recipe in config.recipes}, None
    if "SanText" in kinds:
        vectors = Embedding.load(Path(config.data, "words", "wordvecs1000.js"))
    if folder is not None and "plain, public start" in kinds:
        _train_start(config, vocabulary, folder)
    return Material(
        corpus.origin, train, tuple(corpus.valid), tuple(corpus.test), vocabulary, str(label),
        tuple(sets[0][:size]), tuple(sets[1][:size]),
        (*sets[0][size:], *sets[1][size:], *public.values()), redaction.Ranked().fit(*fitting),
        min(_MAX_TRAINING_DELTA, 0.5 / (len(train) + config.canaries)), vectors, folder,
    )  # fmt: skip


def _train_start(config: Any, vocabulary: Vocabulary, folder: Path) -> None:
    """Train a model on WikiText-2 and save it."""
    public = read_corpus(config.data, "wikitext2")
    # Without headings.
    long = [[text for text in part if len(text) > 40] for part in (public.test, public.valid)]
    seed = cell_seed(config.seed, "public start")
    model = lm.fit(*long, vocabulary=vocabulary, rng=seed, progress=False, **config.size)
    model.save_pretrained(folder)


def measure_recipe(recipe: Recipe, number: int, material: Material, config: Any) -> Cell:
    """Train with canaries, predict the test texts, and guess which canaries were in.

    Canaries and their coins are the same for all recipes of one repetition. A recipe that redacts
    or rewrites does so to canaries too; their score is the loss of the clean text.
    """
    begun = time.perf_counter()
    models: list[lm.NextWordModel] = []
    seed = cell_seed(config.seed, f"{recipe.label} {number}")
    coins = cell_seed(config.seed, f"canaries {number}")
    prepare = _make_preparation(recipe, material, seed)
    options = _make_options(recipe, material, config)

    def fit(records: Sequence[str]) -> Callable[[Any], Any]:
        texts, valid = prepare(records), prepare(material.valid)
        models.append(lm.fit(texts, valid, rng=seed, progress=False, **options))
        return models[-1].losses

    canaries = lm.canaries(material.vocabulary, config.canaries, words=CANARY_WORDS, rng=coins)
    with warnings.catch_warnings():
        # Of guesses that are too few to refute epsilon 8, which the table says with its ceiling.
        warnings.simplefilter("ignore", AssumptionWarning)
        report = audit_run(
            fit, list(material.train), canaries=canaries, guesses=config.canaries // 4,
            delta=material.delta, rng=coins,
        )  # fmt: skip
    # A hundred fair coins do not all fall on one side.
    assert report.auc is not None
    assert report.ceiling is not None
    (model,) = models
    found = model.perplexity(material.test, exclude=material.train, rng=coins)
    figures: dict[str, Any] = {"partial": model.partial}
    if recipe.kind in ("plain", *POLICIES):
        figures |= _estimate_corpora(prepare, material, seed)
    if recipe.is_private:
        figures |= {"guaranteed": model.epsilon, "guaranteed_rdp": model.epsilon_rdp}
    leak = report.auc, report.epsilon_lower, report.ceiling
    return Cell(recipe, number, found, *leak, seconds=time.perf_counter() - begun, **figures)


def _make_options(recipe: Recipe, material: Material, config: Any) -> dict[str, Any]:
    options = {**config.size, "vocabulary": material.vocabulary}
    if recipe.kind.endswith("public start"):
        options["start"] = lm.NextWordModel.from_pretrained(instance("start", material.start, Path))
    if recipe.is_private or recipe.kind == "no noise":
        epsilon = recipe.level if recipe.is_private else math.inf
        options |= {"dropout": 0.0, "epsilon": epsilon, "delta": material.delta}
    return options


def _make_preparation(recipe: Recipe, material: Material, seed: int) -> _PrepareTexts:
    """Return what a recipe does to texts before it trains."""
    rng = np.random.default_rng([seed, 1])
    policy = material.ranked if recipe.kind == "ranked" else redaction.Random()

    def redact(texts: Sequence[str]) -> list[str]:
        levels = redaction.policy_levels(policy, texts, rng)
        return redaction.mask_words(texts, levels, recipe.level)

    def rewrite(texts: Sequence[str]) -> list[str]:
        mechanism = SanText(instance("vectors", material.vectors, Embedding), recipe.level)
        # A word without a vector becomes any word, so that it shows nothing.
        return mechanism.rewrite(list(texts), unknown="uniform", rng=rng)

    return redact if recipe.kind in POLICIES else rewrite if recipe.kind == "SanText" else list


def _estimate_corpora(
    prepare: _PrepareTexts, material: Material, seed: int
) -> dict[str, float | None]:
    """Return figures of `Cell` on the two redacted corpora, on features of texts of neither."""
    others, *sets = (prepare(part) for part in (material.others, material.sensitive, material.rest))
    rows = [np.zeros((len(one), 1)) for one in sets]
    with warnings.catch_warnings():
        # At high levels few rows differ, or no word is left in two texts.
        warnings.simplefilter("ignore", UserWarning)
        with suppress(ValueError):
            encoder = TfidfSVD(50, min_count=2).fit(others, allow_fewer=True)
            rows = [encoder(one) for one in sets]
        found = renyi(
            *rows, k=min(20, len(rows[0]) // 4), method="score", certified=True,
            rows="independent", rng=seed, threads=1, progress=False,
        )  # fmt: skip
    epsilon = found.epsilon(CORPORA_DELTA)
    names = ("lower", "hat", "rdp")
    return {f"corpora_{name}": getattr(epsilon, f"epsilon_{name}") for name in names}
