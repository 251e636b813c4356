"""The driver of shards: the same audit whoever draws, in constant memory."""

from __future__ import annotations

import multiprocessing
import pickle
import platform
import subprocess
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
import shared_shards
from shared_extras import needs
from shared_shards import BLOCK, KINDS, ONE, TRIALS, add_noise, audit_kind, list_differences

import dpcore
from dpcore.sampling import driver
from dpcore.sampling.driver import Done, Source, Task, run_shards
from dpcore.sampling.sources import CallableDraws
from dpcore.sampling.workers import LostError, Processes, Workers
from dpcore.streams import COUNT


@pytest.fixture(scope="module")
def serial():
    """Each kind of audit, shard by shard in this process."""
    return {kind: audit_kind(kind, threads=1) for kind in KINDS}


DASK = pytest.param("dask", marks=pytest.mark.extras)


@pytest.fixture(params=["threads", "fork", "spawn", DASK], scope="module")
def executor(request):
    """Two workers of each kind of executor."""
    if request.param == "threads":
        with ThreadPoolExecutor(2) as pool:
            yield pool
    elif request.param == "dask":
        needs("distributed")
        from distributed import Client

        options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
        with Client(n_workers=2, **options) as client:
            yield client
    else:
        if request.param not in multiprocessing.get_all_start_methods():
            pytest.skip(f"no {request.param} here")
        context = multiprocessing.get_context(request.param)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            yield pool


@pytest.mark.parametrize("kind", KINDS)
def test_every_executor_gives_the_serial_audit(executor, serial, kind):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"This process .* is multi-threaded", DeprecationWarning)
        report = audit_kind(kind, executor=executor)
    assert list_differences(report, serial[kind]) == []


@pytest.mark.parametrize("kind", KINDS)
def test_shards_of_random_size_in_random_order_give_the_serial_audit(monkeypatch, serial, kind):
    for seed in range(3):
        rng = np.random.default_rng(seed)

        def random_size(pace, left, workers, block, travels, rng=rng):
            return int(rng.integers(1, 6)) * block

        @contextmanager
        def shuffled(*_, seed=seed):
            yield shared_shards.ShuffledWorkers(seed)

        monkeypatch.setattr(driver.Pace, "shard_trials", random_size)
        monkeypatch.setattr(driver, "open_workers", shuffled)
        assert list_differences(audit_kind(kind), serial[kind]) == []


def test_a_difference_would_be_seen(serial):
    found = list_differences(audit_kind("callable", rng=4), serial["callable"])
    assert {"counts", "digests"} <= {line.split(":")[0] for line in found}


def shards_of(blocks):
    return lambda pace, left, workers, block, travels: blocks * block


class LosingWorkers(Workers):
    """Shards are lost, as long as they have more trials than a limit."""

    def __init__(self, most):
        self.most, self.lost = most, []

    def result(self, handle):
        shard = handle.result()
        if shard.end - shard.first > self.most:
            self.lost.append((shard.first, shard.end))
            raise LostError("its worker is gone")
        return shard


def test_lost_shards_come_back_in_halves_and_count_once(monkeypatch, serial):
    losing = LosingWorkers(2 * BLOCK)

    @contextmanager
    def only_counting(*_):
        yield losing

    monkeypatch.setattr(driver.Pace, "shard_trials", shards_of(8))
    monkeypatch.setattr(driver, "open_workers", only_counting)
    assert list_differences(audit_kind("callable"), serial["callable"]) == []
    assert losing.lost


def test_a_block_lost_three_times_is_named():
    source = make_source(4 * BLOCK, BLOCK)
    with pytest.raises(RuntimeError, match=r"block 3 of \S*add_noise was lost 3 times with its"):
        list(run_shards(source, LosingWorkers(0), len_of_rows, COUNT, [(3 * BLOCK, 4 * BLOCK)]))


def len_of_rows(outputs, start):
    return len(outputs)


def make_source(trials, block):
    return Source(CallableDraws(add_noise, ONE, 1, block, (1,)), 1, trials)


def test_what_is_done_is_a_set_of_trials():
    source = make_source(TRIALS, BLOCK)
    shards = list(source.count_in_shards(audit_kind("callable").event, COUNT, [(0, TRIALS)]))
    done = Done()
    for shard in reversed(shards):
        done = done.add_shard(shard)
    assert done.ranges == ((0, TRIALS),)
    with pytest.raises(ValueError, match="disjoint"):
        done.add_shard(shards[0])
    assert Done().add_shard(shards[0]).list_unfinished(0, TRIALS) == [(shards[0].end, TRIALS)]


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
def test_the_driver_needs_constant_memory_and_linear_time():
    # In a process of its own, whose memory nothing else has used. More: benches/record_runs.py.
    code = [sys.executable, shared_shards.__file__, str(10**5)]
    printed = subprocess.run(code, capture_output=True, text=True, check=True, timeout=200).stdout
    few, many, grown = map(float, printed.split())
    assert grown < 20 * 2**20
    # Ten times the blocks; a list that is copied at every shard would take fifty times as long.
    assert many < 20 * few + 0.5


def test_a_task_travels_light():
    assert len(pickle.dumps(Task(COUNT, 0, BLOCK, 0, TRIALS))) < 300


def test_workers_that_give_other_bits_are_refused_by_host(monkeypatch):
    given = {"trials": TRIALS, "block": BLOCK, "rng": 3, "claim": 1.0, "progress": False}
    monkeypatch.setenv("DPCORE_OTHER_BITS", "1e-12")
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        refused = r"^executor must be workers that give the bits"
        with pytest.raises(ValueError, match=refused) as said:
            dpcore.audit(shared_shards.round_otherwise, ONE, executor=pool, **given)
        assert platform.node() in str(said.value)
        # The control: what all processes draw alike is taken, and so is this one on request.
        dpcore.audit(add_noise, ONE, executor=pool, **given)
        report = dpcore.audit(
            shared_shards.round_otherwise, ONE, executor=pool, same_bits=False, **given
        )
    assert any("the seed may not repeat these counts" in note for note in report.notes)


def test_a_large_mechanism_travels_once_a_worker(monkeypatch):
    sent, real = [], Processes._submit_call

    def send(self, function, work, parts, *rest):
        sent.append(sum(len(held or b"") for _, held in parts))
        return real(self, function, work, parts, *rest)

    monkeypatch.setattr(Processes, "_submit_call", send)
    monkeypatch.setattr(driver.Pace, "shard_trials", shards_of(1))
    options = {"trials": TRIALS, "block": BLOCK, "rng": 3, "claim": 1.0}
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        assert (
            dpcore.audit(shared_shards.LargeMechanism(), ONE, executor=pool, **options).trials
            == TRIALS
        )
    assert len(sent) > 30
    assert 1 <= sum(size > 2**20 for size in sent) <= 4
