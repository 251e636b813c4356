"""The compiled core. Private: `dpcore.sample` and `dpcore.audit` check arguments and call it.

A *description* is (class name, numbers in the order of the fields, mode, (norm, radius) of the
clip or None, factor); *draws* is (seed, purpose, side, trials per block).

An additive score's *layout* is (transform, edges, offsets, keys): column i has the sorted edges
`edges[offsets[i]:offsets[i + 1]]`, one bin more than edges and another for NaN; `keys` has what
each bin adds to a row's pattern, or nothing. Its *table* is (keys, first, groups): the patterns in
the order of their hash, the k top bits of key * 0x9e3779b97f4a7c15, where the patterns of each
hash begin (2^k + 1 places), and the group of bin weights that each names.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_Description = tuple[str, list[float], str, tuple[str, float] | None, float]
_Draws = tuple[int, int, int, int]
_Vector = npt.NDArray[np.float64]
_Layout = tuple[str, _Vector, npt.NDArray[np.int64], npt.NDArray[np.uint64]]
_Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]

__version__: str
LANES: int
MOST_THREADS: int
NOISES: list[str]
MOST_PAIR_ENTRIES: int

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

def score_closer(
    outputs: npt.NDArray[np.float64],
    x: _Vector,
    x_prime: _Vector,
    norm: str,
    out: _Vector,
) -> None:
    """Fill `out` with how much closer each output is to `x` than to `x_prime`.

    "l1": the sum over entries of |y - x'| - |y - x|, each exactly the distance of x and x' where
    y lies beyond both. "l2": half the difference of the squared distances. NaN gives NaN.
    """

def score_additive(
    outputs: npt.NDArray[np.float64],
    layout: _Layout,
    table: _Table,
    pattern_weights: _Vector,
    weights: npt.NDArray[np.float64],
    out: _Vector,
) -> None:
    """Fill `out` with each output's pattern weight plus, column after column, its bins' weights.

    `weights` has a row for each group, or none at all. A pattern that is not in the table weighs 0
    and is in group 0.
    """

def count_additive(
    outputs: npt.NDArray[np.float64],
    layout: _Layout,
    table: _Table,
    pattern_counts: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.uint64],
) -> None:
    """Count how often each pattern and each bin of each group occurs.

    `pattern_counts` has one place more than the table, for the patterns that are not in it.
    """

def pattern_keys(
    outputs: npt.NDArray[np.float64], layout: _Layout, out: npt.NDArray[np.uint64]
) -> None:
    """Fill `out` with the pattern of each output."""

def bin_counts(values: _Vector, edges: _Vector, out: npt.NDArray[np.uint64]) -> None:
    """Fill `out`, of length `len(edges) + 1`, with how many values have j edges at or below them.

    `edges` are sorted; a value that is NaN is in no bin.
    """

def pairs_beyond(
    law: tuple[str, float],
    clip: tuple[str, float],
    dim: int,
    pairs: int,
    seed: int,
    threads: int,
) -> int:
    """Of `pairs` pairs of random vectors, those more than 2C apart in L1 once clipped to radius C.

    `law` is ("uniform", a) between -a and a, or ("normal", standard deviation), for every entry;
    `clip` is ("l1" or "l2", C). "More" is more than 2C (1 + 1e-12). The pairs depend on the law,
    `dim` and `seed` alone.
    """

def cpu() -> str:
    """The instruction set that runs: baseline, avx2 or avx512."""

def cpus() -> list[str]:
    """The instruction sets that this CPU has, slowest first."""

def cores() -> int:
    """Cores this process may run on."""
