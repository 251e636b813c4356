"""`link`: find the original text of each output of a mechanism among candidate texts.

The attacker knows the mechanism and all candidates, but not the noise.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from .. import errors
from ..calibration import L2Laplace
from ..mechanisms import DPTextNoise, Gaussian, Laplace
from ..mechanisms.declarations import get_or_default
from ..mechanisms.texts import Rewriter, as_texts, bound_object
from ..packages import has_all, is_tensor
from ..records import Floats, Ints, Result
from ..report import figures as drawing
from ..report.shown import name_of
from ..suggestions import explain_argument_errors
from .corpus import words_of
from .linkage import LinkedOutputs, Score, list_first_rows, rank_truth, read_truth
from .redaction.masking import MASK, all_matching_rows_function, split_words
from .words.mechanism import WordMechanism, look_up_word_numbers, text_likelihood_score_matrix

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LinkageMethod = Literal["likelihood", "encoding", "words", "places", "kept_places", "bag"]
_ROUNDING: Final = 1e-5
"""Largest rounding error of an entry, relative to the largest entry without noise."""
_LAWS: Final = (Laplace, Gaussian, L2Laplace, DPTextNoise)


@explain_argument_errors
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DocumentLinkage(Result, word="dpcore.text.linkage/1"):
    """Result of `link`: how often an attacker finds the original text of an output of a mechanism.

    Let ``report`` be the result of `link`. Then ``report["words"]`` has the ranks of the original
    texts, and the share of correct answers, for the method "words".

    Attributes:
        name: name of the mechanism whose outputs were attacked.
        candidates: number of candidates (texts that may be the original).
        linkages: result of each method of attack, in the order of the argument `by` of `link`.
    """

    _INSTEAD: ClassVar[str] = "linkages, or report[by]"

    name: str
    candidates: int
    linkages: tuple[LinkedOutputs, ...]

    def __post_init__(self) -> None:
        """Check the fields."""
        errors.instance("name", self.name, str)
        errors.integer("candidates", self.candidates, 2)
        if not self.linkages or len({linked.texts for linked in self.linkages}) > 1:
            raise errors.invalid("linkages", "of as many outputs each", self.linkages)

    def __getitem__(self, by: str) -> LinkedOutputs:
        """Return the result of one method."""
        names = [linked.by for linked in self.linkages]
        return self.linkages[names.index(errors.choice("by", by, names))]

    @property
    def _title(self) -> str:
        return f"documents of {self.linkages[0].texts:,} outputs of {self.name}"

    def _lines(self) -> list[tuple[str, str]]:
        rows = [("attacker", f"knows the mechanism and all {self.candidates:,} candidates")]
        for linked in self.linkages:
            verdict = "above the floor" if linked.is_above_floor else "not shown above the floor"
            rows.append((f"by {linked.by}", f"{linked}; {verdict}"))
        confidence = f"{100 * self.linkages[0].confidence:g} %"
        rows.append(("note", f"intervals hold at {confidence}, each alone"))
        if any(linked.by != "likelihood" for linked in self.linkages):
            rows.append(("note", "an attacker with another score may link more than is shown"))
        return rows

    def _plot(self, ax: Any) -> Figure:
        axes = drawing.axes_of(ax, drawing.scale_figure_size(1.0, 0.7))
        for place, linked in enumerate(self.linkages):
            ranks = np.sort(linked.ranks[~np.isnan(linked.ranks)])
            heights = np.arange(1, len(ranks) + 1) / linked.texts
            axes.step(
                ranks, heights, where="post", color=drawing.cycle_colour(place), label=linked.by
            )
        most = max(2.0, float(self.candidates))
        axes.plot(
            [1.0, most], [1.0 / most, 1.0], ":", color=drawing.text_colour(), label="at random"
        )
        axes.set(xscale="log", ylim=(0.0, 1.03), xlabel="rank of the true document")
        axes.set_ylabel("share of outputs up to this rank")
        axes.legend(frameon=False, fontsize="small")
        return drawing.finish_axes(axes, self._title)


@explain_argument_errors
def link(
    mechanism: Any,
    candidates: Any,
    outputs: Any,
    *,
    by: Any,
    truth: Any = None,
    confidence: float = 0.95,
) -> DocumentLinkage:
    """Measure how often an attacker finds the original text of an output among candidates.

    The attacker knows the mechanism and all candidates, but not the noise. For each output, a
    method gives each candidate a score. The attacker names the candidate with the highest score. If
    several candidates have the highest score, the attacker draws one of them. The output then
    counts as correct with the probability that the original is drawn. Equal candidates count as the
    same answer. If there are several methods, the result shows all of them, because the best of
    several shares is too optimistic.

    Args:
        mechanism: the mechanism that made the outputs, or None if the mechanism is not known. The
            mechanism is one of these:

            - a word mechanism, or a redaction policy;
            - a `PrivateEncoder`;
            - a trained text system, such as an `ADePTModel`, or the rewriter of a text system;
            - a function that rewrites texts.
        candidates: at least two texts that may be the original of an output.
        outputs: outputs of the mechanism: rewritten texts (which may be empty), or an array of
            noisy vectors, shape `(n, d)`.
        by: the method that ranks the candidates, or a list of methods:

            - "likelihood": the score is the probability (or density) of the output, given the
              candidate. This method needs a word mechanism with a table of probabilities, or noisy
              vectors whose noise has a known distribution;
            - "encoding": each candidate is encoded as a vector, without noise. The best candidate
              has the vector with the smallest L2 distance to the output. If the output is a
              rewritten text, the output is also encoded without noise. For word mechanisms, the
              distance is the sum over positions of the distances between the words;
            - "words": the score is the number of words that the output and the candidate share,
              divided by the mean number of words of the two texts;
            - "places", "kept_places" and "bag": for redacted texts, the methods of
              `redaction.link_redacted`;
            - a function `(output, candidate) -> score`. A higher score means a likelier candidate.
        truth: for each output, the row number of its original in `candidates`, or -1 if the
            original is not a candidate. By default, candidate i is the original of output i.
        confidence: confidence of the interval of each method separately.

    Returns:
        For each method: the rank of the original of each output, and the share of correct answers.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: if there are fewer than two candidates or no outputs, an entry of `truth` is not
            a row number, or a method cannot be used for the mechanism. For example, "likelihood"
            cannot be used if a decoder writes texts from noisy vectors, because the probabilities
            of these texts are not known.

    Source:
        Neyman and Pearson (1933), for the likelihood. Krishna, Gupta and Dupuy (2021), appendix C,
        for an attacker who knows the auto-encoder.

    Example:
        >>> from dpcore.text import link
        >>> texts = ["he has the flu", "she has cancer", "a good film"]
        >>> def drop_first(texts):
        ...     return [text.split(" ", 1)[1] for text in texts]
        >>> report = link(drop_first, texts, drop_first(texts), by="words")
        >>> print(report["words"])
        3 of 3 by words: 1.000 [0.292, 1.000], floor 0.333; median rank 1
    """
    confidence = errors.confidence_level(confidence)
    methods = list(by) if isinstance(by, (list, tuple)) else [by]
    if not methods:
        raise errors.invalid("by", "a method or a list of methods", by)
    if isinstance(mechanism, (str, bytes, bool, int, float, list, dict, type)):
        requirement = "a mechanism of texts, a model that encodes texts, a function, or None"
        raise errors.mistyped("mechanism", requirement, mechanism)
    texts = as_texts("candidates", candidates)
    if len(texts) < 2:
        raise errors.invalid("candidates", "two texts or more", len(texts))
    attacker = _LinkingAttacker(_owner_or_mechanism(mechanism), texts, _read_outputs(outputs))
    rows = read_truth(truth, len(attacker.outputs), len(texts))
    linkages = []
    for method in methods:
        name = name_of(method) if callable(method) else method
        keys, score = attacker.prepare(method)
        linkages.append(rank_truth(keys, rows, score, name, confidence))
    names = [linked.by for linked in linkages]
    if len(set(names)) < len(names):
        raise errors.invalid("by", "methods of different names", names)
    return DocumentLinkage(_name_mechanism(mechanism), len(texts), tuple(linkages))


def _name_mechanism(mechanism: Any) -> str:
    if mechanism is None:
        return "an unknown mechanism"
    return mechanism.name if isinstance(mechanism, Rewriter) else name_of(mechanism)


def _owner_or_mechanism(mechanism: Any) -> Any:
    """Return the object whose method is the mechanism, or the mechanism if it is not a method."""
    function = mechanism.rewrite if isinstance(mechanism, Rewriter) else mechanism
    is_method = isinstance(function, MethodType) and not isinstance(bound_object(function), type)
    return bound_object(function) if is_method else function


def _read_outputs(outputs: Any) -> list[str] | Floats:
    """Return the outputs: rewritten texts as a list, or noisy vectors as an array."""
    if isinstance(outputs, (str, bytes)):
        raise errors.mistyped("outputs", "a list of texts or an array of vectors", outputs)
    if is_tensor(outputs) or np.asarray(outputs).dtype.kind in "fiub":
        array = outputs.detach().double().cpu().numpy() if is_tensor(outputs) else outputs
        vectors = errors.numeric("outputs", "numbers of shape (n, d)", array).astype(np.float64)
        if not vectors.size:
            raise errors.invalid("outputs", "at least one text or vector", vectors.tolist())
        if vectors.ndim != 2:
            raise errors.invalid("outputs", "numbers of shape (n, d)", vectors.shape)
        for row in np.flatnonzero(~np.isfinite(vectors).all(axis=1))[:1]:
            raise errors.invalid(f"outputs[{row}]", "finite numbers", vectors[row].tolist())
        return vectors
    texts = list(outputs)
    if not texts:
        raise errors.invalid("outputs", "at least one", texts)
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise errors.mistyped(f"outputs[{row}]", "a text (a string)", text)
    return [str(text) for text in texts]


class _LinkingAttacker:
    """Attacker who scores candidates by a method of `link`.

    Args:
        mechanism: the mechanism, or the object whose method is the mechanism.
        texts: the candidates.
        outputs: rewritten texts as a list, or noisy vectors as an array.
    """

    def __init__(self, mechanism: Any, texts: Sequence[str], outputs: list[str] | Floats) -> None:
        self.mechanism, self.texts, self.outputs = mechanism, texts, outputs
        self.is_text = isinstance(outputs, list)
        self.keys: list[Hashable] = [tuple(split_words(text)) for text in texts]
        self.different = [texts[row] for row in list_first_rows(self.keys)[0]]

    def prepare(self, method: Any) -> tuple[Sequence[Hashable], Score]:
        """Return a key for each candidate, and a function that scores the different keys.

        Candidates with equal keys count as one candidate.
        """
        if callable(method):
            return self.keys, lambda rows: np.array(
                [
                    [_read_score(method(self.outputs[row], text)) for text in self.different]
                    for row in rows
                ]
            )
        errors.choice("by", method, get_args(LinkageMethod))
        if method in ("likelihood", "encoding"):
            if isinstance(self.mechanism, WordMechanism):
                return self._prepare_word_keys_and_score(method)
            return self.keys, self._prepare_vectors(method)
        if not self.is_text:
            requirement = "'likelihood', 'encoding' or a function, for the outputs are vectors"
            raise errors.invalid("by", requirement, method)
        if method == "words":
            return self.keys, _common_words_function(self.different, self.outputs)
        return self.keys, _mask_match_function(self.different, self.outputs, method)

    def _prepare_word_keys_and_score(self, method: str) -> tuple[Sequence[Hashable], Score]:
        mechanism, is_likelihood = self.mechanism, method == "likelihood"
        if is_likelihood and not mechanism.has_table:
            requirement = f"'encoding' or 'words', for {type(mechanism).__name__} has no table here"
            raise errors.invalid("by", requirement, method)
        if not self.is_text:
            raise errors.mistyped("outputs", "texts of a word mechanism", "vectors")
        originals = look_up_word_numbers("candidates", mechanism, self.texts, "error")
        answers = look_up_word_numbers("outputs", mechanism, list(self.outputs), "error")
        keys = [tuple(numbers) for numbers in originals]
        different = list(dict.fromkeys(keys))
        sizes = np.array([len(key) for key in different])

        def score(rows: Ints) -> Floats:
            # A word mechanism replaces each word by one word, so a text of another length has
            # probability 0.
            scores = np.full((len(rows), len(different)), -np.inf)
            lengths = np.array([len(answers[row]) for row in rows])
            for length in set(lengths.tolist()) & set(sizes.tolist()):
                here, there = np.flatnonzero(lengths == length), np.flatnonzero(sizes == length)
                drawn = np.array([answers[rows[place]] for place in here])
                differences = np.array([different[place] for place in there])
                scores[np.ix_(here, there)] = text_likelihood_score_matrix(
                    mechanism, differences, drawn, by_table=is_likelihood
                )
            return scores

        return keys, score

    def _prepare_vectors(self, method: str) -> Score:
        model = self.mechanism
        if get_or_default(model, "clean") is None:
            requirement = (
                "'words' or a function (output, candidate) -> score, for "
                f"{_name_mechanism(model)} has no clean vectors"
            )
            raise errors.invalid("by", requirement, method)
        law = _noise_distribution(model, self.is_text) if method == "likelihood" else None
        clean = _encode_clean(model, self.different)
        if not self.is_text:
            vectors, is_empty = np.asarray(self.outputs), np.zeros(len(self.outputs), np.bool_)
        else:
            # An empty rewrite has no vector, so all candidates tie.
            is_empty = np.array([not text.strip() for text in self.outputs])
            vectors = np.zeros((len(is_empty), clean.shape[1]))
            if not is_empty.all():
                written = [str(text) for text in self.outputs if text.strip()]
                vectors[~is_empty] = _encode_clean(model, written)
        if vectors.shape[1] != clean.shape[1]:
            raise errors.invalid("outputs", f"of shape (n, {clean.shape[1]})", vectors.shape)

        def score(rows: Ints) -> Floats:
            scores = [_score_noise(law, vectors[row], clean) for row in rows]
            return np.where(is_empty[rows, np.newaxis], 0.0, np.array(scores))

        return score


def _read_score(value: Any) -> float:
    """Return the score from a user's function as a float, after a check."""
    requirement = "a number, -inf for a candidate that is excluded"
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)):
        raise errors.mistyped("by(output, candidate)", requirement, value)
    if np.isnan(value):
        raise errors.invalid("by(output, candidate)", requirement, value)
    return float(value)


