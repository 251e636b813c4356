"""What brings rows into a bounded set before noise is added: `dpcore.sensitivity`'s, as modules."""

from __future__ import annotations

import warnings
from typing import Any

from ..errors import AssumptionWarning, choice, invalid
from ..hints import hinted
from ..mechanisms import positive
from ..pairs import NORMS
from ..pairs.norms import Norm
from ..sensitivity import Ball, MinMaxRows, Sphere
from . import unit
from .needed import torch

__all__ = ["Clip", "MinMax", "Normalise"]

_INTEGERS = {8: torch.int64, 4: torch.int32, 2: torch.int16}
_ORDERS = {"l1": 1, "l2": 2, "linf": float("inf")}


@hinted
class Clip(torch.nn.Module):
    """Shrink rows onto a ball: ``x min(1, radius / norm(x))``.

    Rows lie along the last dimension. Norms are taken in float64, of what has been rounded to the
    dtype of x: no row that is moved ends up outside, and clipping twice changes nothing. A zero
    row is a member of the ball.

    Args:
        norm: "l1", "l2" or "linf".
        radius: radius of the ball, in the units of x, in (0, 1e300].

    Raises:
        TypeError: if `norm` is not a string or `radius` not a number.
        ValueError: if one of them is out of range.

    Source:
        Abadi et al. (2016), algorithm 1.

    Example:
        >>> clip = Clip("l2", 1.0)
        >>> clip(torch.tensor([[3.0, -4.0], [0.0, 0.5]]))
        tensor([[ 0.6000, -0.8000],
                [ 0.0000,  0.5000]])
        >>> clip, clip.range(2)
        (Clip(norm='l2', radius=1.0), Ball(norm='l2', radius=1.0, dim=2))
    """

    def __init__(self, norm: Norm, radius: float) -> None:
        super().__init__()
        self.norm = choice("norm", norm, NORMS)
        self.radius = positive("radius", radius)

    def forward(self, x: Any) -> Any:
        """The clipped rows.

        Args:
            x: finite numbers, shape `(..., dim)`; float64, float32, bfloat16 or float16.

        Returns:
            A tensor of the same shape and dtype; x itself where no row is outside.

        Raises:
            TypeError: if x is no tensor of these.
            ValueError: if it has no dimension, no entries, or an entry is not finite.
        """
        rows = _rows(x)
        outside = _lengths(rows.detach(), self.norm) > self.radius
        if not bool(outside.any()):
            return x
        return _back(_shrunk(rows, outside, self.norm, self.radius, x), x)

    def range(self, dim: int) -> Ball:
        """The ball in which rows of `dim` entries end up."""
        return Ball(self.norm, self.radius, dim)

    def extra_repr(self) -> str:
        """The parameters, as `repr` shows them."""
        return f"norm={self.norm!r}, radius={self.radius!r}"


class MinMax(torch.nn.Module):
    """Shift and scale each row to smallest entry 0 and largest 1: ``(x - min) / (max - min)``.

    Both are exact after rounding. A constant row (0/0) becomes zeros, which `zeroed` counts and an
    `AssumptionWarning` reports. It lies outside of `range`, whose sensitivities cover it all the
    same: all entries of a member are within [0, 1] and one of them is 0, so that it is at most
    dim - 1 away in L1, sqrt(dim - 1) in L2 and 1 in Linf.

    Attributes:
        zeroed: how many rows have become zeros since the module was made.

    Source:
        Lyu, He and Li (2020), algorithm 2 (the normalisation of DPNR).

    Example:
        >>> MinMax()(torch.tensor([2.0, 3.0, 6.0]))
        tensor([0.0000, 0.2500, 1.0000])
        >>> MinMax().range(3)
        MinMaxRows(dim=3)
    """

    def __init__(self) -> None:
        super().__init__()
        self.zeroed = 0

    def forward(self, x: Any) -> Any:
        """The scaled rows.

        Args:
            x: finite numbers, shape `(..., dim)` with dim >= 2; float64, float32, bfloat16 or
                float16.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            TypeError: if x is no tensor of these.
            ValueError: if its rows have fewer than two entries, or an entry is not finite.
        """
        rows = _rows(x)
        if rows.shape[-1] == 1:
            requirement = "of a shape (..., dim) with dim >= 2: one entry has no range"
            raise invalid("x", requirement, tuple(x.shape))
        low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
        constant = (low == high).detach()
        self.zeroed += _reported(constant, "constant (max - min = 0)")
        # A quarter of everything has the same quotients, and a range that does not overflow.
        large = torch.maximum(-low, high).detach() > 1e300
        quarter = torch.ones_like(low).masked_fill(large, 0.25)
        bottom = low * quarter
        width = torch.where(constant, 1.0, high * quarter - bottom)
        return _back((rows * quarter - bottom) / width, x)

    def range(self, dim: int) -> MinMaxRows:
        """The set in which rows of `dim` entries end up; a ValueError for a single entry."""
        return MinMaxRows(dim)


