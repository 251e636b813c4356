"""Traced numbers: a part without noise, plus a sum of coefficients times random values.

A traced number is neither a `float` nor an `ndarray`, because C code could then read its value
without a call of a method. Sums, products with ordinary numbers, and rearrangements give traced
numbers. Every other use reads the value by a method of the class `NoisyValue`, which records the
place in the code.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .places import Place, find_place

Array = npt.NDArray[Any]

_REARRANGING: Final = {
    "reshape", "ravel", "transpose", "squeeze", "expand_dims", "swapaxes", "moveaxis", "flip",
    "roll", "repeat", "tile", "broadcast_to", "atleast_1d", "atleast_2d", "take", "diagonal",
    "copy", "concatenate", "stack", "vstack", "hstack", "column_stack", "append", "flipud",
    "fliplr", "where",
}  # fmt: skip
"""Functions of numpy whose results hold the entries of their arguments, at other places."""

_MIRRORED: Final = {
    "greater": "less",
    "less": "greater",
    "greater_equal": "less_equal",
    "less_equal": "greater_equal",
}
"""Comparisons with their sides exchanged."""

_MAX_PRODUCT_ENTRIES: Final = 10_000_000
"""Largest number of entries of a product of a matrix with traced numbers. In a larger product, the
code reads the traced numbers."""

_MERGED_TERMS: Final = 256
"""If a number has more terms than this, its terms with the same random value are merged."""

_WIDTH: Final = 2
"""Number of operands of a sum or product."""


def is_noisy_value(value: Any) -> bool:
    """Return True if a value is a traced number or array (an object of the class `NoisyValue`)."""
    return type(value) is NoisyValue


def spread_terms(terms: Array, shape: tuple[int, ...], size: tuple[int, ...]) -> Array:
    """Broadcast an array of noise terms from shape `(terms, *shape)` to `(terms, *size)`."""
    if shape == size:
        return terms
    ones = (1,) * (len(size) - len(shape))
    return np.broadcast_to(terms.reshape(terms.shape[0], *ones, *shape), (terms.shape[0], *size))


class NoisyValue(np.lib.mixins.NDArrayOperatorsMixin):
    """A traced number or array: value = part without noise + sum of coefficients x random values.

    Args:
        run: record of the run, in which each use of the value is recorded.
        value: the number with its noise.
        plain: the part without noise, of the same shape.
        ids: index of the random value in each term of the sum, shape `(terms, *shape)`.
        weights: coefficient of the random value in each term, of the same shape as `ids`.
        meeting: place in the code at which noise was last added to an ordinary number.
    """

    __array_priority__ = 1e6
    __slots__ = (
        "_ids",
        "_meeting",
        "_plain",
        "_run",
        "_source",
        "_value",
        "_weights",
        "entry_meetings",
    )

    def __init__(
        self, run: Any, value: Any, plain: Any, ids: Array, weights: Array, meeting: Place | None
    ) -> None:
        self._run, self._meeting = run, meeting
        # An earlier traced number with data and noise, its sign, and the data that were added
        # later.
        self._source: tuple[NoisyValue, int, Array] | None = None
        self.entry_meetings: tuple[Place | None, ...] = ()
        self._value, self._plain = np.asarray(value), np.asarray(plain)
        self._ids, self._weights = ids, weights

    # Properties that the run reads.

    @property
    def form(self) -> tuple[Array, Array, Array]:
        """The part without noise, the indices of the random values, and the coefficients."""
        return self._plain, self._ids, self._weights

    @property
    def value(self) -> Array:
        """This number or array with its noise, as an ordinary array."""
        return self._value

    @property
    def meeting(self) -> Place | None:
        """Place in the code at which the noise was last added to an ordinary number, or None."""
        return self._meeting

    def read(self, op: str) -> Array:
        """Return the value as an ordinary array, and record that the operation `op` uses it.

        dpcore assumes that the noise in the run on x' changes so that the value is the same as in
        the run on x. The privacy loss is the cost of this change. Afterwards, the value counts as a
        number without noise.
        """
        if self._ids.shape[0] == 0:
            return self._value
        if self._run.reads_sources and self._source is not None:
            number, sign, data = self._source
            value = np.asarray(sign * number.read(op) + data)
        else:
            value = np.asarray(self._run.record_use(op, self, self._value))
        self._source = None
        self._value = self._plain = value
        self._ids, self._weights = self._ids[:0], self._weights[:0]
        return value

    def _renew(self, value: Array, plain: Array, ids: Array, weights: Array) -> NoisyValue:
        return NoisyValue(self._run, value, plain, ids, weights, self._meeting)

    # Attributes of an array.

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of this array."""
        return self._value.shape

    @property
    def ndim(self) -> int:
        """Number of axes of this array."""
        return self._value.ndim

    @property
    def size(self) -> int:
        """Number of entries of this array."""
        return self._value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the entries of this array."""
        return self._value.dtype

    @property
    def T(self) -> NoisyValue:
        """The transposed array, also traced."""
        return self._rearrange(np.transpose)

    @property
    def flat(self) -> NoisyValue:
        """All entries of this array in one axis, as a traced array."""
        return self._rearrange(np.ravel)

    def __len__(self) -> int:
        return len(self._value)

    def __iter__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self._value)))

    # Entries.

    def _rearrange(self, change: Callable[..., Any]) -> NoisyValue:
        """Apply a function that only changes the order or the shape of the entries."""
        places = change(np.arange(self.size).reshape(self.shape))
        return self._pick(np.asarray(places))

    def _pick(self, places: Array) -> NoisyValue:
        flat = (*self._ids.shape[:1], self.size)
        return self._renew(
            self._value.ravel()[places],
            self._plain.ravel()[places],
            self._ids.reshape(flat)[:, places],
            self._weights.reshape(flat)[:, places],
        )

    def __getitem__(self, key: Any) -> Any:
        key = read_plain(key, "index")
        if isinstance(key, int | np.integer | slice):
            inner = (slice(None), key)
            return self._renew(
                self._value[key], self._plain[key], self._ids[inner], self._weights[inner]
            )
        return self._rearrange(lambda places: places[key])

    def __setitem__(self, key: Any, entry: Any) -> None:
        key = read_plain(key, "index")
        places = np.arange(self.size).reshape(self.shape)[key]
        other = entry if is_noisy_value(entry) else None
        plain = entry if other is None else other._plain
        value = entry if other is None else other._value
        kind = np.result_type(self._value, value)
        values, plains = self._value.astype(kind).ravel(), self._plain.astype(kind).ravel()
        values[places], plains[places] = value, plain
        terms = self._ids.shape[0]
        needed = 0 if other is None else other._ids.shape[0]
        ids = np.zeros((max(terms, needed), self.size), np.int64)
        weights = np.zeros((max(terms, needed), self.size))
        ids[:terms], weights[:terms] = (
            part.reshape(terms, self.size) for part in (self._ids, self._weights)
        )
        # The rows that these places used before are free for them.
        weights[:, places] = 0.0
        for row in range(needed):
            ids[row, places] = np.broadcast_to(other._ids[row], places.shape)  # type: ignore[union-attr]
            weights[row, places] = np.broadcast_to(other._weights[row], places.shape)  # type: ignore[union-attr]
        self._value, self._plain = values.reshape(self.shape), plains.reshape(self.shape)
        self._ids, self._weights = (
            part.reshape(part.shape[0], *self.shape) for part in (ids, weights)
        )
        self._meeting = self._meeting if other is None else other._meeting

    def _set_content(self, other: Any) -> NoisyValue:
        """Replace the content by that of another traced number, for operations in place."""
        if not self.ndim:
            return other  # type: ignore[no-any-return]
        if not is_noisy_value(other):
            other = NoisyValue(self._run, other, other, self._ids[:0], self._weights[:0], None)
        for name in ("_value", "_plain", "_ids", "_weights", "_meeting", "_source"):
            setattr(self, name, getattr(other, name))
        return self

    # Arithmetic.

    def __add__(self, other: Any) -> Any:
        return add_forms(self, other, 1)

    def __radd__(self, other: Any) -> Any:
        return add_forms(other, self, 1)

    def __sub__(self, other: Any) -> Any:
        return add_forms(self, other, -1)

    def __rsub__(self, other: Any) -> Any:
        return add_forms(other, self, -1)

    def __mul__(self, other: Any) -> Any:
        return scale_form(self, other, "multiplied")

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return scale_form(self, other, "divided")

    def __neg__(self) -> NoisyValue:
        return self._renew(-self._value, -self._plain, self._ids, -self._weights)

    def __pos__(self) -> NoisyValue:
        return self

    def __iadd__(self, other: Any) -> Any:
        return self._set_content(add_forms(self, other, 1))

    def __isub__(self, other: Any) -> Any:
        return self._set_content(add_forms(self, other, -1))

    def __imul__(self, other: Any) -> Any:
        return self._set_content(scale_form(self, other, "multiplied"))

    def __itruediv__(self, other: Any) -> Any:
        return self._set_content(scale_form(self, other, "divided"))

    def __abs__(self) -> Any:
        sign = np.where(compare_and_record(self, 0, "greater_equal"), 1, -1)
        return self._renew(sign * self._value, sign * self._plain, self._ids, sign * self._weights)

    # Readings.

    def __float__(self) -> float:
        return float(self.read("float"))

    def __int__(self) -> int:
        return int(self.read("int"))

    def __index__(self) -> int:
        if self.dtype.kind not in "iu":
            raise TypeError("only integer scalar arrays can be converted to a scalar index")
        return int(self.read("index"))

    def __complex__(self) -> complex:
        return complex(self.read("complex"))

    def __bool__(self) -> bool:
        return bool(self.read("bool"))

    def __round__(self, digits: int | None = None) -> Any:
        whole = self._round_if_noise_int(np.round) if not digits else None
        return round(self.read("round").item(), digits) if whole is None else whole

    def __trunc__(self) -> int:
        return int(self.read("trunc").item())

    def __floor__(self) -> Any:
        whole = self._round_if_noise_int(np.floor)
        return math.floor(self.read("floor").item()) if whole is None else whole

    def __ceil__(self) -> Any:
        whole = self._round_if_noise_int(np.ceil)
        return math.ceil(self.read("ceil").item()) if whole is None else whole

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        return np.array(self.read("array"), dtype=dtype)

    def __format__(self, spec: str) -> str:
        value = self.read("format")
        return format(value.item() if value.ndim == 0 else value, spec)

    def __str__(self) -> str:
        value = self.read("str")
        return str(value.item() if value.ndim == 0 else value)

    def __repr__(self) -> str:
        value = self.read("repr")
        return repr(value.item() if value.ndim == 0 else value)

    def __hash__(self) -> int:
        return hash(self.read("hash").item())

    def __reduce__(self) -> Any:
        return np.array, (self.read("pickle"),)

    def __copy__(self) -> NoisyValue:
        return self._renew(self._value, self._plain, self._ids, self._weights)

    def __deepcopy__(self, memo: Any) -> NoisyValue:
        return self.__copy__()

    def _round_if_noise_int(self, change: Callable[[Array], Array]) -> NoisyValue | None:
        """Round the part without noise if the noise is an integer; otherwise return None."""
        with np.errstate(all="ignore"):
            fraction = np.abs(self._plain % 1)
        is_tie = change is np.round and bool(np.any(fraction == 0.5))
        if is_tie or not self._run.has_integer_noise(self._ids, self._weights):
            return None
        plain = change(self._plain)
        value = np.rint(plain + np.rint(self._value - self._plain))
        kind = np.int64 if np.all(np.abs(value) < 2**53) else np.float64
        return self._renew(value.astype(kind), plain.astype(kind), self._ids, self._weights)

    # Methods of an array.

    def item(self, *place: Any) -> Any:
        """Return one entry of this array as a Python number, and record that it was used."""
        return self.read("item").item(*place)

    def tolist(self) -> Any:
        """Return the entries of this array as ordinary numbers, and record that they were used."""
        return self.read("tolist").tolist()

    def astype(self, dtype: Any, **options: Any) -> Any:
        """Convert this array to another dtype. The result is traced only for the dtype float64."""
        if np.dtype(dtype) == np.float64:
            return self._renew(
                self._value.astype(float), self._plain.astype(float), self._ids, self._weights
            )
        return self.read("astype").astype(dtype, **options)

    def reshape(self, *shape: Any, **options: Any) -> NoisyValue:
        """Return the entries of this array in another shape, as a traced array."""
        return self._rearrange(lambda places: places.reshape(*shape, **options))

    def sum(self, axis: Any = None, **options: Any) -> Any:
        """Return the sum of the entries of this array along an axis, as a traced value."""
        return sum_form(self, axis, **options)

    def mean(self, axis: Any = None, **options: Any) -> Any:
        """Return the mean of the entries of this array along an axis, as a traced value."""
        return mean_form(self, axis, **options)

    def argmax(self, axis: Any = None) -> Any:
        """Return the index of the largest entry of this array, and record this comparison."""
        return plain_extreme_index(self, "argmax", axis)

    def argmin(self, axis: Any = None) -> Any:
        """Return the index of the smallest entry of this array, and record this comparison."""
        return plain_extreme_index(self, "argmin", axis)

    def max(self, axis: Any = None) -> Any:
        """Return the largest entry of this array, and record that the entries were compared."""
        return max_or_min_value(self, "argmax", axis)

    def min(self, axis: Any = None) -> Any:
        """Return the smallest entry of this array, and record that the entries were compared."""
        return max_or_min_value(self, "argmin", axis)

    def clip(self, min: Any = None, max: Any = None) -> Any:
        """Return this array limited to [min, max], and record the comparisons with the limits."""
        return clip_form(self, min, max)

    def round(self, decimals: int = 0) -> Any:
        """Return this array rounded; the result is traced only if the noise is an integer."""
        whole = self._round_if_noise_int(np.round) if not decimals else None
        return self.read("round").round(decimals) if whole is None else whole

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not hasattr(np.ndarray, name):
            raise AttributeError(f"'numpy.ndarray' object has no attribute {name!r}")
        if name in _REARRANGING or name == "flatten":
            function = np.ravel if name == "flatten" else getattr(np, name)
            return lambda *args, **named: self._rearrange(lambda p: function(p, *args, **named))
        return getattr(self.read(name), name)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        out = (named.pop("out", None) or (None,))[0]
        result = NotImplemented
        name = ufunc.__name__
        if method == "__call__" and not named:
            result = apply_ufunc_or_not_implemented(name, inputs)
        elif method == "reduce" and name == "add" and not is_noisy_value(named.get("where")):
            options = {key: named[key] for key in ("axis", "keepdims") if key in named}
            result = sum_form(inputs[0], **{"axis": 0, **options})
        if result is NotImplemented:
            result = getattr(ufunc, method)(*read_plain(inputs, name), **read_plain(named, name))
        if out is None:
            return result
        if is_noisy_value(out):
            return out._set_content(np.asarray(result) if not is_noisy_value(result) else result)
        # Noise enters a plain array: this is a reading.
        out[...] = read_plain(result, name)
        return out

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        name = function.__name__
        if is_noisy_value(args[0] if args else None):
            handler = _FUNCTIONS.get(name)
            result = handler(*args, **named) if handler else NotImplemented
            if result is not NotImplemented:
                return result
        if name in ("dot", "matmul", "inner"):
            result = multiply_matrices(*args, **named)
            if result is not NotImplemented:
                return result
        if name in _REARRANGING:
            return rearrange_all(function, args, named)
        return function(*read_plain(args, name), **read_plain(named, name))


def read_plain(value: Any, op: str) -> Any:
    """Replace all traced numbers in tuples, lists and dictionaries by their ordinary values."""
    if is_noisy_value(value):
        return value.read(op)
    if type(value) in (tuple, list):
        return type(value)(read_plain(item, op) for item in value)
    if type(value) is dict:
        return {key: read_plain(item, op) for key, item in value.items()}
    return value


def _to_number(value: Any) -> Array | None:
    """Return an ordinary operand as an array of numbers, or None if it has no numbers."""
    if isinstance(value, str | bytes):
        return None
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None
    return array if array.dtype.kind in "biuf" else None


def _is_read_before_scaling(noisy: NoisyValue, factor: Array) -> bool:
    """Return True if the run reads a number with data and noise before it is multiplied."""
    mode = noisy._run.reads_sources
    if not mode or noisy._meeting is None or not len(noisy._ids):
        return False
    return mode == "all" or factor.ndim > 0


def _noise_is_broadcast(noisy: NoisyValue, other: Array) -> bool:
    """Return True if broadcasting with data would copy a number that contains noise and data.

    The number is then read once, because the number of its copies could depend on the data.
    """
    if noisy._meeting is None or not noisy._ids.shape[0] or not other.ndim:
        return False
    return np.broadcast_shapes(noisy.shape, other.shape) != noisy.shape


def add_forms(left: Any, right: Any, sign: int, keeps: bool = False) -> Any:
    """Return the sum or difference of two numbers or arrays, at least one of which is traced.

    Args:
        left: first operand.
        right: second operand.
        sign: 1 to add the second operand, -1 to subtract it.
        keeps: for the case that broadcasting copies a traced number to which data were added. True
            returns a traced array in this case. By default, the result is an ordinary array.
    """
    operator = np.add if sign == 1 else np.subtract
    noisy, other = left if is_noisy_value(left) else right, None
    if is_noisy_value(left) and is_noisy_value(right):
        shape = np.broadcast_shapes(left.shape, right.shape)
        if left._ids is right._ids:
            ids, weights = left._ids, left._weights + sign * right._weights
            if shape != left.shape:
                ids = spread_terms(ids, left.shape, shape)
        else:
            parts = [(left, 1), (right, sign)]
            ids = np.concatenate([spread_terms(v._ids, v.shape, shape) for v, _ in parts])
            weights = np.concatenate(
                [s * spread_terms(v._weights, v.shape, shape) for v, s in parts]
            )
        value, plain = operator(left._value, right._value), operator(left._plain, right._plain)
        meeting = right._meeting or left._meeting
    else:
        other = _to_number(right if noisy is left else left)
        if other is None:
            return NotImplemented
        if not keeps and _noise_is_broadcast(noisy, other):
            value = noisy.read("broadcast")
            return operator(value, other) if noisy is left else operator(other, value)
        shape = noisy.shape if not other.ndim else np.broadcast_shapes(noisy.shape, other.shape)
        ids, weights = (spread_terms(part, noisy.shape, shape) for part in noisy.form[1:])
        if noisy is left:
            value, plain = operator(left._value, other), operator(left._plain, other)
        else:
            value, plain = operator(other, right._value), operator(other, right._plain)
            weights = weights if sign == 1 else -weights
        meeting = find_place() if np.any(other) else noisy._meeting
    if ids.shape[0] > _MERGED_TERMS and value.size == 1:
        ids, weights = merge_terms(ids, weights)
    plain = np.broadcast_to(plain, value.shape)
    result = NoisyValue(noisy._run, value, plain, ids, weights, meeting)
    if noisy._meeting is not None and other is not None:
        result._source = (noisy, 1, sign * other) if noisy is left else (noisy, sign, other)
    return result


def merge_terms(ids: Array, weights: Array) -> tuple[Array, Array]:
    """Merge all terms of a traced number that have the same random value into one term."""
    numbers, inverse = np.unique(ids.ravel(), return_inverse=True)
    if len(numbers) == ids.size:
        return ids, weights
    sums = np.bincount(inverse, weights.ravel().astype(float), len(numbers))
    shape = (len(numbers), *ids.shape[1:])
    return numbers.reshape(shape), sums.reshape(shape)


def scale_form(noisy: NoisyValue, other: Any, how: str, keeps: bool = False) -> Any:
    """Multiply or divide a traced array by an ordinary array, and record the factor."""
    factor = None if is_noisy_value(other) else _to_number(other)
    if factor is None:
        if not is_noisy_value(other):
            return NotImplemented
        values = noisy.read(how), other.read(how)
        return np.multiply(*values) if how == "multiplied" else np.true_divide(*values)
    run, operator = noisy._run, np.multiply if how == "multiplied" else np.true_divide
    if _is_read_before_scaling(noisy, factor) or (not keeps and _noise_is_broadcast(noisy, factor)):
        return operator(noisy.read("broadcast"), factor)
    run.record_product(how, factor)
    shape = noisy.shape if not factor.ndim else np.broadcast_shapes(noisy.shape, factor.shape)
    with np.errstate(all="ignore"):
        return NoisyValue(
            run,
            operator(noisy._value, factor),
            operator(noisy._plain, factor),
            spread_terms(noisy._ids, noisy.shape, shape),
            operator(spread_terms(noisy._weights, noisy.shape, shape), factor),
            noisy._meeting,
        )


def compare_and_record(left: Any, right: Any, name: str) -> Any:
    """Compare two numbers or arrays, at least one of which is traced, and record the comparison."""
    if not is_noisy_value(left):
        return compare_and_record(right, left, _MIRRORED[name])
    gap = add_forms(left, right, -1, keeps=True)
    if gap is NotImplemented:
        return NotImplemented
    outcome = getattr(np, name)(gap._value, 0)
    if gap._ids.shape[0] == 0:
        return outcome
    gap._meeting = left._meeting or (right.meeting if is_noisy_value(right) else None)
    above = outcome if name.startswith("greater") else ~outcome
    return np.asarray(gap._run.record_use("compare", gap, outcome, above))[()]


def sum_form(noisy: NoisyValue, axis: Any = None, keepdims: bool = False, **other: Any) -> Any:
    """Return the sum of the entries of a traced array along axes, as a traced number or array."""
    if any(value is not None for value in other.values()):
        return NotImplemented
    if axis is None:
        axes = tuple(range(noisy.ndim))
    else:
        given_axes = axis if isinstance(axis, tuple) else (axis,)
        axes = tuple(int(place) % max(noisy.ndim, 1) for place in given_axes)
    value, plain = (np.sum(part, axis=axes) for part in (noisy._value, noisy._plain))
    inner = tuple(place + 1 for place in axes)
    front = tuple(range(1, len(axes) + 1))
    ids, weights = (
        np.moveaxis(part, inner, front).reshape(-1, *value.shape)
        if part.size
        else part.reshape(0, *value.shape)
        for part in (noisy._ids, noisy._weights)
    )
    result = noisy._renew(value, plain, ids, weights)
    shape = [1 if place in axes else length for place, length in enumerate(noisy.shape)]
    return result.reshape(shape) if keepdims else result


def mean_form(noisy: NoisyValue, axis: Any = None, **other: Any) -> Any:
    """Return the mean of the entries of a traced array along axes, as a traced number or array."""
    total = sum_form(noisy, axis, **other)
    if total is NotImplemented or not noisy.size:
        return NotImplemented
    count = noisy.size // max(total.size, 1)
    return total._renew(
        total._value / count, total._plain / count, total._ids, total._weights / count
    )


def plain_extreme_index(noisy: Any, name: str, axis: Any = None, **other: Any) -> Any:
    """Return the index of the largest or smallest traced entry (with `axis`: several indices)."""
    if other:
        return getattr(np, name)(noisy.read(f"{name} of rows"), axis=axis, **other)
    if axis is not None and noisy.ndim != 1:
        rows = _axis_to_rows(noisy, axis)
        places = [plain_extreme_index(rows[number], name) for number in range(len(rows._value))]
        return np.array(places, np.intp).reshape(np.delete(noisy.shape, axis))
    flat, sign = noisy._rearrange(np.ravel), 1 if name == "argmax" else -1
    place = int(getattr(np, name)(flat._value))
    if flat._ids.shape[0]:
        place = flat._run.record_use(name, flat, place, sign)
    return np.intp(place)


def _axis_to_rows(noisy: Any, axis: int) -> Any:
    """Return the entries along an axis as rows, shape `(rows, entries)`."""
    length = noisy.shape[axis]
    return noisy._rearrange(lambda part: np.moveaxis(part, axis, -1).reshape(-1, length))


def max_or_min_value(noisy: Any, name: str, axis: Any = None, **other: Any) -> Any:
    """Return the largest or smallest entry of a traced array (with `axis`: an array of entries)."""
    if other:
        return NotImplemented
    if axis is not None and noisy.ndim != 1:
        rows, places = _axis_to_rows(noisy, axis), np.ravel(plain_extreme_index(noisy, name, axis))
        shape = tuple(np.delete(noisy.shape, axis))
        return rows._rearrange(lambda part: part[np.arange(len(part)), places].reshape(shape))
    return noisy._rearrange(np.ravel)[plain_extreme_index(noisy, name)]


def choose_forms(mask: Any, left: Any, right: Any) -> Any:
    """Choose each entry from one of two arrays, traced or not, as `numpy.where` does."""
    return rearrange_all(np.where, (mask, left, right), {})


def clip_form(noisy: Any, low: Any = None, high: Any = None, **other: Any) -> Any:
    """Limit the entries of a traced array to [low, high], as `numpy.clip` does."""
    if other:
        return NotImplemented
    if low is not None:
        noisy = choose_forms(compare_and_record(noisy, low, "less"), low, noisy)
    if high is not None:
        noisy = choose_forms(compare_and_record(noisy, high, "greater"), high, noisy)
    return noisy


def multiply_matrices(left: Any, right: Any, **other: Any) -> Any:
    """Multiply a traced array by an ordinary array, as `numpy.dot` does."""
    if other or (is_noisy_value(left) and is_noisy_value(right)):
        return NotImplemented
    noisy, plain = (left, _to_number(right)) if is_noisy_value(left) else (right, _to_number(left))
    if plain is None or plain.ndim not in (1, 2) or noisy.ndim not in (1, 2):
        return NotImplemented
    if _is_read_before_scaling(noisy, plain):
        return NotImplemented
    first, second = (noisy, plain) if noisy is left else (plain, noisy)
    columns = second.shape[1] if second.ndim == 2 else 1
    if noisy._ids.shape[0] * first.size * columns > _MAX_PRODUCT_ENTRIES:
        return NotImplemented
    if second.ndim == 1:
        return sum_form(scale_form(noisy, plain, "multiplied", True), -1)
    rows = first[..., None]
    traced: Any = rows if noisy is left else second
    table = scale_form(traced, second if noisy is left else rows, "multiplied", True)
    return sum_form(table, table.ndim - 2)


def rearrange_all(function: Any, args: Any, named: Any) -> Any:
    """Call a numpy function that only moves the entries of arrays, also of traced arrays."""
    holders: list[NoisyValue] = []
    size = 0
    run = None

    def to_places(value: Any, is_data: bool) -> Any:
        nonlocal size, run
        if type(value) in (tuple, list) and any(map(is_noisy_value, _flatten_lists(value))):
            return [to_places(item, True) for item in value]
        if not is_noisy_value(value) and not is_data:
            return value
        holder = value if is_noisy_value(value) else _wrap_plain(value)
        holders.append(holder)
        run = run or holder._run
        size += holder.size
        return np.arange(size - holder.size, size).reshape(holder.shape)

    if function is np.where:
        mask = read_plain(args[0], "where")
        places = function(mask, *(to_places(value, True) for value in args[1:]), **named)
    else:
        first = to_places(args[0], True)
        is_append = function is np.append
        rest = [to_places(value, is_append and place == 0) for place, value in enumerate(args[1:])]
        places = function(first, *rest, **{key: read_plain(v, "index") for key, v in named.items()})
    return concatenate_flattened(holders, run)._pick(np.asarray(places))


def _flatten_lists(value: Any) -> Iterator[Any]:
    for item in value:
        if type(item) in (tuple, list):
            yield from _flatten_lists(item)
        else:
            yield item


def _wrap_plain(value: Any) -> NoisyValue:
    array = np.asarray(value)
    none = np.zeros((0, *array.shape), np.int64)
    return NoisyValue(None, array, array, none, none.astype(float), None)


def concatenate_flattened(values: Sequence[NoisyValue], run: Any) -> NoisyValue:
    """Join the entries of several traced arrays in one axis."""
    if len(values) == 1:
        return values[0]
    terms = max(value._ids.shape[0] for value in values)
    size = sum(value.size for value in values)
    ids, weights = np.zeros((terms, size), np.int64), np.zeros((terms, size))
    start = 0
    for value in values:
        own, stop = value._ids.shape[0], start + value.size
        ids[:own, start:stop] = value._ids.reshape(own, value.size)
        weights[:own, start:stop] = value._weights.reshape(own, value.size)
        start = stop
    joined, plain = (
        np.concatenate([getattr(value, name).ravel() for value in values])
        for name in ("_value", "_plain")
    )
    meetings = [value._meeting for value in values if value._meeting is not None]
    return NoisyValue(run, joined, plain, ids, weights, meetings[-1] if meetings else None)


def apply_ufunc_or_not_implemented(name: str, inputs: Any) -> Any:
    """Apply a numpy ufunc so that the result is traced, or return NotImplemented if impossible."""
    if name in ("add", "subtract"):
        return add_forms(inputs[0], inputs[1], 1 if name == "add" else -1)
    if name in ("multiply", "divide", "true_divide") and len(inputs) == _WIDTH:
        left, right = inputs
        if is_noisy_value(left):
            return scale_form(left, right, "multiplied" if name == "multiply" else "divided")
        return scale_form(right, left, "multiplied") if name == "multiply" else NotImplemented
    if name in _MIRRORED:
        return compare_and_record(inputs[0], inputs[1], name)
    if name in ("maximum", "minimum", "fmax", "fmin"):
        is_greater = name.endswith("max") or name == "maximum"
        mask = compare_and_record(inputs[0], inputs[1], "greater" if is_greater else "less")
        return choose_forms(mask, *inputs)
    if name == "matmul":
        return multiply_matrices(*inputs)
    unary = {"negative": "__neg__", "positive": "__pos__", "absolute": "__abs__", "fabs": "__abs__"}
    if name in unary:
        return getattr(inputs[0], unary[name])()
    if name in ("rint", "floor", "ceil"):
        change = {"rint": np.round, "floor": np.floor, "ceil": np.ceil}[name]
        whole = inputs[0]._round_if_noise_int(change)
        return NotImplemented if whole is None else whole
    return NotImplemented


_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "sum": sum_form,
    "mean": mean_form,
    "argmax": lambda noisy, axis=None, **other: plain_extreme_index(noisy, "argmax", axis, **other),
    "argmin": lambda noisy, axis=None, **other: plain_extreme_index(noisy, "argmin", axis, **other),
    "max": lambda noisy, axis=None, **other: max_or_min_value(noisy, "argmax", axis, **other),
    "amax": lambda noisy, axis=None, **other: max_or_min_value(noisy, "argmax", axis, **other),
    "min": lambda noisy, axis=None, **other: max_or_min_value(noisy, "argmin", axis, **other),
    "amin": lambda noisy, axis=None, **other: max_or_min_value(noisy, "argmin", axis, **other),
    "clip": clip_form,
    "round": lambda noisy, decimals=0, **other: noisy.round(decimals),
    "around": lambda noisy, decimals=0, **other: noisy.round(decimals),
    "shape": lambda noisy: noisy.shape,
    "ndim": lambda noisy: noisy.ndim,
    "size": lambda noisy, axis=None: noisy.size if axis is None else noisy.shape[axis],
}
"""For names of numpy functions, functions that do the same for a traced first argument."""