def _encode_clean(model: Any, texts: Sequence[str]) -> Floats:
    clean = model.clean(list(texts))
    array = clean.detach().double().cpu().numpy() if is_tensor(clean) else clean
    vectors = errors.numeric("clean(texts)", "numbers of shape (n, d)", array).astype(np.float64)
    if vectors.ndim != 2 or len(vectors) != len(texts):
        requirement = f"numbers of shape ({len(texts)}, d)"
        raise errors.invalid("clean(texts)", requirement, vectors.shape)
    return vectors


def _noise_distribution(model: Any, is_text: bool) -> Any:
    """Return the distribution of the noise, or raise an error if the distribution is not known."""
    requirement, name = "'encoding', 'words' or a function", type(model).__name__
    if is_text:
        reason = "the law of a rewritten text is not known (a decoder follows the noise)"
        raise errors.invalid("by", f"{requirement}, for {reason}", "likelihood")
    private = model.private if has_all(model, "private") else model
    law = private.noise.description if has_all(private, "noise") else None
    if not isinstance(law, _LAWS):
        raise errors.invalid("by", f"{requirement}, for {name} has no known law", "likelihood")
    is_random = has_all(private, "batches") and bool(private.batches.reason)
    if is_random or (has_all(model, "dropout") and model.dropout is not None):
        raise errors.invalid("by", f"{requirement}, for {name} is random itself", "likelihood")
    return law


