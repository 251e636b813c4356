"""Print what an attacker's word2vec recovers of ten sentences, and the shares of all words.

Usage: python benches/record_word2vec_sentences.py DATA

DATA is the folder of the corpora, with leakage/spa-eng.zip in it. As in situation 1 of the study
of DPNR, victim and attacker train on samples of one collection that share half of their sentences,
from the start of gensim 3.8; each word is replaced by the nearest word of the attacker. The ten
sentences are made up, and need not be in the collection. It takes 15 CPU seconds.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import zipfile

import numpy as np

from dpcore.experiments.word2vec_leakage import leakage

SEEDS = (1, 2, 3)
SENTENCES = {
    "English": (
        "my doctor said that i only have a few days left to live",
        "i lost my job last week",
        "she is ill and needs money",
        "he left his wife for another woman",
        "i am afraid of my father",
    ),
    "Spanish": (
        "mi médico dijo que solo me quedan unos días de vida",
        "perdí mi trabajo la semana pasada",
        "ella está enferma y necesita dinero",
        "él dejó a su mujer por otra",
        "tengo miedo de mi padre",
    ),
}
"""Sentences by language, in the order of the columns of the collection."""


def main(data: str) -> None:
    """Train, attack, and print one block of lines for each language."""
    archive = zipfile.ZipFile(pathlib.Path(data) / "leakage" / "spa-eng.zip")
    lines = archive.read("spa-eng/spa.txt").decode("utf-8").splitlines()
    for column, (language, sentences) in enumerate(SENTENCES.items()):
        texts = list(dict.fromkeys(line.split("\t")[column] for line in lines))
        shares = []
        for seed in SEEDS:
            halves = leakage.split_in_halves(texts, overlap=0.5, rng=seed)
            victim, attacker = (
                leakage.train_word2vec(half, start="hashed", seed=seed, progress=False)
                for half in halves
            )
            attack = leakage.attack_embedding(victim, attacker, None, topn=(1, 5), progress=False)
            shares.append((attack.share(1).value, attack.share(5).value))
            if seed == SEEDS[0]:
                shown = [recover_sentence(victim, attacker, sentence) for sentence in sentences]
        top = " and ".join(
            f"{statistics.fmean(column):.3f} (sd {statistics.stdev(column):.3f})"
            for column in zip(*shares, strict=True)
        )
        print(f"{language}: {len(texts):,} sentences; top-1 and top-5 of all words {top}")
        print("\n".join(shown))


def recover_sentence(victim: leakage.Embedding, attacker: leakage.Embedding, sentence: str) -> str:
    """Return a row of a table: the sentence, its nearest words, and how many are right."""
    theirs = attacker.vectors / np.linalg.norm(attacker.vectors, axis=1, keepdims=True)
    words = sentence.split()
    nearest = [
        attacker.words[int((theirs @ victim.vectors[victim.rows[word]]).argmax())]
        if word in victim else "?"
        for word in words
    ]  # fmt: skip
    right = sum(first == second for first, second in zip(words, nearest, strict=True))
    return f"| {sentence} | {' '.join(nearest)} | {right} of {len(words)} |"


if __name__ == "__main__":
    main(sys.argv[1])
