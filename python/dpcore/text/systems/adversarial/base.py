"""What the defences share: a classifier trained against an opponent, and no epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import numpy.typing as npt

from ....errors import instance, invalid, mistyped, real
from ....hints import hinted
from ....mechanisms.texts import texts_of
from ....records import Shown
from ....streams import Rng
from ....streams.generators import seeded_torch
from ....torch import MinMax
from ....torch.needed import torch
from ....torch.private import transform_of
from ....torch.saving import TRANSFORMS, described, made
from ...corpus import Corpus
from ..classifier import TextClassifier
from ..training import Recipe
from .attributes import codes_of, names_of, values_of
from .opponents import Discriminator, Material, Opponent

__all__ = ["Defended"]


class Defended(Shown, TextClassifier):
    """An extractor trained against an opponent, so that its vectors tell less of attributes.

    ``encode(text) = m(f(text))`` with the extractor and the transform of `DPNR`, and no noise: it
    claims no epsilon, and whatever it hides it hides from its own opponent. Every batch makes two
    steps: the opponent learns from the vectors as they are (Adam at 1e-3), then extractor and
    classifier descend ``CE(label) + strength L`` (as in `DPNR`), where L is the subclass's. A
    discriminator with two hidden layers of 128 learns to read the attributes in all of them; where
    L does not need it, it looks on.

    The transform keeps the vectors in a bounded set, so that no L grows without limit.

    Args:
        dim: entries of a vector, at least 2; None for 32.
        attribute: the name of an attribute of the corpus, or several; of two values or more.
        strength: what L is multiplied with, at least 0; None for the class's own. With 0 the
            weights are those of plain training, bit for bit.
        transform: None for min-max, as in `DPNR`; or another of `PrivateEncoder`, such as `Clip`.
        unknown: "drop" leaves unknown words out of the mean; "token" maps them to a row of their
            own.
        min_count: how often a word or word pair must occur in the training texts.

    Attributes:
        claim: None; it claims no epsilon.
        trained: how it was trained; None before `fit`.
        labels: the values that it tells apart.
        values: those of each attribute.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range.
    """

    opponent: ClassVar[type[Opponent]] = Opponent
    usual: ClassVar[float] = 1.0
    claim: ClassVar[None] = None

    @hinted
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
        # Weights are float32, and so is what the strength is multiplied with.
        self.strength = real(
            "strength", self.usual if strength is None else strength, low=0.0, high=1e30
        )
        self.transform = transform_of(MinMax() if transform is None else transform)
        self.values: dict[str, npt.NDArray[Any]] = {}
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
            corpus: a `Corpus` with labels and attributes, of which the train part is read (all
                without a split).
            epochs: passes over the texts; None for as many as make 2,226 steps, from 5 to 35.
            batch: texts in a step.
            lr: learning rate of the first epoch, of extractor and classifier.
            decay: by which it is multiplied after every epoch.
            rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator: initial
                weights and order follow from it.
            device: where it is trained and kept, such as "cuda"; None is the CPU.
            progress: show a bar; None shows it for long work on a terminal or in a notebook.

        Returns:
            The model itself.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: if the corpus has no labels, no train part or not the attribute, if the
                training texts have one value of it only, or if training diverges.
        """
        recipe = Recipe(epochs, batch, lr, decay)
        # Before the texts are read: a misspelt name is told at once.
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
            return self.opponent(
                Material(self.discriminator, codes, units, self.strength, rng, place)
            )

    def _reader(self, width: int) -> Discriminator:
        return Discriminator(width, [len(values) for values in self.values.values()])

    def _transform(self, rows: Any) -> Any:
        return self.transform(rows)

    def _sent(self, texts: Sequence[str]) -> Any:
        self.needs_fit("encodes")
        return self._transform(self._vectors(texts_of("texts", texts)))

    # Nothing is drawn, so there is no `rng` to take: an argument without effect would tell that
    # there is noise, and `inference.infer` would record its seed.
    def encode(self, texts: Sequence[str]) -> npt.NDArray[Any]:  # type: ignore[override]
        """The vectors of texts: the same ones at every call.

        Args:
            texts: strings, none of them empty.

        Returns:
            float32, shape `(len(texts), d)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if it is not fitted, or a text is empty.
        """
        found: npt.NDArray[Any] = self._sent(texts).cpu().numpy()
        return found

    def predict(self, texts: Sequence[str]) -> npt.NDArray[Any]:  # type: ignore[override]
        """The labels of texts, shape `(len(texts),)`.

        Args:
            texts: strings, none of them empty.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if it is not fitted, or a text is empty.
        """
        return super().predict(texts)

    def accuracy(self, corpus: Corpus) -> float:  # type: ignore[override]
        """The share of texts whose label is predicted.

        Args:
            corpus: texts with labels, such as `corpus.test`.

        Raises:
            TypeError: if it is no `Corpus`.
            ValueError: if it has no labels, or the model is not fitted.
        """
        return super().accuracy(corpus)

    def discriminated(self, texts: Sequence[str]) -> dict[str, npt.NDArray[Any]]:
        """What the discriminator of the training takes the attributes of texts for.

        Args:
            texts: strings, none of them empty.

        Returns:
            For each attribute a value for each text, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if it is not fitted, or a text is empty.
        """
        rows = self._sent(texts)
        assert self.discriminator is not None
        with torch.no_grad():
            codes = self.discriminator.codes(rows).cpu().numpy()
        columns = zip(self.values.items(), codes.T, strict=True)
        return {name: values[column] for (name, values), column in columns}

    def discriminator_accuracy(self, corpus: Corpus) -> dict[str, float]:
        """The share of texts whose attribute the discriminator of the training tells.

        It says how well the discriminator was kept off, not what the vectors tell: an attacker
        trained afresh (`text.inference.infer`) reads more.

        Args:
            corpus: texts with the attributes, such as `corpus.test`.

        Returns:
            Name of the attribute -> share.

        Raises:
            TypeError: if it is no `Corpus`.
            ValueError: if it lacks an attribute or has a value that training did not, or the model
                is not fitted.
        """
        self.needs_fit("tells attributes")
        truth = codes_of(self.values, instance("corpus", corpus, Corpus))
        found = self.discriminated(corpus.texts)
        return {
            name: float(np.mean(found[name] == values[column]))
            for (name, values), column in zip(self.values.items(), truth.T, strict=True)
        }

    @property
    def arguments(self) -> dict[str, Any]:
        """What the model is made with, as plain data."""
        return {
            "dim": self.dim,
            "attribute": list(self.attribute),
            "strength": self.strength,
            "transform": described("transform", self.transform, TRANSFORMS),
            "unknown": self.unknown,
            "min_count": self.min_count,
        }

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any], extractor: Any) -> Self:
        """A model that is not fitted, from `arguments`."""
        transform = made("transform", arguments.get("transform"), TRANSFORMS)
        return super().from_arguments({**arguments, "transform": transform}, extractor)

    @property
    def beside(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The values of the attributes, and the discriminator."""
        values = {name: column.tolist() for name, column in self.values.items()}
        return values, {"discriminator": self.discriminator}

    def rebuild(self, beside: dict[str, Any], width: int) -> None:
        """Make the discriminator anew; its weights are filled in later."""
        if tuple(beside) != self.attribute:
            requirement = f"the values of {', '.join(self.attribute)}"
            raise invalid("beside in config.json", requirement, list(beside))
        if not all(isinstance(values, list) and len(values) > 1 for values in beside.values()):
            requirement = "a list of two values at least for each attribute"
            raise mistyped("beside in config.json", requirement, beside)
        self.values = {name: np.array(values) for name, values in beside.items()}
        self.discriminator = self._reader(width).eval()

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        super().to(device)
        assert self.discriminator is not None
        self.discriminator.to(self.head.weight.device)
        return self

    @property
    def hidden(self) -> str:
        """The attributes, as they were given."""
        return repr(self.attribute[0] if len(self.attribute) == 1 else list(self.attribute))

    def __repr__(self) -> str:
        """The arguments, and that no epsilon is claimed."""
        more = [
            f", {name}={value!r}"
            for name, value, usual in (
                ("transform", self.transform, None),
                ("unknown", self.unknown, "drop"),
                ("min_count", self.min_count, 1),
            )
            if value != usual and not isinstance(value, MinMax)
        ]
        return (
            f"{type(self).__name__}(dim={self.dim}, attribute={self.hidden}, "
            f"strength={self.strength:g}{''.join(more)}; claims no epsilon)"
        )

    def __str__(self) -> str:
        """What is not claimed, how it was trained, and what the labels are."""
        control = "strength 0: plain training" if not self.strength else "its own opponent only"
        lines = [
            ("claim", "claims no epsilon: nothing holds for any two texts"),
            ("hides", f"{self.hidden}, from {control}; an attacker trained afresh reads more"),
            ("trained", "not yet: model.fit(corpus)" if self.trained is None else self.trained),
        ]
        if self.trained is not None:
            lines.append(("labels", ", ".join(map(str, self.labels.tolist()))))
        return "\n".join([repr(self), *(f"  {label:<12} {line}" for label, line in lines)])
