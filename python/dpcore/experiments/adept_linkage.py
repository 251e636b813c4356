"""Attacks that link texts rewritten by ADePT to their originals, for several true epsilons.

ADePT encodes a text as a vector, adds noise to the vector, and decodes a rewritten text. The first
attacker is the attacker of appendix C of the ADePT paper. This attacker knows the auto-encoder and
a list of candidate texts, but not the noise. The attacker ranks the candidates by the noisy vector
or by the rewritten text. For comparison, the experiment also links outputs without noise. To show
how often an original is found by chance, the experiment also counts a wrong candidate as the
original of each output.

A second attacker does not know a list that contains the originals. This attacker draws candidates
from a next-word model. The training of this model did not use the originals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ..errors import choice
from ..mechanisms import positive
from ..report.figures import BLUE, GREY, RED, restyle_figure
from ..report.shown import Shown
from ..text import DocumentLinkage, LinkedOutputs, link, lm, words_of
from .adept_rewrite import DELTA, StudyTexts, corpus_title, read_or_generate_corpora
from .base import SEED, Column, Settings, align_columns, encode_fields, setting
from .drawing import TEXT, Axes, Figure, add_legend, empty_figure, style_axes
from .running import Tabled, cell_seed, run_jobs, time_run, training_of_model

NAME = "adept-linkage"
VARIANTS: Final = ("published", "scaled", "gaussian")
"""Variants of the noise. All variants clip vectors to the same norm, so all variants use the same
trained model."""
_SIZES: Final = {False: (8, 64, 1000, 200, 2000, 20), True: (15, 48, 100, 60, 200, 5)}
"""Six numbers for `quick` False and True: epochs, entries of a hidden state, candidates, outputs to
link, candidates drawn from the next-word model, and victims."""
_VALID_TEXTS: Final = 100
"""Number of public texts that are held out to choose the epoch of the next-word model."""
_MODEL_EPOCHS: Final = 4
_VECTOR_METHODS: Final = ("likelihood", "encoding")
_TEXT_METHODS: Final = ("encoding", "words")


@dataclass(frozen=True, slots=True, repr=False)
class Victims(Shown):
    """Results of an attacker who guesses the original of a rewritten text.

    The attacker has no list of real texts that contains the original. Instead, the attacker draws
    candidates from a next-word model. The auto-encoder of the rewriter encodes each candidate and
    the rewritten text as vectors. The best candidate has the smallest distance between the two
    vectors.

    Args:
        rank: rank of the original text (median over the rewritten texts), if the original text is
            added to the candidates. Rank 1 is the best.
        shared: mean number of distinct words that the best candidate and the original text have in
            common, if the original text is not among the candidates.
        random: mean number of distinct words that a random candidate and the original text have in
            common.
    """

    rank: float
    shared: float
    random: float


@dataclass(frozen=True, slots=True, repr=False)
class Row(Shown):
    """Results of attacks on a text rewriter, for one variant of its noise and one claimed epsilon.

    The rewriter encodes a text as a vector, adds noise, and decodes a rewritten text. An attacker
    looks for the original of an output in a list of candidate texts.

    Args:
        variant: variant of the noise, or "no noise".
        claimed: claimed epsilon, or inf without noise.
        true: true epsilon of the noise, valid for any two texts, or inf without noise.
        vector: results if the attacker sees the noisy vectors. The candidates are ranked in two
            ways: by the likelihood of the noisy vector, and by the distance between the noisy
            vector and the vector of the candidate.
        text: results if the attacker sees the rewritten texts. The candidates are ranked in two
            ways: by the distance between the vectors of the rewritten text and of the candidate,
            and by the words that these two texts have in common.
        control: results by chance, for comparison. For these results, a wrong candidate counts as
            the original of each output. The first entry is for vectors, ranked by likelihood. The
            second entry is for texts, ranked by the distance of vectors.
        victims: results of an attacker who draws the candidates from a next-word model.
    """

    variant: str
    claimed: float
    true: float
    vector: DocumentLinkage
    text: DocumentLinkage
    control: tuple[DocumentLinkage, DocumentLinkage]
    victims: Victims


@dataclass(frozen=True, slots=True, repr=False)
class Config(Settings):
    """Options of the experiment that links texts rewritten by ADePT to their originals.

    Args:
        seed: int in [0, 2**63). The experiment derives separate seeds for the training and for the
            noise from this seed.
        data: path of the folder `atis` of the ATIS corpus, or of its parent folder. By default, the
            experiment generates texts.
        quick: True for a short run that only shows that the experiment works.
        confidence: confidence level of each interval separately, not of all intervals together.
        claimed: epsilons that the noise claims to have, in the order of the rows of the table.
        variants: variants of the noise: "published" (too small for the claimed epsilon), "scaled"
            (the published noise, increased until the claim is true) or "gaussian".

    Raises:
        TypeError: if a field has the wrong type.
        ValueError: if a value is out of range.

    Example:
        >>> Config(quick=True).claimed
        (10.0, 1000.0)
    """

    seed: int = SEED
    data: str | None = None
    quick: bool = False
    confidence: float = 0.95
    claimed: tuple[float, ...] = setting(
        (10.0, 30.0, 100.0, 300.0, 1000.0), positive, quick=(10.0, 1000.0)
    )
    variants: tuple[str, ...] = setting(VARIANTS, choice, VARIANTS)

    @property
    def full(self) -> bool:
        """Always False, because the experiment uses only one corpus."""
        return False


@dataclass(frozen=True, slots=True)
class _Encoded:
    """Stored vectors of texts without noise."""

    table: dict[str, npt.NDArray[Any]]

    def clean(self, texts: Sequence[str]) -> npt.NDArray[Any]:
        return np.stack([self.table[text] for text in texts])


@dataclass(frozen=True, slots=True)
class _Study:
    """The trained auto-encoder, the candidates, and the texts drawn from a next-word model."""

    model: Any
    candidates: tuple[str, ...]
    drawn: tuple[str, ...]
    encoded: _Encoded
    outputs: int
    victims: int
    config: Config

    def link_to_candidates(self, outputs: Any, by: Sequence[str], shift: int, model: Any) -> Any:
        """Link outputs to candidates, as if candidate i + `shift` were the original of output i."""
        truth = (np.arange(self.outputs) + shift) % len(self.candidates)
        options: Any = {"truth": truth, "confidence": self.config.confidence}
        return link(model, self.candidates, outputs, by=list(by), **options)

    def measure(self, variant: str, claimed: float) -> Row:
        """Rewrite texts with one variant of the noise, and link the outputs to the candidates."""
        model, seed = self.model, cell_seed(self.config.seed, f"{variant}/{claimed!r}")
        texts = self.candidates[: self.outputs]
        if variant == "no noise":
            vectors, true = model.clean(texts).detach().numpy(), np.inf
        else:
            delta = DELTA if variant == "gaussian" else 0.0
            model = model.renoised(claimed, variant=variant, delta=delta)
            vectors, true = model.encode(texts, rng=seed), model.true_epsilon
        written, step = model.decode(vectors), len(self.candidates) // 2
        each = ((vectors, _VECTOR_METHODS), (written, _TEXT_METHODS))
        vector, text, *control = (
            self.link_to_candidates(outputs, by[:methods], shift, model)
            for shift, methods in ((0, 2), (step, 1))
            for outputs, by in each
        )
        victims = self.link_to_lm_samples(written[: self.victims], seed)
        return Row(variant, claimed, true, vector, text, (control[0], control[1]), victims)

    def link_to_lm_samples(self, rewritten: Sequence[str], seed: int) -> Victims:
        """Link rewritten texts to the candidates that were drawn from the next-word model."""
        different = [text for text in set(rewritten) if text.strip()]
        table = dict(zip(different, self.model.clean(different).detach().numpy(), strict=True))
        encoded = _Encoded(self.encoded.table | table)
        ranks = [
            link(encoded, (*self.drawn, own), [text], by="encoding", truth=[len(self.drawn)])
            for own, text in zip(self.candidates, rewritten, strict=False)
        ]
        absent = np.full(len(rewritten), -1)
        guesses = link(encoded, self.drawn, rewritten, by="encoding", truth=absent)[
            "encoding"
        ].guesses
        random = np.random.default_rng(seed).integers(len(self.drawn), size=len(rewritten))
        shared, by_chance = (
            float(np.mean([
                len({*words_of(self.drawn[row])} & {*words_of(own)})
                for row, own in zip(rows, self.candidates, strict=False)
            ]))
            for rows in (guesses, random)
        )  # fmt: skip
        rank = float(np.median([report["encoding"].median_rank for report in ranks]))
        return Victims(rank, shared, by_chance)


def _train_and_draw_texts(texts: StudyTexts, config: Config, progress: bool | None) -> _Study:
    from ..text import ADePTModel

    epochs, hidden, candidates, outputs, n_drawn, victims = _SIZES[config.quick]
    model = ADePTModel(1.0, variant="scaled", hidden=hidden, embedding=hidden // 2)
    seed = cell_seed(config.seed, f"train/{texts.name}")
    model.fit(list(texts.train), epochs=epochs, pair=False, rng=seed, progress=progress)
    training_of_model(model)
    candidates_known = tuple(dict.fromkeys(texts.spaced_once))[:candidates]
    rest, valid = texts.train[:-_VALID_TEXTS], texts.train[-_VALID_TEXTS:]
    recipe: dict[str, Any] = {"optimiser": "adam", "epochs": _MODEL_EPOCHS, "progress": progress}
    words = lm.fit(list(rest), list(valid), rng=seed, **recipe)
    drawn = tuple(words.sample(n_drawn, seed, starts=texts.train))
    named = [*dict.fromkeys((*drawn, *candidates_known[:victims]))]
    table = dict(zip(named, model.clean(named).detach().numpy(), strict=True))
    return _Study(
        model,
        candidates_known,
        drawn,
        _Encoded(table),
        min(outputs, len(candidates_known)),
        victims,
        config,
    )


@time_run("torch", one_thread=True)
def run(config: Config, *, threads: int | None = None, progress: bool | None = None) -> Result:
    """Train the models on public texts, rewrite other texts, and attack the rewritten texts.

    The models are the auto-encoder of ADePT, which rewrites texts, and a next-word model. An
    attacker tries to find the original of each rewritten text in a list of candidates.

    Args:
        config: options of the experiment.
        threads: has no effect: torch always uses one thread in this experiment.
        progress: True to show a progress bar. By default, dpcore shows the bar for long work on a
            terminal or in a notebook.

    Returns:
        The result, with one row for each pair of a variant and a claimed epsilon, and one row
        without noise.

    Raises:
        ModuleNotFoundError: if torch is missing. The message states how to install it.
        FileNotFoundError: if a file of the data is missing.
        KeyboardInterrupt: if the user presses Ctrl-C before the first row is complete.

    Source:
        Krishna, Gupta and Dupuy (2021), appendix C. The fault of the published noise: Habernal
        (2021), theorem 1.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch"):
        ...     config = Config(quick=True, claimed=(1000.0,), variants=("published",))
        ...     noisy, plain = run(config, progress=False).rows
        ...     assert plain.vector["encoding"].share == 1.0
    """
    [texts] = read_or_generate_corpora(config)
    study = _train_and_draw_texts(texts, config, progress)
    jobs = [(variant, claimed) for variant in config.variants for claimed in config.claimed]
    jobs.append(("no noise", np.inf))
    rows, partial = run_jobs("linking", jobs, study.measure, progress)
    return Result(config, corpus_title(texts), tuple(rows), partial=partial)


@dataclass(frozen=True, slots=True, repr=False)
class Result(Tabled[Config]):
    """Results of the attacks on texts rewritten by ADePT.

    Args:
        config: options of the run.
        corpus: name of the corpus in the heading of the table.
        rows: one row for each pair of a variant of the noise and a claimed epsilon. The last row is
            for outputs without noise.
    """

    corpus: str
    rows: tuple[Row, ...]

    def table(self) -> str:
        """Return the results as plain text."""
        linked = self.rows[0].vector.linkages[0]
        candidates, floor = self.rows[0].vector.candidates, linked.floor
        return self.join_parts(
            f"ADePT: {linked.texts:,} outputs linked among {candidates:,} candidates, "
            f"{self.corpus}; floor {floor:.4f}; seed {self.config.seed}.\n"
            "The attacker knows the auto-encoder, not the noise. On z: by the likelihood of the "
            "noisy vector, and by its distance. On text: by the vector of the rewritten text, and "
            f"by words. Intervals at {100 * self.config.confidence:g} %, each on its own.\n"
            "Others: outputs of other texts, on z and on text. Victims among utterances that a "
            "next-word model drew: median rank where the truth is included once; left out, words "
            f"that the first guess and a random one share with it. 'gaussian' at delta {DELTA:g}.",
            align_columns(_COLUMNS, self.rows),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the result as a dict of JSON values."""
        return self.make_record(
            corpus=self.corpus, delta=DELTA, rows=[_row_to_dict(row) for row in self.rows]
        )

    def plot(self, ax: Any = None) -> Figure:
        """Draw the share of outputs whose original the attacker finds, against the true epsilon."""
        picture = empty_figure(2.9, ax)
        left, right = picture.subplots(1, 2, sharey=True)
        for variant, colour in zip(VARIANTS, (RED, BLUE, "#2e7d32"), strict=True):
            rows = [row for row in self.rows if row.variant == variant]
            for axes, field, by in ((left, "vector", "likelihood"), (right, "text", "encoding")):
                _draw_linked_share_by_true_epsilon(axes, rows, field, by, colour, variant)
        for axes, field, title in ((left, "vector", "noisy vector"), (right, "text", "text")):
            place = int(field == "text")
            noisy = sorted(self.rows[:-1], key=lambda row: row.true) or list(self.rows)
            others = [row.control[place].linkages[0].share for row in noisy]
            true = [row.true for row in noisy]
            axes.plot(true, others, ":", color=GREY, label="outputs of other texts")
            if self.rows[-1].variant == "no noise":
                plain = getattr(self.rows[-1], field)["encoding"].share
                axes.axhline(plain, color=GREY, linewidth=0.7, label="no noise")
            axes.set_xscale("log")
            style_axes(axes, "true epsilon, for any two texts", title=f"by the {title}")
        left.set_ylabel("share linked", fontsize=TEXT)
        add_legend(picture, left, 5, "upper")
        return restyle_figure(picture)


