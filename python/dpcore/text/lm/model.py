"""Next-word models: training with `lm.fit`, and canary texts for audits from `lm.canaries`.

A model has methods for losses, perplexity and hidden states, and can be saved to a folder.
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
from ...mechanisms.texts import as_texts
from ...packages import require_module
from ...records import Floats, Record
from ...report.plain import encode_value
from ...report.rows import Row
from ...report.shown import list_shown_fields
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from ..corpus import Vocabulary, all_or_training_texts, words_of
from ..redaction.masking import MASK, hash_texts
from .rate_search import check_public_texts, search_rate_and_clip
from .settings import (
    FitPlan,
    Ids,
    Rows,
    TextRows,
    ignore_rdp_order_warnings,
    make_accountant,
    repeated_words_without_mask,
)

if TYPE_CHECKING:
    from ...training import OpacusStep

_EXACT_FIGURES: Final = ("cut", "without_target", "valid_perplexity", "valid_unigram")
"""Numbers that are computed from texts without noise, and not saved for a private model."""
_PERPLEXITY_REPLICATES: Final = 1000

_DEFAULT_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "sgd": {"epochs": 20, "batch": 20, "lr": 20.0},
    "adam": {"epochs": 20, "batch": 64, "lr": 3e-3},
    "private": {"epochs": 15, "batch": 256, "lr": 2.0},
}
"""Default training settings: SGD as in Gusain and Leith, Adam, and private SGD."""
_DEFAULT_SIZES: Final = {"hidden": 64, "layers": 1}
_MAX_DEFAULT_DELTA: Final = 8e-5


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class Perplexity(Record):
    """Perplexity of a next-word model on texts: ``exp`` of the mean loss (in nats) per word.

    Args:
        value: perplexity under the model.
        low: lower end of the interval of `value`, from a percentile bootstrap over texts.
        high: upper end of the interval of `value`.
        confidence: confidence of the interval.
        unigram: perplexity if the probability of each word is its frequency in the training texts.
            None if these frequencies are not known.
        uniform: perplexity if all words are equally likely. It is equal to the number of words.
        texts: number of texts on which the perplexity was computed.
        left_out: number of texts that were left out because they are training texts. None if the
            training texts are not known.
        targets: number of predicted words.
        unknown: share of the words that are not in the vocabulary. The model reads these words as
            "<unk>".
        seed: seed of the bootstrap.
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
        """Mean loss per predicted word, in nats: the logarithm of this perplexity."""
        return math.log(self.value)

    def __str__(self) -> str:
        """Return one line with the perplexity, its interval and the numbers of texts and words."""
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
    """A trained next-word model (an LSTM), as returned by `lm.fit`.

    The state of the LSTM is zero at the start of each text. A context is the beginning of a text.
    The target of a context is the next word, which the model predicts.

    Args:
        vocabulary: mapping from words to numbers.
        length: largest number of words of a text that the model reads. Further words are left out.
        masked: token that replaces masked words in texts.
        hidden: number of entries of the LSTM state.
        layers: number of layers of the LSTM.
        dropout: share of the entries that dropout sets to 0 in training.
        optimiser: "sgd" or "adam".
        epochs: number of complete training epochs.
        best_epoch: epoch whose weights the model has: the epoch with the lowest validation loss in
            training without privacy, or the last epoch in private training.
        batch: number of texts per step. In private training, this number is an expected value.
        lr: learning rate of the first step.
        steps: number of DP-SGD steps, including those of an incomplete epoch; 0 without privacy.
        texts: number of training texts.
        cut: number of training texts with more than `length` words, or None if not known.
        without_target: number of training texts without a word to predict, or None if not known.
        valid_losses: validation loss after each epoch, in training without privacy.
        valid_perplexity: perplexity on the validation texts, or None if they have no word to
            predict.
        valid_unigram: perplexity on the validation texts if the probability of each word is its
            frequency in the training texts.
        has_own_vocabulary: True if the vocabulary was created from the training texts.
        start: "drawn weights", or a description of the model that gave the initial weights.
        partial: True if Ctrl-C stopped the training early.
        seed: seed of the training. None if noise was added, because the seed would reveal it.
        epsilon: epsilon that Opacus' PRV accountant computes; inf if the training had no noise.
            `epsilon` and the next five fields are None for training without privacy.
        epsilon_rdp: epsilon from Opacus' RDP accountant.
        delta: delta of `epsilon` and `epsilon_rdp`.
        sigma: noise multiplier: standard deviation of the noise divided by `clip`.
        clip: largest L2 norm of the gradient of a text.
        rate: probability that a text is in a batch.
        network: torch module with the embedding, the LSTM and the decoder.
        settings_tried: number of pairs (learning rate, clipping norm) that a search on public texts
            tried; 0 without a search.
        public_texts: number of public texts that the user passed for the search.
        public_read: number of public texts that the search used.
        counts: for each word, how often the word is a target in the training texts. None if not
            known.
        known: hashes of the training texts, or None if the training texts are not known.
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
        """Object that converts texts to the word numbers that this model reads."""
        return TextRows(self.vocabulary, self.length, self.masked)

    @property
    def claim(self) -> Claim | None:
        """Privacy guarantee by Opacus' PRV accountant, or None if the training had no noise."""
        if not self.sigma:
            return None
        with ignore_rdp_order_warnings():
            return claim_of(make_accountant(self, self.steps))

    @property
    def decoder_weights(self) -> Floats:
        """Weights of the model's output layer, shape `(V, hidden)`, one row per predicted word."""
        return np.asarray(self.network.decoder.weight.detach(), dtype=np.float64)

    def losses(self, texts: Any) -> Floats:
        """Compute the loss of the model for each text: the mean loss over the words to predict.

        Args:
            texts: list of strings. Only the first `length` words of a text are used.

        Returns:
            Losses in nats, float64, shape `(n,)`. The loss is 0 for a text without words to
            predict.

        Raises:
            TypeError: if texts are not strings.
            ValueError: if a text is empty.
        """
        word_losses = self.network.word_losses(self._encode(texts))
        return np.array([part.mean() if part.size else 0.0 for part in word_losses])

    def perplexity(
        self, texts: Any, exclude: Any = None, *, confidence: float = 0.95, rng: Rng = None
    ) -> Perplexity:
        """Compute the perplexity of the model on texts that are not training texts.

        Args:
            texts: test texts.
            exclude: texts to leave out of `texts`. With None, they are the training texts of the
                model. If the training texts were redacted, pass the original texts. A model that
                was read from a folder does not know its training texts.
            confidence: confidence of the bootstrap interval.
            rng: randomness of the bootstrap: None, an int seed or a numpy Generator.

        Returns:
            The perplexity of the model on the texts. For comparison, the result also has two
            perplexities without the model: if words are predicted by their frequency, and if all
            words have the same probability.

        Raises:
            TypeError: if an argument has a wrong type.
            ValueError: if all texts are left out, or the texts have no words to predict.
        """
        level, seed = confidence_level(confidence), to_seed(rng)
        given_texts = as_texts("texts", texts)
        without = self.known if exclude is None else hash_texts(as_texts("exclude", exclude))
        fresh = [text for text in given_texts if not hash_texts([text]) <= (without or frozenset())]
        if not fresh:
            raise invalid(
                "texts", "texts that are not training texts", f"{len(given_texts):,} of them"
            )
        left_out = None if without is None else len(given_texts) - len(fresh)
        rows, _ = self.rows.encode(fresh)
        losses = self.network.word_losses(rows)
        sums, sizes = (np.array([*map(measure, losses)]) for measure in (np.sum, np.size))
        if not sizes.sum():
            raise invalid("texts", "texts with a second word that is not masked", "none")
        drawn = np.random.default_rng(seed).multinomial(
            len(rows), np.full(len(rows), 1.0 / len(rows)), size=_PERPLEXITY_REPLICATES
        )
        # A sample of texts without targets has no mean, so such samples are left out.
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
        """Compute the state of the last LSTM layer after each context (beginning of a text).

        Args:
            texts: list of strings.

        Returns:
            float64, shape `(contexts, hidden)`. The contexts of the first text come first.
        """
        return np.concatenate([states for states, _ in self.network.states_of(self._encode(texts))])

    def log_probabilities(self, texts: Any) -> Iterator[Floats]:
        """Yield, for each text, the log probabilities of the next word after each context.

        Args:
            texts: list of strings.

        Yields:
            Natural logarithms, float64, shape `(contexts, V)`. A context is a beginning of the
            text. The columns are "<unk>" and the words of the vocabulary.
        """
        for _, logs in self.network.states_of(self._encode(texts)):
            yield logs

    def sample(self, n: int, rng: Rng = None, *, starts: Any = None) -> list[str]:
        """Draw random texts from the model, word by word. "<unk>" is never drawn.

        The model does not predict the first word and the length of a text. Both come from `starts`.

        Args:
            n: number of texts, at least 1.
            rng: None, an int seed or a numpy Generator.
            starts: texts from which first words and lengths are taken. For each new text, one text
                is drawn from `starts`. The new text has the first word and the number of words of
                the drawn text. With None, first words are drawn by word frequency in the training
                texts, and each new text has `length` words (a field of the model).

        Returns:
            List of n texts, with a blank between two words.

        Raises:
            TypeError: if an argument has a wrong type.
            ValueError: if n is below 1, no text in `starts` begins with a word of the vocabulary,
                or `starts` is None and the training texts are not known.
        """
        integer("n", n, 1)
        draw = np.random.default_rng(to_seed(rng))
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
        """Return one DP-SGD step from the weights of this model, for `training.audit_step`.

        One record is one text. The audit chooses the batches.

        Raises:
            ModuleNotFoundError: if opacus is not installed.
            ValueError: if the model was trained without privacy.
        """
        from ...training import OpacusStep
        from .network import make_network, record_losses, wrap_for_opacus

        if not self.is_private:
            raise invalid("model", "private to have a noisy step (lm.fit with epsilon=)", "plain")
        encode_texts, words = self.rows.encode, self.rows.size
        return OpacusStep(
            *wrap_for_opacus(make_network(words, self, self.network, private=True), self),
            lambda model, texts: record_losses(model, encode_texts(texts)[0], words),
        )

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Save the model to a folder, as config.json and safetensors files.

        The files contain no training texts and no hashes of training texts. For a private model,
        the files also contain no seed and no numbers that are computed without noise from texts.

        Args:
            folder: folder for the files. It is created if it is missing.

        Returns:
            The path of the folder.

        Raises:
            ModuleNotFoundError: if safetensors is missing.
            TypeError: if `folder` is not a path.
            ValueError: if the vocabulary has a custom `tokenise`.
            OSError: if the files cannot be written.
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
        """Read a model from a folder that `save_pretrained` wrote, without pickle or internet.

        Args:
            folder: a local folder.

        Raises:
            OSError: if the folder or a file is missing.
            ValueError: if the files are not from a `NextWordModel`, or a key is unknown or missing.
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
        """Return the settings and results of this model as a dictionary, without words and weights.

        For a private model, numbers that are computed without noise from the texts are None.
        """
        plain = {name: encode_value(value) for name, value in list_shown_fields(self)}
        return plain | dict.fromkeys(_EXACT_FIGURES if self.is_private else ())

    def _lines(self) -> list[Row]:
        """Return the report rows: privacy, texts that epsilon does not cover, and perplexities."""
        return [*self._describe()]

    def __repr__(self) -> str:
        """Return one line with the privacy, the number of words and the sizes of the LSTM."""
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
        return self.rows.encode(as_texts("texts", texts))[0]


@explain_argument_errors
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
    """Train a next-word model (an LSTM) on texts, without privacy or by DP-SGD.

    A record is one text. Only its first `length` words are used. The state of the LSTM is zero at
    the start of each text. The words to predict are all words except the first word of a text.
    Masked words of redacted texts are inputs, but are not predicted. The loss of a text is the mean
    loss over the words to predict, or 0 if there are none. Training minimises the mean loss.

    Training without privacy follows Gusain and Leith. Initial weights are drawn from U(-.1, .1).
    SGD has learning rate 20 and batches of 20 texts, and clips gradients to norm .25. The learning
    rate is divided by 4 if the validation loss does not decrease. There are at most 20 epochs. The
    weights of the epoch with the lowest validation loss are kept. Adam has learning rate 3e-3 and
    batches of 64 texts. Private training uses Opacus (`opacus.layers.DPLSTM`), with Poisson batches
    of 256 texts on average, learning rate 2 and 15 epochs. The weights of the last epoch are kept.

    Neighbouring training sets differ by one text, added or removed. The number of texts is public.
    The guarantee (epsilon) does not cover `valid`, a vocabulary that is created from the texts, or
    a choice among several settings. Epsilon also assumes noise without rounding, and perfect random
    numbers. The random generator of torch is not cryptographic.

    Args:
        texts: training texts: a list of strings, or a `Corpus`, whose training part is used.
        valid: validation texts, which must be redacted if the training texts are redacted. Training
            without privacy uses them to choose the learning rate and the epoch.
        vocabulary: vocabulary of single words with unknown="token". With None, it is the vocabulary
            of `start`, or a new one with all words that occur at least twice in the training texts.
        epsilon: a number above 0 for private training, inf for DP-SGD without noise, None for
            training without privacy.
        delta: delta of the guarantee, in (0, 1). None means min(8e-5, 1/(2N)) for N training texts.
        clip: clipping norm of DP-SGD: largest L2 norm of the gradient of a record.
        optimiser: "sgd" or "adam"; private training requires "sgd".
        hidden: size of the LSTM state. With None, it is the size in `start`, or 64 without `start`.
        layers: number of LSTM layers. With None, it is the number in `start`, or 1 without `start`.
        dropout: dropout rate, in [0, 1); it must be 0 for private training.
        epochs: number of passes over the texts. None means the number stated above.
        batch: number of texts per step. None means the number stated above.
        lr: learning rate of the first step. None means the rate stated above.
        rate: "fixed" trains with `lr` and `clip`. "searched" first searches for better values, by
            trainings on `public` with the noise and number of steps of the private training.
        public: at least 100 public texts for the search: a list of strings, or a `Corpus`, whose
            training part is used. A quarter of the texts (at most 400) is used to compare settings,
            the others to train models. Epsilon does not cover public texts.
        length: largest number of words of a text that the model reads, at least 2.
        start: model with the initial weights. It must be trained on public texts.
        masked: token that replaces masked words.
        device: torch device of the training, or None for the CPU. The model is returned on the CPU.
        rng: None, an int seed or a numpy Generator. The seed of private training is not stored in
            the model, because it would reveal the noise.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work.

    Returns:
        The model. If Ctrl-C stops the training, the model has the weights of the last complete
        epoch, `partial` is True, and epsilon covers all steps.

    Raises:
        ModuleNotFoundError: if torch is missing, or opacus is missing for private training.
        TypeError: if an argument has a wrong type.
        ValueError: if a value is out of range, there are fewer texts than `batch`, or the loss
            diverges.
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.

    Warns:
        UserWarning: if delta is at least 1/N, or a private step will take several seconds.

    Source:
        Gusain and Leith (2025), supplement, next-word prediction. Abadi et al. (2016), algorithm 1.
        Gopi, Lee and Wutschitz (2021), for the PRV accountant.

    Example:
        >>> from dpcore.text import generated, lm
        >>> corpus = generated("intents", 300, rng=1)
        >>> model = lm.fit(corpus, corpus.valid, hidden=16, epochs=2, rng=1)
        >>> model.epochs, model.losses(corpus.test.texts[:2]).shape
        (2, (2,))
    """
    train, checked = all_or_training_texts(texts), as_texts("valid", valid)
    if start is not None:
        instance("start", start, NextWordModel)
    public_texts = check_public_texts(rate, public, epsilon)
    words = _given_start_or_new_vocabulary(train, vocabulary, start, masked)
    rows = TextRows(words, integer("length", length, 2), instance("masked", masked, str))
    plan = _make_plan_before_noise(
        len(train), start, epsilon is not None, optimiser=optimiser, epochs=epochs, batch=batch,
        lr=lr, hidden=hidden, layers=layers, dropout=dropout,
    )  # fmt: skip
    if epsilon is not None:
        plan = _plan_noise(plan, epsilon, delta, clip, len(train))
    from ...torch.mechanisms import require_available_device
    from .network import draw_weights, learn_plain, learn_private, make_network

    figures: dict[str, Any] = {}
    # The device is read before any draw, because torch seeds the generators of devices in use.
    place, seed = require_available_device("cpu" if device is None else device), to_seed(rng)
    if public_texts:
        plan, figures = search_rate_and_clip(
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
        made |= _compute_epsilons(plan, made["steps"])
        network = make_network(rows.size, plan, network)
    else:
        made = learn_plain(network, numbers, valid_numbers, plan, generator, progress)
        network.cpu()
    counts = rows.count_targets_per_word(numbers)
    return NextWordModel(
        **vars(rows) | vars(plan) | made | figures,
        has_own_vocabulary=vocabulary is None and start is None,
        start="drawn weights" if start is None else repr(start),
        seed=None if plan.sigma else seed, texts=len(train), cut=cut,
        without_target=sum(not (row[1:] < rows.size).any() for row in numbers),
        valid_perplexity=_perplexity_of_all_words(network.word_losses(valid_numbers)),
        valid_unigram=_perplexity_of_all_words(rows.unigram_losses(counts, valid_numbers)),
        network=network, counts=counts, known=hash_texts(train),
    )  # fmt: skip


def _require_unigram_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """Return a vocabulary, after a check that a next-word model can use it.

    Args:
        vocabulary: vocabulary of single words, with a token for unknown words.

    Raises:
        TypeError: if the argument is not a `Vocabulary`.
        ValueError: if the vocabulary drops unknown words, or contains n-grams.
    """
    if instance("vocabulary", vocabulary, Vocabulary).unknown != "token" or vocabulary.ngrams != 1:
        raise invalid("vocabulary", "one of single words with unknown='token'", vocabulary)
    return vocabulary


def _given_start_or_new_vocabulary(
    texts: Sequence[str], stated: Vocabulary | None, start: NextWordModel | None, masked: str
) -> Vocabulary:
    """Return the given vocabulary, the vocabulary of `start`, or a new one from the texts."""
    vocabulary = stated if start is None else start.vocabulary
    if stated is not None and _require_unigram_vocabulary(stated) != vocabulary:
        raise invalid("vocabulary", "that of start, word for word", stated)
    if vocabulary is not None:
        return vocabulary
    return repeated_words_without_mask(texts, masked)


def _make_plan_before_noise(texts: int, start: Any, is_private: bool, **settings: Any) -> FitPlan:
    """Check the settings of a training, and return them with defaults. Noise is not set.

    Args:
        texts: number of training texts.
        start: model with the initial weights, which defines the sizes; or None.
        is_private: True for DP-SGD.
        **settings: fields of `FitPlan`. None means the default.

    Raises:
        TypeError: if a setting has a wrong type.
        ValueError: if a setting is out of range, there are fewer texts than a batch, or the sizes
            differ from the sizes of `start`.
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


