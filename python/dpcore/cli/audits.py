"""Implementation of the commands `audit`, `count`, `merge`, `audit-outputs`, `audit-table`, `plan`.

Each command makes Python objects from its options and calls one function of dpcore. Then it prints
the report to stdout as text or JSON. If requested, it also saves the report as a picture or an HTML
page.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shlex
import signal
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, Final, get_type_hints

import numpy as np

from .. import attacks, published
from ..advice import find_closest_word
from ..auditing.power import plan
from ..auditing.provenance import record_command
from ..auditing.run import audit
from ..auditing.run_files import RunFile, read_run
from ..claims.trade_off import Claim
from ..errors import AssumptionWarning, argument_of, choice, count, instance, invalid
from ..events import Vote
from ..files.formats import NUMPY_ERRORS
from ..mechanisms.commands import command as make_tool
from ..mechanisms.declarations import get_or_default
from ..pairs import WHICH, AddRemove, Neighbour, Replace, distance, patterns
from ..pairs.neighbours import NORM_BALLS
from ..published import System
from ..recorded.run import audit_outputs
from ..records import Pair
from ..report.figures import save_picture
from ..report.plain import decode_value, encode_value, to_hint
from ..results.audits import Audit
from ..results.outputs_audits import OutputsAudit
from ..results.planned import Plan
from ..runs import MissingPartsError, begin_run, count_part, merge_parts, start_or_resume_run
from ..tables.table_audit import TableAudit, audit_table
from . import user
from .endings import (
    INTERRUPTED,
    MECHANISM_CONTRACT,
    NO_VERDICT,
    NOT_REFUTED,
    PARTS_MISSING,
    REFUTED,
    UNWRITTEN,
    Failure,
    Unwritten,
    Usage,
    check_output_paths,
    check_picture_path,
    collect_unwritten,
    print_and_export,
    to_usage_errors,
    write_escaped_to_stderr,
)
from .options import (
    OPTIONS,
    AuditArguments,
    CountArguments,
    MechanismArguments,
    MergeArguments,
    OutputsArguments,
    PlanArguments,
    TableArguments,
    TraceArguments,
    name_options,
    select_arguments,
)

_DISK_ERRORS: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS}
_CLUSTER_SECONDS = 30
"""Time limit in seconds for the connection to the scheduler of a Dask cluster."""

_DATASET_RELATIONS = {"replace": Replace, "add-remove": AddRemove}


def parse_relation(text: str | None) -> Neighbour | None:
    """Convert the value of the option `--neighbour` to a relation between neighbouring inputs.

    Args:
        text: the value: "l1=1", "l2=1" or "linf=1" (with any radius), "replace", "add-remove", or
            None if the option was omitted.

    Returns:
        A relation of `dpcore.pairs`. None if `text` is None.

    Raises:
        Usage: if the text is not one of these values.
    """
    if text is None:
        return None
    name, separator, radius = text.lower().partition("=")
    if name in _DATASET_RELATIONS and not separator:
        return _DATASET_RELATIONS[name]()
    try:
        return NORM_BALLS[name](float(radius))
    except (KeyError, ValueError):
        requirement = "l1=RADIUS, l2=RADIUS, linf=RADIUS, replace or add-remove"
        raise Usage(str(invalid("--neighbour", requirement, text))) from None


def read_pairs(asked: AuditArguments) -> Pair | tuple[Pair, ...] | None:
    """Return the inputs that the options of the command give: one pair, several pairs, or None.

    The option `--patterns` gives several pairs. None means that the options do not give inputs.

    Raises:
        Usage: if an option is missing, two options exclude each other, or the value of an option is
            invalid.
    """
    if asked.patterns is not None:
        inputs = (asked.x, asked.x_prime, asked.text, asked.text_prime)
        if asked.dim is None or inputs != (None,) * 4:
            raise Usage("--patterns needs --dim, and no other inputs")
        with to_usage_errors():
            return patterns(asked.dim, choice("patterns", asked.patterns, WHICH))
    return read_pair(asked)


def read_pair(asked: AuditArguments | TraceArguments) -> Pair | None:
    """Return the pair of inputs that the options of the command give, or None.

    The options are `--x` and `--x-prime`, or `--text` and `--text-prime`. If these options are
    missing, the result is None.

    Raises:
        Usage: if an option is missing, two options exclude each other, or the value of an option is
            invalid.
    """
    texts = (asked.text, asked.text_prime)
    if texts != (None, None):
        if None in texts:
            raise Usage("--text and --text-prime go together")
        if asked.dim is not None or asked.x is not None or asked.x_prime is not None:
            raise Usage("--text and --text-prime are the two inputs: no --x, --x-prime or --dim")
        return Pair(*texts)
    if asked.x is None and asked.x_prime is None:
        return None
    if asked.x is None or asked.x_prime is None:
        raise Usage("--x and --x-prime go together")
    if asked.dim is not None:
        raise Usage("--dim does not apply where --x and --x-prime give the pair")
    with to_usage_errors():
        return Pair(_read_vector("--x", asked.x), _read_vector("--x-prime", asked.x_prime))


def _read_vector(option: str, text: Any) -> Any:
    if not isinstance(text, str):
        return text
    if text.startswith("@"):
        try:
            return np.load(text[1:], allow_pickle=False)
        except (OSError, *NUMPY_ERRORS) as error:
            raise Usage(f"{option} must name an .npy file, got {text} ({error})") from None
    try:
        return np.array([float(number) for number in text.split(",")])
    except ValueError:
        requirement = "numbers separated by commas, or @FILE.npy"
        raise Usage(str(invalid(option, requirement, text))) from None


SYSTEMS: dict[str, type[System]] = {
    "laplace": published.LaplaceMechanism,
    "adept": published.ADePT,
    "adept-clip-l1": published.ADePTClipL1,
    "adept-scaled": published.ADePTScaled,
    "adept-reference": published.ADePTReference,
    "dptext": published.DPText,
    "dptext-repaired": published.DPTextRepaired,
    "halved-output": published.HalvedOutput,
    "half-noise": published.HalfNoise,
}
"""Published systems by their names on the command line."""

_OneOrMorePairs = Pair | tuple[Pair, ...]

_COMMAND_CONTRACT = (
    "it is run without a shell, {x} and {size} replaced, and writes one answer a line, {size} lines"
)

_SYSTEM_OPTIONS = tuple(
    option.name
    for option in fields(AuditArguments)
    if any(option.name == own.name for system in SYSTEMS.values() for own in fields(system))
)
"""Options that are parameters of a published system."""


def run_audit(asked: AuditArguments, command: str = "") -> int:
    """Run `dpcore audit`: audit a mechanism, print the report, and return the exit status."""
    if asked.resume is not None:
        asked = _restore_run_options(asked)
    if asked.target is None and asked.command is None:
        raise Usage("name a system or FILE.py:FUNCTION (dpcore audit --list shows the systems)")
    if asked.target is not None and asked.command is not None:
        raise Usage(f"--command is what is audited: leave out {asked.target}")
    if asked.timeout is not None and asked.command is None:
        raise Usage("--timeout is for --command")
    if asked.catch is not None and asked.command is None and not asked.repeat:
        raise Usage("--catch is for --command, and with --repeat for a function of one answer")
    refuse_claim_and_no_claim(asked)
    if asked.stop == "refuted" and asked.no_claim:
        raise Usage("--stop refuted needs a claim")
    if asked.checkpoint is not None and asked.no_claim:
        raise Usage("--checkpoint and --no-claim exclude each other: a run file keeps the claim")
    if asked.fit_only and asked.checkpoint is None:
        raise Usage("--fit-only needs --checkpoint, the file to write")
    check_output_paths(asked)
    with connect_to_dask_cluster(asked.dask) as client, _open_mechanism(asked) as (mechanism, pair):
        report = _audit_or_only_begin_run(asked, mechanism, pair, client)
    if report is None:
        with to_usage_errors():
            line = read_run(asked.checkpoint).count_command((1, 2), "part-1.json")
        write_escaped_to_stderr(f"wrote {asked.checkpoint}: count its parts, such as {line}")
        return NOT_REFUTED
    return _deliver_audit(asked, record_command(report, command))


def refuse_claim_and_no_claim(
    asked: AuditArguments | OutputsArguments | TableArguments | TraceArguments, advice: str = ""
) -> None:
    """Raise `Usage` if both of the options --claim and --no-claim are given.

    If `advice` is not empty, also raise `Usage` if neither option is given. In this case, `advice`
    is the error message.
    """
    if asked.claim is not None and asked.no_claim:
        raise Usage("--claim and --no-claim exclude each other")
    if asked.claim is None and not asked.no_claim and advice:
        raise Usage(advice)


def _deliver_audit(asked: AuditArguments | MergeArguments, report: Audit) -> int:
    print_and_export(asked, report)
    if report.partial:
        return INTERRUPTED
    return find_status(report)


def find_status(report: Audit | OutputsAudit) -> int:
    """Return the exit status for a report: 1 if the claim is refuted, 0 if not, 3 if undecided."""
    # The statuses 0 and 1 must not be returned for a claim that was not tested.
    if report.checks or report.undecided:
        return NO_VERDICT
    return REFUTED if report.refuted else NOT_REFUTED


def _restore_run_options(asked: AuditArguments) -> AuditArguments:
    """Return the options in the run file of --resume, with the process options of this command."""
    usual = AuditArguments(resume=asked.resume)
    own = (*_OPTIONS_OF_PROCESS, "plot", "html", "as_json", "resume")
    for option in fields(asked):
        if option.name not in (*own, *_NAMES_OF_CODE) and getattr(asked, option.name) != getattr(
            usual, option.name
        ):
            raise Usage(
                f"{OPTIONS.get(option.name, option.name)} stands in the run file: leave it out"
            )
    with to_usage_errors():
        run = read_run(asked.resume)
    if not run.asked:
        raise Usage(f"--resume is for runs of dpcore audit: go on with {run.resume_advice}")
    if run.part is not None:
        raise Usage(f"{asked.resume} is a part: go on with {run.resume_advice}")
    begun = _read_options_of_run(run)
    _require_same_target(asked, begun, run.resume_advice)
    changed = {name: getattr(asked, name) for name in own if name != "resume"}
    return replace(begun, checkpoint=asked.resume, resume=None, **changed)


def _options_to_store(asked: AuditArguments) -> dict[str, Any]:
    """Return the options that a run file stores (so that a run can continue), in JSON types."""
    held = {option.name: getattr(asked, option.name) for option in fields(asked)}
    if isinstance(asked.claim, Claim):
        held["claim"] = encode_value(asked.claim)
    return {name: value for name, value in held.items() if name not in ("checkpoint", "fit_only")}


def _read_options_of_run(run: RunFile) -> AuditArguments:
    """Return the options that a run file stores, after a check of their types."""
    assert run.fixed is not None
    hints, options = get_type_hints(AuditArguments), dict(run.asked)
    with to_usage_errors():
        if isinstance(options.get("claim"), dict):
            options["claim"] = instance("asked.claim", decode_value(options["claim"]), Claim)  # type: ignore[type-abstract]
        for name, value in options.items():
            to_hint(f"asked.{choice('asked', name, tuple(hints))}", hints[name], value)
        if options.get("command") is None:
            # Inputs from a file are stored in the run file, so that no other file is read again.
            for name in ("x", "x_prime"):
                if str(options.get(name)).startswith("@"):
                    options[name] = getattr(run.fixed.audit["pair"], name)
    return AuditArguments(**options)


_NAMES_OF_CODE: Final = ("target", "command")
"""Options that name the code to run. The run file stores them, but dpcore runs only code that the
command line names."""

_OPTIONS_OF_PROCESS: Final = tuple(
    option.name
    for option in fields(CountArguments)
    if option.name in AuditArguments.__dataclass_fields__ and option.name not in _NAMES_OF_CODE
)
"""Options of a process (such as its threads), which may differ between the parts of a run."""


def _require_same_target(asked: Any, begun: AuditArguments, line: str) -> None:
    """Raise `Usage` if the command line does not name the same code as the run file."""
    own = [getattr(asked, name) for name in _NAMES_OF_CODE]
    held = [getattr(begun, name) for name in _NAMES_OF_CODE]
    if own == held or (own == [None, None] and held[1] is None and held[0] in SYSTEMS):
        return
    missing = "is missing" if own == [None, None] else "differs"
    raise Usage(
        f"what runs must stand on the command line as in the run file, and {missing}. If you "
        f"trust it, type: {line}"
    )


@contextlib.contextmanager
def connect_to_dask_cluster(address: str | None) -> Iterator[Any]:
    """Return a context manager that connects to a Dask cluster and yields the Dask client.

    `address` is the address of the scheduler, or `local:N` to start N local processes. If `address`
    is None, the context manager yields None.
    """
    if address is None:
        yield None
        return
    try:
        import dask
        from distributed import Client
    except ModuleNotFoundError as error:
        raise Usage("--dask needs Dask: pip install 'dpcore[dask]'") from error
    kind, _, number = address.partition(":")
    settings: dict[str, Any] = {"address": address, "timeout": _CLUSTER_SECONDS}
    if kind == "local":
        if not number.isdigit() or int(number) < 1:
            raise Usage(f"--dask local:N needs a number of processes, got {address}")
        settings = {"n_workers": int(number), "threads_per_worker": 1, "dashboard_address": ":0",
                 "silence_logs": logging.CRITICAL}  # fmt: skip
    try:
        client = Client(**settings)
    except (OSError, ValueError) as error:
        raise Usage(f"--dask must be the address of a scheduler that answers: {error}") from error
    except RuntimeError as error:
        # The error of Dask only names the class that starts its workers.
        text = f"--dask {address}: a worker process ended while it started ({error})"
        raise Failure(text, "it was killed, or lacked memory; nothing was counted") from error
    # Without this setting, a worker that is killed while it starts is not restarted.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"}), client:
        yield client


def run_count(asked: CountArguments) -> int:
    """Run `dpcore count`: count one part of a divided audit, and return the exit status."""
    number, slash, parts = asked.part.partition("/")
    if not (slash and number.isdigit() and parts.isdigit()):
        raise Usage(f"--part must be I/N, such as 3/64, got {asked.part}")
    with to_usage_errors():
        run = read_run(asked.file)
    if not run.asked:
        raise Usage(f"{asked.file} must be written by dpcore audit --fit-only")
    begun = _read_options_of_run(run)
    _require_same_target(asked, begun, run.count_command((int(number), int(parts)), asked.out))
    own = {name: getattr(asked, name) for name in _OPTIONS_OF_PROCESS}
    begun = replace(begun, checkpoint=None, **own)
    with connect_to_dask_cluster(asked.dask) as client, _open_mechanism(begun) as (mechanism, pair):
        options = {**_audit_arguments(begun), "executor": client, "part": (int(number), int(parts))}
        options["again"] = asked.again
        try:
            with to_usage_errors():
                count_part(asked.file, mechanism, pair, out=asked.out, **options)
        except Usage as error:
            if not _is_caused_by_disk_error(error):
                raise
            write_escaped_to_stderr(f"error: {error}")
            return UNWRITTEN
    done = read_run(asked.out).done.trials
    write_escaped_to_stderr(f"wrote {asked.out}: part {asked.part}, {done:,} trials per side")
    return NOT_REFUTED


def _is_caused_by_disk_error(error: BaseException | None) -> bool:
    """Return True if a disk error (such as a full disk) is the cause of an error."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _DISK_ERRORS:
            return True
        error = error.__cause__
    return False


