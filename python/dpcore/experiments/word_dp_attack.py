"""Attacks on texts whose words were replaced by word-level private mechanisms.

A word-level mechanism replaces each word of a text by a random word. Figure 4 of Gusain and Leith
shows an attack that infers to which of two sets a text belongs. The authors state that the attack
remains accurate down to small values of epsilon. This experiment uses the same attack on every
mechanism, and also shows:

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
from ..report.figures import BLUE, GREEN, GREY, INK, ORANGE, RED, WHITE, restyle_figure
from ..report.shown import Shown
from ..text import Corpus, words
from ..text.corpus import words_of
from ..text.inference import Attacker, infer
from ..text.words import Embedding
from ..text.words.mechanism import TableMechanism
from .base import Column, align_columns, check_trials, setting
from .corpora import MIN_SET_TEXTS, TextOptions, split_texts
from .drawing import SMALL, TEXT, Axes, Figure, add_legend, empty_figure, style_axes, write_at
from .running import Tabled, cell_seed, estimate_renyi, format_mean, mean_and_sd, run_jobs, time_run
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
"""Number of words of each text in the attack that links rewritten texts to their originals. The
number is ten for generated texts, because they are shorter."""

SHARES: Final = (0.4, 0.3, 0.3)
"""Shares of training, validation and test texts."""


_SPLIT_PERMUTATIONS: Final = 3
"""Number of permutations of the labels in each split."""

_INVERSE_PENALTY: Final = 10.0

_MIN_WORD_COUNT: Final = 4
"""A word gets a vector if it occurs at least this number of times in the texts on which the vectors
are trained."""

_WORD2VEC_EPOCHS: Final = 10
"""Number of epochs in the training of the word vectors. With gensim's default of five epochs,
vectors that are trained on so few texts are nearly parallel."""

_FREQUENT_SHARE: Final = 0.1
"""Share of the vocabulary that SanTextPlus does not treat as sensitive: the words that are most
frequent in public texts."""

_COUNT_SMOOTHING: Final = 0.5
"""Number added to the count of every word before its frequency is estimated."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment that attacks texts rewritten by word-level DP mechanisms.

    Args:
        trials: largest number of texts in the set of sensitive texts. The set of other texts has
            the same size.
        seed: int in [0, 2**63). The splits of the texts, the mechanisms and the attacks get
            separate seeds derived from this seed.
        seeds: number of random splits of the texts. The table shows the mean and the standard
            deviation over the splits. The default is 3. If `quick` is True, the default is 1.
        data: folder with the texts. The folder must contain the file medical/abstracts.csv. By
            default, dpcore generates texts.
        full: True to add fourteen classifiers to the attack. These classifiers take 15 to 25
            seconds for each split.
        quick: True for a short run with one split and four combinations of mechanism and epsilon.

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
        """Values of epsilon for each mechanism: a dict with the name of the mechanism as a key."""
        return _QUICK_GRID if self.quick else GRID


