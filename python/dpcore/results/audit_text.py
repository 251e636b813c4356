"""Rows (label, text) of the reports on audits: of a mechanism, or of recorded outputs.

The rows include the distances between the two inputs of the audit. If the claim was not refuted,
the rows also include steps that may refute the claim.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from ..bounds import BOUNDS, clopper_pearson, power
from ..bounds.binomial import find_declaration
from ..claims.trade_off import Claim
from ..exact import explain_infinite_loss
from ..mechanisms.callables import is_user_code
from ..mechanisms.declarations import can_core_draw, convert_pair, get_or_default
from ..pairs import distances, patterns
from ..pairs.differences import MOST_CHANGES, inputs_equal
from ..records import Counts, Pair
from ..report.rows import Row, format_epsilon
from ..report.shown import on_one_line
from ..streams import trials_per_thread
from .evidence import put_numerator_first
from .guesses import OUTPUTS_BOUNDS, ROWS, Guesses
from .need import (
    can_swapped_direction_refute,
    certifies_less_than_half,
    claim_times_distance,
    confidence_of_each_bound,
    counts_with_n_per_side,
    draws_needed,
    is_declared_noise_enough,
    is_event_unable_to_refute_claim,
    is_observed_loss_above,
    is_recorded,
    low_noise_draws,
    trials_to_refute,
)

if TYPE_CHECKING:
    from .audits import Audit
    from .outputs_audits import OutputsAudit

_NORM_NAMES = {"l1": "L1", "l2": "L2", "linf": "Linf"}

_OTHER_PAIR: Final = "another pair (dpcore.pairs.search)"
_OTHER_TEXTS: Final = "another pair of texts (worst_pair of an encoder)"
_OTHER_ROWS: Final = "another pair (dpcore.audit_table compares all exactly)"
_ONE_ENTRY: Final = 'the same distance in one entry (dpcore.pairs.patterns({dim}, "one"))'
_OWN_SCORE: Final = "an own score (dpcore.attacks.Threshold(score=...))"
_TOO_MANY_TRIALS: Final = (
    "more than 1e+18 {rows} on each side: the bound grows as the logarithm of their number"
)
_TOO_WEAK: Final = "This event cannot refute the claim."
_ALL_PATTERNS: Final = 'pairs in which every entry changes (dpcore.pairs.patterns({dim}, "all"))'
_MANY_CHANGED_ENTRIES: Final = 8
"""If at least this number of entries change, the report proposes a pair with one changed entry,
because the attack `auto` then certifies at most about two thirds of the loss (.69 of 1 at 8
entries)."""
_MAX_DRAWABLE_TRIALS: Final = 10**13
"""Number of trials that the fastest sampler draws in a few hours."""
ROUNDING = (
    "the last bits of raw floats reveal the input, as they do for every textbook sampler of "
    "continuous noise (Mironov 2012): if you release outputs, round them to a coarse grid or "
    "draw discrete noise"
)
"""Text on an event about the last bits of floats: the cause of the leak, and a remedy."""

_AUC_MEANING: Final = "of included canaries against others (not a bound)"

NOTHING = "nothing: no bound holds, for the rows are not independent draws"
"""Text of the report row `certified` if a check found that outputs are not independent."""

REPEATED = {
    "seed": "",
    "rounding": "the seed repeats the outputs up to rounding, not bit for bit",
    "own": "the mechanism draws its own randomness, which no seed repeats",
    "not known": "whether the seed repeats the outputs is not known",
}
"""For each value of `Audit.randomness`, how exactly the seed repeats the draws of a callable."""


def describe_neighbours(audit: Audit) -> str:
    """Return a text on the neighbour relation between the two inputs of an audit.

    Args:
        audit: result of the audit.

    Returns:
        Text with the neighbour relation that the audit checked for the two inputs. If the two
        inputs are equal, the text states this instead. If a claim but no relation was given, the
        text states that the claim was tested for these two inputs only. If neither a claim nor a
        relation was given, the text is "".
    """
    # JSON keeps only the name of most mechanisms.
    pair = convert_pair(audit.mechanism, audit.pair) if callable(audit.mechanism) else audit.pair
    if inputs_equal(pair.x, pair.x_prime):
        return "the two inputs are equal: whatever is found is a false alarm"
    if audit.neighbour:
        return f"{audit.neighbour}, which holds for this pair"
    if audit.claim is None:
        return ""
    apart = "" if audit.pair.distance == 1.0 else f", at distance {audit.pair.distance:g}"
    own = _describe_distance_of_mechanism_claim(audit)
    return f"not given: the claim is tested for these two inputs only{apart}{own}"


def _describe_distance_of_mechanism_claim(audit: Audit) -> str:
    """Describe the distance that the mechanism's own claim covers, if this claim was tested."""
    norm, most = (get_or_default(audit.mechanism, name) for name in ("norm", "sensitivity"))
    if audit.own_claim != audit.claim or norm not in _NORM_NAMES or most is None:
        return ""
    return f" (the mechanism's claim covers {_NORM_NAMES[norm]} distance at most {most:g})"


