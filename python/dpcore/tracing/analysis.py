"""Runs of a function on two inputs x and x' with the same noise, and the change of the noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from ..records import Flags, Floats, Ints
from .calls import RunOutput, TracedFunction
from .moves import Conditions, NoiseMove, NoiseTable, cheapest_move, find_costs, move_conditions
from .replay import EndlessRun, NoiseUse, PartedRuns, RunParting, TracedRun, format_nth_time
from .returned import (
    CLEAR_TOLERANCE,
    RUN_TOLERANCE,
    SINGLE_SLACK,
    SINGLE_TOLERANCE,
    differing_path,
    iterate_leaves,
)

_MAX_SOLVED_DRAWS: Final = 64
"""Largest number of random values for which ordinary runs, one per value, can find the move (the
change of the noise)."""
_MAX_SINGLE_MOVES: Final = 64
_MOVE_GROUPS: Final = 16
"""Number of groups of changed values. They are tested in groups if they are more than
_MAX_SINGLE_MOVES."""


@dataclass(slots=True)
class DrawTrace:
    """Comparison of two runs of a function, on x and on x', with the same random noise.

    A move is a change of the noise on x'. With the changed noise, the function returns on x' the
    output that it returned on x. The privacy loss is the cost of the cheapest move.

    Attributes:
        number: number from which the seed of the noise is derived.
        recorded: record and output of the run on x. In this run, each number stores which noise it
            contains.
        replayed: record and output of the run on x' with the same noise. None if the function did
            not finish on x'.
        rows: linear conditions that a move must satisfy. None if the conditions could not be
            computed.
        table: scale and kind of each random value of the noise.
        move: the cheapest move. None if it could not be computed.
        costs: privacy cost of the change of each random value by the move.
        partings: places in the code at which the runs on x and x' differ.
        untraceable: reason why no privacy loss can be computed. Empty if the loss can be computed.
        unkept: reason why every move changes the outcome of a comparison in the code. Empty if
            some move keeps all outcomes.
        differing: path of the first returned value that differs between the two runs, although it
            contains no noise. None if no value differs.
        checked: True if an ordinary run on x' with the move returned the output of x.
        solved: True if the move was computed from ordinary runs on x', with one run for each random
            value.
        raised: error that the function raised on x' but not on x. None if it raised no error.
        lost: record of the first time that, in the run on x, the code reads noise which it has not
            yet added to another value. None if the code adds all noise before it reads the noise.
    """

    number: int
    recorded: RunOutput
    replayed: RunOutput | None = None
    rows: Conditions | None = None
    table: NoiseTable | None = None
    move: NoiseMove | None = None
    costs: Floats = field(default_factory=lambda: np.zeros(0))
    partings: list[RunParting] = field(default_factory=list)
    untraceable: str = ""
    unkept: str = ""
    differing: str | None = None
    checked: bool = False
    solved: bool = False
    raised: Exception | None = None
    lost: NoiseUse | None = None

    @property
    def pure_loss(self) -> float:
        """Privacy loss, in nats and at delta 0, of all noise in this run that is not Gaussian."""
        return self.pure_cost(self.costs) + self.total_loss_of_formula_calls

    @property
    def total_loss_of_formula_calls(self) -> float:
        """Privacy loss, in nats, of those calls in this run whose loss is given by a formula.

        An example is a call of a function with the decorator `primitive`.
        """
        return sum(step.loss for step in self.replayed.run.steps) if self.replayed else 0.0

    @property
    def mu(self) -> float:
        """Parameter mu of Gaussian differential privacy of all Gaussian noise in this run."""
        return self.find_mu(self.costs)

    def pure_cost(self, costs: Floats) -> float:
        """Return the sum of the privacy costs of all random values that are not Gaussian.

        `costs` holds the privacy cost of the change of each random value of the noise.
        """
        if self.table is None or not costs.size:
            return 0.0
        return float(costs[~self.table.is_gaussian].sum())

    def find_mu(self, costs: Floats) -> float:
        """Return the square root of the sum of squared privacy costs of all Gaussian random values.

        `costs` holds the privacy cost of the change of each random value of the noise.
        """
        if self.table is None or not costs.size:
            return 0.0
        return float(np.sqrt(np.square(costs[self.table.is_gaussian]).sum()))


def trace_both_inputs_with_same_noise(function: TracedFunction, number: int) -> DrawTrace:
    """Run a function on x and on x' with the same noise, and compare the runs.

    The result contains the cheapest change of the noise after which the run on x' returns the
    output of x. `number` determines the seed of the noise.

    Raises:
        Exception: if the function raises an error on x.
    """
    try:
        recorded = function.run(0, function.make_empty_run("record", number))
    except Exception as error:
        # Code that rejects traced numbers may still run with plain numbers.
        recorded = function.run(0, function.make_empty_run("plain", number))
        draw = DrawTrace(number, recorded, table=NoiseTable.of(recorded.run))
        draw.untraceable = f"a traced number is refused ({type(error).__name__}: {error})"
        _solve_move_by_runs(function, draw)
        return draw
    draw = DrawTrace(number, recorded, table=NoiseTable.of(recorded.run))
    draw.untraceable = _non_repeating_reason_or_empty(function, draw)
    if draw.untraceable:
        return draw
    replay = function.make_empty_run("replay", number, reference=recorded.run)
    try:
        draw.replayed = function.run(1, replay)
    except EndlessRun as error:
        draw.partings.append(
            RunParting("control flow", replay.draws[-1].place, str(error), 0, recorded.run.size)
        )
        return draw
    except Exception as error:
        draw.raised = error
        return draw
    draw.partings = [*replay.partings, *_draws_and_steps_missing_in_second_run(draw)]
    silent = [step for step in replay.steps if math.isnan(step.loss)]
    if silent:
        place = silent[0].place.short
        draw.untraceable = f"{silent[0].name} at {place} states no epsilon with delta 0"
        return draw
    _find_and_check_move(function, draw)
    return draw


def _non_repeating_reason_or_empty(function: TracedFunction, draw: DrawTrace) -> str:
    """Return the reason why a second run on x gives another output, or ""."""
    plain = function.make_empty_run("plain", draw.number, reference=draw.recorded.run)
    try:
        again = function.run(0, plain)
    except PartedRuns as error:
        return f"two runs on x with the same noise differ: {error}"
    except Exception as error:
        return f"a second run on x raises {type(error).__name__}"
    path = differing_path(draw.recorded.leaves, again.leaves, RUN_TOLERANCE, draw.recorded.parts)
    if path is None:
        return _changed_step_inputs(draw.recorded.run, plain)
    return f"two runs on x with the same noise differ in {path}"


def _changed_step_inputs(first: TracedRun, second: TracedRun) -> str:
    """Return the reason why two runs on x pass different inputs to a step, or "".

    A step is a call whose privacy loss is given by a formula.
    """
    for step, twin in zip(first.steps, second.steps, strict=False):
        first_inputs, inputs = (dict(iterate_leaves(part.inputs)) for part in (step, twin))
        if differing_path(first_inputs, inputs, RUN_TOLERANCE) is not None:
            return f"two runs on x with the same noise give {step.name} other inputs"
    return ""


def _draws_and_steps_missing_in_second_run(draw: DrawTrace) -> list[RunParting]:
    """List draws and steps (calls with a known privacy loss) that only the run on x contains.

    The list also contains the first use of noise that does not occur on x'.
    """
    first, second = draw.recorded.run, draw.replayed.run  # type: ignore[union-attr]
    missing = []
    for place in range(len(second.draws), len(first.draws)):
        lacking = first.draws[place]
        times = sum(other.law is lacking.law for other in first.draws[: place + 1])
        text = f"x draws {lacking.law.name} {format_nth_time(times)}, x' does not"
        span = lacking.start, lacking.start + lacking.noise.size
        missing.append(RunParting("control flow", lacking.place, text, *span))
    for step in first.steps[len(second.steps) :]:
        text = f"x calls {step.name}, x' does not"
        missing.append(RunParting("control flow", step.place, text))
    if len(second.uses) < len(first.uses) and not second.split:
        use = first.uses[len(second.uses)]
        what = "returns" if use.path else "uses"
        missing.append(RunParting("uses", use.place, f"x {what} a noisy value where x' does not"))
    return missing


def mark_read_compared_or_returned(draw: DrawTrace) -> Flags:
    """Mark those random values of the noise which the traced function uses.

    The result is True for each random value that is part of a number which the code reads, compares
    or returns.
    """
    runs = [output.run for output in (draw.recorded, draw.replayed) if output is not None]
    used = np.zeros(max(run.size for run in runs) + 1, bool)
    for run in runs:
        for use in run.uses:
            _, ids, weights = use.form
            used[ids[np.broadcast_to(weights, ids.shape) != 0]] = True
    return used


def _find_and_check_move(function: TracedFunction, draw: DrawTrace) -> None:
    """Compute and check the cheapest change of noise, unless the runs take different branches."""
    assert draw.replayed is not None
    assert draw.table is not None
    draw.differing = differing_path(
        draw.recorded.leaves, draw.replayed.leaves, CLEAR_TOLERANCE, draw.recorded.parts
    )
    if any(parting.kind in ("control flow", "uses") for parting in draw.partings):
        return
    draw.rows = move_conditions(draw.replayed.run, draw.table)
    if draw.rows.uneven or draw.rows.undefined:
        return
    draw.lost = _find_read_before_noise_is_added(draw)
    if draw.differing is not None:
        if draw.lost is not None:
            _solve_move_by_runs(function, draw)
        return
    draw.move = cheapest_move(draw.rows, draw.table)
    if draw.move.failures or draw.move.is_too_large:
        return
    draw.costs = find_costs(draw.move, draw.table)
    draw.untraceable = _move_failure_reason_or_empty(function, draw)
    draw.checked = not draw.untraceable


def _find_read_before_noise_is_added(draw: DrawTrace) -> NoiseUse | None:
    """Return the first use on x in which code reads noise that was not yet added to a value."""
    for use in draw.recorded.run.uses:
        if not use.path and use.sense is None and not np.any(use.form[0]):
            return use
    return None


def replay_noise_on_x_prime(function: TracedFunction, draw: DrawTrace, shift: Floats) -> RunOutput:
    """Run the function on x'; its noise is the noise of the run on x plus `shift`.

    Raises:
        PartedRuns: if the run takes a different branch of the code from the run on x.
    """
    run = function.make_empty_run("plain", draw.number, reference=draw.recorded.run, move=shift)
    return function.run(1, run)


def _move_failure_reason_or_empty(function: TracedFunction, draw: DrawTrace) -> str:
    """Return why a run on x' with the change of noise does not give the output of x, or ""."""
    path = _mismatched_output_path(function, draw, draw.move.shift)  # type: ignore[union-attr]
    if path is None:
        return ""
    return f"the plain run on x' with the noise so moved does not give the output of x: {path}"


