"""Auto-encoders that rewrite texts: ADePT, as published and repaired."""

from __future__ import annotations

from .adept import VARIANTS, ADePT

__all__ = ["VARIANTS", "ADePT"]
