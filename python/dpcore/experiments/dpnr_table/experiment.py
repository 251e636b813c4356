"""Attacks that infer private attributes from text vectors of DPNR and of baselines without noise.

DPNR adds Laplace noise to the vector of a text. The paper's code adds the same random number to all
entries of a vector. An attacker can remove this noise by subtracting one entry from all others, for
any claimed epsilon. The paper itself states independent noise for every entry. With independent
noise, attackers can infer attributes even at epsilons that are too small for an accurate main task
(prediction of the label).

For each claimed epsilon, the table shows the true epsilon, and the exact privacy loss of the two
training texts whose vectors have the largest distance. The table also shows the success of a naive
attacker and of an attacker chosen on validation texts, and the certified lower bound on epsilon.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import partial
from itertools import product
from operator import attrgetter
from typing import Any, Final

from ...errors import integer
from ...report.figures import BLUE, GREEN, GREY, INK, RED, WHITE, restyle_figure
from ...report.rows import align_rows
from ...report.shown import Shown
from .. import drawing
from ..base import Column, align_columns, check_positive, encode_fields, setting
from ..corpora import TextOptions
from ..running import (
    VERDICT_WORDS,
    Tabled,
    cell_seed,
    group_answers,
    mean_and_sd,
    run_jobs,
    time_run,
)
from . import attacks
from .attacks import CLEAN, ENCODERS, NOISES, Case, Facts, Material, Run, Verdict

NAME = "dpnr-table"


@dataclass(frozen=True, slots=True)
class Published:
    """One result that Lyu, He and Li (2020) published for one text system.

    Args:
        name: name of the system in the paper.
        system: name of the corresponding system in this experiment.
        claim: claimed epsilon, or None if no epsilon is claimed.
        main: accuracy of the main task (prediction of the label).
        privacy: empirical privacy (1 minus the F1 of the attacker), or None if the paper does not
            state it.
    """

    name: str
    system: str
    claim: float | None
    main: float
    privacy: float | None = None


FIGURES: Final = (
    Published("majority", "majority", None, 0.5779, 0.4934),
    Published("not private", "no noise", None, 0.7875, 0.2324),
    Published("adversarial training", "MinMaxAdversary", None, 0.5704, 0.4967),
    Published("DPNR", "shared", 0.05, 0.8087, 0.5437),
    Published("DPNR", "shared", 1.0, 0.7936),
    Published("DPNR", "shared", 5.0, 0.7959),
)
"""Results from tables 2 and 4 of Lyu, He and Li (2020)."""


@dataclass(frozen=True, slots=True, repr=False)
class Config(TextOptions):
    """Options of an experiment that attacks and audits text systems (DPNR, and baselines).

    Args:
        trials: number of outputs that an audit draws for each of the two audited texts.
        seed: int in [0, 2**63). The experiment derives a separate seed for every system from this
            seed.
        seeds: number of trainings of each system. The table shows the mean and the standard
            deviation over the trainings. Defaults to 1, or to 5 if `full` is True.
        data: path of the file `ag_data.txt`, of its folder `dpnr_ag`, or of the folder that
            contains `dpnr_ag`. By default, the experiment generates texts.
        full: True to add the encoder MiniLM, a second strength of the opponent for every baseline,
            and all usual attackers.
        quick: True for a short run that only shows that the experiment works, with few generated
            texts and few attackers.
        device: torch device, such as "cpu".
        levels: claimed epsilons of the systems that are trained and attacked.
        claims: claimed epsilons that are audited. An audit compares the two training texts with the
            largest distance between their vectors.
        texts: number of texts to generate if `data` is None. Defaults to 4,000, or to 600 if
            `quick` is True.
        dim: number of entries of a TF-IDF vector. Defaults to 768, or to 64 for generated texts.
        confidence: confidence level of each interval and of each bound separately.

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(full=True).seeds, Config(quick=True).texts
        (5, 600)
    """

    trials: int = 10**5
    seeds: int = setting(1, full=5)
    device: str = "cpu"
    levels: tuple[float, ...] = setting((0.05, 1.0, 5.0, 50.0), check_positive, ascending=True)
    claims: tuple[float, ...] = setting((0.1, 1.0, 5.0), ascending=True)
    texts: int = setting(4000, integer, 300, quick=600)
    dim: int | None = setting(None, integer, 2)
    confidence: float = 0.95

    def __post_init__(self) -> None:
        """Check the fields, and set the default of `dim`."""
        TextOptions.__post_init__(self)
        if self.dim is None:
            object.__setattr__(self, "dim", 64 if self.data is None else 768)

    @property
    def size(self) -> str:
        """Size of the experiment: "quick" (few attackers), "usual" or "full" (all attackers)."""
        return "full" if self.full else "quick" if self.quick else "usual"

    @property
    def encoders(self) -> tuple[str, ...]:
        """Names of the text encoders that are used with DPNR."""
        return ENCODERS[: 1 + self.full]

    @property
    def cases(self) -> tuple[Case, ...]:
        """Settings of all text systems that this experiment trains and attacks."""
        strengths = {"quick": (), "usual": (1.0,), "full": (0.3, 1.0)}[self.size]
        return attacks.list_systems(self.encoders, self.levels, strengths)


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of one text system (DPNR with one noise and epsilon, or a baseline).

    Args:
        case: settings of the system.
        runs: one result for each training of the system.
    """

    case: Case
    runs: tuple[Run, ...]

    @property
    def first(self) -> Run:
        """Results of the first training of the system in this row."""
        return self.runs[0]

    def over(self, name: str) -> tuple[float, float]:
        """Return the mean and the standard deviation of one result over all trainings.

        `name` is the name of the result, a field of `Run` such as "main". With one training, the
        standard deviation is 0.
        """
        return mean_and_sd(list(map(attrgetter(name), self.runs)))

    def naive(self, unseen: bool = False) -> tuple[float, float]:
        """Return the lowest and the highest micro-F1 of all simple attackers on this system.

        If `unseen` is True, the F1 is measured only on test texts that do not also occur among the
        training or validation texts.
        """
        scores = [
            attacker.unseen if unseen else attacker.f1
            for run in self.runs
            for attacker in run.naive
        ]
        return min(scores), max(scores)

    @property
    def f1(self) -> tuple[float, float]:
        """F1 of the best attacker on unseen test texts: the mean and the standard deviation."""
        return self.over("chosen.f1.value")


