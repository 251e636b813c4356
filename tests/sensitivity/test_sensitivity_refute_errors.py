"""What the search says about functions and arguments that it cannot work with; torch modules."""

from __future__ import annotations

import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import check_messages

from dpcore.pairs import L1, Box, Linf, Records
from dpcore.sensitivity import MinMax
from dpcore.sensitivity.refutation import refute

BOX = Box(-1, 1, 3)


def identity(x):
    return x


def masked(x):
    return np.ma.masked_array(x, [False, True, False])


class Odd:
    """Everything that a domain has, but a number of entries that is none."""

    dim = "3"

    def draw(self, rng):
        return np.zeros(3)

    def contains(self, x):
        return True


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rows", [False, True])
def test_what_is_not_finite_names_f_and_the_input(value, rows):
    def spoiled(x):
        return np.where(x > 0.5, value, x)

    with pytest.raises(ValueError, match=r"spoiled\) on x = array.* must be finite, got array"):
        refute(spoiled, 1.0, "l1", BOX, rng=1, rows=rows)


def test_a_shape_that_changes_names_both():
    def ragged(x):
        return np.append(x, x[x > 0])

    with pytest.raises(ValueError, match=r"ragged\) must be of shape \(\d,\), as on the first"):
        refute(ragged, 1.0, "l1", Box(-1, 2, 3), rng=3)


def test_rows_on_which_f_is_not_defined_are_left_out():
    found = refute(MinMax(), 1.0, "l1", BOX, rng=1, rows=True, trials=2000, catch=ValueError)
    assert found.attained == 3.0


def never(x):
    raise ValueError("not today")


def test_noise_is_no_function():
    rng = np.random.default_rng(1)
    with pytest.raises(ValueError, match="must be a function of its input alone, without noise"):
        refute(lambda x: x + rng.laplace(size=3), 1.0, "l1", BOX, rng=1, trials=200)


def test_an_f_that_writes_into_its_input():
    def doubling(x):
        x *= 2
        return x

    assert refute(doubling, 1.0, "linf", BOX, rng=1, trials=500).attained == 4.0


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"f": 3}, TypeError, "f must be a callable"),
        ({"f": lambda x: "a"}, TypeError, "must be a number or an array of them, got 'a'"),
        ({"f": lambda x: x[:0]}, TypeError, "must be a number or an array of them"),
        ({"f": lambda x: [[1], [1, 2]]}, TypeError, "must be a number or an array of them"),
        ({"claimed": -1}, ValueError, "claimed must be a finite number at least 0, got -1"),
        ({"norm": "l3"}, ValueError, "norm must be one of 'l1', 'l2', 'linf', got 'l3'"),
        ({"domain": [0, 1]}, TypeError, "domain must be a domain with dim, draw and contains"),
        ({"rows": 1}, TypeError, "rows must be True or False, got 1"),
        ({"rows": True, "domain": Records((1, 2), 3)}, ValueError, "rows must be False for"),
        ({"trials": 7}, ValueError, "trials must be a whole number at least 8, got 7"),
        ({"rng": -1}, ValueError, "rng must be an integer from 0"),
        ({"rng": "a"}, TypeError, "rng must be None, an int"),
        ({"methods": "ascent"}, TypeError, "methods must be a list of names, got 'ascent'"),
        ({"methods": ()}, ValueError, "methods must be at least one name"),
        ({"methods": ("luck",)}, ValueError, "method must be one of 'witness', .* got 'luck'"),
        ({"methods": ("torch",)}, TypeError, "f must be a torch module for the method 'torch'"),
        ({"stop_when_refuted": "no"}, TypeError, "stop_when_refuted must be True or False"),
        ({"domain": Box}, TypeError, "domain must be a domain with dim, draw and contains"),
        ({"domain": Odd()}, TypeError, "dim must be an integer at least 1, got '3'"),
        ({"neighbour": L1}, TypeError, "neighbour must be a neighbour relation with holds"),
        ({"f": masked}, TypeError, r"output of f \(\w+.masked\) must be a number or an array"),
        ({"catch": 3}, TypeError, "catch must be an exception class or a tuple of them, got 3"),
        ({"catch": KeyboardInterrupt}, TypeError, "catch must be an exception class"),
    ],
)
def test_bad_arguments(change, error, text):
    arguments = {"f": identity, "claimed": 1.0, "norm": "l1", "domain": BOX, "rng": 1} | change
    positional = [arguments.pop(name) for name in ("f", "claimed", "norm", "domain")]
    with pytest.raises(error, match=text):
        refute(*positional, **arguments)


