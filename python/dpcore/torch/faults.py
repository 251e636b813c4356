"""Layers with the faults of published systems, as they were published; none of them is private."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np

from .. import mechanisms
from ..errors import choice
from ..hints import hinted
from . import unit
from .layers import NoiseLayer
from .needed import torch

__all__ = ["DPTextNoise", "SharedNoise"]


@hinted
class DPTextNoise(NoiseLayer):
    """DPText's noise by its published formula: one-sided, so that no epsilon bounds its loss.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    ``-b sgn(r) ln(1 - 2 abs(r))`` is Laplace noise for r in (-1/2, 1/2); with the published r in
    (0, 1) the logarithm is undefined for half of the draws. Those are replaced before it is taken:
    after it the gradient of a learnt epsilon would be NaN.

    Args:
        scale: scale b of the formula; or `sensitivity`, `epsilon`, `trainable` and `cap`, as in
            `NoiseLayer`.
        nan: "zero" adds 0 where the logarithm is undefined, "resample" draws r again.
        learning: the other arguments of `NoiseLayer`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a number is out of range, or `nan` neither of the two.

    Source:
        Beigi et al. (2019), equation 9; the fault: Habernal (2022), theorem 3.1.

    Example:
        >>> layer = DPTextNoise(1.0)
        >>> bool((layer(torch.zeros(5)) >= 0.0).all()), layer.loss([0.0], [1.0])
        (True, inf)
        >>> layer, layer.description
        (DPTextNoise(scale=1.0, nan='zero'), DPTextNoise(scale=1.0, nan='zero'))
    """

    faulty = "noise that is never below its input: some outputs are possible for one text alone"

    def __init__(
        self, scale: float | None = None, nan: Literal["zero", "resample"] = "zero", **learning: Any
    ) -> None:
        super().__init__(scale, **learning)
        self.nan: Literal["zero", "resample"] = choice("nan", nan, ("zero", "resample"))

    @property
    def description(self) -> mechanisms.DPTextNoise:
        """The native record of this noise, with the scale as it is now."""
        return mechanisms.DPTextNoise(self.scale, self.nan)

    def _loss(self, x: Any, x_prime: Any, delta: float) -> float:
        return math.inf

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        # With r uniform in (0, 1) the argument 1 - 2r is uniform in (-1, 1).
        argument = unit.uniform(shape, device, generator)
        if self.nan == "zero":
            argument = torch.where(argument < 0.0, 1.0, argument)
        else:
            # Drawn again until it is above 0 it has the law of its absolute value.
            argument.abs_()
        return argument.log_().neg_()

    def _parameters_shown(self) -> str:
        return f"{super()._parameters_shown()}, nan={self.nan!r}"


@hinted
class SharedNoise(NoiseLayer):
    """One Laplace draw for each row, added to all of its entries: differences are exact.

    For audits and experiments, not for releasing data: see `dpcore.sample`.

    Subtracting its smallest entry from a row removes the noise. Arguments and errors are those of
    `NoiseLayer`; `scale` is b.

    Source:
        The code released with Lyu, He and Li (2020): noise of shape (batch, 1).

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
        """None: no native record is noise that all entries share."""
        return None

    def _loss(self, x: Any, x_prime: Any, delta: float) -> float:
        # Any output x + s is one of x' too only where x - x' is the same in every entry.
        with np.errstate(over="ignore"):
            apart = x - x_prime
        return abs(float(apart[0])) / self.scale if (apart == apart[0]).all() else math.inf

    def _noise(self, shape: Any, device: Any, generator: Any) -> Any:
        column = (*shape[:-1], *(1 for _ in shape[-1:]))
        return unit.laplace(unit.uniform(column, device, generator)).expand(shape).clone()
