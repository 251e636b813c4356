"""Utility of rewritten texts: intents predicted from them by a linear classifier."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...records import Shown
from ...text.inference.judging import Judge, Measured
from ...text.inference.targets import Target
from ...text.needed import needed
from .corpora import FOLDS, Texts, rejoin_words

__all__ = [
    "Utility",
    "compute_bleu",
    "list_single_intents",
    "majority_share",
    "measure_intent_utility",
]

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
    sacrebleu = needed("sacrebleu", _EXPERIMENT_NAME)
    found = sacrebleu.corpus_bleu(list(texts), [list(originals)], tokenize="none")
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
    selection = needed("sklearn.model_selection", _EXPERIMENT_NAME)
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
    extraction = needed("sklearn.feature_extraction.text", _EXPERIMENT_NAME)
    linear = needed("sklearn.linear_model", _EXPERIMENT_NAME)
    from threadpoolctl import threadpool_limits

    # Words are parted by blanks; the usual pattern would drop those of one letter.
    weights = extraction.TfidfVectorizer(analyzer=str.split)
    with threadpool_limits(1):
        model = linear.LogisticRegression(max_iter=1000).fit(weights.fit_transform(seen), labels)
        return model.predict(weights.transform(asked))