def _score_noise(law: Any, output: Floats, clean: Floats) -> npt.NDArray[np.float64]:
    """Return the log density of a noisy vector, given each clean vector, up to a constant.

    If `law` is None, return the negative L2 distances.
    """
    noise = output - clean
    if isinstance(law, Laplace):
        return np.asarray(-np.abs(noise).sum(axis=1) / law.scale)
    if isinstance(law, Gaussian):
        return np.asarray(-np.square(noise).sum(axis=1) / (2.0 * law.sigma**2))
    if not isinstance(law, DPTextNoise):
        scale = law.scale if isinstance(law, L2Laplace) else 1.0
        return np.asarray(-np.linalg.norm(noise, axis=1) / scale)
    # The noise is never negative. The variant "zero" leaves half of the entries unchanged.
    # Floating-point outputs show which entries are unchanged, up to the rounding of the encoder.
    rounding = _ROUNDING * max(float(np.abs(clean).max()), np.finfo(np.float64).tiny)
    entries = -noise / law.scale
    if law.nan == "zero":
        entries = np.where(noise <= rounding, np.log(law.scale / rounding), entries)
    return np.asarray(np.where(noise < -rounding, -np.inf, entries).sum(axis=1))


def _common_words_function(candidates: Sequence[str], outputs: Any) -> Score:
    """Return a function that scores candidates by their number of words in common with outputs.

    The score is Dice's coefficient: the number of common words divided by the mean number of words
    of the two texts. A word that occurs k times in each text counts k times.
    """
    places: dict[tuple[str, int], list[int]] = defaultdict(list)
    sizes = np.zeros(len(candidates))
    for place, text in enumerate(candidates):
        words = _number_copies(words_of(text))
        sizes[place] = len(words)
        for word in words:
            places[word].append(place)

    def score(rows: Ints) -> Floats:
        scores = np.zeros((len(rows), len(candidates)))
        for row, own in zip(rows, scores, strict=True):
            words = _number_copies(words_of(outputs[row].replace(MASK, " ")))
            for word in words:
                own[places.get(word, [])] += 1.0
            own *= 2.0 / np.maximum(sizes + len(words), 1.0)
        return scores

    return score


def _number_copies(words: list[str]) -> list[tuple[str, int]]:
    counts: Counter[str] = Counter()
    numbered = []
    for word in words:
        counts[word] += 1
        numbered.append((word, counts[word]))
    return numbered


def _mask_match_function(candidates: Sequence[str], outputs: Any, method: Any) -> Score:
    find_rows = all_matching_rows_function([split_words(text) for text in candidates], method)

    def score(rows: Ints) -> Floats:
        scores = np.full((len(rows), len(candidates)), -np.inf)
        for row, own in zip(rows, scores, strict=True):
            own[find_rows(split_words(outputs[row]))] = 0.0
        return scores

    return score
