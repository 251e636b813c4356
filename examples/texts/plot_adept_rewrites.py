# needs: torch
"""
What ADePT leaves of a text, against the true epsilon
=====================================================

ADePT (Krishna, Gupta and Dupuy, 2021) rewrites texts with noise between encoder and decoder. Its
claim is too small by the square root of the numbers in a vector (Habernal, 2021): here by 11.3.
"""

import matplotlib.pyplot as plt

from dpcore.text import ADePTModel, generated, words_of

CLAIMS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

# %%
# A small auto-encoder learns to repeat utterances. What follows is asked of texts that it has
# not seen: those that it has, it remembers.

corpus = generated("intents", 300, rng=1)
model = ADePTModel(epsilon=100.0, hidden=64, embedding=16)
model.fit(corpus, epochs=20, lr=0.01, pair=False, rng=1)
held_out = [text for text in (*corpus.valid.texts, *corpus.test.texts) if text not in corpus.train]

# %%
# Of each text: the share of its words that its rewrite has, too. The floor is that share in the
# rewrite of another text, for all utterances have words in common.


def kept_of(text, rewrite):
    words = set(words_of(text))
    return len(words & set(rewrite.split())) / len(words)


def kept(rewrites, shift=0):
    texts = held_out[shift:] + held_out[:shift]
    return sum(map(kept_of, texts, rewrites)) / len(texts)


rewrites = [model.renoised(epsilon).rewrite(held_out, rng=2) for epsilon in CLAIMS]
shares = [kept(texts) for texts in rewrites]
floors = [kept(texts, shift=1) for texts in rewrites]
factor = model.renoised(1.0).true_epsilon

# %%
# At a *claim* of 30 most of what can be kept is there. The same rewrites have a true epsilon of
# 340; at a true epsilon of 10 nothing is left but words that every text has.

figure, axes = plt.subplots(layout="constrained")
axes.plot(CLAIMS, shares, "o--", color="C1", label="at the claimed epsilon")
axes.plot(
    [factor * claim for claim in CLAIMS], shares, "o-", color="C0", label="at the true epsilon"
)
axes.plot(
    [factor * claim for claim in CLAIMS], floors, ":", color="grey", label="words of another text"
)
axes.set_xscale("log")
axes.set_ylim(0, 1)
axes.set(xlabel="epsilon, for any two texts", ylabel="words of a text that its rewrite keeps")
axes.legend(frameon=False, loc="upper left")

# %%
# The utterance that is kept best, at each claim:

best = max(range(len(held_out)), key=lambda at: kept_of(held_out[at], rewrites[-1][at]))
print(held_out[best])
for claim, texts in zip(CLAIMS, rewrites, strict=True):
    print(f"claimed {claim:3g}, true {factor * claim:4.0f}: {texts[best]}")

plt.show()
