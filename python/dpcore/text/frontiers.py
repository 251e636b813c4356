"""`frontier`: how useful the vectors of a private encoder are, and what they disclose."""

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
from ..streams import Rng, to_seed
from ..suggestions import explain_argument_errors
from . import figure_tables
from .corpus import Corpus
from .inference import Inference, Measured
from .rewriter_frontiers import measure_rewriters, read_rewriters
from .studies import Study, read_certificate, read_study, require_public_texts_not_among

if TYPE_CHECKING:
    from matplotlib.figure import Figure

RADIUS_QUANTILE: Final = 0.25
"""Level of a quantile of the distances of public vectors from their mean. A private vector at a
longer distance from this mean is clipped to the quantile. On the data set SNIPS, levels from .1 to
.5 give the same utility within .02; larger quantiles give a lower utility."""

_TEXTS_PER_UPDATE: Final = 256
"""Number of texts that are encoded between two updates of the progress bar."""
_PROJECTION_DIRECTIONS: Final = ("principal", "random")
_NOISE_NAMES: Final = ("best", "laplace", "l2_laplace", "gaussian")
"""Noises that `PrivateEncoder` can calibrate. Its module is not imported here, because it needs
torch."""


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FrontierCell(Record, word="FrontierCell"):
    """Utility and disclosure of private vectors for one epsilon and one number of dimensions.

    The vectors are computed from texts. Each vector is released with noise.

    Attributes:
        epsilon: claimed epsilon of the release of one vector, if any two texts are neighbours. The
            value is inf for vectors without noise.
        dim: number of dimensions of a released vector.
        noise: distribution of the noise and its scale, as text; "none" for vectors without noise.
        radius: largest allowed distance between a vector and the mean of the public vectors. A
            vector at a larger distance is clipped to this distance. The value is NaN if the vectors
            are not clipped.
        utility: result of predicting the main label from the vectors of the test texts.
        attack: result of inferring the private attribute from the vectors of the test texts. None
            if `frontier` was called without a private attribute.
        worst_loss: exact privacy loss between the two texts of the corpus whose vectors have the
            largest distance. This loss is the smallest epsilon that holds for these two texts at
            the claimed delta. The value is inf for vectors without noise.
        signal: sum of squares of the vectors before noise is added, divided by the expected sum of
            squares of the noisy vectors. The value is 1 for vectors without noise.
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
        """Score of the attack on the private attribute, with its interval, or None without attack.

        The score depends on the values of the attribute:

        - area under the ROC curve, if the attribute has two values;
        - Spearman's correlation, if the attribute is a number, such as an age;
        - accuracy otherwise.
        """
        return None if self.attack is None else self.attack.outcome.score[1]

    @property
    def certified(self) -> float:
        """Lower bound on epsilon that the attack on the private attribute certifies.

        The value is NaN if the attack certifies no bound, or if there was no attack.
        """
        return np.nan if self.attack is None else read_certificate(self.attack)

    def __repr__(self) -> str:
        """Return one line with epsilon, the number of dimensions and the utility."""
        return (
            f"<FrontierCell at epsilon {self.epsilon:g} in {self.dim} dimensions: utility "
            f"{self.utility.accuracy.value:.3f}>"
        )


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Frontier(figure_tables.FigureTable, word="dpcore.text.frontier/2"):
    """Utility and disclosure of private vectors for each epsilon and number of dimensions.

    The function `frontier` returns this object. Let ``found`` be the object. Then
    ``found[8.0, 16]`` is the `FrontierCell` for epsilon 8 and 16 dimensions. ``found[inf, 16]`` is
    the `FrontierCell` for 16 dimensions without noise.

    Attributes:
        cells: a `FrontierCell` for each epsilon and each number of dimensions. The numbers of
            dimensions are in ascending order. For each number of dimensions, the result without
            noise comes first. The results with noise follow in ascending order of epsilon.
        attribute: name of the private attribute, or None if `frontier` was called without a private
            attribute.
        sizes: numbers of training texts, validation texts and test texts.
        public: number of public texts or public vectors.
        directions: kind of the directions on which vectors are projected, "principal" or "random".
        delta: delta of every claimed (epsilon, delta).
        confidence: confidence of each interval and of each certified bound separately.
        seed: seed with which `frontier` gives the same result again.
        partial: True if Ctrl-C stopped the run before all measurements were done.
        seconds: run time in seconds. A comparison of two Frontier objects with == ignores this
            number.
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
        """Numbers of dimensions for which this result has measurements, in ascending order."""
        return tuple(dict.fromkeys(cell.dim for cell in self.cells))

    @property
    def floor(self) -> float:
        """Accuracy on the test texts if the most frequent training label is always predicted."""
        return self.cells[0].utility.floors[0].accuracy

    def of(self, dim: int) -> tuple[FrontierCell, ...]:
        """Return the results for one number of dimensions: a tuple, one `FrontierCell` per epsilon.

        The tuple is in ascending order of epsilon. The last entry is the result without noise
        (inf).
        """
        if dim not in self.dims:
            raise errors.invalid("dim", f"one of {', '.join(map(str, self.dims))}", dim)
        cells = [cell for cell in self.cells if cell.dim == dim]
        return tuple(sorted(cells, key=lambda cell: cell.epsilon))

    def __getitem__(self, key: tuple[float, int]) -> FrontierCell:
        """Return the `FrontierCell` for an epsilon and a number of dimensions."""
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
        """Return one line with the number of results, the number of test texts and the seed."""
        tested = f"{self.sizes[2]:,} test texts"
        return f"<Frontier of {len(self.cells)} cells, {tested}, seed={self.seed}>"

    def _list_rows(self) -> list[tuple[str, ...]]:
        return [_FRONTIER_HEADER, *map(_format_cell_as_table_row, self.cells)]

    def _questions_answers(self) -> list[Row]:
        """Return questions and answers on the utility and on the attack, for every epsilon."""
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
            figures, self._questions_answers(), ("Utility, attack and loss", 3.6),
            self._list_rows(), self._list_notes(),
        )  # fmt: skip

    def _plot(self, ax: Any) -> Figure:
        return _draw_measures_against_epsilon(self, ax)


