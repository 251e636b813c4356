"""Settings of a training: length, speed and size, and the noise of a private one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from ...errors import choice, integer, invalid, real
from ...records import Shown
from ..needed import needed

__all__ = [
    "Noise", "Plan", "ignore_order_warnings", "make_accountant", "make_noise", "make_plan",
    "spent_epsilons",
]  # fmt: skip

_RECIPES: Final = {"sgd": (20, 20, 20.0), "adam": (20, 64, 3e-3), "private": (15, 256, 2.0)}
"""Epochs, batch and rate: Gusain and Leith's recipe, Adam beside it, and the private twin."""
_HIDDEN: Final = 64
_MAX_DELTA: Final = 8e-5


@dataclass(frozen=True, slots=True)
class Plan:
    """Length, speed and size of a training.

    Args:
        optimiser: "sgd" or "adam".
        epochs: passes over the texts, at most.
        batch: texts in a step; the expected number if batches are drawn by Poisson sampling.
        lr: rate of the first step.
        hidden: entries of a state.
        layers: of the LSTM.
        dropout: share of dropped entries.
    """

    optimiser: str
    epochs: int
    batch: int
    lr: float
    hidden: int
    layers: int
    dropout: float


@dataclass(frozen=True, slots=True, repr=False)
class Noise(Shown):
    """The noise of a private training.

    Args:
        sigma: noise multiplier: standard deviation divided by `clip`.
        clip: largest norm of a record's gradient.
        rate: probability with which a record is in a batch.
        delta: at which epsilon is to hold.
    """

    sigma: float
    clip: float
    rate: float
    delta: float


def make_plan(given: dict[str, Any], texts: int, start: Any, is_private: bool) -> Plan:
    """Check the settings of a training, and fill in those of its recipe.

    Args:
        given: fields of `Plan`; None for the recipe's.
        texts: number of training texts.
        start: the model whose sizes are taken, or None.
        is_private: True for the private recipe.

    Raises:
        TypeError: if a setting is of the wrong kind.
        ValueError: if it is out of range, there are fewer texts than a batch, or the sizes are not
            those of `start`.
    """
    optimiser = choice("optimiser", given["optimiser"], ("sgd", "adam"))
    if is_private and optimiser != "sgd":
        raise invalid("optimiser", "'sgd' for a private training", optimiser)
    names = ("epochs", "batch", "lr")
    recipe = dict(zip(names, _RECIPES["private" if is_private else optimiser], strict=True))
    filled = {name: recipe[name] if given[name] is None else given[name] for name in names}
    sizes = {}
    for name, usual in (("hidden", _HIDDEN), ("layers", 1)):
        usual = usual if start is None else getattr(start, name)
        sizes[name] = usual if given[name] is None else integer(name, given[name], 1)
        if start is not None and sizes[name] != usual:
            raise invalid(name, f"{usual}, as that of start", given[name])
    dropout = real("dropout", given["dropout"], low=0.0, high=1.0, open_high=True)
    if is_private and dropout:
        raise invalid("dropout", "0 for a private training", dropout)
    batch = integer("batch", filled["batch"], 1)
    if texts < batch:
        raise invalid("texts", f"at least as many as a batch, {batch} (see batch=)", texts)
    lr = real("lr", filled["lr"], low=0.0, high=1e30, open_low=True)
    epochs = integer("epochs", filled["epochs"], 1)
    return Plan(optimiser, epochs, batch, lr, sizes["hidden"], sizes["layers"], dropout)


def make_noise(epsilon: Any, delta: float | None, clip: Any, texts: int, plan: Plan) -> Noise:
    """Compute the noise for an epsilon by Opacus' PRV accountant.

    Args:
        epsilon: above 0; inf for no noise.
        delta: in (0, 1), or None for the smaller of 8e-5 and 1/(2 texts).
        clip: largest norm of a record's gradient.
        texts: number of training texts.
        plan: epochs and batch.

    Raises:
        ModuleNotFoundError: without opacus.
        TypeError: if an argument is not a number.
        ValueError: if it is out of range.

    Warns:
        UserWarning: if delta is 1/texts or more.
    """
    clip = real("clip", clip, low=0.0, open_low=True)
    usual = min(_MAX_DELTA, 0.5 / texts)
    delta = real(
        "delta", usual if delta is None else delta, low=0.0, high=1.0, open_low=True, open_high=True
    )
    if delta >= 1.0 / texts:
        warnings.warn(
            f"delta = {delta:.3g} is 1/N = {1.0 / texts:.3g} or more: at such a delta a mechanism "
            f"that publishes one of the {texts:,} texts is private",
            UserWarning,
            stacklevel=4,
        )
    steps = -(-texts // plan.batch)
    rate = 1.0 / steps
    needed("opacus.accountants.utils", "lm.fit with epsilon")
    # What is no number is refused with the words for finite ones.
    if not isinstance(epsilon, float) or epsilon != math.inf:
        epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
        sigma = _find_noise_multiplier(epsilon, delta, rate, steps * plan.epochs)
        return Noise(sigma, clip, rate, delta)
    return Noise(0.0, clip, rate, delta)


@lru_cache(maxsize=64)
def _find_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Ask Opacus for sigma: ten seconds or more, the same for every training of an audit."""
    accounting = needed("opacus.accountants.utils", "lm.fit with epsilon")
    with ignore_order_warnings():
        sigma = accounting.get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps,
            accountant="prv",
        )  # fmt: skip
    return float(sigma)


def make_accountant(noise: Noise, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return an accountant of Opacus that has counted steps.

    Args:
        noise: sigma and rate.
        steps: number of steps.
        kind: its class, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(needed("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(noise.sigma, noise.rate, steps)]
    return accountant


@contextmanager
def ignore_order_warnings() -> Iterator[None]:
    """Ignore Opacus' warnings about RDP orders: its PRV accountant uses RDP for a grid only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield


def spent_epsilons(noise: Noise, steps: int) -> tuple[float, float]:
    """Return what Opacus' PRV and RDP accountants report for steps; inf without noise."""
    if not noise.sigma:
        return math.inf, math.inf
    kinds = ("PRVAccountant", "RDPAccountant")
    with ignore_order_warnings():
        prv, rdp = (
            float(make_accountant(noise, steps, kind).get_epsilon(delta=noise.delta))
            for kind in kinds
        )
    return prv, rdp
