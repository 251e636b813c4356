"""Adapter for the mechanisms of diffprivlib."""

from __future__ import annotations

import io
import math
import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from ..errors import invalid, message
from ..mechanisms.answers import AnswerKeeper
from ..mechanisms.callables import Catch, call_and_keep, check_catch, collect_answers
from ..packages import has_all
from ..records import Pair
from .scipy import Adapter, pure_epsilon, unwrap_single_number

_INTEGER_FAMILIES = {"Geometric", "GaussianDiscrete"}
_NUMERIC_FAMILIES = {"Laplace", "Gaussian", "Uniform"} | _INTEGER_FAMILIES
_CATEGORICAL_FAMILIES = {"Binary", "ExponentialCategorical"}
"""Names of diffprivlib classes with inputs of one kind: integers, numbers, and categories. The
names include subclasses. Any two categories are neighbours."""


@dataclass(frozen=True, slots=True, repr=False)
class DiffPrivLib(Adapter):
    """Adapter: dpcore can audit a mechanism of diffprivlib through this object.

    The adapter calls `randomise` of the mechanism once for each output.

    The mechanism uses its own source of randomness: the operating system, or the `random_state` of
    its constructor. The adapter does not seed this source. A second audit with the same seed
    therefore gets other outputs. If an input is an array of one entry, the adapter passes the entry
    to `randomise` as a plain number.

    The property `stated` is the epsilon and delta that were given to the constructor of the
    mechanism. The mechanism promises this epsilon and delta for any two inputs that differ by at
    most its sensitivity. The property `claim` is the stated epsilon if delta is 0 and the inputs
    are numbers or categories. For other mechanisms `claim` is None.

    This adapter does not fit two kinds of mechanisms. Use `dpcore.repeat` for them. A mechanism
    such as `Exponential` gets its input in the constructor. In this case, pass to `dpcore.repeat` a
    function that constructs the mechanism from x and calls `randomise`. The output of a mechanism
    such as `Vector` is a function. In this case, pass to `dpcore.repeat` a function that evaluates
    the output at a point.

    Args:
        mechanism: an instance of a class in `diffprivlib.mechanisms`, or a transformer of
            diffprivlib around such an instance.
        catch: one or more exception classes. If `randomise` raises one of these exceptions, the
            exception counts as the output of this call.

    Source:
        Holohan, Braghin, Mac Aonghusa and Levacher (2019), Diffprivlib.

    Example:
        `dpcore.audit` recognises a mechanism, and tests the epsilon of its constructor::

            from diffprivlib.mechanisms import Binary, Laplace

            dpcore.audit(Laplace(epsilon=1.0, sensitivity=1.0), trials=10**5)
            dpcore.audit(Binary(epsilon=1.0, value0="a", value1="b"), attack=is_a)
    """

    mechanism: Any
    catch: type[Exception] | Catch = ()

    wrapped: ClassVar[tuple[str, ...]] = ("a mechanism of diffprivlib", "randomise")

    reproducible: ClassVar[bool] = False

    @property
    def _root_mechanism(self) -> Any:
        """The mechanism that states epsilon; it may be inside a chain of transformers."""
        root = self.mechanism
        while not has_all(root, "epsilon") and has_all(root, "parent"):
            root = root.parent
        return root

    def _is_one_of(self, names: set[str]) -> bool:
        return bool(names & {kind.__name__ for kind in type(self.mechanism).__mro__})

    @property
    def stated(self) -> tuple[float, float] | None:
        """The epsilon and delta that were given to the constructor of the wrapped mechanism."""
        root = self._root_mechanism
        return float(root.epsilon), float(root.delta)

    @property
    def claim(self) -> float | None:
        """The epsilon that the wrapped mechanism promises, or None.

        An audit tests this epsilon by default. The value is None if delta is above 0, or if the
        inputs are neither numbers nor categories.
        """
        is_supported = self._is_one_of(_NUMERIC_FAMILIES | _CATEGORICAL_FAMILIES)
        return pure_epsilon(self.stated) if is_supported else None

    @property
    def norm(self) -> str | None:
        """Norm in which the sensitivity is measured: "l1" if inputs are numbers, otherwise None."""
        return "l1" if self._is_one_of(_NUMERIC_FAMILIES) else None

    @property
    def sensitivity(self) -> float | None:
        """Sensitivity of the wrapped mechanism, or None if the inputs are not numbers.

        The sensitivity is the largest distance between two neighbouring inputs.
        """
        return float(self.mechanism.sensitivity) if self._is_one_of(_NUMERIC_FAMILIES) else None

    def default_pair(self) -> Pair:
        """Return the two inputs on which an audit tests the wrapped mechanism by default.

        Returns:
            For the mechanism `Binary`, its two values. For a mechanism on numbers, the arrays
            `[low]` and `[low + sensitivity]`. Here `low` is the lower bound of the inputs. If the
            inputs have no lower bound, `low` is the smaller of 0 and the upper bound minus the
            sensitivity. If `low + sensitivity` exceeds the upper bound, the second array contains
            the upper bound instead.

        Raises:
            ValueError: if the mechanism is not a `Binary` and its inputs are not numbers.
        """
        inner = self.mechanism
        if self._is_one_of({"Binary"}):
            return Pair(inner.value0, inner.value1)
        if not self._is_one_of(_NUMERIC_FAMILIES):
            raise invalid("pair", f"given for {self.name}", None)
        bounded = has_all(inner, "lower", "upper")
        low, top = (inner.lower, inner.upper) if bounded else (0.0, math.inf)
        if math.isinf(low):
            low = min(0.0, top - inner.sensitivity)
        whole = self._is_one_of(_INTEGER_FAMILIES)
        low = math.ceil(low) if whole else low
        ends = np.array([[low], [min(low + inner.sensitivity, top)]])
        return Pair(*(ends.astype(np.int64) if whole else ends.astype(np.float64)))

    def __repr__(self) -> str:
        return f"DiffPrivLib({self.mechanism!r})"

    def __call__(self, x: Any, size: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """Call `randomise` on `x` `size` times.

        Args:
            x: a value that the mechanism accepts, or an array of one such number.
            size: number of outputs.
            rng: not used, because the mechanism has its own generator.

        Returns:
            Array of the outputs, shape `(size,)`. The shape is `(size, dim)` if an output is a
            vector. The dtype is object if an output is a string.

        Raises:
            ValueError: if the outputs have different shapes.
        """
        randomise, value = self.mechanism.randomise, unwrap_single_number(x)
        answers, catch = AnswerKeeper(repr(self)), check_catch(self.catch)
        call_and_keep(answers, randomise, value, size, catch)
        return collect_answers(answers, catch)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[bytes, Any]]:
        """Pickle the mechanism; the copy gets new random numbers from the operating system.

        Raises:
            TypeError: if the mechanism has a `random_state`. Several copies would repeat the same
                draws, but an audit would count these draws as independent.
        """
        buffer = io.BytesIO()
        _MechanismPickler(buffer).dump(self.mechanism)
        return _rebuild_mechanism, (buffer.getvalue(), self.catch)


class _MechanismPickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, random.SystemRandom):
            return type(value), ()
        if isinstance(value, np.random.RandomState):
            requirement = "built without random_state to be copied (copies repeat each other)"
            raise TypeError(message("mechanism", requirement, value))
        return NotImplemented


def _rebuild_mechanism(content: bytes, catch: Catch) -> DiffPrivLib:
    return DiffPrivLib(pickle.loads(content), catch)
