"""Cases of the experiment: mechanisms of released packages, each with the claim of its authors.

A case is only a description. Its package is imported in a separate process when the mechanism is
built. The facts (claim, place of the claim, true loss, cause) hold for the version in the case.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from ...errors import choice, invalid
from ...report.shown import Shown

Reading = Literal["claim", "known misuse", "relation unclear", "release unclear", "source only"]
"""Meaning of a refutation of a case.

"claim": the claim is violated. The other four values state why a refutation is not a violation.
"known misuse": the arguments are a known misuse. "relation unclear" and "release unclear": the
package does not state which inputs are neighbours, or which values are released. "source only": the
fault is visible in the source, and the audit does not show it.
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
"""Names of the packages on the index, in the order of the table."""

_MODULES: Final = ("diffprivlib", "google", "opendp", "local", "training", "small", "databases")
"""Files of the cases, without the ending `_cases`."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Facts(Shown):
    """The facts about a mechanism of a released package, which a case and its row share.

    Args:
        package: name of the package on the index.
        version: version for which the facts were established; in a row, the version that ran.
        name: the call, with its parameters.
        claim: the epsilon that the package claims for this call.
        delta: the delta of the claim.
        relation: the neighbouring relation, in words.
        stated: the place where the package states claim and relation.
        release: description of the value that the user of the package releases.
        reading: meaning of a refutation.
        true_loss: the loss on this pair, computed without dpcore, or None if it is not known.
        cause: the reason for a violation, in one sentence, with file and line.
        disclosure: address of a public issue or fix, or "reported YYYY-MM-DD".
        fixed: version in which the fault is mended, or "".
        reply: the maintainers' reply in one sentence, or "".
        alteration: change in the package that it needs to run, or "".
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
    """One mechanism of a released package, its claim and the pair on which it is audited.

    Args:
        build: returns the mechanism: an object that `dpcore.audit` takes, `(x, size, rng)`, or a
            function of one input that returns one output.
        pair: two inputs that are neighbours under the relation.
        trials: draws per side.
        attack: returns the attack, or None for the default.
        seconds: time limit of the case.
        slow: True for a case that runs with `slow` only.
    """

    build: Callable[[], Any]
    pair: tuple[Any, Any]
    trials: int = 50_000
    attack: Callable[[], Any] | None = None
    seconds: float = 120.0
    slow: bool = False

    def __post_init__(self) -> None:
        """Check the fields with a list of values, and that the sources of the claim are given."""
        choice("package", self.package, PACKAGES)
        choice("reading", self.reading, get_args(Reading))
        for name in ("version", "name", "relation", "stated"):
            if not getattr(self, name):
                raise invalid(name, f"given for {self.package}", getattr(self, name))


def import_attribute(path: str) -> Any:
    """Import a module by its dotted path and return it, or the attribute after the colon.

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
        slow: True includes the slow cases.

    Returns:
        The cases, in the order of their file.

    Example:
        >>> list_cases("numpy")[0].claim
        1.0
    """
    choice("package", package, PACKAGES)
    modules = (importlib.import_module(f".{name}_cases", __package__) for name in _MODULES)
    cases = [case for module in modules for case in module.CASES]
    return tuple(case for case in cases if case.package == package and (slow or not case.slow))
