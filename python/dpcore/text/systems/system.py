"""Base class of trained private text models, and functions to save and load such models.

A model is saved in a folder with config.json and files in the safetensors format. The folder has no
file that could execute code.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from contextlib import suppress
from dataclasses import asdict
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, Final, Self

import numpy as np
import numpy.typing as npt

from ...calibration import RealEpsilon
from ...errors import instance, invalid, mistyped, numeric
from ...packages import load_arrays, require_module, torch
from ...paths import write_file_or_keep_old
from ...records import Pair
from ...report.rows import Row
from ...report.shown import Shown
from ...streams import Rng
from ...suggestions import explain_argument_errors
from ...torch import PrivateEncoder
from ...torch.mechanisms import EncoderMechanism, require_available_device
from ...torch.private_encoder import list_rows
from ...torch.serialization import read_config_if_folder_has_no_code, write_config
from ..corpus import Corpus
from .training import Trained

_WEIGHTS_FILE: Final = "model.safetensors"


def _format_identifier(cls: type) -> str:
    return f"dpcore.text.{cls.__name__.removesuffix('Model')}/1"


def write_folder(
    cls: type, folder: str | PathLike[str], config: dict[str, Any], parts: dict[str, Any]
) -> Path:
    """Write a model to a folder: the file config.json, and a file with the weights of its modules.

    Args:
        cls: class of the model.
        folder: folder for the files, created if it is missing.
        config: content of config.json, as strings, numbers, lists and dictionaries.
        parts: dictionary from names to the torch modules whose weights are written.

    Returns:
        The folder.

    Raises:
        ModuleNotFoundError: if safetensors is missing.
        TypeError: if the folder is not a path.
        OSError: if the folder cannot be written.
    """
    files = require_module("safetensors.torch", "save_pretrained")
    place = write_config(folder, {"format": _format_identifier(cls), **config})
    held = torch.nn.ModuleDict(parts).state_dict()
    tensors = {name: value.detach().cpu().contiguous() for name, value in held.items()}
    write_file_or_keep_old(place / _WEIGHTS_FILE, files.save(tensors), "folder")
    return place


def read_model_folder(
    cls: type, folder: str | PathLike[str], keys: Set[str]
) -> tuple[Path, dict[str, Any]]:
    """Read config.json in the folder of a saved model.

    Args:
        cls: class of the model.
        folder: folder of the saved model.
        keys: names of the entries that config.json must have, except "format".

    Returns:
        A pair: the path of the folder, and the content of config.json.

    Raises:
        TypeError: if the folder is not a path.
        OSError: if the folder or its config.json is missing.
        ValueError: if the folder contains a model of another class, or the entries of config.json
            differ from `keys`.
    """
    return read_config_if_folder_has_no_code(folder, _format_identifier(cls), {"format", *keys})


def load_weights(place: Path, parts: dict[str, Any]) -> None:
    """Load the saved weights of a model into torch modules.

    Args:
        place: folder of the saved model.
        parts: dictionary from names to the modules into which the saved weights are loaded.

    Raises:
        ModuleNotFoundError: if safetensors is missing.
        FileNotFoundError: if the file with the weights is missing.
        ValueError: if the saved weights differ from the weights of the modules in names or shapes.
    """
    path = place / _WEIGHTS_FILE
    if not path.is_file():
        raise FileNotFoundError(f"folder must hold {_WEIGHTS_FILE}, got {place}")
    tensors = load_arrays(path, "torch")
    modules = torch.nn.ModuleDict(parts)
    expected, saved = (
        {name: tuple(value.shape) for name, value in held.items()}
        for held in (modules.state_dict(), tensors)
    )
    if saved != expected:
        raise invalid(_WEIGHTS_FILE, f"weights of shapes {expected}", saved)
    modules.load_state_dict(tensors)


def read_mapping(config: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a copy of the entry `name` of config.json, which must be a dictionary.

    Args:
        config: content of config.json.
        name: name of the entry.

    Raises:
        TypeError: if the entry is not a dictionary.
    """
    if not isinstance(config[name], dict):
        raise mistyped(f"{name} in config.json", "an object", config[name])
    return dict(config[name])


