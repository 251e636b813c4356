"""Audits that find faults of DP-SGD, by one training step, one training, or many trainings.

A recipe trains a logistic regression by DP-SGD. Each recipe has at most one fault. dpcore audits
each recipe in three ways:

- "one step" compares the noisy gradient sum of one step with and without one record.
- "one run" trains once, with random records (canaries) that are each included or left out by a coin
  flip. The audit guesses from the trained model which canaries were included.
- "many runs" trains many times with one record, and many times without this record.

One of the faults is that the batches are fixed, although the accountant assumes Poisson sampling. A
single step cannot show this fault. For this fault, "many runs" compares the gradient sums of all
batches of an epoch instead of trained models.

A record is a row that contains the features and, in the last column, the label (0 or 1). The weight
vector contains one weight for each feature and, as the last entry, the bias.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, product
from typing import Any, Final

import numpy as np

from ..auditing.run import audit
from ..claims import GDP
from ..errors import AssumptionWarning
from ..mechanisms.callables import repeat
from ..packages import require_module
from ..records import Floats
from ..report.figures import BLUE, INK, RED, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..training import audit_run, audit_step
from .base import SeededSettings
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, empty_figure, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "dpsgd-audit"

RIGHT: Final = "repaired"
POISSON: Final = "Poisson batches"
FIXED: Final = "fixed batches"
REPAIRED: Final = (RIGHT, POISSON)
"""Recipes without a fault. The recipe `POISSON` repairs the fault of the recipe `FIXED`, and
`RIGHT` repairs all other faults."""

FAULTS: Final = {
    RIGHT: "each gradient clipped, then noise on the sum",
    "no noise": "the noise is forgotten",
    "half the noise": "sigma is half of what is claimed",
    "noise before clipping": "noise on each gradient, which is clipped afterwards",
    "sum clipped": "the sum of the gradients is clipped in place of each gradient",
    "one draw": "one number is added to all weights",
    "tensor without noise": "the bias gets no noise",
    "one seed": "every step draws its noise from the same seed",
    "record twice": "the first record is in the batch twice",
    "batch norm": "features are divided by their spread in the batch",
    POISSON: "each record is in each batch by its own coin, as the accountant assumes",
    FIXED: "each record is in one batch for certain; the accountant assumed Poisson sampling",
}
"""Names of all recipes, with descriptions. Two recipes are correct, and each other recipe has one
fault."""

FAULTY_NOISE_SEED: Final = 5

WAYS: Final = ("one step", "one run", "many runs")

STEP_SIGMA: Final = 1.0
RUN_SIGMA: Final = 9.0
STEPS: Final = 20
MANY_SIGMA: Final = 4.5
MANY_STEPS: Final = 5
"""Number of steps of each training in "many runs". The claimed mu (of Gaussian DP) is the same as
in "one run", sqrt(20)/9 = sqrt(5)/4.5."""

CANARIES: Final = 600
GUESSES: Final = 120
BATCHES: Final = 100

POISSON_MU: Final = math.sqrt(math.expm1(1.0 / STEP_SIGMA**2) / BATCHES)
"""Claimed mu (of Gaussian DP) for one epoch of Poisson sampling, about 0.13 (Bu et al., 2020).

