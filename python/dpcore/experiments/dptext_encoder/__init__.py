"""DPText trained on texts: what its noise certifies, repaired or not, and an epsilon that grows."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
