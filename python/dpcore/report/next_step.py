"""What to do about a claim that was not refuted: more trials, another pair, another attack."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..bounds.power import gaussian_event, trials_for
from ..bounds.violations import loss_of_factor
from ..pairs import distances
from ..records import Counts
from ..results.audits import Audit
from ..results.certificate import draws_needed, tells_nothing, trials_needed
from ..results.figures import numerator_first
from ..results.recorded import OutputsAudit

_PAIR: Final = "another pair of neighbours (dpcore.pairs.search looks for one)"
_ONE_ENTRY: Final = 'the same distance in one entry (dpcore.pairs.patterns(dim, "one"))'
_SPREAD: Final = 8
"""From so many entries on, spreading costs `auto` a third of the loss or more (measured: .69 of 1
at 8 entries, .93 at 4, with 2 x 10^5 trials)."""
_FACTOR: Final = 0.9
"""Of a scale that is a tenth too small: the violation that a report speaks of."""
_TEXTS: Final = "another pair of texts (an encoder's worst_pair(texts) looks for one)"


def next_step(audit: Audit) -> str:
    """One sentence on what would refute a claim that stands; empty where there is no such claim.

    Args:
        audit: the audit.

    Returns:
        The sentence, with the audit's own figures.
    """
    if audit.refuted is not False:
        return ""
    if _harmless(audit):
        other = _TEXTS if isinstance(audit.pair.x, str) else _PAIR
        return f"{other}: no attack sees more on this one than its exact loss, if that is true"
    other = f"{_ONE_ENTRY}, {_PAIR}" if _spread(audit) else _PAIR
    elsewhere = f"{other} or another attack ({_attacks(audit)})"
    if tells_nothing(audit.counts) and not audit.pooled:
        return f"{elsewhere}: with this event no number of trials is enough"
    trials = None if audit.pooled or _seen_too_little(audit) else trials_needed(audit)
    if trials is None and not audit.pooled and _turned(audit):
        return (
            f"a larger pilot than {audit.pilot:,} draws a side, for it chose the wrong direction; "
            f"or {elsewhere}"
        )
    if trials is None:
        more = "" if audit.pooled else ": at these frequencies no number of trials is enough"
        return f"{elsewhere}{more}"
    if audit.route == "timed":
        # Of a side; the counts are of calls on both.
        trials = -(-trials // 2)
    if trials <= audit.trials:
        return (
            f'a fresh audit with bound="clopper_pearson" and {audit.trials:,} trials fixed in '
            f"advance, if the frequencies stay as they are; or {elsewhere}"
        )
    return (
        f"about {trials:,} trials on each side, if the frequencies stay as they are; or {elsewhere}"
    )


def _spread(audit: Audit) -> bool:
    """Whether the pair spreads over many entries what an L1 claim allows in a single one."""
    l1 = getattr(audit.mechanism, "norm", None) == "l1" or audit.neighbour.startswith("L1(")
    return l1 and distances(audit.pair).get("changed", 0) >= _SPREAD


def _harmless(audit: Audit) -> bool:
    """Whether the declared noise keeps the claim on this pair."""
    whole = (audit.claim or 0.0) * (1.0 if audit.delta else audit.pair.distance)
    return audit.declared_loss is not None and audit.declared_loss <= whole


def more_rows(audit: OutputsAudit) -> str:
    """The same for recorded outputs with rows of their own: more of them, or another attack.

    Args:
        audit: the audit.

    Returns:
        The sentence; empty where no claim stands, or for canaries of one run.
    """
    if audit.refuted is not False or audit.counts is None:
        return ""
    seen = numerator_first(audit.counts, audit.direction)
    claim = (audit.claim or 0.0) * audit.pair.distance
    rows = draws_needed(seen, claim, audit.delta, audit.confidence)
    elsewhere = "outputs of another pair of neighbours, or another attack"
    if rows is None:
        return f"{elsewhere}: at these frequencies no number of rows is enough"
    return (
        f"about {rows:,} counted rows on each side, if the frequencies stay as they are; "
        f"or {elsewhere}"
    )


def size_for_a_tenth(audit: Audit | OutputsAudit) -> str:
    """How many trials noise that is a tenth too small would have taken, where a claim stands.

    Of an event as likely as the one that was counted, which shows all of the loss; of Gaussian
    noise, the event that finds it soonest.

    Args:
        audit: the audit.

    Returns:
        The sentence; empty where no claim above 0 stands, or for canaries of one run.
    """
    counts = audit.counts
    if audit.refuted is not False or not audit.claim or counts is None:
        return ""
    seen = numerator_first(counts, audit.direction)
    claim, delta = audit.claim * audit.pair.distance, audit.delta
    true = loss_of_factor(claim, _FACTOR, delta)
    mass, trials = _tenth(claim, true, _mass(seen, true), delta, audit.confidence)
    shown = true if delta else true / audit.pair.distance
    rows = "trials" if isinstance(audit, Audit) else "counted rows"
    many = "more" if trials is None else f"{trials:,}" if trials < 10**10 else f"{trials:.1e}"
    than = " than can be counted" if trials is None else ""
    return (
        f"{'Gaussian ' if delta else ''}noise a tenth too small, a loss of {shown:.4g}, takes "
        f"{many} {rows} on each side{than} for 95 % probability, where an event of "
        f"probability {mass:.2g} shows {'most' if delta else 'all'} of it (dpcore.plan tells more)"
    )


def _mass(seen: Counts, true: float) -> float:
    """How often the event happened; one half where it tells nothing, never more than it may."""
    if tells_nothing(seen) or seen.k == 0:
        return 0.5
    # An event of a larger mass whose quotient is e^true shows more on its complement.
    return min(seen.k / seen.n, 1.0 / (1.0 + math.exp(-true)))


@lru_cache(maxsize=64)
def _tenth(
    claim: float, true: float, mass: float, delta: float, confidence: float
) -> tuple[float, int | None]:
    """The event's mass, and the trials, rounded up to two digits."""
    rates = mass, mass * math.exp(-true)
    if delta:
        rates = gaussian_event(claim, true, delta, confidence, 0.95)
    trials = trials_for(claim, [rates], delta, confidence, rough=True)
    if trials is None:
        return rates[0], None
    unit: int = 10 ** max(0, len(str(trials)) - 2)
    return rates[0], -(-trials // unit) * unit


def _seen_too_little(audit: Audit) -> bool:
    """Whether the closed form says that this event cannot refute the claim at all."""
    claim = (audit.claim or 0.0) * (audit.pair.distance if audit.delta else 1.0)
    return audit.exact is not None and audit.exact <= claim * (1.0 + 1e-12)


def _turned(audit: Audit) -> bool:
    """Whether the other direction would refute the claim."""
    other = "x_prime" if audit.direction == "x" else "x"
    return trials_needed(replace(audit, direction=other)) is not None


def _attacks(audit: Audit) -> str:
    """Attacks that were not the one that was tried, the likeliest to see more first."""
    if audit.route == "timed":
        return "auto, on outputs alone"
    usual = ["auto", "Coordinatewise", "Classifier"] if audit.elements > 1 else ["auto"]
    tried = audit.attack.partition("(")[0].lower()
    found = [name for name in usual if name.lower() != tried]
    return ", ".join(found) if found else "one of your own"
