"""Experiments that go on from run files: the same result, and no audit is counted twice."""

from __future__ import annotations

import pytest
from shared_experiments import interrupt_at

from dpcore.cli.app import main
from dpcore.experiments import get, reproduce, running

CONFIGS = {
    "published-systems": {"trials": 500, "dims": (2,)},
    "habernal2022-figure1": {"trials": 500, "dims": (2,), "epsilons": (1.0,)},
    "dp-sniper-table": {"trials": 500, "repeats": 1, "mechanisms": ("RAPPOR",)},
    "floating-point": {"trials": 500, "systems": ("dpcore.Laplace",)},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_an_experiment_that_was_cut_off_goes_on(name, tmp_path, monkeypatch):
    module = get(name)
    config = module.Config(**CONFIGS[name])
    whole = module.run(config, threads=1, progress=False)
    interrupt_at(monkeypatch, running, "audit", 2)
    with running.set_audit_executor(None, tmp_path):
        module.run(config, threads=1, progress=False)
    monkeypatch.undo()
    counted = []
    with running.set_audit_executor(None, tmp_path):
        result = module.run(config, threads=1, progress=False)
        monkeypatch.setattr(
            "dpcore.auditing.run_files.RunFile.save_counts", lambda *given: counted.append(given)
        )
        again = module.run(config, threads=1, progress=False)
    assert counted == []
    assert list(tmp_path.glob("*.json"))
    if name == "dp-sniper-table":  # its rows hold the time of each audit
        whole, result, again = ([row.audits for row in one.rows] for one in (whole, result, again))
    assert result == again == whole


def test_other_experiments_refuse_the_option(tmp_path, capsys):
    with pytest.raises(ValueError, match=r"^resume must be left out for sensitivity-table"):
        reproduce("sensitivity-table", tmp_path, quick=True, resume=tmp_path)
    words = ["reproduce", "sensitivity-table", "--quick", "--resume", str(tmp_path)]
    assert main(words) == 2
    assert "--resume is for published-systems" in capsys.readouterr().err
