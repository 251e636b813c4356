"""Leaks of released code through the low-order bits of its noise."""

from .experiment import NAME, PAIR, Config, Result, Row, run

__all__ = ["NAME", "PAIR", "Config", "Result", "Row", "run"]
