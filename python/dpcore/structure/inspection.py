"""`inspect` and `fork_reuse`, which look for faults in the noise that a mechanism adds.

The checks of large noise values pool the absolute values of all coordinates. Therefore the noise of
each coordinate is measured from the median of its outputs, here called the centre. A mechanism may
transform its input before it adds noise. If the input is not the median of the outputs, dpcore
tries two other centres:

- The first centre is 0, with outputs at the input 0, because a clip by a norm does not change 0.
- The second centre is the input after a clip of its entries to an interval [a, b].

If neither centre fits the outputs, the input remains the centre.
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
from ..mechanisms.callables import Repeated, answers_to_array, rows_of_one_call
from ..mechanisms.declarations import get_or_default
from ..packages import get_loaded_module, has_all, is_tensor
from ..records import Floats, Pair
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from .checks import CHECKS, DETERMINISTIC, Check, CheckOutcome, Inspection, run_check
from .outputs import (
    MIN_INSPECTED_DRAWS,
    Clean,
    Layer,
    Sample,
    as_finite_array,
    binomial_tail,
    collect_outputs,
    collision_probability_upper,
    hash_rows,
    sign_test_p_values,
)

_PIPE_BYTES = 2**16
_MAX_TIMEOUT_SECONDS = 1e6
"""Largest timeout in seconds that the operating system accepts."""

_MEDIAN_LEVEL: Final = 1e-6
"""Significance level of the test that a centre is the median of the noise."""


@explain_argument_errors
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
    """Check whether a mechanism adds the same noise in several processes after `os.fork`.

    `os.fork` copies the state of every random generator in memory, such as the global generators of
    numpy and torch. Python seeds the module `random` again in a child, but not other objects of the
    class `random.Random`. Forked workers with equal generators add the same noise to the data of
    different people. An attacker who subtracts two outputs then removes the noise.

    The mechanism is called once before the fork. Therefore a generator that the mechanism makes in
    its first call exists before the fork. Then the mechanism is called in every child, and at the
    end in the parent. In the children, torch runs on one thread.

    dpcore passes a random generator to the mechanism, with a different seed in each process. A
    mechanism that draws only from this generator is never flagged. In your own program, the code
    that forks must also pass different generators.

    Some mechanisms draw from the global generators of torch, numpy or Python: torch modules, torch
    distributions, and functions of `dpcore.repeat` with ``seeded="global"``. An audit seeds the
    global generators before it calls these mechanisms. This check does not seed the global
    generators.

    The check needs an operating system with `os.fork`. A child is killed after `timeout` seconds,
    for example if a library deadlocks after the fork. All children have ended when the function
    returns.

    Args:
        mechanism: a native mechanism of dpcore (such as `dpcore.Laplace`), a callable
            ``(x, size, rng) -> outputs``, or an object that `dpcore.adapters` supports, such as a
            torch module.
        x: input of the mechanism. By default, x is the first input of the default pair that the
            mechanism defines, or [0.0] if the mechanism defines no default pair.
        draws: number of outputs in each process, at least 16.
        children: number of children, at least 1.
        rng: source of the seed: None, an int seed in [0, 2**63) or a numpy Generator.
        timeout: time limit of a child in seconds, above 0 and at most a million.
        false_alarm: upper bound on the probability that a mechanism without this fault is flagged.

    Returns:
        An object of the class `Check` with the name "fork". It is flagged if two processes (the
        parent and a child, or two children) have more outputs in common than chance explains.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if an argument is out of range.
        NotImplementedError: if the system cannot fork.
        RuntimeError: if the mechanism raised an error in a child, or if a child died or exceeded
            `timeout`.

    Source:
        CVE-2013-1900 (PostgreSQL, 2013): forks copied the generator of OpenSSL.

    Example:
        A module makes a generator on import::

            own = np.random.default_rng()

            def released(x, size, rng):
                return x + own.laplace(size=(size, len(x)))

            print(fork_reuse(released, [0.0]))

        prints "fork: FLAGGED: the noise is repeated: parent and child 1 share 256 of 256 rows".
    """
    draws, children = (
        errors.integer("draws", errors.whole(draws), 16),
        errors.integer("children", children, 1),
    )
    timeout = errors.real("timeout", timeout, low=0.0, high=_MAX_TIMEOUT_SECONDS, open_low=True)
    false_alarm = errors.confidence_level(false_alarm, "false_alarm")
    layer = Layer(mechanism, to_seed(rng), None)
    point = _input_or_default(layer.mechanism, x)
    if not has_all(os, "fork"):
        raise NotImplementedError("fork_reuse needs os.fork, which this system does not have")
    draw = _make_draw_without_seeding(layer.mechanism)
    _outputs_to_float_rows(layer, draw(point, draws, _make_generator(layer, 0)))
    answers = _draw_parent_first(layer, draw, point, draws, children, timeout)
    outputs = [_outputs_to_float_rows(layer, answer) for answer in answers]
    return _check_forked_noise(outputs, layer.seed).judge("fork", false_alarm)


def _input_or_default(mechanism: Any, x: Any) -> Any:
    if x is None:
        pair = get_or_default(mechanism, "default_pair")
        own_pair = pair() if callable(pair) else None
        x = own_pair.x if isinstance(own_pair, Pair) else np.zeros(1)
    return x if is_tensor(x) else as_finite_array("x", x)


def _make_generator(layer: Layer, process: int) -> np.random.Generator:
    return np.random.default_rng([layer.seed, process])


def _make_draw_without_seeding(mechanism: Any) -> Callable[[Any, int, np.random.Generator], Any]:
    """Return the mechanism without the code that seeds the global generators in each call."""
    if isinstance(mechanism, Repeated) and mechanism.seeded == "global":
        fn = mechanism.fn
        return lambda x, size, rng: answers_to_array([fn(x) for _ in range(size)], mechanism.name)
    if isinstance(mechanism, TorchNoise):
        noise = mechanism.distribution
        is_whole = bool((*noise.batch_shape, *noise.event_shape))
        return lambda x, size, rng: noise.sample((size,) if is_whole else (size, *np.shape(x)))
    if isinstance(mechanism, TorchModule):
        return partial(_draw_from_module, mechanism)
    return partial(rows_of_one_call, mechanism)


def _draw_from_module(mechanism: TorchModule, x: Any, size: int, rng: np.random.Generator) -> Any:
    torch = import_module("torch")
    point = mechanism._placed(torch, x)
    batch = point.unsqueeze(0).repeat(size, *(1 for _ in point.shape))
    with torch.no_grad():
        return mechanism.module(batch).detach().cpu().double().numpy()


def _outputs_to_float_rows(layer: Layer, outputs: Any) -> Floats:
    name = f"outputs of {layer.name}"
    rows = as_finite_array(name, outputs)
    if rows.size == 0:
        raise errors.invalid(name, "rows of at least one number", rows.shape)
    return rows.reshape(len(rows), -1).astype(np.float64)


def _draw_parent_first(
    layer: Layer, draw: Any, x: Any, size: int, children: int, timeout: float
) -> list[Any]:
    """Return a list with the outputs of the parent, followed by the outputs of every child."""
    running: list[tuple[int, int]] = []
    try:
        for process in range(1, children + 1):
            rng = _make_generator(layer, process + 1)
            running.append(_start_child(partial(draw, x, size, rng)))
        # The parent draws after the forks, so it starts from the state that the children copied.
        outputs = [draw(x, size, _make_generator(layer, 1))]
        deadline = time.monotonic() + timeout
        return outputs + [_read_answer(pipe, pid, deadline, timeout) for pid, pipe in running]
    finally:
        for pid, pipe in running:
            os.close(pipe)
            # Kill the child if it is still running, and reap it.
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _start_child(work: Callable[[], Any]) -> tuple[int, int]:
    """Fork a child that calls `work`; return its process id and the reading end of a pipe."""
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            # Newer Python versions warn about forks with threads. The timeout handles this case.
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
    """Call `work` in a child, write the result to a pipe, and end the process."""
    status = 1
    try:
        os.close(reading)
        try:
            if (torch := get_loaded_module("torch")) is not None:
                # torch's thread pool does not survive a fork, and waiting for it would never end.
                torch.set_num_threads(1)
            answer = (True, np.asarray(work()))
        except BaseException as error:
            answer = (False, f"{type(error).__name__}: {error}")  # type: ignore[assignment]
        content = memoryview(pickle.dumps(answer))
        while content:
            content = content[os.write(writing, content[:_PIPE_BYTES]) :]
        status = 0
    finally:
        # Exit handlers and buffers belong to the parent, so they are skipped.
        os._exit(status)


def _read_answer(pipe: int, pid: int, deadline: float, timeout: float) -> Any:
    """Read the result of a child from its pipe."""
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


def _check_forked_noise(outputs: list[Floats], seed: int) -> CheckOutcome:
    """Test if two processes share more rows of outputs than chance explains."""
    size = len(outputs[0])
    if all((rows == rows[0]).all() for rows in outputs):
        return CheckOutcome("the outputs do not vary: nothing to compare", seed=seed)
    names = ["parent", *(f"child {place}" for place in range(1, len(outputs)))]
    ids = hash_rows(np.concatenate(outputs), np.random.default_rng(seed)).reshape(-1, size)
    chance = max(map(collision_probability_upper, ids))
    pairs = list(itertools.combinations(range(len(ids)), 2))
    equal = [int((ids[a] == ids[b]).sum()) for a, b in pairs]
    worst = int(np.argmax(equal))
    first, second = (names[place] for place in pairs[worst])
    p = len(pairs) * binomial_tail(equal[worst], size, chance)
    figures = f"{first} and {second} share {equal[worst]} of {size} rows"
    bad, good = f"the noise is repeated: {figures}", f"no noise is repeated: {figures}"
    return CheckOutcome(bad, good, p, seed=seed)


def find_noise_centre(layer: Layer, x: Any, sample: Sample) -> Sample:
    """Choose the vector (the centre) to subtract from outputs in checks of large noise values.

    The mechanism may change the input before it adds noise, for example by a clip. The input is
    then not the median of the outputs, and another centre is needed.

    Args:
        layer: the mechanism. It may be called twice at the input 0.
        x: the input.
        sample: outputs of the mechanism at x. The field `clean` is the input.

    Returns:
        `sample` itself, if the input is the median of the outputs, or if no other centre fits.
        Otherwise, either outputs at the input 0, or the same outputs with another centre in the
        field `clean`. This centre is an estimate. Therefore checks of the sign of the noise must
        not use it.
    """
    if sample.clean is None or _may_centre_entries_be_medians(sample.first, sample.clean).all():
        return sample
    return _draw_at_zero_if_centred(layer, x, sample) or _set_centre_to_clipped_x(sample) or sample


def _draw_at_zero_if_centred(layer: Layer, x: Any, sample: Sample) -> Sample | None:
    """Return outputs at the input 0, or None if 0 does not fit as their median.

    The result is also None if other coordinates have noise than at x.
    """
    draws = len(sample.first)
    try:
        first, second = layer.draw(0 * x, draws), layer.draw(0 * x, draws)
        clean = layer.clean(0 * x, False)
    except Exception:
        # The mechanism may not accept this input.
        return None
    if clean is None or not _may_centre_entries_be_medians(first, clean).all():
        return None
    home = replace(sample, first=first, second=second, clean=clean, around="0, at the input 0")
    return home if np.array_equal(home.varying, sample.varying) else None


def _set_centre_to_clipped_x(sample: Sample) -> Sample | None:
    """Replace the centre by the input clipped to an interval, if this fits the outputs.

    An entry of the input that is not the median of its outputs is replaced by an end of the
    interval. The result is None if the new centre does not fit the outputs.
    """
    assert sample.clean is not None
    fits = _may_centre_entries_be_medians(sample.first, sample.clean)
    middle = np.median(sample.first, axis=0)
    clean = sample.clean.copy()
    for side in (~fits & (middle < sample.clean), ~fits & (middle > sample.clean)):
        if side.any():
            # A wall is one number, so sizes measured from it are comparable among its entries.
            clean[side] = np.median(sample.first[:, side])
    if not _may_centre_entries_be_medians(sample.first, clean).all():
        return None
    return replace(sample, clean=clean, around="the input clipped at a wall")


def _may_centre_entries_be_medians(outputs: Floats, centre: Floats) -> npt.NDArray[np.bool_]:
    """Test, by a sign test, if each entry of the centre may be the median of its coordinate."""
    above, below = (outputs > centre).sum(axis=0), (outputs < centre).sum(axis=0)
    p = 2 * sign_test_p_values(np.maximum(above, below), np.minimum(above, below))
    return np.asarray(p > _MEDIAN_LEVEL / len(centre))


@explain_argument_errors
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
    """Draw outputs of a mechanism that adds noise, and look for faults in the noise.

    The clean vector is the vector to which the noise is added. A call returns several outputs, one
    per row. Each of these checks looks for one fault:

    - ``no_noise``: outputs without noise, in all or some coordinates;
    - ``shared_rows``: noise that is repeated in several rows of a call, or depends on earlier rows;
    - ``shared_calls``: noise of one call that is repeated in a second call;
    - ``rank``: noise that spans fewer dimensions than there are coordinates, such as one draw that
      is added to all coordinates;
    - ``correlation``: noise that is correlated between coordinates;
    - ``shared_size``: absolute values of the noise that are correlated between coordinates. This is
      not a fault if the mechanism draws one radius for the whole vector by design. Then leave the
      check out with ``skip=("shared_size",)``;
    - ``one_sided``: noise that is never negative, or never positive, at all tested inputs;
    - ``atom``: noise that has one value, such as 0, with positive probability, while other values
      hardly repeat;
    - ``off_centre``: noise whose median is above 0 at all tested inputs, or below 0 at all tested
      inputs;
    - ``scale``: noise with a scale that depends on the input;
    - ``column_scale``: a coordinate with less than a tenth of the noise of most other coordinates.
      This is not a fault if the scales are in proportion to different sensitivities. Then leave the
      check out with ``skip=("column_scale",)``;
    - ``grid``: large noise values that repeat, as in the float32 Laplace noise of torch;
    - ``range``: noise with a largest possible absolute value, if enough draws come near it. For
      example, the float32 Laplace noise of torch never exceeds 15.942385 times its scale;
    - ``modes``: different distributions of the noise in train mode and in eval mode, for objects
      with both modes, such as torch modules. All other checks call the object in its current mode.

    A check is flagged if its p-value is at most ``false_alarm / m``, where m is the number of
    checks with a p-value. If the noise has no fault, the probability that at least one check is
    flagged is at most `false_alarm`. This holds under four assumptions:

    - the mechanism draws independent noise;
    - the noise is continuous, or has few values;
    - the noise is symmetric about the clean vector;
    - the tail of the noise is at least as heavy as a Gaussian tail.

    A mechanism without flags is not proved to be private. Use `dpcore.audit` to measure its privacy
    loss. If a mechanism clamps its outputs after it adds noise, inspect the mechanism without the
    clamp, because the distribution of clamped noise depends on the input.

    Args:
        mechanism: a native mechanism of dpcore (such as `dpcore.Laplace`), a callable
            ``(x, size, rng) -> outputs``, or an object that `dpcore.adapters` supports, such as a
            torch module.
        x: the input at which the noise is tested: finite numbers in any shape that the mechanism
            accepts, or a tensor.
        draws: number of outputs in each of the two calls at x, at least 200. By default, a call
            returns about a million numbers, in 1,536 to 262,144 outputs. A call at another input or
            in the other mode draws at most 16,384 outputs.
        rng: source of the seed: None, an int seed in [0, 2**63) or a numpy Generator.
        clean: the clean vector, or a function that computes the clean vector from the input. By
            default, the clean vector is x if an output has as many entries as x. A native mechanism
            may clip x or multiply x by a factor. The clean vector is then clipped or multiplied in
            the same way. False means that the clean vector is not known. Then checks that need the
            clean vector are left out. If x is not the median of the outputs (for example because
            the mechanism clips x), the checks ``grid`` and ``range`` use an estimated vector
            instead of x.

            - The first choice is 0, with outputs at the input 0.
            - The second choice is x clipped to an interval, whose ends are estimated from the
              outputs.
        others: other inputs. The noise at these inputs is compared with the noise at x. The default
            inputs are 2 x, 0, and x plus and minus ten times the mean absolute value of the noise.
            Default inputs that the mechanism does not accept are left out.
        skip: names of checks to leave out.
        false_alarm: upper bound on the probability that at least one check flags a mechanism
            without faults.

    Returns:
        An object of the class `Inspection`. The field ``flagged`` holds the names of the flagged
        checks. The field ``passed`` is True if no check is flagged. ``str`` converts the object to
        a table.

    Raises:
        TypeError: if an argument is of the wrong kind, or outputs are not real numbers.
        ValueError: if an argument is out of range, an output is not finite, or the shape of outputs
            differs between calls.

    Source:
        For the faults: Habernal (2022), theorem 3.2 (one-sided noise); Mironov (2012) (floating
        point); the released code of Lyu, He and Li (2020) (one draw for a whole row).

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
    layer = Layer(mechanism, to_seed(rng), clean)
    # Numbers near the limits of float64 have infinite sums and differences.
    with np.errstate(over="ignore", invalid="ignore"):
        sample = collect_outputs(layer, x, draws, others, skip)
        tails = {"grid", "range"}
        tail = sample
        if layer.guessed and not tails <= set(skip):
            tail = find_noise_centre(layer, x if is_tensor(x) else as_finite_array("x", x), sample)
        names = [name for name in CHECKS if name not in skip]
        # The number of checks does not depend on the outputs: a check without a result still
        # counts.
        level = false_alarm / max(1, len({*names} - {*DETERMINISTIC}))
        checks = tuple(
            run_check(check_name, tail if check_name in tails else sample, level)
            for check_name in names
        )
    n, d = sample.first.shape
    return Inspection(layer.name, d, n, layer.seed, false_alarm, level, checks)
