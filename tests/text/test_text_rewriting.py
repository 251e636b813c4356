"""Rewriters of texts as mechanisms."""

import math

import numpy as np

import dpcore
from dpcore.text import Rewriter

PAIR = ("a good film", "a bad film")


def randomised(texts, rng):
    """Every word kept with probability 3/4, or one of four: a loss of ln 13 a word."""
    words = ("a", "good", "bad", "film")
    return [
        " ".join(
            word if rng.random() < 0.75 else words[int(rng.integers(4))] for word in text.split()
        )
        for text in texts
    ]


def test_a_rewriter_keeps_its_loss_and_half_of_it_is_refuted():
    loss = math.log((0.75 + 0.0625) / 0.0625)
    report = dpcore.audit(Rewriter(randomised, claim=loss), PAIR, trials=20_000, rng=2)
    assert report.refuted is False
    assert 0.9 * loss < report.epsilon_lower <= loss
    assert report.randomness == "seed"
    assert dpcore.audit(Rewriter(randomised), PAIR, claim=loss / 2, trials=20_000, rng=2).refuted


def test_one_with_its_own_randomness_is_audited_too():
    own = np.random.default_rng(5)
    rewriter = Rewriter(lambda texts: randomised(texts, own))
    report = dpcore.audit(rewriter, PAIR, claim=1.0, trials=20_000, rng=2)
    assert (report.refuted, report.randomness) == (True, "own")
