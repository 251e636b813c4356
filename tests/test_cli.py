"""The command line: what it prints, and above all what it exits with."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import fields

import numpy as np
import pytest

import dpcore
from dpcore import _core, cli, published
from dpcore._cli_audit import SYSTEMS, Asked

OWN = """
import os
import helper_of_noisy
import numpy as np
from dpcore import Laplace, Pair

print("a module may print")

def release(x, size, rng):
    print("a mechanism too")
    return x + rng.laplace(scale=2.0, size=(size, len(x)))

def flat(x, size, rng):
    return x[0] + rng.laplace(scale=2.0, size=size)

def raising(x, size, rng):
    raise ValueError("block must be luckier")

def leaving(x, size, rng):
    raise SystemExit(0)

def wrong_rows(x, size, rng):
    return np.zeros((size + 1, 1))

def wrong_shape(x, size, rng):
    return np.zeros((size, 7))

def words(x, size, rng):
    return np.array(["a"] * size)

def ragged(x, size, rng):
    return [[0.0], [0.0, 1.0]] * size

def lazy(x, size, rng):
    import other_of_noisy
    return release(x, size, rng)

def slow(x, size, rng):
    with open(os.environ["CALLS"], "a") as calls:
        calls.write("x")
    return release(x, size, rng)

class Claiming:
    claim = 0.5
    def default_pair(self):
        return Pair([0.0], [1.0])
    def __call__(self, x, size, rng):
        return release(x, size, rng)

class Broken(Claiming):
    @property
    def claim(self):
        raise ValueError("no claim today")

class Pairless(Claiming):
    def default_pair(self):
        return [0.0], [1.0]

class Space:
    mechanism = Claiming()

claiming, broken, pairless = Claiming(), Broken(), Pairless()
native = Laplace(0.5)
number = 3
"""


@pytest.fixture
def own(tmp_path):
    """Path of a file with mechanisms of a user."""
    (tmp_path / "helper_of_noisy.py").write_text("")
    (tmp_path / "other_of_noisy.py").write_text("")
    (tmp_path / "noisy.py").write_text(OWN)
    return str(tmp_path / "noisy.py")


@pytest.fixture
def run(capsys, monkeypatch):
    """Run the command line here: (status, stdout, stderr)."""
    monkeypatch.delenv("FORCE_COLOR", raising=False)

    def call(words, *more):
        status = cli.main([*words.split(), *more])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.fixture
def process(tmp_path):
    """Run the command line as a process: (status, stdout, stderr)."""

    def call(words, *more):
        done = subprocess.run(
            [sys.executable, "-m", "dpcore", *words.split(), *more],
            capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False,
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    return call


def plain(text):
    """Help without the colours that typer forces on some CI services."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


# Exit statuses of a real process.


def test_process_not_refuted(process):
    status, out, err = process("audit laplace --epsilon 1 --seed 1 --trials 1e5")
    assert status == 0
    assert "not refuted by this attack" in out
    assert err == ""


def test_process_refuted(process):
    status, out, _ = process("audit half-noise --epsilon 1 --dim 1 --seed 1 --trials 1e5 --json")
    assert status == 1
    assert dpcore.Audit.from_json(out).refuted is True


def test_process_bad_usage_of_the_parser_and_of_dpcore(process):
    status, out, err = process("audit laplace --epsilon one")
    assert (status, out) == (2, "")
    assert "--epsilon" in err
    status, out, err = process("audit laplace --epsilon 1 --trials 0")
    assert (status, out) == (2, "")
    assert err.startswith("error: --trials must be a whole number")


@pytest.mark.parametrize("words", ["info", "audit laplace --epsilon 1"])
def test_process_with_a_cpu_path_that_is_not_there(process, monkeypatch, words):
    """The import must not fail: Python would exit with 1, which says "refuted"."""
    monkeypatch.setenv("DPCORE_CPU", "avx1024")
    status, out, err = process(words)
    assert (status, out) == (2, "")
    assert err.startswith("error: DPCORE_CPU must be one of baseline")


def test_process_failed_mechanism(process, own):
    status, out, err = process("audit --dim 1 --claim 1", f"{own}:raising")
    assert (status, out) == (3, "")
    assert "raising failed: ValueError: block must be luckier (noisy.py, line 17)" in err
    assert "Traceback" not in err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--version"])
def test_process_that_cannot_write_has_failed(words):
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dpcore", *words.split()]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 3


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX pipe")
@pytest.mark.parametrize("words", ["audit laplace --epsilon 1 --trials 100", "--help"])
def test_process_whose_reader_has_left_has_failed(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "dpcore", *words.split()]
    done = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (3, b"")


