"""Additive scores fitted on a pilot: which features, which bins, which weights.

Which of them is best depends on the mechanism, so there are several, from few bins shared by all
columns (weak signals) to patterns with bins of their own (strong ones). The draws that choose the
threshold choose among them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ... import _core
from ...records import Pair
from ..choosing.grains import grains_of
from .columns import Floats
from .features import Whole
from .layout import Layout, Words, alike, blocks, layout
from .patterns import Coding, Patterns, by_class, by_column, hashed
from .tables import Runs, clear_runs, even_runs, log_ratios, shrunk, smoothed

Rows = npt.NDArray[Any]

_SAMPLE: Final = 2**19
"""Numbers of each side on which bins are made; at least and at most so many rows."""
_ROWS: Final = (2**12, 2**16)
_FEW: Final = 5
"""Columns of so few bins are not smoothed in several ways."""
_COVERED: Final = 0.5
"""Patterns that recur hold so much of the pilot, or they are not worth a score."""


class Fitted(NamedTuple):
    """An additive score in parts.

    Args:
        layout: its columns and bins.
        keys: what every bin adds to the pattern, or nothing.
        patterns: the patterns that weigh something or have bin weights of their own, increasing.
        groups: the row of bin weights that each uses.
        pattern_weights: one for each pattern.
        weights: of every bin, shape `(groups, bins)`; no rows if bins weigh nothing.
    """

    layout: Layout
    keys: Words
    patterns: Words
    groups: Whole
    pattern_weights: Floats
    weights: Floats


class Pilot:
    """Rows of numbers of both sides, and what several fits have in common."""

    def __init__(self, rows: Rows, rows_prime: Rows, pair: Pair, bins: int) -> None:
        """Take a sample of both sides."""
        self.sides = rows, rows_prime
        self.pair, self.bins = pair, bins
        most = min(max(_SAMPLE // rows.shape[1], _ROWS[0]), _ROWS[1])
        heads = [side[:most] for side in self.sides]
        self.grains = grains_of(*heads)
        self.sample = np.concatenate([head.astype(np.float64) for head in heads])
        self.columns = rows.shape[1]
        self.own = np.arange(self.columns)
        self.sizes = len(rows), len(rows_prime)
        self.layouts: dict[tuple[str, bytes], Layout] = {}

    def layout(self, transform: str, classes: Whole) -> Layout:
        """The layout of a transform with bins by class, made once."""
        key = transform, classes.tobytes()
        if key not in self.layouts:
            found = layout(self.sample, transform, self.grains, self.bins, classes)
            self.layouts[key] = found
        return self.layouts[key]

    def counts(
        self, found: Layout, keys: Words, patterns: Words, groups: tuple[Whole, int]
    ) -> list[Floats]:
        """How often every bin of every group occurs, on x and on x', `(groups, columns, bins)`."""
        order, first = hashed(patterns)
        table = patterns[order], first, groups[0][order].astype(np.uint32)
        totals = []
        for side in self.sides:
            total = np.zeros((groups[1], found.symbols.size))
            for _, block in blocks(side):
                seen = np.empty(patterns.size + 1, dtype=np.uint64)
                counts = np.empty(total.shape, dtype=np.uint64)
                _core.count_additive(block, found.core(keys), table, seen, counts)
                total += counts
            totals.append(found.spread(total))
        return totals


def fits(rows: Rows, rows_prime: Rows, pair: Pair, bins: int) -> Iterator[Fitted]:
    """Scores to try, fitted on pilot outputs.

    Args:
        rows: outputs on x, shape `(size, columns)`.
        rows_prime: outputs on x'.
        pair: the inputs; only used to see which columns are alike.
        bins: quantile bins of a column.

    Yields:
        The scores.
    """
    pilot = Pilot(rows, rows_prime, pair, bins)
    yield from _independent(pilot, "values")
    if pilot.columns == 1:
        return
    yield from _joint(pilot)
    if np.count_nonzero(pilot.layout("values", pilot.own).valued()) > 1:
        yield from _independent(pilot, "differences")
        yield from _independent(pilot, "sorted")


_NOTHING: Final = np.zeros(0, dtype=np.uint64)
_NO_GROUPS: Final = np.zeros(0, dtype=np.int64), 1


