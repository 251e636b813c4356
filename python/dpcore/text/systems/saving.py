"""Classifiers of texts in folders."""

from __future__ import annotations

from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeVar

from ...errors import choice, invalid, mistyped
from ...torch.encoding import encoder_of
from ...torch.needed import torch
from ...torch.private import PrivateEncoder
from ..tfidf import TfidfSVD
from ..vocabulary import words_of
from .bag import Bag
from .classifier import TextClassifier
from .folders import filled, mapping, read, write

__all__ = ["load", "save"]

Model = TypeVar("Model", bound=TextClassifier)

_KEYS: Final = {"arguments", "extractor", "width", "words", "labels", "trained", "beside"}
_EXTRACTOR: Final = "extractor"


def save(model: TextClassifier, folder: str | PathLike[str]) -> Path:
    """Write a model, see `TextClassifier.save_pretrained`."""
    model.needs_fit("is saved")
    assert model.trained is not None
    parts, words = {"head": model.head}, list[str]()
    bag = model.extractor if isinstance(model.extractor, Bag) else None
    if bag is not None:
        if bag.vocabulary.tokenise is not words_of:
            raise mistyped("tokenise", "words_of, to be saved", bag.vocabulary.tokenise)
        parts["bag"], words = bag.embedding, list(bag.vocabulary.words)
    beside, modules = model.beside
    parts.update(modules)
    config = {
        "arguments": model.arguments,
        "extractor": _kind(model),
        "width": model.head.in_features,
        "words": words,
        "labels": model.labels.tolist(),
        "trained": asdict(model.trained),
        "beside": beside,
    }
    place = write(type(model), folder, config, parts)
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


def load(cls: type[Model], folder: str | PathLike[str], extractor: Any, device: Any) -> Model:
    """Read a model, see `TextClassifier.from_pretrained`."""
    place, config = read(cls, folder, _KEYS)
    kind = choice("extractor in config.json", config["extractor"], ("bag", "tfidf", "encoder"))
    if kind == "tfidf" and extractor is None:
        given: Any = TfidfSVD.from_pretrained(place / _EXTRACTOR)
    elif kind == "encoder":
        given = PrivateEncoder.from_pretrained(place / _EXTRACTOR, encoder=extractor).encoder
    elif extractor is not None:
        raise invalid("extractor", f"left out, for the folder holds one ({kind})", extractor)
    else:
        given = None
    model = cls.from_arguments(mapping(config, "arguments"), given)
    parts = {"head": torch.nn.Linear(config["width"], len(config["labels"]))}
    model.rebuild(mapping(config, "beside"), config["width"])
    parts.update(model.beside[1])
    if kind == "bag":
        assert model.dim is not None
        model.extractor = Bag(model.vocabulary_of(config["words"]), model.dim, model.dropout).eval()
        parts["bag"] = model.extractor.embedding
    else:
        model.extractor = encoder_of(given)
    filled(place, parts)
    model.restore(parts["head"], config["labels"], mapping(config, "trained"))
    if device is not None:
        model.to(device)
    return model
