"""The experiment on linkage of ADePT's rewrites: controls, and the epsilon that is true."""

from __future__ import annotations

import pytest
from shared_experiments import run_experiment

CONFIG = {"quick": True, "claimed": (1000.0,), "variants": ("published", "gaussian")}


@pytest.mark.sweep
@pytest.mark.extras
def test_vectors_are_linked_and_outputs_of_other_texts_are_not():
    result = run_experiment("adept-linkage", **CONFIG)
    published, gaussian, plain = result.rows
    assert published.true == pytest.approx(1000.0 * 96**0.5)
    assert gaussian.true == pytest.approx(1000.0)
    # Without noise no vector but the own one has distance 0.
    assert plain.vector["encoding"].share == plain.vector["likelihood"].share == 1.0
    for row in result.rows:
        assert row.vector["likelihood"].is_above_floor
        assert row.vector["likelihood"].interval[0] >= row.text["encoding"].interval[0]
        for part in row.control:
            assert all(not linked.is_above_floor for linked in part.linkages)
    text = result.table()
    assert "9798!" in text
    assert "1000!" not in text
