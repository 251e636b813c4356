"""Which objects of a test process an audit sees."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def few_objects() -> Iterator[None]:
    """Hide what was there before a test from the search for generators, which looks at it all.

    With torch and scikit-learn that is most of the time of an audit. Global generators are known
    without a search, and a test's own are made after this.
    """
    gc.freeze()
    yield
    gc.unfreeze()
