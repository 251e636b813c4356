"""Claims that other packages hold, read by their methods and copied."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from ..errors import invalid, mistyped
from ..hints import hinted
from .claim import Claim, Floats
from .renyi import RDP, ZCDP
from .tables import TradeOff

__all__ = ["of"]

_ACCEPTED_OBJECTS: Final = (
    "an accountant of Opacus (RDPAccountant or PRVAccountant), a privacy loss distribution of "
    "dp-accounting, or an OpenDP measurement with its d_in (dpcore.adapters.OpenDP(measurement, "
    "d_in=1))"
)
_OPACUS_ORDERS: Final = np.concatenate([1.0 + np.arange(1, 100) / 10.0, np.arange(12.0, 64.0)])
"""The orders at which Opacus' accountant computes."""
_PROFILE_DELTAS: Final = np.geomspace(0.5, 1e-12, 100)
"""Deltas at which a profile is read; an accountant that searches for each at fewer."""
_SEARCHED_DELTAS: Final = np.geomspace(0.5, 1e-9, 24)
_MAX_PROFILE_EPSILON: Final = 700.0
_PROFILE_EPSILON_COUNT: Final = 1000


@hinted
def of(held: Any) -> Claim:
    """Return the claim that an accountant, a privacy loss distribution or a measurement holds.

    The claim is a copy: what is counted later does not change it.

    Args:
        held: one of

            - Opacus' `RDPAccountant`: an `RDP` claim at its orders;
            - Opacus' `PRVAccountant`: a `TradeOff` of its upper epsilons at 24 deltas from .5 to
              1e-9, each with an error of at most .01 upwards;
            - a privacy loss distribution of dp-accounting: a `TradeOff` of its delta at 1,000
              epsilons;
            - a `dpcore.adapters.OpenDP` with `d_in`: the value of its privacy map, as a `ZCDP` or
              a `TradeOff`;
            - a claim, which is returned.

            Opacus' `GaussianAccountant` is refused: its central limit theorem can promise too
            much.

    Returns:
        The claim.

    Raises:
        TypeError: if it is something else.
        ValueError: if an accountant has counted no step, or what is held claims nothing finite.

    Source:
        Mironov, Talwar and Zhang (2019) for Opacus' RDP; Gopi, Lee and Wutschitz (2021), which
        shows that the central limit theorem underestimates, for its PRV.

    Example:
        An accountant of a training::

            engine = opacus.PrivacyEngine(accountant="rdp")
            ...
            dpcore.audit(mechanism, pair, claim=dpcore.claims.of(engine.accountant))
    """
    if isinstance(held, Claim):
        return held
    names = {base.__name__ for base in type(held).__mro__ if base.__module__.startswith("opacus")}
    if "GaussianAccountant" in names:
        requirement = (
            "an RDPAccountant or a PRVAccountant: a GaussianAccountant can underestimate epsilon, "
            "so that a correct training would be refuted"
        )
        raise invalid("held", requirement, held)
    if names & {"RDPAccountant", "PRVAccountant"} and not len(held):
        raise invalid("held", "an accountant that has counted one step at least", held)
    if "RDPAccountant" in names:
        return _read_rdp_accountant(held)
    if "PRVAccountant" in names:
        epsilons = [float(held.get_epsilon(delta=delta)) for delta in _SEARCHED_DELTAS.tolist()]
        return _make_table(np.array(epsilons), _SEARCHED_DELTAS, "Opacus' PRVAccountant")
    if hasattr(held, "get_delta_for_epsilon") and hasattr(held, "get_epsilon_for_delta"):
        return _read_loss_distribution(held)
    if hasattr(held, "measurement") and hasattr(held, "d_in"):
        return _read_measurement(held)
    raise mistyped("held", _ACCEPTED_OBJECTS, held)


def _read_rdp_accountant(accountant: Any) -> RDP:
    """Return the divergences of the steps that Opacus has counted."""
    from opacus.accountants.analysis.rdp import compute_rdp

    total = np.zeros(_OPACUS_ORDERS.size)
    for noise_multiplier, sample_rate, steps in accountant.history:
        total += compute_rdp(
            q=sample_rate,
            noise_multiplier=noise_multiplier,
            steps=steps,
            orders=_OPACUS_ORDERS.tolist(),
        )
    # An order that could not be computed claims nothing.
    return RDP(_OPACUS_ORDERS, np.where(np.isnan(total), math.inf, total))


def _read_loss_distribution(losses: Any) -> TradeOff:
    """Return the deltas of a privacy loss distribution at epsilons up to where they are tiny."""
    least = float(losses.get_delta_for_epsilon(_MAX_PROFILE_EPSILON))
    most = float(losses.get_epsilon_for_delta(least * (1.0 + 1e-6) + _PROFILE_DELTAS[-1]))
    epsilons = np.unique(
        np.maximum(most, 0.0) * np.linspace(0.0, 1.0, _PROFILE_EPSILON_COUNT) ** 1.2
    )
    deltas = np.array(losses.get_delta_for_epsilon(epsilons), dtype=np.float64)
    return _make_table(epsilons, deltas, "a privacy loss distribution")


def _read_measurement(adapter: Any) -> Claim:
    """Return what an OpenDP measurement's privacy map says at the adapter's `d_in`."""
    measure = str(adapter.measurement.output_measure)
    if adapter.d_in is None:
        requirement = "a measurement with d_in, how far apart neighbouring inputs are"
        raise invalid("held", requirement, adapter)
    value = adapter.measurement.map(adapter.d_in)
    if measure == "ZeroConcentratedDivergence":
        return ZCDP(float(value))
    if measure == "SmoothedMaxDivergence":
        return _make_table(
            np.array([value.epsilon(d) for d in _PROFILE_DELTAS.tolist()]),
            _PROFILE_DELTAS,
            "OpenDP's profile",
        )
    if measure in ("MaxDivergence", "Approximate(MaxDivergence)"):
        epsilon, delta = value if isinstance(value, tuple) else (value, 0.0)
        return _make_table(
            np.array([float(epsilon)]), np.array([float(delta)]), f"OpenDP's {measure}"
        )
    raise invalid("held", "a measurement whose measure is an epsilon, a profile or zCDP", measure)


def _make_table(epsilons: Floats, deltas: Floats, origin: str) -> TradeOff:
    """Return the table of the pairs that say something, the least delta at each epsilon."""
    # A negative epsilon at some delta holds as 0 does.
    epsilons = np.maximum(epsilons, 0.0)
    says = (epsilons <= _MAX_PROFILE_EPSILON) & (deltas >= 0.0) & (deltas < 1.0)
    epsilons, deltas = epsilons[says], deltas[says]
    if not epsilons.size:
        raise invalid("held", "something that claims a finite epsilon", origin)
    order = np.lexsort((deltas, epsilons))
    epsilons, deltas = epsilons[order], deltas[order]
    first = np.append(True, np.diff(epsilons) > 0.0)
    return TradeOff(epsilons=epsilons[first], deltas=deltas[first], origin=origin)
