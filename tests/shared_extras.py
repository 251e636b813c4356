"""Optional packages: a test that needs one is marked `extras`, and skips where it is missing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

CUDA = pytest.param("cuda", marks=pytest.mark.gpu)
"""A device as a parameter of a test."""

ALL = "DPCORE_EXTRAS" in os.environ
"""Set where every extra is installed: what would be skipped for want of one fails."""


NEEDING_MODULES: set[str] = set()
"""Modules of tests that call `needs` at their top: each of their tests has the marker `extras`."""

RUNNING: list[pytest.Item] = []
"""The test that this process runs, or none while tests are collected."""


def needs(*names: str) -> Any:
    """Return the module of the first name; skip the test where one of the modules is missing.

    A test that calls this, itself or through a fixture, must have the marker `extras`, by which
    the run with optional packages selects its tests. A call at the top of a module marks all its
    tests.
    """
    caller = sys._getframe(1)
    if caller.f_code.co_name == "<module>":
        NEEDING_MODULES.add(caller.f_globals["__name__"])
    elif RUNNING and RUNNING[0].get_closest_marker("extras") is None:
        pytest.fail(f"{RUNNING[0].nodeid} needs {', '.join(names)}: mark it @pytest.mark.extras")
    if not ALL:
        for name in names:
            package = name.partition(".")[0]
            # A package that is installed may still need another version of a third one.
            pytest.importorskip(name, reason=f"{package} is not installed", exc_type=ImportError)
    first, *_ = [import_module(name) for name in names]
    return first


def mark_slow(names: Iterable[str], slow: Iterable[str]) -> list[Any]:
    """Return the names as parameters of a test, the slow ones with the marker `sweep`."""
    slow = {*slow}
    return [pytest.param(name, marks=pytest.mark.sweep) if name in slow else name for name in names]


def data(*parts: str) -> Path:
    """A place in the folder of real corpora, which are no part of the project; else a skip."""
    folder, name = os.environ.get("DPCORE_DATA"), "/".join(parts) or "corpora"
    if folder is None or not Path(folder, *parts).exists():
        pytest.skip(f"DPCORE_DATA names no folder with {name}")
    return Path(folder, *parts)
