"""Attack with a threshold on a simple score of outputs, such as one entry or the sum of entries.

A score is a function that gives a number for each output. The event of the attack is that the score
is above, or below, a threshold.
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
from ..events.event import Batch, Rough, Score, cache_per_device, device_tensor, rounding_slack
from ..pairs.differences import pair_to_vectors
from ..records import Array, Floats, Ints, Pair, Record, frozen_array, set_fields
from ..suggestions import explain_argument_errors
from . import arrays
from .arrays import Merged, Places, read_both_sides, read_numbers
from .attack import ScoreAttack
from .candidates import PartsScore
from .grains import Tolerance, column_tolerances, merge_grains, tolerances_at, weighted_sum_rounding
from .parts import Parts

ScoreName = Literal["coordinate", "l1", "l2", "min", "max", "sum"]
_SCORE_NAMES: Final[tuple[ScoreName, ...]] = get_args(ScoreName)
_MAX_KEPT_ENTRIES: Final = 3
"""Number of entries of the output that become scores."""
_SCREENED_NUMBERS: Final = 2**22
"""Approximate number of array entries, on x and also on x', on which output entries are compared.
At least `_MIN_SCREENED_ROWS` outputs are used."""
_MIN_SCREENED_ROWS: Final = 1024
_MAX_SUMMED_COLUMNS: Final = 64
"""Largest number of columns for which sums of rows are faster column by column."""
_SIGNED_MEASURES: Final = ("value", "real", "imaginary", "number")
"""The measures of a `Part` that can give negative zeros."""
_FLOAT_INTEGERS: Final = 2.0**53
"""From this size on, a float cannot represent every whole number."""
_RATIO_STANDARD_ERRORS: Final = 4.0
"""Number of standard errors that are subtracted from an estimated log ratio, because the largest of
many estimates is too large."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Coordinate(Record, word="Coordinate"):
    """Score of an output: one entry of the output.

    Args:
        index: index of the entry in the flattened output (row-major order), counted from 0.

    Raises:
        TypeError: if `index` is not an integer.
        ValueError: if `index` is negative.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, section 5, on half-lines of one entry.

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
        """Return the entry of each output as float64, shape `(size,)`. NaN stays NaN."""
        return read_numbers(outputs, min_columns=self.index + 1)[:, self.index].astype(np.float64)

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score on the device of the outputs, such as a GPU.

        Return None if the entry does not exist.
        """
        rows = outputs.flat
        return Rough(rows[:, self.index].double()) if self.index < rows.shape[1] else None

    def rounding(self, grains: Sequence[Tolerance]) -> Tolerance:
        """Return how far rounding errors can move this score.

        `grains` states how far rounding errors can move each entry of the output.
        """
        return grains[self.index]

    def alone(self) -> tuple[int, Coordinate]:
        """Return the index of the entry, and this score for outputs that have only this entry."""
        return self.index, Coordinate(0)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return f"entry {self.index}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Closer(Record, word="Closer"):
    """Score of an output y: how much closer y is to the input x than to the input x'.

    If `norm` is "l1", the score is ``sum(abs(y - x') - abs(y - x))``. For independent Laplace noise
    with the same scale in every entry, this score is proportional to the log-likelihood ratio. If
    `norm` is "l2", the score is ``sum((x - x') (y - (x + x')/2))``. This score is half the
    difference between the squared L2 distances from x' and from x. For Gaussian noise, this score
    is proportional to the log-likelihood ratio.

    If an entry y_i is beyond both x_i and x'_i, its term in the "l1" score is ``x_i - x'_i`` or
    ``x'_i - x_i``. This also holds for an infinite y_i. Rounding of y_i does not change this term.
    The score is NaN if an entry of y is NaN.

    Args:
        norm: "l1" or "l2".
        x: the first input, shape `(entries,)`.
        x_prime: the second input, shape `(entries,)`.

    Raises:
        TypeError: if `norm` is not a string, or an input does not hold real numbers.
        ValueError: if `norm` is neither "l1" nor "l2", or the inputs are not two vectors of finite
            numbers with the same length.

    Source:
        Neyman and Pearson (1933): the likelihood ratio is the best score.

    Example:
        >>> import numpy as np
        >>> Closer("l1", [0.0, 0.0], [1.0, 1.0])(np.array([[-3.0, 0.5], [2.0, 2.0]])).tolist()
        [1.0, -2.0]
    """

    norm: str
    x: Floats
    x_prime: Floats

    def __post_init__(self) -> None:
        """Check the norm and make the inputs read-only."""
        choice("norm", self.norm, ("l1", "l2"))
        x, x_prime = vector("x", self.x), vector("x_prime", self.x_prime)
        set_fields(self, x=frozen_array(x), x_prime=frozen_array(x_prime))
        if self.x.size != self.x_prime.size:
            raise invalid("x_prime", f"of {self.x.size} entries, as x is", self.x_prime)

    def __call__(self, outputs: Array) -> Floats:
        """Return the score of each output, shape `(size,)`."""
        rows = read_numbers(outputs, self.x.size)
        scores = np.zeros(len(rows))
        for part in [slice(None)] if rows.flags.c_contiguous else arrays.chunk_slices(rows):
            block = np.require(rows[part], np.float64, ("C", "A"))
            _core.score_closer(block, self.x, self.x_prime, self.norm, scores[part])
        return scores

    @property
    def compiled(self) -> bool:
        """True if the Rust code of dpcore computes this score faster than torch on a CPU."""
        return self.norm == "l1"

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score on the device of the outputs, such as a GPU.

        Return None if the number of entries of an output is wrong.
        """
        terms = self.x.size
        if outputs.flat.shape[1] != terms:
            return None
        apart, middle = cache_per_device(self, outputs, self._input_difference_and_middle_constants)
        if self.norm == "l2":
            shift, size, norm = middle
            slack = rounding_slack(terms, size + norm * outputs.rounded_up_row_norms())
            return Rough(outputs.weighted_row_sums(apart) - shift, slack)
        beyond = (outputs.flat.double() - middle).mul_(2.0).clamp_(-apart.abs(), apart.abs())
        return Rough(beyond @ apart.sign(), rounding_slack(terms, float(apart.abs().sum())))

    def _input_difference_and_middle_constants(self, like: Any, _: str) -> tuple[Any, Any]:
        """Return x - x' as a tensor, and constants that depend on the middle of x and x'.

        With "l1", the constant is the middle as a tensor. With "l2", the constants are these three
        numbers:

        - the sum of (x - x') (x + x')/2 over all entries;
        - the sum of the absolute values of these products;
        - the L2 norm of x - x'.
        """
        middle, apart = 0.5 * self.x + 0.5 * self.x_prime, self.x - self.x_prime
        if self.norm == "l1":
            return device_tensor(like, apart), device_tensor(like, middle)
        shift = apart * middle
        sizes = float(shift.sum()), float(np.abs(shift).sum()), float(np.linalg.norm(apart))
        return device_tensor(like, apart), sizes

    def rounding(self, grains: Sequence[Tolerance]) -> Tolerance:
        """Return how far rounding errors can move this score.

        `grains` states how far rounding errors can move each entry of the output.
        """
        return weighted_sum_rounding(grains, None if self.norm == "l1" else self.x - self.x_prime)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return f"closer to x than to x' in {self.norm.upper()}"


class OfRow(Record):
    """Base class of scores that are a statistic of the output's entries, such as their sum."""

    __slots__ = ()

    def rounding(self, grains: Sequence[Tolerance]) -> Tolerance:
        """Return how far rounding errors can move this score.

        `grains` states how far rounding errors can move each entry of the output. The result is the
        largest of these movements.
        """
        return merge_grains(grains)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowSum(OfRow, word="RowSum"):
    """Score of an output: the sum of its entries, computed from the first to the last.

    The score is NaN if an entry is NaN, or if the entries contain inf and -inf.

    Source:
        Neyman and Pearson (1933): the sum is the best score if every entry has the same shift and
        independent Gaussian noise of one scale.

    Example:
        >>> import numpy as np
        >>> RowSum()(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [3.0, 7.0]
    """

    def rounding(self, grains: Sequence[Tolerance]) -> Tolerance:
        """Return how far rounding errors can move the sum of an output's entries.

        `grains` states how far rounding errors can move each entry.
        """
        return weighted_sum_rounding(grains)

    def __call__(self, outputs: Array) -> Floats:
        """Return the sum of the entries of each output, shape `(size,)`."""
        rows = read_numbers(outputs, min_columns=1)
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

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score on the device of the outputs, such as a GPU.

        Return None if the outputs are empty.
        """
        entries = outputs.flat.shape[1]
        reach = math.sqrt(entries) * outputs.rounded_up_row_norms() if entries else 0.0
        return Rough(outputs.row_sums(), rounding_slack(entries, reach)) if entries else None

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "sum of the entries"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMin(OfRow, word="RowMin"):
    """Score of an output: its smallest entry. The score is NaN if an entry is NaN.

    Source:
        Habernal (2022), theorem 3.2, on noise that is never negative. The smallest entry shows a
        shift of such noise.

    Example:
        >>> import numpy as np
        >>> RowMin()(np.array([[1.0, 2.0], [3.0, -4.0]])).tolist()
        [1.0, -4.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the smallest entry of each output, shape `(size,)`."""
        return np.asarray(read_numbers(outputs, min_columns=1).min(axis=1), np.float64)

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score on the device of the outputs, such as a GPU.

        Return None if the outputs are empty.
        """
        return Rough(outputs.flat.amin(1).double()) if outputs.flat.shape[1] else None

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "smallest entry"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RowMax(OfRow, word="RowMax"):
    """Score of an output: its largest entry. The score is NaN if an entry is NaN.

    Source:
        Habernal (2022), theorem 3.2, with the signs changed: noise that is never positive.

    Example:
        >>> import numpy as np
        >>> RowMax()(np.array([[1.0, 2.0], [3.0, -4.0]])).tolist()
        [2.0, 3.0]
    """

    def __call__(self, outputs: Array) -> Floats:
        """Return the largest entry of each output, shape `(size,)`."""
        return np.asarray(read_numbers(outputs, min_columns=1).max(axis=1), np.float64)

    def on_device(self, outputs: Batch) -> Rough | None:
        """Compute this score on the device of the outputs, such as a GPU.

        Return None if the outputs are empty.
        """
        return Rough(outputs.flat.amax(1).double()) if outputs.flat.shape[1] else None

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "largest entry"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Special(Merged, word="Special"):
    """Score of an output: how many of its entries are NaN, or how many are infinite.

    Args:
        kind: "nan" to count the entries that are NaN, "inf" to count the entries that are inf or
            -inf.

    Raises:
        TypeError: if `kind` is not a string.
        ValueError: if `kind` is neither "nan" nor "inf".

    Source:
        Habernal (2022), section 3: half of the draws of the mechanism DPText are undefined.

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
        """Return the number of NaN or infinite entries of each output, shape `(size,)`."""
        rows = read_numbers(outputs)
        is_special = np.isnan(rows) if self.kind == "nan" else np.isinf(rows)
        return np.asarray(np.count_nonzero(is_special, axis=1), np.float64)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return f"number of entries that are {'NaN' if self.kind == 'nan' else 'infinite'}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class NegativeZeros(Merged, word="NegativeZeros"):
    """Score of an output: the number of its entries that are -0.0.

    The numbers -0.0 and 0.0 are equal, but a reader of the printed or stored output can see the
    sign. If this sign depends on the input, the code leaks information that the mathematical
    mechanism does not leak.

    Source:
        IEEE 754-2019, section 6.3, on the sign of a zero.

    Example:
        >>> NegativeZeros()(np.array([[-0.0, 0.0], [-0.0, -0.0]])).tolist()
        [1.0, 2.0]
    """

    whole = True

    def __call__(self, outputs: Array) -> Floats:
        """Return the number of entries -0.0 of each output, shape `(size,)`.

        The number is 0 for outputs that are not floats.
        """
        rows = read_numbers(outputs)
        return np.asarray(np.count_nonzero((rows == 0.0) & np.signbit(rows), axis=1), np.float64)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "number of entries that are -0.0"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class HashMatch(Record, word="HashMatch"):
    """Score for outputs of local hashing, made by the function `hash_score`.

    An output of local hashing is a pair (value, seed). The score is 1 if the value equals only the
    hash of x with this seed. The score is -1 if the value equals only the hash of x' with this
    seed. Otherwise the score is 0.
    """

    hash: Callable[[Any, int], int]
    inputs: tuple[Any, Any]

    cost = 1000
    whole = reads_seed = True

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs of shape `(size, 2)`. A score is -1, 0 or 1."""
        scores = []
        for value, seed in _read_value_and_seed_pairs(outputs):
            hashes = [self.hash(x, seed) for x in self.inputs]
            if any(not isinstance(number, (int, np.integer)) for number in hashes):
                # An answer of another kind equals no value, and the score would see nothing.
                raise mistyped("hash", "a function that returns a whole number", hashes)
            scores.append((value == hashes[0]) - (value == hashes[1]))
        return np.array(scores, np.float64)

    def __str__(self) -> str:
        """Return a description of the score in one line, for the report of an audit."""
        return "[value = hash(x, seed)] - [value = hash(x', seed)]"


def _read_value_and_seed_pairs(outputs: Array) -> list[list[int]]:
    """Return each output as a list of two Python integers: the value and the seed."""
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


@explain_argument_errors
def hash_score(hash: Callable[[Any, int], int], inputs: Sequence[Any]) -> HashMatch:
    """Make a score for a mechanism of local hashing, to be used with `Threshold`.

    Each output of local hashing is a pair (value, seed): a noisy hash value and the seed of the
    hash function. The score is ``[value = hash(x, seed)] - [value = hash(x', seed)]``. Here a
    bracket is 1 if the equation in it is true, else 0.

    Without this score, attacks do not find a difference between the two inputs. The seed hardly
    ever repeats. The value without the seed has the same distribution on x and on x'.

    Args:
        hash: the function `(input, seed) -> value` with which the mechanism hashes an input. The
            result must have the form of the value in the outputs.
        inputs: the two inputs (x, x').

    Returns:
        The score, a function of outputs of shape `(size, 2)`. It raises a TypeError if an output
        does not contain numbers. It raises a ValueError if the outputs have another shape. It also
        raises a ValueError if a number is not an integer, or if a float has a magnitude of 2^53 or
        more.

    Raises:
        TypeError: if `hash` is not callable.
        ValueError: if `inputs` does not contain exactly two inputs.

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


def negative_zero_count_scores(
    scores: Sequence[Score], outputs: Array, outputs_prime: Array
) -> tuple[Score, ...]:
    """Return a score that counts the entries -0.0 of an output, if a pilot output contains -0.0.

    Args:
        scores: scores that an attack has made. These scores are used only if the outputs are not
            arrays of numbers. In this case, the scores state which numbers are read from each
            output.
        outputs: pilot outputs (first draws) on x, shape `(size, ...)`.
        outputs_prime: pilot outputs on x', shape `(size', ...)`.

    Returns:
        A tuple with this score. The tuple is empty if the pilot outputs do not contain -0.0.
    """
    sides = outputs, outputs_prime
    read = itertools.chain(
        *(score.parts.parts for score in scores if isinstance(score, PartsScore))
    )
    parts = tuple(dict.fromkeys(part for part in read if part.measure in _SIGNED_MEASURES))
    regular = all(side.dtype.kind in "buif" for side in sides)
    score: Score = NegativeZeros() if regular else PartsScore(Parts(parts), NegativeZeros())
    return (score,) if (regular or parts) and any(score(side).any() for side in sides) else ()


_ROW_SCORES: Final[dict[str, Score]] = {"min": RowMin(), "max": RowMax(), "sum": RowSum()}


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class Threshold(ScoreAttack):
    """Attack with a threshold on a simple score. Try this attack first on numeric outputs.

    The event is "the score of the output is above the threshold" or "below the threshold". The
    attack chooses the threshold on the pilot (the first draws on the inputs x and x').

    Args:
        score: the score, a function from an output to a number. It is one of these:

            - "coordinate": one of the three entries of the output that distinguish x and x' best in
              the pilot;
            - an int: the entry with this index, counted from 0;
            - "l1" or "l2": how much closer the output is to x than to x' in this norm. The inputs
              must broadcast to the shape of an output;
            - "min", "max" or "sum": the smallest entry, the largest entry or the sum of the
              entries;
            - a function `outputs -> real numbers (size,)`: your own score, for outputs of any type;
            - None: the best one of the named scores. A score that does not apply to the outputs is
                left out.

    Raises:
        TypeError: if `score` has none of these types.
        ValueError: if `score` is an unknown name or a negative index.

    Source:
        Ding, Wang, Wang, Zhang and Kifer (2018), StatDP, on half-lines of one entry. Bichsel,
        Steffen, Bogunovic and Vechev (2021), DP-Sniper, section 4, on thresholds of a score.

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
        """True if the score is also applied to numbers that are read from other types of outputs.

        An example is the value under a key of a dictionary. The property is True if `score` is a
        name or None. It is False if `score` is an index or a function.
        """
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
        """Return the scores from which the audit chooses the best one on pilot outputs.

        Args:
            outputs: pilot outputs (first draws) on `pair.x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `pair.x_prime`, shape `(size', ...)`.
            pair: the inputs x and x'.

        Returns:
            The scores. The tuple is empty in these cases:

            - the outputs are not numbers;
            - an output has no entry with the given index;
            - the inputs do not broadcast to the shape of an output.
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
            scores += [Coordinate(i) for i in _best_three_entries(*rows)]
        if self.score is None and dim == 1:
            # Every other score is a monotone function of this one entry.
            return tuple(scores)
        scores += _make_distances(names, np.shape(outputs)[1:], pair)
        scores += [score for name, score in _ROW_SCORES.items() if name in names]
        return tuple(scores)


