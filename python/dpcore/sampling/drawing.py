"""Sampling: the one door to the compiled samplers, and seeds."""

from __future__ import annotations

import secrets
from dataclasses import fields
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .. import _core
from ..errors import integer, invalid, mistyped, vector
from ..mechanisms.noise import Native
from ..published import is_native

Rng = int | np.random.Generator | None

PILOT: Final = 0
SELECTION: Final = 1
COUNT: Final = 2
SAMPLE: Final = 3
PROBE: Final = 4
"""What draws are for: different purposes never share a random number."""

BLOCK_ELEMENTS: Final = 2**17
"""Elements in a block of trials: 20 microseconds of counting, two milliseconds of numpy."""

MOST_DRAWS: Final = 2**63


def seed_of(rng: Rng) -> int:
    """The seed of a run, in [0, 2**63).

    Args:
        rng: None draws fresh entropy from the operating system (so a forked child never repeats
            its parent), an int in [0, 2**63) is the seed, from a Generator one integer is drawn.

    Raises:
        TypeError: if `rng` is none of these.
        ValueError: if an int is out of range.
    """
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool):
        return integer("rng", rng, 0, 2**63 - 1)
    raise mistyped("rng", "None, an int in [0, 2**63) or a numpy.random.Generator", rng)


def threads_of(threads: Any, default: int | None = None) -> int:
    """The number of threads: `default` (all cores) for None."""
    if threads is None:
        return _core.cores() if default is None else default
    return integer("threads", threads, 1, _core.MOST_THREADS)


def block_of(elements: int) -> int:
    """Trials in a block of outputs of `elements` numbers; never depends on the machine."""
    return max(1, BLOCK_ELEMENTS // max(1, elements))


def describe(mechanism: Native, dim: int) -> tuple[Any, ...]:
    """What the core is told of a native mechanism: names and numbers only."""
    steps = mechanism.steps(dim)
    values = [getattr(steps.noise, field.name) for field in fields(steps.noise)]  # type: ignore[arg-type]
    numbers = [value for value in values if not isinstance(value, str)]
    mode = next((value for value in values if isinstance(value, str)), "")
    clip = None if steps.clip is None else (steps.clip.norm, steps.clip.radius)
    return type(steps.noise).__name__, numbers, mode, clip, steps.factor


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
    """Draw outputs of a native mechanism, in parallel, straight into a numpy array.

    These are the samplers that an audit counts: there is no second implementation. The result
    depends on the seed alone, not on the number of threads or the CPU.

    Args:
        mech: a native mechanism, such as `dpcore.Laplace(1.0)` or a published system.
        x: the input, shape `(dim,)`, dim at least 1, finite.
        size: number of outputs, at least 0.
        rng: None, an int in [0, 2**63) or a numpy Generator.
        out: array to fill, C-contiguous, writeable, of shape `(size, dim)` and type `dtype`; None
            allocates one.
        dtype: float64, or float32 (rounded once, after the noise has been added in float64).
        threads: number of threads; None for all cores.

    Returns:
        Outputs of shape `(size, dim)`; `out` itself if it was given.

    Raises:
        TypeError: if an argument is of the wrong kind (a Python callable is called directly).
        ValueError: if a value, a shape or a layout is wrong.
        KeyboardInterrupt: on Ctrl-C; `out` is then filled in part.

    Example:
        >>> import dpcore
        >>> outputs = dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)
        >>> outputs.shape, outputs.dtype
        ((1000, 2), dtype('float64'))
        >>> bool((outputs == dpcore.sample(dpcore.Laplace(1.0), [0.0, 5.0], 1000, rng=1)).all())
        True
    """
    if not is_native(mech):
        raise mistyped("mech", "a native mechanism (call any other one itself)", mech)
    return fill(mech, x, size, rng, out, dtype, threads)


def sized(size: int, dim: int) -> int:
    """Check a number of outputs of `dim` entries: at least 0, and few enough to be addressed."""
    size = integer("size", size, 0)
    if size * dim >= MOST_DRAWS // 8:
        raise invalid("size", "small enough that size * dim * 8 bytes can be addressed", size)
    return size


def fill(
    mech: Native,
    x: npt.ArrayLike,
    size: int,
    rng: Rng = None,
    out: npt.NDArray[Any] | None = None,
    dtype: npt.DTypeLike = np.float64,
    threads: int | None = None,
) -> npt.NDArray[Any]:
    """What `sample` does, for whatever describes itself in native steps: subclasses too."""
    point = vector("x", x)
    size = sized(size, point.size)
    out = _checked_out(out, (size, point.size), dtype)
    if np.may_share_memory(point, out):
        point = point.copy()
    run = (seed_of(rng), SAMPLE, 0, block_of(point.size))
    _core.sample(describe(mech, point.size), point, out, run, 0, threads_of(threads))
    return out


def _checked_out(
    out: npt.NDArray[Any] | None, shape: tuple[int, int], dtype: npt.DTypeLike
) -> npt.NDArray[Any]:
    try:
        wanted = np.dtype(dtype)
    except Exception:
        # numpy parses strings such as "f8,(3" as Python and shows objects by their own repr, so
        # that a SyntaxError or anything else can come out.
        raise mistyped("dtype", "float64 or float32", dtype) from None
    if wanted not in (np.dtype(np.float64), np.dtype(np.float32)):
        raise invalid("dtype", "float64 or float32", dtype)
    if out is None:
        return np.empty(shape, wanted)
    if not isinstance(out, np.ndarray):
        raise mistyped("out", "a numpy array", out)
    if out.shape != shape or out.dtype != wanted:
        requirement = f"of shape {shape} and type {wanted}"
        raise invalid("out", requirement, (out.shape, str(out.dtype)))
    if not (out.flags.c_contiguous and out.flags.writeable and out.flags.aligned):
        raise invalid("out", "C-contiguous, aligned and writeable", out.flags)
    return out
