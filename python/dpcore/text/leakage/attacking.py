"""The attack: which of the attacker's words lie nearest to a private vector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import confidence_level, flag, integer, invalid, mistyped
from ...hints import hinted
from ...progress import Progress
from .embedding import Embedding, Floats
from .record import Leakage
from .words import common

__all__ = ["attack"]

_BLOCK: Final = 2**23
"""Cosines at a time: 64 MiB."""


@hinted
def attack(
    victim: Any,
    attacker: Any,
    words: Any = None,
    *,
    anchors: Any = (),
    topn: Any = (1, 5),
    centre: bool = False,
    drop: int = 0,
    confidence: float = 0.95,
    progress: bool | None = None,
) -> Leakage:
    """Is a private word among the attacker's words that are nearest to its vector?

    Nearest by the cosine; a word that ties with another one comes last. Two embeddings that were
    learnt apart differ by a rotation, which a few known words settle: with `anchors` the victim's
    vectors are first turned by the orthogonal matrix that brings theirs closest to the
    attacker's, ``argmin_R ||V R - A||``, rows scaled to length 1. Directions that fewer anchors
    than dimensions leave open are not compared.

    Args:
        victim: the `Embedding` that is attacked (`Embedding.of` makes one of gensim's vectors).
        attacker: the attacker's own `Embedding`, of the same dimension.
        words: private words to look for; None are all of the victim's that are no anchors. Words
            that the attacker lacks count as not found.
        anchors: words whose vectors the attacker knows in both embeddings; () turns nothing.
        topn: how many nearest words count, one number or several.
        centre: True to subtract from each vector the mean of its entries: what min-max shifted.
        drop: how many leading principal directions of each embedding, and its mean vector, are
            removed first; 0 removes nothing. The vectors of all words share them, and where few
            texts were read they hide what is a word's own: its start above all.
        confidence: of each interval by itself.
        progress: a bar: True, False or None (where somebody is looking).

    Returns:
        The `Leakage`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the dimensions differ, no words are common, a word or an anchor is unknown
            or given twice, a word is an anchor, `topn` is below 1 or above the attacker's number
            of words, `drop` not below the dimension, or a vector is zero.

    Source:
        A study of DPNR (Lyu, He and Li, 2020), which tries it without anchors; Schoenemann (1966)
        for the rotation; Mu and Viswanath (2018) for what is dropped.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> words = [f"word{i}" for i in range(200)]
        >>> mine = Embedding(words, rng.normal(size=(200, 10)))
        >>> turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        >>> theirs = Embedding(words, mine.vectors @ turn)
        >>> attack(mine, theirs, words[100:]).share(1).value
        0.0
        >>> attack(mine, theirs, words[100:], anchors=words[:20]).share(1).value
        1.0
    """
    common(victim, attacker)
    if attacker.dim != victim.dim:
        raise invalid("attacker", f"of the victim's dimension, {victim.dim}", attacker.dim)
    known = _listed("anchors", anchors, victim, attacker)
    wanted = _wanted(words, known, victim)
    numbers = _numbers(topn, len(attacker))
    confidence, flat = confidence_level(confidence), flag("centre", centre)
    drop = integer("drop", drop, 0, victim.dim - 1)
    there = np.array([attacker.rows.get(word, -1) for word in wanted])
    from threadpoolctl import threadpool_limits

    # One thread: the same bits for every number of cores, and a small SVD takes 3 ms, not 360.
    with threadpool_limits(1):
        if drop:
            victim, attacker = _less(victim, drop), _less(attacker, drop)
        theirs = _unit("attacker", attacker, attacker.words, flat)
        mine = _unit("victim", victim, wanted, flat)
        if known:
            mine = mine @ _rotation(victim, attacker, known, flat)
        ranks = _ranks(mine[there >= 0], theirs, there[there >= 0], progress)
    return Leakage(
        words=len(wanted),
        unknown=int(np.sum(there < 0)),
        vocabulary=len(attacker),
        anchors=len(known),
        topn=numbers,
        hits=tuple(int(np.sum(ranks <= number)) for number in numbers),
        centred=flat,
        dropped=drop,
        claimed=victim.claimed,
        true=None if victim.real is None else victim.real.value,
        confidence=confidence,
    )


def _listed(name: str, given: Any, *embeddings: Embedding) -> tuple[str, ...]:
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise mistyped(name, "a list of words", given)
    words = tuple(given)
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise mistyped(f"{name}[{row}]", "a string", word)
        if not all(word in one for one in embeddings):
            both = "both embeddings" if len(embeddings) > 1 else "the victim's embedding"
            raise invalid(f"{name}[{row}]", f"a word of {both}", word)
    if len(set(words)) < len(words):
        raise invalid(name, "words that are there once", given)
    return words


def _wanted(words: Any, known: tuple[str, ...], victim: Embedding) -> tuple[str, ...]:
    taken = set(known)
    if words is None:
        wanted = tuple(word for word in victim.words if word not in taken)
    else:
        wanted = _listed("words", words, victim)
        for word in wanted:
            if word in taken:
                raise invalid("words", "no anchors: those the attacker knows", word)
    if not wanted:
        raise invalid("words", "at least one word that is no anchor", words)
    return wanted


def _numbers(topn: Any, most: int) -> tuple[int, ...]:
    several = isinstance(topn, Iterable) and not isinstance(topn, str)
    numbers = tuple(integer("topn", number, 1, most) for number in (topn if several else (topn,)))
    if not numbers or len(set(numbers)) < len(numbers):
        raise invalid("topn", "one number, or several different ones", topn)
    return numbers


def _less(embedding: Embedding, drop: int) -> Embedding:
    """The embedding without its mean vector and its leading principal directions."""
    rows = embedding.vectors - embedding.vectors.mean(axis=0)
    leading = np.linalg.eigh(rows.T @ rows)[1][:, -drop:]
    return replace(embedding, vectors=rows - rows @ leading @ leading.T)


def _unit(name: str, embedding: Embedding, words: Iterable[str], flat: bool) -> Floats:
    """Vectors of some words, of length 1."""
    chosen = list(words)
    rows: Floats = embedding.vectors[[embedding.rows[word] for word in chosen]]
    # The largest entry first: squares of what is left neither overflow nor vanish.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest == 0.0, 1.0, largest)
    constant = rows.min(axis=1) == rows.max(axis=1) if flat else largest[:, 0] == 0.0
    if constant.any():
        what = "of unlike entries" if flat else "other than zero"
        raise invalid(f"{name}'s vectors", what, f"the one of {chosen[int(constant.argmax())]!r}")
    if flat:
        rows = rows - rows.mean(axis=1, keepdims=True)
    found: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return found


def _rotation(victim: Embedding, attacker: Embedding, known: tuple[str, ...], flat: bool) -> Floats:
    """The orthogonal matrix of Procrustes, on the directions that the anchors determine.

    ``U V'`` from the singular values ``A' B = U S V'``. Fewer anchors than dimensions leave some
    singular values at zero and their directions to rounding: those are left out.
    """
    mine, theirs = (
        _unit(name, one, known, flat) for name, one in (("victim", victim), ("attacker", attacker))
    )
    left, sizes, right = np.linalg.svd(mine.T @ theirs)
    rank = int(np.sum(sizes > sizes[0] * len(sizes) * np.finfo(np.float64).eps))
    found: Floats = left[:, :rank] @ right[:rank]
    return found


def _ranks(
    mine: Floats, theirs: Floats, there: npt.NDArray[np.int64], progress: bool | None
) -> npt.NDArray[np.int64]:
    """How many of the attacker's words are at least as near as the right one, itself included."""
    step = max(1, _BLOCK // len(theirs))
    ranks = np.zeros(len(mine), dtype=np.int64)
    with Progress("nearest words", len(mine), progress) as bar:
        for begin in range(0, len(mine), step):
            part = slice(begin, begin + step)
            near = mine[part] @ theirs.T
            own = near[np.arange(len(near)), there[part]]
            ranks[part] = np.sum(near >= own[:, np.newaxis], axis=1)
            bar.advance(len(near))
    return ranks
