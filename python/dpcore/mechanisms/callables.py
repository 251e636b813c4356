"""Calls of a user's mechanism: its generator, its name, and outputs that later calls cannot change.

A function of one answer becomes a mechanism of many outputs, with one call for each. Numbers, and
arrays of one shape, are stacked. Any other answer (strings, mappings, lists of different lengths,
None) is one output in a 1-d object array.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from ..errors import choice, flag, instance, invalid, mistyped
from ..events.event import Held, numpy_of
from ..packages import converts_to_array, has_all, imported_module, is_tensor
from ..progress import count_with_progress
from ..report.shown import Shown, dotted_name, name_of
from ..streams import seeded_globals
from ..suggestions import passes_user_code, suggest_arguments
from .answers import (
    AnswerKeeper,
    copy_answer,
    has_both_zeros,
    is_deep,
    is_immutable,
    is_opaque,
    is_table_class,
    names_its_columns,
    outputs_of,
    refuse_unreadable,
    signature_of,
    table_to_mapping,
    to_object_array,
    with_signature,
)
from .declarations import mechanism_attribute

Seeded = Literal["rng", "global", "own"]
SEEDED: Final[tuple[Seeded, ...]] = get_args(Seeded)
_NO_SETTINGS: Final = {
    "size", "n", "m", "k", "shape", "count", "number", "n_samples", "trials", "rng", "generator",
    "random_state", "seed",
}  # fmt: skip
"""Names of a second argument that is a size or a source of randomness, even with a default."""
_REPEATED_FAILURES: Final = 4
"""Number of calls on each input that show which input raises."""
_MAX_REPEATED_CALLS: Final = 64
"""Largest number of outputs of such a call, if no seed repeats the function's randomness."""
_NUMBER_TYPES = (bool, int, float, complex, np.number, np.bool_)
_PLAIN_TYPES: Final = frozenset((float, int, bool, str, type(None), np.float64))
_GeneratorStyle = Literal["position", "keyword"]


def make_generator(
    seed: int, purpose: int, side: int, block: int, *further: int
) -> np.random.Generator:
    """Make the generator of one block of a Python callable, or of a further part of that block."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, side, block, *further))
    return np.random.Generator(np.random.PCG64(sequence))


def mechanism_of(
    given: Any, requirement: str = "a callable (x, size, rng) -> outputs"
) -> Callable[..., Any]:
    """Check that a user's mechanism is an object that can be called, and return it.

    Args:
        given: the mechanism.
        requirement: requirement that an error message states.

    Raises:
        TypeError: if it is a class, if it cannot be called, or if it is a function of one answer,
            from which `dpcore.repeat` makes a mechanism.
    """
    if isinstance(given, type) or not callable(given):
        raise mistyped("mechanism", f"{requirement}{_advise_on_mistake(given)}", given)
    refuse_signature(given, "mechanism")
    if answers_once(given):
        requirement += ", which dpcore.repeat makes of a function of one answer"
        raise mistyped("mechanism", requirement, given)
    mechanism: Callable[..., Any] = given
    return mechanism


def _advise_on_mistake(mechanism: Any) -> str:
    """Return advice for an object that is not a mechanism."""
    if isinstance(mechanism, str):
        return ", or a noise such as dpcore.Laplace(1.0) (names are for the command line)"
    if has_all(mechanism, "shape") or isinstance(mechanism, (list, tuple)):
        return " (outputs that were drawn before go to dpcore.audit_outputs)"
    return ""


def refuse_signature(function: Any, name: str) -> None:
    """Raise an error for a function that takes a size but no generator, or both in a wrong order.

    Args:
        function: user's function; other objects pass.
        name: name of the function in the message.

    Raises:
        TypeError: if its arguments are named (x, size) or (x, rng, size).
    """
    if not inspect.isroutine(function):
        return
    # A built-in function may have no signature.
    with suppress(ValueError):
        if name == "mechanism":
            _refuse_setting(function, name, list(inspect.signature(function).parameters.values()))
    if not inspect.isfunction(function):
        return
    names = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind < 2
    ]
    if names[1:] == ["size"] and len(inspect.signature(function).parameters) == 2:
        need = "a function (x, size, rng): give it a third argument rng, and draw from it"
        raise mistyped(name, need, function)
    if names[1:3] == ["rng", "size"]:
        raise mistyped(name, "a function of (x, size, rng), in this order", function)


def _refuse_setting(function: Any, name: str, parameters: list[inspect.Parameter]) -> None:
    """Raise an error if a function's second argument is a setting and not a size."""
    second = parameters[1] if len(parameters) > 1 else None
    if second is None or second.name in _NO_SETTINGS:
        return
    is_setting = not isinstance(second.default, int) and second.default is not second.empty
    if second.kind is second.KEYWORD_ONLY or (is_setting and second.kind < 2):
        called = function.__name__.replace("<lambda>", "f")
        call = f"dpcore.repeat(lambda x: {called}(x, ...)) makes one"
        need = f"a function of (x, size, rng), not with {second} in second place ({call})"
        raise mistyped(name, need, function)


