"""Experiments that Ctrl-C ends keep what is done."""

import json
from dataclasses import replace

import pytest

from dpcore.experiments import get, habernal2022_figure2, reproduce, running


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
    real = habernal2022_figure2.experiment.sample
    left = [2]

    def interrupted(*args, **kwargs):
        if not left[0]:
            raise KeyboardInterrupt
        left[0] -= 1
        return real(*args, **kwargs)

    monkeypatch.setattr(habernal2022_figure2.experiment, "sample", interrupted)
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
