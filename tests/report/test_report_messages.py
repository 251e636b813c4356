"""Messages of wrong calls of `dpcore.report`: the argument, and a word of the remedy."""

from __future__ import annotations

from functools import partial

from shared_messages import check_messages

from dpcore import Audit, progress

TYPE_ERRORS = [
    (partial(Audit.from_dict, 5), "record", "a mapping"),
    *((partial(Audit.from_json, text), "text", "a string of JSON") for text in (None, 1, {}, [""])),
    (lambda: progress.Progress("x", 1, "yes"), "progress", "True, False or None"),
]


def test_messages():
    check_messages(TypeError, TYPE_ERRORS)
