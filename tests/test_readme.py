"""The README's console blocks are run, and must print what the README says."""

import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

README = pathlib.Path(__file__).parent.parent / "README.md"


def sessions() -> list[tuple[str, int, str]]:
    """(command, exit status, output) of every `$ dpcore ...` in a console block."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", README.read_text(), flags=re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            status = re.search(r"# exit status (\d+)", command)
            found.append((command.split("#")[0].strip(), int(status[1]) if status else 0, output))
    return [session for session in found if session[0].startswith("dpcore ")]


def without_speed(text: str) -> list[str]:
    """Lines without trailing blanks and without the line of time and speed."""
    lines = [line.rstrip() for line in text.strip().splitlines()]
    return [line for line in lines if not re.match(r"\s*time\b", line)]


@pytest.mark.parametrize(("command", "status", "output"), sessions())
def test_console_block(command, status, output, tmp_path):
    words = [sys.executable, "-m", *shlex.split(command)]
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    run = subprocess.run(
        words, capture_output=True, text=True, timeout=120, cwd=tmp_path, env=environment
    )
    assert run.returncode == status, run.stderr
    assert without_speed(run.stdout) == without_speed(output)


def test_the_readme_has_console_blocks():
    assert len(sessions()) >= 2
