"""Outputs that stay on the device where a mechanism made them; only a few numbers are copied.

An event needs of a block one bool for each output. On a graphics card, copying the block would take
longer than drawing it; on the CPU torch and numpy share the memory. Nothing here imports torch: a
tensor is only there where somebody has.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ..packages import imported_module

_FLOAT_DTYPES: Final = ("float32", "float64", "bfloat16", "float16")
BITS: Final = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Significant bits of the formats, the leading one among them."""
_INTEGER_DTYPES: Final = ("int64", "int32", "int16", "int8", "uint8", "bool")
_WITHOUT_FLOAT64: Final = ("mps", "meta")
"""Devices whose blocks are copied: they have no float64, or no numbers at all."""
_MAX_CACHED_VALUES: Final = 16
_UNIT_ROUNDOFF: Final = 2.0**-53
"""Half of the last place of 1.0 in float64."""


class Held:
    """Outputs of one call as a tensor; a slice is another one, on the same memory.

    Args:
        tensor: real numbers, shape `(size, ...)`, of a kind that `Held.takes`.
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
        """The outputs as rows of numbers, shape `(size, entries)`; float64 what was no float."""
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
        """Return all outputs as an array; it is a copy unless `near`."""
        if self._numpy is None:
            self._numpy = numpy_of(self.tensor)
        return self._numpy

    def columns(self, places: list[int]) -> npt.NDArray[Any]:
        """Return some entries of every output, shape `(size, places)`."""
        return numpy_of(self._rows()[:, places])

    def count_nan(self) -> int:
        """Count the entries that are NaN."""
        # A NaN makes the sum NaN; to look at every entry for itself takes ten times as long.
        flat = self.flat
        told = flat if self._norm is None else self._norm
        return int(flat.isnan().sum()) if math.isnan(float(told.sum())) else 0

    def sum(self) -> Any:
        """Compute the sum of every row in float64."""
        return self.flat.sum(1, dtype=imported_module("torch").float64)

    def dot(self, weights: Any) -> Any:
        """Compute the sum of every row's entries times weights, a tensor of float64."""
        return self.flat.double() @ weights

    def norm(self) -> Any:
        """Bound the Euclidean norm of every row from above, in float64; NaN if an entry is."""
        flat, torch = self.flat, imported_module("torch")
        double = flat.dtype == torch.float64
        found = flat.norm(dim=1, dtype=torch.float64 if double else torch.float32).double()
        # Squares of numbers below this may vanish.
        self._norm = found + math.sqrt(flat.shape[1]) * (2.0**-500 if double else 2.0**-60)
        return self._norm

    def at_least(self, edges: Any) -> Any:
        """Return 1.0 where an entry is at or above the edge of its column, else 0.0."""
        flat, torch = self.flat, imported_module("torch")
        # Numbers rather than bools: torch compares and adds them four times as fast.
        kind = torch.float32 if flat.dtype.itemsize < 4 else flat.dtype
        found = flat.new_empty(flat.shape, dtype=kind if flat.shape[1] < 2**24 else torch.float64)
        return torch.ge(flat, edges, out=found)


def rounding_slack(terms: int, size: Any) -> Any:
    """Bound the difference of two sums of `terms` terms, in any orders and with few roundings.

    Args:
        terms: of the sum.
        size: the sum of their magnitudes, or more, a float or a tensor.

    Source:
        Higham (2002), Accuracy and Stability of Numerical Algorithms, section 4.2: either sum is
        off by at most (n - 1) u / (1 - n u) times the sum of magnitudes.
    """
    return 4.0 * (terms + 4) * _UNIT_ROUNDOFF * size


class Rough(NamedTuple):
    """Scores as a device finds them, its sums in an order of its own.

    Args:
        scores: one number for every output, a tensor of float64.
        slack: how far they may be from the score's own numbers, a float or one for every output;
            None where they are the same bits.
    """

    scores: Any
    slack: Any = None


class DeviceScores:
    """Scores of held outputs, made exact wherever a threshold is near.

    They are arrays where numpy can look at them, else tensors: what is done with them is spelt
    the same for both.

    Args:
        score: outputs -> scores, what they are in the end.
        outputs: what is scored.
        rough: the scores where the outputs are.
    """

    __slots__ = ("outputs", "score", "slack", "values")

    def __init__(self, score: Callable[[Any], Any], outputs: Held, rough: Rough) -> None:
        self.score, self.outputs = score, outputs
        self.values, self.slack = (_as_numpy_view(one) for one in rough)

    def __len__(self) -> int:
        return len(self.outputs)

    def __getitem__(self, rows: slice) -> DeviceScores:
        slack = self.slack[rows] if np.ndim(self.slack) else self.slack
        return DeviceScores(self.score, self.outputs[rows], Rough(self.values[rows], slack))

    def settled(self, thresholds: npt.NDArray[np.float64]) -> Any:
        """Return the scores, on the same side of every threshold as the score's own numbers.

        The few that rounding could move across one are scored again as arrays are.

        Args:
            thresholds: increasing; kept as they are for as long as the event is.
        """
        if self.slack is None or self._far(thresholds):
            return self.values
        with np.errstate(invalid="ignore", over="ignore"):
            ends = self.values - self.slack, self.values + self.slack
        low, high = (self._passed(end, thresholds) for end in ends)
        near = low != high
        if np.ndim(self.slack):
            # Infinite entries may cancel in one order and not in another.
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
        """Return True if no score is near the one threshold.

        `settled` handles NaN and infinities.
        """
        if len(thresholds) != 1 or not isinstance(self.values, np.ndarray):
            return False
        with np.errstate(invalid="ignore", over="ignore"):
            return bool((np.abs(self.values - thresholds[0]) > self.slack).all())

    def above(self, thresholds: npt.NDArray[np.float64]) -> tuple[int, ...]:
        """Count the scores at or above each threshold; NaN is not above any."""
        values = self.settled(thresholds)
        known = values[values == values]
        passed = self._passed(known, thresholds)
        bins = _get_library(values).bincount(passed, minlength=len(thresholds) + 1)
        return tuple((len(known) - bins.cumsum(0)[:-1]).tolist())

    def _passed(self, values: Any, thresholds: npt.NDArray[np.float64]) -> Any:
        """Count the thresholds at or below each value; all of them for NaN."""
        if isinstance(values, np.ndarray):
            return np.searchsorted(thresholds, values, side="right")
        edges = cache_per_device(
            thresholds, self.outputs, lambda like, _: as_float64(like, thresholds)
        )
        return imported_module("torch").searchsorted(edges, values, side="right")


