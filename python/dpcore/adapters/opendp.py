"""Adapter for OpenDP measurements."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..claims.renyi import ZCDP
from ..errors import invalid, tag_error
from ..mechanisms.answers import AnswerKeeper
from ..mechanisms.callables import Catch, call_and_keep, check_catch, collect_answers
from ..pairs import L1, L2, AddRemove, Linf, Replace
from .scipy import Adapter, unwrap_single_number

_NORM_METRICS = {
    "L1Distance": "l1",
    "L2Distance": "l2",
    "LInfDistance": "linf",
    "AbsoluteDistance": "l1",
}
"""Input metrics that are norms. For a single entry, all norms are equal."""

_SHOWN_BY = {
    "MaxDivergence": "stated",
    "Approximate(MaxDivergence)": "stated",
    "ZeroConcentratedDivergence": "curve",
}
"""For each privacy measure, the property of the adapter that contains the privacy map's result."""

_NEIGHBOUR_RELATIONS: dict[str, tuple[tuple[type, float], ...]] = {
    "L1Distance": ((L1, 1.0),),
    "L2Distance": ((L2, 1.0),),
    "LInfDistance": ((Linf, 1.0),),
    "AbsoluteDistance": ((L1, 1.0), (L2, 1.0), (Linf, 1.0)),
    # A replaced record counts as one removed and one added record.
    "SymmetricDistance": ((AddRemove, 1.0), (Replace, 2.0)),
    "InsertDeleteDistance": ((AddRemove, 1.0), (Replace, 2.0)),
    "ChangeOneDistance": ((Replace, 1.0),),
    "HammingDistance": ((Replace, 1.0),),
    "DiscreteDistance": ((Replace, 1.0),),
}
"""For each input metric: neighbour relations that define a distance in this metric. Each relation
has a factor: the largest distance of two neighbours is this factor times the attribute `most`."""


