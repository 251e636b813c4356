"""An attack on encoded texts: chosen on validation, evaluated once on texts of its own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np

from ...errors import choice, confidence_level, delta_level, invalid, real
from ...hints import hinted
from ...progress import Progress
from ...streams import Rng, seed_of
from .attackers import Attacker, FittedAttacker, attackers_of, fitted
from .certifying import Neighbours, certify, why_not
from .encoding import Vectors, check_encoder, encoder_of, takes_rng, vectors_of
from .floors import floor_answers
from .groups import groups_of, main_task
from .judging import Judge, answers_of, threshold_of
from .record import Floor, Inference, OfAttribute, ScoredTexts
from .targets import Codes, Parts, Target, parts_of

__all__ = ["Measure", "infer"]

Measure = Literal["accuracy", "f1"]
_MEASURES: Final[tuple[Measure, ...]] = get_args(Measure)


@hinted
def infer(
    encode: Any,
    corpus: Any,
    attribute: Any,
    *,
    attackers: Any = None,
    measure: Measure | None = None,
    neighbours: Neighbours | None = None,
    claim: float | None = None,
    delta: float | None = None,
    confidence: float = 0.95,
    rounding: float | None = None,
    rng: Rng = None,
    progress: bool | None = None,
) -> Inference:
    """What an attacker infers of a private attribute from encoded texts.

    Attackers are fitted on train; the best of them, and its threshold, are chosen on validation,
    and that one alone is evaluated, once, on test texts that occur nowhere else. (The best of many
    on test, with its own interval, is above chance far more often than the interval says.)

    Args:
        encode: list[str] -> array of shape (n, d), or an object with such a method `encode`. With
            an argument `rng` it gets a generator of its own at each of three calls: for train,
            valid and test.
        corpus: a `Corpus` with a split.
        attribute: the name of an attribute, or a column with a value for each text; or several
            names, of two values each.
        attackers: scikit-learn classifiers, each behind four transforms (raw, centred, row minimum
            subtracted, norm-scaled), or `Attacker` objects; None are the usual ones (`usual`).
        measure: by what to choose: "accuracy" or "f1"; None is accuracy for one attribute, F1 for
            several.
        neighbours: what the encoder's claim means by neighbours: "any two texts", where something
            can be certified, or "words"; None certifies nothing.
        claim: epsilon that is claimed; None is the encoder's own claim where it has one.
        delta: delta of the claim, in [0, 1); None is the encoder's own with its own claim, else 0.
        confidence: of each interval, and of the certified bound, by itself.
        rounding: largest distance between two encodings of one text, alone and with others,
            relative to the vector's norm; None is 1e-5, for bfloat16 and float16 .05.
        rng: None (fresh entropy, recorded), an int in [0, 2**63) or a Generator.
        progress: a bar over the attackers: True, False or None (where somebody is looking).

    Returns:
        The `Inference`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if the corpus lacks the attribute or a part, the attribute is constant in one,
            no text is left in a part, or the encoder returns another number of rows, of changing
            width or NaN, or gives a text another vector beside other texts.
        ImportError: if attackers of scikit-learn are needed, which is not installed.

    Source:
        Beigi et al. (2019) and Lyu, He and Li (2020) for the attack; spread of the best of many:
        Cawley and Talbot (2010).

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
    start, seed, confidence = time.perf_counter(), seed_of(rng), confidence_level(confidence)
    function = encoder_of(encode)
    target, parts = parts_of(corpus, attribute)
    default = _MEASURES[target.several]
    measure = default if measure is None else choice("measure", measure, _MEASURES)
    smallest = int(np.unique(parts.truth[2], return_counts=True)[1].min())
    reason = why_not(target, neighbours, smallest)
    claim, delta = _claim(encode, claim, delta, reason)
    known = attackers_of(attackers, len(parts.texts[0]))
    vectors = vectors_of(function, parts.texts, seed)
    batches = check_encoder(function, parts.texts[0], rounding)
    judges = [Judge(t, target, measure, confidence, seed) for t in parts.truth]

    best = _best(known, vectors, judges, progress)
    scores = best.model.scores(vectors[2])
    answers, judge, attacker = answers_of(scores, best.threshold), judges[2], best.model.attacker
    main = None if parts.labels is None else main_task(attacker, vectors, parts.labels, seed)
    return Inference(
        attributes=target.names,
        values=target.values,
        attacker=attacker.classifier,
        transform=attacker.behind,
        threshold=best.threshold,
        measure=measure,
        accuracy=judge.accuracy(answers),
        f1=judge.f1(answers),
        floors=_floors(parts, judge, answers),
        each=_each(parts, judge, answers),
        groups=groups_of(target, parts.truth[2], answers, main, confidence),
        certified=reason or certify(
            (best.scores, parts.truth[1]), (scores, parts.truth[2]), target, claim, delta,
            confidence, seed,
        ),
        sizes=(len(parts.texts[0]), len(parts.texts[1]), len(parts.texts[2])),
        left_out=parts.left_out,
        batches=batches,
        tried=best.tried,
        scored=ScoredTexts(parts.rows[2], parts.truth[2], scores),
        confidence=confidence,
        seed=seed,
        seeded=takes_rng(function),
        seconds=time.perf_counter() - start,
    )  # fmt: skip


