"""Faulty noise mechanisms from the literature, each with a repaired version.

A `Fault` consists of a faulty mechanism, an input on which the fault appears, and the names of the
checks that must find the fault. It also has a repaired mechanism, which does the same task and must
pass all checks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import choice, invalid, mistyped, vector
from ..mechanisms import DPTextNoise, Identity, Laplace, Native
from ..records import Record, frozen_array
from ..report.shown import Shown
from .checks import CHECKS

_EXAMPLE_ROW = np.array([0.0, 0.25, 1.0, 0.5])
"""Example of a row after min-max normalisation: its minimum is 0 and its maximum is 1."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Fault(Record):
    """Example of a mechanism with a fault in its noise, together with a repaired mechanism.

    Args:
        name: name of the fault.
        mechanism: mechanism with the fault, a callable `(x, size, rng) -> outputs`.
        x: input at which checks find the fault, shape `(dim,)`.
        flagged_by: names of the checks that must find the fault. The name "fork" stands for the
            function `fork_reuse`. All other names are names of checks of the function `inspect`.
        repaired: mechanism that does the same task without the fault.
        what: description of the fault on one line.
        source: publication or explanation of the fault.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if `x` is not a vector of finite numbers, or `flagged_by` contains no valid
            check.

    Example:
        >>> from dpcore.structure import FAULTS, inspect
        >>> fault = FAULTS[0]
        >>> fault.name, inspect(fault.mechanism, fault.x, rng=1)["rank"].flagged
        ('shared_draw', True)
        >>> inspect(fault.repaired, fault.x, rng=1).passed
        True
    """

    name: str
    mechanism: Any
    x: npt.NDArray[np.float64]
    flagged_by: tuple[str, ...]
    repaired: Any
    what: str
    source: str

    def __post_init__(self) -> None:
        """Check the fields and freeze the input."""
        for name, value in (("mechanism", self.mechanism), ("repaired", self.repaired)):
            if not (callable(value) or isinstance(value, Native)):
                raise mistyped(name, "a mechanism", value)
        object.__setattr__(self, "x", frozen_array(vector("x", self.x)))
        if not isinstance(self.flagged_by, tuple):
            raise mistyped("flagged_by", "a tuple of names of checks", self.flagged_by)
        if not self.flagged_by:
            raise invalid("flagged_by", "at least one name", self.flagged_by)
        for name in self.flagged_by:
            choice("flagged_by", name, (*CHECKS, "fork"))


@dataclass(frozen=True, slots=True, repr=False)
class SharedDraw(Shown):
    """Faulty mechanism: the same Laplace draw is added to all entries of one output.

    Args:
        scale: scale of the noise.
    """

    scale: float = 1.0

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        return np.asarray(x) + rng.laplace(scale=self.scale, size=(size, 1))


@dataclass(frozen=True, slots=True, repr=False)
class SharedRow(Shown):
    """Faulty mechanism: the same vector of noise is added to all outputs of one call.

    Args:
        scale: scale of the noise.
    """

    scale: float = 1.0

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        noise = rng.laplace(scale=self.scale, size=len(x))
        return np.tile(np.asarray(x) + noise, (size, 1))


@dataclass(frozen=True, slots=True, repr=False)
class FixedSeed(Shown):
    """Faulty mechanism: every call seeds the random generator of the noise with the same number.

    Args:
        scale: scale of the noise.
        seed: seed of every call.
    """

    scale: float = 1.0
    seed: int = 0

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        own = np.random.default_rng(self.seed)
        return np.asarray(x) + own.laplace(scale=self.scale, size=(size, len(x)))


@dataclass(frozen=True, slots=True, repr=False)
class RowRange(Shown):
    """Faulty mechanism: the scale of the Laplace noise depends on the private input.

    The scale is the largest entry of the private input minus the smallest entry, divided by
    epsilon.

    Args:
        epsilon: number by which the difference of the two entries is divided.
    """

    epsilon: float = 1.0

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        scale = (np.max(x) - np.min(x)) / self.epsilon
        return np.asarray(x) + rng.laplace(scale=scale, size=(size, len(x)))


