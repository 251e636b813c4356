"""Lookup of imported modules in `sys.modules`, in this file only."""

from __future__ import annotations

import sys
from typing import Any


def imported_module(name: str) -> Any:
    """Return a module that was wholly imported, or None.

    While one thread imports a module, `sys.modules` shows it to all others half made. Nobody has an
    object of it then: it counts as not imported.

    Args:
        name: the dotted name of the module.

    Example:
        >>> imported_module("numpy").__name__, imported_module("a_module_that_is_nowhere")
        ('numpy', None)
    """
    module = sys.modules.get(name)
    # What the import system itself goes by: it waits for a module that has this flag.
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module
