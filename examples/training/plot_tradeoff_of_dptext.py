"""
The trade-off curve of DPText
=============================

An attacker guesses which of two inputs an output came from. The guess has two error probabilities,
one for each input. The trade-off curve is the smallest second error for each value of the first
error. A claim of epsilon is a lower limit for this curve. `plot_tradeoff` computes an upper limit
of the true curve from the counts of an audit, with 95 % confidence. The claim is false if the upper
limit is below the line of the claim.
"""

import dpcore

TRIALS = 10**6

# %%
# For the published DPText, the upper limit is far below the dashed line of the claim at a small
# type I error. Some outputs occur on one input only. An attacker who uses these outputs can have a
# type I error of 0.

report_published = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=TRIALS, rng=7)
report_published.plot_tradeoff()

# %%
# For the repaired DPText, the upper limit touches the line of the claim but is not below it.

report_repaired = dpcore.audit(dpcore.published.DPTextRepaired(epsilon=1.0), trials=TRIALS, rng=7)
report_repaired.plot_tradeoff()
