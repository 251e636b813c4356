"""Does the divergence of two sets of texts grow with its order, or does the formula?"""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
