"""Commands as mechanisms: tools in any language, what they read and write, and how they fail."""

from __future__ import annotations

import math
import os
import pickle
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest

import dpcore
from dpcore.mechanisms.spellings import parse_line

PAIR = ("never", "daily")
TRUE = 1.5

SURVEY = """
import os, random, sys
kind, truth, size = sys.argv[1], sys.argv[2], int(sys.argv[3])
other = "daily" if truth == "never" else "never"
seed = {"own": os.urandom(8), "fixed": b"7"}.get(kind, os.environ["DPCORE_SEED"].encode())
rng = random.Random(seed)
keep = 0.7310585786300049 if kind == "private" else 0.8175744761936437
shared = rng.random()
for _ in range(size):
    if kind == "constant":
        print(truth if os.environ.get("DPCORE_LEAKS") else "never")
    elif kind == "shared":
        print(shared)
    else:
        print(truth if rng.random() < keep else other)
"""

FAULTY = """
import os, sys, time
kind, size = sys.argv[1], int(sys.argv[3])
def write(data):
    sys.stdout.buffer.write(data)
    sys.stdout.flush()
if kind == "crash":
    write(b"never\\n" * size)
    sys.exit("TypeError: truth is undefined")
if kind == "signal":
    os.abort()
if kind == "few":
    write(b"never\\n" * (size - 1))
if kind == "many":
    write(b"never\\n" * (size + 1))
if kind == "endless":
    while True:
        write(b"never\\n" * 1000)
if kind == "binary":
    write(bytes(range(256)) * 99)
if kind == "nul":
    write(b"ne\\0ver\\n" * size)
if kind == "long":
    for _ in range(1024):
        write(b"a" * 2**20)
if kind == "hang":
    write(b"never\\n")
    print("waiting for the network", file=sys.stderr, flush=True)
    time.sleep(600)
if kind == "lingering":
    write(b"never\\n" * size)
    os.close(1)
    time.sleep(600)
if kind == "parent":
    import subprocess
    child = subprocess.Popen([sys.executable, "-S", "-E", "-c", "import time; time.sleep(600)"])
    open(os.environ["DPCORE_CHILD"], "w").write(str(child.pid))
    time.sleep(600)
"""

ECHO = """
import json, os, sys
for _ in range(int(sys.argv[2])):
    print(json.dumps([sys.argv[1], os.environ["DPCORE_SEED"]]))
"""


@pytest.fixture
def tool(tmp_path):
    """Make a command of a Python script: (source, its first argument) -> the mechanism."""

    def make(source, *words, **options):
        file = tmp_path / "tool.py"
        file.write_text(source)
        start = [sys.executable, "-S", "-E", file]
        return dpcore.command([*start, *words, "{x}", "{size}"], **options)

    return make


def audited(mechanism, seed=1, **options):
    return dpcore.audit(mechanism, PAIR, claim=1.0, trials=5000, rng=seed, **options)


# What is certified.


@pytest.mark.sweep
def test_a_survey_tool_is_refuted_and_its_private_twin_is_not(tool):
    # At 95 % a true claim of 1 is refuted at most once in 20 runs; 5 seeds, fixed.
    leaky, private = (
        [audited(tool(SURVEY, kind), seed) for seed in range(5)] for kind in ("leaky", "private")
    )
    assert np.median([one.epsilon_lower for one in leaky]) > 1.35
    assert all(one.refuted and one.epsilon_lower < TRUE for one in leaky)
    assert {one.randomness for one in leaky} == {"seed"}
    assert not any(one.refuted for one in private)
    assert all(0.8 < one.epsilon_lower < 1.0 for one in private)


AWK = """BEGIN {
    srand(ENVIRON["DPCORE_SEED"] + 0)
    for (i = 0; i < size; i++)
        print (rand() < 0.8175744761936437) == (x == "never") ? "never" : "daily"
}"""


@pytest.mark.skipif(shutil.which("awk") is None, reason="awk is not installed")
def test_a_tool_in_awk_with_the_seed():
    mechanism = dpcore.command(["awk", "-v", "x={x}", "-v", "size={size}", AWK])
    report = audited(mechanism)
    assert report.refuted
    assert (report.randomness, report) == ("seed", audited(mechanism))


def test_a_tool_that_ignores_the_seed_is_audited_and_the_report_says_so(tool):
    report = audited(tool(SURVEY, "own"))
    assert (report.refuted, report.randomness) == (True, "own")
    [note] = [one for one in report.notes if "DPCORE_SEED" in one]
    assert note in str(report)
    assert note in report.to_json()
    assert not any("DPCORE_SEED" in one for one in audited(tool(SURVEY, "leaky")).notes)


