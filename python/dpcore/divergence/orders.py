"""Arguments of the closed forms, and the way from orders of any shape to numbers and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped, vector
from ..mechanisms import LARGEST
from .raw import Reals

__all__ = [
    "by_order",
    "by_part",
    "extrapolate_orders",
    "read_coordinates",
    "read_covariance",
    "read_deviations",
    "read_orders",
    "read_probabilities",
    "same_length",
]

_SUM_TOLERANCE: Final = 1e-9


def read_orders(alphas: Any) -> Reals:
    """Read orders above 0, inf included, in any shape."""
    requirement = "an array of orders above 0"
    try:
        found = np.asarray(alphas)
    except ValueError:
        raise invalid("alphas", requirement, alphas) from None
    if found.dtype.kind not in "uif":
        raise mistyped("alphas", requirement, alphas)
    found = found.astype(np.float64)
    # A NaN is not above 0 either.
    if not (found > 0.0).all():
        raise invalid("alphas", requirement, alphas)
    return found


def by_part(
    alphas: Reals, part: Callable[[Reals, Reals, bool], Reals], limit: Callable[[], float]
) -> Reals:
    """Compute D_alpha as a sum over coordinates.

    Args:
        alphas: checked orders.
        part: (a, b, swap) -> divergences of each coordinate, for orders a >= 1/2 of shape (n, 1)
            and b = a - 1; `swap` asks for D(P1||P0).
        limit: D of order inf.
    """
    flat = alphas.ravel()
    found = np.empty_like(flat)
    low, high = flat < 0.5, (flat >= 0.5) & np.isfinite(flat)
    with np.errstate(all="ignore"):
        if low.any():
            a = flat[low, None]
            found[low] = (a[:, 0] / (1.0 - a[:, 0])) * part(1.0 - a, -a, True).sum(axis=1)
        if high.any():
            a = flat[high, None]
            found[high] = part(a, a - 1.0, False).sum(axis=1)
        if np.isinf(flat).any():
            found[np.isinf(flat)] = limit()
    return found.reshape(alphas.shape)


def by_order(alphas: Reals, value: Callable[[int, float, float, bool], float]) -> Reals:
    """Compute D_alpha for each order.

    `value` takes (place, a, b, swap), as in `by_part`; a may be inf.
    """
    found = []
    for i, a in enumerate(alphas.ravel().tolist()):
        if a < 0.5:
            found.append(a / (1.0 - a) * value(i, 1.0 - a, -a, True))
        else:
            found.append(value(i, a, a - 1.0, False))
    return np.array(found, dtype=np.float64).reshape(alphas.shape)


def read_coordinates(name: str, value: Any) -> Reals:
    """Read a number or a vector of finite numbers, as a vector."""
    return vector(name, [value] if np.ndim(value) == 0 else value)


def read_deviations(name: str, value: Any) -> Reals:
    """Read a positive number or a vector of them, as a vector."""
    found = read_coordinates(name, value)
    if not ((found > 0.0) & (found <= LARGEST)).all():
        raise invalid(name, f"above 0 and at most {LARGEST:g} in every entry", value)
    return found


def _check_covariance(name: str, value: Any) -> Reals:
    """Check and return a symmetric positive definite matrix."""
    requirement = "a symmetric positive definite matrix"
    found = np.asarray(value)
    if found.dtype.kind not in "uif":
        raise mistyped(name, requirement, value)
    found = found.astype(np.float64)
    square = found.ndim == 2 and found.shape[0] == found.shape[1] and found.size > 0
    if not (square and np.isfinite(found).all() and (found == found.T).all()):
        raise invalid(name, requirement, value)
    try:
        np.linalg.cholesky(found)
    except np.linalg.LinAlgError:
        raise invalid(name, requirement, value) from None
    return found


def same_length(**parts: npt.NDArray[Any]) -> int:
    """Return the number of coordinates; each vector has this length or one entry for all."""
    sizes = {name: len(part) for name, part in parts.items()}
    most = max(sizes.values())
    for name, size in sizes.items():
        if size not in (1, most):
            raise invalid(name, f"a number or of length {most}, as another argument is", size)
    return most


def read_probabilities(name: str, value: Any) -> Reals:
    """Read a vector of probabilities, unchanged; they must sum to 1 within 1e-9."""
    found = vector(name, value)
    total = math.fsum(found.tolist())
    if (found < 0.0).any() or abs(total - 1.0) > _SUM_TOLERANCE:
        raise invalid(name, "probabilities that sum to 1 within 1e-9", value)
    return found


def read_covariance(name: str, value: Any) -> Reals:
    """Read a covariance from an argument of `gaussian`; a number gives one entry for all."""
    return (
        _check_covariance(name, value)
        if np.ndim(value) == 2
        else np.diag(read_deviations(name, value) ** 2)
    )


def extrapolate_orders(rest: Any, alphas: Reals) -> Reals:
    """Return the divergences of the rests, in the shape of the orders."""
    requirement = "a number, an array in the shape of alphas or a function of them, at least 0"
    found = np.asarray(rest(alphas) if callable(rest) else rest)
    if found.dtype.kind not in "uif":
        raise mistyped("rest", requirement, rest)
    # A NaN is not at least 0 either.
    if found.shape not in ((), alphas.shape) or not (found >= 0.0).all():
        raise invalid("rest", requirement, rest)
    return np.broadcast_to(found.astype(np.float64), alphas.shape)
