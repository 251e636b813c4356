"""Measure which document an output came from, on real corpora, and write the table.

Usage: python benches/record_linkage.py DATA [--only NAME ...] [--out FILE]

DATA is the folder of the corpora. Without options it writes benches/record/linkage.md, in about
seven CPU minutes. Every mechanism has three seeds, each with other texts, models and noise. Each
method is reported; none is chosen by its figure.
"""

from __future__ import annotations

import argparse
import datetime
import pathlib
import time
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

import dpcore
from dpcore.experiments.corpora import read_corpus
from dpcore.experiments.word2vec_leakage.leakage import train_word2vec
from dpcore.text import (
    ADePTModel,
    Corpus,
    DPTextModel,
    LinkedOutputs,
    TfidfSVD,
    link,
    redaction,
    words_of,
)
from dpcore.text.words import Embedding, SanText
from dpcore.torch import Clip, PrivateEncoder

CORPORA: Final = {"atis": "ATIS", "snips": "SNIPS", "ag_news": "AG News", "medical": "medical"}
SEEDS: Final = (1, 2, 3)
N_PUBLIC, N_CANDIDATES, N_WORDS, LENGTH = 1500, 300, 2000, 30
"""Texts that models are fitted on; candidates; words of the vocabulary; words of a text."""
EPOCHS: Final = 40
"""Passes over the public texts when ADePT's auto-encoder is trained."""

VECTOR_METHODS: Final = ("likelihood", "encoding")
MASK_METHODS: Final = ("places", "bag", "words")

Outputs = tuple[str, Any, Any, Sequence[str]]
"""Row of the table, mechanism, its outputs, and the methods."""


def read_texts(folder: pathlib.Path, name: str, seed: int) -> tuple[list[str], list[str]]:
    """Return public texts and candidates, of the frequent words of the public texts only."""
    texts = [words_of(text)[:LENGTH] for text in read_corpus(folder / name).texts]
    order = np.random.default_rng(seed).permutation(len(texts))
    public, rest = ([texts[i] for i in part] for part in np.split(order, [N_PUBLIC]))
    counts = Counter(word for words in public for word in words)
    frequent = {word for word, count in counts.most_common(N_WORDS) if count > 1}
    chosen = [
        [" ".join(word for word in words if word in frequent) for words in part]
        for part in (public, rest)
    ]
    public_texts, others = ([text for text in part if text] for part in chosen)
    return public_texts, others[:N_CANDIDATES]


def drop_second_words(texts: Sequence[str]) -> list[str]:
    """Return texts without every second word."""
    return [" ".join(text.split()[::2]) for text in texts]


def draw_outputs(public: list[str], texts: list[str], seed: int) -> Iterator[Outputs]:
    """Fit each mechanism on the public texts, and yield its outputs of the candidates."""
    options: Any = {"pair": False, "rng": seed, "progress": False}
    yield "every second word dropped", drop_second_words, drop_second_words(texts), ("words",)
    for level in (0.5, 0.8, 0.95):
        policy = redaction.Random()
        masked = redaction.redact(texts, policy, level=level, rng=seed)
        yield f"redaction, {level:.0%} masked", policy, masked, MASK_METHODS
    vectors = train_word2vec(public, seed=seed, min_count=2, epochs=20, progress=False)
    rows = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    embedding = Embedding(vectors.words, rows)
    for epsilon in (5.0, 10.0, 20.0):
        santext = SanText(embedding, epsilon)
        written = santext.rewrite(texts, rng=seed)
        yield f"SanText, epsilon {epsilon:g}", santext, written, (*VECTOR_METHODS, "words")
    encoder = TfidfSVD(64).fit(Corpus(public))
    for epsilon in (10.0, 30.0, 100.0):
        private = PrivateEncoder(encoder.encode, Clip("l1", 1.0), epsilon=epsilon, probe=texts[:9])
        outputs = private.encode(texts, rng=seed)
        yield f"PrivateEncoder, epsilon {epsilon:g}", private, outputs, VECTOR_METHODS
    sizes = np.array([len(text.split()) for text in public])
    corpus = Corpus(public, labels=sizes % 2, attributes={"long": sizes > np.median(sizes)})
    for noise in ("zero", "resample", "repaired"):
        dptext = DPTextModel(10.0, attribute="long", noise=noise)
        dptext.fit(corpus, epochs=3, **options)
        outputs = dptext.encode(texts, rng=seed)
        yield f"DPText, epsilon 10, noise {noise!r}", dptext, outputs, VECTOR_METHODS
    adept = ADePTModel(1.0, variant="scaled", hidden=64, embedding=32)
    adept.fit(public, epochs=EPOCHS, **options)
    clean = adept.decode(adept.clean(texts).detach().numpy())
    yield "ADePT, text without noise", adept, clean, ("encoding", "words")
    for epsilon in (30.0, 100.0, 1000.0):
        noisy = adept.renoised(epsilon, variant="scaled", delta=0.0)
        outputs = noisy.encode(texts, rng=seed)
        yield f"ADePT, epsilon {epsilon:g}, vector", noisy, outputs, VECTOR_METHODS
        written = noisy.decode(outputs)
        yield f"ADePT, epsilon {epsilon:g}, text", noisy, written, ("encoding", "words")


