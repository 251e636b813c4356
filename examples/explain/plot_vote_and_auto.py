"""
Why a vote that refutes nothing proves nothing
==============================================

The published ADePT clips vectors in L2 norm, but its Laplace noise needs a bound on the L1
distance. On its worst pair of inputs, the true epsilon is the claimed epsilon times sqrt(n), with n
entries per input. The attack of the papers is a majority vote of the entries. With more entries,
the vote certifies a smaller epsilon. The default attack of dpcore certifies a larger epsilon.
"""

import matplotlib.pyplot as plt

import dpcore
from dpcore.attacks import Auto, Coordinatewise, MajorityVote

TRIALS = 10**5
ENTRIES = (2, 8, 32, 128)
adept = dpcore.published.ADePT(epsilon=1.0)

# %%
# The script compares three attacks. The attack `Coordinatewise` assumes that the noises of the
# entries are independent and have the same distribution. The attack does not test this assumption,
# and the report states the assumption. The assumption is true for ADePT.

ATTACKS = {
    "majority vote": MajorityVote(),
    "auto (the default)": Auto(),
    "Coordinatewise": Coordinatewise(),
}
certified = {
    name: [
        dpcore.audit(
            adept, adept.default_pair(dim), attack=attack, trials=TRIALS, rng=7
        ).epsilon_lower
        for dim in ENTRIES
    ]
    for name, attack in ATTACKS.items()
}

# %%
# The claim is epsilon = 1. With eight entries or more, the majority vote cannot refute the claim,
# even with more trials.

figure, axes = plt.subplots(layout="constrained")
for (name, values), marker in zip(certified.items(), "osD", strict=True):
    axes.plot(ENTRIES, values, f"{marker}-", label=name)
axes.plot(ENTRIES, [dim**0.5 for dim in ENTRIES], "k:", label="true epsilon")
axes.axhline(1.0, color="grey", linewidth=0.8)
axes.annotate("claim", (128, 1.0), (-4, 4), textcoords="offset points", ha="right", color="grey")
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set(xlabel="number of entries of an input", ylabel="certified epsilon")
axes.set_xticks(ENTRIES, ENTRIES)
axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
axes.minorticks_off()
axes.legend(frameon=False)

# %%
# The largest epsilon that the majority vote can certify is known exactly. The report of the vote
# shows this number in the row "closed form".

print(dpcore.audit(adept, adept.default_pair(128), attack=MajorityVote(), trials=TRIALS, rng=7))

plt.show()
