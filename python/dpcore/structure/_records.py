"""Records of structural checks and of inspections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..errors import choice, flag, instance, mistyped, real
from ..records import Record

CHECKS = (
    "no_noise",
    "shared_rows",
    "shared_calls",
    "rank",
    "correlation",
    "shared_size",
    "one_sided",
    "atom",
    "off_centre",
    "scale",
    "column_scale",
    "grid",
    "range",
    "modes",
)
"""The checks of an inspection, in the order in which they are made and shown."""

DETERMINISTIC = ("no_noise", "rank")
"""Checks without a p-value: they compare floats, and chance has no part in the answer."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Check(Record):
    """The answer of one structural check.

    Args:
        name: one of `CHECKS`, or "fork".
        flagged: True if the fault was found.
        what: one plain sentence with the figures.
        p_value: chance of something as extreme without the fault, corrected for everything that
            the check looks at; None where chance has no part or there was nothing to look at.
        evidence: names and values of the figures.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if `name` is no check, or `p_value` not in [0, 1].

    Example:
        >>> from dpcore import Identity
        >>> from dpcore.structure import inspect
        >>> print(inspect(Identity(), [0.5], draws=200, rng=1)["no_noise"])
        no_noise: FLAGGED: no noise at all: 200 outputs equal the clean vector
    """

    name: str
    flagged: bool
    what: str
    p_value: float | None = None
    evidence: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("name", self.name, (*CHECKS, "fork"))
        flag("flagged", self.flagged)
        instance("what", self.what, str)
        if self.p_value is not None:
            object.__setattr__(self, "p_value", real("p_value", self.p_value, low=0.0, high=1.0))
        if not _are_all(self.evidence, tuple) or any(len(pair) != 2 for pair in self.evidence):
            raise mistyped("evidence", "a tuple of names and values", self.evidence)

    @property
    def figures(self) -> dict[str, Any]:
        """The evidence as a dictionary."""
        return dict(self.evidence)

    def __str__(self) -> str:
        """Return one line."""
        return f"{self.name}: {'FLAGGED: ' if self.flagged else ''}{self.what}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inspection(Record):
    """Result of `inspect` on a noise layer.

    Args:
        mechanism: what messages call it.
        dim: numbers in one output.
        draws: outputs in each of the two main calls.
        seed: repeats the inspection, if the mechanism draws from the generator it is given.
        false_alarm: chance, at most, that a layer without any of the faults is flagged at all.
        level: the p-value at which one check is flagged: `false_alarm` over their number.
        checks: the answers.

    Raises:
        TypeError: if `checks` is not a tuple of Checks.

    Example:
        >>> import dpcore
        >>> found = dpcore.structure.inspect(dpcore.DPTextNoise(1.0), [0.0, 0.5], rng=1)
        >>> found.passed, found.flagged
        (False, ('one_sided', 'atom', 'off_centre'))
    """

    mechanism: str
    dim: int
    draws: int
    seed: int
    false_alarm: float
    level: float
    checks: tuple[Check, ...]

    def __post_init__(self) -> None:
        """Check the answers."""
        if not _are_all(self.checks, Check):
            raise mistyped("checks", "a tuple of Checks", self.checks)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Names of the checks that found a fault."""
        return tuple(check.name for check in self.checks if check.flagged)

    @property
    def passed(self) -> bool:
        """True if no check found a fault; that is no proof of privacy."""
        return not self.flagged

    def __getitem__(self, name: str) -> Check:
        """Return the check of that name."""
        choice("name", name, tuple(check.name for check in self.checks))
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        """Return a table, one line a check."""
        head = (
            f"structure of {self.mechanism}: "
            f"{', '.join(self.flagged) + ' flagged' if self.flagged else 'nothing flagged'}"
        )
        note = (
            f"dim {self.dim}, {self.draws:,} draws a call, seed {self.seed}; "
            f"false alarms at most {self.false_alarm:g} in all (p-values at {self.level:.2g} each)"
        )
        lines = [
            f"  {'FLAGGED' if c.flagged else 'ok':7}  {c.name:12}  "
            f"{_format_p(c.p_value):>8}  {c.what}"
            for c in self.checks
        ]
        return "\n".join([head, note, f"  {'':7}  {'check':12}  {'p':>8}  finding", *lines])


def _are_all(values: Any, kind: type) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)


def _format_p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<1e-300" if value < 1e-300 else f"{value:.2g}"


def check_from_p_value(
    name: str, p: float, level: float, bad: str, good: str, **evidence: Any
) -> Check:
    """Make a check decided by a p-value; use `bad` if it is flagged, otherwise `good`."""
    p = min(1.0, float(p))
    flagged = p <= level
    return Check(name, flagged, bad if flagged else good, p, tuple(evidence.items()))


def check_from_rule(name: str, what: str, flagged: bool = False, **evidence: Any) -> Check:
    """Make a check without a p-value."""
    return Check(name, flagged, what, None, tuple(evidence.items()))
