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
# As published he is far below the dashed line of the claim: an event that one input never shows
# leaves him no error of the first kind.

broken = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=TRIALS, rng=7)
broken.plot_tradeoff()

# %%
# With the sampler repaired the band touches the line of the claim and does not cross it.

repaired = dpcore.audit(dpcore.published.DPTextRepaired(epsilon=1.0), trials=TRIALS, rng=7)
repaired.plot_tradeoff()
