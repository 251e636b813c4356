"""
Survey answers in two files
===========================

A survey tool promises plausible deniability at epsilon = 1: it keeps the true answer with some
probability, and else draws one of three at random. It is a program that nobody may read, so it was
run 5,000 times with the true answer "never", 5,000 times with "daily", and wrote two files.
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


def write_survey(name, kept):
    """Write what the tool answered, and beside each answer a run number and the true answer."""
    files = []
    for truth in ("never", "daily"):
        keeps = rng.random(TRIALS) < kept
        answers = np.where(keeps, truth, rng.choice(ANSWERS, TRIALS))
        files.append(folder / f"{name}-{truth}.csv")
        with files[-1].open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["run", "truth", "response"])
            rows.writerows([run, truth, answer] for run, answer in enumerate(answers))
    return files


# %%
# A tool that keeps the truth with probability p loses ln((1 + 2p)/(1 - p)): 1.50 for p = .538,
# and exactly the promised 1 for p = .364.

as_built = write_survey("as-built", 0.538)
repaired = write_survey("repaired", 0.364)

# %%
# Which column is the answer must be said. The true answer beside it differs between the files
# whatever the tool does, and would refute any claim.

for column in (None, "*"):
    try:
        dpcore.audit_outputs(*as_built, column=column, rows="independent", claim=1.0)
    except ValueError as error:
        print(error)

# %%
# With the answers alone the claim of the tool as it was built is refuted, and that of the repaired
# one is not. The report names the files, so that others can check that they have the same.


def audit(files):
    return dpcore.audit_outputs(*files, column="response", rows="independent", claim=1.0, rng=7)


reports = {"as built": audit(as_built), "repaired": audit(repaired)}
print(reports["as built"])

# %%
# How often each answer was given, and what is certified from it.

figure, (left, right) = plt.subplots(1, 2, layout="constrained", figsize=(7.5, 3.6))
places = np.arange(len(ANSWERS))
for number, file in enumerate(as_built):
    with file.open(newline="") as rows:
        given = [row["response"] for row in csv.DictReader(rows)]
    shares = [given.count(answer) / TRIALS for answer in ANSWERS]
    label = f'truth "{file.stem.rpartition("-")[2]}"'
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
right.set(title="Two files each, 5,000 rows", xlabel="epsilon", xlim=(0.0, 1.9))
figure.legend(*right.get_legend_handles_labels(), loc="outside lower right", ncols=3)
plt.show()
