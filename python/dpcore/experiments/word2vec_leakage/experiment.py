"""Leakage of words from their vectors to an attacker who trains other vectors (word2vec).

Two halves of a corpus, an embedding of each by word2vec: is a private word among the attacker's
nearest words? It is where both start each word at one place, as gensim did up to 3.8, and hardly
is from the start of today's gensim; a few hundred known words, the anchors, make up for it. Noise
on the vectors is shown with the epsilon that it is said to give, and with the true one.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from ...errors import flag, integer, invalid, mistyped, real
from ...records import Shown
from ...streams import threads_of
from ...text import Corpus, generated
from ...text.needed import needed
from ...text.words import Embedding
from ..corpora import read_corpus
from ..running import (
    SEED,
    Tabled,
    cell_seed,
    check_config,
    check_list,
    require_own_config,
    run_jobs,
)
from .leakage import (
    Leakage,
    add_noise,
    attack_embedding,
    draw_anchors,
    split_in_halves,
    train_word2vec,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "word2vec-leakage"

STARTS: Final = {
    "hashed": "hashed, same seed",
    "same": "gensim 4, same seed",
    "other": "gensim 4, other seed",
}
"""Starts of the vectors of victim and attacker, and their titles."""

HALVES: Final = {"disjoint": 0.0, "overlapping": 0.5}
"""Overlap of the halves."""

ANCHORED: Final = 500
"""The number of anchors in the tables; fewer where there are not as many."""

DROPPED: Final = 3
"""Directions that are dropped in one row of the tables: without them the start stands out."""

_MAX_GENERATED_TEXTS: Final = 40_000
_MIN_SENTENCES: Final = 1000
_CORPUS_SHARES: Final = (1.0, 0.5, 0.25)
_RANK_CUTOFFS: Final = (1, 5)
Half = tuple[str, ...]

_SEED_COUNTS: Final = {False: 5, True: 10}


@dataclass(frozen=True, slots=True, repr=False)
class Config(Shown):
    """Options of the experiment: the sentences, and the knowledge of the attacker.

    Args:
        trials: sentences that are used, at most: both halves together; at least 1,000. Without
            `data` so many are made up, at most 40,000.
        seed: int in [0, 2**63); halves, embeddings, anchors and noise get their own from it.
        seeds: runs, of which mean and spread are shown; None for 5, or 10 if `full`.
        data: the folder of the corpora, with leakage/spa-eng.zip in it, or a file of one's own
            texts that `dpcore.text.read` reads; None makes sentences up.
        full: True to repeat it with half and with a quarter of the sentences, with more seeds.
        anchors: numbers of words that the attacker knows; those above two thirds of the common
            words are left out.
        epsilons: claims of the noise.
        confidence: of each interval alone.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config(trials="1e4").trials, Config(full=True).seeds
        (10000, 10)
    """

    trials: int = 10**6
    seed: int = SEED
    seeds: int | None = None
    data: str | None = None
    full: bool = False
    anchors: tuple[int, ...] = (0, 10, 20, 50, 100, 200, 500, 1000, 1500)
    epsilons: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields."""
        check_config(self)
        integer("trials", self.trials, _MIN_SENTENCES)
        if self.data is not None:
            if not isinstance(self.data, (str, os.PathLike)):
                raise mistyped("data", "a path of a folder or a file", self.data)
            object.__setattr__(self, "data", str(self.data))
        seeds = _SEED_COUNTS[flag("full", self.full)] if self.seeds is None else self.seeds
        object.__setattr__(self, "seeds", integer("seeds", seeds, 1))
        anchors = check_list("anchors", self.anchors, lambda value: integer("anchors", value, 0))
        object.__setattr__(self, "anchors", tuple(sorted({0, *anchors})))
        levels = check_list(
            "epsilons", self.epsilons, lambda v: real("epsilons", v, low=0.0, open_low=True)
        )
        object.__setattr__(self, "epsilons", tuple(sorted(levels)))


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """One attack.

    Args:
        start: a key of `STARTS`.
        halves: a key of `HALVES`.
        size: share of the sentences that was used.
        number: of the run, from 0.
        held_out: True if the words are the held-out ones of that run, False for all words of the
            victim.
        found: what was found.
    """

    start: str
    halves: str
    size: float
    number: int
    held_out: bool
    found: Leakage


