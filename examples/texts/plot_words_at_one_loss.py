"""
Word mechanisms at one largest loss
===================================

Epsilons of mechanisms that replace words are not comparable. At one largest loss of any two words
they are: what share of the words stays as it is, and how many texts are still linked to the
original that they came from?
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import words
from dpcore.text.words import Embedding

# %%
# Twenty topics of fifteen words each, whose vectors lie around the topic's own, and sixty texts of
# twenty words.

rng = np.random.default_rng(1)
vectors = rng.normal(size=(20, 1, 16)) + 0.4 * rng.normal(size=(20, 15, 16))
names = [f"word{number:03d}" for number in range(300)]
vocabulary = Embedding(names, vectors.reshape(300, 16) / 4.0)
texts = [" ".join(rng.choice(names, 20)) for _ in range(60)]

# %%
# The table of all mechanisms at 8 nats. The loss of `SanText` and `TEM` is exact, that of the two
# with noise on the vectors is at most this, and `CusText` loses everything between words of
# different lists, whatever its epsilon.

print(words.compare(vocabulary, loss=8.0, rng=1))

# %%
# With the loss grow the words that stay. Texts are linked long before a tenth of their words stays.

LOSSES = np.array([1.0, 2.0, 4.0, 8.0, 16.0, 32.0])
KINDS = {"SanText": words.SanText, "MetricLaplace": words.MetricLaplace}
COLOURS = {"SanText": "#0067a3", "MetricLaplace": "#a84300"}

figure, panels = plt.subplots(1, 2, figsize=(7.2, 3.0), layout="constrained", sharex=True)
for name, kind in KINDS.items():
    found = [words.calibrate(kind, vocabulary, loss).mechanism for loss in LOSSES]
    kept = []
    for mechanism in found:
        inputs = np.repeat(np.arange(300), 50)
        kept.append(np.mean(mechanism.replace(inputs, 1) == inputs))
    linked = [words.link(one, texts, one.rewrite(texts, rng=1)) for one in found]
    ends = np.array([one.interval for one in linked])
    panels[0].plot(LOSSES, kept, "o-", color=COLOURS[name], label=name)
    panels[1].plot(LOSSES, [one.share for one in linked], "o-", color=COLOURS[name], label=name)
    panels[1].fill_between(LOSSES, *ends.T, color=COLOURS[name], alpha=0.15, linewidth=0)
panels[1].axhline(linked[0].floor, color="grey", linewidth=0.8)
panels[1].annotate(
    "guessing", (LOSSES[-1], linked[0].floor), (0, 4), textcoords="offset points",
    color="grey", ha="right",
)  # fmt: skip
panels[0].set(xscale="log", ylabel="share of words that stay", ylim=(0.0, 1.05))
panels[1].set(ylabel="share of texts linked", ylim=(0.0, 1.05))
for panel in panels:
    panel.set_xticks(LOSSES, [f"{loss:g}" for loss in LOSSES])
    panel.minorticks_off()
    panel.set_xlabel("largest loss of any two words (nats)")
panels[0].legend(frameon=False)

plt.show()
