"""`lm.fit` and the next-word model that it returns; `lm.canaries`, texts to audit the model with.

The model reports its privacy, losses, perplexity and states. It is kept in memory or in a folder.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Self

import numpy as np

from ...claims import Claim
from ...claims import of as claim_of
from ...errors import choice, confidence_level, instance, integer, invalid, real
from ...mechanisms.texts import texts_of
from ...packages import require_module
from ...records import Floats, Record
from ...report.plain import encode_value
from ...report.rows import Row
from ...report.shown import list_shown_fields
from ...streams import Rng, seed_of
from ...suggestions import suggest_arguments
from ..corpus import Vocabulary, training_texts, words_of
from ..redaction.masking import MASK, fingerprint_texts
from .rate_search import check_public, search_plan
from .settings import (
    FitPlan,
    Ids,
    Rows,
    TextRows,
    ignore_order_warnings,
    make_accountant,
    make_vocabulary,
)

if TYPE_CHECKING:
    from ...training import OpacusStep

_EXACT_FIGURES: Final = ("cut", "without_target", "valid_perplexity", "valid_unigram")
"""Figures of the texts themselves, without noise: not in the folder of a private model."""
_PERPLEXITY_REPLICATES: Final = 1000

_DEFAULT_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "sgd": {"epochs": 20, "batch": 20, "lr": 20.0},
    "adam": {"epochs": 20, "batch": 64, "lr": 3e-3},
    "private": {"epochs": 15, "batch": 256, "lr": 2.0},
}
"""Gusain and Leith's recipe, Adam beside it, and the private twin."""
_DEFAULT_SIZES: Final = {"hidden": 64, "layers": 1}
_MAX_DEFAULT_DELTA: Final = 8e-5


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
        left_out: texts that were left out because they are training texts, or None if the training
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
        many = self.left_out
        left = "training texts not known, none" if many is None else f"{many:,} training texts"
        return (
            f"perplexity {self.value:.4g} [{self.low:.4g}, {self.high:.4g}] ({level}, resampled "
            f"texts); {unigram}uniform {self.uniform:,}; {self.targets:,} words of {self.texts:,} "
            f"texts, {left} left out; {100.0 * self.unknown:.2g} % of the words unknown"
        )


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class NextWordModel(FitPlan):
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
        cut: training texts that were cut, or None if not known.
        without_target: training texts without a word to be predicted, or None if not known.
        valid_losses: validation loss after each epoch of a plain training.
        valid_perplexity: of the validation texts, or None if no word of them is predicted.
        valid_unigram: of the same texts, by the frequencies of the training texts.
        has_own_vocabulary: True if the vocabulary was made of the training texts.
        start: "drawn weights", or what was known of the model at the start.
        partial: True if Ctrl-C ended it early.
        seed: repeats the training, or None of a private one: it would undo the noise.
        epsilon: what Opacus' PRV accountant reports for `steps`; inf without noise, None if plain.
        epsilon_rdp: what its RDP accountant reports.
        delta: at which both are reported.
        sigma: noise multiplier: standard deviation of the noise divided by `clip`.
        clip: largest norm of a record's gradient.
        rate: probability with which a text is in a batch.
        network: the torch module.
        settings_tried: pairs of rate and clip that a search tried; 0 without a search.
        public_texts: public texts that the search was given.
        public_read: those of them that it read.
        counts: how often each word is a target of the training texts, or None if not known.
        known: fingerprints of the training texts, or None if not known.
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
    settings_tried: int = 0
    public_texts: int = 0
    public_read: int = 0
    network: Any = field(default=None, repr=False)
    counts: Ids | None = field(default=None, repr=False)
    known: frozenset[int] | None = field(default=None, repr=False)

    @property
    def rows(self) -> TextRows:
        """Reader that makes texts rows of numbers."""
        return TextRows(self.vocabulary, self.length, self.masked)

    @property
    def claim(self) -> Claim | None:
        """The claim of Opacus' PRV accountant for the steps made, or None without noise."""
        if not self.sigma:
            return None
        with ignore_order_warnings():
            return claim_of(make_accountant(self, self.steps))

    @property
    def decoder_weights(self) -> Floats:
        """Weights of the decoder, a row for each word that has a probability: `(V, hidden)`."""
        return np.asarray(self.network.decoder.weight.detach(), dtype=np.float64)

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
        word_losses = self.network.word_losses(self._encode(texts))
        return np.array([part.mean() if part.size else 0.0 for part in word_losses])

    def perplexity(
        self, texts: Any, exclude: Any = None, *, confidence: float = 0.95, rng: Rng = None
    ) -> Perplexity:
        """Compute the perplexity of texts that are not training texts.

        Args:
            texts: test texts.
            exclude: texts that are left out where they occur among `texts`, or None for the
                training texts. A model of redacted texts knows these only: give it the clean ones.
                A model from a folder knows none.
            confidence: of the interval, by resampling texts.
            rng: of the resampling: None, an int seed or a numpy Generator.

        Returns:
            The perplexity, with those of unigram and uniform law on the same texts.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if no text is left, or no word is predicted.
        """
        level, seed = confidence_level(confidence), seed_of(rng)
        given_texts = texts_of("texts", texts)
        without = self.known if exclude is None else fingerprint_texts(texts_of("exclude", exclude))
        kept = [
            text
            for text in given_texts
            if not fingerprint_texts([text]) <= (without or frozenset())
        ]
        if not kept:
            raise invalid(
                "texts", "texts that are not training texts", f"{len(given_texts):,} of them"
            )
        left_out = None if without is None else len(given_texts) - len(kept)
        rows, _ = self.rows.encode(kept)
        losses = self.network.word_losses(rows)
        sums, sizes = (np.array([*map(measure, losses)]) for measure in (np.sum, np.size))
        if not sizes.sum():
            raise invalid("texts", "texts with a second word that is not masked", "none")
        drawn = np.random.default_rng(seed).multinomial(
            len(rows), np.full(len(rows), 1.0 / len(rows)), size=_PERPLEXITY_REPLICATES
        )
        # A sample of texts without targets has no mean; such samples are left out.
        means = drawn @ sums / np.maximum(drawn @ sizes, 1)
        tails = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
        low, high = np.quantile(means[drawn @ sizes > 0], tails)
        unigram = None
        if self.counts is not None:
            total = sum(part.sum() for part in self.rows.unigram_losses(self.counts, rows))
            unigram = float(np.exp(total / sizes.sum()))
        value, low, high = np.exp([sums.sum() / sizes.sum(), low, high]).tolist()
        return Perplexity(
            value, low, high, level, unigram, self.rows.size, len(rows), left_out,
            targets=int(sizes.sum()), unknown=float((np.concatenate(rows) == 0).mean()), seed=seed,
        )  # fmt: skip

    def hidden_states(self, texts: Any) -> Floats:
        """Compute the last layer's state of each context.

        Args:
            texts: strings.

        Returns:
            float64, shape `(contexts, hidden)`, in the order of the texts.
        """
        return np.concatenate([states for states, _ in self.network.read_rows(self._encode(texts))])

    def log_probabilities(self, texts: Any) -> Iterator[Floats]:
        """Yield for each text the logarithms of the next-word distributions.

        Args:
            texts: strings.

        Yields:
            Natural logarithms, float64, shape `(contexts, V)`; columns stand for "<unk>" and the
            words of the vocabulary.
        """
        for _, logs in self.network.read_rows(self._encode(texts)):
            yield logs

    def sample(self, n: int, rng: Rng = None, *, starts: Any = None) -> list[str]:
        """Draw texts word by word, each word by the model's law without "<unk>".

        The model has no law of first words and of lengths, so that both are taken from other texts.

        Args:
            n: number of texts, at least 1.
            rng: None, an int seed or a numpy Generator.
            starts: texts, one of which is drawn for each sample, with its first word and its number
                of words. Without them first words have the frequencies of the predicted words of
                the training texts, and each sample has `length` words.

        Returns:
            n texts, words joined by blanks.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if n is below 1, no start begins with a word of the vocabulary, or the
                training texts are not known and there are no starts.
        """
        integer("n", n, 1)
        draw = np.random.default_rng(seed_of(rng))
        if starts is not None:
            rows = [row for row in self._encode(starts) if 0 < row[0] < self.rows.size]
            if not rows:
                raise invalid("starts", "texts that begin with a word of the vocabulary", "none")
            chosen = [rows[place] for place in draw.integers(len(rows), size=n)]
            firsts, sizes = np.array([row[0] for row in chosen]), [len(row) for row in chosen]
        elif self.counts is None or not self.counts[1:].any():
            raise invalid("starts", "texts, for the training texts are not known", None)
        else:
            law = self.counts[1:] / self.counts[1:].sum()
            firsts, sizes = 1 + draw.choice(len(law), n, p=law), [self.length] * n
        drawn = self.network.draw_words(firsts, max(sizes), draw) + len(self.vocabulary.reserved)
        return self.vocabulary.decode([row[:k] for row, k in zip(drawn, sizes, strict=True)])

    def step(self) -> OpacusStep:
        """Return one noisy step of the trained model, for `training.audit_step`.

        Records are texts. Batches of the audit are given, not drawn.

        Raises:
            ModuleNotFoundError: if opacus is not installed.
            ValueError: if the model is plain.
        """
        from ...training import OpacusStep
        from .network import make_network, make_optimizer, record_losses

        if not self.is_private:
            raise invalid("model", "private to have a noisy step (lm.fit with epsilon=)", "plain")
        encode_texts, words = self.rows.encode, self.rows.size
        return OpacusStep(
            *make_optimizer(make_network(words, self, self.network, private=True), self),
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
            TypeError: if the folder is not a path.
            ValueError: if the vocabulary has a `tokenise` of its own.
            OSError: if it cannot be written.
        """
        from ..systems.system import write_folder

        if self.vocabulary.tokenise is not words_of:
            requirement = "dpcore.text.words_of, for functions are not saved"
            raise invalid("tokenise of the vocabulary", requirement, self.vocabulary.tokenise)
        words = {name: getattr(self.vocabulary, name) for name in ("words", "reserved")}
        config = {"vocabulary": words, "settings": self.to_dict()}
        return write_folder(type(self), folder, config, {"network": self.network})

    @classmethod
    def from_pretrained(cls, folder: str | PathLike[str]) -> Self:
        """Read the model that `save_pretrained` wrote: no pickle is read, no network used.

        Args:
            folder: a folder of this machine.

        Raises:
            OSError: if the folder is missing, or a file is missing.
            ValueError: if it holds something else, or a key is unknown or missing.
        """
        from ..systems.system import load_weights, read_mapping, read_model_folder
        from .network import make_network

        place, config = read_model_folder(cls, folder, {"vocabulary", "settings"})
        words, settings = read_mapping(config, "vocabulary"), read_mapping(config, "settings")
        try:
            vocabulary = Vocabulary(words["words"], "token", words["reserved"])
            arguments: dict[str, Any] = {
                name: math.inf if value == "inf" and name != "masked" else value
                for name, value in settings.items()
            }
            arguments["valid_losses"] = tuple(arguments["valid_losses"])
            model = cls(vocabulary=vocabulary, **arguments)
        except (TypeError, KeyError) as error:
            raise invalid("config.json", "one of NextWordModel", error) from None
        object.__setattr__(model, "network", make_network(model.rows.size, model))
        load_weights(place, {"network": model.network})
        return model

    def to_dict(self) -> dict[str, Any]:
        """Return all settings and figures as plain data, without words and weights.

        Of a private model there is no seed, and no figure that was computed without noise.
        """
        plain = {name: encode_value(value) for name, value in list_shown_fields(self)}
        return plain | dict.fromkeys(_EXACT_FIGURES if self.is_private else ())

    def _lines(self) -> list[Row]:
        """List what is guaranteed, what is not covered, and the perplexities."""
        return [*self._describe()]

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
        if self.settings_tried:
            read = f"{self.public_read:,} of {self.public_texts:,} read"
            best = f"rate {self.lr:g}, clip {self.clip:g}: the best of {self.settings_tried}"
            yield "search", f"{best} settings on public texts ({read}), without the private ones"
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


@suggest_arguments
def fit(
    texts: Any,
    valid: Any,
    *,
    vocabulary: Vocabulary | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    clip: float = 1.5,
    optimiser: Literal["sgd", "adam"] = "sgd",
    hidden: int | None = None,
    layers: int | None = None,
    dropout: float = 0.0,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
    rate: Literal["fixed", "searched"] = "fixed",
    public: Any = None,
    length: int = 20,
    start: NextWordModel | None = None,
    masked: str = MASK,
    device: Any = None,
    rng: Rng = None,
    progress: bool | None = None,
) -> NextWordModel:
    """Train a next-word model of texts: plain, or private by DP-SGD.

    A record is one text, cut after `length` words. The state of the LSTM starts at zero for each
    text. Every word but the first is a target, the end is none. The loss is the mean over the
    records of the mean over their targets; a record without targets counts 0. Masked words of
    redacted texts are read and are not targets.

    The plain training is the source's: weights drawn from U(-.1, .1), SGD with rate 20, gradients
    of norm .25 at most, batches of 20, the rate divided by 4 where the validation loss does not
    fall, 20 epochs at most, the weights of the best epoch kept. Adam has rate 3e-3 and batches of
    64. The private training is the same network as `opacus.layers.DPLSTM`, trained by Opacus:
    Poisson batches of 256, rate 2, 15 epochs, the last weights kept.

    Epsilon covers one text, added or removed, of `texts`. It covers neither `valid`, nor a
    vocabulary that is made of the texts, nor the choice among several settings; the number of
    texts is taken as public. The noise is drawn by torch's generator, which is not
    cryptographic, and floating-point effects of the noise are not covered either.

    Args:
        texts: training texts: a list of strings, or a `Corpus`, whose train part is read.
        valid: validation texts; redacted where the training texts are. They choose rate and epoch
            of a plain training, and nothing else.
        vocabulary: of single words with unknown="token". None makes it of the words that occur
            twice in the training texts, or takes that of `start`.
        epsilon: above 0 for the private training; inf for its recipe without noise, or None for the
            plain training.
        delta: in (0, 1), at which epsilon is to hold, or None for the smaller of 8e-5 and 1/(2N).
        clip: largest norm of a record's gradient in a private training.
        optimiser: "sgd" or "adam"; a private training has "sgd".
        hidden: entries of a state, or None for those of `start`, or 64. The source has 200.
        layers: of the LSTM, or None for those of `start`, or 1. The source has 2.
        dropout: share of dropped entries, in [0, 1), 0 for a private training. The source has .2.
        epochs: passes over the texts, None for the recipe's.
        batch: texts in a step, at most all, or None for the recipe's.
        lr: rate of the first step, None for the recipe's.
        rate: "searched" chooses rate and clip of a private training by short trainings on `public`
            with the same noise and number of steps. They start from `lr` and `clip`. "fixed" takes
            these two.
        public: public texts of a search, at least 100: a list of strings, or a `Corpus`, of which
            the train part is read. At most 400 of them choose; the others are read as far as the
            steps need them. Their words are those of `start`, or the words that occur twice in
            them. Epsilon does not cover them.
        length: words of a text that are read, 2 or more.
        start: a model whose weights are the start, trained on public texts.
        masked: the token that stands for a masked word.
        device: where it is trained, such as "cuda". None is the CPU. The model is on the CPU.
        rng: None, an int seed or a numpy Generator. The seed of a private training is nowhere
            recorded: it would undo the noise.
        progress: show a bar. None shows it for long work on a terminal or in a notebook.

    Returns:
        The model. After Ctrl-C that of the last whole epoch, `partial` set; its epsilon counts all
        steps that were made.

    Raises:
        ModuleNotFoundError: without torch; for a private training without opacus.
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, there are fewer texts than a batch, or the loss
            diverges.
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.

    Warns:
        UserWarning: if delta is 1/N or more, or a private step will take seconds.

    Source:
        Gusain and Leith (2025), supplement, next-word prediction; Abadi et al. (2016), algorithm
        1; Gopi, Lee and Wutschitz (2021) (the PRV accountant).

    Example:
        >>> from dpcore.text import generated, lm
        >>> corpus = generated("intents", 300, rng=1)
        >>> model = lm.fit(corpus, corpus.valid, hidden=16, epochs=2, rng=1)
        >>> model.epochs, model.losses(corpus.test.texts[:2]).shape
        (2, (2,))
    """
    train, checked = training_texts(texts), texts_of("valid", valid)
    if start is not None:
        instance("start", start, NextWordModel)
    public_texts = check_public(rate, public, epsilon)
    words = _choose_vocabulary(train, vocabulary, start, masked)
    rows = TextRows(words, integer("length", length, 2), instance("masked", masked, str))
    plan = _make_plan(
        len(train), start, epsilon is not None, optimiser=optimiser, epochs=epochs, batch=batch,
        lr=lr, hidden=hidden, layers=layers, dropout=dropout,
    )  # fmt: skip
    if epsilon is not None:
        plan = _add_noise(plan, epsilon, delta, clip, len(train))
    from ...torch.mechanisms import device_of
    from .network import draw_weights, learn_plain, learn_private, make_network

    figures: dict[str, Any] = {}
    # Before anything is drawn: torch's generators are seeded on the devices in use.
    place, seed = device_of("cpu" if device is None else device), seed_of(rng)
    if public_texts:
        plan, figures = search_plan(
            public_texts, len(train), plan, start, rows, place, [seed, 1], progress
        )
    generator = np.random.default_rng(seed)
    (numbers, cut), (valid_numbers, _) = rows.encode(train), rows.encode(checked)
    source = None if start is None else start.network
    network = make_network(rows.size, plan, source, plan.is_private)
    if source is None:
        draw_weights(network, generator)
    network.to(place)
    if plan.is_private:
        made = learn_private(network, numbers, plan, generator, progress)
        made |= _spend_epsilons(plan, made["steps"])
        network = make_network(rows.size, plan, network)
    else:
        made = learn_plain(network, numbers, valid_numbers, plan, generator, progress)
        network.cpu()
    counts = rows.count_targets(numbers)
    return NextWordModel(
        **vars(rows) | vars(plan) | made | figures,
        has_own_vocabulary=vocabulary is None and start is None,
        start="drawn weights" if start is None else repr(start),
        seed=None if plan.sigma else seed, texts=len(train), cut=cut,
        without_target=sum(not (row[1:] < rows.size).any() for row in numbers),
        valid_perplexity=_mean_perplexity(network.word_losses(valid_numbers)),
        valid_unigram=_mean_perplexity(rows.unigram_losses(counts, valid_numbers)),
        network=network, counts=counts, known=fingerprint_texts(train),
    )  # fmt: skip


def _check_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """Check that a next-word model can use a vocabulary.

    Args:
        vocabulary: single words, and a token for unknown ones.

    Raises:
        TypeError: if it is not a `Vocabulary`.
        ValueError: if it leaves unknown words out, or holds runs of words.
    """
    if instance("vocabulary", vocabulary, Vocabulary).unknown != "token" or vocabulary.ngrams != 1:
        raise invalid("vocabulary", "one of single words with unknown='token'", vocabulary)
    return vocabulary


def _choose_vocabulary(
    texts: Sequence[str], stated: Vocabulary | None, start: NextWordModel | None, masked: str
) -> Vocabulary:
    """Return the vocabulary that is given, that of the start, or the frequent words of texts."""
    vocabulary = stated if start is None else start.vocabulary
    if stated is not None and _check_vocabulary(stated) != vocabulary:
        raise invalid("vocabulary", "that of start, word for word", stated)
    if vocabulary is not None:
        return vocabulary
    return make_vocabulary(texts, masked)


def _make_plan(texts: int, start: Any, is_private: bool, **settings: Any) -> FitPlan:
    """Check the settings of a training, and fill in those of its recipe; there is no noise yet.

    Args:
        texts: number of training texts.
        start: the model whose sizes are taken, or None.
        is_private: True for the private recipe.
        **settings: fields of `FitPlan`. None stands for that of the recipe.

    Raises:
        TypeError: if a setting is of the wrong kind.
        ValueError: if it is out of range, there are fewer texts than a batch, or the sizes are not
            those of `start`.
    """
    from ..systems.training import make_recipe

    optimiser = choice("optimiser", settings["optimiser"], ("sgd", "adam"))
    if is_private and optimiser != "sgd":
        raise invalid("optimiser", "'sgd' for a private training", optimiser)
    if is_private and settings["dropout"]:
        raise invalid("dropout", "0 for a private training", settings["dropout"])
    sizes = {name: getattr(start, name, size) for name, size in _DEFAULT_SIZES.items()}
    usual = {**_DEFAULT_RECIPES["private" if is_private else optimiser], **sizes}
    filled = usual | {name: value for name, value in settings.items() if value is not None}
    for name, size in sizes.items():
        filled[name] = integer(name, filled[name], 1)
        if start is not None and filled[name] != size:
            raise invalid(name, f"{size}, as that of start", filled[name])
    names = ("epochs", "batch", "lr", "dropout")
    recipe = make_recipe(**{name: filled[name] for name in names})
    if texts < recipe.batch:
        raise invalid("texts", f"at least as many as a batch, {recipe.batch} (see batch=)", texts)
    return FitPlan(**filled | {name: getattr(recipe, name) for name in names})


def _add_noise(plan: FitPlan, epsilon: Any, delta: float | None, clip: Any, texts: int) -> FitPlan:
    """Return the plan with the noise for an epsilon, by Opacus' PRV accountant.

    Args:
        plan: epochs and batch.
        epsilon: above 0; inf for no noise.
        delta: in (0, 1), or None for the smaller of 8e-5 and 1/(2 texts).
        clip: largest norm of a record's gradient.
        texts: number of training texts.

    Raises:
        ModuleNotFoundError: without opacus.
        TypeError: if an argument is not a number.
        ValueError: if it is out of range.

    Warns:
        UserWarning: if delta is 1/texts or more.
    """
    clip = real("clip", clip, low=0.0, open_low=True)
    usual = min(_MAX_DEFAULT_DELTA, 0.5 / texts)
    delta = confidence_level(usual if delta is None else delta, "delta")
    if delta >= 1.0 / texts:
        warnings.warn(
            f"delta = {delta:.3g} is 1/N = {1.0 / texts:.3g} or more: at such a delta a mechanism "
            f"that publishes one of the {texts:,} texts is private",
            stacklevel=4,
        )
    steps, sigma = -(-texts // plan.batch), 0.0
    # What is no number is refused with the words for finite ones.
    if not isinstance(epsilon, float) or epsilon != math.inf:
        epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
        sigma = _find_noise_multiplier(epsilon, delta, 1.0 / steps, steps * plan.epochs)
    return replace(plan, delta=delta, sigma=sigma, clip=clip, rate=1.0 / steps)


@lru_cache(maxsize=64)
def _find_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Ask Opacus for sigma: ten seconds or more, the same for every training of an audit."""
    accounting = require_module("opacus.accountants.utils", "lm.fit with epsilon")
    with ignore_order_warnings():
        sigma = accounting.get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps,
            accountant="prv",
        )  # fmt: skip
    return float(sigma)


