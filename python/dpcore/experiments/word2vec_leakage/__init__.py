"""Leakage of words from their vectors to an attacker who trains other vectors (word2vec)."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