def interrupted(words, ready, environment=None):
    """Status and stdout of a process that gets SIGINT once `ready(seconds)` says so."""
    # A shell that runs tests in the background ignores SIGINT, and children inherit that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "dpcore", *words], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, env={**os.environ, **(environment or {})},
        )  # fmt: skip
    finally:
        signal.signal(signal.SIGINT, before)
    begun = time.monotonic()
    while not ready(time.monotonic() - begun) and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    return child.returncode, out, err


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT of a POSIX system")
@pytest.mark.parametrize("as_json", [False, True])
def test_process_interrupted(as_json):
    words = ["audit", "half-noise", "--epsilon", "1", "--trials", "1e12", "--seed", "1"]
    for seconds in (1.5, 4.0, 8.0):  # a busy machine may not have begun to count
        status, out, err = interrupted(
            [*words, *["--json"] * as_json], lambda passed, limit=seconds: passed > limit
        )
        if out:
            break
    # Refuted by then, but interrupted comes first.
    assert status == 130, err
    if as_json:
        report = dpcore.Audit.from_json(out)
        assert report.partial
        assert report.refuted
        assert 0 < report.counts.n < 10**12
        assert report.counts.n == report.counts.n_prime
    else:
        assert "interrupted: only the trials shown were counted" in out
        assert re.search(r"counts +[\d,]+ of [\d,]+ on x", out)


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT of a POSIX system")
def test_process_interrupted_in_a_users_mechanism(own, tmp_path):
    calls = tmp_path / "calls"

    def counting(_):
        return calls.exists() and calls.stat().st_size > 8  # the probe, the pilot, some blocks

    words = ["audit", f"{own}:slow", "--dim", "1", "--claim", "0.1", "--trials", "1e12", "--json"]
    status, out, err = interrupted(words, counting, {"CALLS": str(calls)})
    assert status == 130, err
    assert dpcore.Audit.from_json(out).partial


