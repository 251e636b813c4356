"""Work of `dpcore plan`: from options to a plan, and its display."""

from __future__ import annotations

import contextlib
from dataclasses import fields
from pathlib import Path
from typing import Any

from .. import attacks
from ..auditing.power import Plan, plan
from ..errors import choice
from .audits import load_mechanism
from .delivering import check_plot
from .options import OPTIONS, AuditArguments, MechanismArguments, PlanArguments, select_arguments
from .status import NOT_REFUTED, Usage, report_bad_usage, write_line

__all__ = [
    "run_plan",
]


def run_plan(asked: PlanArguments) -> int:
    """Plan as the options request, print the plan, and return the exit status."""
    if asked.plot is not None:
        check_plot(Path(asked.plot))
    made = _make_plan(asked)
    print(made.to_json() if asked.as_json else made)
    if asked.plot is not None:
        _save_plan_picture(made, asked.plot)
    return NOT_REFUTED


def _make_plan(asked: PlanArguments) -> Plan:
    described = {one.name: getattr(asked, one.name) for one in fields(MechanismArguments)}
    with report_bad_usage():
        given = {
            **select_arguments(asked, plan),
            "rng": asked.seed,
            "guesses": _parse_plan_guesses(asked.guesses),
        }
        if asked.attack is not None:
            given["attack"] = attacks.named(choice("attack", asked.attack, tuple(attacks.NAMES)))
    if asked.target is None:
        for name, value in described.items():
            if value is not None:
                raise Usage(f"{OPTIONS[name]} needs a system or FILE.py:FUNCTION")
        if asked.claim is None:
            raise Usage("give --claim EPSILON, or a mechanism that has a claim")
        with report_bad_usage():
            return plan(**given)
    # Of a claim that is missing the plan itself complains.
    with (
        load_mechanism(AuditArguments(**described, no_claim=True), asked.target) as (
            mechanism,
            pair,
        ),
        report_bad_usage(),
    ):
        return plan(mechanism=mechanism, pair=pair, **given)


def _parse_plan_guesses(text: str | None) -> Any:
    """Parse guesses: a whole number, a share, or text that the plan will refuse."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return None if text is None else kind(text)
    return text


def _save_plan_picture(made: Plan, path: str) -> None:
    """Save the picture on its own figure, since pyplot would keep one open."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(5.5, 3.4), layout="constrained")
    made.plot(picture.subplots())
    picture.savefig(path)
    write_line(f"wrote {path}")
