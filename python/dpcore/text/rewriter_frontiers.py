"""The table of rewriters: the usefulness of rewritten texts, and the success of attacks on them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import numpy as np

from .. import errors
from ..mechanisms.declarations import get_or_default
from ..mechanisms.texts import Rewriter, bound_object
from ..packages import has_all, require_module
from ..progress import Progress
from ..records import Record
from ..report import figures as drawing
from ..report.rows import Row
from ..suggestions import explain_argument_errors
from . import figure_tables, lm
from .corpus import words_of
from .inference import Attacker, Inference
from .inference.attackers import encode_each_part, encoder_of
from .linkage import LinkedOutputs
from .linking import link
from .redaction.attackers import ESTIMATOR_ANSWERS, NGramRegression, TextEstimator
from .redaction.masking import MASK, PolicyMechanism, policy_name, redact
from .redaction.policies import FrozenPolicy
from .studies import Study, read_certificate, require_public_texts_not_among
from .words.mechanism import WordMechanism

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ORIGINALS: Final = "not rewritten"
"""Name of the table row with the results of the original texts."""
_TEXTS_PER_CALL: Final = 256
_MAX_FEATURES: Final = 100_000
"""Largest number of n-grams in an attacker. The attacker uses the most frequent n-grams."""
_WORD_PATTERN: Final = rf"{re.escape(MASK.lower())}|\w+|[^\w\s]"
"""Regular expression for a mask token, a word or a punctuation mark in lower-case text."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewriterRow(Record, word="RewriterRow"):
    """Measurements of one rewriter (a function from text to text), after it rewrote each text once.

    Attributes:
        name: name of the rewriter.
        claim: text that states the claimed epsilon of the rewriter, such as "10". The text "10 a
            unit" means epsilon 10 per unit of distance between words. The text is "" if the
            rewriter claims no privacy.
        claimed: epsilon that the rewriter claims for any two texts. NaN if the rewriter makes no
            such claim.
        delta: delta of the claimed epsilon and of the certified lower bound on epsilon.
        utility: report on classifiers that predict the main label of each text from its rewrite.
        attack: report on attackers that infer the private attribute of each text from its rewrite.
            None if the user named no private attribute.
        bleu: BLEU of the rewritten test texts against the original texts, in [0, 1].
        similarity: cosine between the vector of a test text and the vector of its rewrite, averaged
            over the test texts. An encoder of texts computes the vectors.
        perplexity: perplexity of the rewritten test texts under a language model of public texts.
            None if the user gave neither public texts nor a model, or if the model does not know
            any word of the texts.
        linkages: results of attacks that look for the original of each rewritten test text among
            all original test texts. There is one result for each method of attack.
        empty: number of texts whose rewrite is empty.
    """

    name: str
    claim: str
    claimed: float
    delta: float
    utility: Inference
    attack: Inference | None
    bleu: float
    similarity: float
    perplexity: lm.Perplexity | None
    linkages: tuple[LinkedOutputs, ...]
    empty: int

    @property
    def certified(self) -> float:
        """Certified lower bound on the epsilon of this rewriter, from an attack, or NaN.

        The property is NaN if the rewriter claims no epsilon, or if no bound can be certified from
        the attack.
        """
        if self.attack is None or not self.claim:
            return np.nan
        return read_certificate(self.attack)

    @property
    def is_refuted(self) -> bool:
        """True if the certified lower bound on epsilon is above the claimed epsilon."""
        return self.certified > self.claimed


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewriterFrontier(figure_tables.FigureTable, word="dpcore.text.rewriter_frontier/1"):
    """Measurements of several rewriters and of the original texts, computed by `frontier`.

    A rewriter is a function from text to text. For an object `report` of this class,
    ``report["SanText 4"]`` has the measurements of the rewriter with this name.
    ``report["not rewritten"]`` has the measurements of the original texts.

    Attributes:
        rows: a `RewriterRow` for the original texts, then a `RewriterRow` for each rewriter.
        attribute: name of the private attribute that attackers infer. None without an
            attribute.
        sizes: numbers of training, validation and test texts.
        confidence: confidence level of each single interval and of each single certified lower
            bound.
        seed: if this seed is passed as `rng`, `frontier` gives the same report again. However, a
            rewriter without an argument `rng` may write different texts in the second call.
        partial: True if Ctrl-C stopped the function after some of the rewriters.
        seconds: run time in seconds; comparisons of two reports ignore it.
    """

    _INSTEAD: ClassVar[str] = "rows, or report[name]"

    rows: tuple[RewriterRow, ...]
    attribute: str | None
    sizes: tuple[int, int, int]
    confidence: float
    seed: int
    partial: bool = False
    seconds: float = field(compare=False, default=0.0)

    def __getitem__(self, name: str) -> RewriterRow:
        """Return the measurements of the rewriter with this name."""
        names = [row.name for row in self.rows]
        return self.rows[names.index(errors.choice("name", name, names))]

    @property
    def _title(self) -> str:
        sizes = " + ".join(f"{size:,}" for size in self.sizes)
        return f"Rewriters of {sizes} texts, seed {self.seed}"

    def _lines(self) -> list[Row]:
        return [("table", self._title), *figure_tables.FigureTable._lines(self)]

    def _list_rows(self) -> list[tuple[str, ...]]:
        methods = [linked.by for linked in self.rows[0].linkages]
        header = (
            "rewriter", "claim", "task", "interval", "BLEU", "similarity", "perplexity", "attack",
            "interval", "certified", *(f"linked by {name}" for name in methods), "by its kind",
        )  # fmt: skip
        rows: list[tuple[str, ...]] = [header]
        for row in self.rows:
            certified = figure_tables.format_number(row.certified, 2, "!" if row.is_refuted else "")
            shares = [f"{linked.share:.3f}" for linked in row.linkages[: len(methods)]]
            own = [f"{linked.share:.3f} ({linked.by})" for linked in row.linkages[len(methods) :]]
            rows.append((
                row.name, row.claim or "-", *figure_tables.format_measured(row.utility.accuracy),
                f"{row.bleu:.3f}", f"{row.similarity:.3f}",
                "-" if row.perplexity is None else f"{row.perplexity.value:.1f}",
                *figure_tables.score_and_interval(row.attack), certified, *shares, *(own or ["-"]),
            ))  # fmt: skip
        return rows

    def _list_notes(self) -> list[str]:
        return _list_rewriter_notes(self)

    def _plot(self, ax: Any) -> Figure:
        picture = drawing.panel_figure(ax, drawing.scale_figure_size(1.6, 0.62))
        panels = picture.subplots(1, 2 + (self.attribute is not None), sharey=True).ravel()
        heights, dotted = -np.arange(len(self.rows)), {"color": drawing.text_colour(), "ls": ":"}
        tasks = [row.utility.accuracy for row in self.rows]
        _draw_intervals(panels[0], tasks, heights)
        panels[0].axvline(self.rows[0].utility.floors[0].accuracy, **dotted)
        panels[0].set(xlabel="accuracy (dotted: majority)", title="Task")
        if self.attribute is not None:
            attacks = [row.attack.outcome.score for row in self.rows if row.attack is not None]
            _draw_intervals(panels[1], [figure for _, figure in attacks], heights)
            if attacks[0][0] == "AUC":
                panels[1].axvline(0.5, **dotted)
            shown = str(self.attribute).replace("$", r"\$")
            panels[1].set(xlabel=attacks[0][0], title=f"Attack on {shown}")
        first = [linked.by for linked in self.rows[0].linkages]
        names = dict.fromkeys([*first, *(own.by for row in self.rows for own in row.linkages)])
        for place, name in enumerate(names):
            # A marker that does not occur in every row is drawn below the others.
            shift = 0.0 if name in first else 0.25
            points = [
                (linked.share, height - shift)
                for row, height in zip(self.rows, heights, strict=True)
                for linked in row.linkages
                if linked.by == name
            ]
            hue, marker = drawing.cycle_colour(place), "osD^v"[place % 5]
            panels[-1].plot(*zip(*points, strict=True), marker, color=hue, label=name)
        panels[-1].set(xlabel="share of test texts", title="Linked", xlim=(-0.04, 1.04))
        panels[-1].legend(frameon=False, fontsize="small")
        panels[0].set_yticks(heights, [row.name for row in self.rows])
        return figure_tables.style_panels_and_legend(picture, panels)


