"""
Which pair: one entry, or a little in all of them?
==================================================

The claim is epsilon = 1 for every pair of inputs at an L1 distance of at most 1. The mechanism adds
Laplace noise that is 10 % too small. Its true epsilon is 1.11 on every pair at distance 1. An
attack certifies much more of this loss on a pair that differs in one entry than on a pair that
differs a little in all entries.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 10**5
ENTRIES = (2, 8, 32, 128)
laplace = dpcore.Laplace(scale=0.9)

# %%
# Two inputs at L1 distance 1 either differ by 1 in the first entry, or by 1/n in each of n entries.


def certified(x_prime):
    pair = dpcore.Pair(np.zeros(len(x_prime)), x_prime)
    return dpcore.audit(
        laplace, pair, claim=1.0, neighbour=dpcore.pairs.L1(1.0), trials=TRIALS, rng=7
    ).epsilon_lower


in_first = [certified(np.eye(dim)[0]) for dim in ENTRIES]
in_all = [certified(np.full(dim, 1.0 / dim)) for dim in ENTRIES]

# %%
# With 128 entries, the audit certifies very little on the pair that differs in all entries. Its
# verdict "not refuted" on this pair is not evidence that the noise is large enough.

figure, axes = plt.subplots(layout="constrained")
axes.plot(ENTRIES, in_first, "o-", label="difference in one entry")
axes.plot(ENTRIES, in_all, "s--", label="difference in all entries")
axes.axhline(1.0, color="grey", linewidth=0.8)
axes.annotate("claim", (2, 1.0), (0, -12), textcoords="offset points", color="grey")
axes.set_xscale("log", base=2)
axes.set(ylim=(0.0, 1.2), xlabel="number of entries of an input", ylabel="certified epsilon")
axes.set_xticks(ENTRIES, ENTRIES)
axes.legend(loc="lower left", frameon=False)

# %%
# Therefore try several pairs. `dpcore.pairs.patterns` returns usual pairs. The audit draws a few
# outputs on each pair (the pilot), and then tests the pair that these outputs distinguish best.

print(dpcore.audit(laplace, dpcore.pairs.patterns(128, "one"), claim=1.0, trials=TRIALS, rng=7))

plt.show()
