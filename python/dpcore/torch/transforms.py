"""Torch modules that map each row of a tensor into a bounded set, before noise is added.

The projection of `Project` and the centre of `Clip` may be computed from rows of data. These rows
must be public, because the privacy claim does not cover them.
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
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from . import layers

_INTEGER_DTYPES = {8: torch.int64, 4: torch.int32, 2: torch.int16}
_NORM_ORDERS = {"l1": 1, "l2": 2, "linf": float("inf")}


class _FittedTransform(torch.nn.Module):
    """Base class of transforms with float64 buffers, which move to a device but are never cast."""

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


@explain_argument_errors
class Clip(_FittedTransform):
    """Torch module that limits the norm of each row x: ``x min(1, radius / norm(x))``.

    Rows lie along the last dimension. The norm of a clipped row is never above `radius`, even after
    rounding. A second clip therefore has no effect. A row of zeros is unchanged.

    With a centre c, the transform is ``(x - c) min(1, radius / norm(x - c))``. The returned rows
    are relative to c, and lie in a ball around the origin. The method `range` returns this ball.
    After the noise is added, you can add c to the rows without privacy cost.

    Args:
        norm: name of the norm, "l1", "l2" or "linf".
        radius: radius of the ball, in the units of x, in (0, 1e300].
        center: the centre c, shape `(dim,)`, or public rows, shape `(n, dim)`. With public rows, c
            is the mean of the rows. If you pass c itself, compute c from public rows. None means
            the origin.
        public_rows: if you pass c itself, the number of public rows from which you computed c. None
            if the number is unknown.

    Attributes:
        center: the centre c, a buffer of float64, shape `(dim,)`, or None for the origin.

    Raises:
        TypeError: if `norm` is not a string, `radius` is not a number, or `center` is not an array.
        ValueError: if an argument is out of range, or `center` is not finite.

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
        rows = _read_finite_array("center", center, (1, 2))
        if rows.ndim == 2:
            if public_rows not in (None, len(rows)):
                raise errors.invalid("public_rows", f"the number of rows, {len(rows)}", public_rows)
            self.public_rows, rows = len(rows), rows.mean(axis=0)
        self.register_buffer("center", torch.from_numpy(rows.copy()))

    def forward(self, x: torch.Tensor) -> Any:
        """Return the rows of x, each clipped to norm `radius`.

        Args:
            x: tensor of rows, shape `(..., dim)`, of float64, float32, bfloat16 or float16. All
                entries must be finite.

        Returns:
            A tensor with the shape and dtype of x. If the transform has no centre and the norm of
            every row is at most `radius`, the method returns x itself.

        Raises:
            TypeError: if x is not a tensor of one of these four dtypes.
            ValueError: if x has no dimension or no entries, if an entry is not finite, or if the
                rows and the centre have different numbers of entries.
        """
        rows = _require_finite_float64_rows(x)
        if self.center is not None:
            self._check_width("x", x.shape[-1], self.center.numel(), tuple(x.shape))
            # Round before clipping: later rounding could move a row outside.
            x = _cast_and_move_like(rows - self.center.to(rows.device), x)
            rows = _require_finite_float64_rows(x)
        outside = _row_norms(rows.detach(), self.norm) > self.radius
        if not bool(outside.any()):
            return x
        return _cast_and_move_like(_shrink_rows(rows, outside, self.norm, self.radius, x), x)

    def range(self, dim: int) -> Ball:
        """Return the ball around the origin that contains all clipped rows with `dim` entries."""
        if self.center is not None:
            self._check_width("dim", dim, self.center.numel(), dim)
        return Ball(self.norm, self.radius, dim)

    def extra_repr(self) -> str:
        """Return the parameters of this transform as text, for `repr`."""
        shown = f"norm={self.norm!r}, radius={self.radius!r}"
        if self.center is None:
            return shown
        many = "rows" if self.public_rows is None else f"{self.public_rows:,} rows"
        return f"{shown}, centre of {many} that must be public"


