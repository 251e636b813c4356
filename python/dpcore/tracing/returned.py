"""The numbers, arrays and texts (leaves) in a returned value, and their comparison."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from ..packages import has_all, is_tensor
from .forms import is_noisy_value
from .replay import TracedRun

RUN_TOLERANCE: Final = 1e-9
"""Relative difference of an entry between two runs that rounding can explain."""
SINGLE_TOLERANCE: Final = 1e-5
"""Relative difference of an entry in single precision that rounding can explain."""
SINGLE_SLACK: Final = 2.0**-20
"""Rounding error of a sum in single precision, relative to the absolute values of its terms."""
CLEAR_TOLERANCE: Final = 1e-12
"""Relative difference of values without noise that rounding can explain."""
_ROUNDING_SLACK: Final = 1e-13
"""Rounding error of a sum, relative to the absolute values of its terms (not to the sum)."""

NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
_PLAIN_TYPES: Final = (str, bytes, bool, int, float, complex, type(None))
_MAX_DEPTH: Final = 12

Leaves = dict[str, Any]


def _record_fields_or_fitted_attributes(value: Any) -> Mapping[str, Any] | None:
    """Return the fields of a record, or the fitted attributes of a model, by name."""
    if has_all(value, "_asdict"):
        return dict(value._asdict())
    if not has_all(value, "__dict__") or callable(value):
        return None
    fields, is_model = vars(value), has_all(type(value), "fit")
    return {k: v for k, v in fields.items() if not is_model or k.endswith("_")}


def iterate_leaves(value: Any, path: str = "output", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield each number, array and text in a returned value, with a path such as "output[0]".

    Lists, dictionaries and objects inside the value are searched.
    """
    if is_noisy_value(value) or isinstance(value, _PLAIN_TYPES) or depth > _MAX_DEPTH:
        yield path, value
    elif isinstance(value, Mapping):
        yield f"{path}.keys()", tuple(map(repr, value))
        for key in value:
            yield from iterate_leaves(value[key], f"{path}[{key!r}]", depth + 1)
    elif isinstance(value, list | tuple) and not has_all(value, "_asdict"):
        if value and all(map(_is_plain_or_noisy_number, value)):
            yield path, _stack_traced_or_plain_numbers(value)
        else:
            yield f"len({path})", len(value)
            for place, item in enumerate(value):
                yield from iterate_leaves(item, f"{path}[{place}]", depth + 1)
    elif isinstance(value, set | frozenset):
        yield path, tuple(sorted(map(repr, value)))
    elif is_tensor(value):
        # numpy has no bfloat16.
        plain = value.float() if str(value.dtype) == "torch.bfloat16" else value
        yield path, plain.detach().cpu().numpy().copy()
    elif has_all(value, "state_dict", "named_parameters"):
        yield from iterate_leaves(dict(value.state_dict()), path, depth + 1)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:
        numbers = value.ravel().tolist() if value.ndim > 1 else []
        if numbers and all(map(_is_plain_or_noisy_number, numbers)):
            # From a data frame: with plain numbers it would be one array.
            yield path, _stack_traced_or_plain_numbers(numbers, value.shape)
        else:
            yield from iterate_leaves(value.tolist(), path, depth + 1)
    elif isinstance(value, np.ndarray | np.generic):
        yield path, np.array(value)
    elif has_all(value, "to_dict", "index"):
        yield f"{path}.index", tuple(map(str, value.index))
        if has_all(value, "columns"):
            yield f"{path}.columns", tuple(map(str, value.columns))
        yield from iterate_leaves(np.asarray(value), path, depth + 1)
    elif (fields := _record_fields_or_fitted_attributes(value)) is not None:
        for name, item in fields.items():
            yield from iterate_leaves(item, f"{path}.{name}", depth + 1)
    else:
        yield path, repr(value) if " object at 0x" not in repr(value) else None


def _is_plain_or_noisy_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) or (is_noisy_value(value) and not value.ndim)