def _plan_noise(plan: FitPlan, epsilon: Any, delta: float | None, clip: Any, texts: int) -> FitPlan:
    """Return the plan with the noise for which Opacus' PRV accountant computes epsilon.

    Args:
        plan: plan with the epochs and the batch size.
        epsilon: a number above 0; inf means no noise.
        delta: in (0, 1), or None for the smaller of 8e-5 and 1/(2 texts).
        clip: largest L2 norm of the gradient of a text.
        texts: number of training texts.

    Raises:
        ModuleNotFoundError: if opacus is missing.
        TypeError: if an argument is not a number.
        ValueError: if an argument is out of range.

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
    # An epsilon that is not a number raises the error for finite numbers.
    if not isinstance(epsilon, float) or epsilon != math.inf:
        epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
        sigma = _find_noise_multiplier(epsilon, delta, 1.0 / steps, steps * plan.epochs)
    return replace(plan, delta=delta, sigma=sigma, clip=clip, rate=1.0 / steps)


@lru_cache(maxsize=64)
def _find_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Return the noise multiplier from Opacus. The result is cached, because this takes 10 s."""
    accounting = require_module("opacus.accountants.utils", "lm.fit with epsilon")
    with ignore_rdp_order_warnings():
        sigma = accounting.get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps,
            accountant="prv",
        )  # fmt: skip
    return float(sigma)


