"""Messages of wrong calls of `dpcore.tables`: the argument, and a word of the remedy."""

from __future__ import annotations

import numpy as np
import scipy.sparse
from shared_messages import check_messages
from shared_tables import Rows

from dpcore import audit_table

GOOD = [[0.75, 0.25], [0.25, 0.75]]

VALUE_ERRORS = [
    # What `audit_table` refuses: the message names the argument, the requirement and the value.
    (lambda: audit_table(np.log([[0.5, 0.5], [0.5, 0.25]]), log=True), "table", "rows that add up"),
    (lambda: audit_table(Rows(np.log([[0.5, 0.5], [0.5, 0.25]])), log=False), "table",
     "rows that add up to 1 within 1e-09"),
    (lambda: audit_table(np.array([[0.1, -1.0], [-1.0, -1.0]]), log=True), "table",
     "logarithms of at most 0"),
    (lambda: audit_table(Rows(np.array([[0.1, -1.0], [-1.0, -1.0]])), log=False), "table",
     "logarithms of at most 0"),
    (lambda: audit_table(np.array([[np.nan, 0.0], [0.0, 0.0]]), log=True), "table",
     "logarithms of at most 0"),
    (lambda: audit_table(Rows(np.array([[np.nan, 0.0], [0.0, 0.0]])), log=False), "table",
     "logarithms of at most 0"),
    (lambda: audit_table(GOOD, claim=-1.0), "claim", "a finite number at least 0"),
    (lambda: audit_table(GOOD, tolerance=-1e-9), "tolerance", "a finite number at least 0"),
    (lambda: audit_table(GOOD, threads=0), "threads", "an integer from 1 to 1024"),
    (lambda: audit_table(scipy.sparse.csr_matrix(np.log(GOOD)), log=True), "log", "False for"),
]  # fmt: skip
TYPE_ERRORS = [
    # What `audit_table` refuses: the message names the argument, the requirement and the value.
    (lambda: audit_table(GOOD, claim="1"), "claim", "a finite number at least 0"),
    (lambda: audit_table(GOOD, log=1), "log", "True or False"),
    (lambda: audit_table(GOOD, progress="yes"), "progress", "True, False or None"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
