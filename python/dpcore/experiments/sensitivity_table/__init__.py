"""Every sensitivity in closed form: attained by its pair, and found from below by a search."""

from .experiment import ENTRIES, NAME, RADIUS, Config, Entry, Result, Row, identity, run

__all__ = ["ENTRIES", "NAME", "RADIUS", "Config", "Entry", "Result", "Row", "identity", "run"]
