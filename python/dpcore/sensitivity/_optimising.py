"""Optimisers of other packages on the distance between two outputs: scipy's, and torch's gradients.

Both are kept inside the domain by its `clip`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..loaded import imported_module
from ._probing import Inputs, Probe
from ._rows import Floats
from ._searching import Space

_MAX_EVOLVED_COORDINATES: Final = 16
"""Coordinates of both sides up to which searches without gradients are worth their calls."""

_DIFFERENCE_STEP: Final = 2.0**-24
"""Step of a difference quotient, as a share of the domain's width."""

_MAX_OBJECTIVE: Final = 1e150
"""A distance that an optimiser may square; beyond it all are alike."""

_RANDOM_STARTS: Final = 8
"""Random pairs from which an optimiser starts, after the best one."""

_EVOLUTION_POPULATION: Final = 15
"""Points of the evolution for each coordinate, scipy's own default."""

_FIRST_GRADIENT_STEP: Final = 0.5
_LAST_GRADIENT_STEP: Final = 2.0**-30
"""Steps along a gradient whose largest entry is 1, in units of the domain's width."""


class _Objective:
    """Minus the distance, as a function of both sides in units of the domain's width."""

    def __init__(self, probe: Probe, space: Space, low: Floats, high: Floats) -> None:
        self.probe, self.space = probe, space
        self.low = low
        self.width = np.where(high > low, high - low, 1.0)
        self.dim = low.size

    def inputs(self, scaled: Floats) -> Inputs | None:
        """Return the neighbours for a point of the optimiser; None if there are none."""
        x, x_prime = (self.low + side * self.width for side in np.split(scaled, 2))
        return self.space.fit(x, x_prime)

    def scaled(self, pair: Inputs) -> Floats:
        """Return the point of the optimiser for a pair."""
        return np.concatenate([(np.asarray(side) - self.low) / self.width for side in pair])

    def __call__(self, scaled: Floats) -> float:
        """Return minus the distance; 0 where there are no neighbours."""
        pair = self.inputs(scaled)
        return 0.0 if pair is None else -min(float(self.probe.gaps([pair])[0]), _MAX_OBJECTIVE)

    def slope(self, scaled: Floats) -> Floats:
        """Compute difference quotients; at the edge of the domain these point inwards."""
        value = self(scaled)
        slope = np.zeros(scaled.size)
        places = np.arange(scaled.size)
        for step in (_DIFFERENCE_STEP, -_DIFFERENCE_STEP):
            moved = scaled + step * np.eye(scaled.size)[places]
            pairs = [(n, pair) for n, row in zip(places, moved, strict=True)
                     if (pair := self.inputs(row)) is not None]  # fmt: skip
            if not pairs:
                continue
            gaps = self.probe.gaps([pair for _, pair in pairs])
            # Where f is not defined there is no slope; the other direction may have one.
            found = np.where(gaps < 0.0, value, -np.minimum(gaps, _MAX_OBJECTIVE))
            slope[[n for n, _ in pairs]] = (found - value) / step
            places = np.flatnonzero(slope == 0.0)
            if places.size == 0:
                break
        return slope


def try_scipy(probe: Probe, space: Space, rng: np.random.Generator, start: Inputs) -> None:
    """Run L-BFGS-B from the best pair; with few coordinates, also evolution and Powell.

    Source:
        Byrd, Lu, Nocedal and Zhu (1995); Storn and Price (1997); Powell (1964).
    """
    from scipy.optimize import Bounds, differential_evolution, minimize

    objective = _Objective(probe, space, *space.widths(rng))
    size = 2 * objective.dim
    few, bounds = size <= _MAX_EVOLVED_COORDINATES, Bounds(np.zeros(size), np.ones(size))
    starts = [start, *space.random(rng, _RANDOM_STARTS)]
    begins = [np.clip(objective.scaled(pair), 0.0, 1.0) for pair in starts]
    with probe.allowance("scipy (L-BFGS-B)", 0.4 if few else 1.0):
        for begin in begins:
            minimize(objective, begin, jac=objective.slope, method="L-BFGS-B", bounds=bounds)
    if few:
        # Inputs seen before cost no call, so that calls alone need not end it.
        most = 1 + probe.left // (_EVOLUTION_POPULATION * size)
        with probe.allowance("scipy (differential evolution)", 0.7):
            differential_evolution(
                objective,
                bounds,
                seed=rng,
                polish=False,
                maxiter=most,
                popsize=_EVOLUTION_POPULATION,
            )
        with probe.allowance("scipy (Powell)", 1.0):
            minimize(objective, begins[0], method="Powell", bounds=bounds)


