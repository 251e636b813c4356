"""What tests of single attacks share: how many small audits, and what chance allows them."""

from __future__ import annotations

import json
import math
import pickle

import numpy as np
from scipy import stats

import dpcore
from dpcore import Counts, Pair, published
from dpcore.bounds import clopper_pearson
from dpcore.events import Above
from dpcore.report import plain

ALPHA = 1e-4
AUDITS = 200
CONFIDENCE = 0.9
MOST = int(stats.binom.isf(ALPHA, AUDITS, 1 - CONFIDENCE))
"""Bounds above a true loss in 200 audits at 90 % that chance allows, at the significance ALPHA."""

UNIT = Pair(np.zeros(1), np.ones(1))

EVERY_NATIVE = [
    dpcore.Laplace(1.5), dpcore.Gaussian(1.5), dpcore.Exponential(1.5), dpcore.Uniform(-1.5, 0.9),
    dpcore.Identity(), dpcore.RandomBits(),
    *(dpcore.DPTextNoise(1.5, nan) for nan in ("zero", "resample", "keep")),
    *(system(1.0) for system in published.SYSTEMS), published.DPText(1.0, nan="keep"),
]  # fmt: skip
"""Every noise and every published system that the core runs."""


def noisy(x, size, rng):
    """Lose the L1 distance of the inputs, exactly."""
    return x + rng.laplace(size=(size, len(x)))


TRUTH = math.exp(1.0) / (1.0 + math.exp(1.0))


def respond(x, size, rng):
    """Tell a bit, and the truth with probability e / (1 + e): lose exactly 1."""
    return np.abs(x - (rng.random((size, 1)) > TRUTH))


def count_again(report, size):
    """Draw so many outputs from the first on again, and count them."""
    sides = (report.outputs(side, 0, size) for side in ("x", "x_prime"))
    k, k_prime = (int(report.event(outputs).sum()) for outputs in sides)
    return Counts(k, size, k_prime, size)


def rng(seed=1):
    return np.random.default_rng(seed)


def nudged(outputs):
    """The same real numbers: every double moved by a last bit or two, either way."""
    step = np.array([1e-16, -1e-16, 2e-16])
    return outputs * (1.0 + step[np.arange(outputs.size) % 3]).reshape(outputs.shape)


def lattice(x, size, generator, dim=1, scale=0.5):
    """x + a multiple of 0.1, in real numbers the same law for x = 0 and x = 0.3 but for a shift."""
    return np.asarray(x) + np.round(generator.laplace(0.0, scale, (size, dim)), 1)


def is_overclaimed(event, sides, true=0.0):
    """Whether an event counted on these outputs certifies more than the true loss."""
    k, k_prime = (int(event(side).sum()) for side in sides)
    return clopper_pearson(Counts(k, len(sides[0]), k_prime, len(sides[1])), 0.0, CONFIDENCE) > true


def count_overclaims(attack, mechanism, pair=(0.0, 1.0), true=0.0):
    """Count the small audits whose bound is above the true loss."""
    options = {"attack": attack, "trials": 1000, "confidence": CONFIDENCE}
    found = (dpcore.audit(mechanism, pair, rng=seed, **options) for seed in range(AUDITS))
    return sum(audit.epsilon_lower > true for audit in found)


def count_refutations(mechanism, loss, pair=UNIT, audits=AUDITS, **settings):
    """Count the small audits that refute a claim of the exact loss, with the exact bound."""
    options = {"trials": 400, "claim": loss, "confidence": CONFIDENCE, "bound": "exact"} | settings
    return sum(dpcore.audit(mechanism, pair, rng=s, **options).refuted for s in range(audits))


def assert_kept(score):
    """A score is the same after pickling, and so is an event after pickling and in JSON."""
    event = Above(score, 0.25, "below")
    for one in (score, event):
        assert pickle.loads(pickle.dumps(one)) == one
        assert hash(pickle.loads(pickle.dumps(one))) == hash(one)
    text = json.dumps(plain.encode_value(event), allow_nan=False)
    assert plain.decode_value(json.loads(text)) == event
    assert hash(plain.decode_value(json.loads(text))) == hash(event)
