"""What trained encoders of texts share: an extractor, a transform, a linear classifier behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from ...errors import instance, integer, invalid, numeric
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...records import Shown
from ...streams import Rng, seed_of
from ...streams.generators import seeded_torch
from ...torch.encoding import encoder_of
from ...torch.mechanisms import device_of
from ...torch.needed import torch
from .. import schedules
from ..corpus import Corpus
from ..tfidf import TfidfSVD
from ..vocabulary import Vocabulary
from .bag import Bag
from .labelling import Labelling
from .masking import WordDropout
from .prepared import Prepared, training_part
from .training import Adversary, Recipe, train

__all__ = ["TextClassifier", "Trained"]

_ZERO = "<zero>"
"""The name of number 0 where masked words become it."""


@dataclass(frozen=True, slots=True, repr=False)
class Trained(Shown):
    """How a classifier was trained.

    Attributes:
        texts: how many training texts there were.
        epochs: passes over them.
        batch: texts in a step.
        lr: learning rate of the first epoch.
        decay: by which it was multiplied after every epoch.
        schedule: the training noise in words; empty where there was none.
        seed: repeats it.
        losses: mean loss of the classifier in each epoch.
    """

    texts: int
    epochs: int
    batch: int
    lr: float
    decay: float
    schedule: str
    seed: int
    losses: tuple[float, ...]

    def __str__(self) -> str:
        """One line."""
        noise = f"noise {self.schedule}" if self.schedule else "no noise"
        return (
            f"on {self.texts:,} texts, {self.epochs} epochs in batches of {self.batch}, learning "
            f"rate {self.lr:g} x {self.decay:g} an epoch, {noise}, seed {self.seed}; "
            f"last loss {self.losses[-1]:.4g}"
        )


class TextClassifier(Labelling):
    """An extractor of texts with a linear classifier, trained together.

    The extractor is a `Bag` of words and word pairs with vectors of its own, or any encoder, whose
    vectors stay as they are (a `TfidfSVD` that is not fitted is fitted first).

    Args:
        dim: entries of a vector of the bag; None for 32, and where there is an `extractor`.
        extractor: an encoder of texts in place of the bag; see `dpcore.torch.PrivateEncoder`.
        dropout: word dropout of the bag.
        unknown: what becomes of unknown words and word pairs: "drop" leaves them out, "token" maps
            them to a row that nothing has trained, as the study does.
        min_count: how often a word or pair must occur in the training texts.

    Attributes:
        trained: how it was trained; None before `fit`.
        labels: the values that it tells apart.
    """

    @hinted
    def __init__(
        self,
        dim: int | None,
        extractor: Any,
        dropout: WordDropout | None,
        unknown: Literal["drop", "token"],
        min_count: int,
    ) -> None:
        if extractor is None:
            self.dim: int | None = integer("dim", 32 if dim is None else dim, 2)
        elif dim is not None:
            raise invalid("dim", "left out where an extractor says it", dim)
        else:
            self.dim = None
            encoder_of(extractor)
        if dropout is not None:
            instance("dropout", dropout, WordDropout)
            if extractor is not None:
                requirement = "None where the extractor is an encoder of its own"
                raise invalid("dropout", requirement, dropout)
        # Refuses wrong words before anything is read.
        Vocabulary((), unknown)
        self.unknown, self.dropout = unknown, dropout
        self.min_count = integer("min_count", min_count, 1)
        self.given = extractor
        self.trained: Trained | None = None
        self.labels: npt.NDArray[Any] = np.array([])
        self.extractor: Any = None
        self.head: Any = None

    def _transform(self, rows: Any) -> Any:
        """From the extractor's rows to those that the classifier sees, before any noise."""
        return rows

    def _noise(self, epsilon: float) -> Any:
        """The noise layer of an epsilon, in training."""
        raise NotImplementedError(f"{type(self).__name__} has no noise")

    def _adversary(self, part: Corpus, width: int, units: Any, rng: Any) -> Adversary | None:
        """Whoever trains against the extractor, with a generator of its own."""
        return None

    def _train(
        self, corpus: Any, recipe: Recipe, schedule: Any, rng: Rng, device: Any, progress: Any
    ) -> tuple[str, ...]:
        """Train extractor and classifier, and return the training texts."""
        self.trained = None
        ready = None if self.given is not None else self.prepare(corpus)
        part = training_part(corpus) if ready is None else ready.part
        seed = seed_of(rng)
        source = np.random.default_rng(seed)
        # Drawn from by an adversary alone: the weights are the same ones with it and without.
        (rival,) = source.spawn(1)
        labels, codes = np.unique(part.labels, return_inverse=True)
        if len(labels) < 2:
            raise invalid("labels", "of two values at least in the training texts", labels.tolist())
        place = device_of("cpu" if device is None else device)
        texts = tuple(part.texts)
        # Weights are drawn on the CPU: the same ones on every device.
        with seeded_torch(source):
            bag = self._extractor(part) if ready is None else self._bag(ready.vocabulary)
            is_bag = isinstance(bag, Bag)
            bag.to(place)
            units = bag(texts).float() if ready is None else ready.units
            width = bag.dim if is_bag else bag.width
            head = torch.nn.Linear(width, len(labels))
            torch.nn.init.uniform_(head.weight, -0.5, 0.5)
            torch.nn.init.zeros_(head.bias)
        head.to(place)
        truth = torch.from_numpy(codes.reshape(-1).astype(np.int64))
        self.extractor, self.head, self.labels = bag, head, labels
        # Without noise no word is masked either.
        with bag.whole() if is_bag and schedule is None else nullcontext():
            losses = train(
                bag if is_bag else None, self._transform, head, units, truth,
                noise=self._noise, schedule=schedule, recipe=recipe, rng=source,
                adversary=self._adversary(part, width, units, rival), progress=progress,
            )  # fmt: skip
        head.eval()
        if is_bag:
            bag.eval()
        given = {**asdict(recipe), "epochs": len(losses)}
        named = "" if schedule is None else schedules.title_of(schedule)
        self.trained = Trained(len(texts), schedule=named, seed=seed, losses=losses, **given)
        return texts

    def prepare(self, corpus: Any) -> Prepared:
        """The training texts cut into words and word pairs, for `fit` in place of the corpus.

        Models that are fitted to one corpus many times, with other seeds or schedules, become the
        same as from the corpus itself, and this is done once.

        Args:
            corpus: a `Corpus` with labels, of which the train part is read (all without a split).

        Returns:
            What models with the same `unknown`, `min_count` and reserved number can be fitted to.

        Raises:
            TypeError: if it is no `Corpus`.
            ValueError: if it has no labels or no train part, another kind of model has prepared it,
                or this one has an extractor of its own.
        """
        if self.given is not None:
            raise invalid("extractor", "None, for words and word pairs are prepared", self.given)
        kind = (self.unknown, self.min_count, self._reserved)
        if not isinstance(corpus, Prepared):
            return Prepared.of(corpus, *kind)
        if corpus.kind != kind:
            requirement = f"prepared with (unknown, min_count, reserved) = {kind}"
            raise invalid("corpus", requirement, corpus.kind)
        return corpus

    def _bag(self, vocabulary: Vocabulary) -> Bag:
        assert self.dim is not None
        return Bag(vocabulary, self.dim, self.dropout)

    def _extractor(self, part: Corpus) -> Any:
        """The encoder that was given, fitted."""
        if isinstance(self.given, TfidfSVD) and not self.given.fitted_on:
            self.given.fit(list(part.texts))
        found = encoder_of(self.given)
        found.array_dtype = torch.float32
        return found

    def vocabulary_of(self, words: Sequence[str]) -> Vocabulary:
        """The vocabulary of a bag with these words and word pairs."""
        return Vocabulary(words, self.unknown, self._reserved, ngrams=2)

    @property
    def arguments(self) -> dict[str, Any]:
        """What the model is made with, apart from an extractor, as plain data."""
        raise NotImplementedError

    @classmethod
    def from_arguments(cls, arguments: dict[str, Any], extractor: Any) -> Self:
        """A model that is not fitted, from `arguments`."""
        try:
            dropout = arguments.get("dropout")
            masks = {} if dropout is None else {"dropout": WordDropout(**dropout)}
            given = {} if extractor is None else {"extractor": extractor}
            return cls(**{**arguments, **masks}, **given)
        except TypeError as error:
            names = f"arguments in config.json must be those of {cls.__name__}, got {error}"
            raise ValueError(names) from None

    def restore(self, head: Any, labels: Any, trained: dict[str, Any]) -> None:
        """Take over what was saved of a fitted model."""
        try:
            self.trained = Trained(**{**trained, "losses": tuple(trained["losses"])})
        except (TypeError, KeyError) as error:
            raise invalid("trained in config.json", "what save_pretrained wrote", error) from None
        self.head, self.labels = head, np.array(labels)

    @property
    def beside(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """What was trained beside extractor and classifier: plain data, and modules by name."""
        return {}, {}

    def rebuild(self, beside: dict[str, Any], width: int) -> None:
        """Make the modules of `beside` anew; their weights are filled in later."""

    @property
    def _reserved(self) -> tuple[str, ...]:
        zeroed = self.dropout is not None and self.dropout.mask == "zero_id"
        # With a token for unknown words number 0 is theirs, as in the study.
        return (_ZERO,) if zeroed and self.unknown == "drop" else ()

    def needs_fit(self, what: str) -> None:
        """Complain that the model is not fitted before it does something."""
        if self.trained is None:
            raise invalid("model", f"fitted before it {what}: model.fit(corpus)", self)

    def _vectors(self, texts: Sequence[str]) -> Any:
        """The extractor's rows of checked texts, without gradients."""
        with torch.no_grad():
            return self.extractor(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """The vectors of texts, as they would be sent."""
        raise NotImplementedError

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """The labels of texts, from their vectors as `encode` gives them.

        Args:
            texts: strings, none of them empty.
            rng: of the noise, as in `encode`.

        Returns:
            A label for each, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if it is not fitted, or a text is empty.
        """
        self.needs_fit("predicts")
        found = texts_of("texts", texts, fewest=0)
        if not found:
            return self.labels[:0]
        # A model without noise has no argument for it.
        noise = {} if rng is None else {"rng": rng}
        return self.predicted(self.encode(found, **noise))

    def predicted(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The labels that the classifier gives to vectors, shape `(n, d)` as `encode` has them."""
        self.needs_fit("predicts")
        weight, given = self.head.weight, numeric("vectors", "an array of numbers", vectors)
        if given.ndim != 2 or given.shape[1] != weight.shape[1]:
            raise invalid("vectors", f"of shape (n, {weight.shape[1]})", given.shape)
        if not np.isfinite(given).all():
            raise invalid("vectors", "finite", "infinities or NaN")
        rows = torch.tensor(given, dtype=weight.dtype, device=weight.device)
        with torch.no_grad():
            codes = self.head(rows).argmax(dim=1).cpu().numpy()
        found: npt.NDArray[Any] = self.labels[codes]
        return found

    def to(self, device: Any) -> Self:
        """Move the model to a device of this machine."""
        self.needs_fit("is moved")
        place = device_of(device)
        self.extractor.to(place)
        self.head.to(place)
        return self

    def save_pretrained(self, folder: str | PathLike[str]) -> Path:
        """Write config.json and safetensors; see `from_pretrained`.

        Args:
            folder: made if it is missing.

        Returns:
            The folder.

        Raises:
            TypeError: if the folder is no path.
            ValueError: if the model is not fitted.
            OSError: if it cannot be written.
        """
        from .saving import save

        return save(self, folder)

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], *, extractor: Any = None, device: Any = None
    ) -> Self:
        """The model that `save_pretrained` wrote: no pickle is read, no network used.

        Args:
            folder: a folder of this machine.
            extractor: the function or module, where the model had one of your own.
            device: where it is moved; None is the CPU.

        Raises:
            OSError: if there is no such folder, or a file is missing.
            ValueError: if it holds another class's model, a key is unknown or missing, a file
                could hold a pickle, or an extractor is needed that was not given.
        """
        from .saving import load

        return load(cls, folder, extractor, device)
