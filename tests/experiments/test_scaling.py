"""Scaling: the efficiency of the driver on simulated clusters, and what the table says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dpcore import Counts
from dpcore.experiments.scaling import Config, MeasuredAudit, Result, simulate_cluster
from dpcore.sampling import driver


@pytest.mark.parametrize(
    ("trials", "workers", "wanted"), [(10**9, 64, 0.9), (10**11, 1024, 0.7), (10**13, 1024, 0.95)]
)
def test_the_driver_keeps_the_workers_busy(trials, workers, wanted):
    [found] = simulate_cluster(Config(), trials, workers, False)
    assert wanted < found.efficiency <= 1.0
    assert found.lost == 0


def test_slow_workers_and_lost_shards_cost_little():
    [found] = simulate_cluster(Config(), 10**11, 256, True)
    assert found.lost > 0
    assert 0.9 < found.efficiency < 1.0
    # Nothing of a simulation depends on the time that this process takes.
    assert simulate_cluster(Config(), 10**11, 256, True) == (found,)


def test_short_shards_would_leave_workers_idle(monkeypatch):
    # Negative control: a block a shard, as before there was a driver.
    monkeypatch.setattr(
        driver.Pace, "shard_trials", lambda pace, left, workers, block, travels: block
    )
    [found] = simulate_cluster(Config(), 10**9, 64, False)
    assert found.efficiency < 0.3


def test_shards_in_this_process_stay_short():
    pace = driver.Pace(seconds=1e-6, longest=10**7)
    assert pace.shard_trials(10**12, 1, 1000, travels=False) == 500_000
    assert pace.shard_trials(10**12, 1000, 1000, travels=True) == 30_000_000
    # The last ones are short, but the driver keeps up with them.
    assert pace.shard_trials(10**8, 1000, 1000, travels=True) == 1_000_000
    assert pace.shard_trials(10**6, 4, 1000, travels=True) == 250_000


def test_the_table_says_that_dask_is_missing_and_that_counts_differ():
    config = Config(quick=True)
    one = MeasuredAudit("this process", 1, 20_000, Counts(5, 20_000, 7, 20_000), False, 0.01)
    other = replace(one, place="processes", workers=2, seconds=0.005)
    whole = Result(config, (one, other), (), True)
    assert "the same counts everywhere" in whole.table()
    assert whole.efficiency(other) == 1.0
    assert (
        "Dask is not installed: pip install 'dpcore[dask]'"
        in replace(whole, has_dask=False).table()
    )
    wrong = replace(other, counts=Counts(5, 20_000, 8, 20_000))
    assert "COUNTS DIFFER" in replace(whole, measured=(one, wrong)).table()
