"""Mechanisms whose Renyi curves and exact epsilons are known, each on a pair of inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...calibration import RandomisedResponse, gaussian_epsilon
from ...divergence import closed_forms
from ...mechanisms import DPTextNoise, Exponential, Gaussian, Laplace, RandomBits

Reals = npt.NDArray[np.float64]
Curve = Callable[[Reals], Reals]

MOST_DELTA: Final = 0.3
"""Above it one-sided noise may have a finite epsilon: less than what it shows on one side only."""

_ONE_SIDED_DISTANCE: Final = 0.5
"""Distance of the pairs of one-sided noise."""

_RANDOMISED_RESPONSE: Final = RandomisedResponse(1.0, values=4)


@dataclass(frozen=True, slots=True)
class Case:
    """A mechanism, a pair of inputs, and the truth about them.

    Args:
        title: what table and picture say.
        mechanism: called as ``mechanism(x, size, seed)``.
        x: the input of P0.
        x_prime: the input of P1.
        forward: orders to D_alpha(P0||P1).
        backward: orders to D_alpha(P1||P0).
        exact: delta in (0, `MOST_DELTA`] to the smallest epsilon of both directions.
    """

    title: str
    mechanism: Any
    x: Any
    x_prime: Any
    forward: Curve
    backward: Curve
    exact: Callable[[float], float]


def _zero_curve(alphas: Reals) -> Reals:
    return np.zeros_like(alphas)


def _infinite_curve(alphas: Reals) -> Reals:
    """Return inf at every order from 1 on, where an output is possible on one side only."""
    return np.full_like(alphas, np.inf)


def _one_ratio(alphas: Reals) -> Reals:
    """Return the constant curve of two shifted exponential laws.

    Where the later law has any mass, its density is e^distance times the other.
    """
    return np.full_like(alphas, _ONE_SIDED_DISTANCE)


def _laplace_curve(alphas: Reals) -> Reals:
    return closed_forms.laplace_mechanism(alphas, 1.0, 1.0)


def _gaussian_curve(alphas: Reals) -> Reals:
    return closed_forms.gaussian_mechanism(alphas, 1.0, 1.0)


def _plane_curve(alphas: Reals) -> Reals:
    return closed_forms.laplace(alphas, 1.0, [_ONE_SIDED_DISTANCE, _ONE_SIDED_DISTANCE])


def _answers_curve(alphas: Reals) -> Reals:
    return closed_forms.randomised_response(
        alphas, _RANDOMISED_RESPONSE.entry_loss, _RANDOMISED_RESPONSE.values
    )


def _answers_epsilon(delta: float) -> float:
    """Compute epsilon of randomised response from delta = keep - e^epsilon wrong.

    The event is the truth of P0.
    """
    keep = _RANDOMISED_RESPONSE.keep
    wrong = (1.0 - keep) / (_RANDOMISED_RESPONSE.values - 1)
    return max(0.0, math.log((keep - delta) / wrong))


def _laplace_epsilon(delta: float) -> float:
    """Compute epsilon of one Laplace entry with loss 1 from delta = 1 - e^{(epsilon - 1)/2}."""
    return max(0.0, 1.0 + 2.0 * math.log1p(-delta))


def _entry_delta(epsilon: float, loss: float) -> float:
    """Compute the profile of one Laplace entry at any real epsilon."""
    if epsilon >= loss:
        return 0.0
    return -math.expm1((epsilon - loss) / 2.0 if epsilon >= -loss else epsilon)


def plane_delta(epsilon: float, loss: float = _ONE_SIDED_DISTANCE) -> float:
    """Compute the profile of two Laplace entries: that of one, averaged over the other's loss.

    Under P0 the loss of an entry is `loss` with probability 1/2, -`loss` with e^-loss / 2, and
    loss - 2 t with density e^-t / 2 between.
    """
    from scipy.integrate import quad

    ends = _entry_delta(epsilon - loss, loss) + math.exp(-loss) * _entry_delta(epsilon + loss, loss)
    kinks = [t for t in (loss - epsilon / 2.0, -epsilon / 2.0) if 0.0 < t < loss]
    inner, _ = quad(
        lambda t: math.exp(-t) * _entry_delta(epsilon - loss + 2.0 * t, loss),
        0.0, loss, points=kinks or None, epsabs=1e-13,
    )  # fmt: skip
    return 0.5 * (ends + float(inner))


def _plane_epsilon(delta: float) -> float:
    from scipy.optimize import brentq

    if plane_delta(0.0) <= delta:
        return 0.0
    return float(
        brentq(lambda e: plane_delta(e) - delta, 0.0, 2.0 * _ONE_SIDED_DISTANCE, xtol=1e-12)
    )


CASES: Final[dict[str, Case]] = {
    "laplace": Case("Laplace", Laplace(1.0), [0.0], [1.0], _laplace_curve, _laplace_curve,
    _laplace_epsilon),
    "gaussian": Case(
        "Gaussian", Gaussian(1.0), [0.0], [1.0], _gaussian_curve, _gaussian_curve,
        lambda delta: gaussian_epsilon(1.0, delta, 1.0),
    ),
    "exponential": Case(
        "Exponential", Exponential(1.0), [0.0], [_ONE_SIDED_DISTANCE], _infinite_curve, _one_ratio,
        lambda delta: math.inf,
    ),
    "dptext": Case(
        "DPText noise", DPTextNoise(1.0), [0.0], [_ONE_SIDED_DISTANCE], _infinite_curve, _infinite_curve,
        lambda delta: math.inf,
    ),
    "randomised-response": Case(
        "Randomised response", _RANDOMISED_RESPONSE, 0, 1, _answers_curve, _answers_curve, _answers_epsilon
    ),
    "random-bits": Case(
        "Three random bits", RandomBits(), [0.0] * 3, [7.0] * 3, _zero_curve, _zero_curve,
        lambda delta: 0.0
    ),
    "laplace-plane": Case(
        "Laplace, d = 2", Laplace(1.0), [0.0] * 2, [_ONE_SIDED_DISTANCE] * 2, _plane_curve, _plane_curve,
        _plane_epsilon
    ),
    "gaussian-space": Case(
        "Gaussian, d = 4", Gaussian(1.0), [0.0] * 4, [0.5] * 4, _gaussian_curve, _gaussian_curve,
        lambda delta: gaussian_epsilon(1.0, delta, 1.0),
    ),
}  # fmt: skip
