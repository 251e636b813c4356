"""Systems from the literature, with their published parameters and their claims.

For audits and experiments, not for releasing data: see `dpcore.sample`.

A `claim` is a statement that may be false. `sound` is True if the claim holds, `fault` describes
the error of the system, and `default_pair` returns the pair of inputs with the largest loss.
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
    """List the public names of the module; imported names are not shown."""
    return [*__all__]


def noise_scale(formula: str, numerator: float, epsilon: float) -> float:
    """Compute the noise scale numerator / epsilon, and check it.

    The scale can be out of range although both numbers are valid.
    """
    name = f"noise scale {formula}"
    return real(name, numerator / epsilon, low=0.0, high=LARGEST, open_low=True)


def _constant_entry(norm: Norm, radius: float, dim: int, share: float) -> float:
    """Compute the entry of a constant vector with norm `radius`, or one rounding below it.

    The norm is never above the radius. Otherwise, the clip would change an input on the sphere.
    """
    level = radius / share
    while distance(Pair(np.zeros(dim), np.full(dim, level)), norm) > radius:
        level = math.nextafter(level, 0.0)
    return level


@dataclass(frozen=True, slots=True, repr=False)
class System(Native):
    """Base class of published systems: the claim epsilon, and facts about this claim.

    Attributes:
        norm: norm in which two inputs are neighbours ("l1", "l2", "linf"). None means any two
            inputs, because the system clips.
        source: publication of the system.
        fault: description of the system's error, one line.
        sound: True if the claim is true.
    """

    epsilon: float

    norm: ClassVar[str | None] = None
    source: ClassVar[str]
    fault: ClassVar[str]
    sound: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check every number, and the noise scale that they give."""
        for name in ("epsilon", "sensitivity", "clip"):
            if name in type(self).__dataclass_fields__:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        self.steps(1)

    @property
    def claim(self) -> float:
        """The epsilon that the system claims."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """The largest distance of neighbours: a given bound, or the diameter of the clip ball."""
        raise NotImplementedError(f"{type(self).__name__} states no sensitivity")

    def default_pair(self, dim: int = 2) -> Pair:
        """Return the worst pair of inputs: the pair with the largest loss.

        Args:
            dim: number of entries, at least 1.

        Returns:
            Two neighbouring inputs of shape `(dim,)`.
        """
        raise NotImplementedError(f"{type(self).__name__} states no pair")


@dataclass(frozen=True, slots=True, repr=False)
class Sensitive(System):
    """Base class of systems with an L1 sensitivity that the caller states."""

    sensitivity: float = 1.0

    norm: ClassVar[str | None] = "l1"

    def default_pair(self, dim: int = 2) -> Pair:
        """Return zeros, and ``sensitivity / dim`` in every entry.

        The L1 distance of the two inputs is `sensitivity`, and never more. With many entries, an
        attack detects the same loss more easily on a pair that differs in one entry only:
        `dpcore.pairs.patterns(dim, "one")` at sensitivity 1.
        """
        dim = dimension(dim)
        level = _constant_entry("l1", self.sensitivity, dim, float(dim))
        return Pair(np.zeros(dim), np.full(dim, level))


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(System):
    """Base class of systems that clip inputs to a ball of radius `clip`; all are neighbours."""

    clip: float = 1.0

    norm: ClassVar[str | None] = None
    ball: ClassVar[Literal["l1", "l2"]] = "l2"

    @property
    def sensitivity(self) -> float:
        """The diameter of the clip ball in the norm of the clip: 2 C."""
        return 2.0 * self.clip

    def default_pair(self, dim: int = 2) -> Pair:
        """Return opposite corners of the ball: ``+c`` and ``-c`` in every entry, with norm C."""
        dim = dimension(dim)
        share = math.sqrt(dim) if self.ball == "l2" else float(dim)
        level = _constant_entry(self.ball, self.clip, dim, share)
        return Pair(np.full(dim, level), np.full(dim, -level))

    def steps(self, dim: int) -> Steps:
        """Return the clip, then Laplace noise of scale 2 C / epsilon in every entry."""
        scale = noise_scale("2 clip / epsilon", 2.0 * self.clip, self.epsilon)
        return Steps(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class LaplaceMechanism(Sensitive):
    """Laplace mechanism: ``x + s``, where s has a Laplace law of scale b = sensitivity / epsilon.

    Args:
        epsilon: the claim, which is true for inputs at L1 distance at most `sensitivity`.
        sensitivity: largest L1 distance between neighbours, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
        """Return Laplace noise of scale sensitivity / epsilon."""
        return Steps(Laplace(noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePT(Clipped):
    """ADePT as published: clip in L2 to C, then add Laplace noise of scale 2 C / epsilon.

    The noise has the scale for an L1 distance of 2 C, but the L1 distance of two clipped inputs can
    be 2 C sqrt(dim). The loss on the default pair is therefore epsilon sqrt(dim).

    Args:
        epsilon: the claim, which is true at dim = 1 only.
        clip: radius C of the L2 ball, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
    """ADePT with a corrected clip: clip in L1 to C, then add Laplace noise of scale 2 C / epsilon.

    Args:
        epsilon: the claim, which is true: two clipped inputs have L1 distance at most 2 C.
        clip: radius C of the L1 ball, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
    """ADePT with corrected noise: clip in L2 to C, noise of scale 2 C sqrt(dim) / epsilon.

    Args:
        epsilon: the claim, which is true: the L1 diameter of the L2 ball is 2 C sqrt(dim).
        clip: radius C of the L2 ball, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
        """Return the clip, then Laplace noise of scale 2 C sqrt(dim) / epsilon in every entry."""
        dim = dimension(dim)
        diameter = 2.0 * self.clip * math.sqrt(dim)
        scale = noise_scale("2 clip sqrt(dim) / epsilon", diameter, self.epsilon)
        return Steps(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class ADePTReference(System):
    """ADePT as simplified in the reference code: Laplace noise of scale 1 / epsilon without a clip.

    The default pair is zeros and ones. The scale uses the distance of one entry (Linf) as the
    distance of the whole vector, so the loss is epsilon dim. The published system loses epsilon
    sqrt(dim) on its own worst pair (`ADePT`). This class reproduces the published figure.

    Args:
        epsilon: the claim, which is true at dim = 1 only.

    Raises:
        TypeError: if `epsilon` is not a number.
        ValueError: if `epsilon` or the noise scale is not in (0, 1e300].

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
        """The Linf distance of zeros and ones, 1."""
        return 1.0

    def default_pair(self, dim: int = 2) -> Pair:
        """Return the pair of zeros and ones."""
        return zeros_ones(dim)

    def steps(self, dim: int) -> Steps:
        """Return Laplace noise of scale 1 / epsilon."""
        return Steps(Laplace(noise_scale("1 / epsilon", 1.0, self.epsilon)))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class DPText(Sensitive):
    """DPText as published: Laplace noise from a formula with an uncentred uniform draw.

    The noise is never negative. Therefore P(output < x) = 0, and the loss is infinite for any dim.

    Args:
        epsilon: the claim, which is false for every epsilon.
        sensitivity: largest L1 distance between neighbours, in the units of x.
        nan: value for the half of the draws that is undefined, see `DPTextNoise`.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a number or the noise scale is not in (0, 1e300], or `nan` is unknown.

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
        """Return the faulty noise of scale sensitivity / epsilon."""
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(DPTextNoise(scale, self.nan))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class DPTextRepaired(Sensitive):
    """DPText with a centred uniform draw, which makes it a Laplace mechanism.

    Args:
        epsilon: the claim, which is true for inputs at L1 distance at most `sensitivity`.
        sensitivity: largest L1 distance between neighbours, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
        """Return Laplace noise of scale sensitivity / epsilon by the centred formula."""
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(Laplace(scale, "centred"))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class HalvedOutput(Sensitive):
    """Control "wrong sensitivity" of the reference code: ``(x + s) / 2`` with Laplace noise s.

    The noise has its full scale. The output is halved after the noise is added, which cannot
    increase the loss (post-processing). The claim therefore holds, although the name of the control
    states an error. `HalfNoise` has that error.

    Args:
        epsilon: the claim, which is true for inputs at L1 distance at most `sensitivity`.
        sensitivity: largest L1 distance between neighbours, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
        """Return Laplace noise of scale sensitivity / epsilon, then half of the output."""
        scale = noise_scale("sensitivity / epsilon", self.sensitivity, self.epsilon)
        return Steps(Laplace(scale), factor=0.5)


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class HalfNoise(Sensitive):
    """Laplace mechanism with half of the necessary noise: b = sensitivity / (2 epsilon).

    Args:
        epsilon: the claim, which is false: the true loss is 2 epsilon.
        sensitivity: largest L1 distance between neighbours, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

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
        """Return Laplace noise of scale sensitivity / (2 epsilon)."""
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
