"""Messages of dpcore and checks of its arguments.

Every message has the form "{name} must be {requirement}, got {value}". A value of the wrong kind
raises a TypeError. A value of the right kind outside its range raises a ValueError. Both exceptions
store the name of the argument (see `about`).
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
from .packages import imported_module
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
    """Warning that draws contradict an assumption of a bound, or that they cannot be repeated."""

    def __init__(self, text: str) -> None:
        super().__init__(make_visible(text))


class FileWarning(UserWarning):
    """Warning that the file of a run could not be written: a kill would lose the counts."""

    def __init__(self, text: str) -> None:
        super().__init__(make_visible(text))


def show(value: object) -> str:
    """Format a value for a message: its repr on one line, at most about 80 characters.

    Args:
        value: any object. A numpy scalar is shown as a plain Python number.

    Returns:
        One line of text.

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
    """Format the text "{name} must be {requirement}, got {value}"."""
    return make_visible(f"{name} must be {requirement}, got {show(value)}")


def invalid(name: str, requirement: str, value: object) -> ValueError:
    """Make a ValueError for a value of the right kind that does not meet the requirement."""
    return about(ValueError(message(name, requirement, value)), name)


def mistyped(name: str, requirement: str, value: object) -> TypeError:
    """Make a TypeError for a value of the wrong kind."""
    if isinstance(value, type) and value.__module__ != "builtins" and "class" not in requirement:
        requirement += f", an instance and not the class ({value.__name__}(...) makes one)"
    return about(TypeError(message(name, requirement, value)), name)


def about(error: _Error, argument: str) -> _Error:
    """Return the exception after storing the name of the argument that caused it.

    A caller such as the command line, which uses other names for the arguments, reads this
    attribute instead of the text of the message.

    Args:
        error: the exception. Its attribute `argument` is set to this name.
        argument: the name at the beginning of the message.

    Returns:
        The exception itself.

    Example:
        >>> about(ValueError("x must be new (old=True allows it)"), "x").argument
        'x'
    """
    vars(error).update(argument=argument)
    return error


def argument_of(error: BaseException) -> str | None:
    """Return the name of the argument that caused an exception (see `about`), or None.

    Example:
        >>> argument_of(about(ValueError("x must be new"), "x")), argument_of(ValueError("x"))
        ('x', None)
    """
    return getattr(error, "argument", None)


@contextlib.contextmanager
def part_of(argument: str) -> Iterator[None]:
    """Set `argument` as the cause of errors in this context, in place of one of its parts."""
    try:
        yield
    except (TypeError, ValueError) as error:
        about(error, argument)
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
    """Check a finite real number and return it as a float.

    Args:
        name: the name of the value in the message.
        value: an int, a float or a numpy scalar of either kind, never a bool.
        low: smallest value allowed, or None.
        high: largest value allowed, or None.
        open_low: True if `low` itself is not allowed.
        open_high: True if `high` itself is not allowed.

    Returns:
        The value as a float.

    Raises:
        TypeError: if the value is not a number of these kinds.
        ValueError: if it is not finite or outside the range.

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
    """Check an integer in [low, high] and return it as an int.

    Args:
        name: the name of the value in the message.
        value: an int or a numpy integer, never a bool.
        low: smallest value allowed.
        high: largest value allowed. None means no upper limit.

    Returns:
        The value as an int.

    Raises:
        TypeError: if the value is not an integer by type.
        ValueError: if it is outside the range.

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
    """Check a number of trials; a command line or a configuration may pass it as a string.

    Args:
        name: the name of the value in the message.
        value: an int, a float with an integral value, or a string such as "1e8"; never a bool.

    Returns:
        The number as an int, at least 1 and below 2**63.

    Raises:
        TypeError: if the value is not of these kinds.
        ValueError: if it is not integral, not a number, or outside the range.

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
    """Convert an integral float, or its string if above 0, to int; return others unchanged."""
    with contextlib.suppress(TypeError, ValueError):
        return 0 if _is_number(value) and not value else count("value", value)
    return value


def choice(name: str, value: Any, options: Sequence[_Choice]) -> _Choice:
    """Check that a string is one of the options and return it.

    Args:
        name: the name of the value in the message.
        value: the string.
        options: the strings allowed.

    Returns:
        The value.

    Raises:
        TypeError: if the value is not a string.
        ValueError: if it is not one of the options. The message suggests the most similar option.

    Example:
        >>> choice("norm", "l1", ("l1", "l2"))
        'l1'
    """
    if isinstance(value, str) and value in options:
        return options[options.index(value)]
    requirement = "one of " + ", ".join(repr(option) for option in options)
    if not isinstance(value, str):
        raise mistyped(name, requirement, value)
    raise about(ValueError(message(name, requirement, value) + suggest_word(value, options)), name)


def flag(name: str, value: Any) -> bool:
    """Check a switch, True or False, and return it.

    Args:
        name: the name of the value in the message.
        value: a bool.

    Returns:
        The value.

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