def _draw_intervals(panel: Any, figures: Sequence[Any], heights: Any) -> None:
    low, value, high = np.array([[figure.low, figure.value, figure.high] for figure in figures]).T
    hue = drawing.cycle_colour(0)
    panel.errorbar(value, heights, xerr=np.abs([value - low, high - value]), fmt="o", color=hue)


class _RewriterSource(NamedTuple):
    """A rewriter as the user passed it, its function, its claim, and its method of `link`."""

    passed: Any
    rewriter: Rewriter
    by: str | None = None
    claim: str = ""
    claimed: float = np.nan
    delta: float = 0.0


def read_rewriters(value: Any) -> dict[str, Any] | None:
    """Return a dictionary from names to rewriters (functions from text to text), or None.

    The argument is a rewriter, a list of rewriters, a dictionary from names to rewriters, or an
    encoder. A function in a list or dictionary counts as a rewriter. A single function counts as an
    encoder (from texts to vectors), and the result is None.
    """
    if isinstance(value, Mapping):
        is_table = not all(callable(entry) or _can_rewrite(entry) for entry in value.values())
        return None if is_table or not value else dict(value)
    entries = value if isinstance(value, (list, tuple)) else [value]
    if not entries or (entries is not value and not _can_rewrite(value)):
        return None
    named: dict[str, Any] = {}
    for entry in entries:
        name = _name_rewriter(entry)
        same = sum(other.partition(" #")[0] == name for other in named)
        named[f"{name} #{same + 1}" if same else name] = entry
    return named


