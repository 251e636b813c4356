"""Calls of the traced function, each with a copy of the input and a traced random generator."""

from __future__ import annotations

import copy
import inspect
import random
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from ..adapters import adapt
from ..errors import mistyped
from ..mechanisms.answers import refuse_unreadable_row_types
from ..mechanisms.callables import Repeated, refuse_wrong_parameter_order
from ..mechanisms.declarations import convert_pair
from ..records import Pair
from ..report.shown import name_of
from ..streams import seeded_globals
from .draws import ENTROPY, RUN_HOOKS, TracedGenerator, use_original_random_functions
from .replay import EarlyReading, TracedRun, activate_run
from .returned import Leaves, iterate_leaves, read_leaves_and_record_noise_use

_Style = Literal["x", "x, rng", "x, rng=", "x, size, rng"]

_REQUIREMENT: Final = "a function (x), (x, rng) or (x, size, rng)"
_CONTRACT_ARGUMENTS: Final = 3
_ORDINARY_STREAM: Final = 4
_STRESSED_STREAM: Final = 5
_STRESSED_DRAW: Final = 2**32 - 2
"""Parts of seeds: ordinary runs, runs with unusual noise and traced runs use different seeds."""


def _find_size_and_rng_style(function: Any) -> _Style:
    """Determine which of the arguments `size` and `rng` a function takes after its input."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return "x"
    positional = [p for p in parameters if p.kind <= p.POSITIONAL_OR_KEYWORD]
    needed = [p for p in positional if p.default is p.empty]
    names = [p.name for p in positional]
    if len(needed) > _CONTRACT_ARGUMENTS or not parameters:
        raise mistyped("f", _REQUIREMENT, function)
    if len(needed) == _CONTRACT_ARGUMENTS or names[1:3] == ["size", "rng"]:
        return "x, size, rng"
    if names[1:2] == ["rng"] or len(needed) == _CONTRACT_ARGUMENTS - 1:
        return "x, rng"
    return "x, rng=" if any(p.name == "rng" for p in parameters) else "x"


@dataclass(slots=True)
class RunOutput:
    """Output of one run of a traced function, with the record of the run.

    The field `leaves` holds each returned number, array or text, with a path such as "output" as
    the key. A returned value with noise is the sum of the noise and a part without noise. The field
    `parts` holds the sum of the absolute values of these two terms. The field `run` is the record
    of the run.
    """

    leaves: Leaves
    parts: dict[str, Any]
    run: TracedRun


@dataclass(slots=True)
class TracedFunction:
    """A function that `dpcore.trace` examines, with the pair of inputs x and x'.

    Args:
        function: the function.
        pair: the two inputs x and x'.
        seed: seed from which the noise of all runs is derived.
    """

    function: Callable[..., Any]
    pair: Pair
    seed: int
    name: str = ""
    style: _Style = "x"
    calls: int = 0
    bypassed: bool = False
    reads_sources: EarlyReading = ""
    unseen: str = ""
    inner_calls: int = 0
    inputs: tuple[Any, Any] = field(default=(None, None))

    @classmethod
    def of(cls, function: Any, pair: Pair, seed: int) -> TracedFunction:
        """Make a `TracedFunction` from the function that a user passes to `dpcore.trace`.

        Raises:
            TypeError: if `function` is not callable, or does not take the arguments (x), (x, rng)
                or (x, size, rng).
        """
        name = name_of(function)
        adapted = None if isinstance(function, type) else adapt(function)
        function = function if adapted is None else adapted
        function = function.fn if isinstance(function, Repeated) else function
        if not callable(function):
            raise mistyped("f", _REQUIREMENT, function)
        refuse_wrong_parameter_order(function, "f")
        style = _find_size_and_rng_style(function)
        if style == "x, size, rng":
            pair = convert_pair(function, pair)
        return cls(function, pair, seed, name, style, inputs=(pair.x, pair.x_prime))

    def swap(self) -> TracedFunction:
        """Return a copy of this object with the two inputs x and x' exchanged."""
        other = copy.copy(self)
        other.inputs = self.inputs[::-1]
        return other

    def _call(self, side: int, generator: np.random.Generator) -> Any:
        x = self.inputs[side]
        with suppress(Exception):
            # An input that cannot be copied is passed unchanged.
            x = copy.deepcopy(x)
        match self.style:
            case "x":
                return self.function(x)
            case "x, rng":
                return self.function(x, generator)
            case "x, rng=":
                return self.function(x, rng=generator)
            case _:
                return self.function(x, 1, generator)

    def run(self, side: int, run: TracedRun) -> RunOutput:
        """Call the function on x (if `side` is 0) or x' (if `side` is 1), and return its output.

        During the call, the object `run` supplies the noise and records how the function uses it.
        """
        self.calls += 1
        with ExitStack() as stack:
            if run.mode == "record":
                stack.enter_context(self._record_untraced_global_draws(run))
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
            stack.enter_context(activate_run(run))
            for hook in RUN_HOOKS:
                stack.enter_context(hook(run))
            sources = len(ENTROPY)
            generator = TracedGenerator(run)
            output = self._call(side, generator)
            refuse_unreadable_row_types(f"output of {self.name}", [output])
            leaves, parts = read_leaves_and_record_noise_use(output, run)
            if run.mode == "record":
                self._store_first_untraced_source(ENTROPY[sources:], generator)
        return RunOutput(leaves, parts, run)

    def _store_first_untraced_source(self, sources: list[str], generator: TracedGenerator) -> None:
        """Store the name of a source of randomness from which the run drew untraced numbers."""
        if generator.has_untraced_draws:
            sources = [*sources, "a draw without a law here"]
        self.unseen = self.unseen or next(iter(sources), "")

    @contextmanager
    def _record_untraced_global_draws(self, run: TracedRun) -> Iterator[None]:
        """Record whether a run draws from the global generators in a way that is not traced."""
        state = _read_global_states()
        yield
        if not run.has_own_seed and _have_global_states_changed(state):
            self.bypassed = True

    def make_empty_run(self, mode: Any, draw: int, **settings: Any) -> TracedRun:
        """Make an empty record for one new call of the function.

        `draw` is the number from which the seed of the noise is derived, and `mode` states how
        numbers are traced. Other settings are passed to `TracedRun`.
        """
        run = TracedRun(mode, (self.seed, draw), self.calls, **settings)
        run.reads_sources = self.reads_sources
        return run

    def run_without_trace(self, side: int, number: int) -> Leaves:
        """Call the function without a trace, on x (if `side` is 0) or x' (if `side` is 1).

        The function gets an ordinary random generator, whose seed depends on `side` and `number`.
        The result holds the returned values, with paths such as "output[0]" as the keys.
        """
        base = np.random.default_rng([self.seed, _ORDINARY_STREAM, side, number])
        with use_original_random_functions(), warnings.catch_warnings(), seeded_globals(base):
            warnings.simplefilter("ignore")
            state = base.bit_generator.state
            leaves = dict(iterate_leaves(self._call(side, base)))
            self.inner_calls += base.bit_generator.state != state
            return leaves

    def run_rare_noise(self, side: int, number: int, limit: int) -> Leaves:
        """Call the function on x (`side` is 0) or x' (`side` is 1) with noise of unusual sizes.

        The sizes of the noise are very small or very large. The result holds the returned values,
        with paths such as "output[0]" as the keys.

        Raises:
            EndlessRun: if the function calls random functions more than 10 * `limit` + 1000 times.
        """
        run = self.make_empty_run("plain", _STRESSED_DRAW - number)
        run.stress = np.random.default_rng([self.seed, _STRESSED_STREAM, side, number])
        run.limit = limit
        return self.run(side, run).leaves


def _read_global_states() -> tuple[Any, Any]:
    # A name that was imported before the trace bypasses the patches of the global generators.
    return random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002


def _have_global_states_changed(state: tuple[Any, Any]) -> bool:
    python, numpy = _read_global_states()
    first, second = state[1], numpy
    moved = first["state"]["pos"] != second["state"]["pos"] if "pos" in first["state"] else False
    moved = moved or not _are_state_dicts_equal(first["state"], second["state"])
    return bool(python != state[0] or moved)


def _are_state_dicts_equal(first: Any, second: Any) -> bool:
    return all(np.array_equal(first[key], second[key]) for key in first)


@contextmanager
def keep_global_states() -> Iterator[None]:
    """Restore the states of the global generators of Python and numpy after a `with` block."""
    state = _read_global_states()
    try:
        yield
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])  # noqa: NPY002
