# needs: torch
"""
An epsilon that is learnt together with the weights
===================================================

DPText (Beigi et al., 2019) learns its epsilon: the noise is one more parameter of the training.
Then no claim is fixed in advance, and the value that is learnt covers later texts alone. Here the
noise is the repaired one, of the Laplace distribution.
"""

import matplotlib.pyplot as plt

import dpcore
from dpcore.text import DPTextModel, generated

TRIALS = 10**4
CAPS = {"no cap": None, "cap 5.3": 5.3}
corpus = generated("topics", 800, rng=1)

# %%
# Less noise makes every other loss smaller, so that training raises epsilon. Without a cap nothing
# stops it.

models = {}
for name, cap in CAPS.items():
    model = DPTextModel(epsilon=5.0, attribute="parent", noise="repaired", learn=True, cap=cap)
    models[name] = model.fit(corpus, epochs=6, pair=False, rng=1)

figure, axes = plt.subplots(layout="constrained")
for name, model in models.items():
    epsilons = [5.0, *model.trained.epsilons]
    axes.plot(range(len(epsilons)), epsilons, "o-", label=name)
axes.set(xlabel="epochs", ylabel="learnt epsilon, for any two later texts")
axes.legend(frameon=False)

# %%
# A learnt epsilon is not a claim, and an audit takes none from the model. The value can be given.

model = models["no cap"]
pair = model.worst_pair(corpus.test.texts)
for claim in (None, model.learnt):
    report = dpcore.audit(model, pair, claim=claim, trials=TRIALS, rng=1, progress=False)
    print(f"claim {claim}: {report.verdict}")
print(f"exact loss of this pair {report.declared_loss:.2f}, certified {report.epsilon_lower:.2f}")

plt.show()
