"""Mechanisms of released packages that the experiment audits, each with its claim.

A case describes one mechanism of a package. The description does not import the package. A separate
process imports the package and builds the mechanism. The facts in a case (such as claim, true loss
and cause of a fault) hold for the package version that the case states.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ...errors import choice, invalid
from ...report.shown import Shown

Reading = Literal["claim", "known misuse", "relation unclear", "release unclear", "source only"]
"""Meaning of a refuted claim.

"claim" means that the claim is violated. The other four values state why a refuted claim is not a
violation. "known misuse": the call uses the package in a way that is known to be wrong. "relation
unclear": the package does not state which inputs are neighbours. "release unclear": the package
does not state which values are released. "source only": the source code shows a fault, but the
audit does not.
"""

ENVIRONMENTS: Final[dict[str, tuple[str, ...]]] = {
    "field": (
        "diffprivlib", "python-dp", "opendp", "pipeline-dp", "jax-privacy", "opacus", "torch",
        "numpy", "scipy", "pure-ldp", "multi-freq-ldpy", "ldp-toolbox", "hll-py", "diffpriv-pure",
        "ornl-presto", "eeprivacy", "dp-group-stats", "dwork", "pypantera", "mbi",
    ),
    "trasgodp": ("trasgodp",),
    "smartnoise": ("smartnoise-sql", "smartnoise-synth"),
    "nprr": ("nprr",),
    "tmlt": ("tmlt-core",),
}  # fmt: skip
"""Python environments by name. Each has a list of packages that can be installed together."""

PACKAGES: Final = tuple(name for names in ENVIRONMENTS.values() for name in names)
"""Names of the packages on PyPI, in the order of the table."""

_MODULES: Final = ("diffprivlib", "google", "opendp", "local", "training", "small", "databases")
"""Names of the modules that define cases, without the suffix `_cases`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Facts(Shown):
    """Facts about one mechanism of a released package, such as its claimed epsilon.

    `Case` describes a mechanism, and `Row` is the result of its audit. Both classes inherit these
    fields.

    Args:
        package: name of the package on PyPI.
        version: package version to which the facts apply. In a `Row`, this is the version that was
            audited.
        name: audited function call with its parameters, as text.
        claim: epsilon that the package claims for this call.
        delta: delta that the package claims for this call.
        relation: description of the pairs of inputs that the package calls neighbours.
        stated: place where the claim and the neighbours are stated: a file and line, or a page of
            the documentation.
        release: description of the value that the user of the package publishes.
        reading: meaning of a refuted claim. "claim" means that the package violates its claim.
            Every other value states why a refuted claim is not a violation, such as "known misuse".
        true_loss: true privacy loss between the two audited inputs, computed without dpcore. None
            if the loss is not known.
        cause: one sentence on the cause of the violation, with file and line, or "" if no cause is
            known.
        disclosure: web address of a public issue or fix, or "reported YYYY-MM-DD" if the fault was
            reported privately.
        fixed: first version of the package without the fault, or "" if every version has the fault.
        reply: one sentence on the reply of the maintainers, or "" if they did not reply.
        alteration: change of the package that was necessary to run it, or "" if no change was
            necessary.
    """

    package: str
    version: str
    name: str
    claim: float
    delta: float = 0.0
    relation: str
    stated: str
    release: str = "the returned value"
    reading: Reading = "claim"
    true_loss: float | None = None
    cause: str = ""
    disclosure: str = ""
    fixed: str = ""
    reply: str = ""
    alteration: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Case(Facts):
    """One mechanism of a released package, with the claim and two inputs for an audit.

    Args:
        build: function without arguments that returns the mechanism. The mechanism can be an object
            that `dpcore.audit` accepts. It can also be a function `(x, size, rng)` that returns
            `size` outputs, or a function that takes one input and returns one output.
        pair: two neighbouring inputs on which the mechanism is audited.
        trials: number of outputs that the audit draws on each of the two inputs.
        attack: function without arguments that returns the attack, or None for the default attack
            of `dpcore.audit`.
        seconds: time limit for the audit of this mechanism, in seconds.
        slow: True if the experiment audits this mechanism only when its option `slow` is True.
    """

    build: Callable[[], Any]
    pair: tuple[Any, Any]
    trials: int = 50_000
    attack: Callable[[], Any] | None = None
    seconds: float = 120.0
    slow: bool = False

    def __post_init__(self) -> None:
        """Check that `package` and `reading` have an allowed value, and that no text is missing."""
        choice("package", self.package, PACKAGES)
        choice("reading", self.reading, get_args(Reading))
        for name in ("version", "name", "relation", "stated"):
            if not getattr(self, name):
                raise invalid(name, f"given for {self.package}", getattr(self, name))


def import_object(path: str) -> Any:
    """Import a module, and return the module or one of its attributes.

    `path` is the dotted name of the module. A colon and the name of an attribute can follow, as in
    "math:sqrt".

    Example:
        >>> import_object("math:sqrt")(4.0)
        2.0
    """
    module, _, name = path.partition(":")
    value = importlib.import_module(module)
    for part in filter(None, name.split(".")):
        value = getattr(value, part)
    return value


def list_mechanisms(package: str, *, slow: bool = False) -> tuple[Case, ...]:
    """List the mechanisms that the experiment audits in a released package.

    Args:
        package: name of the package on PyPI, one of `PACKAGES`.
        slow: True to include the mechanisms whose audit is slow.

    Returns:
        One description (`Case`) for each mechanism, in the order in which the source files define
        them.

    Example:
        >>> list_mechanisms("numpy")[0].claim
        1.0
    """
    choice("package", package, PACKAGES)
    modules = (importlib.import_module(f".{name}_cases", __package__) for name in _MODULES)
    cases = [case for module in modules for case in module.CASES]
    return tuple(case for case in cases if case.package == package and (slow or not case.slow))
