"""`infer`: choose an attacker on validation texts, and evaluate the attacker once on test texts.

`infer` also certifies a lower bound on epsilon if any two texts are neighbours.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from ...bounds import predicted
from ...errors import check_epsilon, choice, confidence_level, delta_level, invalid
from ...mechanisms.declarations import get_or_default
from ...mechanisms.texts import bound_object, takes_rng
from ...progress import Progress
from ...recorded.run import audit_outputs
from ...records import Ints, Pair
from ...report.plain import register_type
from ...results.outputs_audits import OutputsAudit
from ...streams import Rng, to_seed
from ...suggestions import explain_argument_errors
from . import metrics, outcomes
from .attackers import (
    Attacker,
    FittedAttacker,
    Vectors,
    attackers_of,
    check_encoder,
    encode_each_part,
    encoder_of,
    estimate_seconds,
    fit_attacker,
    one_or_all_encodings,
    split_given_by_part,
)
from .encodings import Encodings, encode_again
from .likelihood import is_likelihood, noise_law_attacker, split_likelihood
from .metrics import CORRELATION, RANKINGS, TOP, Ranking, Truth, find_threshold, threshold_scores
from .outcomes import Floor, OfAttribute, OfMeasure, Scores
from .record import Inference, ScoredTexts
from .targets import Kind, Parts, Target, floor_answers, positive_shares, prior_ranks, target_parts

Neighbours = Literal["any two texts", "words"]
NEIGHBOURS: Final[tuple[Neighbours, ...]] = get_args(Neighbours)

"""Possible meanings of "neighbours" in a claim of differential privacy."""

_COUNTED_SHARE: Final = 0.9
"""Share of the test texts on which the event is counted. The event was chosen on validation texts.
The other test texts only confirm which input has the larger probability, so few are enough."""

_LIMIT_TAILS: Final = (0.03, 0.1, 0.25, 0.5)
"""Error probabilities of the limits on validation texts (see `predicted`). They are tried in turn
until some event has a positive predicted bound."""

_THRESHOLD_QUANTILES: Final = 201
"""Number of quantiles of the scores that are tried as thresholds."""

_MIN_TEXTS_PER_VALUE: Final = 20
"""Smallest number of test texts per value. With 20 texts, the tenth that is not counted has two
texts."""

Measure = Literal["accuracy", "f1", "auc", "balanced accuracy", "true-positive rate", "correlation"]
_MEASURE_NAMES: Final[tuple[Measure, ...]] = get_args(Measure)
Tried = tuple[FittedAttacker, Vectors]
Cells = dict[str, Any]
"""For each baseline, the cell (set of texts) to which each text belongs."""


@dataclass(frozen=True)
class Beyond:
    """Set of scores on one side of a threshold: at or above the threshold, or below the threshold.

    Args:
        threshold: the threshold, chosen on the validation texts.
        above: True for the scores at or above the threshold, False for the scores below it.
    """

    threshold: float
    above: bool

    def __call__(self, outputs: Any) -> npt.NDArray[np.bool_]:
        """Return, for each score, True if the score is in the set, shape (size,)."""
        return np.asarray((np.asarray(outputs) >= self.threshold) == self.above)

    def __str__(self) -> str:
        """Return the condition on the score as text, for a report."""
        return f"the attacker's score {'>=' if self.above else '<'} {self.threshold:.6g}"


register_type("Beyond", Beyond)


def reason_not_certified(target: Target, neighbours: str | None, smallest: int) -> str | None:
    """Return the reason why no bound on epsilon can be certified, or None if a bound is possible.

    `target` has the attributes to infer. `neighbours` is the definition of neighbours in the claim.
    `smallest` is the number of test texts with the rarest value of the attribute.
    """
    if neighbours is not None:
        choice("neighbours", neighbours, NEIGHBOURS)
    few = f"fewer than {_MIN_TEXTS_PER_VALUE} test texts of one value"
    reasons = {
        "a number": target.is_number,
        "several attributes": target.is_joint,
        "not binary": not target.all_binary,
        "word adjacency": neighbours == "words",
        "neighbours not stated (neighbours='any two texts' certifies)": neighbours is None,
        few: smallest < _MIN_TEXTS_PER_VALUE,
    }
    return next((f"not applicable: {why}" for why, holds in reasons.items() if holds), None)


def certify(
    valid: tuple[Vectors, Ints],
    test_scores: tuple[Vectors, Ints],
    target: Target,
    claim: float | None,
    delta: float,
    confidence: float,
    seed: int,
) -> OutputsAudit:
    """Certify a lower bound on epsilon from the attacker's scores of the test texts.

    The attribute has two values. Let E be an event (a set of scores). If any two texts are
    neighbours, the claim states ``P(E | text) <= e^epsilon P(E | text') + delta`` for every ordered
    pair of texts. Then the same inequality holds between two means of P(E | text). The mean on the
    left is over the texts with one value of the attribute. The mean on the right is over the texts
    with the other value. The bound on epsilon compares these two means. For each value, the number
    of texts with a score in E is a sum of independent bits with different probabilities. This sum
    is less spread around its mean than a binomial variable with the same mean (Hoeffding, 1956).
    Therefore exact binomial limits are valid for fixed texts, which need not be random. E and the
    attribute value on the left are chosen on the validation texts.

    Args:
        valid: a pair for the validation texts: their scores, shape (n, 1), and the codes of their
            true values (0 or 1).
        test_scores: the same pair for the test texts.
        target: the inferred attribute, with two values.
        claim: claimed epsilon, or None without a claim.
        delta: delta of the claim.
        confidence: probability with which the bound holds.
        seed: seed of the random choice of the test texts on which E is counted.

    Returns:
        The audit, with the bound. An audit compares two inputs x and x'. Here x' stands for the
        texts with the value on the left of the inequality.
    """
    sides, values = _split_by_truth(*test_scores), target.values[0]
    trials = int(_COUNTED_SHARE * min(map(len, sides)))
    numerator, event = _choose_side_and_event(*_split_by_truth(*valid), trials, delta, confidence)
    names = [
        f"texts with {target.names[0]} = {values[code]}" for code in (1 - numerator, numerator)
    ]

    def chosen_on_validation(outputs: Any, outputs_prime: Any, pair: Pair) -> Beyond:
        return event

    return audit_outputs(
        sides[1 - numerator],
        sides[numerator],
        rows="independent",
        claim=claim,
        delta=delta,
        confidence=confidence,
        attack=chosen_on_validation,
        pair=Pair(names[0], names[1]),
        count_share=_COUNTED_SHARE,
        # The limits hold for fixed texts, and a corpus may be sorted by topic.
        arranged=True,
        rng=seed,
    )


def _split_by_truth(scores: Vectors, truth: Ints) -> tuple[Any, Any]:
    return scores[truth[:, 0] == 0, 0], scores[truth[:, 0] == 1, 0]


def _choose_side_and_event(
    negatives: Any, positives: Any, trials: int, delta: float, confidence: float
) -> tuple[int, Beyond]:
    """Choose the value for the numerator, and the event, with the largest predicted bound."""
    every = np.concatenate([negatives, positives])
    cuts = np.unique(np.quantile(every, np.linspace(0.0, 1.0, _THRESHOLD_QUANTILES)))
    ways = [(above, side) for above in (True, False) for side in (1, 0)]
    counts = {
        (above, side): (((rows[:, np.newaxis] >= cuts) == above).sum(axis=0), len(rows))
        for above in (True, False)
        for side, rows in enumerate((negatives, positives))
    }
    for tail in _LIMIT_TAILS:
        both = ((*counts[above, side], *counts[above, 1 - side]) for above, side in ways)
        merits = np.stack([predicted(*k, trials, delta, confidence, tail=tail) for k in both])
        if merits.max() > 0.0:
            break
    way, cut = np.unravel_index(int(merits.argmax()), merits.shape)
    above, side = ways[int(way)]
    return side, Beyond(float(cuts[cut]), above)


@explain_argument_errors
def infer(
    encode: Any,
    corpus: Any,
    attribute: Any,
    *,
    kind: Kind | None = None,
    attackers: Any = None,
    measure: Measure | None = None,
    vectors: Any = None,
    neighbours: Neighbours | None = None,
    claim: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    rounding: float | None = None,
    copies: int | None = None,
    rng: Rng = None,
    progress: bool | None = None,
) -> Inference:
    """Infer a private attribute from the vectors of texts, as an attacker would.

    An encoder is a function from texts to vectors. An attacker is a transform of the vectors
    together with a classifier that predicts the attribute. `infer` fits all attackers on the
    training texts. On the validation texts, `infer` chooses the best attacker and the threshold of
    its score. Then `infer` evaluates the chosen attacker once on the test texts. Validation texts
    that are also training texts are left out. Test texts that are also training or validation texts
    are left out.

    A real attacker may call the encoder many times. Therefore `infer` encodes each training text
    several times if the encoder has an argument `rng` for its noise. Regressions and trees learn
    from all these encodings. Networks use another encoding in each epoch. If the distribution of
    the noise and the vectors without noise are known, the default attackers include "likelihood".
    The attacker "likelihood" computes the likelihood of a noisy vector, given the vectors of the
    training texts without noise. `infer` chooses "likelihood" unless another attacker is better on
    the validation texts by more than one standard error.

    By default, three measures are used for an attribute with two values: the area under the ROC
    curve, the true-positive rate and the balanced accuracy. For each measure, `infer` chooses an
    attacker and a threshold, and tests them once at a third of the significance level.

    Args:
        encode: encoder, in one of these forms:

            - a function list[str] -> array of shape (n, d), or an object whose method `encode` is
              such a function;
            - a function from one text to a vector;
            - a feature-extraction pipeline of the library transformers, whose token vectors are
              averaged;
            - a dictionary from texts to vectors.

            If the encoder has an argument `rng`, each call of the encoder gets a different
            generator. There is one call for each of train, valid and test, and one call for each
            further encoding of train. `encode` must be None if `vectors` is given.
        corpus: a `Corpus` with a split.
        attribute: name of an attribute of the corpus, or a list with the value of an attribute for
            each text. A list of several names is also allowed, if each of these attributes has two
            values. If an attribute has more than two values, such as authors, the attacker ranks
            the values. The report then also has the mean rank of the true value, and the share of
            texts whose true value has a rank from 1 to 5.
        kind: "number" treats the attribute as a number, such as an age, and reports Spearman's
            correlation and the mean absolute error. "values" treats every number as a separate
            class. With None, floats are numbers, and integers and strings are separate classes.
        attackers: one attacker or a list of attackers: scikit-learn classifiers (regressors if the
            attribute is a number), `Attacker` objects, or "likelihood". Each classifier is combined
            with six transforms of `Attacker`: "raw", "centred", "row minimum subtracted",
            "norm-scaled", "call mean subtracted" and "row summaries". The default is the attackers
            of `dpcore.text.inference.usual`, and also "likelihood" if the noise is known. If the
            class of an estimator is not from scikit-learn, the estimator learns from only one
            encoding of each training text. An estimator that holds out training texts to compare
            settings also learns from only one encoding.
        measure: measure by which the attacker is chosen and tested: "auc", "true-positive rate" (at
            1 % false positives), "balanced accuracy", "accuracy" or "f1". If you pass one measure,
            its test uses the whole significance level. With None, the measures depend on the
            attribute: "auc", "true-positive rate" and "balanced accuracy" for two values,
            "accuracy" for more than two values, and "f1" for several attributes. If the attribute
            is a number, the measure is always "correlation".
        vectors: vectors that were computed elsewhere, shape (n, d), with one row for each text of
            the corpus. These vectors replace `encode`.
        neighbours: definition of neighbours in the privacy claim of the encoder. With "any two
            texts", `infer` can certify a lower bound on epsilon. With "words" (texts that differ in
            one word) or None, `infer` certifies no bound.
        claim: claimed epsilon. With None, it is the epsilon that the encoder claims, if it has a
            claim.
        delta: claimed delta, in [0, 1). With None, it is the delta that the encoder claims, or 0 if
            the encoder has no claim.
        confidence: confidence of each interval and of the certified bound separately.
        rounding: largest allowed distance between two vectors of the same text, relative to the
            norm of the vector. The first vector is from a call of the encoder with only this text.
            The second vector is from a call with several texts. With None, the distance is 1e-5, or
            .05 for bfloat16 and float16.
        copies: number of encodings of each training text, if the encoder has an argument `rng`.
            With None, the number is 10. If 10 encodings have more than 8 million entries in total,
            the number is smaller, but at least 2. If two encodings are equal, or if further
            encodings would take more than 30 s, the number is 1.
        rng: None, an int seed in [0, 2**63) or a numpy Generator. The field `seed` of the result
            has the seed.
        progress: True shows a progress bar over the attackers, and messages about steps that take
            more than 30 s. False shows no bar and no messages. None shows the bar on a terminal.
            Unless `progress` is False, `infer` first encodes 8 training texts to estimate the time,
            and then 64 more if the encoding of 8 texts is slow.

    Returns:
        The result, with the measures of the chosen attacker on the test texts.

    Raises:
        TypeError: if an argument has a wrong type.
        ValueError: for one of these reasons:

            - the corpus lacks the attribute, or lacks train, valid or test;
            - one of the parts train, valid and test has only one value of the attribute, or all
              texts of the part are left out;
            - the encoder returns a wrong number of vectors, vectors of different lengths, or NaN;
            - the vector of a text depends on the other texts in the same call of the encoder.
        ImportError: if an attacker needs scikit-learn, which is not installed.

    Source:
        Beigi et al. (2019) and Lyu, He and Li (2020) for the attack. Cawley and Talbot (2010) for
        the bias if the best of many classifiers is chosen and tested on the same data.

    Example:
        >>> import numpy as np
        >>> from dpcore.text import Corpus
        >>> rng = np.random.default_rng(1)
        >>> male = rng.integers(0, 2, 900)
        >>> words = np.where(rng.random(900) < 0.9, male, 1 - male)
        >>> texts = [f"{'he' if word else 'she'} said {row}" for row, word in enumerate(words)]
        >>> split = ["train"] * 500 + ["valid"] * 200 + ["test"] * 200
        >>> corpus = Corpus(texts, attributes={"male": male}, split=split)
        >>> def encode(texts):
        ...     return np.array([[text.startswith("she"), len(text)] for text in texts], float)
        >>> found = infer(encode, corpus, "male", rng=1)
        >>> 0.8 < found.accuracy.low < 0.9 < found.accuracy.high, found.above_floor
        (True, True)
        >>> found.certified
        "not applicable: neighbours not stated (neighbours='any two texts' certifies)"
    """
    start, seed, confidence = time.perf_counter(), to_seed(rng), confidence_level(confidence)
    function = encoder_of(encode) if vectors is None else None
    target, parts = target_parts(corpus, attribute, kind)
    measures = _selection_measures(target, measure)
    smallest = int(np.unique(parts.truth[2], return_counts=True)[1].min())
    reason = reason_not_certified(target, neighbours, smallest)
    claim, delta = _read_inference_claim(encode, claim, delta, reason)
    others, is_likelihood_requested = split_likelihood(attackers)
    given_attackers: tuple[Attacker, ...] = ()
    if others != [] or not is_likelihood_requested:
        given_attackers = attackers_of(others, len(parts.texts[0]), target.count)
    batches = None
    if function is None:
        if copies is not None:
            raise invalid("copies", "None where vectors are given", copies)
        encoded = _Encoded(split_given_by_part(encode, vectors, corpus.texts, parts.rows), [], None)
    else:
        encoded = _encode_parts(function, parts, given_attackers, seed, copies, progress)
        batches = check_encoder(function, parts.texts[0], rounding, parts.rows[0].tolist())
    rows = encoded.rows
    if function is not None and (attackers is None or is_likelihood_requested):
        places, width = parts.rows[0].tolist(), rows[0].shape[1]
        given_attackers += noise_law_attacker(function, parts.texts[0], places, width, target)
    if is_likelihood_requested and not any(map(is_likelihood, given_attackers)):
        need = "others than 'likelihood' where the noise of encode or its clean vectors are unknown"
        raise invalid("attackers", need, attackers)
    judges = [Truth(t, target, measures[0], confidence, seed) for t in parts.truth]

    tried = _fit_all_attackers(given_attackers, encoded, judges[0], progress)
    cells = _assign_texts_to_baseline_groups(parts, "median" if target.is_number else "majority")
    choices = _choose_attackers(tried, judges[1], measures, cells[1])
    best = alone = _choice_with_largest_value(choices)
    if best.model.attacker.reads_call:
        single = [pair for pair in tried if not pair[0].attacker.reads_call]
        single_choices = _choose_attackers(single, judges[1], measures, cells[1])
        if single_choices:
            alone = _choice_with_largest_value(single_choices)
        else:
            reason = reason or "not applicable: every attacker compares the texts of a call"
    judge = replace(judges[2], measure=best.measure)
    groups = _group_ids_or_none_if_truth_varies(corpus.groups, parts)
    # Each chosen model scores the test texts once, for all measures that chose it.
    models = {id(option.model): option.model for option in choices}
    answered = {
        key: _scores_true_ranks(model, rows[2], parts.truth[2]) for key, model in models.items()
    }
    level = (1.0 - confidence) / 2.0 / len(choices)
    tests = [
        _measure_majority_or_median_baselines(
            parts, judge, option, answered[id(option.model)][0], cells[2], groups, level
        )
        for option in choices
    ]
    scores, ranks = answered[id(best.model)]
    tested = _list_measures(judge, choices, answered, tests) if len(choices) > 1 else ()
    outcome = _test_figures_by_attribute_kind(parts, judge, best, judges[1], scores, ranks, tested)
    answers, attacker = threshold_scores(scores, best.threshold), best.model.attacker
    readers = [attacker, *(other for other in given_attackers[:1] if other is not attacker)]
    flags, main = metrics.predict_main_labels(readers, rows, parts.labels, confidence, seed)
    return Inference(
        attributes=target.names,
        values=target.values,
        attacker=attacker.classifier,
        transform=attacker.behind,
        measure=best.measure,
        outcome=outcome,
        floors=tests[[option is best for option in choices].index(True)],
        groups=metrics.value_accuracies(target, parts.truth[2], answers, flags, confidence),
        main=main,
        certified=reason or certify(
            (alone.scores, parts.truth[1]),
            (scores if alone is best else alone.model.scores(rows[2]), parts.truth[2]),
            target, claim, delta, confidence, seed,
        ),
        sizes=(len(parts.texts[0]), len(parts.texts[1]), len(parts.texts[2])),
        left_out=parts.left_out,
        authors=None if groups is None else int(groups.max()) + 1,
        encodings=encoded.number,
        batches=batches,
        tried=best.tried,
        scored=ScoredTexts(parts.rows[2], parts.truth[2], scores, ranks),
        confidence=confidence,
        seed=seed,
        seeded=function is not None and takes_rng(function),
        seconds=time.perf_counter() - start,
    )  # fmt: skip


class _Encoded(NamedTuple):
    """Vectors of train, valid and test, and further encodings of train with their number."""

    rows: list[Vectors]
    copies: list[Vectors]
    number: Encodings | None


def _encode_parts(
    function: Any, parts: Parts, attackers: Sequence[Attacker], seed: int, copies: int | None,
    progress: bool | None,
) -> _Encoded:  # fmt: skip
    """Encode all parts once, and encode the training texts several times if time allows it."""
    is_used = any(one_or_all_encodings(attacker.estimator) != "one" for attacker in attackers)
    total = sum(map(len, parts.texts))
    with Progress("encoding texts", None, progress) as bar:
        if progress is not False:
            bar.forecast(f"{total:,} texts to encode", estimate_seconds(function, parts.texts))
        begun = time.perf_counter()
        rows = encode_each_part(function, parts.texts, seed, parts.rows)
        seconds = (time.perf_counter() - begun) * len(parts.texts[0]) / total
        train = parts.texts[0], rows[0], parts.rows[0].tolist()
        further, number = encode_again(function, *train, seed, seconds if is_used else None, copies)
    return _Encoded(rows, further, number)


class _BestAttacker(NamedTuple):
    """The attacker that is best on validation by a measure, and the results of all attackers."""

    model: FittedAttacker
    scores: Vectors
    measure: str
    threshold: float | None
    tried: tuple[tuple[str, float], ...]
    row: int


def _selection_measures(target: Target, measure: Any) -> tuple[str, ...]:
    """Return the measures by which attackers are chosen: the given one, or the default ones."""
    if measure is not None:
        choice("measure", measure, _MEASURE_NAMES)
    if target.is_number or measure == CORRELATION:
        if not target.is_number or measure not in (None, CORRELATION):
            raise invalid("measure", f"{CORRELATION!r} for a number, and for nothing else", measure)
        return (CORRELATION,)
    if measure is None:
        return (
            RANKINGS if target.is_binary else _MEASURE_NAMES[target.is_joint : target.is_joint + 1]
        )
    if measure in RANKINGS and not target.is_binary:
        need = "accuracy or f1 for several attributes or more values than two"
        raise invalid("measure", need, measure)
    return (measure,)


def _scores_true_ranks(model: FittedAttacker, vectors: Vectors, truth: Any) -> tuple[Vectors, Any]:
    """Return scores of the test texts, and the ranks of their true values or None.

    Ranks exist only if the attribute has more than two values.
    """
    if model.counts is None:
        return model.scores(vectors), None
    ranks = model.rank_values(vectors)
    answers = ranks.argmin(axis=1).astype(np.float64)[:, np.newaxis]
    return answers, np.take_along_axis(ranks, truth, axis=1)[:, 0]


def _assign_texts_to_baseline_groups(parts: Parts, name: str) -> list[Cells]:
    """Return, for each part, the cell numbers of the texts for each baseline.

    A baseline gives all texts of a cell the same answer. For the first baseline, all texts are in
    one cell. For the second baseline, texts with the same main label are in one cell.
    """
    cell_numbers = []
    for part, truth in enumerate(parts.truth):
        cells = {name: np.zeros(len(truth), np.int64)}
        if parts.labels is not None:
            labels = np.unique(parts.labels[part], return_inverse=True)[1]
            cells[f"{name} given the main label"] = labels
        cell_numbers.append(cells)
    return cell_numbers


def _fit_all_attackers(
    attackers: Sequence[Attacker], encoded: _Encoded, train: Truth, progress: bool | None
) -> list[Tried]:
    """Fit all attackers on the training texts, and return them with scores of validation texts."""
    tried, is_said = list[Tried](), False
    begun = time.perf_counter()
    with Progress("attackers", len(attackers), progress) as bar:
        for done, attacker in enumerate(attackers, 1):
            about = train.truth, train.target, train.seed
            model = fit_attacker(attacker, encoded.rows[0], *about, encoded.copies)
            tried.append((model, model.scores(encoded.rows[1])))
            bar.advance(1)
            if not is_said:
                left = len(attackers) - done
                # The rest is estimated again after each attacker, because a network takes as long
                # as twenty logistic regressions.
                rest = left * (time.perf_counter() - begun) / done
                is_said = bar.forecast(f"attackers that are left ({left})", rest)
    return tried


def _choose_attackers(
    tried: Sequence[Tried], valid: Truth, measures: Sequence[str], cells: Cells
) -> list[_BestAttacker]:
    """Choose the best attacker on validation for each measure; in a tie, the first one.

    For measures of scores, such as the AUC, attackers are compared by how far the measure is above
    its mean under permutations, in standard deviations. The permutations exchange true values
    within the cells of a baseline (the texts that have the same answer). If there are two
    baselines, the smaller number counts. The likelihood attacker is chosen unless another attacker
    is better by more than one standard error.

    Returns:
        The chosen attacker for each measure.
    """
    merits = np.empty((len(tried), len(measures)))
    cuts = np.empty(merits.shape, object)
    for row, (_, scores) in enumerate(tried):
        for column, measure in enumerate(measures):
            cut = find_threshold(scores, valid.truth, measure) if valid.target.all_binary else None
            cuts[row, column] = cut
            if measure in (*RANKINGS, CORRELATION):
                ranking = Ranking(measure, np.nan if cut is None else cut)
                merits[row, column] = min(
                    ranking.permutation_z_score(scores[:, 0], valid.codes_or_ranks, cell)
                    for cell in cells.values()
                )
            else:
                merits[row, column] = valid.value(threshold_scores(scores, cut))
    names = [str(model.attacker) for model, _ in tried]
    likely = [row for row, (model, _) in enumerate(tried) if is_likelihood(model.attacker)]
    choices = []
    for column, measure in enumerate(measures if tried else ()):
        row, values = int(merits[:, column].argmax()), merits[:, column]
        error = _standard_error(valid, measure, values[row])
        if likely and values[row] <= values[likely[0]] + error:
            row = likely[0]
        pairs = tuple(zip(names, values.tolist(), strict=True))
        choices.append(_BestAttacker(*tried[row], measure, cuts[row, column], pairs, row))
    return choices


def _standard_error(valid: Truth, measure: str, value: float) -> float:
    """Return the standard error of a measure on validation; 1 for a standardised measure."""
    if measure in (*RANKINGS, CORRELATION):
        return 1.0
    return math.sqrt(max(0.0, value * (1.0 - value)) / len(valid.truth))


def _choice_with_largest_value(choices: Sequence[_BestAttacker]) -> _BestAttacker:
    """Return the choice with the largest value over all measures; in a tie, the first attacker."""
    return min(choices, key=lambda choice: (-choice.tried[choice.row][1], choice.row))


def _read_inference_claim(
    encode: Any, claim: Any, delta: Any, reason: str | None
) -> tuple[float | None, float]:
    """Return the claimed epsilon and delta, by default the encoder's; epsilon may be None."""
    if reason is not None and claim is not None:
        raise invalid("claim", f"None where nothing can be certified ({reason})", claim)
    # If the encoder is a method, the claim belongs to its object.
    owner = encode if bound_object(encode) is None else bound_object(encode)
    own = get_or_default(owner, "claim") if claim is None and reason is None else None
    if delta is None:
        # An (epsilon, delta) claim that is true could be refuted if its delta were ignored.
        delta = 0.0 if own is None else get_or_default(owner, "delta")
    claim = own if claim is None else claim
    return None if claim is None else check_epsilon(claim), delta_level(delta)


