"""An encoder with noise behind it, as a mechanism that an audit takes texts to."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..adapters.torch import refuse_mixing
from ..errors import AssumptionWarning, invalid, mistyped
from ..events.event import numpy_of
from ..mechanisms.texts import BatchCheck, relative_distances, rounding_of, text_of, texts_of
from ..packages import torch
from ..records import Pair
from ..streams import Rng, check_size, quiet_seed, seed_of, seeded_globals, seeded_torch
from ..suggestions import suggest_arguments
from . import encoders
from .layers import NoiseLayer

_MAX_REMEMBERED_TEXTS: Final = 10_000
"""Texts whose vectors are remembered."""
_DEFAULT_FORWARD_TRIALS: Final = 4_000
"""Trials by default where every output costs a forward pass."""


class _TextMemory(NamedTuple):
    """Memory of a text: its vector, or the mean of its encodings, and the checks."""

    vector: Any
    randomness: encoders.Randomness
    batches: BatchCheck


@suggest_arguments
class EncoderMechanism:
    """Texts to noisy vectors: `(text, size, rng) -> outputs`, what `mechanism` makes.

    A text is encoded once, by itself, and the noise is drawn `size` times: in another batch a
    vector has other last bits. An encoder that is random itself runs for every draw. Before its
    first draw a text is encoded 64 times, to see if the encoder is random, and in batches of other
    texts. Vectors of at most 10,000 texts are remembered until an audit begins after parameters or
    buffers have changed, or a remembered text, encoded anew, has another vector.

    Args:
        encoder: from texts to vectors.
        noise: a module that adds noise to rows, or None.
        name: what reports call it.
        claim: the epsilon that it claims, or None.
        delta: the delta of the claim.
        probe: texts that share batches with those of an audit.
        rounding: largest distance of two vectors, relative to their norm, that is rounding; None
            is 1e-5, for bfloat16 and float16 .05.
    """

    thread_safe = False
    encodes_once = True
    """True: a call does not take the time that encoding takes."""

    def __init__(
        self,
        encoder: encoders.Encoder,
        noise: Any,
        name: str,
        claim: float | None = None,
        delta: float = 0.0,
        probe: Any = None,
        rounding: float | None = None,
    ) -> None:
        self.encoder, self.noise, self.name = encoder, noise, name
        self.claim, self.delta, self.rounding = claim, delta, rounding
        # Shorter and longer ones than most texts of an audit, with which they share a batch.
        self._companions = encoders.probe_texts(encoder, probe)[1::3]
        self._learnt: OrderedDict[str, _TextMemory] = OrderedDict()
        self._digest = ""

    def __repr__(self) -> str:
        return self.name

    def _parts(self) -> tuple[Any, ...]:
        things = (self.encoder.model, self.encoder.transform, self.noise)
        return (*map(id, things), self.name, self.claim, self.delta)

    def __eq__(self, other: object) -> bool:
        """Return True for the same objects with the same claim: audits of them can be added."""
        return isinstance(other, EncoderMechanism) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    @property
    def device_type(self) -> str:
        """The kind of device that it runs on, such as "cpu" or "cuda"."""
        return str(self.encoder.device.type)

    @property
    def torch_threads(self) -> int | None:
        """Threads of torch's in a block: one where only noise is drawn, else what torch is set."""
        return None if self.default_trials else 1

    @property
    def default_trials(self) -> int | None:
        """4,000 where every output costs a forward pass, of a random encoder; else None."""
        is_random = any(learnt.randomness.is_random for learnt in self._learnt.values())
        return _DEFAULT_FORWARD_TRIALS if is_random or self.encoder.random else None

    def default_trials_on(self, pair: Pair) -> int | None:
        """Return 4,000 if the encoder is random on a text of the pair, else None."""
        return _DEFAULT_FORWARD_TRIALS if self._is_random_on(pair) else None

    def _is_random_on(self, pair: Pair) -> bool:
        return any(self.random(text_of("x", text)) for text in (pair.x, pair.x_prime))

    def as_mechanism(self) -> EncoderMechanism:
        """Return the mechanism itself; what it remembers is forgotten if the encoder has changed.

        An audit calls this once, before its first draw.
        """
        parts = (self.encoder.transform, *self.encoder.modules)
        digest = encoders.state_digest(part for part in parts if isinstance(part, torch.nn.Module))
        if digest != self._digest or self._has_new_vector():
            self._learnt.clear()
        self._digest = digest
        return self

    def _has_new_vector(self) -> bool:
        """Return True if a remembered text, encoded anew, has another vector, or a random one."""
        if not self._learnt:
            return False
        text, learnt = next(reversed(self._learnt.items()))
        if learnt.randomness.is_random:
            return True
        both = [
            encoders.tensor_to_array(vector)[None] for vector in (learnt.vector, self._run(text))
        ]
        limit = rounding_of(self.rounding, str(learnt.vector.dtype))
        return bool(relative_distances(*both)[0] > limit)

    def __call__(self, x: str, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw noisy vectors of one text, shape `(size, width)`.

        Args:
            x: the text.
            size: number of vectors.
            rng: a numpy Generator.
        """
        return numpy_of(self.tensor(x, size, rng))

    def tensor(self, x: str, size: int, rng: np.random.Generator) -> Any:
        """Draw the same as a tensor, on the device where the encoder runs."""
        text, size = text_of("x", x), check_size(size, 1)
        if self.random(text):
            with seeded_globals(rng), warnings.catch_warnings():
                # Rows that became zeros are told of by `notes_on`, not in every block.
                warnings.simplefilter("ignore", AssumptionWarning)
                return self._noisy(self.encoder([text] * size))
        rows = self._learn(text).vector.expand(size, -1)
        if not isinstance(self.noise, NoiseLayer):
            # A module of somebody else's may write to its input.
            rows = rows.clone()
        with seeded_torch(rng):
            return self._noisy(rows)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw a noisy vector of each text, with fresh noise at every call.

        Args:
            texts: strings, none of them empty; they are encoded in one batch.
            rng: None takes entropy of the operating system; an int or a Generator repeats the
                noise.

        Returns:
            Shape `(len(texts), width)`.
        """
        rows, source = list(texts_of("texts", texts)), np.random.default_rng(seed_of(rng))
        with seeded_globals(source), warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return numpy_of(self._noisy(self.encoder(rows)))

    def _noisy(self, rows: Any) -> Any:
        if self.noise is None:
            return rows
        with torch.no_grad():
            noisy = self.noise(rows)
        if not isinstance(noisy, torch.Tensor):
            raise mistyped(f"outputs of {self.name}", "one tensor", noisy)
        return noisy

    def random(self, text: str) -> bool:
        """Return True if the encoder itself is random: calls differ, or draw numbers."""
        return self._learn(text).randomness.is_random

    def _learn(self, text: str) -> _TextMemory:
        if text not in self._learnt:
            randomness = encoders.probe_randomness(self.encoder, text, self.rounding)
            others = [companion for companion in self._companions if companion != text]
            # Without a transform, which may enlarge rounding.
            bare = self.encoder if self.encoder.transform is None else self.encoder.inside
            is_repeated = not randomness.is_random
            batches = encoders.check_batches(
                bare, [text, *others], self.rounding, is_known=is_repeated
            )
            vector = self._run(text) if is_repeated else randomness.mean
            self._learnt[text] = _TextMemory(vector, randomness, batches)
            if len(self._learnt) > _MAX_REMEMBERED_TEXTS:
                self._learnt.popitem(last=False)
        return self._learnt[text]

    def _run(self, text: str) -> Any:
        # A seed of its own: what is learnt of an encoder is the same in every audit.
        with quiet_seed(0):
            return self.encoder([text])[0]

    def clean(self, x: str | Sequence[str]) -> npt.NDArray[np.float64]:
        """Compute the vector before the noise, shape `(width,)`; of a random encoder a mean.

        Texts are encoded in one batch, once each, shape `(len(x), width)`.
        """
        if not isinstance(x, str):
            return encoders.tensor_to_array(self.encoder(list(texts_of("x", x))))
        return encoders.tensor_to_array(self._learn(text_of("x", x)).vector)

    def loss(self, pair: Pair, delta: float = 0.0) -> float | None:
        """Compute the exact loss of two texts under the declared noise.

        Args:
            pair: two texts.
            delta: in [0, 1).

        Returns:
            The loss, or None where the encoder is random or the noise is not one of dpcore's.
        """
        if not isinstance(self.noise, NoiseLayer) or self._is_random_on(pair):
            return None
        return self.noise.loss(self.clean(pair.x), self.clean(pair.x_prime), delta)

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """List what a reader of an audit should know of two texts."""
        texts = [text_of("x", pair.x), text_of("x", pair.x_prime)]
        learnt = [self._learn(text) for text in texts]
        notes = [f"batches: {max(learnt, key=lambda of_text: of_text.batches.distance).batches}"]
        if any(of_text.randomness.is_random for of_text in learnt):
            is_seen = any(of_text.randomness.is_seen for of_text in learnt)
            notes.append(
                "the encoder is random: it ran for every draw, attacks know the mean of "
                f"{learnt[0].randomness.rows} runs, and no exact loss is stated"
                f"{'' if is_seen else ' (it draws numbers, although all these runs agreed)'}"
            )
        else:
            fewest = min(
                (of_text.randomness for of_text in learnt), key=lambda randomness: randomness.rows
            )
            notes.append(f"the encoder is not random, as far as was seen: {fewest}")
        if self.encoder.random and (zeroed := self.encoder.zeroed):
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


@suggest_arguments
def mechanism(
    encoder: Any,
    noise: Any = None,
    device: Any = None,
    *,
    probe: Any = None,
    rounding: float | None = None,
) -> EncoderMechanism:
    """Make a mechanism whose inputs are texts from an encoder and the noise behind it.

    Attacks know the vectors of both texts; the report shows the texts, and the exact loss of the
    pair where the noise is one of `dpcore.torch`.

    Args:
        encoder: see `PrivateEncoder`; it may be random, in train mode too: then it runs for every
            draw, attacks know the mean of 64 runs, no exact loss is stated, and audits count 4,000
            trials unless they are given more.
        noise: a module that adds noise to rows of shape `(size, width)`, or None for an encoder
            that does so itself.
        device: where encoder and noise are moved first. None leaves them where they are.
        probe: texts (or a dictionary, whose keys count) that the encoder is tried with. None takes
            built-in ones of 1 to 40 words.
        rounding: largest distance between two encodings of one text, relative to the vector's
            norm. None is 1e-5, for bfloat16 and float16 .05.

    Returns:
        The mechanism `(text, size, rng) -> outputs` of shape `(size, width)`.

    Raises:
        TypeError: if the encoder is of no such kind, or the noise no module.
        ValueError: if the device is missing, a batch norm mixes the rows, or the vector of a text
            changes with the other texts of its batch.

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
    wrapped = encoders.encoder_of(encoder, random=True)
    if noise is not None:
        if not isinstance(noise, torch.nn.Module) or isinstance(noise, type):
            raise mistyped("noise", "a torch module, such as LaplaceNoise(scale), or None", noise)
        refuse_mixing(noise, "noise")
    if device is not None:
        place = device_of(device)
        wrapped.to(place)
        if noise is not None:
            noise.to(place)
    encoders.check_batches(wrapped, encoders.probe_texts(wrapped, probe), rounding)
    name = wrapped.name if noise is None else f"{wrapped.name}, {noise!r}"
    return EncoderMechanism(wrapped, noise, " ".join(name.split()), probe=probe, rounding=rounding)


def device_of(device: Any) -> Any:
    """Return a device of this machine.

    Raises:
        ValueError: if torch does not know it, or the machine does not have it.
    """
    try:
        place = torch.device(device)
        torch.empty(1, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError):
        raise invalid("device", "one of this machine, such as 'cpu'", device) from None
    return place
