"""Register of the parts of an audit whose count has begun, so that no part is counted twice.

The trials of an audit can be divided into parts, which several machines count. If the same seed
gives the same outputs again, a second count of a part gives the same numbers. Otherwise, a user
could count a part several times and keep the count with the largest bound. This bound would be too
large. The register, which lies next to the file with the state of the audit, prevents unintended
second counts. It cannot prevent intended second counts, because a user can delete the files of the
register.
"""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

from ..errors import instance, invalid, message, tag_error
from ..paths import write_atomically
from .run_files import RunFile

_LOOKED: Final = "looked"
"""Name of a file whose existence means that a person saw counts before the end of the audit."""


class _Entry(NamedTuple):
    """Record of the valid count of one part (a share of the trials) of an audit.

    Args:
        out: path of the file with the count.
        number: random number that identifies the count. It is also stored in the file of the count.
        voided: numbers of earlier counts of this part that are void.
    """

    out: str
    number: str
    voided: tuple[str, ...] = ()


def record_part_start_once(run_path: Path, run: RunFile, is_recount: bool) -> None:
    """Record that the count of one part of an audit begins; no part may be counted twice.

    A part is a share of the trials that one process counts. The records of all parts are small
    files in a folder next to the run file of the audit. If the mechanism gives the same outputs
    again for the same seed, no record is needed and none is written. If dpcore cannot write to the
    folder, no record is written, and the report of the audit states this.

    Args:
        run_path: path of the run file of the whole audit.
        run: the file for the counts of this part. This process holds the lock on the file.
        is_recount: True to declare an earlier count of this part void, and to count the part again.

    Raises:
        ValueError: for one of these reasons:

            - another count of this part is recorded, and `is_recount` is False;
            - a later count of this part has made the count in `run` void;
            - `is_recount` is True, and the same seed gives the same outputs again.
    """
    assert run.part is not None
    if run.is_repeatable:
        if is_recount:
            requirement = "False where the seed repeats a part: a second count verifies the first"
            raise invalid("again", requirement, is_recount)
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
    if is_recount and is_new:
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
    raise tag_error(ValueError(f"{text} ({remedy})"), "out")


def register_early_look(runs: Iterable[RunFile]) -> None:
    """Record that a person saw counts of some parts of an audit before all parts were counted.

    Args:
        runs: files with the counts of these parts.
    """
    for folder in _list_register_folders(runs):
        with contextlib.suppress(OSError):
            (folder / _LOOKED).touch()


def find_early_look(runs: Iterable[RunFile]) -> tuple[bool, str]:
    """Compare the counted parts of an audit with the records of all parts whose count began.

    A part is a share of the trials that one process counts.

    Args:
        runs: files with the counts of the parts that are merged.

    Returns:
        A bool and a note for the report. The bool is True if a person saw counts before all parts
        were counted. The note states how many parts are recorded. If the mechanism gives the same
        outputs again for the same seed, the bool is False and the note is empty.

    Raises:
        ValueError: if a file contains void counts: the same part was counted again later.
    """
    runs = [run for run in runs if not run.is_repeatable and run.part is not None]
    if not runs:
        return False, ""
    entries: dict[Path, _Entry] = {}
    folders = _list_register_folders(runs)
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
            raise tag_error(ValueError(text), "paths")
    where = f" in {', '.join(map(str, folders))}" if entries else ""
    voided = sum(len(entry.voided) for entry in entries.values())
    note = (
        "no seed repeats these outputs: the verdict rests on every part that was begun; "
        f"{len(entries):,} parts are registered{where}"
    )
    note += f", and {voided:,} counts are void" if voided else ""
    return any((folder / _LOOKED).exists() for folder in folders), note


def _list_register_folders(runs: Iterable[RunFile]) -> list[Path]:
    """List the folders with the records of the given parts, each folder once."""
    folders = [Path(run.registration["folder"]) for run in runs if run.registration]
    return list(dict.fromkeys(folders))


def _read_entry(path: Path) -> _Entry:
    """Read the record of the valid count of one part of an audit.

    Raises:
        ValueError: if the file does not contain a record that dpcore wrote.
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
