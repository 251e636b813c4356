"""What does a next-word model show of one text, after DP-SGD and after redaction?

Figure 6 of Gusain and Leith has one epsilon axis for DP-SGD and for redaction. The first epsilon
is the accountant's, of one text and from above; the second is estimated, of two corpora. Here each
has a panel of its own, and all recipes are compared by what an audit of one training certifies of
one text, from below.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ClassVar, Final

from ...streams import threads_of
from ...text.needed import needed
from ..running import Tabled, gathered_in_processes, own
from ..two_sets import TextOptions
from .recipes import (
    NO_NOISE,
    PLAIN,
    POLICIES,
    PRIVATE,
    PUBLIC,
    REWRITING,
    START,
    Cell,
    Material,
    Recipe,
    measure_recipe,
    pretrain_public,
    read_material,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME = "dpsgd-vs-redaction"

_EPSILONS: Final = {False: (1.0, 8.0), True: (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)}
_LEVELS: Final = {False: (0.5, 0.8, 0.9), True: (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)}
_REWRITING_EPSILONS: Final = (10.0, 15.0, 20.0)
"""Without and with `full`."""

_REFERENCE: Final = 8.0
"""epsilon of the private training that redaction is compared with: the nearest one there is."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """The texts, and the number of trainings.

    Args:
        trials: training texts, at most; at least 100.
        seed: int in [0, 2**63); everything drawn follows from it, the noise of DP-SGD too: no
            model of this experiment protects anybody, and none is kept.
        seeds: trainings of each recipe; None for 2, 5 with `full`, 1 with `quick`.
        data: the folder of the corpora; ATIS is read, with `full` SNIPS, WikiText-2 and the word
            vectors. None generates texts.
        full: True for SNIPS, seven epsilons, rewriting, a public start, and larger models.
        quick: True for a run that shows only that the experiment works.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (2, 5, 1)
        >>> [recipe.label for recipe in Config(quick=True).recipes]
        ['plain', 'no noise', 'DP-SGD 8', 'random 0.5', 'random 0.9', 'ranked 0.5', 'ranked 0.9']
    """

    SEEDS: ClassVar[tuple[int, int]] = (2, 5)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """All recipes; rewriting and a public start need `full` and `data`."""
        epsilons = (_REFERENCE,) if self.quick else _EPSILONS[self.full]
        levels = (0.5, 0.9) if self.quick else _LEVELS[self.full]
        found = [Recipe(PLAIN), Recipe(NO_NOISE), *(Recipe(PRIVATE, one) for one in epsilons)]
        found += [Recipe(policy, level) for policy in POLICIES for level in levels]
        if self.full and self.data is not None:
            found += [Recipe(REWRITING, one) for one in _REWRITING_EPSILONS]
            found += [Recipe(START), Recipe(PUBLIC, _REFERENCE)]
        return tuple(found)

    @property
    def canaries(self) -> int:
        """Canaries of each training, half of them in by chance."""
        return 100 if self.quick else 1000

    @property
    def guesses(self) -> int:
        """Canaries that are guessed, a quarter of them."""
        return self.canaries // 4

    @property
    def words(self) -> int:
        """Words of a canary."""
        return 10

    @property
    def size(self) -> dict[str, Any]:
        """Sizes of all models: the source's with `full`."""
        if self.quick:
            return {"hidden": 16, "epochs": 5}
        return {"hidden": 200, "layers": 2, "dropout": 0.2} if self.full else {"hidden": 64}