def run_merge(asked: MergeArguments) -> int:
    """Run `dpcore merge`: merge the parts of a divided audit, print the report; return a status."""
    check_output_paths(asked)
    with to_usage_errors():
        try:
            report = merge_parts(asked.files, partial=asked.partial)
        except MissingPartsError as error:
            write_escaped_to_stderr(f"error: {error}")
            return PARTS_MISSING
    status = _deliver_audit(asked, report)
    return PARTS_MISSING if report.partial else status


def _open_mechanism(
    asked: AuditArguments,
) -> contextlib.AbstractContextManager[tuple[Any, _OneOrMorePairs]]:
    if asked.command is not None:
        return contextlib.nullcontext(_make_command_mechanism(asked, asked.command))
    return load_mechanism(asked, asked.target or "")


@contextlib.contextmanager
def load_mechanism(asked: AuditArguments, target: str) -> Iterator[tuple[Any, _OneOrMorePairs]]:
    """Return a context manager that yields the mechanism and the inputs from the command line.

    `target` is the name of a published system, or "file.py:name". The inputs are one pair or
    several pairs. Inside the context, Python can import modules from the folder of the user's file.
    """
    if user.is_file_target(target):
        path, name = user.split_target(target)
        with user.user_sys_path(path):
            yield _load_user_mechanism(asked, target, path, name)
    else:
        yield _find_published(asked, target)


