"""Does redaction bring models of a sensitive and of a safe set closer than chance?"""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
