"""Times of an audit: what a forecast makes of calls, and the trials that a budget of seconds gives.

Mechanisms move the clock themselves, so that no test depends on the speed of a machine.
"""

from __future__ import annotations

import itertools
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import dpcore
from dpcore import audit, repeat
from dpcore.attacks import MajorityVote, Threshold, Timing
from dpcore.auditing import forecast, run
from dpcore.auditing.pair_choice import parse_pair, plan_rounds
from dpcore.pairs import L1, Box, search
from dpcore.results.audit_json import format_call
from dpcore.sampling.sources import TimeLog

PAIR = ([0.0], [1.0])
FOUR = [dpcore.Pair([0.0], [y]) for y in (0.25, 0.5, 0.75, 1.0)]
NOW = SimpleNamespace(seconds=0.0)
OWN = np.random.default_rng(5)


class Slow:
    """A mechanism of which a call takes a fixed time, and one for each output."""

    def __init__(self, fixed, each, own=False, warm_up=0.0):
        self.fixed, self.each, self.own, self.warm_up = fixed, each, own, warm_up
        self.outputs = 0

    def __call__(self, x, size, rng):
        NOW.seconds += self.fixed + size * self.each + self.warm_up
        self.outputs, self.warm_up = self.outputs + size, 0.0
        return x + (OWN if self.own else rng).laplace(size=(size, len(x)))


def answer(x, rng):
    NOW.seconds += 0.01
    return x[0] + rng.laplace()


@pytest.fixture
def clock(monkeypatch):
    """The clock that mechanisms move; a look at it takes a microsecond."""

    def look():
        NOW.seconds += 1e-6
        return NOW.seconds

    monkeypatch.setattr(run, "TimeLog", lambda bar: TimeLog(bar, look))
    return look


# A forecast.


@pytest.mark.parametrize(("fixed", "each", "more", "options"), [
    (0.004, 0.0, {}, {"trials": 300_000}),
    (2.0, 0.0, {}, {"trials": 300_000}),
    (2.0, 1e-6, {"warm_up": 60.0}, {"trials": 300_000}),
    (0.5, 1e-5, {"own": True}, {"trials": 300_000}),
    (0.5, 0.01, {}, {"trials": 1000}),
    (0.0, 0.02, {}, {"trials": 1000}),
    (0.5, 0.01, {}, {"trials": 1000, "block": 20, "threads": 4}),
    (0.5, 0.01, {}, {"trials": 500, "pair": FOUR}),
], ids=str)  # fmt: skip
def test_a_forecast_knows_the_fixed_time_of_a_call(fixed, each, more, options, clock, monkeypatch):
    seconds = []

    def settle(request, say):
        request = forecast.fit_trials_to_time(request, say)
        seconds.append(forecast._forecast_time(request)._audit_seconds(request.trials))
        return request

    monkeypatch.setattr(run, "fit_trials_to_time", settle)
    mechanism = Slow(fixed, each, **more)
    mechanism.thread_safe = True
    options = {"pair": PAIR, "claim": 1.0, "attack": Threshold(), "rng": 1} | options
    report = audit(mechanism, progress=False, **options)
    took = sum(one.seconds for one in report.spent if one.step != "probe")
    # Threads that share this clock take their turns.
    assert seconds[0] * options.get("threads", 1) == pytest.approx(took, rel=0.25)
    # From one size of call the first of these was foretold as 40 min.
    if fixed == 0.004:
        assert took < 0.2


def test_what_takes_long_by_one_call_only_is_not_announced(clock, capsys):
    options = {"claim": 1.0, "rng": 1, "trials": 300_000, "attack": Threshold()}
    audit(Slow(0.004, 0.0), PAIR, **options)
    assert capsys.readouterr().err == ""
    audit(Slow(2.0, 0.0), PAIR, **options | {"trials": 100})
    assert "dpcore: an output takes about 0.02 s" in capsys.readouterr().err


# A budget.


def make_pool(kind):
    return {None: nullcontext, "threads": ThreadPoolExecutor, "processes": ProcessPoolExecutor}[
        kind
    ](*([2] if kind else []))