def _measure_majority_or_median_baselines(
    parts: Parts, judge: Truth, best: _BestAttacker, scores: Vectors, cells: Cells, groups: Any,
    level: float,
) -> tuple[Floor, ...]:  # fmt: skip
    """Return the baselines: majority (or median) of train, overall and for each main label."""
    cells_of_floors = [[np.zeros(len(texts), np.int64) for texts in parts.texts], parts.labels]
    floors, truth, target = [], parts.truth[0], judge.target
    for (name, numbers), (train, _, test) in zip(
        cells.items(), filter(None, cells_of_floors), strict=True
    ):
        more: dict[str, Any] = {}
        if best.measure in (*RANKINGS, CORRELATION):
            cut = np.nan if best.threshold is None else best.threshold
            units = Ranking(best.measure, cut).weigh(scores[:, 0]), judge.codes_or_ranks, numbers
            units = units if groups is None else metrics.weights_by_group(*units, groups)
            more["p_value"] = metrics.permutation_p_value(*units, judge.seed)
            more["level"] = level
        if target.is_number:
            medians = positive_shares(truth, train, test, np.median)
            errors = [abs(guesses - judge.truth[:, 0]) for guesses in (medians, scores[:, 0])]
            gain, more["error"] = judge.mean(errors[0] - errors[1]), float(errors[0].mean())
            floors.append(Floor(name, np.nan, np.nan, gain, **more))
            continue
        by: dict[str, Any] = {
            measure: floor_answers(truth, train, test, target, measure)
            for measure in ("accuracy", "f1")
        }
        figures = judge.accuracy(by["accuracy"]).value, judge.f1(by["f1"]).value
        if target.is_ranked:
            ranks = prior_ranks(truth, train, test, judge.truth[:, 0], len(target.values[0]))
            more |= {"top": float((ranks <= TOP).mean()), "mean_rank": float(ranks.mean())}
        gain = (
            judge.auc_gain(scores[:, 0], positive_shares(truth, train, test))
            if best.measure in RANKINGS
            else judge.gain(threshold_scores(scores, best.threshold), by[best.measure])
        )
        floors.append(Floor(name, *figures, gain, **more))
    return tuple(floors)


