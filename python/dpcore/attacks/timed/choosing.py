"""From timed pilot calls to the event of a timing audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ...errors import confidence_level, count
from ...events import Above
from ...records import Pair
from ..choosing.choice import Choice, Floats, Goal, choices, thresholds
from .calls import Timed
from .columns import Latency, Rows
from .scores import timed_scores


def choose_timed(
    rows: Rows, sides: npt.NDArray[np.bool_], pair: Pair, trials: int, confidence: float = 0.95
) -> tuple[Above, str]:
    """The score, threshold and direction that should certify most, from pilot calls.

    Every other call fits the scores and the rest choose among them; the latency itself needs no
    fit and is judged on all calls.

    Args:
        rows: pilot calls that will not be counted, see `Timed.rows`.
        sides: True where a call was on x, shape `(calls,)`.
        pair: the two inputs.
        trials: calls that will be counted, both sides together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event on rows and the direction, "x" or "x_prime".

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range.
    """
    goal = Goal(max(1, count("trials", trials) // 2), 0.0, confidence_level(confidence))
    alone = Latency()
    found = _judged([alone], rows, sides, goal)
    scores = timed_scores(rows[::2], sides[::2], pair)
    found += _judged(scores, rows[1::2], sides[1::2], goal)
    # Of equals the first, the simplest.
    best = max(found, key=lambda choice: choice.merit)
    if best.event.score is alone:
        latencies = alone(rows).astype(np.int64)
        return choose_latency(Timed(sides, latencies, []), trials, confidence)
    return best.event, best.direction


def _judged(
    scores: Sequence[Any], rows: Rows, sides: npt.NDArray[np.bool_], goal: Goal
) -> list[Choice]:
    return choices(scores, rows[sides], rows[~sides], goal) if scores else []


def choose_latency(pilot: Timed, trials: int, confidence: float = 0.95) -> tuple[Above, str]:
    """The threshold on the latency alone, side and direction that should certify most.

    Args:
        pilot: timed calls that will not be counted.
        trials: calls that will be, both sides together.
        confidence: confidence of the bound, strictly between 0 and 1.

    Returns:
        The event on latencies and the direction, "x" or "x_prime".

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range.
    """
    trials, alpha = count("trials", trials), 1.0 - confidence_level(confidence)
    values = pilot.latencies.astype(np.float64)
    low, high = np.sort(values[pilot.sides]), np.sort(values[~pilot.sides])
    points = thresholds(low, high)
    if points.size == 0:
        # One latency only: nothing can be learnt from it.
        return Above(Latency(), float(values[0]) if values.size else 0.0), "x"
    below = [np.searchsorted(side, points).astype(np.float64) for side in (low, high)]
    above = [low.size - below[0], high.size - below[1]]
    scale = trials / values.size
    options = [(hits, way) for hits in (above, below) for way in (0, 1)]
    merits = np.stack([_promise(hits[way], hits[1 - way], scale, alpha) for hits, way in options])
    which, place = divmod(int(np.argmax(merits)), points.size)
    event = Above(Latency(), float(points[place]), "above" if which < 2 else "below")
    return event, "x_prime" if which % 2 else "x"


def _promise(k: Floats, k_prime: Floats, scale: float, alpha: float) -> Floats:
    """The conditional bound to be expected, at the pilot's own lower limit for the share of k."""
    from scipy.special import betaincinv, logit

    share = betaincinv(np.maximum(k, 0.5), k_prime + 1.0, alpha)
    hits = (k + k_prime) * scale
    promise: Floats = logit(
        betaincinv(np.maximum(share * hits, 0.5), hits - share * hits + 1.0, alpha)
    )
    return promise
