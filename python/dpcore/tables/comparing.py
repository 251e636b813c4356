"""Every pair of rows of a table: worst losses, hockey-stick and Renyi divergences, in tiles.

A tile is a block of rows against rows from its first on, so that every pair is met once, in both
directions at once. No table of all pairs is ever held.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import invalid, real, vector
from ..progress import Progress
from .neighbours import Flags, Neighbours
from .reading import Floats, Table

__all__ = ["Comparison", "Tally"]

_LARGEST_EXPONENT: Final = 700.0
"""e to this power, times the least positive number, is a float64."""

_MIN_BLOCK_ROWS, _MAX_BLOCK_ROWS = 64, 128
"""Rows of a block, about a sixteenth of the table: a block against itself is computed twice."""

_MAX_READ_LOGARITHMS: Final = 2**20
"""Logarithms that are computed at a time: 8 MiB."""

_MAX_TILE_PAIRS: Final = 2**18
"""Pairs of a tile at most."""


@dataclass(slots=True)
class Tally:
    """The greatest losses among all pairs.

    Attributes:
        per_input: the greatest ratio of each input so far, -inf before the first.
        claim: the claim tested, or None.
        tolerance: loss in nats that roundings explain.
        best: the greatest ratio, its inputs, its loss, its distance.
        excess: the greatest loss beyond claim x distance, and its inputs.
        pairs: ordered pairs compared.
        infinite: those with an infinite ratio.
    """

    per_input: Floats
    claim: float | None
    tolerance: float
    best: tuple[float, int, int, float, float] = (-np.inf, -1, -1, 0.0, 1.0)
    excess: tuple[float, int, int] = (-np.inf, -1, -1)
    pairs: int = 0
    infinite: int = 0

    def add(
        self, losses: Floats, at: tuple[int, int], apart: Floats | None, mask: Flags | None
    ) -> bool:
        """Add losses of a block of ordered pairs; True if one of them is the new best.

        Args:
            losses: worst losses, shape `(rows, others)`.
            at: number of the first row and of the first other.
            apart: their distances, or None.
            mask: which of them are neighbours, or None for all.
        """
        ratios = losses if apart is None else self._per_distance(losses, apart)
        if mask is not None:
            ratios = np.where(mask, ratios, -np.inf)
        self.pairs += losses.size if mask is None else int(np.count_nonzero(mask))
        rows = slice(at[0], at[0] + len(losses))
        highest = ratios.max(axis=1)
        np.maximum(self.per_input[rows], highest, out=self.per_input[rows])
        top = float(highest.max())
        if top == np.inf:
            self.infinite += int(np.count_nonzero(ratios == np.inf))
        self._test(losses, at, apart, mask)
        if top == -np.inf or top < self.best[0]:
            return False
        row = int(np.argmax(highest))
        other = int(np.argmax(ratios[row]))
        found = at[0] + row, at[1] + other
        # The first of equal ones, in whatever order the tiles come.
        if top == self.best[0] and found > self.best[1:3]:
            return False
        distance = 1.0 if apart is None else float(apart[row, other])
        self.best = (top, *found, float(losses[row, other]), distance)
        return True

    def _per_distance(self, losses: Floats, apart: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            ratios = losses / apart
        at_zero = apart == 0.0
        if at_zero.any():
            # Rows that were computed twice differ by roundings.
            ratios[at_zero] = np.where(losses[at_zero] > self.tolerance, np.inf, 0.0)
        return ratios

    def _test(
        self, losses: Floats, at: tuple[int, int], apart: Floats | None, mask: Flags | None
    ) -> None:
        if self.claim is None:
            return
        beyond = losses - (self.claim if apart is None else self.claim * apart)
        if mask is not None:
            beyond = np.where(mask, beyond, -np.inf)
        top = float(beyond.max())
        if top > self.excess[0]:
            row, other = np.unravel_index(int(np.argmax(beyond)), beyond.shape)
            self.excess = top, at[0] + int(row), at[1] + int(other)


class _Tile(NamedTuple):
    """Rows of a block, rows from its first on, and the distances and the neighbours of both."""

    rows: tuple[int, int]
    others: tuple[int, int]
    apart: Floats | None
    mask: Flags | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.others[1] - self.others[0], self.rows[1] - self.rows[0]


@dataclass(frozen=True, slots=True)
class Comparison:
    """A table and the pairs of its rows that are neighbours."""

    table: Table
    neighbours: Neighbours
    threads: int
    progress: bool | None = None

    def tally_losses(self, claim: float | None, tolerance: float) -> tuple[Tally, int]:
        """Tally the losses of all pairs, and find an output that attains the worst."""
        table = self.table
        tally = Tally(np.full(table.inputs, -np.inf), claim, tolerance)
        if hasattr(table.owner, "loss_rows"):
            output = self._tally_owned(tally)
        else:
            for tile, (rows, others) in self._blocks("comparing rows", table.log_rows):
                ahead, back = np.empty(tile.shape), np.empty(tile.shape)
                _core.table_ratios(rows, others, ahead, back, self.threads)
                tally.add(ahead.T, (tile.rows[0], tile.others[0]), tile.apart, tile.mask)
                # Rows of the block against one another were met already.
                first = max(tile.others[0], tile.rows[1])
                rest = slice(first - tile.others[0], None)
                apart = None if tile.apart is None else tile.apart.T[rest]
                mask = None if tile.mask is None else tile.mask.T[rest]
                if first < tile.others[1]:
                    tally.add(back[rest], (first, tile.rows[0]), apart, mask)
            output = -1
        if tally.best[1] < 0:
            name = self.neighbours.name
            raise invalid("neighbour", "a relation that holds for a pair of rows", name)
        return tally, output

    def _tally_owned(self, tally: Tally) -> int:
        """Tally the losses that the object computes itself."""
        table, output = self.table, -1
        with self._bar("comparing rows", table.inputs) as bar:
            for start, stop in _split_range(
                0, table.inputs, max(1, _MAX_READ_LOGARITHMS // table.inputs)
            ):
                losses, outputs = table.loss_rows(start, stop)
                mask = self.neighbours.among((start, stop), (0, table.inputs))
                if tally.add(losses, (start, 0), table.distance_rows(start, stop), mask):
                    output = int(outputs[tally.best[1] - start, tally.best[2]])
                bar.advance(stop - start)
        return output

    def delta(self, epsilon: Any) -> float:
        """Return the worst hockey-stick divergence at e^(epsilon distance)."""
        epsilon = real("epsilon", epsilon, low=0.0)
        worst = 0.0
        for tile, (rows, others) in self._blocks("divergences", self.table.rows):
            powers = np.full(tile.shape, epsilon)
            if tile.apart is not None:
                powers *= tile.apart.T
            ahead, back = np.empty(tile.shape), np.empty(tile.shape)
            factors = np.exp(np.minimum(powers, _LARGEST_EXPONENT))
            _core.table_sticks(rows, others, factors, ahead, back, self.threads)
            beyond = powers > _LARGEST_EXPONENT
            if beyond.any():
                self._correct(tile, powers, beyond, ahead, back)
            greater = np.maximum(ahead, back)
            if tile.mask is not None:
                greater = greater[tile.mask.T]
            worst = max(worst, float(greater.max(initial=0.0)))
        return min(worst, 1.0)

    def _correct(
        self, tile: _Tile, powers: Floats, beyond: Flags, ahead: Floats, back: Floats
    ) -> None:
        """Compute again, from logarithms, what e^power times a probability cannot say."""
        rows = self.table.log_rows(*tile.rows)
        others = self.table.log_rows(*tile.others)
        losses = np.empty(tile.shape), np.empty(tile.shape)
        _core.table_ratios(rows, others, *losses, self.threads)
        sides = ((ahead, losses[0], False), (back, losses[1], True))
        for found, loss, turned in sides:
            # Without a loss beyond the power there is no divergence.
            found[beyond] = 0.0
            for j, i in np.argwhere(beyond & (loss > powers)):
                a, b = (others[j], rows[i]) if turned else (rows[i], others[j])
                with np.errstate(invalid="ignore"):
                    gap = powers[j, i] + b - a
                # Where the first is zero there is nothing; NaN is zero against zero.
                kept = gap < 0.0
                found[j, i] = float((np.exp(a[kept]) * -np.expm1(gap[kept])).sum())

    def renyi(self, alphas: Any) -> Floats:
        """Return the worst Renyi divergence of each order."""
        orders = vector("alphas", alphas)
        if not (orders > 1.0).all():
            raise invalid("alphas", "orders above 1, finite", alphas)
        worst = np.zeros(orders.size)
        for tile, (rows, others) in self._blocks("divergences", self.table.log_rows):
            for place, alpha in enumerate(orders.tolist()):
                for a, b, turned in ((rows, others, False), (others, rows, True)):
                    sums = _log_sums(a, b, alpha)
                    if tile.mask is not None:
                        sums = sums[tile.mask.T if turned else tile.mask]
                    top = float(sums.max(initial=-np.inf)) / (alpha - 1.0)
                    worst[place] = max(worst[place], top)
        return worst

    def _blocks(self, label: str, read: Any) -> Iterator[tuple[_Tile, tuple[Floats, Floats]]]:
        """Yield all tiles with a pair of neighbours, with what `read` gives of their rows."""
        table = self.table
        # Reads and checks the whole of a small table.
        table.log_rows(0, 1)
        step = min(_MAX_BLOCK_ROWS, max(_MIN_BLOCK_ROWS, table.inputs // 16))
        many = _MAX_TILE_PAIRS // step
        if not (table.in_memory and read == table.log_rows):
            many = max(1, min(many, _MAX_READ_LOGARITHMS // table.outputs))
        with self._bar(label, table.inputs * (table.inputs + step) / 2) as bar:
            for rows in _split_range(0, table.inputs, step):
                block, apart = read(*rows), table.distance_rows(*rows)
                for others in _split_range(rows[0], table.inputs, many):
                    mask = self.neighbours.among(rows, others)
                    if mask is None or mask.any():
                        part = None if apart is None else apart[:, slice(*others)]
                        tile = _Tile(rows, others, part, mask)
                        yield tile, (block, read(*others))
                    bar.advance((rows[1] - rows[0]) * (others[1] - others[0]))

    def _bar(self, label: str, total: float) -> Progress:
        return Progress(label, total, self.progress)


def _split_range(start: int, stop: int, step: int) -> Iterator[tuple[int, int]]:
    for first in range(start, stop, step):
        yield first, min(stop, first + step)


def _log_sums(a: Floats, b: Floats, alpha: float) -> npt.NDArray[np.float64]:
    """Return logs of the sums of p^alpha q^(1 - alpha), shape `(rows of a, rows of b)`.

    A product of matrices where q^(1 - alpha) is at most e^700. A term that p^alpha loses to
    underflow is below e^-45 then, and the sum, of which the divergence of order above 1 is not
    negative, is at least 1. Elsewhere terms are added as logarithms, row by row.
    """
    held = np.isfinite(b)
    if (alpha - 1.0) * -float(b[held].min(initial=0.0)) > _LARGEST_EXPONENT:
        return np.stack([_add_logarithms(alpha, row, b) for row in a])
    powers = np.exp((1.0 - alpha) * np.where(held, b, 0.0)) * held
    with np.errstate(divide="ignore"):
        found: Floats = np.log(np.exp(alpha * a) @ powers.T)
    if not held.all():
        found[np.isfinite(a).astype(np.float64) @ (~held).astype(np.float64).T > 0.0] = np.inf
    return found


def _add_logarithms(alpha: float, row: Floats, b: Floats) -> Floats:
    with np.errstate(invalid="ignore"):
        terms = alpha * row + (1.0 - alpha) * b
    # Zero against zero, and zero against a positive probability, add nothing.
    terms[:, np.isneginf(row)] = -np.inf
    top = terms.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        sums = np.exp(terms - top).sum(axis=1)
    return np.where(np.isposinf(top[:, 0]), np.inf, top[:, 0] + np.log(sums))
