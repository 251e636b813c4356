"""
Gaussian noise: the textbook formula and the exact one
======================================================

The textbook formula for Gaussian noise is sigma = D sqrt(2 ln(1.25/delta))/epsilon, with the L2
sensitivity D. It is proved for epsilon below 1. For a somewhat larger epsilon, its sigma is larger
than necessary. For a large epsilon, its sigma is too small, and the claim is false. The exact delta
of Gaussian noise at each epsilon is known (Balle and Wang, 2018).
"""

import math

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import calibration

TRIALS = 10**5
DELTA = 1e-5


def textbook(epsilon):
    return math.sqrt(2.0 * math.log(1.25 / DELTA)) / epsilon


# %%
# Each formula computes a sigma for each claimed epsilon and delta = 1e-5. The picture shows the
# exact delta of this sigma at the claimed epsilon. Above the grey line, the claim is false.

epsilons = np.geomspace(0.1, 100.0, 60)
sigmas = {
    "textbook": [textbook(epsilon) for epsilon in epsilons],
    "analytic": [calibration.gaussian_analytic(float(e), DELTA, 1.0).sigma for e in epsilons],
}
figure, left = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
for (name, sigmas_of_name), style in zip(sigmas.items(), ("--", "-"), strict=True):
    deltas = [
        calibration.gaussian_delta(sigma, float(epsilon), 1.0)
        for sigma, epsilon in zip(sigmas_of_name, epsilons, strict=True)
    ]
    left.plot(epsilons, deltas, style, label=name)
left.axhline(DELTA, color="grey", linewidth=0.8)
left.annotate("claimed delta", (0.1, DELTA), (0, 4), textcoords="offset points", color="grey")
left.set(xscale="log", yscale="log", ylim=(1e-9, 2.0))
left.set(xlabel="epsilon claimed", ylabel="exact delta of the noise", title="at the claim")
left.legend(loc="upper left", frameon=False)

# %%
# The picture shows the exact delta at every epsilon (the privacy profile) of two noises: the sigma
# of each formula for a claim of epsilon = 20 and delta = 1e-5.

CLAIM = 20.0
figure, right = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
for (name, sigma), style in zip(
    {
        "textbook": textbook(CLAIM),
        "analytic": calibration.gaussian_analytic(CLAIM, DELTA, 1.0).sigma,
    }.items(),
    ("--", "-"),
    strict=True,
):
    grid = np.linspace(0.0, 45.0, 120)
    profile = [calibration.gaussian_delta(sigma, float(epsilon), 1.0) for epsilon in grid]
    right.plot(grid, profile, style, label=f"{name}, sigma {sigma:.3f}")
right.plot(CLAIM, DELTA, "ko")
right.annotate("claim", (CLAIM, DELTA), (-6, -14), textcoords="offset points", ha="right")
right.set(yscale="log", ylim=(1e-9, 2.0), xlabel="epsilon", ylabel="exact delta", title="for 20")
right.legend(loc="upper right", frameon=False)

# %%
# `gaussian_classical` raises a ValueError if the claim of the textbook formula is false.

try:
    calibration.gaussian_classical(CLAIM, DELTA, 1.0)
except ValueError as error:
    print(error)

# %%
# An audit by draws cannot detect this false claim. An event that shows a privacy loss of 20 has a
# probability of at most e^-20 on one of the two inputs. With 10^5 draws per input, an audit
# certifies an epsilon of at most 10.2. The verdict is therefore "undecided". If an exact formula is
# known, use the formula.

report = dpcore.audit(
    dpcore.Gaussian(textbook(CLAIM)), claim=CLAIM, delta=DELTA, trials=TRIALS, rng=7
)
print(report.verdict)

plt.show()
