"""Paths of files: their check, errors that name an argument, and files that are written whole."""

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


def write_file(path: Any, content: str | bytes, name: str = "path") -> None:
    """Write a file as a whole or not at all; an error names the argument and the path."""
    place = require_path(name, path)
    with name_path_errors(place, "written", name):
        write_atomically(place, content)


def write_atomically(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Replace a file by one with other content, as a whole: write, sync, rename.

    A link stays a link. A pipe or a device is written to.

    Args:
        path: of the file.
        content: the other text or bytes.
        mode: permissions of a new file, less those that the umask takes. A file that is there
            keeps its own.
    """
    content = content.encode() if isinstance(content, str) else content
    # A link must not be replaced by the file that it leads to.
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    name = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with contextlib.suppress(OSError):
            # Of a process with the same number that was killed.
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
