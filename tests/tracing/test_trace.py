# ruff: noqa: NPY002 (traces follow the legacy functions, too)
"""`dpcore.trace`: its report, its soundness, its bad inputs, and what it leaves unchanged."""

from __future__ import annotations

import functools
import inspect
import json
import random
import subprocess
import sys
import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest

import dpcore
from dpcore.tracing import analysis


def totals(x):
    a = np.random.laplace(scale=1.0)
    b = np.random.laplace(scale=1.0)
    count = len(x) + a
    total = sum(x) + b
    return count, total


FIVE, SIX = [2, 2, 2, 2, 2], [2, 2, 2, 2, 2, 1]
START = inspect.getsourcelines(totals)[1]


def trace(f, x, x_prime, **options):
    return dpcore.trace(f, (x, x_prime), **{"claim": 1.0, "rng": 1, **options})


def test_the_report_has_the_rows_of_the_guide():
    """Spending twice is 2 exactly, and each line has its share."""
    report = trace(totals, FIVE, SIX)
    file, law = "test_trace.py", "laplace, scale 1"
    assert report.loss == 2.0
    assert report.lines() == [
        ("outcome", "above the claim on this pair"),
        ("loss", "2, computed for this pair, not certified"),
        ("", f"1 at {file}:{START + 1} in totals: {law}, meets 5 and 6 at {file}:{START + 3}"),
        ("", f"1 at {file}:{START + 2} in totals: {law}, meets 10 and 11 at {file}:{START + 4}"),
        ("checked", "4 of 4 plain runs on x' with the noise so moved gave the output of x"),
        (
            "covers",
            "every noise: one move in 4 draws, no noisy value read before the return",
        ),
        (
            "assumes",
            "independent draws of the named laws, real arithmetic, no output but the returned "
            "value",
        ),
    ]


def test_all_ways_to_call_a_function_give_the_same_loss():
    """The function may take x, a generator, or size and generator; or be an object."""

    def with_rng(x, rng):
        return sum(x) + rng.laplace(scale=2.0)

    def by_keyword(x, *, rng):
        return sum(x) + rng.laplace(scale=2.0)

    def contract(x, size, rng):
        return np.sum(x) + rng.laplace(scale=2.0, size=size)

    @dataclass
    class Mechanism:
        scale: float

        def __call__(self, x, size, rng):
            return np.sum(x) + rng.laplace(scale=self.scale, size=(size, 1))

        def as_mechanism(self):
            return self

    functions = [
        with_rng, by_keyword, contract, Mechanism(2.0), dpcore.repeat(with_rng),
        functools.partial(contract), lambda x: sum(x) + np.random.laplace(scale=2.0),
    ]  # fmt: skip
    for function in functions:
        assert trace(function, [1, 1], [1]).loss == 0.5


def test_a_seed_repeats_the_trace():
    """Two traces with one seed are equal, and differ in nothing that is compared."""

    def threshold(x, rng):
        return [sum(x) + rng.laplace() > 2, max(x) + rng.laplace()]

    first, second = (trace(threshold, [1, 2], [1, 3], rng=7) for _ in range(2))
    assert first == second


def test_saved_traces_come_back(tmp_path):
    """A file holds all fields; the page names the lines."""
    for report in (trace(totals, FIVE, SIX), trace(lambda x: len(x), [1], [], claim=None)):
        report.save(tmp_path / "trace.json")
        assert dpcore.Trace.load(tmp_path / "trace.json") == report
        assert json.loads(report.to_json())["derived"]["verdict"] == report.verdict
        assert report.outcome in report.to_html()
        report.plot()
    with pytest.raises(TypeError, match=r"use \.outcome"):
        bool(report)


def test_importing_dpcore_loads_nothing_of_it():
    """The package is loaded when a trace is first used."""
    code = "import dpcore, sys; print([m for m in sys.modules if 'tracing' in m], dpcore.trace)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.startswith("[] <function trace")


# Soundness: losses that a trace must not understate as those of every noise.


def add_exponential(x, rng):
    return x + rng.exponential()


