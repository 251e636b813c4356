"""Differences between two inputs: between vectors by entry, datasets by record, texts by word."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, flat_list_to_floats, has_masked, integer, invalid, mistyped, show
from ..packages import has_all, has_array_method, is_tensor
from ..records import Floats, Pair, frozen_array, pair_of
from ..suggestions import explain_argument_errors

MAX_SHOWN_CHANGES: Final = 8
"""Largest number of changed entries or records that `format_changes` lists."""

MOST_CHANGES: Final = 200
"""Largest count of added and removed records. The time to count grows as the count squared."""

_PLAIN_TYPES: Final = (str, bytes, int, type(None))
_NUMBER_TYPES: Final = (bool, int, float)

_MAX_EXACT_INTEGER: Final = 2**53
"""Largest integer up to which float64 represents all integers exactly."""

_MAX_FINGERPRINT_ITEMS: Final = 2**20
_MAX_FINGERPRINT_BYTES: Final = 2**28

Norm = Literal["l1", "l2", "linf"]
NORMS: Final[tuple[Norm, ...]] = get_args(Norm)
"""The norms in which distances are measured."""

_DIMENSION_END = 2**60


def inputs_equal(first: Any, second: Any) -> bool:
    """Return True if two inputs are equal: arrays entry by entry, other objects by ``==``.

    Two NaNs count as equal, because a mechanism cannot distinguish them. If Python cannot compare
    two objects, they count as different.

    Args:
        first: any object.
        second: any object.

    Returns:
        True if the inputs are equal. Arrays of different dtypes can be equal, and 0.0 is equal to
        -0.0. The numbers 1, 1.0 and True differ, because their types differ.

    Example:
        >>> missing = np.array([1.0, np.nan])
        >>> inputs_equal(missing, missing.copy()), inputs_equal([1, "a"], [1, "b"])
        (True, False)
    """
    # numpy's scalars inside lists equal the plain Python numbers.
    first, second = (v.item() if isinstance(v, np.generic) else v for v in (first, second))
    if isinstance(first, _NUMBER_TYPES) and isinstance(second, _NUMBER_TYPES):
        alike = first == second or (first != first and second != second)
        return type(first) is type(second) and alike
    if isinstance(first, _PLAIN_TYPES) and isinstance(second, _PLAIN_TYPES):
        return bool(first == second)
    if isinstance(first, np.ndarray) and isinstance(second, np.ndarray):
        return _values_equal(first, second)
    if isinstance(first, (list, tuple)) and isinstance(second, type(first)):
        return len(first) == len(second) and all(map(inputs_equal, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(
            inputs_equal(first[k], second[k]) for k in first
        )
    try:
        if np.shape(first) != np.shape(second):
            return False
        answer = first == second
        # A table returns one result per column, a tensor returns a tensor: reduce twice.
        for _ in range(2):
            answer = answer.all() if hasattr(answer, "all") else answer
        return bool(answer)
    except Exception:
        # Objects that cannot be compared have not been shown to be equal.
        return False


def _values_equal(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    if first.shape != second.shape:
        return False
    if first.dtype.hasobject or second.dtype.hasobject:
        return inputs_equal(first.ravel().tolist(), second.ravel().tolist())
    inexact = first.dtype.kind in "fc" and second.dtype.kind in "fc"
    return bool(np.array_equal(first, second, equal_nan=inexact))


def fingerprint_input(value: Any) -> Hashable:
    """Return a hashable fingerprint of an input, to detect later if the input was changed.

    Args:
        value: any object. The function reads numbers, texts, lists, mappings, sets, dataclasses,
            arrays, tensors and data frames.

    Returns:
        The fingerprint. Inputs of the same type and with equal content have equal fingerprints. NaN
        counts as equal to NaN. If the function cannot read the object, the result is None. The
        result is also None for an input with more than a million items, or with more than 256 MiB
        of arrays.

    Example:
        >>> data = {"a": [1.0, np.nan]}
        >>> before = fingerprint_input(data)
        >>> data["a"].append(2.0)
        >>> fingerprint_input({"a": [1.0, np.nan]}) == before, fingerprint_input(data) == before
        (True, False)
    """
    try:
        return _fingerprint_value(value, [_MAX_FINGERPRINT_ITEMS, _MAX_FINGERPRINT_BYTES])
    except Exception:
        # A change in an object that cannot be read cannot be detected.
        return None


def _fingerprint_value(value: Any, left: list[int]) -> Hashable:
    """Compute a fingerprint; `left` holds how many items and how many bytes may still be read."""
    if isinstance(value, float):
        return "nan" if value != value else value
    if isinstance(value, (*_PLAIN_TYPES, complex)):
        return value
    content: Any = None
    if isinstance(value, dict):
        content = [part for item in value.items() for part in item]
    elif isinstance(value, (list, tuple)):
        content = value
    elif isinstance(value, (set, frozenset)):
        return frozenset(value)
    elif is_dataclass(value) and not isinstance(value, type):
        content = [getattr(value, field.name, None) for field in fields(value)]
    elif isinstance(value, bytearray):
        return bytes(value)
    elif has_all(value, "columns", "iloc"):
        columns = [np.asarray(value.iloc[:, place]) for place in range(value.shape[1])]
        content = [list(value.columns), np.asarray(value.index), *columns]
    elif has_array_method(value):
        return _digest_array(value, left)
    if content is None:
        return None
    left[0] -= len(content)
    if left[0] < 0:
        raise OverflowError
    return (type(value).__name__, *[_fingerprint_value(part, left) for part in content])


def _digest_array(value: Any, left: list[int]) -> Hashable:
    array = np.asarray(value.detach().cpu() if is_tensor(value) else value)
    if array.dtype.hasobject:
        return _fingerprint_value([array.shape, array.ravel().tolist()], left)
    left[1] -= array.nbytes
    if left[1] < 0:
        raise OverflowError
    content = hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=16).digest()
    return str(array.dtype), array.shape, content


def list_to_array(value: Any) -> Any:
    """Convert a list or tuple of numbers to a read-only array of bool, int64 or float64.

    Args:
        value: any object.

    Returns:
        The array. If `value` is not a list or tuple of real numbers, the function returns `value`
        unchanged. If the array would contain rounded numbers, the function also returns `value`
        unchanged.

    Example:
        >>> list_to_array([1, 2]).dtype, list_to_array((1, 0.5)), list_to_array([2**70])
        (dtype('int64'), array([1. , 0.5]), [1180591620717411303424])
    """
    if flat_list_to_floats(value) is value:
        return value
    items = [item.item() if isinstance(item, np.generic) else item for item in value]
    is_whole = bool(items) and all(isinstance(item, int) for item in items)
    is_truth = is_whole and all(isinstance(item, bool) for item in items)
    try:
        array = np.array(items, bool if is_truth else np.int64 if is_whole else np.float64)
    except OverflowError:
        return value
    entries = zip(array.tolist(), items, strict=True)
    if not all(entry == item or (entry != entry and item != item) for entry, item in entries):
        return value
    return frozen_array(array)


def pair_lists_to_float_arrays(pair: Pair) -> Pair:
    """Return a copy of a pair, with lists of numbers converted to float64 arrays.

    Tuples of numbers are also converted. Inputs of other types are not changed.
    """
    x, x_prime = flat_list_to_floats(pair.x), flat_list_to_floats(pair.x_prime)
    return pair if x is pair.x and x_prime is pair.x_prime else replace(pair, x=x, x_prime=x_prime)


def as_real_numbers(value: Any) -> npt.NDArray[Any] | None:
    """Convert an input to an array of real numbers, or return None if it is not numeric.

    Args:
        value: an array, a number, a list or tuple of numbers, or an object that converts to an
            array, such as a tensor.

    Returns:
        The array, with the dtype that numpy chooses, or None. A single number becomes an array with
        one entry.
    """
    array = list_to_array(value)
    value = flat_list_to_floats(value) if array is value else array
    if type(value) is not np.ndarray and (
        isinstance(value, (list, tuple, str, bytes))
        or has_masked(value)
        or not (isinstance(value, (int, float)) or has_array_method(value))
    ):
        return None
    try:
        array = np.asarray(value)
        # An integer outside the range of every integer type.
        array = np.asarray(float(value)) if isinstance(value, int) and array.dtype == "O" else array
    except (TypeError, ValueError, RuntimeError, OverflowError):
        return None
    if array.dtype.kind not in "buif":
        return None
    return array.reshape(1) if isinstance(value, (int, float)) else array


def entry_gaps(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Compute the absolute difference of the corresponding entries of two arrays.

    The difference of two NaNs, or of two equal infinities, is 0.

    Args:
        first: real numbers.
        second: real numbers, of the same shape as `first`.

    Returns:
        The absolute differences in float64, with the same shape as `first`. Integers above 2**53
        are subtracted exactly. Only the difference is then rounded to float64.
    """
    kinds = {first.dtype.kind, second.dtype.kind}
    if kinds <= set("iu") and not all(map(is_exact_in_float64, (first, second))):
        pairs = zip(first.ravel().tolist(), second.ravel().tolist(), strict=True)
        return np.array([float(abs(b - a)) for a, b in pairs]).reshape(first.shape)
    x, x_prime = first.astype(np.float64), second.astype(np.float64)
    alike = (x == x_prime) | (np.isnan(x) & np.isnan(x_prime))
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(alike, 0.0, np.abs(x_prime - x))


