"""Figure 1 of Habernal (2022): the empirical privacy loss of mechanisms, cell by cell."""

from .experiment import MECHANISMS, NAME, Cell, Config, Result, run

__all__ = ["MECHANISMS", "NAME", "Cell", "Config", "Result", "run"]
