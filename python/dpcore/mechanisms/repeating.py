"""A function of one answer as a mechanism of many: call it once for every output.

What it returns decides the array: numbers and arrays of one shape are stacked, anything else
(strings, mappings, lists of changing length, None) is one output in a 1-d object array.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, flag, invalid, mistyped
from ..events.held import numpy_of
from ..hints import hinted
from ..progress import beats
from ..records import Shown
from ..streams.generators import seeded_globals
from .answers import is_deep, refuse_unreadable, to_object_array
from .callables import dotted_name, refuse_signature
from .frames import is_table_class, names_its_columns, table_to_mapping

__all__ = [
    "SEEDED",
    "Raised",
    "Repeated",
    "Seeded",
    "answers_to_symbols",
    "is_shared",
    "repeat",
    "stack_answers",
]  # fmt: skip

Seeded = Literal["rng", "global", "own"]
SEEDED: Final[tuple[Seeded, ...]] = get_args(Seeded)

_NUMBER_TYPES = (bool, int, float, complex, np.number, np.bool_)

_GeneratorStyle = Literal["position", "keyword"]


@dataclass(frozen=True, slots=True, order=True)
class Raised(Shown):
    """The outcome "an exception was raised", which an audit counts like any other output.

    It holds the name of the exception's class and nothing else: not the message, which would
    make a new symbol of every value that it quotes. Two of them are equal, and sorted, by that
    name; symbols of several kinds are sorted with ``key=repr``.

    Args:
        name: name of the class, such as "ValueError".

    Example:
        >>> Raised("ValueError") == Raised("ValueError"), Raised("KeyError") < Raised("ValueError")
        (True, True)
        >>> sorted([1.5, Raised("ValueError"), "a"], key=repr)
        ['a', 1.5, Raised('ValueError')]
    """

    name: str

    def __repr__(self) -> str:
        return f"Raised({self.name!r})"


@dataclass(frozen=True, slots=True, repr=False)
class Repeated(Shown):
    """A mechanism that calls a function once for every output; `repeat` makes it.

    Args:
        fn: the function, `fn(x)` or `fn(x, rng)`.
        seeded: where its randomness comes from, "rng", "global" or "own".
        catch: exceptions that are outcomes.
        thread_safe: True if the function may run in several threads at once.
    """

    fn: Callable[..., Any]
    seeded: str
    catch: tuple[type[Exception], ...] = ()
    thread_safe: bool = False

    @property
    def reproducible(self) -> bool:
        """True if the outputs follow from the generator, so that an audit's seed repeats it."""
        return self.seeded != "own"

    @property
    def name(self) -> str:
        """The name in reports."""
        return f"repeat({dotted_name(self.fn)})"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Call the function `size` times on `x`.

        Args:
            x: the input, passed on as it is.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            The answers stacked, shape `(size, ...)`; with `catch`, or where they have no common
            shape, an object array, shape `(size,)`.

        Raises:
            TypeError: if an answer is an iterator, a coroutine, a sparse matrix or a graph.
            ValueError: if entries of an answer are masked.
        """
        if self.seeded == "global":
            with seeded_globals(rng):
                answers = self._answers(self.fn, x, size)
        else:
            answers = self._answers(self._bound(rng), x, size)
        return (answers_to_symbols if self.catch else stack_answers)(answers, dotted_name(self.fn))

    def call_by_turns(
        self,
        inputs: tuple[Any, Any],
        size: int,
        rngs: Sequence[np.random.Generator],
        orders: Sequence[tuple[int, int]],
        turn: int,
    ) -> list[npt.NDArray[Any]]:
        """Call the function `size` times on each of two inputs, by turns.

        What the function keeps from call to call then changes for both inputs alike.

        Args:
            inputs: two inputs.
            size: outputs on each of them.
            rngs: the generators of the two inputs.
            orders: for each turn, (0, 1) to begin with the first input, else (1, 0).
            turn: calls on one input before the other one has as many.

        Returns:
            What two calls of the mechanism, each with its generator, return.
        """
        functions = [self._bound(rng) for rng in rngs]
        answers: tuple[list[Any], list[Any]] = [], []
        for number, order in enumerate(orders):
            some = min(turn, size - number * turn)
            for side in order:
                answers[side].extend(self._answers(functions[side], inputs[side], some))
        made = answers_to_symbols if self.catch else stack_answers
        return [made(side, dotted_name(self.fn)) for side in answers]

    def _bound(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        if self.seeded == "own":
            return self.fn
        fn = self.fn
        if _find_style(fn) == "keyword":
            return lambda x: fn(x, rng=rng)
        return lambda x: fn(x, rng)

    def _answers(self, fn: Callable[[Any], Any], x: Any, size: int) -> list[Any]:
        if not self.catch:
            return [fn(x) for _ in beats(size)]
        answers = []
        for _ in beats(size):
            try:
                answers.append(fn(x))
            except self.catch as error:
                answers.append(Raised(type(error).__name__))
        return answers


@hinted
def repeat(
    fn: Callable[..., Any],
    *,
    seeded: Seeded | None = None,
    catch: type[Exception] | Sequence[type[Exception]] = (),
    thread_safe: bool = False,
) -> Repeated:
    """Make a mechanism of a function that returns one output per call.

    Numbers are stacked into an array of shape `(size,)`; arrays, lists and tuples of numbers of
    one shape into `(size, ...)`. Everything else is one output each in a 1-d object array: strings,
    mappings, data classes, sets, lists and arrays of changing length, None. A table (of pandas,
    polars or pyarrow, or an array with fields) becomes a mapping of its columns to lists, with
    its index and names where they say something; of a pandas Series with a plain index the values
    alone count. Each answer is one output: its shape and its names are counted, and may refute.
    With `catch` the outputs are always such objects, so that a number and a caught exception can
    stand in one array: arrays and lists are then nested tuples, numpy numbers plain Python ones,
    and a caught exception is `Raised(class name)`.

    A function that draws its own entropy (a secure generator, OpenDP, a device) is audited as it
    is. Its draws are independent, so the bound holds, but no seed repeats such an audit:
    `reproducible` is False.

    Args:
        fn: `fn(x)` or `fn(x, rng)`; a parameter after the first that is called `rng`, or a second
            one without default, receives the numpy Generator.
        seeded: where the randomness of `fn` comes from; None looks at its signature.
            "rng": the generator it is passed.
            "global": Python's `random`, `numpy.random` and, where torch has been imported, torch's
            default generators, which are seeded from the generator for each call of the mechanism
            and put back afterwards.
            "own": itself; it is called as `fn(x)`.
        catch: a class of exceptions, or several, that are outcomes; any other passes through.
        thread_safe: True allows more threads than one; never with "global".

    Returns:
        The mechanism `(x, size, rng) -> outputs`. It can be pickled if `fn` can.

    Raises:
        TypeError: if `fn` is not callable, or `catch` holds something else than exceptions.
        ValueError: if `fn` takes neither `(x)` nor `(x, rng)`, or `seeded` is unknown, or
            needed because `fn` shows no signature, or contradicts the rest.

    Example:
        >>> import numpy as np
        >>> def noisy(x, rng):
        ...     return x[0] + rng.laplace()
        >>> mechanism = repeat(noisy)
        >>> mechanism([0.0], 3, np.random.default_rng(1)).shape
        (3,)
        >>> import random
        >>> coin = repeat(lambda x: random.random() < 0.5, seeded="global")
        >>> coin(None, 3, np.random.default_rng(1)).dtype
        dtype('bool')
        >>> def root(x, rng):
        ...     noise = x + rng.choice([-1.0, 1.0])
        ...     if noise < 0:
        ...         raise ValueError("negative")
        ...     return noise
        >>> sorted(set(repeat(root, catch=ValueError)(0.0, 99, np.random.default_rng(1))), key=repr)
        [1.0, Raised('ValueError')]
    """
    if not callable(fn):
        raise mistyped("fn", "a callable fn(x) or fn(x, rng)", fn)
    if seeded is not None:
        choice("seeded", seeded, SEEDED)
    kinds = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise mistyped("catch", "a subclass of Exception, or several", kind)
    flag("thread_safe", thread_safe)
    found = _checked_seeding(fn, seeded)
    if thread_safe and found == "global":
        raise invalid("thread_safe", "False with seeded='global'", thread_safe)
    return Repeated(fn, found, kinds, thread_safe)


def is_shared(mechanism: Any) -> bool:
    """Return True if threads may share the calls of a function of one answer."""
    return isinstance(mechanism, Repeated) and mechanism.thread_safe


def _checked_seeding(fn: Callable[..., Any], seeded: str | None) -> str:
    """Check the signature, and return the source of the randomness."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        # Some compiled functions show none.
        if seeded is None:
            requirement = f"one of {SEEDED} for a function that shows no signature"
            raise invalid("seeded", requirement, seeded) from None
        return seeded
    style = _find_style(fn)
    found = seeded or ("own" if style is None else "rng")
    try:
        if found != "rng":
            signature.bind(0)
        elif style == "keyword":
            signature.bind(0, rng=0)
        else:
            signature.bind(0, 0)
    except TypeError:
        takes = "fn(x) or fn(x, rng)" if seeded is None else f"one that seeded={seeded!r} can call"
        raise ValueError(f"fn must be {takes}, got {dotted_name(fn)}{signature}") from None
    rest = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    if seeded is None and style is None and rest:
        raise invalid("seeded", f"one of {SEEDED} for a function of *args", seeded)
    return found


