"""
Three ways to audit a training
==============================

A logistic regression is trained with noisy sums of clipped gradients. The noise has the claimed
scale, half of this scale, or scale 0. The script audits one step of the training, one run with
canaries, and many runs. All claims are values of mu of Gaussian differential privacy.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import training
from dpcore.claims import GDP

TRIALS = 20_000
CLIP, STEPS = 1.0, 5
RNG = np.random.default_rng(7)
ROWS = np.column_stack([5 * RNG.normal(size=(20, 6)), np.arange(20) % 2])
CANARY = np.append(np.full(6, 9.0), 1.0)[None]
BATCH = np.concatenate([CANARY, ROWS])

# %%
# The function `step` computes the gradient of the logistic loss for each record. It clips each
# gradient, and adds noise to the sum of the clipped gradients.


def make_step(sigma):
    def step(records, rng, w=0.0):
        x, y = records[:, :-1], records[:, -1]
        slopes = (1 / (1 + np.exp(-x @ (w + np.zeros(x.shape[1])))) - y)[:, None] * x
        slopes /= np.maximum(1.0, np.linalg.norm(slopes, axis=1, keepdims=True) / CLIP)
        return slopes.sum(axis=0) + rng.normal(scale=sigma * CLIP, size=x.shape[1])

    return step


def make_training(sigma):
    step = make_step(sigma)

    def train(records, rng):
        w = np.zeros(records.shape[1] - 1)
        for _ in range(STEPS):
            w -= 1e-3 * step(records, rng, w)
        return w

    return train


# %%
# First way: the claim for one step is mu = 1/sigma. `audit_step` projects the noisy sum on the line
# between the two sums without noise (with and without one record). It also tests coordinates of the
# sum and their differences, because some faults of the noise are visible only in coordinates.


def audit_step(share):
    return training.audit_step(
        make_step(share), BATCH, sigma=1.0, clip=CLIP, left_out=0, trials=TRIALS // 10, rng=7
    )


# %%
# Second way: one run with 600 canaries. Each canary is nonzero in a feature that no other record
# uses.

CANARIES = np.zeros((600, 607))
CANARIES[:, 6:-1] = 3 * np.eye(600)
CANARIES[:, -1] = 1.0
WIDE = np.insert(ROWS, [6] * 600, 0.0, axis=1)


def audit_run(share):
    def fit(records):
        w = make_training(2.5 * share)(records, np.random.default_rng(7))
        return lambda rows: np.logaddexp(0.0, -rows[:, :-1] @ w)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpcore.AssumptionWarning)
        return training.audit_run(
            fit, WIDE, canaries=CANARIES, guesses=120, claim=GDP(STEPS**0.5 / 2.5), rng=7
        )


# %%
# Third way: many runs. The audit compares the weights after trainings with and without one record.


def audit_runs(share):
    train = dpcore.repeat(make_training(2.5 * share), seeded="rng")
    claim = GDP(STEPS**0.5 / 2.5)
    return dpcore.audit(
        train, (BATCH, ROWS), claim=claim, trials=TRIALS // 40, pilot=500, rng=7, progress=False
    )


# %%
# Each audit runs for three values of the share: the standard deviation of the noise, divided by the
# claimed standard deviation.

SHARES = {"1": 1.0, "1/2": 0.5, "0": 0.0}
WAYS = {"one step": audit_step, "one run": audit_run, "many runs": audit_runs}
figure, panels = plt.subplots(1, 3, sharey=True, layout="constrained", figsize=(8, 3))
for axes, (way, audit) in zip(panels, WAYS.items(), strict=True):
    reports = [audit(share) for share in SHARES.values()]
    colours = ["C3" if report.refuted else "C0" for report in reports]
    axes.bar(list(SHARES), [report.parameter_lower for report in reports], color=colours)
    axes.axhline(reports[0].claim.mu, color="black", linewidth=0.8)
    axes.set_title(way)
    axes.set_xlabel("noise / claimed noise")
panels[0].set_ylabel("mu: certified (bars), claimed (line)")

# %%
# A red bar means that the audit refutes the claim. All three audits refute the claim for half of
# the noise and without noise.

plt.show()
