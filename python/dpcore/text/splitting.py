"""Splits in which no text of one part occurs in another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import choice, instance, invalid, mistyped, real
from ..hints import hinted
from ..streams import Rng, seed_of
from .corpus import SPLITS, Column, Corpus

__all__ = ["likeness", "parts_of", "split"]


def likeness(text: str) -> str:
    """Return a text without letter case and white space: texts that share it count as equal.

    Example:
        >>> likeness("A  Goal ") == likeness("a goal")
        True
    """
    return " ".join(text.split()).casefold()


@hinted
def split(
    corpus: Corpus,
    shares: Sequence[float] | Mapping[str, float] = (0.8, 0.1, 0.1),
    rng: Rng = None,
    *,
    group: Any = None,
) -> Corpus:
    """Split a corpus at random into train, valid and test; equal texts stay together.

    A text that occurs k times is one group of k rows: groups are shuffled and laid end to end,
    and each goes to the part in which its middle lies. So a part misses its share by at most half
    a group at either end, whatever the labels; texts are equal that differ only in letter case
    or white space. No class is balanced.

    Args:
        corpus: the texts; a split that it has is replaced.
        shares: of train, valid and test, at least 0, adding up to 1; or a mapping from the names
            of some of them.
        rng: None, an int or a Generator; the origin of the result names the seed.
        group: the author, or another group, of each text: no group comes into two parts, so that
            groups which share a text stay together. The name of an attribute, or a column with a
            value for each text; None takes the groups of the corpus (`read(group=)`) where it has
            some.

    Returns:
        The corpus in its order, with a split.

    Raises:
        TypeError: if `corpus` is none, or shares are no numbers.
        ValueError: if shares do not add up to 1, or a part would be left without a text, as
            where one group is every text.

    Example:
        >>> corpus = Corpus([f"text {i % 50}" for i in range(100)])
        >>> split(corpus, (0.8, 0.1, 0.1), rng=1)
        Corpus(100 texts; train 80, valid 10, test 10; split 0.8/0.1/0.1, seed 1)
    """
    instance("corpus", corpus, Corpus)
    wanted, seed = _read_shares(shares), seed_of(rng)
    groups = _group_column(corpus, group)
    part = parts_of(corpus.texts, wanted, np.random.default_rng(seed), groups)
    shown = "/".join(f"{share:g}" for share in wanted)
    origin = f"{corpus.origin}; " if corpus.origin else ""
    how = "" if groups is None else " by groups"
    return replace(corpus, split=part, origin=f"{origin}split {shown}{how}, seed {seed}")


def _group_column(corpus: Corpus, group: Any) -> Column | None:
    """Return the group of each text, or None where there is none."""
    if group is None:
        found: Column | None = corpus.groups
        return found
    if isinstance(group, str):
        if not corpus.attributes:
            raise invalid("group", "an attribute of the corpus, which has none", group)
        return corpus.attribute(choice("group", group, tuple(corpus.attributes)))
    found = replace(corpus, groups=group).groups
    return found


def parts_of(
    texts: Sequence[str],
    shares: Sequence[float],
    rng: np.random.Generator,
    column: Column | None = None,
) -> list[str]:
    """Return the part of every text, for shares of train, valid and test.

    Equal texts are in one part, and texts with equal values of the column.
    """
    group = _number_components(texts, column)
    sizes = np.bincount(group)
    order = rng.permutation(len(sizes))
    middle = np.empty(len(sizes))
    middle[order] = np.cumsum(sizes[order]) - sizes[order] / 2
    # A share of 0 gets no text, even where rounding leaves one.
    kept = [name for name, share in zip(SPLITS, shares, strict=True) if share > 0]
    ends = np.cumsum([share for share in shares if share > 0])[:-1] * len(texts)
    part = [kept[i] for i in np.searchsorted(ends, middle, side="right")[group]]
    for name in kept:
        if name not in part:
            if column is not None:
                requirement = f"of enough groups for a {name!r} part"
                values = len(np.unique(column))
                found = f"{values:,} groups, {len(sizes):,} without a text in common"
                raise invalid("group", requirement, found)
            requirement = f"of enough different texts for a {name!r} part"
            raise invalid("corpus", requirement, f"{len(sizes):,} different texts")
    return part


def _number_components(texts: Sequence[str], column: Column | None) -> npt.NDArray[np.int64]:
    """Return the number of the component of each text: texts that are equal or of one group."""
    number: dict[str, int] = {}
    alike = np.array([number.setdefault(likeness(text), len(number)) for text in texts])
    if column is None:
        return alike
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    groups = len(number) + np.unique(column, return_inverse=True)[1]
    size = int(groups.max()) + 1
    graph = coo_array((np.ones(len(alike)), (alike, groups)), shape=(size, size))
    found: npt.NDArray[np.int64] = connected_components(graph, directed=False)[1][alike]
    return found


def _read_shares(shares: Any) -> list[float]:
    requirement = "three shares, of train, valid and test, or a mapping from their names"
    if isinstance(shares, Mapping):
        for name in shares:
            choice("shares", name, SPLITS)
        shares = [shares.get(name, 0.0) for name in SPLITS]
    elif isinstance(shares, (str, bytes)) or not isinstance(shares, (Sequence, np.ndarray)):
        raise mistyped("shares", requirement, shares)
    if len(shares) != len(SPLITS):
        raise invalid("shares", requirement, shares)
    found = [real(f"shares[{i}]", share, low=0.0) for i, share in enumerate(shares)]
    if abs(sum(found) - 1.0) > 1e-9:
        raise invalid("shares", "shares that add up to 1", shares)
    return found
