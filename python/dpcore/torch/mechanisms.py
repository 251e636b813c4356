"""A mechanism from a text to a noisy vector, made of an encoder and noise, for audits."""

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
from ..mechanisms.texts import BatchCheck, as_texts, check_text, relative_gaps, relative_tolerance
from ..packages import torch
from ..records import Pair
from ..streams import Rng, check_size, seed_and_hide_warnings, seeded_globals, seeded_torch, to_seed
from ..suggestions import explain_argument_errors
from . import encoders
from .layers import NoiseLayer

_MAX_REMEMBERED_TEXTS: Final = 10_000
"""Largest number of texts whose vectors are stored."""
_DEFAULT_FORWARD_TRIALS: Final = 4_000
"""Default number of outputs per input in an audit, if every output needs a forward pass."""


class _TextMemory(NamedTuple):
    """Stored results for one text: its vector (or the mean of random encodings), and its checks."""

    vector: Any
    randomness: encoders.Randomness
    batches: BatchCheck


@explain_argument_errors
class EncoderMechanism:
    """Mechanism from a text to noisy vectors: a function `(text, size, rng) -> outputs`.

    The function `mechanism` creates such an object. The text is encoded only once, in a batch
    without other texts, and the noise is drawn `size` times. However, a random encoder encodes the
    text again for every output.

    Before the first output for a text, the object makes two tests. In the first test, the text is
    encoded 64 times, to see whether the encoder is random. In the second test, the text is encoded
    in batches with other texts, to see whether the other texts change the vector. The object stores
    the vectors of at most 10,000 texts. At the start of an audit, the stored vectors are deleted in
    two cases: if parameters or buffers of the encoder have changed, or if a new encoding of a
    stored text differs from the stored vector.

    Args:
        encoder: encoder from texts to vectors.
        noise: torch module that adds noise to vectors (rows of a tensor), or None if the encoder
            itself adds noise.
        name: name of the mechanism in reports.
        claim: claimed epsilon, or None if no epsilon is claimed.
        delta: claimed delta.
        probe: texts for the second test. They are encoded together with an audited text, to see if
            the vector of the audited text changes.
        rounding: largest distance between two encodings of one text that counts as rounding,
            relative to the norm of the encodings. Defaults to 1e-5, or to .05 for bfloat16 and
            float16.
    """

    thread_safe = False
    encodes_once = True
    """True: a text is encoded only once, not in each call."""

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
        # Texts for common batches, shorter or longer than most texts of an audit.
        self._companions = encoders.probe_texts(encoder, probe)[1::3]
        self._learnt: OrderedDict[str, _TextMemory] = OrderedDict()
        self._digest = ""

    def __repr__(self) -> str:
        return self.name

    def _identity(self) -> tuple[Any, ...]:
        things = (self.encoder.model, self.encoder.transform, self.noise)
        return (*map(id, things), self.name, self.claim, self.delta)

    def __eq__(self, other: object) -> bool:
        """Return True if encoder, noise and claim are equal; audits can then be combined."""
        return isinstance(other, EncoderMechanism) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    @property
    def device_type(self) -> str:
        """Type of the torch device on which this mechanism runs, such as "cpu" or "cuda"."""
        return str(self.encoder.device.type)

    @property
    def torch_threads(self) -> int | None:
        """Number of torch threads that an audit uses for this mechanism, or None for no change.

        The number is 1 if each output needs only new noise, and None if the encoder is random and
        runs for every output.
        """
        return None if self.default_trials else 1

    @property
    def default_trials(self) -> int | None:
        """Default number of trials (outputs per input) of an audit: 4,000 if the encoder is random.

        If the encoder is not random, the value is None, which means the usual default of dpcore.
        """
        is_random = any(learnt.randomness.is_random for learnt in self._learnt.values())
        return _DEFAULT_FORWARD_TRIALS if is_random or self.encoder.random else None

    def default_trials_on(self, pair: Pair) -> int | None:
        """Return the default number of trials (outputs per text) of an audit on a pair of texts.

        The number is 4,000 if the encoding of one of the two texts is random. Otherwise the result
        is None, which means the usual default of dpcore.
        """
        return _DEFAULT_FORWARD_TRIALS if self._is_encoder_random_on(pair) else None

    def _is_encoder_random_on(self, pair: Pair) -> bool:
        return any(self.random(check_text("x", text)) for text in (pair.x, pair.x_prime))

    def as_mechanism(self) -> EncoderMechanism:
        """Delete the stored vectors if the encoder has changed, and return this mechanism.

        An audit calls this method once, at its start.
        """
        parts = (self.encoder.transform, *self.encoder.modules)
        digest = encoders.state_digest(part for part in parts if isinstance(part, torch.nn.Module))
        if digest != self._digest or self._is_stored_vector_outdated():
            self._learnt.clear()
        self._digest = digest
        return self

    def _is_stored_vector_outdated(self) -> bool:
        """Return True if encodings of a stored text are random or differ from its vector."""
        if not self._learnt:
            return False
        text, learnt = next(reversed(self._learnt.items()))
        if learnt.randomness.is_random:
            return True
        both = [
            encoders.tensor_to_array(vector)[None] for vector in (learnt.vector, self._encode(text))
        ]
        limit = relative_tolerance(self.rounding, str(learnt.vector.dtype))
        return bool(relative_gaps(*both)[0] > limit)

    def __call__(self, x: str, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw noisy vectors of one text, shape `(size, width)`.

        Args:
            x: the text.
            size: number of vectors.
            rng: a numpy Generator.
        """
        return numpy_of(self.tensor(x, size, rng))

    def tensor(self, x: str, size: int, rng: np.random.Generator) -> Any:
        """Draw `size` noisy vectors of one text, as a tensor on the device of the encoder."""
        text, size = check_text("x", x), check_size(size, 1)
        if self.random(text):
            with seeded_globals(rng), warnings.catch_warnings():
                # `notes_on` reports rows that became zeros; do not warn in every block.
                warnings.simplefilter("ignore", AssumptionWarning)
                return self._apply_noise(self.encoder([text] * size))
        rows = self._encode_and_check_encoder(text).vector.expand(size, -1)
        if not isinstance(self.noise, NoiseLayer):
            # A user's module may write to its input.
            rows = rows.clone()
        with seeded_torch(rng):
            return self._apply_noise(rows)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw one noisy vector for each of the given texts.

        Args:
            texts: non-empty strings, which are encoded in one batch.
            rng: seed (an integer) or numpy Generator, for noise that can be repeated. With None,
                the noise is new in every call.

        Returns:
            An array of shape `(len(texts), width)`, one vector per row.
        """
        rows, source = list(as_texts("texts", texts)), np.random.default_rng(to_seed(rng))
        with seeded_globals(source), warnings.catch_warnings():
            warnings.simplefilter("ignore", AssumptionWarning)
            return numpy_of(self._apply_noise(self.encoder(rows)))

    def _apply_noise(self, rows: Any) -> Any:
        if self.noise is None:
            return rows
        with torch.no_grad():
            noisy = self.noise(rows)
        if not isinstance(noisy, torch.Tensor):
            raise mistyped(f"outputs of {self.name}", "one tensor", noisy)
        return noisy

    def random(self, text: str) -> bool:
        """Return True if the encoder is random on this text.

        The encoder counts as random if two encodings of the text differ, if a call draws random
        numbers, or if the model has the attribute `random = True`.
        """
        return self._encode_and_check_encoder(text).randomness.is_random

    def _encode_and_check_encoder(self, text: str) -> _TextMemory:
        if text not in self._learnt:
            randomness = encoders.probe_randomness(self.encoder, text, self.rounding)
            others = [companion for companion in self._companions if companion != text]
            # Check it without a transform, because a transform may enlarge rounding errors.
            bare = self.encoder if self.encoder.transform is None else self.encoder.inside
            is_repeated = not randomness.is_random
            batches = encoders.check_batches(
                bare, [text, *others], self.rounding, is_known=is_repeated
            )
            vector = self._encode(text) if is_repeated else randomness.mean
            self._learnt[text] = _TextMemory(vector, randomness, batches)
            if len(self._learnt) > _MAX_REMEMBERED_TEXTS:
                self._learnt.popitem(last=False)
        return self._learnt[text]

    def _encode(self, text: str) -> Any:
        # Use a fixed seed, so that the results about an encoder are the same in every audit.
        with seed_and_hide_warnings(0):
            return self.encoder([text])[0]

    def clean(self, x: str | Sequence[str]) -> npt.NDArray[np.float64]:
        """Return the vector of a text without noise, shape `(width,)`.

        If the encoder is random, the vector is the mean of 64 encodings. If `x` is a list of texts,
        each text is encoded only once, all in one batch, and the result has the shape
        `(len(x), width)`.
        """
        if not isinstance(x, str):
            return encoders.tensor_to_array(self.encoder(list(as_texts("x", x))))
        return encoders.tensor_to_array(self._encode_and_check_encoder(check_text("x", x)).vector)

    def loss(self, pair: Pair, delta: float = 0.0) -> float | None:
        """Compute the exact epsilon between two texts from their vectors and the noise.

        Args:
            pair: the two texts.
            delta: delta in [0, 1).

        Returns:
            The smallest epsilon that holds for the two texts. None if the encoder is random, or if
            the noise is not a noise layer of dpcore.
        """
        if not isinstance(self.noise, NoiseLayer) or self._is_encoder_random_on(pair):
            return None
        return self.noise.loss(self.clean(pair.x), self.clean(pair.x_prime), delta)

    def notes_on(self, pair: Pair) -> tuple[str, ...]:
        """Return notes on the encodings of two texts, for the report of an audit.

        For example, a note states that the encoder is random, or that the encoder truncates a text.
        """
        texts = [check_text("x", pair.x), check_text("x", pair.x_prime)]
        learnt = [self._encode_and_check_encoder(text) for text in texts]
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


@explain_argument_errors
def mechanism(
    encoder: Any,
    noise: Any = None,
    device: Any = None,
    *,
    probe: Any = None,
    rounding: float | None = None,
) -> EncoderMechanism:
    """Return a mechanism from texts to noisy vectors, made of an encoder and a noise module.

    An audit of the mechanism compares two texts. The attacks of the audit know the vectors of both
    texts without noise. The report shows the texts. If the noise is a layer of `dpcore.torch`, the
    report also shows the exact epsilon between the texts.

    Args:
        encoder: text encoder, of any type that `PrivateEncoder` accepts. The encoder may be random,
            for example in train mode. A random encoder runs for every output, and the attacks know
            the mean of 64 encodings. The report then states no exact epsilon, and an audit uses
            4,000 trials by default.
        noise: module that adds noise to rows of shape `(size, width)`, or None for an encoder
            that adds the noise itself.
        device: torch device to which the encoder and the noise are moved. With None, the encoder
            and the noise are not moved.
        probe: texts (or a dictionary with texts as keys) for a test of the encoder. The test checks
            that a text has the same vector in every batch. Defaults to built-in texts of 1 to 40
            words.
        rounding: largest distance between two encodings of one text that counts as rounding,
            relative to the norm of the encodings. Defaults to 1e-5, or to .05 for bfloat16 and
            float16.

    Returns:
        The mechanism, a function `(text, size, rng) -> outputs`. The outputs have shape
        `(size, width)`.

    Raises:
        TypeError: if the encoder is of a type that is not accepted, or the noise is not a torch
            module.
        ValueError: if this machine does not have the device, if a batch norm mixes the texts of a
            batch, or if the vector of a text depends on the other texts in the batch.

    Source:
        Habernal (2021), section 4 (an encoder with noise as a mechanism).

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
        place = require_available_device(device)
        wrapped.to(place)
        if noise is not None:
            noise.to(place)
    encoders.check_batches(wrapped, encoders.probe_texts(wrapped, probe), rounding)
    name = wrapped.name if noise is None else f"{wrapped.name}, {noise!r}"
    return EncoderMechanism(wrapped, noise, " ".join(name.split()), probe=probe, rounding=rounding)


def require_available_device(device: Any) -> Any:
    """Return `device` as a torch device, after a check that this machine has the device.

    Raises:
        ValueError: if torch does not know the device, or the machine does not have the device.
    """
    try:
        place = torch.device(device)
        torch.empty(1, device=place)
    except (RuntimeError, TypeError, ValueError, AssertionError, NotImplementedError):
        raise invalid("device", "one of this machine, such as 'cpu'", device) from None
    return place