def leak_rarely(x, rng):
    y = float(x + rng.laplace())
    return y, x if y > 5 else 0


def leak_in_the_tail(x, rng):
    noise = rng.laplace()
    return x + noise if abs(noise) < 4 else x


def release_beside_a_large_number(x, rng):
    return [x, 1e10, rng.laplace()]


def release_in_a_long_text(x, rng):
    return f"{1e10 + x:.4f}, {rng.laplace():.2f}"


def round_geometric(x, rng):
    return round(x + rng.geometric(0.5) - rng.geometric(0.5))


def test_one_sided_noise_has_an_infinite_loss_in_both_orders():
    """A move downwards is impossible, whichever input comes first."""
    for pair in ((1, 0), (0, 1)):
        report = trace(add_exponential, *pair)
        assert report.loss == np.inf
        assert report.outcome == "above the claim on this pair"


@pytest.mark.parametrize("function", [leak_rarely, leak_in_the_tail])
def test_rare_leaks_are_not_covered_by_every_noise(function):
    """A value that is read or compared leaves noise that no draw showed."""
    for seed in range(20):
        assert not trace(function, 0, 1, rng=seed).covers.startswith("every noise")


@pytest.mark.parametrize("function", [release_beside_a_large_number, release_in_a_long_text])
def test_a_small_clear_value_is_found(function):
    """Each entry and each number in a text is compared by its own size."""
    report = trace(function, 3, 4)
    assert [finding.kind for finding in report.findings] == ["no noise"]
    assert "3 on x and" in report.findings[0].text


def test_integer_noise_moves_by_integers():
    """A fraction that rounding turns into a whole unit costs the whole unit."""
    report = trace(round_geometric, 0.6, 0)
    assert report.loss == pytest.approx(np.log(2), rel=1e-12)


def test_noise_that_is_not_followed_gives_no_loss():
    """Randomness past the trace, however rare, is neither a loss nor a finding."""

    def coin(x):
        return x if random.SystemRandom().random() < 0.99 else 1 - x

    def tail(x, rng):
        return x if rng.laplace() < 6 else 1 - x

    def cauchy(x, rng):
        return x if abs(rng.standard_cauchy()) < 90 else 1 - x

    for function in (coin, tail, cauchy):
        for seed in range(2):
            assert trace(function, 0, 1, rng=seed).exit_status == 3


# Gaussian noise, comparisons, lost forms.


def test_gaussian_noise_gives_mu():
    """The mu is the distance over sigma; without a delta the loss is infinite."""

    def release(x, rng):
        return np.array(x) + rng.normal(scale=4.0, size=2)

    report = trace(release, [0, 0], [3, 4], delta=1e-5)
    assert report.mu == 1.25
    assert report.loss == pytest.approx(dpcore.claims.GDP(1.25).epsilon(1e-5), rel=1e-6)
    assert trace(release, [0, 0], [3, 4]).loss == np.inf
    assert trace(release, [0, 0], [3, 4], claim=dpcore.claims.GDP(1.26)).exit_status == 0
    assert trace(release, [0, 0], [3, 4], claim=dpcore.claims.GDP(1.24)).exit_status == 1


def test_laplace_noise_under_a_claim_with_delta_is_compared_at_delta():
    """Noise of pure loss L has the loss L + 2 ln(1 - delta) at delta: a correct claim stands."""

    def make_release(loss):
        return lambda x, rng: x + rng.laplace(scale=1.0 / loss)

    exact = 1.0 - 2.0 * np.log1p(-0.05)
    for loss, status in ((exact - 0.001, 0), (exact + 0.001, 1)):
        assert trace(make_release(loss), 0.0, 1.0, claim=1.0, delta=0.05).exit_status == status
    assert trace(make_release(1.001), 0.0, 1.0, claim=1.0).exit_status == 1


def test_compared_gaussian_values_count_as_returned():
    """The place of the greatest of Gaussian values has the mu of all values."""

    def choose(x, rng):
        return int(np.argmax(np.array(x) + rng.normal(size=40)))

    x = np.zeros(40)
    other = x.copy()
    other[3] = 1.0
    report = trace(choose, x, other, delta=1e-5)
    assert 0.95 < report.mu <= 1.0


