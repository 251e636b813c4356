"""Which noise layers behind an encoder of texts keep their claim, and which faults are found?"""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
