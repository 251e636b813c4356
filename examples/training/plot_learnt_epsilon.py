# needs: torch
"""
An epsilon that the training of a model learns
==============================================

In DPText (Beigi et al., 2019), epsilon is a parameter that the training learns together with the
weights. Therefore no epsilon is claimed before the training. The learnt epsilon is valid only for
texts that the model encodes after the training. It is not valid for the training texts. This script
uses the repaired DPText, whose noise has the Laplace distribution.
"""

import matplotlib.pyplot as plt

import dpcore
from dpcore.text import DPTextModel, generated

TRIALS = 10**4
CAPS = {"no limit": None, "limit 5.3": 5.3}
corpus = generated("topics", 800, rng=1)

# %%
# A larger epsilon means less noise, and less noise makes the training losses smaller. Therefore
# epsilon grows during the training. The script trains one model with the upper limit 5.3 for
# epsilon (`cap`) and one model without a limit.

models = {}
for name, cap in CAPS.items():
    model = DPTextModel(epsilon=5.0, attribute="parent", noise="repaired", learn=True, cap=cap)
    models[name] = model.fit(corpus, epochs=6, pair=False, rng=1)

figure, axes = plt.subplots(layout="constrained")
for name, model in models.items():
    epsilons = [5.0, *model.trained.epsilons]
    axes.plot(range(len(epsilons)), epsilons, "o-", label=name)
axes.set(xlabel="number of epochs", ylabel="learnt epsilon, for any two later texts")
axes.legend(frameon=False)

# %%
# The audit does not use the learnt epsilon as the claim. The user can pass the learnt epsilon as
# `claim`. The script audits the model without a limit, first without a claim, then with its learnt
# epsilon.

model = models["no limit"]
pair = model.worst_pair(corpus.test.texts)
for claim in (None, model.learnt):
    report = dpcore.audit(model, pair, claim=claim, trials=TRIALS, rng=1, progress=False)
    print(f"claim {claim}: {report.verdict}")
print(f"exact loss of this pair {report.declared_loss:.2f}, certified {report.epsilon_lower:.2f}")

plt.show()