@explain_argument_errors
class Project(_FittedTransform):
    """Torch module that reduces rows x to a few entries: ``directions (x - mean)``.

    The noise that privacy requires grows with the number of entries of a row. Therefore a
    projection reduces this noise. By default, the module uses the directions in which the vectors
    of public texts vary most. These directions keep most of the differences between texts that
    resemble the public texts. The directions have length 1 and are perpendicular. The L2 distance
    between two rows therefore does not increase. A projection does not bound the rows: a `Clip`,
    `MinMax` or `Normalise` must follow.

    Args:
        rows: vectors of public texts, shape `(n, width)`, or "random". The directions are the
            principal directions of the vectors, after their mean is subtracted. The vectors must be
            public, because no privacy claim covers these vectors. With "random", the directions are
            random and do not depend on any texts.
        dim: number of directions, at most `width` and at most the number n of vectors.
        width: number of entries of a row, only for "random".
        rng: seed of random directions: an integer in [0, 2**63), a numpy Generator, or None for a
            new seed. The attribute `seed` records the seed.

    Attributes:
        directions: the directions as rows, a buffer of float64, shape `(dim, width)`.
        mean: the mean of the public vectors, a buffer of float64, shape `(width,)`; zeros for
            random directions.
        shares: share of the variance of the public vectors in each direction, shape `(dim,)`; NaN
            for random directions.
        public_rows: the number n of public vectors, or None for random directions.
        seed: seed of random directions, or None for directions from public vectors.

    Raises:
        TypeError: if an argument has the wrong type, or if two arguments exclude each other.
        ValueError: if `dim` is above the width or the number of public vectors, if an entry is not
            finite, or if the public vectors vary in fewer than `dim` directions.

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
            self.width, self.seed = errors.integer("width", width, 1), to_seed(rng)
        else:
            for name, value in (("width", width), ("rng", rng)):
                if value is not None:
                    raise errors.mistyped(name, 'left out unless rows are "random"', value)
            array = _read_finite_array("rows", rows, (2,))
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
            directions, shares = _pca_axes_and_shares(array, mean, self.dim)
        for name, held in (("directions", directions), ("mean", mean), ("shares", shares)):
            self.register_buffer(name, torch.from_numpy(np.ascontiguousarray(held)))

    def forward(self, x: torch.Tensor) -> Any:
        """Return the projections of the rows of x.

        Args:
            x: tensor of rows, shape `(..., width)`, of float64, float32, bfloat16 or float16. All
                entries must be finite.

        Returns:
            A tensor of shape `(..., dim)` with the dtype of x.

        Raises:
            TypeError: if x is not a tensor of one of these four dtypes.
            ValueError: if the rows do not have `width` entries, or an entry is not finite.
        """
        rows = _require_finite_float64_rows(x)
        self._check_width("x", x.shape[-1], self.width, tuple(x.shape))
        place = rows.device
        return _cast_and_move_like((rows - self.mean.to(place)) @ self.directions.to(place).T, x)

    def dim_of(self, width: int) -> int:
        """Return the number of entries of a projected row.

        Raise a ValueError if `width` is not the number of entries that this projection accepts.
        """
        self._check_width("width", width, self.width, width)
        return self.dim

    def get_extra_state(self) -> Any:
        """Return the number of public vectors and the seed (-1 if missing), for `state_dict`."""
        numbers = [-1 if number is None else number for number in (self.public_rows, self.seed)]
        return torch.tensor(numbers, dtype=torch.int64, device="cpu")

    def set_extra_state(self, state: Any) -> None:
        """Load the tensor of `get_extra_state`: the number of public vectors, and the seed.

        Raise an error if the tensor does not have the right shape and dtype.
        """
        numbers = layers.read_state_numbers(self, state, self.get_extra_state(), "a Project")
        self.public_rows, self.seed = (None if number < 0 else number for number in numbers)

    def extra_repr(self) -> str:
        """Return the text for `repr`: the parameters and the kind of directions."""
        shown = f"dim={self.dim}, width={self.width}"
        if self.public_rows is None:
            return f"{shown}, random directions of seed {self.seed}"
        return f"{shown}, principal directions of {self.public_rows:,} rows that must be public"


def zeroed_rows(transform: Any) -> int:
    """Return the number of rows that a transform has replaced by zeros until now."""
    return transform.zeroed if has_all(transform, "zeroed") else 0


@explain_argument_errors
class TransformChain(torch.nn.Sequential):
    """Torch module that applies several transforms to rows, in order.

    Args:
        steps: the transforms. Each transform either is a `Project`, or has a method `range(dim)`
            that returns the set of its outputs. The last transform must not be a `Project`.
    """

    def __init__(self, steps: Iterable[Any]) -> None:
        super().__init__(*steps)

    def range(self, dim: int) -> Any:
        """Return the bounded set that contains all transformed rows, for rows of `dim` entries."""
        for step in list(self)[:-1]:
            dim = step.dim_of(dim) if isinstance(step, Project) else step.range(dim).dim
        return self[-1].range(dim)

    @property
    def zeroed(self) -> int:
        """Number of rows that the transforms of this chain have replaced by zeros until now."""
        return sum(map(zeroed_rows, self))

    def __repr__(self) -> str:
        """Return the transforms in order, on one line."""
        return f"[{', '.join(map(repr, self))}]"


def public_steps(transform: Any) -> list[Clip | Project]:
    """Return the transforms of a chain that were computed from public rows."""
    steps = transform if isinstance(transform, TransformChain) else [transform]
    return [
        step
        for step in steps
        if (isinstance(step, Project) and step.public_rows is not None)
        or (isinstance(step, Clip) and step.center is not None)
    ]


@explain_argument_errors
class MinMax(torch.nn.Module):
    """Torch module that scales each row to minimum 0 and maximum 1: ``(x - min) / (max - min)``.

    The minimum 0 and the maximum 1 are exact, even after rounding. For a constant row, the formula
    is 0/0, and the output is a row of zeros. The attribute `zeroed` counts the constant rows, and
    an `AssumptionWarning` reports them.

    A row of zeros is not in the set that the method `range` returns. However, the sensitivities
    (largest distances) of this set also hold for pairs with a row of zeros. The distance of any row
    in the set from a row of zeros is at most dim - 1 in L1, sqrt(dim - 1) in L2 and 1 in Linf.

    Attributes:
        zeroed: number of constant rows that this module has replaced by zeros until now.

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
        """Return the rows of x, each scaled to minimum 0 and maximum 1.

        Args:
            x: tensor of rows, shape `(..., dim)` with dim >= 2, of float64, float32, bfloat16 or
                float16. All entries must be finite.

        Returns:
            A tensor with the shape and dtype of x.

        Raises:
            TypeError: if x is not a tensor of one of these four dtypes.
            ValueError: if rows have fewer than two entries, or an entry is not finite.
        """
        rows = _require_finite_float64_rows(x)
        if rows.shape[-1] == 1:
            requirement = "of a shape (..., dim) with dim >= 2: one entry has no range"
            raise errors.invalid("x", requirement, tuple(x.shape))
        low, high = rows.amin(-1, keepdim=True), rows.amax(-1, keepdim=True)
        constant = (low == high).detach()
        self.zeroed += _warn_of_zeroed_rows(constant, "constant (max - min = 0)")
        # Division by 4 does not change the quotients, and the range does not overflow.
        quarter = torch.ones_like(low).masked_fill(torch.maximum(-low, high).detach() > 1e300, 0.25)
        bottom = low * quarter
        width = torch.where(constant, 1.0, high * quarter - bottom)
        return _cast_and_move_like((rows * quarter - bottom) / width, x)

    def range(self, dim: int) -> MinMaxRows:
        """Return the set that contains all scaled rows with `dim` entries, for `dim` at least 2."""
        return MinMaxRows(dim)


