"""The record of a run that was killed: every version of its file goes on to the same record.

A kill leaves the file that was on disk. Here each version is copied as it is written, and the run
goes on from each of them. DPCORE_VERSIONS=200 continues 200 versions of each way to run.
"""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from multiprocessing import get_context

import pytest
from shared_extras import needs
from shared_resumed import cut_after
from shared_shards import BLOCK, ONE, ShuffledWorkers, add_noise, list_differences

import dpcore
from dpcore.auditing import early_stop, run_files
from dpcore.runs import begin_run, count_part, merge_parts
from dpcore.sampling import driver, sources
from dpcore.streams import COUNT

VERSIONS = int(os.environ.get("DPCORE_VERSIONS", "20"))
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


def start_threads():
    return ThreadPoolExecutor(3)


def is_above_half(outputs):
    return outputs[:, 0] > 0.5


def choose_own_event(outputs, outputs_prime, pair):
    """Choose an event that JSON cannot hold: the pilot is drawn again."""
    return is_above_half


WAYS = {
    "serial": (nullcontext, {}),
    "shuffled": (nullcontext, {}),
    "threads": (start_threads, {}),
    "pool": (start_pool, {}),
    "Dask": (start_dask, {}),
    "part": (start_threads, {}),
    "own event": (start_threads, {"attack": choose_own_event}),
    "early stop": (start_threads, {"stop": "refuted"}),
    # Threads draw slices ahead, which are not counted.
    "refuted": (start_threads, {"stop": "refuted", "claim": 0.7, "trials": 400 * BLOCK}),
}
"""Workers of each way to run, and what is audited otherwise."""


@contextmanager
def shuffle_workers(*_):
    yield ShuffledWorkers(5)


@pytest.fixture
def each_block(monkeypatch):
    """Make shards of one block, and write the file after each of them."""
    monkeypatch.setattr(driver.Pace, "shard_trials", lambda *values: values[3])
    monkeypatch.setattr(run_files, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(run_files.os, "fsync", lambda handle: None)
    # Slices that early stop does not draw again when it goes on.
    monkeypatch.setattr(early_stop, "_MAX_HISTORY_ELEMENTS", 5 * BLOCK)


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


def count(way, path, executor):
    """Count a run with a file, or a part of one."""
    about = {**ABOUT, **WAYS[way][1], "executor": executor}
    if way != "part":
        return dpcore.audit(add_noise, ONE, checkpoint=path, **about)
    run = path.with_name("begun.json")
    if not run.exists():
        begin_run(run, add_noise, ONE, **ABOUT)
    count_part(run, add_noise, ONE, part=(2, 3), out=path, **about)
    return merge_parts([path], partial=True)


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=pytest.mark.extras) if way == "Dask" else way for way in WAYS]
)
def test_every_version_that_was_on_disk_goes_on_to_one_record(monkeypatch, tmp_path, versions, way):
    whole = count(way, tmp_path / "whole.json", None)
    if way == "shuffled":
        monkeypatch.setattr(driver, "open_workers", shuffle_workers)
    runs = tried = 0
    with WAYS[way][0]() as executor:
        while tried < VERSIONS:
            versions.clear()
            runs += 1
            report = count(way, tmp_path / f"run-{runs}.json", executor)
            assert list_differences(report, whole) == []
            for text in versions[: VERSIONS - tried]:
                tried += 1
                path = tmp_path / f"version-{tried}.json"
                path.write_bytes(text)
                assert list_differences(count(way, path, executor), whole) == [], tried


@pytest.mark.parametrize("way", ["threads", "part", "own event", "early stop"])
def test_a_block_from_before_the_kill_that_is_repeated_is_refused(
    monkeypatch, tmp_path, each_block, way
):
    path, original = tmp_path / "run-1.json", sources.make_generator
    with cut_after(4), pytest.raises(KeyboardInterrupt):
        count(way, path, None)
    first = min(number for _, _, number in json.loads(path.read_text())["digests"])

    def repeat_first(seed, purpose, side, number, *more):
        repeats = purpose == COUNT and number >= 14
        return original(seed, purpose, side, first if repeats else number, *more)

    monkeypatch.setattr(sources, "make_generator", repeat_first)
    text = f"equal outputs for count block {first} on x.* and count block 14 on x"
    with pytest.raises(ValueError, match=text):
        count(way, path, None)
