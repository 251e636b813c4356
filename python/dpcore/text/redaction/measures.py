"""Measurements for `sweep`: attacks, divergences of two sets of redacted texts, and utility."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ...divergence import Estimate, renyi
from ...packages import require_module
from ...records import Floats, Ints, Record, frozen_array
from ...report.shown import Shown
from ...suggestions import explain_argument_errors
from ..corpus import Corpus
from ..inference import Attacker, Inference, infer
from ..inference.attackers import TRANSFORMS, attackers_of, encode_each_part
from ..tfidf import TfidfSVD
from .attackers import NGramRegression, TextEstimator
from .masking import MASK, split_words

ORDERS: Final = (1.0, 2.0)
"""Orders of the Renyi divergences in each split of the texts: KL (order 1) and D_2 (order 2)."""

_CURVE_ORDERS: Final = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
"""Orders of the Renyi divergences in the first split; these divergences are converted to
epsilon."""

_DIVERGENCE_NEIGHBOURS: Final = 20
"""Number of nearest neighbours in a divergence estimate, if both sets have 80 rows or more."""

_VECTOR_DIM: Final = 50
_MIN_TEXTS_PER_WORD: Final = 2
"""Smallest number of texts that must contain a word. Rarer words are not used in vectors or in the
prediction of labels, but the attacks that infer the set of a text use all words."""

_ATTACKER_INVERSE_PENALTY: Final = 10.0
_SET_ATTRIBUTE: Final = "sensitive"
_MAX_EXPOSED_WORDS: Final = 5
"""Largest number of words that are listed for each exposed document."""


class Parts(NamedTuple):
    """Row numbers of the texts in the four parts of one random split of the texts.

    The redaction policy is fitted on the part `policy`, and the attackers are fitted on the part
    `fit`. One attacker is chosen on the part `choose`, and tested on the part `test`.
    """

    policy: Ints
    fit: Ints
    choose: Ints
    test: Ints

    @property
    def non_policy_rows(self) -> Ints:
        """Row numbers of all texts in the split, without the texts on which the policy is fitted.

        The texts for fitting the attackers come first, then the texts for choosing an attacker,
        then the test texts.
        """
        return np.concatenate(self[1:])


@dataclass(frozen=True)
class Study:
    """Texts and settings that a sweep (a comparison of redaction policies) uses for all policies.

    Args:
        texts: texts of the sensitive set, then texts of the safe set, without repeated texts. Their
            number is n.
        rows: position of each text in the list that the user passed for its set, shape (n,).
        truth: 1 for texts of the sensitive set, 0 for texts of the safe set, shape (n,).
        labels: label of each text of the safe set. To measure utility, a classifier predicts these
            labels. None if the user gave no labels.
        public: public texts on which the TF-IDF weights and vectors are fitted. None means the
            texts on which the policies are fitted.
        encode: the user's function from texts to vectors, or None if the user gave no function.
        attackers: attackers that the user gave and that receive vectors. Each is a scikit-learn
            classifier, an `Attacker`, or "usual" (the default attackers of `infer`).
        text_attackers: attackers that the user gave and that receive texts.
        confidence: confidence level of each interval and of each certified lower bound.
    """

    texts: tuple[str, ...]
    rows: Ints
    truth: Ints
    labels: npt.NDArray[Any] | None
    public: tuple[str, ...] | None
    encode: Callable[..., Any] | None
    attackers: tuple[Any, ...]
    text_attackers: tuple[Any, ...]
    confidence: float


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Figures(Record, word="Figures"):
    """Measurements of a policy at one level (share of masked words) in one split of the texts.

    The documentation of `SweepPoint` describes each measurement.
    """

    masked: float
    accuracy: float
    auc: float
    true_positive_rate: float
    boosted_trees: float
    counts_only: float
    utility: float
    utility_floor: float
    divergence: Floats
    null: Floats

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for name in ("divergence", "null"):
            object.__setattr__(self, name, frozen_array(getattr(self, name)))


FIGURES: Final = tuple(field.name for field in fields(Figures))
"""Names of the measurements in `Figures`."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class ExposedDocument(Shown):
    """A redacted test document whose set (sensitive or safe) an attack infers correctly.

    Args:
        row: position of the document, counted from 0, in the list of sensitive texts or of safe
            texts that was passed to `sweep`.
        is_sensitive: True if the document belongs to the sensitive set, False for the safe set.
        score: number that the attacker gives to the document. A higher score means that the
            attacker considers the sensitive set more likely.
        words: words of the redacted text that a classifier uses as the strongest evidence for the
            set of the document. The word with the strongest evidence is first.
        redacted: redacted text that the attacker received.
    """

    row: int
    is_sensitive: bool
    score: float
    words: tuple[str, ...]
    redacted: str


