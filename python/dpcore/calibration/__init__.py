"""Calibration: noise for (epsilon, delta), its guards, and what a given noise really buys."""

from .losses import RealEpsilon, real_epsilon
from .normal import (
    GaussianNoise,
    gaussian_analytic,
    gaussian_classical,
    gaussian_delta,
    gaussian_epsilon,
)
from .pure import L2Laplace, l2_laplace, laplace
from .response import RandomisedResponse

__all__ = [
    "GaussianNoise",
    "L2Laplace",
    "RandomisedResponse",
    "RealEpsilon",
    "gaussian_analytic",
    "gaussian_classical",
    "gaussian_delta",
    "gaussian_epsilon",
    "l2_laplace",
    "laplace",
    "real_epsilon",
]
