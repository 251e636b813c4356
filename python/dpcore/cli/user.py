"""Loading of a user's mechanism from a command-line argument of the form `file.py:function`."""

from __future__ import annotations

import builtins
import contextlib
import importlib.util
import inspect
import itertools
import sys
from collections.abc import Callable, Iterator
from operator import attrgetter
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ..adapters import adapt
from ..advice import suggest_word
from ..errors import invalid, mistyped
from ..mechanisms.callables import has_no_size_argument, repeat
from ..mechanisms.declarations import can_core_draw, get_or_default
from ..packages import get_loaded_module
from ..records import Pair
from .endings import Usage, to_usage_errors, wrap_user_errors

_IMPORT_HINT = "its own folder is on sys.path, other folders go into PYTHONPATH"
_ATTRIBUTE_HINT = "claim is a number, default_pair a function that returns a dpcore.Pair"
_MISSING_ATTRIBUTE: Any = object()
_module_numbers = itertools.count()


def is_file_target(target: str) -> bool:
    """Return True if `target` refers to a file, and not to a system that dpcore contains."""
    return ":" in target or target.endswith(".py") or "/" in target or "\\" in target


def split_target(target: str) -> tuple[Path, str]:
    """Split a text such as "file.py:name" into the path of the file and the name of an object.

    Raises:
        Usage: if the file does not exist or is not a Python file, or if the name is missing.
    """
    file, _, name = (target, "", "") if target.endswith(".py") else target.rpartition(":")
    if not file:
        file, name = name, ""
    path = Path(file)
    if not path.is_file():
        raise Usage(f"no such file: {file}")
    if path.suffix != ".py":
        raise Usage(f"{file} is not a Python file (NAME.py)")
    if not name:
        raise Usage(f"name the mechanism in the file: {file}:FUNCTION")
    return path, name


@contextlib.contextmanager
def user_sys_path(path: Path) -> Iterator[None]:
    """Return a context manager inside which the user's code runs.

    Inside the context, Python can import modules from the folder of the file `path`, and printed
    text goes to stderr.
    """
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        # stdout contains only the report. A print in a mechanism would break the JSON.
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


def load_mechanism_from_file(
    path: Path, name: str, label: str, repeated: bool = False, catch: str | None = None
) -> Any:
    """Import a user's Python file, and return the mechanism with the given name.

    Args:
        path: path of the Python file.
        name: name of the object in the file. Dots are allowed, as in "model.release".
        label: name of the mechanism in messages and reports.
        repeated: True if the mechanism returns one output per call. In this case, dpcore calls the
            mechanism once for each output.
        catch: names of exceptions, separated by commas. If a call raises such an exception, dpcore
            uses the exception as the output. This argument is used only if `repeated` is True.

    Returns:
        The object itself if its class belongs to dpcore. Otherwise, an object that calls the user's
        mechanism and marks exceptions of the mechanism as errors of the user's code.

    Raises:
        Usage: if the file does not define the name, or if the object with this name is not a
            mechanism.
        Failure: if the import of the file raises an error.
    """
    module, target = _find_attribute(path, name, label)
    with wrap_user_errors(label, str(path)):
        # The target may be a text encoder or a mechanism of another package.
        target = target if can_core_draw(target) else adapt(target) or target
    if not callable(target):
        raise Usage(str(mistyped(label, "a callable (x, size, rng) -> outputs", target)))
    if repeated:
        with to_usage_errors():
            caught = [] if catch is None else _find_exceptions(module, catch)
            is_safe = get_or_default(target, "thread_safe") or False
            own = repeat(target, catch=caught, thread_safe=is_safe)
        return Guarded(own, label, str(path), target)
    if has_no_size_argument(target):
        raise Usage(
            f"{label} must be called as (x, size, rng) -> outputs: for one answer a call "
            "give --repeat"
        )
    return target if can_core_draw(target) else Guarded(target, label, str(path))


def load_function(path: Path, name: str, label: str) -> Any:
    """Import a user's Python file, and return the function with the given name as it is.

    Args:
        path: path of the Python file.
        name: name of the object in the file. Dots are allowed, as in "model.release".
        label: name of the function in messages.

    Returns:
        The function, or another object that dpcore can call.

    Raises:
        Usage: if the file does not define the name, or if the object with this name cannot be
            called.
        Failure: if the import of the file raises an error.
    """
    function = _find_attribute(path, name, label)[1]
    if not callable(function) and adapt(function) is None:
        raise Usage(str(mistyped(label, "a function", function)))
    return function


