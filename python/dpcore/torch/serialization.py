"""Saving and loading of private encoders in folders that contain no file that could run code."""

from __future__ import annotations

import json
import re
from collections.abc import Set
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..calibration import noise_errors
from ..errors import choice, flag, invalid, message, mistyped
from ..packages import load_arrays
from ..paths import write_file_or_keep_old
from .encoders import Encoder, Pooled, encoder_of
from .layers import (
    DPTextNoiseLayer,
    GaussianNoise,
    L2LaplaceNoise,
    LaplaceNoise,
    NoiseLayer,
    SharedNoise,
)
from .mechanisms import require_available_device
from .transforms import Clip, MinMax, Normalise, Project, TransformChain

if TYPE_CHECKING:
    from .private_encoder import PrivateEncoder

FORMAT: Final = "dpcore.PrivateEncoder/1"
_CONFIG_KEYS: Final = {
    "format", "encoder", "transform", "noise", "epsilon", "delta", "strict", "chosen",
}  # fmt: skip
_LAYER_CLASSES: Final = (LaplaceNoise, GaussianNoise, L2LaplaceNoise, DPTextNoiseLayer, SharedNoise)
TRANSFORMS: Final = (Clip, MinMax, Normalise)
_TRANSFORM_CLASSES: Final = (*TRANSFORMS, Project)
_CODE_SUFFIXES: Final = {
    ".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt", ".npy", ".joblib", ".py",
}  # fmt: skip
"""Suffixes of files that other loaders would unpickle or import."""
_FILES_OF_WORDS: Final = {
    "tokenizer.json", "vocab.json", "added_tokens.json", "special_tokens_map.json",
}  # fmt: skip
"""Files of an encoder that contain words of texts, not settings."""
_DOTTED_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+")
_LOADED_PACKAGES: Final = ("sentence_transformers.", "torch.nn.")
"""Packages of classes that a loader may import because the settings of an encoder name them."""
_ENCODER_WEIGHTS_FILE: Final = "encoder.safetensors"
_DIRECTIONS_FILE: Final = "transform.safetensors"
"""File with the arrays of a `Project`."""
_ENCODER_FOLDER: Final = "encoder"


def _class_name_in_config(cls: type) -> str:
    """Return the name by which config.json names the class of a layer or a transform."""
    return cls.__name__.removesuffix("Layer")


def save_private_encoder(private: PrivateEncoder, folder: str | PathLike[str]) -> Path:
    """Save a `PrivateEncoder` to a folder, as `PrivateEncoder.save_pretrained` does."""
    chain = private.transform
    steps = list(chain) if isinstance(chain, TransformChain) else None
    config = {
        "format": FORMAT,
        "encoder": _describe_encoder_kind(private.encoder) | {"rounding": private.rounding},
        "transform": describe_layer("transform", chain, TRANSFORMS)
        if steps is None
        else [describe_layer("transform", step, _TRANSFORM_CLASSES) for step in steps],
        "noise": describe_layer("noise", private.noise, _LAYER_CLASSES),
        "epsilon": private.epsilon,
        "delta": private.delta,
        "strict": private.strict,
        "chosen": bool(private.errors),
    }
    place = write_config(folder, config)
    _write_encoder(private.encoder, place)
    if any(isinstance(step, Project) for step in steps or ()):
        from safetensors.torch import save

        write_file_or_keep_old(place / _DIRECTIONS_FILE, save(chain.state_dict()), "folder")
    return place


def write_config(folder: str | PathLike[str], config: dict[str, Any]) -> Path:
    """Write the dict `config` to the file config.json in a folder.

    A missing folder is created. The function returns the path of the folder.

    Raises:
        TypeError: if the folder is not a path.
        OSError: if the path is a file, or the folder cannot be written.
    """
    place = _convert_folder_to_path(folder)
    if place.exists() and not place.is_dir():
        requirement = "a folder, or a path where there is nothing"
        raise FileExistsError(message("folder", requirement, str(place)))
    place.mkdir(parents=True, exist_ok=True)
    text = json.dumps(config, indent=1, allow_nan=False)
    write_file_or_keep_old(place / "config.json", text + "\n", "folder")
    return place


def _describe_encoder_kind(encoder: Encoder) -> dict[str, Any]:
    words = {"kind": encoder.kind, "name": encoder.name, "width": encoder.width}
    return {**words, "pooling": encoder.pooling} if isinstance(encoder, Pooled) else words


