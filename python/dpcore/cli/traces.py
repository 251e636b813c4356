"""Implementation of the command `dpcore trace`."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import argument_of
from ..mechanisms.declarations import get_or_default
from ..records import Pair
from ..tracing.outcome import Trace
from ..tracing.run import trace
from . import user
from .audits import SYSTEMS, read_pair, refuse_claim_and_no_claim
from .endings import Usage, check_output_paths, print_and_export, to_usage_errors, wrap_user_errors
from .options import TraceArguments, select_arguments

_TRACE_CONTRACT = "it is called as f(x), f(x, rng) or f(x, size, rng), which returns one answer"


def run_trace(asked: TraceArguments) -> int:
    """Run `dpcore trace`: trace a user's function, print the report, and return the exit status."""
    if not user.is_file_target(asked.target):
        system = f" (dpcore audit {asked.target})" if asked.target in SYSTEMS else ""
        raise Usage(f"dpcore trace takes FILE.py:FUNCTION, got {asked.target}{system}")
    refuse_claim_and_no_claim(asked)
    check_output_paths(asked)
    path, name = user.split_target(asked.target)
    with user.user_sys_path(path):
        report = _trace_function(asked, path, name)
    print_and_export(asked, report)
    return report.exit_status


def _trace_function(asked: TraceArguments, path: Path, name: str) -> Trace:
    function = user.load_function(path, name, asked.target)
    arguments = select_arguments(asked, trace)
    arguments["claim"] = _choose_claim(asked, function)
    pair = _choose_pair(asked, function, path)
    with to_usage_errors(_TRACE_CONTRACT), _wrap_function_errors(asked.target, path):
        report = trace(function, pair, rng=asked.seed, **arguments)
    return replace(report, name=asked.target)


def _choose_claim(asked: TraceArguments, function: Any) -> Any:
    """Return the claim from the options or from the function, or None with --no-claim."""
    if asked.claim is not None or asked.no_claim:
        return asked.claim
    own = get_or_default(function, "claim")
    if own is None or callable(own):
        text = "give --claim EPSILON, or --no-claim to compute the loss only"
        raise Usage(f"{asked.target} has no claim: {text}")
    return own


def _choose_pair(asked: TraceArguments, function: Any, path: Path) -> Pair:
    """Return the two inputs from the options, or else the default pair of the function."""
    pair = read_pair(asked)
    if pair is None:
        pair = user.own_pair(function, asked.target, path, asked.dim)
    if pair is None:
        raise Usage(
            f"{asked.target} has no default_pair: give two inputs that the claim calls neighbours, "
            "--x NUMBERS and --x-prime NUMBERS, or --text and --text-prime"
        )
    return pair


@contextlib.contextmanager
def _wrap_function_errors(label: str, path: Path) -> Iterator[None]:
    """Convert an exception of the traced function to `Failure`."""
    try:
        yield
    except BaseException as error:
        if argument_of(error) or not _passes_file(error, path):
            raise
        with wrap_user_errors(label, str(path), _TRACE_CONTRACT):
            raise


def _passes_file(error: BaseException, path: Path) -> bool:
    """Return True if the traceback of an exception contains the user's file."""
    files = {frame.filename for frame in traceback.extract_tb(error.__traceback__)}
    return any(os.path.abspath(file) == str(path.resolve()) for file in files)
