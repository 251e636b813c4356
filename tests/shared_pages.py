"""Audits of every kind and their pages."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dpcore
from dpcore import Counts, Laplace, Pair, published
from dpcore.attacks import MajorityVote
from dpcore.results.audit_page import make_page


def noisy(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))


def positive(outputs, outputs_prime, pair):
    return lambda drawn: drawn > 0


NASTY = "<script>alert('1')</script> & \"quoted\" $x^{$"
LONG = Pair(np.arange(40.0), np.arange(40.0) + 0.25)


def audit(*arguments, **options):
    """With the vote, whose reports do not change when the default attack learns something."""
    return dpcore.audit(*arguments, **{"attack": MajorityVote(), **options})


AUDITS = {
    "refuted": audit(published.DPText(1.0), trials=10**5, rng=1),
    "not refuted": audit(published.LaplaceMechanism(1.0), trials=10**5, rng=1),
    "no claim": audit(dpcore.Identity(), trials=1000, rng=1),
    "nan": audit(published.DPText(1.0, nan="keep"), trials=10**4, rng=1),
    "distance": audit(Laplace(1.0), Pair([0.0], [3.0], 3.0), trials=10**5, claim=1.0, rng=1),
    "delta": audit(Laplace(1.0), trials=10**5, claim=1.0, delta=1e-3, rng=1),
    "delta, distance": audit(
        Laplace(1.0), Pair([0.0], [3.0], 3.0), trials=10**5, claim=0.5, delta=1e-3, rng=1
    ),
    "nothing certified": audit(Laplace(50.0), trials=100, claim=1.0, rng=1),
    "delta too large": audit(Laplace(1.0), trials=1000, claim=1.0, delta=0.9, rng=1),
    "callable": audit(noisy, LONG, trials=2000, claim=1.0, rng=1),
    "no pilot": audit(Laplace(1.0), trials=50, claim=1.0, rng=1),
    "own objects": audit(
        lambda x, size, rng: rng.normal(size=size),
        Pair(NASTY, {"a": range(1)}),
        attack=positive,
        trials=1000,
        claim=1.0,
        rng=1,
    ),
}
AUDITS["partial"] = replace(
    AUDITS["refuted"], partial=True, stop="interrupted", bound="anytime", end=10**6
)
AUDITS["nasty name"] = replace(AUDITS["refuted"], mechanism=NASTY * 5 + "\x00\x1b\ud800\uffff")
LETTERS = "unbreakable" * 40
AUDITS["large counts"] = replace(
    AUDITS["nan"],
    counts=Counts(10**15, 3 * 10**15, 1, 3 * 10**15),
    ranges=((0, 3 * 10**15),),
    end=3 * 10**15,
    nan=10**16,
    nan_prime=1,
)
AUDITS["long words"] = replace(
    AUDITS["own objects"], mechanism=LETTERS, event=LETTERS, attack=LETTERS, seed=2**63 - 1
)


class _Pages(dict):
    """Each page is made when it is first asked for: not by whoever collects tests."""

    def __missing__(self, name):
        self[name] = make_page(AUDITS[name])
        return self[name]


PAGES = _Pages()
