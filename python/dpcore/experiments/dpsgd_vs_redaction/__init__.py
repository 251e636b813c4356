"""Leak of one text by a next-word model, after DP-SGD and after redaction."""

from .experiment import NAME, Config, Result, run

__all__ = ["NAME", "Config", "Result", "run"]
