"""Layers that add noise: Laplace, Gaussian and L2 Laplace, in train mode and in eval mode alike."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from .. import mechanisms
from ..calibration import L2Laplace, gaussian_epsilon
from ..calibration import laplace as laplace_scale
from ..errors import delta_level, flag, invalid, mistyped, vector
from ..hints import hinted
from ..mechanisms import positive
from ..pairs import distance
from ..records import Pair
from . import unit
from .needed import torch

__all__ = ["GaussianNoise", "L2LaplaceNoise", "LaplaceNoise", "NoiseLayer"]

_FloatVector = npt.NDArray[np.float64]


@hinted
class NoiseLayer(torch.nn.Module):
    """Base of noise layers: ``layer(x, generator=None)`` is ``x + scale s``, s fresh noise.

    For audits and experiments, not for releasing data: the last bits of floats give the input away
    (`dpcore.sample`), and torch's generators are not cryptographic.

    s is drawn in float64, scaled and added there, and the sum rounded once, to the dtype of x
    (16 bits by way of float32, as torch does). On a device without float64 (mps) it is drawn and
    added on the CPU, which `repr` then says. Train and eval mode are the same. NaN and infinities
    of x stay what they are: to look for them would make a GPU wait in every call, and the
    transforms refuse them.

    The scale is a Python float, which no cast of the module changes (`.half()` would make 1e-8
    zero), and is saved in float64. Or it is learnt: ``scale = sensitivity / min(epsilon, cap)``
    with a parameter `epsilon` that follows the module to its device but stays float64.

    Args:
        scale: the scale of the noise, in the units of x, in (0, 1e300]; or
        sensitivity: largest distance of two inputs, in the norm of the noise, together with
        epsilon: the epsilon wanted: ``scale = sensitivity / epsilon``.
        trainable: True makes `epsilon` a parameter, at which training starts.
        cap: the largest epsilon that training can reach; None for no limit, and then no epsilon
            holds in advance (`caution` says so).

    Raises:
        TypeError: if an argument is of the wrong kind, or both a scale and an epsilon are given.
        ValueError: if a number is out of range.
    """

    _called: ClassVar[str] = "scale"
    """Name of the parameter of the noise."""

    keeps_float64: ClassVar[bool] = True
    """True: its own parameters do not show the dtype of a module."""

    faulty: str = ""
    """Fault of the noise in one sentence; empty for noise that is right."""

    def __init__(
        self,
        scale: float | None = None,
        *,
        sensitivity: float | None = None,
        epsilon: float | None = None,
        trainable: bool = False,
        cap: float | None = None,
    ) -> None:
        super().__init__()
        self.register_parameter("epsilon", None)
        self._elsewhere = ""
        flag("trainable", trainable)
        if cap is not None and not trainable:
            raise mistyped("cap", "left out where no epsilon is learnt (trainable=True)", cap)
        if scale is not None:
            if sensitivity is not None or epsilon is not None or trainable:
                raise mistyped(self._called, "left out where sensitivity and epsilon say it", scale)
            self._numbers: tuple[float, ...] = (_check_number(self._called, scale),)
            return
        if sensitivity is None or epsilon is None:
            raise mistyped(self._called, "given, or else sensitivity and epsilon", scale)
        sensitivity = _check_number("sensitivity", sensitivity)
        epsilon = _check_number("epsilon", epsilon)
        self._numbers = (laplace_scale(epsilon, sensitivity),)
        if trainable:
            limit = math.inf if cap is None else _check_number("cap", cap)
            if epsilon > limit:
                raise invalid("epsilon", f"at most the cap, {limit:g}", epsilon)
            self._numbers = (sensitivity, limit)
            self.epsilon = torch.nn.Parameter(torch.tensor(epsilon, dtype=torch.float64))

    @property
    def scale(self) -> float:
        """The scale of the noise, in the units of x; of a learnt epsilon as it is now."""
        if self.epsilon is None:
            return self._numbers[0]
        sensitivity, cap = self._numbers
        return laplace_scale(min(self._learnt(), cap), sensitivity)

    @property
    def sensitivity(self) -> float | None:
        """The sensitivity that a learnt epsilon divides; None where the scale is fixed."""
        return None if self.epsilon is None else self._numbers[0]

    @property
    def cap(self) -> float | None:
        """The largest epsilon that training can reach; None without one."""
        cap = math.inf if self.epsilon is None else self._numbers[1]
        return None if cap == math.inf else cap

    @property
    def caution(self) -> str:
        """Caution about an epsilon that is learnt, one sentence; empty where none is."""
        if self.epsilon is None:
            return ""
        if self.cap is None:
            return "learnt without a cap: no epsilon holds in advance"
        return f"learnt, at most {self.cap:g}: a limit for later texts, none for its training's"

    @property
    def description(self) -> Any:
        """The native record of this noise, with the scale as it is now."""
        raise NotImplementedError(f"{type(self).__name__} has no description")

    def loss(self, x: npt.ArrayLike, x_prime: npt.ArrayLike, delta: float = 0.0) -> float:
        """Compute the privacy loss of two vectors under this noise; it is not certified.

        Args:
            x: what the noise is added to, shape `(dim,)`.
            x_prime: the other vector, of the same shape.
            delta: in [0, 1); only Gaussian noise has a use for it.

        Returns:
            The smallest epsilon that holds for the two; 0.0 where they are equal, inf where some
            output is possible for one of them alone.

        Raises:
            TypeError: if an argument does not hold real numbers.
            ValueError: if the shapes differ, a number is not finite, or `delta` is out of range.
        """
        first = vector("x", x)
        second = vector("x_prime", x_prime, first.size)
        delta = delta_level(delta)
        return 0.0 if np.array_equal(first, second) else self._loss(first, second, delta)

    def _loss(self, x: _FloatVector, x_prime: _FloatVector, delta: float) -> float:
        """Compute the loss of two vectors that differ."""
        raise NotImplementedError

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        """Draw noise of scale 1: float64 of that shape, which the caller may overwrite."""
        raise NotImplementedError

    def forward(self, x: Any, generator: Any = None) -> Any:
        """Add noise to x.

        Args:
            x: a tensor of float64, float32, bfloat16 or float16; rows along its last dimension.
            generator: a `torch.Generator` on the device of x; None for torch's default one.

        Returns:
            A tensor of the same shape and dtype, on the same device; gradients reach x and a
            learnt `epsilon`.

        Raises:
            TypeError: if x is no tensor of these, or `generator` is none of torch's.
            ValueError: if `generator` is on another device, a learnt epsilon no longer a finite
                number above 0, or x a single number where noise is drawn by rows.
        """
        device = unit.float64_device(unit.checked(x).device)
        if generator is not None and not hasattr(generator, "device"):
            raise mistyped("generator", "a torch.Generator or None", generator)
        if generator is not None and generator.device.type != device.type:
            raise invalid("generator", f"on {device}, where noise is drawn", generator.device)
        if device != x.device:
            self._elsewhere = f"drawn on the CPU: {x.device.type} has no float64"
        noise = self._noise(x.shape, device, generator)
        if self.epsilon is None:
            noise = noise.mul_(self._numbers[0])
        else:
            noise = noise * self._factor().to(device)
        return noise.add_(x.to(device)).to(x.dtype).to(x.device)

    def _learnt(self) -> float:
        """Check the learnt epsilon and return it."""
        if self.epsilon.dtype != torch.float64:
            raise invalid("epsilon", "of float64, which no cast of dpcore's changes", self.epsilon)
        return positive("epsilon", float(self.epsilon.detach()))

    def _factor(self) -> Any:
        """Compute the scale of a learnt epsilon, with its gradient."""
        self._learnt()
        sensitivity, cap = self._numbers
        return sensitivity / self.epsilon.clamp(max=cap)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move the layer: a learnt epsilon follows to where float64 is, and is never cast."""
        # What Module calls for every cast and move; a fixed scale is not among what it looks at.
        kept = self._parameters["epsilon"]
        self._parameters["epsilon"] = None
        super()._apply(fn, recurse)
        self._parameters["epsilon"] = kept
        if kept is not None:
            for one in (kept, kept.grad):
                if one is not None:
                    one.data = unit.move_float64(one.data, fn)
        return self

    def get_extra_state(self) -> Any:
        """Return the numbers that must not be rounded, as a tensor of float64 on the CPU."""
        return torch.tensor(self._numbers, dtype=torch.float64, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Take over saved numbers; a TypeError or ValueError for what is not such a tensor."""
        name, size = f"the state of {type(self).__name__}", len(self._numbers)
        kind = "fixed scale" if self.epsilon is None else "learnt epsilon"
        requirement = f"a tensor of {size} float64, as a layer of {kind} saves it"
        if not isinstance(state, torch.Tensor):
            raise mistyped(name, requirement, state)
        if state.dtype != torch.float64 or state.shape != (size,):
            raise invalid(name, requirement, state)
        first, *rest = state.tolist()
        cap = tuple(one if one == math.inf else positive("cap", one) for one in rest)
        self._numbers = (positive(self._called, first), *cap)

    def extra_repr(self) -> str:
        """Return the parameters and notes on the noise, as `repr` shows them."""
        return "; ".join(filter(None, [self._parameters_shown(), self.caution, self._elsewhere]))

    def _parameters_shown(self) -> str:
        if self.epsilon is None:
            return f"{self._called}={self.scale!r}"
        cap = "" if self.cap is None else f", cap={self.cap!r}"
        return f"sensitivity={self.sensitivity!r}, epsilon={float(self.epsilon.detach())!r}{cap}"


@hinted
class LaplaceNoise(NoiseLayer):
    """Laplace noise in every entry: density ``exp(-abs(s)/b) / (2b)``, for L1 distances.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    Arguments and errors are those of `NoiseLayer`; `scale` is b.

    Source:
        Dwork, McSherry, Nissim and Smith (2006); learnt: Beigi et al. (2019), equation 9.

    Example:
        >>> layer = LaplaceNoise(0.25)
        >>> layer, layer.description
        (LaplaceNoise(scale=0.25), Laplace(scale=0.25, variant='two_branch'))
        >>> layer(torch.zeros(2, 3)).dtype, layer.loss([0.0, 0.0], [1.0, -1.0])
        (torch.float32, 8.0)
        >>> LaplaceNoise(sensitivity=1.0, epsilon=0.1, trainable=True).half().epsilon.item()
        0.1
    """

    @property
    def description(self) -> mechanisms.Laplace:
        """The native record of this noise, with the scale as it is now."""
        return mechanisms.Laplace(self.scale)

    def _loss(self, x: _FloatVector, x_prime: _FloatVector, delta: float) -> float:
        return distance(Pair(x, x_prime), "l1") / self.scale

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        return unit.laplace(unit.uniform(shape, device, generator))


@hinted
class L2LaplaceNoise(NoiseLayer):
    """Noise of density proportional to ``exp(-norm2(s)/b)`` in every row, for L2 distances.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    Rows lie along the last dimension. Arguments and errors are those of `NoiseLayer`; `scale` is
    b, and the mean length of the noise b times the number of entries.

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> layer = L2LaplaceNoise(0.5)
        >>> layer.description, layer.loss([0.0, 0.0], [3.0, 4.0])
        (L2Laplace(scale=0.5), 10.0)
    """

    @property
    def description(self) -> L2Laplace:
        """The record of this noise, with the scale as it is now."""
        return L2Laplace(self.scale)

    def _loss(self, x: _FloatVector, x_prime: _FloatVector, delta: float) -> float:
        return distance(Pair(x, x_prime), "l2") / self.scale

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        if not shape:
            raise invalid("x", "of a shape (..., dim)", tuple(shape))
        return unit.spherical(shape, device, generator)


@hinted
class GaussianNoise(NoiseLayer):
    """Gaussian noise in every entry: density ``exp(-s^2/(2 sigma^2))``, for L2 distances.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    Args:
        sigma: standard deviation of the noise, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `sigma` is not a number.
        ValueError: if it is out of range.

    Source:
        Balle and Wang (2018), theorem 8 (the loss at a delta).

    Example:
        >>> layer = GaussianNoise(1.0)
        >>> layer, layer.loss([0.0], [1.0]), round(layer.loss([0.0], [1.0], delta=1e-5), 3)
        (GaussianNoise(sigma=1.0), inf, 4.377)
    """

    _called = "sigma"

    def __init__(self, sigma: float) -> None:
        super().__init__(_check_number("sigma", sigma))

    @property
    def sigma(self) -> float:
        """The standard deviation of the noise, in the units of x."""
        return self.scale

    @property
    def description(self) -> mechanisms.Gaussian:
        """The native record of this noise."""
        return mechanisms.Gaussian(self.scale)

    def _loss(self, x: _FloatVector, x_prime: _FloatVector, delta: float) -> float:
        return gaussian_epsilon(self.scale, delta, distance(Pair(x, x_prime), "l2"))

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        return unit.gaussian(shape, device, generator)


def _check_number(name: str, value: Any) -> float:
    """Check a scale, sensitivity or epsilon: it must be a positive number, not a tensor."""
    if isinstance(value, torch.Tensor):
        requirement = (
            "a number, not a tensor (to learn it: sensitivity=, epsilon=, trainable=True of a "
            "Laplace layer)"
        )
        raise mistyped(name, requirement, value)
    return positive(name, value)
