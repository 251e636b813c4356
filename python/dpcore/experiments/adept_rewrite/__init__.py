"""What do rewrites of texts leave of them, at the epsilon that is true and not the one claimed?"""

from .experiment import NAME, Config, Result, run
from .rewriting import Cell, Row

__all__ = ["NAME", "Cell", "Config", "Result", "Row", "run"]
