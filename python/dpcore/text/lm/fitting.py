"""`lm.fit` trains a next-word model, plain or private; `lm.canaries` are texts to audit it with."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final, Literal

import numpy as np

from ...errors import choice, confidence_level, instance, integer, invalid, real
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of
from ..corpus import training_texts
from ..needed import needed
from ..redaction.masking import MASK, fingerprint_texts
from ..vocabulary import Vocabulary
from .model import NextWordModel
from .settings import Floats, Plan, TextRows, ignore_order_warnings, make_accountant

__all__ = ["canaries", "fit"]

_MIN_VOCABULARY_COUNT: Final = 2
"""Occurrences that a word needs to be in a vocabulary made of the training texts."""
_DEFAULT_RECIPES: Final[dict[str, dict[str, Any]]] = {
    "sgd": {"epochs": 20, "batch": 20, "lr": 20.0},
    "adam": {"epochs": 20, "batch": 64, "lr": 3e-3},
    "private": {"epochs": 15, "batch": 256, "lr": 2.0},
}
"""Gusain and Leith's recipe, Adam beside it, and the private twin."""
_DEFAULT_SIZES: Final = {"hidden": 64, "layers": 1}
_MAX_DEFAULT_DELTA: Final = 8e-5


@hinted
def fit(
    texts: Any,
    valid: Any,
    *,
    vocabulary: Vocabulary | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    clip: float = 1.5,
    optimiser: Literal["sgd", "adam"] = "sgd",
    hidden: int | None = None,
    layers: int | None = None,
    dropout: float = 0.0,
    epochs: int | None = None,
    batch: int | None = None,
    lr: float | None = None,
    length: int = 20,
    start: NextWordModel | None = None,
    masked: str = MASK,
    rng: Rng = None,
    progress: bool | None = None,
) -> NextWordModel:
    """Train a next-word model of texts: plain, or private by DP-SGD.

    A record is one text, cut after `length` words. The state of the LSTM starts at zero for each
    text. Every word but the first is a target, the end is none. The loss is the mean over the
    records of the mean over their targets; a record without targets counts 0. Masked words of
    redacted texts are read and are no targets.

    The plain training is the source's: weights drawn from U(-.1, .1), SGD with rate 20, gradients
    of norm .25 at most, batches of 20, the rate divided by 4 where the validation loss does not
    fall, 20 epochs at most, the weights of the best epoch kept. Adam has rate 3e-3 and batches of
    64. The private training is the same network as `opacus.layers.DPLSTM`, trained by Opacus:
    Poisson batches of 256, rate 2, 15 epochs, the last weights kept.

    Epsilon covers one text, added or removed, of `texts`. It covers neither `valid`, nor a
    vocabulary that is made of the texts, nor the choice among several settings; the number of
    texts is taken as public. The noise is drawn by torch's generator, which is not
    cryptographic, and floating-point effects of the noise are not covered either.

    Args:
        texts: training texts: a list of strings, or a `Corpus`, of which the train part is read.
        valid: validation texts; redacted where the training texts are. They choose rate and epoch
            of a plain training, and nothing of a private one.
        vocabulary: of single words with unknown="token". None makes it of the words that occur
            twice in the training texts, or takes that of `start`.
        epsilon: above 0 for the private training; inf for its recipe without noise; None for the
            plain training.
        delta: in (0, 1), at which epsilon is to hold; None for the smaller of 8e-5 and 1/(2N).
        clip: largest norm of a record's gradient in a private training.
        optimiser: "sgd" or "adam"; a private training has "sgd".
        hidden: entries of a state; None for those of `start`, or 64. The source has 200.
        layers: of the LSTM; None for those of `start`, or 1. The source has 2.
        dropout: share of dropped entries, in [0, 1), 0 for a private training. The source has .2.
        epochs: passes over the texts, None for the recipe's.
        batch: texts in a step, at most all; None for the recipe's.
        lr: rate of the first step, None for the recipe's.
        length: words of a text that are read, 2 or more.
        start: a model whose weights are the start, trained on public texts.
        masked: the token that stands for a masked word.
        rng: None, an int seed or a numpy Generator. The seed of a private training is nowhere
            recorded: it would undo the noise.
        progress: show a bar; None shows it for long work on a terminal or in a notebook.

    Returns:
        The model. After Ctrl-C that of the last whole epoch, `partial` set; its epsilon counts all
        steps that were made.

    Raises:
        ModuleNotFoundError: without torch; for a private training without opacus.
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, there are fewer texts than a batch, or the loss
            diverges.
        KeyboardInterrupt: on Ctrl-C before the first epoch has ended.

    Warns:
        UserWarning: if delta is 1/N or more, or a private step will take seconds.

    Source:
        Gusain and Leith (2025), supplement, next-word prediction; Abadi et al. (2016), algorithm
        1; Gopi, Lee and Wutschitz (2021) (the PRV accountant).

    Example:
        >>> from dpcore.text import generated, lm
        >>> corpus = generated("intents", 300, rng=1)
        >>> model = lm.fit(corpus, corpus.valid, hidden=16, epochs=2, rng=1)
        >>> model.epochs, model.losses(corpus.test.texts[:2]).shape
        (2, (2,))
    """
    found, checked = training_texts(texts), texts_of("valid", valid)
    if start is not None:
        instance("start", start, NextWordModel)
    instance("masked", masked, str)
    words = _choose_vocabulary(found, vocabulary, start, masked)
    rows = TextRows(words, integer("length", length, 2), masked)
    plan = _make_plan(
        len(found), start, epsilon is not None, optimiser=optimiser, epochs=epochs, batch=batch,
        lr=lr, hidden=hidden, layers=layers, dropout=dropout,
    )  # fmt: skip
    if epsilon is not None:
        plan = _add_noise(plan, epsilon, delta, clip, len(found))
    has_own = vocabulary is None and start is None
    return _train_model(found, checked, rows, plan, start, has_own, seed_of(rng), progress)