def _format_distances(pair: Pair | None) -> str:
    apart: dict[str, Any] = {} if pair is None else distances(pair)
    parts = [f"{shown} {apart[norm]:.6g}" for norm, shown in _NORM_NAMES.items() if norm in apart]
    if "changed" in apart:
        entries = _format_plural_count(apart["entries"], "entry")
        parts.append(f"{apart['changed']:,} of {entries} changed")
    if "replaced" in apart:
        size = _format_plural_count(apart["size"], apart["unit"])
        parts.append(f"{apart['replaced']:,} of {size} replaced")
    if "added_or_removed" in apart:
        parts.append(_format_added_or_removed_records(apart))
    return ", ".join(parts)


def _format_added_or_removed_records(changes: dict[str, Any]) -> str:
    number = changes["added_or_removed"]
    shown = f"{number:,}" if number <= MOST_CHANGES else f"more than {MOST_CHANGES}"
    if "replaced" in changes:
        return f"or {shown} added or removed"
    sizes = f"{changes['size']:,} on x, {changes['size_prime']:,} on x'"
    unit = changes["unit"] if number == 1 else f"{changes['unit']}s"
    return f"{shown} {unit} added or removed ({sizes})"


def _format_plural_count(number: int, what: str) -> str:
    plural = f"{what[:-1]}ies" if what.endswith("y") else f"{what}s"
    return f"{number:,} {what if number == 1 else plural}"


def describe_next_steps(audit: Audit) -> str:
    """Return advice, on one line, on how to refute a claim that an audit did not refute.

    Args:
        audit: result of the audit.

    Returns:
        One or two short sentences, the most promising step first. The text is "" if no claim was
        given or if the claim was refuted.
    """
    if audit.undecided:
        return describe_how_to_refute(audit)
    if audit.refuted is not False:
        return ""
    pair = _OTHER_TEXTS if isinstance(audit.pair.x, str) else _OTHER_PAIR
    pair = _OTHER_ROWS if get_or_default(audit.mechanism, "log_rows") else pair
    if is_declared_noise_enough(audit):
        return f"{pair}: on this one the declared noise keeps the claim."
    other = _two_best_steps_besides_trials(audit, pair)
    steps = " or ".join(other)
    if audit.pooled:
        return f"{steps}."
    if is_event_unable_to_refute_claim(audit):
        sight = f"This attack sees a loss of {audit.exact:.4g} on this pair"
        return f"{steps}. {sight}, with any number of trials."
    trials = trials_to_refute(audit)
    claim = claim_times_distance(audit)
    if trials is None and not is_observed_loss_above(audit.bound_counts, claim, audit.delta):
        return _next_step_if_rates_below_claim(audit, steps)
    more = _describe_trials_to_refute(audit, trials)
    if audit.bound_counts.k_prime == 0 or trials is None:
        # An event that never happens on the other side already shows the largest loss.
        return f"{more}."
    if _differs_in_many_entries_under_l1(audit) or _could_change_more_entries(audit):
        return f"{other[0]}, or {more}."
    return f"{more}; or {steps}."


