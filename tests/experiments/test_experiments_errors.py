"""What the experiments refuse."""

from __future__ import annotations

import dataclasses
import inspect
import math

import pytest
from shared_experiments import get_possible

from dpcore.experiments import NAMES, get, reproduce

INF = math.inf


REFUSED = [
    ("published-systems", {"trials": True}, TypeError, ""),
    ("published-systems", {"dims": (1,)}, ValueError, "an integer at least 2"),
    ("published-systems", {"epsilon": 0}, ValueError, ""),
    ("habernal2022-figure1", {"epsilons": (INF,)}, ValueError, ""),
    ("habernal2022-figure1", {"mechanisms": ("ADEPT",)}, ValueError, ""),
    ("habernal2022-figure2", {"trials": "many"}, ValueError, ""),
    ("habernal2022-figure2", {"seed": 1.5}, TypeError, ""),
    ("adept-rewrite", {"variants": ("l2",)}, ValueError, "one of"),
    ("adept-rewrite", {"claimed": (0.0,)}, ValueError, ""),
    ("adept-rewrite", {"claimed": (1.0, float("inf"))}, ValueError, ""),
    ("adept-rewrite", {"examples": -1}, ValueError, ""),
    ("adept-rewrite", {"full": True, "quick": True}, ValueError, "left out"),
    ("divergence-accuracy", {"repetitions": 1}, ValueError, "an integer at least 2"),
    ("divergence-accuracy", {"rows": 99}, ValueError, "an integer at least 100"),
    ("divergence-accuracy", {"rows": 1e3}, TypeError, ""),
    ("divergence-accuracy", {"cases": ("n1",)}, ValueError, ""),
    ("divergence-accuracy", {"certified": -1}, ValueError, ""),
    ("dp-sniper-table", {"repeats": 0}, ValueError, "an integer at least 1, got 0"),
    ("dp-sniper-table", {"mechanisms": ("SVT7",)}, ValueError, "one of 'Laplace',"),
    ("dp-sniper-table", {"mechanisms": (1,)}, TypeError, "one of 'Laplace',"),
    ("dpnr-robust-adaptive", {"dims": (1,)}, ValueError, ""),
    ("dpnr-robust-adaptive", {"epsilons": (0.0,)}, ValueError, ""),
    ("dpnr-robust-adaptive", {"mus": (1.0,)}, ValueError, ""),
    ("dpnr-robust-adaptive", {"lines": ("adaptive",)}, ValueError, "one of"),
    ("dpnr-table", {"levels": (0.0,)}, ValueError, ""),
    ("dpnr-table", {"texts": 10}, ValueError, ""),
    ("dpnr-table", {"dim": 1}, ValueError, ""),
    ("habernal2021-figure1", {"dims": (0,)}, ValueError, "an integer from 1 to 4096, got 0"),
    ("habernal2021-figure1", {"dims": (4097,)}, ValueError, "an integer from 1 to 4096"),
    ("habernal2021-figure1", {"dims": (2.0,)}, TypeError, "an integer"),
    ("habernal2021-figure1", {"radius": 0}, ValueError, ""),
    ("habernal2021-figure1", {"radius": -10.0}, ValueError, ""),
    ("habernal2021-figure1", {"radius": math.nan}, ValueError, ""),
    ("habernal2021-figure1", {"epsilon": 0}, ValueError, ""),
    ("habernal2021-figure1", {"seed": "1"}, TypeError, ""),
    ("noise-layers", {"layers": ("Laplace",)}, ValueError, "one of"),
    ("noise-layers", {"epsilon": math.inf}, ValueError, ""),
    ("renyi-of-mechanisms", {"trials": 99}, ValueError, "an integer at least 100, got 99"),
    ("renyi-of-mechanisms", {"trials": "x"}, ValueError, ""),
    ("renyi-of-mechanisms", {"delta": 0.0}, ValueError, "a finite number above 0 and at most 0.3"),
    ("renyi-of-mechanisms", {"delta": 0.31}, ValueError, ""),
    ("renyi-of-mechanisms", {"delta": "0.1"}, TypeError, ""),
    ("renyi-vs-alpha", {"trials": 99}, ValueError, "an integer at least 100"),
    ("sensitivity-table", {"dim": 1}, ValueError, "an integer from 2 to 1024, got 1"),
    ("sensitivity-table", {"dim": 2.0}, TypeError, ""),
    ("word2vec-leakage", {"trials": 999}, ValueError, "an integer at least 1000"),
    ("word2vec-leakage", {"anchors": (-1,)}, ValueError, ""),
    ("word2vec-leakage", {"epsilons": (0.0,)}, ValueError, ""),
    ("word2vec-leakage", {"epsilons": (math.nan,)}, ValueError, ""),
    ("floating-point", {"systems": ("numpy",)}, ValueError, "one of"),
    ("encoder-frontier", {"trials": 99}, ValueError, "an integer at least 100"),
    ("word-dp-attack", {"trials": 20}, ValueError, "an integer at least 100"),
    ("dptext-encoder", {"cap": 5.0, "starts": None}, ValueError, "at most the cap, 5, got"),
    ("dptext-encoder", {"noises": ("keep",)}, ValueError, "one of 'zero'"),
    ("dptext-encoder", {"epochs": 0}, ValueError, "an integer at least 1"),
    ("dptext-encoder", {"texts": 10}, ValueError, "an integer at least 300"),
    ("dptext-encoder", {"claims": (0.0,)}, ValueError, "a finite number above 0"),
    ("searched-pairs", {"bound": "exakt"}, ValueError, "one of"),
]
"""Experiment, fields of its `Config`, the error about the last of them, a word of the remedy."""


@pytest.mark.parametrize(("name", "fields", "error", "remedy"), REFUSED)
def test_bad_configurations(name, fields, error, remedy):
    with pytest.raises(error, match=f"^{[*fields][-1]} must be {remedy}"):
        get(name).Config(**fields)


COMMON = [
    ("trials", 0, ValueError),
    ("trials", "many", ValueError),
    ("trials", True, TypeError),
    ("seed", -1, ValueError),
    ("seed", 1.5, TypeError),
    ("seeds", 0, ValueError),
    ("data", 3, TypeError),
    ("full", "yes", TypeError),
    ("quick", 1, TypeError),
    ("device", 3, TypeError),
    ("confidence", 1.0, ValueError),
]
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
    other = next(one for one in NAMES if one != name)
    for config in (None, 3, get(other).Config()):
        with pytest.raises(TypeError, match=r"^config must be a Config of dpcore\.experiments\."):
            get(name).run(config)


@pytest.mark.parametrize(
    "name", [name for name in NAMES if "device" in inspect.signature(get(name).Config).parameters]
)
def test_a_device_that_is_not_there(name):
    module = get_possible(name)
    with pytest.raises(ValueError, match=r"^device must be one of this machine"):
        module.run(module.Config(device="nowhere"))


def test_bad_trials_leave_no_folder(tmp_path):
    with pytest.raises(ValueError, match=r"^trials must be"):
        reproduce("published-systems", tmp_path / "out", trials=-1)
    assert not (tmp_path / "out").exists()
