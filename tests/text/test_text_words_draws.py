"""Samplers of word mechanisms follow their tables, whatever is prepared and however it is called.

Chi-square tests have significance 1e-4 and fixed seeds; each has a control, a table that is wrong
by 2 %, which the same draws refute.
"""

import functools
import hashlib
import math

import numpy as np
import pytest
from scipy.stats import chi2

import dpcore
from dpcore import _core
from dpcore.calibration import L2Laplace
from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

RNG = np.random.default_rng(28)
NAMES = tuple(f"word{i}" for i in range(30))
LINE = Embedding(NAMES, RNG.normal(size=(30, 1)))
SPACE = Embedding(NAMES, RNG.normal(size=(30, 8)))
DRAWS = 10**6

MECHANISMS = {
    "SanText": SanText(SPACE, 1.5),
    "SanTextPlus": SanTextPlus(SPACE, 1.5, NAMES[12:]),
    "TEM": TEM(SPACE, 6.0),
    "conservative": CusText(SPACE, 2.0, k=7),
    "aggressive": CusText(SPACE, 2.0, k=7, mapping="aggressive"),
    "MetricLaplace": MetricLaplace(LINE, 2.0),
    "Vickrey": Vickrey(LINE, 2.0, t=0.6),
}


def chi_square(counts, rows, numbers):
    """p-value of counts of outputs, a row for each input; rare outputs of a row are one cell."""
    statistic = degrees = 0.0
    for row, count, number in zip(rows, counts, numbers, strict=True):
        expected = row * number
        assert count[row == 0.0].sum() == 0
        rare = expected < 10.0
        cells = [(expected[~rare], count[~rare])]
        if expected[rare].sum() >= 10.0:
            cells.append((expected[rare].sum(keepdims=True), count[rare].sum(keepdims=True)))
        for wanted, found in cells:
            statistic += ((found - wanted) ** 2 / wanted).sum()
            degrees += wanted.size
        # With rare outputs left out the shares do not add up, and no degree is lost.
        degrees -= float(len(cells) == 2 or not rare.any())
    return chi2.sf(statistic, degrees)


def counted(mech, size, seed=1):
    inputs = np.random.default_rng(seed).integers(0, 30, size)
    counts = np.bincount(inputs * 30 + mech.replace(inputs, seed), minlength=900).reshape(30, 30)
    return counts, np.bincount(inputs, minlength=30)


@pytest.mark.parametrize("name", MECHANISMS)
def test_draws_follow_their_table_and_a_fault_of_two_per_cent_is_found(name):
    mech = MECHANISMS[name]
    rows = np.exp(mech.log_rows(0, 30))
    counts, numbers = counted(mech, DRAWS)
    assert chi_square(counts, rows, numbers) > 1e-4
    # Two in a hundred draws go to the second likeliest word instead of the first.
    wrong, order = rows.copy(), rows.argsort(axis=1)
    wrong[np.arange(30), order[:, -1]] -= 0.02
    wrong[np.arange(30), order[:, -2]] += 0.02
    assert chi_square(counts, wrong, numbers) < 1e-4


@pytest.mark.parametrize("t", [None, 0.6])
def test_noise_in_several_dimensions_is_that_of_the_plain_formula(t):
    mech = MetricLaplace(SPACE, 6.0) if t is None else Vickrey(SPACE, 6.0, t=t)
    size, rng = 60_000, np.random.default_rng(5)
    word = SPACE.words[3]
    found = np.bincount(mech(word, size, 1), minlength=30)

    def plain(noise):
        apart = np.linalg.norm((SPACE[word] + noise)[:, None] - SPACE.vectors, axis=2)
        order = apart.argsort(axis=1)[:, :2]
        near, second = np.take_along_axis(apart, order, axis=1).T
        share = 0.0 if t is None else t * near / (t * near + (1 - t) * second)
        return np.bincount(np.where(rng.random(size) < share, *order.T[::-1]), minlength=30)

    noise = L2Laplace(1 / 6.0)(np.zeros(8), size, rng)
    wrong = noise / np.linalg.norm(noise, axis=1, keepdims=True) * rng.exponential(1 / 6, (size, 1))
    for drawn, is_right in ((plain(noise), True), (plain(wrong), False)):
        common = (found + drawn) >= 20
        one, other = found[common].astype(float), drawn[common].astype(float)
        statistic = ((one - other) ** 2 / (one + other)).sum()
        # The control: Gamma(1) for Gamma(8), a fault of public code.
        assert (chi2.sf(statistic, common.sum() - 1) > 1e-4) == is_right


