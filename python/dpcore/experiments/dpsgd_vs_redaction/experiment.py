"""Leak of one text by a next-word model, after DP-SGD and after redaction.

Figure 6 of Gusain and Leith has one epsilon axis for DP-SGD and for redaction. The first epsilon
is the accountant's, of one text and from above; the second is estimated, of two corpora. Here each
has a panel of its own, and all recipes are compared by what an audit of one training certifies of
one text, from below.
"""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from ...streams import threads_of
from ...text.needed import needed
from ..running import ShownResult, gather_in_processes, require_own_config
from ..two_sets import TextOptions
from .recipes import CORPORA_DELTA, POLICIES, Cell, Material, Recipe, measure_recipe, read_material

NAME = "dpsgd-vs-redaction"

_TRAINING_EPSILONS: Final = {False: (1.0, 8.0), True: (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)}
_REDACTION_LEVELS: Final = {False: (0.5, 0.8, 0.9), True: (0.1, 0.3, 0.5, 0.7, 0.8, 0.9)}
_REWRITING_EPSILONS: Final = (10.0, 15.0, 20.0)
"""Without and with `full`."""

_REFERENCE_EPSILON: Final = 8.0
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
        epsilons = (_REFERENCE_EPSILON,) if self.quick else _TRAINING_EPSILONS[self.full]
        levels = (0.5, 0.9) if self.quick else _REDACTION_LEVELS[self.full]
        found = [Recipe("plain"), Recipe("no noise"), *(Recipe("DP-SGD", one) for one in epsilons)]
        found += [Recipe(policy, level) for policy in POLICIES for level in levels]
        if self.full and self.data is not None:
            found += [Recipe("SanText", one) for one in _REWRITING_EPSILONS]
            found += [
                Recipe("plain, public start"),
                Recipe("DP-SGD, public start", _REFERENCE_EPSILON),
            ]
        return tuple(found)

    @property
    def canaries(self) -> int:
        """Canaries of each training, half of them in by chance."""
        return 100 if self.quick else 1000

    @property
    def size(self) -> dict[str, Any]:
        """Sizes of all models: the source's with `full`."""
        if self.quick:
            return {"hidden": 16, "epochs": 3}
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
        ...     assert result.mean("plain", "perplexity") < result.cells[0].measured.unigram
    """
    require_own_config(config, __name__)
    begun, processes = time.perf_counter(), threads_of(threads)
    for package in ("torch", "opacus", "sklearn"):
        needed(package, NAME)
    with TemporaryDirectory() as folder:
        material = read_material(config, Path(folder))
        numbers = range(config.seeds or 1)
        jobs = [(one, number, material, config) for number in numbers for one in config.recipes]
        cells, partial = gather_in_processes(
            NAME, measure_recipe, jobs, processes, progress, ended=lambda cell: cell.partial
        )
    # A training that Ctrl-C cut short is no training of its recipe.
    whole = tuple(cell for cell in cells if not cell.partial)
    if not whole:
        raise KeyboardInterrupt
    return Result(config, material, whole, partial, time.perf_counter() - begun)


@dataclass(frozen=True, slots=True, repr=False)
class Result(ShownResult):
    """Perplexity and leak of every recipe.

    Args:
        config: the options.
        material: the texts (not shown, not compared).
        cells: one for each recipe and repetition.
        partial: True if Ctrl-C ended the run early.
        seconds: time taken (not compared).
    """

    config: Config
    material: Material = field(repr=False, compare=False)
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

    def log_perplexity(self, label: str) -> float:
        """Return the logarithm of the mean perplexity of a recipe."""
        return math.log(self.mean(label, "perplexity"))

    @property
    def reference(self) -> Recipe | None:
        """The private recipe whose epsilon is nearest to 8, or None."""
        found = [recipe for recipe in self.recipes if recipe.kind == "DP-SGD"]
        return min(
            found, key=lambda one: abs(math.log(one.level / _REFERENCE_EPSILON)), default=None
        )

    @property
    def auc_error(self) -> float:
        """Standard error of the difference of two mean AUCs, if no canary were remembered."""
        many, seeds = self.config.canaries, min(len(self.of(one.label)) for one in self.recipes)
        return math.sqrt(2.0 * (many + 1.0) / (3.0 * many**2) / seeds)

    def findings(self) -> list[str]:
        """Return what the figures show, in sentences."""
        found = [
            f"Plain training: {self._describe('plain')} of at most {self.cells[0].ceiling:.2f}; "
            f"unigram {self.cells[0].measured.unigram:.1f}."
        ]
        if (private := self.reference) is not None:
            found += [self._compare_noise(private)] if self.of("no noise") else []
            kinds = dict.fromkeys(recipe.kind for recipe in self.recipes)
            found += [self._compare(k, private) for k in kinds if k in (*POLICIES, "SanText")]
            starts = (one.label for one in self.recipes if one.kind.endswith("public start"))
            found += [f"{label}: {self._describe(label)}." for label in starts]
            found.append(self._check_guarantees())
        return [*found, self._describe_corpora()]

    def _describe(self, label: str) -> str:
        value, auc, certified = (self.mean(label, x) for x in ("perplexity", "auc", "certified"))
        return f"perplexity {value:.1f}, AUC {auc:.2f}, certified {certified:.2f}"

    def _compare_noise(self, private: Recipe) -> str:
        difference = self.mean("no noise", "auc") - self.mean(private.label, "auc")
        seen = "the canaries see the noise"
        if difference <= 2.0 * self.auc_error:
            seen = "the canaries do not see the noise, so a leak as small as this does not prove it"
        return (
            f"{private.label}: {self._describe(private.label)}; the same recipe without noise: "
            f"{self._describe('no noise')}. The AUCs differ by {difference:+.3f}, two standard "
            f"errors are {2.0 * self.auc_error:.3f}: {seen}."
        )

    def _compare(self, kind: str, private: Recipe) -> str:
        """Group the levels of a recipe by how it predicts, and by how much it shows."""
        groups: dict[str, list[str]] = {}
        limit = self.mean(private.label, "auc") + 2.0 * self.auc_error
        other = self.mean(private.label, "perplexity")
        for recipe in (one for one in self.recipes if one.kind == kind):
            value, auc = (self.mean(recipe.label, name) for name in ("perplexity", "auc"))
            predicts = "better" if value < other else "worse"
            shows = "more" if auc > limit else "no more"
            said = f"predicts {predicts} and its canaries show {shows}"
            groups.setdefault(said, []).append(f"{recipe.level:g} ({value:.1f}, {auc:.2f})")
        parts = "; ".join(f"at {', '.join(levels)} it {said}" for said, levels in groups.items())
        return f"{kind} (perplexity, AUC) against {private.label}: {parts}."

    def _check_guarantees(self) -> str:
        private = [cell for cell in self.cells if cell.guaranteed is not None]
        above = sum(cell.certified > (cell.guaranteed or 0.0) for cell in private)
        return (
            f"{above} of {len(private)} private trainings certify more than their accountant "
            "guarantees. Redaction, rewriting and a training without noise guarantee nothing: "
            "what is certified of them is a lower bound alone."
        )

    def _describe_corpora(self) -> str:
        found = [cell for cell in self.cells if cell.corpora_hat is not None]
        hats = [cell.corpora_hat or 0.0 for cell in found]
        missing, size = sum(cell.corpora_rdp is None for cell in found), len(self.material.rest)
        return (
            f"Two corpora, {self.material.label} against the rest, {size:,} a side: estimates from "
            f"{min(hats):.2f} to {max(hats):.2f} at delta {CORPORA_DELTA:g} "
            f"(the sample sees delta from {10.0 / size:.2g} on, not {self.material.delta:.2g}); "
            f"epsilon_rdp is None in {missing} of {len(found)}. They say nothing about one text."
        )
