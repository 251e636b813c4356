"""What a long audit says while it runs and after: its steps and draws, and what is to come."""

from __future__ import annotations

import io
import itertools
import sys
import threading
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import dpcore
from dpcore import Audit, audit, progress
from dpcore.attacks import MajorityVote, Threshold, Timing
from dpcore.auditing import run
from dpcore.auditing.forecast import Forecast
from dpcore.pairs import L1, Box, explore, search
from dpcore.sampling.sources import TimeLog

PAIR = ([0.0], [1.0])
STEPS = ["probe", "fit", "count", "report"]
PLAN = search(Box(0, 1, 2), L1(1.0), rounds=3, budget=2400, candidates=8)


class Counting:
    """A mechanism that counts its outputs."""

    def __init__(self):
        self.outputs = 0

    def __call__(self, x, size, rng):
        self.outputs += size
        return x + rng.laplace(size=(size, len(x)))


@pytest.mark.parametrize(("options", "steps"), [
    ({"attack": "auto"}, STEPS),
    ({"attack": MajorityVote()}, STEPS),
    ({"block": 300, "floats": True, "threads": 2}, STEPS),
    ({"stop": "refuted", "claim": 0.2}, STEPS),
    ({"pair": [dpcore.Pair([0.0, 0.0], [0.0, y]) for y in (0.5, 1.0)]}, ["search", *STEPS]),
    ({"pair": PLAN}, ["search", *STEPS]),
], ids=["auto", "vote", "blocks", "early", "pairs", "search"])  # fmt: skip
def test_every_output_is_in_the_record(options, steps):
    mechanism = Counting()
    options = {"attack": Threshold(), "pair": PAIR, "trials": 2000, "claim": 1.0} | options
    found = audit(mechanism, rng=1, **options)
    assert sorted(one.step for one in found.spent) == sorted(steps)
    assert sum(one.outputs for one in found.spent) == mechanism.outputs
    assert all(one.seconds >= 0.0 for one in found.spent)
    count = next(one for one in found.spent if one.step == "count")
    assert (count.seconds, count.outputs) == (found.seconds, 2 * found.trials)
    # On the printed line, on the page and in the file; not in what is compared.
    assert f"{mechanism.outputs:,} outputs in all" in str(found).splitlines()[-1]
    assert f"{mechanism.outputs:,} outputs in all" in found.to_html()
    again = Audit.from_json(found.to_json())
    assert (again.spent, again.searched) == (found.spent, found.searched)
    assert replace(found, spent=(), searched=None) == found


def test_native_draws_are_counted_and_merged():
    options = {"trials": 4000, "attack": MajorityVote(), "claim": 1.0, "rng": 1}
    first = audit(dpcore.Laplace(1.0), **options)
    both = first + audit(dpcore.Laplace(1.0), start=4000, **options)
    made = {one.step: one.outputs for one in first.spent}
    assert made == {"probe": 0, "fit": 2 * first.pilot, "count": 8000, "report": 0}
    assert [(one.step, one.outputs) for one in both.spent] == [(s, 2 * n) for s, n in made.items()]
    constant = lambda x, size, rng: np.full(size, x[0])  # noqa: E731
    timed = audit(constant, PAIR, attack=Timing(), trials=200, rng=1)
    assert sum(one.outputs for one in timed.spent) == 400 + timed.pilot


# The time of a search.


def test_a_search_ends_in_time_and_by_whole_pilots():
    timed = replace(PLAN, seconds=10.0)
    sizes = []

    def course(ticks):
        sizes.clear()
        clock = itertools.accumulate(ticks, initial=0.0)

        def merit(pair, size):
            sizes.append(size)
            return float(pair.x.max())

        return explore(timed, merit, np.random.default_rng(1), clock.__next__)

    # Pilots of 1 s each: the eleventh would end too late.
    pair, found = course(itertools.repeat(1.0))
    assert (found.evaluations, found.finished, found.rounds, found.ended) == (10, 1, 3, True)
    assert sizes == [100] * 10
    # The same number of pilots, the same pair; a first pilot that takes too long is finished.
    assert course(itertools.repeat(1.0))[0] == pair
    assert course(itertools.repeat(99.0))[1].evaluations == 1
    # With time enough it is the search without a limit.
    pair, found = explore(PLAN, lambda p, size: float(p.x.max()), np.random.default_rng(1))
    assert course(itertools.repeat(0.0)) == (pair, replace(found, seconds=10.0))