def _stack_traced_or_plain_numbers(values: Any, shape: tuple[int, ...] = (-1,)) -> Any:
    """Return numbers as one array; the array is traced if one of the numbers is traced."""
    if not any(map(is_noisy_value, values)):
        return np.array(values).reshape(shape)
    array: Any = np.stack(list(values)).reshape(shape)
    array.entry_meetings = tuple(v.meeting if is_noisy_value(v) else None for v in values)
    return array


def read_leaves_and_record_noise_use(value: Any, run: TracedRun) -> tuple[Leaves, dict[str, Any]]:
    """Collect the numbers, arrays and texts in a returned value, and record each use of noise.

    Returns:
        Two dictionaries whose keys are paths such as "output[0]". The first dictionary holds the
        values. The second dictionary holds the number `abs(z) + abs(v - z)` for each value v that
        contains noise z.
    """
    leaves: Leaves = {}
    parts: dict[str, Any] = {}
    for path, leaf in iterate_leaves(value):
        if is_noisy_value(leaf):
            plain, ids, _ = leaf.form
            inner = np.abs(leaf.value - plain)
            parts[path] = np.abs(plain) + inner
            leaves[path] = np.array(run.record_use(path, leaf, leaf.value)) if len(ids) else plain
        else:
            leaves[path] = leaf
    return leaves, parts


def leaves_agree(first: Any, second: Any, tolerance: float, parts: Any = 0.0) -> bool:
    """Return True if each entry of two returned values is equal up to a relative tolerance.

    `parts` holds one number for each entry. A difference up to the rounding error of this number is
    also allowed.
    """
    if isinstance(first, str | bytes) and isinstance(second, str | bytes):
        return first == second or _texts_agree_up_to_rounding(first, second, tolerance)
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        pairs = zip(first, second, strict=False)
        return len(first) == len(second) and all(leaves_agree(*pair, tolerance) for pair in pairs)
    try:
        own, other = np.asarray(first), np.asarray(second)
    except (TypeError, ValueError):
        return bool(first == second)
    if own.shape != other.shape:
        return False
    kinds = own.dtype.kind + other.dtype.kind
    if not set(kinds) & set("fc") or set(kinds) - set("biufc"):
        return bool(np.array_equal(own, other))
    if set(kinds) & set("biu"):
        tolerance = min(tolerance, CLEAR_TOLERANCE)
    part_slack = _ROUNDING_SLACK
    if tolerance > CLEAR_TOLERANCE and np.float32 in (own.dtype, other.dtype):
        tolerance, part_slack = SINGLE_TOLERANCE, SINGLE_SLACK
    with np.errstate(all="ignore"):
        slack = tolerance * np.abs(own) + part_slack * np.asarray(parts)
        near = (np.abs(own - other) <= slack) | (own == other)
    return bool(np.all(near | (np.isnan(own) & np.isnan(other))))


def _texts_agree_up_to_rounding(first: Any, second: Any, tolerance: float) -> bool:
    """Return True if two texts are equal, except for rounding of their fractional numbers."""
    if type(first) is not type(second):
        return False
    texts = [
        text.decode("latin-1") if isinstance(text, bytes) else text for text in (first, second)
    ]
    if NUMBER.sub("#", texts[0]) != NUMBER.sub("#", texts[1]):
        return False
    for number, other in zip(*map(NUMBER.findall, texts), strict=True):
        is_whole = number.lstrip("+-").isdigit() or other.lstrip("+-").isdigit()
        if number != other and (
            is_whole or not leaves_agree(float(number), float(other), tolerance)
        ):
            return False
    return True


def differing_path(
    first: Leaves, second: Leaves, tolerance: float, parts: Mapping[str, Any] | None = None
) -> str | None:
    """Return the path of the first value that differs between two outputs, or None."""
    for path in {**first, **second}:
        if path not in first or path not in second:
            return path
        if not leaves_agree(first[path], second[path], tolerance, (parts or {}).get(path, 0.0)):
            return path
    return None
