"""Effect of masked words on the inference of the set, the document and the words."""

from .experiment import NAME, Config, Result, run

__all__ = ["NAME", "Config", "Result", "run"]
