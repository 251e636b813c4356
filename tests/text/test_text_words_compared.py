"""Mechanisms side by side at one largest loss: each figure against a plain computation."""

from __future__ import annotations

import numpy as np
import pytest

from dpcore.text.words import CusText, Embedding, SanText, compare

VECTORS = Embedding([f"w{i}" for i in range(30)], np.random.default_rng(1).normal(size=(30, 5)))


def test_each_figure_is_that_of_its_mechanism():
    found = compare(VECTORS, loss=6.0, rng=1)
    assert [row.name for row in found.rows] == [
        "SanText", "TEM", "MetricLaplace", "Vickrey", "CusText",
    ]  # fmt: skip
    row = found["SanText"]
    rows = SanText(VECTORS, row.epsilon).log_rows(0, 30)
    apart = np.linalg.norm(VECTORS.vectors[:, None] - VECTORS.vectors, axis=2)
    losses = (rows[:, None] - rows).max(axis=2)
    assert losses.max() == pytest.approx(6.0, rel=1e-8) == row.loss
    off = ~np.eye(30, dtype=bool)
    assert row.ratio == pytest.approx((losses[off] / apart[off]).max() / row.epsilon)
    assert row.kept == pytest.approx(np.exp(np.diag(rows)).mean())
    carried = np.cumsum(-np.sort(-np.exp(rows), axis=1), axis=1)
    assert row.support == np.median((carried < 0.95).sum(axis=1) + 1)
    assert (row.infinite_share, row.delta, row.is_exact, row.is_counted) == (0, 0, True, False)
    assert row.words_per_second > 0


def test_noise_has_a_bound_and_counted_shares():
    """The share of words that stay, on 30,000 draws, within 5 standard errors of 200,000 others."""
    row = compare(VECTORS, loss=6.0, rng=2)["MetricLaplace"]
    assert (row.is_exact, row.is_counted, row.ratio) == (False, True, None)
    from dpcore.text.words import MetricLaplace

    inputs = np.arange(200_000) % 30
    kept = (MetricLaplace(VECTORS, row.epsilon).replace(inputs, 3) == inputs).mean()
    assert row.kept == pytest.approx(kept, abs=5 * np.sqrt(0.25 / 30_000))


def test_lists_of_different_words_lose_everything():
    row = compare(VECTORS, loss=6.0, rng=1)["CusText"]
    rows = CusText(VECTORS, 6.0, k=20).log_rows(0, 30)
    with np.errstate(invalid="ignore"):
        infinite = np.isposinf(rows[:, None] - rows).any(axis=2)
    assert row.loss == np.inf
    assert row.infinite_share == pytest.approx(infinite.sum() / (30 * 29))
    assert 0.0 < row.delta <= 1.0


def test_the_table_has_a_line_for_each():
    text = str(compare(VECTORS, loss=2.0, rng=1))
    assert text.splitlines()[0].startswith("30 words, dim=5, sha256")
    assert "2 (bound)" in text
    assert len(text.splitlines()) == 7


def test_a_row_that_is_not_there_is_a_key_error():
    with pytest.raises(KeyError, match="SanTextPlus"):
        compare(VECTORS, loss=2.0, rng=1)["SanTextPlus"]
