"""Arguments of `dpcore.audit`: their names, types and defaults.

The signatures of `dpcore.audit` and of the pytest fixture `dp_audit` are made from this list.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, Literal, ParamSpec, get_args, get_type_hints

from .. import errors
from ..advice import suggest_word
from ..attacks import AttackName
from ..attacks.attack import Attack, AuditAttack
from ..bounds import BOUNDS, BoundName
from ..claims.trade_off import Claim
from ..pairs import Search
from ..pairs.neighbours import NeighbourArgument
from ..records import Pair
from ..results.audits import Audit
from ..streams import Rng

Route = Literal["auto", "integer", "sampled"]
Stop = Literal["fixed", "refuted"]

_Parameters = ParamSpec("_Parameters")


@dataclass(frozen=True)
class Arguments:
    """Arguments of one call of `dpcore.audit`, unchanged and not yet checked."""

    mechanism: Any
    pair: Pair | tuple[Any, Any] | Iterable[Pair] | Search | None = None
    _: KW_ONLY
    neighbour: NeighbourArgument | None = None
    null: bool = False
    attack: Attack | AuditAttack | AttackName | None = None
    trials: int | float | str | None = None
    start: int | float | str = 0
    seconds: float | None = None
    claim: float | Claim | None = None
    delta: float = 0.0
    confidence: float = 0.95
    bound: BoundName = "clopper_pearson"
    stop: Stop = "fixed"
    floats: bool = False
    pilot: int | float | str | None = None
    rng: Rng = None
    route: Route = "auto"
    block: int | float | str | None = None
    threads: int | None = None
    executor: Executor | None = None
    checkpoint: str | os.PathLike[str] | None = None
    same_bits: bool = True
    source: bool = True
    progress: bool | None = None

    def check_flags_and_words(self) -> None:
        """Check those arguments whose value must be True, False or a word from a list.

        Raises:
            TypeError: if the value of such an argument is of the wrong type.
            ValueError: if the value is not one of the allowed words.
        """
        errors.choice("route", self.route, get_args(Route))
        errors.choice("bound", self.bound, tuple(BOUNDS))
        errors.choice("stop", self.stop, get_args(Stop))
        errors.flag("floats", self.floats)
        errors.flag("same_bits", self.same_bits)


def collect_audit_arguments(mechanism: Any, pair: Any, options: Mapping[str, Any]) -> Arguments:
    """Return all arguments of one call of `dpcore.audit`.

    Arguments that are not in `options` get their default values.

    Args:
        mechanism: the argument `mechanism` of the call.
        pair: the argument `pair` of the call.
        options: all other given arguments, by name.

    Raises:
        TypeError: if `options` contains a name that is not an argument of `dpcore.audit`.
    """
    names = [argument.name for argument in fields(Arguments)]
    for name in options:
        if name not in names:
            meant = suggest_word(name, names)
            raise TypeError(f"dpcore.audit has no argument {name!r}{meant}")
    return Arguments(mechanism, pair, **options)


def with_signature_of(
    kind: Callable[_Parameters, Arguments],
) -> Callable[[Callable[[Arguments], Audit]], Callable[_Parameters, Audit]]:
    """Return a decorator for functions whose only argument is an object of the class `kind`.

    The decorated function accepts the fields of `kind` as separate arguments. From these arguments,
    the decorated function makes an object of `kind`, and then passes this object to the original
    function.

    Args:
        kind: the class `Arguments`. Type checkers and `help` show the fields of this class as the
            arguments of the decorated function.

    Returns:
        The decorator.
    """
    signature, hints = inspect.signature(kind), get_type_hints(kind)
    parameters = [
        parameter.replace(annotation=parameter.empty) for parameter in signature.parameters.values()
    ]
    head = str(inspect.Signature(parameters)).strip("()")
    values = ", ".join(f"{name}={name}" for name in signature.parameters)

    def decorate(function: Callable[[Arguments], Audit]) -> Callable[_Parameters, Audit]:
        function.__annotations__ = {name: hints[name] for name in signature.parameters}
        function.__annotations__["return"] = Audit
        # This function has exactly these arguments, so the interpreter's errors name them
        # correctly.
        text = f"lambda {head}: function(kind({values}))"
        call: Callable[_Parameters, Audit] = eval(text, {"function": function, "kind": kind})
        vars(call)["__signature__"] = signature.replace(return_annotation="Audit")
        return functools.update_wrapper(call, function)

    return decorate
