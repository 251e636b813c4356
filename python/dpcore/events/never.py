"""The event that does not happen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .counting import EventRecord

__all__ = ["Never"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Never(EventRecord, word="Never"):
    """The event of an attack that found nothing: it does not happen, and certifies 0."""

    happens: ClassVar[bool] = False

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return False for every output."""
        return np.zeros(len(outputs), np.bool_)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "no event told the two sides apart on the pilot"
