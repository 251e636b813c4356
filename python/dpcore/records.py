"""Records of an audit: a pair of inputs, the counts of an event, and what an attack has read.

A record is a frozen dataclass. Its arrays are read-only copies. Two records are equal if their
fields are equal. Arrays are compared by dtype, shape and bytes, so NaN equals NaN and 0.0 differs
from -0.0.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
import numpy.typing as npt

from .errors import instance, integer, real
from .report.card import format_rows_as_html
from .report.figures import show_hidden_characters
from .report.page import make_report_page, save_page
from .report.plain import (
    Form,
    decode_json,
    decode_result,
    encode_json,
    load_json,
    register_codec,
    register_type,
    result_from_dict,
    result_to_dict,
    save_json,
)
from .report.rows import Row
from .report.shown import Shown
from .suggestions import explain_argument_errors

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Rows = np.ndarray[tuple[int, int], np.dtype[Any]]
Codes = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def get_attribute(defaults: type, value: Any, name: str) -> Any:
    """Return an optional attribute of an object, or the default if the object lacks the attribute.

    Args:
        defaults: a class that declares the optional attributes. Each class attribute has
            the name and the default value of an optional attribute.
        value: the object, for example a function of a user.
        name: name of the attribute. The class `defaults` must have an attribute with this name.

    Raises:
        AttributeError: if neither the object nor `defaults` has the attribute.

    Example:
        >>> class Walker:
        ...     legs = 2
        >>> get_attribute(Walker, print, "legs")
        2
    """
    return getattr(value, name, getattr(defaults, name))


def set_fields(record: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass, for use in its `__post_init__`."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


class Record(Shown):
    """Base class of frozen dataclasses that may contain arrays.

    This class implements equality, hash, repr and pickling for such dataclasses.

    Objects of some subclasses can be stored in JSON files. Such a subclass declares the name that
    stands for the class in these files: `class Box(Record, word="Box")`.
    """

    __slots__ = ()

    def __init_subclass__(cls, word: str | None = None, **more: Any) -> None:
        """Declare the name by which JSON files identify the class."""
        super().__init_subclass__(**more)
        if word is not None:
            register_type(word, cls)

    def _values(self, compared: bool = False) -> tuple[Any, ...]:
        cls: Any = type(self)
        return tuple(getattr(self, name) for name in _field_names(cls, compared))

    def __eq__(self, other: object) -> bool:
        """Return True if both objects have the same class and equal fields."""
        if type(other) is not type(self):
            return NotImplemented
        return all(map(_fields_equal, self._values(compared=True), other._values(compared=True)))

    def __hash__(self) -> int:
        """Return a hash that agrees with equality; raise TypeError if a field has no hash."""
        return hash((type(self), *map(_field_key, self._values(compared=True))))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Let pickle call the constructor, so that the arrays of the copy are read-only."""
        return type(self), self._values()


class Answer(Shown):
    """Base class of reports. A report has no truth value; `bool(report)` raises an error."""

    __slots__ = ()

    _INSTEAD: ClassVar[str] = "refuted (True, False or None)"
    """The attribute to use in place of a truth value, and its values."""

    def __bool__(self) -> NoReturn:
        """Raise TypeError. By default, Python would return True for every report."""
        raise TypeError(f"a report is neither true nor false: use .{self._INSTEAD}")


