"""One call of a user's mechanism: its generator, its name, and outputs that are ours alone."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped
from ..events.held import Held, numpy_of
from ..loaded import imported_module
from .answers import outputs_of

__all__ = [
    "Mechanism",
    "answers_once",
    "call_mechanism",
    "dotted_name",
    "make_generator",
    "makes_tensors",
    "mechanism_of",
    "name_of",
    "one_by_one",
    "refuse_signature",
    "runs_on",
    "tensor_of",
    "torch_threads",
]


class Mechanism(Protocol):
    """A mechanism to audit: a callable `(x, size, rng) -> outputs`.

    Every noise and published system is one, and so is any function of one's own; `dpcore.repeat`
    makes one of a function of one answer. It may carry `claim` (an epsilon), `delta`,
    `default_pair(dim)` (the inputs to audit where none are given) and `thread_safe`.
    """

    def __call__(self, x: Any, size: int, rng: np.random.Generator, /) -> Any:
        """Draw outputs on an input.

        Args:
            x: the input, any object.
            size: number of outputs.
            rng: the only source of randomness.

        Returns:
            An array of shape `(size, ...)`, or a list of `size` outputs of any kind.
        """


def make_generator(
    seed: int, purpose: int, side: int, block: int, *further: int
) -> np.random.Generator:
    """Make the generator of one block of a Python callable, or a further one of that block."""
    sequence = np.random.SeedSequence(seed, spawn_key=(purpose, side, block, *further))
    return np.random.Generator(np.random.PCG64(sequence))


def dotted_name(fn: Any) -> str:
    """Return the dotted name of a function, as messages and reports show it."""
    name = getattr(fn, "__qualname__", None) or type(fn).__qualname__
    module = getattr(fn, "__module__", None)
    return str(name if module in (None, "__main__", "builtins") else f"{module}.{name}")


def name_of(mechanism: Any) -> str:
    """Return the name that reports use for a mechanism that is not one of dpcore's."""
    own = getattr(mechanism, "name", None)
    return own if isinstance(own, str) else dotted_name(mechanism)


def mechanism_of(
    given: Any, requirement: str = "a callable (x, size, rng) -> outputs"
) -> Callable[..., Any]:
    """Check that somebody's mechanism is an object that can be called, and return it.

    Args:
        given: the mechanism.
        requirement: what a complaint asks for.

    Raises:
        TypeError: if it is a class, cannot be called, or is a function of one answer, of which
            `dpcore.repeat` makes a mechanism.
    """
    if isinstance(given, type) or not callable(given):
        raise mistyped("mechanism", f"{requirement}{_advise_on_mistake(given)}", given)
    refuse_signature(given, "mechanism")
    if answers_once(given):
        requirement += ", which dpcore.repeat makes of a function of one answer"
        raise mistyped("mechanism", requirement, given)
    found: Callable[..., Any] = given
    return found


def _advise_on_mistake(given: Any) -> str:
    """Return what to do with what is no mechanism."""
    if isinstance(given, str):
        return ", or a noise such as dpcore.Laplace(1.0) (names are for the command line)"
    if hasattr(given, "shape") or isinstance(given, (list, tuple)):
        return " (outputs that were drawn before go to dpcore.audit_outputs)"
    return ""


def refuse_signature(function: Any, name: str) -> None:
    """Raise an error for a function that takes a size and no generator, or both in another order.

    Args:
        function: of somebody's own; other objects pass.
        name: what the message calls it.

    Raises:
        TypeError: if its arguments are called (x, size) or (x, rng, size).
    """
    if not inspect.isfunction(function):
        return
    names = [one.name for one in inspect.signature(function).parameters.values() if one.kind < 2]
    if names[1:] == ["size"] and len(inspect.signature(function).parameters) == 2:
        need = "a function (x, size, rng): give it a third argument rng, and draw from it"
        raise mistyped(name, need, function)
    if names[1:3] == ["rng", "size"]:
        raise mistyped(name, "a function of (x, size, rng), in this order", function)