@explain_argument_errors
class Normalise(torch.nn.Module):
    """Torch module that divides each row by its norm: ``x / norm(x)``.

    The norm of a returned row is at most 1, even after rounding. The distance between two rows is
    therefore at most 2 in this norm, even after rounding. For a row of zeros, the formula is 0/0,
    and the output is a row of zeros. The attribute `zeroed` counts the rows of zeros, and an
    `AssumptionWarning` reports them.

    A row of zeros is not in the set that the method `range` returns. However, the sensitivities
    (largest distances) of this set also hold for pairs with a row of zeros. The distance from a row
    of zeros to any row in the set is half of the largest distance between two rows in the set.

    Args:
        norm: name of the norm, "l1", "l2" or "linf".

    Attributes:
        zeroed: number of rows of zeros that this module has received until now.

    Raises:
        TypeError: if `norm` is not a string.
        ValueError: if `norm` is not "l1", "l2" or "linf".

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
        """Return the rows of x, each divided by its norm.

        Args:
            x: tensor of rows, shape `(..., dim)`, of float64, float32, bfloat16 or float16. All
                entries must be finite.

        Returns:
            A tensor with the shape and dtype of x.

        Raises:
            TypeError: if x is not a tensor of one of these four dtypes.
            ValueError: if x has no dimension or no entries, or if an entry is not finite.
        """
        rows = _require_finite_float64_rows(x)
        zero = (rows.detach() == 0.0).all(-1, keepdim=True)
        self.zeroed += _warn_of_zeroed_rows(zero, "zero (norm 0)")
        return _cast_and_move_like(_shrink_rows(rows, ~zero, self.norm, 1.0, x), x)

    def range(self, dim: int) -> Sphere:
        """Return the unit sphere of the norm.

        The sphere contains all normalised rows with `dim` entries.
        """
        return Sphere(dim, self.norm)

    def extra_repr(self) -> str:
        """Return the parameters of this transform as text, for `repr`."""
        return f"norm={self.norm!r}"


class _StraightThroughRounding(torch.autograd.Function):
    """Autograd function that returns rounded numbers, with the gradient of the exact numbers."""

    @staticmethod
    def forward(ctx: Any, exact: Any, rounded: Any) -> Any:
        """Return the rounded numbers."""
        return rounded.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        """Return the gradient unchanged."""
        return gradient, None


def _read_finite_array(name: str, value: Any, dims: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Check public rows, or a centre computed from public rows; return them in float64."""
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
        raise errors.tag_error(errors.invalid(where, "finite numbers", first), name)
    return array


