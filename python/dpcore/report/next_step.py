"""Advice after a claim was not refuted: more trials, another pair, another attack."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import Final

from ..bounds.power import MOST_TRIALS, gaussian_event, trials_for
from ..bounds.violations import loss_of_factor
from ..pairs import distances
from ..records import Counts
from ..results.audits import Audit
from ..results.certificate import draws_needed, exceeds_claim, tells_nothing, trials_needed
from ..results.figures import numerator_first
from ..results.planned import AUTO_FACTOR
from ..results.recorded import OutputsAudit

_OTHER_PAIR: Final = "another pair (dpcore.pairs.search)"
_OTHER_TEXTS: Final = "another pair of texts (worst_pair of an encoder)"
_OTHER_ROWS: Final = "another pair (dpcore.audit_table compares all exactly)"
_ONE_ENTRY: Final = 'the same distance in one entry (dpcore.pairs.patterns(dim, "one"))'
_OWN_SCORE: Final = "an own score (dpcore.attacks.Threshold(score=...))"
_TOO_MANY_TRIALS: Final = (
    "more than 1e+18 {rows} on each side: the bound grows as the logarithm of their number"
)
_NO_SUFFICIENT_NUMBER: Final = "At these frequencies no number of {rows} is enough."
_MANY_CHANGED_ENTRIES: Final = 8
"""From so many entries on, spreading costs `auto` a third of the loss or more (measured: .69 of 1
at 8 entries, .93 at 4, with 2 x 10^5 trials)."""
_AUTO_MULTIPLE: Final = f"{AUTO_FACTOR} times as many"
_EXAMPLE_SCALE_FACTOR: Final = 0.9
"""Of a scale that is a tenth too small: the violation that a report speaks of."""
_SMALL_CLAIM_SHARE: Final = 0.5
"""Share of the claim below which a report suggests a score of the user's own."""
_WRONG_DIRECTION_FACTOR: Final = 10
"""A direction is called wrong where the other one would refute with so many times the trials."""


def next_step(audit: Audit) -> str:
    """Return one line on steps that may refute a claim not yet refuted, the most promising first.

    Args:
        audit: the audit.

    Returns:
        One or two short sentences with the audit's own figures; empty where no claim stands.
    """
    if audit.refuted is not False:
        return ""
    pair = _OTHER_TEXTS if isinstance(audit.pair.x, str) else _OTHER_PAIR
    pair = _OTHER_ROWS if hasattr(audit.mechanism, "log_rows") else pair
    if _keeps_claim(audit):
        return f"{pair}: on this one the declared noise keeps the claim."
    other = _list_other_steps(audit, pair)
    if audit.pooled:
        return f"{' or '.join(other)}."
    if _is_event_too_weak(audit):
        seen = f"This attack sees a loss of {audit.exact:.4g} on this pair"
        return f"{' or '.join(other)}. {seen}, with any number of trials."
    if tells_nothing(audit.counts):
        return f"{' or '.join(other)}. With this event no number of trials is enough."
    trials = trials_needed(audit)
    if trials is None and not _has_excess_frequencies(audit):
        return _describe_step_without_trials(audit, other)
    more = _describe_more_trials(audit, trials)
    if audit.bound_counts.k_prime == 0 or trials is None:
        # No event shows more than one that never happens on the other side.
        return f"{more}."
    if other[0] == _ONE_ENTRY:
        return f"{_ONE_ENTRY}, or {more}."
    return f"{more}; or {' or '.join(other)}."


def _describe_step_without_trials(audit: Audit, other: list[str]) -> str:
    """Describe the next step if the frequencies of the event show no more than the claim."""
    if _is_direction_wrong(audit):
        pilot = f"a larger pilot than {audit.pilot:,} draws a side: it chose the wrong direction"
        return f"{pilot}. Or {' or '.join(other)}."
    if audit.exact is not None:
        # The vote shows more than the claim, whatever these draws say.
        return f"more trials: this attack sees a loss of {audit.exact:.4g} on this pair."
    if audit.delta and audit.attack.lower().startswith("auto"):
        # The best event of a claim with delta depends on the number of trials.
        return f"{' or '.join(other)}. With more trials `auto` chooses another event."
    return f"{' or '.join(other)}. {_NO_SUFFICIENT_NUMBER.format(rows='trials')}"