def _can_rewrite(value: Any) -> bool:
    kinds = Rewriter, WordMechanism, PolicyMechanism, FrozenPolicy
    return isinstance(value, kinds) or has_all(value, "rewrite", "rewriter")


def _name_rewriter(value: Any) -> str:
    if isinstance(value, PolicyMechanism):
        return f"{policy_name(value.policy)} {value.level:g}"
    if isinstance(value, FrozenPolicy):
        return policy_name(value)
    if not isinstance(value, Rewriter) and _can_rewrite(value):
        variant = f" {value.variant}" if has_all(value, "variant") else ""
        return f"{type(value).__name__}{variant} {value.epsilon:g}"
    rewriter = value if isinstance(value, Rewriter) else Rewriter(value)
    if bound_object(rewriter.rewrite) is None and has_all(rewriter.rewrite, "__name__"):
        return str(rewriter.rewrite.__name__)
    return rewriter.name.removeprefix("Rewriter(").removesuffix(")")


def _read_rewriter_and_claim(name: str, value: Any) -> _RewriterSource:
    """Return a rewriter with its claim, and the method of `link` that knows its mechanism."""
    if isinstance(value, (PolicyMechanism, FrozenPolicy)):
        policy: Any = value.policy if isinstance(value, PolicyMechanism) else value
        level = value.level if isinstance(value, PolicyMechanism) else None
        if isinstance(value, PolicyMechanism) and value.safe is not None:
            raise errors.invalid(name, "a policy that is not fitted on its input", value)

        def redact_texts(texts: list[str], rng: np.random.Generator) -> list[str]:
            return redact(texts, policy, level=level, rng=rng)

        return _RewriterSource(None, Rewriter(redact_texts), "places")
    if isinstance(value, WordMechanism):
        own = "likelihood" if value.has_table else "encoding"
        return _RewriterSource(value, value.rewriter, own, f"{value.epsilon:g} a unit")
    rewriter: Rewriter = value
    method: str | None = None
    if not isinstance(value, Rewriter):
        rewriter = value.rewriter if _can_rewrite(value) else Rewriter(value)
        method = "encoding" if get_or_default(value, "clean") is not None else None
    if rewriter.claim is None:
        return _RewriterSource(value, rewriter, method)
    claim, true = f"{rewriter.claim:g}", value.true_epsilon if has_all(value, "true_epsilon") else 0
    if true > rewriter.claim * (1.0 + 1e-9):
        claim = f"{claim} (true {true:.4g})"
    delta = float(get_or_default(value, "delta"))
    return _RewriterSource(value, rewriter, method, claim, rewriter.claim, delta)


