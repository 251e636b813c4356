"""Transforms of `dpcore.sensitivity`, which bring rows into a bounded set, as modules.

A projection and a centre are fitted on public rows, which no claim covers.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .. import errors
from ..mechanisms import positive
from ..packages import has_all, torch
from ..pairs import NORMS
from ..pairs.differences import Norm
from ..sensitivity import Ball, MinMaxRows, Sphere
from ..streams import Rng, seed_of
from ..suggestions import suggest_arguments
from . import layers

_INTEGER_DTYPES = {8: torch.int64, 4: torch.int32, 2: torch.int16}
_NORM_ORDERS = {"l1": 1, "l2": 2, "linf": float("inf")}


class _FittedTransform(torch.nn.Module):
    """A transform with buffers of float64, which follow it to a device and are never cast."""

    public_rows: int | None

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        kept = {name: held for name, held in self._buffers.items() if held is not None}
        self._buffers.update(dict.fromkeys(kept))
        super()._apply(fn, recurse)
        self._buffers.update({name: layers.move_float64(held, fn) for name, held in kept.items()})
        return self

    def _check_width(self, name: str, columns: int, width: int, value: Any) -> None:
        if columns != width:
            requirement = f"of {width} entries a row, for which {type(self).__name__} was made"
            raise errors.invalid(name, requirement, value)


@suggest_arguments
class Clip(_FittedTransform):
    """Shrink rows onto a ball: ``x min(1, radius / norm(x))``.

    Rows lie along the last dimension. Norms are taken in float64, of what has been rounded to the
    dtype of x: no row that is moved ends up outside, and clipping twice has no further effect. A
    zero row is a member of the ball.

    With a centre c it is ``(x - c) min(1, radius / norm(x - c))``: the ball lies around c, and rows
    are returned relative to it, so that no addition rounds one out of `range`. To add c again
    after the noise costs no privacy.

    Args:
        norm: "l1", "l2" or "linf".
        radius: radius of the ball, in the units of x, in (0, 1e300].
        center: public rows, shape `(n, dim)`, whose mean is taken, or a centre made from
            such, shape `(dim,)`. None is the origin.
        public_rows: number of public rows that a centre of shape `(dim,)` was made from, or None if
            it is not known.

    Attributes:
        center: the centre, a buffer of float64, shape `(dim,)`; or None.

    Raises:
        TypeError: if `norm` is not a string, `radius` not a number, or `center` no array.
        ValueError: if one of them is out of range, or `center` not finite.

    Source:
        Abadi et al. (2016), algorithm 1.

    Example:
        >>> clip = Clip("l2", 1.0)
        >>> clip(torch.tensor([[3.0, -4.0], [0.0, 0.5]]))
        tensor([[ 0.6000, -0.8000],
                [ 0.0000,  0.5000]])
        >>> clip, clip.range(2)
        (Clip(norm='l2', radius=1.0), Ball(norm='l2', radius=1.0, dim=2))
        >>> Clip("l2", 1.0, center=[[5.0, 5.0], [5.0, 7.0]])(torch.tensor([[5.0, 6.5]]))
        tensor([[0.0000, 0.5000]])
    """

    center: Any

    def __init__(
        self, norm: Norm, radius: float, *, center: Any = None, public_rows: int | None = None
    ) -> None:
        super().__init__()
        self.norm = errors.choice("norm", norm, NORMS)
        self.radius = positive("radius", radius)
        self.public_rows = (
            None if public_rows is None else errors.integer("public_rows", public_rows, 1)
        )
        if center is None:
            if public_rows is not None:
                raise errors.mistyped(
                    "public_rows", "left out where there is no centre", public_rows
                )
            self.register_buffer("center", None)
            return
        rows = _public_array("center", center, (1, 2))
        if rows.ndim == 2:
            if public_rows not in (None, len(rows)):
                raise errors.invalid("public_rows", f"the number of rows, {len(rows)}", public_rows)
            self.public_rows, rows = len(rows), rows.mean(axis=0)
        self.register_buffer("center", torch.from_numpy(rows.copy()))

    def forward(self, x: torch.Tensor) -> Any:
        """Clip the rows.

        Args:
            x: finite numbers, shape `(..., dim)`; float64, float32, bfloat16 or float16.

        Returns:
            A tensor of the same shape and dtype; without a centre x itself where no row is
            outside.

        Raises:
            TypeError: if x is not a tensor of these.
            ValueError: if it has no dimension, no entries, an entry is not finite, or rows do not
                have the length of the centre.
        """
        rows = _check_rows(x)
        if self.center is not None:
            self._check_width("x", x.shape[-1], self.center.numel(), tuple(x.shape))
            # Rounded before it is clipped: nothing is rounded outside afterwards.
            x = _cast_like(rows - self.center.to(rows.device), x)
            rows = _check_rows(x)
        outside = _row_norms(rows.detach(), self.norm) > self.radius
        if not bool(outside.any()):
            return x
        return _cast_like(_shrink_rows(rows, outside, self.norm, self.radius, x), x)

    def range(self, dim: int) -> Ball:
        """Return the ball around the origin in which rows of `dim` entries end up."""
        if self.center is not None:
            self._check_width("dim", dim, self.center.numel(), dim)
        return Ball(self.norm, self.radius, dim)

    def extra_repr(self) -> str:
        """Return the parameters, as `repr` shows them."""
        shown = f"norm={self.norm!r}, radius={self.radius!r}"
        if self.center is None:
            return shown
        many = "rows" if self.public_rows is None else f"{self.public_rows:,} rows"
        return f"{shown}, centre of {many} that must be public"


@suggest_arguments
class Project(_FittedTransform):
    """Project rows onto few directions, before `Clip`: ``directions (x - mean)``.

    Noise grows with the number of entries. The directions in which public texts of the same kind
    differ most keep most of what texts differ in. Directions have length 1 and are perpendicular,
    so that no two rows end up farther apart in L2 than they were. It does not bound the rows: a
    `Clip`, `MinMax` or `Normalise` follows.

    Args:
        rows: vectors of public texts, shape `(n, width)`, whose principal directions are
            taken and the mean is subtracted; or "random" for directions that nothing was fitted
            on. A claim does not cover these rows: they must be public.
        dim: number of directions, at most `width` and n.
        width: numbers in a vector of the encoder; only for "random".
        rng: of random directions: None (fresh entropy, recorded), an int in [0, 2**63) or a
            Generator.

    Attributes:
        directions: a buffer of float64, shape `(dim, width)`.
        mean: a buffer of float64, shape `(width,)`; zeros for random directions.
        shares: share of the rows' variance in each direction, shape `(dim,)`; NaN for random ones.
        public_rows: n, or None for random directions.
        seed: of random directions, or None of others.

    Raises:
        TypeError: if an argument is of the wrong kind, or given where it has no meaning.
        ValueError: if `dim` is above the width or the number of rows, an entry is not finite, or
            the rows do not vary in `dim` directions.

    Source:
        Pearson (1901), principal directions.

    Example:
        >>> public = [[0.0, 0.0, 1.0], [2.0, 0.1, 1.0], [4.0, 0.0, 1.0]]
        >>> project = Project(public, 1)
        >>> project
        Project(dim=1, width=3, principal directions of 3 rows that must be public)
        >>> project(torch.tensor([[3.5, 0.0, 5.0]]))
        tensor([[1.5000]])
        >>> Project("random", 2, width=3, rng=1)
        Project(dim=2, width=3, random directions of seed 1)
    """

    directions: Any
    mean: Any
    shares: Any

    def __init__(
        self,
        rows: npt.ArrayLike | Literal["random"],
        dim: int,
        *,
        width: int | None = None,
        rng: Rng = None,
    ) -> None:
        super().__init__()
        self.dim = errors.integer("dim", dim, 1)
        self.seed: int | None = None
        self.public_rows = None
        if isinstance(rows, str):
            if rows != "random":
                requirement = "vectors of public texts, shape (n, width), or 'random'"
                raise errors.invalid("rows", requirement, rows)
            if width is None:
                requirement = "given for random directions: the numbers in a vector of the encoder"
                raise errors.mistyped("width", requirement, width)
            self.width, self.seed = errors.integer("width", width, 1), seed_of(rng)
        else:
            for name, value in (("width", width), ("rng", rng)):
                if value is not None:
                    raise errors.mistyped(name, 'left out unless rows are "random"', value)
            array = _public_array("rows", rows, (2,))
            self.public_rows, self.width = array.shape
        limits = (("width, the numbers in a row", self.width), ("number of rows", self.public_rows))
        for limit, most in limits:
            if most is not None and self.dim > most:
                raise errors.invalid("dim", f"at most the {limit} ({most})", self.dim)
        if self.public_rows is None:
            source = np.random.default_rng(self.seed).normal(size=(self.width, self.dim))
            directions = np.linalg.qr(source)[0].T
            mean, shares = np.zeros(self.width), np.full(self.dim, np.nan)
        else:
            mean = array.mean(axis=0)
            directions, shares = _principal_directions(array, mean, self.dim)
        for name, held in (("directions", directions), ("mean", mean), ("shares", shares)):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(held)))

    def forward(self, x: torch.Tensor) -> Any:
        """Project the rows.

        Args:
            x: finite numbers, shape `(..., width)`; float64, float32, bfloat16 or float16.

        Returns:
            A tensor of the same dtype, shape `(..., dim)`.

        Raises:
            TypeError: if x is not a tensor of these.
            ValueError: if its rows have another length, or an entry is not finite.
        """
        rows = _check_rows(x)
        self._check_width("x", x.shape[-1], self.width, tuple(x.shape))
        place = rows.device
        return _cast_like((rows - self.mean.to(place)) @ self.directions.to(place).T, x)

    def dim_of(self, width: int) -> int:
        """Return the number of entries of projected rows; raise ValueError for another width."""
        self._check_width("width", width, self.width, width)
        return self.dim

    def get_extra_state(self) -> Any:
        """Return the number of public rows and the seed, -1 if missing, as a tensor on the CPU."""
        numbers = [-1 if number is None else number for number in (self.public_rows, self.seed)]
        return torch.tensor(numbers, dtype=torch.int64, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Take over a saved number of rows and seed; an error for what is not such a tensor."""
        numbers = layers.read_state(self, state, self.get_extra_state(), "a Project")
        self.public_rows, self.seed = (None if number < 0 else number for number in numbers)

    def extra_repr(self) -> str:
        """Return the parameters and the rows or seed of the directions, as `repr` shows them."""
        shown = f"dim={self.dim}, width={self.width}"
        if self.public_rows is None:
            return f"{shown}, random directions of seed {self.seed}"
        return f"{shown}, principal directions of {self.public_rows:,} rows that must be public"


