"""
What the last bits show
=======================

With real numbers, Laplace noise of the right scale satisfies its claim. A computer rounds the
output x + s to a floating-point number. The last bits that the rounded output can have depend on x
(Mironov, 2012). This happens with every textbook sampler of continuous noise. The report of an
audit shows the leak in the row "rounding", which does not change the verdict.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 10**5
noise = dpcore.Laplace(scale=1.0)
report = dpcore.audit(noise, claim=1.0, trials=TRIALS, rng=7)
print(report)

# %%
# The picture shows where the last bit of the outputs is. A nonzero output y is an odd integer times
# 2^e. The exponent e is the position of the last bit that is 1. The script computes e for outputs
# in (-1/2, 1/2), on the inputs 0 and 1. Outputs on input 0 can have smaller exponents than outputs
# on input 1, because floating-point numbers are denser near 0 than near 1.


def lowest_bit(outputs):
    """Return e for every output in (-1/2, 1/2) that is an odd integer times 2^e."""
    near = outputs[np.abs(outputs) < 0.5]
    fraction, exponent = np.frexp(near[near != 0.0])
    whole = (np.abs(fraction) * 2.0**53).astype(np.int64)
    return exponent - 53 + np.log2(whole & -whole).astype(int)


figure, axes = plt.subplots(layout="constrained")
edges = np.arange(-66.5, -45.0)
for x, style in ((0.0, {"alpha": 0.5}), (1.0, {"histtype": "step", "linewidth": 1.5})):
    bits = lowest_bit(dpcore.sample(noise, [x], TRIALS, rng=7)[:, 0])
    axes.hist(bits, edges, weights=np.full(len(bits), 1.0 / TRIALS), label=f"input {x:g}", **style)
axes.set(xlabel="exponent e of the last bit that is 1", ylabel="share of all outputs")
axes.legend(frameon=False)

# %%
# With `floats=True`, the leak through the last bits counts for the verdict. The audit refutes the
# claim of the code that runs.

print(dpcore.audit(noise, claim=1.0, trials=TRIALS, rng=7, floats=True))

# %%
# If the outputs are rounded to a coarse grid, the last bits do not depend on the input in this way.
# The audit does not refute the claim.


def round_to_grid(x, size, rng):
    return np.round((x + rng.laplace(size=(size, 1))) * 1024.0) / 1024.0


print(
    dpcore.audit(
        round_to_grid, dpcore.Pair([0.0], [1.0]), claim=1.0, trials=TRIALS, rng=7, floats=True
    )
)

plt.show()
