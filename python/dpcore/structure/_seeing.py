"""Outputs that an inspection looks at: those of a noise layer from several calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..adapters import TorchModule, adapt
from ..errors import invalid, mistyped, numeric
from ..mechanisms.callables import call_mechanism, make_generator, mechanism_of, name_of
from ..mechanisms.native import Native, law_of
from ..published import is_native
from ..streams import SAMPLE
from ._ranks import Floats

_NUMBERS_PER_CALL = 2**20
_MIN_USUAL_DRAWS, _MAX_USUAL_DRAWS = 1536, 2**18
_MIN_INSPECTED_DRAWS = 200
_COMPARISON_DRAWS = 2**14
"""Draws at inputs, and in a mode, that serve for comparison only."""

Clean = Callable[[Any], npt.ArrayLike] | npt.ArrayLike | bool | None


@dataclass(frozen=True)
class Other:
    """Outputs at another input.

    Args:
        label: what sentences call the input.
        outputs: shape `(size, dim)`.
        clean: the vector that the noise is added to, or None if it is not known.
    """

    label: str
    outputs: Floats
    clean: Floats | None


@dataclass(frozen=True)
class Mode:
    """Outputs of a layer in the mode that it is not in.

    Args:
        here: "train" or "eval": the mode that the layer is in.
        there: the other one.
        outputs: outputs there, or None if it could not be run.
        why: then, the reason.
    """

    here: str
    there: str
    outputs: Floats | None
    why: str = ""


@dataclass(frozen=True)
class Seen:
    """All outputs, and what is computed from them more than once.

    Args:
        first: outputs of one call, shape `(draws, dim)`.
        second: outputs of another call.
        clean: the vector that the noise is added to, or None if it is not known.
        precision: distance from 1 to the next number in the type of the outputs.
        others: outputs at other inputs.
        refused: labels of inputs, invented here, that the mechanism did not take, and why.
        mode: the other mode of a layer that has two.
        rng: breaks ties and chooses coordinates.
        around: what `clean` is, in words, where it is not the user's input or vector.
    """

    first: Floats
    second: Floats
    clean: Floats | None
    precision: float
    others: tuple[Other, ...]
    refused: tuple[str, ...]
    mode: Mode | None
    rng: np.random.Generator = field(repr=False)
    around: str = ""

    @cached_property
    def varying(self) -> npt.NDArray[np.intp]:
        """Coordinates that take more than one value within the first call."""
        return np.flatnonzero((self.first != self.first[0]).any(axis=0))

    @cached_property
    def noise(self) -> Floats:
        """Outputs of the first call minus the clean vector, or minus their medians."""
        if self.clean is not None:
            return self.first - self.clean
        return self.first - np.median(self.first, axis=0)

    @cached_property
    def spread(self) -> Floats:
        """Half the distance between the quartiles of every coordinate, never 0 if it varies."""
        low, high = np.quantile(self.first, [0.25, 0.75], axis=0)
        half: Floats = (high - low) / 2
        return np.where(half > 0, half, self.first.std(axis=0))

    @property
    def step(self) -> Floats:
        """Distance between neighbouring floats at the largest output of every coordinate."""
        largest: Floats = np.abs(self.first).max(axis=0)
        return self.precision * largest

    def noises(self) -> list[Floats]:
        """Return the noise at inputs with a known clean vector; the first input comes first."""
        cleaned = [o.outputs - o.clean for o in self.others if o.clean is not None]
        return [] if self.clean is None else [self.first - self.clean, *cleaned]


def usual_draws(dim: int) -> int:
    """Return the default draws of a call: a million numbers, 1,536 draws at least."""
    return min(_MAX_USUAL_DRAWS, max(_MIN_USUAL_DRAWS, _NUMBERS_PER_CALL // dim))


class Layer:
    """A mechanism to be called as it is, on inputs of one kind.

    Args:
        mechanism: whatever the user gave.
        seed: of all draws.
        clean: see `inspect`.
    """

    def __init__(self, mechanism: Any, seed: int, clean: Clean) -> None:
        """Find the adapter."""
        found = mechanism if is_native(mechanism) else adapt(mechanism)
        requirement = "a native mechanism, a callable (x, size, rng) or an adapted object"
        self.mechanism = mechanism_of(mechanism if found is None else found, requirement)
        self.name = repr(mechanism) if is_native(mechanism) else name_of(self.mechanism)
        self.seed = seed
        self._clean = clean
        self.guessed = clean is None and not is_native(mechanism)
        self._calls = 0
        self._kind: np.dtype[Any] | None = None
        self._shape: tuple[int, ...] | None = None

    @property
    def inner(self) -> Any:
        """The object that may have a train and an eval mode."""
        return self.mechanism.module if isinstance(self.mechanism, TorchModule) else self.mechanism

    @property
    def precision(self) -> float:
        """Distance from 1 to the next number in the type of the outputs seen last."""
        kind = self._kind
        return float(np.finfo(kind).eps) if kind is not None and kind.kind == "f" else 2.0**-52

    def draw(self, x: Any, size: int) -> Floats:
        """Draw outputs of one call with a separate generator, shape `(size, dim)`."""
        rng = make_generator(self.seed, SAMPLE, 0, self._calls)
        self._calls += 1
        outputs = call_mechanism(self.mechanism, x, size, rng)
        name = f"outputs of {self.name}"
        if outputs.dtype.kind not in "buif":
            raise mistyped(name, "real numbers", outputs.dtype)
        if self._shape not in (None, outputs.shape[1:]) or outputs[:1].size == 0:
            wanted = "at least one number" if self._shape is None else f"shape {self._shape}"
            raise invalid(name, f"rows of {wanted} in every call", outputs.shape)
        rows = outputs.reshape(size, -1).astype(np.float64)
        finite = np.isfinite(rows)
        if not finite.all():
            shown = f"{rows.size - int(finite.sum()):,} of {rows.size:,} that are NaN or infinite"
            raise invalid(name, "finite numbers", shown)
        self._kind, self._shape = outputs.dtype, outputs.shape[1:]
        return rows

    def clean(self, x: Any, here: bool) -> Floats | None:
        """Return the vector to which the noise is added at x, rounded as the outputs are.

        Args:
            x: the input.
            here: True at the user's own input, which is all that a vector speaks of.
        """
        given = self._clean
        if given is False:
            return None
        if callable(given):
            given = given(x)
        elif given is None:
            given = _known_input(self.mechanism, x)
        elif not here:
            return None
        vector = as_finite_array("clean", given)
        if self._shape is not None and vector.size != int(np.prod(self._shape, dtype=np.int64)):
            if self._clean is None:
                return None
            requirement = f"as many numbers as one output, of shape {self._shape}"
            raise invalid("clean", requirement, vector.shape)
        vector = vector.reshape(-1)
        if self._kind is not None and self._kind.kind == "f":
            vector = vector.astype(self._kind)
        return vector.astype(np.float64)


def _known_input(mechanism: Any, x: Any) -> Any:
    """Return the vector to which dpcore's own mechanisms add their noise; otherwise x."""
    if not isinstance(mechanism, Native) or not is_native(mechanism):
        return x
    from .. import _core

    point = as_finite_array("x", x).astype(np.float64)
    steps = mechanism.steps(point.size)
    if law_of(steps.noise).blind:
        return []
    held = point if steps.clip is None else _core.clip(point, steps.clip.norm, steps.clip.radius)
    return held * steps.factor


