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
from .mechanisms import LARGEST, ClipStep, DPTextNoise, Formula, Laplace, Native, positive
from .mechanisms.declarations import NATIVE
from .mechanisms.dptext import Undefined
from .pairs import dimension, distance, zeros_ones
from .pairs.differences import Norm
from .records import Pair
from .suggestions import explain_argument_errors

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


def noise_scale(shown_formula: str, numerator: float, epsilon: float) -> float:
    """Compute the scale of noise as numerator / epsilon, and check that it is in (0, 1e300].

    The error message shows the scale as the formula `shown_formula`.
    """
    name = f"noise scale {shown_formula}"
    return real(name, numerator / epsilon, low=0.0, high=LARGEST, open_low=True)


def _entry_of_constant_vector(norm: Norm, radius: float, dim: int, norm_of_ones: float) -> float:
    """Compute the number c for which the vector (c, ..., c) has the norm `radius`, up to rounding.

    The norm of the vector is never above `radius`, so that clipping to `radius` does not change the
    vector.
    """
    level = radius / norm_of_ones
    while distance(Pair(np.zeros(dim), np.full(dim, level)), norm) > radius:
        level = math.nextafter(level, 0.0)
    return level


@dataclass(frozen=True, slots=True, repr=False)
class System(Native):
    """Base class of private systems from publications, with the epsilon that each system claims.

    Attributes:
        norm: norm that defines neighbouring inputs: "l1", "l2" or "linf". Two inputs are neighbours
            if their distance in this norm is at most the sensitivity. None means that any two
            inputs are neighbours, because the system clips its inputs.
        source: publication that describes the system.
        fault: description of the error in the system, in one line. The text begins with "nothing"
            if the system has no error.
        sound: True if the claim is true: the privacy loss of the system is at most the claimed
            epsilon.
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
        """The epsilon that this system claims."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """Largest distance between two neighbouring inputs of this system, in its norm.

        For some systems the user gives this number. If a system clips its inputs to a ball, the
        number is the diameter of the ball.
        """
        raise NotImplementedError(f"{type(self).__name__} states no sensitivity")

    def default_pair(self, dim: int = 2) -> Pair:
        """Return two neighbouring inputs on which this system has its largest privacy loss.

        Args:
            dim: number of entries of each input, at least 1.

        Returns:
            The two inputs, each of shape `(dim,)`.
        """
        raise NotImplementedError(f"{type(self).__name__} states no pair")


@dataclass(frozen=True, slots=True, repr=False)
class Sensitive(System):
    """Base class of published systems for which the user gives the L1 sensitivity.

    The L1 sensitivity is the largest L1 distance between two neighbouring inputs.
    """

    sensitivity: float = 1.0

    norm: ClassVar[str | None] = "l1"

    def default_pair(self, dim: int = 2) -> Pair:
        """Return two neighbouring inputs: a vector of zeros, and a vector of equal entries.

        Each entry of the second vector is ``sensitivity / dim``.

        The privacy loss of this system is largest on these inputs.

        The L1 distance between the inputs is `sensitivity`, up to rounding, and is never larger.
        Every two inputs that differ by `sensitivity` in a single entry have this privacy loss. If
        `dim` is large, an attack detects the loss more easily on such inputs. For sensitivity 1,
        `dpcore.pairs.patterns(dim, "one")` returns pairs that differ in a single entry.
        """
        dim = dimension(dim)
        level = _entry_of_constant_vector("l1", self.sensitivity, dim, float(dim))
        return Pair(np.zeros(dim), np.full(dim, level))


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(System):
    """Base class of published systems that clip each input to a ball of radius `clip`.

    Any two inputs are neighbours, because the distance between clipped inputs is bounded.
    """

    clip: float = 1.0

    norm: ClassVar[str | None] = None
    ball: ClassVar[Literal["l1", "l2"]] = "l2"

    @property
    def sensitivity(self) -> float:
        """Diameter 2 C of the ball to which this system clips its inputs; C is the radius `clip`.

        The diameter is measured in the same norm as the clipping.
        """
        return 2.0 * self.clip

    def default_pair(self, dim: int = 2) -> Pair:
        """Return two inputs: all entries are ``+c`` in one input, and ``-c`` in the other input.

        The privacy loss of this system is largest on these inputs.

        The number c is chosen so that the norm of each input is equal to the radius `clip` of the
        ball.
        """
        dim = dimension(dim)
        share = math.sqrt(dim) if self.ball == "l2" else float(dim)
        level = _entry_of_constant_vector(self.ball, self.clip, dim, share)
        return Pair(np.full(dim, level), np.full(dim, -level))

    def steps(self, dim: int) -> Formula:
        """Return the two steps of this system: clip the input, then add Laplace noise.

        The scale of the noise is ``2 clip / epsilon``, where `clip` is the radius of the clipping.
        """
        scale = noise_scale("2 clip / epsilon", 2.0 * self.clip, self.epsilon)
        return Formula(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class LaplaceMechanism(Sensitive):
    """Laplace mechanism: it adds Laplace noise of scale sensitivity / epsilon to the input.

    Each entry of the input gets independent noise.

    Args:
        epsilon: claimed epsilon. The claim is true: for two inputs with an L1 distance of at most
            `sensitivity`, the privacy loss is at most `epsilon`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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

    def steps(self, dim: int) -> Formula:
        """Return the only step: add Laplace noise of scale sensitivity / epsilon to the input."""
        return Formula(
            Laplace(noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon))
        )


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class ADePT(Clipped):
    """The private text encoder ADePT as published; the privacy claim of ADePT is false.

    The system clips an input to L2 norm C, and then adds Laplace noise of scale 2 C / epsilon to
    each entry.

    This noise is large enough only for inputs with an L1 distance of at most 2 C. However, the L1
    distance between two clipped inputs with dim entries can be 2 C sqrt(dim). The largest privacy
    loss is therefore epsilon sqrt(dim). This loss occurs on the pair that `default_pair` returns.

    Args:
        epsilon: claimed epsilon. The claim is true only if inputs have a single entry.
        clip: largest L2 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class ADePTClipL1(Clipped):
    """The private text encoder ADePT with a correction: it clips inputs in the L1 norm.

    The system clips an input to L1 norm C, and then adds Laplace noise of scale 2 C / epsilon to
    each entry.

    ADePT as published clips in the L2 norm, and therefore its privacy claim is false.

    Args:
        epsilon: claimed epsilon. The claim is true, because the L1 distance between two clipped
            inputs is at most 2 C.
        clip: largest L1 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class ADePTScaled(Clipped):
    """The private text encoder ADePT with a correction: the noise has a larger scale.

    The system clips an input to L2 norm C, and then adds Laplace noise of scale 2 C sqrt(dim) /
    epsilon to each of the dim entries.

    ADePT as published uses the scale 2 C / epsilon, and therefore its privacy claim is false.

    Args:
        epsilon: claimed epsilon. The claim is true, because the L1 distance between two clipped
            inputs is at most 2 C sqrt(dim).
        clip: largest L2 norm C of an input after clipping, in the units of the inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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

    def steps(self, dim: int) -> Formula:
        """Return the two steps of this system: clip the input, then add Laplace noise.

        The scale of the noise is ``2 clip sqrt(dim) / epsilon``, where `clip` is the radius of the
        clipping.
        """
        dim = dimension(dim)
        diameter = 2.0 * self.clip * math.sqrt(dim)
        scale = noise_scale("2 clip sqrt(dim) / epsilon", diameter, self.epsilon)
        return Formula(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class ADePTReference(System):
    """A simplified version of the text encoder ADePT, from the code of Habernal (2022).

    The system adds Laplace noise of scale 1 / epsilon to each entry, and does not clip the input.

    The two inputs are a vector of dim zeros and a vector of dim ones. Their Linf distance is 1, and
    their L1 distance is dim. Laplace noise needs the scale L1 distance / epsilon, but this system
    uses the scale Linf distance / epsilon. The privacy loss is therefore dim * epsilon. ADePT as
    published (class `ADePT`) has a smaller privacy loss, at most epsilon sqrt(dim). This class
    reproduces figure 1 of Habernal (2022).

    Args:
        epsilon: claimed epsilon. The claim is true only if inputs have a single entry.

    Raises:
        TypeError: if `epsilon` is not a number.
        ValueError: if `epsilon`, or the resulting scale of the noise, is not in (0, 1e300].

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
        """The number 1, the Linf distance between the two inputs of this system.

        The two inputs are a vector of zeros and a vector of ones.
        """
        return 1.0

    def default_pair(self, dim: int = 2) -> Pair:
        """Return the two inputs of this system: a vector of zeros and a vector of ones.

        Each of the two vectors has `dim` entries.
        """
        return zeros_ones(dim)

    def steps(self, dim: int) -> Formula:
        """Return the only step of this system: add Laplace noise of scale 1 / epsilon."""
        return Formula(Laplace(noise_scale("1 / epsilon", 1.0, self.epsilon)))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class DPText(Sensitive):
    """The private text encoder DPText as published; the privacy claim of DPText is false.

    DPText computes Laplace noise from a uniform random number.

    The formula for Laplace noise requires a uniform number between -1/2 and 1/2. DPText uses a
    uniform number between 0 and 1.

    Therefore the noise is never negative, and an output entry is never below the input entry. The
    privacy loss is infinite for inputs of any dimension.

    Args:
        epsilon: claimed epsilon. The claim is false for every value.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.
        nan: treatment of NaN. The formula gives NaN for half of all random numbers. "zero" replaces
            NaN by 0, "resample" draws another random number, and "keep" leaves NaN in the output.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number, or the resulting scale of the noise, is not in (0, 1e300], or if
            `nan` is not one of its three values.

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

    def steps(self, dim: int) -> Formula:
        """Return the only step of this system: add faulty noise of scale sensitivity / epsilon."""
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Formula(DPTextNoise(scale, self.nan))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class DPTextRepaired(Sensitive):
    """The private text encoder DPText with a correction; this version is a Laplace mechanism.

    DPText computes Laplace noise from a uniform random number.

    This version uses a uniform number between -1/2 and 1/2, as the formula requires. DPText as
    published uses a number between 0 and 1, and therefore its claim is false.

    Args:
        epsilon: claimed epsilon. The claim is true: for two inputs with an L1 distance of at most
            `sensitivity`, the privacy loss is at most `epsilon`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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

    def steps(self, dim: int) -> Formula:
        """Return the only step of this system: add Laplace noise of scale sensitivity / epsilon.

        The noise is computed from a uniform random number between -1/2 and 1/2.
        """
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Formula(Laplace(scale, "centred"))


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class HalvedOutput(Sensitive):
    """Laplace mechanism that divides its noisy output by 2.

    Each output entry is ``(x + s) / 2``. Here x is the input entry and s is Laplace noise. The code
    of Habernal (2022) contains this mechanism as a test case, with the name "wrong sensitivity".

    The noise s has the correct scale, sensitivity / epsilon. The division by 2 is post-processing,
    because it comes after the noise. Post-processing cannot increase the privacy loss. The claim is
    therefore true, although the name "wrong sensitivity" suggests an error. In the class
    `HalfNoise`, the scale of the noise is in fact too small.

    Args:
        epsilon: claimed epsilon. The claim is true: for two inputs with an L1 distance of at most
            `sensitivity`, the privacy loss is at most `epsilon`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

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

    def steps(self, dim: int) -> Formula:
        """Return the two steps of this mechanism: add Laplace noise, then divide the sum by 2.

        The scale of the noise is sensitivity / epsilon.
        """
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Formula(Laplace(scale), factor=0.5)


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class HalfNoise(Sensitive):
    """Laplace mechanism with too little noise; its privacy claim is false.

    The scale of the noise is sensitivity / (2 epsilon), half of the scale that the claim requires.

    Args:
        epsilon: claimed epsilon. The claim is false, because the true privacy loss is 2 `epsilon`.
        sensitivity: largest L1 distance between two neighbouring inputs, in the units of the
            inputs.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument, or the resulting scale of the noise, is not in (0, 1e300].

    Source:
        A test case of dpcore, based on Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> HalfNoise(1.0).steps(1).noise.scale
        0.5
    """

    source: ClassVar[str] = "dpcore, a control built on Dwork and Roth (2014), theorem 3.6"
    fault: ClassVar[str] = "half the scale that the sensitivity needs: loses 2 epsilon"
    sound: ClassVar[bool] = False

    def steps(self, dim: int) -> Formula:
        """Return the only step of this mechanism: add Laplace noise.

        The scale of the noise is sensitivity / (2 epsilon), half of the necessary scale.
        """
        scale = noise_scale("sensitivity / (2 epsilon)", self.sensitivity / 2.0, self.epsilon)
        return Formula(Laplace(scale))


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
