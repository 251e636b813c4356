"""Noise for pure epsilon: Laplace in every entry for L1, its spherical twin for L2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import instance, invalid, numeric, vector
from ..hints import hinted
from ..mechanisms import positive
from ..mechanisms.systems import noise_scale
from ..records import Pair, Record
from ..sensitivity.closed_forms import Sensitivity, in_norm
from ..streams import Rng, seed_of, sized

__all__ = ["Floats", "L2Laplace", "generator", "l2_laplace", "laplace", "row_norms"]

Floats = npt.NDArray[np.float64]


@hinted
def laplace(epsilon: float, sensitivity: float | Sensitivity) -> float:
    """The scale of Laplace noise, independent in every entry, for pure epsilon.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    ``b = sensitivity / epsilon``.

    Args:
        epsilon: the epsilon wanted, in (0, 1e300].
        sensitivity: largest L1 distance of two neighbours, in the units of the input, above 0; or
            what `dpcore.sensitivity.sensitivity` found in "l1".

    Returns:
        The scale b, in the units of the input.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if one, or the scale, is not in (0, 1e300].

    Source:
        Dwork and Roth (2014), theorem 3.6.

    Example:
        >>> laplace(0.5, 2.0)
        4.0
    """
    epsilon = positive("epsilon", epsilon)
    apart = positive("sensitivity", in_norm("sensitivity", sensitivity, "l1"))
    return noise_scale("sensitivity / epsilon", apart, epsilon)


@hinted
def l2_laplace(epsilon: float, sensitivity: float | Sensitivity) -> L2Laplace:
    """The L2 Laplace mechanism for pure epsilon.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    ``b = sensitivity / epsilon``: the scale does not grow with the dimension, the length of the
    noise does, for its mean is b dim.

    Args:
        epsilon: the epsilon wanted, in (0, 1e300].
        sensitivity: largest L2 distance of two neighbours, in the units of the input, above 0; or
            what `dpcore.sensitivity.sensitivity` found in "l2".

    Returns:
        The mechanism.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if one, or the scale, is not in (0, 1e300].

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> l2_laplace(0.5, 2.0)
        L2Laplace(scale=4.0)
    """
    return L2Laplace(laplace(epsilon, in_norm("sensitivity", sensitivity, "l2")))


@hinted
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class L2Laplace(Record, word="L2Laplace"):
    """Additive noise with density proportional to ``exp(-norm2(s) / b)``, in any dimension.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    A uniform direction times a length drawn from Gamma(dim, b). In one dimension it is Laplace
    noise. The privacy loss ``(norm2(y - x') - norm2(y - x)) / b`` is at most the L2 distance of
    the inputs over b, and equal to it for every y on the line through both, beyond x.

    Args:
        scale: b, in the units of the input; a noise vector's mean length is b dim.

    Raises:
        TypeError: if `scale` is not a number.
        ValueError: if `scale` is not in (0, 1e300].

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011), algorithm 1.

    Example:
        >>> L2Laplace(2.0)([0.0, 0.0, 0.0], 5, 1).shape
        (5, 3)
    """

    scale: float

    thread_safe: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the scale."""
        object.__setattr__(self, "scale", positive("scale", self.scale))

    def __call__(self, x: npt.ArrayLike, size: int, rng: Rng = None) -> Floats:
        """Draw outputs on `x`.

        Args:
            x: the input, one dimension, shape `(dim,)`.
            size: number of outputs, at least 0.
            rng: None, an int seed or a numpy Generator.

        Returns:
            Outputs of shape `(size, dim)`.
        """
        point, size = vector("x", x), sized(size, np.size(x))
        rng = generator(rng)
        noise = rng.standard_normal((size, point.size))
        lengths = row_norms(noise)
        while not lengths.all():
            # An all-zero row has no direction: one in 2^50 or so, for a single entry.
            noise[lengths == 0.0] = rng.standard_normal(point.size)
            lengths = row_norms(noise)
        noise *= (rng.standard_gamma(point.size, size) / lengths)[:, None]
        # As in the compiled core, a sum beyond float64 is infinite without more ado.
        with np.errstate(over="ignore"):
            noise *= self.scale
            noise += point
        return noise

    def log_ratio(self, outputs: npt.ArrayLike, pair: Pair) -> Floats:
        """The privacy loss of outputs: ln of the density on x over the density on x'.

        Args:
            outputs: shape `(size, dim)`, finite, in the units of the input.
            pair: two inputs of shape `(dim,)`.

        Returns:
            One number for each output, within the L2 distance of the pair over `scale`.

        Raises:
            TypeError: if `pair` is not a Pair, or it or `outputs` do not hold real numbers.
            ValueError: if the shapes do not fit, or a number is not finite.

        Example:
            >>> L2Laplace(0.5).log_ratio([[3.0, 0.0], [-1.0, 0.0]], Pair([1, 0], [0, 0]))
            array([ 2., -2.])
        """
        pair = instance("pair", pair, Pair)
        x, x_prime = vector("x", pair.x), vector("x_prime", pair.x_prime)
        requirement = f"finite numbers of shape (size, {x.size})"
        ys = numeric("outputs", requirement, outputs).astype(np.float64, copy=False)
        if not np.isfinite(ys).all():
            raise invalid("outputs", requirement, outputs)
        if ys.ndim != 2 or x.shape != x_prime.shape or ys.shape[1:] != x.shape:
            raise invalid("outputs", f"of shape (size, {x.size})", ys.shape)
        near, far = ys - x, ys - x_prime
        # Squares of rows over their largest entry neither overflow nor vanish.
        largest = np.maximum(np.abs(near), np.abs(far)).max(axis=1, keepdims=True)
        largest[largest == 0.0] = 1.0
        near, far = near / largest, far / largest
        # A difference of squares over the sum: the difference of two long lengths loses digits.
        sums = row_norms(near) + row_norms(far)
        found: Floats = (near + far) @ ((x - x_prime) / self.scale) / np.where(sums > 0, sums, 1.0)
        return found


def generator(rng: Any) -> np.random.Generator:
    """The Generator itself, or a new one from a seed or from fresh entropy."""
    return rng if isinstance(rng, np.random.Generator) else np.random.default_rng(seed_of(rng))


def row_norms(rows: Floats) -> Floats:
    """The L2 norm of every row."""
    found: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return found
