"""The command line: `dpcore audit --command`."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

import dpcore

SURVEY = """
import os, random, sys
keep, truth, size = float(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if truth not in ("never", "daily"):
    sys.exit(f"no such answer: {truth}")
rng = random.Random(int(os.environ["DPCORE_SEED"]))
for _ in range(size):
    print(truth if rng.random() < keep else "daily" if truth == "never" else "never")
"""


@pytest.fixture
def line(tmp_path):
    """The words of a command: keep -> what stands behind --command, as one word."""
    file = tmp_path / "survey.py"
    file.write_text(SURVEY)
    return lambda keep=0.8176: (
        shlex.join([sys.executable, "-S", "-E", str(file), str(keep)]) + (" {x} {size}")
    )


def test_a_leaky_survey_tool_is_refuted_and_a_private_one_is_not(run, line):
    words = "audit --x never --x-prime daily --claim 1 --trials 5000 --seed 1 --command"
    status, out, err = run(words, line())
    assert (status, err) == (1, "")
    assert "survey.py 0.8176 {x} {size}\n  verdict      refuted\n" in out
    status, out, _ = run(words, line(0.7310585786300049))
    assert status == 0
    assert "not refuted" in out


def test_the_json_is_that_of_python(run, line):
    words = "audit --x never --x-prime daily --no-claim --trials 500 --seed 2 --json --command"
    status, out, _ = run(words, line())
    assert status == 0
    mechanism = dpcore.command(shlex.split(line()))
    here = dpcore.audit(mechanism, ("never", "daily"), trials=500, rng=2)
    assert json.loads(out)["mechanism"] == mechanism.name
    found = dpcore.Audit.from_json(out)
    assert (found.counts, found.pair, found.event) == (here.counts, here.pair, here.event)


def test_parts_of_a_run_can_be_added(run, line):
    words = "audit --x never --x-prime daily --claim 1 --seed 2 --json --block 500 --pilot 512"
    parts = [
        dpcore.Audit.from_json(run(f"{words} --trials 500 --start {start} --command", line())[1])
        for start in (0, 500)
    ]
    assert (parts[0] + parts[1]).counts.n == 1000


def test_what_follows_x_is_put_in_unchanged(run):
    code = "import sys; [print(sys.argv[1]) for _ in range(int(sys.argv[2]))]"
    command = shlex.join([sys.executable, "-c", code]) + " {x} {size}"
    for x in ("1,2", "@none.npy", "$(exit) ; 'a'"):
        words = "audit --x-prime b --claim 1 --trials 100 --json --command"
        status, out, _ = run(words, command, "--x", x)
        assert status == 1
        assert dpcore.Audit.from_json(out).pair.x == x


def test_a_tool_that_fails_ends_with_3_and_its_stderr(run, line):
    status, out, err = run("audit --x never --x-prime weekly --claim 1 --command", line())
    assert (status, out) == (3, "")
    assert "exit status 1; its stderr ends:\nno such answer: weekly\n" in err
    assert "hint: it is run without a shell, {x} and {size} replaced" in err


def test_a_tool_that_hangs_ends_with_3(run):
    command = shlex.join([sys.executable, "-c", "import time; time.sleep(600)"]) + " {x} {size}"
    words = "audit --x never --x-prime daily --claim 1 --timeout 0.5 --command"
    status, _, err = run(words, command)
    assert status == 3
    assert "a pause of 0.5 s (timeout=0.5), got nothing in that time" in err
