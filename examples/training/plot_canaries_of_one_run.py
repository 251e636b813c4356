"""
What one training run can certify
=================================

A large model is too expensive to train 10,000 times. An audit of one training run uses canaries
instead (Steinke, Nasr and Jagielski, 2023). A canary is an extra training record that is included
with probability 1/2. After the training, the auditor computes a score for each canary and guesses
which canaries were included. This script simulates scores with Gaussian noise, as after one step
that is GDP with mu = 3.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import bounds

TRIALS = 2000
MU, DELTA = 3.0, 1e-5

# %%
# The scores of the included canaries are normal with mean mu. The scores of the other canaries are
# normal with mean 0. `TRIALS` is the number of canaries.

rng = np.random.default_rng(7)
included = rng.random(TRIALS) < 0.5
scores = rng.normal(size=TRIALS) + MU * included
GUESSES = [10, 20, 50, 100, 200, 500, 1000, 2000]

# %%
# The auditor guesses only for the canaries with extreme scores. The number of guesses must be fixed
# before the auditor sees the scores. The picture shows the certified epsilon for several numbers of
# guesses, but a real audit may use one number only. The bound `one_run` is valid for all
# mechanisms. The bound `one_run_fdp` is valid only for a claim of Gaussian differential privacy.


def certified(guesses, bound):
    return dpcore.audit_outputs(
        scores, label=included, rows="one_run", guesses=guesses, bound=bound, delta=DELTA, claim=1.0
    ).epsilon_lower


largest = [bounds.one_run(guesses, guesses, TRIALS, DELTA) for guesses in GUESSES]
any_mechanism = [certified(guesses, "one_run") for guesses in GUESSES]
gaussian = [certified(guesses, "one_run_fdp") for guesses in GUESSES]
true_epsilon = bounds.gdp_epsilon(MU, DELTA)

figure, axes = plt.subplots(layout="constrained")
axes.plot(GUESSES, gaussian, "D-", label="for a Gaussian claim (one_run_fdp)")
axes.plot(GUESSES, any_mechanism, "o-", label="for all claims (one_run)")
axes.plot(GUESSES, largest, ":", color="grey", label="if all guesses were right (one_run)")
axes.axhline(true_epsilon, color="black", linewidth=0.8)
axes.annotate(
    f"true epsilon at delta {DELTA:g}",
    (GUESSES[0], true_epsilon),
    (0, -12),
    textcoords="offset points",
)
axes.set_xscale("log")
axes.set_xticks(GUESSES, GUESSES)
axes.minorticks_off()
axes.set_ylim(bottom=0.0)
axes.set(xlabel=f"number of guesses, of {TRIALS:,} canaries", ylabel="certified epsilon")
axes.legend(loc="center left", frameon=False)

# %%
# With few guesses, the certified epsilon is small even if all guesses are right. With many guesses,
# it is small because many guesses are wrong. `dpcore.plan` computes the number of canaries with
# which an audit refutes a false claim. Here the claimed epsilon is 4, the true epsilon is 8, and
# the auditor guesses for 10 % of the canaries.

print(dpcore.plan(4.0, true_epsilon=8.0, guesses=0.1, delta=DELTA))

plt.show()
