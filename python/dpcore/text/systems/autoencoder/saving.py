"""Auto-encoders of texts in folders."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

from ....errors import invalid
from ...vocabulary import Vocabulary
from ..folders import filled, mapping, read, write
from .adept import ADePT, Learnt
from .lstm import RESERVED

__all__ = ["load", "save"]

Model = TypeVar("Model", bound=ADePT)

_KEYS: Final = {"arguments", "words", "trained"}


def save(model: ADePT, folder: str | PathLike[str]) -> Path:
    """Write a model, see `ADePT.save_pretrained`."""
    model.protected("is saved")
    assert model.trained is not None
    config = {
        "arguments": model.arguments,
        "words": list(model.encoder.words.vocabulary.words),
        "trained": asdict(model.trained),
    }
    parts = {"encoder": model.encoder, "decoder": model.decoder}
    return write(type(model), folder, config, parts)


def load(cls: type[Model], folder: str | PathLike[str], device: Any) -> Model:
    """Read a model, see `ADePT.from_pretrained`."""
    place, config = read(cls, folder, _KEYS)
    trained = mapping(config, "trained")
    try:
        model = cls(**mapping(config, "arguments"))
        model.trained = Learnt(**{**trained, "losses": tuple(trained["losses"])})
    except (TypeError, KeyError) as error:
        raise invalid("config.json", f"one of {cls.__name__}", error) from None
    model.assemble(Vocabulary(config["words"], "token", RESERVED))
    filled(place, {"encoder": model.encoder, "decoder": model.decoder})
    model.protect()
    if device is not None:
        model.to(device)
    return model
