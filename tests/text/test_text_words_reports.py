"""Reports on texts: figures of each word, unknown words, and bounds of noise without a table."""

import json
import math

import numpy as np
import pytest
from shared_messages import check_messages

import dpcore
from dpcore.calibration.pure import l2_laplace_delta, l2_laplace_renyi_upper_bounds
from dpcore.progress import Progress
from dpcore.text import words
from dpcore.text.words import TEM, CusText, Embedding, MetricLaplace, SanText, SanTextPlus, Vickrey

WORDS = ("bad", "fine", "good", "great", "poor")
LINE = Embedding(WORDS, [[0.0], [1.0], [1.5], [2.5], [-0.25]])
PLANE = Embedding(WORDS, np.random.default_rng(1).normal(size=(5, 3)))
DEEP = Embedding(WORDS, np.random.default_rng(1).normal(size=(5, 50)) / 7.0)


def exact_worst(mech: object, word: int, unknown: bool = False) -> float:
    rows = mech.rows_with_unknown(np.arange(len(WORDS) + unknown))  # type: ignore[attr-defined]
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.abs(rows[word] - rows)))


@pytest.mark.parametrize("vectors", [LINE, PLANE])
@pytest.mark.parametrize(
    "make",
    [
        lambda v: SanText(v, 2.0),
        lambda v: TEM(v, 2.0),
        lambda v: CusText(v, 2.0, k=2),
        lambda v: SanTextPlus(v, 2.0, ("bad", "good")),
        lambda v: MetricLaplace(LINE, 2.0),
        lambda v: Vickrey(LINE, 2.0),
    ],
)
def test_each_figure_is_that_of_the_table(vectors: Embedding, make: object) -> None:
    mech = make(vectors)  # type: ignore[operator]
    found = mech.text_report("Good, bad: good!")
    assert ([word.word for word in found.words], found.is_exact) == (["good", "bad"], True)
    for word in found.words:
        number = WORDS.index(word.word)
        chances = np.exp(mech.log_rows(number, number + 1)[0])
        assert word.kept == pytest.approx(chances[number], abs=1e-15)
        assert word.kept_limits == (word.kept, word.kept)
        carried = np.cumsum(np.sort(chances)[::-1])
        assert carried[word.support - 1] >= 0.95
        assert word.support == 1 or carried[word.support - 2] < 0.95
        assert word.loss == pytest.approx(exact_worst(mech, number), abs=1e-12)
    good, bad = found.words
    assert found.one_word == max(good.loss, bad.loss)
    assert found.any_text == pytest.approx(2 * good.loss + bad.loss)
    assert "their number is released" in str(found)


def test_an_unknown_word_is_one_more_row_of_the_table() -> None:
    mech = SanText(PLANE, 3.0)
    audit = dpcore.audit_table(mech.add_unknown_row())
    rows = np.vstack([mech.log_rows(0, 5), np.full((1, 5), -math.log(5))])
    assert (audit.inputs, audit.metric, audit.claim) == (6, False, None)
    assert audit.epsilon == pytest.approx(np.abs(rows[:, None] - rows[None]).max(), abs=1e-12)
    report = mech.text_report("good zebra zebra", unknown="uniform")
    assert report.words[1].word == "<unknown>"
    assert (report.words[1].times, report.words[1].kept, report.words[1].support) == (2, 0.0, 5)
    for word, number in zip(report.words, (2, 5), strict=True):
        assert word.loss == pytest.approx(exact_worst(mech, number, unknown=True), abs=1e-12)


def test_unknown_words_that_are_kept_make_every_loss_infinite() -> None:
    report = SanText(LINE, 1.0).text_report("good zebra", unknown="keep")
    assert [word.loss for word in report.words] == [math.inf, math.inf]
    assert report.one_word == report.any_text == math.inf
    assert "infinite" in str(report)
    dropped = SanText(LINE, 1.0).text_report("good zebra", unknown="drop")
    assert (dropped.length, dropped.strange) == (1, 1)
    assert "released with the length" in str(dropped)


def test_without_a_table_shares_are_counted_and_losses_are_bounds() -> None:
    mech = MetricLaplace(PLANE, 4.0)
    report = mech.text_report("good poor", rng=3)
    assert (report.is_exact, report) == (False, mech.text_report("good poor", rng=3))
    share = float((mech("good", 200_000, 5) == 2).mean())
    low, high = report.words[0].kept_limits
    assert low < share < high
    distances = np.linalg.norm(PLANE.vectors - PLANE.vectors[2], axis=1)
    assert report.words[0].loss == pytest.approx(4.0 * distances.max())
    assert "a bound, by the noise alone" in str(report)
    assert mech.text_report("good zebra", unknown="uniform", rng=1).one_word == math.inf


