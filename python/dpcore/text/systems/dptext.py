"""DPText: vectors of texts with noise by the published formula, with a fixed or a learned epsilon.

The encoder is a bag of words or the LSTM of ADePT. A discriminator predicts the private attribute
of a text from its noisy vector. The training alternates between the discriminator and all other
parts. Every training step draws new noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import pairwise
from typing import Any, Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ... import calibration, sensitivity
from ...errors import choice, flag, instance, integer, invalid, mistyped, tag_error
from ...mechanisms import positive
from ...packages import torch
from ...streams import Rng, seeded_torch, to_seed
from ...suggestions import explain_argument_errors
from ...torch import Clip, DPTextNoiseLayer, LaplaceNoise, PrivateEncoder
from ...torch.mechanisms import EncoderMechanism, require_available_device
from ..corpus import Corpus, Vocabulary
from . import training
from .autoencoder import RESERVED, Decoder, Encoder, WordNumbers, words_loss
from .system import Labelling, TextSystem, read_mapping
from .training import Bag, Recipe, Trained, Units, encode_labels, make_recipe, training_part

_EMBEDDING_DIM: Final = 64
"""Number of entries of a word vector in the LSTMs."""
_WORD_DROPOUT_SHARE: Final = 0.3
"""Share of the input words of the decoder LSTM that are replaced by "<unk>" in training."""

_HIDDEN_UNITS: Final = 128
"""Number of units in each hidden layer, as in Coavoux, Narayan and Cohen (2018)."""
_MIN_LEARNT_EPSILON: Final = 1e-3
"""Lower bound of a learned epsilon, unless the initial epsilon is smaller."""
_EPSILON_RATE_FACTOR: Final = 10.0
"""Learning rate of a learned epsilon divided by the learning rate of the weights."""
_DEFAULT_WORD_LIMITS: Final = {"bag": 2000, "lstm": 20}
Noise = Literal["zero", "resample", "repaired"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)
"""Noise by the published formula, with 0 or a new draw if it is undefined; or Laplace noise."""


class BagCoder:
    """Encoder (from texts to vectors) and decoder (from vectors to scores of frequent words).

    The encoder computes the mean over the vectors of the words of a text. The decoder is linear. It
    computes a score of each frequent word from the vector.

    Args:
        vocabulary: mapping from words to numbers, with the most frequent word first.
        dim: number of entries of the vector of a text.
        words: the decoder computes a score only for this number of words, the most frequent ones.

    Attributes:
        encoder: module from texts to vectors.
        decoder: module from noisy vectors to scores (logits) of words.
        sparse: True, because the gradients of the encoder are sparse.
        rows: function that converts texts to word numbers.
        vectors: function that converts the word numbers of a batch of texts to the vectors of the
            texts.
    """

    sparse = True
    settings: Final[dict[str, Any]] = {"unknown": "drop", "reserved": ()}
    """Keyword arguments of `Vocabulary.from_texts` for this coder."""

    def __init__(self, vocabulary: Vocabulary, dim: int, words: int) -> None:
        self.vocabulary = vocabulary
        self.encoder = Bag(vocabulary, dim)
        self.decoder = torch.nn.Linear(dim, min(words, len(vocabulary)))
        self.rows, self.vectors = self.encoder.units, self.encoder

    def batches(self, rows: Units, order: Any, size: int) -> Iterator[Units]:
        """Yield the word numbers of texts in batches of `size` texts, in the given order.

        Args:
            rows: word numbers of all texts, as the attribute `rows` returns them.
            order: positions of the texts, in the order in which they are yielded.
            size: number of texts in a batch. The last batch may be smaller.
        """
        return rows.take(order).batches(size)

    def loss(self, noisy: Any, batch: Units) -> Any:
        """Compute the mean cross entropy of the frequent words of texts under the decoder.

        Args:
            noisy: noisy vectors of the texts.
            batch: word numbers of the same texts.
        """
        scores = self.decoder(noisy)
        text = torch.repeat_interleave(torch.arange(len(batch)), batch.sizes)
        frequent = batch.ids < scores.shape[1]
        places = text[frequent].to(scores.device), batch.ids[frequent].to(scores.device)
        if not len(places[0]):
            return scores.sum() * 0.0
        return -torch.log_softmax(scores, dim=1)[places].mean()


class LSTMCoder:
    """Pair of an encoder and a decoder, both LSTMs, as in the published model ADePT.

    The encoder is an LSTM from texts to vectors. The decoder is an LSTM from vectors to texts.

    Args:
        vocabulary: mapping from words to numbers. It also has numbers for padding, for the start of
            a text, for the end of a text, and for unknown words.
        dim: number of entries of the vector of a text, which must be even.
        words: largest number of words of a text. Later words of a longer text are ignored.
    """

    sparse = False
    settings: Final[dict[str, Any]] = {"unknown": "token", "reserved": RESERVED}
    """Keyword arguments of `Vocabulary.from_texts` for this coder."""

    def __init__(self, vocabulary: Vocabulary, dim: int, words: int) -> None:
        self.vocabulary, numbers = vocabulary, WordNumbers(vocabulary, words)
        self.encoder = Encoder(numbers, _EMBEDDING_DIM, dim // 2)
        self.decoder = Decoder(numbers, _EMBEDDING_DIM, dim // 2, dim)
        # The numbers are padded and are returned together with the number of words of each text.
        self.rows = numbers

    def batches(self, rows: Any, order: Any, size: int) -> Iterator[Any]:
        """Yield the word numbers of texts in batches of `size` texts, in the given order.

        Args:
            rows: word numbers of all texts, as the attribute `rows` returns them.
            order: positions of the texts, in the order in which they are yielded.
            size: number of texts in a batch. The last batch may be smaller.
        """
        ids, sizes = rows
        for places in order.split(size):
            yield ids[places, : int(sizes[places].max())], sizes[places]

    def vectors(self, batch: Any) -> Any:
        """Compute the vectors of a batch of texts from their word numbers."""
        return self.encoder.states(*batch)

    def loss(self, noisy: Any, batch: Any) -> Any:
        """Compute the mean cross entropy of the words and end tokens of texts under the decoder.

        The decoder receives the true previous word at each position (teacher forcing).

        Args:
            noisy: noisy vectors of the texts.
            batch: word numbers of the same texts, and the number of words of each text.
        """
        ids, sizes = batch
        return words_loss(self.decoder, noisy, ids, sizes, _WORD_DROPOUT_SHARE)


CODERS: Final[dict[str, Any]] = {"bag": BagCoder, "lstm": LSTMCoder}
"""Pair of encoder and decoder for each value of the argument `extractor` of `DPTextModel`."""


def unique_values(names: tuple[str, ...], part: Corpus) -> dict[str, npt.NDArray[Any]]:
    """Return a dictionary from each attribute name to the sorted distinct values in a corpus.

    Raises:
        ValueError: if the corpus lacks an attribute, or an attribute has only one value.
    """
    distinct = {name: np.unique(part.attribute(name)) for name in names}
    for name, values in distinct.items():
        if len(values) < 2:
            requirement = "of two values at least in the training texts"
            raise tag_error(
                invalid(f"attribute {name!r}", requirement, values.tolist()), "attribute"
            )
    return distinct


def codes_of(values: dict[str, npt.NDArray[Any]], corpus: Corpus) -> npt.NDArray[np.int64]:
    """Convert the attributes of the texts of a corpus to integer codes.

    The code of a value of the attribute `name` is the position of the value in the sorted array
    `values[name]`.

    Returns:
        int64 array of shape `(len(corpus), attributes)`, with a row for each text.

    Raises:
        ValueError: if the corpus lacks an attribute, or an attribute has a value that is not in
            `values`.
    """
    columns = []
    for name, distinct in values.items():
        column = corpus.attribute(name)
        strange = np.setdiff1d(column, distinct)
        if strange.size:
            requirement = f"of values in the training texts, {distinct.tolist()}"
            raise tag_error(invalid(f"attribute {name!r}", requirement, strange[0]), "attribute")
        columns.append(np.searchsorted(distinct, column))
    return np.stack(columns, axis=1).astype(np.int64)


def make_layers(width: int, outputs: int, layers: int = 2) -> Any:
    """Create a neural network from vectors to scores (logits), with hidden layers of ReLU units.

    Args:
        width: number of entries of a vector.
        outputs: number of scores.
        layers: number of hidden layers. Each layer has 128 units.
    """
    widths = [width, *[_HIDDEN_UNITS] * layers]
    hidden = [
        part
        for before, after in pairwise(widths)
        for part in (torch.nn.Linear(before, after), torch.nn.ReLU())
    ]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(widths[-1], outputs))


class Discriminator(torch.nn.Module):
    """Neural network with two hidden layers that predicts attributes of a text from its vector.

    Args:
        width: number of entries of the vector of a text.
        sizes: number of different values of each attribute.
    """

    def __init__(self, width: int, sizes: Sequence[int]) -> None:
        super().__init__()
        self.width, self.sizes = width, tuple(sizes)
        self.layers = make_layers(width, sum(sizes))

    def forward(self, rows: Any) -> tuple[Any, ...]:
        """Compute a score (logit) of each value of each attribute for n vectors.

        The result is a tuple with one tensor of shape `(n, values)` for each attribute.
        """
        outputs: tuple[Any, ...] = self.layers(rows).split(self.sizes, dim=1)
        return outputs

    def loss(self, rows: Any, targets: Sequence[Any]) -> Any:
        """Compute the cross entropy of this network, averaged over texts and attributes.

        Args:
            rows: vectors, shape `(n, width)`.
            targets: a tensor for each attribute. It contains the true integer codes, shape `(n,)`,
                or target probabilities of the values, shape `(n, values)`.
        """
        pairs = zip(self(rows), targets, strict=True)
        return torch.stack([torch.nn.functional.cross_entropy(*pair) for pair in pairs]).mean()

    def codes(self, rows: Any) -> Any:
        """Return, for each text and each attribute, the integer code of the predicted value.

        The result has the shape `(n, attributes)`.

        Args:
            rows: vectors of n texts.
        """
        return torch.stack([scores.argmax(dim=1) for scores in self(rows)], dim=1)


def descend_loss(loss: Any, *optimisers: Any) -> None:
    """Compute the gradients of a loss, and let each optimiser take one step."""
    for optimiser in optimisers:
        optimiser.zero_grad()
    loss.backward()
    for optimiser in optimisers:
        optimiser.step()


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Modules of a `DPTextModel` that are trained together.

    Args:
        coder: encoder from texts to vectors, and decoder from vectors to words.
        transform: layer that clips the vectors. It has no weights.
        noise: layer that adds noise to the clipped vectors. The epsilon of the layer may be
            learned.
        head: module from noisy vectors to scores (logits) of the labels.
        discriminator: module from noisy vectors to scores (logits) of the private attribute.
    """

    coder: BagCoder | LSTMCoder
    transform: Any
    noise: Any
    head: Any
    discriminator: Discriminator


