"""The search for the pair that leaks most, against exact oracles of two mechanisms.

The oracles are quadratures: what an audit of 10^8 draws would certify, at 90 %, from the exact
probabilities of a pair. No draw is made; the noisy case adds the error of a pilot of that size.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaincinv
from shared_examples import examples

import dpcore
from dpcore import pairs
from dpcore.pairs import L1, L2, AddRemove, Box, Linf, Records, Replace, drive, search
from dpcore.progress import Progress

NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)


def laplace_cdf(z, scale):
    tail = 0.5 * np.exp(-np.abs(z) / scale)
    return np.where(z < 0, tail, 1 - tail)


def panels(kinks):
    kinks = np.unique(kinks)
    half, middle = np.diff(kinks)[:, None] / 2, (kinks[1:] + kinks[:-1])[:, None] / 2
    return (middle + half * NODES).ravel(), (half * WEIGHTS).ravel()


def noisy_max(x, scale=20.0):
    """P(argmax of x + Laplace(2/epsilon) = i) at epsilon 0.1."""
    ends = [x.min() - 12 * scale, x.min() - 3 * scale, x.max() + 3 * scale, x.max() + 12 * scale]
    value, weight = panels([*x, *ends, x.max() + 30 * scale])
    gaps = value[:, None] - x
    below = laplace_cdf(gaps, scale)
    density = np.exp(-np.abs(gaps) / scale) / (2 * scale)
    return weight @ (density / below * below.prod(axis=1, keepdims=True))


def sparse_vector(x, scale=20.0, threshold=0.5):
    """P(first answer above = i), and P(none is), of the sparse vector technique, epsilon 0.1."""
    noise, weight = panels([*(x - threshold), -600, -200, -60, 0, 60, 200, 600])
    weight = weight * np.exp(-np.abs(noise) / scale) / (2 * scale)
    above = laplace_cdf(x - threshold - noise[:, None], 2 * scale)
    below = np.cumprod(1 - above, axis=1)
    before = np.hstack([np.ones((noise.size, 1)), below[:, :-1]])
    return np.append(weight @ (before * above), weight @ below[:, -1])


ORACLES = {"noisy max": (noisy_max, 5), "sparse vector": (sparse_vector, 10)}


def certified(law, pair, n=1e8, alpha=0.05):
    """The largest bound from expected counts, over events ordered by likelihood ratio."""
    p, q = law(pair.x), law(pair.x_prime)
    found = []
    for first, second in ((p, q), (q, p)):
        order = np.argsort(-first / second)
        k, k_prime = (n * np.cumsum(side[order])[:-1] for side in (first, second))
        low = betaincinv(k, n - k + 1, alpha)
        found.append(np.log(low / betaincinv(k_prime + 1, n - k_prime, 1 - alpha)).max())
    return max(found)


def largest_loss(law, pair):
    return np.abs(np.log(law(pair.x) / law(pair.x_prime))).max()


def test_the_oracles_are_right():
    rng = np.random.default_rng(1)
    x, n = np.array([3.0, -2.0, 0.0, 1.0, 8.0]), 10**6
    noisy = x + rng.laplace(scale=20.0, size=(n, 5))
    seen = np.bincount(noisy.argmax(axis=1), minlength=5)
    assert stats.chisquare(seen, n * noisy_max(x) / noisy_max(x).sum()).pvalue > 1e-4
    above = x + rng.laplace(scale=40.0, size=(n, 5)) >= 0.5 + rng.laplace(scale=20.0, size=(n, 1))
    first = np.where(above.any(axis=1), above.argmax(axis=1), 5)
    law = sparse_vector(x)
    assert law.sum() == pytest.approx(1.0, abs=1e-12)
    assert stats.chisquare(np.bincount(first, minlength=6), n * law).pvalue > 1e-4


PATTERNS = {"noisy max": (0.0939, 0.0946), "sparse vector": (0.0863, 0.0885)}
"""What the usual patterns allow: certified at 10^8 draws, and in the limit."""

TARGETS = {"noisy max": (0.0980, 0.0985), "sparse vector": (0.0930, 0.0980)}
"""What a search must find; changes of mixed signs and a gap of 20 allow 0.0985 and 0.0943."""


@pytest.mark.parametrize("name", ORACLES)
def test_the_patterns_alone_do_not_reach_the_targets(name):
    law, dim = ORACLES[name]
    every = pairs.patterns(dim, "all")
    found = [max(figure(law, pair) for pair in every) for figure in (certified, largest_loss)]
    assert found == pytest.approx(PATTERNS[name], abs=1e-4)
    assert (np.array(found) < TARGETS[name]).all()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ORACLES)
def test_a_search_finds_better_pairs_than_the_patterns(name, seed):
    law, dim = ORACLES[name]
    plan = search(Box(-30, 30, dim), Linf(1.0))
    tried = []

    def merit(pair, size):
        tried.append((pair, size))
        return certified(law, pair)

    best = drive(plan, merit, np.random.default_rng(seed))
    assert certified(law, best) >= TARGETS[name][0]
    assert TARGETS[name][1] <= largest_loss(law, best) <= 0.1 + 1e-9
    assert pairs.distance(best, "linf") == pytest.approx(1.0)
    # All within the plan: bounded in pairs and in draws.
    assert len(tried) == 64 + 32 + 16 + 5 * 8
    assert sum(size for _, size in tried) <= plan.budget
    assert all(plan.neighbour.holds(pair, plan.domain) for pair, _ in tried)
    again = drive(plan, lambda pair, size: certified(law, pair), np.random.default_rng(seed))
    assert again == best


@pytest.mark.parametrize("name", ORACLES)
def test_a_search_by_noisy_pilots(name):
    """The error of a log ratio of two counts at a mass of 0.2: variance 2 (1 - p)/(p n)."""
    law, dim = ORACLES[name]
    noise = np.random.default_rng(7)

    def merit(pair, size):
        return certified(law, pair) + noise.normal(scale=math.sqrt(8.0 / size))

    plan = search(Box(-30, 30, dim), Linf(1.0), budget=10**9)
    found = [certified(law, drive(plan, merit, np.random.default_rng(seed))) for seed in range(5)]
    assert np.median(found) >= TARGETS[name][0]
    assert min(found) > PATTERNS[name][0]


def test_survivors_are_evaluated_anew():
    """Merits of small pilots, however lucky, decide nothing against those of the last round."""
    plan = search(Box(-10, 10, 3), Linf(1.0), rounds=6, candidates=64, budget=10**6)
    largest = plan.schedule()[-1][1]

    def merit(pair, size):
        true = -np.abs(pair.x).sum()
        return true if size == largest else true + 1e6 * np.sin(1e4 * pair.x.sum())

    scores = {}

    def kept(pair, size):
        value = merit(pair, size)
        if size == largest:
            assert scores.setdefault(pair.x.tobytes(), value) == value
        return value

    assert merit(drive(plan, kept, np.random.default_rng(1)), largest) == max(scores.values())


@pytest.mark.parametrize("integers", [False, True])
def test_moves_climb_to_what_no_start_holds(integers):
    goal = np.array([3.0, -7.0, 9.0, 1.0, -2.0, 5.0])
    change = np.array([1.0, -1.0, 1.0, 1.0, -1.0, 0.0])

    def merit(pair, size):
        return -np.abs(pair.x - goal).sum() - 2.0 * np.abs(pair.x_prime - pair.x - change).sum()

    box = Box(-10, 10, 6, integers=integers)
    start = max(merit(pair, 1) for pair in search(box, Linf(1)).start(np.random.default_rng(1)))
    plans = [search(box, Linf(1), rounds=rounds) for rounds in (1, 60)]
    few, many = (merit(drive(plan, merit, np.random.default_rng(1)), 1) for plan in plans)
    assert few == start
    assert many > max(start / 2, -16.0)


def test_datasets_are_searched_too():
    """The leak: three records "b" in front of the one that changes to "c"."""
    domain = Records(tuple("abc"), 4)

    def merit(pair, size):
        x, y = sorted((pair.x, pair.x_prime))
        return float(x[:3] == ("b", "b", "b")) + (x[3] == "b") * (y[3] == "c") + x.count("b") / 4

    plan = search(domain, Replace(), rounds=20, candidates=16)
    best = drive(plan, merit, np.random.default_rng(2))
    assert {best.x, best.x_prime} == {("b", "b", "b", "b"), ("b", "b", "b", "c")}
    plan = search(domain, AddRemove(("c",)), rounds=20, candidates=16)
    added = drive(plan, lambda pair, _: -float(pair.x.count("c")), np.random.default_rng(2))
    assert "c" not in added.x
    assert (len(added.x_prime), added.x_prime.count("c")) == (5, 1)


# Every pair that a search makes is a pair of neighbours.

BALLS = st.sampled_from([L1, L2, Linf])
BOXES = st.builds(
    lambda low, width, dim, whole: Box(low, low + width, dim, integers=whole),
    st.integers(-20, 20), st.integers(1, 30), st.integers(1, 7), st.booleans(),
)  # fmt: skip


def exactly(x):
    return (x.dtype.str, tuple(x.tolist())) if isinstance(x, np.ndarray) else tuple(x)


def check(plan, seed):
    rng = np.random.default_rng(seed)
    pool = plan.start(rng)
    for _ in range(3):
        pool = pool + plan.propose([(pair, 0.0) for pair in pool[-4:]], rng, most=6, known=pool)
    assert all(plan.neighbour.holds(pair, plan.domain) for pair in pool)
    assert len({frozenset(map(exactly, (pair.x, pair.x_prime))) for pair in pool}) == len(pool)
    return pool


@examples(60)
@given(BALLS, st.sampled_from([0.5, 1.0, 1.7, 3.0, 100.0]), BOXES, st.integers(0, 2**32))
def test_vectors_are_always_neighbours(ball, radius, box, seed):
    if box.integers:
        radius = max(radius, 1.0)
    pool = check(search(box, ball(radius), candidates=24), seed)
    norm = ball.norm
    for pair in pool:
        # By the definitions themselves, not by what the classes say.
        change = np.abs(pair.x_prime.astype(float) - pair.x.astype(float))
        size = {"l1": change.sum(), "l2": math.sqrt((change**2).sum()), "linf": change.max()}[norm]
        assert 0.0 < size <= radius * (1 + 1e-8)
        for x in (pair.x, pair.x_prime):
            assert box.low <= x.min() <= x.max() <= box.high
            assert (x == np.rint(x)).all() or not box.integers


@examples(40)
@given(
    st.sampled_from([Replace, AddRemove]), st.sampled_from([None, (0.0, 1.0), (1,)]),
    st.integers(1, 5), st.booleans(), st.integers(0, 2**32),
)  # fmt: skip
def test_datasets_are_always_neighbours(kind, values, dim, whole, seed):
    check(search(Box(0, 1, dim, integers=whole), kind(values), candidates=12, rounds=2), seed)
    words = Records(("yes", "no", "perhaps"), dim)
    check(search(words, kind(("no", "perhaps")), candidates=12, rounds=2), seed)


def test_the_kind_of_a_dataset_is_kept():
    class Lists(Records):
        __slots__ = ()

        def draw(self, rng):
            return list(super().draw(rng))

    pool = check(search(Lists(("a", "b"), 3), AddRemove(), candidates=8), 1)
    assert {type(x) for pair in pool for x in (pair.x, pair.x_prime)} == {list}
    numbers = check(search(Box(0, 5, 3, integers=True), Replace(), candidates=8), 1)
    assert {x.dtype for pair in numbers for x in (pair.x, pair.x_prime)} == {np.dtype(np.int64)}


def test_a_tiny_domain_is_used_up_and_no_more():
    plan = search(Box(0, 1, 1, integers=True), L1(1.0))
    rng = np.random.default_rng(1)
    pool = plan.start(rng)
    assert [sorted((int(p.x[0]), int(p.x_prime[0]))) for p in pool] == [[0, 1]]
    assert plan.propose([(pool[0], 1.0)], rng) == []
    assert drive(plan, lambda pair, size: 1.0, rng) == pool[0]


@pytest.mark.parametrize("dim", [1, 2, 3, 200])
def test_any_dimension(dim):
    assert len(check(search(Box(-3, 3, dim), Linf(1.0), candidates=30), 1)) >= 30


def test_no_change_is_cut_at_the_edge_of_the_domain():
    """A vector at the edge is moved inwards, so that its change fits in whole."""
    for ball in (L1(1.0), L2(1.0), Linf(1.0)):
        plan = search(Box(-3, 3, 4), ball, candidates=150)
        pool = plan.start(np.random.default_rng(1))
        pool += plan.propose([(pair, 0.0) for pair in pool], np.random.default_rng(2), most=150)
        sizes = [pairs.distance(pair, ball.norm) for pair in pool]
        assert len(sizes) == 300
        assert np.allclose(sizes, 1.0)
        assert any(pair.x.max() == 3.0 or pair.x_prime.max() == 3.0 for pair in pool)


def test_the_schedule_spends_the_budget_and_no_more():
    plan = pairs.Search(Box(0, 1, 1), L1(1.0), rounds=5, budget=99_999, candidates=50)
    rounds = plan.schedule()
    assert [width for width, _ in rounds] == [50, 25, 12, 8, 8]
    assert 95_000 < sum(width * size for width, size in rounds) <= 99_999
    assert pairs.Search(Box(0, 1, 1), L1(1.0), 3, 10**4, 2).schedule()[-1][0] == 2


# Pairs of texts. The corpus has each kind of change; "The" and "the" are one word in two cases.

CORPUS = [
    "The patient Anna took 7 pills a day",
    "she met Karl on day 12 and did not sleep",
    "the doctor of Anna has a cold",
    "a cold day, no pills: Karl took 30 and the doctor has 7",
]
WORDS = [word for text in CORPUS for word in text.replace(",", "").replace(":", "").split()]


def rewriter(keeps):
    """Replace each word by a random one, except those that it keeps; count the calls."""
    calls = []

    def rewrite(text, rng):
        calls.append(text)
        words = text.split()
        return " ".join(word if keeps(word) else str(rng.choice(WORDS)) for word in words)

    return dpcore.repeat(rewrite), calls


KEPT = {
    "number": str.isdigit, "name": ["Anna", "Karl"].__contains__, "nothing": lambda word: False,
}  # fmt: skip


def audit_rewriter(keeps, seed, **settings):
    """Audit at claim 1 with a search of 84 calls, 24 counted trials and the pilot for it."""
    mechanism, calls = rewriter(KEPT[keeps])
    look = pairs.search(pairs.Texts(CORPUS), budget=42)
    few = {"claim": 1.0, "trials": 24, "rng": seed, **settings}
    report = dpcore.audit(mechanism, look, **few)
    # Of 400 calls that are allowed: no output of the pilot is drawn twice.
    assert len(calls) <= 286
    return report


@pytest.mark.parametrize("keeps", KEPT)
def test_a_search_names_the_change_that_leaks(keeps):
    report = audit_rewriter(keeps, 1)
    assert (report.verdict == "refuted") is (keeps != "nothing")
    if keeps != "nothing":
        assert report.searched.change.startswith(f"{keeps}: ")
        assert f"best change: {report.searched.change}" in str(report)
    assert report.neighbour == "Replace(values=None)"


@pytest.mark.sweep
@pytest.mark.parametrize(("keeps", "seeds", "low", "high"), [("number", 20, 18, 20),
                                                             ("nothing", 100, 0, 0)])  # fmt: skip
def test_a_search_in_texts_refutes_a_leak_and_nothing_else(keeps, seeds, low, high):
    """18 of 20 seeds; without a leak 0 of 100, where a level of 5 % allows 5 on average."""
    refuted = sum(audit_rewriter(keeps, seed).refuted for seed in range(seeds))
    assert low <= refuted <= high


def changes_of(neighbour, corpus=CORPUS):
    texts = pairs.Texts(corpus)
    pool = search(texts, neighbour, candidates=60, rounds=1).start(np.random.default_rng(2))
    return pool, {texts.describe_change(pair).partition(":")[0] for pair in pool}


def test_changes_of_texts_stay_within_the_neighbours():
    pool, kinds = changes_of(None)
    assert kinds == {"number", "name", "negation", "rare word", "capital letters", "word"}
    for pair in pool:
        first, second = pair.x.split(), pair.x_prime.split()
        assert pair.x in CORPUS
        assert sum(a != b for a, b in zip(first, second, strict=True)) == 1
        assert {word.strip(",:") for word in second} <= set(WORDS)
    pool, kinds = changes_of(AddRemove())
    assert kinds == {"negation"}
    assert {abs(len(pair.x.split()) - len(pair.x_prime.split())) for pair in pool} == {1}
    pool, kinds = changes_of(pairs.AnyTexts(), ["take 7 pills", "take 8 pills"])
    assert kinds == {"number", "negation", "capital letters", "word"}
    assert {"take not 7 pills", "TAKE 7 pills", "take 8 pills"} & {pair.x_prime for pair in pool}
    assert any(len(pair.x.split()) != len(pair.x_prime.split()) for pair in pool)


def test_texts_of_any_object():
    corpus = type("Corpus", (), {"texts": tuple(CORPUS)})()
    assert pairs.Texts(corpus).texts == pairs.Texts(CORPUS).texts
    assert repr(pairs.Texts(corpus)) == "Texts(4 texts, 24 words)"
    german = pairs.Texts(["er hat kein Fieber", "er hat Husten"], negations=["kein"])
    pair = german.change("negation", np.random.default_rng(0))
    assert "kein" in pair.x


@pytest.mark.parametrize(("corpus", "error"), [
    ("one text", TypeError), ([], ValueError), (["a", 1], TypeError), ([" "], ValueError),
    (3, TypeError),
])  # fmt: skip
def test_texts_refuse_what_is_not_a_list_of_texts(corpus, error):
    with pytest.raises(error, match="corpus"):
        pairs.Texts(corpus)


def test_a_corpus_without_neighbours_is_refused():
    for corpus in (["..."], ["word"]):
        with pytest.raises(ValueError, match="domain must be large enough"):
            search(pairs.Texts(corpus)).start(np.random.default_rng(1))
    with pytest.raises(TypeError, match="neighbour must be"):
        search(Box(0, 1, 2))
    with pytest.raises(ValueError, match="values must be None"):
        search(pairs.Texts(CORPUS), Replace(("a",))).start(np.random.default_rng(1))


def test_a_search_in_texts_shows_its_progress(monkeypatch):
    shown = []
    monkeypatch.setattr(Progress, "_draw", lambda self: shown.append(self._state.label))
    pairs.Texts(CORPUS, progress=True)
    assert "reading the words of the texts" in shown
    look, settings = pairs.search(pairs.Texts(CORPUS), budget=12), {"pilot": 32, "attack": "words"}
    mechanism, _ = rewriter(KEPT["nothing"])
    dpcore.audit(mechanism, look, claim=1.0, trials=9, rng=1, progress=True, **settings)
    assert "searching the pair" in shown
