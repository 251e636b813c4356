"""What do DPNR, as published and repaired, and its baselines tell of attributes of a text?"""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
