"""Text encoders of any kind as one function from a list of texts to a tensor, with checks.

The checks show if other texts of a batch change a vector, and if two equal calls differ.
"""

from __future__ import annotations

import copy
import hashlib
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..adapters.torch import refuse_mixing
from ..errors import choice, invalid, mistyped
from ..mechanisms import texts as batches
from ..mechanisms.texts import (
    PROBE_TEXTS,
    BatchCheck,
    TextFunction,
    choose_by_length,
    compare_batches,
    is_pipeline,
    look_up,
    relative_distances,
    rounding_of,
    texts_of,
)
from ..packages import has_all, imported_attribute, torch
from ..records import attribute_of
from ..report.shown import Shown, qualified_name
from ..streams import Generators, quiet_seed
from ..suggestions import suggest_arguments
from .module_calls import eval_mode
from .transforms import count_zeroed

_ENCODING_BATCH_SIZE: Final = 32
_ENCODER_KINDS: Final = (
    "a SentenceTransformer, a pair (model, tokenizer), a torch module of a list of texts, a "
    "function of a list of texts or of one text, or a dictionary from texts to vectors"
)

_PROBE_CALLS: Final = 8
_COPIES_PER_CALL: Final = 8
"""Number of calls, and of copies per call, on which a deterministic encoder must agree."""
_MAX_CALL_CHARACTERS: Final = 2**17
"""Largest number of characters of a call; longer texts are copied less often."""
_MISS_PROBABILITY: Final = 0.05
"""Probability that an event with the stated frequency would have been missed."""


class ModelAttributes:
    """Optional attributes of a model, with their default values.

    Attributes:
        random: True if two calls differ.
        longest: largest number of tokens that it reads from a text.
        truncated: `(texts)` -> number of texts that are longer.
        tokenizer: tokenizer of a model of sentence-transformers.
        max_seq_length: largest number of tokens that such a model reads.
        config: settings of a model of transformers.
        max_position_embeddings: largest number of tokens that these settings allow.
        model_max_length: largest number of tokens that a tokenizer of transformers allows.
    """

    random = False
    longest = truncated = tokenizer = max_seq_length = None
    config = max_position_embeddings = model_max_length = None


