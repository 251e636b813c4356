"""Pictures: pyplot for users and for nobody else, the style in force, no legend on a curve."""

from __future__ import annotations

import inspect
import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from shared_records import reachable

import dpcore
from dpcore import Laplace, divergence
from dpcore.report import figures

AUDIT = dpcore.audit(Laplace(1.0), trials=10**4, claim=1.0, rng=1)
REFUTED = dpcore.audit(Laplace(1.0), trials=10**4, claim=0.3, rng=1)
OUTPUTS = dpcore.audit_outputs([3, 1, 2, 5], [0, -1, 1.5, 2.5], rows="one_run", claim=1.0, rng=1)


ROWS = np.random.default_rng(1).normal(size=(2, 60, 2))
ESTIMATE = divergence.renyi(ROWS[0], ROWS[1] + 0.5, error="bootstrap", rng=1)
PLAN = dpcore.plan(1.0, true_epsilon=1.2, mass=0.1)

ONE = [
    AUDIT.plot, AUDIT.plot_tradeoff, AUDIT.plot_profile, REFUTED.plot, OUTPUTS.plot, PLAN.plot,
]  # fmt: skip
TWO = [ESTIMATE.plot, ESTIMATE.plot_convergence]


def test_every_plot_takes_axes():
    plots = {
        (cls, name): member
        for cls in reachable()
        for name, member in inspect.getmembers(cls, inspect.isfunction)
        if name.startswith("plot")
    }
    assert len(plots) >= 20
    arguments = {found: inspect.signature(plot).parameters for found, plot in plots.items()}
    assert not [found for found, names in arguments.items() if "ax" not in names]


@pytest.mark.parametrize("plot", [*ONE, *TWO])
def test_a_users_plot_is_a_figure_of_pyplot(plot):
    figure = plot()
    assert plt.get_fignums() == [figure.number]
    assert plt.gcf() is figure
    figure.draw_without_rendering()


@pytest.mark.parametrize("plot", [*ONE, *TWO])
def test_axes_that_are_given_are_drawn_on(plot):
    figure, axes = plt.subplots(1, 2, layout="constrained")
    assert plot(ax=axes[0]) is figure
    assert plt.get_fignums() == [figure.number]
    assert not axes[1].has_data()
    figure.draw_without_rendering()
    several = figure.subfigs[0].axes if figure.subfigs else [axes[0]]
    assert any(panel.has_data() for panel in several)


@pytest.mark.parametrize("plot", TWO)
def test_a_pair_of_axes_is_drawn_on(plot):
    figure, axes = plt.subplots(1, 2)
    assert plot(ax=axes) is figure
    assert all(panel.has_data() for panel in axes)
    with pytest.raises(ValueError, match=r"^ax must be 2 axes, got 1$"):
        plot(ax=[axes[0]])


@pytest.mark.parametrize("plot", [ONE[0], TWO[0]])
def test_what_is_no_axes_is_named(plot):
    with pytest.raises(TypeError, match=r"^ax must be axes or a figure of matplotlib, got 'here'$"):
        plot(ax="here")


def test_axes_without_a_place_cannot_be_divided():
    loose = plt.figure().add_axes((0, 0, 1, 1))
    AUDIT.plot(ax=loose)
    with pytest.raises(ValueError, match=r"^ax must be axes that plt.subplots made"):
        ESTIMATE.plot(ax=loose)


def drawn(figure):
    """Colours of words, lines and patches that a reader has to see."""
    texts = [t for t in figure.findobj(matplotlib.text.Text) if t.get_text() and t.get_visible()]
    lines = [line for line in figure.findobj(matplotlib.lines.Line2D) if line.get_visible()]
    lines = [one for one in lines if len(one.get_xdata()) and one.get_linestyle() != "None"]
    return {to_rgb(artist.get_color()) for artist in [*texts, *lines]}


def light(rgb):
    return 0.2126 * rgb[0] + 0.7152 * rgb[1] + 0.0722 * rgb[2]


@pytest.mark.parametrize("plot", [*ONE, *TWO])
def test_a_picture_is_readable_on_black_and_on_white(plot):
    with plt.style.context("dark_background"):
        figure = plot()
        assert to_rgb(figure.get_facecolor()) == (0, 0, 0)
        assert min(map(light, drawn(figure))) > 0.3
    assert max(map(light, drawn(plot()))) < 0.6


@pytest.mark.parametrize("plot", ONE)
def test_sizes_and_colours_are_those_of_the_style(plot):
    with plt.rc_context({"figure.figsize": (12.0, 9.0), "font.size": 20}):
        large = plot()
    small = plot()
    assert np.allclose(large.get_size_inches() / (12.0, 9.0), small.get_size_inches() / (6.4, 4.8))
    texts = (one.findobj(matplotlib.text.Text) for one in (large, small))
    sizes = np.array([[text.get_fontsize() for text in every] for every in texts])
    assert np.allclose(sizes[0] / sizes[1], 2.0)