def _audit_or_only_begin_run(
    asked: AuditArguments, mechanism: Any, pair: _OneOrMorePairs, client: Any
) -> Audit | None:
    """Audit a mechanism and return the report, or only write a run file with --fit-only."""
    with (
        to_usage_errors(MECHANISM_CONTRACT if asked.command is None else _COMMAND_CONTRACT),
        warnings.catch_warnings(),
    ):
        # The report already contains these warnings.
        warnings.simplefilter("ignore", AssumptionWarning)
        arguments = {**_audit_arguments(asked), "executor": client}
        if asked.checkpoint is not None:
            arguments["asked"] = _options_to_store(asked)
        if asked.fit_only:
            begin_run(arguments.pop("checkpoint"), mechanism, pair, **arguments)
            return None
        if asked.checkpoint is None:
            report = audit(mechanism, pair, **arguments)
        else:
            report = start_or_resume_run(arguments.pop("checkpoint"), mechanism, pair, **arguments)
    return replace(report, claim=None) if asked.no_claim else report


def _audit_arguments(asked: AuditArguments) -> dict[str, Any]:
    """Return the keyword arguments of `dpcore.audit` that correspond to the options."""
    arguments = select_arguments(asked, audit)
    arguments["neighbour"] = parse_relation(asked.neighbour)
    arguments["start"] = _parse_first_trial(asked.start)
    arguments["attack"] = attacks.named(asked.attack, "attack")
    arguments["rng"] = asked.seed
    if asked.no_claim:
        # Without a claim, a number prevents `audit` from using the mechanism's own claim.
        arguments["claim"] = 0.0
    return arguments


