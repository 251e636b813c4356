"""Sources of the outputs of an audit: the compiled core, a Python callable, or timed calls.

A source draws the outputs of a range of trials on x and on x'. The outputs are determined by the
seed, the block length, the purpose of the draws, and the first and the last trial. They do not
depend on threads, on executors, or on how the range is divided. A Python callable is called once
per block and input, with a new generator for each call.

Some effects change from call to call, such as a warm-up or a cache. These effects must not look
like a difference between x and x'. Therefore, in each block, the call on x and the call on x' are
made one directly after the other, and the seed decides which call is first.

For timed calls, a row has the numbers of one output, followed by the latency (duration of the call)
in nanoseconds. If an output is not an array of numbers, the row has two objects: the output and the
latency.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, cast

import numpy as np
import numpy.typing as npt
from numpy.random import Generator

from .. import _core
from ..errors import count, invalid, mistyped, vector
from ..events.event import Batch
from ..mechanisms.answers import (
    copy_answer,
    join_outputs,
    rows_to_objects,
    to_object_array,
    to_outputs,
)
from ..mechanisms.callables import (
    Repeated,
    call_tensor_mechanism,
    is_unbatched,
    make_generator,
    makes_tensors,
    note_failing_input,
    rows_of_one_call,
    torch_threads,
)
from ..mechanisms.declarations import can_core_draw, convert_pair
from ..mechanisms.native import Native, describe_natively, fill_outputs
from ..progress import Progress
from ..records import Array, Flags, Floats, Ints, Pair
from ..report.shown import name_of
from ..streams import Rng, seeded_globals
from ..suggestions import explain_argument_errors

Call = Callable[[Any], Any]
"""Function that is called once per output, `input -> output`."""
Clock = Callable[[], int]
"""Clock that returns the current time in nanoseconds."""
_NUMBERS_PER_CHUNK: Final = 2**20
"""Number of values of counted calls that are processed together."""

_GLOBALS_STREAM: Final = 1
"""Last number in the name of a random stream that seeds global generators."""

_FAILURES_STREAM: Final = 3
"""Last but one number in the name of a random stream that is used to find the input that fails."""
_ORDER_STREAM: Final = 2
"""Number used in place of the side, for the random stream that draws which side is first."""
_ANSWERS_PER_TURN: Final = 8
"""Outputs of a turn. If the distribution changes within a turn, one side gets at most 8 outputs
more than the other, and 8 hits against 0 refute no claim at 95 % confidence."""
_PIECES_PER_BLOCK: Final = 16
"""Pieces of a block, each of at least `_MIN_PIECE_ROWS` rows. At worst, 1/16 of a drift from piece
to piece then appears as a difference between the sides."""
_MIN_PIECE_ROWS: Final = 64

_MIN_CALL_SIZE_RATIO: Final = 8
"""Two calls show the time of one output if their numbers of outputs have at least this ratio."""


class Timed(NamedTuple):
    """Outputs of single calls of a function on x or x', and the durations (latencies) of the calls.

    Args:
        sides: True for each call on x, False for each call on x', shape `(calls,)`.
        latencies: durations of the calls in nanoseconds, shape `(calls,)`.
        outputs: outputs of the calls, in the order of the calls.
    """

    sides: Flags
    latencies: Ints
    outputs: list[Any]

    def to_output_latency_rows(self, like: Array | None = None) -> Array:
        """Return an array with a row for each call: its output, and its duration (latency).

        Args:
            like: rows of the pilot (the first calls of an audit). The result gets the form of these
                rows. With None, the outputs determine the form.

        Returns:
            If outputs are numbers or arrays of numbers: rows of shape `(calls, entries + 1)`. A row
            has the entries of the output, and then the latency in nanoseconds. For any other
            outputs: objects of shape `(calls, 2)`. A row has the output and the latency.
        """
        return timed_to_rows(self.outputs, self.latencies, like)

    def select_calls(self, is_selected: Flags) -> Timed:
        """Return outputs and latencies only of the calls for which `is_selected` is True."""
        outputs = [self.outputs[i] for i in np.flatnonzero(is_selected)]
        return Timed(self.sides[is_selected], self.latencies[is_selected], outputs)

    def split_for_memory(self, numbers_per_call: int) -> Iterator[Timed]:
        """Split the calls into consecutive parts, and yield each part.

        A part has at most about a million numbers.

        Args:
            numbers_per_call: how many numbers each call contributes.
        """
        step = max(1, _NUMBERS_PER_CHUNK // numbers_per_call)
        for first in range(0, len(self.outputs), step):
            part = slice(first, first + step)
            yield Timed(self.sides[part], self.latencies[part], self.outputs[part])


def time_calls(
    call: Call, pair: Pair, calls: int, rng: Generator, clock: Clock = time.perf_counter_ns
) -> Timed:
    """Call a function many times on x or x', and measure the duration of each call.

    A fair coin decides for each call whether the input is x or x'.

    The calls are made one after another in one thread. All random choices are made before the first
    call. The garbage collector is off during all calls. Each output is copied before the next call,
    because the function may return the same buffer in every call.

    Args:
        call: function `input -> output`, which is called once per output.
        pair: the two inputs.
        calls: total number of calls on x and x'.
        rng: generator that chooses x or x' for each call. It is not passed to the function `call`.
        clock: function without arguments that returns the time in whole nanoseconds.

    Returns:
        A record with three fields, each in the order of the calls: `sides` (True for a call on x),
        `latencies` (durations in nanoseconds) and `outputs`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `calls` is not a whole number of at least 1.

    Example:
        >>> ticks = iter(range(0, 1000, 5))
        >>> timed = time_calls(abs, Pair(-1, 1), 3, np.random.default_rng(1), ticks.__next__)
        >>> timed.latencies.tolist(), timed.outputs
        ([5, 5, 5], [1, 1, 1])
    """
    if not callable(call):
        raise mistyped("call", "a callable input -> output", call)
    if not isinstance(rng, Generator):
        raise mistyped("rng", "a numpy Generator", rng)
    size = count("calls", calls)
    sides = rng.random(size) < 0.5
    ends = (pair.x_prime, pair.x)
    inputs = [ends[side] for side in sides.tolist()]
    starts, stops, outputs = [0] * size, [0] * size, [None] * size
    collecting = gc.isenabled()
    gc.disable()
    try:
        for i, value in enumerate(inputs):
            starts[i] = clock()
            output = call(value)
            stops[i] = clock()
            outputs[i] = copy_answer(output)
    finally:
        if collecting:
            gc.enable()
    ticks = np.array([starts, stops])
    if ticks.dtype.kind not in "iu":
        # A clock in seconds would show every latency as 0.
        raise mistyped("clock", "a function that returns whole nanoseconds", stops[0])
    return Timed(sides, np.diff(ticks.astype(np.int64), axis=0)[0], outputs)


def timed_to_rows(outputs: Sequence[Any], latencies: Ints, like: Array | None) -> Array:
    """Return an array with a row for each timed call: its output, and its duration (latency).

    Args:
        outputs: outputs of the calls, in order.
        latencies: durations of the calls in nanoseconds, shape `(calls,)`.
        like: rows of the pilot (the first calls of an audit). The result gets the form of these
            rows. With None, the outputs determine the form.

    Returns:
        If outputs are numbers or arrays of numbers: rows of shape `(calls, entries + 1)`. A row has
        the entries of the output, and then the latency. For any other outputs: objects of shape
        `(calls, 2)`. If `like` contains numbers, an output of another form is replaced by NaN.
    """
    if like is None or like.dtype != object:
        numbers = _outputs_to_numbers(outputs, None if like is None else like.shape[1] - 1)
        if numbers is not None:
            return np.column_stack([numbers, latencies.astype(np.float64)])
    rows = np.empty((len(outputs), 2), dtype=object)
    rows[:, 0] = np.fromiter(map(_as_comparable, outputs), dtype=object, count=len(outputs))
    rows[:, 1] = latencies
    return rows


def _outputs_to_numbers(outputs: Sequence[Any], width: int | None) -> Floats | None:
    """Return outputs as rows of numbers. Without `width`, return None if outputs do not fit."""
    try:
        array = np.asarray(outputs)
        wide = array.size // max(1, len(outputs))
        if array.dtype.kind in "buif" and width in (None, wide):
            return array.reshape(len(outputs), wide).astype(np.float64)
    except (TypeError, ValueError, RuntimeError):
        # Outputs of different lengths, or tensors that cannot be converted to arrays.
        pass
    if width is None:
        return None
    rows = np.full((len(outputs), width), np.nan)
    for row, output in zip(rows, outputs, strict=True):
        first_row = _outputs_to_numbers([output], None)
        if first_row is not None and first_row.size == width:
            row[:] = first_row[0]
    return rows


def _as_comparable(output: Any) -> Hashable:
    """Return an output as a hashable object: a tuple for an array or a list."""
    if isinstance(output, (np.ndarray, np.generic)):
        output = output.tolist()
    if isinstance(output, (list, tuple)):
        # A call that returns one row returns the output itself.
        return _as_comparable(output[0]) if len(output) == 1 else tuple(map(_as_comparable, output))
    return output  # type: ignore[no-any-return]


def _draw_orders(rng: np.random.Generator, turns: int) -> list[tuple[int, int]]:
    """Draw which of x and x' is first in each of several turns.

    For each two consecutive turns, a fair coin decides if the first turn begins with x and the
    second turn with x', or the reverse. Then an effect that grows linearly with time, or that
    alternates from call to call, has the same sum on x and on x'.
    """
    coins = rng.random(-(-turns // 2)) < 0.5
    firsts = np.stack([coins, ~coins], axis=1).ravel()[:turns]
    return [(0, 1) if first else (1, 0) for first in firsts.tolist()]


class Place(NamedTuple):
    """Position of some outputs of an audit: the block, and the outputs in the block.

    A block consists of consecutive trials. One call draws the outputs of a block.

    Args:
        number: position of the block in the audit, counted from 0.
        size: number of outputs of the call that draws the block.
        first: position of the first requested output in the block, counted from 0.
        end: position of the last requested output in the block, plus 1.
    """

    number: int
    size: int
    first: int
    end: int


@dataclass(frozen=True)
class CallableDraws:
    """Source of the outputs of a Python callable on x and x', drawn in blocks of trials.

    By default, a block is drawn by one call on x and one call on x'. Each call gets its own
    generator.

    Args:
        mechanism: the Python callable.
        pair: the two inputs.
        seed: seed of the audit, which determines all generators.
        block: number of trials in a block.
        shape: shape of one output.
        globals: True to seed the global generators of Python, numpy and torch again for every
            block.
        fields: names of the fields, if outputs are structured arrays. None before the first call,
            or for any other outputs.
        in_pieces: True to draw each block by several calls, which alternate between x and x'. This
            setting is for a mechanism with its own randomness, whose outputs do not depend on the
            seed.
        same_bits: True if all machines of the audit must draw outputs with the same bits from the
            same seed.
    """

    mechanism: Callable[..., Any]
    pair: Pair
    seed: int
    block: int
    shape: tuple[int, ...]
    globals: bool = False
    fields: tuple[str, ...] | None = None
    in_pieces: bool = False
    same_bits: bool = False
    native = False

    def __post_init__(self) -> None:
        """Convert the inputs to the type with which the mechanism is called."""
        object.__setattr__(self, "pair", convert_pair(self.mechanism, self.pair))

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """Draw the requested outputs of a block on one input.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            side: 0 for x, 1 for x'.
            place: the block and the requested outputs.
        """
        with self._note_failing_input(purpose, place):
            outputs: npt.NDArray[Any] = self._draw_outputs(rows_of_one_call, purpose, side, place)
        return outputs

    def _note_failing_input(self, purpose: int, place: Place) -> AbstractContextManager[None]:
        def make_rng(side: int, number: int) -> Generator:
            more = (_FAILURES_STREAM, number) if number else ()
            return make_generator(self.seed, purpose, side, place.number, *more)

        inputs = self.pair.x, self.pair.x_prime
        return note_failing_input(self.mechanism, inputs, place.size, make_rng)

    def count_calls(self, size: int) -> int:
        """Return the number of calls that draw a block of `size` outputs on x (or on x')."""
        if not self.in_pieces or self.globals or makes_tensors(self.mechanism):
            return 1
        return max(1, min(_PIECES_PER_BLOCK, size // _MIN_PIECE_ROWS))

    def draw_block_by_side(
        self, purpose: int, place: Place, held: bool = False
    ) -> Iterator[tuple[int, npt.NDArray[Any] | Batch]]:
        """Yield the pairs (0, outputs on x) and (1, outputs on x') of a block, in a random order.

        The seed determines the order. If each call of the function returns only one output, the
        calls alternate between x and x': a few calls on one input, then a few calls on the second
        input.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            place: the block and the requested outputs.
            held: True to leave output tensors on their device, False to copy these tensors to the
                CPU.
        """
        with self._note_failing_input(purpose, place):
            yield from self._iterate_side_outputs(purpose, place, held)

    def _iterate_side_outputs(
        self, purpose: int, place: Place, held: bool
    ) -> Iterator[tuple[int, npt.NDArray[Any] | Batch]]:
        mechanism, pieces = self.mechanism, self.count_calls(place.size)
        # Global generators have only one state, so turns are not possible with them.
        turns = isinstance(mechanism, Repeated) and mechanism.seeded != "global"
        if turns and not self.globals:
            yield from self._sides_by_turns(purpose, place)
        elif pieces > 1:
            yield from self._join_pieces_per_side(purpose, place, pieces)
        else:
            rng = make_generator(self.seed, purpose, _ORDER_STREAM, place.number // 2)
            call = call_tensor_mechanism if held and makes_tensors(mechanism) else rows_of_one_call
            for side in _draw_orders(rng, 2)[place.number % 2]:
                yield side, self._draw_outputs(call, purpose, side, place)

    def _sides_by_turns(self, purpose: int, place: Place) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the outputs on x and x' of a block, for a function with one output per call.

        The outputs are equal to the outputs of one call on x and one call on x'.
        """
        *rngs, turns = (
            make_generator(self.seed, purpose, i, place.number) for i in (0, 1, _ORDER_STREAM)
        )
        mechanism, inputs = cast(Repeated, self.mechanism), (self.pair.x, self.pair.x_prime)
        orders = _draw_orders(turns, -(-place.size // _ANSWERS_PER_TURN))
        name = f"outputs of {name_of(mechanism)}"
        both = mechanism.call_by_turns(inputs, place.size, rngs, orders, _ANSWERS_PER_TURN)
        for side in orders[0]:
            outputs = to_outputs(name, both[side], place.size, self.shape, self.fields)
            yield side, self._to_audit_shape(outputs)[place.first : place.end]

    def _join_pieces_per_side(
        self, purpose: int, place: Place, pieces: int
    ) -> Iterator[tuple[int, npt.NDArray[Any]]]:
        """Yield the outputs on x and x' of a block, drawn in several calls on each input."""
        *rngs, turns = (
            make_generator(self.seed, purpose, i, place.number) for i in (0, 1, _ORDER_STREAM)
        )
        inputs = self.pair.x, self.pair.x_prime
        parts: tuple[list[Any], list[Any]] = [], []
        orders = _draw_orders(turns, pieces)
        for number, order in enumerate(orders):
            rows = (number + 1) * place.size // pieces - number * place.size // pieces
            for side in order:
                piece = inputs[side], rows, rngs[side], self.shape, self.fields
                parts[side].append(self._to_audit_shape(rows_of_one_call(self.mechanism, *piece)))
        for side in orders[0]:
            yield side, join_outputs(parts[side])[place.first : place.end]

    def _draw_outputs(self, called: Any, purpose: int, side: int, place: Place) -> Any:
        x = self.pair.x_prime if side else self.pair.x
        stream = purpose, side, place.number
        rng = make_generator(self.seed, *stream)
        # A separate stream, so that the mechanism's draws from rng do not change.
        seeds = make_generator(self.seed, *stream, _GLOBALS_STREAM) if self.globals else None
        seeded = nullcontext() if seeds is None else seeded_globals(seeds)
        with seeded, torch_threads(self.mechanism):
            outputs = called(self.mechanism, x, place.size, rng, self.shape, self.fields)
        return self._to_audit_shape(outputs)[place.first : place.end]

    def _to_audit_shape(self, outputs: Any) -> Any:
        """Return the outputs in the shape of the audit, or as objects if some rows differ in shape.

        Raises:
            ValueError: if all rows of one call have another shape, or other fields, than in earlier
                calls.
        """
        names = None if isinstance(outputs, Batch) else outputs.dtype.names
        if names is not None and self.fields is not None and names != self.fields:
            requirement = f"of the fields {self.fields} in every call"
            raise invalid(f"outputs of {name_of(self.mechanism)}", requirement, names)
        if outputs.shape[1:] == self.shape:
            return outputs
        if not isinstance(outputs, Batch):
            # Each row is a separate output; a few first calls may have shown only one of the
            # shapes.
            answers = is_unbatched(self.mechanism)
            single = outputs.dtype == object or answers
            if single and self.shape == ():
                return rows_to_objects(outputs)
            if (
                answers
                or len(outputs) == 1
                or (single and any(_has_shape(row, self.shape) for row in outputs))
            ):
                return to_object_array(list(outputs))
        requirement = f"of shape {(len(outputs), *self.shape)} in every call"
        raise invalid(f"outputs of {name_of(self.mechanism)}", requirement, outputs.shape)


def _has_shape(row: Any, shape: tuple[int, ...]) -> bool:
    try:
        return bool(np.shape(row) == shape)
    except ValueError:
        return False


class TimeLog:
    """Record of the time and the number of outputs of each step of an audit.

    The steps are "probe", "search", "fit", "count" and "report".

    Args:
        bar: progress bar that shows the current step, or None to show no bar.
        clock: function without arguments that returns the time in seconds.
    """

    def __init__(
        self, bar: Progress | None = None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.bar = Progress("", None, False) if bar is None else bar
        self.clock = clock
        self._spent: dict[str, list[Any]] = {}
        self._step, self._since = "", clock()
        self.calls = 0
        self._timed: dict[int, float] = {}

    def begin_step(self, name: str, label: str = "", total: float | None = None) -> None:
        """Begin a step of the audit, or continue an earlier step.

        Args:
            name: name of the step. Time and outputs are added to this step until this method is
                called again.
            label: text that the progress bar shows. By default, the bar does not change.
            total: number of outputs that the step will draw on x and x' together. None if unknown.
        """
        self._add_elapsed_time()
        self._step = name
        self._spent.setdefault(name, [0.0, 0])
        if label:
            self.bar.reset(label, total)

    def add_outputs(self, outputs: int) -> None:
        """Add the number `outputs` to the number of outputs of the current step of the audit."""
        self._spent.setdefault(self._step, [0.0, 0])[1] += outputs
        self.bar.advance(outputs)

    def record_call_duration(self, outputs: int, seconds: float) -> None:
        """Record the number of outputs and the duration of one call of the mechanism."""
        self.add_outputs(outputs)
        self.calls += 1
        self._timed[outputs] = min(seconds, self._timed.get(outputs, seconds))

    def fixed_and_output_seconds(self) -> tuple[float, float]:
        """Estimate the fixed time of a call of the mechanism, and the additional time per output.

        Both are in seconds. They are 0 if no call was recorded.
        """
        return estimate_times(self._timed)

    def seconds(self, name: str) -> float:
        """Return the time in seconds that a step of the audit has taken so far.

        Args:
            name: name of the step.
        """
        self._add_elapsed_time()
        return float(self._spent[name][0]) if name in self._spent else 0.0

    def spent(self) -> tuple[tuple[str, float, int], ...]:
        """Return the name, the seconds and the number of outputs of every step so far."""
        self._add_elapsed_time()
        return tuple((name, *held) for name, held in self._spent.items())

    def _add_elapsed_time(self) -> None:
        now = self.clock()
        if self._step:
            self._spent[self._step][0] += now - self._since
        self._since = now


def estimate_times(timed: dict[int, float]) -> tuple[float, float]:
    """Estimate the fixed time of a call and the additional time per output, in seconds.

    The fixed time is, for example, the time to start a process or to wait for a network. If no call
    has at least eight times as many outputs as some other call, the estimate of the fixed time is
    0. If `timed` is empty, both estimates are 0.

    Args:
        timed: dictionary: a key is the number of outputs of a call, and its value is the time of
            the call in seconds.
    """
    if not timed:
        return 0.0, 0.0
    few, many = min(timed), max(timed)
    if many < _MIN_CALL_SIZE_RATIO * few:
        return 0.0, min(seconds / outputs for outputs, seconds in timed.items())
    # A larger call does not take less time than a smaller one; an excess is its warm-up.
    least = min(timed.values())
    each = (timed[many] - least) / (many - few)
    return max(0.0, least - few * each), each


@dataclass(frozen=True)
class NativeDraws:
    """Source of the outputs of a native mechanism on x and x', which the compiled core draws."""

    mechanism: Native
    pair: Pair
    seed: int
    block: int
    native = True
    same_bits = True

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one output of the mechanism, which is the shape of an input."""
        return np.shape(self.pair.x)

    def count_calls(self, size: int) -> int:
        """Return 1, because the compiled core draws any number of outputs in one call."""
        return 1

    def core_arguments(self, purpose: int, side: int) -> tuple[Any, Floats, Any]:
        """Return arguments of the compiled core: the mechanism, the input and the random stream.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            side: 0 for x, 1 for x'.
        """
        point = vector("x_prime" if side else "x", self.pair.x_prime if side else self.pair.x)
        draws = (self.seed, purpose, side, self.block)
        return describe_natively(self.mechanism, point.size), point, draws

    def draw(
        self, purpose: int, side: int, place: Place, threads: int = 1
    ) -> npt.NDArray[np.float64]:
        """Draw the requested outputs of a block on one input, shape `(end - first, dim)`.

        Args:
            purpose: code of the purpose of the draws, such as 2 for counting.
            side: 0 for x, 1 for x'.
            place: the block and the requested outputs (from `first` to `end - 1`).
            threads: number of threads.
        """
        description, point, draws = self.core_arguments(purpose, side)
        out = np.empty((place.end - place.first, point.size))
        start = place.number * self.block + place.first
        _core.sample(description, point, out, draws, start, threads)
        return out

    def draw_block_by_side(
        self, purpose: int, place: Place, held: bool = False
    ) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        """Yield the pair (0, outputs on x), and then the pair (1, outputs on x'), of a block."""
        for side in (0, 1):
            yield side, self.draw(purpose, side, place)


@explain_argument_errors
def sample(
    mech: Native,
    x: npt.ArrayLike,
    size: int,
    *,
    rng: Rng = None,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """Draw outputs of a native mechanism of dpcore as a numpy array, with several threads.

    Use this function for audits and experiments, not for releasing data. The last bits of
    floating-point outputs may reveal the input, as in every textbook sampler. The random generator
    is not cryptographic: a person who knows the seed can remove the noise.

    An audit uses the same code to draw outputs. The result depends on the seed, but not on the
    number of threads or on the CPU. Draws from two noise distributions with the same seed are
    computed from the same random bits. Therefore use different seeds for samples that must be
    independent.

    Args:
        mech: a native mechanism (a mechanism that the compiled core of dpcore draws). It is a noise
            such as `dpcore.Laplace(1.0)`, or a system of `dpcore.published`.
        x: the input, shape `(dim,)` with dim at least 1, finite.
        size: number of outputs, at least 0.
        rng: an int in [0, 2**63) is the seed. A numpy Generator draws the seed. With None, the seed
            comes from the operating system.
        out: array to fill: C-contiguous, writeable, of shape `(size, dim)` and type `dtype`.
            Defaults to a new array.
        dtype: float64 or float32. For float32, the noise is added in float64 and the result is
            rounded.
        threads: number of threads. Defaults to all cores.

    Returns:
        Outputs of shape `(size, dim)`: the array `out` if it is given, otherwise a new array.

    Raises:
        TypeError: if an argument is of the wrong kind, for example if `mech` is a Python function.
        ValueError: if a value is out of range, or the shape or memory layout of `out` is wrong.
        KeyboardInterrupt: on Ctrl-C. Then `out` is only partly filled.

    Source:
        Mironov (2012), On significance of the least significant bits for differential privacy, for
        the warning about the last bits.

    Example:
        >>> import dpcore
        >>> outputs = dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)
        >>> outputs.shape, outputs.dtype
        ((1000, 2), dtype('float64'))
        >>> bool((outputs == dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)).all())
        True

        With the same seed, twice the scale gives twice the noise:

        >>> double = dpcore.sample(dpcore.Laplace(2.0), [0.0], 3, rng=1)
        >>> bool((double == 2 * dpcore.sample(dpcore.Laplace(1.0), [0.0], 3, rng=1)).all())
        True
    """
    if not can_core_draw(mech):
        raise mistyped("mech", "a native mechanism (call any other one itself)", mech)
    return fill_outputs(mech, x, size, rng, out, dtype, threads)
