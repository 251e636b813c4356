"""Register of begun parts, next to their run file, so that a part is not counted twice.

If the seed repeats the outputs, a second count of a part verifies the first count. Otherwise,
counting a part several times and keeping the best count certifies too much. A record cannot prove
that this did not happen, because a user can delete files. The register only prevents unintended
repetitions.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import about, instance, invalid, message
from ..paths import write_atomically
from .run_files import RunFile

_LOOKED: Final = "looked"
"""Name of the file that records that counts were seen before the end."""


class _Entry(NamedTuple):
    """Registered count of one part.

    Args:
        out: file of the count.
        number: random number, which is also in the file of the count.
        voided: numbers of counts that are void.
    """

    out: str
    number: str
    voided: tuple[str, ...] = ()


def register_part(run_path: Path, run: RunFile, again: bool) -> None:
    """Register the count of a part before it begins, unless the seed repeats it.

    If the folder cannot be written to, no part is registered, and the report states so.

    Args:
        run_path: path of the run file.
        run: file of the part. No other process counts for it.
        again: True if an earlier count of the part becomes void.

    Raises:
        ValueError: if the part is registered for another count, or if `run` is a void count.
    """
    assert run.part is not None
    if run.is_repeatable:
        if again:
            requirement = "False where the seed repeats a part: a second count verifies the first"
            raise invalid("again", requirement, again)
        return
    folder = run_path.with_name(f"{run_path.name}.parts")
    path = folder / f"{run.part[0]}-of-{run.part[1]}"
    try:
        folder.mkdir(exist_ok=True)
    except OSError:
        return
    is_new = not run.registration
    if is_new:
        run.registration = {"folder": str(folder), "number": secrets.token_hex(8)}
        # If the process is killed between the two writes, the part is registered when it continues.
        run.write(always=True)
    entry = _Entry(str(run.place), run.registration["number"])
    try:
        with path.open("x", encoding="utf-8") as file:
            json.dump(entry._asdict(), file)
    except FileExistsError:
        pass
    except OSError:
        run.registration = {} if is_new else run.registration
        return
    else:
        return
    before = _read_entry(path)
    if entry.number == before.number:
        return
    if again and is_new:
        voided = (*before.voided, before.number)
        write_atomically(path, json.dumps(entry._replace(voided=voided)._asdict()))
        return
    if is_new:
        run.place.unlink(missing_ok=True)
    shown = f"{run.part[0]}/{run.part[1]}"
    is_gone = " (it is gone)" if before.out == str(run.place) else ""
    requirement = f"{before.out}{is_gone}, to which part {shown} was counted before"
    if not is_new:
        requirement = f"a new file, for the count of part {shown} that it holds is void"
    remedy = "no seed repeats the outputs, and who counts a part twice may keep the better count; "
    remedy += "again=True voids the first"
    text = message("out", requirement, str(run.path))
    raise about(ValueError(f"{text} ({remedy})"), "out")


def register_look(runs: Iterable[RunFile]) -> None:
    """Register that counts of these parts were seen before the end."""
    for folder in _list_folders(runs):
        with contextlib.suppress(OSError):
            (folder / _LOOKED).touch()


def read_registered_parts(runs: Iterable[RunFile]) -> tuple[bool, str]:
    """Compare parts with the register.

    Args:
        runs: files of the parts to be merged.

    Returns:
        True if a look at the counts is registered, and the note for the report (empty if the seed
        repeats the parts).

    Raises:
        ValueError: if a part is void.
    """
    runs = [run for run in runs if not run.is_repeatable and run.part is not None]
    if not runs:
        return False, ""
    entries: dict[Path, _Entry] = {}
    folders = _list_folders(runs)
    for folder in folders:
        with contextlib.suppress(OSError):
            entries |= {path: _read_entry(path) for path in folder.glob("*-of-*")}
    for run in runs:
        assert run.part is not None
        if not run.registration:
            continue
        name = f"{run.part[0]}-of-{run.part[1]}"
        entry = entries.get(Path(run.registration["folder"]) / name)
        if entry is not None and entry.number != run.registration["number"]:
            requirement = f"counts that hold: part {run.part[0]}/{run.part[1]} was counted again"
            text = message("paths", f"{requirement} to {entry.out}", str(run.path))
            raise about(ValueError(text), "paths")
    where = f" in {', '.join(map(str, folders))}" if entries else ""
    voided = sum(len(entry.voided) for entry in entries.values())
    note = (
        "no seed repeats these outputs: the verdict rests on every part that was begun; "
        f"{len(entries):,} parts are registered{where}"
    )
    note += f", and {voided:,} counts are void" if voided else ""
    return any((folder / _LOOKED).exists() for folder in folders), note


def _list_folders(runs: Iterable[RunFile]) -> list[Path]:
    """List the folders in which parts are registered, without repetitions."""
    folders = [Path(run.registration["folder"]) for run in runs if run.registration]
    return list(dict.fromkeys(folders))


def _read_entry(path: Path) -> _Entry:
    """Read the registered count of a part.

    Raises:
        ValueError: if the file does not contain a registered count.
    """
    try:
        record: dict[str, Any] = instance("entry", json.loads(path.read_text("utf-8")), dict)
        voided = instance("voided", record["voided"], list)
        texts = [
            instance("entry", text, str) for text in (record["out"], record["number"], *voided)
        ]
    except (KeyError, TypeError, ValueError) as error:
        text = f"{path} must be a registered part that dpcore wrote, got {error}"
        raise ValueError(text) from error
    return _Entry(texts[0], texts[1], tuple(texts[2:]))