def answers_once(function: Callable[..., Any]) -> bool:
    """Return True if a function takes `(x)` or `(x, rng)`, and not `(x, size, rng)`.

    Example:
        >>> answers_once(lambda x, rng: x), answers_once(lambda x, size, rng: x)
        (True, False)
    """
    # Of other objects, and through decorators, signatures are not always those of the call.
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        return False
    signature = inspect.signature(function, follow_wrapped=False)

    def takes(*given: int, **named: int) -> bool:
        try:
            signature.bind(*given, **named)
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
    """Call a Python mechanism once; its own exceptions pass through unchanged.

    The outputs are the caller's alone: a buffer that the mechanism may fill again is copied.
    """
    name = f"outputs of {name_of(mechanism)}"
    # No name for the answer itself, as `_held_elsewhere` wants it.
    outputs = outputs_of(name, mechanism(x, size, rng), size, shape, fields)
    return outputs.copy() if _held_elsewhere(outputs) else outputs


def tensor_of(
    mechanism: Any,
    x: Any,
    size: int,
    rng: np.random.Generator,
    *like: Any,
) -> Held | npt.NDArray[Any]:
    """Call a mechanism that makes tensors; they stay on their device if events can read them.

    They are looked at before the next call: a buffer that is filled again needs no copy.
    """
    tensor = mechanism.tensor(x, size, rng)
    # Named in a complaint alone: the text of a whole model takes longer than a block of its noise.
    if not hasattr(tensor, "detach"):
        raise mistyped(f"outputs of {name_of(mechanism)}", "a tensor", tensor)
    if tensor.shape[:1] != (size,):
        requirement = f"a tensor with {size} rows, one per output"
        raise invalid(f"outputs of {name_of(mechanism)}", requirement, tuple(tensor.shape))
    return Held(tensor.detach().resolve_neg()) if Held.takes(tensor) else numpy_of(tensor)


def makes_tensors(mechanism: Any) -> bool:
    """Return True if a mechanism makes tensors: `tensor(x, size, rng)` and a `device_type`."""
    # Either alone may be an attribute of somebody's own.
    made = callable(getattr(mechanism, "tensor", None))
    return made and isinstance(getattr(mechanism, "device_type", None), str)


@contextmanager
def torch_threads(mechanism: Any) -> Iterator[None]:
    """Set torch's threads within a block to the mechanism's `torch_threads`, if it has them.

    Two threads are hardly faster than one in a block of 2^17 numbers, and on a busy machine they
    wait for each other eighty times as long.
    """
    wanted = getattr(mechanism, "torch_threads", None) if makes_tensors(mechanism) else None
    if wanted is None:
        yield
        return
    torch = imported_module("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def one_by_one(mechanism: Any) -> bool:
    """Return True if a mechanism calls a user's function once for each output."""
    return hasattr(mechanism, "reproducible") and not makes_tensors(mechanism)


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
    """Return True if other references to an array's memory may exist, as far as Python can count.

    What is alone is not copied: a copy costs 2 % of drawing Laplace noise, but 12 % of drawing
    uniform numbers. In doubt the answer is True.

    Args:
        outputs: held by one name of the caller.
    """
    if type(outputs) is not np.ndarray or _count_holders(outputs) > _USUAL_HOLDER_COUNTS[0]:
        return True
    if outputs.base is None:
        return not outputs.flags.owndata
    base = outputs.base
    # numpy lets a view point to the array that owns the memory, never to another view.
    owner = type(base) is np.ndarray and base.flags.owndata
    return not owner or _count_holders(base) > _USUAL_HOLDER_COUNTS[1]


def _count_holders(array: npt.NDArray[Any]) -> int:
    return sys.getrefcount(array)


def _count_usual_holders() -> tuple[int, int]:
    """Count the holders of an array without other references, and of its base.

    `_held_elsewhere` compares the results of `_count_holders` with these.

    Counted, not known: which references of the interpreter are among them has changed.
    """

    def seen(outputs: npt.NDArray[Any]) -> tuple[int, int]:
        base = outputs.base
        return _count_holders(outputs), _count_holders(base)  # type: ignore[arg-type]

    def called() -> tuple[int, int]:
        outputs = np.empty(2)[:1]
        return seen(outputs)

    return called()


_USUAL_HOLDER_COUNTS = _count_usual_holders()