def _as_numpy_view(numbers: Any) -> Any:
    """Return a tensor on the CPU as an array on the same memory; anything else unchanged."""
    if numbers is None or isinstance(numbers, (float, np.ndarray)):
        return numbers
    return numbers.numpy() if numbers.device.type == "cpu" else numbers


def _get_library(values: Any) -> Any:
    return np if isinstance(values, np.ndarray) else imported_module("torch")


def is_own(score: Any) -> bool:
    """Return True for a score of this package."""
    return type(score).__module__.partition(".")[0] == __name__.partition(".")[0]


def move_to_host(outputs: Any) -> npt.NDArray[Any]:
    """Return outputs as an array, on whichever device they are."""
    return outputs.numpy() if isinstance(outputs, Held) else outputs


def numpy_of(tensor: Any) -> npt.NDArray[Any]:
    """Convert a tensor to an array; bfloat16, which numpy lacks, becomes float32 with a note."""
    if _format_dtype(tensor) == "bfloat16":
        return of_format(tensor.float().numpy(force=True), "bfloat16")
    found: npt.NDArray[Any] = tensor.numpy(force=True)
    return found


def of_format(array: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return the same numbers with a note on the format from which they were converted."""
    kind: Any = np.dtype
    return array.view(kind(array.dtype, metadata={"format": name}))


def stated_bits(array: npt.NDArray[Any]) -> int:
    """Return significant bits of an array's format, or of the one that `of_format` stated."""
    said: dict[str, str] = dict(array.dtype.metadata or {})
    return BITS.get(said.get("format", array.dtype.name), BITS["float64"])


def cache_per_device(owner: Any, outputs: Held, make: Callable[[Any, str], Any]) -> Any:
    """Make further data of an event or a score once for each device and format.

    Args:
        owner: the event or score; it never changes.
        outputs: beside which it is needed.
        make: (a tensor like the outputs' rows, the name of their format) -> anything.
    """
    like = outputs.flat
    key = (id(owner), like.dtype, like.device)
    held = _device_cache.get(key)
    # By identity: to compare thresholds of a thousand entries would take longer than to use them.
    if held is None or held[0] is not owner:
        held = _device_cache[key] = (owner, make(like, _format_dtype(like)))
        while len(_device_cache) > _MAX_CACHED_VALUES:
            _device_cache.popitem(last=False)
    return held[1]


_device_cache: OrderedDict[Any, tuple[Any, Any]] = OrderedDict()


def as_float64(like: Any, values: npt.NDArray[Any]) -> Any:
    """Make a tensor of float64 from numbers, on the device of another tensor."""
    return like.new_tensor(values.tolist(), dtype=imported_module("torch").float64)


def at_least(edges: npt.NDArray[np.float64], name: str) -> npt.NDArray[np.floating[Any]]:
    """Return the smallest number of a format that is not below each edge.

    Comparisons with it have the same results as with the edge.

    Args:
        edges: real numbers, infinite ones too.
        name: "float32", "float64", "float16", or "bfloat16", whose numbers are float32 as well.

    Example:
        >>> at_least(np.array([0.1, -0.1]), "float16").tolist()
        [0.10003662109375, -0.0999755859375]
        >>> at_least(np.array([0.1, -0.1]), "bfloat16").tolist()
        [0.10009765625, -0.099609375]
    """
    kind = np.dtype("float32" if name == "bfloat16" else name)
    with np.errstate(over="ignore", under="ignore"):
        near = edges.astype(kind)
        found = np.where(near < edges, np.nextafter(near, kind.type(np.inf)), near)
    if name == "bfloat16":
        bits = found.view(np.int32)
        # Its numbers end in sixteen zeros: away from 0 above it, towards 0 below.
        bits = np.where(found > 0.0, bits + 0xFFFF, bits) & np.int32(-0x10000)
        found = np.where(np.isnan(found), found, bits.astype(np.int32).view(np.float32))
    return found


def _format_dtype(tensor: Any) -> str:
    return str(tensor.dtype).rpartition(".")[2]
