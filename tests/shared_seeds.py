"""Other weights wherever a test, a page or a script trains, with `DPCORE_TRAINING_SEED=3`.

A test that passes with ten of these numbers states no figure closer than ten seeds spread. Recorded
seeds, corpora, noise and audits are those of an ordinary run.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np


def change_training_seeds(number: int) -> None:
    """Let DPNR, the adversarial baselines, DPText, ADePT and word2vec train from other seeds."""
    if find_spec("torch"):
        from dpcore.text import ADePTModel, DPTextModel
        from dpcore.text.systems.dpnr import TextClassifier

        for owner, method in (
            (TextClassifier, "_fit_and_list_texts"),
            (DPTextModel, "fit"),
            (ADePTModel, "fit"),
        ):
            setattr(owner, method, _with_other_generators(getattr(owner, method), number))
    if find_spec("gensim"):
        from gensim.models import Word2Vec

        made = Word2Vec.__init__
        Word2Vec.__init__ = lambda self, *args, seed=1, **given: made(
            self, *args, seed=seed + 1000 * number, **given
        )


def _with_other_generators(train: Callable[..., Any], number: int) -> Callable[..., Any]:
    seeded = np.random.default_rng

    @functools.wraps(train)
    def changed(*args: Any, **given: Any) -> Any:
        def other(seed: Any = None) -> np.random.Generator:
            return seeded([number, seed] if isinstance(seed, int) else seed)

        with mock.patch.object(np.random, "default_rng", other):
            return train(*args, **given)

    return changed
