"""Calls of mechanisms that users write in Python, and `repeat`.

`repeat` makes a mechanism from a function that returns one answer per call. Numbers, and arrays of
equal shape, are stacked. All other answers (strings, mappings, lists of different lengths, None)
are stored in a 1-d object array.
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
from ..events.event import Batch, numpy_of
from ..packages import get_loaded_module, has_all, has_array_method, is_tensor
from ..progress import count_with_progress
from ..report.shown import Shown, dotted_name, name_of
from ..streams import seeded_globals
from ..suggestions import explain_argument_errors, passes_user_code
from .answers import (
    AnswerKeeper,
    attach_item_types,
    copy_answer,
    has_both_zeros,
    has_named_columns,
    has_unreadable_contents,
    is_immutable,
    is_table_class,
    is_too_deep,
    item_types_of,
    refuse_unreadable_row_types,
    table_to_mapping,
    to_object_array,
    to_outputs,
)
from .declarations import get_or_default

Seeded = Literal["rng", "global", "own"]
SEEDED: Final[tuple[Seeded, ...]] = get_args(Seeded)
_NO_SETTINGS: Final = {
    "size", "n", "m", "k", "shape", "count", "number", "n_samples", "trials", "rng", "generator",
    "random_state", "seed",
}  # fmt: skip
"""Names of arguments that are a size or a source of randomness, even if they have a default."""
_REPEATED_FAILURES: Final = 4
"""Number of calls on each input to find which input raises an exception."""
_MAX_REPEATED_CALLS: Final = 64
"""Largest number of outputs of a repeated call, if a seed does not determine the outputs."""
_NUMBER_TYPES = (bool, int, float, complex, np.number, np.bool_)
_PLAIN_TYPES: Final = frozenset((float, int, bool, str, type(None), np.float64))
_GeneratorStyle = Literal["position", "keyword"]


def make_generator(
    seed: int, purpose: int, side: int, block: int, *further: int
) -> np.random.Generator:
    """Make a numpy Generator for a block (the outputs of one call), or for a part of a block.

    The arguments together determine the generator. Equal arguments give equal generators.
    """
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, side, block, *further))
    return np.random.Generator(np.random.PCG64(sequence))


def check_mechanism(
    given: Any, requirement: str = "a callable (x, size, rng) -> outputs"
) -> Callable[..., Any]:
    """Check that a user's mechanism is a callable `(x, size, rng)`, and return it.

    Args:
        given: the object that the user passed as a mechanism.
        requirement: text for the error message that states what the mechanism must be.

    Raises:
        TypeError: if the mechanism is a class, cannot be called, or is a function that returns one
            output per call. `dpcore.repeat` makes a mechanism from a function of this kind.
    """
    if isinstance(given, type) or not callable(given):
        raise mistyped("mechanism", f"{requirement}{_advise_on_mistake(given)}", given)
    refuse_wrong_parameter_order(given, "mechanism")
    if has_no_size_argument(given):
        requirement += ", which dpcore.repeat makes of a function of one answer"
        raise mistyped("mechanism", requirement, given)
    mechanism: Callable[..., Any] = given
    return mechanism


def _advise_on_mistake(mechanism: Any) -> str:
    """Return advice for an error message about an object that is not a mechanism."""
    if isinstance(mechanism, str):
        return ", or a noise such as dpcore.Laplace(1.0) (names are for the command line)"
    if has_all(mechanism, "shape") or isinstance(mechanism, (list, tuple)):
        return " (outputs that were drawn before go to dpcore.audit_outputs)"
    return ""


def refuse_wrong_parameter_order(function: Any, name: str) -> None:
    """Raise an error if a function has the parameters (x, size) or (x, rng, size) in this order.

    Args:
        function: function of the user. An object that is not a function raises no error.
        name: name of the argument in the error message, such as "mechanism".

    Raises:
        TypeError: if the parameters have these names in this order. If `name` is "mechanism", also
            if the second parameter is a setting, such as ``epsilon=1.0``.
    """
    if not inspect.isroutine(function):
        return
    # A built-in function may have no signature.
    with suppress(ValueError):
        if name == "mechanism":
            _refuse_setting_as_size(
                function, name, list(inspect.signature(function).parameters.values())
            )
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


def _refuse_setting_as_size(function: Any, name: str, parameters: list[inspect.Parameter]) -> None:
    """Raise an error if the second argument of a function is a setting, such as ``epsilon=1.0``."""
    second = parameters[1] if len(parameters) > 1 else None
    if second is None or second.name in _NO_SETTINGS:
        return
    is_setting = not isinstance(second.default, int) and second.default is not second.empty
    if second.kind is second.KEYWORD_ONLY or (is_setting and second.kind < 2):
        called = function.__name__.replace("<lambda>", "f")
        call = f"dpcore.repeat(lambda x: {called}(x, ...)) makes one"
        need = f"a function of (x, size, rng), not with {second} in second place ({call})"
        raise mistyped(name, need, function)


def has_no_size_argument(function: Callable[..., Any]) -> bool:
    """Return True if a function can be called as `f(x)` or `f(x, rng)`, but not `f(x, size, rng)`.

    Example:
        >>> has_no_size_argument(lambda x, rng: x), has_no_size_argument(lambda x, size, rng: x)
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