def _parse_first_trial(text: str) -> int:
    with contextlib.suppress(InvalidOperation):
        if Decimal(text) == 0:
            return 0
    try:
        return count("start", text)
    except ValueError:
        raise invalid("start", "a whole number at least 0 and below 2**63", text) from None


def _find_published(asked: AuditArguments, name: str) -> tuple[System, _OneOrMorePairs]:
    """Return a published system with the given options, and its inputs."""
    if name not in SYSTEMS:
        close = find_closest_word(name, SYSTEMS)
        meant = f"did you mean {close}? " if close else ""
        raise Usage(f"no such system: {name} ({meant}dpcore audit --list shows all)")
    cls = SYSTEMS[name]
    required = {field.name: field.default is MISSING for field in fields(cls)}
    own_options = {
        key: getattr(asked, key) for key in _SYSTEM_OPTIONS if getattr(asked, key) is not None
    }
    if asked.claim is not None and not isinstance(asked.claim, Claim):
        own_options.setdefault("epsilon", asked.claim)
    for key in own_options:
        if key not in required:
            options = ", ".join(f"--{key}" for key in required)
            raise Usage(f"--{key} does not apply to {name} (its options: {options})")
    for key, needed in required.items():
        if needed and key not in own_options:
            raise Usage(f"{name} needs --{key}")
    if asked.repeat:
        raise Usage(f"--repeat does not apply to {name}: it is for a function of your own")
    if asked.text is not None or asked.text_prime is not None:
        raise Usage(f"--text does not apply to {name}, whose inputs are numbers")
    pair = read_pairs(asked)
    with to_usage_errors():
        if isinstance(pair, Pair) and not asked.null:
            Vote.between(pair)
            if "sensitivity" in required and "sensitivity" not in own_options:
                own_options["sensitivity"] = distance(pair, "l1")
        system = cls(**own_options)
        if pair is None:
            pair = system.default_pair() if asked.dim is None else system.default_pair(asked.dim)
    return system, pair