@pytest.mark.parametrize("name", MECHANISMS)
def test_one_sampler_serves_calls_texts_and_rewriting(name, monkeypatch):
    mech = MECHANISMS[name]
    text = "word3 word29 word3"
    numbers = [3, 29, 3]
    outputs = mech(text, 50_000, 7)
    assert outputs.shape == (50_000, 3)
    assert outputs.tolist() == mech([NAMES[i] for i in numbers], 50_000, 7).tolist()
    assert mech.replace(np.tile(numbers, 50_000), 7).tolist() == outputs.ravel().tolist()
    again = mech.rewrite(["word3, Word29!", "word3"], rng=7)
    assert again == [" ".join(NAMES[i] for i in outputs[0, :2]), NAMES[outputs[0, 2]]]
    assert mech("word3", 4, 7).tolist() == mech(3, 4, 7).tolist()
    assert mech("word3", 0, 7).shape == (0,)
    # A Generator gives one seed.
    first, second = np.random.default_rng(1), np.random.default_rng(1)
    drawn = mech("word3", 9, int(second.integers(2**63)))
    assert mech("word3", 9, first).tolist() == drawn.tolist()
    assert first.bit_generator.state == second.bit_generator.state
    # Neither threads nor the rows that are prepared together change a draw.
    monkeypatch.setattr("dpcore.text.words.mechanism._MAX_PREPARED_ENTRIES", 70)
    monkeypatch.setattr(_core, "cores", lambda: 1)
    fresh = type(mech)(*mech._values())
    assert fresh(text, 50_000, 7).tolist() == outputs.tolist()
    assert fresh("word5", 9, 7).tolist() == mech("word5", 9, 7).tolist()


@pytest.mark.parametrize("name", ["SanText", "MetricLaplace"])
def test_unknown_words_are_dropped_kept_or_replaced_by_any_word(name):
    mech = MECHANISMS[name]
    texts = ["word1 cat word2", "dog", "word4"]
    dropped = mech.rewrite(texts, unknown="drop", rng=3)
    assert [len(text.split()) for text in dropped] == [2, 0, 1]
    kept = mech.rewrite(texts, unknown="keep", rng=3)
    assert (kept[0].split()[1], kept[1]) == ("cat", "dog")
    known = [word for word in " ".join(kept).split() if word not in ("cat", "dog")]
    assert known == " ".join(dropped).split()
    drawn = mech.rewrite(["cat word1"] * 60_000, unknown="uniform", rng=3)
    places = [[NAMES.index(word) for word in text.split()] for text in drawn]
    counts = [np.bincount(column, minlength=30) for column in np.transpose(places)]
    rows = np.array([np.full(30, 1 / 30), np.exp(mech.log_rows(1, 2)[0])])
    assert chi_square(counts, rows, [60_000] * 2) > 1e-4
    assert chi_square(counts, rows[::-1], [60_000] * 2) < 1e-4
    cased = mech.rewrite(["word1_word2"], tokenise=lambda text: text.split("_"), rng=1)
    assert len(cased[0].split()) == 2


def test_two_equally_near_words_give_the_lower_number():
    mech = MetricLaplace(Embedding(("far", "up", "down"), [[9.0], [1.0], [-1.0]]), 1.0)
    assert mech._choose_words(np.array([[0.0], [0.5], [-0.5]]), np.zeros(3)).tolist() == [1, 1, 2]


# Faults of public code, written from their description, and what their exact tables lose.
#
# Each is a table of probabilities in numpy; the repaired twin is the package's own mechanism.


def worst(rows, x, x_prime):
    """The largest loss of two rows of log probabilities, in both directions."""
    with np.errstate(invalid="ignore"):
        losses = np.abs(rows[x] - rows[x_prime])
    return float(np.nan_to_num(losses, nan=0.0, posinf=np.inf).max())


def published_tem(mech, places, bottom_words):
    """TEM with 2 ln(n)/epsilon in the score of the bottom, n of the number of words near x."""
    apart = np.abs(places[:, None] - places)
    near = apart <= mech.gamma
    weights = np.where(near, np.exp(-mech.epsilon / 2 * apart), 0.0)
    outside = (~near).sum(axis=1)
    number = bottom_words(near.sum(axis=1))
    bottom = np.where(outside > 0, np.exp(-mech.epsilon * mech.gamma / 2) * number, 0.0)
    weights += np.where(near, 0.0, (bottom / np.maximum(outside, 1))[:, None])
    with np.errstate(divide="ignore"):
        return np.log(weights / weights.sum(axis=1, keepdims=True))


