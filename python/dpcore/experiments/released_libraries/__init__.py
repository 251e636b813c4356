"""Mechanisms of released packages of differential privacy, audited as their users call them."""

from .experiment import NAME, Config, Result, run
from .rows import Row

__all__ = ["NAME", "Config", "Result", "Row", "run"]