def _make_command_mechanism(asked: AuditArguments, text: str) -> tuple[Any, _OneOrMorePairs]:
    """Return the mechanism that runs an external command (--command), and its inputs."""
    _refuse_options_of_systems(asked, "a command")
    if asked.repeat:
        raise Usage("--repeat does not apply to a command: it is for a function of your own")
    if asked.claim is None and not asked.no_claim:
        raise Usage("a command has no claim: give --claim EPSILON, or --no-claim to estimate only")
    inputs = (asked.x, asked.x_prime)
    if None in inputs or asked.dim is not None:
        pair = read_pairs(asked)
    elif (asked.text, asked.text_prime, asked.patterns) != (None, None, None):
        raise Usage("--x and --x-prime are the two inputs: no --text, --text-prime or --patterns")
    else:
        pair = Pair(*inputs)
    if pair is None:
        raise Usage("give two inputs that the claim calls neighbours: --x TEXT and --x-prime TEXT")
    with to_usage_errors():
        try:
            catch = [] if asked.catch is None else _read_exit_statuses(asked.catch)
            return make_tool(shlex.split(text), timeout=asked.timeout, catch=catch), pair
        except ValueError as error:
            if argument_of(error):
                raise
            # An unclosed quotation mark.
            requirement = "a program and its arguments, quoted as in a shell"
            raise invalid("command", f"{requirement} ({error})", text) from None


