"""OpenDP measurements as mechanisms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..repeating import stack
from ._adapter import Adapter, scalar


@dataclass(frozen=True, slots=True, repr=False)
class OpenDP(Adapter):
    """An OpenDP `Measurement`, invoked once for every output.

    OpenDP draws from the operating system and cannot be seeded: such an audit cannot be repeated
    from its seed. What `x` is follows from the measurement's input domain. Arrays become lists
    for a domain of vectors and plain numbers for one of scalars, whole numbers becoming ints
    where the domain has them (a `Pair` stores lists of numbers as float64); anything else is
    passed on as it is.

    Args:
        measurement: the measurement.
        d_in: distance of the two inputs in the measurement's input metric; with it, `stated` is
            what `measurement.map(d_in)` says, if that is an epsilon or an (epsilon, delta).

    Source:
        Gaboardi, Hay and Vadhan (2020), A Programming Framework for OpenDP.

    Example:
        A measurement is found by itself; its claim needs the distance::

            import opendp.prelude as dp

            dp.enable_features("contrib")
            space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
            laplace = dp.m.make_laplace(*space, scale=2.0)
            dpcore.audit(laplace, ([0.0], [1.0]), claim=0.5)
            dpcore.audit(dpcore.adapters.OpenDP(laplace, d_in=1.0), ([0.0], [1.0]))
    """

    measurement: Any
    d_in: Any = None

    reproducible: ClassVar[bool] = False

    @property
    def stated(self) -> tuple[float, float] | None:
        """What the privacy map says at `d_in`: (epsilon, 0) or (epsilon, delta), else None."""
        measure = str(self.measurement.output_measure)
        if self.d_in is None or "MaxDivergence" not in measure:
            return None
        found = self.measurement.map(self.d_in)
        if isinstance(found, tuple):
            return float(found[0]), float(found[1])
        # A curve of (epsilon, delta) is no one statement.
        return (float(found), 0.0) if isinstance(found, (int, float)) else None

    def __repr__(self) -> str:
        meas = self.measurement
        shown = f"{meas.input_domain}, {meas.input_metric} -> {meas.output_measure}"
        return f"OpenDP({shown})" if self.d_in is None else f"OpenDP({shown}, d_in={self.d_in!r})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Invoke the measurement `size` times on `x`.

        Args:
            x: a member of the input domain, or an array of its numbers.
            size: number of outputs.
            rng: not used: OpenDP has its own entropy.

        Returns:
            Outputs of shape `(size,)` or `(size, dim)`; an object array for strings.

        Raises:
            ValueError: if the answers have several shapes.
        """
        measurement = self.measurement
        argument = _argument(x, str(measurement.input_carrier_type))
        return stack([measurement(argument) for _ in range(size)], repr(self))

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Rebuild from OpenDP's own serialisation, with the features that are enabled here."""
        mod = import_module("opendp.mod")
        return _rebuilt, (
            mod.serialize(self.measurement),
            tuple(sorted(mod.GLOBAL_FEATURES)),
            self.d_in,
        )


def _rebuilt(text: str, features: tuple[str, ...], d_in: Any) -> OpenDP:
    mod = import_module("opendp.mod")
    mod.enable_features(*features)
    return OpenDP(mod.deserialize(text), d_in)


def _argument(x: Any, carrier: str) -> Any:
    if carrier.startswith("Vec<"):
        if not isinstance(x, np.ndarray):
            return x
        return [_exact(value, carrier[4:-1]) for value in x.tolist()]
    return _exact(scalar(x), carrier)


def _exact(value: Any, kind: str) -> Any:
    """A whole float as the int or bool that the domain has; nothing is ever rounded."""
    if isinstance(value, float) and value.is_integer() and kind[0] in "iu":
        return int(value)
    return bool(value) if kind == "bool" and value in (0, 1) else value
