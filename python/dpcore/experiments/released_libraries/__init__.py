"""Audits of mechanisms in released packages of differential privacy."""

from .experiment import NAME, Config, Result, run
from .rows import Row

__all__ = ["NAME", "Config", "Result", "Row", "run"]
