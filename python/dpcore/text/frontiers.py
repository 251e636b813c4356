"""The frontier of a private encoder: how useful its vectors are, and what they disclose."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

import numpy as np

from .. import errors
from ..mechanisms import positive
from ..packages import require_module
from ..progress import Progress
from ..records import Record
from ..report import figures as drawing
from ..report.page import page_of_table
from ..report.rows import Row
from ..streams import Rng, seed_of
from ..suggestions import suggest_arguments
from . import figure_tables
from .corpus import Corpus
from .inference import Inference, Measured
from .rewriter_frontiers import measure_rewriters, read_rewriters
from .studies import Study, read_certificate, read_public_texts, read_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS_QUANTILE: Final = 0.25
"""Quantile of the distances of public rows from their mean. The quantile is the radius at which
vectors are clipped. On SNIPS, quantiles from .1 to .5 give the same utility within .02; larger
quantiles give a lower utility."""

_TEXTS_PER_UPDATE: Final = 256
"""Number of texts that are encoded between two updates of the progress bar."""
_PROJECTION_DIRECTIONS: Final = ("principal", "random")
_NOISE_NAMES: Final = ("best", "laplace", "l2_laplace", "gaussian")
"""Noises that `PrivateEncoder` can calibrate. Its module is not imported here, because it needs
torch."""


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrontierCell(Record, word="FrontierCell"):
    """Figures of private vectors at one epsilon and one number of dimensions.

    Attributes:
        epsilon: claimed epsilon for any two texts; inf for vectors without noise.
        dim: number of dimensions of a released vector.
        noise: the noise with its scale, in words; "none" without noise.
        radius: radius at which vectors are clipped; NaN without clipping.
        utility: prediction of the main label from the vectors of the test texts.
        attack: inference of the private attribute, or None without a private attribute.
        worst_loss: exact loss at `delta` between the two texts of the corpus with the largest
            distance; inf without noise.
        signal: share of the energy of a noisy vector that comes from the clean vector; 1 without
            noise.
    """

    epsilon: float
    dim: int
    noise: str
    radius: float
    utility: Inference
    attack: Inference | None
    worst_loss: float
    signal: float

    @property
    def attack_score(self) -> Measured | None:
        """Score of the attack: the area under the ROC curve if the attribute has two values.

        The score is the accuracy if the attribute has more values, and the correlation if it is
        numeric. It is None without an attack.
        """
        return None if self.attack is None else self.attack.outcome.score[1]

    @property
    def certified(self) -> float:
        """Certified lower bound on epsilon; NaN if no bound can be certified."""
        return np.nan if self.attack is None else read_certificate(self.attack)

    def __repr__(self) -> str:
        """Return one line: epsilon, dimensions, and the utility."""
        return (
            f"<FrontierCell at epsilon {self.epsilon:g} in {self.dim} dimensions: utility "
            f"{self.utility.accuracy.value:.3f}>"
        )


@suggest_arguments
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frontier(figure_tables.FigureTable, word="dpcore.text.frontier/2"):
    """Utility and attack at each epsilon and number of dimensions; created by `frontier`.

    ``found[8.0, 16]`` is the cell at epsilon 8 in 16 dimensions, and ``found[inf, 16]`` is the cell
    without noise in 16 dimensions.

    Attributes:
        cells: figures in the order of the dimensions. For each dimension, the cell without noise
            comes first, then the cells in the order of epsilon.
        attribute: name of the private attribute, or None.
        sizes: numbers of texts of train, valid and test.
        public: number of public rows.
        directions: "principal" or "random".
        delta: delta of every claim.
        confidence: confidence of each interval and of each certificate separately.
        seed: seed that repeats the frontier.
        partial: True if Ctrl-C stopped the run after some of the cells.
        seconds: run time; ignored in comparisons.
    """

    _INSTEAD: ClassVar[str] = "cells, or frontier[epsilon, dim]"
    _ROW_NAME: ClassVar[str] = "{} dimensions, epsilon {}"
    _LEFT: ClassVar[tuple[int, ...]] = ()

    cells: tuple[FrontierCell, ...]
    attribute: str | None
    sizes: tuple[int, int, int]
    public: int
    directions: str
    delta: float
    confidence: float
    seed: int
    partial: bool = False
    seconds: float = field(compare=False, default=0.0)

    @property
    def dims(self) -> tuple[int, ...]:
        """Numbers of dimensions, in their order."""
        return tuple(dict.fromkeys(cell.dim for cell in self.cells))

    @property
    def floor(self) -> float:
        """Share of the most frequent main label, which a guess without the texts reaches."""
        return self.cells[0].utility.floors[0].accuracy

    def of(self, dim: int) -> tuple[FrontierCell, ...]:
        """Return the cells for one number of dimensions by epsilon; the last has no noise."""
        if dim not in self.dims:
            raise errors.invalid("dim", f"one of {', '.join(map(str, self.dims))}", dim)
        cells = [cell for cell in self.cells if cell.dim == dim]
        return tuple(sorted(cells, key=lambda cell: cell.epsilon))

    def __getitem__(self, key: tuple[float, int]) -> FrontierCell:
        """Return the cell at an epsilon and a number of dimensions."""
        epsilon, dim = key
        cells = {cell.epsilon: cell for cell in self.of(dim)}
        if epsilon not in cells:
            raise errors.invalid(
                "epsilon", f"one of {', '.join(map('{:g}'.format, cells))}", epsilon
            )
        return cells[epsilon]

    @property
    def _title(self) -> str:
        end = f", delta {self.delta:g}" if self.delta else ""
        end = f"{self.directions} directions{end}, seed {self.seed}"
        return f"Private vectors of {' + '.join(map('{:,}'.format, self.sizes))} texts, {end}"

    def __repr__(self) -> str:
        """Return one line."""
        tested = f"{self.sizes[2]:,} test texts"
        return f"<Frontier of {len(self.cells)} cells, {tested}, seed={self.seed}>"

    def _list_rows(self) -> list[tuple[str, ...]]:
        return [_FRONTIER_HEADER, *map(_list_figures, self.cells)]

    def _list_answers(self) -> list[Row]:
        """Return sentences on the utility and on the attack, with a figure for every epsilon."""
        claims = sorted({cell.epsilon for cell in self.cells} - {np.inf})
        by = {epsilon: [c for c in self.cells if c.epsilon == epsilon] for epsilon in claims}
        useful, inferred = [], []
        for epsilon, cells in by.items():
            best = max(cells, key=lambda cell: cell.utility.accuracy.value)
            figure = "not shown to be more than the majority"
            if best.utility.above_floor:
                figure = f"{best.utility.accuracy.value:.2f} in {best.dim} dimensions"
            useful.append(f"epsilon {epsilon:g}: {figure}")
            attacks = [(cell.dim, cell.attack) for cell in cells if cell.attack is not None]
            dims = ", ".join(str(dim) for dim, attack in attacks if attack.above_floor)
            if dims:
                inferred.append(f"epsilon {epsilon:g} in {dims} dimensions")
        answers = [("What are the vectors good for?", "; ".join(useful) or "no claim was measured")]
        if self.attribute is not None:
            nowhere = "at no epsilon that was tried, by the attackers that were tried"
            answers.append((f"Is {self.attribute} inferred?", "; ".join(inferred) or nowhere))
        return answers

    def _list_notes(self) -> list[str]:
        fitted = "mean and radius" if self.directions == "random" else "directions, mean and radius"
        cell = self.cells[0]
        notes = [
            f"utility: accuracy on {self.sizes[2]:,} test texts of the best of "
            f"{len(cell.utility.tried)} classifiers, chosen on validation, majority "
            f"{self.floor:.3f}; signal: share of a vector's energy that is no noise; worst loss: "
            "exact, of the two texts that are farthest apart",
            f"{fitted} are of {self.public:,} rows that must be public: no claim covers them",
            "epsilon covers one release of each text; whoever chooses epsilon or dimensions by the "
            "utility of private texts has released more than it covers",
        ]
        if cell.attack is not None:
            best = f"attack: {cell.attack.outcome.score[0]} of the best of {len(cell.attack.tried)}"
            notes.append(
                f"{best} attackers on {self.attribute}, chosen on validation; ! = above the floor; "
                "another attacker may find more"
            )
        confidence = f"{100.0 * self.confidence:g} %"
        notes.append(f"intervals and certificates hold at {confidence}, each by itself")
        return [*notes, f"INTERRUPTED after {len(self.cells)} cells"] if self.partial else notes

    def _to_page(self) -> str:
        figures = [
            ("without noise", f"{max(c.utility.accuracy.value for c in self.cells):.3f}"),
            ("majority", f"{self.floor:.3f}"),
            ("test texts", f"{self.sizes[2]:,}"),
        ]
        return page_of_table(
            self, self._title, f"{len(self.cells)} releases",
            "Private vectors of texts: utility and attack",
            "No figure here is a guarantee but epsilon itself: another attacker may find more.",
            figures, self._list_answers(), ("Utility, attack and loss", 3.6),
            self._list_rows(), self._list_notes(),
        )  # fmt: skip

    def _plot(self, ax: Any) -> Figure:
        return _draw_frontier(self, ax)


@suggest_arguments
def frontier(
    encoder: Any,
    corpus: Any,
    *,
    epsilons: Any = None,
    dims: Any = None,
    public: Any = None,
    directions: Literal["principal", "random"] = "principal",
    label: str | None = None,
    attribute: str | None = None,
    delta: float = 0.0,
    noise: Any = "best",
    attackers: Any = None,
    similarity: Any = None,
    by: Any = None,
    confidence: float = 0.95,
    rng: Rng = None,
    progress: bool | None = None,
) -> Any:
    """Measure the utility and the disclosure of private vectors, or of rewritten texts.

    Every text is encoded once. For each number of dimensions, the vectors are projected on
    directions of the public rows. Then they are centred on the mean of the public rows and clipped
    at the first quartile of the distances of the public rows from this mean (`RADIUS_QUANTILE`).
    Therefore no fit uses private texts. For each epsilon, a `dpcore.torch.PrivateEncoder` adds
    noise. Classifiers of the main label and attackers on the attribute are trained on the noisy
    vectors of the training texts, chosen on the validation texts, and tested once, by
    `dpcore.text.inference.infer`.

    Rewriters (text -> text) are compared in one table. It has a row for each rewriter and a row for
    the original texts. Every text is rewritten once. The table has the accuracy on the main label,
    BLEU and similarity, perplexity, and the score of an attack on the attribute that reads words
    and characters of the rewritten texts. It also has the share of test texts that are linked to
    their originals, and the certified epsilon.

    Args:
        encoder: an encoder without randomness that `dpcore.torch.PrivateEncoder` accepts; or a
            rewriter; or a list or dictionary of rewriters. These objects are rewriters:
            - a `Rewriter`, or (in a list or dictionary) a function as `Rewriter` accepts it;
            - a word mechanism;
            - an `ADePTModel`;
            - a redaction policy without levels, or `redaction.policy_mechanism(policy, level)`.
            Rewriters have their own claims, so `epsilons`, `dims`, `directions`, `delta` and
            `noise` are not allowed with them.
        corpus: a `Corpus` with a split and labels.
        epsilons: claimed values of epsilon for any two texts, ascending, in (0, 1e300].
        dims: ascending numbers of dimensions. The last may be None, which keeps all dimensions of
            the encoder, without a projection; `[None]` is also allowed.
        public: public texts that are not in the corpus, or their vectors, shape `(n, width)`. They
            should be similar to the corpus: directions of other kinds of texts are not better than
            random directions. For rewriters, this is a `lm.NextWordModel`, or texts to fit such a
            model, for the perplexity. None omits the perplexity.
        directions: "principal" for directions of the public rows, or "random" for random
            directions, as a comparison.
        label: attribute of the corpus that is the main label. None takes the labels.
        attribute: private attribute, or None to measure only the utility.
        delta: delta of every claim, in [0, 1).
        noise: "best", "laplace", "l2_laplace" or "gaussian"; see `PrivateEncoder`.
        attackers: attackers on the attribute, as `infer` takes them. Defaults to the usual
            attackers, including the likelihood attacker over the clean vectors of the training
            texts. For rewriters, these are objects with `fit(texts, truth)` and `scores(texts)`, or
            scikit-learn estimators for texts. Their default is logistic regression on words and on
            characters.
        similarity: for rewriters, an encoder as in `infer`; its cosines are the similarity.
            Defaults to TF-IDF weights of words.
        by: for rewriters, a method of `link` or a list of methods. Defaults to "words" and, for
            each kind of rewriter, the method that knows the mechanism. This method is "likelihood"
            for word mechanisms with a table, "encoding" for other word mechanisms and `ADePTModel`,
            and "places" for redaction.
        confidence: confidence of each interval and of each certificate separately.
        rng: None, an int seed or a numpy Generator.
        progress: True shows a progress bar, False shows no bar. None shows a bar on a terminal.

    Returns:
        The `Frontier`, or the `RewriterFrontier` for rewriters. If Ctrl-C stops the run after the
        first cell or row, it has the cells or rows measured so far.

    Raises:
        ModuleNotFoundError: if scikit-learn is missing, or torch is missing for encoders or public
            texts.
        TypeError: if an argument is of the wrong kind.
        ValueError: for one of these reasons:

            - an argument does not apply to encoders, or not to rewriters;
            - `epsilons` or `dims` are not ascending, or out of range;
            - the corpus lacks a part of the split, or a column;
            - public texts are also in the corpus;
            - the encoder is random, or the vector of a text depends on the other texts of its
              batch.

    Source:
        Chaudhuri, Monteleoni and Sarwate (2011) and Balle and Wang (2018) for the noise
        distributions.

    Example:
        >>> from importlib.util import find_spec
        >>> if find_spec("torch") and find_spec("sklearn"):
        ...     draw = np.random.default_rng(1)
        ...     topics = draw.integers(0, 2, 500)
        ...     rows = draw.normal(size=(500, 6)) + 4.0 * topics[:, np.newaxis]
        ...     table = {f"text {i}": row for i, row in enumerate(rows)}
        ...     split = np.repeat(["train", "valid", "test"], [200, 60, 60])
        ...     corpus = Corpus([*table][:320], labels=topics[:320], split=split)
        ...     found = frontier(
        ...         table, corpus, epsilons=[1.0, 50.0], dims=[1], public=rows[320:], rng=1
        ...     )
        ...     low, high = (found[epsilon, 1].utility.accuracy.value for epsilon in (1.0, 50.0))
        ...     assert low < 0.8 < 0.9 < high
    """
    start, seed = time.perf_counter(), seed_of(rng)
    if isinstance(encoder, (dict, list, tuple)) and not encoder:
        raise errors.invalid("encoder", "at least one rewriter, or an encoder", encoder)
    rewriters = read_rewriters(encoder)
    unused = {"similarity": (similarity, None), "by": (by, None)} if rewriters is None else {
        "epsilons": (epsilons, None), "dims": (dims, None), "delta": (delta, 0.0),
        "directions": (directions, "principal"), "noise": (noise, "best"),
    }  # fmt: skip
    for name, (value, default) in unused.items():
        if value is not default and value != default:
            kind = "encoders" if rewriters is None else "rewriters, which have their own claims"
            raise errors.invalid(name, f"{default!r} for {kind}", value)
    study = read_study(corpus, label, attribute, attackers, errors.confidence_level(confidence))
    if rewriters is not None:
        return measure_rewriters(
            rewriters, study, public=public, similarity=similarity, by=by, seed=seed,
            progress=progress,
        )  # fmt: skip
    if epsilons is None:
        requirement = "a list of numbers, unless encoder is a Rewriter or a list of rewriters"
        raise errors.mistyped("epsilons", requirement, None)
    require_module("torch", "frontier")
    claims, widths = figure_tables.read_ascending("epsilons", epsilons, positive), _read_dims(dims)
    errors.choice("directions", directions, _PROJECTION_DIRECTIONS)
    delta = _read_delta(noise, delta)
    limits = require_module("threadpoolctl", "frontier").threadpool_limits
    with Progress("frontier", 1 + len(widths) * (1 + len(claims)), progress) as bar, limits(1):
        vectors, rows = _encode_texts(encoder, study.corpus, public, widths[-1:], bar)
        bar.advance(1)
        chains = [make_transforms(rows, dim, directions, seed) for dim in widths]
        cells, partial = figure_tables.collect_until_interrupt(
            _measure_cells(study, vectors, chains, claims, (noise, delta), seed, bar)
        )
    return Frontier(
        tuple(cells), attribute, cells[0].utility.sizes, len(rows), directions, delta,
        study.confidence, seed, partial, time.perf_counter() - start,
    )  # fmt: skip


def _measure_cells(
    study: Study, vectors: dict[str, Any], chains: Sequence[Any], epsilons: Sequence[float],
    noise: tuple[str, float], seed: int, bar: Progress,
) -> Iterator[FrontierCell]:  # fmt: skip
    """Measure each number of dimensions, first without noise and then at each epsilon."""
    from ..torch import PrivateEncoder

    kind, delta = noise
    for place, chain in enumerate(chains):
        farthest: dict[str, Any] = {}
        for row, epsilon in enumerate([np.inf, *epsilons]):
            sequence = np.random.SeedSequence([seed, place, row])
            seeds = [int(state) for state in sequence.generate_state(3, np.uint32)]
            noisy = bool(np.isfinite(epsilon))
            claim = epsilon if noisy else 1.0
            private = PrivateEncoder(vectors, chain, epsilon=claim, delta=delta, noise=kind)
            yield measure_release(study, private, seeds, farthest, noisy)[0]
            bar.advance(1)


def make_transforms(public: Any, dim: int | None, directions: str, seed: int) -> list[Any]:
    """Create transforms from public rows: a projection, and clipping around their mean.

    Args:
        public: vectors of public texts, float32, shape `(n, width)`.
        dim: number of directions, or None without a projection.
        directions: "principal" or "random".
        seed: seed of random directions.
    """
    import torch

    from ..torch import Clip, Project

    rows, steps = torch.from_numpy(public), list[Any]()
    if dim is not None:
        is_random = directions == "random"
        drawn: dict[str, Any] = {"width": rows.shape[1], "rng": seed} if is_random else {}
        steps = [Project("random" if is_random else public, dim, **drawn)]
        rows = steps[0](rows)
    radius = float(np.quantile((rows - rows.mean(dim=0)).norm(dim=1).numpy(), RADIUS_QUANTILE))
    return [*steps, Clip("l2", radius, center=rows.numpy())]


def measure_release(
    study: Study, private: Any, seeds: Sequence[int], farthest: dict[str, Any], noisy: bool = True
) -> tuple[FrontierCell, Any]:
    """Release every text of a study once, and measure the released vectors.

    Args:
        study: the texts and the attackers.
        private: a `PrivateEncoder` of the texts.
        seeds: seeds of the noise, of the classifiers and of the attackers.
        farthest: clean vectors of the two texts with the largest distance, for each kind of noise.
            This function fills the dictionary. The two texts are the same for other claims of the
            same transform.
        noisy: False releases the vectors without noise.

    Returns:
        The figures, and the released rows.
    """
    texts = study.corpus.texts
    if not noisy:
        released, noise, loss, signal = private.clean(texts), "none", np.inf, 1.0
    else:
        kind = type(private.noise).__name__
        if kind not in farthest:
            pair = private.worst_pair(texts, progress=False)
            farthest[kind] = private.clean([pair.x, pair.x_prime]).double().numpy()
        loss = float(private.noise.loss(*farthest[kind], private.delta))
        released, noise = private.encode(texts, rng=seeds[0]), repr(private.noise)
        measured = private.measure_signal(texts)
        signal = np.nan if measured is None else measured[2]
    rows, radius = np.asarray(released), getattr(private.domain, "radius", np.nan)
    utility, attack = study.predict_label(rows, seeds[1]), None
    if study.attribute is not None:
        source = private if noisy else None
        attack = study.infer_attribute(rows, private.delta, seeds[2], private=source)
    claim = private.epsilon if noisy else np.inf
    return FrontierCell(claim, private.width, noise, radius, utility, attack, loss, signal), rows


def _read_delta(noise: Any, delta: Any) -> float:
    """Check, before a text is encoded, the name of the noise and that it supports this delta."""
    errors.choice("noise", noise, _NOISE_NAMES)
    level = errors.delta_level(delta)
    if noise == "gaussian" and level == 0.0:
        raise errors.invalid("delta", "above 0 for gaussian noise", delta)
    if noise in ("laplace", "l2_laplace") and level != 0.0:
        raise errors.invalid("delta", f"0 for {noise} noise, which gives pure epsilon", delta)
    return level


def _read_dims(dims: Any) -> list[int | None]:
    if isinstance(dims, str) or not isinstance(dims, Iterable):
        raise errors.mistyped("dims", "a list of integers", dims)
    numbers = list(dims)
    if numbers == [None]:
        return [None]
    last = [numbers.pop()] if numbers and numbers[-1] is None else []
    widths = figure_tables.read_ascending("dims", numbers, _read_dim)
    return [*widths, *last]


def _read_dim(name: str, value: Any) -> int:
    return errors.integer(name, value, 1)


def _encode_texts(
    encoder: Any, corpus: Corpus, public: Any, most: Sequence[int | None], bar: Progress
) -> tuple[dict[str, Any], Any]:
    """Encode every text of the corpus once, and the public texts if they are not vectors.

    Args:
        encoder: function from texts to vectors.
        corpus: the private texts.
        public: public texts, or their vectors.
        most: list with the largest number of dimensions, or with None for all; checked before texts
            are encoded.
        bar: progress bar, which shows the expected time of the encoding.
    """
    import torch

    from ..torch.encoders import check_batches, encoder_of, probe_randomness, probe_texts

    source = encoder_of(encoder)
    source.array_dtype = torch.float32
    texts = list(dict.fromkeys(corpus.texts))
    others = read_public_texts(public, texts)
    check_batches(source, probe_texts(source, None), None, refuse_state=True)
    if probe_randomness(source, texts[0], None).is_random:
        raise errors.invalid("encoder", "the same in every call (eval mode)", source.name)
    assert source.width is not None
    rows = None if others else _read_public_rows(public, source.width)
    limit = min(source.width, len(others) if rows is None else len(rows))
    if most[0] is not None and most[0] > limit:
        requirement = f"at most {limit}, the encoder's width or the number of public rows"
        raise errors.invalid("dims", requirement, most[0])
    every, pieces = [*texts, *others], []
    for start in range(0, len(every), _TEXTS_PER_UPDATE):
        begun = time.perf_counter()
        pieces.append(source(every[start : start + _TEXTS_PER_UPDATE]))
        if start == 0:
            each = (time.perf_counter() - begun) / len(pieces[-1])
            bar.forecast(f"{len(every):,} texts to encode", each * len(every))
    vectors = torch.cat(pieces).cpu().float()
    table = dict(zip(texts, vectors[: len(texts)], strict=True))
    return table, vectors[len(texts) :].numpy() if rows is None else rows


def _read_public_rows(public: Any, width: int) -> Any:
    """Return public vectors as a float32 copy."""
    requirement = f"finite vectors of shape (n, {width}), or a list of texts"
    rows = np.array(errors.numeric("public", requirement, public), np.float32)
    if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
        raise errors.invalid("public", requirement, public)
    return rows


_FRONTIER_HEADER: Final = (
    "dim", "epsilon", "noise", "signal", "utility", "interval", "attack", "interval", "certified",
    "worst loss",
)  # fmt: skip


def _list_figures(cell: FrontierCell) -> tuple[str, ...]:
    return (
        str(cell.dim), f"{cell.epsilon:g}", cell.noise.partition("Noise")[0],
        f"{100.0 * cell.signal:.3g} %", *figure_tables.format_measured(cell.utility.accuracy),
        *figure_tables.format_attack(cell.attack),
        figure_tables.format_number(cell.certified, 2), f"{cell.worst_loss:.4g}",
    )  # fmt: skip


def _draw_frontier(report: Frontier, ax: Any) -> Figure:
    """Draw the utility, the attack (if there is one) and the loss, each against epsilon."""
    with_attack = report.attribute is not None
    picture = drawing.get_canvas(ax, drawing.relative_size(1.6 if with_attack else 1.3, 0.62))
    panels = picture.subplots(1, 2 + with_attack).ravel()
    for place, dim in enumerate(report.dims):
        # The cell without noise is measured first, so it always exists.
        noisy, clean = report.of(dim)[:-1], report.of(dim)[-1]
        hue, name = drawing.cycle_colour(place), f"{dim} dimensions"
        _draw_measured(panels[0], noisy, [c.utility.accuracy for c in noisy], hue, name)
        panels[0].axhline(clean.utility.accuracy.value, color=hue, linestyle="--", linewidth=0.8)
        if with_attack:
            _draw_measured(panels[1], noisy, [c.attack_score for c in noisy], hue, name)
            panels[-1].plot(*_select_finite(noisy, "certified"), "s", color=hue, markersize=4)
        panels[-1].plot(*_select_finite(noisy, "worst_loss"), "-", color=hue)
    claims = [cell.epsilon for cell in report.cells if np.isfinite(cell.epsilon)]
    panels[0].axhline(report.floor, color=drawing.text_colour(), linestyle=":", linewidth=0.9)
    panels[0].set(ylabel="accuracy", title="Utility (dashed: without\nnoise; dotted: majority)")
    if (attack := report.cells[0].attack) is not None:
        kind, shown = attack.outcome.score[0], str(report.attribute).replace("$", r"\$")
        guessing = {"AUC": 0.5, "correlation": 0.0}.get(kind, attack.floors[0].accuracy)
        panels[1].axhline(guessing, color=drawing.text_colour(), linestyle=":", linewidth=0.9)
        panels[1].set(ylabel=kind, title=f"Attack on {shown}\n(dotted: guessing)")
    if claims:
        panels[-1].plot(claims, claims, color=drawing.text_colour(), linestyle=":", linewidth=0.9)
    squares = "; squares: certified" if with_attack else ""
    panels[-1].set(ylabel="loss", yscale="log", title=f"Worst two texts (dotted:\nclaim{squares})")
    for panel in panels:
        panel.set(xlabel="epsilon", xscale="log")
        if claims:
            ticks = sorted(set(claims))
            panel.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
            panel.set_xticks([], minor=True)
    return figure_tables.finish_panels(picture, panels, panels[0])


def _draw_measured(
    panel: Any, cells: Sequence[FrontierCell], figures: Sequence[Any], hue: Any, name: str
) -> None:
    if not cells:
        return
    values = np.array([[figure.low, figure.value, figure.high] for figure in figures]).T
    spread = np.abs(values[[0, 2]] - values[1])
    epsilons = [cell.epsilon for cell in cells]
    panel.errorbar(epsilons, values[1], spread, color=hue, marker="o", markersize=4, label=name)


def _select_finite(cells: Sequence[FrontierCell], name: str) -> tuple[list[float], list[float]]:
    pairs = [(cell.epsilon, getattr(cell, name)) for cell in cells]
    shown = [(x, y) for x, y in pairs if np.isfinite(y) and y > 0.0]
    return [x for x, _ in shown], [y for _, y in shown]
