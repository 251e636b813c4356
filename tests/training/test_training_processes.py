"""Processes for many trainings: one thread each, prepared once, the same counts."""

from __future__ import annotations

import os

import numpy as np

import dpcore
from dpcore import training
from dpcore.experiments.dpsgd_audit import Recipe

PREPARED = []


def prepare():
    PREPARED.append(os.getpid())


def count_prepared(_):
    from threadpoolctl import threadpool_info

    return len(PREPARED), max((one["num_threads"] for one in threadpool_info()), default=1)


def test_each_process_is_prepared_once_and_has_one_thread():
    PREPARED.clear()
    with training.make_pool(1, prepare) as pool:
        assert list(pool.map(count_prepared, range(3))) == [(1, 1)] * 3
    # An audit tries the mechanism here.
    assert [os.getpid()] == PREPARED


def test_trainings_in_processes_count_what_one_process_counts():
    rows = np.column_stack([np.full((4, 2), 3.0), [0, 0, 1, 1]])
    train = dpcore.repeat(Recipe(1.0, steps=2).train, seeded="rng")
    options = {"claim": 1.0, "delta": 0.1, "trials": 60, "pilot": 40, "block": 20, "rng": 1}
    here = dpcore.audit(train, (rows, rows[1:]), **options)
    with training.make_pool(2) as pool:
        there = dpcore.audit(train, (rows, rows[1:]), executor=pool, **options)
    assert there.counts == here.counts
