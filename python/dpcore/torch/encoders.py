"""Wrappers that turn any text encoder into a function from a list of texts to a tensor.

The module also checks whether the vector of a text depends on the other texts in the batch, and
whether two calls with the same texts return different vectors.
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
    as_texts,
    choose_by_length,
    compare_batches,
    is_hf_feature_extraction_pipeline,
    look_up_vectors,
    relative_gaps,
    relative_tolerance,
)
from ..packages import attribute_if_imported, has_all, torch
from ..records import get_attribute
from ..report.shown import Shown, qualname_of
from ..streams import Generators, seed_and_hide_warnings
from ..suggestions import explain_argument_errors
from .module_calls import eval_mode
from .transforms import zeroed_rows

_ENCODING_BATCH_SIZE: Final = 32
_ENCODER_KINDS: Final = (
    "a SentenceTransformer, a pair (model, tokenizer), a torch module of a list of texts, a "
    "function of a list of texts or of one text, or a dictionary from texts to vectors"
)

_PROBE_CALLS: Final = 8
_COPIES_PER_CALL: Final = 8
"""Number of calls in a test for randomness, and number of copies of the text in each call."""
_MAX_CALL_CHARACTERS: Final = 2**17
"""Largest number of characters in a call; a long text is copied less often."""
_MISS_PROBABILITY: Final = 0.05
"""Probability that the test sees no difference, for the frequency that the report states."""


class ModelAttributes:
    """Optional attributes of a text encoder (model) or its tokenizer that dpcore reads.

    In this class, each attribute has the default that dpcore uses if an encoder lacks the
    attribute.

    Attributes:
        random: True if the encoder returns different vectors in two calls with the same texts.
        longest: largest number of tokens that the model reads from a text.
        truncated: function from a list of texts to the number of texts that the model truncates
            because they are too long.
        tokenizer: tokenizer of a model from the package sentence-transformers.
        max_seq_length: largest number of tokens that a model from sentence-transformers reads from
            a text.
        config: settings of a model from the package transformers.
        max_position_embeddings: largest number of tokens that the settings `config` allow.
        model_max_length: largest number of tokens that a tokenizer from transformers allows.
    """

    random = False
    longest = truncated = tokenizer = max_seq_length = None
    config = max_position_embeddings = model_max_length = None


class Encoder:
    """Base class of text encoders: functions from a list of texts to a tensor of vectors.

    Args:
        model: text encoder of the user, such as a function or a torch module.
    """

    inside: Any = None
    """Encoder before a transform, if there is one."""
    transform: Any = None
    tokenizer: Any = None
    _longest_name = "longest"
    """Name of the attribute of the model with the largest number of tokens that it reads."""

    def __init__(self, model: Any) -> None:
        self.model, self._function = model, TextFunction(model)
        self.width: int | None = None
        self.dtype: Any = None
        self.array_dtype = torch.float64
        """Dtype to which integers, and lists or arrays of wider floats, are converted. Tensors of
        floats keep their dtype."""

    @property
    def kind(self) -> str:
        """Type of this encoder in saved files: "module" for a torch module, or "function"."""
        return "module" if isinstance(self.model, torch.nn.Module) else "function"

    @property
    def zeroed(self) -> int:
        """Number of vectors that the transform has replaced by zeros until now.

        A transform maps every vector into a bounded set.
        """
        return zeroed_rows(self.transform)

    @property
    def modules(self) -> list[Any]:
        """List with the torch module of this encoder; the list is empty for a plain function."""
        if is_hf_feature_extraction_pipeline(self.model):
            return [self.model.model]
        return [self.model] if isinstance(self.model, torch.nn.Module) else []

    @property
    def random(self) -> bool:
        """True if the user declares that the vectors of this encoder are random.

        The declaration is an attribute ``random = True`` of the model.
        """
        return get_attribute(ModelAttributes, self.model, "random") is True

    @property
    def name(self) -> str:
        """Name of this text encoder in reports."""
        return qualname_of(self.model).replace("<locals>.", "")

    @property
    def device(self) -> Any:
        """Torch device of the first parameter of this encoder; the CPU if it has no parameters."""
        held = (tensor for module in self.modules for tensor in module.parameters())
        first = next(held, None)
        return torch.device("cpu") if first is None else first.device

    def with_added_transform(self, transform: Any) -> Encoder:
        """Return a copy of this encoder that also applies `transform` to each vector."""
        changed = copy.copy(self)
        changed.inside, changed.transform = self, transform
        return changed

    def to(self, device: Any) -> None:
        """Move the torch modules of this encoder to a torch device."""
        for module in self.modules:
            module.to(device)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many of the texts this encoder truncates, or 0 if the number is unknown."""
        count = get_attribute(ModelAttributes, self.model, "truncated")
        if callable(count):
            return int(count(texts))
        if self.tokenizer is None or self.longest is None or not texts:
            return 0
        # Suppress the tokenizer's own warning about long texts, because they are counted here.
        encoded = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return sum(len(tokens) > self.longest for tokens in encoded["input_ids"])

    @property
    def longest(self) -> int | None:
        """Largest number of tokens that this encoder reads from a text, or None if unknown."""
        limit = get_attribute(ModelAttributes, self.model, self._longest_name)
        return limit if isinstance(limit, int) else None

    def __call__(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts.

        Args:
            texts: strings, at least one, which the caller has checked.

        Returns:
            A detached tensor of floats, shape `(len(texts), width)`.

        Raises:
            TypeError: if the encoder returns objects other than real numbers.
            ValueError: if the encoder does not return one vector for each text, if the vectors have
                another length than in earlier calls, or if a number is NaN or infinite.
        """
        with torch.no_grad():
            if self.inside is not None:
                rows = self.transform(self.inside(texts))
                self.dtype = rows.dtype
                return rows
            encoded = self._float_tensor_from(self._encode(list(texts)))
        shape = tuple(encoded.shape)
        if len(shape) != 2 or shape[0] != len(texts):
            requirement = f"of shape ({len(texts)}, width), one row a text"
            raise invalid(self._vectors_of_encoder, requirement, shape)
        if shape[1] == 0:
            raise invalid(self._vectors_of_encoder, "at least one number wide", shape)
        if self.width not in (None, shape[1]):
            raise invalid(self._vectors_of_encoder, f"of width {self.width} in every call", shape)
        wrong = torch.nonzero(~torch.isfinite(encoded).all(dim=1)).flatten().tolist()
        if wrong:
            requirement = f"finite for every text, such as {texts[wrong[0]][:60]!r}"
            raise invalid(self._vectors_of_encoder, requirement, encoded[wrong[0]].tolist()[:4])
        self.width, self.dtype = int(shape[1]), encoded.dtype
        return encoded

    @property
    def _vectors_of_encoder(self) -> str:
        return f"vectors of {self.name}"

    def _encode(self, texts: list[str]) -> Any:
        return self._function(texts)

    def _float_tensor_from(self, answer: Any) -> Any:
        """Convert the output of the encoder to a tensor of floats without gradients."""
        if isinstance(answer, dict) or has_all(answer, "last_hidden_state"):
            requirement = "one tensor (of a transformer pass the pair (model, tokenizer))"
            raise mistyped(self._vectors_of_encoder, requirement, answer)
        if not isinstance(answer, torch.Tensor):
            if isinstance(answer, tuple):
                raise mistyped(self._vectors_of_encoder, "one tensor or array, no tuple", answer)
            if isinstance(answer, list) and len({np.shape(row) for row in answer}) > 1:
                shapes = [np.shape(row) for row in answer[:4]]
                raise invalid(self._vectors_of_encoder, "of one width for all texts", shapes)
            if isinstance(answer, list) and answer and isinstance(answer[0], torch.Tensor):
                answer = torch.stack(answer)
            else:
                array = np.asarray(answer)
                if array.dtype.kind not in "fiu":
                    raise mistyped(self._vectors_of_encoder, "real numbers", array.dtype)
                wide = array.dtype.kind != "f" or array.itemsize > self.array_dtype.itemsize
                answer = torch.from_numpy(np.array(array, np.float64 if wide else None))
                answer = answer.to(self.array_dtype) if wide else answer
        if answer.is_complex() or answer.dtype == torch.bool:
            raise mistyped(self._vectors_of_encoder, "real numbers", answer.dtype)
        tensor = answer.detach()
        # Integers, such as counts of words, cannot hold noise.
        return tensor if tensor.is_floating_point() else tensor.to(self.array_dtype)


class Lookup(Encoder):
    """Text encoder that looks up the vectors of texts in a dictionary."""

    kind = "dictionary"

    def _encode(self, texts: list[str]) -> Any:
        return look_up_vectors(self.model, texts)


class Sentences(Encoder):
    """Text encoder that uses a model from the package sentence-transformers."""

    kind = "sentence-transformers"
    _longest_name = "max_seq_length"

    def __init__(self, model: Any) -> None:
        super().__init__(model)
        self.tokenizer = get_attribute(ModelAttributes, model, "tokenizer")

    def _encode(self, texts: list[str]) -> Any:
        return self.model.encode(
            texts, convert_to_tensor=True, show_progress_bar=False, batch_size=_ENCODING_BATCH_SIZE
        )


@explain_argument_errors
class Pooled(Encoder):
    """Text encoder made of a transformer and a tokenizer.

    The transformer returns one vector for each token. The encoder combines these vectors into one
    vector for each text.

    Args:
        model: a model from the package transformers with an output `last_hidden_state`.
        tokenizer: the tokenizer of the model.
        pooling: "mean" for the mean of all token vectors (without padding), or "cls" for the vector
            of the first token.

    Raises:
        TypeError: if `model` is not a torch module, or `tokenizer` cannot be called.
        ValueError: if `pooling` is neither "mean" nor "cls".
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
        """Name of this text encoder in reports."""
        return f"{type(self.model).__qualname__} ({self.pooling} pooling)"

    @property
    def longest(self) -> int | None:
        """Largest number of tokens allowed by both model and tokenizer, or None if unknown."""
        config = get_attribute(ModelAttributes, self.model, "config")
        limits = (
            get_attribute(ModelAttributes, self.tokenizer, "model_max_length"),
            get_attribute(ModelAttributes, config, "max_position_embeddings"),
        )
        # Tokenizers without a limit report 10^30.
        lengths = [length for length in limits if isinstance(length, int) and 0 < length < 2**24]
        return min(lengths, default=None)

    def _encode(self, texts: list[str]) -> Any:
        size = _ENCODING_BATCH_SIZE
        return torch.cat([self._embed(texts[i : i + size]) for i in range(0, len(texts), size)])

    def _embed(self, texts: list[str]) -> Any:
        cut = {"truncation": True, "max_length": self.longest} if self.longest else {}
        tokens = self.tokenizer(texts, padding=True, return_tensors="pt", **cut).to(self.device)
        states = self.model(**tokens).last_hidden_state
        if self.pooling == "cls":
            return states[:, 0]
        mask = tokens["attention_mask"].unsqueeze(-1).to(states.dtype)
        return (states * mask).sum(dim=1) / mask.sum(dim=1)


def encoder_of(encoder: Any, *, random: bool = False) -> Encoder:
    """Convert a text encoder of the user to an `Encoder` of dpcore.

    Args:
        encoder: one of these:

            - a SentenceTransformer;
            - a pair (model, tokenizer) from the package transformers, or a triple (model,
              tokenizer, "mean" or "cls");
            - a torch module, or any other function of a list of texts;
            - an object with a method `encode`, if the object cannot be called;
            - a dictionary from texts to vectors.
        random: True to accept a torch module in train mode. The vectors of such a module may be
            random.

    Raises:
        TypeError: if `encoder` is none of these objects.
        ValueError: if a module contains a batch norm that mixes the texts of a batch. Also if a
            module is in train mode although `random` is False.
    """
    wrapped = _wrap_as_encoder(encoder)
    if isinstance(wrapped, Sentences):
        # Its `encode` switches to eval mode itself, so eval mode changes no result.
        wrapped.model.eval()
    for module in wrapped.modules:
        refuse_mixing(module, "encoder")
        if not random and module.training:
            requirement = "in eval mode (encoder.eval()): dropout is no noise that a claim rests on"
            raise invalid("encoder", requirement, f"{type(module).__qualname__} in train mode")
    return wrapped


def _wrap_as_encoder(encoder: Any) -> Encoder:
    if isinstance(encoder, Encoder):
        return encoder
    if isinstance(encoder, dict):
        return Lookup(encoder)
    kind = attribute_if_imported("sentence_transformers", "SentenceTransformer")
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
    """Result of a test of whether a text encoder is random.

    In the test, the encoder encodes copies of one text in several calls.

    Args:
        is_random: True if two encodings of the text differ, if a call draws random numbers, or if
            the model has the attribute `random = True`.
        is_seen: True if two encodings of the text differ.
        calls: number of calls.
        rows: total number of encodings of the text in all calls.
        mean: mean of all encodings of the text, float64, shape `(width,)`.
    """

    is_random: bool
    is_seen: bool
    calls: int
    rows: int
    mean: Any

    def __str__(self) -> str:
        """Return a line for a report: how frequent differences may be that the test did not see."""
        counts = self.rows, self.calls
        row, call = (100.0 * (1.0 - _MISS_PROBABILITY ** (1.0 / count)) for count in counts)
        return (
            f"{self.rows} encodings of a text in {self.calls} calls agreed: what happens in less "
            f"than {row:.2g} % of rows, or {call:.2g} % of calls, may have been missed"
        )


def probe_randomness(encoder: Encoder, text: str, rounding: float | None) -> Randomness:
    """Test whether a text encoder is random: encode copies of one text in several calls.

    The function also observes whether the encoder draws from a random generator of this process,
    such as a generator of Python, numpy or torch. On a GPU, two encodings of one text may differ by
    rounding. Such small differences do not count.

    Args:
        encoder: the encoder.
        text: the text to encode.
        rounding: largest distance between two encodings of one text that counts as rounding,
            relative to the norm of the encodings. None means 1e-5, or .05 for bfloat16 and float16.
    """
    generators = Generators.collect_from_memory()
    copies = max(1, min(_COPIES_PER_CALL, _MAX_CALL_CHARACTERS // len(text)))
    encodings, moved = [], False
    for number in range(_PROBE_CALLS):
        # Seeds depend on the text; with equal seeds, means over atoms would be equal for two texts.
        with seed_and_hide_warnings(number, zlib.crc32(text.encode(errors="replace"))):
            rows, drew = generators.moved_by(lambda: encoder([text] * copies))
        moved |= drew
        encodings.append(rows.double().cpu())
    limit = relative_tolerance(rounding, str(encoder.dtype))
    on_device = encoder.device.type != "cpu"
    is_seen = any(
        _rows_differ(encodings[0], rows, limit if on_device else 0.0) for rows in encodings[1:]
    )
    # Rows of one batch may differ in their last bits.
    is_seen = is_seen or _rows_differ(encodings[0][:1].expand_as(encodings[0]), encodings[0], limit)
    mean, is_random = torch.cat(encodings).mean(dim=0), encoder.random or moved or is_seen
    return Randomness(is_random, is_seen, _PROBE_CALLS, _PROBE_CALLS * copies, mean)


def _rows_differ(rows: Any, others: Any, relative_limit: float) -> bool:
    if relative_limit == 0.0:
        return not torch.equal(rows, others)
    return bool((relative_gaps(rows.numpy(), others.numpy()) > relative_limit).any())


def probe_texts(encoder: Encoder, probe: Any) -> list[str]:
    """Return the texts with which dpcore tests a text encoder.

    Args:
        encoder: the encoder.
        probe: texts, or a dictionary with texts as keys. If the encoder is a dictionary, the
            default is the keys of the encoder. Otherwise the default is built-in texts.

    Raises:
        TypeError: if `probe` is not a list of texts.
        ValueError: if `probe` contains fewer than two different texts.
    """
    if probe is None:
        probe = encoder.model if isinstance(encoder, Lookup) else PROBE_TEXTS
    texts = choose_by_length(as_texts("probe", list(probe) if isinstance(probe, dict) else probe))
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
    """Check that the vector of a text does not depend on the other texts in a batch.

    If the encoder is a torch module, it is checked in eval mode. Afterwards, the function restores
    the states of the global random generators.

    Args:
        encoder: the text encoder to check.
        texts: distinct texts for the check.
        rounding: largest distance between two encodings of one text that counts as rounding,
            relative to the norm of the encodings. None means 1e-5, or .05 for bfloat16 and float16.
        refuse_state: True to raise an error if two calls with the same texts return different
            vectors although the encoder uses no random generator. For an encoder with an attribute
            ``random = True``, the function never raises this error.
        is_known: True if the caller already knows that the encoder is not random.

    Returns:
        The result of the check. If the encoder is random in eval mode, its vectors cannot be
        compared, and the result states this reason.

    Raises:
        ValueError: if the vector of a text depends on the other texts in the batch.
    """

    def limit() -> float:
        return relative_tolerance(rounding, str(encoder.dtype))

    encode = partial(_encode_probe_with_error_note, encoder)
    with ExitStack() as stack:
        for module in encoder.modules:
            stack.enter_context(eval_mode(module))
        if is_known:
            with seed_and_hide_warnings(0):
                return compare_batches(encode, texts, limit())
        random = f"the encoder is random{' in eval mode, too' if encoder.modules else ''}"
        reason = random if encoder.random else ""
        check = batches.check_batches(
            encode, texts, limit, random=reason, refuse_state=refuse_state
        )
        return replace(check, reason=random) if check.reason == "the encoder is random" else check


def tensor_to_array(tensor: Any) -> npt.NDArray[np.float64]:
    """Return a tensor as a numpy array of float64."""
    array: npt.NDArray[np.float64] = tensor.double().cpu().numpy()
    return array


def _encode_probe_with_error_note(encoder: Encoder, texts: list[str]) -> npt.NDArray[np.float64]:
    """Encode texts of a test; if the encoder fails, add a note on these texts to the error."""
    try:
        return tensor_to_array(encoder(texts))
    except Exception as error:
        note = f"dpcore tried the encoder with {len(texts)} texts, such as {texts[0]!r:.60}: probe="
        error.add_note(f"{note} gives others")
        raise


def check_rowwise_mapping(encoder: Encoder, transform: Any, texts: Sequence[str]) -> None:
    """Check that a transform computes each row of a batch without using the other rows.

    Args:
        encoder: encoder whose vectors of `texts` are the rows.
        transform: the user's torch module. It takes rows and returns rows.
        texts: distinct texts.

    Raises:
        ValueError: if a transformed row depends on the other rows of the batch.
    """
    with torch.no_grad(), seed_and_hide_warnings(0):
        rows_of_texts = dict(zip(texts, encoder(list(texts)), strict=True))

        def encode(some: list[str]) -> npt.NDArray[np.float64]:
            return tensor_to_array(transform(torch.stack([rows_of_texts[text] for text in some])))

        compare_batches(encode, texts, relative_tolerance(None, str(encoder.dtype)), "transform")


def state_digest(modules: Iterable[Any]) -> str:
    """Return a SHA-256 digest of the state of torch modules: parameters, buffers and mode.

    The mode is train or eval. If the digest differs from an earlier digest, a module has changed.

    Args:
        modules: torch modules. For an empty list, the digest is a constant.
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
