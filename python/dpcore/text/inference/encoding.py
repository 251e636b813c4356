"""Rows that an encoder makes of texts: one of finite numbers each."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import about, invalid, message, mistyped, numeric
from ...mechanisms.texts import (
    BatchCheck,
    TextFunction,
    check_batches,
    choose_by_length,
    look_up,
    rounding_of,
)
from ...progress import LONG_SECONDS
from ...streams.generators import Generators

__all__ = [
    "Vectors",
    "check_encoder",
    "encoder_of",
    "estimate_seconds",
    "rows_given",
    "takes_rng",
    "vectors_of",
]

Vectors = npt.NDArray[np.float64]

_MAX_COMPARED_TEXTS: Final = 8
"""Texts of train that are encoded in batches of others."""
_TIMED_CALL_SIZES: Final = (8, 64)
"""Texts of the calls that are timed: they separate the time of a text from that of a call."""
_ENCODER_STREAM_KEY: Final = 31
"""Names the streams of encoders among those of a seed; the part of the corpus follows."""


def encoder_of(given: Any) -> Callable[..., Any]:
    """Return the function of an encoder: its method `encode` if it has one, else itself.

    Of a dictionary from texts to vectors the function that looks texts up.

    Raises:
        TypeError: if it is neither.
    """
    if isinstance(given, Mapping):
        return lambda texts: look_up(given, texts)
    method = None if isinstance(given, (str, bytes, type)) else getattr(given, "encode", None)
    found: Callable[..., Any] = method if callable(method) else given
    if not callable(found) or isinstance(found, type):
        need = "a function list[str] -> array, an object with one, or a dictionary text -> vector"
        raise mistyped("encode", need, given)
    # A method stays one: checks and claims look at its object.
    return found if found is method else _wrap_encoder(found)


def _wrap_encoder(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a list of texts, with an argument `rng` where the given one has it."""
    if hasattr(function, "__self__"):
        return function
    wrapped = TextFunction(function)
    return (lambda texts, rng: wrapped(texts, rng=rng)) if takes_rng(function) else wrapped


def vectors_of(
    encode: Callable[..., Any],
    parts: Sequence[Sequence[str]],
    seed: int,
    places: Sequence[Any] | None = None,
) -> list[Vectors]:
    """Compute the vectors of all texts, each part in a separate call.

    An encoder with an argument `rng` gets a generator of its own for each call, so that no noise
    of one part comes again in another.

    Args:
        encode: list[str] -> array of shape (n, d).
        parts: the texts.
        seed: of the streams.
        places: the positions of each part's texts in the corpus, for complaints, which quote none.

    Returns:
        One array of float64 a part, shape (n, d).

    Raises:
        TypeError: if the encoder does not return real numbers.
        ValueError: if it returns another number of rows, of changing width, NaN or infinity.
    """
    noisy, made = takes_rng(encode), list[Vectors]()
    for part, texts in enumerate(parts):
        more: dict[str, Any] = {}
        if noisy:
            sequence = np.random.SeedSequence(seed, spawn_key=(_ENCODER_STREAM_KEY, part))
            more["rng"] = np.random.Generator(np.random.PCG64(sequence))
        rows = range(len(texts)) if places is None else places[part]
        vectors = _check_vectors(encode(list(texts), **more), rows)
        if made and vectors.shape[1] != made[0].shape[1]:
            raise _vectors_error(f"{made[0].shape[1]} wide as before", f"{vectors.shape[1]}")
        made.append(vectors)
    return made


