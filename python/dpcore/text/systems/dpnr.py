"""DPNR, a published model: private vectors of texts by min-max normalisation and noise.

`TextClassifier` is the base class of models with a text encoder (the extractor) and a linear
classifier.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, Self, get_args

import numpy as np
import numpy.typing as npt

from ... import calibration, sensitivity
from ...calibration import RealEpsilon, real_epsilon
from ...errors import choice, flag, instance, integer, invalid, mistyped, numeric
from ...mechanisms import positive
from ...mechanisms.texts import as_texts
from ...packages import torch
from ...records import Pair
from ...streams import Rng, seeded_torch, to_seed
from ...suggestions import explain_argument_errors
from ...torch import LaplaceNoise, MinMax, SharedNoise
from ...torch.encoders import encoder_of
from ...torch.mechanisms import require_available_device
from ...torch.private_encoder import PrivateEncoder, as_torch_module
from ...torch.serialization import TRANSFORMS, describe_layer, make_layer
from .. import schedules
from ..corpus import Corpus, Vocabulary, words_of
from ..tfidf import TfidfSVD
from . import training
from .system import Labelling, SavableModel, TextSystem
from .training import Bag, Prepared, Recipe, Trained, WordDropout, encode_labels, training_part

_EXTRACTOR_FOLDER: Final = "extractor"
"""Name of the folder of the extractor inside the folder of a saved model."""
_ZERO_WORD = "<zero>"
"""Name of word number 0, if this number replaces masked words."""

Noise = Literal["iid", "shared"]
NOISES: Final[tuple[Noise, ...]] = get_args(Noise)
"""Kinds of noise: "iid" adds independent noise to every entry of a vector, as in the paper.
"shared" adds the same number to all entries of a vector, as in the released code of the paper."""
Scale = Literal["published", "sound"]
SCALES: Final[tuple[Scale, ...]] = get_args(Scale)
"""Scales of the noise: "published" is 1/epsilon. "sound" is D/epsilon, where D is the largest L1
distance between two vectors."""


class TextClassifier(Labelling, SavableModel):
    """Base class of models with a text encoder (the extractor) and a linear classifier.

    By default, the extractor is a `Bag`: the vector of a text is the mean over trained vectors of
    the words and word pairs of the text. The `Bag` and the classifier are trained together.
    Alternatively, the user passes any encoder as the extractor. Its weights are not trained.
    However, a `TfidfSVD` that is not fitted yet is first fitted on the training texts.

    Args:
        dim: number of entries of a vector from the `Bag`. None means 32. If you pass an
            `extractor`, `dim` must be None.
        extractor: encoder of texts that replaces the `Bag`, such as a `TfidfSVD` or a
            SentenceTransformer. None means the `Bag`.
        dropout: `WordDropout`, which masks random words of a text before the `Bag` computes the
            vector. None masks no words.
        unknown: "drop" ignores unknown words and word pairs. With "token", all unknown words and
            word pairs have the same vector, which is not trained, as in Zouhri and Abecidan (2021).
        min_count: a word or word pair is known if it occurs at least `min_count` times in the
            training texts.

    Attributes:
        trained: record of the training, or None before `fit`.
        labels: the labels that the model can predict.
    """

    saved_keys = frozenset({"extractor", "width", "words", "labels", "beside"})

    @explain_argument_errors
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
        # This raises an error for an unknown value before texts are read.
        Vocabulary((), unknown)
        self.unknown, self.dropout = unknown, dropout
        self.min_count = integer("min_count", min_count, 1)
        self.given = extractor
        self.labels: npt.NDArray[Any] = np.array([])
        self.extractor: Any = None
        self.head: Any = None

    def _transform(self, rows: Any) -> Any:
        """Transform the rows of the extractor (for example, clip them), before noise is added."""
        return rows

    def _noise(self, epsilon: float) -> Any:
        """Create the layer that adds the noise in the training, with the scale for `epsilon`."""
        raise NotImplementedError(f"{type(self).__name__} has no noise")

    def _adversary_or_none(self, part: Corpus, width: int, units: Any, rng: Any) -> Any:
        """Create an adversary that is trained against the extractor, or return None."""
        return None

    def _fit_and_list_texts(
        self, corpus: Any, recipe: Recipe, schedule: Any, rng: Rng, device: Any, progress: Any
    ) -> tuple[str, ...]:
        """Train the extractor and the classifier, and return the training texts."""
        self.trained = None
        ready = None if self.given is not None else self.prepare(corpus)
        part = training_part(corpus) if ready is None else ready.part
        seed = to_seed(rng)
        source = np.random.default_rng(seed)
        # Only an adversary draws from this generator, so the weights are the same with and without
        # it.
        (rival,) = source.spawn(1)
        labels, truth = encode_labels(part)
        place = require_available_device("cpu" if device is None else device)
        texts = tuple(part.texts)
        # Weights are drawn on the CPU, so they are the same on every device.
        with seeded_torch(source):
            bag = (
                self._fit_given_encoder(part) if ready is None else self._make_bag(ready.vocabulary)
            )
            is_bag = isinstance(bag, Bag)
            bag.to(place)
            units = bag(texts).float() if ready is None else ready.units
            width = bag.dim if is_bag else bag.width
            head = torch.nn.Linear(width, len(labels))
            torch.nn.init.uniform_(head.weight, -0.5, 0.5)
            torch.nn.init.zeros_(head.bias)
        head.to(place)
        self.extractor, self.head, self.labels = bag, head, labels
        # Without training noise, words are not masked either.
        with bag.whole() if is_bag and schedule is None else nullcontext():
            losses, partial = training.train_classifier_until_interrupt(
                bag if is_bag else torch.nn.Identity(), self._transform, head, units, truth,
                noise=self._noise, schedule=schedule, recipe=recipe, rng=source,
                adversary=self._adversary_or_none(part, width, units, rival), progress=progress,
            )  # fmt: skip
        head.eval()
        if is_bag:
            bag.eval()
        settings = {**asdict(recipe), "epochs": recipe.epochs_for(len(texts))}
        named = "" if schedule is None else schedules.title_of(schedule)
        self.trained = Trained(
            **settings, texts=len(texts), schedule=named, seed=seed, losses=losses, partial=partial
        )
        return texts

    def prepare(self, corpus: Any) -> Prepared:
        """Convert the training texts to words and word pairs, once for several calls of `fit`.

        Pass the result to `fit` in place of the corpus. The fitted model is the same, but `fit` is
        faster. Use this method if you fit several models to one corpus, for example with different
        seeds.

        Args:
            corpus: a `Corpus` with labels. Its training part is converted. If the corpus has no
                split, all texts are converted.

        Returns:
            The converted texts. The `fit` of another model also accepts these texts if the model
            has the same `unknown` and `min_count` as this model. In addition, if one of the two
            models has a `WordDropout` with `mask="zero_id"`, the other model must also have a
            `WordDropout` with this mask.

        Raises:
            TypeError: if the argument is not a `Corpus`.
            ValueError: for one of these reasons:

                - the corpus lacks labels or a training part;
                - a model with other settings prepared the corpus;
                - the user passed an `extractor` to this model.
        """
        if self.given is not None:
            raise invalid("extractor", "None, for words and word pairs are prepared", self.given)
        kind = (self.unknown, self.min_count, self._mask_token_if_any)
        if not isinstance(corpus, Prepared):
            part = training_part(corpus)
            vocabulary = Vocabulary.from_texts(
                part.texts, unknown=self.unknown, min_count=self.min_count, ngrams=2,
                reserved=self._mask_token_if_any,
            )  # fmt: skip
            return Prepared(part, vocabulary, training.texts_to_ids(vocabulary, part.texts), kind)
        if corpus.kind != kind:
            requirement = f"prepared with (unknown, min_count, reserved) = {kind}"
            raise invalid("corpus", requirement, corpus.kind)
        return corpus

    def _make_bag(self, vocabulary: Vocabulary) -> Bag:
        assert self.dim is not None
        return Bag(vocabulary, self.dim, self.dropout)

    def _fit_given_encoder(self, part: Corpus) -> Any:
        """Return the user's encoder; fit a `TfidfSVD` first if it is not fitted."""
        if isinstance(self.given, TfidfSVD) and not self.given.fitted_on:
            self.given.fit(list(part.texts))
        extractor = encoder_of(self.given)
        extractor.array_dtype = torch.float32
        return extractor

    @property
    def state(self) -> dict[str, Any]:
        """Data of this model that are stored in the file config.json.

        The data are the kind of the text encoder (the extractor), the number of entries of a
        vector, and the labels. If the text encoder is a `Bag`, the data also have its known words.
        """
        words = list[str]()
        if isinstance(self.extractor, Bag):
            vocabulary = self.extractor.vocabulary
            if vocabulary.tokenise is not words_of:
                raise mistyped("tokenise", "words_of, to be saved", vocabulary.tokenise)
            kind, words = "bag", list(vocabulary.words)
        else:
            kind = "tfidf" if isinstance(self.given, TfidfSVD) else "encoder"
        return {
            "extractor": kind, "width": self.head.in_features, "words": words,
            "labels": self.labels.tolist(), "beside": {},
        }  # fmt: skip

    @property
    def saved_modules(self) -> dict[str, Any]:
        """Dictionary from names to the torch modules of this model whose weights are saved.

        These modules are the linear classifier and, if the text encoder is a `Bag`, the word
        vectors.
        """
        bag = {"bag": self.extractor.embedding} if isinstance(self.extractor, Bag) else {}
        return {"head": self.head, **bag}

    def restore(self, state: dict[str, Any]) -> None:
        """Create the classifier and the text encoder of this model, without their saved weights.

        Args:
            state: saved data, as the property `state` returns them.
        """
        self.labels = np.array(state["labels"])
        self.head = torch.nn.Linear(state["width"], len(self.labels))
        if self.given is None:
            vocabulary = Vocabulary(state["words"], self.unknown, self._mask_token_if_any, ngrams=2)
            self.extractor = self._make_bag(vocabulary).eval()
        else:
            self.extractor = encoder_of(self.given)

    def write_parts(self, place: Path) -> None:
        """Save the text encoder that the user passed, in a new folder inside the folder `place`."""
        if isinstance(self.given, TfidfSVD):
            self.given.save_pretrained(place / _EXTRACTOR_FOLDER)
        elif self.given is not None:
            # Torch encoders are written together with their transform and noise.
            self.private.save_pretrained(place / _EXTRACTOR_FOLDER)  # type: ignore[attr-defined]

    @classmethod
    def from_pretrained(
        cls, folder: str | PathLike[str], *, device: Any = None, extractor: Any = None
    ) -> Self:
        """Read a model that `save_pretrained` wrote, without using pickle files or the network.

        Args:
            folder: a local folder.
            device: device of the model. None means the CPU.
            extractor: your own function or module, if the saved model used it as `extractor`.
                dpcore does not save the code of a function or module. For any other model, pass
                None.

        Raises:
            OSError: if the folder or a file is missing.
            ValueError: for one of these reasons:

                - the folder contains a model of another class;
                - a key of config.json is unknown or missing;
                - a file could contain a pickle;
                - a required extractor was not passed.
        """
        return cls._load_fitted_model(folder, device, extractor=extractor)

    @classmethod
    def from_arguments(
        cls, arguments: dict[str, Any], place: Path, config: dict[str, Any], **passed: Any
    ) -> Self:
        """Create a model of this class from saved constructor arguments, without fitting the model.

        Args:
            arguments: saved constructor arguments.
            place: folder of the saved model. If a text encoder (the extractor) was saved, it is
                read from this folder.
            config: content of config.json.
            **passed: the `extractor` that the user passed, or None.
        """
        extractor = passed["extractor"]
        kind = choice("extractor in config.json", config["extractor"], ("bag", "tfidf", "encoder"))
        if kind == "tfidf" and extractor is None:
            extractor = TfidfSVD.from_pretrained(place / _EXTRACTOR_FOLDER)
        elif kind == "encoder":
            private = PrivateEncoder.from_pretrained(place / _EXTRACTOR_FOLDER, encoder=extractor)
            extractor = private.encoder
        elif extractor is not None:
            raise invalid("extractor", f"left out, for the folder holds one ({kind})", extractor)
        made_of = {"transform": make_layer("transform", arguments["transform"], TRANSFORMS)}
        if extractor is not None:
            made_of["extractor"] = extractor
        # Some subclasses have no dropout.
        if arguments.get("dropout") is not None:
            made_of["dropout"] = WordDropout(**arguments["dropout"])
        return super().from_arguments({**arguments, **made_of}, place, config)

    @property
    def _mask_token_if_any(self) -> tuple[str, ...]:
        zeroed = self.dropout is not None and self.dropout.mask == "zero_id"
        # With a token for unknown words, number 0 is this token, as in the study.
        return (_ZERO_WORD,) if zeroed and self.unknown == "drop" else ()

    def _vectors(self, texts: Sequence[str]) -> Any:
        """Compute vectors of texts that the caller has checked, without gradients."""
        with torch.no_grad():
            return self.extractor(texts)

    def encode(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Compute the vectors that this model releases for texts."""
        raise NotImplementedError

    def predict(self, texts: Sequence[str], *, rng: Rng = None) -> npt.NDArray[Any]:
        """Encode texts with the method `encode`, and predict their labels from the vectors.

        Args:
            texts: strings that are not empty.
            rng: None draws new noise. With the same int or Generator state, `encode` adds the same
                noise again.

        Returns:
            A label for each text, shape `(len(texts),)`.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the model is not fitted, or a text is empty.
        """
        self.require_fitted("predicts")
        texts_read = as_texts("texts", texts, fewest=0)
        if not texts_read:
            return self.labels[:0]
        # The `encode` of a model without noise has no argument `rng`.
        noise = {} if rng is None else {"rng": rng}
        return self.predicted(self.encode(texts_read, **noise))

    def predicted(self, vectors: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Predict the labels of n texts from their vectors.

        Args:
            vectors: vectors of the texts, as `encode` returns them, shape `(n, d)`.
        """
        self.require_fitted("predicts")
        weight, rows = self.head.weight, numeric("vectors", "an array of numbers", vectors)
        if rows.ndim != 2 or rows.shape[1] != weight.shape[1]:
            raise invalid("vectors", f"of shape (n, {weight.shape[1]})", rows.shape)
        if not np.isfinite(rows).all():
            raise invalid("vectors", "finite", "infinities or NaN")
        return self.label_rows(self.head, rows)

    def to(self, device: Any) -> Self:
        """Move this model to a torch device, such as "cuda", and return the model."""
        self.require_fitted("is moved")
        place = require_available_device(device)
        self.extractor.to(place)
        self.head.to(place)
        return self


class DPNR(TextSystem, TextClassifier):
    """DPNR, a published model that adds noise to the vectors of texts; its claim is false.

    The model computes ``encode(text) = m(f(text)) + r``. The extractor f maps a text to a vector
    with d entries. The transform m (min-max) shifts and scales each vector so that its smallest
    entry is 0 and its largest entry is 1. The noise r has d independent entries with Laplace
    distribution of scale b. A linear classifier is trained on the noisy vectors.

    The paper uses b = 1/epsilon, because one entry changes by at most 1. However, all d entries may
    change. Therefore the true epsilon for any two texts is ``epsilon d``. The claim holds in two
    repaired versions. The first version has ``scale="sound"`` (b is d/epsilon). The second version
    has a `Clip` in place of min-max.

    The claimed epsilon is for one encoding of one text by a fitted model. Neighbours are any two
    texts. For k encodings of a text, epsilon is multiplied by k. The claim does not cover the texts
    on which the model was fitted.

    Args:
        dim: number d of entries of a vector, at least 2. None means 32. If you pass an `extractor`,
            `dim` must be None.
        epsilon: claimed epsilon, in (0, 1e300].
        extractor: encoder of texts, such as `TfidfSVD(768)` or a SentenceTransformer. Its weights
            are not trained. None means the mean over trained vectors of words and word pairs.
        transform: None for min-max, a `Clip` (of `dpcore.torch` or `dpcore.sensitivity`), or
            another transform that `PrivateEncoder` accepts. With a transform other than min-max,
            `scale` must be "sound" or None.
        noise: "iid" adds independent noise to every entry of a vector, as in the paper. "shared"
            adds the same number to all entries of a vector, as in the released code of the paper.
            With "shared" and min-max, anyone can recover the vector without noise by subtracting
            the smallest entry from all entries.
        scale: scale b of the noise. "published" means 1/epsilon. "sound" means a scale for which
            the claim holds. None means "published" with min-max, and "sound" with another
            transform.
        dropout: `WordDropout`, which masks random words of each text in `encode`. Words are also
            masked in the training if the training has noise (see `schedule` in `fit`). With
            dropout, the exact privacy loss of two texts is not computed. Dropout does not decrease
            the true epsilon for any two texts. None masks no words.
        unknown: "drop" ignores unknown words. With "token", all unknown words have the same vector,
            which is not trained, as in Zouhri and Abecidan (2021).
        min_count: a word or word pair is known if it occurs at least `min_count` times in the
            training texts.

    Attributes:
        trained: record of the training, or None before `fit`.
        labels: the labels that the model can predict.
        private: fitted encoder that includes the transform and the noise, or None before `fit`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or arguments contradict each other.

    Source:
        Lyu, He and Li (2020), algorithms 1 and 2, and their released code (shared noise); Zouhri
        and Abecidan (2021) (the extractor, robust and adaptive training).

    Example:
        >>> from dpcore.text import generated, schedules
        >>> corpus = generated("topics", 600, rng=1)
        >>> model = DPNR(dim=16, epsilon=50.0).fit(
        ...     corpus, schedule=schedules.Constant(50.0), epochs=8, pair=False, rng=1
        ... )
        >>> model
        DPNR(dim=16, epsilon=50.0; THE CLAIM IS FALSE: true epsilon 800 for any two texts)
        >>> model.encode(corpus.test.texts, rng=2).shape
        (60, 16)
        >>> model.accuracy(corpus.test, rng=2) > 0.5
        True
    """

    @explain_argument_errors
    def __init__(
        self,
        dim: int | None = None,
        *,
        epsilon: float,
        extractor: Any = None,
        transform: Any = None,
        noise: Noise = "iid",
        scale: Scale | None = None,
        dropout: WordDropout | None = None,
        unknown: Literal["drop", "token"] = "drop",
        min_count: int = 1,
    ) -> None:
        super().__init__(dim, extractor, dropout, unknown, min_count)
        self.epsilon = positive("epsilon", epsilon)
        self.noise = choice("noise", noise, NOISES)
        self.transform = as_torch_module(MinMax() if transform is None else transform)
        published = isinstance(self.transform, MinMax)
        self.scale = choice("scale", scale or SCALES[not published], SCALES)
        if self.scale == "published" and not published:
            raise invalid("scale", "'sound' for another transform than min-max", scale)

    def fit(
        self,
        corpus: Any,
        *,
        schedule: Any = None,
        epochs: int | None = None,
        batch: int = 64,
        lr: float = 2.0,
        decay: float = 0.9,
        pair: bool = True,
        rng: Rng = None,
        device: Any = None,
        progress: bool | None = None,
    ) -> DPNR:
        """Train the extractor and the classifier of this model by stochastic gradient descent.

        Args:
            corpus: a `Corpus` with labels, or the result of `prepare`. The model is trained on the
                training part of a `Corpus`. If the `Corpus` has no split, the model is trained on
                all texts.
            schedule: function `(epoch, epochs, rng) -> epsilon` that returns the epsilon of the
                training noise in an epoch. Epochs are counted from 1. The scale of the noise is
                computed from epsilon as in `encode`. None means training without noise and without
                masked words (in the paper: "not robust"). `schedules.Constant(epsilon)` keeps the
                scale of the noise equal in all epochs (in the paper: "robust"). Other schedules
                change the scale from epoch to epoch ("adaptive").
            epochs: number of passes over the texts. With None, the number is from 5 to 35, and is
                chosen to make about 2,226 training steps, as in Zouhri and Abecidan (2021).
            batch: number of texts per training step.
            lr: learning rate of the first epoch.
            decay: factor by which the learning rate is multiplied after every epoch.
            pair: with True, `fit` also finds the two training texts with the largest privacy loss.
                `print(model)` shows this pair.
            rng: None, an int in [0, 2**63) or a Generator, for the initial weights, the order of
                the texts, the noise and the masks. None draws a new seed, and the model records
                this seed.
            device: device of the training and of the model, such as "cuda". None means the CPU.
            progress: True shows a progress bar, False shows no bar. None shows a bar for long work
                on a terminal or in a notebook.

        Returns:
            The model itself. After Ctrl-C, the model has the weights from the end of the last
            complete epoch, and `trained.partial` is True.

        Raises:
            TypeError: if an argument is of the wrong kind.
            ValueError: for one of these reasons:

                - the corpus has no labels or no training part;
                - an argument is out of range;
                - the schedule returns a value that is not a finite number above 0;
                - the loss diverges.
            KeyboardInterrupt: on Ctrl-C before the end of the first epoch.

        Source:
            Lyu, He and Li (2020), algorithm 1; Zouhri and Abecidan (2021), algorithm 3.
        """
        flag("pair", pair)
        recipe = training.make_recipe(epochs, batch, lr, decay=decay)
        self.private = None
        texts = self._fit_and_list_texts(corpus, recipe, schedule, rng, device, progress)
        return self._set_noise_and_pair(texts, pair, progress)

    @property
    def arguments(self) -> dict[str, Any]:
        """Constructor arguments of this model, without `extractor`, as data for config.json."""
        arguments_of_model = super().arguments | {
            "transform": describe_layer("transform", self.transform, TRANSFORMS),
            "dropout": None if self.dropout is None else asdict(self.dropout),
        }
        del arguments_of_model["extractor"]
        return arguments_of_model

    def protect(self) -> None:
        """Set the attribute `private` to the fitted text encoder with transform and noise."""
        layer = self._layer(self.epsilon, self.head.in_features)
        # While the width is determined, masks would draw from the user's generator, so they are
        # turned off.
        with self._without_word_dropout():
            private = PrivateEncoder(
                self.extractor, self.transform, epsilon=self.epsilon, noise=layer, strict=False
            )
        self.private = private.to(self.head.weight.device)

    def _without_word_dropout(self) -> AbstractContextManager[None]:
        """Return a context manager that turns off word dropout."""
        return self.extractor.whole() if isinstance(self.extractor, Bag) else nullcontext()

    def _layer(self, epsilon: float, width: int) -> Any:
        kind = LaplaceNoise if self.noise == "iid" else SharedNoise
        if self.scale == "published":
            return kind(calibration.laplace(epsilon, 1.0))
        return kind(sensitivity.laplace_scale(epsilon, self.transform.range(width)))

    def _noise(self, epsilon: float) -> Any:
        return self._layer(epsilon, self.head.in_features)

    def _transform(self, rows: Any) -> Any:
        return self.transform(rows)

    @property
    def width(self) -> int | None:
        """Number of entries of the vector of a text.

        If the user passed an encoder of texts as `extractor`, the number is not known before `fit`,
        and the property is None.
        """
        return self.dim if self.private is None else self.private.width

    @property
    def real(self) -> RealEpsilon | None:
        """True epsilon of one encoding by this model for any two texts, with the derivation.

        The property is None if the noise is "shared" or the number of entries of a vector is not
        known yet.
        """
        if self.width is None:
            return None
        law = self._layer(self.epsilon, self.width).description
        return None if law is None else real_epsilon(law, self.transform.range(self.width))

    @property
    def true_epsilon(self) -> float:
        """True epsilon of one encoding by this model for any two texts.

        The true epsilon may be larger than the claimed epsilon. The value is inf if the noise is
        "shared", and NaN if the number of entries of a vector is not known yet.
        """
        if self.noise == "shared":
            return math.inf
        return math.nan if self.real is None else self.real.value

    def clean(self, texts: Sequence[str]) -> Any:
        """Compute the vectors of texts without noise and without masked words.

        These vectors are not private.

        Args:
            texts: strings that are not empty.

        Returns:
            A tensor of shape `(len(texts), d)`.
        """
        with self._without_word_dropout():
            return super().clean(texts)

    def worst_pair(self, texts: Sequence[str], *, progress: bool | None = None) -> Pair:
        """Find the two texts with the largest exact privacy loss under this model.

        The loss is computed from the distribution of the noise, and not estimated from samples.
        With word dropout, the method computes no loss. In this case, the result is the two texts
        whose vectors without noise have the largest distance.

        Args:
            texts: at least two different strings.
            progress: True shows a progress bar, False shows no bar. None shows a bar for long work
                on a terminal or in a notebook.

        Returns:
            The pair of texts. `print(model)` shows the pair that the last call found.

        Raises:
            TypeError: if `texts` is a single string, or an entry is not a string.
            ValueError: if the model is not fitted, a text is empty, or all texts are equal.
        """
        with self._without_word_dropout():
            pair = super().worst_pair(texts, progress=progress)
        if self.dropout is not None:
            self.require_private("compares texts").worst = (pair, None)
        return pair

    @property
    def name(self) -> str:
        """Name of this model in reports, such as "DPNR(dim=16, epsilon=50.0)"."""
        extractor = self.given if self.extractor is None else self.extractor
        extractor_name = f"{getattr(extractor, 'name', extractor)}"
        first = f"dim={self.dim}" if self.given is None else extractor_name
        usual = {
            name: parameter.default for name, parameter in signature(type(self)).parameters.items()
        }
        usual |= {"scale": SCALES[0]}
        more = [
            f", {name}={value!r}"
            for name in ("transform", "noise", "scale", "dropout", "unknown", "min_count")
            if (value := getattr(self, name)) != usual[name] and not isinstance(value, MinMax)
        ]
        return f"DPNR({first}, epsilon={self.epsilon!r}{''.join(more)})"

    def details(self) -> dict[str, str]:
        """Return additional rows that `print` shows for this model: training, labels and dropout.

        The keys of the dictionary are the titles of the rows.
        """
        rows = super().details()
        if self.dropout is not None and self.dropout.masks == "bernoulli":
            claimed, true = (
                calibration.word_dropout(level, self.dropout.mu) if math.isfinite(level) else level
                for level in (self.epsilon, self.true_epsilon)
            )
            rows["dropout"] = (
                f"for texts that differ in one word: claimed {claimed:.6g}, true {true:.6g}; for "
                "any two texts nothing is gained"
            )
        elif self.dropout is not None:
            gain = "what is published as its gain does not hold"
            rows["dropout"] = f"a fixed share of masked words: {gain}"
        return rows