def test_interrupted_before_anything_was_counted(run, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("dpcore._cli_audit.audit", stop)
    status, out, err = run("audit laplace --epsilon 1 --json")
    assert (status, out) == (130, "")
    assert "interrupted" in err


def test_a_bug_of_dpcore_is_never_taken_for_refuted(run, monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("dpcore._cli_audit.audit", fail)
    status, out, err = run("audit laplace --epsilon 1")
    assert (status, out) == (3, "")
    assert "dpcore failed: ZeroDivisionError: oh" in err
    assert "Traceback" not in err
    assert "Traceback" in run("audit laplace --epsilon 1 --traceback")[2]


# Published systems.


def test_every_system_has_a_name():
    assert set(SYSTEMS.values()) == set(published.SYSTEMS)


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_system_runs(run, name):
    status, out, _ = run(f"audit {name} --epsilon 1 --trials 1000 --seed 1 --json")
    report = dpcore.Audit.from_json(out)
    assert report.mechanism == SYSTEMS[name](1.0)
    assert report.pair == SYSTEMS[name](1.0).default_pair(2)
    assert status == (1 if report.refuted else 0)
    assert json.loads(out) == json.loads(report.to_json())


def test_options_reach_the_audit(run):
    _, out, _ = run(
        "audit dptext --epsilon 2 --sensitivity 3 --nan resample --dim 4 --trials 2e3 --start 1e3 "
        "--claim 5 --delta 0.1 --confidence 0.9 --seed 7 --route sampled --block 64 --threads 2 "
        "--no-progress --json"
    )
    system = published.DPText(2.0, 3.0, "resample")
    here = dpcore.audit(
        system, system.default_pair(4), trials=2000, start=1000, claim=5.0, delta=0.1,
        confidence=0.9, rng=7, route="sampled", block=64, threads=1,
    )  # fmt: skip
    assert dpcore.Audit.from_json(out) == here


def test_sensitivity_is_the_distance_of_the_pair(run, tmp_path):
    for words in ("--x -1,2 --x-prime 1,-3", "--x=-1,2 --x-prime=1,-3"):
        status, out, _ = run(f"audit laplace --epsilon 1 --trials 100 --json {words}")
        report = dpcore.Audit.from_json(out)
        assert status == 0
        assert report.mechanism == published.LaplaceMechanism(1.0, 7.0)
        assert report.pair == dpcore.Pair([-1, 2], [1, -3])
    np.save(tmp_path / "x.npy", np.arange(3.0))
    more = ("--x", f"@{tmp_path / 'x.npy'}", "--x-prime", "0,1,3")
    report = dpcore.Audit.from_json(run("audit laplace --epsilon 1 --trials 9 --json", *more)[1])
    assert report.mechanism.sensitivity == 1.0
    assert report.pair.x.tolist() == [0.0, 1.0, 2.0]


def test_a_pair_beyond_the_sensitivity_needs_a_claim(run):
    words = "audit laplace --epsilon 1 --sensitivity 1 --x 0 --x-prime 3 --trials 1e4 --seed 1"
    status, _, err = run(words)
    assert status == 2
    assert "or give --claim" in err
    assert run(f"{words} --claim 3")[0] == 0
    assert run(f"{words} --claim 1")[0] == 1
    status, out, _ = run(f"{words} --no-claim --json")
    assert (status, dpcore.Audit.from_json(out).claim) == (0, None)


def test_without_a_claim_nothing_is_refuted(run):
    status, out, _ = run("audit half-noise --epsilon 1 --dim 1 --trials 1e5 --no-claim")
    assert status == 0
    assert "no claim given" in out


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("audit", "name a system"),
        ("audit laplace", "laplace needs --epsilon"),
        ("audit laplce --epsilon 1", "did you mean laplace"),
        ("audit laplace --epsilon 1 --clip 1", "--clip does not apply to laplace"),
        ("audit adept --epsilon 1 --sensitivity 1", "--sensitivity does not apply to adept"),
        ("audit laplace --epsilon 1 --nan keep", "--nan does not apply"),
        ("audit dptext --epsilon 1 --nan drop", "--nan must be one of"),
        ("audit laplace --epsilon 0", "--epsilon must be a finite number above 0"),
        ("audit laplace --epsilon nan", "--epsilon must be a finite number"),
        ("audit laplace --epsilon 1 --dim 0", "--dim must be"),
        ("audit laplace --epsilon 1 --seed -1", "--seed must be"),
        ("audit laplace --epsilon 1 --start -1", "--start must be a whole number at least 0"),
        ("audit laplace --epsilon 1 --trials many", "--trials must be"),
        ("audit laplace --epsilon 1 --trials 1.5", "--trials must be"),
        ("audit laplace --epsilon 1 --confidence 1", "--confidence must be"),
        ("audit laplace --epsilon 1 --delta 1", "--delta must be"),
        ("audit laplace --epsilon 1 --threads 0", "--threads must be"),
        ("audit laplace --epsilon 1 --block 0", "--block must be"),
        ("audit laplace --epsilon 1 --route scenic", "--route must be"),
        ("audit laplace --epsilon 1 --claim -1", "--claim must be"),
        ("audit laplace --epsilon 1 --claim 1 --no-claim", "exclude each other"),
        ("audit laplace --epsilon 1 --x 1", "go together"),
        ("audit laplace --epsilon 1 --x 1 --x-prime 2 --dim 1", "--dim does not apply"),
        ("audit laplace --epsilon 1 --x 1 --x-prime 1", "different in at least one entry"),
        ("audit laplace --epsilon 1 --x 1 --x-prime 1,2", "equal shape"),
        ("audit laplace --epsilon 1 --x 1,b --x-prime 1,2", "--x must be numbers"),
        ("audit laplace --epsilon 1 --x nan --x-prime 1", "--x must be"),
        ("audit laplace --epsilon 1 --x @no.npy --x-prime 1", "--x must name an .npy file"),
        ("audit laplace --epsilon 1 --plot a.xyz", "--plot must end in"),
        ("audit laplace --epsilon 1 --plot no/such/a.png", "--plot must name a file in a folder"),
        ("audit laplace --epsilon 1 --sped 1", "--sped"),
        ("audit laplace adept --epsilon 1", "unexpected"),
        ("audit --list --epsilon 1", "--list only lists"),
        ("audit --list laplace", "--list only lists"),
        ("audit nowhere.py:f --claim 1", "no such file: nowhere.py"),
        ("reproduce nothing", "no such experiment"),
        ("reproduce --trials 5", "only lists"),
        ("reproduce published-systems --trials 0", "--trials must be"),
        ("reproduce published-systems --seed -1", "--seed must be"),
        ("reproduce published-systems --threads 0", "--threads must be"),
        ("deduce", "deduce"),
    ],
)
def test_bad_usage_is_2_with_one_line(run, words, complaint):
    status, out, err = run(words)
    assert (status, out) == (2, "")
    assert complaint in err
    assert err.startswith("error: ")
    assert "Traceback" not in err


# Mechanisms of a user.