@explain_argument_errors
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

    An encoder is a function from texts to vectors. For an encoder, `frontier` computes the vector
    of every text once. The argument `public` has public texts, and their vectors are called public
    rows. For each number of dimensions, `frontier` does the following:

    - It projects the vectors on principal directions of the public rows, or on random directions.
    - It subtracts the mean of the public rows from each vector.
    - It clips the norm of each vector at the first quartile of the norms of the public rows
      (`RADIUS_QUANTILE`).
    - For each epsilon, a `dpcore.torch.PrivateEncoder` adds noise to the vectors.
    - With the noisy vectors of the training texts, `dpcore.text.inference.infer` trains classifiers
      that predict the main label, and attackers that predict the private attribute. The best
      classifier and the best attacker are chosen on the validation texts, and tested once on the
      test texts.

    The directions, the mean and the quartile do not depend on the private texts.

    A rewriter is a function from a text to another text. For rewriters, `frontier` rewrites every
    text once with each rewriter. The result is a table with a row for each rewriter and a row for
    the original texts. The columns of the table are:

    - the accuracy of the best classifier of the main label;
    - BLEU and similarity of a rewritten text to the original text, and the perplexity of the
      rewritten texts;
    - the score of an attack that infers the private attribute from words and characters of the
      rewritten texts;
    - the share of test texts for which an attacker finds the original text;
    - the certified lower bound on epsilon.

    Args:
        encoder: an encoder without randomness that `dpcore.torch.PrivateEncoder` accepts; or a
            rewriter; or a list or dictionary of rewriters. These objects are rewriters:

            - a `Rewriter`;
            - a function that a `Rewriter` accepts (only in a list or dictionary);
            - a word mechanism, which replaces words at random;
            - an `ADePTModel`;
            - a redaction policy that does not use a level, or
              `redaction.policy_mechanism(policy, level)`.

            Every rewriter has its own claimed epsilon. Therefore `epsilons`, `dims`, `directions`,
            `delta` and `noise` are not allowed with rewriters.
        corpus: a `Corpus` with a split and labels.
        epsilons: list of ascending claimed values of epsilon, in (0, 1e300]. Any two texts are
            neighbours. This argument is required for an encoder.
        dims: list of ascending numbers of dimensions of the private vectors. The last entry may be
            None. With the entry None, the vectors are not projected and keep all dimensions of the
            encoder.
        public: public texts that are not in the corpus, or their vectors, shape `(n, width)`. The
            public texts should be similar to the texts of the corpus. Otherwise, the principal
            directions of the public texts are not better than random directions. For rewriters,
            `public` is a `lm.NextWordModel` that computes the perplexity, or texts on which a
            `lm.NextWordModel` is trained for this purpose. With None, the table for rewriters has
            no perplexity.
        directions: "principal" to project the vectors on principal directions of the public rows,
            or "random" to project them on random directions, as a comparison.
        label: name of the attribute that is the main label. None means the labels of the corpus.
        attribute: name of the private attribute. With None, only the utility is measured.
        delta: delta of every claimed (epsilon, delta), in [0, 1).
        noise: the noise that `dpcore.torch.PrivateEncoder` adds, one of "best" (the noise with the
            smallest error, among the noises that support `delta`), "laplace", "l2_laplace" or
            "gaussian".
        attackers: attackers on the private attribute, in a form that `dpcore.text.inference.infer`
            accepts. For an encoder, the default is all attackers of `dpcore.text.inference.usual`
            and one more: the likelihood attacker. The likelihood attacker knows the distribution of
            the noise, and the vectors of the training texts before noise is added. For rewriters,
            attackers are objects with `fit(texts, truth)` and `scores(texts)`, or scikit-learn
            estimators for texts. The default for rewriters is logistic regression on words and on
            characters.
        similarity: for rewriters, an encoder that `dpcore.text.inference.infer` accepts. The
            similarity of two texts is the cosine of their vectors. By default, the vectors are
            TF-IDF weights of words.
        by: for rewriters, a method or a list of methods with which `dpcore.text.link` searches for
            the original of a rewritten text. The default is the method "words" and a second method,
            which depends on the kind of rewriter: "likelihood" for word mechanisms with a table of
            probabilities, "encoding" for other word mechanisms and `ADePTModel`, and "places" for
            redaction.
        confidence: confidence of each interval and of each certified bound separately.
        rng: None, an int seed or a numpy Generator.
        progress: True shows a progress bar, False shows no bar. None shows a bar on a terminal.

    Returns:
        A `Frontier` for an encoder, or a `RewriterFrontier` for rewriters. If Ctrl-C stops the run,
        the result has the measurements that were finished before. If no measurement was finished,
        Ctrl-C raises KeyboardInterrupt.

    Raises:
        ModuleNotFoundError: if scikit-learn is missing. Torch is also required for an encoder and
            for public texts.
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - an argument for encoders is given with rewriters, or an argument for rewriters is
              given with an encoder;
            - `epsilons` or `dims` are not ascending, or a value is out of range;
            - the corpus lacks the labels, the attribute, or one of the parts train, valid and test;
            - a public text is also in the corpus;
            - the encoder is random, or the vector of a text depends on the other texts in the same
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
    start, seed = time.perf_counter(), to_seed(rng)
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
    delta = _check_delta_for_noise(noise, delta)
    limits = require_module("threadpoolctl", "frontier").threadpool_limits
    with Progress("frontier", 1 + len(widths) * (1 + len(claims)), progress) as bar, limits(1):
        vectors, rows = _encode_corpus_and_public(encoder, study.corpus, public, widths[-1:], bar)
        bar.advance(1)
        chains = [fit_projection_and_clip(rows, dim, directions, seed) for dim in widths]
        cells, partial = figure_tables.collect_until_interrupt(
            _measure_clean_noisy_cells(study, vectors, chains, claims, (noise, delta), seed, bar)
        )
    return Frontier(
        tuple(cells), attribute, cells[0].utility.sizes, len(rows), directions, delta,
        study.confidence, seed, partial, time.perf_counter() - start,
    )  # fmt: skip


