"""Pictures of estimates: what they hold, and what stays grey."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from shared_divergence import GRID, make_certificate, make_estimate

from dpcore.divergence.record import Beside, line
from dpcore.divergence.reliability import ESTIMATE, REFUTED, SATURATED, UNRESOLVED
from dpcore.divergence.report import draw_convergence, draw_estimate


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
