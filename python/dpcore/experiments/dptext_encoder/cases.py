"""The systems of the experiment on DPText, and what is measured of one that is trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from ...auditing.run import audit
from ...bounds import limits
from ...records import Counts, Shown
from ...structure import inspect
from ...text import Corpus
from ...text.inference import Attacker, infer, usual

__all__ = [
    "NOISES",
    "Case",
    "Found",
    "Noise",
    "choose_unseen_pair",
    "compute_majority_share",
    "measure_trained_system",
]

Noise = Literal["zero", "resample", "repaired"]
NOISES: Final[tuple[Noise, ...]] = ("zero", "resample", "repaired")
"""The published formula in its two readings, and Laplace noise."""

_ONE_SIDED_DRAWS = 1024
"""Outputs in each of the two main calls of an inspection: one-sided noise needs few."""


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """One system.

    Args:
        noise: one of `NOISES`.
        epsilon: the claim, or where a learnt epsilon starts.
        learn: whether it is learnt.
        cap: the largest epsilon that learning can reach; None for none.
    """

    noise: Noise
    epsilon: float
    learn: bool = False
    cap: float | None = None

    @property
    def level(self) -> str:
        """The epsilon in words."""
        if not self.learn:
            return f"{self.epsilon:g}"
        return f"from {self.epsilon:g}, {'no cap' if self.cap is None else f'cap {self.cap:g}'}"

    @property
    def faulty(self) -> bool:
        """True if no epsilon bounds the loss."""
        return self.noise != "repaired"


@dataclass(frozen=True, slots=True, repr=False)
class Found(Shown):
    """One system trained once, and what was found.

    Args:
        seed: of training, noise and attackers.
        audit_seed: of the audit.
        epsilons: the epsilon after each epoch.
        counts: of the audit's event.
        event: in words.
        refuted: whether the epsilon was refuted for the pair.
        certified: the certified bound for the pair.
        exact: the exact loss of the pair under the noise as it is.
        right: that under Laplace noise of the same scale.
        flags: checks of the structure that found a fault.
        utility: accuracy of the main task on the test texts, and its interval.
        attacker: name of the one that was chosen on validation.
        auc: its area under the ROC curve on unseen test texts, and its interval.
        floor: the best area without any encoding, on the same texts.
        beaten: whether the attacker does better than every floor.
        partial: whether Ctrl-C ended training or audit early.
    """

    seed: int
    audit_seed: int
    epsilons: tuple[float, ...]
    counts: Counts
    event: str
    refuted: bool
    certified: float
    exact: float
    right: float
    flags: tuple[str, ...]
    utility: tuple[float, float, float]
    attacker: str
    auc: tuple[float, float, float]
    floor: float
    beaten: bool
    partial: bool

    @property
    def epsilon(self) -> float:
        """The claim, or the epsilon that was learnt."""
        return self.epsilons[-1]


def measure_trained_system(
    case: Case, corpus: Corpus, pair: tuple[str, str], seeds: tuple[int, int], config: Any
) -> Found:
    """Train a system and ask all that the table shows of it.

    Args:
        case: which system.
        corpus: with a split, labels and the attribute.
        pair: two texts that training does not see.
        seeds: of training, noise and attackers; and of the audit.
        config: the experiment's.
    """
    from ...text import DPText
    from ...torch import LaplaceNoise

    seed, audit_seed = seeds
    model = DPText(
        case.epsilon, attribute=config.attribute, noise=case.noise, learn=case.learn, cap=case.cap
    ).fit(corpus, epochs=config.epochs, pair=False, rng=seed, device=config.device, progress=False)
    assert model.trained is not None
    audited = audit(
        model,
        pair,
        claim=model.learnt,
        trials=config.trials,
        confidence=config.confidence,
        rng=audit_seed,
        progress=False,
    )
    private, rows = model.require_private("is inspected"), model.clean(list(pair))
    test = corpus.test
    right = int((model.predict(test.texts, rng=seed) == test.labels).sum())
    found = infer(
        model, corpus, config.attribute, attackers=list_attackers(corpus, config.quick), rng=seed,
        confidence=config.confidence, progress=False,
    )  # fmt: skip
    assert found.figures is not None
    reached = found.figures.auc
    return Found(
        seed=seed,
        audit_seed=audit_seed,
        epsilons=model.trained.epsilons,
        counts=audited.counts,
        event=str(audited.event),
        refuted=audited.refuted is True,
        certified=audited.epsilon_lower,
        exact=private.noise.loss(*rows.double().cpu().numpy()),
        right=LaplaceNoise(private.noise.scale).loss(*rows.double().cpu().numpy()),
        flags=inspect(private.noise, rows[0], draws=_ONE_SIDED_DRAWS, rng=audit_seed).flagged,
        utility=(right / len(test), *limits(right, len(test), (1.0 - config.confidence) / 2.0)),
        attacker=found.attacker,
        auc=(reached.value, reached.low, reached.high),
        floor=max(reached.value - floor.gain.value for floor in found.floors),
        beaten=found.above_floor,
        partial=model.trained.partial or audited.partial,
    )


def list_attackers(corpus: Corpus, quick: bool) -> list[Attacker]:
    """Return the usual attackers but the slow networks; with `quick` one of them and the trees."""
    every = usual(len(corpus.train))
    kept = [one for one in every if not one.classifier.startswith("network")]
    return [kept[0], kept[-1]] if quick else kept


def choose_unseen_pair(corpus: Corpus) -> tuple[str, str]:
    """Return the first test text that training does not see, and the next one of another label."""
    seen, test = set(corpus.train.texts), corpus.test
    unseen = [row for row, text in enumerate(test.texts) if text not in seen] or [0]
    others = [row for row in unseen if test.labels[row] != test.labels[unseen[0]]]
    return test.texts[unseen[0]], test.texts[others[0] if others else -1]


def compute_majority_share(corpus: Corpus) -> float:
    """Compute the largest share of test texts with one label, the best accuracy of a constant."""
    return float(np.unique(corpus.test.labels, return_counts=True)[1].max() / len(corpus.test))
