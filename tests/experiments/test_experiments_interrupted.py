"""Experiments that Ctrl-C or SIGTERM ends keep what is done."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from dpcore.experiments import drawing, get, habernal2022_figure2, reproduce, running


def run(name, **fields):
    module = get(name)
    return module.run(module.Config(**fields))


@pytest.mark.parametrize("name", ["published-systems", "habernal2022-figure1"])
@pytest.mark.parametrize("how", ["raises", "partial"])
def test_interrupt_keeps_what_is_done(name, how, monkeypatch, tmp_path):
    calls = []
    real = running.audit

    def interrupted(*args, **kwargs):
        calls.append(args)
        if len(calls) == 4 and how == "raises":
            raise KeyboardInterrupt
        report = real(*args, **kwargs)
        if len(calls) == 4:
            report = replace(report, partial=True, stop="interrupted", bound="anytime")
        return report

    monkeypatch.setattr(running, "audit", interrupted)
    result = reproduce(name, tmp_path, trials=1000, seed=1)
    assert len(calls) == 4
    done = result.rows if name == "published-systems" else result.cells
    assert len(done) == (3 if how == "raises" else 4)
    assert result.partial
    assert "INTERRUPTED" in result.table()
    assert json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))["partial"] is True
    assert (tmp_path / f"{name}.png").exists()


def test_interrupted_histograms(monkeypatch, tmp_path):
    real = habernal2022_figure2.sample
    left = [2]

    def interrupted(*args, **kwargs):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(*args, **kwargs)

    monkeypatch.setattr(habernal2022_figure2, "sample", interrupted)
    result = reproduce("habernal2022-figure2", tmp_path, trials=1000)
    assert len(result.histograms) == 2
    assert result.partial
    assert "INTERRUPTED" in result.table()
    # Before the first one is done there is nothing to keep.
    with pytest.raises(KeyboardInterrupt):
        run("habernal2022-figure2", trials=1000)


def test_interrupt_before_anything_is_done(monkeypatch):
    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(running, "audit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run("published-systems", trials=1000)


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
    assert child.returncode == 130
    assert "INTERRUPTED" in shown
    found = json.loads((tmp_path / "published-systems.json").read_text(encoding="utf-8"))
    assert found["partial"] is True
    assert found["rows"]
    assert (tmp_path / "published-systems.png").exists()


def test_sigterm_is_handled_in_the_main_thread_and_only_where_nobody_else_does(
    monkeypatch, tmp_path
):
    result, seen = run("habernal2022-figure2", trials=1000), []

    def look(*args, **kwargs):
        seen.append(signal.getsignal(signal.SIGTERM))
        return result

    def handlers():
        seen.clear()
        reproduce("habernal2022-figure2", tmp_path)
        return list(seen)

    def own(number, frame):
        """Do nothing."""

    monkeypatch.setattr(habernal2022_figure2, "run", look)
    monkeypatch.setattr(drawing, "save_png_and_svg", look)
    before, found = signal.getsignal(signal.SIGTERM), []
    assert before is signal.SIG_DFL
    # While it runs, and while files are written.
    assert handlers() == [signal.default_int_handler, signal.SIG_IGN]
    assert signal.getsignal(signal.SIGTERM) is before
    thread = threading.Thread(target=lambda: found.extend(handlers()))
    thread.start()
    thread.join()
    assert found == [before, before]
    try:
        signal.signal(signal.SIGTERM, own)
        assert handlers() == [own, own]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_sigterm_before_anything_is_done_is_an_interrupt(monkeypatch, tmp_path):
    if sys.platform == "win32":
        pytest.skip("there os.kill ends a process at once")

    def terminated(*args, **kwargs):
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr(running, "audit", terminated)
    with pytest.raises(KeyboardInterrupt):
        reproduce("published-systems", tmp_path, trials=1000)
    assert list(tmp_path.iterdir()) == []