def _check_vocabulary(vocabulary: Vocabulary) -> Vocabulary:
    """Check that a next-word model can use a vocabulary.

    Args:
        vocabulary: single words, and a token for unknown ones.

    Raises:
        TypeError: if it is not a `Vocabulary`.
        ValueError: if it leaves unknown words out, or holds runs of words.
    """
    instance("vocabulary", vocabulary, Vocabulary)
    if vocabulary.unknown != "token" or vocabulary.ngrams != 1:
        raise invalid("vocabulary", "one of single words with unknown='token'", vocabulary)
    return vocabulary


def _choose_vocabulary(
    texts: Sequence[str], given: Vocabulary | None, start: NextWordModel | None, masked: str
) -> Vocabulary:
    """Return the vocabulary that is given, that of the start, or the frequent words of texts."""
    known = given if start is None else start.vocabulary
    if given is not None and _check_vocabulary(given) != known:
        raise invalid("vocabulary", "that of start, word for word", given)
    if known is not None:
        return known
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_VOCABULARY_COUNT)


def _make_plan(texts: int, start: Any, is_private: bool, **given: Any) -> Plan:
    """Check the settings of a training, and fill in those of its recipe; there is no noise yet.

    Args:
        texts: number of training texts.
        start: the model whose sizes are taken, or None.
        is_private: True for the private recipe.
        **given: fields of `Plan`; None for the recipe's.

    Raises:
        TypeError: if a setting is of the wrong kind.
        ValueError: if it is out of range, there are fewer texts than a batch, or the sizes are not
            those of `start`.
    """
    from ..systems.training import make_recipe

    optimiser = choice("optimiser", given["optimiser"], ("sgd", "adam"))
    if is_private and optimiser != "sgd":
        raise invalid("optimiser", "'sgd' for a private training", optimiser)
    if is_private and given["dropout"]:
        raise invalid("dropout", "0 for a private training", given["dropout"])
    sizes = (
        _DEFAULT_SIZES if start is None else {name: getattr(start, name) for name in _DEFAULT_SIZES}
    )
    usual = {**_DEFAULT_RECIPES["private" if is_private else optimiser], **sizes}
    filled = usual | {name: value for name, value in given.items() if value is not None}
    for name, size in sizes.items():
        filled[name] = integer(name, filled[name], 1)
        if start is not None and filled[name] != size:
            raise invalid(name, f"{size}, as that of start", filled[name])
    names = ("epochs", "batch", "lr", "dropout")
    recipe = make_recipe(**{name: filled[name] for name in names})
    if texts < recipe.batch:
        raise invalid("texts", f"at least as many as a batch, {recipe.batch} (see batch=)", texts)
    return Plan(**filled | {name: getattr(recipe, name) for name in names})


