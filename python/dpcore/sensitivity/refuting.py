"""The search for a pair that refutes a claimed sensitivity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, count, flag, invalid, mistyped, real
from ..hints import hinted
from ..pairs import NORMS, Domain, Neighbour
from ..pairs.domains import domain_of, neighbour_of
from ..pairs.norms import Norm
from ..progress import interrupted_again
from ..records import Pair, Record
from ..streams import Rng, seed_of
from ._optimising import ModuleCalls, torch_module, try_scipy, try_torch
from ._probing import Catch, Done, Inputs, Probe
from ._searching import OneRecord, Space, climb_coordinates, try_extremes, try_pairs, try_random
from .closed_forms import Sensitivity, in_norm

__all__ = ["METHODS", "SLACK", "Method", "Refutation", "probe_of", "refute", "space_of"]

Method = Literal["witness", "extremes", "random", "ascent", "torch", "scipy"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
"""The parts of a search, in their order."""

SLACK: Final = 1e-9
"""Relative excess over a claim that rounding may explain."""

_MIN_SEARCH_TRIALS: Final = 8
_ASCENT_RESTARTS: Final = 4
"""Random pairs from which the last ascent starts, after the best one."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Refutation(Record, word="Refutation"):
    """The worst pair that a search has found; its distance is a lower bound on the sensitivity.

    Attributes:
        f: name of the function.
        norm: "l1", "l2" or "linf", of the outputs.
        domain: where inputs lie.
        claimed: the sensitivity that was claimed, in the units of f.
        attained: norm of f(x) - f(x') on the pair: a lower bound on the sensitivity. Never the
            sensitivity itself: a search that finds no more proves nothing.
        pair: the two inputs, neighbours of the domain.
        evaluations: calls of f on one input each.
        found_by: the part of the search that found the pair.
        seed: what repeats the search.
        partial: True if Ctrl-C ended it early.
    """

    f: str
    norm: Norm
    domain: Any
    claimed: float
    attained: float
    pair: Pair
    evaluations: int
    found_by: str
    seed: int
    partial: bool = False

    @property
    def refuted(self) -> bool:
        """True if the pair exceeds the claim by more than rounding, 1e-9 of it."""
        return self.attained > self.claimed * (1.0 + SLACK)

    def __str__(self) -> str:
        """Return the claim, the attained distance and the pair as text."""
        x, x_prime = (" ".join(repr(side).split()) for side in (self.pair.x, self.pair.x_prime))
        # Records show long arrays shortened.
        shown = repr(self.pair) if max(len(x), len(x_prime)) > 80 else f"x = {x}, x' = {x_prime}"
        verdict = "" if self.refuted else ", so the claim is not refuted, nor proved"
        ended = ", ended by Ctrl-C" if self.partial else ""
        return (
            f"claimed {self.claimed:.10g}, attained {self.attained:.10g} by this pair (a lower "
            f"bound on the sensitivity{verdict}): {shown}; {self.norm} norm of {self.f}, found by "
            f"{self.found_by} in {self.evaluations} calls, seed {self.seed}{ended}"
        )


@hinted
def refute(
    f: Callable[..., Any],
    claimed: float | Sensitivity,
    norm: Norm,
    domain: Domain,
    *,
    neighbour: Neighbour | None = None,
    rows: bool = False,
    trials: int | float | str = 10_000,
    rng: Rng = None,
    methods: Sequence[Method] | None = None,
    stop_when_refuted: bool = False,
    catch: Catch = (),
) -> Refutation:
    """Search for the pair of neighbours on which f changes most, against a claimed sensitivity.

    ``max norm(f(x) - f(x'))`` over neighbours x, x': the domain's own witness, its extreme
    members, random ones, coordinate ascent, gradient ascent where f is a torch module, scipy's
    optimisers, and once more coordinate ascent from the best pair.

    Args:
        f: a function of one input of the domain, for vectors shape `(dim,)`, that returns a number
            or an array of one shape; without noise. A torch module is called without gradients,
            on a tensor of its parameters' type.
        claimed: the sensitivity to refute, finite and at least 0, in the units of f.
        norm: the norm of f(x) - f(x'): "l1", "l2" or "linf".
        domain: where inputs lie: a set of this package or any with `dim`, `draw`, `contains` and,
            for the searches that move an input, `clip`.
        neighbour: which members are neighbours: a relation of `dpcore.pairs`. None: any two, or
            for a `Histogram` those that differ in one record.
        rows: True if f takes many inputs at once, `(size, dim)` -> `(size, ...)`, row by row.
            This is never guessed: many functions accept rows and mean something else by them.
        trials: calls of f in all, a row counting as one; at least 8.
        rng: None, an int seed or a numpy Generator; the result is a function of it and of f.
        methods: some of `METHODS`; None takes all that apply.
        stop_when_refuted: True to stop at the first pair that exceeds the claim; otherwise the
            worst pair within the budget is wanted.
        catch: exception classes by which f says that it is not defined on an input, such as a
            constant row under min-max scaling: such inputs are left out of the search.

    Returns:
        The worst pair found: a lower bound on the sensitivity, whether it refutes the claim or
        not. After Ctrl-C, the worst one until then.

    Raises:
        TypeError: if an argument is of the wrong kind, or f does not return real numbers.
        ValueError: if one is out of range, f returns NaN, inf or another shape than before, its
            outputs on one input differ, or the domain holds no neighbours. What f raises passes
            through untouched.
        KeyboardInterrupt: on Ctrl-C before f was evaluated on a pair.

    Source:
        Habernal (2021), section 4, for the random pairs; Hooke and Jeeves (1961) for the
        coordinate ascent.

    Example:
        >>> from dpcore.pairs import Box
        >>> clip = lambda x: x * min(1.0, 10.0 / np.linalg.norm(x))
        >>> found = refute(clip, 20.0, "l1", Box(-10, 10, 16), trials=2000, rng=1)
        >>> found.refuted, round(found.attained, 6)
        (True, 80.0)
    """
    claimed = real("claimed", in_norm("claimed", claimed, norm), low=0.0)
    trials = count("trials", trials)
    if trials < _MIN_SEARCH_TRIALS:
        raise invalid("trials", f"a whole number at least {_MIN_SEARCH_TRIALS}", trials)
    flag("stop_when_refuted", stop_when_refuted)
    seed = seed_of(rng)
    space, chosen = space_of(domain, neighbour, rows), _choose_methods(methods, f)
    probe = probe_of(f, norm, rows, trials, catch)
    probe.target = claimed * (1.0 + SLACK) if stop_when_refuted else np.inf
    partial = False
    try:
        _run_search(probe, space, np.random.default_rng(seed), chosen, f)
    except Done:
        pass
    except KeyboardInterrupt:
        if probe.best is None or interrupted_again():
            raise
        partial = True
    return _make_refutation(probe, space, claimed, seed, partial)


