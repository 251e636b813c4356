"""Cost of repairing ADePT: noise and signal of the two remedies that keep Laplace noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from ...records import Shown
from ...sensitivity import Clip, laplace_scale, sensitivity
from ..running import cell_seed

_COST_DIMS: Final = tuple(2**power for power in range(11))
"""Sizes of the vector: up to the largest that Habernal takes to be typical."""

_TYPICAL_DIMS: Final = (32, 64, 128, 256, 512, 1024)

_AVERAGED_VECTORS: Final = 1000
"""Vectors whose length after clipping is averaged."""


@dataclass(frozen=True, slots=True)
class Law:
    """Law of every entry of an unclipped vector.

    Args:
        title: what a picture says, C being the radius of the clip.
        kind: "uniform" (between -spread C and spread C) or "normal" (standard deviation spread C).
        spread: in units of C.
    """

    title: str
    kind: str
    spread: float

    def draw(
        self, rng: np.random.Generator, dim: int, radius: float, size: int
    ) -> npt.NDArray[np.float64]:
        """Draw vectors, shape `(size, dim)`, by numpy; they are not the counted draws."""
        spread = self.spread * radius
        if self.kind == "uniform":
            return rng.uniform(-spread, spread, (size, dim))
        return rng.normal(0.0, spread, (size, dim))


LAWS: Final[dict[str, Law]] = {
    "uniform": Law("uniform in [-C, C]", "uniform", 1.0),
    "normal 0.1": Law("normal, std 0.1 C", "normal", 0.1),
    "normal 0.01": Law("normal, std 0.01 C", "normal", 0.01),
}


@dataclass(frozen=True, slots=True, repr=False)
class Excess(Shown):
    """True sensitivity compared with ADePT's.

    Args:
        dim: entries of the vector, n.
        claimed: 2 C, what the noise is scaled by.
        true: the L1 sensitivity after L2 clipping, 2 C sqrt(n).
        attained: the L1 distance of the pair that goes with it.
    """

    dim: int
    claimed: float
    true: float
    attained: float

    @property
    def factor(self) -> float:
        """True over claimed sensitivity, the factor between the real and the claimed epsilon."""
        return self.true / self.claimed


def compute_excesses(radius: float) -> tuple[Excess, ...]:
    """Return the table "5.66 to 32 times higher" for typical sizes of an encoder's vector.

    Source:
        Habernal (2021), corollary 5.1 and the paragraph after it.

    Example:
        >>> [round(row.factor, 2) for row in compute_excesses(10.0)]
        [5.66, 8.0, 11.31, 16.0, 22.63, 32.0]
    """
    rows = []
    for dim in _TYPICAL_DIMS:
        found = sensitivity(Clip("l2", radius).range(dim), "l1")
        attained = float(np.abs(found.pair.x - found.pair.x_prime).sum())
        rows.append(Excess(dim, 2.0 * radius, found.value, attained))
    return tuple(rows)


@dataclass(frozen=True, slots=True, repr=False)
class Cost(Shown):
    """One remedy on vectors of one size and law.

    Args:
        law: key in `LAWS`.
        norm: the clip: "l1" (noise of scale 2 C / epsilon) or "l2" (2 C sqrt(n) / epsilon).
        dim: entries of the vector, n.
        scale: of the Laplace noise that is added to every entry.
        signal: root mean square L2 length of the clipped vectors.
    """

    law: str
    norm: str
    dim: int
    scale: float
    signal: float

    @property
    def ratio(self) -> float:
        """Noise to signal: root mean square lengths, that of the noise being scale sqrt(2 n)."""
        return self.scale * math.sqrt(2.0 * self.dim) / self.signal


def compute_costs(radius: float, epsilon: float, seed: int) -> tuple[Cost, ...]:
    """Compute the costs of both remedies for every law and size, on the same vectors.

    Args:
        radius: C, the radius of the clip.
        epsilon: what the noise must give.
        seed: of the experiment.

    Returns:
        The costs; by law, then size, then norm.

    Example:
        >>> wide = [cost for cost in compute_costs(10.0, 1.0, 1) if cost.dim == 1024][:2]
        >>> [(cost.norm, round(cost.scale), round(cost.ratio, -1)) for cost in wide]
        [('l1', 20, 2510.0), ('l2', 640, 2900.0)]
    """
    found = []
    for name, law in LAWS.items():
        for dim in _COST_DIMS:
            rng = np.random.default_rng(cell_seed(seed, f"cost/{name}/{dim}"))
            drawn = law.draw(rng, dim, radius, _AVERAGED_VECTORS)
            for norm in ("l1", "l2"):
                clip = Clip(norm, radius)
                signal = math.sqrt(float(np.square(clip(drawn)).sum(axis=1).mean()))
                found.append(Cost(name, norm, dim, laplace_scale(epsilon, clip, dim), signal))
    return tuple(found)