def answers_once(function: Callable[..., Any]) -> bool:
    """Return True if a function takes `(x)` or `(x, rng)`, and not `(x, size, rng)`.

    Example:
        >>> answers_once(lambda x, rng: x), answers_once(lambda x, size, rng: x)
        (True, False)
    """
    # The signature of other objects, and of decorated functions, may differ from the call.
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        return False
    signature = inspect.signature(function, follow_wrapped=False)

    def takes(*positional: int, **named: int) -> bool:
        try:
            signature.bind(*positional, **named)
        except TypeError:
            return False
        return True

    return not takes(0, 1, 2) and (takes(0) or takes(0, 1) or takes(0, rng=1))


def call_mechanism(
    mechanism: Callable[..., Any],
    x: Any,
    size: int,
    rng: np.random.Generator,
    shape: tuple[int, ...] | None = None,
    fields: tuple[str, ...] | None = None,
) -> npt.NDArray[Any]:
    """Call a Python mechanism once, and pass on its own exceptions unchanged.

    Only the caller holds the outputs: a buffer that the mechanism may fill again is copied.
    """
    name = f"outputs of {name_of(mechanism)}"
    # Do not give the answer another name, because `_held_elsewhere` counts references.
    outputs = outputs_of(name, mechanism(x, size, rng), size, shape, fields)
    outputs = outputs.copy() if _held_elsewhere(outputs) else outputs
    return _copy_held_rows(outputs) if outputs.dtype == object else outputs


@contextmanager
def explain_failures(
    mechanism: Any,
    inputs: tuple[Any, Any],
    size: int,
    make_rng: Callable[[int, int], np.random.Generator],
) -> Iterator[None]:
    """Add a note to a mechanism's exception if only one of two inputs causes it.

    Both inputs are called until a call fails again, and then some more times.

    Args:
        mechanism: the mechanism.
        inputs: x and x'.
        size: number of outputs of the call that may fail.
        make_rng: function `(side, number)` that returns a generator; number 0 is the failed one.
    """
    try:
        yield
    except Exception as error:
        if passes_user_code(error) or "status" in vars(error):
            _add_note_on_failures(error, mechanism, inputs, size, make_rng)
        raise


def _add_note_on_failures(
    error: Exception, mechanism: Any, inputs: tuple[Any, Any], size: int, make_rng: Any
) -> None:
    def fails(side: int, rows: int, number: int) -> bool:
        try:
            mechanism(inputs[side], rows, make_rng(side, number))
        except Exception:
            return True
        return False

    sizes = [size]
    if one_by_one(mechanism):
        # Without a seed, calls may be slow, and the same call would not fail again.
        is_seeded = mechanism_attribute(mechanism, "reproducible") is True
        most = size if is_seeded else min(size, _MAX_REPEATED_CALLS)
        sizes = [min(most, 2**power) for power in range((most - 1).bit_length() + 1)]
    for rows in sizes:
        failures = [int(fails(side, rows, 0)) for side in (0, 1)]
        if any(failures):
            break
    for number in range(1, _REPEATED_FAILURES):
        # Make more calls than the first failure needed, so that a random failure on both inputs is
        # seen on both.
        more = _REPEATED_FAILURES * rows if one_by_one(mechanism) else rows
        failures = [failures[side] + fails(side, more, number) for side in (0, 1)]
    if min(failures) > 0 or not any(failures):
        return
    name = vars(error).get("status", type(error).__name__)
    advice = f"; catch={name} counts it as an output" if name is not None else ""
    if advice and not has_all(mechanism, "catch"):
        advice += " of a function of one answer, in dpcore.repeat(function, catch=...)"
    sides, times = ("x", "x'") if failures[0] else ("x'", "x"), max(failures)
    shown = f"raised on {sides[0]}, answered on {sides[1]}"
    learns = "learns"
    if times < _REPEATED_FAILURES:
        shown += f" (in {times} of {_REPEATED_FAILURES} tries, against none)"
        learns = "may learn"
    error.add_note(f"{shown}: the caller {learns} which input it was{advice}")


