"""Calls of all public functions, classes and methods with values that nobody should give."""

from __future__ import annotations

import contextlib
import doctest
import inspect
import io
import math
import random
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from shared_layers import PACKAGE

import dpcore
from dpcore import errors, events, published
from dpcore.errors import argument_of


class PlantedError(Exception):
    """Error of an object of the caller: it must pass unchanged."""


class Raising:
    """An object each of whose methods raises."""

    def _raise(self, *args: Any, **named: Any) -> Any:
        raise PlantedError

    __repr__ = __eq__ = __bool__ = __len__ = __iter__ = __float__ = __int__ = __index__ = _raise
    __array__ = __getitem__ = __call__ = __lt__ = __gt__ = __fspath__ = __contains__ = _raise
    __hash__ = None  # type: ignore[assignment]


class Empty:
    """An object without attributes."""

    __slots__ = ()


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)
VALUES: list[Any] = [
    None, True, 0, 1, -1, 2**63, 10**400, -(10**400), 0.5, -0.0, 1e-320, 1.7e308, math.inf,
    -math.inf, math.nan, 1j, Fraction(1, 3), Decimal("NaN"), np.float64("nan"), np.float32(0.1),
    np.uint64(2**64 - 1), np.longdouble("1e4000"), np.datetime64("NaT"), np.bool_(True), "", "a",
    "95%", "1M", "\ud800", "nan", "no/such/file.npy", b"1", bytearray(b"a"), memoryview(b"a"), (),
    [], {}, set(), frozenset([1]), [None], ["a", 1], [[1.0], [1.0, 2.0]], [[[]]], (0.0, 1.0),
    [math.nan], [10**400], {"a": 1}, {1: None}, range(3), CIRCLE, ..., NotImplemented, object,
    object(), Raising(), Empty(), Empty, len, lambda *args, **named: None, dpcore.Laplace,
    dpcore.Laplace(1.0), dpcore.Pair([0.0], [1.0]), dpcore.Counts(1, 2, 0, 2), math,
    events.Vote([0.5], [1.0]), published.ADePT(1.0), dpcore.claims.GDP(1.0), ValueError,
    dpcore.pairs.L1(1.0), np.array(1.0), np.zeros(0), np.zeros(3), np.ones((2, 2)), "l1", "x",
    np.zeros((0, 1)), np.zeros((2, 2, 2)), np.array(["a"]), np.array([None, 1]), np.random,
    np.zeros(2, [("a", "f8")]), np.ma.masked_array([1.0], mask=[True]), np.zeros(3, complex),
    np.array(["2020"], "M8[D]"), np.random.default_rng(1), np.dtype("f8"), re.compile("a"),
]  # fmt: skip


_EXCLUDED = re.compile(
    r"experiments\..*\.(run|plot|table|make_record|Result|over|fit)$|(make_pool|protect)$"
    r"|systems\.training\."
)
"""What runs for minutes, starts processes or reads attributes that the caller names; results of
such runs; steps of a training, which an earlier call may have changed."""


class HostileCall(NamedTuple):
    """A public function, and its arguments, of which some are replaced by hostile values."""

    name: str
    function: Callable[..., Any]
    arguments: dict[str, Any]
    replaced: dict[str, Any]


def list_public_objects() -> list[tuple[str, Any]]:
    """List the functions and classes in the `__all__` of the packages that are installed."""
    objects = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        name = ".".join(part for part in parts if part != "__init__")
        with contextlib.suppress(ImportError):
            module = import_module(name)
            for value in (getattr(module, name) for name in getattr(module, "__all__", ())):
                if str(getattr(value, "__module__", "")).startswith("dpcore") and callable(value):
                    objects[f"{value.__module__}.{value.__qualname__}"] = value
    return sorted(objects.items())


def list_targets(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """List a function, or a class's constructor and its public methods that dpcore defines."""
    yield name, value
    if inspect.isclass(value):
        for key, method in inspect.getmembers_static(value, inspect.isfunction):
            is_ours = method.__module__.startswith("dpcore")
            if is_ours and (key == "__call__" or not key.startswith("_")):
                yield f"{name}.{key}", getattr(value, key)


def get_code(function: Any) -> Any:
    """Return the code of a function, under its decorators."""
    function = function.__init__ if inspect.isclass(function) else function
    return getattr(inspect.unwrap(function), "__code__", None)


@cache
def record_valid_calls(modules: str) -> dict[str, tuple[Any, dict[str, Any]]]:
    """Run the examples of docstrings; return the first call of each public function in them.

    Args:
        modules: pattern of the names of the modules whose examples run.

    Returns:
        Function (a method is bound to its object) and arguments, by name.
    """
    targets = {}
    for name, value in list_public_objects():
        for target, function in list_targets(name, value):
            targets.setdefault(get_code(function), []).append((target, function))
    calls: dict[str, tuple[Any, dict[str, Any]]] = {}

    def record(frame: Any, event: str, _: Any) -> None:
        if event != "call" or frame.f_code not in targets:
            return
        names, _, _, values = inspect.getargvalues(frame)
        arguments = {name: values[name] for name in names}
        for name, function in targets[frame.f_code]:
            own = arguments
            if not inspect.isclass(function) and names[:1] == ["self"]:
                function = getattr(arguments["self"], name.rpartition(".")[2])
            own = {key: value for key, value in arguments.items() if key != "self"}
            calls.setdefault(name, (function, own))

    runner = doctest.DocTestRunner(verbose=False)
    names = {value.__module__ for _, value in list_public_objects()}
    for module in sorted(name for name in names if re.search(modules, name)):
        for test in doctest.DocTestFinder().find(import_module(module)):
            sys.setprofile(record)
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    runner.run(test, out=lambda text: None)
            finally:
                sys.setprofile(None)
    return dict(sorted(calls.items()))


def make_hostile_calls(number: int, seed: int, modules: str) -> Iterator[HostileCall]:
    """Draw public functions and the arguments that are replaced: one, two or all of them."""
    generator, calls = random.Random(seed), list(record_valid_calls(modules).items())
    calls = [call for call in calls if not _EXCLUDED.search(call[0])]
    for _ in range(number):
        name, (function, arguments) = generator.choice(calls)
        names = list(arguments)
        size = generator.choices([1, 2, len(names)], [7, 2, 1])[0]
        replaced = {
            key: generator.choice(VALUES) for key in generator.sample(names, min(size, len(names)))
        }
        yield HostileCall(name, function, arguments | replaced, replaced)


_BINDING = re.compile(r"missing \d+ required|unexpected keyword|takes .*argument|multiple values")


def find_fault(call: HostileCall) -> str | None:
    """Make a call, and show its result; return its error unless that names the argument."""
    result: Any = None
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            result = call.function(**call.arguments)
            if inspect.isgenerator(result):
                next(result, None)
            if isinstance(result, dpcore.report.shown.Shown):
                repr(result), str(result), result._repr_html_()
        return None
    except PlantedError:
        return None
    except Exception as error:
        files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
        is_named = " must " in str(error) or argument_of(error) is not None
        is_named = is_named or bool(_BINDING.search(str(error)))
        kinds = AssertionError, TypeError, ValueError, OSError
        is_refusal = isinstance(error, kinds) and is_named
        is_missing = isinstance(error, (ModuleNotFoundError, NotImplementedError)) and str(error)
        # The functions of an example are a user's: what they raise passes.
        if is_refusal or is_missing or any(file.startswith("<doctest") for file in files):
            return None
        given = {name: errors.show(value) for name, value in call.replaced.items()}
        return ascii(f"{call.name}({given}): {type(error).__name__}: {error}")
