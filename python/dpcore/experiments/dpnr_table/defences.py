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
from ...mechanisms.texts import as_texts
from ...packages import torch
from ...records import Array
from ...report.rows import Row
from ...report.shown import Shown
from ...streams import Rng, seeded_torch
from ...suggestions import explain_argument_errors
from ...text.corpus import Corpus
from ...text.systems.dpnr import TextClassifier
from ...text.systems.dptext import Discriminator, codes_of, descend_loss, make_layers, unique_values
from ...text.systems.system import read_mapping
from ...text.systems.training import Units, make_recipe
from ...torch import MinMax
from ...torch.private_encoder import as_torch_module
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
"""Number of words that the decoder can predict: the most frequent words of the training texts."""


@contextmanager
def freeze_weights(module: Any) -> Iterator[None]:
    """Turn off the gradients of the weights of a torch module while the `with` block runs.

    The gradients of the inputs stay on.
    """
    module.requires_grad_(False)
    try:
        yield
    finally:
        module.requires_grad_(True)


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """Arguments of an opponent (a network that infers attributes from the vectors of an encoder).

    Args:
        discriminator: untrained network that learns to infer the attributes from a vector.
        codes: attribute values of the training texts, as whole numbers from 0 (int64, shape
            `(texts, attributes)`).
        units: vocabulary indices of the words and word pairs in each training text.
        strength: factor of the penalty in the loss of the encoder. The opponent defines the
            penalty.
        rng: generator of the random numbers of the opponent, separate from the generator for
            training the encoder.
        device: torch device of the vectors.
    """

    discriminator: Discriminator
    codes: Any
    units: Any
    strength: float
    rng: Any
    device: Any


class Opponent:
    """Base class of the opponents against which a text encoder is trained.

    An opponent has a discriminator, a network that learns to infer private attributes from the text
    vectors. A subclass defines a penalty. The encoder is trained to make the penalty small.

    Args:
        made: the discriminator and the other settings of the opponent.
    """

    def __init__(self, made: Material) -> None:
        self.discriminator, self.codes = made.discriminator, made.codes
        self.strength, self.rng = made.strength, made.rng
        self.weights = list(self.discriminator.parameters())
        self.optimiser = torch.optim.Adam(self.weights, lr=RATE)

    def step(self, rows: Any, batch: Any) -> None:
        """Train the discriminator (the network that infers attributes) for one step on a batch.

        `rows` are the vectors of the training texts with indices `batch`.
        """
        descend_loss(self.discriminator.loss(rows, self.true_values(rows, batch)), self.optimiser)

    def true_values(self, rows: Any, batch: Any) -> Any:
        """Return the true attributes of some training texts, one tensor per attribute.

        The texts have the indices `batch`. The tensors are on the device of the vectors `rows`.
        """
        return self.codes[batch].to(rows.device).unbind(1)

    def penalty(self, rows: Any, batch: Any) -> Any:
        """Return the penalty in the loss of the encoder.

        The penalty is `strength` times `hiding_penalty(rows, batch)`. The penalty is exactly 0 if
        `strength` is 0. `rows` are the vectors of the training texts with indices `batch`.
        """
        return self.strength * self.hiding_penalty(rows, batch) if self.strength else 0.0

    def hiding_penalty(self, rows: Any, batch: Any) -> Any:
        """Return the term L, which the encoder minimises in order to hide attributes.

        `rows` are the vectors of the training texts with indices `batch`.

        A subclass defines this method. The method must not change the discriminator.
        """
        raise NotImplementedError


