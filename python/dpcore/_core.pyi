"""Compiled core. It is private: `dpcore.sample` and `dpcore.audit` check arguments and call it.

A *description* of a mechanism is (class name, numbers in the order of the fields, mode, (norm,
radius) of the clipping or None, factor). *Draws* are named by (seed, purpose, side, trials per
block).

The *layout* of an additive score is (transform, edges, offsets, keys). Column i has the sorted
edges `edges[offsets[i]:offsets[i + 1]]`. It has one bin more than edges, and another bin for NaN.
`keys` has the number that each bin adds to a row's pattern, or is empty. The *table* of the score
is (keys, first, groups). `keys` are the patterns in the order of their hash, which is the k top
bits of key * 0x9e3779b97f4a7c15. `first` has the place at which the patterns of each hash begin
(2^k + 1 places). `groups` has the group of bin weights for each pattern.

A *grain* is (bits, middle, absolute), see `dpcore.attacks.grains.Grain`. *Grains* are one array for
each of these three values.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

_Description = tuple[str, list[float], str, tuple[str, float] | None, float]
_Draws = tuple[int, int, int, int]
_Vector = npt.NDArray[np.float64]
_Matrix = npt.NDArray[np.float64]
_Rows = npt.NDArray[np.float32] | npt.NDArray[np.float64]
_Layout = tuple[str, _Vector, npt.NDArray[np.int64], npt.NDArray[np.uint64]]
_Table = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint32], npt.NDArray[np.uint32]]

_Ids = npt.NDArray[np.uint32]
_Places = npt.NDArray[np.int64]
_Flags = npt.NDArray[np.bool_]
_Grain = tuple[int, float, float]
_Grains = tuple[npt.NDArray[np.int64], _Vector, _Vector]

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
    """Count the votes for x' in the trials [start, stop), and the NaN entries in their outputs."""

def count_outputs(
    outputs: npt.NDArray[np.float64], threshold: _Vector, towards: npt.NDArray[np.int8]
) -> tuple[int, int]:
    """Count the votes for x' in given outputs, shape (size, dim), and their NaN entries."""

def no_integer_route(description: _Description) -> str | None:
    """Return the reason why a noise has no integer route, or None if it has one."""

def noise_at(
    description: _Description, words: npt.NDArray[np.uint64]
) -> npt.NDArray[np.float64] | None:
    """Return the noise at chosen random words; None for Gaussian noise, which needs two words.

    For a word that the sampler would reject, the value of the sampler's formula is returned.
    """