def _group_ids_or_none_if_truth_varies(column: Any, parts: Parts) -> Any:
    """Return the group number of each test text, or None if texts of a group differ in value."""
    if column is None:
        return None
    groups = np.unique(column[parts.rows[2]], return_inverse=True)[1]
    both = np.unique(np.column_stack([groups, parts.truth[2]]), axis=0)
    return groups if len(both) == int(groups.max()) + 1 else None


def _test_figures_by_attribute_kind(
    parts: Parts, judge: Truth, best: _BestAttacker, valid: Truth, scores: Vectors, ranks: Any,
    measures: tuple[OfMeasure, ...],
) -> outcomes.Outcome:  # fmt: skip
    """Return the measures on the test texts, as an object for the kind of attribute."""
    if judge.target.is_number:
        error = judge.mean(abs(scores[:, 0] - judge.truth[:, 0]))
        return outcomes.NumberFigures(judge.spearman(scores[:, 0]), error)
    answers = threshold_scores(scores, best.threshold)
    shares = judge.accuracy(answers), judge.f1(answers)
    if best.threshold is None:
        values = np.unique(parts.truth[0])
        unknown = int((~np.isin(parts.truth[2], values)).sum())
        ranking = outcomes.RankFigures(judge.top(ranks), judge.mean(ranks), len(values), unknown)
        return outcomes.ManyValues(*shares, ranking)
    if judge.target.is_joint:
        each = _accuracy_f1_by_attribute(parts, judge, answers)
        return outcomes.SeveralAttributes(*shares, best.threshold, each)
    figures = _test_auc_and_rates(judge, best, scores, valid)
    return outcomes.TwoValues(*shares, best.threshold, figures, measures)


