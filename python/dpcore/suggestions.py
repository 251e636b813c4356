"""Error messages for calls with a wrong argument: they suggest a name, or state a type.

If a call has an argument with an unknown name, the message suggests the parameter that the caller
probably meant (see `dpcore.advice`). If an error occurs during the call, dpcore looks for an
argument, or a field of a record, that does not have its annotated type. The new message names this
argument or field.
"""

from __future__ import annotations

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Final, TypeVar

from .advice import (
    ARGUMENT_ADVICE,
    MISSING_ADVICE,
    SUGGESTED_FORMS,
    dpcore_argument_name,
    suggest_word,
)
from .annotations import describe_hint, fits_hint, type_hints_by_name
from .errors import argument_of, mistyped

_Target = TypeVar("_Target", bound=Callable[..., Any])

_UNEXPECTED_KEYWORD: Final = re.compile(r".*got an unexpected keyword argument '(.*?)'")
_TOO_MANY_POSITIONAL: Final = re.compile(r".*takes .*positional arguments? but .* given")

_OUR_PACKAGES: Final = {"dpcore", "numpy", "scipy", "torch", *sys.stdlib_module_names}
"""Packages whose code does not count as a user's code."""
_INNER_ERRORS: Final = (
    ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError,
)  # fmt: skip
"""Types of errors that a step inside a call may raise, with messages that name no argument."""

_CHECKED_METHODS: Final = {"__call__", "__post_init__", "__repr__", "__str__", "_repr_html_"}
"""Methods that begin with an underscore and are checked like the public methods."""


