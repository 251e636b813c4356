"""What trained encoders with noise share: the claim, what is true, vectors, the worst pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Self

import numpy.typing as npt

from ...calibration import RealEpsilon
from ...errors import invalid
from ...records import Pair, Shown
from ...streams import Rng
from ...torch import PrivateEncoder
from ...torch.mechanisms import EncoderMechanism

__all__ = ["Protected"]


class Protected(Shown):
    """A model that sends noisy vectors of texts, once it is fitted.

    Attributes:
        epsilon: the claim.
        private: the fitted encoder with transform and noise; None before `fit`.
    """

    epsilon: float
    private: PrivateEncoder | None = None

    @property
    def claim(self) -> float | None:
        """The epsilon claimed for any two texts."""
        return self.epsilon

    @property
    def real(self) -> RealEpsilon | None:
        """What the noise really gives for any two texts; None where that is not known."""
        return None if self.private is None else self.private.real

    @property
    def true_epsilon(self) -> float:
        """The epsilon that the noise really gives for any two texts: computed, no claim.

        inf where none holds; NaN while it is not known.
        """
        return math.nan if self.private is None else self.private.true_epsilon

    @property
    def verdict(self) -> str:
        """Whether the claim holds for any two texts, in a few words."""
        found, claim = self.true_epsilon, self.claim
        if math.isnan(found):
            return "not fitted"
        level = f"true epsilon {found:.6g}" if math.isfinite(found) else "no epsilon at all"
        false = claim is not None and found > claim * (1.0 + 1e-9)
        return f"{'THE CLAIM IS FALSE: ' * false}{level} for any two texts"

    def clean(self, texts: Sequence[str]) -> Any:
        """The vectors without noise: not private.

        Args:
            texts: strings, none of them empty.

        Returns:
            A tensor of shape `(len(texts), d)`.
        """
        return self.protected("encodes").clean(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Noisy vectors, with fresh noise at every call.

        Args:
            texts: strings, none of them empty.
            rng: None takes entropy of the operating system; an int or a Generator repeats the
                noise, which is then known to whoever knows it.

        Returns:
            float32, shape `(len(texts), d)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return self.protected("encodes").encode(texts, rng=rng)

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """The two texts with the largest exact loss of all pairs.

        Computed from the declared noise, not certified.

        Args:
            texts: at least two different strings.
            progress: show a bar; None shows it for long work on a terminal or in a notebook.

        Returns:
            The pair of texts, which the model remembers for `print`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, a text is empty, or all are equal.
        """
        return self.protected("compares texts").worst_pair(texts, progress=progress)

    @property
    def worst(self) -> tuple[Pair, float | None] | None:
        """The last pair that `worst_pair` found, with its exact loss; None before."""
        return None if self.private is None else self.private.worst

    @property
    def name(self) -> str:
        """What reports call the model: its class and its arguments."""
        raise NotImplementedError

    def details(self) -> dict[str, str]:
        """What `print` shows of this model beside what is true of all, by its labels."""
        return {}

    def as_mechanism(self) -> EncoderMechanism:
        """What an audit is made of: text to noisy vectors."""
        made = self.protected("is audited").as_mechanism()
        made.name = self.name
        return made

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        self.protected("is moved").to(device)
        return self

    def protected(self, what: str) -> PrivateEncoder:
        """The fitted encoder; a ValueError before `fit`, which says what cannot be done."""
        if self.private is None:
            raise invalid("model", f"fitted before it {what}: model.fit(corpus)", self)
        return self.private

    def __repr__(self) -> str:
        """The arguments, whether the claim holds, and the largest loss that was found."""
        found = "" if self.private is None else self.private.worst_found
        return f"{self.name[:-1]}; {self.verdict}{found})"
