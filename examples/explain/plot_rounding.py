"""
What the last bits show
=======================

Laplace noise of the right scale keeps its claim on paper. As doubles, an output x + s is rounded,
and which last bits it can have depends on x (Mironov, 2012). Every textbook sampler does this; a
report shows it in the row "rounding", which is no part of the verdict.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 10**5
noise = dpcore.Laplace(scale=1.0)
report = dpcore.audit(noise, claim=1.0, trials=TRIALS, rng=7)
print(report)

# %%
# Where do the last bits stand? For outputs in (-1/2, 1/2) the lowest set bit is counted, on x = 0
# and on x' = 1: near 0 a double has bits that 1 + s cannot reach.


def lowest_bit(outputs):
    """The exponent of the lowest set bit: y is an odd multiple of two to that power."""
    near = outputs[np.abs(outputs) < 0.5]
    fraction, exponent = np.frexp(near[near != 0.0])
    whole = (np.abs(fraction) * 2.0**53).astype(np.int64)
    return exponent - 53 + np.log2(whole & -whole).astype(int)


figure, axes = plt.subplots(layout="constrained")
edges = np.arange(-66.5, -45.0)
for x, style in ((0.0, {"alpha": 0.5}), (1.0, {"histtype": "step", "linewidth": 1.5})):
    bits = lowest_bit(dpcore.sample(noise, [x], TRIALS, rng=7)[:, 0])
    axes.hist(bits, edges, weights=np.full(len(bits), 1.0 / TRIALS), label=f"input {x:g}", **style)
axes.set(xlabel="exponent of the lowest set bit", ylabel="share of the outputs")
axes.legend(frameon=False)

# %%
# Asked for by name, the finding counts: the code as it runs loses more than it claims.

print(dpcore.audit(noise, claim=1.0, trials=TRIALS, rng=7, floats=True))

# %%
# Outputs rounded to a coarse grid have no such bits, and the claim stands.


def rounded(x, size, rng):
    return np.round((x + rng.laplace(size=(size, 1))) * 1024.0) / 1024.0


print(
    dpcore.audit(rounded, dpcore.Pair([0.0], [1.0]), claim=1.0, trials=TRIALS, rng=7, floats=True)
)

plt.show()
