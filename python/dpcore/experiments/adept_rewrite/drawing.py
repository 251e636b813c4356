"""The picture of the experiment: accuracy and BLEU of rewrites against the true epsilon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...report.style import BLUE, GREY, INK, RED, WHITE
from ..drawing import SMALL, TEXT, add_legend, apply_style, make_canvas, tidy_axes
from .corpora import Texts
from .experiment import Result
from .rewriting import DELTA, Row
from .text import corpus_title
from .utility import majority_share

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_VARIANT_STYLES: dict[str, dict[str, Any]] = {
    "published": {"color": RED, "marker": "s"},
    "scaled": {"color": BLUE, "marker": "o", "linestyle": "--", "markerfacecolor": WHITE},
    "l1": {"color": "#2e7d32", "marker": "^"},
    "gaussian": {"color": "#b26a00", "marker": "D"},
}


def draw_figure(result: Result, ax: Any = None) -> Figure:
    """Draw accuracy above and BLEU below, a column for each corpus, at the middle width."""
    columns = len(result.texts)
    picture = make_canvas(4.6, ax)
    grid = picture.subplots(2, columns, sharex="col", squeeze=False)
    width = sorted(result.config.widths)[len(result.config.widths) // 2]
    for column, texts in enumerate(result.texts):
        rows = [row for row in result.rows if (row.corpus, row.hidden) == (texts.name, width)]
        above, below = grid[0, column], grid[1, column]
        above.set_title(f"{corpus_title(texts)}, n = {2 * width}", fontsize=TEXT)
        _draw_accuracy(above, rows, texts, result)
        _draw_bleu(below, rows, texts, result, width)
        below.set_xlabel(
            f"true epsilon, for any two texts ('gaussian': at delta {DELTA:g})", fontsize=TEXT
        )
    grid[0, 0].set_ylabel("accuracy of intents", fontsize=TEXT)
    grid[1, 0].set_ylabel("BLEU", fontsize=TEXT)
    add_legend(picture, grid[0, 0], 6, "upper")
    return apply_style(picture)


def _draw_accuracy(axes: Axes, rows: list[Row], texts: Texts, result: Result) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        found = [row.accuracy for row in mine]
        middle = [one.value for one in found]
        ends = [
            [max(0.0, one.value - one.low) for one in found],
            [max(0.0, one.high - one.value) for one in found],
        ]
        label = f"{name} (claim false)" if name == "published" else name
        axes.errorbar(
            [row.true for row in mine], middle, yerr=ends, label=label, markersize=4.0,
            linewidth=1.1, elinewidth=0.7, **_VARIANT_STYLES[name],
        )  # fmt: skip
        if name == "published":
            _annotate_claims(axes, mine)
    axes.axhline(
        result.clean[texts.name].accuracy.value, color=INK, linewidth=0.9, label="not rewritten"
    )
    axes.axhline(majority_share(texts), color=GREY, linestyle=":", linewidth=1.2, label="majority")
    axes.set_xscale("log")
    axes.margins(y=0.14)
    tidy_axes(axes)


def _annotate_claims(axes: Axes, rows: list[Row]) -> None:
    """Write the claimed epsilon at each point of the published system.

    The claims of all other systems are true.
    """
    for row in rows:
        axes.annotate(
            f"claimed {row.claimed:g}", (row.true, row.accuracy.low), (0, -2),
            textcoords="offset points",
            ha="center", va="top", fontsize=SMALL - 1, color=RED,
        )  # fmt: skip


def _draw_bleu(axes: Axes, rows: list[Row], texts: Texts, result: Result, width: int) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        axes.plot(
            [row.true for row in mine], [row.mean("bleu") for row in mine], markersize=4.0,
            linewidth=1.1, **_VARIANT_STYLES[name],
        )  # fmt: skip
    seen = set()
    for one in result.models:
        setup = one.setup
        if (setup.corpus, setup.hidden) == (texts.name, width) and setup.clip not in seen:
            seen.add(setup.clip)
            axes.axhline(one.bleu, color=GREY, linewidth=0.6)
            axes.annotate(
                f"{setup.clip} clip, no noise", (0.01, one.bleu), (0, 1.5),
                xycoords=("axes fraction", "data"), textcoords="offset points",
                fontsize=SMALL - 1, color=GREY,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(0.0, max(0.1, axes.get_ylim()[1]))
    tidy_axes(axes)
