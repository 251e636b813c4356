"""dpcore: measure how much privacy a mechanism really loses.

dpcore draws outputs of a differential-privacy mechanism and looks for an event that shows the
privacy loss. It returns a certified lower bound on epsilon, with the evidence for this bound.
"""

from ._core import __version__ as __version__
from .report import WORD_PACKAGES

WORD_PACKAGES.extend(
    (
        "dpcore.calibration",
        "dpcore.sensitivity",
        "dpcore.tracing",
        "dpcore.training",
        "dpcore.mechanisms.texts",
        "dpcore.text.inference",
    )
)


def _read_homes() -> dict[str, str]:
    """Return the module that defines each public name, as read from the stub file."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="ascii") as stub:
        lines = [line.split() for line in stub if line.startswith("from ")]
    return {name: home for _, home, _, name, *_ in lines}


_HOMES = _read_homes()
"""Public names and their modules. If the module is ".", the name itself is a module."""

__all__ = sorted(_HOMES.keys() - {"torch"})  # `import *` needs no torch.


def __getattr__(name: str) -> object:
    """Import the module of a public name when this name is first used."""
    if name not in _HOMES:
        meant = ""
        if not name.startswith("_"):
            from .advice import suggest_word

            meant = suggest_word(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{meant}")
    from importlib import import_module

    home = _HOMES[name]
    if home == ".":
        return import_module(f".{name}", __name__)
    value = globals()[name] = getattr(import_module(home, __name__), name)
    return value


def __dir__() -> list[str]:
    """List the public names of dpcore."""
    return sorted(_HOMES)
