"""How an audit is shown: text, HTML, a picture, a progress bar."""

from __future__ import annotations

import io
import math
import re
import sys
from dataclasses import replace

import pytest
from shared_messages import find_missing
from shared_pages import AUDITS

import dpcore
from dpcore import Counts, Laplace, Pair, audit, progress, published
from dpcore.attacks import Coordinatewise, MajorityVote
from dpcore.results.evidence import Finding

VOTE = MajorityVote()
NAMES = "refuted", "not refuted", "no claim", "nan"
REFUTED, PASSED, UNCLAIMED, KEPT = map(AUDITS.get, NAMES)
USUAL = audit(published.HalfNoise(1.0), trials=10**4, rng=1)


@pytest.mark.parametrize("report", [REFUTED, PASSED, UNCLAIMED, KEPT, USUAL])
def test_time_stands_on_the_last_line_and_nowhere_else(report):
    slower = replace(report, seconds=123.0, threads=7)
    lines, slow_lines = str(report).splitlines(), str(slower).splitlines()
    assert lines[:-1] == slow_lines[:-1]
    assert lines[-1] != slow_lines[-1]
    steps = r"\S+ s, [\d,]+ outputs in all \(probe \S+, fit \S+, count \S+, report \S+\)"
    time = rf"  time         {steps}; counted \S+ draws/s on 7 threads"
    assert re.fullmatch(time, slow_lines[-1])
    # Of merged parts of a run, which have no steps.
    merged = str(replace(slower, spent=())).splitlines()[-1]
    assert re.fullmatch(r"  time         123 s, \S+ draws/s on 7 threads", merged)
    assert lines[0] == report.name
    assert all(line.startswith("  ") for line in lines[1:])
    # The same seed prints the same text, the last line apart.
    attack = None if report is USUAL else VOTE
    again = audit(report.mechanism, trials=report.trials, rng=1, attack=attack)
    assert str(again).splitlines()[:-1] == lines[:-1]


def rows(report):
    return {line[2:14].strip(): line[15:] for line in str(report).splitlines()[1:]}


def notes(report):
    """There may be several of them."""
    return [line[15:] for line in str(report).splitlines() if line.startswith("  note ")]


def test_what_a_report_says():
    shown, c = rows(REFUTED), REFUTED.counts
    bound = f"epsilon >= {REFUTED.epsilon_lower:.4f} (95 % confidence, Clopper-Pearson)"
    known = {
        "verdict": "refuted", "claim": "epsilon <= 1", "certified": bound,
        "estimate": "infinite (empirical loss, not a bound)",
        "counts": f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'",
        "witness": "majority vote for x (2 of 2 entries vote), x in the numerator",
        "pair": "x = [0., 0.], x' = [0.5, 0.5]",
    }  # fmt: skip
    assert {label: shown[label] for label in known} == known
    assert shown["closed form"].startswith("infinite")
    assert shown["seed"].startswith("1 (trials 0 to 100,000; blocks of 65,536, integer route, ")
    assert notes(REFUTED) == []
    assert "NaN entries" not in shown
    assert rows(KEPT)["NaN entries"] == f"{KEPT.nan:,} on x, {KEPT.nan_prime:,} on x'"
    assert rows(UNCLAIMED)["claim"] == "none given"
    assert repr(REFUTED).startswith("<Audit of DPText(epsilon=1.0, sensitivity=1.0, nan='zero'): ")


def test_no_report_says_that_a_mechanism_is_private():
    for report in (PASSED, UNCLAIMED):
        assert not re.search(r"is private|passed|is safe|proved|no leak", str(report).lower())