@dataclass(frozen=True, slots=True, repr=False)
class OpenDP(Adapter):
    """Adapter: dpcore can audit a measurement of OpenDP through this object.

    The adapter calls the measurement once for each output.

    OpenDP gets its random numbers from the operating system and cannot be seeded. Therefore a
    second audit with the same seed gets other outputs.

    The adapter converts the input `x` to the type that the measurement's input domain requires:

    - an array becomes a list if the domain consists of vectors;
    - an array of one number becomes a plain number if the domain consists of scalars;
    - a whole number becomes an int, a float or a bool, according to the type of the values in the
      domain.

    The adapter passes other inputs on unchanged.

    Args:
        measurement: the measurement.
        d_in: distance of the two inputs in the input metric of the measurement. The adapter calls
            `measurement.map(d_in)`, the privacy map of OpenDP. If the result is an epsilon or a
            pair (epsilon, delta), the property `stated` contains this result. If the result is the
            parameter rho of zCDP, the property `curve` is `claims.ZCDP(rho)`. If `d_in` is None,
            `stated` and `curve` are None.
        catch: one or more exception classes. If the measurement raises one of these exceptions, the
            exception counts as the output of this call.
        ask: function for an interactive measurement. The function gets the queryable that the
            measurement returns, sends queries to the queryable, and returns the output. If `ask` is
            None, the output is the value that the measurement returns.

    Source:
        Gaboardi, Hay and Vadhan (2020), A Programming Framework for OpenDP.

    Example:
        `dpcore.audit` recognises a measurement. There are three ways to state the claimed privacy
        loss: the argument `claim`, a neighbour relation, or the distance `d_in` in the input
        metric::

            import opendp.prelude as dp

            dp.enable_features("contrib")
            space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
            laplace = dp.m.make_laplace(*space, scale=2.0)
            dpcore.audit(laplace, ([0.0], [1.0]), claim=0.5)
            dpcore.audit(laplace, ([0.0], [1.0]), neighbour=dpcore.pairs.L1(1.0))
            dpcore.audit(dpcore.adapters.OpenDP(laplace, d_in=1.0), ([0.0], [1.0]))
    """

    measurement: Any
    d_in: Any = None
    catch: type[Exception] | Catch = ()
    ask: Callable[[Any], Any] | None = None

    wrapped: ClassVar[tuple[str, ...]] = ("a measurement of OpenDP", "input_metric")
    reproducible: ClassVar[bool] = False
    default_trials: ClassVar[int] = 10_000

    @property
    def claim_advice(self) -> str:
        """Advice for the error message of an audit that got no claim (privacy loss to test).

        The advice explains how to get the claim from the privacy map of this measurement.
        """
        measure = str(self.measurement.output_measure)
        if measure not in _SHOWN_BY or self._metric not in _NEIGHBOUR_RELATIONS:
            fix = "opendp.prelude.c.make_fix_delta(measurement, 1e-5) states an epsilon and a delta"
            made = f" ({fix})" if measure == "SmoothedMaxDivergence" else ""
            what = f"on {self._metric} to {measure}"
            return f"claim= must say what is tested: a map {what} is not a single claim{made}"
        unit = "1.0" if str(self.measurement.input_distance_type).startswith("f") else "1"
        made = f"dpcore.adapters.OpenDP(measurement, d_in={unit}).{_SHOWN_BY[measure]}"
        if self.d_in is not None and _SHOWN_BY[measure] == "curve":
            return f"claim={made.replace(unit, repr(self.d_in))} tests what its privacy map states"
        kind, _ = _NEIGHBOUR_RELATIONS[self._metric][0]
        relation = f"{kind.__name__}({'' if kind in (Replace, AddRemove) else '1.0'})"
        return (
            "neighbour= brings the claim of the measurement's privacy map, such as "
            f"neighbour=dpcore.pairs.{relation}, and {made} shows it"
        )

    @property
    def stated(self) -> tuple[float, float] | None:
        """The (epsilon, delta) of the measurement for inputs at distance `d_in`, or None.

        OpenDP's privacy map of the measurement computes these numbers from `d_in`. For pure DP,
        delta is 0. The value is None if `d_in` is None, or if the result of the privacy map is
        neither an epsilon nor a pair (epsilon, delta).
        """
        measure = str(self.measurement.output_measure)
        if self.d_in is None or "MaxDivergence" not in measure:
            return None
        stated_loss = self.measurement.map(self.d_in)
        if isinstance(stated_loss, tuple):
            return float(stated_loss[0]), float(stated_loss[1])
        # A curve of (epsilon, delta) is not a single statement.
        return (float(stated_loss), 0.0) if isinstance(stated_loss, (int, float)) else None

    @property
    def curve(self) -> ZCDP | None:
        """The zCDP claim of the measurement for inputs at distance `d_in`, or None.

        OpenDP's privacy map of the measurement computes the parameter rho from `d_in`. The value is
        None if `d_in` is None, or if the privacy map does not give a finite rho.
        """
        if self.d_in is None or _SHOWN_BY.get(str(self.measurement.output_measure)) != "curve":
            return None
        rho = float(self.measurement.map(self.d_in))
        return ZCDP(rho) if math.isfinite(rho) else None

    @property
    def norm(self) -> str | None:
        """Norm in which the measurement compares inputs ("l1", "l2" or "linf"), or None.

        The value is None if the input metric of the measurement is not a norm.
        """
        return _NORM_METRICS.get(self._metric)

    @property
    def sensitivity(self) -> float | None:
        """The distance `d_in` of two neighbouring inputs of the measurement, or None.

        The value is None if `d_in` is None, or if the measurement does not compare its inputs by a
        norm.
        """
        return None if self.d_in is None or self.norm is None else float(self.d_in)

    @property
    def _metric(self) -> str:
        return str(self.measurement.input_metric).partition("(")[0]

    def speaking_of(self, neighbour: Any) -> OpenDP:
        """Return a copy of this adapter with `d_in` set to the largest distance of two neighbours.

        Args:
            neighbour: a neighbour relation of `dpcore.pairs`, such as `L1(1.0)`.

        Returns:
            The copy. Its property `stated` or `curve` contains the value of OpenDP's privacy map at
            the new `d_in`.

        Raises:
            ValueError: if the relation does not define a distance in the input metric of the
                measurement, or if this adapter has another `d_in` already.

        Example:
            The largest distance of two neighbours in the input metric of the measurement::

                dpcore.adapters.OpenDP(laplace).speaking_of(dpcore.pairs.L1(1.0)).d_in  # 1.0
        """
        fitting = _NEIGHBOUR_RELATIONS.get(self._metric, ())
        shares = [share for kind, share in fitting if isinstance(neighbour, kind)]
        if not shares:
            kinds = " or ".join(kind.__name__ for kind, _ in fitting) or "left away"
            metric = self.measurement.input_metric
            requirement = f"{kinds} for a measurement on {metric} (or give claim=)"
            raise tag_error(invalid("neighbour", requirement, neighbour), "neighbour")
        farthest = neighbour.most * shares[0]
        if not str(self.measurement.input_distance_type).startswith("f"):
            # Whole numbers that are at most 1.5 apart are at most 1 apart.
            farthest = math.floor(farthest)
        if self.d_in is not None and self.d_in != farthest:
            requirement = f"d_in = {self.d_in!r} of the measurement, or left away"
            raise invalid("distance of neighbours", requirement, farthest)
        return replace(self, d_in=farthest)

    def __repr__(self) -> str:
        meas = self.measurement
        shown = f"{meas.input_domain}, {meas.input_metric} -> {meas.output_measure}"
        return f"OpenDP({shown})" if self.d_in is None else f"OpenDP({shown}, d_in={self.d_in!r})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Invoke the measurement on `x` `size` times.

        Args:
            x: a member of the input domain, or an array with the numbers of such a member.
            size: number of outputs.
            rng: not used, because OpenDP has its own entropy source.

        Returns:
            Array of the outputs, shape `(size,)`. The shape is `(size, dim)` if an output is a
            vector. The dtype is object if an output is a string.

        Raises:
            ValueError: if the outputs have different shapes.
        """
        measurement, ask = self.measurement, self.ask
        release = measurement if ask is None else lambda value: ask(measurement(value))
        argument = _convert_argument(x, str(measurement.input_carrier_type))
        answers, catch = AnswerKeeper(repr(self)), check_catch(self.catch)
        call_and_keep(answers, release, argument, size, catch)
        return collect_answers(answers, catch)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the measurement with OpenDP's own serialisation and its enabled features."""
        mod = import_module("opendp.mod")
        return _rebuild_measurement, (
            mod.serialize(self.measurement),
            tuple(sorted(mod.GLOBAL_FEATURES)),
            self.d_in,
            self.catch,
            self.ask,
        )


def _rebuild_measurement(
    text: str, features: tuple[str, ...], d_in: Any, catch: Catch, ask: Callable[[Any], Any] | None
) -> OpenDP:
    mod = import_module("opendp.mod")
    mod.enable_features(*features)
    return OpenDP(mod.deserialize(text), d_in, catch, ask)


def _convert_argument(x: Any, carrier: str) -> Any:
    if carrier.startswith("Vec<"):
        values = x.tolist() if isinstance(x, np.ndarray) else x
        if not isinstance(values, (list, tuple)):
            return x
        return [_convert_if_exact(unwrap_single_number(value), carrier[4:-1]) for value in values]
    return _convert_if_exact(unwrap_single_number(x), carrier)


def _convert_if_exact(value: Any, kind: str) -> Any:
    """Convert a whole number to the type of the input domain (int, float or bool).

    A value that this type cannot represent exactly is returned unchanged.
    """
    if isinstance(value, int) and kind[0] == "f" and abs(value) <= 2**53:
        return float(value)
    if isinstance(value, float) and value.is_integer() and kind[0] in "iu":
        return int(value)
    return bool(value) if kind == "bool" and value in (0, 1) else value
