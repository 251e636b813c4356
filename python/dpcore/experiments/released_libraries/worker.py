"""Program that audits the mechanisms of one package in a separate process.

The module `processes` starts this program with `python -m`.

The program writes a line of JSON to a file before and after each audit. If the package crashes the
process, the last line shows which mechanism was being audited.
"""

from __future__ import annotations

import datetime
import inspect
import json
import os
import platform
import sys
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..._core import __version__
from ...adapters import adapt
from ...auditing.run import audit
from ...bounds import clopper_pearson
from ...mechanisms.callables import repeat
from ...results.audits import Audit
from ...tracing.run import trace
from ..running import cell_seed
from .cases import Case, list_mechanisms
from .rows import STRICT, make_row

_MAX_REASON_LETTERS: Final = 200


def main(package: str, path: str, options: dict[str, Any]) -> None:
    """Audit all mechanisms of a package one after another, and append the results to a file.

    Args:
        package: name of the package on PyPI.
        path: file to which the function appends lines of JSON. The function writes a line before
            and after each audit.
        options: dict with four keys: `seed`, `trials`, `slow` and `done`. `trials` is the largest
            number of draws on each input, or None for no limit. `slow` is True to include
            mechanisms whose audit is slow. `done` is a list with the names of the mechanisms that
            are already audited.
    """
    with Path(path).open("a", encoding="utf-8") as file:
        _write_line(file, {"machine": describe_machine(package)})
        for case in list_mechanisms(package, slow=options["slow"]):
            if case.name in options["done"]:
                continue
            _write_line(file, {"begun": case.name, "seconds": case.seconds})
            _write_line(file, {"row": _audit_case(case, options).to_dict()})
        _write_line(file, {"ended": package})


def _write_line(file: Any, record: dict[str, Any]) -> None:
    file.write(json.dumps(record, allow_nan=False) + "\n")
    file.flush()
    os.fsync(file.fileno())


def describe_machine(package: str) -> dict[str, str]:
    """Return the versions of the software, the type of this machine, and the date.

    Args:
        package: name on PyPI of the package whose version is returned.
    """
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = ""
    return {
        "version": version,
        "python": platform.python_version(),
        "numpy": str(np.__version__),
        "dpcore": str(__version__),
        "platform": f"{platform.system()} {platform.machine()}",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _audit_case(case: Case, options: dict[str, Any]) -> Any:
    machine = describe_machine(case.package)
    if not machine["version"]:
        return make_row(case, **machine | {"failure": "not installed"})
    if machine["version"] != case.version:
        # The facts of one version may not hold for another version.
        machine |= {"cause": "", "disclosure": "", "fixed": "", "reply": ""}
    try:
        mechanism = build_mechanism(case)
        values = _audit_for_row_fields(case, mechanism, options)
    # A package may raise any exception, also one derived from SystemExit; the row states it.
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return make_row(case, **machine | {"failure": reason[:_MAX_REASON_LETTERS]})
    return make_row(case, **machine | values | _traced_verdict_and_loss(case))


def build_mechanism(case: Case) -> Any:
    """Build a mechanism of a released package, for use in `dpcore.audit`.

    If the package provides a function that returns a single output, the mechanism calls this
    function once for each output.

    Args:
        case: description of the mechanism.
    """
    target = case.build()
    if adapt(target) is not None or not callable(target) or _takes_size(target):
        return target
    return repeat(target, name=f"{case.package} {case.name}")


def _takes_size(target: Any) -> bool:
    """Return True if `target` is a function with the parameters `(x, size, rng)`."""
    try:
        return len(inspect.signature(target).parameters) == 3
    except (TypeError, ValueError):
        return False


def _audit_for_row_fields(case: Case, mechanism: Any, options: dict[str, Any]) -> dict[str, Any]:
    reports = [run_audit(case, mechanism, options, 1)]
    strict = [_bound_at_high_confidence(reports[0])]
    if strict[0] > case.claim:
        strict.append(_bound_at_high_confidence(run_audit(case, mechanism, options, 2)))
    report = reports[0]
    finding = report.floating_point
    return {
        "certified": report.epsilon_lower,
        "strict": tuple(strict) if len(strict) == 2 else (),
        "event": str(report.event),
        "hits": (report.counts.k, report.counts.k_prime),
        "trials": report.trials,
        "rounding": None if finding is None else finding.epsilon_lower,
        "draw_seconds": report.seconds / (2 * report.trials),
    }


def run_audit(case: Case, mechanism: Any, options: dict[str, Any], run: int) -> Audit:
    """Audit a mechanism of a released package.

    Args:
        case: description of the mechanism, with the two inputs and the claim.
        mechanism: mechanism that `build_mechanism(case)` returned.
        options: dict with the keys `seed` and `trials`. `trials` is the largest number of draws on
            each input, or None for no limit.
        run: index of the repetition of this audit, such as 1 or 2. Different repetitions use
            independent random numbers.

    Raises:
        ValueError: if a check in the audit finds that the outputs are not independent draws.
    """
    cap = options["trials"]
    arguments: dict[str, Any] = {"trials": min(case.trials, cap) if cap else case.trials}
    if case.attack is not None:
        arguments["attack"] = case.attack()
    seed = cell_seed(options["seed"], f"{case.package}/{case.name}/{run}")
    report = audit(
        mechanism, case.pair, claim=case.claim, delta=case.delta, rng=seed, progress=False,
        **arguments,
    )  # fmt: skip
    if report.checks:
        # Outputs that are not independent draws certify nothing, and do not pass either.
        raise ValueError(f"the audit is invalid: {report.checks[0]}")
    return report


def _bound_at_high_confidence(report: Audit) -> float:
    return clopper_pearson(report.bound_counts, report.delta, STRICT)


def _traced_verdict_and_loss(case: Case) -> dict[str, Any]:
    """Apply `dpcore.trace` to the mechanism of a case, and return fields of a `Row`."""
    try:
        report = trace(case.build(), case.pair, claim=case.claim or None, delta=case.delta, rng=1)
    # An exception under the tracer is not a fault of the package.
    except Exception as error:
        return {"traced": f"not traceable ({type(error).__name__})"}
    step = max(report.steps, key=lambda step: step.loss, default=None)
    place = "" if step is None or step.place.startswith("?") else step.place
    return {"traced": report.outcome, "traced_line": place, "traced_loss": report.loss}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
