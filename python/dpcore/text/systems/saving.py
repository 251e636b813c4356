"""Trained encoders in a folder: config.json and safetensors, nothing that could run code."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from ...errors import choice, invalid, mistyped
from ...torch.encoding import encoder_of
from ...torch.needed import torch
from ...torch.private import PrivateEncoder
from ...torch.saving import read_config, write_config
from ..needed import needed
from ..tfidf import TfidfSVD
from ..vocabulary import words_of
from .bag import Bag
from .classifier import TextClassifier, Trained

__all__ = ["load", "save"]

Model = TypeVar("Model", bound=TextClassifier)

_KEYS: Final = {"format", "arguments", "extractor", "words", "labels", "trained", "beside"}
_HEAD: Final = "model.safetensors"
_EXTRACTOR: Final = "extractor"


def save(model: TextClassifier, folder: str | PathLike[str]) -> Path:
    """Write a model, see `TextClassifier.save_pretrained`."""
    files = needed("safetensors.torch", "save_pretrained")
    model.needs_fit("is saved")
    assert model.trained is not None
    bag = model.extractor if isinstance(model.extractor, Bag) else None
    words = [] if bag is None else list(bag.vocabulary.words)
    if bag is not None and bag.vocabulary.tokenise is not words_of:
        raise mistyped("tokenise", "words_of, to be saved", bag.vocabulary.tokenise)
    beside, modules = model.beside
    config = {
        "format": _format(type(model)),
        "arguments": model.arguments,
        "extractor": _kind(model),
        "words": words,
        "labels": model.labels.tolist(),
        "trained": asdict(model.trained),
        "beside": beside,
    }
    place = write_config(folder, config)
    tensors = {
        f"{part}.{name}": value
        for part, module in {"head": model.head, **modules}.items()
        for name, value in module.state_dict().items()
    }
    if bag is not None:
        tensors["bag.weight"] = bag.embedding.weight.detach()
    files.save_file({name: value.cpu() for name, value in tensors.items()}, place / _HEAD)
    if isinstance(model.given, TfidfSVD):
        model.given.save_pretrained(place / _EXTRACTOR)
    elif bag is None:
        # Encoders of torch's are written with what stands behind them.
        model.private.save_pretrained(place / _EXTRACTOR)  # type: ignore[attr-defined]
    return place


def _kind(model: TextClassifier) -> str:
    if isinstance(model.extractor, Bag):
        return "bag"
    return "tfidf" if isinstance(model.given, TfidfSVD) else "encoder"


def _format(cls: type) -> str:
    return f"dpcore.text.{cls.__name__}/1"


def load(cls: type[Model], folder: str | PathLike[str], extractor: Any, device: Any) -> Model:
    """Read a model, see `TextClassifier.from_pretrained`."""
    files = needed("safetensors.torch", "from_pretrained")
    place, config = read_config(folder, _format(cls), _KEYS)
    kind = choice("extractor in config.json", config["extractor"], ("bag", "tfidf", "encoder"))
    if kind == "tfidf" and extractor is None:
        given: Any = TfidfSVD.from_pretrained(place / _EXTRACTOR)
    elif kind == "encoder":
        given = PrivateEncoder.from_pretrained(place / _EXTRACTOR, encoder=extractor).encoder
    elif extractor is not None:
        raise invalid("extractor", f"left out, for the folder holds one ({kind})", extractor)
    else:
        given = None
    model = cls.from_arguments(_mapping(config, "arguments"), given)
    trained = _mapping(config, "trained")
    trained["losses"] = tuple(trained.get("losses", ()))
    tensors = files.load_file(_file(place))
    shape = tensors["head.weight"].shape if "head.weight" in tensors else (0, 0)
    head = torch.nn.Linear(shape[1], shape[0])
    model.rebuild(_mapping(config, "beside"), shape[1])
    parts = {"head": head, **model.beside[1]}
    if kind == "bag":
        assert model.dim is not None
        model.extractor = Bag(model.vocabulary_of(config["words"]), model.dim, model.dropout).eval()
        parts["bag"] = model.extractor.embedding
    else:
        model.extractor = encoder_of(given)
    _filled(parts, tensors)
    model.restore(head, np.array(config["labels"]), Trained(**trained))
    if device is not None:
        model.to(device)
    return model


def _mapping(config: dict[str, Any], name: str) -> dict[str, Any]:
    if not isinstance(config[name], dict):
        raise mistyped(f"{name} in config.json", "an object", config[name])
    return dict(config[name])


def _file(place: Path) -> Path:
    path = place / _HEAD
    if not path.is_file():
        raise FileNotFoundError(f"folder must hold {_HEAD}, got {place}")
    return path


def _filled(parts: dict[str, Any], tensors: dict[str, Any]) -> None:
    """Put saved weights into modules, all of them and of the right shapes."""
    wanted = {
        f"{name}.{key}": tuple(value.shape)
        for name, part in parts.items()
        for key, value in part.state_dict().items()
    }
    found = {name: tuple(value.shape) for name, value in tensors.items()}
    if found != wanted:
        raise invalid(_HEAD, f"weights of shapes {wanted}", found)
    for name, part in parts.items():
        part.load_state_dict({key: tensors[f"{name}.{key}"] for key in part.state_dict()})
        part.eval()
