"""
2C or 2C sqrt(n)?
=================

ADePT (Krishna, Gupta and Dupuy, 2021) clips vectors of n entries to an L2 norm of at most C. It
then adds Laplace noise for a sensitivity of 2C. This is the largest L2 distance of two clipped
vectors. Laplace noise needs the largest L1 distance instead. The largest L1 distance is 2C sqrt(n)
(Habernal, 2021).
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore import calibration, sensitivity

TRIALS = 10**4
RADIUS = 1.0
ENTRIES = (1, 2, 4, 8, 16, 32, 64)
SEARCH_ENTRIES = (2, 8, 32)

# %%
# `sensitivity` computes the largest L1 distance by a formula. It also returns two vectors at this
# distance, so that the value can be checked. The script prints such vectors for n = 4.

balls = [sensitivity.Ball("l2", RADIUS, dim) for dim in ENTRIES]
largest = [sensitivity.sensitivity(ball, "l1").value for ball in balls]
worst = sensitivity.sensitivity(balls[2], "l1").pair
print(worst.x, worst.x_prime, np.abs(worst.x - worst.x_prime).sum())

# %%
# The picture compares L1 distances of clipped vectors. Pairs of random vectors exceed 2C only if
# they have many entries. `refute` searches for a pair at a distance above 2C and does not use the
# formula. It finds such a pair for 2, 8 and 32 entries.

rng = np.random.default_rng(7)
random = []
for dim in ENTRIES:
    vectors = sensitivity.Clip("l2", RADIUS)(rng.uniform(-10.0, 10.0, (2 * TRIALS, dim)))
    random.append(np.abs(vectors[:TRIALS] - vectors[TRIALS:]).sum(axis=1))
distances_of_search = [
    sensitivity.refute(
        sensitivity.Clip("l2", RADIUS), 2.0 * RADIUS, "l1", sensitivity.Box(-10, 10, dim),
        trials=TRIALS, rng=7, rows=True, methods=("random", "ascent"),
    ).attained
    for dim in SEARCH_ENTRIES
]  # fmt: skip

figure, axes = plt.subplots(layout="constrained")
axes.plot(ENTRIES, largest, "k-", label="2C sqrt(n), the largest distance")
axes.plot(SEARCH_ENTRIES, distances_of_search, "o", mfc="none", label="found by a search")
low, high = zip(*(np.quantile(distances, (0.05, 0.95)) for distances in random), strict=True)
axes.fill_between(ENTRIES, low, high, alpha=0.3, label="random pairs, 5 % to 95 % quantile")
axes.axhline(2.0 * RADIUS, linestyle="--", color="grey", label="2C, the published sensitivity")
axes.set_xscale("log", base=2)
axes.set_yscale("log", base=2)
axes.set_xticks(ENTRIES, ENTRIES)
axes.set_ylim(0.25, 24.0)
axes.set_yticks([0.5, 1, 2, 4, 8, 16], [0.5, 1, 2, 4, 8, 16])
axes.set(xlabel="number of entries n", ylabel="L1 distance of two clipped vectors")
axes.legend(loc="upper left", frameon=False)

# %%
# The true epsilon of ADePT is the claimed epsilon times sqrt(n). The script prints n and the true
# epsilon for a claim of 1.

for ball in balls:
    print(ball.dim, calibration.real_epsilon(dpcore.published.ADePT(1.0, clip=RADIUS), ball).value)

plt.show()
