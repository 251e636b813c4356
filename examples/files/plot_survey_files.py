"""
Survey answers in two files
===========================

A survey tool claims epsilon = 1. It keeps the true answer with some probability, and otherwise
draws one of three answers at random. The code of the tool is secret. Therefore the tool was run
5,000 times with the true answer "never" and 5,000 times with "daily". The outputs are in two files,
which dpcore audits.
"""

import csv
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpcore

TRIALS = 5000
ANSWERS = ["never", "weekly", "daily"]
folder = Path(tempfile.mkdtemp())
rng = np.random.default_rng(3)


def write_survey(name, probability):
    """Write two files with the number of each run, the true answer and the answer of the tool."""
    files = []
    for truth in ("never", "daily"):
        keeps = rng.random(TRIALS) < probability
        answers = np.where(keeps, truth, rng.choice(ANSWERS, TRIALS))
        files.append(folder / f"{name}-{truth}.csv")
        with files[-1].open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["run", "truth", "response"])
            rows.writerows([run, truth, answer] for run, answer in enumerate(answers))
    return files


# %%
# If the tool keeps the true answer with probability p, its true epsilon is ln((1 + 2p)/(1 - p)).
# For the tool as built, p is .538 and the true epsilon is 1.50. For the repaired tool, p is .364
# and the true epsilon is 1.

as_built = write_survey("as-built", 0.538)
repaired = write_survey("repaired", 0.364)

# %%
# The user must name the column with the answers of the tool. The column with the true answers
# differs between the two files for every tool, so that it would refute every claim. The script
# shows two errors: without a column, and with all columns (`"*"`).

for column in (None, "*"):
    try:
        dpcore.audit_outputs(*as_built, column=column, rows="independent", claim=1.0)
    except ValueError as error:
        print(error)

# %%
# With the right column, the audit refutes the claim of the tool as built. It does not refute the
# claim of the repaired tool. The report contains the SHA-256 hash of each file, so that other
# people can check that they have the same files.


def audit(files):
    return dpcore.audit_outputs(*files, column="response", rows="independent", claim=1.0, rng=7)


reports = {"as built": audit(as_built), "repaired": audit(repaired)}
print(reports["as built"])

# %%
# The left picture shows how often the tool as built gave each answer. The right picture shows the
# certified epsilon of both tools.

figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(7.5, 3.6))
places = np.arange(len(ANSWERS))
for number, file in enumerate(as_built):
    with file.open(newline="") as rows:
        responses = [row["response"] for row in csv.DictReader(rows)]
    shares = [responses.count(answer) / TRIALS for answer in ANSWERS]
    label = f'true answer "{file.stem.rpartition("-")[2]}"'
    left.bar(places + 0.4 * number - 0.2, shares, 0.38, label=label)
left.set_xticks(places, ANSWERS)
left.set(title="Answers of the tool as built", ylabel="share of the runs")
left.legend(frameon=False)
bounds = [report.epsilon_lower for report in reports.values()]
estimates = [report.epsilon_hat for report in reports.values()]
right.barh(list(reports), bounds, color="C2", height=0.4, label="certified at 95 %")
right.plot(estimates, list(reports), "D", color="black", label="estimate")
right.axvline(1.0, color="C3", linestyle="--", label="claim")
right.invert_yaxis()
right.set(title="Audit of two files per tool", xlabel="epsilon", xlim=(0.0, 1.9))
figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=3)
plt.show()
