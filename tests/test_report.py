"""How an audit is shown: text, HTML, a picture, a progress bar."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace

import pytest

import dpcore
from dpcore import Counts, Laplace, Pair, audit, progress, published

REFUTED = audit(published.DPText(1.0), trials=10**5, rng=1)
PASSED = audit(published.LaplaceMechanism(1.0), trials=10**5, rng=1)
UNCLAIMED = audit(dpcore.Identity(), trials=1000, rng=1)
KEPT = audit(published.DPText(1.0, nan="keep"), trials=10**4, rng=1)


@pytest.mark.parametrize("report", [REFUTED, PASSED, UNCLAIMED, KEPT], ids=lambda r: r.name)
def test_time_stands_on_the_last_line_and_nowhere_else(report):
    slower = replace(report, seconds=123.0, threads=7)
    lines, slow_lines = str(report).splitlines(), str(slower).splitlines()
    assert lines[:-1] == slow_lines[:-1]
    assert lines[-1] != slow_lines[-1]
    assert re.fullmatch(r"  time         123 s, \S+ draws/s on 7 threads", slow_lines[-1])
    assert lines[0] == report.name
    assert all(line.startswith("  ") for line in lines[1:])
    # The same seed prints the same text, the last line apart.
    again = audit(report.mechanism, trials=report.trials, rng=1)
    assert str(again).splitlines()[:-1] == lines[:-1]


def rows(report):
    return {line[2:14].strip(): line[15:] for line in str(report).splitlines()[1:]}


def test_what_a_report_says():
    shown = rows(REFUTED)
    c = REFUTED.counts
    assert shown["verdict"] == "refuted"
    assert shown["claim"] == "epsilon <= 1"
    assert shown["certified"] == (
        f"epsilon >= {REFUTED.epsilon_lower:.4f} (95 % confidence, Clopper-Pearson)"
    )
    assert shown["estimate"] == "infinite (empirical loss, certifies nothing)"
    assert shown["closed form"].startswith("infinite")
    assert shown["counts"] == f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"
    assert shown["witness"] == "majority vote for x (2 of 2 entries vote), x in the numerator"
    assert shown["pair"] == "x = [0., 0.], x' = [0.5, 0.5]"
    assert shown["seed"].startswith("1 (trials 0 to 100,000; blocks of 65,536, integer route, ")
    assert "note" not in shown
    assert "NaN entries" not in shown
    assert rows(KEPT)["NaN entries"] == f"{KEPT.nan:,} on x, {KEPT.nan_prime:,} on x'"
    assert rows(UNCLAIMED)["claim"] == "none given"


def test_no_report_says_that_a_mechanism_is_private():
    for report in (PASSED, UNCLAIMED):
        words = str(report).lower()
        assert not re.search(r"is private|passed|is safe|proved|no leak", words)
    assert PASSED.verdict == "not refuted by this attack"


def test_notes_say_why_a_claim_stands():
    seen = f"{PASSED.exact:.4g}"
    assert rows(PASSED)["note"] == (
        f"the vote sees a loss of {seen} on this pair: it cannot refute a claim of 1, "
        "whatever the number of trials"
    )
    small = audit(published.HalfNoise(1.0), trials=50, rng=1)
    assert (
        rows(small)["note"]
        == f"the vote sees a loss of {small.exact:.4g} > 1: more trials may refute"
    )
    partial = replace(small, partial=True)
    assert rows(partial)["note"].startswith("interrupted: only the trials shown were counted; ")


def test_long_inputs_are_shortened():
    pair = dpcore.pairs.zeros_ones(1000)
    assert rows(audit(Laplace(1.0), pair, trials=100))["pair"].endswith("(1000 entries)")

    def mechanism(x, size, rng):
        return rng.normal(size=size)

    attack = lambda a, b, pair: lambda o: o > 0  # noqa: E731
    report = audit(mechanism, ("a" * 1000, "line\nbreak"), trials=100, attack=attack)
    assert len(rows(report)["pair"]) < 150

    class Table:
        def __repr__(self):
            return "a  b\n1  2\n"

    report = audit(mechanism, (Table(), 1), trials=100, attack=attack)
    assert rows(report)["pair"] == "x = a b 1 2, x' = 1"


def test_repr_is_one_line():
    assert repr(REFUTED).startswith("<Audit of DPText(epsilon=1.0, sensitivity=1.0, nan='zero'): ")
    assert "\n" not in repr(REFUTED)


def test_html_is_escaped():
    evil = replace(PASSED, mechanism="<script>alert(1)</script>&\"'")
    page = evil._repr_html_()
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert page.count("<tr>") == str(evil).count("\n")
    pair = Pair("<b>x</b>", "<i>y</i>")
    assert "<b>x</b>" not in replace(evil, pair=pair)._repr_html_()
    assert "font-weight:bold" in page


def test_html_tells_the_verdicts_apart():
    pages = [report._repr_html_() for report in (REFUTED, PASSED, UNCLAIMED)]
    assert len({re.search(r"color:(#\w+)", page).group(1) for page in pages}) == 3


STRANGE = [
    REFUTED,
    PASSED,
    UNCLAIMED,
    replace(PASSED, claim=1e300),
    replace(PASSED, claim=0.0),
    replace(PASSED, counts=Counts(0, 10, 0, 10)),
    replace(PASSED, counts=Counts(10, 10, 0, 10)),
    replace(PASSED, mechanism="costs $5 and $x^{$"),
    replace(PASSED, mechanism="a" * 500),
    replace(PASSED, mechanism="\\frac{", delta=1e-5),
]


@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_a_plot_draws(number):
    from matplotlib.figure import Figure

    report = STRANGE[number]
    figure = report.plot()
    assert type(figure) is Figure
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=50)
    assert file.getvalue().startswith(b"\x89PNG")


def test_a_plot_shows_the_figures():
    def texts(report):
        axes = report.plot().axes[0]
        words = [text.get_text().strip() for text in axes.texts]
        return words + [label.get_text() for label in axes.get_yticklabels()]

    shown = texts(REFUTED)
    assert f"{REFUTED.epsilon_lower:.4f}" in shown
    assert shown.count("infinite") == 2  # estimate and closed form
    assert shown[-3:] == ["certified", "estimate", "closed form"]
    assert f"{PASSED.epsilon_hat:.4f}" in texts(PASSED)
    low, high = PASSED.plot().axes[0].get_xlim()
    assert low == 0.0
    assert high > max(PASSED.claim, PASSED.epsilon_hat, PASSED.epsilon_lower)
    assert math.isfinite(REFUTED.plot().axes[0].get_xlim()[1])


def test_a_plot_needs_no_display_and_leaves_pyplot_alone():
    import sys

    had = "matplotlib.pyplot" in sys.modules
    PASSED.plot()
    assert ("matplotlib.pyplot" in sys.modules) is had


# Progress.


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, show, seconds, terminal):
    """What a bar writes while ten steps take some (simulated) seconds."""
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr("sys.stderr", stream)
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Progress("auditing", 100, show) as bar:
        for _ in range(10):
            now[0] += seconds / 10
            bar.advance(10)
        drawn = bar._bar is not None
    return drawn


@pytest.mark.parametrize(
    ("show", "seconds", "terminal", "drawn"),
    [
        (None, 10.0, False, False),
        (None, 0.5, True, False),
        (None, 10.0, True, True),
        (False, 10.0, True, False),
        (True, 0.5, False, True),
    ],
)
def test_when_a_bar_is_shown(monkeypatch, show, seconds, terminal, drawn):
    assert shown(monkeypatch, show, seconds, terminal) is drawn


def test_a_bar_changes_no_count(capsys):
    quiet = audit(Laplace(1.0), trials=10**6, rng=1, progress=False)
    assert audit(Laplace(1.0), trials=10**6, rng=1, progress=True) == quiet
    out, err = capsys.readouterr()
    # Never on standard output, and never what was counted so far.
    assert out == ""
    assert f"{quiet.counts.k}" not in err


def test_progress_is_asked_for_with_a_bool():
    with pytest.raises(TypeError, match=r"^progress must be True, False or None, got 'yes'$"):
        progress.Progress("x", 1, "yes")
