"""Redaction of medical abstracts, neoplasms against the rest: figures of howto/redaction.md.

Tolerances are three standard deviations or more over ten draws of the other set, or five splits.
"""

from __future__ import annotations

import numpy as np
import pytest
from shared_extras import data, needs

from dpcore.divergence import renyi
from dpcore.experiments.corpora import TextOptions, read_two_sets
from dpcore.text import TfidfSVD
from dpcore.text.redaction import Random, Ranked, redact, sweep


@pytest.fixture(scope="module")
def sets():
    """Return 599 neoplasms, as many others, and the abstracts that are left."""
    needs("sklearn")
    found = read_two_sets(TextOptions(data=str(data()), trials=599))
    order = np.random.default_rng(1).permutation(len(found.rest)).tolist()
    drawn, public = ([found.rest[row] for row in rows] for rows in (order[:599], order[599:]))
    return found.sensitive, drawn, public


@pytest.mark.parametrize(
    ("level", "rows", "kl", "d2", "spread"),
    [
        (0.0, 599, 1.17, 1.62, 0.24),
        (0.0, 359, 0.94, 1.31, 0.24),
        (0.0, 180, 0.51, 0.76, 0.18),
        (0.5, 599, 0.87, 1.30, 0.21),
        (0.8, 599, 0.33, 0.57, 0.36),
        (0.9, 599, 0.09, 0.17, 0.15),
        (0.95, 599, 0.03, 0.05, 0.15),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_divergence_falls_with_masks_and_grows_with_rows(sets, level, rows, kl, d2, spread):
    sensitive, safe, public = (
        redact(texts, Random(), level=level, rng=seed) for seed, texts in enumerate(sets)
    )
    encoder = TfidfSVD(50).fit(public)
    vectors = encoder(sensitive)[:rows], encoder(safe)[:rows]
    options = {"alphas": [1, 2], "method": "score", "k": 20, "rng": 1}
    found = renyi(*vectors, certified=True, rows="independent", **options)
    assert found.value.mean(axis=0) == pytest.approx([kl, d2], abs=spread)
    assert (found.certified <= found.value + spread).all()
    # The control: labels permuted, where the truth is 0.
    both = np.random.default_rng(1).permutation(np.vstack(vectors))
    null = renyi(both[:rows], both[rows:], error=None, checks=False, **options)
    assert abs(null.value).max() < 0.1


def test_the_attack_falls_to_a_coin_and_documents_stay_linked(sets):
    policies = [Random(), Ranked()]
    found = sweep(
        *sets[:2], policies=policies, levels=[0, 0.5, 0.9, 0.95, 1], splits=2, nulls=2, rng=1
    )
    for policy, accuracies in (
        ("random", (0.80, 0.78, 0.62, 0.56, 0.5)),
        ("ranked", (0.80, 0.68, 0.60, 0.53, 0.5)),
    ):
        attack = [point.mean("accuracy") for point in found.of(policy)]
        assert attack == pytest.approx(accuracies, abs=0.13)
        assert attack[0] - attack[3] > 0.1
    point = found["random", 0.95]
    assert [one.share > 0.8 for one in point.linkages] == [True, True]
    assert point.divergence.certified.max() < 0.2
    assert not found["random", 1].divergence.value.any()