class Result(Answer, Record):
    """Base class of the results of dpcore, such as audits.

    A result can be shown as text, as a table, as an HTML page and as a picture. It can be stored as
    JSON.

    A subclass states the name and version of its JSON format by the class argument `word`. It must
    implement `_lines` and `_plot`, and may override the other private methods.
    """

    __slots__ = ()

    @property
    def _title(self) -> str:
        return str(getattr(self, "name", type(self).__name__))

    def _plot(self, ax: Any) -> Figure:
        raise NotImplementedError

    def _to_page(self) -> str:
        return make_report_page(self, self._title)

    @property
    def _is_verdict_slow(self) -> bool:
        """True if the verdict takes minutes. `load` and `from_json` then do not compute it."""
        return False

    def _derived_values(self) -> dict[str, Any]:
        """Return numbers that follow from the fields; JSON contains them for other programs."""
        return {}

    def _require_consistency(self) -> None:
        """Raise an error if fields that determine a reported number contradict each other."""

    def _repr_html_(self) -> str:
        return format_rows_as_html(self._title, self._lines(), getattr(self, "refuted", None))

    def lines(self) -> list[Row]:
        """Return the rows of the report on this result, each as a tuple (label, text).

        If the result contains its computing time, the last row has the label "time".
        """
        return self._lines()

    def plot(self, ax: Any = None) -> Figure:
        """Plot this result with matplotlib, in matplotlib's current style.

        Args:
            ax: matplotlib axes or an empty figure on which the result is plotted. If the plot has
                several panels, the panels replace the given axes. By default, a new pyplot figure
                is made. `plt.show()` then shows this figure.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is neither axes nor a figure.
        """
        return show_hidden_characters(self._plot(ax))

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the whole report on this result as one HTML page, and write it if a path is given.

        The page does not need other files.

        Args:
            path: path of the HTML file. None means that no file is written.

        Returns:
            The text of the page.

        Raises:
            TypeError: if `path` is not a path.
            ValueError: if `path` is the path of a folder.
            OSError: if the file cannot be written.
        """
        return save_page(self._to_page(), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the content of this result as a dict that contains only JSON types.

        The dict contains the fields of the result, and numbers that are computed from the fields.

        The method `from_dict` converts the dict back to a result.
        """
        return result_to_dict(self, self._derived_values())

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make a result from a dict that `to_dict` returned.

        If the fields contradict the verdict in the dict, an error is raised.

        Args:
            record: the dict that `to_dict` returned.

        Returns:
            The result.

        Raises:
            TypeError: if `record` is not a mapping.
            ValueError: if `record` does not have the form that `to_dict` returns, or if its fields
                contradict its verdict.
        """
        return result_from_dict(cls, record)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return this result as a text in strict JSON.

        The seed is written as a string. Infinite numbers and NaN are written as the strings "inf",
        "-inf" and "nan".

        Args:
            indent: number of spaces for each level of nesting. Defaults to one line without
                indentation.

        Returns:
            The JSON text, with the same data as `to_dict`. The method `save` writes such a text to
            a file.
        """
        return encode_json(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make a result from a JSON text that `to_json` returned.

        If the fields contradict the verdict in the text, an error is raised. Mechanisms of dpcore,
        and objects that JSON can represent, are restored. Any other object in the result is
        replaced by a string with its name.

        Args:
            text: the text that `to_json` returned.

        Returns:
            The result.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if the text does not have the form that `to_json` returns, or if its
                fields contradict its verdict.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
            >>> dpcore.Audit.from_json(report.to_json()) == report
            True
        """
        return decode_json(cls, text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write this result to a JSON file; the method `load` reads such a file.

        If an error occurs, the file is left as it was.

        Args:
            path: path of the file.

        Raises:
            TypeError: if `path` is not a path.
            ValueError: if `path` is the path of a folder.
            OSError: if the file cannot be written.
        """
        return save_json(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a result from a JSON file that the method `save` wrote.

        Args:
            path: path of the file.

        Returns:
            The result.

        Raises:
            TypeError: if `path` is not a path.
            ValueError: if the file does not contain JSON of the form that `save` writes.
            OSError: if the file cannot be read.
        """
        return load_json(cls, path)


register_codec(
    "format",
    Form(lambda value: isinstance(value, Result), lambda value: value.to_dict(), decode_result),
)


@functools.cache
def _field_names(cls: Any, compared: bool) -> tuple[str, ...]:
    return tuple(field.name for field in fields(cls) if field.compare or not compared)


def _field_key(value: Any) -> Hashable:
    if type(value) is not np.ndarray:
        return "nan" if isinstance(value, float) and value != value else value
    # The bytes of an object array are addresses; its elements are what it holds.
    content = tuple(value.ravel().tolist()) if value.dtype.hasobject else value.tobytes()
    return value.dtype.str, value.shape, content


def _fields_equal(left: Any, right: Any) -> bool:
    if left is right:
        return True
    if type(left) is np.ndarray or type(right) is np.ndarray:
        return type(left) is type(right) and bool(_field_key(left) == _field_key(right))
    if isinstance(left, float) and isinstance(right, float) and left != left:
        return right != right
    answer = left == right
    # A tensor or a table returns one value per entry for ==: only identity can be used then.
    return bool(answer) if isinstance(answer, (bool, np.bool_)) else False


def frozen_array(array: np.ndarray[Any, np.dtype[Any]]) -> np.ndarray[Any, np.dtype[Any]]:
    """Return a read-only, C-contiguous copy of an array, with the same dtype."""
    copy = np.array(array, order="C", copy=True)
    copy.setflags(write=False)
    return copy


def _read_only_copy_if_array(value: Any) -> Any:
    # Subclasses such as masked arrays hold more than their numbers: they are kept unchanged.
    return frozen_array(value) if type(value) in (np.ndarray, np.memmap) else value


def has_equal_content(first: Any, second: Any) -> bool:
    """Return True if two objects have the same type and the same content.

    The items of lists and mappings must also have the same types. If two objects cannot be
    compared, the result is True only if both are the same object.

    Example:
        >>> has_equal_content([1, None], [1, None]), has_equal_content([1], [True])
        (True, False)
    """
    if first is second or type(first) is not type(second):
        return first is second
    if type(first) in (list, tuple):
        return len(first) == len(second) and all(map(has_equal_content, first, second))
    if type(first) is dict:
        return first.keys() == second.keys() and all(
            has_equal_content(first[key], second[key]) for key in first
        )
    if isinstance(first, (float, np.generic)):
        # Bytes are compared, as for arrays: NaN equals itself and 0.0 differs from -0.0.
        return _field_key(np.asarray(first)) == _field_key(np.asarray(second))
    try:
        return _fields_equal(first, second)
    except Exception:
        return False


def _input_key(value: Any) -> Hashable:
    if type(value) in (list, tuple):
        return (type(value), *map(_input_key, value))
    is_number = isinstance(value, (float, np.generic))
    return _field_key(np.asarray(value) if is_number else value)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pair(Record, word="Pair"):
    """Two neighbouring inputs of a mechanism, x and x', in this order.

    Args:
        x: the first input. It may be any object. An array is stored as a read-only copy with the
            same dtype. Any other object is stored unchanged. If the mechanism is
            `dpcore.repeat(f)`, the function f is called with the stored object. If the mechanism is
            a function `(x, size, rng)`, a list or tuple of numbers is first converted to an array.
            The dtype of this array is the first of bool, int64 and float64 that represents the
            numbers exactly.
        x_prime: the second input, treated in the same way.
        distance: distance between the inputs, finite and above 0, for a claim of metric privacy. A
            metric privacy claim states that the privacy loss is at most epsilon times `distance`.
            For ordinary DP, `distance` is 1 and is not printed.

    Raises:
        TypeError: if `distance` is not a number.
        ValueError: if `distance` is not finite or not above 0.

    Source:
        Dwork and Roth (2014), definition 2.4 (neighbours); Chatzikokolakis et al. (2013) for the
        metric form.

    Example:
        >>> pair = Pair(np.zeros(2), [1, 1])
        >>> pair.x.flags.writeable, pair.x_prime
        (False, [1, 1])
        >>> pair == Pair(np.zeros(2), [1, 1]), pair == Pair(np.zeros(2), [1.0, 1.0])
        (True, False)
    """

    x: Any = field(metadata={"input": True})
    x_prime: Any = field(metadata={"input": True})
    distance: float = field(default=1.0, metadata={"hidden": 1.0})

    def __post_init__(self) -> None:
        """Freeze the inputs and check the distance."""
        object.__setattr__(self, "x", _read_only_copy_if_array(self.x))
        object.__setattr__(self, "x_prime", _read_only_copy_if_array(self.x_prime))
        distance = real("distance", self.distance, low=0.0, open_low=True)
        object.__setattr__(self, "distance", distance)

    def __eq__(self, other: object) -> bool:
        """Return True if the inputs have equal types and content: 1, 1.0 and True differ."""
        if type(other) is not type(self):
            return NotImplemented
        sides = (self.x, other.x), (self.x_prime, other.x_prime)
        try:
            same = all(has_equal_content(*side) for side in sides)
        except RecursionError:
            # Two lists that contain themselves.
            return False
        return same and self.distance == other.distance

    def __hash__(self) -> int:
        """Return a hash that agrees with equality; raise TypeError if an input has no hash."""
        return hash((Pair, _input_key(self.x), _input_key(self.x_prime), self.distance))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class Counts(Shown):
    """Numbers of outputs on x and on x' that are in an event (a set of outputs).

    Args:
        k: number of outputs on x that are in the event, from 0 to `n`.
        n: number of all outputs on x, at least 1.
        k_prime: number of outputs on x' that are in the event, from 0 to `n_prime`.
        n_prime: number of all outputs on x', at least 1.

    Raises:
        TypeError: if a value is not an integer. A bool does not count as an integer.
        ValueError: if a value is out of range.

    Example:
        >>> Counts(3, 10, 1, 10) + Counts(2, 10, 0, 10)
        Counts(k=5, n=20, k_prime=1, n_prime=20)
    """

    k: int
    n: int
    k_prime: int
    n_prime: int

    def __post_init__(self) -> None:
        """Check the ranges and store plain ints."""
        for k, n in (("k", "n"), ("k_prime", "n_prime")):
            total = integer(n, getattr(self, n), 1)
            object.__setattr__(self, n, total)
            object.__setattr__(self, k, integer(k, getattr(self, k), 0, total))

    def __add__(self, other: object) -> Counts:
        """Return the sum of the counts of two disjoint sets of draws."""
        if not isinstance(other, Counts):
            return NotImplemented
        return Counts(
            self.k + other.k,
            self.n + other.n,
            self.k_prime + other.k_prime,
            self.n_prime + other.n_prime,
        )

    def complement(self) -> Counts:
        """Return the counts of the outputs that are not in the event.

        The event is the set of outputs that this object counts.

        Example:
            >>> Counts(3, 10, 1, 10).complement()
            Counts(k=7, n=10, k_prime=9, n_prime=10)
        """
        return Counts(self.n - self.k, self.n, self.n_prime - self.k_prime, self.n_prime)

    def swapped(self) -> Counts:
        """Return these counts with the inputs x and x' exchanged.

        Example:
            >>> Counts(3, 10, 1, 20).swapped()
            Counts(k=1, n=20, k_prime=3, n_prime=10)
        """
        return Counts(self.k_prime, self.n_prime, self.k, self.n)


register_type("Counts", Counts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartsRead(Record, word="PartsRead"):
    """Number of parts (such as vector entries) that an attack compared before it chose an event.

    A part is, for example, an entry of a vector, the value of a key, a letter of a text or a bit of
    an integer. The event is a set of outputs. The pilot outputs are the outputs from which the
    event is chosen.

    Args:
        found: number of parts that one output has.
        compared: number of parts that the attack compared between outputs on x and outputs on x'.
        outputs: number of compared pilot outputs: the smaller of the numbers on x and on x'.
        chosen: number of selected parts. If outputs have many parts, the attack first selects some
            parts and then reads only these parts. If the attack did not select parts, the number is
            0.
        further: number of further pilot outputs on each input, from which the attack read only the
            selected parts.

    Example:
        >>> str(PartsRead(90_000, 65_536, 2048))
        '65,536 of 90,000 parts, in 2,048 pilot outputs per side'
        >>> str(PartsRead(90_000, 90_000, 128, 200, 128))
        'all 90,000 parts screened, in 128 pilot outputs per side; 200 of them read, in 128 more'
    """

    found: int
    compared: int
    outputs: int
    chosen: int = 0
    further: int = 0

    def __post_init__(self) -> None:
        """Check the ranges."""
        integer("found", self.found, 0)
        integer("compared", self.compared, 0, self.found)
        integer("outputs", self.outputs, 0)
        integer("chosen", self.chosen, 0, self.compared)
        integer("further", self.further, 0)

    @property
    def is_whole(self) -> bool:
        """True if the attack read all parts of the outputs, such as all entries of a vector."""
        return self.compared == self.found and not self.chosen

    def __str__(self) -> str:
        """Return one line for a report."""
        read = f"all {self.found:,} parts" if self.found != 1 else "the only part"
        if self.compared != self.found:
            read = f"{self.compared:,} of {self.found:,} parts"
        where = f"in {self.outputs:,} pilot outputs per side"
        if not self.chosen:
            return f"{read}, {where}"
        more = f"{self.chosen:,} of them read, in {self.further:,} more"
        return f"{read} screened, {where}; {more}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SeenOutput(Record, word="SeenOutput"):
    """One output in the event that an attack chose, and how often this output occurred.

    An event is a set of outputs. The occurrences are counted in the pilot outputs, the outputs on x
    and on x' from which the attack chose the event.

    Args:
        text: the output as text, shortened if it is long.
        k: number of pilot outputs on x that are equal to this output.
        k_prime: number of pilot outputs on x' that are equal to this output.
    """

    text: str
    k: int
    k_prime: int

    def __post_init__(self) -> None:
        """Check the fields."""
        instance("text", self.text, str)
        integer("k", self.k, 0)
        integer("k_prime", self.k_prime, 0)

    def __str__(self) -> str:
        """Return the output with its counts, for a report."""
        return f"{self.text} ({self.k:,} on x, {self.k_prime:,} on x')"


def pair_of(pair: Pair | tuple[Any, Any]) -> Pair:
    """Return a Pair unchanged, or make a Pair from a tuple of two inputs.

    Raises:
        TypeError: if the argument is neither a Pair nor a tuple of two inputs.

    Example:
        >>> pair_of(([0.0], [1.0]))
        Pair(x=[0.0], x_prime=[1.0])
    """
    return Pair(*pair) if type(pair) is tuple and len(pair) == 2 else instance("pair", pair, Pair)
