"""Provenance of a result: source text of the mechanism, versions of packages, date, and machine."""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import platform
import sys
import time
import types
from collections import ChainMap
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from .._core import __version__
from ..adapters import DiffPrivLib, OpenDP, ScipyNoise, TorchModule, TorchNoise
from ..errors import flag
from ..mechanisms.callables import Repeated
from ..mechanisms.commands import Tool
from ..packages import attribute_if_imported
from ..results.audits import Audit
from ..results.evidence import LEFT_OUT, Provenance
from ..results.outputs_audits import OutputsAudit

_AuditResult = TypeVar("_AuditResult", Audit, OutputsAudit)

_RECORDED_ORIGIN: Final = "none: the outputs were drawn elsewhere"
_NO_SOURCE_TEXT: Final = "not available (compiled code, executed text, or a file that was changed)"

_WRAPPED_ATTRIBUTES: Final[dict[type, str]] = {
    Repeated: "fn",
    functools.partial: "func",
    types.MethodType: "__func__",
    DiffPrivLib: "mechanism",
    OpenDP: "measurement",
    ScipyNoise: "distribution",
    TorchNoise: "distribution",
    TorchModule: "module",
}
"""Classes that wrap a mechanism, and the name of the attribute with the wrapped mechanism. Other
wrappers have the attribute `__wrapped__`."""

_MAX_WRAPPERS: Final = 50
"""Largest number of nested wrappers that are followed. It is limited, because a wrapper may contain
itself."""

_MAX_SOURCE_BYTES: Final = 2**16
"""If a command names a file, the text of the file is stored up to this size in bytes."""

_RELEASED_PACKAGES: Final = ("dpcore", "numpy", "scipy", "torch", "opendp", "diffprivlib")
"""Published packages. Their code is not stored, because the version of a package identifies the
code."""

_SOURCE_CACHE: Final[WeakKeyDictionary[Any, str]] = WeakKeyDictionary()
"""Source texts of functions and classes that were already read."""


def provenance_of(thing: Any, source: bool, what: str = "") -> Provenance:
    """Return a record of how an audit is made: current date, source text, versions, and machine.

    Args:
        thing: the object whose source text is stored: the mechanism, or the attack on recorded
            outputs. None if this object is not known.
        source: True to store the source text of `thing`.
        what: word before the name of `thing` in the record, such as "attack". Defaults to no word.

    Returns:
        The record. It does not contain a command line.

    Raises:
        TypeError: if `source` is not a bool.
    """
    layers = list(_iterate_layers(thing))
    origin, text = _join_names_sources(layers) if flag("source", source) else (LEFT_OUT, "")
    return Provenance(
        date=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        origin=f"{what} {origin}" if what and text else origin,
        source=text,
        versions=_list_versions(layers),
        cpu=_read_cpu_model(),
        cores=os.cpu_count() or 1,
        system=platform.system(),
        architecture=platform.machine(),
    )


def record_command(report: _AuditResult, command: str) -> _AuditResult:
    """Return a copy of the audit result that also contains the command line of the audit."""
    made = tuple(replace(run, command=command) for run in report.provenance)
    return replace(report, provenance=made)


def _iterate_layers(thing: Any) -> Iterator[Any]:
    """Yield a mechanism, then the object that it wraps, then the object that this wraps, and so on.

    Each of these objects is a layer of the mechanism.
    """
    for _ in range(_MAX_WRAPPERS):
        yield thing
        name = _WRAPPED_ATTRIBUTES.get(type(thing))
        held = getattr(thing, "__dict__", None)
        inner = held.get("__wrapped__") if isinstance(held, dict) else None
        thing = inner if name is None else getattr(thing, name)
        if thing is None:
            return


def _join_names_sources(layers: list[Any]) -> tuple[str, str]:
    """Return a description of the code of a mechanism, and its source text.

    The text contains all functions and classes in the layers that are not from published packages.

    Args:
        layers: the mechanism and the objects that it wraps.
    """
    texts = [
        (_kind_and_qualified_name(definition), _get_source_text(definition))
        for definition in dict.fromkeys(_user_definitions(layers))
    ]
    written = [(name, text) for name, text in texts if text]
    if written:
        return " around ".join(name for name, _ in written), "\n".join(t for _, t in written)
    if layers[-1] is None:
        return _RECORDED_ORIGIN, ""
    if isinstance(layers[-1], Tool):
        return f"command {layers[-1].name}", "\n".join(_iterate_file_texts(layers[-1].arguments))
    last = _list_definitions(layers[-1])[0]
    root = _get_package(last)
    if root in _RELEASED_PACKAGES:
        return f"{_get_module(last)}.{last.__qualname__} of {root} {_get_version(root)}", ""
    return f"{_kind_and_qualified_name(layers[-1])}: {_NO_SOURCE_TEXT}", ""


def _iterate_file_texts(arguments: tuple[str, ...]) -> Iterator[str]:
    """Yield, for each file that a command names, the name of the file and its text."""
    for argument in dict.fromkeys(arguments):
        # A file that is not text is a compiled program, and a long file is data.
        with contextlib.suppress(OSError, ValueError):
            if 0 < Path(argument).stat().st_size <= _MAX_SOURCE_BYTES:
                yield f"{argument}:\n\n{Path(argument).read_text(encoding='utf-8')}"


def _user_definitions(layers: list[Any]) -> Iterator[Any]:
    """Yield the functions and classes of the layers that are not from published packages."""
    for layer in layers:
        for place, definition in enumerate(dict.fromkeys(_list_definitions(layer))):
            inside = place > 0 and _is_installed(definition)
            if not inside and _get_package(definition) not in (
                *_RELEASED_PACKAGES,
                "builtins",
                "functools",
            ):
                yield definition


