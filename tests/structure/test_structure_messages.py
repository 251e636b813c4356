"""Messages of wrong calls of `dpcore.structure`: the argument, and a word of the remedy."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from shared_messages import check_messages

from dpcore.structure import FAULTS, Check, Inspection

fault = partial(replace, FAULTS[0])


VALUE_ERRORS = [
    # Structural checks: power on named faults, passes on sound noise, and the false-alarm rate.
    (lambda: Check("noise", True, "x"), "name", "one of 'no_noise'"),
    (lambda: Check("grid", True, "x", 2.0), "p_value", "a finite number at"),
    (lambda: fault(x=[np.nan]), "x", "a non-empty vector of finite"),
    (lambda: fault(flagged_by=()), "flagged_by", "at least one name"),
    (lambda: fault(flagged_by=("luck",)), "flagged_by", "one of 'no_noise'"),
]  # fmt: skip
TYPE_ERRORS = [
    # Structural checks: power on named faults, passes on sound noise, and the false-alarm rate.
    (lambda: Check("grid", 1, "x"), "flagged", "True or False"),
    (lambda: Check("grid", True, None), "what", "a str"),
    (lambda: Check("grid", True, "x", 0.5, (("a",),)), "evidence", "a tuple"),
    (lambda: Inspection("m", 1, 200, 1, 0.1, 0.1, [1]), "checks", "a tuple"),
    (lambda: fault(mechanism=3), "mechanism", "a mechanism"),
    (lambda: fault(repaired=3), "repaired", "a mechanism"),
    (lambda: fault(flagged_by="rank"), "flagged_by", "a tuple of names"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
