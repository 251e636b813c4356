"""DPText: the published system that the package was founded to check, trained on texts."""

from __future__ import annotations

from .model import NOISES, DPText

__all__ = ["NOISES", "DPText"]
