"""Encoders of texts, whatever they are made of: one function from a list of texts to a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from ..adapters.torch import refuse_mixing
from ..errors import choice, invalid, mistyped
from ..hints import hinted
from ..loaded import imported_module
from ..mechanisms.texts import TextFunction, is_pipeline, look_up
from .needed import torch

__all__ = ["Encoder", "Lookup", "Pooled", "encoder_of"]

_ENCODING_BATCH_SIZE: Final = 32
_ENCODER_KINDS: Final = (
    "a SentenceTransformer, a pair (model, tokenizer), a torch module of a list of texts, a "
    "function of a list of texts or of one text, or a dictionary from texts to vectors"
)


class Encoder:
    """Texts to vectors: what all kinds of encoders have in common.

    Args:
        model: what the user handed over.
    """

    kind = "function"

    def __init__(self, model: Any) -> None:
        self.model = model
        self._function = TextFunction(model)
        self.width: int | None = None
        self.dtype: Any = None
        self.array_dtype = torch.float64
        """Dtype that whole numbers, lists and wider arrays get; tensors of floats keep theirs."""

    @property
    def modules(self) -> list[Any]:
        """The torch modules that encode: that of a pipeline, none of a plain function."""
        if is_pipeline(self.model):
            return [self.model.model]
        return [self.model] if isinstance(self.model, torch.nn.Module) else []

    @property
    def random(self) -> bool:
        """True if the model states, by an attribute `random`, that two calls differ."""
        return getattr(self.model, "random", False) is True

    @property
    def name(self) -> str:
        """Name of the encoder in reports."""
        found = getattr(self.model, "__qualname__", None) or type(self.model).__qualname__
        return str(found).replace("<locals>.", "")

    @property
    def device(self) -> Any:
        """Device on which it encodes."""
        held = (tensor for module in self.modules for tensor in module.parameters())
        first = next(held, None)
        return torch.device("cpu") if first is None else first.device

    def to(self, device: Any) -> None:
        """Move the modules."""
        for module in self.modules:
            module.to(device)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the encoder reads; 0 where that is not known."""
        found = getattr(self.model, "truncated", None)
        return found(texts) if callable(found) else 0

    @property
    def longest(self) -> int | None:
        """Tokens that it reads of a text, if it says so (by an attribute `longest`)."""
        found = getattr(self.model, "longest", None)
        return found if isinstance(found, int) else None

    def __call__(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts.

        Args:
            texts: checked strings, at least one.

        Returns:
            A tensor of floats, shape `(len(texts), width)`, detached.

        Raises:
            TypeError: if the encoder returns anything but real numbers.
            ValueError: if it returns another number of rows, another width than before, NaN or
                infinities.
        """
        with torch.no_grad():
            found = self._floats(self._encode(list(texts)))
        if found.ndim != 2 or len(found) != len(texts):
            requirement = f"of shape ({len(texts)}, width), one row a text"
            raise invalid(self._vectors, requirement, tuple(found.shape))
        if found.shape[1] == 0:
            raise invalid(self._vectors, "at least one number wide", tuple(found.shape))
        if self.width not in (None, found.shape[1]):
            requirement = f"of width {self.width} in every call"
            raise invalid(self._vectors, requirement, tuple(found.shape))
        wrong = torch.nonzero(~torch.isfinite(found).all(dim=1)).flatten().tolist()
        if wrong:
            shown = texts[wrong[0]]
            requirement = f"finite for every text, such as {shown[:60]!r}"
            raise invalid(self._vectors, requirement, found[wrong[0]].tolist()[:4])
        self.width, self.dtype = int(found.shape[1]), found.dtype
        return found

    @property
    def _vectors(self) -> str:
        return f"vectors of {self.name}"

    def _encode(self, texts: list[str]) -> Any:
        return self._function(texts)

    def _floats(self, answer: Any) -> Any:
        """Convert the answer to a tensor of floating point numbers, detached from its graph."""
        if isinstance(answer, dict) or hasattr(answer, "last_hidden_state"):
            requirement = "one tensor (of a transformer pass the pair (model, tokenizer))"
            raise mistyped(self._vectors, requirement, answer)
        if not isinstance(answer, torch.Tensor):
            if isinstance(answer, tuple):
                raise mistyped(self._vectors, "one tensor or array, no tuple", answer)
            if isinstance(answer, list) and len({np.shape(row) for row in answer}) > 1:
                shapes = [np.shape(row) for row in answer[:4]]
                raise invalid(self._vectors, "of one width for all texts", shapes)
            if isinstance(answer, list) and answer and isinstance(answer[0], torch.Tensor):
                answer = torch.stack(answer)
            else:
                array = np.asarray(answer)
                if array.dtype.kind not in "fiu":
                    raise mistyped(self._vectors, "real numbers", array.dtype)
                wide = array.dtype.kind != "f" or array.itemsize > self.array_dtype.itemsize
                answer = torch.from_numpy(np.array(array, np.float64 if wide else None))
                answer = answer.to(self.array_dtype) if wide else answer
        if answer.is_complex() or answer.dtype == torch.bool:
            raise mistyped(self._vectors, "real numbers", answer.dtype)
        found = answer.detach()
        # Whole numbers, such as counts of words, cannot hold noise.
        return found if found.is_floating_point() else found.to(self.array_dtype)


class Lookup(Encoder):
    """A dictionary from texts to vectors that were made elsewhere."""

    kind = "dictionary"

    def _encode(self, texts: list[str]) -> Any:
        return look_up(self.model, texts)


class Module(Encoder):
    """A torch module that is called with a list of texts."""

    kind = "module"


class Sentences(Encoder):
    """A model of the package sentence-transformers."""

    kind = "sentence-transformers"

    @property
    def longest(self) -> int | None:
        """Tokens that it reads of a text."""
        found = getattr(self.model, "max_seq_length", None)
        return found if isinstance(found, int) else None

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts have more tokens than that."""
        return _count_truncated(getattr(self.model, "tokenizer", None), texts, self.longest)

    def _encode(self, texts: list[str]) -> Any:
        return self.model.encode(
            texts, convert_to_tensor=True, show_progress_bar=False, batch_size=_ENCODING_BATCH_SIZE
        )


@hinted
class Pooled(Encoder):
    """A transformer with its tokenizer; the vectors of its tokens become one by pooling.

    Args:
        model: a transformers model whose output has `last_hidden_state`.
        tokenizer: its tokenizer.
        pooling: "mean" over the tokens that are no padding, or "cls", the first token.

    Raises:
        TypeError: if `model` is no torch module, or `tokenizer` cannot be called.
        ValueError: if `pooling` is neither of the two.
    """

    kind = "transformers"

    def __init__(
        self, model: Any, tokenizer: Any, pooling: Literal["mean", "cls"] = "mean"
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise mistyped("model", "a transformers model", model)
        if not callable(tokenizer):
            raise mistyped("tokenizer", "the tokenizer of the model", tokenizer)
        super().__init__(model)
        self.tokenizer = tokenizer
        self.pooling = choice("pooling", pooling, ("mean", "cls"))

    @property
    def name(self) -> str:
        """Name of the encoder in reports."""
        return f"{type(self.model).__qualname__} ({self.pooling} pooling)"

    @property
    def longest(self) -> int | None:
        """Tokens that model and tokenizer both allow."""
        config = getattr(self.model, "config", None)
        told = (
            getattr(self.tokenizer, "model_max_length", None),
            getattr(config, "max_position_embeddings", None),
        )
        # A tokenizer without a limit says 10^30.
        known = [one for one in told if isinstance(one, int) and 0 < one < 2**24]
        return min(known, default=None)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts have more tokens than that."""
        return _count_truncated(self.tokenizer, texts, self.longest)

    def _encode(self, texts: list[str]) -> Any:
        parts = [
            self._batch(texts[i : i + _ENCODING_BATCH_SIZE])
            for i in range(0, len(texts), _ENCODING_BATCH_SIZE)
        ]
        return torch.cat(parts)

    def _batch(self, texts: list[str]) -> Any:
        cut = {"truncation": True, "max_length": self.longest} if self.longest else {}
        tokens = self.tokenizer(texts, padding=True, return_tensors="pt", **cut).to(self.device)
        states = self.model(**tokens).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(dim=1) / mask.sum(dim=1)


def _count_truncated(tokenizer: Any, texts: Sequence[str], longest: int | None) -> int:
    if tokenizer is None or longest is None or not texts:
        return 0
    # Without its own warning that a text is long: that is what is counted here.
    found = tokenizer(list(texts), truncation=False, padding=False, verbose=False)["input_ids"]
    return sum(len(tokens) > longest for tokens in found)


def encoder_of(encoder: Any, *, random: bool = False) -> Encoder:
    """Convert an object to an encoder.

    Args:
        encoder: a SentenceTransformer, a pair (model, tokenizer) or a triple with "mean" or "cls",
            a torch module, any function of a list of texts (an object with a method `encode` and
            no call is taken by that), or a dictionary from texts to vectors.
        random: whether a module may be in train mode.

    Raises:
        TypeError: if it is none of these.
        ValueError: if a module is in train mode, or holds a batch norm that mixes texts.
    """
    found = _make_encoder(encoder)
    if isinstance(found, Sentences):
        # Its `encode` does the same, whatever mode it is in.
        found.model.eval()
    for module in found.modules:
        refuse_mixing(module, "encoder")
        if not random and module.training:
            requirement = "in eval mode (encoder.eval()): dropout is no noise that a claim rests on"
            raise invalid("encoder", requirement, f"{type(module).__qualname__} in train mode")
    return found


def _make_encoder(encoder: Any) -> Encoder:
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, (tuple, list)):
        if len(encoder) not in (2, 3) or not isinstance(encoder[0], torch.nn.Module):
            raise mistyped("encoder", _ENCODER_KINDS, encoder)
        return Pooled(*encoder)
    if isinstance(encoder, dict):
        return Lookup(encoder)
    if isinstance(encoder, type) or encoder is None or isinstance(encoder, str):
        raise mistyped("encoder", _ENCODER_KINDS, encoder)
    kind = getattr(imported_module("sentence_transformers"), "SentenceTransformer", None)
    if kind is not None and isinstance(encoder, kind):
        return Sentences(encoder)
    if isinstance(encoder, torch.nn.Module):
        if hasattr(encoder, "config") and hasattr(encoder, "base_model_prefix"):
            raise mistyped("encoder", "the pair (model, tokenizer) for a transformer", encoder)
        return Module(encoder)
    if callable(encoder):
        return Encoder(encoder)
    if callable(getattr(encoder, "encode", None)):
        return Encoder(encoder.encode)
    raise mistyped("encoder", _ENCODER_KINDS, encoder)
