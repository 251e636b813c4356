"""What an attacker infers of private attributes from encoded texts: chosen once, evaluated once."""

from __future__ import annotations

from .attackers import Attacker, usual
from .certifying import NEIGHBOURS
from .groups import Group
from .judging import Measured
from .record import Floor, Inference, OfAttribute, ScoredTexts, Scores
from .run import infer
from .transforms import TRANSFORMS

__all__ = [
    "NEIGHBOURS",
    "TRANSFORMS",
    "Attacker",
    "Floor",
    "Group",
    "Inference",
    "Measured",
    "OfAttribute",
    "ScoredTexts",
    "Scores",
    "infer",
    "usual",
]
