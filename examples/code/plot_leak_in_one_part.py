"""
One leaking part among many
===========================

A survey tool returns a record with forty answers. Thirty-nine answers are random. One answer
depends on the user's true answer. The audit compares every part of the records (every answer) on
two inputs. It then chooses the event that distinguishes the inputs best, and the report names the
part of the record in which the event occurs.
"""

import matplotlib.pyplot as plt
import numpy as np

import dpcore

ANSWERS = np.array(["never", "weekly", "daily"])
TRIALS = 5000
FIELDS = [f"question_{number:02d}" for number in range(40)]


# %%
# The three mechanisms differ in the answer to question 35 only. The mechanism keeps the true answer
# with probability 0, .364 or .5, and otherwise draws one of three answers at random. The
# probability .364 has a privacy loss of 1. The probability .5 has a loss of ln 4 = 1.39.


def survey(probability):
    def draw(answer, size, rng):
        rows = ANSWERS[rng.integers(3, size=(size, 40))]
        rows[rng.random(size) < probability, 35] = answer
        return [dict(zip(FIELDS, row.tolist(), strict=True)) for row in rows]

    return draw


LABEL = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
PROBABILITIES = {"random": 0.0, "kept at 36 %": 0.364, "kept at 50 %": 0.5}
reports = {
    name: dpcore.audit(survey(probability), ("daily", "never"), claim=1.0, trials=TRIALS, rng=1)
    for name, probability in PROBABILITIES.items()
}

# %%
# The row "witness" of the report names the event by a key of the record (`question_35`). The rows
# "inside" show outputs in the event. The row "read" shows how many parts of the outputs the audit
# compared.

print(reports["kept at 50 %"])

# %%
# The audit refutes only the claim of the mechanism that keeps the true answer too often.

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
