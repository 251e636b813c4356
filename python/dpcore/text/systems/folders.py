"""Trained models in folders: config.json and safetensors, nothing that could run code."""

from __future__ import annotations

from collections.abc import Set
from os import PathLike
from pathlib import Path
from typing import Any, Final

from ...errors import invalid, mistyped
from ...torch.saving import read_config, write_config
from ..needed import needed

__all__ = ["filled", "mapping", "read", "write"]

_WEIGHTS: Final = "model.safetensors"


def _format(cls: type) -> str:
    return f"dpcore.text.{cls.__name__}/1"


def write(
    cls: type, folder: str | PathLike[str], config: dict[str, Any], parts: dict[str, Any]
) -> Path:
    """Write config.json and the weights of modules.

    Args:
        cls: whose model it is.
        folder: made if it is missing.
        config: plain data.
        parts: modules by name.

    Returns:
        The folder.

    Raises:
        ModuleNotFoundError: without safetensors.
        TypeError: if the folder is no path.
        OSError: if it cannot be written.
    """
    files = needed("safetensors.torch", "save_pretrained")
    place = write_config(folder, {"format": _format(cls), **config})
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    files.save_file(tensors, place / _WEIGHTS)
    return place


def read(cls: type, folder: str | PathLike[str], keys: Set[str]) -> tuple[Path, dict[str, Any]]:
    """The folder, and what its config.json says of a model of that class.

    Raises:
        TypeError: if the folder is no path.
        OSError: if there is no such folder, or no config.json in it.
        ValueError: if it holds another class's model, or other keys than these.
    """
    return read_config(folder, _format(cls), {"format", *keys})


def filled(place: Path, parts: dict[str, Any]) -> None:
    """Put saved weights into modules, all of them and of the right shapes.

    Raises:
        ModuleNotFoundError: without safetensors.
        FileNotFoundError: if there are no weights.
        ValueError: if they are others than those of the modules.
    """
    files, path = needed("safetensors.torch", "from_pretrained"), place / _WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(f"folder must hold {_WEIGHTS}, got {place}")
    tensors = files.load_file(path)
    wanted = {
        f"{name}.{key}": tuple(value.shape)
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if found != wanted:
        raise invalid(_WEIGHTS, f"weights of shapes {wanted}", found)
    for name, part in parts.items():
        part.load_state_dict({key: tensors[f"{name}.{key}"] for key in part.state_dict()})


def mapping(config: dict[str, Any], name: str) -> dict[str, Any]:
    """An object of config.json.

    Raises:
        TypeError: if it is something else.
    """
    if not isinstance(config[name], dict):
        raise mistyped(f"{name} in config.json", "an object", config[name])
    return dict(config[name])
