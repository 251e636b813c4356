"""A text encoder with private vectors: the vectors are bounded, and calibrated noise is added."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import sensitivity
from ..calibration import RealEpsilon, gaussian_analytic, l2_laplace, noise_errors, real_epsilon
from ..errors import AssumptionWarning, choice, delta_level, flag, invalid, message, mistyped
from ..events.event import numpy_of
from ..mechanisms import positive
from ..mechanisms.texts import as_texts
from ..packages import has_all, torch
from ..progress import Progress
from ..records import Pair
from ..report.rows import Row
from ..report.shown import Shown
from ..sensitivity.closed_forms import format_pair
from ..streams import Rng, seed_and_hide_warnings, seeded_torch, to_seed
from ..suggestions import explain_argument_errors
from .encoders import check_batches, check_rowwise_mapping, encoder_of, probe_texts, tensor_to_array
from .layers import GaussianNoise, L2LaplaceNoise, LaplaceNoise, NoiseLayer
from .mechanisms import EncoderMechanism, require_available_device
from .serialization import load_encoder, save_private_encoder
from .transforms import Clip, MinMax, Normalise, Project, TransformChain, public_steps, zeroed_rows

_ROWS_PER_BLOCK: Final = 256
"""Number of rows that are compared with all rows at once; for 11,657 rows, 12 MB of distances."""
_DISTANCE_SLACK: Final = 1e-4
"""Upper bound on the relative error of float32 sums of up to 2^20 terms (measured: 1e-6)."""

Noise = Literal["laplace", "gaussian", "l2_laplace", "best"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)
"""Names of the noises that a `PrivateEncoder` can make."""
LEAST_SIGNAL: Final = 0.02
"""Smallest share of the signal in the energy of useful vectors. This limit is a rule of thumb, not
the result of a measurement."""
_EPSILON_SLACK = 1e-9
"""Relative tolerance in the check of a scale, because a rounded scale is not a false claim."""


def farthest_rows(rows: Any, norm: str, progress: bool | None = None) -> tuple[int, int]:
    """Return the indices of the two rows that have the largest distance in a tensor.

    Args:
        rows: tensor of shape `(size, width)`, with at least two rows.
        norm: norm of the distance, "l1" or "l2".
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The two indices, with the smaller index first.

    Example:
        >>> farthest_rows(torch.tensor([[0.0, 0.0], [1.0, 1.0], [0.5, 2.0]]), "l1")
        (0, 2)
    """
    choice("norm", norm, ("l1", "l2"))
    rows = rows.detach().double()
    # Subtract the mean, because a part common to all rows would only reduce the precision.
    rows = rows - rows.mean(dim=0)
    few = rows.float()
    order = 1.0 if norm == "l1" else 2.0
    size, best, place = len(rows), -1.0, (0, 1)
    with Progress("comparing texts", size * (size - 1) // 2, progress) as bar:
        for first in range(0, size - 1, _ROWS_PER_BLOCK):
            block = few[first : first + _ROWS_PER_BLOCK]
            distances = torch.cdist(block, few[first:], p=order)
            near = torch.nonzero(
                distances >= max(float(distances.max()), best) * (1.0 - _DISTANCE_SLACK)
            )
            for i, j in near.tolist():
                apart = float((rows[first + i] - rows[first + j]).norm(order))
                if i < j and apart > best:
                    best, place = apart, (first + i, first + j)
            bar.advance(sum(range(size - 1 - first, size - 1 - first - len(block), -1)))
    return place


@explain_argument_errors
class PrivateEncoder(Shown):
    """Text encoder with noise: its vectors satisfy the claimed epsilon for any two texts.

    The noisy vector of a text is ``transform(encoder(text)) + noise``. The transform moves every
    vector into a bounded set. The noise is calibrated to the diameter of this set (the largest
    distance between two of its vectors). The claimed epsilon therefore needs no assumption on the
    encoder or the texts. The claim covers one encoding of one text: k encodings of a text cost k
    epsilon. The claim does not cover the texts on which the encoder was trained.

    If the encoder returns arrays or lists, the vectors are converted to float32. (The last bits of
    noisy float64 numbers reveal the vector without noise, see Mironov, 2012.) If the encoder
    returns tensors, the dtype is kept.

    Args:
        encoder: one of these objects (torch modules must be in eval mode):

            - a SentenceTransformer;
            - a pair `(model, tokenizer)` from the package transformers, or a triple
              `(model, tokenizer, pooling)`. If pooling is "mean" (the default), the vector of a
              text is the mean of the token vectors. If pooling is "cls", the vector of a text is
              the vector of the first token;
            - a torch module or any function of a list of texts that returns vectors, shape
              `(texts, width)`;
            - a function of one text that returns one vector;
            - a feature-extraction pipeline from the package transformers (token vectors are
              averaged);
            - a dictionary from texts to vectors.
        transform: `Clip`, `MinMax` or `Normalise` from `dpcore.torch` (or from
            `dpcore.sensitivity`), or your own torch module. Your module must have a method
            `range(dim)` that returns the set of possible outputs. A list of transforms is applied
            in order. A list may contain `Project`, but not at its end. An example is
            ``[Project(rows, 8), Clip("l2", 1.0)]``.
        epsilon: claimed epsilon, in (0, 1e300].
        delta: claimed delta. It is in (0, 1) for Gaussian noise, and 0 for all other noise.
        noise: one of these:

            - "laplace": Laplace noise of scale `D / epsilon` for the L1 diameter D;
            - "gaussian": Gaussian noise by the analytic Gaussian mechanism for the L2 diameter;
            - "l2_laplace": L2 Laplace noise of scale `D / epsilon` for the L2 diameter D;
            - "best": the noise with the smallest expected squared error among these three (see
              `calibration.noise_errors`). The choice does not depend on texts;
            - a noise layer of `dpcore.torch` with your own scale. dpcore checks whether this noise
              satisfies the claim.
        strict: True to raise a ValueError if the noise does not satisfy the claim. With False, the
            noise is accepted, and reports show both the claimed epsilon and the true epsilon.
        probe: texts (or a dictionary with texts as keys) for a test of the encoder. The test checks
            that each text has the same vector in every batch. Defaults to built-in texts of 1 to 40
            words.
        rounding: largest distance between two encodings of one text that counts as rounding,
            relative to the norm of the encodings. Defaults to 1e-5, or to .05 for bfloat16 and
            float16.

    Attributes:
        batches: result of the test that each text has the same vector in every batch.
        errors: dict for the choice "best". A key is the name of a noise, and the value is the
            expected squared error of a vector with this noise. Empty if the argument `noise` is not
            "best".
        counted: dict with two numbers. "texts" is the number of texts that were encoded until now.
            "cut" is the number of these texts that were too long, and were truncated.
        worst: the last pair of texts that the method `worst_pair` returned, with the exact epsilon
            between the two texts. None before the first call of `worst_pair`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range, if the encoder is in train mode, if the vector of a
            text depends on the other texts in the batch, or if the noise does not satisfy the
            claim. In the last case, the message shows two vectors for which the claim is false.

    Source:
        Dwork and Roth (2014), theorem 3.6 (Laplace); Balle and Wang (2018), theorem 8 (Gaussian);
        Chaudhuri, Monteleoni and Sarwate (2011) (L2 Laplace).

    Example:
        >>> def lengths(texts):
        ...     return [[float(len(text.split())), float(len(text))] for text in texts]
        >>> private = PrivateEncoder(lengths, Clip("l1", 1.0), epsilon=8.0)
        >>> private.noise
        LaplaceNoise(scale=0.25)
        >>> private.encode(["he has the flu", "he has cancer"], rng=1).shape
        (2, 2)
        >>> PrivateEncoder(lengths, Clip("l2", 1.0), epsilon=8.0, noise=LaplaceNoise(0.25))
        Traceback (most recent call last):
        ValueError: noise must be enough for epsilon 8 on Ball(norm='l2', radius=1.0, dim=2), got
        LaplaceNoise(scale=0.25); epsilon 11.3137 is reached by this pair: x = [0.707107, 0.707107]
        and x_prime = [-0.707107, -0.707107] (strict=False keeps the claim and shows the true
        epsilon)
    """

    def __init__(
        self,
        encoder: Any,
        transform: Any,
        *,
        epsilon: float,
        delta: float = 0.0,
        noise: Any = "laplace",
        strict: bool = True,
        probe: Any = None,
        rounding: float | None = None,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.delta = delta_level(delta)
        self.strict = flag("strict", strict)
        self.encoder = encoder_of(encoder)
        self.encoder.array_dtype = torch.float32
        self.transform = join_modules(transform)
        self.probe, self.rounding = probe_texts(self.encoder, probe), rounding
        self.batches = check_batches(self.encoder, self.probe, rounding, refuse_state=True)
        if type(self.transform) not in (Clip, MinMax, Normalise):
            check_rowwise_mapping(self.encoder, self.transform, self.probe)
        self.errors: dict[str, float] = {}
        self.noise = self._make_noise_layer(noise)
        self.counted = {"texts": 0, "cut": 0}
        self.worst: tuple[Pair, float | None] | None = None
        if self.strict and not self._is_claim_satisfied:
            raise _false_claim_error(self)

    @property
    def width(self) -> int:
        """Number of entries of each vector that this encoder returns."""
        assert self.encoder.width is not None
        domain = self.domain
        return domain.dim if has_all(domain, "dim") else self.encoder.width

    @property
    def domain(self) -> Any:
        """Bounded set that contains every vector of this encoder before the noise is added."""
        return self.transform.range(self.encoder.width)

    @property
    def public(self) -> tuple[str, ...]:
        """Names of the transforms that use public data, each with the number of public rows."""
        steps = ((type(step).__name__, step.public_rows) for step in public_steps(self.transform))
        return tuple(name if rows is None else f"{name} on {rows:,} rows" for name, rows in steps)

    @property
    def claim(self) -> float:
        """Claimed epsilon of this encoder for one encoding of one text, at the claimed delta."""
        return self.epsilon

    @property
    def real(self) -> RealEpsilon | None:
        """True epsilon of this encoder for any two texts.

        None if the distribution of the noise is unknown.
        """
        law = self.noise.description
        return None if law is None else real_epsilon(law, self.domain)

    @property
    def true_epsilon(self) -> float:
        """True epsilon of this encoder for any two texts, at the claimed delta.

        The number is computed from the noise and from the bounded set of the vectors without noise.
        The number does not depend on the claimed epsilon. The number is inf if no finite epsilon is
        known to hold.
        """
        real = self.real
        if real is None:
            return np.inf
        # A pure epsilon holds at every delta.
        return real.value if real.mu is None or self.delta == 0.0 else real.epsilon(self.delta)

    @property
    def _is_claim_satisfied(self) -> bool:
        """True if the noise satisfies the claim, for any value that a learnt epsilon can take."""
        noise, epsilon = self.noise, self.true_epsilon
        if noise.sensitivity is not None:
            # For learnt noise, the true epsilon is proportional to the learnt epsilon.
            limit = np.inf if noise.cap is None else noise.cap / noise.sensitivity
            epsilon *= noise.scale * limit
        return bool(epsilon <= self.epsilon * (1.0 + _EPSILON_SLACK))

    def _make_noise_layer(self, noise: Any) -> Any:
        if isinstance(noise, NoiseLayer):
            return noise
        if not isinstance(noise, str):
            kinds = f"one of {', '.join(map(repr, NOISES))} or a noise layer of dpcore.torch"
            raise mistyped("noise", kinds, noise)
        choice("noise", noise, NOISES)
        if noise == "best":
            self.errors = noise_errors(self.domain, self.epsilon, self.delta)
            noise = min(self.errors, key=self.errors.__getitem__)
        if noise == "gaussian" and self.delta == 0.0:
            raise invalid("delta", "above 0 for Gaussian noise", self.delta)
        if noise != "gaussian" and self.delta != 0.0 and not self.errors:
            raise invalid("delta", f"0 for {noise} noise, which gives pure epsilon", self.delta)
        if noise == "laplace":
            return LaplaceNoise(sensitivity.laplace_scale(self.epsilon, self.domain))
        apart = sensitivity.sensitivity(self.domain, "l2").value
        if noise == "gaussian":
            return GaussianNoise(gaussian_analytic(self.epsilon, self.delta, apart).sigma)
        return L2LaplaceNoise(l2_laplace(self.epsilon, apart).scale)

    def clean(self, texts: Sequence[str]) -> Any:
        """Return the vectors of texts after the transform, without noise.

        These vectors are not private.

        Args:
            texts: non-empty strings.

        Returns:
            A tensor of shape `(len(texts), width)` on the device of this encoder.
        """
        texts_read = as_texts("texts", texts, fewest=0)
        if not texts_read:
            return torch.empty((0, self.width), device=self.encoder.device)
        return self.encoder.with_added_transform(self.transform)(texts_read)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Draw one private (noisy) vector for each of the given texts.

        If one text is encoded k times, the privacy cost is k epsilon.

        Args:
            texts: non-empty strings.
            rng: seed (an integer) or numpy Generator, for noise that can be repeated. A person who
                knows the seed or Generator also knows the noise. With None, the noise is new in
                every call.

        Returns:
            An array of shape `(len(texts), width)`, with the dtype of the vectors without noise.

        Raises:
            TypeError: if `texts` is one string, or holds objects other than strings.
            ValueError: if a text is empty, or the encoder returns invalid vectors.
        """
        source = _read_generator(rng)
        texts_read = as_texts("texts", texts, fewest=0)
        with seeded_torch(source), torch.no_grad():
            # Encode inside the seeded block, because an encoder may also be random.
            rows = self.clean(texts_read)
            private = numpy_of(self.noise(rows) if texts_read else rows)
        self.counted["texts"] += len(texts_read)
        self.counted["cut"] += self.encoder.truncated(texts_read)
        return private

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """Find, among the given texts, the two texts with the largest exact epsilon between them.

        The epsilon of a pair is computed from the two vectors and the distribution of the noise,
        without an audit. This epsilon is at most `true_epsilon`.

        Args:
            texts: at least two different strings.
            progress: True to show a progress bar. By default, dpcore shows the bar for long work on
                a terminal or in a notebook.

        Returns:
            The pair of texts. The encoder also stores the pair in the attribute `worst`.

        Raises:
            TypeError: if `texts` is one string, or holds objects other than strings.
            ValueError: if a text is empty, or all texts are equal.
        """
        candidates = list(dict.fromkeys(as_texts("texts", texts, fewest=0)))
        if len(candidates) < 2:
            raise invalid("texts", "at least two different texts", len(candidates))
        if self.encoder.random:
            requirement = "the same in every call: one that is random has no exact loss"
            raise invalid("encoder", requirement, self.encoder.name)
        rows = self.clean(candidates)
        norm = "l2" if isinstance(self.noise, (GaussianNoise, L2LaplaceNoise)) else "l1"
        first, second = farthest_rows(rows, norm, progress)
        pair = Pair(candidates[first], candidates[second])
        x, x_prime = (tensor_to_array(rows[place]) for place in (first, second))
        self.worst = (pair, self.noise.loss(x, x_prime, self.delta))
        return pair

    def measure_signal(
        self, texts: Sequence[str] | None = None
    ) -> tuple[float, float, float] | None:
        """Compare the typical size of this encoder's noiseless vectors with that of the noise.

        Args:
            texts: non-empty strings. Defaults to the texts with which dpcore tested the encoder.

        Returns:
            Three numbers, or None if the distribution of the noise is not Laplace, Gaussian or L2
            Laplace. The first number is the root mean square s of the entries of the vectors
            without noise. The second number is the root mean square n of the entries of the noise.
            The third number is ``s^2 / (s^2 + n^2)``.
        """
        some = self.probe if texts is None else as_texts("texts", texts)
        factors = {"Laplace": 2.0, "Gaussian": 1.0, "L2Laplace": self.width + 1.0}
        if (factor := factors.get(type(self.noise.description).__name__)) is None:
            return None
        with seed_and_hide_warnings(0), warnings.catch_warnings():
            # A copy of the transform counts the rows of zeros, and no warning reports them.
            warnings.simplefilter("ignore", AssumptionWarning)
            rows = self.encoder.with_added_transform(copy.deepcopy(self.transform))(some)
        entry = float(rows.double().square().mean().sqrt())
        noise = self.noise.scale * factor**0.5
        return entry, noise, entry**2 / (entry**2 + noise**2)

    def as_mechanism(self) -> EncoderMechanism:
        """Return this encoder as a mechanism from a text to noisy vectors, for an audit."""
        name = f"PrivateEncoder({self._arguments})"
        clean = self.encoder.with_added_transform(self.transform)
        rest = self.epsilon, self.delta, self.probe, self.rounding
        return EncoderMechanism(clean, self.noise, name, *rest)

    def to(self, device: Any) -> PrivateEncoder:
        """Move this encoder, with its transform and noise, to a torch device, and return it."""
        for part in (self.encoder, self.transform, self.noise):
            part.to(require_available_device(device))
        return self

    @property
    def _arguments(self) -> str:
        delta = f", delta={self.delta!r}" if self.delta else ""
        noise = " ".join(repr(self.noise).split())
        return f"{self.encoder.name}, {self.transform!r}, epsilon={self.epsilon!r}{delta}, {noise}"

    @property
    def worst_found(self) -> str:
        """Text for `repr`: exact epsilon of the last pair from `worst_pair`; "" without a pair."""
        loss = None if self.worst is None else self.worst[1]
        return "" if loss is None else f"; exact loss of the worst pair {loss:.6g}"

    def __repr__(self) -> str:
        """Return the arguments, and the exact epsilon of the last pair from `worst_pair`."""
        return f"PrivateEncoder({self._arguments}{self.worst_found})"

    @property
    def _title(self) -> str:
        return f"PrivateEncoder of {self.encoder.name}"

    def _lines(self) -> list[Row]:
        """List the rows of the report, such as the claim and the true epsilon."""
        return list_rows(self)

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Save this encoder to a folder, so that `from_pretrained` can load the encoder again.

        Args:
            folder: path of a folder. A missing folder is created. The method writes a file
                config.json, and files in the safetensors format for the weights of torch modules.

        Returns:
            The folder.

        Raises:
            TypeError: if `folder` is not a path, or if the class of the transform or of the noise
                is not from dpcore.
            OSError: if the folder cannot be written.
        """
        return save_private_encoder(self, folder)

    @classmethod
    def from_pretrained(
        cls,
        folder: str | PathLike[str],
        *,
        encoder: Any = None,
        device: Any = None,
        probe: Any = None,
    ) -> PrivateEncoder:
        """Load a `PrivateEncoder` from a folder that `save_pretrained` wrote.

        The method uses no pickle and no network.

        Args:
            folder: path of a folder on this machine.
            encoder: the original text encoder. This argument is required for a function, a
                dictionary or a torch module, because the folder does not contain such objects. If
                the text encoder is a torch module, its weights are loaded from the folder.
            device: torch device to which the encoder is moved. Defaults to the CPU.
            probe: texts with which dpcore tests the encoder again. The folder does not contain the
                texts of the first test. Defaults to built-in texts.

        Raises:
            OSError: if the folder is missing, or contains no config.json.
            ValueError: if a key in config.json is unknown or missing, if a file could contain a
                pickle, or if `encoder` is needed but missing.
        """
        return load_encoder(cls, folder, encoder, device, probe)


def _read_generator(rng: Rng) -> np.random.Generator:
    """Return the given Generator, or make a Generator from a seed or from system entropy."""
    if isinstance(rng, np.random.Generator):
        return rng
    return np.random.default_rng(None if rng is None else to_seed(rng))


def as_torch_module(transform: Any) -> Any:
    """Return a transform as a torch module.

    Transforms from `dpcore.sensitivity` are converted, and a torch module with a method `range` is
    returned unchanged.
    """
    twins: dict[type, Any] = {
        sensitivity.Clip: lambda own: Clip(own.norm, own.radius),
        sensitivity.MinMax: lambda own: MinMax(),
        sensitivity.Normalise: lambda own: Normalise(own.norm),
    }
    if type(transform) in twins:
        return twins[type(transform)](transform)
    is_module = isinstance(transform, torch.nn.Module) and has_all(transform, "range")
    if not is_module or not callable(transform.range):
        requirement = "Clip, MinMax or Normalise, or a torch module with a method range(dim)"
        raise mistyped("transform", requirement, transform)
    return transform


def join_modules(transform: Any) -> Any:
    """Return one torch module that applies a transform, or a list of transforms in order."""
    if type(transform) is Project:
        requirement = "bounded: [Project(...), Clip(...)], for a projection has no range"
        raise mistyped("transform", requirement, transform)
    if not isinstance(transform, (list, tuple)):
        return as_torch_module(transform)
    if not transform:
        raise invalid("transform", "one transform at least", transform)
    *steps, last = transform
    first = [step if type(step) is Project else as_torch_module(step) for step in steps]
    return TransformChain([*first, join_modules(last)])


def _false_claim_error(private: PrivateEncoder) -> ValueError:
    """Make the error for noise that breaks the claim; its message shows two vectors as proof."""
    at = f" at delta {private.delta:g}" if private.delta else ""
    noise, domain, real = private.noise, private.domain, private.real
    text = message("noise", f"enough for epsilon {private.epsilon:g}{at} on {domain!r}", noise)
    pair = sensitivity.sensitivity(domain, "l1").pair if real is None else real.pair
    loss = noise.loss(pair.x, pair.x_prime, private.delta)
    reasons = [reason for reason in (noise.faulty, noise.caution) if reason]
    if loss > private.epsilon * (1.0 + _EPSILON_SLACK):
        reasons.append(f"epsilon {loss:g} is reached by this pair: {format_pair(pair)}")
    hint = "strict=False keeps the claim and shows the true epsilon"
    return ValueError(f"{text}; {'; '.join(reasons)} ({hint})")


def list_rows(private: PrivateEncoder) -> list[Row]:
    """Return the rows of the report on an encoder, as pairs (label, text)."""
    delta = f", delta {private.delta:g}" if private.delta else ""
    public = private.public
    return [
        ("vectors", f"{private.width:,} numbers in {private.domain!r}"),
        ("transform", repr(private.transform)),
        ("noise", _format_noise_layer(private)),
        *(("chosen", line) for line in _explain_why_noise_was_chosen(private)),
        ("signal", _describe_signal_and_noise(private)),
        ("claim", f"epsilon {private.epsilon:g}{delta}, for any two texts, one encoding of each"),
        *[("provided", f"that these rows are public: {', '.join(public)}")] * bool(public),
        ("true", _format_true_epsilon(private)),
        ("repeats", f"k encodings of one text cost k times {private.epsilon:g}"),
        ("not covered", "the texts that the encoder was trained on"),
        ("batches", str(private.batches)),
        ("texts", _format_encoded_text_counts(private)),
        ("worst pair", _format_worst_pair(private)),
        ("device", str(private.encoder.device)),
        ("randomness", "torch's default, seeded by the system: no cryptographic generator"),
    ]


def _format_noise_layer(private: PrivateEncoder) -> str:
    law = " ".join(repr(private.noise).split())
    what = private.noise.faulty
    if type(private.noise) in (LaplaceNoise, GaussianNoise):
        what = "independent in every entry"
    elif type(private.noise) is L2LaplaceNoise:
        what = "one direction and length for each row"
    return f"{law}{': ' if what else ''}{what}"


def _explain_why_noise_was_chosen(private: PrivateEncoder) -> list[str]:
    if not private.errors:
        return []
    errors = sorted(private.errors.items(), key=lambda item: item[1])
    others = ", ".join(f"{name} {error:.4g}" for name, error in errors[1:])
    name, least = errors[0]
    return [f"{name}: least expected squared error of a vector, {least:.4g} ({others})"]


def _describe_signal_and_noise(private: PrivateEncoder) -> str:
    signal = private.measure_signal()
    if signal is None:
        return "not known: no law of the noise is"
    entry, noise, share = signal
    level = f"typical entry {entry:.2g}, noise {noise:.2g}"
    energy = f"{level}: {100.0 * share:.2g} % of a vector's energy is signal"
    few = share < LEAST_SIGNAL
    why = f"; NO UTILITY IS TO BE EXPECTED below {100.0 * LEAST_SIGNAL:g} %" if few else ""
    return f"{energy} (root mean squares over {len(private.probe)} probe texts){why}"


def _format_true_epsilon(private: PrivateEncoder) -> str:
    epsilon = private.true_epsilon
    at = f" at delta {private.delta:g}" if private.delta else ""
    level = f"epsilon {epsilon:.6g}{at}" if math.isfinite(epsilon) else "no epsilon at all"
    real = private.real
    why = private.noise.faulty or ("" if real is None else real.reason)
    false = epsilon > private.epsilon * (1.0 + _EPSILON_SLACK)
    return f"{level}, for any two texts{': ' if why else ''}{why}{'; THE CLAIM IS FALSE' * false}"


def _format_encoded_text_counts(private: PrivateEncoder) -> str:
    done, cut = private.counted["texts"], private.counted["cut"]
    longest = private.encoder.longest
    limit = "" if longest is None else f", {cut:,} of them cut after {longest:,} tokens"
    zeroed = zeroed_rows(private.transform)
    zeros = f", {zeroed:,} rows made zero by the transform" if zeroed else ""
    return f"{done:,} encoded so far{limit}{zeros}"


def _format_worst_pair(private: PrivateEncoder) -> str:
    if private.worst is None:
        return "not looked for (worst_pair(texts))"
    pair, loss = private.worst
    texts = (text if len(text) <= 40 else f"{text[:37]}..." for text in (pair.x, pair.x_prime))
    shown = " and ".join(map(repr, texts))
    if loss is None:
        return f"no exact loss, for the encoder is random: {shown}"
    level = f"{loss:.4f}" if math.isfinite(loss) else "infinite"
    return f"exact loss {level} (computed from the declared noise, not certified): {shown}"
