"""Calibration of noise for (epsilon, delta)-DP, and the true epsilon of a given noise.

Use these noises for audits and experiments, not for releasing data. There are two reasons:

- The last bits of a float with added noise reveal the input (Mironov 2012).
- The random generators of this package are not cryptographic.
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
    """Return the public names of the package, without the other imported names."""
    return [*__all__]
