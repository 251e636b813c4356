"""Messages of dpcore and checks of its arguments.

Every message has the form "{name} must be {requirement}, got {value}". An argument of the wrong
type causes a TypeError. An argument of the right type outside its range causes a ValueError. The
attribute `argument` of these exceptions is the name of the argument.
"""

from __future__ import annotations

import contextlib
import math
import re
import reprlib
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from numbers import Real
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from .advice import suggest_word
from .packages import get_loaded_module
from .visible import make_visible

_Choice = TypeVar("_Choice", bound=str)
_Kind = TypeVar("_Kind")
_Error = TypeVar("_Error", bound=Exception)
_SHORT_COUNT: Final = re.compile(r"([0-9.]+) ?([kmbgKMBG])")
_PERCENTAGE: Final = re.compile(r"([0-9]*[.]?[0-9]+) ?%")

_MAX_VALUE_WIDTH = 80
_TRIALS_END = 2**63

_short_repr = reprlib.Repr()
_short_repr.maxlist = _short_repr.maxtuple = _short_repr.maxdict = _short_repr.maxset = 8
_short_repr.maxstring = _short_repr.maxother = _short_repr.maxlong = _MAX_VALUE_WIDTH


class AssumptionWarning(UserWarning):
    """Warning that an assumption behind a certified lower bound on epsilon may be false.

    An audit issues this warning, for example, if the outputs of the mechanism contradict the
    assumption, or if the same seed does not give the same outputs again.
    """

    def __init__(self, text: str) -> None:
        super().__init__(make_visible(text))


class FileWarning(UserWarning):
    """Warning that a running audit could not write the file with its counts.

    If the process is stopped, the counts are lost.
    """

    def __init__(self, text: str) -> None:
        super().__init__(make_visible(text))


def show(value: object) -> str:
    """Return the repr of a value on one line, for an error message, shortened if it is long.

    Args:
        value: any object. A numpy scalar is shown as a plain Python number.

    Returns:
        One line of text, with at most about 80 characters.

    Example:
        >>> import numpy as np
        >>> show(np.float64(1.5))
        '1.5'
    """
    if isinstance(value, np.generic):
        # A long double has no equal type in Python: item() returns it unchanged.
        plain = value.item()
        value = plain if not isinstance(plain, np.generic) else float(plain)
    try:
        text = make_visible(" ".join(_short_repr.repr(value).split()))
    except Exception:
        # A broken __repr__ must not hide the error that this message describes.
        text = f"an object of type {type(value).__name__}"
    return text if len(text) <= _MAX_VALUE_WIDTH else text[: _MAX_VALUE_WIDTH - 3] + "..."


def message(name: str, requirement: str, value: object) -> str:
    """Return the error message "{name} must be {requirement}, got {value}"."""
    return make_visible(f"{name} must be {requirement}, got {show(value)}")


def invalid(name: str, requirement: str, value: object) -> ValueError:
    """Return a ValueError for a value of the right type that does not meet a requirement."""
    return tag_error(ValueError(message(name, requirement, value)), name)


def mistyped(name: str, requirement: str, value: object) -> TypeError:
    """Return a TypeError for a value of the wrong type."""
    if isinstance(value, type) and value.__module__ != "builtins" and "class" not in requirement:
        requirement += f", an instance and not the class ({value.__name__}(...) makes one)"
    return tag_error(TypeError(message(name, requirement, value)), name)


def tag_error(error: _Error, argument: str) -> _Error:
    """Store in an exception the name of the argument that caused the error.

    The command-line program uses different names for some arguments. This program reads the
    attribute `argument` of the exception, to show the different name in the message.

    Args:
        error: the exception. The function sets the attribute `argument` of this exception.
        argument: name of the argument.

    Returns:
        The exception itself.

    Example:
        >>> tag_error(ValueError("x must be new (old=True allows it)"), "x").argument
        'x'
    """
    vars(error).update(argument=argument)
    return error


def argument_of(error: BaseException) -> str | None:
    """Return the name of the argument that caused an exception, or None if no name is stored.

    Example:
        >>> argument_of(tag_error(ValueError("x must be new"), "x")), argument_of(ValueError("x"))
        ('x', None)
    """
    return getattr(error, "argument", None)


