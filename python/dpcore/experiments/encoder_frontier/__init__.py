"""What are the private vectors of an encoder good for, and what do they give away?"""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
