"""DPText in folders."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from ....errors import invalid
from ...vocabulary import Vocabulary
from ..folders import filled, mapping, read, write
from .coders import CODERS
from .learning import Lessons, Taught
from .model import DPText

__all__ = ["load", "save"]

Model = TypeVar("Model", bound=DPText)

_KEYS: Final = {"arguments", "learnt", "words", "labels", "values", "trained"}


def save(model: DPText, folder: str | PathLike[str]) -> Path:
    """Write a model, see `DPText.save_pretrained`."""
    model.protected("is saved")
    assert model.trained is not None
    assert model.parts is not None
    config = {
        "arguments": model.arguments,
        "learnt": model.learnt,
        "words": list(model.parts.coder.vocabulary.words),
        "labels": model.labels.tolist(),
        "values": {name: column.tolist() for name, column in model.values.items()},
        "trained": asdict(model.trained),
    }
    return write(type(model), folder, config, _weights(model))


def _weights(model: DPText) -> dict[str, Any]:
    """All modules but the noise, which config.json describes."""
    return {name: module for name, module in model.modules.items() if name != "noise"}


def load(cls: type[Model], folder: str | PathLike[str], device: Any) -> Model:
    """Read a model, see `DPText.from_pretrained`."""
    place, config = read(cls, folder, _KEYS)
    trained = mapping(config, "trained")
    try:
        model = cls(**mapping(config, "arguments"))
        lists = {name: tuple(trained[name]) for name in ("losses", "epsilons")}
        model.trained = Taught(**{**trained, **lists, "lessons": Lessons(**trained["lessons"])})
    except (TypeError, KeyError) as error:
        raise invalid("config.json", f"one of {cls.__name__}", error) from None
    model.labels = np.array(config["labels"])
    model.values = {name: np.array(v) for name, v in mapping(config, "values").items()}
    model.assemble(
        Vocabulary(config["words"], **CODERS[model.extractor].settings), config["learnt"]
    )
    filled(place, _weights(model))
    model.protect()
    if device is not None:
        model.to(device)
    return model
