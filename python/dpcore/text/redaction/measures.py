"""Measurements of one redaction of two sets of texts, for the points of `sweep`."""

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
from ...suggestions import suggest_arguments
from ..corpus import Corpus
from ..inference import Attacker, Inference, infer
from ..inference.attackers import TRANSFORMS, attackers_of, vectors_of
from ..tfidf import TfidfSVD
from .attackers import NGramRegression, TextEstimator
from .masking import MASK, split_words

ORDERS: Final = (1.0, 2.0)
"""Orders of the divergences in each split and for permuted labels: KL and D_2."""

_CURVE_ORDERS: Final = (1.0, 1.1, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0)
"""Orders of the estimate in the first split, which `Estimate.epsilon` converts."""

_DIVERGENCE_NEIGHBOURS: Final = 20
"""Number of neighbours in the divergence estimate; fewer if a set has fewer than 80 rows."""

_VECTOR_DIM: Final = 50
_MIN_TEXTS_PER_WORD: Final = 2
"""Smallest number of texts that contain a word of the vectors or of the features for labels.
Attacks on the set use all words."""

_ATTACKER_INVERSE_PENALTY: Final = 10.0
_SET_ATTRIBUTE: Final = "sensitive"
_MAX_EXPOSED_WORDS: Final = 5
"""Largest number of words that are listed for each exposed document."""


class Parts(NamedTuple):
    """Rows of the texts of one split: for the policy, and to fit, choose and test attackers."""

    policy: Ints
    fit: Ints
    choose: Ints
    test: Ints

    @property
    def others(self) -> Ints:
        """Rows of all parts except the policy's part, part by part."""
        return np.concatenate(self[1:])


@dataclass(frozen=True)
class Study:
    """Settings that are the same at every point of a sweep.

    Args:
        texts: texts of the two sets, the sensitive set first, without repeated texts.
        rows: position of each text in its original set, shape (n,).
        truth: 1 for texts of the sensitive set, 0 for texts of the safe set, shape (n,).
        labels: labels of the texts of the safe set, in their order, or None.
        public: public texts on which features are fitted. None fits features on the texts that fit
            the policies.
        encode: encoder of the user, or None.
        attackers: attackers on vectors of the user, each an estimator, an `Attacker` or "usual".
        text_attackers: attackers on texts of the user.
        confidence: confidence of intervals and certificates.
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
    """Figures of one redaction in one split; `SweepPoint` describes them."""

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
"""Names of the figures."""


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ExposedDocument(Shown):
    """A test document for which the attack infers the correct set.

    Args:
        row: position of the document in its set, as passed to `sweep`.
        is_sensitive: True if the document belongs to the sensitive set.
        score: score of the attacker, higher for the sensitive set.
        words: remaining words that are the strongest evidence for its set, the strongest first.
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
        weights: sparse TF-IDF weights of all words.
        names: the words.
        frequent: weights of the words in two texts or more, for the labels, or None without labels.
        vectors: vectors from the user's encoder, or from `TfidfSVD`.
        counts: number of masks, number of words, and their ratio.
    """

    weights: Any
    names: tuple[str, ...]
    frequent: Any
    vectors: Floats
    counts: Floats


def compute_features(
    study: Study, parts: Parts, redacted: Sequence[str], background: Sequence[str], seed: int
) -> Features:
    """Compute features of all redacted texts; the features are fitted on redacted texts.

    The directions are fitted on the background texts, so that the rows of a divergence estimate are
    independent. The words come from the background texts and from the texts that fit the attackers,
    because the policy has not ranked these texts. The vector is zero for an empty text, and for a
    text without a word that two texts contain.
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
        vectors = vectors_of(study.encode, [list(redacted)], seed)[0]
    counts = np.array([[text.count(MASK), len(split_words(text))] for text in redacted], float)
    share = counts[:, :1] / np.maximum(1.0, counts[:, 1:])
    return Features(weights, names, frequent, vectors, np.hstack([counts, share]))


def _weigh_words(
    known_texts: Sequence[str], texts: Sequence[str], min_count: int
) -> tuple[Any, tuple[str, ...]]:
    """Return TF-IDF weights of words in at least `min_count` known texts, and these words.

    If there are no such words, all weights are 0.
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
    """Classifier that receives row numbers of texts, and uses the sparse weights of their words."""

    model: Any
    weights: Any

    def __deepcopy__(self, memo: Any) -> _SparseWeightClassifier:
        model = require_module("sklearn.base", "infer").clone(self.model)
        return _SparseWeightClassifier(model, self.weights)

    def fit(self, rows: Floats, truth: Any) -> None:
        """Fit the classifier on the texts with these row numbers."""
        self.model.fit(self.weights[rows[:, 0].astype(int)], truth)

    def predict_proba(self, rows: Floats) -> Any:
        """Return the probabilities of the two sets."""
        return self.model.predict_proba(self.weights[rows[:, 0].astype(int)])


def _make_regression() -> Any:
    linear = require_module("sklearn.linear_model", "redaction.sweep")
    return linear.LogisticRegression(C=_ATTACKER_INVERSE_PENALTY, max_iter=300)


def _make_scaled_regression() -> Any:
    pipeline = require_module("sklearn.pipeline", "redaction.sweep")
    scaling = require_module("sklearn.preprocessing", "redaction.sweep")
    return pipeline.make_pipeline(scaling.StandardScaler(), _make_regression())


def _make_trees() -> Any:
    ensemble = require_module("sklearn.ensemble", "redaction.sweep")
    return ensemble.HistGradientBoostingClassifier(max_iter=60, early_stopping=False)


def _make_set_attackers(
    study: Study, features: Features, redacted: Sequence[str], rows: int
) -> list[Attacker]:
    """Return the logistic regressions on texts and on vectors, and the user's attackers."""
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
            _SparseWeightClassifier(_make_regression(), features.weights),
            name="logistic regression on words",
        ),
        *(Attacker(TextEstimator(attacker, redacted), name=name) for attacker, name in readers),
        *(_on_columns(attacker, features.vectors) for attacker in (regression, *on_vectors)),
    ]