def _draw_linked_share_by_true_epsilon(
    axes: Axes, rows: Sequence[Row], field: str, linkage_method: str, colour: str, label: str
) -> None:
    linked = [getattr(row, field)[linkage_method] for row in rows]
    ends = np.array(
        [[cell.share - cell.interval[0], cell.interval[1] - cell.share] for cell in linked]
    )
    points = [row.true for row in rows], [cell.share for cell in linked]
    style: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 3.5, "linewidth": 1.0}
    axes.errorbar(*points, yerr=np.reshape(ends, (-1, 2)).T, label=label, elinewidth=0.7, **style)


def _linkage_to_dict(linked: LinkedOutputs) -> dict[str, Any]:
    low, high = linked.interval
    entries = {"by": linked.by, "right": linked.right, "texts": linked.texts, "share": linked.share}
    entries |= {"low": low, "high": high, "floor": linked.floor}
    return entries | {"median_rank": linked.median_rank}


def _row_to_dict(row: Row) -> dict[str, Any]:
    parts = {"vector": row.vector, "text": row.text}
    parts |= dict(zip(("other_vector", "other_text"), row.control, strict=True))
    linked = {name: list(map(_linkage_to_dict, part.linkages)) for name, part in parts.items()}
    entries = {"variant": row.variant, "claimed": row.claimed, "true": row.true}
    return entries | linked | {"victims": encode_fields(row.victims)}


def _format_linked_share(linked: LinkedOutputs) -> str:
    low, high = linked.interval
    return f"{linked.share:.3f} [{low:.3f}, {high:.3f}]"


def _format_true_epsilon(row: Row) -> str:
    return f"{row.true:.5g}{'!' if row.true > row.claimed * (1.0 + 1e-9) else ''}"


def _format_rank_and_shared_words(victims: Victims) -> str:
    return f"rank {victims.rank:g}; {victims.shared:.2f}, {victims.random:.2f}"


_COLUMNS = (
    Column("variant", "variant", left=True),
    Column("claimed", "claimed", "g"),
    Column("true", _format_true_epsilon),
    Column("on z", lambda row: row.vector["likelihood"], _format_linked_share),
    Column("distance", lambda row: row.vector["encoding"].share, ".3f"),
    Column("on text", lambda row: row.text["encoding"], _format_linked_share),
    Column("words", lambda row: row.text["words"].share, ".3f"),
    Column("others", lambda row: row.control[0].linkages[0].share, ".3f"),
    Column("", lambda row: row.control[1].linkages[0].share, ".3f"),
    Column("victims", "victims", _format_rank_and_shared_words),
)
