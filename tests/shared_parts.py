"""Mechanisms whose outputs are no real numbers, and the scores that a person would write for them.

Each holds one bit of the input back by `loss`: what else an output holds is random, so that no
output comes twice. On the pair ([0.], [1.]) the privacy loss is exactly `loss`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

PAIR = ([0.0], [1.0])


def bits(x, size, rng, loss):
    """The input's bit by randomised response."""
    kept = rng.random(size) < 1.0 / (1.0 + math.exp(-loss))
    return np.where(kept, int(x[0]), 1 - int(x[0]))


def noisy(x, size, rng, loss):
    return x[0] + rng.laplace(scale=1.0 / loss, size=size)


def letters(size, width, rng):
    return rng.integers(97, 123, (size, width)).astype(np.uint32)


def strings(codes):
    return np.ascontiguousarray(codes).view(f"U{codes.shape[1]}")[:, 0]


def first_letter(x, size, rng, loss):
    codes = letters(size, 12, rng)
    codes[:, 0] = np.where(bits(x, size, rng, loss) == 1, ord("q"), ord("k"))
    return strings(codes)


def last_letter(x, size, rng, loss):
    """As a list of strings of many lengths, the bit in the last letter."""
    told = np.where(bits(x, size, rng, loss) == 1, "q", "k").tolist()
    heads = strings(letters(size, 12, rng)).tolist()
    return [
        head[:length] + end
        for head, length, end in zip(heads, rng.integers(6, 12, size).tolist(), told, strict=True)
    ]


def letter_count(x, size, rng, loss):
    """One more capital somewhere."""
    codes = letters(size, 12, rng)
    place = rng.integers(0, 12, size)
    codes[np.arange(size), place] -= 32 * bits(x, size, rng, loss).astype(np.uint32)
    return strings(np.where(codes < 97, ord("Z"), codes).astype(np.uint32))


def byte_strings(x, size, rng, loss):
    """As a list: an array of bytes would lose the zeros at their ends."""
    rows = rng.integers(0, 256, (size, 8), dtype=np.uint8)
    rows[:, 7] = 7 * bits(x, size, rng, loss)
    return [row.tobytes() for row in rows]


def written(x, size, rng, loss):
    return [f"{value:.6f}" for value in noisy(x, size, rng, loss).tolist()]


def complex_numbers(x, size, rng, loss):
    return noisy(x, size, rng, loss) + 1j * rng.normal(size=size)


def complex_rows(x, size, rng, loss):
    rows = rng.normal(size=(size, 5)) + 1j * rng.normal(size=(size, 5))
    rows.imag[:, 3] = noisy(x, size, rng, loss)
    return rows


RECORD = [("key", "i8"), ("name", "U6"), ("inner", [("value", "f8", (2,)), ("flag", "?")])]


def structured(x, size, rng, loss):
    rows = np.zeros(size, dtype=RECORD)
    rows["key"] = rng.integers(2**62, size=size)
    rows["name"] = strings(letters(size, 6, rng))
    rows["inner"]["value"] = rng.normal(size=(size, 2))
    rows["inner"]["value"][:, 1] = noisy(x, size, rng, loss)
    return rows


def labelled(x, size, rng, loss):
    """Tuples (label, value): numpy would make strings of them."""
    labels = np.array(["red", "green", "blue"])[rng.integers(3, size=size)].tolist()
    return list(zip(labels, noisy(x, size, rng, loss).tolist(), strict=True))


def lengths(x, size, rng, loss):
    """Lists whose length tells: two-sided geometric noise beside what is random."""
    decay = math.exp(-loss)
    noise = rng.geometric(1.0 - decay, size) - rng.geometric(1.0 - decay, size)
    long = np.maximum(0, 6 + int(x[0]) + noise).tolist()
    flat = rng.normal(size=sum(long)).tolist()
    ends = np.cumsum(long).tolist()
    return [flat[end - length : end] for end, length in zip(ends, long, strict=True)]


def places(x, size, rng, loss):
    """Lists of changing length, the third entry from the start tells."""
    rows = rng.normal(size=(size, 8)).tolist()
    values = noisy(x, size, rng, loss).tolist()
    return [
        [*row[:2], value, *row[3:length]]
        for row, value, length in zip(rows, values, rng.integers(3, 9, size), strict=True)
    ]


