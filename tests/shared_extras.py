"""Optional packages: a test that needs one skips without it, and never where CI has them all."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ALL = "DPCORE_EXTRAS" in os.environ
"""Set where every extra is installed: what would be skipped for want of one fails."""


def needs(*names: str) -> Any:
    """The module of the first name, with all others there too; the test is skipped without one."""
    if not ALL:
        for name in names:
            package = name.partition(".")[0]
            # One that is there may still want another version of a third.
            pytest.importorskip(name, reason=f"{package} is not installed", exc_type=ImportError)
    first, *_ = [import_module(name) for name in names]
    return first


def data(*parts: str) -> Path:
    """A place in the folder of real corpora, which are no part of the project; else a skip."""
    folder, name = os.environ.get("DPCORE_DATA"), "/".join(parts) or "corpora"
    if folder is None or not Path(folder, *parts).exists():
        pytest.skip(f"DPCORE_DATA names no folder with {name}")
    return Path(folder, *parts)
