"""How a result was made: of which source text, when, with which versions, where, by which command.

None of it is compared and no figure rests on it. It names no host, no user and no folder; the
command line alone, which its user typed, may hold a path.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from ..errors import instance, integer, invalid
from ..records import Record

__all__ = ["LEFT_OUT", "Provenance"]

LEFT_OUT: Final = "left out (source=False)"
"""The origin where no source was wanted: no hash then either, for short texts can be guessed."""

_TEXTS: Final = ("date", "origin", "source", "cpu", "system", "architecture", "command")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Provenance(Record, word="Provenance"):
    """How one run was made.

    Attributes:
        date: when it began, UTC, such as "2026-11-22T14:41:41Z".
        origin: what `source` is the text of, or why there is none.
        source: the source text as `inspect.getsource` gives it; what it calls is not followed.
            Read from its file when the audit began: a file that was edited since it was imported
            gives the edited text.
        versions: (name, version) of Python, dpcore, numpy and the libraries that the mechanism
            comes from.
        cpu: model of the CPU, empty where the system does not tell it.
        cores: cores of the machine.
        system: the operating system.
        architecture: what the machine is, such as "x86_64".
        command: the command line of `dpcore audit`, or "pytest" and the id of the test; empty in
            scripts and notebooks.
    """

    date: str
    origin: str
    source: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    cpu: str = ""
    cores: int = 1
    system: str = ""
    architecture: str = ""
    command: str = ""

    def __post_init__(self) -> None:
        """Check the kinds: a page shows what a file holds."""
        for name in _TEXTS:
            instance(name, getattr(self, name), str)
        integer("cores", self.cores, 1)
        for pair in instance("versions", self.versions, tuple):
            if len(instance("versions", pair, tuple)) != 2 or not all(
                isinstance(w, str) for w in pair
            ):
                raise invalid("versions", "pairs of a name and a version", self.versions)

    @property
    def sha256(self) -> str:
        """SHA-256 of the source text in UTF-8, in hexadecimal; empty where there is no text."""
        text = self.source.encode("utf-8", "backslashreplace")
        return hashlib.sha256(text).hexdigest() if text else ""

    def __repr__(self) -> str:
        """One line, without the text."""
        return f"<Provenance of {self.date}: {self.origin}>"
