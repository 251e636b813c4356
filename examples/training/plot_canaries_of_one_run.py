"""
What one training run can certify
=================================

Nobody trains a large model 10,000 times. Put canaries into the data, each by its own fair coin,
train once, score every canary, and guess which were in (Steinke, Nasr and Jagielski, 2023). Here
the scores are those of Gaussian noise with mu = 3, as if one step had been trained.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import bounds

TRIALS = 2000
MU, DELTA = 3.0, 1e-5

# %%
# The scores of the canaries that were in are higher by mu. `TRIALS` is the number of canaries.

rng = np.random.default_rng(7)
included = rng.random(TRIALS) < 0.5
scores = rng.normal(size=TRIALS) + MU * included
GUESSES = [10, 20, 50, 100, 200, 500, 1000, 2000]

# %%
# How many canaries are guessed must be fixed before the scores are seen: the picture shows all
# choices, an audit may make one. `one_run` holds for any mechanism, `one_run_fdp` for claims of
# Gaussian noise alone.


def certified(guesses, bound):
    return dpcore.audit_outputs(
        scores, label=included, rows="one_run", guesses=guesses, bound=bound, delta=DELTA, claim=1.0
    ).epsilon_lower


most = [bounds.one_run(each, each, TRIALS, DELTA) for each in GUESSES]
any_mechanism = [certified(each, "one_run") for each in GUESSES]
gaussian = [certified(each, "one_run_fdp") for each in GUESSES]
true = bounds.gdp_epsilon(MU, DELTA)

figure, axes = plt.subplots(layout="constrained")
axes.plot(GUESSES, gaussian, "D-", label="of a Gaussian claim (one_run_fdp)")
axes.plot(GUESSES, any_mechanism, "o-", label="of any claim (one_run)")
axes.plot(GUESSES, most, ":", color="grey", label="if every guess were right (one_run)")
axes.axhline(true, color="black", linewidth=0.8)
axes.annotate(
    f"true loss at delta {DELTA:g}", (GUESSES[0], true), (0, -12), textcoords="offset points"
)
axes.set_xscale("log")
axes.set_xticks(GUESSES, GUESSES)
axes.minorticks_off()
axes.set_ylim(bottom=0.0)
axes.set(xlabel=f"guesses about {TRIALS:,} canaries", ylabel="certified epsilon")
axes.legend(loc="center left", frameon=False)

# %%
# Few guesses are nearly all right and prove little; many prove little because they are often
# wrong. `dpcore.plan` says how many canaries a violation needs.

print(dpcore.plan(4.0, true_epsilon=8.0, guesses=0.1, delta=DELTA))

plt.show()
