"""Encoders of texts, of any kind, as one function from a list of texts to a tensor; their checks.

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
"""Calls, and copies of the text in each, that a deterministic encoder must agree in."""
_MAX_CALL_CHARACTERS: Final = 2**17
"""Characters of a call; longer texts have fewer copies."""
_MISS_PROBABILITY: Final = 0.05
"""Probability with which an event at the stated bound would not have been seen."""


class ModelAttributes:
    """Attributes that a model may carry, each with its value for one that lacks it.

    Attributes:
        random: True if two calls differ.
        longest: number of tokens that it reads of a text.
        truncated: `(texts)` -> how many texts are longer.
        tokenizer: the tokenizer of a model of sentence-transformers.
        max_seq_length: the number of tokens that such a model reads.
        config: the settings of a model of transformers.
        max_position_embeddings: the number of tokens that these allow.
        model_max_length: the number of tokens that a tokenizer of transformers allows.
    """

    random = False
    longest = truncated = tokenizer = max_seq_length = None
    config = max_position_embeddings = model_max_length = None


class Encoder:
    """Texts to vectors: what all kinds of encoders have in common.

    Args:
        model: what the user handed over.
    """

    inside: Any = None
    """The encoder in front of a transform."""
    transform: Any = None
    tokenizer: Any = None
    _longest_name = "longest"
    """Name of the attribute of the model that says how many tokens it reads."""

    def __init__(self, model: Any) -> None:
        self.model, self._function = model, TextFunction(model)
        self.width: int | None = None
        self.dtype: Any = None
        self.array_dtype = torch.float64
        """Dtype that whole numbers, lists and wider arrays get; tensors of floats keep theirs."""

    @property
    def kind(self) -> str:
        """Kind of encoder, as saved: "module", called with a list of texts, or "function"."""
        return "module" if isinstance(self.model, torch.nn.Module) else "function"

    @property
    def zeroed(self) -> int:
        """Number of rows that the transform has made zeros so far."""
        return count_zeroed(self.transform)

    @property
    def modules(self) -> list[Any]:
        """The torch modules that encode: that of a pipeline, none of a plain function."""
        if is_pipeline(self.model):
            return [self.model.model]
        return [self.model] if isinstance(self.model, torch.nn.Module) else []

    @property
    def random(self) -> bool:
        """True if the model states, by an attribute `random`, that two calls differ."""
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
        """Return a copy of this encoder with a transform behind it."""
        changed = copy.copy(self)
        changed.inside, changed.transform = self, transform
        return changed

    def to(self, device: Any) -> None:
        """Move the modules."""
        for module in self.modules:
            module.to(device)

    def truncated(self, texts: Sequence[str]) -> int:
        """Return how many texts are longer than the encoder reads; 0 where that is not known."""
        count = attribute_of(ModelAttributes, self.model, "truncated")
        if callable(count):
            return int(count(texts))
        if self.tokenizer is None or self.longest is None or not texts:
            return 0
        # Without its own warning that a text is long: that is what is counted here.
        encoded = self.tokenizer(list(texts), truncation=False, padding=False, verbose=False)
        return sum(len(tokens) > self.longest for tokens in encoded["input_ids"])

    @property
    def longest(self) -> int | None:
        """Tokens that it reads of a text, if it says so (by an attribute, usually `longest`)."""
        limit = attribute_of(ModelAttributes, self.model, self._longest_name)
        return limit if isinstance(limit, int) else None

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
        # Whole numbers, such as counts of words, cannot hold noise.
        return tensor if tensor.is_floating_point() else tensor.to(self.array_dtype)


class Lookup(Encoder):
    """A dictionary from texts to vectors that were made elsewhere."""

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
    """A transformer with its tokenizer; the vectors of its tokens become one by pooling.

    Args:
        model: a transformers model whose output has `last_hidden_state`.
        tokenizer: its tokenizer.
        pooling: "mean" over the tokens that are not padding, or "cls", the first token.

    Raises:
        TypeError: if `model` is not a torch module, or `tokenizer` cannot be called.
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
        encoder: a SentenceTransformer, a pair (model, tokenizer) or a triple with "mean" or "cls",
            a torch module, any function of a list of texts (an object with a method `encode` and
            no call is taken by that), or a dictionary from texts to vectors.
        random: whether a module may be in train mode.

    Raises:
        TypeError: if it is none of these.
        ValueError: if a module is in train mode, or holds a batch norm that mixes texts.
    """
    wrapped = _make_encoder(encoder)
    if isinstance(wrapped, Sentences):
        # Its `encode` does the same, whatever mode it is in.
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
    """Findings from equal calls of an encoder with one text.

    Args:
        is_random: True if two encodings differ, or a call draws numbers.
        is_seen: True if two encodings differ.
        calls: number of calls.
        rows: encodings in all of them.
        mean: the mean of these, float64, shape `(width,)`.
    """

    is_random: bool
    is_seen: bool
    calls: int
    rows: int
    mean: Any

    def __str__(self) -> str:
        """Return one line for a report, with what may have been missed."""
        counts = self.rows, self.calls
        row, call = (100.0 * (1.0 - _MISS_PROBABILITY ** (1.0 / count)) for count in counts)
        return (
            f"{self.rows} encodings of a text in {self.calls} calls agreed: what happens in less "
            f"than {row:.2g} % of rows, or {call:.2g} % of calls, may have been missed"
        )


def probe_randomness(encoder: Encoder, text: str, rounding: float | None) -> Randomness:
    """Encode copies of one text in several calls, and watch the generators of random numbers.

    Watched are those of Python, numpy and torch, and all others that this process knows of. A
    device that adds up in any order (CUDA) may differ by rounding.

    Args:
        encoder: the encoder.
        text: the text.
        rounding: see `rounding_of`.
    """
    generators = Generators.everywhere()
    copies = max(1, min(_COPIES_PER_CALL, _MAX_CALL_CHARACTERS // len(text)))
    encodings, moved = [], False
    for number in range(_PROBE_CALLS):
        # Seeds of the text's own: with those of another text means of atoms would be equal.
        with quiet_seed(number, zlib.crc32(text.encode(errors="replace"))):
            rows, drew = generators.moved_by(lambda: encoder([text] * copies))
        moved |= drew
        encodings.append(rows.double().cpu())
    limit = rounding_of(rounding, str(encoder.dtype))
    on_device = encoder.device.type != "cpu"
    is_seen = any(
        _rows_differ(encodings[0], rows, limit if on_device else 0.0) for rows in encodings[1:]
    )
    # Places of one batch may differ in their last bits.
    is_seen = is_seen or _rows_differ(encodings[0][:1].expand_as(encodings[0]), encodings[0], limit)
    mean, is_random = torch.cat(encodings).mean(dim=0), encoder.random or moved or is_seen
    return Randomness(is_random, is_seen, _PROBE_CALLS, _PROBE_CALLS * copies, mean)


def _rows_differ(rows: Any, others: Any, limit: float) -> bool:
    if limit == 0.0:
        return not torch.equal(rows, others)
    return bool((relative_distances(rows.numpy(), others.numpy()) > limit).any())


def probe_texts(encoder: Encoder, probe: Any) -> list[str]:
    """Return the texts that an encoder is tried with.

    Args:
        encoder: the encoder.
        probe: texts, a dictionary whose keys are texts, or None for the built-in ones (of an
            encoder that is a dictionary its keys).

    Raises:
        TypeError: if `probe` is not a list of texts.
        ValueError: if it holds fewer than two different ones.
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

    Modules are checked in eval mode. Global generators are left as they were.

    Args:
        encoder: the encoder.
        texts: different texts.
        rounding: see `rounding_of`.
        refuse_state: refuse an encoder whose equal calls differ although no generator moved
            and it does not declare an attribute ``random = True``.
        is_known: the encoder is known not to be random.

    Returns:
        The `BatchCheck`; of an encoder that stays random in eval mode the reason why nothing was
        compared.

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
    """Encode probe texts; an error of the encoder says what they are and how to give others."""
    try:
        return tensor_to_array(encoder(texts))
    except Exception as error:
        note = f"dpcore tried the encoder with {len(texts)} texts, such as {texts[0]!r:.60}: probe="
        error.add_note(f"{note} gives others")
        raise


def check_transform(encoder: Encoder, transform: Any, texts: Sequence[str]) -> None:
    """Check that a transform of somebody's own treats each row by itself.

    Args:
        encoder: gives the rows.
        transform: a module from rows to rows.
        texts: different texts.

    Raises:
        ValueError: if a row changes with the others.
    """
    with torch.no_grad(), quiet_seed(0):
        rows_of_texts = dict(zip(texts, encoder(list(texts)), strict=True))

        def encode(some: list[str]) -> npt.NDArray[np.float64]:
            return tensor_to_array(transform(torch.stack([rows_of_texts[text] for text in some])))

        compare_batches(encode, texts, rounding_of(None, str(encoder.dtype)), "transform")


def state_digest(modules: Iterable[Any]) -> str:
    """Return a SHA-256 of parameters and buffers of modules, and of their modes.

    Version counters of torch would miss what is written through `.data`.

    Args:
        modules: torch modules; none give one constant.
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
