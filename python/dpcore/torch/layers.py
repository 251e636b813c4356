"""Layers that add Laplace, Gaussian or L2 Laplace noise, both in train mode and in eval mode.

The layers first draw noise of scale 1 in float64, from a symmetric set of values without 0 and
without infinity. `DPTextNoiseLayer` and `SharedNoise` repeat faults of published layers, so these
two layers are not private.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from .. import mechanisms
from ..calibration import L2Laplace, gaussian_epsilon
from ..calibration import laplace as laplace_scale
from ..errors import choice, delta_level, flag, invalid, mistyped, vector
from ..mechanisms import positive
from ..packages import has_all, torch
from ..pairs import distance
from ..pairs.differences import Norm
from ..records import Floats, Pair
from ..suggestions import explain_argument_errors

DTYPES: Final = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""Dtypes that layers and transforms accept; outputs have the dtype of the input."""

_HALF_RANGE: Final = 2**52
"""Half of the number of 53-bit integers."""


# Not `functools.cache`: torch.compile warns at every call of a function that uses it.
_HAS_FLOAT64: Final = {"cpu": True}


def _has_float64(kind: str) -> bool:
    if kind not in _HAS_FLOAT64:
        try:
            torch.empty(0, dtype=torch.float64, device=kind)
            _HAS_FLOAT64[kind] = True
        except (TypeError, RuntimeError):
            _HAS_FLOAT64[kind] = False
    return _HAS_FLOAT64[kind]


def float64_device(device: Any) -> Any:
    """Return the given device if it supports float64, and otherwise the CPU.

    For example, the device mps does not support float64.

    Args:
        device: a `torch.device`.

    Returns:
        A `torch.device`.

    Example:
        >>> float64_device(torch.device("cpu"))
        device(type='cpu')
    """
    return device if _has_float64(device.type) else torch.device("cpu")


def move_float64(value: Any, move: Any) -> Any:
    """Move a float64 tensor to another device, but keep its dtype.

    Args:
        value: the tensor of float64 to move.
        move: function that moves or casts a tensor, as in `torch.nn.Module._apply`. If this
            function casts a tensor to another dtype, the result is still float64.

    Returns:
        A tensor of float64.

    Example:
        >>> move_float64(torch.zeros(2, dtype=torch.float64), lambda tensor: tensor.half()).dtype
        torch.float64
    """
    # Find the target device with an integer tensor, which no cast of floats affects.
    device = move(torch.empty(0, dtype=torch.int64, device=value.device)).device
    if float64_device(device) != device:
        return value.to("cpu")
    moved = move(value)
    return moved if moved.dtype == torch.float64 else value.to(device)


def require_float_tensor(x: Any) -> Any:
    """Return x if x is a tensor of float64, float32, bfloat16 or float16.

    Otherwise raise a TypeError.

    Example:
        >>> require_float_tensor(torch.zeros(2, dtype=torch.bfloat16))
        tensor([0., 0.], dtype=torch.bfloat16)
    """
    requirement = "a tensor of float64, float32, bfloat16 or float16"
    if not isinstance(x, torch.Tensor):
        raise mistyped("x", requirement, x)
    if x.dtype not in DTYPES:
        raise mistyped("x", requirement, x.dtype)
    return x


def read_state_numbers(module: Any, state: Any, own: Any, what: str) -> list[Any]:
    """Check that a saved state fits a torch module, and return the numbers in the state.

    Args:
        module: module into which the state is loaded. Error messages name the module.
        state: saved state. It must be a tensor with the shape and dtype of `own`.
        own: numbers of the module before the loading, a tensor of one dimension.
        what: text for error messages that names the type of object that saved the state.
    """
    name, size = f"the state of {type(module).__name__}", len(own)
    requirement = f"a tensor of {size} {str(own.dtype)[6:]}, as {what} saves it"
    if not isinstance(state, torch.Tensor):
        raise mistyped(name, requirement, state)
    if state.dtype != own.dtype or state.shape != own.shape:
        raise invalid(name, requirement, state)
    numbers: list[Any] = state.tolist()
    return numbers