def measure_rewriters(
    rewriters: Mapping[str, Any], study: Study, *, public: Any, similarity: Any, by: Any,
    seed: int, progress: bool | None,
) -> RewriterFrontier:  # fmt: skip
    """Measure rewriters (functions from text to text) on a corpus, and return a report.

    Args:
        rewriters: the rewriters by name.
        study: the corpus, its label and its private attribute.
        public: public texts or a language model, for the perplexity, or None.
        similarity: encoder of texts for the similarity of a text and its rewrite, or None.
        by: names of methods of `dpcore.text.link`, which search for the original texts.
        seed: seed of the rewriters and attackers.
        progress: True shows a progress bar, False shows no bar. None shows a bar for long work.
    """
    start = time.perf_counter()
    if ORIGINALS in rewriters:
        raise errors.invalid("encoder", f"rewriters of other names than {ORIGINALS!r}", ORIGINALS)
    sources = {ORIGINALS: _RewriterSource(None, Rewriter(list))}
    for name, value in rewriters.items():
        sources[name] = _read_rewriter_and_claim(f"encoder[{name!r}]", value)
    model = _given_or_fitted_public_model(public, study, seed)
    encode = None if similarity is None else encoder_of(similarity)
    texts = study.corpus.texts

    def measure_rows(bar: Progress) -> Iterator[RewriterRow]:
        for number, (name, source) in enumerate(sources.items()):
            draws = np.random.default_rng([seed, number])
            rewrites = list(texts) if not number else _rewrite_texts(source, texts, draws, bar)
            yield _RewrittenTexts(study, rewrites, seed, (model, encode, by)).measure(name, source)
            bar.advance(1)

    limits = require_module("threadpoolctl", "frontier").threadpool_limits
    with Progress("frontier", len(sources), progress) as bar, limits(1):
        rows, partial = figure_tables.collect_until_interrupt(measure_rows(bar))
    return RewriterFrontier(
        tuple(rows), study.attribute, rows[0].utility.sizes, study.confidence, seed, partial,
        time.perf_counter() - start,
    )  # fmt: skip


def _rewrite_texts(
    source: _RewriterSource, texts: Sequence[str], rng: Any, bar: Progress
) -> list[str]:
    """Rewrite every text once, and return the rewritten texts in the same order."""
    rewrites = list[str]()
    for start in range(0, len(texts), _TEXTS_PER_CALL):
        begun = time.perf_counter()
        rewrites += source.rewriter.apply(texts[start : start + _TEXTS_PER_CALL], rng)
        if start == 0:
            each = (time.perf_counter() - begun) / len(rewrites)
            bar.forecast(f"{len(texts):,} texts to rewrite", each * len(texts))
    return rewrites


