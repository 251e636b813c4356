"""
One leaking part among many
===========================

A survey tool returns a record of forty answers. Thirty-nine are noise; one is the user's own with
probability 1/2 more than chance. An audit compares every part of the records, counts the event
that tells most, and says which part it is.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

ANSWERS = np.array(["never", "weekly", "daily"])
TRIALS = 5000
FIELDS = [f"question_{number:02d}" for number in range(40)]


# %%
# Three mechanisms differ in question 35 alone: it is random, randomised as it should be for
# epsilon 1, or kept half of the time.


def survey(kept):
    def draw(answer, size, rng):
        rows = ANSWERS[rng.integers(3, size=(size, 40))]
        rows[rng.random(size) < kept, 35] = answer
        return [dict(zip(FIELDS, row.tolist(), strict=True)) for row in rows]

    return draw


LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
KEPT = {"random": 0.0, "randomised, loss 1": 0.364, "kept half of the time": 0.5}
reports = {
    name: dpcore.audit(survey(kept), ("daily", "never"), claim=1.0, trials=TRIALS, rng=1)
    for name, kept in KEPT.items()
}

# %%
# The report names the part with the user's own keys, shows outputs inside the event and says how
# much was read.

print(reports["kept half of the time"])

# %%
# Only the mechanism that keeps too much is refuted.

figure, axes = plt.subplots(figsize=(6.4, 2.6), layout="constrained")
for row, report in enumerate(reports.values()):
    colour = "#a84300" if report.refuted else "#0067a3"
    axes.barh(row, report.epsilon_lower, color=colour, height=0.6)
    axes.annotate(
        f"{report.epsilon_lower:.2f}", (report.epsilon_lower, row), (4, 0),
        textcoords="offset points", va="center", bbox=LABEL,
    )  # fmt: skip
axes.axvline(1.0, color="grey", linewidth=0.8)
axes.annotate("claim", (1.0, 2.45), (4, 0), textcoords="offset points", color="grey")
axes.set_yticks(range(len(reports)), list(reports))
axes.set(xlabel="certified epsilon", xlim=(0.0, 1.6), ylim=(-0.5, 2.7))

plt.show()
