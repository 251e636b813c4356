"""Inference of private attributes from the text vectors of DPNR, and of baselines without noise."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
