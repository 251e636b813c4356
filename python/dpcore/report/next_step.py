"""What to do about a claim that was not refuted: more trials, another pair, another attack."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..pairs import distances
from ..results.audits import Audit
from ..results.certificate import draws_needed, tells_nothing, trials_needed
from ..results.figures import numerator_first
from ..results.recorded import OutputsAudit

_PAIR: Final = "another pair of neighbours (dpcore.pairs.search looks for one)"
_ONE_ENTRY: Final = 'the same distance in one entry (dpcore.pairs.patterns(dim, "one"))'
_SPREAD: Final = 8
"""From so many entries on, spreading costs `auto` a third of the loss or more (measured: .69 of 1
at 8 entries, .93 at 4, with 2 x 10^5 trials)."""
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
