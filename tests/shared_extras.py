"""Optional packages: a test that needs one skips without it, and never where CI has them all."""

from __future__ import annotations

import os
from importlib import import_module
from typing import Any

import pytest

ALL = "DPCORE_EXTRAS" in os.environ
"""Set where every extra is installed: what would be skipped for want of one fails."""


def needs(*names: str) -> Any:
    """The module of the first name, with all others there too; the test is skipped without one."""
    if not ALL:
        for name in names:
            pytest.importorskip(name, reason=f"{name.partition('.')[0]} is not installed")
    found = [import_module(name) for name in names]
    return found[0]