def masked(value: Any) -> bool:
    """Return True if an array has masked entries; numpy would use the values below the mask.

    Example:
        >>> masked(np.ma.masked_array([1.0, 2.0], [False, True])), masked([1.0, 2.0])
        (True, False)
    """
    # Without the imported module, masked arrays cannot exist.
    module = imported_module("numpy.ma")
    return module is not None and bool(module.is_masked(value))


def numeric(name: str, requirement: str, value: Any, kinds: str = "buif") -> npt.NDArray[Any]:
    """Check that a value holds real numbers, in any shape, and return it as an array.

    Args:
        name: the name of the value in the message.
        requirement: the requirement in the message.
        value: anything that numpy reads as bools, integers or floats.
        kinds: numpy's letters for the kinds that are allowed.

    Returns:
        The array. If the value is already an array, it is returned unchanged.

    Raises:
        TypeError: if it does not hold real numbers.
        ValueError: if its rows differ in length, or some entries are masked.

    Example:
        >>> numeric("x", "a matrix", [[1, 2], [3, 4]]).shape
        (2, 2)
    """
    if masked(value):
        raise invalid(name, requirement, value)
    try:
        array = np.asarray(value)
    except ValueError:
        # numpy makes no array of rows of different lengths.
        raise invalid(name, requirement, value) from None
    if array.dtype.kind not in kinds:
        raise mistyped(name, requirement, value)
    return array


def list_to_floats(value: Any) -> Any:
    """Convert a list or tuple of real numbers to float64, shape `(n,)`; return others unchanged.

    Distances, relations, native noises and attacks read lists in this form.

    Example:
        >>> list_to_floats([1, True]), list_to_floats("ab")
        (array([1., 1.]), 'ab')
    """
    if type(value) not in (list, tuple) or not all(isinstance(v, (Real, np.bool_)) for v in value):
        return value
    try:
        return np.array(value, dtype=np.float64)
    except OverflowError:
        return value


def vector(name: str, value: Any, dim: int | None = None) -> npt.NDArray[np.float64]:
    """Check a vector of finite numbers and return it as contiguous and aligned float64.

    Args:
        name: the name of the value in the message.
        value: anything that numpy reads as numbers, with one dimension and at least one entry.
        dim: required number of entries. Defaults to any number.

    Returns:
        The vector. If the value is already of this form, it is returned unchanged.

    Raises:
        TypeError: if it does not hold real numbers.
        ValueError: if it has another number of dimensions or entries, is empty, or has entries that
            are not finite or masked.

    Example:
        >>> vector("x", [1, 2])
        array([1., 2.])
    """
    requirement = "a non-empty vector of finite numbers"
    array = numeric(name, requirement, list_to_floats(value))
    with np.errstate(over="ignore"):
        array = np.require(array, np.float64, ("C", "A"))
    if array.ndim != 1 or array.size == 0 or not np.isfinite(array).all():
        raise invalid(name, requirement, value)
    if dim is not None and array.size != dim:
        raise invalid(name, f"a vector of {dim} entries", value)
    return array


def instance(name: str, value: Any, kind: type[_Kind]) -> _Kind:
    """Check that a value is an instance of a class and return it.

    Example:
        >>> instance("x", 1, int)
        1
    """
    if not isinstance(value, kind):
        raise mistyped(name, f"a {kind.__name__}", value)
    return value


def confidence_level(value: Any, name: str = "confidence") -> float:
    """Check a probability strictly between 0 and 1, such as a confidence, and return it."""
    percentage = _PERCENTAGE.fullmatch(value) if isinstance(value, str) else None
    if percentage or (_is_number(value) and 50 < value < 100):
        share = (float(percentage[1]) if percentage else value) / 100
        raise invalid(name, f"a finite number above 0 and below 1 (did you mean {share:g}?)", value)
    return real(name, value, low=0.0, high=1.0, open_low=True, open_high=True)


def claim_level(value: Any) -> float:
    """Check a claimed epsilon and return it; the error for a pair (epsilon, delta) has advice."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        need = f"a finite number at least 0 (claim={value[0]!r}, delta={value[1]!r})"
        raise mistyped("claim", need, value)
    return real("claim", value, low=0.0)


def delta_level(value: Any, name: str = "delta") -> float:
    """Check a delta, a probability in [0, 1), and return it."""
    return real(name, value, low=0.0, high=1.0, open_high=True)
