"""Prediction of labels and inference of attributes from released vectors, for `frontier`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from .. import errors
from ..mechanisms.texts import as_texts
from ..packages import has_all, require_module
from .corpus import SPLITS, Corpus, fold_case_and_blanks
from .inference import Attacker, Inference, infer
from .inference.attackers import attackers_of
from .inference.likelihood import noise_law_attacker, split_likelihood
from .inference.targets import target_parts

_LABEL_BOOSTING_ROUNDS: Final = 30
"""Number of boosting rounds of the boosted trees that predict the main label."""
_MAIN_LABEL_NAME: Final = "main label"


def read_certificate(attack: Inference) -> float:
    """Return the certified lower bound on epsilon from an attack, or NaN without a bound."""
    audit = attack.certified
    if isinstance(audit, str) or audit.counts is None or audit.doubts:
        return np.nan
    return float(audit.epsilon_lower)


@dataclass(frozen=True)
class Study:
    """Texts and settings of one call of `frontier`, which compares private encoders or rewriters.

    Args:
        corpus: the texts, their main labels and their attributes.
        labelled: copy of `corpus` whose only attribute is the main label.
        attribute: name of the private attribute that attackers infer. None without an
            attribute.
        attackers: attackers that infer the private attribute.
        confidence: confidence level of each interval.
    """

    corpus: Corpus
    labelled: Corpus
    attribute: str | None
    attackers: Any
    confidence: float

    def predict_label(self, rows: Any, seed: int, classifiers: Any = None) -> Inference:
        """Train and test classifiers that predict the main label of texts from released vectors.

        Args:
            rows: released vectors, one row for each text.
            seed: seed of the classifiers.
            classifiers: classifiers to use. None means three scikit-learn classifiers.
        """
        return infer(
            None, self.labelled, _MAIN_LABEL_NAME, vectors=rows,
            attackers=classifiers or _list_classifiers(),
            measure="accuracy", confidence=self.confidence, rng=seed, progress=False,
        )  # fmt: skip

    def infer_attribute(
        self, vectors: Any, delta: float, seed: int, *, private: Any = None, attackers: Any = None
    ) -> Inference:
        """Train and test attackers that infer the private attribute of texts from released vectors.

        The method does not compare the result with a claimed epsilon. If there are few texts, or
        the attribute has many values, no lower bound on epsilon can be certified.

        Args:
            vectors: released vectors, one for each text.
            delta: delta of the certified lower bound on epsilon.
            seed: seed of the attack.
            private: encoder that added the noise to the vectors. With None, the likelihood
                attacker, which must know the noise, is not used.
            attackers: attackers to use in this call. None means the attackers of this study.
        """
        attackers = attackers or self._list_vector_and_likelihood_attackers(vectors, private)
        return infer(
            None, self.corpus, self.attribute, vectors=vectors, attackers=attackers, delta=delta,
            neighbours="any two texts", confidence=self.confidence, rng=seed, progress=False,
        )  # fmt: skip

    def _list_vector_and_likelihood_attackers(self, rows: Any, encoder: Any) -> Any:
        """Return the attackers that receive vectors, with the likelihood attacker if it applies."""
        others, is_requested = split_likelihood(self.attackers)
        if encoder is None or not (is_requested or self.attackers is None):
            return others
        target, parts = target_parts(self.corpus, self.attribute, None)
        texts, places = parts.texts[0], parts.rows[0].tolist()
        likelihood = noise_law_attacker(encoder, texts, places, rows.shape[1], target)
        return (*attackers_of(others, len(texts), target.count), *likelihood)


def _list_classifiers() -> tuple[Attacker, ...]:
    """Return three classifiers of the main label, from which validation chooses one."""
    linear, neighbours, pipeline, scaling, ensemble = (
        require_module(f"sklearn.{name}", "frontier")
        for name in ("linear_model", "neighbors", "pipeline", "preprocessing", "ensemble")
    )
    # Trees may find labels that a linear classifier misses, as in the half-clean rows of DPText.
    rounds = {"max_iter": _LABEL_BOOSTING_ROUNDS, "early_stopping": False}
    trees = ensemble.HistGradientBoostingClassifier(**rounds)
    logistic = scaling.StandardScaler(), linear.LogisticRegression(max_iter=200)
    return (
        Attacker(pipeline.make_pipeline(*logistic), "raw", "logistic regression"),
        Attacker(neighbours.KNeighborsClassifier(15), "raw", "15 neighbours"),
        Attacker(trees, "raw", "boosted trees"),
    )


def read_study(corpus: Any, label: Any, attribute: Any, attackers: Any, level: float) -> Study:
    """Check arguments of `frontier`: a corpus, the names of its label and attribute, and attackers.

    Args:
        corpus: a `Corpus` with training, validation and test texts.
        label: name of the attribute that is the main label. None means the labels of the corpus.
        attribute: name of the private attribute, or None.
        attackers: attackers that infer the private attribute.
        level: confidence level of intervals.

    Returns:
        A `Study` with the checked arguments.
    """
    if not isinstance(corpus, Corpus):
        raise errors.mistyped("corpus", "a dpcore.text.Corpus", corpus)
    if label is not None:
        if errors.instance("label", label, str) not in (corpus.attributes or ()):
            names = ", ".join(map(repr, corpus.attributes or ())) or "none"
            raise errors.invalid("label", f"an attribute of the corpus (it has {names})", label)
        corpus = replace(corpus, labels=corpus.attribute(label))
    if corpus.labels is None:
        raise errors.invalid("corpus", "one with labels, or label= names an attribute", corpus)
    if attribute is not None:
        corpus.attribute(errors.instance("attribute", attribute, str))
        if attribute == label:
            raise errors.invalid("attribute", "another one than label", attribute)
    for name in SPLITS:
        getattr(corpus, name)
    labelled = replace(corpus, labels=None, attributes={_MAIN_LABEL_NAME: corpus.labels})
    if attribute is not None and split_likelihood(attackers) == ([], True):
        need = "others, too: there is no 'likelihood' without noise"
        raise errors.invalid("attackers", need, attackers)
    return Study(corpus, labelled, attribute, attackers, level)


def require_public_texts_not_among(public: Any, texts: Sequence[str]) -> tuple[str, ...]:
    """Check that no public text is in `texts`, and return the public texts.

    If `public` contains vectors, the result is an empty tuple.
    """
    if isinstance(public, (str, bytes)) or not has_all(public, "__len__"):
        raise errors.mistyped("public", "a list of texts, or vectors of shape (n, width)", public)
    if not len(public):
        raise errors.invalid("public", "at least one text or vector", public)
    if isinstance(public, np.ndarray) or not isinstance(next(iter(public)), str):
        return ()
    public_texts, prints = as_texts("public", public), set(map(fold_case_and_blanks, texts))
    if common := sum(fold_case_and_blanks(text) in prints for text in public_texts):
        raise errors.invalid("public", "without texts of the corpus", f"{common:,} of them")
    return public_texts
