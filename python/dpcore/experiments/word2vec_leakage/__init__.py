"""Attack that infers words from their word2vec vectors, by means of vectors of the attacker."""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
