"""Reports of an inference: text, HTML, a picture and plain data."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from ...records import Record
from ...report.card import make_card
from ...report.encoding import encode_value
from ...report.figures import (
    axes_of,
    cycle_colour,
    get_whole_figure,
    relative_size,
    text_colour,
    thin_axes,
)
from ...report.text import format_claim, format_counts, format_epsilon
from .groups import MainTask
from .judging import TOP, Measured
from .record import Floor, Inference
from .targets import MANY_VALUES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMAT: Final = "dpcore.text.inference/1"

ASSUMING: Final = (
    "assuming that the encoder draws noise for each text by itself, learnt nothing from test "
    "texts, and that the attribute was fixed before anybody looked"
)
"""Assumptions of the bound; the texts themselves need not be drawn at random (see `certify`)."""


def rows(found: Inference) -> list[tuple[str, str]]:
    """Return the report as (label, text) rows, without time."""
    table = [
        ("verdict", _verdict(found)),
        ("attacker", _attacker(found)),
        *(("scores", line) for line in _scores(found)),
        *_figures(found),
        *(("floor", _floor(found, floor)) for floor in found.floors),
        *([] if found.main is None else [("main label", _format_main_task(found.main))]),
        *([] if found.number else [("privacy", _privacy(found))]),
        ("certified", _format_certified_bound(found)),
    ]
    for one in found.each:
        f1 = f"F1 of {one.name} = {one.positive} {one.f1}"
        told = f"accuracy {one.accuracy}, majority {one.majority:.4f}, {f1}"
        table.append(("attribute", f"{one.name}: {told}"))
    table += [("group", line) for line in _groups(found)]
    table.append(("texts", _texts(found)))
    if found.batches is not None:
        table.append(("batches", str(found.batches)))
    table.append(("seed", _seed(found)))
    return [*table, *(("note", note) for note in _notes(found))]


def text(found: Inference) -> str:
    """Format the report as lines of text, the last one with the time."""
    lines = [*rows(found), ("time", f"{found.seconds:.3g} s")]
    return "\n".join(
        [_format_inference_title(found), *(f"  {label:<12} {line}" for label, line in lines)]
    )


def html(found: Inference) -> str:
    """Format the report as HTML for a notebook."""
    return make_card(_format_inference_title(found), rows(found))


def _format_inference_title(found: Inference) -> str:
    return f"Inference of {', '.join(found.attributes)} from encoded texts"


def _attacker(found: Inference) -> str:
    name = f"{found.attacker}, {found.transform}"
    cut = "" if found.threshold is None else f" with threshold {found.threshold:.6g}"
    how = f"best of {len(found.tried)} on validation by {_measure(found)}, evaluated once on test"
    return f"{name}{cut}: {how}"


def _measure(found: Inference) -> str:
    names = {"f1": "F1", "auc": "AUC", "true-positive rate": "true-positive rate at 1 %"}
    return names.get(found.measure, found.measure)


def _scores(found: Inference) -> list[str]:
    one = found.figures
    if one is None:
        return []
    return [
        f"AUC {one.auc} ({one.auc.how}), balanced accuracy {one.balanced_accuracy}",
        f"true-positive rate {one.found}, false-positive rate {one.wrong}, at the threshold with "
        "1 % false positives on validation",
        f"true-positive rate {one.found_alone}, false-positive rate {one.wrong_alone}, at the "
        "threshold with none on validation",
    ]


def _figures(found: Inference) -> list[tuple[str, str]]:
    if (number := found.number) is not None:
        correlation = f"Spearman's {number.correlation} ({number.correlation.how})"
        error = f"mean absolute {number.error} ({number.error.how})"
        return [("correlation", correlation), ("error", error)]
    rows = [
        ("accuracy", f"{found.accuracy} ({found.accuracy.how})"),
        ("F1", f"{found.f1} ({found.f1.how}; {_kind(found)})"),
    ]
    if (ranking := found.ranking) is not None:
        top = f"top-1 is the accuracy, top-{TOP} {ranking.top} ({ranking.top.how})"
        rank = f"mean rank {ranking.mean_rank} of {ranking.known:,} ({ranking.mean_rank.how})"
        rows.append(("ranks", f"of the true value: {top}, {rank}"))
    return rows


def _format_main_task(main: MainTask) -> str:
    figures = f"accuracy {main.accuracy}, majority {main.majority:.4f}, gain {main.gain}"
    return f"predicted by {main.attacker}: {figures} ({main.gain.how})"


def _kind(found: Inference) -> str:
    if len(found.attributes) > 1:
        return "micro over all attributes"
    values = found.values[0]
    return (
        f"of {found.attributes[0]} = {values[1]}"
        if len(values) == 2
        else f"macro over {len(values)} values"
    )


def _floor(found: Inference, floor: Floor) -> str:
    figures = f"accuracy {floor.accuracy:.4f}, best F1 {floor.f1:.4f}"
    by = "F1" if found.measure == "f1" else "accuracy" if floor.p_value is None else "AUC"
    if floor.error is not None:
        figures, by = f"mean absolute error {floor.error:.4f}", "error"
    if floor.mean_rank is not None:
        figures += f", top-{TOP} {floor.top:.4f}, mean rank {floor.mean_rank:.4f}"
    gain = f"{floor.name}: {figures}; the attacker's gain in {by} {floor.gain} ({floor.gain.how})"
    if floor.p_value is None:
        return gain
    beaten = f"p-value {floor.p_value:.2g} of its {_measure(found)} by permutations"
    return f"{gain}; {beaten}, beaten up to {floor.level:.3g}"


def _verdict(found: Inference) -> str:
    left, why = found.floors_left, _reason(found)
    lacks = "the vectors were not shown to carry the main label"
    if not left:
        return f"above the floor: {why}{f'; {lacks}' if found.main_at_floor else ''}"
    told = f"not shown to be above the floor: {' and '.join(left)}"
    if len(left) < len(found.floors):
        told += f" (above the {found.floors[0].name}: {why})"
    reasons = [f"{lacks} either"] if found.main_at_floor else []
    if found.ranking is not None and found.ranking.unknown_texts == found.sizes[2]:
        reasons.append("train lacks every value of the test texts, so that none can be named")
    return f"no evidence of privacy, for {' and '.join(reasons)}; {told}" if reasons else told


def _reason(found: Inference) -> str:
    """Name the reason why the verdict is a leak: beaten floors, or the certified bound."""
    if any(floor.beaten for floor in found.floors):
        return "the attacker does better than without any vectors"
    return "the certified bound shows a leak"


def _privacy(found: Inference) -> str:
    figures = f"1 - X = {found.empirical_privacy:.4f}, 1 - F = {found.empirical_privacy_f1:.4f}"
    return f"empirical privacy {figures}: no guarantee, another attacker may infer more"


def _format_certified_bound(found: Inference) -> str:
    audit = found.certified
    if isinstance(audit, str):
        return audit
    assert audit.counts is not None
    if audit.doubts:
        return f"nothing: {'; '.join(audit.doubts)}"
    level = f"{100 * audit.confidence:g} % confidence"
    told = f"epsilon >= {format_epsilon(audit.epsilon_lower)} ({level}), {ASSUMING}"
    claim = "" if audit.claim is None else f"; claim {format_claim(audit)}: {audit.verdict}"
    pair = f"x {audit.pair.x}, x' {audit.pair.x_prime}"
    return f"{told}{claim}; {audit.event}, {format_counts(audit.counts)}; {pair}"


def _groups(found: Inference) -> list[str]:
    lines = []
    for group in found.groups if len(found.groups) < MANY_VALUES else ():
        told = f"{group.attribute} = {group.value}, {group.texts:,} texts: attack {group.attack}"
        if group.main is not None:
            told += f", main label {group.main}"
        if group.gap is not None:
            told += f", gap to the others {group.gap.value:+.4f}"
            told += f" [{group.gap.low:+.4f}, {group.gap.high:+.4f}]"
        lines.append(told)
    return lines


def _texts(found: Inference) -> str:
    train, valid, test = found.sizes
    gone = [f"{many:,} {why}" for why, many in found.left_out.items() if many]
    told = f"{train:,} train, {valid:,} valid, {test:,} test"
    told = f"{told}; left out: {'; '.join(gone) if gone else 'none'}"
    unknown = 0 if found.ranking is None else found.ranking.unknown_texts
    if unknown:
        texts = "1 text" if unknown == 1 else f"{unknown:,} texts"
        told += f"; {texts} of test with a value that train lacks, never named: counted as wrong"
    return told


def _seed(found: Inference) -> str:
    own = "the encoder has no rng=, so that noise of its own is not repeated"
    return f"{found.seed}{'' if found.seeded else f' ({own})'}"


def _notes(found: Inference) -> list[str]:
    notes = [
        f"intervals hold at {100 * found.confidence:g} % each by itself, for this attacker and "
        "texts drawn as these were"
    ]
    if found.authors is not None and found.authors < found.sizes[2]:
        notes.append(
            f"p-values permute the {found.authors:,} groups of the test texts as wholes; intervals "
            "and sign tests take texts as independent, which those of one group may not be"
        )
    if len(found.groups) >= MANY_VALUES:
        notes.append(f"groups are not listed: {len(found.groups):,} values, see `groups`")
    values = found.values[0]
    if len(values) > MANY_VALUES and not isinstance(values[0], str):
        name, many = found.attributes[0], f"{len(values):,} separate values"
        notes.append(f"{name} is taken as {many}; kind='number' infers a number, such as an age")
    if found.f1.low == found.f1.high:
        notes.append("an F1 interval without width is no certainty: read the accuracy")
    if any(group.main is not None for group in found.groups):
        notes.append(
            "the main label is predicted by the attacker's own classifier; groups differ for "
            "more reasons than the encoder"
        )
    return notes


def plain(found: Inference) -> dict[str, Any]:
    """Convert an inference to plain data, and add the figures that follow from it."""
    record = {"format": FORMAT, **_value_to_plain_data(found)}
    record["seed"] = str(found.seed)
    derived = (
        "above_floor", "certified_leak", "main_at_floor", "empirical_privacy",
        "empirical_privacy_f1",
    )  # fmt: skip
    record["derived"] = {name: encode_value(getattr(found, name)) for name in derived}
    return record


def json_text(found: Inference, indent: int | None) -> str:
    """Format the plain data as strict JSON."""
    return json.dumps(plain(found), allow_nan=False, indent=indent)


def _value_to_plain_data(value: Any) -> Any:
    """Convert records to mappings, by their own `to_dict` if they have one; sequences to lists."""
    if isinstance(value, Record):
        if hasattr(value, "to_dict") and not isinstance(value, Inference):
            return value.to_dict()
        return {f.name: _value_to_plain_data(getattr(value, f.name)) for f in fields(value)}  # type: ignore[arg-type]
    if isinstance(value, dict):
        return {key: _value_to_plain_data(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_value_to_plain_data(item) for item in value]
    return encode_value(value)


def figure(found: Inference, ax: Any = None) -> Figure:
    """Plot accuracy and F1, or correlation, with intervals against the floors, on one axis."""
    lines: list[tuple[str, Measured, list[float]]] = [
        ("accuracy", found.accuracy, [floor.accuracy for floor in found.floors]),
        ("F1", found.f1, [floor.f1 for floor in found.floors]),
        *(() if found.figures is None else (("AUC", found.figures.auc, [0.5]),)),
    ]
    if (ranking := found.ranking) is not None:
        lines.append((f"top-{TOP}", ranking.top, [floor.top or 0.0 for floor in found.floors]))
    if found.number is not None:
        lines = [("Spearman's correlation", found.number.correlation, [0.0])]
    lines += [(f"accuracy, {one.name}", one.accuracy, [one.majority]) for one in found.each]
    axes = axes_of(ax, relative_size(1.1, 0.35 + 0.1 * len(lines)))
    marks = ((text_colour(), "|"), (cycle_colour(2), "|"))
    for row, (_, measured, floors) in enumerate(lines):
        axes.plot([measured.low, measured.high], [row, row], color=cycle_colour(0))
        axes.plot(
            [measured.value], [row], "o", color=cycle_colour(0), label="" if row else "attacker"
        )
        for floor, value, (hue, mark) in zip(found.floors, floors, marks, strict=False):
            name = "" if row else floor.name
            axes.plot([value], [row], mark, color=hue, markersize=16, mew=2.0, label=name)
        axes.annotate(
            f"{measured.value:.3f}", (measured.value, row), (0, 7), textcoords="offset points",
            ha="center", fontsize="small",
        )  # fmt: skip
    least = min(0.0, *(measured.low for _, measured, _ in lines))
    axes.set(xlim=(least - 0.02 if least else 0.0, 1.02), ylim=(len(lines) - 0.5, -0.7))
    axes.set_yticks(range(len(lines)), [name.replace("$", r"\$") for name, *_ in lines])
    title = f"{_format_inference_title(found)}\n{found.attacker}, {found.transform}".replace(
        "$", r"\$"
    )
    axes.set_title(title, loc="left", fontsize="medium")
    thin_axes(axes)
    # Below the axes: on them it would lie on a line.
    below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15), "ncols": 3}
    axes.legend(frameon=False, fontsize="small", **below)
    return get_whole_figure(axes.figure)
