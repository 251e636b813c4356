"""Attack that infers words from word2vec vectors, with word vectors that the attacker trains."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
