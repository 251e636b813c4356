"""Privacy claims as tests: the pytest fixture `dp_audit`.

The plugin loads with pytest wherever dpcore is installed, so it loads nothing that `import dpcore`
does not load; reports are imported when a test asks for them. An audit in a test is deterministic:
its seed is made from the test's id, so that a test which passes once passes always, and a correct
mechanism fails for no more than 1 - confidence of all tests that could be written.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from .errors import confidence_level, count, integer, mistyped, real

if TYPE_CHECKING:
    from .audit_record import Audit
    from .records import Pair


@dataclass(frozen=True, slots=True)
class Settings:
    """What an audit in a test uses unless its call says otherwise.

    From weak to strong: these defaults; `dp_trials`, `dp_confidence` and `dp_seed` in pytest's
    configuration file; `--dp-trials`, `--dp-confidence` and `--dp-seed` on the command line; the
    marker `@pytest.mark.dp(trials=..., confidence=..., seed=...)`; the arguments of the call.

    Attributes:
        trials: counted draws on each side; 10**5 take a numpy mechanism in eight dimensions
            a few hundredths of a second.
        confidence: probability that a certified bound holds. Of 10,000 correct mechanisms at
            most one is expected to fail its test.
        seed: combined with the id of the test into the seed of each audit.
    """

    trials: int = 10**5
    confidence: float = 0.9999
    seed: int = 0


_HELP = {
    "trials": "draws that dp_audit counts on each side (default 1e5)",
    "confidence": "confidence of dp_audit's bounds (default 0.9999)",
    "seed": "a number that changes the seeds of all audits made by dp_audit (default 0)",
}
_SETTINGS = pytest.StashKey[Settings]()


def _setting(name: str, label: str, value: Any) -> Any:
    """One setting, checked: as text from the command line or a file, or as a marker's value."""
    if name == "trials":
        return count(label, value)
    if isinstance(value, str):
        # What is no number stays a string, which the check below refuses by name.
        with contextlib.suppress(ValueError):
            value = float(value) if name == "confidence" else int(value)
    if name == "confidence":
        return confidence_level(value, label)
    return integer(label, value, 0)


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options --dp-trials, --dp-confidence, --dp-seed, and the same in the ini file."""
    group = parser.getgroup("dpcore", "audits of differential privacy (dp_audit)")
    for name, text in _HELP.items():
        group.addoption(f"--dp-{name}", metavar="N", default=None, help=text)
        parser.addini(f"dp_{name}", text, default=None)


def pytest_configure(config: pytest.Config) -> None:
    """Read the settings once, so that a mistake in them is an error of usage."""
    config.addinivalue_line(
        "markers", "dp(trials, confidence, seed): what dp_audit uses in this test"
    )
    settings = Settings()
    try:
        for name in _HELP:
            for label, value in (
                (f"dp_{name}", config.getini(f"dp_{name}")),
                (f"--dp-{name}", config.getoption(f"--dp-{name}")),
            ):
                if value is not None:
                    settings = replace(settings, **{name: _setting(name, label, value)})
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_SETTINGS] = settings


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """With -v, one line for each audit."""
    if terminalreporter.config.get_verbosity() < 1:
        return
    lines = [
        f"{report.nodeid}: {value}"
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for key, value in report.user_properties
        if key == "dp_audit"
    ]
    if lines:
        terminalreporter.section("audits by dpcore")
        for line in lines:
            terminalreporter.line(line)


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> Auditor:
    """Audit a mechanism; the test fails if its claim is refuted.

    dp_audit(mechanism, pair, epsilon=1.0) returns the dpcore.Audit, and dp_audit.refutes(...)
    fails when the claim is not refuted. Both take the keywords of dpcore.audit.
    """
    node: pytest.Item = request.node
    settings = node.config.stash[_SETTINGS]
    names = tuple(field.name for field in fields(Settings))
    # The closest marker comes first and wins over that of the class or module.
    for marker in reversed(list(node.iter_markers("dp"))):
        if marker.args or not set(marker.kwargs) <= set(names):
            given = (*marker.args, *marker.kwargs)
            raise mistyped("marker dp", f"given the keywords {', '.join(names)} only", given)
        found = {name: _setting(name, f"dp({name})", v) for name, v in marker.kwargs.items()}
        settings = replace(settings, **found)
    return Auditor(node, settings)


class Auditor:
    """What the fixture `dp_audit` is: a call that tests a claim.

    Args:
        node: the test.
        settings: what its audits use.
    """

    def __init__(self, node: pytest.Item, settings: Settings) -> None:
        self._node, self._settings = node, settings
        self._calls = 0

    def __call__(
        self,
        mechanism: Callable[..., Any],
        pair: Pair | tuple[Any, Any] | None = None,
        *,
        epsilon: float,
        **options: Any,
    ) -> Audit:
        """Audit a mechanism and fail the test if its claim is refuted, or could not be tested.

        Args:
            mechanism: any mechanism that `dpcore.audit` takes.
            pair: two neighbouring inputs, or None for the mechanism's own.
            epsilon: the claim, at least 0.
            **options: further keywords of `dpcore.audit`: `delta`, `attack`, ... `trials`,
                `confidence` and `rng` win over the settings where they are not None.

        Returns:
            The audit: not refuted, which does not show that the claim is true.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a value is out of range.
        """
        audit = self._audit(mechanism, pair, epsilon, options)
        if audit.checks:
            self._fail(audit, "was not tested", [])
        if audit.refuted:
            self._fail(audit, "is refuted", [])
        return self._kept(audit)

    def refutes(
        self,
        mechanism: Callable[..., Any],
        pair: Pair | tuple[Any, Any] | None = None,
        *,
        epsilon: float,
        **options: Any,
    ) -> Audit:
        """Audit a mechanism known to break its claim and fail the test if it is not caught.

        Args:
            mechanism: any mechanism that `dpcore.audit` takes.
            pair: two neighbouring inputs, or None for the mechanism's own.
            epsilon: the claim, at least 0.
            **options: as in the call itself.

        Returns:
            The audit, which refutes the claim.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a value is out of range.
        """
        audit = self._audit(mechanism, pair, epsilon, options)
        if audit.checks:
            self._fail(audit, "was not tested", [])
        if not audit.refuted:
            self._fail(audit, "is not refuted", [("needed", _needed(audit))])
        return self._kept(audit)

    def _audit(self, mechanism: Any, pair: Any, epsilon: Any, options: dict[str, Any]) -> Audit:
        from .auditing import audit

        if "claim" in options:
            raise mistyped("claim", "given as epsilon", options["claim"])
        claim = real("epsilon", epsilon, low=0.0)
        self._calls += 1
        defaults = {
            "trials": self._settings.trials,
            "confidence": self._settings.confidence,
            "rng": seed_of(self._node.nodeid, self._calls, self._settings.seed),
            # A bar would be written between the dots of pytest.
            "progress": False,
        }
        missing = {name: v for name, v in defaults.items() if options.get(name) is None}
        found = audit(mechanism, pair, claim=claim, **{**options, **missing})
        if found.partial:
            # Ctrl-C is meant for the whole run of tests.
            raise KeyboardInterrupt
        # For -v and for JUnit's XML.
        self._node.user_properties.append(("dp_audit", _line(found)))
        return found

    def _kept(self, audit: Audit) -> Audit:
        """The audit of a test that goes on; -rP prints its report, as a failure prints it too."""
        self._node.add_report_section("call", "dp_audit", f"{audit}\n")
        return audit

    def _fail(self, audit: Audit, outcome: str, more: list[tuple[str, str]]) -> None:
        from ._repeat import call
        from .report import rows

        place = f"{self._calls} of {self._node.nodeid}"
        table = [("audit", place), ("mechanism", audit.name), *rows(audit)]
        table += [*more, ("repeat", _command(self._node)), ("or", call(audit))]
        found = audit.verdict if audit.checks else _certified(audit)
        lines = [f"{_claim(audit)} {outcome}: {found} in {audit.name}"]
        lines += [f"  {label:<12} {text}" for label, text in table]
        pytest.fail("\n".join(lines), pytrace=False)


def seed_of(nodeid: str, number: int, base: int = 0) -> int:
    """The seed of an audit in a test: the first 63 bits of SHA-256("base number nodeid").

    Args:
        nodeid: pytest's id of the test.
        number: 1 for the first audit in the test, 2 for the second.
        base: the setting `seed`.

    Returns:
        A number in [0, 2**63), the same on every machine.

    Example:
        >>> seed_of("test_it.py::test_noise", 1)
        1982032392766158511
    """
    text = f"{base} {number} {nodeid}".encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def _command(node: pytest.Item) -> str:
    """The command line that runs a test again, from the directory in which pytest was started."""
    file = os.path.relpath(node.path, node.config.invocation_params.dir)
    command = ["python", "-m", "pytest", "::".join([file, *node.nodeid.split("::")[1:]])]
    for name in _HELP:
        value: str | None = node.config.getoption(f"--dp-{name}")
        command += [] if value is None else [f"--dp-{name}={value}"]
    return shlex.join(command)


def _claim(audit: Audit) -> str:
    delta = f", delta = {audit.delta:g}" if audit.delta else ""
    return f"epsilon <= {audit.claim:g}{delta}"


def _certified(audit: Audit) -> str:
    return f"certified epsilon >= {audit.epsilon_lower:.4f}"


def _line(audit: Audit) -> str:
    level = f"{100 * audit.confidence:g} % confidence"
    found = f"{_claim(audit)} {audit.verdict}"
    found += "" if audit.checks else f", {_certified(audit)} at {level}"
    return f"{audit.name}: {found}, seed {audit.seed}"


def _needed(audit: Audit) -> str:
    trials = trials_needed(audit)
    if trials is None:
        return "another event, pair or attack: at these frequencies no number of trials is enough"
    return f"about {trials:,} trials on each side, if the frequencies stay as they are"


def trials_needed(audit: Audit) -> int | None:
    """Trials on each side with which the frequencies of an audit would refute its claim.

    Args:
        audit: an audit with a claim.

    Returns:
        The number, rounded up to two digits; None if 10**12 are not enough.
    """
    from .bounds import clopper_pearson

    seen = audit.bound_counts
    claim = (audit.claim or 0.0) * audit.pair.distance

    def enough(trials: int) -> bool:
        from .records import Counts

        k, k_prime = seen.k * trials // seen.n, -(-seen.k_prime * trials // seen.n_prime)
        counts = Counts(k, trials, k_prime, trials)
        return clopper_pearson(counts, audit.delta, audit.confidence) > claim

    for digits in range(12):
        for leading in range(10, 100):
            trials: int = leading * 10**digits
            if enough(trials):
                return trials
    return None
