"""The work of `dpcore audit-table`: from files to an exact audit, its report and its status."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import AssumptionWarning
from ..tables.run import TableAudit, audit_table
from .delivering import check_folder, check_plot, deliver_outputs
from .options import TableArguments, select_arguments
from .pairs import parse_relation
from .status import NOT_REFUTED, REFUTED, Usage, report_bad_usage, write_line

__all__ = ["run_table_audit"]


def run_table_audit(asked: TableArguments, command: str = "") -> int:
    """Audit the table in a file, print the result, and return the exit status."""
    if asked.claim is not None and asked.no_claim:
        raise Usage("--claim and --no-claim exclude each other")
    if asked.claim is None and not asked.no_claim:
        raise Usage("give --claim EPSILON, or --no-claim to compute the loss only")
    if asked.plot is not None:
        check_plot(Path(asked.plot))
    if asked.html is not None:
        check_folder("--html", Path(asked.html))
    found = _audit_table_file(asked)
    made = tuple(replace(one, command=command) for one in found.provenance)
    report = replace(found, name=f"{found.name} of {Path(asked.table).name}", provenance=made)
    for remark in report.remarks:
        write_line(f"warning: {remark}")
    deliver_outputs(asked, report)
    return REFUTED if report.refuted else NOT_REFUTED


def _audit_table_file(asked: TableArguments) -> TableAudit:
    given = select_arguments(asked, audit_table)
    given["table"] = _read_matrix("FILE", asked.table)
    if asked.distances is not None:
        given["distances"] = _read_matrix("--distances", asked.distances)
    is_file = asked.neighbour is not None and asked.neighbour.endswith(".npy")
    given["neighbour"] = (
        _read_matrix("--neighbour", asked.neighbour or "")
        if is_file
        else parse_relation(asked.neighbour)
    )
    with report_bad_usage(), warnings.catch_warnings():
        # The report holds them, and `run_table_audit` says them in its own words.
        warnings.simplefilter("ignore", AssumptionWarning)
        return audit_table(**given)


def _read_matrix(option: str, path: str) -> Any:
    """Read the matrix in a file; of a .npy file only the used part is read."""
    try:
        if path.endswith(".npz"):
            from scipy.sparse import load_npz

            return load_npz(path)
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise Usage(f"{option} must be a file that can be read, got {path} ({error})") from error
    except (ValueError, EOFError) as error:
        raise Usage(f"{option} must be a matrix of numbers (.npy, .npz), got {path}") from error
