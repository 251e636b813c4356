"""Measure next-word models on real corpora, and write the table kept in benches/record.

Usage: python benches/record_next_words.py DATA [--only NAME ...] [--steps] [--out FILE]

DATA is the folder of the corpora. Every training is one job; its row is written as soon as it is
known, and a job whose row stands in the file is not repeated. A private training takes 60 to 120
CPU seconds on ATIS, and several times that on SNIPS and the medical abstracts. `--steps` adds the
time of a step and the memory against the size of the vocabulary, each in a process of its own.
"""

from __future__ import annotations

import argparse
import datetime
import math
import multiprocessing
import pathlib
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import dpcore
from dpcore.experiments.corpora import read_corpus
from dpcore.text import Vocabulary, lm, split

HEAD = """# Next-word models: perplexity of test texts, and the time of a step

{date}, dpcore {version}, one thread. Remade by `benches/record_next_words.py DATA`. Hidden 64,
one layer, vocabulary of the words that occur twice in the training texts (not covered by epsilon);
test texts that are training texts are left out; intervals resample texts, 95 %.

| job | perplexity | interval | unigram | uniform | spent epsilon (RDP) | sigma | steps | CPU s |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
"""

JOBS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{f"atis plain, seed {s}": ("atis", s, {}) for s in (1, 2, 3)},
    "atis epsilon 8, seed 1": ("atis", 1, {"epsilon": 8.0}),
    "atis epsilon 1, seed 1": ("atis", 1, {"epsilon": 1.0}),
    **{f"atis epsilon 8, seed {s}": ("atis", s, {"epsilon": 8.0}) for s in (2, 3)},
    **{f"atis epsilon 1, seed {s}": ("atis", s, {"epsilon": 1.0}) for s in (2, 3)},
    "atis without noise, seed 1": ("atis", 1, {"epsilon": math.inf}),
    "atis plain (Adam), seed 1": ("atis", 1, {"optimiser": "adam"}),
    "atis epsilon 8, public start, seed 1": ("atis", 1, {"epsilon": 8.0, "start": "wikitext2"}),
    "snips plain, seed 1": ("snips", 1, {}),
    "snips epsilon 8, seed 1": ("snips", 1, {"epsilon": 8.0}),
    "medical plain, seed 1": ("medical", 1, {"length": 40}),
    "medical epsilon 8, seed 1": ("medical", 1, {"epsilon": 8.0, "length": 40}),
}


def read_parts(folder: pathlib.Path, name: str) -> Any:
    """Return the corpus with a split."""
    found = read_corpus(folder / name)
    return found if found.split is not None else split(found, rng=1)


def train_public(folder: pathlib.Path, corpus: Any) -> lm.NextWordModel:
    """Return a plain model of lines of WikiText-2, with the vocabulary of the corpus."""
    lines = (folder / "wikitext2" / "valid.txt").read_text("utf-8").splitlines()
    texts = [line for line in lines if len(line.split()) > 4 and not line.startswith(" =")]
    words = Vocabulary.from_texts(corpus.train, unknown="token", min_count=2)
    return lm.fit(texts[200:], texts[:200], vocabulary=words, length=40, rng=1)


def make_row(folder: pathlib.Path, job: str) -> str:
    """Train and measure one job; return its row."""
    name, seed, options = JOBS[job]
    corpus = read_parts(folder, name)
    if "start" in options:
        options = {**options, "start": train_public(folder, corpus), "length": 20}
    begun = time.process_time()
    model = lm.fit(corpus.train, corpus.valid, rng=seed, **options)
    spent = time.process_time() - begun
    found = model.perplexity(corpus.test.texts, rng=1)
    steps = f"{model.steps}" if model.is_private else f"{len(model.valid_losses)} epochs"
    epsilon = "" if not model.sigma else f"{model.epsilon:.3f} ({model.epsilon_rdp:.3f})"
    sigma = "" if model.sigma is None else f"{model.sigma:.3f}"
    return (
        f"| {job} | {found.value:.2f} | {found.low:.2f} to {found.high:.2f} | "
        f"{found.unigram:.1f} | {found.uniform:,} | {epsilon} | {sigma} | {steps} | {spent:.0f} |"
    )


STEPS_HEAD = """
Seconds of CPU time of a step (batches of 20 texts plain, about 256 private, 11 words each; an epoch
over 2,560 made-up texts, the search for sigma apart), and the most memory of the process, in MB:

| words of the vocabulary | plain step | private step | memory plain | memory private |
| ---: | ---: | ---: | ---: | ---: |
"""


def measure_steps(words: int, is_private: bool) -> tuple[float, float]:
    """Train one epoch on made-up texts; return seconds a step and the peak of memory in MB."""
    rng = np.random.default_rng(1)
    texts = [" ".join(f"w{one}" for one in row) for row in rng.integers(0, words, (2_560, 11))]
    known = Vocabulary([f"w{one}" for one in range(words)], unknown="token")
    given = {"vocabulary": known, "epochs": 1, "rng": 1, "progress": False}
    given |= {"epsilon": math.inf} if is_private else {}
    # The first training imports what it needs.
    lm.fit(texts[:300], texts[:20], **given)
    begun = time.process_time()
    model = lm.fit(texts, texts[:20], **given)
    spent = time.process_time() - begun
    steps = model.steps if is_private else len(texts) // 20
    return spent / steps, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0


def make_steps_row(words: int) -> str:
    """Return the row of a vocabulary."""
    found = []
    for is_private in (False, True):
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            found.append(pool.submit(measure_steps, words, is_private).result())
    (plain, small), (private, large) = found
    return f"| {words:,} | {plain:.4f} | {private:.3f} | {small:,.0f} | {large:,.0f} |"


def main() -> None:
    """Run the jobs that have no row yet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", default=list(JOBS))
    parser.add_argument("--steps", action="store_true")
    default = pathlib.Path(__file__).parent / "record" / "next-words.md"
    parser.add_argument("--out", type=pathlib.Path, default=default)
    given = parser.parse_args()
    head = HEAD.format(date=datetime.date.today(), version=dpcore.__version__)
    if not given.out.exists():
        given.out.write_text(head, "utf-8")
    for job in given.only:
        if f"| {job} |" not in given.out.read_text("utf-8"):
            with given.out.open("a", encoding="utf-8") as file:
                file.write(make_row(given.data, job) + "\n")
    if given.steps:
        rows = [make_steps_row(words) for words in (600, 2_400, 9_600)]
        with given.out.open("a", encoding="utf-8") as file:
            file.write(STEPS_HEAD + "\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
