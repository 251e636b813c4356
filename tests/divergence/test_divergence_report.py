"""Estimates as text and as pictures: belief first, nothing hidden, and what stays grey."""

from __future__ import annotations

import io
import math
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure
from shared_divergence import GRID, make_certificate, make_estimate
from shared_messages import find_missing

from dpcore.divergence import Beside, Diagnostics, Epsilon, report
from dpcore.divergence.conversions import Line, line
from dpcore.divergence.reliability import ESTIMATE, REFUTED, SATURATED, UNRESOLVED
from dpcore.divergence.report import draw_convergence, draw_estimate


def full():
    value = np.stack([GRID / 8.0, np.full(len(GRID), -0.02)])
    return make_estimate(
        value=value,
        beside=Beside("score", value + 0.01, np.full(value.shape, 0.03)),
        certificate=make_certificate(value - 0.05),
        notes=("a word " * 30, "another"),
        error="bootstrap",
    )


def row(text, order):
    """The row of an order in the table."""
    return next(line for line in text.splitlines() if line.split()[:1] == [order])


def test_belief_comes_first_and_time_last():
    lines = str(full()).splitlines()
    label, belief = lines[0].split(maxsplit=1)
    said = "both directions: estimate only, orders 1 to 2.853; not resolved at this alpha, orders"
    assert (label, belief[: len(said)]) == ("belief", said)
    reason = next(i for i, line in enumerate(lines) if line.split()[:1] == ["reason"])
    assert reason < next(i for i, line in enumerate(lines) if "order  " in line)
    assert (lines[-1].split(), lines[-2].split()) == (["time", "0.123", "s"], ["seed", "123"])


@pytest.mark.parametrize(
    "estimate", [full(), make_estimate(), make_estimate([2.0], [[math.inf], [-1e4]])]
)
def test_no_line_is_too_wide(estimate):
    for one in report.estimate_text(estimate).splitlines():
        assert len(one) <= 100
        assert one == one.rstrip()


def test_belief_of_each_direction_by_ranges():
    belief = np.array([[ESTIMATE, ESTIMATE, SATURATED], [REFUTED, REFUTED, REFUTED]])
    estimate = make_estimate([1.0, 2.0, 4.0], belief=belief)
    assert report.reliability_lines(estimate) == [
        "D(P0||P1): estimate only, orders 1 to 2; saturated, order 4",
        "D(P1||P0): refuted by its own certificate, at every order",
    ]
    broken = np.array([[ESTIMATE, UNRESOLVED, ESTIMATE]] * 2)
    said = "both directions: estimate only, orders 1, 4; not resolved at this alpha, order 2"
    assert report.reliability_lines(make_estimate([1.0, 2.0, 4.0], belief=broken)) == [said]
    single = make_estimate([2.0], belief=np.array([[ESTIMATE], [UNRESOLVED]]))
    assert report.reliability_lines(single)[1] == "D(P1||P0): not resolved at this alpha, order 2"


def test_runs_cover_every_order_once():
    assert report.find_equal_runs(["a", "a", "b", "a"]) == [("a", 0, 2), ("b", 2, 3), ("a", 3, 4)]
    assert report.find_equal_runs([]) == []


def test_every_value_that_is_not_an_estimate_is_marked():
    belief = np.array([[ESTIMATE, UNRESOLVED], [SATURATED, REFUTED]])
    text = report.estimate_text(
        make_estimate([1.0, 2.0], belief=belief, value=[[0.1, 0.2], [0.3, -0.4]])
    )
    assert row(text, "1").split() == ["1", "0.100", "+-", "0.020", "3.900", "0.300", "^", "3.900"]
    assert row(text, "2").split() == ["2", "0.200", "?", "3.900", "-0.400", "!-", "3.900"]
    for words in ("^ saturated", "? not resolved at this alpha", "- negative: raw value kept"):
        assert words in text
    # Control: what is believed has no mark and no legend.
    clean = report.estimate_text(make_estimate([1.0, 2.0], belief=np.full((2, 2), ESTIMATE)))
    assert row(clean, "2").split() == ["2", "0.250", "+-", "0.020", "3.900", "0.286", "+-",
                                       "0.020", "3.900"]  # fmt: skip
    assert "not resolved" not in clean
    assert "negative" not in clean


