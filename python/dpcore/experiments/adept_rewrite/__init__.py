"""Utility of texts rewritten by ADePT, at the true epsilon and not at the claimed one."""

from .experiment import NAME, Config, Result, run
from .rewriting import Cell, Row

__all__ = ["NAME", "Cell", "Config", "Result", "Row", "run"]