def _read_exit_statuses(text: str) -> list[int]:
    """Parse the exit statuses of --catch. A signal may be given by its name."""
    statuses = []
    for name in map(str.strip, text.split(",")):
        try:
            statuses.append(getattr(signal, name) if name.startswith("SIG") else int(name))
        except (AttributeError, ValueError):
            requirement = "exit statuses and names of signals, such as 3,SIGSEGV"
            raise invalid("catch", requirement, name) from None
    return statuses


def _refuse_options_of_systems(asked: AuditArguments, what: str) -> None:
    for key in _SYSTEM_OPTIONS:
        if getattr(asked, key) is not None:
            meant = ": --claim is the epsilon to test" if key == "epsilon" else ""
            raise Usage(f"--{key} does not apply to {what}{meant}")


def _load_user_mechanism(
    asked: AuditArguments, target: str, path: Path, name: str
) -> tuple[Any, _OneOrMorePairs]:
    """Load the user's mechanism from a file; return it and its inputs."""
    _refuse_options_of_systems(asked, f"a mechanism of your own ({target})")
    pair = read_pairs(asked)
    mechanism = user.load_mechanism_from_file(path, name, target, asked.repeat, asked.catch)
    own = get_or_default(mechanism, "claim")
    if asked.claim is None and not asked.no_claim and (own is None or callable(own)):
        raise Usage(f"{target} has no claim: give --claim EPSILON, or --no-claim to estimate only")
    if pair is None:
        pair = user.own_pair(mechanism, target, path, asked.dim)
    if pair is None:
        # A default pair could refute a claim that was never made: 0 and 1 need not be neighbours,
        # and zeros and ones in many entries are rarely neighbours.
        raise Usage(
            f"{target} has no default_pair: give two inputs that the claim calls neighbours, "
            "--x NUMBERS and --x-prime NUMBERS, or --text and --text-prime (or --patterns one "
            "--dim D, for claims about one entry that changes by 1)"
        )
    return mechanism, pair


