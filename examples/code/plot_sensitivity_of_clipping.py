"""
2C or 2C sqrt(n)?
=================

ADePT (Krishna, Gupta and Dupuy, 2021) clips vectors in L2 to radius C and adds Laplace noise for a
sensitivity of 2C. Laplace noise needs the L1 distance, and that can be 2C sqrt(n) between two
vectors of the ball (Habernal, 2021).
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import calibration, sensitivity

TRIALS = 10**4
RADIUS = 1.0
ENTRIES = (1, 2, 4, 8, 16, 32, 64)
SEARCHED = (2, 8, 32)

# %%
# The closed form comes with two inputs that attain it; so nobody has to believe it.

balls = [sensitivity.Ball("l2", RADIUS, dim) for dim in ENTRIES]
largest = [sensitivity.sensitivity(ball, "l1").value for ball in balls]
worst = sensitivity.sensitivity(balls[2], "l1").pair
print(worst.x, worst.x_prime, np.abs(worst.x - worst.x_prime).sum())

# %%
# Random pairs hide the fault in few entries and show it in many. A search that knows nothing of
# the closed form finds it.

rng = np.random.default_rng(7)
random = []
for dim in ENTRIES:
    vectors = sensitivity.Clip("l2", RADIUS)(rng.uniform(-10.0, 10.0, (2 * TRIALS, dim)))
    random.append(np.abs(vectors[:TRIALS] - vectors[TRIALS:]).sum(axis=1))
searched = [
    sensitivity.refute(
        sensitivity.Clip("l2", RADIUS), 2.0 * RADIUS, "l1", sensitivity.Box(-10, 10, dim),
        trials=TRIALS, rng=7, rows=True, methods=("random", "ascent"),
    ).attained
    for dim in SEARCHED
]  # fmt: skip

figure, axes = plt.subplots(layout="constrained")
axes.plot(ENTRIES, largest, "k-", label="2C sqrt(n), the closed form")
axes.plot(SEARCHED, searched, "o", mfc="none", label="found by a search")
low, high = zip(*(np.quantile(one, (0.05, 0.95)) for one in random), strict=True)
axes.fill_between(ENTRIES, low, high, alpha=0.3, label="random pairs, 5 to 95 %")
axes.axhline(2.0 * RADIUS, linestyle="--", color="grey", label="2C, as published")
axes.set_xscale("log", base=2)
axes.set_yscale("log", base=2)
axes.set_xticks(ENTRIES, ENTRIES)
axes.set_ylim(0.25, 24.0)
axes.set_yticks([0.5, 1, 2, 4, 8, 16], [0.5, 1, 2, 4, 8, 16])
axes.set(xlabel="entries n", ylabel="L1 distance of two clipped vectors")
axes.legend(loc="upper left", frameon=False)

# %%
# What the noise is worth: epsilon times sqrt(n) of what was claimed.

for ball in balls:
    print(ball.dim, calibration.real_epsilon(dpcore.published.ADePT(1.0, clip=RADIUS), ball).value)

plt.show()
