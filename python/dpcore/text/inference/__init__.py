"""Inference of private attributes from encoded texts, by an attacker chosen on validation texts."""

from __future__ import annotations

from .attackers import TRANSFORMS as TRANSFORMS
from .attackers import Attacker, usual
from .encodings import Encodings
from .metrics import Group, MainTask, Measured
from .outcomes import Floor, NumberFigures, OfAttribute, OfMeasure, RankFigures, Scores
from .record import Inference
from .record import ScoredTexts as ScoredTexts
from .run import NEIGHBOURS as NEIGHBOURS
from .run import infer

__all__ = [
    "Attacker", "Encodings", "Floor", "Group", "Inference", "MainTask", "Measured",
    "NumberFigures", "OfAttribute", "OfMeasure", "RankFigures", "Scores", "infer", "usual",
]  # fmt: skip
