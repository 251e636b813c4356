"""Training of word2vec vectors, noise for these vectors, and an attack that infers words.

A corpus is split into two halves. The victim trains word vectors on one half, and the attacker
trains word vectors on the other half. The victim may add noise to the vectors. The attack takes the
victim's vector of a private word, and searches for the attacker's words with the nearest vectors.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np

from ... import errors
from ...bounds import limits
from ...calibration import laplace, real_epsilon
from ...mechanisms import Laplace
from ...mechanisms.texts import as_texts
from ...packages import require_module
from ...pairs.differences import Norm
from ...progress import Progress
from ...records import Floats, Ints, Record
from ...sampling.sources import sample
from ...sensitivity import MinMax, sensitivity
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from ...text.corpus import Tokeniser, all_or_training_texts, split_text, words_of
from ...text.inference.metrics import Measured
from ...text.words.embedding import Embedding

__all__ = [
    "Leakage", "add_noise", "attack_embedding", "draw_anchors", "split_in_halves",
    "train_word2vec",
]  # fmt: skip

Start = Literal["own", "hashed"]
STARTS: Final[tuple[Start, ...]] = get_args(Start)
"""Ways to choose the vectors from which the training starts: gensim's random numbers, or numbers
from a hash of word and seed."""

_COSINES_PER_BLOCK: Final = 2**23
"""Number of cosines in a block (64 MiB)."""


@explain_argument_errors
def split_in_halves(
    texts: Any, *, overlap: float = 0.0, rng: Rng = None, tokenise: Tokeniser = words_of
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a list of texts into two random halves. The halves may have texts in common.

    If several texts contain the same sequence of words, only one of these texts is used. Texts
    without words are left out. For a given seed, the first half does not depend on `overlap`. For
    comparison, two independent random samples of half of the texts have a mean overlap of 0.5.

    Args:
        texts: a list of strings, or a `Corpus`. The function ignores the train, validation and test
            parts of a `Corpus`.
        overlap: share of the texts in the first half that are also in the second half, in [0, 1].
        rng: source of random numbers: None (fresh entropy), an int in [0, 2**63) or a Generator.
        tokenise: function that takes a text and returns its words.

    Returns:
        Two tuples of the same length: the texts of the first half, and the texts of the second
        half.

    Raises:
        TypeError: if `texts` is not a list of strings or `overlap` is not a number.
        ValueError: if there are fewer than two different texts, or if `overlap` is out of range.

    Example:
        >>> split_in_halves(["a cat", "A cat!", "a dog", "an owl", "a fox"], rng=1)
        (('a cat', 'a dog'), ('an owl', 'a fox'))
        >>> split_in_halves(["a cat", "A cat!", "a dog", "an owl", "a fox"], overlap=0.5, rng=1)
        (('a cat', 'a dog'), ('a dog', 'an owl'))
    """
    share, seed = errors.real("overlap", overlap, low=0.0, high=1.0), to_seed(rng)
    halves: dict[tuple[str, ...], str] = {}
    for text in as_texts("texts", texts):
        halves.setdefault(tuple(split_text(tokenise, text)), text)
    halves.pop((), None)
    size = len(halves) // 2
    if not size:
        requirement = "at least two texts of different words"
        raise errors.invalid("texts", requirement, f"{len(halves)} of such")
    kept = list(halves.values())
    order = np.random.default_rng(seed).permutation(len(kept))
    begin = size - round(share * size)
    first, second = order[:size], order[begin : begin + size]
    return tuple(kept[row] for row in first), tuple(kept[row] for row in second)