def _given_or_fitted_public_model(public: Any, study: Study, seed: int) -> lm.NextWordModel | None:
    """Return the public language model of the user, or fit a model on public texts."""
    if public is None or isinstance(public, lm.NextWordModel):
        return public
    texts = require_public_texts_not_among(public, study.corpus.texts)
    if len(texts) < 2:
        raise errors.invalid("public", "texts, at least two, or a text.lm.NextWordModel", public)
    cut = max(1, len(texts) // 10)
    settings: dict[str, Any] = {"optimiser": "adam", "rng": seed, "progress": False}
    settings["batch"] = min(64, len(texts) - cut)
    return lm.fit(texts[cut:], texts[:cut], **settings)


class _RewrittenTexts:
    """Texts that were rewritten once by one rewriter, with the methods that measure them.

    Args:
        study: the original texts, the main label and the private attribute.
        rewrites: one rewritten text for each original text, in the same order.
        seed: seed of the attacks.
        settings: public language model, encoder for similarities, and methods of
            `dpcore.text.link`.
    """

    def __init__(
        self, study: Study, rewrites: list[str], seed: int, settings: tuple[Any, Any, Any]
    ) -> None:
        self.study, self.rewrites, self.seed = study, rewrites, seed
        self.model, self.encode, self.by = settings
        self.rows = np.arange(len(rewrites), dtype=np.float64)[:, np.newaxis]
        places = np.flatnonzero(np.asarray(study.corpus.split) == "test").tolist()
        self.originals = [study.corpus.texts[place] for place in places]
        self.tested = [rewrites[place] for place in places]

    def measure(self, name: str, source: _RewriterSource) -> RewriterRow:
        """Compute all measurements of the rewritten texts."""
        study, attack = self.study, None
        classifiers = self._list_word_and_char_ngram_attackers(is_number=False)
        if study.attribute is not None:
            column = study.corpus.attribute(study.attribute)
            if study.attackers is None:
                attackers = self._list_word_and_char_ngram_attackers(column.dtype.kind == "f")
                if len(set(column.tolist())) == 2:
                    attackers.append(
                        self._make_text_attacker(NGramRegression(), "runs and places of masks")
                    )
            else:
                attackers = self._attackers_of_text_estimators()
            attack = study.infer_attribute(self.rows, source.delta, self.seed, attackers=attackers)
        own = [source.by] if source.by and self.by is None else []
        methods = list(self.by) if isinstance(self.by, (list, tuple)) else [self.by or "words"]
        linkage = link(source.passed, self.originals, self.tested, by=[*methods, *own],
                       confidence=study.confidence)  # fmt: skip
        return RewriterRow(
            name, source.claim, source.claimed, source.delta,
            study.predict_label(self.rows, self.seed, classifiers), attack,
            compute_bleu(self.tested, self.originals), self._measure_similarity(),
            self._measure_perplexity(), linkage.linkages,
            sum(not text.strip() for text in self.rewrites),
        )  # fmt: skip

    def _list_word_and_char_ngram_attackers(self, is_number: bool) -> list[Attacker]:
        """Return two attackers: a linear model on word n-grams, and one on character n-grams."""
        extraction, linear, pipeline = (
            require_module(f"sklearn.{name}", "frontier")
            for name in ("feature_extraction.text", "linear_model", "pipeline")
        )
        kinds: dict[str, dict[str, Any]] = {
            "words": {"token_pattern": _WORD_PATTERN, "ngram_range": (1, 3)},
            "characters": {"analyzer": "char", "ngram_range": (1, 5), "lowercase": False},
        }
        attackers = []
        for kind, settings in kinds.items():
            settings |= {"sublinear_tf": True, "max_features": _MAX_FEATURES}
            model = linear.Ridge() if is_number else linear.LogisticRegression(C=10.0, max_iter=300)
            estimator = pipeline.make_pipeline(extraction.TfidfVectorizer(**settings), model)
            attackers.append(
                self._make_text_attacker(estimator, f"{type(model).__name__} on {kind}")
            )
        return attackers

    def _make_text_attacker(self, estimator: Any, name: str) -> Attacker:
        return Attacker(TextEstimator(estimator, self.rewrites), name=name)

    def _attackers_of_text_estimators(self) -> list[Attacker]:
        """Check and return the attackers that the user passed; they receive texts."""
        passed = self.study.attackers
        entries = passed if isinstance(passed, (list, tuple)) else [passed]
        for entry in entries or [None]:
            answers = [name for name in ("scores", *ESTIMATOR_ANSWERS[:3]) if has_all(entry, name)]
            if isinstance(entry, (Attacker, type)) or not has_all(entry, "fit") or not answers:
                requirement = "attackers of texts, with fit(texts, truth) and scores(texts)"
                raise errors.mistyped("attackers", requirement, passed)
        return [self._make_text_attacker(entry, type(entry).__name__) for entry in entries]

    def _measure_similarity(self) -> float:
        """Return the mean cosine between the vectors of a test text and of its rewrite.

        The cosine is 0 for a text that is empty after rewriting.
        """
        pairs = [(a, b) for a, b in zip(self.originals, self.tested, strict=True) if b.strip()]
        if not pairs:
            return 0.0
        sides = [list(side) for side in zip(*pairs, strict=True)]
        if self.encode is not None:
            first, second = encode_each_part(self.encode, sides, self.seed)
            norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
            cosines = (first * second).sum(axis=1) / np.where(norms > 0.0, norms, 1.0)
        else:
            extraction = require_module("sklearn.feature_extraction.text", "frontier")
            weights = extraction.TfidfVectorizer(token_pattern=_WORD_PATTERN)
            train = weights.fit(self.study.corpus.texts)
            cosines = train.transform(sides[0]).multiply(train.transform(sides[1])).sum(axis=1)
        return float(cosines.sum() / len(self.originals))

    def _measure_perplexity(self) -> lm.Perplexity | None:
        texts = [text for text in self.tested if text.strip()]
        if self.model is None or not any(len(words_of(text)) > 1 for text in texts):
            return None
        model: lm.NextWordModel = self.model
        return model.perplexity(texts, confidence=self.study.confidence, rng=self.seed)


def compute_bleu(texts: Sequence[str], originals: Sequence[str]) -> float:
    """Compute the BLEU score of texts against their originals, in [0, 1].

    The package sacrebleu computes the score from the words that `words_of` finds in the texts. If
    no n-gram of a length n matches, the number of matches is set to 1/2 for the first such length,
    to 1/4 for the second such length, and so on.

    Source:
        Papineni et al. (2002), section 2.3; Post (2018) for sacrebleu.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("sacrebleu"):
        ...     assert compute_bleu(["the cat sat on a mat"], ["The cat sat on a mat."]) == 1.0
    """
    sacrebleu = require_module("sacrebleu", "frontier")
    lists = [[" ".join(words_of(text)) for text in side] for side in (texts, originals)]
    score = sacrebleu.corpus_bleu(lists[0], [lists[1]], tokenize="none").score
    return min(1.0, float(score) / 100.0)


def _list_rewriter_notes(report: RewriterFrontier) -> list[str]:
    first, confidence = report.rows[0], f"{100.0 * report.confidence:g} %"
    linked = first.linkages[0]
    notes = [
        f"task: accuracy on {report.sizes[2]:,} test texts, majority "
        f"{first.utility.floors[0].accuracy:.3f}; classifiers are trained on rewritten texts and "
        "chosen on validation",
        "BLEU and similarity (mean cosine) are of test texts and their rewrites",
        f"linked: share of test texts whose original is ranked first of {linked.texts:,}, floor "
        f"{linked.floor:.3f}; by its kind: by the method that knows the mechanism; another "
        "score may link more",
        "claim: what the rewriter states, for any two texts, of word mechanisms per unit of "
        "distance between words; certified: for any two texts, from the attack, - without a claim, "
        "! where it refutes the claim",
        "a claim covers one rewrite of each text, and none of the texts that a rewriter is fitted "
        "to; whoever chooses a rewriter by this table has released more than it covers",
        f"usual attackers and classifiers read the {_MAX_FEATURES:,} most frequent runs of words "
        "and of characters, and for an attribute of two values also all runs, by a hash",
        f"intervals and certificates hold at {confidence}, each by itself",
    ]
    if first.attack is not None:
        notes.insert(2, (
            f"attack: {first.attack.outcome.score[0]} of the best of {len(first.attack.tried)} "
            f"attackers on {report.attribute}, chosen on validation; ! = above the floor"
        ))  # fmt: skip
    models = [(row.name, row.perplexity) for row in report.rows if row.perplexity is not None]
    if models:
        notes.append("perplexity: under the public model; masks are not predicted")
    notes += [f"{name}: {100.0 * model.unknown:.0f} % of the words are unknown to the public model"
              for name, model in models if model.unknown >= 0.005]  # fmt: skip
    notes += [f"{row.name}: {row.empty:,} texts are rewritten to nothing"
              for row in report.rows if row.empty]  # fmt: skip
    return [*notes, f"INTERRUPTED after {len(report.rows)} rows"] if report.partial else notes
