"""
An audit that was killed, and resumed
=====================================

An audit can write its counts to a file (the run file). If the process is killed, the same call
continues the audit from the file and ends with the same counts. No person has seen the counts of a
killed audit, so that a bound for a fixed number of trials is still valid. A person who looks at the
counts several times, and stops at a high bound, needs an anytime bound. An anytime bound is valid
at all times together.
"""

import itertools
import json
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import dpcore
from dpcore.bounds import anytime, clopper_pearson
from dpcore.runs import begin_run, count_part, merge_parts

TRIALS = 200_000
PARTS = 20

about = {"claim": 0.8, "trials": TRIALS, "block": 1000, "rng": 7}
folder = Path(tempfile.mkdtemp())
calls = itertools.count()


def noisy(x, size, rng):
    """Add noise; one call raises an error, as if the machine had stopped."""
    if next(calls) == TRIALS // 1000:
        raise SystemError("power failure")
    return x + rng.laplace(scale=1.2, size=(size, 1))


# %%
# At the first attempt, the audit stops with an error. The run file contains the counts up to the
# error. At the second attempt, the same call continues the audit. A third audit without a run file
# and without an error has the same counts.

pair = ([0.0], [1.0])
for attempt in (1, 2):
    try:
        second = dpcore.audit(noisy, pair, checkpoint=folder / "audit.json", **about)
    except SystemError as error:
        print(f"attempt {attempt}: {error}")
whole = dpcore.audit(noisy, pair, **about)
print(f"attempt {attempt}: {second.verdict}, the same counts: {second.counts == whole.counts}")

# %%
# The audit can also be split into twenty parts, for twenty jobs on a cluster. `begin_run` chooses
# the event once, before the parts. `count_part` counts the event in one part and writes a file. If
# a job is killed, the same call continues from this file. `merge_parts` adds the counts of all
# files.

begin_run(folder / "run.json", noisy, pair, **about)
files = [folder / f"part-{number}.json" for number in range(1, PARTS + 1)]
for number, file in enumerate(files, 1):
    count_part(folder / "run.json", noisy, pair, part=(number, PARTS), out=file, **about)

merger = merge_parts(files)
print(merger.verdict, merger.counts == whole.counts, merger.bound)

# %%
# The file of a part contains the numbers of its trials and a few sums, but no outputs. The script
# prints the range of trials, how often the event occurred on each input, and the size of the file
# in bytes.

record = json.loads(files[0].read_text())
print(record["ranges"], [side["hits"] for side in record["sides"]], len(files[0].read_bytes()))

# %%
# The picture shows two lower bounds on epsilon after each part. The Clopper-Pearson bound (dashed)
# is valid only if the number of trials is fixed in advance and the bound is computed once. The
# anytime bound (solid) is valid after all parts together. `partial=True` merges the files so far.
# dpcore records that the counts were seen, and reports the anytime bound afterwards.

trials, fixed_bounds, anytime_bounds = [], [], []
for number in range(1, PARTS + 1):
    partial_merger = merge_parts(files[:number], partial=True)
    counts = partial_merger.bound_counts
    trials.append(partial_merger.counts.n)
    fixed_bounds.append(clopper_pearson(counts, 0.0, partial_merger.confidence))
    anytime_bounds.append(anytime(counts, 0.0, partial_merger.confidence))

last = merge_parts(files)
print(f"after 20 looks: {last.bound}, {last.epsilon_lower:.3f} <= {merger.epsilon_lower:.3f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(trials, fixed_bounds, "o--", label="Clopper-Pearson after each part: not valid")
axes.plot(trials, anytime_bounds, "o-", label="anytime bound: valid")
axes.plot(TRIALS, merger.epsilon_lower, "k*", markersize=14, label="Clopper-Pearson at the end")
axes.axhline(about["claim"], color="grey", linewidth=0.8)
axes.set(xlabel="trials counted per input", ylabel="lower bound on epsilon")
axes.set_ylim(top=1.05 * max(np.max(fixed_bounds), about["claim"]))
axes.legend(frameon=False, loc="lower right")

plt.show()