def _on_columns(attacker: Attacker, columns: Floats) -> Attacker:
    """Return an attacker that receives row numbers of texts, and reads these columns."""
    change = attacker.transform
    change = TRANSFORMS[change] if isinstance(change, str) else change

    def read(rows: Floats) -> Any:
        return change(columns[rows[:, 0].astype(int)])

    read.__name__ = attacker.behind
    return Attacker(attacker.estimator, read, attacker.classifier)


def infer_set(study: Study, parts: Parts, attackers: Sequence[Attacker], seed: int) -> Inference:
    """Infer the set of the test texts by attackers that receive the row number of each text.

    The corpus contains the original texts, because `infer` leaves out equal texts.
    """
    rows = parts.others
    texts = [study.texts[row] for row in rows.tolist()]
    names = np.repeat(["train", "valid", "test"], [len(part) for part in parts[1:]])
    corpus = Corpus(texts, attributes={_SET_ATTRIBUTE: study.truth[rows]}, split=names.tolist())
    return infer(
        None, corpus, _SET_ATTRIBUTE, vectors=rows[:, np.newaxis].astype(np.float64),
        attackers=attackers, confidence=study.confidence, rng=seed, progress=False,
    )  # fmt: skip


def measure_figures(
    study: Study, parts: Parts, features: Features, redacted: Sequence[str], nulls: int, seed: int
) -> tuple[Figures, Inference]:
    """Measure one redaction in one split: attacks, utility, divergences, and the null distribution.

    Args:
        study: the texts and the settings.
        parts: the parts of this split.
        features: features of all texts.
        redacted: all redacted texts.
        nulls: number of permutations of the labels.
        seed: seed of the folds, permutations and attackers.

    Returns:
        The figures, without the share of masked words, and the inference of the main attack.
    """
    attackers = _make_set_attackers(study, features, redacted, len(parts.fit))
    attack = infer_set(study, parts, attackers, seed)
    trees = _on_columns(Attacker(_make_trees()), features.vectors)
    counting = [
        _on_columns(Attacker(model), features.counts)
        for model in (_make_scaled_regression(), _make_trees())
    ]
    rng = np.random.default_rng([seed, 1])
    null = np.empty((nulls, 2, len(ORDERS)))
    for attacker in null:
        permuted = study.truth.copy()
        permuted[parts.others] = rng.permutation(permuted[parts.others])
        attacker[:] = _estimate_set_divergences(
            parts, features.vectors, permuted, seed, ORDERS
        ).value
    divergences = _estimate_set_divergences(parts, features.vectors, study.truth, seed, ORDERS)
    figures = Figures(
        np.nan, attack.accuracy.value, attack.auc, attack.true_positive_rate(),
        infer_set(study, parts, [trees], seed).accuracy.value,
        infer_set(study, parts, counting, seed).accuracy.value,
        *_measure_utility(study, parts, features.frequent), divergences.value, null,
    )  # fmt: skip
    return figures, attack


def _estimate_set_divergences(
    parts: Parts, vectors: Floats, truth: Ints, seed: int, orders: Sequence[float], **more: Any
) -> Estimate:
    """Estimate the divergences between the two sets, without the policy's part."""
    rows = np.sort(parts.others)
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


def estimate_divergence(study: Study, parts: Parts, vectors: Floats, seed: int) -> Estimate:
    """Estimate the divergences, with error bars, beliefs and certified lower bounds."""
    return _estimate_set_divergences(
        parts, vectors, study.truth, seed, _CURVE_ORDERS, error="jackknife", checks=True,
        certified=True, rows="independent", confidence=study.confidence,
    )  # fmt: skip


def _measure_utility(study: Study, parts: Parts, weights: Any) -> tuple[float, float]:
    """Return the macro-F1 on labels of the safe set, for a prediction and for the majority."""
    if study.labels is None:
        return np.nan, np.nan
    metrics = require_module("sklearn.metrics", "redaction.sweep")
    fit_rows, asked = np.concatenate(parts[:3]), parts.test
    fit_rows, asked = (rows[study.truth[rows] == 0] for rows in (fit_rows, asked))
    labels, truth = (study.labels[rows - int(study.truth.sum())] for rows in (fit_rows, asked))
    values, counts = np.unique(labels, return_counts=True)
    answers = _make_regression().fit(weights[fit_rows], labels).predict(weights[asked])
    floor, own = (
        float(metrics.f1_score(truth, predicted, average="macro", zero_division=0.0))
        for predicted in (np.full(len(asked), values[counts.argmax()]), answers)
    )
    return own, floor


def find_exposed(
    study: Study, parts: Parts, features: Features, redacted: Sequence[str], attack: Inference
) -> tuple[ExposedDocument, ...]:
    """Return the test documents with a correct inference of their set, the surest first.

    The surest document has the most extreme score, measured by the share of texts of the other set
    with such a score. The words have the largest contributions to a logistic regression on words.
    """
    model = _make_regression().fit(features.weights[parts.fit], study.truth[parts.fit])
    rows, scores = parts.others[attack.scored.rows], attack.scored.scores[:, 0]
    is_sensitive = study.truth[rows] == 1
    negative, positive = attack.scored.split_by_truth()
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
