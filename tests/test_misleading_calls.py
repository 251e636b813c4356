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


def release(x, size, rng):
    return np.asarray(x) + rng.laplace(size=(size, 1))


P = ([0.0], [1.0])
TEXTS = ("he has cancer", "he has the flu")


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
]  # fmt: skip
"""The call, the word that its error names, and what to type instead."""


@pytest.mark.parametrize(("call", "name", "fix"), CALLS)
def test_the_error_names_the_argument_and_the_fix(call, name, fix):
    with pytest.raises((TypeError, ValueError, AttributeError)) as caught:
        call()
    assert name in str(caught.value)
    assert fix in str(caught.value)


def test_an_audit_says_what_its_figures_are_called():
    report = dpcore.audit(release, P, claim=1.0, trials=1000, rng=1, neighbour=pairs.L1(1.0))
    with pytest.raises(AttributeError, match=r"no attribute 'summary': print\(report\)"):
        report.summary()
    with pytest.raises(AttributeError, match="no attribute 'epsilon': epsilon_lower"):
        _ = report.epsilon
    assert not hasattr(report, "other")


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
        (("a.csv", "b.csv"), {"column": "id"}, ("'id'", "numbers the rows", "column=")),
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