def _independent(pilot: Pilot, transform: str) -> Iterator[Fitted]:
    """Scores of columns that are taken to be independent."""
    classes = alike(pilot.pair, transform, pilot.columns)
    kinds = [pilot.own] if classes.max() + 1 == pilot.columns else [pilot.own, classes]
    for some in kinds:
        found = pilot.layout(transform, some)
        members = np.bincount(some)[:, None]
        sides = pilot.counts(found, _NOTHING, _NOTHING, _NO_GROUPS)
        k, k_prime = (_by_class(side[0], some) for side in sides)
        runs: list[Runs | None] = [clear_runs(k, k_prime)]
        if k.shape[1] > _FEW and transform != "sorted":
            # Few bins are for weak signals, and best where several columns share them.
            if some is kinds[-1]:
                runs += [even_runs(k, k_prime, 2), even_runs(k, k_prime, 4)]
            if some is pilot.own and transform == "values":
                runs.append(None)
        n, n_prime = (members * size for size in pilot.sizes)
        for each in runs:
            flat = found.flat(smoothed(k, k_prime, n, n_prime, each)[some])[None]
            yield Fitted(found, _NOTHING, _NOTHING, _NO_GROUPS[0], np.zeros(0), flat)


def _by_class(counts: Floats, kinds: Whole) -> Floats:
    """Sums over the columns of each class."""
    sums = np.zeros((int(kinds.max()) + 1, counts.shape[1]))
    np.add.at(sums, kinds, counts)
    return sums


def _joint(pilot: Pilot) -> Iterator[Fitted]:
    """Scores of patterns, alone and with values given the pattern."""
    classes = alike(pilot.pair, "values", pilot.columns)
    found = pilot.layout("values", classes)
    codings: list[Coding | None] = [by_column(found)]
    if classes.max() + 1 < pilot.columns:
        codings.append(by_class(found, classes))
    for coding in codings:
        if coding is None or (coding.sizes == 1).all():
            continue
        patterns = Patterns.of(*pilot.sides, found, coding)
        if patterns.keys.size > 1 and patterns.covered() >= _COVERED:
            yield from _given(pilot, found, patterns, classes)


def _given(pilot: Pilot, found: Layout, patterns: Patterns, classes: Whole) -> Iterator[Fitted]:
    """The pattern alone, then with values given the symbol and given the pattern."""
    keys, weights = patterns.coding.keys, patterns.weights()
    none = np.zeros(patterns.keys.size, dtype=np.int64)
    yield Fitted(found, keys, patterns.keys, none, weights, np.zeros((0, found.symbols.size)))
    if not found.valued().any():
        return
    groups, ordinary = patterns.groups(), found.ordinary()
    sides = pilot.counts(found, keys, patterns.keys, groups)
    sides = [np.where(ordinary, side, 0.0) for side in sides]
    usual = np.where(ordinary, _given_symbol(sides, classes)[classes], 0.0)
    yield Fitted(found, keys, patterns.keys, none, weights, found.flat(usual)[None])
    if groups[1] > 1 and patterns.coding.radices is not None:
        own = np.where(ordinary, _given_symbol(sides, pilot.own), 0.0)
        bins = np.where(ordinary, _given_pattern(sides, own), 0.0)
        yield Fitted(found, keys, patterns.keys, groups[0], weights, found.flat(bins))


def _given_symbol(sides: list[Floats], kinds: Whole) -> Floats:
    """Weights of ordinary values given that they are such, shape `(classes, bins)`."""
    k, k_prime = (_by_class(side.sum(axis=0), kinds) for side in sides)
    n, n_prime = (side.sum(axis=1, keepdims=True) for side in (k, k_prime))
    return smoothed(k, k_prime, n, n_prime, clear_runs(k, k_prime))


def _given_pattern(sides: list[Floats], usual: Floats) -> Floats:
    """Weights given the pattern: the usual ones and what the pilot says beyond doubt of others."""
    k, k_prime = sides
    n, n_prime = (side.sum(axis=2, keepdims=True) for side in sides)
    ratios, variances = log_ratios(k, k_prime, n, n_prime)
    seen = k + k_prime > 0
    beyond = shrunk(np.where(seen, ratios - usual, 0.0), variances, axis=(0, 2), live=seen)
    # The group of all other patterns keeps the usual weights.
    beyond[0] = 0.0
    weights: Floats = usual + beyond
    return weights