@pytest.mark.parametrize(("kind", "epsilon"), [(MetricLaplace, 2.0), (Vickrey, 8.0)])
def test_bounds_of_noise_at_a_delta(kind: type, epsilon: float) -> None:
    mech = kind(DEEP, epsilon)
    one = mech.text_loss("bad fine", "bad good", delta=1e-6)
    distance = epsilon * float(np.linalg.norm(DEEP.vectors[1] - DEEP.vectors[2]))
    assert not one.is_exact
    assert one.one_word == one.whole == pytest.approx(distance)
    assert l2_laplace_delta(one.at_delta, distance, 50) <= 1e-6
    assert l2_laplace_delta(0.99 * one.at_delta, distance, 50) > 1e-6
    long = mech.text_loss(["bad"] * 40, ["fine"] * 40, delta=1e-6)
    assert one.one_word_at_delta <= long.at_delta < long.whole
    assert "a bound, by the noise alone" in str(long)


def test_the_divergences_of_noise_are_above_those_of_draws() -> None:
    rng, size, distance, dim = np.random.default_rng(1), 400_000, 3.0, 20
    lengths = rng.gamma(dim, 1.0, size)
    cosines = 2.0 * rng.beta((dim - 1) / 2, (dim - 1) / 2, size) - 1.0
    losses = np.sqrt(lengths**2 - 2 * lengths * cosines * distance + distance**2) - lengths
    orders = np.array([1.5, 2.0, 4.0])
    bounds, short = (
        l2_laplace_renyi_upper_bounds(orders, d, dim) for d in (distance, 0.9 * distance)
    )
    for step, bound, less in zip(orders - 1.0, bounds, short, strict=True):
        terms = np.exp(step * losses)
        drawn = math.log(terms.mean()) / step
        error = terms.std() / terms.mean() / math.sqrt(size) / step
        assert drawn - 4 * error <= bound <= drawn + 4 * error + 0.05
        # The control: the bound of a distance that is shorter by a tenth.
        assert less < drawn - 4 * error


@pytest.mark.parametrize("mech", [SanText(PLANE, 3.0), MetricLaplace(LINE, 3.0)])
def test_texts_with_unknown_words_lose_what_the_table_with_their_row_loses(mech: object) -> None:
    rows = mech.rows_with_unknown(np.arange(6))  # type: ignore[attr-defined]
    both = "good zebra bad", "fine bad okapi"
    found = mech.text_loss(*both, unknown="uniform")  # type: ignore[attr-defined]
    sums = [rows[x] - rows[y] for x, y in ((2, 1), (5, 0), (0, 5))]
    exact = max(sum(one.max() for one in sums), -sum(one.min() for one in sums))
    assert found.whole == pytest.approx(exact)
    assert (found.is_exact, found.changed, found.claimed) == (True, 3, math.inf)
    assert found.at_delta <= found.whole
    # Two unknown words have one law; left unchanged they show which one it was.
    alike = "good zebra", "good okapi"
    assert mech.text_loss(*alike, unknown="uniform").whole == 0.0  # type: ignore[attr-defined]
    kept = mech.text_loss(*alike, unknown="keep")  # type: ignore[attr-defined]
    assert kept.one_word == kept.whole == kept.at_delta == kept.one_word_at_delta == math.inf
    # The same unknown word on both sides loses nothing; dropped ones are no place.
    same = mech.text_loss("zebra good", "zebra bad", unknown="keep")  # type: ignore[attr-defined]
    dropped = mech.text_loss("zebra good", "bad", unknown="drop")  # type: ignore[attr-defined]
    assert same.whole == dropped.whole == mech.loss(dpcore.Pair("good", "bad"))  # type: ignore[attr-defined]
    assert (same.words, dropped.words) == (2, 1)


def test_without_a_table_nothing_bounds_the_loss_against_an_unknown_word() -> None:
    mech = MetricLaplace(PLANE, 3.0)
    assert mech.text_loss("good zebra", "good bad", unknown="uniform").at_delta == math.inf
    assert mech.text_loss("good zebra", "good okapi", unknown="uniform").whole == 0.0
    assert mech.text_loss("good zebra", "good okapi", unknown="keep").whole == math.inf


def test_reports_are_written_to_json_and_as_a_table() -> None:
    report = SanText(LINE, 1.0).text_report("good zebra good", unknown="uniform")
    lines = str(report).splitlines()
    assert lines[-3].split() == ["word", "times", "kept", "support", "loss"]
    assert [line.split()[:2] for line in lines[-2:]] == [["good", "2"], ["<unknown>", "1"]]
    assert len({len(line) for line in lines[-3:]}) == 1
    assert "words without a vector: 1, replaced by any word" in str(report)
    plain = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (plain["length"], plain["seed"], plain["one_word"]) == (3, None, report.one_word)
    assert [word["kept"] for word in plain["words"]] == [word.kept for word in report.words]
    kept = SanText(LINE, 1.0).text_report("good zebra", unknown="keep").to_dict()
    assert json.loads(json.dumps(kept, allow_nan=False))["any_text"] == "inf"