def test_a_note_says_what_this_event_would_have_refuted_and_no_more():
    for report in (PASSED, replace(USUAL, claim=7.5)):
        assert (report.verdict, notes(report)[-1]) == ("not refuted by this attack", report.power)
        assert report.power.startswith("power: ")
    assert re.fullmatch(
        r"power: the claim would be refuted with 95 % probability if this event were [\d.]+ times "
        r"as likely on x' as on x\. Other events were not tested\.",
        PASSED.power,
    )
    # An interrupted audit says so.
    small = audit(published.HalfNoise(1.0), trials=50, rng=1, attack=VOTE)
    partial = replace(small, partial=True, stop="interrupted", bound="anytime")
    assert notes(partial)[0] == "interrupted: only the trials shown were counted"
    assert notes(small) == [small.power]
    # Nothing was tested, or there is nothing left to say.
    assert REFUTED.power == UNCLAIMED.power == ""


def test_the_row_of_the_certificate_names_bound_and_stopping_rule():
    def certified(report, **changed):
        return re.search(r"\((.*)\)$", rows(replace(report, **changed))["certified"])[1]

    for changed, words in (
        ({"bound": "exact"}, "95 % confidence, exact unconditional test"),
        ({"bound": "conditional", "confidence": 0.9}, "90 % confidence, conditional binomial"),
        ({"bound": "anytime", "stop": "interrupted", "partial": True},
         "95 % confidence, anytime valid, interrupted"),
        ({"bound": "anytime", "stop": "looked"},
         "95 % confidence, anytime valid, merged after looking"),
    ):  # fmt: skip
        assert certified(PASSED, **changed) == words
    arguments = {"claim": 9.0, "rng": 1, "stop": "refuted", "block": 100}
    for trials, many in ((100, "1 slice"), (200, "2 slices")):
        early = audit(published.HalfNoise(1.0), trials=trials, **arguments)
        words = f"95 % confidence, anytime valid, test martingale over {many}"
        assert certified(early) == words


def test_rounding_has_a_row_of_its_own():
    found = Finding(dpcore.events.Above(len, 0.5), "x", Counts(90, 100, 1, 100), 0.0, 0.95)
    report = replace(PASSED, floating_point=found)
    assert report.epsilon_lower == PASSED.epsilon_lower
    assert rows(report)["rounding"] == (
        f"the code as it runs: epsilon >= {found.epsilon_lower:.4f} (not part of the verdict): "
        "len >= 0.5; 90 of 100 on x, 1 of 100 on x'"
    )
    assert "(Mironov 2012): if you release outputs, round them" in rows(report)["meaning"]
    counted = replace(report, floats=True)
    assert counted.verdict == "refuted"
    assert "(counted in the verdict)" in rows(counted)["rounding"]
    assert "95 % confidence, half of it for rounding, Clopper" in rows(counted)["certified"]
    assert not {"rounding", "meaning"} & set(rows(PASSED))


def test_pooled_coordinates_are_shown_with_what_they_assume():
    pair = dpcore.pairs.zeros_ones(3)
    report = audit(Laplace(1.0), pair, trials=1000, claim=9.0, rng=1, attack=Coordinatewise())
    (c,) = report.pooled
    shown = rows(report)
    assert shown["assuming"].startswith("assumed, not tested: the coordinates are independent")
    counted = f"{c.k:,} of 3,000 on x, {c.k_prime:,} of 3,000 on x' (group of 3)"
    assert shown["coordinates"] == counted
    assert not {"assuming", "coordinates"} & set(rows(PASSED))
    # What contradicts the assumptions is a note.
    said = "counts on x vary more from block to block than those of independent draws would"
    assert notes(replace(REFUTED, checks=(said,))) == [said]


def test_long_inputs_are_shortened():
    report = audit(Laplace(1.0), dpcore.pairs.zeros_ones(1000), trials=100, attack=VOTE)
    assert rows(report)["pair"].endswith("(1000 entries)")

    def mechanism(x, size, rng):
        return rng.normal(size=size)

    attack = lambda a, b, pair: lambda o: o > 0  # noqa: E731
    report = audit(mechanism, ("a" * 1000, "line\nbreak"), trials=100, attack=attack)
    assert len(rows(report)["pair"]) < 150

    class Table:
        def __repr__(self):
            return "a  b\n1  2\n"

    report = audit(mechanism, (Table(), 1), trials=100, attack=attack)
    assert rows(report)["pair"] == "x = a b 1 2 (Table), x' = 1 (int)"


