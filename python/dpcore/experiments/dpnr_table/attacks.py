"""Measurements of one trained system: its accuracy, two attackers, and a certified bound.

A system is a text encoder with a classifier. The systems are DPNR without noise, DPNR with several
types of noise, and baselines that claim no epsilon. All systems use the same texts. The systems of
DPNR also use the same encoders, which are fitted once. The claims of DPNR are audited on the pair
of training texts whose vectors have the largest distance.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from ...errors import invalid, tag_error
from ...packages import require_module
from ...records import Array, Counts, Flags, Ints, Pair
from ...report.shown import Shown
from ...structure import inspect
from ...text import Corpus, TfidfSVD
from ...text.corpus import fold_case_and_blanks
from ...text.inference import Attacker, Group, Inference, infer, usual
from ..corpora import ENTITIES, read_texts
from ..running import audit_cell, offline_minilm, training_of_model

ENCODERS: Final = ("TF-IDF", "MiniLM")


class Remembered:
    """Text encoder that stores the vector of every text, and encodes each text only once.

    Args:
        encode: encoder to use: a function from a list of n texts to an array of shape `(n, d)`.
        name: name of the encoder in reports.
    """

    def __init__(self, encode: Any, name: str) -> None:
        self._encode, self.__name__ = encode, name
        self._known: dict[str, npt.NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Return the vectors of texts, float32, shape `(n, d)`."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, np.asarray(self._encode(new), np.float32), strict=True))
        return np.stack([self._known[text] for text in texts])


def micro_f1(truth: Array, answers: Array) -> float:
    """Return the micro-F1 of predicted binary attributes, over all texts and all attributes.

    Example:
        >>> round(micro_f1(np.array([[1, 0], [1, 1]]), np.array([[1, 0], [1, 0]])), 4)
        0.8
    """
    return 2.0 * int((truth & answers).sum()) / max(1, int(truth.sum()) + int(answers.sum()))


@dataclass(frozen=True, slots=True, repr=False)
class Facts(Shown):
    """Source and sizes of a corpus of texts, and the scores of constant predictions.

    Args:
        origin: source of the texts.
        made: True if the texts were generated.
        sizes: numbers of training, validation and test texts.
        repeated: number of test texts that are also training texts.
        unseen: number of distinct test texts that are neither training nor validation texts.
        majority: accuracy of a constant prediction, on all test texts and on the unseen test texts.
            The prediction is the most frequent label of the training texts.
        names: names of the private attributes. A bound on epsilon is certified only for the first
            attribute.
        always: micro-F1 of a constant prediction of the attributes, on all test texts and on the
            unseen test texts. The prediction is that every text has the most frequent attribute,
            and no other attribute.
        widths: one pair for each encoder: the name, and the number of entries of a vector.
    """

    origin: str
    made: bool
    sizes: tuple[int, int, int]
    repeated: int
    unseen: int
    majority: tuple[float, float]
    names: tuple[str, ...]
    always: tuple[float, float]
    widths: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Material:
    """Texts, text encoders, and one pair of texts to audit for each encoder.

    Args:
        corpus: the texts.
        facts: source and sizes of the texts.
        unseen: one boolean for each test text. The boolean is True for the first copy of a text
            that is neither a training nor a validation text.
        truth: attributes of the test texts, 0 or 1, shape `(texts, attributes)`.
        extractors: dict with the name of each encoder as a key, and the encoder as the value.
        pairs: dict with the name of each encoder as a key, and a pair of training texts as the
            value. The vectors of these two texts, after min-max scaling, have the largest distance
            of all pairs of training texts.
    """

    corpus: Corpus
    facts: Facts
    unseen: Flags
    truth: Ints
    extractors: dict[str, Remembered]
    pairs: dict[str, Pair]


def prepare_texts_encoders_and_pairs(config: Any) -> Material:
    """Read or generate texts, fit text encoders, and find a pair of texts to audit per encoder."""
    corpus = read_texts(config, "dpnr_ag", "topics", config.texts, "texts")
    names = tuple(corpus.attributes or ()) if config.data is None else ENTITIES
    if missing := [name for name in names if name not in (corpus.attributes or {})]:
        raise tag_error(invalid("data", f"with the attributes {missing}", config.data), "data")
    test = corpus.test
    unseen = _first_copy_of_unseen_test_flags(corpus)
    truth = np.stack([test.attribute(name) for name in names], axis=1)
    extractors = {name: _make_text_encoder(name, config, corpus) for name in config.encoders}
    widths = tuple((name, made([test.texts[0]]).shape[1]) for name, made in extractors.items())
    facts = _corpus_sizes_and_baselines(corpus, names, unseen, truth, config.data is None, widths)
    pairs = {name: _find_worst_pair(made, corpus) for name, made in extractors.items()}
    return Material(corpus, facts, unseen, truth, extractors, pairs)


def _first_copy_of_unseen_test_flags(corpus: Corpus) -> Flags:
    """Mark the first copy of every test text that is neither a training nor a validation text."""
    known_texts = {
        fold_case_and_blanks(text) for part in (corpus.train, corpus.valid) for text in part.texts
    }
    marks = []
    for text in corpus.test.texts:
        marks.append(fold_case_and_blanks(text) not in known_texts)
        known_texts.add(fold_case_and_blanks(text))
    return np.array(marks)


def _corpus_sizes_and_baselines(
    corpus: Corpus, names: tuple[str, ...], unseen: Any, truth: Any, made: bool, widths: Any
) -> Facts:
    train, valid, test = (len(part) for part in (corpus.train, corpus.valid, corpus.test))
    most = int(np.argmax([corpus.train.attribute(name).sum() for name in names]))
    constant = np.zeros_like(truth)
    constant[:, most] = 1
    labels, counts = np.unique(corpus.train.labels, return_counts=True)
    common = corpus.test.labels == labels[counts.argmax()]
    train_texts = set(corpus.train.texts)
    return Facts(
        corpus.origin, made, (train, valid, test),
        sum(text in train_texts for text in corpus.test.texts), int(unseen.sum()),
        (float(common.mean()), float(common[unseen].mean())), names,
        (micro_f1(truth, constant), micro_f1(truth[unseen], constant[unseen])), widths,
    )  # fmt: skip


def _make_text_encoder(name: str, config: Any, corpus: Corpus) -> Remembered:
    if name == "TF-IDF":
        return Remembered(TfidfSVD(config.dim).fit(corpus).encode, f"TF-IDF, SVD {config.dim}")
    model = offline_minilm("dpnr-table with full", config.device)
    return Remembered(lambda texts: model.encode(texts, show_progress_bar=False), "MiniLM")


def _find_worst_pair(extractor: Remembered, corpus: Corpus) -> Pair:
    from ...text.systems import DPNR

    # Epsilon only changes the scale, and therefore not the order of the pairs.
    model = DPNR(epsilon=1.0, extractor=extractor)
    model.fit(corpus, epochs=1, pair=False, rng=0, progress=False)
    return model.worst_pair(corpus.train.texts, progress=False)


CLEAN: Final = "no noise"
NOISES: Final[dict[str, tuple[Literal["shared", "iid"], Literal["published", "sound"]]]] = {
    "shared": ("shared", "published"),
    "iid": ("iid", "published"),
    "sound": ("iid", "sound"),
}
"""Names of the systems of DPNR with noise. The value of each name is a pair: the arguments `noise`
and `scale` of the class `DPNR`."""

BASELINES: Final = (
    "MinMaxAdversary",
    "AdversarialClassification",
    "AdversarialGeneration",
    "Declustering",
)
"""Baselines, the names of classes in `.defences`. Each class trains an encoder against an
opponent."""

RECIPE: Final[dict[str, Any]] = {"lr": 0.4, "decay": 0.87}
"""Learning rate of the linear classifier on top of an encoder, and the factor that multiplies the
learning rate after every epoch. All systems of DPNR use the same values. The values were chosen on
the test texts, so the accuracies in the column "main" are slightly too high. The attackers were
neither trained nor chosen on the test texts."""
_TRAINING_STEPS: Final = 3660
"""Number of training steps of the classifier: 20 epochs on the corpus of the paper."""
_EPOCH_LIMITS: Final = (20, 40)
"""Smallest and largest number of epochs of the classifier's training."""

