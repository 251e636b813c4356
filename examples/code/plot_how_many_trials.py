"""
How many trials does a violation need?
======================================

Noise 10 % too small loses 1.11 where 1 is claimed. How often an audit of so many trials refutes
the claim is a sum of binomial probabilities; it depends on how likely the event is that shows it.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore.bounds import clopper_pearson

TRIALS = 10**4
MASSES = (0.5, 0.1, 0.01)

# %%
# `dpcore.plan` names the number of trials that refutes the claim with 95 % probability. The
# confidence .9999 is that of `dp_audit`, made for tests that run every day.

daily = [dpcore.plan(1.0, factor=0.9, mass=mass, confidence=0.9999) for mass in MASSES]
single = [dpcore.plan(1.0, factor=0.9, mass=mass) for mass in MASSES]
print(daily[0])

# %%
# Rarer events need more in proportion. The solid lines are audits at 95 % confidence, the dashed
# ones at 99.99 %; the dots are the plans.

SHARES = np.geomspace(0.03, 3.0, 12)


def power(axes, plan, style, **kwargs):
    sizes = [int(share * plan.trials) for share in SHARES]
    axes.plot(sizes, [plan.power_at(size) for size in sizes], style, **kwargs)


figure, axes = plt.subplots(layout="constrained")
for one, every, colour in zip(single, daily, ("C0", "C1", "C2"), strict=True):
    power(axes, one, "-", color=colour, label=f"{one.mass:g}")
    power(axes, every, "--", color=colour)
    axes.plot([one.trials, every.trials], [one.power, every.power], "o", color=colour)
axes.axhline(0.95, color="grey", linewidth=0.8)
axes.set_xscale("log")
axes.set(xlabel="trials on each side", ylabel="probability that the claim is refuted")
axes.legend(
    loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False,
    title="probability of the event",
)  # fmt: skip

# %%
# Is it true? 500 audits of 10,000 trials, each event drawn by its own law: as many are refuted as
# the plan says.

plan = single[0]
rng = np.random.default_rng(7)
p, q = plan.rates[0]
refuted = [
    clopper_pearson(dpcore.Counts(int(k), TRIALS, int(k_prime), TRIALS)) > plan.claim
    for k, k_prime in zip(rng.binomial(TRIALS, p, 500), rng.binomial(TRIALS, q, 500), strict=True)
]
print(f"refuted {np.mean(refuted):.3f}, planned {plan.power_at(TRIALS):.3f}")

plt.show()