def is_exact_in_float64(array: npt.NDArray[Any]) -> bool:
    """Return True if float64 can represent all integers of an array without rounding.

    For an array of floats or bools, the result is True.
    """
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or array.size == 0:
        return True
    return int(array.max()) <= _MAX_EXACT_INTEGER and int(array.min()) >= -_MAX_EXACT_INTEGER


def pair_to_vectors(x: Any, x_prime: Any, shape: tuple[int, ...]) -> tuple[Floats, Floats] | None:
    """Return the two inputs x and x' as vectors with one entry for each entry of an output.

    Both inputs are broadcast to `shape`, the shape of an output, and then flattened.

    Return None if an input does not consist of finite numbers, if an input cannot be broadcast to
    `shape`, or if the two inputs are equal.
    """
    first, second = _broadcast_flat(x, shape), _broadcast_flat(x_prime, shape)
    if first is None or second is None or np.array_equal(first, second):
        return None
    return first, second


def _broadcast_flat(x: Any, shape: tuple[int, ...]) -> Floats | None:
    """Return an input that is broadcast to `shape` and flattened, or None if this is impossible."""
    try:
        array = np.asarray(x)
        if array.dtype.kind not in "buif" or not np.isfinite(array).all():
            return None
        return np.broadcast_to(array, shape or (1,)).astype(np.float64).ravel()
    except (TypeError, ValueError, RuntimeError):
        # Ragged lists, tensors that do not convert to arrays, and shapes that do not match.
        return None


