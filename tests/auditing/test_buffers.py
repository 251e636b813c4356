"""A buffer that is returned again and filled again changes nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from shared_randomness import AUDITS, audited, noise

from dpcore.mechanisms.callables import call_mechanism


class Buffer:
    """Noise in one array for each size, which is filled again in every call."""

    def __init__(self, kind="array"):
        self.kind, self.kept = kind, {}

    def __call__(self, x, size, rng):
        width = 2 if self.kind == "view" else 1
        shape = (size + 3, width) if self.kind == "view" else (size, 1)
        buffer = self.kept.setdefault(size, np.empty(shape))
        buffer[:size, :1] = noise(x, size, rng)
        if self.kind == "memory":
            return np.frombuffer(memoryview(buffer)).reshape(size, 1)
        if self.kind == "subclass":
            return buffer.view(np.matrix)
        return buffer[:size, :1] if self.kind == "view" else buffer


KINDS = ["array", "view", "memory", "subclass"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", ["fixed", "refuted"])
def test_a_buffer_filled_again_changes_nothing(kind, stop):
    options = {"attack": "auto", "stop": stop, "block": 256, "trials": 4096, "claim": 1.5}
    assert audited(Buffer(kind), **options).counts == audited(noise, **options).counts


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_ours_alone(kind):
    buffer, rng = Buffer(kind), np.random.default_rng(1)
    first = call_mechanism(buffer, [0.0], 8, rng)
    before = first.copy()
    assert not any(np.shares_memory(first, array) for array in buffer.kept.values())
    call_mechanism(buffer, [0.0], 8, rng)
    assert np.array_equal(first, before)


def test_what_the_caller_keeps_is_copied_and_what_is_fresh_is_not():
    kept_arrays, addresses = [], []

    def keeping(x, size, rng):
        kept_arrays.append(noise(x, size, rng))
        return kept_arrays[-1]

    def fresh(x, size, rng):
        outputs = rng.normal(size=size)
        addresses.append(outputs.ctypes.data)
        return outputs[:, np.newaxis]

    rng = np.random.default_rng(1)
    outputs = call_mechanism(keeping, [0.0], 8, rng)
    assert np.array_equal(outputs, kept_arrays[0])
    assert not np.shares_memory(outputs, kept_arrays[0])
    assert call_mechanism(fresh, [0.0], 8, rng).ctypes.data == addresses[0]


def test_early_stop_on_a_buffer_refutes_no_more_than_stated():
    audits = max(20, AUDITS // 8)
    options = {"attack": "auto", "stop": "refuted", "trials": 6000, "confidence": 0.9}
    refuted = sum(bool(audited(Buffer(), rng=seed, **options).refuted) for seed in range(audits))
    assert stats.binom.sf(refuted - 1, audits, 0.1) > 1e-4