def test_tem_with_a_quotient_for_a_difference_loses_five_nats():
    # 300 words on [0, .05] and 300 on [gamma, gamma + .05], with epsilon 50.
    near, gamma = np.linspace(0.0, 0.05, 300), 2 / 50.0 * math.log(0.999 * 599 / 0.001)
    places = np.concatenate([near, gamma + near])
    mech = TEM(Embedding([f"w{i}" for i in range(600)], places[:, None]), 50.0)
    allowed = 50.0 * mech.distance_rows(0, 600)
    wrong = published_tem(mech, places, lambda near: len(places) / near)
    sound = published_tem(mech, places, lambda near: len(places) - near)
    neighbours = [(i, i + 1) for i in range(299)]
    losses = [worst(wrong, *pair) for pair in neighbours]
    at = neighbours[int(np.argmax(losses))]
    assert max(losses) == pytest.approx(5.0, abs=0.02)
    assert allowed[at] == pytest.approx(0.0084, abs=1e-4)
    np.testing.assert_allclose(sound, mech.log_rows(0, 600), rtol=0, atol=1e-9)
    losses = mech.loss_rows(0, 600)[0]
    assert (losses <= allowed + 1e-9).all()
    ratios = losses[~np.eye(600, dtype=bool)] / allowed[~np.eye(600, dtype=bool)]
    assert ratios.max() == pytest.approx(0.994, abs=1e-3)


def vickrey(places, x, t, skips_input):
    """Log probabilities of Vickrey's outputs on word x with epsilon 1, by sums over a fine grid."""
    step = 1e-4
    grid = np.arange(-30.0, 30.0, step) + step / 2
    apart = np.abs(grid[:, None] - places)
    order = np.argsort(apart, axis=1)[:, :3]
    if skips_input:
        # Where the input is the nearest word it is passed over, and nowhere else.
        order = np.where(order[:, :1] == x, order[:, 1:], order[:, :2])
    near, second = np.take_along_axis(apart, order[:, :2], axis=1).T
    share = (1 - t) * second / (t * near + (1 - t) * second)
    density = 0.5 * np.exp(-np.abs(grid - places[x])) * step
    found = np.bincount(order[:, 0], density * share, len(places))
    return np.log(found + np.bincount(order[:, 1], density * (1 - share), len(places)))


def test_vickrey_that_skips_the_input_depends_on_more_than_the_noise():
    places = np.array([0.0, 0.001, 1.0, -1.0])
    wrong = np.array([vickrey(places, x, 0.7, skips_input=True) for x in (0, 1)])
    sound = np.array([vickrey(places, x, 0.7, skips_input=False) for x in range(4)])
    # The distance allows .001 nats.
    assert worst(wrong, 0, 1) > 0.1
    assert worst(sound, 0, 1) <= 0.0011
    mech = Vickrey(Embedding(("a", "b", "c", "d"), places[:, None]), 1.0, t=0.7)
    # The package's quadrature agrees with the plain sum.
    np.testing.assert_allclose(np.exp(mech.log_rows(0, 4)), np.exp(sound), rtol=0, atol=1e-6)
    assert worst(mech.log_rows(0, 4), 0, 1) <= 0.001 + 1e-9


# Faults of the noise, which has no table: audits of draws.


def draw_noise(x, size, rng, shape=2.0, spread=1.0):
    """Draw noise of Gamma length; a direction is normalised after one entry was made smaller."""
    direction = rng.normal(size=(size, 2)) * [1.0, spread]
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return np.asarray(x) + direction * rng.gamma(shape, size=(size, 1))


@pytest.mark.parametrize(
    ("fault", "least"),
    [({"spread": 0.01}, 4.0), ({"shape": 1.0}, 0.5)],
    ids=["direction normalised after Sigma^(1/2)", "Gamma(1) for Gamma(2)"],
)
def test_faulty_noise_is_refuted_where_sound_noise_is_not(fault, least):
    """Two inputs .05 apart may lose .05; at 95 %, on a fixed seed."""
    pair = dpcore.Pair([0.0, 0.0], [0.0, 0.05])
    settings = {"claim": 0.05, "trials": 200_000, "rng": 1}
    faulty = dpcore.audit(functools.partial(draw_noise, **fault), pair, **settings)
    assert faulty.refuted
    assert faulty.epsilon_lower > least
    assert not dpcore.audit(draw_noise, pair, **settings).refuted