def _mismatched_output_path(function: TracedFunction, draw: DrawTrace, shift: Floats) -> str | None:
    """Return where the output on x' with changed noise differs from the output on x, or None."""
    run = function.make_empty_run("plain", draw.number, reference=draw.recorded.run, move=shift)
    return _compare_with_recorded(function, draw, run)


def _compare_with_recorded(function: TracedFunction, draw: DrawTrace, run: TracedRun) -> str | None:
    try:
        moved = function.run(1, run)
    except PartedRuns as error:
        return str(error)
    except Exception as error:
        return f"it raises {type(error).__name__}"
    parts = draw.recorded.parts
    return differing_path(draw.recorded.leaves, moved.leaves, RUN_TOLERANCE, parts)


def has_larger_loss_when_swapped(draw: DrawTrace) -> bool:
    """Return True if the privacy loss may be larger after x and x' are exchanged."""
    if draw.rows is None or draw.table is None or draw.move is None or draw.solved:
        return False
    if not draw.table.is_upwards.any() and not draw.rows.senses.any():
        return False
    other = cheapest_move(draw.rows, draw.table, -1)
    if other.failures or other.is_too_large:
        return True
    costs = find_costs(other, draw.table)
    first = draw.pure_cost(draw.costs), draw.find_mu(draw.costs)
    second = draw.pure_cost(costs), draw.find_mu(costs)
    return any(b > a * (1 + CLEAR_TOLERANCE) for a, b in zip(first, second, strict=True))