def try_torch(
    probe: Probe, space: Space, rng: np.random.Generator, module: ModuleCalls, start: Inputs
) -> None:
    """Run gradient ascent from the best pair and from random pairs.

    A step that fails is halved.
    """
    low, high = space.widths(rng)
    width = np.where(high > low, high - low, 1.0)
    for here in [start, *space.random(rng, _RANDOM_STARTS)]:
        _ascend_gradient(probe, space, module, here, width)


def _ascend_gradient(
    probe: Probe, space: Space, module: ModuleCalls, here: Inputs, width: Floats
) -> None:
    value, step = float(probe.gaps([here])[0]), _FIRST_GRADIENT_STEP
    while step > _LAST_GRADIENT_STEP:
        # A gradient costs about as much as the two calls that it differentiates.
        probe.spend(2)
        try:
            slopes = [slope * width for slope in module.slopes(*here, probe.norm)]
        except probe.catch:
            return
        largest = max(float(np.abs(slope).max()) for slope in slopes)
        if not 0.0 < largest < np.inf:
            return
        while step > _LAST_GRADIENT_STEP:
            x, x_prime = (np.asarray(side) + step * width * slope / largest
                          for side, slope in zip(here, slopes, strict=True))  # fmt: skip
            pair = space.fit(x, x_prime)
            if pair is not None and (found := float(probe.gaps([pair])[0])) > value:
                here, value, step = pair, found, 2.0 * step
                break
            step /= 2.0


def torch_module(f: Callable[..., Any]) -> bool:
    """Return True for a torch module, without an import of torch."""
    torch = imported_module("torch")
    return torch is not None and isinstance(f, torch.nn.Module)


class ModuleCalls:
    """A torch module as a function of numpy vectors or rows, and the gradient of its distances."""

    def __init__(self, module: Any, rows: bool) -> None:
        # Whoever made the module has imported it.
        torch = imported_module("torch")
        self._torch = torch
        self._module = module
        self._rows = rows
        parameter = next((p for p in module.parameters() if p.is_floating_point()), None)
        self._dtype = torch.float64 if parameter is None else parameter.dtype
        self._device = "cpu" if parameter is None else parameter.device
        self.__qualname__ = type(module).__qualname__
        self.__module__ = type(module).__module__

    def __call__(self, x: npt.NDArray[Any]) -> Any:
        """Return the module's output, without gradients."""
        with self._torch.no_grad():
            answer = self._module(self._tensor(x))
        return answer.double() if isinstance(answer, self._torch.Tensor) else answer

    def slopes(self, x: Floats, x_prime: Floats, norm: str) -> tuple[Floats, Floats]:
        """Compute the gradient of norm(f(x) - f(x')) in x and in x'."""
        tensors = [self._tensor(side).requires_grad_() for side in (x, x_prime)]
        inputs = [side[None] for side in tensors] if self._rows else tensors
        apart = self._module(inputs[0]) - self._module(inputs[1])
        order = {"l1": 1.0, "l2": 2.0, "linf": float("inf")}[norm]
        if not apart.requires_grad:
            return np.zeros(x.shape), np.zeros(x.shape)
        gap = self._torch.linalg.vector_norm(apart.reshape(-1), order)
        found = self._torch.autograd.grad(gap, tensors, allow_unused=True)
        zeros = np.zeros(x.shape)
        slopes = [zeros if g is None else g.detach().cpu().double().numpy() for g in found]
        return slopes[0], slopes[1]

    def _tensor(self, x: npt.NDArray[Any]) -> Any:
        return self._torch.tensor(np.asarray(x), dtype=self._dtype, device=self._device)
