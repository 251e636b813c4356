"""Mechanisms of released packages of differential privacy, audited as their users call them."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