def run_outputs_audit(asked: OutputsArguments, command: str = "") -> int:
    """Run `dpcore audit-outputs`: audit outputs recorded in files, and return the exit status."""
    n_files = 2 if asked.label is None else 1
    if len(asked.files) != n_files:
        both = "two files, the outputs on x and those on x' (or one, with --label COLUMN)"
        raise Usage(f"name {both if n_files == 2 else 'one file where --label is given'}")
    refuse_claim_and_no_claim(asked, "give --claim EPSILON, or --no-claim to estimate only")
    check_output_paths(asked)
    report = record_command(_audit_output_files(asked), command)
    for doubt in report.doubts:
        write_escaped_to_stderr(f"warning: {name_options(doubt)}")
    print_and_export(asked, report)
    return find_status(report)


def _audit_output_files(asked: OutputsArguments) -> OutputsAudit:
    with _report_unreadable_files(), warnings.catch_warnings():
        # The report contains these warnings, and `run_outputs_audit` prints them.
        warnings.simplefilter("ignore", AssumptionWarning)
        arguments = select_arguments(asked, audit_outputs)
        arguments["attack"] = (
            None if asked.attack is None else attacks.named(asked.attack, "attack")
        )
        arguments["guesses"] = _parse_guess_counts_or_share(asked.guesses)
        for name in ("column", "exclude"):
            columns = list(map(_parse_column, arguments[name])) or None
            arguments[name] = columns[0] if columns and len(columns) == 1 else columns
        arguments["dtype"] = _parse_dtype(asked.dtype)
        for name in ("label", "groups"):
            arguments[name] = None if arguments[name] is None else _parse_column(arguments[name])
        return audit_outputs(*asked.files, rng=asked.seed, **arguments)


@contextlib.contextmanager
def _report_unreadable_files() -> Iterator[None]:
    """Convert errors of argument checks and of unreadable files to `Usage`."""
    try:
        with to_usage_errors():
            yield
    except (OSError, ImportError, MemoryError) as error:
        raise Usage(str(error)) from error


def _parse_column(name: str) -> str | int:
    return int(name) if name.isascii() and name.isdigit() else name


def _parse_dtype(texts: Sequence[str]) -> str | dict[str | int, str] | None:
    """Parse the values of --dtype: one type for all columns, or one type per column."""
    if not texts or (len(texts) == 1 and "=" not in texts[0]):
        return texts[0] if texts else None
    kinds: dict[str | int, str] = {}
    for text in texts:
        # A column name may also contain the sign.
        name, sign, kind = text.rpartition("=")
        if not sign:
            raise invalid("dtype", "KIND once, or COLUMN=KIND for each column", text)
        column = _parse_column(name)
        if column in kinds:
            raise invalid("dtype", "one kind for each column", text)
        kinds[column] = kind
    return kinds


def _parse_guess_counts_or_share(text: str | None) -> int | float | tuple[int, int] | None:
    """Parse --guesses: a number of guesses, a share such as 0.2, or two numbers with a comma."""
    if text is None:
        return None
    try:
        if "," in text:
            inside, outside = text.split(",")
            return int(inside), int(outside)
        return float(text) if "." in text else int(text)
    except ValueError:
        requirement = "a number, a share such as 0.2, or IN,OUT"
        raise invalid("guesses", requirement, text) from None