@contextlib.contextmanager
def tag_errors(argument: str) -> Iterator[None]:
    """Return a context manager that names `argument` as the cause of each error in its block.

    Without this context manager, an error may name only a part of the argument, such as the entry
    `x` of the argument `pair`.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        tag_error(error, argument)
        raise


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


# The text is made for valid values too, always with the same limits.
@lru_cache(maxsize=256)
def _finite_requirement(
    low: float | None, high: float | None, open_low: bool, open_high: bool
) -> str:
    parts = []
    if low is not None:
        parts.append(f"{'above' if open_low else 'at least'} {low:g}")
    if high is not None:
        parts.append(f"{'below' if open_high else 'at most'} {high:g}")
    return " ".join(["a finite number", " and ".join(parts)]).rstrip()


def real(
    name: str,
    value: Any,
    *,
    low: float | None = None,
    high: float | None = None,
    open_low: bool = False,
    open_high: bool = False,
) -> float:
    """Check that a value is a finite real number in a range, and return it as a float.

    Args:
        name: name of the argument in error messages.
        value: an int, a float, or a numpy integer or float. A bool is not allowed.
        low: smallest value allowed. None means no lower limit.
        high: largest value allowed. None means no upper limit.
        open_low: True if `low` itself is not allowed.
        open_high: True if `high` itself is not allowed.

    Returns:
        The value as a float.

    Raises:
        TypeError: if the value has another type.
        ValueError: if the value is not finite, or is outside the range.

    Example:
        >>> real("scale", 2, low=0.0, open_low=True)
        2.0
    """
    requirement = _finite_requirement(low, high, open_low, open_high)
    if not _is_number(value):
        raise mistyped(name, requirement, value)
    try:
        number = float(value)
    except OverflowError:
        raise invalid(name, requirement, value) from None
    below = low is not None and (number < low or (open_low and number == low))
    above = high is not None and (number > high or (open_high and number == high))
    if not math.isfinite(number) or below or above:
        raise invalid(name, requirement, value)
    return number


def integer(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Check that a value is an integer in [low, high], and return it as an int.

    Args:
        name: name of the argument in error messages.
        value: an int or a numpy integer. A bool is not allowed.
        low: smallest value allowed.
        high: largest value allowed. None means no upper limit.

    Returns:
        The value as an int.

    Raises:
        TypeError: if the type of the value is not an integer type.
        ValueError: if the value is outside the range.

    Example:
        >>> integer("dim", 3, 1)
        3
    """
    span = f"at least {low}" if high is None else f"from {low} to {high}"
    requirement = f"an integer {span}"
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool):
        raise mistyped(name, requirement, value)
    number = int(value)
    if number < low or (high is not None and number > high):
        raise invalid(name, requirement, value)
    return number


def count(name: str, value: Any) -> int:
    """Check that a value is a whole number of trials, such as 100 or "1e8"; return it as an int.

    Args:
        name: name of the argument in error messages.
        value: an int, a float with an integral value, or a string such as "1e8". A bool is not
            allowed.

    Returns:
        The number as an int, at least 1 and below 2**63.

    Raises:
        TypeError: if the value has another type.
        ValueError: if the value is not a whole number, or is outside the range.

    Example:
        >>> count("trials", "1e8")
        100000000
    """
    requirement = "a whole number at least 1 and below 2**63"
    if isinstance(value, str) and (parts := _SHORT_COUNT.fullmatch(value)):
        zeros = {"k": 3, "m": 6, "b": 9, "g": 9}[parts[2].lower()]
        raise invalid(name, f"{requirement} (did you mean '{parts[1]}e{zeros}'?)", value)
    if not (_is_number(value) or isinstance(value, str)):
        raise mistyped(name, requirement, value)
    try:
        # Decimal reads ints, floats and strings without rounding: "1e18" stays exact. It accepts
        # only float64 among numpy's types.
        kind = int if isinstance(value, np.integer) else float
        number = Decimal(kind(value) if isinstance(value, np.number) else value)
    except InvalidOperation:
        raise invalid(name, requirement, value) from None
    # The range comes first: int() of "1e999999999" would fill the memory.
    if not number.is_finite() or not 1 <= number < _TRIALS_END or number != int(number):
        raise invalid(name, requirement, value)
    return int(number)


def whole(value: Any) -> Any:
    """Convert a float with an integral value to an int; return other values unchanged.

    A string that contains a positive whole number, such as "1e8", is also converted to an int.
    """
    with contextlib.suppress(TypeError, ValueError):
        return 0 if _is_number(value) and not value else count("value", value)
    return value


def choice(name: str, value: Any, options: Sequence[_Choice]) -> _Choice:
    """Check that a string is one of the allowed options, and return it.

    Args:
        name: name of the argument in error messages.
        value: the string to check.
        options: the allowed strings.

    Returns:
        The string, unchanged.

    Raises:
        TypeError: if the value is not a string.
        ValueError: if the value is not one of the options. The message suggests the most similar
            option.

    Example:
        >>> choice("norm", "l1", ("l1", "l2"))
        'l1'
    """
    if isinstance(value, str) and value in options:
        return options[options.index(value)]
    requirement = "one of " + ", ".join(repr(option) for option in options)
    if not isinstance(value, str):
        raise mistyped(name, requirement, value)
    raise tag_error(
        ValueError(message(name, requirement, value) + suggest_word(value, options)), name
    )


