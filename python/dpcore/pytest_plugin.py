"""Privacy claims as tests: the pytest fixture `dp_audit`.

pytest loads this plugin in every environment in which dpcore is installed. To load fast, the plugin
imports the modules for audits and reports only when a test makes an audit. An audit in a test is
deterministic, because dpcore computes its seed from the test's id. A test that passes once
therefore always passes. The test of a correct mechanism fails with probability at most
1 - confidence over the choice of the seed. Some mechanisms draw their own randomness, which a seed
does not fix. For such mechanisms, pytest prints one warning per run of the tests.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shlex
import traceback
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

import pytest

from . import errors
from .suggestions import explain_argument_errors
from .visible import make_visible

if TYPE_CHECKING:
    from .auditing.arguments import Arguments
    from .claims.trade_off import Claim
    from .pairs import Search
    from .recorded.run import OutputsOptions
    from .records import Pair
    from .results.audits import Audit
    from .results.outputs_audits import OutputsAudit
    from .streams import Rng
    from .tables.table_audit import TableAudit
    from .tracing.outcome import Trace

    @dataclass(frozen=True)
    class _TestArguments(Arguments):
        """Arguments of `dpcore.audit` in a test; `seconds` is not among them.

        With `seconds`, the number of trials would depend on the load of the machine.
        """

        seconds: None = None
        confidence: float | None = None  # type: ignore[assignment]
        epsilon: float | Claim | None = field(default=None, kw_only=True)


_Parameters = ParamSpec("_Parameters")
_Outcome = TypeVar("_Outcome")
_Method = Callable[Concatenate["DPAudit", _Parameters], _Outcome]


def _copy_parameter_types(
    kind: Callable[[], Callable[_Parameters, Any]],
) -> Callable[[Callable[..., _Outcome]], _Method[_Parameters, _Outcome]]:
    """Return a decorator that gives a method of `DPAudit` the arguments of a class.

    Only type checkers see these arguments. The decorator does not change the method at run time.
    `kind` is a function that returns the class.
    """
    return lambda method: method


def _make_setting_field(
    default: Any, help_text: str, check: Callable[[str, Any], Any], kind: Callable[[str], Any] = str
) -> Any:
    """Make the dataclass field of one setting of the pytest plugin.

    Args:
        default: value of the setting if the user does not give it.
        help_text: line of help that `pytest --help` prints.
        check: function `(label, value)` that returns a valid value and raises an error for another
            value. The label is the name of the option, which the error message states.
        kind: function that converts text from the command line or a configuration file to a
            number. If the text is not a number, `check` gets the text and raises an error.
    """

    def read(label: str, value: Any) -> Any:
        with contextlib.suppress(ValueError):
            value = kind(value) if isinstance(value, str) else value
        return check(label, value)

    return field(default=default, metadata={"help": help_text, "read": read})


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of the audits that a pytest test makes with the fixture `dp_audit`.

    A setting can be given in five places. A later place of this list overrides an earlier place:

    1. the defaults of this class;
    2. `dp_trials`, `dp_confidence`, `dp_seed` and `dp_min_share` in pytest's configuration file;
    3. `--dp-trials`, `--dp-confidence`, `--dp-seed` and `--dp-min-share` on the command line;
    4. the marker `pytest.mark.dp` with `trials`, `confidence`, `seed` or `min_share`;
    5. the arguments of `dp_audit(...)` (except `min_share`).

    Attributes:
        trials: number of outputs that an audit draws on each of the two inputs to compute the
            bound. By default, this number is the attribute `default_trials` of the mechanism, or
            10**5 if the mechanism has no such attribute. For OpenDP the default is 10,000, because
            OpenDP draws only one output per call.
        confidence: probability with which a certified bound holds, by default 0.9999. At this
            value, the test of a correct mechanism fails with probability at most 1/10,000.
        seed: a number that changes the random seeds of all audits, by default 0. dpcore computes
            the seed of each audit from this number and from the id of the test.
        min_share: smallest allowed ratio of the certified epsilon to the claimed epsilon, in [0,
            1). If the ratio of an audit is smaller, the test fails, because the audit hardly tested
            the claim. Defaults to 0, which allows every ratio.
    """

    trials: int | None = _make_setting_field(
        None, "draws that dp_audit counts on each side (default 1e5, of OpenDP 1e4)", errors.count
    )
    confidence: float = _make_setting_field(
        0.9999,
        "confidence of dp_audit's bounds (default 0.9999)",
        lambda label, value: errors.confidence_level(value, label),
        float,
    )
    seed: int = _make_setting_field(
        0,
        "a number that changes the seeds of all audits made by dp_audit (default 0)",
        partial(errors.integer, low=0),
        int,
    )
    min_share: float = _make_setting_field(
        0.0,
        "share of its claim that dp_audit must certify, or the test fails (default 0)",
        partial(errors.real, low=0.0, high=1.0, open_high=True),
        float,
    )