def _pca_axes_and_shares(rows: Any, mean: Any, dim: int) -> tuple[Any, Any]:
    """Compute the `dim` directions of largest variance, and the share of variance in each."""
    centred = rows - mean
    # If there are many rows, the small QR factor has the same directions.
    _, sizes, directions = np.linalg.svd(np.linalg.qr(centred, mode="r"), full_matrices=False)
    # Smaller singular values are rounding errors of the mean.
    least = np.finfo(np.float64).eps * max(rows.shape) * max(float(sizes[0]), np.abs(rows).max())
    rank = int((sizes > least).sum())
    if rank < dim:
        requirement = f"rows that vary in {dim} directions at least"
        raise errors.invalid("rows", requirement, f"{len(rows)} rows that vary in {rank}")
    directions = directions[:dim]
    # Make the largest entry positive, because the sign of a direction depends on the routine.
    largest = np.take_along_axis(directions, np.abs(directions).argmax(1)[:, None], 1)
    return directions * np.sign(largest), sizes[:dim] ** 2 / (sizes**2).sum()


def _require_finite_float64_rows(x: Any) -> Any:
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


def _cast_and_move_like(rows: Any, x: Any) -> Any:
    """Convert rows to the dtype and the device of the tensor x."""
    return rows.to(x.dtype).to(x.device)


def _warn_of_zeroed_rows(wrong: Any, what: str) -> int:
    """Warn about rows that are replaced by zeros, and return the number of these rows."""
    count = int(wrong.sum())
    if count:
        message = (
            f"{count} of {wrong.numel()} rows are {what} and became zeros: they lie outside of the "
            "transform's range, within its sensitivity"
        )
        # The stack level of the module's caller, above `forward` and two functions of torch.
        warnings.warn(message, errors.AssumptionWarning, stacklevel=6)
    return count


def _row_norms(rows: Any, norm: str) -> Any:
    """Compute the norm of each float64 row without overflow; the last dimension gets length 1."""
    parts, power = _scaled_rows_and_powers_of_two(rows)
    if norm == "l2":
        # torch's norm rounds a sum of two squares differently from other routines.
        return parts.square_().sum(-1, keepdim=True).sqrt_() * power
    return torch.linalg.vector_norm(parts, _NORM_ORDERS[norm], dim=-1, keepdim=True) * power


def _scaled_rows_and_powers_of_two(rows: Any) -> Any:
    """Divide each row by a power of two so that entries are at most 2; return rows and powers."""
    largest = rows.detach().abs().amax(-1, keepdim=True)
    power = torch.where(largest == 0.0, 1.0, largest / (2.0 * torch.frexp(largest).mantissa))
    return rows / power, power


def _shrink_rows(rows: Any, to_shrink: Any, norm: str, radius: float, x: Any) -> Any:
    """Scale the rows in `to_shrink` to norm `radius`, and round them so that no norm exceeds it."""
    # Sums in another order differ by at most 2 (dim - 2) half units in the last place. With this
    # slack, no order puts a row outside. With at most 2^-42, `Sphere` accepts all rows.
    slack = min(max(rows.shape[-1] - 2, 0) * 2.0**-52, 2.0**-42)
    limit, target = radius * (1.0 - slack), radius * (1.0 - 2.0 * slack)
    parts, _ = _scaled_rows_and_powers_of_two(rows)
    lengths = torch.linalg.vector_norm(parts, _NORM_ORDERS[norm], dim=-1, keepdim=True)
    # Do not divide the rows that stay by 0, because their gradients would be NaN.
    exact = torch.where(to_shrink, parts / torch.where(to_shrink, lengths, 1.0) * target, rows)
    rounded = exact.detach().to(x.dtype)
    # Round towards 0. In 32 and 16 bits this suffices; in 64 bits a few more steps may be needed.
    rounded = _next_towards_zero(rounded, rounded.to(torch.float64).abs() > exact.detach().abs())
    while bool((over := to_shrink & (_row_norms(rounded.to(torch.float64), norm) > limit)).any()):
        rounded = _next_towards_zero(rounded, over)
    return _StraightThroughRounding.apply(exact, rounded.to(torch.float64))


def _next_towards_zero(x: Any, where: Any) -> Any:
    """Replace each float that `where` selects by the next float towards 0."""
    # The bits of the next float are the bits of the next lower integer.
    bits = x.view(_INTEGER_DTYPES[x.element_size()])
    return (bits - (where & (x != 0.0)).to(bits.dtype)).view(x.dtype)
