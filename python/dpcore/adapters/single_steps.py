"""Calls of other packages that a trace treats as single steps, and draws of scipy.

A trace runs the same code on x and on x'. A call such as `randomise` of a diffprivlib mechanism is
one step: the run on x' gets the output of the run on x. The privacy loss of the step is computed
from the two inputs of the call and from the epsilon that the mechanism states.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..packages import get_loaded_module

Patch = tuple[Any, str, Callable[[Any], Any]]

_PROPORTIONAL: Final = frozenset((
    "Laplace", "LaplaceTruncated", "LaplaceFolded", "Geometric", "GeometricTruncated",
    "GeometricFolded", "Exponential", "PermuteAndFlip", "Bingham",
))  # fmt: skip
"""diffprivlib mechanisms whose loss is proportional to the distance of the inputs."""

_SETTINGS: Final = ("epsilon", "delta", "sensitivity", "lower", "upper")
_SETS: Final = ("Symmetric", "InsertDelete", "Hamming", "ChangeOne", "Discrete")
"""Beginnings of the names of OpenDP metrics that count differing records."""


def list_diffprivlib_patches(get_active_run: Callable[[], Any]) -> list[Patch]:
    """List the methods `randomise` of diffprivlib that are replaced while dpcore traces noise.

    To trace noise means to record how a mechanism uses its noise.

    Each entry of the list contains the class of a mechanism, the name "randomise", and a function.
    This function gets the original method and returns the replacement, which records each call.

    The list is empty if diffprivlib is not imported.
    """
    mechanisms = get_loaded_module("diffprivlib.mechanisms")
    if mechanisms is None:
        return []
    # Transformers are left out, because they call the mechanism that they wrap.
    base = mechanisms.base.DPMechanism

    def make_step(original: Any) -> Any:
        def randomise(self: Any, *arguments: Any, **named: Any) -> Any:
            run = get_active_run()
            if run is None:
                return original(self, *arguments, **named)
            value = next(iter((*arguments, *named.values())), None)
            return record_randomise_call(run, self, value, original, arguments, named)

        return randomise

    classes = [cls for cls in vars(mechanisms).values() if isinstance(cls, type)]
    return [
        (cls, "randomise", make_step)
        for cls in classes
        if issubclass(cls, base) and "randomise" in vars(cls)
    ]


def record_randomise_call(
    run: Any, mechanism: Any, value: Any, original: Any, arguments: Any, named: Any
) -> Any:
    """Record a call of `randomise` in a run of a mechanism, and return the output of the call.

    The record contains the output and the privacy loss of the call.
    """
    name = type(mechanism).__name__
    if callable(value):
        # In objective perturbation, the input is a function of the data, which cannot be frozen.
        return original(mechanism, *arguments, **named)
    settings = {
        key: float(vars(mechanism)[key])
        for key in _SETTINGS
        if isinstance(vars(mechanism).get(key), int | float)
    }
    inputs = value if value is not None else vars(mechanism).get("utility")
    sensitivity = settings.get("sensitivity")

    def find_loss(first: Any, second: Any) -> tuple[float, float]:
        distance = measure_input_distance(name, first, second)
        return distance, find_stated_loss(mechanism, name, settings, distance, (first, second))

    return run.record_noisy_call(
        name,
        inputs,
        lambda: original(mechanism, *arguments, **named),
        find_loss,
        sensitivity,
        settings=settings,
    )


def measure_input_distance(mechanism_name: str, first: Any, second: Any) -> float:
    """Compute the distance between two inputs of a diffprivlib mechanism.

    For most mechanisms, the distance between two numbers or arrays is the L1 norm of their
    difference. For `Exponential` and `PermuteAndFlip`, the distance is the largest absolute
    difference between corresponding entries. For `Bingham`, the distance is the spectral norm of
    the difference. The distance between two different categories is 1. The distance between arrays
    of different shapes is infinite.

    Args:
        mechanism_name: class name of the mechanism.
        first: input of the mechanism in the run on x.
        second: input of the mechanism in the run on x'.
    """
    try:
        own, other = np.asarray(first, float), np.asarray(second, float)
    except (TypeError, ValueError):
        return float(first != second)
    if own.shape != other.shape:
        return math.inf
    gaps = np.abs(own - other)
    if mechanism_name == "Bingham":
        return float(np.linalg.norm(own - other, 2))
    if mechanism_name in ("Exponential", "PermuteAndFlip"):
        return float(gaps.max(initial=0.0))
    return float(gaps.sum())


def find_stated_loss(
    mechanism: Any, name: str, settings: dict[str, float], distance: float, inputs: Any
) -> float:
    """Compute the privacy loss of a diffprivlib mechanism for two inputs at a given distance.

    The loss is computed from the epsilon that was given to the constructor of the mechanism.

    For most mechanisms, the loss is epsilon times the quotient of the distance and the sensitivity.
    If the loss of a mechanism is not proportional to the distance, the quotient is rounded up to an
    integer. If a mechanism has no sensitivity, the loss is epsilon for every distance above 0.
    """
    if not distance:
        return 0.0
    epsilon, sensitivity = settings["epsilon"], settings.get("sensitivity")
    if sensitivity is None:
        return epsilon
    if not sensitivity or math.isinf(distance):
        return math.inf
    if name == "LaplaceBoundedDomain" and not settings["delta"]:
        scale = sensitivity / mechanism.effective_epsilon()
        sides = [_laplace_mass_within(value, settings, scale) for value in inputs]
        return float(distance / scale + abs(math.log(sides[0] / sides[1])))
    units: float = distance / sensitivity
    epsilon = epsilon - math.log1p(-settings.get("delta", 0.0)) if name == "Laplace" else epsilon
    return epsilon * (units if name in _PROPORTIONAL else math.ceil(units * (1 - 1e-9)))


def _laplace_mass_within(value: Any, settings: dict[str, float], scale: float) -> float:
    """Return the probability that value plus Laplace noise is between the lower and upper bound."""
    ends = value - settings["lower"], settings["upper"] - value
    return 1.0 - 0.5 * sum(math.exp(-max(end, 0.0) / scale) for end in ends)


def list_opendp_patches(get_active_run: Callable[[], Any]) -> list[Patch]:
    """List the OpenDP method that is replaced while dpcore traces noise.

    To trace noise means to record how a mechanism uses its noise.

    The replaced method calls a measurement. The only entry of the list contains the class
    `Measurement`, the name of the method, and a function that makes the replacement. The
    replacement records each call.

    The list is empty if OpenDP is not imported.
    """
    module = get_loaded_module("opendp.mod")
    if module is None:
        return []

    def make_step(original: Any) -> Any:
        def call(self: Any, arg: Any) -> Any:
            run = get_active_run()
            if run is None:
                return original(self, arg)

            def find_loss(first: Any, second: Any) -> tuple[float, float]:
                distance = _measure_in_metric(str(self.input_metric), first, second)
                return distance, _map_distance(self, distance)

            return run.record_noisy_call("Measurement", arg, lambda: original(self, arg), find_loss)

        return call

    return [(module.Measurement, "__call__", make_step)]


def _measure_in_metric(metric: str, first: Any, second: Any) -> float:
    """Compute the distance of two inputs in the OpenDP metric with this name."""
    if metric.startswith(_SETS):
        counts = [Counter(map(repr, np.ravel(np.asarray(v)).tolist())) for v in (first, second)]
        gap = sum(((counts[0] - counts[1]) + (counts[1] - counts[0])).values())
        return float(gap if metric.startswith(("Symmetric", "InsertDelete")) else (gap + 1) // 2)
    try:
        gaps = np.abs(np.asarray(first, float) - np.asarray(second, float)).ravel()
    except (TypeError, ValueError):
        return math.inf
    if "LInf" in metric:
        return float(gaps.max(initial=0.0))
    return float(np.linalg.norm(gaps)) if "L2" in metric else float(gaps.sum())


def _map_distance(measurement: Any, distance: float) -> float:
    """Return the epsilon of a measurement's privacy map at a distance, or NaN for other results."""
    if not distance:
        return 0.0
    for number in (distance, math.ceil(distance)):
        try:
            loss = measurement.map(number)
        except Exception:
            # A map over integers does not accept floats.
            continue
        if str(measurement.output_measure) != "MaxDivergence":
            return math.nan
        # The map is rounded up in floats, but a trace assumes real arithmetic.
        return min(float(loss), float(f"{float(loss):.8g}"))
    return math.nan


def list_scipy_patches(get_active_run: Callable[[], Any]) -> list[Patch]:
    """List the scipy method `rvs` that is replaced while dpcore traces noise.

    To trace noise means to record how a mechanism uses its noise.

    The only entry of the list contains the class of the scipy distributions, the name "rvs", and a
    function that makes the replacement.

    By default, a scipy distribution draws from numpy's original global generator, even if this
    generator was exchanged later. The replaced method draws from the generator that is global when
    the method is called. The list is empty if scipy.stats is not imported.
    """
    module = get_loaded_module("scipy.stats._distn_infrastructure")
    if module is None:
        return []
    state = np.random.mtrand._rand

    def lead_to_global(original: Any) -> Any:
        def rvs(self: Any, *arguments: Any, **named: Any) -> Any:
            is_global = named.get("random_state") is None and self.random_state is state
            if get_active_run() is not None and is_global:
                named["random_state"] = np.random.mtrand._rand
            return original(self, *arguments, **named)

        return rvs

    return [(module.rv_generic, "rvs", lead_to_global)]
