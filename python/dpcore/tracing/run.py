"""`dpcore.trace`: compute from a few runs how much privacy each line of a function loses."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..claims import GDP, Claim
from ..errors import check_epsilon, delta_level, integer, invalid
from ..pairs.differences import inputs_equal
from ..records import Pair, pair_of
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from .analysis import (
    DrawTrace,
    find_loss,
    has_larger_loss_when_swapped,
    mark_visible_changes,
    move_and_costs,
    relative_loss_error_bound,
    sum_visible_step_losses,
    trace_both_inputs_with_same_noise,
)
from .calls import TracedFunction, keep_global_states
from .draws import HOOKS, patch_random_functions
from .findings import EARLY_KINDS, confirm_suspicion, find_noiseless_output, list_definite_findings
from .outcome import Trace, TraceFinding, TraceStep
from .own_noise import list_dpcore_patches
from .replay import EarlyReading, NoiseDraw, value_text
from .returned import RUN_TOLERANCE

_MAX_DRAWS: Final = 1_000
_ABOVE_TOLERANCE: Final = 1e-9
"""Difference of loss and claim, divided by the claim, that rounding can explain."""
_MIN_ABOVE: Final = 2
"""Number of draws in which the output must show a loss above the claim."""
_SMALL_SHARE: Final = 1e-3
"""Share of a change of noise that is left out in a test. An output that contains the noisy value
differs even if only this share is left out."""
_EARLY_READINGS: Final[tuple[EarlyReading, ...]] = ("arrays", "all")
_MANY_DRAWS: Final = 16
"""Number of draws that must all show a loss, if leaving out small shares does not show it."""
_WARMING_DRAW: Final = 2**32 - 1
_MAX_SCALES: Final = 3

HOOKS.append(list_dpcore_patches)


@explain_argument_errors
def trace(
    f: Callable[..., Any],
    pair: Pair | tuple[Any, Any],
    *,
    claim: float | Claim | None = None,
    delta: float = 0.0,
    draws: int = 4,
    rng: Rng = None,
) -> Trace:
    """Compute, from a few runs, the privacy loss of each line of a function on one pair of inputs.

    The function runs on x and on x' with the same noise. dpcore follows the noise from the line
    that draws it to the output. The noise may come from the generator that the function receives,
    from `numpy.random` or from `random`. Then dpcore computes a move: a change of the noise on x'.
    With the changed noise, the function returns on x' the output that it returned on x. The cost of
    a move is an upper bound on the privacy loss. For Laplace noise of scale b, a change by s costs
    abs(s) / b. The reported loss is the cost of the cheapest move. An ordinary run of the function
    checks this move. The loss holds for this pair and is not certified. Use `dpcore.audit` to
    certify a lower bound on epsilon.

    Args:
        f: function `f(x)`, `f(x, rng)` or `f(x, size, rng)`, or a mechanism that `dpcore.audit`
            accepts. The argument `size` is 1 in all calls.
        pair: two neighbouring inputs, `(x, x_prime)`. Each run receives a copy of its input.
        claim: the claimed epsilon, or a curve of `dpcore.claims`. None means no claim.
        delta: delta of the claim, in [0, 1).
        draws: number of times that the function is traced, each time with new noise, from 1 to
            1,000.
        rng: source of the seed of the noise: a seed, a numpy Generator, or None for a random seed.

    Returns:
        An object of the class `Trace`. The field `outcome` is "not traceable" if the noise cannot
        be followed.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if an argument is out of range, or the two inputs are equal.
        Exception: if the function raises an error on x.

    Source:
        Cebere et al. (2026), runs on both inputs with the same randomness; Zhang and Kifer (2017),
        randomness alignment.

    Example:
        >>> import numpy as np
        >>> def total(x):
        ...     return sum(x) + np.random.laplace(scale=2.0)
        >>> report = trace(total, ([1, 0, 1], [1, 0, 0]), claim=0.4, rng=1)
        >>> report.outcome, report.loss
        ('above the claim on this pair', 0.5)
    """
    pair = pair_of(pair)
    if inputs_equal(pair.x, pair.x_prime):
        # The loss of equal inputs is always 0, and would pass every claim.
        raise invalid("pair", "two inputs that differ", pair)
    level = claim if claim is None or isinstance(claim, Claim) else check_epsilon(claim)
    delta = delta_level(delta)
    draws = integer("draws", draws, 1, _MAX_DRAWS)
    seed = to_seed(rng)
    function = TracedFunction.of(f, pair, seed)
    with keep_global_states(), patch_random_functions():
        course = _TraceCourse(function, level, delta, draws)
        course.run()
    return course.to_trace()


@dataclass(slots=True)
class _SettledOutcome:
    """An outcome of a trace, with its reason."""

    outcome: str
    reason: str = ""
    is_early: bool = False
    """True for a finding that also occurs in correct code if delta is above 0."""


class _TraceCourse:
    """Course of one call of `dpcore.trace`: the traced draws of the noise, and the outcome."""

    def __init__(
        self, function: TracedFunction, claim: float | Claim | None, delta: float, draws: int
    ) -> None:
        self.function, self.claim, self.delta, self.count = function, claim, delta, draws
        self.level = claim.epsilon(delta) if isinstance(claim, Claim) else claim
        self.draws: list[DrawTrace] = []
        self.swapped: set[int] = set()
        self.findings: list[TraceFinding] = []
        self.terms: tuple[tuple[str, int, float], ...] = ()
        self.settled: _SettledOutcome | None = None

    def run(self) -> None:
        """Trace one draw of the noise after another until the outcome is decided."""
        self.settled = self._run_once_to_warm_up()
        for number in range(self.count):
            if self.settled is not None:
                break
            draw, self.settled = self._trace_draw(number)
            self.draws.append(draw)
            if self.settled is None and has_larger_loss_when_swapped(draw):
                self.settled = self._swap_and_trace(number)
        if self.settled is None:
            self.settled = self._outcome_of_all_losses()

    def _trace_draw(self, number: int) -> tuple[DrawTrace, _SettledOutcome | None]:
        """Trace one draw of the noise.

        If no loss results, trace the draw again in other modes, in which the run reads noisy
        numbers before more data are combined with them.
        """
        draw = trace_both_inputs_with_same_noise(self.function, number)
        settled = self._outcome_if_draw_decides_it(draw)
        reads = any(not use.path for use in draw.recorded.run.uses)
        if settled is None or not reads or self.function.reads_sources:
            return draw, settled
        if not self._can_mode_improve(settled):
            return draw, settled
        best = draw, settled, self.findings
        for mode in _EARLY_READINGS:
            self.function.reads_sources, self.findings = mode, []
            other = trace_both_inputs_with_same_noise(self.function, number)
            again = self._outcome_if_draw_decides_it(other)
            if again is None:
                return other, None
            if (self.findings or again.is_early) and not (best[2] or best[1].is_early):
                best = other, again, self.findings
        self.function.reads_sources = ""
        self.findings = best[2]
        return best[:2]

    def _can_mode_improve(self, settled: _SettledOutcome) -> bool:
        """Return True if another mode of reading noisy numbers may lead to a better outcome."""
        kinds = [finding.kind for finding in self.findings]
        is_open = settled.outcome in ("no loss", "not traceable")
        return is_open or kinds == ["data in a noisy value"]

    def _run_once_to_warm_up(self) -> _SettledOutcome | None:
        """Run the function once on x, so that caches and imports do not disturb the trace."""
        first = self.function.make_empty_run("plain", _WARMING_DRAW)
        self.function.run(0, first)
        return None

    def _outcome_if_draw_decides_it(self, draw: DrawTrace) -> _SettledOutcome | None:
        """Return the outcome if one traced draw decides it, otherwise None."""
        if draw.raised is not None:
            return self._judge_error_on_x_prime_only(draw.raised)
        if draw.untraceable or self.function.bypassed:
            return _SettledOutcome("not traceable", self._reason_why_untraceable(draw))
        findings = list_definite_findings(draw)
        early = [f for f in findings if f.kind in EARLY_KINDS and self.delta > 0]
        if early:
            return _SettledOutcome("no loss", early[0].text, is_early=True)
        if findings:
            self.findings = findings
            return _SettledOutcome("a finding")
        parted = [p for p in draw.partings if p.kind in ("control flow", "uses")]
        if parted:
            return _SettledOutcome("no loss", f"{parted[0].place.short}: {parted[0].text}")
        if draw.rows is not None and draw.rows.uneven:
            place = draw.rows.uneven[0][0].place.short
            return _SettledOutcome("no loss", f"{place}: data enters the noise of a comparison")
        return self._judge_draw_without_checked_move(draw)

    def _judge_draw_without_checked_move(self, draw: DrawTrace) -> _SettledOutcome | None:
        """Return the outcome for a draw for which no change of the noise was confirmed.

        An example is a draw with an output without noise. The result is None if a change was
        confirmed.
        """
        if draw.checked:
            return None
        suspicion = find_noiseless_output(draw)
        if suspicion is not None:
            fixed = _first_fixed_draw_name(draw)
            if fixed and suspicion.kind == "no noise":
                return _SettledOutcome("not traceable", f"{fixed} is not noise that can be moved")
            if self.function.unseen:
                return _SettledOutcome("not traceable", f"{self.function.unseen} is not followed")
            run = draw.recorded.run
            finding, why, terms = confirm_suspicion(self.function, suspicion, run)
            if finding is None:
                return _SettledOutcome("not traceable", why)
            self.findings, self.terms = [finding], terms
            return _SettledOutcome("a finding")
        if draw.move is not None and draw.move.is_too_large:
            return _SettledOutcome("not traceable", "too many values and comparisons share noise")
        return _SettledOutcome("no loss", self._explain_why_no_noise_move_exists(draw))

    def _explain_why_no_noise_move_exists(self, draw: DrawTrace) -> str:
        assert draw.rows is not None
        assert draw.move is not None
        owners = [draw.rows.noisy_number_of_condition(row) for row in draw.move.failures]
        compared = [owner for owner in owners if owner.use.sense is not None]
        if compared:
            return f"no move of the noise keeps the comparison at {compared[0].use.place.short}"
        places = sorted({owner.use.place.short for owner in owners})
        return f"no move of the noise keeps the values read at {' and '.join(places[:2])}"

    def _judge_error_on_x_prime_only(self, error: Exception) -> _SettledOutcome:
        """Return the outcome for an error on x' only; ordinary runs check that it always occurs."""
        text = f"x' raises {type(error).__name__}: {error}"
        for number in range(20):
            try:
                self.function.run_without_trace(0, number)
            except Exception:
                return _SettledOutcome("not traceable", f"{text}; so does x in an ordinary run")
            try:
                self.function.run_without_trace(1, number)
            except Exception:
                continue
            return _SettledOutcome("not traceable", f"{text}, but not in an ordinary run")
        self.findings = [TraceFinding("control flow", f"{text}; x does not")]
        return _SettledOutcome("a finding")

    def _reason_why_untraceable(self, draw: DrawTrace) -> str:
        if self.function.bypassed:
            return (
                "a global generator is drawn from past its module (from random import gauss binds "
                "it before the trace)"
            )
        return draw.untraceable

    def _swap_and_trace(self, number: int) -> _SettledOutcome | None:
        """Trace the last draw again with x and x' exchanged: this order has a larger loss."""
        other = trace_both_inputs_with_same_noise(self.function.swap(), number)
        settled = self._outcome_if_draw_decides_it(other)
        if settled is None:
            self.draws[-1] = other
            self.swapped.add(number)
        return settled

    # All draws.

    def _outcome_of_all_losses(self) -> _SettledOutcome:
        """Return the outcome that the losses of all draws decide."""
        if not any(draw.recorded.run.draws or draw.recorded.run.steps for draw in self.draws):
            fixed = _first_fixed_draw_name(self.draws[0])
            reason = (
                f"{fixed} is not noise that can be moved" if fixed else "no draw of noise is seen"
            )
            return _SettledOutcome("not traceable", reason)
        solved = [draw.move.shift for draw in self.draws if draw.solved and draw.move is not None]
        if solved and not self._has_same_move_in_all_draws():
            return _SettledOutcome("not traceable", "the move of lost noise depends on the noise")
        if self.claim is None:
            return _SettledOutcome("no claim given")
        if not self._is_above_claim(
            max(d.pure_loss for d in self.draws), max(d.mu for d in self.draws)
        ):
            return _SettledOutcome("within the claim on this pair")
        fixed = next(filter(None, map(_first_fixed_draw_name, self.draws)), "")
        if fixed:
            # Another value of it may give the same output at a smaller cost, as a random sign does.
            return _SettledOutcome("a step may be hidden", f"{fixed} is kept fixed: audit it")
        if self._is_excess_loss_shown_by_outputs():
            return _SettledOutcome("above the claim on this pair")
        return _SettledOutcome("a step may be hidden", "audit it")

    def _is_excess_loss_shown_by_outputs(self) -> bool:
        """Return True if the outputs show that the loss is above the claim.

        A move is the change of the noise on x' after which the run on x' returns the output of x.
        If the output already differs when a small share of the move is left out, then the output
        contains the noisy value, and two draws are enough. Some outputs, such as the index of a
        maximum, may differ only if the whole move is left out. Such a difference may also occur by
        chance, so 16 draws must all show it.
        """
        shown = 0
        for draw in self.draws:
            shown += self._is_visible_loss_above_claim(draw, _SMALL_SHARE)
            if shown >= _MIN_ABOVE:
                return True
        if len(self.draws) < _MIN_ABOVE:
            return False
        for number in range(_MANY_DRAWS):
            if number >= len(self.draws):
                draw, settled = self._trace_draw(number)
                if settled is not None:
                    return False
                self.draws.append(draw)
                if has_larger_loss_when_swapped(draw) and self._swap_and_trace(number) is not None:
                    return False
            if not self._is_visible_loss_above_claim(self.draws[number], 1.0):
                return False
        return True

    def _is_visible_loss_above_claim(self, draw: DrawTrace, omitted_share: float) -> bool:
        """Return True if the output of one traced draw shows a loss above the claim."""
        if not self._is_above_claim(draw.pure_loss, draw.mu):
            return False
        function = self.function.swap() if draw.number in self.swapped else self.function
        steps = sum_visible_step_losses(function, draw)
        if draw.move is None:
            return self._is_above_claim(steps, 0.0)
        shown = np.where(mark_visible_changes(function, draw, omitted_share), draw.costs, 0.0)
        if not self._is_above_claim(draw.pure_cost(shown) + steps, draw.find_mu(shown)):
            return False
        # The returned value may show less than the values that were read.
        reads = any(not use.path for use in draw.recorded.run.uses)
        solution = move_and_costs(function, draw) if reads and not draw.solved else None
        if solution is None:
            return True
        return self._is_above_claim(draw.pure_cost(solution[1]) + steps, draw.find_mu(solution[1]))

    def _is_above_claim(self, pure: float, mu: float) -> bool:
        slack = max(_ABOVE_TOLERANCE, *map(relative_loss_error_bound, self.draws))
        if isinstance(self.claim, GDP) and not pure:
            return mu > self.claim.mu * (1 + slack)
        assert self.level is not None
        pure, mu = pure / (1 + slack), mu / (1 + slack)
        if not mu:
            # Laplace noise of pure loss L has the loss L + 2 ln(1 - delta) at delta.
            pure += 2.0 * math.log1p(-self.delta)
        return find_loss(pure, mu, self.delta) > self.level

    def max_loss(self) -> float:
        """Return the largest privacy loss of all draws."""
        pure, mu = max(d.pure_loss for d in self.draws), max(d.mu for d in self.draws)
        return find_loss(pure, mu, self.delta)

    def _has_same_move_in_all_draws(self) -> bool:
        shifts = [draw.move.shift for draw in self.draws if draw.move is not None]
        return all(
            shift.shape == shifts[0].shape and np.allclose(shift, shifts[0], 1e-6, RUN_TOLERANCE)
            for shift in shifts
        )

    def _covered_noise(self) -> str:
        """Describe the noise for which the loss holds, with the reason if it is not all noise."""
        count = f"{len(self.draws):,} draw{'s' if len(self.draws) > 1 else ''}"
        for draw in self.draws:
            reason = self._reason_for_partial_coverage(draw)
            if reason:
                return f"the noise seen in {count}: {reason}"
        if len(self.draws) < _MIN_ABOVE:
            return f"the noise seen in {count}: one draw shows no other move"
        if not self._has_same_move_in_all_draws():
            return f"the noise seen in {count}: the move changes with the noise"
        return f"every noise: one move in {count}, no noisy value read before the return"

    def _reason_for_partial_coverage(self, draw: DrawTrace) -> str:
        run = draw.recorded.run
        if draw.solved:
            place = draw.lost.place.short if draw.lost is not None else run.draws[0].place.short
            return f"the form of the noise is lost at {place}"
        for use in run.uses:
            if not use.path:
                what = "compared" if use.sense is not None else "read"
                return f"a noisy value is {what} at {use.place.short} before the return"
        if run.steps:
            return f"{run.steps[0].name} is called at {run.steps[0].place.short}"
        fixed = _first_fixed_draw_name(draw)
        return f"{fixed} is kept fixed" if fixed else ""

    # The result.

    def to_trace(self) -> Trace:
        """Return the result as a `Trace`."""
        assert self.settled is not None
        has_loss = self.settled.outcome in (
            "above the claim on this pair",
            "within the claim on this pair",
            "no claim given",
            "a step may be hidden",
        )
        worst = max(self.draws, key=lambda d: find_loss(d.pure_loss, d.mu, 1e-9), default=None)
        return Trace(
            name=self.function.name,
            outcome=self.settled.outcome,
            reason=self.settled.reason,
            loss=self.max_loss() if has_loss else None,
            mu=max(d.mu for d in self.draws) if has_loss else 0.0,
            steps=list_steps_by_decreasing_loss(worst) if has_loss and worst else (),
            findings=tuple(self.findings),
            checked=sum(draw.checked for draw in self.draws),
            draws=len(self.draws),
            covers=self._covered_noise() if has_loss else "",
            claim=self.level,
            delta=self.delta,
            seed=self.function.seed,
            terms=self.terms,
            runs=self.function.calls,
        )


