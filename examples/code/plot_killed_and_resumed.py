"""
An audit that was killed, and resumed
=====================================

An audit with a run file goes on where it was cut off, and ends with the same counts. A kill shows
nobody anything, so the bound for a fixed number of trials holds. Whoever looks at the counts on
the way has as many chances as looks, and may only certify the anytime bound.
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
    """Add noise, until the machine goes down for once."""
    if next(calls) == TRIALS // 1000:
        raise SystemError("power failure")
    return x + rng.laplace(scale=1.2, size=(size, 1))


# %%
# The run file keeps what was counted when the machine went down. The same line again goes on.

pair = ([0.0], [1.0])
for attempt in (1, 2):
    try:
        resumed = dpcore.audit(noisy, pair, checkpoint=folder / "audit.json", **about)
    except SystemError as error:
        print(f"attempt {attempt}: {error}")
whole = dpcore.audit(noisy, pair, **about)
print(f"attempt {attempt}: {resumed.verdict}, the same counts: {resumed.counts == whole.counts}")

# %%
# The same in twenty parts, as twenty jobs would count them. Each part writes a file, from which it
# goes on if it is killed. The event is chosen once, before the parts.

begin_run(folder / "run.json", noisy, pair, **about)
files = [folder / f"part-{number}.json" for number in range(1, PARTS + 1)]
for number, file in enumerate(files, 1):
    count_part(folder / "run.json", noisy, pair, part=(number, PARTS), out=file, **about)

merged = merge_parts(files)
print(merged.verdict, merged.counts == whole.counts, merged.bound)

# %%
# A file holds the trials that were counted and a few sums, whatever their number.

record = json.loads(files[0].read_text())
print(record["ranges"], [side["hits"] for side in record["sides"]], len(files[0].read_bytes()))

# %%
# What somebody would have seen who looked after each part: both bounds of the counts so far. The
# upper line is no bound for one who looks; the lower one holds at all looks at once.

trials, fixed, sound = [], [], []
for number in range(1, PARTS + 1):
    done = merge_parts(files[:number], partial=True)
    counts = done.bound_counts
    trials.append(done.counts.n)
    fixed.append(clopper_pearson(counts, 0.0, done.confidence))
    sound.append(anytime(counts, 0.0, done.confidence))

looked = merge_parts(files)
print(f"after a look: {looked.bound}, {looked.epsilon_lower:.3f} <= {merged.epsilon_lower:.3f}")

figure, axes = plt.subplots(layout="constrained")
axes.plot(trials, fixed, "o--", label="for a fixed end, at every look: not a bound")
axes.plot(trials, sound, "o-", label="anytime bound")
axes.plot(TRIALS, merged.epsilon_lower, "k*", markersize=14, label="certified without a look")
axes.axhline(about["claim"], color="grey", linewidth=0.8)
axes.set(xlabel="trials counted on each side", ylabel="epsilon")
axes.set_ylim(top=1.05 * max(np.max(fixed), about["claim"]))
axes.legend(frameon=False, loc="lower right")

plt.show()
