"""Messages of wrong calls of `dpcore.text` with torch: the argument, and a word of the remedy."""

import math

import numpy as np
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch")

from dpcore.text import ADePTModel, Bag, Vocabulary, WordDropout, lm  # noqa: E402
from dpcore.text.redaction import Learned, redact  # noqa: E402
from dpcore.text.words import Embedding  # noqa: E402

WORDS = [f"w{i}" for i in range(30)]

VECTORS = Embedding([*WORDS, "cancer"], np.random.default_rng(1).normal(size=(31, 6)))

TEXTS = ["a train to morwen", "list the fares to garrow", "how late is it", "book two seats"]

VALUE_ERRORS = [
    # The learned policy: what it masks first, its seed, pickling, bad input.
    (lambda: Learned(vectors=VECTORS, share=1.0), "share", "a finite number above 0 and below 1"),
    (lambda: Learned(vectors=VECTORS, hidden=0), "hidden", "an integer at least 1"),
    (lambda: Learned(vectors=VECTORS, epochs=0), "epochs", "an integer at least 1"),
    (lambda: redact(["w1 w2"], Learned(VECTORS), level=0.5), "policy", "fitted before it is used"),
    # ADePT: what is refused, what is said, and what Ctrl-C leaves.
    (lambda: ADePTModel(epsilon=0.0), "epsilon", "a finite number above 0"),
    (lambda: ADePTModel(epsilon=-1.0), "epsilon", "a finite number above 0"),
    (lambda: ADePTModel(epsilon=math.inf), "epsilon", "a finite number above 0"),
    (lambda: ADePTModel(epsilon=math.nan), "epsilon", "a finite number above 0"),
    (lambda: ADePTModel(epsilon=1.0, variant="l2"), "variant", "one of"),
    (lambda: ADePTModel(epsilon=1.0, variant="gaussian"), "delta", "above 0 for 'gaussian'"),
    (lambda: ADePTModel(epsilon=1.0, delta=1e-5), "delta", "above 0 for 'gaussian'"),
    (lambda: ADePTModel(epsilon=1.0, hidden=0), "hidden", "an integer at least 1"),
    (lambda: ADePTModel(epsilon=1.0, clip=0.0), "clip", "a finite number above 0"),
    (lambda: ADePTModel(epsilon=1.0, longest=0), "longest", "an integer at least 1"),
    (lambda: ADePTModel(epsilon=1.0, min_count=0), "min_count", "an integer at least 1"),
    (lambda: ADePTModel(1.0, min_count=9).fit(TEXTS), "min_count", "at most 2"),
    # The bag of words and word pairs: means by hand, unknown words, masks, and their laws.
    (lambda: WordDropout(mu=1.0), "mu", "a finite number at least 0 and below 1"),
    (lambda: WordDropout(mu=-0.1), "mu", "a finite number at least 0 and below 1"),
    (lambda: WordDropout(mu=float("nan")), "mu", "a finite number at least 0 and below 1"),
    (lambda: WordDropout(mu=0.1, masks="all"), "masks", "one of 'bernoulli', 'exact'"),
    (lambda: WordDropout(mu=0.1, mask="zero"), "mask", "one of 'leave_out', 'zero_id'"),
    (lambda: Bag(Vocabulary(["a"], "drop"), 0), "dim", "an integer at least 1"),
    (lambda: Bag(Vocabulary(["a"], "drop", reserved=()), 3, WordDropout(0.5, mask="zero_id")),
     "vocabulary", "one whose number 0 is no word"),
    # Distances of arrays and of next-word models, against formulas computed in another way.
    (lambda: lm.representation_distances(np.eye(3, 2), [[1.0], [1.0, 2.0]]), "b",
     "a matrix of finite numbers"),
]  # fmt: skip
TYPE_ERRORS = [
    # The learned policy: what it masks first, its seed, pickling, bad input.
    (lambda: Learned(vectors={"a": [1.0]}), "vectors", "a Embedding"),
    # The bag of words and word pairs: means by hand, unknown words, masks, and their laws.
    (lambda: Bag("words", 3), "vocabulary", "a Vocabulary"),
    (lambda: Vocabulary(["a"], "drop").spans(3), "text", "a str"),
    (lambda: Bag(Vocabulary(["a"], "drop"), 3, 0.5), "dropout", "a WordDropout"),
    # Distances of arrays and of next-word models, against formulas computed in another way.
    (lambda: lm.representation_distances([["one"], ["two"]], np.eye(2)), "a",
     "a matrix of finite numbers"),
    (lambda: lm.representation_distances(np.eye(3, 2), np.eye(3, 2) * 1j), "b",
     "a matrix of finite numbers"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
