"""`dpcore.trace` on noise of the package itself, and on draws of scipy's distributions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import sample
from dpcore.mechanisms import RandomBits, Uniform

X, X_PRIME = [1.0, 0.0, 3.0], [1.0, 1.0, 2.0]


def trace(f, claim=1.0):
    return dpcore.trace(f, (X, X_PRIME), claim=claim, rng=1)


@pytest.mark.parametrize(
    ("function", "loss", "mu"),
    [
        (dpcore.Laplace(2.0), 1.0, 0.0),
        (lambda x: sample(dpcore.Laplace(2.0), x, 1)[0] / 3, 1.0, 0.0),
        (lambda x: sample(dpcore.Laplace(2.0), x, 2), 2.0, 0.0),
        (lambda x, rng: dpcore.Gaussian(2.0)(x, 1, rng)[0], np.inf, np.sqrt(0.5)),
        (dpcore.mechanisms.Exponential(2.0), np.inf, 0.0),
        (lambda x: sample(Uniform(-1.0, 1.0), x, 1), np.inf, 0.0),
        (RandomBits(), 0.0, 0.0),
    ],
)
def test_native_mechanisms_have_the_losses_of_their_laws(function, loss, mu):
    report = trace(function)
    assert (report.loss, report.mu) == (pytest.approx(loss), pytest.approx(mu))


def test_outputs_that_are_filled_are_single_steps():
    """An array that is passed holds no traced numbers: the loss of the step is that of its law."""

    def release(x):
        out = np.empty((1, 3))
        sample(dpcore.Laplace(2.0), x, 1, out=out)
        return out

    report = trace(release)
    assert (report.outcome, report.loss) == ("within the claim on this pair", 1.0)
    assert "Laplace is called at test_own_noise.py" in report.covers


def test_a_fixed_seed_of_a_sample_is_no_noise():
    report = trace(lambda x: sample(dpcore.Laplace(2.0), x, 1, rng=3))
    assert [finding.kind for finding in report.findings] == ["no noise"]


@pytest.mark.parametrize("is_global", [True, False])
@pytest.mark.parametrize(
    ("law", "loss", "mu"),
    [
        (stats.laplace(scale=2.0), 1.0, 0.0),
        (stats.norm(scale=2.0), np.inf, np.sqrt(0.5)),
        (stats.expon(scale=2.0), np.inf, 0.0),
    ],
)
def test_distributions_of_scipy_have_their_losses(law, loss, mu, is_global):
    """Also those that draw from the global generator, which they hold from their import on."""

    def release(x, rng):
        return np.array(x) + law.rvs(3, random_state=None if is_global else rng)

    report = trace(release)
    assert (report.loss, report.mu) == (pytest.approx(loss), pytest.approx(mu))
    assert report.covers.startswith("every noise")
