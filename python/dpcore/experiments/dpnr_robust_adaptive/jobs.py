"""The models to train and their tests, from a configuration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from ...records import Shown
from .cases import DATA, LINES, MASKS, MU_EPSILON, SOUND_AT, Line

__all__ = ["Job", "Model", "Test", "corpora_of", "jobs_of"]


@dataclass(frozen=True, slots=True, repr=False)
class Test(Shown):
    """Noise and masks of the texts in one test.

    Args:
        epsilon: the claim of the noise; None for none.
        mu: share of masked words.
        mask: what becomes of them; empty where none are masked.
    """

    epsilon: float | None = None
    mu: float = 0.0
    mask: Literal["", "leave_out", "zero_id"] = ""

    def __str__(self) -> str:
        """Return the name from which the seed is derived."""
        return f"{self.epsilon}/{self.mu}/{self.mask}"


@dataclass(frozen=True, slots=True, repr=False)
class Job(Shown):
    """One model.

    Args:
        data: name of the corpus.
        dim: entries of a vector.
        number: which of the seeds.
        line: name of the way of training.
        trained: the epsilon of training, where the line has a model for each.
        mu: share of words masked in training.
        mask: what becomes of them; with `mu` 0 the vocabulary is made for it all the same.
    """

    data: str
    dim: int
    number: int
    line: str
    trained: float | None = None
    mu: float = 0.0
    mask: Literal["", "leave_out", "zero_id"] = ""

    def tests(self, config: Any) -> Iterator[Test]:
        """Yield the tests of the model, first the one without noise and masks."""
        yield Test()
        if not self.mask:
            levels = config.epsilons
            if LINES[self.line].scale == "sound":
                levels = tuple(level for level in levels if level == self.trained)
            yield from map(Test, levels)
        masked = self.line == "not robust" or (self.line, self.trained) == ("robust", MU_EPSILON)
        if not masked or not _has_masks(config, self.dim):
            return
        for mu in (self.mu,) if self.mu else config.mus:
            for epsilon in (None, MU_EPSILON):
                yield Test(epsilon, mu, self.mask or "leave_out")


@dataclass(frozen=True, slots=True, repr=False)
class Model(Shown):
    """Loss and accuracies of a trained model.

    Args:
        job: what it is.
        loss: mean loss of its last epoch, in nats.
        clean: test accuracy without noise and masks.
        accuracies: test accuracy of each test.
    """

    job: Job
    loss: float
    clean: float
    accuracies: tuple[tuple[Test, float], ...]


def corpora_of(config: Any) -> tuple[str, ...]:
    """Return the names of the corpora; a quick run has only the first."""
    return tuple(DATA)[:1] if config.quick else tuple(DATA)


def _has_masks(config: Any, dim: int) -> bool:
    """Return True if words are masked for models of this dimension."""
    return bool(config.full or dim == config.dims[0])


def _training_levels(line: Line, config: Any) -> tuple[float | None, ...]:
    """Return the epsilons that models of a line are trained with."""
    if not line.each:
        return (None,)
    if line.scale == "sound" and not config.full:
        return tuple(level for level in config.epsilons if level in SOUND_AT)
    return tuple(config.epsilons)


def jobs_of(config: Any) -> Iterator[Job]:
    """Yield all models, seed after seed, so that an interrupted run has whole seeds."""
    for number in range(config.seeds or 0):
        for data in corpora_of(config):
            for dim in config.dims:
                first = partial(Job, data, dim, number)
                # A dict: lines that share a model ask for it once.
                jobs: dict[Job, None] = {}
                for name in config.lines:
                    shared = LINES[name].shared
                    levels = (
                        _training_levels(LINES[name], config) if shared is None else (shared[1],)
                    )
                    for level in levels:
                        jobs[first(name if shared is None else shared[0], level)] = None
                if _has_masks(config, dim):
                    jobs |= dict.fromkeys(_mask_jobs(first, config))
                yield from jobs


def _mask_jobs(first: Any, config: Any) -> Iterator[Job]:
    """Yield the models that are tested with masks: trained without masks, and with them."""
    for line, level in (("not robust", None), ("robust", MU_EPSILON)):
        if line in config.lines:
            yield first(line, level)
            yield first(line, level, 0.0, "zero_id")
    for mask in MASKS if "robust" in config.lines else ():
        for mu in config.mus:
            yield first("robust", MU_EPSILON, mu, mask)
