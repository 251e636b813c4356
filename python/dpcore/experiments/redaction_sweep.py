"""Effect of masking words on attacks that infer a text's set, its original, or its words.

There are two sets of texts: sensitive texts and other texts. A share of the words of each text is
masked. Figures 1 and 2 of Gusain and Leith show two results against this share: the divergence
between the two sets of masked texts, and the accuracy of an attacker who infers the set of a text.
This experiment adds error bars, a null distribution and certified lower bounds to both results. It
also adds an attack that links a masked text to its original.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..text import redaction
from .corpora import TextOptions, read_two_sets
from .drawing import Figure
from .running import Tabled, cell_seed, time_run

NAME = "redaction-sweep"

_QUICK_LEVELS: Final = (0.0, 0.5, 0.95, 1.0)
_QUICK_TEXTS: Final = 120
_LABEL_PERMUTATIONS: Final = {False: 20, True: 2}
"""Number of label permutations, without and with `quick`."""

_COMPARED_ACCURACY: Final = 0.7
"""Accuracy of the attack on the set, at which the utilities of the two choices of words are
compared."""

_COMPARED_LEVEL: Final = 0.95
"""Share of masked words at which the attack on the set and the linking attack are compared."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment: the texts, and the number of splits.

    Args:
        trials: largest number of texts in the sensitive set, at least 100. The other set has the
            same size.
        seed: int in [0, 2**63). The draw of the other set and the splits of the texts get separate
            seeds derived from this seed.
        seeds: number of random splits of the texts. The default is 5, or 20 if `full` is True, or 1
            if `quick` is True.
        data: folder with the texts, which must contain the file medical/abstracts.csv. By default,
            dpcore generates texts.
        full: True for 20 splits, and for twelve additional attackers.
        quick: True for a short run: one split, few shares of masked words, and few texts.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (5, 20, 1)
    """


@time_run("sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Run the attacks for every share of masked words.

    The masked words are either random, or those that distinguish the two sets best ("ranked").

    Args:
        config: options of the experiment.
        threads: not used, because the experiment runs on one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result. If the user presses Ctrl-C, the result contains only the completed splits.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed. The message of the error states how
            to install the package.
        FileNotFoundError: if the folder `data` does not contain a file that the experiment needs.
        ValueError: if `data` contains too few texts.
        KeyboardInterrupt: if the user presses Ctrl-C before the first split is completed.

    Source:
        Gusain and Leith (2023), figures 1 and 2.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.sweep["random", 0].attack.above_floor
    """
    sets = read_two_sets(config)
    sensitive = sets.sensitive[:_QUICK_TEXTS] if config.quick else sets.sensitive
    rng = np.random.default_rng(cell_seed(config.seed, "other set"))
    order = rng.permutation(len(sets.rest)).tolist()
    drawn, others = order[: len(sensitive)], order[len(sensitive) :]
    options: Any = {"splits": config.seeds, "rng": cell_seed(config.seed, "splits")}
    sweep = redaction.sweep(
        sensitive,
        [sets.rest[row] for row in drawn],
        policies=[redaction.Random(), redaction.Ranked()],
        levels=_QUICK_LEVELS if config.quick else redaction.LEVELS,
        public=[sets.rest[row] for row in others],
        utility=[sets.rest_labels[row] for row in drawn],
        nulls=_LABEL_PERMUTATIONS[config.quick],
        attackers="usual" if config.full else None,
        progress=progress,
        **options,
    )
    return Result(config, sets.origin, sets.dropped, sweep, partial=sweep.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the attacks for every share of masked words.

    Args:
        config: options of the run.
        corpus: description of the source of the texts.
        dropped: number of distinct texts that were left out, because they occur in both sets.
        sweep: results for every share of masked words, for random words and for ranked words.
    """

    corpus: str
    dropped: int
    sweep: redaction.Sweep

    def findings(self) -> list[str]:
        """Return sentences that compare the attacks, and that compare utility and attack."""
        sentences = [self._compare_questions(name) for name in self.sweep.policies]
        kept = (f"{name} {self.utility(name):.3f}" for name in self.sweep.policies)
        whole = self.sweep["random", 0.0].mean("utility")
        line = (
            f"Macro-F1 where the attack on the set falls to accuracy {_COMPARED_ACCURACY:g}: "
            f"{', '.join(kept)}; {whole:.3f} with all words."
        )
        return [*sentences, line]

    def _compare_questions(self, policy: str) -> str:
        point = self.sweep[policy, _COMPARED_LEVEL]
        attack = point.attack
        return (
            f"With {100 * point.mean('masked'):.0f} % of the words masked ({policy}), the set is "
            f"named rightly for {100 * point.mean('accuracy'):.1f} % of the texts (first split "
            f"{attack.accuracy}, guessing {attack.floors[0].accuracy:.3f}), and "
            f"{100 * point.linkages[0].share:.1f} % of the documents are identified."
        )

    def utility(self, policy: str, accuracy: float = _COMPARED_ACCURACY) -> float:
        """Return the utility at the share of masked words that reduces the attack to `accuracy`.

        The utility is the macro-F1 of a classifier on the masked texts. The share is the smallest
        one above which the accuracy of the attack on the set stays below `accuracy`.

        Between two measured shares, the function interpolates linearly. If the attack is always
        above or always below `accuracy`, the function returns the utility at the largest or at the
        smallest share.
        """
        points = self.sweep.of(policy)
        curve = np.array([[point.mean("accuracy"), point.mean("utility")] for point in points])
        above = np.flatnonzero(curve[:, 0] >= accuracy)
        first = int(above[-1]) if above.size else 0
        return float(np.interp(accuracy, *curve[[min(first + 1, len(curve) - 1), first]].T))

    def table(self) -> str:
        """Return all results as a text table."""
        left = f"{self.dropped:,} texts of both sets were left out; seed {self.config.seed}"
        head = f"Redacted texts: {self.corpus}{self.config.origin_note}\n{left}"
        return "\n\n".join([head, str(self.sweep), "\n".join(self.findings())])

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of plain data (numbers, strings, lists and dicts)."""
        facts = {"findings": self.findings(), "sweep": self.sweep.to_dict()}
        return self.make_record(corpus=self.corpus, dropped=self.dropped, **facts)

    def plot(self, ax: Any = None) -> Figure:
        """Draw divergence, accuracy of the attacks, and utility against the share of masked words.

        Returns:
            A matplotlib figure.
        """
        return self.sweep.plot(ax)
