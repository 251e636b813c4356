"""The adapter of OpenDP: what it finds, draws, claims, and that it changes nothing."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy import stats
from shared_adapters import ALPHA, above_half, laplace_ks, rng
from shared_extras import needs

import dpcore
from dpcore.adapters import OpenDP, adapt


@pytest.fixture(scope="module")
def dp():
    prelude = needs("opendp.prelude")
    prelude.enable_features("contrib")
    return prelude


def opendp_laplace(dp, kind=float, scale=2.0):
    domain = dp.atom_domain(T=kind, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.m.make_laplace(domain, dp.absolute_distance(T=kind), scale=scale)


def opendp_vector(dp, kind=float):
    atom = dp.atom_domain(T=kind, nan=False) if kind is float else dp.atom_domain(T=kind)
    return dp.m.make_laplace(dp.vector_domain(atom), dp.l1_distance(T=kind), scale=2.0)


@pytest.mark.extras
def test_a_measurement_is_found_and_says_what_it_is(dp):
    found = adapt(opendp_laplace(dp))
    assert type(found) is OpenDP
    assert found.name == "OpenDP(AtomDomain(T=f64), AbsoluteDistance(f64) -> MaxDivergence)"
    assert (found.reproducible, found.thread_safe, found.claim) == (False, False, None)
    assert repr(OpenDP(found.measurement, d_in=1.0)).endswith("MaxDivergence, d_in=1.0)")


@pytest.mark.extras
def test_opendp_draws_its_law(dp):
    outputs = adapt(opendp_laplace(dp))(np.array([3.0]), 10_000, rng())
    assert outputs.shape == (10_000,)
    assert laplace_ks(outputs - 3.0, 2.0) > ALPHA
    # At a tenth of a millisecond a call the sample is small: the control is 50 % off.
    assert laplace_ks(outputs - 3.0, 3.0) < ALPHA


@pytest.mark.extras
@pytest.mark.parametrize("x", [0.0, [0.0], np.array([0.0]), np.array(0.0), np.float64(0.0)])
@pytest.mark.parametrize("kind", [float, int])
def test_opendp_scalars(dp, x, kind):
    x = dpcore.Pair(x, x).x
    outputs = adapt(opendp_laplace(dp, kind))(x, 3, rng())
    assert (outputs.shape, outputs.dtype.kind) == ((3,), {float: "f", int: "i"}[kind])


@pytest.mark.extras
@pytest.mark.parametrize("kind", [float, int])
def test_opendp_vectors(dp, kind):
    outputs = adapt(opendp_vector(dp, kind))(dpcore.Pair([1000, 2000], [0, 0]).x, 200, rng())
    assert (outputs.shape, outputs.dtype.kind) == ((200, 2), {float: "f", int: "i"}[kind])
    # The mean of 200 Laplace draws of scale 2 is 0.2 wide: a wrong entry would be 1000 off.
    assert np.allclose(outputs.mean(axis=0), [1000, 2000], atol=10)


@pytest.mark.extras
def test_opendp_never_rounds(dp):
    for make, x in ((opendp_laplace, 0.5), (opendp_vector, np.array([0.5, 1.0]))):
        with pytest.raises(TypeError, match="i32"):
            adapt(make(dp, int))(x, 3, rng())


@pytest.mark.extras
def test_opendp_booleans_and_strings(dp):
    coin = adapt(dp.m.make_randomized_response_bool(0.75))
    for x in (True, np.array([True]), np.array([1.0])):
        outputs = coin(x, 1000, rng())
        assert outputs.dtype == bool
        assert stats.binomtest(int(outputs.sum()), 1000, 0.75).pvalue > ALPHA
        assert stats.binomtest(int(outputs.sum()), 1000, 0.6).pvalue < ALPHA
    words = adapt(dp.m.make_randomized_response(["a", "b", "c"], 0.75))("a", 100, rng())
    assert words.dtype == object
    assert set(words) <= {"a", "b", "c"}


@pytest.mark.extras
def test_opendp_states_what_its_map_says(dp):
    laplace = opendp_laplace(dp, scale=2.0)
    claims = [OpenDP(laplace, d_in=distance).claim for distance in (1.0, 3.0)]
    assert claims == pytest.approx([0.5, 1.5])
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=2.0)
    # rho is no epsilon, and a curve no one pair of numbers.
    assert OpenDP(gaussian, d_in=1.0).stated is None
    curve = dp.c.make_zCDP_to_approxDP(gaussian)
    assert OpenDP(curve, d_in=1.0).stated is None
    fixed = OpenDP(dp.c.make_fix_delta(curve, 1e-6), d_in=1.0)
    assert 2.0 < fixed.stated[0] < 3.0
    # With delta 0 that true statement would be refuted.
    assert (fixed.stated[1], fixed.claim) == (1e-6, None)


# What a measurement's privacy map says of neighbours.


def opendp_sum(dp, metric, kind=float):
    """A bounded sum on data sets, by the metric on them."""
    space = dp.vector_domain(dp.atom_domain(bounds=(0, 1))), metric
    return space >> dp.t.then_sum() >> dp.m.then_laplace(scale=2.0)


@pytest.mark.extras
def test_opendp_with_neighbours_brings_its_claim(dp):
    for measurement, pair in (
        (opendp_laplace(dp, scale=2.0), ([0.0], [1.0])),
        (opendp_laplace(dp, int, scale=2.0), ([0], [1])),
        (opendp_vector(dp), ([0.0, 0.0], [0.5, 0.5])),
        (opendp_vector(dp, int), ([0, 0], [1, 0])),
    ):
        found = dpcore.audit(measurement, pair, neighbour=dpcore.pairs.L1(1.0), trials=100, rng=1)
        assert (found.claim, found.own_claim, found.delta) == (pytest.approx(0.5),) * 2 + (0.0,)
        assert found.name.endswith((", d_in=1.0)", ", d_in=1)"))
        assert "neighbours   L1(radius=1.0), which holds" in str(found)
        # Without a relation nobody knows of which inputs the map should speak.
        assert dpcore.audit(measurement, pair, trials=100, rng=1).claim is None
    wide = dpcore.audit(opendp_vector(dp), pair, neighbour=dpcore.pairs.L1(3.0), trials=100)
    assert wide.claim == pytest.approx(1.5)
    # Whole numbers at most 1.9 apart are at most 1 apart.
    whole = OpenDP(opendp_vector(dp, int)).speaking_of(dpcore.pairs.L1(1.9))
    assert (whole.d_in, whole.claim) == (1, pytest.approx(0.5))


@pytest.mark.extras
def test_the_claim_of_a_measurement_is_tested(dp):
    """A map that speaks of 1 where the inputs differ by 2 would be refuted; it is refused."""
    laplace, options = opendp_laplace(dp, scale=0.5), {"attack": above_half, "trials": 2000}
    near, far = ([0.0], [1.0]), ([0.0], [2.0])
    unit = dpcore.pairs.L1(1.0)
    sound = dpcore.audit(laplace, near, neighbour=unit, rng=1, **options)
    assert (sound.claim, sound.refuted) == (pytest.approx(2.0), False)
    # This event sees 1.490, with a standard error of 0.048.
    assert sound.epsilon_lower > 1.0
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0 .*, got 2.0$"):
        dpcore.audit(laplace, far, neighbour=unit, **options)
    with pytest.raises(ValueError, match=r"^pair must be at L1 distance at most 1.0, got 2.0 "):
        dpcore.audit(OpenDP(laplace, d_in=1.0), far, **options)
    broken = dpcore.audit(laplace, near, neighbour=unit, claim=0.5, **options)
    # A claim that is given wins, and both are shown.
    assert (broken.claim, broken.verdict) == (0.5, "refuted")


@pytest.mark.extras
def test_a_map_with_delta_brings_both_numbers(dp):
    space = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*space, scale=2.0)
    pair, options = ([0.0], [1.0]), {"neighbour": dpcore.pairs.L2(1.0), "trials": 100, "rng": 1}
    fixed = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(gaussian), 1e-6)
    found = dpcore.audit(fixed, pair, **options)
    assert (found.claim, found.delta) == (fixed.map(1.0)[0], 1e-6)
    # At a larger delta the claim stays true; at a smaller one it is another.
    assert dpcore.audit(fixed, pair, delta=1e-3, **options).delta == 1e-3
    with pytest.raises(ValueError, match=r"^delta must be at least 1e-06, as the measurement"):
        dpcore.audit(fixed, pair, delta=1e-9, **options)
    with pytest.raises(ValueError, match=r"^bound must be another than 'conditional'"):
        dpcore.audit(fixed, pair, bound="conditional", **options)
    # A rho is a whole curve, which no delta goes with.
    found = dpcore.audit(gaussian, pair, **options)
    assert found.claim == dpcore.claims.ZCDP(gaussian.map(1.0))
    with pytest.raises(ValueError, match=r"^delta must be left out where claim is a curve"):
        dpcore.audit(gaussian, pair, delta=1e-5, **options)


@pytest.mark.extras
def test_data_sets_of_a_measurement(dp):
    ends = {"added": ([1, 0, 1], [1, 0]), "replaced": ([1, 0, 1], [1, 0, 0])}
    added, replaced = dpcore.pairs.AddRemove(), dpcore.pairs.Replace()
    symmetric = opendp_sum(dp, dp.symmetric_distance())
    # A replaced record is one that is removed and one that is added.
    for name, relation, records in (("added", added, 1), ("replaced", replaced, 2)):
        found = dpcore.audit(symmetric, ends[name], neighbour=relation, trials=100, rng=1)
        assert found.claim == pytest.approx(symmetric.map(records))
    coin = dp.m.make_randomized_response_bool(0.75)
    found = dpcore.audit(coin, (True, False), neighbour=replaced, trials=1000, rng=1)
    assert found.claim == pytest.approx(np.log(3.0))


@pytest.mark.extras
def test_a_relation_that_the_metric_does_not_know_is_an_error(dp):
    vector, pair = opendp_vector(dp), ([0.0, 0.0], [0.5, 0.5])
    text = r"^neighbour must be L1 for a measurement on L1Distance.*\(or give claim=\), got L2"
    with pytest.raises(ValueError, match=text):
        dpcore.audit(vector, pair, neighbour=dpcore.pairs.L2(1.0), trials=100)
    report = dpcore.audit(vector, pair, neighbour=dpcore.pairs.L2(1.0), claim=1.0, trials=100)
    assert (report.claim, report.neighbour) == (1.0, "L2(radius=1.0)")
    with pytest.raises(ValueError, match=r"^distance of neighbours must be d_in = 2.0 of the"):
        dpcore.audit(OpenDP(vector, d_in=2.0), pair, neighbour=dpcore.pairs.L1(1.0), trials=100)
    same = dpcore.audit(OpenDP(vector, d_in=1.0), pair, neighbour=dpcore.pairs.L1(1.0), trials=100)
    assert same.claim == pytest.approx(0.5)


@pytest.mark.extras
def test_opendp_travels_to_another_process(dp):
    content = pickle.dumps(OpenDP(opendp_laplace(dp), d_in=1.0))
    code = f"""
import pickle, numpy as np
mechanism = pickle.loads({content!r})
print(mechanism.claim, mechanism(np.array([0.0]), 3, np.random.default_rng(1)).shape)
"""
    options = {"capture_output": True, "text": True, "timeout": 60, "check": True}
    done = subprocess.run([sys.executable, "-c", code], **options)
    assert done.stdout.split() == [repr(OpenDP(opendp_laplace(dp), d_in=1.0).claim), "(3,)"]


@pytest.mark.extras
@pytest.mark.filterwarnings("ignore:.* draws its own randomness")
def test_opendp_says_how_to_give_its_claim(dp, dp_audit):
    laplace = opendp_laplace(dp)
    with pytest.raises(ValueError, match=r"claim must be given, or neighbour= .*L1.*\.stated"):
        dp_audit(laplace, (0.0, 1.0))
    assert ".stated" in str(dpcore.audit(laplace, (0.0, 1.0), trials=100))
    assert dp_audit(laplace, (0.0, 1.0), claim=0.6, trials=100).counts.n == 100
