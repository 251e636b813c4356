"""Utility of texts rewritten by ADePT, at the true epsilon and not at the claimed one.

ADePT rewrites texts by an auto-encoder with noise in the middle. As published, its noise gives
sqrt(n) times the epsilon claimed; "scaled" has the noise that its claim needs, with the same
weights, "l1" and "gaussian" are other repairs. The auto-encoder is trained on public texts, epochs
are fixed beforehand, and what is rewritten are other texts, on which nothing is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ...errors import choice, integer, invalid
from ...mechanisms import positive
from ...report.figures import BLUE, GREY, INK, RED, WHITE, apply_style
from ...report.text import align_rows
from ...streams import threads_of
from ...text.inference.metrics import Measured
from ..drawing import SMALL, TEXT, Axes, Figure, add_legend, make_canvas, tidy_axes
from ..presentation import Column, align_columns, encode_attributes
from ..running import Tabled, gather_in_processes, group_answers, time_run
from ..settings import SEED, Settings, setting
from . import rewriting
from .rewriting import DELTA, MADE_UP, Fitted, Row, Setup, Texts, Utility

NAME = "adept-rewrite"
VARIANTS = ("published", "scaled", "l1", "gaussian")
_FULL_WIDTHS = (64, 128, 256)
_MIN_AUDIT_REWRITES = 1000
"""Rewrites that an audit of texts takes at least."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment: the training, the rewriting and the audits.

    Args:
        trials: vectors on each side of every audit; audits of rewritten texts take a tenth.
        seed: int in [0, 2**63); all training, noise and audits get seeds derived from it.
        data: folder with the folders `atis` and `snips`, or one of these; None makes texts up.
        full: SNIPS as well as ATIS, three seeds, and 64 and 256 hidden entries in addition to 128.
        quick: no more than shows that it works: few texts, little training, two claims.
        seeds: trainings of each auto-encoder, of which mean and spread are shown; None is 1, and 3
            where `full` is set.
        device: where encoder and decoder run, such as "cpu".
        confidence: probability that a bound or an interval holds, for each on its own.
        claimed: the epsilons claimed, in order.
        variants: of the noise.
        examples: texts that are shown with all their rewrites.

    Raises:
        TypeError: if a field is of the wrong kind.
        ValueError: if a value is out of range, or `full` and `quick` are both set.

    Example:
        >>> Config(quick=True).claimed
        (10.0, 300.0)
    """

    trials: int = 10**5
    seed: int = SEED
    data: str | None = None
    full: bool = False
    quick: bool = False
    seeds: int = setting(1, full=3)
    device: str = "cpu"
    confidence: float = 0.95
    claimed: tuple[float, ...] = setting(
        (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0), positive, quick=(10.0, 300.0), listed=True
    )
    variants: tuple[str, ...] = setting(VARIANTS, choice, VARIANTS, listed=True)
    examples: int = setting(5, integer, 0)

    def __post_init__(self) -> None:
        """Check the fields."""
        Settings.__post_init__(self)
        if self.full and self.quick:
            raise invalid("quick", "left out where full is set", self.quick)

    @property
    def text_trials(self) -> int:
        """Rewrites on each side of an audit of texts: each costs as much as ten vectors."""
        return max(_MIN_AUDIT_REWRITES, self.trials // 10)

    @property
    def widths(self) -> tuple[int, ...]:
        """Entries of a state, for each auto-encoder."""
        return _FULL_WIDTHS if self.full else (32,) if self.quick else (128,)


@time_run("sklearn", "sacrebleu")
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train the auto-encoders, rewrite under every noise, and audit.

    Args:
        config: what to train, to rewrite and to audit.
        threads: processes, None for all cores; one where the device is not the CPU. They change
            no result: torch has one thread in each.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The result, one row for each corpus, width, variant and claim.

    Raises:
        ModuleNotFoundError: without torch, scikit-learn or sacrebleu; it says what to install.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if there is no such device, or too few texts.
        KeyboardInterrupt: on Ctrl-C before anything was rewritten.

    Source:
        Krishna, Gupta and Dupuy (2021); the fault: Habernal (2021), theorem 1.

    Example:
        >>> from importlib.util import find_spec
        >>> if all(map(find_spec, ("torch", "sklearn", "sacrebleu"))):
        ...     config = Config(quick=True, trials=500, claimed=(10.0,), variants=("published",))
        ...     [row] = run(config, progress=False).rows
        ...     assert row.true == 80.0  # 8 times the claim: the clip is of the wrong norm
    """
    texts = {one.name: one for one in rewriting.read_corpora(config)}
    clips = tuple(dict.fromkeys(map(rewriting.clip_of, config.variants)))
    each = product(texts, config.widths, range(config.seeds), clips)
    setups = [Setup(name, clip, width, number) for name, width, number, clip in each]
    many = threads_of(threads) if config.device == "cpu" else 1
    trainings = [(one, texts[one.corpus], config) for one in setups]
    models, partial = gather_in_processes(
        "training", rewriting.train_encoder, trainings, many, progress, ended=_cut_short
    )
    if partial:
        raise KeyboardInterrupt
    jobs = [
        (one, texts[one.setup.corpus], variant, claimed, config)
        for variant, claimed, one in product(config.variants, config.claimed, models)
        if one.setup.clip == rewriting.clip_of(variant)
    ]
    cells, partial = gather_in_processes(
        "rewriting", rewriting.rewrite_and_audit, jobs, many, progress, ended=_cut_short
    )
    keys = [(one.setup.corpus, one.setup.hidden, how, e) for one, _, how, e, _ in jobs]
    rows = sorted(
        (Row(*key, ones) for key, ones in group_answers(keys, cells).items()),
        key=lambda row: (list(texts).index(row.corpus), row.hidden),
    )
    clean = {}
    for name, one in texts.items():
        words = [*map(rewriting.rejoin_words, one.held)]
        clean[name] = rewriting.measure_intent_utility(words, one, config.confidence, config.seed)
    kept = tuple(replace(one, model=None) for one in models)
    return Result(config, tuple(texts.values()), kept, tuple(rows), clean, partial=partial)


