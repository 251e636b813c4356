"""Outputs of a noisy mechanism from several calls, and tests valid for every distribution of noise.

The tests use ranks, with ties broken at random. The ranks of independent, identically distributed
draws are a uniformly random permutation, for discrete distributions too. The p-values are computed
from the normal distribution. The statistics have lighter tails than the normal distribution, so the
p-values are not too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..adapters import TorchModule, adapt
from ..errors import invalid, mistyped, numeric
from ..mechanisms.callables import check_mechanism, make_generator, rows_of_one_call
from ..mechanisms.declarations import can_core_draw
from ..mechanisms.native import Native, facts_about_noise
from ..packages import has_all, is_tensor
from ..records import Floats
from ..report.shown import name_of
from ..streams import SAMPLE

_HASH_MULTIPLIER = np.uint64(0xBF58476D1CE4E5B9)

_NUMBERS_PER_CALL = 2**20
_MIN_USUAL_DRAWS, _MAX_USUAL_DRAWS = 1536, 2**18
MIN_INSPECTED_DRAWS = 200
_COMPARISON_DRAWS = 2**14
"""Largest number of draws in a call at another input or in the other mode (train or eval)."""

Clean = Callable[[Any], npt.ArrayLike] | npt.ArrayLike | bool | None


def scaled_column_ranks(values: Floats, rng: np.random.Generator) -> Floats:
    """Compute the ranks of the n entries of each of d columns, shape `(d, n)`.

    The ranks of a column are centred and scaled to L2 norm 1. Ties are broken at random.
    """
    rows = np.ascontiguousarray(values.T)
    order = np.argsort(rows, axis=1)
    held = np.take_along_axis(rows, order, axis=1)
    tied = (held[:, 1:] == held[:, :-1]).any(axis=1)
    if tied.any():
        # Ties broken by position would make columns dependent. The keys are the number of the value
        # and a random number. They are almost sorted, so argsort is faster than lexsort.
        chance = rng.random((int(tied.sum()), rows.shape[1]))
        ranks = order[tied]
        keys = np.take_along_axis(chance, ranks, axis=1)
        keys[:, 1:] += np.cumsum(held[tied, 1:] != held[tied, :-1], axis=1)
        order[tied] = np.take_along_axis(ranks, np.argsort(keys, axis=1), axis=1)
    n = rows.shape[1]
    centred = np.arange(n, dtype=np.float64) - (n - 1) / 2
    length = math.sqrt(n * (n * n - 1) / 12)
    np.put_along_axis(rows, order, (centred / length)[None], axis=1)
    return rows


def largest_deviate_p_value(z: Floats) -> tuple[float, int]:
    """Test the z-score with the largest absolute value; return its p-value and its index.

    The p-value is two-sided and corrected for the number of z-scores (Bonferroni).
    """
    place = int(np.argmax(np.abs(z)))
    return min(1.0, len(z) * math.erfc(abs(float(z[place])) / math.sqrt(2))), place


def spearman_test(first: Floats, second: Floats, rng: np.random.Generator) -> tuple[float, int]:
    """Test whether the rows of `first` depend on the rows of `second` with the same index.

    For each column, the test computes Spearman's correlation between the two arrays. The result is
    the p-value and the index of the column with the largest correlation.
    """
    r = np.einsum("ij,ij->i", scaled_column_ranks(first, rng), scaled_column_ranks(second, rng))
    return largest_deviate_p_value(r * math.sqrt(len(first) - 1))


def rank_sum_test(first: Floats, second: Floats, rng: np.random.Generator) -> tuple[float, int]:
    """Test whether each column has the same distribution in two sets of rows (Wilcoxon's rank sum).

    The result is the p-value and the index of the column with the largest difference.
    """
    m, n = len(first), len(second)
    ranks = scaled_column_ranks(np.concatenate([first, second]), rng)
    # Variance of a sum of m draws without replacement from m + n scores of variance 1/(m + n).
    sigma = math.sqrt(m * n / ((m + n) * (m + n - 1)))
    return largest_deviate_p_value(ranks[:, :m].sum(axis=1) / sigma)


def correlation_test(values: Floats, rng: np.random.Generator) -> tuple[float, float, float, int]:
    """Test whether the columns of a matrix are independent of each other.

    The test uses the rank correlations between all pairs of columns. It has two statistics: the
    largest correlation, and the sum of all squared correlations. The sum has a chi-squared
    distribution and detects many weak correlations (Schott, 2005, Biometrika).

    Returns:
        A tuple of four numbers: the p-value of both statistics together, the correlation with the
        largest absolute value, the root mean square of all correlations, and the number of pairs of
        columns.
    """
    from scipy.special import gammaincc

    n, d = values.shape
    ranks = scaled_column_ranks(values, rng)
    r = (ranks @ ranks.T)[np.triu_indices(d, 1)]
    square = float(r @ r)
    p_value, place = largest_deviate_p_value(r * math.sqrt(n - 1))
    many = float(gammaincc(len(r) / 2, (n - 1) * square / 2))
    rms = math.sqrt(square / len(r))
    return min(1.0, 2 * min(p_value, many)), float(r[place]), rms, len(r)


def binomial_tail(k: int, n: int, p: float) -> float:
    """Compute the probability that a binomial(n, p) variable is at least k."""
    from scipy.special import betainc

    if k <= 0 or p >= 1.0:
        return 1.0
    return float(betainc(k, n - k + 1, p)) if k <= n and p > 0 else 0.0


def sign_test_p_values(hits: npt.NDArray[Any], others: npt.NDArray[Any]) -> Floats:
    """Compute the p-values of sign tests that check whether one sign is too frequent.

    Each p-value is the probability of at least `hits` heads in `hits + others` tosses of a fair
    coin.
    """
    from scipy.special import betainc

    return np.where(hits > 0, betainc(np.maximum(hits, 1), others + 1.0, 0.5), 1.0)


def hash_rows(values: Floats, rng: np.random.Generator) -> npt.NDArray[np.uint64]:
    """Return a hash of each row. Unequal rows have equal hashes with probability 2^-60."""
    # Adding 0 turns -0 into 0. Mixing changes the low bits, which are zero for small integers.
    bits = np.ascontiguousarray(values + 0.0).view(np.uint64)
    bits = (bits ^ (bits >> np.uint64(32))) * _HASH_MULTIPLIER
    bits ^= bits >> np.uint64(29)
    weights = rng.integers(0, 2**64, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    return np.asarray((bits * weights).sum(axis=1, dtype=np.uint64))


def collision_probability_upper(rows: npt.NDArray[np.uint64]) -> float:
    """Estimate the probability that two independent rows are equal, and add a margin.

    `rows` holds a hash of each row. The result is 1.5 times the frequency of equal pairs among
    these hashes, plus a margin for the limited number of rows.
    """
    counts = np.unique(rows, return_counts=True)[1].astype(np.float64)
    pairs = len(rows) * (len(rows) - 1)
    return min(1.0, 1.5 * float(counts @ (counts - 1)) / pairs + 40.0 / pairs)


@dataclass(frozen=True)
class Other:
    """Outputs of a mechanism that adds noise, at an input other than the user's input.

    Args:
        label: name of the input in messages.
        outputs: outputs, shape `(size, dim)`.
        clean: vector to which the noise is added at this input, or None if this vector is not
            known.
    """

    label: str
    outputs: Floats
    clean: Floats | None


@dataclass(frozen=True)
class Mode:
    """Outputs of a mechanism that adds noise, after a switch between train mode and eval mode.

    Args:
        here: mode of the mechanism before the switch, "train" or "eval".
        there: mode after the switch, "eval" or "train".
        outputs: outputs after the switch, shape `(size, dim)`. None if the mechanism raised an
            error after the switch.
        why: text of this error. Empty if there was no error.
    """

    here: str
    there: str
    outputs: Floats | None
    why: str = ""


@dataclass(frozen=True)
class Sample:
    """All outputs of a noisy mechanism that the checks of the noise need.

    Args:
        first: outputs of one call, shape `(draws, dim)`.
        second: outputs of a second call at the same input, shape `(draws, dim)`.
        clean: vector to which the noise is added in these two calls, or None if this vector is not
            known.
        precision: machine epsilon of the dtype of the outputs.
        others: outputs at other inputs.
        refused: other inputs at which the mechanism raised an error, as texts with the type of the
            error. dpcore chose these inputs.
        mode: outputs after a switch between train mode and eval mode. None if the mechanism does
            not have these modes, or if they are not compared.
        rng: random generator with which the checks break ties and choose coordinates.
        around: description of `clean`, if `clean` was estimated from the outputs. Otherwise empty.
    """

    first: Floats
    second: Floats
    clean: Floats | None
    precision: float
    others: tuple[Other, ...]
    refused: tuple[str, ...]
    mode: Mode | None
    rng: np.random.Generator = field(repr=False)
    around: str = ""

    @cached_property
    def varying(self) -> npt.NDArray[np.intp]:
        """Indices of the coordinates whose values differ within the first call."""
        return np.flatnonzero((self.first != self.first[0]).any(axis=0))

    @cached_property
    def noise(self) -> Floats:
        """Noise in the outputs of the first call, shape `(draws, dim)`.

        The noise is the outputs minus the vector to which the noise is added. If this vector is not
        known, the median of each coordinate is subtracted.
        """
        centre: Floats = np.median(self.first, axis=0) if self.clean is None else self.clean
        return self.first - centre

    @cached_property
    def half_iqr(self) -> Floats:
        """Half of the interquartile range of every coordinate in the outputs of the first call.

        A value of 0 is replaced by the standard deviation of the coordinate.
        """
        low, high = np.quantile(self.first, [0.25, 0.75], axis=0)
        half: Floats = (high - low) / 2
        return np.where(half > 0, half, self.first.std(axis=0))

    @property
    def column_spacing(self) -> Floats:
        """Rounding error of each coordinate: the gap between floats near its largest value."""
        return np.asarray(self.precision * np.abs(self.first).max(axis=0))

    def noise_by_input(self) -> list[Floats]:
        """Return the noise at each input, first at the input that the user gave.

        The noise is the outputs minus the vector to which the noise is added. Inputs at which this
        vector is not known are left out.
        """
        cleaned = [o.outputs - o.clean for o in self.others if o.clean is not None]
        return [] if self.clean is None else [self.first - self.clean, *cleaned]


class Layer:
    """Wrapper that calls a noisy mechanism, checks its outputs and counts the calls.

    Args:
        mechanism: the mechanism, as the user gave it.
        seed: seed of the random generators that are passed to the mechanism.
        clean: the vector to which the noise is added, in one of the forms that `inspect` accepts.
    """

    def __init__(self, mechanism: Any, seed: int, clean: Clean) -> None:
        """Find the adapter of the mechanism."""
        adapted = mechanism if can_core_draw(mechanism) else adapt(mechanism)
        requirement = "a native mechanism, a callable (x, size, rng) or an adapted object"
        self.mechanism = check_mechanism(mechanism if adapted is None else adapted, requirement)
        self.name = repr(mechanism) if can_core_draw(mechanism) else name_of(self.mechanism)
        self.seed = seed
        self._clean = clean
        self.guessed = clean is None and not can_core_draw(mechanism)
        self._calls, self._kind = 0, np.dtype(np.float64)
        self._shape: tuple[int, ...] | None = None

    @property
    def inner(self) -> Any:
        """The object that may have a train and an eval mode: the mechanism or its torch module."""
        return self.mechanism.module if isinstance(self.mechanism, TorchModule) else self.mechanism

    @property
    def precision(self) -> float:
        """Machine epsilon of the dtype of the last outputs of the mechanism."""
        return float(np.finfo(self._kind).eps)

    def draw(self, x: Any, size: int) -> Floats:
        """Call the mechanism once at x with a new random generator, and return its outputs.

        The outputs have shape `(size, dim)`.
        """
        rng = make_generator(self.seed, SAMPLE, 0, self._calls)
        self._calls += 1
        outputs = rows_of_one_call(self.mechanism, x, size, rng)
        name = f"outputs of {self.name}"
        if outputs.dtype.kind not in "buif":
            raise mistyped(name, "real numbers", outputs.dtype)
        if self._shape not in (None, outputs.shape[1:]) or outputs[:1].size == 0:
            requirement = "at least one number" if self._shape is None else f"shape {self._shape}"
            raise invalid(name, f"rows of {requirement} in every call", outputs.shape)
        rows = outputs.reshape(size, -1).astype(np.float64)
        odd = rows.size - np.count_nonzero(np.isfinite(rows))
        if odd:
            shown = f"{odd:,} of {rows.size:,} that are NaN or infinite"
            raise invalid(name, "finite numbers", shown)
        self._kind = np.dtype(outputs.dtype if outputs.dtype.kind == "f" else np.float64)
        self._shape = outputs.shape[1:]
        return rows

    def clean(self, x: Any, is_given_input: bool) -> Floats | None:
        """Return the vector to which the mechanism adds its noise at the input x, or None.

        The vector is rounded to the dtype of the outputs. None means that the vector is not known.

        Args:
            x: the input.
            is_given_input: True if x is the input that the user gave. If the user also gave the
                vector, the vector is known only at this input.
        """
        clean = self._clean
        if callable(clean):
            clean = clean(x)
        elif clean is None:
            clean = _noiseless_native_output_or_x(self.mechanism, x)
        elif clean is False or not is_given_input:
            return None
        vector = as_finite_array("clean", clean)
        if self._shape is not None and vector.size != int(np.prod(self._shape, dtype=np.int64)):
            if self._clean is None:
                return None
            requirement = f"as many numbers as one output, of shape {self._shape}"
            raise invalid("clean", requirement, vector.shape)
        return vector.reshape(-1).astype(self._kind).astype(np.float64)


def _noiseless_native_output_or_x(mechanism: Any, x: Any) -> Any:
    """Return the vector to which a native mechanism adds its noise. For others, return x."""
    if not isinstance(mechanism, Native) or not can_core_draw(mechanism):
        return x
    from .. import _core

    point = as_finite_array("x", x).astype(np.float64)
    steps = mechanism.steps(point.size)
    if facts_about_noise(steps.noise).blind:
        return []
    held = point if steps.clip is None else _core.clip(point, steps.clip.norm, steps.clip.radius)
    return held * steps.factor


def as_finite_array(name: str, value: Any) -> npt.NDArray[Any]:
    """Convert a list, an array or a tensor of finite numbers to a numpy array."""
    detached = value.detach().cpu() if is_tensor(value) else value
    array = numeric(name, "an array of finite numbers", detached)
    if not np.isfinite(array).all():
        raise invalid(name, "an array of finite numbers", value)
    return array


def collect_outputs(
    layer: Layer, x: Any, draws: int | None, others: Sequence[Any] | None, skip: Sequence[str]
) -> Sample:
    """Call a mechanism as often as the checks of its noise require, and return all outputs.

    The mechanism is called at x, at other inputs, and after a switch between train and eval mode.
    Calls that only the checks named in `skip` need are left out.
    """
    point = x if is_tensor(x) else as_finite_array("x", x)
    if as_finite_array("x", x).size == 0:
        raise invalid("x", "a non-empty array of finite numbers", x)
    size = draws
    if size is None:
        # The number of entries of an output is known only after a call.
        dim = layer.draw(point, MIN_INSPECTED_DRAWS).shape[1]
        size = min(_MAX_USUAL_DRAWS, max(_MIN_USUAL_DRAWS, _NUMBERS_PER_CALL // dim))
    first, second = layer.draw(point, size), layer.draw(point, size)
    precision = layer.precision
    clean = layer.clean(point, True)
    aside = min(size, _COMPARISON_DRAWS)
    needed = {"scale", "one_sided", "atom", "off_centre"} - set(skip)
    there, refused = _draw_at_new_inputs(layer, point, first, aside, others) if needed else ([], [])
    mode = None if "modes" in skip else _draw_in_other_mode(layer, point, aside)
    # The calls of the layer use keys that count up from 0. This key is not used by them.
    rng = make_generator(layer.seed, SAMPLE, 1, 0)
    return Sample(first, second, clean, precision, tuple(there), tuple(refused), mode, rng)


def _draw_at_new_inputs(
    layer: Layer, x: Any, first: Floats, size: int, others: Sequence[Any] | None
) -> tuple[list[Other], list[str]]:
    """Draw outputs at the inputs `others`, or at the default inputs, which are computed from x."""
    plain = as_finite_array("x", x)
    if others is not None:
        points = [p if is_tensor(p) else as_finite_array("others", p) for p in others]
        made = {f"others[{place}]": point for place, point in enumerate(points)}
    else:
        # A shift of ten noise sizes, rounded to a whole number for integer inputs.
        far = 10 * float(np.abs(first - np.median(first, axis=0)).mean()) or 1.0
        far = math.ceil(far) if plain.dtype.kind in "bui" else far
        made = {"2 x": 2 * x, "0": 0 * x, f"x + {far:.3g}": x + far, f"x - {far:.3g}": x - far}
    outputs, refused = [], []
    for label, point in made.items():
        try:
            if others is None and np.array_equal(as_finite_array("x", point), plain):
                continue
            outputs.append(Other(label, layer.draw(point, size), layer.clean(point, False)))
        except Exception as error:
            # The mechanism may not accept the inputs that are made here.
            if others is not None:
                raise
            refused.append(f"{label} ({type(error).__name__})")
    return outputs, refused


def _draw_in_other_mode(layer: Layer, x: Any, size: int) -> Mode | None:
    inner = layer.inner
    if not has_all(inner, "train", "eval", "training") or not isinstance(inner.training, bool):
        return None
    here, there = ("train", "eval") if inner.training else ("eval", "train")
    layers = list(inner.modules()) if has_all(inner, "modules") else [inner]
    modes = [part.training for part in layers]
    shape, kind = layer._shape, layer._kind
    layer._shape = None
    try:
        getattr(inner, there)()
        outputs = layer.draw(x, size)
    except Exception as error:
        return Mode(here, there, None, f"{type(error).__name__}: {error}")
    finally:
        # Parts of a layer may have different modes, for example if they are frozen.
        for part, mode in zip(layers, modes, strict=True):
            part.training = mode
        layer._shape, layer._kind = shape, kind
    return Mode(here, there, outputs)
