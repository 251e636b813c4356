"""Models of the experiment: their training, their tests, and the accuracies published by the study.

Only the class `Bench`, which trains and tests the models, requires torch.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import numpy as np

from ...errors import AssumptionWarning
from ...report.shown import Shown
from ...streams import seeded_torch
from ...text import schedules
from ..running import cell_seed, training_of_model

if TYPE_CHECKING:
    from ...text import DPNR, Corpus
    from ...text.systems import Prepared, Units

SOURCE: Final = "Zouhri and Abecidan (2021), figures 7 and 8: means of five runs, no spread"

EPSILONS: Final = (0.05, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0)
"""Claimed epsilons in the rows of the tables of Zouhri and Abecidan (2021)."""

PLAIN, ROBUST, ADAPTIVE = "not robust", "robust", "adaptive"

_NOISY_ACCURACIES: Final[dict[tuple[str, int], dict[str, tuple[float, ...]]]] = {
    ("ag_news", 32): {
        PLAIN: (0.26, 0.26, 0.31, 0.36, 0.48, 0.57, 0.63, 0.67),
        ROBUST: (0.25, 0.25, 0.25, 0.25, 0.30, 0.51, 0.66, 0.73),
    },
    ("ag_news", 64): {
        PLAIN: (0.26, 0.26, 0.30, 0.36, 0.46, 0.54, 0.59, 0.66),
        ROBUST: (0.25, 0.25, 0.25, 0.25, 0.31, 0.42, 0.50, 0.68),
        ADAPTIVE: (0.26, 0.26, 0.34, 0.42, 0.50, 0.57, 0.64, 0.63),
    },
    ("yelp", 32): {
        PLAIN: (0.50, 0.51, 0.54, 0.58, 0.64, 0.70, 0.73, 0.75),
        ROBUST: (0.50, 0.50, 0.54, 0.51, 0.60, 0.75, 0.84, 0.82),
    },
    ("yelp", 64): {
        PLAIN: (0.50, 0.51, 0.53, 0.56, 0.60, 0.65, 0.68, 0.72),
        ROBUST: (0.50, 0.50, 0.61, 0.64, 0.62, 0.75, 0.84, 0.81),
        ADAPTIVE: (0.51, 0.53, 0.62, 0.57, 0.75, 0.77, 0.80, 0.79),
    },
}
"""Test accuracies of the study at each of `EPSILONS`, without masked words. The Yelp corpus of the
study consists of long reviews. The Yelp corpus of dpcore consists of single sentences."""

_CLEAN_ACCURACIES: Final = dict(zip(_NOISY_ACCURACIES, (0.80, 0.77, 0.88, 0.89), strict=True))
"""Test accuracies of the study if both the training and the test are without noise."""

_MASKED_ACCURACIES: Final[dict[tuple[str, int], dict[str, dict[float, float]]]] = {
    ("ag_news", 32): {
        PLAIN: {0.1: 0.53, 0.3: 0.37, 0.5: 0.32, 0.8: 0.27},
        ROBUST: {0.1: 0.58, 0.3: 0.35, 0.5: 0.33, 0.8: 0.27},
    },
    ("ag_news", 64): {
        PLAIN: {0.1: 0.53, 0.3: 0.37, 0.5: 0.30, 0.8: 0.26},
        ROBUST: {0.1: 0.47, 0.3: 0.29, 0.5: 0.28, 0.8: 0.25},
        ADAPTIVE: {0.1: 0.40, 0.3: 0.37, 0.5: 0.28, 0.8: 0.26},
    },
    ("yelp", 32): {PLAIN: {0.1: 0.69}, ROBUST: {0.1: 0.68}},
    ("yelp", 64): {PLAIN: {0.1: 0.65}, ROBUST: {0.1: 0.76}, ADAPTIVE: {0.1: 0.57}},
}
"""Test accuracies of the study at epsilon 4, by the share of masked words. For Yelp, only some rows
of the tables are available."""

CROSSINGS: Final = dict(zip(_NOISY_ACCURACIES, (4.0, 5.0, 3.0, 0.5), strict=True))
"""For each corpus and dimension: smallest epsilon from which on "robust" is more accurate than "not
robust" in the study of Zouhri and Abecidan (2021)."""