def rows_of_one_call(
    mechanism: Callable[..., Any],
    x: Any,
    size: int,
    rng: np.random.Generator,
    shape: tuple[int, ...] | None = None,
    fields: tuple[str, ...] | None = None,
) -> npt.NDArray[Any]:
    """Call a Python mechanism once, and return its outputs as an array with `size` rows.

    If the mechanism still refers to the memory of the outputs and may change it later, the outputs
    are copied. Exceptions of the mechanism are raised unchanged.
    """
    name = f"outputs of {name_of(mechanism)}"
    # Do not give the answer another name, because `_has_other_references` counts references.
    outputs = to_outputs(name, mechanism(x, size, rng), size, shape, fields)
    outputs = outputs.copy() if _has_other_references(outputs) else outputs
    return _copy_rows_held_elsewhere(outputs) if outputs.dtype == object else outputs


@contextmanager
def note_failing_input(
    mechanism: Any,
    inputs: tuple[Any, Any],
    size: int,
    make_rng: Callable[[int, int], np.random.Generator],
) -> Iterator[None]:
    """Return a context that adds a note to an exception if only one of two inputs causes it.

    In the `with` block, a mechanism is called. If the call raises an exception, the mechanism is
    called on x and on x' until a call fails again. Then the mechanism is called three more times on
    each of the two inputs. If only the calls on one input fail, the note names this input.

    Args:
        mechanism: mechanism that is called in the `with` block.
        inputs: the two inputs x and x'.
        size: number of outputs of the call in the `with` block.
        make_rng: function `(side, index)` that returns a generator. `side` is 0 for x and 1 for x'.
            For index 0, the generator is that of the call that failed.
    """
    try:
        yield
    except Exception as error:
        if passes_user_code(error) or "status" in vars(error):
            _add_note_if_one_input_fails(error, mechanism, inputs, size, make_rng)
        raise


def _add_note_if_one_input_fails(
    error: Exception, mechanism: Any, inputs: tuple[Any, Any], size: int, make_rng: Any
) -> None:
    def fails(side: int, rows: int, number: int) -> bool:
        try:
            mechanism(inputs[side], rows, make_rng(side, number))
        except Exception:
            return True
        return False

    sizes = [size]
    if is_unbatched(mechanism):
        # Without a seed, calls may be slow, and the same call would not fail again.
        is_seeded = get_or_default(mechanism, "reproducible") is True
        most = size if is_seeded else min(size, _MAX_REPEATED_CALLS)
        sizes = [min(most, 2**power) for power in range((most - 1).bit_length() + 1)]
    for rows in sizes:
        failures = [int(fails(side, rows, 0)) for side in (0, 1)]
        if any(failures):
            break
    for number in range(1, _REPEATED_FAILURES):
        # Make more calls than the first failure needed, so that a random failure on both inputs is
        # seen on both.
        more = _REPEATED_FAILURES * rows if is_unbatched(mechanism) else rows
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


