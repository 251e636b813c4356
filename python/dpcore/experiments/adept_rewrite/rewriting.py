"""Training of an auto-encoder on public texts, its rewrites of others, and their utility.

Utility is measured by a linear classifier that predicts intents from rewritten texts.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ...errors import invalid
from ...packages import require_module
from ...records import Shown
from ...text import Corpus, generated, words_of
from ...text.inference.metrics import Judge, Measured
from ...text.inference.targets import Target
from ..corpora import read_corpus
from ..running import audit_cell, cell_seed

MADE_UP: Final = "generated"
"""Name of the corpus that is made up where there is no data."""
FOLDS: Final = 5
"""Parts of the rewritten texts, each told by a classifier that has seen the others."""
EPOCHS: Final = {"atis": (40, 1), "snips": (7, 2), MADE_UP: (20, 1)}
"""Passes over the train file, fixed beforehand, and how often a word must occur there."""
_GENERATED_TEXTS: Final = 2000
_QUICK_SIZES: Final = (480, 120, 10)
"""Texts to train on, texts to rewrite and passes of a run that shows no more than that it works."""


@dataclass(frozen=True, slots=True, repr=False)
class Texts(Shown):
    """A corpus, as the experiment takes it.

    Args:
        name: "atis", "snips" or "generated".
        origin: where it is from.
        train: public texts: the auto-encoder is fitted to them.
        held: texts to rewrite, none of which occurs in `train`.
        labels: their intents.
        dropped: texts left out because they occur in `train`.
        epochs: passes over `train`.
        min_count: how often a word must occur in `train`.
    """

    name: str
    origin: str
    train: tuple[str, ...]
    held: tuple[str, ...]
    labels: tuple[str, ...]
    dropped: int
    epochs: int
    min_count: int


def rejoin_words(text: str) -> str:
    """Join the words of a text by blanks, which is the best that the auto-encoder can write."""
    return " ".join(words_of(text))


def read_corpora(config: Any) -> tuple[Texts, ...]:
    """Read or generate the corpora of a run.

    Args:
        config: has `data`, `full` and `quick`.

    Raises:
        FileNotFoundError: if a file is missing; it says which, and where it is from.
        ValueError: if too few texts are left to rewrite.
    """
    data, quick = config.data, config.quick
    if data is None:
        rows = sum(_QUICK_SIZES[:2]) if quick else _GENERATED_TEXTS
        return (_split_corpus(MADE_UP, generated("intents", rows, rng=1), quick),)
    names: tuple[Literal["atis", "snips"], ...] = ("atis", "snips") if config.full else ("atis",)
    return tuple(_split_corpus(name, read_corpus(data, name), quick) for name in names)


def _split_corpus(name: str, corpus: Corpus, quick: bool) -> Texts:
    known = {rejoin_words(text) for text in corpus.train}
    held, dropped = [], 0
    for part in (corpus.valid, corpus.test):
        assert part.labels is not None
        rows = list(zip(part.texts, map(str, part.labels.tolist()), strict=True))
        new = [row for row in rows if rejoin_words(row[0]) not in known]
        held += new
        dropped += len(rows) - len(new)
    train, (epochs, few) = tuple(corpus.train), EPOCHS[name]
    if quick:
        train, held, epochs = train[: _QUICK_SIZES[0]], held[: _QUICK_SIZES[1]], _QUICK_SIZES[2]
    if len({rejoin_words(text) for text, _ in held}) < FOLDS:
        requirement = f"a corpus with {FOLDS} texts at least that the train file does not hold"
        raise invalid("data", requirement, name)
    texts, labels = zip(*held, strict=True)
    return Texts(name, corpus.origin, train, texts, labels, dropped, epochs, few)


_EXPERIMENT_NAME = "adept-rewrite"


@dataclass(frozen=True, slots=True, repr=False)
class Utility(Shown):
    """Accuracy and macro-F1 of the predicted intents.

    Args:
        accuracy: share of the texts with a correctly predicted intent.
        f1: macro-F1 of the intents with two different texts at least.
    """

    accuracy: Measured
    f1: Measured


def compute_bleu(texts: Sequence[str], originals: Sequence[str]) -> float:
    """Compute BLEU of texts against the words of their originals, in [0, 1].

    sacrebleu computes it, without a tokeniser.
    """
    sacrebleu = require_module("sacrebleu", _EXPERIMENT_NAME)
    words = list(map(rejoin_words, originals))
    found = sacrebleu.corpus_bleu(list(texts), [words], tokenize="none")
    return float(found.score) / 100.0


def list_single_intents(texts: Texts) -> tuple[str, ...]:
    """List the intents with one text, which no classifier can learn without that text."""
    kinds = set(zip(map(rejoin_words, texts.held), texts.labels, strict=True))
    counts = Counter(label for _, label in kinds)
    return tuple(sorted(label for label, times in counts.items() if times < 2))


def majority_share(texts: Texts) -> float:
    """Return the share of the most frequent intent."""
    return max(Counter(texts.labels).values()) / len(texts.labels)


def measure_intent_utility(
    rewritten: Sequence[str], texts: Texts, confidence: float, seed: int
) -> Utility:
    """Measure how well intents are predicted from rewritten texts, after training on such texts.

    TF-IDF and logistic regression in five folds; rewrites of equal texts are in one fold.

    Args:
        rewritten: one for each of the held-out texts.
        texts: these, with their intents.
        confidence: of each interval alone.
        seed: of the bootstrap.
    """
    alone = list_single_intents(texts)
    names = [name for name in sorted(set(texts.labels)) if name not in alone]
    # The codes behind those of macro-F1 are never a group of their own.
    codes = {name: code for code, name in enumerate((*names, *alone))}
    labels = np.array([codes[label] for label in texts.labels])
    answers = _predict_in_folds(rewritten, labels, list(map(rejoin_words, texts.held)))
    target = Target(("intent",), (tuple(range(len(names))),))
    judge = Judge(labels[:, np.newaxis], target, "f1", confidence, seed)
    return Utility(judge.accuracy(answers[:, np.newaxis]), judge.f1(answers[:, np.newaxis]))


def _predict_in_folds(rewritten: Sequence[str], labels: Any, originals: Sequence[str]) -> Any:
    selection = require_module("sklearn.model_selection", _EXPERIMENT_NAME)
    folds = selection.GroupKFold(FOLDS).split(labels, groups=originals)
    answers = np.empty_like(labels)
    for seen, asked in folds:
        there = [rewritten[row] for row in seen]
        answers[asked] = _fit_and_predict(there, labels[seen], [rewritten[row] for row in asked])
    return answers


def _fit_and_predict(seen: list[str], labels: Any, asked: list[str]) -> Any:
    kinds, counts = np.unique(labels, return_counts=True)
    if len(kinds) == 1 or not any(text.split() for text in seen):
        return np.full(len(asked), kinds[counts.argmax()])
    extraction = require_module("sklearn.feature_extraction.text", _EXPERIMENT_NAME)
    linear = require_module("sklearn.linear_model", _EXPERIMENT_NAME)
    from threadpoolctl import threadpool_limits

    # Words are parted by blanks; the usual pattern would drop those of one letter.
    weights = extraction.TfidfVectorizer(analyzer=str.split)
    with threadpool_limits(1):
        model = linear.LogisticRegression(max_iter=1000).fit(weights.fit_transform(seen), labels)
        return model.predict(weights.transform(asked))


DELTA: Final = 1e-5
"""The delta of the Gaussian claim."""
_MAX_TRAINING_REWRITES: Final = 1000
"""Training texts that are rewritten, at most."""


@dataclass(frozen=True, slots=True, repr=False)
class Setup(Shown):
    """One auto-encoder to train.

    Args:
        corpus: name of its corpus.
        clip: the norm of the clip: "l1" or "l2".
        hidden: entries of a state; vectors have twice as many.
        number: 0 for the first seed, and so on.
    """

    corpus: str
    clip: str
    hidden: int
    number: int

    @property
    def key(self) -> str:
        """Key from which the seed is derived."""
        return f"train/{self.corpus}/{self.clip}/{self.hidden}/{self.number}"


def clip_of(variant: str) -> str:
    """Return the norm in which a variant clips."""
    return "l1" if variant == "l1" else "l2"


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """A trained auto-encoder, without noise.

    Args:
        setup: which one.
        model: the auto-encoder; None in a result.
        pair: the two texts to rewrite that are farthest apart.
        trained: how it was trained.
        bleu: of the texts to rewrite, without noise.
        memorised: BLEU of training texts, without noise.
        plain: utility of the texts decoded without noise.
        examples: rewrites without noise of the first texts.
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
    """The rewrites of one trained auto-encoder under one noise.

    Args:
        seed: repeats its noise.
        true: the epsilon that holds for any two texts.
        exact: the exact loss of the largest pair, computed from the declared noise.
        on_vector: what an audit of the vectors certifies on that pair.
        on_text: what an audit of the rewritten texts certifies on it.
        event: the event of the latter, in words.
        refuted: which of the two audits refuted the claim.
        bleu: of the rewrites.
        unchanged: share of the texts that were rewritten to themselves.
        told: utility of the rewrites.
        memorised: BLEU of rewritten training texts: these are no private texts.
        examples: rewrites of the first texts.
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
    """A variant at a claim: one cell for each seed.

    Args:
        corpus: name of the corpus.
        hidden: entries of a state.
        variant: of the noise.
        claimed: the epsilon claimed.
        cells: one for each seed.
    """

    corpus: str
    hidden: int
    variant: str
    claimed: float
    cells: tuple[Cell, ...]

    @property
    def true(self) -> float:
        """The epsilon that holds for any two texts."""
        return self.cells[0].true

    @property
    def accuracy(self) -> Measured:
        """Share of texts with a correctly predicted intent; of several seeds mean and spread."""
        return _join_seeds([cell.told.accuracy for cell in self.cells])

    @property
    def f1(self) -> Measured:
        """Macro-F1 of the intents; of several seeds mean and spread."""
        return _join_seeds([cell.told.f1 for cell in self.cells])

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the seeds."""
        return statistics.fmean(getattr(cell, name) for cell in self.cells)

    @property
    def refuted(self) -> bool:
        """True if an audit refuted the claim."""
        return any(any(cell.refuted) for cell in self.cells)


