"""Random streams: seeds, purposes and blocks; arrays to fill; the global generators."""

from .filling import array_for, sized
from .seeds import (
    BLOCK_ELEMENTS,
    COUNT,
    MOST_DRAWS,
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
    "PILOT",
    "PROBE",
    "SAMPLE",
    "SELECTION",
    "Rng",
    "array_for",
    "block_of",
    "seed_of",
    "sized",
    "threads_of",
]
