"""What the site reads from the package: its public names and its command line. Needs no Sphinx."""

from __future__ import annotations

import ast
import importlib
import inspect
import itertools
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

import dpcore
from dpcore.cli import app

INNER = (
    "advice", "annotations", "auditing", "cli", "errors", "files", "packages", "paths", "progress",
    "recorded", "records", "report", "sampling", "streams", "suggestions", "tables", "visible",
)  # fmt: skip
"""Packages that users reach through others: their names are public elsewhere or nowhere."""

LAZY = {"dpcore.text": "dpcore.text.systems"}
"""A package's names that need torch: not in its `__all__`, which would fail without it."""

PARTS = (
    "dpcore.experiments.corpora",
    "dpcore.experiments.dpnr_table.defences",
    "dpcore.experiments.word2vec_leakage.leakage",
)
"""Public modules of experiments, which their package does not load."""


@dataclass(frozen=True)
class Name:
    """One public name: the shortest path that shows it, and what it is."""

    path: str
    kind: str
    text: str


@cache
def find_public_packages() -> dict[str, ModuleType]:
    """Return every public package that can be imported here, and its public subpackages."""
    first = [m.name for m in pkgutil.iter_modules(dpcore.__path__, "dpcore.")]
    public = [name for name in first if not name.split(".")[1].startswith(("_", *INNER))]
    found: dict[str, ModuleType] = {}
    waiting = ["dpcore", *public, *PARTS]
    while waiting:
        name = waiting.pop(0)
        try:
            package = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if "torch" not in str(error):
                raise
            continue
        found[name] = package
        parts = [getattr(package, part) for part in package.__all__]
        inside = [part.__name__ for part in parts if isinstance(part, ModuleType)]
        waiting += [part for part in inside if part not in found and part not in waiting]
    return found


@cache
def names() -> dict[str, list[Name]]:
    """Return the public names of every package, each under the first path that shows it."""
    seen: set[object] = set()
    found: dict[str, list[Name]] = {}
    for package, module in find_public_packages().items():
        found[package] = []
        for name in sorted({*module.__all__, *lazy(package)}):
            value = getattr(module, name)
            kind = kind_of(value)
            # Two constants may be one object; a class or a function is one thing under one name.
            key = id(value) if kind in ("class", "function") else (name, id(value))
            if kind != "module" and key not in seen:
                seen.add(key)
                text = said_of(name, module.__name__) if kind == "data" else ""
                found[package].append(Name(f"{package}.{name}", kind, text))
    return {package: listed for package, listed in found.items() if listed}


def found(path: str) -> Any:
    """The object of a public name."""
    package, _, name = path.rpartition(".")
    return getattr(importlib.import_module(package), name)


def lazy(package: str) -> list[str]:
    """Return the names that a package shows only where torch is installed."""
    try:
        inner = importlib.import_module(LAZY[package]).__all__ if package in LAZY else []
    except ModuleNotFoundError:
        return []
    return [name for name in inner if hasattr(importlib.import_module(package), name)]


def kind_of(value: object) -> str:
    """One of module, class, function and data."""
    if isinstance(value, ModuleType):
        return "module"
    if inspect.isclass(value):
        return "class"
    # A fixture of pytest is a function that must not be called.
    wrapped = inspect.unwrap(value) if callable(value) else value
    return "function" if inspect.isroutine(wrapped) else "data"


@cache
def said_of(name: str, package: str) -> str:
    """Return the string below a constant, in its package or else in another; empty without one."""
    if name == "__version__":
        return "The version of the package."
    root = Path(dpcore.__file__).parent
    place = root.joinpath(*package.split(".")[1:])
    own = sorted(place.rglob("*.py")) if place != root else []
    for file in [place.with_suffix(".py"), *own, *sorted(root.rglob("*.py"))]:
        if not file.is_file():
            continue
        body = ast.parse(file.read_text("utf-8")).body
        for made, said in itertools.pairwise(body):
            targets = getattr(made, "targets", [getattr(made, "target", None)])
            if isinstance(made, ast.Assign | ast.AnnAssign) and any(
                isinstance(target, ast.Name) and target.id == name for target in targets
            ):
                value = said.value if isinstance(said, ast.Expr) else None
                if isinstance(value, ast.Constant) and isinstance(value.value, str):
                    return inspect.cleandoc(value.value)
    return ""


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of the command line, with the words that call it."""
    top = typer.main.get_command(app)
    yield "dpcore", top
    for name, command in getattr(top, "commands", {}).items():
        yield f"dpcore {name}", command
