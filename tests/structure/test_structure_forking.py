"""Noise that a forked child repeats."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest
from shared_messages import check_messages

import dpcore
from dpcore.structure import FAULTS, fork_reuse
from dpcore.structure.faults import OwnGenerator

ALPHA = 1e-3
"""Rate of false alarms at which sound mechanisms are looked at."""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")

X = np.array([0.0, 1.0])


@pytest.fixture(autouse=True)
def forked(monkeypatch):
    """The children made; none may be left running or not reaped, nor a pipe open."""
    made, fork, opened = [], os.fork, len(os.listdir("/dev/fd"))

    def recorded():
        made.append(fork())
        return made[-1]

    monkeypatch.setattr(os, "fork", recorded)
    yield made
    for child in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(child, os.WNOHANG)
    assert len(os.listdir("/dev/fd")) == opened


def given(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def test_a_generator_of_a_module_is_flagged_and_its_twin_passes(forked):
    fault = next(fault for fault in FAULTS if fault.flagged_by == ("fork",))
    found = fork_reuse(fault.mechanism, fault.x, rng=1)
    assert (len(forked), found.name, found.flagged) == (2, "fork", True)
    assert found.what == "the noise is repeated: parent and child 1 share 256 of 256 rows"
    twin = fork_reuse(fault.repaired, fault.x, rng=1)
    assert (twin.flagged, twin.p_value) == (False, 1.0)


def test_mechanisms_that_draw_from_what_they_are_given_pass():
    for seed in range(20):
        for mechanism in (given, dpcore.Laplace(1.0), dpcore.RandomBits()):
            found = fork_reuse(mechanism, [0.5], rng=seed, draws=64, false_alarm=ALPHA)
            assert not found.flagged, str(found)


def test_global_generators_are_copied_by_a_fork():
    def of_numpy(x, size, rng):
        return x + np.random.laplace(size=(size, len(x)))  # noqa: NPY002

    own = random.Random(1)

    def of_python(x, size, rng):
        return np.array([[own.gauss(0.0, 1.0)] for _ in range(size)])

    once = dpcore.repeat(lambda x: np.random.normal(), seeded="global")  # noqa: NPY002
    for mechanism in (of_numpy, of_python, once):
        assert fork_reuse(mechanism, X, rng=1, draws=32).flagged
    # The control: Python seeds its own global generator anew in a child.
    python = dpcore.repeat(lambda x: random.gauss(0.0, 1.0), seeded="global")
    assert not fork_reuse(python, X, rng=1, draws=32).flagged


def test_a_generator_that_is_made_on_first_use_is_flagged_and_one_that_knows_of_forks_passes():
    made = []

    def lazy(x, size, rng):
        if not made:
            made.append(np.random.default_rng())
        return x + made[0].laplace(size=(size, len(x)))

    assert fork_reuse(lazy, X, rng=1).flagged
    own = OwnGenerator()
    process = [os.getpid()]

    def careful(x, size, rng):
        if process[0] != os.getpid():
            process[0], own.generator = os.getpid(), np.random.default_rng()
        return own(x, size, rng)

    assert not fork_reuse(careful, X, rng=1).flagged


def test_two_children_alike_are_flagged_though_the_parent_is_not():
    parent = os.getpid()

    def siblings(x, size, rng):
        own = rng if os.getpid() == parent else np.random.default_rng(7)
        return x + own.laplace(size=(size, len(x)))

    found = fork_reuse(siblings, X, rng=1)
    assert found.flagged
    assert "child 1 and child 2 share 256 of 256 rows" in found.what
    # The control: with one child there is no sibling.
    assert not fork_reuse(siblings, X, rng=1, children=1).flagged


def test_a_few_common_values_are_no_reuse():
    def discrete(x, size, rng):
        return np.round(x) + rng.geometric(0.9, size=(size, len(x)))

    for seed in range(20):
        assert not fork_reuse(discrete, X, rng=seed, draws=16, false_alarm=ALPHA).flagged


def test_without_noise_nothing_is_compared():
    found = fork_reuse(dpcore.Identity(), X, rng=1)
    assert (found.flagged, found.p_value) == (False, None)
    assert "do not vary" in found.what


def test_what_goes_wrong_in_a_child_is_reported():
    parent = os.getpid()

    def throw(error):
        raise error

    # A child that hangs is killed.
    for fate, options, text in (
        (lambda: throw(ValueError("no luck")), {}, "in child [0-9]+: ValueError: no luck"),
        (lambda: throw(SystemExit(0)), {}, "raised in child [0-9]+: SystemExit"),
        (lambda: os.kill(os.getpid(), signal.SIGKILL), {}, "died before it had answered"),
        (lambda: time.sleep(60), {"timeout": 0.2}, r"must answer within 0\.2 s"),
    ):

        def mechanism(x, size, rng, fate=fate):
            if os.getpid() != parent:
                fate()
            return given(x, size, rng)

        with pytest.raises(RuntimeError, match=text):
            fork_reuse(mechanism, X, rng=1, **options)


def test_an_exception_in_the_parent_passes_and_leaves_no_child():
    parent, calls = os.getpid(), []

    def second(x, size, rng):
        calls.append(size)
        if os.getpid() == parent and len(calls) == 2:
            raise KeyboardInterrupt
        return given(x, size, rng)

    with pytest.raises(KeyboardInterrupt):
        fork_reuse(second, X, rng=1)


def test_answers_larger_than_a_pipe_arrive():
    assert fork_reuse(OwnGenerator(), np.zeros(2000), rng=1, draws=64).flagged


def test_other_threads_bring_no_warning():
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert fork_reuse(OwnGenerator(), X, rng=1).flagged
    finally:
        stop.set()
        thread.join()


def test_the_input_of_the_default_pair():
    seen = []

    class Claiming:
        def default_pair(self):
            return dpcore.Pair([3.0, 4.0], [0.0, 0.0])

        def __call__(self, x, size, rng):
            seen.append(tuple(x))
            return given(x, size, rng)

    assert not fork_reuse(Claiming(), rng=1).flagged
    assert set(seen) == {(3.0, 4.0)}
    assert not fork_reuse(given, rng=1).flagged


def test_a_system_without_forks(monkeypatch):
    monkeypatch.delattr(os, "fork")
    with pytest.raises(NotImplementedError, match=r"needs os\.fork"):
        fork_reuse(given, X)


VALUE_ERRORS = [
    (lambda: fork_reuse(mechanism=given, x=X, rng=1, draws=15), "draws", "an integer at least 16"),
    (lambda: fork_reuse(mechanism=given, x=X, rng=1, children=0), "children", "an integer"),
    (lambda: fork_reuse(mechanism=given, x=X, rng=1, timeout=0), "timeout", "a finite"),
    (lambda: fork_reuse(mechanism=given, x=X, rng=1, timeout=1e301), "timeout", "a finite"),
    (lambda: fork_reuse(mechanism=lambda x, n, rng: np.zeros((n, 0)), x=X, rng=1),
     "", "at least one number"),
    (lambda: fork_reuse(mechanism=given, x=X, rng=1, false_alarm=1.0), "false_alarm", "a finite"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: fork_reuse(mechanism=given, x="text", rng=1), "x", "an array of finite numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
