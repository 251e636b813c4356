"""Settings of a training: length, speed and size, and the noise of a private one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Final

from ...errors import choice, confidence_level, integer, invalid, real
from ...records import Shown
from ..needed import needed

__all__ = [
    "Plan", "add_noise", "ignore_order_warnings", "make_accountant", "make_plan", "spent_epsilons",
]  # fmt: skip

_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "sgd": {"epochs": 20, "batch": 20, "lr": 20.0},
    "adam": {"epochs": 20, "batch": 64, "lr": 3e-3},
    "private": {"epochs": 15, "batch": 256, "lr": 2.0},
}
"""Gusain and Leith's recipe, Adam beside it, and the private twin."""
_SIZES: Final = {"hidden": 64, "layers": 1}
_MAX_DELTA: Final = 8e-5


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Shown):
    """Length, speed and size of a training, and the noise of a private one.

    Args:
        optimiser: "sgd" or "adam".
        epochs: passes over the texts, at most.
        batch: texts in a step; the expected number if batches are drawn by Poisson sampling.
        lr: rate of the first step.
        hidden: entries of a state.
        layers: of the LSTM.
        dropout: share of dropped entries.
        delta: at which epsilon is to hold; None of a plain training, as all that follow.
        sigma: noise multiplier: standard deviation divided by `clip`.
        clip: largest norm of a record's gradient.
        rate: probability with which a record is in a batch.
    """

    optimiser: str
    epochs: int
    batch: int
    lr: float
    hidden: int
    layers: int
    dropout: float
    delta: float | None = None
    sigma: float | None = None
    clip: float | None = None
    rate: float | None = None

    @property
    def is_private(self) -> bool:
        """True for the private recipe, with noise or without."""
        return self.sigma is not None


def make_plan(given: dict[str, Any], texts: int, start: Any, is_private: bool) -> Plan:
    """Check the settings of a training, and fill in those of its recipe; there is no noise yet.

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
    from ..systems.training import make_recipe

    optimiser = choice("optimiser", given["optimiser"], ("sgd", "adam"))
    if is_private and optimiser != "sgd":
        raise invalid("optimiser", "'sgd' for a private training", optimiser)
    if is_private and given["dropout"]:
        raise invalid("dropout", "0 for a private training", given["dropout"])
    sizes = _SIZES if start is None else {name: getattr(start, name) for name in _SIZES}
    usual = {**_RECIPES["private" if is_private else optimiser], **sizes}
    filled = usual | {name: value for name, value in given.items() if value is not None}
    for name, size in sizes.items():
        filled[name] = integer(name, filled[name], 1)
        if start is not None and filled[name] != size:
            raise invalid(name, f"{size}, as that of start", filled[name])
    names = ("epochs", "batch", "lr", "dropout")
    recipe = make_recipe(**{name: filled[name] for name in names})
    if texts < recipe.batch:
        raise invalid("texts", f"at least as many as a batch, {recipe.batch} (see batch=)", texts)
    return Plan(**filled | {name: getattr(recipe, name) for name in names})


def add_noise(plan: Plan, epsilon: Any, delta: float | None, clip: Any, texts: int) -> Plan:
    """Return the plan with the noise for an epsilon, by Opacus' PRV accountant.

    Args:
        plan: epochs and batch.
        epsilon: above 0; inf for no noise.
        delta: in (0, 1), or None for the smaller of 8e-5 and 1/(2 texts).
        clip: largest norm of a record's gradient.
        texts: number of training texts.

    Raises:
        ModuleNotFoundError: without opacus.
        TypeError: if an argument is not a number.
        ValueError: if it is out of range.

    Warns:
        UserWarning: if delta is 1/texts or more.
    """
    clip = real("clip", clip, low=0.0, open_low=True)
    usual = min(_MAX_DELTA, 0.5 / texts)
    delta = confidence_level(usual if delta is None else delta, "delta")
    if delta >= 1.0 / texts:
        warnings.warn(
            f"delta = {delta:.3g} is 1/N = {1.0 / texts:.3g} or more: at such a delta a mechanism "
            f"that publishes one of the {texts:,} texts is private",
            stacklevel=4,
        )
    steps, sigma = -(-texts // plan.batch), 0.0
    # What is no number is refused with the words for finite ones.
    if not isinstance(epsilon, float) or epsilon != math.inf:
        epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
        sigma = _find_noise_multiplier(epsilon, delta, 1.0 / steps, steps * plan.epochs)
    return replace(plan, delta=delta, sigma=sigma, clip=clip, rate=1.0 / steps)


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


def make_accountant(plan: Plan, steps: int, kind: str = "PRVAccountant") -> Any:
    """Return an accountant of Opacus that has counted steps.

    Args:
        plan: sigma and rate.
        steps: number of steps.
        kind: its class, "PRVAccountant" or "RDPAccountant".
    """
    accountant = getattr(needed("opacus.accountants", "a private next-word model"), kind)()
    accountant.history = [(plan.sigma, plan.rate, steps)]
    return accountant


@contextmanager
def ignore_order_warnings() -> Iterator[None]:
    """Ignore Opacus' warnings about RDP orders: its PRV accountant uses RDP for a grid only."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Optimal order is the")
        yield


def spent_epsilons(plan: Plan, steps: int) -> dict[str, float]:
    """Return what Opacus' PRV and RDP accountants report for steps; inf without noise."""
    kinds = {"epsilon": "PRVAccountant", "epsilon_rdp": "RDPAccountant"}
    if not plan.sigma:
        return dict.fromkeys(kinds, math.inf)
    with ignore_order_warnings():
        return {
            name: float(make_accountant(plan, steps, kind).get_epsilon(delta=plan.delta))
            for name, kind in kinds.items()
        }
