"""
The trade-off curve of DPText
=============================

Whoever guesses which of two inputs an output came from errs in two ways. A claim of epsilon says
how low both errors can be at once; the counts of an audit say, with 95 % confidence, how low they
really are.
"""

import dpcore

TRIALS = 10**6

# %%
# As published, the attacker hardly errs at all.

broken = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=TRIALS, rng=7)
broken.plot_tradeoff()

# %%
# With the sampler repaired he errs about as often as the claim allows.

repaired = dpcore.audit(dpcore.published.DPTextRepaired(epsilon=1.0), trials=TRIALS, rng=7)
repaired.plot_tradeoff()
