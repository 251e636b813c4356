"""Whose randomness a mechanism has: the seed's, its own, or one that copies of it share.

Everything is asked of the mechanism itself: it draws the first rows of some blocks twice, the
second time with what is in question put back, so many rows that equality by chance is excluded.
How many that are depends on the rows and on the number of trials, never on clocks.
"""

from __future__ import annotations

import copy
import os
import pickle
import threading
import uuid
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..attacks.choosing.grains import grains_of
from ..errors import invalid
from ..mechanisms.answers import join_outputs
from ..mechanisms.callables import name_of
from ..sampling.calling import CallableDraws, Place
from ..sampling.course import Course
from ..sampling.replay import Collisions, encoded, excluded
from ..streams import PROBE, threads_of
from ..streams.generators import Generators

_FEWEST: Final = 64
"""Rows drawn twice, first of all: enough for whatever has many values."""
_MOST: Final = ((2**16, 32), (2**8, 8))
"""At most so many rows, and one in so many trials; whichever of these allows more."""
_GROWTH: Final = 4

Draw = Callable[[int, int], npt.NDArray[Any]]
"""(number of a block, rows) -> its outputs."""


@dataclass(frozen=True)
class Heard(CallableDraws):
    """Draws of a callable that a course hears of, each with its time: those of a probe.

    Args:
        course: what is told.
    """

    course: Course = field(default_factory=Course, compare=False)

    def draw(self, purpose: int, side: int, place: Place) -> npt.NDArray[Any]:
        """The wanted rows of a block."""
        begun = self.course.clock()
        outputs = super().draw(purpose, side, place)
        self.course.called(place.size, self.course.clock() - begun)
        return outputs


def whose(draws: CallableDraws, trials: int) -> str:
    """Whose randomness it is, see `Audit.randomness`.

    Args:
        draws: the mechanism's draws.
        trials: that the audit reaches to; they limit the rows drawn here.

    Returns:
        "seed" if the same generator gives the same outputs bit for bit, "rounding" if they differ
        by rounding alone, "own" if by more, "not known" if equality may be chance: where all rows
        are equal, say.

    Example:
        >>> from dpcore import Pair
        >>> def noisy(x, size, rng):
        ...     return x + rng.laplace(size=(size, 1))
        >>> def global_one(x, size, rng):
        ...     return x + np.random.laplace(size=(size, 1))
        >>> pair = Pair([0.0], [1.0])
        >>> [whose(CallableDraws(fn, pair, 1, 100, (1,)), 1000) for fn in (noisy, global_one)]
        ['seed', 'own']
    """
    for side in (0, 1):
        draw = _drawn_by(draws, side)
        found = _compared(draw, draw, draws.block, trials)
        if found != "not known":
            return found
    return found


def shared_globals(draws: CallableDraws, trials: int, executor: Executor) -> bool:
    """What an executor of processes asks of a mechanism that draws randomness of its own.

    Every process has a copy of the mechanism and of all generators that it reaches, and would
    repeat the draws of the others. The system's entropy is no such thing: no state of this process
    brings its draws back.

    Args:
        draws: the mechanism's draws.
        trials: as for `whose`.
        executor: for the complaint.

    Returns:
        True if the randomness is that of the global generators of Python, numpy or torch, which
        can be seeded anew for every block; False if nothing in this process repeats it.

    Raises:
        ValueError: if it comes from another generator in this process.
    """
    with Generators.everywhere() as every:
        # Copies as processes would have them; what they share with the original is put back.
        twins = [replace(draws, mechanism=twin) for twin in _copies(draws.mechanism)]
        found = _with_states(every, twins[0], twins[1], trials)
        if not found & {"seed", "rounding"}:
            return False
    with Generators.defaults() as known:
        if "own" not in _with_states(known, draws, draws, trials):
            return True
    requirement = (
        f"None for {name_of(draws.mechanism)}, which draws from a generator of its own that every "
        "process would copy and repeat (draw from the rng that it is called with)"
    )
    raise invalid("executor", requirement, executor)


def _with_states(
    generators: Generators, first: CallableDraws, second: CallableDraws, trials: int
) -> set[str]:
    """How two compare on each side, when the second draws from the states that the first had."""
    return {
        _compared(
            generators.kept(_drawn_by(first, side)),
            generators.put_back(_drawn_by(second, side)),
            first.block,
            trials,
        )
        for side in (0, 1)
    }


def _copies(mechanism: Any) -> tuple[Any, Any]:
    """Two copies as two processes would have them; where there are none, the thing itself."""
    for duplicate in (_pickled, copy.deepcopy):
        try:
            return duplicate(mechanism), duplicate(mechanism)
        except Exception:
            # Executors with picklers of their own take more than pickle does.
            continue
    return mechanism, mechanism


def _pickled(mechanism: Any) -> Any:
    return pickle.loads(pickle.dumps(mechanism))


