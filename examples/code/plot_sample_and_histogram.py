"""
Outputs on two inputs, and the event that distinguishes them
============================================================

An audit draws outputs of a mechanism on two inputs x and x'. It counts an event (a set of outputs)
on each input. The estimate of epsilon is the logarithm of the ratio of the two frequencies. The
certified epsilon is a lower confidence bound on the logarithm of the ratio of the two
probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 10**5
noise = dpcore.Laplace(scale=0.5)
report = dpcore.audit(noise, dpcore.Pair([0.0], [1.0]), claim=1.0, trials=TRIALS, rng=7)
print(report)

# %%
# `dpcore.sample` returns outputs in a numpy array. Its samplers are for audits and experiments. Do
# not use them to release data.

edges = np.linspace(-2.0, 3.0, 101)
middles = (edges[1:] + edges[:-1]) / 2.0
outputs = {x: dpcore.sample(noise, [x], TRIALS, rng=7) for x in (0.0, 1.0)}

# %%
# The audit chose the event on its first outputs (the pilot), which it does not count.
# `report.event` is a function that returns True for each output in the event. The grey area is the
# event.

figure, axes = plt.subplots(layout="constrained")
for (x, sample), style in zip(outputs.items(), ("-", "--"), strict=True):
    heights, _ = np.histogram(sample, edges, density=True)
    axes.stairs(heights, edges, linestyle=style, linewidth=1.4, label=f"outputs on {x:g}")
inside = report.event(middles[:, None])
axes.fill_between(
    middles, 0, 1.05, where=inside, step="mid", color="grey", alpha=0.2, label="the event"
)
axes.set(xlim=(-2.0, 3.0), ylim=(0.0, 1.05), xlabel="output", ylabel="density")
axes.legend(frameon=False)

# %%
# `report.counts` contains the number of outputs in the event on each input. `epsilon_hat` is the
# estimate, which is not a bound. `epsilon_lower` is the certified lower bound at 95 % confidence.

counts = report.counts
print(counts, report.direction)
print("estimate", report.epsilon_hat, "certified", report.epsilon_lower)

plt.show()