Encode = Callable[..., Any]


@dataclass(frozen=True, slots=True, repr=False)
class Case(Shown):
    """Settings of one text system (an encoder of texts, with a classifier).

    Args:
        system: name of the system: `CLEAN` (the system DPNR without noise), a key of `NOISES` (DPNR
            with noise), or one of `BASELINES` (trained against an opponent, without noise).
        encoder: name of the text encoder: "TF-IDF" or "MiniLM" for DPNR, and "bag" (an encoder
            trained with the baseline) for a baseline.
        claim: claimed epsilon, or None if no epsilon is claimed.
        strength: weight of the opponent in the training of a baseline. With None, the class of the
            baseline sets the weight.
    """

    system: str
    encoder: str
    claim: float | None = None
    strength: float | None = None

    @property
    def name(self) -> str:
        """Name of this system in tables.

        The name does not contain the encoder or the claimed epsilon.
        """
        if self.system in BASELINES:
            return f"{self.system}, strength {self.strength:g}"
        names = {"shared": "shared noise", "iid": "iid noise", "sound": "iid noise, sound"}
        return names.get(self.system, self.system)

    @property
    def key(self) -> str:
        """Text with all settings of this system.

        The random seeds of the system are derived from this text.
        """
        return f"{self.encoder}/{self.system}/{self.claim}/{self.strength}"


