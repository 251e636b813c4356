"""Effect of masking words on attacks that identify sensitive texts, or link texts to originals.

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
from .corpora import TextOptions, read_sensitive_and_other_texts
from .drawing import Figure
from .running import Tabled, cell_seed, time_run

NAME = "redaction-sweep"

_QUICK_LEVELS: Final = (0.0, 0.5, 0.95, 1.0)
_QUICK_TEXTS: Final = 120
_LABEL_PERMUTATIONS: Final = {False: 20, True: 2}
"""Number of label permutations, without and with `quick`."""

_COMPARED_ACCURACY: Final = 0.7
"""Accuracy of the attack that infers the set. At this accuracy, the utilities of the two ways to
choose the masked words are compared."""

_COMPARED_LEVEL: Final = 0.95
"""Share of masked words at which the attack that infers the set is compared with the linking
attack."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment that masks words and then infers which texts are sensitive.

    Args:
        trials: largest number of texts in the set of sensitive texts, at least 100. The set of
            other texts has the same size.
        seed: int in [0, 2**63). The random choice of the texts in the other set, and the splits of
            all texts, get separate seeds derived from this seed.
        seeds: number of random splits of the texts. The default is 5. If `full` is True, the
            default is 20. If `quick` is True, the default is 1.
        data: folder with the texts. The folder must contain the file medical/abstracts.csv. By
            default, dpcore generates texts.
        full: True for 20 splits, and for fourteen additional classifiers in the attack.
        quick: True for a short run with one split, few shares of masked words and few texts.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (5, 20, 1)
    """


@time_run("sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Mask a share of the words, and infer which masked texts are sensitive, for every share.

    There are two ways to choose the masked words. With "random", random words are masked. With
    "ranked", the words that best distinguish the sensitive texts from the other texts are masked
    first.

    Args:
        config: options of the experiment, such as the number of splits.
        threads: not used, because the experiment runs on one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results of the attacks. If the user presses Ctrl-C, the results cover only the completed
        splits of the texts.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed. The message of the error states how
            to install the package.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        ValueError: if the folder `config.data` contains too few texts.
        KeyboardInterrupt: if the user presses Ctrl-C before the first split of the texts is
            completed.

    Source:
        Gusain and Leith (2023), figures 1 and 2.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.sweep["random", 0].attack.above_floor
    """
    sets = read_sensitive_and_other_texts(config)
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
    """Results of the attacks on masked texts, for every share of masked words.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        dropped: number of distinct texts that occur in the sensitive set and also in the other set.
            These texts were left out.
        sweep: results of the attacks for every share of masked words, and for both ways to choose
            the masked words: "random" and "ranked".
    """

    corpus: str
    dropped: int
    sweep: redaction.Sweep

    def findings(self) -> list[str]:
        """Return sentences on the attacks on masked texts, and on the utility of these texts."""
        sentences = [self._describe_attack_success(name) for name in self.sweep.policies]
        kept = (f"{name} {self.utility(name):.3f}" for name in self.sweep.policies)
        whole = self.sweep["random", 0.0].mean("utility")
        line = (
            f"Macro-F1 where the attack on the set falls to accuracy {_COMPARED_ACCURACY:g}: "
            f"{', '.join(kept)}; {whole:.3f} with all words."
        )
        return [*sentences, line]

    def _describe_attack_success(self, policy: str) -> str:
        point = self.sweep[policy, _COMPARED_LEVEL]
        attack = point.attack
        return (
            f"With {100 * point.mean('masked'):.0f} % of the words masked ({policy}), the set is "
            f"named rightly for {100 * point.mean('accuracy'):.1f} % of the texts (first split "
            f"{attack.accuracy}, guessing {attack.floors[0].accuracy:.3f}), and "
            f"{100 * point.linkages[0].share:.1f} % of the documents are identified."
        )

    def utility(self, policy: str, accuracy: float = _COMPARED_ACCURACY) -> float:
        """Return the utility of masked texts for which an attack has the accuracy `accuracy`.

        The utility is the macro-F1 of a classifier that predicts the label of a masked text. The
        attack infers whether a text is sensitive. More masked words make this attack less accurate.
        The function finds the share of masked words from which on the attack is less accurate than
        `accuracy`, and returns the utility of the texts at this share. `policy` is "random" or
        "ranked".

        Between two measured shares, the function interpolates linearly. If the attack is more
        accurate than `accuracy` at the largest share, the function returns the utility at the
        largest share. If the attack is less accurate at every share, the function returns the
        utility at the smallest share.
        """
        points = self.sweep.of(policy)
        curve = np.array([[point.mean("accuracy"), point.mean("utility")] for point in points])
        above = np.flatnonzero(curve[:, 0] >= accuracy)
        first = int(above[-1]) if above.size else 0
        return float(np.interp(accuracy, *curve[[min(first + 1, len(curve) - 1), first]].T))

    def table(self) -> str:
        """Return the results of all attacks on masked texts as a text table."""
        left = f"{self.dropped:,} texts of both sets were left out; seed {self.config.seed}"
        head = f"Redacted texts: {self.corpus}{self.config.origin_note}\n{left}"
        return "\n\n".join([head, str(self.sweep), "\n".join(self.findings())])

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data (numbers, strings, lists and dicts)."""
        facts = {"findings": self.findings(), "sweep": self.sweep.to_dict()}
        return self.make_record(corpus=self.corpus, dropped=self.dropped, **facts)

    def plot(self, ax: Any = None) -> Figure:
        """Draw three results of masking against the share of masked words.

        Returns:
            A matplotlib figure. It shows the divergence between the two sets of texts, the accuracy
            of the attacks, and the utility.
        """
        return self.sweep.plot(ax)