def test_lost_noise_is_solved_by_plain_runs():
    """Noise that becomes a float before it meets a value is moved by plain runs."""

    def lose(x, rng):
        return [value + float(rng.laplace(scale=2.0)) for value in x]

    def square(x, rng):
        return x + float(rng.laplace()) ** 2

    report = trace(lose, [0, 1], [1, 1])
    assert (report.loss, report.checked) == (0.5, 4)
    assert "form of the noise is lost" in report.covers
    assert trace(square, 0, 1).outcome == "not traceable"


def test_numbers_are_read_before_they_meet_more_data():
    """Each record minus a noisy mean is data, once the mean is fixed."""

    def spread(x, rng):
        centre = (sum(x) + rng.laplace(scale=4.0)) / 4
        return sum(min((value - centre) ** 2, 1.0) for value in x) + rng.laplace(scale=4.0)

    report = trace(spread, [0, 0.5, 1, 1], [0, 0.5, 1, 0])
    assert report.outcome == "within the claim on this pair"
    assert 0.25 < report.loss <= 0.5


def test_in_place_sums_do_not_change_other_names():
    """A scalar is a value: the first name keeps the first sum."""

    def accumulate(x, rng):
        first = sum(x) + rng.laplace(scale=4.0)
        both = first
        both += len(x) + rng.laplace(scale=4.0)
        return first, both

    assert trace(accumulate, [1, 1], [1]).loss == pytest.approx(0.5, rel=1e-12)


def test_the_attack_of_shared_noise_certifies():
    """The combination without noise refutes the claim, also 2 of 50 entries or in a mapping."""

    def share(x, rng):
        noise = rng.laplace(size=50)
        noise[40] = noise[5]
        return np.array(x) + noise

    def share_in_mapping(x, rng):
        noise = rng.laplace()
        return {"n": len(x) + noise, "sum": sum(x) + noise}

    x = np.zeros(50)
    other = x.copy()
    other[5] = 1.0
    for function, pair in ((share, (x, other)), (share_in_mapping, ([1, 2], [1]))):
        report = trace(function, *pair)
        assert report.findings[0].kind == "shared noise"
        options = {"attack": report.attack, "claim": 1.0, "trials": 1000, "rng": 1}
        audit = dpcore.audit(dpcore.repeat(function), pair, **options)
        assert audit.verdict == "refuted"
        assert audit.epsilon_lower > 5.0
    with pytest.raises(AttributeError, match="outputs without noise"):
        _ = trace(totals, FIVE, SIX).attack


def test_shared_noise_is_found_beside_its_absolute_value():
    """The sign that abs() compares does not hide that two outputs hold the same noise."""

    def report_error(x, rng):
        noise = rng.normal(scale=4.0)
        return {"sum": sum(x) + noise, "noise": noise, "error": abs(noise)}

    def report_errors(x, rng):
        noise, other = rng.normal(scale=4.0, size=2)
        return {"sum": sum(x) + noise, "noise": other, "error": abs(noise)}

    report = trace(report_error, [1, 2], [1])
    assert [finding.kind for finding in report.findings] == ["shared noise"]
    assert "output['noise'] - output['sum'] is -3 on x and -1 on x'" in report.findings[0].text
    assert not trace(report_errors, [1, 2], [1]).findings


def test_noise_in_a_column_of_a_frame_is_followed():
    """A column that apply() fills with noise is compared with the plain run by value."""
    pandas = pytest.importorskip("pandas")

    def hide_column(x, rng):
        frame = pandas.DataFrame({"group": [1, 2, 2], "value": x})
        frame["value"] = frame["value"].apply(lambda value: value + rng.laplace(scale=2.0))
        return frame

    report = trace(hide_column, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], claim=1.0)
    assert report.outcome == "within the claim on this pair"
    assert report.loss == pytest.approx(0.5)
    assert "every noise" in str(report)
    report = trace(hide_column, [1.0, 2.0, 3.0], [1.0, 2.0, 4.0], claim=0.4)
    assert report.outcome == "above the claim on this pair"