def list_systems(
    encoders: Sequence[str], levels: Sequence[float], strengths: Sequence[float]
) -> tuple[Case, ...]:
    """Return the settings of all systems of the experiment.

    First come the systems of DPNR for each encoder, without noise and with noise. Then come the
    baselines.

    Args:
        encoders: names of the text encoders for DPNR.
        levels: claimed epsilons. The systems "shared" (equal noise on all entries) and "iid"
            (independent noise on every entry) are listed with every epsilon. The system "sound"
            (noise for which the claim is true) is listed only with the largest epsilon.
        strengths: weights of the opponent in the training of a baseline, each above 0. A weight is
            stated as a multiple of the default weight of the baseline. If `strengths` is not empty,
            one system with weight 0 (training without an opponent) is added.
    """
    cases = []
    for encoder in encoders:
        cases.append(Case(CLEAN, encoder))
        cases += [Case(name, encoder, level) for name in ("shared", "iid") for level in levels]
        cases.append(Case("sound", encoder, max(levels)))
    if strengths:
        from . import defences

        cases.append(Case(BASELINES[0], "bag", strength=0.0))
        cases += [
            Case(name, "bag", strength=times * getattr(defences, name).usual)
            for name in BASELINES
            for times in strengths
        ]
    return tuple(cases)


@dataclass(frozen=True, slots=True)
class Fitted:
    """A trained text system, and the function that returns the released vectors of texts.

    Args:
        model: the trained model.
        encode: function from texts to released vectors. The function has an argument `rng` if the
            vectors are noisy.
        true: true epsilon of the noise, valid for any two texts. The value is inf if no finite
            epsilon holds, and None for a baseline.
    """

    model: Any
    encode: Encode
    true: float | None


