"""The compiled core. Private: `dpcore.sample` and `dpcore.audit` check arguments and call it.

A *description* is (class name, numbers in the order of the fields, mode, (norm, radius) of the
clip or None, factor); *draws* is (seed, purpose, side, trials per block).

An additive score's *layout* is (transform, edges, offsets, keys): column i has the sorted edges
`edges[offsets[i]:offsets[i + 1]]`, one bin more than edges and another for NaN; `keys` has what
each bin adds to a row's pattern, or nothing. Its *table* is (keys, first, groups): the patterns in
the order of their hash, the k top bits of key * 0x9e3779b97f4a7c15, where the patterns of each
hash begin (2^k + 1 places), and the group of bin weights that each names.

A *grain* is (bits, middle, absolute), see `dpcore.attacks.grains.Grain`; *grains* are an array of
each.
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
    """Return the noise at chosen random words; None for Gaussian noise, which takes two.

    A word that the sampler would reject gives whatever its formula gives.
    """

def ln(j: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Return the logarithm of j / 2^52 as the samplers compute it, for 1 <= j <= 2^52."""

def clip(x: _Vector, norm: str, radius: float) -> npt.NDArray[np.float64]:
    """Return the point clipped to a ball, as inside a mechanism."""

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

def score_finer(
    outputs: npt.NDArray[np.float64],
    exponent: int,
    window: tuple[float, float],
    every: bool,
    out: _Vector,
) -> None:
    """Fill `out` with 1 where entries are in a window and no multiples of 2^-exponent, else 0.

    The window has its lower end. `every` is True if all entries of an output must be such numbers.
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

def count_below(sorted: _Matrix, points: _Matrix) -> npt.NDArray[np.int64]:
    """Return how many values of each sorted row are below each point of that row."""

def compare_columns(columns: _Matrix, split: int) -> tuple[_Vector, _Vector]:
    """Return Pearson's statistic and its freedom for each row of `columns`, cut at `split`."""