def _drawn_by(draws: CallableDraws, side: int) -> Draw:
    def draw(number: int, rows: int) -> npt.NDArray[Any]:
        # Block 0 told the shape of outputs.
        return draws.draw(PROBE, side, Place(number + 1, rows, 0, rows))

    return draw


def _compared(first: Draw, second: Draw, block: int, trials: int) -> str:
    """How the draws of two that should be equal compare, on as many rows as that takes.

    Rows that agree count as equal, within rounding too, so that noise below the last places is
    not taken for a seed's.
    """
    most = max(_FEWEST, *(min(rows, trials // share) for rows, share in _MOST))
    found, drawn, number, collisions = "seed", 0, 0, Collisions()
    odd = None
    while drawn < most:
        # As many again as have been drawn, three times over: 64, 256, 1024, ...
        goal = min(most, _GROWTH * drawn if drawn else _FEWEST)
        while drawn < goal:
            rows = min(block, goal - drawn)
            outputs = first(number, rows)
            again = second(number, rows)
            alike = compare(outputs, again)
            if alike == "own":
                return alike
            found = found if alike == "seed" else alike
            if rows == 1 and odd is not None:
                outputs = join_outputs([odd, outputs])
            odd = outputs if len(outputs) == 1 else None
            collisions = collisions.plus(_collisions(outputs))
            drawn, number = drawn + rows, number + 1
        if excluded(collisions.entropy, drawn):
            return found
    return "not known"


def _collisions(outputs: npt.NDArray[Any]) -> Collisions:
    """Disjoint pairs of neighbouring rows, and how many agree within rounding."""
    pairs = len(outputs) // 2
    if pairs == 0:
        return Collisions()
    agreed = _agree(outputs[: 2 * pairs : 2], outputs[1 : 2 * pairs : 2])
    return Collisions(pairs, int(np.count_nonzero(agreed)))


def compare(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> str:
    """How two arrays of outputs compare: "seed", "rounding" or "own".

    Args:
        outputs: shape `(size, ...)`.
        again: the same shape.

    Returns:
        "seed" if equal bit for bit, "rounding" if every number is within 8 last places of its
        column's format, at its own magnitude or the column's median if that is larger.
    """
    one, other = encoded(outputs), encoded(again)
    same = one is not None and other is not None and np.array_equal(one, other)
    if same and outputs.dtype == again.dtype:
        return "seed"
    return "rounding" if bool(_agree(outputs, again).all()) else "own"


def _agree(outputs: npt.NDArray[Any], again: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Which rows agree within rounding; of what is no float, which are equal."""
    numbers, others = _floats(outputs), _floats(again)
    if numbers is None or others is None:
        one, other = encoded(outputs), encoded(again)
        # What cannot be told apart is not taken for independent.
        known = one is not None and other is not None
        if one is None or other is None or one.shape != other.shape:
            return np.full(len(outputs), not known)
        return np.asarray((one == other).all(axis=1), np.bool_)
    if not numbers.shape[1]:
        return np.ones(len(numbers), np.bool_)
    grains = grains_of(numbers, others)
    numbers, others = numbers.astype(np.float64), others.astype(np.float64)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(numbers), np.abs(others))
        tolerance = np.stack([grain.at(size[:, i]) for i, grain in enumerate(grains)], axis=1)
        near = np.abs(numbers - others) <= tolerance
    near |= (numbers == others) | (np.isnan(numbers) & np.isnan(others))
    return np.asarray(near.all(axis=1), np.bool_)


def _floats(outputs: npt.NDArray[Any]) -> npt.NDArray[Any] | None:
    """Outputs as columns of floats, or None where they are no floats."""
    kind = outputs.dtype.kind
    if kind == "O" and all(isinstance(one, float) for one in outputs.ravel().tolist()):
        outputs, kind = outputs.astype(np.float64), "f"
    if kind == "c":
        outputs, kind = np.stack([outputs.real, outputs.imag], axis=-1), "f"
    return outputs.reshape(len(outputs), int(np.prod(outputs.shape[1:]))) if kind == "f" else None


def refuse_threads(threads: int | None, executor: Executor | None, what: str) -> None:
    """Refuse more threads than one, the package's own or those of an executor."""
    workers = threads_of(threads, default=1)
    if executor is None and workers > 1:
        raise invalid("threads", f"1 for a mechanism {what}", workers)
    if executor is None or getattr(executor, "_max_workers", 2) == 1:
        return
    if runs_in(executor) == "threads":
        raise invalid("executor", f"None or one of processes for a mechanism {what}", executor)


_PROCESS: Final = uuid.uuid4().hex
"""Names this process and those that are forked from it."""


def _here() -> tuple[str, int, int]:
    return _PROCESS, os.getpid(), threading.get_ident()


def runs_in(executor: Executor) -> str:
    """Where an executor does its work, asked by a task: "here", "threads" or "processes"."""
    process, pid, thread = executor.submit(_here).result()
    mine = _here()
    if (process, pid) != mine[:2]:
        return "processes"
    return "here" if thread == mine[2] else "threads"
