"""One run of a traced function: recorded on x, replayed on x', or plain with ordinary numbers.

A traced number is a number that stores which noise it contains. A recorded run on x stores its
noise. It also stores the result each time that the code reads, compares or returns a traced number.
A replay on x' takes the same noise and uses the stored results of x. Therefore the runs on x and x'
take the same branches. A plain run has ordinary numbers; its noise is the stored noise plus a
change (a move).
"""

from __future__ import annotations

import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ..records import Floats
from .forms import NoisyValue, read_plain
from .places import Place, find_place

Array = npt.NDArray[Any]
Mode = Literal["record", "replay", "plain"]
EarlyReading = Literal["", "arrays", "all"]
"""When a run reads a number with data and noise before the number is multiplied: never, if the
factor is an array, or always."""
Kind = Literal["two-sided", "upwards", "gaussian"]

_MIN_DRAW_LIMIT: Final = 1_000
_DRAW_LIMIT_FACTOR: Final = 10
"""The run on x' may draw this many times as often as the run on x, plus _MIN_DRAW_LIMIT times."""

_ORDINALS: Final = (
    "", "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth",
    "tenth",
)  # fmt: skip

_PARAMETER_TOLERANCE: Final = 1e-12
"""Relative difference of two parameters or coefficients that rounding can explain."""

_NO_PLACE: Final = Place("?", 0, "?")


class _ThreadState(threading.local):
    """State of a thread: its run, and whether a call with a known privacy loss is being made."""

    run: TracedRun | None = None
    is_inside_step: bool = False


_ACTIVE: Final = _ThreadState()


class PartedRuns(BaseException):
    """Error: a run takes a different branch of the code from the run whose noise it reuses.

    The class is not a subclass of `Exception`. Therefore ``except Exception`` in the traced
    function does not catch this error.
    """


class EndlessRun(PartedRuns):
    """Error: the run on x' draws random numbers far more often than the run on x."""


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """A distribution of additive noise, and the privacy cost of a change of the noise.

    Args:
        name: name of the distribution in reports.
        kind: "two-sided" if a change of the noise by s costs abs(s) divided by the scale. "upwards"
            if the cost is the same, but the noise can only be made larger. "gaussian" for Gaussian
            noise.
        parameter: name of the parameter of the distribution in reports, such as "scale".
        whole: True if the noise consists of integers.
    """

    name: str
    kind: Kind
    parameter: str = "scale"
    whole: bool = False


@dataclass(slots=True)
class NoiseDraw:
    """The noise that one call of a random function drew, with distribution and parameters."""

    place: Place
    law: NoiseLaw
    parameter: Array
    scale: Array
    shape: tuple[int, ...]
    start: int
    noise: Array


@dataclass(slots=True)
class NoiseUse:
    """Record of one use of a noisy number: the traced code read, compared or returned it.

    The field `result` holds the value that the code received.
    """

    place: Place
    op: str
    number: NoisyValue
    result: Any
    sense: Any = None
    path: str = ""
    twin: NoiseUse | None = None
    form: tuple[Array, Array, Array] = field(init=False)
    meeting: Place = field(init=False)

    def find_addition(self, entry: int) -> Place:
        """Return the place in the code at which the noise was added to one entry of the number."""
        places = self.number.entry_meetings
        return (places[entry] if places else None) or self.meeting

    def __post_init__(self) -> None:
        self.form = self.number.form
        self.meeting = self.number.meeting or self.place
        self.result = self.result.copy() if isinstance(self.result, np.ndarray) else self.result


@dataclass(slots=True)
class PrimitiveStep:
    """Record of one call whose privacy loss is given by a formula: inputs, output and loss."""

    place: Place
    name: str
    inputs: Any
    output: Any
    loss: float = 0.0
    distance: float = 0.0
    declared: float | None = None
    shown_loss: float = 0.0
    settings: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunParting:
    """Record of a place in the code at which the runs on x and x' differ, with an explanation."""

    kind: str
    place: Place
    text: str
    first: int = 0
    last: int = 0
    """Numbers of the draws concerned: from `first` up to, but not including, `last`."""


def get_active_run() -> TracedRun | None:
    """Return the record of the run that is traced in this thread, or None if no run is traced."""
    run: TracedRun | None = vars(_ACTIVE).get("run")
    return run


@contextmanager
def activate_run(run: TracedRun | None) -> Iterator[None]:
    """Trace the given run in this thread during a `with` block. If `run` is None, trace no run."""
    before = get_active_run()
    _ACTIVE.run = run
    try:
        yield
    finally:
        _ACTIVE.run = before


