"""The true losses of the benchmark's mechanisms."""

from __future__ import annotations

import numpy as np
import pytest
from shared_benchmarks import INF, NAMES, PRINTED

from dpcore.experiments import dp_sniper_table as truth
from dpcore.experiments.dp_sniper_table.mechanisms import BENCHMARKS
from dpcore.records import Pair


@pytest.mark.parametrize("name", NAMES)
def test_suprema(name):
    benchmark, (_, _, value, printed) = BENCHMARKS[name], PRINTED[name]
    exact = truth.exact_supremum(name, benchmark.pairs)
    assert benchmark.supremum == pytest.approx(exact, rel=1e-6)
    digits = len(printed.partition(".")[2])
    assert exact == value or abs(exact - value) <= 0.5 * 10.0**-digits + 1e-12
    # Private means that no pair whatever loses more than the claim.
    assert not benchmark.private or exact <= benchmark.claim + 1e-9
    assert benchmark.private or exact > benchmark.claim


def test_the_loss_of_a_pair_depends_on_the_direction():
    pair = BENCHMARKS["SVT4"].pairs[2]
    sides = (pair.x, pair.x_prime), (pair.x_prime, pair.x)
    one, other = (truth.LOSSES["SVT4"](*both) for both in sides)
    assert abs(one - other) > 1e-3
    assert [truth.exact_supremum("SVT4", [Pair(*both)]) for both in sides] == [max(one, other)] * 2


def test_a_maximum_with_exponential_noise_gives_away_the_smaller_side():
    ones, twos = np.ones(5), np.full(5, 2.0)
    assert truth.noisy_max_value_loss(ones, twos, True) == INF
    assert truth.noisy_max_value_loss(twos, ones, True) == pytest.approx(0.05)
    # Equal starts, but the density begins as a power of the number of largest entries.
    assert truth.noisy_max_value_loss(np.array([1.0, 0.0]), ones[:2], True) == INF
    assert truth.noisy_max_value_loss(ones[:2], np.array([1.0, 0.0]), True) < 1.0


def test_every_released_value_contributes_its_worst():
    # The first value tells most when it is low, the second when it is high.
    x, x_prime, edges = np.array([1.0, 5.0]), np.array([2.0, 4.0]), np.arange(-80.0, 80.0)
    mass = np.repeat(truth._laplace_density(edges, 20.0), truth._SEGMENT_POINTS)
    assert truth._pattern_loss((1, 1), [mass, mass], (x, x_prime), edges, 40.0) == pytest.approx(
        2 / 40
    )


def test_published_figures_are_consistent():
    above = set()
    for name, benchmark in BENCHMARKS.items():
        assert benchmark.name == name
        assert 0 < benchmark.oracle_at_1e8 < benchmark.supremum
        assert benchmark.dp_sniper_best == max(benchmark.dp_sniper)
        assert all(seconds > 0 for seconds in benchmark.dp_sniper_seconds)
        assert (benchmark.statdp is None) == (benchmark.statdp_seconds is None)
        if max(*benchmark.dp_sniper, *(benchmark.statdp or (0,))) > benchmark.supremum:
            above.add(name)
    assert above == {"RAPPOR", "NoisyHist2"}
    assert all(BENCHMARKS[name].note for name in above)
