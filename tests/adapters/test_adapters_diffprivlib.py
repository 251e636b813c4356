"""The adapter of diffprivlib: what it finds, draws, claims, and that it changes nothing."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest
from scipy import stats
from shared_adapters import ALPHA, above_half, laplace_ks, rng
from shared_extras import needs

import dpcore
from dpcore.adapters import DiffPrivLib, adapt


@pytest.fixture(scope="module")
def dpl():
    return needs("diffprivlib.mechanisms")


@pytest.mark.extras
def test_a_mechanism_of_diffprivlib_is_found_and_says_what_it_is(dpl):
    found = adapt(dpl.Laplace(epsilon=0.5, sensitivity=2.0))
    assert type(found) is DiffPrivLib
    assert found.name.startswith("DiffPrivLib(diffprivlib.mechanisms.laplace.Laplace(epsilon=0.5")
    assert (found.reproducible, found.thread_safe, found.stated) == (False, False, (0.5, 0.0))
    assert (found.claim, found.norm, found.sensitivity) == (0.5, "l1", 2.0)


@pytest.mark.extras
def test_diffprivlib_draws_its_law(dpl):
    outputs = adapt(dpl.Laplace(epsilon=0.5, sensitivity=1.0))(np.array([3.0]), 50_000, rng())
    assert (outputs.shape, outputs.dtype) == ((50_000,), np.float64)
    assert laplace_ks(outputs - 3.0, 2.0) > ALPHA
    # 15 % off is seen at this size.
    assert laplace_ks(outputs - 3.0, 2.3) < ALPHA


@pytest.mark.extras
def test_diffprivlib_keeps_its_own_generator(dpl):
    secure = dpl.Laplace(epsilon=1.0, sensitivity=1.0)
    generator = secure._rng
    mechanism = adapt(secure)
    assert not np.array_equal(mechanism(0.0, 5, rng()), mechanism(0.0, 5, rng()))
    assert secure._rng is generator
    assert isinstance(generator, random.SystemRandom)
    # One with a state goes on where it stands: what the same calls by hand would give.
    seeded, twin = (dpl.Laplace(epsilon=1.0, sensitivity=1.0, random_state=3) for _ in range(2))
    by_hand = [twin.randomise(0.0) for _ in range(6)]
    drawn = [*adapt(seeded)(0.0, 3, rng()), *adapt(seeded)(0.0, 3, rng())]
    assert drawn == by_hand


def diffprivlib_cases(dpl):
    return {
        "Laplace": (dpl.Laplace(epsilon=1.0, sensitivity=2.0), [0.0], [2.0], 1.0),
        "delta": (dpl.Laplace(epsilon=1.0, delta=0.1, sensitivity=1.0), [0.0], [1.0], None),
        "GaussianAnalytic": (dpl.GaussianAnalytic(epsilon=1.0, delta=0.1, sensitivity=3.0),
                             [0.0], [3.0], None),
        "Uniform": (dpl.Uniform(delta=0.1, sensitivity=1.0), [0.0], [1.0], None),
        "Staircase": (dpl.Staircase(epsilon=1.0, sensitivity=1.0), [0.0], [1.0], 1.0),
        "Geometric": (dpl.Geometric(epsilon=1.0, sensitivity=2), [0], [2], 1.0),
        "GaussianDiscrete": (dpl.GaussianDiscrete(epsilon=1.0, delta=0.1), [0], [1], None),
        "GeometricFolded": (dpl.GeometricFolded(epsilon=1.0, lower=0.5, upper=4.5), [1], [2], 1.0),
        "Snapping": (dpl.Snapping(epsilon=1.0, sensitivity=1.0, lower=-5.0, upper=5.0),
                     [-5.0], [-4.0], 1.0),
        "BoundedDomain": (
            dpl.LaplaceBoundedDomain(epsilon=1.0, sensitivity=3.0, lower=10.0, upper=12.0),
            [10.0], [12.0], 1.0),
        "unbounded below": (
            dpl.LaplaceFolded(epsilon=1.0, sensitivity=3.0, lower=-np.inf, upper=1.0),
            [-2.0], [1.0], 1.0),
    }  # fmt: skip


@pytest.mark.extras
def test_diffprivlib_numbers_have_a_pair_and_a_claim(dpl):
    for name, (inner, x, x_prime, claim) in diffprivlib_cases(dpl).items():
        mechanism = adapt(inner)
        pair = mechanism.default_pair()
        assert (pair.x.tolist(), pair.x_prime.tolist()) == (x, x_prime), name
        assert pair.x.dtype == np.asarray(x).dtype, name
        assert mechanism.claim == claim, name
        assert mechanism.stated == (inner.epsilon, inner.delta), name
        for side in (pair.x, pair.x_prime):
            outputs = mechanism(side, 20, rng())
            assert outputs.shape == (20,), name
            assert outputs.dtype.kind in "if", name


@pytest.mark.extras
def test_diffprivlib_other_kinds(dpl):
    binary = adapt(dpl.Binary(epsilon=1.0, value0="a", value1="b"))
    assert binary.default_pair() == dpcore.Pair("a", "b")
    assert (binary.claim, binary.norm, binary.sensitivity) == (1.0, None, None)
    outputs = binary("a", 2000, rng())
    assert outputs.dtype == object
    p = np.e / (1 + np.e)
    assert stats.binomtest(int((outputs == "a").sum()), 2000, p).pvalue > ALPHA
    assert stats.binomtest(int((outputs == "a").sum()), 2000, p - 0.1).pvalue < ALPHA
    # Nothing here can tell which matrices are neighbours: no claim, but what it states is there.
    matrix = adapt(dpl.Bingham(epsilon=1.0, sensitivity=1.0))
    assert (matrix.claim, matrix.stated) == (None, (1.0, 0.0))
    assert matrix(np.eye(3), 4, rng()).shape == (4, 3)
    with pytest.raises(ValueError, match=r"pair must be given for DiffPrivLib\(.*Bingham"):
        matrix.default_pair()


@pytest.mark.extras
def test_diffprivlib_transformers(dpl):
    transforms = needs("diffprivlib.mechanisms.transforms")
    rounded = adapt(transforms.RoundedInteger(dpl.Laplace(epsilon=1.0, sensitivity=1.0)))
    assert (rounded.stated, rounded.claim) == ((1.0, 0.0), None)
    assert rounded(5, 10, rng()).dtype.kind == "i"


@pytest.mark.extras
def test_diffprivlib_complaints_pass_through(dpl):
    with pytest.raises(TypeError, match="Value to be randomised must be a number"):
        adapt(dpl.Laplace(epsilon=1.0, sensitivity=1.0))(np.zeros(2), 3, rng())
    with pytest.raises(TypeError, match="Value to be randomised must be an integer"):
        adapt(dpl.Geometric(epsilon=1.0))(np.array([0.0]), 3, rng())


@pytest.mark.extras
def test_diffprivlib_is_audited(dpl):
    mechanism = adapt(dpl.Laplace(epsilon=1.0, sensitivity=1.0))
    options = {"attack": above_half, "trials": 20_000, "confidence": 0.99}
    sound = dpcore.audit(mechanism, (0.0, 1.0), claim=1.0, **options)
    assert sound.verdict == "not refuted by this attack"
    # This event sees 0.832, with a standard error of 0.012: both ends are ten of them away.
    assert 0.6 < sound.epsilon_lower < 1.0
    assert dpcore.audit(mechanism, (0.0, 1.0), claim=0.5, **options).verdict == "refuted"


@pytest.mark.extras
def test_diffprivlib_brings_its_own_pair_and_claim(dpl):
    mechanism = adapt(dpl.Laplace(epsilon=2.0, sensitivity=1.0))
    report = dpcore.audit(mechanism, attack=above_half, trials=2000)
    assert (report.claim, report.pair) == (2.0, dpcore.Pair(np.array([0.0]), np.array([1.0])))
    with pytest.raises(ValueError, match="pair must be at L1 distance at most 1"):
        dpcore.audit(mechanism, ([0.0], [5.0]), attack=above_half, trials=2000)


@pytest.mark.extras
def test_diffprivlib_is_pickled_with_fresh_entropy_only(dpl):
    mechanism = adapt(dpl.Laplace(epsilon=1.0, sensitivity=1.0))
    again = pickle.loads(pickle.dumps(mechanism))
    assert repr(again) == repr(mechanism)
    assert isinstance(again.mechanism._rng, random.SystemRandom)
    assert not np.array_equal(again(0.0, 5, rng()), mechanism(0.0, 5, rng()))
    # Copies of a generator with a state repeat each other: merged, they would overclaim.
    seeded = adapt(dpl.Laplace(epsilon=1.0, sensitivity=1.0, random_state=3))
    with pytest.raises(TypeError, match="mechanism must be built without random_state"):
        pickle.dumps(seeded)