def _test_auc_and_rates(judge: Truth, best: _BestAttacker, scores: Vectors, valid: Truth) -> Scores:
    """Return measures of the scores of the test texts, at thresholds from validation."""
    tail, balanced = (find_threshold(best.scores, valid.truth, name) for name in RANKINGS[1:])
    highest = metrics.find_float_above_maximum(best.scores[valid.truth[:, 0] == 0, 0])
    return Scores(
        judge.auc(scores[:, 0]),
        judge.balanced_accuracy(threshold_scores(scores, balanced)),
        *judge.find_rates(scores[:, 0], tail),
        *judge.find_rates(scores[:, 0], highest),
    )


def _list_measures(
    judge: Truth, choices: Sequence[_BestAttacker], answered: Any, tests: Any
) -> tuple[OfMeasure, ...]:
    """Return, for each measure, the chosen attacker and its result on the test texts."""
    measures = []
    for best, floors in zip(choices, tests, strict=True):
        scores, attacker = answered[id(best.model)][0], best.model.attacker
        assert best.threshold is not None
        if best.measure == "auc":
            figure = judge.auc(scores[:, 0])
        elif best.measure == "true-positive rate":
            figure = judge.find_rates(scores[:, 0], best.threshold)[0]
        else:
            figure = judge.balanced_accuracy(threshold_scores(scores, best.threshold))
        details = attacker.classifier, attacker.behind, best.threshold
        measures.append(OfMeasure(best.measure, *details, figure, floors))
    return tuple(measures)


def _accuracy_f1_by_attribute(parts: Parts, judge: Truth, answers: Ints) -> tuple[OfAttribute, ...]:
    """Return the accuracy and F1 of the answers for each attribute separately."""
    columns, target = [], judge.target
    for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
        here, frequent = [column], np.bincount(parts.truth[0][:, column]).argmax()
        single = replace(judge, truth=judge.truth[:, here], target=Target((name,), (values,)))
        figures = single.accuracy(answers[:, here]), single.f1(answers[:, here])
        majority = float((single.truth == frequent).mean())
        columns.append(OfAttribute(name, values[1], *figures, majority))
    return tuple(columns)