@explain_argument_errors
def train_word2vec(
    texts: Any,
    *,
    start: Start = "own",
    seed: int = 1,
    dim: int = 100,
    window: int = 5,
    min_count: int = 5,
    epochs: int = 5,
    negative: int = 5,
    tokenise: Tokeniser = words_of,
    progress: bool | None = None,
) -> Embedding:
    """Train word vectors on texts with gensim's Word2Vec (CBOW).

    The training uses one thread. A second run on the same machine therefore gives identical
    vectors.

    The training starts from a first vector for each word. Up to version 3.8, gensim drew the first
    vector of a word from a separate generator. The seed of this generator was a hash of the word
    and of `seed`. Two models with the same seed therefore had the same first vector for a word,
    even if their texts were different. Current versions draw all first vectors from one generator,
    in the order of the vocabulary. With ``start="hashed"``, dpcore restores the earlier behaviour,
    with a hash function that is the same in every process.

    Args:
        texts: a list of strings, or a `Corpus`. If `texts` is a `Corpus`, only the training part is
            used.
        start: way to choose the first vectors: "own" as in current gensim versions, or "hashed" as
            in gensim 3.8. With "hashed", the entries of the first vectors lie in [-.5/dim, .5/dim).
        seed: seed in [0, 2**32) for the first vectors, the negative samples and the down-sampling
            of frequent words.
        dim: number of entries of each word vector.
        window: largest number of words that are used as context on each side of a word.
        min_count: number of occurrences that a word needs to get a vector.
        epochs: number of passes of the training over the texts.
        negative: number of random words that negative sampling draws for each word.
        tokenise: function that takes a text and returns its words.
        progress: True to show a progress bar. None shows the bar only on an interactive terminal.

    Returns:
        The trained `Embedding`. The words of the embedding are sorted by frequency, with the most
        frequent word first.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number is out of range, or if fewer than two words occur at least
            `min_count` times.
        ModuleNotFoundError: if gensim is not installed. The message of the error states how to
            install the package.

    Source:
        Mikolov et al. (2013). gensim 3.8.3, `Word2Vec.seeded_vector`, for the hashed first vectors.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gensim"):
        ...     found = train_word2vec(["a cat sat", "a dog sat", "a dog ran"], min_count=2, dim=4)
        ...     assert (len(found), found.words[0]) == (3, "a")
    """
    errors.choice("start", start, STARTS)
    seed = errors.integer("seed", seed, 0, 2**32 - 1)
    sizes = {"dim": dim, "window": window, "min_count": min_count, "negative": negative}
    sizes = {name: errors.integer(name, value, 1) for name, value in sizes.items()}
    epochs = errors.integer("epochs", epochs, 1)
    sentences = [list(words) for words in map(tokenise, all_or_training_texts(texts)) if words]
    model = require_module("gensim.models", "train_word2vec").Word2Vec(
        vector_size=sizes.pop("dim"), **sizes, epochs=epochs, seed=seed, sg=0, workers=1
    )
    model.build_vocab(sentences)
    if len(model.wv) < 2:
        requirement = f"texts in which at least two words occur min_count = {min_count} times"
        raise errors.invalid("texts", requirement, f"{len(sentences):,} texts with words")
    if start == "hashed":
        model.wv.vectors[:] = [_start_vector(word, seed, dim) for word in model.wv.index_to_key]
    with Progress("word2vec", epochs * len(sentences), progress) as bar:
        _train_shielded_from_ctrl_c(model, _WatchedSentences(sentences, bar), epochs)
    origin = f"word2vec, start {start}, seed {seed}"
    return Embedding(model.wv.index_to_key, model.wv.vectors, origin)


def _start_vector(word: str, seed: int, dim: int) -> Floats:
    """Compute the first vector of a word, with entries in [-.5/dim, .5/dim).

    The entries are computed from the SHAKE-256 hash of the word and the seed.
    """
    drawn = hashlib.shake_256(f"{word}{seed}".encode()).digest(4 * dim)
    return (np.frombuffer(drawn, dtype="<u4") / 2.0**32 - 0.5) / dim


def _train_shielded_from_ctrl_c(model: Any, watched: _WatchedSentences, epochs: int) -> None:
    """Train on a separate thread, so that Ctrl-C does not interrupt gensim's own threads.

    If the training ran in the main thread, Ctrl-C would leave gensim's threads waiting forever. It
    could also release a lock that one of these threads holds.
    """
    stop = require_module("gensim.models.callbacks", "train_word2vec").CallbackAny2Vec()
    stop.on_epoch_end = watched.raise_if_stopped
    running, failures = threading.Lock(), list[BaseException]()

    def train() -> None:
        try:
            total = len(watched.sentences)
            model.train(watched, total_examples=total, epochs=epochs, callbacks=[stop])
        except BaseException as failure:
            failures.append(failure)
        finally:
            running.release()

    running.acquire()
    thread = threading.Thread(target=train, name="word2vec", daemon=True)
    try:
        thread.start()
        # Only a lock is used. The timeout is needed, because Windows cannot interrupt without it.
        while not running.acquire(timeout=0.1):
            pass
    except KeyboardInterrupt:
        watched.stopped = True
        while thread.is_alive():
            time.sleep(0.01)
        raise
    for failure in failures:
        raise failure