The noise multiplier is 1 and the sampling rate is 1/100. The value is exact only in the limit of
many batches. For 100 batches, the exact delta is larger than the delta that follows from this mu:
by up to 8 % at epsilon 0.1, and by up to 50 % at epsilon 0.2. This difference is far smaller than
the effect of fixed batches, and the audits cannot detect it."""

_BATCH_RECORDS: Final = 32
"""Number of records in the audits "one step" and "many runs". The audit "one run" uses more
records."""

_QUICK_TRIALS: Final = 1000
_QUICK_MANY_FAULTS: Final = (RIGHT, "no noise", "half the noise", POISSON, FIXED)
"""Recipes to which the audit "many runs" is applied even if `quick` is True."""


@dataclass(frozen=True)
class Recipe:
    """A DP-SGD training procedure for logistic regression, with at most one fault.

    Args:
        sigma: noise multiplier: the standard deviation of the noise divided by `clip`.
        fault: name of the fault, such as "no noise" (a key of `FAULTS`). "repaired" and "Poisson
            batches" mean no fault.
        clip: largest Euclidean norm of a clipped gradient.
        steps: number of training steps.
        rate: learning rate: the factor of the noisy gradient sum in each step.
    """

    sigma: float
    fault: str = RIGHT
    clip: float = 1.0
    steps: int = 20
    rate: float = 1e-3

    def draw_noisy_gradient_sum(self, records: Any, rng: np.random.Generator, at: Floats) -> Floats:
        """Draw the noisy sum of a batch's clipped gradients, with the fault of the recipe.

        Args:
            records: batch of records, one per row, shape `(n, features + 1)`. The last column is
                the label (0 or 1).
            rng: numpy Generator of the noise.
            at: weights at which the gradients are computed, shape `(features + 1,)`.

        Returns:
            The noisy sum, shape `(features + 1,)`.
        """
        rows, fault = np.asarray(records, np.float64), self.fault
        if fault == "record twice":
            rows = np.concatenate([rows, rows[:1]])
        spread = rows[:, :-1].std(axis=0) + 1e-3 if fault == "batch norm" else 1.0
        gradients = logistic_gradients(rows, at, spread)
        scale = self.sigma * self.clip
        if fault == "noise before clipping":
            gradients = gradients + rng.normal(scale=scale, size=gradients.shape)
        if fault == "sum clipped":
            gradients = gradients.sum(axis=0, keepdims=True)
        total = clip_rows(gradients, self.clip).sum(axis=0)
        if fault in ("no noise", "noise before clipping"):
            return np.asarray(total)
        if fault == "one seed":
            rng = np.random.default_rng(FAULTY_NOISE_SEED)
        noise = rng.normal(scale=scale, size=1 if fault == "one draw" else total.size)
        if fault == "tensor without noise":
            noise[-1] = 0.0
        return np.asarray(total + noise * (0.5 if fault == "half the noise" else 1.0))

    def train(self, records: Any, rng: np.random.Generator) -> Floats:
        """Train the weights of a logistic regression by DP-SGD. Every step uses all records.

        Args:
            records: training records, one per row, shape `(n, features + 1)`. The last column is
                the label (0 or 1).
            rng: numpy Generator of the noise.

        Returns:
            The trained weights, shape `(features + 1,)`. The last weight is the bias.
        """
        weights = np.zeros(np.shape(records)[1])
        for _ in range(self.steps):
            weights = weights - self.rate * self.draw_noisy_gradient_sum(records, rng, weights)
        return weights

    def release_sums(self, records: Any, rng: np.random.Generator, batches: int) -> Floats:
        """Draw the noisy gradient sums of all batches of one epoch, at weights 0.

        Each record is in each batch with probability 1/`batches`, independently (Poisson sampling).
        With the fault "fixed batches", record i is only in batch i modulo `batches`.

        Args:
            records: records, one per row, shape `(n, features + 1)`. The last column is the label
                (0 or 1).
            rng: numpy Generator of the batches and the noise.
            batches: number of batches.

        Returns:
            The noisy sums, shape `(batches, features + 1)`.
        """
        rows = np.asarray(records, np.float64)
        if self.fault == FIXED:
            used = np.arange(len(rows)) % batches == np.arange(batches)[:, None]
        else:
            used = rng.random((batches, len(rows))) < 1.0 / batches
        sums = used @ clip_rows(logistic_gradients(rows, np.zeros(rows.shape[1])), self.clip)
        return np.asarray(sums + rng.normal(scale=self.sigma * self.clip, size=sums.shape))


def logistic_gradients(rows: Floats, model: Floats, spread: Any = 1.0) -> Floats:
    """Return the gradient of the logistic loss with respect to the weights, for each record.

    Args:
        rows: records, one per row, shape `(n, features + 1)`. The last column is the label (0 or
            1).
        model: weights at which the gradients are computed, shape `(features + 1,)`. The last weight
            is the bias.
        spread: number by which the features are divided, or an array with one such number per
            feature.

    Returns:
        Gradients, shape `(n, features + 1)`.
    """
    x = np.column_stack([rows[:, :-1] / spread, np.ones(len(rows))])
    return np.asarray((1.0 / (1.0 + np.exp(-x @ model)) - rows[:, -1])[:, None] * x)


def clip_rows(gradients: Floats, clip: float) -> Floats:
    """Scale down each gradient with a Euclidean norm above `clip`, and return all gradients.

    Args:
        gradients: one gradient per row, shape `(n, P)`.
        clip: largest Euclidean norm of a clipped gradient.
    """
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-12)))


def compute_losses(weights: Floats, records: Any) -> Floats:
    """Return the logistic loss of each record under a trained logistic regression.

    Args:
        weights: trained weights, shape `(features + 1,)`. The last weight is the bias.
        records: records, one per row, shape `(n, features + 1)`. The last column is the label (0 or
            1).

    Returns:
        Losses in nats, shape `(n,)`.
    """
    rows = np.asarray(records, np.float64)
    margin = (rows[:, :-1] @ weights[:-1] + weights[-1]) * (2.0 * rows[:, -1] - 1.0)
    return np.asarray(np.logaddexp(0.0, -margin))


def make_opposing_record(records: Any) -> Floats:
    """Return a new record whose gradient is opposed to the sum of the gradients of given records.

    All gradients are at weights 0, for logistic regression. For the weights of the features, the
    gradient of the new record is -2 times the sum of the gradients of the given records.

    Args:
        records: given records, one per row, shape `(n, features + 1)`. The last column is the label
            (0 or 1).

    Returns:
        The new record, shape `(features + 1,)`.
    """
    rows = np.asarray(records, np.float64)
    total = ((0.5 - rows[:, -1])[:, None] * rows[:, :-1]).sum(axis=0)
    # For label 1 the gradient is -x/2, so it equals -2 times the sum.
    return np.append(4.0 * total, 1.0)


@dataclass(frozen=True, slots=True, repr=False)
class Config(SeededSettings):
    """Options of an experiment that audits DP-SGD trainings with and without faults.

    Args:
        trials: number of outputs of the audit "one step" on the data with one special record. The
            number of outputs on the data without this record is the same. The audit "many runs"
            uses half this number of trainings, but at least 100. If `quick` is True, a number above
            1,000 is replaced by 1,000.
        seed: int in [0, 2**63). The experiment derives a separate seed for every audit from this
            seed.
        full: True to multiply `trials` by five.
        quick: True for a short run with few trials. The run uses only generated data, and the audit
            "many runs" checks only five training procedures.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(quick=True).size, Config().size, Config(full=True).size
        (1000, 6000, 30000)
    """

    trials: int = 6000
    full: bool = False
    quick: bool = False

    @property
    def size(self) -> int:
        """Number of outputs of the audit "one step" on the data that contain a special record.

        The number on the data without this record is the same.
        """
        if self.quick:
            return min(self.trials, _QUICK_TRIALS)
        return self.trials * (5 if self.full else 1)

    @property
    def repeated_runs(self) -> int:
        """Number of trainings of the audit "many runs" on the data that contain a special record.

        The number on the data without this record is the same.
        """
        return max(100, self.size // 2)

    @property
    def corpora(self) -> tuple[str, ...]:
        """Names of the data sets: "generated", and also "digits" unless `quick` is True."""
        return ("generated",) if self.quick else ("generated", "digits")


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Result of one audit of a DP-SGD training procedure on one data set.

    Args:
        data: name of the data set, "generated" or "digits".
        fault: name of the fault in the training procedure, a key of `FAULTS`.
        way: type of the audit: "one step" (one training step), "one run" (one training) or "many
            runs" (many trainings).
        certified: certified lower bound on mu (of Gaussian DP) at 95 % confidence.
        claim: claimed mu (of Gaussian DP).
        refuted: True if the claim was refuted.
        seconds: duration of the audit in seconds. A comparison with == ignores this field.
    """

    data: str
    fault: str
    way: str
    certified: float
    claim: float
    refuted: bool
    seconds: float = field(default=0.0, compare=False)

    @property
    def is_unexpected(self) -> bool:
        """True if this audit is wrong: it refuted a correct procedure, or missed a fault.

        The audit "many runs" must find the fault "fixed batches". The audit "one step" must find
        every other fault. An audit misses a fault if it must find the fault and does not refute the
        claim.
        """
        if self.fault in REPAIRED:
            return self.refuted
        return self.way == ("many runs" if self.fault == FIXED else "one step") and not self.refuted


