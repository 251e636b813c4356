"""Checks of file paths, errors that name an argument, and atomic writing of files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import about, invalid, mistyped


def require_path(name: str, path: Any) -> Path:
    """Check the path of a file, and return it.

    Raises:
        TypeError: if it is not a path.
        ValueError: if it is the path of a folder.
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
    """Change errors of the file system so that they name an argument, and no other file.

    Args:
        path: the file.
        purpose: the operation on the file, such as "written".
        name: the name of the argument.
        kind: the kind of object at the path, file or folder.

    Raises:
        OSError: if the file system raises one; the type and the number are kept.
    """
    try:
        yield
    except OSError as error:
        text = f"{name} must be a {kind} that can be {purpose} ({error.strerror or error})"
        raise about(type(error)(error.errno, text, os.fspath(path)), name) from error


def write_file(path: Any, content: str | bytes, name: str = "path") -> None:
    """Write a complete file, or do not change it; an error names the argument and the path."""
    place = require_path(name, path)
    with name_path_errors(place, "written", name):
        write_atomically(place, content)


def write_atomically(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Replace the content of a file atomically: write a new file, sync, rename.

    A symbolic link is kept. A pipe or a device is written directly.

    Args:
        path: path of the file.
        content: the new text or bytes.
        mode: permissions of a new file, before the umask. An existing file keeps its permissions.
    """
    content = content.encode() if isinstance(content, str) else content
    # Replace the file that a link points to, not the link itself.
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    name = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with contextlib.suppress(OSError):
            # The file of a killed process with the same number.
            os.unlink(name)
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with open(handle, "wb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(name, stat.S_IMODE(path.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise
