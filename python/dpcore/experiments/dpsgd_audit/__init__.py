"""Which faults of DP-SGD does an audit of one step, one run or many runs see?"""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
