"""Noise of scale 1 in float64: on a symmetric grid, never 0 and never infinite."""

from __future__ import annotations

import functools
import math
from typing import Any, Final

from ..errors import invalid, mistyped
from .needed import torch

__all__ = [
    "DTYPES",
    "checked",
    "float64_device",
    "gaussian",
    "laplace",
    "move_float64",
    "spherical",
    "uniform",
    "wide",
]

DTYPES: Final = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
"""The dtypes that layers and transforms take, and give back."""

_HALF_RANGE: Final = 2**52
"""Half of the integers of 53 bits."""


@functools.cache
def _has_float64(kind: str) -> bool:
    try:
        torch.empty(0, dtype=torch.float64, device=kind)
    except (TypeError, RuntimeError):
        return False
    return True


def float64_device(device: Any) -> Any:
    """Return the device itself if it has float64, else the CPU (Apple's mps has none).

    Args:
        device: a `torch.device`.

    Returns:
        A `torch.device`.

    Example:
        >>> float64_device(torch.device("cpu"))
        device(type='cpu')
    """
    return device if _has_float64(device.type) else torch.device("cpu")


def move_float64(value: Any, fn: Any) -> Any:
    """Move a tensor as `fn` moves one, to the CPU where its device has no float64; never cast it.

    Args:
        value: the tensor, float64.
        fn: what `torch.nn.Module._apply` maps tensors by.

    Returns:
        A tensor of float64.

    Example:
        >>> move_float64(torch.zeros(2, dtype=torch.float64), lambda tensor: tensor.half()).dtype
        torch.float64
    """
    # An integer is moved as the numbers would be, and is cast by nobody.
    device = fn(torch.empty(0, dtype=torch.int64, device=value.device)).device
    if float64_device(device) != device:
        return value.to("cpu")
    found = fn(value)
    return found if found.dtype == torch.float64 else value.to(device)


def checked(x: Any) -> Any:
    """Check that x is a tensor of one of `DTYPES` and return it; a TypeError if it is not.

    Example:
        >>> checked(torch.zeros(2, dtype=torch.bfloat16))
        tensor([0., 0.], dtype=torch.bfloat16)
    """
    requirement = "a tensor of float64, float32, bfloat16 or float16"
    if not isinstance(x, torch.Tensor):
        raise mistyped("x", requirement, x)
    if x.dtype not in DTYPES:
        raise mistyped("x", requirement, x.dtype)
    return x


def wide(x: Any) -> Any:
    """Check a tensor of rows and return it in float64, on a device that has float64.

    Args:
        x: the tensor, shape `(..., dim)`, dim >= 1, of one of `DTYPES`.

    Returns:
        float64 of the same shape, with x's gradients; x itself if it is that.

    Raises:
        TypeError: if x is no tensor, or of another dtype.
        ValueError: if it has no dimension, or none of its entries.

    Example:
        >>> wide(torch.zeros(2, dtype=torch.bfloat16))
        tensor([0., 0.], dtype=torch.float64)
    """
    if checked(x).ndim == 0 or x.shape[-1] == 0:
        raise invalid("x", "of a shape (..., dim) with dim >= 1", tuple(x.shape))
    return x.to(float64_device(x.device)).to(torch.float64)


def uniform(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw uniform numbers in (-1, 1): ``(k + 1/2) / 2^52``, k a centred integer of 53 bits.

    So is each an odd multiple of 2^-53, exactly, and never 0, 1 or -1.

    Args:
        shape: of the result.
        device: where it is drawn; it has float64.
        generator: a `torch.Generator` of that device, or None for torch's default one.

    Returns:
        float64 of that shape.

    Example:
        >>> drawn = uniform((3,), "cpu") * 2**53
        >>> bool((drawn % 2 == 1).all()), float(drawn.abs().max()) < 2**53
        (True, True)
    """
    drawn = torch.empty(shape, dtype=torch.float64, device=device)
    # In float64 from the start: an int64 that is converted takes as long again.
    return (
        drawn.random_(-_HALF_RANGE, _HALF_RANGE, generator=generator)
        .add_(0.5)
        .mul_(1.0 / _HALF_RANGE)
    )


def laplace(w: Any) -> Any:
    """Compute Laplace noise of scale 1 by the inverse of its distribution function.

    ``-sgn(w) ln(1 - abs(w))``. The difference is exact, and 2^-53 at least: the largest noise is
    ``53 ln 2 = 36.74``, and the tails keep all digits.

    Args:
        w: uniform numbers as `uniform` draws them.

    Returns:
        float64 of the same shape.

    Example:
        >>> laplace(torch.tensor([2.0**-53 - 1.0, -0.5, 0.5, 1.0 - 2.0**-53], dtype=torch.float64))
        tensor([-36.7368,  -0.6931,   0.6931,  36.7368], dtype=torch.float64)
    """
    return w.abs().neg_().add_(1.0).log_().copysign_(w)


def gaussian(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw standard normal noise: two numbers from two integers.

    ``r sin(pi w), r cos(pi w)`` with ``r = sgn(v) sqrt(-2 ln abs(v))``, v and w from `uniform`. The
    sign of v makes both exactly symmetric; neither is 0, for w is no multiple of 1/2, and none
    beyond ``sqrt(106 ln 2) = 8.57``. It takes half the time of torch's own normal in float64.

    Args:
        shape: of the result.
        device: where it is drawn; it has float64.
        generator: a `torch.Generator` of that device, or None for torch's default one.

    Returns:
        float64 of that shape.

    Source:
        Box and Muller (1958).

    Example:
        >>> gaussian((2, 3), "cpu").shape
        torch.Size([2, 3])
    """
    total = math.prod(shape)
    half = (total + 1) // 2
    v, angle = uniform((2, half), device, generator)
    length = v.abs().log_().mul_(-2.0).sqrt_().copysign_(v)
    angle.mul_(math.pi)
    noise = torch.empty((2, half), dtype=torch.float64, device=device)
    torch.sin(angle, out=noise[0])
    torch.cos(angle, out=noise[1])
    return noise.mul_(length).view(-1)[:total].view(shape)


def spherical(shape: Any, device: Any, generator: Any = None) -> Any:
    """Draw noise whose rows have a density proportional to ``exp(-norm2(s))``.

    A normal vector gives the direction, and Gamma(dim) the length.

    Args:
        shape: of the result; its last dimension is that of a row.
        device: where it is drawn; it has float64.
        generator: a `torch.Generator` of that device, or None for torch's default one.

    Returns:
        float64 of that shape.

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> spherical((2, 3), "cpu").shape
        torch.Size([2, 3])
    """
    noise = gaussian(shape, device, generator)
    lengths = torch.linalg.vector_norm(noise, dim=-1, keepdim=True)
    wanted = torch.full_like(lengths, shape[-1])
    # What torch.distributions.Gamma calls, which takes no generator.
    wanted = torch._standard_gamma(wanted, generator=generator) if noise.numel() else wanted
    return noise.mul_(wanted / lengths)
