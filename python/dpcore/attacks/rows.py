"""Outputs as rows of numbers: their atoms, and simple scores that need no model.

A score is a function of an output, higher for x: one entry, a distance, a sum, an extreme, or the
number of entries in a region. Atoms are found after values that differ only by rounding are merged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from .. import _core
from ..errors import choice, integer, invalid, mistyped, vector
from ..events.device_outputs import Held, Rough, as_float64, cache_per_device, rounding_slack
from ..records import Record, frozen_array, set_fields
from . import arrays
from .arrays import Array, Flags, Floats, Grain, Merged, Whole

MAX_CLUSTER_TOLERANCES: Final = 32.0
"""A cluster of more tolerances than this is a continuum that a huge scale has run together."""
_MIN_ATOM_COUNT: Final = 4
_MAX_VALUES_PER_ATOM: Final = 2**14
"""An atom has at least `_MIN_ATOM_COUNT` of the values, and one in `_MAX_VALUES_PER_ATOM`."""
_REPEAT_SAMPLE_ROWS: Final = 2**13
_MIN_MEAN_REPEATS: Final = 8


class Atoms(NamedTuple):
    """Values of positive probability: intervals that no other value is near.

    Args:
        lows: lower ends, increasing, shape `(atoms,)`.
        highs: upper ends, each below the next lower end.
        counts: how many of the values lie in each.
    """

    lows: Floats
    highs: Floats
    counts: Whole


def read_columns(outputs: Array) -> Array | None:
    """Return outputs as rows of numbers, shape `(size, entries)`; None for other kinds."""
    outputs = np.asarray(outputs)
    if outputs.dtype.kind not in "buif" or outputs.ndim == 0:
        return None
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:])))


def read_numbers(outputs: Array, entries: int | None = None, least: int = 0) -> Array:
    """Return outputs as rows of numbers, shape `(size, entries)`.

    Raises:
        TypeError: for outputs of other kinds.
        ValueError: for another number of entries than is wanted, or fewer than there must be.
    """
    rows = read_columns(outputs)
    if rows is None:
        raise mistyped("outputs", "real numbers", np.asarray(outputs).dtype)
    if entries not in (None, rows.shape[1]) or rows.shape[1] < least:
        wanted = f"of at least {least} entries" if entries is None else f"of {entries} entries"
        raise invalid("outputs", wanted, rows.shape)
    return rows


def read_both_sides(outputs: Array, outputs_prime: Array) -> tuple[Array, Array] | None:
    """Return the rows of numbers of both sides; None unless they are numbers of equal width.

    A pilot without outputs or entries has nothing to fit: None as well.
    """
    rows, rows_prime = read_columns(outputs), read_columns(outputs_prime)
    if rows is None or rows_prime is None or rows.shape[1] != rows_prime.shape[1]:
        return None
    return (rows, rows_prime) if rows.size and rows_prime.size else None


def atoms_of(values: Floats, grain: Grain, least: int | None = None) -> Atoms:
    """Return the atoms among sorted finite values.

    Clusters are what rounding does not tell apart (see `steps_of`); an atom's interval reaches a
    tolerance beyond its cluster, so that neighbours never touch and rounding never leaves it.

    Args:
        values: sorted, finite, shape `(size,)`.
        grain: of the column.
        least: how often an atom occurs; None for `_MIN_ATOM_COUNT` times and one in
            `_MAX_VALUES_PER_ATOM` values.

    Returns:
        The atoms, in increasing order.
    """
    least = max(_MIN_ATOM_COUNT, values.size // _MAX_VALUES_PER_ATOM) if least is None else least
    if not values.size:
        return Atoms(values, values, np.zeros(0, np.int64))
    steps = arrays.steps_of(values, grain)
    first, last = arrays.find_runs(steps == arrays.APART)
    counts = last - first + 1
    frequent = counts >= least
    first, last, counts = first[frequent], last[frequent], counts[frequent]
    lows, highs = values[first], values[last]
    width, reach = highs - lows, grain.at(np.maximum(np.abs(lows), np.abs(highs)))
    near = np.cumsum(np.append(0, steps == arrays.NEAR))
    # A run that holds values near each other and is wide is a continuum, not a number.
    kept = (width <= MAX_CLUSTER_TOLERANCES * reach) | (near[last] == near[first])
    lows, highs, reach = lows[kept], highs[kept], np.maximum(reach, width * (width > reach))[kept]
    return Atoms(lows - reach, highs + reach, counts[kept].astype(np.int64))


def loose_of(values: Floats, atoms: Atoms) -> Flags:
    """Return which finite values lie at no atom."""
    highs = np.append(-np.inf, atoms.highs)
    return values > highs[np.searchsorted(atoms.lows, values, side="right")]


def has_frequent_rows(rows: Array, rows_prime: Array) -> bool:
    """Return True if whole rows repeat so often that scores of patterns see each one.

    No product, sum or residue of the entries tells more than the pattern itself, and a score for
    it would only cost time.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        True if the first rows of both sides hold a row 8 times on average, or more.
    """
    some = np.concatenate([rows[:_REPEAT_SAMPLE_ROWS], rows_prime[:_REPEAT_SAMPLE_ROWS]])
    few = some[:: max(1, len(some) // 64)]
    if len(few) > 8 and _count_distinct(few) == len(few):
        # Nothing comes again among 64 rows: there is no need to sort them all.
        return False
    return _count_distinct(some) * _MIN_MEAN_REPEATS <= len(some)


def _count_distinct(rows: Array) -> int:
    """Count the different rows, by their bytes: -0.0 and 0.0 are two, so there are enough."""
    rows = np.ascontiguousarray(rows)
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1])))
    return int(np.unique(whole).size)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coordinate(Record, word="Coordinate"):
    """One entry of the output.

    Args:
        index: which one, from 0, in the row-major order of the output's entries.

    Raises:
        TypeError: if `index` is not an integer.
        ValueError: if it is negative.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, section 5, half-lines on one entry.

    Example:
        >>> import numpy as np
        >>> Coordinate(1)(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [2.0, 4.0]
    """

    index: int

    cost = 2

    def __post_init__(self) -> None:
        """Check the index."""
        object.__setattr__(self, "index", integer("index", self.index, 0))

    def __call__(self, outputs: Array) -> Floats:
        """Return the entry of every output, shape `(size,)`; NaN stays NaN."""
        return read_numbers(outputs, least=self.index + 1)[:, self.index].astype(np.float64)

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        rows = outputs.flat
        return Rough(rows[:, self.index].double()) if self.index < rows.shape[1] else None

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the grain of the entry."""
        return grains[self.index]

    def alone(self) -> tuple[int, Coordinate]:
        """Return the one entry that is read, and the score of outputs that have no other."""
        return self.index, Coordinate(0)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"entry {self.index}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closer(Record, word="Closer"):
    """The distance of an output to x' less that to x.

    ``sum(abs(y - x') - abs(y - x))`` for "l1": up to a factor the log-likelihood ratio of equal
    Laplace noise in every entry. Half the difference of the squared distances for "l2",
    ``sum((x - x') (y - (x + x')/2))``: that of Gaussian noise. In L1 an entry beyond both inputs
    adds exactly their distance, so that rounding cannot split these atoms, and an infinite one
    counts like any other so far out. NaN in any entry makes the score NaN.

    Args:
        norm: "l1" or "l2".
        x: the first input, shape `(entries,)`.
        x_prime: the second input, of the same shape.

    Raises:
        TypeError: if `norm` is not a string, or an input does not hold real numbers.
        ValueError: if `norm` is neither of the two or the inputs are not two vectors of finite
            numbers of one length.

    Source:
        Neyman and Pearson (1933) for the likelihood ratio as the best score.

    Example:
        >>> import numpy as np
        >>> Closer("l1", [0.0, 0.0], [1.0, 1.0])(np.array([[-3.0, 0.5], [2.0, 2.0]])).tolist()
        [1.0, -2.0]
    """

    norm: str
    x: Floats
    x_prime: Floats

    def __post_init__(self) -> None:
        """Check the norm and freeze the inputs."""
        choice("norm", self.norm, ("l1", "l2"))
        x, x_prime = vector("x", self.x), vector("x_prime", self.x_prime)
        set_fields(self, x=frozen_array(x), x_prime=frozen_array(x_prime))
        if self.x.size != self.x_prime.size:
            raise invalid("x_prime", f"of {self.x.size} entries, as x is", self.x_prime)

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, shape `(size,)`."""
        rows = read_numbers(outputs, self.x.size)
        scores = np.zeros(len(rows))
        for part in [slice(None)] if rows.flags.c_contiguous else arrays.chunk_slices(rows):
            block = np.require(rows[part], np.float64, ("C", "A"))
            _core.score_closer(block, self.x, self.x_prime, self.norm, scores[part])
        return scores

    @property
    def compiled(self) -> bool:
        """True if the core sums faster than torch on the same CPU."""
        return self.norm == "l1"

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        terms = self.x.size
        if outputs.flat.shape[1] != terms:
            return None
        apart, middle = cache_per_device(self, outputs, self._constants)
        if self.norm == "l2":
            shift, size, norm = middle
            slack = rounding_slack(terms, size + norm * outputs.norm())
            return Rough(outputs.dot(apart) - shift, slack)
        beyond = (outputs.flat.double() - middle).mul_(2.0).clamp_(-apart.abs(), apart.abs())
        return Rough(beyond @ apart.sign(), rounding_slack(terms, float(apart.abs().sum())))

    def _constants(self, like: Any, _: str) -> tuple[Any, Any]:
        """Return distances as a tensor; the middles as well, or in L2 what follows from them."""
        middle, apart = 0.5 * self.x + 0.5 * self.x_prime, self.x - self.x_prime
        if self.norm == "l1":
            return as_float64(like, apart), as_float64(like, middle)
        shift = apart * middle
        sizes = float(shift.sum()), float(np.abs(shift).sum()), float(np.linalg.norm(apart))
        return as_float64(like, apart), sizes

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the sum of what the entries may move by, in L2 times their distances."""
        return arrays.sum_grains(grains, None if self.norm == "l1" else self.x - self.x_prime)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"closer to x than to x' in {self.norm.upper()}"


class OfRow(Record):
    """A score that is one number for a row of numbers; NaN where an entry is NaN."""

    __slots__ = ()

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return that of the coarsest entry."""
        return arrays.coarsest_grain(grains)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowSum(OfRow, word="RowSum"):
    """The sum of the entries, in their order; NaN if one is, or if infinities cancel.

    Source:
        Neyman and Pearson (1933): the best score where equal Gaussian noise hides a shift that is
        the same in every entry.

    Example:
        >>> import numpy as np
        >>> RowSum()(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [3.0, 7.0]
    """

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the sum of what the entries may move by."""
        return arrays.sum_grains(grains)

    def __call__(self, outputs: Array) -> Floats:
        """Return the sum of every output, shape `(size,)`."""
        rows = read_numbers(outputs, least=1)
        scores = np.zeros(len(rows))
        with np.errstate(invalid="ignore", over="ignore"):
            for part in arrays.chunk_slices(rows):
                for i in range(rows.shape[1]):
                    scores[part] += rows[part, i]
        return scores

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        entries = outputs.flat.shape[1]
        reach = math.sqrt(entries) * outputs.norm() if entries else 0.0
        return Rough(outputs.sum(), rounding_slack(entries, reach)) if entries else None

    def __str__(self) -> str:
        """Return one line for a report."""
        return "sum of the entries"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMin(OfRow, word="RowMin"):
    """The smallest entry; NaN if one is.

    Source:
        Habernal (2022), theorem 3.2: noise that is never negative shows in the smallest entry.

    Example:
        >>> import numpy as np
        >>> RowMin()(np.array([[1.0, 2.0], [3.0, -4.0]])).tolist()
        [1.0, -4.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the smallest entry of every output, shape `(size,)`."""
        return np.asarray(read_numbers(outputs, least=1).min(axis=1), np.float64)

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        return Rough(outputs.flat.amin(1).double()) if outputs.flat.shape[1] else None

    def __str__(self) -> str:
        """Return one line for a report."""
        return "smallest entry"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMax(OfRow, word="RowMax"):
    """The largest entry; NaN if one is.

    Source:
        As `RowMin`, for noise that is never positive.

    Example:
        >>> import numpy as np
        >>> RowMax()(np.array([[1.0, 2.0], [3.0, -4.0]])).tolist()
        [2.0, 3.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the largest entry of every output, shape `(size,)`."""
        return np.asarray(read_numbers(outputs, least=1).max(axis=1), np.float64)

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        return Rough(outputs.flat.amax(1).double()) if outputs.flat.shape[1] else None

    def __str__(self) -> str:
        """Return one line for a report."""
        return "largest entry"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Special(Merged, word="Special"):
    """The number of entries of the output that are NaN, or infinite.

    Args:
        kind: "nan" or "inf".

    Raises:
        TypeError: if `kind` is not a string.
        ValueError: if it is neither of the two.

    Source:
        Habernal (2022), section 3: half of DPText's draws are undefined.

    Example:
        >>> Special("nan")(np.array([[np.nan, 1.0], [2.0, np.inf]])).tolist()
        [1.0, 0.0]
    """

    kind: str

    def __post_init__(self) -> None:
        """Check the kind."""
        choice("kind", self.kind, ("nan", "inf"))

    def __call__(self, outputs: Array) -> Floats:
        """Return the numbers, shape `(size,)`."""
        rows = read_numbers(outputs)
        found = np.isnan(rows) if self.kind == "nan" else np.isinf(rows)
        return np.asarray(np.count_nonzero(found, axis=1), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"number of entries that are {'NaN' if self.kind == 'nan' else 'infinite'}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NegativeZeros(Merged, word="NegativeZeros"):
    """The number of entries of the output that are -0.0, which equals 0.0 with other bits.

    Whoever sees the output as it is printed or stored sees the sign; whoever compares numbers
    does not. So it belongs to what is found of the code as it runs, beside the rounding.

    Source:
        IEEE 754-2019, section 6.3, the sign of a zero.

    Example:
        >>> NegativeZeros()(np.array([[-0.0, 0.0], [-0.0, -0.0]])).tolist()
        [1.0, 2.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the numbers, shape `(size,)`; 0 for outputs that are not floats."""
        rows = read_numbers(outputs)
        return np.asarray(np.count_nonzero((rows == 0.0) & np.signbit(rows), axis=1), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "number of entries that are -0.0"
