"""Noise that a forked child repeats: generators whose state a fork copies."""

from __future__ import annotations

import itertools
import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import numpy as np

from ..adapters import TorchModule, TorchNoise
from ..errors import confidence_level, integer, invalid, real, suggest_arguments, whole
from ..mechanisms.callables import Repeated, call_mechanism, stack_answers
from ..mechanisms.declarations import mechanism_attribute
from ..packages import has_all, imported_module, is_tensor
from ..records import Pair
from ..streams import Rng, seed_of
from .checks import Check, CheckOutcome
from .outputs import Floats, Layer, as_finite_array, at_least, collision_probability, hash_rows

_PIPE_BYTES = 2**16
_MAX_TIMEOUT_SECONDS = 1e6
"""Seconds; what the system waits for has an end."""


@suggest_arguments
def fork_reuse(
    mechanism: Any,
    x: Any = None,
    *,
    draws: int = 256,
    children: int = 2,
    rng: Rng = None,
    timeout: float = 60.0,
    false_alarm: float = 1e-6,
) -> Check:
    """Check if the noise is repeated after a fork: in parent and child, or in two children.

    `os.fork` copies the state of every generator in memory: of a module, of numpy's global one, of
    torch's (Python's `random` seeds itself anew in a child; other instances do not). Workers made
    by a fork then add the same noise to different people's data, and a subtraction takes it away.
    The mechanism is called once before the fork (so that whatever it makes on first use exists),
    then in every child, then in the parent. In the children torch runs on one thread.

    A mechanism that draws from the `rng` it is given cannot repeat itself here: parent and
    children get generators of different seeds, as they must from whoever forks. What is looked
    for are mechanisms that draw elsewhere. For the same reason whatever dpcore would seed anew in
    every call runs as it is shipped, on the state that the fork copied: torch modules and
    distributions, and functions of `dpcore.repeat` with ``seeded="global"``.

    Only systems with `os.fork` can answer. A child is killed after `timeout` seconds, and none is
    left behind; a deadlock in a library that does not survive a fork ends so.

    Args:
        mechanism: as for `inspect`.
        x: the input; None takes that of the mechanism's default pair, or one 0.
        draws: outputs in every process, at least 16.
        children: number of children, at least 1.
        rng: None, an int in [0, 2**63) or a numpy Generator.
        timeout: seconds that a child has, above 0 and at most a million.
        false_alarm: chance, at most, of a flag without a fault.

    Returns:
        A `Check` called "fork".

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if an argument is out of range.
        NotImplementedError: where the system cannot fork.
        RuntimeError: if the mechanism raised in a child, or the child died or ran too long.

    Source:
        CVE-2013-1900 (PostgreSQL, 2013): the generator of OpenSSL, copied by forks.

    Example:
        A generator that a module made on import::

            own = np.random.default_rng()

            def released(x, size, rng):
                return x + own.laplace(size=(size, len(x)))

            print(fork_reuse(released, [0.0]))

        prints "fork: FLAGGED: the noise comes again: parent and child 1 share 256 of 256 rows".
    """
    draws, children = integer("draws", whole(draws), 16), integer("children", children, 1)
    timeout = real("timeout", timeout, low=0.0, high=_MAX_TIMEOUT_SECONDS, open_low=True)
    false_alarm = confidence_level(false_alarm, "false_alarm")
    layer = Layer(mechanism, seed_of(rng), None)
    point = _read_input(layer.mechanism, x)
    if not has_all(os, "fork"):
        raise NotImplementedError("fork_reuse needs os.fork, which this system does not have")
    draw = _make_shippable(layer.mechanism)
    _as_rows(layer, draw(point, draws, _make_generator(layer, 0)))
    found = _draw_everywhere(layer, draw, point, draws, children, timeout)
    outputs = [_as_rows(layer, one) for one in found]
    return _compare_processes(outputs, layer.seed).judge("fork", false_alarm)


def _read_input(mechanism: Any, x: Any) -> Any:
    if x is None:
        pair = mechanism_attribute(mechanism, "default_pair")
        found = pair() if callable(pair) else None
        x = found.x if isinstance(found, Pair) else np.zeros(1)
    return x if is_tensor(x) else as_finite_array("x", x)


def _make_generator(layer: Layer, process: int) -> np.random.Generator:
    return np.random.default_rng([layer.seed, process])


def _make_shippable(mechanism: Any) -> Callable[[Any, int, np.random.Generator], Any]:
    """Return the mechanism without the part that seeds a global generator for each call."""
    if isinstance(mechanism, Repeated) and mechanism.seeded == "global":
        fn = mechanism.fn
        return lambda x, size, rng: stack_answers([fn(x) for _ in range(size)], mechanism.name)
    if isinstance(mechanism, TorchNoise):
        noise = mechanism.distribution
        is_whole = bool((*noise.batch_shape, *noise.event_shape))
        return lambda x, size, rng: noise.sample((size,) if is_whole else (size, *np.shape(x)))
    if isinstance(mechanism, TorchModule):
        return partial(_draw_from_module, mechanism)
    return partial(call_mechanism, mechanism)


