"""The record of a run that was killed: every version of its file goes on to the same record.

A kill leaves the file that was on disk. Here each version is copied as it is written, and the run
goes on from each of them. DPCORE_VERSIONS=200 continues 200 versions of each way to run.
"""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context

import numpy as np
import pytest
from shared_extras import needs
from shared_shards import BLOCK, ONE, ShuffledWorkers, add_noise, list_differences

import dpcore
from dpcore.auditing import run_files
from dpcore.auditing.run_files import read_run
from dpcore.runs import begin_run, count_part, merge_parts
from dpcore.sampling import driver, replay
from dpcore.sampling.driver import Shard

VERSIONS = int(os.environ.get("DPCORE_VERSIONS", "4"))
"""Versions of each way to run that are continued."""

ABOUT = {
    "attack": dpcore.attacks.Threshold(), "trials": 24 * BLOCK - 50, "block": BLOCK, "rng": 3,
    "claim": 9.0, "pilot": 600, "progress": False,
}  # fmt: skip


@contextmanager
def start_dask():
    needs("distributed")
    from distributed import Client

    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with Client(n_workers=2, **options) as client:
        yield client


def start_pool():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


DASK = pytest.param("dask", marks=pytest.mark.extras)
EXECUTORS = {
    "serial": nullcontext, "shuffled": nullcontext, "pool": start_pool, "dask": start_dask,
    "threads": lambda: ThreadPoolExecutor(3), "early stop": lambda: ThreadPoolExecutor(3),
    "part": lambda: ThreadPoolExecutor(3),
}  # fmt: skip
"""Workers of each way to run."""


@contextmanager
def shuffle_workers(*_):
    yield ShuffledWorkers(5)


@pytest.fixture
def each_block(monkeypatch):
    """Make shards of one block, and write the file after each of them."""
    monkeypatch.setattr(driver.Pace, "shard_trials", lambda *values: values[3])
    monkeypatch.setattr(run_files, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(run_files.os, "fsync", lambda handle: None)


@pytest.fixture
def versions(monkeypatch, each_block):
    """List the versions of run files, as they are written."""
    texts, write = [], run_files.RunFile.write

    def write_and_copy(run, always=False):
        write(run, always)
        if run.path.name.startswith("run-"):
            texts.append(run.path.read_bytes())

    monkeypatch.setattr(run_files.RunFile, "write", write_and_copy)
    return texts


def count(way, path, executor, **options):
    """Count a run with a file, or a part of one."""
    about = {**ABOUT, "executor": executor, **options}
    if way != "part":
        stop = "refuted" if way == "early stop" else "fixed"
        return dpcore.audit(add_noise, ONE, stop=stop, checkpoint=path, **about)
    run = path.with_name("run.json")
    if not run.exists():
        begin_run(run, add_noise, ONE, **ABOUT)
    count_part(run, add_noise, ONE, part=(2, 3), out=path, **about)
    return merge_parts([path], partial=True)


@pytest.mark.parametrize(
    "way", ["serial", "shuffled", "pool", "threads", DASK, "early stop", "part"]
)
def test_every_version_that_was_on_disk_goes_on_to_one_record(
    monkeypatch, tmp_path, versions, way
):
    whole = count("serial" if way == "shuffled" else way, tmp_path / "whole.json", None)
    if way == "shuffled":
        monkeypatch.setattr(driver, "workers_of", shuffle_workers)
    tried = 0
    while tried < VERSIONS:
        versions.clear()
        with EXECUTORS[way]() as executor:
            report = count(way, tmp_path / f"run-{tried}.json", executor)
            assert list_differences(report, whole) == []
            # Of many versions, those from the whole run.
            kept = versions[1 :: max(1, (len(versions) - 1) // (VERSIONS - tried))]
            for text in kept[: VERSIONS - tried]:
                path = tmp_path / f"version-{tried}.json"
                path.write_bytes(text)
                assert list_differences(count(way, path, executor), whole) == [], tried
                tried += 1
