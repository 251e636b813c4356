"""The text encoder `Bag`, word dropout, and the training of a text encoder with a classifier.

`Bag` is the text encoder (the extractor) in the study of the private encoder DPNR by Zouhri and
Abecidan (2021). `Bag` returns the mean over the vectors of the words and word pairs of a text.
Torch uses one thread in training.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, Self, get_args

import numpy as np

from ...errors import AssumptionWarning, choice, instance, integer, invalid, real
from ...mechanisms.callables import set_torch_threads
from ...mechanisms.texts import as_texts
from ...packages import torch
from ...progress import Progress
from ...report.shown import Shown
from ...streams import seeded_torch
from ...suggestions import explain_argument_errors
from .. import schedules
from ..corpus import Corpus, Vocabulary

Masks = Literal["bernoulli", "exact"]
MASKS: Final[tuple[Masks, ...]] = get_args(Masks)
"""Methods to choose the masked words: each word independently, or a fixed share of each text."""
Masked = Literal["leave_out", "zero_id"]
MASKED: Final[tuple[Masked, ...]] = get_args(Masked)
"""Methods to mask a word: remove the word from the mean, or replace the word by number 0."""

_MAX_INITIAL_WEIGHT = 0.5
"""Largest absolute value of an initial weight. The initial weights are uniform in (-1/2, 1/2), as
in Zouhri and Abecidan (2021)."""
STEPS: Final = 2226
"""Training steps in Zouhri and Abecidan (2021): 5 epochs on 28,500 texts, 64 texts per step."""
_DEFAULT_EPOCH_RANGE: Final = (5, 35)
"""Smallest and largest default number of epochs."""
_DIVERGED_LOSS: Final = 1e12
"""Limit for the loss and for the entries of vectors and weights. Above this limit, dpcore raises an
error, because the training diverges."""
_RECIPE_LIMITS: Final[dict[str, dict[str, Any]]] = {
    "lr": {"low": 0.0, "high": 1e30, "open_low": True},
    "decay": {"low": 0.0, "high": 1.0, "open_low": True},
    "dropout": {"low": 0.0, "high": 1.0, "open_high": True},
    "strength": {"low": 0.0, "high": 1e30},
    "reconstruction": {"low": 0.0, "high": 1e30},
}
"""Allowed ranges of the settings of a training."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, repr=False)
class WordDropout(Shown):
    """Setting for a `Bag` (an encoder of texts): mask random words before computing the vector.

    The vector of the text is the mean over the vectors of its words and word pairs.

    Args:
        mu: share of the words of a text that are masked, in [0, 1).
        masks: "bernoulli" masks each word independently with probability mu. "exact" masks exactly
            ``floor(mu n + 1/2)`` of the n words of a text, as in the paper. The epsilon from
            `dpcore.calibration.word_dropout` holds only for "bernoulli".
        mask: "leave_out" computes the mean without the masked words, and without the word pairs
            that contain a masked word. "zero_id" is for comparisons with the code of Zouhri and
            Abecidan (2021). With "zero_id", words and word pairs are masked independently.
            Therefore a masked word can remain visible in a word pair. The vocabulary maps words and
            word pairs to numbers. Number 0 replaces the number of each masked word or word pair,
            and the mean includes the vector of number 0.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `mu` is outside of [0, 1), or `masks` or `mask` is unknown.

    Source:
        Lyu, He and Li (2020), section 3.3 (word dropout); Zouhri and Abecidan (2021), a study of
        DPNR.

    Example:
        >>> masked = WordDropout(0.5, "exact").masked(torch.tensor([4, 2]))
        >>> masked[:4].sum().item(), masked[4:].sum().item()
        (2, 1)
    """

    mu: float
    masks: Masks = "bernoulli"
    mask: Masked = "leave_out"

    def __post_init__(self) -> None:
        """Check the fields."""
        object.__setattr__(self, "mu", real("mu", self.mu, low=0.0, high=1.0, open_high=True))
        choice("masks", self.masks, MASKS)
        choice("mask", self.mask, MASKED)

    def masked(self, sizes: torch.Tensor) -> Any:
        """Draw at random which words of texts are masked, with torch's default generator.

        Args:
            sizes: number of words of each text, int64, shape `(texts,)`.

        Returns:
            A bool for each word, True if the word is masked, shape `(sum of sizes,)`. The words of
            the first text come first, then those of the second text, and so on.
        """
        total = int(sizes.sum())
        # float64 gives the share of masked words a precision of 53 bits.
        keys = torch.rand(total, dtype=torch.float64)
        if self.masks == "bernoulli":
            return keys < self.mu
        text = torch.repeat_interleave(torch.arange(len(sizes)), sizes)
        first = torch.cumsum(sizes, 0) - sizes
        # Two stable sorts order the keys within each text. The sum of text number and key would
        # lose digits of the key.
        order = torch.argsort(keys)
        order = order[torch.argsort(text[order], stable=True)]
        rank = torch.arange(total) - first[text]
        is_masked = torch.zeros(total, dtype=torch.bool)
        is_masked[order] = rank < torch.floor(self.mu * sizes + 0.5).to(torch.int64)[text]
        return is_masked


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Units(Shown):
    """Words and word pairs (together called units) of texts, given as numbers in a vocabulary.

    The units of all texts are joined in one array, in the order of the texts.

    Args:
        ids: number of each unit in the vocabulary, int64, shape `(units,)`.
        spans: for each unit, the position of its first word in the text, and the position after its
            last word, shape `(units, 2)`.
        sizes: number of units of each text, shape `(texts,)`.
        words: number of words of each text, including unknown words, shape `(texts,)`.
    """

    ids: Any
    spans: Any
    sizes: Any
    words: Any

    def __len__(self) -> int:
        """Return the number of texts."""
        return len(self.sizes)

    def take(self, rows: torch.Tensor) -> Units:
        """Return the units (words and word pairs) of only some of the texts.

        Args:
            rows: positions of the texts to return, in the order of the result. A position may
                repeat.
        """
        sizes = self.sizes[rows]
        first = (torch.cumsum(self.sizes, 0) - self.sizes)[rows]
        begin = torch.cumsum(sizes, 0) - sizes
        places = torch.arange(int(sizes.sum())) + torch.repeat_interleave(first - begin, sizes)
        # This takes a third of the time of `spans[places]`.
        return Units(
            self.ids.index_select(0, places),
            self.spans.index_select(0, places),
            sizes,
            self.words[rows],
        )

    def batches(self, size: int) -> Iterator[Units]:
        """Split the texts into consecutive batches of `size` texts, and yield each batch.

        The last batch may be smaller.
        """
        ends = [0, *torch.cumsum(self.sizes, 0).tolist()]
        for start in range(0, len(self), size):
            stop = min(start + size, len(self))
            units, rows = slice(ends[start], ends[stop]), slice(start, stop)
            yield Units(self.ids[units], self.spans[units], self.sizes[rows], self.words[rows])


