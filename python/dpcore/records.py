"""Records of an audit: a pair of inputs, the counts of an event, and the outputs that were read.

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
from .report.card import make_card
from .report.figures import show_hidden_characters
from .report.page import make_plain_page, save_page
from .report.plain import (
    Form,
    declare,
    declare_form,
    decode_result,
    load_json,
    read_json,
    result_from_dict,
    result_to_dict,
    save_json,
    write_json,
)
from .report.rows import Row
from .report.shown import Shown
from .suggestions import suggest_arguments

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = npt.NDArray[Any]
Rows = np.ndarray[tuple[int, int], np.dtype[Any]]
Codes = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def attribute_of(kind: type, value: Any, name: str) -> Any:
    """Return an attribute of an object, or a default if the object lacks the attribute.

    Args:
        kind: a class whose class attributes are the names of optional attributes and their
            defaults.
        value: the object, often a plain function of a user.
        name: name of the attribute, which `kind` must declare.

    Raises:
        AttributeError: if `kind` does not declare the attribute.

    Example:
        >>> class Walker:
        ...     legs = 2
        >>> attribute_of(Walker, print, "legs")
        2
    """
    return getattr(value, name, getattr(kind, name))


def set_fields(record: Any, **values: Any) -> None:
    """Set fields of a frozen dataclass during its construction."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


class Record(Shown):
    """Equality, hash, repr and pickling for frozen dataclasses that may hold arrays.

    If a subclass can be stored in JSON files, it declares the name by which the files identify it:
    `class Box(Record, word="Box")`.
    """

    __slots__ = ()

    def __init_subclass__(cls, word: str | None = None, **more: Any) -> None:
        """Declare the name by which JSON files identify the class."""
        super().__init_subclass__(**more)
        if word is not None:
            declare(word, cls)

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
    """Base class of reports. `bool(report)` raises an error: a report has no truth value."""

    __slots__ = ()

    _INSTEAD: ClassVar[str] = "refuted (True, False or None)"
    """The attribute to use in place of a truth value, and its values."""

    def __bool__(self) -> NoReturn:
        """Raise TypeError. By default, Python would return True for every report."""
        raise TypeError(f"a report is neither true nor false: use .{self._INSTEAD}")


class Result(Answer, Record):
    """Base class of results, which can be shown as text, table, HTML page, picture and JSON.

    The `word` of a subclass is the name and version of its JSON format. A subclass implements
    `_lines` and `_plot`. The other private methods have defaults.
    """

    __slots__ = ()

    @property
    def _title(self) -> str:
        return str(getattr(self, "name", type(self).__name__))

    def _plot(self, ax: Any) -> Figure:
        raise NotImplementedError

    def _to_page(self) -> str:
        return make_plain_page(self, self._title)

    @property
    def _is_verdict_slow(self) -> bool:
        """True if the verdict takes minutes. `load` and `from_json` then do not compute it."""
        return False

    def _to_figures(self) -> dict[str, Any]:
        """Return numbers that follow from the fields; JSON contains them for other programs."""
        return {}

    def _require_consistency(self) -> None:
        """Raise an error if fields that a reported number depends on contradict each other."""

    def _repr_html_(self) -> str:
        return make_card(self._title, self._lines(), getattr(self, "refuted", None))

    def lines(self) -> list[Row]:
        """Return the rows (label, text) of the report.

        If the result states the time that it took, the last row has the label "time".
        """
        return self._lines()

    def plot(self, ax: Any = None) -> Figure:
        """Plot the result with matplotlib, in the current style.

        Args:
            ax: matplotlib axes or an empty figure, on which the result is plotted. A plot of
                several panels removes the axes and takes their place. By default, a new pyplot
                figure is made, which `plt.show()` shows.

        Returns:
            The matplotlib figure.

        Raises:
            TypeError: if `ax` is neither axes nor a figure.
        """
        return show_hidden_characters(self._plot(ax))

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return one self-contained HTML page with the whole report, and also write it to a file.

        Args:
            path: path of the file. None means that no file is written.

        Returns:
            The text of the page.

        Raises:
            TypeError: if `path` is not a path.
            ValueError: if `path` is the path of a folder.
            OSError: if the file cannot be written.
        """
        return save_page(self._to_page(), path)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, and numbers that follow from them, as a dict of JSON types.

        `from_dict` makes the result from the dict.
        """
        return result_to_dict(self, self._to_figures())

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Make the result from a dict that `to_dict` returned.

        An error is raised if the fields do not give the verdict that is stored in the dict.

        Args:
            record: the dict of JSON types.

        Returns:
            The result.

        Raises:
            TypeError: if the record is not a mapping.
            ValueError: if the record does not have the form that `to_dict` returns.
        """
        return result_from_dict(cls, record)

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the result as strict JSON.

        The seed is a string. Numbers that are not finite become the strings "inf", "-inf" and
        "nan".

        Args:
            indent: number of spaces for each level of nesting. Defaults to one line without
                indentation.

        Returns:
            The data of `to_dict` as text. `save` writes the text to a file.
        """
        return write_json(self, indent)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Make the result from a text that `to_json` returned.

        An error is raised if the fields do not give the verdict that is stored in the text.
        Mechanisms of dpcore and objects that JSON can represent are restored. Every other object is
        replaced by its name as a string.

        Args:
            text: a JSON object.

        Returns:
            The result.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if the text is not JSON of the form that `to_json` returns.

        Example:
            >>> import dpcore
            >>> report = dpcore.audit(dpcore.Laplace(1.0), trials=1000, claim=1.0, rng=1)
            >>> dpcore.Audit.from_json(report.to_json()) == report
            True
        """
        return read_json(cls, text)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file as JSON, which `load` reads.

        After an error, the file does not exist or is unchanged.

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
        """Read the result from a file that `save` wrote.

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


