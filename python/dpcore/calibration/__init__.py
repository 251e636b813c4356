"""Calibration of noise to (epsilon, delta), and the true loss of a given noise.

The noises are meant for audits and experiments, not for releasing data. Floats with added noise
reveal the input in their last bits (Mironov 2012), and the random generators here are not
cryptographic.
"""

from .gaussian import (
    CalibratedGaussian,
    gaussian_analytic,
    gaussian_classical,
    gaussian_delta,
    gaussian_epsilon,
)
from .losses import RealEpsilon, noise_errors, real_epsilon
from .masked_words import COUNTEREXAMPLES, Counterexample, MaskedWords, word_dropout
from .pure import L2Laplace, RandomisedResponse, l2_laplace, laplace

__all__ = [
    "COUNTEREXAMPLES", "CalibratedGaussian", "Counterexample", "L2Laplace", "MaskedWords",
    "RandomisedResponse", "RealEpsilon", "gaussian_analytic", "gaussian_classical",
    "gaussian_delta", "gaussian_epsilon", "l2_laplace", "laplace", "noise_errors", "real_epsilon",
    "word_dropout",
]  # fmt: skip


def __dir__() -> list[str]:
    """List the public names of the package; imported names are not listed but can be imported."""
    return [*__all__]
