"""Adapters for objects of other packages that return one output per call."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from ..claims.renyi import ZCDP
from ..errors import delta_level, instance, integer, invalid, mistyped, real
from ..mechanisms.answers import AnswerKeeper
from ..mechanisms.callables import call_and_keep, collect_answers
from ..packages import has_all
from ..records import Pair
from ..report.shown import dotted_name
from .scipy import Adapter, unwrap_single_number

_MAX_VALUES: Final = 45
"""Largest number of values of a local client for which all pairs (990) are tried."""


class ObjectCalls(Adapter):
    """Base class of adapters that call an object of another package once for each output.

    An adapter makes the object a mechanism that dpcore can audit. The object uses its own source of
    randomness. Therefore a second audit with the same seed gets other outputs.
    """

    __slots__ = ()

    reproducible: ClassVar[bool] = False
    default_trials: ClassVar[int] = 10_000

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        """Return the function that draws one output on x."""
        raise NotImplementedError(f"{type(self).__name__} makes no outputs")

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Draw `size` outputs on `x`.

        Args:
            x: an input that the object accepts.
            size: number of outputs.
            rng: not used.

        Returns:
            Array of the outputs, shape `(size, ...)`. If the outputs have different shapes, the
            array has dtype object and shape `(size,)`.
        """
        answers = AnswerKeeper(repr(self))
        call_and_keep(answers, self._make_one_draw_function(x), x, size, ())
        return collect_answers(answers, ())

    def __repr__(self) -> str:
        value = getattr(self, self.__match_args__[0])  # type: ignore[attr-defined]
        name = dotted_name(value) if inspect.isroutine(value) else type(value).__name__
        return f"{type(self).__name__}({name})"


@dataclass(frozen=True, slots=True, repr=False)
class NoiseAdder(ObjectCalls):
    """Adapter for an object with `add_noise(value)`, such as a mechanism of python-dp.

    dpcore can audit the object through this adapter. Mechanisms of pipeline-dp are supported too.

    Args:
        mechanism: the object with the method `add_noise`. If it has attributes for epsilon, delta
            and sensitivity, the adapter reads these attributes.

    Example:
        `dpcore.audit` recognises such an object, and tests the epsilon of the object::

            from pydp.algorithms.numerical_mechanisms import LaplaceMechanism

            dpcore.audit(LaplaceMechanism(1.0, 1.0), trials=10**5)
    """

    mechanism: Any

    wrapped: ClassVar[tuple[str, ...]] = ("an object with add_noise", "add_noise")

    @property
    def _epsilon_owner(self) -> Any:
        """The object that states epsilon: the wrapped object, or its inner object (pipeline-dp)."""
        inner = getattr(self.mechanism, "_mechanism", None)
        return self.mechanism if inner is None or has_all(self.mechanism, "epsilon") else inner

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) of the wrapped object, or None if the object has no epsilon."""
        return _read_stated(self._epsilon_owner)

    @property
    def norm(self) -> str:
        """Norm in which the sensitivity is measured: "l2" if delta is above 0, otherwise "l1"."""
        return "l2" if self.stated is not None and self.stated[1] else "l1"

    @property
    def sensitivity(self) -> float | None:
        """The sensitivity of the wrapped object, or None if the object does not state it."""
        for name in ("sensitivity", "l1_sensitivity", "l2_sensitivity"):
            value = getattr(self.mechanism, name, None)
            value = value() if callable(value) else value
            if value is not None:
                return float(value)
        return None

    def default_pair(self) -> Pair:
        """Return the default pair of inputs for an audit: the arrays `[0]` and `[sensitivity]`.

        Raises:
            ValueError: if the wrapped object states no sensitivity.
        """
        if self.sensitivity is None:
            raise invalid("pair", f"given for {self.name}, which states no sensitivity", None)
        return Pair(np.zeros(1), np.full(1, self.sensitivity))

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        return lambda value: self.mechanism.add_noise(unwrap_single_number(value))


@dataclass(frozen=True, slots=True, repr=False)
class LocalClient(ObjectCalls):
    """Adapter for a client of local DP: an object with `privatise(value)` or `obfuscate(value)`.

    dpcore can audit the client through this adapter.

    Any two values that a user can have are neighbouring inputs. If an audit gets no pair of inputs,
    the audit chooses two of these values as its inputs.

    Args:
        client: the object. The audit tests its attribute `epsilon`.
        values: the values that a user can have. Defaults to 1, ..., d for a client of pure-ldp, and
            to 0, ..., k - 1 for a client of ldp-toolbox; d and k are attributes of the client.

    Example:
        `dpcore.audit` recognises such a client, and reads its epsilon and its values::

            from pure_ldp.frequency_oracles.direct_encoding import DEClient

            dpcore.audit(DEClient(epsilon=1.0, d=4), trials=10**5)
    """

    client: Any
    values: Sequence[Any] | None = None

    wrapped: ClassVar[tuple[str, ...]] = (
        "an object with privatise or obfuscate", "privatise", "obfuscate",
    )  # fmt: skip

    @property
    def stated(self) -> tuple[float, float] | None:
        """The epsilon of the client as a pair (epsilon, 0). None if the client has no epsilon."""
        return _read_stated(self.client)

    def default_pair(self) -> tuple[Pair, ...]:
        """Return all pairs of two different values that a user of this client can have.

        By default, an audit chooses one of these pairs as its two inputs.

        Raises:
            ValueError: if the values are not known, or if fewer than 2 or more than 45 values are
                known.
        """
        values = self.values
        for name, first in (("d", 1), ("k", 0)):
            size = getattr(self.client, name, None)
            if values is None and size is not None:
                values = range(first, first + integer(f"{name} of {self.name}", size, 2))
        if values is None or not 2 <= len(values) <= _MAX_VALUES:
            requirement = f"2 to {_MAX_VALUES} values, or a pair for the audit"
            raise invalid(f"values of {self.name}", requirement, values)
        return tuple(Pair(*values) for values in combinations(values, 2))

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        name = "privatise" if has_all(self.client, "privatise") else "obfuscate"
        release = getattr(self.client, name)
        return lambda value: release(unwrap_single_number(value))


@dataclass(frozen=True, slots=True, repr=False)
class EpsilonFunction(ObjectCalls):
    """Adapter for a function `f(x, epsilon=...)`, such as a tool of diffprivlib.

    dpcore can audit the function through this adapter.

    Args:
        function: the function, which is called with an input x and with `arguments`.
        arguments: keyword arguments of each call. The audit tests the epsilon and delta among these
            arguments. If epsilon or delta is missing, its default in the signature of the function
            is used. If `arguments` is None, the function gets no keyword arguments.

    Example:
        >>> import numpy as np
        >>> def noisy_sum(x, epsilon=0.5):
        ...     return sum(x) + np.random.laplace(scale=1 / epsilon)
        >>> EpsilonFunction(noisy_sum, {"epsilon": 2.0}).claim
        2.0
    """

    function: Callable[..., Any]
    arguments: Mapping[str, Any] = field(default_factory=dict)

    wrapped: ClassVar[tuple[str, ...]] = ("a function with an epsilon", "__call__")

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) with which the function is called, or None without an epsilon.

        If `arguments` has no epsilon or no delta, the default in the function's signature is used.
        """
        try:
            parameters = inspect.signature(self.function).parameters
        except ValueError:
            raise invalid("function", "a function with a signature", self.function) from None
        values = {key: parameter.default for key, parameter in parameters.items()}
        values |= self.arguments
        stated = {
            key: None if values.get(key) is inspect.Parameter.empty else values.get(key)
            for key in ("epsilon", "delta")
        }
        return _check_claim(dotted_name(self.function), *stated.values())

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        return lambda value: self.function(value, **self.arguments)


