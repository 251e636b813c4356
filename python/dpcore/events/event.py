"""Events: a score with a threshold, an event that never happens, any function; also on devices.

Outputs may stay on the device on which a mechanism made them. An event needs only one bool for each
output of a block. On a graphics card, a copy of the block would take longer than the draws; on the
CPU, torch and numpy share the memory. This module does not import torch: a tensor can only exist if
the user's code has imported it.
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
from ..packages import imported_module
from ..records import Pair, Record, attribute_of
from ..report.shown import qualified_name
from ..suggestions import suggest_arguments

_FLOAT_DTYPES: Final = ("float32", "float64", "bfloat16", "float16")
BITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Significant bits of the formats, including the leading bit."""
_INTEGER_DTYPES: Final = ("int64", "int32", "int16", "int8", "uint8", "bool")
_WITHOUT_FLOAT64: Final = ("mps", "meta")
"""Devices whose blocks are copied, because they have no float64 or no numbers at all."""
_MAX_CACHED_VALUES: Final = 16
_MAX_LETTERS: Final = 0x110000
_UNIT_ROUNDOFF: Final = 2.0**-53
"""Half of the last place of 1.0 in float64."""

LARGEST: Final = float(np.finfo(np.float64).max)
"""The largest double; a score at or above it counts as infinite."""

_device_cache: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()

Score = Callable[[npt.NDArray[Any]], npt.NDArray[np.float64]]
"""outputs -> one real number per output, higher if the output looks more like x."""


class Held:
    """Outputs of one call as a tensor; a slice shares the memory.

    Args:
        tensor: real numbers, shape `(size, ...)`, of a type that `Held.takes` accepts.
    """

    __slots__ = ("_flat", "_norm", "_numpy", "tensor")

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor
        self._flat: Any = None
        self._norm: Any = None
        self._numpy: npt.NDArray[Any] | None = None

    @staticmethod
    def takes(tensor: Any) -> bool:
        """Return True if events can be decided on the tensor's device; other tensors are copied."""
        torch = imported_module("torch")
        return (
            tensor.layout == torch.strided
            and tensor.device.type not in _WITHOUT_FLOAT64
            and _format_dtype(tensor) in _FLOAT_DTYPES + _INTEGER_DTYPES
        )

    def __len__(self) -> int:
        return int(self.tensor.shape[0])

    def __getitem__(self, rows: Any) -> Held:
        """Return some rows, chosen by a slice or a tensor of bools."""
        return Held(self.tensor[rows])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the outputs, `(size, ...)`."""
        return tuple(self.tensor.shape)

    @property
    def flat(self) -> Any:
        """The outputs as rows of floats, shape `(size, entries)`; other types become float64."""
        if self._flat is None:
            flat = self._rows()
            self._flat = flat if _format_dtype(flat) in _FLOAT_DTYPES else flat.double()
        return self._flat

    def _rows(self) -> Any:
        tensor = self.tensor
        return tensor if tensor.ndim == 2 else tensor.reshape(len(self), math.prod(self.shape[1:]))

    @property
    def near(self) -> bool:
        """True if numpy can read the numbers without a copy."""
        return bool(self.tensor.device.type == "cpu") and _format_dtype(self.tensor) != "bfloat16"

    def numpy(self) -> npt.NDArray[Any]:
        """Return all outputs as an array, which is a copy unless `near` is true."""
        if self._numpy is None:
            self._numpy = numpy_of(self.tensor)
        return self._numpy

    def columns(self, places: list[int]) -> npt.NDArray[Any]:
        """Return some entries of every output, shape `(size, places)`."""
        return numpy_of(self._rows()[:, places])

    def count_nan(self) -> int:
        """Count the entries that are NaN."""
        # One NaN makes the sum NaN. A test of every single entry takes ten times as long.
        flat = self.flat
        norm = flat if self._norm is None else self._norm
        return int(flat.isnan().sum()) if math.isnan(float(norm.sum())) else 0

    def sum(self) -> Any:
        """Compute the sum of every row in float64."""
        return self.flat.sum(1, dtype=imported_module("torch").float64)

    def dot(self, weights: Any) -> Any:
        """Compute the weighted sum of every row's entries; weights are a tensor of float64."""
        return self.flat.double() @ weights

    def norm(self) -> Any:
        """Return an upper bound of the Euclidean norm of every row, in float64; NaN with a NaN."""
        flat, torch = self.flat, imported_module("torch")
        double = flat.dtype == torch.float64
        norms = flat.norm(dim=1, dtype=torch.float64 if double else torch.float32).double()
        # Squares of numbers below this bound may underflow.
        self._norm = norms + math.sqrt(flat.shape[1]) * (2.0**-500 if double else 2.0**-60)
        return self._norm

    def at_least(self, edges: Any) -> Any:
        """Return 1.0 for entries at or above the edge of their column, else 0.0."""
        flat, torch = self.flat, imported_module("torch")
        # Numbers instead of bools: torch compares and adds them four times as fast.
        kind = torch.float32 if flat.dtype.itemsize < 4 else flat.dtype
        edges_above = flat.new_empty(
            flat.shape, dtype=kind if flat.shape[1] < 2**24 else torch.float64
        )
        return torch.ge(flat, edges, out=edges_above)