_SETTING_READERS: dict[str, Callable[[str, Any], Any]] = {
    setting.name: setting.metadata["read"] for setting in fields(Settings)
}
"""For each setting, the function that checks a value from an option, the ini file or a marker."""

_DEFAULT_TRIALS = 10**5
_MIN_CERTIFIED_SHARE = 0.5
"""After the tests, pytest reports audits whose certified / claimed epsilon is below this number."""

_FoundAudit = TypeVar("_FoundAudit", "Audit", "OutputsAudit")
_AnyAudit = TypeVar("_AnyAudit", "Audit", "OutputsAudit", "TableAudit")

_SETTINGS_KEY = pytest.StashKey[Settings]()
_WARNED_KEY = pytest.StashKey[bool]()
"""True if this run has warned about a mechanism whose outputs a seed does not repeat."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add dpcore's settings to the command-line options and the configuration file of pytest.

    The settings are `dp_trials`, `dp_confidence`, `dp_seed` and `dp_min_share` in the file, and
    `--dp-trials`, `--dp-confidence`, `--dp-seed` and `--dp-min-share` on the command line.
    """
    group = parser.getgroup("dpcore", "audits of differential privacy (dp_audit)")
    for setting in fields(Settings):
        text = setting.metadata["help"]
        metavar = "SHARE" if setting.name == "min_share" else "N"
        group.addoption(_format_option(setting.name), metavar=metavar, default=None, help=text)
        parser.addini(f"dp_{setting.name}", text, default=None)


def _format_option(name: str) -> str:
    """Return the name of a setting's option on the command line, such as "--dp-min-share"."""
    return f"--dp-{name.replace('_', '-')}"