def test_primitives_are_single_steps():
    """The loss follows from the two inputs; inputs too far apart are a finding."""

    def find_loss(value, other):
        return abs(value - other), abs(value - other) / 2.0

    @dpcore.tracing.primitive(loss=find_loss, declared=1.0)
    def hide(value):
        return value + np.random.default_rng().laplace(scale=2.0)

    assert isinstance(hide(3), float)
    report = trace(lambda x: hide(sum(x)), [1, 1], [1])
    assert (report.loss, report.outcome) == (0.5, "within the claim on this pair")
    assert "hide is called at test_trace.py" in report.covers
    far = trace(lambda x: hide(sum(x)), [1, 3], [1])
    assert [finding.kind for finding in far.findings] == ["primitive"]
    assert "inputs of hide are 3 apart, declared 1" in far.findings[0].text
    with pytest.raises(TypeError, match="loss must be"):
        dpcore.tracing.primitive(loss=3)


# Bad input.


def raise_on_x(x):
    raise KeyError("x")


def raise_on_x_prime(x, rng):
    if x == 1:
        raise ValueError("one")
    return x + rng.laplace()


def loop_on_x_prime(x, rng):
    while x == 1:
        rng.laplace()
    return x + rng.laplace()


def change_input(x, rng):
    x.append(0)
    return len(x) + rng.laplace()


def start_a_thread(x):
    box = []
    thread = threading.Thread(target=lambda: box.append(np.random.laplace()))
    thread.start()
    thread.join()
    return x + box[0]


class Incomparable:
    def __eq__(self, other):
        raise RuntimeError("no")

    __hash__ = None


def test_errors_of_the_function():
    """An error on x passes through; an error on x' only is a finding."""
    with pytest.raises(KeyError, match="x"):
        trace(raise_on_x, 0, 1)
    report = trace(raise_on_x_prime, 0, 1)
    assert report.outcome == "a finding"
    assert "x' raises ValueError: one; x does not" in report.findings[0].text


def test_functions_without_a_loss_say_why():
    """Each bad input has its sentence."""
    table = [
        (lambda x: 3, "no draw of noise is seen"),
        (start_a_thread, "past its module"),
        (lambda x, rng: Incomparable(), "no draw of noise is seen"),
        (lambda x, rng: x + rng.bit_generator.random_raw(), "differ in output"),
    ]
    for function, words in table:
        report = trace(function, 0, 1)
        assert report.outcome == "not traceable"
        assert words in report.reason


def test_a_loop_on_the_other_input_ends():
    """A run on x' stops after ten times the draws of x plus 1,000."""
    report = trace(loop_on_x_prime, 0, 1)
    assert "x' draws more than 1,010 times, x 1 times" in report.findings[0].text


def test_runs_get_copies_of_the_input():
    """A function that changes its input sees the same input in each run."""
    pair = [1], [1, 1]
    assert trace(change_input, *pair).loss == 1.0
    assert pair == ([1], [1, 1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"draws": 0}, "draws must be"),
        ({"delta": 1.0}, "delta must be"),
        ({"claim": -1.0}, "claim must be"),
        ({"rng": -1}, "rng must be"),
    ],
)
def test_bad_arguments(options, words):
    """Errors name the argument."""
    with pytest.raises(ValueError, match=words):
        trace(totals, FIVE, SIX, **options)
    with pytest.raises(TypeError, match="f must be a function"):
        trace(3, FIVE, SIX)


def release_one_by_one(x, rng):
    yield x + rng.laplace()


@pytest.mark.parametrize(("function", "pair", "words"), [
    (lambda: 1.0, (0, 1), "f must be a function"),
    (lambda x, a, b, c: 1.0, (0, 1), "f must be a function"),
    (release_one_by_one, (0, 1), "output of .*release_one_by_one must be an array or a list"),
])  # fmt: skip
def test_functions_that_cannot_be_called_or_read(function, pair, words):
    with pytest.raises(TypeError, match=words):
        dpcore.trace(function, pair)