class Encoder:
    """An encoder from texts to vectors: the common part of all kinds of encoders.

    Args:
        model: object that the user passed.
    """

    inside: Any = None
    """Encoder before a transform, if there is one."""
    transform: Any = None
    tokenizer: Any = None
    _longest_name = "longest"
    """Name of the model's attribute with the largest number of tokens that it reads."""

    def __init__(self, model: Any) -> None:
        self.model, self._function = model, TextFunction(model)
        self.width: int | None = None
        self.dtype: Any = None
        self.array_dtype = torch.float64
        """Dtype for integers, lists and wider arrays; tensors of floats keep their dtype."""

    @property
    def kind(self) -> str:
        """Kind of encoder in saved files: "module" (called with a list of texts) or "function"."""
        return "module" if isinstance(self.model, torch.nn.Module) else "function"

    @property
    def zeroed(self) -> int:
        """Number of rows that the transform has replaced by zeros so far."""
        return count_zeroed(self.transform)

    @property
    def modules(self) -> list[Any]:
        """Torch modules that encode: the model, or the model of a pipeline; empty for functions."""
        if is_pipeline(self.model):
            return [self.model.model]
        return [self.model] if isinstance(self.model, torch.nn.Module) else []

    @property
    def random(self) -> bool:
        """True if the model has an attribute `random` that states that two calls differ."""
        return attribute_of(ModelAttributes, self.model, "random") is True

    @property
    def name(self) -> str:
        """Name of the encoder in reports."""
        return qualified_name(self.model).replace("<locals>.", "")

    @property
    def device(self) -> Any:
        """Device on which it encodes."""
        held = (tensor for module in self.modules for tensor in module.parameters())
        first = next(held, None)
        return torch.device("cpu") if first is None else first.device

    def with_transform(self, transform: Any) -> Encoder:
        """Return a copy of this encoder that is followed by a transform."""
        changed = copy.copy(self)
        changed.inside, changed.transform = self, transform
        return changed

    def to(self, device: Any) -> None:
        """Move the modules to a device."""
        for module in self.modules:
            module.to(device)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the encoder reads; 0 if this is not known."""
        count = attribute_of(ModelAttributes, self.model, "truncated")
        if callable(count):
            return int(count(texts))
        if self.tokenizer is None or self.longest is None or not texts:
            return 0
        # Suppress the tokenizer's own warning about long texts, because they are counted here.
        encoded = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return sum(len(tokens) > self.longest for tokens in encoded["input_ids"])

    @property
    def longest(self) -> int | None:
        """Largest number of tokens that it reads from a text, or None if no attribute states it."""
        limit = attribute_of(ModelAttributes, self.model, self._longest_name)
        return limit if isinstance(limit, int) else None

    def __call__(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts.

        Args:
            texts: checked strings, at least one.

        Returns:
            A detached tensor of floats, shape `(len(texts), width)`.

        Raises:
            TypeError: if the encoder returns objects other than real numbers.
            ValueError: if the number of rows is wrong, if the width differs from earlier calls, or
                if a number is NaN or infinite.
        """
        with torch.no_grad():
            if self.inside is not None:
                rows = self.transform(self.inside(texts))
                self.dtype = rows.dtype
                return rows
            encoded = self._floats(self._encode(list(texts)))
        shape = tuple(encoded.shape)
        if len(shape) != 2 or shape[0] != len(texts):
            requirement = f"of shape ({len(texts)}, width), one row a text"
            raise invalid(self._vectors, requirement, shape)
        if shape[1] == 0:
            raise invalid(self._vectors, "at least one number wide", shape)
        if self.width not in (None, shape[1]):
            raise invalid(self._vectors, f"of width {self.width} in every call", shape)
        wrong = torch.nonzero(~torch.isfinite(encoded).all(dim=1)).flatten().tolist()
        if wrong:
            requirement = f"finite for every text, such as {texts[wrong[0]][:60]!r}"
            raise invalid(self._vectors, requirement, encoded[wrong[0]].tolist()[:4])
        self.width, self.dtype = int(shape[1]), encoded.dtype
        return encoded

    @property
    def _vectors(self) -> str:
        return f"vectors of {self.name}"

    def _encode(self, texts: list[str]) -> Any:
        return self._function(texts)

    def _floats(self, answer: Any) -> Any:
        """Convert the answer to a tensor of floating point numbers, detached from its graph."""
        if isinstance(answer, dict) or has_all(answer, "last_hidden_state"):
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
        tensor = answer.detach()
        # Integers, such as counts of words, cannot hold noise.
        return tensor if tensor.is_floating_point() else tensor.to(self.array_dtype)


class Lookup(Encoder):
    """A dictionary from texts to vectors that were computed before."""

    kind = "dictionary"

    def _encode(self, texts: list[str]) -> Any:
        return look_up(self.model, texts)


class Sentences(Encoder):
    """A model of the package sentence-transformers."""

    kind = "sentence-transformers"
    _longest_name = "max_seq_length"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.tokenizer = attribute_of(ModelAttributes, model, "tokenizer")

    def _encode(self, texts: list[str]) -> Any:
        return self.model.encode(
            texts, convert_to_tensor=True, show_progress_bar=False, batch_size=_ENCODING_BATCH_SIZE
        )


