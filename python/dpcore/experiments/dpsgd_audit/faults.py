"""DP-SGD of a logistic regression, right and with one fault at a time.

A record is a row: its features, and in the last column its label, 0 or 1. Weights are two tensors:
one weight for each feature, and the bias.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]

RIGHT: Final = "repaired"
POISSON: Final = "Poisson batches"
FIXED: Final = "fixed batches"
REPAIRED: Final = (RIGHT, POISSON)
"""Recipes without a fault: `POISSON` is the repaired twin of `FIXED`, `RIGHT` of all others."""

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
"""Names of the recipes, and what each of them does: the repaired ones, and one fault a recipe."""

FAULTY_NOISE_SEED: Final = 5


@dataclass(frozen=True)
class Recipe:
    """A training by noisy sums of clipped gradients.

    Args:
        sigma: noise multiplier.
        fault: a key of `FAULTS`.
        clip: norm to which gradients are clipped.
        steps: number of steps.
        rate: what the noisy sum is multiplied by.
    """

    sigma: float
    fault: str = RIGHT
    clip: float = 1.0
    steps: int = 20
    rate: float = 1e-3

    def sum_gradients(self, records: Any, rng: np.random.Generator, at: Vector) -> Vector:
        """Draw the noisy sum of clipped gradients of a batch.

        Args:
            records: rows, shape `(n, features + 1)`.
            rng: the noise.
            at: the weights, shape `(features + 1,)`.

        Returns:
            The sum, shape `(features + 1,)`.
        """
        rows, fault = np.asarray(records, np.float64), self.fault
        if fault == "record twice":
            rows = np.concatenate([rows, rows[:1]])
        spread = rows[:, :-1].std(axis=0) + 1e-3 if fault == "batch norm" else 1.0
        gradients = compute_gradients(rows, at, spread)
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

    def train(self, records: Any, rng: np.random.Generator) -> Vector:
        """Train on all records at every step.

        Args:
            records: rows, shape `(n, features + 1)`.
            rng: the noise.

        Returns:
            The weights, shape `(features + 1,)`.
        """
        weights = np.zeros(np.shape(records)[1])
        for _ in range(self.steps):
            weights = weights - self.rate * self.sum_gradients(records, rng, weights)
        return weights

    def release_sums(self, records: Any, rng: np.random.Generator, batches: int) -> Vector:
        """Draw the sums of one epoch at weights 0, each record in batches by coins of its own.

        A coin of chance 1/`batches` decides for each record and batch, as an accountant for
        Poisson sampling assumes. With fixed batches record i is in batch i modulo `batches`.

        Args:
            records: rows, shape `(n, features + 1)`.
            rng: batches and noise.
            batches: number of batches.

        Returns:
            The sums, shape `(batches, features + 1)`.
        """
        rows = np.asarray(records, np.float64)
        if self.fault == FIXED:
            used = np.arange(len(rows)) % batches == np.arange(batches)[:, None]
        else:
            used = rng.random((batches, len(rows))) < 1.0 / batches
        sums = used @ clip_rows(compute_gradients(rows, np.zeros(rows.shape[1])), self.clip)
        return np.asarray(sums + rng.normal(scale=self.sigma * self.clip, size=sums.shape))


def compute_gradients(rows: Vector, at: Vector, spread: Any = 1.0) -> Vector:
    """Compute the gradient of each record's logistic loss.

    Args:
        rows: records, shape `(n, features + 1)`.
        at: the weights, shape `(features + 1,)`.
        spread: what the features are divided by.

    Returns:
        Gradients, shape `(n, features + 1)`.
    """
    x = np.column_stack([rows[:, :-1] / spread, np.ones(len(rows))])
    return np.asarray((1.0 / (1.0 + np.exp(-x @ at)) - rows[:, -1])[:, None] * x)


def clip_rows(gradients: Vector, clip: float) -> Vector:
    """Clip each gradient to a norm.

    Args:
        gradients: shape `(n, P)`.
        clip: largest Euclidean norm.
    """
    norms = np.linalg.norm(gradients, axis=1, keepdims=True)
    return np.asarray(gradients * np.minimum(1.0, clip / np.maximum(norms, 1e-12)))


def compute_losses(weights: Vector, records: Any) -> Vector:
    """Compute the logistic loss of each record.

    Args:
        weights: shape `(features + 1,)`.
        records: rows, shape `(n, features + 1)`.

    Returns:
        Losses in nats, shape `(n,)`.
    """
    rows = np.asarray(records, np.float64)
    margin = (rows[:, :-1] @ weights[:-1] + weights[-1]) * (2.0 * rows[:, -1] - 1.0)
    return np.asarray(np.logaddexp(0.0, -margin))


def make_opposed_record(records: Any) -> Vector:
    """Make a record whose gradient at weights 0 is opposed to the sum of all others, and longer.

    Args:
        records: rows, shape `(n, features + 1)`.

    Returns:
        A row, shape `(features + 1,)`.
    """
    rows = np.asarray(records, np.float64)
    total = ((0.5 - rows[:, -1])[:, None] * rows[:, :-1]).sum(axis=0)
    # Of label 1 the gradient is -x/2, so that this one is -2 times the sum.
    return np.append(4.0 * total, 1.0)