@pytest.mark.parametrize(("mechanism", "options", "share"), [
    (Slow(0.004, 1e-5), {}, 0.85),
    (Slow(0.004, 1e-5), {"block": 1000}, 0.9),
    (Slow(0.004, 1e-5, own=True), {"block": 1000}, 0.9),
    (Slow(0.0, 1e-3), {"attack": MajorityVote()}, 0.8),
    (Slow(0.1, 1e-3), {"pair": FOUR}, 0.7),
    (Slow(0.1, 1e-3), {"pair": search(Box(0, 1, 1), L1(1.0), rounds=2, budget=800, candidates=4)},
     0.7),
    (Slow(0.0, 1e-3), {"attack": Timing()}, 0.7),
    (Slow(0.0, 1e-4), {"stop": "refuted", "claim": 30.0}, 0.8),
    (repeat(answer), {}, 0.8),
    (repeat(answer), {"pilot": 32, "block": 16}, 0.8),
], ids=lambda value: str(value).partition(" object at")[0])  # fmt: skip
def test_a_budget_is_used_and_kept(mechanism, options, share, clock):
    began = NOW.seconds
    asked = {"pair": PAIR, "claim": 1.0, "attack": Threshold(), "rng": 1} | options
    report = audit(mechanism, seconds=20.0, progress=False, **asked)
    assert share * 20.0 < NOW.seconds - began < 1.05 * 20.0
    assert (report.budget, report.trials >= 100) == (20.0, True)
    assert report.trials % report.block == 0 or report.trials < report.block
    assert f"20 s gave {report.trials:,} trials on each side" in str(report)
    call = format_call(report)
    assert f"trials={report.trials}," in call
    assert "seconds=" not in call
    if report.randomness == "seed" and isinstance(asked["pair"], tuple):
        again = audit(mechanism, trials=report.trials, progress=False, **asked)
        assert (again, again.budget) == (report, None)
    assert dpcore.Audit.from_json(report.to_json()).budget == 20.0


@dataclass(frozen=True)
class SlowAttack(Threshold):
    """An attack that takes a fixed time, and one for each output that it learns from."""

    def candidates(self, outputs, outputs_prime, pair):
        NOW.seconds += 0.05 + 5e-4 * len(outputs)
        return super().candidates(outputs, outputs_prime, pair)


@pytest.mark.parametrize(("options", "share"), [({}, 0.5), ({"stop": "refuted"}, 0.2)], ids=str)
def test_a_budget_counts_the_choice_of_the_event(options, share, clock):
    began = NOW.seconds
    options = {"claim": 30.0, "attack": SlowAttack(), "rng": 1} | options
    report = audit(Slow(0.0, 1e-5), PAIR, seconds=20.0, progress=False, **options)
    assert share * 20.0 < NOW.seconds - began < 1.05 * 20.0
    choice = sum(one.seconds for one in report.spent if one.step == "fit")
    assert choice > 0.2 * (NOW.seconds - began)


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_budget_counts_the_workers(kind, clock):
    mechanism, options = Slow(0.0, 1e-3), {"claim": 1.0, "block": 100, "rng": 1}
    mechanism.thread_safe = True
    alone = audit(mechanism, PAIR, seconds=5.0, **options).trials
    with make_pool(kind) as pool:
        report = audit(mechanism, PAIR, seconds=5.0, executor=pool, **options)
    assert 1.5 * alone < report.trials < 3.5 * alone
    assert report.counts == audit(mechanism, PAIR, trials=report.trials, **options).counts


def test_native_draws_and_tools_have_a_budget_too(monkeypatch):
    # Whatever is timed takes a ten-thousandth of a second.
    monkeypatch.setattr(
        run, "TimeLog", lambda bar: TimeLog(bar, itertools.count(0.0, 1e-4).__next__)
    )
    laplace, options = dpcore.Laplace(1.0), {"claim": 1.0, "rng": 1, "threads": 1}
    for attack in (MajorityVote(), Threshold()):
        report = audit(laplace, seconds=0.02, attack=attack, **options)
        assert (report.budget, report.trials % report.block) == (0.02, 0)
        assert report == audit(laplace, trials=report.trials, attack=attack, **options)
    code = "import random; [print({x} + random.gauss(0, 1)) for _ in range({size})]"
    tool = dpcore.command([sys.executable, "-c", code])
    report = audit(tool, ("0", "1"), seconds=0.005, block=200, claim=9.0, rng=1)
    assert (report.trials >= 400, report.trials % 200) == (True, 0)


def test_a_run_file_keeps_the_trials_of_its_budget(clock, tmp_path):
    path, options = tmp_path / "run.json", {"claim": 1.0, "rng": 1, "block": 100}
    mechanism = Slow(0.0, 1e-3)
    report = audit(mechanism, PAIR, seconds=5.0, checkpoint=path, **options)
    # The machine is slower when it goes on.
    mechanism.each = 1e-2
    again = audit(mechanism, PAIR, seconds=5.0, checkpoint=path, **options)
    assert (again.counts, again.budget) == (report.counts, 5.0)
    plain = audit(mechanism, PAIR, trials=report.trials, checkpoint=path, **options)
    assert (plain, plain.budget) == (report, 5.0)
    with pytest.raises(ValueError, match=r"^seconds must be 5.0 as in the run file .*, got 6.0$"):
        audit(mechanism, PAIR, seconds=6.0, checkpoint=path, **options)


def test_added_audits_have_no_budget(clock):
    options = {"claim": 1.0, "rng": 1, "block": 100, "pilot": 256}
    mechanism = Slow(0.0, 1e-3)
    first = audit(mechanism, PAIR, seconds=5.0, **options)
    rest = audit(mechanism, PAIR, seconds=5.0, start=first.trials, **options)
    both = first + rest
    assert (both.trials, both.budget) == (first.trials + rest.trials, None)


