"""Audits of mechanisms in released packages of differential privacy, called as users call them."""

from .experiment import NAME, Config, Result, run
from .rows import Row

__all__ = ["NAME", "Config", "Result", "Row", "run"]
