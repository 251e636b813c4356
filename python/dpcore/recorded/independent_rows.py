"""Audit of recorded outputs of independent runs, with checks for dependent rows.

A row is one output. The outputs on x and the outputs on x' are called the two sides. The rows are
shuffled and divided: an event is chosen on one part and counted on the other part. Four checks look
for rows that are not independent. If the rows are independent, all checks together give a false
alarm with probability below 1e-6. The rows may be in random or in sorted order. The checks are:

- *Evenness.* The check counts how often each value occurs. It raises a doubt if at least 30 values
  occur and their counts have a common divisor above 1. For independent rows, this has probability
  below 2^-29. The check also raises a doubt if the counts vary too little (p-value below 1e-9). The
  p-value assumes that all values have equal probabilities, because the counts then vary least.
- *Repetition.* The check counts the pairs of equal rows on one side, and the pairs of rows at the
  most frequent small distance. Under a smooth distribution on a grid, the two counts are about
  equal. The check raises a doubt if the first count is more than twice the second, and exceeds it
  by more than seven standard deviations (of Poisson numbers). There are two exceptions. In the
  first, the values have unequal probabilities and do not form a grid. In the second, the repeated
  values are more frequent on the other side than values close to the repeated values. If the
  privacy loss is at most epsilon, a value is at least e^-epsilon times as frequent on the other
  side as on this side. The check is made only if equal frequencies would give at least 60 rows with
  repeated values on the other side. For epsilon 1, the probability that none of these rows occurs
  is then at most exp(-60/e) = 3e-10. The check cannot distinguish resampled rows from outputs of a
  random generator with few states. No bound holds for such a generator.
- *Neighbours.* The check computes the correlation between the ranks of successive rows. It raises a
  doubt if the correlation is more than seven standard deviations away from 0. For rows in random
  order, this has probability 3e-12 per column. Sorted files are excepted: most of their steps
  from row to row are rises, or most are falls. In other files with dependent rows, about half of
  the steps are falls.
- *Pairs.* The check computes the correlation between row i on x and row i on x'. It raises a doubt
  if the correlation is more than seven standard deviations away from 0. For rows in random order,
  this has probability 3e-12 for each of at most 64 columns, and also for the event.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..attacks.arrays import LARGEST_WHOLE
from ..attacks.attack import (
    Fitted,
    Goal,
    Own,
    ScoreAttack,
    attack_name,
    attack_of,
    choose_events,
    inapplicable_error,
    merit_of,
    simplest_with_wide_gap,
)
from ..attacks.candidates import read_candidates
from ..attacks.threshold import negative_zero_count_scores
from ..auditing.event_choice import note_no_bound
from ..auditing.pilot import frequent_outputs, make_float_bit_scores
from ..bounds import clopper_pearson
from ..claims.trade_off import Claim, choose_refutable_pair
from ..errors import invalid, real
from ..events.event import Event, Score, evaluate_event, hits_of
from ..records import Array, Counts, Floats, Pair
from ..results.evidence import Finding, put_numerator_first
from ..sampling.columns import list_columns, pilot_anomalies
from ..sampling.replay import encode_rows
from .sides import Sides

Codes = npt.NDArray[np.uint64]

_SIDE_NAMES: Final = ("outputs", "outputs_prime")
_MIN_SIDE_ROWS: Final = 4
"""Smallest number of rows per side: one to fit, one to choose, and two to count."""

_SHUFFLE_STREAM: Final = 17
"""Key of the streams for shuffles. Their keys have two numbers; the keys of draws have three."""

_GROUP_ROW_STREAM: Final = 19
"""Key of the random streams that draw one row of each group."""

_MIN_DISTINCT_VALUES: Final = 30
"""Smallest number of distinct values for which a check looks at repetitions."""

_EVENNESS_P_VALUE: Final = 1e-9
"""Significance level of a test of evenness."""

_MIN_EXPECTED_MATCHES: Final = 60.0
"""Smallest expected number of equal rows on the other side for which the absence of such rows
raises a doubt."""

_MAX_MATCH_SHARE: Final = 0.01
"""Number of equal rows on the other side, divided by the expected number, above which the repeated
values count as common to both sides."""

_MAX_ATOMS: Final = 4
"""Largest number of repeated values (atoms) that clipping or censoring may add to a density."""

_MAX_STATE_BITS: Final = 32
"""Number of random bits of the coarsest continuous samplers, one 32-bit word."""

_MAX_DENSITY_RATIO: Final = 8.0
"""Largest probability that two draws are equal, divided by the value of this probability for the
uniform distribution on the same values."""

_MAX_MEETING_RATIO: Final = 2.0
"""Largest number of pairs of equal rows, divided by the number of pairs at a small distance, for a
distribution on a grid."""

_MAX_EQUAL_RATIO: Final = 1.1
"""Largest number of pairs that are equal in some columns, divided by the number of pairs that are
equal in all columns, for which the other columns are not needed."""

_PLACE_BITS: Final = 48
"""Number of bits that are read from a large float64. The last 5 bits hold rounding errors."""

_MAX_NEAR_COLUMNS: Final = 8
_MAX_NEAR_LAG: Final = 4
_MAX_FREQUENT_ROWS: Final = 256
_MAX_DISTANCES: Final = 16

_HASH_MULTIPLIER: Final = np.uint64(0x9E3779B97F4A7C15)
"""2^64 divided by the golden ratio, a multiplier that spreads bits (Knuth, 1998, section 6.4)."""

_MULTIPLIERS: Final = _HASH_MULTIPLIER ** np.arange(_MAX_NEAR_COLUMNS, dtype=np.uint64)
"""Factors of columns. The code of a row is the sum of its values times these factors. Pairs of rows
with equal differences in all columns have equal differences of codes."""

_WORD_PATTERN: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|\w+|[^\w\s]")
_MAX_LEAVES: Final = 64
"""Largest number of words and numbers that are read from the text of an object."""

_ROWS_PER_LISTED_WORD: Final = 8
"""A text column is read as a list of words if it has at least this many rows per distinct value."""

_MAX_LISTED_NUMBERS: Final = 8
"""Largest number of distinct numbers that are read as words. Differences of so few numbers carry no
information."""

_MAX_COMPARED_CHARACTERS: Final = 64
_MAX_CHECKED_COLUMNS: Final = 64
_MAX_DEVIATIONS: Final = 7.0
_MIN_EXPECTED_CHANGES: Final = 25.0
_UNSORTED_FALL_SHARES: Final = (0.4, 0.6)
"""Range of the share of falls from row to row in a column that is not sorted."""

_MIN_UNEQUAL_STEPS: Final = 60
"""Smallest number of steps between unequal values for which the share of falls is computed."""

_CENTRE_ROWS: Final = 3
"""Number of rows whose distances from all rows are used as additional columns."""
_MIN_ORDERED_ROWS: Final = 60
"""Smallest number of rows: seven standard deviations require more than 49 rows."""

_MAX_COMPARED_PAIRS: Final = 2**17


class Counted(NamedTuple):
    """Frequency of an event in the recorded outputs, and how the event was chosen.

    An event is a set of outputs. A row contains one output on the input x or on x'. Some rows are
    used to choose an event. The other rows are counted.

    Args:
        counts: for x and for x', the number of counted rows, and how many of them are in the event.
        attack: name of the attack that chose the event.
        fitted: the chosen event, and information on how it was chosen.
        pilot: number of rows on x, and number of rows on x', from which the event was chosen.
        separate: rows on x and rows on x' that should be independent. If there are groups, this is
            one row of each group, otherwise all rows. The rows are in the order of the file.
        tangent: if the claim is a curve, epsilon and delta of the tested tangent to the curve. None
            if the claim is a number.
        finding: a second event, about the last bits of the outputs, if its counts give a larger
            certified epsilon than the counts of the chosen event. Otherwise None.
    """

    counts: Counts
    attack: str
    fitted: Fitted
    pilot: tuple[int, int]
    separate: Sides
    tangent: tuple[float, float] | None
    finding: Finding | None


def choose_and_count(
    sides: Sides,
    attack: Callable[..., Any],
    pair: Pair,
    share: float | None,
    seed: int,
    settings: tuple[float, float],
    paired: bool,
    groups: Sides | None,
    claim: Claim | float | None,
) -> Counted:
    """Choose an event from some outputs, and count how many other outputs are in the event.

    An event is a set of outputs. Each row contains one output.

    Args:
        sides: the outputs on x and the outputs on x', arrays of shapes `(size, ...)` and
            `(size', ...)`.
        attack: function `(outputs, outputs_prime, pair)` that returns an event.
        pair: the two inputs x and x' that are passed to the attack.
        share: fraction of the rows that are counted. None means one half.
        seed: seed for the random order in which the rows are divided.
        settings: tuple of two numbers, the delta and the confidence of the bound.
        paired: True if row i on x depends on row i on x'. Both rows are then used to choose the
            event, or both rows are counted.
        groups: for the rows on x and on x', the index of the group to which each row belongs,
            counted from 0. Rows of the same group may depend on each other. Either all rows of a
            group are used to choose the event, or one row of the group is counted. None means that
            all rows are independent.
        claim: claimed epsilon for the pair, or a claimed curve. If the claim is a curve, the attack
            chooses an event that should refute the curve. None means that no claim is tested.

    Returns:
        The counts, the event, and information on how the event was chosen.

    Raises:
        TypeError: if the attack does not return an event, or `share` is not a number.
        ValueError: if there are too few rows, if `paired` is True and the numbers of rows differ,
            if `share` is out of range, or if the attack does not apply to these outputs.
    """
    share = real("count_share", 0.5 if share is None else share, low=0.0, high=1.0,
                 open_low=True, open_high=True)  # fmt: skip
    sizes = len(sides[0]), len(sides[1])
    if min(sizes) < _MIN_SIDE_ROWS:
        raise invalid("outputs", f"at least {_MIN_SIDE_ROWS} rows on each side", sizes)
    if groups is not None:
        many = int(groups[0].max()) + 1, int(groups[1].max()) + 1
        if min(many) < _MIN_SIDE_ROWS:
            raise invalid("groups", f"at least {_MIN_SIDE_ROWS} groups on each side", many)
    if paired and sizes[0] != sizes[1]:
        raise invalid("outputs", "as many rows on x as on x' where paired = True", sizes)
    # The shuffle makes rows exchangeable, also if they were sorted or in the order of their runs.
    first, second = (
        _three_parts(size, groups and groups[number], share, seed, 0 if paired else number)
        for number, size in enumerate(sizes)
    )
    counted = sides[0][first.counted], sides[1][second.counted]
    curve = claim if isinstance(claim, Claim) else None
    goal = Goal(
        min(map(len, counted)), *settings, claim=curve,
        is_total_variation=curve is None and claim == 0.0 and settings[0] > 0.0,
    )  # fmt: skip
    pilot = _PilotRows(
        (sides[0][first.pilot], sides[1][second.pilot]), (first.cut, second.cut), pair, goal
    )
    audited = attack_of(attack)
    # An attack without scores is called as a function. A vote needs no separate pilot here.
    fitted = (audited.scoring or Own(audited.given)).fitted_on(pilot)
    facts = pilot_anomalies(pilot.sides, pair, claim, settings[0])
    fitted = replace(fitted, constant=facts.constant, notes=facts.list_notes(fitted.event))
    tangent = None
    if curve is not None and fitted.counts is not None:
        # The tangent suits the event, and only the rows that chose the event determine it.
        tangent = choose_refutable_pair(curve, put_numerator_first(fitted.counts, fitted.direction))
    counts = _count_hits(fitted.event, counted)
    return Counted(
        counts,
        attack_name(audited),
        fitted,
        (len(first.pilot), len(second.pilot)),
        (sides[0][first.separate], sides[1][second.separate]),
        tangent,
        _better_last_bits_finding(fitted, counts, counted, settings),
    )


def _better_last_bits_finding(
    fitted: Fitted, counts: Counts, counted: Sides, settings: tuple[float, float]
) -> Finding | None:
    """Count the event about last bits; return None if `counts` gives an equal or larger bound."""
    if fitted.lattice is None:
        return None
    event, direction = fitted.lattice.event, fitted.lattice.direction
    finding = Finding(event, direction, _count_hits(event, counted), *settings)
    certified = clopper_pearson(put_numerator_first(counts, fitted.direction), *settings)
    return finding if finding.epsilon_lower > certified else None


def _count_hits(event: Event, sides: Sides) -> Counts:
    """Count the rows on x and on x' that are in the event."""
    hits, hits_prime = (hits_of(evaluate_event(event, side)) for side in sides)
    return Counts(hits, len(sides[0]), hits_prime, len(sides[1]))