def explain_argument_errors(target: _Target) -> _Target:
    """Decorate a function: if an argument of a call is wrong, the error explains the mistake.

    If the function has no parameter with the name of an argument, the error suggests a parameter.
    If an argument has the wrong type, the error states the expected type.

    The types of arguments are compared with the annotations only if the call raises an error. The
    decorated function keeps its signature, annotations and documentation.

    Args:
        target: a function, a method or a class. If it is a class, its constructor and its public
            methods are decorated, and the class itself is changed. For a dataclass, write this
            decorator above `@dataclass`.

    Returns:
        The decorated function, or the changed class.

    Example:
        >>> @explain_argument_errors
        ... def noisy(x: float, *, trials: int = 1, rng=None): return range(trials)
        >>> noisy(0.0, seed=1)
        Traceback (most recent call last):
        TypeError: noisy() got an unexpected keyword argument 'seed' (did you mean 'rng'?)
        >>> noisy(0.0, trials="many")
        Traceback (most recent call last):
        TypeError: trials must be an integer, got 'many'
    """
    if isinstance(target, type):
        target.__init__ = explain_argument_errors(target.__init__)  # type: ignore[misc]
        explain_errors_in_methods(target)
        return target

    @functools.wraps(target)
    def call(*args: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            result = target(*args, **named)
        except _INNER_ERRORS as error:
            # If a frame lies below this one, the function has started and the error is from within
            # it.
            has_begun = error.__traceback__ is not None and error.__traceback__.tb_next is not None
            if isinstance(error, TypeError) and not has_begun:
                raise TypeError(_explain_bad_call(target, str(error), args, named)) from None
            _require_annotated_types(target, args, named, error)
            raise
        return iterate(result, args, named) if is_generator else result

    def iterate(items: Iterator[Any], args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            yield from items
        except _INNER_ERRORS as error:
            _require_annotated_types(target, args, named, error)
            raise

    is_generator = inspect.isgeneratorfunction(target)
    vars(call)["suggests"] = True
    return call  # type: ignore[return-value]


def explain_errors_in_methods(cls: type) -> None:
    """Decorate the public methods and properties of a class, so that errors explain mistakes.

    The decorator is `explain_argument_errors`. The class itself is changed.
    """
    for name, method in list(vars(cls).items()):
        function: Any = method.fget if isinstance(method, property) else method
        function = getattr(function, "__func__", function)
        # A dataclass with slots is created twice, from the same functions.
        is_new = inspect.isfunction(function) and not hasattr(function, "suggests")
        if is_new and (name in _CHECKED_METHODS or not name.startswith("_")):
            decorated = explain_argument_errors(function)
            setattr(cls, name, decorated if function is method else type(method)(decorated))


def _require_annotated_types(
    target: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], error: Exception
) -> None:
    """Raise a TypeError if an argument, or a field of a record, does not have its annotated type.

    The function returns without an error in two cases: `error` already names an argument, or
    `error` comes from a user's code.
    """
    if passes_user_code(error) or argument_of(error) is not None:
        return
    signature, hints = inspect.signature(target), type_hints_by_name(target)
    for name, value in signature.bind(*args, **named).arguments.items():
        parameter = signature.parameters[name]
        is_single = parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
        if is_single and value is not parameter.default:
            _require_type(name, value, hints.get(name, Any), error)
    record = args[0] if args and next(iter(signature.parameters)) == "self" else None
    if is_dataclass(record):
        hints = type_hints_by_name(record.__class__)
        for field in fields(record):
            # The constructor may fail before all fields are set.
            if hasattr(record, field.name):
                _require_type(field.name, getattr(record, field.name), hints[field.name], error)


def passes_user_code(error: BaseException) -> bool:
    """Return True if the traceback of an error contains code of a user.

    Code counts as a user's if it does not belong to dpcore, numpy, scipy, torch or Python's
    standard library.
    """
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_globals.get("__name__", "numpy").split(".")[0] not in _OUR_PACKAGES:
            return True
        trace = trace.tb_next
    return False


def _require_type(name: str, value: Any, hint: Any, cause: Exception) -> None:
    """Raise a TypeError, caused by `cause`, if a value does not have its annotated type."""
    if not fits_hint(value, hint):
        raise mistyped(name, describe_hint(hint), value) from cause


def _explain_bad_call(
    target: Callable[..., Any], text: str, args: Sequence[Any], named: Mapping[str, Any]
) -> str:
    """Return the message for a call with wrong arguments, with advice on the correct call."""
    parameters = inspect.signature(target).parameters
    if match := _UNEXPECTED_KEYWORD.match(text):
        # Newer versions of Python also suggest a name.
        if match[1] == "dim" and "pair" in parameters:
            owner = named.get("mechanism", args[0] if args else None)
            return f"{match[0]} ({_format_pair_argument(owner, named['dim'])})"
        return match[0] + _suggest_argument(match[1], list(parameters))
    if not _TOO_MANY_POSITIONAL.match(text):
        advice = (words for ending, words in MISSING_ADVICE if f"missing {ending}" in text)
        return text + next((f" ({words})" for words in advice), "")
    if "scale" in parameters or "sigma" in parameters:
        return f"{text} (noise has no place: the input is what it is added to)"
    if "counts" in parameters:
        return f"{text} (counts are one argument: dpcore.Counts(k, n, k_prime, n_prime))"
    others = [
        f"{parameter.name}="
        for parameter in parameters.values()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if "pair" in parameters and "pair=" not in others:
        return f"{text} (two inputs are one argument, a tuple: (x, x_prime))"
    return f"{text} (by name: {', '.join(others[:3])})" if others else text


def _format_pair_argument(mechanism: Any, dim: Any) -> str:
    """Return the text "pair=...", with the default pair of the mechanism if there is one."""
    make = inspect.getattr_static(mechanism, "default_pair", None)
    if make is None:
        return f"pair=dpcore.pairs.zeros_ones({dim!r})"
    shown = repr(dim) if "dim" in inspect.signature(make).parameters else ""
    return f"pair=mechanism.default_pair({shown})"


def _suggest_argument(argument: str, names: Sequence[str]) -> str:
    """Return the end of a message, which suggests an argument, or "" without a suggestion."""
    argument = argument.lower() if argument.lower() in ("x", "x_prime") else argument
    other = dpcore_argument_name(argument, names)
    if other is not None:
        return f" (did you mean {SUGGESTED_FORMS.get((argument, other), repr(other))}?)"
    advice = (
        f" ({words})"
        for name, owner, words in ARGUMENT_ADVICE
        if name == argument and owner in names
    )
    return next(advice, "") or suggest_word(argument, names)
