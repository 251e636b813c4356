# needs: sklearn
"""
Which document was it? What masked words do not hide
====================================================

Words of texts are masked at random until nobody can say which of two sets a text comes from. Does
that hide the document? Whoever has the originals looks for the one that fits what is left.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import generated, link, redaction, words, words_of

# %%
# Made-up texts: those on money are the sensitive set, as many on other topics the safe one.

corpus = generated("topics", 800, rng=1)
both = list(zip(corpus.texts, corpus.labels, strict=True))
money = [text for text, label in both if label == "money"]
others = [text for text, label in both if label != "money"][: len(money)]

# %%
# One call measures which set and which document, at every level. Of two splits the mean is shown.

LEVELS = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0]
found = redaction.sweep(
    money, others, policies=redaction.Random(), levels=LEVELS, splits=2, nulls=2, rng=1
)
print(found)

# %%
# The attack on the set falls close to guessing, while documents are still found: few texts have
# the same number of words, and of these few have the same word at the same place. With all masked,
# the number of words still says something about the set.

points = found.of("random")
masked = [point.mean("masked") for point in points]
figure, axes = plt.subplots(layout="constrained")
axes.errorbar(
    masked, [point.mean("accuracy") for point in points],
    [point.sd("accuracy") for point in points], fmt="o-", color="#0067a3", capsize=3,
    label="names the right set",
)  # fmt: skip
styles = {0: ("s-", "finds the original by places"), 1: ("^--", "finds it by the bag of words")}
for number, (style, label) in styles.items():
    shares = [point.linkages[number].share for point in points]
    ends = list(zip(*(point.linkages[number].interval for point in points), strict=True))
    axes.plot(masked, shares, style, color="#a84300", label=label)
    axes.fill_between(masked, *ends, color="#a84300", alpha=0.12, linewidth=0)
axes.axhline(0.5, color="grey", linewidth=0.8)
axes.annotate("guessing the set", (0.0, 0.5), (0, 4), textcoords="offset points", color="grey")
axes.set(xlabel="share of the words masked", ylabel="share of the texts", ylim=(0.0, 1.05))
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.05))

# %%
# One of them, with nine words in ten masked. It fits a single original.

hidden = redaction.redact(money, redaction.Random(), level=0.9, rng=2)
known = redaction.link_redacted(money, hidden)
print(known)
print("published:", hidden[3])
print("original: ", money[3])

# %%
# Other rewriters are linked in the same way. A function of one's own drops words at random. A word
# mechanism replaces words by others; its attacker computes how likely each original makes the
# output. The original is found although most words are replaced, because the law of each word is
# known. Words in common find it only while words are left.

candidates = [" ".join(words_of(text)) for text in money]
vocabulary = sorted({word for text in candidates for word in text.split()})
rows = np.random.default_rng(1).normal(size=(len(vocabulary), 16))
vectors = words.Embedding(vocabulary, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def drop_words(texts, share, rng):
    draw = np.random.default_rng(rng)
    return [" ".join(word for word in text.split() if draw.random() > share) for text in texts]


def share_replaced(outputs):
    pairs = zip(" ".join(candidates).split(), " ".join(outputs).split(), strict=True)
    return np.mean([word != output for word, output in pairs])


dropped_shares = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95]
dropped = [
    link(drop_words, candidates, drop_words(candidates, share, 3), by="words")["words"].share
    for share in dropped_shares
]
replaced_shares, replaced = [], []
for epsilon in (20.0, 10.0, 8.0, 6.0, 5.0, 3.0, 1.0):
    mechanism = words.SanText(vectors, epsilon)
    outputs = mechanism.rewrite(candidates, rng=3)
    linked = link(mechanism, candidates, outputs, by=["likelihood", "words"])
    replaced_shares.append(share_replaced(outputs))
    replaced.append([linked["likelihood"].share, linked["words"].share])

# %%
# The floor is the share of one candidate, 1 of 193.

figure, axes = plt.subplots(layout="constrained")
axes.plot(dropped_shares, dropped, "o-", color="#0067a3", label="words dropped: by common words")
exact, common = np.transpose(replaced)
axes.plot(replaced_shares, exact, "s-", color="#a84300", label="words replaced: by likelihood")
axes.plot(replaced_shares, common, "^--", color="#a84300", label="words replaced: by common words")
axes.set(xlabel="share of the words dropped or replaced", ylabel="share of the texts linked")
axes.set_ylim(0.0, 1.05)
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.05))

# %%
# The words that are left can expose the set of a document, too. These are the surest with half of
# the words masked.

for document in found["random", 0.6].exposed(3):
    print(f"{document.score:.2f}", "money" if document.is_sensitive else "other", document.words)

plt.show()