def _make_distances(norm_names: tuple[str, ...], shape: tuple[int, ...], pair: Pair) -> list[Score]:
    ends = pair_to_vectors(pair.x, pair.x_prime, shape)
    if ends is None:
        return []
    norms = [norm for norm in ("l1", "l2") if norm in norm_names]
    if len(norm_names) > 1 and np.ptp(ends[0] - ends[1]) == 0.0:
        # If the shift is the same for all entries, "l2" equals the sum.
        norms.remove("l2")
    return [Closer(norm, *ends) for norm in norms]


def _best_three_entries(rows: Array, rows_prime: Array) -> list[int]:
    """Return the three entries whose half-lines distinguish x and x' best, the best first.

    A half-line is the event that the entry is above, or below, a threshold.
    """
    dim = rows.shape[1]
    if dim == 1:
        return [0]
    most = max(_MIN_SCREENED_ROWS, _SCREENED_NUMBERS // dim)
    sides = rows[:most], rows_prime[:most]
    merits, grains = np.zeros(dim), column_tolerances(*sides)
    for part, columns in arrays.column_blocks(*sides):
        ordered = [np.sort(side, axis=1) for side in columns]
        held = np.stack([side.shape[1] - np.isnan(side).sum(axis=1) for side in ordered], axis=1)
        places = np.arange(dim)[part]
        for sizes in np.unique(held, axis=0):
            same = np.flatnonzero((held == sizes).all(axis=1))
            if sizes.all():
                numbers = [side[same, :size] for side, size in zip(ordered, sizes, strict=True)]
                own = [grains[i] for i in places[same]]
                merits[places[same]] = _max_log_ratio(numbers, own, (len(sides[0]), len(sides[1])))
    return [int(i) for i in np.argsort(-merits, kind="stable")[:_MAX_KEPT_ENTRIES]]


def _max_log_ratio(ordered: list[Floats], grains: list[Tolerance], rows: tuple[int, int]) -> Floats:
    """Return, for each column, the largest log ratio of an event's probabilities on x and x'.

    The events are half-lines: the value is above, or below, a threshold. Four standard errors are
    subtracted, because the largest of many estimates is too large.
    """
    # The threshold is just below an order statistic: its whole atom is above the threshold on both
    # sides.
    points = np.concatenate([side[:, _end_dense_ranks(side.shape[1])] for side in ordered], axis=1)
    with np.errstate(invalid="ignore"):
        points = np.ascontiguousarray(points - 2.0 * tolerances_at(grains, points))
    below = [_core.count_below(np.ascontiguousarray(side), points) for side in ordered]
    above = [side.shape[1] - count for side, count in zip(ordered, below, strict=True)]
    return np.maximum(_max_log_ratio_limits(below, rows), _max_log_ratio_limits(above, rows))


def _max_log_ratio_limits(hits: list[Ints], rows: tuple[int, int]) -> Floats:
    first, second = (count + 0.5 for count in hits)
    ratios = np.log(first / rows[0]) - np.log(second / rows[1])
    errors = np.sqrt(1.0 / first + 1.0 / second)
    return np.asarray((np.abs(ratios) - _RATIO_STANDARD_ERRORS * errors).max(axis=1))


def _end_dense_ranks(size: int) -> Places:
    """Return ranks from 0 to size - 1, in steps that grow geometrically from each end inwards."""
    steps = np.unique(np.geomspace(1, max(1, size // 2), 40).astype(np.intp)) - 1
    return np.unique(np.concatenate([steps, size - 1 - steps]))
