"""Options of a command, made from the fields of a class."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar, get_type_hints

__all__ = ["add_options"]

_Options = TypeVar("_Options")


def add_options(kind: type[_Options]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the fields of a class as its options, in the place of its argument `asked`.

    Args:
        kind: one of the classes above.

    Returns:
        The decorator.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(kind, include_extras=True)
        spread = [
            inspect.Parameter(
                one.name,
                inspect.Parameter.KEYWORD_ONLY,
                default=_get_default(one),
                annotation=hints[one.name],
            )
            for one in fields(kind)  # type: ignore[arg-type]
        ]

        @functools.wraps(command)
        def run(**given: Any) -> None:
            command(asked=kind(**{one.name: given.pop(one.name) for one in spread}), **given)

        taken: list[inspect.Parameter] = []
        for one in inspect.signature(command, eval_str=True).parameters.values():
            own = one.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            taken += spread if one.name == "asked" else [own]
        vars(run)["__signature__"] = inspect.Signature(taken)
        return run

    return decorate


def _get_default(one: Field[Any]) -> Any:
    if one.default_factory is not MISSING:
        return one.default_factory()
    return inspect.Parameter.empty if one.default is MISSING else one.default