def test_own_mechanism(run, own):
    words = "--x 0 --x-prime 1 --seed 1 --trials 1e5"
    status, out, err = run(f"audit {own}:release {words} --claim 0.6")
    assert status == 0
    assert out.startswith(f"{own}:release\n")
    assert "a module may print" in err
    assert run(f"audit {own}:release {words} --claim 0.4")[0] == 1
    assert run(f"audit {own}:flat {words} --claim 0.4")[0] == 1
    assert run(f"audit {own}:lazy {words} --claim 0.4")[0] == 1
    assert run(f"audit {own}:release --dim 1 --seed 1 --trials 1e5 --claim 0.4")[0] == 1


def test_own_mechanism_as_json(run, own):
    status, out, _ = run(f"audit {own}:release --dim 1 --seed 1 --trials 1e4 --no-claim --json")
    report = dpcore.Audit.from_json(out)

    def release(x, size, rng):
        return x + rng.laplace(scale=2.0, size=(size, len(x)))

    assert status == 0
    assert report.mechanism == f"{own}:release"
    assert report.to_json() == out.strip()
    assert report.counts == dpcore.audit(release, trials=10**4, rng=1, claim=1.0).counts


@pytest.mark.parametrize("name", ["claiming", "Space.mechanism"])
def test_own_claim_and_pair(run, own, name):
    status, out, _ = run(f"audit {own}:{name} --trials 1e4")
    assert status == 0
    assert "epsilon <= 0.5" in out
    status, out, _ = run(f"audit {own}:{name} --trials 1e5 --claim 0.1")
    assert status == 1
    assert "(the mechanism's own: 0.5)" in out


def test_a_native_mechanism_in_a_users_file_is_run_by_the_core(run, own):
    _, out, _ = run(f"audit {own}:native --dim 2 --trials 1e4 --claim 9 --json")
    report = dpcore.Audit.from_json(out)
    assert report.mechanism == dpcore.Laplace(0.5)
    assert report.route == "integer"


@pytest.mark.parametrize(
    ("name", "words", "complaint"),
    [
        ("release", "--dim 1", "has no claim: give --claim EPSILON"),
        ("release", "--claim 1", "has no default_pair: give --x and --x-prime"),
        ("relese", "--dim 1 --claim 1", "did you mean 'release'?"),
        ("Space.nothing", "--dim 1 --claim 1", "has no 'Space.nothing'"),
        ("number", "--dim 1 --claim 1", "number must be a callable"),
        ("Claiming", "", "got a class"),
        ("release", "--dim 1 --claim 1 --epsilon 1", "--epsilon does not apply to a mechanism"),
        ("release", "--dim 1 --claim 1 --clip 1", "--clip does not apply to a mechanism"),
        ("release", "--dim 1 --claim 1 --route integer", "--route must be 'auto'"),
        ("release", "--dim 1 --claim 1 --start 1", "--start must be a multiple"),
        ("claiming", "--dim 3", "takes no dim"),
        ("", "--claim 1", "name the mechanism in the file"),
    ],
)
def test_bad_usage_of_an_own_mechanism(run, own, name, words, complaint):
    status, out, err = run(f"audit {own}:{name} {words} --trials 1000")
    assert (status, out) == (2, "")
    assert complaint in err
    assert "Traceback" not in err


def test_a_file_that_is_not_python(run, tmp_path):
    (tmp_path / "a.txt").write_text("")
    assert run(f"audit {tmp_path / 'a.txt'}:f --claim 1")[0] == 2
    assert run(f"audit {tmp_path}/none.py")[0] == 2


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("raising", "raising failed: ValueError: block must be luckier"),
        ("leaving", "leaving failed: SystemExit: 0"),
        ("wrong_rows", "wrong_rows must be an array with 2 rows, one per output, got (3, 1)"),
        ("wrong_shape", "wrong_shape must be of shape (size, 1), got"),
        ("words", "words must be real numbers"),
        ("ragged", "ragged failed: ValueError"),
        ("broken", "broken.claim failed: ValueError: no claim today"),
        ("pairless", "must be a Pair"),
    ],
)
def test_a_failed_mechanism_is_3(run, own, name, complaint):
    words = "--claim 1" + (" --dim 1" if name not in ("broken", "pairless") else "")
    words = words.replace("--claim 1", "") if name == "broken" else words
    status, out, err = run(f"audit {own}:{name} {words} --trials 1000")
    assert (status, out) == (3, "")
    assert complaint in err
    assert "hint: " in err
    assert "Traceback" not in err
    status, _, err = run(f"audit {own}:{name} {words} --trials 1000 --traceback")
    assert status == 3
    assert "Traceback (most recent call last)" in err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named"),
        ("def f(:", "SyntaxError"),
        ("import sys; sys.exit(0)", "SystemExit: 0"),
    ],
)
def test_a_failed_import_is_3(run, tmp_path, text, complaint):
    (tmp_path / "bad.py").write_text(f"\n{text}\n")
    path, modules = list(sys.path), set(sys.modules)
    status, out, err = run(f"audit {tmp_path / 'bad.py'}:f --claim 1 --dim 1")
    assert (status, out) == (3, "")
    assert complaint in err
    assert "(bad.py, line 2)" in err
    assert sys.path == path
    assert not [name for name in set(sys.modules) - modules if "bad" in name]


