"""Audits of noise layers behind an encoder of texts: claims that hold, and faults found."""

from .experiment import NAME, Config, Result, Row, run

__all__ = ["NAME", "Config", "Result", "Row", "run"]
