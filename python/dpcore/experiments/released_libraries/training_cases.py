"""Cases of numpy, scipy, torch, jax-privacy, Opacus and private-pgm (mbi)."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from .cases import Case

_TEXTBOOK: Final = (
    "Dwork and Roth (2014), theorem 3.6: Laplace noise of scale sensitivity / epsilon"
)

_numpy = partial(Case, package="numpy", version="2.4.6", relation="numbers at distance 1")


def _add_numpy_noise(x: float, size: int, rng: Any) -> Any:
    return x + rng.laplace(size=size)


CASES: tuple[Case, ...] = (
    _numpy(
        name="x + Generator.laplace(scale=1)", build=lambda: _add_numpy_noise, pair=(0.0, 1.0),
        claim=1.0, stated=_TEXTBOOK, true_loss=1.0, trials=10**6,
    ),
)  # fmt: skip