def test_infinite_values_and_missing_ceilings():
    estimate = make_estimate(
        [2.0], [[math.inf], [-math.inf]], np.full((2, 1), UNRESOLVED),
        ceiling=np.full((2, 1), math.nan), error=None,
    )  # fmt: skip
    text = report.estimate_text(estimate)
    assert row(text, "2").split() == ["2", "+inf", "?", "-inf", "?-"]
    assert "ceiling" not in text
    assert "nan" not in text
    assert not find_missing(text, "no standard errors", "0.125 and 0.143 (D_1 in both directions)")


def test_long_grids_are_thinned_and_short_ones_are_not():
    estimate = make_estimate(alpha_max=(float(GRID[11]), float(GRID[13])))
    shown = report.choose_table_rows(estimate)
    assert shown == sorted(set(shown))
    assert 10 <= len(shown) <= 12
    assert {0, 11, 13, len(GRID) - 1} <= set(shown)
    assert GRID[shown[0]] == 1.0
    assert report.choose_table_rows(make_estimate(np.linspace(1.0, 2.0, 12))) == list(range(12))
    text = report.estimate_text(estimate)
    assert f"{len(shown)} of 37 orders" in text
    rows = [line.split()[0] for line in text.splitlines() if line.endswith("3.900")]
    assert rows == [f"{GRID[i]:.4g}" for i in shown]


def test_certificates_the_other_method_and_the_sample_are_told():
    seen = Diagnostics(
        np.full((2, 37), 9.0), np.array([0.25, -0.0]), np.array([0.5, 0.125]), 4.0, {}, "whiten"
    )
    text = " ".join(str(replace(full(), diagnostics=seen, depth=(20, 40))).split())
    figures = row(str(full()), "1").split()
    assert figures[:6] == ["1", "0.125", "+-", "0.020", "3.900", "0.075"]
    assert figures[6:] == ["-0.020", "+-", "0.020", "-", "3.900", "-0.070"]
    assert "score at order 1: 0.135 +- 0.030 and -0.010 +- 0.030" in text
    assert "D(P0||P1): event s > 1, 200 of 250 against 50 of 250" in text
    assert "1,000 and 500 rows of 2 coordinates, scale whiten" in text
    assert "50 % and 12.5 % of them on repeated values" in text
    assert "25 % and 0 % on repeated values that the other set lacks" in text
    assert "balls reach 20 and 40 rows of the other set, bootstrap standard errors" in text
    assert text.count("note a word") == 1
    assert "note another" in text


def epsilon(**fields):
    known = {
        "delta": 1e-5, "epsilon_lower": 1.25, "epsilon_hat": 2.5, "epsilon_rdp": 3.0, "alpha": 4.0,
        "line": Line(0.1, 0.3, 3.5, 3.0, 1e-5), "confidence": 0.9, "extrapolated": False,
    }  # fmt: skip
    return Epsilon(**{**known, **fields})


def test_three_labelled_figures():
    lines = str(epsilon()).splitlines()
    assert lines[0] == "epsilon at delta = 1e-05"
    assert lines[1].split()[:2] == ["epsilon_lower", "1.2500"]
    assert "certified, 90 % confidence" in lines[1]
    assert lines[2].split()[:3] == ["epsilon_hat", "2.5000", "estimate:"]
    assert lines[3].split()[:2] == ["epsilon_rdp", "3.0000"]
    text = " ".join(" ".join(lines).split())
    assert "neither an upper nor a lower bound; order 4 decided" in text
    assert "its line 3.5000 conversion of the line 0.1 + 0.3 alpha" in text
    assert "EXTRAPOLATED" not in text