def _join_seeds(values: Sequence[Measured]) -> Measured:
    if len(values) == 1:
        return values[0]
    each = [one.value for one in values]
    mean, wide = statistics.fmean(each), statistics.stdev(each)
    return Measured(mean, mean - wide, mean + wide, f"mean and spread of {len(each)} seeds")


def train_encoder(setup: Setup, texts: Texts, config: Any) -> Fitted:
    """Train an auto-encoder without noise, and decode texts without noise.

    Args:
        setup: which one.
        texts: its corpus.
        config: has `seed`, `confidence`, `device` and `examples`.
    """
    from ...text import ADePTModel

    variant: Any = "l1" if setup.clip == "l1" else "scaled"
    sizes = {"hidden": setup.hidden, "embedding": max(1, setup.hidden // 2)}
    model = ADePTModel(1.0, variant=variant, min_count=texts.min_count, **sizes)
    seed = cell_seed(config.seed, setup.key)
    model.fit(
        list(texts.train), epochs=texts.epochs, pair=False, rng=seed, device=config.device,
        progress=False,
    )  # fmt: skip
    pair = model.worst_pair(texts.held, progress=False)
    found = model.decode(model.clean(texts.held))
    public = _choose_public(texts)
    bleu = compute_bleu(found, texts.held)
    memorised = compute_bleu(model.decode(model.clean(public)), public)
    utility = measure_intent_utility(found, texts, config.confidence, seed)
    examples, both = tuple(found[: config.examples]), (pair.x, pair.x_prime)
    return Fitted(setup, model, both, model.trained, bleu, memorised, utility, examples)


def _choose_public(texts: Texts) -> list[str]:
    """Choose training texts at equal distances in their file, which may be sorted."""
    step = math.ceil(len(texts.train) / _MAX_TRAINING_REWRITES)
    return list(texts.train[::step])


def rewrite_and_audit(
    fitted: Fitted, texts: Texts, variant: str, claimed: float, config: Any
) -> Cell:
    """Rewrite the held-out texts and audit vectors and rewrites on the largest pair.

    Args:
        fitted: the auto-encoder.
        texts: its corpus.
        variant: of the noise.
        claimed: the epsilon claimed.
        config: has `trials`, `text_trials`, `seed`, `confidence` and `examples`.
    """
    setup = fitted.setup
    delta = DELTA if variant == "gaussian" else 0.0
    model = fitted.model.renoised(claimed, variant=variant, delta=delta)
    place = f"{setup.corpus}/{setup.hidden}/{setup.number}/{variant}/{claimed!r}"
    seed = cell_seed(config.seed, place)
    originals, public = list(map(rejoin_words, texts.held)), _choose_public(texts)
    found = model.rewrite(texts.held, rng=seed)
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
        bleu=compute_bleu(found, texts.held),
        unchanged=sum(map(str.__eq__, found, originals)) / len(found),
        told=measure_intent_utility(found, texts, config.confidence, seed),
        memorised=compute_bleu(model.rewrite(public, rng=cell_seed(seed, "public")), public),
        examples=tuple(found[: config.examples]),
        partial=on_vector.partial or on_text.partial,
    )
