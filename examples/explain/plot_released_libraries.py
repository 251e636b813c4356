"""
Claims of released packages
===========================

The experiment `released-libraries` audits mechanisms of released packages with the claims of their
authors. This script runs it for numpy and scipy, with few draws. A circle on the dashed line is a
claim that the audit reaches exactly. A circle below the line is a claim that was not refuted, but
that one pair and one attack cannot reach with these draws.
"""

from dpcore.experiments.released_libraries import Config, run

TRIALS = 50_000
result = run(Config(packages=("numpy", "scipy"), trials=TRIALS), progress=False)
print(result.table())

# %%
# Each package is audited in a process of its own, so that a crash costs only one row. The picture
# has one panel for each package.

result.plot()