def rounding_slack(terms: int, size: Any) -> Any:
    """Bound the difference of two sums of `terms` terms that are added in different orders.

    Args:
        terms: number of terms of the sum.
        size: sum of their magnitudes, or more, a float or a tensor.

    Source:
        Higham (2002), Accuracy and Stability of Numerical Algorithms, section 4.2: the error of
        either sum is at most (n - 1) u / (1 - n u) times the sum of magnitudes.
    """
    return 4.0 * (terms + 4) * _UNIT_ROUNDOFF * size


class Rough(NamedTuple):
    """Scores as a device computes them; it may add terms in a different order.

    Args:
        scores: one number for every output, a tensor of float64.
        slack: largest difference from the score's own numbers, a float or one for every output;
            None if they are equal bit by bit.
    """

    scores: Any
    slack: Any = None


class DeviceScores:
    """Scores of outputs on a device, which are computed exactly near a threshold.

    They are arrays if numpy can read them, otherwise tensors. The same expressions work for both.

    Args:
        score: outputs -> scores, the exact computation.
        outputs: the outputs that are scored.
        rough: the scores computed on the device.
    """

    __slots__ = ("outputs", "score", "slack", "values")

    def __init__(self, score: Callable[[Any], Any], outputs: Held, rough: Rough) -> None:
        self.score, self.outputs = score, outputs
        self.values, self.slack = (_as_numpy_view(part) for part in rough)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, rows: slice) -> DeviceScores:
        slack = self.slack[rows] if np.ndim(self.slack) else self.slack
        return DeviceScores(self.score, self.outputs[rows], Rough(self.values[rows], slack))

    def settled(self, thresholds: npt.NDArray[np.float64]) -> Any:
        """Return scores that lie on the same side of every threshold as the exact scores.

        The few scores that rounding could move across a threshold are computed again with numpy.

        Args:
            thresholds: increasing; must stay unchanged during the lifetime of the event.
        """
        if self.slack is None or self._far(thresholds):
            return self.values
        with np.errstate(invalid="ignore", over="ignore"):
            ends = self.values - self.slack, self.values + self.slack
        low, high = (self._passed(end, thresholds) for end in ends)
        near = low != high
        if np.ndim(self.slack):
            # Infinite entries may cancel in one order of the sum but not in another.
            near |= _get_library(self.slack).isinf(self.slack)
        if not bool(near.any()):
            return self.values
        which = near if isinstance(near, np.ndarray) else near.numpy(force=True)
        rows = self.outputs.tensor.new_tensor(which.tolist(), dtype=imported_module("torch").bool)
        exact = np.asarray(self.score(self.outputs[rows].numpy()), np.float64)
        values = self.values + 0.0
        values[near] = exact if isinstance(near, np.ndarray) else values.new_tensor(exact.tolist())
        return values

    def _far(self, thresholds: npt.NDArray[np.float64]) -> bool:
        """Return True if there is one threshold and no score is near it.

        Scores that are NaN or infinite return False: `settled` handles them.
        """
        if len(thresholds) != 1 or not isinstance(self.values, np.ndarray):
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            return bool((np.abs(self.values - thresholds[0]) > self.slack).all())

    def above(self, thresholds: npt.NDArray[np.float64]) -> tuple[int, ...]:
        """Count the scores at or above each threshold; NaN is not above any."""
        values = self.settled(thresholds)
        comparable = values[values == values]
        passed = self._passed(comparable, thresholds)
        bins = _get_library(values).bincount(passed, minlength=len(thresholds) + 1)
        return tuple((len(comparable) - bins.cumsum(0)[:-1]).tolist())

    def _passed(self, values: Any, thresholds: npt.NDArray[np.float64]) -> Any:
        """Count the thresholds at or below each value; all of them for NaN."""
        if isinstance(values, np.ndarray):
            return np.searchsorted(thresholds, values, side="right")
        edges = cache_per_device(
            thresholds, self.outputs, lambda like, _: as_float64(like, thresholds)
        )
        return imported_module("torch").searchsorted(edges, values, side="right")


