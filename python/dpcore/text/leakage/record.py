"""The record of an attack on the vectors of words."""

from __future__ import annotations

from dataclasses import dataclass

from ...bounds import limits
from ...errors import choice
from ...records import Record
from ..inference.judging import Measured

__all__ = ["Leakage"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leakage(Record):
    """How many private words are among the attacker's nearest.

    An interval is that of a share of words drawn at random, for these two embeddings alone; other
    embeddings of the same texts differ by more (see their spread over seeds).

    Attributes:
        words: how many private words were looked for.
        unknown: how many of them the attacker has no vector for; they count as not found.
        vocabulary: words of the attacker, V.
        anchors: words that the attacker knew before.
        topn: numbers of nearest words.
        hits: of each of them, the private words that were found.
        centred: True if the mean of each vector was subtracted first.
        dropped: how many leading directions of each embedding were removed first.
        claimed: the epsilon that noise on the victim's vectors is said to give, None without.
        true: what it gives for any two words.
        confidence: of each interval by itself.
    """

    words: int
    unknown: int
    vocabulary: int
    anchors: int
    topn: tuple[int, ...]
    hits: tuple[int, ...]
    centred: bool
    dropped: int
    claimed: float | None
    true: float | None
    confidence: float

    @property
    def shares(self) -> tuple[Measured, ...]:
        """The share of words found, for each of `topn`, with exact limits."""
        n, tail = self.words, (1.0 - self.confidence) / 2.0
        how = "Clopper-Pearson"
        return tuple(Measured(hit / n, *limits(hit, n, tail), how) for hit in self.hits)

    @property
    def chance(self) -> tuple[float, ...]:
        """What guessing finds: ``topn / V`` for each of `topn`."""
        return tuple(number / self.vocabulary for number in self.topn)

    def share(self, topn: int = 1) -> Measured:
        """The share of words found among the nearest `topn`.

        Raises:
            ValueError: if that was not asked for.
        """
        shown = tuple(map(str, self.topn))
        return self.shares[shown.index(choice("topn", str(topn), shown))]

    def __repr__(self) -> str:
        """One line: the shares."""
        found = ", ".join(f"top-{n} {s}" for n, s in zip(self.topn, self.shares, strict=True))
        return f"<Leakage of {self.words:,} words: {found}, {self.anchors:,} anchors>"

    def __str__(self) -> str:
        """The report."""
        unknown = f", {self.unknown:,} of them unknown to the attacker" if self.unknown else ""
        lines = [
            f"{self.words:,} private words{unknown}; the attacker has {self.vocabulary:,}, and "
            f"knew {self.anchors:,} before"
        ]
        lines += [
            f"top-{number}: {share} (chance {chance:.4f})"
            for number, share, chance in zip(self.topn, self.shares, self.chance, strict=True)
        ]
        if self.claimed is not None:
            lines.append(f"noise: epsilon claimed {self.claimed:g}, true {self.true:g} (any words)")
        return "\n".join(lines)
