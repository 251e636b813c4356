# needs: torch, sklearn, sacrebleu
"""
Rewriters in one table
======================

The script compares five methods that rewrite texts (rewriters), such as masked words, replaced
words and an auto-encoder with noise. One call of `frontier` rewrites all texts with each rewriter.
It measures how useful the rewrites are and how much they disclose.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.text import ADePTModel, Rewriter, frontier, generated, redaction, words, words_of

# %%
# The private texts are generated messages on four topics. Some phrases disclose whether the author
# is a parent. The auto-encoder, and the language model that computes perplexities, are trained on
# other messages, which are public.

corpus = generated("topics", 600, rng=1)
public = [text for text in generated("topics", 500, rng=2).texts if text not in set(corpus.texts)]
adept = ADePTModel(1e5, variant="scaled", hidden=48, embedding=24)
adept = adept.fit(public, epochs=12, lr=0.02, pair=False, rng=1)

# %%
# `SanText` is a word mechanism: it replaces a word by another word with a random choice. Words with
# similar vectors are more likely. Here the vectors are random, so that all pairs of words are about
# equally similar.

vocabulary = sorted({word for text in corpus.texts for word in words_of(text)})
rows = np.random.default_rng(1).normal(size=(len(vocabulary), 16))
vectors = words.Embedding(vocabulary, rows)


# %%
# A rewriter can be a Python function of one text. This function has no claim, so that the table
# contains a dash as its certified epsilon.


def keep_every_fourth(text, rng):
    start = int(rng.integers(4))
    return " ".join(text.split()[start::4])


# %%
# The last rewriter claims epsilon = 1, but it only changes all letters to capital letters. Its
# claim is false.

rewriters = {
    "ADePT, epsilon 1e5": adept,
    "SanText, epsilon 5": words.SanText(vectors, 5.0),
    "9 of 10 words masked": redaction.policy_mechanism(redaction.Random(), 0.9),
    "every fourth word": keep_every_fourth,
    "capital letters": Rewriter(str.upper, claim=1.0, takes="text"),
}
table = frontier(rewriters, corpus, attribute="parent", public=public, rng=1)
print(table)

# %%
# In this table, the attack on the attribute (`attack`) mostly succeeds if the task (the topic)
# succeeds. With nine of ten words masked, the attack is not better than guessing with 95 %
# confidence. However, an attacker links nearly all rewrites to their originals, by the positions of
# the words that are not masked. An attacker who knows the method that masks or replaces words links
# more texts than an attacker who counts common words. The attack refutes the claim of the last
# rewriter.

table.plot()
plt.show()
