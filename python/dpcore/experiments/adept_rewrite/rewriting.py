"""The two steps of the experiment: an auto-encoder is trained, and rewrites under some noise."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ...auditing.run import audit
from ...records import Shown
from ...text.inference.judging import Measured
from ..running import cell_seed
from .corpora import Texts, rejoin_words
from .utility import Utility, compute_bleu, measure_intent_utility

__all__ = [
    "DELTA",
    "Cell",
    "Fitted",
    "Row",
    "Setup",
    "clip_of",
    "rewrite_and_audit",
    "train_encoder",
]

DELTA: Final = 1e-5
"""The delta of the Gaussian claim."""
_MAX_TRAINING_REWRITES: Final = 1000
"""Training texts that are rewritten, at most."""


@dataclass(frozen=True, slots=True, repr=False)
class Setup(Shown):
    """One auto-encoder to train.

    Args:
        corpus: name of its corpus.
        clip: the norm of the clip: "l1" or "l2".
        hidden: entries of a state; vectors have twice as many.
        number: 0 for the first seed, and so on.
    """

    corpus: str
    clip: str
    hidden: int
    number: int

    @property
    def key(self) -> str:
        """Key from which the seed is derived."""
        return f"train/{self.corpus}/{self.clip}/{self.hidden}/{self.number}"


def clip_of(variant: str) -> str:
    """Return the norm in which a variant clips."""
    return "l1" if variant == "l1" else "l2"


@dataclass(frozen=True, slots=True, repr=False)
class Fitted(Shown):
    """A trained auto-encoder, without noise.

    Args:
        setup: which one.
        model: the auto-encoder; None in a result.
        pair: the two texts to rewrite that are farthest apart.
        trained: how it was trained.
        bleu: of the texts to rewrite, without noise.
        memorised: BLEU of training texts, without noise.
        plain: utility of the texts decoded without noise.
        examples: rewrites without noise of the first texts.
    """

    setup: Setup
    model: Any
    pair: tuple[str, str]
    trained: Any
    bleu: float
    memorised: float
    plain: Utility
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """The rewrites of one trained auto-encoder under one noise.

    Args:
        seed: repeats its noise.
        true: the epsilon that holds for any two texts.
        exact: the exact loss of the largest pair, computed from the declared noise.
        on_vector: what an audit of the vectors certifies on that pair.
        on_text: what an audit of the rewritten texts certifies on it.
        event: the event of the latter, in words.
        refuted: which of the two audits refuted the claim.
        bleu: of the rewrites.
        unchanged: share of the texts that were rewritten to themselves.
        told: utility of the rewrites.
        memorised: BLEU of rewritten training texts: these are no private texts.
        examples: rewrites of the first texts.
        partial: True if Ctrl-C ended an audit early.
    """

    seed: int
    true: float
    exact: float
    on_vector: float
    on_text: float
    event: str
    refuted: tuple[bool, bool]
    bleu: float
    unchanged: float
    told: Utility
    memorised: float
    examples: tuple[str, ...]
    partial: bool


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """A variant at a claim: one cell for each seed.

    Args:
        corpus: name of the corpus.
        hidden: entries of a state.
        variant: of the noise.
        claimed: the epsilon claimed.
        cells: one for each seed.
    """

    corpus: str
    hidden: int
    variant: str
    claimed: float
    cells: tuple[Cell, ...]

    @property
    def true(self) -> float:
        """The epsilon that holds for any two texts."""
        return self.cells[0].true

    @property
    def accuracy(self) -> Measured:
        """Share of texts with a correctly predicted intent; of several seeds mean and spread."""
        return _join_seeds([cell.told.accuracy for cell in self.cells])

    @property
    def f1(self) -> Measured:
        """Macro-F1 of the intents; of several seeds mean and spread."""
        return _join_seeds([cell.told.f1 for cell in self.cells])

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the seeds."""
        return statistics.fmean(getattr(cell, name) for cell in self.cells)

    @property
    def refuted(self) -> bool:
        """True if an audit refuted the claim."""
        return any(any(cell.refuted) for cell in self.cells)


