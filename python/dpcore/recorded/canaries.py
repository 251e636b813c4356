"""Scores of canaries from one run: guesses by thresholds, in numbers fixed in advance."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..errors import integer, invalid, mistyped, part_of, real
from ..results.guesses import Guesses
from .independent import Array, Sides

_TIE_STREAM: Final = 18
"""Names the stream of the coins that part equal scores."""

_COIN_P_VALUE: Final = 1e-6
"""Chance below which the number of included canaries is no matter of fair coins."""


def guess_canaries(
    sides: Sides, wanted: int | float | tuple[int, int] | None, seed: int
) -> tuple[Guesses, str]:
    """Guess the canaries with the highest scores in and those with the lowest out.

    Equal scores are put in a random order that does not know which canaries were included: such
    guesses are post-processing of the scores, as the theorem wants them.

    Args:
        sides: scores of included canaries and of the others, shape `(size,)` each.
        wanted: how many guesses, see `dpcore.audit_outputs`.
        seed: of the order of equal scores.

    Returns:
        What was guessed right, and how it was guessed, in words.

    Raises:
        TypeError: if the scores are no numbers or `wanted` is of the wrong kind.
        ValueError: if a score is NaN, there is more than one for a canary, or `wanted` is out of
            range.
    """
    scores = np.concatenate(
        [_read_scores("outputs", sides[0]), _read_scores("outputs_prime", sides[1])]
    )
    included = np.arange(scores.size) < len(sides[0])
    guessed_in, guessed_out = _split_guesses(wanted, scores.size)
    sequence = np.random.SeedSequence(seed, spawn_key=(_TIE_STREAM,))
    order = np.random.Generator(np.random.PCG64(sequence)).permutation(scores.size)
    ranked = included[order[np.argsort(scores[order], kind="stable")]]
    correct_in = int(np.count_nonzero(ranked[scores.size - guessed_in :]))
    correct_out = guessed_out - int(np.count_nonzero(ranked[:guessed_out]))
    found = Guesses(guessed_in, correct_in, guessed_out, correct_out, scores.size)
    how = f"the {guessed_in:,} highest scores guessed in, the {guessed_out:,} lowest out"
    return found, how


def _read_scores(name: str, side: Array) -> Array:
    """Read one real number for each canary; refuse NaN, which has no rank to guess by."""
    flat = side[:, 0] if side.ndim == 2 and side.shape[1] == 1 else side
    if flat.dtype.kind not in "buif":
        raise mistyped(name, "one real number for each canary", flat.dtype)
    if flat.ndim != 1:
        raise invalid(name, "one score for each canary, shape (size,)", flat.shape)
    scores = flat.astype(np.float64)
    if np.isnan(scores).any():
        row = int(np.isnan(scores).argmax())
        requirement = "scores that can be ranked (-inf or inf for the least or most likely)"
        raise invalid(name, requirement, f"NaN in row {row + 1}")
    return scores


def _split_guesses(wanted: Any, canaries: int) -> tuple[int, int]:
    """Return the numbers of canaries guessed in and guessed out."""
    if isinstance(wanted, tuple):
        if len(wanted) != 2:
            raise invalid("guesses", "a number, a share, or a tuple (in, out)", wanted)
        with part_of("guesses"):
            guessed_in = integer("guesses in", wanted[0], 0, canaries)
            least = 0 if guessed_in else 1
            return guessed_in, integer("guesses out", wanted[1], least, canaries - guessed_in)
    if wanted is None:
        total = canaries
    elif isinstance(wanted, (float, np.floating)):
        share = real("guesses", wanted, low=0.0, high=1.0, open_low=True)
        total = max(1, round(share * canaries))
    else:
        total = integer("guesses", wanted, 1, canaries)
    return (total + 1) // 2, total // 2


def doubts_of_coins(sides: Sides) -> tuple[str, ...]:
    """List evidence against a fair coin for every canary: far too many or few were included.

    The chance of such a number is at most ``2 exp(-2 (k - m/2)^2 / m)`` (Hoeffding, 1963).

    Args:
        sides: scores of included canaries and of the others.

    Returns:
        A sentence, if there is something to say.
    """
    included, canaries = len(sides[0]), len(sides[0]) + len(sides[1])
    if 2.0 * math.exp(-2.0 * (included - canaries / 2.0) ** 2 / canaries) >= _COIN_P_VALUE:
        return ()
    return (f"{included:,} of {canaries:,} canaries were included, which fair coins do not give",)
