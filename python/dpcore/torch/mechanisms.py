"""An encoder with noise behind it, as a mechanism that an audit takes texts to."""

from __future__ import annotations

import warnings
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..adapters.torch import refuse_mixing
from ..errors import AssumptionWarning, invalid, mistyped
from ..events.held import numpy_of
from ..hints import hinted
from ..mechanisms.texts import text_of
from ..records import Pair
from ..streams.generators import seeded_globals, seeded_torch
from .encoding import Encoder, encoder_of
from .layers import NoiseLayer
from .needed import torch

__all__ = ["EncoderMechanism", "mechanism"]

_RUNS: Final = 32
"""Runs of a random encoder that the clean vector is the mean of."""
_ASKED: Final = 4
"""Runs, under as many seeds, that a deterministic encoder must agree in."""


class EncoderMechanism:
    """Texts to noisy vectors: `(text, size, rng) -> outputs`, what `mechanism` makes.

    A text is encoded once, by itself, and the noise is drawn `size` times: in another batch a
    vector has other last bits. An encoder that is random itself runs for every draw.

    Args:
        encoder: from texts to vectors.
        noise: a module that adds noise to rows, or None.
        name: what reports call it.
        claim: the epsilon that it claims, or None.
        delta: the delta of the claim.
    """

    thread_safe = False
    encodes_once = True
    """That a call does not take the time that encoding takes."""

    def __init__(
        self,
        encoder: Encoder,
        noise: Any,
        name: str,
        claim: float | None = None,
        delta: float = 0.0,
    ) -> None:
        self.encoder, self.noise, self.name = encoder, noise, name
        self.claim, self.delta = claim, delta
        self._vectors: dict[str, Any] = {}
        self._random: dict[str, bool] = {}

    def __repr__(self) -> str:
        return self.name

    def _parts(self) -> tuple[Any, ...]:
        ours = getattr(self.encoder, "transform", None)
        things = (self.encoder.model, ours, self.noise)
        return (*map(id, things), self.name, self.claim, self.delta)

    def __eq__(self, other: object) -> bool:
        """The same objects with the same claim: audits of them can be added."""
        return isinstance(other, EncoderMechanism) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    @property
    def device_type(self) -> str:
        """The kind of device that it runs on, such as "cpu" or "cuda"."""
        return str(self.encoder.device.type)

    @property
    def torch_threads(self) -> int | None:
        """Threads of torch's in a block: one where noise alone is drawn, else what torch is set."""
        return None if any(self._random.values()) else 1

    def __call__(self, x: str, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Noisy vectors of one text, shape `(size, width)`.

        Args:
            x: the text.
            size: number of vectors.
            rng: a numpy Generator.
        """
        return numpy_of(self.tensor(x, size, rng))

    def tensor(self, x: str, size: int, rng: np.random.Generator) -> Any:
        """The same where the encoder runs, as a tensor."""
        text = text_of("x", x)
        if self.random(text):
            with seeded_globals(rng), warnings.catch_warnings():
                # Rows that became zeros are told of by `notes_on`, not in every block.
                warnings.simplefilter("ignore", AssumptionWarning)
                return self._noisy(self.encoder([text] * size))
        rows = self._vector(text).expand(size, -1)
        if not isinstance(self.noise, NoiseLayer):
            # A module of somebody else's may write to its input.
            rows = rows.clone()
        with seeded_torch(rng):
            return self._noisy(rows)

    def _noisy(self, rows: Any) -> Any:
        if self.noise is None:
            return rows
        with torch.no_grad():
            found = self.noise(rows)
        if not isinstance(found, torch.Tensor):
            raise mistyped(f"outputs of {self.name}", "one tensor", found)
        return found

    def random(self, text: str) -> bool:
        """Whether the encoder itself is random: runs under different seeds differ."""
        if text not in self._random:
            first, *others = (self._run(text, run) for run in range(_ASKED))
            told = self.encoder.random
            self._random[text] = told or not all(_same(first, other) for other in others)
            self._vectors[text] = first
            if self._random[text]:
                runs = [self._run(text, run).double() for run in range(_RUNS)]
                self._vectors[text] = torch.stack(runs).mean(dim=0)
        return self._random[text]

    def _run(self, text: str, run: int) -> Any:
        # Seeds of its own: what is learnt of an encoder is the same in every audit.
        with seeded_globals(np.random.default_rng(run)), warnings.catch_warnings():
            if self.encoder.random:
                warnings.simplefilter("ignore", AssumptionWarning)
            return self.encoder([text])[0]

    def _vector(self, text: str) -> Any:
        self.random(text)
        return self._vectors[text]

    def clean(self, x: str) -> npt.NDArray[np.float64]:
        """The vector that the noise is added to, shape `(width,)`; of a random encoder a mean."""
        found: npt.NDArray[np.float64] = self._vector(text_of("x", x)).double().cpu().numpy()
        return found

    def loss(self, pair: Pair, delta: float = 0.0) -> float | None:
        """The exact loss of two texts under the declared noise.

        Args:
            pair: two texts.
            delta: in [0, 1).

        Returns:
            The loss; None where the encoder is random or the noise is not one of dpcore's.
        """
        if not isinstance(self.noise, NoiseLayer):
            return None
        if self.random(text_of("x", pair.x)) or self.random(text_of("x", pair.x_prime)):
            return None
        return self.noise.loss(self.clean(pair.x), self.clean(pair.x_prime), delta)

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """What a reader of an audit should know of two texts."""
        texts = [text_of("x", pair.x), text_of("x", pair.x_prime)]
        notes = []
        if any(map(self.random, texts)):
            notes.append(
                f"the encoder is random: it ran for every draw, attacks know the mean of {_RUNS} "
                "runs, and no exact loss is stated"
            )
        if self.encoder.random and (zeroed := getattr(self.encoder, "zeroed", 0)):
            notes.append(
                f"{zeroed:,} random rows so far were constant and became zeros: outside of the "
                "transform's range, within its sensitivity"
            )
        cut = self.encoder.truncated(texts)
        if cut:
            notes.append(
                f"{cut} of the two texts is longer than the {self.encoder.longest} tokens that the "
                "encoder reads: the rest was cut off"
            )
        return tuple(notes)


@hinted
def mechanism(encoder: Any, noise: Any = None, device: Any = None) -> EncoderMechanism:
    """An encoder and the noise behind it as a mechanism whose inputs are texts.

    Attacks know the vectors of both texts; the report shows the texts, and the exact loss of the
    pair where the noise is one of `dpcore.torch`.

    Args:
        encoder: see `PrivateEncoder`; it may be random, in train mode too: then it runs for every
            draw, attacks know the mean of 32 runs, and no exact loss is stated.
        noise: a module that adds noise to rows of shape `(size, width)`, or None for an encoder
            that does so itself.
        device: where encoder and noise are moved first; None leaves them where they are.

    Returns:
        The mechanism `(text, size, rng) -> outputs` of shape `(size, width)`.

    Raises:
        TypeError: if the encoder is of no such kind, or the noise no module.
        ValueError: if there is no such device, or a batch norm mixes the rows.

    Source:
        Habernal (2021), section 4 (the mechanism that an encoder with noise is).

    Example:
        >>> import dpcore
        >>> from dpcore.torch import LaplaceNoise
        >>> def lengths(texts):
        ...     return [[float(len(text.split())), float(len(text))] for text in texts]
        >>> noisy = mechanism(lengths, LaplaceNoise(2.0))
        >>> report = dpcore.audit(noisy, ("a good film", "a film"), claim=1.0, rng=1)
        >>> report.declared_loss, report.refuted
        (3.0, True)
    """
    found = encoder_of(encoder, random=True)
    if noise is not None:
        if not isinstance(noise, torch.nn.Module) or isinstance(noise, type):
            raise mistyped("noise", "a torch module, such as LaplaceNoise(scale), or None", noise)
        refuse_mixing(noise, "noise")
    if device is not None:
        place = device_of(device)
        found.to(place)
        if noise is not None:
            noise.to(place)
    name = found.name if noise is None else f"{found.name}, {noise!r}"
    return EncoderMechanism(found, noise, " ".join(name.split()))


def device_of(device: Any) -> Any:
    """A device of this machine.

    Raises:
        ValueError: if torch does not know it, or the machine does not have it.
    """
    try:
        place = torch.device(device)
        torch.empty(1, device=place)
    except (RuntimeError, TypeError, AssertionError, NotImplementedError):
        raise invalid("device", "one of this machine, such as 'cpu'", device) from None
    return place


def _same(first: Any, second: Any) -> bool:
    """Whether two vectors agree: bit for bit on a CPU, elsewhere within rounding."""
    if first.device.type == "cpu":
        return bool(torch.equal(first, second))
    # Sums of many threads have no fixed order there.
    slack = float(torch.finfo(first.dtype).eps) ** 0.75
    apart = (first.double().cpu() - second.double().cpu()).abs().max()
    return bool(apart <= slack * first.double().cpu().abs().max())
