"""Mechanisms of released packages that the experiment audits, each with its claim.

A case describes one mechanism of a package. The description does not import the package; a separate
process imports it to build the mechanism. The facts in a case (such as claim, true loss and cause
of a fault) hold for the package version that the case states.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ...errors import choice, invalid
from ...report.shown import Shown

Reading = Literal["claim", "known misuse", "relation unclear", "release unclear", "source only"]
"""Conclusion that a refutation of a claim allows.

"claim" means that the claim is violated. The other four values state why a refutation is not a
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
"""Environments, each with the packages that can be installed in it together."""

PACKAGES: Final = tuple(name for names in ENVIRONMENTS.values() for name in names)
"""Names of the packages on PyPI, in the order of the table."""

_MODULES: Final = ("diffprivlib", "google", "opendp", "local", "training", "small", "databases")
"""Names of the modules that define cases, without the suffix `_cases`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Facts(Shown):
    """Facts about a mechanism of a released package.

    `Case` (the description) and `Row` (the result of the audit) inherit these fields.

    Args:
        package: name of the package on PyPI.
        version: package version for which the facts were established. In a `Row`, it is the version
            that was audited.
        name: the audited call with its parameters, as text.
        claim: epsilon that the package claims for this call.
        delta: claimed delta.
        relation: description of which inputs are neighbours.
        stated: place in the package or its documentation that states the claim and the relation.
        release: description of the value that a user of the package publishes.
        reading: conclusion if the audit refutes the claim. "claim" means that the claim is
            violated. The other values state why a refutation is not a violation.
        true_loss: true privacy loss on the audited pair, computed without dpcore, or None if it is
            not known.
        cause: cause of a violation in one sentence, with file and line.
        disclosure: web address of a public issue or fix, or "reported YYYY-MM-DD" if the fault was
            reported privately.
        fixed: first version without the fault, or "".
        reply: reply of the package's maintainers in one sentence, or "".
        alteration: change that was necessary to make the package run, or "".
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
    """One mechanism of a released package, with its claim and the audited pair of inputs.

    Args:
        build: function without arguments that returns the mechanism. A mechanism is an object that
            `dpcore.audit` accepts, a function `(x, size, rng)` that returns `size` outputs, or a
            function that takes one input and returns one output.
        pair: two neighbouring inputs.
        trials: number of outputs that the audit draws on each of the two inputs.
        attack: function without arguments that returns the attack. None means the default attack of
            `dpcore.audit`.
        seconds: time limit for the audit in seconds.
        slow: True if the experiment audits this case only with the option `slow`.
    """

    build: Callable[[], Any]
    pair: tuple[Any, Any]
    trials: int = 50_000
    attack: Callable[[], Any] | None = None
    seconds: float = 120.0
    slow: bool = False

    def __post_init__(self) -> None:
        """Check the fields with a fixed list of values, and the required texts."""
        choice("package", self.package, PACKAGES)
        choice("reading", self.reading, get_args(Reading))
        for name in ("version", "name", "relation", "stated"):
            if not getattr(self, name):
                raise invalid(name, f"given for {self.package}", getattr(self, name))


def import_attribute(path: str) -> Any:
    """Import a module by its dotted name, and return the module or one of its attributes.

    In "math:sqrt", the attribute follows the colon.

    Example:
        >>> import_attribute("math:sqrt")(4.0)
        2.0
    """
    module, _, name = path.partition(":")
    value = importlib.import_module(module)
    for part in filter(None, name.split(".")):
        value = getattr(value, part)
    return value


def list_cases(package: str, *, slow: bool = False) -> tuple[Case, ...]:
    """List the cases of a package.

    Args:
        package: one of `PACKAGES`.
        slow: True to include the slow cases.

    Returns:
        The cases, in the order in which the file defines them.

    Example:
        >>> list_cases("numpy")[0].claim
        1.0
    """
    choice("package", package, PACKAGES)
    modules = (importlib.import_module(f".{name}_cases", __package__) for name in _MODULES)
    cases = [case for module in modules for case in module.CASES]
    return tuple(case for case in cases if case.package == package and (slow or not case.slow))
