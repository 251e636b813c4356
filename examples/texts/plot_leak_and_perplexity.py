# needs: torch, opacus, sklearn
"""
What a next-word model predicts, and what it shows of one text
==============================================================

Three ways to train on the same private texts: as they are, with masked words, and by DP-SGD. An
audit of one training certifies from below what each shows of one text. This is the only scale on
which the three can be compared: the epsilon of DP-SGD is guaranteed, and redaction guarantees
nothing.
"""

import math
import warnings

import matplotlib.pyplot as plt

from dpcore import AssumptionWarning, training
from dpcore.text import Vocabulary, generated, lm, redaction

# %%
# Made-up questions to a timetable. All models have one vocabulary, and canaries are texts of its
# words, drawn at random. Each is put among the training texts by a coin.

corpus = generated("intents", 500, rng=1)
vocabulary = Vocabulary.from_texts(corpus, unknown="token")
texts, valid = list(corpus.train), list(corpus.valid)
canaries = lm.canaries(vocabulary, 400, words=8, rng=2)


def mask(share):
    return lambda some: redaction.redact(some, redaction.Random(), level=share, rng=3)


# %%
# The recipes: what is done to texts before the training, and the options of the training. Without
# its noise, DP-SGD is one of them: what its recipe hides is not the merit of the noise.

private = {"epochs": 8, "batch": 100, "delta": 8e-5}
RECIPES = {
    "plain": (list, {"epochs": 12}),
    "half masked": (mask(0.5), {"epochs": 12}),
    "90 % masked": (mask(0.9), {"epochs": 12}),
    "DP-SGD, epsilon 8": (list, {**private, "epsilon": 8.0}),
    "the same without noise": (list, {**private, "epsilon": math.inf}),
}

# %%
# Canaries are redacted as all other texts. Their score is the loss of the clean text, which the
# attacker knows. The perplexity is that of later texts, which are not redacted.


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


found = {name: measure(*recipe) for name, recipe in RECIPES.items()}
print(found["DP-SGD, epsilon 8"][0])

# %%
# The picture. No bar is a guarantee: only DP-SGD has one, and the dotted line is the most that so
# many guesses can certify.

figure, (left, right) = plt.subplots(1, 2, sharey=True, figsize=(8, 3), layout="constrained")
names = list(found)
left.barh(names, [perplexity.log_value for _, perplexity, _ in found.values()], color="#0067a3")
first = found["plain"][1]
for label, value, line in (
    ("without noise", found["the same without noise"][1].value, "-"),
    ("unigram", first.unigram, "--"),
    ("uniform", first.uniform, ":"),
):
    left.axvline(math.log(value), color="black", linewidth=1.0, linestyle=line, label=label)
left.legend(fontsize=7, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False)
left.invert_yaxis()
left.set_xlabel("log-perplexity (lower predicts better)")
certified = [report.epsilon_lower for _, _, report in found.values()]
bars = right.barh(names, certified, color="#a84300")
for bar, (model, _, report) in zip(bars, found.values(), strict=True):
    above = "nothing" if model.sigma in (None, 0.0) else f"{model.epsilon:.1f}"
    text = f" AUC {report.auc:.2f}; guaranteed: {above}"
    right.text(bar.get_width(), bar.get_y() + bar.get_height() / 2, text, va="center", fontsize=7)
right.axvline(found["plain"][2].ceiling, color="grey", linewidth=0.8, linestyle=":")
right.set(xlabel="epsilon of one text, certified from below", xlim=(0.0, 7.2))
plt.show()
