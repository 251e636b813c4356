"""Appendix figure of Habernal (2022): Laplace noise by three formulas, and what DPText samples."""

from .experiment import BINS, HIGH, LAWS, LOW, NAME, Config, Histogram, Law, Result, run

__all__ = [
    "BINS",
    "HIGH",
    "LAWS",
    "LOW",
    "NAME",
    "Config",
    "Histogram",
    "Law",
    "Result",
    "run",
]
