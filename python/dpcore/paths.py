"""File paths: checks, error messages that name an argument, and atomic writing of files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import about, invalid, mistyped


def require_path(name: str, path: Any) -> Path:
    """Check that a value is the path of a file, and return it.

    Args:
        name: name of the argument in messages.
        path: the value.

    Raises:
        TypeError: if the value is not a path.
        ValueError: if the value is the path of a folder, or empty.
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
    """Return a context in which errors of the file system get messages that name an argument.

    Args:
        path: path of the file.
        purpose: what is done with the file, such as "written".
        name: name of the argument that holds the path.
        kind: "file" or "folder".

    Raises:
        OSError: if the file system raises an OSError in the context. The new error has the same
            type and number.
    """
    try:
        yield
    except OSError as error:
        text = f"{name} must be a {kind} that can be {purpose} ({error.strerror or error})"
        raise about(type(error)(error.errno, text, os.fspath(path)), name) from error


def write_file(path: Any, content: str | bytes, name: str = "path") -> None:
    """Write a file completely. After an error, the file has its old content.

    Args:
        path: path of the file.
        content: the new text or bytes.
        name: name of the argument in error messages.

    Raises:
        TypeError: if `path` is not a path.
        ValueError: if `path` is the path of a folder.
        OSError: if the file cannot be written. The message names the argument and the path.
    """
    place = require_path(name, path)
    with name_path_errors(place, "written", name):
        write_atomically(place, content)


def write_atomically(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Replace the content of a file, so that another process sees the old or the new content.

    The function writes a new file and then renames it. For a symbolic link, it replaces the file to
    which the link points. It writes directly into a pipe or a device.

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
