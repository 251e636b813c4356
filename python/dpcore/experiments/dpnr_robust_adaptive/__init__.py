"""Does noise in training help a text classifier under noise, and does changing noise help?"""

from .experiment import NAME, Config, Result, run
from .models import Model

__all__ = ["NAME", "Config", "Model", "Result", "run"]
