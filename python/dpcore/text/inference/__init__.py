"""Attribute inference from encoded texts: an attacker chosen once, evaluated once."""

from __future__ import annotations

from .attackers import TRANSFORMS, Attacker, usual
from .metrics import Group, MainTask, Measured
from .record import (
    Floor,
    Inference,
    NumberFigures,
    OfAttribute,
    RankFigures,
    ScoredTexts,
    Scores,
)
from .run import NEIGHBOURS, infer

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
