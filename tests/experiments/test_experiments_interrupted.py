"""Experiments that Ctrl-C or SIGTERM ends keep what is done."""

import functools
import json
import signal
import subprocess
import sys
from dataclasses import replace

import pytest
from shared_experiments import get_possible, interrupt_at, mark_needs

from dpcore import _core
from dpcore.experiments import drawing, get, habernal2022_figure2, reproduce, running


def run(name, **fields):
    module = get(name)
    return module.run(module.Config(**fields))


def test_an_audit_that_ended_early_is_kept_and_nothing_follows(monkeypatch):
    calls, real = [], running.audit

    def end_early(*args, **kwargs):
        calls.append(args)
        early = {"partial": True, "stop": "interrupted", "bound": "anytime"}
        return replace(real(*args, **kwargs), **early if len(calls) == 4 else {})

    monkeypatch.setattr(running, "audit", end_early)
    result = run("published-systems", trials=1000, seed=1)
    assert (len(calls), len(result.rows), result.partial) == (4, 4, True)
    assert "INTERRUPTED" in result.table()


SMALL_ENCODER = {
    "trials": 20_000, "texts": 600, "epochs": 2, "claims": (0.1, 10.0), "starts": (10.0,),
    "noises": ("repaired",),
}  # fmt: skip

INTERRUPTED = [
    ("published-systems", {"trials": 1000}, (running, "audit"), 4, "rows"),
    ("habernal2022-figure1", {"trials": 1000}, (running, "audit"), 4, "cells"),
    ("habernal2022-figure2", {"trials": 1000}, "sample", 3, "histograms"),
    ("floating-point", {"trials": 5000}, "audit_cell", 3, "rows"),
    ("sensitivity-table", {"trials": 1000}, "refute", 4, "rows"),
    ("renyi-of-mechanisms", {"trials": 200}, "_estimate_renyi_of_mechanism", 2, "rows"),
    ("habernal2021-figure1", {"trials": 9, "dims": (2, 3, 4)}, (_core, "pairs_beyond"), 9, "dims"),
    ("divergence-accuracy", {"repetitions": 3, "rows": 150, "cases": ("n1-half", "cauchy"),
     "certified": 0}, "estimate_divergences", 20,
     lambda found: len({cell.case for cell in found.cells})),
    ("renyi-vs-alpha", {"quick": True, "trials": 100}, "_divergence_and_null_curves", 3, "methods"),
    ("redaction-names", {"quick": True, "trials": 300}, "_infer_target_from_words_and_counts", 3,
     lambda found: len(found.cells) // 2),
    ("word-dp-attack", {"quick": True, "trials": 100}, "_measure_split", 3, "cells"),
    ("word2vec-leakage", {"trials": 1000}, "experiment.leakage.train_word2vec", 5,
     lambda found: len({cell.start for cell in found.cells})),
    ("dptext-encoder", SMALL_ENCODER, "measure_trained_system", 2, "rows"),
    ("dpnr-robust-adaptive", {"quick": True, "trials": 2000, "seeds": 1},
     "study.Bench.train_and_test", 3, "models"),
    ("encoder-frontier", {"quick": True, "trials": 200}, "_test_release", 3,
     lambda found: len({line for line, _ in found.keys})),
]  # fmt: skip
"""Experiment, its configuration, what is interrupted, at which call, and what is then counted:
a field of the result, or a function."""

KEPT = {"word2vec-leakage": 1, "habernal2021-figure1": 1, "divergence-accuracy": 1}
"""Results that are kept, where they are not one less than the calls."""


@pytest.mark.parametrize(
    ("name", "fields", "place", "call", "count"),
    [mark_needs(*row, slow=row[0] == "encoder-frontier") for row in INTERRUPTED],
)
def test_ctrl_c_keeps_what_is_done(name, fields, place, call, count, monkeypatch):
    module = get_possible(name)
    if isinstance(place, str):
        *path, last = place.split(".")
        place = functools.reduce(getattr, path, module), last
    interrupt_at(monkeypatch, *place, call)
    result = module.run(module.Config(**fields), threads=1, progress=False)
    assert (result.partial, result.to_dict()["partial"]) == (True, True)
    kept = count(result) if callable(count) else len(getattr(result, count))
    assert kept == KEPT.get(name, call - 1)
    assert "INTERRUPTED" in result.table()
    assert result.plot().axes
    # Before the first one is done there is nothing to keep.
    with pytest.raises(KeyboardInterrupt):
        module.run(module.Config(**fields), threads=1, progress=False)


CODE = """
import sys
from dpcore.cli.app import main
from dpcore.experiments import running
audit = running.audit
def announced(*args, **given):
    report = audit(*args, **given)
    print("one is done", flush=True)
    return report
running.audit = announced
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there terminate() ends a process at once")
def test_sigterm_keeps_what_is_done(tmp_path):
    words = ["reproduce", "published-systems", "--out", str(tmp_path), "--trials", "2e7"]
    command = [sys.executable, "-c", CODE, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        # The second may not be kept yet when the signal comes; the first is.
        assert [child.stdout.readline() for _ in range(2)] == 2 * ["one is done\n"]
        child.send_signal(signal.SIGTERM)
        shown, _ = child.communicate(timeout=120)
    assert child.returncode == 143
    assert "INTERRUPTED" in shown
    found = json.loads((tmp_path / "published-systems.json").read_text(encoding="utf-8"))
    assert found["partial"] is True
    assert found["rows"]
    assert (tmp_path / "published-systems.png").exists()


def test_the_library_handles_no_signals(monkeypatch, tmp_path):
    result, handlers = run("habernal2022-figure2", trials=1000), []

    def note_handlers(*args, **kwargs):
        handlers.append([signal.getsignal(number) for number in signals])
        return result

    signals = (signal.SIGTERM, signal.SIGINT)
    monkeypatch.setattr(habernal2022_figure2, "run", note_handlers)
    monkeypatch.setattr(drawing, "save_png_and_svg", note_handlers)
    before = [signal.getsignal(number) for number in signals]
    reproduce("habernal2022-figure2", tmp_path)
    assert handlers == [before, before]
