"""Real texts: where the ball falls far below what held-out rows certify.

Needs the Medical Abstracts corpus (CC BY-SA 3.0) as medical/abstracts.csv in the folder that the
environment variable DPCORE_DATA names.
"""

from __future__ import annotations

import csv

import numpy as np
import pytest
from shared_extras import data

from dpcore.divergence import renyi
from dpcore.divergence.reliability import ESTIMATE

NEOPLASMS = "1"


@pytest.fixture(scope="module")
def embeddings():
    """TF-IDF and a truncated SVD to 50 coordinates: all other abstracts, and neoplasms."""
    path = data("medical/abstracts.csv")
    decomposition = pytest.importorskip("sklearn.decomposition")
    text = pytest.importorskip("sklearn.feature_extraction.text")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    counted = text.TfidfVectorizer(min_df=2, sublinear_tf=True, stop_words="english")
    words = counted.fit_transform([row["medical_abstract"] for row in rows])
    made = decomposition.TruncatedSVD(50, random_state=0).fit_transform(words)
    neoplasm = np.array([row["condition_label"] == NEOPLASMS for row in rows])
    return made[~neoplasm], made[neoplasm]


@pytest.mark.parametrize("method", ["ball", "auto"])
def test_neoplasms_against_the_rest(embeddings, method):
    rest, neoplasms = embeddings
    assert len(rest) + len(neoplasms) == 2888
    options = {"alphas": [2.0, 4.0], "certified": True, "rows": "independent", "rng": 1}
    estimate = renyi(rest, neoplasms, method=method, **options)
    certified = estimate.certified
    assert (certified[0] > 0.5).all()
    believed = estimate.belief == ESTIMATE
    spread = np.nan_to_num(estimate.std_error, nan=0.0)
    assert not (believed & (estimate.value + 3.0 * spread < certified)).any()
    if method == "ball":
        # The rule is needed: the score beside, or the certificate, lies far above the ball.
        above = np.maximum(estimate.beside.value, certified)
        assert (above[0] > estimate.value[0] + 3.0 * spread[0]).all()
        assert not believed[0].any()