def describe_layer(name: str, module: Any, kinds: tuple[type, ...]) -> dict[str, Any]:
    """Return a dict that describes a noise layer or a transform, for config.json.

    The dict contains the class name and the arguments. If the class is not in `kinds`, the function
    raises a TypeError whose message contains `name`.
    """
    if type(module) not in kinds:
        raise mistyped(name, "one of dpcore.torch, to be saved", module)
    return {"class": _class_name_in_config(type(module)), **_layer_arguments(module)}


def _layer_arguments(module: Any) -> dict[str, Any]:
    """Return the arguments with which the constructor makes the same layer or transform."""
    if isinstance(module, Project):
        # Its arrays, seed and number of rows are read from safetensors afterwards.
        return {"rows": "random", "dim": module.dim, "width": module.width, "rng": 0}
    if isinstance(module, Clip):
        centre = {} if module.center is None else {
            "center": module.center.tolist(), "public_rows": module.public_rows,
        }  # fmt: skip
        return {"norm": module.norm, "radius": module.radius, **centre}
    if not isinstance(module, NoiseLayer):
        return {"norm": module.norm} if isinstance(module, Normalise) else {}
    mode = {"nan": module.nan} if isinstance(module, DPTextNoiseLayer) else {}
    if module.epsilon is None:
        name = "sigma" if isinstance(module, GaussianNoise) else "scale"
        return {name: module.scale, **mode}
    epsilon = float(module.epsilon.detach())
    learnt = {"sensitivity": module.sensitivity, "epsilon": epsilon, "cap": module.cap}
    return {**learnt, "trainable": True, **mode}


def _write_encoder(encoder: Encoder, place: Path) -> None:
    if encoder.kind == "sentence-transformers":
        encoder.model.save_pretrained(str(place / _ENCODER_FOLDER), create_model_card=False)
    elif isinstance(encoder, Pooled):
        encoder.model.save_pretrained(str(place / _ENCODER_FOLDER))
        encoder.tokenizer.save_pretrained(str(place / _ENCODER_FOLDER))
    elif encoder.kind == "module" and encoder.model.state_dict():
        from safetensors.torch import save_model

        save_model(encoder.model, str(place / _ENCODER_WEIGHTS_FILE))


def load_encoder(
    cls: type[PrivateEncoder], folder: str | PathLike[str], encoder: Any, device: Any, probe: Any
) -> PrivateEncoder:
    """Load a `PrivateEncoder` from a folder, as `PrivateEncoder.from_pretrained` does."""
    place, config = read_config_if_folder_has_no_code(folder, FORMAT, _CONFIG_KEYS)
    words = config["encoder"]
    text_encoder = _load_text_encoder(place, words, encoder)
    private = cls(
        text_encoder,
        _read_transform(place, config["transform"]),
        epsilon=config["epsilon"],
        delta=config["delta"],
        noise=make_layer("noise", config["noise"], _LAYER_CLASSES),
        strict=config["strict"],
        probe=probe,
        rounding=words["rounding"],
    )
    if private.encoder.width != words["width"]:
        raise invalid("encoder", f"of width {words['width']}, as saved", private.encoder.width)
    if flag("chosen", config["chosen"]):
        # The claim and the transform determine the errors that `noise="best"` compared.
        private.errors = noise_errors(private.domain, private.epsilon, private.delta)
    return private if device is None else private.to(require_available_device(device))


def _read_transform(place: Path, words: Any) -> Any:
    if not isinstance(words, list):
        return make_layer("transform", words, TRANSFORMS)
    steps = [make_layer("transform", step, _TRANSFORM_CLASSES) for step in words]
    if any(isinstance(step, Project) for step in steps):
        arrays = load_arrays(place / _DIRECTIONS_FILE, "torch")
        try:
            TransformChain(steps).load_state_dict(arrays)
        except RuntimeError as error:
            name = str(place / _DIRECTIONS_FILE)
            raise invalid(name, "the arrays of config.json", error) from None
    return steps


def _convert_folder_to_path(folder: Any) -> Path:
    if not isinstance(folder, (str, PathLike)):
        raise mistyped("folder", "a path", folder)
    return Path(folder)


