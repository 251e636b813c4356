"""What a result records of how it was made: source text, date, versions, machine, command."""

from __future__ import annotations

import functools
import getpass
import hashlib
import inspect
import linecache
import os
import platform
import re
import time
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from shared_audits import noisy

import dpcore
from dpcore import Audit, OutputsAudit, audit, audit_outputs
from dpcore.attacks import MajorityVote
from dpcore.auditing.provenance import provenance_of, record_command
from dpcore.cli.user import Guarded
from dpcore.results.evidence import LEFT_OUT, Provenance

PAIR = ([0.0], [1.0])
SHORT = {"claim": 1.0, "trials": 100, "rng": 1, "attack": MajorityVote()}


def one(x, rng):
    return x[0] + rng.laplace()


class Noise:
    def __call__(self, x, size, rng):
        return noisy(x, size, rng)

    def method(self, x, size, rng):
        return noisy(x, size, rng)


def doubled(fn):
    @functools.wraps(fn)
    def twice(*given):
        return 2.0 * fn(*given)

    return twice


lambda_ = lambda x, size, rng: x + rng.laplace(size=(size, 1))  # noqa: E731
decorated = doubled(noisy)


@pytest.mark.parametrize(("mechanism", "origin", "text"), [
    (noisy, "function noisy", inspect.getsource(noisy)),
    (lambda_, "function <lambda>", inspect.getsource(lambda_)),
    (dpcore.repeat(one), "function one", inspect.getsource(one)),
    (functools.partial(noisy), "function noisy", inspect.getsource(noisy)),
    (functools.lru_cache(noisy), "function noisy", inspect.getsource(noisy)),
    (Noise(), "class Noise", inspect.getsource(Noise)),
    (Noise().method, "function Noise.method", inspect.getsource(Noise.method)),
    (Guarded(Noise(), "it.py:Noise", "it.py"), "class Noise", inspect.getsource(Noise)),
    (decorated, "function doubled.<locals>.twice around function noisy",
     inspect.getsource(decorated.__code__) + "\n" + inspect.getsource(noisy)),
], ids=lambda value: value if isinstance(value, str) and len(value) < 40 else None)  # fmt: skip
def test_the_source_is_that_of_what_a_user_wrote(mechanism, origin, text):
    found = provenance_of(mechanism, True)
    assert (found.origin, found.source) == (origin, text)
    assert found.sha256 == hashlib.sha256(text.encode()).hexdigest()


def executed():
    space: dict[str, object] = {}
    exec("def made(x, size, rng): return x + rng.laplace(size=(size, 1))", space)
    return space["made"]


@pytest.mark.parametrize(
    ("thing", "said"),
    [
        (dpcore.Laplace(1.0), f"dpcore.mechanisms.laplace.Laplace of dpcore {dpcore.__version__}"),
        (dpcore.published.DPText(1.0), f"dpcore.published.DPText of dpcore {dpcore.__version__}"),
        (np.add, f"numpy.ufunc of numpy {np.__version__}"),
        (executed(), "function made: not available (compiled code, executed text, or a file that "),
        (print, "function print: not available"),
        (type("Made", (), {"__call__": noisy})(), "class Made: not available"),
        (None, "none: the outputs were drawn elsewhere"),
    ],
    # No id may hold an address: workers of one run collect the same tests.
    ids=["noise", "system", "ufunc", "executed", "builtin", "made", "none"],
)
def test_where_there_is_no_text_the_origin_says_so(thing, said):
    found = provenance_of(thing, True)
    assert found.origin.startswith(said)
    assert (found.source, found.sha256) == ("", "")


def test_a_cell_of_a_notebook_has_its_text():
    text = "def cell(x, size, rng):\n    # as it was typed\n    return x\n"
    file, space = "<ipython-input-1-cell>", {}
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    exec(compile(text, file, "exec"), space)
    assert provenance_of(space["cell"], True).source == text


def test_a_file_that_was_changed_is_not_passed_off_as_the_source(tmp_path):
    file, space = tmp_path / "it.py", {}
    file.write_text("\n\ndef mine(x, size, rng):\n    return x\n")
    exec(compile(file.read_text(), str(file), "exec"), space)
    file.write_text("\n\ndef other(x):\n    return 0\n")
    linecache.clearcache()
    found = provenance_of(space["mine"], True)
    assert (found.source, "a file that was changed" in found.origin) == ("", True)


class Awkward:
    """Odd in every way that inspect and weak references may stumble over."""

    __slots__ = ()
    __module__ = 5
    __wrapped__ = property(lambda self: 1 / 0)

    def __call__(self, x, size, rng):
        return noisy(x, size, rng)

    def __getattr__(self, name):
        raise AttributeError(name)


def test_no_mechanism_is_too_odd():
    itself = functools.partial(noisy)
    itself.__wrapped__ = itself
    for thing in (Awkward(), itself, 5, "name", object, type):
        assert provenance_of(thing, True).date