def _draw_from_module(mechanism: TorchModule, x: Any, size: int, rng: np.random.Generator) -> Any:
    torch = import_module("torch")
    point = mechanism._placed(torch, x)
    batch = point.unsqueeze(0).repeat(size, *(1 for _ in point.shape))
    with torch.no_grad():
        return mechanism.module(batch).detach().cpu().double().numpy()


def _as_rows(layer: Layer, outputs: Any) -> Floats:
    name = f"outputs of {layer.name}"
    rows = as_finite_array(name, outputs)
    if rows.size == 0:
        raise invalid(name, "rows of at least one number", rows.shape)
    return rows.reshape(len(rows), -1).astype(np.float64)


def _draw_everywhere(
    layer: Layer, draw: Any, x: Any, size: int, children: int, timeout: float
) -> list[Any]:
    """Draw outputs of the parent and every child, the parent's first in the list."""
    running: list[tuple[int, int]] = []
    try:
        for process in range(1, children + 1):
            rng = _make_generator(layer, process + 1)
            running.append(_start_child(partial(draw, x, size, rng)))
        # The state is the one that the children were given: the parent draws after the forks.
        outputs = [draw(x, size, _make_generator(layer, 1))]
        deadline = time.monotonic() + timeout
        return outputs + [_read_answer(pipe, pid, deadline, timeout) for pid, pipe in running]
    finally:
        for pid, pipe in running:
            os.close(pipe)
            # Kill a child, if it still runs, and reap it.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _start_child(work: Callable[[], Any]) -> tuple[int, int]:
    """Fork a child that does the work: its process and the end of a pipe to read from."""
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            # Newer Pythons warn of forks beside threads, which is what the timeout is for.
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
    except BaseException:
        os.close(reading)
        os.close(writing)
        raise
    if pid == 0:
        _run_child(work, reading, writing)
    os.close(writing)
    return pid, reading


def _run_child(work: Callable[[], Any], reading: int, writing: int) -> NoReturn:
    """Run the child's work; it never returns into the caller's program."""
    status = 1
    try:
        os.close(reading)
        try:
            if (torch := imported_module("torch")) is not None:
                # The threads of its pool do not survive a fork: waiting for them would not end.
                torch.set_num_threads(1)
            answer = (True, np.asarray(work()))
        except BaseException as error:
            answer = (False, f"{type(error).__name__}: {error}")  # type: ignore[assignment]
        content = memoryview(pickle.dumps(answer))
        while content:
            content = content[os.write(writing, content[:_PIPE_BYTES]) :]
        status = 0
    finally:
        # No exit handlers, no buffers written twice: they are the parent's.
        os._exit(status)


def _read_answer(pipe: int, pid: int, deadline: float, timeout: float) -> Any:
    """Read the answer of a child."""
    parts = []
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            raise RuntimeError(f"child {pid} must answer within {timeout:g} s, got nothing")
        part = os.read(pipe, _PIPE_BYTES)
        if not part:
            break
        parts.append(part)
    try:
        fine, answer = pickle.loads(b"".join(parts))
    except (EOFError, pickle.UnpicklingError):
        raise RuntimeError(f"child {pid} died before it had answered") from None
    if not fine:
        raise RuntimeError(f"the mechanism raised in child {pid}: {answer}")
    return answer


def _compare_processes(outputs: list[Floats], seed: int) -> CheckOutcome:
    """Find two processes that share more rows than chance explains."""
    size = len(outputs[0])
    if all((one == one[0]).all() for one in outputs):
        return CheckOutcome("the outputs do not vary: nothing to compare", seed=seed)
    names = ["parent", *(f"child {place}" for place in range(1, len(outputs)))]
    ids = hash_rows(np.concatenate(outputs), np.random.default_rng(seed)).reshape(-1, size)
    chance = max(map(collision_probability, ids))
    pairs = list(itertools.combinations(range(len(ids)), 2))
    equal = [int((ids[a] == ids[b]).sum()) for a, b in pairs]
    worst = int(np.argmax(equal))
    first, second = (names[place] for place in pairs[worst])
    p = len(pairs) * at_least(equal[worst], size, chance)
    figures = f"{first} and {second} share {equal[worst]} of {size} rows"
    bad, good = f"the noise comes again: {figures}", f"no noise comes again: {figures}"
    return CheckOutcome(bad, good, p, seed=seed)
