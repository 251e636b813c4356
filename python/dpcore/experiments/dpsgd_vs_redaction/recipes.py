"""The recipes that train a next-word model, each audited with the canaries among its texts."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ...divergence import Epsilon, renyi
from ...errors import AssumptionWarning, invalid
from ...records import Shown
from ...text import TfidfSVD, Vocabulary, generated, lm, read, redaction, word_vectors, words_of
from ...text.leakage import Embedding
from ...text.splitting import likeness
from ...text.words import SanText
from ...training import audit_run
from ..running import cell_seed

__all__ = [
    "CORPORA_DELTA", "NO_NOISE", "PLAIN", "POLICIES", "PRIVATE", "PUBLIC", "REWRITING", "START",
    "Cell", "Material", "Recipe", "measure_recipe", "pretrain_public", "read_material",
]  # fmt: skip

PLAIN: Final = "plain"
NO_NOISE: Final = "no noise"
PRIVATE: Final = "DP-SGD"
POLICIES: Final = {"random": redaction.Random(), "ranked": redaction.Ranked()}
REWRITING: Final = "SanText"
START: Final = "plain, public start"
PUBLIC: Final = "DP-SGD, public start"

CORPORA_DELTA: Final = 0.05
"""delta of the two corpora's epsilon."""

_MAX_DELTA: Final = 8e-5
"""delta of the source; a large corpus has a smaller one."""

_ORDERS: Final = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
_DIM: Final = 50
_NEIGHBOURS: Final = 20
_ROWS: Final = {False: 4000, True: 700}
"""Texts that are generated without and with `quick`."""

_MIN_WORDS: Final = 5
"""Words of a public text; headings have fewer."""


class Material(NamedTuple):
    """The texts of the experiment.

    Attributes:
        name: of the corpus.
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
        vectors: file of word vectors, or None.
        start: folder of a model that was trained on public texts, or None.
    """

    name: str
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
    vectors: Path | None = None
    start: Path | None = None