def read_config_if_folder_has_no_code(
    folder: str | PathLike[str], format: str, keys: Set[str]
) -> tuple[Path, dict[str, Any]]:
    """Read config.json in a folder, and check that no file in the folder could run code.

    Args:
        folder: path of a folder on this machine.
        format: required value of the key "format" in config.json.
        keys: required keys of config.json. No other keys are allowed.

    Returns:
        The folder, and the content of config.json.

    Raises:
        TypeError: if the folder is not a path.
        OSError: if the folder is missing, or contains no config.json.
        ValueError: if config.json is not JSON of this format, if a key is missing or not allowed,
            or if a file in the folder could contain a pickle or code.
    """
    place = _convert_folder_to_path(folder)
    if not place.is_dir():
        # The name of a model on a hub is not a folder, and nothing is downloaded.
        raise FileNotFoundError(f"folder must be one that save_pretrained wrote, got {place}")
    file = place / "config.json"
    if not file.is_file():
        raise FileNotFoundError(f"folder must hold config.json, got {place}")
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file} must be JSON, got {error}") from None
    if not isinstance(config, dict) or config.get("format") != format:
        stated = config.get("format") if isinstance(config, dict) else config
        raise invalid(f"format of {file}", repr(format), stated)
    for wrong in sorted(set(config) ^ keys):
        requirement = "one of " + ", ".join(sorted(keys)) if wrong in config else "there"
        raise invalid(f"key of {file}", requirement, wrong)
    for path in sorted(place.rglob("*")):
        if path.suffix in _CODE_SUFFIXES:
            raise invalid("folder", "without files that could hold a pickle or code", str(path))
    return place, config


def _load_text_encoder(place: Path, encoder_settings: Any, encoder: Any) -> Encoder:
    kinds = ("sentence-transformers", "transformers", "module", "function", "dictionary")
    if not isinstance(encoder_settings, dict):
        raise mistyped("encoder in config.json", "an object", encoder_settings)
    kind = choice("kind of the encoder in config.json", encoder_settings.get("kind"), kinds)
    for key in ("name", "rounding", "width", *["pooling"] * (kind == "transformers")):
        if key not in encoder_settings:
            raise invalid("encoder in config.json", f"an object with {key!r}", encoder_settings)
    if kind in ("module", "function", "dictionary"):
        if encoder is None:
            requirement = f"given for an encoder of one's own ({encoder_settings['name']})"
            raise invalid("encoder", requirement, None)
        wrapped = encoder_of(encoder)
        if (place / _ENCODER_WEIGHTS_FILE).exists():
            from safetensors.torch import load_model

            path = place / _ENCODER_WEIGHTS_FILE
            load_arrays(path, "torch")
            try:
                load_model(wrapped.model, str(path), strict=True)
            except RuntimeError as error:
                raise invalid(str(path), "the weights of the encoder", error) from None
        return wrapped
    if encoder is not None:
        raise invalid("encoder", f"left out, for the folder holds one ({kind})", encoder)
    inside = str(place / _ENCODER_FOLDER)
    for path in sorted((place / _ENCODER_FOLDER).rglob("*.json")):
        if path.name not in _FILES_OF_WORDS:
            try:
                _refuse_importable_code_names(json.loads(path.read_text(encoding="utf-8")))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{path} must be settings in JSON, got {error}") from None
    if kind == "sentence-transformers":
        from sentence_transformers import SentenceTransformer

        options: Any = {"model_kwargs": {"use_safetensors": True}, **_LOCAL}
        return encoder_of(SentenceTransformer(inside, device="cpu", **options))
    from transformers import AutoModel, AutoTokenizer

    model = AutoModel.from_pretrained(inside, use_safetensors=True, **_LOCAL)
    tokenizer = AutoTokenizer.from_pretrained(inside, **_LOCAL)
    return encoder_of((model.eval(), tokenizer, encoder_settings["pooling"]))


_LOCAL: Final[dict[str, Any]] = {"local_files_only": True, "trust_remote_code": False}


def _refuse_importable_code_names(value: Any) -> None:
    """Raise an error if the settings name code from other packages, which a loader might import."""
    if isinstance(value, dict):
        if "auto_map" in value:
            raise ValueError("auto_map, which names code")
        value = [*value.values()]
    if isinstance(value, list):
        for item in value:
            _refuse_importable_code_names(item)
    elif (
        isinstance(value, str)
        and _DOTTED_NAME.fullmatch(value)
        and not value.startswith(_LOADED_PACKAGES)
    ):
        raise ValueError(f"{value!r}, which may name code")


def make_layer(name: str, words: Any, kinds: tuple[type, ...]) -> Any:
    """Make a noise layer or a transform from its description in config.json.

    `words` is the description (a dict), `kinds` are the allowed classes, and `name` is the name of
    the object in error messages.
    """
    if not isinstance(words, dict):
        raise mistyped(f"{name} in config.json", "an object", words)
    classes = {_class_name_in_config(cls): cls for cls in kinds}
    cls = classes[choice(f"class of {name} in config.json", words.get("class"), tuple(classes))]
    arguments = {key: value for key, value in words.items() if key != "class"}
    try:
        return cls(**arguments)
    except TypeError as error:
        text = f"{name} in config.json must have the arguments of {cls.__name__}, got {error}"
        raise ValueError(text) from None
