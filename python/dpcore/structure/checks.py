"""Structural checks of a noise layer (a mechanism that adds noise), and their results.

The clean vector is the vector to which the noise is added. The checks test three properties:

- the distribution of the noise around the clean vector (for example, if a value has positive
  probability);
- noise that coordinates, rows or calls share;
- differences of the noise between coordinates, between inputs, or between train and eval mode.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import choice, flag, instance, mistyped, real
from ..records import Answer, Floats, Record
from .outputs import (
    Sample,
    binomial_tail,
    collision_probability_upper,
    correlation_test,
    hash_rows,
    rank_sum_test,
    sign_test_p_values,
    spearman_test,
)

DETERMINISTIC = ("no_noise", "rank")
"""Names of checks without a p-value: they compare floats, and their result is not random."""

_MAX_TAIL_DRAWS = 1000
"""Number of largest draws in which repeated values are counted."""

_SMALL_GAP_STEPS = 16
"""Width of a small gap between two draws, in steps (distances of neighbouring floats). If the noise
is continuous, at most one in eight small gaps is at most one step wide, for any rounding."""

_MAX_WALL_DRAWS = 400
"""Number of largest draws that the check for a largest possible noise uses."""

_MIN_DISTINCT_SHARE = 0.95
"""If the share of distinct rows is below this number, each repeated row is used only once."""

_MIN_OTHER_DRAWS = 20
"""Smallest number of draws that differ from the most frequent value. With fewer such draws, a check
cannot judge whether other values repeat too."""

_MAX_COMPARED_COLUMNS = 1024
"""Largest number of coordinates whose pairs are compared. From more coordinates, a random subset of
this size is chosen."""

_FIRST_RANK_ROWS = 65
"""Number of rows whose rank is computed first, because a decomposition of all rows is slow."""

_EMPTY_DIRECTION_STEPS = 16.0
"""Largest size of rounding errors, in distances of neighbouring floats. A direction in which the
outputs vary less has no noise."""

_SMALL_SCALE_SHARE = 0.1
"""The noise of a coordinate is small if its size is below this share of the median size."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Check(Answer, Record):
    """Result of one check of the noise that a mechanism adds, such as a check for repeated noise.

    Args:
        name: name of the check: one of the names in the documentation of `inspect`, or "fork".
        flagged: True if the check found the fault that it looks for.
        what: one sentence that describes the result.
        p_value: p-value of the hypothesis that the noise does not have the fault. It is corrected
            for multiple comparisons within the check. None if the check is not a statistical test,
            or if the check was not run.
        evidence: names and values of the numbers that the check computed.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if `name` is not the name of a check, or if `p_value` is not in [0, 1].

    Example:
        >>> from dpcore import Identity
        >>> from dpcore.structure import inspect
        >>> print(inspect(Identity(), [0.5], draws=200, rng=1)["no_noise"])
        no_noise: FLAGGED: no noise at all: 200 outputs equal the clean vector
    """

    _INSTEAD: ClassVar[str] = "flagged (True or False)"

    name: str
    flagged: bool
    what: str
    p_value: float | None = None
    evidence: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Check the fields."""
        choice("name", self.name, (*CHECKS, "fork"))
        flag("flagged", self.flagged)
        instance("what", self.what, str)
        if self.p_value is not None:
            object.__setattr__(self, "p_value", real("p_value", self.p_value, low=0.0, high=1.0))
        if not _is_tuple_of(self.evidence, tuple) or any(len(pair) != 2 for pair in self.evidence):
            raise mistyped("evidence", "a tuple of names and values", self.evidence)

    @property
    def figures(self) -> dict[str, Any]:
        """Numbers that this check computed, as a dictionary from names to values."""
        return dict(self.evidence)

    def __str__(self) -> str:
        """Return one line with the name of the check, its result and the sentence `what`."""
        return f"{self.name}: {'FLAGGED: ' if self.flagged else ''}{self.what}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Inspection(Answer, Record):
    """Results of all checks of the noise of one mechanism, returned by `dpcore.structure.inspect`.

    Args:
        mechanism: name of the inspected mechanism.
        dim: number of entries of one output.
        draws: number of outputs in each of the two calls of the mechanism at the input that was
            tested.
        seed: seed with which the inspection can be repeated. This requires that the mechanism draws
            its noise from the generator `rng` that dpcore passes to it.
        false_alarm: upper bound on the probability that at least one check flags a mechanism
            without faults.
        level: significance level. A check is flagged if its p-value is at most `level`. The level
            is `false_alarm` divided by the number of checks with a p-value.
        checks: results of the checks, one object of the class `Check` for each check.

    Raises:
        TypeError: if `checks` is not a tuple of Checks.

    Example:
        >>> import dpcore
        >>> found = dpcore.structure.inspect(dpcore.DPTextNoise(1.0), [0.0, 0.5], rng=1)
        >>> found.passed, found.flagged
        (False, ('one_sided', 'atom', 'off_centre'))
    """

    _INSTEAD: ClassVar[str] = "passed (True or False)"

    mechanism: str
    dim: int
    draws: int
    seed: int
    false_alarm: float
    level: float
    checks: tuple[Check, ...]

    def __post_init__(self) -> None:
        """Check that the fields are results of checks."""
        if not _is_tuple_of(self.checks, Check):
            raise mistyped("checks", "a tuple of Checks", self.checks)

    @property
    def flagged(self) -> tuple[str, ...]:
        """Names of the checks that found a fault in the noise of the mechanism."""
        return tuple(check.name for check in self.checks if check.flagged)

    @property
    def passed(self) -> bool:
        """True if no check found a fault. This does not prove that the mechanism is private."""
        return not self.flagged

    def __getitem__(self, name: str) -> Check:
        """Return the check with this name."""
        choice("name", name, tuple(check.name for check in self.checks))
        return next(check for check in self.checks if check.name == name)

    def __str__(self) -> str:
        """Return a table with one line per check."""
        head = (
            f"structure of {self.mechanism}: "
            f"{', '.join(self.flagged) + ' flagged' if self.flagged else 'nothing flagged'}"
        )
        note = (
            f"dim {self.dim}, {self.draws:,} draws a call, seed {self.seed}; "
            f"false alarms at most {self.false_alarm:g} in all (p-values at {self.level:.2g} each)"
        )
        lines = [
            f"  {'FLAGGED' if c.flagged else 'ok':7}  {c.name:12}  "
            f"{_format_p(c.p_value):>8}  {c.what}"
            for c in self.checks
        ]
        return "\n".join([head, note, f"  {'':7}  {'check':12}  {'p':>8}  finding", *lines])


def _is_tuple_of(values: Any, kind: type) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)


def _format_p(value: float | None) -> str:
    if value is None:
        return "-"
    return "<1e-300" if value < 1e-300 else f"{value:.2g}"


class CheckOutcome:
    """Result of one check of the noise of a mechanism, before its p-value is compared with a level.

    Args:
        text: sentence that describes the fault (or the result, if the check has no p-value).
        good: sentence that describes the result if the p-value is above the level.
        p_value: p-value of the hypothesis that the noise does not have the fault. None if the check
            is not a statistical test.
        flagged: True if a check without a p-value found the fault. This value is not used if there
            is a p-value.
        **evidence: names and values of the numbers that the check computed.
    """

    def __init__(
        self, text: str, good: str = "", p_value: float | None = None, flagged: bool = False,
        **evidence: Any,
    ) -> None:  # fmt: skip
        self.text, self.good, self.p_value, self.flagged = text, good, p_value, flagged
        self.evidence = tuple(evidence.items())

    def judge(self, name: str, level: float) -> Check:
        """Convert this result to an object of the class `Check` with the given name.

        A check with a p-value is flagged if the p-value is at most `level`.
        """
        if self.p_value is None:
            return Check(name, self.flagged, self.text, None, self.evidence)
        p = min(1.0, float(self.p_value))
        return Check(name, p <= level, self.text if p <= level else self.good, p, self.evidence)


def run_check(name: str, sample: Sample, level: float) -> Check:
    """Run the check with the given name on outputs of a mechanism, and return the result.

    A check may need properties of the outputs, such as noise in at least two coordinates. If the
    outputs do not have these properties, the check is not run, and the result states the reason. A
    check is flagged if its p-value is at most `level`.
    """
    find, *needs = _FINDERS[name]
    missing = (CheckOutcome(text) for is_missing, text in needs if is_missing(sample))
    return (next(missing, None) or find(sample)).judge(name, level)


def check_one_sided_noise(sample: Sample) -> CheckOutcome:
    """Check whether the noise is never below, or never above, the vector to which it is added.

    The fault is found only if this holds at all tested inputs.
    """
    noises = sample.noise_by_input()
    n, d = noises[0].shape
    # The noise must be above at every input, or below at every one. Clamped outputs are not.
    below = np.stack([(noise < 0).sum(axis=0) for noise in noises]).max(axis=0)
    above = np.stack([(noise > 0).sum(axis=0) for noise in noises]).max(axis=0)
    moved = np.stack([(noise != 0).sum(axis=0) for noise in noises]).min(axis=0)
    sided = ((below == 0) | (above == 0)) & (moved > 0)
    count = int(sided.sum())
    most = int(moved[sided].max()) if count else 0
    p = d * 2.0 ** (1 - min(most, 1000)) if count else 1.0
    side = "always on one side of"
    if not below[sided].any() or not above[sided].any():
        side = "never above" if below[sided].any() else "never below"
    where = "" if count == d else f" in {count} of {d} coordinates"
    bad = f"{side} the clean vector{where} in {n:,} draws: such noise hides nothing"
    return CheckOutcome(bad, "noise on both sides of the clean vector", p, coordinates=count)


def check_nonzero_noise_median(sample: Sample) -> CheckOutcome:
    """Check whether the median of the noise is not 0.

    The fault is that noise above 0 and noise below 0 are not equally frequent.
    """
    noises = sample.noise_by_input()
    d = noises[0].shape[1]
    # If the noise is off-centre to different sides at different inputs, x is not the clean vector.
    sides = np.stack([_one_sided_sign_p_values_by_column(noise) for noise in noises])
    p = float(min(sides.max(axis=0).min() * 2 * (d + 1), 1.0))
    share = float((noises[0] > 0).sum() / max(1, (noises[0] != 0).sum()))
    bad = f"the median of the noise is not 0: {share:.1%} of it is above the clean vector"
    good = f"{share:.1%} of the noise is above the clean vector: no more off half than by chance"
    return CheckOutcome(bad, good, p, above=share)


def _one_sided_sign_p_values_by_column(noise: Floats) -> Floats:
    """Compute p-values of one-sided sign tests, for each coordinate and for the sum of a row.

    The first row of the result holds the p-values for too many values above 0. The second row
    holds the p-values for too many values below 0.
    """
    rows = np.concatenate([noise, noise.sum(axis=1, keepdims=True)], axis=1)
    above, below = (rows > 0).sum(axis=0), (rows < 0).sum(axis=0)
    return np.stack([sign_test_p_values(above, below), sign_test_p_values(below, above)])


def check_atom(sample: Sample) -> CheckOutcome:
    """Check whether the noise often has one particular value, while other values hardly repeat.

    The particular value has a positive probability. The fault is found only if the noise also
    repeats this value at other inputs of the mechanism.
    """
    noises = sample.noise_by_input()
    n, d = noises[0].shape
    best, at, share = 1.0, 0.0, 0.0
    modes, mixed = _column_mode_is_atom(noises[0])
    # Other values occur twice at most on average, and rounded ones as often as rounding explains.
    chance = np.maximum(
        8.0 / n, np.minimum(1.0, 4.0 * sample.column_spacing / np.maximum(sample.half_iqr, 1e-300))
    )
    # 0 is always tested. The p-value gets a factor, because the same draws chose the most frequent
    # value.
    for values, price in ((np.zeros(d), 1), (modes, n)):
        hits = (noises[0] == values).sum(axis=0)
        for column in np.flatnonzero(mixed & (hits > 2)):
            # One of the draws that chose the value is not counted.
            used = int(price > 1)
            tail = binomial_tail(int(hits[column]) - used, n - used, float(chance[column]))
            p = min(1.0, 2 * d * price * tail)
            if p < best and _is_at_other_inputs(
                sample, noises[1:], int(column), float(values[column])
            ):
                best, at, share = p, float(values[column]), float(hits[column] / n)
    what = "the outputs equal the clean vector" if at == 0 else f"the noise is {at:.4g}"
    bad = f"an atom: {what} in {share:.1%} of the draws, while other values hardly come twice"
    discrete = int((~mixed).sum())
    good = "no value of the noise is repeated more often than rounding explains"
    if discrete:
        good = f"noise of few values in {discrete} of {d} coordinates, as a discrete law has"
    return CheckOutcome(bad, good, best, at=at, share=share, discrete=discrete)


def _column_mode_is_atom(noise: Floats) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Return the most frequent noise of each coordinate, and True if other values hardly repeat."""
    n, d = noise.shape
    held = np.sort(noise, axis=0)
    changes = np.ones((n, d), bool)
    changes[1:] = held[1:] != held[:-1]
    place = np.arange(n)[:, None]
    run = place - np.maximum.accumulate(np.where(changes, place, 0), axis=0) + 1
    top = run.argmax(axis=0)
    columns = np.arange(d)
    rest = n - run[top, columns]
    mixed = (rest >= _MIN_OTHER_DRAWS) & (changes.sum(axis=0) - 1 > rest / 2)
    return held[top, columns], mixed