def _cut_short(found: Any) -> bool:
    return bool(found.trained.partial if isinstance(found, Fitted) else found.partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled):
    """The rewrites, row by row.

    Args:
        config: the options of the run.
        texts: the corpora.
        models: the trained auto-encoders, without their weights.
        rows: one for each corpus, width, variant and claim.
        clean: utility of the unchanged texts, by corpus.
    """

    config: Config
    texts: tuple[Texts, ...]
    models: tuple[Fitted, ...]
    rows: tuple[Row, ...]
    clean: dict[str, Utility]

    def table(self) -> str:
        """Return the figures as text, the conclusions, and five texts with all rewrites."""
        config = self.config
        seeds = f"; mean and spread of {config.seeds} trainings" if config.seeds != 1 else ""
        pairs = product(self.texts, config.widths)
        parts = (part for texts, width in pairs for part in _format_width(self, texts, width))
        return self.join_parts(
            f"ADePT: texts rewritten with noise in the middle; seed {config.seed}{seeds}.\n"
            f"Bounds and intervals at {100 * config.confidence:g} % confidence, each on its own; "
            f"audits of {config.trials:,} vectors and {config.text_trials:,} rewrites a side.\n"
            "An epsilon is for one rewrite of one text; no training text is covered by any. "
            f"'gaussian' has its epsilon at delta {DELTA:g}.",
            *parts,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as plain data."""
        return self.make_record(
            NAME,
            delta=DELTA,
            corpora=[_corpus_to_dict(texts, self) for texts in self.texts],
            models=[_fitted_to_dict(one) for one in self.models],
            rows=[_rewriting_row_to_dict(row) for row in self.rows],
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw utility against the true epsilon."""
        columns = len(self.texts)
        picture = make_canvas(4.6, ax)
        grid = picture.subplots(2, columns, sharex="col", squeeze=False)
        width = sorted(self.config.widths)[len(self.config.widths) // 2]
        for column, texts in enumerate(self.texts):
            rows = _select_width(self, texts, width)
            above, below = grid[:, column]
            above.set_title(f"{corpus_title(texts)}, n = {2 * width}", fontsize=TEXT)
            _draw_accuracy(above, rows, texts, self)
            _draw_bleu(below, rows, texts, self, width)
            below.set_xlabel(
                f"true epsilon, for any two texts ('gaussian': at delta {DELTA:g})", fontsize=TEXT
            )
        grid[0, 0].set_ylabel("accuracy of intents", fontsize=TEXT)
        grid[1, 0].set_ylabel("BLEU", fontsize=TEXT)
        add_legend(picture, grid[0, 0], 6, "upper")
        return apply_style(picture)


def corpus_title(texts: Texts) -> str:
    """Return the title of a corpus, which shows if it is made up."""
    return "utterances made up" if texts.name == MADE_UP else texts.name.upper()


def beats_majority(row: Row, floor: float) -> bool:
    """Return True if intents are predicted better than by the majority, beyond the interval."""
    return row.accuracy.low > floor


def needed_epsilon(rows: list[Row], floor: float) -> float | None:
    """Return the smallest true epsilon from which on a variant beats the majority, or None."""
    found = None
    for row in sorted(rows, key=lambda row: -row.true):
        if not beats_majority(row, floor):
            break
        found = row.true
    return found


def find_best_row(rows: list[Row], level: float, floor: float) -> Row | None:
    """Return the row of highest accuracy whose true epsilon is at most a level, or None.

    Only rows that beat the floor count.
    """
    held = [row for row in rows if row.true <= level * 1.0001 and beats_majority(row, floor)]
    return max(held, key=lambda row: row.accuracy.value, default=None)


def _format_width(result: Result, texts: Texts, width: int) -> list[str]:
    rows = _select_width(result, texts, width)
    models = [one for one in result.models if _has_width(one.setup, texts, width)]
    floor = rewriting.majority_share(texts)
    parts = [
        _describe_corpus(texts, width, models, result),
        align_columns(_COLUMNS, rows),
        _format_conclusions(rows, floor, result.config.variants),
    ]
    if models[0].examples:
        parts.append(_format_examples(rows, texts, models))
    return parts


def _find_first_of_clips(models: list[Fitted]) -> dict[str, Fitted]:
    clips = dict.fromkeys(one.setup.clip for one in models)
    return {clip: next(one for one in models if one.setup.clip == clip) for clip in clips}


def _has_width(one: Any, texts: Texts, width: int) -> bool:
    return bool(one.corpus == texts.name and one.hidden == width)


def _select_width(result: Result, texts: Texts, width: int) -> list[Row]:
    return [row for row in result.rows if _has_width(row, texts, width)]


def _describe_corpus(texts: Texts, width: int, models: list[Fitted], result: Result) -> str:
    clean, alone = result.clean[texts.name], rewriting.list_single_intents(texts)
    left = f"; outside macro-F1, with one text each: {', '.join(alone)}" if alone else ""
    cut = models[0].trained.cut
    lines = [
        f"{corpus_title(texts)} ({texts.origin}), n = {2 * width}: {len(texts.train):,} "
        f"training texts ({cut:,} cut after 20 words), which stand for public ones, "
        f"{texts.epochs} epochs; "
        f"{len(texts.held):,} others rewritten ({texts.dropped:,} left out that occur in training)",
        f"  not rewritten: accuracy {_format_measured(clean.accuracy)}, macro-F1 "
        f"{_format_measured(clean.f1)}; majority {rewriting.majority_share(texts):.3f}{left}",
    ]
    lines += [
        f"  decoded without noise, {one.setup.clip} clip: BLEU {one.bleu:.3f}, accuracy "
        f"{_format_measured(one.plain.accuracy)}; of training texts BLEU {one.memorised:.3f} "
        "(memorised: not private text)"
        for one in models
    ]
    return "\n".join(lines)


def _format_true(row: Row) -> str:
    return f"{row.true:.5g}{'!' if row.true > row.claimed * (1.0 + 1e-9) else ''}"


def _format_certified_mean(row: Row, name: str, place: int) -> str:
    refuted = any(cell.refuted[place] for cell in row.cells)
    return f"{row.mean(name):.2f}{'!' if refuted else ''}"


def _format_measured(one: Measured) -> str:
    return f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"


_COLUMNS = (
    Column("variant", "variant", left=True),
    Column("claimed", "claimed", "g"),
    Column("true", _format_true),
    Column("largest pair", lambda row: row.mean("exact"), ".4g"),
    Column("on z", lambda row: _format_certified_mean(row, "on_vector", 0)),
    Column("on text", lambda row: _format_certified_mean(row, "on_text", 1)),
    Column("BLEU", lambda row: row.mean("bleu"), ".3f"),
    Column("accuracy", "accuracy", _format_measured),
    Column("macro-F1", "f1", _format_measured),
    Column("same", lambda row: row.mean("unchanged"), ".3f"),
    Column("memorised: not private text", lambda row: row.mean("memorised"), ".3f"),
)


def _format_conclusions(rows: list[Row], floor: float, variants: tuple[str, ...]) -> str:
    lines = [
        "True: for any two texts, ! where the claim is false. Largest pair: exact loss of the two "
        "texts that are farthest apart, computed, not certified.",
        "On z, on text: certified on that pair, ! where it refutes the claim. Same: rewritten to "
        "themselves. Memorised: BLEU of rewritten training texts.",
        "Smallest true epsilon from which on intents are told better than by the majority, beyond "
        "the interval:",
    ]
    for name in variants:
        level = needed_epsilon([row for row in rows if row.variant == name], floor)
        lines.append(f"  {name}: {'none here' if level is None else f'{level:.5g}'}")
    lines.append("Most is told, of all rows whose true epsilon is at most")
    for level in sorted({float(f"{row.true:.5g}") for row in rows}):
        found = find_best_row(rows, level, floor)
        told = (
            "no more than the majority in any"
            if found is None
            else f"{found.variant} (true {found.true:.5g}), accuracy "
            f"{found.accuracy.value:.3f}, BLEU {found.mean('bleu'):.3f}"
        )
        lines.append(f"  {level:.5g}: {told}")
    return "\n".join(lines)


def _format_examples(rows: list[Row], texts: Texts, models: list[Fitted]) -> str:
    parts = []
    for place in range(len(models[0].examples)):
        lines = [("text", "", rewriting.rejoin_words(texts.held[place]))]
        lines += [
            (f"{clip} clip", "no noise", one.examples[place])
            for clip, one in _find_first_of_clips(models).items()
        ]
        lines += [
            (row.variant, f"true {row.true:.5g}", row.cells[0].examples[place] or "(empty)")
            for row in rows
        ]
        parts.append(align_rows(lines, left=(0, 2)))
    return "\n\n".join(parts)


def _utility_to_dict(one: Any) -> dict[str, Any]:
    names = "value low high how"
    return {key: encode_attributes(getattr(one, key), names) for key in ("accuracy", "f1")}


def _corpus_to_dict(texts: Texts, result: Result) -> dict[str, Any]:
    examples = texts.held[: result.config.examples]
    return {
        "name": texts.name, "made_up": texts.name == MADE_UP, "origin": texts.origin,
        "train": len(texts.train), "rewritten": len(texts.held), "left_out": texts.dropped,
        "epochs": texts.epochs, "majority": rewriting.majority_share(texts),
        "single": list(rewriting.list_single_intents(texts)),
        **_utility_to_dict(result.clean[texts.name]),
        "examples": list(map(rewriting.rejoin_words, examples)),
    }  # fmt: skip


def _fitted_to_dict(one: Fitted) -> dict[str, Any]:
    return {
        **encode_attributes(one.setup, "corpus clip hidden number"),
        **encode_attributes(one.trained, "seed threads losses cut"),
        **encode_attributes(one, "pair bleu memorised"),
        **_utility_to_dict(one.plain),
        "examples": list(one.examples),
    }


def _rewriting_row_to_dict(row: Row) -> dict[str, Any]:
    found = encode_attributes(row, "corpus hidden variant claimed true")
    return found | _utility_to_dict(row) | {"runs": [_cell_to_dict(cell) for cell in row.cells]}


def _cell_to_dict(cell: Any) -> dict[str, Any]:
    names = "seed exact certified_vector=on_vector certified_text=on_text event_text=event"
    return {
        **encode_attributes(cell, names),
        **dict(zip(("refuted_vector", "refuted_text"), cell.refuted, strict=True)),
        **encode_attributes(cell, "bleu unchanged memorised"),
        **_utility_to_dict(cell.told),
        **encode_attributes(cell, "examples partial"),
    }


_VARIANT_STYLES: dict[str, dict[str, Any]] = {
    "published": {"color": RED, "marker": "s"},
    "scaled": {"color": BLUE, "marker": "o", "linestyle": "--", "markerfacecolor": WHITE},
    "l1": {"color": "#2e7d32", "marker": "^"},
    "gaussian": {"color": "#b26a00", "marker": "D"},
}


def _draw_accuracy(axes: Axes, rows: list[Row], texts: Texts, result: Result) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        found = [row.accuracy for row in mine]
        middle = [one.value for one in found]
        ends = np.maximum(0.0, [[x.value - x.low, x.high - x.value] for x in found]).T
        label = f"{name} (claim false)" if name == "published" else name
        axes.errorbar(
            [row.true for row in mine], middle, yerr=ends, label=label, markersize=4.0,
            linewidth=1.1, elinewidth=0.7, **_VARIANT_STYLES[name],
        )  # fmt: skip
        if name == "published":
            _annotate_claims(axes, mine)
    axes.axhline(
        result.clean[texts.name].accuracy.value, color=INK, linewidth=0.9, label="not rewritten"
    )
    axes.axhline(
        rewriting.majority_share(texts), color=GREY, linestyle=":", linewidth=1.2, label="majority"
    )
    axes.set_xscale("log")
    axes.margins(y=0.14)
    tidy_axes(axes)


def _annotate_claims(axes: Axes, rows: list[Row]) -> None:
    """Write the claimed epsilon at each point of the published system.

    The claims of all other systems are true.
    """
    for row in rows:
        axes.annotate(
            f"claimed {row.claimed:g}", (row.true, row.accuracy.low), (0, -2), color=RED,
            textcoords="offset points", ha="center", va="top", fontsize=SMALL - 1,
        )  # fmt: skip


def _draw_bleu(axes: Axes, rows: list[Row], texts: Texts, result: Result, width: int) -> None:
    for name in result.config.variants:
        mine = [row for row in rows if row.variant == name]
        axes.plot(
            [row.true for row in mine], [row.mean("bleu") for row in mine], markersize=4.0,
            linewidth=1.1, **_VARIANT_STYLES[name],
        )  # fmt: skip
    models = [one for one in result.models if _has_width(one.setup, texts, width)]
    for clip, one in _find_first_of_clips(models).items():
        axes.axhline(one.bleu, color=GREY, linewidth=0.6)
        axes.annotate(
            f"{clip} clip, no noise", (0.01, one.bleu), (0, 1.5), textcoords="offset points",
            xycoords=("axes fraction", "data"), fontsize=SMALL - 1, color=GREY,
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_ylim(0.0, max(0.1, axes.get_ylim()[1]))
    tidy_axes(axes)
