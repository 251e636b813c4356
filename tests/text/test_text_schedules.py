"""Training schedules: their formulas, their draws, and what of a user's function is refused."""

import json
import math
import pickle

import numpy as np
import pytest
from scipy import stats

from dpcore.report.plain import encode_value
from dpcore.text import schedules
from dpcore.text.schedules import Constant, LogUniformEpsilon, OverEpochs, Stretched, UniformEpsilon

ALL = [
    (Constant(5), "constant 5"),
    (OverEpochs(10), "10/n"),
    (Stretched(10, 2), "stretched 10 to 2"),
    (UniformEpsilon(2, 10), "uniform 2 to 10"),
    (LogUniformEpsilon(0.5, 10, every="batch"), "log-uniform 0.5 to 10, every batch"),
]
ALPHA = 1e-6


def over(schedule, epochs, rng=None):
    return [schedules.epsilon_of(schedule, epoch, epochs, rng) for epoch in range(1, epochs + 1)]


def test_the_fixed_ones_are_their_formulas():
    assert (over(Constant(5), 3), over(OverEpochs(10), 4)) == ([5.0] * 3, [10.0, 5.0, 10 / 3, 2.5])
    assert over(OverEpochs(1), 2) == [1.0, 0.5]
    assert over(Stretched(10, 2), 14) == [10 / (1 + 4 * (n / 13)) for n in range(14)]
    # In five epochs it is what 10/n is; in one it only starts.
    assert over(Stretched(10, 2), 5) == pytest.approx(over(OverEpochs(10), 5), rel=1e-15)
    assert over(Stretched(10, 2), 1) == [10.0]
    assert over(Stretched(0.5, 5), 3)[-1] == pytest.approx(5.0)


@pytest.mark.parametrize(
    ("kind", "law"), [(UniformEpsilon, stats.uniform), (LogUniformEpsilon, stats.loguniform)]
)
def test_the_drawn_ones_have_their_law(kind, law):
    draws = over(kind(0.5, 10), 20_000, np.random.default_rng(3))
    arguments = (0.5, 9.5) if kind is UniformEpsilon else (0.5, 10)
    assert stats.kstest(draws, law(*arguments).cdf).pvalue > ALPHA
    assert min(draws) >= 0.5
    assert max(draws) <= 10
    # The control: the other law.
    other = stats.loguniform(0.5, 10) if kind is UniformEpsilon else stats.uniform(0.5, 9.5)
    assert stats.kstest(draws, other.cdf).pvalue < ALPHA
    assert over(kind(3, 3), 2, np.random.default_rng(1)) == pytest.approx([3.0, 3.0])
    assert over(kind(0.5, 10), 5, np.random.default_rng(3)) == draws[:5]


@pytest.mark.parametrize(("schedule", "title"), ALL)
def test_they_are_records(schedule, title):
    assert schedules.title_of(schedule) == str(schedule) == title
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert eval(repr(schedule), dict(vars(schedules))) == schedule
    # Files name `UniformEpsilon` by the word of the time when it was called `Uniform`.
    found = json.loads(json.dumps(encode_value(schedule)))
    assert found["record"] == f"text.schedules.{type(schedule).__name__.removesuffix('Epsilon')}"
    assert schedules.batch_or_epoch(schedule) == ("batch" if "batch" in title else "epoch")
    with pytest.raises((AttributeError, TypeError)):
        schedule.every = "batch"


def test_any_function_fits():
    def halved(epoch, epochs, rng):
        return np.float32(8.0) / 2**epoch

    assert (over(halved, 3), schedules.batch_or_epoch(halved)) == ([4.0, 2.0, 1.0], "epoch")
    assert schedules.title_of(halved).endswith("halved")
    halved.every = "batch"
    assert schedules.batch_or_epoch(halved) == "batch"
    halved.every = "step"
    with pytest.raises(ValueError, match=r"^every of .*halved must be one of 'epoch', 'batch'"):
        schedules.batch_or_epoch(halved)


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, np.float64("nan"), 10**400])
def test_what_is_no_epsilon_is_refused_with_the_epoch(value):
    def mine(epoch, epochs, rng):
        return value if epoch == 2 else 1.0

    assert schedules.epsilon_of(mine, 1, 3, None) == 1.0
    message = r"^epsilon that .*mine gives epoch 2 of 3 must be a finite number above 0, got "
    with pytest.raises(ValueError, match=message):
        schedules.epsilon_of(mine, 2, 3, None)


def test_a_schedule_that_underflows_is_refused():
    with pytest.raises(ValueError, match=r"that 4.9.*e-324/n gives epoch 2 of 3 must be .*, got 0"):
        over(OverEpochs(5e-324), 3)


@pytest.mark.parametrize("schedule", [5.0, None, "constant", Constant])
def test_what_is_no_schedule(schedule):
    for ask in (schedules.batch_or_epoch, lambda one: schedules.epsilon_of(one, 1, 1, None)):
        with pytest.raises(TypeError, match=r"^schedule must be a function \(epoch, epochs, rng\)"):
            ask(schedule)
