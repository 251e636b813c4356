"""Declarations of bounds: the title of each, and where it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from ..errors import choice, flag, instance, integer, invalid, mistyped
from ..records import Shown

_BoundFunction = TypeVar("_BoundFunction", bound=Callable[..., float])


BoundName = Literal["clopper_pearson", "exact", "conditional", "anytime"]
"""The names of the bounds of counted draws."""

RecordedBound = Literal["clopper_pearson", "exact", "one_run", "one_run_fdp", "one_run_curve"]
"""The names of all bounds of recorded outputs, as a type."""

_PACKAGE_BOUNDS: Final[dict[str, Callable[..., float]]] = {}
"""The bounds of this package by name."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Declared(Shown):
    """A bound's declaration, which decorates its function and leaves it a plain function.

    All that reports, checks and the command line know of a bound stands here, beside its proof;
    the defaults promise the least.

    Args:
        title: what reports call it.
        name: name by which it is chosen; empty for that of its function.
        rows: what it speaks of: "independent" draws on both sides, or guesses about the canaries
            of "one_run".
        deltas: the deltas that it has a form for: "any", "zero" or "positive".
        anytime: it holds at every number of draws at once; the others need one fixed in advance.
        recorded: it is offered for outputs drawn elsewhere, whose sides may differ in number.
        paired: it holds for dependent sides too, as rows i of both from one seed are.
        implied: an audit that asks for none may record it, so that naming it asks for nothing.
        curves: how it tests a claim that is a curve: "none" (at one epsilon and delta), "point"
            (by two limits at once, as a whole), "gaussian" (Gaussian ones), "only" (nothing else).
        slow: it takes too long to be asked hundreds of times.
        most_draws: draws a side beyond which it gives what `clopper_pearson` does, or None.

    Raises:
        TypeError: if a field, or what is declared, is of the wrong kind.
        ValueError: if `title` is empty, or `rows` or `deltas` is none of these words.

    Example:
        >>> @Declared(title="nothing at all", anytime=True)
        ... def nothing(counts, delta=0.0, confidence=0.95):
        ...     return 0.0
        >>> find_declaration(nothing).title
        'nothing at all'
    """

    title: str
    name: str = ""
    rows: Literal["independent", "one_run"] = "independent"
    deltas: Literal["any", "zero", "positive"] = "any"
    anytime: bool = False
    recorded: bool = False
    paired: bool = False
    implied: bool = False
    slow: bool = False
    most_draws: int | None = None
    curves: Literal["none", "point", "gaussian", "only"] = "none"

    def __post_init__(self) -> None:
        """Check the words: one that is not known would promise something else."""
        if not instance("title", self.title, str):
            raise invalid("title", "not empty", self.title)
        choice("rows", self.rows, ("independent", "one_run"))
        choice("curves", self.curves, ("none", "point", "gaussian", "only"))
        choice("deltas", self.deltas, ("any", "zero", "positive"))
        if self.most_draws is not None:
            integer("most_draws", self.most_draws, 1)
        for name in ("anytime", "recorded", "paired", "implied", "slow"):
            flag(name, getattr(self, name))

    def __call__(self, bound: _BoundFunction) -> _BoundFunction:
        """Return the bound itself, declared."""
        if not hasattr(bound, "__dict__"):
            raise mistyped("bound", "a function (counts, delta, confidence) -> float", bound)
        vars(bound)["declared"] = self
        if bound.__module__.startswith(f"{__package__}."):
            _PACKAGE_BOUNDS[self.name or bound.__name__] = bound
        return bound

    def check_delta(self, name: str, delta: float) -> None:
        """Raise an error if the bound of this name has no form for the delta."""
        if self.deltas == "zero" and delta != 0.0:
            raise invalid("bound", f"another than {name!r} where delta is above 0", name)
        if self.deltas == "positive" and delta == 0.0:
            raise invalid("delta", f"above 0 for the bound {name}", delta)


def bound_of(
    bound: Any, rows: Literal["independent", "one_run"] = "independent"
) -> Callable[..., float]:
    """Return a bound for the given rows: one of this package by name, or any function unchanged.

    Raises:
        TypeError: if it is neither a string nor callable.
        ValueError: if no bound for such rows has the name.
    """
    if isinstance(bound, str):
        names = [n for n, of in _PACKAGE_BOUNDS.items() if find_declaration(of).rows == rows]
        return _PACKAGE_BOUNDS[choice("bound", bound, names)]
    if not callable(bound):
        raise mistyped("bound", "a function that returns an epsilon, or a name", bound)
    found: Callable[..., float] = bound
    return found


def find_declaration(bound: Callable[..., Any]) -> Declared:
    """Return the declaration of a bound; the default is its name and the default fields."""
    found = getattr(bound, "declared", None)
    if isinstance(found, Declared):
        return found
    return Declared(title=getattr(bound, "__name__", "a bound without a name").replace("_", " "))
