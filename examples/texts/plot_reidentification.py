# needs: sklearn
"""
Who wrote this? Re-identification against the scale of noise
============================================================

Texts of an author resemble each other, and so do their vectors. An attacker who has some texts of
every author names the authors of others. How much Laplace noise hides an author among three
hundred, and what does it cost?
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import Corpus
from dpcore.text.inference import infer

# %%
# Random vectors of L1 norm 1 take the place of an encoder's. Each author has six texts: four that
# the attacker learns from, one on which he chooses his method, and one whose author he names. The
# main label, on one of three topics, moves the vector as well.

AUTHORS, DIM = 300, 48
rng = np.random.default_rng(1)
author = np.repeat(np.arange(AUTHORS), 6)
topic = rng.integers(0, 3, author.size)
vectors = rng.normal(size=(AUTHORS, DIM))[author] + rng.normal(size=(3, DIM))[topic]
vectors += 0.7 * rng.normal(size=vectors.shape)
vectors /= np.abs(vectors).sum(axis=1, keepdims=True)
corpus = Corpus(
    [f"text {row}" for row in range(author.size)],
    labels=topic,
    attributes={"author": [f"author {one}" for one in author]},
    split=[*["train"] * 4, "valid", "test"] * AUTHORS,
)

# %%
# Two vectors of L1 norm 1 differ by at most 2, so that Laplace noise of scale b in every entry has
# epsilon 2 / b for any two texts. From 50 values on the usual attackers are ridge classification,
# nearest neighbours and the nearest mean of an author, each behind several transforms.

SCALES = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2]
found = []
for scale in SCALES:
    noisy = vectors + rng.laplace(scale=scale, size=vectors.shape)
    found.append(infer(None, corpus, "author", vectors=noisy, rng=1))

# %%
# The share of texts whose author is named first, or among the first five, the share whose topic is
# predicted, and the mean rank of the author, with 95 % intervals. The floors name authors by
# their frequency in train (here they are equal) and by the topic of the text, and topics by the
# most frequent one. A topic has a hundred authors, so that noise hides authors first.

floors = found[0].floors
shares = [
    ("first (top-1)", "o", [one.accuracy for one in found], max(one.accuracy for one in floors)),
    ("first five (top-5)", "s", [one.ranking.top for one in found], max(one.top for one in floors)),
    ("topic", "^", [one.main.accuracy for one in found], found[0].main.majority),
]
ranks = [one.ranking.mean_rank for one in found]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")


def draw(axes, measured, marker, colour, label):
    values = np.array([[one.low, one.value, one.high] for one in measured]).T
    bars = np.abs(values[[0, 2]] - values[1])
    axes.errorbar(SCALES, values[1], bars, fmt=f"{marker}-", color=colour, capsize=3, label=label)


for (label, marker, measured, floor), colour in zip(shares, ("C0", "C1", "C3"), strict=True):
    draw(left, measured, marker, colour, label)
    left.axhline(floor, color=colour, linestyle=":", linewidth=1)
draw(right, ranks, "o", "C2", "author's rank")
right.axhline(min(one.mean_rank for one in floors), color="C2", linestyle=":", linewidth=1)
left.set(
    ylabel="share of test texts",
    title="Author named, topic predicted\n(dotted: floors)",
    ylim=(0, 1.02),
)
right.set(ylabel=f"mean rank of {AUTHORS}", title="Rank of the author\n(dotted: floor)")
right.set_ylim(0, 160)
left.legend(frameon=False)
for axes in (left, right):
    axes.set_xscale("log")
    axes.set_xticks(SCALES, [f"{scale:g}\n{2 / scale:.0f}" for scale in SCALES])
    axes.minorticks_off()
    axes.set_xlabel("scale of the noise, epsilon for any two texts below it")

# %%
# The report of one scale. Its first line says whether the floors are beaten, the row of the main
# label what is left of the topic. An attack that fails on vectors without it is no evidence of
# privacy: they are of no use to anybody.

print(found[3])

plt.show()
