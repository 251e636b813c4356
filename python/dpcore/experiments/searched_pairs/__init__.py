"""Mechanisms for which a searched pair certifies more than the field's usual pairs can."""

from .experiment import MECHANISMS, NAME, Config, Result, Row, run

__all__ = ["MECHANISMS", "NAME", "Config", "Result", "Row", "run"]
