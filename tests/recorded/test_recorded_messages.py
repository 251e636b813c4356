"""Messages of wrong calls of `dpcore.recorded`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
from shared_messages import check_messages

from dpcore.attacks import MajorityVote, Threshold
from dpcore.recorded.run import audit_outputs
from dpcore.results.outputs_audits import Guesses

RNG = np.random.default_rng(21)

SIZE = 4000

LABELS = RNG.random(SIZE) < 0.5

SCORES = 2.0 * LABELS + RNG.laplace(size=SIZE)

SETTINGS = {"rows": "independent", "claim": 1.0, "rng": 1}

FRAME = pd.DataFrame({"score": SCORES, "member": LABELS})

OWN = np.arange(8.0)
RUNS = np.repeat(np.arange(10), 10)
HUNDRED = np.random.default_rng(1).normal(size=100)
TABLE = np.stack([HUNDRED, RUNS, RUNS % 2], axis=1)


class Unreachable:
    """A tensor on a device that numpy does not reach."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("copy it to the host first")


def labelled(label, outputs=SCORES, **more):
    return lambda: audit_outputs(outputs, label=label, **SETTINGS, **more)


def of_runs(outputs=OWN, outputs_prime=OWN, **more):
    return lambda: audit_outputs(outputs, outputs_prime, **{"rows": "independent", **more})


def of_canaries(outputs=OWN, outputs_prime=OWN, **more):
    return lambda: audit_outputs(outputs, outputs_prime, **{"rows": "one_run", **more})


def grouped(groups=RUNS, groups_prime=None, **more):
    return of_runs(HUNDRED, HUNDRED[::-1], groups=groups, groups_prime=groups_prime, **more)


