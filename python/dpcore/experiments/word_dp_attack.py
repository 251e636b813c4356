"""Attacks on texts whose words were replaced by word-level private mechanisms.

A word-level mechanism replaces each word of a text by a random word. Figure 4 of Gusain and Leith
states that an attack, which infers to which of two sets a text belongs, remains accurate down to
small values of epsilon. This experiment uses the same attack on every mechanism, and also shows:

- the largest privacy loss of two words;
- the share of words that the mechanism leaves unchanged;
- the share of rewritten texts that an attacker links to their originals.

These results show that the same epsilon has a different meaning for each mechanism.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..divergence.reliability import ESTIMATE
from ..errors import invalid
from ..packages import require_module
from ..records import Floats, Ints
from ..report.figures import BLUE, GREEN, GREY, INK, ORANGE, RED, WHITE, apply_style
from ..report.shown import Shown
from ..text import Corpus, words
from ..text.corpus import words_of
from ..text.inference import Attacker, infer
from ..text.words import Embedding
from ..text.words.mechanism import TableMechanism
from .base import Column, align_columns, check_trials, setting
from .corpora import MIN_SET_TEXTS, TextOptions, split_texts
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, make_canvas, tidy_axes, write_at
from .running import Tabled, cell_seed, estimate_renyi, mean_and_sd, run_jobs, time_run, write_mean
from .word2vec_leakage.leakage import train_word2vec

NAME = "word-dp-attack"

GRID: Final[dict[str, tuple[float, ...]]] = {
    "SanText": (1.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    "TEM": (1.0, 3.0, 5.0, 10.0, 15.0, 20.0, 30.0),
    "SanTextPlus": (1.0, 5.0, 15.0, 30.0),
    "CusText": (0.1, 1.0, 5.0),
    "MetricLaplace": (5.0, 10.0, 50.0, 100.0),
    "Vickrey": (5.0, 10.0, 50.0, 100.0),
}
"""Values of epsilon at which each mechanism is attacked."""

_QUICK_GRID: Final = {"SanText": (1.0, 10.0), "CusText": (0.1,), "MetricLaplace": (10.0,)}

LINKED_WORDS: Final = 100
"""Number of words of each text in the attack that links texts. For generated texts, which are
shorter, the number is ten."""

SHARES: Final = (0.4, 0.3, 0.3)
"""Shares of training, validation and test texts."""


_SPLIT_PERMUTATIONS: Final = 3
"""Number of permutations of the labels in each split."""

_INVERSE_PENALTY: Final = 10.0

_MIN_WORD_COUNT: Final = 4
"""Smallest number of occurrences of a word that gets a vector, in the texts on which the vectors
are trained."""

_WORD2VEC_EPOCHS: Final = 10
"""Number of epochs of the word vectors. With gensim's default of five epochs, vectors that are
trained on so few texts are nearly parallel."""

_FREQUENT_SHARE: Final = 0.1
"""Share of the vocabulary that SanTextPlus does not treat as sensitive: the words that are most
frequent in public texts."""

_COUNT_SMOOTHING: Final = 0.5
"""Number added to the count of every word before its frequency is estimated."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment: the texts, and the number of splits.

    Args:
        trials: largest number of texts in the sensitive set. The other set has the same number of
            texts.
        seed: int in [0, 2**63). The splits, draws and attackers get separate seeds derived from
            this seed.
        seeds: number of random splits of the texts. The table shows the mean and the standard
            deviation over the splits. The default is 3, or 1 if `quick` is True.
        data: folder with the texts, which must contain the file medical/abstracts.csv. By default,
            dpcore generates texts.
        full: True to add twelve attackers (the usual text classifiers), which take 15 to 25 seconds
            for each split.
        quick: True for a short run: one split, and four combinations of mechanism and epsilon.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(quick=True).seeds
        (3, 1)
    """

    trials: int = setting(10**4, check_trials, MIN_SET_TEXTS)
    seeds: int = setting(3, quick=1)

    @property
    def grid(self) -> dict[str, tuple[float, ...]]:
        """Values of epsilon at which each mechanism is attacked."""
        return _QUICK_GRID if self.quick else GRID


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Results of all attacks on one mechanism at one epsilon.

    Args:
        mechanism: name of the mechanism's class, or "none" for unchanged texts.
        epsilon: parameter epsilon of the mechanism, or 0 for "none".
        loss: largest privacy loss of any two input words, in nats. It is infinite if an output is
            possible for only one of two words.
        is_exact: True if `loss` is exact. False if `loss` is an upper bound, computed from the law
            of the noise.
        kept: share of the words that the mechanism left unchanged, in the first split.
        accuracy: accuracy of the attack on the set of a text, for each split. The attack is the
            better of two logistic regressions on the validation texts.
        interval: 95 % confidence interval of `accuracy` in the first split.
        majority: accuracy of the best constant prediction in the first split.
        boosted_trees: accuracy of scikit-learn's boosted trees, for each split. Their input is the
            mean word vector of a text.
        informed: accuracy, for each split, of an attacker who knows the original training texts and
            the table of output probabilities of each word. It is empty if the mechanism has no such
            table.
        usual: accuracy of the best of the twelve additional attackers, for each split. It is empty
            if `full` is False.
        divergences: estimated divergences KL and D_2 from the rewritten sensitive set to the other
            rewritten set, shape `(splits, 2)`. The estimates are not bounds.
        beliefs: statements on the reliability of the estimates of KL and D_2 in the first split.
        null: the same estimates for permuted labels, three permutations for each split, shape
            `(splits x 3, 2)`.
        linked: share of the rewritten texts that were linked to the right original, and the two
            ends of its confidence interval.
        linked_texts: number of rewritten texts in the attack that links texts.
        linked_words: number of words of each of these texts.
    """

    mechanism: str
    epsilon: float
    loss: float
    is_exact: bool
    kept: float
    accuracy: tuple[float, ...]
    interval: tuple[float, float]
    majority: float
    boosted_trees: tuple[float, ...]
    informed: tuple[float, ...]
    usual: tuple[float, ...]
    divergences: tuple[tuple[float, float], ...]
    beliefs: tuple[str, str]
    null: tuple[tuple[float, float], ...]
    linked: tuple[float, float, float]
    linked_texts: int
    linked_words: int

    def mean(self, name: str) -> float:
        """Return the mean over the splits of the field `name`, such as "accuracy"."""
        return statistics.fmean(getattr(self, name))


