"""Training schedules: the epsilon of the training noise in each epoch or in each batch.

A schedule is a function `(epoch, epochs, rng) -> epsilon`. The first argument is the number of the
current epoch, from 1. The second argument is the number of epochs of the training. If a schedule
has the attribute `every = "batch"`, the training calls it for each batch. Otherwise the training
calls it once per epoch.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Final, Literal, get_args

import numpy as np

from ..errors import choice, integer, invalid, mistyped, real
from ..mechanisms import positive
from ..records import Record, get_attribute
from ..report.shown import name_of
from ..suggestions import explain_argument_errors

__all__ = [
    "Constant", "Every", "LogUniformEpsilon", "OverEpochs", "Schedule", "Stretched",
    "UniformEpsilon",
]  # fmt: skip


Schedule = Callable[[int, int, np.random.Generator], float]
"""Function `(epoch, epochs, rng) -> epsilon`, with epochs counted from 1."""

Every = Literal["epoch", "batch"]
"""Period after which the training calls a schedule again: an epoch or a batch."""
_REDRAW_PERIODS: Final[tuple[Every, ...]] = get_args(Every)


class _DeterministicSchedule(Record):
    """Base class of schedules that are not random. All their fields are positive numbers."""

    __slots__ = ()

    every: ClassVar[str] = "epoch"

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in (setting.name for setting in fields(self)):  # type: ignore[arg-type]
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def __call__(self, epoch: int, epochs: int, rng: Any = None) -> float:
        """Return the epsilon of an epoch (from 1 to `epochs`); `rng` is not used."""
        return self._epsilon_at(*_check_epoch(epoch, epochs))

    def _epsilon_at(self, epoch: int, epochs: int) -> float:
        raise NotImplementedError


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Constant(_DeterministicSchedule, word="text.schedules.Constant"):
    """Schedule that sets the same epsilon in every epoch of a training with noise.

    A schedule gives the epsilon of the training noise in each epoch.

    Args:
        epsilon: epsilon of all epochs, in (0, 1e300].

    Raises:
        TypeError: if `epsilon` is not a number.
        ValueError: if `epsilon` is out of range.

    Source:
        Lyu, He and Li (2020), algorithm 1.

    Example:
        >>> Constant(5.0)(epoch=3, epochs=14)
        5.0
    """

    epsilon: float

    def _epsilon_at(self, epoch: int, epochs: int) -> float:
        return self.epsilon

    def __str__(self) -> str:
        """Return the name of the schedule in tables."""
        return f"constant {self.epsilon:g}"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class OverEpochs(_DeterministicSchedule, word="text.schedules.OverEpochs"):
    """Schedule that sets the epsilon of the training noise to ``start / n`` in epoch n.

    A schedule gives the epsilon of the training noise in each epoch. With this schedule, the noise
    grows from epoch to epoch.

    Args:
        start: epsilon of the first epoch, in (0, 1e300].

    Raises:
        TypeError: if `start` is not a number.
        ValueError: if `start` is out of range.

    Source:
        Zouhri and Abecidan (2021), a study of DPNR, algorithm 3. The study uses ``start = 10``, and
        reports that the training fails with ``start = 1``.

    Example:
        >>> [OverEpochs(10.0)(n, 5) for n in (1, 2, 5)]
        [10.0, 5.0, 2.0]
    """

    start: float

    def _epsilon_at(self, epoch: int, epochs: int) -> float:
        return self.start / epoch

    def __str__(self) -> str:
        """Return the name of the schedule in tables."""
        return f"{self.start:g}/n"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stretched(_DeterministicSchedule, word="text.schedules.Stretched"):
    """Schedule that changes the epsilon of the training noise from `start` to `end`.

    The first epoch has the epsilon `start`, and the last epoch has the epsilon `end`.

    The epsilon of an epoch is ``start / (1 + (start / end - 1) t)``. Here t is
    ``(epoch - 1) / (epochs - 1)``, or 0 if there is only one epoch. For example, `Stretched(10, 2)`
    with five epochs gives the epsilon 10/n in epoch n.

    Args:
        start: epsilon of the first epoch, in (0, 1e300].
        end: epsilon of the last epoch, in (0, 1e300].

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range, or the ratio ``start / end`` is not finite and
            above 0.

    Example:
        >>> [round(Stretched(10.0, 2.0)(n, 14), 2) for n in (1, 2, 14)]
        [10.0, 7.65, 2.0]
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        """Check the fields."""
        super(Stretched, self).__post_init__()
        positive("start / end", self.start / self.end)

    def _epsilon_at(self, epoch: int, epochs: int) -> float:
        t = (epoch - 1) / max(epochs - 1, 1)
        return self.start / (1.0 + (self.start / self.end - 1.0) * t)

    def __str__(self) -> str:
        """Return the name of the schedule in tables."""
        return f"stretched {self.start:g} to {self.end:g}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class _DrawnSchedule(Record):
    """Base class of schedules that draw epsilon at random between two limits."""

    low: float
    high: float
    every: Every = "epoch"

    def __post_init__(self) -> None:
        """Check the fields."""
        for name in ("low", "high"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))
        if self.high < self.low:
            raise invalid("high", f"at least low={self.low:g}", self.high)
        choice("every", self.every, _REDRAW_PERIODS)

    def _draw(self, epoch: int, epochs: int, rng: Any, low: float, high: float) -> float:
        _check_epoch(epoch, epochs)
        if not isinstance(rng, np.random.Generator):
            # With a seed, every epoch would get the same draw.
            raise mistyped("rng", "a Generator", rng)
        return float(rng.uniform(low, high))

    def _format_law_and_range(self, law: str) -> str:
        batch = ", every batch" if self.every == "batch" else ""
        return f"{law} {self.low:g} to {self.high:g}{batch}"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UniformEpsilon(_DrawnSchedule, word="text.schedules.Uniform"):
    """Schedule that draws the epsilon of the training noise uniformly from [low, high].

    A new epsilon is drawn for each epoch or each batch. Use this schedule if the epsilon with which
    the model will release outputs is not known during the training.

    Args:
        low: smallest epsilon, in (0, 1e300].
        high: largest epsilon, at least `low`.
        every: "epoch" draws a new epsilon for each epoch. "batch" draws a new epsilon for each
            batch.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if an argument is out of range, or `every` is unknown.

    Example:
        >>> round(UniformEpsilon(2.0, 10.0)(1, 14, np.random.default_rng(1)), 4)
        6.0946
    """

    def __call__(self, epoch: int, epochs: int, rng: np.random.Generator) -> float:
        """Draw an epsilon with a numpy Generator; the draw does not depend on `epoch`."""
        return self._draw(epoch, epochs, rng, self.low, self.high)

    def __str__(self) -> str:
        """Return the name of the schedule in tables."""
        return self._format_law_and_range("uniform")


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LogUniformEpsilon(_DrawnSchedule, word="text.schedules.LogUniform"):
    """Schedule that draws the logarithm of epsilon uniformly from [ln(low), ln(high)].

    The epsilon determines the noise in the training. A new epsilon is drawn for each epoch or each
    batch.

    Args:
        low: smallest epsilon, in (0, 1e300].
        high: largest epsilon, at least `low`.
        every: "epoch" draws a new epsilon for each epoch. "batch" draws a new epsilon for each
            batch.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if an argument is out of range, or `every` is unknown.

    Example:
        >>> round(LogUniformEpsilon(0.5, 10.0)(1, 14, np.random.default_rng(1)), 4)
        2.3167
    """

    def __call__(self, epoch: int, epochs: int, rng: np.random.Generator) -> float:
        """Draw an epsilon with a numpy Generator; the draw does not depend on `epoch`."""
        drawn = math.exp(self._draw(epoch, epochs, rng, *map(math.log, (self.low, self.high))))
        # The rounding of exp and log may give a value just outside the range.
        return min(max(drawn, self.low), self.high)

    def __str__(self) -> str:
        """Return the name of the schedule in tables."""
        return self._format_law_and_range("log-uniform")