def call_tensor_mechanism(
    mechanism: Any, x: Any, size: int, rng: np.random.Generator, *like: Any
) -> Batch | npt.NDArray[Any]:
    """Call a mechanism that returns a tensor, and return its outputs.

    If an audit can evaluate its events (sets of outputs) on the device of the tensor, the outputs
    stay on this device. Otherwise the outputs become a numpy array. The outputs are not copied.
    Therefore the outputs must be used before the next call of the mechanism.
    """
    tensor = mechanism.tensor(x, size, rng)
    # The name is computed only for messages: the text of a whole model takes longer than a block of
    # noise.
    if not is_tensor(tensor):
        raise mistyped(f"outputs of {name_of(mechanism)}", "a tensor", tensor)
    if tensor.shape[:1] != (size,):
        requirement = f"a tensor with {size} rows, one per output"
        raise invalid(f"outputs of {name_of(mechanism)}", requirement, tuple(tensor.shape))
    return Batch(tensor.detach().resolve_neg()) if Batch.supports(tensor) else numpy_of(tensor)


def makes_tensors(mechanism: Any) -> bool:
    """Return True if the attributes of a mechanism show that it can return tensors."""
    # A user's class may have one of the two attributes for another purpose.
    made = callable(get_or_default(mechanism, "tensor"))
    return made and isinstance(get_or_default(mechanism, "device_type"), str)


def torch_threads(mechanism: Any) -> AbstractContextManager[None]:
    """Return a context in which torch uses the number of threads that a mechanism asks for.

    This number is the attribute `torch_threads` of the mechanism. If the attribute is missing, the
    context has no effect.
    """
    n_threads = get_or_default(mechanism, "torch_threads") if makes_tensors(mechanism) else None
    return nullcontext() if n_threads is None else set_torch_threads(n_threads)


@contextmanager
def set_torch_threads(count: int) -> Iterator[None]:
    """Return a context in which torch (already imported) uses `count` threads."""
    torch = get_loaded_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def is_unbatched(mechanism: Any) -> bool:
    """Return True if a mechanism calls a user's function or a command once for each output."""
    is_stated = get_or_default(mechanism, "reproducible") is not None
    return is_stated and not makes_tensors(mechanism)


def device_text(mechanism: Any) -> str:
    """Return text with the device and the torch version that a mechanism uses for random numbers.

    With a different device or version, the random numbers may differ. The text is empty if the
    mechanism does not return tensors.

    Example:
        >>> device_text(lambda x, size, rng: rng.normal(x, 1.0, size))
        ''
    """
    if not makes_tensors(mechanism):
        return ""
    version = str(get_loaded_module("torch").__version__).partition("+")[0]
    return f"{mechanism.device_type}, torch {version}"


def _has_other_references(outputs: npt.NDArray[Any]) -> bool:
    """Return True if other objects may refer to the memory of an array.

    The function compares reference counts. In doubt it returns True.

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


def _copy_rows_held_elsewhere(outputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return an object array, with copied objects if the mechanism may change them later."""
    rows: npt.NDArray[Any] = outputs.reshape(-1)
    for place in {0, rows.size - 1} if rows.size else ():
        kind: Any = type(rows[place])
        if is_immutable(kind) or has_unreadable_contents(kind) or issubclass(kind, tuple):
            continue
        if sys.getrefcount(rows[place]) > _USUAL_ROW_HOLDERS:
            with suppress(Exception):
                return to_object_array(list(map(copy_answer, rows))).reshape(outputs.shape)
    return outputs


_FRESH_ROWS: Final = to_object_array([{}])
_USUAL_ROW_HOLDERS = sys.getrefcount(_FRESH_ROWS[0])


def _count_references_to_new_array() -> tuple[int, int]:
    """Count references to a new array and to its base. Python versions give different numbers."""

    def count_holders(outputs: npt.NDArray[Any]) -> tuple[int, int]:
        base = outputs.base
        return sys.getrefcount(outputs), sys.getrefcount(base)

    def count_named() -> tuple[int, int]:
        outputs = np.empty(2)[:1]
        return count_holders(outputs)

    return count_named()


_USUAL_HOLDER_COUNTS = _count_references_to_new_array()