def _measure_clean_noisy_cells(
    study: Study, vectors: dict[str, Any], transform_chains: Sequence[Any],
    epsilons: Sequence[float], noise: tuple[str, float], seed: int, bar: Progress,
) -> Iterator[FrontierCell]:  # fmt: skip
    """Yield the results for each number of dimensions: without noise, then per epsilon."""
    from ..torch import PrivateEncoder

    kind, delta = noise
    for place, chain in enumerate(transform_chains):
        farthest: dict[str, Any] = {}
        for row, epsilon in enumerate([np.inf, *epsilons]):
            sequence = np.random.SeedSequence([seed, place, row])
            seeds = [int(state) for state in sequence.generate_state(3, np.uint32)]
            noisy = bool(np.isfinite(epsilon))
            claim = epsilon if noisy else 1.0
            private = PrivateEncoder(vectors, chain, epsilon=claim, delta=delta, noise=kind)
            yield cell_and_vectors(study, private, seeds, farthest, noisy)[0]
            bar.advance(1)


def fit_projection_and_clip(public: Any, dim: int | None, directions: str, seed: int) -> list[Any]:
    """Compute, from public vectors, a list of transforms for private vectors.

    The list has a projection (if `dim` is not None), and clipping. Clipping limits the distance of
    a vector from the mean of the public vectors.

    Args:
        public: vectors of public texts, float32, shape `(n, width)`.
        dim: number of dimensions after the projection. None means that the vectors are not
            projected.
        directions: kind of the directions on which vectors are projected: "principal" (principal
            directions of the public vectors) or "random".
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


def cell_and_vectors(
    study: Study, private: Any, seeds: Sequence[int], farthest: dict[str, Any], noisy: bool = True
) -> tuple[FrontierCell, Any]:
    """Compute a private vector for each text of a study once, and measure utility and disclosure.

    Args:
        study: the texts, their labels and attributes, and the attackers.
        private: a `PrivateEncoder` of the texts.
        seeds: three seeds, for the noise, for the classifiers, and for the attackers.
        farthest: cache that this function fills. The cache is a dictionary. A key is a kind of
            noise. The value for this key is the pair of vectors (without noise) of the two texts
            with the largest distance. These two texts do not depend on epsilon. Therefore calls
            that differ only in epsilon can use the same dictionary.
        noisy: True adds noise. False measures the vectors without noise.

    Returns:
        A pair: the `FrontierCell` with the measurements, and the array of the released vectors.
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


