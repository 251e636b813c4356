"""Float formats, and mechanisms that compute in them."""

from __future__ import annotations

import numpy as np


def bfloat16(values):
    """Rounded to bfloat16 (to nearest, ties to even), held as float32."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32).astype(np.uint64)
    bits += np.uint64(0x7FFF) + ((bits >> np.uint64(16)) & np.uint64(1))
    kept = (bits >> np.uint64(16)) << np.uint64(16)
    return kept.astype(np.uint32).view(np.float32)


FORMATS = {
    "float64": lambda values: np.asarray(values, np.float64),
    "float32": lambda values: np.asarray(values, np.float32),
    "float16": lambda values: np.asarray(values, np.float16),
    "bfloat16": bfloat16,
}

PLACES = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}


def noisy(name, scale, kept_as=None):
    """x + Laplace noise of a scale; input, noise and sum are each rounded to the format."""
    rounded = FORMATS[name]

    def mechanism(x, size, rng):
        noise = rounded(rng.laplace(0.0, scale, (size, len(x))))
        outputs = rounded(rounded(x) + noise)
        return outputs if kept_as is None else outputs.astype(kept_as)

    return mechanism


def farthest(name):
    """The offset at which noise of scale 1 has 64 last places of a format."""
    return 2.0 ** (PLACES[name] - 1 - 6)


def two_orders(kind, base):
    """A mean of 10^4 numbers, summed forwards for x and backwards for x', plus tenths of noise.

    In real numbers both sides have one law on a lattice, shifted by ten tenths: the loss is 1.
    """
    numbers = np.random.default_rng(7).random(10_000).astype(kind)
    forwards = kind(np.sum(numbers, dtype=kind) / kind(10_000))
    backwards = kind(0)
    for number in numbers[::-1]:
        backwards = kind(backwards + number)
    means = forwards, kind(backwards / kind(10_000))
    share = 1.0 - np.exp(-0.1)

    def mechanism(x, size, rng):
        tenths = rng.geometric(share, (size, 1)) - rng.geometric(share, (size, 1)) + 10 * x
        return (kind(base) + means[x] + kind(0.1) * tenths.astype(kind)).astype(kind)

    return mechanism