def test_a_domain_without_clip_or_relation_is_searched_by_its_draws():
    found = refute(lambda x: len(set(x)), 1.0, "l1", Records(tuple("abc"), 3), trials=200, rng=1)
    assert (found.refuted, found.attained) == (True, 2.0)


@pytest.mark.parametrize("neighbour", [None, Linf(8e307)], ids=repr)
def test_a_box_almost_as_wide_as_float64_is_searched_without_overflow(neighbour):
    box = Box(-8e307, 8e307, 2)
    found = refute(identity, 1.0, "linf", box, neighbour=neighbour, trials=1000, rng=1)
    assert found.attained == pytest.approx(1.6e308 if neighbour is None else 8e307, rel=1e-9)


def test_neither_torch_nor_scipy_nor_hypothesis_is_imported_with_the_package():
    code = (
        "import sys, dpcore.sensitivity.refutation;"
        "sys.exit(any(m in sys.modules for m in ('torch', 'scipy', 'hypothesis')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("rows", [False, True])
def test_gradient_ascent_through_a_module(rows):
    torch = needs("torch")

    class Encoder(torch.nn.Module):
        def forward(self, x):
            return x * (10.0 / torch.linalg.vector_norm(x, dim=-1, keepdim=True)).clamp(max=1.0)

    options = {"rng": 1, "rows": rows, "methods": ("random", "torch")}
    found = refute(Encoder(), 20.0, "l1", Box(-10, 10, 64), **options)
    assert (found.attained, found.found_by) == (pytest.approx(160.0, rel=1e-6), "gradient ascent")
    assert found.f.endswith("Encoder")


def test_a_float32_module_and_one_without_gradients():
    torch = needs("torch")
    torch.manual_seed(1)
    net = torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.Tanh())
    search = partial(refute, net, 0.1, "l2", Box(-1, 1, 6), rng=1, trials=4000)
    alone = search(methods=("random", "torch")).attained
    assert alone == pytest.approx(search().attained, rel=1e-3)
    assert alone > search(methods=("random",)).attained

    class Counting(torch.nn.Module):
        def forward(self, x):
            return (x > 0).sum()

    assert refute(Counting(), 1.0, "l1", Box(-1, 1, 5), rng=1, trials=2000).attained == 5.0


def test_a_module_in_train_mode_is_no_function():
    torch = needs("torch")
    torch.manual_seed(1)
    net = torch.nn.Dropout(0.5).train()
    with pytest.raises(ValueError, match="without noise or memory"):
        refute(net, 1.0, "l1", Box(-1, 1, 8), rng=1, trials=400)


VALUE_ERRORS = [
    (lambda: refute(lambda x: x[:2].sum(axis=0), 1.0, "l1", BOX, rng=1, rows=True), "",
     ") for inputs of shape"),
    (lambda: refute(lambda x: np.ones((4, 4)) @ x, 1.0, "l1", BOX, rng=1), "", "matmul"),
    (lambda: refute(MinMax(), 1.0, "l1", BOX, rng=1), "x", "a row of at least two different"),
    (lambda: refute(never, 1.0, "l1", BOX, rng=1, catch=ValueError), "domain", "large enough"),
    (lambda: refute(never, 1.0, "l1", BOX, rng=1, catch=KeyError), "", "not today"),
]  # fmt: skip


def test_messages():
    check_messages(ValueError, VALUE_ERRORS)
