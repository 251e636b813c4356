"""Scores that are sums over features of an output: the likelihood ratio of independent noise."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Final

import numpy as np

from .. import _core
from ..errors import choice, integer, invalid
from ..events.above import Score
from ..hints import hinted
from ..records import Pair
from .arrays import Array, Codes, Floats, Merged, Whole, Words, freeze_arrays
from .attack import ScoreAttack
from .choosing.marks import scale_of
from .scores.columns import read_both_sides, read_numbers
from .scores.layout import TRANSFORMS, float_blocks, is_exact_in_float64
from .scores.patterns import Fitted, fit_scores, order_by_hash
from .scores.tables import round_weights

_MAX_BINS: Final = 1024
_MAX_OUTPUT_MAGNITUDE: Final = 1e300
"""Largest output whose differences and gaps are safely finite."""


class _TabulatedScore(Merged):
    """A record with a table that follows from its fields."""

    __slots__ = ("_table",)
    _table: Any


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AdditiveScore(_TabulatedScore, word="AdditiveScore"):
    """A weight for the pattern of an output plus weights for the bins of its columns.

    ``score = pattern_weights[pattern] + sum over columns i of weights[group, i, bin of value i]``.
    The columns are the entries of an output, its first entry and the differences of neighbours,
    or its entries in increasing order. Column i has the edges
    ``edges[offsets[i]:offsets[i + 1]]``; its bins are the intervals between them, each with its
    lower edge, and one for NaN. The pattern is the sum of the ``keys`` of an output's bins; one
    that is not in ``patterns`` weighs 0 and uses the first group of bin weights.

    Args:
        transform: "values", "differences" or "sorted".
        edges: sorted edges, column after column.
        offsets: where each column's edges begin, and where the last one's end.
        keys: what each bin adds to the pattern, shape `(len(edges) + 2 * columns,)`; or empty.
        patterns: patterns, all different.
        groups: the row of `weights` that each pattern uses.
        pattern_weights: the weight of each pattern, in units of the log-likelihood ratio.
        weights: the weights of all bins, shape `(groups, len(edges) + 2 * columns)`; without
            rows only patterns count.

    Raises:
        TypeError: if an array does not hold numbers of its kind.
        ValueError: if lengths do not fit, edges are not sorted, or weights not finite.

    Source:
        Neyman and Pearson (1933): for independent columns the log-likelihood ratio, the best
        score, is such a sum.

    Example:
        >>> import numpy as np
        >>> score = AdditiveScore("values", [0.0], [0, 1], [], [], [], [], [[1.0, -1.0, 0.0]])
        >>> score(np.array([[-3.0], [2.0], [np.nan]])).tolist()
        [1.0, -1.0, 0.0]
        >>> print(score)
        log-likelihood ratio of the output (2 bins)
    """

    transform: str
    edges: Floats
    offsets: Whole
    keys: Words
    patterns: Words
    groups: Codes
    pattern_weights: Floats
    weights: Floats

    cost = 100
    """Nanoseconds per output on a usual machine, about; it decides between equals only."""

    def __post_init__(self) -> None:
        """Freeze the arrays; the core checks that they fit."""
        choice("transform", self.transform, TRANSFORMS)
        freeze_arrays(self)
        self._check_lengths()
        if not (np.isfinite(self.pattern_weights).all() and np.isfinite(self.weights).all()):
            raise invalid("weights", "finite", self.weights)
        if np.unique(self.patterns).size != self.patterns.size:
            raise invalid("patterns", "all different", self.patterns)
        order, first = order_by_hash(self.patterns)
        table = self.patterns[order], first, self.groups[order]
        object.__setattr__(self, "_table", (table, self.pattern_weights[order]))
        self(np.empty((0, max(0, self.offsets.size - 1))))

    def _check_lengths(self) -> None:
        for field in fields(self)[1:]:
            dimensions, shape = 1 + (field.name == "weights"), getattr(self, field.name).shape
            if len(shape) != dimensions:
                raise invalid(field.name, f"an array of {dimensions} dimensions", shape)
        size, bins = self.patterns.size, self.edges.size + 2 * (self.offsets.size - 1)
        for name in ("groups", "pattern_weights"):
            if getattr(self, name).size != size:
                raise invalid(name, f"of length {size}, as patterns are", getattr(self, name))
        if self.weights.shape[1] != bins:
            raise invalid("weights", f"rows of {bins}, one for each bin", self.weights.shape)
        if size and len(self.weights) and self.groups.max() >= len(self.weights):
            raise invalid("groups", f"below {len(self.weights)}, a row of weights", self.groups)

    @classmethod
    def of(cls, fitted: Fitted) -> AdditiveScore:
        """Return the score of a fit, without patterns that change nothing."""
        weights = round_weights(fitted.weights)
        pattern_weights = round_weights(fitted.pattern_weights)
        kept = (pattern_weights != 0.0) | (fitted.groups > 0)
        keys = fitted.keys if kept.any() else fitted.keys[:0]
        return cls(
            fitted.layout.transform, fitted.layout.edges, fitted.layout.offsets, keys,
            fitted.patterns[kept], fitted.groups[kept].astype(np.uint32),
            pattern_weights[kept], weights,
        )  # fmt: skip

    def __call__(self, outputs: Array) -> Floats:
        """Return the scores of outputs, shape `(size,)`.

        Args:
            outputs: outputs of as many entries as there are columns, shape `(size, ...)`.

        Returns:
            The scores, finite.

        Raises:
            TypeError: if the outputs are not real numbers.
            ValueError: if they have another number of entries, or whole numbers beyond 2**53.
        """
        rows = read_numbers(outputs, self.offsets.size - 1)
        layout = self.transform, self.edges, self.offsets, self.keys
        table, pattern_weights = self._table
        scores = np.empty(len(rows))
        for part, block in float_blocks(rows):
            _core.score_additive(block, layout, table, pattern_weights, self.weights, scores[part])
        return scores

    def __str__(self) -> str:
        """Return one line for a report."""
        columns = self.offsets.size - 1
        summed = f"{columns} {_TRANSFORM_NAMES[self.transform]}" if columns > 1 else "the output"
        if not self.weights.any():
            return f"log-likelihood ratio of the pattern of {summed}"
        over = "summed over" if columns > 1 else "of"
        pattern = " and a pattern" if self.patterns.size else ""
        return f"log-likelihood ratio {over} {summed}{pattern} ({self._count_bins()} bins)"

    def _count_bins(self) -> int:
        """Return the largest number of bins that the weights of a column distinguish."""
        starts = self.offsets + 2 * np.arange(self.offsets.size)
        steps = np.diff(self.weights, axis=1, append=0.0) != 0.0
        changes = steps.any(axis=0)
        # Neither the step to NaN nor the one to the next column is an edge.
        columns = zip(starts[:-1], starts[1:] - 2, strict=True)
        return 1 + max(int(np.count_nonzero(changes[a:b])) for a, b in columns)


_TRANSFORM_NAMES: Final = {
    "values": "entries", "differences": "first differences", "sorted": "order statistics",
}  # fmt: skip


@hinted
@dataclass(frozen=True, slots=True, repr=False)
class Additive(ScoreAttack):
    """The log-likelihood ratio summed over binned features of numeric outputs.

    Features are the entries of an output, its first differences, its order statistics, and the
    joint pattern of all flags, sentinels and small alphabets, with the bins of other values given
    that pattern. Log ratios of the pilot's histograms are shrunk towards 0 and neighbouring bins
    pooled where they say little. Several such scores are made, from two bins a column shared by
    all columns that the inputs treat alike to bins for every pattern; the draws that choose the
    threshold choose among them. For noise that is independent over entries or increments the
    event is, up to the bins, the optimal test; for discrete outputs of few patterns always.

    Outputs that float rounding could tell apart count as one, and edges lie in gaps between such
    clusters. NaN and infinities are values like others. Outputs that are not numbers, or whole
    numbers beyond 2**53, are not for this attack.

    Args:
        bins: quantile bins of a column, at most, beside some in both tails.

    Raises:
        TypeError: if `bins` is not an integer.
        ValueError: if it is not from 2 to 1024.

    Source:
        Neyman and Pearson (1933) for the likelihood ratio; Efron and Morris (1973) for the
        shrinkage; Bichsel, Steffen, Bogunovic and Vechev (2021), DP-Sniper, for the use of a
        score's threshold as the event.

    Example:
        >>> import dpcore
        >>> def walk(x, size, rng):
        ...     return np.cumsum(x + rng.laplace(scale=1.0, size=(size, x.size)), axis=1)
        >>> pair = dpcore.pairs.zeros_ones(3)
        >>> audit = dpcore.audit(walk, pair, attack=Additive(), claim=2.0, trials=10**5, rng=1)
        >>> audit.verdict, 2.6 < audit.epsilon_lower < 3.0
        ('refuted', True)
    """

    bins: int = 32

    def __post_init__(self) -> None:
        """Check the number of bins."""
        object.__setattr__(self, "bins", integer("bins", self.bins, 2, _MAX_BINS))

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores to try; none for outputs that are not numbers or nearly overflow.

        Args:
            outputs: pilot outputs on `x`, shape `(size, ...)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', ...)`.
            pair: the pair they were drawn on.

        Returns:
            At least one score, if the attack applies.
        """
        rows = read_both_sides(outputs, outputs_prime)
        if (
            rows is None
            or not all(map(is_exact_in_float64, rows))
            or scale_of(*rows) > _MAX_OUTPUT_MAGNITUDE
        ):
            return ()
        scores = [AdditiveScore.of(fitted) for fitted in fit_scores(*rows, pair, self.bins)]
        telling = [score for score in scores if score.weights.any() or score.patterns.size]
        return tuple(dict.fromkeys(telling or scores[:1]))


__all__ = ["Additive", "AdditiveScore"]