def test_one_answer_for_ever_is_a_law(tool, monkeypatch):
    assert audited(tool(SURVEY, "constant")).verdict.startswith(
        "undecided: all 1,024 pilot outputs"
    )
    monkeypatch.setenv("DPCORE_LEAKS", "1")
    assert audited(tool(SURVEY, "constant")).epsilon_lower > 5.0


@pytest.mark.parametrize("trials", [50, 5000])
def test_the_same_varying_lines_in_every_run_are_an_error(tool, trials):
    wanted = r"drawn anew in every call from the seed in DPCORE_SEED .* got 'the same varying"
    with pytest.raises(ValueError, match=wanted):
        dpcore.audit(tool(SURVEY, "fixed"), PAIR, claim=1.0, trials=trials, rng=1)


def test_one_noise_for_a_run_is_an_error(tool):
    with pytest.raises(ValueError, match=r"another call: draw new noise for every line$"):
        audited(tool(SURVEY, "shared"))


# What repeats.


def test_threads_executors_and_parts_have_the_same_counts(tool):
    mechanism = tool(SURVEY, "leaky")
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    options = {"claim": 1.0, "rng": 2, "block": 500, "pilot": 512}
    whole = dpcore.audit(mechanism, PAIR, trials=2000, **options)
    assert dpcore.audit(mechanism, PAIR, trials=2000, threads=2, **options) == whole
    with ProcessPoolExecutor(1) as pool:
        assert dpcore.audit(mechanism, PAIR, trials=2000, executor=pool, **options) == whole
    first = dpcore.audit(mechanism, PAIR, trials=1000, **options)
    rest = dpcore.audit(mechanism, PAIR, trials=1000, start=1000, **options)
    assert (first + rest).counts == whole.counts
    drawn = whole.outputs("x", 0, 2000) == "never"
    assert int(drawn.sum()) in (whole.counts.k, 2000 - whole.counts.k)


def test_the_record_shows_the_command_and_its_files(tool):
    mechanism = tool(SURVEY, "a b")
    report = audited(mechanism)
    assert report.name == mechanism.name
    assert mechanism.name.endswith("tool.py 'a b' {x} {size}")
    assert dpcore.Audit.from_json(report.to_json()).mechanism == mechanism.name
    [made] = report.provenance
    assert made.origin == f"command {mechanism.name}"
    assert SURVEY in made.source
    assert not audited(mechanism, source=False).provenance[0].source
    from dpcore.results.audit_json import format_call

    assert eval(format_call(report)) == report


# What goes in, and what comes out.


@pytest.mark.parametrize(
    ("x", "wanted"),
    [
        ("never", "never"), ("{size}; $(exit) 'a' \"b\" é", "{size}; $(exit) 'a' \"b\" é"),
        ("", ""), (np.array([0.0, 1.5]), "[0.0, 1.5]"),
        ({"rows": [1, None]}, '{"rows": [1, null]}'), (np.int64(3), "3"), (True, "true"),
    ],
)  # fmt: skip
def test_texts_are_put_in_unchanged_and_all_else_as_json(tool, x, wanted):
    assert [one[0] for one in tool(ECHO)(x, 3, np.random.default_rng(1))] == [wanted] * 3


def test_places_are_replaced_inside_arguments_alone(monkeypatch):
    code = "import os, sys; print(*sys.argv[1:], os.environ['PLACE'], sep='|')"
    monkeypatch.setenv("PLACE", "{x}")
    mechanism = dpcore.command([sys.executable, "-c", code, "--input={x}:{size}", "{y}", "{}"])
    assert mechanism("a", 1, np.random.default_rng(1)) == ["--input=a:1|{y}|{}|{x}"]


def test_every_process_has_a_seed_that_follows_from_the_generator(tool):
    rng = np.random.default_rng(1)
    seeds = [int(tool(ECHO)("x", 1, rng)[0][1]) for _ in range(3)]
    assert len(set(seeds)) == 3
    assert all(0 <= one < 2**31 for one in seeds)
    assert int(tool(ECHO)("x", 1, np.random.default_rng(1))[0][1]) == seeds[0]


@pytest.mark.parametrize(
    ("x", "kind", "said"),
    [
        ({1, 2}, TypeError, "x must be a text, or what JSON can hold"),
        ([math.nan], ValueError, "x must be a text, or what JSON can hold"),
        (b"never", TypeError, "x must be a text, or what JSON can hold"),
        ("a\0b", ValueError, "x must be a text without NUL"),
        ("a" * 2**25, RuntimeError, "from a command that can be started"),
    ],
)
def test_inputs_that_cannot_be_put_in_are_errors(tool, x, kind, said):
    with pytest.raises(kind, match=said):
        tool(ECHO)(x, 1, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("1", 1), ("1.50", 1.5), ("-.5", -0.5), ("+3.", 3.0), ("1e-05", 1e-5), ("-inf", -math.inf),
        ("Infinity", math.inf), ('"a\\nb"', "a\nb"), ('{"a": [1]}', {"a": [1]}), ("null", None),
        ("true", True), ("007", "007"), ("1_000", "1_000"), ("0,5", "0,5"), (" a ", " a "),
        ("[" * 10**5, "[" * 10**5), ("9" * 5000, "9" * 5000), ("", ""), ("12:30", "12:30"),
    ],
)  # fmt: skip
def test_a_line_is_json_a_number_or_a_text(line, wanted):
    found = parse_line(line)
    assert found == wanted
    assert isinstance(found, type(wanted))


