"""What does masking words hide: the set, the document, the words?"""

from .experiment import NAME, Config, Result, run

__all__ = ["NAME", "Config", "Result", "run"]