def published_accuracy(
    data: str, dim: int, line: str, epsilon: float | None, mu: float = 0.0
) -> float | None:
    """Return a test accuracy that Zouhri and Abecidan (2021) published.

    Args:
        data: "ag_news" or "yelp".
        dim: dimension of the text vectors.
        line: name of the training variant: "not robust", "robust" or "adaptive".
        epsilon: claimed epsilon of the noise in the test, or None for no noise.
        mu: share of masked words in the test.

    Returns:
        The accuracy, or None if this accuracy was not published.

    Example:
        >>> [published_accuracy("ag_news", 32, line, 5.0) for line in ("robust", "adaptive")]
        [0.73, None]
    """
    if mu:
        accuracies = _MASKED_ACCURACIES.get((data, dim), {}).get(line, {})
        return accuracies.get(mu) if epsilon == 4.0 else None
    if epsilon is None:
        return _CLEAN_ACCURACIES.get((data, dim)) if line == PLAIN else None
    values = _NOISY_ACCURACIES.get((data, dim), {}).get(line)
    return None if values is None or epsilon not in EPSILONS else values[EPSILONS.index(epsilon)]


DATA: Final = {"ag_news": "AG news", "yelp": "Yelp"}
"""Names of the corpora, and their titles in tables."""

MADE: Final[dict[str, Literal["topics", "intents"]]] = {"ag_news": "topics", "yelp": "intents"}
"""Kind of texts that `dpcore.text.generated` generates to replace each corpus."""

MU_EPSILON: Final = 4.0
"""Claimed epsilon of the noise in tests with masked words, as in Zouhri and Abecidan (2021)."""

CONSTANT: Final = 5.0
"""Epsilon of the noise with which the control is trained. The control is tested at every noise
level."""

SOUND_AT: Final = (1.0, 4.0, 5.0)
"""Epsilons at which the variant "robust, b = d/epsilon" is trained and tested, unless `full` is
True. The noise of this variant has scale b, and d is the number of entries of a vector. Each
epsilon requires a separate model, and the accuracy of all these models is at chance level."""

MASKS: Final[dict[Literal["leave_out", "zero_id"], str]] = {
    "leave_out": "left out",
    "zero_id": "id 0, as the study's code",
}


@dataclass(frozen=True, slots=True)
class TrainingVariant:
    """Settings for training a text classifier: the noise, and the treatment of unknown words.

    Args:
        name: name of the variant in tables and pictures.
        schedule: epsilon of the noise in each epoch (a schedule), or a class that makes a schedule
            from one epsilon. None for training without noise.
        each: True to train a separate model for each epsilon, and to test each model only at its
            training epsilon.
        scale: scale of the noise. "published" is 1/epsilon, and the claimed epsilon is then false.
            "sound" is d/epsilon (d is the number of entries of a vector), and the claimed epsilon
            is then true.
        unknown: "drop" to leave unknown words and word pairs out of the text vector, or "token" to
            represent all unknown words and pairs by one vector.
        study: name of the published variant with which this variant is compared, or "" if the
            variant is not compared.
        shared: None if models are trained for this variant. If this variant uses the models of a
            different variant, `shared` is a pair. The pair contains the name of the different
            variant, and the training epsilon of its models.
        drawn: True to show the variant in the picture.
    """

    name: str
    schedule: Any = None
    each: bool = False
    scale: Literal["published", "sound"] = "published"
    unknown: Literal["drop", "token"] = "drop"
    study: str = ""
    shared: tuple[str, float] | None = None
    drawn: bool = True


LINES: Final = {
    line.name: line
    for line in (
        TrainingVariant("not robust", study=PLAIN),
        TrainingVariant("robust", schedules.Constant, each=True, study=ROBUST),
        TrainingVariant("stretched 10 to 2", schedules.Stretched(10.0, 2.0), study=ADAPTIVE),
        TrainingVariant("constant 5", schedules.Constant, shared=("robust", CONSTANT)),
        TrainingVariant("uniform 2 to 10", schedules.UniformEpsilon(2.0, 10.0)),
        TrainingVariant("log-uniform .5 to 10", schedules.LogUniformEpsilon(0.5, 10.0)),
        TrainingVariant("10/n as printed", schedules.OverEpochs(10.0)),
        TrainingVariant("1/n as printed", schedules.OverEpochs(1.0)),
        TrainingVariant("robust, b = d/epsilon", schedules.Constant, each=True, scale="sound"),
        TrainingVariant("not robust, <unk>", unknown="token", drawn=False),
    )
}
"""Training variants by name. In epoch n of five epochs, Zouhri and Abecidan (2021) train at epsilon
10/n, which falls from 10 to 2. In the variant "stretched 10 to 2", epsilon falls from 10 to 2 in
any number of epochs."""