def as_finite_array(name: str, value: Any) -> npt.NDArray[Any]:
    """Return real, finite numbers of a list, an array or a tensor as an array."""
    detached = value.detach().cpu() if hasattr(value, "detach") else value
    array = numeric(name, "an array of finite numbers", detached)
    if not np.isfinite(array).all():
        raise invalid(name, "an array of finite numbers", value)
    return array


def collect_outputs(
    layer: Layer,
    x: Any,
    draws: int | None,
    others: Sequence[Any] | None,
    skip: Sequence[str],
) -> Seen:
    """Make all calls."""
    point = x if hasattr(x, "detach") else as_finite_array("x", x)
    if as_finite_array("x", x).size == 0:
        raise invalid("x", "a non-empty array of finite numbers", x)
    size = draws
    if size is None:
        # The outputs, not the input, say how many numbers a draw has.
        size = usual_draws(layer.draw(point, _MIN_INSPECTED_DRAWS).shape[1])
    first, second = layer.draw(point, size), layer.draw(point, size)
    precision = layer.precision
    clean = layer.clean(point, True)
    aside = min(size, _COMPARISON_DRAWS)
    needed = {"scale", "one_sided", "atom", "off_centre"} - set(skip)
    there, refused = _collect_elsewhere(layer, point, first, aside, others) if needed else ((), ())
    mode = None if "modes" in skip else _other_mode(layer, point, aside)
    # The calls of the layer count up from 0: this one is free.
    rng = make_generator(layer.seed, SAMPLE, 1, 0)
    return Seen(first, second, clean, precision, there, refused, mode, rng)