def check_names(attribute: Any) -> tuple[str, ...]:
    """Check one attribute name or several attribute names, and return a tuple of names.

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
    """Base class of text encoders that are trained to hide private attributes from an opponent.

    The encoder computes ``encode(text) = m(f(text))``. The extractor f averages the vectors of
    words and word pairs. The transform m maps the average into a bounded set. The encoder adds no
    noise and claims no epsilon. The encoder is trained against one opponent. Other attackers may
    still infer the attributes.

    Every batch has two training steps. First, the opponent learns from the current vectors (Adam at
    rate 1e-3). Then the extractor and a linear classifier of the label minimise
    ``CE(label) + strength L``. CE is the cross-entropy, and the subclass defines the term L. In all
    subclasses, a discriminator with two hidden layers of 128 units learns to infer the attributes.
    If L does not depend on the discriminator, the discriminator has no effect on the encoder.

    Args:
        dim: dimension of the text vectors, at least 2. Defaults to 32.
        attribute: name of an attribute of the corpus with at least two values, or several names.
        strength: factor of L, at least 0. The default depends on the subclass. With 0, the trained
            extractor is exactly the same as without an opponent.
        transform: the transform m, one of the transforms of `PrivateEncoder`, such as `Clip`.
            Defaults to `MinMax`, which scales the entries of each vector to [0, 1].
        unknown: "drop" to leave unknown words out of the average, or "token" to represent all
            unknown words by one vector.
        min_count: a word (or word pair) is known if it occurs at least this number of times in the
            training texts.

    Attributes:
        claim: always None, because the encoder claims no epsilon.
        trained: record of the training, or None before `fit`.
        labels: label values that the classifier predicts.
        values: dict with the name of each attribute as a key. The value is an array of the possible
            values of this attribute.

    Raises:
        TypeError: if an argument has the wrong type.
        ValueError: if a value is out of range.
    """

    opponent: ClassVar[type[Opponent]] = Opponent
    usual: ClassVar[float] = 1.0
    claim: ClassVar[None] = None

    @explain_argument_errors
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
        self.attribute = check_names(attribute)
        # Weights are float32, and the strength is multiplied with float32 values.
        strength = self.usual if strength is None else strength
        self.strength = real("strength", strength, low=0.0, high=1e30)
        self.transform = as_torch_module(MinMax() if transform is None else transform)
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
        """Train this encoder: its extractor, its classifier of the label, and its opponent.

        Args:
            corpus: a `Corpus` with labels and attributes. The training uses the training texts, or
                all texts if the corpus has no split.
            epochs: number of passes over the texts. The default is a number from 5 to 35 that gives
                about 2,226 training steps.
            batch: number of texts in a batch.
            lr: learning rate of the extractor and the classifier in the first epoch.
            decay: factor by which the learning rate is multiplied after every epoch.
            rng: seed or numpy Generator for the initial weights and the order of the texts: an int
                in [0, 2**63), a Generator, or None for a new random seed. The seed is recorded in
                `trained`.
            device: torch device of the training and of the trained model, such as "cuda". Defaults
                to the CPU.
            progress: True to show a progress bar. By default, dpcore shows the bar for long work on
                a terminal or in a notebook.

        Returns:
            This encoder. After Ctrl-C, the encoder has the weights of the last complete epoch, and
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
        unique_values(self.attribute, whole if whole.split is None else whole.train)
        self._fit_and_list_texts(corpus, recipe, None, rng, device, progress)
        return self

    def _adversary_or_none(self, part: Corpus, width: int, units: Any, rng: Any) -> Opponent:
        self.values = unique_values(self.attribute, part)
        codes = torch.from_numpy(codes_of(self.values, part))
        place = self.head.weight.device
        with seeded_torch(rng):
            self.discriminator = self._make_discriminator(width).to(place)
            made = Material(self.discriminator, codes, units, self.strength, rng, place)
            return self.opponent(made)

    def _make_discriminator(self, width: int) -> Discriminator:
        return Discriminator(width, [len(values) for values in self.values.values()])

    def _transform(self, rows: Any) -> Any:
        return self.transform(rows)

    def _encode_fitted(self, texts: Sequence[str]) -> Any:
        self.require_fitted("encodes")
        return self._transform(self._vectors(as_texts("texts", texts)))

    # There is no argument `rng`, because no noise is drawn. An argument without effect would
    # suggest noise, and `inference.infer` would record its seed.
    def encode(self, texts: Sequence[str]) -> Array:  # type: ignore[override]
        """Return the vectors of texts, without noise.

        Every call with the same texts returns the same vectors.

        Args:
            texts: list of strings that are not empty.

        Returns:
            float32 array, shape `(len(texts), d)`, one vector per row.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return np.asarray(self._encode_fitted(texts).cpu().numpy())

    def predict(self, texts: Sequence[str]) -> Array:  # type: ignore[override]
        """Return the predicted label of each text, as an array of shape `(len(texts),)`.

        Args:
            texts: list of strings that are not empty.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        return super().predict(texts)

    def accuracy(self, corpus: Corpus) -> float:  # type: ignore[override]
        """Return the share of texts whose label this model predicts correctly.

        Args:
            corpus: texts with labels, such as `corpus.test`.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: if the corpus has no labels, or the model is not fitted.
        """
        return super().accuracy(corpus)

    def discriminated(self, texts: Sequence[str]) -> dict[str, Array]:
        """Return the attribute values that the trained discriminator predicts for texts.

        The discriminator is the network that learnt to infer the attributes in `fit`.

        Args:
            texts: list of strings that are not empty.

        Returns:
            A dict with the name of each attribute as a key. The value is an array of predicted
            attribute values, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is a single string, or contains a value that is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        rows = self._encode_fitted(texts)
        assert self.discriminator is not None
        with torch.no_grad():
            codes = self.discriminator.codes(rows).cpu().numpy()
        columns = zip(self.values.items(), codes.T, strict=True)
        return {name: values[column] for (name, values), column in columns}

    def discriminator_accuracy(self, corpus: Corpus) -> dict[str, float]:
        """Return the accuracy of the trained discriminator for each attribute.

        The discriminator is the network that learnt to infer the attributes in `fit`. A low
        accuracy does not show that the vectors hide the attributes. A new attacker that is trained
        on the final vectors (`text.inference.infer`) infers more than the discriminator.

        Args:
            corpus: texts with the attributes, such as `corpus.test`.

        Returns:
            A dict with the name of each attribute as a key. The value is the share of texts for
            which the discriminator predicts this attribute correctly.

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
        """Arguments with which this encoder was constructed, as a dict of JSON values."""
        transform = describe_layer("transform", self.transform, TRANSFORMS)
        kind = {"dim": self.dim, "attribute": list(self.attribute), "strength": self.strength}
        words = {"unknown": self.unknown, "min_count": self.min_count}
        return {**kind, "transform": transform, **words}

    @property
    def state(self) -> dict[str, Any]:
        """State of this model that is saved as JSON, with the possible values of the attributes."""
        values = {name: column.tolist() for name, column in self.values.items()}
        return {**super().state, "beside": values}

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Torch modules of this model whose weights are saved, including the discriminator."""
        return {**super().saved_modules, "discriminator": self.discriminator}

    def restore(self, state: dict[str, Any]) -> None:
        """Create the torch modules of this model from a saved state (see the property `state`)."""
        super().restore(state)
        beside, name = read_mapping(state, "beside"), "beside in config.json"
        if tuple(beside) != self.attribute:
            raise invalid(name, f"the values of {', '.join(self.attribute)}", list(beside))
        if not all(isinstance(values, list) and len(values) > 1 for values in beside.values()):
            raise mistyped(name, "a list of two values at least for each attribute", beside)
        self.values = {name: np.array(values) for name, values in beside.items()}
        self.discriminator = self._make_discriminator(state["width"]).eval()

    def to(self, device: Any) -> Self:
        """Move this model to a torch device, and return the model."""
        super().to(device)
        assert self.discriminator is not None
        self.discriminator.to(self.head.weight.device)
        return self

    @property
    def hidden(self) -> str:
        """Text with the names of the attributes that this encoder learns to hide."""
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
    """Opponent whose penalty is small if a network predicts the attribute values badly."""

    def hiding_penalty(self, rows: Any, batch: Any) -> Any:
        """Return minus the cross-entropy between predicted and true attributes."""
        with freeze_weights(self.discriminator):
            return -self.discriminator.loss(rows, self.true_values(rows, batch))


class MinMaxAdversary(Defended):
    """Text encoder that is trained to make a discriminator bad at predicting private attributes.

    The discriminator D predicts the attribute from the vector of a text. M consists of the
    extractor (which computes the vector) and the classifier of the label. The training solves
    ``min over M, max over D of CE(label; M) - strength CE(attribute; D)``. CE is the cross-entropy.

    On every batch, D takes one training step, and then M takes one training step. For several
    attributes, CE(attribute) is the mean of the cross-entropies of all attributes. The encoder
    claims no epsilon. The base class `Defended` describes all methods and the arguments that are
    not listed here.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of a private attribute of the corpus, or several names.
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
    """Opponent whose penalty is small if a network predicts wrong attribute values."""

    def hiding_penalty(self, rows: Any, batch: Any) -> Any:
        """Return the cross-entropy between the predicted attributes and wrong attribute values.

        All wrong values of an attribute have equal weights.
        """
        sizes, truth = self.discriminator.sizes, self.true_values(rows, batch)
        wrong = [
            (1.0 - torch.nn.functional.one_hot(codes, size).to(rows.dtype)) / (size - 1)
            for codes, size in zip(truth, sizes, strict=True)
        ]
        with freeze_weights(self.discriminator):
            return self.discriminator.loss(rows, wrong)


