"""The catalogue of leaks: every mechanism with its claim, the event of an expert, and its twin."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from leaky_mechanisms import (
    ANSWERS,
    Array,
    Rng,
    Secret,
    add_laplace_noise,
    bit_mask,
    copy_input,
    correlated,
    edge_lists,
    empty_box,
    expert_bit_mask,
    expert_correlated,
    expert_dense,
    expert_edge_lists,
    expert_empty_box,
    expert_float_sets,
    expert_forty_keys,
    expert_hex_text,
    expert_hour_of_day,
    expert_image_bytes,
    expert_json_number,
    expert_json_word,
    expert_kept_cents,
    expert_last_digits,
    expert_optional_keys,
    expert_order_of_keys,
    expert_parity,
    expert_ragged_lists,
    expert_rare_cent,
    expert_rare_none,
    expert_rare_value,
    expert_seven,
    expert_shifted_words,
    expert_shuffled_reports,
    expert_sign_of_product,
    expert_subspace,
    expert_sum_modulo,
    expert_sum_of_words,
    expert_sum_parity,
    expert_text_and_floats,
    expert_towns,
    flip_bit,
    float_sets,
    forty_keys,
    hex_text,
    hour_of_day,
    image_bytes,
    json_fields,
    kept_cents,
    last_digits,
    mix_uniform,
    noise_in_subspace,
    noise_through_matrix,
    one_more_key,
    one_more_place,
    optional_keys,
    order_of_keys,
    parity,
    ragged_lists,
    rare_cent,
    rare_none,
    rare_value,
    shifted_words,
    shuffled_reports,
    sign_of_product,
    sum_modulo,
    sum_of_words,
    sum_parity,
    text_and_floats,
    town_counts,
    town_pairs,
)

import dpcore
from dpcore import Counts, Pair

Mechanism = Callable[[Any, int, Rng], Any]


@dataclass(frozen=True)
class Leak:
    """A mechanism that leaks, and what is known of it.

    Args:
        name: short name, unique.
        output: the output in words.
        mechanism: `(x, size, rng) -> outputs`.
        pair: the two inputs.
        claim: epsilon that is claimed, and false.
        trials: draws on each side.
        expert: outputs -> bools, the event that somebody counts who knows the mechanism; it is
            more likely on `pair.x`.
        twin: the same outputs with the secret randomised to loss 1.
        delta: delta of the claim.
        loss: true loss, which no sound bound exceeds.
    """

    name: str
    output: str
    mechanism: Mechanism
    pair: Pair
    claim: float
    trials: int
    expert: Callable[[Sequence[Any]], Array]
    twin: Mechanism
    delta: float = 0.0
    loss: float = math.inf


def expert_bound(leak: Leak, seed: int, trials: int | None = None) -> float:
    """Return the bound that the expert's event certifies, at confidence .95.

    Args:
        leak: the mechanism.
        seed: seed of the draws.
        trials: draws on each side; None is the leak's own number.
    """
    rng, size = np.random.default_rng(seed), leak.trials if trials is None else trials
    k, k_prime = (
        sum(
            int(np.count_nonzero(leak.expert(leak.mechanism(x, rows, rng))))
            for rows in _split_rows(size)
        )
        for x in (leak.pair.x, leak.pair.x_prime)
    )
    return dpcore.bounds.clopper_pearson(Counts(k, size, k_prime, size), leak.delta)


def _split_rows(size: int) -> list[int]:
    return [min(10_000, size - first) for first in range(0, size, 10_000)]


_PAIR = Pair(1, 0)


def _flip_at_rates(one: float, zero: float) -> Secret:
    return functools.partial(flip_bit, one=one, zero=zero)


def _make_leak(
    name: str,
    output: str,
    mechanism: Mechanism,
    secret: Secret,
    trials: int,
    expert: Callable[[Sequence[Any]], Array],
    *,
    private: Secret = flip_bit,
    loss: float = math.inf,
) -> Leak:
    release = functools.partial(mechanism, secret=secret)
    twin = functools.partial(mechanism, secret=private)
    return Leak(name, output, release, _PAIR, 1.0, trials, expert, twin, loss=loss)


_RARE, _RARE_TWIN = _flip_at_rates(0.002, 0.0), _flip_at_rates(0.002, 0.002 / math.e)
_TENTH = _flip_at_rates(0.9, 0.1)
_MASK = functools.partial(bit_mask, bits=128, bit=70)
_WIDE = functools.partial(noise_in_subspace, latent=64, dim=300)
_TRIPLE = functools.partial(parity, columns=(2, 7, 12, 16))
_FIVE = functools.partial(parity, columns=(0, 1, 3, 4, 5, 6))
_YES_NO = functools.partial(sum_of_words, words=ANSWERS)

LEAKS: tuple[Leak, ...] = (
    _make_leak(
        "dict-40",
        "dict of 40 keys, no. 35 is x",
        forty_keys,
        copy_input,
        5_000,
        expert_forty_keys,
        private=add_laplace_noise,
    ),
    _make_leak(
        "dict-300",
        "dict of 300 optional keys, one there .5 / .01",
        optional_keys,
        _flip_at_rates(0.5, 0.01),
        10_000,
        expert_optional_keys,
        loss=math.log(50),
    ),
    _make_leak(
        "histogram-dict",
        "histogram as dict, secret key",
        town_counts,
        copy_input,
        20_000,
        expert_towns,
    ),
    _make_leak(
        "histogram-pairs",
        "histogram as list of pairs in any order",
        town_pairs,
        copy_input,
        5_000,
        expert_towns,
    ),
    _make_leak(
        "tuple",
        "tuple (text, 40 floats), float 30 is x",
        text_and_floats,
        copy_input,
        5_000,
        expert_text_and_floats,
        private=add_laplace_noise,
    ),
    _make_leak(
        "ragged",
        "ragged lists of 60 to 100, place 30",
        ragged_lists,
        functools.partial(add_laplace_noise, scale=0.25),
        10_000,
        expert_ragged_lists,
        private=add_laplace_noise,
        loss=4.0,
    ),
    _make_leak(
        "edges",
        "edge lists of 30-node graphs, an edge .6 / .05",
        edge_lists,
        _flip_at_rates(0.6, 0.05),
        10_000,
        expert_edge_lists,
        loss=math.log(12),
    ),
    Leak(
        "shuffle",
        "200 shuffled reports as tuples of texts",
        shuffled_reports,
        _PAIR,
        0.2,
        50_000,
        expert_shuffled_reports,
        functools.partial(shuffled_reports, secret=flip_bit, lowest=1, highest=6),
        loss=math.log(0.97 * 8 / 0.03 + 1),
    ),
    _make_leak(
        "json",
        "JSON of 41 fields, the number in the middle",
        json_fields,
        functools.partial(add_laplace_noise, scale=0.25),
        10_000,
        expert_json_number,
        private=add_laplace_noise,
        loss=4.0,
    ),
    _make_leak(
        "json-word",
        "JSON of 41 fields, the word in the middle .6 / .0125",
        functools.partial(json_fields, word=True),
        _flip_at_rates(0.6, 0.0125),
        10_000,
        expert_json_word,
        loss=math.log(48),
    ),
    _make_leak(
        "image",
        "bytes of a 28 x 28 image, a bright region .25 / 0",
        image_bytes,
        _flip_at_rates(0.25, 0.0),
        10_000,
        expert_image_bytes,
    ),
    _make_leak(
        "hex",
        "hex of 256 bits, one .9 / .1",
        hex_text,
        _TENTH,
        20_000,
        expert_hex_text,
        loss=math.log(9),
    ),
    _make_leak(
        "mask-64",
        "bit mask of 64 as an integer, bit 37 .9 / .1",
        bit_mask,
        _TENTH,
        40_000,
        expert_bit_mask,
        loss=math.log(9),
    ),
    _make_leak(
        "mask-128",
        "bit mask of 128 as an integer, bit 70 .9 / .1",
        _MASK,
        _TENTH,
        20_000,
        functools.partial(expert_bit_mask, bit=70),
        loss=math.log(9),
    ),
    _make_leak(
        "set",
        "set of 50 floats, one with noise 1e-4",
        float_sets,
        copy_input,
        5_000,
        expert_float_sets,
    ),
    _make_leak(
        "key-order",
        "order of a dict's keys",
        order_of_keys,
        copy_input,
        5_000,
        expert_order_of_keys,
    ),
    _make_leak(
        "subspace-60",
        "noise in a 60- of 64-dimensional subspace",
        noise_in_subspace,
        copy_input,
        50_000,
        expert_subspace,
        private=add_laplace_noise,
    ),
    _make_leak(
        "subspace-64",
        "noise in a 64- of 300-dimensional subspace",
        _WIDE,
        copy_input,
        20_000,
        functools.partial(expert_subspace, latent=64, dim=300),
        private=add_laplace_noise,
    ),
    *(
        Leak(
            f"dense-{dim}",
            f"A(x + z), A dense {dim} x {dim}, half the noise",
            functools.partial(noise_through_matrix, dim=dim),
            _PAIR,
            1.0,
            40_000,
            functools.partial(expert_dense, dim=dim),
            functools.partial(noise_through_matrix, scale=1.0, dim=dim),
            loss=2.0,
        )
        for dim in (128, 256)
    ),
    _make_leak(
        "xor-2",
        "xor of 2 of 100 bits, .95 / .05",
        parity,
        _flip_at_rates(0.95, 0.05),
        100_000,
        expert_parity,
        loss=math.log(19),
    ),
    _make_leak(
        "xor-3",
        "xor of 3 of 16 bits, .95 / .05",
        _TRIPLE,
        _flip_at_rates(0.95, 0.05),
        100_000,
        functools.partial(expert_parity, columns=(2, 7, 12, 16)),
        loss=math.log(19),
    ),
    _make_leak(
        "correlated",
        "one pair of 128 columns correlated .9",
        correlated,
        copy_input,
        100_000,
        expert_correlated,
    ),
    _make_leak(
        "cents",
        "cents kept where units are noisy",
        kept_cents,
        copy_input,
        50_000,
        expert_kept_cents,
    ),
    _make_leak(
        "digits",
        "last two digits of an integer",
        last_digits,
        copy_input,
        100_000,
        expert_last_digits,
    ),
    _make_leak(
        "hour",
        "hour of day of a time stamp",
        hour_of_day,
        copy_input,
        50_000,
        expert_hour_of_day,
    ),
    _make_leak(
        "one-more-place",
        "one more place with .002 on x alone",
        one_more_place,
        _RARE,
        20_000,
        expert_seven,
        private=_RARE_TWIN,
    ),
    _make_leak(
        "one-more-key",
        "one more key with .002 on x alone",
        one_more_key,
        _RARE,
        20_000,
        expert_seven,
        private=_RARE_TWIN,
    ),
    _make_leak(
        "none",
        "None with 3e-4 / 3e-5 among numbers",
        rare_none,
        _flip_at_rates(3e-4, 3e-5),
        400_000,
        expert_rare_none,
        private=_flip_at_rates(3e-4, 3e-4 / math.e),
        loss=math.log(10),
    ),
    _make_leak(
        "sum-parity",
        "eight counts, parity of their sum .9 / .1",
        sum_parity,
        _TENTH,
        50_000,
        expert_sum_parity,
        loss=math.log(9),
    ),
    _make_leak(
        "rare-value",
        "noisy count, exactly 12.5 with .002 on x alone",
        rare_value,
        _RARE,
        40_000,
        expert_rare_value,
        private=_RARE_TWIN,
    ),
    _make_leak(
        "xor-5",
        "xor of 5 of 6 bits, .9 / .1",
        _FIVE,
        _TENTH,
        20_000,
        functools.partial(expert_parity, columns=(0, 1, 3, 4, 5, 6)),
        loss=math.log(9),
    ),
    _make_leak(
        "shifted-words",
        "40 shuffled words of 2,000, which half .9 / .1",
        shifted_words,
        _TENTH,
        10_000,
        expert_shifted_words,
        loss=math.log(9),
    ),
    _make_leak(
        "rare-cent",
        "12 normal columns, one 9.01 with .001 on x, 9 on x'",
        rare_cent,
        copy_input,
        100_000,
        expert_rare_cent,
    ),
    _make_leak(
        "sum-modulo-3",
        "sum of 3 of 10 integers modulo 3, 5 % noise",
        sum_modulo,
        mix_uniform,
        20_000,
        expert_sum_modulo,
        loss=math.log(58),
    ),
    _make_leak(
        "three-words",
        "the same as words of a sentence",
        sum_of_words,
        mix_uniform,
        20_000,
        expert_sum_of_words,
        loss=math.log(58),
    ),
    _make_leak(
        "yes-no",
        "parity of 3 of 10 words yes and no, .975 / .025",
        _YES_NO,
        _flip_at_rates(0.975, 0.025),
        20_000,
        functools.partial(expert_sum_of_words, words=ANSWERS),
        loss=math.log(39),
    ),
    _make_leak(
        "product-sign",
        "sign of the product of 3 of 6 normal columns",
        sign_of_product,
        copy_input,
        100_000,
        expert_sign_of_product,
    ),
    _make_leak(
        "empty-box",
        "8 uniform columns, on x' a box of 3 of mass .001 is empty",
        empty_box,
        copy_input,
        1_000_000,
        expert_empty_box,
    ),
)
"""Every mechanism, in the order of the record."""
