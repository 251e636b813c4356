"""Accuracy of estimated divergences, case by case and method by method."""

from .experiment import NAME, NEIGHBOURS, Cell, Config, Result, Trusted, estimate_divergences, run

__all__ = [
    "NAME",
    "NEIGHBOURS",
    "Cell",
    "Config",
    "Result",
    "Trusted",
    "estimate_divergences",
    "run",
]
