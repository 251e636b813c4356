"""Rows that are not independent are never a verdict: each case with its clean twin.

The checks alarm on independent rows with a probability below 1e-6 an audit: the clean audits here
allow no alarm at all.
"""

from __future__ import annotations

import os
import pickle
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import shared_plugin
from shared_extras import mark_slow
from shared_messages import find_missing
from shared_rows import EARLY, UNIT, WIDE, fresh, in_turn, invalid

import dpcore
from dpcore import Counts, Laplace, Pair
from dpcore.attacks import MajorityVote
from dpcore.errors import AssumptionWarning
from dpcore.results.evidence import Finding
from dpcore.sampling.driver import Pace

AUDITS = int(os.environ.get("DPCORE_AUDITS", "100"))
"""DPCORE_AUDITS=3000 runs the whole promise: no alarm in so many audits of clean mechanisms."""


def one_noise(x, size, rng):
    """What `rng.laplace(size=len(x))` becomes where size outputs are wanted."""
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))


def one_coin(x, size, rng):
    return np.full(size, (rng.random() < 0.75) == (x[0] > 0))


def fresh_coins(x, size, rng):
    return (rng.random(size) < 0.75) == (x[0] > 0)


def one_word(x, size, rng):
    return np.full(size, ["no", "yes"][int(rng.random() < 0.4 + 0.2 * x[0])])


def one_object(x, size, rng):
    outputs = np.empty(size, object)
    outputs[:] = [("a", float(x[0] + rng.laplace()))] * size
    return outputs


def one_record(x, size, rng):
    outputs = np.zeros(size, [("label", "U3"), ("value", "f8", 2)])
    outputs["value"], outputs["label"] = x[0] + rng.laplace(size=2), "abc"
    return outputs


def one_complex(x, size, rng):
    return np.full(size, x[0] + rng.laplace() + 1j * rng.laplace())


def one_of_three(x, size, rng):
    """Noise of its own in two places; in the last one noise for all rows of a call."""
    outputs = fresh(x, size, rng)
    outputs[:, 2] = x[2] + rng.laplace()
    return outputs


def at_an_offset(x, size, rng):
    """Noise that is a ten-billionth of the output."""
    return np.full((size, 1), 3e8 + x[0] + 0.1 * rng.laplace())


THREE = Pair([0.0, 0.0, 0.0], [0.0, 0.0, 1.0])
SHARED = {
    "noise": (one_noise, UNIT), "two places": (one_noise, Pair([0.0, 0.0], [1.0, 0.0])),
    "coin": (one_coin, UNIT), "word": (one_word, UNIT), "object": (one_object, UNIT),
    "record": (one_record, UNIT), "complex": (one_complex, UNIT),
    "one of three": (one_of_three, THREE), "offset": (at_an_offset, UNIT),
}  # fmt: skip
MESSAGE = (
    r"^outputs of .* must be drawn anew for every row of a call, got one value for all [\d,]+ rows "
    r"of a call.*: draw the noise with size=\(size, len\(x\)\), .*dpcore\.repeat\(function\)$"
)


@pytest.mark.parametrize("name", SHARED)
@pytest.mark.parametrize("trials", [10, 1000, 10**5])
@pytest.mark.parametrize("more", [{}, EARLY, {"block": 5}], ids=["fixed", "early", "block"])
def test_one_noise_for_a_call_is_an_error(name, trials, more):
    for seed in range(3):
        with pytest.raises(ValueError, match=MESSAGE):
            dpcore.audit(*SHARED[name], claim=1.0, rng=seed, trials=trials, **more)


def test_the_place_is_named_where_there_are_several():
    with pytest.raises(ValueError, match="rows of a call in place 2 of 3 and another"):
        dpcore.audit(one_of_three, THREE, claim=1.0, trials=10**4, rng=1)