def compare_remainders(columns: _Matrix, split: int, moduli: _Vector) -> tuple[_Vector, _Vector]:
    """Return the same of remainders, moduli fastest; freedom 0 where a modulus does not apply."""

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
    """Divergences and effective numbers of terms from the counts in balls, shape (A,) each.

    Entry i stands for `weight[i]` rows with `n[i]` others of their own set and `j[i]` of the other
    set (but one, unless `atom[i]`) in their ball.
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
    """n, j and whether the ball is everything, for each query; run-outs and rescans.

    Points are pooled ids. `other` is (starts, ids, squared): the neighbours of each query in the
    other set, nearest first, tie shells whole. `own` is (starts, ids, upto, inverted, capped):
    points of its own set, of which the first `upto[s]` of the query are within the distance of
    entry s of `other`, or those after them beyond it where `inverted`; none where `capped`.
    `own_points` and `other_points` are all that are searched, `w_own` and `w_other` the copies of
    every point, `first` where it is among the stacked rows. A ball reaches `depth` copies of the
    other set; lists that end before (run-outs) and capped ones (rescans) are searched again.
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
    """Divergences of replicates, shape (R, A); run-outs and rescans over all of them.

    As `ball_counts`, with `w_own` and `w_other` of shape (R, u). `atoms` are the points of the own
    set that are no queries.
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
    """Divergences of two sets of numbers in both directions.

    With labels (the group of every row) replicate i lacks group i of set 0, then of set 1; with
    weights, shape (R, N), rows are present so often. Returns values and effective numbers of
    terms, both of length 2 A, depths, shares of rows on atoms that the other set lacks, shares on
    atoms, rows per repeated value, and the replicates' values, of length R 2 A.
    """

def pool_rows(
    rows0: _Rows, rows1: _Rows
) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
    """Which distinct row every row of either set is, and where each is first in the stack.

    Rows of both sets, float32 or float64, are stacked: row i of `rows1` is row len(rows0) + i.
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
    """Return the `depth` nearest points of every query, and all that are as far as the last.

    Returns (starts, places, squared, rescans). Queries and points are rows of the stack. Those of
    query i are `starts[i]:starts[i + 1]` in `places` (positions in `points`) and `squared`
    (squared distances), in the order of (squared, place). `rescans` queries had more candidates
    than their memory holds and were searched in f64; the rest is the same on every CPU. A row
    with a NaN has no neighbours and is nobody's.
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

    Returns (own_starts, places, upto, inverted, capped, rescans). The list of query i,
    `places[own_starts[i]:own_starts[i + 1]]`, is in the order of (radius, place); its first
    `upto[s]` are within radius s. Inverted (more than half of the points within the first radius,
    and fewer outside it than within the last): the list holds the points outside the first
    radius, and those after the first `upto[s]` are outside radius s. Capped: more than `cap`, none
    listed. `rescans` queries were searched twice, for the points on the other side. A row with a
    NaN is in no ball.
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

    `slots` has the row of each word, or -1 where `out` keeps what it has.
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
    """Fill `out`, shape (n, dim), with noisy vectors and `coins` with a uniform number each.

    The noise has density proportional to exp(-norm / scale). Rows are those of the draws from
    `start` on; draw i is on word `inputs[i % len(inputs)]`.
    """

def cpu() -> str:
    """Return the instruction set that runs: baseline, avx2 or avx512."""

def cpus() -> list[str]:
    """Return the instruction sets that this CPU has, slowest first."""

def cores() -> int:
    """Cores this process may run on."""

def find_instances(objects: list[Any], kinds: list[type]) -> list[Any]:
    """Return each object of `kinds`, exactly, among `objects` and what they refer to.

    Tuples and dictionaries that the garbage collector does not track are searched with what refers
    to them.
    """

def table_ratios(
    rows: _Matrix, others: _Matrix, ahead: _Matrix, back: _Matrix, threads: int
) -> None:
    """Fill `ahead` and `back`, shape (others, rows), with the largest log ratios of all pairs."""

def table_sticks(
    rows: _Matrix,
    others: _Matrix,
    factors: _Matrix,
    ahead: _Matrix,
    back: _Matrix,
    threads: int,
) -> None:
    """Compute hockey-stick divergences, of probabilities and a factor for each pair."""

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
    """Read the whole rows of a slice of a table in text.

    Args:
        data: text in UTF-8.
        separator: what stands between cells; empty where a line is a cell.
        quotes: whether quotation marks enclose cells.
        roles: for each column "n" for numbers, "t" for texts, "-" for none; empty where all
            columns of the first row are texts.
        lines: lines above the slice.
        empty: the first empty line above it, or 0.
        rows: rows to read at most.
        is_last: whether nothing follows.
        leaves_out_empty: whether empty lines are left out, and the lines of rows returned.

    Returns:
        The fault with its line and cell, or None; bytes, rows and lines that were read, and the
        first empty line; the arrays of each column; and the line of each row.
    """

def steps_of(values: _Vector, grain: _Grain) -> npt.NDArray[np.int8]:
    """Classify each step between neighbouring sorted finite values: 0 same, 1 near, 2 apart."""

def cuts_of(values: _Vector, grain: _Grain) -> npt.NDArray[np.int64]:
    """Return places i: an edge between sorted finite values i and i + 1 splits no real number."""

def bin_columns(
    values: _Vector, ends: npt.NDArray[np.int64], grains: _Grains, bins: int, threads: int
) -> tuple[_Vector, npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Cut columns into bins.

    Args:
        values: one column after the other, each sorted, NaN last.
        ends: where each ends.
        grains: of the columns.
        bins: quantile bins of a column, besides those in its tails.
        threads: threads to use at most.

    Returns:
        The edges of all columns, how many each has, and the symbols of all bins.
    """

def gather_columns(
    rows: _Matrix, columns: npt.NDArray[np.int64], differences: bool
) -> npt.NDArray[np.float64]:
    """Return some columns of rows one after the other, or what each adds to the column before."""

def measure_columns(
    rows: _Matrix, rows_prime: _Matrix, own: int, threads: int
) -> tuple[_Vector, _Flags]:
    """Return median magnitudes of columns, and which of them need all bits of the format `own`."""

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
        are_floats: whether each side was an array of floats.
        own: significant bits of the narrower type.
        most: first values of each side that a format is read off.
        threads: threads to use at most.
    """
