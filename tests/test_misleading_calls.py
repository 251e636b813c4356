"""Calls that people typed who knew other packages: each error names the argument and the fix."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pandas
import pytest
from scipy import stats

import dpcore
from dpcore import divergence, pairs, structure
from dpcore.bounds import clopper_pearson
from dpcore.cli import main


def release(x, size, rng):
    return np.asarray(x) + rng.laplace(size=(size, 1))


P = ([0.0], [1.0])
TEXTS = ("he has cancer", "he has the flu")


def measure_mean(array, epsilon=1.0, bounds=None):
    """Stand for a function of another package, whose second argument is a setting."""


class Encoder:
    """An encoder of texts, which is no mechanism."""

    def encode(self, texts):
        return np.array([[float(len(text))] for text in texts])


DRAWN = np.zeros(10)
LAW = np.full(200, 1 / 200)

CALLS = [
    (lambda: dpcore.audit(lambda x, size: x, P, claim=1), "mechanism", "third argument rng"),
    (lambda: dpcore.repeat(lambda x, size: x), "fn", "third argument rng"),
    (lambda: dpcore.audit(lambda x, rng, size: x, P, claim=1), "mechanism", "in this order"),
    (lambda: dpcore.audit(DRAWN, DRAWN, claim=1), "mechanism", "dpcore.audit_outputs"),
    (lambda: dpcore.audit(DRAWN, claim=1), "mechanism", "dpcore.audit_outputs"),
    (lambda: dpcore.audit(Encoder(), TEXTS), "mechanism", "torch.mechanism(encoder, noise), pair"),
    (lambda: dpcore.audit(Encoder().encode, TEXTS, claim=1), "mechanism", "torch.mechanism("),
    (lambda: dpcore.audit({"a": [1.0]}, TEXTS, claim=1), "mechanism", "dpcore.torch.mechanism("),
    (lambda: dpcore.audit("laplace", P, claim=1), "mechanism", "dpcore.Laplace(1.0)"),
    (lambda: dpcore.audit(release, P, claim=(1, 1e-5)), "claim", "claim=1, delta=1e-05"),
    (lambda: dpcore.plan((1, 1e-5), factor=0.9), "claim", "claim=1, delta=1e-05"),
    (lambda: dpcore.audit_outputs([0.0], [1.0], rows="independent", claim=(1, 1e-5)), "claim",
     "claim=1, delta=1e-05"),
    (lambda: dpcore.audit(release, P, claim=1, neighbour="l3"), "neighbour", "pairs.L1(1.0)"),
    (lambda: dpcore.audit(release, P, claim=1, neighbour=1.0), "neighbour", "pairs.L1(1.0)"),
    (lambda: dpcore.Laplace(epsilon=1, sensitivity=1), "epsilon", "scale = sensitivity / epsilon"),
    (lambda: dpcore.Gaussian(epsilon=1, sensitivity=1), "epsilon", "calibration.gaussian_analytic"),
    (lambda: dpcore.Gaussian(mean=0, sigma=1), "mean", "the input is what it is added to"),
    (lambda: dpcore.Laplace(loc=0, scale=1), "loc", "the input is what it is added to"),
    (lambda: dpcore.Laplace(1.0).sample(10), "sample", "x, size)"),
    (lambda: dpcore.Laplace(1.0).rvs(10), "rvs", "x, size)"),
    (lambda: dpcore.audit(release, P, claim=1, sensitivity=1), "sensitivity", "neighbour="),
    (lambda: dpcore.audit(release, P, claim=1, n_samples=1000), "n_samples", "'trials'"),
    (lambda: dpcore.audit(release, X=[0.0], claim=1), "X", "pair = (x, x_prime)"),
    (lambda: dpcore.audit(release, P, claim=1, device="cuda"), "device", "dpcore.torch.mechanism"),
    (lambda: dpcore.audit(dpcore.published.ADePT(epsilon=1.0), dim=128), "dim",
     "pair=mechanism.default_pair(128)"),
    (lambda: divergence.kl(LAW, LAW), "y0", "closed_forms.discrete_renyi([1.0], p, q)"),
    (lambda: divergence.kl([0.5, 0.5], [0.1, 0.9]), "y0", "closed_forms.discrete_renyi"),
    (lambda: divergence.kl(stats.norm(), stats.norm(1)), "y0", "closed_forms.gaussian_renyi"),
    (lambda: structure.inspect(release, P), "x", "one input, such as [0.0]"),
    (lambda: clopper_pearson(10, 100, 5, 100), "clopper_pearson", "dpcore.Counts(k, n, k_prime"),
    (lambda: dpcore.audit_outputs(np.arange(10.0), label=[1, -1] * 5, rows="one_run"), "label_x",
     "which of"),
    (lambda: dpcore.audit_outputs(DRAWN + np.arange(10), [1, -1] * 5, rows="one_run"),
     "outputs_prime", "label= is for labels"),
    (lambda: dpcore.adit, "adit", "did you mean 'audit'?"),
    (lambda: dpcore.Laplase, "Laplase", "did you mean 'Laplace'?"),
    (lambda: dpcore.Pair((0, 1)), "x_prime", "Pair(x, x_prime)"),
    (lambda: dpcore.Audit(release), "pair", "dpcore.audit(mechanism, pair) makes one"),
    (lambda: dpcore.Laplace(0, 1), "scale", "the input is what it is added to"),
    (lambda: dpcore.Gaussian(0, 1), "argument", "the input is what it is added to"),
    (lambda: dpcore.audit(release, P, confidence=95), "confidence", "did you mean 0.95?"),
    (lambda: dpcore.audit(release, P, confidence="95%"), "confidence", "did you mean 0.95?"),
    (lambda: dpcore.plan(1.0, factor=0.9, power=95), "power", "did you mean 0.95?"),
    (lambda: dpcore.audit(release, P, trials="1M"), "trials", "did you mean '1e6'?"),
    (lambda: dpcore.audit(release, P, trials="10k"), "trials", "did you mean '10e3'?"),
    (lambda: dpcore.audit(release, P, pilot=10**400), "pilot", "an integer from 2 to"),
    (lambda: dpcore.audit(measure_mean, P, claim=1), "mechanism", "dpcore.repeat(lambda x: measu"),
    (lambda: dpcore.audit_outputs("a.npy", "b.npy", rows="independent"), "outputs", "can be read"),
    (lambda: dpcore.audit_outputs({"tp": 9, "fn": 1, "fp": 2}, rows="independent"), "outputs",
     "a mapping with tp, fn, fp, tn"),
    (lambda: dpcore.audit_outputs(tpr=0.4, fpr=0.1), "tpr", "counts are one argument, {'tp': 90"),
    (lambda: dpcore.Audit.load("no.json"), "path", "a file that can be read"),
    (lambda: pairs.L1().holds(P, domain=1), "pair", "a Pair"),
    (lambda: dpcore.claims.TradeOff(origin=len), "function", "or epsilons and deltas instead"),
    (lambda: dpcore.exact.loss(1.0), "law", "a VoteLaw"),
    (lambda: dpcore.attacks.Auto(members=3), "members", "a tuple of"),
    (lambda: dpcore.adapters.ScipyNoise(np.inf), "distribution", "a distribution of scipy.stats"),
    (lambda: str(divergence.Line(None, 1, 2)), "Line", "missing"),
]  # fmt: skip
"""The call, the word that its error names, and what to type instead."""


@pytest.mark.parametrize(("call", "name", "fix"), CALLS)
def test_the_error_names_the_argument_and_the_fix(call, name, fix):
    with pytest.raises((TypeError, ValueError, AttributeError, OSError)) as caught:
        call()
    assert name in str(caught.value)
    assert fix in str(caught.value)


RESULTS = {
    "audit": dpcore.audit(dpcore.Laplace(1.0), claim=1.0, trials=100, rng=1),
    "outputs": dpcore.audit_outputs(DRAWN, DRAWN + 1.0, rows="independent", claim=1.0),
    "table": dpcore.audit_table([[0.5, 0.5], [0.4, 0.6]], claim=1.0),
    "plan": dpcore.plan(1.0, factor=0.5),
    "noise": dpcore.Laplace(1.0),
}
ATTRIBUTES = [
    ("audit outputs table", "passed ok is_private failed violation", "refuted (True, False"),
    ("audit outputs", "eps epsilon lower_bound", "epsilon_lower or epsilon_hat"),
    ("table plan", "eps", "claim"),
    ("audit outputs", "epsilon_upper upper", "no audit bounds epsilon from above"),
    ("audit outputs", "pvalue ci", "a bound at confidence"),
    ("audit outputs table plan", "show summary savefig to_csv", "print(report)"),
    ("audit plan", "n sample_size", "trials"),
    (
        "noise",
        "sample rvs release",
        "dpcore.sample(Laplace(scale=1.0, variant='two_branch'), x, size)",
    ),
]
"""Kinds of results, attributes of other packages, and what the error proposes."""


@pytest.mark.parametrize(("kinds", "names", "advice"), ATTRIBUTES)
def test_an_attribute_of_another_package_is_answered(kinds, names, advice):
    for kind in kinds.split():
        for name in names.split():
            with pytest.raises(AttributeError, match=f"no attribute '{name}': use ") as caught:
                getattr(RESULTS[kind], name)
            assert advice in str(caught.value)
    assert not hasattr(RESULTS["audit"], "other")


def test_a_confusion_matrix_is_taken_as_counts():
    matrix = {"tp": 90, "fn": 10, "fp": 20, "tn": 80}
    for keys in (str.lower, str.upper):
        counts = {keys(name): value for name, value in matrix.items()}
        report = dpcore.audit_outputs(counts, rows="independent", claim=1.0)
        assert (report.counts, report.direction) == (dpcore.Counts(10, 100, 80, 100), "x_prime")
        assert report.epsilon_lower == clopper_pearson(dpcore.Counts(80, 100, 10, 100))
        assert "the threshold of the guesses was fixed before" in str(report)
        assert type(report).from_json(report.to_json()) == report
    single = dpcore.audit_outputs(matrix, rows="independent", claim=1.0, bound="exact")
    assert single.counts == dpcore.Counts(90, 100, 20, 100)
    guesses = dpcore.audit_outputs(matrix, rows="one_run", claim=1.0)
    assert (guesses.evidence.guesses, guesses.evidence.correct) == (200, 170)
    for wrong in ({"tp": -1}, {"fn": 1.5}, {"tp": 0, "fn": 0}):
        with pytest.raises((TypeError, ValueError), match=r"^(tp|fn|tp \+ fn) must be an integer"):
            dpcore.audit_outputs(matrix | wrong, rows="independent")
    unused = {"attack": "auto", "column": "a", "label_x": 1, "groups_prime": [1], "header": "no"}
    for name, value in unused.items():
        text = f"^{name} must be None where outputs are a confusion matrix, got"
        with pytest.raises(ValueError, match=text):
            dpcore.audit_outputs(matrix, rows="independent", **{name: value})


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--confidence 95%", "--confidence must be a number, got '95%' (did you mean 0.95?)"),
        ("--confidence 95", "(did you mean 0.95?)"),
        ("--trials 1M", "--trials must be a whole number at least 1 and below 2**63 (did you mean"),
        ("--seed one", "--seed must be an integer, got 'one'"),
    ],
)
def test_numbers_of_the_command_line_are_read_as_they_are_written(words, text, capsys):
    assert main(["audit", "half-noise", "--epsilon", "1", *words.split()]) == 2
    assert text in capsys.readouterr().err


def test_calls_that_are_right_pass():
    """The control: none of the checks stops the call that was meant."""
    assert dpcore.audit(release, P, claim=1, delta=1e-5, trials=1000, rng=1).claim == 1.0
    rng = np.random.default_rng(1)
    assert divergence.kl(rng.random(50), rng.random(50), checks=False, error=None, rng=1).k == 20
    assert structure.inspect(release, [0.0], rng=1).passed
    assert clopper_pearson(dpcore.Counts(40, 100, 5, 100)) == pytest.approx(0.98878, abs=1e-5)


# Calls 23 to 26: what a function returns is read as it is.


def release_flags(x, rng):
    return tuple([1] * int(1 + x[0] + rng.integers(3)))


def release_dict(x, rng):
    return {"a": 43 + int(np.rint(x[0] + rng.laplace()))}


def release_groups(x, rng):
    frame = pandas.DataFrame({"g": range(1 + int(x[0])), "v": 1})
    return frame.groupby("g").count() + int(np.rint(rng.laplace()))


@pytest.mark.parametrize(
    ("mechanism", "refuted"),
    [
        (dpcore.repeat(release_flags), True),
        (dpcore.repeat(release_dict), False),
        (dpcore.repeat(release_groups), True),
    ],
)
def test_answers_of_any_kind_are_read(mechanism, refuted):
    found = dpcore.audit(mechanism, P, claim=1.5, trials=1000, rng=1)
    assert found.refuted is refuted
    # The control: a claim that is far above the loss of a private mechanism finds nothing.
    assert refuted or found.epsilon_lower > 0.3


def test_exponential_is_not_the_exponential_mechanism():
    assert "not the exponential mechanism" in dpcore.Exponential.__doc__.splitlines()[0]
    found = dpcore.audit(dpcore.Exponential(1.0), P, claim=1.0, trials=1000, rng=1)
    assert "not the exponential mechanism" in str(found)


# Calls 27 to 32: files.

WORDS = np.array(["never", "monthly", "weekly", "daily"])


@pytest.fixture
def answers(tmp_path):
    """Two files of answers for each format, and one file of both with their labels."""
    rng = np.random.default_rng(3)
    sides = [WORDS[rng.integers(0, 4, 400)] for _ in range(2)]
    for name, words in zip("ab", sides, strict=True):
        rows = [f"{place},{word}" for place, word in enumerate(words)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["id,response", *rows]))
        (tmp_path / f"{name}.txt").write_text("\n".join(words))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(w) for w in words))
    rows = [f"never,t{p},{w}\ndaily,t{p},{v}" for p, (w, v) in enumerate(zip(*sides, strict=True))]
    (tmp_path / "both.csv").write_text("\n".join(["truth,ts,response", *rows]))
    return tmp_path


@pytest.mark.parametrize(
    ("files", "options", "words"),
    [
        (("a.csv", "b.csv"), {}, ("column", "'response'")),
        (("a.csv", "b.csv"), {"column": "id"}, ("'id'", "numbers the rows", "exclude=")),
        (("both.csv",), {"column": "response", "label": "truth"}, ("label_x", "never", "daily")),
    ],
)
def test_files_that_say_too_little_are_refused(answers, files, options, words):
    with pytest.raises(ValueError, match=r"must be given|numbers the rows") as caught:
        dpcore.audit_outputs(*[answers / file for file in files], rows="independent", **options)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (("a.csv", "b.csv"), {"column": "response"}),
        (("both.csv",), {"column": "response", "label": "truth", "label_x": "never"}),
        (("a.txt", "b.txt"), {}),
        (("a.jsonl", "b.jsonl"), {}),
    ],
)
def test_files_of_words_are_read(answers, files, options):
    paths = [answers / file for file in files]
    found = dpcore.audit_outputs(*paths, rows="independent", claim=1.0, rng=1, **options)
    assert found.refuted is False
    assert found.counts.n == 200


class Slow:
    """A mechanism that declares how many trials `dp_audit` counts."""

    default_trials = 300

    def __call__(self, x, size, rng):
        return release(x, size, rng)


def test_a_mechanism_declares_its_default_trials(dp_audit, request):
    assert dp_audit(Slow(), P, claim=1.0).counts.n == 300
    assert dp_audit(Slow(), P, claim=1.0, trials=400).counts.n == 400
    lines = [value for key, value in request.node.user_properties if key == "dp_audit"]
    assert lines[0].endswith(", 300 trials (default for Slow)")
    assert "default" not in lines[1]


def test_advice_leaves_copies_and_missing_names_alone():
    report = dpcore.audit(release, P, claim=1.0, trials=1000, rng=1)
    for one in (report, dpcore.Laplace(1.0)):
        if one is not report:  # a local function cannot be pickled by every test runner
            assert pickle.loads(pickle.dumps(one)) == one
        assert copy.copy(one) == one
        assert copy.deepcopy(one) == one
        assert not hasattr(one, "no_such_name")
        with pytest.raises(AttributeError, match=f"'{type(one).__name__}' object has no"):
            _ = one.no_such_name


TABLES = [
    lambda x: pandas.DataFrame({"a": [1, 2]}, index=[5 + x, 6 + x]),
    lambda x: pandas.DataFrame({"a": pandas.Categorical(["u"], categories=["u", f"v{x}"])}),
    lambda x: pandas.DataFrame({f"a{x}": [1]}),
    lambda x: {"inner": pandas.DataFrame({f"a{x}": [1]})},
    lambda x: np.array([(1,)], dtype=[(f"a{x}", int)]),
    lambda x: {"a": np.zeros((2, 3) if x else (3, 2))},
    lambda x: pandas.Series([1, 2], index=[5 + x, 6 + x]),
]
"""Answers that say by a name or a shape alone which input they are from."""


@pytest.mark.parametrize("make", TABLES)
def test_names_and_shapes_of_an_answer_count(make):
    own, same = dpcore.repeat(lambda x: make(int(x[0]))), dpcore.repeat(lambda x: make(1))
    assert dpcore.audit(own, P, claim=1, trials=200, rng=1).refuted
    assert dpcore.audit(same, P, claim=1, trials=200, rng=1).epsilon_lower == 0.0