def _perplexity_of_all_words(losses: Sequence[Floats]) -> float | None:
    word_losses = np.concatenate(losses)
    return float(np.exp(word_losses.mean())) if word_losses.size else None


def _compute_epsilons(plan: FitPlan, steps: int) -> dict[str, float]:
    """Return epsilon after `steps` steps, by two accountants of Opacus; inf without noise."""
    kinds = {"epsilon": "PRVAccountant", "epsilon_rdp": "RDPAccountant"}
    if not plan.sigma:
        return dict.fromkeys(kinds, math.inf)
    with ignore_rdp_order_warnings():
        return {
            name: float(make_accountant(plan, steps, kind).get_epsilon(delta=plan.delta))
            for name, kind in kinds.items()
        }


@explain_argument_errors
def canaries(vocabulary: Vocabulary, many: Any, *, words: int = 10, rng: Rng = None) -> list[str]:
    """Create canaries: texts of random words, which an audit inserts into the training texts.

    Each word is drawn independently and uniformly from the vocabulary. Therefore the gradient of a
    canary differs from the gradients of other texts. The function can also check canaries that the
    user has written.

    Args:
        vocabulary: vocabulary of the models to audit.
        many: number of canaries, or a list of texts to check. All their words must be in the
            vocabulary.
        words: number of words in a canary, at least 2. It is ignored if `many` is a list of texts.
        rng: None, an int seed or a numpy Generator.

    Returns:
        List of canaries, for `training.audit_run(..., canaries=)`.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: if a value is out of range, or a text has a word outside the vocabulary.

    Source:
        Carlini et al. (2019) (random texts in the training set); Steinke, Nasr and Jagielski
        (2023).

    Example:
        >>> from dpcore.text import Vocabulary
        >>> v = Vocabulary(["flights", "from", "boston", "denver"], "token")
        >>> canaries(v, 2, words=3, rng=1)
        ['from boston denver', 'denver flights flights']
        >>> canaries(v, ["flights from london"])
        Traceback (most recent call last):
        ValueError: canaries[0] must be words of the vocabulary, got 'london'
    """
    vocabulary_words = _require_unigram_vocabulary(vocabulary).words
    if not isinstance(many, (int, np.integer, float)):
        given_texts = as_texts("many", many)
        for row, text in enumerate(given_texts):
            unknown = [word for word in vocabulary.tokenise(text) if word not in vocabulary_words]
            if unknown:
                raise invalid(f"canaries[{row}]", "words of the vocabulary", unknown[0])
        return list(given_texts)
    shape = integer("many", many, 1, 10**6), integer("words", words, 2, 10**6)
    if not vocabulary_words:
        raise invalid("vocabulary", "one with words", vocabulary)
    drawn = np.random.default_rng(to_seed(rng)).integers(len(vocabulary_words), size=shape)
    return [" ".join(vocabulary_words[number] for number in row) for row in drawn]