def describe_how_to_refute(audit: Audit | OutputsAudit) -> str:
    """Describe what the user can change so that the claim of an audit can be refuted.

    Args:
        audit: result of an audit that could not have refuted the claim, so that the verdict is
            "undecided".
    """
    if audit.constant:
        texts = isinstance(audit.pair.x, str)
        pair = _OTHER_TEXTS if texts else "another pair (dpcore.pairs.search)"
        return f"{pair}: on this one no output differed."
    others = "a smaller claim or a claim with a delta"
    if is_recorded(audit):
        if isinstance(audit.evidence, Guesses):
            return f"{_needed_guess_text(audit.guesses_needed)}, or a smaller claim or confidence."
        rows, unit = audit.rows_to_reach, "counted rows" if audit.groups is None else "groups"
    else:
        rows, unit = audit.trials_to_reach, "trials"
        changed = distances(audit.pair).get("changed", 0)
        if changed > 1 and audit.shape == np.shape(audit.pair.x) and not audit.pooled:
            others = f'attack="coordinatewise" (for independent coordinates), {others}'
    if rows is None or rows > _MAX_DRAWABLE_TRIALS:
        return f"{others}: no machine draws the {unit} that could refute this one."
    return f"at least {_comma_or_exponent_text(rows)} {unit} on each side, or {others}."


def _next_step_if_rates_below_claim(audit: Audit, steps: str) -> str:
    """Describe the next step if the frequencies of the event do not exceed the claim.

    That is, even if the frequencies were the true probabilities, the event would not refute the
    claim.
    """
    if can_swapped_direction_refute(audit):
        pilot = f"a larger pilot than {audit.pilot:,} draws per side: it chose the wrong direction"
        return f"{pilot}. Or {steps}."
    if audit.exact is not None:
        # The vote shows more than the claim, whatever these draws show.
        return f"more trials: this attack sees a loss of {audit.exact:.4g} on this pair."
    return f"{_prepend_more_draws_if_few(audit, steps, 'trials')}. {_TOO_WEAK}"


def _prepend_more_draws_if_few(audit: Audit | OutputsAudit, steps: str, rows: str) -> str:
    """Put the step "more draws" before other steps, if the audit had too few draws.

    With more draws, an attack may choose another event. The attack MajorityVote always has the same
    event, so the steps for this attack are returned unchanged.
    """
    planned = low_noise_draws(audit)
    counts = put_numerator_first(counts_with_n_per_side(audit), audit.direction)
    is_enough = planned is not None and planned[2] is not None and planned[2] <= counts.n
    is_vote = audit.attack.lower().startswith("majority")
    if is_enough or is_vote or steps.startswith((_ONE_ENTRY, _ALL_PATTERNS[:9])):
        return steps
    return f"more {rows}, which choose another event; or {steps}"


