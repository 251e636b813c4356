"""
Which line loses how much
=========================

A hospital releases four numbers about its patients and claims epsilon = 1. An audit refutes the
claim, but does not name the line of the code that loses too much. `dpcore.trace` runs the code a
few times on two inputs with the same noise. It computes the privacy loss of each line.
"""

import matplotlib.pyplot as plt

import dpcore

TRIALS = 10_000
pair = [52, 47, 71, 38, 64], [52, 47, 71, 38]  # with and without the patient of age 64


# %%
# The function `release` adds Laplace noise to three counts and to the sum of the ages. Each noise
# has the scale for epsilon = 1: one patient changes a count by 1 and the sum by at most 100.


def release(ages, rng):
    patients = len(ages) + rng.laplace(scale=1.0)
    years = sum(ages) + rng.laplace(scale=100.0)
    old = sum(age > 60 for age in ages) + rng.laplace(scale=1.0)
    young = sum(age < 30 for age in ages) + rng.laplace(scale=1.0)
    return patients, years, old, young


report = dpcore.trace(release, pair, claim=1.0, rng=1)
print(report)

# %%
# The line `patients` and the line `old` each have a loss of 1. The line `years` has a loss of .64,
# because the patient is 64 years old. The line `young` has a loss of 0: both inputs have the same
# number of young patients.
#
# In the repaired release, each line has an epsilon of at most 1/4.


def repaired(ages, rng):
    patients = len(ages) + rng.laplace(scale=4.0)
    years = sum(ages) + rng.laplace(scale=400.0)
    old = sum(age > 60 for age in ages) + rng.laplace(scale=4.0)
    young = sum(age < 30 for age in ages) + rng.laplace(scale=4.0)
    return patients, years, old, young


repaired_report = dpcore.trace(repaired, pair, claim=1.0, rng=1)
print(repaired_report)

# %%
# `trace` computes the loss but does not certify it. An audit of the same pair certifies a part of
# this loss, with 95 % confidence.

audit = dpcore.audit(dpcore.repeat(release), pair, claim=1.0, trials=TRIALS, rng=1)
print(audit.verdict, round(audit.epsilon_lower, 2))

# %%
# Each part of a bar is the loss of one line. The claim is true for this pair if the whole bar ends
# left of the dashed line.

COLOURS = {"patients": "#0067a3", "years": "#a84300", "old": "#5a7d2a"}
figure, axes = plt.subplots(figsize=(8.0, 2.9), layout="constrained")
for row, trace in enumerate((repaired_report, report)):
    start, steps = 0.0, sorted(trace.steps, key=lambda step: step.place)
    for step, (name, colour) in zip(steps, COLOURS.items(), strict=True):
        label = name if row else None
        axes.barh(row, step.loss, 0.6, start, color=colour, edgecolor="white", label=label)
        line = step.place.partition(":")[2].partition(" ")[0]
        text = f"line {line}\n{step.loss:g}" if row else f"{line}\n{step.loss:.2g}"
        axes.annotate(
            text, (start + step.loss / 2, row), color="white", ha="center", va="center",
            fontsize="small",
        )  # fmt: skip
        start += step.loss
axes.axvline(1.0, color="black", linestyle="--")
axes.annotate("claim", (1.0, 1.36), (4, 0), textcoords="offset points")
axes.set_yticks((0, 1), ("repaired", "release"))
axes.set(xlabel="computed loss for this pair", xlim=(0.0, 2.7), ylim=(-0.5, 1.6))
axes.spines[["top", "right"]].set_visible(False)
axes.legend(frameon=False, loc="lower right")
plt.show()
