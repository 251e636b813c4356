"""Baselines against attribute leakage: an extractor trained against an opponent.

They claim no epsilon. They require torch.
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
"""Number of words that the decoder can predict, the most frequent ones of the training texts."""


@contextmanager
def freeze_weights(module: Any) -> Iterator[None]:
    """Let gradients pass through a module without gradients for its weights."""
    module.requires_grad_(False)
    try:
        yield
    finally:
        module.requires_grad_(True)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Parts from which an opponent is made.

    Args:
        discriminator: discriminator, not trained yet.
        codes: codes of the training texts' attributes, int64, shape `(texts, attributes)`.
        units: `Units` of the training texts.
        strength: factor of the penalty.
        rng: generator for the opponent's draws. The extractor's training uses another.
        device: device of the vectors.
    """

    discriminator: Discriminator
    codes: Any
    units: Any
    strength: float
    rng: Any
    device: Any


class Opponent:
    """Opponent that trains the discriminator on every batch. A subclass defines the penalty.

    Args:
        made: the parts of the opponent.
    """

    def __init__(self, made: Material) -> None:
        self.discriminator, self.codes = made.discriminator, made.codes
        self.strength, self.rng = made.strength, made.rng
        self.weights = list(self.discriminator.parameters())
        self.optimiser = torch.optim.Adam(self.weights, lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """Take one training step of the discriminator on detached vectors of a batch."""
        descend_loss(self.discriminator.loss(rows, self.truth(rows, batch)), self.optimiser)

    def truth(self, rows: Any, batch: Any) -> Any:
        """Return the codes of the texts at positions `batch`, one column per attribute."""
        return self.codes[batch].to(rows.device).unbind(1)

    def penalty(self, rows: Any, batch: Any) -> Any:
        """Return `strength` times the extractor's loss against this opponent, or exactly 0."""
        return self.strength * self.against(rows, batch) if self.strength else 0.0

    def against(self, rows: Any, batch: Any) -> Any:
        """Compute the loss that the extractor lowers. It must not change the discriminator."""
        raise NotImplementedError


def names_of(attribute: Any) -> tuple[str, ...]:
    """Check the name of one attribute or of several, and return the names.

    Raises:
        TypeError: if the value is neither a name nor several names.
        ValueError: if there is no name, or a name occurs twice.
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
    """An extractor trained against an opponent, so that its vectors reveal less of attributes.

    ``encode(text) = m(f(text))``, with the extractor and the transform of `DPNR` and without noise.
    It claims no epsilon, and it is only trained to hide attributes from its own opponent. Each
    batch has two steps. First the opponent learns from the current vectors (Adam at 1e-3). Then
    extractor and classifier minimise ``CE(label) + strength L`` (as in `DPNR`), where the subclass
    defines L. In all subclasses, a discriminator with two hidden layers of 128 learns to infer the
    attributes. If L does not use it, it has no effect.

    The transform keeps the vectors in a bounded set, so that no L grows without limit.

    Args:
        dim: dimension of a vector, at least 2. Defaults to 32.
        attribute: name of an attribute of the corpus with at least two values, or several names.
        strength: factor of L, at least 0. Defaults to the value of the class. With 0, the weights
            are bit for bit those of plain training.
        transform: a transform of `PrivateEncoder`, such as `Clip`. Defaults to min-max, as in
            `DPNR`.
        unknown: "drop" leaves unknown words out of the mean; "token" maps them to a separate row.
        min_count: smallest number of occurrences of a word or word pair in the training texts.

    Attributes:
        claim: None, because no epsilon is claimed.
        trained: record of the training, or None before `fit`.
        labels: values that the classifier distinguishes.
        values: values of each attribute.

    Raises:
        TypeError: if an argument is of the wrong kind.
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
        """Train extractor, classifier and opponent.

        Args:
            corpus: a `Corpus` with labels and attributes. Its train part is read, or all texts
                without a split.
            epochs: number of passes over the texts. By default, as many as make 2,226 steps, from 5
                to 35.
            batch: number of texts in a step.
            lr: learning rate of extractor and classifier in the first epoch.
            decay: factor of the learning rate after every epoch.
            rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator. It determines
                initial weights and order.
            device: device for training and storage, such as "cuda". Defaults to the CPU.
            progress: True to show a progress bar. By default, it is shown for long work on a
                terminal or in a notebook.

        Returns:
            The model itself. After Ctrl-C, it is the model of the last complete epoch, with
            `trained.partial` set.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the corpus has no labels, no train part or not the attribute, if the
                training texts have only one value of it, or if training diverges.
            KeyboardInterrupt: on Ctrl-C before the end of the first epoch.
        """
        recipe = make_recipe(epochs, batch, lr, decay=decay)
        # The names are checked before the texts are read, so a misspelt name is reported at once.
        whole = instance("corpus", corpus, Corpus)
        values_of(self.attribute, whole if whole.split is None else whole.train)
        self._train(corpus, recipe, None, rng, device, progress)
        return self

    def _adversary(self, part: Corpus, width: int, units: Any, rng: Any) -> Opponent:
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
        """Return the vectors of texts. They are the same in every call.

        Args:
            texts: strings, none of them empty.

        Returns:
            float32, shape `(len(texts), d)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return np.asarray(self._sent(texts).cpu().numpy())

    def predict(self, texts: Sequence[str]) -> Array:  # type: ignore[override]
        """Predict the labels of texts, shape `(len(texts),)`.

        Args:
            texts: strings, none of them empty.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return super().predict(texts)

    def accuracy(self, corpus: Corpus) -> float:  # type: ignore[override]
        """Return the share of texts with a correctly predicted label.

        Args:
            corpus: texts with labels, such as `corpus.test`.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: if it has no labels, or the model is not fitted.
        """
        return super().accuracy(corpus)

    def discriminated(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the attribute values that the discriminator of the training predicts.

        Args:
            texts: strings, none of them empty.

        Returns:
            For each attribute, one value per text, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if the model is not fitted, or a text is empty.
        """
        rows = self._sent(texts)
        assert self.discriminator is not None
        with torch.no_grad():
            codes = self.discriminator.codes(rows).cpu().numpy()
        columns = zip(self.values.items(), codes.T, strict=True)
        return {name: values[column] for (name, values), column in columns}

    def discriminator_accuracy(self, corpus: Corpus) -> dict[str, float]:
        """Return the share of texts for which the discriminator predicts an attribute correctly.

        It measures the defence against this discriminator, not the leakage of the vectors. A newly
        trained attacker (`text.inference.infer`) infers more.

        Args:
            corpus: texts with the attributes, such as `corpus.test`.

        Returns:
            A dictionary from the name of an attribute to the share.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: if the corpus lacks an attribute or has a value that training did not have,
                or the model is not fitted.
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
        """Arguments of the model, as plain data."""
        transform = describe_layer("transform", self.transform, TRANSFORMS)
        kind = {"dim": self.dim, "attribute": list(self.attribute), "strength": self.strength}
        words = {"unknown": self.unknown, "min_count": self.min_count}
        return {**kind, "transform": transform, **words}

    @property
    def state(self) -> dict[str, Any]:
        """State of every classifier, and the values of the attributes."""
        values = {name: column.tolist() for name, column in self.values.items()}
        return {**super().state, "beside": values}

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Modules of every classifier, and the discriminator."""
        return {**super().saved_modules, "discriminator": self.discriminator}

    def restore(self, state: dict[str, Any]) -> None:
        """Make all modules from a saved state."""
        super().restore(state)
        beside, name = read_mapping(state, "beside"), "beside in config.json"
        if tuple(beside) != self.attribute:
            raise invalid(name, f"the values of {', '.join(self.attribute)}", list(beside))
        if not all(isinstance(values, list) and len(values) > 1 for values in beside.values()):
            raise mistyped(name, "a list of two values at least for each attribute", beside)
        self.values = {name: np.array(values) for name, values in beside.items()}
        self.discriminator = self._reader(state["width"]).eval()

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        super().to(device)
        assert self.discriminator is not None
        self.discriminator.to(self.head.weight.device)
        return self

    @property
    def hidden(self) -> str:
        """Attribute names as they were given, as text."""
        return repr(self.attribute[0] if len(self.attribute) == 1 else list(self.attribute))

    def __repr__(self) -> str:
        """Return the arguments, and the note that no epsilon is claimed."""
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
        """List the missing claim, the training and the labels."""
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
    """Opponent whose penalty is the negative loss of the discriminator."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Return ``-CE(b)``."""
        with freeze_weights(self.discriminator):
            return -self.discriminator.loss(rows, self.truth(rows, batch))


class MinMaxAdversary(Defended):
    """Adversarial training: ``min over M, max over D of CE(label; M) - strength CE(attribute; D)``.

    D is a discriminator, and M consists of extractor and classifier. Each takes one step on every
    batch. For several attributes, CE(attribute) is their mean. No epsilon is claimed. See
    `Defended` for the arguments, `fit`, and common properties of all defences.

    Args:
        dim: dimension of a vector. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: lambda in the paper, at least 0. Defaults to 1.

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
    """Opponent whose penalty is the discriminator's loss on wrong values."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Return ``CE(not b)``, with equal weights for all wrong values of an attribute."""
        sizes, truth = self.discriminator.sizes, self.truth(rows, batch)
        wrong = [
            (1.0 - torch.nn.functional.one_hot(codes, size).to(rows.dtype)) / (size - 1)
            for codes, size in zip(truth, sizes, strict=True)
        ]
        with freeze_weights(self.discriminator):
            return self.discriminator.loss(rows, wrong)


class AdversarialClassification(Defended):
    """Adversarial classification: the extractor lowers the discriminator's loss on *wrong* values.

    ``L = CE(not b; D)``. After a step of D on the vectors, the extractor takes a step that makes D
    predict the other value of the attribute. The paper has two values. If there are more, all wrong
    values get equal weights here. Unlike the loss of `MinMaxAdversary`, L is bounded from below,
    and its gradient grows with D's certainty. Large strengths cost accuracy. No epsilon is claimed.
    See `Defended` for the arguments, `fit`, and common properties of all defences.

    Args:
        dim: dimension of a vector. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: factor of L, at least 0. Defaults to 0.1. (The paper uses 1, in steps of a
            separate optimiser.)

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.1, and their code.

    Example:
        >>> AdversarialClassification(attribute=["age", "sex"])
        AdversarialClassification(dim=32, attribute=['age', 'sex'], strength=0.1; claims no epsilon)
    """

    opponent = ComplementOpponent
    usual = 0.1


class DecodingOpponent(Opponent):
    """Opponent that decodes the words of a text; its discriminator does not affect the loss."""

    def __init__(self, made: Material) -> None:
        super().__init__(made)
        self.words, units = _select_frequent(made.units)
        self.decoder = make_layers(made.discriminator.width, units, layers=1).to(made.device)
        self.decoding = torch.optim.Adam(self.decoder.parameters(), lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """Take one training step of the discriminator, and one of the decoder."""
        super().step(rows, batch)
        descend_loss(self.loss(rows, batch), self.decoding)

    def loss(self, rows: Any, batch: Any) -> Any:
        """Compute ``-log p(word | vector)``, averaged over the words of a text, then over texts."""
        texts = self.words.take(batch)
        sizes, ids = texts.sizes.to(rows.device), texts.ids.to(rows.device)
        owner = torch.repeat_interleave(torch.arange(len(batch), device=rows.device), sizes)
        logs = torch.log_softmax(self.decoder(rows), dim=1)[owner, ids]
        return -(logs / sizes[owner]).sum() / len(batch)

    def against(self, rows: Any, batch: Any) -> Any:
        """Return the negative loss of the decoder."""
        with freeze_weights(self.decoder):
            return -self.loss(rows, batch)


def _select_frequent(units: Units) -> tuple[Units, int]:
    """Return only the frequent words of texts, with new numbers, and the number of these words."""
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

    ``L = log p(words | r)``, averaged over the words of a text. The paper decodes letters with a
    recurrent network. Here a hidden layer of 128 predicts the probabilities of the 2,000 most
    frequent words of the training texts, without their order. Attributes are not used: the
    discriminator has no effect. No epsilon is claimed. See `Defended` for the arguments, `fit`, and
    common properties of all defences.

    Args:
        dim: dimension of a vector. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names, only for the discriminator.
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
    """Opponent with a penalty of squared distances of pairs, weighted by different attributes."""

    def against(self, rows: Any, batch: Any) -> Any:
        """Compute ``(0.5 - l) |r - r'|^2``, averaged over the texts.

        r' is the vector of another text of the batch.
        """
        if len(batch) == 1:
            # The last batch may consist of one text, without another text to compare.
            return rows.sum() * 0.0
        shift = int(self.rng.integers(1, len(batch)))
        codes = self.codes[batch]
        similar = (codes == codes.roll(shift, 0)).to(rows.dtype).mean(1).to(rows.device)
        return ((0.5 - similar) * (rows - rows.roll(shift, 0)).square().sum(1)).mean()


class Declustering(Defended):
    """Declustering: texts with equal attributes are moved apart, with different ones together.

    ``L = (0.5 - l) |r - r'|^2``, where l is the share of *equal* attributes of two texts. With one
    attribute, the weight is -1/2 for equal and 1/2 for different values. (A study uses l as a
    distance. This reverses the sign, and creates the clusters that it should prevent.) The second
    text is another text of the batch. There is no opponent: the discriminator has no effect. No
    epsilon is claimed. See `Defended` for the arguments, `fit`, and common properties of all
    defences.

    Args:
        dim: dimension of a vector. Defaults to 32.
        attribute: name of an attribute of the corpus, or several names.
        strength: alpha in the paper, at least 0. Defaults to 1. (The paper uses 0.1, for vectors of
            another scale.)

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.3, and their code.

    Example:
        >>> Declustering(attribute="gender", strength=0.5)
        Declustering(dim=32, attribute='gender', strength=0.5; claims no epsilon)
    """

    opponent = DeclusteringOpponent
