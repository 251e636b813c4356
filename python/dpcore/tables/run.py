"""The exact audit of a mechanism with finitely many inputs and outputs."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np

from ..auditing.provenance import provenance_of
from ..errors import AssumptionWarning, flag, real
from ..hints import hinted
from ..pairs.neighbouring import format_neighbour
from ..records import one_line
from ..streams import threads_of
from .comparing import Comparison, Tally
from .neighbours import read_neighbours
from .reading import Table, labels_of
from .result import TableAudit

__all__ = ["TableAudit", "audit_table"]

_CLAIM_TOLERANCE: Final = {False: 1e-9, True: 1e-6}
"""In nats, for float64 and for float32, whose roundings alone are 1.2e-7."""

_LOSS_TOLERANCE: Final = 1e-6
"""Relative difference of a loss that an object computes and its own logarithms."""

_UNDERFLOW_DOUBT: Final = (
    "a probability of zero against a positive one may be underflow: pass logarithms (log=True)"
)


@hinted
def audit_table(
    table: Any,
    distances: Any = None,
    *,
    claim: float | None = None,
    log: bool = False,
    neighbour: Any = None,
    tolerance: float | None = None,
    threads: int | None = None,
    progress: bool | None = None,
) -> TableAudit:
    """Compute the exact privacy loss of a mechanism with finitely many inputs and outputs.

    Row x of the table is the distribution P(.|x) of the outputs. The loss of a pair is the
    greatest ln P(y|x) / P(y|x') over the outputs y; epsilon is the greatest loss of any two
    neighbours, divided by their distance where distances are given. All pairs of rows are
    compared, in both directions: the result is computed, neither sampled nor estimated.

    Args:
        table: probabilities, shape `(inputs, outputs)`: anything that numpy reads as a matrix, a
            sparse matrix of scipy, or an object with `shape` and `log_rows(start, stop)`, the
            natural logarithms of rows. Such an object may have `distance_rows(start, stop)`, which
            stands for `distances=None`; `claim`; `words` (or `input_names`), one for each row;
            and `loss_rows(start, stop)`, two arrays of shape `(stop - start, inputs)`: the exact
            loss of each row against every row, which is then not computed from the logarithms,
            and an output that attains it.
        distances: distances between inputs for metric privacy, shape `(inputs, inputs)`:
            symmetric, finite and at least 0; None for ordinary neighbours.
        claim: the epsilon to test, per unit of distance where there are distances; None takes the
            object's own.
        log: True if the table holds natural logarithms; -inf is a probability of zero.
        neighbour: which rows are neighbours: None (all), a symmetric matrix of booleans, a list
            of pairs of row numbers, or a relation of `dpcore.pairs` on the numbers of rows.
        tolerance: a claim is refuted by a loss of more than claim x distance + tolerance, in
            nats; None is 1e-9, and 1e-6 for a table of float32.
        threads: threads of the compiled core; None is one a core. The result is the same bits.
        progress: True or False shows a bar or none; None shows one on a terminal for long work.

    Returns:
        The `TableAudit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if there are fewer than two rows; if a row has a negative or missing entry or
            does not add up to 1 within 1e-9 (float32: 1e-5); if distances are negative, not
            finite, not symmetric or of the wrong shape; if no two rows are neighbours; if a value
            is out of range.

    Warns:
        AssumptionWarning: if a loss is infinite where a probability may have underflowed to zero.

    Source:
        Chatzikokolakis et al. (2013), definition 1; Dwork and Roth (2014), definition 2.4.

    Example:
        >>> import dpcore
        >>> coin = [[0.75, 0.25], [0.25, 0.75]]  # the truth, or its opposite once in four times
        >>> report = dpcore.audit_table(coin, claim=1.0)
        >>> report.verdict, round(report.epsilon, 6), report.witness
        ('refuted', 1.098612, (0, 1, 0))
    """
    flag("log", log)
    own = getattr(table, "claim", None) if hasattr(table, "log_rows") else None
    own = None if own is None else real("claim of the table", own, low=0.0)
    claim = own if claim is None else real("claim", claim, low=0.0)
    if tolerance is not None:
        tolerance = real("tolerance", tolerance, low=0.0)
    read = Table(table, distances, log, threads_of(threads))
    comparison = Comparison(read, read_neighbours(neighbour, read.inputs), read.threads, progress)
    made = provenance_of(type(read.owner) if read.owner is not None else None, True)
    # What kind of floats an object computes is known with its first row.
    read.log_rows(0, 1)
    settled = _CLAIM_TOLERANCE[read.single] if tolerance is None else tolerance
    tally, output = comparison.tally_losses(claim, settled)
    output = _witness_output(read, tally, output)
    remarks = _list_underflow_doubts(read, tally)
    for remark in remarks:
        warnings.warn(remark, AssumptionWarning, stacklevel=3)
    epsilon, x, x_prime, loss, distance = tally.best
    per_input = np.maximum(tally.per_input, 0.0)
    return TableAudit(
        name=_name_table(read),
        inputs=read.inputs,
        outputs=read.outputs,
        metric=read.has_distances,
        # Of rows that add up to a little less than 1 the greatest logarithm is a little below 0.
        epsilon=max(0.0, epsilon),
        witness=(x, x_prime, output),
        labels=_label_witness(read, (x, x_prime, output)),
        loss=loss,
        distance=distance,
        per_input=per_input,
        pairs=tally.pairs,
        infinite_pairs=tally.infinite,
        neighbours=comparison.neighbours.name,
        tolerance=settled,
        claim=claim,
        own_claim=own,
        excess=None if claim is None else tally.excess[0],
        excess_pair=None if claim is None else tally.excess[1:],
        remarks=remarks,
        provenance=(made,),
        comparison=comparison,
    )


def _witness_output(table: Table, tally: Tally, output: int) -> int:
    """Return the first output that attains the worst loss; of own losses, the object's output."""
    _, x, x_prime, loss, _ = tally.best
    row, other = table.log_rows(x, x + 1)[0], table.log_rows(x_prime, x_prime + 1)[0]
    with np.errstate(invalid="ignore"):
        differences = row - other
    if output < 0:
        # NaN is zero against zero.
        return int(np.nanargmax(differences))
    found = float(differences[output]) if 0 <= output < table.outputs else np.nan
    if found != loss and not abs(found - loss) <= _LOSS_TOLERANCE * max(1.0, abs(loss)):
        text = f"{loss} for rows {x} and {x_prime} at output {output}, where log_rows has {found}"
        raise ValueError(f"losses of loss_rows must be what log_rows attains, got {text}")
    return output


def _list_underflow_doubts(table: Table, tally: Tally) -> tuple[str, ...]:
    """Return doubts of zeros that may be underflow; logarithms of float64 have none."""
    doubtful = tally.infinite and not table.log and (table.single or table.tiny)
    return (_UNDERFLOW_DOUBT,) if doubtful else ()


def _name_table(table: Table) -> str:
    if table.owner is not None:
        return one_line(format_neighbour(table.owner), 80)
    return f"table of {table.inputs:,} inputs and {table.outputs:,} outputs"


def _label_witness(table: Table, witness: tuple[int, int, int]) -> tuple[str, ...]:
    inputs, outputs = labels_of(table)
    if inputs is None or outputs is None:
        return ()
    x, x_prime, output = witness
    return str(inputs[x]), str(inputs[x_prime]), str(outputs[output])