def _solve_move_by_runs(function: TracedFunction, draw: DrawTrace) -> None:
    """Compute the change of noise by ordinary runs, for code that reads noise before adding it."""
    solution = move_and_costs(function, draw)
    if solution is not None:
        draw.move, draw.costs = solution
        draw.untraceable, draw.differing = "", None
        draw.checked = draw.solved = True


def move_and_costs(function: TracedFunction, draw: DrawTrace) -> tuple[NoiseMove, Floats] | None:
    """Compute the cheapest change of the noise after which the run on x' gives the output of x.

    The change is computed from ordinary runs on x'. In each run, one random value of the noise is
    changed. A further run checks the result.

    Returns:
        The change (a move), and the privacy cost for each random value. If the costs are larger
        with x and x' exchanged, the larger costs are returned. The result is None if the outputs
        are not linear in the noise, or if the noise has more than 64 random values.
    """
    table, reference = draw.table, draw.recorded.run
    if table is None or not 0 < reference.size <= _MAX_SOLVED_DRAWS:
        return None
    paths = [path for path, leaf in draw.recorded.leaves.items() if _is_numeric(leaf)]

    def read_numbers(shift: Floats) -> Floats:
        return _join_numbers(replay_noise_on_x_prime(function, draw, shift).leaves, paths)

    try:
        aim = _join_numbers(draw.recorded.leaves, paths)
        base = read_numbers(np.zeros(reference.size))
        matrix = np.array([read_numbers(unit) - base for unit in np.eye(reference.size)]).T
        moves = [_cheapest_move_closing_gaps(matrix, aim - base, table, order) for order in (1, -1)]
    except (PartedRuns, Exception):
        return None
    first, second = moves
    if first is None or second is None:
        return None
    if _mismatched_output_path(function, draw, first.shift) is not None:
        return None
    costs = [find_costs(move, table) for move in (first, second)]
    return first, max(costs, key=lambda c: draw.pure_cost(c) + draw.find_mu(c))