def _is_at_other_inputs(sample: Sample, noises: list[Floats], column: int, value: float) -> bool:
    """Return True if `value` is also repeated in the noise at another input."""
    for noise, other in zip(noises, (o for o in sample.others if o.clean is not None), strict=True):
        # Adding and subtracting the clean vector causes a few rounding steps.
        step = sample.precision * float(np.abs(other.outputs[:, column]).max())
        near = 4 * (step + float(sample.column_spacing[column])) if value else 0.0
        if int((np.abs(noise[:, column] - value) <= near).sum()) > 2:
            return True
    return not noises


def check_repeated_large_noise(sample: Sample) -> CheckOutcome:
    """Check whether large values of the noise repeat.

    Large values repeat, for example, if the noise is computed from a uniform number with few bits.
    """
    size = _unrepeated_noise_magnitudes(sample)
    tail = min(_MAX_TAIL_DRAWS, size.size // 20)
    if tail < _MIN_OTHER_DRAWS // 2:
        return CheckOutcome(f"{size.size} different draws are too few: not checked")
    largest = np.sort(np.partition(size, size.size - tail)[-tail:])
    step = float(sample.column_spacing[sample.varying].max())
    gaps, span = np.diff(largest), float(largest[-1] - largest[0])
    if tail * _SMALL_GAP_STEPS * step > span / 2:
        steps = float(np.median(sample.half_iqr[sample.varying])) / step
        text = (
            f"rounding hides the grid of the noise: its spread is {steps:.3g} steps of the floats"
        )
        return CheckOutcome(text, steps=steps)
    small = int((gaps <= _SMALL_GAP_STEPS * step).sum())
    equal = int((gaps <= step).sum())
    p = binomial_tail(equal, small, 1 / 8)
    # About tail^2 / 2 pairs of both signs lie on the share tail / draws of half of the values.
    values = math.log2(max(1.0, tail * size.size / max(1, equal)))
    good = f"{equal} of the {tail} largest of {size.size:,} draws repeat another"
    bad = (
        f"{good}: the noise lies on a grid of about 2^{values:.0f} values, coarse in the"
        " tail (float32 Laplace noise of torch never exceeds 15.942385 scales; here the largest is"
        f" {float(largest[-1]) / float(size.mean()):.4g} mean sizes)"
    )
    centre = _noise_centre_suffix(sample)
    return CheckOutcome(bad + centre, good + centre, p, equal=equal, small=small, draws=size.size)


def _noise_centre_suffix(sample: Sample) -> str:
    return f" (measured from {sample.around})" if sample.around else ""


def _unrepeated_noise_magnitudes(sample: Sample) -> Floats:
    """Return absolute values of the noise of both calls, without repeated rows.

    Values that several coordinates share are also left out.

    Other checks find repeated rows and draws that several coordinates share. Such values give no
    information about repeated values in the tail.
    """
    centre = np.median(sample.first, axis=0) if sample.clean is None else sample.clean
    both = np.concatenate([sample.first, sample.second])[:, sample.varying]
    new = np.unique(hash_rows(both, sample.rng), return_index=True)[1]
    if len(new) < _MIN_DISTINCT_SHARE * len(both):
        both = both[new]
    size = np.sort(np.abs(both - centre[sample.varying]), axis=1)
    fresh = np.ones(size.shape, bool)
    fresh[:, 1:] = np.diff(size, axis=1) > float(sample.column_spacing[sample.varying].max())
    return size[fresh]


def _is_discrete(sample: Sample) -> bool:
    """Return True if at least half of the coordinates with noise have a discrete distribution."""
    mixed = _column_mode_is_atom(sample.first[:, sample.varying])[1]
    return bool(mixed.mean() < 0.5)


def check_bounded_noise(sample: Sample) -> CheckOutcome:
    """Check whether the noise seems to have a largest possible absolute value.

    The fault is found if many draws are near the largest absolute value that was drawn.
    """
    noise = np.abs(sample.noise[:, sample.varying]) / sample.half_iqr[sample.varying]
    size = noise.max(axis=1)
    n = len(size)
    k = min(_MAX_WALL_DRAWS, n // 10) // 2 * 2
    top = np.sort(size)[-(k + 1) :][::-1]
    # Renyi: the spacings of an exponential tail, each times its rank, have one distribution.
    spacings = np.arange(1, k + 1) * -np.diff(top)
    total = float(spacings.sum())
    if total == 0.0:
        return CheckOutcome("the largest draws are all equal: not checked")
    from scipy.special import betainc

    share = float(spacings[: k // 2].sum()) / total
    allowed = 0.5 / _gaussian_first_half_spacing_share(k, n)
    p = float(betainc(k // 2, k // 2, min(1.0, share * allowed)))
    figures = _describe_largest_draw_vs_fits(noise) + _noise_centre_suffix(sample)
    bad = (
        f"the noise has a largest possible value: {figures}; the {k} largest draws are close to it"
    )
    return CheckOutcome(bad, f"no wall: {figures}", p, share=share, largest=float(top[0]))


def _gaussian_first_half_spacing_share(spacings: int, draw_count: int) -> float:
    """Compute which share of a sum of k terms the first k / 2 terms have, for Gaussian noise.

    Let k be `spacings`. A term is the difference of two neighbours among the k + 1 largest draws,
    times its rank. The expected value of a term is proportional to the Mills ratio.
    """
    from scipy.special import log_ndtr, ndtri

    q = (np.arange(1, spacings + 1) - 0.5) / draw_count / 2
    z = -ndtri(q)
    mills = np.exp(log_ndtr(-z) + z * z / 2)
    return float(mills[: spacings // 2].sum() / mills.sum())


def _describe_largest_draw_vs_fits(noise: Floats) -> str:
    """Describe the largest draw and its expected value under fitted distributions."""
    n, top = noise.size, float(noise.max())
    laplace = n * math.exp(-top / float(noise.mean()))
    gauss = n * math.erfc(top / math.sqrt(2 * float((noise**2).mean())))
    return (
        f"the largest of {n:,} draws is {top / float(noise.mean()):.4g} mean sizes; Laplace noise"
        f" would be beyond it {laplace:.2g} times, Gaussian noise {gauss:.2g} times"
    )


def check_coordinates_without_noise(sample: Sample) -> CheckOutcome:
    """Check whether coordinates of the outputs have the same value in all draws of two calls.

    If the vector to which the noise is added is known, the value must also be equal to the entry of
    this vector.
    """
    n, d = sample.first.shape
    still = (sample.first == sample.first[0]).all(axis=0) & (sample.second == sample.first[0]).all(
        axis=0
    )
    if sample.clean is not None:
        # A fixed offset differs from the clean vector, and counts as shared noise instead.
        still &= sample.first[0] == sample.clean
    count = int(still.sum())
    evidence: dict[str, Any] = {"without_noise": count, "dim": d}
    target = "are all the same" if sample.clean is None else "equal the clean vector"
    if count == d:
        return CheckOutcome(f"no noise at all: {n:,} outputs {target}", flagged=True, **evidence)
    if count:
        return CheckOutcome(f"no noise in {count} of {d} coordinates", flagged=True, **evidence)
    noisy = "the one coordinate has" if d == 1 else f"all {d} coordinates have"
    return CheckOutcome(f"{noisy} noise", **evidence)


def check_repeats_within_call(sample: Sample) -> CheckOutcome:
    """Check whether outputs of one call are repeated in the call or depend on earlier outputs."""
    n = len(sample.first)
    if sample.varying.size == 0:
        if check_coordinates_without_noise(sample).flagged:
            return CheckOutcome("no noise to compare")
        text = f"one draw of the noise is used for all {n:,} rows of a call"
        return CheckOutcome(text, flagged=True, distinct=1)
    values = sample.first[:, sample.varying]
    ids = hash_rows(values, sample.rng)
    distinct = len(np.unique(ids))
    repeats, lag = _repeat_lag_p_value(ids)
    half = n // 2
    # Neighbouring rows, and rows half a call apart. No row is in two pairs.
    pairs = (values[0 : 2 * half : 2], values[1 : 2 * half : 2]), np.split(values[: 2 * half], 2)
    following = [spearman_test(first, second, sample.rng)[0] for first, second in pairs]
    p = 3 * min(repeats, *following)
    bad = (
        f"rows of a call repeat every {lag} rows: {distinct:,} different ones among {n:,}"
        if repeats <= min(following)
        else "rows of a call depend on the rows before them"
    )
    good = f"{distinct:,} different rows among {n:,}, none tied to another"
    return CheckOutcome(bad, good, p, distinct=distinct, lag=lag)


def _repeat_lag_p_value(ids: npt.NDArray[np.uint64]) -> tuple[float, int]:
    """Test if equal rows often have the same distance k in the call; return p-value and k."""
    n = len(ids)
    order = np.argsort(ids, kind="stable")
    equal = ids[order[1:]] == ids[order[:-1]]
    lags = np.diff(order)[equal]
    if lags.size == 0:
        return 1.0, 0
    lag = int(np.bincount(lags).argmax())
    # Disjoint pairs are independent if the rows are independent.
    starts = np.arange(n - lag)
    starts = starts[starts // lag % 2 == 0]
    hits = int((ids[starts] == ids[starts + lag]).sum())
    return min(1.0, n * binomial_tail(hits, len(starts), collision_probability_upper(ids))), lag


def check_repeats_between_calls(sample: Sample) -> CheckOutcome:
    """Check whether outputs of a second call of the mechanism also occur in the first call."""
    n = len(sample.first)
    if sample.varying.size == 0:
        if not (sample.first[0] == sample.second[0]).all():
            return CheckOutcome("two calls differ")
        if check_coordinates_without_noise(sample).flagged:
            return CheckOutcome("no noise to compare")
        return CheckOutcome("two calls with fresh generators used the same noise", flagged=True)
    # Both calls use the same weights, so equal rows have equal hashes.
    both = np.concatenate([sample.first, sample.second])[:, sample.varying]
    ids = hash_rows(both, sample.rng)
    chance = max(collision_probability_upper(ids[:n]), collision_probability_upper(ids[n:]))
    equal = int((ids[:n] == ids[n:]).sum())
    repeated = int(np.isin(ids[n:], ids[:n]).sum())
    following = spearman_test(both[:n], both[n:], sample.rng)[0]
    p = 3 * min(
        binomial_tail(equal, n, chance), binomial_tail(repeated, n, min(1.0, n * chance)), following
    )
    bad = (
        f"two calls with fresh generators share noise: {equal:,} of {n:,} rows are equal"
        f" in place, {repeated:,} in any place"
    )
    good = f"two calls with fresh generators: {equal:,} of {n:,} rows equal, no more than chance"
    return CheckOutcome(bad, good, p, equal=equal, known=repeated)


def check_low_rank_noise(sample: Sample) -> CheckOutcome:
    """Check whether the noise spans fewer dimensions than it has coordinates.

    An example is one draw of noise that is added to all coordinates.
    """
    columns = _pick_noisy_columns(sample)
    d = len(columns)
    rank = _noise_rank(sample, columns)
    evidence: dict[str, Any] = {"rank": rank, "dim": d}
    if rank == d:
        return CheckOutcome(f"noise in all {d} directions", **evidence)
    text = f"noise in {rank} of {d} directions: {d - rank} combinations of outputs are exact"
    if rank == 1:
        text = f"one draw of noise for all {sample.varying.size} coordinates (rank 1)"
        error = _error_after_subtracting_row_min(sample)
        if error is not None:
            whole = sample.clean is not None and float(sample.clean.min()) == 0.0
            returned = "the clean vector" if whole else "the clean vector up to one constant"
            text += f": subtracting the row minimum returns {returned} (largest error {error:.2g})"
            evidence["error"] = error
    return CheckOutcome(text, flagged=True, **evidence)


def _pick_noisy_columns(sample: Sample) -> npt.NDArray[np.intp]:
    """Return the coordinates with noise, or a random subset if there are too many of them."""
    most = min(_MAX_COMPARED_COLUMNS, len(sample.first) // 2)
    if sample.varying.size <= most:
        return sample.varying
    return np.sort(sample.rng.choice(sample.varying, most, replace=False))


def _noise_rank(sample: Sample, columns: npt.NDArray[np.intp]) -> int:
    values = sample.first[:, columns]
    # Each coordinate is scaled by a power of two, so sums and squares stay in the range.
    power = -np.frexp(np.abs(values).max(axis=0))[1]
    values = np.ldexp(values, power)
    values = values - values.mean(axis=0)
    size = np.sqrt((values**2).mean(axis=0))
    values /= size
    d = len(columns)
    # Rounding errors are noise in every direction, of this size.
    rounding = float(
        (_EMPTY_DIRECTION_STEPS * np.ldexp(sample.column_spacing[columns], power) / size).max()
    )
    empty = max(1e-10, rounding**2)
    gram = values.T @ values / len(values)
    try:
        # A pivot is the part of a coordinate that the earlier coordinates do not explain.
        if float(np.linalg.cholesky(gram).diagonal().min()) ** 2 > empty:
            return d
    except np.linalg.LinAlgError:
        pass
    few = values[:_FIRST_RANK_ROWS]
    lengths = np.linalg.svd(few - few.mean(axis=0), compute_uv=False)
    quick = int((lengths > math.sqrt(empty * max(few.shape))).sum())
    if quick < min(_FIRST_RANK_ROWS - 1, d):
        return max(1, quick)
    return int((np.linalg.eigvalsh(gram) > empty * d).sum())


def _error_after_subtracting_row_min(sample: Sample) -> float | None:
    """Return the largest error after the minimum of each row is subtracted from the row.

    None if the subtraction does not remove the noise.
    """
    bare = sample.first - sample.first.min(axis=1, keepdims=True)
    clean = bare[0] if sample.clean is None else sample.clean - sample.clean.min()
    error = float(np.abs(bare - clean).max())
    return error if error <= _EMPTY_DIRECTION_STEPS * float(sample.column_spacing.max()) else None


def check_correlation(sample: Sample) -> CheckOutcome:
    """Check whether the noise is correlated between two coordinates."""
    return _check_correlations(sample, sample.first, "the noise", "")


def check_size_correlation(sample: Sample) -> CheckOutcome:
    """Check whether the absolute values of the noise are correlated between coordinates."""
    values = np.abs(sample.first - np.median(sample.first, axis=0))
    meant = " (meant where one radius is drawn for the whole vector, as by an L2-Laplace)"
    return _check_correlations(sample, values, "the size of the noise", meant)


def _check_correlations(sample: Sample, columns: Floats, subject: str, meant: str) -> CheckOutcome:
    p, strongest, rms, pairs = correlation_test(columns[:, _pick_noisy_columns(sample)], sample.rng)
    figures = f"{strongest:.3f} at most over {pairs:,} pairs, {rms:.3f} in the mean"
    bad = f"{subject} in one coordinate tells that in others: correlation {figures}{meant}"
    good = f"{subject}: correlation {figures}, no more than chance"
    return CheckOutcome(bad, good, p, largest=strongest, rms=rms, pairs=pairs)


def check_scale_depends_on_input(sample: Sample) -> CheckOutcome:
    """Check whether the scale of the noise depends on the input of the mechanism.

    The check compares differences of two outputs, because the vector to which the noise is added
    cancels in a difference.
    """
    if not sample.others:
        refusals = f": {', '.join(sample.refused)}" if sample.refused else ""
        return CheckOutcome(f"no other input to compare with{refusals}")
    here = _pair_differences(sample.first[: len(sample.others[0].outputs)])
    best, label, ratio = 1.0, "", 1.0
    for other in sample.others:
        there = _pair_differences(other.outputs)
        p, column = rank_sum_test(here, there, sample.rng)
        if p <= best:
            best, label = p, other.label
            base = float(here[:, column].mean())
            ratio = float(there[:, column].mean()) / base if base else np.inf
    labels = ", ".join(other.label for other in sample.others)
    refused = f" (refused: {', '.join(sample.refused)})" if sample.refused else ""
    bad = f"the noise depends on the input: at {label} it is {ratio:.4g} times as large{refused}"
    good = f"the noise is as large at {labels} as at x{refused}"
    return CheckOutcome(bad, good, best * len(sample.others), at=label, ratio=ratio)


def check_column_with_little_noise(sample: Sample) -> CheckOutcome:
    """Check whether a coordinate has less than a tenth of the noise of most other coordinates."""
    columns = sample.varying
    outputs = sample.first[:, columns]
    sizes = np.abs(outputs - np.median(outputs, axis=0))
    medians = np.median(sizes, axis=0)
    usual = float(np.median(medians))
    if usual == 0.0:
        return CheckOutcome("most of the noise is one value: not checked")
    # Half of the draws are within the median size. A larger share indicates smaller noise.
    hits = (sizes <= _SMALL_SCALE_SHARE * usual).sum(axis=0)
    worst = int(hits.argmax())
    p = columns.size * binomial_tail(int(hits[worst]), len(sizes), 0.5)
    ratio, count = float(medians[worst]) / usual, int((medians < _SMALL_SCALE_SHARE * usual).sum())
    bad = (
        f"the noise of coordinate {int(columns[worst])} is {ratio:.2g} times as large as that of "
        f"most coordinates{f', {count} are so small' if count > 1 else ''}: by design only where "
        "the sensitivity is smaller there too"
    )
    small = f"less than {_SMALL_SCALE_SHARE} times as large"
    good = f"the noise of no coordinate is {small} as that of most"
    return CheckOutcome(bad, good, p, coordinate=int(columns[worst]), ratio=ratio)


def _pair_differences(outputs: Floats) -> Floats:
    """Return the absolute differences of rows 0 and 1, rows 2 and 3, ..., and their row means."""
    half = len(outputs) // 2
    size = np.abs(outputs[0 : 2 * half : 2] - outputs[1 : 2 * half : 2])
    return np.concatenate([size, size.mean(axis=1, keepdims=True)], axis=1)


def check_train_and_eval(sample: Sample) -> CheckOutcome:
    """Check whether the noise is distributed differently in train mode and in eval mode."""
    mode = sample.mode
    if mode is None:
        return CheckOutcome("no train and eval mode")
    if mode.outputs is None:
        return CheckOutcome(f"in {mode.here} mode; not run in {mode.there} mode: {mode.why}")
    if mode.outputs.shape[1] != sample.first.shape[1]:
        shapes = f"{sample.first.shape[1]} and {mode.outputs.shape[1]}"
        return CheckOutcome(f"outputs of {shapes} numbers in the two modes", flagged=True)
    noisy = sample.varying.size > 0, bool((mode.outputs != mode.outputs[0]).any())
    if noisy[0] != noisy[1]:
        with_noise, without = (mode.here, mode.there)[:: 1 if noisy[0] else -1]
        return CheckOutcome(f"noise in {with_noise} mode, none in {without} mode", flagged=True)
    if not noisy[0]:
        return CheckOutcome("no noise in either mode")
    first = sample.first[: len(mode.outputs)]
    values = rank_sum_test(first, mode.outputs, sample.rng)[0]
    sizes = rank_sum_test(_pair_differences(first), _pair_differences(mode.outputs), sample.rng)[0]
    bad = "outputs have another law in train mode than in eval mode"
    good = "outputs have the same law in train and eval mode"
    return CheckOutcome(bad, good, 2 * min(values, sizes))


_Need = tuple[Callable[[Sample], bool], str]
_CLEAN: _Need = (
    lambda sample: sample.clean is None,
    "the vector that the noise is added to is not known (clean=): not checked",
)
_NOISE: _Need = lambda sample: sample.varying.size == 0, "no noise within a call to look at"
_CONTINUOUS: _Need = _is_discrete, "noise of few values, as a discrete law has: not checked"
_COLUMNS: _Need = (
    lambda sample: sample.varying.size < 2,
    "fewer than two noisy coordinates: nothing to compare",
)
"""Requirement of a check: a function that returns True if the outputs do not meet the requirement,
and a sentence that says so."""

_FINDERS: dict[str, tuple[Any, ...]] = {
    "no_noise": (check_coordinates_without_noise,),
    "shared_rows": (check_repeats_within_call,),
    "shared_calls": (check_repeats_between_calls,),
    "rank": (check_low_rank_noise, _COLUMNS),
    "correlation": (check_correlation, _COLUMNS),
    "shared_size": (check_size_correlation, _COLUMNS),
    "one_sided": (check_one_sided_noise, _CLEAN, _NOISE),
    "atom": (check_atom, _CLEAN, _NOISE),
    "off_centre": (check_nonzero_noise_median, _CLEAN, _NOISE),
    "scale": (check_scale_depends_on_input, _NOISE),
    "column_scale": (check_column_with_little_noise, _COLUMNS),
    "grid": (check_repeated_large_noise, _NOISE, _CONTINUOUS),
    "range": (check_bounded_noise, _NOISE, _CONTINUOUS),
    "modes": (check_train_and_eval,),
}
"""Function of each check, and its requirements."""

CHECKS = tuple(_FINDERS)
"""Names of the checks of an inspection, in the order in which they are run and shown."""
