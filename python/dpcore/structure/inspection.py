"""The inspection of a noise layer: structural checks by sampling, noise that a fork repeats.

Sizes of draws can only be pooled over coordinates if each is measured from its own centre, and
a callable may change its input first. Where the input is not the median of the
outputs, two guesses are tried: 0 at the input 0, which every clip by a norm leaves unchanged; and
the input with all entries beyond an upper or a lower wall cut off there. If neither explains the
outputs, the input stays the centre.
"""

from __future__ import annotations

import itertools
import os
import pickle
import select
import signal
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from .. import errors
from ..adapters import TorchModule, TorchNoise
from ..mechanisms.callables import Repeated, call_mechanism, stack_answers
from ..mechanisms.declarations import mechanism_attribute
from ..packages import has_all, imported_module, is_tensor
from ..records import Floats, Pair
from ..streams import Rng, seed_of
from ..suggestions import suggest_arguments
from .checks import CHECKS, DETERMINISTIC, Check, CheckOutcome, Inspection, make_check
from .outputs import (
    MIN_INSPECTED_DRAWS,
    Clean,
    Layer,
    Seen,
    as_finite_array,
    at_least,
    collect_outputs,
    collision_probability,
    hash_rows,
    one_sided_p_values,
)

_PIPE_BYTES = 2**16
_MAX_TIMEOUT_SECONDS = 1e6
"""Seconds; what the system waits for has an end."""

_MEDIAN_LEVEL: Final = 1e-6
"""Chance that a centre is given up, or not taken, though it is the median of the noise."""


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
        x: the input. None takes that of the mechanism's default pair, or one 0.
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
    draws, children = (
        errors.integer("draws", errors.whole(draws), 16),
        errors.integer("children", children, 1),
    )
    timeout = errors.real("timeout", timeout, low=0.0, high=_MAX_TIMEOUT_SECONDS, open_low=True)
    false_alarm = errors.confidence_level(false_alarm, "false_alarm")
    layer = Layer(mechanism, seed_of(rng), None)
    point = _read_input(layer.mechanism, x)
    if not has_all(os, "fork"):
        raise NotImplementedError("fork_reuse needs os.fork, which this system does not have")
    draw = _make_shippable(layer.mechanism)
    _as_rows(layer, draw(point, draws, _make_generator(layer, 0)))
    answers = _draw_everywhere(layer, draw, point, draws, children, timeout)
    outputs = [_as_rows(layer, answer) for answer in answers]
    return _compare_processes(outputs, layer.seed).judge("fork", false_alarm)


def _read_input(mechanism: Any, x: Any) -> Any:
    if x is None:
        pair = mechanism_attribute(mechanism, "default_pair")
        own_pair = pair() if callable(pair) else None
        x = own_pair.x if isinstance(own_pair, Pair) else np.zeros(1)
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
        raise errors.invalid(name, "rows of at least one number", rows.shape)
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
    if all((rows == rows[0]).all() for rows in outputs):
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


def choose_centre(layer: Layer, x: Any, sample: Seen) -> Seen:
    """Choose the outputs for the tail checks, and their centre.

    Args:
        layer: the layer, for two more calls at 0 where they are needed.
        x: the input.
        sample: its outputs, `clean` being the input itself.

    Returns:
        `seen` where the input is the centre or no better centre is known; else the same outputs
        with another `clean`, or outputs at 0. Its `clean` is a guess: no check of sides may use it.
    """
    if sample.clean is None or _may_be_medians(sample.first, sample.clean).all():
        return sample
    return _draw_at_zero(layer, x, sample) or _replace_by_walls(sample) or sample


def _draw_at_zero(layer: Layer, x: Any, sample: Seen) -> Seen | None:
    """Return outputs at the input 0 if there is noise around it as at the input."""
    draws = len(sample.first)
    try:
        first, second = layer.draw(0 * x, draws), layer.draw(0 * x, draws)
        clean = layer.clean(0 * x, False)
    except Exception:
        # Nobody said that the mechanism takes this input.
        return None
    if clean is None or not _may_be_medians(first, clean).all():
        return None
    home = replace(sample, first=first, second=second, clean=clean, around="0, at the input 0")
    return home if np.array_equal(home.varying, sample.varying) else None


def _replace_by_walls(sample: Seen) -> Seen | None:
    """Replace all input entries that do not fit by one upper and one lower wall."""
    assert sample.clean is not None
    fits = _may_be_medians(sample.first, sample.clean)
    middle = np.median(sample.first, axis=0)
    clean = sample.clean.copy()
    for side in (~fits & (middle < sample.clean), ~fits & (middle > sample.clean)):
        if side.any():
            # A wall is one number: sizes measured from it agree among all its entries.
            clean[side] = np.median(sample.first[:, side])
    if not _may_be_medians(sample.first, clean).all():
        return None
    return replace(sample, clean=clean, around="the input clipped at a wall")


def _may_be_medians(outputs: Floats, centre: Floats) -> npt.NDArray[np.bool_]:
    """Test by signs if each number of the centre may be the median of its coordinate."""
    above, below = (outputs > centre).sum(axis=0), (outputs < centre).sum(axis=0)
    p = 2 * one_sided_p_values(np.maximum(above, below), np.minimum(above, below))
    return np.asarray(p > _MEDIAN_LEVEL / len(centre))


