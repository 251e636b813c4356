"""Adapters that turn objects of other packages into mechanisms.

`adapt` recognises an object by its class. The modules of `dpcore.adapters` do not import the other
packages, because an object can exist only after its package was imported.

Example:
    >>> import numpy as np
    >>> from scipy import stats
    >>> mechanism = adapt(stats.laplace(scale=2.0))
    >>> mechanism, mechanism([0.0, 5.0], 3, np.random.default_rng(1)).shape
    (ScipyNoise(laplace(scale=2.0)), (3, 2))
    >>> adapt(print) is None
    True
"""

from __future__ import annotations

import inspect
from typing import Any

from ..errors import mistyped
from ..mechanisms.declarations import get_or_default
from ..packages import attribute_if_imported
from .diffprivlib import DiffPrivLib
from .opendp import OpenDP
from .released import (
    EpsilonFunction,
    FittedModel,
    LocalClient,
    NoiseAdder,
    SQLQuery,
    TumultMeasurement,
)
from .scipy import Adapter, ScipyNoise
from .torch import TorchModule, TorchNoise

__all__ = [
    "DiffPrivLib",
    "EpsilonFunction",
    "FittedModel",
    "LocalClient",
    "NoiseAdder",
    "OpenDP",
    "SQLQuery",
    "ScipyNoise",
    "TorchModule",
    "TorchNoise",
    "TumultMeasurement",
    "adapt",
]


def __dir__() -> list[str]:
    """List the public names of this package, without the names that it imports."""
    return [*__all__]


_ADAPTED_CLASSES: tuple[tuple[str, str, type[Adapter]], ...] = (
    ("opendp.mod", "Measurement", OpenDP),
    ("diffprivlib.mechanisms.base", "DPMachine", DiffPrivLib),
    ("diffprivlib.validation", "DiffprivlibMixin", FittedModel),
    ("pydp.algorithms.numerical_mechanisms", "NumericalMechanism", NoiseAdder),
    ("pipeline_dp.dp_computations", "AdditiveMechanism", NoiseAdder),
    ("pure_ldp.core", "FreqOracleClient", LocalClient),
    ("ldp_toolbox.protocols.base", "BaseProtocol", LocalClient),
    ("tmlt.core.measurements.base", "Measurement", TumultMeasurement),
    ("scipy.stats.distributions", "rv_frozen", ScipyNoise),
    ("scipy.stats._multivariate", "multi_rv_frozen", ScipyNoise),
    ("scipy.stats._distribution_infrastructure", "UnivariateDistribution", ScipyNoise),
    ("torch.distributions.distribution", "Distribution", TorchNoise),
    ("torch.nn.modules.module", "Module", TorchModule),
)
"""Module and name of a class, and the adapter for its instances."""

_SCIPY_FAMILIES = (
    ("scipy.stats._distn_infrastructure", "rv_generic"),
    ("scipy.stats._multivariate", "multi_rv_generic"),
)
"""Families of scipy distributions whose parameters have no values. A family is a callable that
returns a distribution."""


def adapt(obj: Any) -> Any:
    """Convert an object of another package to a mechanism, or return None for unknown objects.

    A mechanism is a function `(x, size, rng) -> outputs`. The function draws `size` outputs on the
    input x, with the numpy Generator `rng`. Call `adapt` before you test whether an object is
    callable. Some objects of other packages are callable, but do not accept the arguments
    `(x, size, rng)`. A torch module is converted only if the method `forward` of the module can be
    called with one argument.

    Some objects have a method `as_mechanism()`, such as a text encoder of dpcore. For such an
    object, `adapt` returns the result of this method.

    Args:
        obj: any object.

    Returns:
        A mechanism `(x, size, rng) -> outputs` that calls the given object, or None if the object
        is not one of the following:

        - a measurement of OpenDP or tmlt-core;
        - a mechanism or a model of diffprivlib;
        - noise of python-dp or pipeline-dp;
        - a client of pure-ldp or ldp-toolbox;
        - a distribution of scipy or torch (each output is x plus a draw from the distribution);
        - a torch module.

    Raises:
        TypeError: if the object is a family of scipy distributions, such as `scipy.stats.laplace`,
            and not a distribution with given parameters.

    Example:
        >>> from scipy import stats
        >>> adapt(stats.multivariate_normal([0.0, 0.0]))
        ScipyNoise(multivariate_normal)
    """
    make = get_or_default(obj, "as_mechanism")
    if callable(make) and not isinstance(obj, type):
        return make()
    for place, name, adapter in _ADAPTED_CLASSES:
        if _is_of_class(obj, place, name):
            fits = adapter is not TorchModule or _can_call_with_one_argument(obj)
            return adapter(obj) if fits else None  # type: ignore[call-arg]
    if any(_is_of_class(obj, *family) for family in _SCIPY_FAMILIES):
        name = vars(obj).get("name") or type(obj).__name__.removesuffix("_gen")
        requirement = f"a distribution with its parameters, such as scipy.stats.{name}(...)"
        raise mistyped("mechanism", requirement, obj)
    return None


def _is_of_class(obj: Any, place: str, name: str) -> bool:
    """Return True if an object is an instance of the class `name` in the module `place`.

    The result is False if this module was not imported.
    """
    kind = attribute_if_imported(place, name)
    return isinstance(kind, type) and isinstance(obj, kind)


def _can_call_with_one_argument(module: Any) -> bool:
    try:
        inspect.signature(module.forward).bind(0)
    except TypeError:
        return False
    except ValueError:
        # Without a signature, the call is assumed to be possible.
        return True
    return True