@dataclass(frozen=True, slots=True, repr=False)
class Cell(Shown):
    """Results of all attacks on texts that one word-level DP mechanism rewrites, at one epsilon.

    Args:
        mechanism: name of the class of the mechanism, or "none" for unchanged texts.
        epsilon: parameter epsilon of the mechanism, or 0 for unchanged texts.
        loss: largest privacy loss between any two input words, in nats. The loss is infinite if
            some output is possible for one word but not for another word.
        is_exact: True if `loss` is exact. False if `loss` is an upper bound, computed from the
            distribution of the noise.
        kept: share of the words that the mechanism left unchanged, in the first split.
        accuracy: accuracy of an attack that infers whether a rewritten text is sensitive, one
            number for each split. The attack tries two logistic regressions, and uses the
            regression with the better result on the validation texts.
        interval: 95 % confidence interval of `accuracy` in the first split.
        majority: accuracy, in the first split, of the best classifier that predicts the same set
            for every text.
        boosted_trees: accuracy of the same attack by boosted trees of scikit-learn, for each split.
            The input of the trees is the mean word vector of a text.
        informed: accuracy of the same attack by an attacker with more knowledge, for each split.
            The attacker knows the original training texts, and the output probabilities of each
            word. The tuple is empty if the mechanism has no table of output probabilities.
        usual: accuracy of the same attack by the best of fourteen additional classifiers, for
            each split. The tuple is empty if the option `full` is False.
        divergences: estimated KL divergence and Renyi divergence of order 2, shape `(splits, 2)`.
            The divergences are from the rewritten sensitive texts to the rewritten other texts. The
            estimates are not bounds.
        beliefs: two texts that state how reliable the two estimated divergences are in the first
            split.
        null: the same two divergences, estimated after a permutation of the labels, shape
            `(3 * splits, 2)`. There are three permutations for each split.
        linked: share of rewritten texts for which an attack found the right original text, followed
            by the two ends of the confidence interval of this share.
        linked_texts: number of rewritten texts in the attack that searches for original texts.
        linked_words: number of words of each text in this attack.
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
        """Return the mean over the splits of a field of this result, such as "accuracy"."""
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
    """Rewrite texts with every word-level DP mechanism at every epsilon, and attack the results.

    Args:
        config: options of the experiment, such as the number of splits.
        threads: not used. The mechanisms use all cores, and the attacks use one core. An invalid
            number raises an error.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Cell` for each mechanism and epsilon, and one for unchanged texts.

    Raises:
        ModuleNotFoundError: if gensim or scikit-learn is not installed. The message of the error
            states how to install the package.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        KeyboardInterrupt: if the user presses Ctrl-C before the first mechanism is attacked.

    Source:
        Gusain and Leith (2025), figure 4. The docstring of each mechanism names its paper.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gensim") and find_spec("sklearn"):
        ...     found = run(Config(quick=True, trials=200), progress=False)
        ...     assert found["SanText", 10.0].kept > found["SanText", 1.0].kept
    """
    corpus, prepared = _origin_and_embedded_text_sets(config)
    jobs = [("none", 0.0), *((name, e) for name, grid in config.grid.items() for e in grid)]
    cells, ended = run_jobs(
        "word attack", jobs, partial(_attack_mechanism, config, prepared), progress
    )
    vectors = f"{len(prepared.vectors):,} words, dim={prepared.vectors.dim}"
    size = len(prepared.texts) // 2
    return Result(config, corpus, vectors, prepared.covered, size, cells, partial=ended)


def _origin_and_embedded_text_sets(config: Config) -> tuple[str, _Texts]:
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


def _attack_mechanism(config: Config, prepared: _Texts, name: str, epsilon: float) -> Cell:
    """Attack the texts that one mechanism rewrites, in all splits."""
    mechanism = _make_mechanism(name, prepared.vectors, epsilon)
    # One call is used, because every call prepares the rows of a large table again.
    seed = cell_seed(config.seed, f"rewrite {name} {epsilon:g}")
    rewritten = _rewrite_texts(mechanism, config.seeds * [*prepared.texts], seed)
    size = len(prepared.texts)
    seeds = [cell_seed(config.seed, f"split {number}") for number in range(config.seeds)]
    deals = [_assign_split_parts(size // 2, seed) for seed in seeds]
    ratios = _log_likelihood_ratios_by_split(prepared, mechanism, deals)
    splits = [
        _measure_split(config, prepared, rewritten[at * size : (at + 1) * size], deal, ratio, seed)
        for at, (deal, ratio, seed) in enumerate(zip(deals, ratios, seeds, strict=True))
    ]

    def collect(key: str) -> tuple[Any, ...]:
        return tuple(split[key] for split in splits if key in split)

    linkage, first = _link_texts(config, prepared, mechanism), splits[0]
    return Cell(
        name, epsilon, *_largest_loss_and_is_exact(mechanism),
        _unchanged_word_share(prepared, rewritten[:size]), collect("accuracy"), first["interval"],
        first["majority"], collect("boosted_trees"), collect("informed"), collect("usual"),
        collect("divergences"), first["beliefs"], tuple(chain(*collect("null"))),
        (linkage.share, *linkage.interval), linkage.texts, linkage.words,
    )  # fmt: skip


def _make_mechanism(name: str, vectors: Embedding, epsilon: float) -> Any:
    if name != "SanTextPlus":
        return None if name == "none" else getattr(words, name)(vectors, epsilon)
    # Words are sorted by their frequency in other texts, which are public.
    sensitive = vectors.words[round(_FREQUENT_SHARE * len(vectors)) :]
    return words.SanTextPlus(vectors, epsilon, tuple(sensitive))


def _largest_loss_and_is_exact(mechanism: Any) -> tuple[float, bool]:
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


def _assign_split_parts(size: int, seed: int) -> npt.NDArray[np.str_]:
    """Assign each text of two equally large sets at random to "train", "valid" or "test"."""
    rng = np.random.default_rng(seed)
    ends = np.cumsum(np.round(np.array(SHARES[:2]) * size).astype(int))
    parts = np.repeat(["train", "valid", "test"], np.diff([0, *ends, size]))
    return np.concatenate([parts[rng.permutation(size)] for _ in range(2)])


def _measure_split(
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
    attackers = _tfidf_and_w2v_models(counted.shape[1])
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
        asked |= {"vectors": np.array(sums, np.float64), "attackers": _tfidf_and_w2v_models(0)[1]}
        result["informed"] = infer(None, corpus, "sensitive", **asked).accuracy.value
    if config.full:
        usual = infer(None, corpus, "sensitive", vectors=averages, rng=seed, progress=False)
        result["usual"] = usual.accuracy.value
    return result | _divergences_with_null(np.vstack(means), np.concatenate(answers), seed)


def _log_likelihood_ratios_by_split(
    prepared: _Texts, mechanism: Any, splits: Sequence[npt.NDArray[np.str_]]
) -> Sequence[Floats | None]:
    """Return, for each split and word, the log ratio of the word's probabilities in the two sets.

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


def _unchanged_word_share(prepared: _Texts, rewritten: Sequence[str]) -> float:
    """Return the share of unchanged words among all words that have a vector."""
    vector_rows, same, total = prepared.vectors.rows, 0, 0
    for text, other in zip(prepared.texts, rewritten, strict=True):
        # Unchanged texts still contain their unknown words.
        words, other_words = (
            [w for w in each.split() if w in vector_rows] for each in (text, other)
        )
        same += sum(map(str.__eq__, words, other_words))
        total += len(words)
    return same / max(1, total)


def _tfidf_and_w2v_models(width: int) -> list[Attacker]:
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


def _divergences_with_null(rows: Floats, is_sensitive: Ints, seed: int) -> dict[str, Any]:
    """Estimate two divergences from the sensitive set to the other set.

    The divergences are the KL divergence and the Renyi divergence of order 2. Both are also
    estimated for permuted labels.
    """
    rng = np.random.default_rng([seed, 1])

    def divergences(labels: Ints, **options: Any) -> Any:
        options |= {"alphas": [1.0, 2.0], "k": min(20, len(is_sensitive) // 8), "rng": seed}
        return estimate_renyi(rows[labels == 1], rows[labels == 0], method="score", **options)

    estimates = divergences(is_sensitive)
    orders = [rng.permutation(is_sensitive) for _ in range(_SPLIT_PERMUTATIONS)]
    null = [divergences(order, checks=False, error=None).value[0] for order in orders]
    return {
        "divergences": tuple(map(float, estimates.value[0])),
        "beliefs": tuple(map(str, estimates.belief[0])),
        "null": [tuple(map(float, row)) for row in null],
    }


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the attacks on texts that word-level DP mechanisms rewrite.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        vectors: text that states the number of words with vectors, and the dimension of the
            vectors.
        covered: share of the words in the texts for which there is a word vector.
        texts: number of texts in each of the two sets (sensitive texts and other texts).
        cells: one result (`Cell`) for each mechanism and epsilon.
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
        """Return the results of all attacks as a text table, followed by conclusions."""
        columns = [column for column in _COLUMNS if column.head != "usual" or self.config.full]
        return self.join_parts(
            _describe_texts_and_splits(self),
            align_columns(columns, self.cells),
            _format_table_notes(self),
            "\n".join(attack_verdicts(self)),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of plain data, which `json.dumps` can write."""
        return self.make_record(
            corpus=self.corpus,
            vectors=self.vectors,
            covered=self.covered,
            texts=self.texts,
            claim=attack_verdicts(self),
            cells=self.cells,
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the success of the attacks against the parameter epsilon of each mechanism."""
        picture = empty_figure(4.8, ax)
        (attack, informed, linkage), (loss, kept, divergence) = picture.subplots(2, 3, sharex=True)
        for name in GRID:
            cells = [cell for cell in self.cells if cell.mechanism == name]
            for cell in cells:
                trees = cell.mean("boosted_trees")
                attack.plot(cell.epsilon, trees, **_mechanism_style(name, is_full=False))
            _draw_mean_and_sd_line(attack, cells, lambda cell: cell.accuracy)
            informed_cells = [cell for cell in cells if cell.informed]
            _draw_mean_and_sd_line(informed, informed_cells, lambda cell: cell.informed)
            _draw_mean_and_sd_line(linkage, cells, lambda cell: cell.linked[:1])
            _draw_mean_and_sd_line(loss, cells, lambda cell: (cell.loss,), attrgetter("is_exact"))
            _draw_mean_and_sd_line(kept, cells, lambda cell: (cell.kept,))
            _draw_mean_and_sd_line(
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
        _set_panel_axes(attack, "accuracy of the attack", (0.4, 1.0))
        _set_panel_axes(informed, "accuracy, table known", (0.4, 1.0))
        _set_panel_axes(linkage, f"linked texts of {unchanged.linked_words} words", (-0.03, 1.05))
        _set_panel_axes(loss, "largest loss of two words (nats)", None)
        loss.set_yscale("log")
        infinite = [c.mechanism for c in self.cells[1:] if math.isinf(c.loss)]
        for row, name in enumerate(dict.fromkeys(infinite)):
            style: Any = {"transform": loss.transAxes, "va": "top", "fontsize": SMALL}
            text, colour = f"{name}: infinite", _MECHANISM_COLOURS[name]
            loss.text(0.02, 0.98 - 0.09 * row, text, color=colour, **style)
        # Space for these lines above the curves.
        loss.set_ylim(None, loss.get_ylim()[1] * (20.0 if infinite else 1.0))
        _set_panel_axes(kept, "share of words that stay", (-0.03, 1.05))
        _set_panel_axes(divergence, "D_2 of the two sets (nats)", None)
        made = "made-up texts" if self.config.data is None else "medical abstracts"
        title = f"Words replaced in {made}: epsilon of one mechanism says nothing about another\n"
        title += "hollow: boosted trees, bounds by the noise, D_2 not believed; "
        picture.suptitle(title + _describe_accurately_attacked(self), fontsize=TEXT)
        add_legend(picture, attack, 6)
        return restyle_figure(picture)


_MECHANISM_COLOURS: Final = dict(zip(GRID, (BLUE, GREEN, ORANGE, RED, INK, GREY), strict=True))
_MECHANISM_MARKS: Final = dict(zip(_MECHANISM_COLOURS, "osPD^v", strict=True))


def _describe_texts_and_splits(result: Result) -> str:
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


def _format_table_notes(result: Result) -> str:
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


def attack_verdicts(result: Result) -> list[str]:
    """Return sentences on whether the attacks are accurate at a low epsilon.

    Gusain and Leith state that the attacks are accurate. The first returned sentence states when an
    attack counts as accurate. Each further sentence is about one mechanism.
    """
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


def _format_divergence(cell: Cell, order_index: int) -> str:
    mean = statistics.fmean(orders[order_index] for orders in cell.divergences)
    return f"{mean:.2f}{'' if cell.beliefs[order_index] == ESTIMATE else '?'}"


_COLUMNS: Final = (
    Column("mechanism", "mechanism", left=True),
    Column("epsilon", "epsilon", lambda epsilon: f"{epsilon:g}" if epsilon else ""),
    Column("worst loss", lambda row: f"{row.loss:.4g}{'' if row.is_exact else ' (bound)'}"),
    Column("kept", "kept", ".3f"),
    Column("attack", "accuracy", format_mean),
    Column("trees", "boosted_trees", format_mean),
    Column("informed", "informed", lambda values: format_mean(values) if values else "-"),
    Column("usual", "usual", format_mean),
    Column("KL", lambda cell: _format_divergence(cell, 0)),
    Column("D_2", lambda cell: _format_divergence(cell, 1)),
    Column("null D_2", lambda cell: statistics.fmean(orders[1] for orders in cell.null), ".2f"),
    Column("linked", "linked", lambda share: "{:.2f} [{:.2f}, {:.2f}]".format(*share)),
)


def _mechanism_style(name: str, *, is_full: bool) -> dict[str, Any]:
    colour, width = _MECHANISM_COLOURS[name], "elinewidth" if is_full else "markeredgewidth"
    return {"color": colour, "marker": _MECHANISM_MARKS[name], "markersize": 3.5, "linewidth": 1.1,
            "markerfacecolor": colour if is_full else WHITE, width: 0.7,
            "zorder": 2 if is_full else 4}  # fmt: skip


def _draw_mean_and_sd_line(
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


def _set_panel_axes(axes: Axes, words: str, limits: tuple[float, float] | None) -> None:
    axes.set_xscale("log")
    if limits is not None:
        axes.set_ylim(*limits)
    is_last: bool = axes.get_subplotspec().is_last_row()  # type: ignore[union-attr]
    style_axes(axes, "epsilon (CusText: per list)" if is_last else "", words)


def _describe_accurately_attacked(result: Result) -> str:
    """Return a sentence that lists the mechanisms with an accurate attack at low epsilon."""
    names = [line.split(":")[0].strip() for line in attack_verdicts(result)[1:] if ": yes" in line]
    return f"above the floor at the lowest epsilon: {', '.join(names) or 'no mechanism'}"