@dataclass(frozen=True)
class _Texts:
    """Texts of the two sets, word vectors, and the TF-IDF weights of words."""

    texts: tuple[str, ...]
    truth: Ints
    vectors: Embedding
    weights: Any
    covered: float


@time_run("gensim.models", "sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Attack the texts that every mechanism rewrites, at every epsilon.

    Args:
        config: options of the experiment.
        threads: not used, but an invalid number raises an error. The mechanisms use all cores, and
            the attackers use one core.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, which contains one `Cell` for each mechanism and epsilon.

    Raises:
        ModuleNotFoundError: if gensim or scikit-learn is not installed. The message of the error
            states how to install the package.
        FileNotFoundError: if the folder `data` does not contain a file that the experiment needs.
        KeyboardInterrupt: if the user presses Ctrl-C before the first mechanism is attacked.

    Source:
        Gusain and Leith (2025), figure 4. The docstring of each mechanism names the source of the
        mechanism.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gensim") and find_spec("sklearn"):
        ...     found = run(Config(quick=True, trials=200), progress=False)
        ...     assert found["SanText", 10.0].kept > found["SanText", 1.0].kept
    """
    corpus, prepared = _prepare_sets(config)
    jobs = [("none", 0.0), *((name, e) for name, grid in config.grid.items() for e in grid)]
    cells, ended = run_jobs("word attack", jobs, partial(_make_cell, config, prepared), progress)
    vectors = f"{len(prepared.vectors):,} words, dim={prepared.vectors.dim}"
    size = len(prepared.texts) // 2
    return Result(config, corpus, vectors, prepared.covered, size, cells, partial=ended)


def _prepare_sets(config: Config) -> tuple[str, _Texts]:
    """Return the source of the texts, and the two sets with word vectors.

    The word vectors are trained on texts that belong to neither set.
    """
    origin, *sets, _ = split_texts(config, 2_000 if config.quick else 6_000)
    rng = np.random.default_rng(cell_seed(config.seed, "sets"))
    chosen, others = (
        [texts_of_set[i] for i in rng.permutation(len(texts_of_set))]
        for texts_of_set in map(list, sets)
    )
    size = min(len(chosen), len(others) // 3, config.trials)
    if size < 50:
        raise invalid("data", "a corpus of at least 50 texts per side", size)
    public = others[size:] + chosen[size:]
    vectors = train_word2vec(
        public, seed=1, min_count=_MIN_WORD_COUNT, epochs=_WORD2VEC_EPOCHS, progress=False
    )
    lengths = np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    vectors = Embedding(vectors.words, vectors.vectors / lengths)
    texts = [" ".join(words_of(text)) for text in (*chosen[:size], *others[:size])]
    has_vector = [word in vectors for text in texts for word in text.split()]
    weights = require_module("sklearn.feature_extraction.text", NAME).TfidfVectorizer(
        vocabulary=vectors.words,
        sublinear_tf=True,
        tokenizer=str.split,
        token_pattern=None,
        lowercase=False,
    )
    weights.fit([" ".join(words_of(text)) for text in public])
    truth = np.repeat([1, 0], size)
    return origin, _Texts(tuple(texts), truth, vectors, weights, statistics.fmean(has_vector))


def _make_cell(config: Config, prepared: _Texts, name: str, epsilon: float) -> Cell:
    """Attack the texts that one mechanism rewrites, in all splits."""
    mechanism = _make_mechanism(name, prepared.vectors, epsilon)
    # One call is used, because every call prepares the rows of a large table again.
    seed = cell_seed(config.seed, f"rewrite {name} {epsilon:g}")
    rewritten = _rewrite_texts(mechanism, config.seeds * [*prepared.texts], seed)
    size = len(prepared.texts)
    seeds = [cell_seed(config.seed, f"split {number}") for number in range(config.seeds)]
    deals = [_deal_parts(size // 2, seed) for seed in seeds]
    ratios = _find_log_ratios(prepared, mechanism, deals)
    splits = [
        _attack_split(config, prepared, rewritten[at * size : (at + 1) * size], deal, ratio, seed)
        for at, (deal, ratio, seed) in enumerate(zip(deals, ratios, seeds, strict=True))
    ]

    def collect(key: str) -> tuple[Any, ...]:
        return tuple(split[key] for split in splits if key in split)

    linkage, first = _link_texts(config, prepared, mechanism), splits[0]
    return Cell(
        name, epsilon, *_worst_loss(mechanism), _find_kept_share(prepared, rewritten[:size]),
        collect("accuracy"), first["interval"], first["majority"], collect("boosted_trees"),
        collect("informed"), collect("usual"), collect("divergences"), first["beliefs"],
        tuple(chain(*collect("null"))), (linkage.share, *linkage.interval), linkage.texts,
        linkage.words,
    )  # fmt: skip


def _make_mechanism(name: str, vectors: Embedding, epsilon: float) -> Any:
    if name != "SanTextPlus":
        return None if name == "none" else getattr(words, name)(vectors, epsilon)
    # Words are sorted by their frequency in other texts, which are public.
    sensitive = vectors.words[round(_FREQUENT_SHARE * len(vectors)) :]
    return words.SanTextPlus(vectors, epsilon, tuple(sensitive))


def _worst_loss(mechanism: Any) -> tuple[float, bool]:
    """Return the largest privacy loss of any two words, and True if this value is exact."""
    # SanTextPlus: a word that is kept and not sensitive is revealed.
    if mechanism is None or isinstance(mechanism, words.SanTextPlus):
        return math.inf, True
    if isinstance(mechanism, (words.SanText, words.TEM)):
        return mechanism.worst_loss(), True
    size = len(mechanism.vectors)
    if isinstance(mechanism, words.CusText):
        # Lists of outputs are shorter than the vocabulary, so some words have different lists.
        return (math.inf if mechanism.k < size else mechanism.epsilon), True
    blocks = (mechanism.distance_rows(at, min(at + 256, size)) for at in range(0, size, 256))
    return mechanism.epsilon * max(float(block.max()) for block in blocks), False


def _rewrite_texts(mechanism: Any, texts: list[str], seed: int) -> list[str]:
    return texts if mechanism is None else mechanism.rewrite(texts, unknown="drop", rng=seed)


def _link_texts(config: Config, prepared: _Texts, mechanism: Any) -> words.Linkage:
    """Link rewritten texts, which all have the same number of words, to their originals."""
    length = LINKED_WORDS if config.data is not None else 10
    known_words = ([w for w in text.split() if w in prepared.vectors] for text in prepared.texts)
    originals = [
        " ".join(text_words[:length]) for text_words in known_words if len(text_words) >= length
    ]
    outputs = _rewrite_texts(mechanism, originals, cell_seed(config.seed, "link"))
    # Unchanged texts are linked by the table of a mechanism that changes almost no word.
    ranked = words.SanText(prepared.vectors, 100.0) if mechanism is None else mechanism
    return words.link(ranked, originals, outputs)


def _deal_parts(size: int, seed: int) -> npt.NDArray[np.str_]:
    """Assign each text of two equally large sets at random to "train", "valid" or "test"."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(np.round(np.array(SHARES[:2]) * size).astype(int))
    parts = np.repeat(["train", "valid", "test"], np.diff([0, *ends, size]))
    return np.concatenate([parts[rng.permutation(size)] for _ in range(2)])


def _attack_split(
    config: Config, prepared: _Texts, rewritten: list[str], split: npt.NDArray[np.str_],
    ratio: Floats | None, seed: int,
) -> dict[str, Any]:  # fmt: skip
    """Attack one split, and estimate the divergence between the two rewritten sets."""
    corpus = Corpus(prepared.texts, attributes={"sensitive": prepared.truth}, split=split.tolist())
    counted = prepared.weights.transform(rewritten)
    words = (counted > 0).astype(float)
    numbers = np.maximum(1.0, words.sum(axis=1))
    averages = np.asarray(words @ prepared.vectors.vectors / numbers, np.float64)
    both = np.hstack([counted.toarray(), averages])
    attackers = _make_set_attackers(counted.shape[1])
    asked: dict[str, Any] = {"rng": seed, "progress": False}
    inference = infer(None, corpus, "sensitive", vectors=both, attackers=attackers, **asked)
    parts = [split == part for part in ("train", "valid", "test")]
    answers = [prepared.truth[part] for part in parts]
    means = [averages[part] for part in parts]
    ensemble = require_module("sklearn.ensemble", NAME)
    trees = ensemble.HistGradientBoostingClassifier(max_iter=60, random_state=seed % 2**32)
    # For so few rows, one thread is faster than several.
    with require_module("threadpoolctl", NAME).threadpool_limits(1):
        trees.fit(np.vstack(means[:2]), np.concatenate(answers[:2]))
    result: dict[str, Any] = {
        "accuracy": inference.accuracy.value,
        "interval": (inference.accuracy.low, inference.accuracy.high),
        "majority": inference.floors[0].accuracy,
        "boosted_trees": float(trees.score(means[2], answers[2])),
    }
    if ratio is not None:
        rows = prepared.vectors.rows
        sums = [[sum(ratio[rows[w]] for w in text.split() if w in rows)] for text in rewritten]
        asked |= {"vectors": np.array(sums, np.float64), "attackers": _make_set_attackers(0)[1]}
        result["informed"] = infer(None, corpus, "sensitive", **asked).accuracy.value
    if config.full:
        usual = infer(None, corpus, "sensitive", vectors=averages, rng=seed, progress=False)
        result["usual"] = usual.accuracy.value
    return result | _estimate_with_null(np.vstack(means), np.concatenate(answers), seed)


def _find_log_ratios(
    prepared: _Texts, mechanism: Any, splits: Sequence[npt.NDArray[np.str_]]
) -> Sequence[Floats | None]:
    """Return, for each split and output word, the log ratio of its probability in the two sets.

    The attacker knows the table of output probabilities of each word. The attacker also knows how
    often each word occurs in the original training texts of each set. The ratio is None if the
    mechanism has no table.
    """
    if not (mechanism is None or isinstance(mechanism, TableMechanism)):
        return [None] * len(splits)
    rows, size = prepared.vectors.rows, len(prepared.vectors)
    laws = np.full((len(splits), 2, size), _COUNT_SMOOTHING)
    for text, side, parts in zip(prepared.texts, prepared.truth, np.transpose(splits), strict=True):
        numbers = [rows[word] for word in text.split() if word in rows]
        laws[parts == "train", side] += np.bincount(numbers, minlength=size)
    laws /= laws.sum(axis=2, keepdims=True)
    if mechanism is not None:
        blocks = [(at, min(at + 512, size)) for at in range(0, size, 512)]
        pushed = [laws[:, :, a:b] @ np.exp(mechanism.log_rows(a, b)) for a, b in blocks]
        laws = np.sum(pushed, axis=0)
    return list(np.log(laws[:, 1]) - np.log(laws[:, 0]))


def _find_kept_share(prepared: _Texts, rewritten: Sequence[str]) -> float:
    """Return the share of the words with a vector that the mechanism left unchanged."""
    vector_rows, same, total = prepared.vectors.rows, 0, 0
    for text, other in zip(prepared.texts, rewritten, strict=True):
        # Unchanged texts still contain their unknown words.
        words, other_words = (
            [w for w in each.split() if w in vector_rows] for each in (text, other)
        )
        same += sum(map(str.__eq__, words, other_words))
        total += len(words)
    return same / max(1, total)


def _make_set_attackers(width: int) -> list[Attacker]:
    """Return two logistic regressions: on the TF-IDF weights, and on the mean word vectors."""
    linear = require_module("sklearn.linear_model", NAME)
    scaling = require_module("sklearn.preprocessing", NAME)
    pipeline = require_module("sklearn.pipeline", NAME)
    model = linear.LogisticRegression(C=_INVERSE_PENALTY, max_iter=300)
    standard = pipeline.make_pipeline(scaling.StandardScaler(), linear.LogisticRegression())
    return [
        Attacker(model, lambda rows: rows[:, :width], "logistic regression on words"),
        Attacker(standard, lambda rows: rows[:, width:], "logistic regression on mean vectors"),
    ]


def _estimate_with_null(rows: Floats, truth: Ints, seed: int) -> dict[str, Any]:
    """Estimate KL and D_2 from the sensitive set to the other set.

    The same divergences are also estimated for permuted labels.
    """
    rng = np.random.default_rng([seed, 1])

    def divergences(labels: Ints, **options: Any) -> Any:
        options |= {"alphas": [1.0, 2.0], "k": min(20, len(truth) // 8), "rng": seed}
        return estimate_renyi(rows[labels == 1], rows[labels == 0], method="score", **options)

    estimates = divergences(truth)
    orders = [rng.permutation(truth) for _ in range(_SPLIT_PERMUTATIONS)]
    null = [divergences(order, checks=False, error=None).value[0] for order in orders]
    return {
        "divergences": tuple(map(float, estimates.value[0])),
        "beliefs": tuple(map(str, estimates.belief[0])),
        "null": [tuple(map(float, row)) for row in null],
    }


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the attacks on all mechanisms.

    Args:
        config: options of the run.
        corpus: description of the source of the texts.
        vectors: number of words with vectors, and the dimension of the vectors, as text.
        covered: share of the words in the texts that have a vector.
        texts: number of texts of each set.
        cells: one `Cell` for each mechanism and epsilon.
    """

    corpus: str
    vectors: str
    covered: float
    texts: int
    cells: tuple[Cell, ...]

    def __getitem__(self, key: tuple[str, float]) -> Cell:
        """Return the results for a mechanism and an epsilon, such as `result["SanText", 1.0]`.

        Raises:
            KeyError: if the result does not contain this mechanism and epsilon.
        """
        return {(cell.mechanism, cell.epsilon): cell for cell in self.cells}[key]

    def table(self) -> str:
        """Return the results as a text table, with the cases in which the source's claim holds."""
        columns = [column for column in _COLUMNS if column.head != "usual" or self.config.full]
        return self.join_parts(
            _write_head(self),
            align_columns(columns, self.cells),
            _write_legend(self),
            "\n".join(describe_claim(self)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of plain data, which `json.dumps` writes as strict JSON."""
        return self.make_record(
            corpus=self.corpus,
            vectors=self.vectors,
            covered=self.covered,
            texts=self.texts,
            claim=describe_claim(self),
            cells=self.cells,
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw accuracy, linked texts, privacy loss and unchanged words against epsilon."""
        picture = make_canvas(4.8, ax)
        (attack, informed, linkage), (loss, kept, divergence) = picture.subplots(2, 3, sharex=True)
        for name in GRID:
            cells = [cell for cell in self.cells if cell.mechanism == name]
            for cell in cells:
                trees = cell.mean("boosted_trees")
                attack.plot(cell.epsilon, trees, **_mechanism_style(name, is_full=False))
            _draw_mechanism_line(attack, cells, lambda cell: cell.accuracy)
            informed_cells = [cell for cell in cells if cell.informed]
            _draw_mechanism_line(informed, informed_cells, lambda cell: cell.informed)
            _draw_mechanism_line(linkage, cells, lambda cell: cell.linked[:1])
            _draw_mechanism_line(loss, cells, lambda cell: (cell.loss,), attrgetter("is_exact"))
            _draw_mechanism_line(kept, cells, lambda cell: (cell.kept,))
            _draw_mechanism_line(
                divergence,
                cells,
                lambda cell: [orders[1] for orders in cell.divergences],
                lambda cell: cell.beliefs[1] == ESTIMATE,
            )
        unchanged = self.cells[0]
        for axes, figure in ((attack, "accuracy"), (informed, "informed")):
            levels = {"unchanged": unchanged.mean(figure), "majority": unchanged.majority}
            for caption, y in levels.items():
                axes.axhline(y, color=GREY, linewidth=0.8, linestyle="--", zorder=0)
                write_at(axes, caption, (0.0, y), (3, 2), xycoords=("axes fraction", "data"))
        _label_axes(attack, "accuracy of the attack", (0.4, 1.0))
        _label_axes(informed, "accuracy, table known", (0.4, 1.0))
        _label_axes(linkage, f"linked texts of {unchanged.linked_words} words", (-0.03, 1.05))
        _label_axes(loss, "largest loss of two words (nats)", None)
        loss.set_yscale("log")
        infinite = [c.mechanism for c in self.cells[1:] if math.isinf(c.loss)]
        for row, name in enumerate(dict.fromkeys(infinite)):
            style: Any = {"transform": loss.transAxes, "va": "top", "fontsize": SMALL}
            text, colour = f"{name}: infinite", _MECHANISM_COLOURS[name]
            loss.text(0.02, 0.98 - 0.09 * row, text, color=colour, **style)
        # Space for these lines above the curves.
        loss.set_ylim(None, loss.get_ylim()[1] * (20.0 if infinite else 1.0))
        _label_axes(kept, "share of words that stay", (-0.03, 1.05))
        _label_axes(divergence, "D_2 of the two sets (nats)", None)
        made = "made-up texts" if self.config.data is None else "medical abstracts"
        title = f"Words replaced in {made}: epsilon of one mechanism says nothing about another\n"
        title += "hollow: boosted trees, bounds by the noise, D_2 not believed; "
        picture.suptitle(title + _summarise_claim(self), fontsize=TEXT)
        add_legend(picture, attack, 6)
        return apply_style(picture)


_MECHANISM_COLOURS: Final = dict(zip(GRID, (BLUE, GREEN, ORANGE, RED, INK, GREY), strict=True))
_MECHANISM_MARKS: Final = dict(zip(_MECHANISM_COLOURS, "osPD^v", strict=True))


def _write_head(result: Result) -> str:
    config, first = result.config, result.cells[0]
    made = " (made-up texts: give --data for real ones)" if config.data is None else ""
    splits = f"mean (sd) of {config.seeds} splits" if config.seeds != 1 else "one split"
    widths = [cell.interval[1] - cell.interval[0] for cell in result.cells]
    low, high = min(widths), max(widths)
    return (
        f"Attack on texts of which words are replaced: {result.corpus}{made}\n"
        f"{result.texts:,} texts per side; vectors of {result.vectors}, learnt on other texts, for "
        f"{100 * result.covered:.0f} % of the words (others are dropped)\n"
        f"{splits} of 40/30/30 % to fit, choose and test, seed {config.seed}; floor "
        f"{first.majority:.2f}, intervals of the first split +- {low / 2:.2f} to {high / 2:.2f}"
    )


def _write_legend(result: Result) -> str:
    first = result.cells[0]
    return (
        "worst loss: nats for any two words, exact; inf where two words have unlike lists of "
        "outputs; (bound) by the noise alone\n"
        "attack: logistic regression on words or on mean vectors, chosen on validation; trees: "
        "scikit-learn's boosted trees on mean vectors\n"
        "KL, D_2: estimates between the two sets of mean vectors, which bound nothing and say "
        "nothing about one text; ? = not resolved or saturated\n"
        f"linked: share of {first.linked_texts:,} texts of {first.linked_words} words that the "
        "likeliest (or nearest) original is right for, 95 % interval\n"
        "informed: naive Bayes by an attacker who has the originals of train and the table of the "
        "mechanism, where there is one\n"
        "SanTextPlus: all but the most frequent tenth of the words are sensitive; frequent words "
        "are kept with probability .7"
    )


def describe_claim(result: Result) -> list[str]:
    """Return sentences that state for which mechanisms the attack is accurate at low epsilon."""
    sentences = [
        "Does the attack stay accurate at low epsilon (Gusain and Leith, figure 4)? yes: the "
        "better of attack and trees\nexceeds the floor by more than the whole width of its interval"
    ]
    for name in result.config.grid:
        cells = [cell for cell in result.cells if cell.mechanism == name]
        if not cells:
            continue
        lowest = cells[0]
        best = max(lowest.mean("accuracy"), lowest.mean("boosted_trees"))
        error = (lowest.interval[1] - lowest.interval[0]) / 2
        words = "yes" if best > lowest.majority + 2 * error else "not shown"
        linked = next((cell.epsilon for cell in cells if cell.linked[1] > 0.5), None)
        half = "; more than half of the texts are linked from epsilon"
        more = "" if linked is None else f"{half} {linked:g} on"
        table = f"with the table {lowest.mean('informed'):.2f}, " if lowest.informed else ""
        sentences.append(
            f"  {name}: {words} at epsilon {lowest.epsilon:g} (attack {best:.2f}, {table}worst "
            f"loss {lowest.loss:.3g} nats){more}"
        )
    return sentences


def _write_divergence(cell: Cell, order: int) -> str:
    mean = statistics.fmean(orders[order] for orders in cell.divergences)
    return f"{mean:.2f}{'' if cell.beliefs[order] == ESTIMATE else '?'}"


_COLUMNS: Final = (
    Column("mechanism", "mechanism", left=True),
    Column("epsilon", "epsilon", lambda epsilon: f"{epsilon:g}" if epsilon else ""),
    Column("worst loss", lambda row: f"{row.loss:.4g}{'' if row.is_exact else ' (bound)'}"),
    Column("kept", "kept", ".3f"),
    Column("attack", "accuracy", write_mean),
    Column("trees", "boosted_trees", write_mean),
    Column("informed", "informed", lambda values: write_mean(values) if values else "-"),
    Column("usual", "usual", write_mean),
    Column("KL", lambda cell: _write_divergence(cell, 0)),
    Column("D_2", lambda cell: _write_divergence(cell, 1)),
    Column("null D_2", lambda cell: statistics.fmean(orders[1] for orders in cell.null), ".2f"),
    Column("linked", "linked", lambda share: "{:.2f} [{:.2f}, {:.2f}]".format(*share)),
)


def _mechanism_style(name: str, *, is_full: bool) -> dict[str, Any]:
    colour, width = _MECHANISM_COLOURS[name], "elinewidth" if is_full else "markeredgewidth"
    return {"color": colour, "marker": _MECHANISM_MARKS[name], "markersize": 3.5, "linewidth": 1.1,
            "markerfacecolor": colour if is_full else WHITE, width: 0.7,
            "zorder": 2 if is_full else 4}  # fmt: skip


def _draw_mechanism_line(
    axes: Axes,
    cells: Sequence[Cell],
    values: Callable[[Cell], Sequence[float]],
    is_full: Callable[[Cell], bool] = lambda cell: True,
) -> None:
    """Draw mean and standard deviation of the finite values of one mechanism."""
    points = [(cell, *mean_and_sd(values(cell))) for cell in cells]
    points = [point for point in points if math.isfinite(point[1])]
    if not points:
        return
    name, (chosen, means, errors) = cells[0].mechanism, zip(*points, strict=True)
    epsilons = [cell.epsilon for cell in chosen]
    axes.errorbar(epsilons, means, errors, label=name, **_mechanism_style(name, is_full=True))
    for cell, mean, _ in points:
        if not is_full(cell):
            axes.plot(cell.epsilon, mean, **_mechanism_style(name, is_full=False))


def _label_axes(axes: Axes, words: str, limits: tuple[float, float] | None) -> None:
    axes.set_xscale("log")
    if limits is not None:
        axes.set_ylim(*limits)
    is_last: bool = axes.get_subplotspec().is_last_row()  # type: ignore[union-attr]
    tidy_axes(axes, "epsilon (CusText: per list)" if is_last else "", words)


def _summarise_claim(result: Result) -> str:
    """Return a sentence that lists the mechanisms with an accurate attack at low epsilon."""
    names = [line.split(":")[0].strip() for line in describe_claim(result)[1:] if ": yes" in line]
    return f"above the floor at the lowest epsilon: {', '.join(names) or 'no mechanism'}"