def _add_noise(plan: Plan, epsilon: Any, delta: float | None, clip: Any, texts: int) -> Plan:
    """Return the plan with the noise for an epsilon, by Opacus' PRV accountant.

    Args:
        plan: epochs and batch.
        epsilon: above 0; inf for no noise.
        delta: in (0, 1), or None for the smaller of 8e-5 and 1/(2 texts).
        clip: largest norm of a record's gradient.
        texts: number of training texts.

    Raises:
        ModuleNotFoundError: without opacus.
        TypeError: if an argument is not a number.
        ValueError: if it is out of range.

    Warns:
        UserWarning: if delta is 1/texts or more.
    """
    clip = real("clip", clip, low=0.0, open_low=True)
    usual = min(_MAX_DEFAULT_DELTA, 0.5 / texts)
    delta = confidence_level(usual if delta is None else delta, "delta")
    if delta >= 1.0 / texts:
        warnings.warn(
            f"delta = {delta:.3g} is 1/N = {1.0 / texts:.3g} or more: at such a delta a mechanism "
            f"that publishes one of the {texts:,} texts is private",
            stacklevel=4,
        )
    steps, sigma = -(-texts // plan.batch), 0.0
    # What is no number is refused with the words for finite ones.
    if not isinstance(epsilon, float) or epsilon != math.inf:
        epsilon = real("epsilon", epsilon, low=0.0, open_low=True)
        sigma = _find_noise_multiplier(epsilon, delta, 1.0 / steps, steps * plan.epochs)
    return replace(plan, delta=delta, sigma=sigma, clip=clip, rate=1.0 / steps)


@lru_cache(maxsize=64)
def _find_noise_multiplier(epsilon: float, delta: float, rate: float, steps: int) -> float:
    """Ask Opacus for sigma: ten seconds or more, the same for every training of an audit."""
    accounting = needed("opacus.accountants.utils", "lm.fit with epsilon")
    with ignore_order_warnings():
        sigma = accounting.get_noise_multiplier(
            target_epsilon=epsilon, target_delta=delta, sample_rate=rate, steps=steps,
            accountant="prv",
        )  # fmt: skip
    return float(sigma)


def _train_model(
    texts: Sequence[str],
    valid: Sequence[str],
    rows: TextRows,
    plan: Plan,
    start: NextWordModel | None,
    has_own_vocabulary: bool,
    seed: int,
    progress: bool | None,
) -> NextWordModel:
    """Train on texts as numbers, and collect what is known of the model."""
    from . import learning

    rng = np.random.default_rng(seed)
    (numbers, cut), (checked, _) = rows.encode(texts), rows.encode(valid)
    source = None if start is None else start.network
    network = learning.make_network(rows.size, plan, source, plan.is_private)
    if source is None:
        learning.draw_weights(network, rng)
    if plan.is_private:
        made = learning.learn_private(network, numbers, plan, rng, progress)
        made |= _spend_epsilons(plan, made["steps"])
        network = learning.make_network(rows.size, plan, network)
    else:
        made = learning.learn_plain(network, numbers, checked, plan, rng, progress)
    counts = rows.count_targets(numbers)
    return NextWordModel(
        **vars(rows) | vars(plan) | made, has_own_vocabulary=has_own_vocabulary,
        start="drawn weights" if start is None else repr(start),
        seed=None if plan.sigma else seed, texts=len(texts), cut=cut,
        without_target=sum(not (row[1:] < rows.size).any() for row in numbers),
        valid_perplexity=_mean_perplexity(network.word_losses(checked)),
        valid_unigram=_mean_perplexity(rows.unigram_losses(counts, checked)),
        network=network, counts=counts, known=fingerprint_texts(texts),
    )  # fmt: skip


def _mean_perplexity(losses: Sequence[Floats]) -> float | None:
    found = np.concatenate(losses)
    return float(np.exp(found.mean())) if found.size else None


def _spend_epsilons(plan: Plan, steps: int) -> dict[str, float]:
    """Return what Opacus' PRV and RDP accountants report for steps; inf without noise."""
    kinds = {"epsilon": "PRVAccountant", "epsilon_rdp": "RDPAccountant"}
    if not plan.sigma:
        return dict.fromkeys(kinds, math.inf)
    with ignore_order_warnings():
        return {
            name: float(make_accountant(plan, steps, kind).get_epsilon(delta=plan.delta))
            for name, kind in kinds.items()
        }


@hinted
def canaries(vocabulary: Vocabulary, many: Any, *, words: int = 10, rng: Rng = None) -> list[str]:
    """Make canaries of random words of a vocabulary, or check texts of your own.

    Words are drawn independently with equal probabilities, so that no other record has the
    gradient of a canary.

    Args:
        vocabulary: of the models that are to be audited.
        many: number of canaries; or texts of your own, whose words must be in the vocabulary.
        words: words of a canary, 2 or more; no effect on texts of your own.
        rng: None, an int seed or a numpy Generator.

    Returns:
        The canaries, for `training.audit_run(..., canaries=)`.

    Raises:
        TypeError: if an argument is of the wrong kind.
        ValueError: if a value is out of range, or a text has a word outside the vocabulary.

    Source:
        Carlini et al. (2019) (random texts that are inserted); Steinke, Nasr and Jagielski (2023).

    Example:
        >>> from dpcore.text import Vocabulary
        >>> v = Vocabulary(["flights", "from", "boston", "denver"], "token")
        >>> canaries(v, 2, words=3, rng=1)
        ['from boston denver', 'denver flights flights']
        >>> canaries(v, ["flights from london"])
        Traceback (most recent call last):
        ValueError: canaries[0] must be words of the vocabulary, got 'london'
    """
    known = _check_vocabulary(vocabulary).words
    if not isinstance(many, (int, np.integer, float)):
        given = texts_of("many", many)
        for row, text in enumerate(given):
            unknown = [word for word in vocabulary.tokenise(text) if word not in known]
            if unknown:
                raise invalid(f"canaries[{row}]", "words of the vocabulary", unknown[0])
        return list(given)
    shape = integer("many", many, 1), integer("words", words, 2)
    if not known:
        raise invalid("vocabulary", "one with words", vocabulary)
    drawn = np.random.default_rng(seed_of(rng)).integers(len(known), size=shape)
    return [" ".join(known[number] for number in row) for row in drawn]
