"""Runs of trials cut at the edges of blocks, and the forecast of a slow audit's time."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from ..progress import LONG_SECONDS, format_time

_SLOW_OUTPUT_SECONDS: Final = 0.01
"""Seconds for an output from which on there is a forecast."""
_FAST_OUTPUT_SECONDS: Final = 0.001
"""Seconds for an output up to which there is none: a call's own time hides that of an output."""
_MAX_ADVISED_SECONDS: Final = 600.0
_MIN_ADVISED_TRIALS: Final = 100
"""The trials proposed instead: a power of ten that takes at most ten minutes."""


def iterate_blocks(start: int, stop: int, block: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges into which block boundaries cut [start, stop)."""
    edges = [start, *range((start // block + 1) * block, stop, block), stop]
    return itertools.pairwise(edges) if start < stop else iter(())


def shared_block(trials: int, threads: int) -> int:
    """Compute the trials in a block such that every thread has one block."""
    return max(1, trials // threads)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of an audit's time from a few calls; it is printed, never recorded.

    Args:
        seconds: for one output, at best.
        calls: that were timed.
        search: draws a side to choose the pair.
        first: draws a side of the first pilot of a search, which is always finished.
        limit: seconds that a search may take, or None.
        pilot: draws a side that choose the event, for this number of trials.
        trials: draws a side that are counted.
        early: True if the count may end before.
        most: the largest bound that the trials can certify; None if it is not known.
        claim: that is tested, or None.
        threads: workers.
        block: trials in a block.
        one_by_one: True if each output has a call of its own.
        shared: True if threads may share these calls.
    """

    seconds: float
    calls: int
    search: int
    first: int
    limit: float | None
    pilot: Callable[[int], int]
    trials: int
    early: bool
    most: Callable[[int], float] | None
    claim: float | None
    threads: int
    block: int
    one_by_one: bool
    shared: bool

    def __str__(self) -> str:
        """Return lines for a terminal; empty if an output takes less than 1 ms.

        Also where it takes less than 10 ms and the audit less than 30 s.
        """
        if self.seconds < _FAST_OUTPUT_SECONDS or (
            self.seconds < _SLOW_OUTPUT_SECONDS and self._takes(self.trials) < LONG_SECONDS
        ):
            return ""
        parts = [f"2 x {self.search:,} to choose the pair"] if self.search else []
        parts += [f"2 x {self.pilot(self.trials):,} pilots", f"2 x {self.trials:,} to count"]
        rough = " (by one call, which may be the slowest)" if self.calls < 2 else ""
        most = "at most " if self.early or self.limit is not None else ""
        lines = [
            f"dpcore: an output takes about {format_time(self.seconds)}{rough}, and there are "
            f"{', '.join(parts)}: {most}{format_time(self._takes(self.trials))}"
            + (f" if {self.threads} calls run at a time" if self.threads > 1 else ""),
            *self._fewer(),
        ]
        if self.search:
            lines.append(
                "a search takes less with a smaller budget=, or with the one pair that it found"
            )
        lines += self._shared()
        if self.one_by_one:
            lines.append("a mechanism (x, size, rng) draws many outputs in one call, if it can")
        return "\n  ".join(lines)

    def _takes(self, trials: int) -> float:
        search = 2 * self.search * self.seconds
        if self.limit is not None:
            search = min(search, max(self.limit, 2 * self.first * self.seconds))
        blocks = -(-trials // self.block)
        counted = 2 * (self.pilot(trials) + trials) * self.seconds
        return search + counted / max(1, min(self.threads, blocks))

    def _fewer(self) -> list[str]:
        if self._takes(self.trials) <= _MAX_ADVISED_SECONDS or self.trials <= _MIN_ADVISED_TRIALS:
            return []
        trials = _MIN_ADVISED_TRIALS
        while 10 * trials < self.trials and self._takes(10 * trials) <= _MAX_ADVISED_SECONDS:
            trials *= 10
        line = f"trials={trials} takes about {format_time(self._takes(trials))}"
        if self.most is None:
            return [line]
        most = self.most(trials)
        few = self.claim is not None and most <= self.claim
        said = f", too few for a claim of {self.claim:g}" if few else ""
        line += f" and certifies an epsilon of {most:.2f} at most{said}"
        return [f"{line} ({self.trials:,} trials: {self.most(self.trials):.2f})"]

    def _shared(self) -> list[str]:
        blocks = -(-self.trials // self.block)
        if self.threads > 1:
            wanted = shared_block(self.trials, self.threads)
            few = f"{self.trials:,} trials are {blocks} of {self.block:,}"
            told = f"blocks are shared out, and {few}: give block={wanted}"
            return [told] if blocks < self.threads else []
        if self.shared:
            return ["threads=8 makes eight of these calls at a time"]
        if self.one_by_one:
            return [
                "dpcore.repeat(..., thread_safe=True) and threads=8, where the code allows it, or "
                "executor=, share the calls out"
            ]
        return ["threads= or executor= share blocks of calls out; block= says how long they are"]
