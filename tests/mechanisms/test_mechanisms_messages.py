"""Messages of wrong calls of `dpcore.mechanisms`: the argument, and a word of the remedy."""

from __future__ import annotations

import math
import sys
from functools import partial

import numpy as np
from shared_messages import check_messages

import dpcore
from dpcore import mechanisms
from dpcore.mechanisms.callables import repeat
from dpcore.published import (
    ADePT,
    ADePTReference,
    ADePTScaled,
    DPText,
    HalvedOutput,
    LaplaceMechanism,
)


def noisy(x, rng):
    return x[0] + rng.laplace(scale=2.0)


def noisy_many(x, size, rng):
    return x[0] + rng.laplace(scale=2.0, size=size)


def old_style(x):
    return x + np.random.laplace(scale=2.0)  # noqa: NPY002


class Hidden:
    """A callable without a readable signature, as some compiled ones are."""

    __signature__ = "none"

    def __call__(self, x, rng):
        return x + rng.laplace()


IN_RANGE = "a finite number above 0 and at most 1e+300, got "

VALUE_ERRORS = [
    # Native noise and published systems.
    (lambda: LaplaceMechanism(0.0), "epsilon", f"{IN_RANGE}0.0"),
    (lambda: ADePT(1.0, np.nan), "clip", f"{IN_RANGE}nan"),
    (lambda: ADePTReference(-1), "epsilon", f"{IN_RANGE}-1"),
    (lambda: LaplaceMechanism(1e-200, 1e200), "noise scale sensitivity / epsilon", IN_RANGE),
    (lambda: HalvedOutput(1e200, 1e-200), "noise scale sensitivity / epsilon", f"{IN_RANGE}0.0"),
    (lambda: ADePTScaled(1.0, 4e299).steps(4), "noise scale 2 clip sqrt(dim) / epsilon",
     f"{IN_RANGE}1.6e+300"),
    (lambda: mechanisms.Laplace(2e300), "scale", f"{IN_RANGE}2e+300"),
    (lambda: mechanisms.Exponential(0), "scale", f"{IN_RANGE}0"),
    (lambda: mechanisms.Gaussian(np.float64(np.nan)), "sigma", f"{IN_RANGE}nan"),
    (lambda: mechanisms.ClipStep("l2", 0.0), "radius", f"{IN_RANGE}0.0"),
    (lambda: mechanisms.Steps(mechanisms.Laplace(1.0), factor=0.0), "factor", f"{IN_RANGE}0.0"),
    (lambda: mechanisms.Laplace(1.0, "three"), "variant", "one of 'two_branch', 'sign', 'centred'"),
    (lambda: DPText(1.0, nan="drop"), "nan", "one of 'zero', 'resample', 'keep', got 'drop'"),
    (lambda: mechanisms.ClipStep("linf", 1.0), "norm", "one of 'l1', 'l2', got 'linf'"),
    (lambda: mechanisms.Uniform(1.0, 1.0), "low", "below high = 1.0, got 1.0"),
    (lambda: mechanisms.Uniform(-1e301, 1.0), "low", "at least -1e+300 and at most 1e+300"),
    (lambda: LaplaceMechanism(1.0).default_pair(0), "dim", "an integer at least 1, got 0"),
    # Commands as mechanisms: tools in any language, what they read and write, and how they fail.
    (lambda: dpcore.command([]), "command", "a list of texts, the program"),
    (lambda: dpcore.command([sys.executable, "{size}"]), "command", "with {x} in an argument"),
    (lambda: dpcore.command([sys.executable, "{x}"]), "command", "with {size} in an argument"),
    (lambda: dpcore.command(["{x}{size}"]), "command", "with {x} in an argument"),
    (lambda: dpcore.command(["no-such-program", "{x}", "{size}"]), "command", "on the PATH"),
    (lambda: dpcore.command([sys.executable, "a\0", "{x}", "{size}"]), "command", "a list"),
    # `repeat`: the law, the arrays that answers become, symbols, seeds, and complaints.
    (lambda: repeat(lambda: 0), "fn", "fn(x) or fn(x, rng)"),
    (lambda: repeat(noisy_many), "fn", "noisy_many(x, size, rng)"),
    (lambda: repeat(lambda x, *, other: 0), "fn", "fn"),
    (lambda: repeat(lambda *args: 0), "seeded", "one of"),
    (lambda: repeat(lambda *args, **options: 0), "seeded", "one of"),
    (lambda: repeat(Hidden()), "seeded", "shows no signature"),
    (lambda: repeat(noisy, seeded="own"), "fn", "one that seeded='own' can call"),
    (lambda: repeat(noisy, seeded="global"), "fn", "one that seeded='global' can call"),
    (lambda: repeat(lambda x: 0, seeded="rng"), "fn", "one that seeded='rng' can call"),
    (lambda: repeat(noisy, seeded="seed"), "seeded", "one of 'rng', 'global', 'own'"),
    (lambda: repeat(old_style, seeded="global", thread_safe=True), "thread_safe", "False"),
    *((partial(dpcore.command, [sys.executable, "{x}", "{size}"], timeout=seconds), "timeout",
       "a finite number above 0") for seconds in (0, -1.0, math.inf, math.nan)),
]  # fmt: skip
TYPE_ERRORS = [
    # Native noise and published systems.
    (lambda: LaplaceMechanism("1"), "epsilon", f"{IN_RANGE}'1'"),
    (lambda: DPText(1.0, True), "sensitivity", f"{IN_RANGE}True"),
    (lambda: mechanisms.DPTextNoise(None), "scale", f"{IN_RANGE}None"),
    (lambda: mechanisms.Gaussian(1j), "sigma", f"{IN_RANGE}1j"),
    (lambda: mechanisms.DPTextNoise(1.0, 0), "nan", "one of 'zero', 'resample', 'keep', got 0"),
    (lambda: mechanisms.Steps(1.0), "noise", "one of dpcore's primitives, got 1.0"),
    (lambda: mechanisms.Steps(mechanisms.Laplace(1.0), clip=1.0), "clip", "a ClipStep or None"),
    # Commands as mechanisms: tools in any language, what they read and write, and how they fail.
    (lambda: dpcore.command("node tool.js {x} {size}"), "command", "a list of texts, the program"),
    (lambda: dpcore.command(["node", 1, "{x}", "{size}"]), "command", "a list of texts"),
    # `repeat`: the law, the arrays that answers become, symbols, seeds, and complaints.
    (lambda: repeat(1.5), "fn", "a callable"),
    (lambda: repeat(noisy, seeded=1), "seeded", "one of"),
    (lambda: repeat(noisy, catch=KeyboardInterrupt), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, catch=(ValueError, 1)), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, thread_safe=1), "thread_safe", "True or False"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
