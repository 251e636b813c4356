"""
How many trials does a violation need?
======================================

A mechanism claims epsilon = 1, but its noise is 10 % too small. Its true epsilon is therefore 1.11.
The audit counts an event in the outputs on each of two inputs. This page shows the probability that
the audit refutes the claim. This probability depends on the number of outputs per input (the
trials) and on the probability of the event.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore.bounds import clopper_pearson

TRIALS = 10**4
MASSES = (0.5, 0.1, 0.01)

# %%
# `dpcore.plan` computes the number of trials with which an audit refutes the claim with 95 %
# probability. The first list of plans is for audits at 99.99 % confidence. This is the default of
# the pytest fixture `dp_audit`, for tests that run every day. The second list is for audits at 95 %
# confidence.

daily = [dpcore.plan(1.0, factor=0.9, mass=mass, confidence=0.9999) for mass in MASSES]
single = [dpcore.plan(1.0, factor=0.9, mass=mass) for mass in MASSES]
print(daily[0])

# %%
# The number of trials is roughly inversely proportional to the probability of the event. The solid
# lines are audits at 95 % confidence. The dashed lines are audits at 99.99 % confidence. The dots
# are the plans.

SHARES = np.geomspace(0.03, 3.0, 12)


def power(axes, plan, style, **kwargs):
    sizes = [int(share * plan.trials) for share in SHARES]
    axes.plot(sizes, [plan.power_at(size) for size in sizes], style, **kwargs)


figure, axes = plt.subplots(layout="constrained")
for single_plan, daily_plan, colour in zip(single, daily, ("C0", "C1", "C2"), strict=True):
    power(axes, single_plan, "-", color=colour, label=f"{single_plan.mass:g}")
    power(axes, daily_plan, "--", color=colour)
    plans = (single_plan, daily_plan)
    axes.plot([plan.trials for plan in plans], [plan.power for plan in plans], "o", color=colour)
axes.axhline(0.95, color="grey", linewidth=0.8)
axes.set_xscale("log")
axes.set(xlabel="trials per input", ylabel="probability that the claim is refuted")
axes.legend(
    loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=3, frameon=False,
    title="probability of the event",
)  # fmt: skip

# %%
# A simulation checks the plan. It draws the counts of the event from their binomial distributions
# for 500 audits of 10,000 trials per input. The share of audits that refute the claim agrees with
# the plan.

plan = single[0]
rng = np.random.default_rng(7)
p, q = plan.rates[0]
refutations = [
    clopper_pearson(dpcore.Counts(int(k), TRIALS, int(k_prime), TRIALS)) > plan.claim
    for k, k_prime in zip(rng.binomial(TRIALS, p, 500), rng.binomial(TRIALS, q, 500), strict=True)
]
print(f"refuted {np.mean(refutations):.3f}, planned {plan.power_at(TRIALS):.3f}")

plt.show()
