"""Private next-word models keep their epsilon: audits refute no more than the confidence allows."""

from __future__ import annotations

import warnings

from scipy import stats
from shared_extras import needs

from dpcore import AssumptionWarning
from dpcore.text import Vocabulary, generated, lm
from dpcore.training import audit_run

needs("torch", "opacus")

TRAININGS, CLAIM, DELTA = 20, 0.5, 8e-5
CANARIES, GUESSES = 400, 100


def audit(seed, **recipe):
    """Audit one training on generated intents, as small as shows anything."""
    corpus = generated("intents", 300, rng=1)
    vocabulary = Vocabulary.from_texts(corpus, unknown="token")
    texts = list(corpus.train)

    def fit(records):
        return lm.fit(
            records, list(corpus.valid), vocabulary=vocabulary, hidden=16, rng=seed,
            progress=False, **recipe,
        ).losses  # fmt: skip

    canaries = lm.canaries(vocabulary, CANARIES, words=6, rng=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_run(
            fit, texts, canaries=canaries, guesses=GUESSES, claim=CLAIM, delta=DELTA, rng=seed
        )


def test_a_true_claim_is_refuted_no_more_often_than_the_confidence_allows():
    # Fixed seeds. A bound that holds with 95 % refutes more than 4 of 20 with probability .0026.
    recipe = {"epsilon": CLAIM, "delta": DELTA, "batch": 110, "epochs": 2}
    reports = [audit(seed, **recipe) for seed in range(TRAININGS)]
    # So many guesses could refute the claim: this is not a test of too few.
    assert all(report.ceiling > 2.0 for report in reports)
    refuted = sum(report.refuted is True for report in reports)
    limit = int(stats.binom.isf(0.005, TRAININGS, 0.05))
    assert limit == 4
    assert refuted <= limit


def test_a_training_that_remembers_is_refuted_by_the_same_guesses():
    # Negative control: the claim is false for a plain training.
    report = audit(1, optimiser="adam", epochs=40, lr=1e-2)
    assert report.refuted
    assert report.auc > 0.8