def _mean_perplexity(losses: Sequence[Floats]) -> float | None:
    word_losses = np.concatenate(losses)
    return float(np.exp(word_losses.mean())) if word_losses.size else None


def _spend_epsilons(plan: FitPlan, steps: int) -> dict[str, float]:
    """Return what Opacus' PRV and RDP accountants report for steps; inf without noise."""
    kinds = {"epsilon": "PRVAccountant", "epsilon_rdp": "RDPAccountant"}
    if not plan.sigma:
        return dict.fromkeys(kinds, math.inf)
    with ignore_order_warnings():
        return {
            name: float(make_accountant(plan, steps, kind).get_epsilon(delta=plan.delta))
            for name, kind in kinds.items()
        }


@suggest_arguments
def canaries(vocabulary: Vocabulary, many: Any, *, words: int = 10, rng: Rng = None) -> list[str]:
    """Make canaries of random words of a vocabulary, or check texts of your own.

    Words are drawn independently with equal probabilities, so that no other record has the
    gradient of a canary.

    Args:
        vocabulary: of the models that are to be audited.
        many: number of canaries; or texts of your own, whose words must be in the vocabulary.
        words: words of a canary, 2 or more; no effect on texts of your own.
        rng: None, an int seed or a numpy Generator.

    Returns:
        The canaries, for `training.audit_run(..., canaries=)`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or a text has a word outside the vocabulary.

    Source:
        Carlini et al. (2019) (random texts that are inserted); Steinke, Nasr and Jagielski (2023).

    Example:
        >>> from dpcore.text import Vocabulary
        >>> v = Vocabulary(["flights", "from", "boston", "denver"], "token")
        >>> canaries(v, 2, words=3, rng=1)
        ['from boston denver', 'denver flights flights']
        >>> canaries(v, ["flights from london"])
        Traceback (most recent call last):
        ValueError: canaries[0] must be words of the vocabulary, got 'london'
    """
    vocabulary_words = _check_vocabulary(vocabulary).words
    if not isinstance(many, (int, np.integer, float)):
        given_texts = texts_of("many", many)
        for row, text in enumerate(given_texts):
            unknown = [word for word in vocabulary.tokenise(text) if word not in vocabulary_words]
            if unknown:
                raise invalid(f"canaries[{row}]", "words of the vocabulary", unknown[0])
        return list(given_texts)
    shape = integer("many", many, 1, 10**6), integer("words", words, 2, 10**6)
    if not vocabulary_words:
        raise invalid("vocabulary", "one with words", vocabulary)
    drawn = np.random.default_rng(seed_of(rng)).integers(len(vocabulary_words), size=shape)
    return [" ".join(vocabulary_words[number] for number in row) for row in drawn]
