"""
A first audit
=============

DPText (Beigi et al., 2019) claims epsilon-differential privacy. Its sampler feeds a formula for
u in [-1/2, 1/2) with u in [0, 1), so that its "Laplace" noise is never negative, and an output says
which of two inputs it came from.
"""

import dpcore

TRIALS = 10**6

# %%
# The claim is the mechanism's own, and so is the pair of inputs.

report = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=TRIALS, rng=7)
print(report)

# %%
# A correct Laplace mechanism is not refuted. That is not a proof that it is private.

correct = dpcore.audit(dpcore.published.LaplaceMechanism(epsilon=1.0), trials=TRIALS, rng=7)
print(correct)

# %%
# What was counted, and what it proves.

report.plot()
