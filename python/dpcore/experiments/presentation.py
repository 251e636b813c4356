"""Parts of the tables and of the plain data of all experiments."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from operator import attrgetter
from typing import Any

from .._core import __version__
from ..report.encoding import encode_value
from ..report.text import align_rows

FORMAT = "dpcore.experiment/1"


def make_record_head(name: str, result: Any) -> dict[str, Any]:
    """Return the head of an experiment's JSON: format, name, version and configuration."""
    config = {f.name: encode_value(getattr(result.config, f.name)) for f in fields(result.config)}
    return {
        "format": FORMAT,
        "experiment": name,
        "version": __version__,
        "config": {**config, "seed": str(result.config.seed)},
        "partial": result.partial,
        "seconds": result.seconds,
    }


def encode_fields(cell: Any) -> dict[str, Any]:
    """Return the fields of a record as plain data, those of records inside too."""
    return {
        name: {key: encode_value(one) for key, one in value.items()}
        if isinstance(value, dict)
        else encode_value(value)
        for name, value in asdict(cell).items()
    }


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table.

    Args:
        head: its head.
        value: the attribute of a row that it shows, dotted for one of an attribute; or a function
            of the row.
        text: returns the text of the value; or a format such as ".3f".
        left: True if it is set flush left.
    """

    head: str
    value: str | Callable[[Any], Any]
    text: Callable[[Any], str] | str = str
    left: bool = False

    def format_value(self, row: Any) -> str:
        """Return the text of one row."""
        value = attrgetter(self.value)(row) if isinstance(self.value, str) else self.value(row)
        return format(value, self.text) if isinstance(self.text, str) else self.text(value)


def align_columns(columns: Sequence[Column], rows: Iterable[Any]) -> str:
    """Return a table with a line for each row."""
    lines = [[one.format_value(row) for one in columns] for row in rows]
    left = [place for place, one in enumerate(columns) if one.left]
    return align_rows([[one.head for one in columns], *lines], left)


def encode_attributes(record: Any, names: str, **more: Any) -> dict[str, Any]:
    """Return attributes of a record as plain data, a seed as text.

    Args:
        record: has the attributes.
        names: their names, separated by blanks; `key=name` where the key differs, a dotted name
            for an attribute of an attribute.
        **more: further entries, plain data.

    Example:
        >>> encode_attributes(3 + 4j, "real size=imag", unit="m")
        {'real': 3.0, 'size': 4.0, 'unit': 'm'}
    """
    pairs = (one.rpartition("=") for one in names.split())
    found = {key or name: attrgetter(name)(record) for key, _, name in pairs}
    plain = {k: str(v) if k.endswith("seed") else encode_value(v) for k, v in found.items()}
    return plain | more


def list_counts(counts: Any) -> list[int]:
    """Return the four counts of an audit as a list."""
    return [counts.k, counts.n, counts.k_prime, counts.n_prime]


def compute_mean_sd(values: Sequence[float]) -> tuple[float, float]:
    """Compute the mean and the standard deviation, which is 0 for a single value.

    Example:
        >>> compute_mean_sd((1.0, 3.0)), compute_mean_sd((2.0,))
        ((2.0, 1.4142135623730951), (2.0, 0.0))
    """
    return statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0


def write_mean(values: Any, digits: int = 3) -> str:
    """Return a mean, and in brackets the standard deviation where there is one."""
    spread = f" ({statistics.stdev(values):.{digits}f})" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.{digits}f}{spread}"
