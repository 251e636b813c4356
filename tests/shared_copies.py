"""Copies of the package in a temporary folder, to be changed and run in a process of their own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dpcore

PACKAGE = Path(dpcore.__file__).parent


def copied(tmp_path: Path) -> Path:
    """A folder that holds a copy of the package, the compiled core among it."""
    root = tmp_path / "copy"
    shutil.copytree(PACKAGE, root / "dpcore", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def edited(root: Path, file: str, *changes: tuple[str, str]) -> None:
    """Replace texts, each of which stands once in a file of the copy (named from `dpcore/` on)."""
    path = root / "dpcore" / file
    text = path.read_text()
    for old, new in changes:
        assert text.count(old) == 1, (file, old)
        text = text.replace(old, new)
    later = int(path.stat().st_mtime) + 1
    path.write_text(text)
    # What is compiled is told from other sources by its size and its second.
    os.utime(path, (later, later))


def done(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A run of Python on the copy, whatever its status; its working folder is the copy's."""
    environment = {**os.environ, "PYTHONPATH": str(root)}
    if root != PACKAGE.parent:
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=root,
        env={**environment, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
    )


def run(root: Path, code: str) -> str:
    """What code prints that is run on the copy; it must not fail."""
    guard = f"import dpcore; assert dpcore.__file__.startswith({str(root)!r})\n"
    found = done(root, "-c", guard + code)
    assert found.returncode == 0, found.stderr
    return found.stdout


def failure(root: Path, code: str) -> str:
    """The last line of what code complains of that is run on the copy; it must fail."""
    found = done(root, "-c", code)
    assert found.returncode != 0, found.stdout
    return found.stderr.strip().splitlines()[-1]
