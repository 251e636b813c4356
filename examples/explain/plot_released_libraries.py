"""
Claims of released packages
===========================

The experiment `released-libraries` audits mechanisms of released packages. This script runs the
experiment for numpy and scipy, with few draws. Each circle of the picture shows the claimed epsilon
and the certified epsilon of one mechanism. On the dashed line, the certified epsilon equals the
claimed epsilon. A circle below the line is a claim that was not refuted. Such a claim may still be
false, because the audit uses one pair of inputs, one attack and few draws.
"""

from dpcore.experiments.released_libraries import Config, run

TRIALS = 50_000
result = run(Config(packages=("numpy", "scipy"), trials=TRIALS), progress=False)
print(result.table())

# %%
# The experiment audits each package in a separate process. The picture has one panel for each
# package.

result.plot()