def pytest_configure(config: pytest.Config) -> None:
    """Read dpcore's settings from the configuration file and the command line of pytest.

    If a setting is wrong, pytest stops with a usage error.
    """
    config.addinivalue_line(
        "markers", f"dp({', '.join(_SETTING_READERS)}): what dp_audit uses in this test"
    )
    settings = Settings()
    try:
        for name, read in _SETTING_READERS.items():
            file, option = f"dp_{name}", _format_option(name)
            for label, value in ((file, config.getini(file)), (option, config.getoption(option))):
                if value is not None:
                    settings = replace(settings, **{name: read(label, value)})
    except (TypeError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    config.stash[_SETTINGS_KEY] = settings


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Shorten the traceback of a failed test that uses the fixture `dp_audit`.

    Lines from dpcore's own code are removed. Lines from the test and from the mechanism remain.
    With the option `--full-trace` of pytest, the traceback is not shortened.
    """
    failure = call.excinfo
    if failure is None or item.config.getoption("fulltrace"):
        return
    # An item of another plugin may not be a function with fixtures.
    if not isinstance(item, pytest.Function) or "dp_audit" not in item.fixturenames:
        return
    package, left = Path(__file__).parent, None
    for frame, line in reversed(list(traceback.walk_tb(failure.tb))):
        if package not in Path(frame.f_code.co_filename).parents:
            left = TracebackType(left, frame, frame.f_lasti, line)
    if left is not None:
        call.excinfo = pytest.ExceptionInfo.from_exception(failure.value.with_traceback(left))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print, after all tests, how many audits certified less than half of the claimed epsilon.

    With the option -v of pytest, the summary also has one line for each audit. Some attacks read
    only a part of each output, such as one entry of a vector. The summary always has a line for
    each audit with such an attack.
    """
    verbose = terminalreporter.config.get_verbosity() >= 1
    # Reports from the workers of pytest-xdist also have these properties.
    properties = [
        (report.nodeid, key, value)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and report.when == "call"
        for key, value in report.user_properties
    ]
    lines = [f"{test}: {value}" for test, key, value in properties if key == "dp_audit"]
    if lines and verbose:
        terminalreporter.section("audits by dpcore")
        for line in lines:
            terminalreporter.line(line)
    for test, _, value in (entry for entry in properties if entry[1] == "dp_read"):
        terminalreporter.line(f"dp_audit: {test} compared {value}")
    shares = [(test, float(str(value))) for test, key, value in properties if key == "dp_share"]
    little = [test for test, share in shares if share < _MIN_CERTIFIED_SHARE]
    if little:
        many, whose = len(little), "its" if len(little) == 1 else "their"
        summary = (
            f"dp_audit: {many} of {len(lines)} audits certified less than half of {whose} claim"
        )
        terminalreporter.line(summary if verbose else f"{summary} (-v names the tests)")
        for test in dict.fromkeys(little) if verbose else ():
            terminalreporter.line(f"  {test}")


@pytest.fixture
def dp_audit(request: pytest.FixtureRequest) -> DPAudit:
    """Audit a mechanism; the test fails if its claim is refuted.

    `dp_audit(mechanism, pair, claim=1.0)` returns the `dpcore.Audit`. With `dp_audit.refutes(...)`,
    the test fails if the audit does not refute the claim. These two calls accept the keyword
    arguments of `dpcore.audit`. There are four more calls:

    - `dp_audit.outputs(outputs, outputs_prime, rows=..., claim=1.0)`, with the keyword arguments of
      `dpcore.audit_outputs`;
    - `dp_audit.table(table, distances, claim=1.0)` and `dp_audit.refutes_table(...)`, with the
      keyword arguments of `dpcore.audit_table`;
    - `dp_audit.trace(f, pair, claim=1.0)`, with the keyword arguments of `dpcore.trace`.
    """
    node: pytest.Item = request.node
    settings = node.config.stash[_SETTINGS_KEY]
    # The closest marker comes first, and overrides the marker of the class or module.
    for marker in reversed(list(node.iter_markers("dp"))):
        options = marker.kwargs
        if marker.args or not set(options) <= set(_SETTING_READERS):
            need = f"given the keywords {', '.join(_SETTING_READERS)} only"
            raise errors.mistyped("marker dp", need, (*marker.args, *options))
        own_settings = {
            name: _SETTING_READERS[name](f"dp({name})", options[name]) for name in options
        }
        settings = replace(settings, **own_settings)
    return DPAudit(node, settings)


class DPAudit:
    """Type of the pytest fixture `dp_audit`, for annotations: `def test_it(dp_audit: DPAudit)`.

    Args:
        node: pytest's item of the test that uses the fixture.
        settings: settings of the audits in this test, such as the number of trials.
    """

    def __init__(self, node: pytest.Item, settings: Settings) -> None:
        self._node, self._settings = node, settings
        self._calls = 0

    @_copy_parameter_types(lambda: _TestArguments)
    @explain_argument_errors
    def __call__(
        self,
        mechanism: Any,
        pair: Pair | tuple[Any, Any] | Iterable[Pair] | Search | None = None,
        *,
        claim: float | Claim | None = None,
        **options: Any,
    ) -> Audit:
        """Audit a mechanism; the test fails if its claim is refuted or could not be tested.

        Args:
            mechanism: any mechanism that `dpcore.audit` takes.
            pair: two inputs that are neighbours under the claim. Defaults to the pair that the
                mechanism proposes.
            claim: the epsilon to test, at least 0, or a curve of `dpcore.claims`. Defaults to the
                claim that the mechanism states. For an OpenDP measurement, it defaults to the claim
                that OpenDP computes from `neighbour`.
            **options: further keywords of `dpcore.audit`, such as `neighbour`, `null`, `delta` and
                `attack`. `trials`, `confidence` and `rng` override the settings of the fixture,
                unless they are None. `epsilon` is another name of `claim`.

        Returns:
            The audit, which does not refute the claim. The claim may still be false.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a value is out of range, or no claim is given.
        """
        return self._require_passed(self._audit_mechanism(mechanism, pair, claim, options))

    @explain_argument_errors
    def outputs(
        self,
        outputs: Any,
        outputs_prime: Any = None,
        *,
        claim: float | Claim | None = None,
        **options: Unpack[OutputsOptions],
    ) -> OutputsAudit:
        """Audit recorded outputs; the test fails if the claim is refuted or could not be tested.

        Args:
            outputs: outputs that a mechanism returned on the first input x, in a form that
                `dpcore.audit_outputs` accepts.
            outputs_prime: outputs that the mechanism returned on the second input x', in the same
                form.
            claim: the epsilon to test, at least 0, or a curve of `dpcore.claims`.
            **options: further keyword arguments of `dpcore.audit_outputs`. The argument `rows` is
                required. An argument `confidence` or `rng` replaces the setting of the fixture,
                unless the argument is None.

        Returns:
            The audit. It does not refute the claim, but the claim may still be false.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range, or no claim is given.
        """
        from .recorded.run import audit_outputs

        claim = _claim_or_epsilon_argument(claim, options)
        if claim is None:
            raise errors.invalid("claim", "given, for recorded outputs make none", None)
        settings = self._complete_options(options, "trials")
        audit = audit_outputs(outputs, outputs_prime, claim=claim, **settings)
        return self._require_passed(self._add_to_properties(audit))

    @_copy_parameter_types(lambda: _TestArguments)
    @explain_argument_errors
    def refutes(
        self,
        mechanism: Any,
        pair: Pair | tuple[Any, Any] | Iterable[Pair] | Search | None = None,
        *,
        claim: float | Claim | None = None,
        **options: Any,
    ) -> Audit:
        """Audit a mechanism with a false privacy claim; the test fails if the claim is not refuted.

        Args:
            mechanism: any mechanism that `dpcore.audit` accepts.
            pair: two inputs that are neighbours under the claim. Defaults to the pair that the
                mechanism proposes, if it proposes one.
            claim: the epsilon to refute, at least 0, or a curve of `dpcore.claims`. Defaults to the
                claim that the mechanism states, if it states one.
            **options: further keyword arguments of `dpcore.audit`, such as `neighbour`, `delta` or
                `attack`.

        Returns:
            The audit. It refutes the claim.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range, or no claim is given.
        """
        audit = self._audit_mechanism(mechanism, pair, claim, options)
        if audit.checks or audit.undecided:
            self._fail(audit, "was not tested")
        if not audit.refuted:
            self._fail(audit, "is not refuted")
        return self._add_report(audit)

    @explain_argument_errors
    def table(
        self,
        table: Any,
        distances: Any = None,
        *,
        claim: float | None = None,
        log: bool = False,
        **options: Any,
    ) -> TableAudit:
        """Audit a table of output probabilities exactly; the test fails if the claim is refuted.

        Args:
            table: a table with one row per input and one column per output, in a form that
                `dpcore.audit_table` accepts. An entry is the probability of the output on the
                input.
            distances: distances between the inputs for metric privacy, or None for ordinary DP.
            claim: the epsilon to test, at least 0. Defaults to the claim that the mechanism states,
                if `table` is a mechanism with a claim.
            log: True if the entries are the natural logarithms of the probabilities.
            **options: `neighbour`, `tolerance` and `threads` of `dpcore.audit_table`. `epsilon` is
                another name for `claim`.

        Returns:
            The audit. It does not refute the claim for this table.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range, or no claim is given.
        """
        audit = self._audit_table(table, distances, claim, log, options)
        if audit.refuted:
            self._fail(audit, "is refuted")
        return self._add_report(audit)

    @explain_argument_errors
    def refutes_table(
        self,
        table: Any,
        distances: Any = None,
        *,
        claim: float | None = None,
        log: bool = False,
        **options: Any,
    ) -> TableAudit:
        """Audit a table with a false privacy claim; the test fails if the claim is not refuted.

        The table contains the probabilities of outputs, and the audit is exact.

        Args:
            table: a table with one row per input and one column per output, in a form that
                `dpcore.audit_table` accepts. An entry is the probability of the output on the
                input.
            distances: distances between the inputs for metric privacy, or None for ordinary DP.
            claim: the epsilon to refute, at least 0. Defaults to the claim that the mechanism
                states, if `table` is a mechanism with a claim.
            log: True if the entries are the natural logarithms of the probabilities.
            **options: `neighbour`, `tolerance` and `threads` of `dpcore.audit_table`. `epsilon` is
                another name for `claim`.

        Returns:
            The audit. It refutes the claim.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range, or no claim is given.
        """
        audit = self._audit_table(table, distances, claim, log, options)
        if not audit.refuted:
            self._fail(audit, "is not refuted")
        return self._add_report(audit)

    @explain_argument_errors
    def trace(
        self,
        f: Callable[..., Any],
        pair: Pair | tuple[Any, Any],
        *,
        claim: float | Claim | None = None,
        delta: float = 0.0,
        draws: int = 4,
        rng: Rng = None,
        epsilon: float | Claim | None = None,
    ) -> Trace:
        """Compute the privacy loss of a function; the test fails if the loss exceeds the claim.

        dpcore runs the function on the two inputs and records how the function uses its noise. The
        test fails in three cases: if the privacy loss exceeds the claim, if dpcore finds an error
        in the use of noise, or if the claim could not be tested. In the third case, the trace has
        the verdict "no loss", "a step may be hidden" or "not traceable". In this case, audit the
        function with `dp_audit(...)`.

        Args:
            f: a function that `dpcore.trace` accepts.
            pair: two inputs that are neighbours under the claim.
            claim: the claimed epsilon, at least 0, or a curve of `dpcore.claims`. Defaults to the
                claim that the function states, if it states one.
            delta: the delta of the claim.
            draws: number of times that dpcore runs the function, each time with new noise.
            rng: a seed or a numpy Generator. By default, dpcore computes the seed from the id of
                the test.
            epsilon: another name for `claim`.

        Returns:
            The trace. The privacy loss of the function on this pair is at most the claim. The loss
            is computed from the recorded uses of noise, and is not a certified bound.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if a value is out of range, or no claim is given.
        """
        from .mechanisms.declarations import get_or_default
        from .tracing.run import trace

        claim = _claim_or_epsilon_argument(claim, {"epsilon": epsilon})
        own = get_or_default(f, "claim") if claim is None else claim
        if own is None or callable(own):
            raise errors.invalid("claim", "given for a function without its own claim", None)
        rng = self._complete_options({"rng": rng}, "trials", "confidence")["rng"]
        report = trace(f, pair, claim=own, delta=delta, draws=draws, rng=rng)
        stated = _format_claim_value(own, delta)
        line = f"{stated} {_describe_verdict_and_loss(report)}, seed {report.seed}"
        self._add_property("dp_audit", f"{report.name}: {line}")
        if report.exit_status:
            self._fail_trace(report, stated)
        self._node.add_report_section("call", "dp_audit", f"{report}\n")
        return report

    def _fail_trace(self, report: Trace, claim: str) -> None:
        from .report.rows import format_rows

        outcome = _describe_verdict_and_loss(report)
        if report.exit_status != 1:
            outcome = f"was not tested: {outcome}"
        table = [("trace", f"{self._calls} of {self._node.nodeid}"), *report.lines()]
        table += [("seed", str(report.seed))] * ("seed" not in dict(table))
        table.append(("repeat", _rerun_command(self._node)))
        pytest.fail(format_rows(f"{claim} {outcome} in {report.name}", table), pytrace=False)

    def _audit_table(
        self, table: Any, distances: Any, claim: Any, log: bool, options: dict[str, Any]
    ) -> TableAudit:
        from .tables.table_audit import audit_table

        claim, self._calls = _claim_or_epsilon_argument(claim, options), self._calls + 1
        settings = {"progress": False, **options}
        settings.pop("epsilon", None)
        audit = audit_table(table, distances, claim=claim, log=log, **settings)
        if audit.claim is None:
            raise errors.invalid("claim", "given for a table without its own claim", None)
        line = f"{_format_claim(audit)} {audit.verdict}, {_format_certified(audit)}"
        self._add_property("dp_audit", f"{audit.name}: {line}")
        command = f"pytest {self._node.nodeid}"
        return replace(audit, provenance=(replace(audit.provenance[0], command=command),))

    def _audit_mechanism(
        self, mechanism: Any, pair: Any, claim: Any, options: dict[str, Any]
    ) -> Audit:
        from .adapters import adapt
        from .auditing.arguments import collect_audit_arguments
        from .auditing.run import run_with_checkpoint
        from .mechanisms.declarations import get_or_default

        claim = _claim_or_epsilon_argument(claim, options)
        # A progress bar would appear between the dots of pytest.
        settings = {"progress": False, **self._complete_options(options)}
        adapted = None if isinstance(mechanism, type) else adapt(mechanism)
        found_as = mechanism if adapted is None else adapted
        advice = get_or_default(found_as, "claim_advice")
        if claim is None and settings.get("neighbour") is None and advice:
            raise errors.invalid("claim", f"given, or neighbour= ({advice})", None)
        remark = ""
        if settings["trials"] is None:
            settings["trials"] = own = _find_default_trials(found_as, pair)
            remark = f", {own:,} trials (default for {type(found_as).__name__})" if own else ""
        arguments = collect_audit_arguments(mechanism, pair, {"claim": claim, **settings})
        audit = run_with_checkpoint(arguments, _DEFAULT_TRIALS)
        if audit.claim is None:
            raise errors.invalid("claim", "given for a mechanism without its own claim", None)
        if audit.partial:
            # Ctrl-C must interrupt the whole run of tests.
            raise KeyboardInterrupt
        self._warn_of_own_randomness(audit)
        return self._add_to_properties(audit, remark)

    def _complete_options(self, options: Mapping[str, Any], *apart: str) -> dict[str, Any]:
        """Return the keyword arguments of a call; missing arguments are taken from the settings.

        The settings named in `apart` are not added.
        """
        if "seconds" in options:
            need = "left out: a test must not depend on the load of a machine (give trials=)"
            raise errors.mistyped("seconds", need, options["seconds"])
        self._calls += 1
        defaults = asdict(self._settings)
        defaults["rng"] = seed_of_test(self._node.nodeid, self._calls, defaults.pop("seed"))
        del defaults["min_share"]
        missing = {n: v for n, v in defaults.items() if options.get(n) is None and n not in apart}
        return {**{name: v for name, v in options.items() if name != "epsilon"}, **missing}

    def _add_to_properties(self, audit: _FoundAudit, remark: str = "") -> _FoundAudit:
        """Add a line on the audit to the test's properties; return the audit with the test's id.

        `pytest -v` and JUnit's XML show the properties of a test.
        """
        from .auditing.provenance import record_command

        self._add_property("dp_audit", f"{_format_audit_summary(audit)}{remark}")
        self._node.user_properties.append(("dp_share", _certified_share(audit)))
        if audit.read is not None and not audit.read.is_whole:
            self._add_property("dp_read", str(audit.read))
        return record_command(audit, f"pytest {self._node.nodeid}")

    def _add_property(self, name: str, text: str) -> None:
        """Add a property to the test. `pytest -v` and JUnit's XML show the property."""
        self._node.user_properties.append((name, make_visible(text)))

    def _warn_of_own_randomness(self, audit: Audit) -> None:
        """Warn once per run of pytest if a mechanism draws its own randomness.

        A second audit of such a mechanism with the same seed may have another outcome.
        """
        stash = self._node.config.stash
        if audit.randomness == "own" and not stash.get(_WARNED_KEY, False):
            stash[_WARNED_KEY] = True
            text = (
                f"{audit.name} draws its own randomness: no seed repeats the audit in "
                f"{self._node.nodeid}, which may pass or fail at random; draw from its argument "
                "rng (said once a run)"
            )
            warnings.warn(text, errors.AssumptionWarning, stacklevel=5)

    def _require_passed(self, audit: _FoundAudit) -> _FoundAudit:
        """Return the audit; let the test fail if the claim is refuted, untested or weakly tested.

        A claim is weakly tested if the ratio of the certified epsilon to the claimed epsilon is
        below the setting `min_share`.
        """
        if audit.checks or audit.undecided:
            self._fail(audit, "was not tested")
        if audit.refuted:
            self._fail(audit, "is refuted")
        least = self._settings.min_share
        if _certified_share(audit) < least:
            self._fail(audit, f"was hardly tested (less than {least:g} of it, see --dp-min-share)")
        return self._add_report(audit)

    def _add_report(self, audit: _AnyAudit) -> _AnyAudit:
        """Add the report of an audit to the test, and return the audit.

        pytest prints the report if the test fails later, or with the option -rP.
        """
        self._node.add_report_section("call", "dp_audit", f"{audit}\n")
        return audit

    def _fail(self, audit: Audit | OutputsAudit | TableAudit, outcome: str) -> None:
        from .report.rows import format_rows
        from .results.audit_json import format_call
        from .results.audit_text import describe_how_to_refute, list_report_rows_without_time
        from .results.audits import Audit
        from .tables.table_audit import TableAudit

        table = [("audit", f"{self._calls} of {self._node.nodeid}")]
        again = [("repeat", _rerun_command(self._node))]
        if isinstance(audit, Audit):
            table += [("mechanism", audit.name), *list_report_rows_without_time(audit), *again]
            table.append(("or", format_call(audit)))
        else:
            table += [("outputs", audit.name), *audit.lines(), *again]
        tested = isinstance(audit, TableAudit) or not (audit.checks or audit.undecided)
        outcome_text = _format_certified(audit) if tested else audit.verdict
        if not tested and not isinstance(audit, TableAudit) and not audit.checks:
            outcome_text += f"; it takes {describe_how_to_refute(audit).rstrip('.')}"
        title = f"{_format_claim(audit)} {outcome}: {outcome_text} in {audit.name}"
        pytest.fail(format_rows(title, table), pytrace=False)


def _claim_or_epsilon_argument(claim: Any, options: Mapping[str, Any]) -> Any:
    """Return the claim, given by the argument `claim` or `epsilon`, or None without a claim."""
    from .claims.trade_off import Claim

    other = options.get("epsilon")
    if claim is not None and other is not None:
        requirement = "given once, as claim or as epsilon"
        raise errors.invalid("claim", requirement, f"claim={claim!r} and epsilon={other!r}")
    if isinstance(claim, Claim) or isinstance(other, Claim):
        return other if claim is None else claim
    if other is not None:
        return errors.real("epsilon", other, low=0.0)
    return None if claim is None else errors.real("claim", claim, low=0.0)


def seed_of_test(nodeid: str, number: int, base: int = 0) -> int:
    """Compute the random seed of an audit in a pytest test, from the id of the test.

    The seed consists of the first 63 bits of the SHA-256 hash of the text "base number nodeid".

    Args:
        nodeid: pytest's id of the test.
        number: number of the audit: 1 for the first audit in the test, 2 for the second, and so on.
        base: the setting `dp_seed` of the pytest plugin.

    Returns:
        The seed, in [0, 2**63). It is the same on every machine.

    Example:
        >>> seed_of_test("test_it.py::test_noise", 1)
        1982032392766158511
    """
    text = f"{base} {number} {nodeid}".encode("utf-8", "backslashreplace")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def _rerun_command(node: pytest.Item) -> str:
    """Format the command that repeats a test.

    The command must be run in the directory where pytest was started.
    """
    file = os.path.relpath(node.path, node.config.invocation_params.dir)
    command = ["python", "-m", "pytest", "::".join([file, *node.nodeid.split("::")[1:]])]
    for name in _SETTING_READERS:
        value: str | None = node.config.getoption(_format_option(name))
        command += [] if value is None else [f"{_format_option(name)}={value}"]
    return shlex.join(command)


def _format_claim(audit: Audit | OutputsAudit | TableAudit) -> str:
    from .claims.trade_off import Claim
    from .tables.table_audit import TableAudit

    if isinstance(audit.claim, Claim):
        return str(audit.claim)
    if isinstance(audit, TableAudit):
        return f"epsilon <= {audit.claim:g}"
    return _format_claim_value(audit.claimed_epsilon, audit.delta)


def _format_claim_value(claim: Any, delta: float) -> str:
    """Format a claim, which is a number (with a delta) or a curve, for a message."""
    from .claims.trade_off import Claim

    if isinstance(claim, Claim):
        return str(claim)
    return f"epsilon <= {claim:g}{f', delta = {delta:g}' if delta else ''}"


def _describe_verdict_and_loss(trace: Trace) -> str:
    """Describe a trace by its verdict and its loss (if it has no loss, by its first finding)."""
    if trace.loss is not None:
        size = "infinite" if math.isinf(trace.loss) else f"{trace.loss:.6g}"
        return f"{trace.verdict}, computed loss {size}"
    return f"{trace.verdict}: {trace.findings[0]}" if trace.findings else trace.verdict


def _certified_share(audit: Audit | OutputsAudit) -> float:
    """Compute the certified epsilon divided by the claimed epsilon.

    The result is 1 for a claim of 0. It is 0 if checks failed, because no bound holds then.
    """
    if audit.checks:
        return 0.0
    # With a delta, the bound and the claim are for the whole pair, not per unit of distance.
    claim = (audit.claimed_epsilon or 0.0) * (audit.pair.distance if audit.delta else 1.0)
    return audit.epsilon_lower / claim if claim else 1.0


def _format_certified(audit: Audit | OutputsAudit | TableAudit) -> str:
    from .tables.table_audit import TableAudit

    if isinstance(audit, TableAudit):
        return f"exact epsilon = {audit.epsilon:.4f}"
    return f"certified epsilon >= {audit.epsilon_lower:.4f}"


def _format_audit_summary(audit: Audit | OutputsAudit) -> str:
    level = f"{100 * audit.confidence:g} % confidence"
    line = f"{_format_claim(audit)} {audit.verdict}"
    line += "" if audit.checks else f", {_format_certified(audit)} at {level}"
    return f"{audit.name}: {line}, seed {audit.seed}"


def _find_default_trials(mechanism: Any, pair: Any) -> int | None:
    """Return the number of trials that a mechanism proposes for this pair, or None."""
    from .mechanisms.declarations import get_or_default
    from .records import Pair

    make = get_or_default(mechanism, "as_mechanism")
    made = make() if callable(make) and not isinstance(mechanism, type) else mechanism
    on_pair = get_or_default(made, "default_trials_on")
    texts = (pair.x, pair.x_prime) if isinstance(pair, Pair) else pair
    # With several pairs or no pair, the audit reports which pairs it accepts.
    is_pair = isinstance(texts, (tuple, list)) and [type(text) for text in texts] == [str, str]
    own: int | None = get_or_default(made, "default_trials")
    return on_pair(Pair(*texts)) if callable(on_pair) and is_pair else own


__all__ = ["DPAudit", "dp_audit"]
