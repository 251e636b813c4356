"""Baselines that train a text encoder (extractor) against an opponent who infers attributes.

The baselines claim no epsilon. This module requires torch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, Self

import numpy as np

from ...errors import instance, invalid, mistyped, real
from ...mechanisms.texts import texts_of
from ...packages import torch
from ...records import Array
from ...report.rows import Row
from ...report.shown import Shown
from ...streams import Rng, seeded_torch
from ...suggestions import suggest_arguments
from ...text.corpus import Corpus
from ...text.systems.dpnr import TextClassifier
from ...text.systems.dptext import Discriminator, codes_of, descend_loss, make_layers, values_of
from ...text.systems.system import read_mapping
from ...text.systems.training import Units, make_recipe
from ...torch import MinMax
from ...torch.private_encoder import transform_of
from ...torch.serialization import TRANSFORMS, describe_layer

__all__ = [
    "AdversarialClassification",
    "AdversarialGeneration",
    "Declustering",
    "Defended",
    "MinMaxAdversary",
]

RATE: Final = 1e-3
"""Learning rate of Adam for all opponents of an extractor."""
WORDS: Final = 2000
"""The decoder can predict this number of words, the most frequent words of the training texts."""


@contextmanager
def freeze_weights(module: Any) -> Iterator[None]:
    """Context manager that turns off the gradients of a module's weights, but not of its inputs."""
    module.requires_grad_(False)
    try:
        yield
    finally:
        module.requires_grad_(True)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Arguments of an opponent.

    Args:
        discriminator: untrained network that learns to infer the attributes from a vector.
        codes: attribute values of the training texts as numbers from 0, int64, shape
            `(texts, attributes)`.
        units: words and word pairs of the training texts, as numbers.
        strength: factor of the opponent's penalty in the loss of the extractor.
        rng: generator of the opponent's random numbers. The training of the extractor uses another
            generator.
        device: torch device of the vectors.
    """

    discriminator: Discriminator
    codes: Any
    units: Any
    strength: float
    rng: Any
    device: Any


class Opponent:
    """Base class of the opponents.

    This class trains the discriminator, and a subclass defines the penalty.

    Args:
        made: the discriminator and the other arguments.
    """

    def __init__(self, made: Material) -> None:
        self.discriminator, self.codes = made.discriminator, made.codes
        self.strength, self.rng = made.strength, made.rng
        self.weights = list(self.discriminator.parameters())
        self.optimiser = torch.optim.Adam(self.weights, lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """Take one training step of the discriminator on the vectors of a batch, `rows`."""
        descend_loss(self.discriminator.loss(rows, self.truth(rows, batch)), self.optimiser)

    def truth(self, rows: Any, batch: Any) -> Any:
        """Return the attributes of the texts at positions `batch`, one tensor per attribute."""
        return self.codes[batch].to(rows.device).unbind(1)

    def penalty(self, rows: Any, batch: Any) -> Any:
        """Return `strength` times `against(rows, batch)`, or exactly 0 if `strength` is 0."""
        return self.strength * self.against(rows, batch) if self.strength else 0.0

    def against(self, rows: Any, batch: Any) -> Any:
        """Return the term L that the extractor minimises.

        The method must not change the discriminator.
        """
        raise NotImplementedError


def names_of(attribute: Any) -> tuple[str, ...]:
    """Check one name of an attribute, or several names, and return them as a tuple.

    Raises:
        TypeError: if the argument is neither a string nor several strings.
        ValueError: if the argument is empty, or a name occurs twice.
    """
    several = isinstance(attribute, Iterable) and not isinstance(attribute, (str, bytes))
    names = tuple(attribute) if several else (attribute,)
    requirement = "the name of an attribute, or several names"
    if not all(isinstance(name, str) for name in names):
        raise mistyped("attribute", requirement, attribute)
    if not names or len(set(names)) < len(names):
        raise invalid("attribute", f"{requirement}, that differ", attribute)
    return names


class Defended(Shown, TextClassifier):
    """Base class of text encoders that are trained to hide attributes from an opponent.

    The encoder computes ``encode(text) = m(f(text))``. The extractor f averages the vectors of
    words and word pairs. The transform m maps the average into a bounded set. The encoder adds no
    noise and claims no epsilon. Attackers other than the opponent of the training may still infer
    the attributes.

    Every batch has two training steps. First, the opponent learns from the current vectors (Adam at
    rate 1e-3). Then the extractor and a linear classifier of the label minimise
    ``CE(label) + strength L``. The subclass defines the term L. In all subclasses, a discriminator
    with two hidden layers of 128 units learns to infer the attributes. The discriminator affects
    the encoder only if L depends on the discriminator.

    The transform m bounds the vectors, so that L does not grow without limit.

    Args:
        dim: dimension of the text vectors, at least 2. Defaults to 32.
        attribute: name of an attribute of the corpus with at least two values, or several names.
        strength: factor of L, at least 0. The default depends on the subclass. With 0, the
            extractor is the same, bit for bit, as without an opponent.
        transform: the transform m, one of the transforms of `PrivateEncoder`, such as `Clip`.
            Defaults to `MinMax`, which scales the entries to [0, 1].
        unknown: "drop" to leave unknown words out of the average, or "token" to represent all
            unknown words by one vector.
        min_count: smallest number of occurrences in the training texts of a known word or word
            pair.

    Attributes:
        claim: None, because no epsilon is claimed.
        trained: record of the training, or None before `fit`.
        labels: label values that the classifier predicts.
        values: dict from the name of an attribute to its values.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """

    opponent: ClassVar[type[Opponent]] = Opponent
    usual: ClassVar[float] = 1.0
    claim: ClassVar[None] = None

    @suggest_arguments
    def __init__(
        self,
        dim: int | None = None,
        *,
        attribute: Any,
        strength: float | None = None,
        transform: Any = None,
        unknown: Literal["drop", "token"] = "drop",
        min_count: int = 1,
    ) -> None:
        super().__init__(dim, None, None, unknown, min_count)
        self.attribute = names_of(attribute)
        # Weights are float32, and the strength is multiplied with float32 values.
        strength = self.usual if strength is None else strength
        self.strength = real("strength", strength, low=0.0, high=1e30)
        self.transform = transform_of(MinMax() if transform is None else transform)
        self.values: dict[str, Array] = {}
        self.discriminator: Discriminator | None = None

    def fit(
        self,
        corpus: Any,
        *,
        epochs: int | None = None,
        batch: int = 64,
        lr: float = 2.0,
        decay: float = 0.9,
        rng: Rng = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> Self:
        """Train the extractor, the classifier and the opponent.

        Args:
            corpus: a `Corpus` with labels and attributes. The training uses the training texts, or
                all texts if the corpus has no split.
            epochs: number of passes over the texts. By default, it is chosen between 5 and 35 to
                give about 2,226 training steps.
            batch: number of texts in a batch.
            lr: learning rate of the extractor and the classifier in the first epoch.
            decay: factor by which the learning rate is multiplied after every epoch.
            rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator. The generator
                determines the initial weights and the order of the texts.
            device: torch device of the training and of the trained model, such as "cuda". Defaults
                to the CPU.
            progress: True to show a progress bar. By default, dpcore shows the bar for long work on
                a terminal or in a notebook.

        Returns:
            The object itself. After Ctrl-C, it has the weights of the last complete epoch, and
            `trained.partial` is True.

        Raises:
            TypeError: if an argument has the wrong type.
            ValueError: if the corpus has no labels, has no training texts or lacks an attribute; if
                an attribute has only one value in the training texts; or if the training diverges.
            KeyboardInterrupt: if the user presses Ctrl-C before the end of the first epoch.
        """
        recipe = make_recipe(epochs, batch, lr, decay=decay)
        # The names are checked before the texts are read, so a misspelt name is reported at once.
        whole = instance("corpus", corpus, Corpus)
        values_of(self.attribute, whole if whole.split is None else whole.train)
        self._train(corpus, recipe, None, rng, device, progress)
        return self

    def _make_adversary(self, part: Corpus, width: int, units: Any, rng: Any) -> Opponent:
        self.values = values_of(self.attribute, part)
        codes = torch.from_numpy(codes_of(self.values, part))
        place = self.head.weight.device
        with seeded_torch(rng):
            self.discriminator = self._reader(width).to(place)
            made = Material(self.discriminator, codes, units, self.strength, rng, place)
            return self.opponent(made)

    def _reader(self, width: int) -> Discriminator:
        return Discriminator(width, [len(values) for values in self.values.values()])

    def _transform(self, rows: Any) -> Any:
        return self.transform(rows)

    def _sent(self, texts: Sequence[str]) -> Any:
        self.require_fitted("encodes")
        return self._transform(self._vectors(texts_of("texts", texts)))

    # There is no argument `rng`, because no noise is drawn. An argument without effect would
    # suggest noise, and `inference.infer` would record its seed.
    def encode(self, texts: Sequence[str]) -> Array:  # type: ignore[override]
        """Return the vectors of texts. Every call returns the same vectors.

        Args:
            texts: list of strings that are not empty.

        Returns:
            float32, shape `(len(texts), d)`.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return np.asarray(self._sent(texts).cpu().numpy())

    def predict(self, texts: Sequence[str]) -> Array:  # type: ignore[override]
        """Predict the labels of texts. The array has shape `(len(texts),)`.

        Args:
            texts: list of strings that are not empty.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return super().predict(texts)

    def accuracy(self, corpus: Corpus) -> float:  # type: ignore[override]
        """Return the share of texts whose label is predicted correctly.

        Args:
            corpus: texts with labels, such as `corpus.test`.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: if the corpus has no labels, or the model is not fitted.
        """
        return super().accuracy(corpus)

    def discriminated(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the attribute values that the discriminator trained in `fit` predicts.

        Args:
            texts: list of strings that are not empty.

        Returns:
            A dict from the name of an attribute to an array of predicted values, shape
            `(len(texts),)`.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        rows = self._sent(texts)
        assert self.discriminator is not None
        with torch.no_grad():
            codes = self.discriminator.codes(rows).cpu().numpy()
        columns = zip(self.values.items(), codes.T, strict=True)
        return {name: values[column] for (name, values), column in columns}

    def discriminator_accuracy(self, corpus: Corpus) -> dict[str, float]:
        """Return the accuracy of the discriminator for each attribute.

        A low accuracy does not show that the vectors hide the attributes. A newly trained attacker
        (`text.inference.infer`) infers more than this discriminator.

        Args:
            corpus: texts with the attributes, such as `corpus.test`.

        Returns:
            A dict from the name of an attribute to the share of texts whose value is predicted
            correctly.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: if the corpus lacks an attribute, if an attribute has a value that does not
                occur in the training texts, or if the model is not fitted.
        """
        self.require_fitted("tells attributes")
        truth = codes_of(self.values, instance("corpus", corpus, Corpus))
        predictions = self.discriminated(corpus.texts)
        return {
            name: float(np.mean(predictions[name] == values[column]))
            for (name, values), column in zip(self.values.items(), truth.T, strict=True)
        }

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the constructor, as a dict of JSON values."""
        transform = describe_layer("transform", self.transform, TRANSFORMS)
        kind = {"dim": self.dim, "attribute": list(self.attribute), "strength": self.strength}
        words = {"unknown": self.unknown, "min_count": self.min_count}
        return {**kind, "transform": transform, **words}

    @property
    def state(self) -> dict[str, Any]:
        """State of the model that is saved as JSON, including the values of the attributes."""
        values = {name: column.tolist() for name, column in self.values.items()}
        return {**super().state, "beside": values}

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Torch modules that are saved, including the discriminator."""
        return {**super().saved_modules, "discriminator": self.discriminator}

    def restore(self, state: dict[str, Any]) -> None:
        """Create all torch modules from a saved state."""
        super().restore(state)
        beside, name = read_mapping(state, "beside"), "beside in config.json"
        if tuple(beside) != self.attribute:
            raise invalid(name, f"the values of {', '.join(self.attribute)}", list(beside))
        if not all(isinstance(values, list) and len(values) > 1 for values in beside.values()):
            raise mistyped(name, "a list of two values at least for each attribute", beside)
        self.values = {name: np.array(values) for name, values in beside.items()}
        self.discriminator = self._reader(state["width"]).eval()

    def to(self, device: Any) -> Self:
        """Move the model to a torch device, and return the model."""
        super().to(device)
        assert self.discriminator is not None
        self.discriminator.to(self.head.weight.device)
        return self

    @property
    def hidden(self) -> str:
        """Names of the hidden attributes, as text."""
        return repr(self.attribute[0] if len(self.attribute) == 1 else list(self.attribute))

    def __repr__(self) -> str:
        """Return a text with the arguments and the note "claims no epsilon"."""
        settings = {
            "transform": self.transform,
            "unknown": self.unknown,
            "min_count": self.min_count,
        }
        more = [
            f", {name}={value!r}"
            for name, value in settings.items()
            if value not in ("drop", 1) and not isinstance(value, MinMax)
        ]
        return (
            f"{type(self).__name__}(dim={self.dim}, attribute={self.hidden}, "
            f"strength={self.strength:g}{''.join(more)}; claims no epsilon)"
        )

    def _lines(self) -> list[Row]:
        """Return the lines of the printed description of the model."""
        control = "strength 0: plain training" if not self.strength else "its own opponent only"
        lines = [
            ("claim", "claims no epsilon: nothing holds for any two texts"),
            ("hides", f"{self.hidden}, from {control}; an attacker trained afresh reads more"),
            ("trained", str(self.trained or "not yet: model.fit(corpus)")),
        ]
        if self.trained is not None:
            lines.append(("labels", ", ".join(map(str, self.labels.tolist()))))
        return lines


class MinMaxOpponent(Opponent):
    """Opponent whose penalty is minus the loss of the discriminator."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Return minus the cross-entropy of the discriminator."""
        with freeze_weights(self.discriminator):
            return -self.discriminator.loss(rows, self.truth(rows, batch))