def flag(name: str, value: Any) -> bool:
    """Check that a value is True or False, and return it.

    Args:
        name: name of the argument in error messages.
        value: a bool.

    Returns:
        The bool, unchanged.

    Raises:
        TypeError: if the value is not a bool.

    Example:
        >>> flag("partial", True)
        True
        >>> flag("partial", 1)
        Traceback (most recent call last):
        TypeError: partial must be True or False, got 1
    """
    if not isinstance(value, bool):
        raise mistyped(name, "True or False", value)
    return value


def has_masked(value: Any) -> bool:
    """Return True if a value is a numpy masked array in which at least one entry is masked.

    Example:
        >>> has_masked(np.ma.masked_array([1.0, 2.0], [False, True])), has_masked([1.0, 2.0])
        (True, False)
    """
    # Without the imported module, masked arrays cannot exist.
    module = get_loaded_module("numpy.ma")
    return module is not None and bool(module.is_masked(value))


def numeric(name: str, requirement: str, value: Any, kinds: str = "buif") -> npt.NDArray[Any]:
    """Check that a value holds real numbers, in any shape, and return it as an array.

    Args:
        name: name of the argument in error messages.
        requirement: text in error messages that states which values are allowed, such as "a
            matrix".
        value: any object that numpy reads as bools, integers or floats.
        kinds: allowed values of numpy's `dtype.kind`. The letters are "b" for bool, "u" for
            unsigned integer, "i" for integer and "f" for float.

    Returns:
        The array. If the value is already an array, it is returned unchanged.

    Raises:
        TypeError: if the value does not hold real numbers.
        ValueError: if the rows of the value differ in length, or if some entries are masked.

    Example:
        >>> numeric("x", "a matrix", [[1, 2], [3, 4]]).shape
        (2, 2)
    """
    if has_masked(value):
        raise invalid(name, requirement, value)
    try:
        array = np.asarray(value)
    except ValueError:
        # numpy makes no array of rows of different lengths.
        raise invalid(name, requirement, value) from None
    if array.dtype.kind not in kinds:
        raise mistyped(name, requirement, value)
    return array


def flat_list_to_floats(value: Any) -> Any:
    """Convert a list or tuple of n real numbers to a float64 array of shape `(n,)`.

    Other values are returned unchanged.

    Example:
        >>> flat_list_to_floats([1, True]), flat_list_to_floats("ab")
        (array([1., 1.]), 'ab')
    """
    if type(value) not in (list, tuple) or not all(isinstance(v, (Real, np.bool_)) for v in value):
        return value
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:
        return value


def vector(name: str, value: Any, dim: int | None = None) -> npt.NDArray[np.float64]:
    """Check that a value is a vector of finite numbers, and return it as a float64 array.

    Args:
        name: name of the argument in error messages.
        value: any object that numpy reads as a one-dimensional array of numbers, with at least one
            entry.
        dim: required number of entries. None allows any number.

    Returns:
        The vector as a contiguous, aligned array. If the value is already such an array, the same
        object is returned.

    Raises:
        TypeError: if the value does not hold real numbers.
        ValueError: if the value is not one-dimensional, is empty, has a wrong number of entries, or
            has entries that are masked, infinite or NaN.

    Example:
        >>> vector("x", [1, 2])
        array([1., 2.])
    """
    requirement = "a non-empty vector of finite numbers"
    array = numeric(name, requirement, flat_list_to_floats(value))
    with np.errstate(over="ignore"):
        array = np.require(array, np.float64, ("C", "A"))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise invalid(name, requirement, value)
    if dim is not None and array.size != dim:
        raise invalid(name, f"a vector of {dim} entries", value)
    return array


def instance(name: str, value: Any, kind: type[_Kind]) -> _Kind:
    """Check that a value is an instance of the class `kind`, and return the value.

    Example:
        >>> instance("x", 1, int)
        1
    """
    if not isinstance(value, kind):
        raise mistyped(name, f"a {kind.__name__}", value)
    return value


def confidence_level(value: Any, name: str = "confidence") -> float:
    """Check that a value, such as a confidence level, is above 0 and below 1, and return it."""
    percentage = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    if percentage or (_is_number(value) and 50 < value < 100):
        share = (float(percentage[1]) if percentage else value) / 100
        raise invalid(name, f"a finite number above 0 and below 1 (did you mean {share:g}?)", value)
    return real(name, value, low=0.0, high=1.0, open_low=True, open_high=True)


def check_epsilon(value: Any) -> float:
    """Check that a claimed epsilon is a number of at least 0, and return it as a float.

    If the value is a pair (epsilon, delta), the function raises an error. The message explains how
    to pass delta.
    """
    if isinstance(value, (tuple, list)) and len(value) == 2:
        need = f"a finite number at least 0 (claim={value[0]!r}, delta={value[1]!r})"
        raise mistyped("claim", need, value)
    return real("claim", value, low=0.0)


def delta_level(value: Any, name: str = "delta") -> float:
    """Check that a delta is at least 0 and below 1, and return it as a float."""
    return real(name, value, low=0.0, high=1.0, open_high=True)
