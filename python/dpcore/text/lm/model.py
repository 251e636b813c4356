"""A next-word model: its privacy, losses, perplexity and states, in memory and in a folder."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from ...claims import Claim
from ...claims import of as claim_of
from ...errors import confidence_level, invalid
from ...mechanisms.texts import texts_of
from ...records import Record, list_shown_fields
from ...report.encoding import encode_value
from ...streams import Rng, seed_of
from ..redaction.masking import fingerprint_texts
from ..vocabulary import Vocabulary, words_of
from .settings import Floats, Ids, Plan, Rows, TextRows, ignore_order_warnings, make_accountant

if TYPE_CHECKING:
    from ...training import OpacusStep

__all__ = ["NextWordModel", "Perplexity"]

_EXACT_FIGURES: Final = ("cut", "without_target", "valid_perplexity", "valid_unigram")
"""Figures of the texts themselves, without noise: not in the folder of a private model."""
_PERPLEXITY_REPLICATES: Final = 1000


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Perplexity(Record):
    """The perplexity of next words in texts: ``exp`` of the mean loss of a word, in nats.

    Args:
        value: of the model.
        low: lower end of the interval: percentile bootstrap of 1,000 samples of texts.
        high: upper end.
        confidence: of the interval.
        unigram: perplexity of the frequencies of the training texts, or None if they are not known.
        uniform: number of words that have a probability.
        texts: texts that were measured.
        left_out: texts that were left out because they are training texts; None if the training
            texts are not known.
        targets: words that were predicted.
        unknown: share of the words of these texts that the vocabulary lacks; all of them are
            predicted as one word, "<unk>".
        seed: repeats the bootstrap.
    """

    value: float
    low: float
    high: float
    confidence: float
    unigram: float | None
    uniform: int
    texts: int
    left_out: int | None
    targets: int
    unknown: float
    seed: int

    @property
    def log_value(self) -> float:
        """Mean loss of a word, in nats."""
        return math.log(self.value)

    def __str__(self) -> str:
        """Format value, interval and what was measured, in one line."""
        level = f"{100.0 * self.confidence:g} %"
        unigram = "" if self.unigram is None else f"unigram {self.unigram:.4g}, "
        left = "training texts not known, none left out"
        if self.left_out is not None:
            left = f"{self.left_out:,} training texts left out"
        return (
            f"perplexity {self.value:.4g} [{self.low:.4g}, {self.high:.4g}] ({level}, resampled "
            f"texts); {unigram}uniform {self.uniform:,}; {self.targets:,} words of "
            f"{self.texts:,} texts, {left}; {100.0 * self.unknown:.2g} % of the words unknown"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NextWordModel(Plan):
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

    vocabulary: Vocabulary = field(repr=False)
    length: int
    masked: str
    best_epoch: int
    texts: int
    cut: int | None
    without_target: int | None
    valid_losses: tuple[float, ...] = ()
    has_own_vocabulary: bool
    start: str
    partial: bool
    seed: int | None
    valid_perplexity: float | None
    valid_unigram: float | None
    steps: int = 0
    epsilon: float | None = None
    epsilon_rdp: float | None = None
    network: Any = field(default=None, repr=False)
    counts: Ids | None = field(default=None, repr=False)
    known: frozenset[int] | None = field(default=None, repr=False)

    @property
    def rows(self) -> TextRows:
        """Reader that makes texts rows of numbers."""
        return TextRows(self.vocabulary, self.length, self.masked)

    @property
    def claim(self) -> Claim | None:
        """The claim of Opacus' PRV accountant for the steps made; None without noise."""
        if not self.sigma:
            return None
        with ignore_order_warnings():
            return claim_of(make_accountant(self, self.steps))

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
        found = self.network.word_losses(self._encode(texts))
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
        left_out = None if without is None else len(given) - len(kept)
        return self._measure_perplexity(self.rows.encode(kept)[0], left_out, level, seed)

    def _measure_perplexity(
        self, rows: Rows, left_out: int | None, confidence: float, seed: int
    ) -> Perplexity:
        losses = self.network.word_losses(rows)
        sums, sizes = (
            np.array([measure(part) for part in losses]) for measure in (np.sum, np.size)
        )
        if not sizes.sum():
            raise invalid("texts", "texts with a second word that is not masked", "none")
        drawn = np.random.default_rng(seed).multinomial(
            len(rows), np.full(len(rows), 1.0 / len(rows)), size=_PERPLEXITY_REPLICATES
        )
        # A sample of texts without targets has no mean; such samples are left out.
        means = drawn @ sums / np.maximum(drawn @ sizes, 1)
        tails = [(1.0 - confidence) / 2.0, (1.0 + confidence) / 2.0]
        low, high = np.quantile(means[drawn @ sizes > 0], tails)
        unigram = None
        if self.counts is not None:
            total = sum(part.sum() for part in self.rows.unigram_losses(self.counts, rows))
            unigram = float(np.exp(total / sizes.sum()))
        value, low, high = np.exp([sums.sum() / sizes.sum(), low, high]).tolist()
        return Perplexity(
            value, low, high, confidence, unigram, self.rows.size, len(rows), left_out,
            targets=int(sizes.sum()), unknown=float((np.concatenate(rows) == 0).mean()), seed=seed,
        )  # fmt: skip

    def hidden_states(self, texts: Any) -> Floats:
        """Compute the last layer's state of each context.

        Args:
            texts: strings.

        Returns:
            float64, shape `(contexts, hidden)`, in the order of the texts.
        """
        return np.concatenate([found for found, _ in self.network.read_rows(self._encode(texts))])

    def log_probabilities(self, texts: Any) -> Iterator[Floats]:
        """Yield for each text the logarithms of the next-word distributions.

        Args:
            texts: strings.

        Yields:
            Natural logarithms, float64, shape `(contexts, V)`; columns stand for "<unk>" and the
            words of the vocabulary.
        """
        for _, found in self.network.read_rows(self._encode(texts)):
            yield found

    def step(self) -> OpacusStep:
        """Return one noisy step of the trained model, for `training.audit_step`.

        Records are texts. Batches of the audit are given, not drawn.

        Raises:
            ModuleNotFoundError: if opacus is not installed.
            ValueError: if the model is plain.
        """
        from ...training import OpacusStep
        from .learning import make_network, make_optimizer, record_losses

        if not self.is_private:
            raise invalid("model", "private to have a noisy step (lm.fit with epsilon=)", "plain")
        encode_texts, words = self.rows.encode, self.rows.size
        return OpacusStep(
            *make_optimizer(make_network(words, self, self.network, is_private=True), self),
            lambda model, texts: record_losses(model, encode_texts(texts)[0], words),
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
        words = {name: getattr(self.vocabulary, name) for name in ("words", "reserved")}
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
            model = cls(vocabulary=vocabulary, **given)
        except (TypeError, KeyError) as error:
            raise invalid("config.json", "one of NextWordModel", error) from None
        object.__setattr__(model, "network", make_network(model.rows.size, model))
        filled(place, {"network": model.network})
        return model

    def to_dict(self) -> dict[str, Any]:
        """Return all settings and figures as plain data, without words and weights.

        Of a private model there is no seed, and no figure that was computed without noise.
        """
        plain = {name: encode_value(value) for name, value in list_shown_fields(self)}
        return plain | dict.fromkeys(_EXACT_FIGURES if self.is_private else ())

    def __str__(self) -> str:
        """Return what is guaranteed, what is not covered, and the perplexities."""
        lines = (f"  {label:<11}  {text}" for label, text in self._describe())
        return "\n".join([repr(self), *lines])

    def __repr__(self) -> str:
        """Format kind, sizes and epsilon, in one line."""
        kind = "plain" if not self.is_private else f"epsilon {self.epsilon:.4g}"
        sizes = f"{self.rows.size:,} words, hidden {self.hidden}, layers {self.layers}"
        return f"NextWordModel({kind}; {sizes})"

    def _describe(self) -> Iterator[tuple[str, str]]:
        yield from self._describe_privacy()
        kind = f"{self.optimiser}, batches of {self.batch}"
        if self.is_private:
            kind = f"Poisson batches of {self.batch} expected"
        ended = "; INTERRUPTED" if self.partial else ""
        weights = f"weights of epoch {self.best_epoch} of {self.epochs} kept{ended}"
        yield "training", f"{kind}, rate {self.lr:g}, {weights}; starts from {self.start}"
        if self.valid_perplexity is not None and self.valid_unigram is not None:
            laws = f"unigram {self.valid_unigram:.4g}, uniform {self.rows.size:,}"
            yield "perplexity", f"{self.valid_perplexity:.4g} on the validation texts; {laws}"
        read = f"{self.texts:,}, the first {self.length} words of each"
        if self.cut is not None:
            read += f": {100.0 * self.cut / self.texts:.2g} % are cut, {self.without_target:,} have"
            read += " no word to be predicted"
        yield "texts", read
        hidden = "not recorded: it would undo the noise"
        yield "seed", hidden if self.seed is None else f"{self.seed}"

    def _describe_privacy(self) -> Iterator[tuple[str, str]]:
        if self.epsilon is None:
            yield "privacy", "none: a plain training"
            return
        noise = f"clip {self.clip:g}, {self.steps:,} steps, sampling rate {self.rate:.4g}"
        if not self.sigma:
            yield "privacy", f"none: the private recipe without noise; {noise}"
            return
        by = f"by Opacus' PRV accountant ({self.epsilon_rdp:.4g} by its RDP accountant)"
        spent = f"epsilon {self.epsilon:.4g} at delta {self.delta:.3g} {by}"
        yield "privacy", f"{spent}; unit: one text, added or removed"
        yield "noise", f"sigma {self.sigma:.4g}, {noise}"
        left = "validation texts, also where they choose rate or epochs; the choice among several "
        left += "settings; the number of texts, and figures on this page that are computed from "
        left += "texts without noise"
        if self.start != "drawn weights":
            left = f"texts of the model at the start, with their words; {left}"
        if self.has_own_vocabulary:
            left = f"the vocabulary, which was made of the training texts; {left}"
        yield "not covered", left

    def _encode(self, texts: Any) -> Rows:
        return self.rows.encode(texts_of("texts", texts))[0]
