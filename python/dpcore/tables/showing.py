"""An audit of a table as text, picture, page and strict JSON."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..errors import invalid
from ..report import encoding
from ..report import page as pages
from ..report.short import make_card
from ..report.style import (
    axes_of,
    cycle_colour,
    get_whole_figure,
    relative_size,
    text_colour,
    thin_axes,
)
from ..report.text import format_epsilon
from .result import TableAudit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "draw_figure", "list_rows", "make_page", "read_audit", "write_html", "write_plain_data",
    "write_text",
]  # fmt: skip

TABLE_FORMAT: Final = "dpcore.audit_table/1"

_DERIVED_TABLE_FIGURES: Final = "refuted", "verdict", "infinite_share"

_TABLE_VERDICT_SENTENCES: Final = {
    None: "No claim was given, so none was tested.",
    True: "The mechanism loses more privacy than it claims, as its table shows.",
    False: (
        "Every pair of neighbours in this table keeps the claim. Whether the code draws from this "
        "table is another question, which dpcore.audit asks."
    ),
}


def list_rows(audit: TableAudit) -> list[tuple[str, str]]:
    """Return the report as (label, text) rows.

    Args:
        audit: the audit.

    Returns:
        The rows, verdict first.
    """
    unit = " per unit of distance" if audit.metric else ""
    return [
        ("verdict", audit.verdict),
        ("claim", _format_table_claim(audit)),
        ("exact", f"epsilon = {format_epsilon(audit.epsilon)}{unit}"),
        ("witness", _format_witness(audit)),
        ("loss", _format_loss(audit)),
        *([("beyond", _format_excess(audit))] if audit.refuted else []),
        ("infinite", f"{audit.infinite_pairs:,} of {audit.pairs:,} ordered pairs"),
        ("table", f"{audit.inputs:,} inputs, {audit.outputs:,} outputs"),
        ("neighbours", audit.neighbours),
        ("tolerance", f"{audit.tolerance:g} nats"),
        *(("note", note) for note in audit.notes),
    ]


def write_text(audit: TableAudit) -> str:
    """Return the report as lines of text."""
    return "\n".join([audit.name, *(f"  {label:<12} {line}" for label, line in list_rows(audit))])


def write_html(audit: TableAudit) -> str:
    """Return the report as HTML for a notebook."""
    return make_card(audit.name, list_rows(audit), audit.refuted)


def _format_table_claim(audit: TableAudit) -> str:
    if audit.claim is None:
        return "none given"
    unit = " per unit of distance" if audit.metric else ""
    own = audit.own_claim
    more = "" if own is None or own == audit.claim else f" (the mechanism's own: {own:g})"
    return f"epsilon <= {audit.claim:g}{unit}{more}"


def _format_witness(audit: TableAudit) -> str:
    names = [str(number) for number in audit.witness]
    if audit.labels:
        names = [f"{label!r} ({name})" for label, name in zip(audit.labels, names, strict=True)]
    return f"x = {names[0]}, x' = {names[1]}, output {names[2]}"


def _format_loss(audit: TableAudit) -> str:
    at = f" at distance {audit.distance:g}" if audit.metric else ""
    return f"{format_epsilon(audit.loss)} nats{at}"


def _format_excess(audit: TableAudit) -> str:
    assert audit.excess is not None
    assert audit.excess_pair is not None
    allowed = "claim x distance" if audit.metric else "the claim"
    place = "x = {}, x' = {}".format(*audit.excess_pair)
    return f"{format_epsilon(audit.excess)} nats more than {allowed}, at most, for {place}"


def draw_figure(audit: TableAudit, ax: Any = None) -> Figure:
    """Draw the greatest loss of every input in falling order, and the claim."""
    axes = axes_of(ax, relative_size(1.0, 0.7))
    found = np.sort(audit.per_input)[::-1]
    infinite = int(np.count_nonzero(np.isinf(found)))
    number = np.arange(1, found.size + 1)[infinite:]
    hue = cycle_colour(1 if audit.refuted else 0)
    axes.plot(number, found[infinite:], color=hue, marker="." if found.size < 50 else "")
    top = 1.2 * max([*found[infinite:][:1].tolist(), audit.claim or 0.0, 0.1])
    if infinite:
        axes.plot([1, infinite], [top, top], color=hue, linewidth=3)
        axes.annotate(f"{infinite:,} infinite", (1, top), (0, 4), textcoords="offset points")
    if audit.claim is not None:
        axes.axhline(audit.claim, color=text_colour(), linestyle="--")
        axes.annotate(
            f"claim {audit.claim:g}", (found.size, audit.claim), (0, 3),
            textcoords="offset points", ha="right",
        )  # fmt: skip
    unit = " per unit of distance" if audit.metric else ""
    axes.set(xlabel="inputs, the worst first", ylabel=f"worst loss{unit} (nats)")
    axes.set(ylim=(0.0, 1.1 * top), xlim=(0.0, found.size + 1.0))
    name = audit.name.replace("$", r"\$")
    title = name if len(name) <= 60 else f"{name[:57]}..."
    axes.set_title(f"{title}\n{audit.verdict}", loc="left", fontsize="medium")
    thin_axes(axes)
    return get_whole_figure(axes.figure)


def make_page(audit: TableAudit, path: str | os.PathLike[str] | None = None) -> str:
    """Make the page of an audit of a table."""
    claim = "none" if audit.claim is None else f"{audit.claim:g}"
    figures = [
        ("epsilon claimed", claim),
        ("epsilon, exact", format_epsilon(audit.epsilon)),
        ("infinite pairs", f"{100 * audit.infinite_share:.3g} %"),
    ]
    words = f"Exact epsilon {format_epsilon(audit.epsilon)}, claim {claim}."
    sections = [
        ("Pictures", pages.make_picture(audit, "plot", ("Worst loss of every input", words), 3.4)),
        ("Report", pages.make_table(list_rows(audit))),
        ("How this was made", pages.make_origins(audit)),
        ("Data", pages.make_data(audit)),
    ]
    head = pages.make_header(audit, _TABLE_VERDICT_SENTENCES[audit.refuted], figures)
    return pages.save_page(pages.make_document(audit, head, sections, pages.list_versions()), path)


def write_plain_data(audit: TableAudit) -> dict[str, Any]:
    """Return the plain data of an audit, and the figures that follow from it."""
    names = [f.name for f in fields(audit) if f.name != "comparison"]
    record: dict[str, Any] = {"format": TABLE_FORMAT}
    record.update({name: encoding.encode_value(getattr(audit, name)) for name in names})
    record["derived"] = {
        name: encoding.encode_value(getattr(audit, name)) for name in _DERIVED_TABLE_FIGURES
    }
    record["derived"]["witness"] = _format_witness(audit)
    record["derived"]["source_sha256"] = [one.sha256 for one in audit.provenance]
    return record


def read_audit(cls: type[TableAudit], record: Mapping[str, Any]) -> TableAudit:
    """Make an audit from its plain data."""
    return encoding.from_plain(cls, record, TABLE_FORMAT, _check_table_fields)


def _check_table_fields(audit: TableAudit) -> None:
    """Refuse fields that no audit of a table has together."""
    if audit.per_input.shape != (audit.inputs,):
        raise invalid("per_input", f"{audit.inputs} numbers", audit.per_input.shape)
    if (audit.claim is None) != (audit.excess is None):
        raise invalid("excess", "given with a claim, and only then", audit.excess)
    if audit.infinite_pairs > audit.pairs:
        raise invalid("infinite_pairs", f"at most {audit.pairs}", audit.infinite_pairs)
