"""Row of a case: the counts of its audit, and the test whether it may be published."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ...errors import invalid
from ...report.plain import encode_value
from .cases import Case, Facts

STRICT: Final = 0.999
"""Confidence at which both seeds must refute a claim before a row is called a violation."""

_EMBARGO: Final = datetime.timedelta(days=90)
"""Time after a dated report after which a violation may be published."""

NOT_REFUTED, VIOLATION = "not refuted", "violation"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Row(Facts):
    """Counts of one case, and the versions of the software that made them.

    Args:
        pair: the two inputs, in words.
        failure: reason if there is no audit, or "".
        certified: lower bound on epsilon, 95 % confidence.
        strict: bounds of both seeds, 99.9 % confidence; empty if the first seed does not refute the
            claim.
        event: the event that was counted, in words.
        hits: outputs in the event, on x and on x'.
        trials: draws per side.
        rounding: bound of the event that uses the last bits, or None if the pilot found no such
            event.
        draw_seconds: time of one draw.
        traced: outcome of `dpcore.trace`.
        traced_line: line with the largest loss.
        traced_loss: the computed loss, or None.
        python: version of Python.
        numpy: version of numpy.
        dpcore: version of dpcore.
        platform: system and machine.
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
        """True if both seeds refute the claim at the strict confidence."""
        return len(self.strict) == 2 and min(self.strict) > self.claim

    @property
    def verdict(self) -> str:
        """Verdict: "failed", "not refuted", "violation" or the reading of the refutation."""
        if self.failure:
            return "failed"
        if self.reading == "source only":
            return "false by source only"
        if not self.refuted:
            return NOT_REFUTED
        return VIOLATION if self.reading == "claim" else self.reading

    @property
    def share(self) -> float | None:
        """Certified epsilon over the claim, or None without an audit or with a claim of 0."""
        return None if self.certified is None or not self.claim else self.certified / self.claim

    def is_publishable(self, today: datetime.date) -> bool:
        """Return True unless the row describes a fault that is not public yet.

        A fault is public if the row has the address of an issue or a fix, and 90 days after a dated
        report.

        Args:
            today: the day on which the page is built.

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
        """Return all fields as plain data, and the verdict."""
        values = {field.name: encode_value(getattr(self, field.name)) for field in fields(self)}
        return values | {"verdict": self.verdict}


def make_row(case: Case, **values: Any) -> Row:
    """Make the row of a case from its facts and the counted values.

    Args:
        case: the case.
        **values: further fields of the row, which may replace fields of the case.
    """
    facts = {field.name: getattr(case, field.name) for field in fields(Facts)}
    return Row(**(facts | {"pair": _describe_pair(case.pair)} | values))


def read_row(record: dict[str, Any]) -> Row:
    """Make a row from the data of `Row.to_dict`.

    Args:
        record: plain data of a row.

    Raises:
        ValueError: if a field is missing, or the verdict does not agree with the fields.
    """
    names = [field.name for field in fields(Row)]
    missing = [name for name in names if name not in record]
    if missing:
        raise invalid("record", "a row with all fields", f"a row without {', '.join(missing)}")
    values = {name: record[name] for name in names}
    lists = {name: tuple(map(_read_number, values[name])) for name in ("strict", "hits")}
    numbers = {
        name: _read_number(value)
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


def _read_number(value: Any) -> Any:
    return float(value) if isinstance(value, str) else value


_MAX_INPUT_LETTERS: Final = 60


def _describe_pair(pair: tuple[Any, Any]) -> str:
    texts = [" ".join(repr(side).split()) for side in pair]
    short = [
        text if len(text) <= _MAX_INPUT_LETTERS else f"{text[: _MAX_INPUT_LETTERS - 3]}..."
        for text in texts
    ]
    return " against ".join(short)
