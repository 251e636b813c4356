"""Seeds and purposes: what names a random stream, block by block."""

from __future__ import annotations

import secrets
from typing import Any, Final

import numpy as np

from .. import _core
from ..errors import integer, mistyped

Rng = int | np.random.Generator | None
"""Values that `rng=` may have: a seed, a generator, or None for fresh entropy."""

PILOT: Final = 0
SELECTION: Final = 1
COUNT: Final = 2
SAMPLE: Final = 3
PROBE: Final = 4
PAIRS: Final = 5
"""Purposes of draws: different ones never share a random number. The numbers are Rust's."""

BLOCK_ELEMENTS: Final = 2**17
"""Elements in a block of trials: 20 microseconds of counting, two milliseconds of numpy."""

BLOCK_ELEMENTS_ON: Final = {"cuda": 2**22}
"""The same on a device that is slow to be asked and quick to answer."""

MOST_DRAWS: Final = 2**63


def seed_of(rng: Rng) -> int:
    """Return the seed of a run, in [0, 2**63).

    Args:
        rng: None draws fresh entropy from the operating system (so a forked child never repeats
            its parent), an int in [0, 2**63) is the seed, from a Generator one integer is drawn.

    Raises:
        TypeError: if `rng` is none of these.
        ValueError: if an int is out of range.
    """
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return integer("rng", rng, 0, 2**63 - 1)
    raise mistyped("rng", "None, an int in [0, 2**63) or a numpy.random.Generator", rng)


def threads_of(threads: Any, default: int | None = None) -> int:
    """Return the number of threads: `default` (all cores) for None."""
    if threads is None:
        return _core.cores() if default is None else default
    return integer("threads", threads, 1, _core.MOST_THREADS)


def block_of(elements: int, device: str = "cpu") -> int:
    """Return the trials of a block of outputs of `elements` numbers, on every machine the same.

    Args:
        elements: numbers in one output.
        device: type of the device that a user's torch module is on.
    """
    return max(1, BLOCK_ELEMENTS_ON.get(device, BLOCK_ELEMENTS) // max(1, elements))
