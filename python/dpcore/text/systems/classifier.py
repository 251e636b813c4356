"""Base of trained encoders of texts: an extractor, a transform, a linear classifier behind."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Self

import numpy as np
import numpy.typing as npt

from ...errors import choice, instance, integer, invalid, mistyped, numeric
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of
from ...streams.generators import seeded_torch
from ...torch.encoding import encoder_of
from ...torch.mechanisms import device_of
from ...torch.needed import torch
from ...torch.private import PrivateEncoder
from ...torch.saving import TRANSFORMS, made
from .. import schedules
from ..corpus import Corpus
from ..tfidf import TfidfSVD
from ..vocabulary import Vocabulary, words_of
from .bag import Bag
from .folders import Saved
from .masking import WordDropout
from .prepared import Prepared, labels_of, training_part
from .system import Labelling
from .training import Adversary, Recipe, Trained, train

__all__ = ["TextClassifier"]

_EXTRACTOR_FOLDER: Final = "extractor"
"""The folder of an encoder inside that of the model."""
_ZERO_WORD = "<zero>"
"""The name of number 0 where masked words become it."""


class TextClassifier(Labelling, Saved):
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

    saved_keys = frozenset({"extractor", "width", "words", "labels", "beside"})

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
        self.labels: npt.NDArray[Any] = np.array([])
        self.extractor: Any = None
        self.head: Any = None

    def _transform(self, rows: Any) -> Any:
        """Transform the extractor's rows to those that the classifier sees, before any noise."""
        return rows

    def _noise(self, epsilon: float) -> Any:
        """Make the noise layer of an epsilon, for training."""
        raise NotImplementedError(f"{type(self).__name__} has no noise")

    def _adversary(self, part: Corpus, width: int, units: Any, rng: Any) -> Adversary | None:
        """Make the opponent, with its own generator, that trains against the extractor, if any."""
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
        labels, truth = labels_of(part)
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
        self.extractor, self.head, self.labels = bag, head, labels
        # Without noise no word is masked either.
        with bag.whole() if is_bag and schedule is None else nullcontext():
            losses, partial = train(
                bag if is_bag else None, self._transform, head, units, truth,
                noise=self._noise, schedule=schedule, recipe=recipe, rng=source,
                adversary=self._adversary(part, width, units, rival), progress=progress,
            )  # fmt: skip
        head.eval()
        if is_bag:
            bag.eval()
        given = {**asdict(recipe), "epochs": recipe.epochs_for(len(texts))}
        named = "" if schedule is None else schedules.title_of(schedule)
        self.trained = Trained(
            **given, texts=len(texts), schedule=named, seed=seed, losses=losses, partial=partial
        )
        return texts

    def prepare(self, corpus: Any) -> Prepared:
        """Cut the training texts into words and word pairs, for `fit` in place of the corpus.

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
        """Return the encoder that was given, after fitting it if it is not fitted."""
        if isinstance(self.given, TfidfSVD) and not self.given.fitted_on:
            self.given.fit(list(part.texts))
        found = encoder_of(self.given)
        found.array_dtype = torch.float32
        return found

    def vocabulary_of(self, words: Sequence[str]) -> Vocabulary:
        """Make the vocabulary of a bag with these words and word pairs."""
        return Vocabulary(words, self.unknown, self._reserved, ngrams=2)

    @property
    def state(self) -> dict[str, Any]:
        """Kind and width of the extractor, the words of a bag, and the labels."""
        words = list[str]()
        if isinstance(self.extractor, Bag):
            vocabulary = self.extractor.vocabulary
            if vocabulary.tokenise is not words_of:
                raise mistyped("tokenise", "words_of, to be saved", vocabulary.tokenise)
            kind, words = "bag", list(vocabulary.words)
        else:
            kind = "tfidf" if isinstance(self.given, TfidfSVD) else "encoder"
        return {
            "extractor": kind,
            "width": self.head.in_features,
            "words": words,
            "labels": self.labels.tolist(),
            "beside": {},
        }

    @property
    def saved_modules(self) -> dict[str, Any]:
        """The classifier, and the vectors of a bag's words."""
        bag = {"bag": self.extractor.embedding} if isinstance(self.extractor, Bag) else {}
        return {"head": self.head, **bag}

    def restore(self, state: dict[str, Any]) -> None:
        """Make classifier and extractor."""
        self.labels = np.array(state["labels"])
        self.head = torch.nn.Linear(state["width"], len(self.labels))
        if self.given is None:
            assert self.dim is not None
            vocabulary = self.vocabulary_of(state["words"])
            self.extractor = Bag(vocabulary, self.dim, self.dropout).eval()
        else:
            self.extractor = encoder_of(self.given)

    def write_parts(self, place: Path) -> None:
        """Write the extractor that was given."""
        if isinstance(self.given, TfidfSVD):
            self.given.save_pretrained(place / _EXTRACTOR_FOLDER)
        elif self.given is not None:
            # Encoders of torch's are written with what stands behind them.
            self.private.save_pretrained(place / _EXTRACTOR_FOLDER)  # type: ignore[attr-defined]

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], *, device: Any = None, extractor: Any = None
    ) -> Self:
        """Read the model that `save_pretrained` wrote: no pickle is read, no network used.

        Args:
            folder: a folder of this machine.
            device: where it is moved; None is the CPU.
            extractor: the function or module, where the model had one of your own.

        Raises:
            OSError: if there is no such folder, or a file is missing.
            ValueError: if it holds another class's model, a key is unknown or missing, a file
                could hold a pickle, or an extractor is needed that was not given.
        """
        return cls._load(folder, device, extractor=extractor)

    @classmethod
    def from_arguments(
        cls, arguments: dict[str, Any], place: Path, config: dict[str, Any], **given: Any
    ) -> Self:
        """Make a model that is not fitted, with the extractor that is given or in the folder."""
        extractor = given["extractor"]
        kind = choice("extractor in config.json", config["extractor"], ("bag", "tfidf", "encoder"))
        if kind == "tfidf" and extractor is None:
            extractor = TfidfSVD.from_pretrained(place / _EXTRACTOR_FOLDER)
        elif kind == "encoder":
            private = PrivateEncoder.from_pretrained(place / _EXTRACTOR_FOLDER, encoder=extractor)
            extractor = private.encoder
        elif extractor is not None:
            raise invalid("extractor", f"left out, for the folder holds one ({kind})", extractor)
        made_of = {"transform": made("transform", arguments.get("transform"), TRANSFORMS)}
        if extractor is not None:
            made_of["extractor"] = extractor
        if (dropout := arguments.get("dropout")) is not None:
            made_of["dropout"] = WordDropout(**dropout)
        return super().from_arguments({**arguments, **made_of}, place, config)

    @property
    def _reserved(self) -> tuple[str, ...]:
        zeroed = self.dropout is not None and self.dropout.mask == "zero_id"
        # With a token for unknown words number 0 is theirs, as in the study.
        return (_ZERO_WORD,) if zeroed and self.unknown == "drop" else ()

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Compute the extractor's rows of checked texts, without gradients."""
        with torch.no_grad():
            return self.extractor(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Compute the vectors of texts, as they would be sent."""
        raise NotImplementedError

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Predict the labels of texts, from their vectors as `encode` gives them.

        Args:
            texts: strings, none of them empty.
            rng: of the noise, as in `encode`.

        Returns:
            A label for each, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is one string, or holds anything but strings.
            ValueError: if it is not fitted, or a text is empty.
        """
        self.require_fitted("predicts")
        found = texts_of("texts", texts, fewest=0)
        if not found:
            return self.labels[:0]
        # A model without noise has no argument for it.
        noise = {} if rng is None else {"rng": rng}
        return self.predicted(self.encode(found, **noise))

    def predicted(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict labels from vectors by the classifier, shape `(n, d)` as `encode` has them."""
        self.require_fitted("predicts")
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
        self.require_fitted("is moved")
        place = device_of(device)
        self.extractor.to(place)
        self.head.to(place)
        return self