def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train by every recipe, with canaries, and measure what each predicts and shows.

    Args:
        config: the texts, and the number of trainings.
        threads: processes, None for all cores; they change no result: torch has one thread in each.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, a cell for each recipe and repetition.

    Raises:
        ModuleNotFoundError: without torch, Opacus or scikit-learn; it says what to install.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if there are too few texts.
        KeyboardInterrupt: on Ctrl-C before the first training is complete.

    Source:
        Gusain and Leith (2023), supplement, figure 6; Steinke, Nasr and Jagielski (2023).

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("opacus") and find_spec("sklearn"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.mean("plain", "perplexity") < result.mean("plain", "unigram")
    """
    own(config, __name__)
    begun = time.perf_counter()
    for package in ("torch", "opacus", "sklearn"):
        needed(package, NAME)
    material = read_material(config)
    assert config.seeds is not None
    with TemporaryDirectory() as folder:
        if any(recipe.kind == START for recipe in config.recipes):
            material = pretrain_public(config, material, Path(folder))
        jobs = [
            (recipe, number, material, config)
            for number in range(config.seeds)
            for recipe in config.recipes
        ]
        cells, partial = gathered_in_processes(
            NAME, measure_recipe, jobs, threads_of(threads), progress,
            ended=lambda cell: cell.partial,
        )  # fmt: skip
    # A training that Ctrl-C cut short is no training of its recipe.
    whole = tuple(cell for cell in cells if not cell.partial)
    if not whole:
        raise KeyboardInterrupt
    return Result(config, material, whole, partial, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """What every recipe predicts and shows.

    Args:
        config: the options.
        material: the texts.
        cells: one for each recipe and repetition.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    material: Material
    cells: tuple[Cell, ...]
    partial: bool = False
    seconds: float = field(default=0.0, compare=False)

    @property
    def recipes(self) -> tuple[Recipe, ...]:
        """The recipes that were trained, in the order of the options."""
        trained = {cell.recipe.label for cell in self.cells}
        return tuple(recipe for recipe in self.config.recipes if recipe.label in trained)

    def of(self, label: str) -> tuple[Cell, ...]:
        """Return the cells of a recipe."""
        return tuple(cell for cell in self.cells if cell.recipe.label == label)

    def mean(self, label: str, name: str) -> float:
        """Return the mean of a figure over the repetitions of a recipe; NaN if there are none."""
        values = [getattr(cell, name) for cell in self.of(label)]
        return statistics.fmean(values) if values else math.nan

    @property
    def reference(self) -> Recipe | None:
        """The private recipe whose epsilon is nearest to 8, or None."""
        private = [recipe for recipe in self.recipes if recipe.kind == PRIVATE]
        return min(
            private, key=lambda recipe: abs(math.log(recipe.level / _REFERENCE)), default=None
        )

    @property
    def auc_error(self) -> float:
        """Standard error of the difference of two mean AUCs, if no canary were remembered."""
        assert self.config.seeds is not None
        half = self.config.canaries / 2.0
        variance = (2.0 * half + 1.0) / (12.0 * half**2)
        return math.sqrt(2.0 * variance / self.config.seeds)

    def findings(self) -> list[str]:
        """Return what the figures show, in sentences."""
        found = [self._describe_plain()] if self.of(PLAIN) else []
        if (private := self.reference) is not None:
            found += [self._compare_noise(private)] if self.of(NO_NOISE) else []
            for policy in (*POLICIES, REWRITING):
                mine = [recipe for recipe in self.recipes if recipe.kind == policy]
                found += [self._compare(recipe, private) for recipe in mine]
                found += [self._find_equal_leak(mine, private)] if mine else []
            if self.of(START) and (start := self.of(Recipe(PUBLIC, _REFERENCE).label)):
                found.append(self._describe_start(start[0].recipe, private))
        return [*found, *self._check_guarantees(), *self._describe_corpora()]

    def _figures(self, label: str) -> str:
        value, auc, certified = (
            self.mean(label, name) for name in ("perplexity", "auc", "certified")
        )
        return f"perplexity {value:.1f}, AUC {auc:.2f}, certified {certified:.2f}"

    def _describe_plain(self) -> str:
        return (
            f"Plain training: {self._figures(PLAIN)} of at most {self.mean(PLAIN, 'ceiling'):.2f}; "
            f"unigram {self.mean(PLAIN, 'unigram'):.1f}, uniform {self.cells[0].uniform:,}."
        )

    def _compare_noise(self, private: Recipe) -> str:
        difference = self.mean(NO_NOISE, "auc") - self.mean(private.label, "auc")
        seen = difference > 2.0 * self.auc_error
        end = (
            "the canaries see the noise" if seen
            else "the canaries do not see the noise: a leak as small as this does not prove it"
        )  # fmt: skip
        return (
            f"{private.label}: {self._figures(private.label)}; the same recipe without noise: "
            f"{self._figures(NO_NOISE)}. The AUCs differ by {difference:+.3f}, two standard errors "
            f"are {2.0 * self.auc_error:.3f}: {end}."
        )

    def _compare(self, recipe: Recipe, private: Recipe) -> str:
        mine, other = (self.mean(one.label, "perplexity") for one in (recipe, private))
        difference = self.mean(recipe.label, "auc") - self.mean(private.label, "auc")
        shows = "more than" if difference > 2.0 * self.auc_error else "no more than"
        if difference < -2.0 * self.auc_error:
            shows = "less than"
        return (
            f"{recipe.label}: {self._figures(recipe.label)}: predicts "
            f"{'better' if mine < other else 'worse'} and shows {shows} {private.label}."
        )

    def _find_equal_leak(self, mine: Sequence[Recipe], private: Recipe) -> str:
        """Compare predictions where a policy shows no more than DP-SGD, if it ever does."""
        limit = self.mean(private.label, "auc") + 2.0 * self.auc_error
        equal = [recipe for recipe in mine if self.mean(recipe.label, "auc") <= limit]
        if not equal:
            return f"{mine[0].kind} shows more than {private.label} at every level tried."
        best = min(equal, key=lambda recipe: self.mean(recipe.label, "perplexity"))
        values = [self.mean(one.label, "perplexity") for one in (best, private)]
        better = private.label if values[1] < values[0] else best.label
        return (
            f"Of the levels at which {best.kind} shows no more than {private.label}, {best.label} "
            f"predicts best: perplexity {values[0]:.1f} against {values[1]:.1f}, so that {better} "
            "predicts better at this leak."
        )

    def _describe_start(self, public: Recipe, private: Recipe) -> str:
        pairs = ((START, PLAIN), (public.label, private.label))
        parts = (
            f"{first} {self.mean(first, 'perplexity'):.1f}, {second} "
            f"{self.mean(second, 'perplexity'):.1f}" for first, second in pairs
        )  # fmt: skip
        return f"Perplexity with a start on public texts and without: {'; '.join(parts)}."

    def _check_guarantees(self) -> list[str]:
        private = [cell for cell in self.cells if cell.guaranteed is not None]
        if not private:
            return []
        above = [cell for cell in private if cell.certified > (cell.guaranteed or 0.0)]
        return [
            f"{len(above)} of {len(private)} private trainings certify more than their accountant "
            "guarantees. Redaction, rewriting and a training without noise guarantee nothing: "
            "what is certified of them is a lower bound alone."
        ]

    def _describe_corpora(self) -> list[str]:
        found = [cell.corpora for cell in self.cells if cell.corpora is not None]
        hats = [one.epsilon_hat for one in found if one.epsilon_hat is not None]
        if not hats:
            return []
        missing = sum(one.epsilon_rdp is None for one in found)
        size = len(self.material.rest)
        return [
            f"Two corpora, {self.material.label} against the rest, {size:,} a side: estimates from "
            f"{min(hats):.2f} to {max(hats):.2f} at delta {found[0].delta:g} (the sample sees "
            f"delta from {10.0 / size:.2g} on, not {self.material.delta:.2g}); epsilon_rdp is None "
            f"in {missing} of {len(found)}. They are estimates, and say nothing about one text."
        ]

    def table(self) -> str:
        """Return the figures as text, and what follows from them."""
        from .showing import write_table

        return write_table(self)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data, without any text or model."""
        from .showing import write_plain_data

        return write_plain_data(self)

    def plot(self, ax: Any = None) -> Figure:
        """Draw log-perplexity against both epsilons, the certified leak and the AUC.

        Returns:
            A matplotlib figure.
        """
        from .showing import draw_figure

        return draw_figure(self, ax)
