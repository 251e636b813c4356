"""One measure of what many outputs hold at one place: of regular arrays and of Python objects."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .objects import BYTES, MISSING, NUMBER, OTHER, SEQUENCE, SET, TEXT, WORD, Bunch
from .part import Part
from .texts import Floats, Texts


def of_array(array: npt.NDArray[Any], texts: Texts | None, part: Part, out: Floats) -> None:
    """One measure of a regular array, NaN if it has none such."""
    if array.ndim != 1:
        if part.measure == "times" and array.dtype.kind in "US":
            held = array.reshape(len(array), -1) == part.argument
            out[:] = np.count_nonzero(held, axis=1)
        return
    if part.measure == "kind":
        kind = {"U": TEXT, "S": BYTES, "V": SEQUENCE}.get(array.dtype.kind, NUMBER)
        out[:] = kind == part.argument
    elif texts is not None:
        out[:] = _of_texts(texts, part)
    elif array.dtype.kind in "mM" and part.measure == "value":
        out[:] = np.where(np.isnat(array), np.nan, array.view(np.int64))
    elif array.dtype.kind in "buifc" and part.measure in ("value", "real"):
        out[:] = array.real
    elif array.dtype.kind in "buifc" and part.measure == "imaginary":
        out[:] = array.imag
    elif part.measure == "modulo" and array.dtype.kind in "uifmM":
        numbers = array.view(np.int64) if array.dtype.kind in "mM" else array
        with np.errstate(invalid="ignore"):
            out[:] = np.remainder(numbers, numbers.dtype.type(part.argument))
    elif part.measure == "bit" and array.dtype.kind in "iumM":
        whole = array.view(np.int64) if array.dtype.kind in "mM" else array
        last = 8 * whole.dtype.itemsize - 1
        out[:] = (whole >> whole.dtype.type(min(part.argument, last))) & whole.dtype.type(1)
    elif array.dtype.kind in "iumM" and part.measure == "word":
        out[:] = _word(array.view(np.int64) if array.dtype.kind in "mM" else array, part.argument)


def _word(whole: npt.NDArray[Any], number: int) -> npt.NDArray[np.uint64]:
    """32 bits of whole numbers in two's complement, from bit 32 `number` on."""
    mask = np.uint64(2**WORD - 1)
    if number > 1:
        return np.where(whole < 0, mask, np.uint64(0))
    return (whole.astype(np.uint64) >> np.uint64(WORD * number)) & mask


def _of_texts(texts: Texts, part: Part) -> Floats | float:
    if part.measure == "length":
        return texts.lengths.astype(np.float64)
    if part.measure == "letter":
        return texts.letter(part.argument)
    if part.measure == "count":
        return texts.count(part.argument)
    if part.measure == "bit":
        codes = texts.letter(part.argument // 8)
        flags = (codes.astype(np.int64) >> part.argument % 8) & 1
        return np.where(codes < 0.0, np.nan, flags)
    return texts.numbers() if part.measure == "number" else np.nan


def of_objects(bunch: Bunch, part: Part, out: Floats) -> None:
    """One measure of Python objects, NaN for those that have none such."""
    if part.measure == "kind":
        out[:] = bunch.kinds == part.argument
    elif part.measure in ("value", "real", "imaginary"):
        where, values = bunch.numbers()
        out[where] = values.imag if part.measure == "imaginary" else values.real
    elif part.measure == "word":
        where, words = bunch.words(part.argument)
        out[where] = words
    elif part.measure == "there":
        out[:] = bunch.kinds != MISSING
    elif part.measure == "modulo":
        where, values = bunch.numbers()
        with np.errstate(invalid="ignore"):
            out[where] = np.remainder(values.real, part.argument)
    elif part.measure == "bit" and NUMBER in bunch.present():
        where, flags = bunch.bits(part.argument)
        out[where] = flags
    elif part.measure == "length":
        out[:] = bunch.lengths()
    elif part.measure == "is":
        out[:] = [type(one) is type(part.argument) and one == part.argument for one in bunch.items]
    elif part.measure in ("times", "near"):
        _of_members(bunch, part, out)
    elif part.measure in ("letter", "count", "number", "bit"):
        for kind in (TEXT, BYTES):
            where, texts = bunch.texts(kind)
            if where.size:
                out[where] = _of_texts(texts, part)
    elif part.measure == "holds":
        where, members = bunch.of_kind(SET)
        out[where] = [part.argument in one for one in members]
    else:
        where, found = bunch.of_kind(OTHER)
        numbers = {key: number for number, key in enumerate(part.argument)}
        out[where] = [numbers.get(one, -1) if hashable(one) else -1 for one in found]


def _of_members(bunch: Bunch, part: Part, out: Floats) -> None:
    """Write the number of members that equal a value, or lie in an interval."""
    for kind in (SEQUENCE, SET):
        where, rows = bunch.rows() if kind == SEQUENCE else bunch.of_kind(kind)
        if part.measure == "times" and kind == SEQUENCE:
            out[where] = [_count_equal(one, part.argument) for one in rows]
        elif part.measure == "near":
            low, high = part.argument
            out[where] = [
                sum(isinstance(one, float) and low <= one < high for one in row) for row in rows
            ]


def _count_equal(row: Any, value: Any) -> int:
    try:
        return list(row).count(value)
    except ValueError:
        # An array inside a row compares entry by entry.
        return 0


def hashable(item: Any) -> bool:
    """True for an object that can be looked up in a table."""
    try:
        hash(item)
    except TypeError:
        return False
    return True