def _cheapest_move_closing_gaps(
    matrix: Floats, gaps: Floats, table: NoiseTable, order: int
) -> NoiseMove | None:
    """Find the cheapest change of noise that adds `gaps` to outputs linear in the noise."""
    tiny = RUN_TOLERANCE * np.abs(matrix).max(initial=0.0)
    matrix = np.where(np.abs(matrix) <= tiny, 0.0, matrix)
    nearest = np.rint(gaps)
    gaps = np.where(np.abs(gaps - nearest) <= RUN_TOLERANCE, nearest, gaps)
    numbers, columns = np.nonzero(matrix)
    senses = np.zeros(gaps.size, np.int64)
    rows = Conditions(numbers, columns, matrix[numbers, columns], gaps, senses, [])
    move = cheapest_move(rows, table, order)
    return None if move.failures or move.is_too_large else move


def _is_numeric(leaf: Any) -> bool:
    return not isinstance(leaf, str | bytes | tuple) and np.asarray(leaf).dtype.kind in "fiu"


def _join_numbers(leaves: dict[str, Any], paths: list[str]) -> Floats:
    return np.concatenate([np.asarray(leaves[path], float).ravel() for path in paths])


def mark_visible_changes(function: TracedFunction, draw: DrawTrace, omitted_share: float) -> Flags:
    """Mark those changed values of the noise whose change has an effect on the output.

    A move changes some random values of the noise on x', so that the run on x' returns the output
    of x. For each changed value, dpcore runs the traced function on x' again, without the share
    `omitted_share` of the change of this value. The change is visible if this run gives a different
    output. Some changes are only needed because a comparison must have the same outcome on x and
    x'. Such changes are not marked. If a move changes more than 64 values, dpcore tests these
    values in 16 groups.

    Args:
        function: the traced function.
        draw: runs of the function on x and x' for which a move was found.
        omitted_share: share of a change that is left out. If this share is below 1, changes of
            integer noise are not marked.
    """
    assert draw.move is not None
    assert draw.table is not None
    shift = draw.move.shift
    is_moved = (shift != 0) & (_mark_read_or_returned(draw) | draw.solved)
    if omitted_share < 1:
        is_moved &= ~draw.table.is_whole
    shown = np.zeros(shift.size, bool)
    for group in _split_into_limited_group_count(np.flatnonzero(is_moved)):
        other = shift.copy()
        other[group] *= 1.0 - omitted_share
        shown[group] = _mismatched_output_path(function, draw, other) is not None
    return shown


