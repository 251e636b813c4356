"""The short and the full run: together they leave out no test, and collecting writes nothing."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import subprocess
import sys
from argparse import ArgumentTypeError
from pathlib import Path

import pytest
from conftest import is_in_part, read_part
from shared_extras import needs

ROOT = Path(__file__).parents[1]
REFERENCE = Path(__file__).with_name("reference")
FOLDERS = ("tests", "python", "benches", "docs", "examples", "rust")


def hash_files(*folders):
    """Return the hash of every file, without compiled ones, by its path."""
    files = [file for folder in folders for file in folder.rglob("*") if file.is_file()]
    return {
        file: hashlib.sha256(file.read_bytes()).hexdigest()
        for file in files
        if "__pycache__" not in file.parts
    }


def run_at_root(words):
    """Run a command as a user does, without what make and pytest left in the environment."""
    # Make passes the variables of its command line on, too.
    left = ("MAKE", "GNUMAKEFLAGS", "PART", "PYTEST_", "DPCORE_EXTRAS", "DPCORE_TEST_TIMES")
    env = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    return subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True, check=False)


def collect(command):
    """Return the node ids that a command line of pytest selects."""
    words = ["bash", "-c", f"{command} --collect-only -n0"]
    program = run_at_root(words)
    assert program.returncode == 0, program.stdout[-2000:] + program.stderr[-2000:]
    return {line for line in program.stdout.splitlines() if re.match(r"\S+\.py::", line)}


@pytest.mark.parametrize("script", sorted(REFERENCE.glob("make_*.py")), ids=lambda file: file.stem)
def test_importing_a_script_of_a_table_writes_nothing(script):
    before = hash_files(REFERENCE)
    assert "main" in runpy.run_path(str(script), run_name="imported")
    assert hash_files(REFERENCE) == before


@pytest.mark.sweep
def test_collecting_leaves_every_file_unchanged():
    folders = [ROOT / folder for folder in FOLDERS]
    before = hash_files(*folders)
    assert len(before) > 700
    assert len(collect(f"{sys.executable} -m pytest -q")) > 8000
    assert hash_files(*folders) == before


@pytest.mark.parametrize("text", ["", "1", "0/4", "5/4", "1/0", "a/b", "1/4/2"])
def test_a_part_that_does_not_exist_is_refused(text):
    with pytest.raises(ArgumentTypeError, match=r"^--part must be i/n with 1 <= i <= n, got "):
        read_part(text)
    assert read_part("4/4") == (4, 4)


def test_parts_together_hold_each_file_once():
    files = [file.relative_to(ROOT).as_posix() for file in Path(__file__).parent.rglob("*.py")]
    for n in (1, 2, 4):
        parts = [[file for file in files if is_in_part(file, (i, n))] for i in range(1, n + 1)]
        assert sorted(file for part in parts for file in part) == sorted(files)
        assert min(map(len, parts)) > len(files) / (2 * n)


def list_commands(*words):
    """Return the environment and the command line of each run of tests that make starts."""
    call = ["make", "--dry-run", "--no-print-directory", f"VENV={Path(sys.prefix).parent}", *words]
    lines = run_at_root(call).stdout
    commands = re.findall(r"(?m)^(?:DPCORE_EXTRAS=1 )?\S+ -m pytest -q.*$", lines)
    return [("extras" if "EXTRAS" in command else "plain", command) for command in commands]


@pytest.mark.extras
@pytest.mark.sweep
@pytest.mark.timeout(1800)
def test_what_the_short_run_leaves_out_runs_in_the_full_run_where_it_is_not_skipped():
    # The environment of the optional packages lies in the other one: from here make finds both.
    needs("torch")

    def select(*words):
        selected = {"plain": set(), "extras": set()}
        for environment, command in list_commands(*words):
            selected[environment] |= collect(command)
        return selected

    everything = collect(f"{sys.executable} -m pytest -q")
    extras = collect(f"{sys.executable} -m pytest -q -m extras")
    short, full = select("test"), select("test-all")
    left_out = everything - short["plain"] - short["extras"]
    assert {name.partition("[")[0] for name in left_out} >= {
        "tests/auditing/test_soundness.py::test_resumed_audits_do_not_overclaim",
        "tests/experiments/test_word_dp_attack.py::test_real_abstracts",
    }
    # A test that needs an optional package is skipped where none is installed.
    runs = {"plain": full["plain"] - extras, "extras": full["extras"] & extras}
    assert left_out - runs["plain"] - runs["extras"] == set()
    # The controls: each environment is needed.
    assert left_out - runs["plain"]
    assert left_out - runs["extras"]
    # The short run selects beside all packages what needs one, and only that.
    assert short["extras"] <= extras
    assert short["plain"] & extras == set()