def tensor_of(
    mechanism: Any, x: Any, size: int, rng: np.random.Generator, *like: Any
) -> Held | npt.NDArray[Any]:
    """Call a mechanism that makes tensors; keep them on their device if events can read them.

    Events read the outputs before the next call, so a buffer that is filled again is not copied.
    """
    tensor = mechanism.tensor(x, size, rng)
    # The name is computed only for messages: the text of a whole model takes longer than a block of
    # noise.
    if not is_tensor(tensor):
        raise mistyped(f"outputs of {name_of(mechanism)}", "a tensor", tensor)
    if tensor.shape[:1] != (size,):
        requirement = f"a tensor with {size} rows, one per output"
        raise invalid(f"outputs of {name_of(mechanism)}", requirement, tuple(tensor.shape))
    return Held(tensor.detach().resolve_neg()) if Held.takes(tensor) else numpy_of(tensor)


def makes_tensors(mechanism: Any) -> bool:
    """Return True if a mechanism has `tensor(x, size, rng)` and a `device_type`."""
    # A user's class may have one of the two attributes for another purpose.
    made = callable(mechanism_attribute(mechanism, "tensor"))
    return made and isinstance(mechanism_attribute(mechanism, "device_type"), str)


def torch_threads(mechanism: Any) -> AbstractContextManager[None]:
    """Set torch's threads within a block to the mechanism's `torch_threads`, if it has this value.

    For a block of 2^17 numbers, two threads are hardly faster than one. On a busy machine they wait
    for each other eighty times as long.
    """
    n_threads = (
        mechanism_attribute(mechanism, "torch_threads") if makes_tensors(mechanism) else None
    )
    return nullcontext() if n_threads is None else set_torch_threads(n_threads)


@contextmanager
def set_torch_threads(count: int) -> Iterator[None]:
    """Set torch's number of threads within a block; torch must already be imported."""
    torch = imported_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_by_one(mechanism: Any) -> bool:
    """Return True if a mechanism calls a user's function once for each output."""
    is_stated = mechanism_attribute(mechanism, "reproducible") is not None
    return is_stated and not makes_tensors(mechanism)


def runs_on(mechanism: Any) -> str:
    """Return the device and torch version of a mechanism that makes tensors; else an empty string.

    Streams differ between devices, and between versions of torch.

    Example:
        >>> runs_on(lambda x, size, rng: rng.normal(x, 1.0, size))
        ''
    """
    if not makes_tensors(mechanism):
        return ""
    version = str(imported_module("torch").__version__).partition("+")[0]
    return f"{mechanism.device_type}, torch {version}"


def _held_elsewhere(outputs: npt.NDArray[Any]) -> bool:
    """Return True if other references to an array's memory may exist, judged by reference counts.

    An array without other references is not copied. A copy would cost 2 % of the time to draw
    Laplace noise, and 12 % of the time to draw uniform numbers. In doubt the answer is True.

    Args:
        outputs: array to which the caller has exactly one reference.
    """
    if type(outputs) is not np.ndarray or sys.getrefcount(outputs) > _USUAL_HOLDER_COUNTS[0]:
        return True
    if outputs.base is None:
        return not outputs.flags.owndata
    base = outputs.base
    # In numpy, a view refers to the array that owns the memory, not to another view.
    owner = type(base) is np.ndarray and base.flags.owndata
    return not owner or sys.getrefcount(base) > _USUAL_HOLDER_COUNTS[1]


