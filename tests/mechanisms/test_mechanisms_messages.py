"""Messages of wrong calls of `dpcore.mechanisms`: the argument, and a word of the remedy."""

from __future__ import annotations

import sys

import numpy as np
from shared_messages import check_messages

import dpcore
from dpcore.mechanisms.callables import repeat


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


VALUE_ERRORS = [
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
]  # fmt: skip
TYPE_ERRORS = [
    # Commands as mechanisms: tools in any language, what they read and write, and how they fail.
    (lambda: dpcore.command("node tool.js {x} {size}"), "command", "a list of texts, the program"),
    (lambda: dpcore.command(["node", 1, "{x}", "{size}"]), "command", "a list of texts"),
    # `repeat`: the law, the arrays that answers become, symbols, seeds, and complaints.
    (lambda: repeat(1.5), "fn", "a callable"),
    (lambda: repeat(noisy, seeded=1), "seeded", "one of"),
    (lambda: repeat(noisy, catch=KeyboardInterrupt), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, catch=(ValueError, 1)), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, catch=1), "catch", "a subclass of Exception"),
    (lambda: repeat(noisy, thread_safe=1), "thread_safe", "True or False"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