def test_equal_inputs_and_impossible_results_are_refused():
    with pytest.raises(ValueError, match="pair must be two inputs that differ"):
        dpcore.trace(lambda x, rng: x + rng.laplace(), (1.0, 1.0))
    report = dpcore.trace(lambda x, rng: x + rng.laplace(), (0.0, 1.0), claim=1.0, rng=1)
    for change in (
        {"outcome": "fine"}, {"reason": "a word"}, {"outcome": "a finding"}, {"loss": None},
        {"outcome": "above the claim on this pair"}, {"outcome": "no loss"},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="must be"):
            dpcore.Trace.from_dict(report.to_dict() | change)


def test_patches_end_with_an_error_and_spare_other_threads():
    """The originals are back after any error, and other threads have them all the time."""
    names = [(np.random, "laplace"), (np.random, "default_rng"), (random, "gauss"), (json, "dumps")]
    before = [getattr(*name) for name in names]
    state = random.getstate()
    kinds = []

    def look(x):
        thread = threading.Thread(target=lambda: kinds.append(type(np.random.laplace())))
        thread.start()
        thread.join()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trace(look, 0, 1)
    assert kinds == [float]
    assert [getattr(*name) for name in names] == before
    assert random.getstate() == state


@pytest.mark.parametrize("error", [0.001, -2.0])
def test_a_wrong_move_is_caught_by_the_plain_run(monkeypatch, error):
    """Every move is checked by a run on x' without traced numbers."""
    cheapest_move = analysis.cheapest_move

    def find_other_move(rows, table, order=1):
        move = cheapest_move(rows, table, order)
        return replace(move, shift=move.shift + error)

    def release(x, rng):
        return x + rng.laplace()

    assert dpcore.trace(release, (0.0, 1.0), claim=0.5, rng=1).loss == 1.0
    monkeypatch.setattr(analysis, "cheapest_move", find_other_move)
    report = dpcore.trace(release, (0.0, 1.0), claim=0.5, rng=1)
    assert (report.outcome, report.loss) == ("not traceable", None)
    assert "the plain run on x' with the noise so moved does not give" in report.reason


def draw_signed(x, size, rng):
    signs = rng.choice([-1.0, 1.0], (size, 1))
    return x + signs * rng.exponential(1.0, (size, 1))


def draw_branch(x, rng):
    noise = rng.exponential(1.0)
    return x + noise if rng.random() < 0.5 else x - noise


@pytest.mark.parametrize("function", [draw_signed, dpcore.repeat(draw_branch)])
def test_a_draw_that_is_kept_fixed_is_no_violation(function):
    """Both functions draw Laplace noise, whose claim of 1 is true: with the sign fixed, no output
    of x is one of x'. Without the sign the same loss is above the claim."""
    pair = ([0.0], [1.0]) if function is draw_signed else (0.0, 1.0)
    report = dpcore.trace(function, pair, claim=1.0, rng=1)
    assert report.outcome == "a step may be hidden"
    assert "is kept fixed: audit it" in report.reason

    def draw_one_sided(x, size, rng):
        return x + rng.exponential(1.0, (size, 1))

    control = dpcore.trace(draw_one_sided, ([0.0], [1.0]), claim=1.0, rng=1)
    assert control.outcome == "above the claim on this pair"


@pytest.mark.parametrize("name", ["argmax", "argmin", "max", "min"])
def test_extremes_along_an_axis_are_those_of_rows(name):
    """The loss of rows along an axis is that of one row without an axis."""

    def find_along_axis(x, size, rng):
        noisy = np.asarray(x) + rng.laplace(scale=2.0, size=(size, len(x)))
        return getattr(noisy, name)(axis=1)

    def find_in_row(x, rng):
        return getattr(np.asarray(x) + rng.laplace(scale=2.0, size=len(x)), name)()

    reports = [
        dpcore.trace(function, ([0.0, 0.0, 0.0], [1.0, 0.0, 1.0]), claim=0.5, rng=1)
        for function in (find_along_axis, dpcore.repeat(find_in_row))
    ]
    assert reports[0].loss == pytest.approx(reports[1].loss)
    assert reports[0].loss > 0.0
    assert "compared" in reports[0].covers
