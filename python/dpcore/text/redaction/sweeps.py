"""The sweep: a comparison of redaction policies at several levels (shares of masked words).

The report shows how well attacks succeed on the redacted texts, and how useful these texts remain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from ... import errors
from ...divergence import Epsilon, Estimate
from ...divergence.reliability import ESTIMATE
from ...mechanisms.texts import as_texts
from ...packages import require_module
from ...progress import Progress
from ...records import Record
from ...report import figures as drawing
from ...report.page import page_of_table
from ...report.rows import Row
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from .. import figure_tables
from ..corpus import fold_case_and_blanks
from ..inference import Inference
from ..inference.attackers import encoder_of
from ..words import Linkage
from . import masking, measures
from .attackers import split_vector_and_text_attackers
from .masking import STYLES, Policy, Style, policy_name
from .measures import FIGURES, ExposedDocument, Figures, Parts, Study

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEVELS: Final = (0.0, 0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0)
"""Default levels of `sweep`: shares of the words to mask."""

_PART_SHARES: Final = (0.4, 0.24, 0.06)
"""Shares of the texts for fitting the policy, fitting attackers and choosing an attacker, in each
of the two sets. The remaining texts test the attacker."""

_MIN_SET_TEXTS: Final = 40
"""Smallest number of texts of a set. With fewer texts, too few texts remain to choose attackers."""

_SWEEP_HEADER: Final = (
    "policy", "level", "masked", "attack", "sd", "interval", "counts", "trees", "AUC", "TPR", "KL",
    "D_2", "null", "certified", "linked", "by bag", "utility",
)  # fmt: skip
_COLUMN_NOTES: Final = (
    "attack: accuracy on the set, mean and sd over the splits, interval of the first; counts: from "
    "the numbers of masks and words alone; trees: boosted trees on vectors; TPR at 5 % false "
    "positives; KL and D_2 in nats, the larger direction, ? = not resolved or saturated in the "
    "first split; null: 95 % quantile of D_2 on permuted labels; certified: D_2 in the first "
    'split, from below; linked: by length and places (style "mask"), and by the bag of kept words'
)

_DOCUMENT_NOTE: Final = (
    "a divergence or an epsilon of two sets guarantees nothing for one document: texts that differ "
    "in one word have delta 1 - p at every epsilon where a share p is masked at random, and 0 or 1 "
    "where the same words are masked every time (redaction.record_delta)"
)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SweepPoint(Record, word="SweepPoint"):
    """Measurements of one redaction policy at one level (the requested share of masked words).

    There are two sets of texts: a sensitive set and a safe set. The texts are split at random
    several times into training and test texts, and each measurement is made once for each split.
    The methods `mean`, `sd` and `values` take the name of one of these measurements:

    - "masked": share of masked words;
    - "accuracy", "auc" and "true_positive_rate" (at 5 % false positives): success of the main
      attack. This attack infers from a redacted text whether the text is from the sensitive or the
      safe set;
    - "boosted_trees": accuracy of an attacker (boosted trees of scikit-learn) that infers the set
      from the vectors of the texts;
    - "counts_only": accuracy of an attacker that infers the set only from the numbers of masks and
      words of a text. The attacker is one of two classifiers, chosen on validation texts;
    - "utility": macro-F1 of a classifier that predicts the labels of safe texts; NaN without
      labels;
    - "utility_floor": macro-F1 of a constant prediction, the most frequent label; NaN without
      labels;
    - "divergence": estimated divergences in nats, shape (2, 2). The columns are KL and D_2 (Renyi
      divergence of order 2). The first row is the divergence of the sensitive set from the safe
      set, and the second row is the reverse direction;
    - "null": the same divergences after each text is assigned at random to one of the two sets. The
      random assignment is repeated several times. Each repetition gives an array of shape (2, 2).

    The attributes `divergence`, `epsilon`, `attack`, `linkages`, `empty` and `documents` come only
    from the first split.

    Attributes:
        policy: name of the policy.
        level: requested share of masked words. None if the policy masks the same words at every
            level.
        splits: the measurements of each split, in one object for each split.
        divergence: estimated divergences between the two sets, with error bars, the reliability of
            each estimate, and certified lower bounds.
        epsilon: one certified lower bound and two estimates of epsilon, at the delta that was
            passed to `sweep`. These numbers compare two sets of texts. They give no guarantee for a
            single text.
        attack: report of the main attack, with confidence intervals and the success of trivial
            guesses.
        linkages: results of an attack that looks for the original of each redacted test text. With
            the mask style "mask", there are two results. The first attack uses the positions of the
            words, and the second attack ignores these positions. With any other style, only the
            second result exists.
        empty: number of redacted texts without any word. Such texts exist only if masked words are
            deleted (style "drop").
        documents: test documents whose set the main attack infers correctly. The document with the
            most certain inference comes first. These documents are not written to files, and
            comparisons of two objects ignore them.
    """

    policy: str
    level: float | None
    splits: tuple[Figures, ...]
    divergence: Estimate
    epsilon: Epsilon
    attack: Inference
    linkages: tuple[Linkage, ...]
    empty: int
    documents: tuple[ExposedDocument, ...] = field(
        default=(), compare=False, metadata={"held": False}
    )

    def values(self, name: str) -> npt.NDArray[np.float64]:
        """Return the values of one measurement, such as "accuracy", in all splits of the texts.

        The first axis of the array has one entry for each split. For the name "null", the first
        axis has one entry for each random assignment of the texts to the two sets. Each split has
        several assignments.
        """
        errors.choice("name", name, FIGURES)
        figures = [getattr(split_figures, name) for split_figures in self.splits]
        return np.concatenate(figures) if name == "null" else np.array(figures)

    def mean(self, name: str) -> Any:
        """Return the mean of one measurement, such as "accuracy", over all splits of the texts.

        For "null", the mean is over the random assignments of the texts to the two sets.
        """
        return self.values(name).mean(axis=0)

    def sd(self, name: str) -> Any:
        """Return the standard deviation of a measurement, such as "accuracy", over all splits.

        With a single split of the texts, the result is NaN. For "null", the standard deviation is
        over the random assignments of the texts to the two sets.
        """
        values = self.values(name)
        return values.std(axis=0, ddof=1) if len(values) > 1 else np.full(values.shape[1:], np.nan)

    def exposed(self, n: int = 5) -> tuple[ExposedDocument, ...]:
        """Return redacted test documents whose set (sensitive or safe) an attack infers correctly.

        Each document is returned with the words that reveal its set (sensitive or safe).

        Args:
            n: largest number of returned documents, at least 1.

        Returns:
            Test documents of the first split of the texts. The most certain inference comes first.
        """
        return self.documents[: errors.integer("n", n, 1)]

    def __repr__(self) -> str:
        """Return one line with the policy, the level and the accuracy of the attack."""
        level = "" if self.level is None else f" at level {self.level:g}"
        return f"<SweepPoint {self.policy}{level}: attack {self.mean('accuracy'):.3f}>"


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Sweep(figure_tables.FigureTable, word="dpcore.text.redaction.sweep/2"):
    """Measurements of several redaction policies at several levels, computed by `sweep`.

    For an object `sweep` of this class, ``sweep["ranked", 0.5]`` has the measurements of the policy
    "ranked" at level 0.5. A level is the requested share of masked words. ``sweep["keywords"]`` has
    the measurements of the policy "keywords", which masks the same words at every level.

    Attributes:
        points: a `SweepPoint` for each policy and level. All levels of the first policy come first.
        sizes: number of texts of the sensitive set, and number of texts of the safe set, without
            repeated texts.
        repeated: number of texts that were left out because they repeat an earlier text.
        rows: number of sensitive texts, and number of safe texts, from which divergences are
            estimated.
        tested: number of test texts for the attacks in each split.
        public: number of public texts on which the TF-IDF weights and vectors are fitted. None if
            they are fitted on the same texts as the policies.
        style: style of the masks: "mask", "collapse" or "drop".
        delta: the delta of (epsilon, delta)-DP at which epsilon is estimated.
        confidence: confidence level of each single interval and of each single certified lower
            bound.
        seed: seed of the sweep. If you pass the seed to `sweep` as `rng`, you get the same results
            again.
        partial: True if Ctrl-C stopped the sweep after some of its splits.
        seconds: run time in seconds; comparisons of two sweeps ignore it.
    """

    _INSTEAD: ClassVar[str] = "points, or sweep[policy, level]"
    _ROW_NAME: ClassVar[str] = "{} {}"

    points: tuple[SweepPoint, ...]
    sizes: tuple[int, int]
    repeated: int
    rows: tuple[int, int]
    tested: int
    public: int | None
    style: str
    delta: float
    confidence: float
    seed: int
    partial: bool = False
    seconds: float = field(compare=False, default=0.0)

    @property
    def policies(self) -> tuple[str, ...]:
        """Names of the policies that this sweep compares."""
        return tuple(dict.fromkeys(point.policy for point in self.points))

    def of(self, policy: str) -> tuple[SweepPoint, ...]:
        """Return the measurements of one policy, a `SweepPoint` for each level in ascending order.

        Args:
            policy: name of the policy.
        """
        errors.choice("policy", policy, self.policies)
        return tuple(point for point in self.points if point.policy == policy)

    def __getitem__(self, key: str | tuple[str, float | None]) -> SweepPoint:
        """Return the measurements of a policy at a level.

        For a policy that masks the same words at every level, pass only the name of the policy.
        """
        policy, level = (key, None) if isinstance(key, str) else key
        points = self.of(policy)
        for point in points:
            if point.level is None or (level is not None and abs(point.level - level) < 1e-9):
                return point
        levels = ", ".join(f"{point.level:g}" for point in points)
        raise errors.invalid("level", f"one of {levels} for {policy}", level)

    @property
    def _title(self) -> str:
        sets = f"{self.sizes[0]:,} sensitive and {self.sizes[1]:,} safe texts"
        splits = len(self.points[0].splits)
        return f'Redaction of {sets}, {splits} splits, style "{self.style}", seed {self.seed}'

    def __repr__(self) -> str:
        """Return one line with the policies, the number of points and the seed."""
        return f"<Sweep of {', '.join(self.policies)}: {len(self.points)} points, seed={self.seed}>"

    def _list_rows(self) -> list[tuple[str, ...]]:
        return [_SWEEP_HEADER, *map(_format_figures, self.points)]

    def _questions_answers(self) -> list[Row]:
        """Return the three questions of the report, each with its answer for every policy."""
        questions = {
            "Which set is a text from?": _describe_set_attack_accuracy,
            "Which document was it?": _describe_linked_text_share,
            "Which words stood there?": _describe_smallest_unmasked_share,
        }
        return [
            (question, " ".join(answer(self.of(name)) for name in self.policies))
            for question, answer in questions.items()
        ]

    def _list_notes(self) -> list[str]:
        floor = self.points[0].attack.floors[0].accuracy
        notes = [
            _COLUMN_NOTES,
            f"guessing is right for {_format_percent(floor)} of {self.tested:,} test texts; "
            f"divergences are of {self.rows[0]:,} and {self.rows[1]:,} rows, and grow with their "
            "number",
            _DOCUMENT_NOTE,
            f"intervals and certificates hold at {_format_percent(self.confidence)}, each by "
            "itself, for texts drawn independently; no attacker here bounds what another one finds",
        ]
        if self.delta < (least := 10.0 / min(self.rows)):
            level = f"delta {self.delta:g} is below 10/N = {least:.2g}"
            notes.append(f"{level}: no event of this sample can speak about it")
        empty = max(point.empty for point in self.points)
        notes += [f"{empty:,} documents have no word left at the highest level"] if empty else []
        notes += [f"{self.repeated:,} repeated texts were left out"] if self.repeated else []
        splits = len(self.points[0].splits)
        return [*notes, f"INTERRUPTED after {splits} splits"] if self.partial else notes

    def _to_page(self) -> str:
        figures = [
            ("policies", ", ".join(self.policies)),
            ("splits", str(len(self.points[0].splits))),
            ("texts tested in each", f"{self.tested:,}"),
        ]
        return page_of_table(
            self, self._title, "three questions, three answers",
            "Redacted texts: what is hidden",
            "No figure here is a guarantee: another attacker may find more.", figures,
            self._questions_answers(), ("All levels", 6.4), self._list_rows(), self._list_notes(),
        )  # fmt: skip

    def _plot(self, ax: Any) -> Figure:
        return _draw_sweep(self, ax)


@explain_argument_errors
def sweep(
    sensitive: Any,
    safe: Any,
    *,
    policies: Any,
    levels: Any = LEVELS,
    public: Any = None,
    encode: Any = None,
    utility: Any = None,
    delta: float = 0.05,
    splits: int = 5,
    nulls: int = 20,
    style: Style = "mask",
    attackers: Any = None,
    confidence: float = 0.95,
    rng: Rng = None,
    progress: bool | None = None,
) -> Sweep:
    """Compare redaction policies at several levels: success of attacks, and remaining utility.

    There are two sets of texts: a sensitive set and a safe set. A policy masks words in all texts.
    The main attack infers from a redacted text whether it is from the sensitive or the safe set.
    The texts are split at random several times. Each split has four parts without common texts:

    - 40 % of each set are used to fit the policies;
    - 24 % of each set are used to fit the attackers;
    - 6 % of each set are used to choose one of the attackers;
    - 30 % of each set are used to test the chosen attacker.

    `sweep` converts each redacted text to a vector with 50 entries by TF-IDF weights and a
    truncated SVD. The weights and the SVD are fitted on the redacted public texts. Without
    `public`, they are fitted on the redacted texts of the first part. From the texts of the other
    parts, `sweep` estimates divergences between the vectors of the two sets.

    Args:
        sensitive: texts of the sensitive set, at least 40 different texts.
        safe: texts of the safe set, at least 40 different texts. The two sets must not share texts.
        policies: a policy, or a list of policies. If a policy needs a fit and is not fitted yet,
            `sweep` fits the policy in each split.
        levels: shares of the words of a text to mask, in ascending order, in [0, 1].
        public: texts that are in neither set, on which TF-IDF weights and vectors are fitted. With
            None, the texts of the first part are used.
        encode: encoder of redacted texts: a function from a list of n texts to an array of shape
            (n, d), or an object whose method `encode` is such a function. None means `TfidfSVD`.
        utility: a label for each safe text. The utility is the macro-F1 of a classifier that
            predicts these labels from redacted texts. Each label must occur twice or more. None
            omits the utility.
        delta: the delta of (epsilon, delta)-DP at which epsilon is estimated, in [0, 1).
        splits: number of random splits. The report shows the mean and the standard deviation over
            the splits.
        nulls: number of random assignments of the texts to the two sets. For each assignment, the
            divergences are estimated again. These estimates show how large an estimate can be if
            the two sets do not differ. `nulls` is the total number for all splits, and is rounded
            up to a multiple of `splits`.
        style: style of the masks: "mask" (a token for each masked word), "collapse" (one token for
            each run of masked words) or "drop" (no token).
        attackers: an attacker, "usual", or a list of these, used in addition to the default
            attackers. The default attackers are three logistic regressions: on words, on n-grams
            that include masks, and on vectors. An attacker on texts is an object with two methods.
            In `fit(texts, truth)`, `truth` has 1 for each sensitive text and 0 for each safe text.
            `scores(texts)` returns a number for each text; a higher number means that the sensitive
            set is more likely. An attacker on vectors is a scikit-learn classifier or an
            `Attacker`. The string "usual" means the default attackers of `infer`. Each attacker is
            copied before it is fitted.
        confidence: confidence level of each single interval and of each single certified lower
            bound.
        rng: None, an int seed or a numpy Generator.
        progress: True shows a progress bar, False shows no bar. None shows a bar on a terminal.

    Returns:
        The measurements. If Ctrl-C stops the function after the first split, the result has only
        the splits that were complete.

    Raises:
        ModuleNotFoundError: if scikit-learn is missing.
        TypeError: if an argument is of the wrong kind.
        ValueError: for one of these reasons:

            - a set has fewer than 40 different texts, has an empty text, or shares a text with the
              other set;
            - a level is out of range, or the levels are not ascending;
            - the number of labels differs from the number of safe texts, or a label occurs only
              once;
            - a policy or an encoder returns values that are not valid.

    Warns:
        UserWarning: if a policy was already fitted, before the call, on some of the texts of the
            two sets.

    Source:
        Gusain and Leith (2023), Towards Quantifying the Privacy of Redacted Text, for the attack
        that infers the set of a text.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sklearn"):
        ...     from dpcore.text import redaction
        ...     draw = np.random.default_rng(1)
        ...     common = [f"word{i}" for i in range(40)]
        ...     ill, well = (
        ...         [" ".join([name, *draw.choice(common, 9)]) for _ in range(120)]
        ...         for name in ("fever", "holiday")
        ...     )
        ...     policy = redaction.Random()
        ...     found = sweep(ill, well, policies=policy, levels=[0, 1], splits=1, rng=1)
        ...     assert found["random", 0].mean("accuracy") > 0.9
        ...     assert {"fever", "holiday"} & {*found["random", 0].exposed(1)[0].words}
        ...     assert found["random", 1].mean("accuracy") == 0.5
    """
    start, seed = time.perf_counter(), to_seed(rng)
    require_module("sklearn", "redaction.sweep")
    study, repeated = _read_study_and_count_repeats(
        sensitive, safe, public, encode, utility, attackers, errors.confidence_level(confidence)
    )
    named, need = _policies_by_numbered_name(policies), "ascending shares from 0 to 1"
    shares = figure_tables.read_ascending("levels", levels, _read_share, (need, need))
    delta, style = errors.delta_level(delta), errors.choice("style", style, STYLES)
    splits, nulls = errors.integer("splits", splits, 1), errors.integer("nulls", nulls, 1, 10**6)
    for policy in named.values():
        masking.warn_if_fitted_on(policy, study.texts)
    limits = require_module("threadpoolctl", "redaction.sweep").threadpool_limits
    # With one thread the results are identical in each run, and there are too few rows for several
    # threads.
    with Progress("redaction sweep", splits * len(named), progress) as bar, limits(1):
        studied = (
            _StudySplit(study, style, delta, number, seed, -(-nulls // splits))
            for number in range(splits)
        )
        rounds, partial = figure_tables.collect_until_interrupt(
            split.measure_policies(named, shares, bar) for split in studied
        )
    keys = dict.fromkeys(key for cells in rounds for key in cells)
    points = tuple(
        _join_splits(*key, [cells[key] for cells in rounds if key in cells]) for key in keys
    )
    return Sweep(
        points, tuple(np.bincount(study.truth)[::-1].tolist()), repeated,
        points[0].divergence.sizes, points[0].attack.sizes[2],
        None if study.public is None else len(study.public), style, delta, study.confidence, seed,
        partial, time.perf_counter() - start,
    )  # fmt: skip


def _join_splits(name: str, level: float | None, cells: Sequence[_SplitFigures]) -> SweepPoint:
    if (first := cells[0].first) is None:
        raise errors.invalid("policies", "ones that have levels in every split, or in none", name)
    return SweepPoint(name, level, tuple(cell.figures for cell in cells), **first)


class _SplitFigures(NamedTuple):
    """Measurements of one split, and the fields of `SweepPoint` that use only the first split."""

    figures: Figures
    first: dict[str, Any] | None


class _StudySplit:
    """One split of the texts, in which every policy is measured at every level."""

    def __init__(
        self, study: Study, style: Style, delta: float, number: int, seed: int, nulls: int
    ) -> None:
        self.study, self.style, self.delta, self.nulls = study, style, delta, nulls
        self.number = number
        self.seed, *_ = np.random.SeedSequence([seed, number]).generate_state(1).tolist()
        self.parts = _draw_four_stratified_parts(study.truth, np.random.default_rng(self.seed))
        # Equal redactions are measured once. For example, all redactions are equal at level 0.
        self.known: dict[tuple[str, ...], _SplitFigures] = {}

    def measure_policies(
        self, policies: Mapping[str, Policy], levels: Sequence[float], bar: Progress
    ) -> dict[tuple[str, float | None], _SplitFigures]:
        """Measure every policy at every level (share of masked words) in this split."""
        cells = {}
        for name, policy in policies.items():
            for level, cell, share in self._measure_levels_and_progress(policy, levels):
                cells[name, level] = cell
                bar.advance(share)
        return cells

    def _measure_levels_and_progress(
        self, policy: Any, shares: Sequence[float]
    ) -> Iterator[tuple[float | None, _SplitFigures, float]]:
        """Fit a policy if necessary, and measure it at each level.

        The function yields the level, the measurements, and the share of the work that this level
        takes.
        """
        study, parts = self.study, self.parts
        if masking.getattr_or_default(policy, "needs_fit") and not policy.is_fitted:
            sides = (parts.policy[study.truth[parts.policy] == side] for side in (1, 0))
            sets = ([study.texts[row] for row in rows] for rows in sides)
            policy = policy.fit(*sets, rng=self.seed)
        documents = [*study.texts, *(study.public or ())]
        # The order is random, so the policy cannot distinguish the sets by position.
        rng = np.random.default_rng([self.seed, 2])
        order = rng.permutation(len(documents))
        levels = masking.policy_mask_levels(policy, [documents[row] for row in order], rng)
        own = [levels[place] for place in np.argsort(order)]
        has_levels = any((own_levels[np.isfinite(own_levels)] > 0.0).any() for own_levels in own)
        points: Sequence[float | None] = shares if has_levels else [None]
        for level in points:
            redacted = tuple(masking.mask_words(documents, own, level or 0.0, self.style))
            if redacted not in self.known:
                self.known[redacted] = self._measure_texts(redacted)
            cell = self.known[redacted]
            masked = np.concatenate(own[: len(study.texts)]) <= (level or 0.0)
            figures = replace(cell.figures, masked=float(masked.mean()))
            yield level, cell._replace(figures=figures), 1.0 / len(points)

    def _measure_texts(self, documents: Sequence[str]) -> _SplitFigures:
        study, parts = self.study, self.parts
        redacted, background = documents[: len(study.texts)], documents[len(study.texts) :]
        if study.public is None:
            background = [redacted[row] for row in parts.policy]
        features = measures.redacted_text_features(study, parts, redacted, background, self.seed)
        figures, attack = measures.measure_attacks_and_utility(
            study, parts, features, redacted, self.nulls, self.seed
        )
        if self.number:
            return _SplitFigures(figures, None)
        divergence = measures.sensitive_safe_divergence(study, parts, features.vectors, self.seed)
        tested = [redacted[row] for row in parts.test]
        methods: Sequence[Any] = ("places", "bag") if self.style == "mask" else ("bag",)
        settings: dict[str, Any] = {"truth": parts.test, "confidence": study.confidence}
        first = {
            "divergence": divergence,
            "epsilon": divergence.epsilon(self.delta),
            "attack": attack,
            "linkages": tuple(
                masking.link_redacted(study.texts, tested, by=by, **settings) for by in methods
            ),
            "empty": sum(not text for text in redacted),
            "documents": measures.correct_set_inferences(study, parts, features, redacted, attack),
        }
        return _SplitFigures(figures, first)


def _draw_four_stratified_parts(truth: npt.NDArray[np.int64], rng: np.random.Generator) -> Parts:
    """Draw the four parts of a split at random, with fixed shares of each set."""
    pieces = []
    for side in (1, 0):
        rows = rng.permutation(np.flatnonzero(truth == side))
        pieces.append(np.split(rows, np.rint(np.cumsum(_PART_SHARES) * len(rows)).astype(int)))
    return Parts(*(np.sort(np.concatenate(both)) for both in zip(*pieces, strict=True)))


def _read_study_and_count_repeats(
    sensitive: Any, safe: Any, public: Any, encode: Any, utility: Any, attackers: Any, level: float
) -> tuple[Study, int]:
    """Check the arguments of `sweep` that concern texts; return them and the number of repeats.

    Repeats are texts that are equal to an earlier text; the function leaves them out.
    """
    sets = as_texts("sensitive", sensitive), as_texts("safe", safe)
    kept = []
    for name, texts in zip(("sensitive", "safe"), sets, strict=True):
        firsts = {fold_case_and_blanks(text): row for row, text in reversed(list(enumerate(texts)))}
        kept.append(dict(sorted(firsts.items(), key=lambda item: item[1])))
        if len(firsts) < _MIN_SET_TEXTS:
            raise errors.invalid(name, f"{_MIN_SET_TEXTS} different texts or more", len(firsts))
    if common := len(kept[0].keys() & kept[1].keys()):
        raise errors.invalid("safe", "without texts of the sensitive set", f"{common:,} of them")
    texts = tuple(
        columns[row] for columns, rows in zip(sets, kept, strict=True) for row in rows.values()
    )
    others = None if public is None else as_texts("public", public)
    if common := sum(
        any(fold_case_and_blanks(text) in rows for rows in kept) for text in others or ()
    ):
        raise errors.invalid("public", "without texts of either set", f"{common:,} of them")
    truth = np.repeat(np.array([1, 0]), list(map(len, kept)))
    labels = _read_labels(utility, len(sets[1]), list(kept[1].values()))
    encode = None if encode is None else encoder_of(encode)
    repeated = sum(map(len, sets)) - len(texts)
    places = np.array([row for columns in kept for row in columns.values()])
    split = split_vector_and_text_attackers(attackers)
    return Study(texts, places, truth, labels, others, encode, *split, level), repeated


def _read_labels(utility: Any, texts: int, kept: Sequence[int]) -> npt.NDArray[Any] | None:
    if utility is None:
        return None
    labels = np.asarray(utility)
    requirement = f"a label for each of {texts:,} safe texts"
    if labels.shape != (texts,) or labels.dtype.kind not in "biuUS":
        raise errors.invalid("utility", requirement, utility)
    values, counts = np.unique(labels[list(kept)], return_counts=True)
    if len(values) < 2 or counts.min() < 2:
        each = ", ".join(f"{value} {many}" for value, many in zip(values, counts, strict=True))
        raise errors.invalid("utility", "two labels or more, each of two texts or more", each)
    return labels[list(kept)]


def _policies_by_numbered_name(policies: Any) -> dict[str, Policy]:
    """Return a dictionary from names to policies; repeated names get a number."""
    listed = [policies] if callable(policies) else policies
    if isinstance(listed, (str, Mapping)) or not isinstance(listed, Sequence) or not listed:
        raise errors.mistyped("policies", "a policy, or a list of them", policies)
    named: dict[str, Callable[..., Any]] = {}
    for policy in listed:
        name = policy_name(policy)
        same = sum(policy_name(other) == name for other in named.values())
        named[f"{name} {same + 1}" if same else name] = policy
    return named


def _read_share(name: str, value: Any) -> float:
    return errors.real(name, value, low=0.0, high=1.0)


def _format_figures(point: SweepPoint) -> tuple[str, ...]:
    kl, d2 = point.mean("divergence").max(axis=0)
    is_believed, bound = _reliability_and_d2_lower_bound(point)
    belief, accuracy = "" if is_believed else "?", point.attack.accuracy
    figures = (
        f"{point.mean('accuracy'):.3f}", figure_tables.format_number(point.sd("accuracy"), 3),
        f"{accuracy.low:.2f}-{accuracy.high:.2f}", f"{point.mean('counts_only'):.2f}",
        f"{point.mean('boosted_trees'):.2f}", f"{point.mean('auc'):.2f}",
        f"{point.mean('true_positive_rate'):.2f}", f"{kl:.2f}", f"{d2:.2f}{belief}",
        f"{_null_divergence_quantile_95(point):.2f}", f"{bound:.2f}",
        *(f"{point.linkages[place].share:.3f}" for place in (0, -1)),
        figure_tables.format_number(point.mean("utility"), 2),
    )  # fmt: skip
    level = "-" if point.level is None else f"{point.level:g}"
    return point.policy, level, f"{point.mean('masked'):.2f}", *figures


def _reliability_and_d2_lower_bound(point: SweepPoint) -> tuple[bool, float]:
    """Return True if the estimate of D_2 is reliable, and the certified lower bound on D_2.

    D_2 is the Renyi divergence of order 2 in the first split. Both values are for one direction:
    from the sensitive to the safe set or the reverse, whichever has the larger estimate.
    """
    divergence = point.divergence
    order = int(np.flatnonzero(divergence.alphas == measures.ORDERS[1])[0])
    place = int(divergence.value[:, order].argmax()), order
    assert divergence.certified is not None
    return bool(divergence.belief[place] == ESTIMATE), float(divergence.certified[place])


def _null_divergence_quantile_95(point: SweepPoint, order_index: int = 1) -> float:
    return float(np.quantile(point.values("null")[..., order_index].max(axis=1), 0.95))


def _describe_set_attack_accuracy(points: Sequence[SweepPoint]) -> str:
    ends = points if len(points) == 1 else (points[0], points[-1])
    rates = [_format_percent(point.mean("accuracy")) for point in ends]
    shares = ", and ".join(f"{r} {_describe_level(p)}" for r, p in zip(rates, ends, strict=True))
    above = [point for point in points if point.attack.above_floor]
    best = f"last shown {_describe_level(above[-1])}" if above else "shown at no level"
    return (
        f"{points[0].policy}: the share of texts of which an attacker names the right set is "
        f"{shares}; that this is more than guessing is {best}."
    )


def _describe_linked_text_share(points: Sequence[SweepPoint]) -> str:
    linked = [point for point in points if point.linkages[0].share >= 0.5] or points[:1]
    linkage = linked[-1].linkages[0]
    return (
        f"{points[0].policy}: whoever has all originals finds that of "
        f"{_format_percent(linkage.share)} of the texts {_describe_level(linked[-1])}; words left "
        f"in a text on average: {linkage.words:,}."
    )


def _describe_smallest_unmasked_share(points: Sequence[SweepPoint]) -> str:
    masked = [float(p.mean("masked")) for p in points if p.mean("masked") < 1.0] or [1.0]
    return (
        f"{points[0].policy}: {_format_percent(1.0 - masked[-1])} of the words are left unchanged "
        f"with {_format_percent(masked[-1])} masked, and each of them is disclosed."
    )


def _describe_level(point: SweepPoint) -> str:
    masked = f"{_format_percent(point.mean('masked'))} of the words masked"
    return f"with {masked}" if point.level is None else f"at level {point.level:g} ({masked})"


def _format_percent(value: float) -> str:
    return f"{100.0 * value:.3g} %"


def _draw_sweep(report: Sweep, ax: Any) -> Figure:
    """Plot divergence, attack and linkage against the share of masked words, and the utility."""
    picture = drawing.panel_figure(ax, drawing.scale_figure_size(1.6, 1.5))
    panels = picture.subplots(2, 2).ravel()
    has_utility = not np.isnan(report.points[0].mean("utility"))
    for place, name in enumerate(report.policies):
        _draw_policy_curves(panels, report.of(name), drawing.cycle_colour(place), has_utility)
    nulls = max(report.points, key=_null_divergence_quantile_95)
    ink = drawing.text_colour()
    panels[0].axhspan(0.0, _null_divergence_quantile_95(nulls), color=ink, alpha=0.15, linewidth=0)
    offset = {"textcoords": "offset points", "fontsize": "small"}
    panels[0].annotate("permuted labels", (0.0, 0.0), (0, 2), **offset)
    panels[1].axhline(report.points[0].attack.floors[0].accuracy, color=ink, linestyle=":")
    rows = f"{report.rows[0]:,} and {report.rows[1]:,} rows"
    labels = {
        f"nats, {rows}": "Which set? D_2 (circles, hollow: not\nbelieved), KL (dashed), "
        "certified (bold)",
        "accuracy": "Which set? The attack, from the texts and\nfrom the number of masks (dashed)",
        "share linked": "Which document? By places and\nby the bag of words (dashed)",
        "macro-F1": "Utility against\nthe attack on the set",
    }
    for panel in panels[:3]:
        panel.set(xlabel="share of words masked", xlim=(-0.03, 1.03))
    panels[2].set(ylim=(-0.03, 1.03))
    panels[3].set(xlabel="accuracy of the attack")
    for panel, (label, title) in zip(panels, labels.items(), strict=True):
        panel.set(ylabel=label, title=title)
    if not has_utility:
        panels[3].set_axis_off()
        panels[3].set_title("")
    return figure_tables.style_panels_and_legend(picture, panels, panels[1])


def _draw_policy_curves(
    panels: Sequence[Axes], points: Sequence[SweepPoint], hue: Any, has_utility: bool
) -> None:
    def mean(name: str) -> Any:
        return np.array([point.mean(name) for point in points])

    masked, accuracy = mean("masked"), mean("accuracy")
    kl, d2 = mean("divergence").max(axis=1).T
    spread = np.array([point.sd("divergence").max(axis=0)[1] for point in points])
    panels[0].plot(masked, kl, "--", color=hue, linewidth=1.0)
    panels[0].errorbar(masked, d2, spread, color=hue, linewidth=0.8, elinewidth=0.8)
    believed, bounds = zip(*map(_reliability_and_d2_lower_bound, points), strict=True)
    for x, y, filled in zip(masked, d2, believed, strict=True):
        face = hue if filled else panels[0].get_facecolor()
        panels[0].plot([x], [y], "o", color=hue, markerfacecolor=face)
    panels[0].plot(masked, bounds, color=hue, linewidth=2.5)
    panels[1].errorbar(
        masked, accuracy, [point.sd("accuracy") for point in points], color=hue, marker="o",
        label=points[0].policy,
    )  # fmt: skip
    panels[1].plot(masked, mean("counts_only"), "--", color=hue, linewidth=1.0)
    for which, line in ((0, "o-"), (-1, "--")):
        panels[2].plot(masked, [p.linkages[which].share for p in points], line, color=hue)
    if has_utility:
        panels[3].plot(accuracy, mean("utility"), "o-", color=hue)
