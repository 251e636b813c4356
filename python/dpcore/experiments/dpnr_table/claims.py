"""Audits of the claims of trained systems on the largest pair of the corpus."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from ...auditing.run import audit
from ...records import Counts, Shown
from ...structure import inspect
from .cases import NOISES
from .material import Material

__all__ = ["Claim", "Verdict", "audit_claim"]

_SHARED_NOISE_DRAWS: Final = 2048
"""Outputs in each main call of an inspection, which looks for shared noise."""


@dataclass(frozen=True, slots=True, repr=False)
class Claim(Shown):
    """One claim to audit.

    Args:
        system: one of `NOISES`.
        encoder: name of the encoder.
        claim: the epsilon claimed.
    """

    system: str
    encoder: str
    claim: float


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Shown):
    """Result of the audit of one claim.

    Args:
        claim: what was audited.
        seed: repeats it.
        counts: of its event.
        true: epsilon for any two texts.
        exact: exact loss of the largest pair, computed from the declared noise.
        certified: the certified bound.
        refuted: True if the claim was refuted.
        flags: checks of the noise's structure that found a fault.
        partial: True if Ctrl-C ended it early.
    """

    claim: Claim
    seed: int
    counts: Counts
    true: float
    exact: float
    certified: float
    refuted: bool
    flags: tuple[str, ...]
    partial: bool


def audit_claim(claim: Claim, made: Material, seed: int, config: Any) -> Verdict:
    """Audit a system on its corpus's largest pair, and inspect its noise.

    Args:
        claim: what to audit.
        made: texts, encoders and pairs.
        seed: of audit and inspection.
        config: the experiment's.
    """
    from ...text.systems import DPNR

    noise, scale = NOISES[claim.system]
    extractor, pair = made.extractors[claim.encoder], made.pairs[claim.encoder]
    model = DPNR(epsilon=claim.claim, extractor=extractor, noise=noise, scale=scale)
    # The classifier plays no part: what is sent are the vectors in front of it.
    model.fit(made.corpus, epochs=1, pair=False, rng=seed, device=config.device, progress=False)
    assert model.private is not None
    flags = inspect(
        model.private.noise, model.clean([pair.x])[0], draws=_SHARED_NOISE_DRAWS, rng=seed
    ).flagged
    found = audit(
        model, pair, claim=claim.claim, trials=config.trials, confidence=config.confidence,
        rng=seed, progress=False,
    )  # fmt: skip
    assert found.declared_loss is not None
    return Verdict(
        claim, found.seed, found.counts, model.true_epsilon, float(found.declared_loss),
        found.epsilon_lower, found.refuted is True, flags, found.partial,
    )  # fmt: skip
