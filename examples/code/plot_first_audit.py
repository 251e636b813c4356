"""
A first audit
=============

DPText (Beigi et al., 2019) claims epsilon-differential privacy. Its sampler uses a formula for
Laplace noise that needs a uniform number u in [-1/2, 1/2). DPText draws u in [0, 1) instead. Its
noise is therefore never negative, and some outputs are possible on one of two inputs only.
"""

import dpcore

TRIALS = 10**6

# %%
# DPText states a claim and a pair of inputs x and x'. The audit tests this claim on this pair. It
# draws 10^6 outputs on x and as many on x'.

report = dpcore.audit(dpcore.published.DPText(epsilon=1.0), trials=TRIALS, rng=7)
print(report)

# %%
# The audit does not refute the claim of a correct Laplace mechanism. This verdict does not prove
# that the mechanism is private.

laplace_report = dpcore.audit(dpcore.published.LaplaceMechanism(epsilon=1.0), trials=TRIALS, rng=7)
print(laplace_report)

# %%
# The picture shows how often the event occurred on each input, and the lower bound on epsilon that
# follows from these counts.

report.plot()
