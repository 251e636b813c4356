"""Suggestions for misspelt words, and functions and classes whose errors contain them."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

__all__ = ["called_here", "closest", "hinted", "make_getattr", "meant"]

_Target = TypeVar("_Target", bound=Callable[..., Any])

_FOREIGN_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "alpha": ("alphas", "confidence"),
    "b": ("scale",),
    "claim": ("epsilon",),
    "eps": ("claim", "epsilon"),
    "epsilon": ("claim",),
    "generator": ("rng", "seed"),
    "n": ("trials", "size"),
    "n_jobs": ("threads",),
    "max_grad_norm": ("clip",),
    "n_samples": ("trials",),
    "noise_multiplier": ("sigma",),
    "random_state": ("rng", "seed"),
    "rng": ("seed",),
    "scale": ("sigma",),
    "seed": ("rng",),
    "sigma": ("scale",),
    "std": ("sigma",),
    "verbose": ("progress",),
    "workers": ("threads",),
    "x": ("pair",),
    "x_prime": ("pair",),
}
"""Names of arguments in other packages, and the names here: the first that a function has."""

_SUGGESTED_FORMS: Final = {
    ("alpha", "confidence"): "confidence = 1 - alpha",
    ("x", "pair"): "pair = (x, x_prime)",
    ("x_prime", "pair"): "pair = (x, x_prime)",
}

_SCALE_ADVICE: Final = "scale = sensitivity / epsilon, which dpcore.calibration.laplace computes"
_ARGUMENT_ADVICE: Final[tuple[tuple[str, str, str], ...]] = (
    *(
        (name, "left_out", "the claim of one step is GDP(1/sigma), without a delta")
        for name in ("claim", "epsilon", "delta")
    ),
    ("sensitivity", "neighbour", "neighbour= says which inputs are neighbours"),
    ("dim", "pair", "pair=dpcore.pairs.zeros_ones(dim)"),
    ("device", "pair", "the mechanism chooses it: dpcore.torch.mechanism(encoder, noise, device=)"),
    *(
        (name, owner, "noise has no place: the input is what it is added to")
        for name in ("loc", "mean")
        for owner in ("scale", "sigma")
    ),
    *((name, "scale", _SCALE_ADVICE) for name in ("epsilon", "sensitivity")),
    *(
        (name, "sigma", "dpcore.calibration.gaussian_analytic computes sigma")
        for name in ("epsilon", "sensitivity", "delta")
    ),
)
"""Arguments of other packages, an argument of the functions that lack them, and what to do."""

_UNEXPECTED_KEYWORD: Final = re.compile(r".*got an unexpected keyword argument '(.*?)'")
_TOO_MANY_POSITIONAL: Final = re.compile(r".*takes .*positional arguments? but .* given")


def closest(word: str, words: Iterable[str]) -> str | None:
    """Find the word that is most similar to a word, ignoring case; None if none is similar.

    Example:
        >>> closest("Trails", ["trials", "threads"])
        'trials'
    """
    # Only somebody who is mistaken pays for the import.
    from difflib import get_close_matches

    found = {one.lower(): one for one in words}
    return next((found[one] for one in get_close_matches(word.lower(), found, n=1)), None)


def meant(word: str, words: Iterable[str]) -> str:
    """Format the end of an error message that suggests the intended word; "" without one.

    Example:
        >>> meant("indep", ["independent", "one_run"])
        " (did you mean 'independent'?)"
    """
    found = closest(word, words)
    return "" if found is None else f" (did you mean {found!r}?)"


def hinted(target: _Target) -> _Target:
    """Let a function name the intended argument if it has none of the given name.

    Calls cost .1 microseconds more; signature, types and documentation stay the function's.

    Args:
        target: a function or a method; of a class its own constructor changes, so this
            decorator stands above `dataclass`.

    Returns:
        The function with the same arguments; the class itself.

    Example:
        >>> @hinted
        ... def noisy(x, *, trials=1, rng=None): ...
        >>> noisy(0.0, seed=1)
        Traceback (most recent call last):
        TypeError: noisy() got an unexpected keyword argument 'seed' (did you mean 'rng'?)
    """
    if isinstance(target, type):
        target.__init__ = hinted(target.__init__)  # type: ignore[misc]
        return target

    @functools.wraps(target)
    def call(*args: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            return target(*args, **named)
        except TypeError as error:
            # With a frame below this one the function has begun, and its errors are its own.
            if error.__traceback__ is not None and error.__traceback__.tb_next is not None:
                raise
            raise TypeError(_explain_bad_call(target, str(error))) from None

    return call  # type: ignore[return-value]


def _explain_bad_call(target: Callable[..., Any], text: str) -> str:
    """Explain the error of a call and the correct call."""
    parameters = inspect.signature(target).parameters
    if found := _UNEXPECTED_KEYWORD.match(text):
        # Later Pythons suggest a name themselves.
        return found[0] + _suggest_argument(found[1], list(parameters))
    if not (found := _TOO_MANY_POSITIONAL.match(text)):
        return text
    if "counts" in parameters:
        return f"{text} (counts are one argument: dpcore.Counts(k, n, k_prime, n_prime))"
    others = [
        f"{one.name}=" for one in parameters.values() if one.kind is inspect.Parameter.KEYWORD_ONLY
    ]
    if "pair" in parameters and "pair=" not in others:
        return f"{text} (two inputs are one argument, a tuple: (x, x_prime))"
    return f"{text} (by name: {', '.join(others[:3])})" if others else text


def called_here(given: str, names: Sequence[str]) -> str | None:
    """Return the name that an argument of another name has among these, or None.

    Example:
        >>> called_here("seed", ["claim", "rng"])
        'rng'
    """
    return next((other for other in _FOREIGN_ARGUMENTS.get(given, ()) if other in names), None)


def _suggest_argument(given: str, names: Sequence[str]) -> str:
    given = given.lower() if given.lower() in ("x", "x_prime") else given
    other = called_here(given, names)
    if other is None:
        advice = (
            f" ({words})"
            for one, owner, words in _ARGUMENT_ADVICE
            if one == given and owner in names
        )
        return next(advice, "") or meant(given, names)
    return f" (did you mean {_SUGGESTED_FORMS.get((given, other), repr(other))}?)"


def make_getattr(module: str, moved: Mapping[str, str]) -> Callable[[str], Any]:
    """Make the `__getattr__` of a module from which names have moved.

    Args:
        module: the name of the module.
        moved: names that it had, and where each is now.

    Returns:
        A function that raises an AttributeError with the new place.

    Example:
        >>> make_getattr("a", {"x": "b.x"})("x")
        Traceback (most recent call last):
        AttributeError: module 'a' has no attribute 'x' (it is b.x now)
    """

    def find(name: str) -> Any:
        place = f" (it is {moved[name]} now)" if name in moved else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{place}")

    return find