@dataclass(frozen=True, slots=True, order=True)
class Raised(Shown):
    """Output that stands for an exception, if the user's function raised it and returned no value.

    An audit counts this object like any other output. The message is part of the output, because
    the caller of the function can read the message. Two objects of this class are equal if their
    names and messages are equal. To sort a list that also contains other outputs, such as numbers,
    use ``key=repr``.

    Args:
        name: name of the exception's class, such as "ValueError". For a command that failed, a text
            such as "exit status 3" or "signal 11".
        message: text of the exception. For a command that failed, the text that the command wrote.

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
        """Return the output that stands for `error`, with the class name and text of `error`."""
        message = ""
        with suppress(Exception):
            # A user's class of exceptions may raise in `str`.
            message = str(error)
        return cls(type(error).__name__, message)

    def __repr__(self) -> str:
        return f"Raised({self.name!r}{f', {self.message!r}' if self.message else ''})"


@dataclass(frozen=True, slots=True, repr=False)
class Repeated(Shown):
    """Mechanism that calls a function once for each output. `dpcore.repeat` makes such mechanisms.

    Args:
        fn: the function, `fn(x)` or `fn(x, rng)`.
        seeded: source of the function's randomness. "rng" stands for the numpy Generator that the
            function gets, "global" for the global generators of Python, numpy and torch, and "own"
            for any other source.
        catch: classes of exceptions that count as outputs of the mechanism.
        thread_safe: True if several threads may call the function at once.
        title: name of the mechanism in reports. If it is empty, reports show the name of the
            function.
    """

    fn: Callable[..., Any]
    seeded: str
    catch: tuple[type[Exception], ...] = ()
    thread_safe: bool = False
    title: str = ""
    takes_lists: ClassVar[bool] = True

    @property
    def reproducible(self) -> bool:
        """True if the seed of an audit determines the outputs, and False if `seeded` is "own"."""
        return self.seeded != "own"

    @property
    def name(self) -> str:
        """Name of this mechanism in reports."""
        return self.title or f"repeat({dotted_name(self.fn)})"

    def __repr__(self) -> str:
        return self.name

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Call the function `size` times on `x`.

        Args:
            x: the input, which the function gets unchanged.
            size: number of outputs.
            rng: numpy Generator, the source of the randomness unless seeded="own".

        Returns:
            The stacked answers, shape `(size, ...)`. With `catch`, or if the answers are not
            numbers of one shape, an object array of shape `(size,)`.

        Raises:
            TypeError: if an answer is an iterator, a coroutine, a sparse matrix or a graph.
            ValueError: if entries of an answer are masked.
        """
        answers = AnswerKeeper(dotted_name(self.fn))
        with seeded_globals(rng) if self.seeded == "global" else nullcontext():
            call_and_keep(answers, self._bind_generator(rng), x, size, self.catch)
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

        In each turn, the function is called `turn` times on one input and then `turn` times on the
        other input. If the function keeps a state between calls, a slow change of the state
        therefore affects the two inputs equally.

        Args:
            inputs: the two inputs.
            size: number of outputs for each input.
            rngs: a generator for each of the two inputs.
            orders: for each turn, the order of the two inputs, (0, 1) or (1, 0).
            turn: number of calls on each of the two inputs in one turn.

        Returns:
            Two arrays: the outputs on the first input, and the outputs on the second input.
        """
        functions = [self._bind_generator(rng) for rng in rngs]
        answers = [AnswerKeeper(dotted_name(self.fn)) for _ in inputs]
        for number, order in enumerate(orders):
            some = min(turn, size - number * turn)
            for side in order:
                call_and_keep(answers[side], functions[side], inputs[side], some, self.catch)
        return [collect_answers(side, self.catch) for side in answers]

    def _bind_generator(self, rng: np.random.Generator) -> Callable[[Any], Any]:
        fn = self.fn
        if self.seeded != "rng":
            return fn
        if _find_generator_style(fn) == "keyword":
            return lambda x: fn(x, rng=rng)
        return lambda x: fn(x, rng)


Catch = tuple[type[Exception], ...]
"""Classes of exceptions that count as outputs."""


def check_catch(catch: Any) -> Catch:
    """Check that `catch` is one or several classes of exceptions, and return a tuple."""
    kinds = tuple(catch) if isinstance(catch, (tuple, list)) else (catch,)
    for kind in kinds:
        if not (isinstance(kind, type) and issubclass(kind, Exception)):
            raise mistyped("catch", "a subclass of Exception, or several", kind)
    return kinds


def call_and_keep(
    answers: AnswerKeeper, fn: Callable[[Any], Any], x: Any, size: int, catch: Catch
) -> None:
    """Call a function `size` times on the input `x`, and add the return values to `answers`.

    If a call raises an exception of a class in `catch`, a `Raised` object is added.
    """
    add, append = answers.add, answers.values.append
    for _ in count_with_progress(size):
        try:
            answer = fn(x)
        except catch as error:
            answer = Raised.of(error)
        # Frequent types of answers need no check.
        (append if type(answer) in _PLAIN_TYPES else add)(answer)


def collect_answers(answers: AnswerKeeper, catch: Catch) -> npt.NDArray[Any]:
    """Return the stored return values of a function as an array with one row per call."""
    if not catch:
        return answers_to_array(answers.values, answers.name)
    # Convert these scalars to Python's numbers.
    plain = (np.float64, np.int64, np.bool_)
    values = [value.item() if type(value) in plain else value for value in answers.values]
    return to_object_array(_to_mappings_and_arrays(values, answers.name))


@explain_argument_errors
def repeat(
    fn: Callable[..., Any],
    *,
    seeded: Seeded | None = None,
    catch: type[Exception] | Sequence[type[Exception]] = (),
    thread_safe: bool = False,
    name: str | None = None,
) -> Repeated:
    """Make a mechanism from a function that returns one output per call.

    The mechanism calls the function `size` times, and returns the outputs in an array:

    - Numbers are stacked into shape `(size,)`.
    - Arrays, lists or tuples of numbers are stacked into shape `(size, ...)` if all have the same
      shape.
    - Tables (of pandas, polars or pyarrow, or arrays with fields) become dictionaries from column
      names to lists. A dictionary also has the index of the table, and the names of the index and
      of the columns, unless these are the defaults. A pandas Series with the default index is
      treated as an array.
    - All other outputs, such as strings, dictionaries, sets, None, and lists of different lengths,
      are stored unchanged in a 1-d array of objects.

    The shape of an output and the column names in an output are part of the output. Therefore a
    difference in shapes or names between the two inputs may also refute a claim.

    A function with its own source of randomness (such as a secure generator, or OpenDP) can be
    audited unchanged. The certified bound holds if the outputs are independent. But a second audit
    with the same seed gives other outputs, and the attribute `reproducible` of the mechanism is
    False.

    Args:
        fn: the function, `fn(x)` or `fn(x, rng)`. The numpy Generator is passed to the parameter
            with the name `rng`. If `fn` has no parameter of this name, the generator is passed to
            the second parameter, unless the second parameter has a default.
        seeded: source of the randomness of `fn`. If `seeded` is None, dpcore uses "rng" if `fn` has
            a parameter for the generator, and "own" otherwise.

            - "rng" stands for the numpy Generator that `fn` gets.
            - "global" stands for the global generators of Python's `random`, of `numpy.random` and,
              if torch is imported, of torch. These generators are seeded before each call of the
              mechanism. Their state is restored after the call.
            - "own" stands for any other source. The function is called as `fn(x)`.
        catch: a class of exceptions, or several classes, that count as outputs. An exception of one
            of these classes becomes the output `Raised(class name, message)`, and all outputs are
            stored in an array of objects. Other exceptions are raised.
        thread_safe: True if several threads may call `fn` at once. `thread_safe` must be False if
            `seeded` is "global".
        name: name of the mechanism in reports. Defaults to "repeat(...)" with the name of `fn`.

    Returns:
        The mechanism `(x, size, rng) -> outputs`. It can be pickled if `fn` can be pickled.

    Raises:
        TypeError: if `fn` is not callable, `catch` has an entry that is not a class of exceptions,
            or `name` is not a string.
        ValueError: if `fn` can be called neither as `fn(x)` nor as `fn(x, rng)`. Also if `seeded`
            is unknown, or contradicts the parameters of `fn` or `thread_safe`. Also if `seeded` is
            None and Python cannot read the parameters of `fn`.

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
    kinds = check_catch(catch)
    flag("thread_safe", thread_safe)
    seeding = _find_seeding_mode(fn, seeded)
    if thread_safe and seeding == "global":
        raise invalid("thread_safe", "False with seeded='global'", thread_safe)
    if name is not None and not instance("name", name, str).strip():
        raise invalid("name", "a name that is not empty, or None", name)
    return Repeated(fn, seeding, kinds, thread_safe, name or "")


