"""Trained models in folders: config.json and safetensors, nothing that could run code."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import asdict
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, Self

from ...errors import invalid, mistyped
from ...torch.saving import read_config, write_config
from ..needed import needed
from .training import Trained

__all__ = ["Saved", "filled", "mapping", "read", "write"]

_WEIGHTS_FILE: Final = "model.safetensors"


def _format_word(cls: type) -> str:
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
    place = write_config(folder, {"format": _format_word(cls), **config})
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous()
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    files.save_file(tensors, place / _WEIGHTS_FILE)
    return place


def read(cls: type, folder: str | PathLike[str], keys: Set[str]) -> tuple[Path, dict[str, Any]]:
    """Return the folder, and the content of its config.json for a model of that class.

    Raises:
        TypeError: if the folder is no path.
        OSError: if there is no such folder, or no config.json in it.
        ValueError: if it holds another class's model, or other keys than these.
    """
    return read_config(folder, _format_word(cls), {"format", *keys})


def filled(place: Path, parts: dict[str, Any]) -> None:
    """Put saved weights into modules, all of them and of the right shapes.

    Raises:
        ModuleNotFoundError: without safetensors.
        FileNotFoundError: if there are no weights.
        ValueError: if they are others than those of the modules.
    """
    files, path = needed("safetensors.torch", "from_pretrained"), place / _WEIGHTS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"folder must hold {_WEIGHTS_FILE}, got {place}")
    tensors = files.load_file(path)
    wanted = {
        f"{name}.{key}": tuple(value.shape)
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if found != wanted:
        raise invalid(_WEIGHTS_FILE, f"weights of shapes {wanted}", found)
    for name, part in parts.items():
        part.load_state_dict({key: tensors[f"{name}.{key}"] for key in part.state_dict()})


def mapping(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return an object of config.json.

    Raises:
        TypeError: if it is something else.
    """
    if not isinstance(config[name], dict):
        raise mistyped(f"{name} in config.json", "an object", config[name])
    return dict(config[name])


class Saved:
    """A trained model that a folder can hold.

    Attributes:
        trained: how it was trained; None before `fit`.
        saved_keys: the keys of `state`.
    """

    trained: Trained | None = None
    saved_keys: ClassVar[frozenset[str]] = frozenset()

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that the model is made with, as plain data: for each argument its attribute."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @property
    def state(self) -> dict[str, Any]:
        """Results of training other than the weights of `saved_modules`, as plain data."""
        raise NotImplementedError

    @property
    def saved_modules(self) -> dict[str, Any]:
        """The modules whose weights are saved, by name."""
        raise NotImplementedError

    def restore(self, state: dict[str, Any]) -> None:
        """Make the modules that `state` describes; their weights are filled in later."""
        raise NotImplementedError

    def protect(self) -> None:
        """Put the noise behind the fitted encoder; a model without noise has nothing to do."""

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        raise NotImplementedError

    @property
    def _is_fitted(self) -> bool:
        return self.trained is not None

    def require_fitted(self, what: str) -> None:
        """Raise an error that says what cannot be done before `fit`."""
        if not self._is_fitted:
            raise invalid("model", f"fitted before it {what}: model.fit(corpus)", self)

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Write config.json and safetensors; see `from_pretrained`.

        Args:
            folder: made if it is missing.

        Returns:
            The folder.

        Raises:
            TypeError: if the folder is no path.
            ValueError: if the model is not fitted.
            OSError: if it cannot be written.
        """
        self.require_fitted("is saved")
        assert self.trained is not None
        config = {"arguments": self.arguments, **self.state, "trained": asdict(self.trained)}
        place = write(type(self), folder, config, self.saved_modules)
        self.write_parts(place)
        return place

    def write_parts(self, place: Path) -> None:
        """Write parts with folders of their own into the model's; most models have none."""

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str], *, device: Any = None) -> Self:
        """Read the model that `save_pretrained` wrote: no pickle is read, no network used.

        Args:
            folder: a folder of this machine.
            device: where it is moved; None is the CPU.

        Raises:
            OSError: if there is no such folder, or a file is missing.
            ValueError: if it holds another class's model, or a key is unknown or missing.
        """
        return cls._load(folder, device)

    @classmethod
    def _load(cls, folder: str | PathLike[str], device: Any, **given: Any) -> Self:
        place, config = read(cls, folder, {"arguments", "trained", *cls.saved_keys})
        model = cls.from_arguments(mapping(config, "arguments"), place, config, **given)
        model.trained = Trained.from_plain(mapping(config, "trained"))
        model.restore(config)
        filled(place, model.saved_modules)
        model.protect()
        return model if device is None else model.to(device)

    @classmethod
    def from_arguments(
        cls, arguments: dict[str, Any], place: Path, config: dict[str, Any], **given: Any
    ) -> Self:
        """Make a model that is not fitted, from `arguments` and what is given beside the folder."""
        try:
            return cls(**arguments, **given)
        except TypeError as error:
            names = f"arguments in config.json must be those of {cls.__name__}, got {error}"
            raise ValueError(names) from None
