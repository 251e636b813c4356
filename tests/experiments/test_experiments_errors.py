"""What the experiments refuse."""

from __future__ import annotations

import dataclasses
import inspect
import math

import pytest
from shared_experiments import get_possible, mark_needs

from dpcore.experiments import NAMES, get

INF = math.inf


REFUSED = [
    ("published-systems", ValueError, "an integer at least 2", {"dims": (1,)}),
    ("published-systems", ValueError, "", {"epsilon": 0}),
    ("habernal2022-figure1", ValueError, "", {"epsilons": (INF,), "mechanisms": ("ADEPT",)}),
    ("adept-linkage", ValueError, "one of", {"variants": ("l1",)}),
    ("adept-rewrite", ValueError, "one of", {"variants": ("l2",)}),
    ("adept-rewrite", ValueError, "", {"claimed": (0.0,), "examples": -1}),
    ("divergence-accuracy", ValueError, "an integer at least 2", {"repetitions": 1}),
    ("divergence-accuracy", ValueError, "an integer at least 100", {"rows": 99}),
    ("divergence-accuracy", ValueError, "", {"cases": ("n1",), "certified": -1}),
    ("dp-sniper-table", ValueError, "an integer at least 1, got 0", {"repeats": 0}),
    ("dp-sniper-table", ValueError, "one of 'Laplace',", {"mechanisms": ("SVT7",)}),
    ("dpnr-robust-adaptive", ValueError, "", {"dims": (1,), "epsilons": (0.0,), "mus": (1.0,)}),
    ("dpnr-robust-adaptive", ValueError, "one of", {"lines": ("adaptive",)}),
    ("dpnr-table", ValueError, "", {"levels": (0.0,), "texts": 10, "dim": 1}),
    ("habernal2021-figure1", ValueError, "an integer from 1 to 4096, got 0", {"dims": (0,)}),
    ("habernal2021-figure1", ValueError, "an integer from 1 to 4096", {"dims": (4097,)}),
    ("habernal2021-figure1", ValueError, "", {"radius": 0, "epsilon": 0}),
    ("noise-layers", ValueError, "one of", {"layers": ("Laplace",)}),
    ("noise-layers", ValueError, "", {"epsilon": math.inf}),
    ("renyi-of-mechanisms", ValueError, "an integer at least 100, got 99", {"trials": 99}),
    ("renyi-of-mechanisms", ValueError, "", {"delta": 0.31}),
    ("renyi-of-mechanisms", ValueError, "a finite number above 0 and at most 0.3", {"delta": 0.0}),
    ("renyi-vs-alpha", ValueError, "an integer at least 100", {"trials": 99}),
    ("sensitivity-table", ValueError, "an integer from 2 to 1024, got 1", {"dim": 1}),
    ("word2vec-leakage", ValueError, "an integer at least 1000", {"trials": 999}),
    ("word2vec-leakage", ValueError, "", {"anchors": (-1,), "epsilons": (0.0,)}),
    ("floating-point", ValueError, "one of", {"systems": ("numpy",)}),
    ("encoder-frontier", ValueError, "an integer at least 100", {"trials": 99}),
    ("word-dp-attack", ValueError, "an integer at least 100", {"trials": 20}),
    ("dptext-encoder", ValueError, "one of 'zero'", {"noises": ("keep",)}),
    ("dptext-encoder", ValueError, "an integer at least 300", {"texts": 10}),
    ("dptext-encoder", ValueError, "", {"claims": (0.0,), "epochs": 0}),
    ("searched-pairs", ValueError, "one of", {"bound": "exakt"}),
]
"""Experiment, the error, a word of the remedy, and fields of its `Config`, each refused alone."""


@pytest.mark.parametrize(("name", "error", "remedy", "fields"), REFUSED)
def test_bad_configurations(name, error, remedy, fields):
    for field, value in fields.items():
        with pytest.raises(error, match=f"^{field} must be {remedy}"):
            get(name).Config(**{field: value})


def test_settings_that_do_not_fit_each_other():
    with pytest.raises(ValueError, match=r"^quick must be left out"):
        get("adept-rewrite").Config(full=True, quick=True)
    with pytest.raises(ValueError, match=r"^starts must be at most the cap, 5, got"):
        get("dptext-encoder").Config(cap=5.0)


COMMON = [
    ("trials", 0, ValueError), ("trials", "many", ValueError), ("trials", True, TypeError),
    ("seed", -1, ValueError), ("seed", 1.5, TypeError), ("seeds", 0, ValueError),
    ("data", 3, TypeError), ("full", "yes", TypeError), ("quick", 1, TypeError),
    ("device", 3, TypeError), ("confidence", 1.0, ValueError),
]  # fmt: skip
"""A field of many configurations, a wrong value, and the error."""


@pytest.mark.parametrize("name", NAMES)
def test_fields_of_many_configurations_are_checked(name):
    config = get(name).Config
    for field, value, error in COMMON:
        if field in inspect.signature(config).parameters:
            with pytest.raises(error, match=f"^{field} must be "):
                config(**{field: value})


@pytest.mark.parametrize("name", NAMES)
def test_lists_of_a_configuration_are_checked(name):
    config = get(name).Config
    for field in dataclasses.fields(config):
        value = getattr(config(), field.name)
        if isinstance(value, tuple):
            for wrong in ((), value[:1] * 2):
                with pytest.raises(ValueError, match=f"^{field.name} must be not empty and with"):
                    config(**{field.name: wrong})
            for wrong in ("SVT1", {2}, 3):
                with pytest.raises(TypeError, match=f"^{field.name} must be a list or tuple, got"):
                    config(**{field.name: wrong})


@pytest.mark.parametrize("name", NAMES)
def test_a_run_takes_its_own_configuration_only(name):
    for config in (None, 3, get(next(one for one in NAMES if one != name)).Config()):
        with pytest.raises(TypeError, match=r"^config must be a Config of dpcore\.experiments\."):
            get(name).run(config)


@pytest.mark.parametrize("name", [mark_needs(name) for name in NAMES])
def test_a_device_and_data_that_are_not_there(name, tmp_path):
    taken = inspect.signature(get(name).Config).parameters
    for field, value, error, said in (
        ("device", "nowhere", ValueError, "^device must be one of this machine"),
        ("data", tmp_path, FileNotFoundError, "README of the data|records or environments"),
    ):
        if field in taken:
            module = get_possible(name)
            with pytest.raises(error, match=said):
                module.run(module.Config(**{field: value}))
