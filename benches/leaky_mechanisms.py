"""Mechanisms that leak their input through one part of an output, and the events of an expert.

Every mechanism is `(x, size, rng) -> outputs` and is audited on the inputs 1 and 0. All parts of
an output but one are noise that does not depend on the input. The remaining part is the secret,
which a second function draws: `copy` leaks the input, `flip` and `blur` randomise it.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
Rng = np.random.Generator
Secret = Callable[[int, int, Rng], Array]

KEEP = math.e / (1 + math.e)
"""Probability of the true bit in randomised response of loss 1."""


# The secrets: what is drawn for an input that is 1 or 0.


def copy_input(x: int, size: int, rng: Rng) -> Array:
    """Return the input."""
    return np.full(size, float(x))


def flip_bit(x: int, size: int, rng: Rng, one: float = KEEP, zero: float = 1 - KEEP) -> Array:
    """Draw a bit that is 1 with probability `one` on 1 and `zero` on 0."""
    return (rng.random(size) < (one if x else zero)).astype(float)


def add_laplace_noise(x: int, size: int, rng: Rng, scale: float = 1.0) -> Array:
    """Add Laplace noise to the input."""
    return x + rng.laplace(scale=scale, size=size)


# Dictionaries

_FIELDS = [f"field_{i:02d}" for i in range(41)]
_FORTY = _FIELDS[:40]
_OPTIONAL = [f"item_{i:03d}" for i in range(300)]
_RATES = np.random.default_rng(1).uniform(0.1, 0.7, 300)
_STARTS = ("ash", "bat", "big", "brook", "sand", "small", "stone", "wood")
_ENDS = ("bury", "dale", "ford", "ham", "mouth", "ton", "ville", "wick")
_TOWNS = [
    start + end
    for start, end in itertools.product(_STARTS, _ENDS)
    if (start, end) not in {("small", "ville"), ("big", "ville")}
]


def forty_keys(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> list[dict[str, float]]:
    """Return dicts of 40 numbers; the secret stands at key 35."""
    values = rng.laplace(size=(size, 40))
    values[:, 35] = secret(x, size, rng)
    return [dict(zip(_FORTY, row, strict=True)) for row in values.tolist()]


def expert_forty_keys(outputs: Sequence[Any]) -> Array:
    """Compare key 35 with one half."""
    return np.array([row[_FORTY[35]] for row in outputs]) > 0.5


def optional_keys(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> list[dict[str, int]]:
    """Return dicts of up to 300 keys; the secret is whether key 170 is there."""
    there = rng.random((size, 300)) < _RATES
    there[:, 170] = secret(x, size, rng)
    values = rng.integers(1, 10, (size, 300)).tolist()
    return [
        dict(zip(itertools.compress(_OPTIONAL, row), value, strict=False))
        for row, value in zip(there.tolist(), values, strict=True)
    ]


def expert_optional_keys(outputs: Sequence[Any]) -> Array:
    """Look for key 170."""
    return np.array([_OPTIONAL[170] in row for row in outputs])


def town_counts(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> list[dict[str, int]]:
    """Return noisy counts of 63 towns by name; the secret names one of them."""
    counts = 200 + np.rint(rng.laplace(scale=20.0, size=(size, 63))).astype(int)
    towns = sorted([*_TOWNS, "bigville"]), sorted([*_TOWNS, "smallville"])
    return [
        dict(zip(towns[int(bit)], row, strict=True))
        for bit, row in zip(secret(x, size, rng), counts.tolist(), strict=True)
    ]


def town_pairs(
    x: int, size: int, rng: Rng, secret: Secret = copy_input
) -> list[list[tuple[str, int]]]:
    """Return the counts of `town_counts` as pairs in any order."""
    rows = [list(row.items()) for row in town_counts(x, size, rng, secret)]
    orders = rng.permuted(np.tile(np.arange(63), (size, 1)), axis=1).tolist()
    return [[row[place] for place in order] for row, order in zip(rows, orders, strict=True)]


def expert_towns(outputs: Sequence[Any]) -> Array:
    """Look for the town."""
    return np.array(["smallville" in dict(row) for row in outputs])


def order_of_keys(
    x: int, size: int, rng: Rng, secret: Secret = copy_input
) -> list[dict[str, float]]:
    """Return dicts of eight numbers; the secret is the order of two keys."""
    values = rng.laplace(size=(size, 8)).tolist()
    names = _FORTY[:8]
    orders = (names, [*names[:3], names[4], names[3], *names[5:]])
    return [
        dict(zip(orders[int(bit)], row, strict=True))
        for bit, row in zip(secret(x, size, rng), values, strict=True)
    ]


def expert_order_of_keys(outputs: Sequence[Any]) -> Array:
    """Look which of the two keys comes first."""
    return np.array([list(row)[3] == _FORTY[4] for row in outputs])


def one_more_key(
    x: int, size: int, rng: Rng, secret: Secret = copy_input
) -> list[dict[str, float]]:
    """Return dicts of six numbers; the secret is whether a seventh key is there."""
    values = rng.laplace(size=(size, 7)).tolist()
    return [
        dict(zip(_FORTY[: 6 + int(bit)], row, strict=False))
        for bit, row in zip(secret(x, size, rng), values, strict=True)
    ]


def expert_seven(outputs: Sequence[Any]) -> Array:
    """Look for seven parts."""
    return np.array([len(row) == 7 for row in outputs])


# Sequences and sets

_EDGES = list(itertools.combinations(range(30), 2))
_EDGE = _EDGES.index((11, 23))
_ANSWERS = np.array(
    ["daily", "weekly", "monthly", "yearly", "once", "twice", "seldom", "never"], object
)
_REPORTS = np.array(
    ["-".join(parts) for parts in itertools.product(("low", "top"), ("dry", "wet"), ("am", "pm"))],
    object,
)
_USERS = 200


def text_and_floats(
    x: int, size: int, rng: Rng, secret: Secret = copy_input
) -> list[tuple[Any, ...]]:
    """Return tuples of a text and 40 floats; the secret is float 30."""
    values = rng.laplace(size=(size, 40))
    values[:, 30] = secret(x, size, rng)
    words = _ANSWERS[rng.integers(0, 8, size)]
    return [(word, *row) for word, row in zip(words.tolist(), values.tolist(), strict=True)]


def expert_text_and_floats(outputs: Sequence[Any]) -> Array:
    """Compare float 30 with one half."""
    return np.array([row[31] for row in outputs]) > 0.5


def ragged_lists(
    x: int, size: int, rng: Rng, secret: Secret = add_laplace_noise
) -> list[list[float]]:
    """Return lists of 60 to 100 numbers; the secret stands at place 30."""
    values = rng.laplace(size=(size, 100))
    values[:, 30] = secret(x, size, rng)
    lengths = rng.integers(60, 101, size).tolist()
    return [row[:length] for row, length in zip(values.tolist(), lengths, strict=True)]


def expert_ragged_lists(outputs: Sequence[Any]) -> Array:
    """Compare place 30 with 1."""
    return np.array([row[30] for row in outputs]) > 1.0


def edge_lists(
    x: int, size: int, rng: Rng, secret: Secret = flip_bit
) -> list[list[tuple[int, int]]]:
    """Return the edges of random graphs on 30 nodes; the secret is one of them."""
    there = rng.random((size, len(_EDGES))) < 0.2
    there[:, _EDGE] = secret(x, size, rng)
    return [list(itertools.compress(_EDGES, row)) for row in there.tolist()]


def expert_edge_lists(outputs: Sequence[Any]) -> Array:
    """Look for the edge."""
    return np.array([_EDGES[_EDGE] in row for row in outputs])


def shuffled_reports(
    x: int, size: int, rng: Rng, secret: Secret = copy_input, lowest: int = 0, highest: int = 7
) -> list[tuple[str, ...]]:
    """Return 200 shuffled answers, each replaced at random with probability .03.

    One user gives the first or the last answer, which is the secret, all others one between.

    Args:
        x: the input.
        size: number of outputs.
        rng: where the randomness comes from.
        secret: draws the user's answer.
        lowest: number of the first answer that replaces others.
        highest: number of the last one.
    """
    codes = np.tile(1 + np.arange(_USERS, dtype=np.int8) % 6, (size, 1))
    codes[:, 0] = np.where(secret(x, size, rng), 0, 7)
    replaced = rng.random(codes.shape) < 0.03
    codes[replaced] = rng.integers(lowest, highest + 1, np.count_nonzero(replaced), np.int8)
    rows = _REPORTS[rng.permuted(codes, axis=1)]
    return [tuple(row) for row in rows.tolist()]


def expert_shuffled_reports(outputs: Sequence[Any]) -> Array:
    """Count the first answer."""
    return np.array([row.count("low-dry-am") for row in outputs]) >= 4


def float_sets(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> list[set[float]]:
    """Return sets of 50 floats; the secret is one of them, with noise of scale 1e-4."""
    values = rng.uniform(-4.0, 4.0, (size, 50))
    values[:, 0] = secret(x, size, rng) + rng.laplace(scale=1e-4, size=size)
    return [set(row) for row in values.tolist()]


def expert_float_sets(outputs: Sequence[Any]) -> Array:
    """Look for a float near 1."""
    return np.array([any(abs(value - 1.0) < 3e-4 for value in row) for row in outputs])


def one_more_place(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> list[list[float]]:
    """Return lists of six numbers; the secret is whether a seventh is there."""
    values = rng.laplace(size=(size, 7)).tolist()
    return [row[: 6 + int(bit)] for bit, row in zip(secret(x, size, rng), values, strict=True)]


def rare_none(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> list[float | None]:
    """Return numbers; the secret is whether a None stands in place of one."""
    values = rng.laplace(size=size).tolist()
    return [None if bit else value for bit, value in zip(secret(x, size, rng), values, strict=True)]


def expert_rare_none(outputs: Sequence[Any]) -> Array:
    """Look for None."""
    return np.array([row is None for row in outputs])


# Texts, bytes and integers


def json_fields(
    x: int, size: int, rng: Rng, secret: Secret = add_laplace_noise, word: bool = False
) -> list[str]:
    """Return JSON of 41 fields; the secret is the one in the middle, a number or a word."""
    values = rng.laplace(size=(size, 41))
    drawn = secret(x, size, rng)
    values[:, 20] = drawn
    answers = _ANSWERS[rng.integers(0, 8, (size, 41))]
    answers[:, 20] = np.where(drawn > 0, "daily", "weekly")
    words = {4, 12, 28, 36} | ({20} if word else set())
    return [
        json.dumps({name: texts[i] if i in words else row[i] for i, name in enumerate(_FIELDS)})
        for row, texts in zip(np.round(values, 3).tolist(), answers.tolist(), strict=True)
    ]


def expert_json_number(outputs: Sequence[Any]) -> Array:
    """Compare the number in the middle with 1."""
    return np.array([json.loads(row)["field_20"] for row in outputs]) > 1.0


def expert_json_word(outputs: Sequence[Any]) -> Array:
    """Read the word in the middle."""
    return np.array(['"field_20": "daily"' in row for row in outputs])


def image_bytes(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> list[bytes]:
    """Return images of 28 x 28 bytes; the secret is whether a region of 3 x 3 is bright."""
    pixels = rng.integers(0, 200, (size, 28, 28), np.uint8)
    bright = secret(x, size, rng) > 0
    pixels[bright, 14:17, 9:12] = 200 + pixels[bright, 14:17, 9:12] % 50
    return [image.tobytes() for image in pixels]


def expert_image_bytes(outputs: Sequence[Any]) -> Array:
    """Compare one pixel of the region with 200."""
    return np.array([row[14 * 28 + 9] >= 200 for row in outputs])


def hex_text(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> list[str]:
    """Return 256 random bits in hexadecimal; the secret is bit 3 of byte 14."""
    data = rng.integers(0, 256, (size, 32), np.uint8)
    data[:, 14] = (data[:, 14] & 0xF7) | (secret(x, size, rng).astype(np.uint8) << 3)
    return [row.tobytes().hex() for row in data]


def expert_hex_text(outputs: Sequence[Any]) -> Array:
    """Read the bit."""
    return np.array([int(row[29], 16) >> 3 for row in outputs]) == 1


def bit_mask(
    x: int, size: int, rng: Rng, secret: Secret = flip_bit, bits: int = 64, bit: int = 37
) -> list[int]:
    """Return random bits as an integer; the secret is one of them."""
    data = rng.integers(0, 256, (size, bits // 8), np.uint8)
    mask = 1 << bit % 8
    data[:, bit // 8] = (data[:, bit // 8] & (255 - mask)) | (
        secret(x, size, rng).astype(np.uint8) * np.uint8(mask)
    )
    return [int.from_bytes(row.tobytes(), "little") for row in data]


def expert_bit_mask(outputs: Sequence[Any], bit: int = 37) -> Array:
    """Read the bit."""
    return np.array([value >> bit & 1 for value in outputs]) == 1


def last_digits(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return noisy hundreds; the secret is the last two digits, 37 or 77."""
    hundreds = 5_000 + np.rint(rng.laplace(scale=1e4, size=size)).astype(np.int64)
    return 100 * hundreds + np.where(secret(x, size, rng) > 0, 77, 37)