def _three_way_cuts(size: int, share: float) -> tuple[int, int]:
    """Return two indices that divide shuffled rows: rows to fit, to choose, and to count."""
    pilot = min(max(2, size - round(size * share)), size - 1)
    return pilot // 2, pilot


def make_keyed_generator(seed: int, *key: int) -> np.random.Generator:
    """Return a numpy Generator whose random numbers depend only on a seed and a key.

    Generators with different keys are independent.
    """
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=key)))


def _shuffle_numbers(size: int, seed: int, side: int) -> Array:
    """Return the integers below `size` in random order."""
    return make_keyed_generator(seed, _SHUFFLE_STREAM, side).permutation(size)


class _Division(NamedTuple):
    """Numbers of the rows on one input, divided by the purpose of the rows.

    Args:
        pilot: rows that fit the scores, then rows that choose a score and a threshold.
        cut: index in `pilot` of the first row that chooses a score.
        counted: rows that are counted.
        separate: rows that are independent of each other, in the order of the file.
    """

    pilot: Array
    cut: int
    counted: Array
    separate: Any


def _three_parts(size: int, groups: Array | None, share: float, seed: int, side: int) -> _Division:
    """Shuffle rows or groups, and divide them into rows to fit, to choose and to count."""
    if groups is None:
        order, (cut, end) = _shuffle_numbers(size, seed, side), _three_way_cuts(size, share)
        return _Division(order[:end], cut, order[end:], slice(None))
    from ..divergence.points import draw_one_row_per_group

    shuffled = _shuffle_numbers(int(groups.max()) + 1, seed, side)
    # `turns` holds the position of each group in the shuffled order.
    turns = np.empty_like(shuffled)
    turns[shuffled] = np.arange(len(shuffled))
    turn = turns[groups]
    cuts = _three_way_cuts(len(shuffled), share)
    order = np.argsort(turn, kind="stable")
    cut, end = np.searchsorted(turn[order], cuts).tolist()
    drawn = draw_one_row_per_group(groups, make_keyed_generator(seed, _GROUP_ROW_STREAM, side))
    return _Division(order[:end], cut, drawn[shuffled[cuts[1] :]], np.sort(drawn))


