"""Texts for tests: the folder of public corpora, where there is one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data(*parts: str) -> Path:
    """A path in the folder that DPCORE_DATA names, else in ../shared/data beside the checkout.

    The test is skipped without it: the corpora are no part of the project.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("DPCORE_DATA", beside)).joinpath(*parts)
    if not path.exists():
        name = "/".join(parts) or "corpora"
        pytest.skip(f"no {name} where DPCORE_DATA says, or in ../shared/data")
    return path
