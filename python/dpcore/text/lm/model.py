"""A next-word model: its privacy, losses, perplexity and states, in memory and in a folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np
import numpy.typing as npt

from ...claims import Claim
from ...claims import of as claim_of
from ...errors import confidence_level, invalid
from ...mechanisms.texts import texts_of
from ...records import Shown
from ...streams import Rng, seed_of
from ..redaction.masking import fingerprint_texts
from ..vocabulary import Vocabulary, words_of
from .measuring import Perplexity, measure_perplexity, smooth_unigram
from .rows import TextRows, unknown_share
from .settings import Noise, Plan, ignore_order_warnings, make_accountant

if TYPE_CHECKING:
    from ...training import OpacusStep

__all__ = ["NextWordModel"]

Floats = npt.NDArray[np.float64]

_UNIT: Final = "one text, added or removed"
_EXACT: Final = ("cut", "without_target", "valid_perplexity", "valid_unigram")
"""Figures of the texts themselves, without noise: not in the folder of a private model."""
_HIDDEN: Final = ("network", "counts", "known")


@dataclass(frozen=True, eq=False, repr=False)
class NextWordModel(Shown):
    """A trained next-word model, which `lm.fit` returns.

    The state of the LSTM starts at zero for each text. A context is all words of a text up to one
    that is not its last; its target is the word that follows.

    Args:
        vocabulary: words as numbers.
        length: words of a text that are read; the others are cut.
        masked: the token that stands for a masked word.
        hidden: entries of a state.
        layers: of the LSTM.
        dropout: share of entries that training dropped.
        optimiser: "sgd" or "adam".
        epochs: whole epochs that were made.
        best_epoch: the one whose weights were kept: of a plain training that with the lowest
            validation loss, of a private one the last.
        batch: texts in a step; expected ones of Poisson batches.
        lr: rate of the first step.
        steps: private steps that were made, also in an epoch that Ctrl-C ended; 0 if plain.
        texts: number of training texts.
        cut: training texts that were cut; None if not known.
        without_target: training texts without a word to be predicted; None if not known.
        valid_losses: validation loss after each epoch of a plain training.
        valid_perplexity: of the validation texts; None if no word of them is predicted.
        valid_unigram: of the same texts, by the frequencies of the training texts.
        has_own_vocabulary: True if the vocabulary was made of the training texts.
        start: "drawn weights", or what was known of the model at the start.
        partial: True if Ctrl-C ended it early.
        seed: repeats the training; None of a private one: it would undo the noise.
        epsilon: what Opacus' PRV accountant reports for `steps`; inf without noise, None if plain.
        epsilon_rdp: what its RDP accountant reports.
        delta: at which both are reported.
        sigma: noise multiplier: standard deviation of the noise divided by `clip`.
        clip: largest norm of a record's gradient.
        rate: probability with which a text is in a batch.
        network: the torch module.
        counts: how often each word is a target of the training texts; None if not known.
        known: fingerprints of the training texts; None if not known.
    """

    vocabulary: Vocabulary
    length: int
    masked: str
    hidden: int
    layers: int
    dropout: float
    optimiser: str
    epochs: int
    best_epoch: int
    batch: int
    lr: float
    texts: int
    cut: int | None
    without_target: int | None
    valid_losses: tuple[float, ...]
    has_own_vocabulary: bool
    start: str
    partial: bool
    seed: int | None
    valid_perplexity: float | None = None
    valid_unigram: float | None = None
    steps: int = 0
    epsilon: float | None = None
    epsilon_rdp: float | None = None
    delta: float | None = None
    sigma: float | None = None
    clip: float | None = None
    rate: float | None = None
    network: Any = field(default=None, repr=False)
    counts: npt.NDArray[np.int64] | None = field(default=None, repr=False)
    known: frozenset[int] | None = field(default=None, repr=False)

    @property
    def is_private(self) -> bool:
        """True if it was trained by the private recipe, with noise or without."""
        return self.sigma is not None

    @property
    def rows(self) -> TextRows:
        """How texts become numbers."""
        return TextRows(self.vocabulary, self.length, self.masked)

    @property
    def claim(self) -> Claim | None:
        """The claim of Opacus' PRV accountant for the steps made; None without noise."""
        noise = self._noise
        if noise is None or not noise.sigma:
            return None
        with ignore_order_warnings():
            return claim_of(make_accountant(noise, self.steps))

    @property
    def _noise(self) -> Noise | None:
        if self.sigma is None or self.clip is None or self.rate is None or self.delta is None:
            return None
        return Noise(self.sigma, self.clip, self.rate, self.delta)

    @property
    def decoder_weights(self) -> Floats:
        """Weights of the decoder, a row for each word that has a probability: `(V, hidden)`."""
        weights: Floats = self.network.decoder.weight.detach().double().numpy()
        return weights

    def losses(self, texts: Any) -> Floats:
        """Compute the mean loss of the targets of each text.

        Args:
            texts: strings; they are read as the training texts were, and cut alike.

        Returns:
            One number a text, in nats, float64, shape `(n,)`; 0 for a text without targets.

        Raises:
            TypeError: if texts are not strings.
            ValueError: if one is empty.
        """
        found = self._word_losses(texts_of("texts", texts))
        return np.array([part.mean() if part.size else 0.0 for part in found])

    def perplexity(
        self, texts: Any, exclude: Any = None, *, confidence: float = 0.95, rng: Rng = None
    ) -> Perplexity:
        """Compute the perplexity of texts that are not training texts.

        Args:
            texts: test texts.
            exclude: texts that are left out where they occur among `texts`; None for the training
                texts. A model of redacted texts knows these only: give it the clean ones. A model
                from a folder knows none.
            confidence: of the interval, by resampling texts.
            rng: of the resampling: None, an int seed or a numpy Generator.

        Returns:
            The perplexity, with those of unigram and uniform law on the same texts.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if no text is left, or no word is predicted.
        """
        level, seed = confidence_level(confidence), seed_of(rng)
        given = texts_of("texts", texts)
        without = self.known if exclude is None else fingerprint_texts(texts_of("exclude", exclude))
        kept = [text for text in given if not fingerprint_texts([text]) <= (without or frozenset())]
        if not kept:
            raise invalid("texts", "texts that are not training texts", f"{len(given):,} of them")
        rows = self.rows.encode(kept)[0]
        facts = {
            "uniform": self.rows.size, "unknown": unknown_share(rows),
            "left_out": None if without is None else len(given) - len(kept),
        }  # fmt: skip
        return measure_perplexity(
            list(self._word_losses(kept)), self._unigram_losses(rows), facts, level, seed
        )

    def measure_validation(self, rows: Sequence[npt.NDArray[np.int64]]) -> dict[str, Any]:
        """Return the perplexities of validation texts by the model and by the unigram law.

        Args:
            rows: the texts as numbers.
        """
        from .network import compute_word_losses

        both = [list(compute_word_losses(self.network, rows)), self._unigram_losses(rows)]
        found = [None if part is None else np.concatenate(part) for part in both]
        names = ("valid_perplexity", "valid_unigram")
        return {
            name: None if part is None or not part.size else float(np.exp(part.mean()))
            for name, part in zip(names, found, strict=True)
        }

    def hidden_states(self, texts: Any) -> Floats:
        """Compute the last layer's state of each context.

        Args:
            texts: strings.

        Returns:
            float64, shape `(contexts, hidden)`, in the order of the texts.
        """
        found = [states for states, _ in self._read(texts_of("texts", texts))]
        return np.concatenate(found)

    def log_probabilities(self, texts: Any) -> Iterator[Floats]:
        """Yield for each text the logarithms of the next-word distributions.

        Args:
            texts: strings.

        Yields:
            Natural logarithms, float64, shape `(contexts, V)`; columns stand for "<unk>" and the
            words of the vocabulary.
        """
        for _, found in self._read(texts_of("texts", texts)):
            yield found

    def step(self) -> OpacusStep:
        """Return one noisy step of the trained model, for `training.audit_step`.

        Records are texts. Batches of the audit are given, not drawn.

        Raises:
            ModuleNotFoundError: if opacus is not installed.
            ValueError: if the model is plain.
        """
        from ...training import OpacusStep
        from .learning import make_network, make_optimizer
        from .network import copy_weights, record_losses

        if self._noise is None:
            raise invalid("model", "private to have a noisy step (lm.fit with epsilon=)", "plain")
        plan = Plan(self.optimiser, self.epochs, self.batch, self.lr, self.hidden, self.layers, 0.0)
        network = make_network(self.rows.size, plan, is_private=True)
        copy_weights(self.network, network)
        encode, words = self.rows.encode, self.rows.size
        return OpacusStep(
            *make_optimizer(network, plan, self._noise),
            lambda model, texts: record_losses(model, encode(texts)[0], words),
        )

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Write config.json and safetensors; see `from_pretrained`.

        The folder holds neither training texts nor anything to recognise them by. That of a
        private model has no seed, and no figure that was computed without noise.

        Args:
            folder: made if it is missing.

        Returns:
            The folder.

        Raises:
            ModuleNotFoundError: without safetensors.
            TypeError: if the folder is no path.
            ValueError: if the vocabulary has a `tokenise` of its own.
            OSError: if it cannot be written.
        """
        from ..systems.folders import write

        if self.vocabulary.tokenise is not words_of:
            requirement = "dpcore.text.words_of, for functions are not saved"
            raise invalid("tokenise of the vocabulary", requirement, self.vocabulary.tokenise)
        words = {name: list(getattr(self.vocabulary, name)) for name in ("words", "reserved")}
        config = {"vocabulary": words, "settings": self.to_dict()}
        return write(type(self), folder, config, {"network": self.network})

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str]) -> Self:
        """Read the model that `save_pretrained` wrote: no pickle is read, no network used.

        Args:
            folder: a folder of this machine.

        Raises:
            OSError: if there is no such folder, or a file is missing.
            ValueError: if it holds something else, or a key is unknown or missing.
        """
        from ..systems.folders import filled, mapping, read
        from .learning import make_network

        place, config = read(cls, folder, {"vocabulary", "settings"})
        words, settings = mapping(config, "vocabulary"), mapping(config, "settings")
        try:
            vocabulary = Vocabulary(words["words"], "token", words["reserved"])
            given: dict[str, Any] = {
                name: math.inf if value == "inf" and name != "masked" else value
                for name, value in settings.items()
            }
            given["valid_losses"] = tuple(given["valid_losses"])
            sizes = (given["hidden"], given["layers"], given["dropout"])
            plan = Plan(given["optimiser"], 1, given["batch"], given["lr"], *sizes)
            model = cls(vocabulary, **given)
        except (TypeError, KeyError) as error:
            raise invalid("config.json", "one of NextWordModel", error) from None
        network = make_network(model.rows.size, plan)
        filled(place, {"network": network})
        object.__setattr__(model, "network", network)
        return model

    def to_dict(self) -> dict[str, Any]:
        """Return all settings and figures as plain data, without words and weights.

        Of a private model there is no seed, and no figure that was computed without noise.
        """
        left_out = (*_HIDDEN, "vocabulary", *(_EXACT if self.is_private else ()))
        plain = {
            name: "inf" if value == math.inf else list(value) if isinstance(value, tuple) else value
            for name, value in vars(self).items()
            if name not in left_out
        }
        return {**plain, **dict.fromkeys(_EXACT if self.is_private else ())}

    def __str__(self) -> str:
        """What is guaranteed, what is not covered, and the perplexities."""
        lines = [(label, text) for label, text in self._describe() if text]
        return "\n".join([repr(self), *(f"  {label:<11}  {text}" for label, text in lines)])

    def __repr__(self) -> str:
        """Kind, sizes and epsilon, in one line."""
        kind = "plain" if not self.is_private else f"epsilon {self.epsilon:.4g}"
        sizes = f"{self.rows.size:,} words, hidden {self.hidden}, layers {self.layers}"
        return f"NextWordModel({kind}; {sizes})"

    def _describe(self) -> Iterator[tuple[str, str]]:
        yield from self._describe_privacy()
        kind = f"Poisson batches of {self.batch} expected" if self.is_private else (
            f"{self.optimiser}, batches of {self.batch}"
        )  # fmt: skip
        ended = "; INTERRUPTED" if self.partial else ""
        weights = f"weights of epoch {self.best_epoch} of {self.epochs} kept{ended}"
        yield "training", f"{kind}, rate {self.lr:g}, {weights}; starts from {self.start}"
        if self.valid_perplexity is not None and self.valid_unigram is not None:
            yield (
                "perplexity",
                (
                    f"{self.valid_perplexity:.4g} on the validation texts; unigram "
                    f"{self.valid_unigram:.4g}, uniform {self.rows.size:,}"
                ),
            )
        read = f"{self.texts:,}, the first {self.length} words of each"
        if self.cut is not None and self.without_target is not None:
            read += (
                f": {100.0 * self.cut / self.texts:.2g} % are cut, {self.without_target:,} have no "
                "word to be predicted"
            )
        yield "texts", read
        yield (
            "seed",
            "not recorded: it would undo the noise" if self.seed is None else f"{self.seed}",
        )

    def _describe_privacy(self) -> Iterator[tuple[str, str]]:
        if self.epsilon is None:
            yield "privacy", "none: a plain training"
            return
        noise = f"clip {self.clip:g}, {self.steps:,} steps, sampling rate {self.rate:.4g}"
        if not self.sigma:
            yield "privacy", f"none: the private recipe without noise; {noise}"
            return
        yield (
            "privacy",
            (
                f"epsilon {self.epsilon:.4g} at delta {self.delta:.3g} by Opacus' PRV accountant "
                f"({self.epsilon_rdp:.4g} by its RDP accountant); unit: {_UNIT}"
            ),
        )
        yield "noise", f"sigma {self.sigma:.4g}, {noise}"
        own = (
            "the vocabulary, which was made of the training texts; "
            if self.has_own_vocabulary
            else ""
        )
        if self.start != "drawn weights":
            own += "texts of the model at the start, with their words; "
        yield (
            "not covered",
            (
                f"{own}validation texts, also where they choose rate or epochs; the choice among "
                "several settings; the number of texts, and figures on this page that are computed "
                "from texts without noise"
            ),
        )

    def _read(self, texts: Sequence[str]) -> Iterator[tuple[Floats, Floats]]:
        from .network import compute_states

        return compute_states(self.network, self.rows.encode(texts)[0])

    def _word_losses(self, texts: Sequence[str]) -> Iterator[Floats]:
        from .network import compute_word_losses

        return compute_word_losses(self.network, self.rows.encode(texts)[0])

    def _unigram_losses(self, rows: Sequence[npt.NDArray[np.int64]]) -> list[Floats] | None:
        if self.counts is None:
            return None
        law = smooth_unigram(self.counts)
        return [-law[row[1:][row[1:] < self.rows.size]] for row in rows]
