# needs: torch, sklearn
"""
Inference of a private attribute from DPNR's vectors
====================================================

DPNR (Lyu, He and Li, 2020) adds Laplace noise to vectors of texts. In the paper, each entry of a
vector has an independent noise. In the released code, all entries of a vector have the same noise.
An attacker infers a private attribute of generated texts from the vectors. The script measures the
accuracy for the two kinds of noise, at four claimed epsilons.
"""

import matplotlib.pyplot as plt
from sklearn.linear_model import LogisticRegression

from dpcore.text import DPNR, generated, schedules
from dpcore.text.inference import infer

CLAIMS = (0.05, 0.5, 5.0, 50.0)
DRAWS = {"iid": "independent noise per entry (paper)", "shared": "one noise per vector (code)"}
corpus = generated("topics", 1500, rng=1)

# %%
# The attacker tries a logistic regression with several transforms of the vectors. For example, one
# transform subtracts the smallest entry of each vector. The attacker chooses a transform on
# validation texts and uses it once on test texts, which occur in no other split. All encoders are
# trained with almost no noise. The results therefore differ only by the noise that is added after
# the training.

attackers = [LogisticRegression(max_iter=1000)]


def attack(noise, epsilon):
    model = DPNR(dim=32, epsilon=epsilon, noise=noise)
    model.fit(corpus, schedule=schedules.Constant(500.0), epochs=2, pair=False, rng=1)
    return infer(model.encode, corpus, "parent", attackers=attackers, rng=1)


results = {noise: [attack(noise, epsilon) for epsilon in CLAIMS] for noise in DRAWS}

# %%
# If all entries of a vector have the same noise, the noise does not hide the attribute at any
# claim. The attacker is as accurate at a claim of .05 as at 50. If each entry has an independent
# noise, this attacker is not better than the majority class at small claims. Another attacker may
# be better. At a claim of 50 (true epsilon 1,600), the attacker is about as accurate with both
# kinds of noise.

figure, axes = plt.subplots(layout="constrained")
for noise, marker, shift in (("iid", "o", 0.94), ("shared", "s", 1.06)):
    accuracies = [result.accuracy for result in results[noise]]
    middle = [accuracy.value for accuracy in accuracies]
    bars = [
        [accuracy.value - accuracy.low for accuracy in accuracies],
        [accuracy.high - accuracy.value for accuracy in accuracies],
    ]
    axes.errorbar(
        [epsilon * shift for epsilon in CLAIMS], middle, bars, fmt=f"{marker}-", capsize=3,
        label=DRAWS[noise],
    )  # fmt: skip
floor = results["iid"][0].floors[0].accuracy
axes.axhline(floor, color="grey", linewidth=0.8)
axes.annotate(
    "majority class", (50, floor), (0, -12), textcoords="offset points", ha="right", color="grey"
)
axes.set_ylim(0.4, 1.0)
axes.set_xscale("log")
axes.set_xticks(CLAIMS, [f"{claim:g}" for claim in CLAIMS])
axes.minorticks_off()
axes.set(
    xlabel="claimed epsilon (true: 32 times as much, or infinite)", ylabel="attacker's accuracy"
)
axes.legend(frameon=False, loc="upper left")

# %%
# The script prints the report of one point of the picture: the same noise for all entries, claim
# .05.

print(results["shared"][0])

plt.show()