Figures = dict[tuple[str, str], list[tuple[LinkedOutputs, LinkedOutputs]]]
"""By row and method: linkage of each seed, and of outputs of other texts."""


def measure_corpus(folder: pathlib.Path, name: str) -> Figures:
    """Return the figures of all mechanisms on one corpus."""
    figures: Figures = defaultdict(list)
    for seed in SEEDS:
        public, texts = read_texts(folder, name, seed)
        shifted = np.roll(np.arange(len(texts)), 1)
        for row, mechanism, outputs, methods in draw_outputs(public, texts, seed):
            report, control = (
                link(mechanism, texts, outputs, by=list(methods), truth=truth)
                for truth in (None, shifted)
            )
            for by in methods:
                figures[row, by].append((report[by], control[by]))
    return figures


HEAD = """# Which document was it: share of outputs that are linked to their originals

{date}, dpcore {version}, one thread, {seconds:.0f} CPU s. Remade by
`python benches/record_linkage.py DATA`. {candidates} candidates, each of which is rewritten once.
Models are fitted on {public:,} other texts. Of the first {length} words of each text, those are
kept that are among the {words:,} commonest words of these texts and occur there at least twice.

Mean share of three seeds, in brackets the smallest and the largest; * where the intervals of all
three (95 %, each alone) are above the floor, the share of the commonest candidate. In the last row
the truth is the next candidate, so that nothing can be linked. Rows of different mechanisms are not
comparable by epsilon: it is per unit of distance for SanText, and DPText's noise "zero" and
"resample" does not have the epsilon that it claims. The text of ADePT shows no more than its
auto-encoder recovers, which is the row without noise.

| mechanism | by | {names} |
| --- | --- | {rules} |
"""


def write_shares(linked: Sequence[LinkedOutputs]) -> str:
    """Write one cell."""
    shares = [one_seed.share for one_seed in linked]
    star = "*" if all(one_seed.is_above_floor for one_seed in linked) else ""
    return f"{np.mean(shares):.3f}{star} [{min(shares):.3f}, {max(shares):.3f}]"


def write_table(corpora: dict[str, Figures], seconds: float) -> str:
    """Write the page."""
    head = HEAD.format(
        date=datetime.date.today(), version=dpcore.__version__, seconds=seconds,
        candidates=N_CANDIDATES, public=N_PUBLIC, length=LENGTH, words=N_WORDS,
        names=" | ".join(CORPORA[name] for name in corpora),
        rules=" | ".join(["---:"] * len(corpora)),
    )  # fmt: skip
    tables = list(corpora.values())
    floors = [[linked.floor for linked, _ in next(iter(table.values()))] for table in tables]
    cells = [f"{np.mean(floor):.3f} [{min(floor):.3f}, {max(floor):.3f}]" for floor in floors]
    lines = [f"| floor | | {' | '.join(cells)} |"]
    for row, by in tables[0]:
        cells = [write_shares([linked for linked, _ in table[row, by]]) for table in tables]
        lines.append(f"| {row} | {by} | {' | '.join(cells)} |")
    cells = []
    for table in tables:
        controls = [control for seeds in table.values() for _, control in seeds]
        n_above = sum(control.is_above_floor for control in controls)
        mean = np.mean([control.share for control in controls])
        cells.append(f"{mean:.3f}; {n_above} of {len(controls)} above the floor")
    lines.append(f"| outputs of other texts, mean of all rows | | {' | '.join(cells)} |")
    return head + "\n".join(lines) + "\n"


def main() -> None:
    """Measure the corpora, and write the file after each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=list(CORPORA))
    default = pathlib.Path(__file__).parent / "record" / "linkage.md"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    start = time.process_time()
    corpora: dict[str, Figures] = {}
    for name in arguments.only:
        corpora[name] = measure_corpus(arguments.data, name)
        arguments.out.write_text(write_table(corpora, time.process_time() - start), "utf-8")


if __name__ == "__main__":
    main()