def _first_fixed_draw_name(draw: DrawTrace) -> str:
    """Name the first draw that all runs keep fixed (such as a uniform number), or return ""."""
    for place, name in draw.recorded.run.fixed:
        return f"{name} at {place.short}"
    return ""


def list_steps_by_decreasing_loss(draw: DrawTrace) -> tuple[TraceStep, ...]:
    """List the lines of code that have a privacy loss in one traced run, largest loss first."""
    groups: dict[tuple[str, str], list[Any]] = {}
    for noise in draw.recorded.run.draws:
        span = slice(noise.start, noise.start + noise.noise.size)
        costs = draw.costs[span] if draw.costs.size else np.zeros(noise.noise.size)
        group = groups.setdefault((str(noise.place), noise.law.name), [noise, 0.0, 0.0, 0, set()])
        if noise.law.kind == "gaussian":
            group[2] = math.hypot(group[2], float(np.sqrt(np.square(costs).sum())))
        else:
            group[1] += float(costs.sum())
        group[3] += noise.noise.size
        group[4] |= set(np.unique(noise.parameter)[:_MAX_SCALES].tolist())
    steps = [
        TraceStep(
            place, _describe_law(noise, values), loss, mu, count, _first_noised_value(draw, noise)
        )
        for (place, _), (noise, loss, mu, count, values) in groups.items()
        if loss or mu
    ]
    for step in draw.replayed.run.steps if draw.replayed else []:
        if step.loss:
            law = f"{step.name}, inputs {step.distance:.6g} apart"
            steps.append(TraceStep(str(step.place), law, step.loss))
    return tuple(sorted(steps, key=lambda step: -max(step.loss, step.mu)))


def _describe_law(noise: NoiseDraw, values: set[float]) -> str:
    some = sorted(values)
    text = value_text(some[0]) if len(some) == 1 else f"{some[0]:.6g} to {some[-1]:.6g}"
    return f"{noise.law.name}, {noise.law.parameter} {text}"


def _first_noised_value(draw: DrawTrace, noise: NoiseDraw) -> str:
    """Describe the first value to which changed noise is added, on x and on x'."""
    if draw.rows is None or not draw.costs.size:
        return ""
    span = np.arange(noise.start, noise.start + noise.noise.size)
    moved = span[draw.costs[span] > 0]
    if not moved.size:
        return ""
    rows = draw.rows.rows[draw.rows.columns == moved[0]]
    for row in rows:
        owner = draw.rows.noisy_number_of_condition(int(row))
        if owner.use.sense is None:
            values = [np.ravel(u.form[0])[owner.entry] for u in (owner.use, owner.other)]
            first, second = map(value_text, values)
            return f"meets {first} and {second} at {owner.use.find_addition(owner.entry).short}"
    return f"compared at {draw.rows.noisy_number_of_condition(int(rows[0])).use.place.short}"
