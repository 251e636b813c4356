"""Do vectors of words tell the words to somebody who learns vectors of his own?"""

from .experiment import NAME, Cell, Config, Result, run

__all__ = ["NAME", "Cell", "Config", "Result", "run"]
