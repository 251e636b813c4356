"""Result of the audit of one mechanism, and the conditions for publishing the result."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ...errors import invalid
from ...report.plain import encode_value
from .cases import Case, Facts

STRICT: Final = 0.999
"""Confidence level. A claim counts as refuted only if two audits with different seeds refute the
claim at this level."""

_EMBARGO: Final = datetime.timedelta(days=90)
"""Time from a private report of a fault to the publication of the fault."""

NOT_REFUTED, VIOLATION = "not refuted", "violation"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Row(Facts):
    """Result of the audit of one mechanism of a package, with the software versions.

    Args:
        pair: the two inputs, as text.
        failure: reason why the audit failed, or "" if it did not fail.
        certified: certified lower bound on epsilon with 95 % confidence, or None if the audit
            failed.
        strict: two lower bounds on epsilon with 99.9 % confidence, from two audits with different
            seeds. The tuple is empty if the first audit does not refute the claim at 99.9 %.
        event: description of the set of outputs that the audit counted.
        hits: numbers of outputs in the event, on the first and on the second input. The tuple is
            empty if the audit failed.
        trials: number of outputs drawn on each of the two inputs.
        rounding: lower bound on epsilon from a set of outputs that depends on the last bits of the
            outputs. None if the audit chose no such set.
        draw_seconds: mean time to draw one output, in seconds, or None if the audit failed.
        traced: outcome of `dpcore.trace` on the mechanism, as text. `dpcore.trace` computes the
            privacy loss of each source line.
        traced_line: file and number of the source line with the largest privacy loss, according to
            `dpcore.trace`. The text is "" if the line is not known.
        traced_loss: privacy loss that `dpcore.trace` computed, or None if no loss was computed.
        python: version of Python that ran the audit.
        numpy: version of numpy that ran the audit.
        dpcore: version of dpcore that ran the audit.
        platform: operating system, and type of the machine.
        date: day of the audit, YYYY-MM-DD.
    """

    pair: str
    failure: str = ""
    certified: float | None = None
    strict: tuple[float, ...] = ()
    event: str = ""
    hits: tuple[int, ...] = ()
    trials: int = 0
    rounding: float | None = None
    draw_seconds: float | None = field(default=None, compare=False)
    traced: str = ""
    traced_line: str = ""
    traced_loss: float | None = None
    python: str = ""
    numpy: str = ""
    dpcore: str = ""
    platform: str = ""
    date: str = ""

    @property
    def refuted(self) -> bool:
        """True if the audits of this mechanism refute the claimed epsilon.

        Two audits with different seeds must both refute the claim at 99.9 % confidence.
        """
        return len(self.strict) == 2 and min(self.strict) > self.claim

    @property
    def verdict(self) -> str:
        """Conclusion from the audit of this mechanism, such as "not refuted" or "violation".

        A refuted claim is not always a violation. If the refuted claim is not a violation, the
        conclusion is the text of the field `reading`, such as "known misuse". "failed" means that
        the audit failed. "false by source only" means that the source code shows a fault, but the
        audit does not.
        """
        if self.failure:
            return "failed"
        if self.reading == "source only":
            return "false by source only"
        if not self.refuted:
            return NOT_REFUTED
        return VIOLATION if self.reading == "claim" else self.reading

    @property
    def share(self) -> float | None:
        """Certified lower bound on epsilon, divided by the claimed epsilon.

        The value is None if the audit failed, or if the claimed epsilon is 0.
        """
        return None if self.certified is None or not self.claim else self.certified / self.claim

    def is_publishable(self, today: datetime.date) -> bool:
        """Return True if this result of an audit may be published.

        A result must not be published if it describes a fault that is not public yet.

        A fault is public if the field `disclosure` is the web address of an issue or a fix. A fault
        that was reported privately is regarded as public 90 days after the report.

        Args:
            today: date on which the result would be published.

        Example:
            >>> case = Case(package="numpy", version="2", name="f", build=print, pair=(0, 1),
            ...     claim=1.0, relation="r", stated="s", disclosure="reported 2026-01-01")
            >>> row = make_row(case, strict=(2.0, 2.0))
            >>> [row.is_publishable(datetime.date(2026, month, 1)) for month in (3, 5)]
            [False, True]
        """
        if self.verdict not in (VIOLATION, "false by source only") and not self.cause:
            return True
        if self.disclosure.startswith("https://"):
            return True
        day = re.fullmatch(r"reported (\d{4}-\d{2}-\d{2})", self.disclosure)
        return day is not None and datetime.date.fromisoformat(day[1]) + _EMBARGO <= today

    def to_dict(self) -> dict[str, Any]:
        """Return all fields of this result, and the verdict, as a dict of plain data."""
        values = {field.name: encode_value(getattr(self, field.name)) for field in fields(self)}
        return values | {"verdict": self.verdict}


def make_row(case: Case, **values: Any) -> Row:
    """Make the result of an audit from the facts about the mechanism and further values.

    Args:
        case: description of the audited mechanism.
        **values: fields of the `Row` that the audit determined, such as `certified`. A value
            replaces a fact of the same name from `case`.
    """
    facts = {field.name: getattr(case, field.name) for field in fields(Facts)}
    return Row(**(facts | {"pair": _describe_pair(case.pair)} | values))


def read_row(record: dict[str, Any]) -> Row:
    """Make the result of an audit from a dict that `Row.to_dict` returned.

    Args:
        record: dict with all fields of a `Row`, and the verdict.

    Raises:
        ValueError: if a field is missing in the dict, or if the verdict in the dict does not agree
            with the fields.
    """
    names = [field.name for field in fields(Row)]
    missing = [name for name in names if name not in record]
    if missing:
        raise invalid("record", "a row with all fields", f"a row without {', '.join(missing)}")
    values = {name: record[name] for name in names}
    lists = {name: tuple(map(_to_float_if_str, values[name])) for name in ("strict", "hits")}
    numbers = {
        name: _to_float_if_str(value)
        for name, value in values.items()
        if name in ("claim", "delta", "true_loss", "certified", "rounding", "traced_loss")
    }
    row = Row(**(values | lists | numbers))
    if row.verdict != record.get("verdict"):
        raise ValueError(
            f"record of {row.package} {row.name} must have the verdict {row.verdict!r} of its "
            f"fields, got {record.get('verdict')!r}"
        )
    return row


def _to_float_if_str(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


_MAX_INPUT_LETTERS: Final = 60


def _describe_pair(pair: tuple[Any, Any]) -> str:
    texts = [" ".join(repr(side).split()) for side in pair]
    short = [
        text if len(text) <= _MAX_INPUT_LETTERS else f"{text[: _MAX_INPUT_LETTERS - 3]}..."
        for text in texts
    ]
    return " against ".join(short)
