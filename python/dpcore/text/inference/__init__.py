"""Attribute inference from encoded texts: an attacker chosen once, evaluated once."""

from __future__ import annotations

from .attackers import Attacker, usual
from .certifying import NEIGHBOURS
from .groups import Group, MainTask
from .judging import Measured
from .record import (
    Floor,
    Inference,
    NumberFigures,
    OfAttribute,
    RankFigures,
    ScoredTexts,
    Scores,
)
from .run import infer
from .transforms import TRANSFORMS

__all__ = [
    "NEIGHBOURS",
    "TRANSFORMS",
    "Attacker",
    "Floor",
    "Group",
    "Inference",
    "MainTask",
    "Measured",
    "NumberFigures",
    "OfAttribute",
    "RankFigures",
    "ScoredTexts",
    "Scores",
    "infer",
    "usual",
]