def group_columns(x: Floats, x_prime: Floats) -> list[tuple[tuple[int, ...], tuple[float, float]]]:
    """Group the indices i that have the same pair of values (x_i, x'_i).

    The result is a list of groups. Each group consists of its indices and the common pair (x_i,
    x'_i).

    Example:
        >>> group_columns(np.array([0.0, 0.0, 2.0]), np.array([1.0, 1.0, 2.0]))
        [((0, 1), (0.0, 1.0)), ((2,), (2.0, 2.0))]
    """
    kinds, where = np.unique(np.stack([x, x_prime], axis=1), axis=0, return_inverse=True)
    groups = [tuple(np.flatnonzero(where.ravel() == i).tolist()) for i in range(len(kinds))]
    return list(zip(groups, map(tuple, kinds.tolist()), strict=True))


def units_of_pair(pair: Pair) -> tuple[str, list[Any], list[Any]] | None:
    """Split the two inputs x and x' into units, so that the units can be compared.

    A unit is a record, a word, a character or a byte.

    Args:
        pair: the two inputs. The records of a list or tuple are its items. The records of an array
            are its rows. A number is one record. Texts are split into words. If two texts have the
            same words in the same order, the texts are split into characters.

    Returns:
        The name of the unit ("record", "word", "character" or "byte"), the list of units of x, and
        the list of units of x'. If an input has another type, the result is None.

    Example:
        >>> units_of_pair(Pair("a good film", "a film"))
        ('word', ['a', 'good', 'film'], ['a', 'film'])
    """
    x, x_prime = pair.x, pair.x_prime
    if isinstance(x, str) and isinstance(x_prime, str):
        words = x.split(), x_prime.split()
        if words[0] == words[1]:
            return "character", list(x), list(x_prime)
        return "word", *words
    if isinstance(x, bytes) and isinstance(x_prime, bytes):
        return "byte", list(x), list(x_prime)
    rows, rows_prime = _value_to_records(x), _value_to_records(x_prime)
    return None if rows is None or rows_prime is None else ("record", rows, rows_prime)