@dataclass(frozen=True, slots=True)
class _PilotRows:
    """Rows from which the event is chosen, as a pilot (see `dpcore.attacks.attack.Pilot`).

    Args:
        sides: rows on x and on x'.
        cuts: for x and x', number of rows that fit the scores. The rows after them choose a score.
        pair: the inputs that the attack receives.
        goal: number of rows to count, delta, confidence and claim, for which the event is chosen.
    """

    sides: Sides
    cuts: tuple[int, int]
    pair: Pair
    goal: Goal

    @property
    def size(self) -> int:
        """Number of rows on x."""
        return len(self.sides[0])

    def outputs(self) -> Sides:
        """Return all rows on x and on x'."""
        return self.sides

    def counts(self, event: Event, draws_per_input: int) -> Counts:
        """Count the rows on x and on x' that are in an event."""
        return _count_hits(event, self.sides)

    def choose_score_and_event(self, attack: ScoreAttack) -> Fitted:
        """Fit the scores of an attack, and choose the best score and a threshold on it."""
        (first, second), (cut, cut_prime) = self.sides, self.cuts
        scores, read = read_candidates(attack, first[:cut], second[:cut_prime], self.pair)
        if not scores:
            raise inapplicable_error(attack, first)
        rest = first[cut:], second[cut_prime:]
        events = choose_events(scores, *rest, self.goal)
        best = simplest_with_wide_gap(events, *rest)
        signs = choose_events(negative_zero_count_scores(scores, *rest), *rest, self.goal)
        floats: tuple[Score, ...] = ()
        if attack.looks_at_floats:
            floats = make_float_bit_scores(scores, (first[:cut], second[:cut_prime]), self.pair)
        finding = max(choose_events(floats, *rest, self.goal), key=merit_of, default=None)
        return Fitted(
            best.counted,
            best.direction,
            best.merit,
            self.size,
            np.empty(0),
            finding if finding is not None and finding.merit > 0.0 else None,
            remarks=note_no_bound(events, first, signs, LARGEST_WHOLE),
            read=read,
            inside=frequent_outputs(best.counted, *rest),
            counts=best.counts,
        )