@pytest.mark.parametrize(("options", "kind", "text"), [
    ({"seconds": 5.0, "trials": 1000}, ValueError,
     "seconds must be left out where trials=1000 is given, got 5.0"),
    ({"seconds": 0}, ValueError, "seconds must be a finite number above 0, got 0"),
    ({"seconds": -1.0}, ValueError, "seconds must be a finite number above 0, got -1.0"),
    ({"seconds": float("inf")}, ValueError, "seconds must be a finite number above 0, got inf"),
    ({"seconds": float("nan")}, ValueError, "seconds must be a finite number above 0, got nan"),
    ({"seconds": "60"}, TypeError, "seconds must be a finite number above 0, got '60'"),
    ({"seconds": True}, TypeError, "seconds must be a finite number above 0, got True"),
    ({"seconds": 1e-3}, ValueError,
     r"seconds must be at least [\d.]+, the time of 100 trials, got 0.001"),
    ({"seconds": 1e300}, ValueError,
     "seconds must be so few that at most 9,223,372,036,854,775,807 trials fit, got 1e[+]300"),
], ids=str)  # fmt: skip
def test_a_budget_that_cannot_be_kept_is_an_error(options, kind, text, clock):
    with pytest.raises(kind, match=f"^{text}$"):
        audit(Slow(0.0, 1e-3), PAIR, claim=1.0, **options)


def test_the_least_budget_that_an_error_names_is_enough(clock):
    for mechanism in (Slow(0.0, 1e-3), Slow(0.3, 1e-3), repeat(answer)):
        with pytest.raises(ValueError, match=r"^seconds must be at least") as refused:
            audit(mechanism, PAIR, claim=1.0, seconds=0.01, rng=1)
        least = float(str(refused.value).split("at least ")[1].split(",")[0])
        assert audit(mechanism, PAIR, claim=1.0, seconds=least, rng=1).trials >= 100


def test_the_command_line_takes_seconds(run, monkeypatch):
    ticks = itertools.count(0.0, 1e-4).__next__
    monkeypatch.setattr("dpcore.auditing.run.TimeLog", lambda bar: TimeLog(bar, ticks))
    arguments = "audit half-noise --epsilon 1 --dim 1 --threads 1 --seed 1 --seconds"
    status, out, _ = run(f"{arguments} .02")
    assert (status, "0.02 s gave " in out) == (1, True)
    for words, text in (
        ("1 --trials 1000", "--seconds must be left out where --trials 1000 is given, got 1.0"),
        ("-1", "--seconds must be a finite number above 0, got -1.0"),
        ("1e-9", "--seconds must be at least "),
    ):
        status, _, err = run(f"{arguments} {words}")
        assert (status, text in err) == (2, True)
    assert "--seconds" in run("audit --help")[1]


def test_a_test_has_no_budget(dp_audit):
    text = "seconds must be left out: a test must not depend on the load of a machine"
    for check in (dp_audit, dp_audit.refutes):
        with pytest.raises(TypeError, match=f"^{text} .give trials=., got 60$"):
            check(dpcore.Laplace(1.0), PAIR, claim=1.0, seconds=60)


# Choosing among pairs.


@pytest.mark.parametrize("number", [2, 3, 4, 7, 40])
@pytest.mark.parametrize("trials", [1, 7, 50, 500, 2000, 10**5, 10**8])
@pytest.mark.parametrize("pilot", [2, 4096, 10**6])
def test_the_choice_of_a_pair_costs_at_most_eight_times_the_trials(number, trials, pilot):
    pairs = [dpcore.Pair([0.0], [1.0 + i]) for i in range(number)]
    rounds = plan_rounds(parse_pair(dpcore.Laplace(1.0), pairs), pilot, trials)
    largest = plan_rounds(parse_pair(dpcore.Laplace(1.0), pairs), pilot, 10**12)
    total, most = (sum(many * size for many, size in one) for one in (rounds, largest))
    assert total <= max(8 * trials, 64 * number)
    assert [many for many, _ in rounds] == [many for many, _ in largest]
    # Of many trials nothing changes; of few, all that is allowed is used but for roundings.
    assert rounds == largest or total > max(8 * trials, 64 * number) - 2 * number
    assert rounds == largest or most > max(8 * trials, 64 * number)


@pytest.mark.parametrize(("trials", "search_draws"), [(10, 252), (50, 396), (2000, 12288)])
def test_a_list_of_pairs_costs_what_the_plan_says(trials, search_draws):
    mechanism = Slow(0.0, 0.0)
    report = audit(mechanism, FOUR, trials=trials, claim=1.0, rng=1)
    spent = {one.step: one.outputs for one in report.spent}
    assert spent["search"] == 2 * search_draws
    assert sum(spent.values()) == mechanism.outputs


def test_the_best_of_four_pairs_is_found_with_few_trials():
    def release(x, size, rng):
        return x + rng.laplace(scale=0.2, size=(size, 1))

    chosen = [
        audit(release, FOUR, trials=50, claim=9.0, rng=seed).pair.x_prime for seed in range(20)
    ]
    # Two of the four show most: 18 of 20 choose them by chance once in 5,000 times.
    assert sum(float(x[0]) >= 0.75 for x in chosen) >= 18
