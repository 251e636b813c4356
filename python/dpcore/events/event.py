"""Events: functions that map the outputs of a mechanism to one bool per output.

An event compares a score (a number for each output) with a threshold, or never happens, or is any
other function. The outputs may be torch tensors. Then the event is decided on the device of the
tensor, because a copy of the outputs from a graphics card would take longer than the mechanism.
Only one bool for each output is copied. This module does not import torch, because a tensor can
exist only if the user's code has imported torch.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import choice, invalid, mistyped, real
from ..packages import get_loaded_module
from ..records import Pair, Record, get_attribute
from ..report.shown import qualname_of
from ..suggestions import explain_argument_errors

_FLOAT_DTYPES: Final = ("float32", "float64", "bfloat16", "float16")
BITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Number of significant bits of each number format, including the leading bit."""
_INTEGER_DTYPES: Final = ("int64", "int32", "int16", "int8", "uint8", "bool")
_WITHOUT_FLOAT64: Final = ("mps", "meta")
"""Devices from which outputs are copied, because they have no float64 or hold no numbers."""
_MAX_CACHED_VALUES: Final = 16
_MAX_LETTERS: Final = 0x110000
_UNIT_ROUNDOFF: Final = 2.0**-53
"""Half of the distance between 1.0 and the next larger float64."""

LARGEST: Final = float(np.finfo(np.float64).max)
"""The largest double. A score at or above this number counts as infinite."""

_device_cache: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()

Score = Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]
"""Function outputs -> one real number per output; higher if the output looks more like x."""