def count_zeroed(transform: Any) -> int:
    """Return the number of rows that a transform has made zeros so far; 0 if it makes none."""
    return transform.zeroed if has_all(transform, "zeroed") else 0


@suggest_arguments
class TransformChain(torch.nn.Sequential):
    """Transforms one after the other; the last one bounds the rows.

    Args:
        steps: transforms with a method `range(dim)`, and before the last of them `Project`.
    """

    def __init__(self, steps: Iterable[Any]) -> None:
        super().__init__(*steps)

    def range(self, dim: int) -> Any:
        """Return the set in which rows that had `dim` entries end up."""
        for step in list(self)[:-1]:
            dim = step.dim_of(dim) if isinstance(step, Project) else step.range(dim).dim
        return self[-1].range(dim)

    @property
    def zeroed(self) -> int:
        """Number of rows that its steps have made zeros so far."""
        return sum(map(count_zeroed, self))

    def __repr__(self) -> str:
        """Return the steps in order, on one line."""
        return f"[{', '.join(map(repr, self))}]"


def fitted_steps(transform: Any) -> list[Any]:
    """Return the steps of a transform that were fitted on rows, which must be public."""
    steps = transform if isinstance(transform, TransformChain) else [transform]
    return [
        step
        for step in steps
        if (isinstance(step, Project) and step.public_rows is not None)
        or (isinstance(step, Clip) and step.center is not None)
    ]


