"""Short reprs, cards for notebooks, and names that a reader finds with the tab key."""

from __future__ import annotations

import re
import types
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import numpy as np
import pytest
from shared_extras import needs
from shared_messages import find_missing
from shared_records import reachable

import dpcore
from dpcore import Counts, Laplace, Pair, calibration, divergence, pairs, sensitivity, structure
from dpcore.records import Record
from dpcore.report.card import format_rows_as_html
from dpcore.report.shown import Shown, record_to_html

WORKINGS = (
    "dpcore.sampling.", "dpcore.auditing.", "dpcore.attacks.grains.Tolerance",
    "dpcore.attacks.attack.Choice", "dpcore.attacks.attack.Goal", "dpcore.attacks.words.Rows",
    "dpcore.pytest_plugin.Settings",
    "dpcore.divergence.points.", "dpcore.divergence.estimation.", "dpcore.experiments.running.",
    "dpcore.experiments.base.Column", "dpcore.tables.comparison.", "dpcore.torch.module_calls.",
    "dpcore.training.step.Columns",
)  # fmt: skip
"""Parts of public records that no user is given: modules, and single classes."""

LONGEST = 200


def test_every_dataclass_that_users_meet_is_shown():
    names = {cls: f"{cls.__module__}.{cls.__qualname__}" for cls in reachable()}
    found = {cls for cls, name in names.items() if not name.startswith(WORKINGS)}
    assert {cls.__name__ for cls in found} >= {
        "Audit", "OutputsAudit", "Counts", "Pair", "Estimate", "RealEpsilon", "Sensitivity",
        "Refutation", "Search", "Check", "Inspection", "Inference", "Result", "Laplace", "Band",
        "HeldOut", "Fitted", "Corpus", "MajorityVote", "Above", "Declaration", "CalibratedGaussian",
    }  # fmt: skip
    bare = sorted(cls.__qualname__ for cls in found if not issubclass(cls, Shown))
    assert not bare, "give them the base dpcore.report.shown.Shown, or Record"
    # The repr that a dataclass makes holds every digit of every field; made so, it is wrapped.
    made = sorted(
        cls.__name__
        for cls in found
        if hasattr(cls.__repr__, "__wrapped__") and not hasattr(cls.__repr__, "suggests")
    )
    assert not made, "declare them with @dataclass(..., repr=False)"


def many_rows(rng):
    return rng.normal(size=(60, 2)), rng.normal(0.5, 1.0, (60, 2))


def examples():
    rng = np.random.default_rng(1)
    box = pairs.Box(0, 1, 300)
    audit = dpcore.audit(Laplace(1.0), trials=1000, claim=1.0, rng=1)
    estimate = divergence.renyi(*many_rows(rng), rng=1)
    return [
        audit, audit.pair, audit.event, audit.counts, audit.tradeoff,
        dpcore.audit(lambda x, size, rng: rng.normal(size=size), Pair("a " * 900, "b " * 900),
                     trials=1000, rng=1, attack=dpcore.attacks.Threshold()),
        dpcore.audit_outputs(np.arange(400) % 7, np.arange(400) % 5, rows="independent", rng=1),
        dpcore.audit_outputs([3, 1, 2], [0, -1, 1.5], rows="one_run", rng=1),
        Pair("a " * 900, "b\n" * 900), Pair(np.arange(512.0), np.zeros(512)), Pair([0], [1]),
        estimate, estimate.checks, estimate.held_out, estimate.diagnostics, estimate.beside,
        estimate.epsilon(0.1),
        sensitivity.sensitivity(box, "l1"),
        sensitivity.refute(np.sum, 1.0, "l1", box, trials=8, rng=1),
        structure.inspect(dpcore.DPTextNoise(1.0), [0.0, 0.5], draws=200, rng=1),
        calibration.real_epsilon(Laplace(1.0), box),
        calibration.gaussian_analytic(1.0, 1e-5, 1.0),
        Laplace(2.0), dpcore.attacks.Auto(), dpcore.published.DPTextRepaired(1.0),
        dpcore.plan(1.0, true_epsilon=1.2, mass=0.1),
    ]  # fmt: skip