class AdversarialClassification(Defended):
    """Text encoder that is trained to make a discriminator predict *wrong* attribute values.

    The training minimises ``CE(label) + strength L``, with ``L = CE(not b; D)``. CE is the
    cross-entropy, b is the true value of the attribute, and ``not b`` is a wrong value. The
    discriminator D predicts b from the vector of a text. On every batch, D takes a training step to
    predict b. Then the extractor (which computes the vector) takes a training step to make D
    predict a wrong value. In the paper, an attribute has two values. If an attribute has more
    values, all wrong values have equal weights.

    L is at least 0, and the gradient of L is large if D is certain of the true value. A large
    strength lowers the accuracy of the predicted label. The encoder claims no epsilon. The base
    class `Defended` describes all methods and the arguments that are not listed here.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of a private attribute of the corpus, or several names.
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
    """Opponent with a decoder, a network that predicts the words of a text from its vector.

    The discriminator, which predicts the attributes, has no effect on the penalty.
    """

    def __init__(self, made: Material) -> None:
        super().__init__(made)
        self.words, units = _frequent_units_and_vocab_size(made.units)
        self.decoder = make_layers(made.discriminator.width, units, layers=1).to(made.device)
        self.decoding = torch.optim.Adam(self.decoder.parameters(), lr=RATE)

    def step(self, rows: Any, text_indices: Any) -> None:
        """Train the discriminator and the decoder of this opponent for one step each, on one batch.

        `rows` are the vectors of the training texts with indices `text_indices`.
        """
        super().step(rows, text_indices)
        descend_loss(self.loss(rows, text_indices), self.decoding)

    def loss(self, rows: Any, batch: Any) -> Any:
        """Return the loss of the decoder: the mean of ``-log p(word | vector)``.

        The mean is taken over the words of each text, and then over the texts of the batch.
        """
        texts = self.words.take(batch)
        sizes, ids = texts.sizes.to(rows.device), texts.ids.to(rows.device)
        owner = torch.repeat_interleave(torch.arange(len(batch), device=rows.device), sizes)
        logs = torch.log_softmax(self.decoder(rows), dim=1)[owner, ids]
        return -(logs / sizes[owner]).sum() / len(batch)

    def hiding_penalty(self, rows: Any, batch: Any) -> Any:
        """Return minus the loss of the decoder, which predicts words from vectors."""
        with freeze_weights(self.decoder):
            return -self.loss(rows, batch)


def _frequent_units_and_vocab_size(units: Units) -> tuple[Units, int]:
    """Keep only the frequent words of texts, number these words anew, and also count them."""
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
    """Text encoder that is trained to make a decoder bad at predicting the words of a text.

    The training minimises ``CE(label) + strength L``, with ``L = log p(words | r)``. CE is the
    cross-entropy, and r is the vector of a text. The logarithm is averaged over the words of the
    text. In the paper, the decoder is a recurrent network that predicts letters. In dpcore, the
    decoder is a network with one hidden layer of 128 units. This decoder predicts which of the
    2,000 most frequent training words occur in the text, but not the order of the words. The
    attributes do not affect the training of the encoder. The encoder claims no epsilon. The base
    class `Defended` describes all methods and the arguments that are not listed here.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of a private attribute of the corpus, or several names. Only the methods
            `discriminated` and `discriminator_accuracy` use the attributes.
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
    """Opponent whose penalty is a weighted squared distance between the vectors of two texts."""

    def hiding_penalty(self, rows: Any, batch: Any) -> Any:
        """Return the penalty ``(0.5 - l) |r - r'|^2``, averaged over the texts of a batch.

        r is the vector of a text, and r' is the vector of another text of the batch. l is the share
        of attributes that have equal values in both texts.
        """
        if len(batch) == 1:
            # The last batch may consist of one text, without another text to compare.
            return rows.sum() * 0.0
        shift = int(self.rng.integers(1, len(batch)))
        codes = self.codes[batch]
        similar = (codes == codes.roll(shift, 0)).to(rows.dtype).mean(1).to(rows.device)
        return ((0.5 - similar) * (rows - rows.roll(shift, 0)).square().sum(1)).mean()


class Declustering(Defended):
    """Text encoder that is trained to increase the distance between texts with equal attributes.

    The distance between texts with different attributes decreases. The training minimises
    ``CE(label) + strength L``, with ``L = (0.5 - l) |r - r'|^2``. CE is the cross-entropy, r and r'
    are the vectors of two texts of a batch, and l is the share of attributes with *equal* values.
    With one attribute, the factor 0.5 - l is -1/2 for equal values, and 1/2 for different values.
    The discriminator (which predicts the attributes) does not affect the encoder. The encoder
    claims no epsilon. The base class `Defended` describes all methods and the arguments that are
    not listed here.

    Args:
        dim: dimension of the text vectors. Defaults to 32.
        attribute: name of a private attribute of the corpus, or several names.
        strength: factor of L, alpha in the paper, at least 0. Defaults to 1. The paper uses 0.1,
            but the vectors in the paper have a different scale.

    Source:
        Coavoux, Narayan and Cohen (2018), section 3.3, and their code.

    Example:
        >>> Declustering(attribute="gender", strength=0.5)
        Declustering(dim=32, attribute='gender', strength=0.5; claims no epsilon)
    """

    opponent = DeclusteringOpponent