@dataclass(frozen=True, slots=True, repr=False)
class FittedModel(ObjectCalls):
    """Adapter for a model with a method `fit`, such as a model of diffprivlib.

    dpcore can audit the model through this adapter. An output consists of attributes that `fit`
    sets.

    For each output, the adapter fits a copy of the model to a copy of the data. An output is one
    vector with the numbers of all released attributes.

    Args:
        model: the model, not fitted. The audit tests its attribute `epsilon`.
        attributes: names of the released attributes. "a.b" is the attribute b of the object in
            attribute a. Defaults to all numeric attributes whose names end with "_" and do not
            begin with "_".

    Example:
        Each of the two inputs of the audit is a tuple of the arguments of `fit`::

            from diffprivlib.models import GaussianNB

            model = GaussianNB(epsilon=1.0, bounds=(0.0, 1.0))
            dpcore.audit(model, ((rows, labels), (rows, other_labels)), trials=10**4)
    """

    model: Any
    attributes: Sequence[str] = ()

    wrapped: ClassVar[tuple[str, ...]] = ("a model with fit", "fit")

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) of the wrapped model, or None if the model has no epsilon."""
        return _read_stated(self.model)

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        if not isinstance(x, (tuple, list)):
            raise mistyped("x", "the tuple of arguments of fit", x)
        return self._fit_model

    def _fit_model(self, data: Any) -> npt.NDArray[Any]:
        model = copy.deepcopy(self.model)
        model.fit(*copy.deepcopy(data))
        names = self.attributes or [
            name for name in sorted(vars(model)) if name.endswith("_") and not name.startswith("_")
        ]
        values = [np.asarray(_get_nested_attribute(model, name)) for name in names]
        numbers = [value.ravel() for value in values if value.dtype.kind in "biuf"]
        if not numbers or (self.attributes and len(numbers) < len(values)):
            raise invalid("attributes", f"numeric attributes of {type(model).__name__}", names)
        return np.concatenate(numbers)


@dataclass(frozen=True, slots=True, repr=False)
class SQLQuery(ObjectCalls):
    """Adapter for a query of smartnoise-sql.

    dpcore can audit the query through this adapter. An output is the list of rows that the query
    returns, without the header row.

    Args:
        make_reader: function that takes a table x and returns a private reader of this table.
        query: text of the query, in SQL.
        example: a table on which the reader computes the privacy cost of the query. The property
            `stated` is this cost, or None if `example` is None.

    Example:
        `query.stated` is the (epsilon, delta) that the reader's `get_privacy_cost` returns::

            def make_reader(frame):
                return snsql.from_df(frame, metadata=metadata, privacy=privacy)

            query = dpcore.adapters.SQLQuery(make_reader, "SELECT COUNT(*) FROM a.b", frame)
            dpcore.audit(query, (frame, frame[1:]), claim=query.stated[0], delta=query.stated[1])
    """

    make_reader: Callable[[Any], Any]
    query: str
    example: Any = None

    wrapped: ClassVar[tuple[str, ...]] = ("a function that makes a reader", "__call__")

    def __post_init__(self) -> None:
        """Check that `make_reader` is callable and that `query` is a string."""
        ObjectCalls.__post_init__(self)
        instance("query", self.query, str)

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) that the query costs on the table `example`.

        The numbers are the result of `get_privacy_cost` of smartnoise-sql. If `example` is None,
        the value is None.
        """
        if self.example is None:
            return None
        epsilon, delta = self.make_reader(self.example).get_privacy_cost(self.query)
        return float(epsilon), float(delta)

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        reader = self.make_reader(x)
        return lambda value: [tuple(row) for row in list(reader.execute(self.query))[1:]]