class MinMaxAdversary(Defended):
    """Adversarial training: ``min over M, max over D of CE(label; M) - strength CE(attribute; D)``.

    The discriminator D predicts the attribute from the vector. M consists of the extractor and the
    classifier of the label. On every batch, D takes one step, and then M takes one step. For
    several attributes, CE(attribute) is the mean of their cross-entropies. The encoder claims no
    epsilon. `Defended` describes `fit`, the other methods and the other arguments.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: factor of CE(attribute), lambda in the paper, at least 0. Defaults to 1.

    Source:
        Li, Baldwin and Cohn (2018).

    Example:
        >>> from dpcore.text import generated
        >>> corpus = generated("topics", 600, rng=1)
        >>> model = MinMaxAdversary(16, attribute="parent").fit(corpus, epochs=8, rng=1)
        >>> model
        MinMaxAdversary(dim=16, attribute='parent', strength=1; claims no epsilon)
        >>> model.encode(corpus.test.texts).shape, list(model.discriminator_accuracy(corpus.test))
        ((60, 16), ['parent'])
    """

    opponent = MinMaxOpponent


class ComplementOpponent(Opponent):
    """Opponent whose penalty is the discriminator's cross-entropy for wrong attribute values."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Return the cross-entropy, with equal weights for all wrong values of an attribute."""
        sizes, truth = self.discriminator.sizes, self.truth(rows, batch)
        wrong = [
            (1.0 - torch.nn.functional.one_hot(codes, size).to(rows.dtype)) / (size - 1)
            for codes, size in zip(truth, sizes, strict=True)
        ]
        with freeze_weights(self.discriminator):
            return self.discriminator.loss(rows, wrong)


