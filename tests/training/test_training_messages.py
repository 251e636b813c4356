"""Messages of wrong calls of `dpcore.training`: the argument, and a word of the remedy."""

from __future__ import annotations

import warnings

import numpy as np
from shared_messages import check_messages

import dpcore
from dpcore import training

CANARIES = np.eye(300)

RECORDS = np.zeros((50, 300))


def audit(fit, **options):
    options = {"canaries": CANARIES, "guesses": 60, "delta": 1e-5, "rng": 1} | options
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.AssumptionWarning)
        return training.audit_run(fit, RECORDS, **options)


VALUE_ERRORS = [
    # The audit of one run: coins, guesses, what is said before the training, and comparisons.
    (lambda: audit(lambda records: lambda asked: np.full(300, np.nan)), "losses", "numbers that"),
    (lambda: audit(lambda records: lambda asked: np.zeros(300)), "losses", "different for some"),
    (lambda: audit(lambda records: lambda asked: np.zeros(299)), "losses", "one for each canary"),
    # Processes for many trainings: one thread each, prepared once, the same counts.
    (lambda: training.make_pool(0), "processes", "an integer at least 1"),
]  # fmt: skip
TYPE_ERRORS = [
    # The audit of one run: coins, guesses, what is said before the training, and comparisons.
    (lambda: audit(lambda records: lambda asked: ["a"] * 300), "losses", "one number for each"),
    (lambda: audit(lambda records: None), "fit(records)", "a function"),
    # Processes for many trainings: one thread each, prepared once, the same counts.
    (lambda: training.make_pool(1, 3), "prepare", "a function without arguments or None"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