@dataclass(frozen=True, slots=True, repr=False)
class TumultMeasurement(ObjectCalls):
    """Adapter: dpcore can audit a measurement of tmlt-core through this object.

    Args:
        measurement: the measurement. The adapter calls it once for each output.
        d_in: distance of the two inputs in the input metric of the measurement. The audit tests the
            privacy loss that the measurement's privacy function gives at this distance. Defaults to
            1.

    Example:
        `dpcore.audit` recognises a measurement, and tests the loss of its privacy function::

            from tmlt.core.measurements.noise_mechanisms import AddLaplaceNoise

            dpcore.audit(AddLaplaceNoise(NumpyFloatDomain(), 1), (0.0, 1.0), trials=10**5)
    """

    measurement: Any
    d_in: Any = 1

    wrapped: ClassVar[tuple[str, ...]] = ("a measurement of tmlt-core", "privacy_function")

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) of the wrapped measurement for inputs at distance `d_in`, or None.

        The numbers are the value of the measurement's privacy function. The value is None if the
        privacy function gives the parameter rho of zCDP.
        """
        if "ZCDP" in str(type(self.measurement.output_measure).__name__).upper():
            return None
        loss = self.measurement.privacy_function(self.d_in)
        epsilon, delta = loss if isinstance(loss, tuple) else (loss, 0.0)
        return _round_up(epsilon), _round_up(delta)

    @property
    def curve(self) -> ZCDP | None:
        """The zCDP claim of the wrapped measurement for inputs at distance `d_in`, or None.

        The parameter rho is the value of the measurement's privacy function. The result is None if
        the measurement does not use zCDP, or if rho is infinite.
        """
        if "ZCDP" not in str(type(self.measurement.output_measure).__name__).upper():
            return None
        rho = _round_up(self.measurement.privacy_function(self.d_in))
        return ZCDP(rho) if math.isfinite(rho) else None

    def _make_one_draw_function(self, x: Any) -> Callable[[Any], Any]:
        return lambda value: self.measurement(unwrap_single_number(value))


def _read_stated(owner: Any) -> tuple[float, float] | None:
    """Return the attributes epsilon and delta of an object, or None without an epsilon."""
    epsilon, delta = (getattr(owner, name, None) for name in ("epsilon", "delta"))
    return _check_claim(type(owner).__name__, epsilon, delta)


def _check_claim(owner: str, epsilon: Any, delta: Any) -> tuple[float, float] | None:
    """Return (epsilon, delta), or None if epsilon is None; a delta of None counts as 0.

    Raises:
        ValueError: if epsilon is negative or delta is out of range.
    """
    if epsilon is None:
        return None
    stated = real(f"epsilon of {owner}", epsilon, low=0.0)
    return stated, delta_level(0.0 if delta is None else delta, f"delta of {owner}")


def _round_up(number: Any) -> float:
    """Convert an exact number of tmlt-core to a float, rounded up; accept other numbers too."""
    to_float = getattr(number, "to_float", None)
    return float(number) if to_float is None else float(to_float(round_up=True))


def _get_nested_attribute(model: Any, name: str) -> Any:
    for part in name.split("."):
        model = getattr(model, part)
    return model