def _collect_elsewhere(
    layer: Layer, x: Any, first: Floats, size: int, given: Sequence[Any] | None
) -> tuple[tuple[Other, ...], tuple[str, ...]]:
    """Collect outputs at the user's other inputs, or at some that are made from x."""
    if given is not None:
        labels = [f"others[{place}]" for place in range(len(given))]
        inputs = [p if hasattr(p, "detach") else as_finite_array("others", p) for p in given]
        return tuple(_collect_at(layer, *one, size) for one in zip(labels, inputs, strict=True)), ()
    far = _choose_far_shift(x, first)
    made = {"2 x": 2 * x, "0": 0 * x, f"x + {far:.3g}": x + far, f"x - {far:.3g}": x - far}
    found, refused = [], []
    for label, point in made.items():
        if np.array_equal(as_finite_array("x", point), as_finite_array("x", x)):
            continue
        try:
            found.append(_collect_at(layer, label, point, size))
        except Exception as error:
            # Nobody said that the mechanism takes this input.
            refused.append(f"{label} ({type(error).__name__})")
    return tuple(found), tuple(refused)


def _collect_at(layer: Layer, label: str, x: Any, size: int) -> Other:
    return Other(label, layer.draw(x, size), layer.clean(x, False))


def _choose_far_shift(x: Any, first: Floats) -> float:
    """Choose a shift of ten noise sizes, a whole number for whole inputs."""
    noise = np.abs(first - np.median(first, axis=0)).mean()
    far = float(10 * noise) or 1.0
    whole = as_finite_array("x", x).dtype.kind in "bui"
    return int(np.ceil(far)) if whole else far


def _other_mode(layer: Layer, x: Any, size: int) -> Mode | None:
    inner = layer.inner
    parts = ("train", "eval")
    if not (
        all(callable(getattr(inner, part, None)) for part in parts)
        and isinstance(getattr(inner, "training", None), bool)
    ):
        return None
    here, there = ("train", "eval") if inner.training else ("eval", "train")
    layers = list(inner.modules()) if callable(getattr(inner, "modules", None)) else [inner]
    modes = [one.training for one in layers]
    shape, kind = layer._shape, layer._kind
    layer._shape = None
    try:
        getattr(inner, there)()
        outputs = layer.draw(x, size)
    except Exception as error:
        return Mode(here, there, None, f"{type(error).__name__}: {error}")
    finally:
        # Parts of a layer may be frozen in a mode of their own.
        for one, mode in zip(layers, modes, strict=True):
            one.training = mode
        layer._shape, layer._kind = shape, kind
    return Mode(here, there, outputs)
