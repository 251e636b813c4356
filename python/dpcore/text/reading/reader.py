"""`read`: texts from a file or a folder of one's own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, Literal

from ...errors import about, choice, invalid, message, mistyped
from ...hints import hinted
from ...mechanisms.answers import is_frame
from ..corpus import Corpus
from .files import corpus_of, opened
from .folders import folder, plain
from .tables import SUFFIXES, Layout, rows_of_cells, table

__all__ = ["KINDS", "Kind", "read"]

Kind = Literal["csv", "tsv", "jsonl", "lines", "folder"]
"""`KINDS` as a type."""

_TABLE_KINDS: Final = ("csv", "tsv", "jsonl")

KINDS: Final = (*_TABLE_KINDS, "lines", "folder")
"""Kinds of files and folders that `read` reads."""


@hinted
def read(
    path: str | os.PathLike[str] | Any,
    kind: Kind | None = None,
    *,
    text: str | int | None = None,
    label: str | int | None = None,
    attributes: Sequence[str | int] = (),
    group: str | int | None = None,
    missing: Literal["error", "drop"] = "error",
) -> Corpus:
    r"""Read texts from a file or a folder.

    Texts are as the file has them, without the white space around them; lines of white space are
    no texts. Files are UTF-8. Labels, groups and attributes are whole numbers where all of a
    column are; attributes are numbers with a fraction, too, where all of a column are numbers.

    Args:
        path: a file or a folder, or a frame of pandas.
        kind: "csv", "tsv", "jsonl", "lines" (a text a line) or "folder" (train, valid and test
            files of these, or a folder of .txt files for each class). None guesses by the name;
            the origin of the result says what it took. Public corpora are read by
            `dpcore.experiments.corpora.read_corpus`.
        text: for tables, the column of the texts: its name in the header, or its position from 0
            in a file without one; None is "text".
        label: for tables, the column of the labels; None is "label" where a header has that.
        attributes: for tables, the columns to be kept private.
        group: for tables, the column of the authors, or of other groups, that `split` keeps
            together.
        missing: rows with an empty cell in one of these columns are an "error", one for all of
            them; "drop" leaves them out, and `Corpus.dropped` is their number.

    Returns:
        The corpus, split where its files are.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if a line is not what the format asks for, or a cell is empty; the message names
            file and line. If a column is missing; the message lists those that are there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as name:
        ...     file = Path(name, "mine.csv")
        ...     _ = file.write_text("topic,words\nsport,a goal\nmoney,shares fell\n")
        ...     read(file, text="words", label="topic")
        Corpus(2 texts; labels money sport; mine.csv, read as csv)
    """
    choice("missing", missing, ("error", "drop"))
    if is_frame(path):
        return _read_frame(
            path, kind, Layout(text, label, _freeze_columns(attributes), group), missing
        )
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped("path", "a path of a file or a folder", path)
    place, layout = Path(path), Layout(text, label, _freeze_columns(attributes), group)
    if kind is None:
        kind = _guess_kind(place)
    elif _require_kind(kind) != "folder" and place.is_dir():
        raise invalid("path", f"a file to be read as {kind}, not a folder", str(place))
    if kind not in (*_TABLE_KINDS, "folder") and layout != Layout():
        raise invalid(
            "text, label, attributes and group", f"left out for the kind {kind!r}", layout
        )
    origin = f"{place.name}, read as {kind}"
    if kind == "folder":
        if not place.is_dir():
            raise about(FileNotFoundError(message("path", "a folder", str(place))), "path")
        return corpus_of(folder(place, layout), origin, missing)
    file = opened(place)
    rows = plain(file) if kind == "lines" else table(file, str(kind), layout)
    return corpus_of([(None, rows)], origin, missing)


def _freeze_columns(attributes: Any) -> Any:
    return attributes if isinstance(attributes, str) else tuple(attributes)


def _read_frame(frame: Any, kind: Any, layout: Layout, missing: str) -> Corpus:
    """Read a frame of pandas."""
    if kind is not None:
        raise invalid("kind", "left out for a frame", kind)
    places = (f"row {row:,} of the frame" for row in range(len(frame)))
    cells = [dict(zip(frame.columns, row, strict=True)) for row in frame.itertuples(False, None)]
    found = list(zip(places, cells, strict=True))
    return corpus_of(
        [(None, rows_of_cells("the frame", layout, found))], f"a frame of {len(frame):,} rows",
        missing,
    )  # fmt: skip


def _require_kind(kind: Any) -> Any:
    try:
        return choice("kind", kind, KINDS)
    except ValueError as error:
        named = "dpcore.experiments.corpora.read_corpus reads public corpora by name"
        raise about(ValueError(f"{error} ({named})"), "kind") from None


def _guess_kind(path: Path) -> Any:
    if path.is_dir():
        return "folder"
    if not path.exists():
        raise about(FileNotFoundError(message("path", "a file or a folder", str(path))), "path")
    found = SUFFIXES.get(path.suffix.lower(), "lines" if path.suffix == ".txt" else None)
    if found is None:
        hint = "say which it is with kind=; word_vectors reads vectors"
        raise invalid("path", f"a .csv, .tsv, .jsonl or .txt file ({hint})", path.name)
    return found
