# needs: sklearn
"""
Re-identification of authors from noisy vectors of texts
========================================================

The texts of one author have similar vectors. An attacker has some texts of every author and guesses
the authors of other texts. The script measures how much Laplace noise hides the author of a text
among 300 authors. It also measures how well the topic of a text can be predicted with this noise.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import Corpus
from dpcore.text.inference import infer

# %%
# The script uses random vectors with L1 norm 1 instead of the vectors of an encoder. Each author
# has six texts. The attacker learns from four texts, chooses a method on the fifth text, and
# guesses the author of the sixth text. The vector of a text also depends on its topic (the main
# label), one of three.

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
    attributes={"author": [f"author {number}" for number in author]},
    split=[*["train"] * 4, "valid", "test"] * AUTHORS,
)

# %%
# Two vectors of L1 norm 1 have an L1 distance of at most 2. Laplace noise of scale b in every entry
# therefore has epsilon 2 / b for any two texts. An attribute with 50 values or more has three
# default attackers: ridge classification, nearest neighbours, and the nearest mean of an author.
# Each attacker is tried with several transforms of the vectors.

SCALES = [0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2]
results = []
for scale in SCALES:
    noisy = vectors + rng.laplace(scale=scale, size=vectors.shape)
    results.append(infer(None, corpus, "author", vectors=noisy, rng=1))

# %%
# The attacker ranks all authors for each test text. The left picture shows three shares of the test
# texts, with 95 % intervals: the author is ranked first, the author is among the first five, and
# the topic is predicted correctly. The right picture shows the mean rank of the author.
#
# The dotted lines (floors) are results without vectors. For authors, the floors use the frequency
# of an author in the training texts and the topic of the text. For topics, the floor is the most
# frequent topic. The noise hides the author at smaller scales than the topic.

floors = results[0].floors
shares = [
    (
        "author first",
        "o",
        [result.accuracy for result in results],
        max(floor.accuracy for floor in floors),
    ),
    (
        "author in top 5",
        "s",
        [result.ranking.top for result in results],
        max(floor.top for floor in floors),
    ),
    ("topic correct", "^", [result.main.accuracy for result in results], results[0].main.majority),
]
ranks = [result.ranking.mean_rank for result in results]
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")


def draw(axes, measures, marker, colour, label):
    values = np.array([[result.low, result.value, result.high] for result in measures]).T
    bars = np.abs(values[[0, 2]] - values[1])
    axes.errorbar(SCALES, values[1], bars, fmt=f"{marker}-", color=colour, capsize=3, label=label)


for (label, marker, measures, floor), colour in zip(shares, ("C0", "C1", "C3"), strict=True):
    draw(left, measures, marker, colour, label)
    left.axhline(floor, color=colour, linestyle=":", linewidth=1)
draw(right, ranks, "o", "C2", "author's rank")
right.axhline(min(floor.mean_rank for floor in floors), color="C2", linestyle=":", linewidth=1)
left.set(
    ylabel="share of test texts",
    title="Author and topic\n(dotted: without vectors)",
    ylim=(0, 1.02),
)
right.set(
    ylabel=f"mean rank among {AUTHORS} authors",
    title="Rank of the author\n(dotted: without vectors)",
)
right.set_ylim(0, 160)
left.legend(frameon=False, loc="lower left")
for axes in (left, right):
    axes.set_xscale("log")
    axes.set_xticks(SCALES, [f"{scale:g}\n{2 / scale:.0f}" for scale in SCALES])
    axes.minorticks_off()
    axes.set_xlabel("scale of the noise (below: epsilon for any two texts)")

# %%
# The script prints the report for scale 0.03. Its verdict states whether the attacker is better
# than the floors. The row "main label" states how well the topic is predicted. If neither the
# author nor the topic can be predicted, the vectors are useless. The failure of the attack is then
# not an advantage.

print(results[3])

plt.show()