class AdversarialClassification(Defended):
    """Adversarial classification: the extractor lowers the discriminator's loss on *wrong* values.

    The training minimises ``CE(label) + strength L``, with ``L = CE(not b; D)``. Here b is the
    value of the attribute, and D is the discriminator, which predicts b from the vector. On every
    batch, D takes a step to predict b. Then the extractor takes a step to make D predict a wrong
    value. In the paper, an attribute has two values. For an attribute with more values, all wrong
    values have equal weights.

    Unlike the loss of `MinMaxAdversary`, L is bounded from below, and its gradient is large if D is
    certain. A large strength lowers the accuracy. The encoder claims no epsilon. `Defended`
    describes `fit`, the other methods and the other arguments.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: factor of L, at least 0. Defaults to 0.1. The paper uses 1 and a separate
            optimiser.

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.1, and their code.

    Example:
        >>> AdversarialClassification(attribute=["age", "sex"])
        AdversarialClassification(dim=32, attribute=['age', 'sex'], strength=0.1; claims no epsilon)
    """

    opponent = ComplementOpponent
    usual = 0.1


class DecodingOpponent(Opponent):
    """Opponent that predicts the words of a text from the vector.

    The discriminator has no effect.
    """

    def __init__(self, made: Material) -> None:
        super().__init__(made)
        self.words, units = _select_frequent(made.units)
        self.decoder = make_layers(made.discriminator.width, units, layers=1).to(made.device)
        self.decoding = torch.optim.Adam(self.decoder.parameters(), lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """Take one training step of the discriminator, and one training step of the decoder."""
        super().step(rows, batch)
        descend_loss(self.loss(rows, batch), self.decoding)

    def loss(self, rows: Any, batch: Any) -> Any:
        """Return ``-log p(word | vector)``, averaged over words and then over texts."""
        texts = self.words.take(batch)
        sizes, ids = texts.sizes.to(rows.device), texts.ids.to(rows.device)
        owner = torch.repeat_interleave(torch.arange(len(batch), device=rows.device), sizes)
        logs = torch.log_softmax(self.decoder(rows), dim=1)[owner, ids]
        return -(logs / sizes[owner]).sum() / len(batch)

    def against(self, rows: Any, batch: Any) -> Any:
        """Return minus the loss of the decoder."""
        with freeze_weights(self.decoder):
            return -self.loss(rows, batch)


def _select_frequent(units: Units) -> tuple[Units, int]:
    """Keep only the frequent words of the texts, renumber them, and also return their number."""
    single = units.spans[:, 1] - units.spans[:, 0] == 1
    counts = torch.bincount(units.ids[single])
    kept = torch.argsort(counts, descending=True, stable=True)[:WORDS]
    kept = kept[counts[kept] > 0]
    if not len(kept):
        raise invalid("corpus", "one whose training texts have words, for the decoder", units)
    number = torch.full((int(units.ids.max()) + 1,), -1)
    number[kept] = torch.arange(len(kept))
    stays = single & (number[units.ids] >= 0)
    text = torch.repeat_interleave(torch.arange(len(units)), units.sizes)[stays]
    sizes = torch.bincount(text, minlength=len(units))
    return Units(number[units.ids[stays]], units.spans[stays], sizes, sizes), len(kept)


class AdversarialGeneration(Defended):
    """Adversarial generation: the extractor raises the loss of a decoder of the text's words.

    The training minimises ``CE(label) + strength L``, with ``L = log p(words | r)``. Here r is the
    vector of a text, and the logarithm is averaged over the words of the text. In the paper, a
    recurrent network predicts letters. In dpcore, a network with one hidden layer of 128 units
    predicts which of the 2,000 most frequent training words occur, without their order. The
    attributes do not affect the training of the encoder. The encoder claims no epsilon. `Defended`
    describes `fit`, the other methods and the other arguments.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names. Only `discriminated` and
            `discriminator_accuracy` use the attributes.
        strength: factor of L, at least 0. Defaults to 0.1.

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.2.

    Example:
        >>> AdversarialGeneration(16, attribute="gender")
        AdversarialGeneration(dim=16, attribute='gender', strength=0.1; claims no epsilon)
    """

    opponent = DecodingOpponent
    usual = 0.1


class DeclusteringOpponent(Opponent):
    """Opponent whose penalty is a weighted squared distance between pairs of vectors."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Return ``(0.5 - l) |r - r'|^2``, averaged over the texts.

        r and r' are the vectors of two texts of the batch, and l is the share of equal attributes.
        """
        if len(batch) == 1:
            # The last batch may consist of one text, without another text to compare.
            return rows.sum() * 0.0
        shift = int(self.rng.integers(1, len(batch)))
        codes = self.codes[batch]
        similar = (codes == codes.roll(shift, 0)).to(rows.dtype).mean(1).to(rows.device)
        return ((0.5 - similar) * (rows - rows.roll(shift, 0)).square().sum(1)).mean()


class Declustering(Defended):
    """Declustering: vectors of texts with equal attributes move apart, others move together.

    The training minimises ``CE(label) + strength L``, with ``L = (0.5 - l) |r - r'|^2``. Here r and
    r' are the vectors of two texts of a batch, and l is the share of attributes with *equal*
    values. With one attribute, the factor 0.5 - l is -1/2 for equal values and 1/2 for different
    values. The discriminator does not affect the encoder. The encoder claims no epsilon. `Defended`
    describes `fit`, the other methods and the other arguments.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: factor of L, alpha in the paper, at least 0. Defaults to 1. The paper uses 0.1,
            with vectors of another scale.

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.3, and their code.

    Example:
        >>> Declustering(attribute="gender", strength=0.5)
        Declustering(dim=32, attribute='gender', strength=0.5; claims no epsilon)
    """

    opponent = DeclusteringOpponent
