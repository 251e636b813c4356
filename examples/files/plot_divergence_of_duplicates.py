"""
What duplicates do to an estimate of divergence
===============================================

Real sets of embeddings contain some rows many times, such as the vector of a greeting or of an
empty text. This script draws two sets in which a share of the rows are one repeated row. The Renyi
divergence of their distributions is known. The script compares estimators with this true value.
"""

import matplotlib.pyplot as plt
import numpy as np

from dpcore.divergence import closed_forms, renyi

ROWS = 2000
SHARES = (0.0, 0.1, 0.3, 0.5, 0.7)

# %%
# The rows of the first set are drawn from a normal distribution with mean 0. The rows of the second
# set have mean 1. Both standard deviations are 1. A share of the rows of the first set is then
# replaced by the value 0.25. In the second set, half of this share is replaced by 0.25.

rng = np.random.default_rng(7)


def rows(mean, share):
    sample = rng.normal(mean, 1.0, size=(ROWS, 1))
    sample[rng.random(ROWS) < share] = 0.25
    return sample


def truth(share):
    return float(closed_forms.mixture_with_atom([2.0], share, share / 2, rest=1.0)[0])


sets = [(rows(0.0, share), rows(1.0, share / 2)) for share in SHARES]

# %%
# The script estimates the Renyi divergence of order 2 with three methods. The method "ball" counts
# the rows of both sets in balls around the rows, repeated rows included. The method "score" works
# with repeated rows too. The method "paper" is the estimator of Gusain and Leith (2025), with two
# misprints corrected. It needs a ratio of densities, which does not exist at repeated rows. Its
# reports contain "not resolved at this alpha". This means that the estimate is not usable.

METHODS = {"ball": "o", "score": "s", "paper": "v"}
estimates_of = {
    method: [renyi(*both, alphas=[2.0], method=method, rng=7) for both in sets]
    for method in METHODS
}
for method, estimates in estimates_of.items():
    print(method, [str(estimate.belief[0, 0]) for estimate in estimates])

# %%
# The estimator of Poczos and Schneider (2011) does not accept repeated rows. dpcore raises a
# ValueError.

try:
    renyi(*sets[2], alphas=[2.0], method="poczos")
except ValueError as error:
    print(error)

# %%
# The bars of the picture are standard errors. The estimates "ball" and "score" are a little below
# the true value and change with it. No estimate in the picture is a bound on the divergence.

figure, axes = plt.subplots(layout="constrained")
axes.plot(SHARES, [truth(share) for share in SHARES], "k:", label="true value")
for (method, marker), shift in zip(METHODS.items(), (-0.006, 0.0, 0.006), strict=True):
    values = [float(estimate.value[0, 0]) for estimate in estimates_of[method]]
    errors = [float(estimate.std_error[0, 0]) for estimate in estimates_of[method]]
    places = [share + shift for share in SHARES]
    axes.errorbar(places, values, errors, fmt=f"{marker}-", capsize=3, label=method)
axes.axhline(0.0, color="grey", linewidth=0.8)
axes.set(xlabel="share of one repeated row in the first set", ylabel="Renyi divergence of order 2")
axes.legend(frameon=False, loc="lower left")

plt.show()