def endings(x, size, rng, loss):
    """Arrays of changing length, the last entry tells."""
    long = rng.integers(1, 12, size)
    ends = np.cumsum(long)
    flat = rng.normal(size=long.sum())
    flat[ends - 1] = noisy(x, size, rng, loss)
    return np.split(flat, ends[:-1])


def objects(x, size, rng, loss):
    return noisy(x, size, rng, loss).astype(object)


def withheld(x, size, rng, loss):
    """Numbers, and nothing or a word where one is missing."""
    rows = rng.normal(size=size).tolist()
    told = bits(x, size, rng, loss).tolist()
    shown = (rng.random(size) < 0.5).tolist()
    return [row if show else (None, "missing")[bit]
            for row, show, bit in zip(rows, shown, told, strict=True)]  # fmt: skip


def nested(x, size, rng, loss):
    keys, values = rng.normal(size=size).tolist(), noisy(x, size, rng, loss).tolist()
    return [((key, ("value", [value])), "end") for key, value in zip(keys, values, strict=True)]


def mappings(x, size, rng, loss):
    keys, values = rng.normal(size=size).tolist(), noisy(x, size, rng, loss).tolist()
    return [{"id": key, "count": value} for key, value in zip(keys, values, strict=True)]


def sets(x, size, rng, loss):
    told = bits(x, size, rng, loss).tolist()
    rows = rng.integers(0, 10**9, (size, 3)).tolist()
    return [frozenset([*row, "seen"] if bit else row) for row, bit in zip(rows, told, strict=True)]


def long_integers(x, size, rng, loss):
    """Whole numbers beyond 2^64, where floats are 2^18 apart."""
    decay = math.exp(-loss)
    noise = rng.geometric(1.0 - decay, size) - rng.geometric(1.0 - decay, size)
    return [2**70 + 2**40 + int(x[0]) + step for step in noise.tolist()]


class Case(NamedTuple):
    """Outputs, a score for them, and a loss that a claim of 1 does not allow."""

    outputs: Callable
    score: Callable
    broken: float


@dataclass(frozen=True)
class Leaky:
    """The mechanism of a case at a loss."""

    name: str
    loss: float

    def __call__(self, x, size, rng):
        return CASES[self.name].outputs(x, size, rng, self.loss)


def _each(function):
    return lambda outputs: np.array([function(one) for one in outputs], dtype=np.float64)


CASES = {
    "first letter": Case(first_letter, _each(lambda o: ord(o[0])), 2.2),
    "last letter": Case(last_letter, _each(lambda o: ord(o[-1])), 2.2),
    "letter count": Case(letter_count, _each(lambda o: o.count("Z")), 2.2),
    "bytes": Case(byte_strings, _each(lambda o: o[7] if len(o) > 7 else 0), 4.0),
    "written": Case(written, _each(float), 4.0),
    "complex": Case(complex_numbers, lambda o: o.real, 4.0),
    "complex rows": Case(complex_rows, lambda o: o[:, 3].imag, 4.0),
    "structured": Case(structured, lambda o: o["inner"]["value"][:, 1], 4.0),
    "labelled": Case(labelled, _each(lambda o: o[1]), 4.0),
    "lengths": Case(lengths, _each(len), 3.0),
    "places": Case(places, _each(lambda o: o[2]), 4.0),
    "endings": Case(endings, _each(lambda o: o[-1]), 4.0),
    "objects": Case(objects, _each(float), 6.0),
    "withheld": Case(withheld, _each(lambda o: 1.0 if o is None else -1.0 if o == "missing" else 0),
                     4.0),
    "nested": Case(nested, _each(lambda o: o[0][1][1][0]), 4.0),
    "mappings": Case(mappings, _each(lambda o: o["count"]), 4.0),
    "sets": Case(sets, _each(lambda o: "seen" in o), 2.2),
    "long integers": Case(long_integers, _each(lambda o: float(o - 2**70 - 2**40)), 3.0),
}  # fmt: skip
