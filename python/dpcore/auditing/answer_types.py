"""Shapes of outputs, and what the types of the two sides say that no comparison of values sees."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..mechanisms.answers import outputs_of
from ..mechanisms.callables import call, generator, name_of
from ..records import Pair
from ..sampling.course import Course
from ..streams import PROBE

_PROBED: Final = 2
_PROBED_LISTS: Final = 64
"""Outputs of a call that tells their shape; of lists, whose lengths may differ, more."""

Outputs = npt.NDArray[Any]

_ORDER = "biufc"
"""Kinds of numbers, each able to hold those before it."""


def shape_of(mechanism: Any, pair: Pair, seed: int, course: Course) -> tuple[int, ...]:
    """The shape of one output; () for Python objects, such as lists of changing length."""
    # Streams that nothing else uses: these calls only tell the shape.
    rng, begun = generator(seed, PROBE, 0, 0), course.clock()
    answer = mechanism(pair.x, _PROBED, rng)
    course.called(_PROBED, course.clock() - begun)
    shape = outputs_of(f"outputs of {name_of(mechanism)}", answer, _PROBED).shape[1:]
    if shape and isinstance(answer, (list, tuple)):
        # Two lists may be equally long by chance.
        for side, x in enumerate((pair.x, pair.x_prime)):
            more = call(mechanism, x, _PROBED_LISTS, generator(seed, PROBE, side, 1))
            course.drew(_PROBED_LISTS)
            shape = shape if more.shape[1:] == shape else ()
    return shape


def types_apart(outputs: Outputs, outputs_prime: Outputs) -> tuple[str, ...]:
    """A note where the outputs on x are of one type and those on x' of another.

    1 and 1.0 are equal, and an audit counts them as one; whoever sees the type does not. Nothing
    is certified: a type is one observation for a call, however many rows it has.

    Nothing is said where the values themselves explain the types (whole numbers became floats
    beside a NaN or a half, a list of strings is as wide as its longest), since scores see those.

    Args:
        outputs: outputs on `x`, shape `(size, ...)`.
        outputs_prime: outputs on `x_prime`, shape `(size', ...)`.

    Returns:
        One sentence, or none.

    Example:
        >>> for note in types_apart(np.zeros(2), np.zeros(2, dtype=np.int64)):
        ...     print(note.split(":")[0])
        outputs on x are of type float64, those on x' of type int64
    """
    if not _apart(outputs, outputs_prime):
        return ()
    named = outputs.dtype, outputs_prime.dtype
    return (
        f"outputs on x are of type {named[0]}, those on x' of type {named[1]}: equal values are "
        "counted as one, but whoever sees the type sees the input",
    )


def _apart(outputs: Outputs, outputs_prime: Outputs) -> bool:
    """Whether two types differ, and not because of the values."""
    one, other = outputs.dtype, outputs_prime.dtype
    if one.kind not in _ORDER or other.kind not in _ORDER:
        return False
    if one.kind == other.kind:
        return one.itemsize != other.itemsize
    wide, kind = outputs, other.kind
    if _ORDER.index(one.kind) < _ORDER.index(kind):
        wide, kind = outputs_prime, one.kind
    return _would_be(wide, kind)


def _would_be(wide: Outputs, kind: str) -> bool:
    """Whether all values could be of a narrower kind, so that their type is not their doing."""
    if wide.dtype.kind == "c":
        return bool((wide.imag == 0.0).all()) and (kind == "f" or _would_be(wide.real, kind))
    if kind == "b":
        return bool(((wide == 0) | (wide == 1)).all())
    if wide.dtype.kind == "u":
        return bool((wide <= np.uint64(np.iinfo(np.int64).max)).all())
    return bool((wide == np.rint(wide)).all() and (np.abs(wide) < 2.0**63).all())