def epsilon_of(schedule: Schedule, epoch: int, epochs: int, rng: np.random.Generator) -> float:
    """Return the epsilon that a schedule sets for one epoch of a training with noise.

    The function checks that this epsilon is a finite number above 0.

    Args:
        schedule: a schedule such as `Constant`, or any function (epoch, epochs, rng) -> epsilon.
        epoch: number of the epoch, from 1 to `epochs`.
        epochs: number of epochs of the training.
        rng: a numpy Generator, for schedules that draw epsilon at random.

    Returns:
        The epsilon, finite and above 0.

    Raises:
        TypeError: if the schedule cannot be called, or does not return a number.
        ValueError: if the returned number is not finite and above 0.

    Example:
        >>> epsilon_of(lambda epoch, epochs, rng: 8 / epoch, 2, 5, np.random.default_rng(1))
        4.0
        >>> epsilon_of(lambda epoch, epochs, rng: 0.0, 2, 5, np.random.default_rng(1))
        Traceback (most recent call last):
        ...
        ValueError: epsilon that ...<lambda> gives epoch 2 of 5 must be a finite number above...
    """
    _check_schedule(schedule)
    epoch, epochs = _check_epoch(epoch, epochs)
    name = f"epsilon that {title_of(schedule)} gives epoch {epoch} of {epochs}"
    return real(name, schedule(epoch, epochs, rng), low=0.0, open_low=True)


def batch_or_epoch(schedule: Schedule) -> str:
    """Return how often a schedule gives a new epsilon: for each "batch" or for each "epoch".

    The result is the attribute `every` of the schedule. If the schedule has no such attribute, the
    result is "epoch".

    Raises:
        TypeError: if the schedule cannot be called, or `every` is not a string.
        ValueError: if `every` is neither "epoch" nor "batch".

    Example:
        >>> batch_or_epoch(UniformEpsilon(2.0, 10.0, every="batch")), batch_or_epoch(Constant(5.0))
        ('batch', 'epoch')
    """
    _check_schedule(schedule)
    every = get_attribute(_DeterministicSchedule, schedule, "every")
    return choice(f"every of {title_of(schedule)}", every, _REDRAW_PERIODS)


def title_of(schedule: Schedule) -> str:
    """Return the name under which tables and plots show a schedule.

    Example:
        >>> title_of(Stretched(10.0, 2.0)), title_of(LogUniformEpsilon(0.5, 10.0, every="batch"))
        ('stretched 10 to 2', 'log-uniform 0.5 to 10, every batch')
    """
    return str(schedule) if isinstance(schedule, Record) else name_of(schedule)


def _check_schedule(schedule: Any) -> None:
    # A class is callable, too: a user may pass `schedules.Constant` in place of an instance.
    if not callable(schedule) or isinstance(schedule, type):
        requirement = "a function (epoch, epochs, rng) -> epsilon, such as schedules.Constant(5)"
        raise mistyped("schedule", requirement, schedule)


def _check_epoch(epoch: int, epochs: int) -> tuple[int, int]:
    epochs = integer("epochs", epochs, 1)
    return integer("epoch", epoch, 1, epochs), epochs
