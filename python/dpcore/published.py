"""Private systems from the literature, with the epsilon that each system claims.

Use these systems for audits and experiments, not for releasing data: their random numbers are not
cryptographic.

Some of the claims are false. For each system, the attribute `claim` is the claimed epsilon, and
`sound` is True if the claim is true. The attribute `fault` describes the error of the system. The
method `default_pair` returns the pair of inputs with the largest privacy loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from .errors import real
from .mechanisms import LARGEST, ClipStep, DPTextNoise, Laplace, Native, Steps, positive
from .mechanisms.declarations import NATIVE
from .mechanisms.dptext import Undefined
from .pairs import dimension, distance, zeros_ones
from .pairs.differences import Norm
from .records import Pair
from .suggestions import suggest_arguments

__all__ = [
    "SYSTEMS",
    "ADePT",
    "ADePTClipL1",
    "ADePTReference",
    "ADePTScaled",
    "DPText",
    "DPTextRepaired",
    "HalfNoise",
    "HalvedOutput",
    "LaplaceMechanism",
]


def __dir__() -> list[str]:
    """List the public names of this module, without the names that it imports."""
    return [*__all__]


def noise_scale(formula: str, numerator: float, epsilon: float) -> float:
    """Compute the noise scale numerator / epsilon, and check that it is in range.

    The scale can be out of range even if `numerator` and `epsilon` are valid.
    """
    name = f"noise scale {formula}"
    return real(name, numerator / epsilon, low=0.0, high=LARGEST, open_low=True)


def _constant_entry(norm: Norm, radius: float, dim: int, share: float) -> float:
    """Compute the entry of a constant vector whose norm is `radius`, up to rounding.

    The norm of the vector is never above `radius`, so that clipping to `radius` does not change the
    vector.
    """
    level = radius / share
    while distance(Pair(np.zeros(dim), np.full(dim, level)), norm) > radius:
        level = math.nextafter(level, 0.0)
    return level


@dataclass(frozen=True, slots=True, repr=False)
class System(Native):
    """Base class of published systems, with the claimed epsilon and facts about this claim.

    Attributes:
        norm: norm in which the distance of two neighbouring inputs is bounded: "l1", "l2" or
            "linf". None means that any two inputs are neighbours, because the system clips its
            inputs.
        source: publication that describes the system.
        fault: description of the system's error in one line.
        sound: True if the claimed epsilon is true.
    """

    epsilon: float

    norm: ClassVar[str | None] = None
    source: ClassVar[str]
    fault: ClassVar[str]
    sound: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check all fields, and the noise scale that follows from them."""
        for name in ("epsilon", "sensitivity", "clip"):
            if name in type(self).__dataclass_fields__:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        self.steps(1)

    @property
    def claim(self) -> float:
        """Epsilon that the system claims."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """Largest distance of two neighbouring inputs, in the norm that the system uses.

        The distance is a bound that the caller gives, or the diameter of the ball to which the
        system clips.
        """
        raise NotImplementedError(f"{type(self).__name__} states no sensitivity")

    def default_pair(self, dim: int = 2) -> Pair:
        """Return the pair of neighbouring inputs with the largest privacy loss.

        Args:
            dim: number of entries of each input, at least 1.

        Returns:
            Two neighbouring inputs of shape `(dim,)`.
        """
        raise NotImplementedError(f"{type(self).__name__} states no pair")


@dataclass(frozen=True, slots=True, repr=False)
class Sensitive(System):
    """Base class of systems whose L1 sensitivity is given by the caller."""

    sensitivity: float = 1.0

    norm: ClassVar[str | None] = "l1"

    def default_pair(self, dim: int = 2) -> Pair:
        """Return a vector of zeros, and a vector with ``sensitivity / dim`` in every entry.

        The L1 distance of the two inputs is `sensitivity` up to rounding, and never more. A pair
        that differs in a single entry has the same privacy loss. If there are many entries, an
        attack detects the loss more easily on such a pair. For sensitivity 1,
        `dpcore.pairs.patterns(dim, "one")` returns such pairs.
        """
        dim = dimension(dim)
        level = _constant_entry("l1", self.sensitivity, dim, float(dim))
        return Pair(np.zeros(dim), np.full(dim, level))


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(System):
    """Base class of systems that clip inputs to a ball of radius `clip`.

    Any two inputs are neighbours.
    """

    clip: float = 1.0

    norm: ClassVar[str | None] = None
    ball: ClassVar[Literal["l1", "l2"]] = "l2"

    @property
    def sensitivity(self) -> float:
        """Diameter of the ball to which the system clips: 2 C, in the norm of the clip."""
        return 2.0 * self.clip

    def default_pair(self, dim: int = 2) -> Pair:
        """Return two opposite points of the ball, with ``+c`` and ``-c`` in every entry.

        The number c is chosen so that the norm of each vector is C, the radius of the ball.
        """
        dim = dimension(dim)
        share = math.sqrt(dim) if self.ball == "l2" else float(dim)
        level = _constant_entry(self.ball, self.clip, dim, share)
        return Pair(np.full(dim, level), np.full(dim, -level))

    def steps(self, dim: int) -> Steps:
        """Return the steps of the system: clip, then add Laplace noise of scale 2 C / epsilon."""
        scale = noise_scale("2 clip / epsilon", 2.0 * self.clip, self.epsilon)
        return Steps(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class LaplaceMechanism(Sensitive):
    """Laplace mechanism, which adds Laplace noise of scale sensitivity / epsilon.

    The noise is independent in every entry.

    Args:
        epsilon: claimed epsilon. The claim is true for inputs with an L1 distance of at most
            `sensitivity`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> LaplaceMechanism(0.5, sensitivity=2.0).steps(2).noise
        Laplace(scale=4.0, variant='two_branch')
    """

    source: ClassVar[str] = (
        "Dwork and Roth (2014), The Algorithmic Foundations of Differential Privacy, theorem 3.6"
    )
    fault: ClassVar[str] = "nothing: the reference that every other system is measured against"
    sound: ClassVar[bool] = True

    def steps(self, dim: int) -> Steps:
        """Return the only step: add Laplace noise of scale sensitivity / epsilon."""
        return Steps(Laplace(noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePT(Clipped):
    """ADePT as published: clip to L2 norm C, then add Laplace noise of scale 2 C / epsilon.

    The noise is large enough for inputs with an L1 distance of at most 2 C. However, the L1
    distance of two clipped inputs can be 2 C sqrt(dim). The privacy loss on the pair that
    `default_pair` returns is therefore epsilon sqrt(dim).

    Args:
        epsilon: claimed epsilon. The claim is true only for inputs with a single entry.
        clip: largest L2 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Krishna, Gupta and Dupuy (2021); refuted by Habernal (2021), section 4 and theorem 5.1.

    Example:
        >>> ADePT(1.0).default_pair(1)
        Pair(x=array([1.]), x_prime=array([-1.]))
    """

    source: ClassVar[str] = (
        "Krishna, Gupta and Dupuy (2021), ADePT: Auto-encoder based Differentially Private Text "
        "Transformation, EACL; refuted by Habernal (2021), When differential privacy meets NLP: "
        "The devil is in the detail, EMNLP, section 4"
    )
    fault: ClassVar[str] = "Laplace noise calibrated to the L2 clip: loses epsilon sqrt(dim)"
    sound: ClassVar[bool] = False


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePTClipL1(Clipped):
    """ADePT with a corrected clip: clip to L1 norm C, then add noise of scale 2 C / epsilon.

    The noise is Laplace noise, as in ADePT.

    Args:
        epsilon: claimed epsilon. The claim is true, because the L1 distance of two clipped inputs
            is at most 2 C.
        clip: largest L1 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Habernal (2021), section 7 (the correction); Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> ADePTClipL1(1.0).steps(4).clip
        ClipStep(norm='l1', radius=1.0)
    """

    ball: ClassVar[Literal["l1", "l2"]] = "l1"
    source: ClassVar[str] = (
        "Habernal (2021), When differential privacy meets NLP: The devil is in the detail, EMNLP "
        "(section 7: ADePT with its clip in L1)"
    )
    fault: ClassVar[str] = "nothing: the clip and the Laplace noise use the same norm"
    sound: ClassVar[bool] = True


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePTScaled(Clipped):
    """ADePT with corrected noise: clip to L2 norm C, then scale 2 C sqrt(dim) / epsilon.

    The noise is Laplace noise, as in ADePT.

    Args:
        epsilon: claimed epsilon. The claim is true, because the L1 distance of two clipped inputs
            is at most 2 C sqrt(dim).
        clip: largest L2 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Habernal (2021), section 7 (the correction); Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> ADePTScaled(1.0).steps(4).noise.scale
        4.0
    """

    source: ClassVar[str] = (
        "Habernal (2021), When differential privacy meets NLP: The devil is in the detail, EMNLP "
        "(section 7: ADePT with the noise of theorem 5.1)"
    )
    fault: ClassVar[str] = "nothing: the noise grows with sqrt(dim), as the L1 diameter does"
    sound: ClassVar[bool] = True

    def steps(self, dim: int) -> Steps:
        """Return the steps: clip, then add Laplace noise of scale 2 C sqrt(dim) / epsilon."""
        dim = dimension(dim)
        diameter = 2.0 * self.clip * math.sqrt(dim)
        scale = noise_scale("2 clip sqrt(dim) / epsilon", diameter, self.epsilon)
        return Steps(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePTReference(System):
    """Simplified ADePT of a paper's code: Laplace noise of scale 1 / epsilon, without a clip.

    The pair of inputs is a vector of zeros and a vector of ones. The scale of the noise fits their
    Linf distance, which is 1, instead of their L1 distance, which is dim. The privacy loss is
    therefore dim * epsilon. The system as published (`ADePT`) has a smaller privacy loss, at most
    epsilon sqrt(dim). This class reproduces figure 1 of Habernal (2022).

    Args:
        epsilon: claimed epsilon. The claim is true only for inputs with a single entry.

    Raises:
        TypeError: if `epsilon` is not a number.
        ValueError: if `epsilon`, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Habernal (2022), figure 1 and its code.

    Example:
        >>> ADePTReference(10.0).steps(128).noise
        Laplace(scale=0.1, variant='two_branch')
    """

    norm: ClassVar[str | None] = "linf"
    source: ClassVar[str] = (
        "Habernal (2022), How reparametrization trick broke differentially-private text "
        "representation learning, ACL, reference code of figure 1"
    )
    fault: ClassVar[str] = "noise for the distance of one entry: loses epsilon dim"
    sound: ClassVar[bool] = False

    @property
    def sensitivity(self) -> float:
        """Linf distance of a vector of zeros and a vector of ones: 1."""
        return 1.0

    def default_pair(self, dim: int = 2) -> Pair:
        """Return a vector of zeros and a vector of ones."""
        return zeros_ones(dim)

    def steps(self, dim: int) -> Steps:
        """Return the only step of the system: add Laplace noise of scale 1 / epsilon."""
        return Steps(Laplace(noise_scale("1 / epsilon", 1.0, self.epsilon)))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class DPText(Sensitive):
    """DPText as published, which computes its noise from a faulty formula for Laplace noise.

    The formula requires a uniform number between -1/2 and 1/2, but DPText uses a uniform number
    between 0 and 1.

    The noise is therefore never negative. An output is never below its input, so the privacy loss
    is infinite for any dim.

    Args:
        epsilon: claimed epsilon. The claim is false for every epsilon.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.
        nan: treatment of draws for which the formula gives NaN, which are half of all draws. "zero"
            replaces NaN by 0, "resample" draws again, and "keep" leaves NaN in the output.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a number, or the resulting noise scale, is not in (0, 1e300], or if `nan` is
            not one of these three values.

    Source:
        Beigi, Shu, Guo, Wang and Liu (2019); refuted by Habernal (2022), theorem 3.2.

    Example:
        >>> DPText(2.0).steps(1).noise
        DPTextNoise(scale=0.5, nan='zero')
    """

    nan: Undefined = "zero"

    source: ClassVar[str] = (
        "Beigi, Shu, Guo, Wang and Liu (2019), I Am Not What I Write: Privacy Preserving Text "
        "Representation Learning; refuted by Habernal (2022), theorem 3.2, ACL"
    )
    fault: ClassVar[str] = "uniform draw on [0, 1) instead of [-1/2, 1/2): loss is infinite"
    sound: ClassVar[bool] = False

    def steps(self, dim: int) -> Steps:
        """Return the only step: add the faulty noise of scale sensitivity / epsilon."""
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(DPTextNoise(scale, self.nan))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class DPTextRepaired(Sensitive):
    """DPText with a corrected formula, which makes it a Laplace mechanism.

    The formula uses a uniform number between -1/2 and 1/2, which is correct for Laplace noise.

    Args:
        epsilon: claimed epsilon. The claim is true for inputs with an L1 distance of at most
            `sensitivity`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Habernal (2022), equations 6 and 7.

    Example:
        >>> DPTextRepaired(2.0).steps(1).noise
        Laplace(scale=0.5, variant='centred')
    """

    source: ClassVar[str] = (
        "Habernal (2022), How reparametrization trick broke differentially-private text "
        "representation learning, ACL, equations 6 and 7"
    )
    fault: ClassVar[str] = "nothing: with the draw on [-1/2, 1/2) the formula gives Laplace noise"
    sound: ClassVar[bool] = True

    def steps(self, dim: int) -> Steps:
        """Return the only step: add Laplace noise of scale sensitivity / epsilon.

        The noise is computed by the corrected formula.
        """
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(Laplace(scale, "centred"))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class HalvedOutput(Sensitive):
    """Laplace mechanism with a halved output: ``(x + s) / 2``, where s is the noise.

    This mechanism is the control "wrong sensitivity" in the code of Habernal (2022).

    The noise s has the correct scale, sensitivity / epsilon. The output is halved after the noise
    is added. This is post-processing, which cannot increase the privacy loss. The claim is
    therefore true, although the name of the control suggests an error. The class `HalfNoise` does
    contain this error.

    Args:
        epsilon: claimed epsilon. The claim is true for inputs with an L1 distance of at most
            `sensitivity`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        Habernal (2022), code of the sanity check; Dwork and Roth (2014), proposition 2.1
        (post-processing).

    Example:
        >>> HalvedOutput(1.0).steps(1).factor
        0.5
    """

    source: ClassVar[str] = (
        "Habernal (2022), How reparametrization trick broke differentially-private text "
        "representation learning, ACL, reference code (wrong sensitivity)"
    )
    fault: ClassVar[str] = "nothing: halving the noisy output is post-processing"
    sound: ClassVar[bool] = True

    def steps(self, dim: int) -> Steps:
        """Return the steps: add noise of scale sensitivity / epsilon, then halve the sum.

        The noise is Laplace noise.
        """
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(Laplace(scale), factor=0.5)


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class HalfNoise(Sensitive):
    """Laplace mechanism with half of the necessary scale: sensitivity / (2 epsilon).

    Args:
        epsilon: claimed epsilon. The claim is false, because the true privacy loss is 2 epsilon.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field, or the resulting noise scale, is not in (0, 1e300].

    Source:
        A control of this package, based on Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> HalfNoise(1.0).steps(1).noise.scale
        0.5
    """

    source: ClassVar[str] = "dpcore, a control built on Dwork and Roth (2014), theorem 3.6"
    fault: ClassVar[str] = "half the scale that the sensitivity needs: loses 2 epsilon"
    sound: ClassVar[bool] = False

    def steps(self, dim: int) -> Steps:
        """Return the only step: add Laplace noise of scale sensitivity / (2 epsilon)."""
        scale = noise_scale("sensitivity / (2 epsilon)", self.sensitivity / 2.0, self.epsilon)
        return Steps(Laplace(scale))


SYSTEMS: tuple[type[System], ...] = (
    LaplaceMechanism,
    ADePT,
    ADePTClipL1,
    ADePTScaled,
    ADePTReference,
    DPText,
    DPTextRepaired,
    HalvedOutput,
    HalfNoise,
)
"""The classes of published systems."""

NATIVE.update((cls.__name__, cls) for cls in SYSTEMS)
