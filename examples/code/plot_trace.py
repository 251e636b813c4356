"""
Which line loses how much
=========================

A hospital releases four figures about its patients and claims epsilon = 1. An audit refutes the
claim, but names no line. A trace runs the release a few times on two inputs with the same noise and
computes the loss of each line.
"""

import matplotlib.pyplot as plt

import dpcore

TRIALS = 10_000
pair = [52, 47, 71, 38, 64], [52, 47, 71, 38]  # with and without the patient of age 64


# %%
# The release adds noise for one change by 1 to each count, and to the sum of ages up to 100.


def release(ages, rng):
    patients = len(ages) + rng.laplace(scale=1.0)
    years = sum(ages) + rng.laplace(scale=100.0)
    old = sum(age > 60 for age in ages) + rng.laplace(scale=1.0)
    young = sum(age < 30 for age in ages) + rng.laplace(scale=1.0)
    return patients, years, old, young


report = dpcore.trace(release, pair, claim=1.0, rng=1)
print(report)

# %%
# The number of patients and that of the old lose 1 each. The sum of ages loses .64, for the patient
# is 64 years old. The number of the young is the same in both inputs: its line loses nothing here.
#
# The repaired release spends a quarter of the claim on each line.


def repaired(ages, rng):
    patients = len(ages) + rng.laplace(scale=4.0)
    years = sum(ages) + rng.laplace(scale=400.0)
    old = sum(age > 60 for age in ages) + rng.laplace(scale=4.0)
    young = sum(age < 30 for age in ages) + rng.laplace(scale=4.0)
    return patients, years, old, young


repaired_report = dpcore.trace(repaired, pair, claim=1.0, rng=1)
print(repaired_report)

# %%
# The computed loss is not certified. The audit of the same pair certifies a part of it.

audit = dpcore.audit(dpcore.repeat(release), pair, claim=1.0, trials=TRIALS, rng=1)
print(audit.verdict, round(audit.epsilon_lower, 2))

# %%
# Each part of a bar is the loss of one line. The parts of a bar must end before the claim.

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