class SavableModel:
    """Base class of trained models that can be saved to a folder.

    Attributes:
        trained: record of the training, or None before `fit`.
        saved_keys: names of the entries of the dictionary `state`.
    """

    trained: Trained | None = None
    saved_keys: ClassVar[frozenset[str]] = frozenset()

    @property
    def arguments(self) -> dict[str, Any]:
        """Constructor arguments of this model, as data that can be saved in config.json."""
        return {name: getattr(self, name) for name in signature(type(self)).parameters}

    @property
    def state(self) -> dict[str, Any]:
        """Results of the training of this model for the file config.json, such as the known words.

        Weights are not included.
        """
        raise NotImplementedError

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Dictionary from names to the torch modules of this model whose weights are saved."""
        raise NotImplementedError

    def restore(self, state: dict[str, Any]) -> None:
        """Create the torch modules of this model from saved data, without loading weights.

        Args:
            state: saved data, as the property `state` returns them.
        """
        raise NotImplementedError

    def protect(self) -> None:
        """Add the noise to the fitted encoder of this model.

        The default implementation leaves the model unchanged.
        """

    def to(self, device: Any) -> Self:
        """Move this model to a torch device, such as "cuda", and return the model."""
        raise NotImplementedError

    @property
    def _is_fitted(self) -> bool:
        return self.trained is not None

    def require_fitted(self, what: str) -> None:
        """Raise an error if this model is not fitted.

        Args:
            what: operation that needs a fitted model, such as "is saved". The error message names
                this operation.
        """
        if not self._is_fitted:
            raise invalid("model", f"fitted before it {what}: model.fit(corpus)", self)

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Save this fitted model in a folder, in the file config.json and in safetensors files.

        Args:
            folder: folder for the files, created if it is missing.

        Returns:
            The folder.

        Raises:
            TypeError: if the folder is not a path.
            ValueError: if the model is not fitted.
            OSError: if the folder cannot be written.
        """
        self.require_fitted("is saved")
        assert self.trained is not None
        config = {"arguments": self.arguments, **self.state, "trained": asdict(self.trained)}
        place = write_folder(type(self), folder, config, self.saved_modules)
        self.write_parts(place)
        return place

    def write_parts(self, place: Path) -> None:
        """Save additional parts of this model in subfolders of the folder `place`.

        The default implementation does not write any file.
        """

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str], *, device: Any = None) -> Self:
        """Read a model that `save_pretrained` wrote, without using pickle files or the network.

        Args:
            folder: a local folder.
            device: device of the model. None means the CPU.

        Raises:
            OSError: if the folder or a file is missing.
            ValueError: if the folder contains a model of another class, or a key of config.json is
                unknown or missing.
        """
        return cls._load_fitted_model(folder, device)

    @classmethod
    def _load_fitted_model(cls, folder: str | PathLike[str], device: Any, **passed: Any) -> Self:
        place, config = read_model_folder(cls, folder, {"arguments", "trained", *cls.saved_keys})
        try:
            arguments = read_mapping(config, "arguments")
            model = cls.from_arguments(arguments, place, config, **passed)
            if missing := model.arguments.keys() - arguments.keys():
                raise KeyError(min(missing))
            model.trained = Trained.from_plain(read_mapping(config, "trained"))
            model.restore(config)
        except (LookupError, AttributeError, ArithmeticError, RecursionError) as error:
            raise invalid("config.json", f"one of {cls.__name__}", repr(error)) from error
        load_weights(place, model.saved_modules)
        model.protect()
        return model if device is None else model.to(device)

    @classmethod
    def from_arguments(
        cls, arguments: dict[str, Any], place: Path, config: dict[str, Any], **passed: Any
    ) -> Self:
        """Create a model of this class that is not fitted.

        Args:
            arguments: saved constructor arguments.
            place: folder of the saved model.
            config: content of config.json.
            **passed: constructor arguments that the user passes, because a saved model does not
                contain these arguments.
        """
        try:
            return cls(**arguments, **passed)
        except TypeError as error:
            names = f"arguments in config.json must be those of {cls.__name__}, got {error}"
            raise ValueError(names) from None


