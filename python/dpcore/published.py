"""Systems of the literature, parameterised as published, each with the claim it makes.

For audits and experiments, not for releasing data: see `dpcore.sample`.

A `claim` is a statement that may be false: `sound` states which claims hold, `fault` what is wrong
with the others, and `default_pair` is the pair of inputs on which it shows.
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
    """List the module's own names.

    Names that it imports can be imported from here too, but are not shown.
    """
    return [*__all__]


def noise_scale(formula: str, numerator: float, epsilon: float) -> float:
    """Compute and check the noise scale numerator / epsilon.

    Two valid fields can still give a scale out of range.
    """
    name = f"noise scale {formula}"
    return real(name, numerator / epsilon, low=0.0, high=LARGEST, open_low=True)


def _constant_entry(norm: Norm, radius: float, dim: int, share: float) -> float:
    """Compute the entry of a constant vector whose norm is the radius or one rounding below.

    Never above: a clip would then change the very input that was chosen to lie on its ball.
    """
    level = radius / share
    while distance(Pair(np.zeros(dim), np.full(dim, level)), norm) > radius:
        level = math.nextafter(level, 0.0)
    return level


@dataclass(frozen=True, slots=True, repr=False)
class System(Native):
    """Base of published systems: epsilon, which is the claim, and the facts about that claim.

    Attributes:
        norm: norm in which two inputs are neighbours ("l1", "l2", "linf"). None means any two
            inputs, because the system clips.
        source: where it was published.
        fault: what is wrong with it, one line.
        sound: True if the claim is true.
    """

    epsilon: float

    norm: ClassVar[str | None] = None
    source: ClassVar[str]
    fault: ClassVar[str]
    sound: ClassVar[bool]

    def __post_init__(self) -> None:
        """Check every number, and the noise scale that they give together."""
        for name in ("epsilon", "sensitivity", "clip"):
            if name in type(self).__dataclass_fields__:
                object.__setattr__(self, name, positive(name, getattr(self, name)))
        self.steps(1)

    @property
    def claim(self) -> float:
        """The epsilon it claims."""
        return self.epsilon

    @property
    def sensitivity(self) -> float:
        """The largest distance of two inputs in the claim: a bound, or the diameter of the clip."""
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
    """Systems calibrated to an L1 sensitivity that the caller states."""

    sensitivity: float = 1.0

    norm: ClassVar[str | None] = "l1"

    def default_pair(self, dim: int = 2) -> Pair:
        """Return zeros and ``sensitivity / dim`` in every entry: the full L1 distance, never more.

        In many entries attacks see more of the same loss on a pair that differs in one of them:
        `dpcore.pairs.patterns(dim, "one")` at sensitivity 1.
        """
        dim = dimension(dim)
        level = _constant_entry("l1", self.sensitivity, dim, float(dim))
        return Pair(np.zeros(dim), np.full(dim, level))


@dataclass(frozen=True, slots=True, repr=False)
class Clipped(System):
    """Systems that clip every input to a ball of radius `clip`, so that any two are neighbours."""

    clip: float = 1.0

    norm: ClassVar[str | None] = None
    ball: ClassVar[Literal["l1", "l2"]] = "l2"

    @property
    def sensitivity(self) -> float:
        """The diameter of the clip ball, 2 C, in the norm of the clip."""
        return 2.0 * self.clip

    def default_pair(self, dim: int = 2) -> Pair:
        """Return opposite corners of the ball: ``+c`` and ``-c`` in every entry, with norm C."""
        dim = dimension(dim)
        share = math.sqrt(dim) if self.ball == "l2" else float(dim)
        level = _constant_entry(self.ball, self.clip, dim, share)
        return Pair(np.full(dim, level), np.full(dim, -level))

    def steps(self, dim: int) -> Steps:
        """Return a clip and then Laplace noise of scale 2 C / epsilon in every entry."""
        scale = noise_scale("2 clip / epsilon", 2.0 * self.clip, self.epsilon)
        return Steps(Laplace(scale), clip=ClipStep(self.ball, self.clip))


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class LaplaceMechanism(Sensitive):
    """The Laplace mechanism: ``x + s``, s Laplace of scale b = sensitivity / epsilon.

    Args:
        epsilon: the claim; true for inputs at L1 distance at most `sensitivity`.
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
    """ADePT as published: clip in L2 to C, add Laplace noise of scale 2 C / epsilon.

    Laplace noise is calibrated to the L1 distance, and two clipped inputs can be 2 C sqrt(dim)
    apart in L1: the loss on the default pair is epsilon sqrt(dim).

    Args:
        epsilon: the claim; true at dim = 1 only.
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
    """ADePT repaired by its clip: clip in L1 to C, add Laplace noise of scale 2 C / epsilon.

    Args:
        epsilon: the claim; true, since two clipped inputs have L1 distance at most 2 C.
        clip: radius C of the L1 ball, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

    Source:
        The remedy of Habernal (2021), section 7; Dwork and Roth (2014), theorem 3.6.

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
    """ADePT repaired by its noise: clip in L2 to C, noise of scale 2 C sqrt(dim) / epsilon.

    Args:
        epsilon: the claim; true, since the L1 diameter of the L2 ball is 2 C sqrt(dim).
        clip: radius C of the L2 ball, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

    Source:
        The remedy of Habernal (2021), section 7; Dwork and Roth (2014), theorem 3.6.

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
    """ADePT as the reference code simplifies it: zeros against ones, Laplace of scale 1 / epsilon.

    The scale takes the distance of the pair in one entry (Linf) for the distance of the whole
    vector, so the loss is epsilon dim. The real system on its own worst pair loses epsilon
    sqrt(dim) (`ADePT`); this one is kept to reproduce the published figure.

    Args:
        epsilon: the claim; true at dim = 1 only.

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
        """The Linf distance of zeros and ones."""
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
    """DPText as published: Laplace noise by a formula with a uniform draw that is not centred.

    The noise is never negative, so P(output < x) = 0 and the loss is infinite for any dim.

    Args:
        epsilon: the claim; false for every epsilon.
        sensitivity: largest L1 distance between neighbours, in the units of x.
        nan: what becomes of the undefined half of the draws, see `DPTextNoise`.

    Raises:
        TypeError: if a field is of the wrong kind.
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
    """DPText with its uniform draw centred: the Laplace mechanism again.

    Args:
        epsilon: the claim; true for inputs at L1 distance at most `sensitivity`.
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
    """The reference code's "wrong sensitivity" control: ``(x + s) / 2``, s Laplace, full scale.

    Halving comes after the noise and cannot cost privacy (post-processing), so the claim holds
    and the control's name is a mistake. `HalfNoise` is what the name promises.

    Args:
        epsilon: the claim; true for inputs at L1 distance at most `sensitivity`.
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
    """The Laplace mechanism with half the noise it needs: b = sensitivity / (2 epsilon).

    Args:
        epsilon: the claim; the true loss is 2 epsilon.
        sensitivity: largest L1 distance between neighbours, in the units of x.

    Raises:
        TypeError: if a field is not a number.
        ValueError: if a field or the noise scale is not in (0, 1e300].

    Source:
        A control of this package, built on Dwork and Roth (2014), theorem 3.6.

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