class Batch:
    """The outputs of one call of a mechanism, as a torch tensor on any device, such as a GPU.

    Args:
        tensor: real numbers, shape `(size, ...)`. `Batch.supports` must accept the tensor.
    """

    __slots__ = ("_flat", "_norm", "_numpy", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._flat: Any = None
        self._norm: Any = None
        self._numpy: npt.NDArray[Any] | None = None

    @staticmethod
    def supports(tensor: Any) -> bool:
        """Return True if events can be evaluated on the device of the tensor, without a copy."""
        torch = get_loaded_module("torch")
        return (
            tensor.layout == torch.strided
            and tensor.device.type not in _WITHOUT_FLOAT64
            and _format_dtype(tensor) in _FLOAT_DTYPES + _INTEGER_DTYPES
        )

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __getitem__(self, rows: Any) -> Batch:
        """Return some of the outputs, chosen by a slice or a tensor of bools."""
        return Batch(self.tensor[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the outputs, `(size, ...)`."""
        return tuple(self.tensor.shape)

    @property
    def flat(self) -> Any:
        """The outputs as a tensor of shape `(size, entries)`. Integers and bools become float64."""
        if self._flat is None:
            flat = self._to_rows()
            self._flat = flat if _format_dtype(flat) in _FLOAT_DTYPES else flat.double()
        return self._flat

    def _to_rows(self) -> Any:
        tensor = self.tensor
        return tensor if tensor.ndim == 2 else tensor.reshape(len(self), math.prod(self.shape[1:]))

    @property
    def can_share_memory_with_numpy(self) -> bool:
        """True if numpy can use the memory of the tensor without a copy."""
        return bool(self.tensor.device.type == "cpu") and _format_dtype(self.tensor) != "bfloat16"

    def numpy(self) -> npt.NDArray[Any]:
        """Return all outputs as a numpy array. It shares the memory of the tensor if possible."""
        if self._numpy is None:
            self._numpy = numpy_of(self.tensor)
        return self._numpy

    def columns(self, places: list[int]) -> npt.NDArray[Any]:
        """Return an array of some entries of each output; `places` holds their indices."""
        return numpy_of(self._to_rows()[:, places])

    def count_nan_entries(self) -> int:
        """Return how many entries of all outputs are NaN."""
        # One NaN makes the sum NaN. A test of every single entry takes ten times as long.
        flat = self.flat
        norm = flat if self._norm is None else self._norm
        return int(flat.isnan().sum()) if math.isnan(float(norm.sum())) else 0

    def row_sums(self) -> Any:
        """Return the sum of the entries of each output, in float64."""
        return self.flat.sum(1, dtype=get_loaded_module("torch").float64)

    def weighted_row_sums(self, weights: Any) -> Any:
        """Return the weighted sum of the entries of each output. `weights` is a float64 tensor."""
        return self.flat.double() @ weights

    def rounded_up_row_norms(self) -> Any:
        """Return an upper bound of the L2 norm of each output, or NaN if an entry is NaN."""
        flat, torch = self.flat, get_loaded_module("torch")
        double = flat.dtype == torch.float64
        norms = flat.norm(dim=1, dtype=torch.float64 if double else torch.float32).double()
        # Squares of numbers below this bound may underflow.
        self._norm = norms + math.sqrt(flat.shape[1]) * (2.0**-500 if double else 2.0**-60)
        return self._norm

    def ones_where_at_least_column_edge(self, edges: Any) -> Any:
        """Return 1.0 for each entry that is at least the edge of its column, and 0.0 otherwise."""
        flat, torch = self.flat, get_loaded_module("torch")
        # Numbers instead of bools: torch compares and adds them four times as fast.
        kind = torch.float32 if flat.dtype.itemsize < 4 else flat.dtype
        edges_above = flat.new_empty(
            flat.shape, dtype=kind if flat.shape[1] < 2**24 else torch.float64
        )
        return torch.ge(flat, edges, out=edges_above)


def rounding_slack(terms: int, size: Any) -> Any:
    """Compute how much two float64 sums of the same terms in different orders can differ.

    Args:
        terms: number of terms of a sum.
        size: sum of the absolute values of the terms, or an upper bound of this sum; a float or a
            tensor.

    Source:
        Higham (2002), Accuracy and Stability of Numerical Algorithms, section 4.2: the error of
        each sum is at most (n - 1) u / (1 - n u) times the sum of magnitudes.
    """
    return 4.0 * (terms + 4) * _UNIT_ROUNDOFF * size


class Rough(NamedTuple):
    """Scores that a device (such as a GPU) computed, and a bound of their difference from numpy's.

    A score is one number for each output. A device may add terms in a different order than numpy.

    Args:
        scores: score of each output, a tensor of float64.
        slack: largest possible difference from the score that numpy computes: one float for all
            outputs, or one for each output. None means that the scores are equal.
    """

    scores: Any
    slack: Any = None


class DeviceScores:
    """Scores that a device (such as a GPU) computed; numpy recomputes those near a threshold.

    Args:
        score: function from outputs to the exact scores, which numpy computes.
        outputs: the outputs that have these scores.
        rough: the scores as the device computed them, with a bound of their errors.
    """

    __slots__ = ("outputs", "score", "slack", "values")

    def __init__(self, score: Callable[[Any], Any], outputs: Batch, rough: Rough) -> None:
        self.score, self.outputs = score, outputs
        self.values, self.slack = (_cpu_tensor_as_numpy_view(part) for part in rough)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, rows: slice) -> DeviceScores:
        slack = self.slack[rows] if np.ndim(self.slack) else self.slack
        return DeviceScores(self.score, self.outputs[rows], Rough(self.values[rows], slack))

    def recompute_near_scores(self, thresholds: npt.NDArray[np.float64]) -> Any:
        """Return the scores; numpy first computes those again that are close to a threshold.

        Numpy and the device may round differently. If a score is so close to a threshold that
        rounding could matter, numpy computes this score again. Therefore each returned score is at
        or above the same thresholds as the score that numpy computes.

        Args:
            thresholds: the thresholds in increasing order. Do not change this array later.
        """
        if self.slack is None or self._is_far_from_only_threshold(thresholds):
            return self.values
        with np.errstate(invalid="ignore", over="ignore"):
            ends = self.values - self.slack, self.values + self.slack
        low, high = (self._count_thresholds_passed(end, thresholds) for end in ends)
        near = low != high
        if np.ndim(self.slack):
            # Infinite entries may cancel in one order of the sum but not in another.
            near |= _get_library(self.slack).isinf(self.slack)
        if not bool(near.any()):
            return self.values
        which = near if isinstance(near, np.ndarray) else near.numpy(force=True)
        rows = self.outputs.tensor.new_tensor(which.tolist(), dtype=get_loaded_module("torch").bool)
        exact = np.asarray(self.score(self.outputs[rows].numpy()), np.float64)
        values = self.values + 0.0
        values[near] = exact if isinstance(near, np.ndarray) else values.new_tensor(exact.tolist())
        return values

    def _is_far_from_only_threshold(self, thresholds: npt.NDArray[np.float64]) -> bool:
        """Return True if there is only one threshold, and no score is near this threshold.

        If a score is NaN or infinite, the result is False.
        """
        if len(thresholds) != 1 or not isinstance(self.values, np.ndarray):
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            return bool((np.abs(self.values - thresholds[0]) > self.slack).all())

    def count_at_or_above(self, thresholds: npt.NDArray[np.float64]) -> tuple[int, ...]:
        """Return how many scores are at or above each threshold. NaN never counts."""
        values = self.recompute_near_scores(thresholds)
        comparable = values[values == values]
        passed = self._count_thresholds_passed(comparable, thresholds)
        bins = _get_library(values).bincount(passed, minlength=len(thresholds) + 1)
        return tuple((len(comparable) - bins.cumsum(0)[:-1]).tolist())

    def _count_thresholds_passed(self, values: Any, thresholds: npt.NDArray[np.float64]) -> Any:
        """Count the thresholds at or below each value. For NaN, all thresholds are counted."""
        if isinstance(values, np.ndarray):
            return np.searchsorted(thresholds, values, side="right")
        edges = cache_per_device(
            thresholds, self.outputs, lambda like, _: device_tensor(like, thresholds)
        )
        return get_loaded_module("torch").searchsorted(edges, values, side="right")


def _cpu_tensor_as_numpy_view(numbers: Any) -> Any:
    """Return a CPU tensor as an array that shares its memory; return other objects unchanged."""
    if numbers is None or isinstance(numbers, (float, np.ndarray)):
        return numbers
    return numbers.numpy() if numbers.device.type == "cpu" else numbers


def _get_library(values: Any) -> Any:
    return np if isinstance(values, np.ndarray) else get_loaded_module("torch")


def is_built_in(score: Any) -> bool:
    """Return True if the class of a score or an event is defined in this package."""
    return type(score).__module__.partition(".")[0] == __name__.partition(".")[0]


def move_to_host(outputs: Any) -> npt.NDArray[Any]:
    """Return outputs as a numpy array. A tensor on a device, such as a GPU, is copied."""
    return outputs.numpy() if isinstance(outputs, Batch) else outputs


def numpy_of(tensor: Any) -> npt.NDArray[Any]:
    """Convert a torch tensor to a numpy array.

    A bfloat16 tensor becomes a float32 array. The dtype of this array notes the original format.
    """
    if _format_dtype(tensor) == "bfloat16":
        return note_format_in_dtype(tensor.float().numpy(force=True), "bfloat16")
    array: npt.NDArray[Any] = tensor.numpy(force=True)
    return array


def note_format_in_dtype(array: npt.NDArray[Any], number_format: str) -> npt.NDArray[Any]:
    """Return a view of an array; the dtype of the view stores the original number format."""
    kind: Any = np.dtype
    return array.view(kind(array.dtype, metadata={"format": number_format}))


def noted_format_significant_bits(array: npt.NDArray[Any]) -> int:
    """Return the number of significant bits of the number format of an array.

    If `note_format_in_dtype` has noted an original format, this format is used instead of the
    dtype.
    """
    stated: dict[str, str] = dict(array.dtype.metadata or {})
    return BITS.get(stated.get("format", array.dtype.name), BITS["float64"])


def cache_per_device(owner: Any, outputs: Batch, make: Callable[[Any, str], Any]) -> Any:
    """Return data that an event or score needs on a device, such as its thresholds as a tensor.

    The data are computed once for each device and number format, and stored for later calls.

    Args:
        owner: the event or score that needs the data. This object must not change.
        outputs: the outputs. They determine the device and the number format.
        make: function (tensor of the outputs, name of its number format) -> data.
    """
    like = outputs.flat
    key = (id(owner), like.dtype, like.device)
    held = _device_cache.get(key)
    # The arrays are compared by identity, because a comparison of a thousand thresholds takes
    # longer than their use.
    if held is None or held[0] is not owner:
        held = _device_cache[key] = (owner, make(like, _format_dtype(like)))
        while len(_device_cache) > _MAX_CACHED_VALUES:
            _device_cache.popitem(last=False)
    return held[1]


def device_tensor(like: Any, values: npt.NDArray[Any]) -> Any:
    """Convert an array to a float64 tensor on the device of the tensor `like`."""
    return like.new_tensor(values.tolist(), dtype=get_loaded_module("torch").float64)


def round_up_to_format(edges: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.floating[Any]]:
    """Round each edge up to the next number of a floating-point format.

    For numbers y of this format, "y >= result" is equivalent to "y >= edge".

    Args:
        edges: real numbers, which may be infinite.
        name: name of the format: "float32", "float64", "float16" or "bfloat16". For bfloat16, the
            result is a float32 array.

    Example:
        >>> round_up_to_format(np.array([0.1, -0.1]), "float16").tolist()
        [0.10003662109375, -0.0999755859375]
        >>> round_up_to_format(np.array([0.1, -0.1]), "bfloat16").tolist()
        [0.10009765625, -0.099609375]
    """
    kind = np.dtype("float32" if name == "bfloat16" else name)
    with np.errstate(over="ignore", under="ignore"):
        near = edges.astype(kind)
        edges_above = np.where(near < edges, np.nextafter(near, kind.type(np.inf)), near)
    if name == "bfloat16":
        bits = edges_above.view(np.int32)
        # A bfloat16 ends in sixteen zero bits. Round away from 0 above 0, and towards 0 below it.
        bits = np.where(edges_above > 0.0, bits + 0xFFFF, bits) & np.int32(-0x10000)
        edges_above = np.where(
            np.isnan(edges_above), edges_above, bits.astype(np.int32).view(np.float32)
        )
    return edges_above


def _format_dtype(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]


class Event(Protocol):
    """An event (set of outputs) that an audit counts: a function `outputs -> bools`.

    Every event of `dpcore.events` is such a function. Users can write their own events.
    """

    def __call__(self, outputs: npt.NDArray[Any], /) -> npt.NDArray[np.bool_]:
        """Return True for each output for which the event happened.

        Args:
            outputs: outputs of a mechanism, shape `(size, ...)`.

        Returns:
            One bool per output, shape `(size,)`.
        """


class ScoreAttributes:
    """Optional attributes of a score (a function outputs -> numbers), and their defaults.

    Attributes:
        cost: approximate time to compute the score of one output, in nanoseconds. If two scores are
            equally good, the cheaper one is used.
        merged: True if rounding errors cannot change the score.
        rounding: function from the rounding tolerances of the columns to the rounding tolerance of
            the score.
        alone: function that returns the index of a column, and a score for outputs that contain
            only this column. Only for a score that reads a single column.
        index: index of the column, only for a score that reads a single column.
        on_device: function that computes the score on the device of the outputs. It returns None if
            the score cannot be computed there.
        compiled: True if the Rust code of dpcore computes the score of arrays faster than a device
            does.
        plainness: how hard the score is to explain to a reader; 0 is easiest.
        whole: True if the score is a whole number for every output.
        letters: True if the score is the Unicode number of a character.
        reads_seed: True if the score reads a hash value and the seed of the hash from an output.
        sentences: only for a score with two values: a sentence for the larger value, and a sentence
            for the smaller value.
    """

    cost = 20
    plainness = 5
    merged = compiled = whole = letters = reads_seed = False
    rounding = alone = index = on_device = sentences = None


def score_attribute(score: Any, name: str) -> Any:
    """Return an optional attribute of a score, or its default if the score does not have it.

    Example:
        >>> score_attribute(np.sum, "cost"), score_attribute(np.sum, "merged")
        (20, False)
    """
    return get_attribute(ScoreAttributes, score, name)


class Seen(NamedTuple):
    """Counts of an event (a set of outputs) on some outputs of a mechanism.

    Args:
        hits: number of outputs in the event. If the event has groups of coordinates, one more count
            follows for each group. This count is the number of coordinates (over all outputs) that
            satisfy the condition of the group.
        nan: number of entries of all outputs that are NaN.
        answers: for each output, True if it is in the event. None if the outputs were counted
            without bools.
        scores: score of each output, or None if the event does not compare a score with a
            threshold.
    """

    hits: tuple[int, ...]
    nan: int
    answers: npt.NDArray[np.bool_] | None
    scores: npt.NDArray[np.float64] | DeviceScores | None = None


class Ballot(NamedTuple):
    """A majority vote of an output's entries for input x or x', as data for compiled code.

    Args:
        threshold: threshold of each entry.
        towards: for each entry: +1 if x' is above x, -1 if x' is below x, 0 if both are equal.
        complement: True if the event is "the majority votes for x", False if it is "the majority
            votes for x'".
    """

    threshold: npt.NDArray[np.float64]
    towards: npt.NDArray[np.int8]
    complement: bool

    def majorities_for_event(self, x_prime_wins: int, size: int) -> int:
        """Return how many of `size` outputs are in the event, if x' wins `x_prime_wins` votes."""
        return size - x_prime_wins if self.complement else x_prime_wins


class EventRecord(Record):
    """Base class of the events (sets of outputs) of this package: functions `outputs -> bools`."""

    __slots__ = ()

    happens: ClassVar[bool] = True
    """False only for the event that never happens."""
    pooled: ClassVar[Any] = None
    """Function that maps outputs to one count per group of coordinates, or None."""
    multiplicities: ClassVar[Any] = ()
    """Number of coordinates of each group."""

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True for each output for which the event happens."""
        raise NotImplementedError(f"{type(self).__name__} decides nothing")

    @property
    def own_score(self) -> Score | None:
        """The score that the event compares with a threshold. None for events without a score."""
        return None

    @property
    def ballot(self) -> Ballot | None:
        """Data for compiled code that counts this event while outputs are drawn, or None."""
        return None

    def midway(self, pair: Pair) -> bool:
        """Return True if this event is a majority vote with thresholds midway between x and x'."""
        return False

    def seen(self, outputs: npt.NDArray[Any] | Batch, name: str) -> Seen:
        """Count the outputs that are in this event.

        Args:
            outputs: outputs, shape `(size, ...)`. By default, outputs on a device are copied to a
                numpy array.
            name: name of the mechanism in error messages.

        Returns:
            The counts, and the bools and scores from which they were computed.

        Raises:
            TypeError: if the event cannot read outputs of this type.
            ValueError: if the outputs have the wrong shape, or the event does not return one bool
                for each output.
        """
        outputs = move_to_host(outputs)
        answers = evaluate_event(self, outputs)
        pooled = () if self.pooled is None else self.pooled(outputs)
        return Seen((hits_of(answers), *pooled), count_nan_entries_of_outputs(outputs), answers)


def score_held(score: Any, outputs: Batch) -> DeviceScores | None:
    """Compute the scores of outputs on their device, or return None if that is impossible."""
    ask = score_attribute(score, "on_device") if is_built_in(score) else None
    if ask is None or (outputs.can_share_memory_with_numpy and score_attribute(score, "compiled")):
        return None
    scores = ask(outputs)
    return None if scores is None else DeviceScores(score, outputs, scores)


def evaluate_event(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Return one bool for each output: True if the output is in the event. Check the type too."""
    answers = np.asarray(event(outputs))
    if answers.dtype != np.bool_ or answers.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(answers.dtype), answers.shape))
    return answers


def group_numeric(
    outputs: npt.NDArray[Any],
) -> tuple[list[tuple[npt.NDArray[np.intp], npt.NDArray[Any]]], npt.NDArray[np.intp]]:
    """Convert the numeric outputs in an array of objects to arrays of numbers.

    If one output is None or a string, numpy stores all outputs as objects. The result of an event
    for one output must not depend on other outputs. Therefore numeric outputs are collected in
    arrays again.

    Args:
        outputs: array of objects, shape `(size, ...)`.

    Returns:
        First, a list with a pair for each type and shape of numeric outputs. The pair contains the
        indices of these outputs, and an array of them. Second, the indices of all outputs that are
        not numeric.

    Example:
        >>> groups, others = group_numeric(np.array([1.5, None, 2.5], dtype=object))
        >>> groups[0][1].tolist(), others.tolist()
        ([1.5, 2.5], [1])
    """
    rows_by_key: dict[Any, tuple[list[int], list[Any]]] = {}
    others = []
    for place, row in enumerate(outputs if outputs.ndim == 1 else outputs.tolist()):
        try:
            # A long text, perhaps of millions of characters, need not become an array.
            array = None if isinstance(row, (str, bytes)) else np.asarray(row)
        except Exception:
            # A user's object may raise any error here.
            array = None
        if array is None or array.dtype.kind not in "buif":
            others.append(place)
            continue
        places, rows = rows_by_key.setdefault((array.dtype, array.shape), ([], []))
        places.append(place)
        rows.append(array)
    groups = [(np.array(places), np.stack(rows)) for places, rows in rows_by_key.values()]
    return groups, np.array(others, np.intp)


def hits_of(answers: npt.NDArray[np.bool_]) -> int:
    """Return how many outputs are in an event, from one bool per output."""
    return int(np.count_nonzero(answers))


def count_nan_entries_of_outputs(outputs: npt.NDArray[Any] | Batch) -> int:
    """Return how many entries of the outputs are NaN."""
    if isinstance(outputs, Batch):
        return outputs.count_nan_entries()
    return int(np.count_nonzero(np.isnan(outputs))) if outputs.dtype.kind == "f" else 0


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Above(EventRecord, word="Above"):
    """The event "the score of the output is at least the threshold", or "... below the threshold".

    If the score of an output is NaN, the output is not in the event. It still counts as a draw.

    Args:
        score: function `outputs -> scores` that returns an array of shape `(size,)`. A higher score
            means that an output looks more like an output on the input x. A lower score means that
            the output looks more like an output on x'.
        threshold: threshold in the units of the score. An attack places the threshold between
            possible scores, so that rounding cannot move a score across the threshold. For the
            largest double as threshold, ``score >= threshold`` means that the score is infinite.
        side: "above" for the event ``score >= threshold``, "below" for ``score < threshold``.

    Raises:
        TypeError: if `score` is not callable, `threshold` is not a number or `side` is not a
            string.
        ValueError: if `threshold` is not finite or `side` is neither "above" nor "below".

    Source:
        Neyman and Pearson (1933): among events of equal probability, the best event is a threshold
        on the likelihood ratio. A threshold on an increasing function of this ratio gives the same
        event.

    Example:
        >>> import numpy as np
        >>> event = Above(lambda outputs: outputs[:, 0], 0.5)
        >>> event(np.array([[0.2], [0.9]])).tolist()
        [False, True]
    """

    score: Score
    threshold: float
    side: Literal["above", "below"] = "above"

    def __post_init__(self) -> None:
        """Check the arguments."""
        if not callable(self.score):
            raise mistyped("score", "a callable outputs -> scores", self.score)
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        choice("side", self.side, ("above", "below"))

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return True for each output for which the event happens.

        Args:
            outputs: outputs, shape `(size, ...)`.

        Returns:
            One bool per output, shape `(size,)`.

        Raises:
            ValueError: if the score does not return one real number per output.
        """
        answers: npt.NDArray[np.bool_] = self._decide_from_scores(scores_of(self.score, outputs))
        return answers

    @property
    def own_score(self) -> Score:
        """The score that this event compares with its threshold."""
        return self.score

    def seen(self, outputs: npt.NDArray[Any] | Batch, name: str) -> Seen:
        """Count the outputs that are in this event. The result also contains their scores."""
        event_scores = score_held(self.score, outputs) if isinstance(outputs, Batch) else None
        if event_scores is not None:
            return self._count_on_device(event_scores)
        scores = scores_of(self.score, move_to_host(outputs))
        answers = self._decide_from_scores(scores)
        return Seen((hits_of(answers),), count_nan_entries_of_outputs(outputs), answers, scores)

    def _count_on_device(self, scores: DeviceScores) -> Seen:
        """Count the event on the device of the outputs; copy only one bool per output."""
        edge = cache_per_device(self, scores.outputs, lambda like, _: np.array([self.threshold]))
        answers = self._decide_from_scores(scores.recompute_near_scores(edge))
        answers = answers if isinstance(answers, np.ndarray) else numpy_of(answers)
        return Seen((hits_of(answers),), scores.outputs.count_nan_entries(), answers, scores)

    def _decide_from_scores(self, scores: Any) -> Any:
        """Decide the event from scores, shape `(size,)`."""
        return scores >= self.threshold if self.side == "above" else scores < self.threshold

    def __str__(self) -> str:
        """Describe the event in one line of text for a report."""
        name, sentences = score_name(self.score), score_attribute(self.score, "sentences")
        if sentences is not None:
            return str(sentences[0 if self.side == "above" else 1])
        if self.threshold == (LARGEST if self.side == "above" else -LARGEST):
            return f"{name} is {'inf' if self.side == 'above' else '-inf'}"
        sign = ">=" if self.side == "above" else "<"
        # Whole numbers are on the same side of the next whole number.
        is_whole = score_attribute(self.score, "whole") and math.isfinite(self.threshold)
        edge = float(math.ceil(self.threshold)) if is_whole else self.threshold
        if score_attribute(self.score, "letters") and 0.0 < edge < _MAX_LETTERS:
            letter = chr(int(edge))
            return (
                f'{name} {sign} "{letter}"' if letter.isprintable() else f"{name} {sign} {edge:g}"
            )
        return f"{name} {sign} {edge:,.10g}"


def scores_of(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Compute the score of each output, shape `(size,)`, and check that it is a real number.

    If a score of this package can read only some outputs, the other outputs get the score NaN.
    """
    try:
        return _compute_scores(score, outputs)
    except (TypeError, ValueError, RecursionError):
        # A seed that was rounded is an error, never an output without a score.
        reads_seed = score_attribute(score, "reads_seed")
        if not is_built_in(score) or outputs.dtype != object or reads_seed:
            raise
        scores = _readable_scores(score, outputs)
        if scores is None:
            raise
        return scores


def _compute_scores(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    # Near the ends of the range of doubles a sum may be infinite; this is a valid score.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(score(outputs))
    if scores.dtype.kind not in "buif" or scores.shape != (len(outputs),):
        requirement = f"a function that returns real numbers of shape ({len(outputs)},)"
        raise invalid("score", requirement, (str(scores.dtype), scores.shape))
    return scores.astype(np.float64, copy=False)


def _readable_scores(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Compute the scores of the outputs that the score can read, NaN for the others.

    Return None if there are several outputs and the score can read none of them.
    """
    scores = np.full(len(outputs), np.nan)
    groups, others = group_numeric(outputs)
    read = [_fill_scores_return_any_readable(scores, score, *group) for group in groups]
    if others.size and (read or len(outputs) > 1):
        read.append(_fill_scores_return_any_readable(scores, score, others, outputs[others]))
    return scores if any(read) or len(outputs) == 1 else None


def _fill_scores_return_any_readable(
    scores: npt.NDArray[np.float64],
    score: Score,
    places: npt.NDArray[np.intp],
    rows: npt.NDArray[Any],
) -> bool:
    """Store the scores of outputs in the array `scores`; return True if any was readable."""
    try:
        scores[places] = _compute_scores(score, rows)
    except (TypeError, ValueError, RecursionError):
        if rows.dtype != object or len(rows) == 1:
            return False
        half = len(rows) // 2
        first = _fill_scores_return_any_readable(scores, score, places[:half], rows[:half])
        return _fill_scores_return_any_readable(scores, score, places[half:], rows[half:]) or first
    return True


def score_name(score: Any) -> str:
    """Return the text that names a score in reports; for a function, the function's name."""
    if isinstance(score, Record):
        return str(score)
    return qualname_of(score)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Never(EventRecord, word="Never"):
    """Event that never happens, for attacks that find no event. The bound on epsilon is then 0."""

    happens: ClassVar[bool] = False

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return False for every output."""
        return np.zeros(len(outputs), np.bool_)

    def __str__(self) -> str:
        """Describe the event in one line of text for a report."""
        return "no event told the two sides apart on the pilot"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Given(EventRecord, word="Given"):
    """An event that is any callable `outputs -> bools`, such as a user's function.

    Args:
        event: the callable. It may have a method `pooled` that counts single coordinates of
            outputs.
    """

    event: Any

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return the result of the callable, without a check."""
        answers: npt.NDArray[np.bool_] = self.event(outputs)
        return answers

    @property
    def pooled(self) -> Any:
        """The method `pooled` of the callable. None if the callable has no such method."""
        return get_attribute(EventRecord, self.event, "pooled")


def event_of(event: Event | EventRecord) -> EventRecord:
    """Convert an event to an object that an audit can count.

    An event of a class of this package is returned unchanged. Any other callable, such as an object
    of a user's subclass, is wrapped in a `Given`.

    Example:
        >>> event_of(Never()), event_of(lambda outputs: outputs > 0).own_score
        (Never(), None)
    """
    return event if isinstance(event, EventRecord) and is_built_in(event) else Given(event)