def _find_style(fn: Callable[..., Any]) -> _GeneratorStyle | None:
    """Determine how a function takes the generator: by position, by keyword, or not (None)."""
    refuse_signature(fn, "fn")
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return "position"
    for place, parameter in enumerate(parameters):
        if parameter.name == "rng" and place > 0 and parameter.kind is not parameter.VAR_KEYWORD:
            return "position" if place == 1 and parameter.kind <= 1 else "keyword"
    # Kinds 0 and 1 are the positional ones.
    needed = [p for p in parameters if p.kind <= 1 and p.default is p.empty]
    return "position" if len(needed) > 1 else None


def stack_answers(answers: list[Any], name: str) -> npt.NDArray[Any]:
    """Stack all answers of a function in one array.

    Args:
        answers: what the calls returned.
        name: what messages call the function.

    Returns:
        An array with one row an answer: numbers, rows of numbers, or a 1-d object array.

    Raises:
        TypeError: if an answer is of a kind that is not read.
        ValueError: if entries of an answer are masked.

    Example:
        >>> stack_answers([1.5, 2.0], "f"), stack_answers(["a", None], "f")
        (array([1.5, 2. ]), array(['a', None], dtype=object))
        >>> stack_answers([[1, 2], (3, 4)], "f").shape
        (2, 2)
        >>> stack_answers([[1], [1, 2]], "f").tolist()
        [[1], [1, 2]]
    """
    kinds = set(map(type, answers))
    if all(issubclass(kind, _NUMBER_TYPES) for kind in kinds):
        return _answers_to_numbers(answers, kinds)
    answers = _make_readable(answers, name)
    rows = any(_is_row(answer) for answer in answers)
    numeric = all(isinstance(answer, _NUMBER_TYPES) or _is_numbers(answer) for answer in answers)
    arrays = [_answer_to_array(answer) for answer in answers] if rows or numeric else []
    known = [array for array in arrays if array is not None]
    if not arrays or len(known) < len(arrays) or len({array.shape for array in known}) > 1:
        return to_object_array(answers)
    return np.stack(known)


