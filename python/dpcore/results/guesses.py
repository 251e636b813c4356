"""Evidence from recorded outputs: kinds of rows, their bounds, and guesses about canaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from ..bounds import BOUNDS, ONE_RUN, one_run_mu, one_run_refutes
from ..bounds.binomial import find_declaration
from ..bounds.canaries import fewest_guesses
from ..claims.trade_off import GDP, Claim
from ..errors import choice, integer
from ..report.plain import declare
from ..report.shown import Shown

ROWS: Final = {
    "independent": "each row is an output of its own run, drawn independently of all others",
    "one_run": "all rows are scores of canaries from a single run, each of them included or left "
    "out by its own fair coin",
}
"""Values of the argument `rows` and their meanings."""

Rows = Literal["independent", "one_run"]

OUTPUTS_BOUNDS: Final[Mapping[str, Mapping[str, Callable[..., float]]]] = {
    "independent": {name: of for name, of in BOUNDS.items() if find_declaration(of).recorded},
    "one_run": ONE_RUN,
}
"""Bounds by name for each kind of rows. They also hold for unequal numbers of rows on x and x'."""

_PARAMETER_RELATIVE_WIDTH: Final = 5e-3
"""Relative width of the interval at which the search for rho ends."""
_MAX_GUESSES: Final = 2**16


@dataclass(frozen=True, slots=True, repr=False)
class Guesses(Shown):
    """Numbers of right and wrong guesses about which canaries were included in a run.

    Args:
        guessed_in: number of canaries guessed to be included.
        correct_in: number of those canaries that were included.
        guessed_out: number of canaries guessed to be left out.
        correct_out: number of those canaries that were left out.
        canaries: number of all canaries, with or without a guess.

    Raises:
        TypeError: if a number is not an integer.
        ValueError: if a number is out of range, or if there is no guess.

    Example:
        >>> found = Guesses(50, 40, 50, 35, 1000)
        >>> found.guesses, found.correct
        (100, 75)
    """

    guessed_in: int
    correct_in: int
    guessed_out: int
    correct_out: int
    canaries: int

    def __post_init__(self) -> None:
        """Check the ranges."""
        integer("canaries", self.canaries, 1)
        integer("guessed_in", self.guessed_in, 0, self.canaries)
        # At least one guess in all.
        low = 0 if self.guessed_in else 1
        integer("guessed_out", self.guessed_out, low, self.canaries - self.guessed_in)
        integer("correct_in", self.correct_in, 0, self.guessed_in)
        integer("correct_out", self.correct_out, 0, self.guessed_out)

    @property
    def guesses(self) -> int:
        """Number of guesses. A canary without a guess is an abstention and does not count."""
        return self.guessed_in + self.guessed_out

    @property
    def correct(self) -> int:
        """Number of guesses that were right."""
        return self.correct_in + self.correct_out

    def bound(self, name: str, delta: float, confidence: float) -> float:
        """Compute a certified lower bound on epsilon from the guesses.

        `name` is the name of a bound for one run, such as "one_run".
        """
        bound = OUTPUTS_BOUNDS["one_run"][choice("name", name, [*OUTPUTS_BOUNDS["one_run"]])]
        return bound(self.guesses, self.correct, self.canaries, delta, confidence)

    def refutes(self, claim: Claim, confidence: float) -> bool:
        """Return True if the guesses refute a claim that is a trade-off curve."""
        return one_run_refutes(
            claim.least_type_one, self.guesses, self.correct, self.canaries, confidence
        )

    def parameter(self, claim: Claim, confidence: float) -> float:
        """Return the largest mu (for a `GDP` claim) or rho (for `ZCDP`) that the guesses refute."""
        return _certified_parameter(claim, self.guesses, self.correct, self.canaries, confidence)


declare("Guesses", Guesses)


@lru_cache(maxsize=256)
def _certified_parameter(
    claim: Claim, guesses: int, correct: int, canaries: int, confidence: float
) -> float:
    if isinstance(claim, GDP):
        return one_run_mu(guesses, correct, canaries, confidence)

    def refuted(curve: Claim) -> bool:
        return one_run_refutes(curve.least_type_one, guesses, correct, canaries, confidence)

    return claim.largest(refuted, _PARAMETER_RELATIVE_WIDTH)


@lru_cache(maxsize=256)
def guesses_needed_for(claim: Claim, canaries: int, confidence: float) -> int | None:
    """Compute the smallest number of guesses that refutes a claimed curve if all guesses are right.

    Args:
        claim: the curve.
        canaries: number of canaries of the run. For a larger number of guesses, the function
            assumes as many canaries as guesses.
        confidence: probability that the bound holds.

    Returns:
        The number of guesses, or None if 65,536 guesses are not enough.
    """

    def refutes(guesses: int) -> bool:
        many = max(canaries, guesses)
        return one_run_refutes(claim.least_type_one, guesses, guesses, many, confidence)

    return fewest_guesses(refutes, _MAX_GUESSES)
