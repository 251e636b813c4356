"""How often an inference is wrong: false alarms, intervals that miss, bounds above the truth.

A file of its own, without optional packages: beside torch these audits take ten times as long.
"""

import math

import numpy as np
import pytest
from scipy.stats import binomtest
from shared_inference import Centroids, Sign, corpus, looked_up

from dpcore.bounds import limits
from dpcore.text.inference import Attacker, infer

RUNS = 200
SIZES = (100, 200, 500)
SIGNIFICANCE = 1e-3
"""Of every test here: a correct attack fails one of them once in a thousand changes of seeds."""


def within(times, runs=RUNS, rate=0.05):
    """True unless so many are too many for events of at most this rate."""
    return binomtest(int(times), runs, rate, alternative="greater").pvalue > SIGNIFICANCE


def permuted(seed):
    """Texts, vectors of 16 coordinates, and an attribute that has nothing to do with them."""
    rng = np.random.default_rng(seed)
    rows = sum(SIZES)
    return rng.normal(size=(rows, 16)), rng.permutation(np.repeat([0, 1], rows // 2))


def best_on_test(vectors, secret):
    """The classic error: of 8 attackers the best on test, with its own interval."""
    train, test = slice(SIZES[0]), slice(-SIZES[2], None)
    right = []
    for column in range(8):
        attacker = Centroids(2 * column, 2 * column + 1).fit(vectors[train], secret[train])
        right.append(int((attacker.predict(vectors[test]) == secret[test]).sum()))
    return limits(max(right), SIZES[2], 0.025)[0] > 0.5


@pytest.mark.sweep
def test_a_permuted_attribute_alarms_as_rarely_as_it_says_and_the_best_on_test_does_not():
    alarms = dict.fromkeys(["accuracy", "above floor", "certified", "best on test"], 0)
    for seed in range(RUNS):
        vectors, secret = permuted(seed)
        attackers = [Attacker(Centroids(2 * k, 2 * k + 1), name=f"{k}") for k in range(8)]
        told = {"attackers": attackers, "neighbours": "any two texts", "rng": seed}
        texts = corpus(SIZES, {"secret": secret})
        found = infer(looked_up(vectors), texts, "secret", **told)
        alarms["accuracy"] += not found.accuracy.low <= 0.5 <= found.accuracy.high
        alarms["above floor"] += found.above_floor
        alarms["certified"] += found.certified.epsilon_lower > 0.0
        alarms["best on test"] += best_on_test(vectors, secret)
    assert within(alarms["accuracy"]), alarms
    assert within(alarms["above floor"], rate=0.025), alarms
    assert within(alarms["certified"]), alarms
    assert not within(alarms["best on test"]), alarms


@pytest.mark.sweep
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_intervals_hold_the_truth_and_bounds_stay_below_it(epsilon):
    # Randomised response: an answer is true with e^epsilon / (1 + e^epsilon), so that the accuracy
    # of him who believes it is known, and so is epsilon, between any two texts.
    truthful = math.exp(epsilon) / (1.0 + math.exp(epsilon))
    missed = over = weak = 0
    runs = 100
    for seed in range(runs):
        secret = np.random.default_rng(seed).integers(0, 2, 900)
        found = corpus((20, 80, 800), {"secret": secret})

        def encode(texts, rng, secret=secret):
            bits = secret[[int(text[1:]) for text in texts]]
            return np.where(rng.random(len(texts)) < truthful, bits, 1 - bits)[:, np.newaxis]

        result = infer(
            encode, found, "secret", attackers=Attacker(Sign()), neighbours="any two texts",
            claim=epsilon, rng=seed,
        )  # fmt: skip
        if result.threshold in (-math.inf, math.inf):
            # Eighty texts do not always show that the answers mean anything.
            weak += 1
            continue
        missed += not result.accuracy.low <= truthful <= result.accuracy.high
        over += result.certified.refuted
    assert within(missed, runs - weak)
    assert within(over, runs - weak, 0.05)
    assert weak < runs // 4
