"""Checks that the audits of a training share: packages, functions, records and numbers."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import mistyped, numeric
from ..events.device_outputs import numpy_of

__all__ = ["check_function", "count_records", "import_opacus", "read_numbers"]


def import_opacus(module: str = "opacus") -> Any:
    """Import a module of Opacus, or torch, when it is first needed.

    Args:
        module: its dotted name.

    Raises:
        ModuleNotFoundError: if opacus or torch is not installed; the message says how to get it.
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        text = f"OpacusStep needs {package}, which is not installed: pip install 'dpcore[dpsgd]'"
        raise ModuleNotFoundError(text, name=package) from None


def check_function(name: str, requirement: str, value: Any, arguments: int) -> None:
    """Check that a value can be called with so many arguments.

    Args:
        name: what the message calls the value.
        requirement: what the message asks for.
        value: a function, or an object that can be called.
        arguments: number of arguments of a call.

    Raises:
        TypeError: if it cannot.
    """
    if not callable(value):
        raise mistyped(name, requirement, value)
    try:
        # A torch module passes the arguments of its call on to this method.
        inspect.signature(getattr(value, "forward", value)).bind(*[None] * arguments)
    except TypeError:
        raise mistyped(name, requirement, value) from None
    except ValueError:
        # A function written in C need not show its arguments.
        return


def count_records(name: str, records: Any) -> int:
    """Count records, of a kind of which one can be left out and others added.

    Args:
        name: what the message calls them.
        records: a list, a range, a numpy array or a torch tensor.

    Raises:
        TypeError: if they are of another kind; the message says how to make a list of them.
    """
    is_frame = hasattr(records, "iloc")
    is_array = bool(getattr(records, "shape", ())) and not is_frame
    if isinstance(records, list | range) or is_array:
        return len(records)
    ways = (
        (is_frame, " (records.to_numpy() makes an array of a frame)"),
        (isinstance(records, tuple), " (list(zip(x, y)) makes a list of records of two arrays)"),
        (hasattr(records, "dataset"), " (list(loader.dataset) makes a list of all its records)"),
        (hasattr(records, "__next__"), " (list(records) makes a list)"),
        (hasattr(records, "__getitem__"), " (list(records) makes a list)"),
    )
    advice = next((way for is_kind, way in ways if is_kind), "")
    raise mistyped(name, f"a list of records, a numpy array or a torch tensor{advice}", records)


def read_numbers(name: str, requirement: str, value: Any) -> npt.NDArray[np.float64]:
    """Read real numbers in any shape, those of tensors without gradient and device.

    Args:
        name: what the message calls the value.
        requirement: what the message asks for.
        value: numbers, an array, a tensor, or a list of these.

    Returns:
        The numbers as float64.

    Raises:
        TypeError: if it does not hold real numbers.
        ValueError: if its rows differ in length, or entries of it are masked.
    """
    if isinstance(value, list | tuple):
        value = [numpy_of(one) if hasattr(one, "detach") else one for one in value]
    elif hasattr(value, "detach"):
        value = numpy_of(value)
    return numeric(name, requirement, value).astype(np.float64)
