"""The bag of words and word pairs: means by hand, unknown words, masks, and their laws."""

import numpy as np
import pytest
from scipy.stats import binomtest
from shared_extras import needs
from shared_messages import check_messages

torch = needs("torch")

from dpcore.text import Bag, Vocabulary, WordDropout  # noqa: E402

TEXTS = ["a late goal", "the goal", "a late late win for the team"]
DRAWS = 4000


def bag_of(dropout=None, unknown="drop", reserved=(), dim=5, texts=TEXTS):
    torch.manual_seed(1)
    words = Vocabulary.from_texts(texts, unknown=unknown, ngrams=2, reserved=reserved)
    return Bag(words, dim, dropout)


def by_hand(bag, words, masked=()):
    """The mean over known words and pairs, those that touch a masked place left out."""
    grams = [((i,), words[i]) for i in range(len(words))]
    grams += [((i, i + 1), f"{words[i]} {words[i + 1]}") for i in range(len(words) - 1)]
    table = dict(zip(bag.vocabulary.words, bag.embedding.weight.detach(), strict=True))
    kept = [table[g] for places, g in grams if g in table and not set(places) & set(masked)]
    return torch.stack(kept).mean(0) if kept else torch.zeros(bag.dim)


@pytest.mark.parametrize("text", [*TEXTS, "a goal", "the late unseen goal", "goal"])
def test_a_vector_is_the_mean_over_known_words_and_pairs(text):
    bag = bag_of()
    assert torch.allclose(bag([text])[0], by_hand(bag, text.split()), atol=1e-7)


def test_a_batch_changes_no_vector_and_equal_texts_may_come_again():
    bag = bag_of()
    texts = [TEXTS[2], TEXTS[0], TEXTS[2], TEXTS[1], TEXTS[2]]
    assert torch.equal(bag(texts), torch.cat([bag([text]) for text in texts]))


def test_rows_are_taken_and_batched_as_they_are():
    bag = bag_of()
    units = bag.units(TEXTS)
    rows = torch.tensor([2, 0, 2])
    assert torch.equal(bag(units.take(rows)), bag([TEXTS[i] for i in rows.tolist()]))
    assert torch.equal(torch.cat([bag(batch) for batch in units.batches(2)]), bag(TEXTS))


def test_a_text_without_a_known_word_is_zeros_and_told():
    with pytest.warns(UserWarning, match="1 of 2 texts have no known word"):
        vectors = bag_of()(["goal", "nothing seen"])
    assert torch.equal(vectors[1], torch.zeros(5))
    assert bool((vectors[0] != 0).all())


def test_unknown_words_have_one_row_only_where_it_is_asked_for():
    bag = bag_of(unknown="token")
    # "goal", "unseen" and "goal unseen": one known, two unknown.
    row, first = bag.embedding.weight.detach()[[bag.vocabulary.encode(["goal"])[0][0], 0]]
    assert torch.allclose(bag(["goal unseen"])[0], (row + 2 * first) / 3, atol=1e-7)


@pytest.mark.parametrize("masks", ["bernoulli", "exact"])
def test_masked_words_take_their_pairs_with_them(masks):
    bag = bag_of(WordDropout(0.5, masks))
    words = TEXTS[2].split()
    possible = {}
    for number in range(2 ** len(words)):
        masked = [i for i in range(len(words)) if number >> i & 1]
        possible.setdefault(tuple(by_hand(bag, words, masked).tolist()), set()).add(len(masked))
    table = torch.tensor(list(possible))
    apart = torch.cdist(bag([TEXTS[2]] * 500).double(), table.double()).min(dim=1)
    assert float(apart.values.detach().max()) < 1e-6
    if masks == "exact":
        # Seven words: floor(3.5 + .5) = 4 of them, in every draw.
        counts = [possible[tuple(table[i].tolist())] for i in apart.indices.tolist()]
        assert all(4 in found for found in counts)


def test_coins_have_their_probability_and_exact_counts_are_exact():
    sizes = torch.tensor([1, 4, 7] * (DRAWS // 3))
    torch.manual_seed(2)
    coins = WordDropout(0.3).masked(sizes)
    # Significance 1e-6; a coin of .33 fails.
    assert binomtest(int(coins.sum()), len(coins), 0.3).pvalue > 1e-6
    assert binomtest(int(coins.sum()), len(coins), 0.33).pvalue < 1e-6
    exact = WordDropout(0.3, "exact").masked(sizes)
    counts = [int(part.sum()) for part in exact.split(sizes.tolist())]
    assert counts == [int(np.floor(0.3 * n + 0.5)) for n in sizes.tolist()]
    # Every place as often as any other: 4 words, one masked, chi-square by its largest share.
    fours = torch.stack([p for p in exact.split(sizes.tolist()) if len(p) == 4])
    for place in range(4):
        assert binomtest(int(fours[:, place].sum()), len(fours), 0.25).pvalue > 1e-6


def test_the_studys_masks_put_number_zero_in_place_of_words_and_pairs_alike():
    bag = bag_of(WordDropout(0.5, mask="zero_id"), reserved=("<zero>",))
    zero = bag.embedding.weight.detach()[0]
    table = bag.embedding.weight.detach()[bag.vocabulary.encode([TEXTS[0]])[0]]
    # Three words, two pairs: each of the five is itself or number 0, whatever the others are.
    states = np.array(np.meshgrid(*[[0, 1]] * 5)).reshape(5, -1).T
    possible = torch.stack([
        torch.where(torch.tensor(s, dtype=torch.bool).unsqueeze(1), table, zero).mean(0)
        for s in states
    ])  # fmt: skip
    apart = torch.cdist(bag([TEXTS[0]] * 400).detach().double(), possible.double()).min(dim=1)
    assert float(apart.values.max()) < 1e-6
    assert len(set(apart.indices.tolist())) == 32


def test_without_masks_for_as_long_as_it_is_asked_for():
    bag = bag_of(WordDropout(0.9))
    with bag.whole():
        assert not bag.random
        assert torch.allclose(bag([TEXTS[2]])[0], by_hand(bag, TEXTS[2].split()), atol=1e-7)
    assert bag.random


VALUE_ERRORS = [
    (lambda: WordDropout(mu=1.0), "mu", "a finite number at least 0 and below 1"),
    (lambda: WordDropout(mu=-0.1), "mu", "a finite number at least 0 and below 1"),
    (lambda: WordDropout(mu=0.1, masks="all"), "masks", "one of 'bernoulli', 'exact'"),
    (lambda: WordDropout(mu=0.1, mask="zero"), "mask", "one of 'leave_out', 'zero_id'"),
    (lambda: Bag(Vocabulary(["a"], "drop"), 0), "dim", "an integer at least 1"),
    (lambda: bag_of(WordDropout(0.5, mask="zero_id")), "vocabulary", "one whose number 0 is no"),
]
TYPE_ERRORS = [
    (lambda: Bag("words", 3), "vocabulary", "a Vocabulary"),
    (lambda: bag_of(0.5), "dropout", "a WordDropout"),
]


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)
