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
from ..errors import about, invalid
from ..mechanisms.answers import AnswerKeeper
from ..mechanisms.callables import Catch, catch_of, collect_answers, keep_answers
from ..pairs import L1, L2, AddRemove, Linf, Replace
from .scipy import Adapter, unwrap_scalar

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
"""Attributes that show the statement of a privacy map, by its measure."""

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
"""For each input metric: relations, and the distance of their neighbours per unit of `most`."""


@dataclass(frozen=True, slots=True, repr=False)
class OpenDP(Adapter):
    """An OpenDP `Measurement`, invoked once per output.

    OpenDP draws from the operating system and cannot be seeded, so the seed of an audit does not
    repeat the outputs. `x` is converted for the input domain of the measurement: arrays become
    lists for a domain of vectors and plain numbers for a domain of scalars. Whole numbers become
    ints if the domain contains ints (a `Pair` stores lists of numbers as float64). Other inputs are
    passed on unchanged.

    Args:
        measurement: the measurement.
        d_in: distance of the two inputs in the input metric of the measurement. If it is given,
            `stated` is the value of `measurement.map(d_in)` if that is an epsilon or an (epsilon,
            delta). `curve` is the `claims.ZCDP` of that value if it is a rho.
        catch: one or more exception classes that count as outcomes; see `dpcore.repeat`.
        ask: function that takes the queryable of an interactive measurement, queries it and returns
            the output. None means that the output is the value of the measurement.

    Source:
        Gaboardi, Hay and Vadhan (2020), A Programming Framework for OpenDP.

    Example:
        A measurement is recognised automatically. Its claim requires a neighbour relation, or a
        distance in its input metric::

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
        """Advice on a claim from the privacy map, with a relation that suits its metric."""
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
        """Value of the privacy map at `d_in`: (epsilon, 0) or (epsilon, delta), or else None."""
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
        """Curve of the privacy map at `d_in`, if the map returns a finite rho, or else None."""
        if self.d_in is None or _SHOWN_BY.get(str(self.measurement.output_measure)) != "curve":
            return None
        rho = float(self.measurement.map(self.d_in))
        return ZCDP(rho) if math.isfinite(rho) else None

    @property
    def norm(self) -> str | None:
        """Norm of the input metric, or None if it is not a norm."""
        return _NORM_METRICS.get(self._metric)

    @property
    def sensitivity(self) -> float | None:
        """Distance of two inputs in the claim, if the metric is a norm. Otherwise None."""
        return None if self.d_in is None or self.norm is None else float(self.d_in)

    @property
    def _metric(self) -> str:
        return str(self.measurement.input_metric).partition("(")[0]

    def speaking_of(self, neighbour: Any) -> OpenDP:
        """Return the measurement with `d_in` set to the distance of a relation's neighbours.

        Args:
            neighbour: a relation of `dpcore.pairs`.

        Returns:
            A mechanism whose `stated` is the value of the privacy map for these neighbours.

        Raises:
            ValueError: if the relation does not define a distance in the input metric, or its
                distance differs from `d_in`.

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
            raise about(invalid("neighbour", requirement, neighbour), "neighbour")
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
            x: a member of the input domain, or an array of its numbers.
            size: number of outputs.
            rng: not used, because OpenDP has its own entropy source.

        Returns:
            Outputs of shape `(size,)` or `(size, dim)`; an object array for strings.

        Raises:
            ValueError: if the outputs have different shapes.
        """
        measurement, ask = self.measurement, self.ask
        release = measurement if ask is None else lambda value: ask(measurement(value))
        argument = _convert_argument(x, str(measurement.input_carrier_type))
        answers, catch = AnswerKeeper(repr(self)), catch_of(self.catch)
        keep_answers(answers, release, argument, size, catch)
        return collect_answers(answers, catch)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Pickle the measurement by OpenDP's serialisation, with the enabled features."""
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
        return [_convert_exactly(unwrap_scalar(value), carrier[4:-1]) for value in values]
    return _convert_exactly(unwrap_scalar(x), carrier)


def _convert_exactly(value: Any, kind: str) -> Any:
    """Convert a whole number to the int, float or bool of the domain, without rounding."""
    if isinstance(value, int) and kind[0] == "f" and abs(value) <= 2**53:
        return float(value)
    if isinstance(value, float) and value.is_integer() and kind[0] in "iu":
        return int(value)
    return bool(value) if kind == "bool" and value in (0, 1) else value