def _describe_more_trials(audit: Audit, trials: int | None) -> str:
    """Describe the number of trials that would refute the claim."""
    if trials is None:
        return _TOO_MANY_TRIALS.format(rows="trials")
    if audit.route == "timed":
        # Of a side; the counts are of calls on both.
        trials = -(-trials // 2)
    same = "if the frequencies stay the same"
    if trials <= audit.trials:
        fresh = 'a fresh audit with bound="clopper_pearson"'
        return f"{fresh} and {audit.trials:,} trials fixed in advance, {same}"
    return f"about {_format_large_number(trials)} trials on each side, {same}"


def _list_other_steps(audit: Audit, pair: str) -> list[str]:
    """Return the two most promising steps other than more trials, the better one first."""
    usual = ["auto", "Coordinatewise", "Classifier"] if audit.elements > 1 else ["auto"]
    tried = audit.attack.partition("(")[0].lower()
    left = [name for name in usual if name.lower() != tried]
    if audit.route == "timed":
        left = ["auto, on outputs alone"]
    attacks = f"another attack ({', '.join(left)})"
    if _differs_in_many_entries(audit):
        return [_ONE_ENTRY, pair]
    if tried != "auto":
        return [attacks, pair]
    return [pair, _OWN_SCORE if _certifies_little(audit) or not left else attacks]


def _has_excess_frequencies(audit: Audit) -> bool:
    """Return True if the frequencies of the event show more than the claim."""
    claim = (audit.claimed_epsilon or 0.0) * audit.pair.distance
    return exceeds_claim(audit.bound_counts, claim, audit.delta)


def _format_large_number(number: int) -> str:
    return f"{number:,}" if number < 10**10 else f"{number:.2g}"


def _differs_in_many_entries(audit: Audit) -> bool:
    """Return True if an L1 claim's pair differs in many entries, not in one."""
    l1 = getattr(audit.mechanism, "norm", None) == "l1" or audit.neighbour.startswith("L1(")
    return l1 and distances(audit.pair).get("changed", 0) >= _MANY_CHANGED_ENTRIES


def _keeps_claim(audit: Audit) -> bool:
    """Return True if the declared noise keeps the claim on this pair."""
    whole = (audit.claimed_epsilon or 0.0) * (1.0 if audit.delta else audit.pair.distance)
    return audit.declared_loss is not None and audit.declared_loss <= whole


def more_rows(audit: OutputsAudit) -> str:
    """Return the next steps for recorded outputs: more rows, another attack, other canaries.

    Args:
        audit: the audit.

    Returns:
        One or two short sentences; empty where no claim stands. For canaries of one run empty
        too, unless they certify less than half of a claim that they could refute.
    """
    if audit.refuted is not False:
        return ""
    if audit.counts is None:
        enough = audit.ceiling is not None and audit.ceiling > (audit.claimed_epsilon or 0.0)
        better = "canaries that stand out more, or scores that separate them better."
        return better if enough and _certifies_little(audit) else ""
    seen = numerator_first(audit.counts, audit.direction)
    claim = (audit.claimed_epsilon or 0.0) * audit.pair.distance
    rows = draws_needed(seen, claim, audit.delta, audit.confidence)
    other = "outputs of another pair, or another attack"
    if _certifies_little(audit):
        other = f"outputs of another pair, another attack or {_OWN_SCORE}"
    if rows is None and not exceeds_claim(seen, claim, audit.delta):
        return f"{other}. {_NO_SUFFICIENT_NUMBER.format(rows='rows')}"
    if rows is None:
        return f"{_TOO_MANY_TRIALS.format(rows='counted rows')}."
    more = f"about {_format_large_number(rows)} counted rows on each side"
    more += ", if the frequencies stay the same"
    return f"{more}." if seen.k_prime == 0 else f"{more}; or {other}."


def size_for_a_tenth(audit: Audit | OutputsAudit) -> str:
    """Describe the trials that find noise a tenth too small, if the claim is not refuted.

    For an event as likely as the one that was counted, which shows all of the loss; for Gaussian
    noise, the event that finds it soonest.

    Args:
        audit: the audit.

    Returns:
        Two short sentences; empty where no claim above 0 stands, or for canaries of one run.
    """
    counts = audit.counts
    if audit.refuted is not False or not audit.claimed_epsilon or counts is None:
        return ""
    seen = numerator_first(counts, audit.direction)
    if isinstance(audit, Audit) and audit.route == "timed":
        # Of calls on either side, half are on each.
        seen = Counts(seen.k, seen.n // 2, seen.k_prime, seen.n_prime // 2)
    claim, delta = audit.claimed_epsilon * audit.pair.distance, audit.delta
    true = loss_of_factor(claim, _EXAMPLE_SCALE_FACTOR, delta)
    mass, trials = _mass_and_trials(
        claim, true, _event_frequency(seen, true), delta, audit.confidence
    )
    shown = true if delta else true / audit.pair.distance
    noise = f"{'Gaussian ' if delta else ''}noise a tenth too small (loss {shown:.4g})"
    rows = "trials" if isinstance(audit, Audit) else "counted rows"
    if trials is None:
        return f"{noise} takes more than {MOST_TRIALS:.0e} {rows} on each side."
    found = (
        f"{noise} is refuted with 95 % probability by {_format_large_number(trials)} {rows} on each "
        f"side, for an attacker who knows the event (probability {mass:.2g})."
    )
    # Where the attack saw little, it takes far more.
    return (
        found
        if _certifies_little(audit)
        else f"{found} `auto` usually takes up to {_AUTO_MULTIPLE}."
    )


def _certifies_little(audit: Audit | OutputsAudit) -> bool:
    """Return True if less than half of the claim was certified."""
    return audit.epsilon_lower < _SMALL_CLAIM_SHARE * (audit.claimed_epsilon or 0.0)


def _event_frequency(seen: Counts, true: float) -> float:
    """Return the frequency of the event, .5 if it shows nothing, limited to a useful maximum."""
    if tells_nothing(seen) or seen.k == 0:
        return 0.5
    # An event of a larger mass whose quotient is e^true shows more on its complement.
    return min(seen.k / seen.n, 1.0 / (1.0 + math.exp(-true)))


@lru_cache(maxsize=64)
def _mass_and_trials(
    claim: float, true: float, mass: float, delta: float, confidence: float
) -> tuple[float, int | None]:
    """Return the mass of the event that shows a loss, and the trials that refute the claim by it.

    Trials are rounded up to two digits; None where too many are needed.
    """
    rates = mass, mass * math.exp(-true)
    if delta:
        rates = gaussian_event(claim, true, delta, confidence, 0.95)
    trials = trials_for(claim, [rates], delta, confidence, rough=True)
    if trials is None:
        return rates[0], None
    unit: int = 10 ** max(0, len(str(trials)) - 2)
    return rates[0], -(-trials // unit) * unit


def _is_event_too_weak(audit: Audit) -> bool:
    """Return True if the closed form says that this event cannot refute the claim."""
    claim = (audit.claimed_epsilon or 0.0) * (audit.pair.distance if audit.delta else 1.0)
    return audit.exact is not None and audit.exact <= claim * (1.0 + 1e-12)


def _is_direction_wrong(audit: Audit) -> bool:
    """Return True if the other direction would soon refute the claim."""
    other = replace(audit, direction="x_prime" if audit.direction == "x" else "x")
    trials = trials_needed(other)
    return trials is not None and trials <= _WRONG_DIRECTION_FACTOR * audit.counts.n
