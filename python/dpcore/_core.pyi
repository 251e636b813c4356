"""The compiled core. Private: `dpcore.sample` and `dpcore.audit` check arguments and call it.

A *description* is (class name, numbers in the order of the fields, mode, (norm, radius) of the
clip or None, factor); *draws* is (seed, purpose, side, trials per block).
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_Description = tuple[str, list[float], str, tuple[str, float] | None, float]
_Draws = tuple[int, int, int, int]
_Vector = npt.NDArray[np.float64]

__version__: str
LANES: int
MOST_THREADS: int
NOISES: list[str]

def sample(
    description: _Description,
    x: _Vector,
    out: npt.NDArray[Any],
    draws: _Draws,
    start: int,
    threads: int,
) -> None:
    """Fill `out`, float64 or float32 of shape (size, dim), with the trials from `start` on."""

def count(
    description: _Description,
    x: _Vector,
    threshold: _Vector,
    towards: npt.NDArray[np.int8],
    draws: _Draws,
    trials: tuple[int, int],
    route: str,
    threads: int,
) -> tuple[int, int]:
    """Votes for x' among the trials [start, stop), and NaN entries in their outputs."""

def count_outputs(
    outputs: npt.NDArray[np.float64],
    threshold: _Vector,
    towards: npt.NDArray[np.int8],
) -> tuple[int, int]:
    """Votes for x' among given outputs, shape (size, dim), and their NaN entries."""

def no_integer_route(description: _Description) -> str | None:
    """Why a noise has no integer route, or None if it has one."""

def noise_at(
    description: _Description, words: npt.NDArray[np.uint64]
) -> npt.NDArray[np.float64] | None:
    """The noise at chosen random words; None for Gaussian noise, which takes two.

    A word that the sampler would reject gives whatever its formula gives.
    """

def ln(j: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """The logarithm of j / 2^52 as the samplers compute it, for 1 <= j <= 2^52."""

def clip(x: _Vector, norm: str, radius: float) -> npt.NDArray[np.float64]:
    """The point clipped to a ball, as inside a mechanism."""

def cpu() -> str:
    """The instruction set that runs: baseline, avx2 or avx512."""

def cpus() -> list[str]:
    """The instruction sets that this CPU has, slowest first."""

def cores() -> int:
    """Cores this process may run on."""
