"""CusText: an exponential mechanism on a short list of words for each input word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ... import _core
from ...errors import choice, integer
from ...hints import hinted
from ...records import Pair
from .mechanism import Floats, Numbers
from .tables import TableMechanism

__all__ = ["CusText"]

Mapping = Literal["conservative", "aggressive"]
_MAPPINGS: Final[tuple[Mapping, ...]] = get_args(Mapping)


@hinted
@dataclass(frozen=True, eq=False, repr=False)
class CusText(TableMechanism):
    """CusText: an output from a list of k words near x, with probability ∝ exp(epsilon u(y)/2).

    The score u is the distance from x, brought to [0, 1] within the list: 1 for the nearest word,
    0 for the farthest. The claim holds for two words with one list of outputs alone
    (`same_list`); two words with different lists have an infinite loss. Distances are numbers of
    words that differ.

    Args:
        vectors: the words and their vectors, V of them.
        epsilon: for two words of one list, above 0.
        k: words in a list, from 1 to V.
        mapping: "conservative" cuts the words into clusters of k, each the list of its words: the
            first word left over and the k - 1 left over that are nearest to it; the last cluster
            may be smaller. "aggressive" gives each word the k words nearest to it.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, there is one word only, or two words have one
            vector.

    Source:
        Chen, Mo, Wang, Chen, Nie, Wang and Cui (2023).

    Example:
        >>> from dpcore.text.leakage import Embedding
        >>> vectors = Embedding(("bad", "fine", "good", "grim"), [[0.0], [4.0], [5.0], [1.0]])
        >>> mech = CusText(vectors, 1.0, k=2)
        >>> np.exp(mech.log_rows(0, 4)).round(2)
        array([[0.62, 0.  , 0.  , 0.38],
               [0.  , 0.62, 0.38, 0.  ],
               [0.  , 0.38, 0.62, 0.  ],
               [0.38, 0.  , 0.  , 0.62]])
        >>> mech.loss(mech.pair("bad", "grim")), mech.loss(mech.pair("bad", "good"))
        (0.5, inf)
    """

    k: int = 20
    mapping: Mapping = "conservative"

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        object.__setattr__(self, "k", integer("k", self.k, 1, len(self.vectors)))
        choice("mapping", self.mapping, _MAPPINGS)

    @property
    def same_list(self) -> npt.NDArray[np.bool_]:
        """Pairs of words with one list of outputs, to which the claim applies; shape `(V, V)`."""
        lists = np.sort(self._lists, axis=1)
        numbers = np.unique(lists, axis=0, return_inverse=True)[1].ravel()
        found: npt.NDArray[np.bool_] = numbers[:, None] == numbers
        return found

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return what a reader of a report on a pair should know."""
        notes = super().notes_on(pair)
        if self.loss(pair) == float("inf"):
            notes += ("the words have different lists of outputs: the loss is infinite",)
        return notes

    def _distances(self, first: Numbers, second: Numbers) -> Floats:
        differ: Floats = (first != second).astype(np.float64)
        return differ

    @cached_property
    def _lists(self) -> Numbers:
        """Outputs of every word, shape `(V, k)`; -1 in the places that a short list lacks."""
        left = np.arange(len(self.vectors))
        if self.mapping == "aggressive":
            return self._nearest_words(left, left)
        lists = np.full((len(left), self.k), -1, np.int64)
        while len(left):
            cluster = self._nearest_words(left[:1], left)[0]
            lists[cluster, : len(cluster)] = cluster
            left = np.setdiff1d(left, cluster, assume_unique=True)
        return lists

    def _nearest_words(self, numbers: Numbers, among: Numbers) -> Numbers:
        """Return the k nearest of some words to each of others, ties to the lowest numbers."""
        vectors, depth = self.vectors.vectors, min(self.k, len(among))
        none = vectors[:0]
        starts, places, *_ = _core.nearest(vectors, none, numbers, among, depth, _core.cores())
        found: Numbers = among[places[starts[:-1, None] + np.arange(depth)]]
        return found

    def _rows_of(self, numbers: Numbers) -> Floats:
        vectors, lists = self.vectors.vectors, self._lists[numbers]
        there = lists >= 0
        apart = np.linalg.norm(vectors[numbers][:, None] - vectors[lists], axis=2)
        least = np.where(there, apart, np.inf).min(axis=1, keepdims=True)
        most = np.where(there, apart, -np.inf).max(axis=1, keepdims=True)
        scores = (most - apart) / np.where(most > least, most - least, 1.0)
        scores = np.where(there, 0.5 * self.epsilon * (scores - 1.0), -np.inf)
        scores -= np.log(np.exp(scores).sum(axis=1, keepdims=True))
        rows = np.full((len(numbers), len(self.vectors)), -np.inf)
        at = np.arange(len(numbers))[:, None]
        rows[np.broadcast_to(at, lists.shape)[there], lists[there]] = scores[there]
        return rows
