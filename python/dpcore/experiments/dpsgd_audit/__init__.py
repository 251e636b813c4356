"""Faults of DP-SGD found by audits of one step, of one run and of many runs."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
