"""Audits of packages in separate processes, with a time limit for each mechanism."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from .cases import ENVIRONMENTS, list_mechanisms
from .rows import Row, make_row, read_row
from .worker import describe_machine

_POLL_SECONDS: Final = 0.1
_START_SECONDS: Final = 120.0
"""Time limit for the start of Python and for the first import."""


def find_python(package: str, environments: Path | None) -> str:
    """Return the path of the Python interpreter that can import a package.

    Args:
        package: name of the package on PyPI.
        environments: folder with one Python environment for each group of packages, or None to use
            the current interpreter.

    Returns:
        The path of the interpreter in the environment that contains the package. If this file does
        not exist, the result is the path of the current interpreter.
    """
    name = next(name for name, names in ENVIRONMENTS.items() if package in names)
    if environments is not None:
        for place in (Path("bin/python"), Path("Scripts/python.exe")):
            if (path := environments / name / place).exists():
                return str(path.absolute())
    return sys.executable


def audit_package(
    package: str, seed: int, trials: int | None, slow: bool, environments: Path | None
) -> tuple[Row, ...]:
    """Audit all mechanisms of a released package in a separate process.

    A mechanism can crash the process or exceed its time limit. The result of this mechanism then
    contains the reason for the failure. The remaining mechanisms are audited in a new process.

    Args:
        package: name of the package on PyPI.
        seed: seed of the experiment.
        trials: largest number of outputs that an audit draws on each of the two inputs. None means
            the number in the field `trials` of each mechanism.
        slow: True to include the mechanisms whose audit is slow.
        environments: folder with one Python environment for each group of packages, or None to use
            the current interpreter.

    Returns:
        One result (`Row`) for each mechanism, in the order of `list_mechanisms`.
    """
    cases = list_mechanisms(package, slow=slow)
    rows: dict[str, Row] = {}
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.jsonl"
        while len(rows) < len(cases):
            path.write_text("")
            options = {"seed": seed, "trials": trials, "slow": slow, "done": list(rows)}
            reason = _run_for_end_reason(find_python(package, environments), package, path, options)
            records = list(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
            finished = [read_row(record["row"]) for record in records if "row" in record]
            rows |= {row.name: row for row in finished}
            if any("ended" in record for record in records):
                break
            machines = [record["machine"] for record in records if "machine" in record]
            machine = (machines or [describe_machine(package)])[0]
            begun = [record["begun"] for record in records if "begun" in record]
            names = begun[-1:] if len(begun) > len(finished) else [c.name for c in cases]
            rows |= {
                case.name: make_row(case, **machine | {"failure": reason})
                for case in cases
                if case.name in names and case.name not in rows
            }
    return tuple(rows[case.name] for case in cases if case.name in rows)


def _run_for_end_reason(python: str, package: str, path: Path, options: dict[str, Any]) -> str:
    """Run the worker process until it ends or the audit of a mechanism exceeds a time limit.

    Return a text with the reason why the process ended. There is a text even without a failure.
    """
    here = Path(__file__).resolve().parents[3]
    paths = [str(here), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [python, "-m", f"{__package__}.worker", package, str(path), json.dumps(options)]
    with TemporaryDirectory() as folder, (Path(folder) / "stderr").open("w+b") as errors:
        process = subprocess.Popen(
            command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True,
        )  # fmt: skip
        try:
            return _wait_for_end_reason(process, path, errors)
        finally:
            _kill_process_group(process)


def _wait_for_end_reason(process: subprocess.Popen[bytes], path: Path, errors: Any) -> str:
    size, changed, limit = 0, time.monotonic(), _START_SECONDS
    while process.poll() is None:
        time.sleep(_POLL_SECONDS)
        if path.stat().st_size > size:
            size, changed = path.stat().st_size, time.monotonic()
            limit = _read_time_limit_of_last_line(path)
        if time.monotonic() - changed > limit:
            return f"exceeded its time limit of {limit:g} s"
    if process.returncode < 0:
        return f"ended the process by {signal.Signals(-process.returncode).name}"
    errors.seek(0)
    lines = errors.read().decode(errors="replace").split("\n")
    last = next((line for line in reversed(lines) if line.strip()), "")
    return f"ended the process with status {process.returncode}: {last.strip()}"


def _read_time_limit_of_last_line(path: Path) -> float:
    lines = path.read_text(encoding="utf-8").splitlines()
    return float(json.loads(lines[-1]).get("seconds", _START_SECONDS)) if lines else _START_SECONDS


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and all processes that it started, such as a Java virtual machine."""
    if hasattr(os, "killpg"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    elif process.poll() is None:
        process.kill()
    process.wait()
