"""The law of one call: single outputs against rows of longer calls."""

from __future__ import annotations

import json
import sys
import time
from functools import partial

import numpy as np
import pytest

import dpcore
from dpcore import Pair
from dpcore.auditing import call_sizes
from dpcore.auditing.call_sizes import plan_call_size_test
from dpcore.errors import AssumptionWarning
from dpcore.mechanisms.callables import make_generator

UNIT = Pair(np.zeros(1), np.ones(1))
FIRST = "the first row of every call has another distribution than the other rows"
SIZE = "the law depends on the size of the call"
TRIALS = 10_000


def laplace(x, size, rng, scale=1.0):
    return x[0] + rng.laplace(scale=scale, size=size)


def bare_first(x, size, rng):
    outputs = laplace(x, size, rng)
    outputs[0] = x[0]
    return outputs


def bare_last(x, size, rng):
    return bare_first(x, size, rng)[::-1]


def by_size(x, size, rng):
    return laplace(x, size, rng, 0.05 * size)


def shifted_single(x, size, rng):
    return laplace(x, size, rng) + 5.0 * (size == 1)


def words(x, size, rng, banner=False):
    lines = ["yes" if value > 0.5 else "no" for value in laplace(x, size, rng)]
    return ["tool 1.0", *lines[1:]] if banner and x[0] else lines


def places(x, size, rng, bare=False):
    noise = laplace(x, size, rng)
    noise[: int(bare)] = x[0]
    return [{"sum": value, "of": [1, "a"]} for value in noise.tolist()]


def gaussian(x, size, rng):
    return np.asarray(x) + rng.normal(scale=4.0, size=(size, 20))


def discrete(x, size, rng):
    return int(x[0]) + rng.geometric(0.5, size) - rng.geometric(0.5, size)


def rounded(x, size, rng):
    return np.round(laplace(x, size, rng), 1)


def randomised_response(x, size, rng):
    return (x[0] > 0.5) ^ (rng.random(size) < 0.3)


def seldom(x, size, rng):
    return np.where(rng.random(size) < 0.02, np.nan, rng.integers(2, size=size) / 3)


def batched(x, size, rng):
    """Return sums in float32 whose last bits depend on the size, beside discrete noise."""
    sums = np.full(size, 0.1 + 1e-6 * (size > 1), np.float32)
    return np.column_stack([sums, sums + x[0] + rng.integers(-3, 4, size), np.log(sums)])


def halved(x, size, rng):
    """Return numbers in half precision, the last place of which depends on the size."""
    base = np.nextafter(np.float16(0.3), np.float16(size > 1))
    return (base * np.exp2(rng.integers(-2, 3, (size, 1)))).astype(np.float16)


LEAKS = {
    "bare record": (bare_first, laplace, FIRST),
    "scale by size": (by_size, laplace, SIZE),
    "banner": (partial(words, banner=True), words, FIRST),
    "bare dict": (partial(places, bare=True), places, FIRST),
    "bare last row": (bare_last, laplace, FIRST.replace("first", "last")),
    "shift of single outputs": (shifted_single, laplace, SIZE),
}
SOUND = [laplace, gaussian, discrete, rounded, randomised_response, seldom, batched, halved, words,
         places]  # fmt: skip


@pytest.mark.parametrize("name", LEAKS)
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_calls_of_another_law_give_no_verdict(name, stop):
    leaky, private, sentence = LEAKS[name]
    options = {"claim": 3.0, "trials": TRIALS, "rng": 5, "stop": stop}
    with pytest.warns(AssumptionWarning, match=sentence):
        report = dpcore.audit(leaky, UNIT, **options)
    assert report.checks[0].startswith(sentence)
    assert report.verdict == f"invalid: {report.checks[0]}"
    assert (report.refuted, report.epsilon_lower) == (None, 0.0)
    assert dpcore.audit(private, UNIT, **options).checks == ()


def test_a_tool_that_greets_one_input_gives_no_verdict():
    program = (
        "import sys, random; x, size = sys.argv[1:]\n"
        "print('tool 1.0' if x == 'b' else 'no')\n"
        "for _ in range(int(size) - 1): print(random.choice(['yes', 'no']))"
    )
    tool = dpcore.command([sys.executable, "-c", program, "{x}", "{size}"])
    draws = make_draws(tool, Pair("a", "b"))
    assert call_sizes.compare_call_sizes(draws, 3200)[0][0].startswith(FIRST)


def make_draws(mechanism, pair=UNIT, block=1000):
    return call_sizes.TimedDraws(mechanism, pair, 1, block, ())


def find_notes(mechanism, audits, seed):
    """Return the audits, by number, whose probe says something of a sound mechanism."""
    options = {"null": True, "claim": 1.0, "trials": 8192, "attack": "threshold", "stop": "fixed"}
    pair = Pair([0.0], [0.0])
    reports = (
        dpcore.audit(mechanism, pair, rng=seed + i, pilot=64, **options) for i in range(audits)
    )
    return [number for number, report in enumerate(reports) if report.checks]


@pytest.mark.parametrize("mechanism", SOUND[:8], ids=lambda fn: fn.__name__)
def test_sound_mechanisms_have_no_note(mechanism):
    assert find_notes(mechanism, 5, 40) == []


@pytest.mark.sweep
@pytest.mark.parametrize("mechanism", SOUND, ids=lambda fn: fn.__name__)
def test_sound_mechanisms_have_no_note_in_200_audits(mechanism):
    if mechanism in (words, places):
        draws = [call_sizes.TimedDraws(mechanism, UNIT, seed, 1000, ()) for seed in range(200)]
        assert not any(call_sizes.compare_call_sizes(draw, 8192)[0] for draw in draws)
    else:
        assert find_notes(mechanism, 200, 1000) == []