def _find_attribute(path: Path, name: str, label: str) -> tuple[ModuleType, Any]:
    """Import the file; return the module and the named object, which must not be a class."""
    module = target = _import_file(path)
    for part in name.split("."):
        with wrap_user_errors(label, str(path), _ATTRIBUTE_HINT):
            inside, target = target, getattr(target, part, _MISSING_ATTRIBUTE)
        if target is _MISSING_ATTRIBUTE:
            names = [name for name in dir(inside) if not name.startswith("_")]
            raise Usage(f"{path} has no {name!r}{suggest_word(part, names)}")
    if inspect.isclass(target):
        raise Usage(f"{label} must be a function or an object, got a class: name an instance of it")
    return module, target


def _import_file(path: Path) -> ModuleType:
    # The module name must be unique, because the file may be called random.py.
    name = f"_dpcore_user_{next(_module_numbers)}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise Usage(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    cloud = get_loaded_module("cloudpickle")
    if cloud is not None:
        # Workers of a cluster cannot import this file, so its code is sent to them.
        cloud.register_pickle_by_value(module)
    try:
        with wrap_user_errors(f"importing {path}", str(path), _IMPORT_HINT):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


class Guarded:
    """Wrapper of a user's mechanism that marks exceptions as errors of the user's code.

    Attributes of the mechanism, such as `claim`, `default_pair` and `thread_safe`, can be read from
    the wrapper.

    Args:
        mechanism: the user's callable.
        label: name of the mechanism in reports and error messages.
        file: path of the user's file, for error messages.
        function: the user's function, if `mechanism` calls this function once for each output. If
            an attribute is missing in `mechanism`, the value is read from the function.
    """

    def __init__(
        self, mechanism: Callable[..., Any], label: str, file: str, function: Any = None
    ) -> None:
        self._mechanism, self._file, self._function = mechanism, file, function
        if function is not None:
            self.name = label
        self.__qualname__, self.__module__ = label, "__main__"
        # inspect, and the record of provenance, look here for the user's source text.
        self.__wrapped__ = mechanism

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> Any:
        """Run the mechanism `size` times on `x` and return the outputs as a numpy array.

        If an output, such as a tensor, cannot be converted, dpcore reports an error of the user's
        code.

        A list or tuple is returned unchanged. The audit converts it later without loss.
        """
        with wrap_user_errors(self.__qualname__, self._file):
            answer = self._mechanism(x, size, rng)
            return answer if isinstance(answer, (list, tuple)) else np.asarray(answer)

    def __getattr__(self, name: str) -> Any:
        if "_mechanism" not in vars(self):
            # The object is not initialised yet, because a worker is unpickling it.
            raise AttributeError(name)
        with wrap_user_errors(f"{self.__qualname__}.{name}", self._file, _ATTRIBUTE_HINT):
            value = getattr(self._mechanism, name, _MISSING_ATTRIBUTE)
            if value is _MISSING_ATTRIBUTE and not name.startswith("_"):
                value = getattr(self._function, name, _MISSING_ATTRIBUTE)
        if value is _MISSING_ATTRIBUTE:
            raise AttributeError(name)
        return value


def _find_exceptions(module: Any, text: str) -> list[type[Exception]]:
    """Return the exception classes of the given names, defined in the file or built into Python."""
    exceptions = []
    for name in map(str.strip, text.split(",")):
        first = name.partition(".")[0]
        try:
            exceptions.append(attrgetter(name)(module if hasattr(module, first) else builtins))
        except AttributeError:
            requirement = "names of exceptions, of Python or of the file"
            raise invalid("catch", requirement, name) from None
    return exceptions


def own_pair(mechanism: Any, label: str, path: Path, dim: int | None) -> Pair | None:
    """Return the default pair of inputs (x, x') that a user's mechanism defines, or None.

    Args:
        mechanism: the mechanism, as `load_mechanism_from_file` returns it.
        label: name of the mechanism in messages.
        path: the user's file.
        dim: number of entries of each input. None means the default of the mechanism.

    Returns:
        The pair. None if the mechanism does not define a default pair.

    Raises:
        Usage: if `dim` is given, but the mechanism has no default pair with this number of entries.
        Failure: if `default_pair` raises an error or does not return a `Pair`.
    """
    make = get_or_default(mechanism, "default_pair")
    if make is None:
        return None
    arguments = () if dim is None else (dim,)
    if dim is not None and not _takes_dim(make, dim):
        raise Usage(f"--dim does not apply: default_pair of {label} takes no dim")
    with wrap_user_errors(f"default_pair of {label}", str(path), _ATTRIBUTE_HINT):
        pair = make(*arguments)
        if not isinstance(pair, Pair):
            raise mistyped("default_pair()", "a Pair", pair)
    return pair


def _takes_dim(make: Callable[..., Any], dim: int) -> bool:
    try:
        inspect.signature(make).bind(dim)
    except (TypeError, ValueError):
        return False
    return True