def ln(j: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of j / 2^52 as the samplers compute it, for 1 <= j <= 2^52."""

def clip(x: _Vector, norm: str, radius: float) -> npt.NDArray[np.float64]:
    """Return the point clipped to a ball, as inside a mechanism."""

def score_closer(
    outputs: npt.NDArray[np.float64], x: _Vector, x_prime: _Vector, norm: str, out: _Vector
) -> None:
    """Fill `out` with scores that are larger the closer an output is to `x` than to `x_prime`.

    "l1": the sum over entries of |y - x'| - |y - x|. A term is exactly the distance of x and x' if
    y lies beyond both. "l2": half the difference of the squared distances. NaN gives NaN.
    """

def score_finer(
    outputs: npt.NDArray[np.float64],
    exponent: int,
    window: tuple[float, float],
    every: bool,
    out: _Vector,
) -> None:
    """Fill `out` with 1 for entries in a window that are not multiples of 2^-exponent, else 0.

    The window includes its lower end. If `every` is True, all entries of an output must satisfy
    this condition.
    """

def score_additive(
    outputs: npt.NDArray[np.float64],
    layout: _Layout,
    table: _Table,
    pattern_weights: _Vector,
    weights: npt.NDArray[np.float64],
    out: _Vector,
) -> None:
    """Fill `out` with each output's pattern weight plus the weights of its bins, in column order.

    `weights` has a row for each group, or is empty. A pattern that is not in the table has weight 0
    and is in group 0.
    """

def count_additive(
    outputs: npt.NDArray[np.float64],
    layout: _Layout,
    table: _Table,
    pattern_counts: npt.NDArray[np.uint64],
    counts: npt.NDArray[np.uint64],
) -> None:
    """Count the occurrences of each pattern, and of each bin in each group.

    `pattern_counts` has one place more than the table, for patterns that are not in the table.
    """

def pattern_keys(
    outputs: npt.NDArray[np.float64], layout: _Layout, out: npt.NDArray[np.uint64]
) -> None:
    """Fill `out` with the pattern of each output."""

def bin_counts(values: _Vector, edges: _Vector, out: npt.NDArray[np.uint64]) -> None:
    """Fill `out`, of length `len(edges) + 1`, with the number of values that have j edges <= them.

    The `edges` are sorted. A value that is NaN is not in any bin.
    """

def count_below(sorted: _Matrix, points: _Matrix) -> npt.NDArray[np.int64]:
    """Return the number of values in each sorted row that are below each point of that row."""

def compare_columns(columns: _Matrix, split: int) -> tuple[_Vector, _Vector]:
    """Return Pearson's statistic and its degrees of freedom for each row, cut at `split`."""

def compare_remainders(columns: _Matrix, split: int, moduli: _Vector) -> tuple[_Vector, _Vector]:
    """Return the same for remainders, moduli fastest; freedom 0 if a modulus does not apply."""

def pairs_beyond(
    law: tuple[str, float], clip: tuple[str, float], dim: int, pairs: int, seed: int, threads: int
) -> int:
    """Count pairs of random vectors that are more than 2C apart in L1 after clipping to radius C.

    The number of pairs is `pairs`. `law` is ("uniform", a) for entries between -a and a, or
    ("normal", standard deviation). `clip` is ("l1" or "l2", C). "More" means more than 2C
    (1 + 1e-12). The pairs depend only on the law, `dim` and `seed`.
    """

def log_gamma_ratio(x: _Vector, b: float) -> _Vector:
    """Return the difference ln Gamma(x + b) - ln Gamma(x), for x > 0 and x + b > 0."""

def digamma(x: float) -> float:
    """Return the logarithmic derivative of Gamma, for x > 0."""

def ball_values(
    n: _Places,
    j: _Places,
    atom: _Flags,
    weight: _Vector,
    size_own: int,
    size_other: int,
    alphas: _Vector,
) -> tuple[_Vector, _Vector]:
    """Compute divergences and effective numbers of terms from counts in balls, shape (A,) each.

    Entry i represents `weight[i]` rows. Their ball contains `n[i]` other rows of their own set and
    `j[i]` rows of the other set (minus one, unless `atom[i]`).
    """

def ball_counts(
    queries: _Ids,
    other: tuple[_Places, _Ids, _Vector],
    own: tuple[_Places, _Ids, _Places, _Flags, _Flags],
    own_points: _Ids,
    other_points: _Ids,
    w_own: _Ids,
    w_other: _Ids,
    depth: int,
    rows0: npt.NDArray[Any],
    rows1: npt.NDArray[Any],
    first: _Places,
    threads: int,
) -> tuple[_Places, _Places, _Flags, int, int]:
    """Return n, j and True if the ball has all points, per query; and numbers of repeated searches.

    Points are pooled ids. `other` is (starts, ids, squared): the neighbours of each query in the
    other set, nearest first, with complete groups of equal distances. `own` is (starts, ids, upto,
    inverted, capped): points of the query's own set. The first `upto[s]` of them are within the
    distance of entry s of `other`. If `inverted`, the points after the first `upto[s]` are outside
    this distance. If `capped`, no points are listed. `own_points` and `other_points` are all points
    that are searched. `w_own` and `w_other` are the numbers of copies of every point, and `first`
    is its place in the stacked rows. A ball contains `depth` copies of the other set. Lists that
    end earlier (run-outs) and capped lists (rescans) are searched again.
    """

def ball_replicates(
    queries: _Ids,
    other: tuple[_Places, _Ids, _Vector],
    own: tuple[_Places, _Ids, _Places, _Flags, _Flags],
    own_points: _Ids,
    other_points: _Ids,
    atoms: _Ids,
    w_own: _Ids,
    w_other: _Ids,
    depth: int,
    alphas: _Vector,
    rows0: npt.NDArray[Any],
    rows1: npt.NDArray[Any],
    first: _Places,
    threads: int,
) -> tuple[_Vector, int, int]:
    """Compute divergences of replicates, shape (R, A), and the total run-outs and rescans.

    The arguments are those of `ball_counts`, with `w_own` and `w_other` of shape (R, u). `atoms`
    are the points of the own set that are not queries.
    """

def line_ball(
    values0: _Vector,
    values1: _Vector,
    alphas: _Vector,
    k: int,
    labels0: _Places | None,
    units0: int,
    labels1: _Places | None,
    units1: int,
    weights0: _Ids | None,
    weights1: _Ids | None,
    threads: int,
) -> tuple[_Vector, _Vector, list[int], list[float], list[float], float, _Vector]:
    """Compute divergences of two sets of numbers in both directions.

    With labels (the group of every row), each replicate leaves out one group, first the groups of
    set 0, then those of set 1. With weights, shape (R, N), each row is present as often as its
    weight. The result has the values and effective numbers of terms (both of length 2 A), the
    depths, the shares of rows on atoms that the other set lacks, the shares on atoms, the number of
    rows per repeated value, and the replicates' values (of length R 2 A).
    """

def pool_rows(
    rows0: _Rows, rows1: _Rows
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Return the number of each row's distinct row, and each distinct row's first place.

    The rows of both sets, float32 or float64, are stacked: row i of `rows1` is row len(rows0) + i.
    Distinct rows are numbered in the order of their first occurrence. -0.0 equals 0.0.
    """

def nearest(
    rows0: _Rows,
    rows1: _Rows,
    queries: npt.NDArray[np.int64],
    points: npt.NDArray[np.int64],
    depth: int,
    threads: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint32], _Vector, int]:
    """Return the `depth` nearest points of every query, and all points as far as the last one.

    The result is (starts, places, squared, rescans). Queries and points are rows of the stack. The
    neighbours of query i are `starts[i]:starts[i + 1]` in `places` (positions in `points`) and in
    `squared` (squared distances), in the order of (squared, place). `rescans` is the number of
    queries with more candidates than their memory holds, which were searched in f64. All other
    results are the same on every CPU. A row with a NaN has no neighbours and is no neighbour.
    """

def inside(
    rows0: _Rows,
    rows1: _Rows,
    queries: npt.NDArray[np.int64],
    points: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    squared: _Vector,
    cap: int,
    threads: int,
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.int64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    int,
]:
    """Return points within each of a query's ascending radii `squared[starts[i]:starts[i + 1]]`.

    The result is (own_starts, places, upto, inverted, capped, rescans). The list of query i,
    `places[own_starts[i]:own_starts[i + 1]]`, is in the order of (radius, place). Its first
    `upto[s]` points are within radius s. A list is inverted if more than half of the points are
    within the first radius, and fewer points are outside it than within the last radius. An
    inverted list holds the points outside the first radius, and the points after the first
    `upto[s]` are outside radius s. A list is capped if it would have more than `cap` points; it is
    then empty. `rescans` is the number of queries that were searched twice, for the points on the
    other side. A row with a NaN is in no ball.
    """

def prepare_rows(
    log_rows: npt.NDArray[np.float64],
    thresholds: npt.NDArray[np.uint64],
    entries: npt.NDArray[np.uint32],
    threads: int,
) -> None:
    """Fill `thresholds` and `entries` with the alias rows of log weights; all of shape (n, V)."""

def draw_words(
    thresholds: npt.NDArray[np.uint64],
    entries: npt.NDArray[np.uint32],
    slots: npt.NDArray[np.int64],
    inputs: npt.NDArray[np.int64],
    seed: int,
    out: npt.NDArray[np.int64],
    threads: int,
) -> None:
    """Fill `out` with draws from prepared rows; draw i is on word `inputs[i % len(inputs)]`.

    `slots` has the row of each word, or -1 if `out` keeps its value for this word.
    """

def add_noise(
    vectors: npt.NDArray[np.float64],
    inputs: npt.NDArray[np.int64],
    scale: float,
    seed: int,
    start: int,
    out: npt.NDArray[np.float64],
    coins: _Vector,
    threads: int,
) -> None:
    """Fill `out`, shape (n, dim), with noisy vectors, and `coins` with one uniform number each.

    The noise has a density proportional to exp(-norm / scale). The rows are the draws from `start`
    on; draw i is on word `inputs[i % len(inputs)]`.
    """

def cpu() -> str:
    """Return the instruction set in use: baseline, avx2 or avx512."""

def cpus() -> list[str]:
    """Return the instruction sets that this CPU has, slowest first."""

def cores() -> int:
    """Return the number of cores that this process may use."""

def find_instances(objects: list[Any], kinds: list[type]) -> list[Any]:
    """Return the objects that are exactly of `kinds`, among `objects` and what they refer to.

    Tuples and dictionaries that the garbage collector does not track are searched together with the
    objects that refer to them.
    """

def table_ratios(
    rows: _Matrix, others: _Matrix, ahead: _Matrix, back: _Matrix, threads: int
) -> None:
    """Fill `ahead` and `back`, shape (others, rows), with the largest log ratios of all pairs."""

def table_sticks(
    rows: _Matrix, others: _Matrix, factors: _Matrix, ahead: _Matrix, back: _Matrix, threads: int
) -> None:
    """Compute hockey-stick divergences from probabilities and a factor for each pair."""

def table_logarithms(values: _Matrix, out: _Matrix, threads: int) -> None:
    """Fill `out` with the natural logarithms of probabilities; -inf for zero."""

def parse_cells(
    data: bytes,
    separator: str,
    quotes: bool,
    roles: str,
    lines: int,
    empty: int,
    rows: int,
    is_last: bool,
    leaves_out_empty: bool,
) -> tuple[tuple[str, int, int] | None, tuple[int, int, int, int], list[dict[str, Any]], list[int]]:
    """Read the whole rows of a slice of a text table.

    Args:
        data: text in UTF-8.
        separator: separator between cells; empty if a line is a single cell.
        quotes: True if quotation marks enclose cells.
        roles: for each column "n" for numbers, "t" for texts, "-" for none; empty if all columns of
            the first row are texts.
        lines: number of lines above the slice.
        empty: number of the first empty line above the slice, or 0.
        rows: largest number of rows to read.
        is_last: True if nothing follows the slice.
        leaves_out_empty: True to leave out empty lines, and to return the line of each row.

    Returns:
        The fault with its line and cell, or None; the numbers of bytes, rows and lines that were
        read, and the first empty line; the arrays of each column; and the line of each row.
    """

def steps_of(values: _Vector, grain: _Grain) -> npt.NDArray[np.int8]:
    """Classify each step between neighbouring sorted finite values: 0 same, 1 near, 2 apart."""

def cuts_of(values: _Vector, grain: _Grain) -> npt.NDArray[np.int64]:
    """Return places i at which an edge between sorted values i and i + 1 splits no real number."""

def bin_columns(
    values: _Vector, ends: npt.NDArray[np.int64], grains: _Grains, bins: int, threads: int
) -> tuple[_Vector, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut columns into bins.

    Args:
        values: the columns one after the other, each sorted with NaN last.
        ends: end of each column.
        grains: grains of the columns.
        bins: number of quantile bins of a column, in addition to the bins in its tails.
        threads: largest number of threads.

    Returns:
        The edges of all columns, the number of edges of each, and the symbols of all bins.
    """

def gather_columns(
    rows: _Matrix, columns: npt.NDArray[np.int64], differences: bool
) -> npt.NDArray[np.float64]:
    """Return some columns of rows, one after the other, or their increase over the previous one."""

def measure_columns(
    rows: _Matrix, rows_prime: _Matrix, own: int, threads: int
) -> tuple[_Vector, _Flags]:
    """Return median magnitudes of columns, and flags of columns that need all bits of `own`."""

def judge_columns(
    columns: _Matrix,
    columns_prime: _Matrix,
    are_floats: tuple[bool, bool],
    own: int,
    most: int,
    threads: int,
) -> tuple[npt.NDArray[np.int64], _Vector]:
    """Return bits and middles of the grains of columns, which are the rows of both arrays.

    Args:
        columns: values on x, shape `(columns, size)`.
        columns_prime: values on x'.
        are_floats: for each side, True if it was an array of floats.
        own: significant bits of the narrower type.
        most: number of first values per side from which a format is determined.
        threads: largest number of threads.
    """
