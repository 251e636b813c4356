"""A classifier of outputs: its log odds are an estimate of the log-likelihood ratio."""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

import numpy as np

from ..errors import choice, instance, integer, invalid, suggest_arguments
from ..events.device_outputs import Held, Rough, as_float64, cache_per_device, rounding_slack
from ..events.event import Score
from ..records import Record
from .arrays import Array, Floats, Grain, Merged, Whole, freeze_arrays, grains_of
from .attack import NumericAttack
from .rows import atoms_of, chunk_slices, finite_values, first_rows, loose_of, read_numbers

_MAX_FLAGGED_ATOMS: Final = 4
"""Atoms of one entry that get a flag of their own, the most frequent ones."""
_MIN_FLAGGED_SHARE: Final = 0.005
_MIN_CONTINUOUS_VALUES: Final = 16
_MIN_CONTINUOUS_PER_ATOM: Final = 4
"""An entry is an atom or two beside a continuum if so many values, and so many for each atom, are
no atoms."""
_GRID_WIDTH_TOLERANCES: Final = 256.0
"""Tolerances that a cell of the grid is wide, where the numbers are spread enough."""
_NON_FINITE_VALUES: Final = (np.nan, -np.inf, np.inf)
_GRID_OFFSET: Final = 0.618033988749895
"""The grid to which values are merged has its boundaries at no simple fraction of its width."""
Model = Literal["logistic", "boosting", "auto"]
_MODEL_NAMES: Final[tuple[Model, ...]] = get_args(Model)
_MAX_LOG_ODDS: Final = 50.0
_BOOSTING_ROUNDS: Final = 60
_MAX_TREE_LEAVES: Final = 8
_MIN_LEAF_SAMPLES: Final = 100
"""Few small trees with full leaves: scoring takes time for each tree, and noise is what larger
ones learn where the two sides differ by a few per cent."""
_WEIGHT_DECIMALS: Final = 6
"""Of a weight on a standardised feature: beyond them, libraries of linear algebra differ."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Features(Record, word="Features"):
    """Outputs as features: every entry's value, and flags for its atoms, NaN and infinities.

    A value at a flagged atom, or not finite, is replaced by the entry's `fill`, so that a code
    such as -1000 for "below" does not drown the numbers beside it; all others are merged on a
    grid of width `unit`, so that no tree can split numbers that are equal in the reals.

    Args:
        fill: what replaces a flagged value, for each entry.
        unit: width of the grid of each entry, or of all; 0 for numbers that were never rounded.
        entries: which entry each flag belongs to.
        lows: lower ends of the atoms' intervals; NaN for a flag of NaN.
        highs: upper ends.

    Raises:
        ValueError: if the flags' tables have different lengths.
    """

    fill: Floats
    unit: Floats
    entries: Whole
    lows: Floats
    highs: Floats

    def __post_init__(self) -> None:
        """Freeze the tables and check that they fit."""
        object.__setattr__(self, "unit", np.broadcast_to(self.unit, np.shape(self.fill)))
        freeze_arrays(self)
        if not self.entries.shape == self.lows.shape == self.highs.shape:
            shapes = (self.entries.shape, self.lows.shape, self.highs.shape)
            raise invalid("entries", "as many as lows and highs", shapes)

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.fill.size + self.entries.size)

    def __call__(self, outputs: Array) -> Floats:
        """Return the features, finite, shape `(size, width)`: values first, then flags."""
        dim = self.fill.size
        rows = read_numbers(outputs, dim)
        made = np.empty((len(rows), self.width), order="F")
        made[:, :dim] = rows
        flags = zip(self.entries, self.lows, self.highs, strict=True)
        for place, (entry, low, high) in enumerate(flags, dim):
            values = rows[:, entry]
            hit = np.isnan(values) if np.isnan(low) else (values >= low) & (values <= high)
            made[:, place] = hit
            made[hit, entry] = self.fill[entry]
        for entry in range(dim):
            values = made[:, entry]
            values[~np.isfinite(values)] = self.fill[entry]
            unit = self.unit[entry]
            if unit > 0.0:
                # Beyond, a number's own last place is wider than the grid.
                near = np.abs(values) < unit * 2.0**52
                values[near] = np.floor(values[near] / unit + _GRID_OFFSET) * unit
        return made

    def on_device(self, outputs: Held) -> Any:
        """Return the same where the outputs are, a tensor; None for another number of entries."""
        rows, dim = outputs.flat, self.fill.size
        if rows.shape[1] != dim:
            return None
        fill, unit = cache_per_device(
            self,
            outputs,
            lambda like, _: (as_float64(like, self.fill), as_float64(like, self.unit)),
        )
        made = fill.new_empty((len(outputs), self.width))
        values = made[:, :dim].copy_(rows)
        flags = zip(self.entries.tolist(), self.lows.tolist(), self.highs.tolist(), strict=True)
        for place, (entry, low, high) in enumerate(flags, dim):
            column = rows[:, entry].double()
            hit = column.isnan() if low != low else (column >= low) & (column <= high)
            made[:, place] = hit
            values[:, entry].masked_fill_(hit, float(self.fill[entry]))
        values.copy_(values.where(values.isfinite(), fill))
        merged = (values / unit + _GRID_OFFSET).floor() * unit
        values.copy_(merged.where((unit > 0.0) & (values.abs() < unit * 2.0**52), values))
        return made


def features_of(rows: Array, rows_prime: Array) -> Features:
    """Make features for pilot outputs: which entries have atoms, and what stands in for those.

    Args:
        rows: pilot outputs on x as rows of numbers, shape `(size, entries)`.
        rows_prime: the same on x'.

    Returns:
        The features.
    """
    sides = first_rows(rows), first_rows(rows_prime)
    grains = grains_of(*sides)
    flags: list[tuple[int, float, float]] = []
    fill, unit = np.zeros(rows.shape[1]), np.zeros(rows.shape[1])
    for i in range(rows.shape[1]):
        values = finite_values(sides[0][:, i], sides[1][:, i])
        atoms = atoms_of(values, grains[i])
        rest = values[loose_of(values, atoms)]
        # Of a discrete law only rare values are no atoms: there the value itself is the feature.
        mixed = rest.size >= max(
            _MIN_CONTINUOUS_VALUES, _MIN_CONTINUOUS_PER_ATOM * atoms.counts.size
        )
        for j in np.argsort(-atoms.counts, kind="stable")[: _MAX_FLAGGED_ATOMS if mixed else 0]:
            if atoms.counts[j] >= _MIN_FLAGGED_SHARE * values.size:
                flags.append((i, float(atoms.lows[j]), float(atoms.highs[j])))
        beside = rest if mixed else values
        fill[i] = np.median(beside) if beside.size else 0.0
        unit[i] = _grid_width(beside, grains[i])
        column = np.concatenate([side[:, i].astype(np.float64) for side in (rows, rows_prime)])
        met = np.isnan(column).any(), (column == -np.inf).any(), (column == np.inf).any()
        flags += [
            (i, odd, odd) for odd, is_met in zip(_NON_FINITE_VALUES, met, strict=True) if is_met
        ]
    table = np.array(flags, dtype=np.float64).reshape(-1, 3)
    return Features(fill, unit, table[:, 0].astype(np.int64), table[:, 1], table[:, 2])


def _grid_width(values: Floats, grain: Grain) -> float:
    """Return the width of a grid with few numbers on its boundaries that loses little."""
    if grain.exact or not values.size:
        return 0.0
    low, high = np.quantile(values, (0.25, 0.75), method="nearest")
    return float(
        max(4.0 * grain.typical, min(_GRID_WIDTH_TOLERANCES * grain.typical, (high - low) / 32.0))
    )


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Linear(Merged, word="Linear"):
    """A weighted sum of features: the log odds of a logistic regression.

    Args:
        features: outputs -> features.
        weights: one for each feature, in the features' own units.
        intercept: added to the sum.

    Raises:
        TypeError: if `features` is not a `Features`.
        ValueError: if there is not one weight for each feature.

    Source:
        Bichsel, Steffen, Bogunovic and Vechev (2021), DP-Sniper, section 4.
    """

    features: Features
    weights: Floats
    intercept: float = 0.0

    def __post_init__(self) -> None:
        """Freeze the weights and check that they fit."""
        width = instance("features", self.features, Features).width
        freeze_arrays(self)
        if self.weights.shape != (width,):
            raise invalid("weights", f"of shape ({width},)", self.weights.shape)

    @property
    def cost(self) -> int:
        """Nanoseconds per output on a usual machine; an estimate, not measured here."""
        return 10 + 8 * self.features.width

    def __call__(self, outputs: Array) -> Floats:
        """Return the log odds, shape `(size,)`, between -50 and 50."""

        def sum_features(made: Floats) -> Floats:
            total = np.full(len(made), self.intercept)
            # One column after the other: the same bits whatever the library of linear algebra.
            for column, weight in enumerate(self.weights):
                total += weight * made[:, column]
            return total

        return _score_chunks(outputs, self.features, sum_features)

    def on_device(self, outputs: Held) -> Rough | None:
        """Return the same where the outputs are."""
        made = self.features.on_device(outputs)
        if made is None:
            return None
        weights = cache_per_device(self, outputs, lambda like, _: as_float64(like, self.weights))
        total = (made @ weights + self.intercept).clamp_(-_MAX_LOG_ODDS, _MAX_LOG_ODDS)
        size = made.abs() @ weights.abs() + abs(self.intercept)
        return Rough(total, rounding_slack(self.features.width + 1, size))

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"log odds of a logistic regression on {self.features.width} features"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Boosted(Merged, word="Boosted"):
    """The log odds of boosted trees on features.

    Args:
        features: outputs -> features.
        model: the fitted estimator, with a `decision_function`; JSON keeps its name only.

    Raises:
        TypeError: if `features` is not a `Features`.

    Source:
        Friedman (2001), Annals of Statistics 29, "Greedy function approximation".
    """

    features: Features
    model: Any

    def __post_init__(self) -> None:
        """Check the features."""
        instance("features", self.features, Features)

    @property
    def cost(self) -> int:
        """Nanoseconds per output on a usual machine; an estimate, not measured here."""
        return 25 * int(getattr(self.model, "n_iter_", _BOOSTING_ROUNDS)) + 20 * self.features.width

    def __call__(self, outputs: Array) -> Floats:
        """Return the log odds, shape `(size,)`, between -50 and 50."""
        with _limit_threads():
            return _score_chunks(outputs, self.features, self.model.decision_function)

    def __str__(self) -> str:
        """Return one line for a report."""
        return f"log odds of boosted trees on {self.features.width} features"


def _score_chunks(outputs: Array, features: Features, log_odds: Any) -> Floats:
    rows = read_numbers(outputs)
    scores = np.empty(len(rows))
    for part in chunk_slices(rows):
        scores[part] = log_odds(features(rows[part]))
    return np.clip(scores, -_MAX_LOG_ODDS, _MAX_LOG_ODDS, out=scores)


@suggest_arguments
@dataclass(frozen=True, slots=True, repr=False)
class Classifier(NumericAttack):
    """Scikit-learn classifiers that distinguish outputs on x from outputs on x'.

    For outputs whose entries depend on each other in ways that no sum over entries sees. Features
    are the values and flags for atoms, NaN and infinities. Fitting takes seconds and trees score
    a few microseconds an output: use it where simpler attacks find little. Equal pilots give equal
    models: the seed of the training is fixed.

    Args:
        model: "logistic" (regression on standardised features), "boosting" (histogram-based
            trees) or "auto", which makes both scores.
        rows: most pilot outputs that are trained on, both sides together, at least 2.

    Raises:
        TypeError: if `model` is not a string or `rows` not an integer.
        ValueError: if one of them is out of range.

    Source:
        Bichsel, Steffen, Bogunovic and Vechev (2021), DP-Sniper, section 4 (log odds as a score);
        Friedman (2001), Annals of Statistics 29, for boosting.

    Example:
        >>> import dpcore
        >>> def agree(x, size, rng):
        ...     bits = rng.integers(0, 2, (size, 2))
        ...     same = rng.random(size) < (0.9 if x else 0.5)
        ...     return np.where(same[:, np.newaxis], bits[:, :1], bits)
        >>> report = dpcore.audit(
        ...     agree, (1, 0), attack=Classifier("boosting"), trials=10**4, claim=0.2, rng=1
        ... )
        >>> report.verdict
        'refuted'
    """

    model: Model = "auto"
    rows: int = 200_000

    def __post_init__(self) -> None:
        """Check the settings."""
        choice("model", self.model, _MODEL_NAMES)
        object.__setattr__(self, "rows", integer("rows", self.rows, 2))

    def make_scores(self, rows: Array, rows_prime: Array) -> Iterator[Score]:
        """Fit the log odds of each model on pilot outputs.

        Raises:
            ImportError: if scikit-learn is not installed.
        """
        try:
            import sklearn  # noqa: F401
        except ImportError as error:
            need = "scikit-learn must be installed for the attack Classifier"
            raise ImportError(f"{need}: pip install dpcore[classifier]") from error
        most = max(1, self.rows // 2)
        sides = rows[:most], rows_prime[:most]
        features = features_of(*sides)
        made = np.concatenate([features(side) for side in sides])
        labels = np.repeat([1, 0], [len(side) for side in sides])
        if self.model != "boosting":
            yield _fit_logistic(features, made, labels)
        if self.model != "logistic":
            yield _fit_trees(features, made, labels)


def _fit_logistic(features: Features, made: Floats, labels: Whole) -> Linear:
    """Fit a regression on standardised features, in the features' own units."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    mean, spread = made.mean(axis=0), made.std(axis=0)
    # A feature that does not vary says nothing; rounding of its mean must not be blown up.
    varies = spread > 1e-9 * np.maximum(1.0, np.abs(mean))
    weights = np.zeros(features.width)
    if not varies.any():
        return Linear(features, weights, 0.0)
    scaled = (made[:, varies] - mean[varies]) / spread[varies]
    with warnings.catch_warnings():
        # Weights short of the optimum make a score as good as any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = LogisticRegression(max_iter=300).fit(scaled, labels)
    weights[varies] = np.round(fitted.coef_[0], _WEIGHT_DECIMALS) / spread[varies]
    return Linear(features, weights, -math.fsum(weights * mean))


def _fit_trees(features: Features, made: Floats, labels: Whole) -> Boosted:
    from sklearn.ensemble import HistGradientBoostingClassifier

    model = HistGradientBoostingClassifier(
        max_iter=_BOOSTING_ROUNDS,
        max_leaf_nodes=_MAX_TREE_LEAVES,
        min_samples_leaf=_MIN_LEAF_SAMPLES,
        random_state=0,
    )
    with _limit_threads():
        return Boosted(features, model.fit(made, labels))


@functools.cache
def _thread_pools() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _limit_threads() -> Any:
    """Keep trees on one thread: an audit has workers, and idle threads that spin stall it."""
    return _thread_pools().limit(limits=1, user_api="openmp")