NAMES: Final = tuple(LINES)


@dataclass(frozen=True, slots=True, repr=False)
class Test(Shown):
    """Settings of one test of a text classifier: the noise, and the masked words.

    Args:
        epsilon: claimed epsilon of the noise, or None for no noise.
        mu: share of the words that are masked.
        mask: treatment of masked words: "leave_out" leaves masked words out of the text vector.
            "zero_id" replaces each masked word by word number 0 of the vocabulary. "" means that no
            words are masked.
    """

    epsilon: float | None = None
    mu: float = 0.0
    mask: Literal["", "leave_out", "zero_id"] = ""

    def __str__(self) -> str:
        """Return the text from which the seed of the test is derived."""
        return f"{self.epsilon}/{self.mu}/{self.mask}"


@dataclass(frozen=True, slots=True, repr=False)
class Job(Shown):
    """Settings of one text classifier to train.

    Args:
        data: name of the corpus.
        dim: dimension of the text vectors.
        number: index of the training among trainings with different seeds, from 0.
        line: name of the training variant.
        trained: epsilon of the noise in training, or None if the variant does not have a separate
            model for each epsilon.
        mu: share of the words that are masked in training.
        mask: treatment of masked words, "leave_out" or "zero_id" (see `Test`), or "". If `mu` is 0,
            the training masks no words. The field `mask` then determines how the tests mask words,
            and which vocabulary the model has.
    """

    data: str
    dim: int
    number: int
    line: str
    trained: float | None = None
    mu: float = 0.0
    mask: Literal["", "leave_out", "zero_id"] = ""

    def tests(self, config: Any) -> Iterator[Test]:
        """Yield the settings of all tests of this model.

        The first test has no noise and no masked words.
        """
        yield Test()
        if not self.mask:
            levels = config.epsilons
            if LINES[self.line].scale == "sound":
                levels = tuple(level for level in levels if level == self.trained)
            yield from map(Test, levels)
        masked = self.line == "not robust" or (self.line, self.trained) == ("robust", MU_EPSILON)
        if not masked or not _is_dimension_tested_with_masked_words(config, self.dim):
            return
        for mu in (self.mu,) if self.mu else config.mus:
            for epsilon in (None, MU_EPSILON):
                yield Test(epsilon, mu, self.mask or "leave_out")


@dataclass(frozen=True, slots=True, repr=False)
class Model(Shown):
    """Training loss and test accuracies of one trained text classifier.

    Args:
        job: settings of the training.
        loss: mean training loss (cross-entropy) in the last epoch, in nats.
        clean: test accuracy without noise and without masked words.
        accuracies: one pair for every test: the settings of the test, and the test accuracy.
    """

    job: Job
    loss: float
    clean: float
    accuracies: tuple[tuple[Test, float], ...]


def corpora_of(config: Any) -> tuple[str, ...]:
    """Return the names of the corpora of the experiment. A quick run uses only the first corpus."""
    return tuple(DATA)[:1] if config.quick else tuple(DATA)


def _is_dimension_tested_with_masked_words(config: Any, dim: int) -> bool:
    """Return True if models of this dimension are tested with masked words."""
    return bool(config.full or dim == config.dims[0])


def _training_epsilons_or_none(line: TrainingVariant, config: Any) -> tuple[float | None, ...]:
    """Return the training epsilons of a variant, or (None,) if all tests use one model."""
    if not line.each:
        return (None,)
    if line.scale == "sound" and not config.full:
        return tuple(level for level in config.epsilons if level in SOUND_AT)
    return tuple(config.epsilons)


def list_training_jobs(config: Any) -> Iterator[Job]:
    """Yield the settings of all models to train.

    The models of the first seed come first, then the models of the second seed, and so on.
    """
    for number, data, dim in product(range(config.seeds), corpora_of(config), config.dims):
        first = partial(Job, data, dim, number)
        # The dict removes repetitions, because variants may share a model.
        jobs: dict[Job, None] = {}
        for name in config.lines:
            if (shared := LINES[name].shared) is not None:
                jobs[first(*shared)] = None
            else:
                levels = _training_epsilons_or_none(LINES[name], config)
                jobs |= dict.fromkeys(first(name, level) for level in levels)
        if _is_dimension_tested_with_masked_words(config, dim):
            jobs |= dict.fromkeys(_jobs_of_tests_with_masked_words(first, config))
        yield from jobs


