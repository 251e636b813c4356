"""Held-out scores of rows, and the Renyi divergence of these scores.

A score is a function that maps each row to one number. It is fitted on one half of the rows and
evaluated on the other half. Then the halves are exchanged, so every row gets a score that was not
fitted on this row. By the data-processing inequality, the divergence of the scores is at most the
divergence of the rows. The default score is a logistic regression on the coordinates and the
squared length of a row.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import invalid, mistyped, numeric
from ..packages import use_one_blas_thread
from ..records import Floats, Record
from .estimators import line_ball
from .points import Groups, Labels, Points, Raw, ResamplingPlan, freeze_arrays, regroup_kept_rows

PENALTY: Final = 1.0
"""The constant C in the objective of the regression, |w|^2 / 2 + C * sum of losses."""

_STANDARDISED_BLOCK_NUMBERS: Final = 2**20
"""Number of entries in a block of rows that is scored at a time, 8 MiB per copy."""
_MAX_STANDARDISED_COORDINATE: Final = 1e75
"""Limit to which standardised coordinates are clipped, so that squared lengths are finite."""
_MAX_FIT_ITERATIONS: Final = 1000
_GRADIENT_TOLERANCE: Final = 1e-6

Score = Callable[[npt.NDArray[Any]], Any]
MakePlan = Callable[[tuple[int, int], Groups], ResamplingPlan | None]

TRAINED: Final = 2**16
"""Largest number of rows of a set used to fit a score. It is smaller if rows have many columns."""
_MAX_SCORED_NUMBERS: Final = 2**24
_MIN_TRAINING_ROWS: Final = 2**12

NOTE: Final = "estimates the divergence of a score, at most D_alpha (data processing)"

_SCORE_REQUIREMENT = "a callable: rows -> scores, or (train0, train1) -> (rows -> scores)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Logistic(Record):
    """Logistic regression, fitted on two sets of rows, that returns the log odds of set 0.

    The log odds are ln(probability that the row is from set 0 / probability that it is from set 1).

    The log odds are computed as w.z + v s + intercept. The vector z contains the d coordinates of
    the row, standardised by the means and standard deviations of the training rows. The number s is
    the squared length of z, centred and scaled to a standard deviation of sqrt(d) on the training
    rows.

    Args:
        center: means of the coordinates of the training rows, shape (d,).
        spread: standard deviations of the coordinates of the training rows, shape (d,). It is
            infinite for a constant coordinate. The regression ignores such a coordinate.
        length: two numbers: the mean of |z|^2, and the standard deviation of |z|^2 divided by
            sqrt(d).
        weights: the weights w of the coordinates, shape (d,).
        weight: the weight v of the squared length.
        intercept: the constant term of the log odds.
    """

    center: Floats
    spread: Floats
    length: tuple[float, float]
    weights: Floats
    weight: float
    intercept: float

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        freeze_arrays(self, "center", "spread", "weights")

    def __call__(self, rows: npt.NDArray[Any]) -> Floats:
        """Return the log odds of n rows, shape (n,). The rows have the shape (n, d)."""
        step = max(1, _STANDARDISED_BLOCK_NUMBERS // rows.shape[1])
        with use_one_blas_thread():
            odds = [self._score_log_odds(rows[i : i + step]) for i in range(0, len(rows), step)]
        return np.concatenate(odds) if odds else np.empty(0)

    def _score_log_odds(self, rows: npt.NDArray[Any]) -> Floats:
        z = _standardise_rows(rows, self.center, self.spread)
        square = (np.einsum("ij,ij->i", z, z) - self.length[0]) / self.length[1]
        odds: Floats = z @ self.weights + self.weight * square + self.intercept
        return odds

    def __str__(self) -> str:
        """Return one line of text for a report."""
        return f"log odds of a logistic regression on z and |z|^2, d = {len(self.weights)}"


def fit_regression(train0: npt.NDArray[Any], train1: npt.NDArray[Any]) -> Logistic:
    """Fit a logistic regression on the rows of two sets, shapes (n0, d) and (n1, d).

    The objective is the same as in scikit-learn: |w|^2 / 2 + C * sum of logistic losses, with C = 1
    and no penalty on the intercept. The objective is minimised by L-BFGS from w = 0. On one
    machine, the fit is repeatable bit for bit. Another linear algebra library may change the last
    digits.
    """
    from scipy.optimize import minimize

    features, center, spread, length = _standardise_with_square_norm(train0, train1)
    signs = np.repeat([1.0, -1.0], [len(train0), len(train1)])
    size, width = features.shape

    def objective(parameters: Floats) -> tuple[float, Floats]:
        weights, intercept = parameters[:-1], parameters[-1]
        margins = signs * (features @ weights + intercept)
        # ln(1 + e^-m) and its slope 1/(1 + e^m), from a single exponential that cannot overflow.
        small = np.exp(-np.abs(margins))
        loss = np.sum(np.log1p(small) + np.maximum(-margins, 0.0))
        slopes = -signs * np.where(margins > 0.0, small, 1.0) / (1.0 + small)
        gradient = np.empty(width + 1)
        gradient[:-1] = weights + PENALTY * (slopes @ features)
        gradient[-1] = PENALTY * np.sum(slopes)
        value = 0.5 * float(weights @ weights) + PENALTY * float(loss)
        # Divide by the number of rows, because the stopping rule concerns the mean loss.
        return value / size, gradient / size

    start = np.zeros(width + 1)
    # If all coordinates are equal, the best odds are the ratio of the sizes: no step is needed.
    start[-1] = np.log(len(train0) / len(train1))
    stops = {"maxiter": _MAX_FIT_ITERATIONS, "gtol": _GRADIENT_TOLERANCE, "ftol": 1e-12}
    options = {**stops, "maxcor": 20}
    with use_one_blas_thread():
        solution = minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x
    weight, intercept = solution[width - 1 :].tolist()
    return Logistic(center, spread, length, solution[: width - 1], weight, intercept)


def _standardise_with_square_norm(
    train0: npt.NDArray[Any], train1: npt.NDArray[Any]
) -> tuple[Floats, Floats, Floats, tuple[float, float]]:
    """Return the standardised features of the rows of both sets, and their means and deviations.

    The features of a row are its standardised coordinates z, and |z|^2. The last result is a pair:
    the mean of |z|^2, and its standard deviation divided by sqrt(d).
    """
    dim = train0.shape[1]
    made = np.empty((len(train0) + len(train1), dim + 1))
    z = made[:, :dim]
    z[: len(train0)], z[len(train0) :] = train0, train1
    # Squares of a column of huge numbers would overflow.
    largest = np.maximum(np.abs(z).max(axis=0), np.finfo(np.float64).tiny)
    z /= largest
    center, spread = np.mean(z, axis=0), np.std(z, axis=0)
    center, spread = center * largest, spread * largest
    # A coordinate that differs only by rounding is constant and is ignored.
    spread[spread <= 1e-12 * largest] = np.inf
    z[: len(train0)] = _standardise_rows(train0, center, spread)
    z[len(train0) :] = _standardise_rows(train1, center, spread)
    square = np.einsum("ij,ij->i", z, z)
    mean, deviation = float(np.mean(square)), float(np.std(square))
    # If the sets differ in scale, all d coordinates show it together. A squared length with the
    # spread of one coordinate would be penalised like noise (power .85 in place of .99 at d = 384).
    unit = (deviation if deviation > 1e-12 * mean else max(mean, 1.0)) / math.sqrt(dim)
    made[:, dim] = (square - mean) / unit
    return made, center, spread, (mean, unit)


def _standardise_rows(rows: npt.NDArray[Any], center: Floats, spread: Floats) -> Floats:
    z: Floats = (rows - center) / spread
    return np.clip(z, -_MAX_STANDARDISED_COORDINATE, _MAX_STANDARDISED_COORDINATE, out=z)


@dataclass(frozen=True, slots=True, eq=False)
class Fold:
    """Rows of two sets with the scores of these rows. The scores were not fitted on these rows.

    A score is a function that maps a row to a number.

    Args:
        rows: indices of the rows in each set, ascending.
        values: scores of these rows, for each set. A larger score means that a row looks more like
            a row of set 0.
        trained: number of other rows of each set on which the score was fitted. It is (0, 0) if the
            score was fixed in advance.
    """

    rows: tuple[Labels, Labels]
    values: tuple[Floats, Floats]
    trained: tuple[int, int]

    @property
    def n_scored(self) -> tuple[int, int]:
        """Number of scored rows of each set."""
        return len(self.rows[0]), len(self.rows[1])

    def row_group_ids(self, points: Points) -> Groups:
        """Return the group of each scored row, for each set, numbered from 0 without gaps.

        `points` holds all rows of both sets with their groups.
        """
        return regroup_kept_rows(points.groups, self.rows)


@dataclass(frozen=True, slots=True, eq=False)
class CrossFit:
    """Scores of all rows of two sets: no row was used to fit the function that scores it.

    A score is a function that maps a row to a number.

    Args:
        folds: two halves of the rows with their scores. The score of each half was fitted on the
            other half. If the score was fixed in advance, there is one entry with all rows.
        kind: "logistic" if the score is a logistic regression, "fitted" if a function of the caller
            fitted the score, and "fixed" if the caller fixed the score in advance.
        notes: remarks on the fit, as sentences that the report prints.
    """

    folds: tuple[Fold, ...]
    kind: str
    notes: tuple[str, ...] = ()


def cross_fit(
    points: Points, rng: np.random.Generator, score: Callable[..., Any] | None = None
) -> CrossFit:
    """Compute scores of the rows of two sets; no row is used to fit its own score.

    A score is a function that maps a row to a number. Each set is split into two halves, and each
    half is scored by a fit on the other half. If rows have groups, no group is divided.

    Args:
        points: the rows of both sets. Each set needs at least 4 rows (or 4 groups), unless the
            score is fixed.
        rng: random generator for the splits. If there are too many training rows, it also draws the
            rows that are used.
        score: function that replaces the default score, a logistic regression on the coordinates
            and the squared length of a row. A function of two required arguments (train0, train1)
            fits a score, and returns a function that maps rows to scores. A function of one
            required argument is the score itself. It maps rows to scores, and must be fixed before
            the rows are seen. It scores all rows without a fit.

    Returns:
        The scores of all rows. Equal rows of the same half have equal scores.

    Raises:
        TypeError: if `score` is not one of these two kinds of functions, or does not return real
            numbers.
        ValueError: if `score` does not return one finite number per row, or if a set is too small
            to be split.
    """
    if score is not None and is_fixed_score(score):
        everything = np.arange(points.sizes[0]), np.arange(points.sizes[1])
        return CrossFit((Fold(everything, score_rows(points, everything, score), (0, 0)),), "fixed")
    halves0, halves1 = (_random_half_row_indices(points, side, rng) for side in (0, 1))
    halves = tuple(zip(halves0, halves1, strict=True))
    folds = []
    for held, taught in (halves, halves[::-1]):
        fitted, trained = fit_score(points, taught, rng, score)
        folds.append(Fold(held, score_rows(points, held, fitted), trained))
    kind, most = "logistic" if score is None else "fitted", most_trained(points.dim)
    notes: tuple[str, ...] = ()
    if max(max(fold.trained) for fold in folds) >= most:
        notes = (f"the score is fitted on at most {most} rows of a set, drawn at random",)
    return CrossFit(tuple(folds), kind, notes)


def estimate_from_scores(
    fit: CrossFit,
    points: Points,
    alphas: Floats,
    k: int,
    make_plan: MakePlan,
    threads: int | None = None,
) -> Raw:
    """Estimate the Renyi divergences between the scores of two sets of rows.

    A score is a function that maps a row to a number. The rows are divided into two halves. Each
    half is scored by a fit on the other half. For each half, the divergences are estimated from the
    numbers of scores of both sets near each score. The result is the average over the halves. The
    standard error of the average is sqrt(se_1^2 + se_2^2)/2, because the halves are independent
    given the fitted scores.

    Args:
        fit: the scores of all rows.
        points: the rows of both sets.
        alphas: orders, ascending.
        k: number of nearest scores of the other set that define the neighbourhood of a score.
        make_plan: function of the numbers of rows and the groups of one half. It returns the plan
            by which the rows of this half are resampled for standard errors, or None.
        threads: number of threads of the computation. Defaults to all cores.
    """
    raws = [
        line_ball(
            *fold.values, alphas, k, make_plan(fold.n_scored, fold.row_group_ids(points)), threads
        )
        for fold in fit.folds
    ]
    raw = raws[0] if len(raws) == 1 else _average_folds(raws)
    notes = dict.fromkeys(note for each in raws for note in each.notes)
    return replace(raw, notes=(NOTE, *fit.notes, *notes))


def is_fixed_score(score: Callable[..., Any]) -> bool:
    """Return True if a function is a score itself, and False if it fits a score.

    A score has one required argument, and maps rows to numbers. A function that fits a score has
    two required arguments (train0, train1), and returns a score.
    """
    if not callable(score):
        raise mistyped("score", f"None or {_SCORE_REQUIREMENT}", score)
    if isinstance(score, np.ufunc):
        return score.nin == 1
    try:
        parameters = inspect.signature(score).parameters.values()
    except ValueError:
        # Callables written in C may hide their signature; treat them as fixed scores.
        return True
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    required = sum(p.default is p.empty for p in positional)
    # f(rows, scale=1.0) and f(*arguments) count as functions of one argument.
    if not required and (positional or any(p.kind == p.VAR_POSITIONAL for p in parameters)):
        required = 1
    if required not in (1, 2):
        need = f"{_SCORE_REQUIREMENT}; one with {required} required arguments"
        raise mistyped("score", need, score)
    return required == 1


def _random_half_row_indices(points: Points, side: int, rng: np.random.Generator) -> list[Labels]:
    """Split the rows of a set at random into two halves, with equal numbers of rows or groups."""
    groups, units = points.groups[side], points.unit_counts[side]
    if units < 4:
        kind = "rows" if groups is None else "groups"
        raise invalid(f"y{side}", f"of at least 4 {kind} to be split for a score", units)
    dealt = rng.permutation(units) % 2
    part = dealt if groups is None else dealt[groups]
    return [np.flatnonzero(part == i) for i in (0, 1)]


def fit_score(
    points: Points,
    rows: Sequence[Labels],
    rng: np.random.Generator,
    fitting_function: Callable[..., Any] | None,
) -> tuple[Score, tuple[int, int]]:
    """Fit a score on rows of two sets; return the score and how many rows of each set were used.

    A score is a function that maps a row to a number. `rows` holds the indices of the rows of each
    set. If there are too many rows, random rows are used. `fitting_function` is the function that
    fits the score. With None, the score is a logistic regression.
    """
    most = most_trained(points.dim)
    drawn = [r if len(r) <= most else np.sort(rng.choice(r, most, replace=False)) for r in rows]
    train0, train1 = (points.coordinates(points.ids[side][drawn[side]]) for side in (0, 1))
    fitted = (fitting_function or fit_regression)(train0, train1)
    if not callable(fitted):
        raise mistyped("score", "a fitting function that returns a callable", fitted)
    return fitted, (len(drawn[0]), len(drawn[1]))


def most_trained(dim: int) -> int:
    """Return the largest number of rows of each set that are used to fit a score.

    `dim` is the number of columns of the rows.
    """
    return min(TRAINED, max(_MIN_TRAINING_ROWS, _MAX_SCORED_NUMBERS // dim))


def score_rows(points: Points, rows: Sequence[Labels], score: Score) -> tuple[Floats, Floats]:
    """Compute the scores of the given rows of both sets. `rows` holds the indices for each set.

    `score` is the function that maps rows to scores. It is called only once for equal rows.
    """
    ids = [points.ids[side][rows[side]] for side in (0, 1)]
    is_needed = np.zeros(points.unique, bool)
    is_needed[ids[0]] = is_needed[ids[1]] = True
    distinct = np.flatnonzero(is_needed)
    values = np.empty(points.unique)
    values[distinct] = _evaluate_score(score, points, distinct)
    return values[ids[0]], values[ids[1]]


def _evaluate_score(score: Score, points: Points, ids: Labels) -> Floats:
    """Evaluate a score on points, given by their ids, in blocks that limit the memory."""
    step = max(1, _MAX_SCORED_NUMBERS // points.dim)
    values = []
    for start in range(0, len(ids), step):
        rows = points.coordinates(ids[start : start + step])
        requirement = f"a callable that returns one finite number a row, shape ({len(rows)},)"
        scores = numeric("score", requirement, score(rows))
        if scores.shape != (len(rows),):
            raise invalid("score", requirement, f"shape {scores.shape}")
        if not np.isfinite(scores).all():
            row = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise invalid("score", requirement, f"{scores[row]} for {rows[row]}")
        values.append(scores.astype(np.float64))
    # Adding 0.0 makes 0.0 and -0.0 one score.
    return np.concatenate(values) + 0.0


def _average_folds(raws: list[Raw]) -> Raw:
    first, second = raws
    with np.errstate(invalid="ignore"):
        value = (first.value + second.value) / 2.0
        # If the value of one fold is infinite, so is the mean, for any value of the other fold.
        value[np.isposinf(first.value) | np.isposinf(second.value)] = math.inf
        std_error = np.sqrt(first.std_error**2 + second.std_error**2) / 2.0
        replicates = None
        if first.replicates is not None and second.replicates is not None:
            replicates = (first.replicates + second.replicates) / 2.0
    per_atom = [raw.rows_per_atom for raw in raws if not math.isnan(raw.rows_per_atom)]
    return Raw(
        value=value,
        std_error=std_error,
        depth=(max(first.depth[0], second.depth[0]), max(first.depth[1], second.depth[1])),
        ceiling=np.minimum(first.ceiling, second.ceiling),
        effective=first.effective + second.effective,
        unseen_share=(first.unseen_share + second.unseen_share) / 2.0,
        atom_share=(first.atom_share + second.atom_share) / 2.0,
        rows_per_atom=min(per_atom, default=math.nan),
        replicates=replicates,
        counted={name: number + second.counted[name] for name, number in first.counted.items()},
        beyond_share=(first.beyond_share + second.beyond_share) / 2.0,
    )