def is_user_code(mechanism: Any) -> bool:
    """Return True if a mechanism is a Python function or object that a user wrote.

    The result is also True for a mechanism that `repeat` made from a function of the user.

    Example:
        >>> import dpcore
        >>> is_user_code(abs), is_user_code(dpcore.Laplace(1.0)), is_user_code("module.function")
        (True, False, False)
    """
    function = mechanism.fn if isinstance(mechanism, Repeated) else mechanism
    function = inspect.unwrap(function) if callable(function) else function
    is_function = inspect.isfunction(function) or inspect.ismethod(function)
    owner = function if is_function else type(function)
    return callable(function) and owner.__module__.partition(".")[0] != "dpcore"


def is_thread_safe(mechanism: Any) -> bool:
    """Return True if a mechanism was made by `repeat` with `thread_safe=True`."""
    return isinstance(mechanism, Repeated) and mechanism.thread_safe


def _find_seeding_mode(fn: Callable[..., Any], seeded: str | None) -> str:
    """Check the signature of a function; return the source of its randomness, as in `repeat`."""
    try:
        signature = inspect.signature(fn)
    except (TypeError, ValueError):
        # Some compiled functions have no readable signature.
        if seeded is None:
            requirement = f"one of {SEEDED} for a function that shows no signature"
            raise invalid("seeded", requirement, seeded) from None
        return seeded
    style = _find_generator_style(fn)
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