def as_float64_rows(x: Any) -> Any:
    """Check a tensor of rows, and return it as float64.

    Args:
        x: tensor of shape `(..., dim)` with dim >= 1, of float64, float32, bfloat16 or float16.

    Returns:
        A float64 tensor with the same shape (x itself if x is float64). The result is on the device
        of x, or on the CPU if the device of x does not support float64. Gradients flow back to x.

    Raises:
        TypeError: if x is not a tensor, or has another dtype.
        ValueError: if x has no dimension or no entries in its last dimension.

    Example:
        >>> as_float64_rows(torch.zeros(2, dtype=torch.bfloat16))
        tensor([0., 0.], dtype=torch.float64)
    """
    if require_float_tensor(x).ndim == 0 or x.shape[-1] == 0:
        raise invalid("x", "of a shape (..., dim) with dim >= 1", tuple(x.shape))
    return x.to(float64_device(x.device)).to(torch.float64)


def signed_uniform(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw uniform random numbers ``(k + 1/2) / 2^52`` in (-1, 1), with random integers k.

    The integer k is uniform from -2^52 to 2^52 - 1. Each number is an odd multiple of 2^-53, and
    therefore never 0, 1 or -1.

    Args:
        shape: shape of the tensor.
        device: torch device of the tensor. The device must support float64.
        generator: a `torch.Generator` on the same device. Defaults to the default generator of
            torch.

    Returns:
        A tensor of float64 with the given shape.

    Example:
        >>> signed_uniform((3,), "cpu") * 2**53 % 2
        tensor([1., 1., 1.], dtype=torch.float64)
    """
    # Draw float64 directly: a conversion from int64 would double the time. `random_` would give
    # the same bits, but neither the compiler nor vmap supports it.
    options = {"dtype": torch.float64, "device": device}
    if generator is not None:
        options["generator"] = generator
    integers = torch.randint(-_HALF_RANGE, _HALF_RANGE, tuple(shape), **options)
    return integers.add_(0.5).mul_(1.0 / _HALF_RANGE)


def uniform_to_laplace(uniform: Any) -> Any:
    """Convert uniform random numbers to Laplace noise of scale 1.

    For a uniform number w, the noise is ``-sgn(w) ln(1 - abs(w))``. The difference ``1 - abs(w)``
    has no rounding error, and is at least 2^-53. The largest noise is thus ``53 ln 2 = 36.74``.

    Args:
        uniform: tensor of uniform random numbers in (-1, 1), from `signed_uniform`.

    Returns:
        A tensor of float64 noise with the shape of `uniform`.

    Example:
        >>> words = [2.0**-53 - 1.0, -0.5, 0.5, 1.0 - 2.0**-53]
        >>> uniform_to_laplace(torch.tensor(words, dtype=torch.float64))
        tensor([-36.7368,  -0.6931,   0.6931,  36.7368], dtype=torch.float64)
    """
    return uniform.abs().neg_().add_(1.0).log_().copysign_(uniform)


def draw_gaussian(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw a tensor of standard normal noise, by the method of Box and Muller.

    Let v and w be two uniform random numbers in (-1, 1). The method computes two normal numbers
    from v and w: ``r sin(pi w)`` and ``r cos(pi w)`` with ``r = sgn(v) sqrt(-2 ln abs(v))``. Each
    normal number has a distribution that is exactly symmetric around 0. A normal number is never 0,
    and its absolute value is at most ``sqrt(106 ln 2) = 8.57``.

    Args:
        shape: shape of the tensor.
        device: torch device of the tensor. The device must support float64.
        generator: a `torch.Generator` on the same device. Defaults to the default generator of
            torch.

    Returns:
        A tensor of float64 with the given shape.

    Source:
        Box and Muller (1958).

    Example:
        >>> draw_gaussian((2, 3), "cpu").shape
        torch.Size([2, 3])
    """
    total = math.prod(shape)
    half = (total + 1) // 2
    noise = signed_uniform((2, half), device, generator)
    # Do not unpack: the compiler refuses writes to one of several views from a single call.
    first, second = noise[0], noise[1]
    length = first.abs().log_().mul_(-2.0).sqrt_().copysign_(first)
    first.copy_(second.mul_(math.pi)).sin_()
    second.cos_()
    return noise.mul_(length).view(-1)[:total].view(shape)


def draw_l2_laplace(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw rows of noise. Each row s has a density proportional to ``exp(-norm2(s))``.

    Here norm2 is the L2 norm. The direction of a row is the direction of a vector with independent
    normal entries. The L2 norm of a row with `dim` entries has the distribution Gamma(dim, 1).

    Args:
        shape: shape of the tensor. The last dimension is the number of entries of a row.
        device: torch device of the tensor. The device must support float64.
        generator: a `torch.Generator` on the same device. Defaults to the default generator of
            torch.

    Returns:
        A tensor of float64 with the given shape.

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> draw_l2_laplace((2, 3), "cpu").shape
        torch.Size([2, 3])
    """
    noise = draw_gaussian(shape, device, generator)
    lengths = torch.linalg.vector_norm(noise, dim=-1, keepdim=True)
    radii = torch.full_like(lengths, shape[-1])
    # torch.distributions.Gamma calls this function, but takes no generator.
    radii = torch._standard_gamma(radii, generator=generator) if noise.numel() else radii
    return noise.mul_(radii / lengths)


class CappedEpsilon(torch.autograd.Function):
    """The function ``min(epsilon, cap)`` for torch, with a gradient for projected gradient descent.

    The exact derivative with respect to epsilon is 0 above the cap. With this derivative, training
    could never lower an epsilon that is above the cap. Therefore this function has a different
    gradient at and above the cap. If a descent step with the incoming gradient lowers epsilon, the
    gradient is the incoming gradient. Otherwise the gradient is 0.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(epsilon: Any, cap: float) -> Any:
        """Return the smaller of the two numbers epsilon and cap."""
        return epsilon.clamp(max=cap)

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        """Store epsilon and the cap for the computation of the gradient."""
        epsilon, ctx.cap = inputs
        ctx.save_for_backward(epsilon)

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the gradient of the loss with respect to epsilon, and None for the cap."""
        (epsilon,) = ctx.saved_tensors
        return torch.where(epsilon >= ctx.cap, gradient.clamp(min=0.0), gradient), None


class LearntScale(torch.nn.Module):
    """Torch module that multiplies noise by ``sensitivity / min(epsilon, cap)``; epsilon is learnt.

    The module is a part of a noise layer. It gets the noise as input, and draws no noise.
    (Libraries such as Opacus run a module with parameters a second time on the same input. If this
    module drew the noise, the second run would have different noise.)

    Args:
        epsilon: value of epsilon at the start of training.
        numbers: a pair: the sensitivity, and the cap (the largest epsilon that training can reach,
            or infinity for no limit).
    """

    keeps_float64: ClassVar[bool] = True
    """True: the parameter stays float64, even if a module around this module has another dtype."""

    def __init__(self, epsilon: float, numbers: tuple[float, ...]) -> None:
        super().__init__()
        self.epsilon = torch.nn.Parameter(torch.tensor(epsilon, dtype=torch.float64))
        self.numbers = numbers

    def forward(self, noise: Any) -> Any:
        """Return the noise multiplied by the present scale.

        If epsilon is not a finite number above 0, raise a ValueError. Code that cannot raise an
        error, such as compiled code, returns NaN instead.
        """
        sensitivity, cap = self.numbers
        epsilon, value = self.epsilon, math.inf
        # The value cannot be read in a compiled graph, for a tensor without data (meta), or if vmap
        # has an epsilon for each row.
        if not torch.compiler.is_compiling():
            with suppress(RuntimeError):
                value = self.read_epsilon()
        if value == math.inf:
            epsilon = torch.where((epsilon > 0.0) & (epsilon < math.inf), epsilon, math.nan)
        if value >= cap:
            epsilon = CappedEpsilon.apply(epsilon, cap)
        return noise * (sensitivity / epsilon).to(noise.device)

    def read_epsilon(self) -> float:
        """Return the learnt epsilon, or raise a ValueError if it is not finite and above 0."""
        if self.epsilon.dtype != torch.float64:
            raise invalid("epsilon", "of float64, which no cast of dpcore's changes", self.epsilon)
        return positive("epsilon", float(self.epsilon.detach()))

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Move epsilon and its gradient to a device that supports float64, and keep their dtype."""
        return super()._apply(lambda tensor: move_float64(tensor, fn), recurse)

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Save epsilon under the name that it has in the noise layer."""
        super()._save_to_state_dict(destination, prefix.removesuffix("scaling."), keep_vars)


@explain_argument_errors
class NoiseLayer(torch.nn.Module):
    """Base class of noise layers: ``layer(x)`` returns ``x + scale s`` with new random noise s.

    Use the layers for audits and experiments, not for releasing data. The last bits of noisy floats
    reveal the input (see `dpcore.sample`). The random generators of torch are not cryptographic.

    The layer computes in float64, and then rounds the sum to the dtype of x. If the device does not
    support float64 (such as mps), the layer computes on the CPU, and its `repr` states this. The
    layer adds noise both in train mode and in eval mode. If an entry of x is NaN or infinite, the
    layer raises no error, and this entry of the output is also NaN or infinite. The transforms of
    `dpcore.torch`, such as `Clip`, raise a ValueError for such entries.

    A cast of the module, such as `.half()`, does not change a fixed scale. A learnt scale is
    ``sensitivity / min(epsilon, cap)``. The parameter `epsilon` moves to another device with the
    module, but stays float64. If `epsilon` is at least the cap, 0 replaces any gradient that would
    raise `epsilon`.

    A compiled layer (``torch.compile``) draws noise of the same distribution, but a seed gives
    other numbers than without compilation. If a learnt epsilon is out of range, a compiled layer
    returns NaN and raises no error. With ``torch.func.vmap``, use ``randomness="different"`` to
    draw separate noise for each row. With activation checkpointing (``torch.utils.checkpoint``), do
    not pass a `generator`, because the second run of the layer would then draw different noise.

    Args:
        scale: scale of the noise, in the units of x, in (0, 1e300]. Instead of `scale`, you can
            give `sensitivity` and `epsilon`.
        sensitivity: largest distance between the vectors x of two neighbouring inputs. The norm of
            the distance depends on the noise, such as L1 for Laplace noise.
        epsilon: epsilon of the layer. The scale is then ``sensitivity / epsilon``.
        trainable: True to make `epsilon` a trainable parameter of the module, with the given value
            at the start.
        cap: largest epsilon that training can reach. With None, epsilon has no limit, and is known
            only after the training.

    Raises:
        TypeError: if an argument has the wrong type, or both a scale and an epsilon are given.
        ValueError: if a number is out of range.
    """

    _called: ClassVar[str] = "scale"
    """Name of the parameter of the noise."""

    _norm: ClassVar[Norm] = "l1"
    """Norm of the distance from which the loss of two vectors is computed."""

    keeps_float64: ClassVar[bool] = True
    """True: the parameters stay float64, even if a module around this layer has another dtype."""

    faulty: str = ""
    """Fault of the noise in one sentence; empty for correct noise."""

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
        self.register_module("scaling", None)
        self._elsewhere = ""
        flag("trainable", trainable)
        if cap is not None and not trainable:
            raise mistyped("cap", "left out where no epsilon is learnt (trainable=True)", cap)
        if scale is not None:
            if sensitivity is not None or epsilon is not None or trainable:
                raise mistyped(self._called, "left out where sensitivity and epsilon say it", scale)
            self._numbers: tuple[float, ...] = (_check_positive_number(self._called, scale),)
            return
        if sensitivity is None or epsilon is None:
            raise mistyped(self._called, "given, or else sensitivity and epsilon", scale)
        sensitivity = _check_positive_number("sensitivity", sensitivity)
        epsilon = _check_positive_number("epsilon", epsilon)
        self._numbers = (laplace_scale(epsilon, sensitivity),)
        if trainable:
            limit = math.inf if cap is None else _check_positive_number("cap", cap)
            if epsilon > limit:
                raise invalid("epsilon", f"at most the cap, {limit:g}", epsilon)
            self._numbers = (sensitivity, limit)
            self.scaling = LearntScale(epsilon, self._numbers)

    @property
    def epsilon(self) -> torch.nn.Parameter | None:
        """Trainable epsilon of this layer (a torch parameter), or None if the scale is fixed."""
        return None if self.scaling is None else self.scaling.epsilon

    @property
    def scale(self) -> float:
        """Present scale of the noise of this layer, in the units of its input."""
        if self.scaling is None:
            return self._numbers[0]
        sensitivity, cap = self._numbers
        return laplace_scale(min(self.scaling.read_epsilon(), cap), sensitivity)

    @property
    def sensitivity(self) -> float | None:
        """Sensitivity from which a learnt scale is computed, or None if the scale is fixed."""
        return None if self.epsilon is None else self._numbers[0]

    @property
    def cap(self) -> float | None:
        """Largest epsilon that training can reach.

        None if epsilon has no limit, or if the scale is fixed.
        """
        cap = math.inf if self.epsilon is None else self._numbers[1]
        return None if cap == math.inf else cap

    @property
    def caution(self) -> str:
        """Warning that the epsilon of this layer is learnt, or "" if the scale is fixed."""
        if self.epsilon is None:
            return ""
        if self.cap is None:
            return "learnt without a cap: no epsilon holds in advance"
        return f"learnt, at most {self.cap:g}: a limit for later texts, none for its training's"

    @property
    def description(self) -> Any:
        """Distribution of the noise of this layer, such as Laplace(scale=0.25)."""
        raise NotImplementedError(f"{type(self).__name__} has no description")

    def loss(self, x: npt.ArrayLike, x_prime: npt.ArrayLike, delta: float = 0.0) -> float:
        """Return the exact epsilon between two vectors to which the noise of this layer is added.

        Args:
            x: first vector, shape `(dim,)`.
            x_prime: second vector, with the same shape.
            delta: delta in [0, 1). Only Gaussian noise uses delta.

        Returns:
            The smallest epsilon that holds for the two vectors. The result is 0.0 if the vectors
            are equal, and inf if no finite epsilon holds.

        Raises:
            TypeError: if an argument does not hold real numbers.
            ValueError: if the shapes differ, a number is not finite, or `delta` is out of range.
        """
        first = vector("x", x)
        second = vector("x_prime", x_prime, first.size)
        delta = delta_level(delta)
        return 0.0 if np.array_equal(first, second) else self._loss(first, second, delta)

    def _loss(self, x: Floats, x_prime: Floats, delta: float) -> float:
        """Compute epsilon of two different vectors for the density ``exp(-norm(s)/scale)``."""
        return distance(Pair(x, x_prime), self._norm) / self.scale

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        """Draw a new float64 tensor of noise of scale 1; the caller may change it in place."""
        raise NotImplementedError

    def forward(self, x: torch.Tensor, generator: torch.Generator | None = None) -> Any:
        """Return x with new random noise added.

        Args:
            x: tensor of float64, float32, bfloat16 or float16. Each row along the last dimension is
                one vector.
            generator: a `torch.Generator` on the device of x. None means the default generator of
                torch.

        Returns:
            A tensor with the shape, dtype and device of x. Gradients flow back to x and to a learnt
            `epsilon`.

        Raises:
            TypeError: if x is not a tensor of one of these dtypes, or if `generator` is not a
                `torch.Generator`.
            ValueError: if `generator` is on a different device than x; if a learnt epsilon is not a
                finite number above 0; or if x has no dimensions although the layer draws noise for
                whole rows.
        """
        device = float64_device(require_float_tensor(x).device)
        if generator is not None:
            if not has_all(generator, "device"):
                raise mistyped("generator", "a torch.Generator or None", generator)
            if generator.device.type != device.type:
                raise invalid("generator", f"on {device}, where noise is drawn", generator.device)
        if device != x.device:
            self._elsewhere = f"drawn on the CPU: {x.device.type} has no float64"
        noise = self._noise(x.shape, device, generator)
        noise = noise.mul_(self._numbers[0]) if self.scaling is None else self.scaling(noise)
        try:
            total = noise.add_(x.to(device))
        except RuntimeError:
            # Under vmap, one noise for all rows (`randomness="same"`) has fewer numbers than x.
            total = noise + x.to(device)
        return total.to(x.dtype).to(x.device)

    def get_extra_state(self) -> Any:
        """Return the fixed numbers of this layer for `state_dict`, as a float64 tensor.

        If epsilon is learnt, the numbers are the sensitivity and the cap (the largest epsilon).
        Otherwise the only number is the scale.
        """
        return torch.tensor(self._numbers, dtype=torch.float64, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Load the fixed numbers that `get_extra_state` returned into this layer.

        Raise an error if the numbers do not fit this layer.
        """
        kind = "fixed scale" if self.epsilon is None else "learnt epsilon"
        first, *rest = read_state_numbers(self, state, self.get_extra_state(), f"a layer of {kind}")
        cap = tuple(bound if bound == math.inf else positive("cap", bound) for bound in rest)
        self._numbers = (positive(self._called, first), *cap)
        if self.scaling is not None:
            self.scaling.numbers = self._numbers

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *rest: Any) -> None:
        """Load a saved epsilon into the module that holds the learnt epsilon."""
        if self.scaling is not None and f"{prefix}epsilon" in state_dict:
            state_dict[f"{prefix}scaling.epsilon"] = state_dict.pop(f"{prefix}epsilon")
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def extra_repr(self) -> str:
        """Return the text in the parentheses of `repr`: the parameters, and notes on the noise."""
        return "; ".join(filter(None, [self._parameters_shown(), self.caution, self._elsewhere]))

    def _parameters_shown(self) -> str:
        if self.epsilon is None:
            return f"{self._called}={self.scale!r}"
        cap = "" if self.cap is None else f", cap={self.cap!r}"
        return f"sensitivity={self.sensitivity!r}, epsilon={float(self.epsilon.detach())!r}{cap}"


@explain_argument_errors
class LaplaceNoise(NoiseLayer):
    """Layer that adds Laplace noise: each entry gets noise s of density ``exp(-abs(s)/b) / (2b)``.

    Use this layer for audits and experiments, not for releasing data: see `dpcore.sample`.

    The sensitivity is in the L1 norm. The base class `NoiseLayer` describes the arguments and
    errors. The argument `scale` is b.

    Source:
        Dwork, McSherry, Nissim and Smith (2006); Beigi et al. (2019), equation 9 (learnt epsilon).

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
        """Distribution of the noise of this layer, such as Laplace(scale=0.25)."""
        return mechanisms.Laplace(self.scale)

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        return uniform_to_laplace(signed_uniform(shape, device, generator))


@explain_argument_errors
class L2LaplaceNoise(NoiseLayer):
    """Layer that adds L2 Laplace noise: each row gets noise s of density ∝ ``exp(-norm2(s)/b)``.

    Use this layer for audits and experiments, not for releasing data: see `dpcore.sample`.

    Here norm2 is the L2 norm, and rows lie along the last dimension of the input. The base class
    `NoiseLayer` describes the arguments and errors. The argument `scale` is b. The mean L2 norm of
    the noise of a row is b times the number of entries of the row.

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> layer = L2LaplaceNoise(0.5)
        >>> layer.description, layer.loss([0.0, 0.0], [3.0, 4.0])
        (L2Laplace(scale=0.5), 10.0)
    """

    _norm = "l2"

    @property
    def description(self) -> L2Laplace:
        """Distribution of the noise of this layer, such as L2Laplace(scale=0.5)."""
        return L2Laplace(self.scale)

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        if not shape:
            raise invalid("x", "of a shape (..., dim)", tuple(shape))
        return draw_l2_laplace(shape, device, generator)


@explain_argument_errors
class GaussianNoise(NoiseLayer):
    """Layer that adds Gaussian noise of standard deviation sigma to each entry of its input.

    Use this layer for audits and experiments, not for releasing data: see `dpcore.sample`.

    Args:
        sigma: standard deviation of the noise, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `sigma` is not a number.
        ValueError: if `sigma` is out of range.

    Source:
        Balle and Wang (2018), theorem 8 (epsilon at a given delta).

    Example:
        >>> layer = GaussianNoise(1.0)
        >>> layer, layer.loss([0.0], [1.0]), round(layer.loss([0.0], [1.0], delta=1e-5), 3)
        (GaussianNoise(sigma=1.0), inf, 4.377)
    """

    _called = "sigma"

    def __init__(self, sigma: float) -> None:
        super().__init__(_check_positive_number("sigma", sigma))

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise of this layer, in the units of its input."""
        return self.scale

    @property
    def description(self) -> mechanisms.Gaussian:
        """Distribution of the noise of this layer, such as Gaussian(sigma=1.0)."""
        return mechanisms.Gaussian(self.scale)

    def _loss(self, x: Floats, x_prime: Floats, delta: float) -> float:
        return gaussian_epsilon(self.scale, delta, distance(Pair(x, x_prime), "l2"))

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        return draw_gaussian(shape, device, generator)


def _check_positive_number(name: str, value: Any) -> float:
    """Check that a scale, sensitivity or epsilon is a positive number and not a tensor."""
    if isinstance(value, torch.Tensor):
        learnt = "sensitivity=, epsilon=, trainable=True of a Laplace layer"
        raise mistyped(name, f"a number, not a tensor (to learn it: {learnt})", value)
    return positive(name, value)


@explain_argument_errors
class DPTextNoiseLayer(NoiseLayer):
    """Layer that adds the published noise of DPText, for which no finite epsilon holds.

    Use this layer for audits and experiments, not for releasing data: see `dpcore.sample`.

    The formula of the noise is ``-b sgn(r) ln(1 - 2 abs(r))``. This formula gives Laplace noise if
    r is uniform in (-1/2, 1/2). The paper draws r in (0, 1). The noise is then never negative, and
    the logarithm is undefined for half of the draws. The layer replaces these draws before the
    logarithm is computed.

    Args:
        scale: scale b in the formula. Instead of `scale`, you can give `sensitivity`, `epsilon`,
            `trainable` and `cap`, as in `NoiseLayer`.
        nan: treatment of draws with an undefined logarithm. "zero" uses noise 0. "resample" draws r
            again.
        learning: the arguments `sensitivity`, `epsilon`, `trainable` and `cap` of `NoiseLayer`.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number is out of range, or `nan` is neither "zero" nor "resample".

    Source:
        Beigi et al. (2019), equation 9; Habernal (2022), theorem 3.1, which shows the fault.

    Example:
        >>> layer = DPTextNoiseLayer(1.0)
        >>> bool((layer(torch.zeros(5)) >= 0.0).all()), layer.loss([0.0], [1.0])
        (True, inf)
        >>> layer, layer.description
        (DPTextNoiseLayer(scale=1.0, nan='zero'), DPTextNoise(scale=1.0, nan='zero'))
    """

    faulty = "noise that is never below its input: some outputs are possible for one text alone"

    def __init__(
        self, scale: float | None = None, nan: Literal["zero", "resample"] = "zero", **learning: Any
    ) -> None:
        super().__init__(scale, **learning)
        self.nan: Literal["zero", "resample"] = choice("nan", nan, ("zero", "resample"))

    @property
    def description(self) -> mechanisms.DPTextNoise:
        """Distribution of the noise of this layer, such as DPTextNoise(scale=1.0, nan='zero')."""
        return mechanisms.DPTextNoise(self.scale, self.nan)

    def _loss(self, x: Any, x_prime: Any, delta: float) -> float:
        return math.inf

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        # With r uniform in (0, 1) the argument 1 - 2r is uniform in (-1, 1).
        argument = signed_uniform(shape, device, generator)
        if self.nan == "zero":
            argument = torch.where(argument < 0.0, 1.0, argument)
        else:
            # Repeated draws until it is above 0 have the distribution of its absolute value.
            argument.abs_()
        return argument.log_().neg_()

    def _parameters_shown(self) -> str:
        return f"{super()._parameters_shown()}, nan={self.nan!r}"


@explain_argument_errors
class SharedNoise(NoiseLayer):
    """Layer with faulty noise: all entries of a row get the same Laplace noise.

    Use this layer for audits and experiments, not for releasing data: see `dpcore.sample`.

    The differences between the entries of a row contain no noise. An attacker therefore removes the
    noise by subtracting the smallest entry of the row from all entries. The base class `NoiseLayer`
    describes the arguments and errors. The argument `scale` is the scale of the Laplace noise.

    Source:
        Lyu, He and Li (2020), released code: noise of shape (batch, 1).

    Example:
        >>> out = SharedNoise(1.0)(torch.tensor([[0.0, 0.5]], dtype=torch.float64))
        >>> round(float(out[0, 1] - out[0, 0]), 12)
        0.5
        >>> SharedNoise(1.0).loss([0.0, 0.5], [2.0, 2.5]), SharedNoise(1.0).loss([0, 0], [0, 1])
        (2.0, inf)
    """

    faulty = "one draw of noise for a whole row: the differences of its entries are exact"

    @property
    def description(self) -> None:
        """None, because dpcore does not describe noise that is equal in all entries of a row."""
        return None

    def _loss(self, x: Any, x_prime: Any, delta: float) -> float:
        # An output x + s is also possible for x' only if x - x' is equal in all entries.
        with np.errstate(over="ignore"):
            apart = x - x_prime
        return abs(float(apart[0])) / self.scale if (apart == apart[0]).all() else math.inf

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        column = (*shape[:-1], *(1 for _ in shape[-1:]))
        return uniform_to_laplace(signed_uniform(column, device, generator)).expand(shape).clone()
