"""The text, the picture, the page and the plain data of a sweep."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ...divergence.reliability.belief import ESTIMATE
from ...report.card import make_card
from ...report.encoding import encode_value
from ...report.figures import (
    cycle_colour,
    get_canvas,
    get_whole_figure,
    relative_size,
    text_colour,
    thin_axes,
)
from ...report.page import page_of_table
from ...report.text import align_rows
from .measuring import FIGURES, ORDERS
from .sweeping import Sweep, SweepPoint

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMAT: Final = "dpcore.text.redaction.sweep/1"

_SWEEP_HEADER: Final = (
    "policy", "level", "masked", "attack", "sd", "interval", "counts", "trees", "AUC", "TPR", "KL",
    "D_2", "null", "certified", "linked", "by bag", "utility",
)  # fmt: skip
_COLUMN_NOTES: Final = (
    "attack: accuracy on the set, mean and sd over the splits, interval of the first; counts: from "
    "the numbers of masks and words alone; trees: boosted trees on vectors; TPR at 5 % false "
    "positives; KL and D_2 in nats, the larger direction, ? = not resolved or saturated in the "
    "first split; null: 95 % quantile of D_2 on permuted labels; certified: D_2 in the first "
    'split, from below; linked: by length and places (style "mask"), and by the bag of kept words'
)


def list_points(found: Sweep) -> list[tuple[str, ...]]:
    """Return the rows of the table, the header first."""
    return [_SWEEP_HEADER, *map(_list_figures, found.points)]


def _list_figures(point: SweepPoint) -> tuple[str, ...]:
    kl, d2 = point.mean("divergence").max(axis=0)
    is_believed, bound = _read_order_two(point)
    belief, accuracy = "" if is_believed else "?", point.attack.accuracy
    figures = (
        f"{point.mean('accuracy'):.3f}", _write_number(point.sd("accuracy"), 3),
        f"{accuracy.low:.2f}-{accuracy.high:.2f}", f"{point.mean('counts_only'):.2f}",
        f"{point.mean('boosted_trees'):.2f}", f"{point.mean('auc'):.2f}",
        f"{point.mean('true_positive_rate'):.2f}", f"{kl:.2f}", f"{d2:.2f}{belief}",
        f"{_null_quantile(point):.2f}", f"{bound:.2f}",
        *(f"{point.linkages[place].share:.3f}" for place in (0, -1)),
        _write_number(point.mean("utility"), 2),
    )  # fmt: skip
    level = "-" if point.level is None else f"{point.level:g}"
    return point.policy, level, f"{point.mean('masked'):.2f}", *figures


def _write_number(value: float, digits: int) -> str:
    return "-" if np.isnan(value) else f"{value:.{digits}f}"


def _read_order_two(point: SweepPoint) -> tuple[bool, float]:
    """Return if D_2 is believed in the first split, larger direction, and its certified bound."""
    found = point.divergence
    order = int(np.flatnonzero(found.alphas == ORDERS[1])[0])
    place = int(found.value[:, order].argmax()), order
    assert found.certified is not None
    return bool(found.belief[place] == ESTIMATE), float(found.certified[place])


def _null_quantile(point: SweepPoint, order: int = 1) -> float:
    return float(np.quantile(point.values("null")[..., order].max(axis=1), 0.95))


def answer_questions(found: Sweep) -> list[tuple[str, str]]:
    """Return the three questions, each with a sentence for every policy."""
    questions = {
        "Which set is a text from?": _answer_set,
        "Which document was it?": _answer_document,
        "Which words stood there?": _answer_words,
    }
    return [
        (question, " ".join(answer(found.of(name)) for name in found.policies))
        for question, answer in questions.items()
    ]


def _answer_set(points: Sequence[SweepPoint]) -> str:
    ends = points if len(points) == 1 else (points[0], points[-1])
    shares = ", and ".join(
        f"{_format_percent(p.mean('accuracy'))} {_describe_level(p)}" for p in ends
    )
    above = [point for point in points if point.attack.above_floor]
    best = f"last shown {_describe_level(above[-1])}" if above else "shown at no level"
    return (
        f"{points[0].policy}: the share of texts of which an attacker names the right set is "
        f"{shares}; that this is more than guessing is {best}."
    )


def _answer_document(points: Sequence[SweepPoint]) -> str:
    linked = [point for point in points if point.linkages[0].share >= 0.5] or points[:1]
    one = linked[-1].linkages[0]
    return (
        f"{points[0].policy}: whoever has all originals finds that of {_format_percent(one.share)} of the "
        f"texts {_describe_level(linked[-1])}; words left in a text on average: {one.words:,}."
    )


def _answer_words(points: Sequence[SweepPoint]) -> str:
    masked = [float(p.mean("masked")) for p in points if p.mean("masked") < 1.0] or [1.0]
    return (
        f"{points[0].policy}: {_format_percent(1.0 - masked[-1])} of the words are left unchanged with "
        f"{_format_percent(masked[-1])} masked, and each of them is disclosed."
    )


def _describe_level(point: SweepPoint) -> str:
    masked = f"{_format_percent(point.mean('masked'))} of the words masked"
    return f"with {masked}" if point.level is None else f"at level {point.level:g} ({masked})"


def _format_percent(value: float) -> str:
    return f"{100.0 * value:.3g} %"


def list_notes(found: Sweep) -> list[str]:
    """Return what a reader must know of the figures."""
    floor = found.points[0].attack.floors[0].accuracy
    notes = [
        _COLUMN_NOTES,
        f"guessing is right for {_format_percent(floor)} of {found.tested:,} test texts; divergences are "
        f"of {found.rows[0]:,} and {found.rows[1]:,} rows, and grow with their number",
        "a divergence or an epsilon of two sets guarantees nothing for one document: texts that "
        "differ in one word have delta 1 - p at every epsilon where a share p is masked at random, "
        "and 0 or 1 where the same words are masked every time (redaction.record_delta)",
        f"intervals and certificates hold at {_format_percent(found.confidence)}, each by itself, for "
        "texts drawn independently; no attacker here bounds what another one finds",
    ]
    if found.delta < (least := 10.0 / min(found.rows)):
        notes.append(
            f"delta {found.delta:g} is below 10/N = {least:.2g}: no event of this sample can speak "
            "about it"
        )
    empty = max(point.empty for point in found.points)
    notes += [f"{empty:,} documents have no word left at the highest level"] if empty else []
    notes += [f"{found.repeated:,} repeated texts were left out"] if found.repeated else []
    splits = len(found.points[0].splits)
    return [*notes, f"INTERRUPTED after {splits} splits"] if found.partial else notes


def _format_sweep_title(found: Sweep) -> str:
    sets = f"{found.sizes[0]:,} sensitive and {found.sizes[1]:,} safe texts"
    splits = len(found.points[0].splits)
    return f'Redaction of {sets}, {splits} splits, style "{found.style}", seed {found.seed}'


def write_text(found: Sweep) -> str:
    """Return the table, the answers, and the notes."""
    table = align_rows(list_points(found))
    lines = [f"{question} {answer}" for question, answer in answer_questions(found)]
    lines += [f"note: {note}" for note in list_notes(found)]
    wrapped = [textwrap.fill(line, 110, subsequent_indent="  ") for line in lines]
    return "\n".join([_format_sweep_title(found), table, *wrapped])


def write_html(found: Sweep) -> str:
    """Return the answers, the figures of every point and the notes as HTML for a notebook."""
    rows = answer_questions(found)
    for policy, level, *figures in list_points(found)[1:]:
        named = zip(_SWEEP_HEADER[2:], figures, strict=True)
        rows.append((f"{policy} {level}", ", ".join(map(" ".join, named))))
    return make_card(
        _format_sweep_title(found), [*rows, *(("note", note) for note in list_notes(found))]
    )


def write_plain_data(found: Sweep) -> dict[str, Any]:
    """Return the figures as plain data for strict JSON, without any text of a document."""
    names = [name for name in Sweep.__slots__ if name not in ("points", "seconds", "seed")]
    record = {"format": FORMAT, "seed": str(found.seed)}
    record |= {name: encode_value(getattr(found, name)) for name in names}
    return {**record, "points": [_write_point(point) for point in found.points]}


def _write_point(point: SweepPoint) -> dict[str, Any]:
    accuracy, epsilon, orders = point.attack.accuracy, point.epsilon, point.divergence
    arrays = {name: getattr(orders, name) for name in ("alphas", "value", "std_error", "certified")}
    return {
        "policy": point.policy, "level": point.level, "empty": point.empty,
        **{name: encode_value(point.values(name).tolist()) for name in FIGURES},
        "attack": {
            "attacker": point.attack.attacker, "low": accuracy.low, "high": accuracy.high,
            "above_floor": point.attack.above_floor,
        },
        "curve": {
            "belief": orders.belief.tolist(),
            **{name: encode_value(array.tolist()) for name, array in arrays.items()},
        },
        "epsilon": {
            name: encode_value(getattr(epsilon, name))
            for name in ("epsilon_lower", "epsilon_hat", "epsilon_rdp")
        },
        "linked": {one.by: [one.right, one.texts] for one in point.linkages},
    }  # fmt: skip


def make_page(found: Sweep, path: str | os.PathLike[str] | None = None) -> str:
    """Make the page: the three answers, the picture, the table and the notes."""
    figures = [
        ("policies", ", ".join(found.policies)),
        ("splits", str(len(found.points[0].splits))),
        ("texts tested in each", f"{found.tested:,}"),
    ]
    return page_of_table(
        found, _format_sweep_title(found), "three questions, three answers", "Redacted texts: what is hidden",
        "No figure here is a guarantee: another attacker may find more.", figures,
        answer_questions(found), ("All levels", 6.4), list_points(found), list_notes(found), path,
    )  # fmt: skip


def draw_figure(found: Sweep, ax: Any = None) -> Figure:
    """Draw divergence, attack and linkage against the share masked, and utility where there is."""
    picture = get_canvas(ax, relative_size(1.6, 1.5))
    panels = picture.subplots(2, 2).ravel()
    has_utility = not np.isnan(found.points[0].mean("utility"))
    for place, name in enumerate(found.policies):
        _draw_policy(panels, found.of(name), cycle_colour(place), has_utility)
    nulls = max(found.points, key=_null_quantile)
    panels[0].axhspan(0.0, _null_quantile(nulls), color=text_colour(), alpha=0.15, linewidth=0)
    panels[0].annotate(
        "permuted labels", (0.0, 0.0), (0, 2), textcoords="offset points", fontsize="small"
    )
    panels[1].axhline(found.points[0].attack.floors[0].accuracy, color=text_colour(), linestyle=":")
    rows = f"{found.rows[0]:,} and {found.rows[1]:,} rows"
    panels[0].set(
        ylabel=f"nats, {rows}",
        title="Which set? D_2 (circles, hollow: not\nbelieved), KL (dashed), certified (bold)",
    )
    panels[1].set(
        ylabel="accuracy",
        title="Which set? The attack, from words and\nfrom the number of masks (dashed)",
    )
    panels[2].set(
        ylabel="share linked",
        title="Which document? By places and\nby the bag of words (dashed)",
        ylim=(-0.03, 1.03),
    )
    panels[3].set(
        xlabel="accuracy of the attack",
        ylabel="macro-F1",
        title="Utility against\nthe attack on the set",
    )
    for panel in panels[:3]:
        panel.set(xlabel="share of words masked", xlim=(-0.03, 1.03))
    for panel in panels:
        panel.title.set(fontsize="medium")
        thin_axes(panel)
    if not has_utility:
        panels[3].set_axis_off()
        panels[3].set_title("")
    picture.legend(
        *panels[1].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
    )
    return get_whole_figure(picture)


def _draw_policy(
    panels: Sequence[Axes], points: Sequence[SweepPoint], hue: Any, has_utility: bool
) -> None:
    def mean(name: str) -> Any:
        return np.array([point.mean(name) for point in points])

    masked, accuracy = mean("masked"), mean("accuracy")
    kl, d2 = mean("divergence").max(axis=1).T
    spread = np.array([point.sd("divergence").max(axis=0)[1] for point in points])
    panels[0].plot(masked, kl, "--", color=hue, linewidth=1.0)
    panels[0].errorbar(masked, d2, spread, color=hue, linewidth=0.8, elinewidth=0.8)
    believed, bounds = zip(*map(_read_order_two, points), strict=True)
    for x, y, filled in zip(masked, d2, believed, strict=True):
        face = hue if filled else panels[0].get_facecolor()
        panels[0].plot([x], [y], "o", color=hue, markerfacecolor=face)
    panels[0].plot(masked, bounds, color=hue, linewidth=2.5)
    panels[1].errorbar(
        masked, accuracy, [point.sd("accuracy") for point in points], color=hue, marker="o",
        label=points[0].policy,
    )  # fmt: skip
    panels[1].plot(masked, mean("counts_only"), "--", color=hue, linewidth=1.0)
    for which, line in ((0, "o-"), (-1, "--")):
        panels[2].plot(masked, [p.linkages[which].share for p in points], line, color=hue)
    if has_utility:
        panels[3].plot(accuracy, mean("utility"), "o-", color=hue)