class Features(NamedTuple):
    """Features of redacted texts, with one row for each text.

    Attributes:
        weights: sparse TF-IDF weights, with one column for each word.
        names: the words, one for each column of `weights`.
        frequent: sparse TF-IDF weights, only of words that two texts or more contain. A classifier
            predicts the labels of the texts from these weights. None if the user gave no labels.
        vectors: one vector for each text, from the user's encoder or from `TfidfSVD`.
        counts: three columns: number of mask tokens in the text, number of words in the text, and
            the first number divided by the second.
    """

    weights: Any
    names: tuple[str, ...]
    frequent: Any
    vectors: Floats
    counts: Floats


def redacted_text_features(
    study: Study, parts: Parts, redacted: Sequence[str], background: Sequence[str], seed: int
) -> Features:
    """Compute the TF-IDF weights, vectors and counts of words of all redacted texts.

    If the user passed an encoder, the encoder computes the vectors. Otherwise `TfidfSVD` computes
    the vectors. `TfidfSVD` is fitted only on the `background` texts. Divergences are estimated only
    from texts that are not background texts. A vector is zero if each word of the text occurs in
    fewer than two background texts. The TF-IDF weights are fitted on the background texts and on
    the redacted texts on which the attackers are fitted.
    """
    # A full stop replaces an empty text, because `TfidfSVD` does not accept empty texts.
    filled, background = ([text or "." for text in texts] for texts in (redacted, background))
    known_texts = [*background, *(filled[row] for row in parts.fit)]
    weights, names = _weigh_words(known_texts, filled, 1)
    frequent = None
    if study.labels is not None:
        frequent, _ = _weigh_words(known_texts, filled, _MIN_TEXTS_PER_WORD)
    vectors = np.zeros((len(filled), 1))
    # If no remaining word is in two texts, all documents have the same vector.
    with suppress(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        encoder = TfidfSVD(_VECTOR_DIM, min_count=_MIN_TEXTS_PER_WORD)
        vectors = encoder.fit(background, allow_fewer=True)(filled)
    if study.encode is not None:
        vectors = encode_each_part(study.encode, [list(redacted)], seed)[0]
    counts = np.array([[text.count(MASK), len(split_words(text))] for text in redacted], float)
    share = counts[:, :1] / np.maximum(1.0, counts[:, 1:])
    return Features(weights, names, frequent, vectors, np.hstack([counts, share]))


def _weigh_words(
    known_texts: Sequence[str], texts: Sequence[str], min_count: int
) -> tuple[Any, tuple[str, ...]]:
    """Return the TF-IDF weights of texts, and the words of the columns.

    A column exists for each word that at least `min_count` of the known texts contain. If such
    words do not exist, all weights are 0.
    """
    extraction = require_module("sklearn.feature_extraction.text", "redaction.sweep")
    words = extraction.TfidfVectorizer(sublinear_tf=True, min_df=min_count)
    try:
        weights = words.fit(known_texts).transform(texts)
    except ValueError:
        sparse = require_module("scipy.sparse", "redaction.sweep")
        return sparse.csr_matrix((len(texts), 1)), ("",)
    return weights, tuple(words.get_feature_names_out())


@dataclass(frozen=True)
class _SparseWeightClassifier:
    """Classifier that receives row numbers of texts, and uses the TF-IDF weights of these texts."""

    model: Any
    weights: Any

    def __deepcopy__(self, memo: Any) -> _SparseWeightClassifier:
        model = require_module("sklearn.base", "infer").clone(self.model)
        return _SparseWeightClassifier(model, self.weights)

    def fit(self, row_numbers: Floats, truth: Any) -> None:
        """Fit the classifier on the texts with these row numbers."""
        self.model.fit(self.weights[row_numbers[:, 0].astype(int)], truth)

    def predict_proba(self, rows: Floats) -> Any:
        """Return the probabilities of the safe set and of the sensitive set for each text."""
        return self.model.predict_proba(self.weights[rows[:, 0].astype(int)])


def _make_logistic_regression() -> Any:
    linear = require_module("sklearn.linear_model", "redaction.sweep")
    return linear.LogisticRegression(C=_ATTACKER_INVERSE_PENALTY, max_iter=300)


def _make_scaled_regression() -> Any:
    pipeline = require_module("sklearn.pipeline", "redaction.sweep")
    scaling = require_module("sklearn.preprocessing", "redaction.sweep")
    return pipeline.make_pipeline(scaling.StandardScaler(), _make_logistic_regression())


def _make_trees() -> Any:
    ensemble = require_module("sklearn.ensemble", "redaction.sweep")
    return ensemble.HistGradientBoostingClassifier(max_iter=60, early_stopping=False)


def _sensitive_or_safe_text_attackers(
    study: Study, features: Features, redacted: Sequence[str], rows: int
) -> list[Attacker]:
    """Return attackers that infer the set of a text: three defaults, and those of the user."""
    regression = Attacker(_make_scaled_regression(), name="logistic regression on vectors")
    readers = [(NGramRegression(), "logistic regression on n-grams and masks")]
    readers += [(attacker, type(attacker).__name__) for attacker in study.text_attackers]
    on_vectors = [
        attacker
        for entry in study.attackers
        for attacker in attackers_of(None if isinstance(entry, str) else entry, rows)
    ]
    return [
        Attacker(
            _SparseWeightClassifier(_make_logistic_regression(), features.weights),
            name="logistic regression on words",
        ),
        *(Attacker(TextEstimator(attacker, redacted), name=name) for attacker, name in readers),
        *(_attacker_by_index(attacker, features.vectors) for attacker in (regression, *on_vectors)),
    ]


def _attacker_by_index(attacker: Attacker, columns: Floats) -> Attacker:
    """Return an attacker that receives row numbers of texts, and uses these rows of `columns`."""
    change = attacker.transform
    change = TRANSFORMS[change] if isinstance(change, str) else change

    def read(rows: Floats) -> Any:
        return change(columns[rows[:, 0].astype(int)])

    read.__name__ = attacker.behind
    return Attacker(attacker.estimator, read, attacker.classifier)


def infer_set(study: Study, parts: Parts, attackers: Sequence[Attacker], seed: int) -> Inference:
    """Let attackers infer whether each test text is sensitive or safe, and report their success.

    Each attacker receives the row numbers of texts. From a row number, the attacker looks up the
    redacted text or the features of the redacted text.
    """
    rows = parts.non_policy_rows
    texts = [study.texts[row] for row in rows.tolist()]
    names = np.repeat(["train", "valid", "test"], [len(part) for part in parts[1:]])
    corpus = Corpus(texts, attributes={_SET_ATTRIBUTE: study.truth[rows]}, split=names.tolist())
    return infer(
        None, corpus, _SET_ATTRIBUTE, vectors=rows[:, np.newaxis].astype(np.float64),
        attackers=attackers, confidence=study.confidence, rng=seed, progress=False,
    )  # fmt: skip


def measure_attacks_and_utility(
    study: Study, parts: Parts, features: Features, redacted: Sequence[str], nulls: int, seed: int
) -> tuple[Figures, Inference]:
    """Measure attacks, utility and divergences for redacted texts, in one split of the texts.

    The split divides the texts into four parts. The divergences are between the redacted texts of
    the sensitive set and of the safe set.

    Args:
        study: original texts and settings.
        parts: row numbers of the texts in the four parts of this split.
        features: features of all redacted texts.
        redacted: all redacted texts.
        nulls: number of random assignments of the texts to the two sets. For each assignment, the
            divergences are estimated again. These estimates show how large an estimate can be if
            the two sets do not differ.
        seed: seed of the cross-fitting folds, permutations and attackers.

    Returns:
        A pair: the measurements, and the report of the main attack. In the measurements, the share
        of masked words is NaN, because this function cannot compute it.
    """
    attackers = _sensitive_or_safe_text_attackers(study, features, redacted, len(parts.fit))
    attack = infer_set(study, parts, attackers, seed)
    trees = _attacker_by_index(Attacker(_make_trees()), features.vectors)
    counting = [
        _attacker_by_index(Attacker(model), features.counts)
        for model in (_make_scaled_regression(), _make_trees())
    ]
    rng = np.random.default_rng([seed, 1])
    null = np.empty((nulls, 2, len(ORDERS)))
    for attacker in null:
        permuted = study.truth.copy()
        permuted[parts.non_policy_rows] = rng.permutation(permuted[parts.non_policy_rows])
        attacker[:] = _estimate_held_out_divergences(
            parts, features.vectors, permuted, seed, ORDERS
        ).value
    divergences = _estimate_held_out_divergences(parts, features.vectors, study.truth, seed, ORDERS)
    figures = Figures(
        np.nan, attack.accuracy.value, attack.auc, attack.true_positive_rate(),
        infer_set(study, parts, [trees], seed).accuracy.value,
        infer_set(study, parts, counting, seed).accuracy.value,
        *_label_macro_f1_and_floor_f1(study, parts, features.frequent), divergences.value, null,
    )  # fmt: skip
    return figures, attack


def _estimate_held_out_divergences(
    parts: Parts, vectors: Floats, truth: Ints, seed: int, orders: Sequence[float], **more: Any
) -> Estimate:
    """Estimate divergences between the two sets, without the texts for fitting the policy."""
    rows = np.sort(parts.non_policy_rows)
    sensitive, safe = (vectors[rows][truth[rows] == side] for side in (1, 0))
    k = min(_DIVERGENCE_NEIGHBOURS, min(len(sensitive), len(safe)) // 4)
    with warnings.catch_warnings():
        # At high levels few rows differ; `Estimate.notes` reports this.
        warnings.simplefilter("ignore", UserWarning)
        return renyi(
            sensitive, safe, alphas=[order for order in orders if order <= k + 1], k=k,
            method="score", rng=seed, progress=False,
            **({"error": None, "checks": False} | more),
        )  # fmt: skip


def sensitive_safe_divergence(study: Study, parts: Parts, vectors: Floats, seed: int) -> Estimate:
    """Estimate Renyi divergences between the vectors of sensitive and of safe texts.

    The estimates have error bars, certified lower bounds, and a rating of their reliability. The
    estimates use only the vectors of texts on which the policy was not fitted.
    """
    return _estimate_held_out_divergences(
        parts, vectors, study.truth, seed, _CURVE_ORDERS, error="jackknife", checks=True,
        certified=True, rows="independent", confidence=study.confidence,
    )  # fmt: skip


def _label_macro_f1_and_floor_f1(study: Study, parts: Parts, weights: Any) -> tuple[float, float]:
    """Return two macro-F1 values: of predicted labels, and of always the most frequent label."""
    if study.labels is None:
        return np.nan, np.nan
    metrics = require_module("sklearn.metrics", "redaction.sweep")
    fit_rows, asked = np.concatenate(parts[:3]), parts.test
    fit_rows, asked = (rows[study.truth[rows] == 0] for rows in (fit_rows, asked))
    labels, truth = (study.labels[rows - int(study.truth.sum())] for rows in (fit_rows, asked))
    values, counts = np.unique(labels, return_counts=True)
    answers = _make_logistic_regression().fit(weights[fit_rows], labels).predict(weights[asked])
    floor, own = (
        float(metrics.f1_score(truth, predicted, average="macro", zero_division=0.0))
        for predicted in (np.full(len(asked), values[counts.argmax()]), answers)
    )
    return own, floor


def correct_set_inferences(
    study: Study, parts: Parts, features: Features, redacted: Sequence[str], attack: Inference
) -> tuple[ExposedDocument, ...]:
    """Return the test documents whose set (sensitive or safe) the attack infers correctly.

    The document with the most certain inference comes first. For a sensitive document, the function
    computes the share of safe test texts whose score is at least the score of the document. For a
    safe document, the function computes the share of sensitive test texts whose score is at most
    the score of the document. The inference with the smallest share is the most certain one. A
    logistic regression on words also infers the set of each text. For each document, the result
    lists the words that contribute most to the correct answer of this regression.
    """
    model = _make_logistic_regression().fit(features.weights[parts.fit], study.truth[parts.fit])
    rows, scores = parts.non_policy_rows[attack.scored.rows], attack.scored.scores[:, 0]
    is_sensitive = study.truth[rows] == 1
    negative, positive = attack.scored.sorted_negative_and_positive_scores()
    above = 1.0 - np.searchsorted(negative, scores) / len(negative)
    below = np.searchsorted(positive, scores, side="right") / len(positive)
    errors = np.where(is_sensitive, above, below)
    assert attack.threshold is not None
    right = (scores >= attack.threshold) == is_sensitive
    exposed = []
    for i in [i for i in np.argsort(errors, kind="stable").tolist() if right[i]]:
        row = int(rows[i])
        weights = features.weights[row]
        parts_of_score = weights.data * model.coef_[0][weights.indices]
        parts_of_score *= 1.0 if is_sensitive[i] else -1.0
        strongest = np.argsort(-parts_of_score, kind="stable")[:_MAX_EXPOSED_WORDS]
        words = [weights.indices[j] for j in strongest if parts_of_score[j] > 0.0]
        exposed.append(
            ExposedDocument(
                int(study.rows[row]), bool(is_sensitive[i]), float(scores[i]),
                tuple(str(features.names[word]) for word in words), redacted[row],
            )
        )  # fmt: skip
    return tuple(exposed)
