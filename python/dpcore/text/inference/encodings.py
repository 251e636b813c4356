"""Repeated encodings of the training texts, if the encoder is random."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...errors import integer, invalid, tag_error
from ...mechanisms.texts import takes_rng
from ...progress import LONG_SECONDS
from ...records import Record
from ...suggestions import explain_argument_errors
from .attackers import ENCODER_STREAM_KEY, Vectors, check_vectors, make_generator

_MAX_COPIES: Final = 10
_MIN_COPIES: Final = 2
_MAX_COPIED_NUMBERS: Final = 8_000_000
"""Largest number of entries of all encodings together, such as 10 encodings of 2,000 x 384. At this
size, the attackers take 2.0 times the CPU time that they take with one encoding. With 10 encodings
of 3,600 x 64, the factor is 1.6."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Encodings(Record, word="Encodings"):
    """Number of encodings of each training text, and the reason if this number is 1.

    An encoding is the result of one call of a random encoder. Validation and test texts are always
    encoded once.

    Attributes:
        copies: number of encodings of each training text.
        reason: reason why `copies` is 1; empty if `copies` is larger than 1.
    """

    copies: int
    reason: str = ""

    def __str__(self) -> str:
        """Return one line with the number of encodings, for a report."""
        if self.copies == 1:
            return f"each text once: {self.reason}"
        return f"each training text {self.copies} times, validation and test texts once"


def default_copies(vectors: Vectors) -> int:
    """Compute the default number of encodings of each training text from the size of one encoding.

    An encoding is the array of the vectors of all training texts, from one call of a random
    encoder. The default number is 10 if 10 encodings together have at most 8 million entries.
    Otherwise the default is a smaller number, but at least 2.

    Example:
        >>> [default_copies(np.zeros(shape)) for shape in ((3600, 64), (6000, 384), (9000, 768))]
        [10, 3, 2]
    """
    return int(np.clip(_MAX_COPIED_NUMBERS // vectors.size, _MIN_COPIES, _MAX_COPIES))


def encode_again(
    encode: Callable[..., Any],
    texts: Sequence[str],
    first: Vectors,
    places: Sequence[int],
    seed: int,
    first_seconds: float | None,
    copies: int | None,
) -> tuple[list[Vectors], Encodings]:
    """Encode the training texts again several times, unless the run time would be too long.

    Every call of the encoder gets a different random generator. Therefore the noise of the
    encodings is independent.

    Args:
        encode: function list[str] -> array of shape (n, d).
        texts: the training texts.
        first: first encoding of the training texts, shape (n, d).
        places: positions of the texts in the corpus, for error messages.
        seed: seed of the random generators.
        first_seconds: run time of the first encoding, in seconds. With None, no attacker learns
            from several encodings, and the texts are not encoded again.
        copies: total number of encodings, including the first encoding. With None, the total is the
            number from `default_copies`, or 1 if the further encodings would take more than 30 s.

    Returns:
        A pair. The first entry is the list of the further encodings. The second entry is an object
        with the total number of encodings, and with the reason if this number is 1.

    Raises:
        ValueError: if `copies` is above 1 and the encoder has no argument `rng`.
    """
    number = default_copies(first) if copies is None else integer("copies", copies, 1)
    if not takes_rng(encode):
        if copies is not None and number > 1:
            raise invalid("copies", "1 or None for an encoder without rng", copies)
        return [], Encodings(1, "the encoder has no rng=")
    if first_seconds is None:
        return [], Encodings(1, "no attacker learns from several encodings")
    if number == 1:
        return [], Encodings(1, "copies=1")
    if copies is None and first_seconds * (number - 1) > LONG_SECONDS:
        limit = f"{number - 1} more encodings of train would take longer than {LONG_SECONDS:g} s"
        return [], Encodings(1, f"{limit} (copies={number} makes them)")
    further = list[Vectors]()
    for copy in range(1, number):
        rng = make_generator(seed, ENCODER_STREAM_KEY, 0, copy)
        vectors = check_vectors(encode(list(texts), rng=rng), places)
        if vectors.shape[1] != first.shape[1]:
            requirement = f"{first.shape[1]} wide as before"
            raise tag_error(invalid("encode(texts)", requirement, f"{vectors.shape[1]}"), "encode")
        if copy == 1 and np.array_equal(vectors, first):
            return [], Encodings(1, "two calls of the encoder agree")
        further.append(vectors)
    return further, Encodings(number)