def _mark_read_or_returned(draw: DrawTrace) -> Flags:
    """Return a mask of the random values that are part of a number read or returned."""
    assert draw.move is not None
    kept = np.zeros(draw.move.shift.size, bool)
    for _, use, _ in draw.rows.spans if draw.rows is not None else ():
        if use.sense is None:
            _, ids, weights = use.form
            kept[ids[np.broadcast_to(weights, ids.shape) != 0]] = True
    return kept


def relative_loss_error_bound(draw: DrawTrace) -> float:
    """Return an upper limit of the relative error that float32 causes in the privacy loss."""
    error = 0.0
    for use in draw.replayed.run.uses if draw.replayed is not None else []:
        if use.twin is None or use.number.dtype != np.float32:
            continue
        first, second = use.twin.form[0], use.form[0]
        gaps, slack = np.abs(first - second), SINGLE_SLACK / 4 * np.abs(first)
        clear = gaps > slack
        error = max(error, SINGLE_TOLERANCE, np.max(slack[clear] / gaps[clear], initial=0.0))
    return error


def sum_visible_step_losses(function: TracedFunction, draw: DrawTrace) -> float:
    """Return the total privacy loss of the calls (steps) that have an effect on the output.

    A step is a call for which a formula gives the loss, such as a call of a function with the
    decorator `primitive`. The output of a step is visible if a different output of the step would
    change the returned value.
    """
    steps = draw.replayed.run.steps if draw.replayed is not None else []
    total = 0.0
    for number, step in enumerate(steps):
        other = _change_output(step.output)
        if step.shown_loss and other is not None:
            run = function.make_empty_run("plain", draw.number, reference=draw.recorded.run)
            run.move = draw.move.shift if draw.move is not None else None
            run.other_outputs[number] = other
            total += step.shown_loss * (_compare_with_recorded(function, draw, run) is not None)
    return total


def _change_output(output: Any) -> Any:
    """Return another output of a step: integers become 0 or 1, and 1 is added to floats."""
    array = np.asarray(output)
    if array.dtype.kind not in "biuf":
        return None
    other = array + 1.0 if array.dtype.kind == "f" else (array == 0).astype(array.dtype)
    return other if array.ndim else other.item()


def _split_into_limited_group_count(moved: Ints) -> list[Ints]:
    if moved.size <= _MAX_SINGLE_MOVES:
        return [moved[place : place + 1] for place in range(moved.size)]
    return np.array_split(moved, _MOVE_GROUPS)


def find_loss(pure: float, mu: float, delta: float) -> float:
    """Return the privacy loss at delta: `pure` plus the epsilon of Gaussian noise with this mu.

    `pure` is the loss of all noise that is not Gaussian. `mu` is the parameter of Gaussian
    differential privacy.
    """
    if not mu:
        return pure
    if not delta or math.isinf(mu):
        return math.inf
    from ..bounds.tradeoff import epsilon_of

    return pure + epsilon_of(mu, delta)
