"""
Word mechanisms at one largest loss
===================================

Word mechanisms replace words by random other words. The epsilons of different word mechanisms are
not comparable. The script calibrates the mechanisms to the same largest privacy loss of any two
words. It then measures the share of words that do not change, and the share of texts that an
attacker links to their originals.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import words
from dpcore.text.words import Embedding

# %%
# The vocabulary has 20 topics of 15 words each. The vectors of the words of one topic are close to
# each other. There are 60 texts of 20 random words each.

rng = np.random.default_rng(1)
vectors = rng.normal(size=(20, 1, 16)) + 0.4 * rng.normal(size=(20, 15, 16))
names = [f"word{number:03d}" for number in range(300)]
vocabulary = Embedding(names, vectors.reshape(300, 16) / 4.0)
texts = [" ".join(rng.choice(names, 20)) for _ in range(60)]

# %%
# The table compares five mechanisms at a largest loss of 8 nats. The loss of `SanText` and `TEM` is
# exactly 8. `MetricLaplace` and `Vickrey` add noise to the vectors, and their loss is at most 8.
# The largest loss of `CusText` is infinite at every epsilon, because it never replaces a word by a
# word of another list.

print(words.compare(vocabulary, loss=8.0, rng=1))

# %%
# With a larger loss, more words stay unchanged (left picture) and more texts are linked (right
# picture). `SanText` at 4 nats keeps 2 % of the words, but an attacker links almost half of the
# texts. The grey line is the share of texts that an attacker links by guessing.

LOSSES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
KINDS = {"SanText": words.SanText, "MetricLaplace": words.MetricLaplace}
COLOURS = {"SanText": "#0067a3", "MetricLaplace": "#a84300"}

figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.0), layout="constrained", sharex=True)
for name, kind in KINDS.items():
    mechanisms = [words.calibrate(kind, vocabulary, loss).mechanism for loss in LOSSES]
    shares_unchanged = []
    for mechanism in mechanisms:
        inputs = np.repeat(np.arange(300), 50)
        shares_unchanged.append(np.mean(mechanism.replace(inputs, 1) == inputs))
    linkages = [
        words.link(mechanism, texts, mechanism.rewrite(texts, rng=1)) for mechanism in mechanisms
    ]
    ends = np.array([linkage.interval for linkage in linkages])
    panels[0].plot(LOSSES, shares_unchanged, "o-", color=COLOURS[name], label=name)
    panels[1].plot(
        LOSSES, [linkage.share for linkage in linkages], "o-", color=COLOURS[name], label=name
    )
    panels[1].fill_between(LOSSES, *ends.T, color=COLOURS[name], alpha=0.15, linewidth=0)
panels[1].axhline(linkages[0].floor, color="grey", linewidth=0.8)
panels[1].annotate(
    "guessing", (LOSSES[-1], linkages[0].floor), (0, 4), textcoords="offset points",
    color="grey", ha="right",
)  # fmt: skip
panels[0].set(xscale="log", ylabel="share of unchanged words", ylim=(0.0, 1.05))
panels[1].set(ylabel="share of texts linked", ylim=(0.0, 1.05))
for panel in panels:
    panel.set_xticks(LOSSES, [f"{loss:g}" for loss in LOSSES])
    panel.minorticks_off()
    panel.set_xlabel("largest loss of any two words (nats)")
panels[0].legend(frameon=False)

plt.show()
