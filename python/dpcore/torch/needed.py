"""torch, or an error that says what to install."""

from __future__ import annotations

try:
    import torch as torch
except ModuleNotFoundError as error:
    if error.name != "torch":
        raise
    raise ModuleNotFoundError(
        "dpcore.torch needs torch, which is not installed: pip install 'dpcore[torch]'",
        name="torch",
    ) from None
