"""Simple scores of rows of numbers, and thresholds on them: the attack that needs no model.

A score is a function of an output that is higher for x: one entry, a distance, a sum, an extreme,
or the number of entries in a region.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from .. import _core
from ..errors import choice, integer, invalid, mistyped, vector
from ..events.event import Held, Rough, Score, as_float64, cache_per_device, rounding_slack
from ..pairs.differences import differing_points
from ..records import Array, Floats, Ints, Pair, Record, frozen_array, set_fields
from ..suggestions import suggest_arguments
from . import arrays
from .arrays import Merged, Places, read_both_sides, read_numbers
from .attack import ScoreAttack
from .candidates import OfParts
from .grains import Grain, coarsest_grain, grains_of, sum_grains, tolerances_at
from .parts import Parts

ScoreName = Literal["coordinate", "l1", "l2", "min", "max", "sum"]
_SCORE_NAMES: Final[tuple[ScoreName, ...]] = get_args(ScoreName)
_MAX_KEPT_ENTRIES: Final = 3
"""Number of entries that take part in the choice of the event."""
_SCREENED_NUMBERS: Final = 2**22
"""Numbers per side on which the entries are compared; at least `_MIN_SCREENED_ROWS` rows."""
_MIN_SCREENED_ROWS: Final = 1024
_MAX_SUMMED_COLUMNS: Final = 64
"""Largest number of columns for which sums of rows are faster column by column."""
_SIGNED_MEASURES: Final = ("value", "real", "imaginary", "number")
"""Parts of outputs that may be negative zeros."""
_FLOAT_INTEGERS: Final = 2.0**53
"""Floats of this size or larger do not hold every whole number."""
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Standard errors subtracted from an estimated log ratio, because the best of many is too good."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coordinate(Record, word="Coordinate"):
    """One entry of the output.

    Args:
        index: index of the entry, from 0, in the row-major order of the output's entries.

    Raises:
        TypeError: if `index` is not an integer.
        ValueError: if `index` is negative.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, section 5, half-lines on one entry.

    Example:
        >>> import numpy as np
        >>> Coordinate(1)(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [2.0, 4.0]
    """

    index: int

    cost = 2
    plainness = 1

    def __post_init__(self) -> None:
        """Check the index."""
        object.__setattr__(self, "index", integer("index", self.index, 0))

    def __call__(self, outputs: Array) -> Floats:
        """Return the entry of every output, shape `(size,)`; NaN stays NaN."""
        return read_numbers(outputs, least=self.index + 1)[:, self.index].astype(np.float64)

    def on_device(self, outputs: Held) -> Rough | None:
        """Compute the same on the device of the outputs."""
        rows = outputs.flat
        return Rough(rows[:, self.index].double()) if self.index < rows.shape[1] else None

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the grain of the entry."""
        return grains[self.index]

    def alone(self) -> tuple[int, Coordinate]:
        """Return the entry that is read, and the score for outputs with only this entry."""
        return self.index, Coordinate(0)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"entry {self.index}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closer(Record, word="Closer"):
    """The distance of an output to x' minus its distance to x.

    For "l1" the score is ``sum(abs(y - x') - abs(y - x))``. Up to a factor, this is the
    log-likelihood ratio of equal Laplace noise in every entry. For "l2" it is half the difference
    of the squared distances, ``sum((x - x') (y - (x + x')/2))``, which is the log-likelihood ratio
    of Gaussian noise up to a factor. In L1 an entry beyond both inputs adds exactly their distance.
    Therefore rounding cannot split these atoms, and an infinite entry counts like any other entry
    beyond the inputs. NaN in any entry makes the score NaN.

    Args:
        norm: "l1" or "l2".
        x: the first input, shape `(entries,)`.
        x_prime: the second input, of the same shape.

    Raises:
        TypeError: if `norm` is not a string, or an input does not hold real numbers.
        ValueError: if `norm` is neither "l1" nor "l2", or the inputs are not two vectors of finite
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
        """True if the core computes the sum faster than torch on the same CPU."""
        return self.norm == "l1"

    def on_device(self, outputs: Held) -> Rough | None:
        """Compute the same on the device of the outputs."""
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
        """Return differences and middles of the inputs as tensors.

        In L2 numbers for the middles.
        """
        middle, apart = 0.5 * self.x + 0.5 * self.x_prime, self.x - self.x_prime
        if self.norm == "l1":
            return as_float64(like, apart), as_float64(like, middle)
        shift = apart * middle
        sizes = float(shift.sum()), float(np.abs(shift).sum()), float(np.linalg.norm(apart))
        return as_float64(like, apart), sizes

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the grain of the sum of the entries; in L2 each has its distance as weight."""
        return sum_grains(grains, None if self.norm == "l1" else self.x - self.x_prime)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"closer to x than to x' in {self.norm.upper()}"


class OfRow(Record):
    """A score that is one number for a row of numbers; NaN if an entry is NaN."""

    __slots__ = ()

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the grain of the coarsest entry."""
        return coarsest_grain(grains)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowSum(OfRow, word="RowSum"):
    """The sum of the entries, in their order; NaN if one is NaN, or if infinities cancel.

    Source:
        Neyman and Pearson (1933): the best score if equal Gaussian noise hides a shift that is the
        same in every entry.

    Example:
        >>> import numpy as np
        >>> RowSum()(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [3.0, 7.0]
    """

    def rounding(self, grains: Sequence[Grain]) -> Grain:
        """Return the grain of the sum of the entries."""
        return sum_grains(grains)

    def __call__(self, outputs: Array) -> Floats:
        """Return the sum of every output, shape `(size,)`."""
        rows = read_numbers(outputs, least=1)
        scores = np.zeros(len(rows))
        with np.errstate(invalid="ignore", over="ignore"):
            for part in arrays.chunk_slices(rows):
                if rows.shape[1] > _MAX_SUMMED_COLUMNS:
                    # Pairwise summation would give different last bits.
                    scores[part] += np.cumsum(rows[part], axis=1, dtype=np.float64)[:, -1]
                    continue
                for i in range(rows.shape[1]):
                    scores[part] += rows[part, i]
        return scores

    def on_device(self, outputs: Held) -> Rough | None:
        """Compute the same on the device of the outputs."""
        entries = outputs.flat.shape[1]
        reach = math.sqrt(entries) * outputs.norm() if entries else 0.0
        return Rough(outputs.sum(), rounding_slack(entries, reach)) if entries else None

    def __str__(self) -> str:
        """Return one line for a report."""
        return "sum of the entries"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMin(OfRow, word="RowMin"):
    """The smallest entry; NaN if an entry is NaN.

    Source:
        Habernal (2022), theorem 3.2: the smallest entry reveals noise that is never negative.

    Example:
        >>> import numpy as np
        >>> RowMin()(np.array([[1.0, 2.0], [3.0, -4.0]])).tolist()
        [1.0, -4.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the smallest entry of every output, shape `(size,)`."""
        return np.asarray(read_numbers(outputs, least=1).min(axis=1), np.float64)

    def on_device(self, outputs: Held) -> Rough | None:
        """Compute the same on the device of the outputs."""
        return Rough(outputs.flat.amin(1).double()) if outputs.flat.shape[1] else None

    def __str__(self) -> str:
        """Return one line for a report."""
        return "smallest entry"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMax(OfRow, word="RowMax"):
    """The largest entry; NaN if an entry is NaN.

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
        """Compute the same on the device of the outputs."""
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
        ValueError: if `kind` is neither "nan" nor "inf".

    Source:
        Habernal (2022), section 3: half of DPText's draws are undefined.

    Example:
        >>> Special("nan")(np.array([[np.nan, 1.0], [2.0, np.inf]])).tolist()
        [1.0, 0.0]
    """

    kind: str

    whole = True

    def __post_init__(self) -> None:
        """Check the kind."""
        choice("kind", self.kind, ("nan", "inf"))

    def __call__(self, outputs: Array) -> Floats:
        """Return the number of such entries, shape `(size,)`."""
        rows = read_numbers(outputs)
        is_special = np.isnan(rows) if self.kind == "nan" else np.isinf(rows)
        return np.asarray(np.count_nonzero(is_special, axis=1), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"number of entries that are {'NaN' if self.kind == 'nan' else 'infinite'}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NegativeZeros(Merged, word="NegativeZeros"):
    """The number of entries of the output that are -0.0, which equals 0.0 but has other bits.

    A user who sees the printed or stored output sees the sign, but a comparison of numbers does not
    show it. Therefore this is a finding about the code as it runs, as rounding is.

    Source:
        IEEE 754-2019, section 6.3, the sign of a zero.

    Example:
        >>> NegativeZeros()(np.array([[-0.0, 0.0], [-0.0, -0.0]])).tolist()
        [1.0, 2.0]
    """

    whole = True

    def __call__(self, outputs: Array) -> Floats:
        """Return the number of such entries, shape `(size,)`; 0 for outputs that are not floats."""
        rows = read_numbers(outputs)
        return np.asarray(np.count_nonzero((rows == 0.0) & np.signbit(rows), axis=1), np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "number of entries that are -0.0"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HashMatch(Record, word="HashMatch"):
    """The score that `hash_score` makes."""

    hash: Callable[[Any, int], int]
    inputs: tuple[Any, Any]

    cost = 1000
    whole = reads_seed = True

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores, -1, 0 or 1, of outputs of shape `(size, 2)`."""
        scores = []
        for value, seed in _read_values_and_seeds(outputs):
            hashes = [self.hash(x, seed) for x in self.inputs]
            if any(not isinstance(number, (int, np.integer)) for number in hashes):
                # An answer of another kind equals no value, and the score would see nothing.
                raise mistyped("hash", "a function that returns a whole number", hashes)
            scores.append((value == hashes[0]) - (value == hashes[1]))
        return np.array(scores, np.float64)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "[value = hash(x, seed)] - [value = hash(x', seed)]"


def _read_values_and_seeds(outputs: Array) -> list[list[int]]:
    """Return outputs as lists of a value and a seed, in integers of any size."""
    rows = np.asarray(outputs)
    if rows.dtype == object and rows.ndim == 1 and {np.size(row) for row in rows} == {2}:
        rows = np.array([list(row) for row in rows], object)
    if rows.ndim != 2 or rows.shape[1] != 2:
        raise invalid("outputs", "rows of a value and a seed, shape (size, 2)", rows.shape)
    entries: Any = rows.tolist()
    if rows.dtype.kind in "iu":
        return list(entries)
    for entry in itertools.chain.from_iterable(entries):
        if isinstance(entry, bool) or not isinstance(entry, (int, float, np.number)):
            raise mistyped("outputs", "rows of a value and a seed, whole numbers", entry)
        if isinstance(entry, (int, np.integer)):
            continue
        if not (abs(float(entry)) < _FLOAT_INTEGERS and float(entry).is_integer()):
            requirement = "whole numbers, and below 2^53 if they are floats"
            raise invalid("outputs", requirement, float(entry))
    return [[int(entry) for entry in row] for row in entries]


@suggest_arguments
def hash_score(hash: Callable[[Any, int], int], inputs: Sequence[Any]) -> HashMatch:
    """Make the score of local hashing, whose outputs are a hash value and the seed of the hash.

    The score of an output (value, seed) is ``[value = hash(x, seed)] - [value = hash(x', seed)]``.
    Use it with `Threshold`. The other attacks do not see such outputs: a seed hardly repeats, and
    the value without its seed has the same distribution on both sides.

    Args:
        hash: function `(input, seed) -> value` of the client, with the client's mapping of an input
            to an index and of a hash to a value.
        inputs: the two inputs (x, x').

    Returns:
        A score. It raises TypeError for outputs that are not rows of two numbers, and ValueError
        for a number that is not whole, or a float that is 2^53 or larger.

    Raises:
        TypeError: if `hash` is not callable.
        ValueError: if `inputs` does not hold two inputs.

    Source:
        Wang, Blocki, Li and Jha (2017), Locally differentially private protocols for frequency
        estimation, section 4.2: optimised local hashing.

    Example:
        >>> import dpcore
        >>> def hash_to_four(item, seed):
        ...     return (item * 40503 + seed * 48271) % 65537 % 4
        >>> def respond(x, size, rng):
        ...     seeds = rng.integers(0, 2**20, size)
        ...     values = (hash_to_four(x, seeds) + rng.integers(0, 4, size)) % 4
        ...     values = np.where(rng.random(size) < 0.5, hash_to_four(x, seeds), values)
        ...     return np.stack([values, seeds], axis=1)
        >>> attack = Threshold(score=hash_score(hash_to_four, (1, 2)))
        >>> report = dpcore.audit(respond, (1, 2), attack=attack, trials=20_000, claim=1.0, rng=1)
        >>> report.verdict, 1.4 < report.epsilon_lower < 1.6095
        ('refuted', True)
    """
    if not callable(hash):
        raise mistyped("hash", "a function (input, seed) -> value", hash)
    if isinstance(inputs, str) or len(inputs) != 2:
        raise invalid("inputs", "the two inputs (x, x') in a tuple or a list", inputs)
    return HashMatch(hash, (inputs[0], inputs[1]))


def sign_scores(scores: Sequence[Score], outputs: Array, outputs_prime: Array) -> tuple[Score, ...]:
    """Return the score of negative zeros in outputs or their parts; empty without such zeros.

    Args:
        scores: scores that an attack has made of the outputs; they name the parts.
        outputs: pilot outputs on x, shape `(size, ...)`.
        outputs_prime: the same on x'.
    """
    sides = outputs, outputs_prime
    read = itertools.chain(*(score.parts.parts for score in scores if isinstance(score, OfParts)))
    parts = tuple(dict.fromkeys(part for part in read if part.measure in _SIGNED_MEASURES))
    regular = all(side.dtype.kind in "buif" for side in sides)
    score: Score = NegativeZeros() if regular else OfParts(Parts(parts), NegativeZeros())
    return (score,) if (regular or parts) and any(score(side).any() for side in sides) else ()


_ROW_SCORES: Final[dict[str, Score]] = {"min": RowMin(), "max": RowMax(), "sum": RowSum()}


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class Threshold(ScoreAttack):
    """A threshold on a simple score: the attack to try first on numeric outputs.

    Args:
        score: score on which the threshold is set:

            - "coordinate": all entries are compared on the pilot draws, and the three most
              informative ones are kept;
            - an int: the index of one entry;
            - "l1" or "l2": how much closer the output is to x than to x' (see `Closer`), for inputs
              that broadcast to the shape of an output;
            - "min", "max" or "sum": statistics of a row;
            - a function `outputs -> real numbers (size,)`: used unchanged, on outputs of any type;
            - None: all of these scores that apply and differ from each other.

    Raises:
        TypeError: if `score` has none of these types.
        ValueError: if `score` is an unknown name or a negative index.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, for half-lines; Bichsel, Steffen,
        Bogunovic and Vechev (2021), DP-Sniper, section 4, for thresholds on a score.

    Example:
        >>> import dpcore
        >>> mechanism, pair = dpcore.published.HalfNoise(1.0), dpcore.pairs.zeros_ones(1)
        >>> audit = dpcore.audit(mechanism, pair, attack=Threshold(), trials=10**5, rng=1)
        >>> audit.verdict, 1.8 < audit.epsilon_lower < 2.0
        ('refuted', True)
    """

    score: ScoreName | int | Score | None = None

    @property
    def parts(self) -> bool:  # type: ignore[override]
        """True for a named or default score; functions and indices read only whole outputs."""
        return self.score is None or isinstance(self.score, str)

    def __post_init__(self) -> None:
        """Check the score."""
        if self.score is None or callable(self.score):
            return
        if isinstance(self.score, str):
            choice("score", self.score, _SCORE_NAMES)
        elif isinstance(self.score, (int, np.integer)) and not isinstance(self.score, bool):
            object.__setattr__(self, "score", integer("score", self.score, 0))
        else:
            requirement = "None, a name, an index or a function outputs -> scores"
            raise mistyped("score", requirement, self.score)

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores that compete.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair on which they were drawn.

        Returns:
            Scores. Empty if the outputs are not numbers, have no such entry, or the inputs do not
            broadcast to them.
        """
        if callable(self.score):
            return (self.score,)
        rows = read_both_sides(outputs, outputs_prime)
        if rows is None:
            return ()
        dim = rows[0].shape[1]
        if isinstance(self.score, int):
            return (Coordinate(self.score),) if self.score < dim else ()
        names = _SCORE_NAMES if self.score is None else (self.score,)
        scores: list[Score] = []
        if "coordinate" in names:
            scores += [Coordinate(i) for i in _rank_entries(*rows)]
        if self.score is None and dim == 1:
            # Every other score is a monotone function of this one entry.
            return tuple(scores)
        scores += _make_distances(names, np.shape(outputs)[1:], pair)
        scores += [score for name, score in _ROW_SCORES.items() if name in names]
        return tuple(scores)


def _make_distances(names: tuple[str, ...], shape: tuple[int, ...], pair: Pair) -> list[Score]:
    ends = differing_points(pair.x, pair.x_prime, shape)
    if ends is None:
        return []
    norms = [norm for norm in ("l1", "l2") if norm in names]
    if len(names) > 1 and np.ptp(ends[0] - ends[1]) == 0.0:
        # If the shift is the same for all entries, "l2" equals the sum.
        norms.remove("l2")
    return [Closer(norm, *ends) for norm in norms]


def _rank_entries(rows: Array, rows_prime: Array) -> list[int]:
    """Return the entries whose half-lines distinguish the sides best, the best first."""
    dim = rows.shape[1]
    if dim == 1:
        return [0]
    most = max(_MIN_SCREENED_ROWS, _SCREENED_NUMBERS // dim)
    sides = rows[:most], rows_prime[:most]
    merits, grains = np.zeros(dim), grains_of(*sides)
    for part, columns in arrays.column_blocks(*sides):
        ordered = [np.sort(side, axis=1) for side in columns]
        held = np.stack([side.shape[1] - np.isnan(side).sum(axis=1) for side in ordered], axis=1)
        places = np.arange(dim)[part]
        for sizes in np.unique(held, axis=0):
            same = np.flatnonzero((held == sizes).all(axis=1))
            if sizes.all():
                numbers = [side[same, :size] for side, size in zip(ordered, sizes, strict=True)]
                own = [grains[i] for i in places[same]]
                merits[places[same]] = _log_ratios(numbers, own, (len(sides[0]), len(sides[1])))
    return [int(i) for i in np.argsort(-merits, kind="stable")[:_MAX_KEPT_ENTRIES]]


def _log_ratios(ordered: list[Floats], grains: list[Grain], rows: tuple[int, int]) -> Floats:
    """Return cautious log ratios of each column's best half-line, by a normal approximation."""
    # The threshold is just below an order statistic: its whole atom is above the threshold on both
    # sides.
    points = np.concatenate([side[:, _choose_ranks(side.shape[1])] for side in ordered], axis=1)
    with np.errstate(invalid="ignore"):
        points = np.ascontiguousarray(points - 2.0 * tolerances_at(grains, points))
    below = [_core.count_below(np.ascontiguousarray(side), points) for side in ordered]
    above = [side.shape[1] - count for side, count in zip(ordered, below, strict=True)]
    return np.maximum(_lower_log_ratios(below, rows), _lower_log_ratios(above, rows))


def _lower_log_ratios(hits: list[Ints], rows: tuple[int, int]) -> Floats:
    first, second = (count + 0.5 for count in hits)
    ratios = np.log(first / rows[0]) - np.log(second / rows[1])
    errors = np.sqrt(1.0 / first + 1.0 / second)
    return np.asarray((np.abs(ratios) - _RATIO_STANDARD_ERRORS * errors).max(axis=1))


def _choose_ranks(size: int) -> Places:
    """Return ranks in geometric steps from both ends."""
    steps = np.unique(np.geomspace(1, max(1, size // 2), 40).astype(np.intp)) - 1
    return np.unique(np.concatenate([steps, size - 1 - steps]))
