"""Replacements of generators and random functions, which draw traced numbers in a traced run.

A traced number is a number that stores which noise it contains. During a trace, functions of
modules such as `numpy.random` are replaced. A replacement draws traced numbers if the current
thread traces a run; in other threads, it calls the original function.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

import numpy as np

from ..adapters.followed_tensors import follow_tensors, list_torch_patches
from ..adapters.single_steps import (
    list_diffprivlib_patches,
    list_opendp_patches,
    list_scipy_patches,
)
from .forms import is_noisy_value, read_plain
from .replay import NoiseLaw, TracedRun, get_active_run, is_inside_primitive

LAPLACE: Final = NoiseLaw("laplace", "two-sided")
LOGISTIC: Final = NoiseLaw("logistic", "two-sided")
NORMAL: Final = NoiseLaw("normal", "gaussian")
EXPONENTIAL: Final = NoiseLaw("exponential", "upwards")
GUMBEL: Final = NoiseLaw("gumbel", "upwards")
GEOMETRIC: Final = NoiseLaw("geometric", "upwards", "probability", whole=True)
_LAWS: Final = {law.name: law for law in (LAPLACE, LOGISTIC, NORMAL, GUMBEL)}

_FIXED: Final = (
    "random", "uniform", "integers", "permutation", "permuted", "shuffle", "binomial", "poisson",
    "multinomial", "bytes",
)  # fmt: skip
"""Methods of a Generator whose numbers are not traced as noise. Runs with the same noise get the
same numbers."""

_LEGACY_FIXED: Final = (
    "random", "random_sample", "ranf", "sample", "rand", "uniform", "randint", "random_integers",
    "permutation", "shuffle", "binomial", "poisson", "multinomial", "bytes",
)  # fmt: skip

_PYTHON_FIXED: Final = (
    "random", "uniform", "randint", "randrange", "choice", "choices", "sample", "shuffle",
    "getrandbits", "triangular", "randbytes",
)  # fmt: skip

Patch = tuple[Any, str, Callable[[Any], Any]]
"""An object, the name of an attribute, and the function from the original to the replacement."""

Hook = Callable[[Callable[[], TracedRun | None]], list[Patch]]
"""A function that lists patches; its argument returns the run of this thread, or None."""

HOOKS: Final[list[Hook]] = [
    list_torch_patches, list_diffprivlib_patches, list_opendp_patches, list_scipy_patches,
]  # fmt: skip
"""Functions that list the patches of other packages when a trace begins."""

RUN_HOOKS: Final[list[Callable[[TracedRun], Any]]] = [lambda run: follow_tensors(run, draw_named)]
"""Functions from a run to a context manager, which is entered around the traced call."""


def _find_shape(size: Any, *parameters: Any) -> tuple[int, ...]:
    if size is None and all(type(p) in (float, int) for p in parameters):
        return ()
    if size is None:
        return np.broadcast_shapes(*(np.shape(p) for p in parameters))
    size = read_plain(size, "size")
    return tuple(int(n) for n in size) if np.iterable(size) else (int(size),)


def draw_scaled_noise(run: TracedRun, law: NoiseLaw, loc: Any, scale: Any, size: Any) -> Any:
    """Draw noise from a distribution with a location and a scale, such as Laplace.

    The result is a number or array that also stores which noise it contains.
    """
    shape = _find_shape(size, loc, scale)
    scale = read_plain(scale, "parameter")
    name = law.name
    return run.draw(
        law, loc, scale, scale, shape, lambda base: getattr(base, name)(0.0, scale, shape or None)
    )


def draw_exponential(run: TracedRun, scale: Any, size: Any) -> Any:
    """Draw exponential noise with the given scale.

    The result is a number or array that also stores which noise it contains.
    """
    shape = _find_shape(size, scale)
    scale = read_plain(scale, "parameter")
    return run.draw(
        EXPONENTIAL, 0.0, scale, scale, shape, lambda base: base.exponential(scale, shape or None)
    )


def draw_named(run: TracedRun, name: str, loc: Any, scale: Any, shape: Any) -> Any:
    """Draw noise from the distribution `name` (such as "laplace") with the location `loc`.

    The result is a number or array that also stores which noise it contains.
    """
    if name == EXPONENTIAL.name:
        return draw_exponential(run, scale, shape)
    return draw_scaled_noise(run, _LAWS[name], loc, scale, shape)


def draw_geometric(run: TracedRun, probability: Any, size: Any) -> Any:
    """Draw geometric noise, for which a change by one has a privacy cost of -ln(1 - probability).

    The result is a number or array that also stores which noise it contains.
    """
    shape = _find_shape(size, probability)
    probability = read_plain(probability, "parameter")
    with np.errstate(all="ignore"):
        scale = -1.0 / np.log1p(-np.asarray(probability, float))
    return run.draw(
        GEOMETRIC, 0.0, probability, scale, shape,
        lambda base: base.geometric(probability, shape or None),
    )  # fmt: skip


def choose_index(
    run: TracedRun, count: int, size: Any, replace: bool, p: Any, options: dict[str, Any]
) -> Any:
    """Draw random indices below `count` with the probabilities `p`, and record the privacy loss.

    The loss is computed by a formula from the probabilities in the runs on the two inputs x and x'.
    """
    chances = np.asarray(p, float)
    shape = _find_shape(size)

    def draw_indices() -> Any:
        return run.base.choice(count, shape or None, replace, chances, **options)

    def find_loss(first: Any, second: Any) -> tuple[float, float]:
        if first.shape != second.shape:
            return float("inf"), float("inf")
        with np.errstate(all="ignore"):
            gaps = np.abs(np.log(first) - np.log(second))
        gap = float(np.max(np.where(first == second, 0.0, gaps), initial=0.0))
        return gap, gap * int(np.prod(shape))

    def find_shown_loss(first: Any, second: Any, index: Any) -> float:
        with np.errstate(all="ignore"):
            gaps = np.where(first == second, 0.0, np.abs(np.log(first) - np.log(second)))
        return float(np.sum(gaps[np.asarray(index)]))

    return run.record_noisy_call("choice", chances, draw_indices, find_loss, None, find_shown_loss)


def _draw_choice_as_step_or_fixed(run: TracedRun, original: Any, arguments: Any, named: Any) -> Any:
    """Choose random items.

    If probabilities are given, record the choice as one step with a known privacy loss. Otherwise
    the choice does not count as noise, and all runs with the same noise get the same items.
    """
    names = dict(zip(("a", "size", "replace", "p"), arguments, strict=False), **named)
    if names.get("p") is None:
        return run.fix("choice", lambda base: base.choice(*arguments, **named))
    population, size, p = names.pop("a"), names.pop("size", None), names.pop("p")
    count = int(population) if np.ndim(population) == 0 else len(population)
    replace = names.pop("replace", True)
    options: dict[str, Any] = {key: names[key] for key in ("axis", "shuffle") if key in names}
    index = choose_index(run, count, size, replace, p, options)
    return index if np.ndim(population) == 0 else np.asarray(population)[index]


_METHODS: Final[dict[str, Callable[..., Any]]] = {
    "laplace": lambda run, loc=0.0, scale=1.0, size=None: draw_scaled_noise(
        run, LAPLACE, loc, scale, size
    ),
    "logistic": lambda run, loc=0.0, scale=1.0, size=None: draw_scaled_noise(
        run, LOGISTIC, loc, scale, size
    ),
    "gumbel": lambda run, loc=0.0, scale=1.0, size=None: draw_scaled_noise(
        run, GUMBEL, loc, scale, size
    ),
    "normal": lambda run, loc=0.0, scale=1.0, size=None: draw_scaled_noise(
        run, NORMAL, loc, scale, size
    ),
    "exponential": lambda run, scale=1.0, size=None: draw_exponential(run, scale, size),
    "geometric": lambda run, p, size=None: draw_geometric(run, p, size),
}
"""Draws that Generator, RandomState and numpy.random have in common."""


def _draw_standard_normal(
    run: TracedRun, size: Any = None, dtype: Any = float, out: Any = None
) -> Any:
    value = draw_scaled_noise(run, NORMAL, 0.0, 1.0, size if out is None else out.shape)
    return _copy_to_out_or_cast(value, dtype, out)


def _draw_standard_exponential(
    run: TracedRun, size: Any = None, dtype: Any = float, method: str = "zig", out: Any = None
) -> Any:
    value = draw_exponential(run, 1.0, size if out is None else out.shape)
    return _copy_to_out_or_cast(value, dtype, out)


def _copy_to_out_or_cast(value: Any, dtype: Any, out: Any) -> Any:
    if out is not None:
        out[...] = value
        return out
    return value if np.dtype(dtype) == np.float64 else value.astype(dtype)


_STANDARD: Final[dict[str, Callable[..., Any]]] = {
    "standard_normal": _draw_standard_normal,
    "standard_exponential": _draw_standard_exponential,
}
_LEGACY: Final[dict[str, Callable[..., Any]]] = {
    **_METHODS,
    **_STANDARD,
    "randn": lambda run, *shape: draw_scaled_noise(run, NORMAL, 0.0, 1.0, shape or None),
}
_PYTHON: Final[dict[str, Callable[..., Any]]] = {
    "gauss": lambda run, mu=0.0, sigma=1.0: draw_scaled_noise(run, NORMAL, mu, sigma, None),
    "normalvariate": lambda run, mu=0.0, sigma=1.0: draw_scaled_noise(run, NORMAL, mu, sigma, None),
    "expovariate": lambda run, lambd=1.0: draw_exponential(run, 1.0 / lambd, None),
}


class TracedGenerator(np.random.Generator):
    """A numpy Generator for one traced run, which returns numbers that store their noise.

    Methods that dpcore does not trace return ordinary numbers. The trace records each call of such
    a method.
    """

    def __init__(self, run: TracedRun) -> None:
        super().__init__(np.random.PCG64([*run.seed, 3, run.serial]))
        self._traced_run = run
        self._first_state = super().bit_generator.state["state"]["state"]

    @property
    def bit_generator(self) -> Any:
        """Source of the random bits of this generator.

        Numbers that are drawn from the source are not traced. Therefore each use of this property
        is recorded.
        """
        ENTROPY.append("bit_generator")
        return super().bit_generator

    @property
    def has_untraced_draws(self) -> bool:
        """True if random numbers were drawn by a method that dpcore does not trace."""
        return bool(super().bit_generator.state["state"]["state"] != self._first_state)

    def __reduce__(self) -> Any:
        ENTROPY.append("a copy of the generator")
        return super().__reduce__()

    def spawn(self, n_children: int) -> Any:
        """Return a list that contains this generator `n_children` times."""
        return [self] * n_children


class TracedRandomState(np.random.RandomState):
    """A `numpy.random.RandomState` for one traced run.

    Each number that this object draws stores the noise that the number contains.
    """

    def __init__(self, run: TracedRun) -> None:
        super().__init__(run.serial)
        self._traced_run = run


def _make_method(name: str, draw: Callable[..., Any], original: Any) -> Callable[..., Any]:
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        run = self._traced_run
        if get_active_run() is not run:
            return original(self, *arguments, **named)
        return draw(run, *arguments, **named)

    method.__name__ = name
    return method


def _make_fixed_numpy_draw(name: str, legacy: bool) -> Callable[..., Any]:
    def draw(run: TracedRun, *arguments: Any, **named: Any) -> Any:
        inner, outer = read_plain(arguments, name), read_plain(named, name)

        def call(base: np.random.Generator) -> Any:
            source: Any = np.random.RandomState(base.bit_generator) if legacy else base
            return getattr(source, name)(*inner, **outer)

        value = run.fix(name, call)
        if isinstance(value, int | np.integer) and name in ("integers", "randint"):
            run.issued_seeds.add(int(value))
        return value

    return draw


def _trace_numpy_choice(run: TracedRun, *arguments: Any, **named: Any) -> Any:
    return _draw_choice_as_step_or_fixed(run, None, arguments, named)


def _make_fixed_python_draw(name: str) -> Callable[..., Any]:
    def draw(run: TracedRun, *arguments: Any, **named: Any) -> Any:
        inner, outer = read_plain(arguments, name), read_plain(named, name)

        def call(base: np.random.Generator) -> Any:
            return getattr(random.Random(int(base.integers(2**63))), name)(*inner, **outer)

        value = run.fix(name, call)
        if isinstance(value, int):
            run.issued_seeds.add(value)
        return value

    return draw


def _add_methods() -> None:
    for name, draw in {**_METHODS, **_STANDARD}.items():
        original = getattr(np.random.Generator, name)
        setattr(TracedGenerator, name, _make_method(name, draw, original))
    for name in _FIXED:
        original = getattr(np.random.Generator, name)
        setattr(
            TracedGenerator, name, _make_method(name, _make_fixed_numpy_draw(name, False), original)
        )
    for name, draw in _LEGACY.items():
        original = getattr(np.random.RandomState, name)
        setattr(TracedRandomState, name, _make_method(name, draw, original))
    for name in _LEGACY_FIXED:
        if hasattr(np.random.RandomState, name):
            original = getattr(np.random.RandomState, name)
            setattr(
                TracedRandomState,
                name,
                _make_method(name, _make_fixed_numpy_draw(name, True), original),
            )
    for owner in (TracedGenerator, TracedRandomState):
        choose = _make_method("choice", _trace_numpy_choice, owner.choice)
        setattr(owner, "choice", choose)  # noqa: B010


_add_methods()


def _replace_by(draw: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function that takes an original random function and returns its replacement."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            run = get_active_run()
            if run is None or run.has_own_seed:
                return original(*arguments, **named)
            return draw(run, *arguments, **named)

        return replacement

    return make


def _replace_default_generator(original: Any) -> Any:
    def default_rng(seed: Any = None) -> Any:
        run = get_active_run()
        if run is None or isinstance(seed, TracedGenerator):
            return original(seed)
        is_number = isinstance(seed, int | np.integer)
        if seed is None or (is_number and int(seed) in run.issued_seeds):
            return TracedGenerator(run)
        # Draws from a fixed seed are not noise.
        return original(seed)

    return default_rng


def _replace_seeding(original: Any) -> Any:
    # numpy's own function would seed the replaced state.
    is_numpy = original is np.random.seed
    seed_really = np.random.mtrand._rand.seed if is_numpy else original

    def seed(*arguments: Any, **named: Any) -> Any:
        run = get_active_run()
        value = next(iter((*arguments, *named.values())), None)
        if run is None:
            return seed_really(*arguments, **named)
        if value is None or (isinstance(value, int | np.integer) and value in run.issued_seeds):
            return None
        # From here on the global draws have a fixed seed and are not noise.
        run.has_own_seed = True
        return seed_really(*arguments, **named)

    return seed


class _LegacyClass(type):
    """Replacement of the class `RandomState`; a call without a seed makes a traced instance."""

    def __call__(cls, seed: Any = None) -> Any:
        run = get_active_run()
        original = cls.original  # type: ignore[attr-defined]
        if run is not None and seed is None:
            return TracedRandomState(run)
        return original(seed)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.original)  # type: ignore[attr-defined]


def _replace_legacy_class(original: Any) -> Any:
    return _LegacyClass("RandomState", (), {"original": original})


class _GlobalState(np.random.RandomState):
    """Replacement of the hidden global generator of `numpy.random` during a trace."""


def _replace_global_random_state(original: Any) -> _GlobalState:
    state = _GlobalState(0)

    def delegate(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
        def method(*arguments: Any, **named: Any) -> Any:
            run = get_active_run()
            if run is None or run.has_own_seed:
                return getattr(original, name)(*arguments, **named)
            return draw(run, *arguments, **named)

        return method

    for name, draw in _list_traced_legacy_draws():
        setattr(state, name, delegate(name, draw))
    return state


def _list_traced_legacy_draws() -> list[tuple[str, Callable[..., Any]]]:
    fixed = [(name, _make_fixed_numpy_draw(name, True)) for name in _LEGACY_FIXED]
    legacy = [(name, draw) for name, draw in fixed if hasattr(np.random.RandomState, name)]
    return [*_LEGACY.items(), *legacy, ("choice", _trace_numpy_choice)]


ENTROPY: Final[list[str]] = []
"""Names of the sources of draws that were not traced, in all threads. A traced run may have made
these draws."""


def _entropy_call_recorder_maker(name: str) -> Callable[[Any], Any]:
    """Return a function that takes a source of randomness and returns one that records calls."""

    def make(original: Any) -> Any:
        def replacement(*arguments: Any, **named: Any) -> Any:
            if not is_inside_primitive():
                ENTROPY.append(name)
            return original(*arguments, **named)

        return replacement

    return make


def _record_seeding_from_entropy(original: Any) -> Any:
    def seed(self: Any, a: Any = None, *arguments: Any, **named: Any) -> Any:
        if a is None and not is_inside_primitive():
            ENTROPY.append("random.Random")
        return original(self, a, *arguments, **named)

    return seed


def _make_json_default(original: Any) -> Callable[[Any, Any], Any]:
    def default(self: Any, value: Any) -> Any:
        if is_noisy_value(value):
            return value.tolist()
        return original(self, value)

    return default


def list_patches() -> list[Patch]:
    """List the functions of other packages that a trace replaces, with their replacements.

    These functions draw or use noise. They belong to numpy, `random`, JSON, torch and other
    packages.
    """
    patches: list[Patch] = [
        (np.random, name, _replace_by(draw))
        for name, draw in _list_traced_legacy_draws()
        if hasattr(np.random, name)
    ]
    patches += [
        (np.random, "default_rng", _replace_default_generator),
        (np.random, "RandomState", _replace_legacy_class),
        (np.random, "seed", _replace_seeding),
        (np.random.mtrand, "_rand", _replace_global_random_state),
        (random, "seed", _replace_seeding),
        (json.JSONEncoder, "default", _make_json_default),
    ]
    patches += [(random, name, _replace_by(draw)) for name, draw in _PYTHON.items()]
    patches += [
        (os, "urandom", _entropy_call_recorder_maker("os.urandom")),
        (random, "_urandom", _entropy_call_recorder_maker("secrets or random.SystemRandom")),
        (random.Random, "seed", _record_seeding_from_entropy),
        (subprocess.Popen, "__init__", _entropy_call_recorder_maker("another process")),
    ]
    if "fork" in vars(os):
        patches.append((os, "fork", _entropy_call_recorder_maker("another process")))
    patches += [
        (random, name, _replace_by(_make_fixed_python_draw(name))) for name in _PYTHON_FIXED
    ]
    for hook in HOOKS:
        patches += hook(get_active_run)
    return patches


_LOCK: Final = threading.RLock()
_INSTALLED: Final[list[ExitStack]] = []
_TRACES: Final[list[int]] = []


def _install_patches() -> ExitStack:
    stack = ExitStack()
    try:
        for owner, name, replace in list_patches():
            is_own = name in vars(owner)
            original = getattr(owner, name)
            setattr(owner, name, replace(original))
            if is_own:
                stack.callback(setattr, owner, name, original)
            else:
                stack.callback(delattr, owner, name)
    except BaseException:
        stack.close()
        raise
    return stack


@contextmanager
def use_original_random_functions() -> Iterator[None]:
    """In a `with` block during a trace, use the original random functions again.

    The functions are not restored if another thread also runs a trace.
    """
    with _LOCK:
        is_only = len(_TRACES) == 1 and bool(_INSTALLED)
        if is_only:
            _INSTALLED.pop().close()
    try:
        yield
    finally:
        with _LOCK:
            if is_only:
                _INSTALLED.append(_install_patches())


@contextmanager
def patch_random_functions() -> Iterator[None]:
    """While the `with` block runs, replace all functions that draw noise by traced functions.

    If several threads trace at the same time, they use the same replacements.
    """
    with _LOCK:
        _TRACES.append(0)
        if len(_TRACES) == 1:
            try:
                _INSTALLED.append(_install_patches())
            except BaseException:
                _TRACES.pop()
                raise
    try:
        yield
    finally:
        with _LOCK:
            _TRACES.pop()
            if not _TRACES:
                _INSTALLED.pop().close()
