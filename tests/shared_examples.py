"""How many examples slower tests of hypothesis have: fewer than others, and in a search more."""

from __future__ import annotations

from typing import Any

from hypothesis import settings


def examples(number: int, **more: Any) -> settings:
    """So many for each hundred that the profile in force gives the others."""
    return settings(max_examples=number * settings.default.max_examples // 100, **more)
