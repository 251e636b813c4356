"""The mechanisms of the experiment on the low-order bits of floating-point noise.

A library is imported when its row is run. What cannot be imported has a row that says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...loaded import imported_module
from ...mechanisms import Gaussian, Laplace
from ...records import Shown

SCALE: Final = 10.0
"""Scale b of Laplace noise and sigma of Gaussian noise, in units of the sensitivity."""

EPSILON: Final = 0.1
"""Claim of Laplace noise of that scale."""

GAUSSIAN: Final = (0.5, 1e-6)
"""An (epsilon, delta) that Gaussian noise of that sigma has, in real numbers.

By the closed form (Balle and Wang, 2018, theorem 8) its delta at epsilon 0.5 is 6.9e-9.
"""

Mechanism = Callable[[Any, int, np.random.Generator], npt.NDArray[Any]]
Build = Callable[[], Mechanism]


@dataclass(frozen=True, slots=True, repr=False)
class System(Shown):
    """One row of the experiment.

    Args:
        name: what is called.
        package: what must be imported, "" for the package itself.
        build: makes the mechanism `(x, size, rng) -> outputs`.
        claim: epsilon that the mechanism claims at distance 1.
        delta: delta of that claim.
        share: trials are divided by it: a library that is called once per output is slow.
        lattice: True if it adds noise in floating point, unprotected.
        seeded: False if it draws from the operating system, so that no seed repeats its counts.
    """

    name: str
    package: str
    build: Build
    claim: float = EPSILON
    delta: float = 0.0
    share: int = 1
    lattice: bool = True
    seeded: bool = True


def _numpy_laplace() -> Mechanism:
    def numpy_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        outputs: npt.NDArray[Any] = x + rng.laplace(0.0, SCALE, (size, x.size))
        return outputs

    return numpy_laplace


def _numpy_normal() -> Mechanism:
    def numpy_normal(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        outputs: npt.NDArray[Any] = x + rng.normal(0.0, SCALE, (size, x.size))
        return outputs

    return numpy_normal


def _numpy_legacy() -> Mechanism:
    def numpy_legacy_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        legacy = np.random.RandomState(int(rng.integers(2**32)))
        outputs: npt.NDArray[Any] = x + legacy.laplace(0.0, SCALE, (size, x.size))
        return outputs

    return numpy_legacy_laplace


def _build_torch(kind: str, width: str) -> Build:
    def build() -> Mechanism:
        torch = importlib.import_module("torch")
        dtype = getattr(torch, width)

        def draw(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
            noise = getattr(torch.distributions, kind)(torch.tensor(x, dtype=dtype), SCALE)
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(int(rng.integers(2**63)))
                outputs: npt.NDArray[Any] = noise.sample((size,)).numpy()
            return outputs

        draw.__qualname__ = f"torch_{kind.lower()}_{width}"
        return draw

    return build


def _build_diffprivlib(kind: str, **fields: float) -> Build:
    def build() -> Mechanism:
        mechanism = getattr(_diffprivlib_mechanisms(), kind)

        def draw(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
            # Without a random_state it draws as it ships: another one takes other code.
            inner, value = mechanism(sensitivity=1.0, **fields), float(x[0])
            return np.array([[inner.randomise(value)] for _ in range(size)], dtype=np.float64)

        draw.__qualname__ = f"diffprivlib_{kind.lower()}"
        return draw

    return build


def _diffprivlib_mechanisms() -> Any:
    try:
        return importlib.import_module("diffprivlib.mechanisms")
    except ImportError:
        # Release 0.6.6 stumbles over its models where scikit-learn is 1.6 or later; its
        # mechanisms, which need none of that, are loaded by then.
        found = imported_module("diffprivlib.mechanisms")
        if found is None:
            raise
        return found


def _make_opendp_laplace() -> Mechanism:
    prelude = importlib.import_module("opendp.prelude")
    prelude.enable_features("contrib")
    domain = prelude.vector_domain(prelude.atom_domain(T=float, nan=False))
    noise = prelude.m.make_laplace(domain, prelude.l1_distance(T=float), scale=SCALE)

    def opendp_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        # One call on a vector of copies: its noise is independent from entry to entry.
        return np.array(noise([float(x[0])] * size))[:, np.newaxis]

    return opendp_laplace


def _make_snapped_laplace() -> Mechanism:
    step, bound = 16.0, 1024.0

    def snapped_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        noisy = np.clip(x, -bound, bound) + rng.laplace(0.0, SCALE, (size, x.size))
        outputs: npt.NDArray[Any] = np.clip(step * np.rint(noisy / step), -bound, bound)
        return outputs

    return snapped_laplace


def _make_discrete_laplace() -> Mechanism:
    chance = -np.expm1(-EPSILON)

    def discrete_laplace(x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        up, down = (rng.geometric(chance, (size, x.size)) for _ in range(2))
        outputs: npt.NDArray[Any] = x + (up - down)
        return outputs

    return discrete_laplace


SYSTEMS: Final[tuple[System, ...]] = (
    System("numpy Generator.laplace", "numpy", _numpy_laplace),
    System("numpy RandomState.laplace", "numpy", _numpy_legacy),
    System("numpy Generator.normal", "numpy", _numpy_normal, *GAUSSIAN),
    System("dpcore.Laplace", "", lambda: Laplace(SCALE)),
    System("dpcore.Gaussian", "", lambda: Gaussian(SCALE), *GAUSSIAN),
    System("torch Laplace float64", "torch", _build_torch("Laplace", "float64")),
    System("torch Laplace float32", "torch", _build_torch("Laplace", "float32")),
    System("torch Normal float64", "torch", _build_torch("Normal", "float64"), *GAUSSIAN),
    System("torch Normal float32", "torch", _build_torch("Normal", "float32"), *GAUSSIAN),
    System(
        "diffprivlib Laplace", "diffprivlib", _build_diffprivlib("Laplace", epsilon=EPSILON),
        share=10, seeded=False,
    ),
    System(
        "diffprivlib Gaussian", "diffprivlib",
        _build_diffprivlib("Gaussian", epsilon=GAUSSIAN[0], delta=GAUSSIAN[1]), *GAUSSIAN,
        share=10, seeded=False,
    ),
    System(
        "diffprivlib Snapping", "diffprivlib",
        _build_diffprivlib("Snapping", epsilon=EPSILON, lower=-100.0, upper=100.0),
        share=50, lattice=False, seeded=False,
    ),
    System(
        "OpenDP make_laplace", "opendp", _make_opendp_laplace, share=20, lattice=False, seeded=False
    ),
    System("snapped Laplace", "", _make_snapped_laplace, lattice=False),
    System("discrete Laplace", "", _make_discrete_laplace, lattice=False),
)  # fmt: skip
"""The rows: first what adds noise in floating point, then what is protected."""
