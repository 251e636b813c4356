"""Forecast of the time of an audit, and the number of trials that fit a given time.

dpcore assumes that a call of the mechanism takes a fixed time, plus a further time for each output.
The fixed time is, for example, the time to start a process or to wait for a network. Both times are
estimated from calls that make different numbers of outputs.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from ..claims.trade_off import Claim
from ..errors import invalid
from ..mechanisms.callables import is_thread_safe, is_unbatched
from ..mechanisms.declarations import can_core_draw
from ..progress import LONG_SECONDS, format_time
from ..sampling.driver import Shard, Source, Votes, return_outputs_unchanged, run_shard
from ..sampling.sources import estimate_times
from ..sampling.workers import count_workers
from ..streams import MOST_DRAWS, PILOT, PROBE, trials_per_thread
from .call_sizes import MAX_CALL_SECONDS, plan_call_size_test
from .early_stop import REFIT_RATIO
from .pair_choice import plan_rounds
from .pilot import PilotDraws
from .randomness import classify_difference
from .request import BLOCK, MIN_BUDGET_TRIALS, UnsettledRequest, largest_certifiable

_SLOW_OUTPUT_SECONDS: Final = 0.01
"""Time per output from which on a forecast is always shown."""
_FAST_OUTPUT_SECONDS: Final = 0.001
"""Time per output below which no forecast is shown, because such times are not measured exactly."""
_MAX_ADVISED_SECONDS: Final = 600.0
"""Longest time of an audit with the proposed smaller number of trials."""
_PROBE_CALLS: Final = 18
_PROBE_OUTPUTS: Final = (24, 512)
"""Number of calls between the timed calls and the pilot (the first draws). The second constant is
the least and the largest number of outputs in these calls."""
_FIRST_TIMED_ROWS: Final = 16
_TIMED_ROWS_GROWTH: Final = 8
_MIN_TIMED_SECONDS: Final = 0.02
"""Least time of the outputs in the last timed call, if the user gives a time for the audit."""
_FIRST_FITTED_ROWS: Final = 32
_MAX_FITTED_ROWS: Final = 2**17
_MAX_COUNTED_ROWS: Final = 2**22
"""Limits on the number of draws per input of timed choices (the first two constants), and of timed
counts (the last constant)."""
_MIN_FIT_GROWTH: Final = 2
"""If a choice of an event gets eight times the draws, its time is assumed to grow by this factor or
more."""
_MAX_CHOICE_SHARE: Final = 0.2
"""Share of the given time that one timed choice of an event may take."""
_MAX_TIMED_SHARE: Final = 0.05
"""Share of the given time that a timed call may take, except the first call."""
_TIMED_BLOCK_NUMBER: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of the time that an audit takes, from the measured times of a few mechanism calls.

    The forecast is printed for the user. It does not change the result of the audit.

    Args:
        fixed: time in seconds that each mechanism call takes in addition to the time for its
            outputs.
        each: further time in seconds for each output of a call.
        calls: number of calls whose times were measured.
        search: function that takes the number of trials of the audit, and returns one entry for
            each round in which pairs of inputs are compared. An entry has two numbers: the number
            of pairs, and the number of draws per input for each pair.
        limit: largest time in seconds for the choice of the pair of inputs, or None without a
            limit. At least one pair is always examined, even if this takes longer.
        pilot: function that takes the number of trials of the audit. The function returns the
            number of draws per input that are made to choose the event (the set of outputs that is
            counted).
        trials: number of counted draws per input.
        early: True if the audit may end before all trials are counted.
        most: function that takes a number of trials, and returns the largest bound on epsilon that
            an audit can certify with this number. None if this bound is not known.
        claim: the claimed epsilon. None if the claim is a trade-off curve, or if no claim is given.
        threads: number of workers (threads or processes) that draw outputs.
        block: number of trials in a block. One worker draws a whole block.
        calls_of: function that takes a number of outputs in one block, and returns the number of
            mechanism calls that make these outputs.
        one_by_one: True if each call makes only one output.
        shared: True if several threads may call the mechanism at the same time.
        fit: two times in seconds for the choice of an event: a fixed time, and a further time for
            each draw that is used in this choice. The time to make the draws is not included.
        counted: time in seconds to draw and count one output, or None if it was not measured.
    """

    fixed: float
    each: float
    calls: int
    search: Callable[[int], tuple[tuple[int, int], ...]]
    limit: float | None
    pilot: Callable[[int], int]
    trials: int
    early: bool
    most: Callable[[int], float] | None
    claim: float | None
    threads: int
    block: int
    calls_of: Callable[[int], int]
    one_by_one: bool
    shared: bool
    fit: tuple[float, float] = (0.0, 0.0)
    counted: float | None = None

    @property
    def seconds(self) -> float:
        """Expected time to make one output of the mechanism, in seconds.

        The fixed time of a call is divided equally among the outputs of the call, and is included.
        """
        rows = min(self.trials, self.block)
        return self.each + self.calls_of(rows) * self.fixed / rows

    def __str__(self) -> str:
        """Return the forecast as text for a terminal.

        The text is empty if an output takes less than 1 ms. It is also empty if an output takes
        less than 10 ms and the whole audit takes less than 30 s.
        """
        if self.seconds < _FAST_OUTPUT_SECONDS or (
            self.seconds < _SLOW_OUTPUT_SECONDS and self._audit_seconds(self.trials) < LONG_SECONDS
        ):
            return ""
        search = sum(many * size for many, size in self.search(self.trials))
        parts = [f"2 x {search:,} to choose the pair"] if search else []
        parts += [f"2 x {self.pilot(self.trials):,} pilots", f"2 x {self.trials:,} to count"]
        rough = " (by one call, which may be the slowest)" if self.calls < 2 else ""
        most = "at most " if self.early or self.limit is not None else ""
        lines = [
            f"dpcore: an output takes about {format_time(self.seconds)}{rough}, and there are "
            f"{', '.join(parts)}: {most}{format_time(self._audit_seconds(self.trials))}"
            + (f" if {self.threads} calls run at a time" if self.threads > 1 else ""),
            *self._advise_fewer_trials_if_slow(),
        ]
        if search:
            lines.append(
                "a search takes less with a smaller budget=, or with the one pair that it found"
            )
        lines += self._advise_parallel_draws()
        if self.one_by_one:
            lines.append("a mechanism (x, size, rng) draws many outputs in one call, if it can")
        return "\n  ".join(lines)

    def fit_trials(self, seconds: float, spent: float, most: int) -> int:
        """Return the largest number of trials for which the audit should end within a given time.

        A block is a group of trials that one worker draws together. If the time is enough for one
        block, the result is a multiple of the number of trials in a block.

        Args:
            seconds: time limit of the whole audit in seconds.
            spent: time in seconds that the audit has already used.
            most: a number of trials. The result must be smaller than this number.

        Raises:
            ValueError: if the time is too short for 100 trials. The error is also raised if the
                time is long enough for `most` trials.
        """

        def total(trials: int) -> float:
            few, many = _PROBE_OUTPUTS
            single = self.one_by_one or self.block == 1
            probed = max(few, min(trials // 8, many)) if single else many
            probe = _PROBE_CALLS * self.fixed + probed * self.each
            calls, rows = plan_call_size_test(self.block, trials)
            longer = self.fixed + rows * self.each
            if longer <= MAX_CALL_SECONDS and not self.one_by_one:
                probe += 2 * calls * (self.fixed + self.each + longer)
            return spent + probe + self._audit_seconds(trials)

        least = total(MIN_BUDGET_TRIALS)
        if least > seconds:
            # The proposed budget is larger than the forecast, because a larger budget times more
            # calls.
            requirement = f"at least {1.5 * least:.2g}, the time of {MIN_BUDGET_TRIALS} trials"
            raise invalid("seconds", requirement, seconds)
        unit = self.block if total(self.block) <= seconds else 1
        numbers = range(1, most // unit + 1)
        number = bisect.bisect_right(numbers, seconds, key=lambda number: total(number * unit))
        if number == len(numbers):
            raise invalid("seconds", f"so few that at most {most:,} trials fit", seconds)
        return number * unit

    def _audit_seconds(self, trials: int) -> float:
        rounds = self.search(trials)
        search = sum(many * self._pilot_seconds(size) for many, size in rounds)
        if self.limit is not None:
            search = min(search, max(self.limit, self._pilot_seconds(rounds[0][1])))
        # An audit with early stop keeps the counted outputs, to choose further events.
        count = self._draw_seconds(trials, None if self.early else self.counted)
        return (
            search + self._pilot_seconds(self.pilot(trials)) + self._refit_seconds(trials) + count
        )

    def _refit_seconds(self, trials: int) -> float:
        """Compute the time to choose events after the first event, in an audit with early stop."""
        if not self.early:
            return 0.0
        choices = math.log1p(trials / self.pilot(trials)) / math.log(REFIT_RATIO)
        # Half of the draws train such a choice; in a pilot, a quarter of the draws does.
        each = 2.0 * self.fit[1] * REFIT_RATIO / (REFIT_RATIO - 1.0)
        return choices * self.fit[0] + each * trials

    def _pilot_seconds(self, size: int) -> float:
        """Compute the time of a pilot of `size` draws per input, with the choice of an event."""
        draws = self._draw_seconds(size // 2) + self._draw_seconds(size - size // 2)
        return draws + self.fit[0] + self.fit[1] * size

    def _draw_seconds(self, draws_per_input: int, each: float | None = None) -> float:
        """Compute the time for `draws_per_input` draws, if the workers share the blocks."""
        each = self.each if each is None else each
        turns = -(-draws_per_input // (self.block * self.threads))
        rows = min(draws_per_input, self.block)
        return 2 * turns * (self.calls_of(rows) * self.fixed + rows * each)

    def _advise_fewer_trials_if_slow(self) -> list[str]:
        if (
            self._audit_seconds(self.trials) <= _MAX_ADVISED_SECONDS
            or self.trials <= MIN_BUDGET_TRIALS
        ):
            return []
        trials = MIN_BUDGET_TRIALS
        while (
            10 * trials < self.trials and self._audit_seconds(10 * trials) <= _MAX_ADVISED_SECONDS
        ):
            trials *= 10
        line = f"trials={trials} takes about {format_time(self._audit_seconds(trials))}"
        if self.most is None:
            return [line]
        most = self.most(trials)
        few = self.claim is not None and most <= self.claim
        warning = f", too few for a claim of {self.claim:g}" if few else ""
        line += f" and certifies an epsilon of {most:.2f} at most{warning}"
        return [f"{line} ({self.trials:,} trials: {self.most(self.trials):.2f})"]

    def _advise_parallel_draws(self) -> list[str]:
        blocks = -(-self.trials // self.block)
        if self.threads > 1:
            proposed_block = trials_per_thread(self.trials, self.threads)
            few = f"{self.trials:,} trials are {blocks} of {self.block:,}"
            line = f"blocks are shared out, and {few}: give block={proposed_block}"
            return [line] if blocks < self.threads else []
        if self.shared:
            return ["threads=8 makes eight of these calls at a time"]
        if self.one_by_one:
            return [
                "dpcore.repeat(..., thread_safe=True) and threads=8, where the code allows it, or "
                "executor=, share the calls out"
            ]
        return ["threads= or executor= share blocks of calls out; block= says how long they are"]


def fit_trials_to_time(request: UnsettledRequest, say: Callable[[str], None]) -> UnsettledRequest:
    """Forecast the time of an audit, and choose the number of trials if the user gave a time limit.

    The function measures the times of some mechanism calls, and prints the forecast.

    Args:
        request: the arguments of the audit.
        say: function that prints the forecast.

    Returns:
        A copy of the arguments with the chosen number of trials. Without a time limit, the number
        of trials is unchanged. If two calls with equal random generators gave different outputs,
        the field `randomness` becomes "own": the mechanism uses other randomness than the given
        generator.
    """
    request = _time_growing_calls(request)
    forecast = _forecast_time(request)
    if request.budget is not None:
        most = (MOST_DRAWS - 1) // max(1, request.make_source(request.probe_pair).elements)
        if not request.attack.times:
            forecast = _time_event_choice(request, forecast, request.budget)
        spent = request.course.seconds("probe")
        trials = forecast.fit_trials(request.budget, spent, most - request.start)
        request, forecast = replace(request, trials=trials), replace(forecast, trials=trials)
    say(str(forecast))
    return request


def _time_event_choice(request: UnsettledRequest, forecast: Forecast, budget: float) -> Forecast:
    """Measure the time to choose an event and to count it, and add these times to a forecast.

    An event is chosen on pilots of increasing size. Each choice may take a fifth of `budget`, in
    seconds. The chosen events are not used.
    """
    course, source = request.course, request.make_source(request.probe_pair)
    limit = _MAX_CHOICE_SHARE * budget
    largest = min(request.pilot or _MAX_FITTED_ROWS, _MAX_FITTED_ROWS)
    fits: dict[int, float] = {}
    size, seconds, event = min(_FIRST_FITTED_ROWS, largest), 0.0, None
    while seconds + forecast._pilot_seconds(size) <= limit:
        pilot = PilotDraws(source, request.probe_pair, request.goal, size, request.looks_at_floats)
        begun = course.clock()
        event = request.attack.fitted_on(pilot).event
        seconds = course.clock() - begun
        course.add_outputs(2 * size)
        fits[size] = max(0.0, seconds - forecast._pilot_seconds(size))
        if size == largest or fits[size] < _MAX_CHOICE_SHARE * forecast._pilot_seconds(size):
            break
        # The first choice also imports modules and starts threads.
        seconds *= 1 / 2 if len(fits) == 1 else _MIN_FIT_GROWTH
        size = min(_TIMED_ROWS_GROWTH * size, largest)
    if event is None:
        return forecast
    size = max(fits)
    # Small pilots mainly measure Python's time per column, and the first one measures imports.
    last = {size: fits[size] for size in sorted(fits)[-2:]}
    least = fits[size] / size / _TIMED_ROWS_GROWTH
    each = max(least, estimate_times(last)[1]) if len(last) > 1 else least
    fit = max(0.0, fits[size] - size * each), each
    if request.executor is not None:
        return replace(forecast, fit=fit)
    counts: dict[int, float] = {}
    while True:
        begun = course.clock()
        source.tally(event, PILOT, 0, size)
        seconds = course.clock() - begun
        course.add_outputs(2 * size)
        counts[size] = seconds - forecast._draw_seconds(size, 0.0)
        is_long = seconds >= _MIN_TIMED_SECONDS or _TIMED_ROWS_GROWTH * seconds > limit
        if is_long or size >= _MAX_COUNTED_ROWS or not source.draws.native:
            break
        size *= _TIMED_ROWS_GROWTH
    workers = min(forecast.threads, -(-size // source.block))
    counted = estimate_times(counts)[1] * workers / 2
    # Native outputs that are only counted take less time than outputs that are kept.
    least = forecast.each / _TIMED_ROWS_GROWTH if source.draws.native else forecast.each
    return replace(forecast, fit=fit, counted=max(counted, least))


def _forecast_time(request: UnsettledRequest) -> Forecast:
    candidates, source = request.wanted, request.make_source(request.probe_pair)
    early, executor = request.stop != "fixed", request.executor
    pilot = partial(min, BLOCK) if early else request.attack.default_pilot
    fixed, each = request.course.fixed_and_output_seconds()

    def plan_search(trials: int) -> tuple[tuple[int, int], ...]:
        return plan_rounds(candidates, replace(request, trials=trials).pilot_size, trials)

    return Forecast(
        fixed=fixed,
        each=each,
        calls=request.course.calls,
        search=plan_search,
        limit=None if candidates.search is None else candidates.search.seconds,
        pilot=lambda trials: request.pilot or pilot(trials),
        trials=request.trials,
        early=early,
        most=None
        if request.attack.pools
        else partial(largest_certifiable, request, request.probe_pair),
        claim=None if isinstance(request.claim, Claim) else request.claim,
        threads=source.threads if executor is None else count_workers(executor, request.threads),
        block=1 if request.attack.times else source.block,
        calls_of=source.draws.count_calls,
        one_by_one=is_unbatched(request.mechanism),
        shared=is_thread_safe(request.mechanism),
    )


def _time_growing_calls(request: UnsettledRequest) -> UnsettledRequest:
    """Measure larger and larger calls, until the outputs take longer than a call's fixed time.

    Without a given time for the audit, calls are measured only if an output takes 1 ms or more.
    """
    course, budget, times = request.course, request.budget, request.attack.times
    native, (fixed, each) = can_core_draw(request.mechanism), course.fixed_and_output_seconds()
    alone = native or times or is_unbatched(request.mechanism)
    if budget is None and (alone or each < _FAST_OUTPUT_SECONDS):
        return request
    source, shard, least = request.make_source(request.probe_pair), None, _MIN_TIMED_SECONDS
    limit = 1 if times else source.block
    if budget is None:
        limit, least = min(limit, max(request.trials, request.pilot_size)), 0.0
    rows, share = min(_FIRST_TIMED_ROWS, limit), 1.0
    while budget is None or 2 * (fixed + rows * each) <= share * budget:
        shard = _time_block(request, source, rows)
        fixed, each = course.fixed_and_output_seconds()
        if rows == limit or rows * each >= max(fixed, least):
            break
        rows, share = min(_TIMED_ROWS_GROWTH * rows, limit), _MAX_TIMED_SHARE
    for _ in range(_FIRST_TIMED_ROWS * times):
        _time_block(request, source, 1)
    if shard is None or native or times:
        return request
    again = _time_block(request, source, shard.end - shard.first)
    # If no seed repeats a mechanism, its blocks are drawn in several calls.
    is_own = classify_difference(shard.sides[0][0], again.sides[0][0]) == "own"
    return replace(request, randomness="own") if is_own else request


def _time_block(request: UnsettledRequest, source: Source, rows: int) -> Shard:
    """Draw `rows` outputs on x and on x', record the time, and return the outputs."""
    work: Any = return_outputs_unchanged
    attack: Any = request.attack
    if source.draws.native and attack.by_ballot:
        work = Votes(attack.event(source.draws.pair).ballot, source.route, 1)
    # For a callable, a block number that is not used elsewhere.
    first = 0 if source.draws.native else _TIMED_BLOCK_NUMBER * source.block
    begun = request.course.clock()
    shard = run_shard(source.draws, work, source.make_draw_task(PROBE, first, first + rows))
    seconds = (request.course.clock() - begun) / 2
    for _ in shard.sides:
        request.course.record_call_duration(rows, seconds)
    return shard
