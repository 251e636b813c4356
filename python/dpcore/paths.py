"""Paths of files: their check, and errors of a file system that name an argument."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import about, invalid, mistyped


def require_path(name: str, path: Any) -> Path:
    """Check the path of a file, and return it.

    Raises:
        TypeError: if it is not a path.
        ValueError: if it is that of a folder.
    """
    if not isinstance(path, (str, os.PathLike)):
        raise mistyped(name, "the path of a file", path)
    place = Path(path)
    if not place.name or place.is_dir():
        raise invalid(name, "the path of a file", os.fspath(path))
    return place


@contextlib.contextmanager
def name_path_errors(
    path: Path, purpose: str, name: str = "path", kind: str = "file"
) -> Iterator[None]:
    """Let errors of a file system name an argument, and not a file beside it.

    Args:
        path: the file.
        purpose: what is done with it, such as "written".
        name: the argument.
        kind: what is at the path, a file or a folder.

    Raises:
        OSError: of the same kind and number.
    """
    try:
        yield
    except OSError as error:
        text = f"{name} must be a {kind} that can be {purpose} ({error.strerror or error})"
        raise about(type(error)(error.errno, text, os.fspath(path)), name) from error