def train_tracking_epsilon_until_interrupt(
    parts: Parts,
    rows: Any,
    labels: Any,
    attribute: Any,
    recipe: Recipe,
    rng: np.random.Generator,
    progress: bool | None = None,
) -> tuple[tuple[float, ...], tuple[float | None, ...], bool]:
    """Train all modules of a `DPTextModel` in place.

    For each batch, first the discriminator takes a training step. Then all other modules take a
    step.

    Args:
        parts: modules to train.
        rows: word numbers of the training texts, in the form that `parts.coder.rows` returns.
        labels: integer codes of the labels of the training texts, int64.
        attribute: integer codes of the private attribute of the training texts, int64.
        recipe: number of epochs, batch size, learning rate and weights of the losses.
        rng: generator for the order of the texts and for the noise.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work on a
            terminal or in a notebook.

    Returns:
        Three values: the mean cross entropy of the labels in each epoch, the learned epsilon after
        each epoch (None if epsilon is not learned), and True if Ctrl-C stopped the training early.
        After Ctrl-C, the modules have the weights that they had at the end of the last complete
        epoch.

    Raises:
        KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        ValueError: if a loss, a vector or a weight is not finite.
    """
    optimisers = list(_make_optimisers(parts, recipe))
    modules = (
        parts.coder.encoder, parts.noise, parts.coder.decoder, parts.head, parts.discriminator,
    )  # fmt: skip
    weights = [weight for module in modules for weight in module.parameters()]
    learnt = parts.noise.epsilon
    floor = _MIN_LEARNT_EPSILON if learnt is None else min(_MIN_LEARNT_EPSILON, learnt.item())
    levels: list[float | None] = []

    def run_epoch(epoch: int) -> float:
        order = torch.from_numpy(rng.permutation(len(labels)))
        batches = parts.coder.batches(rows, order, recipe.batch)
        finite, total = partial(_require_finite_losses, recipe, epoch), 0.0
        for places, batch in zip(order.split(recipe.batch), batches, strict=True):
            truth = labels[places], attribute[places]
            value = _adversarial_step_label_loss(parts, batch, truth, recipe, optimisers, finite)
            if learnt is not None:
                finite(learnt)
                with torch.no_grad():
                    # Without this limit, momentum could raise the parameter far above the cap, and
                    # many steps would bring it back.
                    learnt.clamp_(floor, parts.noise.cap)
            total += value * len(places)
        finite(*weights)
        levels.append(learnt_epsilon_or_none(parts.noise))
        return total / len(labels)

    assert recipe.epochs is not None
    losses, ended = training.run_epochs(run_epoch, recipe.epochs, weights, rng, progress)
    return losses, tuple(levels[: len(losses)]), ended