def test_the_pair_found_repeats_the_audit_and_goes_on_without_a_search():
    options = {"trials": 2000, "claim": 1.0, "rng": 1, "block": 1000, "attack": Threshold()}
    found = audit(Counting(), replace(PLAN, seconds=1e-9), **options)
    assert "1 pilot compared, 0 of 3 rounds finished: its 1e-09 s were over" in str(found)
    options |= {"pair": found.pair, "neighbour": PLAN.neighbour}
    again = audit(found.mechanism, **options)
    assert (again, again.searched) == (found, None)
    both = found + audit(found.mechanism, start=2000, **options)
    assert (both.trials, both.searched) == (4000, found.searched)


# Threads.


def test_eight_threads_share_200_calls_and_change_no_count():
    here, together = set(), threading.Barrier(8)

    def noisy(x, rng):
        me = threading.get_ident()
        if me != threading.main_thread().ident and len(here) < 8 and me not in here:
            here.add(me)
            # All eight are at work at once, or this breaks.
            together.wait(20.0)
        return x[0] + rng.laplace()

    options = {"trials": 200, "pilot": 256, "claim": 1.0, "rng": 1, "attack": MajorityVote()}
    mechanism = dpcore.repeat(noisy, thread_safe=True)
    found = audit(mechanism, PAIR, threads=8, **options)
    assert len(here) == 8
    assert (found, found.block) == (audit(mechanism, PAIR, threads=1, **options), 16)
    first = audit(mechanism, PAIR, **options | {"trials": 96})
    rest = audit(mechanism, PAIR, **options | {"trials": 104, "start": 96})
    assert first.counts + rest.counts == found.counts
    assert audit(dpcore.repeat(noisy), PAIR, **options).block == 4096
    # Early looks have blocks for all threads too.
    options |= {"trials": 300, "attack": Threshold(), "claim": 30.0, "stop": "refuted"}
    assert [one.counts.n for one in audit(mechanism, PAIR, **options).slices] == [256, 44]


def test_fewer_blocks_than_threads_are_told():
    options = {"trials": 200, "claim": 1.0, "rng": 1, "threads": 4}
    idle, busy = (audit(Counting(), PAIR, **options, **more) for more in ({}, {"block": 50}))
    assert str(idle).endswith("on 4 threads, of which 1 had work: block=50")
    assert str(busy).endswith("on 4 threads")
    assert idle.notes == busy.notes


# The forecast.

SLOW = Forecast(
    fixed=0.0, each=0.05, calls=3, search=lambda trials: (), limit=None,
    pilot=lambda trials: min(256, trials), trials=10**6, early=False,
    most=lambda trials: float(np.log(trials / 3.7)), claim=6.0, threads=1, block=4096,
    calls_of=lambda rows: 1, one_by_one=True, shared=False,
)  # fmt: skip


def test_the_forecast_names_calls_time_and_ways_out():
    text = str(SLOW)
    assert "about 0.05 s, and there are 2 x 256 pilots, 2 x 1,000,000 to count: 28 h" in text
    assert "trials=1000 takes about 2.1 min and certifies an epsilon of 5.60 at most" in text
    assert "too few for a claim of 6 (1,000,000 trials: 12.51)" in text
    assert "thread_safe=True) and threads=8" in text
    assert "(x, size, rng) draws many outputs" in text
    assert str(replace(SLOW, each=0.0009)) == ""
    assert "5.5 h" in str(replace(SLOW, each=0.009, trials=1_100_000))
    assert str(replace(SLOW, each=0.009, trials=1000)) == ""
    assert "3.5 h if 8 calls run at a time" in str(replace(SLOW, threads=8, block=16, shared=True))
    few = str(replace(SLOW, threads=8, trials=200, one_by_one=False))
    assert "200 trials are 1 of 4,096: give block=25" in few
    searched = str(replace(SLOW, search=lambda trials: ((10**6, 10),), limit=60.0, trials=100))
    assert "2 x 10,000,000 to choose the pair" in searched
    assert "at most 80 s" in searched
    # A first pilot is finished, whatever it takes.
    long = replace(SLOW, search=lambda trials: ((10, 1000),), limit=60.0, trials=100)
    assert "at most 2 min" in str(long)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("show", [None, True, False])
