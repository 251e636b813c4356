"""The class of all text systems: the claim, what is true, vectors, the worst pair, folders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from inspect import signature
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from ...calibration import RealEpsilon
from ...errors import instance, invalid
from ...records import Pair, Shown
from ...streams import Rng
from ...torch import PrivateEncoder
from ...torch.mechanisms import EncoderMechanism
from ...torch.telling import rows
from ..corpus import Corpus
from .folders import Saved

__all__ = ["Labelling", "TextSystem"]


class Labelling:
    """A model that predicts the labels of texts."""

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Predict the labels of texts, shape `(len(texts),)`."""
        raise NotImplementedError

    def accuracy(self, corpus: Corpus, *, rng: Rng = None) -> float:
        """Compute the share of texts whose label is predicted correctly.

        Args:
            corpus: texts with labels, such as `corpus.test`.
            rng: of the noise, as in `encode`.

        Raises:
            TypeError: if it is no `Corpus`.
            ValueError: if it has no labels, or the model is not fitted.
        """
        if instance("corpus", corpus, Corpus).labels is None:
            raise invalid("corpus", "one with labels", corpus)
        # A model without noise has no argument for it.
        noise = {} if rng is None else {"rng": rng}
        return float(np.mean(self.predict(corpus.texts, **noise) == corpus.labels))


class TextSystem(Saved, Shown):
    """A system that sends noisy vectors of texts, once it is fitted.

    A system has `fit`, `protect`, and `state`, `saved_modules` and `restore` of `Saved`; all else
    has a default. A system that rewrites texts has a `rewriter`, too.

    Attributes:
        epsilon: the claim.
        private: the fitted encoder with transform and noise; None before `fit`.
        trained: how it was trained; None before `fit`.
    """

    epsilon: float
    private: PrivateEncoder | None = None

    @property
    def claim(self) -> float | None:
        """The epsilon claimed for any two texts."""
        return self.epsilon

    @property
    def real(self) -> RealEpsilon | None:
        """Epsilon that the noise really gives for any two texts; None where it is not known."""
        return None if self.private is None else self.private.real

    @property
    def true_epsilon(self) -> float:
        """The epsilon that the noise really gives for any two texts: computed, no claim.

        inf where none holds; NaN while it is not known.
        """
        return math.nan if self.private is None else self.private.true_epsilon

    @property
    def verdict(self) -> str:
        """Verdict on whether the claim holds for any two texts, in a few words."""
        found, claim = self.true_epsilon, self.claim
        if math.isnan(found):
            return "not fitted"
        level = f"true epsilon {found:.6g}" if math.isfinite(found) else "no epsilon at all"
        false = claim is not None and found > claim * (1.0 + 1e-9)
        return f"{'THE CLAIM IS FALSE: ' * false}{level} for any two texts"

    def clean(self, texts: Sequence[str]) -> Any:
        """Compute the vectors without noise: not private.

        Args:
            texts: strings, none of them empty.

        Returns:
            A tensor of shape `(len(texts), d)`.
        """
        return self.require_private("encodes").clean(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Compute noisy vectors, with fresh noise at every call.

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
        return self.require_private("encodes").encode(texts, rng=rng)

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """Find the two texts with the largest exact loss of all pairs.

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
        return self.require_private("compares texts").worst_pair(texts, progress=progress)

    @property
    def worst(self) -> tuple[Pair, float | None] | None:
        """The last pair that `worst_pair` found, with its exact loss; None before."""
        return None if self.private is None else self.private.worst

    @property
    def name(self) -> str:
        """Name in reports: the class, and the arguments that are not its defaults."""
        usual = {one.name: one.default for one in signature(type(self)).parameters.values()}
        said = [f"{name}={v!r}" for name, v in self.arguments.items() if v != usual[name]]
        return f"{type(self).__name__}({', '.join(said)})"

    def details(self) -> dict[str, str]:
        """Return what `print` shows of this model alone, by its labels."""
        return {}

    def as_mechanism(self) -> EncoderMechanism:
        """Return the mechanism that an audit tests: text to noisy vectors."""
        made = self.require_private("is audited").as_mechanism()
        made.name = self.name
        return made

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        self.require_private("is moved").to(device)
        return self

    @property
    def _is_fitted(self) -> bool:
        return self.private is not None

    def require_private(self, what: str) -> PrivateEncoder:
        """Return the fitted encoder; before `fit` raise an error that says what cannot be done."""
        self.require_fitted(what)
        assert self.private is not None
        return self.private

    def _find_pair(self, texts: Sequence[str], progress: bool | None) -> None:
        """Look for the largest pair of the training texts, unless the training was ended early."""
        if self.trained is not None and not self.trained.partial and len(set(texts)) > 1:
            # Whoever ends the search by Ctrl-C keeps the model.
            with suppress(KeyboardInterrupt):
                self.worst_pair(texts, progress=progress)

    def __repr__(self) -> str:
        """Format the arguments, whether the claim holds, and the largest loss that was found."""
        found = "" if self.private is None else self.private.worst_found
        return f"{self.name[:-1]}; {self.verdict}{found})"

    def __str__(self) -> str:
        """Return what is claimed, what is true, for whom, and how it was trained."""
        if self.private is None:
            claim = "none" if self.claim is None else f"epsilon {self.claim:g}, for any two texts"
            found = {"claim": claim, "true": self.verdict, "trained": "not yet: model.fit(corpus)"}
        else:
            found = dict(rows(self.private))
            found["not covered"] = "the texts that the weights were fitted to"
            found |= self.details()
        return "\n".join([repr(self), *(f"  {label:<12} {line}" for label, line in found.items())])