def learnt_epsilon_or_none(noise: Any) -> float | None:
    """Return the current epsilon of a noise layer that learns epsilon, or None.

    The result is None if the layer does not learn epsilon.
    """
    if noise.epsilon is None:
        return None
    epsilon = float(noise.epsilon.detach())
    return epsilon if noise.cap is None else min(epsilon, noise.cap)


def _require_finite_losses(recipe: Recipe, epoch: int, *values: Any) -> None:
    """Raise an error with the epoch and the learning rate if a value is not finite."""
    is_finite = all(bool(torch.isfinite(value).all()) for value in values)
    training.refuse_divergence(is_finite, recipe.lr, epoch, recipe.strength)


def _make_optimisers(parts: Parts, recipe: Recipe) -> Iterator[Any]:
    coder = parts.coder
    yield torch.optim.Adam(parts.discriminator.parameters(), lr=recipe.lr)
    # Only the word vectors of a batch have gradients.
    encoding = torch.optim.SparseAdam if coder.sparse else torch.optim.Adam
    yield encoding(list(coder.encoder.parameters()), lr=recipe.lr)
    yield torch.optim.Adam([*coder.decoder.parameters(), *parts.head.parameters()], lr=recipe.lr)
    if parts.noise.epsilon is not None:
        yield torch.optim.Adam(parts.noise.parameters(), lr=_EPSILON_RATE_FACTOR * recipe.lr)


