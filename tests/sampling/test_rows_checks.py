"""Rows that are not independent are never a verdict: each case with its clean twin.

The checks alarm on independent rows with a probability below 1e-6 an audit: the clean audits here
allow no alarm at all.
"""

from __future__ import annotations

import os
import warnings

import numpy as np
import pytest
from shared_rows import EARLY, UNIT, fresh

import dpcore
from dpcore import Pair
from dpcore.attacks import MajorityVote
from dpcore.errors import AssumptionWarning

AUDITS = int(os.environ.get("DPCORE_AUDITS", "100"))
"""DPCORE_AUDITS=3000 runs the whole promise: no alarm in so many audits of clean mechanisms."""


def one_noise(x, size, rng):
    """What `rng.laplace(size=len(x))` becomes where size outputs are wanted."""
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))


def one_coin(x, size, rng):
    return np.full(size, (rng.random() < 0.75) == (x[0] > 0))


def fresh_coins(x, size, rng):
    return (rng.random(size) < 0.75) == (x[0] > 0)


def one_word(x, size, rng):
    return np.full(size, ["no", "yes"][int(rng.random() < 0.4 + 0.2 * x[0])])


def one_object(x, size, rng):
    outputs = np.empty(size, object)
    outputs[:] = [("a", float(x[0] + rng.laplace()))] * size
    return outputs


def one_record(x, size, rng):
    outputs = np.zeros(size, [("label", "U3"), ("value", "f8", 2)])
    outputs["value"], outputs["label"] = x[0] + rng.laplace(size=2), "abc"
    return outputs


def one_complex(x, size, rng):
    return np.full(size, x[0] + rng.laplace() + 1j * rng.laplace())


def one_of_three(x, size, rng):
    """Noise of its own in two places; in the last one noise for all rows of a call."""
    outputs = fresh(x, size, rng)
    outputs[:, 2] = x[2] + rng.laplace()
    return outputs


def at_an_offset(x, size, rng):
    """Noise that is a ten-billionth of the output."""
    return np.full((size, 1), 3e8 + x[0] + 0.1 * rng.laplace())


THREE = Pair([0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
SHARED = {
    "noise": (one_noise, UNIT), "two places": (one_noise, Pair([0.0, 0.0], [1.0, 0.0])),
    "coin": (one_coin, UNIT), "word": (one_word, UNIT), "object": (one_object, UNIT),
    "record": (one_record, UNIT), "complex": (one_complex, UNIT),
    "one of three": (one_of_three, THREE), "offset": (at_an_offset, UNIT),
}  # fmt: skip
MESSAGE = (
    r"^outputs of .* must be drawn anew for every row of a call, got one value for all [\d,]+ rows "
    r"of a call.*: draw the noise with size=\(size, len\(x\)\), .*dpcore\.repeat\(function\)$"
)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("trials", [10, 1000, 10**5])
@pytest.mark.parametrize("more", [{}, EARLY, {"block": 5}], ids=["fixed", "early", "block"])
def test_one_noise_for_a_call_is_an_error(name, trials, more):
    for seed in range(3):
        with pytest.raises(ValueError, match=MESSAGE):
            dpcore.audit(*SHARED[name], claim=1.0, rng=seed, trials=trials, **more)


def test_the_place_is_named_where_there_are_several():
    with pytest.raises(ValueError, match="rows of a call in place 2 of 3 and another"):
        dpcore.audit(one_of_three, THREE, claim=1.0, trials=10**4, rng=1)


def test_it_is_told_before_the_audit_has_begun():
    """After the probe of the shape and two dozen short calls a side, whatever the trials."""
    sizes = []

    def counting(x, size, rng):
        sizes.append(size)
        return one_noise(x, size, rng)

    with pytest.raises(ValueError, match=MESSAGE):
        dpcore.audit(counting, UNIT, claim=1.0, trials=10**9, rng=1)
    assert len(sizes) < 50
    assert sum(sizes) < 2000


def only_long_calls(x, size, rng):
    """A fast path for many outputs, and the mistake is there."""
    return one_noise(x, size, rng) if size > 100 else fresh(x, size, rng)


@pytest.mark.parametrize("more", [{}, EARLY, {"attack": MajorityVote()}, {"threads": 2}])
def test_calls_of_the_audit_itself_are_compared_too(more):
    with pytest.raises(ValueError, match=MESSAGE):
        dpcore.audit(only_long_calls, UNIT, claim=1.0, trials=10**5, rng=1, **more)


def test_calls_of_one_row_say_nothing():
    """With one row a call, noise for a call is noise for a row."""
    report = dpcore.audit(one_noise, UNIT, claim=1.0, trials=300, block=1, rng=1)
    assert (report.refuted, report.checks) == (False, ())


def constant(x, size, rng):
    return np.full((size, 2), 0.1) + 0 * x[0]


def noiseless(x, size, rng):
    return np.tile(x, (size, 1))


def one_place_without_noise(x, size, rng):
    outputs = fresh(x, size, rng)
    outputs[:, 0] = x[0]
    return outputs


def kept_word(x, size, rng):
    """Word kept with probability .999, else any of ten."""
    words = np.array([f"w{i}" for i in range(10)])
    kept = rng.random(size) < 0.999
    return np.where(kept, words[int(x[0])], words[rng.integers(10, size=size)])


def rounded_anew(x, size, rng):
    """No noise; how it is summed depends on the call, as with BLAS: a last place of float32."""
    return np.full((size, 1), 7.3 * (1.0 + rng.integers(2) * 2.0**-52))


def undefined(x, size, rng):
    return np.full((size, 1), np.nan)


def with_sentinel(x, size, rng):
    return np.where(rng.random(size) < 1e-3, 1e12, x[0] + rng.normal(size=size))


CLEAN = {
    "laplace": (fresh, UNIT),
    "three places": (fresh, THREE),
    "coins": (fresh_coins, UNIT),
    "constant": (constant, UNIT),
    "kept word": (kept_word, UNIT),
    "one place without noise": (one_place_without_noise, Pair([0.0, 0.0], [0.0, 1.0])),
    "nan": (undefined, UNIT),
    "repeated": (dpcore.repeat(lambda x, rng: x + rng.laplace(size=len(x))), UNIT),
    "ties": (lambda x, size, rng: x + np.round(rng.laplace(size=(size, 1))), UNIT),
    "rare": (lambda x, size, rng: rng.random(size) < 0.01 * (1 + x[0]), UNIT),
    "sentinel": (with_sentinel, UNIT),
}
"""Half of them have few outputs, on which chance repeats itself most."""


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("more", [{}, EARLY], ids=["fixed", "early"])
def test_clean_mechanisms_pass(name, more):
    mechanism, pair = CLEAN[name]
    audits = max(2, AUDITS // (2 * len(CLEAN)))
    for seed in range(audits):
        sizes = {"trials": (200, 2000, 20_000)[seed % 3], "block": (None, 7, 64, 1000)[seed % 4]}
        with warnings.catch_warnings():
            warnings.simplefilter("error", AssumptionWarning)
            report = dpcore.audit(mechanism, pair, claim=9.0, rng=seed, **sizes, **more)
        assert report.checks == ()


@pytest.mark.parametrize("more", [{}, {"block": 64}])
def test_a_last_place_that_changes_with_the_call_is_no_noise(more):
    """A noiseless number, however it is summed; the vote does not see its last place."""
    options = {"claim": 9.0, "trials": 2000, "attack": MajorityVote(), "rng": 1, **more}
    assert dpcore.audit(rounded_anew, UNIT, **options).checks == ()