def _list_definitions(layer: Any) -> list[Any]:
    """List the functions and classes that define a layer of a mechanism.

    A function or a class defines itself. Any other object is defined by its class. For a torch
    module, the modules inside it are added. For a `dpcore.torch` mechanism, the encoder and the
    noise are added.
    """
    if isinstance(layer, (types.FunctionType, type)):
        return [layer]
    parts, held = [type(layer)], getattr(layer, "__dict__", {})
    if isinstance(layer, attribute_if_imported("torch.nn", "Module") or ()):
        parts += map(type, layer.modules())
    elif _get_package(type(layer)) == "dpcore" and "encoder" in held:
        for inner in (getattr(held["encoder"], "model", None), held.get("noise")):
            parts += [
                part
                for inner_layer in _iterate_layers(inner)
                for part in _list_definitions(inner_layer)
            ]
    return parts


def _is_installed(definition: Any) -> bool:
    """Return True if a function or class belongs to an installed package, and not to the user."""
    file = attribute_if_imported(_get_module(definition), "__file__") or ""
    return not {"site-packages", "dist-packages"}.isdisjoint(Path(file).parts)


def _kind_and_qualified_name(definition: Any) -> str:
    """Return a text such as "function f" or "class C". Other objects are shown by their class."""
    if isinstance(definition, types.FunctionType):
        # The name in its code, because `functools.wraps` copies the other function's name.
        return f"function {definition.__code__.co_qualname}"
    if isinstance(definition, types.BuiltinFunctionType):
        return f"function {definition.__qualname__}"
    return (
        f"class {(definition if isinstance(definition, type) else type(definition)).__qualname__}"
    )


def _get_package(definition: Any) -> str:
    return _get_module(definition).partition(".")[0]


def _get_module(definition: Any) -> str:
    # The module of its globals, because `functools.wraps` copies the other function's module.
    own = (
        definition.__globals__.get("__name__")
        if isinstance(definition, types.FunctionType)
        else definition.__module__
    )
    return own if isinstance(own, str) else ""


def _get_source_text(definition: Any) -> str:
    """Return the source text of a function or class, or an empty text if it is not available."""
    try:
        if definition not in _SOURCE_CACHE:
            # If it wraps another function, use its code, because inspect would show the other one.
            wraps = isinstance(definition, types.FunctionType) and "__wrapped__" in vars(definition)
            text = inspect.getsource(definition.__code__ if wraps else definition)
            name = (
                definition.__name__ if isinstance(definition, type) else definition.__code__.co_name
            )
            # If the file was edited, the lines may belong to something else.
            _SOURCE_CACHE[definition] = text if name.strip("<>") in text else ""
        return _SOURCE_CACHE[definition]
    except Exception:
        # inspect may raise any error for unusual code, and an audit must not fail because of it.
        return ""


def _list_versions(layers: list[Any]) -> tuple[tuple[str, str], ...]:
    own = (
        ("Python", platform.python_version()),
        ("dpcore", __version__),
        ("numpy", np.__version__),
    )
    roots = sorted(set(_defining_and_used_packages(layers)) - {"dpcore", "numpy", "__main__", ""})
    versions = ((root, _get_version(root)) for root in roots if root not in sys.stdlib_module_names)
    return own + tuple((root, version) for root, version in versions if version)


def _defining_and_used_packages(layers: list[Any]) -> Iterator[str]:
    """Yield the names of the packages of the layers, and of packages that the user's code uses."""
    for part in dict.fromkeys(part for layer in layers for part in _list_definitions(layer)):
        kinds = (part,) if isinstance(part, types.FunctionType) else part.__mro__
        for kind in kinds:
            package, _, inside = _get_module(kind).partition(".")
            yield package
            if package == "dpcore":
                yield from ("torch",) * inside.startswith("torch")
            elif package not in _RELEASED_PACKAGES and not _is_installed(kind):
                functions = [kind] if isinstance(kind, types.FunctionType) else vars(kind).values()
                for function in functions:
                    if isinstance(function, types.FunctionType):
                        held = dict(_iterate_closure(function))
                        yield from _iterate_packages_of_variables(
                            function.__code__, ChainMap(held, function.__globals__)
                        )


def _iterate_closure(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Yield name and value of the closure variables of a function, except empty variables."""
    cells = function.__closure__ or ()
    for name, cell in zip(function.__code__.co_freevars, cells, strict=True):
        with contextlib.suppress(ValueError):
            yield name, cell.cell_contents


def _iterate_packages_of_variables(code: types.CodeType, names: Mapping[str, Any]) -> Iterator[str]:
    """Yield the packages of the global and closure variables that a function uses.

    Args:
        code: code of the function.
        names: values of these variables, by name.
    """
    for value in (names.get(name) for name in code.co_names + code.co_freevars):
        if isinstance(value, types.ModuleType):
            yield value.__name__.partition(".")[0]
        else:
            kind = value if isinstance(value, (types.FunctionType, type)) else type(value)
            yield _get_package(kind)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _iterate_packages_of_variables(inner, names)


@functools.cache
def _get_version(package: str) -> str:
    """Return the version of an imported package, or an empty text if it has no version."""
    if package == "dpcore":
        return __version__
    version = attribute_if_imported(package, "__version__")
    if isinstance(version, str):
        return version
    from importlib import metadata

    try:
        return metadata.version(package)
    except (metadata.PackageNotFoundError, ValueError):
        return ""


@functools.cache
def _read_cpu_model() -> str:
    """Return the model name of the CPU, or an empty text if the system does not give it."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8", errors="replace") as lines:
            named = (line.partition(":")[2].strip() for line in lines if line[:10] == "model name")
            return next(named, "")
    except OSError:
        return platform.processor() if sys.platform == "win32" else ""
