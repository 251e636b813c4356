"""
The noise of DPText, as published and repaired
==============================================

DPText (Beigi et al., 2019) computes Laplace noise by the inverse distribution function. The formula
needs a uniform number in [-1/2, 1/2), but DPText draws a number in [0, 1). Its noise is therefore
never negative (Habernal, 2022).
"""

import matplotlib.pyplot as plt

import dpcore

TRIALS = 10**5
SYSTEMS = {
    "as published": dpcore.published.DPText(epsilon=1.0),
    "repaired": dpcore.published.DPTextRepaired(epsilon=1.0),
}

# %%
# The histograms show outputs on the inputs 0 and 1, which are neighbours under the claim. With the
# published noise (left), an output below 1 is possible on input 0 only. Such an output reveals the
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
# The audit tests the claim of each system on the pair of inputs that the system states. The true
# epsilon of the published noise is infinite, so that every claim is false. The audit does not
# refute the claim of the repaired noise.

reports = {name: dpcore.audit(system, trials=TRIALS, rng=7) for name, system in SYSTEMS.items()}
for name, report in reports.items():
    print(f"{name}: {report.verdict}, certified epsilon >= {report.epsilon_lower:.2f}")

# %%
# `inspect` tests the noise of a mechanism without a pair of inputs and without a claim. The script
# prints two results for the published noise: the noise is never negative, and 48.8 % of the outputs
# equal the vector without noise.

inspection = dpcore.structure.inspect(SYSTEMS["as published"], [0.0, 1.0], draws=2000, rng=7)
print(inspection["one_sided"], inspection["atom"], sep="\n")

plt.show()