def test_no_legend_lies_on_a_curve():
    for plot in ONE:
        assert all(axes.get_legend() is None for axes in plot().axes)
    for plot in TWO:
        figure = plot()
        assert all(axes.get_legend() is None for axes in figure.axes)
        assert len(figure.legends) == 1
        figure.draw_without_rendering()
        below = figure.legends[0].get_window_extent().y1
        assert below <= min(axes.get_window_extent().y0 for axes in figure.axes)
    assert "claim 0.3" in [text.get_text() for text in REFUTED.plot_tradeoff().axes[0].texts]


def test_pages_and_files_leave_pyplot_alone(monkeypatch, tmp_path, run):
    from dpcore.experiments import reproduce

    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # an import of it fails
    assert AUDIT.to_html().count("<svg") == 3
    with pytest.raises(ImportError):
        AUDIT.plot()
    picture = tmp_path / "a.png"
    assert run(f"audit laplace --epsilon 1 --trials 1000 --seed 1 --plot {picture}")[0] == 0
    assert picture.stat().st_size > 1000
    reproduce("habernal2022-figure2", tmp_path, trials=1000)
    assert len(list(tmp_path.glob("habernal2022-figure2.*"))) == 3


def test_a_figure_of_ones_own_is_drawn_on_in_the_style_of_the_package():
    with plt.style.context("dark_background"), figures.use_own_style() as figure:
        assert AUDIT.plot(ax=figure) is figure
        assert to_rgb(figure.get_facecolor()) == (1, 1, 1)
        assert to_rgb(figure.axes[0].patches[0].get_facecolor()) == to_rgb(figures.BLUE)
    assert not plt.get_fignums()


def test_the_package_s_colours_become_those_of_the_style():
    with plt.style.context("dark_background"):
        picture = figures.panel_figure(None, (4, 3))
        axes = picture.subplots()
        axes.plot([0, 1], color=figures.BLUE, marker="o", markerfacecolor=figures.WHITE)
        axes.fill_between([0, 1], [1, 2], color=figures.RED, alpha=0.5)
        axes.annotate("a", (0, 0), color=figures.INK, bbox={"facecolor": figures.WHITE})
        axes.bar([1], [1], color=figures.GREY)
        assert figures.restyle_figure(picture) is picture
        cycle = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    line, band, text = axes.lines[0], axes.collections[0], axes.texts[0]
    assert to_rgb(line.get_color()) == to_rgb(cycle[0])
    assert band.get_facecolor()[0] == pytest.approx([*to_rgb(cycle[1]), 0.5])
    assert to_rgb(text.get_color()) == (1, 1, 1)
    behind = line.get_markerfacecolor(), text.get_bbox_patch().get_facecolor()
    assert [to_rgb(colour) for colour in behind] == [(0, 0, 0)] * 2
    assert to_rgb(axes.patches[0].get_facecolor()) == pytest.approx((0.65, 0.65, 0.65))


@pytest.fixture
def formatter():
    """What a notebook shows figures with."""
    found = pytest.importorskip("IPython.core.formatters").DisplayFormatter()
    found.formatters["image/png"].for_type(Figure, lambda figure: b"png")
    return found


def test_a_notebook_shows_the_value_of_a_cell_once(monkeypatch, formatter):
    figure = AUDIT.plot()
    assert "image/png" in formatter.format(figure)[0]
    assert plt.get_fignums()  # a window stays
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "inline")
    assert "image/png" in formatter.format(figure)[0]
    # The inline backend shows at the end of a cell whatever is open.
    assert not plt.get_fignums()
    assert isinstance(figures.axes_of(figure.axes[0], (1, 1)).figure, Figure)


@pytest.mark.parametrize("panels", [False, True])
def test_a_notebook_shows_a_picture_on_given_axes_once(monkeypatch, formatter, panels):
    monkeypatch.setattr(matplotlib, "get_backend", lambda: "inline")
    figure, (left, right) = plt.subplots(1, 2)
    # The control: what nothing of ours was drawn on is open, and is shown again.
    assert "image/png" in formatter.format(figure)[0]
    assert plt.get_fignums() == [figure.number]
    if panels:
        figures.panel_figure(left, (1.0, 1.0))
    else:
        assert AUDIT.plot(left) is figure
    assert right.figure is figure
    assert "image/png" in formatter.format(figure)[0]
    assert not plt.get_fignums()