def estimate_seconds(encode: Callable[..., Any], parts: Sequence[Sequence[str]]) -> float:
    """Estimate the time for encoding all texts from one or two small calls, before the first part.

    Generators are left as they were. A call that fails gives no estimate: the encoder fails again
    on the first part, whose message is about all of its texts.

    Args:
        encode: list[str] -> array of shape (n, d).
        parts: the texts.

    Returns:
        Seconds; 0 where nobody knows.
    """
    more = {"rng": np.random.default_rng(_ENCODER_STREAM_KEY)} if takes_rng(encode) else {}
    sizes, taken = list[int](), list[float]()
    total = sum(map(len, parts))
    with Generators.everywhere():
        for most in _TIMED_CALL_SIZES:
            # In even steps: the order may go by length.
            texts = list(parts[0][:: max(1, len(parts[0]) // most)][:most])
            begun = time.perf_counter()
            try:
                encode(texts, **more)
            except Exception:
                return 0.0
            sizes.append(len(texts))
            taken.append(time.perf_counter() - begun)
            if total * taken[-1] / sizes[-1] <= LONG_SECONDS or sizes[-1] == len(parts[0]):
                return total * taken[-1] / sizes[-1]
    # What the first call took more than the second, which has more texts, is its start.
    few, many = min(taken), taken[-1]
    each = (many - few) / (sizes[-1] - sizes[0])
    return total * each + len(parts) * max(0.0, few - sizes[0] * each)


def check_encoder(
    encode: Callable[..., Any], texts: Sequence[str], rounding: float | None, places: Sequence[int]
) -> BatchCheck:
    """Check that a text has the same vector whatever other texts are encoded with it.

    Of an object with noise, such as a `PrivateEncoder`, its method `clean` is checked. Generators
    are left as they were.

    Args:
        encode: list[str] -> array of shape (n, d).
        texts: some of different lengths are chosen.
        rounding: see `rounding_of`.
        places: their positions in the corpus, for complaints, which quote no text.

    Returns:
        The `BatchCheck`; of a random encoder the reason why nothing was compared.

    Raises:
        ValueError: if the vectors change.
    """
    clean = getattr(getattr(encode, "__self__", None), "clean", None)
    bare, dtype = clean if callable(clean) else encode, ["float64"]

    def vectors(some: list[str]) -> Vectors:
        found = bare(some)
        dtype[0] = str(getattr(found, "dtype", "float64"))
        return _check_vectors(found, range(len(some)))

    chosen = choose_by_length(texts, _MAX_COMPARED_TEXTS)
    place = dict(zip(texts, places, strict=True))
    shown = [f"text {place[text]} of the corpus" for text in chosen]
    if bare is encode and takes_rng(encode):
        reason = "the encoder takes rng, so that it is random"
        return BatchCheck(np.nan, rounding_of(rounding, dtype[0]), len(chosen), reason)
    return check_batches(
        vectors, chosen, lambda: rounding_of(rounding, dtype[0]), name="encode", shown=shown
    )


def rows_given(
    encode: Any, rows: Any, texts: Sequence[str], places: Sequence[Any]
) -> list[Vectors]:
    """Take rows that were made elsewhere, part by part.

    Args:
        encode: None, for the rows take its place.
        rows: one for each text, shape (n, d).
        texts: all texts of the corpus.
        places: the positions of each part's texts among them.

    Raises:
        TypeError: if `encode` is given, too, or the rows are no numbers.
        ValueError: if they are not one for each text, or not finite.
    """
    if encode is not None:
        raise mistyped("encode", "None where vectors are given", encode)
    array = _check_vectors(rows, range(len(texts)), "vectors")
    return [array[place] for place in places]


def takes_rng(encode: Callable[..., Any]) -> bool:
    """Return True for an encoder with an argument `rng`."""
    try:
        return "rng" in inspect.signature(encode).parameters
    except (TypeError, ValueError):
        # Some compiled functions have no signature.
        return False


def _check_vectors(found: Any, places: Sequence[int], name: str = "encode(texts)") -> Vectors:
    """Return finite float64 vectors, one for each text; complaints name places and no text."""
    if hasattr(found, "toarray"):
        raise about(
            mistyped(name, "a dense array, which .toarray() makes", found), name.partition("(")[0]
        )
    if hasattr(found, "detach"):
        # A tensor may need gradients, be on a device, or have a dtype that numpy lacks.
        found = found.detach().cpu().double()
    requirement = f"an array of shape ({len(places)}, d), a row of finite numbers for each text"
    try:
        array = numeric(name, requirement, found)
    except (TypeError, ValueError) as error:
        # What an encoder returns may hold its texts.
        kind = type(error)(message(name, requirement, f"a {type(found).__name__}"))
        raise about(kind, name.partition("(")[0]) from None
    if array.ndim != 2 or len(array) != len(places) or array.shape[1] == 0:
        raise _vectors_error(requirement, array.shape, name)
    vectors = np.ascontiguousarray(array, dtype=np.float64)
    bad = np.flatnonzero(~np.isfinite(vectors).all(axis=1))
    if bad.size:
        text = (
            f"{name} must be {requirement}, got NaN or infinity in {bad.size:,} of "
            f"{len(places):,} rows, first for text {places[bad[0]]} of the corpus"
        )
        raise about(ValueError(text), name.partition("(")[0])
    return vectors


def _vectors_error(requirement: str, value: Any, name: str = "encode(texts)") -> ValueError:
    return about(invalid(name, requirement, value), name.partition("(")[0])
