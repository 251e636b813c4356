"""Calibration: noise for (epsilon, delta), its guards, and what a given noise really buys.

For audits and experiments, not for releasing data: floats that have noise added give the input
away in their last bits (Mironov 2012), and no generator here is a cryptographic one.
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
    """List the names that the module defines; imported names are left out but can be imported."""
    return [*__all__]