@dataclass(frozen=True, slots=True)
class Job:
    """Three embeddings from one start, and all attacks on them."""

    size: float
    number: int
    start: str


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Embed the halves and attack.

    Args:
        config: which sentences, and what the attacker knows.
        threads: checked and not used: one worker trains, so that it repeats.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, a cell for each attack.

    Raises:
        ModuleNotFoundError: without gensim; it says what to install.
        FileNotFoundError: if the folder has no such file.
        ValueError: if too few sentences differ.
        KeyboardInterrupt: on Ctrl-C before anything was found.

    Source:
        The attack of a study of DPNR (Lyu, He and Li, 2020), with the controls that it lacks.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gensim"):
        ...     result = run(Config(trials=2000, seeds=1, epsilons=(5,)))
        ...     assert result.mean("hashed", 0) > result.mean("other", 0)
    """
    require_own_config(config, __name__)
    threads_of(threads)
    begun = time.perf_counter()
    needed("gensim.models", NAME)
    corpus = _read_sentences(config)
    sizes = _CORPUS_SHARES if config.full else _CORPUS_SHARES[:1]
    assert config.seeds is not None
    jobs = [
        Job(size, number, start)
        for size in sizes
        for number in range(config.seeds)
        for start in STARTS
    ]
    # Three starts in turn share their texts.
    parts = lru_cache(maxsize=1)(lambda size, seed: _split_halves(config, corpus, size, seed))
    done, partial = run_jobs(
        "word2vec leakage", jobs, lambda job: _attack_from_start(config, job, parts), progress,
        size=lambda job: round(100 * job.size),
    )  # fmt: skip
    cells = tuple(cell for cells in done for cell in cells)
    return Result(config, corpus.origin, cells, partial, time.perf_counter() - begun)


def _read_sentences(config: Config) -> Corpus:
    if config.data is None:
        # A text has two sentences.
        rows = min(config.trials, _MAX_GENERATED_TEXTS) // 2
        return generated("topics", rows, rng=cell_seed(config.seed, "corpus"))
    corpus = read_corpus(config.data, "leakage" if Path(config.data).is_dir() else None)
    if len(corpus) < _MIN_SENTENCES:
        raise invalid("data", f"a corpus of at least {_MIN_SENTENCES:,} texts", corpus)
    return corpus


def _split_halves(config: Config, corpus: Corpus, size: float, seed: int) -> dict[str, Half]:
    """Split the corpus: the victim's half, and the attacker's half for each overlap."""
    number = round(size * min(config.trials, len(corpus)))
    order = np.random.default_rng(seed).permutation(len(corpus))[:number]
    texts = [corpus.texts[row] for row in order]
    pairs = {
        name: split_in_halves(texts, overlap=overlap, rng=seed) for name, overlap in HALVES.items()
    }
    # The first half is the same whatever they have in common.
    return {"victim": pairs["disjoint"][0]} | {name: pair[1] for name, pair in pairs.items()}


def _attack_from_start(
    config: Config, job: Job, parts: Callable[[float, int], dict[str, Half]]
) -> list[Cell]:
    """Train the embeddings from one start, and run all attacks on them."""
    seed = cell_seed(config.seed, f"{job.size}/{job.number}")
    texts = parts(job.size, seed)
    kind: Literal["hashed", "own"] = "hashed" if job.start == "hashed" else "own"
    first = seed % 2**31
    second = first + (job.start == "other")
    victim = train_word2vec(texts["victim"], start=kind, seed=first, progress=False)
    cells: list[Cell] = []
    for name in HALVES:
        attacker = train_word2vec(texts[name], start=kind, seed=second, progress=False)
        cells += _run_attacks(config, job, victim, attacker, name, seed)
    return cells


def _run_attacks(
    config: Config, job: Job, victim: Embedding, attacker: Embedding, name: str, seed: int
) -> list[Cell]:
    """Run all attacks on one pair of embeddings.

    They are with and without anchors on held-out words, without anchors on all words, and on
    noisy vectors.
    """
    _, common = draw_anchors(victim, attacker, anchors=0, rng=seed)
    numbers = [number for number in config.anchors if 3 * number <= 2 * len(common)]
    known, held_out = common[: numbers[-1]], common[numbers[-1] :]

    def cell(
        side: Embedding, words: Any, anchors: int, centre: bool = False, drop: int = 0
    ) -> Cell:
        found = attack_embedding(
            side, attacker, words, anchors=known[:anchors], topn=_RANK_CUTOFFS, centre=centre, drop=drop,
            confidence=config.confidence, progress=False,
        )  # fmt: skip
        return Cell(job.start, name, job.size, job.number, words is not None, found)

    cells = [cell(victim, held_out, number) for number in numbers]
    cells.append(cell(victim, held_out, 0, drop=DROPPED))
    if job.start == "hashed":
        cells.append(cell(victim, None, 0))
    for level in config.epsilons if (job.size, name) == (1.0, "disjoint") else ():
        side = add_noise(victim, level, rng=cell_seed(seed, f"noise/{level:g}"))
        # Without anchors and from another start there is nothing to hide.
        if job.start == "hashed":
            cells += [cell(side, held_out, 0, centre) for centre in (False, True)]
        if anchored := shown_anchors(numbers):
            cells.append(cell(side, held_out, anchored, True))
    return cells


def shown_anchors(numbers: Sequence[int]) -> int:
    """Return the number of anchors that the tables show next to 0 anchors."""
    return max(number for number in numbers if number <= ANCHORED)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """Shares of words found, attack by attack.

    Args:
        config: the options of the run.
        corpus: where the sentences are from.
        cells: the attacks.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    corpus: str
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    def found(
        self,
        start: str,
        anchors: int,
        *,
        halves: str = "disjoint",
        size: float = 1.0,
        held_out: bool = True,
        epsilon: float | None = None,
        centred: bool = False,
        dropped: int = 0,
    ) -> tuple[Leakage, ...]:
        """Return the attacks of a kind, one for each run; empty if there are none."""
        return tuple(
            cell.found
            for cell in self.cells
            if (cell.start, cell.halves, cell.size, cell.held_out)
            == (start, halves, size, held_out)
            and (cell.found.anchors, cell.found.claimed, cell.found.centred, cell.found.dropped)
            == (anchors, epsilon, centred, dropped)
        )

    def mean(self, start: str, anchors: int, topn: int = 1, **kind: Any) -> float:
        """Return the mean share of words found over the runs; the keywords are those of `found`.

        Raises:
            ValueError: if there is no such attack.
        """
        found = self.found(start, anchors, **kind)
        if not found:
            raise invalid("start, anchors and keywords", "those of an attack", (start, anchors))
        return statistics.fmean(one.share(topn).value for one in found)

    @property
    def anchors(self) -> tuple[int, ...]:
        """The numbers of anchors that there were words for in every run of all sentences."""
        held: dict[tuple[int, str], set[int]] = {}
        for cell in self.cells:
            if cell.size == 1.0 and cell.halves == "disjoint" and cell.found.claimed is None:
                held.setdefault((cell.number, cell.start), set()).add(cell.found.anchors)
        return tuple(sorted(set.intersection(*held.values())))

    @property
    def anchored(self) -> int:
        """The number of anchors that the tables show next to 0 anchors."""
        return shown_anchors(self.anchors)

    def table(self) -> str:
        """Return the figures as text, with those of others on the same sentences."""
        from .text import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        from .text import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the words found against the number of anchors, and against the noise.

        Returns:
            A matplotlib figure.
        """
        from .drawing import draw_figure

        return draw_figure(self, ax)
