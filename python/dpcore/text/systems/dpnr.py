"""DPNR: private representations of texts by noise behind a min-max normalisation, as published."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from typing import Any, Final, Literal, Self, get_args

from ... import calibration, sensitivity
from ...calibration import RealEpsilon, real_epsilon
from ...errors import choice, flag, invalid
from ...hints import hinted
from ...mechanisms import positive
from ...records import Pair
from ...streams import Rng
from ...torch import LaplaceNoise, MinMax, PrivateEncoder, SharedNoise
from ...torch.private import transform_of
from ...torch.saving import TRANSFORMS, described
from .classifier import TextClassifier
from .masking import WordDropout
from .system import TextSystem
from .training import make_recipe

__all__ = ["DPNR", "NOISES", "SCALES", "Noise", "Scale"]

Noise = Literal["iid", "shared"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)
"""A draw of noise for every entry, as the paper says; or one for a whole row, as its code does."""
Scale = Literal["published", "sound"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)
"""Noise of scale 1/epsilon, as published; or of the L1 diameter of the rows over epsilon."""


class DPNR(TextSystem, TextClassifier):
    """Differentially private neural representation, the published system: its claim is false.

    ``encode(text) = m(f(text)) + r``: f is the extractor, m shifts and scales a row to smallest
    entry 0 and largest 1, r is Laplace noise of scale b, and a linear classifier is trained
    behind it. The paper takes b = 1/epsilon, the largest change of one entry; all d entries may
    change, so that any two texts have epsilon d. ``scale="sound"`` takes b = d/epsilon, whose claim
    holds; a `Clip` in place of min-max is the third way.

    An epsilon covers one encoding of one text by the fitted weights, against any other text: k
    encodings cost k times, and the texts that the weights were fitted to are not covered at all.

    Args:
        dim: entries d of a vector, at least 2; None for 32, or where an `extractor` says it.
        epsilon: the claim, in (0, 1e300].
        extractor: an encoder of texts in place of the trained mean over words and word pairs, for
            example `TfidfSVD(768)` or a SentenceTransformer; its own weights are not trained.
        transform: None for min-max; or `Clip` (of `dpcore.torch` or `dpcore.sensitivity`), or
            another transform of `PrivateEncoder`: then the scale is sound.
        noise: "iid", a draw for every entry, as in the paper; "shared", one draw for a whole row,
            as in the released code: subtracting the smallest entry gives the clean row back.
        scale: "published" or "sound"; None is published with min-max.
        dropout: `WordDropout`: words are masked in `encode`, and in training wherever noise is
            added. There is no exact loss then, and any two texts still have the epsilon above.
        unknown: "drop" leaves unknown words out of the mean; "token" maps them to a row that
            nothing has trained, as the study does.
        min_count: how often a word or word pair must occur in the training texts.

    Attributes:
        trained: how it was trained; None before `fit`.
        labels: the values that it tells apart.
        private: the fitted extractor with transform and noise; None before `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or arguments contradict each other.

    Source:
        Lyu, He and Li (2020), algorithms 1 and 2, and their released code (shared noise); Zouhri
        and Abecidan (2021) (the extractor, robust and adaptive training).

    Example:
        >>> from dpcore.text import generated, schedules
        >>> corpus = generated("topics", 600, rng=1)
        >>> model = DPNR(dim=16, epsilon=50.0).fit(
        ...     corpus, schedule=schedules.Constant(50.0), epochs=8, pair=False, rng=1
        ... )
        >>> model
        DPNR(dim=16, epsilon=50.0; THE CLAIM IS FALSE: true epsilon 800 for any two texts)
        >>> model.encode(corpus.test.texts, rng=2).shape
        (60, 16)
        >>> model.accuracy(corpus.test, rng=2) > 0.5
        True
    """

    @hinted
    def __init__(
        self,
        dim: int | None = None,
        *,
        epsilon: float,
        extractor: Any = None,
        transform: Any = None,
        noise: Noise = "iid",
        scale: Scale | None = None,
        dropout: WordDropout | None = None,
        unknown: Literal["drop", "token"] = "drop",
        min_count: int = 1,
    ) -> None:
        super().__init__(dim, extractor, dropout, unknown, min_count)
        self.epsilon = positive("epsilon", epsilon)
        self.noise = choice("noise", noise, NOISES)
        self.transform = transform_of(MinMax() if transform is None else transform)
        published = isinstance(self.transform, MinMax)
        self.scale = choice("scale", scale or SCALES[not published], SCALES)
        if self.scale == "published" and not published:
            raise invalid("scale", "'sound' for another transform than min-max", scale)

    def fit(
        self,
        corpus: Any,
        *,
        schedule: Any = None,
        epochs: int | None = None,
        batch: int = 64,
        lr: float = 2.0,
        decay: float = 0.9,
        pair: bool = True,
        rng: Rng = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> DPNR:
        """Train extractor and classifier by stochastic gradient descent on the cross entropy.

        Args:
            corpus: a `Corpus` with labels, of which the train part is read (all without a split);
                or what `prepare` made of one.
            schedule: the noise in training. None: none, and no masked words ("not robust").
                `schedules.Constant(epsilon)`: that of one epsilon ("robust"). Others change it
                over the epochs ("adaptive"); any function `(epoch, epochs, rng) -> epsilon` does,
                with epochs counted from 1. Its scale follows from the epsilon as that of `encode`.
            epochs: passes over the texts; None for as many as make the study's 2,226 steps, from 5
                to 35.
            batch: texts in a step.
            lr: learning rate of the first epoch.
            decay: by which it is multiplied after every epoch.
            pair: look for the training texts' largest pair afterwards, which `print` shows.
            rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator: initial
                weights, order, noise and masks follow from it.
            device: where it is trained and kept, such as "cuda"; None is the CPU.
            progress: show a bar; None shows it for long work on a terminal or in a notebook.

        Returns:
            The model itself. After Ctrl-C that of the last whole epoch, `trained.partial` set.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the corpus has no labels or no train part, a value is out of range, the
                schedule returns what is no epsilon, or the loss diverges.
            KeyboardInterrupt: on Ctrl-C before the first epoch has ended.

        Source:
            Lyu, He and Li (2020), algorithm 1; Zouhri and Abecidan (2021), algorithm 3.
        """
        flag("pair", pair)
        recipe = make_recipe(epochs, batch, lr, decay=decay)
        self.private = None
        texts = self._train(corpus, recipe, schedule, rng, device, progress)
        self.protect()
        if pair:
            self._find_pair(texts, progress)
        return self

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments that the model is made with, apart from an extractor, as plain data."""
        return {
            "dim": self.dim,
            "epsilon": self.epsilon,
            "transform": described("transform", self.transform, TRANSFORMS),
            "noise": self.noise,
            "scale": self.scale,
            "dropout": None if self.dropout is None else asdict(self.dropout),
            "unknown": self.unknown,
            "min_count": self.min_count,
        }

    def protect(self) -> None:
        """Put transform and noise behind the fitted extractor."""
        layer = self._layer(self.epsilon, self.head.in_features)
        # Masks would draw from the user's own generator while the width is asked for.
        with nullcontext() if self.dropout is None else self.extractor.whole():
            private = PrivateEncoder(
                self.extractor, self.transform, epsilon=self.epsilon, noise=layer, strict=False
            )
        self.private = private.to(self.head.weight.device)

    def _layer(self, epsilon: float, width: int) -> Any:
        kind = LaplaceNoise if self.noise == "iid" else SharedNoise
        if self.scale == "published":
            return kind(calibration.laplace(epsilon, 1.0))
        return kind(sensitivity.laplace_scale(epsilon, self.transform.range(width)))

    def _noise(self, epsilon: float) -> Any:
        return self._layer(epsilon, self.head.in_features)

    def _transform(self, rows: Any) -> Any:
        return self.transform(rows)

    @property
    def width(self) -> int | None:
        """Entries of a vector; None before `fit` where an extractor says it."""
        return self.dim if self.private is None else self.private.width

    @property
    def real(self) -> RealEpsilon | None:
        """Epsilon that the noise really gives; None for shared noise, or without a width."""
        if self.width is None:
            return None
        law = self._layer(self.epsilon, self.width).description
        return None if law is None else real_epsilon(law, self.transform.range(self.width))

    @property
    def true_epsilon(self) -> float:
        """The epsilon that the noise really gives for any two texts: computed, no claim.

        inf for shared noise; NaN while the width of an extractor is not known.
        """
        if self.noise == "shared":
            return math.inf
        return math.nan if self.real is None else self.real.value

    def clean(self, texts: Sequence[str]) -> Any:
        """Compute the vectors without noise and, with word dropout, without masks: not private.

        Args:
            texts: strings, none of them empty.

        Returns:
            A tensor of shape `(len(texts), d)`.
        """
        private = self.require_private("encodes")
        if self.dropout is None:
            return private.clean(texts)
        with self.extractor.whole():
            return private.clean(texts)

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """Find the two texts with the largest exact loss of all pairs (without word dropout).

        Computed from the declared noise, not certified; with word dropout the two that are
        farthest apart, and no loss is stated.

        Args:
            texts: at least two different strings.
            progress: show a bar; None shows it for long work on a terminal or in a notebook.

        Returns:
            The pair of texts, which the model remembers for `print`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, a text is empty, or all are equal.
        """
        private = self.require_private("compares texts")
        if self.dropout is None:
            return private.worst_pair(texts, progress=progress)
        with self.extractor.whole():
            pair = private.worst_pair(texts, progress=progress)
        private.worst = (pair, None)
        return pair

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        self.require_private("is moved").to(device)
        return TextClassifier.to(self, device)

    @property
    def name(self) -> str:
        """Name in reports: the class and its arguments."""
        extractor = self.given if self.extractor is None else self.extractor
        first = (
            f"dim={self.dim}" if self.given is None else f"{getattr(extractor, 'name', extractor)}"
        )
        more = [
            f", {name}={value!r}"
            for name, value, usual in (
                ("transform", self.transform, None),
                ("noise", self.noise, "iid"),
                ("scale", self.scale, "published"),
                ("dropout", self.dropout, None),
                ("unknown", self.unknown, "drop"),
                ("min_count", self.min_count, 1),
            )
            if value != usual and not isinstance(value, MinMax)
        ]
        return f"DPNR({first}, epsilon={self.epsilon!r}{''.join(more)})"

    def details(self) -> dict[str, str]:
        """Return what `print` shows of this model alone: dropout, training, labels."""
        found = {"trained": str(self.trained), "labels": ", ".join(map(str, self.labels.tolist()))}
        if self.dropout is not None and self.dropout.masks == "bernoulli":
            claimed, true = (
                calibration.word_dropout(level, self.dropout.mu) if math.isfinite(level) else level
                for level in (self.epsilon, self.true_epsilon)
            )
            found["dropout"] = (
                f"for texts that differ in one word: claimed {claimed:.6g}, true {true:.6g}; for "
                "any two texts nothing is gained"
            )
        elif self.dropout is not None:
            found["dropout"] = (
                "a fixed share of masked words: what is published as its gain does not hold"
            )
        return found