def expert_last_digits(outputs: Sequence[Any]) -> Array:
    """Read the last two digits."""
    return np.asarray(outputs) % 100 == 77


def hour_of_day(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return noisy times in POSIX seconds; the secret is the hour of the day, 9 or 14."""
    days = 19_700 + np.rint(rng.laplace(scale=30.0, size=size)).astype(np.int64)
    hours = np.where(secret(x, size, rng) > 0, 14, 9)
    return 86_400 * days + 3_600 * hours + rng.integers(0, 3_600, size)


def expert_hour_of_day(outputs: Sequence[Any]) -> Array:
    """Read the hour."""
    return np.asarray(outputs) // 3_600 % 24 == 14


def kept_cents(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return noisy units; the secret is their cents, .37 or .88."""
    units = 5_000 + np.rint(rng.laplace(scale=1e4, size=size))
    return units + np.where(secret(x, size, rng) > 0, 0.88, 0.37)


def expert_kept_cents(outputs: Sequence[Any]) -> Array:
    """Read the cents."""
    return np.rint(100 * np.asarray(outputs)) % 100 == 88


# Columns that depend on each other


@functools.cache
def _draw_matrix(rows: int, columns: int) -> Array:
    return np.random.default_rng([rows, columns]).standard_normal((rows, columns))


@functools.cache
def _draw_normal_vector(latent: int, dim: int) -> Array:
    """Return the first unit vector less its part in the row space of the decoder."""
    basis, _ = np.linalg.qr(_draw_matrix(latent, dim).T)
    return np.eye(dim)[0] - basis @ basis[0]


def noise_in_subspace(
    x: int, size: int, rng: Rng, secret: Secret = copy_input, latent: int = 60, dim: int = 64
) -> Array:
    """Return Laplace noise of few dimensions in many; the secret is added to the first entry."""
    outputs = rng.laplace(size=(size, latent)) @ _draw_matrix(latent, dim)
    outputs[:, 0] += secret(x, size, rng)
    return outputs


def expert_subspace(outputs: Sequence[Any], latent: int = 60, dim: int = 64) -> Array:
    """Project on a direction in which there is no noise."""
    normal = _draw_normal_vector(latent, dim)
    return np.asarray(outputs) @ normal > 0.5 * normal[0]


def noise_through_matrix(x: int, size: int, rng: Rng, scale: float = 0.5, dim: int = 128) -> Array:
    """Return A(x + z) with a dense matrix A; one entry of x is the input."""
    noise = rng.laplace(scale=scale, size=(size, dim))
    noise[:, dim // 3] += x
    return noise @ _draw_matrix(dim, dim)


@functools.cache
def _invert_matrix(dim: int) -> Array:
    return np.linalg.inv(_draw_matrix(dim, dim))


def expert_dense(outputs: Sequence[Any], dim: int = 128) -> Array:
    """Invert A and compare the entry with 1."""
    return np.asarray(outputs) @ _invert_matrix(dim)[:, dim // 3] > 1.0


def parity(
    x: int, size: int, rng: Rng, secret: Secret = flip_bit, columns: tuple[int, ...] = (23, 71, 100)
) -> Array:
    """Return random bits; the secret is the parity of some of them.

    Args:
        x: the input.
        size: number of outputs.
        rng: where the randomness comes from.
        secret: draws the parity.
        columns: the bits that have it, and the number of all bits.
    """
    *chosen, dim = columns
    bits = rng.integers(0, 2, (size, dim), np.uint8)
    bits[:, chosen[0]] = secret(x, size, rng)
    for column in chosen[1:]:
        bits[:, chosen[0]] ^= bits[:, column]
    return bits


def expert_parity(outputs: Sequence[Any], columns: tuple[int, ...] = (23, 71, 100)) -> Array:
    """Compute the parity."""
    return np.asarray(outputs)[:, list(columns[:-1])].sum(axis=1) % 2 == 1


def correlated(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return 128 normal columns; the secret is whether two of them correlate .9."""
    outputs = rng.standard_normal((size, 128))
    together = secret(x, size, rng) > 0
    outputs[together, 120] = 0.9 * outputs[together, 3] + math.sqrt(0.19) * outputs[together, 120]
    return outputs


def expert_correlated(outputs: Sequence[Any]) -> Array:
    """Compare the difference of the two columns with .25."""
    outputs = np.asarray(outputs)
    return np.abs(outputs[:, 3] - outputs[:, 120]) < 0.25


def sum_parity(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> Array:
    """Return eight counts with wide noise; the secret is the parity of their sum."""
    counts = np.rint(rng.laplace(scale=1e4, size=(size, 8))).astype(np.int64)
    counts[:, 5] += (counts.sum(axis=1) + secret(x, size, rng).astype(np.int64)) % 2
    return counts


def expert_sum_parity(outputs: Sequence[Any]) -> Array:
    """Compute the parity of the sum."""
    return np.asarray(outputs).sum(axis=1) % 2 == 1


def rare_value(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return a noisy count; the secret is whether it is exactly 12.5."""
    return np.where(secret(x, size, rng) > 0, 12.5, rng.laplace(10.0, 5.0, size))


def expert_rare_value(outputs: Sequence[Any]) -> Array:
    """Look for the value."""
    return np.asarray(outputs) == 12.5


_NUMBERS = np.random.default_rng(2).permutation(26**4)[:2_000].tolist()
_WORDS = ["".join(chr(97 + n // 26**i % 26) for i in range(4)) for n in _NUMBERS]
_FIRST_HALF = frozenset(_WORDS[:1_000])


def shifted_words(x: int, size: int, rng: Rng, secret: Secret = flip_bit) -> list[str]:
    """Return 40 words in any order; the secret is which half of 2,000 words has most of them."""
    second = rng.random((size, 40)) > np.where(secret(x, size, rng) > 0, 0.75, 0.25)[:, np.newaxis]
    words = rng.integers(0, 1_000, (size, 40)) + 1_000 * second
    return [" ".join(map(_WORDS.__getitem__, row)) for row in words.tolist()]


def expert_shifted_words(outputs: Sequence[Any]) -> Array:
    """Count the words of the first half."""
    return np.array([sum(map(_FIRST_HALF.__contains__, row.split())) for row in outputs]) > 20


# What three columns show together, and what only a rare output shows

_COLUMNS = [1, 4, 7]
COLOURS, ANSWERS = ("red", "green", "blue"), ("no", "yes")


def mix_uniform(x: int, size: int, rng: Rng, modulus: int = 3) -> Array:
    """Return the input, or in 5 % of the outputs a uniform number below the modulus."""
    return np.where(rng.random(size) < 0.05, rng.integers(0, modulus, size), x)


def sum_modulo(
    x: int, size: int, rng: Rng, secret: Secret = mix_uniform, modulus: int = 3
) -> Array:
    """Return ten uniform numbers; the secret is the sum of three of them modulo a number."""
    outputs = rng.integers(0, modulus, (size, 10))
    rest = secret(x, size, rng).astype(np.int64) - outputs[:, _COLUMNS[:2]].sum(axis=1)
    outputs[:, _COLUMNS[2]] = rest % modulus
    return outputs


def expert_sum_modulo(outputs: Sequence[Any], modulus: int = 3) -> Array:
    """Compute the sum."""
    return np.asarray(outputs)[:, _COLUMNS].sum(axis=1) % modulus == 1


def sum_of_words(
    x: int,
    size: int,
    rng: Rng,
    secret: Secret = mix_uniform,
    words: tuple[str, ...] = COLOURS,
) -> list[str]:
    """Return the numbers of `sum_modulo` as words of a sentence."""
    rows = sum_modulo(x, size, rng, secret, len(words)).tolist()
    return [" ".join(map(words.__getitem__, row)) for row in rows]


def expert_sum_of_words(outputs: Sequence[Any], words: tuple[str, ...] = COLOURS) -> Array:
    """Compute the sum of the numbers that the words stand for."""
    rows = [[words.index(word) for word in row.split()] for row in outputs]
    return expert_sum_modulo(rows, len(words))


def sign_of_product(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return six normal columns; the secret is the sign of the product of three of them."""
    outputs = rng.standard_normal((size, 6))
    sign = np.where(secret(x, size, rng) > 0, 1.0, -1.0) * np.sign(outputs[:, 0] * outputs[:, 2])
    outputs[:, 5] = sign * np.abs(outputs[:, 5])
    return outputs


def expert_sign_of_product(outputs: Sequence[Any]) -> Array:
    """Compute the sign."""
    return np.asarray(outputs)[:, [0, 2, 5]].prod(axis=1) > 0


def rare_cent(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return 12 normal columns, one of which is 9 in a thousandth; the secret is a cent more."""
    outputs = rng.standard_normal((size, 12))
    is_rare = rng.random(size) < 1e-3
    outputs[:, 5] = np.where(is_rare, 9.0 + 0.01 * secret(x, size, rng), outputs[:, 5])
    return outputs


def expert_rare_cent(outputs: Sequence[Any]) -> Array:
    """Compare the column with 9.005."""
    return np.asarray(outputs)[:, 5] > 9.005


def empty_box(x: int, size: int, rng: Rng, secret: Secret = copy_input) -> Array:
    """Return eight uniform columns; the secret is whether a box in three of them stays empty."""
    outputs = rng.random((size, 8))
    is_empty = secret(x, size, rng) == 0
    while (again := is_empty & expert_empty_box(outputs)).any():
        outputs[again] = rng.random((np.count_nonzero(again), 8))
    return outputs


def expert_empty_box(outputs: Sequence[Any]) -> Array:
    """Look into the box."""
    places = np.asarray(outputs)[:, [1, 3, 6]] - [0.337, 0.512, 0.718]
    return ((places >= 0.0) & (places < 0.1)).all(axis=1)