@explain_argument_errors
class Labelling:
    """Base class of models that predict the labels of texts.

    Attributes:
        labels: the labels that the model can predict.
    """

    labels: npt.NDArray[Any]

    def label_rows(self, head: torch.nn.Linear, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the label with the highest score (logit) for each vector.

        Args:
            head: linear layer that computes a score of each label from a vector.
            rows: vectors, shape `(n, d)`.
        """
        weight, requirement = head.weight, f"numbers of shape (n, {head.in_features})"
        vectors = numeric("rows", requirement, rows)
        if vectors.shape[1:] != (head.in_features,):
            raise invalid("rows", requirement, vectors.shape)
        with torch.no_grad():
            scores = head(torch.tensor(vectors, dtype=weight.dtype, device=weight.device))
        labels: npt.NDArray[Any] = self.labels[scores.argmax(dim=1).cpu().numpy()]
        return labels

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Predict the label of each text, and return an array of shape `(len(texts),)`."""
        raise NotImplementedError

    def accuracy(self, corpus: Corpus, *, rng: Rng = None) -> float:
        """Compute the fraction of texts for which this model predicts the correct label.

        Args:
            corpus: texts with labels, such as `corpus.test`.
            rng: None draws new noise. With the same int, or the same state of a Generator, the
                method adds the same noise again.

        Raises:
            TypeError: if `corpus` is not a `Corpus`.
            ValueError: if the corpus has no labels, or the model is not fitted.
        """
        if instance("corpus", corpus, Corpus).labels is None:
            raise invalid("corpus", "one with labels", corpus)
        # The `predict` of a model without noise has no argument `rng`.
        noise = {} if rng is None else {"rng": rng}
        return float(np.mean(self.predict(corpus.texts, **noise) == corpus.labels))


class TextSystem(SavableModel, Shown):
    """Base class of models that are fitted to texts, and that then release noisy vectors of texts.

    A subclass defines `fit`, `protect`, `state`, `saved_modules` and `restore`. All other methods
    have a default implementation. A model that rewrites texts also has the attribute `rewriter`.

    Attributes:
        epsilon: epsilon that the model claims for any two texts.
        private: fitted encoder that includes the transform and the noise, or None before `fit`.
        trained: record of the training, or None before `fit`.
    """

    epsilon: float
    private: PrivateEncoder | None = None

    @property
    def claim(self) -> float | None:
        """Epsilon that this model claims for any two texts."""
        return self.epsilon

    @property
    def real(self) -> RealEpsilon | None:
        """True epsilon of this model for any two texts, with the derivation.

        The property is None if the true epsilon is not known.
        """
        return None if self.private is None else self.private.real

    @property
    def true_epsilon(self) -> float:
        """True epsilon of this model for any two texts, computed from the noise.

        The true epsilon may be larger than the claimed epsilon. The value is inf if no finite
        epsilon holds, and NaN before `fit`.
        """
        return math.nan if self.private is None else self.private.true_epsilon

    @property
    def verdict(self) -> str:
        """Text for reports that states whether the claimed epsilon holds for any two texts."""
        epsilon, claim = self.true_epsilon, self.claim
        if math.isnan(epsilon):
            return "not fitted"
        level = f"true epsilon {epsilon:.6g}" if math.isfinite(epsilon) else "no epsilon at all"
        false = claim is not None and epsilon > claim * (1.0 + 1e-9)
        return f"{'THE CLAIM IS FALSE: ' * false}{level} for any two texts"

    def clean(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts without noise; these vectors are not private.

        Args:
            texts: strings that are not empty.

        Returns:
            A tensor of shape `(len(texts), d)`.
        """
        return self.require_private("encodes").clean(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Compute the noisy vectors of texts, with new noise in every call.

        Args:
            texts: strings that are not empty.
            rng: None takes the noise from random numbers of the operating system. With an int or a
                Generator, the noise can be repeated. Anyone who knows this int or Generator can
                compute the noise. Therefore use None for a release.

        Returns:
            float32 vectors, shape `(len(texts), d)`.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return self.require_private("encodes").encode(texts, rng=rng)

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """Find the two texts with the largest exact privacy loss under this model.

        The loss is computed from the distribution of the noise, and not estimated from samples.

        Args:
            texts: at least two different strings.
            progress: True shows a progress bar, False shows no bar. None shows a bar for long work
                on a terminal or in a notebook.

        Returns:
            The pair of texts. `print(model)` shows the pair that the last call found.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the model is not fitted, a text is empty, or all texts are equal.
        """
        return self.require_private("compares texts").worst_pair(texts, progress=progress)

    @property
    def worst(self) -> tuple[Pair, float | None] | None:
        """Pair of texts that the last call of `worst_pair` found, with the exact loss of this pair.

        The property is None before the first call.
        """
        return None if self.private is None else self.private.worst

    @property
    def name(self) -> str:
        """Name of this model in reports: the class, and the arguments that differ from defaults."""
        usual = {
            parameter.name: parameter.default
            for parameter in signature(type(self)).parameters.values()
        }
        changed = [f"{name}={v!r}" for name, v in self.arguments.items() if v != usual[name]]
        return f"{type(self).__name__}({', '.join(changed)})"

    def details(self) -> dict[str, str]:
        """Return additional rows that `print` shows for this model: the training, and any labels.

        The keys of the dictionary are the titles of the rows.
        """
        rows = {"trained": str(self.trained)}
        if isinstance(self, Labelling):
            rows["labels"] = ", ".join(map(str, self.labels))
        return rows

    def as_mechanism(self) -> EncoderMechanism:
        """Return a mechanism for an audit: the input is a text, the output is the noisy vector."""
        made = self.require_private("is audited").as_mechanism()
        made.name = self.name
        return made

    def to(self, device: Any) -> Self:
        """Move this model to a torch device, such as "cuda", and return the model."""
        self.require_private("is moved").to(device)
        for module in self.saved_modules.values():
            module.to(require_available_device(device))
        return self

    @property
    def _is_fitted(self) -> bool:
        return self.private is not None

    def require_private(self, what: str) -> PrivateEncoder:
        """Return the fitted private encoder of this model, or raise an error before `fit`.

        Args:
            what: operation that needs the encoder, such as "encodes". The error message names this
                operation.
        """
        self.require_fitted(what)
        assert self.private is not None
        return self.private

    def _set_noise_and_pair(self, texts: Sequence[str], pair: bool, progress: bool | None) -> Self:
        """Add noise to the fitted encoder, and search for the two texts with the largest loss.

        The search is skipped if `pair` is False or Ctrl-C stopped the training.
        """
        self.protect()
        ended = self.trained is None or self.trained.partial
        if pair and not ended and len(set(texts)) > 1:
            # If the user stops the search by Ctrl-C, the model is kept.
            with suppress(KeyboardInterrupt):
                self.worst_pair(texts, progress=progress)
        return self

    def __repr__(self) -> str:
        """Return one line: arguments, whether the claim is true, and the largest loss found."""
        worst = "" if self.private is None else self.private.worst_found
        return f"{self.name[:-1]}; {self.verdict}{worst})"

    def _lines(self) -> list[Row]:
        """Return the rows that `print` shows: claim, true epsilon, its limits, and training."""
        if self.private is None:
            claim = "none" if self.claim is None else f"epsilon {self.claim:g}, for any two texts"
            untrained = "not yet: model.fit(corpus)"
            return [("claim", claim), ("true", self.verdict), ("trained", untrained)]
        rows = dict(list_rows(self.private))
        rows["not covered"] = "the texts that the weights were fitted to"
        return [*(rows | self.details()).items()]
