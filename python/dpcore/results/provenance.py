"""Record of how a result was made: source text, time, versions, machine, command.

None of it is compared and no figure rests on it. It names no host, no user and no folder; the
command line alone, which its user typed, may hold a path.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from ..errors import instance, integer, invalid
from ..records import Record

__all__ = ["LEFT_OUT", "MOST_NAMES", "Provenance", "TableRead"]

LEFT_OUT: Final = "left out (source=False)"
"""The origin where no source was wanted: no hash then either, for short texts can be guessed."""

MOST_NAMES: Final = 64
"""Names of columns that the record of a table holds: there may be 100,000."""

_MAX_SHOWN_NAMES: Final = 8
_TEXT_FIELDS: Final = ("date", "origin", "source", "cpu", "system", "architecture", "command")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(Record, word="Provenance"):
    """Record of how one run was made.

    Attributes:
        date: when it began, UTC, such as "2026-11-22T14:41:41Z".
        origin: what `source` is the text of, or why there is none.
        source: the source text as `inspect.getsource` gives it; what it calls is not followed.
            Read from its file when the audit began: a file that was edited since it was imported
            gives the edited text.
        versions: (name, version) of Python, dpcore, numpy and the libraries that the mechanism
            comes from.
        cpu: model of the CPU, empty if the system does not state it.
        cores: cores of the machine.
        system: the operating system.
        architecture: what the machine is, such as "x86_64".
        command: the command line of `dpcore audit`, or "pytest" and the id of the test; empty in
            scripts and notebooks.
    """

    date: str
    origin: str
    source: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    cpu: str = ""
    cores: int = 1
    system: str = ""
    architecture: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Check the kinds: a page shows what a file holds."""
        for name in _TEXT_FIELDS:
            instance(name, getattr(self, name), str)
        integer("cores", self.cores, 1)
        for pair in instance("versions", self.versions, tuple):
            if len(instance("versions", pair, tuple)) != 2 or not all(
                isinstance(w, str) for w in pair
            ):
                raise invalid("versions", "pairs of a name and a version", self.versions)

    @property
    def sha256(self) -> str:
        """SHA-256 of the source text in UTF-8, in hexadecimal; empty where there is no text."""
        text = self.source.encode("utf-8", "backslashreplace")
        return hashlib.sha256(text).hexdigest() if text else ""

    def __repr__(self) -> str:
        """Return one line, without the source text."""
        return f"<Provenance of {self.date}: {self.origin}>"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TableRead(Record, word="TableRead"):
    """A file or a frame that outputs were read from, and what was found in it.

    Args:
        name: name of the file without its folder, or of the argument that held the frame.
        kind: "csv", "lines", "json", "jsonl", "npy", "npz", "parquet" or "frame".
        rows: number of rows.
        columns: the columns that were read, by name or by number from 0, the first 64; none for
            an array that was read whole.
        there: names of all columns, the first 64; none without names.
        width: number of all columns.
        header: True if the first row of a text held the names; None where none can.
        sep: what stands between the cells of a CSV file.
        encoding: of a text.
        sha256: SHA-256 of the bytes of the file, in hexadecimal; empty for frames.

    Example:
        >>> print(TableRead("a.csv", "csv", 2, ("y",), ("x", "y"), 2, True, ",", "utf-8"))
        a.csv: 2 rows, column 'y' of 'x', 'y'; csv with a header, ',' between cells, utf-8
    """

    name: str
    kind: str
    rows: int
    columns: tuple[str, ...] = ()
    there: tuple[str, ...] = ()
    width: int = 1
    header: bool | None = None
    sep: str = ""
    encoding: str = ""
    sha256: str = ""

    def __post_init__(self) -> None:
        """Check the kinds: a page shows what a file holds."""
        for name in ("name", "kind", "sep", "encoding", "sha256"):
            instance(name, getattr(self, name), str)
        integer("rows", self.rows, 0)
        integer("width", self.width, 0)
        if self.header is not None:
            instance("header", self.header, bool)
        for names in (self.columns, self.there):
            for name in instance("columns", names, tuple):
                instance("columns", name, str)

    def __str__(self) -> str:
        """Return one line for a report."""
        header = {True: " with a header", False: " without a header", None: ""}[self.header]
        sep = f"{self.sep!r} between cells" if self.sep and self.width > 1 else ""
        how = ", ".join(part for part in (f"{self.kind}{header}", sep, self.encoding) if part)
        end = f"; SHA-256 {self.sha256}" if self.sha256 else ""
        return f"{self.name}: {self.rows:,} rows{self._list_columns()}; {how}{end}"

    def _list_columns(self) -> str:
        if not self.columns or (self.width == 1 and not self.there):
            return ""
        quoted = [repr(name) if self.there else name for name in self.columns]
        many = "column" if len(quoted) == 1 else "columns"
        others = _shorten_name_list([repr(name) for name in self.there], self.width)
        of = f" of {others}" if self.there else f" of {self.width:,}"
        return f", {many} {_shorten_name_list(quoted, len(quoted))}{of if self.width > 1 else ''}"


def _shorten_name_list(names: list[str], size: int) -> str:
    more = f" ({size:,} in all)" if size > _MAX_SHOWN_NAMES else ""
    return ", ".join(names[:_MAX_SHOWN_NAMES]) + more
