"""Kinds of recorded outputs, their bounds, and guesses about canaries (training examples)."""

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
from ..report.plain import register_type
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
    """Numbers of right and wrong guesses about the canaries of one training run.

    A canary is a training example that is included or left out by a coin flip. A guess states
    whether a canary was included.

    Args:
        guessed_in: number of guesses that a canary was included.
        correct_in: number of right guesses that a canary was included.
        guessed_out: number of guesses that a canary was left out.
        correct_out: number of right guesses that a canary was left out.
        canaries: number of all canaries, with or without a guess.

    Raises:
        TypeError: if a number is not an integer.
        ValueError: if a number is out of range, or if no guess was made.

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
        """Number of all guesses about canaries. A canary without a guess is not counted."""
        return self.guessed_in + self.guessed_out

    @property
    def correct(self) -> int:
        """Number of right guesses about canaries."""
        return self.correct_in + self.correct_out

    def bound(self, name: str, delta: float, confidence: float) -> float:
        """Compute a certified lower bound on epsilon from these guesses about canaries.

        `name` is the name of a bound for audits of one training run, such as "one_run". The bound
        is for the given delta. It holds with probability `confidence`.
        """
        bound = OUTPUTS_BOUNDS["one_run"][choice("name", name, [*OUTPUTS_BOUNDS["one_run"]])]
        return bound(self.guesses, self.correct, self.canaries, delta, confidence)

    def refutes(self, claim: Claim, confidence: float) -> bool:
        """Return True if these guesses about canaries refute a claimed trade-off curve.

        A true claim is refuted with a probability of at most `1 - confidence`.
        """
        return one_run_refutes(
            claim.least_type_one, self.guesses, self.correct, self.canaries, confidence
        )

    def parameter(self, claim: Claim, confidence: float) -> float:
        """Return the largest parameter for which these guesses about canaries refute the claim.

        The parameter is mu for a `GDP` claim, and rho for a `ZCDP` claim.
        """
        return _max_refuted_mu_rho(claim, self.guesses, self.correct, self.canaries, confidence)


register_type("Guesses", Guesses)


@lru_cache(maxsize=256)
def _max_refuted_mu_rho(
    claim: Claim, guesses: int, correct: int, canaries: int, confidence: float
) -> float:
    if isinstance(claim, GDP):
        return one_run_mu(guesses, correct, canaries, confidence)

    def refuted(curve: Claim) -> bool:
        return one_run_refutes(curve.least_type_one, guesses, correct, canaries, confidence)

    return claim.largest(refuted, _PARAMETER_RELATIVE_WIDTH)


@lru_cache(maxsize=256)
def guesses_needed_for(claim: Claim, canaries: int, confidence: float) -> int | None:
    """Compute how many guesses about canaries are enough to refute a claimed trade-off curve.

    A canary is a training example that is included or left out by a coin flip. All guesses are
    assumed to be right. The result is the smallest sufficient number.

    Args:
        claim: the claimed trade-off curve.
        canaries: number of canaries in the training run. If more guesses than canaries are needed,
            the function assumes one canary for each guess.
        confidence: confidence level of the refutation. A true claim is refuted with a probability
            of at most `1 - confidence`.

    Returns:
        The number of guesses, or None if 65,536 guesses are not enough.
    """

    def refutes(guesses: int) -> bool:
        many = max(canaries, guesses)
        return one_run_refutes(claim.least_type_one, guesses, guesses, many, confidence)

    return fewest_guesses(refutes, _MAX_GUESSES)
