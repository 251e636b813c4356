"""Every dataclass that a public name is, returns or holds."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

from shared_layers import INNER

import dpcore

OF_TORCH = (
    "dpcore.torch", "dpcore.text.systems", "dpcore.text.lm.network",
    "dpcore.experiments.dpnr_table.defences",
)  # fmt: skip


def modules() -> Iterator[Any]:
    """Every module that can be imported here."""
    for found in pkgutil.walk_packages(dpcore.__path__, "dpcore."):
        if found.name.startswith(OF_TORCH) and find_spec("torch") is None:
            continue
        yield importlib.import_module(found.name)


def public(module: Any) -> bool:
    """Return True for a module whose `__all__` is public, and for an experiment."""
    parts = module.__name__.split(".")[1:]
    return parts[0] not in INNER and (hasattr(module, "__all__") or hasattr(module, "NAME"))


def _told(thing: Any) -> str:
    """What a function, a property or a class says that it returns or holds."""
    if isinstance(thing, (property, cached_property)):
        thing = thing.fget if isinstance(thing, property) else thing.func
    thing = getattr(thing, "__func__", thing)
    return str(getattr(thing, "__annotations__", {}).get("return", ""))


def reachable() -> set[type]:
    """Dataclasses of the package that public names are, return or hold."""
    loaded = [*modules(), dpcore]
    known = {
        value
        for module in loaded
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__.startswith("dpcore.")
    }
    named: dict[str, list[type]] = {}
    for cls in known:
        named.setdefault(cls.__name__, []).append(cls)

    def meant(text: str, home: Any) -> Iterator[type]:
        for word in set(re.findall(r"[A-Za-z_]\w*", text)):
            here = getattr(home, word, None)
            if inspect.isclass(here) and here in known:
                yield here
            elif len(named.get(word, ())) == 1:
                yield named[word][0]

    waiting: list[type] = []
    for module in loaded:
        if module is not dpcore and not public(module):
            continue
        for name in getattr(module, "__all__", ("Config", "Result", "run")):
            thing = getattr(module, name)
            if inspect.isclass(thing):
                waiting.append(thing)
            elif callable(thing):
                home = importlib.import_module(getattr(thing, "__module__", None) or "dpcore")
                waiting.extend(meant(_told(thing), home))
    seen: set[type] = set()
    while waiting:
        cls = waiting.pop()
        if cls in seen or cls not in known:
            continue
        seen.add(cls)
        home = importlib.import_module(cls.__module__)
        for name, member in vars(cls).items():
            if not name.startswith("_"):
                waiting.extend(meant(_told(member), home))
        if is_dataclass(cls):
            for field in fields(cls):
                waiting.extend(meant(str(field.type), home))
    return {cls for cls in seen if is_dataclass(cls)}
