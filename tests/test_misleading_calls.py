"""Calls that people typed who knew other packages: each error names the argument and the fix."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import dpcore
from dpcore import divergence, pairs, structure
from dpcore.bounds import clopper_pearson


def release(x, size, rng):
    return np.asarray(x) + rng.laplace(size=(size, 1))


P = ([0.0], [1.0])
DRAWN = np.zeros(10)
LAW = np.full(200, 1 / 200)

CALLS = [
    (lambda: dpcore.audit(lambda x, size: x, P, claim=1), "mechanism", "third argument rng"),
    (lambda: dpcore.repeat(lambda x, size: x), "fn", "third argument rng"),
    (lambda: dpcore.audit(lambda x, rng, size: x, P, claim=1), "mechanism", "in this order"),
    (lambda: dpcore.audit(DRAWN, DRAWN, claim=1), "mechanism", "dpcore.audit_outputs"),
    (lambda: dpcore.audit(DRAWN, claim=1), "mechanism", "dpcore.audit_outputs"),
    (lambda: dpcore.audit("laplace", P, claim=1), "mechanism", "dpcore.Laplace(1.0)"),
    (lambda: dpcore.audit(release, P, claim=(1, 1e-5)), "claim", "claim=1, delta=1e-05"),
    (lambda: dpcore.audit(release, P, claim=1, neighbour="l1"), "neighbour", "pairs.L1(1.0)"),
    (lambda: dpcore.audit(release, P, claim=1, neighbour=1.0), "neighbour", "pairs.L1(1.0)"),
    (lambda: dpcore.Laplace(epsilon=1, sensitivity=1), "epsilon", "scale = sensitivity / epsilon"),
    (lambda: dpcore.Laplace(loc=0, scale=1), "loc", "the input is what it is added to"),
    (
        lambda: dpcore.Laplace(1.0).sample(10),
        "sample",
        "x, size)",
    ),
    (lambda: dpcore.Laplace(1.0).rvs(10), "rvs", "x, size)"),
    (lambda: dpcore.audit(release, P, claim=1, sensitivity=1), "sensitivity", "neighbour="),
    (lambda: dpcore.audit(release, P, claim=1, n_samples=1000), "n_samples", "'trials'"),
    (lambda: dpcore.audit(release, X=[0.0], claim=1), "X", "pair = (x, x_prime)"),
    (lambda: dpcore.audit(release, P, claim=1, device="cuda"), "device", "dpcore.torch.mechanism"),
    (
        lambda: dpcore.audit(dpcore.published.ADePT(epsilon=1.0), dim=128),
        "dim",
        "pair=dpcore.pairs.zeros_ones(dim)",
    ),
    (lambda: divergence.kl(LAW, LAW), "y0", "closed_forms.discrete([1.0], p, q)"),
    (lambda: divergence.kl([0.5, 0.5], [0.1, 0.9]), "y0", "closed_forms.discrete"),
    (lambda: divergence.kl(stats.norm(), stats.norm(1)), "y0", "closed_forms.gaussian"),
    (lambda: structure.inspect(release, P), "x", "one input, such as [0.0]"),
    (lambda: clopper_pearson(10, 100, 5, 100), "clopper_pearson", "dpcore.Counts(k, n, k_prime"),
    (
        lambda: dpcore.audit_outputs(DRAWN + np.arange(10), [1, -1] * 5, rows="one_run"),
        "outputs_prime",
        "label= is for labels",
    ),
]
"""The call, the word that its error names, and what to type instead."""


@pytest.mark.parametrize(("call", "name", "fix"), CALLS)
def test_the_error_names_the_argument_and_the_fix(call, name, fix):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call()
    assert name in str(caught.value)
    assert fix in str(caught.value)


def test_an_audit_says_what_its_figures_are_called():
    report = dpcore.audit(release, P, claim=1.0, trials=1000, rng=1, neighbour=pairs.L1(1.0))
    with pytest.raises(AttributeError, match=r"no attribute 'summary': print\(report\)"):
        report.summary()
    with pytest.raises(AttributeError, match="no attribute 'epsilon': epsilon_lower"):
        _ = report.epsilon
    assert not hasattr(report, "other")


def test_calls_that_are_right_pass():
    """The control: none of the checks stops the call that was meant."""
    assert dpcore.audit(release, P, claim=1, delta=1e-5, trials=1000, rng=1).claim == 1.0
    rng = np.random.default_rng(1)
    assert divergence.kl(rng.random(50), rng.random(50), checks=False, error=None, rng=1).k == 20
    assert structure.inspect(release, [0.0], rng=1).passed
    assert clopper_pearson(dpcore.Counts(10, 100, 5, 100)) >= 0.0