def run_plan(asked: PlanArguments) -> int:
    """Run `dpcore plan`: print how many trials an audit needs, and return the exit status."""
    check_picture_path(asked.plot)
    made = _make_plan(asked)
    print(made.to_json() if asked.as_json else made)
    if asked.plot is not None:
        _save_plan_picture(made, asked.plot)
    return NOT_REFUTED


def _make_plan(asked: PlanArguments) -> Plan:
    described = {option.name: getattr(asked, option.name) for option in fields(MechanismArguments)}
    with to_usage_errors():
        arguments = select_arguments(asked, plan)
        arguments["rng"], arguments["guesses"] = asked.seed, _parse_plan_guesses(asked.guesses)
        if asked.attack is not None:
            arguments["attack"] = attacks.named(
                choice("attack", asked.attack, tuple(attacks.NAMES))
            )
    if asked.target is None:
        for name, value in described.items():
            if value is not None:
                raise Usage(f"{OPTIONS[name]} needs a system or FILE.py:FUNCTION")
        if asked.claim is None:
            raise Usage("give --claim EPSILON, or a mechanism that has a claim")
        with to_usage_errors():
            return plan(**arguments)
    # If the claim is missing, `plan` itself raises the error.
    loaded = load_mechanism(AuditArguments(**described, no_claim=True), asked.target)
    with loaded as (mechanism, pair), to_usage_errors():
        return plan(mechanism=mechanism, pair=pair, **arguments)


def _parse_plan_guesses(text: str | None) -> Any:
    """Parse --guesses as a number or a share; other text is returned (`plan` raises the error)."""
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return None if text is None else kind(text)
    return text


def _save_plan_picture(made: Plan, path: str) -> None:
    """Save the picture of a plan to a file, without pyplot (which would keep the figure open)."""
    from matplotlib.figure import Figure

    picture = Figure(figsize=(5.5, 3.4), layout="constrained")
    made.plot(picture.subplots())
    failures: list[str] = []
    with collect_unwritten(failures):
        save_picture(picture, path, "--plot")
        write_escaped_to_stderr(f"wrote {path}")
    if failures:
        raise Unwritten(*failures)


def run_probability_audit(asked: TableArguments, command: str = "") -> int:
    """Run `dpcore audit-table`: audit a table of probabilities in a file; return the status."""
    refuse_claim_and_no_claim(asked, "give --claim EPSILON, or --no-claim to compute the loss only")
    check_output_paths(asked)
    table_report = _audit_probability_table_file(asked)
    made = tuple(replace(run, command=command) for run in table_report.provenance)
    report = replace(
        table_report, name=f"{table_report.name} of {Path(asked.table).name}", provenance=made
    )
    for remark in report.remarks:
        write_escaped_to_stderr(f"warning: {remark}")
    print_and_export(asked, report)
    return REFUTED if report.refuted else NOT_REFUTED


def _audit_probability_table_file(asked: TableArguments) -> TableAudit:
    arguments = select_arguments(asked, audit_table)
    arguments["table"] = _read_matrix("FILE", asked.table)
    if asked.distances is not None:
        arguments["distances"] = _read_matrix("--distances", asked.distances)
    if asked.neighbour is not None and asked.neighbour.endswith(".npy"):
        arguments["neighbour"] = _read_matrix("--neighbour", asked.neighbour)
    else:
        arguments["neighbour"] = parse_relation(asked.neighbour)
    with to_usage_errors(), warnings.catch_warnings():
        # The report contains these warnings, and `run_probability_audit` prints them.
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_table(**arguments)


def _read_matrix(option: str, path: str) -> Any:
    """Return the matrix in a .npy or .npz file. A .npy file is memory-mapped."""
    try:
        if path.endswith(".npz"):
            from scipy.sparse import load_npz

            return load_npz(path)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise Usage(f"{option} must be a file that can be read, got {path} ({error})") from error
    except NUMPY_ERRORS as error:
        raise Usage(f"{option} must be a matrix of numbers (.npy, .npz), got {path}") from error