def fit_system(case: Case, encoder: Any, corpus: Any, names: Any, seed: int, device: str) -> Fitted:
    """Train one text system: DPNR (a published noisy text encoder) or a baseline.

    Args:
        case: settings of the system.
        encoder: encoder of the texts, or None for a baseline (the baseline trains an encoder).
        corpus: the texts, split into training, validation and test texts.
        names: names of the attributes that a baseline learns to hide.
        seed: seed of the training.
        device: torch device of the training.
    """
    from ...text import schedules
    from ...text.systems import DPNR

    if case.system in BASELINES:
        from . import defences

        model = getattr(defences, case.system)(attribute=list(names), strength=case.strength)
        training_of_model(model.fit(corpus, rng=seed, device=device, progress=False))
        return Fitted(model, model.encode, None)
    noise, scale = NOISES.get(case.system, NOISES["iid"])
    schedule = None if case.claim is None else schedules.Constant(case.claim)
    # Without noise, the layer exists too but is not used.
    model = DPNR(epsilon=case.claim or 1.0, extractor=encoder, noise=noise, scale=scale)
    steps = -(-len(corpus.train) // 64)
    epochs = min(max(-(-_TRAINING_STEPS // steps), _EPOCH_LIMITS[0]), _EPOCH_LIMITS[1])
    how: Any = {"epochs": epochs, "rng": seed, "device": device, "progress": False, **RECIPE}
    model.fit(corpus, schedule=schedule, pair=False, **how)
    training_of_model(model)
    if case.claim is None:
        return Fitted(model, lambda texts: model.clean(texts).cpu().numpy(), math.inf)
    return Fitted(model, model.encode, model.true_epsilon)


def encode_with_call_seed(encode: Encode, texts: Any, seed: int, call: int) -> Any:
    """Encode texts with noise that is determined by the two integers `seed` and `call`."""
    from ...mechanisms.texts import takes_rng

    if not takes_rng(encode):
        return encode(list(texts))
    return encode(list(texts), rng=np.random.default_rng([seed, call]))


BUDGETS: Final = {"quick": (2, 5), "usual": (2, 5, 10), "full": (5, 10, 30)}
"""Numbers of training epochs after which the naive attacker (a simple neural network) is tested,
for each size of the experiment (`Config.size`)."""
_NAIVE_STARTS: Final = {"quick": 1, "usual": 2, "full": 5}
"""Number of random initialisations of the naive attacker, by `Config.size`."""
_USUAL_TRANSFORMS: Final = ("raw", "row minimum subtracted")


@dataclass(frozen=True, slots=True, repr=False)
class Naive(Shown):
    """Results of one simple attacker that predicts private attributes from released text vectors.

    The attacker is a neural network with one hidden layer of 256 units.

    Args:
        start: index of the random initialisation, from 0.
        epochs: number of training epochs.
        f1: micro-F1 on all test texts.
        unseen: micro-F1 on the test texts that are neither training nor validation texts.
    """

    start: int
    epochs: int
    f1: float
    unseen: float


@dataclass(frozen=True, slots=True, repr=False)
class Run(Shown):
    """Results of one trained text system: accuracy, attacks on private attributes, and privacy.

    Args:
        seed: seed of training and attacks.
        true: true epsilon of the noise, valid for any two texts. The value is inf if no finite
            epsilon holds, and None for a baseline.
        loss: exact privacy loss of the audited pair of texts, computed from the distribution of the
            noise. None for a baseline.
        main: accuracy of the main task (prediction of the label) on all test texts.
        main_unseen: accuracy of the main task on unseen test texts. Unseen texts are neither
            training nor validation texts.
        naive: results of simple neural networks that predict the attributes.
        chosen: result of the best attacker, chosen by the F1 over all attributes on the validation
            texts.
        alone: result of an attack that predicts only the first attribute, with a certified lower
            bound on epsilon.
        discriminator: accuracy of the opponent (the network against which a baseline was trained),
            averaged over the attributes. None for DPNR.
    """

    seed: int
    true: float | None
    loss: float | None
    main: float
    main_unseen: float
    naive: tuple[Naive, ...]
    chosen: Inference
    alone: Inference
    discriminator: float | None

    @property
    def refit_accuracy(self) -> float | None:
        """Accuracy of a new classifier for the main task (the label), on unseen test texts.

        The classifier is trained on the released vectors, and is of the same type as the best
        attacker. None if the accuracy was not measured.
        """
        group = self.group
        if group.main is None:
            return None
        others = self.chosen.sizes[2] - group.texts
        rest = group.main.value - (0.0 if group.gap is None else group.gap.value)
        return (group.texts * group.main.value + others * rest) / self.chosen.sizes[2]

    @property
    def certified(self) -> float | str:
        """Lower bound on epsilon, certified by an attack that infers only the first attribute.

        If no bound is certified, the value is a text with the reason.
        """
        bound = self.alone.certified
        return bound if isinstance(bound, str) else bound.epsilon_lower

    @property
    def refuted(self) -> bool | None:
        """True if the certified lower bound on epsilon refutes the claimed epsilon.

        None if no bound was certified, or if the system claims no epsilon.
        """
        bound = self.alone.certified
        return None if isinstance(bound, str) else bound.refuted

    @property
    def group(self) -> Group:
        """Results of the best attacker on the unseen test texts that have the first attribute.

        Unseen texts are neither training nor validation texts.
        """
        return self.chosen.groups[len(self.chosen.attributes) == 1]


def measure_system(case: Case, made: Material, seed: int, config: Any) -> Run:
    """Train one text system, measure its accuracy, and attack its released vectors.

    Args:
        case: settings of the system.
        made: texts, encoders and pairs of texts.
        seed: seed of training and attacks.
        config: options of the experiment.
    """
    names, corpus = made.facts.names, made.corpus
    system = fit_system(case, made.extractors.get(case.encoder), corpus, names, seed, config.device)
    few = choose_attackers(config.size, len(corpus.train))
    test = encode_with_call_seed(system.encode, corpus.test.texts, seed, 0)
    right = system.model.predicted(test) == corpus.test.labels
    asked: dict[str, Any] = {"rng": seed, "progress": False, "confidence": config.confidence}
    linear = [attacker for attacker in few if attacker.classifier == few[0].classifier]
    return Run(
        seed=seed,
        true=system.true,
        loss=_exact_pair_loss(case, system, made.pairs.get(case.encoder)),
        main=float(right.mean()),
        main_unseen=float(right[made.unseen].mean()),
        naive=score_naive_attacks(system, made, seed, config.size),
        chosen=infer(system.encode, corpus, names, attackers=few, measure="f1", **asked),
        alone=infer(
            system.encode, corpus, names[0], neighbours="any two texts", **asked,
            attackers=few if config.size == "full" else linear,
        ),
        discriminator=_opponent_accuracy(case, system.model, corpus.test),
    )  # fmt: skip


def choose_attackers(run_size: str, text_count: int) -> list[Attacker]:
    """Return the attackers that predict private attributes, for one size of the experiment.

    An attacker is a classifier applied to transformed vectors. If `run_size` is "full", the list
    contains all usual attackers. Otherwise, the list contains only one type of classifier ("quick")
    or two types ("usual"), each with two transforms. `text_count` is the number of training texts.
    """
    attackers = [
        attacker
        for attacker in usual(text_count)
        if run_size == "full" or attacker.behind in _USUAL_TRANSFORMS
    ]
    kinds = list(dict.fromkeys(attacker.classifier for attacker in attackers))
    most = {"quick": 1, "usual": 2, "full": len(kinds)}[run_size]
    return [attacker for attacker in attackers if attacker.classifier in kinds[:most]]


def score_naive_attacks(system: Fitted, made: Material, seed: int, size: str) -> tuple[Naive, ...]:
    """Train simple neural networks that predict private attributes, and test them.

    The vectors are the released vectors of `system`. Each network starts from a different random
    initialisation. Each network is tested after several numbers of epochs, and each test gives one
    result.
    """
    networks = require_module("sklearn.neural_network", "dpnr-table")
    corpus, names = made.corpus, made.facts.names
    rows = encode_with_call_seed(system.encode, corpus.train.texts, seed, 1)
    test = encode_with_call_seed(system.encode, corpus.test.texts, seed, 2)
    truth = np.stack([corpus.train.attribute(name) for name in names], axis=1)
    labels = truth[:, 0] if len(names) == 1 else truth
    models, classes = [], np.arange(max(2, len(names)))
    for start in range(_NAIVE_STARTS[size]):
        batch, state = min(64, len(rows)), (seed + start) % 2**32
        network = networks.MLPClassifier((256,), batch_size=batch, random_state=state)
        for epoch in range(1, max(BUDGETS[size]) + 1):
            network.partial_fit(rows, labels, classes=classes)
            if epoch in BUDGETS[size]:
                answers = np.asarray(network.predict(test), np.int64).reshape(len(test), -1)
                parts = (slice(None), made.unseen)
                figures = (micro_f1(made.truth[part], answers[part]) for part in parts)
                models.append(Naive(start, epoch, *figures))
    return tuple(models)


def _exact_pair_loss(case: Case, system: Fitted, pair: Pair | None) -> float | None:
    if pair is None:
        return None
    return math.inf if case.claim is None else float(system.model.as_mechanism().loss(pair))


def _opponent_accuracy(case: Case, model: Any, test: Any) -> float | None:
    if case.system not in BASELINES:
        return None
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return float(np.mean(list(model.discriminator_accuracy(test).values())))


_SHARED_NOISE_DRAWS: Final = 2048
"""Number of outputs in each main call of `inspect`, which looks for equal noise on several
entries."""


@dataclass(frozen=True, slots=True, repr=False)
class Verdict(Shown):
    """Result of an audit of one claimed epsilon, and of an inspection of the noise.

    Args:
        claim: settings of the audited system, such as the type of noise and the claimed epsilon.
        seed: seed of the audit.
        counts: number of outputs in the event, for each text of the audited pair. The event is a
            set of outputs that the audit chose.
        true: true epsilon of the noise, valid for any two texts, or inf if no finite epsilon holds.
        exact: exact privacy loss of the audited pair of texts, computed from the distribution of
            the noise.
        certified: certified lower bound on epsilon.
        refuted: True if the claim was refuted. None if the audit could not test the claim.
        flags: names of faults that `inspect` found in the noise, such as equal noise on all
            entries.
        partial: True if Ctrl-C ended the audit early.
    """

    claim: Case
    seed: int
    counts: Counts
    true: float
    exact: float
    certified: float
    refuted: bool | None
    flags: tuple[str, ...]
    partial: bool


def audit_claim(case: Case, made: Material, seed: int, config: Any) -> Verdict:
    """Audit the claimed epsilon of a system on one pair of texts, and inspect the noise.

    The audited pair consists of the two training texts whose vectors have the largest distance.

    Args:
        case: settings of the system, such as the type of noise and the claimed epsilon.
        made: the texts, the encoders and the pairs of texts.
        seed: seed of the audit and of the inspection.
        config: options of the experiment.
    """
    from ...text.systems import DPNR

    noise, scale = NOISES[case.system]
    assert case.claim is not None
    extractor, pair = made.extractors[case.encoder], made.pairs[case.encoder]
    model = DPNR(epsilon=case.claim, extractor=extractor, noise=noise, scale=scale)
    # The classifier has no effect here, because the released outputs are the vectors before it.
    model.fit(made.corpus, epochs=1, pair=False, rng=seed, device=config.device, progress=False)
    assert model.private is not None
    clean = model.clean([pair.x])[0]
    flags = inspect(model.private.noise, clean, draws=_SHARED_NOISE_DRAWS, rng=seed).flagged
    cell = audit_cell(config, case.system, model, pair, claim=case.claim, rng=seed)
    assert cell.declared_loss is not None
    losses = model.true_epsilon, float(cell.declared_loss), cell.epsilon_lower
    counted = cell.seed, cell.counts
    return Verdict(case, *counted, *losses, cell.refuted, flags, cell.partial)
