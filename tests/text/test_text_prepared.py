"""A corpus that is cut into words once, for many trainings."""

from __future__ import annotations

import numpy as np
import pytest
from shared_extras import needs

torch = needs("torch")

from dpcore.text import DPNR, TfidfSVD, WordDropout, generated, schedules  # noqa: E402


@pytest.fixture(scope="module")
def corpus():
    return generated("topics", 300, rng=1)


def test_a_prepared_corpus_gives_the_same_model(corpus):
    ready = DPNR(epsilon=1.0).prepare(corpus)
    assert "240 texts" in repr(ready)
    fits = {"schedule": schedules.Constant(5.0), "epochs": 3, "pair": False, "rng": 3}
    for dim in (4, 8):
        first = DPNR(dim, epsilon=5.0).fit(corpus, **fits)
        again = DPNR(dim, epsilon=5.0).fit(ready, **fits)
        assert first.trained == again.trained
        assert torch.equal(first.extractor.embedding.weight, again.extractor.embedding.weight)
        assert torch.equal(first.head.weight, again.head.weight)
    assert DPNR(epsilon=1.0).prepare(ready) is ready


def test_another_vocabulary_is_refused(corpus):
    ready = DPNR(epsilon=1.0).prepare(corpus)
    zeroed = WordDropout(0.5, mask="zero_id")
    for other in ({"unknown": "token"}, {"min_count": 2}, {"dropout": zeroed}):
        with pytest.raises(ValueError, match=r"^corpus must be prepared with"):
            DPNR(epsilon=1.0, **other).fit(ready, epochs=1)
    # Whoever leaves masked words out has the same vocabulary as whoever masks none.
    DPNR(epsilon=1.0, dropout=WordDropout(0.5)).fit(ready, epochs=1, pair=False)
    with pytest.raises(TypeError, match=r"^corpus must be a Corpus"):
        DPNR(epsilon=1.0, extractor=TfidfSVD(4)).fit(ready, epochs=1)
    with pytest.raises(ValueError, match=r"^extractor must be None"):
        DPNR(epsilon=1.0, extractor=TfidfSVD(4)).prepare(corpus)
    with pytest.raises(TypeError, match=r"^corpus must be a Corpus"):
        DPNR(epsilon=1.0).prepare(["a text"])


def test_no_word_is_masked_in_training_without_noise(corpus):
    """Of equal seeds come equal weights: the masks would draw numbers, and change the rows."""
    plain = DPNR(4, epsilon=1.0).fit(corpus, epochs=2, pair=False, rng=1)
    masked = DPNR(4, epsilon=1.0, dropout=WordDropout(0.2)).fit(corpus, epochs=2, pair=False, rng=1)
    assert torch.equal(plain.head.weight, masked.head.weight)
    assert masked.extractor.dropout == WordDropout(0.2)
    noisy = schedules.Constant(50.0)
    with_noise = [
        DPNR(4, epsilon=1.0, dropout=dropout).fit(
            corpus, schedule=noisy, epochs=2, pair=False, rng=1
        )
        for dropout in (None, WordDropout(0.2))
    ]
    first, second = (model.head.weight.detach().numpy() for model in with_noise)
    assert not np.array_equal(first, second)
