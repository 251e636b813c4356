"""
Why a vote that refutes nothing proves nothing
==============================================

ADePT as published clips in L2 and adds Laplace noise, which needs L1: on its worst pair of inputs
it loses epsilon times the square root of the number of entries. The majority vote of the papers
sees less of that the more entries there are; the default attack sees more.
"""

import matplotlib.pyplot as plt

import dpcore
from dpcore.attacks import Auto, Coordinatewise, MajorityVote

TRIALS = 10**5
ENTRIES = (2, 8, 32, 128)
adept = dpcore.published.ADePT(epsilon=1.0)

# %%
# `Coordinatewise` takes the noise of the entries for independent and alike. That is declared, not
# tested, and its report says so; of ADePT it is true.

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
# The claim is 1. From eight entries on the vote leaves it standing, with any number of trials.

figure, axes = plt.subplots(layout="constrained")
for (name, values), marker in zip(certified.items(), "osD", strict=True):
    axes.plot(ENTRIES, values, f"{marker}-", label=name)
axes.plot(ENTRIES, [dim**0.5 for dim in ENTRIES], "k:", label="true loss")
axes.axhline(1.0, color="grey", linewidth=0.8)
axes.annotate("claim", (128, 1.0), (-4, 4), textcoords="offset points", ha="right", color="grey")
axes.set_xscale("log", base=2)
axes.set_yscale("log")
axes.set(xlabel="entries of the inputs", ylabel="certified epsilon")
axes.set_xticks(ENTRIES, ENTRIES)
axes.set_yticks([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"])
axes.minorticks_off()
axes.legend(frameon=False)

# %%
# What the vote could see at best is known exactly, and stands in its report.

print(dpcore.audit(adept, adept.default_pair(128), attack=MajorityVote(), trials=TRIALS, rng=7))

plt.show()
