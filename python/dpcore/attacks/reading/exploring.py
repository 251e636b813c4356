"""Which parts of the outputs a pilot shows, and of many the most telling ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...errors import mistyped
from .measures import hashable
from .objects import BYTES, MAPPING, NUMBER, OTHER, SEQUENCE, SET, TEXT, WORD, Bunch, mapped
from .part import Part
from .parts import Node, Parts, plain, taken
from .texts import Floats, Texts

Steps = tuple[tuple[str, Any], ...]

_ROWS: Final = 2**14
"""Outputs of each side that are looked at; fewer of wide ones, `_NUMBERS` numbers in all."""
_NUMBERS: Final = 2**22
_BUDGET: Final = 256
"""Parts that are looked for in objects and strings; the places of a sequence share them."""
_KEPT: Final = 64
"""Parts that are kept, or one for every 8 bytes of a regular output."""
_LETTERS: Final = 16
"""Places of letters at either end, and letters that are counted, at most."""
_PLACES: Final = (16, 8)
"""Places of a sequence from its start and, where lengths differ, from its end, at most."""
_MEMBERS: Final = 32
"""Keys of mappings and members of sets that are asked for, the most frequent ones."""
_WRITTEN: Final = 0.5
"""Strings are read as numbers where so many of them are some."""
_DEEPEST: Final = 8
_EXACT: Final = 53
"""Bits of whole numbers that a float64 holds."""
_WORDS: Final = 16
_FEW: Final = 16
_OFTEN: Final = 8
"""Other objects are compared whole where there are few, or each comes so often on average."""
_BINS: Final = 32


def parts_of(outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any], name: str) -> Parts:
    """The parts of pilot outputs that differ from output to output.

    Args:
        outputs: pilot outputs on x, shape `(size, ...)`.
        outputs_prime: the same on x'.
        name: what complaints call the outputs.

    Returns:
        The parts, those of no use left out: constant ones, copies of others, and of very many
        the least telling ones. None where all is constant.

    Raises:
        TypeError: if they hold objects without parts that do not repeat either.
    """
    sides = [side[:_ROWS] for side in (outputs, outputs_prime)]
    pooled = _pooled(*sides)
    found = Parts(tuple(dict.fromkeys(_explored(pooled, (), _BUDGET, name))))
    rows = max(1, _NUMBERS // max(1, len(found.parts)))
    columns = [found(side[:rows]) for side in sides]
    different = _different(np.concatenate(columns))
    most = _most(outputs)
    if len(different) > most:
        best = ranked(*(side[:, different] for side in columns))[:most]
        different = [different[i] for i in sorted(best)]
    return found.only(different)


def ranked(columns: Floats, columns_prime: Floats) -> list[int]:
    """The columns of both sides by how well the pilot tells the sides apart, the best first."""
    pairs = zip(columns[:_ROWS].T, columns_prime[:_ROWS].T, strict=True)
    telling = np.array([_telling(*both) for both in pairs])
    return [int(i) for i in np.argsort(-telling, kind="stable")]


def _pooled(outputs: npt.NDArray[Any], outputs_prime: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Both sides in one array, as objects where they are of two kinds."""
    sides = [outputs, outputs_prime]
    if outputs.dtype.kind == outputs_prime.dtype.kind:
        try:
            return np.concatenate(sides)
        except TypeError:
            # Two tables of different fields.
            pass
    # numpy would write numbers as strings.
    return np.concatenate([side.astype(object) for side in sides])