def _describe_trials_to_refute(audit: Audit, trials: int | None) -> str:
    """Describe the number of trials that refutes the claim if the frequencies stay the same."""
    if trials is None:
        return _TOO_MANY_TRIALS.format(rows="trials")
    if audit.route == "timed":
        # A number per side; the counts are numbers of calls on both sides together.
        trials = -(-trials // 2)
    same = "if the frequencies stay the same"
    if trials <= audit.trials:
        fresh = 'a fresh audit with bound="clopper_pearson"'
        return f"{fresh} and {audit.trials:,} trials fixed in advance, {same}"
    return f"about {_comma_or_exponent_text(trials)} trials on each side, {same}"


def _two_best_steps_besides_trials(audit: Audit, pair: str) -> list[str]:
    """Return the two most promising steps other than more trials; the better step is first."""
    usual = ["auto", "Coordinatewise", "Classifier"] if audit.elements > 1 else ["auto"]
    tried = audit.attack.partition("(")[0].lower()
    left = [name for name in usual if name.lower() != tried]
    if audit.route == "timed":
        left = ["auto, on outputs alone"]
    attacks = f"another attack ({', '.join(left)})"
    if _differs_in_many_entries_under_l1(audit):
        return [_ONE_ENTRY.format(dim=np.size(audit.pair.x)), pair]
    if _could_change_more_entries(audit):
        return [_ALL_PATTERNS.format(dim=np.size(audit.pair.x)), pair]
    if tried != "auto":
        return [attacks, pair]
    return [pair, _OWN_SCORE if certifies_less_than_half(audit) or not left else attacks]


def _comma_or_exponent_text(number: int) -> str:
    return f"{number:,}" if number < 10**10 else f"{number:.2g}"


def _differs_in_many_entries_under_l1(audit: Audit) -> bool:
    """Return True if the L1 norm defines neighbours and the inputs differ in many entries."""
    l1 = get_or_default(audit.mechanism, "norm") == "l1" or audit.neighbour.startswith("L1(")
    return l1 and distances(audit.pair).get("changed", 0) >= _MANY_CHANGED_ENTRIES


def _could_change_more_entries(audit: Audit) -> bool:
    """Return True if the claim allows all entries to change, but the pair changes only some.

    That is, neighbours are defined by the Linf norm, and the pair is not a pattern of
    `dpcore.pairs` in which all entries change.
    """
    linf = get_or_default(audit.mechanism, "norm") == "linf"
    linf = linf or audit.neighbour.startswith("Linf(")
    if not linf or audit.searched is not None or np.ndim(audit.pair.x) != 1:
        return False
    size = len(audit.pair.x)
    return size > 1 and audit.pair not in patterns(size, "all")


def refutation_advice(audit: OutputsAudit) -> str:
    """Return advice, on one line, on how to refute a claim about recorded outputs.

    Examples are more rows (recorded outputs), another attack, or other canaries (training examples
    that are included by a coin flip).

    Args:
        audit: result of an audit of recorded outputs.

    Returns:
        One or two short sentences. The text is "" if no claim was given or if the claim was
        refuted. For canaries of one training run, the text is also "" if the certified epsilon is
        at least half of the claim.
    """
    if audit.undecided:
        return describe_how_to_refute(audit)
    if audit.refuted is not False:
        return ""
    if audit.counts is None:
        better = "canaries that stand out more, or scores that separate them better."
        return better if certifies_less_than_half(audit) else ""
    ordered = put_numerator_first(audit.counts, audit.direction)
    claim = claim_times_distance(audit)
    rows = draws_needed(ordered, claim, audit.delta, audit.confidence)
    other = "outputs of another pair, or another attack"
    if certifies_less_than_half(audit):
        other = f"outputs of another pair, another attack or {_OWN_SCORE}"
    if rows is None and not is_observed_loss_above(ordered, claim, audit.delta):
        return f"{_prepend_more_draws_if_few(audit, other, 'rows')}. {_TOO_WEAK}"
    if rows is None:
        return f"{_TOO_MANY_TRIALS.format(rows='counted rows')}."
    more = f"about {_comma_or_exponent_text(rows)} counted rows on each side"
    more += ", if the frequencies stay the same"
    return f"{more}." if ordered.k_prime == 0 else f"{more}; or {other}."


def describe_draws_to_detect_low_noise(audit: Audit | OutputsAudit) -> str:
    """State how many draws an audit needs to detect noise that is 10 % too small.

    With such noise, the privacy loss is larger than the claimed epsilon. If delta is 0, the
    function assumes an event whose log probability ratio is equal to this loss, and which is
    usually as frequent as the counted event. If delta is above 0, the function assumes Gaussian
    noise and the event that needs the fewest draws.

    Args:
        audit: result of the audit.

    Returns:
        One or two short sentences. The text is "" unless a claim above 0 was tested and not
        refuted. It is also "" for an audit of one training run with canaries.
    """
    if audit.refuted is not False or not audit.claimed_epsilon or audit.counts is None:
        return ""
    planned, delta = low_noise_draws(audit), audit.delta
    if planned is None:
        return ""
    true, mass, trials = planned
    shown = true if delta else true / audit.pair.distance
    noise = f"{'Gaussian ' if delta else ''}noise 10 % too small (loss {shown:.4g})"
    rows = "counted rows" if is_recorded(audit) else "trials"
    if trials is None:
        return f"{noise} takes more than {power.MOST_TRIALS:.0e} {rows} on each side."
    plan = (
        f"{noise} is refuted with 95 % probability by {_comma_or_exponent_text(trials)} {rows} on "
        f"each side, for an attacker who knows the event (probability {mass:.2g})."
    )
    # If the attack showed a small loss, it needs far more trials.
    auto = f" `auto` usually takes up to {power.AUTO_FACTOR} times as many."
    return plan if certifies_less_than_half(audit) else f"{plan}{auto}"


def list_report_rows_without_time(audit: Audit) -> list[Row]:
    """Return the report on an audit as rows (label, text), without the row "time"."""
    table = [
        ("verdict", audit.verdict),
        ("claim", _describe_claim(audit)),
        ("certified", NOTHING if audit.checks else _format_bound(audit, bound_method_text(audit))),
        ("estimate", f"{format_epsilon(audit.epsilon_hat)} (empirical loss, not a bound)"),
        ("closed form", _describe_exact_or_infinite_loss(audit)),
        ("exact loss", _declared_noise_loss_text(audit)),
        ("witness", describe_event(audit)),
        *(("inside", str(entry)) for entry in audit.inside),
        ("counts", format_counts(audit.counts)),
        ("reach", _describe_reach(audit)),
        *_pooled_coordinate_rows(audit),
        ("pair", f"x = {_shorten_value(audit.pair.x)}, x' = {_shorten_value(audit.pair.x_prime)}"),
        ("search", _describe_number_of_searched_pairs(audit)),
        ("budget", _describe_trials_in_time_budget(audit)),
        ("distances", _format_distances(audit.pair)),
        ("encoded", _format_distances(audit.clean)),
        ("neighbours", describe_neighbours(audit)),
        ("read", _describe_number_of_parts_read(audit)),
        ("NaN entries", f"{audit.nan:,} on x, {audit.nan_prime:,} on x'" if has_nan(audit) else ""),
        *_list_last_bits_event_rows(audit),
        ("seed", _describe_seed(audit)),
        ("device", audit.runs_on),
        ("needed", describe_next_steps(audit)),
        ("plan", describe_draws_to_detect_low_noise(audit)),
        ("note", propose_trace(audit)),
        ("note", "interrupted: only the trials shown were counted" if audit.partial else ""),
        *(
            ("note", entry)
            for entry in (both_bounds_confidence(audit), audit.power, *audit.notes, *audit.checks)
        ),
    ]
    return [(label, text) for label, text in table if text]


def has_nan(audit: Audit) -> bool:
    """Return True if a counted output of an audit has an entry that is NaN."""
    return audit.nan + audit.nan_prime > 0


def _describe_exact_or_infinite_loss(audit: Audit) -> str:
    if audit.exact is not None:
        return f"{format_epsilon(audit.exact)} (the loss this attack can see)"
    is_explained = can_core_draw(audit.mechanism)
    reason = explain_infinite_loss(audit.mechanism, audit.pair) if is_explained else None
    return f"infinite loss: {reason}" if reason else ""


def _format_bound(audit: Audit | OutputsAudit, level: str) -> str:
    """Format the certified bound with its unit, and `level` (confidence and name) in brackets."""
    unit = "" if audit.pair.distance == 1.0 or audit.delta else " per unit of distance"
    return f"{format_certified_bound(audit)}{unit} ({level})"


def format_certified_bound(audit: Audit | OutputsAudit) -> str:
    """Return the lower bound on epsilon that an audit certifies, as text.

    If the claim has a parameter mu or rho, the text begins with the bound on this parameter.
    """
    shown = f"epsilon >= {format_epsilon(audit.epsilon_lower)}"
    if audit.claim == 0.0 and audit.delta > 0.0:
        return f"delta >= {audit.delta_lower:.4g} at epsilon 0; {shown} at delta {audit.delta:.4g}"
    if not isinstance(audit.claim, Claim):
        return shown
    shown += f" at delta {audit.delta:.4g}"
    if audit.claim.parameter is not None:
        return f"{audit.claim.parameter} >= {format_epsilon(audit.parameter_lower)}; {shown}"
    if audit.point is None:
        return shown
    type_one, type_two, least = audit.point
    return (
        f"type II error <= {type_two:.4g} at type I error <= {type_one:.4g}, where the claim "
        f"allows no less than {least:.4g}; {shown}"
    )


def _describe_number_of_parts_read(audit: Audit | OutputsAudit) -> str:
    """Describe how many parts of the outputs the attack read; return "" for outputs of one part."""
    return str(audit.read) if audit.read is not None and audit.read.found > 1 else ""


def _declared_noise_loss_text(audit: Audit) -> str:
    """Describe the loss of the pair under the noise that the mechanism declares, or return ""."""
    if audit.declared_loss is None:
        return ""
    at = f" at delta {audit.delta:g}" if audit.delta else ""
    loss = format_epsilon(audit.declared_loss)
    return f"{loss}{at} for this pair (computed from the declared noise, not certified)"


def _describe_number_of_searched_pairs(audit: Audit) -> str:
    """Describe how many pairs the search for the pair compared; return "" without a search."""
    search = audit.searched
    if search is None:
        return ""
    rounds = f"{search.finished} of {_format_plural_count(search.rounds, 'round')} finished"
    ended = f": its {search.seconds:g} s were over" if search.ended else ""
    change = f"; best change: {search.change} (compared: {search.tried})" if search.change else ""
    return f"{_format_plural_count(search.evaluations, 'pilot')} compared, {rounds}{ended}{change}"


def _describe_trials_in_time_budget(audit: Audit) -> str:
    """Describe how many trials fit into the budget of seconds; return "" without a budget."""
    if audit.budget is None:
        return ""
    trials = sum(stop - start for start, stop in audit.ranges) + audit.end - audit.ranges[-1][1]
    return (
        f"{audit.budget:g} s gave {trials:,} trials on each side, by the speed of the first calls"
    )


def both_bounds_confidence(audit: Audit | OutputsAudit) -> str:
    """Return a sentence on the probability that two bounds of an audit hold together.

    The first bound is the certified bound. The second bound comes from the last bits of the outputs
    (rounding). The sentence is "" if there is only one bound, or if both bounds decide the verdict.
    """
    if audit.floating_point is None or audit.floats or audit.checks:
        return ""
    each, both = 100 * audit.confidence, max(0.0, 200 * audit.confidence - 100)
    level = f"{each:g} % confidence each, at least {both:g} % together"
    return f"`certified` and `rounding` have {level}."


def bound_method_text(audit: Audit) -> str:
    """Return the confidence, the name of the bound and the stopping rule of an audit, as text."""
    stops = {
        "refuted": f", test martingale over {_format_plural_count(len(audit.slices), 'slice')}",
        "interrupted": ", interrupted",
        "looked": ", merged after looking",
    }
    name = _used_bound_title(clopper_pearson if audit.pooled else BOUNDS[audit.bound], audit.counts)
    split = ", half of it for rounding" if audit.floats else ""
    return f"{100 * audit.confidence:g} % confidence{split}, {name}{stops.get(audit.stop, '')}"


def _used_bound_title(bound: Callable[..., float], counts: Counts) -> str:
    """Return the title of a bound.

    If there are more draws than the bound supports, dpcore computes the Clopper-Pearson bound, and
    the title states this.
    """
    declared = find_declaration(bound)
    most = declared.most_draws
    if most is None or max(counts.n, counts.n_prime) <= most:
        return declared.title
    usual = find_declaration(clopper_pearson).title
    return f"{usual}, since {declared.title} ends at {most:,} draws"


def _pooled_coordinate_rows(audit: Audit) -> list[Row]:
    """Return rows on coordinates that are counted separately: the assumption, and the counts.

    The list is empty if the event does not count the coordinates of an output separately.
    """
    if not audit.pooled:
        return []
    groups = zip(audit.pooled, audit.event.multiplicities, strict=True)
    rows = [("coordinates", f"{format_counts(c)} (group of {many})") for c, many in groups]
    return [("assuming", audit.event.assumption), *rows]


def _list_last_bits_event_rows(audit: Audit | OutputsAudit) -> list[Row]:
    """Return rows on the second event of an audit, which is about last bits of floats.

    If the event about last bits has the larger bound of the two events, it is the main event. The
    rows then state this fact, and describe the event of the attack.
    """
    finding = audit.floating_point
    if finding is None or audit.checks:
        return []
    # If it counts towards the verdict, it gets half of the error probability.
    bound = BOUNDS[audit.bound] if audit.floats else clopper_pearson
    lower = bound(finding.bound_counts, finding.delta, confidence_of_each_bound(audit))
    counts = f"{finding.event}; {format_counts(finding.counts)}"
    if audit.rounding_won:
        text = f"epsilon >= {format_epsilon(lower)}: {counts}"
        return [
            ("rounding", "the witness is a property of the code as it runs"),
            ("other event", text),
            ("meaning", ROUNDING),
        ]
    verdict = "counted in the verdict" if audit.floats else "not part of the verdict"
    text = f"the code as it runs: epsilon >= {format_epsilon(lower)} ({verdict}): {counts}"
    return [("rounding", text), ("meaning", ROUNDING)]


def format_claim(audit: Audit | OutputsAudit) -> str:
    """Return the claim of an audit as text, such as "epsilon <= 1".

    If the claim is a trade-off curve, the text also states the epsilon and the delta of the tangent
    that the audit tested.
    """
    if audit.claimed_epsilon is None:
        return "none given"
    delta = f", delta = {audit.delta:g}" if audit.delta else ""
    if isinstance(audit.claim, Claim):
        if audit.claimed_epsilon == 0.0 and not audit.delta:
            return str(audit.claim)
        return f"{audit.claim}; its tangent epsilon <= {audit.claimed_epsilon:.4g}{delta}"
    return f"epsilon <= {audit.claimed_epsilon:g}{delta}"


def _describe_claim(audit: Audit) -> str:
    text = format_claim(audit)
    if audit.claimed_epsilon is None:
        return text
    if audit.delta and audit.pair.distance != 1.0:
        largest = claim_times_distance(audit)
        text += f" (metric: epsilon <= {largest:g} at distance {audit.pair.distance:g})"
    own = audit.own_claim
    return text if own is None or own == audit.claim else f"{text} (the mechanism's own: {own:g})"


def format_counts(c: Counts) -> str:
    """Return the counts of an event as text, such as "3 of 10 on x, 1 of 10 on x'"."""
    return f"{c.k:,} of {c.n:,} on x, {c.k_prime:,} of {c.n_prime:,} on x'"


def _shorten_value(value: Any) -> str:
    """Format an input on one short line, with its type unless it is an array of floats."""
    if not isinstance(value, np.ndarray):
        return f"{on_one_line(repr(value), 60)} ({type(value).__name__})"
    text = np.array2string(value, separator=", ", threshold=6, edgeitems=2, precision=4)
    notes = [f"{value.size} entries"] if value.size > 6 else []
    notes += [f"{value.dtype} array"] if value.dtype.kind != "f" else []
    entries = f" ({', '.join(notes)})" if notes else ""
    return f"{' '.join(text.split())}{entries}"


def _describe_seed(audit: Audit) -> str:
    trials = " and ".join(f"{start:,} to {stop:,}" for start, stop in audit.ranges)
    repeated = REPEATED[audit.randomness if audit.route == "callable" else "seed"]
    # Outputs that never differ do not depend on the seed.
    repeated = "" if audit.constant else repeated
    return (
        f"{audit.seed} (trials {trials}; blocks of {audit.block:,}, {audit.route} route, "
        f"{audit.pilot:,} pilot draws per side{'; ' if repeated else ''}{repeated})"
    )


def _describe_time_and_speed(audit: Audit) -> str:
    """Describe the time of each step, the number of outputs, and the speed of counting."""
    threads = _format_plural_count(audit.threads, "thread") + _describe_idle_threads(audit)
    speed = f"{audit.draws_per_second:.3g} draws/s on {threads}"
    if not audit.spent:
        return f"{audit.seconds:.3g} s, {speed}"
    total = math.fsum(step.seconds for step in audit.spent)
    steps = ", ".join(f"{step.step} {step.seconds:.2g}" for step in audit.spent)
    made = sum(step.outputs for step in audit.spent)
    return f"{total:.3g} s, {made:,} outputs in all ({steps}); counted {speed}"


def _describe_idle_threads(audit: Audit) -> str:
    """Describe how many threads had work, and propose a `block` that gives work to all threads.

    The result is "" if all threads had work.
    """
    blocks = sum(-(-stop // audit.block) - start // audit.block for start, stop in audit.ranges)
    if audit.route != "callable" or audit.threads <= blocks:
        return ""
    return f", of which {blocks} had work: block={trials_per_thread(audit.trials, audit.threads)}"


def list_all_rows(audit: Audit) -> list[Row]:
    """Return the report on an audit as rows (label, text). The last row states the running time."""
    return [*list_report_rows_without_time(audit), ("time", _describe_time_and_speed(audit))]


def list_outputs_rows(audit: OutputsAudit) -> list[Row]:
    """Return the report on an audit of recorded outputs as rows (label, text).

    Args:
        audit: result of the audit of recorded outputs.

    Returns:
        Pairs of a label and a text. The first row is the verdict.
    """
    table = [
        ("verdict", audit.verdict),
        ("claim", format_claim(audit)),
        ("certified", _format_outputs_bound(audit)),
        ("estimate", f"{format_epsilon(audit.epsilon_hat)} (not a bound)"),
        ("witness", describe_event(audit)),
        *(("inside", str(entry)) for entry in audit.inside),
        ("counts", format_hits_or_guesses(audit)),
        ("reach", _describe_reach(audit)),
        ("AUC", "" if audit.auc is None else f"{audit.auc:.4f} {_AUC_MEANING}"),
        ("rows", _describe_stated_row_independence(audit)),
        *(("read from", str(entry)) for entry in audit.files),
        ("read", _describe_number_of_parts_read(audit)),
        *_list_last_bits_event_rows(audit),
        ("seed", f"{audit.seed} ({_describe_role_of_audit_seed(audit)})"),
        ("needed", refutation_advice(audit)),
        ("plan", describe_draws_to_detect_low_noise(audit)),
        *(("note", note) for note in (both_bounds_confidence(audit), *audit.notes)),
    ]
    return [(label, text) for label, text in table if text]


def describe_event(audit: Audit | OutputsAudit) -> str:
    """Return the counted event of an audit as text.

    The text also names the input in the numerator of the probability ratio that bounds epsilon. For
    an audit of one training run with canaries, the text describes how canaries are guessed.
    """
    if audit.counts is None:
        return audit.attack
    side = "x'" if audit.direction == "x_prime" else "x"
    return f"{audit.event}, {side} in the numerator"


def _format_outputs_bound(audit: OutputsAudit) -> str:
    if audit.doubts:
        return "nothing: no bound holds"
    title = find_declaration(OUTPUTS_BOUNDS[audit.rows][audit.bound]).title
    return _format_bound(audit, f"{100 * audit.confidence:g} % confidence, {title}")


def format_hits_or_guesses(audit: OutputsAudit) -> str:
    """Return the counts of an audit of recorded outputs as text.

    For an audit of one training run with canaries, the text states how many guesses are right.
    """
    c = audit.evidence
    if isinstance(c, Guesses):
        return (
            f"{c.correct:,} of {c.guesses:,} guesses right ({c.correct_in:,} of "
            f"{c.guessed_in:,} in, {c.correct_out:,} of {c.guessed_out:,} out), "
            f"{c.canaries:,} canaries"
        )
    return format_counts(c)


def _describe_reach(audit: Audit | OutputsAudit) -> str:
    """Describe the largest bound that the numbers of trials, rows or guesses can certify.

    A reader can see from this text that a larger claim could not have been refuted.
    """
    if audit.checks:
        return ""
    most = f"epsilon >= {format_epsilon(audit.ceiling)}"
    if isinstance(audit.claim, Claim):
        most += f" at delta {audit.delta:g}"
        if audit.parameter_ceiling is not None:
            most = f"{audit.claim.parameter} >= {format_epsilon(audit.parameter_ceiling)}; {most}"
    if not is_recorded(audit):
        return f"{audit.reach_size} certify at most {most}"
    reach = f"{audit.size} certify at most {most}"
    if audit.guesses is None or audit.claimed_epsilon is None:
        return reach
    return f"{reach}; to refute the claim takes {_needed_guess_text(audit.guesses_needed)}"


def _needed_guess_text(guesses: int | None) -> str:
    if guesses is None:
        return "more guesses than any run has"
    if guesses == 1:
        return "1 right guess"
    return f"{guesses:,} guesses (and canaries) or more, all of them right"


def _describe_stated_row_independence(audit: OutputsAudit) -> str:
    paired = "; rows i of both sides come from one seed" if audit.paired else ""
    order = "; put in this order when the runs were over" if audit.arranged else ""
    meaning = ROWS[audit.rows]
    if audit.groups is not None:
        first, second = audit.groups
        meaning = (
            "each group of rows was drawn independently of all others; "
            f"{first:,} groups on x and {second:,} on x', one row of each counted group is counted"
        )
    return f"{audit.rows.replace('_', ' ')}: {meaning}{paired}{order}"


def _describe_role_of_audit_seed(audit: OutputsAudit) -> str:
    if audit.rows == "one_run":
        return "decides ties between scores"
    return f"of the shuffle; {audit.pilot[0]:,} and {audit.pilot[1]:,} rows chose the event"


def propose_trace(audit: Audit) -> str:
    """Return a line for the report that proposes `dpcore.trace`, or "".

    `dpcore.trace` computes the privacy loss of each source line. The result is "" unless the audit
    refuted a claim about a user's function. It is also "" if the audit counted running times or
    last bits of floats, because a trace shows neither of them.
    """
    if not audit.refuted or audit.route == "timed" or audit.floats:
        return ""
    if not is_user_code(audit.mechanism):
        return ""
    return "dpcore.trace(mechanism, pair) computes which line loses how much on a pair."