@suggest_arguments
class Pooled(Encoder):
    """A transformer with its tokenizer; pooling reduces the token vectors to one vector.

    Args:
        model: a transformers model with an output `last_hidden_state`.
        tokenizer: the tokenizer of the model.
        pooling: "mean" over the tokens that are not padding, or "cls" for the first token.

    Raises:
        TypeError: if `model` is not a torch module, or `tokenizer` cannot be called.
        ValueError: if `pooling` is not one of the two.
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
        """Largest number of tokens that both the model and the tokenizer allow."""
        config = attribute_of(ModelAttributes, self.model, "config")
        limits = (
            attribute_of(ModelAttributes, self.tokenizer, "model_max_length"),
            attribute_of(ModelAttributes, config, "max_position_embeddings"),
        )
        # Tokenizers without a limit report 10^30.
        lengths = [length for length in limits if isinstance(length, int) and 0 < length < 2**24]
        return min(lengths, default=None)

    def _encode(self, texts: list[str]) -> Any:
        size = _ENCODING_BATCH_SIZE
        return torch.cat([self._batch(texts[i : i + size]) for i in range(0, len(texts), size)])

    def _batch(self, texts: list[str]) -> Any:
        cut = {"truncation": True, "max_length": self.longest} if self.longest else {}
        tokens = self.tokenizer(texts, padding=True, return_tensors="pt", **cut).to(self.device)
        states = self.model(**tokens).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(dim=1) / mask.sum(dim=1)


def encoder_of(encoder: Any, *, random: bool = False) -> Encoder:
    """Convert an object to an encoder.

    Args:
        encoder: a SentenceTransformer; a pair (model, tokenizer), or a triple with "mean" or "cls";
            a torch module; any function of a list of texts, or an object with a method `encode`
            that cannot be called itself; or a dictionary from texts to vectors.
        random: True if a module may be in train mode.

    Raises:
        TypeError: if the object is not one of these.
        ValueError: if a module is in train mode, or contains a batch norm that mixes texts.
    """
    wrapped = _make_encoder(encoder)
    if isinstance(wrapped, Sentences):
        # Its `encode` switches to eval mode itself, so eval mode changes no result.
        wrapped.model.eval()
    for module in wrapped.modules:
        refuse_mixing(module, "encoder")
        if not random and module.training:
            requirement = "in eval mode (encoder.eval()): dropout is no noise that a claim rests on"
            raise invalid("encoder", requirement, f"{type(module).__qualname__} in train mode")
    return wrapped


def _make_encoder(encoder: Any) -> Encoder:
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, dict):
        return Lookup(encoder)
    kind = imported_attribute("sentence_transformers", "SentenceTransformer")
    if kind is not None and isinstance(encoder, kind):
        return Sentences(encoder)
    if isinstance(encoder, torch.nn.Module) and has_all(encoder, "config", "base_model_prefix"):
        raise mistyped("encoder", "the pair (model, tokenizer) for a transformer", encoder)
    if isinstance(encoder, (tuple, list)):
        if len(encoder) in (2, 3) and isinstance(encoder[0], torch.nn.Module):
            return Pooled(*encoder)
    elif not isinstance(encoder, type):
        if callable(encoder):
            return Encoder(encoder)
        if has_all(encoder, "encode") and callable(encoder.encode) and not isinstance(encoder, str):
            return Encoder(encoder.encode)
    raise mistyped("encoder", _ENCODER_KINDS, encoder)


@dataclass(frozen=True, eq=False, repr=False)
class Randomness(Shown):
    """Results of equal calls of an encoder with one text.

    Args:
        is_random: True if two encodings differ, or a call draws random numbers.
        is_seen: True if two encodings differ.
        calls: number of calls.
        rows: number of encodings in all calls.
        mean: mean of the encodings, float64, shape `(width,)`.
    """

    is_random: bool
    is_seen: bool
    calls: int
    rows: int
    mean: Any

    def __str__(self) -> str:
        """Return one line for a report, with the frequency of events that may be missed."""
        counts = self.rows, self.calls
        row, call = (100.0 * (1.0 - _MISS_PROBABILITY ** (1.0 / count)) for count in counts)
        return (
            f"{self.rows} encodings of a text in {self.calls} calls agreed: what happens in less "
            f"than {row:.2g} % of rows, or {call:.2g} % of calls, may have been missed"
        )


def probe_randomness(encoder: Encoder, text: str, rounding: float | None) -> Randomness:
    """Encode copies of one text in several calls, and observe the random number generators.

    The observed generators are those of Python, numpy and torch, and all others that this process
    knows. On a device with an arbitrary order of sums (CUDA), encodings may differ by rounding.

    Args:
        encoder: the encoder.
        text: the text.
        rounding: largest distance that counts as rounding, see `rounding_of`.
    """
    generators = Generators.everywhere()
    copies = max(1, min(_COPIES_PER_CALL, _MAX_CALL_CHARACTERS // len(text)))
    encodings, moved = [], False
    for number in range(_PROBE_CALLS):
        # Seeds depend on the text; with equal seeds, means over atoms would be equal for two texts.
        with quiet_seed(number, zlib.crc32(text.encode(errors="replace"))):
            rows, drew = generators.moved_by(lambda: encoder([text] * copies))
        moved |= drew
        encodings.append(rows.double().cpu())
    limit = rounding_of(rounding, str(encoder.dtype))
    on_device = encoder.device.type != "cpu"
    is_seen = any(
        _rows_differ(encodings[0], rows, limit if on_device else 0.0) for rows in encodings[1:]
    )
    # Rows of one batch may differ in their last bits.
    is_seen = is_seen or _rows_differ(encodings[0][:1].expand_as(encodings[0]), encodings[0], limit)
    mean, is_random = torch.cat(encodings).mean(dim=0), encoder.random or moved or is_seen
    return Randomness(is_random, is_seen, _PROBE_CALLS, _PROBE_CALLS * copies, mean)


def _rows_differ(rows: Any, others: Any, limit: float) -> bool:
    if limit == 0.0:
        return not torch.equal(rows, others)
    return bool((relative_distances(rows.numpy(), others.numpy()) > limit).any())


def probe_texts(encoder: Encoder, probe: Any) -> list[str]:
    """Return the texts with which an encoder is tested.

    Args:
        encoder: the encoder.
        probe: texts, or a dictionary with texts as keys. Defaults to the built-in texts, or to the
            keys of an encoder that is a dictionary.

    Raises:
        TypeError: if `probe` is not a list of texts.
        ValueError: if it holds fewer than two different texts.
    """
    if probe is None:
        probe = encoder.model if isinstance(encoder, Lookup) else PROBE_TEXTS
    texts = choose_by_length(texts_of("probe", list(probe) if isinstance(probe, dict) else probe))
    if len(texts) < 2:
        raise invalid("probe", "at least two different texts", texts)
    return texts


def check_batches(
    encoder: Encoder,
    texts: Sequence[str],
    rounding: float | None,
    *,
    refuse_state: bool = False,
    is_known: bool = False,
) -> BatchCheck:
    """Check that other texts of a batch do not change the vectors of an encoder.

    Modules are checked in eval mode. The state of global generators is restored.

    Args:
        encoder: the encoder.
        texts: distinct texts.
        rounding: largest distance that counts as rounding, see `rounding_of`.
        refuse_state: True to refuse an encoder whose equal calls differ without any use of a
            generator, unless it declares an attribute ``random = True``.
        is_known: True if the encoder is known not to be random.

    Returns:
        The `BatchCheck`. For an encoder that is random in eval mode, it holds the reason for the
        missing comparison.

    Raises:
        ValueError: if the vectors change.
    """

    def limit() -> float:
        return rounding_of(rounding, str(encoder.dtype))

    encode = partial(_encode_known, encoder)
    with ExitStack() as stack:
        for module in encoder.modules:
            stack.enter_context(eval_mode(module))
        if is_known:
            with quiet_seed(0):
                return compare_batches(encode, texts, limit())
        random = f"the encoder is random{' in eval mode, too' if encoder.modules else ''}"
        reason = random if encoder.random else ""
        check = batches.check_batches(
            encode, texts, limit, random=reason, refuse_state=refuse_state
        )
        return replace(check, reason=random) if check.reason == "the encoder is random" else check


def tensor_to_array(tensor: Any) -> npt.NDArray[np.float64]:
    """Copy a tensor to the CPU and convert it to an array of float64."""
    array: npt.NDArray[np.float64] = tensor.double().cpu().numpy()
    return array


def _encode_known(encoder: Encoder, texts: list[str]) -> npt.NDArray[np.float64]:
    """Encode probe texts; add a note on these texts and on `probe=` to an error of the encoder."""
    try:
        return tensor_to_array(encoder(texts))
    except Exception as error:
        note = f"dpcore tried the encoder with {len(texts)} texts, such as {texts[0]!r:.60}: probe="
        error.add_note(f"{note} gives others")
        raise


def check_transform(encoder: Encoder, transform: Any, texts: Sequence[str]) -> None:
    """Check that a user's transform handles each row independently.

    Args:
        encoder: encoder that gives the rows.
        transform: module from rows to rows.
        texts: distinct texts.

    Raises:
        ValueError: if a row changes with the other rows.
    """
    with torch.no_grad(), quiet_seed(0):
        rows_of_texts = dict(zip(texts, encoder(list(texts)), strict=True))

        def encode(some: list[str]) -> npt.NDArray[np.float64]:
            return tensor_to_array(transform(torch.stack([rows_of_texts[text] for text in some])))

        compare_batches(encode, texts, rounding_of(None, str(encoder.dtype)), "transform")


def state_digest(modules: Iterable[Any]) -> str:
    """Return a SHA-256 digest of the parameters, buffers and modes of modules.

    torch's version counters would miss changes that are made through `.data`.

    Args:
        modules: torch modules. Without any module, the digest is a constant.
    """
    digest = hashlib.sha256()
    for module in modules:
        digest.update(repr([part.training for part in module.modules()]).encode())
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            held = tensor.detach()
            held = held.dequantize() if held.is_quantized else held
            held = held.to_dense() if held.layout is not torch.strided else held
            digest.update(f"{name} {held.dtype} {tuple(held.shape)}".encode())
            digest.update(held.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