class _Best(NamedTuple):
    """The attacker that did best on validation, with its scores there, and what all of them did."""

    model: FittedAttacker
    scores: Vectors
    threshold: float | None
    tried: tuple[tuple[str, float], ...]


def _best(
    known: Sequence[Attacker],
    vectors: Sequence[Vectors],
    judges: Sequence[Judge],
    progress: bool | None,
) -> _Best:
    """Fit all attackers on train and keep the best on validation, of equal ones the first."""
    (train, valid), target = judges[:2], judges[0].target
    tried, highest = list[tuple[str, float]](), -np.inf
    with Progress("attackers", len(known), progress) as bar:
        for attacker in known:
            model = fitted(attacker, vectors[0], train.truth, target, train.seed)
            scores = model.scores(vectors[1])
            cut = threshold_of(scores, valid.truth, valid.measure) if target.binary else None
            value = valid.value(answers_of(scores, cut))
            if value > highest:
                highest, best = value, (model, scores, cut)
            tried.append((str(attacker), value))
            bar.advance(1)
    return _Best(*best, tuple(tried))


def _claim(encode: Any, claim: Any, delta: Any, reason: str | None) -> tuple[float | None, float]:
    """The claim to test, the encoder's own where none is given; none where nothing is tested."""
    if reason is not None and claim is not None:
        raise invalid("claim", f"None where nothing can be certified ({reason})", claim)
    # Of a method, the claim is its object's.
    owner = getattr(encode, "__self__", encode)
    own = getattr(owner, "claim", None) if claim is None and reason is None else None
    if delta is None:
        # An (epsilon, delta) claim without its delta would be refuted where it is true.
        delta = 0.0 if own is None else getattr(owner, "delta", 0.0)
    claim = own if claim is None else claim
    return None if claim is None else real("claim", claim, low=0.0), delta_level(delta)


def _floors(parts: Parts, judge: Judge, answers: Codes) -> tuple[Floor, ...]:
    """The majority, and the majority of each main label where there are labels."""
    cells: dict[str, Any] = {"majority": [np.zeros(len(texts), np.int64) for texts in parts.texts]}
    if parts.labels is not None:
        cells["majority given the main label"] = parts.labels
    found = []
    for name, (train, _, test) in cells.items():
        by: dict[str, Any] = {
            measure: floor_answers(parts.truth[0], train, test, judge.target, measure)
            for measure in _MEASURES
        }
        figures = judge.accuracy(by["accuracy"]).value, judge.f1(by["f1"]).value
        found.append(Floor(name, *figures, judge.gain(answers, by[judge.measure])))
    return tuple(found)


def _each(parts: Parts, judge: Judge, answers: Codes) -> tuple[OfAttribute, ...]:
    """The attributes one by one, where there are several."""
    found, target = [], judge.target
    for column, (name, values) in enumerate(zip(target.names, target.values, strict=True)):
        here, alone = [column], Target((name,), (values,))
        single = replace(judge, truth=judge.truth[:, here], target=alone, measure="accuracy")
        # In one cell, whatever it is called, all texts are answered alike.
        cell = np.zeros(len(parts.texts[0]), np.int64)
        asked = np.zeros(len(answers), np.int64)
        floor = floor_answers(parts.truth[0][:, here], cell, asked, alone, "accuracy")
        figures = single.accuracy(answers[:, here]), single.f1(answers[:, here])
        found.append(OfAttribute(name, values[1], *figures, single.value(floor)))
    return tuple(found) if target.several else ()