def _as_numpy_view(numbers: Any) -> Any:
    """Return a tensor on the CPU as an array that shares its memory; other objects unchanged."""
    if numbers is None or isinstance(numbers, (float, np.ndarray)):
        return numbers
    return numbers.numpy() if numbers.device.type == "cpu" else numbers


def _get_library(values: Any) -> Any:
    return np if isinstance(values, np.ndarray) else imported_module("torch")


def is_own(score: Any) -> bool:
    """Return True for a score of this package."""
    return type(score).__module__.partition(".")[0] == __name__.partition(".")[0]


def move_to_host(outputs: Any) -> npt.NDArray[Any]:
    """Return outputs as an array, whatever their device."""
    return outputs.numpy() if isinstance(outputs, Held) else outputs


def numpy_of(tensor: Any) -> npt.NDArray[Any]:
    """Convert a tensor to an array; bfloat16, which numpy lacks, becomes float32 with a note."""
    if _format_dtype(tensor) == "bfloat16":
        return of_format(tensor.float().numpy(force=True), "bfloat16")
    array: npt.NDArray[Any] = tensor.numpy(force=True)
    return array


def of_format(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return the same numbers with a note on the format from which they were converted."""
    kind: Any = np.dtype
    return array.view(kind(array.dtype, metadata={"format": name}))


def stated_bits(array: npt.NDArray[Any]) -> int:
    """Return the significant bits of an array's format, or of the format that `of_format` noted."""
    stated: dict[str, str] = dict(array.dtype.metadata or {})
    return BITS.get(stated.get("format", array.dtype.name), BITS["float64"])


def cache_per_device(owner: Any, outputs: Held, make: Callable[[Any, str], Any]) -> Any:
    """Make further data of an event or a score, once for each device and format.

    Args:
        owner: the event or score, which never changes.
        outputs: the outputs for which the data are needed.
        make: (a tensor like the outputs' rows, the name of their format) -> the data.
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


def as_float64(like: Any, values: npt.NDArray[Any]) -> Any:
    """Make a float64 tensor from numbers, on the device of another tensor."""
    return like.new_tensor(values.tolist(), dtype=imported_module("torch").float64)


def at_least(edges: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.floating[Any]]:
    """Return the smallest number of a format that is not below each edge.

    A comparison with this number has the same result as a comparison with the edge.

    Args:
        edges: real numbers, which may be infinite.
        name: "float32", "float64", "float16", or "bfloat16"; bfloat16 numbers are also float32.

    Example:
        >>> at_least(np.array([0.1, -0.1]), "float16").tolist()
        [0.10003662109375, -0.0999755859375]
        >>> at_least(np.array([0.1, -0.1]), "bfloat16").tolist()
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
    """An event that an audit counts: a function `outputs -> bools`.

    Every event of `dpcore.events` is such a function, and a user can write one.
    """

    def __call__(self, outputs: npt.NDArray[Any], /) -> npt.NDArray[np.bool_]:
        """Return True for each output for which the event happened.

        Args:
            outputs: outputs of a mechanism, shape `(size, ...)`.

        Returns:
            Bools, shape `(size,)`.
        """


class ScoreAttributes:
    """Optional attributes of a score, each with its default value.

    Attributes:
        cost: approximate nanoseconds per output; among equal scores the cheaper one is taken.
        merged: True if the score is a function of cells that already allow for rounding.
        rounding: `(grains)` -> grain of the score's values, from the grains of the columns.
        alone: `()` -> the one column that the score reads, and the score of that column.
        index: the number of that column.
        on_device: `(outputs)` -> scores of outputs on a device, or None.
        compiled: True if the core scores arrays faster than the device does.
        plainness: rank for readers, as `Part.plainness`; the default is for a sum over several
            columns.
        whole: True if the score is a whole number for every output.
        letters: True if that number is the code of a letter.
        reads_seed: True if the score reads a value together with the seed of its hash.
        sentences: for a score with two values, the sentences for the larger and the smaller value.
    """

    cost = 20
    plainness = 5
    merged = compiled = whole = letters = reads_seed = False
    rounding = alone = index = on_device = sentences = None


def score_attribute(score: Any, name: str) -> Any:
    """Return an optional attribute of a score, or its default.

    Example:
        >>> score_attribute(np.sum, "cost"), score_attribute(np.sum, "merged")
        (20, False)
    """
    return attribute_of(ScoreAttributes, score, name)


class Seen(NamedTuple):
    """The counts of an event on one block of outputs.

    Args:
        hits: number of outputs in the event. An event that pools coordinates adds one count per
            group.
        nan: number of entries of the outputs that are NaN.
        answers: one bool per output, or None if hits are counted without them.
        scores: scores of the outputs, if the event is a threshold on a score.
    """

    hits: tuple[int, ...]
    nan: int
    answers: npt.NDArray[np.bool_] | None
    scores: npt.NDArray[np.float64] | DeviceScores | None = None


class Ballot(NamedTuple):
    """A majority vote in the form that the core counts while it draws.

    Args:
        threshold: threshold of every entry.
        towards: direction from x to x', entry by entry.
        complement: True if the votes for x are the hits.
    """

    threshold: npt.NDArray[np.float64]
    towards: npt.NDArray[np.int8]
    complement: bool

    def hits(self, votes: int, size: int) -> int:
        """Return the hits among `size` outputs, of which `votes` voted for x'."""
        return size - votes if self.complement else votes


class EventRecord(Record):
    """An event of this package: a record `outputs -> bools` with its own way of counting."""

    __slots__ = ()

    happens: ClassVar[bool] = True
    """False for the event that never happens."""
    pooled: ClassVar[Any] = None
    """`(outputs)` -> hits of groups of coordinates, for an event that pools them."""
    multiplicities: ClassVar[Any] = ()
    """Number of coordinates of each group."""

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Decide the event for every output."""
        raise NotImplementedError(f"{type(self).__name__} decides nothing")

    @property
    def own_score(self) -> Score | None:
        """The score on which the event is a threshold, or None."""
        return None

    @property
    def ballot(self) -> Ballot | None:
        """The event in the form that the core counts without making outputs, or None."""
        return None

    def midway(self, pair: Pair) -> bool:
        """Return True for the majority vote midway between two inputs, for either of them."""
        return False

    def seen(self, outputs: npt.NDArray[Any] | Held, name: str) -> Seen:
        """Count the event on outputs, and the pooled coordinates if the event pools them.

        Args:
            outputs: outputs, shape `(size, ...)`. Outputs on a device are copied, unless a subclass
                can decide them there.
            name: name of the mechanism in error messages.

        Returns:
            The counts, and the bools and scores from which they were made.

        Raises:
            TypeError: if the event cannot read outputs of this type.
            ValueError: if the outputs have the wrong shape, or the event does not return one bool
                for each.
        """
        outputs = move_to_host(outputs)
        answers = evaluate_event(self, outputs)
        pooled = () if self.pooled is None else self.pooled(outputs)
        return Seen((hits_of(answers), *pooled), count_nan(outputs), answers)


def score_held(score: Any, outputs: Held) -> DeviceScores | None:
    """Compute the scores of outputs on a device, or None if the score needs an array.

    Only the package's own scores are computed there, because a subclass may score differently.
    """
    ask = score_attribute(score, "on_device") if is_own(score) else None
    if ask is None or (outputs.near and score_attribute(score, "compiled")):
        return None
    scores = ask(outputs)
    return None if scores is None else DeviceScores(score, outputs, scores)


def evaluate_event(event: Event, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
    """Evaluate an event and check that it returns one bool for each output."""
    answers = np.asarray(event(outputs))
    if answers.dtype != np.bool_ or answers.shape != outputs.shape[:1]:
        requirement = f"a function that returns bools of shape ({len(outputs)},)"
        raise invalid("event", requirement, (str(answers.dtype), answers.shape))
    return answers


def group_rows(
    outputs: npt.NDArray[Any],
) -> tuple[list[tuple[npt.NDArray[np.intp], npt.NDArray[Any]]], npt.NDArray[np.intp]]:
    """Return the rows of objects that are real numbers as tables, and the places of other rows.

    A rare outcome (None, a text, a longer list, an integer beyond 64 bits) turns a block of numbers
    into objects. The result of an event for a row must not depend on the other rows.

    Args:
        outputs: objects, shape `(size, ...)`.

    Returns:
        For each type and shape, the places of its rows and a table of them; then the places of all
        other rows.

    Example:
        >>> groups, others = group_rows(np.array([1.5, None, 2.5], dtype=object))
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
    """Count how often an event happened."""
    return int(np.count_nonzero(answers))


def count_nan(outputs: npt.NDArray[Any] | Held) -> int:
    """Count the entries that are NaN."""
    if isinstance(outputs, Held):
        return outputs.count_nan()
    return int(np.count_nonzero(np.isnan(outputs))) if outputs.dtype.kind == "f" else 0


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Above(EventRecord, word="Above"):
    """The event "the score of the output is at or above the threshold", or below it.

    A score that is NaN is on neither side: such an output is counted in n and never in k.

    Args:
        score: `outputs -> scores`, shape `(size,)`; higher if an output looks more like x.
        threshold: threshold in the units of the score. An attack puts it between atoms of the
            score, so that rounding cannot move an output across it. If it is the largest double,
            the event is that the score is infinite.
        side: "above" (``score >= threshold``) or "below" (``score < threshold``).

    Raises:
        TypeError: if `score` is not callable, `threshold` is not a number or `side` is not a
            string.
        ValueError: if `threshold` is not finite or `side` is neither "above" nor "below".

    Source:
        Neyman and Pearson (1933): among events of equal probability the best one is a threshold on
        the likelihood ratio, and so on any increasing function of it.

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
        """Check the fields."""
        if not callable(self.score):
            raise mistyped("score", "a callable outputs -> scores", self.score)
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        choice("side", self.side, ("above", "below"))

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Decide the event for every output.

        Args:
            outputs: outputs, shape `(size, ...)`.

        Returns:
            One bool per output, shape `(size,)`.

        Raises:
            ValueError: if the score does not return one real number per output.
        """
        answers: npt.NDArray[np.bool_] = self._of_scores(scores_of(self.score, outputs))
        return answers

    @property
    def own_score(self) -> Score:
        """The score on which the event is a threshold."""
        return self.score

    def seen(self, outputs: npt.NDArray[Any] | Held, name: str) -> Seen:
        """Count the event, and keep the scores for further counts."""
        event_scores = score_held(self.score, outputs) if isinstance(outputs, Held) else None
        if event_scores is not None:
            return self._held(event_scores)
        scores = scores_of(self.score, move_to_host(outputs))
        answers = self._of_scores(scores)
        return Seen((hits_of(answers),), count_nan(outputs), answers, scores)

    def _held(self, scores: DeviceScores) -> Seen:
        """Count the event on the device of the outputs; only the answers are copied."""
        edge = cache_per_device(self, scores.outputs, lambda like, _: np.array([self.threshold]))
        answers = self._of_scores(scores.settled(edge))
        answers = answers if isinstance(answers, np.ndarray) else numpy_of(answers)
        return Seen((hits_of(answers),), scores.outputs.count_nan(), answers, scores)

    def _of_scores(self, scores: Any) -> Any:
        """Decide the event from scores, shape `(size,)`."""
        return scores >= self.threshold if self.side == "above" else scores < self.threshold

    def __str__(self) -> str:
        """Return one line for a report."""
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
    """Compute and check the scores of outputs: one real number each, shape `(size,)`.

    If a score of this package can read only some rows, the other rows get NaN.
    """
    try:
        return _check_scores(score, outputs)
    except (TypeError, ValueError, RecursionError):
        # A seed that was rounded is an error, never an output without a score.
        reads_seed = score_attribute(score, "reads_seed")
        if not is_own(score) or outputs.dtype != object or reads_seed:
            raise
        scores = _scores_by_rows(score, outputs)
        if scores is None:
            raise
        return scores


def _check_scores(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    # Near the ends of the range of doubles a sum may be infinite; this is a valid score.
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(score(outputs))
    if scores.dtype.kind not in "buif" or scores.shape != (len(outputs),):
        requirement = f"a function that returns real numbers of shape ({len(outputs)},)"
        raise invalid("score", requirement, (str(scores.dtype), scores.shape))
    return scores.astype(np.float64, copy=False)


def _scores_by_rows(score: Score, outputs: npt.NDArray[Any]) -> npt.NDArray[np.float64] | None:
    """Compute the scores of readable rows, or None if no row of several is readable."""
    scores = np.full(len(outputs), np.nan)
    groups, others = group_rows(outputs)
    read = [_fill_scores(scores, score, *group) for group in groups]
    if others.size and (read or len(outputs) > 1):
        read.append(_fill_scores(scores, score, others, outputs[others]))
    return scores if any(read) or len(outputs) == 1 else None


def _fill_scores(
    scores: npt.NDArray[np.float64],
    score: Score,
    places: npt.NDArray[np.intp],
    rows: npt.NDArray[Any],
) -> bool:
    """Store the scores of rows at their places; for objects, of all rows that can be read."""
    try:
        scores[places] = _check_scores(score, rows)
    except (TypeError, ValueError, RecursionError):
        if rows.dtype != object or len(rows) == 1:
            return False
        half = len(rows) // 2
        first = _fill_scores(scores, score, places[:half], rows[:half])
        return _fill_scores(scores, score, places[half:], rows[half:]) or first
    return True


def score_name(score: Any) -> str:
    """Return the name of a score in reports: its own text, or the name of a plain function."""
    if isinstance(score, Record):
        return str(score)
    return qualified_name(score)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Never(EventRecord, word="Never"):
    """Event that never happens, for an attack without another event; its bound is 0."""

    happens: ClassVar[bool] = False

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return False for every output."""
        return np.zeros(len(outputs), np.bool_)

    def __str__(self) -> str:
        """Return one line for a report."""
        return "no event told the two sides apart on the pilot"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Given(EventRecord, word="Given"):
    """Any callable `outputs -> bools`; a callable with a method `pooled` also counts coordinates.

    Args:
        event: the callable.
    """

    event: Any

    def __call__(self, outputs: npt.NDArray[Any]) -> npt.NDArray[np.bool_]:
        """Return the result of the callable, unchecked."""
        answers: npt.NDArray[np.bool_] = self.event(outputs)
        return answers

    @property
    def pooled(self) -> Any:
        """The callable's own `(outputs)` -> hits of groups of coordinates, or None."""
        return attribute_of(EventRecord, self.event, "pooled")


def event_of(event: Event | EventRecord) -> EventRecord:
    """Return an event in the form that an audit counts.

    A subclass of an event of this package may decide differently, and so is treated as a function.

    Example:
        >>> event_of(Never()), event_of(lambda outputs: outputs > 0).own_score
        (Never(), None)
    """
    return event if isinstance(event, EventRecord) and is_own(event) else Given(event)