@dataclass(frozen=True, slots=True, repr=False)
class Float32Laplace(Shown):
    """Faulty mechanism: Laplace noise computed from a uniform number of 24 bits, as in torch.

    The uniform number u is a multiple of 2^-23 in [2^-23 - 1, 1). The noise is
    ``-b sgn(u) ln(1 - abs(u))``, so the absolute value of the noise is at most
    ``b ln(2^23) = 15.942385 b``.

    Args:
        scale: scale b of the noise.
    """

    scale: float = 1.0

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`, float32."""
        grid = rng.integers(1 - 2**23, 2**23, size=(size, len(x)))
        u = (grid * 2.0**-23).astype(np.float32)
        noise = -np.float32(self.scale) * np.sign(u) * np.log1p(-np.abs(u))
        return np.asarray(x, np.float32) + noise


@dataclass(slots=True, repr=False)
class TrainingOnly(Shown):
    """Faulty mechanism: noise is added in train mode but not in eval mode, as in dropout.

    Args:
        training: True for train mode, False for eval mode.
        scale: scale of the noise.
    """

    training: bool = True
    scale: float = 1.0

    def train(self, mode: bool = True) -> TrainingOnly:
        """Switch this mechanism to train mode if `mode` is True, and to eval mode otherwise."""
        self.training = mode
        return self

    def eval(self) -> TrainingOnly:
        """Switch this mechanism to eval mode, in which it should add noise but does not."""
        return self.train(False)

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        noise = rng.laplace(scale=self.scale, size=(size, len(x)))
        return np.asarray(x) + float(self.training) * noise


class Always(TrainingOnly):
    """Mechanism without the fault of `TrainingOnly`: adds noise in train mode and in eval mode."""

    __slots__ = ()

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        return np.asarray(x) + rng.laplace(scale=self.scale, size=(size, len(x)))


@dataclass(slots=True, repr=False)
class OwnGenerator(Shown):
    """Faulty mechanism: all calls use one random generator, which was made before the first call.

    If a process is forked, each child gets a copy of this generator and adds the same noise.

    Args:
        scale: scale of the noise.
        generator: the random generator for all calls.
    """

    scale: float = 1.0
    generator: np.random.Generator = field(default_factory=np.random.default_rng)

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw outputs, shape `(size, dim)`."""
        return np.asarray(x) + self.generator.laplace(scale=self.scale, size=(size, len(x)))


_DPTEXT_SOURCE = (
    "Beigi et al. (2019), I Am Not What I Write; refuted by Habernal (2022), theorem 3.2"
)
_DROPOUT_SOURCE = "Srivastava et al. (2014), Dropout: noise in training alone"

FAULTS: tuple[Fault, ...] = (
    Fault(
        "shared_draw", SharedDraw(), _EXAMPLE_ROW, ("rank", "correlation", "shared_size"),
        Laplace(4.0),
        "one Laplace draw for all coordinates of a row: the differences are exact",
        "the code released with Lyu, He and Li (2020), Differentially Private Representation for"
        " NLP: noise of shape (batch, 1)",
    ),
    Fault(
        "dptext", DPTextNoise(1.0), _EXAMPLE_ROW, ("one_sided", "atom", "off_centre"),
        Laplace(1.0, "centred"),
        "a uniform draw on [0, 1) in a formula for [-1/2, 1/2), undefined values set to 0",
        _DPTEXT_SOURCE,
    ),
    Fault(
        "dptext_drawn_again", DPTextNoise(1.0, nan="resample"), _EXAMPLE_ROW,
        ("one_sided", "off_centre"), Laplace(1.0, "centred"),
        "the same formula, undefined values drawn again: never below the input",
        _DPTEXT_SOURCE,
    ),
    Fault(
        "fixed_seed", FixedSeed(), _EXAMPLE_ROW, ("shared_calls",), Laplace(1.0),
        "a generator seeded with one number in every call: two releases differ by no noise",
        "Garfinkel and Leclerc (2020), Randomness Concerns When Deploying Differential Privacy",
    ),
    Fault(
        "shared_row", SharedRow(), _EXAMPLE_ROW, ("shared_rows",), Laplace(1.0),
        "one draw of noise for all rows of a batch: their differences are exact",
        "Kifer et al. (2020), Guidelines for Implementing and Auditing Differentially Private"
        " Systems",
    ),
    Fault(
        "training_only", TrainingOnly(), _EXAMPLE_ROW, ("modes",), Always(),
        "noise in train mode only, so that what is released has none",
        _DROPOUT_SOURCE,
    ),
    Fault(
        "no_noise_in_eval", TrainingOnly(training=False), _EXAMPLE_ROW, ("no_noise", "modes"),
        Always(training=False),
        "the same layer in the mode in which it is used",
        _DROPOUT_SOURCE,
    ),
    Fault(
        "row_range", RowRange(), _EXAMPLE_ROW, ("scale",), Laplace(1.0),
        "noise scaled by the range of the row itself: its size tells the range",
        "Nissim, Raskhodnikova and Smith (2007), Smooth Sensitivity",
    ),
    Fault(
        "float32_laplace", Float32Laplace(), _EXAMPLE_ROW, ("grid",), Laplace(1.0),
        "Laplace noise of 24 random bits: few values in the tail, none beyond 15.942385 scales",
        "Mironov (2012), On Significance of the Least Significant Bits for Differential Privacy;"
        " torch.distributions.Laplace in float32",
    ),
    Fault(
        "no_noise", Identity(), _EXAMPLE_ROW, ("no_noise",), Laplace(1.0),
        "no noise at all",
        "Habernal (2022), section 5, the baseline that copies its input",
    ),
    Fault(
        "forked_generator", OwnGenerator(), _EXAMPLE_ROW, ("fork",), Laplace(1.0),
        "a generator made on import: forked workers add the noise of their parent",
        "CVE-2013-1900: the generator of OpenSSL, copied by the forks of PostgreSQL",
    ),
)  # fmt: skip
"""All faults, each with the checks that must find it."""
