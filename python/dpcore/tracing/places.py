"""Places in the source of a traced function: file, line and name of the function."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

_OWN_FOLDER: Final = str(Path(__file__).parent.parent) + os.sep
_STANDARD_FOLDER: Final = str(Path(os.__file__).parent) + os.sep
_SKIPPED_PARTS: Final = ("<frozen", f"{os.sep}scipy{os.sep}", f"{os.sep}torch{os.sep}")
_SKIPPED_FOLDERS: Final = [str(Path(np.__file__).parent) + os.sep]
"""Folders whose files do not contain code of the user."""

_IS_SKIPPED: Final[dict[str, bool]] = {}
_FILE_NAMES: Final[dict[str, str]] = {}


class Place(NamedTuple):
    """A line of a source file: name of the file, line number and name of the function."""

    file: str
    line: int
    function: str

    @property
    def short(self) -> str:
        """This line as text: the name of the file and the line number."""
        return f"{self.file}:{self.line}"

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}"


def _is_library_file(file: str) -> bool:
    skipped = _IS_SKIPPED.get(file)
    if skipped is None:
        inside = file.startswith((_OWN_FOLDER, *_SKIPPED_FOLDERS))
        is_standard = file.startswith(_STANDARD_FOLDER) and "-packages" not in file
        skipped = inside or is_standard or any(part in file for part in _SKIPPED_PARTS)
        _IS_SKIPPED[file] = skipped
    return skipped


def find_place() -> Place:
    """Return the line of the user's code that is being executed."""
    frame: Any = sys._getframe(1)
    skipped = _IS_SKIPPED
    while frame is not None:
        file = frame.f_code.co_filename
        if not (skipped[file] if file in skipped else _is_library_file(file)):
            break
        frame = frame.f_back
    return Place("?", 0, "?") if frame is None else make_place(frame, frame.f_lineno)


def make_place(frame: Any, line: int) -> Place:
    """Return a `Place` with the file and the function of a Python frame, and a line number."""
    code = frame.f_code
    file = code.co_filename
    name = _FILE_NAMES.get(file) or _FILE_NAMES.setdefault(file, os.path.basename(file))
    return Place(name, line, code.co_name)


def is_user_file(file: str) -> bool:
    """Return True if a file contains code of the user, and False for a file of a library."""
    return not _is_library_file(file)
