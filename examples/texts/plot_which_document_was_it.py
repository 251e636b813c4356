# needs: sklearn
"""
Masked texts that are linked to their originals
===============================================

The script masks random words of texts from two sets. It measures two attacks. The first attack
guesses from which set a masked text comes. The second attack has all original texts and guesses
which original a masked text comes from. The second attack still succeeds when the first attack is
close to guessing.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import generated, link, redaction, words, words_of

# %%
# The texts are generated. The sensitive set contains the texts about money. The safe set contains
# the same number of texts about other topics.

corpus = generated("topics", 800, rng=1)
both = list(zip(corpus.texts, corpus.labels, strict=True))
money = [text for text, label in both if label == "money"]
others = [text for text, label in both if label != "money"][: len(money)]

# %%
# `sweep` measures both attacks for each share of masked words (the level). It uses two random
# splits into training and test texts. The table contains the means over the splits.

LEVELS = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95, 1.0]
result = redaction.sweep(
    money, others, policies=redaction.Random(), levels=LEVELS, splits=2, nulls=2, rng=1
)
print(result)

# %%
# If 90 % of the words are masked, the attack on the set is close to guessing. However, the second
# attack still links most masked texts to their originals. Few texts have the same number of words,
# and few of these texts have the same word at the same position.

points = result.of("random")
shares_masked = [point.mean("masked") for point in points]
figure, axes = plt.subplots(layout="constrained")
axes.errorbar(
    shares_masked, [point.mean("accuracy") for point in points],
    [point.sd("accuracy") for point in points], fmt="o-", color="#0067a3", capsize=3,
    label="first attack: right set",
)  # fmt: skip
styles = {
    0: ("s-", "second attack, by positions of words"),
    1: ("^--", "second attack, by counts of words"),
}
for number, (style, label) in styles.items():
    shares = [point.linkages[number].share for point in points]
    ends = list(zip(*(point.linkages[number].interval for point in points), strict=True))
    axes.plot(shares_masked, shares, style, color="#a84300", label=label)
    axes.fill_between(shares_masked, *ends, color="#a84300", alpha=0.12, linewidth=0)
axes.axhline(0.5, color="grey", linewidth=0.8)
axes.annotate("guessing the set", (0.0, 0.5), (0, 4), textcoords="offset points", color="grey")
axes.set(xlabel="share of the words masked", ylabel="share of the texts", ylim=(0.0, 1.05))
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.05))

# %%
# `link_redacted` runs the second attack on the sensitive texts with 90 % of their words masked. The
# script prints the share of the linked texts, and one masked text with its original.

redactions = redaction.redact(money, redaction.Random(), level=0.9, rng=2)
linkage = redaction.link_redacted(money, redactions)
print(linkage)
print("published:", redactions[3])
print("original: ", money[3])

# %%
# `link` runs the second attack on other methods that rewrite texts. The function `drop_words` drops
# random words. The word mechanism `SanText` replaces words by other words. The likelihood attack on
# `SanText` computes the probability of the output for each original. It finds most originals
# although most words are replaced, because the probability of each replacement is known. An attack
# that counts common words succeeds only if enough words are unchanged.

candidates = [" ".join(words_of(text)) for text in money]
vocabulary = sorted({word for text in candidates for word in text.split()})
rows = np.random.default_rng(1).normal(size=(len(vocabulary), 16))
vectors = words.Embedding(vocabulary, rows / np.linalg.norm(rows, axis=1, keepdims=True))


def drop_words(texts, share, rng):
    generator = np.random.default_rng(rng)
    return [" ".join(word for word in text.split() if generator.random() > share) for text in texts]


def share_replaced(outputs):
    pairs = zip(" ".join(candidates).split(), " ".join(outputs).split(), strict=True)
    return np.mean([word != output for word, output in pairs])


dropped_shares = [0.0, 0.3, 0.6, 0.8, 0.9, 0.95]
links_dropped = [
    link(drop_words, candidates, drop_words(candidates, share, 3), by="words")["words"].share
    for share in dropped_shares
]
replaced_shares, links_replaced = [], []
for epsilon in (20.0, 10.0, 8.0, 6.0, 5.0, 3.0, 1.0):
    mechanism = words.SanText(vectors, epsilon)
    outputs = mechanism.rewrite(candidates, rng=3)
    linkages = link(mechanism, candidates, outputs, by=["likelihood", "words"])
    replaced_shares.append(share_replaced(outputs))
    links_replaced.append([linkages["likelihood"].share, linkages["words"].share])

# %%
# An attacker who guesses at random links 1 of 193 texts on average.

figure, axes = plt.subplots(layout="constrained")
axes.plot(
    dropped_shares, links_dropped, "o-", color="#0067a3", label="words dropped: by common words"
)
exact, common = np.transpose(links_replaced)
axes.plot(replaced_shares, exact, "s-", color="#a84300", label="words replaced: by likelihood")
axes.plot(replaced_shares, common, "^--", color="#a84300", label="words replaced: by common words")
axes.set(xlabel="share of the words dropped or replaced", ylabel="share of the texts linked")
axes.set_ylim(0.0, 1.05)
axes.legend(frameon=False, loc="lower left", bbox_to_anchor=(0.0, 0.05))

# %%
# The words that are not masked can disclose the set of a text. `exposed(3)` returns three texts
# whose set the first attack guesses correctly and with the highest certainty, here with 60 % of the
# words masked. The script prints the score of each text, its set, and the words that reveal the
# set.

for document in result["random", 0.6].exposed(3):
    print(f"{document.score:.2f}", "money" if document.is_sensitive else "other", document.words)

plt.show()
