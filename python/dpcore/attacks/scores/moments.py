"""Second moments of the columns of outputs, and where they differ between the two sides."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..choosing.grains import Grain, cuts_of, grain_of
from .columns import Floats

Rows = npt.NDArray[Any]
Whole = npt.NDArray[np.int64]

MOST_COLUMNS: Final = 512
_CENTRED_ROWS: Final = 2**11
"""Rows a side from which centres and scales are taken."""
_FEW_COLUMNS: Final = 64
_EVIDENCE: Final = 5.0
"""Standard errors by which a moment must differ among few columns: of 4,000 moments that do not,
one in 400 pilots has one that does. Among 512 columns it is 6."""
_SHARE: Final = 0.381966011250105
"""Where a sign changes in its gap: at no simple fraction, where an unseen atom may sit."""
_WIDEST = 32.0
"""As for atoms: gaps have so many tolerances, and a wider cluster is a continuum."""
_NORMAL: Final = 1.349
"""The quartiles of a normal law are so many standard deviations apart."""


class Frame(NamedTuple):
    """The columns that are compared.

    Args:
        entries: their places in an output.
        cuts: where their signs change.
        centres: their medians.
        scales: their spreads, above 0.
        many: which have more than two values.
    """

    entries: Whole
    cuts: Floats
    centres: Floats
    scales: Floats
    many: npt.NDArray[np.bool_]


def frame_of(rows: Rows, rows_prime: Rows) -> Frame:
    """The columns that vary, at most 64, and their places and spreads."""
    some = np.concatenate([rows[:_CENTRED_ROWS], rows_prime[:_CENTRED_ROWS]])
    entries = np.flatnonzero((some != some[:1]).any(axis=0))
    if entries.size > MOST_COLUMNS:
        # Columns that depend on each other are neighbours more often than not.
        starts = np.linspace(0, entries.size - 2, MOST_COLUMNS // 2).astype(np.int64)
        entries = np.unique(entries[np.concatenate([starts, starts + 1])])
    kept, found = [], []
    for entry in entries:
        made = _centre(some[:, entry], grain_of(some[:, entry], some[:0, entry]))
        if made is not None:
            kept.append(int(entry))
            found.append(made)
    cuts, centres, scales, many = np.array(found, dtype=np.float64).reshape(-1, 4).T
    return Frame(np.array(kept, dtype=np.int64), cuts, centres, scales, many > 0.0)


def _centre(values: Rows, grain: Grain) -> tuple[float, float, float, float] | None:
    """Where the sign changes, median, spread, 1 for more than two values; None for a constant."""
    known = np.sort(values.astype(np.float64))
    known = known[np.isfinite(known)]
    gaps, slack = cuts_of(known, grain), grain.typical
    if gaps.size == 0 and (known.size == 0 or known[-1] - known[0] <= _WIDEST * slack):
        return None
    middle = float(known[known.size // 2])
    quartiles = known[[known.size // 4, 3 * known.size // 4]]
    spread = float(quartiles[1] - quartiles[0]) / _NORMAL
    # A column that is mostly one value has quartiles that agree.
    scale = spread if spread > _WIDEST * slack else float(np.std(known - middle))
    many = float(gaps.size > 1 or (known[-1] - known[0] > 0.0 and gaps.size == 0))
    return (_cut(known, gaps, slack), middle, scale, many) if np.isfinite(scale) else None


def _cut(known: Floats, gaps: npt.NDArray[np.intp], slack: float) -> float:
    """The gap nearest to the median: rounding never carries a value across it."""
    middle = known.size // 2
    ends = np.concatenate([[-1], gaps, [known.size - 1]])
    place = int(np.searchsorted(ends, middle))
    first, last = known[ends[place - 1] + 1], known[ends[place]]
    if gaps.size == 0 or last - first > _WIDEST * slack:
        # The tolerance of a scale that this column does not have: no gap is near its median.
        return float(known[middle])
    gap = gaps[np.argmin(np.abs(gaps + 1 - known.size / 2))]
    return float(known[gap] + _SHARE * (known[gap + 1] - known[gap]))


class Moments(NamedTuple):
    """Covariances of all pairs of columns, on x and on x', and how they differ.

    Around each side's own means: where columns are independent on both sides, however far apart
    the sides are, nothing differs, and nothing is left to see that sums over columns do not.

    Args:
        on_x: shape `(columns, columns)`.
        on_x_prime: the same on x'.
        evidence: standard errors between them, 0 on the diagonal.
    """

    on_x: Floats
    on_x_prime: Floats
    evidence: Floats

    @classmethod
    def of(cls, values: Floats, values_prime: Floats) -> Moments:
        """The moments of columns, shape `(columns, size)`, one matrix product a side and power."""
        means, errors = [], []
        for side in (values, values_prime):
            # In single precision: half the time, and far finer than the standard error.
            single = side.astype(np.float32)
            single -= single.mean(axis=1, keepdims=True)
            mean = (single @ single.T).astype(np.float64) / side.shape[1]
            square = single * single
            second = (square @ square.T).astype(np.float64) / side.shape[1]
            means.append(mean)
            # Of a moment that seems certain, one more product is taken to be against it.
            least = 1.0 / side.shape[1]
            errors.append(np.maximum(second - mean * mean, least) / side.shape[1])
        evidence = (means[0] - means[1]) / np.sqrt(errors[0] + errors[1])
        np.fill_diagonal(evidence, 0.0)
        return cls(means[0], means[1], evidence)

    def telling(self) -> tuple[Whole, Whole]:
        """Pairs that differ beyond chance, the most telling ones first."""
        size = np.abs(np.triu(self.evidence, 1))
        order = np.argsort(-size, axis=None, kind="stable")
        least = _EVIDENCE + (len(size) > _FEW_COLUMNS)
        order = order[: np.count_nonzero(size > least)]
        first, second = np.unravel_index(order, size.shape)
        return first.astype(np.int64), second.astype(np.int64)
