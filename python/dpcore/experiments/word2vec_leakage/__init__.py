"""Leakage of words from their word2vec vectors to an attacker who trains other vectors."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