@time_run("sklearn.neural_network", one_thread=True)
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train text encoders, infer private attributes from their vectors, and audit the claims.

    Args:
        config: options of the experiment.
        threads: has no effect: the experiment always uses one thread, so that results are
            reproducible.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one row for each text system.

    Raises:
        ModuleNotFoundError: if torch or scikit-learn is missing. The message states how to install
            it.
        FileNotFoundError: if a file of the data is missing.
        ValueError: if torch does not find the device, or a file does not have the expected format.
        KeyboardInterrupt: if the user presses Ctrl-C before the first system is measured.

    Source:
        Lyu, He and Li (2020), tables 2 and 4, and their released code.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     result = run(Config(trials=2000, quick=True, levels=(1.0,)))
        ...     shared = next(row for row in result.rows if row.case.system == "shared")
        ...     assert shared.f1[0] > 0.8
    """
    jobs: list[Any] = list(product(config.cases, range(config.seeds)))
    jobs += [Case(*key) for key in product(NOISES, config.encoders[:1], config.claims)]
    made = attacks.prepare_texts_encoders_and_pairs(config)
    done, ended = run_jobs("systems", jobs, partial(_audit_or_attack, config, made), progress)
    trained = group_answers((job[0] if isinstance(job, tuple) else None for job in jobs), done)
    rows = tuple(Row(case, runs) for case, runs in trained.items() if case is not None)
    claims = tuple(key for key in done if isinstance(key, Verdict))
    return Result(config, made.facts, rows, claims, partial=ended)


def _audit_or_attack(config: Config, made: Material, case: Case, number: int | None = None) -> Any:
    """Audit a claim if `number` is None. Otherwise, train and attack a system (seed `number`)."""
    if number is None:
        key = f"claim/{case.encoder}/{case.system}/{case.claim}"
        return attacks.audit_claim(case, made, cell_seed(config.seed, key), config)
    seed = cell_seed(config.seed, f"{case.key}/{number}")
    return attacks.measure_system(case, made, seed, config)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of all text systems (DPNR and baselines), and of the audits of the claimed epsilons.

    Args:
        config: options of the run.
        facts: source and sizes of the texts.
        rows: one row for each text system.
        claims: one result for each audit of a claimed epsilon.
    """

    facts: Facts
    rows: tuple[Row, ...]
    claims: tuple[Verdict, ...]

    def line(self, system: str, encoder: str) -> list[tuple[float, Row]]:
        """Return the results of one noisy system with one encoder, for each claimed epsilon.

        The result is a list of pairs (claimed epsilon, row).
        """
        rows = [r for r in self.rows if (r.case.system, r.case.encoder) == (system, encoder)]
        return [(row.case.claim, row) for row in rows if row.case.claim is not None]

    def table(self) -> str:
        """Return the results as plain text, together with the published results of the paper."""
        several = len(self.config.encoders) > 1
        own = [row for row in self.rows if row.first.discriminator is not None]
        return self.join_parts(
            _format_corpus_summary(self),
            _format_task_table(self, several) if self.rows else "",
            _format_attacker_f1_table(self, several) if self.rows else "",
            _format_claim_audit_table(self) if self.claims else "",
            _format_adversary_accuracy_table(own) if own else "",
            "" if self.facts.made else _format_paper_comparison(self),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        facts = self.facts
        texts = (
            {"origin": facts.origin, "made_up": facts.made, "sizes": facts.sizes}
            | {"test_texts_in_train": facts.repeated, "unseen": facts.unseen}
            | {"majority": facts.majority, "attributes": facts.names}
            | {"always_most_frequent_f1": facts.always, "widths": dict(facts.widths)}
        )
        return self.make_record(
            texts=texts,
            rows=[_system_row_to_dict(row) for row in self.rows],
            claims=[_verdict_to_dict(verdict) for verdict in self.claims],
            paper=[_published_result_to_dict(figure) for figure in FIGURES],
        )

    def plot(self, ax: Any = None) -> drawing.Figure:
        """Draw the F1 of the attackers and the accuracy of the label, against the claimed epsilon.

        Returns:
            A matplotlib figure.
        """
        encoders = list(dict.fromkeys(row.case.encoder for row in self.rows if row.case.claim))
        encoders = encoders or [self.config.encoders[0]]
        picture = drawing.empty_figure(0.9 + 2.7 * len(encoders), ax)
        panels = picture.subplots(len(encoders), 2, squeeze=False)
        for pair, encoder in zip(panels, encoders, strict=True):
            _draw_attacker_f1(pair[0], self, encoder)
            _draw_main_task_accuracy(pair[1], self, encoder)
            for axes in pair:
                _set_claim_axis(axes, self, encoder)
        made = "made-up texts" if self.facts.made else "the authors' AG file"
        several = f", {self.config.seeds} seeds" if self.config.seeds > 1 else ""
        picture.suptitle(f"DPNR on {made}{several}", fontsize=drawing.TEXT)
        drawing.add_legend(picture, _make_system_legend(self), 2)
        return restyle_figure(picture)


def _format_corpus_summary(result: Result) -> str:
    facts, config = result.facts, result.config
    made = "TEXTS THAT WERE MADE UP (no data were given): " if facts.made else ""
    widths = ", ".join(f"{name} {width}" for name, width in facts.widths)
    seeds = f"; mean +- spread of {config.seeds} seeds" if config.seeds > 1 else ""
    lines = [
        f"DPNR and its baselines: {made}{facts.origin}",
        f"{facts.sizes[0]:,} train, {facts.sizes[1]:,} valid, {facts.sizes[2]:,} test texts; "
        f"{facts.repeated:,} test texts occur in train, {facts.unseen:,} are unseen",
        f"attributes {', '.join(facts.names)}; entries of a vector: {widths}; seed {config.seed}"
        f"{seeds}",
        f"majority label {facts.majority[0]:.3f}, unseen {facts.majority[1]:.3f}; micro-F1 of the "
        f"most frequent attribute always {facts.always[0]:.3f}, unseen {facts.always[1]:.3f}",
    ]
    if result.rows:
        floors = result.rows[0].first.chosen.floors
        floors_shown = "; ".join(f"{floor.name} {floor.f1:.3f}" for floor in floors)
        lines.append(f"floors of F1 on unseen texts, learnt for the best F1: {floors_shown}")
    return "\n".join(lines)


def _format_infinite_epsilon(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "infinite"


def _format_mean(pair: tuple[float, float], several: bool) -> str:
    return f"{pair[0]:.3f} +- {pair[1]:.3f}" if several else f"{pair[0]:.3f}"


def _format_certified(run: Run) -> str:
    bound = run.certified if isinstance(run.certified, str) else f"{run.certified:.2f}"
    return f"{bound} refuted" if run.refuted else bound


def _format_task_table(result: Result, several_encoders: bool) -> str:
    first, seeds = result.facts.names[0], result.config.seeds > 1

    columns = [
        *_list_system_columns(several_encoders),
        Column("true", "first.true", _format_infinite_epsilon),
        Column("largest pair", "first.loss", _format_infinite_epsilon),
        Column("main", lambda row: _format_mean(row.over("main"), seeds)),
        Column("unseen", lambda row: _format_mean(row.over("main_unseen"), seeds)),
        Column("refitted", "first.refit_accuracy", ".3f"),
        Column(f"gap of {first}", "first.group.gap", _format_gap_with_interval),
    ]
    return (
        "Claim and task. true: epsilon for any two texts; largest pair: exact loss of the training "
        "texts' largest pair,\ncomputed from the declared noise; main: accuracy (its learning rate "
        "was settled on test texts); refitted: main,\nunseen, of the chosen attacker's classifier "
        f"instead, and its gap between texts with and without {first}\n"
        f"{align_columns(columns, result.rows)}"
    )


def _list_system_columns(several: bool) -> list[Column]:
    return [
        Column("system", "case", lambda case: case.name + f", {case.encoder}" * several, left=True),
        Column("claimed", "case.claim", "g", missing="none"),
    ]


def _format_gap_with_interval(gap: Any) -> str:
    return f"{gap.value:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}]"


def _format_attacker_f1_table(result: Result, several_encoders: bool) -> str:
    first = result.facts.names[0]
    seeds = result.config.seeds > 1
    columns = [
        *_list_system_columns(several_encoders),
        Column("naive", lambda row: "{:.3f}-{:.3f}".format(*row.naive())),
        Column("unseen", lambda row: "{:.3f}-{:.3f}".format(*row.naive(unseen=True))),
        Column("chosen", lambda row: _format_mean(row.f1, seeds)),
        Column("", "first.chosen", lambda attack: f"[{attack.f1.low:.3f}, {attack.f1.high:.3f}]"),
        Column("1 - F", lambda row: 1.0 - row.f1[0], ".3f"),
        Column(f"certified ({first})", "first", _format_certified),
        Column(
            "attacker",
            "first.chosen",
            lambda attack: f"{attack.attacker}, {attack.transform}",
            left=True,
        ),
    ]
    first_run = result.rows[0].first.naive
    budget = ", ".join(
        str(epochs) for epochs in sorted({attacker.epochs for attacker in first_run})
    )
    starts = len({attacker.start for attacker in first_run})
    return "\n".join(
        [
            f"Attackers, F1. naive: a network on raw vectors, lowest-highest of {starts} starts "
            f"after {budget} epochs; chosen: the best on\nvalidation, evaluated once on unseen "
            "texts; 1 - F: empirical privacy, no guarantee; certified: epsilon, any two texts "
            "neighbours",
            align_columns(columns, result.rows),
        ]
    )


_CLAIM_COLUMNS = (
    Column("noise", "claim.name", lambda name: name.replace(" noise", ""), left=True),
    Column("claimed", "claim.claim", "g"),
    Column("true", "true", _format_infinite_epsilon),
    Column("exact loss", "exact", _format_infinite_epsilon),
    Column("certified", "certified", ".3f"),
    Column("claim", lambda verdict: VERDICT_WORDS[verdict.refuted], left=True),
    Column("flagged", lambda verdict: ", ".join(verdict.flags) or "-", left=True),
)


def _format_claim_audit_table(result: Result) -> str:
    trials = result.config.trials
    return (
        f"Audits on the largest pair of the training texts, {trials:,} trials per side (bounds end "
        f"near ln of that, {math.log(trials):.1f};\nthe exact loss is computed from the declared "
        f"noise, not certified)\n{align_columns(_CLAIM_COLUMNS, result.claims)}"
    )


_OPPONENT_COLUMNS = (
    Column("baseline", "case.name", left=True),
    Column("its own opponent", "first.discriminator", ".3f"),
    Column("fresh attacker", "first.chosen.accuracy.value", ".3f"),
)


def _format_adversary_accuracy_table(rows: list[Row]) -> str:
    floor = rows[0].first.chosen.floors[0].accuracy
    return (
        "Accuracy over the attributes: the opponent of the training (all test texts), and the "
        f"attacker trained afresh (unseen);\nmajority {floor:.3f}\n"
        f"{align_columns(_OPPONENT_COLUMNS, rows)}"
    )


def _format_paper_comparison(result: Result) -> str:
    heads = "", "claimed", "main, paper", "main, here", "1 - F, paper"
    rows = [_paper_comparison_row(result, figure) for figure in FIGURES]
    return "\n".join(
        [
            "Beside the paper (Lyu, He and Li 2020, tables 2 and 4): the same texts; there BERT, "
            f"here {result.config.encoders[0]}; naive and main on\nall test texts, chosen on "
            "unseen ones; the paper's noise is that of its code: shared",
            align_rows([(*heads, "1 - F, here: naive, chosen"), *rows]),
        ]
    )


def _paper_comparison_row(result: Result, published: Published) -> tuple[str, ...]:
    main, here = "-", "-"
    if published.system == "majority":
        main, here = f"{result.facts.majority[0]:.3f}", f"{1.0 - result.facts.always[0]:.3f}"
    for row in result.rows:
        case = row.case
        # The paper's adversary has a strength. No other system of the paper has one.
        key = published.system, published.claim, published.system == "MinMaxAdversary"
        if (case.system, case.claim, bool(case.strength)) != key:
            continue
        low, high = row.naive()
        main = f"{row.over('main')[0]:.3f}"
        here = f"{1.0 - high:.3f}-{1.0 - low:.3f}, {1.0 - row.f1[0]:.3f}"
    claimed = "none" if published.claim is None else f"{published.claim:g}"
    privacy = "-" if published.privacy is None else f"{published.privacy:.3f}"
    return published.name, claimed, f"{published.main:.3f}", main, privacy, here


def _system_row_to_dict(row: Row) -> dict[str, Any]:
    mean, spread = row.f1
    entries = encode_fields(row.case) | {"f1_mean": mean, "f1_spread": spread}
    entries |= {"naive": list(row.naive())}
    runs = [_run_to_dict(run) for run in row.runs]
    return entries | {"naive_unseen": list(row.naive(unseen=True)), "runs": runs}


def _run_to_dict(run: Run) -> dict[str, Any]:
    naive = [
        {"start": naive.start, "epochs": naive.epochs} | {"f1": naive.f1, "f1_unseen": naive.unseen}
        for naive in run.naive
    ]
    return (
        {"seed": str(run.seed), "true": run.true, "loss_of_largest_pair": run.loss}
        | {"main": run.main, "main_unseen": run.main_unseen, "main_refitted": run.refit_accuracy}
        | {"naive": naive, "certified": run.certified, "refuted": run.refuted}
        | {"discriminator": run.discriminator}
        | {"empirical_privacy": run.chosen.empirical_privacy_f1}
        | {"chosen": run.chosen.to_dict(), "alone": run.alone.to_dict()}
    )


def _published_result_to_dict(figure: Published) -> dict[str, Any]:
    entries = {"system": figure.system, "claim": figure.claim}
    return entries | {"main": figure.main, "privacy": figure.privacy}


def _verdict_to_dict(verdict: Verdict) -> dict[str, Any]:
    case = verdict.claim
    return (
        {"system": case.system, "encoder": case.encoder, "claim": case.claim}
        | {"true": verdict.true, "exact": verdict.exact, "certified": verdict.certified}
        | {"refuted": verdict.refuted, "flags": verdict.flags}
        | {"counts": list(astuple(verdict.counts)), "seed": str(verdict.seed)}
    )


_SYSTEM_STYLES: dict[str, dict[str, Any]] = {
    "shared": {"color": RED, "marker": "s", "label": "one draw a row (the paper's code)"},
    "iid": {"color": BLUE, "marker": "o", "label": "a draw an entry (the paper)"},
    "sound": {"color": GREEN, "marker": "D", "label": "a draw an entry, sound (true as claimed)"},
}
_HOLLOW_MARK_STYLE: dict[str, Any] = {"linestyle": "--", "linewidth": 0.8, "markersize": 4.5}
_HOLLOW_MARK_STYLE |= {"markerfacecolor": WHITE}


def _draw_attacker_f1(axes: drawing.Axes, result: Result, encoder: str) -> None:
    for system, style in _SYSTEM_STYLES.items():
        line, colour = result.line(system, encoder), style["color"]
        if not line:
            continue
        claims = [claim for claim, _ in line]
        low, high = zip(*(row.naive(unseen=True) for _, row in line), strict=True)
        if len(line) > 1:
            axes.fill_between(claims, low, high, color=colour, alpha=0.25, linewidth=0)
        else:
            axes.vlines(claims, low, high, color=colour, alpha=0.35, linewidth=5)
        _draw_errorbars(axes, system, claims, [row.f1 for _, row in line])
    for row in _select_noise_free_rows(result, encoder):
        axes.axhline(row.f1[0], color=INK, linestyle=":", linewidth=1.0)
    if result.rows:
        floor = result.rows[0].first.chosen.floors[0].f1
        axes.axhline(floor, color=GREY, linestyle="--", linewidth=1.0)
    names = result.facts.names
    label = f"F1 for {names[0]}" if len(names) == 1 else f"micro-F1 for {len(names)} names"
    title = f"attackers: chosen (lines), naive (bands); {encoder}"
    drawing.style_axes(axes, y=f"{label}, unseen texts", title=title)


def _draw_main_task_accuracy(axes: drawing.Axes, result: Result, encoder: str) -> None:
    for system in _SYSTEM_STYLES:
        line = result.line(system, encoder)
        if line:
            figures = [row.over("main_unseen") for _, row in line]
            claims = [claim for claim, _ in line]
            _draw_errorbars(axes, system, claims, figures)
            again = [row.first.refit_accuracy or math.nan for _, row in line]
            if not all(map(math.isnan, again)):
                axes.plot(claims, again, **_SYSTEM_STYLES[system], **_HOLLOW_MARK_STYLE)
    for row in _select_noise_free_rows(result, encoder):
        value = row.over("main_unseen")[0]
        axes.axhline(value, color=INK, linestyle=":", linewidth=1.0)
    axes.axhline(result.facts.majority[1], color=GREY, linestyle="--", linewidth=1.0)
    drawing.style_axes(axes, y="accuracy, unseen texts", title=f"main task; {encoder}")


def _select_noise_free_rows(result: Result, encoder: str) -> list[Row]:
    return [r for r in result.rows if (r.case.system, r.case.encoder) == (CLEAN, encoder)]


def _draw_errorbars(axes: drawing.Axes, system: str, claims: Any, figures: Any) -> None:
    means, wide = zip(*figures, strict=True)
    style: dict[str, Any] = {"markersize": 4.5, "linewidth": 1.4, "elinewidth": 0.8, "zorder": 3}
    axes.errorbar(claims, means, yerr=wide, **_SYSTEM_STYLES[system], **style)


def _set_claim_axis(axes: drawing.Axes, result: Result, encoder: str) -> None:
    levels = result.config.levels
    axes.set(xscale="log", xlim=(levels[0] / 2.0, levels[-1] * 2.0), ylim=(0.0, 1.02))
    drawing.set_ticks(axes.xaxis, levels)
    drawing.style_axes(axes, "claimed epsilon")
    width = dict(result.facts.widths)[encoder]
    label = "true epsilon of a draw an entry (one draw a row: infinite)"
    true = [f"{width * level:,.6g}" for level in levels]
    upper = drawing.add_upper_axis(axes, levels, true, label)
    upper.tick_params(colors=BLUE)
    upper.xaxis.label.set(color=BLUE, fontsize=drawing.SMALL)


def _make_system_legend(result: Result) -> list[Any]:
    there = {row.case.system for row in result.rows}
    styles = [style for name, style in _SYSTEM_STYLES.items() if name in there]
    return [
        *(drawing.make_line(**style, markersize=4.5) for style in styles),
        drawing.make_patch("naive attackers, lowest to highest", GREY, alpha=0.3),
        drawing.make_line(
            "main task, refitted by the attacker", GREY, marker="o", **_HOLLOW_MARK_STYLE
        ),
        drawing.make_line("no noise", linestyle=":"),
        drawing.make_line("floor: majority", GREY, linestyle="--"),
    ]
