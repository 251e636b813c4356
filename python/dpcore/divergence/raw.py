"""Values of an estimator before they are judged; arrays of records."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from ..records import Record, frozen_array

__all__ = ["Flags", "Raw", "Reals", "freeze_arrays"]

Reals = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]


def freeze_arrays(record: Record, *names: str) -> None:
    """Replace arrays of a new record by read-only copies; leave None unchanged."""
    for name in names:
        array = getattr(record, name)
        if array is not None:
            object.__setattr__(record, name, frozen_array(array))


@dataclass(frozen=True, slots=True, eq=False)
class Raw:
    """Estimates of one method in both directions: row 0 is D(P0||P1), row 1 is D(P1||P0).

    Args:
        value: estimates in nats, shape (2, n_alpha), raw: negative ones are kept.
        std_error: their standard errors, the same shape; NaN where none was asked for or where a
            replicate was not finite.
        depth: rows of the denominator that a ball reaches in each direction.
        ceiling: what `value` would be if every ball held all of the numerator, shape (2, n_alpha);
            NaN for methods without balls.
        effective: effective number of terms (sum w)^2 / sum w^2 of the averaged weights, shape
            (2, n_alpha); NaN where the method has none.
        unseen_share: share of the numerator's rows on atoms that the denominator does not have,
            shape (2,).
        atom_share: share of each set's rows on atoms, shape (2,): set 0, set 1.
        rows_per_atom: rows on repeated values over distinct repeated values; NaN without any.
        replicates: estimates on resampled data, shape (replicates, 2, n_alpha), or None.
        counted: numbers that tell what the search did (rescans, run_outs, ...).
        notes: sentences for the reader.
        beyond_share: in one dimension, share of the numerator's rows below or above all rows of
            the denominator, shape (2,); 0 otherwise.
    """

    value: Reals
    std_error: Reals
    depth: tuple[int, int]
    ceiling: Reals
    effective: Reals
    unseen_share: Reals
    atom_share: Reals
    rows_per_atom: float
    replicates: Reals | None = None
    counted: dict[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    beyond_share: Reals = field(default_factory=lambda: np.zeros(2))