def test_html_is_escaped():
    evil = replace(PASSED, mechanism="<script>alert(1)</script>&\"'")
    page = evil._repr_html_()
    assert find_missing(page, "<script>", "&lt;script&gt;") == ["<script>"]
    assert page.count("<tr>") == str(evil).count("\n")
    assert "<b>x</b>" not in replace(evil, pair=Pair("<b>x</b>", "<i>y</i>"))._repr_html_()


def test_html_tells_the_verdicts_apart():
    pages = "".join(report._repr_html_() for report in (REFUTED, PASSED, UNCLAIMED))
    kinds = re.findall(r'<th scope="row">verdict</th><td class="(\w+)">', pages)
    assert kinds == ["refuted", "stands", "untested"]


STRANGE = [
    REFUTED, PASSED, UNCLAIMED, replace(PASSED, claim=1e300), replace(PASSED, claim=0.0),
    replace(PASSED, counts=Counts(0, 10, 0, 10)), replace(PASSED, counts=Counts(10, 10, 0, 10)),
    replace(PASSED, mechanism="costs $5 and $x^{$"), replace(PASSED, mechanism="a" * 500),
    replace(PASSED, mechanism="\\frac{", delta=1e-5), USUAL,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(STRANGE)))
def test_a_plot_draws(number):
    from matplotlib.figure import Figure

    figure, file = STRANGE[number].plot(), io.BytesIO()
    assert isinstance(figure, Figure)
    figure.savefig(file, format="png", dpi=50)
    assert file.getvalue().startswith(b"\x89PNG")


def test_a_plot_shows_the_figures():
    def texts(report):
        axes = report.plot().axes[0]
        words = [text.get_text().strip() for text in axes.texts]
        return words + [label.get_text() for label in axes.get_yticklabels()]

    shown = texts(REFUTED)
    assert f"{REFUTED.epsilon_lower:.4f}" in shown
    assert (shown.count("infinite"), shown[-3:]) == (2, ["certified", "estimate", "closed form"])
    assert f"{PASSED.epsilon_hat:.4f}" in texts(PASSED)
    low, high = PASSED.plot().axes[0].get_xlim()
    assert 0.0 == low < max(PASSED.claim, PASSED.epsilon_hat, PASSED.epsilon_lower) < high
    assert math.isfinite(REFUTED.plot().axes[0].get_xlim()[1])


def test_a_page_needs_no_display_and_leaves_pyplot_alone(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it fails
    assert "<svg" in PASSED.to_html()


# Progress.


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(monkeypatch, show, seconds, terminal):
    """Whether a bar is drawn while ten steps take some (simulated) seconds."""
    monkeypatch.setattr("sys.stderr", Terminal() if terminal else io.StringIO())
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with progress.Progress("auditing", 100, show) as bar:
        for _ in range(10):
            now[0] += seconds / 10
            bar.advance(10)
        return bar._display is not None


@pytest.mark.parametrize(
    ("show", "seconds", "terminal", "drawn"),
    [
        (None, 10.0, False, False), (None, 0.5, True, False), (None, 10.0, True, True),
        (False, 10.0, True, False), (True, 0.5, False, True),
    ],
)  # fmt: skip
def test_when_a_bar_is_shown(monkeypatch, show, seconds, terminal, drawn):
    assert shown(monkeypatch, show, seconds, terminal) is drawn


def test_a_bar_changes_no_count(capsys):
    arguments = {"trials": 10**6, "rng": 1, "attack": VOTE}
    quiet = audit(Laplace(1.0), progress=False, **arguments)
    assert audit(Laplace(1.0), progress=True, **arguments) == quiet
    out, err = capsys.readouterr()
    # Never on standard output, and never what was counted so far.
    assert (out, f"{quiet.counts.k}" in err) == ("", False)
