"""Appendix figure of Habernal (2022): Laplace noise by three formulas, and what DPText samples."""

from .experiment import LAWS, NAME, Config, Histogram, Law, Result, run

__all__ = ["LAWS", "NAME", "Config", "Histogram", "Law", "Result", "run"]
