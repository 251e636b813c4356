"""Figure 1 of Habernal (2021): how many inputs of ADePT its Laplace noise does not protect."""

from .compared import COMPARED_PAIRS, COMPARISON
from .experiment import CONFIDENCE, NAME, NORMS, Cell, Config, Result, run

__all__ = [
    "COMPARED_PAIRS",
    "COMPARISON",
    "CONFIDENCE",
    "NAME",
    "NORMS",
    "Cell",
    "Config",
    "Result",
    "run",
]