# Lists, experiments, environment, help.


def test_list(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, _ = run("audit --list")
    assert status == 0
    assert max(map(len, out.splitlines())) <= 80
    for name, cls in SYSTEMS.items():
        assert name in out
        assert cls.__name__ in out
    rows = json.loads(run("audit --list --json")[1])
    assert [row["name"] for row in rows] == list(SYSTEMS)
    for row in rows:
        cls = SYSTEMS[row["name"]]
        assert row["options"] == [f"--{field.name}" for field in fields(cls)]
        assert (row["norm"], row["sound"], row["fault"], row["source"]) == (
            cls.norm, cls.sound, cls.fault, cls.source,
        )  # fmt: skip


def test_plot(run, tmp_path):
    status, _, err = run(f"audit laplace --epsilon 1 --trials 100 --plot {tmp_path / 'a.svg'}")
    assert status == 0
    assert "wrote" in err
    assert "<svg" in (tmp_path / "a.svg").read_text()


class Remade:
    """The result of an experiment."""

    def __init__(self, partial):
        self.partial = partial

    def table(self):
        """Return the table."""
        return "the table"

    def to_dict(self):
        """Return plain data."""
        return {"partial": self.partial}


@pytest.mark.parametrize("partial", [False, True])
def test_reproduce(run, tmp_path, monkeypatch, partial):
    asked = []

    def reproduce(name, out, *rest):
        asked.append((name, *rest))
        (out / f"{name}.json").write_text("{}")
        return Remade(partial)

    monkeypatch.setattr("dpcore.experiments.reproduce", reproduce)
    words = f"reproduce published-systems --out {tmp_path / 'a'} --trials 1e3 --seed 5 --threads 1"
    status, out, _ = run(words)
    assert status == (130 if partial else 0)
    assert asked == [("published-systems", "1e3", 5, 1, None)]
    assert "the table" in out
    assert str(tmp_path / "a" / "published-systems.json") in out
    assert json.loads(run(f"{words} --json")[1]) == {"partial": partial}
    (tmp_path / "file").write_text("")
    status, _, err = run(f"reproduce published-systems --out {tmp_path / 'file'}")
    assert status == 2
    assert "--out must be" in err


def test_reproduce_lists_the_experiments(run):
    from dpcore.experiments import NAMES

    for words in ("reproduce", "reproduce --list"):
        status, out, _ = run(words)
        assert status == 0
        assert all(name in out for name in NAMES)
    assert [row["name"] for row in json.loads(run("reproduce --json")[1])] == list(NAMES)


def test_info(run):
    status, out, _ = run("info")
    assert status == 0
    assert dpcore.__version__ in out
    assert _core.cpu() in out
    found = json.loads(run("info --json")[1])
    assert (found["version"], found["cpu"]) == (dpcore.__version__, _core.cpu())
    assert (found["cpus"], found["threads"]) == (_core.cpus(), _core.cores())


def test_version(run):
    assert run("--version") == (0, f"dpcore {dpcore.__version__}\n", "")


@pytest.mark.parametrize("command", ["", "audit", "reproduce", "info"])
def test_help_has_an_example_and_fits(run, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "80")
    status, out, err = run(f"{command} --help")
    out = plain(out)
    assert (status, err) == (0, "")
    assert "Examples" in out
    assert f"  dpcore {command}".rstrip() in out
    assert "Exit status" in out
    assert max(map(len, out.splitlines())) <= 80
    assert run(f"{command} -h")[0] == 0


def test_audit_help_names_every_option(run):
    out = plain(run("audit --help")[1])
    names = {field.name for field in fields(Asked)} - {"target", "as_json"}
    for name in names | {"json", "list", "traceback", "no_progress"}:
        assert re.search(rf"--{name.replace('_', '-')}\b", out), name


def test_without_words_the_help_and_2(run):
    status, out, err = run("")
    assert (status, err) == (2, "")
    assert "Examples" in plain(out)


def test_import_of_dpcore_does_not_load_typer():
    check = "import dpcore, sys; sys.exit(any(m in sys.modules for m in ('typer', 'rich')))"
    assert subprocess.run([sys.executable, "-c", check], check=False).returncode == 0