EXAMPLES = examples()


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_records_are_short_in_one_line_and_a_card_in_a_notebook(record):
    assert (len(repr(record)) < LONGEST, "\n" in repr(record)) == (True, False)
    shown = record._repr_html_()
    whole = ElementTree.fromstring(shown)  # every element is closed
    assert whole.tag == "div"
    assert type(record).__name__ in shown or "verdict" in shown
    asked = ["http", "<script", "@import", "url(", "<link"]
    assert find_missing(shown, *asked) == asked


def test_a_short_repr_is_the_call_and_str_stays_whole():
    for record in (Laplace(2.0), Counts(3, 10, 1, 10)):
        assert eval(repr(record), vars(dpcore)) == record
    assert str(Counts(3, 10, 1, 10)) == "Counts(k=3, n=10, k_prime=1, n_prime=10)"
    texts = Pair("a " * 900, "b")
    assert repr(texts).startswith("Pair(x='a a a")
    assert str(texts) == f"Pair(x={texts.x!r}, x_prime='b')"
    estimate = next(one for one in EXAMPLES if type(one).__name__ == "Estimate")
    assert repr(estimate).startswith("<Estimate by ball: D_1 = ")
    assert len(str(estimate).splitlines()) > 10


@dataclass(frozen=True, repr=False)
class Odd(Record):
    """Fields of every kind."""

    words: object = "<b>&"
    inner: object = Pair("<i>" * 90, "y")
    many: object = (Counts(1, 2, 1, 2), Counts(1, 3, 1, 3))
    numbers: object = None
    long: object = tuple(range(10**4))


def test_fields_are_escaped_opened_and_cut():
    odd = Odd(numbers=np.arange(50.0))
    shown = record_to_html(odd)
    assert find_missing(shown, "<b>", "<i>") == ["<b>", "<i>"]
    assert shown.count("<details>") == 2
    assert "2 of Counts" in shown
    assert len(shown) < 10_000
    assert repr(odd) == (
        "Odd(words='<b>&', inner=Pair(...), many=<tuple of 2>, "
        "numbers=<float64 array of shape (50,)>, long=<tuple of 10,000>)"
    )
    assert "\n" not in repr(Odd(words=np.array(["a\nb"], dtype=object)))


def test_a_style_speaks_of_its_own_cards_only():
    style = ElementTree.fromstring(format_rows_as_html("a", [("b", "c")]))[0].text
    name = re.search(r'class="(dpcore-\w+)"', format_rows_as_html("a", []))[1]
    bare = re.sub(r"@media[^{]*\{(.*?\})\s*\}", r"\1", style, flags=re.DOTALL)
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", bare)
    assert len(rules) > 10
    for rule in rules:
        assert all(f".{name}" in selector for selector in rule.split(",")), rule
    schemes = "prefers-color-scheme: dark", "--jp-layout-color0", "--vscode-editor-background"
    assert not find_missing(style, *schemes)


@pytest.mark.extras
def test_models_have_cards_too():
    needs("torch")
    from dpcore.experiments.dpnr_table.defences import Declustering
    from dpcore.text import DPNR, TfidfSVD

    for model in (DPNR(epsilon=1.0, dim=4), Declustering(dim=4, attribute="a")):
        assert not find_missing(model._repr_html_(), type(model).__name__, "claim")
        assert len(repr(model)) < LONGEST
    assert "not fitted" in TfidfSVD(4)._repr_html_()


PACKAGES = [name for name in dpcore.__all__ if isinstance(getattr(dpcore, name), types.ModuleType)]


def test_the_tab_key_shows_what_is_public():
    assert dir(dpcore) == sorted([*dpcore.__all__, "torch"])
    for name in PACKAGES:
        package = getattr(dpcore, name)
        shown = dir(package)
        assert set(shown) >= set(package.__all__)
        assert not [word for word in shown if word.startswith("_")], name
        assert not {"annotations", "Any", "TYPE_CHECKING", "np"} & set(shown), name
    assert "DPNR" in dir(dpcore.text)
