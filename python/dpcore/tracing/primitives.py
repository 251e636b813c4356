"""A decorator for noisy functions whose privacy loss the user knows by a formula."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import integer, mistyped, real
from .replay import differ_much, get_active_run

_Function = TypeVar("_Function", bound=Callable[..., Any])


def primitive(
    *, loss: Callable[[Any, Any], Any], value: int = 0, declared: float | None = None
) -> Callable[[_Function], _Function]:
    """Decorate a noisy function with a formula for its privacy loss, for use by `dpcore.trace`.

    `dpcore.trace` runs code on two inputs x and x', and does not trace the noise inside the
    decorated function. In the run on x', the decorated function returns its output from the run on
    x. The formula gives the privacy loss of this call. Outside `dpcore.trace`, the decorated
    function is unchanged.

    Args:
        loss: the formula, a function of two values of one argument of the decorated function. The
            first value is from the run on x, and the second value is from the run on x'. The
            formula returns the privacy loss in nats, or the pair (distance of the two values,
            loss).
        value: position (from 0) of the argument of the decorated function whose values the formula
            takes. The noise hides the value of this argument.
        declared: the formula holds only if the distance of the two values is at most this number.
            `dpcore.trace` reports a fault if the distance is larger. None allows any distance.

    Returns:
        The decorator.

    Raises:
        TypeError: if `loss` is not callable, or another argument has the wrong type.
        ValueError: if an argument is out of range.

    Example:
        >>> import dpcore, numpy as np
        >>> @primitive(loss=lambda v, w: abs(v - w) / 2.0, declared=1.0)
        ... def hide(count):
        ...     return count + np.random.default_rng().laplace(scale=2.0)
        >>> dpcore.trace(lambda x: hide(len(x)), ([1, 1], [1]), rng=1).loss
        0.5
    """
    if not callable(loss):
        raise mistyped("loss", "a function (value on x, value on x') -> loss", loss)
    place = integer("value", value, 0)
    greatest = None if declared is None else real("declared", declared, low=0.0)

    def decorate(function: _Function) -> _Function:
        @functools.wraps(function)
        def call(*arguments: Any, **named: Any) -> Any:
            run = get_active_run()
            if run is None:
                return function(*arguments, **named)
            rest = [*arguments[:place], *arguments[place + 1 :], *named.values()]

            def find_loss(first: Any, second: Any) -> tuple[float, float]:
                if len(first[1]) != len(second[1]) or any(map(differ_much, first[1], second[1])):
                    # Data in another argument changes the law.
                    return math.inf, math.inf
                result = loss(first[0], second[0])
                pair = result if isinstance(result, tuple) else (result, result)
                return float(pair[0]), float(pair[1])

            inputs = arguments[place], rest
            name = function.__name__
            return run.record_noisy_call(
                name, inputs, lambda: function(*arguments, **named), find_loss, greatest
            )

        return call  # type: ignore[return-value]

    return decorate
