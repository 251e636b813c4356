"""The default attack: it combines all attacks that apply and takes the best score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from ..errors import mistyped
from ..events.event import Score
from ..records import Array, Floats, Pair
from ..suggestions import explain_argument_errors
from .additive import Additive
from .attack import Choice, CrossScored, Goal, ScoreAttack, merit_of
from .classifier import Discriminant
from .histogram import Histogram
from .products import Products
from .residues import Residues
from .support import Support
from .threshold import Threshold
from .words import Words

_DEFAULT_ATTACKS: tuple[ScoreAttack, ...] = (
    Threshold(), Histogram(), Additive(), Support(), Products(), Residues(), Words(),
    Discriminant(),
)  # fmt: skip
_MAX_TABULATED_BYTES: Final = 2**12
"""If an array has texts with more bytes than this, the texts are not tabulated as a whole."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class Auto(ScoreAttack):
    """The default attack: it combines several attacks and uses the best score of all of them.

    Each attack fits scores (functions from outputs to real numbers) on one part of the pilot (the
    first draws of an audit). On another part of the pilot, the best score and its threshold are
    chosen.

    If outputs are not arrays of real numbers, the attacks use whole outputs, and also these numbers
    and pieces of each output:

    - for complex numbers, the real and the imaginary part;
    - for structured arrays, the fields;
    - for sequences, the entry at each place and the length;
    - for mappings, the value of each key and the number of keys;
    - for strings, the letters near the start and the end, the number of times that each letter
      occurs, the length, and the words.

    An object of any other type is used only as a whole. If the mechanism has a method
    `log_ratio(outputs, pair)`, this method is one more score.

    The chosen event does not depend on the installed packages or on the speed of the machine.

    Args:
        members: the attacks that are combined. The attack `Classifier()` is not among the defaults.
            Add it if the entries of an output depend on each other in a way that a sum over
            features cannot show.

    Raises:
        TypeError: if a member is not an instance of `dpcore.attacks.attack.ScoreAttack`.

    Source:
        Bichsel et al. (2021), section 5: separate draws for the fit, the choice and the count.

    Example:
        >>> import dpcore
        >>> def geometric(x, size, rng):
        ...     return x + rng.geometric(0.5, (size, 1)) - rng.geometric(0.5, (size, 1))
        >>> pair = dpcore.Pair([0], [1])
        >>> report = dpcore.audit(geometric, pair, attack=Auto(), trials=10**5, claim=0.5, rng=1)
        >>> report.verdict, 0.6 < report.epsilon_lower < 0.6932
        ('refuted', True)
    """

    looks_at_floats: ClassVar[bool] = True
    takes_stated_scores: ClassVar[bool] = True

    members: tuple[ScoreAttack, ...] = _DEFAULT_ATTACKS

    def __post_init__(self) -> None:
        """Check that every member is an attack that makes scores."""
        for member in self.members:
            if not isinstance(member, ScoreAttack):
                raise mistyped("members", "attacks that make scores", member)

    def candidates(self, outputs: Array, outputs_prime: Array, pair: Pair) -> tuple[Score, ...]:
        """Return the scores of all attacks that this attack combines, without duplicates."""
        scores_tried: list[Score] = []
        is_long = outputs.dtype.itemsize > _MAX_TABULATED_BYTES
        additive = any(isinstance(member, Additive) for member in self.members)
        for member in self.members:
            # For floats, the tables of Additive hold the same cells, and Rust looks them up. Long
            # texts
            # do not repeat, and their letters are parts.
            is_in_other = (outputs.dtype.kind == "f" and additive) or is_long
            if isinstance(member, Histogram) and is_in_other:
                continue
            if isinstance(member, (Products, Residues, Words)):
                # The fallback scores are left out, because other members have a score here.
                scores = member.telling(outputs, outputs_prime)
            else:
                scores = member.candidates(outputs, outputs_prime, pair)
            scores_tried += [score for score in scores if score not in scores_tried]
        return tuple(scores_tried)

    def joint(self, columns: Floats, columns_prime: Floats) -> tuple[Score, ...]:
        """Collect, from all combined attacks, the scores that read several numbers of each output.

        One of the numbers may be the length of a string. The two arguments contain the numbers for
        outputs on x and on x', shape `(size, numbers)`. Each column has few distinct values.
        """
        return tuple(
            score for member in self.members for score in member.joint(columns, columns_prime)
        )

    def seldom(
        self, outputs: Sequence[Array], outputs_prime: Sequence[Array], goal: Goal
    ) -> Choice | None:
        """Return the best rare event that one of the combined attacks finds, or None."""
        choices = [member.seldom(outputs, outputs_prime, goal) for member in self.members]
        return max((choice for choice in choices if choice), key=merit_of, default=None)

    def cross_score(self, outputs: Sequence[Array], outputs_prime: Sequence[Array]) -> CrossScored:
        """Return a cross-fitted score of a combined attack, and the score's value for each output.

        Cross-fitted means that the value of each output comes from a fit without this output. The
        first attack that has a cross-fitted score is used. The result is None if no attack has a
        cross-fitted score.
        """
        scores = (member.cross_score(outputs, outputs_prime) for member in self.members)
        return next(filter(None, scores), None)

    def no_scores(self, outputs: Array) -> None:
        """Raise a ValueError with the message that the attack does not apply to the outputs.

        If the outputs have no entries, do not raise an error.
        """
        if outputs.size:
            ScoreAttack.no_scores(self, outputs)
