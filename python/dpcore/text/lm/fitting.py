"""`lm.fit`: train a next-word model, plain or private."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np

from ...errors import instance, integer, invalid
from ...hints import hinted
from ...mechanisms.texts import texts_of
from ...streams import Rng, seed_of
from ...streams.generators import seeded_torch
from ..corpus import training_texts
from ..redaction.masking import MASK, fingerprint_texts
from ..vocabulary import Vocabulary
from .model import NextWordModel
from .rows import Floats, TextRows, check_vocabulary, unigram_losses
from .settings import Plan, add_noise, make_plan, spent_epsilons

__all__ = ["fit"]

_MIN_COUNT: Final = 2
"""How often a word must occur to be in a vocabulary made of the training texts."""


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
    given = {
        "optimiser": optimiser, "epochs": epochs, "batch": batch, "lr": lr, "hidden": hidden,
        "layers": layers, "dropout": dropout,
    }  # fmt: skip
    plan = make_plan(given, len(found), start, epsilon is not None)
    if epsilon is not None:
        plan = add_noise(plan, epsilon, delta, clip, len(found))
    has_own = vocabulary is None and start is None
    return _train(found, checked, rows, plan, start, has_own, seed_of(rng), progress)


def _choose_vocabulary(
    texts: Sequence[str], given: Vocabulary | None, start: NextWordModel | None, masked: str
) -> Vocabulary:
    """Return the vocabulary that is given, that of the start, or the frequent words of texts."""
    known = given if start is None else start.vocabulary
    if given is not None and check_vocabulary(given) != known:
        raise invalid("vocabulary", "that of start, word for word", given)
    if known is not None:
        return known
    kept = (" ".join(word for word in text.split() if word != masked) for text in texts)
    unmasked = [text for text in kept if text]
    if not unmasked:
        raise invalid("vocabulary", "given where all words of the texts are masked", None)
    return Vocabulary.from_texts(unmasked, unknown="token", min_count=_MIN_COUNT)


def _train(
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
        with seeded_torch(rng):
            learning.draw_weights(network)
    if plan.is_private:
        made = learning.learn_private(network, numbers, plan, rng, progress)
        made |= spent_epsilons(plan, made["steps"])
        network = learning.make_network(rows.size, plan, network)
    else:
        made = learning.learn_plain(network, numbers, checked, plan, rng, progress)
    counts = rows.count_targets(numbers)
    return NextWordModel(
        **vars(plan) | made, vocabulary=rows.vocabulary, length=rows.length, masked=rows.masked,
        has_own_vocabulary=has_own_vocabulary,
        start="drawn weights" if start is None else repr(start),
        seed=None if plan.sigma else seed, texts=len(texts), cut=cut,
        without_target=sum(not (row[1:] < rows.size).any() for row in numbers),
        valid_perplexity=_mean_perplexity(network.word_losses(checked)),
        valid_unigram=_mean_perplexity(unigram_losses(counts, checked)),
        network=network, counts=counts, known=fingerprint_texts(texts),
    )  # fmt: skip


def _mean_perplexity(losses: Sequence[Floats]) -> float | None:
    found = np.concatenate(losses)
    return float(np.exp(found.mean())) if found.size else None
