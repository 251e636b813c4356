"""Import Opacus, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["import_opacus"]


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
        text = (
            f"dpcore.training.OpacusStep needs {package}, which is not installed: "
            "pip install 'dpcore[dpsgd]'"
        )
        raise ModuleNotFoundError(text, name=package) from None