def answers_to_symbols(answers: list[Any], name: str) -> npt.NDArray[Any]:
    """Convert answers to a 1-d object array with one symbol an answer.

    Args:
        answers: what the calls returned.
        name: what messages call the function.

    Returns:
        Shape `(size,)`: arrays and lists as nested tuples, numpy numbers as Python's, every NaN
        as `math.nan` itself, so that it can be found again in a table.

    Raises:
        TypeError: if an answer is of a kind that is not read.
        ValueError: if entries of an answer are masked.

    Example:
        >>> import numpy as np
        >>> answers_to_symbols([np.float64(0.5), np.array([1, 2]), "a"], "f").tolist()
        [0.5, (1, 2), 'a']
    """
    return to_object_array([_answer_to_symbol(answer) for answer in _make_readable(answers, name)])


def _make_readable(answers: list[Any], name: str) -> list[Any]:
    """Return the answers, tables that name their columns as mappings, tensors as arrays."""
    refuse_unreadable(f"answers of {name}", answers)
    if not any(is_table_class(cls) or hasattr(cls, "dtype") for cls in set(map(type, answers))):
        return answers
    return [
        table_to_mapping(one)
        if names_its_columns(one)
        else numpy_of(one)
        if hasattr(one, "detach")
        else one
        for one in answers
    ]


def _answers_to_numbers(answers: list[Any], kinds: set[type]) -> npt.NDArray[Any]:
    array = np.array(answers)
    if array.dtype.kind == "f" and all(issubclass(kind, (int, np.integer)) for kind in kinds):
        # Integers that no one integer type holds would be rounded.
        return to_object_array(answers)
    return array


def _is_row(answer: Any) -> bool:
    return isinstance(answer, list) or (
        hasattr(answer, "__array__") and not isinstance(answer, np.generic)
    )


def _is_numbers(answer: Any) -> bool:
    return isinstance(answer, tuple) and all(isinstance(entry, _NUMBER_TYPES) for entry in answer)


def _answer_to_array(answer: Any) -> npt.NDArray[Any] | None:
    """Convert an answer to an array of numbers, or of strings as objects; None for any other."""
    if is_deep(answer):
        return None
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError):  # torch, of a tensor with a gradient
        return None
    if array.dtype.kind in "US":
        # numpy would write numbers between strings as strings, and cut NULs off their ends.
        return np.asarray(answer, dtype=object)
    return array


def _answer_to_symbol(answer: Any) -> Any:
    if isinstance(answer, (list, tuple)):
        return tuple(map(_answer_to_symbol, answer))
    if _is_row(answer):
        return _answer_to_symbol(np.asarray(answer).tolist())
    if isinstance(answer, np.generic):
        answer = answer.item()
    return math.nan if isinstance(answer, float) and answer != answer else answer