def _value_to_records(value: Any) -> list[Any] | None:
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, (bool, int, float, np.generic)):
        return [value]
    if not has_array_method(value):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array.tolist() if array.ndim else [array.item()]


def differing_places(first: Any, second: Any) -> list[int]:
    """Return the indices at which two datasets have different records.

    If one dataset is longer, its additional records at the end are ignored.

    Example:
        >>> differing_places(["a", "b", "c"], ["a", "c"])
        [1]
    """
    sides = (first, second)
    numbers = all(type(side) is np.ndarray and side.dtype.kind in "biufc" for side in sides)
    if numbers and first.shape[1:] == second.shape[1:]:
        size = min(len(first), len(second))
        x, x_prime = first[:size], second[:size]
        changed = (x != x_prime) & ((x == x) | (x_prime == x_prime))
        return np.flatnonzero(changed.any(axis=tuple(range(1, x.ndim)))).tolist()
    # Neighbours share most record objects. Only records that are different objects are compared.
    records = enumerate(zip(first, second, strict=False))
    return [place for place, (a, b) in records if a is not b and not inputs_equal(a, b)]


def format_changes(pair: Pair) -> str:
    """Describe in one line how the input x' differs from the input x.

    The description lists the entries or records that differ, with index, value in x, and value in
    x'.

    At most 8 differences are listed.

    Example:
        >>> format_changes(Pair([0, 0, 0], [0, 4, 0]))
        'entry 1: 0 -> 4'
        >>> format_changes(Pair(["a", "b"], ["a", "c", "b"]))
        "record 1 added: 'c'"
    """
    parts = units_of_pair(pair)
    if parts is None:
        return f"x: {show(pair.x)} -> {show(pair.x_prime)}"
    unit, x, x_prime = parts
    places = differing_places(x, x_prime)
    if len(x) == len(x_prime):
        numbers = flat_list_to_floats(pair.x)
        unit = "entry" if isinstance(numbers, np.ndarray) and numbers.ndim == 1 else unit
        changes = [f"{unit} {n}: {show(x[n])} -> {show(x_prime[n])}" for n in places]
    else:
        front = min([*places, len(x), len(x_prime)])
        rest, rest_prime = x[front:], x_prime[front:]
        # The records after the last difference are common to both sides.
        back = min([*differing_places(rest[::-1], rest_prime[::-1]), len(rest), len(rest_prime)])
        changes = [f"{unit} {n} removed: {show(x[n])}" for n in range(front, len(x) - back)]
        ends = front, len(x_prime) - back
        changes += [f"{unit} {n} added: {show(x_prime[n])}" for n in range(*ends)]
    more = len(changes) - MAX_SHOWN_CHANGES
    shown = ", ".join(changes[:MAX_SHOWN_CHANGES]) or "no difference"
    return shown + (f" and {more:,} more" if more > 0 else "")


