"""Folders: a file for each part of a split, or for each text in a folder for each class."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ...errors import about, message
from .files import File, Row, opened
from .tables import SUFFIXES, Layout, table

__all__ = ["folder", "plain"]

_SPLIT_NAMES: Final = {
    "train": "train", "valid": "valid", "validation": "valid", "val": "valid", "dev": "valid",
    "test": "test",
}  # fmt: skip
"""Names of files and folders, and the parts of a split that they stand for."""


def plain(file: File) -> Iterator[Row]:
    """Yield a text for each line; lines of white space are skipped and separate nothing."""
    return (Row(file.text(number, line)) for number, line in file.filled())


def folder(path: Path, layout: Layout) -> Iterator[tuple[str | None, Iterable[Row]]]:
    """Yield the parts of a folder.

    Args:
        path: a folder with files such as train.csv and test.csv (csv, tsv, jsonl, or txt with a
            text a line), or with a folder of .txt files for each class, or with folders train and
            test of such folders.
        layout: which column of a table is what.

    Raises:
        ValueError: if it holds none of these, or two files for one part.
    """
    found: dict[str, Path] = {}
    for entry in sorted(path.iterdir()):
        part = _SPLIT_NAMES.get(entry.stem if entry.is_file() else entry.name)
        if part is None or (entry.is_file() and entry.suffix not in (".txt", *SUFFIXES)):
            continue
        if part in found:
            other = found[part].name
            raise _folder_error(path, f"a folder with one {part} part", f"{other} and {entry.name}")
        found[part] = entry
    for part, entry in found.items():
        if entry.is_dir():
            yield part, _read_class_folders(entry)
        elif entry.suffix in SUFFIXES:
            yield part, table(opened(entry), SUFFIXES[entry.suffix], layout)
        else:
            yield part, plain(opened(entry))
    if not found:
        yield None, _read_class_folders(path)


def _read_class_folders(path: Path) -> Iterator[Row]:
    classes = [entry for entry in sorted(path.iterdir()) if entry.is_dir()]
    files = [(entry.name, file) for entry in classes for file in sorted(entry.glob("*.txt"))]
    if not files:
        requirement = (
            "a folder with train, valid or test files (csv, tsv, jsonl, txt) "
            "or with a folder of .txt files for each class"
        )
        raise _folder_error(path, requirement, sorted(entry.name for entry in path.iterdir()))
    for entry in classes:
        others = [e.name for e in entry.iterdir() if e.suffix != ".txt" and e.name[0] != "."]
        if others:
            raise _folder_error(entry, "a folder of .txt files only", sorted(others))
    for label, name in files:
        file = opened(name)
        text = "\n".join(line for _, line in file.lines())
        yield Row(file.text(1, text), label)


def _folder_error(path: Path, requirement: str, found: object) -> ValueError:
    text = f"{message('path', requirement, str(path))}, which holds {found}"
    return about(ValueError(text), "path")