@suggest_arguments
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

    def forward(self, x: torch.Tensor) -> Any:
        """Scale the rows.

        Args:
            x: finite numbers, shape `(..., dim)` with dim >= 2; float64, float32, bfloat16 or
                float16.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            TypeError: if x is not a tensor of these.
            ValueError: if its rows have fewer than two entries, or an entry is not finite.
        """
        rows = _check_rows(x)
        if rows.shape[-1] == 1:
            requirement = "of a shape (..., dim) with dim >= 2: one entry has no range"
            raise errors.invalid("x", requirement, tuple(x.shape))
        low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
        constant = (low == high).detach()
        self.zeroed += _warn_of_zero_rows(constant, "constant (max - min = 0)")
        # A quarter of everything has the same quotients, and a range that does not overflow.
        quarter = torch.ones_like(low).masked_fill(torch.maximum(-low, high).detach() > 1e300, 0.25)
        bottom = low * quarter
        width = torch.where(constant, 1.0, high * quarter - bottom)
        return _cast_like((rows * quarter - bottom) / width, x)

    def range(self, dim: int) -> MinMaxRows:
        """Return the set in which rows of `dim` entries end up; raise ValueError for one entry."""
        return MinMaxRows(dim)


@suggest_arguments
class Normalise(torch.nn.Module):
    """Divide each row by its norm: ``x / norm(x)``.

    After rounding the norm, taken in float64, is at most 1, so that rounding does not add to the
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
        self.norm = errors.choice("norm", norm, NORMS)
        self.zeroed = 0

    def forward(self, x: torch.Tensor) -> Any:
        """Normalise the rows.

        Args:
            x: finite numbers, shape `(..., dim)`; float64, float32, bfloat16 or float16.

        Returns:
            A tensor of the same shape and dtype.

        Raises:
            TypeError: if x is not a tensor of these.
            ValueError: if it has no dimension, no entries, or an entry is not finite.
        """
        rows = _check_rows(x)
        zero = (rows.detach() == 0.0).all(-1, keepdim=True)
        self.zeroed += _warn_of_zero_rows(zero, "zero (norm 0)")
        return _cast_like(_shrink_rows(rows, ~zero, self.norm, 1.0, x), x)

    def range(self, dim: int) -> Sphere:
        """Return the unit sphere of the norm, on which rows of `dim` entries end up."""
        return Sphere(dim, self.norm)

    def extra_repr(self) -> str:
        """Return the parameters, as `repr` shows them."""
        return f"norm={self.norm!r}"


class _StraightThroughRounding(torch.autograd.Function):
    """Rounded numbers in place of exact ones, with the gradients of these."""

    @staticmethod
    def forward(ctx: Any, exact: Any, rounded: Any) -> Any:
        """Return the rounded numbers."""
        return rounded.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the gradient unchanged."""
        return gradient, None


