"""Messages of wrong calls of `dpcore.report`: the argument, and a word of the remedy."""

from __future__ import annotations

from shared_messages import check_messages

from dpcore import Audit, progress

TYPE_ERRORS = [
    # Audits as JSON and as pickles.
    (lambda: Audit.from_dict(5), "record", "a mapping"),
    # How an audit is shown: text, HTML, a picture, a progress bar.
    (lambda: progress.Progress("x", 1, "yes"), "progress", "True, False or None"),
]  # fmt: skip


def test_messages():
    check_messages(TypeError, TYPE_ERRORS)