def add_remove_count(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Count how many records must be added or removed to turn one dataset into another.

    The order of the records matters: a moved record counts as removed and added.

    Args:
        first: the dataset that is changed.
        second: the dataset that the changes must produce.

    Returns:
        The smallest possible number of records, or inf if it is above 200.

    Source:
        Myers (1986), An O(ND) difference algorithm, the greedy algorithm of section 4.

    Example:
        >>> add_remove_count(["a", "b", "c"], ["b", "c", "d"])
        2
    """
    reach = {1: 0}
    for changes in range(min(MOST_CHANGES, len(first) + len(second)) + 1):
        for diagonal in range(-changes, changes + 1, 2):
            left, right = reach.get(diagonal - 1, -1), reach.get(diagonal + 1, -1)
            place = right if left < right else left + 1
            while (
                place < len(first)
                and place - diagonal < len(second)
                and inputs_equal(first[place], second[place - diagonal])
            ):
                place += 1
            reach[diagonal] = place
            if place >= len(first) and place - diagonal >= len(second):
                return changes
    return math.inf


@explain_argument_errors
def dimension(dim: int) -> int:
    """Check that a number of vector entries is at least 1 and below 2**60, and return it.

    A computer cannot address a larger vector.

    Raises:
        TypeError: if `dim` is not an integer.
        ValueError: if `dim` is out of this range.
    """
    dim = integer("dim", dim, 1)
    if dim >= _DIMENSION_END:
        raise invalid("dim", "below 2**60, the largest vector that can be addressed", dim)
    return dim


@explain_argument_errors
def distance(pair: Pair | tuple[Any, Any], norm: Norm) -> float:
    """Compute the distance between two inputs x and x' in a norm.

    Only the final sum is rounded, and intermediate results do not overflow.

    Args:
        pair: the two inputs, arrays of real numbers of equal shape, or two numbers.
        norm: norm of x' - x: "l1" (sum of absolute differences), "l2" (Euclidean norm) or "linf"
            (largest absolute difference).

    Returns:
        The distance, in the units of the inputs. The distance is inf if it exceeds the range of
        float64.

    Raises:
        TypeError: if x or x' does not hold real numbers, or if `norm` is not a string.
        ValueError: if the shapes of x and x' differ, or if `norm` is not one of the three names.

    Example:
        >>> pair = Pair([0, 0, 0, 0], [1, 1, 1, 1])
        >>> distance(pair, "l1"), distance(pair, "l2")
        (4.0, 2.0)
    """
    choice("norm", norm, NORMS)
    pair = pair_of(pair)
    x, x_prime = as_real_numbers(pair.x), as_real_numbers(pair.x_prime)
    if x is None or x_prime is None:
        name, value = ("x", pair.x) if x is None else ("x_prime", pair.x_prime)
        raise mistyped(name, "an array of real numbers", value)
    if x.shape != x_prime.shape:
        raise invalid("pair", "two arrays of equal shape", (x.shape, x_prime.shape))
    apart = entry_gaps(x, x_prime).ravel()
    if norm == "linf":
        return float(apart.max(initial=0.0))
    if norm == "l2":
        # hypot scales by the largest entry, so squares neither overflow nor underflow.
        return math.hypot(*apart.tolist())
    try:
        return math.fsum(apart.tolist())
    except OverflowError:
        return math.inf


@explain_argument_errors
def distances(pair: Pair | tuple[Any, Any]) -> dict[str, Any]:
    """Compute all kinds of distance that are defined between two inputs x and x'.

    Args:
        pair: the two inputs, objects of any type.

    Returns:
        A dictionary from names of distances to values. It is empty if no distance is defined for
        the two inputs.

        For two arrays (or lists) of numbers with equal shapes, the keys are:

        - "l1", "l2" and "linf": distances in the three norms, in the units of the inputs;
        - "entries": number of entries of an input;
        - "changed": number of entries in which x and x' differ;
        - if the arrays have at least two dimensions, also "unit", "size", "size_prime" and
          "replaced", as below.

        For all other lists, tuples, arrays, texts and bytes, the keys are:

        - "unit": name of the units into which the inputs are split: "record" (an item of a list, or
          a row of an array), "word", "character" or "byte";
        - "size": number of units of x;
        - "size_prime": number of units of x';
        - "replaced": number of positions with different units (only if x and x' have equally many
          units);
        - "added_or_removed": number of units that must be added or removed to turn x into x', or
          inf if this number is above 200.

    Raises:
        TypeError: if `pair` is neither a `Pair` nor a tuple of two inputs.

    Example:
        >>> distances(Pair([0, 0], [1, 0]))
        {'l1': 1.0, 'l2': 1.0, 'linf': 1.0, 'changed': 1, 'entries': 2}
        >>> distances(Pair("a good film", "a film"))
        {'unit': 'word', 'size': 3, 'size_prime': 2, 'added_or_removed': 1}
    """
    pair = pair_of(pair)
    x, x_prime = as_real_numbers(pair.x), as_real_numbers(pair.x_prime)
    if x is None or x_prime is None or x.shape != x_prime.shape:
        return _count_record_changes(pair)
    figures: dict[str, Any] = {norm: distance(pair, norm) for norm in NORMS}
    changed = entry_gaps(x, x_prime) != 0.0
    figures.update(changed=int(changed.sum()), entries=changed.size)
    if changed.ndim >= 2:
        rows = changed.any(axis=tuple(range(1, changed.ndim)))
        figures.update(
            unit="record", size=rows.size, size_prime=rows.size, replaced=int(rows.sum())
        )
    return figures


def _count_record_changes(pair: Pair) -> dict[str, Any]:
    parts = units_of_pair(pair)
    if parts is None:
        return {}
    unit, first, second = parts
    figures: dict[str, Any] = {"unit": unit, "size": len(first), "size_prime": len(second)}
    if len(first) == len(second):
        figures["replaced"] = len(differing_places(first, second))
    figures["added_or_removed"] = add_remove_count(first, second)
    return figures
