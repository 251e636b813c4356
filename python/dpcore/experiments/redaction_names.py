"""Attack that infers which person a text is about, after the names are masked.

Some of the news texts name one or more of five people. Names from a list are masked in the texts.
The attacker is a classifier that is trained on masked texts. The attacker infers whether a text
names a certain person. One attacker sees the words that are not masked. Another attacker sees only
the number of masks and the number of words. A classifier of the topic shows how much of the useful
information the masked texts keep.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import chain, product
from typing import Any, Final, Literal

import numpy as np

from ..packages import require_module
from ..records import Floats
from ..report.figures import BLUE, GREEN, GREY, INK, RED, WHITE, restyle_figure
from ..report.rows import align_rows
from ..report.shown import Shown
from ..text import Corpus, TfidfSVD, redaction, split
from ..text.inference import Attacker, infer
from .base import setting
from .corpora import ENTITIES, TextOptions, read_corpus, read_texts
from .drawing import TEXT, Axes, Figure, add_legend, empty_figure, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run

NAME = "redaction-names"

POLICIES: Final = ("none", "first names", "first names and people")
"""Masking policies: "none" masks no word, "first names" masks a list of first names, and the third
policy also masks the names of the people."""

READS: Final = ("words", "masks")
"""Inputs of an attacker: "words" are the remaining words, and "masks" are the number of masks and
the number of words."""

TOPIC: Final = "topic"
"""Name of the target "topic of a text". All other targets are names of people."""

_QUICK_TEXTS: Final = 600
_QUICK_PEOPLE: Final = 2
_GENERATED_ROWS: Final = {False: 5_000, True: 1_000}
_SPLIT_SHARES: Final = (0.8, 0.1, 0.1)

_MAX_WORD_COLUMNS: Final = 2000
"""Number of words that have a separate feature column. The most frequent words are chosen."""

_VECTOR_DIM: Final = 100
"""Largest dimension of the TF-IDF/SVD vector of a text."""

Interval = tuple[float, float, float]
"""A value, and the two ends of the confidence interval of this value."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment that infers which people are named in texts with masked names.

    Args:
        trials: largest number of texts, at least 100.
        seed: int in [0, 2**63). The splits and the attackers get separate seeds derived from this
            seed.
        seeds: number of splits into training, validation and test texts. The data file states the
            first split. All later splits are random. The default is 3. If `full` is True, the
            default is 10. If `quick` is True, the default is 1.
        data: folder with the texts. The folder must contain the files dpnr_ag/ag_data.txt and
            words/names.zip. By default, dpcore generates texts.
        full: True for 10 splits.
        quick: True for a short run with one split of at most 600 texts. The run infers only two
            people.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(full=True).seeds, Config(quick=True).seeds
        (3, 10, 1)
    """

    seeds: int = setting(3, quick=1, full=10)


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Result of one classifier that infers a named person, or the topic, from masked texts.

    Args:
        number: index of the split into training and test texts.
        policy: rule by which words are masked, one of `POLICIES`, such as "first names".
        reads: what the classifier sees, one of `READS`. If "words", the classifier sees the words
            without a mask. If "masks", the classifier sees only the number of masks and the number
            of words.
        target: name of the inferred person, or `TOPIC` if the classifier infers the topic.
        attacker: name of the classifier that is best on the validation texts.
        value: three numbers: the result on the test texts, and the two ends of its 95 % interval.
            For a person, the result is the F1 of the class "the text names this person". For the
            topic, the result is the accuracy.
        floor: F1 or accuracy of the best classifier that predicts the same class for every text.
        beats_floor: True if the result is significantly above `floor`. This means that the 95 %
            interval of the difference between the result and `floor` lies above 0.
        tested: number of test texts.
    """

    number: int
    policy: str
    reads: str
    target: str
    attacker: str
    value: Interval
    floor: float
    beats_floor: bool
    tested: int