def test_it_is_told_before_the_audit_has_begun():
    """After the probe of the shape and two dozen short calls per side, whatever the trials."""
    sizes = []

    def counting(x, size, rng):
        sizes.append(size)
        return one_noise(x, size, rng)

    with pytest.raises(ValueError, match=MESSAGE):
        dpcore.audit(counting, UNIT, claim=1.0, trials=10**9, rng=1)
    assert len(sizes) < 50
    assert sum(sizes) < 2000


def only_long_calls(x, size, rng):
    """A fast path for many outputs, and the mistake is there."""
    return one_noise(x, size, rng) if size > 100 else fresh(x, size, rng)


@pytest.mark.parametrize("more", [{}, EARLY, {"attack": MajorityVote()}, {"threads": 2}])
def test_calls_of_the_audit_itself_are_compared_too(more):
    with pytest.raises(ValueError, match=MESSAGE):
        dpcore.audit(only_long_calls, UNIT, claim=1.0, trials=10**5, rng=1, **more)


def test_calls_of_one_row_say_nothing():
    """With one row a call, noise for a call is noise for a row."""
    report = dpcore.audit(one_noise, UNIT, claim=1.0, trials=300, block=1, rng=1)
    assert (report.refuted, report.checks) == (False, ())


def constant(x, size, rng):
    return np.full((size, 2), 0.1) + 0 * x[0]


def one_place_without_noise(x, size, rng):
    outputs = fresh(x, size, rng)
    outputs[:, 0] = x[0]
    return outputs


def kept_word(x, size, rng):
    """Word kept with probability .999, else any of ten."""
    words = np.array([f"w{i}" for i in range(10)])
    kept = rng.random(size) < 0.999
    return np.where(kept, words[int(x[0])], words[rng.integers(10, size=size)])


def rounded_anew(x, size, rng):
    """No noise; how it is summed depends on the call, as with BLAS: a last place of float32."""
    return np.full((size, 1), 7.3 * (1.0 + rng.integers(2) * 2.0**-52))


def undefined(x, size, rng):
    return np.full((size, 1), np.nan)


def with_sentinel(x, size, rng):
    return np.where(rng.random(size) < 1e-3, 1e12, x[0] + rng.normal(size=size))