def _check_delta_for_noise(noise: Any, delta: Any) -> float:
    """Return delta, or raise an error if the noise is unknown or does not support this delta."""
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


def _encode_corpus_and_public(
    encoder: Any, corpus: Corpus, public: Any, most: Sequence[int | None], bar: Progress
) -> tuple[dict[str, Any], Any]:
    """Encode every text of the corpus once, and also the public texts, if `public` is not vectors.

    Args:
        encoder: function from texts to vectors.
        corpus: the private texts.
        public: public texts, or their vectors.
        most: list with one entry: the largest number of dimensions. None means all dimensions. The
            function checks this number before it encodes texts.
        bar: progress bar, which shows how long the encoding will take.
    """
    import torch

    from ..torch.encoders import check_batches, encoder_of, probe_randomness, probe_texts

    source = encoder_of(encoder)
    source.array_dtype = torch.float32
    texts = list(dict.fromkeys(corpus.texts))
    others = require_public_texts_not_among(public, texts)
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
    """Return a float32 copy of the public vectors, after a check of their shape and values."""
    requirement = f"finite vectors of shape (n, {width}), or a list of texts"
    rows = np.array(errors.numeric("public", requirement, public), np.float32)
    if rows.ndim != 2 or rows.shape[1] != width or not np.isfinite(rows).all():
        raise errors.invalid("public", requirement, public)
    return rows


_FRONTIER_HEADER: Final = (
    "dim", "epsilon", "noise", "signal", "utility", "interval", "attack", "interval", "certified",
    "worst loss",
)  # fmt: skip


def _format_cell_as_table_row(cell: FrontierCell) -> tuple[str, ...]:
    return (
        str(cell.dim), f"{cell.epsilon:g}", cell.noise.partition("Noise")[0],
        f"{100.0 * cell.signal:.3g} %", *figure_tables.format_measured(cell.utility.accuracy),
        *figure_tables.score_and_interval(cell.attack),
        figure_tables.format_number(cell.certified, 2), f"{cell.worst_loss:.4g}",
    )  # fmt: skip


def _draw_measures_against_epsilon(report: Frontier, ax: Any) -> Figure:
    """Plot against epsilon the utility, the attack score (if any) and the largest loss."""
    with_attack = report.attribute is not None
    picture = drawing.panel_figure(ax, drawing.scale_figure_size(1.6 if with_attack else 1.3, 0.62))
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
    return figure_tables.style_panels_and_legend(picture, panels, panels[0])


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