@time_run()
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Audit DP-SGD training procedures with different faults, by three types of audit.

    The types are "one step" (of one training step), "one run" (of one training) and "many runs" (of
    many trainings).

    Args:
        config: options of the experiment.
        threads: has no effect: the experiment runs in one thread.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one entry for each data set, training procedure and type of audit.

    Raises:
        ModuleNotFoundError: if scikit-learn is missing. scikit-learn is not required if `quick` is
            True.
        KeyboardInterrupt: if the user presses Ctrl-C before the first audit is complete.

    Source:
        Nasr et al. (2023); Steinke, Nasr and Jagielski (2023); Jagielski, Ullman and Oprea (2020).

    Example:
        >>> result = run(Config(quick=True, trials=300), progress=False)
        >>> [cell.refuted for cell in result.cells if cell.fault == "no noise"]
        [True, True, True]
    """
    pairs = product(config.corpora, FAULTS)
    jobs = [(*pair, way) for pair in pairs for way in _choose_audit_ways(config, *pair)]
    rows = {data: _load_records_label_last(data, config.seed) for data in config.corpora}
    cells, ended = run_jobs(NAME, jobs, partial(_audit_cell, config, rows), progress)
    return Result(config, cells, partial=ended)


def _choose_audit_ways(config: Config, data: str, fault: str) -> tuple[str, ...]:
    """Return the types of audit that are applied to the recipe with the fault `fault`.

    A fault of the sampling of batches cannot appear in a single step.
    """
    if config.quick and fault not in _QUICK_MANY_FAULTS:
        return WAYS[:2]
    if fault in (POISSON, FIXED):
        # One generated record replaces all data.
        return WAYS[2:] if data == "generated" else ()
    return WAYS


def _load_records_label_last(data: str, seed: int) -> Floats:
    """Return the records of a data set, with the labels in the last column.

    The norms of the feature vectors are about 20 or more. If noise is added to such large gradients
    before clipping, the clipping removes almost all noise.
    """
    if data == "digits":
        digits = require_module("sklearn.datasets", NAME).load_digits()
        return np.column_stack([digits.data, digits.target % 2])
    features = 5.0 * np.random.default_rng(cell_seed(seed, data)).normal(size=(500, 20))
    return np.column_stack([features, features[:, 0] > 0.0])


def _audit_cell(config: Config, rows: dict[str, Floats], data: str, fault: str, way: str) -> Cell:
    begun, seed = time.perf_counter(), cell_seed(config.seed, f"{data} {fault} {way}")
    audited = _AUDIT_OF_WAY[way](config, rows[data], fault, seed)
    bound = audited.parameter_lower, audited.claim.mu, audited.refuted is True
    return Cell(data, fault, way, *bound, time.perf_counter() - begun)


def _audit_step(config: Config, rows: Any, fault: str, seed: int) -> Any:
    recipe = Recipe(STEP_SIGMA, fault)
    batch = rows[:_BATCH_RECORDS]
    batch = np.concatenate([make_opposing_record(batch)[None], batch])

    def step(records: Any, rng: np.random.Generator) -> Any:
        total = recipe.draw_noisy_gradient_sum(records, rng, np.zeros(rows.shape[1]))
        return np.split(total, [-1])  # two tensors: the weights of the features, and the bias

    options: Any = {"clip": 1.0, "left_out": 0, "trials": config.size, "rng": seed}
    return audit_step(step, batch, sigma=STEP_SIGMA, **options)


def _audit_one_run_with_canaries(config: Config, rows: Any, fault: str, seed: int) -> Any:
    """Audit one training with canaries. Each canary has a separate feature."""
    recipe = Recipe(RUN_SIGMA, fault, steps=STEPS)
    rng = np.random.default_rng(seed)
    width = rows.shape[1] - 1
    records = np.insert(rows[:200], [width] * CANARIES, 0.0, axis=1)
    canaries = np.zeros((CANARIES, records.shape[1]))
    canaries[:, width:-1] = 3.0 * np.eye(CANARIES)
    canaries[:, -1] = 1.0

    def fit(records: Any) -> Callable[[Any], Any]:
        return partial(compute_losses, recipe.train(records, rng))

    with warnings.catch_warnings(action="ignore", category=AssumptionWarning):
        claim = GDP(math.sqrt(STEPS) / RUN_SIGMA)
        return audit_run(fit, records, canaries=canaries, guesses=GUESSES, claim=claim, rng=seed)


def _audit_repeated_runs(config: Config, rows: Any, fault: str, seed: int) -> Any:
    """Audit many trainings on data with one record, and on the data without this record.

    For `POISSON` and `FIXED`, the audit uses the gradient sums of an epoch instead of trained
    models.
    """
    batch = rows[:_BATCH_RECORDS]
    canary = make_opposing_record(batch)[None]
    pair = (np.concatenate([canary, batch]), batch)
    if fault in (POISSON, FIXED):
        recipe, mu = Recipe(STEP_SIGMA, fault), POISSON_MU
        # One feature and no other record: with fixed weights, other records only add constants.
        canary = np.array([[4.0, 1.0]])
        pair = (canary, canary[:0])
        train = repeat(partial(recipe.release_sums, batches=BATCHES), seeded="rng")
    else:
        recipe, mu = Recipe(MANY_SIGMA, fault, steps=MANY_STEPS), math.sqrt(MANY_STEPS) / MANY_SIGMA
        train = repeat(recipe.train, seeded="rng")
    size: Any = {"trials": config.repeated_runs, "pilot": max(400, config.repeated_runs // 4)}
    return audit(train, pair, claim=GDP(mu), rng=seed, progress=False, source=False, **size)


_AUDIT_OF_WAY: Final = dict(
    zip(WAYS, (_audit_step, _audit_one_run_with_canaries, _audit_repeated_runs), strict=True)
)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of audits of DP-SGD training procedures with different faults.

    Args:
        config: options of the run.
        cells: one entry for each data set, training procedure and type of audit.
    """

    cells: tuple[Cell, ...]

    def of(self, data: str, fault: str, way: str) -> Cell | None:
        """Return the result of one audit, or None if this result has no such audit.

        `data` is the name of the data set, `fault` is the fault in the training procedure, and
        `way` is the type of audit.
        """
        key = data, fault, way
        return next((cell for cell in self.cells if (cell.data, cell.fault, cell.way) == key), None)

    @property
    def unexpected(self) -> tuple[Cell, ...]:
        """Audits that refuted a correct procedure, or missed a fault that they must find."""
        return tuple(cell for cell in self.cells if cell.is_unexpected)

    def table(self) -> str:
        """Return the results as plain text: one row for each data set and training procedure."""
        config = self.config
        rows = [["data", "fault", *(head for way in WAYS for head in (way, "claim", "s"))]]
        for data, fault in product(config.corpora, FAULTS):
            cells = [self.of(data, fault, way) for way in WAYS]
            if any(cells):
                rows.append([data, fault, *chain(*map(_format_bound_claim_seconds, cells))])
        odd = ", ".join(f"{cell.fault} ({cell.data}, {cell.way})" for cell in self.unexpected)
        return self.join_parts(
            f"Faults of DP-SGD and three audits: {config.size:,} trials per side, seed "
            f"{config.seed}\none step: sigma {STEP_SIGMA:g}; one run: {STEPS} steps, sigma "
            f"{RUN_SIGMA:g}; many runs: {config.repeated_runs:,} trainings per side, {MANY_STEPS} "
            f"steps, sigma {MANY_SIGMA:g}",
            align_rows(rows, left=(0, 1)),
            _AUDITS_GLOSSARY.format(*map(self._list_refuted_faults, WAYS[1:])),
            f"NOT AS EXPECTED: {odd}" if odd else _EXPECTED,
        )

    def _list_refuted_faults(self, way: str) -> str:
        """List the recipes whose claim one type of audit refuted."""
        refuted = dict.fromkeys(c.fault for c in self.cells if c.way == way and c.refuted)
        return ", ".join(refuted) or "nothing"

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        return self.make_record(faults=FAULTS, cells=self.cells)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the certified bounds as bars and the claimed values as lines.

        The picture has one panel for each type of audit.
        """
        picture = empty_figure(3.6, ax)
        panels = picture.subplots(1, len(WAYS), sharey=True)
        for axes, way in zip(panels, WAYS, strict=True):
            _draw_bounds_and_claims(axes, self, way)
        panels[0].set_yticks(range(len(FAULTS)), list(FAULTS), fontsize=SMALL)
        panels[0].invert_yaxis()
        bars = " (upper bars: generated data, lower bars: digits)"
        picture.supxlabel(f"mu{bars if len(self.config.corpora) > 1 else ''}", fontsize=TEXT)
        add_legend(picture, panels[0], side="upper")
        return restyle_figure(picture)


_AUDITS_GLOSSARY: Final = """\
certified mu at 95 %; ! = refutes the claim; - = does not apply, or not run (--quick)
The same largest number in many rows of a column is the most that its draws or guesses certify.
One run refutes {}. Its canaries see missing noise and one draw; that it passes others is expected.
Many runs refute {}. What one record adds to the weights can hide a fault; small ones need more.
Poisson batches, fixed batches: the sums of an epoch of 100 batches, sigma 1, are released."""


_EXPECTED: Final = """\
As expected, one step refutes every fault of a step, the sums of an epoch refute fixed batches,
and no repaired recipe is refuted."""


def _format_bound_claim_seconds(cell: Cell | None) -> list[str]:
    if cell is None:
        return ["-", "-", "-"]
    mark = "!" if cell.refuted else " "
    return [f"{cell.certified:.2f}{mark}", f"{cell.claim:.2f}", f"{cell.seconds:.1f}"]


def _draw_bounds_and_claims(axes: Axes, result: Result, way: str) -> None:
    names, corpora = list(FAULTS), result.config.corpora
    height = 0.8 / len(corpora)
    for label, colour in _VERDICT_COLOURS.items():
        axes.barh(0.0, 0.0, color=colour, label=label)
    axes.plot([], [], color=INK, linewidth=1.0, label="claimed")
    for cell in result.cells:
        if cell.way == way:
            place = names.index(cell.fault) - 0.4 + height * (corpora.index(cell.data) + 0.5)
            colour = list(_VERDICT_COLOURS.values())[cell.refuted]
            # The edge makes a bound of 0 visible.
            axes.barh(place, cell.certified, 0.8 * height, color=colour, edgecolor=colour)
            ends = np.array([-0.5, 0.5]) * height + place
            axes.plot([cell.claim] * 2, ends, color=INK, linewidth=1.0)
    shown = {cell.fault for cell in result.cells if cell.way == way}
    for fault in [name for name in names if name not in shown]:
        text = "does not apply" if fault in (POISSON, FIXED) else "not run"
        axes.text(0.05, names.index(fault), text, fontsize=SMALL, va="center")
    axes.set_title(way, fontsize=TEXT)
    style_axes(axes)


_VERDICT_COLOURS: Final = {"certified, claim not refuted": BLUE, "certified, claim refuted": RED}