def test_who_leaves_the_source_out_leaves_its_hash_out():
    report = audit(noisy, PAIR, source=False, **SHORT)
    (found,) = report.provenance
    assert (found.origin, found.source, found.sha256) == (LEFT_OUT, "", "")
    page = report.to_html()
    assert "rng.laplace" not in report.to_json() + page
    # In the code that repeats it too.
    assert page.count("source=False,") == 1
    shown = audit(noisy, PAIR, **SHORT)
    assert "rng.laplace" in shown.to_json()
    assert shown == report


def test_date_versions_and_machine():
    before = time.time()
    (found,) = audit(noisy, PAIR, **SHORT).provenance
    begun = time.mktime(time.strptime(found.date, "%Y-%m-%dT%H:%M:%SZ")) - time.timezone
    # The date is in whole seconds, of a clock that may lag one tick behind `time.time`.
    assert before - 2.0 <= begun <= time.time()
    assert dict(found.versions) == {
        "Python": platform.python_version(), "dpcore": dpcore.__version__, "numpy": np.__version__,
    }  # fmt: skip
    machine = (os.cpu_count(), platform.machine(), platform.system())
    assert (found.cores, found.architecture, found.system) == machine
    cpus = Path("/proc/cpuinfo")
    named = re.search("model name.*: (.*)", cpus.read_text()) if cpus.exists() else None
    assert (found.cpu, found.command) == (named[1] if named else found.cpu, "")


def test_libraries_are_those_that_the_mechanism_names():
    hypothesis = pytest.importorskip("hypothesis")

    def named(x, size, rng):
        def inner():
            return hypothesis.strategies

        return inner() and noisy(x, size, rng)

    as_global = eval("lambda x, size, rng: tool.note(x)", {"tool": hypothesis})
    for mechanism in (named, as_global, dpcore.repeat(lambda x: named(x, 1, 1), seeded="own")):
        versions = dict(provenance_of(mechanism, False).versions)
        assert ("hypothesis" in versions) is (mechanism in (named, as_global))
        assert versions.get("hypothesis") in (None, hypothesis.__version__)
    assert [*dict(provenance_of(noisy, True).versions)] == ["Python", "dpcore", "numpy"]


def test_nothing_names_host_user_or_folder():
    (found,) = audit(noisy, PAIR, **SHORT).provenance
    told = [str(getattr(found, f.name)) for f in fields(found) if f.name != "source"]
    for leak in (platform.node(), getpass.getuser(), str(Path.home()), str(Path(__file__).parent)):
        assert not re.findall(rf"(?<!\w){re.escape(leak)}(?!\w)", " ".join(told)), leak


@pytest.mark.parametrize(
    "more", [{}, {"stop": "refuted"}, {"attack": dpcore.attacks.Timing()}], ids=str
)
def test_every_kind_of_audit_says_how_it_was_made(more):
    (found,) = audit(noisy, PAIR, **SHORT | {"attack": None} | more).provenance
    assert found.origin == "function noisy"


def own(outputs, outputs_prime, pair):
    return lambda drawn: drawn > 0.5


def test_recorded_outputs_show_the_attack_of_their_user():
    sides = np.random.default_rng(1).laplace(size=(2, 100))
    for options, origin, source in (
        ({"rows": "independent", "attack": own}, "attack function own", inspect.getsource(own)),
        ({"rows": "independent", "attack": own, "source": False}, LEFT_OUT, ""),
        ({"rows": "one_run"}, "none: the outputs were drawn elsewhere", ""),
    ):
        (found,) = audit_outputs(*sides, rng=1, **options).provenance
        assert (found.origin, found.source) == (origin, source)


def test_a_merge_keeps_both_and_compares_neither():
    parts = [audit(dpcore.Laplace(1.0), start=start, **SHORT) for start in (0, 100)]
    early, late = (record_command(part, name) for part, name in zip(parts, "ab", strict=True))
    for both in (late + early, late.merge(early, looked=True)):
        assert [found.command for found in both.provenance] == ["a", "b"]
    assert early == parts[0]
    assert hash(early) == hash(parts[0])
    assert str(early) == str(parts[0])
    assert Audit.from_json((late + early).to_json()).provenance == (late + early).provenance


@pytest.mark.parametrize(("changes", "error"), [
    ({"date": 5}, TypeError),
    ({"source": None}, TypeError),
    ({"cores": 0}, ValueError),
    ({"versions": (("numpy",),)}, ValueError),
    ({"versions": (("numpy", 2),)}, ValueError),
    ({"versions": "numpy 2"}, TypeError),
])  # fmt: skip
def test_a_record_holds_words(changes, error):
    good = Provenance("2026-11-22T12:00:00Z", "function noisy", versions=(("numpy", "2.0"),))
    assert replace(good, command="dpcore audit").command
    with pytest.raises(error, match=f"^{next(iter(changes))} must be "):
        replace(good, **changes)


def test_a_file_may_hold_no_run():
    sides = np.random.default_rng(1).laplace(size=(2, 100))
    reports = [audit(noisy, PAIR, **SHORT), audit_outputs(*sides, rows="one_run", rng=1)]
    for report, kind in zip(reports, (Audit, OutputsAudit), strict=True):
        record = report.to_dict()
        record["provenance"] = []
        found = kind.from_dict(record)
        assert found.provenance == ()
        assert "This record does not tell." in found.to_html()
