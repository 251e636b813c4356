"""Attacks on each coordinate of an output: the majority vote, and one learned set per coordinate.

In the majority vote, coordinate i votes for x or for x'. Its threshold is midway between x_i and
x'_i. The learned sets are for mechanisms with independent coordinates. For n independent
coordinates with the same distribution, the privacy loss is n times the loss of one coordinate, and
every output contains n draws of this coordinate. The counted draws do not prove independence.
Therefore the user declares independence, and the report prints the declaration with the verdict.
The pilot (the first draws) can disprove independence. In this case, the attack raises a ValueError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..bounds import clopper_pearson, predicted
from ..errors import instance, invalid, vector
from ..events import Event, Vote
from ..events.event import hits_of
from ..events.every_coordinate import EveryCoordinate, Intervals, read_rows
from ..events.vote import Side
from ..pairs.differences import group_columns
from ..records import Array, Counts, Floats, Pair
from ..suggestions import explain_argument_errors
from .arrays import Places
from .attack import AuditAttack, Fitted, Goal, Pilot, power_of_two_below
from .bins import safe_gap_thresholds, sorted_no_nan
from .grains import column_tolerance

LEVEL: Final = 1e-6
"""Largest probability that at least one of the tests rejects although coordinates are
independent."""
_MAX_TESTED_NUMBERS: Final = 2**19
_MAX_TESTED_COLUMNS: Final = 512
_MIN_TESTED_ROWS: Final = 20
_MAX_GRID_POINTS: Final = 256
_MIN_JOINT_MOVES: Final = 200.0
"""Expected number of rows in which two independent coordinates both differ from their most frequent
values. If it is smaller, rare values that coincide by chance look like a correlation."""

_MAX_VOTE_PILOT: Final = 2**17
_UNION_BINS: Final = 64
_UNION_MERIT_MARGIN: Final = 1.05
"""Factor by which the bound of a union of intervals must exceed the bound of a half-line."""
_TIE_BREAK_WEIGHT: Final = 1e-9
_DELTA_ROUNDS: Final = 10
_MAX_PILOT_ENTRIES: Final = 2**22


def refuse_dependent(sides: Sequence[tuple[str, Array]], groups: Sequence[tuple[int, ...]]) -> None:
    """Raise a ValueError if outputs contradict the declaration that coordinates are independent.

    The declaration also states that the coordinates of each group have the same distribution. The
    function makes the following tests, separately on x and on x'. The significance level of all
    tests together is 1e-6.

    - The first test uses the largest rank correlation of two coordinates. The correlation is
      computed for the values of the coordinates. It is computed again for the distances of the
      values from the median.
    - The second test uses the sum of all correlations, and the sum of their squares. These sums
      show a weak dependence of many pairs of coordinates.
    - The third test compares the distribution of each coordinate with the distribution of the other
      coordinates of its group.

    Args:
        sides: pairs of a name ("x" or "x'") and the outputs on this input, shape `(size, dim)`.
        groups: indices of the coordinates of each group. The coordinates of one group should have
            the same distribution.

    Raises:
        ValueError: if a test rejects. The message states the coordinates and the test statistic.

    Source:
        Spearman (1904) for rank correlations. Under independence, their variance is 1/(size - 1),
        also with ties. Massart (1990) for the constant in the test that compares distributions.
    """
    level = LEVEL / len(sides)
    for side, outputs in sides:
        values = _make_finite(
            outputs[: max(_MIN_TESTED_ROWS, _MAX_TESTED_NUMBERS // max(1, outputs.shape[1]))]
        )
        if len(values) < _MIN_TESTED_ROWS:
            continue
        for group in groups:
            _refuse_unlike_coordinates(side, values, group, level / (4 * len(groups)))
        _refuse_correlated(side, "values", values, level / 4)
        middle = np.median(values, axis=0)
        _refuse_correlated(side, "distances from the median", abs(values - middle), level / 4)


def _make_finite(outputs: Array) -> Floats:
    """Convert outputs to finite float64 numbers that have the same order as the outputs.

    Infinities and NaN become numbers beyond all finite values.
    """
    values = outputs.astype(np.float64)
    is_finite = np.isfinite(values)
    if is_finite.all():
        return values
    # The values are halved, so that no sum overflows. Only their ranks are used below.
    values /= 2.0
    edge = float(np.abs(values[is_finite]).max(initial=1.0))
    beyond = min(1.5 * edge + 1.0, np.finfo(np.float64).max)
    return np.nan_to_num(values, nan=beyond, posinf=0.9 * beyond, neginf=-0.9 * beyond)


def _centred_unit_norm_mid_ranks(values: Floats) -> Floats:
    """Compute the mid-ranks of each column, centred and scaled to Euclidean norm 1.

    The ranks of a nearly constant column are set to 0.
    """
    size = len(values)
    ranks = np.empty_like(values)
    for column in range(values.shape[1]):
        _, where, times = np.unique(values[:, column], return_inverse=True, return_counts=True)
        if size * (1.0 - times.max() / size) ** 2 < _MIN_JOINT_MOVES:
            times = times * 0
        ranks[:, column] = (np.cumsum(times) - times / 2.0)[where] - times.sum() / 2.0
    length = np.sqrt((ranks**2).sum(axis=0))
    return ranks / np.where(length > 0.0, length, 1.0)


def _refuse_correlated(side: str, what: str, values: Floats, level: float) -> None:
    from scipy.special import chdtrc, ndtri

    dim = values.shape[1]
    columns = np.arange(dim)
    if dim > _MAX_TESTED_COLUMNS:
        columns = np.sort(np.random.default_rng(dim).permutation(dim)[:_MAX_TESTED_COLUMNS])
    ranks = _centred_unit_norm_mid_ranks(values[:, columns])
    moves = (ranks != 0.0).any(axis=0)
    ranks, columns = ranks[:, moves], columns[moves]
    first, second = np.triu_indices(columns.size, 1)
    if first.size == 0:
        return
    correlations = (ranks.T @ ranks)[first, second]
    scores = correlations * math.sqrt(len(values) - 1)
    worst = int(np.argmax(abs(scores)))
    squares = float((scores**2).sum())
    named = f"{columns[0]} to {columns[-1]}"
    if abs(scores[worst]) > -ndtri(level / 6.0 / first.size):
        named = f"{columns[first[worst]]} and {columns[second[worst]]}"
        statistic = f"rank correlation {correlations[worst]:.3g}"
    elif abs(float(scores.sum()) / math.sqrt(first.size)) > -ndtri(level / 6.0):
        statistic = f"mean rank correlation {float(correlations.mean()):.3g}"
    elif chdtrc(first.size, squares) < level / 3.0:
        size = math.sqrt(squares / first.size / (len(values) - 1))
        statistic = f"rank correlations of size {size:.3g}"
    else:
        return
    raise _make_pilot_error(f"{statistic} between {what} of coordinates {named}", side)


def _refuse_unlike_coordinates(
    side: str, values: Floats, group: tuple[int, ...], level: float
) -> None:
    """Raise a ValueError if a coordinate differs in distribution from the others of its group."""
    if len(group) < 2:
        return
    part = values[:, list(group)]
    size, many = part.shape
    grid = np.unique(np.quantile(part, np.linspace(0.0, 1.0, _MAX_GRID_POINTS), method="nearest"))
    shares = np.stack([np.searchsorted(np.sort(column), grid, "right") for column in part.T]) / size
    # The pool includes the coordinate itself; the distance to the rest is m/(m - 1) times as large.
    gaps = abs(shares - shares.mean(axis=0)).max(axis=1) * many / (many - 1)
    worst = int(np.argmax(gaps))
    samples = size * (many - 1) / many
    if gaps[worst] > math.sqrt(math.log(2.0 * many / level) / (2.0 * samples)):
        name = f"coordinate {group[worst]} and the {many - 1} others with the same inputs"
        raise _make_pilot_error(
            f"distance {gaps[worst]:.3g} between the distributions of {name}", side
        )


def _make_pilot_error(reason: str, side: str) -> ValueError:
    requirement = "independent from coordinate to coordinate, with one law where inputs are equal"
    return ValueError(f"outputs must be {requirement}, got {reason} on {side}")


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class MajorityVote(AuditAttack):
    """Attack by majority vote: each entry of an output votes for x or for x'.

    Entry i of the output y votes for x if y_i is nearer to x_i than to x'_i. Otherwise, entry i
    votes for x'. Entries with x_i = x'_i do not vote. The event is "the majority votes for x" or
    "the majority votes for x'". The pilot (the first draws of an audit) chooses one of these two
    events. The attack is very fast, but weak in high dimension. For a correct Laplace mechanism
    with epsilon 1 and 128 entries, an audit with this attack certifies the bound 0.076.

    Source:
        Habernal (2022), section 4, the reconstruction attack.

    Example:
        >>> attack = MajorityVote()
        >>> print(attack.event(Pair([0.0, 0.0, 7.0], [1.0, 1.0, 7.0])))
        majority vote for x' (2 of 3 entries vote)
    """

    by_ballot: ClassVar[bool] = True
    fewest_pilot: ClassVar[int] = 0

    def event(self, pair: Pair) -> Vote:
        """Return the event "the majority of an output's entries votes for x'", for a given pair.

        Args:
            pair: two vectors of the same shape, with finite entries.

        Returns:
            The event.

        Raises:
            TypeError: if the pair does not hold real numbers.
            ValueError: if the inputs are not vectors with finite entries, have different shapes, or
                are equal in every entry.
        """
        return Vote.between(pair)

    def default_pilot(self, trials: int) -> int:
        """Return the default number of pilot draws on each input: at most 1 per cent of `trials`.

        The pilot draws (the first draws) choose the event. `trials` is the number of counted draws
        on each input.
        """
        return min(power_of_two_below(trials // 100), _MAX_VOTE_PILOT) if trials >= 100 else 0

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the majority event and the direction of the bound, from the pilot (first) draws.

        The bound is the logarithm of a ratio of two probabilities of the event. The direction is
        the input, x or x', for which this probability is the numerator. The function `choose` of
        this module makes the choice. Without pilot draws, the event is "the majority votes for x'",
        and the direction is x'.
        """
        event, goal = self.event(pilot.pair), pilot.goal
        if pilot.size == 0:
            return Fitted(event, "x_prime", None, 0, np.empty(0))
        counts = pilot.counts(event, pilot.size)
        vote, direction = choose(counts, goal.confidence, goal.delta)
        return Fitted(replace(event, vote=vote), direction, None, pilot.size, np.empty(0))

    def __call__(self, outputs: npt.ArrayLike, outputs_prime: npt.ArrayLike, pair: Pair) -> Vote:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, dim)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', dim)`.
            pair: the two inputs x and x'.

        Returns:
            "The majority votes for x" or "the majority votes for x'". The function `choose` picks
            the event from the pilot counts, at its default confidence.

        Raises:
            TypeError: if outputs or pair do not hold real numbers.
            ValueError: if the shapes do not match, or if no output is given on x or on x'.
        """
        event = self.event(pair)
        hits, hits_prime = event(outputs), event(outputs_prime)
        counts = Counts(hits_of(hits), hits.size, hits_of(hits_prime), hits_prime.size)
        return replace(event, vote=choose(counts)[0])


@explain_argument_errors
def choose(counts: Counts, confidence: float = 0.95, delta: float = 0.0) -> tuple[Side, Side]:
    """Choose the majority event and the direction of the bound, from pilot counts.

    The event is "the majority of the entries votes for x" or "the majority of the entries votes for
    x'". The bound on epsilon is the logarithm of a ratio: the probability of the event on one
    input, divided by the probability of the event on the other input. The direction is the input
    whose probability is the numerator. Two events and two directions give four combinations. The
    function returns the combination with the largest Clopper-Pearson bound on the pilot (the first
    draws of an audit). In a small pilot, all four bounds may be 0. If several bounds are equal, the
    function takes the largest point estimate of the log ratio. If these estimates are also equal,
    it takes the vote for x' and the direction x'. Do not count the pilot draws again for the bound.
    If the choice depends on the counted draws, the bound is invalid.

    Args:
        counts: pilot counts of the event "the majority votes for x'".
        confidence: confidence of the audit's bound, strictly between 0 and 1.
        delta: delta of the claim, in [0, 1).

    Returns:
        The tuple (vote, direction). The vote is "x" or "x_prime": the input for which the majority
        votes in the event. The direction is "x" or "x_prime": the input whose probability is the
        numerator.

    Raises:
        TypeError: if `counts` is not a `Counts`, or `confidence` or `delta` is not a number.
        ValueError: if `confidence` or `delta` is out of range.

    Source:
        Bichsel et al. (2021), section 5: the event and the direction are chosen on separate draws.

    Example:
        >>> choose(Counts(100, 1000, 900, 1000))
        ('x_prime', 'x_prime')
        >>> choose(Counts(0, 1000, 900, 1000))
        ('x_prime', 'x_prime')
        >>> choose(Counts(500, 1000, 999, 1000))
        ('x', 'x')
    """
    opposite = instance("counts", counts, Counts).complement()
    # The options are in order of preference, because max() keeps the first of equal options.
    votes: dict[Side, Counts] = {"x_prime": counts, "x": opposite}
    options: dict[tuple[Side, Side], Counts] = {}
    for vote, votes_of_entry in votes.items():
        options |= {(vote, "x_prime"): votes_of_entry.swapped(), (vote, "x"): votes_of_entry}

    def merit(option: tuple[Side, Side]) -> tuple[float, float]:
        ordered = options[option]
        return clopper_pearson(ordered, delta, confidence), _log_ratio_or_infinite(ordered)

    return max(options, key=merit)


def _log_ratio_or_infinite(counts: Counts) -> float:
    if counts.k == 0:
        return -math.inf
    if counts.k_prime == 0:
        return math.inf
    # The products are exact integers: equal ratios cannot differ by rounding.
    return math.log(counts.k * counts.n_prime / (counts.k_prime * counts.n))


@dataclass(frozen=True, slots=True, repr=False)
class Coordinatewise(AuditAttack):
    """Attack for mechanisms whose output coordinates you *declare* to be independent.

    The coordinates with equal (x_i, x'_i) form a group. Coordinates with x_i = x'_i carry no
    information and are left out. For each group the attack learns one set of real numbers. The set
    is a half-line. If a union of intervals has a clearly larger expected bound on epsilon, the set
    is this union instead. The event is "every coordinate lies in the set of its group". Let group g
    have m_g coordinates. The attack chooses one of the two inputs for the numerator of the bound.
    On this input, one coordinate of group g lies in the set of the group with probability p_g. On
    the other input, this probability is q_g. Then

    ``epsilon >= ln((prod_g p_g^m_g - delta) / prod_g q_g^m_g)``

    The audit estimates p_g and q_g from the m_g coordinates of all outputs together.

    By using this attack, you declare three facts:

    - given the input, the coordinates of an output are independent of each other;
    - coordinate i of the output depends only on x_i;
    - the coordinates of one group have the same distribution.

    The attack raises a ValueError if the pilot (the first draws of an audit) contradicts the
    declaration. A pilot that agrees with the declaration does not prove it.

    Source:
        Dwork and Roth (2014), theorem 3.6: the losses of independent coordinates add up.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> outputs = rng.laplace(0.0, 2.0, (2000, 8)), 1.0 + rng.laplace(0.0, 2.0, (2000, 8))
        >>> event = Coordinatewise()(*outputs, Pair(np.zeros(8), np.ones(8)))
        >>> event.multiplicities, event.sets[0].below
        ((8,), True)
    """

    pools: ClassVar[bool] = True

    def fitted_on(self, pilot: Pilot) -> Fitted:
        """Choose the event and the input for the numerator of the bound, from the pilot draws.

        The pilot draws are the first draws of an audit. The expected bound is computed from counts
        of single coordinates, because too few pilot outputs are in the event as a whole.
        """
        return self.choose(*pilot.outputs(), pilot.pair, pilot.goal)

    def __call__(self, outputs: npt.ArrayLike, outputs_prime: npt.ArrayLike, pair: Pair) -> Event:
        """Choose the event from pilot outputs.

        Args:
            outputs: pilot outputs on `x`, shape `(size, dim)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', dim)`.
            pair: the two inputs x and x', two vectors of `dim` numbers.

        Returns:
            The event that is expected to certify the largest bound on epsilon if `10 * size`
            further outputs are counted on each input.

        Raises:
            TypeError: if outputs or pair do not hold real numbers.
            ValueError: if the shapes do not match, if fewer than two outputs are given on x or on
                x', or if the inputs are equal in every entry. The error is also raised if the pilot
                contradicts the declaration: coordinates are clearly dependent, or coordinates of
                one group clearly have different distributions.
        """
        goal = Goal(10 * max(1, len(np.atleast_1d(outputs))))
        return self.choose(outputs, outputs_prime, pair, goal).event

    def choose(
        self, outputs: npt.ArrayLike, outputs_prime: npt.ArrayLike, pair: Pair, goal: Goal
    ) -> Fitted:
        """Choose the event and the input for the numerator of the bound, from pilot outputs.

        Args:
            outputs: pilot outputs (first draws) on `x`, shape `(size, dim)`.
            outputs_prime: pilot outputs on `x_prime`, shape `(size', dim)`.
            pair: the inputs x and x', two vectors of `dim` numbers.
            goal: the number of draws that the audit will count, and the delta and the confidence of
                the bound.

        Returns:
            The event, the input for the numerator, and the expected bound on epsilon.

        Raises:
            TypeError: if outputs or pair do not hold real numbers, or `goal` is not a `Goal`.
            ValueError: if the shapes do not match, if fewer than two outputs are given on x or on
                x', or if the inputs are equal in every entry. The error is also raised if the pilot
                outputs contradict the declaration of independence. In this case, coordinates are
                clearly dependent, or coordinates with the same two inputs clearly have different
                distributions.
        """
        goal = instance("goal", goal, Goal)
        differing, dim = _group_and_count_coordinates(pair)
        sides = [read_rows(np.asarray(side), dim) for side in (outputs, outputs_prime)]
        least = min(map(len, sides))
        if least < 2:
            raise invalid("outputs", "at least two pilot outputs on each side", least)
        refuse_dependent(tuple(zip(("x", "x'"), sides, strict=True)), differing)
        # The groups share the error probability.
        shared = replace(goal, confidence=1.0 - (1.0 - goal.confidence) / len(differing))
        chosen = {}
        for way in ("x", "x_prime"):
            options = [_sets_to_try(sides, group, way, shared) for group in differing]
            chosen[way] = _combine_options(options, differing, dim, goal)
        direction = max(chosen, key=lambda way: chosen[way][1])
        event, merit = chosen[direction]
        return Fitted(event, direction, merit, len(sides[0]), np.empty(0))


class Options(NamedTuple):
    """The sets of numbers that the attack tries for the coordinates of one group.

    One of the inputs is chosen for the numerator of the bound. On this input, one coordinate lies
    in a set with probability p. On the other input, this probability is q.

    Args:
        log_p: for each set, a cautious lower limit of ln p.
        log_q: for each set, a cautious upper limit of ln q.
        make: function that returns the set with a given index.
    """

    log_p: Floats
    log_q: Floats
    make: Callable[[int], Intervals]


def _group_and_count_coordinates(pair: Pair) -> tuple[list[tuple[int, ...]], int]:
    """Return the groups of coordinates with equal (x_i, x'_i), and the number of coordinates.

    Coordinates with x_i = x'_i are left out of the groups.
    """
    pair = instance("pair", pair, Pair)
    ends = vector("x", pair.x), vector("x_prime", pair.x_prime)
    if ends[0].shape != ends[1].shape:
        raise invalid("pair", "two inputs of equal shape", tuple(end.shape for end in ends))
    if np.array_equal(*ends):
        raise invalid("pair", "different in at least one entry", pair)
    return [group for group, (x, x_prime) in group_columns(*ends) if x != x_prime], ends[0].size


def _sets_to_try(sides: Sequence[Array], group: tuple[int, ...], way: str, goal: Goal) -> Options:
    """Make the sets that are tried for one group: half-lines, and unions of informative bins.

    The thresholds and the order of the bins come from the first half of the pilot. The confidence
    limits of the probabilities come from the second half.
    """
    most = max(2, _MAX_PILOT_ENTRIES // len(group))
    ordered = sides if way == "x" else sides[::-1]
    parts = [side[:most, list(group)].astype(np.float64) for side in ordered]
    fit = [sorted_no_nan(part[: len(part) // 2].ravel()) for part in parts]
    judged = [part[len(part) // 2 :].ravel() for part in parts]
    rest, sizes = [sorted_no_nan(values) for values in judged], [values.size for values in judged]
    points = safe_gap_thresholds(fit[0], fit[1], column_tolerance(*fit))
    if points.size == 0:
        return Options(np.zeros(1), np.zeros(1), lambda _: Intervals(np.zeros(1), True))
    edges = points[np.unique(np.linspace(0, points.size - 1, _UNION_BINS - 1).astype(np.int64))]
    held, held_prime = (_count_in_bins(values, edges) + 0.5 for values in fit)
    # The bins with the largest ratio in favour of the first side come first.
    order = np.argsort(held_prime / held, kind="stable")
    hits = [_count_in_sets(values, points, edges, order) for values in rest]
    draws = goal.trials * len(group)
    ratio = predicted(hits[0], sizes[0], hits[1], sizes[1], draws, 0.0, goal.confidence)
    log_q = -predicted(sizes[0], sizes[0], hits[1], sizes[1], draws, 0.0, goal.confidence)
    # If no set has a positive expected bound, the most significant difference on the pilot decides.
    ratio += _TIE_BREAK_WEIGHT * _one_sided_z_scores(hits[0], hits[1], sizes[0], sizes[1])
    ratio[2 * points.size :] /= _UNION_MERIT_MARGIN

    def make(index: int) -> Intervals:
        if index < 2 * points.size:
            return Intervals(points[index % points.size][np.newaxis], index < points.size)
        members = np.zeros(edges.size + 1, dtype=np.bool_)
        members[order[: index - 2 * points.size + 1]] = True
        return Intervals(edges[members[1:] != members[:-1]], bool(members[0]))

    return Options(ratio + log_q, log_q, make)


def _one_sided_z_scores(hits: Floats, hits_prime: Floats, size: int, size_prime: int) -> Floats:
    """Return, for each set, the difference of its shares on the two inputs in standard errors.

    The input for the numerator comes first. A negative difference is replaced by 0.
    """
    pooled = (hits + hits_prime + 1.0) / (size + size_prime + 2.0)
    error = np.sqrt(pooled * (1.0 - pooled) * (1.0 / size + 1.0 / size_prime))
    return np.maximum((hits / size - hits_prime / size_prime) / error, 0.0)


def _count_in_bins(values: Floats, edges: Floats) -> Floats:
    passed = np.searchsorted(values, edges)
    return np.diff(passed, prepend=0, append=values.size).astype(np.float64)


def _count_in_sets(values: Floats, thresholds: Floats, edges: Floats, bin_order: Places) -> Floats:
    """Count the values below each threshold, at or above each threshold, and in unions of bins.

    Union number i consists of the first i + 1 bins of `bin_order`.
    """
    below = np.searchsorted(values, thresholds).astype(np.float64)
    unions = np.cumsum(_count_in_bins(values, edges)[bin_order])[:-1]
    return np.concatenate([below, values.size - below, unions])


def _combine_options(
    options: Sequence[Options], groups: Sequence[tuple[int, ...]], dim: int, goal: Goal
) -> tuple[EveryCoordinate, float]:
    """Choose the set of each group; return the event and its expected bound on epsilon.

    If delta is 0, the best set of one group does not depend on the other groups. Otherwise, the
    function improves the sets one after the other.
    """
    weights = [float(len(group)) for group in groups]
    # -1 stands for the set of all numbers: the group is left out.
    picks = [-1] * len(options)
    for _ in range(_DELTA_ROUNDS if goal.delta > 0.0 else 1):
        before = list(picks)
        for i, option in enumerate(options):
            others = [-1 if j == i else pick for j, pick in enumerate(picks)]
            rest = _sum_logarithms(options, weights, others)
            log_p = rest[0] + weights[i] * option.log_p
            log_q = rest[1] + weights[i] * option.log_q
            gain = _log_excess_over_delta(log_p, goal.delta) - log_q
            best = int(np.argmax(gain))
            alone = float(_log_excess_over_delta(np.array(rest[0]), goal.delta)) - rest[1]
            picks[i] = best if gain[best] > alone else -1
        if picks == before:
            break
    sums = _sum_logarithms(options, weights, picks)
    merit = max(0.0, float(_log_excess_over_delta(np.array(sums[0]), goal.delta)) - sums[1])
    if max(picks) < 0:
        picks[0] = int(np.argmax(options[0].log_p - options[0].log_q))
    used = [i for i, pick in enumerate(picks) if pick >= 0]
    sets = tuple(options[i].make(picks[i]) for i in used)
    return EveryCoordinate(tuple(groups[i] for i in used), sets, dim), merit


def _sum_logarithms(
    options: Sequence[Options], weights: Sequence[float], picks: Sequence[int]
) -> tuple[float, float]:
    chosen = [(w, o, p) for w, o, p in zip(weights, options, picks, strict=True) if p >= 0]
    log_p = sum(weight * float(option.log_p[pick]) for weight, option, pick in chosen)
    return log_p, sum(weight * float(option.log_q[pick]) for weight, option, pick in chosen)


def _log_excess_over_delta(log_p: Floats, delta: float) -> Floats:
    """Return ln(e^log_p - delta), or minus infinity if delta is at least e^log_p."""
    if delta == 0.0:
        return log_p
    left = -np.expm1(np.minimum(np.log(delta) - log_p, 0.0))
    with np.errstate(divide="ignore"):
        return np.asarray(log_p + np.log(left))