def test_the_forecast_goes_to_stderr_unless_progress_is_false(monkeypatch, show):
    ticks = itertools.count(0.0, 9.0)

    def slow(*arguments, **options):
        course = TimeLog(*arguments, **options)
        course.clock = ticks.__next__
        return course

    monkeypatch.setattr(run, "TimeLog", slow)
    for stream in (Terminal(), io.StringIO()):
        monkeypatch.setattr(sys, "stderr", stream)
        found = audit(Counting(), PAIR, trials=100, claim=1.0, rng=1, progress=show)
        assert ("dpcore: an output takes about" in stream.getvalue()) is (show is not False)
        # A clock decides nothing that is compared.
        assert found == audit(found.mechanism, PAIR, trials=100, claim=1.0, rng=1, progress=False)


# A notebook without widgets.


class ZMQInteractiveShell:
    """What IPython calls the shell of a notebook."""


def test_a_notebook_is_shown_plain_text_and_html(monkeypatch):
    shown = []
    handle = SimpleNamespace(update=lambda data, raw: shown.append(data))

    def display(data, raw, display_id=False):
        shown.append(data)
        return handle if display_id else None

    shell = type("Shell", (ZMQInteractiveShell,), {})()
    parts = SimpleNamespace(get_ipython=lambda: shell, display=SimpleNamespace(display=display))
    monkeypatch.setitem(sys.modules, "IPython", parts)
    assert progress.is_watched()
    now = itertools.count(0.0, 2.0)
    with progress.Progress("choosing <it>", 4, None, alive=False, clock=now.__next__) as bar:
        bar.advance(1)
        bar.say("a forecast")
        bar.reset("counting")
        bar.advance(1)
    lines = [data["text/plain"] for data in shown]
    assert lines[0].startswith("choosing <it> 25 %, ")
    assert "&lt;it&gt;" in shown[0]["text/html"]
    assert "a forecast" in lines
    assert lines[-2].startswith("counting, ")
    assert shown[-1] == {"text/plain": "", "text/html": ""}


def test_calls_of_a_repeated_function_move_the_bar(monkeypatch):
    monkeypatch.setattr(progress, "is_watched", lambda: True)
    with progress.Progress("", None, True, alive=False, by_call=True) as bar:
        assert dpcore.repeat(lambda x: bar._within)(0.0, 5, None).tolist() == [0, 1, 2, 3, 4]
        bar.advance(5)
        assert bar._within == 0
        # A bar within a bar: the outer one stays, unless the inner one is asked for.
        with progress.Progress("", 2, None) as inner:
            assert not inner._wanted
    assert dpcore.repeat(lambda x: bar._within)(0.0, 3, None).tolist() == [0, 0, 0]


def test_the_time_of_a_call_is_no_time_of_its_outputs():
    # A process starts in .2 s; an output takes 1 ms.
    course = TimeLog()
    assert course.fixed_and_output_seconds() == (0.0, 0.0)
    course.record_call_duration(2, 0.202)
    assert course.fixed_and_output_seconds() == pytest.approx((0.0, 0.101))
    course.record_call_duration(64, 0.264)
    assert course.fixed_and_output_seconds() == pytest.approx((0.2, 0.001))
    # The least of calls of one size; a smaller call takes no longer, but for its warm-up.
    course.record_call_duration(64, 0.1)
    assert course.fixed_and_output_seconds() == pytest.approx((0.1, 0.0))
