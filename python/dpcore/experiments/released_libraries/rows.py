"""Result of the audit of one mechanism, and the rule when it may be published."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field, fields
from typing import Any, Final

from ...errors import invalid
from ...report.plain import encode_value
from .cases import Case, Facts

STRICT: Final = 0.999
"""Confidence at which two audits with different seeds must refute a claim before it counts as
violated."""

_EMBARGO: Final = datetime.timedelta(days=90)
"""Time between a private report of a fault and its publication."""

NOT_REFUTED, VIOLATION = "not refuted", "violation"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Row(Facts):
    """Result of the audit of one mechanism, and the versions of the software that ran it.

    Args:
        pair: the two inputs, as text.
        failure: reason why the audit failed, or "".
        certified: certified lower bound on epsilon with 95 % confidence, or None if the audit
            failed.
        strict: lower bounds on epsilon with 99.9 % confidence, from two audits with different
            seeds. It is empty if the first audit does not refute the claim.
        event: description of the counted event.
        hits: number of outputs in the event, on the first input and on the second input.
        trials: number of outputs drawn on each of the two inputs.
        rounding: lower bound on epsilon from an event on the last bits of the outputs. It is None
            if the first draws, on which the event is chosen, showed no such event.
        draw_seconds: time of one draw in seconds.
        traced: outcome of `dpcore.trace`, which finds the source lines that lose privacy.
        traced_line: source line with the largest privacy loss, according to `dpcore.trace`.
        traced_loss: privacy loss that `dpcore.trace` computed, or None.
        python: version of Python that ran the audit.
        numpy: version of numpy that ran the audit.
        dpcore: version of dpcore that ran the audit.
        platform: operating system and type of machine.
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
        """True if two audits with different seeds refute the claim at 99.9 % confidence."""
        return len(self.strict) == 2 and min(self.strict) > self.claim

    @property
    def verdict(self) -> str:
        """Conclusion of the audit, such as "failed", "not refuted" or "violation".

        A refuted claim is not always a violation. In the other cases the conclusion is the text of
        the field `reading`, such as "known misuse". The conclusion "false by source only" means
        that the source code shows a fault, but the audit does not.
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
        """Certified bound / claimed epsilon, or None if the audit failed or the claim is 0."""
        return None if self.certified is None or not self.claim else self.certified / self.claim

    def is_publishable(self, today: datetime.date) -> bool:
        """Return True if this result may be published.

        The function returns False if the result describes a fault that is not public yet.

        A fault is public if `disclosure` is the web address of an issue or a fix. A fault that was
        reported privately counts as public 90 days after the report.

        Args:
            today: current date.

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
        """Return all fields and the verdict as a dict of plain data."""
        values = {field.name: encode_value(getattr(self, field.name)) for field in fields(self)}
        return values | {"verdict": self.verdict}


def make_row(case: Case, **values: Any) -> Row:
    """Make the result of a case from the facts of the case and the counted values.

    Args:
        case: the audited case.
        **values: further fields of the `Row`. They override fields of the case with the same name.
    """
    facts = {field.name: getattr(case, field.name) for field in fields(Facts)}
    return Row(**(facts | {"pair": _describe_pair(case.pair)} | values))


def read_row(record: dict[str, Any]) -> Row:
    """Make a `Row` from a dict that `Row.to_dict` returned.

    Args:
        record: the dict.

    Raises:
        ValueError: if a field is missing in the dict, or if the verdict does not follow from the
            other fields.
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
