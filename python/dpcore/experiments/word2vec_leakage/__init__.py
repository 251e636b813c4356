"""Attack that infers words from their word2vec vectors, with vectors that the attacker trains."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