class Bag(torch.nn.Module):
    """Encoder of texts: the mean over the vectors of the words and word pairs of a text.

    Unknown words and masked words are left out of the mean, unless the vocabulary or `dropout`
    assigns a number to such words. If all words of a text are left out, the vector of the text is
    zero. dpcore warns if a text has no known word.

    Args:
        vocabulary: mapping from words and word pairs to numbers. If `dropout` replaces masked words
            by number 0, no known word may have number 0.
        dim: number of entries of a vector.
        dropout: `WordDropout`, which masks random words in every call. None masks no words.

    Attributes:
        random: True if two calls on the same text may return different vectors, because words are
            masked at random.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if `dim` is below 1, or number 0 replaces masked words although a known word has
            number 0.

    Source:
        Zouhri and Abecidan (2021); `torch.nn.EmbeddingBag` with mode "mean".

    Example:
        >>> words = Vocabulary.from_texts(["a goal", "a late goal"], unknown="drop", ngrams=2)
        >>> bag = Bag(words, 4)
        >>> vectors = bag(["a late goal", "a goal, unseen"])
        >>> vectors.shape, bool(torch.equal(vectors[1], bag(["a goal"])[0]))
        (torch.Size([2, 4]), True)
    """

    @explain_argument_errors
    def __init__(
        self, vocabulary: Vocabulary, dim: int, dropout: WordDropout | None = None
    ) -> None:
        super().__init__()
        self.vocabulary = instance("vocabulary", vocabulary, Vocabulary)
        self.dropout = None if dropout is None else instance("dropout", dropout, WordDropout)
        is_free = vocabulary.unknown == "token" or len(vocabulary) > len(vocabulary.words)
        if self.dropout is not None and self.dropout.mask == "zero_id" and not is_free:
            requirement = "one whose number 0 is no word, for masked words become it"
            raise invalid("vocabulary", requirement, vocabulary)
        self.dim = integer("dim", dim, 1)
        self.embedding = torch.nn.EmbeddingBag(len(vocabulary), dim, mode="mean", sparse=True)
        torch.nn.init.uniform_(self.embedding.weight, -_MAX_INITIAL_WEIGHT, _MAX_INITIAL_WEIGHT)

    @property
    def random(self) -> bool:
        """True if this encoder masks random words.

        Two calls on the same text may then return different vectors.
        """
        return self.dropout is not None

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Return a context manager: in a `with` block, this encoder masks no words."""
        kept, self.dropout = self.dropout, None
        try:
            yield
        finally:
            self.dropout = kept

    def units(self, texts: Sequence[str]) -> Units:
        """Return the words and word pairs of texts as numbers of the vocabulary of this encoder.

        Args:
            texts: strings that are not empty.

        Warns:
            UserWarning: if some texts have no known word. The warning states the number of these
                texts.
        """
        return texts_to_ids(self.vocabulary, texts)

    def forward(self, texts: Any) -> Any:
        """Compute the mean vector of the words and word pairs of each text.

        Args:
            texts: strings, or the result of the method `units` for these strings.

        Returns:
            float32 vectors, shape `(len(texts), dim)`.
        """
        units = texts if isinstance(texts, Units) else self.units(texts)
        ids, sizes = self._draw_unmasked_ids_and_sizes(units)
        device = self.embedding.weight.device
        # The offsets are the starts of the texts. A text without units has a vector of zeros.
        return self.embedding(ids.to(device), (torch.cumsum(sizes, 0) - sizes).to(device))

    def _draw_unmasked_ids_and_sizes(self, units: Units) -> tuple[Any, Any]:
        """Draw masks; return the numbers of unmasked words and word pairs, and counts per text."""
        if self.dropout is None:
            return units.ids, units.sizes
        if self.dropout.mask == "zero_id":
            return units.ids.masked_fill(self.dropout.masked(units.sizes), 0), units.sizes
        masked = torch.nn.functional.pad(self.dropout.masked(units.words).cumsum(0), (1, 0))
        first = torch.cumsum(units.words, 0) - units.words
        text = torch.repeat_interleave(torch.arange(len(units)), units.sizes)
        # A unit is kept if no masked word lies between its first and its last word.
        places = units.spans + first[text].unsqueeze(1)
        stays = masked[places[:, 0]] == masked[places[:, 1]]
        sizes = torch.zeros_like(units.sizes).index_add_(0, text, stays.to(torch.int64))
        return units.ids[stays], sizes

    def extra_repr(self) -> str:
        """Return the text that torch shows in the `repr` of this encoder: the setting `dropout`."""
        return f"dropout={self.dropout!r}"


def texts_to_ids(vocabulary: Vocabulary, texts: Sequence[str]) -> Units:
    """Return the words and word pairs of texts as numbers of a vocabulary.

    Warns:
        UserWarning: if some texts have no known word. The warning states the number of these texts.
    """
    texts_read = as_texts("texts", texts)
    # In an audit, the same text occurs many times.
    places = {text: place for place, text in enumerate(dict.fromkeys(texts_read))}
    ids, spans, sizes, words = [], [], [], []
    for text in places:
        numbers, covered, count = vocabulary.spans(text)
        ids += numbers
        spans += covered
        sizes.append(len(numbers))
        words.append(count)
    wide = torch.tensor(spans, dtype=torch.int64).reshape(-1, 2)
    units = Units(torch.tensor(ids, dtype=torch.int64), wide, *map(torch.tensor, (sizes, words)))
    rows = torch.tensor([places[text] for text in texts_read])
    unknown = int((units.sizes[rows] == 0).sum())
    if unknown:
        warning = (
            f"{unknown:,} of {len(texts_read):,} texts have no known word: their vectors are 0"
        )
        warnings.warn(warning, UserWarning, stacklevel=5)
    return units if len(places) == len(texts_read) else units.take(rows)


@dataclass(frozen=True, slots=True, repr=False)
class Recipe(Shown):
    """Settings of the training of a model. A setting is None if the model does not use it.

    Attributes:
        epochs: number of passes over the texts. With None, the number is from 5 to 35, and is
            chosen to make about 2,226 training steps, as in Zouhri and Abecidan (2021).
        batch: number of texts per training step.
        lr: learning rate of the first epoch.
        decay: factor by which the learning rate is multiplied after every epoch.
        dropout: share of the decoder's input words that are replaced by "<unk>" at random.
        strength: weight of the loss of the discriminator.
        reconstruction: weight of the loss of the decoder.
    """

    epochs: int | None
    batch: int
    lr: float
    decay: float | None = None
    dropout: float | None = None
    strength: float | None = None
    reconstruction: float | None = None

    def epochs_for(self, texts: int) -> int:
        """Return the number of epochs that these settings give for a number of training texts.

        Args:
            texts: number of training texts.

        Example:
            >>> recipe = make_recipe(None, 64, 2.0)
            >>> recipe.epochs_for(10_001), recipe.epochs_for(4_000)
            (14, 35)
        """
        if self.epochs is not None:
            return self.epochs
        fewest, most = _DEFAULT_EPOCH_RANGE
        return min(most, max(fewest, round(STEPS / -(-texts // self.batch))))


def make_recipe(epochs: Any, batch: Any, lr: Any, **others: Any) -> Recipe:
    """Check the settings of the training of a model, and return them as a `Recipe`.

    Args:
        epochs: number of passes over the texts, or None for a number that depends on the texts.
        batch: number of texts per training step.
        lr: learning rate of the first epoch.
        **others: other settings, such as `decay`.

    Raises:
        TypeError: if an argument is not a number.
        ValueError: if a setting is out of range.
    """
    epochs = None if epochs is None else integer("epochs", epochs, 1)
    batch, others = integer("batch", batch, 1, 2**63 - 1), {"lr": lr, **others}
    checked = {name: real(name, value, **_RECIPE_LIMITS[name]) for name, value in others.items()}
    return Recipe(epochs, batch, **checked)


@dataclass(frozen=True, slots=True, repr=False)
class Trained(Recipe):
    """Record of the training of a model: the settings and the results.

    Attributes:
        texts: number of training texts.
        cut: number of training texts that were cut because they have too many words. None if models
            of this class never cut texts.
        schedule: description of the noise in the training, or "" if the training had no noise.
        seed: seed of the training. The same seed repeats the training.
        threads: number of torch threads on the CPU during the training.
        losses: mean cross entropy in each epoch. For a model with labels, the entries are the cross
            entropy of the labels. For a model without labels, the entries are the cross entropy per
            word.
        epsilons: epsilon after each epoch. Empty if the model cannot learn epsilon.
        partial: True if Ctrl-C stopped the training early. The results then cover only complete
            epochs.
    """

    texts: int = 0
    cut: int | None = None
    schedule: str = ""
    seed: int = 0
    threads: int = 1
    losses: tuple[float, ...] = ()
    epsilons: tuple[float, ...] = ()
    partial: bool = False

    @classmethod
    def from_plain(cls, words: dict[str, Any]) -> Self:
        """Create the record of a training from the data that `save_pretrained` wrote.

        Args:
            words: the entry "trained" of config.json.
        """
        try:
            values = {field.name: words[field.name] for field in fields(cls)}
            lists = {name: tuple(values[name]) for name in ("losses", "epsilons")}
            return cls(**{**words, **lists})
        except (TypeError, KeyError) as error:
            raise invalid("trained in config.json", "what save_pretrained wrote", error) from None

    def __str__(self) -> str:
        """Return the settings, the seed and the last loss on one line."""
        cut = "" if self.cut is None else f" ({self.cut:,} of them cut)"
        ended = f", INTERRUPTED after {len(self.losses)}" if self.partial else ""
        decay = "" if self.decay is None else f" x {self.decay:g} an epoch"
        more = f"noise {self.schedule}" if self.schedule else "no noise"
        if self.strength is not None:
            more = f"discriminator x {self.strength:g}, reconstruction x {self.reconstruction:g}"
        return (
            f"on {self.texts:,} texts{cut}, {self.epochs} epochs{ended} in batches of "
            f"{self.batch}, learning rate {self.lr:g}{decay}, {more}, seed {self.seed}; "
            f"last loss {self.losses[-1]:.4g}"
        )


def one_thread() -> AbstractContextManager[None]:
    """Return a context manager: in a `with` block, torch uses only one thread.

    Therefore results do not depend on the number of threads that torch uses outside of the block.
    """
    return set_torch_threads(1)


def run_epochs(
    run_epoch: Callable[[int], float],
    epochs: int,
    weights: list[Any],
    rng: np.random.Generator,
    progress: bool | None,
    *,
    patience: float = math.inf,
) -> tuple[tuple[float, ...], bool]:
    """Train for several epochs on one torch thread.

    After Ctrl-C, the function resets `weights` to the values at the end of the last complete epoch.

    Args:
        run_epoch: function that trains for one epoch and returns the mean loss. The argument of the
            function is the number of the epoch, counted from 1.
        epochs: largest number of epochs.
        weights: tensors that are trained.
        rng: generator that seeds torch's default generator.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work on a
            terminal or in a notebook.
        patience: the training stops after this number of successive epochs without a new smallest
            loss.

    Returns:
        A pair: the loss of each complete epoch, and True if Ctrl-C stopped the training early.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
    """
    losses: tuple[float, ...] = ()
    kept: list[Any] = []
    with one_thread(), seeded_torch(rng), Progress("training", epochs, progress) as bar:
        try:
            for epoch in range(1, epochs + 1):
                loss = run_epoch(epoch)
                kept, losses = [weight.detach().clone() for weight in weights], (*losses, loss)
                bar.advance(1)
                if len(losses) - losses.index(min(losses)) > patience:
                    break
        except KeyboardInterrupt:
            if not losses:
                raise
            with torch.no_grad():
                for weight, value in zip(weights, kept, strict=True):
                    weight.copy_(value)
            return losses, True
    return losses, False


def refuse_divergence(is_small: bool, lr: float, epoch: int, strength: float | None = None) -> None:
    """Raise an error if a training diverges (the loss or the weights are not small enough).

    Args:
        is_small: True if the loss or the weights are small enough, and False if the training
            diverges.
        lr: learning rate, for the error message.
        epoch: number of the epoch, for the error message.
        strength: weight of the loss of an adversary, for the error message. None if the training
            has no adversary.
    """
    if not is_small:
        also = f", as the strength must, {strength:g}" if strength else ""
        need = f"small enough that training does not diverge (it does in epoch {epoch}){also}"
        raise invalid("lr", need, lr)


def train_classifier_until_interrupt(
    extractor: Any,
    transform: Callable[[Any], Any],
    head: Any,
    units: Any,
    codes: Any,
    *,
    noise: Callable[[float], Any],
    schedule: Any,
    recipe: Recipe,
    rng: np.random.Generator,
    adversary: Any = None,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], bool]:
    """Train a text encoder (the extractor) and a classifier together, in place.

    Args:
        extractor: torch module that computes the vectors of texts from `units`. If `units` is a
            tensor of vectors, the extractor is the identity.
        transform: function that maps the vectors to a bounded set (for example, by clipping).
        head: torch module that computes a score (logit) for each label from a vector.
        units: words of the training texts as numbers (an object of the class `Units`), or a tensor
            with a vector for each training text.
        codes: integer code of the label of each text, int64, shape `(texts,)`.
        noise: function that takes an epsilon and returns a layer that adds noise with this epsilon.
        schedule: function `(epoch, epochs, rng) -> epsilon` that gives the epsilon of the training
            noise. dpcore calls it once per epoch or once per batch. None means training without
            noise.
        recipe: number of epochs, batch size, learning rate and decay.
        rng: generator for the order of the texts, the noise and the masks.
        adversary: object that is trained against the extractor. None to train without such an
            object. The attribute `weights` of the adversary contains the tensors to train. The
            method `step(rows, batch)` takes a training step of the adversary. `rows` are vectors,
            and `batch` has the row numbers of the texts with these vectors. The method
            `penalty(rows, batch)` returns a number that is added to the loss of the classifier.
            `penalty` must not change the extractor or the classifier. The attribute `strength` is
            the weight of the penalty, for error messages.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work on a
            terminal or in a notebook.

    Returns:
        A pair: the mean cross entropy of the labels in each epoch, and True if Ctrl-C stopped the
        training early. After Ctrl-C, the weights are those at the end of the last complete epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        ValueError: if the loss diverges, or the schedule returns a value that is not a finite
            number above 0.
    """
    weights = [*extractor.parameters(), *head.parameters()]
    rate, add = recipe.lr, None
    epochs, size = recipe.epochs_for(len(codes)), recipe.batch
    every = "epoch" if schedule is None else schedules.batch_or_epoch(schedule)
    strength = None if adversary is None else adversary.strength

    def check(number: Any, epoch: int) -> float:
        loss = float(number.item())
        refuse_divergence(abs(loss) < _DIVERGED_LOSS, recipe.lr, epoch, strength)
        return loss

    def run_epoch(epoch: int) -> float:
        nonlocal add, rate
        order = torch.from_numpy(rng.permutation(len(codes)))
        batches = _split_into_batches(units, order, size)
        places, total = order.split(size), 0.0
        for number, (batch, rows) in enumerate(zip(places, batches, strict=True)):
            if schedule is not None and (number == 0 or every == "batch"):
                add = noise(schedules.epsilon_of(schedule, epoch, epochs, rng))
            raw = extractor(rows)
            check(raw.detach().abs().amax(), epoch)
            clean = transform(raw)
            if adversary is not None:
                adversary.step(clean.detach(), batch)
            scores = head(clean if add is None else add(clean))
            loss = torch.nn.functional.cross_entropy(scores, codes[batch].to(scores.device))
            total += check(loss, epoch) * len(batch)
            if adversary is not None:
                loss = loss + adversary.penalty(clean, batch)
            _descend_gradient(loss, weights, rate)
        assert recipe.decay is not None
        rate *= recipe.decay
        return total / len(codes)

    with warnings.catch_warnings():
        # If all words of a text are masked, its row is zero. The classifier learns only label
        # frequencies from such a row.
        warnings.simplefilter("ignore", AssumptionWarning)
        trained = weights if adversary is None else [*weights, *adversary.weights]
        losses, partial = run_epochs(run_epoch, epochs, trained, rng, progress)
    check(head.weight.detach().abs().amax(), epochs)
    return losses, partial


def _split_into_batches(units: Any, order: Any, size: int) -> Any:
    if isinstance(units, Units):
        return units.take(order).batches(size)
    return units[order.to(units.device)].split(size)


def _descend_gradient(loss: Any, weights: Any, rate: float) -> None:
    """Take one step of gradient descent, as `torch.optim.SGD` does, but faster."""
    gradients = torch.autograd.grad(loss, weights)
    with torch.no_grad():
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.add_(gradient, alpha=-rate)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Shown):
    """Training texts that the method `TextClassifier.prepare` converted to word numbers.

    Attributes:
        part: the training texts, with their labels.
        vocabulary: mapping from the words and word pairs of these texts to numbers.
        units: words and word pairs of these texts as numbers.
        kind: three settings of the vocabulary: how unknown words are treated ("drop" or "token"),
            the smallest number of occurrences of a known word, and the names of reserved numbers.
    """

    part: Corpus
    vocabulary: Vocabulary
    units: Units
    kind: tuple[Any, ...]

    def __repr__(self) -> str:
        """Return one line with the number of texts and the vocabulary."""
        return f"Prepared({len(self.units):,} texts, {self.vocabulary!r})"


def training_part(corpus: Any) -> Corpus:
    """Return the training texts of a corpus, with their labels.

    If the corpus has no split into parts, all texts are returned.
    """
    whole = instance("corpus", corpus, Corpus)
    part: Corpus = whole if whole.split is None else whole.train
    if part.labels is None:
        raise invalid("corpus", "one with labels", corpus)
    return part


def encode_labels(part: Corpus) -> tuple[Any, torch.Tensor]:
    """Return the distinct labels of texts, and an integer code for the label of each text.

    The labels are sorted. The codes are an int64 tensor. The code of a text is the position of its
    label in the sorted labels.

    Raises:
        ValueError: if all texts have the same label.
    """
    labels, codes = np.unique(part.labels, return_inverse=True)
    if len(labels) < 2:
        raise invalid("labels", "of two values at least in the training texts", labels.tolist())
    return labels, torch.from_numpy(codes.reshape(-1).astype(np.int64))