@pytest.mark.sweep
def test_p_values_of_one_law_are_those_of_a_test():
    """At level 0.01 for the smallest of three; ties, so that the tests are conservative."""
    rng = np.random.default_rng(8)
    laws = (
        rng.normal,
        lambda size: rng.geometric(0.4, size),
        lambda size: rng.integers(2, size=size),
    )
    for law in laws:
        values = [np.asarray(law(size=(128, 1)), np.float64) for _ in range(4000)]
        small = sum(
            call_sizes._smallest_p_value_over_tests(v, np.array([1e-5])) < 0.01 / 3 for v in values
        )
        assert small < 75  # Binomial(4000, 0.01) exceeds it with probability below 1e-6


def test_calls_are_few_where_trials_are():
    assert plan_call_size_test(2**17, 10**6) == (64, 256)
    assert plan_call_size_test(2**17, 8192) == (64, 32)
    assert plan_call_size_test(2**17, 4096) == (32, 16)
    assert plan_call_size_test(2**17, 2000)[0] == 0
    assert plan_call_size_test(1, 10**6)[0] == 0
    sizes = []

    def recorded(x, size, rng):
        sizes.append(size)
        return laplace(x, size, rng)

    dpcore.audit(recorded, UNIT, claim=3.0, trials=10**5, rng=1)
    assert (sizes.count(1), sizes.count(256)) == (128, 128)
    sizes.clear()
    dpcore.audit(recorded, UNIT, claim=3.0, trials=2000, rng=1)
    assert sizes.count(1) == 0


def test_calls_of_one_answer_are_not_compared():
    mechanism = dpcore.repeat(lambda x, rng: x[0] + rng.laplace())
    assert call_sizes.compare_call_sizes(make_draws(mechanism), 10**5) == ((), ())


def test_slow_calls_are_not_compared_and_the_report_states_it():
    def slow(x, size, rng):
        time.sleep(0.11)
        return laplace(x, size, rng)

    report = dpcore.audit(slow, UNIT, claim=3.0, trials=3072, pilot=32, rng=1, attack="threshold")
    note = (
        "a call takes more than 0.1 s: single outputs were not compared with rows of longer calls"
    )
    assert note in report.notes
    assert note in json.loads(report.to_json())["notes"]


@pytest.mark.parametrize("draw", [laplace, words])
def test_a_report_states_that_trials_are_too_few_for_the_comparison(draw):
    few = "below 3,072 trials single outputs are not compared with rows of longer calls"
    for trials, is_stated in ((3071, True), (3072, False)):
        report = dpcore.audit(draw, UNIT, claim=3.0, trials=trials, rng=1)
        assert (few in report.notes) == (few in str(report)) == is_stated
    # Calls of one answer, or blocks of one row, show the law of one call.
    assert few not in dpcore.audit(draw, UNIT, claim=3.0, trials=40, block=1, rng=1).notes
    one = dpcore.repeat(lambda x, rng: draw(x, 1, rng)[0])
    assert few not in dpcore.audit(one, UNIT, claim=3.0, trials=200, rng=1).notes


def test_counts_are_those_without_the_comparison(monkeypatch):
    with_it = [dpcore.audit(fn, UNIT, claim=3.0, trials=TRIALS, rng=9) for fn in SOUND[:4]]
    monkeypatch.setattr("dpcore.auditing.request.compare_call_sizes", lambda *_: ((), ()))
    without = [dpcore.audit(fn, UNIT, claim=3.0, trials=TRIALS, rng=9) for fn in SOUND[:4]]
    assert with_it == without


class Warming:
    """Laplace noise with an offset in the first calls, whatever the input."""

    def __init__(self, last):
        self.left = last

    def __call__(self, x, size, rng):
        self.left -= 1
        return laplace(x, size, rng) + 50.0 * (self.left > 0)


@pytest.mark.parametrize("last", [20, 90, 150, 220])
def test_what_changes_from_call_to_call_is_no_law_of_a_size(last):
    assert call_sizes.compare_call_sizes(make_draws(Warming(last)), TRIALS) == ((), ())


class Opaque:
    """An object without a repr."""

    def __init__(self, value):
        self.value = value

    def __repr__(self):
        raise RuntimeError("no repr")


@pytest.mark.parametrize("make", [
    Opaque, lambda value: object(), lambda value: {1: {value}}, lambda value: None,
    lambda value: b"\xff", lambda value: (value, [value] * int(abs(value))), complex,
    lambda value: (value,) * int(1 + abs(value)),
    lambda value: np.datetime64(int(value), "D"), lambda value: np.float64(value) if value > 0
    else "none", lambda value: np.inf if value > 0 else -np.inf,
])  # fmt: skip
def test_outputs_of_any_kind_are_compared(make):
    draws = make_draws(lambda x, size, rng: list(map(make, laplace(x, size, rng).tolist())))
    assert call_sizes.compare_call_sizes(draws, TRIALS) == ((), ())


def test_streams_are_their_own():
    rng = make_generator(3, 4, 0, call_sizes._FIRST_CALL_NUMBER)
    assert rng.random() != make_generator(3, 4, 0, 0).random()


def test_the_columns_that_are_compared_are_stated():
    for columns, shown in ((1024, None), (2500, "in 834 of 2,500 columns")):
        report = dpcore.audit(
            lambda x, size, rng, columns=columns: rng.normal(size=(size, columns)),
            (np.array([0.0]), np.array([1.0])), claim=1.0, trials=3200, pilot=200, rng=1,
            attack=dpcore.attacks.Threshold(),
        )  # fmt: skip
        notes = [note for note in report.notes if "single outputs" in note]
        assert [shown in note for note in notes] == ([] if shown is None else [True])
