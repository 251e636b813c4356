"""Checks of an encoder: do other texts of a batch change a vector, and are two calls equal."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid
from ..mechanisms import texts as batches
from ..mechanisms.texts import (
    PROBE_TEXTS,
    BatchCheck,
    choose_by_length,
    compare_batches,
    relative_distances,
    rounding_of,
    texts_of,
)
from ..records import Shown
from ..streams.generators import Generators, quiet_seed
from .encoding import Encoder, Lookup
from .needed import torch
from .sources.recording import eval_mode

__all__ = [
    "Randomness",
    "check_batches",
    "check_transform",
    "probe_randomness",
    "probe_texts",
    "state_digest",
]  # fmt: skip

_PROBE_CALLS: Final = 8
_COPIES_PER_CALL: Final = 8
"""Calls, and copies of the text in each, that a deterministic encoder must agree in."""
_MAX_CALL_CHARACTERS: Final = 2**17
"""Characters of a call; longer texts have fewer copies."""
_MISS_PROBABILITY: Final = 0.05
"""Probability with which an event at the stated bound would not have been seen."""


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
        row, call = (
            100.0 * (1.0 - _MISS_PROBABILITY ** (1.0 / n)) for n in (self.rows, self.calls)
        )
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
    found, moved = [], False
    for number in range(_PROBE_CALLS):
        # Seeds of the text's own: with those of another text means of atoms would be equal.
        with quiet_seed(number, zlib.crc32(text.encode(errors="replace"))):
            rows, drew = generators.moved_by(lambda: encoder([text] * copies))
        moved |= drew
        found.append(rows.double().cpu())
    limit = rounding_of(rounding, str(encoder.dtype))
    on_device = encoder.device.type != "cpu"
    seen = any(_rows_differ(found[0], rows, limit if on_device else 0.0) for rows in found[1:])
    # Places of one batch may differ in their last bits.
    seen = seen or _rows_differ(found[0][:1].expand_as(found[0]), found[0], limit)
    mean = torch.cat(found).mean(dim=0)
    return Randomness(
        encoder.random or moved or seen, seen, _PROBE_CALLS, _PROBE_CALLS * copies, mean
    )


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
        TypeError: if `probe` is no list of texts.
        ValueError: if it holds fewer than two different ones.
    """
    if probe is None:
        probe = encoder.model if isinstance(encoder, Lookup) else PROBE_TEXTS
    found = choose_by_length(texts_of("probe", list(probe) if isinstance(probe, dict) else probe))
    if len(found) < 2:
        raise invalid("probe", "at least two different texts", found)
    return found


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
        refuse_state: refuse an encoder of which two equal calls differ although no generator moved
            and it does not declare an attribute ``random = True``.
        is_known: the encoder is known not to be random.

    Returns:
        The `BatchCheck`; of an encoder that stays random in eval mode the reason why nothing was
        compared.

    Raises:
        ValueError: if the vectors change.
    """
    with ExitStack() as stack:
        for module in encoder.modules:
            stack.enter_context(eval_mode(module))

        def encode(some: list[str]) -> npt.NDArray[np.float64]:
            return _encode_known(encoder, some)

        def limit() -> float:
            return rounding_of(rounding, str(encoder.dtype))

        if is_known:
            with quiet_seed(0):
                return compare_batches(encode, texts, limit())
        mode = " in eval mode, too" if encoder.modules else ""
        random = f"the encoder is random{mode}"
        found = batches.check_batches(
            encode, texts, limit, random=random if encoder.random else "", refuse_state=refuse_state
        )
        return replace(found, reason=random) if found.reason == "the encoder is random" else found


def _tensor_to_array(tensor: Any) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = tensor.double().cpu().numpy()
    return found


def _encode_known(encoder: Encoder, texts: list[str]) -> npt.NDArray[np.float64]:
    """Encode probe texts; an error of the encoder says what they are and how to give others."""
    try:
        return _tensor_to_array(encoder(texts))
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
        known = dict(zip(texts, encoder(list(texts)), strict=True))

        def encode(some: list[str]) -> npt.NDArray[np.float64]:
            return _tensor_to_array(transform(torch.stack([known[text] for text in some])))

        compare_batches(encode, texts, rounding_of(None, str(encoder.dtype)), "transform")


def state_digest(modules: Iterable[Any]) -> str:
    """Return a SHA-256 of parameters and buffers of modules, and of their modes.

    Version counters of torch would miss what is written through `.data`.

    Args:
        modules: torch modules; none give one constant.
    """
    digest = hashlib.sha256()
    for module in modules:
        digest.update(repr([one.training for one in module.modules()]).encode())
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            held = tensor.detach()
            held = held.dequantize() if held.is_quantized else held
            held = held.to_dense() if held.layout is not torch.strided else held
            digest.update(f"{name} {held.dtype} {tuple(held.shape)}".encode())
            digest.update(held.cpu().contiguous().reshape(-1).view(torch.uint8).numpy())
    return digest.hexdigest()