class Recipe(NamedTuple):
    """One way to train.

    Attributes:
        kind: "plain", "no noise", "DP-SGD", the name of a policy, or another constant.
        level: epsilon of DP-SGD, share of masked words, epsilon of the rewriting, or NaN.
    """

    kind: str
    level: float = math.nan

    @property
    def label(self) -> str:
        """Kind and level."""
        return self.kind if math.isnan(self.level) else f"{self.kind} {self.level:g}"

    @property
    def is_private(self) -> bool:
        """True for DP-SGD with noise."""
        return self.kind in (PRIVATE, PUBLIC)


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One training with its canaries.

    Args:
        recipe: how it was trained.
        number: which repetition.
        perplexity: of the test texts.
        interval: its limits by resampling of texts, 95 %.
        unigram: perplexity of the frequencies of the training texts.
        uniform: number of words.
        unknown: share of the test words that the vocabulary lacks.
        left_out: test texts that were left out because they are training texts.
        auc: probability that an included canary scores higher than another.
        certified: lower bound on epsilon of one text, at delta and 95 %.
        ceiling: the most that the guesses can certify.
        guaranteed: epsilon that the accountant reports for the steps made; None without noise.
        guaranteed_rdp: the same by Renyi divergences.
        corpora: of the two redacted corpora, or None.
        coverage: share of the training words that the rewriting has vectors for, or None.
        partial: True if Ctrl-C ended the training early.
        seconds: time taken (not compared).
    """

    recipe: Recipe
    number: int
    perplexity: float
    interval: tuple[float, float]
    unigram: float
    uniform: int
    unknown: float
    left_out: int
    auc: float
    certified: float
    ceiling: float
    guaranteed: float | None
    guaranteed_rdp: float | None
    corpora: Epsilon | None
    coverage: float | None
    partial: bool
    seconds: float = field(default=0.0, compare=False)

    @property
    def log_perplexity(self) -> float:
        """Mean loss of a word in nats."""
        return math.log(self.perplexity)


def read_material(config: Any) -> Material:
    """Read the texts: ATIS, SNIPS with `full`, generated intents without `data`.

    Args:
        config: the options.

    Raises:
        FileNotFoundError: if the folder has no such file.
        ValueError: if a set has too few texts.
    """
    if config.data is None:
        rows, seed = _ROWS[config.quick], cell_seed(config.seed, "corpus")
        name, corpus = "generated intents", generated("intents", rows, rng=seed)
    else:
        name = "snips" if config.full else "atis"
        corpus = read(config.data, name)
    train = tuple(corpus.train)[: config.trials]
    assert corpus.labels is not None
    labels = dict(zip(map(likeness, corpus.texts), corpus.labels.tolist(), strict=True))
    known = {likeness(text): text for text in train}
    counts = [labels[key] for key in known]
    label = max(dict.fromkeys(counts), key=counts.count)
    rng = np.random.default_rng(cell_seed(config.seed, "sets"))
    sets = [
        [known[key] for key in known if (labels[key] == label) is side] for side in (True, False)
    ]
    size = min(map(len, sets))
    chosen = [[one[row] for row in rng.permutation(len(one))] for one in sets]
    public = {likeness(text): text for text in corpus.valid if likeness(text) not in known}
    fitting = [
        [public[key] for key in public if (labels[key] == label) is side] for side in (True, False)
    ]
    if size < 4 or not all(fitting):
        raise invalid(
            "data", f"a corpus with texts of {label!r} and others in train and valid", size
        )
    vectors = None if config.data is None else Path(config.data, "words", "wordvecs1000.js")
    return Material(
        name, corpus.origin, train, tuple(corpus.valid), tuple(corpus.test),
        Vocabulary.from_texts(list(train), unknown="token", min_count=2), str(label),
        tuple(chosen[0][:size]), tuple(chosen[1][:size]),
        (*chosen[0][size:], *chosen[1][size:], *public.values()),
        POLICIES["ranked"].fit(*fitting),
        min(_MAX_DELTA, 0.5 / (len(train) + config.canaries)), vectors,
    )  # fmt: skip


def pretrain_public(config: Any, material: Material, folder: Path) -> Material:
    """Train a model on WikiText-2 and return the material with its folder."""
    public = read(config.data, "wikitext2")
    parts = [
        [text for text in part if len(text.split()) >= _MIN_WORDS]
        for part in (public.test, public.valid)
    ]
    model = lm.fit(
        *parts, vocabulary=material.vocabulary, rng=cell_seed(config.seed, "public start"),
        progress=False, **config.size,
    )  # fmt: skip
    model.save_pretrained(folder)
    return material._replace(start=folder)


def measure_recipe(recipe: Recipe, number: int, material: Material, config: Any) -> Cell:
    """Train with canaries, predict the test texts, and guess which canaries were in.

    Canaries and their coins are the same for all recipes of one repetition. A recipe that redacts
    or rewrites does so to canaries too; their score is the loss of the clean text.
    """
    begun = time.perf_counter()
    models: list[lm.NextWordModel] = []
    seed = cell_seed(config.seed, f"{recipe.label} {number}")
    coins = cell_seed(config.seed, f"canaries {number}")
    prepare, coverage = _make_preparation(recipe, material, seed)
    options = _make_options(recipe, material, config)

    def fit(records: Sequence[str]) -> Callable[[Any], Any]:
        model = lm.fit(
            prepare(records), prepare(material.valid), vocabulary=material.vocabulary,
            rng=seed, progress=False, **options,
        )  # fmt: skip
        models.append(model)
        return model.losses

    canaries = lm.canaries(material.vocabulary, config.canaries, words=config.words, rng=coins)
    with warnings.catch_warnings():
        # Of guesses that are too few to refute epsilon 8, which the table says with its ceiling.
        warnings.simplefilter("ignore", AssumptionWarning)
        report = audit_run(
            fit, list(material.train), canaries=canaries, guesses=config.guesses,
            delta=material.delta, rng=coins,
        )  # fmt: skip
    (model,) = models
    found = model.perplexity(material.test, exclude=material.train, rng=seed)
    corpora = None
    if recipe.kind == PLAIN or recipe.kind in POLICIES:
        corpora = _estimate_corpora(prepare, material, seed)
    return Cell(
        recipe, number, found.value, (found.low, found.high), found.unigram, found.uniform,
        found.unknown, found.left_out, report.auc, report.epsilon_lower, report.ceiling,
        model.epsilon if recipe.is_private else None,
        model.epsilon_rdp if recipe.is_private else None,
        corpora, coverage, model.partial, time.perf_counter() - begun,
    )  # fmt: skip


def _make_options(recipe: Recipe, material: Material, config: Any) -> dict[str, Any]:
    options = dict(config.size)
    if recipe.kind in (PUBLIC, START):
        options["start"] = lm.NextWordModel.from_pretrained(material.start)
    if recipe.is_private or recipe.kind == NO_NOISE:
        epsilon = recipe.level if recipe.is_private else math.inf
        # DP-SGD has no dropout.
        options |= {"dropout": 0.0, "epsilon": epsilon, "delta": material.delta}
    return options


def _make_preparation(
    recipe: Recipe, material: Material, seed: int
) -> tuple[Callable[[Sequence[str]], list[str]], float | None]:
    """Return what a recipe does to texts before it trains, and the coverage of a rewriting."""
    rng = np.random.default_rng([seed, 1])
    if recipe.kind in POLICIES:
        policy = material.ranked if recipe.kind == "ranked" else POLICIES[recipe.kind]

        def redact(texts: Sequence[str]) -> list[str]:
            levels = redaction.policy_levels(policy, list(texts), rng)
            return redaction.mask_words(texts, levels, recipe.level)

        return redact, None
    if recipe.kind != REWRITING:
        return list, None
    assert material.vectors is not None
    vectors = word_vectors(material.vectors)
    mechanism = SanText(Embedding(tuple(vectors), list(vectors.values())), recipe.level)
    known = [word in vectors for text in material.train for word in words_of(text)]

    def rewrite(texts: Sequence[str]) -> list[str]:
        # A word without a vector becomes any word, so that it shows nothing.
        return mechanism.rewrite(list(texts), unknown="uniform", rng=rng)

    return rewrite, float(np.mean(known))


def _estimate_corpora(
    prepare: Callable[[Sequence[str]], list[str]], material: Material, seed: int
) -> Epsilon:
    """Estimate epsilon of the two redacted corpora, on features of texts of neither."""
    others, *sets = (prepare(part) for part in (material.others, material.sensitive, material.rest))
    rows = [np.zeros((len(one), 1)) for one in sets]
    # Where no word is left in two texts, all texts have the same features.
    with suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encoder = TfidfSVD(_DIM, min_count=2).fit(others, allow_fewer=True)
        rows = [encoder(one) for one in sets]
    k = min(_NEIGHBOURS, len(rows[0]) // 4)
    with warnings.catch_warnings():
        # At high levels few rows differ.
        warnings.simplefilter("ignore", UserWarning)
        found = renyi(
            *rows, alphas=[order for order in _ORDERS if order <= k + 1], k=k, method="score",
            certified=True, rows="independent", rng=seed, progress=False, threads=1,
        )  # fmt: skip
    return found.epsilon(CORPORA_DELTA)
