"""
The noise of DPText, as published and repaired
==============================================

DPText (Beigi et al., 2019) feeds the inverse distribution function of Laplace noise, which wants a
number in [-1/2, 1/2), with one in [0, 1). What comes out is never negative (Habernal, 2022).
"""

import matplotlib.pyplot as plt

import dpcore

TRIALS = 10**5
SYSTEMS = {
    "as published": dpcore.published.DPText(epsilon=1.0),
    "repaired": dpcore.published.DPTextRepaired(epsilon=1.0),
}

# %%
# Both noises around the input 0, and around an input that the claim calls its neighbour. Left,
# an output below 1 is possible for one of the two alone; each that is seen there tells the
# input.

figure, panels = plt.subplots(
    1, 2, sharex=True, sharey=True, figsize=(8, 3.2), layout="constrained"
)
bins = [-4 + 0.1 * step for step in range(91)]
for axes, (name, system) in zip(panels, SYSTEMS.items(), strict=True):
    for x in (0.0, 1.0):
        outputs = dpcore.sample(system, [x], size=TRIALS, rng=7)[:, 0]
        axes.hist(outputs, bins, density=True, histtype="step", label=f"input {x:g}")
    axes.set_title(name)
    axes.set_xlabel("output")
    axes.set_yscale("log")
panels[0].set_ylabel("density")
panels[1].legend(frameon=False)

# %%
# What that means for the claim, on the system's own pair of inputs. The published noise is
# refuted however large a claim one makes; the repaired noise holds its claim, or rather: this
# attack did not refute it.

reports = {name: dpcore.audit(system, trials=TRIALS, rng=7) for name, system in SYSTEMS.items()}
for name, report in reports.items():
    print(f"{name}: {report.verdict}, certified epsilon >= {report.epsilon_lower:.2f}")

# %%
# The noise layer can be looked at by itself, without a pair and a claim.

published = dpcore.structure.inspect(SYSTEMS["as published"], [0.0, 1.0], draws=2000, rng=7)
print(published["one_sided"], published["atom"], sep="\n")

plt.show()
