"""Attacks that infer private attributes from vectors of DPNR, or of baselines without noise."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
