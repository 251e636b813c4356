"""Wrong arguments and inputs of mechanisms that replace words, each named by its message."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

SMALL = Embedding(("bad", "fine", "good", "grim"), [[0.0], [4.0], [5.0], [1.0]])


def test_wrong_arguments_are_named():
    one = Embedding(("only",), [[1.0]])
    twins = Embedding(("sofa", "bed", "couch"), [[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    for make, message in (
        (lambda: SanText(one, 1.0), "vectors must be those of at least two words"),
        (lambda: SanText(twins, 1.0), "one for 'sofa' and 'couch'"),
        (lambda: SanText(SMALL, 0.0), "epsilon must be"),
        (lambda: SanText(SMALL, math.inf), "epsilon must be"),
        (lambda: TEM(SMALL, 1.0, beta=0.9), "beta must be below 0.75"),
        (lambda: TEM(SMALL, 1.0, beta=0.0), "beta must be"),
        (lambda: CusText(SMALL, 1.0, k=5), "k must be"),
        (lambda: CusText(SMALL, 1.0, k=0), "k must be"),
        (lambda: CusText(SMALL, 1.0, k=2, mapping="bold"), "mapping must be"),
        (lambda: Vickrey(SMALL, 1.0, t=1.1), "t must be"),
        (lambda: MetricLaplace(SMALL, 1e-12), "epsilon must be at least"),
        (lambda: SanTextPlus(SMALL, 1.0, ("cat",)), "sensitive must be words of which"),
        (lambda: SanTextPlus(SMALL, 1.0, ("bad",), p=0.0), "p must be"),
        (lambda: SanTextPlus.rarest(SMALL, 1.0, ["bad"], share=2.0), "share must be"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
    many = Embedding([str(i) for i in range(2**16 + 1)], np.arange(2.0**16 + 1)[:, None])
    with pytest.raises(ValueError, match="vectors must be those of at most 65,536 words"):
        SanText(many, 1.0)("5", 1, 1)
    assert MetricLaplace(many, 1000.0)("5", 3, 1).tolist() == [5, 5, 5]
    with pytest.raises(TypeError, match="vectors must be a Embedding"):
        SanText({"bad": [1.0]}, 1.0)
    with pytest.raises(TypeError, match="sensitive must be a list"):
        SanTextPlus(SMALL, 1.0, "bad")
