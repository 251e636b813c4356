"""What does a next-word model show of one text, after DP-SGD and after redaction?"""

from .experiment import NAME, Config, Result, run

__all__ = ["NAME", "Config", "Result", "run"]
