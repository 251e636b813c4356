"""File paths: checks, error messages that name an argument, and atomic writing of files."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .errors import invalid, mistyped, tag_error


def require_path(name: str, path: Any) -> Path:
    """Check that a value is the path of a file, and return it as a `Path`.

    Args:
        name: name of the argument in messages.
        path: the value to check. The file need not exist.

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
    """Return a context manager that adds the name of an argument to file system errors.

    Args:
        path: path of the file or folder.
        purpose: word for the message that states what is done with the file, such as "written".
        name: name of the argument to which the user passed the path.
        kind: "file" or "folder", for the message.

    Raises:
        OSError: if the code in the `with` block raises an OSError. The new error has the same type
            and the same error number. Its message names the argument.
    """
    try:
        yield
    except OSError as error:
        text = f"{name} must be a {kind} that can be {purpose} ({error.strerror or error})"
        raise tag_error(type(error)(error.errno, text, os.fspath(path)), name) from error


def write_file_or_keep_old(path: Any, content: str | bytes, name: str = "path") -> None:
    """Write a file; if an error occurs, the file keeps its old content.

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
    """Replace the content of a file. Other processes see either all old or all new content.

    The function writes a new file and then renames this file. If `path` is a symbolic link, the
    target of the link is replaced. If `path` is a pipe or a device, the function writes into it
    directly.

    Args:
        path: path of the file.
        content: the new text or bytes.
        mode: permissions of a new file, before the umask is applied. An existing file keeps its
            permissions.
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
