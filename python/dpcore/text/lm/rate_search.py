"""Search for the learning rate and clipping norm of DP-SGD, by trainings on public texts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ...errors import choice, invalid
from ...mechanisms.texts import as_texts
from ..corpus import Corpus, all_or_training_texts
from .settings import FitPlan, Rows, TextRows, repeated_words_without_mask

_MIN_PUBLIC_TEXTS: Final = 100
_MAX_HELD_OUT_TEXTS: Final = 400
"""Largest number of public texts on which settings are compared. At most a quarter of the public
texts are used for this."""
_SEARCH_BATCH_SIZE: Final = 64
"""Expected number of texts per step of a search. The smaller batch matters less than the noise of a
step."""
_SEARCH_FACTORS: Final = ((4.0, 1.0), (2.0, 1.0), (4.0, 0.25))
"""Factors for the learning rate and the clip, tried in turn together with their inverses."""
_MAX_SEARCH_SETTINGS: Final = 24


def check_public_texts(rate: Any, public: Any, epsilon: Any) -> tuple[str, ...]:
    """Return the public texts, after a check, with which training settings are chosen.

    If `rate` is "fixed", the settings are not chosen in this way, and the result is ().
    """
    if choice("rate", rate, ("fixed", "searched")) == "fixed":
        if public is not None:
            raise invalid("public", "left out where rate is not 'searched'", public)
        return ()
    if epsilon is None:
        raise invalid("rate", "'fixed' for a plain training, without epsilon", rate)
    if public is None:
        raise invalid("public", "public texts where rate is 'searched'", public)
    texts = (
        all_or_training_texts(public) if isinstance(public, Corpus) else as_texts("public", public)
    )
    if len(texts) < _MIN_PUBLIC_TEXTS:
        raise invalid("public", f"at least {_MIN_PUBLIC_TEXTS} texts", f"{len(texts)} of them")
    return tuple(texts)


def search_rate_and_clip(
    public: Sequence[str], texts: int, plan: FitPlan, start: Any, rows: TextRows,
    device: Any, seed: Any, progress: bool | None,
) -> tuple[FitPlan, dict[str, int]]:  # fmt: skip
    """Choose the learning rate and clipping norm of private training by test runs on public texts.

    Args:
        public: public texts on which the search trains and compares settings.
        texts: number of private texts. The search uses no other information on the private texts.
        plan: settings of the private training.
        start: `NextWordModel` whose weights are the initial weights. None gives random weights.
        rows: converter from texts to word numbers, which also has the largest text length and the
            mask token.
        device: torch device of the trainings.
        seed: seed of the weights, the batches and the noise in all trainings of the search.
        progress: True shows progress bars, False shows no bars. None shows bars for long work.

    Returns:
        A pair. The first entry is the plan with the chosen learning rate and clipping norm. The
        second entry is a dictionary: `settings_tried` (number of settings that were tried),
        `public_texts` (number of public texts) and `public_read` (number of public texts that were
        used).
    """
    order = np.random.default_rng(seed).permutation(len(public))
    n_held, n_train = min(_MAX_HELD_OUT_TEXTS, len(public) // 4), _count_public_texts(texts, plan)
    read = [public[row] for row in order[: n_held + n_train]]
    # The choice must not depend on words of the private texts, so the vocabulary comes from the
    # public texts.
    words = repeated_words_without_mask(read, rows.masked) if start is None else start.vocabulary
    own = replace(rows, vocabulary=words)
    numbers, _ = own.encode(read)
    train = [numbers[n_held + row % (len(read) - n_held)] for row in range(n_train)]
    plan, settings = _tune_rate_and_clip_count_trials(
        train, numbers[:n_held], own.size, plan, None if start is None else start.network, device,
        seed, progress,
    )  # fmt: skip
    figures = {"public_texts": len(public), "public_read": len(read)}
    return plan, {"settings_tried": settings, **figures}


def _tune_rate_and_clip_count_trials(
    train: Rows, valid: Rows, words: int, plan: FitPlan, source: Any, device: Any, seed: Any,
    progress: bool | None,
) -> tuple[FitPlan, int]:  # fmt: skip
    """Find the best learning rate and clipping norm by trainings on public texts.

    Each training has as many steps as the private training, and the same standard deviation of the
    noise in an averaged gradient.

    Args:
        train: public texts as word numbers, as many as the steps need. A text may occur several
            times.
        valid: other public texts as word numbers. The setting with the lowest mean loss on them is
            the best.
        words: number of words that have a probability, including "<unk>".
        plan: settings of the private training. The search starts from `plan.lr` and `plan.clip`.
        source: network whose weights are the initial weights, or None for random weights.
        device: device for the trainings.
        seed: seed of weights, batches and noise. All settings have the same seed.
        progress: True shows a progress bar for each training, False shows no bar. None shows a bar
            for long work.

    Returns:
        The plan with the best learning rate and clipping norm, and the number of settings tried.

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
            # A setting whose training diverges gets an infinite loss, and the search continues.
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


def _count_public_texts(private_texts: int, plan: FitPlan) -> int:
    """Return how many public texts the search needs for as many steps as the private training."""
    return -(-private_texts * min(plan.batch, _SEARCH_BATCH_SIZE) // plan.batch)
