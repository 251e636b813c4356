"""The oracle against printed figures, 60-digit sums, enumeration and simulation in numpy."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shared_audits import UNIT
from shared_examples import examples
from shared_messages import check_messages

import dpcore
from dpcore import attacks, exact, mechanisms, published
from dpcore.exact import VoteLaw, explain_infinite_loss, vote_log_probabilities, vote_loss
from dpcore.mechanisms import DPTextNoise, Exponential, Gaussian, Identity, Laplace, Uniform
from dpcore.mechanisms.native import log_tails
from dpcore.pairs import zeros_ones
from dpcore.records import Pair

DIMS, FEW = (1, 2, 8, 32, 64, 128), (1, 2, 8, 32, 128)
INF = math.inf


def zeros_and_ones(cls, epsilon, n):
    """The system at the sensitivity of this pair, if it has one."""
    system = cls(epsilon) if cls is published.ADePTReference else cls(epsilon, n)
    return vote_loss(system, zeros_ones(n))


def default_pair(cls, epsilon, n):
    return vote_loss(cls(epsilon), cls(epsilon).default_pair(n))


@pytest.mark.parametrize(
    ("pair", "cls", "epsilon", "dims", "expected"),
    [
        (zeros_and_ones, published.LaplaceMechanism, 0.1, DIMS,
         (0.0976, 0.0988, 0.0375, 0.0163, 0.0110, 0.0076)),
        (zeros_and_ones, published.LaplaceMechanism, 1.0, DIMS,
         (0.8318, 0.8997, 0.3655, 0.1615, 0.1099, 0.0756)),
        (zeros_and_ones, published.LaplaceMechanism, 10.0, DIMS,
         (5.6898, 6.3025, 3.1649, 1.5525, 1.0776, 0.7485)),
        (zeros_and_ones, published.ADePTReference, 0.1, DIMS,
         (0.0976, 0.1952, 0.2940, 0.5096, 0.6931, 0.9576)),
        (zeros_and_ones, published.ADePTReference, 1.0, DIMS,
         (0.8318, 1.6636, 2.5811, 5.1144, 8.0702, 13.7432)),
        (zeros_and_ones, published.HalvedOutput, 1.0, DIMS,
         (1.0, 1.0, 0.3983, 0.1708, 0.1147, 0.0780)),
        (default_pair, published.ADePT, 1.0, FEW, (0.832, 1.228, 0.989, 0.890, 0.847)),
        (default_pair, published.HalfNoise, 1.0, FEW, (1.490, 1.664, 0.713, 0.321, 0.151)),
        (default_pair, published.LaplaceMechanism, 1.0, FEW, (0.832, 0.900, 0.366, 0.162, 0.076)),
    ],
)  # fmt: skip
def test_printed_losses(pair, cls, epsilon, dims, expected):
    digits = 4 if dims is DIMS else 3
    losses = [pair(cls, epsilon, n) for n in dims]
    assert losses == pytest.approx(expected, abs=0.51 * 10**-digits)
    if cls is published.LaplaceMechanism:
        assert [pair(published.DPTextRepaired, epsilon, n) for n in dims] == losses


def binomial_logs(n, p):
    """The logarithms of P(K > n/2) and P(K <= n/2), summed from the definition."""
    term, sums = mp.power(1 - p, n), [mp.mpf(0), mp.mpf(0)]
    for k in range(n + 1):
        sums[2 * k <= n] += term
        term *= mp.mpf(n - k) / (k + 1) * p / (1 - p)
    won, lost = sums
    # The logarithm of the larger sum, through the smaller: 60 digits then hold any tail.
    if won < lost:
        return mp.log(won), mp.log1p(-won)
    return mp.log1p(-lost), mp.log(lost)


@pytest.mark.parametrize(("n", "printed"), [(512, -1112.4540), (1024, -2216.2166)])
def test_deep_tail(n, printed):
    law = vote_log_probabilities(Laplace(0.1), zeros_ones(n))
    assert law.log_p == pytest.approx(printed, abs=5.1e-5)
    with mp.workdps(60):
        # The scale is the double 0.1, not one tenth.
        p = mp.exp(-mp.mpf(0.5) / mp.mpf(0.1)) / 2
        truth = (*binomial_logs(n, p), *binomial_logs(n, 1 - p))
        assert abs(float(law.log_p / truth[0] - 1)) < 1e-12
        assert abs(float(law.log_q_prime / truth[3] - 1)) < 1e-12
    # Their complements round to 0 in float64.
    assert (law.log_q, law.log_p_prime) == (float(truth[1]), float(truth[2])) == (0.0, 0.0)


@pytest.mark.parametrize("n", [1, 2, 3, 10, 101, 512, 4096, 4097, 20000])
@pytest.mark.parametrize("scale", [0.3, 1.0, 30.0])
def test_both_tails_are_relatively_accurate(n, scale):
    law = vote_log_probabilities(Laplace(scale), zeros_ones(n))
    with mp.workdps(60):
        p = mp.exp(-mp.mpf(0.5) / mp.mpf(scale)) / 2
        truth = (*binomial_logs(n, p), *binomial_logs(n, 1 - p))
        ours = (law.log_p, law.log_q, law.log_p_prime, law.log_q_prime)
        for mine, true in zip(ours, truth, strict=True):
            if abs(true) < 1e-300:
                assert mine == pytest.approx(0.0, abs=1e-300)
            else:
                assert abs(float(mine / true - 1)) < 1e-11


NOISES = [
    Laplace(0.7),
    Gaussian(0.7),
    Exponential(0.7),
    Uniform(-0.9, 1.3),
    Identity(),
    DPTextNoise(0.7, "zero"),
    DPTextNoise(0.7, "resample"),
    DPTextNoise(0.7, "keep"),
]


def law_by_mpmath(noise, a, up):
    """P(vote) and P(no vote) of one entry, from the distribution function of the noise."""
    a = mp.mpf(a)

    def below(t):
        if isinstance(noise, Laplace):
            z = t / mp.mpf(noise.scale)
            return mp.exp(z) / 2 if z < 0 else 1 - mp.exp(-z) / 2
        if isinstance(noise, Uniform):
            low, high = mp.mpf(noise.low), mp.mpf(noise.high)
            return min(max((t - low) / (high - low), mp.mpf(0)), mp.mpf(1))
        return mp.mpf(0) if t <= 0 else 1 - mp.exp(-t / mp.mpf(noise.scale))

    atom = (a <= 0) if up else (a >= 0)
    if isinstance(noise, Identity):
        return mp.mpf(atom), mp.mpf(not atom)
    if isinstance(noise, Gaussian):
        z = a / mp.mpf(noise.sigma) * (1 if up else -1)
        return mp.ncdf(-z), mp.ncdf(z)
    p = 1 - below(a) if up else below(a)
    if isinstance(noise, DPTextNoise) and noise.nan != "resample":
        p = p / 2 + (mp.mpf(0.5) if noise.nan == "zero" and atom else 0)
    return p, 1 - p


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("up", [True, False])
def test_one_entry_in_both_tails(noise, up):
    grid = [0.0, 1e-12, 1e-3, 0.3, 0.5, 0.9, 1.0, 1.3, 2.0, 9.0, 26.0, 200.0]
    grid += [-a for a in grid[1:]]
    ours = log_tails(noise, np.array(grid), up)
    with mp.workdps(400):
        for i, a in enumerate(grid):
            for mine, p in zip((ours[0][i], ours[1][i]), law_by_mpmath(noise, a, up), strict=True):
                true = mp.log(p) if p > 0 else -mp.inf
                if mp.isinf(true) or abs(true) < 1e-300:
                    assert mine == float(true) or abs(mine) < 1e-300
                else:
                    assert abs(float(mine / true - 1)) < 1e-12, a


def test_random_bits_ignore_the_input():
    fair = VoteLaw(math.log(0.25), math.log(0.75), math.log(0.25), math.log(0.75))
    bits = dpcore.RandomBits()
    law = vote_log_probabilities(bits, zeros_ones(2))
    assert (law.log_p, law.log_q) == pytest.approx((fair.log_p, fair.log_q), rel=1e-15)
    assert law.log_p == law.log_p_prime
    assert vote_loss(bits, zeros_ones(7)) == 0.0
    # Threshold 5: no bit ever reaches it, so one vote is impossible on both sides.
    assert vote_log_probabilities(bits, Pair([4.0], [6.0])) == VoteLaw(-INF, 0, -INF, 0)
    assert vote_loss(bits, Pair([4.0], [6.0])) == 0.0


def test_loss_skips_what_is_impossible_on_both_sides():
    assert exact.loss(VoteLaw(-INF, 0.0, -INF, 0.0)) == 0.0
    assert exact.loss(VoteLaw(-INF, 0.0, -1.0, -0.46)) == INF
    assert exact.loss(VoteLaw(-3.0, -0.05, -1.0, -0.46)) == 2.0


LOGITS = st.lists(st.floats(-40.0, 40.0), min_size=1, max_size=9)


@given(LOGITS)
def test_unequal_votes_against_enumeration(logits):
    log_p = -np.logaddexp(0.0, -np.array(logits))
    log_q = -np.logaddexp(0.0, np.array(logits))
    ours = exact._log_unequal_majority(log_p, log_q)
    n = len(logits)
    with mp.workdps(60):
        p, q = ([mp.exp(mp.mpf(float(v))) for v in logs] for logs in (log_p, log_q))
        won = lost = mp.mpf(0)
        for bits in itertools.product((0, 1), repeat=n):
            weight = mp.fprod(p[i] if bit else q[i] for i, bit in enumerate(bits))
            won, lost = (won + weight, lost) if 2 * sum(bits) > n else (won, lost + weight)
        total = won + lost
        assert ours[0] == pytest.approx(float(mp.log(won / total)), rel=1e-10, abs=1e-14)
        assert ours[1] == pytest.approx(float(mp.log(lost / total)), rel=1e-10, abs=1e-14)


def test_unequal_and_equal_routes_agree_deep_in_the_tail():
    log_p, log_q = (part.item() for part in log_tails(Laplace(0.1), np.array(0.5), True))
    law = vote_log_probabilities(Laplace(0.1), zeros_ones(1024))
    ours = exact._log_unequal_majority(np.full(1024, log_p), np.full(1024, log_q))
    assert ours[0] == pytest.approx(law.log_p, rel=1e-12)


def test_too_many_different_entries_are_refused():
    x = np.zeros(4097)
    steps = Pair(x, np.linspace(1.0, 2.0, 4097))
    assert vote_log_probabilities(Laplace(1.0), steps) is None
    assert vote_loss(Laplace(1.0), steps) is None
    assert vote_loss(Laplace(1.0), Pair(x[:64], steps.x_prime[:64])) > 0.0


def simulate(mechanism, pair, size):
    """Shares of votes for x' among numpy's own draws, for Laplace and Gaussian noise."""
    rng = np.random.default_rng(7)
    shares = []
    for x in (pair.x, pair.x_prime):
        steps = mechanism.steps(x.size)
        if steps.clip is not None:
            order = 1 if steps.clip.norm == "l1" else 2
            x = x * min(1.0, steps.clip.radius / np.linalg.norm(x, order))
        if isinstance(steps.noise, Laplace):
            noise = rng.laplace(0.0, steps.noise.scale, (size, x.size))
        else:
            noise = rng.normal(0.0, steps.noise.sigma, (size, x.size))
        outputs = (x + noise) * steps.factor
        middle = (pair.x + pair.x_prime) / 2
        up, down = pair.x_prime > pair.x, pair.x_prime < pair.x
        ayes = (outputs >= middle)[:, up].sum(axis=1) + (outputs <= middle)[:, down].sum(axis=1)
        shares.append((2 * ayes > np.count_nonzero(up | down)).mean())
    return shares


MIXED = Pair(np.array([0.0, 1.0, 3.0, -1.0, 2.0]), np.array([1.0, 0.5, 3.0, 1.0, 1.0]))


@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(1.0),
        Gaussian(1.0),
        published.ADePT(1.0, 1.5),
        published.ADePTClipL1(1.0, 1.5),
        published.ADePTScaled(1.0, 9.0),
        published.HalvedOutput(1.0),
    ],
    ids=repr,
)
def test_clip_factor_and_mixed_directions_against_simulation(mechanism):
    size = 200_000
    law = vote_log_probabilities(mechanism, MIXED)
    for share, log_p in zip(
        simulate(mechanism, MIXED, size), (law.log_p, law.log_p_prime), strict=True
    ):
        p = math.exp(log_p)
        # Five standard deviations: a false alarm once in a million, a 1 % error is seen.
        assert abs(share - p) < 5 * math.sqrt(p * (1 - p) / size)


@examples(50)
@given(st.integers(1, 300), st.floats(0.01, 20.0))
def test_probabilities_sum_to_one_and_the_sides_mirror(n, scale):
    law = vote_log_probabilities(Laplace(scale), zeros_ones(n))
    assert np.logaddexp(law.log_p, law.log_q) == pytest.approx(0.0, abs=1e-14)
    if n % 2:
        # Without ties the vote for x' from x' is the vote for x from x.
        assert law.log_p == pytest.approx(law.log_q_prime, rel=1e-12)
    assert vote_loss(Laplace(scale), zeros_ones(n)) <= n / scale * (1 + 1e-12)


@pytest.mark.parametrize("cls", [cls for cls in published.SYSTEMS if cls.sound])
@given(st.integers(1, 60), st.floats(0.01, 20.0))
@examples(30)
def test_sound_systems_stay_below_their_claim(cls, dim, epsilon):
    system = cls(epsilon)
    assert vote_loss(system, system.default_pair(dim)) <= epsilon * (1 + 1e-9)


def test_what_is_not_native_has_no_oracle():
    class Quiet(Laplace):
        pass

    assert vote_loss(Quiet(1.0), zeros_ones(1)) is None
    assert vote_log_probabilities(lambda x, size, rng: x, zeros_ones(1)) is None


# Infinite losses.


@pytest.mark.parametrize(
    ("mechanism", "pair", "words"),
    [
        (Exponential(1.0), Pair([0.0, 2.0], [0.0, 1.0]),
         "never negative: an output below 2 in entry 1 is possible on x' alone"),
        (DPTextNoise(1.0), UNIT, "below 1 in entry 0 is possible on x alone"),
        (DPTextNoise(1.0, "resample"), UNIT, "below 1 in entry 0 is possible on x alone"),
        (DPTextNoise(1.0, "keep"), UNIT, "below 1 in entry 0 is possible on x alone"),
        (published.DPText(2.0), zeros_ones(3), "below 1 in entry 0 is possible on x alone"),
        (Uniform(-3.0, 5.0), UNIT, "bounded noise: the ranges of entry 0 differ"),
        (Identity(), UNIT, "no noise: the output is the input"),
    ],
)  # fmt: skip
def test_infinite_losses_and_why(mechanism, pair, words):
    reason = explain_infinite_loss(mechanism, pair)
    assert words in reason
    assert "\n" not in reason
    # What the closed form says, the attack certifies more of than any small claim.
    found = dpcore.audit(mechanism, pair, attack=attacks.Support(), claim=1.0, trials=20_000, rng=1)
    assert found.epsilon_lower > 5.0


@pytest.mark.parametrize(
    ("mechanism", "pair"),
    [
        (Laplace(1.0), UNIT),
        (Gaussian(1.0), UNIT),
        (dpcore.RandomBits(), UNIT),
        (published.ADePT(1.0), zeros_ones(2)),
        (published.HalfNoise(1.0), UNIT),
        (published.DPTextRepaired(1.0), UNIT),
        # Equal inputs lose nothing, whatever the mechanism.
        (Identity(), Pair([1.0], [1.0])),
        (Exponential(1.0), Pair([1.0, 2.0], [1.0, 2.0])),
        # A mechanism that the core does not run has no closed form here.
        (lambda x, size, generator: np.zeros(size), Pair("a", "b")),
    ],
)
def test_finite_losses_have_no_reason(mechanism, pair):
    assert explain_infinite_loss(mechanism, pair) is None


def surround_noise(**steps):
    """Return a mechanism of one-sided noise with steps before or after it."""
    return SimpleNamespace(steps=lambda dim: mechanisms.Formula(Exponential(1.0), **steps))


def test_inputs_that_a_clip_makes_one(monkeypatch):
    """Two points on one ray: clipped they agree in the reals, if not in the last bit."""
    monkeypatch.setattr(exact, "can_core_draw", lambda mechanism: True)
    clipping, differ = surround_noise(clip=mechanisms.ClipStep("l2", 1.0)), 0
    for factor in np.linspace(2.0, 9.0, 50):
        x = np.array([0.3, 0.7, 1.1]) * 3.1
        clipped = [dpcore._core.clip(side, "l2", 1.0) for side in (x, x * factor)]
        differ += not np.array_equal(*clipped)
        assert explain_infinite_loss(clipping, Pair(x, x * factor)) is None
    assert differ > 5
    assert explain_infinite_loss(clipping, Pair([0.0, 5.0], [5.0, 0.0])) is not None


def test_a_factor_scales_the_end(monkeypatch):
    monkeypatch.setattr(exact, "can_core_draw", lambda mechanism: True)
    halved = surround_noise(factor=0.5)
    assert "below 2 in entry 0" in explain_infinite_loss(halved, Pair([1.0], [4.0]))


VALUE_ERRORS = [
    (lambda: vote_loss(Laplace(1.0), Pair([1.0], [1.0])), "pair", "different in at least one entr"),
    (lambda: explain_infinite_loss(Identity(), Pair([0.0], [1.0, 2.0])), "pair", "equal shape"),
]
TYPE_ERRORS = [
    (lambda: explain_infinite_loss(Identity(), (0, 1)), "pair", "a Pair, got (0, 1)"),
    (lambda: explain_infinite_loss(Identity(), Pair("a", "b")), "x", ""),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