def _copy_held_rows(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return rows of objects; copy them if the mechanism also holds them and may change them."""
    rows: npt.NDArray[Any] = outputs.reshape(-1)
    for place in {0, rows.size - 1} if rows.size else ():
        kind: Any = type(rows[place])
        if is_immutable(kind) or is_opaque(kind) or issubclass(kind, tuple):
            continue
        if sys.getrefcount(rows[place]) > _USUAL_ROW_HOLDERS:
            with suppress(Exception):
                return to_object_array(list(map(copy_answer, rows))).reshape(outputs.shape)
    return outputs


_FRESH_ROWS: Final = to_object_array([{}])
_USUAL_ROW_HOLDERS = sys.getrefcount(_FRESH_ROWS[0])


def _count_usual_holders() -> tuple[int, int]:
    """Count the references to an array without other references, and to its base.

    They are counted at run time, because Python versions differ in their internal references.
    """

    def count_holders(outputs: npt.NDArray[Any]) -> tuple[int, int]:
        base = outputs.base
        return sys.getrefcount(outputs), sys.getrefcount(base)

    def count_named() -> tuple[int, int]:
        outputs = np.empty(2)[:1]
        return count_holders(outputs)

    return count_named()


_USUAL_HOLDER_COUNTS = _count_usual_holders()


@dataclass(frozen=True, slots=True, order=True)
class Raised(Shown):
    """The outcome "an exception was raised", which an audit counts like any other output.

    The message is part of the output, because the caller of the function can read it. Two outcomes
    are compared and sorted by name and message. A list with outputs of several types, such as
    numbers and `Raised`, is sorted with ``key=repr``.

    Args:
        name: name of the class, such as "ValueError"; for a command "exit status 3" or "signal 11".
        message: text of the exception; for a command, the text that it wrote.

    Example:
        >>> Raised("ValueError") == Raised("ValueError"), Raised("KeyError") < Raised("ValueError")
        (True, True)
        >>> sorted([1.5, Raised("ValueError"), "a"], key=repr)
        ['a', 1.5, Raised('ValueError')]
    """

    name: str
    message: str = ""

    @classmethod
    def of(cls, error: Exception) -> Raised:
        """Return the outcome that represents an exception."""
        message = ""
        with suppress(Exception):
            # A user's class of exceptions may raise in `str`.
            message = str(error)
        return cls(type(error).__name__, message)

    def __repr__(self) -> str:
        return f"Raised({self.name!r}{f', {self.message!r}' if self.message else ''})"


@dataclass(frozen=True, slots=True, repr=False)
class Repeated(Shown):
    """A mechanism that calls a function once for each output; `repeat` makes it.

    Args:
        fn: function, `fn(x)` or `fn(x, rng)`.
        seeded: source of its randomness, "rng", "global" or "own".
        catch: exceptions that count as outcomes.
        thread_safe: True if the function may run in several threads at once.
        title: the name in reports, or "" for that of the function.
    """

    fn: Callable[..., Any]
    seeded: str
    catch: tuple[type[Exception], ...] = ()
    thread_safe: bool = False
    title: str = ""
    takes_lists: ClassVar[bool] = True

    @property
    def reproducible(self) -> bool:
        """True if the generator determines the outputs, so an audit's seed repeats the audit."""
        return self.seeded != "own"

    @property
    def name(self) -> str:
        """Name in reports."""
        return self.title or f"repeat({dotted_name(self.fn)})"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Call the function `size` times on `x`.

        Args:
            x: input, passed on unchanged.
            size: number of outputs.
            rng: a numpy Generator.

        Returns:
            The stacked answers, shape `(size, ...)`. With `catch`, or if the answers have no common
            shape, an object array of shape `(size,)`.

        Raises:
            TypeError: if an answer is an iterator, a coroutine, a sparse matrix or a graph.
            ValueError: if entries of an answer are masked.
        """
        answers = AnswerKeeper(dotted_name(self.fn))
        with seeded_globals(rng) if self.seeded == "global" else nullcontext():
            keep_answers(answers, self._bound(rng), x, size, self.catch)
        return collect_answers(answers, self.catch)

    def call_by_turns(
        self,
        inputs: tuple[Any, Any],
        size: int,
        rngs: Sequence[np.random.Generator],
        orders: Sequence[tuple[int, int]],
        turn: int,
    ) -> list[npt.NDArray[Any]]:
        """Call the function `size` times on each of two inputs, in turns.

        If the function keeps a state between calls, this state then changes in the same way for
        both inputs.

        Args:
            inputs: two inputs.
            size: number of outputs for each input.
            rngs: generators of the two inputs.
            orders: for each turn, (0, 1) to begin with the first input, otherwise (1, 0).
            turn: number of calls on one input before the same number on the other input.

        Returns:
            The results of two calls of the mechanism, each with its generator.
        """
        functions = [self._bound(rng) for rng in rngs]
        answers = [AnswerKeeper(dotted_name(self.fn)) for _ in inputs]
        for number, order in enumerate(orders):
            some = min(turn, size - number * turn)
            for side in order:
                keep_answers(answers[side], functions[side], inputs[side], some, self.catch)
        return [collect_answers(side, self.catch) for side in answers]

    def _bound(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        fn = self.fn
        if self.seeded != "rng":
            return fn
        if _find_style(fn) == "keyword":
            return lambda x: fn(x, rng=rng)
        return lambda x: fn(x, rng)


Catch = tuple[type[Exception], ...]
"""Exceptions that count as outcomes."""


def catch_of(catch: Any) -> Catch:
    """Check one or several classes of exceptions that count as outcomes; return them."""
    kinds = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise mistyped("catch", "a subclass of Exception, or several", kind)
    return kinds


def keep_answers(
    answers: AnswerKeeper, fn: Callable[[Any], Any], x: Any, size: int, catch: Catch
) -> None:
    """Call a function `size` times on `x`; keep answers and caught exceptions."""
    add, append = answers.add, answers.values.append
    for _ in count_with_progress(size):
        try:
            answer = fn(x)
        except catch as error:
            answer = Raised.of(error)
        # Frequent types of answers need no check.
        (append if type(answer) in _PLAIN_TYPES else add)(answer)


def collect_answers(answers: AnswerKeeper, catch: Catch) -> npt.NDArray[Any]:
    """Return answers as an array; as an array of objects if exceptions count as outcomes."""
    if not catch:
        return stack_answers(answers.values, answers.name)
    # Convert these scalars to Python's numbers.
    plain = (np.float64, np.int64, np.bool_)
    values = [value.item() if type(value) in plain else value for value in answers.values]
    return to_object_array(_make_readable(values, answers.name))


@suggest_arguments
def repeat(
    fn: Callable[..., Any],
    *,
    seeded: Seeded | None = None,
    catch: type[Exception] | Sequence[type[Exception]] = (),
    thread_safe: bool = False,
    name: str | None = None,
) -> Repeated:
    """Make a mechanism from a function that returns one output per call.

    Numbers are stacked into an array of shape `(size,)`. Arrays, lists and tuples of numbers of one
    shape are stacked into shape `(size, ...)`. Other outputs are stored in a 1-d object array:
    strings, mappings, data classes, sets, lists and arrays of different lengths, None. A
    table (of pandas, polars or pyarrow, or an array with fields) becomes a mapping from column
    names to lists. Its index and names are included if they carry information. For a pandas Series
    with a plain index, only the values count. The shape and the names belong to the output, so
    they may also refute a claim. With `catch`, outputs are always in an object array, which can
    hold numbers and caught exceptions. A caught exception becomes `Raised(class name, message)`.

    A function with its own entropy (a secure generator, OpenDP, a device) is audited unchanged. Its
    draws are independent, so the bound holds. But a seed cannot repeat such an audit, and the
    mechanism's attribute `reproducible` is False.

    Args:
        fn: `fn(x)` or `fn(x, rng)`. The numpy Generator is passed to a parameter named `rng` after
            the first, or to a second parameter without default.
        seeded: source of the randomness of `fn`. None chooses it by the signature of `fn`. "rng":
            the generator that is passed to `fn`. "global": Python's `random`, `numpy.random` and,
            if torch is imported, torch's default generators. They are seeded from the generator for
            each call of the mechanism, and their state is restored afterwards. "own": its own
            source; it is called as `fn(x)`.
        catch: one or several classes of exceptions that count as outcomes; others are raised.
        thread_safe: True to allow several threads; not with "global".
        name: name of the mechanism in reports. Defaults to "repeat(...)" with the name of `fn`.

    Returns:
        The mechanism `(x, size, rng) -> outputs`. It can be pickled if `fn` can.

    Raises:
        TypeError: if `fn` is not callable, `catch` holds an object other than exceptions, or `name`
            is not a string.
        ValueError: if `fn` takes neither `(x)` nor `(x, rng)`; if `seeded` is unknown, contradicts
            the signature or `thread_safe`, or is missing although `fn` has no readable signature.

    Example:
        >>> import numpy as np
        >>> def noisy(x, rng):
        ...     return x[0] + rng.laplace()
        >>> mechanism = repeat(noisy)
        >>> mechanism([0.0], 3, np.random.default_rng(1)).shape
        (3,)
        >>> import random
        >>> coin = repeat(lambda x: random.random() < 0.5, seeded="global", name="fair coin")
        >>> coin, coin(None, 3, np.random.default_rng(1)).dtype
        (fair coin, dtype('bool'))
        >>> def root(x, rng):
        ...     noise = x + rng.choice([-1.0, 1.0])
        ...     if noise < 0:
        ...         raise ValueError("negative")
        ...     return noise
        >>> sorted(set(repeat(root, catch=ValueError)(0.0, 99, np.random.default_rng(1))), key=repr)
        [1.0, Raised('ValueError', 'negative')]
    """
    if not callable(fn):
        raise mistyped("fn", "a callable fn(x) or fn(x, rng)", fn)
    if seeded is not None:
        choice("seeded", seeded, SEEDED)
    kinds = catch_of(catch)
    flag("thread_safe", thread_safe)
    seeding = _checked_seeding(fn, seeded)
    if thread_safe and seeding == "global":
        raise invalid("thread_safe", "False with seeded='global'", thread_safe)
    if name is not None and not instance("name", name, str).strip():
        raise invalid("name", "a name that is not empty, or None", name)
    return Repeated(fn, seeding, kinds, thread_safe, name or "")


def is_own_code(mechanism: Any) -> bool:
    """Return True for a user's Python function or object, also if it is wrapped by `repeat`.

    Example:
        >>> import dpcore
        >>> is_own_code(abs), is_own_code(dpcore.Laplace(1.0)), is_own_code("module.function")
        (True, False, False)
    """
    function = mechanism.fn if isinstance(mechanism, Repeated) else mechanism
    function = inspect.unwrap(function) if callable(function) else function
    is_function = inspect.isfunction(function) or inspect.ismethod(function)
    owner = function if is_function else type(function)
    return callable(function) and owner.__module__.partition(".")[0] != "dpcore"


def is_shared(mechanism: Any) -> bool:
    """Return True if several threads may call a function of one answer."""
    return isinstance(mechanism, Repeated) and mechanism.thread_safe


def _checked_seeding(fn: Callable[..., Any], seeded: str | None) -> str:
    """Check the signature of a function, and return the source of its randomness."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        # Some compiled functions have no readable signature.
        if seeded is None:
            requirement = f"one of {SEEDED} for a function that shows no signature"
            raise invalid("seeded", requirement, seeded) from None
        return seeded
    style = _find_style(fn)
    seeding = seeded or ("own" if style is None else "rng")
    by_keyword = {"rng": 0} if seeding == "rng" and style == "keyword" else {}
    by_position = (0, 0) if seeding == "rng" and style != "keyword" else (0,)
    try:
        signature.bind(*by_position, **by_keyword)
    except TypeError:
        takes = "fn(x) or fn(x, rng)" if seeded is None else f"one that seeded={seeded!r} can call"
        seeding = f"{dotted_name(fn)}{signature}: bind its other arguments with a lambda"
        raise ValueError(f"fn must be {takes}, got {seeding}") from None
    rest = any(p.kind is p.VAR_POSITIONAL for p in signature.parameters.values())
    if seeded is None and style is None and rest:
        raise invalid("seeded", f"one of {SEEDED} for a function of *args", seeded)
    return seeding


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
    # Kinds 0 and 1 are the positional parameters.
    needed = [p for p in parameters if p.kind <= 1 and p.default is p.empty]
    return "position" if len(needed) > 1 else None


def stack_answers(answers: list[Any], name: str) -> npt.NDArray[Any]:
    """Stack all answers of a function in one array.

    Args:
        answers: return values of the calls.
        name: name of the function in messages.

    Returns:
        An array with one row per answer: numbers, rows of numbers, or a 1-d object array.

    Raises:
        TypeError: if an answer has a type that cannot be read.
        ValueError: if entries of an answer are masked.

    Example:
        >>> stack_answers([1.5, 2.0], "f"), stack_answers(["a", None], "f")
        (array([1.5, 2. ]), array(['a', None], dtype=object))
        >>> stack_answers([[1, 2], [3, 4]], "f").shape
        (2, 2)
        >>> stack_answers([[1, 2], (3, 4)], "f").tolist()
        [[1, 2], (3, 4)]
        >>> stack_answers([[1], [1, 2]], "f").tolist()
        [[1], [1, 2]]
    """
    kinds = set(map(type, answers))
    if np.timedelta64 in kinds:
        # The other input may give another unit of time.
        return to_object_array(answers)
    if all(issubclass(kind, _NUMBER_TYPES) for kind in kinds):
        array = np.array(answers)
        whole = all(issubclass(kind, (int, np.integer)) for kind in kinds)
        # Compare one answer of each type.
        signatures = set(
            map(signature_of, dict(zip(map(type, answers), answers, strict=True)).values())
        )
        # Integers beyond the range of every integer type would be rounded.
        is_rounded = whole and array.dtype.kind == "f"
        formed = None if len(signatures) > 1 else with_signature(array, *signatures)
        return to_object_array(answers) if formed is None or is_rounded else formed
    answers = _make_readable(answers, name)
    # Arrays cannot hold mappings.
    if dict in map(type, answers) or len(signatures := set(map(signature_of, answers))) > 1:
        return to_object_array(answers)
    rows = any(_is_row(answer) for answer in answers)
    numeric = all(
        isinstance(entry, _NUMBER_TYPES)
        for answer in answers
        for entry in (answer if isinstance(answer, tuple) else [answer])
    )
    arrays = [_answer_to_array(answer) for answer in answers] if rows or numeric else []
    readable = [array for array in arrays if array is not None]
    if not arrays or len(readable) < len(arrays) or len({array.shape for array in readable}) > 1:
        return to_object_array(answers)
    stacked = np.stack(readable)
    formed = None if has_both_zeros(stacked) else with_signature(stacked, *signatures)
    return to_object_array(answers) if formed is None else formed


def _make_readable(answers: list[Any], name: str) -> list[Any]:
    """Convert tables with named columns to mappings, and tensors to arrays."""
    refuse_unreadable(f"answers of {name}", answers)
    if not any(is_table_class(cls) or has_all(cls, "dtype") for cls in set(map(type, answers))):
        return answers
    read = [table_to_mapping(answer) if names_its_columns(answer) else answer for answer in answers]
    return [numpy_of(answer) if is_tensor(answer) else answer for answer in read]


def _is_row(answer: Any) -> bool:
    return isinstance(answer, list) or (
        converts_to_array(answer) and not isinstance(answer, np.generic)
    )


def _answer_to_array(answer: Any) -> npt.NDArray[Any] | None:
    """Convert an answer to an array of numbers or of strings as objects; otherwise return None."""
    if is_deep(answer):
        return None
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError):  # torch, of a tensor with a gradient
        return None
    if array.dtype.kind in "US":
        # numpy would convert numbers between strings to strings, and cut NULs off the ends.
        return np.asarray(answer, dtype=object)
    return array