def _jobs_of_tests_with_masked_words(job_factory: Any, config: Any) -> Iterator[Job]:
    """Yield all models for tests with masked words. Some are also trained with masked words."""
    for line, level in (("not robust", None), ("robust", MU_EPSILON)):
        if line in config.lines:
            yield job_factory(line, level)
            yield job_factory(line, level, 0.0, "zero_id")
    for mask in MASKS if "robust" in config.lines else ():
        for mu in config.mus:
            yield job_factory("robust", MU_EPSILON, mu, mask)


class Bench:
    """Object that trains and tests text classifiers on one corpus.

    Args:
        corpus: corpus with training and test texts.
        config: options of the experiment.
    """

    def __init__(self, corpus: Corpus, config: Any) -> None:
        self.test, self._corpus, self._config = corpus.test, corpus, config
        self._kept: dict[tuple[str, bool], tuple[Prepared, Units]] = {}

    def train_and_test(self, job: Job) -> Model:
        """Train one model with the settings `job`, and run all tests of this model."""
        from ...text import DPNR, WordDropout
        from ...text.systems.training import one_thread

        line, config = LINES[job.line], self._config
        dropout = WordDropout(job.mu, mask=job.mask) if job.mask else None
        claim = config.epsilons[-1] if job.trained is None else job.trained
        model = DPNR(
            job.dim, epsilon=claim, scale=line.scale, unknown=line.unknown, dropout=dropout
        )
        schedule = line.schedule(claim) if isinstance(line.schedule, type) else line.schedule
        # All variants use one seed, so they have equal initial weights and an equal order of texts.
        key = f"{job.data}/{job.dim}/{job.number}"
        with warnings.catch_warnings(), one_thread():
            # Some texts have no known word, and some rows are zero because all words are masked.
            # They are counted like all other texts.
            warnings.simplefilter("ignore", AssumptionWarning)
            warnings.simplefilter("ignore", UserWarning)
            ready, units = self._prepare_texts_once(model, (line.unknown, job.mask == "zero_id"))
            how: Any = {"rng": cell_seed(config.seed, key), "device": config.device}
            model.fit(ready, schedule=schedule, pair=False, progress=False, **how)
            tests = dict(self._run_tests(model, units, job, key))
        return Model(job, training_of_model(model).losses[-1], tests[Test()], tuple(tests.items()))

    def _prepare_texts_once(self, model: DPNR, kind: tuple[str, bool]) -> tuple[Prepared, Units]:
        from ...text.systems.training import texts_to_ids

        if kind not in self._kept:
            ready = model.prepare(self._corpus)
            self._kept[kind] = (ready, texts_to_ids(ready.vocabulary, self.test.texts))
        return self._kept[kind]

    def _run_tests(
        self, model: DPNR, units: Units, job: Job, key: str
    ) -> Iterator[tuple[Test, float]]:
        """Yield the tests of a model with their accuracies.

        The random seed for noise and masks depends only on `key` and the name of the test.
        """
        from ...packages import torch
        from ...text import WordDropout

        for test in job.tests(self._config):
            bag, noise = model.extractor, _make_noise_for_claim(model, test.epsilon)
            bag.dropout = WordDropout(test.mu, mask=cast(Any, test.mask)) if test.mu else None
            draws = max(1, math.ceil(self._config.trials / len(units))) if test != Test() else 1
            seed = cell_seed(self._config.seed, f"{key}/{test}")
            with torch.no_grad(), seeded_torch(np.random.default_rng(seed)):
                # Masks are drawn again in each call, but noise is drawn for all rows at once.
                calls = draws if test.mu else 1
                rows = torch.cat([model.transform(bag(units)) for _ in range(calls)])
                sent = noise(rows.repeat(draws // calls, 1))
            predictions = model.predicted(sent.cpu().numpy())
            yield test, float(np.mean(predictions == np.tile(self.test.labels, draws)))


def _make_noise_for_claim(model: DPNR, epsilon: float | None) -> Any:
    """Return the noise of a model for a different claimed epsilon, or for None (no noise)."""
    from ...text import DPNR

    if epsilon is None:
        return lambda rows: rows
    sender = DPNR(model.dim, epsilon=epsilon, scale=model.scale)
    sender.extractor, sender.head = model.extractor, model.head
    sender.protect()
    assert sender.private is not None
    return sender.private.noise