def _join_seeds(values: Sequence[Measured]) -> Measured:
    if len(values) == 1:
        return values[0]
    each = [one.value for one in values]
    mean, wide = statistics.fmean(each), statistics.stdev(each)
    return Measured(mean, mean - wide, mean + wide, f"mean and spread of {len(each)} seeds")


def train_encoder(setup: Setup, texts: Texts, config: Any) -> Fitted:
    """Train an auto-encoder without noise, and decode texts without noise.

    Args:
        setup: which one.
        texts: its corpus.
        config: has `seed`, `confidence`, `device` and `examples`.
    """
    from ...text import ADePT

    model = ADePT(
        1.0,
        variant="l1" if setup.clip == "l1" else "scaled",
        hidden=setup.hidden,
        embedding=max(1, setup.hidden // 2),
        min_count=texts.min_count,
    )
    seed = cell_seed(config.seed, setup.key)
    model.fit(
        list(texts.train), epochs=texts.epochs, pair=False, rng=seed, device=config.device,
        progress=False,
    )  # fmt: skip
    pair = model.worst_pair(texts.held, progress=False)
    found = model.decode(model.clean(texts.held))
    public = _choose_public(texts)
    return Fitted(
        setup,
        model,
        (pair.x, pair.x_prime),
        model.trained,
        compute_bleu(found, list(map(rejoin_words, texts.held))),
        compute_bleu(model.decode(model.clean(public)), list(map(rejoin_words, public))),
        measure_intent_utility(found, texts, config.confidence, seed),
        tuple(found[: config.examples]),
    )


def _choose_public(texts: Texts) -> list[str]:
    """Choose training texts at equal distances in their file, which may be sorted."""
    step = math.ceil(len(texts.train) / _MAX_TRAINING_REWRITES)
    return list(texts.train[::step])


def rewrite_and_audit(
    fitted: Fitted, texts: Texts, variant: str, claimed: float, config: Any
) -> Cell:
    """Rewrite the held-out texts and audit vectors and rewrites on the largest pair.

    Args:
        fitted: the auto-encoder.
        texts: its corpus.
        variant: of the noise.
        claimed: the epsilon claimed.
        config: has `trials`, `text_trials`, `seed`, `confidence` and `examples`.
    """
    setup = fitted.setup
    delta = DELTA if variant == "gaussian" else 0.0
    model = fitted.model.renoised(claimed, variant=variant, delta=delta)
    place = f"{setup.corpus}/{setup.hidden}/{setup.number}/{variant}/{claimed!r}"
    seed = cell_seed(config.seed, place)
    originals, public = list(map(rejoin_words, texts.held)), _choose_public(texts)
    found = model.rewrite(texts.held, rng=seed)
    audits = [
        audit(
            mechanism, fitted.pair, claim=claimed, delta=delta, trials=trials,
            confidence=config.confidence, rng=seed, progress=False,
        )
        for mechanism, trials in ((model, config.trials), (model.rewriter, config.text_trials))
    ]  # fmt: skip
    exact = audits[0].declared_loss
    assert exact is not None
    return Cell(
        seed,
        model.true_epsilon,
        float(exact),
        audits[0].epsilon_lower,
        audits[1].epsilon_lower,
        str(audits[1].event),
        (audits[0].refuted is True, audits[1].refuted is True),
        compute_bleu(found, originals),
        sum(map(str.__eq__, found, originals)) / len(found),
        measure_intent_utility(found, texts, config.confidence, seed),
        compute_bleu(
            model.rewrite(public, rng=cell_seed(seed, "public")), list(map(rejoin_words, public))
        ),
        tuple(found[: config.examples]),
        any(one.partial for one in audits),
    )
