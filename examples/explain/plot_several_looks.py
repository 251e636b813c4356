"""
Looking again until it is refuted
=================================

The claim is true: the loss is 1, and 1 is claimed. A bound at 90 % may overclaim in one of ten
audits. Whoever looks after every slice, and stops at the first bound above the claim, has as many
chances as looks.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore.bounds import Martingale, clopper_pearson, conditional

TRIALS = 1000
AUDITS, LOOKS, CONFIDENCE = 150, 30, 0.9

# %%
# Nothing but counts is needed: an event of probability 1/2 on x, of 1/2 e^-1 on x'.

rng = np.random.default_rng(7)
hits = rng.binomial(TRIALS, 0.5, (AUDITS, LOOKS))
hits_prime = rng.binomial(TRIALS, 0.5 * np.exp(-1.0), (AUDITS, LOOKS))


def above(bound):
    """Whether the bound of all draws so far exceeds the claim, at each look of each audit."""
    k, k_prime = hits.cumsum(axis=1).tolist(), hits_prime.cumsum(axis=1).tolist()
    return [
        [
            bound(dpcore.Counts(one, TRIALS * look, other, TRIALS * look), 0.0, CONFIDENCE) > 1.0
            for look, (one, other) in enumerate(zip(*sides, strict=True), 1)
        ]
        for sides in zip(k, k_prime, strict=True)
    ]


# %%
# A test martingale multiplies bets against the claim. `stop="refuted"` of `dpcore.audit` stops on
# one: however often one looks, it errs in at most one audit of ten.


def wealth_reached():
    found = np.zeros((AUDITS, LOOKS), dtype=bool)
    for audit in range(AUDITS):
        evidence = Martingale(claim=1.0)
        for look in range(LOOKS):
            evidence.update(int(hits[audit, look]), int(hits_prime[audit, look]), TRIALS)
            found[audit, look] = evidence.refuted(CONFIDENCE)
    return found


refuted = {
    "conditional, made for one look": above(conditional),
    "Clopper-Pearson, made for one look": above(clopper_pearson),
    "test martingale": wealth_reached(),
}

# %%
# Clopper-Pearson errs less than it may at one look, which hides the fault for a while.

figure, axes = plt.subplots(layout="constrained")
looks = np.arange(1, LOOKS + 1)
for (name, found), style in zip(refuted.items(), ("-", "--", ":"), strict=True):
    ever = np.maximum.accumulate(np.asarray(found), axis=1).mean(axis=0)
    axes.plot(looks, ever, style, linewidth=2.0, label=name)
    print(f"{name}: {ever[0]:.3f} after one look, {ever[-1]:.3f} after {LOOKS}")
axes.axhline(1.0 - CONFIDENCE, color="grey", linewidth=0.8)
axes.annotate(
    "what may err", (LOOKS, 0.1), (-2, -12), textcoords="offset points", ha="right", color="grey"
)
axes.set(xlabel="looks", ylabel="share of true claims refuted so far", xlim=(1, LOOKS))
axes.set_ylim(bottom=0.0)
axes.legend(loc="upper left", frameon=False)

plt.show()
