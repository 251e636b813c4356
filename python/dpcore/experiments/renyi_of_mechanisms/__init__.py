"""Renyi divergences of our own samplers: estimated from outputs, against the closed forms."""

from .experiment import NAME, Config, Reals, Result, Row, run

__all__ = ["NAME", "Config", "Reals", "Result", "Row", "run"]