@contextmanager
def _pause_trace() -> Iterator[None]:
    """Draw without a trace in a `with` block, which makes a call with a known privacy loss."""
    with activate_run(None):
        _ACTIVE.is_inside_step = True
        try:
            yield
        finally:
            _ACTIVE.is_inside_step = False


def is_inside_primitive() -> bool:
    """Return True if this thread is now inside a call whose privacy loss is given by a formula."""
    return _ACTIVE.is_inside_step


def differ_much(first: Any, second: Any, tolerance: float = _PARAMETER_TOLERANCE) -> bool:
    """Return True if two arrays have different shapes, or differ by more than rounding errors."""
    own, other = np.asarray(first), np.asarray(second)
    if own.shape != other.shape:
        return True
    if np.array_equal(own, other):
        return False
    if own.dtype.kind not in "biuf" or other.dtype.kind not in "biuf":
        return True
    return not np.allclose(own, other, rtol=tolerance, atol=0.0, equal_nan=True)


class TracedRun:
    """Record of one run of a traced function: the noise of the run, and each use of this noise.

    Args:
        mode: "record" for the run on x, in which numbers store the noise that they contain.
            "replay" for the run on x', in which each use of noise returns the result that was
            recorded on x. "plain" for a run with ordinary numbers.
        seed: integers that form the seed of the noise. Runs with the same noise have the same seed.
        serial: number of the run, used as a seed for random numbers that are different in each run.
        reference: record of the run on x whose noise this run uses again. None means new noise.
        move: change of the noise of `reference`, one number for each random value. None means no
            change.
    """

    def __init__(
        self,
        mode: Mode,
        seed: tuple[int, ...],
        serial: int,
        reference: TracedRun | None = None,
        move: Floats | None = None,
    ) -> None:
        self.mode, self.seed, self.serial = mode, seed, serial
        self.reference, self.move = reference, move
        self.draws: list[NoiseDraw] = []
        self.uses: list[NoiseUse] = []
        self.steps: list[PrimitiveStep] = []
        self.partings: list[RunParting] = []
        self.products: dict[Place, list[tuple[str, Any]]] = defaultdict(list)
        self.fixed: dict[tuple[Place, str], int] = defaultdict(int)
        self.issued_seeds: set[int] = set()
        self.other_outputs: dict[int, Any] = {}
        self.reads_sources: EarlyReading = ""
        self.stress: np.random.Generator | None = None
        self.limit: int | None = reference.calls if reference else None
        self.split = False
        self.has_own_seed = False
        self.tensors: Any = None
        self.size = 0
        self.calls: int = 0
        self.base = np.random.Generator(np.random.PCG64([*seed, 1 if reference else 0]))

    # Draws.

    def draw(
        self,
        law: NoiseLaw,
        loc: Any,
        parameter: Any,
        scale: Any,
        shape: tuple[int, ...],
        sample: Callable[[np.random.Generator], Any],
    ) -> Any:
        """Draw noise, add it to `loc`, and record the draw.

        Args:
            law: distribution of the noise.
            loc: value to which the noise is added. This value may already contain noise.
            parameter: parameter of the distribution, as the traced code passed it.
            scale: a change of the noise by this amount has the privacy cost 1.
            shape: shape of the noise. It is () for a single number.
            sample: function that draws noise around 0 with a given random generator.

        Returns:
            The sum of `loc` and the noise. The sum is a traced number, which stores the noise that
            it contains. In a run with ordinary numbers, the sum is an ordinary number.
        """
        number = len(self.draws)
        place = _NO_PLACE if self.mode == "plain" else find_place()
        self.count_draw()
        parameter, scale = read_plain(parameter, "parameter"), read_plain(scale, "parameter")
        reference = self._match_draw(law, shape, parameter, place, number)
        is_matched = reference is not None
        noise = reference.noise if reference is not None else np.asarray(sample(self.base))
        start = reference.start if reference is not None else self._first_index_of_next_draw()
        scales = np.asarray(scale, float)
        draw = NoiseDraw(place, law, np.asarray(parameter), scales, shape, start, noise)
        self.draws.append(draw)
        self.size = max(self.size, start + noise.size)
        if self.mode == "plain":
            if self.stress is not None:
                noise = self._make_extreme_noise(noise, law)
            if is_matched and self.move is not None:
                noise = noise + self._get_move(draw)
            return _unwrap_scalar(np.asarray(noise if _is_zero(loc) else np.add(loc, noise)), shape)
        # A scale of 0 is no noise.
        ids = np.arange(start, start + noise.size).reshape(1, *shape)
        if scales.all():
            weights = np.broadcast_to(1.0, ids.shape) if shape else np.ones(1)
        else:
            weights = np.broadcast_to(np.where(scales == 0, 0.0, 1.0), shape)[None]
        traced = NoisyValue(self, noise, np.zeros(shape, noise.dtype), ids, weights, None)
        return traced if _is_zero(loc) else traced + loc

    def _make_extreme_noise(self, noise: Array, law: NoiseLaw) -> Array:
        """Return noise of sizes that rarely occur: noise times random powers of ten."""
        assert self.stress is not None
        factors = 10.0 ** self.stress.integers(-3, 7, noise.shape)
        if law.kind != "upwards":
            factors = factors * self.stress.choice([-1.0, 1.0], noise.shape)
        return np.asarray(
            np.rint(noise * factors).astype(noise.dtype) if law.whole else noise * factors
        )

    def _first_index_of_next_draw(self) -> int:
        reference = self.reference.size if self.reference else 0
        return max(self.size, reference)

    def _get_move(self, draw: NoiseDraw) -> Array:
        move = self.move[draw.start : draw.start + draw.noise.size].reshape(draw.shape)  # type: ignore[index]
        return np.rint(move).astype(draw.noise.dtype) if draw.law.whole else move

    def _match_draw(
        self, law: NoiseLaw, shape: tuple[int, ...], parameter: Any, place: Place, number: int
    ) -> NoiseDraw | None:
        """Return the draw of the run on x that this draw repeats; record differences."""
        if self.reference is None:
            return None
        start, size = self._first_index_of_next_draw(), int(np.prod(shape))
        if number >= len(self.reference.draws):
            times = sum(draw.law is law for draw in self.draws) + 1
            text = f"x' draws {law.name} {format_nth_time(times)}, x does not"
            self._record_parting("control flow", place, text, start, start + size)
            return None
        twin = self.reference.draws[number]
        if twin.law is not law:
            text = f"x draws {twin.law.name}, x' draws {law.name}"
            self._record_parting("control flow", place, text, start, start + size)
            return None
        if twin.shape != shape:
            counts = int(np.prod(twin.shape)), size
            text = f"{law.name} draws {counts[0]:,} values on x and {counts[1]:,} on x'"
            self._record_parting("control flow", place, text, start, start + size)
            return None
        if differ_much(twin.parameter, parameter):
            values = f"{value_text(twin.parameter)} on x and {value_text(parameter)} on x'"
            text = f"the {law.parameter} of {law.name} is {values}"
            self._record_parting("data in a law", place, text, twin.start, twin.start + size)
        return twin

    def _record_parting(
        self, kind: str, place: Place, text: str, first: int = 0, last: int = 0
    ) -> None:
        place = find_place() if place is _NO_PLACE else place
        self.partings.append(RunParting(kind, place, text, first, last))
        if self.mode == "plain" and kind == "control flow":
            raise PartedRuns(f"{place.short}: {text}")

    def count_draw(self) -> None:
        """Count one more call of a random generator in this run.

        Raise `EndlessRun` if this run makes far more calls than the run on x.
        """
        self.calls += 1
        if (
            self.limit is not None
            and self.calls > _DRAW_LIMIT_FACTOR * self.limit + _MIN_DRAW_LIMIT
        ):
            text = f"x' draws more than {self.calls - 1:,} times, x {self.limit:,} times"
            raise EndlessRun(text)

    def fix(self, name: str, call: Callable[[np.random.Generator], Any]) -> Any:
        """Draw random numbers that the trace does not treat as noise, such as a permutation.

        Runs with the same noise get the same numbers. `name` is the name of the random function,
        and `call` draws the numbers with a given random generator.
        """
        place = find_place()
        self.count_draw()
        key = place, name
        self.fixed[key] += 1
        word = zlib.crc32(f"{place}/{name}/{self.fixed[key]}".encode())
        generator = np.random.Generator(np.random.PCG64([*self.seed, 2, word]))
        return call(generator)

    # Uses.

    def record_use(self, op: str, number: NoisyValue, result: Any, sense: Any = None) -> Any:
        """Record that the code reads, compares or returns a traced number, and return the result.

        If a run reuses the noise of the run on x, the method returns the result that was recorded
        on x. Otherwise the method returns `result`.
        """
        path = op if op.startswith("output") else ""
        place = Place(op, 0, "") if path else find_place()
        use = NoiseUse(place, op, number, result, sense, path)
        count = len(self.uses)
        self.uses.append(use)
        if self.reference is None or self.split:
            return result
        twins = self.reference.uses
        twin = twins[count] if count < len(twins) else None
        is_twin = twin is not None and twin.form[0].shape == use.form[0].shape
        if not is_twin or (twin.sense is None) != (sense is None) or twin.path != path:  # type: ignore[union-attr]
            self.split = True
            what = "returns" if path else "uses"
            text = f"x' {what} a noisy value where x does not"
            self._record_parting("uses", place, text)
            return result
        use.twin = twin
        kept = twin.result  # type: ignore[union-attr]
        return kept.copy() if isinstance(kept, np.ndarray) else kept

    def record_product(self, how: str, factor: Array) -> None:
        """Record the factor by which the code multiplied or divided a number with noise."""
        self.products[find_place()].append((how, factor))

    def has_integer_noise(self, ids: Array, weights: Array) -> bool:
        """Return True if a number contains only integer noise, with integer coefficients.

        `ids` holds the indices of the random values in the number, and `weights` their
        coefficients.
        """
        used = ids[weights != 0]
        if not used.size or np.any(weights % 1):
            return False
        # Draws are in the order of their numbers.
        starts = np.array([draw.start for draw in self.draws])
        wholes = np.array([draw.law.whole for draw in self.draws])
        return bool(wholes[np.searchsorted(starts, used, "right") - 1].all())

    # Primitives.

    def record_noisy_call(
        self,
        name: str,
        inputs: Any,
        call: Callable[[], Any],
        find_loss: Callable[[Any, Any], tuple[float, float]],
        declared: float | None = None,
        find_shown_loss: Callable[[Any, Any, Any], float] | None = None,
        settings: Mapping[str, float] | None = None,
    ) -> Any:
        """Make a noisy call, and record the call as one step with a formula for its privacy loss.

        Args:
            name: name of the step in reports.
            inputs: values on which the distribution of the output depends.
            call: function without arguments that computes the output.
            find_loss: the formula, a function of the inputs in the runs on x and x'. The formula
                returns the pair (distance of these inputs, privacy loss).
            declared: the formula holds only if the distance of the inputs is at most this number.
                None allows any distance.
            find_shown_loss: function of the inputs on x, the inputs on x' and the output. It
                returns the privacy loss of this output. None means that all outputs have the same
                loss.
            settings: parameters of the step by name. Each parameter must be equal on x and x'.

        Returns:
            The output of the call. If a run reuses the noise of the run on x, the method returns
            the output that was recorded on x.
        """
        place, number = find_place(), len(self.steps)
        self.count_draw()
        inputs = read_plain(inputs, name)
        if self.reference is None:
            with _pause_trace():
                output = call()
            self.steps.append(PrimitiveStep(place, name, inputs, output, settings=settings or {}))
            return output
        twins = self.reference.steps
        if number >= len(twins) or twins[number].name != name:
            other = f"x calls {twins[number].name}" if number < len(twins) else "x does not"
            self._record_parting("control flow", place, f"x' calls {name}, {other}")
            with _pause_trace():
                output = call()
            self.steps.append(PrimitiveStep(place, name, inputs, output))
            return output
        twin = twins[number]
        step = PrimitiveStep(place, name, inputs, twin.output, declared=declared)
        self.steps.append(step)
        for key, setting in (settings or {}).items():
            if differ_much(twin.settings.get(key, setting), setting):
                values = f"{value_text(twin.settings[key])} on x and {value_text(setting)} on x'"
                self._record_parting("data in a law", place, f"the {key} of {name} is {values}")
        if self.mode == "replay":
            step.distance, step.loss = find_loss(twin.inputs, inputs)
            step.shown_loss = step.loss
            if find_shown_loss is not None:
                step.shown_loss = find_shown_loss(twin.inputs, inputs, twin.output)
        return self.other_outputs.get(number, twin.output)


def _is_zero(value: Any) -> bool:
    return isinstance(value, int | float) and value == 0


def _unwrap_scalar(value: Array, shape: tuple[int, ...]) -> Any:
    return value if shape else value.item()


def format_nth_time(number: int) -> str:
    """Return an ordinal number in words for a message, such as "a third time" for 3."""
    word = _ORDINALS[number] if number < len(_ORDINALS) else f"{number:,}th"
    return f"{'an' if word.startswith('e') else 'a'} {word} time"


def value_text(value: Any) -> str:
    """Return a value as short text for a message: numbers have six digits, long arrays are cut."""
    array = np.asarray(value)
    if array.ndim == 0 and array.dtype.kind in "iu":
        return str(array.item())
    if array.ndim == 0 and array.dtype.kind == "f":
        number = array.item()
        return "NaN" if number != number else f"{number:.6g}"
    if array.dtype.kind in "biuf":
        text = np.array2string(array, precision=4, threshold=6, edgeitems=2)
        return " ".join(text.split())
    return repr(value)[:60]
