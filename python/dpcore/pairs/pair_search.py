"""Search for the pair of neighbours on which a mechanism leaks most.

Every pair is evaluated with a small set of draws, which is called a pilot. The best pairs are
evaluated again with larger pilots.
"""

from __future__ import annotations

import itertools
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import count, flag, instance, integer, invalid, mistyped, real
from ..records import Pair, Record
from ..suggestions import explain_argument_errors
from .datasets import Replace, input_key
from .neighbours import Domain, Neighbour, attr_or_none, check_domain, neighbour_of
from .text_pairs import CHANGES, Texts

_MIN_ROUND_PAIRS = 8
"""Smallest number of pairs in a late round. Half of these pairs come from the previous round, and
half are new."""

_TRIES_PER_PAIR = 20
"""Number of random pairs that a search tries for each new pair that it needs."""


_MIN_ROUNDS_BUDGET = 1000
"""A search in texts has several rounds if it draws at least this number of outputs on x."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Search(Record, word="Search"):
    """Plan of a search for two neighbouring inputs x and x' on which a mechanism leaks most.

    `dpcore.pairs.search` makes the plan, and `dpcore.audit` carries it out. The search has several
    rounds. In each round, the search draws outputs on x and on x' for every pair, and estimates
    from these outputs how much the mechanism leaks. The plan itself does not change and does not
    draw outputs. To write your own search, call the methods `start`, `propose` and `schedule` of
    the plan.

    Args:
        domain: set of inputs in which the search looks for the pair.
        neighbour: neighbour relation. The search evaluates only pairs that are neighbours by this
            relation.
        rounds: number of rounds, at least 1.
        budget: total number of outputs that the search draws on the inputs x, over all pairs and
            rounds. The search draws equally many outputs on the inputs x'.
        candidates: number of pairs in the first round, at least 1.
        seconds: time limit of the search, in seconds. None means no limit.
    """

    domain: Domain
    neighbour: Neighbour
    rounds: int = 8
    budget: int = 10**7
    candidates: int = 64
    seconds: float | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        if self.seconds is not None:
            seconds = real("seconds", self.seconds, low=0.0, open_low=True)
            object.__setattr__(self, "seconds", seconds)
        check_domain(self.domain)
        object.__setattr__(self, "neighbour", neighbour_of(self.neighbour))
        for name in ("rounds", "candidates"):
            object.__setattr__(self, name, integer(name, getattr(self, name), 1))
        object.__setattr__(self, "budget", count("budget", self.budget))
        if self.budget < self.rounds * self.candidates:
            requirement = f"at least rounds x candidates = {self.rounds * self.candidates}"
            raise invalid("budget", requirement, self.budget)

    def schedule(self) -> tuple[tuple[int, int], ...]:
        """Return, for each round of this search, the number of pairs and of outputs per pair.

        Each entry of the result is a tuple for one round. The first number is the number of pairs.
        The second number is the number of outputs that are drawn on x for each pair. Equally many
        outputs are drawn on x'.

        After each round, the number of pairs is halved, until 8 pairs are left. The total number of
        outputs is nearly the same in all rounds.

        Example:
            >>> from dpcore.pairs import L1, Box
            >>> Search(Box(0, 1, 1), L1(), rounds=4, budget=64000, candidates=32).schedule()
            ((32, 500), (16, 1000), (8, 2000), (8, 2000))
        """
        least = min(_MIN_ROUND_PAIRS, self.candidates)
        widths = (max(least, self.candidates >> number) for number in range(self.rounds))
        return tuple((width, self.budget // (self.rounds * width)) for width in widths)

    def start(self, rng: np.random.Generator) -> list[Pair]:
        """List the pairs of neighbouring inputs that the first round of the search evaluates.

        Args:
            rng: generator that draws the random pairs.

        Returns:
            A list of at most `candidates` different pairs. The two inputs of each pair are
            neighbours.

        Raises:
            TypeError: if `rng` is not a numpy Generator, or if the neighbour relation of the plan
                cannot be used with its set of inputs (such as `L1` with a set of texts).
            ValueError: if the search finds no two neighbours in the set of inputs.
        """
        instance("rng", rng, np.random.Generator)
        tries = self.neighbour.starts(self.domain, rng)
        tries = itertools.islice(tries, _TRIES_PER_PAIR * self.candidates)
        starts = self._first_untried_neighbour_pairs(tries, self.candidates, ())
        if not starts:
            requirement = f"large enough to hold two neighbours by {self.neighbour!r}"
            raise invalid("domain", requirement, self.domain)
        return starts

    def propose(
        self,
        best: Sequence[tuple[Pair, float]],
        rng: np.random.Generator,
        most: int = _MIN_ROUND_PAIRS // 2,
        known: Iterable[Pair] = (),
    ) -> list[Pair]:
        """Propose new pairs of inputs that are similar to the best pairs found so far.

        Args:
            best: the best pairs so far, the best pair first. Each entry is a tuple: the pair, and
                an estimate of how much the mechanism leaks on the pair. Pairs at the beginning of
                this list are changed most often.
            rng: generator that chooses the pairs and their changes.
            most: largest number of proposed pairs.
            known: other pairs that must not be proposed again.

        Returns:
            At most `most` pairs of neighbours. None of these pairs is in `best` or in `known`.

        Raises:
            TypeError: if `rng` is not a numpy Generator, or if the neighbour relation of the plan
                cannot be used with its set of inputs (such as `L1` with a set of texts).
            ValueError: if `best` is empty.
        """
        instance("rng", rng, np.random.Generator)
        if not best:
            raise invalid("best", "at least one pair with its merit", best)
        tried = [*(pair for pair, _ in best), *known]
        return self._first_untried_neighbour_pairs(
            self._iterate_moves(best, rng, _TRIES_PER_PAIR * most), most, tried
        )

    def _iterate_moves(
        self, best: Sequence[tuple[Pair, float]], rng: np.random.Generator, tries: int
    ) -> Iterator[Pair]:
        for _ in range(tries):
            # The smaller of two random ranks is used, so the best pair gets most of the moves.
            pair = best[rng.integers(len(best), size=2).min()][0]
            # One move climbs. Sometimes two moves at once are made, which can leave a ridge.
            for _ in range(1 + int(rng.integers(3) == 0)):
                pair = self.neighbour.move(pair, self.domain, rng)
            yield pair

    def _first_untried_neighbour_pairs(
        self, pairs: Iterable[Pair], most: int, tried: Iterable[Pair]
    ) -> list[Pair]:
        """Return the first `most` pairs that are neighbours and are not in `tried`.

        The pairs (x, x') and (x', x) count as the same pair.
        """
        keys = {_pair_key(pair) for pair in tried}
        distinct: list[Pair] = []
        for pair in pairs:
            if len(distinct) == most:
                break
            if _pair_key(pair) not in keys and self.neighbour.holds(pair, self.domain):
                keys.add(_pair_key(pair))
                distinct.append(pair)
        return distinct


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Searched(Record, word="Searched"):
    """Summary of a finished search for the pair of inputs on which a mechanism leaks most.

    The pair that the search found is in `Audit.pair`.

    Args:
        evaluations: number of evaluated pairs, summed over all rounds. A pair that is evaluated in
            two rounds counts twice.
        finished: number of rounds in which all pairs were evaluated.
        rounds: number of planned rounds.
        seconds: time limit of the search in seconds, or None if there was no limit.
        ended: True if the time limit ended the search.
        change: if the found pair consists of texts, the kind of the change between the two texts
            and the words that differ, such as "number: '12' for '7'". For other inputs, "".
        tried: if the inputs are texts, the number of different evaluated pairs for each kind of
            change, such as "4 number, 4 name". For other inputs, "".
    """

    evaluations: int
    finished: int
    rounds: int
    seconds: float | None
    ended: bool
    change: str = ""
    tried: str = ""

    def __post_init__(self) -> None:
        """Check the fields."""
        for name, low in (("evaluations", 1), ("finished", 0), ("rounds", 1)):
            integer(name, getattr(self, name), low)
        if self.seconds is not None:
            real("seconds", self.seconds, low=0.0, open_low=True)
        flag("ended", self.ended)
        for name in ("change", "tried"):
            instance(name, getattr(self, name), str)


@explain_argument_errors
def search(
    domain: Domain,
    neighbour: Neighbour | None = None,
    *,
    rounds: int | None = None,
    budget: int | float | str | None = None,
    candidates: int | None = None,
    seconds: float | None = None,
) -> Search:
    """Plan a search for two neighbouring inputs x and x' on which a mechanism leaks most.

    Pass the plan to `dpcore.audit` in place of a pair. The search has several rounds. In each
    round, the search evaluates a list of pairs. For each pair, the search draws a small set of
    outputs (a pilot) on x and on x', and estimates from the pilot how much the mechanism leaks.
    Each round has half as many pairs as the previous round, and twice as many outputs per pair,
    until a round has 8 pairs. In every round after the first, half of the pairs are the best pairs
    of the previous round. The other half are new pairs that are similar to these best pairs.

    For vectors, the first round has these pairs:

    - the pairs of `dpcore.pairs.patterns`;
    - pairs in which x' has larger values than x in some entries and smaller values in other
      entries;
    - pairs in which one entry of x, or half of its entries, is far from the other entries of x;
    - random pairs.

    The search does not reduce the confidence of the audit. After the search, the audit draws new
    outputs on the best pair, and computes the bound only from these new outputs.

    Args:
        domain: set of inputs in which to search, such as `Box(low, high, dim)` or `Texts(corpus)`.
        neighbour: neighbour relation: an instance of `L1`, `L2`, `Linf`, `Replace`, `AddRemove` or
            `AnyTexts`, or an object with the same methods. None is allowed only if `domain` is a
            `Texts`, and means `Replace()`: one word of a text is replaced by another word of the
            corpus.
        rounds: number of rounds, at least 1. Defaults to 8. For `Texts`, the default is 3, or 1 if
            the budget is below 1,000.
        budget: total number of outputs that the search draws on the inputs x, over all pairs and
            rounds. The search draws equally many outputs on the inputs x'. Defaults to 10**7, and
            to 10**4 for `Texts`.
        candidates: number of pairs in the first round, at least 1. Defaults to 64. For `Texts`, the
            default is 24, or 6 if the budget is below 1,000.
        seconds: time limit of the search, in seconds. None means no limit. The evaluation of the
            first pair is always completed. This evaluation needs `budget / (rounds * candidates)`
            outputs on x and equally many on x'. If one output takes long, choose a smaller
            `budget`. The search skips an evaluation that would probably end after the time limit.
            If there is a limit, the result depends on the speed of the machine. To repeat the
            audit, pass `Audit.pair` of the first audit in place of the plan.

    Returns:
        The plan of the search.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a number is out of range, or if `budget` is below `rounds` times
            `candidates`.

    Source:
        Jamieson and Talwalkar (2016) for the halving of the number of pairs. Bichsel, Gehr,
        Drachsler-Cohen, Tsankov and Vechev (2018) for a search for neighbours that uses outputs of
        the mechanism.

    Example:
        >>> from dpcore.pairs import Box, Linf
        >>> plan = search(Box(-30, 30, 5), Linf(1.0))
        >>> pairs = plan.start(np.random.default_rng(1))
        >>> len(pairs), all(plan.neighbour.holds(pair, plan.domain) for pair in pairs)
        (64, True)
    """
    is_text = isinstance(domain, Texts)
    if neighbour is None and is_text:
        neighbour = Replace()
    draws = count("budget", (10**4 if is_text else 10**7) if budget is None else budget)
    # A small budget tries one pair per kind of change: fewer draws per pair do not show a leak.
    usual = (8, 64)
    if is_text:
        usual = (3, 4 * len(CHANGES)) if draws >= _MIN_ROUNDS_BUDGET else (1, len(CHANGES))
    rounds = usual[0] if rounds is None else rounds
    candidates = usual[1] if candidates is None else candidates
    return Search(domain, neighbour_of(neighbour), rounds, draws, candidates, seconds)


@explain_argument_errors
def drive(plan: Search, evaluate: Callable[[Pair, int], float], rng: np.random.Generator) -> Pair:
    """Run a planned search for two neighbouring inputs, and return the best pair of the last round.

    In each round, the search evaluates all pairs of the round, keeps the best half, and adds new
    pairs that are similar to the kept pairs. The search compares only pairs of the same round,
    because these pairs have equal numbers of outputs. The kept pairs are evaluated again in the
    next round. Therefore a pair that was good only by chance does not stay until the end.

    Args:
        plan: plan of the search.
        evaluate: function `(pair, size)` that draws `size` outputs on x and on x', and returns the
            merit of the pair (x, x'). The merit is a number that is larger if the mechanism leaks
            more, such as the bound that an audit would certify. NaN is not allowed.
        rng: generator that chooses the pairs and their changes. The result depends only on `rng`
            and on the merits.

    Returns:
        The best pair of the last round.

    Raises:
        TypeError: if `plan` is not a `Search`, if `evaluate` is not callable, if a merit is not a
            real number, or if `rng` is not a numpy Generator.
        ValueError: if a merit is NaN, or if the search finds no two neighbours in the set of inputs
            of the plan.

    Example:
        >>> from dpcore.pairs import L1, Box, distance
        >>> plan = search(Box(0, 9, 1), L1(2.0), rounds=3, candidates=8)
        >>> best = drive(plan, lambda pair, size: float(pair.x.max()), np.random.default_rng(1))
        >>> distance(best, "l1") <= 2.0
        True
    """
    return explore(plan, evaluate, rng)[0]


@explain_argument_errors
def explore(
    plan: Search,
    evaluate: Callable[[Pair, int], float],
    rng: np.random.Generator,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Pair, Searched]:
    """Run a planned search for two neighbouring inputs; return the best pair and a summary.

    Args:
        plan: plan of the search.
        evaluate: function `(pair, size)` that draws `size` outputs on x and on x', and returns the
            merit of the pair (x, x'). The merit is a number that is larger if the mechanism leaks
            more.
        rng: generator that chooses the pairs and their changes.
        clock: function that returns the time in seconds. The search calls this function only if the
            plan has a time limit. The time determines only how many pairs are evaluated.

    Returns:
        A tuple: the best pair of the last round in which a pair was evaluated, and the summary of
        the search.

    Raises:
        TypeError: if `plan` is not a `Search`, if `evaluate` is not callable, if a merit is not a
            real number, or if `rng` is not a numpy Generator.
        ValueError: if a merit is NaN, or if the search finds no two neighbours in the set of inputs
            of the plan.

    Example:
        >>> from dpcore.pairs import L1, Box
        >>> plan = search(Box(0, 9, 1), L1(2.0), rounds=3, candidates=8, seconds=2.5)
        >>> ticks = iter(range(99))
        >>> rng = np.random.default_rng(1)
        >>> pair, course = explore(plan, lambda pair, size: 0.0, rng, ticks.__next__)
        >>> course.evaluations, course.finished, course.ended
        (2, 0, True)
    """
    instance("plan", plan, Search)
    if not callable(evaluate):
        raise mistyped("evaluate", "a callable (pair, size) -> merit", evaluate)
    pool = plan.start(rng)
    proposed, best_pair, evaluations = list(pool), pool[0], 0
    compared: dict[frozenset[object], Pair] = {}
    finished, ended = 0, False
    rounds, watch = plan.schedule(), _SearchTimer(plan.seconds, clock)
    for number, (_, size) in enumerate(rounds):
        merits: list[tuple[Pair, float]] = []
        for pair in pool:
            if watch.is_evaluation_past_time_limit(size):
                break
            merits.append((pair, _check_not_nan(evaluate(pair, size))))
            watch.record_evaluation_time(size)
        ranked = sorted(merits, key=lambda merit: -merit[1])
        best_pair = ranked[0][0] if ranked else best_pair
        evaluations += len(merits)
        compared.update((_pair_key(pair), pair) for pair, _ in merits)
        if len(merits) < len(pool):
            ended = True
            break
        finished = number + 1
        if number + 1 < len(rounds):
            width = rounds[number + 1][0]
            best = ranked[: (width + 1) // 2]
            fresh = plan.propose(best, rng, width - len(best), proposed)
            proposed += fresh
            pool = [*(pair for pair, _ in best), *fresh]
    changes = _change_and_kind_tally(plan.domain, best_pair, compared.values())
    return best_pair, Searched(evaluations, finished, len(rounds), plan.seconds, ended, *changes)


def _change_and_kind_tally(domain: Domain, pair: Pair, compared: Iterable[Pair]) -> tuple[str, str]:
    """Describe the change between the two texts of a pair, and count the evaluated kinds of change.

    The two results are empty if the domain has no function `describe_change`.
    """
    describe = attr_or_none(domain, "describe_change")
    if describe is None:
        return "", ""
    kinds = Counter(describe(other).partition(":")[0] for other in compared)
    missing = [kind for kind in CHANGES if isinstance(domain, Texts) and kind not in kinds]
    tried = ", ".join(f"{number} {kind}" for kind, number in kinds.items())
    return describe(pair), tried + f"; no {', '.join(missing)}" * bool(missing)


class _SearchTimer:
    """Clock of a search with a time limit."""

    def __init__(self, seconds: float | None, clock: Callable[[], float]) -> None:
        self._seconds, self._clock = seconds, clock
        self._begun = self._last = 0.0 if seconds is None else clock()
        self._each = 0.0

    def is_evaluation_past_time_limit(self, size: int) -> bool:
        """Return True if an evaluation with `size` draws would probably end after the time limit.

        The result is False before the first evaluation, and without a limit.
        """
        if self._seconds is None or self._last == self._begun:
            return False
        return self._last - self._begun + size * self._each > self._seconds

    def record_evaluation_time(self, size: int) -> None:
        """Record that an evaluation with `size` draws has ended."""
        if self._seconds is not None:
            now = self._clock()
            self._each, self._last = (now - self._last) / size, now


def _check_not_nan(value: float) -> float:
    try:
        merit = float(value)
    except (TypeError, ValueError):
        raise mistyped("merit of a pair", "a real number", value) from None
    if math.isnan(merit):
        raise invalid("merit of a pair", "a real number", value)
    return merit


def _pair_key(pair: Pair) -> frozenset[object]:
    # An audit chooses the input in the numerator, so both orders are the same pair.
    return frozenset((input_key(pair.x), input_key(pair.x_prime)))
