"""Mechanisms by whose randomness they have, and an audit of them."""

from __future__ import annotations

import os
import random
import secrets

import numpy as np

import dpcore

AUDITS = int(os.environ.get("DPCORE_AUDITS", "200"))
PAIR = (np.array([0.0]), np.array([1.0]))
MODULE = np.random.default_rng(3)
PYTHON = random.Random(3)


def noise(x, size, rng):
    return x + rng.laplace(size=(size, 1))


def bits(x, size, rng):
    return rng.random(size) < 0.25 + 0.5 * x[0]


def kept(x, size, rng):
    return np.where(rng.random(size) < 0.999, "the", "a")


def constant(x, size, rng):
    return np.zeros((size, 2))


def one_side(x, size, rng):
    return x[0] * rng.random((size, 1))


def globally(x, size, rng):
    return x + np.random.laplace(size=(size, 1))  # noqa: NPY002


def by_python(x, size, rng):
    return np.array([random.random() < 0.25 + 0.5 * x[0] for _ in range(size)])


def by_both(x, size, rng):
    return globally(x, size, rng) + 1e-3 * random.random()


def by_the_system(x, size, rng):
    return x + np.random.default_rng().laplace(size=(size, 1))


def by_secrets(x, size, rng):
    return np.array([secrets.randbelow(4) < 1 + 2 * x[0] for _ in range(size)])


def by_the_module(x, size, rng):
    return x + MODULE.laplace(size=(size, 1))


def by_the_modules_python(x, size, rng):
    return np.array([PYTHON.random() < 0.25 + 0.5 * x[0] for _ in range(size)])


def given(generator, x, size, rng):
    return x + generator.laplace(size=(size, 1))


class Own:
    """Noise, or bits, of a generator of its own; half of it may be the seed's."""

    def __init__(self, rng, share=0.0):
        self.rng, self.share = rng, share

    def __call__(self, x, size, rng):
        if isinstance(self.rng, random.Random):
            return np.array([self.rng.random() < 0.25 + 0.5 * x[0] for _ in range(size)])
        return x + self.rng.laplace(size=(size, 1)) + self.share * rng.normal(size=(size, 1))


class Congruential:
    """A generator that nobody but it knows."""

    def __init__(self):
        self.state = 1

    def __call__(self, x, size, rng):
        found = np.empty((size, 1))
        for i in range(size):
            self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
            found[i] = x[0] + self.state / 2**64
        return found


class Rounded:
    """The seed's noise, summed in an order that changes from call to call."""

    def __init__(self, size=1.0):
        self.calls, self.size = 0, size

    def __call__(self, x, size, rng):
        self.calls += 1
        terms = rng.laplace(size=(size, 16))
        return (terms * (1.0 + self.size * 2.0**-52 * (self.calls % 2))).sum(axis=1)


def above(outputs, outputs_prime, pair):
    return half


def half(outputs):
    return outputs.reshape(len(outputs), -1)[:, 0].astype(float) > 0.5


def never(outputs, outputs_prime, pair):
    return lambda outputs: np.zeros(len(outputs), np.bool_)


def audited(mechanism, **options):
    options = {"trials": 20_000, "attack": above, "claim": 1.0, "rng": 1, **options}
    return dpcore.audit(mechanism, PAIR, **options)
