"""Rewriters of texts as mechanisms."""

import math

import numpy as np
import pytest

import dpcore
from dpcore.text import Rewriter

PAIR = ("a good film", "a bad film")


def randomised(texts, rng):
    """Every word kept with probability 3/4, or one of four: a loss of ln 13 a word."""
    words = ("a", "good", "bad", "film")
    return [
        " ".join(
            word if rng.random() < 0.75 else words[int(rng.integers(4))] for word in text.split()
        )
        for text in texts
    ]


def test_a_rewriter_keeps_its_loss_and_half_of_it_is_refuted():
    loss = math.log((0.75 + 0.0625) / 0.0625)
    report = dpcore.audit(Rewriter(randomised, claim=loss), PAIR, trials=20_000, rng=2)
    assert report.refuted is False
    assert 0.9 * loss < report.epsilon_lower <= loss
    assert report.randomness == "seed"
    assert dpcore.audit(Rewriter(randomised), PAIR, claim=loss / 2, trials=20_000, rng=2).refuted


def test_one_with_its_own_randomness_is_audited_too():
    own = np.random.default_rng(5)
    rewriter = Rewriter(lambda texts: randomised(texts, own))
    report = dpcore.audit(rewriter, PAIR, claim=1.0, trials=20_000, rng=2)
    assert (report.refuted, report.randomness) == (True, "own")


def shout(text):
    return text.upper()


def shout_all(texts):
    return [text.upper() for text in texts]


def pick(text, rng):
    return str(rng.choice(text.split()))


def pick_annotated(batch: list[str], rng):
    return [pick(text, rng) for text in batch]


KINDS = {
    "text": (shout, "text", "text"),
    "texts": (shout_all, "texts", "texts"),
    "text and rng": (pick, "text", "text"),
    "annotated list": (pick_annotated, "texts", "texts"),
    "annotated text": (str.upper, None, "text"),
    "first call, text": (lambda x: x.upper(), None, "text"),
    "first call, list": (lambda x: [text.upper() for text in x], None, "texts"),
    "first call, text and rng": (lambda x, rng: pick(x, rng), None, "text"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_signature_or_the_first_call_settles_if_a_function_takes_one_text(kind):
    function, before, after = KINDS[kind]
    rewriter = Rewriter(function)
    assert rewriter.takes == before
    rewrites = rewriter("a good film", 3, np.random.default_rng(1))
    assert rewriter.takes == after
    draw = np.random.default_rng(1)
    if "rng" in kind:
        expected = [pick("a good film", draw) for _ in range(3)]
    elif kind == "annotated list":
        expected = pick_annotated(["a good film"] * 3, draw)
    else:
        expected = ["A GOOD FILM"] * 3
    assert rewrites == expected


def test_a_function_of_one_text_is_audited_as_one_of_a_list():
    reports = [
        dpcore.audit(Rewriter(function), PAIR, claim=1.0, trials=20_000, rng=2)
        for function in (lambda text, rng: randomised([text], rng)[0], randomised)
    ]
    assert reports[0].counts == reports[1].counts
    assert reports[0].refuted