# Vectors of words from files: three formats, limits, and what is wrong with a file.


GLOVE = "the 3 4\n, 0.5 -1\n. . . 1e-1 2\ncaf\u00e9 1 1\n"
WORDS = ("the", ",", ". . .", "caf\u00e9")
ROWS = [[3.0, 4.0], [0.5, -1.0], [0.1, 2.0], [1.0, 1.0]]


@pytest.fixture
def write(tmp_path):
    def put(text, name="vectors.txt"):
        file = tmp_path / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return put


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (GLOVE, "vectors.txt"),
        (GLOVE.replace("\n", " \r\n"), "vectors.txt"),
        ("4 2\n" + GLOVE, "vectors.vec"),
        (GLOVE.rstrip("\n"), "glove"),
        (
            'var v={\n"the":[3,4],\n",":[0.5,-1],\n". . .":[0.1,2],\n"caf\u00e9":[1,1],\n};',
            "small.js",
        ),
    ],
)
def test_every_format_gives_the_words_in_their_order(write, text, name):
    found = Embedding.load(write(text, name))
    assert (found.words, found.vectors.tolist(), found.origin) == (WORDS, ROWS, name)
    first = Embedding.load(write(text, name), limit=2)
    assert (first.words, first.vectors.tolist()) == (WORDS[:2], ROWS[:2])
    assert Embedding.load(write(text, name), limit=9) == found
    unit = Embedding.load(write(text, name), normalise=True)
    np.testing.assert_allclose(np.linalg.norm(unit.vectors, axis=1), 1.0, rtol=1e-15)
    np.testing.assert_allclose(unit["the"], [0.6, 0.8], rtol=1e-15)
    assert unit.sha256 != found.sha256 == Embedding(WORDS, ROWS).sha256
    content = "\n".join(WORDS).encode() + np.array(ROWS, "<f8").tobytes()
    assert found.sha256 == hashlib.sha256(content).hexdigest()


def test_normalising_survives_entries_whose_squares_do_not(write):
    found = Embedding.load(write("a 3e300 4e300\nb 5e-300 0\n"), normalise=True)
    np.testing.assert_allclose(found.vectors, [[0.6, 0.8], [1.0, 0.0]], rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2\nb 3 4\na 5 6\n", r"line 3 of vectors.txt must be a word that occurs once"),
        ("a 1 2\nb nan 4\n", r"line 2 .* a word and 2 finite numbers, got 'b nan 4'"),
        ("a 1 2\nb 3\n", r"line 2 .* a word and 2 finite numbers, got 'b 3'"),
        ("a 1 2\nb 3 x\n", r"line 2 .* a word and 2 finite numbers"),
        ("3 2\na 1 2\nb 3 4\n", r"line 3 .* the last of a file with 3 words, got '2 words'"),
        ("1 2\na 1 2\nb 3 4\n", r"line 3 .* no more: 1 words are stated, got 'b 3 4'"),
        ("3 2\na 1 2\nb 3", r"line 3 .* a word and 2 finite numbers"),
        ("", r"line 1 of vectors.txt must be the last of a file with words, got '0 words'"),
        ("word\n", r"line 1 .* a word and 0 finite numbers"),
        (b"a 1 2\n\xff 1 2\n", r"line 2 of vectors.txt must be text in UTF-8"),
        ("a 1 2\nb 0 0\n", r"vector of 'b' in vectors.txt must be a vector that is not zero"),
        ("a 1 2\nb 3 4\nc 1 2\n", r"another for each word, got \"one for 'a' and 'c'\""),
    ],
)
def test_what_is_wrong_with_a_file_is_named(write, text, message):
    with pytest.raises(ValueError, match=message):
        Embedding.load(write(text))


def test_two_words_may_have_one_direction_until_it_is_normalised(write):
    file = write("a 1 2\nb 2 4\n")
    assert len(Embedding.load(file)) == 2
    with pytest.raises(ValueError, match="one for 'a' and 'b'"):
        Embedding.load(file, normalise=True)


def test_lines_beyond_the_limit_are_not_read(write):
    assert Embedding.load(write(b"a 1 2\nb 3 4\n\xff\n"), limit=2).words == ("a", "b")
    with pytest.raises(ValueError, match="limit must be"):
        Embedding.load(write(GLOVE), limit=0)
    with pytest.raises(FileNotFoundError, match="path must be a text file of word vectors"):
        Embedding.load("no-such-file.txt")
    with pytest.raises(TypeError, match="normalise must be True or False"):
        Embedding.load(write(GLOVE), normalise=1)