def repeat_doubts_and_notes(sides: Sides) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Check if equal outputs occur so often that the recorded outputs are not independent.

    Args:
        sides: the outputs on x and the outputs on x', arrays of shapes `(size, ...)` and
            `(size', ...)`.

    Returns:
        Two tuples of sentences for the report, each with at most one sentence for x and one for x'.
        The first tuple contains doubts about independence. The second tuple contains a remark if
        the outputs have so few possible values that copies could not be noticed. If the outputs are
        objects that cannot be pickled, both tuples are empty.
    """
    if any(side.size == 0 for side in sides):
        return (), ()
    if all(side.dtype.kind in "buifcUSmM" for side in sides):
        tables = [_as_columns(side) for side in sides]
        keys = _hash_rows(tables)
    else:
        tables = [side.astype(object) for side in sides]
        digests = [encode_rows(table) for table in tables]
        keys = [
            digest[:, :8].copy().view(np.uint64)[:, 0] for digest in digests if digest is not None
        ]
        if len(keys) < len(sides):
            return (), ()
    judged = map(_repeat_doubt_and_remark, _SIDE_NAMES, (tables, tables[::-1]), (keys, keys[::-1]))
    doubts, remarks = zip(*judged, strict=True)
    return tuple(filter(None, doubts)), tuple(filter(None, remarks))


def _as_columns(side: Array) -> Array:
    """Return the rows as a matrix of real numbers or texts with one row per output."""
    flat = side.reshape(len(side), -1)
    flat = flat.view(np.int64) if side.dtype.kind in "mM" else flat
    return np.hstack([flat.real, flat.imag]) if side.dtype.kind == "c" else flat


def _hash_rows(tables: list[Array]) -> list[npt.NDArray[np.uint64]]:
    """Compute a hash of every row. Two unequal rows have equal hashes with probability 2^-64."""
    both = np.concatenate(tables)
    numbers: Array
    if both.dtype.kind in "US":
        numbers = np.unique(both, return_inverse=True)[1].reshape(both.shape).astype(np.int64)
    elif both.dtype.kind == "f":
        # Adding 0.0 turns -0.0 into 0.0, because the two compare as equal.
        numbers = both.astype(np.float64) + 0.0
    else:
        numbers = both.astype(np.int64)
    keys = np.zeros(len(both), dtype=np.uint64)
    for column in numbers.T:
        keys = (keys ^ np.ascontiguousarray(column).view(np.uint64)) * _HASH_MULTIPLIER
        keys ^= keys >> np.uint64(29)
    return [keys[: len(tables[0])], keys[len(tables[0]) :]]


def _repeat_doubt_and_remark(
    name: str, tables: Sequence[Array], keys: Sequence[Codes]
) -> tuple[str, str]:
    """Describe repeated rows in the first of two tables: return a doubt and a harmless remark.

    At least one of the two texts is empty. `keys` contains hashes of the rows of the two tables,
    which are the outputs on x and on x' or the reverse.
    """
    ordered = np.sort(keys[0])
    if not (ordered[1:] == ordered[:-1]).any():
        # Most recorded numbers do not repeat. Finding the place of each takes ten times as long.
        return "", ""
    (values, first, times), (others, first_other, times_other) = (
        np.unique(side, return_index=True, return_counts=True) for side in keys
    )
    if values.size < _MIN_DISTINCT_VALUES:
        return "", ""
    copies = int(np.gcd.reduce(times))
    if copies > 1:
        return f"rows are repeated: each row of {name} occurs {copies} times or more", ""
    if _low_high_var_p_values(times)[0] < _EVENNESS_P_VALUE:
        often = f"each of {values.size:,} rows of {name} occurs about {times.mean():.3g} times"
        return f"rows are repeated: {often}, more evenly than chance explains", ""
    # Atoms of both sides are excluded: a censored value of one side is rare on the other side.
    common = np.argsort(times, kind="stable")[-_MAX_ATOMS:]
    common_other = np.argsort(times_other, kind="stable")[-_MAX_ATOMS:]
    rare = ~np.isin(values, np.concatenate([values[common], others[common_other]]))
    many = times[rare]
    meetings = float(many @ (many - 1.0)) / 2.0
    twins = float(many[many > 1].sum()) * len(keys[1]) / len(keys[0])
    if twins < _MIN_EXPECTED_MATCHES:
        return "", ""
    rows = np.concatenate([tables[0][first], tables[1][first_other]])
    near, shifted = _near_pairs_within_and_across(rows, np.concatenate([times, times_other]), rare)
    met = int(times_other[np.isin(others, values[rare])].sum())
    # Matches on the other side that occur by chance on the grid are not evidence for the law.
    if met - _MAX_MEETING_RATIO * shifted > _MAX_MATCH_SHARE * twins:
        return "", ""
    deviation = (2.0 * meetings - near) / math.sqrt(2.0 * (meetings + near))
    if 2.0 * meetings <= _MAX_MEETING_RATIO * near or deviation <= _MAX_DEVIATIONS:
        # With c copies of each row, there are c times as many ordered pairs of equal rows as rows.
        copies = math.ceil(near / len(keys[0]))
        remark = f"{name} lie on a coarse grid: up to {copies:,} copies of each row would not show"
        return "", remark if 1 < copies < len(keys[0]) else ""
    # If a law has separate values that repeat, their probabilities are usually unequal.
    is_filled = np.count_nonzero(many == 1) <= np.count_nonzero(many > 1)
    if is_filled and _low_high_var_p_values(many, near)[1] < _EVENNESS_P_VALUE:
        return "", ""
    return f"rows are repeated: {(times > 1).sum():,} rows of {name} occur more than once", ""


def _low_high_var_p_values(times: npt.NDArray[np.int64], near: float = 0.0) -> tuple[float, float]:
    """Compute two p-values of the variance of `times`, for a too small and a too large variance.

    `times` contains how many times each distinct value occurs. Under the null hypothesis, all
    values are equally probable, and `near` pairs of values are equal only because of a grid. The
    numbers in `times` are then Poisson numbers above 0 with the observed mean. Their sample
    variance is approximated by a multiple of a chi-square variable with equal mean and variance.
    """
    from scipy.special import chdtr, chdtrc, lambertw

    mean = float(times.mean())
    rate = mean + float(lambertw(-mean * math.exp(-mean)).real) if mean < 500.0 else mean
    variance, fourth = rate, rate + 3.0 * rate**2
    if rate < 40.0:
        k = np.arange(1.0, 200.0)
        weights = np.exp(np.cumsum(np.log(max(rate, 1e-12) / k)))
        weights /= weights.sum()
        variance, fourth = (float(weights @ (k - mean) ** power) for power in (2, 4))
    if variance <= 0.0:
        return 1.0, 1.0
    freedom = 2.0 * times.size * variance**2 / (fourth - variance**2)
    statistic = freedom * max(0.0, float(times.var()) - near / times.size) / variance
    return float(chdtr(freedom, statistic)), float(chdtrc(freedom, statistic))


# Pairs of near rows. On a grid, a law has about as many near pairs as equal pairs.


@np.errstate(all="ignore")
def _near_pairs_within_and_across(
    rows: Array, times: npt.NDArray[np.int64], rare: Array
) -> tuple[float, float]:
    """Count the ordered pairs of rows on one input at the most frequent small distance.

    Args:
        rows: distinct rows on one input, then distinct rows on the other input.
        times: number of copies of each row.
        rare: for each distinct row on the first of these inputs, False if the row is an atom, that
            is, one of the most frequent rows.

    Returns:
        Two numbers. The first is the number of pairs at the most frequent small distance, including
        atoms. The second is the number of rows on the other input that have this distance from a
        row that is not an atom. Each number is the maximum over several sets of columns: all
        columns, each single column, and all columns except one. A set is left out if rows that are
        equal in the set are often unequal in the other columns.
    """
    size, total = rare.size, float(times[: rare.size].sum())
    leaves = list(_split_into_columns(rows))
    columns = [_ints_and_bits(leaf, size) for leaf in leaves]
    columns.sort(key=lambda column: -np.unique(column[0][:size]).size)
    if rest := columns[_MAX_NEAR_COLUMNS - 1 :]:
        hashes = _hash_rows([np.stack([column[0] for column in rest], axis=1)])[0]
        columns[_MAX_NEAR_COLUMNS - 1 :] = [(hashes.view(np.int64), sum(bits for _, bits in rest))]
    subsets = [[column] for column in columns]
    if len(columns) > 1:
        subsets += [columns, *(columns[:n] + columns[n + 1 :] for n in range(len(columns)))]
    # The grid may have been transformed, or its step may grow with the values.
    numbers = [np.abs(leaf) for leaf in leaves[:_MAX_NEAR_COLUMNS] if leaf.dtype.kind == "f"]
    subsets += [[_ints_and_bits(view(leaf), size)] for leaf in numbers for view in (np.log, np.exp)]
    copies, counts = times[:size] * rare, []
    for subset in subsets:
        places = np.stack([column[0] for column in subset])
        shares = places.view(np.uint64) * _MULTIPLIERS[: len(places), None]
        equal = np.bincount(np.unique(shares.sum(axis=0)[:size], return_inverse=True)[1], copies)
        if equal @ (equal - 1.0) > _MAX_EQUAL_RATIO * (copies @ (copies - 1.0)):
            continue
        bits = sum(column[1] for column in subset)
        # A continuous sampler with few states has equal rows although it has no grid.
        counts.append((_MAX_DENSITY_RATIO * total**2 / 2.0 ** min(_MAX_STATE_BITS, bits), 0.0))
        if bits == math.inf:
            counts.append(_modal_distance_counts_on_both_inputs(places, shares, times, rare))
    # If the columns that were read do not decide equality, all pairs may be near.
    near, shifted = np.max(counts or [(total**2, 0.0)], axis=0).tolist()
    return near, shifted


def _modal_distance_counts_on_both_inputs(
    places: Array, shares: Array, times: Array, rare: Array
) -> tuple[float, float]:
    """Compute the two numbers of `_near_pairs_within_and_across` for one set of columns.

    `places` contains whole numbers for the values. `shares` contains the products of these numbers
    with one factor per column. The sum of the products over the columns is the code of a row.
    """
    codes, others = np.split(shares.sum(axis=0), [rare.size])
    # An atom counts as the most frequent other row. Otherwise two atoms would hide all others.
    copies = np.minimum(times[: rare.size], times[: rare.size][rare].max())
    values, where = np.unique(codes, return_inverse=True)
    weights = np.bincount(where, copies)
    frequent = np.argsort(weights, kind="stable")[-_MAX_FREQUENT_ROWS:]
    first, second = (frequent[numbers] for numbers in np.triu_indices(frequent.size, 1))
    gaps, products = [values[first] - values[second]], [weights[first] * weights[second]]
    for column, share in zip(places[:, : rare.size], shares[:, : rare.size], strict=True):
        order = np.lexsort((column, codes - share))
        for lag in range(1, _MAX_NEAR_LAG + 1):
            first, second = order[lag:], order[:-lag]
            is_alike = (codes - share)[first] == (codes - share)[second]
            gaps.append((codes[first] - codes[second])[is_alike])
            products.append((copies[first] * copies[second])[is_alike])
    gap = np.concatenate(gaps)
    distances, where = np.unique(np.minimum(gap, -gap), return_inverse=True)
    sums = np.bincount(where, np.concatenate(products)) * (distances > 0)
    best = np.argsort(sums, kind="stable")[-_MAX_DISTANCES:]
    chosen = distances[best[sums[best] > 0.0], None]
    place = np.searchsorted(values, values + chosen) % values.size
    pairs = (values[place] == values + chosen) * weights[place] @ weights
    shifted = np.isin(others - chosen, codes[rare]) @ times[rare.size :]
    return float(pairs.max(initial=0.0)), float(shifted.max(initial=0))


def _ints_and_bits(column: Array, size: int) -> tuple[npt.NDArray[np.int64], float]:
    """Convert a column to whole numbers, so that equal distances become equal differences.

    Returns:
        The whole numbers (in a unit that fits the first `size` values), and the number infinity.
        For texts and for columns of few distinct values, the whole numbers are random, and the
        second result is log2 of the number of possible values.
    """
    values, is_text = np.unique(column[:size]), column.dtype.kind == "U"
    is_listed = values.size <= max(_MAX_LISTED_NUMBERS, is_text * size // _ROWS_PER_LISTED_WORD)
    if is_text or is_listed:
        bits = math.log2(values.size)
        if not is_listed:
            narrow = np.ascontiguousarray(values.astype(f"U{_MAX_COMPARED_CHARACTERS}"))
            ordered = np.sort(narrow.view(np.uint32).reshape(values.size, -1), axis=0)
            bits = float(np.log2(1.0 + (np.diff(ordered, axis=0) > 0).sum(axis=0)).sum())
        numbers = np.unique(column, return_inverse=True)[1]
        return _hash_rows([numbers[:, None]])[0].view(np.int64), bits
    if values.dtype.kind in "bui":
        return column.astype(np.int64), math.inf
    column = column.astype(np.float64)
    sizes = np.abs(column[:size][np.isfinite(column[:size])])
    unit = math.frexp(float(np.quantile(sizes, 0.9)))[1] - _PLACE_BITS if sizes.size else 0
    places = np.clip(np.nan_to_num(np.ldexp(column, -unit)), -(2.0**62), 2.0**62)
    return np.rint(places).astype(np.int64), math.inf


def _split_into_columns(rows: Array) -> Iterator[Array]:
    """Yield each column of the rows; a column of texts or objects is split into several columns."""
    for column in rows.reshape(len(rows), -1).T:
        if column.dtype.kind not in "USO":
            yield column
            continue
        texts = [repr(value).replace("None", "nan") for value in column.tolist()]
        words = [_WORD_PATTERN.findall(text)[:_MAX_LEAVES] for text in texts]
        # Texts with different numbers of words are compared letter by letter.
        places = zip(*words, strict=True) if len(set(map(len, words))) == 1 else [texts]
        for place in places:
            leaf = np.array([text[:_MAX_COMPARED_CHARACTERS] for text in place])
            with contextlib.suppress(ValueError):
                leaf = leaf.astype(np.float64)
            yield leaf


# Checks of neighbouring rows.


def doubts_of_order(sides: Sides) -> tuple[str, ...]:
    """Check if recorded outputs depend on the outputs just before them.

    Such outputs may come from the same run of a mechanism. They are not independent.

    Args:
        sides: the outputs on x and the outputs on x', in the order in which they were recorded.

    Returns:
        Sentences for the report: one for x if successive outputs on x depend on each other, and one
        for x' if successive outputs on x' depend on each other.
    """
    return tuple(filter(None, map(_describe_row_dependence, _SIDE_NAMES, sides)))


def _describe_row_dependence(name: str, side: Array) -> str:
    """Describe a dependence between successive rows on one input, or return ""."""
    if len(side) < _MIN_ORDERED_ROWS:
        return ""
    columns = dict(itertools.islice(list_columns(side), _MAX_CHECKED_COLUMNS))
    numbers = [column for column in columns.values() if column.dtype.kind in "buif"]
    if len(numbers) > 1:
        columns |= _l1_distances_to_three_anchor_rows(np.stack(numbers, axis=1).astype(np.float64))
    largest, what = 0.0, name
    for title, column in columns.items():
        ranks, still = _centred_ranks_and_mode_share(column)
        steps = np.sign(np.diff(ranks))
        moves = np.count_nonzero(steps)
        # Matches of rare values by chance do not have a normal distribution.
        if moves < _MIN_UNEQUAL_STEPS or column.size * (1.0 - still) ** 2 < _MIN_EXPECTED_CHANGES:
            continue
        together = _lag_one_deviation(ranks)
        if abs(together) <= _MAX_DEVIATIONS:
            continue
        falls = np.count_nonzero(steps < 0) / moves
        if not _UNSORTED_FALL_SHARES[0] <= falls <= _UNSORTED_FALL_SHARES[1]:
            # The rows were sorted by this column, so their order is not informative about the runs.
            return ""
        if abs(together) > abs(largest):
            largest, what = together, f"{title} of {name}" if title else name
    if not largest:
        return ""
    return (
        f"rows depend on their neighbours: {what} by {largest:.1f} standard deviations of a random "
        "order: give one row a run, a document, a person, or groups= (which rows belong together), "
        "or arranged=True if the rows were put in this order when the runs were over"
    )


def _l1_distances_to_three_anchor_rows(rows: Floats) -> dict[str, Floats]:
    """Return the L1 distances of all (scaled) rows from three of the rows, each with a title."""
    scaled = rows / np.where(rows.std(axis=0) > 0.0, rows.std(axis=0), 1.0)
    centres = np.linspace(0, len(rows) - 1, _CENTRE_ROWS).astype(int).tolist()
    return {
        f"the distance from row {row + 1}": np.abs(scaled - scaled[row]).sum(axis=1)
        for row in centres
    }


# Checks of row i on one side against row i on the other.


def cross_side_dependence_doubts(sides: Sides, event: Any) -> tuple[str, ...]:
    """Check if output i on x and output i on x' depend on each other, as with equal seeds.

    The function computes the correlation between the ranks of the outputs on x and on x'. Before
    that, the function subtracts the mean rank of the previous and the next output from each rank on
    x'. Therefore outputs in a sorted file, or outputs with a slow trend, do not appear to be
    dependent.

    Args:
        sides: the outputs on x and the outputs on x', in the order in which they were recorded.
        event: the event that the audit counts: a function that returns True for each output in the
            event.

    Returns:
        A tuple with one sentence for the report if the outputs depend on each other, otherwise an
        empty tuple.
    """
    size = min(_MAX_COMPARED_PAIRS, *map(len, sides))
    if size < _MIN_ORDERED_ROWS:
        return ()
    hits = [evaluate_event(event, side[:size]).astype(np.int8) for side in sides]
    compared: list[tuple[str, Array, Array]] = [("hits of the event", hits[0], hits[1])]
    if all(side.dtype.kind in "buifcUS" for side in sides):
        first, second = (_as_columns(side[:size]) for side in sides)
        for place in range(min(first.shape[1], _MAX_CHECKED_COLUMNS)):
            what = f"values in column {place}" if first.shape[1] > 1 else "values"
            compared.append((what, first[:, place], second[:, place]))
    for what, own, other in compared:
        deviation = _correlation_deviation(own, other)
        if abs(deviation) > _MAX_DEVIATIONS:
            if np.array_equal(sides[0][:size], sides[1][:size]):
                return ("outputs and outputs_prime are equal row by row: record each on its input",)
            doubt = f"{what} of outputs and outputs_prime go together row by row"
            return (f"{doubt} ({deviation:.1f} standard deviations): give paired=True",)
    return ()


def _correlation_deviation(first: Array, other: Array) -> float:
    """Compute the correlation of two columns in standard deviations of a random row order."""
    ranks, still = _centred_ranks_and_mode_share(first)
    others, still_other = _centred_ranks_and_mode_share(other)
    # Matches of rare values by chance do not have a normal distribution.
    if first.size * (1.0 - still) * (1.0 - still_other) < _MIN_EXPECTED_CHANGES:
        return 0.0
    # If both orders have a structure (sorted chunks, for example), they are not random orders.
    if min(_lag_one_deviation(ranks), _lag_one_deviation(others)) > _MAX_DEVIATIONS:
        return 0.0
    apart = others - (np.roll(others, 1) + np.roll(others, -1)) / 2.0
    scale = float((ranks @ ranks) * (apart @ apart)) / (first.size - 1)
    return float(ranks @ apart) / math.sqrt(scale) if scale > 0.0 else 0.0


def _lag_one_deviation(ranks: Floats) -> float:
    """Compute the correlation of successive ranks in standard deviations of a random order."""
    return float(ranks @ np.roll(ranks, 1)) / float(ranks @ ranks) * math.sqrt(ranks.size)


def _centred_ranks_and_mode_share(values: Array) -> tuple[Floats, float]:
    """Return ranks minus their mean (ties get their mean rank) and the commonest value's share."""
    order = np.argsort(values)
    ordered = values[order]
    differs = ordered[1:] != ordered[:-1]
    if values.dtype.kind == "f":
        # NaN values are sorted to the end and count as one value.
        differs &= ~np.isnan(ordered[:-1])
    ends = np.append(np.flatnonzero(differs) + 1, values.size)
    times = np.diff(ends, prepend=0)
    ranks = np.empty(values.size)
    ranks[order] = np.repeat(ends - (times - 1.0) / 2.0, times) - (values.size + 1.0) / 2.0
    return ranks, float(times.max() / values.size)