def _most(outputs: npt.NDArray[Any]) -> int:
    """How many parts are kept: numbers of a regular output are all columns of their own."""
    if outputs.dtype == object or outputs.dtype.kind in "US":
        return _KEPT
    return max(_KEPT, outputs[:1].nbytes // 8)


def _explored(node: Node, steps: Steps, budget: int, name: str) -> Iterator[Part]:
    """Parts of a node, about as many as the budget allows."""
    node = plain(node)
    if isinstance(node, list):
        yield from _of_objects(Bunch(node), steps, budget, name)
        return
    inner: list[tuple[str, Any]] = []
    if node.ndim > 1:
        width = node.size // max(1, len(node))
        inner = [("entry", i) for i in range(width)]
    elif node.dtype.names is not None:
        inner = [("field", field) for field in node.dtype.names]
    for kind, which in inner:
        found = taken(node, kind, which)
        if found is not None:
            share = max(1, budget // len(inner))
            yield from _explored(found, (*steps, (kind, which)), share, name)
    if not inner:
        yield from _of_array(node, steps, budget)


def _of_array(array: npt.NDArray[Any], steps: Steps, budget: int) -> Iterator[Part]:
    """Parts of a regular array of one dimension."""
    kind = array.dtype.kind
    if kind in "US":
        yield from _of_texts(Texts.of_array(array), steps, budget)
    elif kind in "buifcmM":
        yield Part(steps, "real" if kind == "c" else "value")
        if kind == "c":
            yield Part(steps, "imaginary")
        wide = kind in "mM" or (kind in "iu" and array.dtype.itemsize == 8)
        if wide and array.size and _bits(array) > _EXACT:
            yield from (Part(steps, "word", i) for i in range(2))


def _bits(array: npt.NDArray[Any]) -> int:
    whole = array.view(np.int64) if array.dtype.kind in "mM" else array
    return max(int(whole.max()).bit_length(), int(whole.min()).bit_length())


def _of_texts(texts: Texts, steps: Steps, budget: int) -> Iterator[Part]:
    """Length, letters at both ends, counts of the most frequent letters."""
    yield Part(steps, "length")
    most = min(_LETTERS, max(1, budget // 4))
    width = min(most, int(texts.lengths.max(initial=0)))
    yield from (Part(steps, "letter", i) for i in range(width))
    yield from (Part(steps, "letter", -1 - i) for i in range(width))
    yield from (Part(steps, "count", code) for code in texts.frequent(most))
    written = texts.numbers(_ROWS // 4)
    if written.size and np.isfinite(written).mean() >= _WRITTEN:
        yield Part(steps, "number")


def _of_objects(bunch: Bunch, steps: Steps, budget: int, name: str) -> Iterator[Part]:
    """Parts of Python objects, by what they hold."""
    kinds = bunch.present()
    # The first is what all others leave.
    yield from (Part(steps, "kind", kind) for kind in kinds[1:])
    if NUMBER in kinds:
        yield from _of_numbers(bunch, steps)
    for kind in (TEXT, BYTES):
        if kind in kinds:
            yield from _of_texts(bunch.texts(kind)[1], steps, budget)
    if {SEQUENCE, MAPPING, SET} & set(kinds):
        yield Part(steps, "length")
    if OTHER in kinds:
        yield _of_others(bunch.of_kind(OTHER)[1], steps, name)
    if SET in kinds:
        members = Counter(one for items in bunch.of_kind(SET)[1] for one in items)
        yield from (Part(steps, "holds", one) for one, _ in members.most_common(_MEMBERS))
    if len(steps) < _DEEPEST:
        inner = _inner(bunch, kinds, budget)
        for step, items in inner:
            yield from _explored(items, (*steps, step), budget // len(inner), name)


def _inner(bunch: Bunch, kinds: list[int], budget: int) -> list[tuple[tuple[str, Any], list[Any]]]:
    """Places of sequences and keys of mappings, as far as the budget goes, and what is there."""
    found: list[tuple[tuple[str, Any], list[Any]]] = []
    if SEQUENCE in kinds:
        lengths = list(map(len, bunch.rows()[1]))
        start = min(max(lengths), _PLACES[0], budget)
        end = min(max(lengths), _PLACES[1], budget - start) if len(set(lengths)) > 1 else 0
        places = [*range(start), *range(-1, -1 - end, -1)]
        found += [(("place", i), bunch.place(i)) for i in places]
    if MAPPING in kinds:
        keys = Counter(key for one in bunch.of_kind(MAPPING)[1] for key in mapped(one))
        most = keys.most_common(min(_MEMBERS, max(0, budget - len(found))))
        found += [(("key", key), bunch.key(key)) for key, _ in most]
    return found


def _of_numbers(bunch: Bunch, steps: Steps) -> Iterator[Part]:
    if np.iscomplexobj(bunch.numbers()[1]):
        yield from (Part(steps, "real"), Part(steps, "imaginary"))
    else:
        yield Part(steps, "value")
    bits = bunch.longest()
    if bits > _EXACT:
        yield from (Part(steps, "word", i) for i in range(min(_WORDS, bits // WORD + 1)))


def _of_others(found: list[Any], steps: Steps, name: str) -> Part:
    """A table of objects that have no parts; an error where they do not repeat."""
    requirement = "numbers, strings, containers of these, or objects that repeat"
    where = f" ({Part(steps, 'value')})" if steps else ""
    for one in found:
        if not hashable(one):
            raise mistyped(name + where, requirement, type(one))
    table = Counter(found)
    if len(table) > max(_FEW, len(found) / _OFTEN):
        raise mistyped(name + where, requirement, type(found[0]))
    return Part(steps, "which", tuple(one for one, _ in table.most_common(_KEPT)))


def _different(columns: Floats) -> list[int]:
    """Columns that are not constant and no copy of an earlier one."""
    found: list[int] = []
    seen: set[bytes] = set()
    for i, column in enumerate(columns.T):
        ranks = np.ascontiguousarray(column)
        if (ranks == ranks[0]).all() or np.isnan(ranks).all():
            continue
        key = ranks.tobytes()
        if key not in seen:
            seen.add(key)
            found.append(i)
    return found


def _telling(column: Floats, column_prime: Floats) -> float:
    """How differently a column is distributed on both sides: a chi-square of its bins."""
    pooled = np.sort(np.concatenate([column, column_prime]))
    edges = np.unique(pooled[np.linspace(0, pooled.size - 1, _BINS).astype(np.intp)])
    counts = [
        np.bincount(np.searchsorted(edges, side), minlength=edges.size + 1).astype(np.float64)
        for side in (column, column_prime)
    ]
    share = column.size / max(1, column_prime.size)
    apart = (counts[0] - share * counts[1]) ** 2 / np.maximum(counts[0] + counts[1], 1.0)
    # The fewer the bins, the less of it is chance.
    return float(apart.sum()) - edges.size
