"""The pages of the site and its gallery, as the tests read and run them."""

from __future__ import annotations

import contextlib
import doctest
import importlib
import io
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpcore import cli

ROOT = Path(__file__).parents[1]
MADE = ("gallery", "generated", "templates")
"""Folders of docs/ that hold no page of ours."""

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES = [page for page in PAGES if not {*page.relative_to(ROOT).parts} & {*MADE}]
SCRIPTS = sorted((ROOT / "examples").rglob("*.py"))

FENCE = re.compile(r"(?:^<!-- not run: (.+) -->\n)?^```(\w+)\n(.*?)^```$", re.M | re.S)
SHOWN_ONLY = ("pip", "make", "git", "cd", "open")
"""Commands of console blocks that are not run."""

INNER_PYTEST = (
    *("-p", "dpcore.pytest_plugin", "-p", "no:cacheprovider"),
    # The module of a page's test must not stay behind for the next page.
    *("--import-mode=importlib", "--capture=sys"),
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text, and the line of the page on which that begins."""

    language: str
    text: str
    line: int


def blocks(text: str) -> Iterator[Block]:
    """The blocks that are to be run, in order."""
    for found in FENCE.finditer(text):
        reason, language, inner = found.groups()
        if reason is None:
            yield Block(language, inner, text.count("\n", 0, found.start(3)))


def needed(text: str) -> list[str]:
    """The optional packages of a page (`<!-- needs: a, b -->`) or a script (`# needs: a, b`)."""
    found = re.search(r"^(?:<!-- |# )needs: (.+?)(?: -->)?$", text, re.M)
    return [name.strip() for name in found[1].split(",")] if found else []


def name_of(place: Path) -> str:
    """How a test calls a page or script."""
    return str(place.relative_to(ROOT).with_suffix(""))


def run_page(page: Path) -> None:
    """Run every block of a page, in order and in one namespace, in the folder where we are."""
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks(page.read_text("utf-8")):
        place = f"{name_of(page)}.md, line {block.line + 1}"
        if block.language == "console":
            for session in sessions(block.text):
                run_session(*session, place)
        elif block.language == "python" and ">>>" in block.text:
            run_doctest(block, names, place)
        elif block.language == "python":
            run_code(block, names, place)


def run_doctest(block: Block, names: dict[str, Any], place: str) -> None:
    """Run a block of `>>>` lines, with the options of our docstrings."""
    test = doctest.DocTestParser().get_doctest(block.text, {}, place, place, block.line)
    test.globs = names
    said: list[str] = []
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    runner = doctest.DocTestRunner(optionflags=flags)
    if runner.run(test, out=said.append, clear_globs=False).failed:
        pytest.fail("".join(said), pytrace=False)


def run_code(block: Block, names: dict[str, Any], place: str) -> None:
    """Run a block without `>>>`; one whose first line is `# FILE.py` becomes that file instead."""
    file = re.match(r"# (\S+\.py)\b", block.text)
    if file:
        Path(file[1]).write_text(block.text, "utf-8")
        # A folder that was listed in the same tick of its clock would hide the new file.
        importlib.invalidate_caches()
        # Commands that follow are processes of their own for a reader, and read the file anew.
        sys.modules.pop(Path(file[1]).stem, None)
        return
    code = compile("\n" * block.line + block.text, place, "exec")
    with contextlib.redirect_stdout(io.StringIO()):
        exec(code, names)


def sessions(text: str) -> Iterator[tuple[str, int, str]]:
    """(command, exit status, output) of every `$` line of a console block."""
    for part in re.split(r"^\$ ", text, flags=re.M)[1:]:
        command, _, output = part.partition("\n")
        status = re.search(r"# exit status (\d+)", command)
        yield command.split("  #")[0].strip(), int(status[1]) if status else 0, output


def run_session(command: str, status: int, output: str, place: str) -> None:
    """Run a command here, and compare its status and all that it prints; `...` is anything."""
    program, *words = shlex.split(command)
    if program in SHOWN_ONLY:
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        if program == "dpcore":
            found = cli.main(words)
        elif program == "pytest":
            found = int(pytest.main([*INNER_PYTEST, *words]))
        else:
            pytest.fail(f"{place}: dpcore and pytest can be run, not {program}", pytrace=False)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    text = printed.getvalue()
    if "an output takes" not in output:
        # A forecast, which a busy machine prints.
        text = re.sub(r"(?m)^dpcore: an output takes .*\n(?:  .*\n)*", "", text)
    wanted, got = without_time(output), without_time(text)
    if found != status or not doctest.OutputChecker().check_output(wanted, got, flags):
        pytest.fail(f"{place}: $ {command}\nexit status {found}\n{got}", pytrace=False)


def without_time(text: str) -> str:
    """Without the lines of time and speed."""
    return "".join(line for line in text.splitlines(True) if not re.match(r"\s*time\b", line))


def run_script(script: Path) -> None:
    """Run a script of the gallery at few trials."""
    text = re.sub(r"^TRIALS = .*", "TRIALS = 20_000", script.read_text("utf-8"), flags=re.M)
    exec(compile(text, str(script), "exec"), {"__name__": "__main__"})
