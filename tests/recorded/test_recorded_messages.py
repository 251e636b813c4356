"""Messages of wrong calls of `dpcore.recorded`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
import pandas as pd
from shared_messages import check_messages

from dpcore.recorded.run import audit_outputs
from dpcore.results.outputs_audits import Guesses

RNG = np.random.default_rng(21)

SIZE = 4000

LABELS = RNG.random(SIZE) < 0.5

SCORES = 2.0 * LABELS + RNG.laplace(size=SIZE)

SETTINGS = {"rows": "independent", "claim": 1.0, "rng": 1}

FRAME = pd.DataFrame({"score": SCORES, "member": LABELS})

VALUE_ERRORS = [
    # What an audit of given outputs refuses.
    (lambda: audit_outputs([1.0], [2.0], rows="both"), "rows", "each row is an output of its own"),
    (lambda: Guesses(0, 0, 0, 0, 5), "guessed_out", "an integer"),
    (lambda: Guesses(3, 4, 0, 0, 5), "correct_in", "an integer"),
    (lambda: Guesses(3, 3, 3, 3, 5), "guessed_out", "an integer"),
    (lambda: Guesses(1, 1, 0, 0, 0), "canaries", "an integer"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": LABELS[:-1]}}), "label",
     "one for each of the 4,000"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": np.ones(SIZE)}}), "label",
     "rows for both sides"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": np.zeros(SIZE)}}), "label",
     "rows for both sides"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": np.where(LABELS, 1, -1)}}), "label_x",
     "given: which of '-1', '1' stands for x"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS,
     **{"label": np.where(np.arange(SIZE) == 6, np.nan, LABELS)}}), "label", "1, true, in or x"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS,
     **{"label": pd.Series([None, *LABELS[1:].tolist()])}}), "label", "1, true"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": [None, *LABELS[1:].tolist()]}}),
     "label", "1, true"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": LABELS, "outputs_prime": SCORES}}),
     "outputs_prime", "None"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS,
     **{"label": np.ma.masked_array(LABELS, np.arange(SIZE) < 3)}}), "label", "labels without"),
    (lambda: audit_outputs(FRAME["score"].sort_values(),
     **{**SETTINGS, **{"label": FRAME["member"]}}), "label", "labels with the index of outputs"),
    (lambda: audit_outputs(FRAME, **{**SETTINGS, **{"label": "side"}}), "column", "one of 'score'"),
    (lambda: audit_outputs(FRAME.assign(row=0), **{**SETTINGS, **{"label": "member"}}), "column",
     "given where a file has 2 columns beside"),
]  # fmt: skip
TYPE_ERRORS = [
    # What an audit of given outputs refuses.
    (lambda: audit_outputs([1.0], [2.0]), "rows", "'independent' or 'one_run'"),
    (lambda: audit_outputs([1.0], [2.0], rows=["independent"]), "rows", "each row is an output"),
    # Labels beside outputs: taken as `label=`, refused where they stand for outputs.
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": [[1], [0, 1]]}}), "label",
     "a column's name or number"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": np.ones((SIZE, 2))}}), "label",
     "a column's name"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": True}}), "label", "a column's name"),
    (lambda: audit_outputs(SCORES, **{**SETTINGS, **{"label": "member"}}), "outputs", "a frame"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