class _WatchedSentences:
    """Sequence of training sentences. A progress bar advances while the training reads them.

    The training can be stopped while it reads the sentences.
    """

    _STEP: Final = 1000

    def __init__(self, sentences: Sequence[list[str]], bar: Progress) -> None:
        self.stopped = False
        self.sentences, self._bar = sentences, bar

    def raise_if_stopped(self, _: Any) -> None:
        """Raise an error at the end of an epoch if the training was stopped."""
        if self.stopped:
            raise KeyboardInterrupt

    def __iter__(self) -> Iterator[list[str]]:
        for begin in range(0, len(self.sentences), self._STEP):
            part = self.sentences[begin : begin + self._STEP]
            if self.stopped:
                return
            yield from part
            self._bar.advance(len(part))


@explain_argument_errors
def add_noise(
    embedding: Any,
    epsilon: float,
    *,
    scale: Literal["published", "sound"] = "published",
    rng: Rng = None,
) -> Embedding:
    """Rescale each word vector to entries in [0, 1], and add Laplace noise.

    A vector v becomes ``(v - min v) / (max v - min v) + Lap(b)``, with independent noise in every
    entry. With the published scale b = 1/epsilon, the privacy loss of each entry is up to epsilon,
    and the privacy loss of the whole vector is up to dim * epsilon. Any two vectors are neighbours.
    The claimed epsilon is for one release of the vector of one word. The noise does not protect the
    texts on which the vectors were trained.

    Args:
        embedding: word vectors without noise, an `Embedding`.
        epsilon: claimed epsilon, above 0.
        scale: "published" for b = 1/epsilon, or "sound" for b = dim/epsilon. The claimed epsilon is
            true only with "sound".
        rng: source of random numbers: None (fresh entropy), an int in [0, 2**63) or a Generator.

    Returns:
        The noisy `Embedding`. The attributes `claimed` and `real` of the embedding are the claimed
        and the true epsilon.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if `epsilon` is not above 0, a vector is constant, or the embedding already
            contains noise.

    Source:
        Lyu, He and Li (2020), algorithm 2, applied to each word.

    Example:
        >>> vectors = np.random.default_rng(1).normal(size=(3, 100))
        >>> add_noise(Embedding(("a", "cat", "sat"), vectors), 5.0, rng=1)
        <Embedding of 3 words, dim=100, epsilon claimed 5, true 500>
    """
    clean = errors.instance("embedding", embedding, Embedding)
    if clean.real is not None:
        raise errors.invalid("embedding", "one without noise", clean)
    epsilon = errors.real("epsilon", epsilon, low=0.0, open_low=True)
    with errors.tag_errors("embedding"):
        rows = MinMax()(clean.vectors)
    domain = MinMax().range(clean.dim)
    # The published scale uses the largest change of one entry for that of the whole vector.
    errors.choice("scale", scale, ("published", "sound"))
    norm: Norm = "linf" if scale == "published" else "l1"
    noise = Laplace(laplace(epsilon, sensitivity(domain, norm).value))
    drawn = sample(noise, np.zeros(clean.dim), len(clean), rng=to_seed(rng))
    return replace(clean, vectors=rows + drawn, claimed=epsilon, real=real_epsilon(noise, domain))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Leakage(Record):
    """Numbers of private words that an attack inferred from their word vectors.

    The attacker searches for the words whose vectors are nearest to the vector of a private word. A
    confidence interval for a share of found words covers only the random choice of the private
    words. The interval does not cover the random training. New embeddings of the same texts can
    give shares outside the interval.

    Attributes:
        words: number of private words for which the attack searched.
        unknown: number of private words for which the attacker has no vector. These words count as
            not found.
        vocabulary: number of words in the attacker's embedding.
        anchors: number of words whose vectors the attacker knew in both embeddings before the
            attack.
        topn: one or several numbers n. A private word is found if it is among the nearest n words.
        hits: how many private words were found, as one count for each number in `topn`.
        centred: True if, before the search, each vector was shifted so that its entries have mean
            0.
        dropped: number of leading principal directions that were removed from each embedding before
            the search.
        claimed: claimed epsilon of the noise on the victim's vectors, or None if the vectors have
            no noise.
        true: true epsilon of the noise for any two words, or None if the vectors have no noise.
        confidence: confidence level of the interval for each share.
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
        """Shares of private words that the attack found, one for each number in `topn`.

        For a number n in `topn`, a word is found if it is among the nearest n words. Each share has
        a Clopper-Pearson interval.
        """
        n, tail, how = self.words, (1.0 - self.confidence) / 2.0, "Clopper-Pearson"
        return tuple(Measured(hit / n, *limits(hit, n, tail), how) for hit in self.hits)

    @property
    def chance(self) -> tuple[float, ...]:
        """Shares of private words that random guesses find, one for each number in `topn`.

        Each share is the number in `topn` divided by `vocabulary`, the number of words of the
        attacker.
        """
        return tuple(number / self.vocabulary for number in self.topn)

    def share(self, topn: int = 1) -> Measured:
        """Return the share of private words that are among the nearest `topn` words.

        Raises:
            ValueError: if the attack was not run with the number `topn`.
        """
        shown = tuple(map(str, self.topn))
        return self.shares[shown.index(errors.choice("topn", str(topn), shown))]

    def __repr__(self) -> str:
        """Return the shares of words found, on one line."""
        shares = ", ".join(f"top-{n} {s}" for n, s in zip(self.topn, self.shares, strict=True))
        return f"<Leakage of {self.words:,} words: {shares}, {self.anchors:,} anchors>"

    def __str__(self) -> str:
        """Return the report."""
        unknown = f", {self.unknown:,} of them unknown to the attacker" if self.unknown else ""
        lines = [
            f"{self.words:,} private words{unknown}; the attacker has {self.vocabulary:,}, and "
            f"knew {self.anchors:,} before"
        ]
        lines += [
            f"top-{number}: {share} (chance {chance:.4f})"
            for number, share, chance in zip(self.topn, self.shares, self.chance, strict=True)
        ]
        if self.claimed is not None and self.true is not None:
            lines.append(f"noise: epsilon claimed {self.claimed:g}, true {self.true:g} (any words)")
        return "\n".join(lines)


def find_common_words(victim: Embedding, *attackers: Embedding) -> tuple[str, ...]:
    """Return the words that all embeddings contain, in the order of the embedding `victim`.

    Raises:
        TypeError: if an argument is not an `Embedding`.
        ValueError: if the embeddings have no word in common.
    """
    for name, embedding in (
        ("victim", victim),
        *(("attacker", embedding) for embedding in attackers),
    ):
        errors.instance(name, embedding, Embedding)
    common = tuple(
        word for word in victim.words if all(word in embedding for embedding in attackers)
    )
    if not common:
        requirement = "an embedding with words of the victim's"
        raise errors.invalid("attacker", requirement, list(victim.words[:4]))
    return common


@explain_argument_errors
def draw_anchors(
    victim: Any, *attackers: Any, anchors: int = 1500, rng: Rng = None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Divide the words that several embeddings have in common into known and private words.

    The words are divided at random. The known words are called anchors. The attacker knows the
    vectors of the anchors in the victim's embedding. The private words are called held-out words.
    The attack searches for the held-out words.

    To compare attacks with different numbers of anchors, call the function once. Use the first 10,
    100, ... of the returned anchors, and always all returned held-out words.

    Args:
        victim: the `Embedding` that is attacked.
        *attackers: one or several `Embedding` objects that an attacker will use to attack `victim`.
        anchors: number of anchors (known words) to draw.
        rng: source of random numbers: None (fresh entropy), an int in [0, 2**63) or a Generator.

    Returns:
        Two tuples of words, each in random order: the anchors and the held-out words.

    Raises:
        TypeError: if `victim` or an attacker is not an `Embedding`, or if `anchors` is not an
            integer.
        ValueError: if the embeddings have at most `anchors` words in common.

    Example:
        >>> e = Embedding(("a", "cat", "dog", "fox"), np.eye(4))
        >>> draw_anchors(e, Embedding(("fox", "dog", "a"), np.eye(3)), anchors=1, rng=1)
        (('a',), ('dog', 'fox'))
    """
    common, number = find_common_words(victim, *attackers), errors.integer("anchors", anchors, 0)
    if number >= len(common):
        requirement = f"below the number of common words, {len(common):,}: some are to be found"
        raise errors.invalid("anchors", requirement, number)
    words = tuple(
        common[row] for row in np.random.default_rng(to_seed(rng)).permutation(len(common))
    )
    return words[:number], words[number:]