def read_file(folder, written, size):
    """The answers of a command that writes what a file holds."""
    (folder / "written").write_bytes(written)
    code = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read())"
    mechanism = dpcore.command([sys.executable, "-c", code, "{x}", "{size}"])
    return mechanism(str(folder / "written"), size, np.random.default_rng(1))


@pytest.mark.parametrize(
    "lines",
    [
        ["1.5", "-2", "NaN", "true"], ["1,2", "3"], ["1,2", ""], ["[1", "2]"], ['"a', 'b"'],
        [" 1 ", "2"], ["1.5", "never"], ["never"] * 3, ["{}", "[]"], ["1", "]", "[2"],
    ],
)  # fmt: skip
def test_lines_are_read_one_by_one_whatever_stands_in_others(tmp_path, lines):
    found = read_file(tmp_path, "".join(f"{line}\n" for line in lines).encode(), len(lines))
    assert repr(found) == repr([parse_line(line) for line in lines])


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        (b"a\r\nb\r\n", ["a", "b"]), (b"a\r\nb", ["a", "b"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]), (b"a\n\n", ["a", ""]),
        ("a\u2028b\n\x0b".encode(), ["a\u2028b", "\x0b"]),
    ],
)  # fmt: skip
def test_lines_end_with_line_feeds_alone(tmp_path, written, wanted):
    assert read_file(tmp_path, written, 2) == wanted


# What fails.


@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("crash", RuntimeError, r"exit status 0, got exit status 1; its stderr ends:\nTypeErr"),
        ("signal", RuntimeError, "exit status 0, got"),
        ("few", ValueError, r"as many lines as \{size\} asks for \(2\), one answer a line, got 1"),
        ("many", ValueError, r"lines as \{size\} asks for \(2\), one answer a line, got more"),
        ("endless", ValueError, "got more"),
        ("binary", ValueError, "UTF-8 text, one answer a line, got b"),
        ("nul", ValueError, "UTF-8 text, one answer a line, got a NUL"),
        ("hang", TimeoutError, r"\(timeout=1\), got nothing .*\n?.*waiting for the network"),
        ("lingering", TimeoutError, r"ends within 1 s \(timeout=1\)"),
    ],
)
def test_a_tool_that_fails_is_named_with_the_reason(tool, kind, error, said):
    with pytest.raises(error, match=said) as caught:
        audited(tool(FAULTY, kind, timeout=1))
    assert str(caught.value).startswith("outputs of ")
    assert f"tool.py {kind} {{x}} {{size}} must be " in str(caught.value)


def test_a_line_of_a_gigabyte_is_never_held(tool):
    resource = pytest.importorskip("resource")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ValueError, match="lines of at most 16,777,216 bytes"):
        tool(FAULTY, "long")("never", 1, np.random.default_rng(1))
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # In KiB, or in bytes on macOS; far less than the line.
    assert (after - before) / (2**20 if sys.platform == "darwin" else 2**10) < 400


def test_a_program_that_vanished_is_named(tmp_path):
    program = tmp_path / "tool"
    program.write_text("#!/bin/sh\necho 1\n")
    program.chmod(0o755)
    mechanism = dpcore.command([program, "{x}", "{size}"])
    program.unlink()
    text = r"from a command that can be started, got .*No such file"
    with pytest.raises(RuntimeError, match=text):
        mechanism("never", 1, np.random.default_rng(1))


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # A child that nobody has waited for yet is dead, too.
    state = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True)
    return state.stdout.strip()[:1] not in ("", "Z")


@pytest.mark.skipif(os.name != "posix", reason="groups of processes and signals are POSIX")
@pytest.mark.parametrize(("timeout", "error"), [(3, TimeoutError), (60, KeyboardInterrupt)])
def test_what_a_tool_has_started_ends_with_it(tool, tmp_path, monkeypatch, ctrl_c, timeout, error):
    """After its time is over, and when it is interrupted."""
    child = tmp_path / "child"
    monkeypatch.setenv("DPCORE_CHILD", str(child))
    if error is KeyboardInterrupt:
        ctrl_c(3.0)
    with pytest.raises(error):
        tool(FAULTY, "parent", timeout=timeout)("never", 1, np.random.default_rng(1))
    assert not is_alive(int(child.read_text()))