VALUE_ERRORS = [
    # What an audit of given outputs refuses.
    (of_runs(rows="both"), "rows", "each row is an output of its own"),
    (lambda: Guesses(0, 0, 0, 0, 5), "guessed_out", "an integer"),
    (lambda: Guesses(3, 4, 0, 0, 5), "correct_in", "an integer"),
    (lambda: Guesses(3, 3, 3, 3, 5), "guessed_out", "an integer"),
    (lambda: Guesses(1, 1, 0, 0, 0), "canaries", "an integer"),
    # Outputs of independent runs.
    (of_runs(OWN[:3]), "outputs", "at least 4 rows on each side, got (3, 8)"),
    (of_runs(outputs_prime=OWN[:3]), "outputs", "at least 4 rows on each side, got (8, 3)"),
    (of_runs([]), "outputs", "at least one row"),
    (of_runs(OWN * 1j), "outputs_prime", "like outputs"),
    (of_runs(np.ma.masked_less(OWN, 3)), "outputs", "without masked entries"),
    (of_runs(outputs_prime=np.ones((8, 2))), "outputs_prime", "float64 of shape (size)"),
    (of_runs(outputs_prime=list("abcdefgh")), "outputs_prime", "like outputs"),
    (of_runs(claim=-1.0), "claim", "a finite number at least 0"),
    (of_runs(delta=1.0), "delta", "below 1"),
    (of_runs(confidence=1.0), "confidence", "below 1"),
    (of_runs(bound="one_run"), "bound", "one of 'clopper_pearson', 'exact'"),
    (of_runs(attack=lambda *pilot: lambda rows: 3), "event", "a function that"),
    (of_runs(attack=Threshold(5)), "attack", "one that applies to these outputs"),
    (of_runs(count_share=1.0), "count_share", "a finite number above 0 and below"),
    (of_runs(guesses=4), "guesses", "None where rows = 'independent', got 4"),
    (of_runs(column=0), "column", "None where outputs are arrays"),
    (of_runs(label="side"), "outputs_prime", "None where label is given"),
    (of_runs(paired=True, bound="exact"), "bound", "'clopper_pearson' where"),
    (of_runs(OWN[:7], paired=True), "outputs", "as many rows on x as on x' where paired = True"),
    (of_runs(rng=-1), "rng", "an integer from 0"),
    # Canaries of one run.
    (of_canaries([0.0, np.nan]), "outputs", "(-inf or inf for the least or most likely), got 'NaN"),
    (of_canaries(np.ones((4, 2)), np.ones((4, 2))), "outputs", "one score"),
    (of_canaries(attack=Threshold()), "attack", "None where rows = 'one_run'"),
    (of_canaries(pair=([0], [1])), "pair", "None where rows = 'one_run'"),
    (of_canaries(count_share=0.5), "count_share", "None where rows = 'one_run'"),
    (of_canaries(groups=OWN, groups_prime=OWN), "groups", "None where rows = 'one_run'"),
    (of_canaries(arranged=True), "arranged", "False where rows = 'one_run'"),
    (of_canaries(paired=True), "paired", "False where rows = 'one_run'"),
    (of_canaries(bound="exact"), "bound", "one of 'one_run', 'one_run_fdp', 'one_run_curve'"),
    (of_canaries(bound="one_run_fdp"), "delta", "above 0 for the bound one_run_fdp"),
    (of_canaries(guesses=0), "guesses", "an integer from 1 to 16, got 0"),
    (of_canaries(guesses=17), "guesses", "an integer from 1 to 16, got 17"),
    (of_canaries(guesses=1.5), "guesses", "a finite number above 0 and at most 1"),
    (of_canaries(guesses=0.0), "guesses", "a finite number above 0"),
    (of_canaries(guesses=(1, 2, 3)), "guesses", "a number, a share, or a tuple"),
    (of_canaries(guesses=(0, 0)), "guesses", "guesses out must be an integer from 1 to 16"),
    (of_canaries(guesses=(9, 8)), "guesses", "guesses out must be an integer from 0 to 7"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (labelled(LABELS[:-1]), "label", "one for each of the 4,000"),
    (labelled(np.ones(SIZE)), "label", "rows for both sides"),
    (labelled(np.zeros(SIZE)), "label", "rows for both sides"),
    (labelled(np.where(LABELS, 1, -1)), "label_x", "given: which of '-1', '1' stands for x"),
    (labelled(np.where(np.arange(SIZE) == 6, np.nan, LABELS)), "label", "1, true, in or x"),
    (labelled(pd.Series([None, *LABELS[1:].tolist()])), "label", "1, true"),
    (labelled([None, *LABELS[1:].tolist()]), "label", "1, true"),
    (labelled(LABELS, outputs_prime=SCORES), "outputs_prime", "None"),
    (labelled(np.ma.masked_array(LABELS, np.arange(SIZE) < 3)), "label", "labels without"),
    (labelled(FRAME["member"], FRAME["score"].sort_values()), "label",
     "labels with the index of outputs"),
    (labelled("side", FRAME), "label", "one of 'score'"),
    (labelled("member", FRAME.assign(row=0)), "column", "given where a file has 2 columns beside"),
    (labelled("member", FRAME, column=["score", 1]), "column", "another one than the label"),
    # Rows that belong together.
    (grouped(None, RUNS), "groups_prime", "None where groups are not given"),
    (grouped(RUNS, RUNS), "groups", "other groups on x than on x'"),
    (grouped(RUNS, RUNS + 9), "groups", "(1 are on both sides; where their numbers start anew"),
    (grouped(RUNS[:-1], RUNS + 10), "groups", "100 rows, got '99 "),
    (grouped(RUNS, RUNS[:-1] + 10), "groups_prime", "got '99 labels"),
    (grouped(RUNS * 0, RUNS + 1), "groups", "at least 4 groups on each side, got (1, 10)"),
    (grouped(RUNS, RUNS // 5 + 10), "groups", "at least 4 groups on each side, got (10, 2)"),
    (grouped([None, *RUNS[1:]], RUNS + 10), "groups", "got 'nothing in row 1'"),
    (grouped([np.nan, *RUNS[1:]], RUNS + 10), "", "none of them NaN"),
    (grouped(RUNS, RUNS + 10, paired=True), "paired", "False where"),
    (grouped("run", RUNS), "groups_prime", "a column, or None, where"),
    (grouped(np.ma.masked_equal(RUNS, 3), RUNS + 10), "groups", "masked entries"),
    (labelled(RUNS % 2, HUNDRED, groups=RUNS, groups_prime=RUNS), "groups_prime",
     "None where label is given"),
    (labelled(np.arange(100) % 2, HUNDRED, groups=RUNS), "groups", "other groups on x than on x'"),
    (labelled(2, TABLE, groups=2), "groups", "another column than the label"),
    (labelled(2, TABLE, groups=1, column=[0, 1]), "column", "another one than groups"),
]  # fmt: skip
TYPE_ERRORS = [
    # What an audit of given outputs refuses.
    (of_runs(rows=None), "rows", "'independent' or 'one_run'"),
    (of_runs(rows=["independent"]), "rows", "each row is an output"),
    (of_runs(1.0), "outputs", "an array with one row an output"),
    (of_runs(Unreachable()), "outputs", "an array with one row"),
    (of_runs(outputs_prime=None), "outputs_prime", "the outputs on x'"),
    (of_runs(bound=1), "bound", "one of"),
    (of_runs(attack=3), "attack", "a callable"),
    (of_runs(attack=lambda *pilot: 3), "event", "a callable"),
    (of_runs(attack=MajorityVote()), "", "must be"),
    (of_runs(pair=3), "pair", "a Pair"),
    (of_runs(count_share="half"), "count_share", "above 0"),
    (of_runs(paired=1), "paired", "True or False, got 1"),
    (of_canaries(["a"], ["b"]), "outputs", "one real number for each canary"),
    (of_canaries(guesses=True), "guesses", "an integer"),
    (of_canaries(guesses="all"), "guesses", "an integer"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (labelled([[1], [0, 1]]), "label", "a column's name or number"),
    (labelled(np.ones((SIZE, 2))), "label", "a column's name"),
    (labelled(True), "label", "a column's name"),
    (labelled("member"), "outputs", "a frame"),
    # Rows that belong together.
    (grouped(), "groups_prime", "the groups of outputs_prime"),
    (grouped("run"), "outputs", "a file, a frame or a matrix where groups is a column"),
    (grouped([[1]] * 100, RUNS), "groups", "hashable labels"),
    (grouped(3.5, RUNS), "groups", "hashable labels"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