@explain_argument_errors
def attack_embedding(
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
    """Infer private words from their word vectors, and count the words that are found.

    For each private word, the attacker takes the victim's vector and searches for the nearest
    vectors in the attacker's own embedding. The nearest vector is the vector with the largest
    cosine similarity. The word is found if its vector in the attacker's embedding is among the
    nearest `topn` vectors. If a wrong word has the same cosine as the private word, the wrong word
    is regarded as nearer.

    Two embeddings that are trained separately differ mainly by a rotation. The attacker can
    estimate this rotation from `anchors`, a few words whose vectors are known in both embeddings.
    If `anchors` is not empty, the function first multiplies the victim's vectors by an orthogonal
    matrix R. R minimises ``||V R - A||``. The rows of V are the victim's vectors of the anchors,
    and the rows of A are the attacker's vectors. All these rows are scaled to length 1. If there
    are fewer anchors than dimensions, the anchors determine R only in some directions. The function
    ignores all further directions.

    Args:
        victim: the `Embedding` with the vectors of the private words. `Embedding.of` converts the
            vectors of a gensim model.
        attacker: the attacker's `Embedding`, with vectors of the same length.
        words: private words for which the attack searches. None means all words of the victim that
            are not anchors. A word that is not in the attacker's embedding counts as not found.
        anchors: words whose vectors the attacker knows in both embeddings. If `anchors` is empty,
            the vectors are not rotated.
        topn: one or several numbers n. A word is found if it is among the nearest n words.
        centre: True to subtract the mean of the entries from each vector. The subtraction removes
            the shift that arises when entries are rescaled to [0, 1].
        drop: number of leading principal directions that the function removes from each embedding.
            If the number is above 0, the function also removes the mean vector. All vectors of an
            embedding have similar components in the leading directions. These components can hide
            the part of a vector that is specific to one word.
        confidence: confidence level of the interval for each share of found words.
        progress: True to show a progress bar. None shows the bar only on an interactive terminal.

    Returns:
        A `Leakage` with the numbers of found words.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for one of these reasons:

            - the two embeddings have vectors of different lengths, or no words in common;
            - a vector is zero;
            - a word or an anchor is unknown or given twice, or a word is also an anchor;
            - `topn` is below 1 or above the number of words of the attacker;
            - `drop` is not below the number of entries of a vector.

    Source:
        A study of DPNR (Lyu, He and Li, 2020), which uses no anchors. Schoenemann (1966) for the
        rotation. Mu and Viswanath (2018) for the removed directions.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> words = [f"word{i}" for i in range(200)]
        >>> mine = Embedding(words, rng.normal(size=(200, 10)))
        >>> turn = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        >>> theirs = Embedding(words, mine.vectors @ turn)
        >>> attack_embedding(mine, theirs, words[100:]).share(1).value
        0.0
        >>> attack_embedding(mine, theirs, words[100:], anchors=words[:20]).share(1).value
        1.0
    """
    find_common_words(victim, attacker)
    if attacker.dim != victim.dim:
        raise errors.invalid("attacker", f"of the victim's dimension, {victim.dim}", attacker.dim)
    anchor_words = _check_stated_words("anchors", anchors, victim, attacker)
    chosen = _choose_words(words, anchor_words, victim)
    numbers = _read_topn(topn, len(attacker))
    confidence, flat = errors.confidence_level(confidence), errors.flag("centre", centre)
    drop = errors.integer("drop", drop, 0, victim.dim - 1)
    there = np.array([attacker.rows.get(word, -1) for word in chosen])
    from threadpoolctl import threadpool_limits

    # One thread gives the same bits for every number of cores. A small SVD takes 3 ms, not 360.
    with threadpool_limits(1):
        if drop:
            victim, attacker = _drop_mean_and_top(victim, drop), _drop_mean_and_top(attacker, drop)
        theirs = _unit_rows("attacker", attacker, attacker.words, flat)
        mine = _unit_rows("victim", victim, chosen, flat)
        if anchor_words:
            mine = mine @ _rotation_to_attacker(victim, attacker, anchor_words, flat)
        ranks = _rank_true_words(mine[there >= 0], theirs, there[there >= 0], progress)
    return Leakage(
        words=len(chosen), unknown=int(np.sum(there < 0)), vocabulary=len(attacker),
        anchors=len(anchor_words), topn=numbers,
        hits=tuple(int(np.sum(ranks <= number)) for number in numbers),
        centred=flat, dropped=drop, claimed=victim.claimed,
        true=None if victim.real is None else victim.real.value, confidence=confidence,
    )  # fmt: skip


def _check_stated_words(name: str, stated: Any, *embeddings: Embedding) -> tuple[str, ...]:
    if isinstance(stated, str) or not isinstance(stated, Iterable):
        raise errors.mistyped(name, "a list of words", stated)
    words = tuple(stated)
    for row, word in enumerate(words):
        if not isinstance(word, str):
            raise errors.mistyped(f"{name}[{row}]", "a string", word)
        if not all(word in embedding for embedding in embeddings):
            both = "both embeddings" if len(embeddings) > 1 else "the victim's embedding"
            raise errors.invalid(f"{name}[{row}]", f"a word of {both}", word)
    if len(set(words)) < len(words):
        raise errors.invalid(name, "words that are there once", stated)
    return words


def _choose_words(words: Any, anchors: tuple[str, ...], victim: Embedding) -> tuple[str, ...]:
    taken = set(anchors)
    if words is None:
        chosen = tuple(word for word in victim.words if word not in taken)
    else:
        chosen = _check_stated_words("words", words, victim)
        if shared := [word for word in chosen if word in taken]:
            raise errors.invalid("words", "without anchors, which the attacker knows", shared[0])
    if not chosen:
        raise errors.invalid("words", "at least one word that is no anchor", words)
    return chosen


def _read_topn(topn: Any, most: int) -> tuple[int, ...]:
    several = isinstance(topn, Iterable) and not isinstance(topn, str)
    stated = topn if several else (topn,)
    numbers = tuple(errors.integer("topn", number, 1, most) for number in stated)
    if not numbers or len(set(numbers)) < len(numbers):
        raise errors.invalid("topn", "one number, or several different ones", topn)
    return numbers


def _drop_mean_and_top(embedding: Embedding, drop: int) -> Embedding:
    """Return the embedding without its mean vector and its `drop` leading directions."""
    rows = embedding.vectors - embedding.vectors.mean(axis=0)
    leading = np.linalg.eigh(rows.T @ rows)[1][:, -drop:]
    return replace(embedding, vectors=rows - rows @ leading @ leading.T)


def _unit_rows(name: str, embedding: Embedding, words: Iterable[str], centre: bool) -> Floats:
    """Return the vectors of the given words, scaled to length 1."""
    chosen = list(words)
    rows: Floats = embedding.vectors[[embedding.rows[word] for word in chosen]]
    # Rows are divided by their largest entry, so squares neither overflow nor underflow.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    rows = rows / np.where(largest == 0.0, 1.0, largest)
    constant = rows.min(axis=1) == rows.max(axis=1) if centre else largest[:, 0] == 0.0
    if constant.any():
        what = "of unlike entries" if centre else "other than zero"
        word = chosen[int(constant.argmax())]
        raise errors.invalid(f"{name}'s vectors", what, f"the one of {word!r}")
    if centre:
        rows = rows - rows.mean(axis=1, keepdims=True)
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def _rotation_to_attacker(
    victim: Embedding, attacker: Embedding, anchors: tuple[str, ...], centre: bool
) -> Floats:
    """Compute the orthogonal matrix that maps the victim's vectors to the attacker's vectors.

    The matrix is computed from the vectors of the anchors (words known in both embeddings). Only
    the directions that the anchors determine are used.

    The matrix is ``U V'`` from the singular value decomposition ``A' B = U S V'`` (Procrustes). If
    there are fewer anchors than dimensions, some singular values are zero up to rounding. The
    directions of these singular values are left out.
    """
    mine = _unit_rows("victim", victim, anchors, centre)
    theirs = _unit_rows("attacker", attacker, anchors, centre)
    left, sizes, right = np.linalg.svd(mine.T @ theirs)
    rank = int(np.sum(sizes > sizes[0] * len(sizes) * np.finfo(np.float64).eps))
    return np.asarray(left[:, :rank] @ right[:rank])


def _rank_true_words(mine: Floats, theirs: Floats, true_rows: Ints, progress: bool | None) -> Ints:
    """Return the rank of each true word among the attacker's words, from 1 for the nearest.

    Other words with the same cosine as the true word count as nearer.
    """
    step = max(1, _COSINES_PER_BLOCK // len(theirs))
    ranks = np.zeros(len(mine), dtype=np.int64)
    with Progress("nearest words", len(mine), progress) as bar:
        for begin in range(0, len(mine), step):
            part = slice(begin, begin + step)
            near = mine[part] @ theirs.T
            own = near[np.arange(len(near)), true_rows[part]]
            ranks[part] = np.sum(near >= own[:, np.newaxis], axis=1)
            bar.advance(len(near))
    return ranks
