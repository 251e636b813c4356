"""Random streams: seeds, purposes and blocks; arrays to fill; the global generators.

A noise has no part in the name of a stream: all noises read the same words at one seed, purpose,
side and block.
"""

from .filling import array_for, check_size
from .seeds import (
    BLOCK_ELEMENTS,
    COUNT,
    MOST_DRAWS,
    PAIRS,
    PILOT,
    PROBE,
    SAMPLE,
    SELECTION,
    Rng,
    block_of,
    seed_of,
    threads_of,
)

__all__ = [
    "BLOCK_ELEMENTS",
    "COUNT",
    "MOST_DRAWS",
    "PAIRS",
    "PILOT",
    "PROBE",
    "SAMPLE",
    "SELECTION",
    "Rng",
    "array_for",
    "block_of",
    "check_size",
    "seed_of",
    "threads_of",
]
