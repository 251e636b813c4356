"""Attributes inferred from vectors of DPNR, as published and repaired, and of its baselines."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
