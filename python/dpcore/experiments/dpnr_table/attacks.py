"""Measurements on one trained system: its task, two attackers, and the certified bound."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ...records import Pair, Shown
from ...text.inference import Attacker, Group, Inference, infer, usual
from ...text.needed import needed
from .cases import BASELINES, Case, Fitted, encode_with_stream, fit_system
from .material import Material, micro_f1

__all__ = ["BUDGETS", "Naive", "Run", "measure_system"]

BUDGETS: Final = {"quick": (2, 5), "usual": (2, 5, 10), "full": (5, 10, 30)}
"""Epochs after which the naive attacker is asked."""
_NAIVE_STARTS: Final = {"quick": 1, "usual": 2, "full": 5}
"""Starts of the naive attacker."""
_USUAL_TRANSFORMS: Final = ("raw", "row minimum subtracted")


@dataclass(frozen=True, slots=True, repr=False)
class Naive(Shown):
    """One naive attacker: a network of 256 units on raw vectors, as in the paper's code.

    Args:
        start: number of its start.
        epochs: passes over the training texts.
        f1: on all test texts.
        unseen: on unseen ones.
    """

    start: int
    epochs: int
    f1: float
    unseen: float


@dataclass(frozen=True, slots=True, repr=False)
class Run(Shown):
    """One training of a system, and what was found.

    Args:
        seed: of everything here.
        true: epsilon for any two texts, inf without any; None where none is claimed.
        loss: exact loss of the largest pair, from the declared noise; None for a baseline.
        main: accuracy on all test texts.
        main_unseen: on unseen ones.
        naive: the naive attackers.
        chosen: the attacker that was chosen on validation, over all attributes.
        alone: the same for the first attribute alone, where something is certified.
        discriminator: of a baseline, the mean accuracy of its own opponent over the attributes.
    """

    seed: int
    true: float | None
    loss: float | None
    main: float
    main_unseen: float
    naive: tuple[Naive, ...]
    chosen: Inference
    alone: Inference
    discriminator: float | None

    @property
    def refitted(self) -> float | None:
        """Main accuracy of the chosen attacker's own classifier on unseen texts."""
        group = self.group
        if group.main is None:
            return None
        others = self.chosen.sizes[2] - group.texts
        rest = group.main.value - (0.0 if group.gap is None else group.gap.value)
        return (group.texts * group.main.value + others * rest) / self.chosen.sizes[2]

    @property
    def certified(self) -> float | str:
        """The certified bound for the first attribute, or why there is none."""
        found = self.alone.certified
        return found if isinstance(found, str) else found.epsilon_lower

    @property
    def refuted(self) -> bool | None:
        """True if that bound refutes the claim; None without a bound or a claim."""
        found = self.alone.certified
        return None if isinstance(found, str) else found.refuted

    @property
    def group(self) -> Group:
        """The unseen texts that have the first attribute."""
        return self.chosen.groups[len(self.chosen.attributes) == 1]


def measure_system(case: Case, made: Material, seed: int, config: Any) -> Run:
    """Train a system, and attack it.

    Args:
        case: which system.
        made: texts and encoders.
        seed: of everything here.
        config: the experiment's.
    """
    names, corpus = made.facts.names, made.corpus
    system = fit_system(case, made.extractors.get(case.encoder), corpus, names, seed, config.device)
    few = choose_attackers(config.size, len(corpus.train))
    test = encode_with_stream(system.encode, corpus.test.texts, seed, 0)
    right = system.model.predicted(test) == corpus.test.labels
    asked: dict[str, Any] = {"rng": seed, "progress": False, "confidence": config.confidence}
    linear = [one for one in few if one.classifier == few[0].classifier]
    return Run(
        seed=seed,
        true=system.true,
        loss=_largest_pair_loss(case, system, made.pairs.get(case.encoder)),
        main=float(right.mean()),
        main_unseen=float(right[made.unseen].mean()),
        naive=train_naive(system, made, seed, config.size),
        chosen=infer(system.encode, corpus, names, attackers=few, measure="f1", **asked),
        alone=infer(
            system.encode, corpus, names[0], neighbours="any two texts", **asked,
            attackers=few if config.size == "full" else linear,
        ),
        discriminator=_opponent_accuracy(case, system.model, corpus.test),
    )  # fmt: skip


def choose_attackers(size: str, rows: int) -> list[Attacker]:
    """Return the usual attackers; unless `full`, linear ones and networks after two transforms."""
    found = [one for one in usual(rows) if size == "full" or one.behind in _USUAL_TRANSFORMS]
    kinds = list(dict.fromkeys(one.classifier for one in found))
    most = {"quick": 1, "usual": 2, "full": len(kinds)}[size]
    return [one for one in found if one.classifier in kinds[:most]]


def train_naive(system: Fitted, made: Material, seed: int, size: str) -> tuple[Naive, ...]:
    """Train the naive attacker from several starts, and test it after several epochs."""
    networks = needed("sklearn.neural_network", "dpnr-table")
    corpus, names = made.corpus, made.facts.names
    rows = encode_with_stream(system.encode, corpus.train.texts, seed, 1)
    test = encode_with_stream(system.encode, corpus.test.texts, seed, 2)
    truth = np.stack([corpus.train.attribute(name) for name in names], axis=1)
    known = truth[:, 0] if len(names) == 1 else truth
    found, classes = [], np.arange(max(2, len(names)))
    for start in range(_NAIVE_STARTS[size]):
        network = networks.MLPClassifier(
            (256,), batch_size=min(64, len(rows)), random_state=(seed + start) % 2**32
        )
        for epoch in range(1, max(BUDGETS[size]) + 1):
            network.partial_fit(rows, known, classes=classes)
            if epoch in BUDGETS[size]:
                answers = np.asarray(network.predict(test), np.int64).reshape(len(test), -1)
                parts = (slice(None), made.unseen)
                figures = (micro_f1(made.truth[part], answers[part]) for part in parts)
                found.append(Naive(start, epoch, *figures))
    return tuple(found)


def _largest_pair_loss(case: Case, system: Fitted, pair: Pair | None) -> float | None:
    if pair is None:
        return None
    if case.claim is None:
        return math.inf
    loss: float | None = system.model.as_mechanism().loss(pair)
    return loss


def _opponent_accuracy(case: Case, model: Any, test: Any) -> float | None:
    if case.system not in BASELINES:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return float(np.mean(list(model.discriminator_accuracy(test).values())))