def space_of(domain: Any, neighbour: Any, rows: Any) -> Space:
    """Check the arguments and return the space of pairs."""
    domain_of(domain)
    flag("rows", rows)
    if rows and not hasattr(domain, "clip"):
        raise invalid("rows", "False for inputs that are no vectors", rows)
    if neighbour is None:
        return Space(domain, OneRecord() if hasattr(domain, "neighbouring") else None)
    return Space(domain, neighbour_of(neighbour))


def probe_of(f: Any, norm: Norm, rows: bool, trials: int, catch: Any) -> Probe:
    """Check the arguments and return the object that calls f and counts the calls."""
    if not callable(f):
        raise mistyped("f", "a callable x -> number or array", f)
    choice("norm", norm, NORMS)
    called = ModuleCalls(f, rows) if torch_module(f) else f
    return Probe(called, norm, rows, trials, _read_catch(catch))


def _read_catch(catch: Any) -> Catch:
    kinds = catch if isinstance(catch, tuple) else (catch,)
    if not all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        raise mistyped("catch", "an exception class or a tuple of them", catch)
    return kinds


def _choose_methods(methods: Any, f: Any) -> tuple[str, ...]:
    if methods is None:
        return METHODS
    if isinstance(methods, str) or not isinstance(methods, Sequence):
        raise mistyped("methods", "a list of names", methods)
    chosen = {choice("method", method, METHODS) for method in methods}
    if not chosen:
        raise invalid("methods", "at least one name", methods)
    if "torch" in chosen and not torch_module(f):
        raise mistyped("f", "a torch module for the method 'torch'", f)
    return tuple(method for method in METHODS if method in chosen)


def _run_search(
    probe: Probe,
    space: Space,
    rng: np.random.Generator,
    chosen: tuple[str, ...],
    f: Any,
) -> None:
    if "witness" in chosen:
        with probe.allowance("the domain's witness", 1.0):
            try_pairs(probe, _list_witnesses(space, f, probe.norm))
    if "extremes" in chosen and space.free:
        with probe.allowance("extreme members", 0.15):
            try_extremes(probe, space, rng)
    if "random" in chosen or probe.best is None:
        with probe.allowance("random pairs", 0.15 if probe.best else 0.5):
            try_random(probe, space, rng)
    if "ascent" in chosen:
        with probe.allowance("coordinate ascent", 0.4):
            climb_coordinates(probe, space, rng, _get_best_pair(probe, space))
    if "torch" in chosen and isinstance(probe.f, ModuleCalls) and space.moves:
        with probe.allowance("gradient ascent", 0.5):
            try_torch(probe, space, rng, probe.f, _get_best_pair(probe, space))
    if "scipy" in chosen and space.moves:
        with probe.allowance("scipy", 0.7):
            try_scipy(probe, space, rng, _get_best_pair(probe, space))
    if "ascent" in chosen:
        with probe.allowance("coordinate ascent", 1.0):
            for start in [_get_best_pair(probe, space), *space.random(rng, _ASCENT_RESTARTS)]:
                climb_coordinates(probe, space, rng, start)


def _get_best_pair(probe: Probe, space: Space) -> Inputs:
    if probe.best is None:
        requirement = "large enough to hold two neighbours"
        raise invalid("domain", requirement, space.domain)
    return probe.best[1:3]


def _list_witnesses(space: Space, f: Any, norm: Norm) -> list[Inputs]:
    """List the most distant pairs of the domain, and of the range of f if f has one."""
    from .closed_forms import sensitivity

    found: list[Inputs] = []
    for domain in (space.domain, _get_range(f, space.domain.dim)):
        try:
            pair = sensitivity(domain, norm).pair
        except (TypeError, ValueError):
            # No closed form for it.
            continue
        fitted = space.fit(pair.x, pair.x_prime) if space.free else (pair.x, pair.x_prime)
        if fitted is not None and space.holds(*fitted):
            found.append(fitted)
    return found


def _get_range(f: Any, dim: int) -> Any:
    of = getattr(f, "range", None)
    return of(dim) if callable(of) else None


def _make_refutation(
    probe: Probe, space: Space, claimed: float, seed: int, partial: bool
) -> Refutation:
    x, x_prime = _get_best_pair(probe, space)
    gap, _, _, found_by = probe.best or (0.0, None, None, "")
    attained = probe.again(x, x_prime, gap)
    return Refutation(
        probe.name, probe.norm, space.domain, claimed, attained, Pair(x, x_prime),
        probe.evaluations, found_by, seed, partial,
    )  # fmt: skip