@suggest_arguments
def inspect(
    mechanism: Any,
    x: Any,
    *,
    draws: int | None = None,
    rng: Rng = None,
    clean: Clean = None,
    others: Sequence[Any] | None = None,
    skip: Sequence[str] = (),
    false_alarm: float = 1e-4,
) -> Inspection:
    """Look for faults in the structure of a noise layer, by sampling it.

    The checks:

    - ``no_noise``: outputs equal the clean vector in every draw, in all or some coordinates;
    - ``shared_rows``, ``shared_calls``: noise used again within a call, or in a second call;
    - ``rank``: noise in fewer directions than coordinates, such as one draw added to all of them;
    - ``correlation``, ``shared_size``: dependent coordinates; only their size is meant
      where a radius is drawn for the whole vector (then ``skip=("shared_size",)``);
    - ``one_sided``, ``atom``, ``off_centre``: noise never below (above) the clean vector, exactly
      0 or another value with positive probability, or with another median than 0. Each is
      flagged only if it is so at all inputs that were tried;
    - ``scale``: noise that is larger at some inputs than at others;
    - ``column_scale``: a coordinate with less than a tenth of the noise of most others. Where
      coordinates have scales of their own by design, the noise is as unequal as the
      sensitivities, and ``skip=("column_scale",)`` leaves the check out;
    - ``grid``, ``range``: values that come back in the tail, as those of torch's float32 Laplace
      noise do, which never exceeds 15.942385 scales; noise that ends at a wall, where enough
      draws reach it;
    - ``modes``: another law in train mode than in eval mode, for objects that have both, such as
      torch modules. The other checks look at the mode that the object is in, and leave it there.

    With m checks that have a p-value, each is flagged at ``false_alarm / m``, so that a layer of
    independent draws of noise that is continuous, or has few values, and symmetric about the clean
    vector, with a tail no lighter than a Gaussian one, is flagged with probability `false_alarm`
    at most. A layer that passes is not proved private: `dpcore.audit` counts what it leaks.
    Outputs that are clamped after the noise do depend on the input: inspect the layer before its
    clamp.

    Args:
        mechanism: a native mechanism, a callable ``(x, size, rng) -> outputs``, or an object that
            `dpcore.adapters` knows, such as a torch module, which is called as it is.
        x: the input: finite numbers, any shape that the mechanism takes, or a tensor.
        draws: outputs in each of the two main calls, at least 200. None makes a million
            numbers, from 1,536 to 262,144 draws. Other inputs and modes are drawn 16,384 times at
            most.
        rng: None, an int in [0, 2**63) or a numpy Generator.
        clean: what the noise is added to: a function of the input, or the vector at x. None takes
            x itself where an output has as many numbers (a native mechanism's own clip and factor
            are known), False says that it is not known. Without it, noise is only compared with
            itself. Where x is not the median of
            the outputs, as behind a clip, `grid` and `range` measure from what the outputs show:
            x cut off at a wall, or else 0 at the input 0.
        others: inputs to compare with. None makes up 2 x, 0 and two shifts of x by ten times the
            noise, and leaves out those that the mechanism does not take.
        skip: names of checks that are not made.
        false_alarm: chance, at most, of any flag without a fault.

    Returns:
        The `Inspection`: ``str`` is a table, ``flagged`` the names, ``passed`` True without any.

    Raises:
        TypeError: if an argument is of the wrong kind, or outputs are not real numbers.
        ValueError: if an argument is out of range, or outputs are not finite or of another shape
            in every call.

    Source:
        The faults: Habernal (2022), theorem 3.2 (one-sided noise); Mironov (2012)
        (floating point); the released code of Lyu, He and Li (2020) (one draw for a whole row).

    Example:
        >>> import dpcore
        >>> inspect(dpcore.Laplace(1.0), [0.0, 0.5, 1.0], rng=1).passed
        True
        >>> def shared(x, size, rng):
        ...     return x + rng.laplace(size=(size, 1))
        >>> found = inspect(shared, [0.0, 0.5, 1.0], rng=1)
        >>> found.flagged
        ('rank', 'correlation', 'shared_size')
        >>> print(found["rank"])
        rank: FLAGGED: one draw of noise for all 3 coordinates (rank 1): subtracting the row minimum
        returns the clean vector (largest error ...)
    """
    if isinstance(x, (tuple, Pair)):
        raise errors.mistyped("x", "one input, such as [0.0], and not a pair of them", x)
    if draws is not None:
        draws = errors.integer("draws", errors.whole(draws), MIN_INSPECTED_DRAWS)
    if isinstance(skip, str) or not isinstance(skip, Sequence):
        raise errors.mistyped("skip", "a sequence of names of checks", skip)
    for name in skip:
        errors.choice("skip", name, CHECKS)
    if set(skip) == set(CHECKS):
        raise errors.invalid("skip", "names that leave a check to make", skip)
    if others is not None and not isinstance(others, Sequence):
        raise errors.mistyped("others", "a sequence of inputs", others)
    false_alarm = errors.confidence_level(false_alarm, "false_alarm")
    layer = Layer(mechanism, seed_of(rng), clean)
    # Numbers near the ends of the range of doubles have infinite sums and differences.
    with np.errstate(over="ignore", invalid="ignore"):
        sample = collect_outputs(layer, x, draws, others, skip)
        tails = {"grid", "range"}
        tail = sample
        if layer.guessed and not tails <= set(skip):
            tail = choose_centre(layer, x if is_tensor(x) else as_finite_array("x", x), sample)
        names = [name for name in CHECKS if name not in skip]
        # The number does not depend on what is seen: a check without an answer keeps its share.
        level = false_alarm / max(1, len({*names} - {*DETERMINISTIC}))
        checks = tuple(
            make_check(check_name, tail if check_name in tails else sample, level)
            for check_name in names
        )
    n, d = sample.first.shape
    return Inspection(layer.name, d, n, layer.seed, false_alarm, level, checks)