def _adversarial_step_label_loss(
    parts: Parts, batch: Any, truth: Any, recipe: Recipe, optimisers: list[Any], finite: Any
) -> float:
    """Take one step of the discriminator, then one step of all other modules.

    The function returns the cross entropy of the labels.
    """
    (labels, attribute), (rival, *others) = truth, optimisers
    raw = parts.coder.vectors(batch)
    finite(raw)
    noisy = parts.noise(parts.transform(raw))
    descend_loss(parts.discriminator.loss(noisy.detach(), [attribute]), rival)
    utility = torch.nn.functional.cross_entropy(parts.head(noisy), labels)
    loss = utility
    if recipe.reconstruction:
        loss = loss + recipe.reconstruction * parts.coder.loss(noisy, batch)
    if recipe.strength:
        loss = loss - recipe.strength * parts.discriminator.loss(noisy, [attribute])
    finite(loss)
    descend_loss(loss, *others)
    return float(utility.detach())


class DPTextModel(TextSystem, Labelling):
    """Encoder with the published noise of DPText (no finite epsilon holds) or with Laplace noise.

    The model computes ``encode(text) = clip(f(text)) + s``. The function f computes the mean over
    the word vectors of the text. The mean is clipped to an L1 norm of at most C. The noise s has
    scale ``2C/epsilon``. The noise of the published formula is never negative. Therefore no finite
    epsilon holds for this noise (Habernal, 2022). With `noise="repaired"`, s is Laplace noise.

    Three networks receive the noisy vector. A decoder predicts the words of the text, a classifier
    predicts the label, and a discriminator predicts the private attribute. For each batch, the
    discriminator first takes one step that decreases its own loss. Then all other parts take one
    step that decreases
    ``classifier loss + reconstruction * decoder loss - strength * discriminator loss``.

    With `learn=True`, epsilon is learned from the training texts. A privacy claim must be fixed
    before the training. Therefore the property `claim` is None if epsilon is learned. With the
    repaired noise, epsilon (fixed or learned) holds only for texts that are not training texts. For
    k encodings of one text, epsilon is multiplied by k.

    Beigi et al. do not specify some details. dpcore chooses these details as follows:

    - The encoder is the mean over the vectors of single words. The decoder is linear. The loss of
      the decoder is the mean cross entropy of the most frequent words. Alternatively, the encoder
      and the decoder are the LSTMs of ADePT.
    - The discriminator has two hidden layers of 128 units.
    - Every training step draws new noise.
    - Adam trains all parts. The learning rate of epsilon (if epsilon is learned) is ten times the
      learning rate of the weights. A learned epsilon is at least .001. If the initial value is
      below .001, the smallest possible value is the initial value.
    - Vectors are clipped in the L1 norm.

    Args:
        epsilon: claimed epsilon, or initial value of a learned epsilon; in (0, 1e300].
        attribute: name of the private attribute in the corpus.
        noise: "zero", "resample" or "repaired". The published formula is undefined for half of the
            random draws. "zero" uses the noise 0 for these draws. "resample" repeats a draw until
            the formula is defined. "repaired" uses Laplace noise in place of the formula.
        learn: True learns epsilon together with the weights, as in the paper.
        cap: largest value that a learned epsilon may have. None means no limit.
        extractor: "bag" for the mean over word vectors, or "lstm" for the LSTM of ADePT.
        dim: number of entries of the vector of a text, at least 2. It must be even for "lstm".
        words: for "bag", the number of words that the decoder predicts (None means 2,000). For
            "lstm", the largest number of words of a text (None means 20). Later words are ignored.
        min_count: a word is known if it occurs at least this number of times in the training texts.
        clip: largest L1 norm C of the vector of a text before the noise is added.

    Attributes:
        trained: record of the training, or None before `fit`.
        labels: the labels that the model can predict.
        private: fitted encoder that includes clipping and noise, or None before `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or the cap is below the initial epsilon.

    Source:
        Beigi et al. (2019), sections 3 and 4; Habernal (2022), theorem 3.1, for the error in the
        published formula.

    Example:
        >>> from dpcore.text import generated
        >>> corpus = generated("topics", 400, rng=1)
        >>> model = DPTextModel(epsilon=5.0, attribute="parent", learn=True, cap=20.0)
        >>> model.fit(corpus, epochs=2, rng=1).claim is None, model.learnt > 0.0
        (True, True)
        >>> DPTextModel(epsilon=5.0, attribute="parent").fit(corpus, epochs=1, pair=False, rng=1)
        DPTextModel(epsilon=5.0, attribute='parent'; THE CLAIM IS FALSE: no epsilon at all for any
        two texts)
    """

    saved_keys = frozenset({"learnt", "words", "labels", "values"})

    @explain_argument_errors
    def __init__(
        self,
        epsilon: float,
        *,
        attribute: str,
        noise: Noise = "zero",
        learn: bool = False,
        cap: float | None = None,
        extractor: Literal["bag", "lstm"] = "bag",
        dim: int = 32,
        words: int | None = None,
        min_count: int = 1,
        clip: float = 1.0,
    ) -> None:
        self.epsilon = positive("epsilon", epsilon)
        self.attribute = instance("attribute", attribute, str)
        self.noise = choice("noise", noise, NOISES)
        self.learn = flag("learn", learn)
        if cap is not None and not learn:
            raise mistyped("cap", "left out where no epsilon is learnt (learn=True)", cap)
        self.cap = None if cap is None else positive("cap", cap)
        if self.cap is not None and self.cap < self.epsilon:
            raise invalid("cap", f"at least epsilon, {self.epsilon:g}, where learning starts", cap)
        self.extractor: Literal["bag", "lstm"] = choice("extractor", extractor, ("bag", "lstm"))
        self.dim = integer("dim", dim, 2)
        if extractor == "lstm" and self.dim % 2:
            raise invalid("dim", "even for 'lstm', whose state is of two halves", dim)
        self.clip = positive("clip", clip)
        self.words = None if words is None else integer("words", words, 1)
        self.min_count = integer("min_count", min_count, 1)
        self.transform = Clip("l1", self.clip)
        self.labels: npt.NDArray[Any] = np.array([])
        self.values: dict[str, npt.NDArray[Any]] = {}
        self.parts: Parts | None = None

    def fit(
        self,
        corpus: Any,
        *,
        epochs: int = 8,
        batch: int = 64,
        lr: float = 3e-3,
        strength: float = 1.0,
        reconstruction: float = 0.1,
        pair: bool = True,
        rng: Rng = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Train the encoder, the decoder, the classifier and the discriminator of this model.

        Args:
            corpus: a `Corpus` with labels and the private attribute. The model is trained on the
                training part of the corpus. If the corpus has no split, the model is trained on all
                texts. The claimed epsilon does not cover the training texts.
            epochs: number of passes over the texts.
            batch: number of texts per training step.
            lr: learning rate of Adam for the weights. The rate for a learned epsilon is ten times
                as large.
            strength: weight of the loss of the discriminator (lambda in the paper).
            reconstruction: weight of the loss of the decoder.
            pair: with True, `fit` also finds the two training texts with the largest privacy loss.
                `print(model)` shows this pair.
            rng: None, an int in [0, 2**63) or a Generator, for the initial weights, the order of
                the texts and the noise. None draws a new seed, and the model records this seed.
            device: device of the training and of the model, such as "cuda". None means the CPU.
            progress: True shows a progress bar, False shows no bar. None shows a bar for long work
                on a terminal or in a notebook.

        Returns:
            The model itself. After Ctrl-C, the model has the weights from the end of the last
            complete epoch, and `trained.partial` is True.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: for one of these reasons:

                - the corpus has no labels, no private attribute or no training part;
                - the labels or the attribute have only one value;
                - an argument is out of range;
                - the loss diverges.
            KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        """
        flag("pair", pair)
        epochs, seed = integer("epochs", epochs, 1), to_seed(rng)
        recipe = make_recipe(epochs, batch, lr, strength=strength, reconstruction=reconstruction)
        self.private = self.trained = self.parts = None
        part = training_part(corpus)
        self.labels, truth = encode_labels(part)
        self.values = unique_values((self.attribute,), part)
        place = require_available_device("cpu" if device is None else device)
        texts, source = tuple(part.texts), np.random.default_rng(seed)
        settings = CODERS[self.extractor].settings
        vocabulary = Vocabulary.from_texts(texts, min_count=self.min_count, **settings)
        with seeded_torch(source):
            self.assemble(vocabulary, self.epsilon)
        assert self.parts is not None
        for module in self.modules.values():
            module.to(place)
        rows, codes = self.parts.coder.rows(texts), torch.from_numpy(codes_of(self.values, part))
        losses, levels, ended = train_tracking_epsilon_until_interrupt(
            self.parts, rows, truth.to(place), codes[:, 0].to(place), recipe, source, progress
        )
        epsilons = tuple(self.epsilon if level is None else level for level in levels)
        self.trained = Trained(
            **asdict(recipe), texts=len(texts), seed=seed, losses=losses, epsilons=epsilons,
            partial=ended,
        )  # fmt: skip
        return self._set_noise_and_pair(texts, pair, progress)

    @property
    def _clipped_l1_diameter(self) -> float:
        """Largest L1 distance between two clipped vectors."""
        return float(sensitivity.sensitivity(self.transform.range(self.dim), "l1").value)

    def assemble(self, vocabulary: Vocabulary, epsilon: float) -> None:
        """Create all modules of this model with random initial weights.

        Args:
            vocabulary: mapping from known words to numbers.
            epsilon: epsilon of the noise, or initial value of a learned epsilon.
        """
        kind = (
            LaplaceNoise if self.noise == "repaired" else partial(DPTextNoiseLayer, nan=self.noise)
        )
        if self.learn:
            layer = kind(
                sensitivity=self._clipped_l1_diameter, epsilon=epsilon, trainable=True, cap=self.cap
            )
        else:
            layer = kind(calibration.laplace(epsilon, self._clipped_l1_diameter))
        words = self.words or _DEFAULT_WORD_LIMITS[self.extractor]
        coder = CODERS[self.extractor](vocabulary, self.dim, words)
        head = torch.nn.Linear(self.dim, len(self.labels))
        discriminator = Discriminator(self.dim, [len(values) for values in self.values.values()])
        self.parts = Parts(coder, self.transform, layer, head, discriminator)

    @property
    def modules(self) -> dict[str, Any]:
        """Torch modules of this model, by name.

        The names are "encoder", "decoder", "noise", "head" (the classifier of the label) and
        "discriminator".
        """
        assert self.parts is not None
        coder = {"encoder": self.parts.coder.encoder, "decoder": self.parts.coder.decoder}
        names = ("noise", "head", "discriminator")
        return coder | {name: getattr(self.parts, name) for name in names}

    @property
    def state(self) -> dict[str, Any]:
        """Data of this model that are stored in the file config.json.

        The data are the current epsilon, the known words, the labels, and the values of the private
        attribute.
        """
        assert self.parts is not None
        return {
            "learnt": self.learnt,
            "words": list(self.parts.coder.vocabulary.words),
            "labels": self.labels.tolist(),
            "values": {name: column.tolist() for name, column in self.values.items()},
        }

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Torch modules of this model whose weights are saved: all modules except the noise."""
        return {name: module for name, module in self.modules.items() if name != "noise"}

    def restore(self, state: dict[str, Any]) -> None:
        """Create all modules of this model from saved data, without loading weights.

        Args:
            state: saved data, as the property `state` returns them.
        """
        self.labels = np.array(state["labels"])
        values = read_mapping(state, "values")
        self.values = {name: np.array(column) for name, column in values.items()}
        settings = CODERS[self.extractor].settings
        self.assemble(Vocabulary(state["words"], **settings), state["learnt"])

    def protect(self) -> None:
        """Set the attribute `private` to the fitted encoder with clipping and noise."""
        assert self.parts is not None
        for module in self.modules.values():
            module.eval()
        self.private = PrivateEncoder(
            self.parts.coder.encoder,
            self.transform,
            epsilon=learnt_epsilon_or_none(self.parts.noise) or self.epsilon,
            noise=self.parts.noise,
            strict=False,
        ).to(self.parts.head.weight.device)

    @property
    def claim(self) -> float | None:
        """Epsilon that this model claims for any two texts, or None if epsilon is learned."""
        return None if self.learn else self.epsilon

    @property
    def learnt(self) -> float:
        """Epsilon of this model: the current learned value, or the value that the user fixed."""
        epsilon = None if self.private is None else learnt_epsilon_or_none(self.private.noise)
        return self.epsilon if epsilon is None else epsilon

    @property
    def caution(self) -> str:
        """Text for reports: a warning that epsilon is learned from the training texts.

        The text is "" if epsilon is fixed.
        """
        if not self.learn:
            return ""
        if self.private is None:
            return "epsilon will be LEARNT from the training texts, so that nothing is claimed"
        limit = "no cap" if self.cap is None else f"at most {self.cap:g}"
        return (
            f"epsilon {self.learnt:.6g} is LEARNT from the training texts ({limit}): no claim "
            "fixed in advance, and it covers none of them"
        )

    @property
    def verdict(self) -> str:
        """Text for reports that states whether the claimed epsilon holds for any two texts.

        If epsilon is learned, the text states an upper bound on the epsilon for texts that are
        encoded after the training.
        """
        if not self.learn:
            return super().verdict
        if self.private is None:
            return f"not fitted: {self.caution}"
        epsilon = self.true_epsilon
        later = f"at most {epsilon:.6g}" if math.isfinite(epsilon) else "no epsilon at all"
        return f"{self.caution}; for any two later texts {later}"

    def predict(self, texts: Any, *, rng: Rng = None) -> npt.NDArray[Any]:
        """Encode texts with noise, and predict their labels from the noisy vectors.

        Args:
            texts: strings that are not empty.
            rng: None draws new noise. With the same int, or the same state of a Generator, the
                method adds the same noise again.

        Returns:
            A label for each text, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        rows = self.encode(texts, rng=rng)
        assert self.parts is not None
        return self.label_rows(self.parts.head, rows)

    def details(self) -> dict[str, str]:
        """Return additional rows that `print` shows for this model: epsilon, training and labels.

        The keys of the dictionary are the titles of the rows.
        """
        rows = super().details()
        claim, later = self.claim, "for any two later texts, one encoding of each"
        assert self.private is not None
        if claim is None:
            holds = math.isfinite(self.true_epsilon)
            which = f"at most epsilon {self.true_epsilon:.6g}" if holds else "no epsilon at all"
            why = self.private.noise.faulty
            rows["true"] = f"{which}, {later}{': ' * bool(why)}{why}"
        rows["claim"] = f"none: {self.caution}" if claim is None else f"epsilon {claim:g}, {later}"
        if self.private.noise.faulty:
            rows["repeats"] = "nothing bounds the loss of a single encoding"
        return rows

    def as_mechanism(self) -> EncoderMechanism:
        """Return a mechanism for an audit: the input is a text, and the output is the noisy vector.

        The mechanism claims the epsilon of this model. If epsilon is learned, the mechanism claims
        no epsilon.
        """
        made = super().as_mechanism()
        made.claim = self.claim
        if self.learn:
            made.name = f"{made.name[:-1]}, learnt={self.learnt:.6g})"
        return made
