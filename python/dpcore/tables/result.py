"""The result of an audit of a table: exact figures, no estimate."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import invalid
from ..records import Record, frozen_array, one_line
from ..results.fields import (
    lists_of,
    make_field_metadata,
    read_float,
    read_instance,
    read_optional,
    read_several,
    read_whole_number,
)
from ..results.fields import read_epsilon as finite_loss
from ..results.provenance import Provenance
from .comparing import Comparison
from .reading import Floats

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["TableAudit"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableAudit(Record):
    """The exact audit of a finite mechanism, made by `dpcore.audit_table`.

    Attributes:
        name: what reports call the mechanism.
        inputs: rows of the table.
        outputs: its columns.
        metric: True if losses are measured per unit of distance.
        epsilon: the greatest loss of a pair of neighbours, divided by their distance where there
            are distances, in nats (per unit of distance); inf where a pair has an infinite loss, or
            a loss at distance 0.
        witness: the numbers of x, of x' and of an output that attain `epsilon`, the first of
            equal ones; the output is the first that attains the loss of x against x', unless the
            mechanism says itself which one does.
        labels: what the mechanism calls x, x' and the output; empty where it has no names.
        loss: ln P(output|x) / P(output|x') of the witness, in nats.
        distance: from x to x' of the witness; 1 without distances.
        per_input: the greatest loss (per unit of distance) of each input as x, 0 for one without
            neighbours, shape `(inputs,)`.
        pairs: ordered pairs of neighbours that were compared.
        infinite_pairs: those of infinite loss, or with a loss at distance 0.
        neighbours: which pairs of rows count.
        tolerance: loss in nats beyond claim times distance that roundings explain.
        claim: the epsilon tested (per unit of distance), or None.
        own_claim: what the mechanism claims itself, or None.
        excess: the greatest loss beyond claim times distance, in nats; None without a claim.
        excess_pair: the numbers of x and x' of `excess`; None without a claim.
        remarks: what a reader should know.
        provenance: how it was made (not compared).
        comparison: the table itself, for `delta` and `renyi`; None in a result that was read from
            a file, which does not hold the table (not compared).
    """

    name: str = field(metadata=make_field_metadata(read_instance(str)))
    inputs: int = field(metadata=make_field_metadata(read_whole_number(2)))
    outputs: int = field(metadata=make_field_metadata(read_whole_number(1)))
    metric: bool = field(metadata=make_field_metadata(read_instance(bool)))
    epsilon: float = field(metadata=make_field_metadata(read_float))
    witness: tuple[int, int, int] = field(metadata=make_field_metadata(lists_of(int, 3)))
    labels: tuple[str, ...] = field(metadata=make_field_metadata(lists_of(str)))
    loss: float = field(metadata=make_field_metadata(read_float))
    distance: float = field(metadata=make_field_metadata(read_float))
    per_input: Floats = field(metadata=make_field_metadata(read_instance(np.ndarray), objects=True))
    pairs: int = field(metadata=make_field_metadata(read_whole_number(1)))
    infinite_pairs: int = field(metadata=make_field_metadata(read_whole_number(0)))
    neighbours: str = field(metadata=make_field_metadata(read_instance(str)))
    tolerance: float = field(metadata=make_field_metadata(read_float))
    claim: float | None = field(
        default=None, metadata=make_field_metadata(read_optional(finite_loss), always=True)
    )
    own_claim: float | None = field(
        default=None, metadata=make_field_metadata(read_optional(finite_loss))
    )
    excess: float | None = field(
        default=None, metadata=make_field_metadata(read_optional(read_float), always=True)
    )
    excess_pair: tuple[int, int] | None = field(
        default=None, metadata=make_field_metadata(read_optional(lists_of(int, 2)), always=True)
    )
    remarks: tuple[str, ...] = field(default=(), metadata=make_field_metadata(lists_of(str)))
    provenance: tuple[Provenance, ...] = field(
        default=(),
        compare=False,
        metadata=make_field_metadata(read_several(Provenance), objects=True),
    )
    comparison: Comparison | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Freeze the losses of the inputs."""
        object.__setattr__(self, "per_input", frozen_array(self.per_input))

    @property
    def refuted(self) -> bool | None:
        """True if a loss exceeds claim times distance by more than `tolerance`; None unclaimed."""
        if self.claim is None or self.excess is None:
            return None
        return self.excess > self.tolerance

    @property
    def verdict(self) -> str:
        """The outcome in words: "refuted", "holds for this table" or "no claim given"."""
        return {None: "no claim given", True: "refuted", False: "holds for this table"}[
            self.refuted
        ]

    @property
    def infinite_share(self) -> float:
        """Share of the ordered pairs of neighbours with an infinite loss, in [0, 1]."""
        return self.infinite_pairs / self.pairs

    @property
    def notes(self) -> tuple[str, ...]:
        """The remarks for a reader."""
        return self.remarks

    def delta(self, epsilon: float) -> float:
        """Compute the least delta with which every pair of neighbours keeps epsilon x distance.

        The greatest hockey-stick divergence: the sum over the outputs y of
        max(0, P(y|x) - e^(epsilon distance) P(y|x')).

        Args:
            epsilon: per unit of distance, finite and at least 0.

        Returns:
            A probability.

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
        return self._compared().delta(epsilon)

    def renyi(self, alphas: Any) -> Floats:
        """Compute the greatest Renyi divergence of any pair of neighbours, for each order.

        It is that of the whole pair, not divided by the distance.

        Args:
            alphas: orders above 1, finite, shape `(n,)`.

        Returns:
            Divergences in nats, shape `(n,)`; inf where a positive probability meets zero.

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
        return self._compared().renyi(alphas)

    def _compared(self) -> Comparison:
        if self.comparison is None:
            raise invalid("comparison", "the table, which no file of a result holds", None)
        return self.comparison

    def __repr__(self) -> str:
        """Return one line: what was audited and what came out."""
        found = f"{self.verdict}, epsilon={self.epsilon:.6g}"
        return f"<TableAudit of {one_line(self.name, 60)}: {found}>"

    def __str__(self) -> str:
        """Return the report."""
        from .showing import write_text

        return write_text(self)

    def lines(self) -> list[tuple[str, str]]:
        """Return the report as (label, text) rows."""
        from .showing import list_rows

        return list_rows(self)

    def _repr_html_(self) -> str:
        from .showing import write_html

        return write_html(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Make a page that holds the whole report, as text and in the file `path` if given.

        Args:
            path: where to write it, or None.

        Returns:
            The page.

        Raises:
            OSError: if the file cannot be written.
        """
        from .showing import make_page

        return make_page(self, path)

    def plot(self, ax: Any = None) -> Figure:
        """Plot the greatest loss of every input, in order, and the claim, in the style in force.

        Args:
            ax: matplotlib axes to draw on; None makes a figure of pyplot, for `plt.show()`.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is no axes.
        """
        from .showing import draw_figure

        return draw_figure(self, ax)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data without the table: what `from_dict` needs, and derived figures."""
        from .showing import write_plain_data

        return write_plain_data(self)

    def to_json(self, *, indent: int | None = None) -> str:
        """Write strict JSON of `to_dict`, which any parser reads.

        Args:
            indent: spaces for each level, or None for one line.

        Returns:
            The text.
        """
        from ..report.encoding import write_json

        return write_json(self, indent)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TableAudit:
        """Read the audit that `to_dict` wrote, without its table.

        Args:
            record: plain data.

        Returns:
            The audit; derived figures are computed again, not read.

        Raises:
            TypeError: if the record is not a mapping.
            ValueError: if it is not of that form.
        """
        from .showing import read_audit

        return read_audit(cls, record)

    @classmethod
    def from_json(cls, text: str) -> TableAudit:
        """Read the audit that `to_json` wrote, without its table.

        Args:
            text: a JSON object.

        Returns:
            The audit.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if it is not JSON of that form.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit_table([[0.75, 0.25], [0.25, 0.75]], claim=1.0)
            >>> dpcore.TableAudit.from_json(report.to_json()) == report
            True
        """
        from ..report.encoding import read_json

        return read_json(cls, text)
