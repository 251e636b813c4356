"""Choice of the pair of inputs (x, x') that an audit attacks.

The choice is made in rounds, on draws that the audit does not count. Each round compares fewer
pairs than the round before, and makes more draws for each pair.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from ..attacks.attack import Goal, ScoreAttack
from ..attacks.candidates import read_candidates
from ..errors import flag, invalid, message, mistyped, tag_error, vector
from ..mechanisms import Native
from ..mechanisms.declarations import can_core_draw, convert_pair, get_or_default, noiseless_outputs
from ..packages import has_all
from ..pairs import Search, Searched, Texts, explore, zeros_ones
from ..pairs.differences import fingerprint_input, inputs_equal, pair_lists_to_float_arrays
from ..pairs.neighbours import neighbour_of, neighbour_python_call, refuse_non_neighbours
from ..records import Pair
from ..sampling.driver import Source
from ..sampling.sources import TimeLog
from ..streams import PILOT
from .event_choice import choose_event_of_wide_outputs, draw_first_outputs, select_event
from .wide_outputs import is_wide, read_and_select_columns

_MIN_ROUND_ROWS: Final = 2**11
_MAX_ROUND_ROWS: Final = 2**19
"""Least and largest number of pilot draws per input for one pair in one round."""
_FINAL_ROUND_PAIRS: Final = 3
_MAX_FINAL_ROUND_ROWS: Final = 2**22
"""Largest number of pilot draws per input for one pair in a round of at most `_FINAL_ROUND_PAIRS`
pairs."""
_MAX_ROUND_TRAINING_ROWS: Final = 2**18
_ROUND_DRAWS_PER_TRIAL: Final = 8
_MIN_DRAWS_PER_PAIR: Final = 64
"""Limits on the draws per input in all rounds together: the first constant times the number of
trials, or the second constant times the number of pairs. The larger limit applies."""


@dataclass(frozen=True, slots=True)
class PairCandidates:
    """Pairs of inputs (x, x') from which an audit chooses the pair that it tests.

    Args:
        pairs: the given pairs. The tuple is empty if a search proposes the pairs.
        search: the search that proposes pairs, or None if pairs are given.
        neighbour: relation that says which inputs are neighbours. With None, the claim is about the
            given inputs, and dpcore does not check whether these inputs are neighbours.
        null: True if x and x' may be equal.
        mechanism: the audited mechanism.
    """

    pairs: tuple[Pair, ...]
    search: Search | None = None
    neighbour: Any = None
    null: bool = False
    mechanism: Any = None

    @property
    def shape_pair(self) -> Pair:
        """Pair of inputs that is used to find the shape of the mechanism's outputs.

        This is the first given pair, or a start pair of the search.
        """
        if self.search is not None:
            return self.search.start(np.random.default_rng(0))[0]
        return self.pairs[0]

    @property
    def max_default_pilot_draws(self) -> int | None:
        """Upper limit for the default number of pilot draws (first draws of an audit) per input.

        If a search proposes pairs of texts, the limit is the budget of the search: the number of
        outputs that the search draws on the inputs x. Otherwise the value is None, and the number
        is not limited.
        """
        is_text = self.search is not None and isinstance(self.search.domain, Texts)
        return self.search.budget if self.search and is_text else None

    @property
    def relation(self) -> str:
        """Text that describes which inputs are neighbours.

        The text describes the relation of neighbours in the claim. If the claim has no such
        relation, the text describes the relation of the search that proposes pairs. Without both
        relations, the text is empty.
        """
        by = self.neighbour
        if by is None and self.search is not None:
            by = self.search.neighbour
        return "" if by is None else neighbour_python_call(by)

    def checked(self, pair: Pair) -> Pair:
        """Return the given pair unchanged, or raise an error if an audit cannot use this pair.

        Raises:
            TypeError: if the relation of neighbours does not apply to inputs of this type, or if an
                input is an iterator or contains an iterator.
            ValueError: for one of these reasons:

                - the two inputs are equal, and the attribute `null` is False;
                - the two inputs are farther apart than the relation of neighbours allows;
                - a relation of neighbours is given, and the pair's attribute `distance` is not 1.
        """
        refuse_single_use_or_recursive("x", pair.x)
        refuse_single_use_or_recursive("x_prime", pair.x_prime)
        inputs = convert_pair(self.mechanism, pair)
        if not self.null and inputs_equal(inputs.x, inputs.x_prime):
            # Equal inputs cannot be distinguished, so every mechanism would pass.
            is_rounded = not inputs_equal(pair.x, pair.x_prime)
            need = "different in at least one entry" + " as float64" * is_rounded
            text = message("pair", need, pair)
            error = ValueError(f"{text} (null=True allows two equal inputs)")
            raise tag_error(error, "pair")
        if self.neighbour is not None:
            refuse_non_neighbours(pair, self.neighbour)
            if pair.distance != 1.0:
                # A metric claim is about any two inputs, per unit of their distance. A claim about
                # neighbours is about neighbours only. A pair cannot have both.
                requirement = "1 where neighbour= is given (leave one of them out)"
                raise invalid("distance of the pair", requirement, pair.distance)
        return pair


def parse_pair(
    mechanism: Any, pair: Any, neighbour: Any = None, null: bool = False
) -> PairCandidates:
    """Check the arguments `pair`, `neighbour` and `null` of an audit, and list the pairs of inputs.

    Returns:
        The pairs of inputs from which the audit will choose one.

    Raises:
        TypeError: if an argument is of the wrong type.
        ValueError: for one of these reasons:

            - no pair is given, and the mechanism has no default pair;
            - `pair` is an empty list;
            - the two inputs of a pair are equal, and `null` is False;
            - the two inputs of a pair are not neighbours.
    """
    if neighbour is not None:
        neighbour = neighbour_of(neighbour)
    candidates = replace(
        _read_pair_argument_or_default(mechanism, pair),
        neighbour=neighbour,
        null=flag("null", null),
        mechanism=mechanism,
    )
    for candidate in candidates.pairs:
        if can_core_draw(mechanism):
            dim_of(candidate)
        candidates.checked(candidate)
    return candidates


def refuse_single_use_or_recursive(name: str, x: Any) -> None:
    """Raise an error if a mechanism input can be read only once, or if the input contains itself.

    Args:
        name: name of the input in the error message.
        x: the input.

    Raises:
        TypeError: if the input is an iterator (such as a generator), an open file, a socket or a
            lock. The error is also raised if the input is a list, tuple or dict that contains such
            an object.
        ValueError: if the input contains itself, or if its lists are nested more deeply than Python
            allows.
    """
    try:
        _reject_single_use_items(name, x, x, set(), set())
    except RecursionError:
        raise invalid(name, "an input that does not hold itself", x) from None


def _reject_single_use_items(name: str, x: Any, item: Any, path: set[int], done: set[int]) -> None:
    """Raise an error if an item of an input, or an object in this item, can be read only once.

    Args:
        name: name of the input in the error message.
        x: the whole input.
        item: the item.
        path: ids of the containers that contain the item.
        done: ids of the containers that have already been checked.
    """
    is_lock = has_all(item, "acquire", "release")
    if isinstance(item, Iterator) or is_lock or callable(getattr(item, "fileno", None)):
        kind = f"not a {type(item).__name__}"
        if isinstance(item, Iterator):
            kind = "not an iterator, which the first call uses up"
        requirement = (
            f"an input that every call can read, {kind} "
            "(list(...) of a generator, the text of an open file)"
        )
        raise mistyped(name, requirement, x)
    if not isinstance(item, (list, tuple, dict)) or id(item) in done:
        return
    if id(item) in path:
        raise RecursionError
    inner = list(item.values()) if isinstance(item, dict) else item
    # One object for each type of plain items, because a data set has many items.
    kinds = {type(part): part for part in inner}
    containers = tuple(kind for kind in kinds if issubclass(kind, (list, tuple, dict)))
    for part in kinds.values():
        if not isinstance(part, containers):
            _reject_single_use_items(name, x, part, path, done)
    for part in inner if containers else ():
        if isinstance(part, containers):
            _reject_single_use_items(name, x, part, path | {id(item)}, done)
    done.add(id(item))


@contextmanager
def watch_inputs(name: str, pair: Pair) -> Iterator[None]:
    """Check at the end of the `with` block that the mechanism has not changed its two inputs.

    Args:
        name: name of the mechanism in the error message.
        pair: the two inputs.

    Raises:
        ValueError: if an input has changed. This error is raised instead of any error that occurred
            in the `with` block.
    """
    sides = {"x": pair.x, "x'": pair.x_prime}
    before = {side: fingerprint_input(x) for side, x in sides.items()}
    cause = None
    try:
        yield
    except Exception as error:
        cause = error
    for side, x in sides.items():
        if fingerprint_input(x) != before[side]:
            text = (
                f"mechanism must leave its inputs as they are: {name} changes its input {side}; "
                "copy it first (copy.deepcopy)"
            )
            raise tag_error(ValueError(text), "mechanism") from cause
    if cause is not None:
        raise cause


def dim_of(pair: Pair) -> int:
    """Check that the two inputs of a pair are vectors of equal length, and return this length.

    Raises:
        TypeError: if an input does not consist of real numbers.
        ValueError: if an input is not a vector of finite numbers, or if the lengths differ.
    """
    x, x_prime = vector("x", pair.x), vector("x_prime", pair.x_prime)
    if x.shape != x_prime.shape:
        raise invalid("pair", "two inputs of equal shape", (x.shape, x_prime.shape))
    return x.size


def _read_pair_argument_or_default(mechanism: Any, pair: Any) -> PairCandidates:
    if pair is None:
        return PairCandidates(_get_default_pairs(mechanism))
    if isinstance(pair, Search):
        return PairCandidates((), pair)
    if isinstance(pair, tuple) and len(pair) == 2 and not isinstance(pair[0], Pair):
        return PairCandidates((Pair(*pair),))
    is_data = isinstance(pair, (str, bytes, dict, np.ndarray))
    several = tuple(pair) if isinstance(pair, Iterable) and not is_data else (pair,)
    if not all(isinstance(each, Pair) for each in several):
        need = "a Pair, a tuple (x, x_prime), several Pairs, a pairs.search(...) or None"
        raise mistyped("pair", need, pair)
    if not several:
        raise invalid("pair", "at least one Pair", pair)
    return PairCandidates(several)


def _get_default_pairs(mechanism: Any) -> tuple[Pair, ...]:
    """Return the default pairs of a mechanism.

    These are the pairs from its method `default_pair`. For native mechanisms without this method,
    the pair is [0] and [1].
    """
    make = get_or_default(mechanism, "default_pair")
    if make is None and not isinstance(mechanism, Native):
        # 0 and 1 may not be neighbours, or may be so close that every mechanism passes.
        requirement = (
            "given, because the mechanism has no default_pair: two inputs that the claim calls "
            "neighbours, as in audit(mechanism, ([0.0], [1.0]))"
        )
        raise invalid("pair", requirement, None)
    default = zeros_ones(1) if make is None else make()
    pairs = default if isinstance(default, tuple) else (default,)
    if not pairs or not all(isinstance(pair, Pair) for pair in pairs):
        raise mistyped("default_pair()", "a Pair or a tuple of Pairs", default)
    return pairs


def choose_pair(
    candidates: PairCandidates,
    source_of: Callable[[Pair], Source],
    attack: ScoreAttack,
    goal: Goal,
    pilot: int,
    trials: int,
    seed: int,
    course: TimeLog,
) -> tuple[Pair, Searched | None]:
    """Choose the pair of inputs with the largest expected bound on epsilon.

    The pairs are compared in rounds, on draws of the mechanism. These draws are not counted in the
    audit. If the pairs were given, only the best third of the pairs goes to the next round.

    Args:
        candidates: the given pairs, or a search that proposes pairs.
        source_of: function that takes a pair, and returns an object that draws outputs on the two
            inputs of this pair.
        attack: the attack. The attack is fitted again for each pair.
        goal: settings of the planned audit: number of counted trials, delta, and confidence level.
        pilot: number of draws per input that the audit later makes to choose its event. If the
            pairs were given, a larger number also increases the number of draws in the rounds.
        trials: number of counted draws per input. If the pairs were given, this number limits the
            total number of draws of all rounds.
        seed: seed of the random choices of the search.
        course: record of the steps and times of the audit.

    Returns:
        The chosen pair, and the record of the search. The record is None if the pairs were given.
    """
    rounds = plan_rounds(candidates, pilot, trials)
    total = 2 * sum(many * size for many, size in rounds)
    course.begin_step("search", "searching the pair", total)

    def evaluate(pair: Pair, size: int) -> float:
        # A search proposes pairs during its course, so each is checked here.
        return _predict_bound(source_of(candidates.checked(pair)), pair, attack, goal, size)

    if candidates.search is not None:
        return explore(candidates.search, evaluate, np.random.default_rng((seed, 0)))
    left = list(candidates.pairs)
    for many, size in rounds:
        left = sorted(left[:many], key=lambda pair: -evaluate(pair, size))
    return left[0], None


def plan_rounds(candidates: PairCandidates, pilot: int, trials: int) -> tuple[tuple[int, int], ...]:
    """Plan the rounds in which an audit compares pairs of inputs, to choose one pair.

    If a search proposes the pairs, the rounds follow from the budget of the search (a total number
    of draws). If the pairs are given, the total number of draws per input is limited. The limit is
    the larger of two numbers: ``8 * trials``, and 64 times the number of pairs.

    Args:
        candidates: the given pairs, or a search that proposes pairs.
        pilot: number of draws per input that the audit later makes to choose its event.
        trials: number of counted draws per input.

    Returns:
        Two numbers for each round: the number of pairs, and the number of draws per input for each
        pair.
    """
    if candidates.search is not None:
        return candidates.search.schedule()
    rounds, pairs = [], len(candidates.pairs)
    limit = max(_ROUND_DRAWS_PER_TRIAL * trials, _MIN_DRAWS_PER_PAIR * pairs)
    while pairs > 1:
        # Every round costs half a pilot in total, and only the last rounds may be long.
        most = _MAX_ROUND_ROWS if pairs > _FINAL_ROUND_PAIRS else _MAX_FINAL_ROUND_ROWS
        rounds.append((pairs, min(max(_MIN_ROUND_ROWS, pilot // (2 * pairs)), most)))
        pairs = (pairs + 2) // 3
    total = sum(many * size for many, size in rounds)
    # All rounds are reduced in proportion, so that late rounds keep their longer pilots.
    return tuple((many, size * min(limit, total) // total) for many, size in rounds)


def _predict_bound(source: Source, pair: Pair, attack: ScoreAttack, goal: Goal, size: int) -> float:
    vectors = pair_lists_to_float_arrays(noiseless_outputs(source.draws.mechanism, pair) or pair)
    merit = _predict_wide_pair_bound(source, vectors, attack, goal, size)
    if merit is None:
        merit = _predict_bound_for_few_output_columns(source, vectors, attack, goal, size)
    # A metric claim is per unit of distance; with delta, a bound is never divided.
    return merit if goal.delta or merit < 0.0 else merit / pair.distance


def _predict_wide_pair_bound(
    source: Source, pair: Pair, attack: ScoreAttack, goal: Goal, size: int
) -> float | None:
    """Return the bound that an audit of a pair is expected to certify, for outputs of many columns.

    The result is None if the outputs do not have many columns. It is minus infinity if the attack
    makes no scores.
    """
    reading = None
    if is_wide(source.elements, size):
        reading = read_and_select_columns(source, attack, pair, size)
    if reading is None:
        return None
    scores = reading.learn_scores(f"outputs of {source.name}")
    if not scores and not reading.whole:
        return -math.inf
    return choose_event_of_wide_outputs(source, scores, reading, goal.less_cautious_goal())[0].merit


def _predict_bound_for_few_output_columns(
    source: Source, pair: Pair, attack: ScoreAttack, goal: Goal, size: int
) -> float:
    training = max(1, min(size // 2, _MAX_ROUND_TRAINING_ROWS))
    sides = source.convert_to_common_type(*source.outputs(PILOT, 0, training))
    scores, _ = read_candidates(attack, *sides, pair, f"outputs of {source.name}")
    if not scores:
        return -math.inf
    selection = size - training
    first_look = draw_first_outputs(source, selection, selection)
    return select_event(source, scores, first_look, selection, goal.less_cautious_goal()).merit