VALUE_ERRORS = [
    (lambda: SanText(LINE, 1.0).text_report("good zebra"), "text", "made of words with a vector"),
    (lambda: SanText(LINE, 1.0).text_report("zebra", unknown="drop"), "text", "a text"),
    (lambda: SanText(LINE, 1.0).text_report("good", unknown="maybe"), "unknown", "one of 'error'"),
    (lambda: SanText(LINE, 1.0).text_loss("good", "zebra"), "b", "made of words with a vector"),
    (lambda: SanText(LINE, 1.0).text_loss("good", "bad", unknown="maybe"), "unknown", "one of"),
]  # fmt: skip
TYPE_ERRORS = [
    (lambda: SanText(LINE, 1.0).text_report(3.5), "text", "a text or a list of words"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
    check_messages(TypeError, TYPE_ERRORS)


VECTORS = Embedding([f"w{i}" for i in range(30)], np.random.default_rng(1).normal(size=(30, 5)))


COMPARED = words.compare(VECTORS, loss=6.0, rng=1)


def test_each_figure_is_that_of_its_mechanism():
    kinds = [kind.__name__ for kind in (SanText, TEM, MetricLaplace, Vickrey, CusText)]
    assert [row.name for row in COMPARED.rows] == kinds
    with pytest.raises(KeyError, match="SanTextPlus"):
        COMPARED["SanTextPlus"]
    row = COMPARED["SanText"]
    rows = SanText(VECTORS, row.epsilon).log_rows(0, 30)
    apart = np.linalg.norm(VECTORS.vectors[:, None] - VECTORS.vectors, axis=2)
    losses = (rows[:, None] - rows).max(axis=2)
    assert losses.max() == pytest.approx(6.0, rel=1e-8) == row.loss
    off = ~np.eye(30, dtype=bool)
    assert row.ratio == pytest.approx((losses[off] / apart[off]).max() / row.epsilon)
    assert row.kept == pytest.approx(np.exp(np.diag(rows)).mean())
    carried = np.cumsum(-np.sort(-np.exp(rows), axis=1), axis=1)
    assert row.support == np.median((carried < 0.95).sum(axis=1) + 1)
    assert (row.infinite_share, row.delta, row.is_exact, row.is_counted) == (0, 0, True, False)
    assert row.words_per_second > 0


def test_noise_has_a_bound_and_counted_shares():
    """The share of words that stay, on 30,000 draws, within 5 standard errors of 200,000 others."""
    row = COMPARED["MetricLaplace"]
    assert (row.is_exact, row.is_counted, row.ratio) == (False, True, None)
    inputs = np.arange(200_000) % 30
    kept = (MetricLaplace(VECTORS, row.epsilon).replace(inputs, 3) == inputs).mean()
    assert row.kept == pytest.approx(kept, abs=5 * np.sqrt(0.25 / 30_000))


def test_lists_of_different_words_lose_everything():
    row = COMPARED["CusText"]
    rows = CusText(VECTORS, 6.0, k=20).log_rows(0, 30)
    with np.errstate(invalid="ignore"):
        infinite = np.isposinf(rows[:, None] - rows).any(axis=2)
    assert (row.loss, row.infinite_share) == (np.inf, pytest.approx(infinite.sum() / (30 * 29)))
    assert 0.0 < row.delta <= 1.0


def test_the_table_has_a_line_for_each():
    text = str(COMPARED)
    assert text.splitlines()[0].startswith("30 words, dim=5, sha256")
    assert "6 (bound)" in text
    assert len(text.splitlines()) == 7


def test_figures_of_a_table_are_no_bounds_and_are_reached():
    line = Embedding([f"word{i}" for i in range(6)], np.random.default_rng(1).normal(size=(6, 1)))
    compared = words.compare(line, loss=5.0, rng=1)
    assert "(bound)" not in str(compared)
    for kind in (words.MetricLaplace, words.Vickrey):
        calibration = words.calibrate(kind, line, 5.0)
        rows = calibration.mechanism.log_rows(0, 6)
        largest = np.abs(rows[:, None] - rows).max()
        assert calibration.loss == pytest.approx(largest, abs=1e-9)
        assert largest < 5.0
        assert compared[kind.__name__].loss == calibration.loss


@pytest.mark.parametrize("progress", [True, False, None])
def test_a_comparison_shows_its_progress(monkeypatch, progress):
    shares = []

    class Bar(Progress):
        def advance(self, done):
            shares.append((done / self._state.total, self._silent))

    monkeypatch.setattr("dpcore.text.words.exponential.Progress", Bar)
    words.compare(PLANE, loss=3.0, rng=1, progress=progress)
    assert sum(share for share, _ in shares) == pytest.approx(1.0)
    assert {silent for _, silent in shares} == {progress is False}


def test_an_infinite_loss_stands_next_to_the_neighbours_of_the_claim():
    m = CusText(VECTORS, 1.0, k=3)
    assert "neighbour=m.same_list" in str(dpcore.audit_table(m))
    audit = dpcore.audit_table(m, neighbour=m.same_list)
    assert not audit.refuted
    assert "same_list" not in str(audit)
