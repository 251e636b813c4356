"""The field's benchmark: 20 mechanisms, what two auditors published on them, and what is true."""

from .experiment import BESIDE, NAME, TRIALS, Config, Result, Row, run

__all__ = ["BESIDE", "NAME", "TRIALS", "Config", "Result", "Row", "run"]