def _find_generator_style(fn: Callable[..., Any]) -> _GeneratorStyle | None:
    """Return how a function takes the generator, "position" or "keyword", or None for neither."""
    refuse_wrong_parameter_order(fn, "fn")
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


def answers_to_array(answers: list[Any], name: str) -> npt.NDArray[Any]:
    """Put all return values of a function in one array.

    Args:
        answers: list of the return values, one for each call.
        name: name of the function in error messages.

    Returns:
        An array with one row for each return value. Numbers, and lists or arrays of numbers with
        equal shapes, are stacked. All other values are stored in a 1-d array of objects.

    Raises:
        TypeError: if a return value has a type that cannot be read.
        ValueError: if a return value has masked entries.

    Example:
        >>> answers_to_array([1.5, 2.0], "f"), answers_to_array(["a", None], "f")
        (array([1.5, 2. ]), array(['a', None], dtype=object))
        >>> answers_to_array([[1, 2], [3, 4]], "f").shape
        (2, 2)
        >>> answers_to_array([[1, 2], (3, 4)], "f").tolist()
        [[1, 2], (3, 4)]
        >>> answers_to_array([[1], [1, 2]], "f").tolist()
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
            map(item_types_of, dict(zip(map(type, answers), answers, strict=True)).values())
        )
        # Integers beyond the range of every integer type would be rounded.
        is_rounded = whole and array.dtype.kind == "f"
        formed = None if len(signatures) > 1 else attach_item_types(array, *signatures)
        return to_object_array(answers) if formed is None or is_rounded else formed
    answers = _to_mappings_and_arrays(answers, name)
    # Arrays cannot hold mappings.
    if dict in map(type, answers) or len(signatures := set(map(item_types_of, answers))) > 1:
        return to_object_array(answers)
    rows = any(_is_list_or_array(answer) for answer in answers)
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
    formed = None if has_both_zeros(stacked) else attach_item_types(stacked, *signatures)
    return to_object_array(answers) if formed is None else formed


def _to_mappings_and_arrays(answers: list[Any], name: str) -> list[Any]:
    """Return the answers. Tables with named columns become mappings, and tensors arrays."""
    refuse_unreadable_row_types(f"answers of {name}", answers)
    if not any(is_table_class(cls) or has_all(cls, "dtype") for cls in set(map(type, answers))):
        return answers
    read = [table_to_mapping(answer) if has_named_columns(answer) else answer for answer in answers]
    return [numpy_of(answer) if is_tensor(answer) else answer for answer in read]


def _is_list_or_array(answer: Any) -> bool:
    return isinstance(answer, list) or (
        has_array_method(answer) and not isinstance(answer, np.generic)
    )


def _answer_to_array(answer: Any) -> npt.NDArray[Any] | None:
    """Convert an answer to an array (of objects for strings); return None if it is impossible."""
    if is_too_deep(answer):
        return None
    try:
        array = np.asarray(answer)
    except (TypeError, ValueError, RuntimeError):  # torch, of a tensor with a gradient
        return None
    if array.dtype.kind in "US":
        # numpy would convert numbers between strings to strings, and cut NULs off the ends.
        return np.asarray(answer, dtype=object)
    return array
