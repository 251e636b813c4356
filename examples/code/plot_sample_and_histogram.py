"""
Outputs on two inputs, and the event that distinguishes them
============================================================

An audit draws outputs on both inputs of a pair and counts an event on each side. The loss that it
certifies is the logarithm of the ratio of two frequencies, less what chance can have added.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 10**5
noise = dpcore.Laplace(scale=0.5)
report = dpcore.audit(noise, dpcore.Pair([0.0], [1.0]), claim=1.0, trials=TRIALS, rng=7)
print(report)

# %%
# The same samplers fill arrays. They are for audits and experiments, not for releasing data.

edges = np.linspace(-2.0, 3.0, 101)
middles = (edges[1:] + edges[:-1]) / 2.0
outputs = {x: dpcore.sample(noise, [x], TRIALS, rng=7) for x in (0.0, 1.0)}

# %%
# The event was fixed on pilot draws, and is a function: outputs -> True or False.

figure, axes = plt.subplots(layout="constrained")
for (x, drawn), style in zip(outputs.items(), ("-", "--"), strict=True):
    heights, _ = np.histogram(drawn, edges, density=True)
    axes.stairs(heights, edges, linestyle=style, linewidth=1.4, label=f"outputs on {x:g}")
inside = report.event(middles[:, None])
axes.fill_between(
    middles, 0, 1.05, where=inside, step="mid", color="grey", alpha=0.2, label="the event"
)
axes.set(xlim=(-2.0, 3.0), ylim=(0.0, 1.05), xlabel="output", ylabel="density")
axes.legend(frameon=False)

# %%
# Its counts, by hand: the estimate certifies nothing, the bound does.

counts = report.counts
print(counts, report.direction)
print("estimate", report.epsilon_hat, "certified", report.epsilon_lower)

plt.show()
