"""Exact audit of a mechanism with finitely many inputs and outputs, and the result.

All results are computed from the table of probabilities; no value is estimated. The subpackage for
reports is imported only when a report, a picture or JSON is made.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..auditing.provenance import provenance_of
from ..errors import AssumptionWarning, flag, invalid, real
from ..mechanisms.declarations import get_or_default
from ..pairs.neighbours import neighbour_python_call
from ..records import Floats, Result, frozen_array
from ..report import figures
from ..report.page import AUDIT_KIND, embed_visible_and_script_json, make_report_page
from ..report.rows import Row, format_epsilon
from ..report.shown import on_one_line
from ..results.audit_page import make_run_provenance_section
from ..results.evidence import (
    Provenance,
    field_rule,
    make_integer_reader,
    none_or,
    read_float,
    require_epsilon,
    tuple_reader,
    type_check_reader,
)
from ..streams import threads_of
from ..suggestions import explain_argument_errors
from .comparison import Comparison, Table, Tally, convert_to_row_neighbours, input_and_output_names

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_CLAIM_TOLERANCE: Final = {False: 1e-9, True: 1e-6}
"""Default tolerance in nats, for float64 (False) and float32 (True). float32 rounds by up to
1.2e-7."""

_LOSS_TOLERANCE: Final = 1e-6
"""Largest relative difference between a loss that an object states and the loss from its
logarithms."""

_UNDERFLOW_DOUBT: Final = (
    "a probability of zero against a positive one may be underflow: pass logarithms (log=True)"
)

_DERIVED_TABLE_FIGURES: Final = "refuted", "verdict", "infinite_share"

_TABLE_VERDICT_SENTENCES: Final = {
    None: "No claim was given, so none was tested.",
    True: "The mechanism loses more privacy than it claims, as its table shows.",
    False: (
        "Every pair of neighbours in this table keeps the claim. Whether the code draws from this "
        "table is another question, which dpcore.audit asks."
    ),
}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableAudit(Result, word="dpcore.audit_table/1"):
    """Result of `dpcore.audit_table`: the exact privacy loss of a mechanism given as a table.

    Row x of the table is the distribution P(.|x) of the outputs. The loss of a pair (x, x') is the
    largest ln P(y|x) / P(y|x') over the outputs y.

    Attributes:
        name: name of the mechanism in reports.
        inputs: number of inputs of the mechanism (rows of the table).
        outputs: number of outputs of the mechanism (columns of the table).
        metric: True if distances between inputs were given. Losses are then divided by distances
            (metric privacy).
        epsilon: the largest loss of a pair of neighbours, in nats. With distances, each loss is
            divided by the distance of x and x'. `epsilon` is inf if a pair has an infinite loss, or
            if a pair at distance 0 has a loss above `tolerance`.
        witness: three indices: the row of x, the row of x', and the column of the output y. The
            loss of this pair and output is `epsilon`. If several pairs attain `epsilon`, the
            indices belong to the first pair, with its first output. If the table is an object with
            a method `loss_rows`, this method gives the output.
        labels: names of x, x' and the output in `witness`. Empty if the table has no names.
        loss: ln P(y|x) / P(y|x') in nats, for x, x' and the output y in `witness`.
        distance: distance of x and x' in `witness`. It is 1 if no distances were given.
        per_input: for each input x, the largest loss of a pair (x, x') over the neighbours x' of x,
            shape `(inputs,)`. The loss is per unit of distance if distances were given, and 0 for
            an input without neighbours.
        pairs: number of ordered pairs of neighbours that were compared.
        infinite_pairs: number of ordered pairs with an infinite loss, or with distance 0 and a loss
            above `tolerance`.
        neighbours: name of the relation that defines which inputs are neighbours.
        tolerance: largest value of `excess`, in nats, that does not refute the claim. Rounding can
            explain a value of this size.
        claim: the epsilon that was tested, per unit of distance if distances were given. None if no
            epsilon was tested.
        own_claim: the epsilon in the attribute `claim` of the table. None if the table has no such
            attribute.
        excess: largest value of loss minus `claim` times distance over all pairs of neighbours, in
            nats. The distance is 1 if no distances were given. None if no epsilon was tested.
        excess_pair: row indices of the pair x and x' that attains `excess`. None if no epsilon was
            tested.
        remarks: remarks on the result for readers of the report.
        provenance: facts on how the result was made, such as the version of dpcore. Ignored by
            `==`.
        comparison: the table itself. The methods `delta` and `renyi` need it. None in a result that
            was read from a file, because the file does not contain the table. Ignored by `==`.
    """

    name: str = field(metadata=field_rule(type_check_reader(str)))
    inputs: int = field(metadata=field_rule(make_integer_reader(2)))
    outputs: int = field(metadata=field_rule(make_integer_reader(1)))
    metric: bool = field(metadata=field_rule(type_check_reader(bool)))
    epsilon: float = field(metadata=field_rule(read_float))
    witness: tuple[int, int, int] = field(metadata=field_rule(tuple_reader(int, 3)))
    labels: tuple[str, ...] = field(metadata=field_rule(tuple_reader(str)))
    loss: float = field(metadata=field_rule(read_float))
    distance: float = field(metadata=field_rule(read_float))
    per_input: Floats = field(metadata=field_rule(type_check_reader(np.ndarray)))
    pairs: int = field(metadata=field_rule(make_integer_reader(1)))
    infinite_pairs: int = field(metadata=field_rule(make_integer_reader(0)))
    neighbours: str = field(metadata=field_rule(type_check_reader(str)))
    tolerance: float = field(metadata=field_rule(read_float))
    claim: float | None = field(default=None, metadata=field_rule(none_or(require_epsilon)))
    own_claim: float | None = field(default=None, metadata=field_rule(none_or(require_epsilon)))
    excess: float | None = field(default=None, metadata=field_rule(none_or(read_float)))
    excess_pair: tuple[int, int] | None = field(
        default=None, metadata=field_rule(none_or(tuple_reader(int, 2)))
    )
    remarks: tuple[str, ...] = field(default=(), metadata=field_rule(tuple_reader(str)))
    provenance: tuple[Provenance, ...] = field(
        default=(), compare=False, metadata=field_rule(tuple_reader(Provenance))
    )
    comparison: Comparison | None = field(default=None, compare=False, metadata={"held": False})

    def __post_init__(self) -> None:
        """Freeze the losses of the inputs."""
        object.__setattr__(self, "per_input", frozen_array(self.per_input))

    @property
    def refuted(self) -> bool | None:
        """True if the tested epsilon is refuted. None if no epsilon was tested."""
        if self.claim is None or self.excess is None:
            return None
        return self.excess > self.tolerance

    @property
    def verdict(self) -> str:
        """Result for the claimed epsilon: "refuted", "holds for this table" or "no claim given"."""
        return {None: "no claim given", True: "refuted", False: "holds for this table"}[
            self.refuted
        ]

    @property
    def infinite_share(self) -> float:
        """Share of ordered pairs of neighbours whose privacy loss is infinite, in [0, 1].

        A pair at distance 0 counts as infinite if its loss is above `tolerance`.
        """
        return self.infinite_pairs / self.pairs

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the result for readers of the report."""
        return self.remarks

    def delta(self, epsilon: float) -> float:
        """Compute the smallest delta for which the mechanism is (epsilon * distance, delta)-DP.

        P(y|x) is the probability of output y on input x. The result is the largest hockey-stick
        divergence of two neighbours x, x'. This divergence is the sum over the outputs y of max(0,
        P(y|x) - e^(epsilon * distance) P(y|x')). The distance is the distance of x and x', or 1 if
        no distances were given.

        Args:
            epsilon: the epsilon of the DP guarantee, per unit of distance if distances were given.
                Finite and at least 0.

        Returns:
            The smallest delta, in [0, 1].

        Raises:
            TypeError: if `epsilon` is not a number.
            ValueError: if `epsilon` is out of range, or the result was read from a file.

        Source:
            Barthe and Olmedo (2013), theorem 1.

        Example:
            >>> import dpcore
            >>> round(dpcore.audit_table([[0.75, 0.25], [0.25, 0.75]]).delta(0.0), 6)
            0.5
        """
        return self._require_comparison().delta(epsilon)

    def renyi(self, alphas: Any) -> Floats:
        """Compute the largest Renyi divergence of the outputs on two neighbours, for each order.

        The divergences are not divided by the distance of the neighbours, even if distances were
        given.

        Args:
            alphas: orders above 1, finite, shape `(n,)`.

        Returns:
            Divergences in nats, shape `(n,)`. They are inf if, for two neighbours x and x', an
            output has probability 0 on x' and a positive probability on x.

        Raises:
            TypeError: if `alphas` does not hold numbers.
            ValueError: if an order is not above 1, or the result was read from a file.

        Source:
            Mironov (2017), definition 3.

        Example:
            >>> import dpcore
            >>> dpcore.audit_table([[0.75, 0.25], [0.25, 0.75]]).renyi([2.0]).round(6)
            array([0.847298])
        """
        return self._require_comparison().renyi(alphas)

    def _require_comparison(self) -> Comparison:
        if self.comparison is None:
            requirement = "the table, which audit_table keeps and a file of the result lacks"
            raise invalid("comparison", requirement, None)
        return self.comparison

    def __repr__(self) -> str:
        """Return one line with the name of the mechanism and the outcome."""
        outcome = f"{self.verdict}, epsilon={self.epsilon:.6g}"
        return f"<TableAudit of {on_one_line(self.name, 60)}: {outcome}>"

    def _lines(self) -> list[Row]:
        return list_rows(self)

    def _plot(self, ax: Any) -> Figure:
        return draw_sorted_input_losses(self, ax)

    def _to_page(self) -> str:

        claim = "none" if self.claim is None else f"{self.claim:g}"
        exact = format_epsilon(self.epsilon)
        key_figures = [
            ("epsilon claimed", claim),
            ("epsilon, exact", exact),
            ("infinite pairs", f"{100 * self.infinite_share:.3g} %"),
        ]
        picture = "Worst loss of every input", f"Exact epsilon {exact}, claim {claim}."
        meaning = _TABLE_VERDICT_SENTENCES[self.refuted]
        parts = [
            ("How this was made", make_run_provenance_section(self.provenance)),
            ("Data", embed_visible_and_script_json(self)),
        ]
        return make_report_page(self, self.name, AUDIT_KIND, meaning, key_figures, picture, parts)

    def _derived_values(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _DERIVED_TABLE_FIGURES},
            "witness": _format_worst_pair_and_output(self),
            "source_sha256": [run.sha256 for run in self.provenance],
        }

    def _require_consistency(self) -> None:
        real("tolerance", self.tolerance, low=0.0)
        if self.per_input.shape != (self.inputs,):
            raise invalid("per_input", f"{self.inputs} numbers", self.per_input.shape)
        if (self.claim is None) != (self.excess is None):
            raise invalid("excess", "given with a claim, and only then", self.excess)
        if self.infinite_pairs > self.pairs:
            raise invalid("infinite_pairs", f"at most {self.pairs}", self.infinite_pairs)


@explain_argument_errors
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

    Row x of the table is the distribution P(.|x) of the outputs. The loss of a pair (x, x') is the
    largest ln P(y|x) / P(y|x') over the outputs y. Epsilon is the largest loss of two neighbours.
    If distances are given, each loss is divided by the distance of x and x'. All ordered pairs of
    neighbours are compared. The result is exact: no value is sampled or estimated.

    Args:
        table: probabilities, shape `(inputs, outputs)`, in one of these forms:

            - anything that numpy reads as a matrix;
            - a matrix of fractions, decimals and whole numbers, with which dpcore computes exactly;
            - a sparse matrix of scipy;
            - an object with an attribute `shape` and a method `log_rows(start, stop)`, which
              returns the natural logarithms of the rows from `start` to `stop - 1`.

            An object with `log_rows` may also have these attributes and methods:

            - `claim`, the epsilon that the mechanism claims;
            - `words` or `input_names`, a name for each row;
            - `distance_rows(start, stop)`: returns the distances between each of the rows `start`,
              ..., `stop - 1` and all rows. This method is used if the argument `distances` is None;
            - `loss_rows(start, stop)`: returns two arrays of shape `(stop - start, inputs)`. The
              first array holds the exact loss of each of these rows against every row. The second
              array holds an output that attains the loss. dpcore then does not compute the losses.
        distances: distances between inputs for metric privacy, a symmetric array of shape
            `(inputs, inputs)` with finite entries of at least 0. None for ordinary DP.
        claim: the epsilon to test, per unit of distance if `distances` are given. Defaults to the
            attribute `claim` of the table, if the table has one.
        log: True if the entries of the table are natural logarithms of probabilities (-inf for 0).
        neighbour: relation that states which pairs of rows are neighbours. It is None (all pairs),
            a symmetric matrix of booleans, a list of pairs of row numbers, or a relation of
            `dpcore.pairs`. A relation of `dpcore.pairs` is applied to the indices of the rows.
        tolerance: the claim is refuted if a loss exceeds claim * distance by more than this number
            of nats. Defaults to 1e-9 for float64 and to 1e-6 for float32. For a table of exact
            numbers, the default is the rounding error of the claim times the largest distance (one
            unit in the last place).
        threads: number of threads of the computation. Defaults to one per core. The result does not
            depend on this number.
        progress: True to show a progress bar, False for no bar. None shows a bar only on a terminal
            and only if the audit takes long.

    Returns:
        An object of the class `TableAudit` with epsilon, the pair and the output that attain
        epsilon, and the verdict on the claim.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: for one of these reasons:

            - there are fewer than two rows, or no two rows are neighbours;
            - a row has a negative or missing entry;
            - the sum of a row differs from 1 by more than 1e-9 (1e-5 for float32, 0 for exact
              numbers);
            - distances are negative, not finite, not symmetric or of the wrong shape;
            - a value is out of range.

    Warns:
        AssumptionWarning: if a loss is infinite, and a probability in the table may be zero only
            because of underflow.

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
    has_rows = get_or_default(table, "log_rows") is not None
    own = get_or_default(table, "claim") if has_rows else None
    own = None if own is None else real("claim of the table", own, low=0.0)
    claim = own if claim is None else real("claim", claim, low=0.0)
    tolerance = None if tolerance is None else real("tolerance", tolerance, low=0.0)
    read = Table(table, distances, log, threads_of(threads))
    comparison = Comparison(read, convert_to_row_neighbours(neighbour, read.inputs), progress)
    made = provenance_of(type(read.owner) if read.owner is not None else None, True)
    # The first row shows which type of floats an object computes.
    read.log_rows(0, 1)
    usual = _CLAIM_TOLERANCE[read.single] if read.exact is None else read.ulp_of_claimed_loss(claim)
    settled = usual if tolerance is None else tolerance
    tally, output = comparison.max_losses_and_output(claim, settled)
    output = _largest_loss_output(read, tally, output)
    # Logarithms in float64 cannot underflow.
    doubtful = tally.infinite and not read.log and (read.single or read.tiny)
    if doubtful:
        warnings.warn(_UNDERFLOW_DOUBT, AssumptionWarning, stacklevel=3)
    note = get_or_default(read.owner, "infinite_loss_note") if tally.infinite else None
    remarks = (*((note,) if note else ()), *((_UNDERFLOW_DOUBT,) if doubtful else ()))
    epsilon, x, x_prime, loss, distance = tally.best
    return TableAudit(
        name=_name_table(read),
        inputs=read.inputs,
        outputs=read.outputs,
        metric=read.has_input_distances,
        # If rows add up to a little less than 1, the largest logarithm can be a little below 0.
        epsilon=max(0.0, epsilon),
        witness=(x, x_prime, output),
        labels=_label_worst_pair_and_output(read, (x, x_prime, output)),
        loss=loss,
        distance=distance,
        per_input=np.maximum(tally.per_input, 0.0),
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


def _largest_loss_output(table: Table, tally: Tally, stated_output: int) -> int:
    """Return the first output that attains the largest loss, or the output of `loss_rows`."""
    _, x, x_prime, loss, _ = tally.best
    row, other = table.log_rows(x, x + 1)[0], table.log_rows(x_prime, x_prime + 1)[0]
    with np.errstate(invalid="ignore"):
        differences = row - other
    if stated_output < 0:
        # NaN means zero against zero.
        return int(np.nanargmax(differences))
    difference = float(differences[stated_output]) if 0 <= stated_output < table.outputs else np.nan
    if difference != loss and not abs(difference - loss) <= _LOSS_TOLERANCE * max(1.0, abs(loss)):
        text = f"{loss} for rows {x} and {x_prime} at output {stated_output}, where log_rows has"
        raise ValueError(
            f"losses of loss_rows must be what log_rows attains, got {text} {difference} (without "
            "loss_rows the rows are compared one by one)"
        )
    return stated_output


def _name_table(table: Table) -> str:
    if table.owner is not None:
        return on_one_line(neighbour_python_call(table.owner), 80)
    return f"table of {table.inputs:,} inputs and {table.outputs:,} outputs"


def _label_worst_pair_and_output(table: Table, witness: tuple[int, int, int]) -> tuple[str, ...]:
    inputs, outputs = input_and_output_names(table)
    if inputs is None or outputs is None:
        return ()
    x, x_prime, output = witness
    return str(inputs[x]), str(inputs[x_prime]), str(outputs[output])


def list_rows(audit: TableAudit) -> list[Row]:
    """Return the lines of the report of an audit as pairs (label, text), the verdict first."""
    unit = " per unit of distance" if audit.metric else ""
    at = f" at distance {audit.distance:g}" if audit.metric else ""
    claim = "none given" if audit.claim is None else f"epsilon <= {audit.claim:g}{unit}"
    if audit.own_claim not in (None, audit.claim):
        claim += f" (the mechanism's own: {audit.own_claim:g})"
    rows = [
        ("verdict", audit.verdict),
        ("claim", claim),
        ("exact", f"epsilon = {format_epsilon(audit.epsilon)}{unit}"),
        ("witness", _format_worst_pair_and_output(audit)),
        ("loss", f"{format_epsilon(audit.loss)} nats{at}"),
        ("infinite", f"{audit.infinite_pairs:,} of {audit.pairs:,} ordered pairs"),
        ("table", f"{audit.inputs:,} inputs, {audit.outputs:,} outputs"),
        ("neighbours", audit.neighbours),
        ("tolerance", f"{audit.tolerance:g} nats"),
        *(("note", note) for note in audit.notes),
    ]
    if audit.refuted and audit.excess_pair is not None:
        allowed = "claim x distance" if audit.metric else "the claim"
        place = "x = {}, x' = {}".format(*audit.excess_pair)
        excess = format_epsilon(audit.excess)
        rows.insert(5, ("beyond", f"{excess} nats more than {allowed}, at most, for {place}"))
    return rows


def _format_worst_pair_and_output(audit: TableAudit) -> str:
    names = [str(number) for number in audit.witness]
    if audit.labels:
        names = [f"{label!r} ({name})" for label, name in zip(audit.labels, names, strict=True)]
    return f"x = {names[0]}, x' = {names[1]}, output {names[2]}"


def draw_sorted_input_losses(audit: TableAudit, ax: Any = None) -> Figure:
    """Draw the largest privacy loss of each input in decreasing order, and the claim."""
    axes = figures.axes_of(ax, figures.scale_figure_size(1.0, 0.7))
    losses = np.sort(audit.per_input)[::-1]
    infinite = int(np.count_nonzero(np.isinf(losses)))
    number = np.arange(1, losses.size + 1)[infinite:]
    hue = figures.cycle_colour(1 if audit.refuted else 0)
    axes.plot(number, losses[infinite:], color=hue, marker="." if losses.size < 50 else "")
    top = 1.2 * max([*losses[infinite:][:1].tolist(), audit.claim or 0.0, 0.1])
    if infinite:
        axes.plot([1, infinite], [top, top], color=hue, linewidth=3)
        figures.annotate_point(axes, f"{infinite:,} infinite", (1, top), (0, 4))
    if audit.claim is not None:
        axes.axhline(audit.claim, color=figures.text_colour(), linestyle="--")
        words = f"claim {audit.claim:g}"
        figures.annotate_point(axes, words, (losses.size, audit.claim), (0, 3), ha="right")
    unit = " per unit of distance" if audit.metric else ""
    axes.set(xlabel="inputs, the worst first", ylabel=f"worst loss{unit} (nats)")
    axes.set(ylim=(0.0, 1.1 * top), xlim=(0.0, losses.size + 1.0))
    return figures.finish_axes(axes, figures.two_line_title(audit.name, audit.verdict))
