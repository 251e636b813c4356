"""Which rows each replicate keeps: delete-group jackknife, subsampling, bootstrap.

A plan knows rows and groups of rows only. Estimators turn its weights into those of the points
they search, so that every method resamples the same rows for the same seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ...errors import choice, integer, invalid
from ..raw import Reals

Labels = npt.NDArray[np.int64]
Weights = npt.NDArray[np.uint32]

Error = Literal["jackknife", "subsample", "bootstrap"]
ERRORS: Final[tuple[Error, ...]] = get_args(Error)
JACKKNIFE_GROUPS = 20
REPLICATES = 200
"""Replicates of subsampling and of the bootstrap where the caller names no number."""


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Plan to resample two sets of rows.

    Args:
        kind: "jackknife", "subsample" or "bootstrap".
        labels: for each set the unit of every row, integers from 0 without gaps, shape (n,). For
            the jackknife a unit is one of at most 20 groups, deleted as a whole; for the others
            it is a row, or the caller's group.
        units: number of units of each set.
        replicates: number of replicates; for the jackknife units[0] + units[1].
        seed: replicate i is drawn from a stream of its own, (seed, i).
    """

    kind: str
    labels: tuple[Labels, Labels]
    units: tuple[int, int]
    replicates: int
    seed: int

    def weights(self, start: int, stop: int) -> tuple[Weights, Weights]:
        """Return the count of each row in replicates [start, stop), shapes (stop - start, n)."""
        drawn = [self._drawn(i) for i in range(start, stop)]
        return (
            np.stack([units[self.labels[0]] for units, _ in drawn]),
            np.stack([units[self.labels[1]] for _, units in drawn]),
        )

    def chunks(self, rows: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of replicates whose weights take about 64 MiB for `rows` rows in all."""
        size = max(1, 2**24 // max(rows, 1))
        for start in range(0, self.replicates, size):
            yield start, min(start + size, self.replicates)

    def std_error(self, values: Reals) -> Reals:
        """Compute standard errors of the replicates' values, shape (replicates, ...) to (...).

        Delete-group jackknife (Shao and Wu 1989): (g - 1)/g times the sum of squared deviations,
        one set at a time, summed over the two. Subsampling half of the rows without replacement
        (Politis and Romano 1994): the factor sqrt(m/N)/sqrt(1 - m/N) is one. Bootstrap: the plain
        standard deviation. NaN where a replicate is not finite.
        """
        with np.errstate(invalid="ignore"):
            if self.kind != "jackknife":
                return np.asarray(np.std(values, axis=0, ddof=1))
            split = (values[: self.units[0]], values[self.units[0] :])
            parts = [(len(v) - 1) * np.var(v, axis=0) for v in split]
            return np.asarray(np.sqrt(parts[0] + parts[1]))

    def _drawn(self, i: int) -> tuple[Weights, Weights]:
        if self.kind == "jackknife":
            kept = [np.ones(units, np.uint32) for units in self.units]
            side, unit = (0, i) if i < self.units[0] else (1, i - self.units[0])
            kept[side][unit] = 0
            return kept[0], kept[1]
        rng = np.random.default_rng((self.seed, i))
        draw = _draw_half if self.kind == "subsample" else _draw_multinomial
        return draw(self.units[0], rng), draw(self.units[1], rng)


def plan_replicates(
    kind: str | None,
    sizes: tuple[int, int],
    groups: tuple[Labels | None, Labels | None],
    rng: np.random.Generator,
    replicates: int | None = None,
) -> Plan | None:
    """Make the plan for `error=kind`; return None if no error bars are requested.

    Args:
        kind: one of `ERRORS`, or None.
        sizes: rows of the two sets.
        groups: the caller's group of every row as integers from 0 without gaps, or None: groups
            stay together in every replicate.
        rng: splits the rows into groups (jackknife) and gives the seed of the replicates.
        replicates: number of replicates, `REPLICATES` if None; not for the jackknife.
    """
    if kind is None:
        return None
    choice("error", kind, ERRORS)
    seed = int(rng.integers(2**63))
    if kind != "jackknife":
        replicates = REPLICATES if replicates is None else integer("replicates", replicates, 2)
        labels = tuple(np.arange(n) if g is None else g for n, g in zip(sizes, groups, strict=True))
        units = tuple(int(label.max()) + 1 for label in labels)
        if min(units) < 2:
            raise invalid("groups", "at least 2 in each set for an error bar", min(units))
        return Plan(kind, labels, units, replicates, seed)  # type: ignore[arg-type]
    if replicates is not None:
        raise invalid("replicates", "None for the jackknife (one per group)", replicates)
    labels = tuple(_deal_groups(n, g, rng) for n, g in zip(sizes, groups, strict=True))
    units = tuple(int(label.max()) + 1 for label in labels)
    if min(units) < 2:
        raise invalid("groups", "at least 2 in each set for an error bar", min(units))
    return Plan(kind, labels, units, sum(units), seed)  # type: ignore[arg-type]


def _deal_groups(rows: int, groups: Labels | None, rng: np.random.Generator) -> Labels:
    """Deal rows (or the caller's groups) at random into at most 20 groups of equal size."""
    units = rows if groups is None else int(groups.max()) + 1
    dealt = rng.permutation(units) % min(JACKKNIFE_GROUPS, units)
    return dealt if groups is None else dealt[groups]


def _draw_half(units: int, rng: np.random.Generator) -> Weights:
    kept = np.zeros(units, np.uint32)
    kept[rng.permutation(units)[: max(1, units // 2)]] = 1
    return kept


def _draw_multinomial(units: int, rng: np.random.Generator) -> Weights:
    return np.bincount(rng.integers(units, size=units), minlength=units).astype(np.uint32)