def test_missing_figures_have_reasons():
    far = "extrapolated: this sample sees delta from .1"
    reasons = "no order above one is resolved " * 5, far
    fields = dict.fromkeys(["epsilon_lower", "epsilon_rdp", "alpha", "line"])
    fields |= {"epsilon_hat": math.inf, "extrapolated": True, "reasons": reasons}
    text = report.epsilon_text(epsilon(**fields))
    lines = text.splitlines()
    assert lines[0].endswith("(EXTRAPOLATED)")
    assert [line.split()[1] for line in lines[1:4]] == ["none", "infinite", "none"]
    assert "its line" not in text
    assert all(len(line) <= 100 for line in lines)
    assert " ".join(text.split()).count("no order above one") == 5
    assert lines[-1].strip() == reasons[1]


# Pictures of estimates: what they hold, and what stays grey.


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def spans(panel):
    """Shaded ranges of orders (rectangles that axvspan leaves)."""
    return sorted(
        (patch.get_x(), patch.get_x() + patch.get_width())
        for patch in panel.patches
        if patch.get_height() == 1.0
    )


def words(panel):
    return [text.get_text().replace("\n", " ") for text in panel.texts]


def written(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def test_what_is_not_resolved_is_shaded_and_named():
    belief = np.tile(np.where(GRID <= 3.0, ESTIMATE, UNRESOLVED), (2, 1))
    belief[1, GRID > 10.0] = SATURATED
    figure = draw_estimate(make_estimate(belief=belief))
    first, second = figure.axes
    assert len(spans(first)) == 1
    low, high = spans(first)[0]
    assert GRID[GRID <= 3.0].max() < low < GRID[GRID > 3.0].min()
    assert high == pytest.approx(first.get_xlim()[1])
    assert words(first) == ["not resolved"]
    assert (words(second), len(spans(second))) == (["not resolved", "saturated"], 2)
    assert [panel.get_title(loc="left") for panel in figure.axes] == ["D(P0||P1)", "D(P1||P0)"]
    # Control: nothing is shaded where everything is resolved.
    clean = draw_estimate(make_estimate(belief=np.full((2, len(GRID)), ESTIMATE)))
    assert [spans(panel) for panel in clean.axes] == [[], []]
    refuted = draw_estimate(make_estimate(belief=np.full((2, len(GRID)), REFUTED)))
    assert words(refuted.axes[0]) == ["refuted by its own certificate"]


def test_certified_bound_other_method_and_line():
    value = np.stack([GRID / 8.0, GRID / 7.0])
    estimate = make_estimate(
        beside=Beside("score", value * 0.9, np.full(value.shape, 0.03)),
        certificate=make_certificate(value - 0.1),
    )
    figure = draw_estimate(estimate)
    told = labels(figure)
    assert "certified from below, 95 %" in told
    assert "score, beside" in told
    assert "line above it, for delta = 10/min(N0, N1) = 0.02" in told
    resolved = (GRID > 1.0) & (GRID <= 3.0)
    for direction, panel in enumerate(figure.axes):
        drawn = {item.get_label(): item for item in panel.lines}
        certified = drawn["certified from below, 95 %"].get_ydata()
        assert np.array_equal(certified, value[direction] - 0.1)
        ends = drawn["line above it, for delta = 10/min(N0, N1) = 0.02"]
        known = line(GRID[resolved], value[direction][resolved], 0.02)
        assert ends.get_xdata() == pytest.approx(GRID[resolved][[0, -1]])
        assert ends.get_ydata() == pytest.approx(known.xi + known.rho * ends.get_xdata())
        # The line is above every resolved point.
        assert np.all(known.xi + known.rho * GRID[resolved] >= value[direction][resolved] - 1e-12)
    assert not any(text.startswith("certified") for text in labels(draw_estimate(make_estimate())))


def test_no_line_without_a_resolved_order_or_with_too_few_rows():
    none = draw_estimate(make_estimate(belief=np.full((2, len(GRID)), UNRESOLVED)))
    assert not any(text.startswith("line") for text in labels(none))
    few = draw_estimate(make_estimate(sizes=(10, 1000)))
    assert not any(text.startswith("line") for text in labels(few))
    # An order that is not resolved ends the line, though others beyond it are.
    belief = np.full((2, len(GRID)), ESTIMATE, dtype="U40")
    belief[:, 10] = UNRESOLVED
    panel = draw_estimate(make_estimate(belief=belief)).axes[0]
    drawn = {item.get_label(): item for item in panel.lines}
    label = "line above it, for delta = 10/min(N0, N1) = 0.02"
    assert drawn[label].get_xdata()[-1] == GRID[9]


def test_a_ceiling_out_of_the_picture_is_told():
    assert "ceiling: every ball holds all rows" in labels(draw_estimate(make_estimate()))
    far = draw_estimate(make_estimate(value=np.stack([GRID * 0.01, GRID * 0.01])))
    assert "ceiling from 3.9 up: above this picture" in labels(far)
    assert far.axes[0].get_ylim()[1] < 1.0


@pytest.mark.parametrize(
    "value", [[[math.inf], [2.0]], [[-math.inf], [-0.5]], [[math.nan], [1e9]], [[0.0], [0.0]]]
)
def test_single_orders_and_odd_values_can_be_drawn(value):
    figure = draw_estimate(make_estimate([2.0], value, np.full((2, 1), UNRESOLVED)))
    low, high = figure.axes[0].get_ylim()
    assert -math.inf < low < high
    assert written(figure).startswith(b"\x89PNG")
    told = labels(figure)
    assert ("+inf" in told, "-inf" in told) == (value[0][0] == math.inf, value[0][0] == -math.inf)
    assert ("below 0: raw values, kept" in told) == (value[1][0] < 0)


def test_every_finite_value_is_inside_the_limits():
    value = np.stack([GRID / 8.0, -GRID])
    figure = draw_estimate(make_estimate(value=value))
    low, high = figure.axes[0].get_ylim()
    assert low < value.min() <= value.max() < high
    assert figure.axes[1].get_ylim() == (low, high)


def test_given_axes_are_used():
    own = Figure()
    panels = own.subplots(1, 2)
    assert draw_estimate(make_estimate(), panels) is own
    assert (len(own.axes), own.legends) == (2, [])
    assert panels[0].get_legend() is not None
    with pytest.raises(ValueError, match=r"^ax must be 2 axes, got 1"):
        draw_estimate(make_estimate(), panels[:1])


def test_convergence_shows_running_mean_and_deviation():
    replicates = 1e6 + np.random.default_rng(4).normal(size=(50, 2, 3))
    fields = {"belief": np.full((2, 3), ESTIMATE), "replicates": replicates, "error": "bootstrap"}
    estimate = make_estimate([1.0, 2.0, 4.0], **fields)
    figure = draw_convergence(estimate)
    means, spreads = figure.axes
    assert len(means.lines) == len(spreads.lines) == 6
    drawn = {item.get_label(): item for item in means.lines}
    running = [replicates[: n + 1, 1, 2].mean() for n in range(50)]
    assert np.allclose(drawn["D(P1||P0), order 4"].get_ydata(), running, rtol=1e-14)
    assert drawn["D(P1||P0), order 2"].get_color() == spreads.lines[3].get_color()
    deviations = [np.std(replicates[:n, 1, 1], ddof=1) for n in range(2, 51)]
    assert np.allclose(spreads.lines[3].get_ydata(), deviations, rtol=1e-6)
    assert written(figure).startswith(b"\x89PNG")
    panels = Figure().subplots(1, 2)
    assert draw_convergence(estimate, panels) is panels[0].figure


def test_convergence_follows_orders_that_are_finite_and_resolved():
    replicates = np.random.default_rng(4).normal(size=(30, 2, len(GRID)))
    replicates[3, 0, 0] = math.inf
    figure = draw_convergence(make_estimate(replicates=replicates, error="subsample"))
    told = labels(figure)
    assert {text.split()[-1] for text in told} == {"1.1", "1.949", "2.853"}
    assert "subsample replicates" in {panel.get_xlabel() for panel in figure.axes}


def test_convergence_needs_replicates():
    need = r"^error must be 'bootstrap' or 'subsample' for this picture: .* got 'jackknife'$"
    with pytest.raises(ValueError, match=need):
        draw_convergence(make_estimate())
    nothing = np.full((5, 2, len(GRID)), math.inf)
    with pytest.raises(ValueError, match=r"^replicates must be finite at one order"):
        draw_convergence(make_estimate(replicates=nothing, error="bootstrap"))
