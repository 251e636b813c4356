"""
Gaussian noise: the textbook formula and the exact one
======================================================

The textbook sets sigma = D sqrt(2 ln(1.25/delta))/epsilon, and proves it for epsilon below 1. Used
beyond, it wastes noise for a while, and then promises what it does not keep. The exact profile of
Gaussian noise is known (Balle and Wang, 2018).
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
# The delta that each sigma really has, at the epsilon that it was made for.

epsilons = np.geomspace(0.1, 100.0, 60)
sigmas = {
    "textbook": [textbook(epsilon) for epsilon in epsilons],
    "analytic": [calibration.gaussian_analytic(float(e), DELTA, 1.0).sigma for e in epsilons],
}
figure, left = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
for (name, values), style in zip(sigmas.items(), ("--", "-"), strict=True):
    deltas = [
        calibration.gaussian_delta(sigma, float(epsilon), 1.0)
        for sigma, epsilon in zip(values, epsilons, strict=True)
    ]
    left.plot(epsilons, deltas, style, label=name)
left.axhline(DELTA, color="grey", linewidth=0.8)
left.annotate("claimed", (0.1, DELTA), (0, 4), textcoords="offset points", color="grey")
left.set(xscale="log", yscale="log", ylim=(1e-9, 2.0))
left.set(xlabel="epsilon claimed", ylabel="delta that the noise has", title="at the claim")
left.legend(loc="upper left", frameon=False)

# %%
# The whole privacy profile of both, made for epsilon 20.

CLAIM = 20.0
figure, right = plt.subplots(figsize=(5.0, 4.0), layout="constrained")
for (name, values), style in zip(
    {
        "textbook": textbook(CLAIM),
        "analytic": calibration.gaussian_analytic(CLAIM, DELTA, 1.0).sigma,
    }.items(),
    ("--", "-"),
    strict=True,
):
    grid = np.linspace(0.0, 45.0, 120)
    profile = [calibration.gaussian_delta(values, float(epsilon), 1.0) for epsilon in grid]
    right.plot(grid, profile, style, label=f"{name}, sigma {values:.3f}")
right.plot(CLAIM, DELTA, "ko")
right.annotate("claim", (CLAIM, DELTA), (-6, -14), textcoords="offset points", ha="right")
right.set(yscale="log", ylim=(1e-9, 2.0), xlabel="epsilon", ylabel="delta", title="made for 20")
right.legend(loc="upper right", frameon=False)

# %%
# `gaussian_classical` refuses where its formula no longer holds.

try:
    calibration.gaussian_classical(CLAIM, DELTA, 1.0)
except ValueError as error:
    print(error)

# %%
# An audit cannot see it: a loss of 20 shows in events that x' has with probability e^-20, and 10^5
# draws certify 10.2 at most. The verdict says so. What is known should be computed.

report = dpcore.audit(
    dpcore.Gaussian(textbook(CLAIM)), claim=CLAIM, delta=DELTA, trials=TRIALS, rng=7
)
print(report.verdict)

plt.show()
