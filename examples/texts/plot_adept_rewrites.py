# needs: torch
"""
Words of a text that ADePT keeps, at the true epsilon
=====================================================

ADePT (Krishna, Gupta and Dupuy, 2021) rewrites texts with an auto-encoder. It adds noise to the
vector between encoder and decoder. The true epsilon is larger than the claimed epsilon by the
factor sqrt(n) for vectors of n entries (Habernal, 2021). Here the factor is 11.3.
"""

import matplotlib.pyplot as plt

from dpcore.text import ADePTModel, generated, words_of

CLAIMS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0)

# %%
# A small auto-encoder is trained to repeat short texts. The script then rewrites only texts that
# are not in the training set, because an auto-encoder can memorise its training texts.

corpus = generated("intents", 300, rng=1)
model = ADePTModel(epsilon=100.0, hidden=64, embedding=16)
model.fit(corpus, epochs=20, lr=0.01, pair=False, rng=1)
test_texts = [
    text for text in (*corpus.valid.texts, *corpus.test.texts) if text not in corpus.train
]

# %%
# The script measures the share of the words of a text that occur in its rewrite. For comparison, it
# measures the share that occurs in the rewrite of another text. This second share is not 0, because
# the texts have words in common.


def common_words(text, rewrite):
    words = set(words_of(text))
    return len(words & set(rewrite.split())) / len(words)


def mean_share(rewrites, shift=0):
    texts = test_texts[shift:] + test_texts[:shift]
    return sum(map(common_words, texts, rewrites)) / len(texts)


rewrites = [model.renoised(epsilon).rewrite(test_texts, rng=2) for epsilon in CLAIMS]
shares = [mean_share(texts) for texts in rewrites]
floors = [mean_share(texts, shift=1) for texts in rewrites]
factor = model.renoised(1.0).true_epsilon

# %%
# At a claimed epsilon of 30, rewrites keep nearly as many words as at larger epsilons. These
# rewrites have a true epsilon of 340. At a true epsilon of about 10, a rewrite has no more words in
# common with its own text than with another text.

figure, axes = plt.subplots(layout="constrained")
axes.plot(CLAIMS, shares, "o--", color="C1", label="at the claimed epsilon")
axes.plot(
    [factor * claim for claim in CLAIMS], shares, "o-", color="C0", label="at the true epsilon"
)
axes.plot(
    [factor * claim for claim in CLAIMS], floors, ":", color="grey", label="rewrite of another text"
)
axes.set_xscale("log")
axes.set_ylim(0, 1)
axes.set(xlabel="epsilon, for any two texts", ylabel="share of the words in the rewrite")
axes.legend(frameon=False, loc="upper left")

# %%
# The script prints one text and its rewrite at each claim. It is the text of which the rewrite at
# the largest claim keeps the largest share of words.

best = max(range(len(test_texts)), key=lambda at: common_words(test_texts[at], rewrites[-1][at]))
print(test_texts[best])
for claim, texts in zip(CLAIMS, rewrites, strict=True):
    print(f"claimed {claim:3g}, true {factor * claim:4.0f}: {texts[best]}")

plt.show()
