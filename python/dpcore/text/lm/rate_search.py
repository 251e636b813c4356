"""The search of rate and clip of a private training, by trainings on public texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...errors import choice, invalid
from ...mechanisms.texts import texts_of
from ..corpus import Corpus, training_texts
from .settings import FitPlan, Rows, TextRows, make_vocabulary

_MIN_PUBLIC_TEXTS: Final = 100
_MAX_HELD_OUT_TEXTS: Final = 400
"""Public texts that choose among rates and clips, a quarter of them at most."""
_SEARCH_BATCH_SIZE: Final = 64
"""Expected texts in a step of a search: the noise of a step is larger than what they lack."""
_SEARCH_FACTORS: Final = ((4.0, 1.0), (2.0, 1.0), (4.0, 0.25))
"""Factors of rate and clip that are tried in turn, and their inverses."""
_MAX_SEARCH_SETTINGS: Final = 24


def check_public(rate: Any, public: Any, epsilon: Any) -> tuple[str, ...]:
    """Check the public texts of a search, and return them, or none without a search."""
    if choice("rate", rate, ("fixed", "searched")) == "fixed":
        if public is not None:
            raise invalid("public", "left out where rate is not 'searched'", public)
        return ()
    if epsilon is None:
        raise invalid("rate", "'fixed' for a plain training, without epsilon", rate)
    if public is None:
        raise invalid("public", "public texts where rate is 'searched'", public)
    texts = training_texts(public) if isinstance(public, Corpus) else texts_of("public", public)
    if len(texts) < _MIN_PUBLIC_TEXTS:
        raise invalid("public", f"at least {_MIN_PUBLIC_TEXTS} texts", f"{len(texts)} of them")
    return tuple(texts)


def search_plan(
    public: Sequence[str], texts: int, plan: FitPlan, start: Any, rows: TextRows,
    device: Any, seed: Any, progress: bool | None,
) -> tuple[FitPlan, dict[str, int]]:  # fmt: skip
    """Search rate and clip on public texts.

    Args:
        public: public texts.
        texts: number of private texts, their only figure that is used.
        plan: of the private training.
        start: the `NextWordModel` at the start, or None.
        rows: length and mask of the rows.
        device: where it trains.
        seed: of all trainings of the search.
        progress: show bars.

    Returns:
        The plan with the rate and clip that were chosen, and fields of `NextWordModel`.
    """
    order = np.random.default_rng(seed).permutation(len(public))
    n_held, n_train = min(_MAX_HELD_OUT_TEXTS, len(public) // 4), _count_search_texts(texts, plan)
    read = [public[row] for row in order[: n_held + n_train]]
    # Words of the private texts must not decide: the vocabulary is that of the public texts.
    words = make_vocabulary(read, rows.masked) if start is None else start.vocabulary
    own = replace(rows, vocabulary=words)
    numbers, _ = own.encode(read)
    train = [numbers[n_held + row % (len(read) - n_held)] for row in range(n_train)]
    plan, settings = _search_rate(
        train, numbers[:n_held], own.size, plan, None if start is None else start.network, device,
        seed, progress,
    )  # fmt: skip
    figures = {"public_texts": len(public), "public_read": len(read)}
    return plan, {"settings_tried": settings, **figures}


def _search_rate(
    train: Rows, valid: Rows, words: int, plan: FitPlan, source: Any, device: Any, seed: Any,
    progress: bool | None,
) -> tuple[FitPlan, int]:  # fmt: skip
    """Find the rate and the clip of a private training by trainings on public texts.

    Each has as many steps as the private training, and in a step the same noise for each weight.

    Args:
        train: public texts as numbers. They are repeated, or not all read, to make the steps.
        valid: other public texts, whose mean loss chooses.
        words: V of their vocabulary.
        plan: of the private training; its rate and clip are the first that are tried.
        source: a network whose weights are the start, or None.
        device: where it trains.
        seed: of weights, batches and noise, the same for all settings.
        progress: show a bar for each training.

    Returns:
        The plan with the best rate and clip, and the number of settings that were tried.

    Raises:
        KeyboardInterrupt: on Ctrl-C.
    """
    from .network import DIVERGED_WORD_LOSS, draw_weights, learn_private, make_network, mean_loss

    batch = min(plan.batch, _SEARCH_BATCH_SIZE)
    small = replace(plan, batch=batch, sigma=(plan.sigma or 0.0) * batch / plan.batch)
    losses = dict[tuple[float, float], float]()

    def measure(setting: tuple[float, float]) -> float:
        if setting not in losses:
            rng = np.random.default_rng(seed)
            network = make_network(words, plan, source, private=True)
            if source is None:
                draw_weights(network, rng)
            network.to(device)
            trial = replace(small, lr=setting[0], clip=setting[1])
            losses[setting] = math.inf
            # A setting with which the training diverges is only a bad one.
            with suppress(ValueError):
                if learn_private(network, train, trial, rng, progress)["partial"]:
                    raise KeyboardInterrupt
                loss = mean_loss(network, valid)
                losses[setting] = loss if loss < DIVERGED_WORD_LOSS else math.inf
        return losses[setting]

    best = plan.lr, float(plan.clip or 0.0)
    for lr_factor, clip_factor in _SEARCH_FACTORS:
        last = None
        while best != last and len(losses) < _MAX_SEARCH_SETTINGS:
            last = lr, clip = best
            larger = lr * lr_factor, clip * clip_factor
            best = min(last, larger, (lr / lr_factor, clip / clip_factor), key=measure)
    return replace(plan, lr=best[0], clip=best[1]), len(losses)


def _count_search_texts(texts: int, plan: FitPlan) -> int:
    """Return how many texts make the steps of a private training on so many texts."""
    return -(-texts * min(plan.batch, _SEARCH_BATCH_SIZE) // plan.batch)