@dataclass(frozen=True, slots=True, repr=False)
class Masking(Shown):
    """Shares of words and of texts that are changed by one rule for masking names.

    Args:
        policy: rule by which words are masked, one of `POLICIES`, such as "first names".
        words: share of the words that are masked.
        texts: share of the texts that contain at least one mask.
        named: one share for each person: among the texts that name the person before masking, the
            share in which the name still occurs after masking. The search for the name ignores
            upper and lower case. The search also finds the name inside a longer word.
    """

    policy: str
    words: float
    texts: float
    named: tuple[float, ...]


_Vectors = tuple[Corpus, Floats, int]
_ReadVectors = Callable[[int, str], _Vectors]


@dataclass(frozen=True)
class _Material:
    """The texts, the people to infer, and the masked texts of each policy."""

    corpus: Corpus
    people: tuple[str, ...]
    redacted: dict[str, dict[str, str]]


@time_run("sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Infer the named people and the topic of texts, for every rule by which names are masked.

    Args:
        config: options of the experiment, such as the number of splits.
        threads: not used. All classifiers are trained on one thread. An invalid number raises an
            error.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, two `Cell` objects for each split, masking rule and target. The targets are the
        people and the topic.

    Raises:
        ModuleNotFoundError: if scikit-learn is not installed. The message of the error states how
            to install the package.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        KeyboardInterrupt: if the user presses Ctrl-C before the first classifier is tested.

    Source:
        Lyu, He and Li (2020), for the attack on named people.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     result = run(Config(quick=True, trials=600), progress=False)
        ...     assert result.mean("none", "words", "Alder") > 0.9
    """
    material = _read_and_mask_by_each_policy(config)
    people = material.people[: _QUICK_PEOPLE if config.quick else None]
    # Consecutive targets of one split and policy share its vectors.
    vectors = lru_cache(maxsize=1)(lambda *key: _split_and_vectorise(config, material, *key))
    jobs = list(product(range(config.seeds), POLICIES, (*people, TOPIC)))
    work = partial(_infer_target_from_words_and_counts, config, vectors)
    done, ended = run_jobs("masked names", jobs, work, progress)
    return Result(
        config, material.corpus.origin, len(material.corpus), material.people,
        statistics.fmean(text != text.lower() for text in material.corpus.texts),
        tuple(_measure_masked_shares(material, policy) for policy in POLICIES),
        tuple(chain(*done)), partial=ended,
    )  # fmt: skip


def _read_and_mask_by_each_policy(config: Config) -> _Material:
    """Read or generate the texts, and mask the names by every policy."""
    corpus = read_texts(config, "dpnr_ag", "repeats", _GENERATED_ROWS[config.quick])
    if config.data is None:
        people = tuple(corpus.attributes or ())
        # As in the real list, two of the five names are missing.
        names = people[:3]
    else:
        people, names = ENTITIES, tuple(dict.fromkeys(read_corpus(config.data, "names").texts))
    most = min(config.trials, _QUICK_TEXTS) if config.quick else config.trials
    order = np.random.default_rng(cell_seed(config.seed, "texts")).permutation(len(corpus))
    corpus = corpus[np.sort(order[:most])]
    redacted = {POLICIES[0]: dict(zip(corpus.texts, corpus.texts, strict=True))}
    for policy, masked in zip(POLICIES[1:], (names, (*names, *people)), strict=True):
        outputs = redaction.redact(corpus.texts, redaction.Gazetteer(masked))
        redacted[policy] = dict(zip(corpus.texts, outputs, strict=True))
    return _Material(corpus, people, redacted)


def _measure_masked_shares(material: _Material, policy: str) -> Masking:
    corpus, redacted = material.corpus, material.redacted[policy]
    masks, words = _count_masks_and_words([redacted[text] for text in corpus.texts]).T
    left = []
    for name in material.people:
        texts = corpus[corpus.attribute(name) == 1].texts
        left.append(statistics.fmean(name.lower() in redacted[text].lower() for text in texts))
    return Masking(policy, float(masks.sum() / words.sum()), float((masks > 0).mean()), tuple(left))


def _count_masks_and_words(texts: Sequence[str]) -> Floats:
    """Return the number of masks and the number of words of each text, shape `(texts, 2)`."""
    words = [redaction.split_words(text) for text in texts]
    return np.array(
        [[words_of_text.count(redaction.MASK), len(words_of_text)] for words_of_text in words],
        np.float64,
    )


def _split_and_vectorise(config: Config, material: _Material, number: int, policy: str) -> _Vectors:
    """Return the texts with their split, the feature vectors of the masked texts, and a size.

    The feature vector of a text contains the number of masks, the number of words, a TF-IDF/SVD
    vector, and one entry for each frequent word. The size is the dimension of the TF-IDF/SVD
    vector.
    """
    corpus, outputs = material.corpus, material.redacted[policy]
    if number:
        corpus = split(corpus, _SPLIT_SHARES, rng=cell_seed(config.seed, f"split {number}"))
    train = [outputs[text] for text in corpus.train.texts]
    extraction = require_module("sklearn.feature_extraction.text", NAME)
    words = extraction.TfidfVectorizer(max_features=_MAX_WORD_COLUMNS, sublinear_tf=True).fit(train)
    vectors = TfidfSVD(min(_VECTOR_DIM, len(words.vocabulary_) // 2)).fit(train)
    redacted = [outputs[text] for text in corpus.texts]
    columns = words.transform(redacted).toarray()
    rows = np.hstack([_count_masks_and_words(redacted), vectors.encode(redacted), columns])
    return corpus, rows, vectors.dim


def _make_logistic_and_tree_attackers(reads: str, dim: int, quick: bool) -> list[Attacker]:
    """Return a logistic regression and boosted trees. Each uses some of the feature columns."""
    linear = require_module("sklearn.linear_model", NAME).LogisticRegression(C=10.0, max_iter=300)
    ensemble = require_module("sklearn.ensemble", NAME)
    trees = ensemble.HistGradientBoostingClassifier(max_iter=8 if quick else 60)
    counts, vectors = slice(2), slice(2 + dim)
    parts = (counts, counts) if reads == "masks" else (slice(2 + dim, None), vectors)
    return [
        Attacker(linear, lambda rows: rows[:, parts[0]], "logistic regression"),
        Attacker(trees, lambda rows: rows[:, parts[1]], "boosted trees"),
    ]


def _infer_target_from_words_and_counts(
    config: Config, vectors: _ReadVectors, number: int, policy: str, target: str
) -> list[Cell]:
    """Infer one target twice: from the remaining words, and from the counts of masks and words."""
    corpus, rows, dim = vectors(number, policy)
    # The labels are left out, because they would define an additional floor.
    columns = {TOPIC: corpus.labels} if target == TOPIC else {target: corpus.attribute(target)}
    unlabelled = Corpus(corpus.texts, attributes=columns, split=corpus.split)
    measure: Literal["accuracy", "f1"] = "accuracy" if target == TOPIC else "f1"
    cells = []
    for reads in READS:
        # One thread gives the same bits again, and more threads are not faster for so few rows.
        with require_module("threadpoolctl", NAME).threadpool_limits(1):
            inference = infer(
                None, unlabelled, target, vectors=rows, measure=measure, progress=False,
                attackers=_make_logistic_and_tree_attackers(reads, dim, config.quick),
                rng=cell_seed(config.seed, f"{number}/{policy}/{target}"),
            )  # fmt: skip
        measured, floor = getattr(inference, measure), getattr(inference.floors[0], measure)
        value = measured.value, measured.low, measured.high
        last = inference.above_floor, inference.sizes[2]
        cells.append(Cell(number, policy, reads, target, inference.attacker, value, floor, *last))
    return cells


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the attacks on masked texts, for every rule by which names are masked.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        texts: number of texts.
        people: names of the people in the texts.
        cased: share of the texts that contain a capital letter. In a text without capital letters,
            the search finds no names.
        maskings: one `Masking` for each masking rule, with the shares of masked words and texts.
        cells: two results (`Cell`) for each split, masking rule and target. One result is for a
            classifier that sees words. The second result is for a classifier that sees only how
            many masks and how many words a text has.
    """

    corpus: str
    texts: int
    people: tuple[str, ...]
    cased: float
    maskings: tuple[Masking, ...]
    cells: tuple[Cell, ...]

    @property
    def targets(self) -> tuple[str, ...]:
        """Names of the people whom the attack inferred, and `TOPIC` for the topic of a text.

        `TOPIC` is missing if the user pressed Ctrl-C before the topic was inferred.
        """
        return tuple(dict.fromkeys(cell.target for cell in self.cells))

    def of(self, policy: str, reads: str, target: str) -> tuple[Cell, ...]:
        """Return the results of one attack on masked texts, one for each completed split.

        `policy` is the masking rule, one of `POLICIES`. `reads` states what the classifier sees,
        and is one of `READS`. `target` is the name of a person, or `TOPIC`.
        """
        key = (policy, reads, target)
        return tuple(cell for cell in self.cells if (cell.policy, cell.reads, cell.target) == key)

    def mean(self, policy: str, reads: str, target: str) -> float:
        """Return the mean result of one attack on masked texts, over the completed splits.

        For a person, the result is an F1. For the topic, the result is an accuracy. The mean is NaN
        if no split is completed. `policy` is the masking rule. `reads` is one of `READS`. `target`
        is the name of a person, or `TOPIC`.
        """
        values = [cell.value[0] for cell in self.of(policy, reads, target)]
        return statistics.fmean(values) if values else math.nan

    def table(self) -> str:
        """Return the shares of masked words, and the results of all attacks, as text."""
        masked = [["masked", "words", "texts", *(f"{name} left" for name in self.people)]]
        for masking in self.maskings[1:]:
            shares = (masking.words, masking.texts, *masking.named)
            masked.append([masking.policy, *(f"{100 * share:.1f} %" for share in shares)])
        rows = [["attacker reads", *self.targets]]
        for policy, reads, label, *_ in KINDS:
            cells = (self.of(policy, reads, target) for target in self.targets)
            rows.append([label, *map(_format_mean_and_interval, cells)])
        floors = (self.of(POLICIES[0], "words", target)[0].floor for target in self.targets)
        return self.join_parts(
            _format_names_head(self),
            align_rows(masked),
            align_rows([*rows, ["floor", *(f"{floor:.3f}        " for floor in floors)]]),
            "left: share of the texts on a person in which the name still occurs, in any case or "
            "word\nF1 of each person, accuracy of the topic; +- half of the 95 % interval; * = "
            "the 95 % interval of the gain over a\nconstant answer, on the same texts, is above 0; "
            "intervals and stars are those of the first split",
            "\n".join(describe_inferences(self)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        return self.make_record(
            corpus=self.corpus,
            texts=self.texts,
            people=list(self.people),
            findings=describe_inferences(self),
            maskings=self.maskings,
            cells=self.cells,
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the F1 for each person and the accuracy for the topic, with 95 % intervals.

        The picture also shows the result of the best classifier that predicts the same class for
        every text.
        """
        picture = empty_figure(3.9, ax)
        people, topic = picture.subplots(1, 2, width_ratios=(5, 1.3))
        for axes, is_topic in ((people, False), (topic, True)):
            _draw_inference_scores(
                axes, self, [target for target in self.targets if (target == TOPIC) == is_topic]
            )
        style_axes(people, y="F1 of the attack on each person")
        style_axes(topic, y="accuracy of the topic")
        made = "generated texts" if self.config.data is None else "AG news on five people"
        listed = ", ".join(list_masked(self, self.maskings[1]))
        picture.suptitle(
            f"Names masked in {self.texts:,} {made}: who is still inferred?\nthe list of first "
            f"names has {listed}; hollow: not above the floor; intervals of the first split",
            fontsize=TEXT,
        )
        add_legend(picture, people)
        return restyle_figure(picture)


KINDS: Final = (
    (POLICIES[0], "words", "nothing masked", INK, "o"),
    (POLICIES[1], "words", "first names masked", BLUE, "s"),
    (POLICIES[2], "words", "first names and people masked", GREEN, "D"),
    (POLICIES[1], "masks", "masks of first names alone", RED, "^"),
    (POLICIES[2], "masks", "masks of both alone", RED, "v"),
    (POLICIES[0], "masks", "number of words alone", GREY, "x"),
)
"""Combinations of masking policy and attacker's input that the picture shows, with label, colour
and marker."""

LISTED: Final = 0.5
"""A name counts as masked if, after masking, it occurs in less than this share of the texts about
the person."""


def _format_names_head(result: Result) -> str:
    config = result.config
    splits = f"mean of {config.seeds} splits" if config.seeds != 1 else "one split"
    return (
        f"Names masked in texts: {result.corpus}{config.origin_note}\n"
        f"{result.texts:,} texts, {splits}, {result.cells[0].tested:,} test texts that occur in no "
        f"other part; seed {config.seed}\n"
        f"names are masked where they are capitalised; {100 * result.cased:.0f} % of the texts "
        f"have capital letters"
    )


def _format_mean_and_interval(cells: tuple[Cell, ...]) -> str:
    if not cells:
        return "-"
    _, low, high = cells[0].value
    mean = statistics.fmean(cell.value[0] for cell in cells)
    mark = "*" if cells[0].beats_floor else " "
    return f"{mean:.3f} +-{(high - low) / 2:.3f}{mark}"


def describe_inferences(result: Result) -> list[str]:
    """Return sentences on the people and the topic that were inferred from masked texts."""
    sentences = []
    for policy, masking in zip(POLICIES[1:], result.maskings[1:], strict=True):
        hidden = [name for name in list_masked(result, masking) if result.of(policy, "words", name)]
        above = [name for name in hidden if result.of(policy, "words", name)[0].beats_floor]
        lines = ", ".join(
            f"{name} {result.mean(POLICIES[0], 'words', name):.2f} -> "
            f"{result.mean(policy, 'words', name):.2f}"
            for name in hidden
        )
        sentences.append(
            f"With {policy} masked, {len(above)} of {len(hidden)} people whose names are masked "
            f"are inferred from the other words (*):\n  {lines}"
        )
    pairs = zip([result.mean(policy, "words", TOPIC) for policy in POLICIES], POLICIES, strict=True)
    shown = ", ".join(f"{topic:.3f} ({policy})" for topic, policy in pairs)
    return [*sentences, f"Accuracy of the topic by what is masked: {shown}."]


def list_masked(result: Result, masking: Masking) -> list[str]:
    """Return the names of the people whom a masking rule hides.

    The rule hides a name if, after masking, the name occurs in less than half of the texts about
    this person.
    """
    pairs = zip(result.people, masking.named, strict=True)
    return [name for name, share in pairs if share < LISTED]


def _draw_inference_scores(axes: Axes, result: Result, targets: list[str]) -> None:
    for place, target in enumerate(targets):
        floor = result.of(POLICIES[0], "words", target)[0].floor
        style: Any = {"color": GREY, "linestyle": "--", "label": "" if place else "floor"}
        axes.hlines(floor, place - 0.42, place + 0.42, linewidth=0.9, **style)
        for number, (policy, reads, label, colour, mark) in enumerate(KINDS):
            cells = result.of(policy, reads, target)
            if not cells:
                continue
            x = place + 0.13 * (number - (len(KINDS) - 1) / 2)
            axes.vlines(x, *cells[0].value[1:], color=colour, linewidth=0.8)
            look: Any = {"color": colour, "marker": mark, "markersize": 4, "linestyle": "none"}
            look["markerfacecolor"] = colour if cells[0].beats_floor else WHITE
            mean = result.mean(policy, reads, target)
            axes.plot(x, mean, label="" if place else label, **look)
    axes.set_xticks(range(len(targets)), targets)
    axes.set_ylim(-0.03, 1.04)
