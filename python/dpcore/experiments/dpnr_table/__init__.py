"""Inference of attributes from vectors of DPNR, published and repaired, and of its baselines."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
