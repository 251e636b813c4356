"""Groups of texts by the value of an attribute: how well the attack and the main task do there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ...bounds import limits
from ...records import Record
from .attackers import Attacker, fitted
from .encoding import Vectors
from .judging import Measured
from .targets import Codes, Target

__all__ = ["Group", "groups_of", "main_task"]

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Group(Record):
    """The test texts of one value of an attribute.

    Attributes:
        attribute: name of the attribute.
        value: its value.
        texts: how many test texts have it.
        attack: share of them whose value is inferred.
        main: share of them whose main label is predicted, or None.
        gap: `main` here less `main` of all other test texts, or None.
    """

    attribute: str
    value: Any
    texts: int
    attack: Measured
    main: Measured | None
    gap: Measured | None


def main_task(
    attacker: Attacker,
    vectors: Sequence[Vectors],
    labels: Sequence[npt.NDArray[Any]],
    seed: int,
) -> Flags | None:
    """Which test texts' main labels the attacker's own classifier predicts; None for one label.

    Each label is told from all others, which every classifier of two values can, and the highest
    score is the prediction.

    Args:
        attacker: the estimator and transform that infer the attribute; here they learn the label.
        vectors: of the texts of train, valid and test.
        labels: their main labels.
        seed: of the estimator.
    """
    known = np.unique(labels[0])
    if len(known) < 2:
        return None
    target = Target(tuple(map(str, known)), ((0, 1),) * len(known))
    truth = (labels[0][:, np.newaxis] == known).astype(np.int64)
    scores = fitted(attacker, vectors[0], truth, target, seed).scores(vectors[2])
    right: Flags = known[scores.argmax(axis=1)] == labels[2]
    return right


def groups_of(
    target: Target, truth: Codes, answers: Codes, main: Flags | None, confidence: float
) -> tuple[Group, ...]:
    """Every value of every attribute; of several attributes the positive value only.

    Args:
        target: what is inferred.
        truth: codes of the test texts, shape (n, attributes).
        answers: what the attacker answers, of the same shape.
        main: which main labels are predicted rightly, or None.
        confidence: of each interval by itself.
    """
    found = []
    for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
        right = answers[:, column] == truth[:, column]
        for code, value in enumerate(values):
            here = truth[:, column] == code
            if not here.any() or (target.several and code == 0):
                continue
            both = None if main is None or here.all() else (main[here], main[~here])
            found.append(
                Group(
                    name, value, int(here.sum()), _share(right[here], confidence),
                    None if main is None else _share(main[here], confidence),
                    None if both is None else _gap(*both, confidence),
                )
            )  # fmt: skip
    return tuple(found)


def _share(right: Flags, confidence: float) -> Measured:
    k, n = int(right.sum()), len(right)
    return Measured(k / n, *limits(k, n, (1.0 - confidence) / 2.0), "Clopper-Pearson")


def _gap(first: Flags, second: Flags, confidence: float) -> Measured:
    """The difference of two shares (Newcombe, 1998, method 10, with the exact limits of each)."""
    one, other = _share(first, confidence), _share(second, confidence)
    gap = one.value - other.value
    low = gap - math.hypot(one.value - one.low, other.high - other.value)
    high = gap + math.hypot(one.high - one.value, other.value - other.low)
    return Measured(gap, max(-1.0, low), min(1.0, high), "Newcombe")
