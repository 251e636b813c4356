"""ADePT: texts rewritten by an auto-encoder with noise in the middle, as published and repaired."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final, Literal, Self, cast, get_args

import numpy as np
import numpy.typing as npt

from .... import calibration, sensitivity
from ....errors import choice, delta_level, flag, integer, invalid, numeric
from ....hints import hinted
from ....mechanisms import positive
from ....mechanisms.texts import texts_of
from ....streams import Rng, seed_of
from ....streams.generators import seeded_torch
from ....torch import Clip, LaplaceNoise, PrivateEncoder
from ....torch.mechanisms import device_of
from ....torch.needed import torch
from ...corpus import training_texts
from ...rewriting import Rewriter
from ...vocabulary import Vocabulary
from ..system import TextSystem
from ..training import Trained, make_recipe
from .learning import learn
from .lstm import RESERVED, Decoder, Encoder, Words

__all__ = ["VARIANTS", "ADePT", "Variant"]

Variant = Literal["published", "scaled", "l1", "gaussian"]
VARIANTS: Final[tuple[Variant, ...]] = get_args(Variant)
"""Noise for the L2 distance in every entry, as published; and three repairs."""


class ADePT(TextSystem):
    """An auto-encoder that rewrites texts with noise in the middle; published, its claim is false.

    ``z = (h, c)`` is the last state of an LSTM, clipped to norm C; Laplace noise is added, and a
    second LSTM decodes greedily, with z at every step. The paper clips in L2 and takes the scale
    ``2C/epsilon``, but Laplace noise is for L1 distances: any two texts have ``epsilon sqrt(n)``,
    n = 2 hidden. It is trained with the clip and without noise, as published.

    An epsilon covers one rewrite of one text by the fitted weights, against any other text: k
    rewrites cost k times, and the texts that the weights were fitted to are not covered at all.

    Args:
        epsilon: the claim, in (0, 1e300].
        variant: "published"; "scaled" (clip in L2, scale ``2C sqrt(n)/epsilon``); "l1" (clip in L1,
            scale ``2C/epsilon``, and trained so); "gaussian" (clip in L2, analytic Gaussian).
        delta: of the claim, in (0, 1), for "gaussian" and no other.
        hidden: entries of a state; vectors have n = 2 hidden.
        embedding: entries of a word's vector.
        clip: the norm C.
        longest: words of a text that are read, and written; what is longer is cut, and counted.
        min_count: how often a word must occur in the training texts to be known.

    Attributes:
        trained: how it was trained; None before `fit`.
        private: the fitted encoder with clip and noise; None before `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or "gaussian" has no delta.

    Source:
        Krishna, Gupta and Dupuy (2021); the fault: Habernal (2021), theorem 1.

    Example:
        >>> from dpcore.text import generated
        >>> corpus = generated("intents", 300, rng=1)
        >>> adept = ADePT(epsilon=100.0, hidden=32, embedding=16)
        >>> adept = adept.fit(corpus, epochs=2, pair=False, rng=1)
        >>> adept
        ADePT(epsilon=100.0, hidden=32, embedding=16; THE CLAIM IS FALSE: true epsilon 800 for any
        two texts)
        >>> len(adept.rewrite(corpus.test.texts[:3], rng=2))
        3
    """

    saved_keys = frozenset({"words"})

    @hinted
    def __init__(
        self,
        epsilon: float,
        *,
        variant: Variant = "published",
        delta: float = 0.0,
        hidden: int = 128,
        embedding: int = 64,
        clip: float = 5.0,
        longest: int = 20,
        min_count: int = 1,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.variant = choice("variant", variant, VARIANTS)
        self.delta = delta_level(delta)
        if (self.delta > 0.0) != (variant == "gaussian"):
            requirement = "above 0 for 'gaussian', such as 1e-5, and 0 for the others"
            raise invalid("delta", requirement, delta)
        self.hidden = integer("hidden", hidden, 1)
        self.embedding = integer("embedding", embedding, 1)
        self.clip = positive("clip", clip)
        self.longest = integer("longest", longest, 1)
        self.min_count = integer("min_count", min_count, 1)
        self.transform = Clip("l1" if variant == "l1" else "l2", self.clip)
        self.encoder: Any = None
        self.decoder: Any = None

    def fit(
        self,
        corpus: Any,
        *,
        epochs: int = 40,
        batch: int = 64,
        lr: float = 3e-3,
        dropout: float = 0.3,
        pair: bool = True,
        rng: Rng = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Train encoder and decoder to repeat texts, with the clip and without noise.

        Variants that clip alike have the same weights at the same seed.

        Args:
            corpus: a `Corpus`, of which the train part is read (all without a split), or a list of
                strings. None of these texts is covered by any epsilon.
            epochs: passes over the texts.
            batch: texts in a step.
            lr: learning rate of Adam in the first step; it falls to a tenth in a straight line.
                Gradients are clipped to norm 1.
            dropout: share of the decoder's input words that are hidden from it.
            pair: look for the training texts' largest pair afterwards, which `print` shows.
            rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator.
            device: where it is trained and kept, such as "cuda"; None is the CPU.
            progress: show a bar; None shows it for long work on a terminal or in a notebook.

        Returns:
            The model itself. After Ctrl-C that of the last whole epoch, `trained.partial` set.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if a value is out of range, no word is left, or the loss diverges.
            KeyboardInterrupt: on Ctrl-C before the first epoch has ended.
        """
        flag("pair", pair)
        epochs, seed = integer("epochs", epochs, 1), seed_of(rng)
        recipe = make_recipe(epochs, batch, lr, dropout=dropout)
        self.private = self.trained = None
        texts = training_texts(corpus)
        place = device_of("cpu" if device is None else device)
        source = np.random.default_rng(seed)
        vocabulary = Vocabulary.from_texts(
            texts, unknown="token", min_count=self.min_count, reserved=RESERVED
        )
        with seeded_torch(source):
            self.assemble(vocabulary)
        self.encoder.to(place)
        self.decoder.to(place)
        rows = self.encoder.words(texts)
        losses, partial = learn(
            self.encoder, self.decoder, self.transform, rows, recipe, source, progress
        )
        self.trained = Trained(
            **asdict(recipe), texts=len(texts), cut=self.encoder.truncated(texts), seed=seed,
            losses=losses, partial=partial,
        )  # fmt: skip
        self.protect()
        if pair:
            self._find_pair(texts, progress)
        return self

    @property
    def state(self) -> dict[str, Any]:
        """The words that are known."""
        return {"words": list(self.encoder.words.vocabulary.words)}

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Encoder and decoder."""
        return {"encoder": self.encoder, "decoder": self.decoder}

    def restore(self, state: dict[str, Any]) -> None:
        """Make encoder and decoder."""
        self.assemble(Vocabulary(state["words"], "token", RESERVED))

    def assemble(self, vocabulary: Vocabulary) -> None:
        """Make encoder and decoder for a vocabulary, with fresh weights."""
        words = Words(vocabulary, self.longest)
        self.encoder = Encoder(words, self.embedding, self.hidden)
        self.decoder = Decoder(words, self.embedding, self.hidden, self.encoder.width)

    def protect(self) -> None:
        """Put clip and noise behind the fitted encoder."""
        self.encoder.eval()
        self.decoder.eval()
        noise: Any = "gaussian" if self.variant == "gaussian" else "laplace"
        if self.variant == "published":
            apart = sensitivity.sensitivity(self.transform.range(self.encoder.width), "l2").value
            noise = LaplaceNoise(calibration.laplace(self.epsilon, apart))
        private = PrivateEncoder(
            self.encoder, self.transform, epsilon=self.epsilon, delta=self.delta, noise=noise,
            strict=False,
        )  # fmt: skip
        self.private = private.to(self.encoder.embedding.weight.device)

    def renoised(
        self, epsilon: float, *, variant: Variant | None = None, delta: float = 0.0
    ) -> ADePT:
        """Return a model of the same weights with other noise; nothing is trained or copied.

        Args:
            epsilon: the claim, in (0, 1e300].
            variant: one that clips in the same norm; None is that of the model.
            delta: of the claim, in (0, 1), for "gaussian" and no other.

        Returns:
            Another model.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the model is not fitted, a value is out of range, or the variant clips
                in another norm.

        Example:
            >>> from dpcore.text import generated
            >>> adept = ADePT(10.0, hidden=32).fit(generated("intents", 100, rng=1), epochs=1)
            >>> adept.private.noise, adept.renoised(80.0, variant="scaled").private.noise
            (LaplaceNoise(scale=1.0), LaplaceNoise(scale=1.0))
        """
        self.require_private("takes other noise")
        changed = {"epsilon": epsilon, "variant": variant or self.variant, "delta": delta}
        found = type(self)(**{**self.arguments, **changed})
        if found.transform.norm != self.transform.norm:
            requirement = f"one that clips in {self.transform.norm}, as the weights were trained"
            raise invalid("variant", requirement, variant)
        found.encoder, found.decoder, found.trained = self.encoder, self.decoder, self.trained
        found.protect()
        return found

    def decode(self, vectors: npt.NDArray[Any]) -> list[str]:
        """Decode vectors to the texts that they stand for, word by word the likeliest.

        Args:
            vectors: shape `(n, 2 hidden)`, with noise (`encode`) or without (`clean`).

        Returns:
            n texts, words joined by blanks; some may be empty.

        Raises:
            TypeError: if they are no numbers.
            ValueError: if the model is not fitted, they have another shape or are not finite (an
                epsilon below 1e-35 has noise beyond all float32 numbers).
        """
        self.require_private("decodes")
        weight, found = self.decoder.scores.weight, cast(Any, vectors)
        if not isinstance(vectors, torch.Tensor):
            found = torch.tensor(numeric("vectors", "an array of numbers", vectors))
        rows = found.to(weight)
        if not bool(torch.isfinite(rows).all()):
            raise invalid("vectors", f"finite in {str(weight.dtype)[6:]}", "infinities or NaN")
        if rows.ndim != 2 or rows.shape[1] != self.encoder.width:
            requirement = f"of shape (n, {self.encoder.width})"
            raise invalid("vectors", requirement, tuple(rows.shape))
        texts: list[str] = self.decoder.texts(rows) if len(rows) else []
        return texts

    def rewrite(self, texts: Sequence[str], *, rng: Rng = None) -> list[str]:
        """Rewrite texts, with fresh noise at every call.

        An epsilon covers one rewrite of one text, against any other text: k rewrites of a text
        cost k times as much, and no text that the model was fitted to is covered.

        Args:
            texts: strings, none of them empty.
            rng: None takes entropy of the operating system; an int or a Generator repeats the
                noise, which is then known to whoever knows it.

        Returns:
            A rewrite for each, words joined by blanks; some may be empty.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, or a text is empty.
        """
        found = texts_of("texts", texts, fewest=0)
        return self.decode(self.encode(found, rng=rng))

    @property
    def rewriter(self) -> Rewriter:
        """The mechanism text -> text, to be audited: the rewritten text itself is what is seen."""
        self.require_private("rewrites")
        return Rewriter(self.rewrite, self.epsilon)

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        super().to(device)
        self.decoder.to(device_of(device))
        return self

    def details(self) -> dict[str, str]:
        """Return what `print` shows of this model alone: the training."""
        return {"trained": str(self.trained)}