declare_form(
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


def _freeze_input(value: Any) -> Any:
    # Subclasses such as masked arrays hold more than their numbers: they are kept unchanged.
    return frozen_array(value) if type(value) in (np.ndarray, np.memmap) else value


def has_equal_content(first: Any, second: Any) -> bool:
    """Return True if two inputs have the same type and content.

    The items of lists and mappings are compared in the same way. If objects cannot be compared,
    the result is True only for one and the same object.

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


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Pair(Record, word="Pair"):
    """Ordered pair of two neighbouring inputs.

    Args:
        x: the first input, which may be any object. An array becomes a read-only copy with the same
            dtype. Any other object is kept unchanged. With `dpcore.repeat(f)`, the function f is
            called with this object. A mechanism `(x, size, rng)` gets a list or tuple of
            numbers as an array. The dtype of the array is the first of bool, int64 and float64 that
            represents the numbers exactly.
        x_prime: the second input, treated in the same way.
        distance: distance between the inputs, finite and above 0, for a claim of metric privacy.
            Such a claim states that the loss is at most epsilon times `distance`. For ordinary
            neighbours, `distance` is 1 and is not printed.

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
        object.__setattr__(self, "x", _freeze_input(self.x))
        object.__setattr__(self, "x_prime", _freeze_input(self.x_prime))
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


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class Counts(Shown):
    """Counts of an event among outputs on the two inputs of a pair.

    Args:
        k: number of outputs in the event on `pair.x`, from 0 to `n`.
        n: number of outputs drawn on `pair.x`, at least 1.
        k_prime: number of outputs in the event on `pair.x_prime`, from 0 to `n_prime`.
        n_prime: number of outputs drawn on `pair.x_prime`, at least 1.

    Raises:
        TypeError: if a value is not an integer (a bool is not one).
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
        """Return the counts of the complement of the event, on the same outputs.

        Example:
            >>> Counts(3, 10, 1, 10).complement()
            Counts(k=7, n=10, k_prime=9, n_prime=10)
        """
        return Counts(self.n - self.k, self.n, self.n_prime - self.k_prime, self.n_prime)

    def swapped(self) -> Counts:
        """Return the same counts with the two inputs exchanged.

        Example:
            >>> Counts(3, 10, 1, 20).swapped()
            Counts(k=1, n=20, k_prime=3, n_prime=10)
        """
        return Counts(self.k_prime, self.n_prime, self.k, self.n)


declare("Counts", Counts)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartsRead(Record, word="PartsRead"):
    """Number of parts of the outputs that an attack read before it chose an event.

    A part is, for example, an entry of a vector, a field, the value of a key, a letter of a text or
    a bit of an integer. The pilot outputs are those from which the event is chosen.

    Args:
        found: number of parts of one output.
        compared: number of these parts that were compared between outputs on x and on x'.
        outputs: number of pilot outputs that were compared: the smaller of the numbers on x and on
            x'.
        chosen: number of parts that the attack used, if it first selected parts of wide outputs.
            Otherwise 0.
        further: number of additional pilot outputs on each input in which the selected parts were
            read.

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
        """True if the attack read all parts."""
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
    """An output inside the event, and its numbers of occurrences among the pilot outputs.

    The pilot outputs are the outputs on x and on x' from which the event was chosen.

    Args:
        text: the output as text, shortened if it is long.
        k: number of occurrences among the pilot outputs on x.
        k_prime: number of occurrences among the pilot outputs on x'.
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
