"""Where a native mechanism's loss is infinite, and why: the closed form."""

from __future__ import annotations

import numpy as np
import pytest
from shared_audits import UNIT

import dpcore
from dpcore import Pair, published
from dpcore.attacks import Support, support
from dpcore.attacks.scores.rows import AtAtoms, Outside, Repeats, Special
from dpcore.attacks.support import explain_infinite_loss
from dpcore.mechanisms import PRIMITIVES
from dpcore.pairs import zeros_ones

# The closed form.


@pytest.mark.parametrize(
    ("mechanism", "pair", "words"),
    [
        (dpcore.Exponential(1.0), Pair([0.0, 2.0], [0.0, 1.0]),
         "never negative: an output below 2 in entry 1 is possible on x' alone"),
        (dpcore.DPTextNoise(1.0), UNIT, "below 1 in entry 0 is possible on x alone"),
        (dpcore.DPTextNoise(1.0, "resample"), UNIT, "below 1 in entry 0 is possible on x alone"),
        (dpcore.DPTextNoise(1.0, "keep"), UNIT, "below 1 in entry 0 is possible on x alone"),
        (published.DPText(2.0), zeros_ones(3), "below 1 in entry 0 is possible on x alone"),
        (dpcore.Uniform(-3.0, 5.0), UNIT, "bounded noise: the ranges of entry 0 differ"),
        (dpcore.Identity(), UNIT, "no noise: the output is the input"),
    ],
)  # fmt: skip
def test_infinite_losses_and_why(mechanism, pair, words):
    reason = explain_infinite_loss(mechanism, pair)
    assert words in reason
    assert "\n" not in reason
    # What the closed form says, the attack certifies more of than any small claim.
    found = dpcore.audit(mechanism, pair, attack=Support(), claim=1.0, trials=20_000, rng=1)
    assert found.epsilon_lower > 5.0


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (dpcore.Laplace(1.0), UNIT),
        (dpcore.Gaussian(1.0), UNIT),
        (dpcore.RandomBits(), UNIT),
        (published.ADePT(1.0), zeros_ones(2)),
        (published.HalfNoise(1.0), UNIT),
        (published.DPTextRepaired(1.0), UNIT),
        # Equal inputs lose nothing, whatever the mechanism.
        (dpcore.Identity(), Pair([1.0], [1.0])),
        (dpcore.Exponential(1.0), Pair([1.0, 2.0], [1.0, 2.0])),
        # A mechanism that the core does not run has no closed form here.
        (lambda x, size, generator: np.zeros(size), Pair("a", "b")),
    ],
)
def test_finite_losses_have_no_reason(mechanism, pair):
    assert explain_infinite_loss(mechanism, pair) is None


def test_every_primitive_is_decided():
    decided = {type(m) for m in (
        dpcore.Laplace(1.0), dpcore.Gaussian(1.0), dpcore.Exponential(1.0),
        dpcore.Uniform(0.0, 1.0), dpcore.Identity(), dpcore.RandomBits(), dpcore.DPTextNoise(1.0),
    )}  # fmt: skip
    assert decided == set(PRIMITIVES)


def test_inputs_that_a_clip_makes_one(monkeypatch):
    """Two points on one ray: clipped they agree in the reals, if not in the last bit."""

    class Clipped:
        def steps(self, dim):
            return dpcore.mechanisms.Steps(
                dpcore.Exponential(1.0), clip=dpcore.mechanisms.Clip("l2", 1.0)
            )

    monkeypatch.setattr(support, "is_native", lambda mechanism: True)
    differ = 0
    for factor in np.linspace(2.0, 9.0, 50):
        x = np.array([0.3, 0.7, 1.1]) * 3.1
        clipped = [dpcore._core.clip(side, "l2", 1.0) for side in (x, x * factor)]
        differ += not np.array_equal(*clipped)
        assert explain_infinite_loss(Clipped(), Pair(x, x * factor)) is None
    assert differ > 5
    assert explain_infinite_loss(Clipped(), Pair([0.0, 5.0], [5.0, 0.0])) is not None


def test_a_factor_scales_the_end():
    class Halved:
        def steps(self, dim):
            return dpcore.mechanisms.Steps(dpcore.Exponential(1.0), factor=0.5)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(support, "is_native", lambda mechanism: True)
        assert "below 2 in entry 0" in explain_infinite_loss(Halved(), Pair([1.0], [4.0]))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: explain_infinite_loss(dpcore.Identity(), (0, 1)), TypeError,
         "pair must be a Pair, got (0, 1)"),
        (lambda: explain_infinite_loss(dpcore.Identity(), Pair("a", "b")), TypeError, "x must be"),
        (lambda: explain_infinite_loss(dpcore.Identity(), Pair([0.0], [1.0, 2.0])), ValueError, ""),
        (lambda: Special("zero"), ValueError, "kind must be one of 'nan', 'inf', got 'zero'"),
        (lambda: Outside([0.0], [1.0, 2.0]), ValueError, "highs must be of shape (1,)"),
        (lambda: Outside([2.0], [1.0]), ValueError, "lows must be at most highs"),
        (lambda: Outside([np.nan], [1.0]), ValueError, "lows must be at most highs"),
        (lambda: Outside([0.0], [1.0])(np.zeros((2, 2))), ValueError, "outputs must be of 1 ent"),
        (lambda: Repeats(-1.0), ValueError, "tolerance must be a finite number at least 0"),
        (lambda: Repeats(None), TypeError, "tolerance must be a finite number at least 0"),
        (lambda: AtAtoms([0], [0.0, 1.0], [1.0], [1]), ValueError, "lows must be of shape (1,)"),
        (lambda: AtAtoms([2], [0.0], [1.0], [1])(np.zeros((2, 2))), ValueError,
         "outputs must be of at least 3 entries"),
        (lambda: Special("nan")(np.array(["a"])), TypeError, "outputs must be real numbers"),
    ],
)  # fmt: skip
def test_bad_arguments(call, error, text):
    with pytest.raises(error) as caught:
        call()
    assert str(caught.value).startswith(text)