CLEAN = {
    "laplace": (fresh, UNIT),
    "three places": (fresh, THREE),
    "coins": (fresh_coins, UNIT),
    "constant": (constant, UNIT),
    "kept word": (kept_word, UNIT),
    "one place without noise": (one_place_without_noise, Pair([0.0, 0.0], [0.0, 1.0])),
    "nan": (undefined, UNIT),
    "repeated": (dpcore.repeat(lambda x, rng: x + rng.laplace(size=len(x))), UNIT),
    "ties": (lambda x, size, rng: x + np.round(rng.laplace(size=(size, 1))), UNIT),
    "rare": (lambda x, size, rng: rng.random(size) < 0.01 * (1 + x[0]), UNIT),
    "sentinel": (with_sentinel, UNIT),
}
"""Half of them have few outputs, on which chance repeats itself most."""


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("more", [{}, EARLY], ids=["fixed", "early"])
def test_clean_mechanisms_pass(name, more):
    mechanism, pair = CLEAN[name]
    audits = max(2, AUDITS // (2 * len(CLEAN)))
    for seed in range(audits):
        sizes = {"trials": (200, 2000, 20_000)[seed % 3], "block": (None, 7, 64, 1000)[seed % 4]}
        with warnings.catch_warnings():
            warnings.simplefilter("error", AssumptionWarning)
            report = dpcore.audit(mechanism, pair, claim=9.0, rng=seed, **sizes, **more)
        assert report.checks == ()


@pytest.mark.parametrize("more", [{}, {"block": 64}])
def test_a_last_place_that_changes_with_the_call_is_no_noise(more):
    """A noiseless number, however it is summed; the vote does not see its last place."""
    options = {"claim": 9.0, "trials": 2000, "attack": MajorityVote(), "rng": 1, **more}
    assert dpcore.audit(rounded_anew, UNIT, **options).checks == ()


# Rows that stand near each other and are alike are never a verdict; independent ones are.


def autoregressive(rho):
    def mechanism(x, size, rng):
        """Normal rows, each correlated with the one before."""
        noise = rng.normal(size=size)
        for row in range(1, size):
            noise[row] = rho * noise[row - 1] + (1 - rho**2) ** 0.5 * noise[row]
        return x[0] + noise

    return mechanism


def walk(x, size, rng):
    """Random-walk Metropolis on the Laplace law, started well."""
    value, outputs = rng.laplace(), np.empty(size)
    for row, (step, coin) in enumerate(zip(rng.normal(size=size), rng.random(size), strict=True)):
        if coin < np.exp(abs(value) - abs(value + step)):
            value += step
        outputs[row] = value
    return x[0] + outputs


def in_groups(of):
    def mechanism(x, size, rng):
        return x[0] + np.repeat(rng.laplace(size=-(-size // of)), of)[:size]

    return mechanism


def ordered(x, size, rng):
    return x[0] + np.sort(rng.laplace(size=size))


def chains(x, size, rng):
    """Five chains side by side, each slow: rows that stand five apart are alike."""
    return x[0] + np.repeat(rng.laplace(size=(-(-size // 20), 5)), 4, axis=0).ravel()[:size]


def tiled(x, size, rng):
    """A pool of 10 draws for a call, over and over."""
    return x[0] + np.resize(rng.laplace(size=10), size)


def slow_words(x, size, rng):
    """A word that changes now and then: no order among words, so only equality tells."""
    words = np.array(["do", "re", "mi", "fa", "so"], object)
    change = np.cumsum(rng.random(size) < 0.3)
    return words[rng.integers(5, size=size + 1)[change]]


def free_words(x, size, rng):
    return np.array(["do", "re", "mi", "fa", "so"], object)[rng.integers(5, size=size)]


def thousand(x, size, rng):
    """Only one of 1,000 columns depends on the input, and its rows come in fours."""
    outputs = rng.normal(size=(size, 1000))
    outputs[:, 500] = x[500] + np.repeat(rng.normal(size=-(-size // 4)), 4)[:size]
    return outputs


NEAR = {
    "autoregressive .9": (autoregressive(0.9), UNIT),
    "autoregressive .3": (autoregressive(0.3), UNIT), "metropolis": (walk, UNIT),
    "twos": (in_groups(2), UNIT), "fours": (in_groups(4), UNIT), "tens": (in_groups(10), UNIT),
    "ordered": (ordered, UNIT), "chains": (chains, UNIT), "tiled": (tiled, UNIT),
    "mirrored": (in_turn, UNIT), "words": (slow_words, UNIT), "1,000 columns": (thousand, WIDE),
}  # fmt: skip


@pytest.mark.parametrize("name", mark_slow(NEAR, ["1,000 columns"]))
def test_rows_that_are_like_their_neighbours_are_no_verdict(name):
    for seed in range(2):
        invalid(*NEAR[name], trials=5000, rng=seed)


@pytest.mark.parametrize("name", ["autoregressive .9", "metropolis", "fours", "ordered"])
@pytest.mark.parametrize("more", [EARLY, {"block": 500}, {"attack": MajorityVote()}])
def test_they_are_told_however_they_are_counted(name, more):
    report = invalid(*NEAR[name], trials=5000, rng=1, **more)
    assert any("in a call are more alike than independent" in said for said in report.checks)


def test_rows_less_alike_than_independent_ones_are_told_too():
    said = invalid(in_turn, trials=5000, rng=1).checks
    assert any("next to each other in a call are less alike" in one for one in said)


@pytest.mark.parametrize("trials", [5000, 10**6])
def test_independent_twins_pass(trials):
    for mechanism in (autoregressive(0.0) if trials < 10**6 else fresh, in_groups(1), free_words):
        assert dpcore.audit(mechanism, UNIT, claim=9.0, trials=trials, rng=1).checks == ()


def test_a_run_that_starts_anywhere_is_looked_at():
    """Parts of a long run begin in the middle of the numbering of trials."""
    for start in (0, 3 * 2**17):
        invalid(autoregressive(0.9), trials=2000, start=start, rng=1)


# Rows whose law changes while they are drawn, and checks of parts, of threads and of copies.


# Dispersion.


def drifting(rate):
    def mechanism(x, size, rng):
        """Within a call the noise grows wider in four steps."""
        wide = np.repeat([1.0, 1.0 + rate, 1.0 + 2 * rate, 1.0 + 3 * rate], -(-size // 4))[:size]
        return x[0] + wide * rng.laplace(size=size)

    return mechanism


def moved(x, size, rng):
    """Noise of its own for each row, on top of a shift for each call."""
    return x[0] + 0.3 * rng.laplace() + rng.laplace(size=size)


def moved_wide(x, size, rng):
    outputs = rng.normal(size=(size, 1000))
    outputs[:, 500] += x[500] + rng.normal()
    return outputs


def moved_far(x, size, rng):
    return x[0] + rng.laplace() + rng.laplace(size=size)


@pytest.mark.parametrize(
    ("mechanism", "pair", "trials", "said"),
    [
        # Whole blocks, a last block of a single row, and one block alone.
        *((drifting(1.0), UNIT, n, "vary more from block to block") for n in (2**19, 2**19 + 1)),
        (drifting(1.0), UNIT, 100_000, "vary more from block to block"),
        *((moved, UNIT, trials, "") for trials in (2**19, 2**19 + 1)),
        # Blocks of 131 rows of a thousand columns: too few hits in each by itself.
        (moved_wide, WIDE, 4000, ""),
        # Three calls per side, each with a shift of its own: inside none of them does it show.
        (moved_far, UNIT, 50_000, "outputs vary more from call to call"),
    ],
)
def test_what_changes_within_a_call_or_between_calls_is_told(mechanism, pair, trials, said):
    assert any(said in one for one in invalid(mechanism, pair, trials=trials, rng=1).checks)


# Merging.


PART = {"trials": 4096, "block": 4096, "attack": MajorityVote(), "rng": 1}


def test_checks_of_a_part_stay_in_the_whole():
    parts = [invalid(in_turn, start=start, **PART) for start in (0, 4096)]
    both = parts[0] + parts[1]
    assert both.checks == tuple(dict.fromkeys(parts[0].checks + parts[1].checks))
    assert (both.refuted, both.epsilon_lower) == (None, 0.0)
    assert both.verdict.startswith("invalid: ")
    assert dpcore.Audit.from_json(both.to_json()).refuted is None


def test_parts_that_contradict_each_other_are_no_verdict():
    """One call each: only together they show that a shift is shared by all rows of a call."""
    parts = [dpcore.audit(moved, UNIT, claim=9.0, start=4096 * i, **PART) for i in range(8)]
    assert not any(part.checks for part in parts)
    both = sum(parts[1:], parts[0])
    assert both.refuted is None
    assert "vary more from audit to audit" in both.checks[0]
    clean = [dpcore.audit(fresh, UNIT, claim=9.0, start=4096 * i, **PART) for i in range(8)]
    assert sum(clean[1:], clean[0]).checks == ()


# Who counts, and when.


def test_threads_and_slices_change_nothing():
    options = {"trials": 20_000, "block": 1000, "rng": 1}
    alone = invalid(in_turn, **options)
    assert invalid(in_turn, threads=2, **options).checks == alone.checks
    with ThreadPoolExecutor(2) as pool:
        assert invalid(in_turn, executor=pool, **options).checks == alone.checks


def test_what_a_block_says_travels():
    from dpcore.sampling.rows import IndependenceSums

    rows = np.random.default_rng(1).laplace(size=1000)
    seen = IndependenceSums.of_event_answers(rows, 0, 0, rows > 0)
    again = pickle.loads(pickle.dumps(seen))
    assert (again.pieces.sums, again.pieces.single) == (seen.pieces.sums, seen.pieces.single)
    np.testing.assert_array_equal(again.near, seen.near)


def test_an_interrupted_audit_is_looked_at_too(monkeypatch):
    calls = []
    # A block a shard: the one that is interrupted is lost.
    monkeypatch.setattr(Pace, "shard_trials", lambda pace, left, workers, block, travels: block)

    def stopped(x, size, rng):
        calls.append(size)
        if calls.count(500) > 20:
            raise KeyboardInterrupt
        return in_turn(x, size, rng)

    options = {"trials": 10**6, "block": 500, "pilot": 600, "attack": MajorityVote(), "rng": 1}
    assert invalid(stopped, **options).partial


# Where a check says that no bound holds, nothing shows one: report, page, command, pytest.


pytest_plugins = ["pytester"]

inner = shared_plugin.inner


def in_twos(x, size, rng):
    return np.repeat(fresh(x, -(-size // 2), rng), 2, axis=0)[:size]


BOUNDS = "epsilon &gt;=", "epsilon >="
"""What a report says of a bound."""


def made(mechanism):
    """An audit that refutes its claim, or would if its rows were independent."""
    return dpcore.audit(mechanism, Pair([0.0], [1.0]), claim=0.1, trials=20_000, rng=1)


@pytest.fixture(scope="module")
def good():
    return made(fresh)


@pytest.fixture(scope="module")
def bad():
    with pytest.warns(AssumptionWarning):
        report = made(in_twos)
    found = Finding(report.event, "x", Counts(900, 1000, 10, 1000), 0.0, 0.95)
    return replace(report, floating_point=found)


def test_every_figure_that_certifies(bad, good):
    assert good.refuted is True
    assert good.epsilon_lower > 0.5
    assert (bad.refuted, bad.epsilon_lower, bad.epsilon_lower_at(0.1)) == (None, 0.0, 0.0)
    assert (bad.power, replace(bad, floats=True).epsilon_lower) == ("", 0.0)
    for name in ("mu_lower", "tradeoff"):
        assert getattr(good, name) is not None
        with pytest.raises(ValueError, match=r"^checks must be empty for what rests on ind"):
            getattr(bad, name)
    assert ("epsilon_lower" in repr(bad), "epsilon_lower" in repr(good)) == (False, True)
    # Only what follows from independence falls: replacing the checks brings all of it back.
    again = replace(bad, checks=())
    assert again.epsilon_lower > 0.5
    assert bad.epsilon_hat == again.epsilon_hat


def test_the_report(bad, good):
    said = "nothing: no bound holds", "invalid: outputs on x that stand next to each other"
    for shown in (str(bad), bad._repr_html_()):
        assert find_missing(shown, *BOUNDS, *said) == list(BOUNDS)
    assert all("epsilon >=" in str(one) for one in (good, replace(bad, checks=())))


def test_the_picture(bad, good):
    pytest.importorskip("matplotlib")
    axes = bad.plot().axes[0]
    assert not axes.patches
    assert axes.get_title(loc="left").endswith("invalid: no bound holds")
    assert "no bound holds" in [text.get_text() for text in axes.texts]
    assert good.plot().axes[0].patches
    for name in ("plot_tradeoff", "plot_profile"):
        with pytest.raises(ValueError, match=r"^checks must be empty"):
            getattr(bad, name)()


def test_the_page(bad, good):
    pytest.importorskip("matplotlib")
    page = bad.to_html()
    head = page[: page.index("<section>")]
    said = "<dt>epsilon certified</dt><dd>none</dd>", "The claim was not tested."
    assert not find_missing(head, *said)
    certifying = ["epsilon &gt;=", "so epsilon", "Certified</h3>", "Trade-off curve"]
    assert find_missing(page, *certifying) == certifying
    page = good.to_html()
    assert not find_missing(page, "so epsilon &gt;= ln(", "Trade-off curve")


def test_json_keeps_it(bad):
    again = dpcore.Audit.from_json(replace(bad, mechanism="in_twos").to_json())
    assert (again.checks, again.verdict, again.refuted) == (bad.checks, bad.verdict, None)
    assert again.to_dict()["derived"]["epsilon_lower"] == 0.0


FUNCTIONS = """
import numpy as np

def noisy(x, size, rng):
    return x + rng.laplace(size=(size, len(x)))

def in_twos(x, size, rng):
    return np.repeat(noisy(x, -(-size // 2), rng), 2, axis=0)[:size]

def one_noise(x, size, rng):
    return np.tile(x + rng.laplace(size=len(x)), (size, 1))
"""


@pytest.fixture
def audit_file(run, tmp_path):
    """Audit one of FUNCTIONS on the command line: (status, stdout, stderr)."""
    (tmp_path / "mine.py").write_text(FUNCTIONS)
    words = "--x 0 --x-prime 1 --trials 2e4 --seed 1"
    return lambda name, more: run(f"audit {tmp_path}/mine.py:{name} {words} {more}")


@pytest.mark.parametrize(
    ("name", "more", "status"),
    [
        ("noisy", "--claim 2", 0), ("noisy", "--claim 0.1", 1), ("in_twos", "--claim 2", 3),
        ("in_twos", "--claim 0.1", 3), ("in_twos", "--claim 0.1 --stop refuted", 3),
        ("in_twos", "--no-claim", 3),
    ],
)  # fmt: skip
def test_the_exit_status(audit_file, name, more, status):
    found, out, _ = audit_file(name, more)
    assert found == status
    assert ("verdict      invalid: " in out) == (status == 3)
    assert ("epsilon >=" in out) == (status != 3)


def test_the_exit_status_of_an_error_and_of_json(audit_file):
    status, out, err = audit_file("one_noise", "--claim 1")
    assert (status, out) == (3, "")
    assert "one_noise must be drawn anew for every row of a call" in err
    assert "size=(size, len(x))" in err
    status, out, _ = audit_file("in_twos", "--claim 1 --json")
    assert status == 3
    assert dpcore.Audit.from_json(out).checks


TESTS = f"""{FUNCTIONS}
@pytest.mark.parametrize("epsilon", [0.1, 9.0])
class TestAll:
    @pytest.mark.parametrize("mechanism", [in_twos, one_noise, noisy])
    def test_call(self, dp_audit, mechanism, epsilon):
        dp_audit(mechanism, PAIR, epsilon=epsilon)

    @pytest.mark.parametrize("mechanism", [in_twos, one_noise, noisy])
    def test_refutes(self, dp_audit, mechanism, epsilon):
        dp_audit.refutes(mechanism, PAIR, epsilon=epsilon)
"""


def test_no_test_passes(inner):
    """Neither the test of a claim nor the test that a broken mechanism is caught."""
    result = inner(TESTS, "-v", "-W", "ignore::dpcore.errors.AssumptionWarning")
    # The twin: one of the two passes, as the claim stands or falls.
    result.assert_outcomes(failed=10, passed=2)
    text = result.stdout.str()
    passed = set(re.findall(r"test_inner.py::TestAll::(\S+) PASSED", text))
    assert passed == {"test_call[noisy-9.0]", "test_refutes[noisy-0.1]"}
    for epsilon in ("0.1", "9"):
        said = f"^epsilon <= {epsilon} was not tested: invalid: outputs on x that stand next to"
        assert len(re.findall(said, text, re.M)) == 2
    assert text.count("one_noise must be drawn anew for every row of a call") >= 4
    summary = re.findall(r"in_twos: epsilon <= .*", text.partition("audits by dpcore")[2])
    assert len(summary) == 4
    assert all("invalid: outputs on x" in line and "certified" not in line for line in summary)


def test_only_a_refutation_counts_as_one(bad):
    assert (bad.refuted, made(Laplace(1.0)).refuted) == (None, True)