def _public_array(name: str, value: Any, dims: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Check public rows, or a centre made from such, and return them in float64."""
    shapes = " or ".join({1: "(dim,)", 2: "(n, dim)"}[axes] for axes in dims)
    requirement = f"an array of finite numbers of shape {shapes}"
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().double().numpy()
    numbers = errors.numeric(name, requirement, value)
    if numbers.ndim not in dims or not numbers.size:
        raise errors.invalid(name, requirement, numbers.shape)
    array = np.ascontiguousarray(numbers, np.float64)
    wrong = np.flatnonzero(~np.isfinite(np.atleast_2d(array)).all(axis=1))
    if wrong.size:
        first = np.atleast_2d(array)[wrong[0]]
        where = f"row {wrong[0]} of {name}" if array.ndim == 2 else name
        raise errors.about(errors.invalid(where, "finite numbers", first), name)
    return array


def _principal_directions(rows: Any, mean: Any, dim: int) -> tuple[Any, Any]:
    """Compute the `dim` directions of largest variance, and the share of each."""
    centred = rows - mean
    # Of many rows the small factor has the same directions.
    _, sizes, directions = np.linalg.svd(np.linalg.qr(centred, mode="r"), full_matrices=False)
    # Smaller ones are rounding of the mean.
    least = np.finfo(np.float64).eps * max(rows.shape) * max(float(sizes[0]), np.abs(rows).max())
    rank = int((sizes > least).sum())
    if rank < dim:
        requirement = f"rows that vary in {dim} directions at least"
        raise errors.invalid("rows", requirement, f"{len(rows)} rows that vary in {rank}")
    directions = directions[:dim]
    # The sign of a direction is a matter of the routine: the largest entry is positive.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
    return directions * np.sign(largest), sizes[:dim] ** 2 / (sizes**2).sum()


def _check_rows(x: Any) -> Any:
    """Check rows of finite numbers and return them in float64."""
    rows = layers.as_float64_rows(x)
    wrong = ~torch.isfinite(rows.detach()).all(-1)
    if bool(wrong.any()):
        if x.ndim == 1:
            raise errors.invalid("x", "finite numbers", x.tolist())
        places = [place[0] if x.ndim == 2 else tuple(place) for place in wrong.nonzero().tolist()]
        shown = ", ".join(map(str, places[:5])) + (", ..." if len(places) > 5 else "")
        name = f"row{'s' * (len(places) > 1)} {shown} of x"
        raise errors.invalid(name, "finite numbers", rows[wrong][0].tolist())
    return rows


def _cast_like(rows: Any, x: Any) -> Any:
    """Convert rows to the dtype and the device of x."""
    return rows.to(x.dtype).to(x.device)


def _warn_of_zero_rows(wrong: Any, what: str) -> int:
    """Warn of rows that become zeros, and count them."""
    count = int(wrong.sum())
    if count:
        message = (
            f"{count} of {wrong.numel()} rows are {what} and became zeros: they lie outside of the "
            "transform's range, within its sensitivity"
        )
        # The caller of the module, above its forward and two functions of torch.
        warnings.warn(message, errors.AssumptionWarning, stacklevel=6)
    return count


def _row_norms(rows: Any, norm: str) -> Any:
    """Compute the norm of each row of float64, its last dimension kept; no square overflows."""
    parts, power = _scale_by_power_of_two(rows)
    if norm == "l2":
        # Not torch's norm, which rounds other sums of two squares than all else does.
        return parts.square_().sum(-1, keepdim=True).sqrt_() * power
    return torch.linalg.vector_norm(parts, _NORM_ORDERS[norm], dim=-1, keepdim=True) * power


def _scale_by_power_of_two(rows: Any) -> Any:
    """Divide rows by a power of two, which is exact, to entries up to 2; return it as well."""
    largest = rows.detach().abs().amax(-1, keepdim=True)
    power = torch.where(largest == 0.0, 1.0, largest / (2.0 * torch.frexp(largest).mantissa))
    return rows / power, power


def _shrink_rows(rows: Any, moved: Any, norm: str, radius: float, x: Any) -> Any:
    """Scale the rows in `moved` to norm `radius`, rounded to the dtype of x and never outside."""
    # Sums in another order differ by 2 (dim - 2) half units in the last place at most: this far
    # inside, none finds a row outside. With 2^-42 at most, `Sphere` finds them all on it.
    slack = min(max(rows.shape[-1] - 2, 0) * 2.0**-52, 2.0**-42)
    limit, target = radius * (1.0 - slack), radius * (1.0 - 2.0 * slack)
    parts, _ = _scale_by_power_of_two(rows)
    lengths = torch.linalg.vector_norm(parts, _NORM_ORDERS[norm], dim=-1, keepdim=True)
    # Rows that stay must not be divided by 0, or their gradients are NaN.
    exact = torch.where(moved, parts / torch.where(moved, lengths, 1.0) * target, rows)
    rounded = exact.detach().to(x.dtype)
    # Towards 0: in 32 and 16 bits that is all, and in 64 the last bits may ask for some steps.
    rounded = _next_towards_zero(rounded, rounded.to(torch.float64).abs() > exact.detach().abs())
    while bool((over := moved & (_row_norms(rounded.to(torch.float64), norm) > limit)).any()):
        rounded = _next_towards_zero(rounded, over)
    return _StraightThroughRounding.apply(exact, rounded.to(torch.float64))


def _next_towards_zero(x: Any, where: Any) -> Any:
    """Move the floats that `where` selects to the next one towards 0."""
    # Its bits are those of the integer below.
    bits = x.view(_INTEGER_DTYPES[x.element_size()])
    return (bits - (where & (x != 0.0)).to(bits.dtype)).view(x.dtype)
