# needs: torch, opacus, sklearn
"""
Perplexity of a language model, and its leak of one training text
=================================================================

The script trains next-word models on private texts in three ways: on the original texts, on texts
with masked words, and by DP-SGD. DP-SGD guarantees an upper bound on epsilon. Masked words do not
guarantee an epsilon. The three ways can therefore be compared only by an audit. The audit of one
training certifies a lower bound on the epsilon of one text.
"""

import math
import warnings

import matplotlib.pyplot as plt

from dpcore import AssumptionWarning, training
from dpcore.text import Vocabulary, generated, lm, redaction

# %%
# The texts are generated questions about a timetable. All models have the same vocabulary. The
# canaries are 400 texts of random words of this vocabulary. Each canary is added to the training
# texts with probability 1/2.

corpus = generated("intents", 500, rng=1)
vocabulary = Vocabulary.from_texts(corpus, unknown="token")
texts, valid = list(corpus.train), list(corpus.valid)
canaries = lm.canaries(vocabulary, 400, words=8, rng=2)


def mask(share):
    return lambda records: redaction.redact(records, redaction.Random(), level=share, rng=3)


# %%
# Each recipe contains a function that prepares the texts, and the options of the training. The last
# recipe is DP-SGD without noise. A difference between the last two recipes is an effect of the
# noise. It is not an effect of clipping or of the number of steps.

private = {"epochs": 8, "batch": 100, "delta": 8e-5}
RECIPES = {
    "plain": (list, {"epochs": 12}),
    "half masked": (mask(0.5), {"epochs": 12}),
    "90 % masked": (mask(0.9), {"epochs": 12}),
    "DP-SGD, epsilon 8": (list, {**private, "epsilon": 8.0}),
    "DP-SGD without noise": (list, {**private, "epsilon": math.inf}),
}

# %%
# Words of canaries are masked like words of all other texts. The score of a canary is the training
# loss (cross-entropy) of the canary without masks, which the attacker knows. The perplexity is
# measured on test texts without masks.


def measure(prepare, options):
    models = []

    def fit(records):
        models.append(
            lm.fit(
                prepare(records), prepare(valid), vocabulary=vocabulary, hidden=32, rng=4,
                progress=False, **options,
            )
        )  # fmt: skip
        return models[0].losses

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AssumptionWarning)
        report = training.audit_run(fit, texts, canaries=canaries, guesses=100, delta=8e-5, rng=5)
    return models[0], models[0].perplexity(corpus.test.texts, exclude=texts, rng=6), report


results = {name: measure(*recipe) for name, recipe in RECIPES.items()}
print(results["DP-SGD, epsilon 8"][0])

# %%
# The left picture shows the logarithm of the perplexity. The right picture shows the certified
# epsilon, a lower bound. Only DP-SGD guarantees an epsilon, which is written at its bar. The dotted
# line is the largest epsilon that an audit with 100 guesses can certify.

figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(8, 3), layout="constrained")
names = list(results)
left.barh(names, [perplexity.log_value for _, perplexity, _ in results.values()], color="#0067a3")
first = results["plain"][1]
for label, value, line in (
    ("DP-SGD without noise", results["DP-SGD without noise"][1].value, "-"),
    ("unigram", first.unigram, "--"),
    ("uniform", first.uniform, ":"),
):
    left.axvline(math.log(value), color="black", linewidth=1.0, linestyle=line, label=label)
left.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
left.invert_yaxis()
left.set_xlabel("log-perplexity (lower predicts better)")
bounds = [report.epsilon_lower for _, _, report in results.values()]
bars = right.barh(names, bounds, color="#a84300")
for bar, (model, _, report) in zip(bars, results.values(), strict=True):
    guarantee = "none" if model.sigma in (None, 0.0) else f"{model.epsilon:.1f}"
    text = f" AUC {report.auc:.2f}; guaranteed epsilon: {guarantee}"
    right.text(bar.get_width(), bar.get_y() + bar.get_height() / 2, text, va="center", fontsize=7)
right.axvline(results["plain"][2].ceiling, color="grey", linewidth=0.8, linestyle=":")
right.set(xlabel="certified epsilon of one text", xlim=(0.0, 8.4))
plt.show()
