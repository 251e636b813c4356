"""Forecast of an audit's time from its first calls, and the number of trials for a budget.

A call takes a fixed time (to start a process, or to wait for a network or a device) and a time per
output. Calls of two sizes separate these two times.
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
from ..mechanisms.callables import is_shared, one_by_one
from ..mechanisms.declarations import is_native
from ..progress import LONG_SECONDS, format_time
from ..sampling.driver import Shard, Source, Votes, draw_shard, keep_outputs
from ..sampling.sources import estimate_times
from ..sampling.workers import count_workers
from ..streams import MOST_DRAWS, PILOT, PROBE, shared_block
from .call_sizes import MAX_CALL_SECONDS, plan_call_sizes
from .early_stop import REFIT_RATIO
from .pair_choice import plan_rounds
from .pilot import PilotDraws
from .randomness import compare_outputs
from .request import BLOCK, MIN_BUDGET_TRIALS, UnsettledRequest, most_certified

_SLOW_OUTPUT_SECONDS: Final = 0.01
"""Least time per output for which a forecast is shown in any case."""
_FAST_OUTPUT_SECONDS: Final = 0.001
"""Time per output up to which no forecast is shown, because it is not timed exactly."""
_MAX_ADVISED_SECONDS: Final = 600.0
"""Longest time of a proposed smaller number of trials, which is a power of ten."""
_PROBE_CALLS: Final = 18
_PROBE_OUTPUTS: Final = (24, 512)
"""Numbers of calls and (least, largest) of outputs between the timed calls and the first pilot."""
_FIRST_TIMED_ROWS: Final = 16
_TIMED_ROWS_GROWTH: Final = 8
_MIN_TIMED_SECONDS: Final = 0.02
"""Least time for the outputs of the last timed call, if a budget depends on it."""
_FIRST_FITTED_ROWS: Final = 32
_MAX_FITTED_ROWS: Final = 2**17
_MAX_COUNTED_ROWS: Final = 2**22
"""Smallest and largest numbers of draws per side of pilots with a timed choice."""
_MIN_FIT_GROWTH: Final = 2
"""Least factor by which the time of a choice grows if the draws grow eightfold."""
_MAX_CHOICE_SHARE: Final = 0.2
"""Share of a budget that one timed choice may take."""
_MAX_TIMED_SHARE: Final = 0.05
"""Share of a budget that a timed call after the first call may take."""
_TIMED_BLOCK_NUMBER: Final = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Forecast of an audit's time from a few calls. It is printed, but not recorded.

    Args:
        fixed: time of a call in seconds, without the time of its outputs.
        each: time of one output in seconds, in the fastest case.
        calls: number of timed calls.
        search: function from the number of trials to the rounds that choose the pair: the number of
            pairs, and the draws per side for each pair.
        limit: time in seconds that a search may take, or None. Its first pilot is always finished.
        pilot: function from the number of trials to the draws per side for choosing the event.
        trials: number of counted draws per side.
        early: True if the count may end early.
        most: function from the number of trials to the largest certifiable bound, or None if it is
            not known.
        claim: the tested claim, or None.
        threads: number of workers.
        block: number of trials in a block.
        calls_of: function from a number of outputs of a block to the number of calls per side.
        one_by_one: True if each output has its own call.
        shared: True if threads may share these calls.
        fit: time in seconds to choose an event, and time for each of its pilot draws on both sides,
            without the time of the draws.
        counted: time in seconds for one output that is drawn and counted, or None if it was not
            timed.
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
        """Time of one output in seconds, in calls of the length used for the count."""
        rows = min(self.trials, self.block)
        return self.each + self.calls_of(rows) * self.fixed / rows

    def __str__(self) -> str:
        """Return lines for a terminal; empty if an output takes less than 1 ms.

        They are also empty if an output takes less than 10 ms and the audit less than 30 s.
        """
        if self.seconds < _FAST_OUTPUT_SECONDS or (
            self.seconds < _SLOW_OUTPUT_SECONDS and self._takes(self.trials) < LONG_SECONDS
        ):
            return ""
        search = sum(many * size for many, size in self.search(self.trials))
        parts = [f"2 x {search:,} to choose the pair"] if search else []
        parts += [f"2 x {self.pilot(self.trials):,} pilots", f"2 x {self.trials:,} to count"]
        rough = " (by one call, which may be the slowest)" if self.calls < 2 else ""
        most = "at most " if self.early or self.limit is not None else ""
        lines = [
            f"dpcore: an output takes about {format_time(self.seconds)}{rough}, and there are "
            f"{', '.join(parts)}: {most}{format_time(self._takes(self.trials))}"
            + (f" if {self.threads} calls run at a time" if self.threads > 1 else ""),
            *self._fewer(),
        ]
        if search:
            lines.append(
                "a search takes less with a smaller budget=, or with the one pair that it found"
            )
        lines += self._shared()
        if self.one_by_one:
            lines.append("a mechanism (x, size, rng) draws many outputs in one call, if it can")
        return "\n  ".join(lines)

    def fit_trials(self, seconds: float, spent: float, most: int) -> int:
        """Return the largest number of trials that fit, in whole blocks if a block fits.

        Args:
            seconds: time for the whole audit in seconds.
            spent: part of this time that has already passed.
            most: largest number of trials.

        Raises:
            ValueError: if fewer than 100 trials fit, or more than `most`.
        """

        def total(trials: int) -> float:
            few, many = _PROBE_OUTPUTS
            single = self.one_by_one or self.block == 1
            probed = max(few, min(trials // 8, many)) if single else many
            probe = _PROBE_CALLS * self.fixed + probed * self.each
            calls, rows = plan_call_sizes(self.block, trials)
            longer = self.fixed + rows * self.each
            if longer <= MAX_CALL_SECONDS and not self.one_by_one:
                probe += 2 * calls * (self.fixed + self.each + longer)
            return spent + probe + self._takes(trials)

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

    def _takes(self, trials: int) -> float:
        rounds = self.search(trials)
        search = sum(many * self._time_pilot(size) for many, size in rounds)
        if self.limit is not None:
            search = min(search, max(self.limit, self._time_pilot(rounds[0][1])))
        # An audit with early stop keeps the counted outputs, to choose further events.
        count = self._time_draws(trials, None if self.early else self.counted)
        return search + self._time_pilot(self.pilot(trials)) + self._time_refits(trials) + count

    def _time_refits(self, trials: int) -> float:
        """Compute the time of the later choices in an audit with early stop."""
        if not self.early:
            return 0.0
        choices = math.log1p(trials / self.pilot(trials)) / math.log(REFIT_RATIO)
        # Half of the draws train such a choice; in a pilot, a quarter of the draws does.
        each = 2.0 * self.fit[1] * REFIT_RATIO / (REFIT_RATIO - 1.0)
        return choices * self.fit[0] + each * trials

    def _time_pilot(self, size: int) -> float:
        """Compute the time of a pilot: one half fits scores, the other half chooses."""
        draws = self._time_draws(size // 2) + self._time_draws(size - size // 2)
        return draws + self.fit[0] + self.fit[1] * size

    def _time_draws(self, size: int, each: float | None = None) -> float:
        """Compute the time of some draws per side, in blocks that the workers share."""
        each = self.each if each is None else each
        turns = -(-size // (self.block * self.threads))
        rows = min(size, self.block)
        return 2 * turns * (self.calls_of(rows) * self.fixed + rows * each)

    def _fewer(self) -> list[str]:
        if self._takes(self.trials) <= _MAX_ADVISED_SECONDS or self.trials <= MIN_BUDGET_TRIALS:
            return []
        trials = MIN_BUDGET_TRIALS
        while 10 * trials < self.trials and self._takes(10 * trials) <= _MAX_ADVISED_SECONDS:
            trials *= 10
        line = f"trials={trials} takes about {format_time(self._takes(trials))}"
        if self.most is None:
            return [line]
        most = self.most(trials)
        few = self.claim is not None and most <= self.claim
        warning = f", too few for a claim of {self.claim:g}" if few else ""
        line += f" and certifies an epsilon of {most:.2f} at most{warning}"
        return [f"{line} ({self.trials:,} trials: {self.most(self.trials):.2f})"]

    def _shared(self) -> list[str]:
        blocks = -(-self.trials // self.block)
        if self.threads > 1:
            proposed_block = shared_block(self.trials, self.threads)
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


def settle_trials(request: UnsettledRequest, say: Callable[[str], None]) -> UnsettledRequest:
    """Time some calls, print the forecast, and return the request with a budget's trials.

    The request's randomness is "own" if a repeated call showed that no seed repeats the outputs.
    """
    request = _time_calls(request)
    forecast = _make_forecast(request)
    if request.budget is not None:
        most = (MOST_DRAWS - 1) // max(1, request.make_source(request.probe_pair).elements)
        if not request.attack.times:
            forecast = _time_choice(request, forecast, request.budget)
        spent = request.course.seconds("probe")
        trials = forecast.fit_trials(request.budget, spent, most - request.start)
        request, forecast = replace(request, trials=trials), replace(forecast, trials=trials)
    say(str(forecast))
    return request


def _time_choice(request: UnsettledRequest, forecast: Forecast, budget: float) -> Forecast:
    """Add the time of the choice of an event, and of its count, to a forecast.

    An event is chosen on pilots of increasing size. Each choice may take a fifth of the budget, and
    only its time is kept.
    """
    course, source = request.course, request.make_source(request.probe_pair)
    limit = _MAX_CHOICE_SHARE * budget
    largest = min(request.pilot or _MAX_FITTED_ROWS, _MAX_FITTED_ROWS)
    fits: dict[int, float] = {}
    size, seconds, event = min(_FIRST_FITTED_ROWS, largest), 0.0, None
    while seconds + forecast._time_pilot(size) <= limit:
        pilot = PilotDraws(source, request.probe_pair, request.goal, size, request.looks_at_floats)
        begun = course.clock()
        event = request.attack.fitted_on(pilot).event
        seconds = course.clock() - begun
        course.drew(2 * size)
        fits[size] = max(0.0, seconds - forecast._time_pilot(size))
        if size == largest or fits[size] < _MAX_CHOICE_SHARE * forecast._time_pilot(size):
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
        course.drew(2 * size)
        counts[size] = seconds - forecast._time_draws(size, 0.0)
        is_long = seconds >= _MIN_TIMED_SECONDS or _TIMED_ROWS_GROWTH * seconds > limit
        if is_long or size >= _MAX_COUNTED_ROWS or not source.draws.native:
            break
        size *= _TIMED_ROWS_GROWTH
    workers = min(forecast.threads, -(-size // source.block))
    counted = estimate_times(counts)[1] * workers / 2
    # Native outputs that are only counted take less time than outputs that are kept.
    least = forecast.each / _TIMED_ROWS_GROWTH if source.draws.native else forecast.each
    return replace(forecast, fit=fit, counted=max(counted, least))


def _make_forecast(request: UnsettledRequest) -> Forecast:
    candidates, source = request.wanted, request.make_source(request.probe_pair)
    early, executor = request.stop != "fixed", request.executor
    pilot = partial(min, BLOCK) if early else request.attack.default_pilot
    fixed, each = request.course.estimate_call()

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
        most=None if request.attack.pools else partial(most_certified, request, request.probe_pair),
        claim=None if isinstance(request.claim, Claim) else request.claim,
        threads=source.threads if executor is None else count_workers(executor, request.threads),
        block=1 if request.attack.times else source.block,
        calls_of=source.draws.count_calls,
        one_by_one=one_by_one(request.mechanism),
        shared=is_shared(request.mechanism),
    )


def _time_calls(request: UnsettledRequest) -> UnsettledRequest:
    """Time calls of increasing size, until the outputs take as long as the rest of a call.

    Without a budget, only slow calls are timed, and other calls have no forecast.
    """
    course, budget, times = request.course, request.budget, request.attack.times
    native, (fixed, each) = is_native(request.mechanism), course.estimate_call()
    alone = native or times or one_by_one(request.mechanism)
    if budget is None and (alone or each < _FAST_OUTPUT_SECONDS):
        return request
    source, shard, least = request.make_source(request.probe_pair), None, _MIN_TIMED_SECONDS
    limit = 1 if times else source.block
    if budget is None:
        limit, least = min(limit, max(request.trials, request.pilot_size)), 0.0
    rows, share = min(_FIRST_TIMED_ROWS, limit), 1.0
    while budget is None or 2 * (fixed + rows * each) <= share * budget:
        shard = _time_block(request, source, rows)
        fixed, each = course.estimate_call()
        if rows == limit or rows * each >= max(fixed, least):
            break
        rows, share = min(_TIMED_ROWS_GROWTH * rows, limit), _MAX_TIMED_SHARE
    for _ in range(_FIRST_TIMED_ROWS * times):
        _time_block(request, source, 1)
    if shard is None or native or times:
        return request
    again = _time_block(request, source, shard.end - shard.first)
    # If no seed repeats a mechanism, its blocks are drawn in several calls.
    is_own = compare_outputs(shard.sides[0][0], again.sides[0][0]) == "own"
    return replace(request, randomness="own") if is_own else request


def _time_block(request: UnsettledRequest, source: Source, rows: int) -> Shard:
    """Time a block of some rows on both sides, and return the drawn shard."""
    work: Any = keep_outputs
    attack: Any = request.attack
    if source.draws.native and attack.by_ballot:
        work = Votes(attack.event(source.draws.pair).ballot, source.route, 1)
    # For a callable, a block number that is not used elsewhere.
    first = 0 if source.draws.native else _TIMED_BLOCK_NUMBER * source.block
    begun = request.course.clock()
    shard = draw_shard(source.draws, work, source.task(PROBE, first, first + rows))
    seconds = (request.course.clock() - begun) / 2
    for _ in shard.sides:
        request.course.called(rows, seconds)
    return shard