@hinted
class Normalise(torch.nn.Module):
    """Divide each row by its norm: ``x / norm(x)``.

    After rounding the norm, taken in float64, is at most 1, so that rounding adds nothing to the
    distance of two rows, at most 2 in this norm. A zero row (0/0) stays zero, which `zeroed` counts
    and an `AssumptionWarning` reports. It lies outside of `range`, whose sensitivities cover it
    all the same: its distance from any member is half the largest distance of two.

    Args:
        norm: "l1", "l2" or "linf".

    Attributes:
        zeroed: how many zero rows have been seen since the module was made.

    Raises:
        TypeError: if `norm` is not a string.
        ValueError: if it is none of the three.

    Example:
        >>> Normalise("l2")(torch.tensor([3.0, -4.0]))
        tensor([ 0.6000, -0.8000])
        >>> Normalise("l2").range(2)
        Sphere(dim=2, norm='l2')
    """

    def __init__(self, norm: Norm = "l2") -> None:
        super().__init__()
        self.norm = choice("norm", norm, NORMS)
        self.zeroed = 0

    def forward(self, x: Any) -> Any:
        """The normalised rows.

        Args:
            x: finite numbers, shape `(..., dim)`; float64, float32, bfloat16 or float16.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            TypeError: if x is no tensor of these.
            ValueError: if it has no dimension, no entries, or an entry is not finite.
        """
        rows = _rows(x)
        zero = (rows.detach() == 0.0).all(-1, keepdim=True)
        self.zeroed += _reported(zero, "zero (norm 0)")
        return _back(_shrunk(rows, ~zero, self.norm, 1.0, x), x)

    def range(self, dim: int) -> Sphere:
        """The unit sphere of the norm, on which rows of `dim` entries end up."""
        return Sphere(dim, self.norm)

    def extra_repr(self) -> str:
        """The parameters, as `repr` shows them."""
        return f"norm={self.norm!r}"


class _Rounded(torch.autograd.Function):
    """Rounded numbers in place of exact ones, with the gradients of these."""

    @staticmethod
    def forward(ctx: Any, exact: Any, rounded: Any) -> Any:
        """The rounded numbers."""
        return rounded.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """The gradient as it is."""
        return gradient, None


def _rows(x: Any) -> Any:
    """Check rows of finite numbers and return them in float64."""
    rows = unit.wide(x)
    wrong = ~torch.isfinite(rows.detach()).all(-1)
    if bool(wrong.any()):
        if x.ndim == 1:
            raise invalid("x", "finite numbers", x.tolist())
        places = [place[0] if x.ndim == 2 else tuple(place) for place in wrong.nonzero().tolist()]
        shown = ", ".join(map(str, places[:5])) + (", ..." if len(places) > 5 else "")
        name = f"row{'s' * (len(places) > 1)} {shown} of x"
        raise invalid(name, "finite numbers", rows[wrong][0].tolist())
    return rows


def _back(rows: Any, x: Any) -> Any:
    """Rows in the dtype and on the device of x."""
    return rows.to(x.dtype).to(x.device)


def _reported(wrong: Any, what: str) -> int:
    """Warn of rows that become zeros, and count them."""
    count = int(wrong.sum())
    if count:
        message = (
            f"{count} of {wrong.numel()} rows are {what} and became zeros: they lie outside of the "
            "transform's range, within its sensitivity"
        )
        # The caller of the module, above its forward and two functions of torch.
        warnings.warn(message, AssumptionWarning, stacklevel=5)
    return count


def _lengths(rows: Any, norm: str) -> Any:
    """The norm of each row of float64, its last dimension kept; no square overflows."""
    parts, power = _scaled(rows)
    if norm == "l2":
        # Not torch's norm, which rounds other sums of two squares than all else does.
        return parts.square_().sum(-1, keepdim=True).sqrt_() * power
    return torch.linalg.vector_norm(parts, _ORDERS[norm], dim=-1, keepdim=True) * power


def _scaled(rows: Any) -> Any:
    """Rows over a power of two, which is exact, with entries up to 2; and that power."""
    largest = rows.detach().abs().amax(-1, keepdim=True)
    power = torch.where(largest == 0.0, 1.0, largest / (2.0 * torch.frexp(largest).mantissa))
    return rows / power, power


def _shrunk(rows: Any, moved: Any, norm: str, radius: float, x: Any) -> Any:
    """The rows in `moved` scaled to norm `radius`, rounded to the dtype of x and never outside."""
    # Sums in another order differ by 2 (dim - 2) half units in the last place at most: this far
    # inside, none finds a row outside. With 2^-42 at most, `Sphere` finds them all on it.
    slack = min(max(rows.shape[-1] - 2, 0) * 2.0**-52, 2.0**-42)
    limit, target = radius * (1.0 - slack), radius * (1.0 - 2.0 * slack)
    parts, _ = _scaled(rows)
    lengths = torch.linalg.vector_norm(parts, _ORDERS[norm], dim=-1, keepdim=True)
    # Rows that stay must not be divided by 0, or their gradients are NaN.
    exact = torch.where(moved, parts / torch.where(moved, lengths, 1.0) * target, rows)
    rounded = exact.detach().to(x.dtype)
    # Towards 0: in 32 and 16 bits that is all, and in 64 the last bits may ask for some steps.
    rounded = _inwards(rounded, rounded.to(torch.float64).abs() > exact.detach().abs())
    while bool((over := moved & (_lengths(rounded.to(torch.float64), norm) > limit)).any()):
        rounded = _inwards(rounded, over)
    return _Rounded.apply(exact, rounded.to(torch.float64))


def _inwards(x: Any, where: Any) -> Any:
    """The next float towards 0, where it is asked for."""
    # Its bits are those of the integer below.
    bits = x.view(_INTEGERS[x.element_size()])
    return (bits - (where & (x != 0.0)).to(bits.dtype)).view(x.dtype)
