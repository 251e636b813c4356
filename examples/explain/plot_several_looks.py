"""
Looking again until it is refuted
=================================

This script simulates audits of a true claim: the claimed and the true epsilon are 1. A lower bound
at 90 % confidence may exceed the true epsilon in one of ten audits. A user computes the bound
several times while the audit draws (each time is a look). The user stops at the first bound above
the claim. The true claim is then refuted in more than one of ten audits.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore.bounds import Martingale, clopper_pearson, conditional

TRIALS = 1000
AUDITS, LOOKS, CONFIDENCE = 150, 30, 0.9

# %%
# The script draws the counts of an event. The event has probability 1/2 on x and 0.5 e^-1 on x'.
# There are 150 audits with 30 looks each. The audit draws 1,000 more outputs per input before each
# look.

rng = np.random.default_rng(7)
hits = rng.binomial(TRIALS, 0.5, (AUDITS, LOOKS))
hits_prime = rng.binomial(TRIALS, 0.5 * np.exp(-1.0), (AUDITS, LOOKS))


def above(bound):
    """Return True for each look at which the bound of the counts so far exceeds the claim."""
    sums, sums_prime = hits.cumsum(axis=1).tolist(), hits_prime.cumsum(axis=1).tolist()
    return [
        [
            bound(dpcore.Counts(k, TRIALS * look, k_prime, TRIALS * look), 0.0, CONFIDENCE) > 1.0
            for look, (k, k_prime) in enumerate(zip(*sides, strict=True), 1)
        ]
        for sides in zip(sums, sums_prime, strict=True)
    ]


# %%
# A test martingale is a product of bets against the claim. A large product is evidence against the
# claim. `dpcore.audit` with `stop="refuted"` uses a test martingale. At 90 % confidence, it refutes
# a true claim in at most one of ten audits, for any number of looks.


def martingale_refutes():
    refutations = np.zeros((AUDITS, LOOKS), dtype=bool)
    for audit in range(AUDITS):
        evidence = Martingale(claim=1.0)
        for look in range(LOOKS):
            evidence.update(int(hits[audit, look]), int(hits_prime[audit, look]), TRIALS)
            refutations[audit, look] = evidence.refuted(CONFIDENCE)
    return refutations


methods = {
    "conditional, valid for one look": above(conditional),
    "Clopper-Pearson, valid for one look": above(clopper_pearson),
    "test martingale": martingale_refutes(),
}

# %%
# The picture shows the share of audits that have refuted the true claim so far. The conditional
# bound and the Clopper-Pearson bound are valid for one look only. Their shares exceed the allowed
# 10 % after several looks. The Clopper-Pearson bound is conservative at one look, so that its share
# exceeds 10 % later. The test martingale stays below 10 %.

figure, axes = plt.subplots(layout="constrained")
looks = np.arange(1, LOOKS + 1)
for (name, refutations), style in zip(methods.items(), ("-", "--", ":"), strict=True):
    ever = np.maximum.accumulate(np.asarray(refutations), axis=1).mean(axis=0)
    axes.plot(looks, ever, style, linewidth=2.0, label=name)
    print(f"{name}: {ever[0]:.3f} after one look, {ever[-1]:.3f} after {LOOKS}")
axes.axhline(1.0 - CONFIDENCE, color="grey", linewidth=0.8)
axes.annotate(
    "allowed share", (LOOKS, 0.1), (-2, -12), textcoords="offset points", ha="right", color="grey"
)
axes.set(xlabel="number of looks", ylabel="share of audits that refute the claim", xlim=(1, LOOKS))
axes.set_ylim(bottom=0.0)
axes.legend(loc="upper left", frameon=False)

plt.show()
